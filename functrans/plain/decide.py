"""Which functions need a twin, by the names in their code.

A function needs none if all that it calls takes traced values as it is: operators, ufuncs and
those functions of NumPy that dispatch, methods of arrays, functions of functrans, and functions of
its own module of which the same is true. So code that could be traced before is traced as before,
at no cost but this look, once for a function.

Here: the look. Not here: what is replaced (``plain.libraries``, ``plain.numbers``).

Layer: ``plain`` (its first module: it imports nothing of it).
"""

from __future__ import annotations

import builtins
import dis
import functools
import types
import weakref
from typing import Any

import numpy as np

from functrans.plain.users import is_user_module
from functrans.trace import Tracer

_BUILTINS = frozenset({"max", "min", "isinstance", "issubclass", "map", "globals"})
"""Functions of Python that have a twin."""

_CALLED = frozenset({"float", "complex"})
"""Types of Python that have one where they are called."""

_NUMBERS = frozenset({"math", "cmath", "statistics"})

_MAKES_ARRAYS = frozenset(
    {
        "apply_along_axis", "apply_over_axes", "arange", "array", "asanyarray", "asarray",
        "ascontiguousarray", "asfarray", "asfortranarray", "block", "c_", "copy", "copyto", "diag",
        "diagflat", "empty", "empty_like", "eye", "fill_diagonal", "frombuffer", "fromfunction",
        "fromiter", "frompyfunc", "full", "full_like", "geomspace", "identity", "isscalar",
        "linspace", "logspace", "meshgrid", "mgrid", "ndarray", "nditer", "ogrid", "ones",
        "ones_like", "piecewise", "place", "poly1d", "put", "put_along_axis", "putmask", "r_",
        "require", "tri", "vander", "vectorize", "zeros", "zeros_like",
    }
)  # fmt: skip
"""Names of NumPy that do not dispatch on traced values, or make arrays that code may fill."""

_WRITES = frozenset({"STORE_SUBSCR", "IMPORT_NAME"})
_LISTS = frozenset({"BUILD_LIST", "LIST_APPEND", "LIST_EXTEND"})
_METHODS = frozenset({"copy", "item", "tolist"})
"""Methods of arrays whose meaning is another one in twins."""


class _Look:
    """What the code of a function says, without what its names stand for.

    Attributes:
      chains: names with their attributes: ``("np", "linalg", "solve")``.
      is_sure: whether what it does needs a twin whatever the names are.
      has_lists: whether it makes lists.
      codes: the code of functions inside.
    """

    __slots__ = ("chains", "codes", "has_lists", "is_sure")

    def __init__(self, code: types.CodeType) -> None:
        chains: dict[tuple[str, ...], None] = {}
        chain: list[str] = []
        self.is_sure = self.has_lists = False
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in ("LOAD_ATTR", "LOAD_METHOD"):
                if chain:
                    chain.append(instruction.argval)
                elif not _is_of_arrays(instruction.argval):
                    self.is_sure = True
                continue
            if chain:
                chains[tuple(chain)] = None
                chain = []
            if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
                if instruction.argval in _CALLED and not (instruction.arg or 0) & 1:
                    continue  # the type itself
                chain = [instruction.argval]
            self.is_sure |= name in _WRITES
            self.has_lists |= name in _LISTS
        if chain:
            chains[tuple(chain)] = None
        self.chains = list(chains)
        self.codes = [c for c in code.co_consts if isinstance(c, types.CodeType)]


@functools.lru_cache(maxsize=1)
def _names_of_arrays() -> frozenset[str]:
    return frozenset(dir(np.ndarray)) - _METHODS | {"at"}


def _is_of_arrays(name: str) -> bool:
    """Whether an attribute is one that arrays have, and that means the same of traced ones."""
    return name in _names_of_arrays()


_looks: weakref.WeakKeyDictionary[types.CodeType, _Look] = weakref.WeakKeyDictionary()
_decided: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def needs_twin(function: Any) -> bool:
    """Whether a function is traced by a twin."""
    try:
        found = _decided.get(function)
    except TypeError:  # it cannot be hashed, or referred to
        return _decide(function, set())
    if found is None:
        found = _decided[function] = _decide(function, set())
    return found


def _decide(value: Any, seen: set[int]) -> bool:
    """Whether what a name stands for needs a twin, or calls what needs one."""
    if id(value) in seen:
        return False
    seen.add(id(value))
    kind = type(value)
    if kind is types.FunctionType:
        return _of_function(value, seen)
    if kind is types.MethodType:
        return _decide(value.__func__, seen) or _decide(value.__self__, seen)
    if kind is functools.partial:
        parts = (value.func, *value.args, *value.keywords.values())
        return any(_decide(part, seen) for part in parts)
    if isinstance(value, type):
        return is_user_module(value.__module__) and _of_class(value, seen)
    if isinstance(value, types.ModuleType):
        return is_user_module(value.__name__)
    if kind in (list, tuple):
        return any(callable(item) and _decide(item, seen) for item in value[:100])
    if kind is dict:
        return any(callable(item) and _decide(item, seen) for item in list(value.values())[:100])
    if kind is np.vectorize or kind.__module__.partition(".")[0] in ("scipy", "numba"):
        return True
    if hasattr(value, "__wrapped__"):
        return _decide(value.__wrapped__, seen)
    if isinstance(value, (Tracer, np.ndarray)) or not is_user_module(kind.__module__):
        return False
    return _decide(kind, seen)


def _of_class(cls: type, seen: set[int]) -> bool:
    for base in cls.__mro__:
        if not is_user_module(base.__module__):
            continue
        for member in base.__dict__.values():
            inner = getattr(member, "__func__", member)
            inner = getattr(inner, "fget", None) or getattr(inner, "func", None) or inner
            if type(inner) is types.FunctionType and _of_function(inner, seen):
                return True
    return False


def _of_function(function: types.FunctionType, seen: set[int]) -> bool:
    if not is_user_module(function.__globals__.get("__name__")):
        wrapped = getattr(function, "__wrapped__", None)
        return wrapped is not None and _decide(wrapped, seen)
    code = function.__code__
    cells: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            continue
    return _of_code(code, cells, function.__globals__, seen)


def _of_code(
    code: types.CodeType, cells: dict[str, Any], names: dict[str, Any], seen: set[int]
) -> bool:
    look = _looks.get(code)
    if look is None:
        look = _looks[code] = _Look(code)
    if look.is_sure:
        return True
    if any(_of_chain(chain, look, cells, names, seen) for chain in look.chains):
        return True
    return any(_of_code(inner, cells, names, seen) for inner in look.codes)


_MISSING = object()


def _of_chain(
    chain: tuple[str, ...],
    look: _Look,
    cells: dict[str, Any],
    names: dict[str, Any],
    seen: set[int],
) -> bool:
    first = chain[0]
    value = cells.get(first, names.get(first, _MISSING))
    if value is _MISSING:
        is_builtin = hasattr(builtins, first)
        return (first in _BUILTINS or first in _CALLED) if is_builtin else False
    for name in chain[1:]:
        if isinstance(value, types.ModuleType):
            if value.__name__ in _NUMBERS:
                return True
            value = getattr(value, name, _MISSING)
        elif isinstance(value, np.ndarray):
            return not _is_of_arrays(name)
        else:
            break
    if value is _MISSING:
        return False
    return _of_library(value, look) or _decide(value, seen)


def _of_library(value: Any, look: _Look) -> bool:
    """Whether a function of a library is another one in twins."""
    if isinstance(value, np.ufunc):
        return look.has_lists
    module = getattr(value, "__module__", None) or type(value).__module__
    top = module.partition(".")[0]
    if top in _NUMBERS or top == "scipy":
        return True
    if top == "numpy" or type(value).__module__ == "numpy":
        name = getattr(value, "__name__", None)
        if name is None:  # np.r_, np.c_, an array
            return not isinstance(value, (np.ndarray, np.generic, np.dtype))
        if isinstance(value, type) and issubclass(value, np.generic):
            return True
        return look.has_lists or name in _MAKES_ARRAYS
    return False
