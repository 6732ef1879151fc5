"""Recurrences along an axis, for numba.

Here: functions that make the kernels, given ``numba.carray`` and ``numba.njit``. Not here: names
and compilation (``kernels.table``), the primitives (``primitives.cumulative``).

Layer: ``kernels``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def linear_recurrence(carray: Any, njit: object) -> Callable[..., None]:
    """``h[i] = a[i] h[i - 1] + b[i]``, products and sums rounded one by one."""

    def kernel(
        a_at: object,
        b_at: object,
        out_at: object,
        outer: int,
        length: int,
        inner: int,
        reverse: int,
    ) -> None:
        size = outer * length * inner
        a, b, out = carray(a_at, size), carray(b_at, size), carray(out_at, size)
        for block in range(outer):
            start = block * length * inner
            step = inner
            if reverse:
                start += (length - 1) * inner
                step = -inner
            for j in range(start, start + inner):
                out[j] = b[j]
            for i in range(1, length):
                row = start + i * step
                for j in range(row, row + inner):
                    product = a[j] * out[j - step]
                    out[j] = product + b[j]

    return kernel
