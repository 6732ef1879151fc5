"""Programs of a function that is jitted anew again and again: ``ft.jit(f)(x)`` within a loop.

Here: the table of programs that belongs to a function, whichever ``jit`` staged them, and what of
the function's surroundings they depend on. Not here: the cache of a jitted function
(``jitted.jit``), which is asked first.

Programs belong to the code of the function, so that a lambda, a method or a partial that is
written anew finds them; those that were used last are kept, arrays of the user's are held weakly. A
program that would keep something else of the user's alive belongs to the function, which is held
weakly.

A program is right as long as what the function refers to is the same: numbers and texts by value,
arrays by identity and contents, modules by identity, containers by what is in them, objects by
identity and attributes, classes by their attributes, functions by what they refer to in turn.
Nothing is shared by a function that refers to more than a megabyte of arrays that may change, or
to an object that holds what Python does not show, nor by one that changes what it refers to or
draws numbers.

Layer: ``jitted``.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import numpy as np

from functrans.core.caching import Recent, listed
from functrans.core.transformed import Transformed, Wrapper
from functrans.jitted.hidden_state import global_generator
from functrans.passes.programs import holds_data
from functrans.passes.simplify import exact_key
from functrans.passes.staging import may_change

_MAX_PROGRAMS = 512
_MAX_PER_FUNCTION = 16
_MAX_VALUES = 1000
_MAX_KEPT_BYTES = 4096
_MAX_BYTES = 1 << 20
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, np.ufunc)
_LIBRARIES = frozenset({"functrans", "numpy", "scipy"}) | sys.stdlib_module_names


class _Same:
    """An object, held weakly, that is equal to itself only."""

    __slots__ = ("_reference",)

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)

    @property
    def value(self) -> Any:
        """The object; ``None`` if it is gone."""
        return self._reference()

    def __eq__(self, other: object) -> bool:
        own = self._reference()
        return isinstance(other, _Same) and own is not None and other._reference() is own

    def __hash__(self) -> int:
        return hash(_Same)


class _Contents(NamedTuple):
    """An array, by identity and contents."""

    array: _Same
    shape: tuple[int, ...]
    dtype: np.dtype
    contents: bytes


_of_code: Recent[Hashable, tuple[Any, Any, tuple[Any, ...]]] = listed(
    "programs by code", Recent(_MAX_PROGRAMS)
)
"""By identity of code, key and references: the code, a program, and what stands for its arrays."""
_of_function: weakref.WeakKeyDictionary[FunctionType, Recent[Hashable, Any]] = listed(
    "functions with programs", weakref.WeakKeyDictionary()
)
_lock = Lock()


def find(fun: object, key: Hashable) -> tuple[Any, Any]:
    """A program of a function that another ``jit`` of it staged, or ``None``.

    Returns:
      The program; without one, what the function refers to and where NumPy's generator stands, for
      :func:`keep`, or ``None`` if that cannot be told.
    """
    code = _code(fun)
    references = None if code is None else _references(fun)
    if references is None:
        return None, None
    entry = _of_code.used((id(code), key, references))
    if entry is not None:
        _, program, arrays = entry
        captured = tuple([array() if type(array) is weakref.ref else array for array in arrays])
        if all(array is not None for array in captured):
            return (replace(program, captured=captured) if captured else program), None
    elif type(fun) is FunctionType:
        with _lock:
            programs = _of_function.get(fun)
        program = None if programs is None else programs.used((key, references))
        if program is not None:
            return program, None
    return None, (references, global_generator())


def keep(fun: object, key: Hashable, references: Any, program: Any) -> None:
    """Let other ``jit`` of a function find a program; the least used ones are forgotten.

    Args:
      fun: the function.
      key: the kind of call.
      references: what :func:`find` told before the program was staged.
      program: the program, or the paths of a function that is specialised.
    """
    if references is None or (_references(fun), global_generator()) != references:
        return
    references, _ = references
    arrays = _arrays_of(program, references)
    if arrays is not None:
        code = _code(fun)
        kept = replace(program, captured=()) if arrays else program
        _of_code[id(code), key, references] = code, kept, arrays
    elif type(fun) is FunctionType:
        with _lock:
            programs = _of_function.setdefault(fun, Recent(_MAX_PER_FUNCTION))
        programs[key, references] = program


def _arrays_of(program: Any, references: tuple[Hashable, ...]) -> tuple[Any, ...] | None:
    """What stands for the arrays of a program: weak references to those of the user's.

    ``None`` if the program would keep something of the user's alive all the same.
    """
    jaxpr = getattr(program, "jaxpr", None)
    if jaxpr is None or not holds_data(jaxpr):
        return None
    theirs = {id(part.array.value) for part in references if type(part) is _Contents}
    found: list[Any] = []
    for array in program.captured:
        if id(array) in theirs and may_change(array):
            found.append(weakref.ref(array))
            continue
        found.append(array)  # computed while the function was staged
        while isinstance(array, np.ndarray):
            if id(array) in theirs:
                return None
            array = array.base
        if array is not None and not isinstance(array, np.generic):
            return None
    return tuple(found)


def forget(fun: Any) -> None:
    """Forget the programs of a function."""
    code = _code(fun)
    for key, (owner, *_) in list(_of_code.items()):
        if owner is code:
            _of_code.pop(key, None)
    if type(fun) is FunctionType:
        with _lock:
            _of_function.pop(fun, None)


def _code(fun: Any) -> CodeType | np.ufunc | None:
    """The code of a function, method or object that is called, within what was made of it."""
    while True:
        cls = type(fun)
        if cls is FunctionType:
            return fun.__code__
        if cls is np.ufunc:
            return fun
        if cls is MethodType:
            fun = fun.__func__
        elif cls is functools.partial:
            fun = fun.func
        elif cls is Transformed:
            (fun,) = fun.parts()
        elif isinstance(fun, Wrapper) or _is_library(cls.__module__):
            return None
        else:
            fun = next((vars(c)["__call__"] for c in cls.__mro__ if "__call__" in vars(c)), None)


def _references(fun: object) -> tuple[Hashable, ...] | None:
    """What a function refers to, comparable; ``None`` where that cannot be told."""
    found: list[Hashable] = []
    pending: list[tuple[Any, Sequence[str]]] = [(fun, ())]
    seen: dict[int, Any] = {}
    n_bytes = 0
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
            seen[id(value)] = value  # keeps it alive, so that its id stays its own
            try:
                parts = _parts(value, names)
            except TypeError:  # it cannot be held weakly
                return None
            if parts is None:
                return None
            key, inner, inner_names = parts
            found.append(key)
            if type(key) is _Contents and key.contents:
                n_bytes += value.nbytes
                if n_bytes > _MAX_BYTES:
                    return None
            pending.extend([(item, inner_names) for item in inner])
        else:
            found.append(list(seen).index(id(value)))
    return tuple(found)


_Parts = tuple[Hashable, list[Any], Sequence[str]]


def _parts(value: Any, names: Sequence[str]) -> _Parts | None:
    """What stands for a value that code with some names refers to, and what it refers to in turn.

    ``None`` where that cannot be told.
    """
    cls = type(value)
    if cls is ModuleType:
        own = vars(value)
        is_own = not _is_library(value.__name__)
        return _Same(value), [own[name] for name in names if is_own and name in own], names
    if cls is FunctionType and not _is_library(value.__module__):
        return _Same(value.__code__), *_surroundings(value)
    if cls is np.ndarray:  # which the function may read when it is staged
        return _array_key(value), [], names
    if cls in _CONTAINERS:
        return _container(value, names)
    if cls is MethodType:
        return "method", [value.__func__, value.__self__], names
    if cls is functools.partial:
        return "partial", [value.func, value.args, *value.keywords, *value.keywords.values()], names
    if cls is Transformed:
        options = value._options
        own = [*value._arguments, *options, *options.values()]
        return (_Same(value._transform), len(own)), own, names
    if cls is SimpleNamespace:
        return (_Same(value), len(vars(value))), [*vars(value), *vars(value).values()], names
    if isinstance(value, type):
        return (_Same(value), [], names) if _is_library(value.__module__) else _class(value)
    if _is_library(cls.__module__):
        return _of_library(value, names)
    return _object(value)


def _of_library(value: Any, names: Sequence[str]) -> _Parts | None:
    """An object of a library's class; ``None`` for one whose state Python does not show."""
    cls = type(value)
    if isinstance(value, (Collection, Iterator)) or cls.__module__.startswith("numpy.random"):
        return None
    if cls is ContextVar:
        return value.name, [value.get(None)], names
    if cls is BuiltinFunctionType and type(value.__self__) not in (ModuleType, type(None)):
        return value.__name__, [value.__self__], names
    if isinstance(value, Wrapper):
        return _Same(value), list(value.parts()), names
    own = getattr(value, "__dict__", {})
    if own and not callable(value) and cls.__module__ != "logging":
        return None
    return _Same(value), list(own.values()) if callable(value) else [], names


def _array_key(value: np.ndarray) -> _Contents:
    """What stands for an array: its identity, and its contents if they may change.

    Raises:
      TypeError: there are too many of them.
    """
    contents: bytes = b""
    if may_change(value):
        if value.nbytes > _MAX_BYTES or value.dtype.hasobject:
            raise TypeError
        contents = value.tobytes()
        if len(contents) > _MAX_KEPT_BYTES:
            contents = hashlib.sha256(contents).digest()  # which processors have
    return _Contents(_Same(value), value.shape, value.dtype, contents)


_CONTAINERS = frozenset({list, dict, set, frozenset, OrderedDict, deque, range, slice})


def _container(value: Any, names: Sequence[str]) -> _Parts | None:
    cls = type(value)
    if cls is range or cls is slice:
        return repr(value), [], names
    key = (cls, len(value))
    if cls is dict or cls is OrderedDict:
        return key, [*value, *value.values()], names
    if cls is set or cls is frozenset:
        if not all(isinstance(item, _ATOMS) for item in value):
            return None
        return (*key, frozenset(map(exact_key, value))), [], names
    return key, list(value), names


# classes and objects ----------------------------------------------------------------------------

_SKIPPED = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__qualname__",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__slots__",
    "__orig_bases__", "__parameters__", "__abstractmethods__", "_abc_impl", "__firstlineno__",
    "__static_attributes__", "__attrs_attrs__", "__attrs_own_setattr__", "__attrs_props__",
    "__annotate__", "__annotate_func__", "__annotations_cache__",
})  # fmt: skip
"""Attributes of classes that say nothing of what their objects do."""
_PLAIN_BASES = frozenset({"abc", "typing", "enum", "contextlib"})
"""Modules of Python whose classes are written in Python and keep what they know in attributes."""
_HIDDEN = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType)
"""What classes consist of that are not written in Python."""


def _class(cls: type) -> _Parts | None:
    """A class that is no library's, by its attributes and those of its bases."""
    found: list[Any] = []
    is_enum = isinstance(cls, enum.EnumMeta)
    for base in cls.__mro__:
        if _is_library(base.__module__):
            continue
        for name, value in vars(base).items():
            if name in _SKIPPED or isinstance(value, MemberDescriptorType):
                continue
            if is_enum and (name[0] == "_" or isinstance(value, cls)):
                continue  # its members do not change
            if isinstance(value, _HIDDEN):
                return None
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            elif isinstance(value, property):
                value = (value.fget, value.fset, value.fdel)
            elif isinstance(value, functools.cached_property):
                value = value.func
            found += (name, value)
    return (_Same(cls), len(found)), found, ()


def _object(value: object) -> _Parts | None:
    """An object of a class that is no library's, by identity, class and attributes."""
    cls = type(value)
    for base in cls.__mro__[:-1]:
        if _is_library(base.__module__) and base.__module__ not in _PLAIN_BASES:
            return None
    own = dict(getattr(value, "__dict__", {}))
    for base in cls.__mro__:
        for name, slot in vars(base).items():
            if isinstance(slot, MemberDescriptorType):
                own[name] = getattr(value, name, None)
    return (_Same(value), len(own)), [cls, *own, *own.values()], ()


def _is_library(module: str) -> bool:
    """Whether values of a module stay what they are: libraries do not rebind their globals."""
    return str(module).partition(".")[0] in _LIBRARIES


def _surroundings(function: FunctionType) -> tuple[list[Any], Sequence[str]]:
    """Default arguments, attributes, closed over values and globals of a function; its names."""
    named = {**(function.__kwdefaults__ or {}), **vars(function)}
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
