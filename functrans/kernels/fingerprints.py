"""What a function that numba compiles consists of, as a name for what it was compiled to.

Here: ``fingerprint``. Not here: what is kept under it (``kernels.loops``).

numba names what it keeps by the file of a function, which does not change when a helper in another
file does. A fingerprint is made of all that numba reads: byte code, constants, defaults, closures,
and the globals that are named, through functions, decorated functions and the user's modules.
Modules of NumPy, numba and of Python itself count by their versions. A function that refers to
something whose contents cannot be told has no fingerprint, and is compiled in each process.

Layer: ``kernels``.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_KNOWN = ("numpy", "numba", "llvmlite", *sys.stdlib_module_names)
"""Packages whose contents follow from their versions."""
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), slice, range)


class _UnknownError(Exception):
    """Something has contents that cannot be told."""


def fingerprint(function: Callable[..., Any]) -> str | None:
    """A digest of all that a function's code depends on; ``None`` if that cannot be told.

    Args:
      function: a Python function, or one that numba has decorated.
    """
    digest = hashlib.sha256()
    try:
        for part in _parts(function, (), set()):
            digest.update(part.encode())
            digest.update(b"\0")
    except (_UnknownError, RecursionError):
        return None
    return digest.hexdigest()


def _is_known(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _KNOWN


def _parts(value: Any, names: Iterable[str], seen: set[Any]) -> Iterator[str]:
    """Texts that say what a value is.

    Args:
      value: the value.
      names: names that the code which refers to it mentions.
      seen: functions, and attributes of modules, that were looked at.
    """
    yield type(value).__qualname__
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, (tuple, list)):
        yield str(len(value))
        for item in value:
            yield from _parts(item, names, seen)
    elif isinstance(value, dict):
        yield from _parts(list(value.items()), names, seen)
    elif isinstance(value, frozenset):
        yield repr(sorted(map(repr, value)))
    elif isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.hasobject:
            raise _UnknownError
        yield f"{value.dtype!r} {value.shape} {np.isfortran(np.asarray(value))}"
        yield hashlib.sha256(np.asarray(value).tobytes()).hexdigest()
    elif isinstance(value, (np.dtype, np.ufunc)):
        yield repr(value)
    elif isinstance(value, CodeType):
        yield from _code_parts(value, seen)
    elif isinstance(value, ModuleType):
        yield from _module_parts(value, names, seen)
    elif isinstance(value, type):
        is_plain = issubclass(value, BaseException) or hasattr(value, "_fields")
        if not _is_known(value.__module__) and (value.__module__ == "__main__" or not is_plain):
            raise _UnknownError
        yield f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    elif isinstance(value, BuiltinFunctionType):
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        yield from _function_parts(value, names, seen)


def _function_parts(value: Any, names: Iterable[str], seen: set[Any]) -> Iterator[str]:
    """Of a function, plain or decorated by numba, or of an object of a library."""
    own = getattr(value, "py_func", None)
    if own is not None:
        options = getattr(value, "targetoptions", {})
        yield from _parts(sorted(options.items()), (), seen)
        value = own
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        if _is_known(value.__module__):
            yield f"{value.__module__}.{value.__qualname__}"
            return
        yield from _parts(value.__code__, (), seen)
        yield from _parts(value.__defaults__, (), seen)
        yield from _parts(value.__kwdefaults__, (), seen)
        mentioned = sorted(_names(value.__code__))
        for cell in value.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                raise _UnknownError from None
            yield from _parts(content, mentioned, seen)
        for name in mentioned:
            if name in value.__globals__:
                yield name
                yield from _parts(value.__globals__[name], mentioned, seen)
            elif hasattr(builtins, name):
                yield name
    elif type(value).__module__.startswith("numba.core.types") or type(value) is type(np.dot):
        yield f"{value} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    else:
        raise _UnknownError


def _module_parts(module: ModuleType, names: Iterable[str], seen: set[Any]) -> Iterator[str]:
    """A library's module by its version, a user's by what is mentioned of it."""
    name = module.__name__
    yield name
    if _is_known(name):
        top = sys.modules.get(name.partition(".")[0], module)
        yield str(getattr(top, "__version__", ""))
        return
    for attribute in names:
        if attribute in vars(module) and (id(module), attribute) not in seen:
            seen.add((id(module), attribute))
            yield attribute
            yield from _parts(vars(module)[attribute], names, seen)


def _code_parts(code: CodeType, seen: set[Any]) -> Iterator[str]:
    yield code.co_code.hex()
    yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}"
    yield f"{code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}"
    yield str(code.co_firstlineno)  # errors name it
    for constant in code.co_consts:
        yield from _parts(constant, (), seen)


def _names(code: CodeType) -> set[str]:
    """Names that a function's code mentions, inner functions included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
