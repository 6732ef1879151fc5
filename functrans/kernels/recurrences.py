"""Recurrences along an axis, for numba.

Here: functions of arrays. Not here: names and compilation (``kernels.table``), the primitives
(``primitives.cumulative``).

Layer: ``kernels``.
"""

from __future__ import annotations

from functrans.core.values import Array


def linear_recurrence(a: Array, b: Array, out: Array, reverse: int) -> None:
    """``h[:, i] = a[:, i] h[:, i - 1] + b[:, i]``, products and sums rounded one by one."""
    outer, length, inner = out.shape
    for block in range(outer):
        first = length - 1 if reverse else 0
        step = -1 if reverse else 1
        for j in range(inner):
            out[block, first, j] = b[block, first, j]
        for i in range(1, length):
            row = first + i * step
            for j in range(inner):
                product = a[block, row, j] * out[block, row - step, j]
                out[block, row, j] = product + b[block, row, j]
