"""Twins of user code: the same functions and classes, whose names stand for what traces.

A *twin* of a user's function is a function of the same code, defaults and closure, whose globals
are a live view of the original ones (``Names``): ``LOAD_GLOBAL`` asks its ``__missing__``, which
answers with twins of modules, functions, classes, objects and arrays, and with everything else as
it is. So are the names of closures, the attributes of objects and the items of containers that
come from outside. Nothing outside changes while it runs: modules, classes, functions and objects
are only read. What the function writes to globals, closures and objects is theirs at the end.

Here: ``twin`` of any value, the view of globals, twins of functions, and what is given back. Not
here: classes and objects (``plain.twin_classes``), containers (``plain.containers``), code that is
marked (``plain.marked``), what the names of NumPy, SciPy and Python become (``plain.libraries``,
``plain.numbers``), arrays (``plain.memory``), when twins are run (``plain.entry``).

Layer: ``plain``.
"""

from __future__ import annotations

import builtins
import collections
import functools
import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.caching import Recent, listed
from functrans.core.dispatch import Tracer
from functrans.core.values import Array, Operand
from functrans.plain.decide import is_single_dispatch
from functrans.plain.homes import PLAIN_KINDS
from functrans.plain.kinds import class_of, exemplar
from functrans.plain.marked import (
    class_in,
    is_pattern,
    pattern_of,
    with_calls_marked,
    without_marks,
)
from functrans.plain.memory import BUFFER_KINDS, Buffer, holds_tracer, outside, settled
from functrans.plain.memos import Memo, memo, memo_of_call
from functrans.plain.standins import StandIn
from functrans.plain.users import is_user_function, is_user_module

# globals ----------------------------------------------------------------------------------------

_MODULE_NAMES = ("__name__", "__file__", "__package__", "__spec__", "__loader__", "__doc__")

_LASTING = (types.ModuleType, types.BuiltinFunctionType, np.ufunc)
"""Kinds of values whose twins stay right as long as the name has the same value."""


def _is_lasting(value: object, replaced: object) -> bool:
    """Whether the twin of a value is the same in the next call, and holds nothing of this one.

    That of a function is if it is kept: without closure, defaults and attributes. That of a class
    of a user is made anew, as its members may be.
    """
    if isinstance(value, types.FunctionType):
        if not is_twin(replaced):
            return replaced is value or value.__closure__ is None
        return _kept(value) is replaced
    if isinstance(value, type):
        return not is_user_module(value.__module__)
    return isinstance(value, _LASTING)


class Names(dict[str, Any]):
    """Globals of twins: twins that were asked for, and on demand what the original module has.

    Attributes:
      original: the globals of the module.
      sources: by name: the value there, and its twin here.
      functions: twins of functions that are kept, and what these were made of.
    """

    __slots__ = ("functions", "original", "sources")

    def __init__(self, original: dict[str, Any]) -> None:
        self.original = original
        self.sources: dict[str, tuple[Any, Any]] = {}
        self.functions: Any = listed("twins of functions", weakref.WeakKeyDictionary())
        for name in _MODULE_NAMES:
            if name in original:
                self[name] = original[name]
                self.sources[name] = original[name], original[name]
        self["__builtins__"] = Builtins(self)

    def __missing__(self, name: str) -> Any:
        """The twin of what the module has under a name (a ``KeyError``: of the builtins, then)."""
        value = self.original[name]
        if type(value) in ATOMS:
            return value
        replaced = twin(value)
        if replaced is not value:
            self.sources[name] = value, replaced
            self[name] = replaced
        return replaced

    def stand_in(self, value: object) -> Any:
        """What stands for a value in these functions."""
        return twin(value)

    def refresh(self, memo: Memo) -> None:
        """Forget twins of values that the module no longer has, and of those that may change.

        The others are those of the values wherever else they are met in the call.
        """
        for name, (value, replaced) in list(self.sources.items()):
            if name in _MODULE_NAMES:
                continue
            if self.original.get(name) is not value or not _is_lasting(value, replaced):
                del self.sources[name]
                if self.get(name) is replaced:
                    del self[name]
            else:
                memo.note(value, replaced)

    def give_back(self) -> None:
        """Write to the module what ``global`` statements wrote."""
        if len(self) == len(self.sources) + 1 and all(
            self.get(name) is replaced for name, (_, replaced) in self.sources.items()
        ):
            return
        for name, value in list(self.items()):
            known = self.sources.get(name)
            if name != "__builtins__" and (known is None or known[1] is not value):
                self.original[name] = given_back(value)
                memo().written.append((self.original, name))
                self.sources.pop(name, None)
                del self[name]
        for name in [name for name in self.sources if name not in self]:
            del self.sources[name]
            self.original.pop(name, None)


class Builtins(dict[str, Any]):
    """Builtins of twins. ``LOAD_NAME`` in class bodies comes here, past ``Names.__missing__``."""

    __slots__ = ("names",)

    def __init__(self, names: Names) -> None:
        self.names = names
        self.update(builtin_twins)

    def __missing__(self, name: str) -> Any:
        """What the module has under a name, or Python."""
        if name in self.names.original:
            return self.names[name]
        if is_pattern(name):
            own = class_in(name)
            found = self.names[own] if own in self.names.original else self[own]
            return pattern_of(found, original_of)
        return builtins.__dict__[name]


builtin_twins: dict[str, Any] = {}
"""Twins of Python's own functions, by name; filled by ``plain.numbers``."""

_views: Recent[int, Names] = Recent(512)
"""Not for ever: nobody else may hold namespaces made by exec."""


def view_of_globals(module_globals: dict[str, Any]) -> Names:
    """The view of a module's globals: one for all twins of its functions."""
    found = _views.get(id(module_globals))
    if found is None or found.original is not module_globals:
        found = _views[id(module_globals)] = Names(module_globals)
    return found


def all_views() -> list[Names]:
    """The views of all modules of which a twin has run."""
    return _views.all()


# twins ------------------------------------------------------------------------------------------

ATOMS = frozenset(
    {int, float, complex, bool, str, bytes, type(None), type(...), slice, range, np.float64}
)
"""Types of values that are their own twins."""

_table: dict[int, tuple[Any, Any]] = {}
_reverse: dict[int, tuple[Any, Any]] = {}


def register(original: object, replacement: object) -> None:
    """Let a value stand for an object of a library, by identity."""
    _table[id(original)] = original, replacement
    _reverse[id(replacement)] = replacement, original


def registered(value: object) -> Any:
    """What stands for an object of a library, or ``None``."""
    found = _table.get(id(value))
    return found[1] if found is not None and found[0] is value else None


def twin(value: object) -> Any:
    """What stands for a value from outside inside of a twin."""
    kind = type(value)
    if kind in ATOMS or isinstance(value, Tracer):
        return value
    found = _table.get(id(value))
    if found is not None and found[0] is value:
        return found[1]
    known = memo().known(value)
    if known is not None:
        return known
    make: Any
    if kind is StandIn:
        return value
    if isinstance(value, type):
        make = makers_of_users["class"] if is_user_module(value.__module__) else makers[type]
    elif kind in makers:
        make = makers[kind]
    else:
        make = _maker_of_kind(kind)
    if make is None:
        return value
    replaced = make(value)
    if replaced is not value:
        known = memo().known(value)  # where it refers to itself
        if known is not None:
            return known
        memo().note(value, replaced)
    return replaced


def _maker_of_kind(kind: type) -> Callable[[Any], Any] | None:
    for holds, make in makers_of_bases:
        if holds(kind):
            return make
    return makers_of_users["object"] if is_user_module(kind.__module__) else _library_maker(kind)


def _library_maker(kind: type) -> Callable[[Any], Any] | None:
    """How objects of a library's class are twinned, for classes known by name."""
    for base in kind.__mro__:
        make = makers_by_name.get(f"{base.__module__}.{base.__qualname__}")
        if make is not None:
            return make
    return None


def original_of(value: object) -> Any:
    """The value that a twin stands for; others are themselves."""
    found = _reverse.get(id(value))
    if found is not None and found[0] is value:
        return found[1]
    if isinstance(value, type):
        return value.__dict__.get(ORIGINAL, value)
    if type(value) is types.FunctionType:
        reference = _originals.get(value)
        return value if reference is None else reference() or value
    return value


def origin_of(value: object) -> Any:
    """The value from outside that a twin of this call stands for; others are themselves."""
    known = memo_of_call.get()
    origin = known.origin(value) if known is not None and type(value) not in ATOMS else None
    return value if origin is None else origin


def identity_of(value: object) -> int:
    """The identity of the value from outside that another one stands for."""
    return id(original_of(origin_of(value)))


def given_back(value: object) -> Any:
    """A value of a twin as the world outside gets it: arrays, functions and classes as they were.

    Objects of twins of classes become objects of the classes.
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is Buffer:
        value = settled(value)
    if isinstance(value, Tracer):
        return plain_number(value) if value._trace is memo().ended else _noted(value)
    if kind is Buffer:
        return value
    give = givers.get(kind)
    origin = memo().origin(value)
    if origin is not None and not (give is not None and memo().of_result):
        return origin
    if give is not None:
        return give(value)
    if isinstance(value, CONTAINERS):
        givers[next(base for base in CONTAINERS if isinstance(value, base))](value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return givers[tuple](value)
    original = kind.__dict__.get(ORIGINAL)
    if original is None:
        if kind in made_by_twins and not memo().has_visited(value):
            memo().made.append(value)
        return original_of(value)
    try:
        object.__setattr__(value, "__class__", original)
    except TypeError:  # it stays of the class of the twin, which is a subclass
        return value
    memo().made.append(value)  # what it holds is given back later: chains may be long
    return value


CONTAINERS = (
    collections.OrderedDict, collections.defaultdict, dict, collections.deque, list, set,
)  # fmt: skip
"""Of objects of user's subclasses, too, the items are twins, and given back."""

fill_of_containers: dict[type, Callable[[Any, Any], None]] = {}
"""How the items of such an object get into its twin."""

givers: dict[type, Callable[[Any], Any]] = {}
"""How values of a type that hold others are given back."""


def _give_method(method: types.MethodType) -> Callable[..., Any]:
    function, owner = given_back(method.__func__), given_back(method.__self__)
    is_same = function is method.__func__ and owner is method.__self__
    return method if is_same else types.MethodType(function, owner)


def _give_partial(value: functools.partial[Any]) -> Any:
    held = (value.func, *value.args, *value.keywords.values())
    new = list(map(given_back, held))
    if all(map(operator.is_, new, held)):
        return value
    n = 1 + len(value.args)
    return functools.partial(new[0], *new[1:n], **dict(zip(value.keywords, new[n:], strict=True)))


def _give_function(function: types.FunctionType) -> Callable[..., Any]:
    """A function of the world: the original, or for one that was made in a twin one like it."""
    original = original_of(function)
    if original is not function or not is_twin(function) or memo().of_result:
        return original
    names: Any = function.__globals__
    cells = [_outer_cell(cell) for cell in function.__closure__ or ()]
    code = without_marks(function.__code__)
    closure = tuple(cells) if function.__closure__ else None
    result = types.FunctionType(code, names.original, function.__name__, None, closure)
    memo().origins[id(function)] = function, result
    for cell in cells:
        content = contents(cell)
        if content is not EMPTY:
            cell.cell_contents = given_back(content)
            memo().written.append((cell, "cell_contents"))
    result.__defaults__ = given_back(function.__defaults__)
    result.__kwdefaults__ = given_back(function.__kwdefaults__)
    for name in functools.WRAPPER_ASSIGNMENTS:
        setattr(result, name, getattr(function, name))
    result.__dict__.update(given_back(function.__dict__))
    return result


def _outer_cell(cell: object) -> Any:
    """The cell of the world that a cell is a twin of; others are themselves."""
    return next((outer for outer, own, _ in memo().cells.values() if own is cell), cell)


givers.update(
    {
        types.FunctionType: _give_function,
        types.MethodType: _give_method,
        functools.partial: _give_partial,
    }
)


def plain_number(value: Operand) -> Any:
    """What a traced value is when its trace has ended: what it stood for, if that is known."""
    plain = getattr(value, "_value", None)
    if plain is None:
        return value
    if isinstance(plain, np.ndarray):
        return plain.copy() if isinstance(exemplar(value), np.ndarray) else plain[()]
    return _noted(plain)


def is_of_twin(kind: type) -> bool:
    """Whether a class is a twin of a class."""
    return ORIGINAL in kind.__dict__


def _noted(value: Operand) -> Any:
    """A value that is given back; if it is traced, its trace is to end first."""
    known = memo()
    if isinstance(value, Tracer) and value._trace.is_open and not known.of_result:
        known.traces.add(value._trace)
    return value


# classes ------------------------------------------------------------------------------------------

ORIGINAL = "__functrans_original__"
"""The attribute of a twin of a class which is the class."""

made_by_twins: weakref.WeakSet[type] = weakref.WeakSet()
"""Classes whose statements ran in twins, so that their methods are."""

kept_classes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
"""Twins of classes that are the same in each call."""


class _Plain:
    """A class of objects with attributes and nothing else."""


_PLAIN_LAYOUT = (_Plain.__basicsize__, _Plain.__dictoffset__, _Plain.__weakrefoffset__, 0)


def is_beside(cls: type) -> bool:
    """Whether the twin of a class is none of its subclasses.

    Its objects then become objects of the class, which Python allows if the memory of both, and of
    their bases, is laid out alike.
    """
    bases = [base for base in cls.__mro__ if is_user_module(base.__module__)]
    return all(is_laid_out_plainly(base) for base in (cls, *bases))


def is_laid_out_plainly(cls: type) -> bool:
    """Whether objects have a dictionary, weak references and nothing else."""
    layout = cls.__basicsize__, cls.__dictoffset__, cls.__weakrefoffset__, cls.__itemsize__
    return layout == _PLAIN_LAYOUT


# functions ----------------------------------------------------------------------------------------

_originals: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def is_twin(function: object) -> bool:
    """Whether a function is a twin, or was made by one."""
    return type(getattr(function, "__globals__", None)) is Names


def twin_function(function: types.FunctionType) -> Callable[..., Any]:
    """A function of the same code whose names are resolved to twins."""
    if is_twin(function):
        return function
    if not is_user_function(function):
        return _twin_wrapper(function)
    kept = _kept(function)
    if kept is not None:
        return kept
    names = view_of_globals(function.__globals__)
    result = _copied(function, names)
    if not function.__dict__ and _holds_constants(function):
        names.functions[function] = result, _state_of(function)
    return result


def twin_of_code(function: types.FunctionType) -> Callable[..., Any]:
    """The twin of a function whoever's it is."""
    return (
        function if is_twin(function) else _copied(function, view_of_globals(function.__globals__))
    )


def _state_of(function: types.FunctionType) -> tuple[Any, ...]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _kept(function: types.FunctionType) -> Callable[..., Any] | None:
    """The twin of a function that was made in another call, if it is the same now."""
    found = view_of_globals(function.__globals__).functions.get(function)
    if found is None or function.__dict__:
        return None
    return found[0] if all(map(operator.is_, found[1], _state_of(function))) else None


def _holds_constants(function: types.FunctionType) -> bool:
    """Whether all that a function holds is the same in each call: numbers, and its class."""
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(type(value) in ATOMS for value in defaults) and all(
        name == "__class__" and contents(cell) in kept_classes
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
    )


def _twin_wrapper(function: types.FunctionType) -> Callable[..., Any]:
    """A library's function around a user's (``contextmanager``): the same around its twin."""
    if not function.__closure__ or not hasattr(function, "__wrapped__"):
        return function
    if is_single_dispatch(function):
        return _twin_dispatcher(function)
    held = map(contents, function.__closure__)
    if not any(type(value) is types.FunctionType and is_user_function(value) for value in held):
        return function
    return _copied(function, function.__globals__)


def _twin_dispatcher(function: Any) -> Any:
    """A function of ``functools.singledispatch``: traced values are of the classes of values."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not args:
            return function(*args, **kwargs)  # which says what is missing
        return twin(function.dispatch(original_of(class_of(args[0]))))(*args, **kwargs)

    call.__dict__ = twin(function.__dict__)
    return call


def _copied(function: types.FunctionType, names: dict[str, Any]) -> Callable[..., Any]:
    """A function with other globals, whose closure and defaults are twins."""
    code = function.__code__
    if type(names) is Names:
        code = with_calls_marked(code)
    closure = zip(code.co_freevars, function.__closure__ or (), strict=True)
    own = tuple([cell if _stays(name, cell) else _twin_cell(cell) for name, cell in closure])
    cells = own if function.__closure__ else None
    result: Any = types.FunctionType(code, names, function.__name__, None, cells)
    memo().note(function, result)  # it may stand in its own closure
    _originals[result] = weakref.ref(function)
    for cell in function.__closure__ or ():
        _fill(cell)
    if function.__defaults__:
        result.__defaults__ = tuple(map(twin, function.__defaults__))
    if function.__kwdefaults__:
        result.__kwdefaults__ = {key: twin(x) for key, x in function.__kwdefaults__.items()}
    result.__qualname__ = function.__qualname__
    result.__module__ = function.__module__
    result.__doc__ = function.__doc__
    result.__annotations__ = function.__annotations__
    result.__dict__ = twin(function.__dict__)
    return result


def _stays(name: str, cell: object) -> bool:
    """Whether a cell is that of a class whose twin is a subclass of it."""
    return name == "__class__" and not (
        isinstance(contents(cell), type) and is_beside(contents(cell))
    )


def _twin_cell(cell: object) -> Any:
    """The one twin of a closure's cell during a call; the cell itself where a number stands."""
    known = memo().cells.get(id(cell))
    if known is not None:
        return known[1]
    content = contents(cell)
    if content is EMPTY:
        return cell
    if type(content) in ATOMS or isinstance(content, Tracer):
        memo().cells[id(cell)] = cell, cell, content  # something else may be written to it
        return cell
    new = types.CellType()
    memo().cells[id(cell)] = cell, new, EMPTY
    return new


def _fill(cell: Any) -> None:
    """Write the twin of a cell's contents to its twin."""
    known = memo().cells.get(id(cell))
    if known is not None and known[2] is EMPTY:
        replaced = twin(cell.cell_contents)
        if memo().cells[id(cell)][2] is EMPTY:
            known[1].cell_contents = replaced
            memo().cells[id(cell)] = cell, known[1], replaced


EMPTY = object()
"""What an empty cell has."""


def contents(cell: Any) -> Any:
    """What a closure's cell holds, or ``EMPTY``."""
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


# other values -------------------------------------------------------------------------------------


def _twin_method(method: types.MethodType) -> Callable[..., Any]:
    function, owner = twin(method.__func__), twin(method.__self__)
    if function is method.__func__ and owner is method.__self__:
        return method
    if isinstance(owner, type):
        return types.MethodType(function, owner)
    if owner is not method.__self__ and not is_user_function(method.__func__):
        return getattr(owner, method.__func__.__name__)
    bound = getattr(type(owner), method.__func__.__name__, None)
    return types.MethodType(bound if type(bound) is types.FunctionType else function, owner)


def _twin_partial(value: functools.partial[Any]) -> Any:
    function, args = twin(value.func), tuple(map(twin, value.args))
    return functools.partial(function, *args, **{k: twin(v) for k, v in value.keywords.items()})


def _twin_cached(value: Any) -> Callable[..., Any]:
    """A function with a cache: what is given tracers is computed past it."""
    inner = twin(value.__wrapped__)

    @functools.wraps(value)
    def call(*args: object, **kwargs: object) -> Any:
        args, kwargs = settled(args), settled(kwargs)
        if holds_tracer(args) or holds_tracer(kwargs):
            return inner(*args, **kwargs)
        return twin(value(*map(origin_of, args), **{k: origin_of(x) for k, x in kwargs.items()}))

    own: Any = call
    own.cache_info, own.cache_clear = value.cache_info, value.cache_clear
    own.cache_parameters = value.cache_parameters
    return call


def _twin_array(value: np.ndarray) -> Array:
    return (
        outside(value)
        if value.dtype.kind in (BUFFER_KINDS if value.ndim else PLAIN_KINDS)
        else value
    )


def _twin_module(module: types.ModuleType) -> Any:
    """A proxy of a module of user code, whose attributes are twins."""
    return UserModule(module) if is_user_module(module.__name__) else module


class UserModule:
    """A module of user code, as twins see it."""

    def __init__(self, module: types.ModuleType) -> None:
        self.__dict__["__original__"] = module

    def __getattr__(self, name: str) -> Any:
        """The twin of what the module has."""
        module = self.__dict__["__original__"]
        names = view_of_globals(module.__dict__)
        try:
            return names[name]
        except KeyError:
            return twin(getattr(module, name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Written to the module itself."""
        setattr(self.__dict__["__original__"], name, given_back(value))

    def __dir__(self) -> list[str]:
        """Of the module."""
        return dir(self.__dict__["__original__"])

    def __repr__(self) -> str:
        """Of the module."""
        return repr(self.__dict__["__original__"])


makers: dict[type, Callable[[Any], Any] | None] = {
    types.FunctionType: twin_function,
    types.MethodType: _twin_method,
    functools.partial: _twin_partial,
    type(functools.lru_cache(lambda: None)): _twin_cached,
    types.ModuleType: _twin_module,
    np.ndarray: _twin_array,
    type: None,
}
"""How values of a type are twinned; those of ``None`` are their own twins."""
makers.update(dict.fromkeys((Buffer, types.BuiltinFunctionType, np.ufunc), None))

makers_of_users: dict[str, Callable[[Any], Any]] = {}
"""Those of a "class" and of an "object" of user code."""

makers_of_bases: list[tuple[Callable[[type], bool], Callable[[Any], Any]]] = []
"""The same for classes by a property of theirs."""

makers_by_name: dict[str, Callable[[Any], Any]] = {}
"""The same for classes of libraries, by module and name: of SciPy and numba."""
