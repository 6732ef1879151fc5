"""Programs of a function that is jitted anew again and again: ``ft.jit(f)(x)`` within a loop.

Here: the table of programs that belongs to a function, whichever ``jit`` staged them, and what of
the function's surroundings they depend on. Not here: the cache of a jitted function
(``jitted.jit``), which is asked first.

The table knows functions by identity and holds them weakly. Its programs are right as long as what
the function refers to is the same: numbers and texts by value, arrays by identity and contents,
modules and classes by identity, functions by what they refer to in turn. A function that refers to
a large array that may change, a list, a dict, an object of a class that is no library's, or another
thing of which that cannot be told shares nothing.

Layer: ``jitted``.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Collection, Hashable, Iterator, Sequence
from threading import Lock
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from functrans.core.caching import Recent, listed
from functrans.passes.simplify import exact_key
from functrans.passes.staging import may_change

_MAX_PROGRAMS = 16
_MAX_VALUES = 1000
_MAX_BYTES = 4096
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, np.ufunc)
_LIBRARIES = frozenset({"functrans", "numpy", "scipy"}) | sys.stdlib_module_names


class _Same:
    """An object, held weakly, that is equal to itself only."""

    __slots__ = ("_reference",)

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)

    def __eq__(self, other: object) -> bool:
        own = self._reference()
        return isinstance(other, _Same) and own is not None and other._reference() is own

    def __hash__(self) -> int:
        return hash(type(self._reference()))


class _Shared:
    """The programs of a function, by the options of ``jit`` and the kind of call."""

    __slots__ = ("programs", "references")

    def __init__(self, references: Hashable) -> None:
        self.references = references
        self.programs: Recent[Hashable, Any] = Recent(_MAX_PROGRAMS)


_table: weakref.WeakKeyDictionary[FunctionType, _Shared] = listed(
    "functions with programs", weakref.WeakKeyDictionary()
)
_lock = Lock()


def find(fun: Any, key: Hashable) -> Any:
    """A program of a function that another ``jit`` of it staged, or ``None``."""
    if type(fun) is not FunctionType:
        return None
    shared = _table.get(fun)
    if shared is None:
        return None
    references = _references(fun)
    with _lock:
        if references is None or references != shared.references:
            _table.pop(fun, None)
            return None
        return shared.programs.used(key)


def keep(fun: Any, key: Hashable, program: Any) -> None:
    """Let other ``jit`` of a function find a program; the least used ones are forgotten."""
    references = _references(fun) if type(fun) is FunctionType else None
    if references is None:
        return
    with _lock:
        shared = _table.get(fun)
        if shared is None or shared.references != references:
            shared = _table[fun] = _Shared(references)
        shared.programs[key] = program


def forget(fun: Any) -> None:
    """Forget the programs of a function."""
    with _lock:
        if type(fun) is FunctionType:
            _table.pop(fun, None)


def _references(fun: FunctionType) -> tuple[Hashable, ...] | None:
    """What a function refers to, comparable; ``None`` where that cannot be told."""
    found: list[Hashable] = []
    pending: list[tuple[Any, Sequence[str]]] = [(fun, ())]
    seen: set[int] = set()
    while pending:
        value, names = pending.pop()
        if len(found) > _MAX_VALUES:
            return None
        if isinstance(value, _ATOMS):
            found.append(exact_key(value))
        elif type(value) is tuple:
            found.append(len(value))
            pending.extend([(item, names) for item in value])
        elif id(value) not in seen:
            seen.add(id(value))
            parts = _parts(value, names)
            if parts is None:
                return None
            key, inner, inner_names = parts
            found.append(key)
            pending.extend([(item, inner_names) for item in inner])
    return tuple(found)


def _parts(value: Any, names: Sequence[str]) -> tuple[Hashable, list[Any], Sequence[str]] | None:
    """What stands for a value that code with some names refers to, and what it refers to in turn.

    ``None`` for a container, and for an object of a user's class: their contents may change.
    """
    cls = type(value)
    if cls is ModuleType:
        own = vars(value)
        is_own = not _is_library(value.__name__)
        return _Same(value), [own[name] for name in names if is_own and name in own], names
    if cls is FunctionType and not _is_library(value.__module__):
        return value.__code__, *_surroundings(value)
    if cls is functools.partial:
        return "partial", [value.func, value.args, *value.keywords, *value.keywords.values()], names
    if cls is np.ndarray:  # which the function may read when it is staged
        if value.nbytes > _MAX_BYTES and may_change(value):
            return None
        contents = value.tobytes() if may_change(value) else b""
        return (_Same(value), value.shape, value.dtype, contents), [], names
    if isinstance(value, type):
        return _Same(value), [], names
    is_open = isinstance(value, Collection) or (hasattr(value, "__dict__") and not callable(value))
    if is_open or not _is_library(cls.__module__):
        return None
    wrapped = getattr(value, "__wrapped__", None)
    try:
        return _Same(value), [] if wrapped is None else [wrapped], names
    except TypeError:
        return None


def _is_library(module: str) -> bool:
    """Whether values of a module stay what they are: libraries do not rebind their globals."""
    return str(module).partition(".")[0] in _LIBRARIES


def _surroundings(function: FunctionType) -> tuple[list[Any], Sequence[str]]:
    """Default arguments, closed over values and globals of a function; names in its code."""
    named = function.__kwdefaults__ or {}
    found = [function.__defaults__, *named, *named.values()]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not bound yet
            found.append(None)
    own = function.__globals__
    names = tuple(_names(function.__code__))
    for name in names:
        if name in own:
            found += (name, own[name])
    return found, names


def _names(code: CodeType) -> Iterator[str]:
    """The names that a piece of code, and code within it, looks up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
