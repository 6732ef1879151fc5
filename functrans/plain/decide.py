"""Which functions need a twin, by the names in their code.

A function needs none if all that it calls takes traced values as it is: operators, ufuncs and
those functions of NumPy that dispatch, methods of arrays, functions of functrans, and functions of
its own module of which the same is true. So code that could be traced before is traced as before,
at no cost but this look, once for a function.

Here: the look. Not here: what is replaced (``plain.libraries``, ``plain.numbers``).

Layer: ``plain`` (after ``users``: it is loaded without the tables of twins).
"""

from __future__ import annotations

import builtins
import dis
import functools
import itertools
import types
import weakref
from collections import ChainMap, Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from functrans.core.caching import listed
from functrans.core.dispatch import Tracer
from functrans.core.source import attribute
from functrans.plain.users import is_user_function, is_user_module

_BUILTINS = frozenset(
    {"getattr", "globals", "hasattr", "isinstance", "issubclass", "map", "max", "min", "repr"}
)
"""Functions of Python that have a twin."""

_CALLED = frozenset({"float", "complex", "str", "type"})
"""Types of Python that have one where they are called."""

_NUMBERS = frozenset({"math", "cmath", "statistics"})

MAKES_ARRAYS = frozenset(
    {
        "Chebyshev", "Hermite", "HermiteE", "Laguerre", "Legendre", "Polynomial",
        "apply_along_axis", "apply_over_axes", "arange", "array", "asanyarray", "asarray",
        "ascontiguousarray", "asfarray", "asfortranarray", "block", "broadcast", "c_", "copy",
        "copyto", "diag", "diagflat", "empty", "empty_like", "eye", "fill_diagonal", "frombuffer",
        "fromfunction", "fromiter", "frompyfunc", "full", "full_like", "geomspace", "identity",
        "isscalar", "linspace", "logspace", "meshgrid", "mgrid", "ndarray", "ndenumerate", "nditer",
        "ogrid", "ones", "ones_like", "piecewise", "place", "poly1d", "put", "put_along_axis",
        "putmask", "r_", "require", "tri", "vander", "vectorize", "zeros", "zeros_like",
    }
)  # fmt: skip
"""Names of NumPy that do not dispatch on traced values, or make arrays that code may fill."""

_WRITES = {
    "STORE_SUBSCR": "a[...] = ...",
    "STORE_ATTR": "a.b = ...",
    "STORE_GLOBAL": "global",
    "IMPORT_NAME": "import",
    "MATCH_CLASS": "case C(...)",
}
_LISTS = frozenset({"BUILD_LIST", "LIST_APPEND", "LIST_EXTEND"})
_MAKES_LISTS = frozenset({"list", "sorted"})
_METHODS = frozenset({"copy", "item", "tolist"})
"""Methods of arrays whose meaning is another one in twins."""


MISSING = object()
"""What a name stands for that is not known."""

_NONE: Mapping[str, Any] = {}


class Look:
    """What the code of a function says, without what its names stand for.

    Attributes:
      chains: names with their attributes: ``("np", "linalg", "solve")``, and the line of each.
      of_arguments: arguments with attributes that arrays do not have, likewise.
      stored: local names that are assigned to.
      kept: variables that functions inside read and that are assigned to once, and the name with
        attributes that they stand for; whether that begins with an argument.
      reason: what needs a twin whatever the names are, and its line; empty if nothing does.
      has_lists: whether it makes lists.
      codes: the code of functions inside.
      names: all names that it and these may read of a module.
    """

    __slots__ = (
        "chains", "codes", "has_lists", "kept", "names", "of_arguments", "reason", "stored"
    )  # fmt: skip

    has_lists: bool
    names: tuple[str, ...]
    stored: set[str]

    def __init__(self, code: types.CodeType) -> None:
        self.chains: dict[tuple[str, ...], int] = {}
        self.of_arguments: dict[tuple[str, ...], int] = {}
        self.codes = [c for c in code.co_consts if isinstance(c, types.CodeType)]
        self.kept: dict[str, tuple[tuple[str, ...], bool]] = {}
        inside = [name for inner in self.codes for name in look_at(inner).names]
        self.names = tuple(dict.fromkeys((*code.co_names, *inside)))
        self.stored = {name for inner in self.codes for name in look_at(inner).stored}
        self.reason = ""
        self.has_lists = any(look_at(inner).has_lists for inner in self.codes)
        line = code.co_firstlineno
        arguments = arguments_of(code)
        instructions = list(dis.get_instructions(code))
        stores = Counter(i.argval for i in instructions if i.opname in _STORES)
        stored_inside = frozenset(self.stored)
        self.stored |= stores.keys()
        aliases: dict[str, tuple[list[str], bool]] = {}
        chain: list[str] = []
        of_argument = False
        for i, instruction in enumerate(instructions):
            name = instruction.opname
            if name in _ATTRIBUTES:
                if chain:
                    chain.append(instruction.argval)
                    if instruction.argval == "shuffle":  # which exchanges rows, views of each other
                        self._note(".shuffle", line)
                elif not _is_of_arrays(instruction.argval):
                    self._note(f".{instruction.argval}", line)
                self.has_lists |= instruction.argval in ("append", "extend", "insert")
                continue
            if chain:
                self._add(tuple(chain), line, of_argument)
                is_kept = name in _STORES and stores[instruction.argval] == 1
                if is_kept and name == "STORE_FAST":
                    aliases[instruction.argval] = chain, of_argument
                elif is_kept and instruction.argval not in stored_inside:
                    self.kept[instruction.argval] = tuple(chain), of_argument
                chain = []
            line = instruction.starts_line or line
            if name in _NAMES:
                self.has_lists |= instruction.argval in _MAKES_LISTS
                if instruction.argval in _CALLED and not (instruction.arg or 0) & 1:
                    continue  # the type itself
                if not _may_be_of_value(instructions[i : i + 4]):
                    continue
                chain, of_argument = [instruction.argval], False
            elif name == "LOAD_FAST" and instruction.argval in arguments:
                chain, of_argument = [instruction.argval], True
            elif name == "LOAD_FAST" and instruction.argval in aliases:
                chain, of_argument = aliases[instruction.argval]
                chain = [*chain]
            elif name in _WRITES:
                self._note(_WRITES[name], line)
            self.has_lists |= name in _LISTS
        if chain:
            self._add(tuple(chain), line, of_argument)

    def _add(self, chain: tuple[str, ...], line: int, of_argument: bool) -> None:
        if not of_argument:
            self.chains.setdefault(chain, line)
        elif not all(map(_is_of_arrays, chain[1:])):
            self.of_arguments.setdefault(chain, line)

    def _note(self, what: str, line: int) -> None:
        self.reason = self.reason or f"{what} (line {line})"


def arguments_of(code: types.CodeType) -> tuple[str, ...]:
    """The names of a function's arguments, without ``*args`` and ``**kwargs``."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _may_be_of_value(instructions: list[dis.Instruction]) -> bool:
    """Whether a name is no ``type(self)``, nor a ``getattr`` whose answer is no matter of class.

    Args:
      instructions: that which loads the name, and those after it.
    """
    name = instructions[0].argval
    arguments = [instruction.argval for instruction in instructions[1:2]]
    if name == "getattr":  # with a default, that is
        has_default = len(instructions) > 3 and instructions[3].opname.startswith("LOAD_")
        return has_default and arguments[0] not in ("self", "cls")
    return name != "type" or arguments != ["self"]


_STORES = frozenset({"STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF"})
_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


@functools.lru_cache(maxsize=1)
def _names_of_arrays() -> frozenset[str]:
    names = {name for kind in (np.ndarray, list, tuple, dict, set, str) for name in dir(kind)}
    return frozenset(names) - _METHODS | {"at"}


def _is_of_arrays(name: str) -> bool:
    """Whether an attribute is one of arrays or containers, and means the same of traced values."""
    return name in _names_of_arrays()


_looks: weakref.WeakKeyDictionary[types.CodeType, Look] = listed(
    "looks at code", weakref.WeakKeyDictionary()
)
_reasons: weakref.WeakKeyDictionary[Any, str] = listed(
    "reasons for twins", weakref.WeakKeyDictionary()
)


def look_at(code: types.CodeType) -> Look:
    """What a code says; looked at once."""
    found = _looks.get(code)
    if found is None:
        found = _looks[code] = Look(code)
    return found


def needs_twin(function: object, args: Iterable[Any] = ()) -> bool:
    """Whether a function is traced by a twin, when it is called with these arguments."""
    if reason_for_twin(function):
        return True
    return any(
        reason_for_twin(x) if type(x) in _FUNCTIONS else type(x) is list and _is_of_numbers(x)
        for x in args
    )


def _is_of_numbers(value: list[Any]) -> bool:
    """Whether a list is one of traced numbers, in lists or not, which stands for an array."""
    return bool(value) and all(
        _is_of_numbers(x) if type(x) is list else isinstance(x, Tracer) and not x.shape
        for x in value[:_MANY]
    )


_FUNCTIONS = frozenset({types.FunctionType, types.MethodType, functools.partial})


class _Seen:
    """What was looked at, by identity.

    Attributes:
      done: whether nothing was found for which it needs a twin; not yet while it is looked at, or
        where the look came back to what is looked at.
      returns: how often the look came back to what is not done.
    """

    def __init__(self) -> None:
        self.done: dict[int, bool] = {}
        self.returns = 0


def reason_for_twin(function: object) -> str:
    """The first thing found for which a function needs a twin; empty if it needs none.

    A function that is written where it is used (``grad(lambda x: ...)``) is another one every time,
    of the same code: what was found counts as long as the names stand for the same.
    """
    if type(function) is not types.FunctionType or function.__closure__ or function.__dict__:
        return _reason(function, _Seen())
    own = _reasons.get(function)
    if own is not None:
        return own
    code, names = function.__code__, _stand_for(function)
    known = _reasons_of_codes.get(code)
    if known is not None and known[0] == names:
        return known[1]
    reason = _reason(function, _Seen())
    if names is not None:
        _reasons_of_codes[code] = names, reason
    return reason


_reasons_of_codes: weakref.WeakKeyDictionary[types.CodeType, tuple[list[Any], str]] = listed(
    "reasons for twins of codes", weakref.WeakKeyDictionary()
)


def _stand_for(function: types.FunctionType) -> list[Any] | None:
    """What a function's names stand for; ``None`` where that may change though they stay."""
    code, space = function.__code__, function.__globals__
    found: list[Any] = [space.get("__name__"), code.co_filename]
    for name in look_at(code).names:
        value = space.get(name, MISSING)
        kind = type(value)
        if kind is types.FunctionType:
            found.append(weakref.ref(value))
        elif kind in _ALIKE:
            found.append(kind)
        elif value is MISSING or (kind is types.ModuleType and not is_user_module(value.__name__)):
            found.append(value)
        else:
            return None
    return found


_ALIKE = frozenset({np.ndarray, bool, int, float, complex, str, type(None)})
"""Types of which no value needs a twin, or all do."""


def _reason(value: object, seen: _Seen) -> str:
    """Why what a name stands for needs a twin, or calls what needs one."""
    key: Any = value if type(value) in _REMEMBERED else None
    try:
        found = None if key is None else _reasons.get(key)
    except TypeError:  # it cannot be hashed, or referred to
        found = key = None
    if found is not None:
        return found
    is_done = seen.done.get(id(value))
    if is_done is not None:
        seen.returns += not is_done
        return ""
    before = seen.returns
    seen.done[id(value)] = False
    found = _looked_for(value, seen)
    if found or seen.returns == before:
        seen.done[id(value)] = True
        if key is not None:
            _reasons[key] = found
    return found


_REMEMBERED = _FUNCTIONS | {type}


def _looked_for(value: Any, seen: _Seen) -> str:
    kind = type(value)
    if kind is types.FunctionType:
        return _of_function(value, seen)
    if kind is types.MethodType:
        return _reason(value.__func__, seen) or _reason(value.__self__, seen)
    if kind is functools.partial:
        return _of_partial(value, seen)
    if isinstance(value, type):
        return _of_class(value, seen) if is_user_module(value.__module__) else ""
    if isinstance(value, types.ModuleType):
        return value.__name__ if is_user_module(value.__name__) else ""
    if kind is types.SimpleNamespace:
        value, kind = value.__dict__, dict
    if issubclass(kind, _CONTAINERS) and is_user_module(kind.__module__):
        reason = _reason(kind, seen)
        if reason:
            return reason
    if issubclass(kind, dict):
        value = dict.values(value)
    if issubclass(kind, _CONTAINERS):
        held = itertools.islice(value, _MANY)
        return _first((x for x in held if callable(x) or isinstance(x, _CONTAINERS)), seen)
    if kind is np.vectorize or kind.__module__.partition(".")[0] in ("scipy", "numba"):
        return f"an object of {kind.__module__}.{kind.__qualname__}"
    wrapped = attribute(value, "__wrapped__", seen)
    if wrapped is not seen:
        return _reason(wrapped, seen)
    if isinstance(value, (Tracer, np.ndarray)) or not is_user_module(kind.__module__):
        return ""
    return _reason(kind, seen)


_CONTAINERS = (dict, list, tuple, set, frozenset, deque, types.SimpleNamespace)
_MANY = 100
"""Items of a list or dictionary that are looked at."""


def _first(values: Iterable[Any], seen: _Seen) -> str:
    return next(filter(None, (_reason(value, seen) for value in values)), "")


def _of_partial(value: functools.partial[Any], seen: _Seen) -> str:
    """Of a function some of whose arguments are known."""
    function, given = value.func, {}
    if type(function) is types.FunctionType and is_user_function(function):
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = {**dict(zip(names, value.args, strict=False)), **value.keywords}
        reason = _of_function(function, seen, given)
    else:
        reason = _reason(function, seen)
    return reason or _first((*value.args, *value.keywords.values()), seen)


def _of_class(cls: type, seen: _Seen) -> str:
    for base in cls.__mro__:
        if not is_user_module(base.__module__):
            continue
        for member in base.__dict__.values():
            if type(member) is functools.singledispatchmethod:
                return "a method of functools.singledispatchmethod"
            inner = getattr(member, "__func__", member)
            inner = getattr(inner, "fget", None) or getattr(inner, "func", None) or inner
            if type(inner) is types.FunctionType and (reason := _of_function(inner, seen)):
                return reason
    return ""


def _is_generated(function: types.FunctionType) -> bool:
    """Whether the module ``dataclasses`` wrote a method: it does nothing but keep its fields."""
    return function.__code__.co_qualname.startswith("__create_fn__.")


def _of_function(
    function: types.FunctionType, seen: _Seen, given: Mapping[str, Any] = _NONE
) -> str:
    if not is_user_function(function):
        if is_single_dispatch(function):
            return "a function of functools.singledispatch"
        if function.__globals__.get("__name__", "").startswith("scipy."):
            return f"{function.__module__}.{function.__qualname__}"
        wrapped = getattr(function, "__wrapped__", None)
        return "" if wrapped is None else _reason(wrapped, seen)
    if _is_generated(function):
        return ""
    return _of_code(function.__code__, names_in(function), seen, given)


_dispatcher: Any = functools.singledispatch(lambda value: None)


def is_single_dispatch(function: types.FunctionType) -> bool:
    """Whether ``functools.singledispatch`` made a function."""
    return function.__code__ is _dispatcher.__code__


def names_in(function: types.FunctionType) -> Mapping[str, Any]:
    """What the names in a function's code stand for: its closure's, then those of its module."""
    cells: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            continue
    return ChainMap(cells, function.__globals__)


def _of_code(
    code: types.CodeType,
    names: Mapping[str, Any],
    seen: _Seen,
    given: Mapping[str, Any],
    outer: frozenset[str] = frozenset(),
) -> str:
    """Why code needs a twin.

    Args:
      code: of a function, or of one inside.
      names: what global names and those of its closure stand for.
      seen: identities of what was looked at.
      given: values of arguments that are known.
      outer: variables of the functions around it.
    """
    look = look_at(code)
    if look.reason:
        return f"{look.reason} of {code.co_qualname}"
    cells = outer.union(code.co_cellvars)
    known = {name: value for name, value in given.items() if name not in look.stored}
    for chain, line in (*look.of_arguments.items(), *look.chains.items()):
        if chain in look.of_arguments or chain[0] in cells:
            reason = _of_known(chain, known, look, seen)
        else:
            reason = _of_chain(chain, look, names, seen)
        if reason:
            return f"{reason} (line {line}) of {code.co_qualname}" if "(" not in reason else reason
    kept = {
        name: _kept(chain, known if of_argument or chain[0] in cells else names)
        for name, (chain, of_argument) in look.kept.items()
    }
    known |= {name: value for name, value in kept.items() if name not in arguments_of(code)}
    inner = [(c, {n: v for n, v in known.items() if n in c.co_freevars}) for c in look.codes]
    return next(filter(None, (_of_code(c, names, seen, own, cells) for c, own in inner)), "")


def _kept(chain: tuple[str, ...], names: Mapping[str, Any]) -> Any:
    """What a name with attributes stood for when it was assigned to a variable, if known."""
    value = names.get(chain[0], MISSING)
    for name in chain[1:]:
        value = _field(value, name)
    return value


def _field(value: object, name: str) -> Any:
    """An attribute that is no property."""
    is_field = type(getattr(type(value), name, None)) not in _COMPUTED
    return getattr(value, name, MISSING) if is_field else MISSING


def _of_known(chain: tuple[str, ...], known: Mapping[str, Any], look: Look, seen: _Seen) -> str:
    """Why an attribute of a local variable needs a twin, which it does if it is not known."""
    if all(map(_is_of_arrays, chain[1:])):
        return ""
    value = known.get(chain[0], MISSING)
    for name in chain[1:]:
        if not isinstance(value, types.ModuleType) and _is_of_arrays(name):
            break
        value = _field(value, name)
        if value is MISSING:
            return f".{name}"
        if isinstance(value, types.ModuleType) and not is_user_module(value.__name__):
            continue
        reason = chain[-1] if _of_library(value, look) else _reason(value, seen)
        if reason:
            return reason
    return ""


_COMPUTED = frozenset({property, functools.cached_property})
"""Attributes that are not asked for before the function is called."""


def meaning(chain: tuple[str, ...], names: Mapping[str, Any]) -> tuple[Any, int]:
    """What a name stands for with those of its attributes that modules have, and how many."""
    value = names.get(chain[0], MISSING)
    n = 1
    while n < len(chain) and isinstance(value, types.ModuleType):
        value = getattr(value, chain[n], MISSING)
        n += 1
    return value, n


def _of_chain(chain: tuple[str, ...], look: Look, names: Mapping[str, Any], seen: _Seen) -> str:
    value, n = meaning(chain, names)
    if value is MISSING:
        is_twin = n == 1 and hasattr(builtins, chain[0]) and chain[0] in _BUILTINS | _CALLED
        return chain[0] if is_twin else ""
    if isinstance(value, np.ndarray) and not all(map(_is_of_arrays, chain[n:])):
        return ".".join(chain)
    return ".".join(chain[:n]) if _of_library(value, look) else _reason(value, seen)


def _of_library(value: object, look: Look) -> bool:
    """Whether a function of a library is another one in twins."""
    if isinstance(value, np.ufunc):
        return look.has_lists
    module = attribute(value, "__module__") or type(value).__module__
    top = module.partition(".")[0]
    if top in _NUMBERS or top == "scipy":
        return callable(value)
    if top == "numpy" or type(value).__module__ == "numpy":
        name = attribute(value, "__name__")
        if name is None:  # np.r_, np.c_, an array
            return not isinstance(value, (np.ndarray, np.generic, np.dtype))
        if isinstance(value, type) and issubclass(value, np.generic):
            return True
        return look.has_lists or name in MAKES_ARRAYS
    return False
