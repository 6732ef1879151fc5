"""The explicit table of numba's kernels, their compilation, and when they pay.

Here: ``KERNELS``, ``address``, ``function``, ``pays``. Not here: the kernels themselves.

A kernel is a C function of pointers and 64-bit integers, so that the interpreter and compiled
programs call the same code. It is compiled at first use, with ``nopython``, NumPy's error model
and without fast math, so that every operation is rounded as NumPy rounds it.

Nothing is kept on disk. numba would write beside the source or to a directory that is set for the
whole process, users' functions included; a kernel takes 0.1-0.5 s to compile, and the first import
of numba 0.3-1.3 s. ``pays`` therefore says no until as much time was lost by doing without (the
rule of Karlin, Manasse, Rudolph and Sleator, Competitive snoopy caching, 1988: never more than
twice the time of knowing what comes). Results do not depend on it, to the bit. Without numba
everything works, with NumPy alone.

Layer: ``kernels``.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from functrans.kernels import colorings, recurrences, scatters

_DTYPES = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A row of the table.

    Attributes:
      arguments: types in numba's names; those with a star are pointers.
      make: ``(carray, njit) -> function``, which numba compiles.
    """

    arguments: tuple[str, ...]
    make: Callable[[Any, Any], Callable[..., None]]


def _rows() -> dict[str, Kernel]:
    rows = {
        "neighbour_writes": Kernel((*("int64*",) * 4, *("int64",) * 2), scatters.neighbour_writes),
        "column_coloring": Kernel((*("int64*",) * 7, *("int64",) * 4), colorings.column_coloring),
        "star_coloring": Kernel((*("int64*",) * 5, *("int64",) * 3), colorings.star_coloring),
        "incidence_order": Kernel((*("int64*",) * 10, *("int64",) * 3), colorings.incidence_order),
    }
    for dtype, short in _DTYPES.items():
        pointer = f"{dtype}*"
        rows[f"linear_recurrence_{short}"] = Kernel(
            (*(pointer,) * 3, *("int64",) * 4), recurrences.linear_recurrence
        )
        places = (pointer, pointer, "int64*", "int64*", *("int64",) * 4)
        rows[f"scatter_add_{short}"] = Kernel(places, scatters.scatter_add)
        rows[f"scatter_multiply_{short}"] = Kernel(places, scatters.scatter_multiply)
    return rows


KERNELS = _rows()
"""All kernels: ``neighbour_writes``, ``column_coloring``, ``star_coloring``, ``incidence_order``;
for the dtypes ``f64``, ``f32``, ``i64``, ``i32``
``linear_recurrence_<dtype>``, ``scatter_add_<dtype>``, ``scatter_multiply_<dtype>``."""

_FIRST_USE_S = 1.5
"""What importing numba and compiling a kernel may take."""
_CALL_S = 20e-6
"""What a call costs more than one of NumPy."""

_lock = threading.Lock()
_compiled: dict[str, Any] = {}
_lost_s: dict[str, float] = {}


def name_for(kernel: str, dtype: Any) -> str:
    """The name of a kernel for a dtype; empty if there is none."""
    name = f"{kernel}_{_DTYPES.get(dtype.name, '')}"
    return name if dtype.isnative and name in KERNELS else ""


@functools.cache
def _numba() -> Any:
    """The module; ``None`` if it cannot be imported."""
    try:
        import numba
    except ImportError:
        return None
    return numba


def _compile(name: str) -> Any:
    numba = _numba()
    if numba is None:
        raise LookupError(
            f"the kernel {name!r} needs numba, which cannot be imported; install it with: "
            "pip install numba"
        )
    if name not in KERNELS:
        raise LookupError(f"no kernel {name!r}; there are {', '.join(KERNELS)}")
    with _lock:
        if name not in _compiled:
            row = KERNELS[name]
            types = [
                numba.types.CPointer(getattr(numba.types, text[:-1]))
                if text.endswith("*")
                else getattr(numba.types, text)
                for text in row.arguments
            ]
            function = row.make(numba.carray, numba.njit(error_model="numpy"))
            _compiled[name] = numba.cfunc(numba.types.void(*types), error_model="numpy")(function)
    return _compiled[name]


def address(name: str) -> int:
    """The address of a kernel, compiled at first use.

    Raises:
      LookupError: there is no such kernel, or numba cannot be imported.
    """
    return int(_compile(name).address)


@functools.cache
def function(name: str) -> Callable[..., None]:
    """A kernel as a function of addresses (``x.ctypes.data``) and integers.

    Arrays must be C-contiguous, aligned, of the kernel's dtype, and alive during the call, which
    runs without the interpreter's lock.

    Raises:
      LookupError: there is no such kernel, or numba cannot be imported.
    """
    arguments = [
        ctypes.c_void_p if text.endswith("*") else ctypes.c_int64
        for text in KERNELS[name].arguments
    ]
    return ctypes.CFUNCTYPE(None, *arguments)(address(name))


def pays(name: str, saved_s: float) -> bool:
    """Whether to call a kernel now.

    Args:
      name: of the kernel; empty if there is none.
      saved_s: time that it is expected to save, in seconds.
    """
    if saved_s < _CALL_S or not name:
        return False
    if name in _compiled:
        return True
    lost_s = _lost_s.get(name, 0.0) + saved_s
    _lost_s[name] = lost_s
    return lost_s > _FIRST_USE_S and _numba() is not None
