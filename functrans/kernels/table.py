"""The explicit table of our own kernels, and when they pay.

Here: ``KERNELS``, ``function``, ``pays``. Not here: the kernels themselves, how they become machine
code (``kernels.loops``).

A kernel is compiled at first use and kept on disk. That takes 0.1-0.5 s, and the first import of
numba 0.3-1.3 s; code that is on disk loads without numba. ``pays`` therefore says no until as much
time was lost by doing without (the rule of Karlin, Manasse, Rudolph and Sleator, Competitive snoopy
caching, 1988: never more than twice the time of knowing what comes). Results do not depend on it,
to the bit. Without numba everything works, with NumPy alone.

Layer: ``kernels``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.kernels import colorings, loops, recurrences, scatters
from functrans.kernels.loops import INTEGER, Argument, Loop
from functrans.records import dataclass

_DTYPES = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32"}
_INTEGERS = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A row of the table.

    Attributes:
      function: takes the arguments and writes to some of them.
      arguments: what they are.
    """

    function: Callable[..., None]
    arguments: tuple[Argument, ...]


def _arrays(dtype: np.dtype, *written: bool, ndim: int = 1) -> tuple[Argument, ...]:
    return tuple([Argument(dtype, ndim, is_written) for is_written in written])


def _rows() -> dict[str, Kernel]:
    of_integers = (
        (scatters.neighbour_writes, (False, True, True, True)),
        (colorings.column_coloring, (False, False, False, False, False, True, True)),
        (colorings.star_coloring, (False, False, False, True, True)),
        (colorings.incidence_order, (False,) * 4 + (True,) * 6),
    )
    rows = {f.__name__: Kernel(f, _arrays(_INTEGERS, *written)) for f, written in of_integers}
    for name, short in _DTYPES.items():
        dtype = np.dtype(name)
        rows[f"linear_recurrence_{short}"] = Kernel(
            recurrences.linear_recurrence,
            (*_arrays(dtype, False, False, True, ndim=3), INTEGER),
        )
        places = (*_arrays(dtype, True, False), *_arrays(_INTEGERS, False, False), INTEGER)
        rows[f"scatter_add_{short}"] = Kernel(scatters.scatter_add, places)
        rows[f"scatter_multiply_{short}"] = Kernel(scatters.scatter_multiply, places)
    return rows


KERNELS = _rows()
"""All kernels: ``neighbour_writes``, ``column_coloring``, ``star_coloring``, ``incidence_order``;
for the dtypes ``f64``, ``f32``, ``i64``, ``i32``
``linear_recurrence_<dtype>``, ``scatter_add_<dtype>``, ``scatter_multiply_<dtype>``."""

_LOAD_S = 0.1
"""What finding a kernel on disk may take, with LLVM's import."""
_COMPILE_S = 1.5
"""What importing numba and compiling a kernel may take."""
_CALL_S = 20e-6
"""What a call costs more than one of NumPy."""

_lost_s: dict[str, float] = {}
_known: dict[str, Loop | None] = {}
"""Kernels that are ready; none where it was looked for on disk only."""


def name_for(kernel: str, dtype: Any) -> str:
    """The name of a kernel for a dtype; empty if there is none."""
    name = f"{kernel}_{_DTYPES.get(dtype.name, '')}"
    return name if dtype.isnative and name in KERNELS else ""


def function(name: str) -> Callable[..., None]:
    """A kernel as a function of arrays and integers (``Loop.run``), compiled at first use.

    Raises:
      LookupError: there is no such kernel, or numba cannot be imported.
    """
    known = _known.get(name)
    if known is None:
        if name not in KERNELS:
            raise LookupError(f"no kernel {name!r}; there are {', '.join(KERNELS)}")
        row = KERNELS[name]
        known = _known[name] = loops.compiled_loop(
            f"the kernel {name!r}", lambda: row.function, row.arguments, name
        )
    return known.run


def pays(name: str, saved_s: float) -> bool:
    """Whether to call a kernel now.

    Args:
      name: of the kernel; empty if there is none.
      saved_s: time that it is expected to save, in seconds.
    """
    if saved_s < _CALL_S or not name:
        return False
    if _known.get(name) is not None:
        return True
    lost_s = _lost_s.get(name, 0.0) + saved_s
    _lost_s[name] = lost_s
    if lost_s > _LOAD_S and name not in _known:
        _known[name] = loops.kept_loop(f"the kernel {name!r}", KERNELS[name].arguments, name)
        if _known[name] is not None:
            return True
    return lost_s > _COMPILE_S and loops.numba() is not None
