"""Functions of arrays that numba compiles: as machine code that anybody may call.

Here: ``Argument`` and ``Loop``, ``compiled_loop``, which compiles or finds one on disk, the address
of a loop by its name, and the exception that a loop ended with. Not here: which loops there are
(``kernels.table`` for our own, ``solvers.kernels`` for users'), compiled programs that call them
(``primitives.kernels``).

A loop is called as numba's own functions call each other. Its C function is
``int32 f(void *result, void **exception, ...)`` with, for each array, an owner and a parent (none),
the number of elements and their size in bytes, the address of the first one, extents and strides;
for a number, a 64-bit integer. It gives 0 or -2; 1 and more is an exception, about which
``*exception`` tells. What is not so, in a version of numba to come, is found when a loop is
compiled: the types of its C function are compared.

Object code is kept on disk under a name made of everything that it depends on, like that of
programs, and is loaded without numba if it needs nothing of it (memory that a loop allocates is
numba's). Code with addresses in it, and code that needs Python objects, is not kept.

Layer: ``kernels``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import re
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.values import Array
from functrans.errors import CompilationError
from functrans.machine import engine
from functrans.machine.cache import cache_key, digest_of, object_cache, packed, unpacked
from functrans.records import dataclass

_ENVIRONMENT = re.compile(r"= load .* @_ZN08NumbaEnv")
"""Code that reads numba's environment, which holds Python objects."""
_PASSED_OVER = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
"""Settings of numba that code does not depend on."""
_RELEASE = "NRT_MemInfo_call_dtor"
"""What is called when the last reference to memory of numba's goes."""
_ERROR = 1
PYTHON_ERROR = -1
"""The status of an exception that Python knows of."""
NO_RECORD = -1
"""Stands in compiled programs for an exception that numba does not describe."""

_lock = threading.RLock()
_loops: dict[str, Loop] = {}
"""All loops by name; numba frees no code, so that they stay."""
_failure = ctypes.c_void_p()
"""What the loop said that failed last in a compiled program."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a loop.

    Attributes:
      dtype: of an array in C order.
      ndim: number of its axes; -1 for a plain 64-bit integer.
      is_written: whether the loop writes to it.
    """

    dtype: np.dtype
    ndim: int
    is_written: bool = False


INTEGER = Argument(np.dtype(np.int64), -1)


class Loop:
    """A function of arrays as machine code.

    Attributes:
      name: unlike that of any other.
      label: what it is, for people.
      arguments: what it takes, in order.
      address: of its C function.
      is_portable: whether another process may know it by its name.
    """

    __slots__ = ("_call", "_code", "address", "arguments", "is_portable", "label", "name")

    def __init__(
        self,
        name: str,
        label: str,
        arguments: tuple[Argument, ...],
        address: int,
        code: object,
        is_portable: bool,
    ) -> None:
        self.name = name
        self.label = label
        self.arguments = arguments
        self.address = address
        self.is_portable = is_portable
        self._code = code
        types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
        for argument in arguments:
            types += [_C_TYPES[kind] for kind in kinds_of(argument)]
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)

    def __repr__(self) -> str:
        """What it is, for people."""
        return self.label

    def run(self, *values: Any) -> None:
        """Call it, without the interpreter's lock.

        Args:
          *values: aligned arrays in C order, of the arguments' dtypes and numbers of axes, and
            integers.

        Raises:
          Exception: what the function raised.
        """
        flat: list[Any] = []
        for argument, value in zip(self.arguments, values, strict=True):
            if argument.ndim < 0:
                flat.append(value)
            else:
                place = value.__array_interface__["data"][0]
                flat += (None, None, value.size, value.itemsize, place)
                flat += value.shape
                flat += value.strides
        result, failure = ctypes.c_void_p(), ctypes.c_void_p()
        status = self._call(ctypes.addressof(result), ctypes.addressof(failure), *flat)
        if status >= _ERROR or status == PYTHON_ERROR:
            raise _told(failure.value, self.label)


_C_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int64}


def kinds_of(argument: Argument) -> str:
    """What an argument is for the C function: a letter for each of its own, ``p`` or ``i``."""
    return "i" if argument.ndim < 0 else "ppiip" + "i" * (2 * argument.ndim)


def failure_address() -> int:
    """Where compiled programs put what a loop said that failed."""
    return ctypes.addressof(_failure)


def raised_in_program(message: str) -> Exception:
    """The exception of the loop that failed last in a compiled program.

    Args:
      message: which loop it was.
    """
    return _told(_failure.value, message)


class _ExceptionRecord(ctypes.Structure):
    """numba's ``excinfo_t``."""

    _fields_ = (
        ("pickled", ctypes.c_void_p), ("size", ctypes.c_int32), ("values", ctypes.c_void_p),
        ("unwrap", ctypes.c_void_p), ("count", ctypes.c_int32),
    )  # fmt: skip


def _told(place: int | None, label: str) -> Exception:
    """The exception that numba describes at an address."""
    if not place or place == ctypes.c_void_p(NO_RECORD).value:
        return RuntimeError(f"{label} ended with an exception of Python's")
    record = _ExceptionRecord.from_address(place)
    pickled = ctypes.string_at(record.pickled, record.size)
    if record.count:
        rebuilt: Any = numba().core.serialize.runtime_build_excinfo_struct
        unwrap = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(record.unwrap)
        kind, args, line = rebuilt(pickled, unwrap(record.values))
    else:
        kind, args, line = pickle.loads(pickled)
    error: Exception = kind(*(args or ()))
    if line:
        error.add_note(f"in {line[0]}, compiled by numba ({line[1]}:{line[2]})")
    return error


# compilation --------------------------------------------------------------------------------------


@functools.cache
def numba() -> Any:
    """The module; ``None`` if it cannot be imported."""
    try:
        import numba as module
    except ImportError:
        return None
    return module


def require_numba(what: str) -> Any:
    """The module.

    Raises:
      LookupError: it cannot be imported.
    """
    module = numba()
    if module is None:
        raise LookupError(
            f"{what} needs numba, which cannot be imported; install it with: pip install numba"
        )
    return module


def numba_type(argument: Argument) -> Any:
    """What numba calls the type of an argument.

    Raises:
      TypeError: numba has no type for the dtype.
    """
    module = require_numba("a kernel")
    if argument.ndim < 0:
        return module.types.int64
    try:
        element = module.from_dtype(argument.dtype)
    except module.core.errors.NumbaError as error:
        raise TypeError(f"numba has no arrays of dtype {argument.dtype}") from error
    return module.types.Array(element, argument.ndim, "C", readonly=not argument.is_written)


def compiled_loop(
    label: str,
    function: Callable[[], Callable[..., None]],
    arguments: tuple[Argument, ...],
    identity: str | None,
) -> Loop:
    """A function as machine code: of this process, from disk, or compiled now.

    Args:
      label: what it is, for people.
      function: gives the Python function, which takes arrays and integers and returns nothing.
      arguments: what it takes.
      identity: what it is, a text that changes when it does; ``None`` if there is none, and each
        call compiles anew.

    Raises:
      LookupError: numba cannot be imported.
      numba.core.errors.TypingError: numba cannot compile it.
    """
    with _lock:
        if identity is None:
            name = f"{os.getpid()}_{len(_loops)}"
            loop, _ = _make(name, label, function(), arguments)
            return _loops.setdefault(name, loop)
        key = _key_of(arguments, identity)
        found = _kept(label, arguments, key)
        if found is not None:
            return found
        loop, data = _make(_name_of(key), label, function(), arguments)
        if data is not None:
            object_cache().put(key, data)
        return _loops.setdefault(loop.name, loop)


def kept_loop(label: str, arguments: tuple[Argument, ...], identity: str) -> Loop | None:
    """What ``compiled_loop`` gives if nothing has to be compiled, else ``None``."""
    with _lock:
        return _kept(label, arguments, _key_of(arguments, identity))


def _kept(label: str, arguments: tuple[Argument, ...], key: str) -> Loop | None:
    """A loop of this process or from disk, by its key."""
    name = _name_of(key)
    if name not in _loops:
        data = object_cache().get(key)
        loop = None if data is None else _loaded(name, label, arguments, data)
        if loop is None:
            return None
        _loops[name] = loop
    return _loops[name]


def _key_of(arguments: Sequence[Argument], identity: str) -> str:
    described = [(a.dtype.str, a.ndim, a.is_written) for a in arguments]
    return cache_key("kernel", identity, described, engine.target(), _settings())


def _name_of(key: str) -> str:
    return digest_of(key).hex()


def loop_address(name: str) -> int:
    """The address of a loop of this process, by its name.

    Raises:
      LookupError: there is none.
    """
    if name not in _loops:
        raise LookupError(f"this process has no kernel {name}")
    return _loops[name].address


@functools.cache
def _versions() -> tuple[str, ...]:
    from importlib import metadata  # reads a parser of mail headers, which few programs need

    return (metadata.version("numba"),)


def _settings() -> tuple[object, ...]:
    """What numba's code depends on, beside the function."""
    own = [(k, v) for k, v in sorted(os.environ.items()) if k.startswith("NUMBA_")]
    return (*_versions(), [pair for pair in own if pair[0] not in _PASSED_OVER])


def _make(
    name: str, label: str, function: Callable[..., None], arguments: tuple[Argument, ...]
) -> tuple[Loop, bytes | None]:
    """A loop, and what may be kept of it on disk."""
    module = require_numba(label)
    types = tuple([numba_type(argument) for argument in arguments])
    dispatcher = module.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    dispatcher.compile(types)
    result = dispatcher.overloads[types]
    symbol = result.fndesc.llvm_func_name
    _check_convention(result, arguments)
    library = result.library
    data: bytes | None = None
    is_portable = not library.has_dynamic_globals and not _ENVIRONMENT.search(
        library.get_llvm_str()
    )
    if is_portable:
        _, _, (code, *_) = library.serialize_using_object_code()
        data = packed(symbol, code)
    address = library.get_pointer_to_function(symbol)
    return Loop(name, label, arguments, address, result, is_portable), data


def _check_convention(result: Any, arguments: Sequence[Argument]) -> None:
    """Compare the C function with what is called here."""
    context, description = result.target_context, result.fndesc
    given = context.call_conv.get_function_type(description.restype, description.argtypes)
    letters = "".join(
        {"i64": "i"}.get(str(type_), "p" if str(type_).endswith("*") else "?")
        for type_ in given.args
    )
    expected = "pp" + "".join(map(kinds_of, arguments))
    if letters != expected or str(given.return_type) != "i32":
        raise CompilationError(
            f"numba {_versions()[0]} calls functions in a way that is not known here ({given}); "
            "use a version that functrans was tested with"
        )


def _loaded(name: str, label: str, arguments: tuple[Argument, ...], data: bytes) -> Loop | None:
    """A loop from what was kept; ``None`` if it does not load here."""
    try:
        symbol, code = unpacked(data)
        loaded = engine.load_object(code, _symbols_of_numba(engine.object_symbols(code)[1]))
    except (CompilationError, ValueError, struct.error):
        return None
    return Loop(name, label, arguments, loaded.address(symbol), loaded, is_portable=True)


def _symbols_of_numba(names: Sequence[str]) -> Mapping[str, int]:
    """Addresses of what numba alone has, which is imported if there is any that may be called."""
    own = [name for name in names if name.startswith(("NRT_", "numba_"))]
    if own == [_RELEASE]:  # nothing is allocated, so that nothing is released either
        never = ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value
        return {_RELEASE: never or 0}
    if not own or numba() is None:
        return {}
    core: Any = numba().core
    core.runtime.rtsys.initialize(core.registry.cpu_target.target_context)
    return {name: engine.symbol_in_process(name) for name in own}


def aligned(value: Array, dtype: np.dtype) -> np.ndarray:
    """An array as a loop takes it: aligned and in C order."""
    return np.require(value, dtype, ["C", "A"])
