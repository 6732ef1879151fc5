"""Twins of user code: the same functions and classes, whose names stand for what traces.

A *twin* of a user's function is a function of the same code, defaults and closure, whose globals
are a live view of the original ones (``Names``): ``LOAD_GLOBAL`` asks its ``__missing__``, which
answers with twins of modules, functions, classes, objects and arrays, and with everything else as
it is. So are the names of closures, the attributes of objects and the items of containers that
come from outside. Nothing outside changes while it runs: modules, classes, functions and objects
are only read. What the function writes to globals, closures and objects is theirs at the end.

Here: ``twin`` of any value, the view of globals, twins of functions, classes and objects, and what
is given back. Not here: containers (``plain.containers``), code that is marked (``plain.marked``),
what the names of NumPy, SciPy and Python become (``plain.libraries``, ``plain.numbers``), arrays
(``plain.memory``), when twins are run (``plain.entry``).

Layer: ``plain``.
"""

from __future__ import annotations

import abc
import builtins
import collections
import enum
import functools
import inspect
import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.plain.decide import is_single_dispatch
from functrans.plain.kinds import class_of, exemplar
from functrans.plain.marked import class_in, is_pattern, pattern_of, with_calls_marked
from functrans.plain.memory import (
    BUFFER_KINDS,
    PLAIN_KINDS,
    Buffer,
    holds_tracer,
    outside,
    settled,
)
from functrans.plain.memos import Memo, memo
from functrans.plain.standins import StandIn
from functrans.plain.users import is_user_function, is_user_module
from functrans.trace import Tracer

# globals ----------------------------------------------------------------------------------------

_MODULE_NAMES = ("__name__", "__file__", "__package__", "__spec__", "__loader__", "__doc__")

_LASTING = (types.ModuleType, types.BuiltinFunctionType, np.ufunc)
"""Kinds of values whose twins stay right as long as the name has the same value."""


def _is_lasting(value: Any, replaced: Any) -> bool:
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
      functions: twins of functions without closure.
    """

    __slots__ = ("functions", "original", "sources")

    def __init__(self, original: dict[str, Any]) -> None:
        self.original = original
        self.sources: dict[str, tuple[Any, Any]] = {}
        self.functions: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
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

    def stand_in(self, value: Any) -> Any:
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

_views: collections.OrderedDict[int, Names] = collections.OrderedDict()
_N_VIEWS = 512


def names_of(module_globals: dict[str, Any]) -> Names:
    """The view of a module's globals: one for all twins of its functions."""
    found = _views.get(id(module_globals))
    if found is None or found.original is not module_globals:
        found = _views[id(module_globals)] = Names(module_globals)
        if len(_views) > _N_VIEWS:  # of namespaces made by exec, which nobody else may hold
            _views.popitem(last=False)
    return found


def all_views() -> list[Names]:
    """The views of all modules of which a twin has run."""
    return list(_views.values())


# twins ------------------------------------------------------------------------------------------

ATOMS = frozenset(
    {int, float, complex, bool, str, bytes, type(None), type(...), slice, range, np.float64}
)
"""Types of values that are their own twins."""

_table: dict[int, tuple[Any, Any]] = {}
_reverse: dict[int, tuple[Any, Any]] = {}


def register(original: Any, replacement: Any) -> None:
    """Let a value stand for an object of a library, by identity."""
    _table[id(original)] = original, replacement
    _reverse[id(replacement)] = replacement, original


def registered(value: Any) -> Any:
    """What stands for an object of a library, or ``None``."""
    found = _table.get(id(value))
    return found[1] if found is not None and found[0] is value else None


def twin(value: Any) -> Any:
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
        make = twin_class if is_user_module(value.__module__) else makers[type]
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
    return twin_object if is_user_module(kind.__module__) else _library_maker(kind)


def _library_maker(kind: type) -> Callable[[Any], Any] | None:
    """How objects of a library's class are twinned, for classes known by name."""
    for base in kind.__mro__:
        make = makers_by_name.get(f"{base.__module__}.{base.__qualname__}")
        if make is not None:
            return make
    return None


def original_of(value: Any) -> Any:
    """The value that a twin stands for; others are themselves."""
    found = _reverse.get(id(value))
    if found is not None and found[0] is value:
        return found[1]
    if isinstance(value, type):
        return value.__dict__.get(_ORIGINAL, value)
    if type(value) is types.FunctionType:
        reference = _originals.get(value)
        return value if reference is None else reference() or value
    return value


def identity_of(value: Any) -> int:
    """The identity of the value from outside that another one stands for."""
    origin = memo().origin(value)
    return id(original_of(value) if origin is None else origin)


def given_back(value: Any) -> Any:
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
    if isinstance(value, dict):
        return givers[dict](value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return givers[tuple](value)
    original = kind.__dict__.get(_ORIGINAL)
    if original is None:
        return original_of(value)
    attributes = getattr(value, "__dict__", None)
    try:
        object.__setattr__(value, "__class__", original)
    except TypeError:  # it stays of the class of the twin, which is a subclass
        return value
    if attributes is not None:
        memo().made.append(value)
        given_back(attributes)
    return value


givers: dict[type, Callable[[Any], Any]] = {}
"""How values of a type that hold others are given back."""


def _give_method(method: types.MethodType) -> Any:
    function, owner = given_back(method.__func__), given_back(method.__self__)
    is_same = function is method.__func__ and owner is method.__self__
    return method if is_same else types.MethodType(function, owner)


def _give_partial(value: functools.partial[Any]) -> Any:
    function, args = given_back(value.func), tuple(map(given_back, value.args))
    keywords = {key: given_back(item) for key, item in value.keywords.items()}
    old, new = (
        (value.func, *value.args, *value.keywords.values()),
        (function, *args, *keywords.values()),
    )
    return (
        value
        if all(map(operator.is_, old, new))
        else functools.partial(function, *args, **keywords)
    )


givers.update({types.MethodType: _give_method, functools.partial: _give_partial})


def plain_number(value: Any) -> Any:
    """What a traced value is when its trace has ended: what it stood for, if that is known."""
    plain = getattr(value, "_value", None)
    if plain is None:
        return value
    if isinstance(plain, np.ndarray):
        return plain.copy() if isinstance(exemplar(value), np.ndarray) else plain[()]
    return _noted(plain)


def is_of_twin(kind: type) -> bool:
    """Whether a class is a twin of a class."""
    return _ORIGINAL in kind.__dict__


def _noted(value: Any) -> Any:
    """A value that is given back; if it is traced, its trace is to end first."""
    if isinstance(value, Tracer) and value._trace.is_open:
        memo().traces.add(value._trace)
    return value


# functions ----------------------------------------------------------------------------------------

_originals: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def is_twin(function: Any) -> bool:
    """Whether a function is a twin, or was made by one."""
    return type(getattr(function, "__globals__", None)) is Names


def twin_function(function: types.FunctionType) -> Any:
    """A function of the same code whose names are resolved to twins."""
    if is_twin(function):
        return function
    if not is_user_function(function):
        return _twin_wrapper(function)
    kept = _kept(function)
    if kept is not None:
        return kept
    names = names_of(function.__globals__)
    result = _copied(function, names)
    if not function.__dict__ and _holds_constants(function):
        names.functions[function] = result, _state_of(function)
    return result


def _state_of(function: types.FunctionType) -> tuple[Any, ...]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _kept(function: types.FunctionType) -> Any:
    """The twin of a function that was made in another call, if it is the same now."""
    found = names_of(function.__globals__).functions.get(function)
    if found is None or function.__dict__:
        return None
    return found[0] if all(map(operator.is_, found[1], _state_of(function))) else None


def _holds_constants(function: types.FunctionType) -> bool:
    """Whether all that a function holds is the same in each call: numbers, and its class."""
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(type(value) in ATOMS for value in defaults) and all(
        name == "__class__" and contents(cell) in _classes
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
    )


def _twin_wrapper(function: types.FunctionType) -> Any:
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
    def call(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return function(*args, **kwargs)  # which says what is missing
        return twin(function.dispatch(original_of(class_of(args[0]))))(*args, **kwargs)

    call.__dict__ = twin(function.__dict__)
    return call


class _DispatchingMethod(functools.singledispatchmethod):  # type: ignore[type-arg]  # of any result
    """``functools.singledispatchmethod``, likewise."""

    def __init__(self, method: Any) -> None:
        self.dispatcher, self.func = method.dispatcher, method.func

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        """The method, bound."""

        def call(*args: Any, **kwargs: Any) -> Any:
            found = self.dispatcher.dispatch(original_of(class_of(args[0])))
            return _member(found).__get__(instance, cls)(*args, **kwargs)

        return functools.update_wrapper(call, self.func)


def _copied(function: types.FunctionType, names: dict[str, Any]) -> Any:
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


def _stays(name: str, cell: Any) -> bool:
    """Whether a cell is that of a class whose twin is a subclass of it."""
    return name == "__class__" and not (
        isinstance(contents(cell), type) and is_beside(contents(cell))
    )


def _twin_cell(cell: Any) -> Any:
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


# classes ------------------------------------------------------------------------------------------

_ORIGINAL = "__functrans_original__"
_OUTSIDE = "__functrans_outside__"
_classes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
made_by_twins: weakref.WeakSet[type] = weakref.WeakSet()
"""Classes whose statements ran in twins, so that their methods are."""

_KEPT = frozenset(
    {
        "__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__slots__",
        "__init_subclass__", "__abstractmethods__", "__classcell__", "__subclasshook__",
        "__annotations__", "__static_attributes__", "__firstlineno__", "_abc_impl", _ORIGINAL,
    }
)  # fmt: skip
"""What a twin of a class does not copy."""


def _quiet() -> type:
    """A first base of a twin of a class with a hook for subclasses, which does not run for it."""

    class Quiet:
        __slots__ = ()

        def __init_subclass__(cls, **_: Any) -> None:
            """Nothing."""

    return Quiet


def twin_class(cls: type) -> type:
    """A subclass of a user's class whose methods are twins; the class itself of others."""
    if _ORIGINAL in cls.__dict__ or cls in made_by_twins or not _may_have_twin(cls):
        return cls
    if cls in memo().classes:
        known: type = memo().values[id(cls)][1]
        return known
    result = _classes.get(cls)
    if result is None:
        result = _empty_twin(cls)
        if "<locals>" not in cls.__qualname__:
            _classes[cls] = result
    memo().note(cls, result)
    members = memo().classes[cls] = {}
    if is_beside(cls):
        for name in [*result.__dict__]:
            if name not in cls.__dict__ and name not in _KEPT and name not in _OF_TWINS:
                type.__delattr__(result, name)
    for name, value in list(cls.__dict__.items()):
        if name in _KEPT and not (name == "__init_subclass__" and is_beside(cls)):
            continue
        if isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            continue
        replaced = _member(value)
        if name in ("__array_ufunc__", "__array_function__") and callable(replaced):
            replaced = _told_by_numpy(replaced)
        before = result.__dict__.get(name, EMPTY)
        if _is_same_member(before, replaced):
            replaced = before
        members[name] = replaced
        if result.__dict__.get(name, EMPTY) is not replaced:
            type.__setattr__(result, name, replaced)
    return result


def _is_same_member(before: Any, member: Any) -> bool:
    """Whether two properties, class or static methods are of the same functions."""
    kind = type(member)
    if kind is not type(before):
        return False
    if kind is property:
        return (before.fget, before.fset, before.fdel) == (member.fget, member.fset, member.fdel)
    return kind in (staticmethod, classmethod) and before.__func__ is member.__func__


def _told_by_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that NumPy calls with its function, which is what its name is in twins."""

    @functools.wraps(method)
    def call(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, twin(function), *args, **kwargs)

    return call


def give_back_members(cls: type, members: dict[str, Any]) -> None:
    """Write to a class what was written to its twin."""
    own = memo().values[id(cls)][1]
    gone = [name for name in members if name not in own.__dict__] if is_beside(cls) else []
    for name in gone:
        if name in cls.__dict__:
            delattr(cls, name)
    for name, value in list(own.__dict__.items()):
        if name not in _KEPT and name not in _OF_TWINS and members.get(name, EMPTY) is not value:
            setattr(cls, name, given_back(value))
            memo().written.append((cls, name))
            delattr(own, name)


_OF_TWINS = frozenset(
    {"__hash__", "__eq__", "__getattribute__", "__parameters__", "__functrans_class_outside__"}
)


def _empty_twin(cls: type) -> Any:
    """A twin of a class without its members; making it runs no hook of the user's.

    It is a class beside the class, of the twins of its bases: the program sees no class that it has
    not made. Where objects have slots, or memory of C's, it is a subclass, since no object can
    change between classes that lie beside each other there. It looks for attributes in the class,
    the twin of its first base, that base, and so on: so ``super()`` in a method, whose
    ``__class__`` stays the class, goes on to the twin of the base.
    """
    namespace: dict[str, Any] = {
        _ORIGINAL: cls,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    has_hook = any("__init_subclass__" in base.__dict__ for base in cls.__mro__[:-1])
    first = (_quiet(),) if has_hook else ()
    result: Any
    if is_beside(cls):
        bases = tuple(map(twin_class, cls.__bases__))
        namespace["__annotations__"] = inspect.get_annotations(cls)
        meta = _class_of_twins(type(cls))
        result = type.__new__(meta, cls.__name__, (*first, *bases), namespace)
    else:
        others = [other for base in cls.__bases__ if (other := twin_class(base)) is not base]
        namespace["__slots__"] = ()
        result = type.__new__(type(cls), cls.__name__, (*first, cls, *others), namespace)
    abstract = getattr(cls, "__abstractmethods__", None)
    if abstract:
        result.__abstractmethods__ = abstract
    return result


class _Plain:
    """A class of objects with attributes and nothing else."""


def is_beside(cls: type) -> bool:
    """Whether the twin of a class is none of its subclasses."""
    return _layout(cls) == _layout(_Plain)


def _layout(cls: type) -> tuple[int, ...]:
    return cls.__basicsize__, cls.__dictoffset__, cls.__weakrefoffset__, cls.__itemsize__


@functools.lru_cache(maxsize=64)
def _class_of_twins(kind: Any) -> Any:
    """The class of twins of classes that lie beside them, by the class of these.

    A twin is equal to the class, so that tables find it, and has the instances and subclasses that
    the class has.
    """
    own: dict[str, Any] = {"__module__": __name__}
    for name, function in _OF_CLASSES.items():
        theirs = getattr(kind, name)
        if theirs in (getattr(type, name), getattr(abc.ABCMeta, name)):
            own[name] = function
    if kind.__call__ is not type.__call__:
        own["__call__"] = _called_by_metaclass(kind)
    return type(kind)("Twins", (kind,), own)


def _is_same_class(cls: type, other: object) -> bool:
    return original_of(cls) is original_of(other)


def _hash_of_class(cls: type) -> int:
    return type.__hash__(original_of(cls))


def _has_instance(cls: type, instance: Any) -> bool:
    return type.__instancecheck__(cls, instance) or _has_subclass(cls, type(instance))


def _has_subclass(cls: type, other: Any) -> bool:
    original = original_of(cls)
    if type.__subclasscheck__(cls, other) or original is cls:
        return type.__subclasscheck__(cls, other)
    return issubclass(original_of(other), original)


def _subclasses(cls: type) -> list[type]:
    return list(map(twin_class, type.__subclasses__(original_of(cls))))


def _bases(cls: type) -> tuple[type, ...]:
    return tuple([x for x in type.__dict__["__bases__"].__get__(cls) if not _is_quiet(x)])


def _order(cls: type) -> tuple[type, ...]:
    return tuple([x for x in type.__dict__["__mro__"].__get__(cls) if not _is_quiet(x)])


def _is_quiet(cls: type) -> bool:
    return cls.__name__ == "Quiet" and cls.__module__ == __name__


_OF_CLASSES: dict[str, Any] = {
    "__eq__": _is_same_class,
    "__hash__": _hash_of_class,
    "__instancecheck__": _has_instance,
    "__subclasscheck__": _has_subclass,
    "__subclasses__": _subclasses,
    "__bases__": property(_bases),
    "__mro__": property(_order),
}


def _called_by_metaclass(kind: Any) -> Callable[..., Any]:
    def call(cls: type, *args: Any, **kwargs: Any) -> Any:
        return twin(kind.__call__(cls, *args, **kwargs))

    return call


def _may_have_twin(cls: type) -> bool:
    if not is_user_module(cls.__module__) or getattr(cls, "_is_protocol", False):
        return False
    meta = type(cls)
    if meta is not type and meta is not abc.ABCMeta and not is_user_module(meta.__module__):
        return False  # a library's way of making classes
    return not issubclass(cls, (enum.Enum, BaseException, tuple, type))


def _member(value: Any) -> Any:
    """The twin of what stands in a class: functions, static and class methods, properties."""
    kind = type(value)
    if kind in (staticmethod, classmethod):
        function = _member(value.__func__)
        return value if function is value.__func__ else kind(function)
    if kind is property:
        read, write, delete = (f and _member(f) for f in (value.fget, value.fset, value.fdel))
        return property(read, write, delete, value.__doc__)
    if kind is functools.singledispatchmethod:
        return _DispatchingMethod(value)
    if kind is functools.cached_property:
        result: Any = functools.cached_property(_member(value.func))
        result.attrname = value.attrname
        return result
    replaced = value if kind in ATOMS else twin(value)
    is_bound = type(replaced) is types.FunctionType and not hasattr(kind, "__get__")
    return staticmethod(replaced) if is_bound else replaced  # functions of C are no methods


# objects ------------------------------------------------------------------------------------------


def twin_object(value: Any) -> Any:
    """An object that shares the attributes of another one, whose class is the twin of its class."""
    cls = type(value)
    if _ORIGINAL in cls.__dict__ or cls.__module__ == "builtins":
        return value
    theirs = twin_class(cls)
    if theirs is cls or not hasattr(value, "__dict__") or _has_slots(cls):
        return value
    result: Any
    try:
        result = object.__new__(_outside_class(theirs))
    except TypeError:  # a class of C's below it, whose memory cannot be shared
        return value
    object.__setattr__(result, "__dict__", value.__dict__)
    memo().objects.append(value)
    return result


def _has_slots(cls: type) -> bool:
    return any(base.__dict__.get("__slots__") for base in cls.__mro__ if base is not object)


def _origin_of(seen: Any) -> Any:
    """The object from outside that another one shares its attributes with."""
    attributes = object.__getattribute__(seen, "__dict__")
    for value in memo().objects:
        if value.__dict__ is attributes:
            return value
    return seen


_CLASS_OUTSIDE = "__functrans_class_outside__"


def _outside_class(theirs: type) -> type:
    """The class of objects that came from outside: what they hold are twins, too."""
    known: type | None = theirs.__dict__.get(_CLASS_OUTSIDE)
    if known is not None:
        return known
    inherited: Any = theirs.__getattribute__

    def attribute(self: Any, name: str) -> Any:
        value = inherited(self, name)
        kind = type(value)
        if kind in ATOMS or kind is types.MethodType or name == "__dict__":
            return value
        return theirs if name == "__class__" else twin(value)

    namespace: dict[str, Any] = {
        _ORIGINAL: theirs.__dict__[_ORIGINAL],
        _OUTSIDE: None,
        "__slots__": (),
        "__getattribute__": attribute,
        "__module__": theirs.__module__,
        "__qualname__": theirs.__qualname__,
    }
    if "__eq__" not in _attributes(theirs):  # the twin is to be found where the object is a key
        namespace.update(__eq__=_is_same, __hash__=_hash)
    elif theirs.__hash__ is None:
        namespace["__hash__"] = None
    found: type = type.__new__(type(theirs), theirs.__name__, (theirs,), namespace)
    type.__setattr__(theirs, _CLASS_OUTSIDE, found)
    return found


def _attributes(cls: type) -> set[str]:
    """What a class and its bases define, without ``object``."""
    return {name for base in cls.__mro__ if base is not object for name in base.__dict__}


def _is_same(self: Any, other: object) -> bool:
    return _identity(self) == _identity(other)


def _hash(self: Any) -> int:
    return object.__hash__(_origin_of(self))


def _identity(value: Any) -> int:
    return id(getattr(value, "__dict__", value))


# other values -------------------------------------------------------------------------------------


def _twin_method(method: types.MethodType) -> Any:
    function, owner = twin(method.__func__), twin(method.__self__)
    if function is method.__func__ and owner is method.__self__:
        return method
    if isinstance(owner, type):
        return types.MethodType(function, owner)
    bound = getattr(type(owner), method.__func__.__name__, None)
    return types.MethodType(bound if type(bound) is types.FunctionType else function, owner)


def _twin_partial(value: functools.partial[Any]) -> Any:
    function, args = twin(value.func), tuple(map(twin, value.args))
    return functools.partial(function, *args, **{k: twin(v) for k, v in value.keywords.items()})


def _twin_cached(value: Any) -> Any:
    """A function with a cache: what is given tracers is computed past it."""
    inner = twin(value.__wrapped__)

    @functools.wraps(value)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = settled(args), settled(kwargs)
        if holds_tracer(args) or holds_tracer(kwargs):
            return inner(*args, **kwargs)
        return twin(value(*args, **kwargs))

    return call


def _twin_array(value: np.ndarray) -> Any:
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
        names = names_of(module.__dict__)
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

makers_of_bases: list[tuple[Callable[[type], bool], Callable[[Any], Any]]] = []
"""The same for classes by a property of theirs."""

makers_by_name: dict[str, Callable[[Any], Any]] = {}
"""The same for classes of libraries, by module and name: of SciPy and numba."""
