"""Addresses of library code that compiled programs call.

Here: from a name such as ``"blas.dgemm"`` to the symbol in emitted text and to its address. Not
here: who calls them (``lower`` rules, through ``emitter.routine.Routines.call_symbol``), what numba
compiles (``kernels.loops``).

BLAS and LAPACK are those that NumPy itself has loaded: their Fortran symbols are found through
NumPy's own extension module. That costs no import, starts no second pool of threads, and gives
NumPy's results to the bit. Where NumPy's library does not show these symbols (Windows, builds
without a Fortran interface), SciPy's ``cython_blas`` and ``cython_lapack`` give the addresses, and
SciPy is imported then.

NumPy's library takes 64-bit integers in most builds and SciPy's 32-bit ones. Emitted code serves
both: integers are passed by address in slots of 64 bits, whose lower half a 32-bit routine reads
(machines are little-endian), and arrays of integers are given 8 bytes per entry; see
``functrans.primitives.native.fortran``.

Layer: ``compiler``.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg

from functrans.kernels import loops
from functrans.machine.system import function_address
from functrans.primitives.native.ufuncs import find_loop

_FORTRAN_NAMES = ("scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_", "{}$NEWLAPACK$ILP64")
"""How builds decorate the name of a Fortran routine; wheels of NumPy use the first."""

_LIBRARIES = {"blas": "cython_blas", "lapack": "cython_lapack"}


def symbol_name(name: str) -> str:
    """The symbol that stands for a library function in emitted text: ``ft_blas_dgemm``."""
    return "ft_" + name.replace(".", "_").replace("->", "_to_")


def address(name: str) -> int:
    """The address of a library function in this process.

    Args:
      name: ``"blas.<routine>"``, ``"lapack.<routine>"``, ``"c.<function>"``,
        ``"kernel.<name>"`` (a loop of ``kernels.loops``), ``"kernelfailure."`` (where one that
        fails says why), or ``"ufunc.<name>"`` and ``"ufuncdata.<name>"`` for the inner loop
        of a ufunc (``primitives.native.ufuncs``) and what it is given.

    Raises:
      LookupError: there is no such function.
    """
    family, _, rest = name.partition(".")
    if family in _LIBRARIES:
        return _from_numpy(rest) or _from_scipy(family, rest)
    if family == "c":
        return _from_process(rest)
    if family == "kernel":
        return loops.loop_address(rest)
    if family == "kernelfailure":
        return loops.failure_address()
    if family in ("ufunc", "ufuncdata"):
        return _of_ufunc(rest)[family == "ufuncdata"]
    raise LookupError(f"no library {family!r}: {name}")


class _Ufunc(ctypes.Structure):
    """The beginning of ``PyUFuncObject``, as NumPy's headers have it."""

    _fields_ = (
        ("references", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("nin", ctypes.c_int),
        ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )  # fmt: skip


@cache
def _of_ufunc(name: str) -> tuple[int, int]:
    """The addresses of the inner loop of a ufunc for some types, and of its data."""
    known = find_loop(name)
    if known is None:
        raise LookupError(f"NumPy {np.__version__} has no loop {name}")
    ufunc, number = known
    found = _Ufunc.from_address(id(ufunc))
    if (found.nin, found.nout, found.ntypes) != (ufunc.nin, ufunc.nout, ufunc.ntypes):
        raise LookupError(f"ufuncs of NumPy {np.__version__} lie in memory in another way: {name}")
    loop = int(found.functions[number] or 0)
    return loop, int((found.data[number] if found.data else 0) or loop)  # none: it is not read


@lru_cache(maxsize=1)
def _numpy_library() -> ctypes.CDLL | None:
    """NumPy's extension module, through which the loader finds what it is linked to."""
    try:
        return ctypes.CDLL(_umath_linalg.__file__)
    except OSError:
        return None


@cache
def _from_numpy(routine: str) -> int:
    """The address of a routine in the library that NumPy is linked to; 0 where it has none."""
    library = _numpy_library()
    for pattern in _FORTRAN_NAMES:
        found = getattr(library, pattern.format(routine), None)
        if found is not None:
            return _address_of(found)
    return 0


@cache
def _from_scipy(family: str, routine: str) -> int:
    """The address of a routine in SciPy's library."""
    try:
        from scipy.linalg import cython_blas, cython_lapack
    except ImportError as error:
        raise LookupError(
            f"{family}.{routine}: NumPy's library does not show it, and SciPy is not installed"
        ) from error
    module: Any = {"blas": cython_blas, "lapack": cython_lapack}[family]
    try:
        capsule = module.__pyx_capi__[routine]
    except KeyError:
        raise LookupError(f"SciPy has no {family} routine {routine!r}") from None
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return int(pointer_of(capsule, name_of(capsule)))


def _from_process(function: str) -> int:
    """The address of a function of the C library, of the system or of Python."""
    found = function_address(function)
    if not found:
        raise LookupError(f"the process has no function {function!r}")
    return found


def _address_of(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
