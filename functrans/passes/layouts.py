"""Values behind tracers, and copies of them that lie in memory as other arrays do.

Layer: ``passes``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.values import Array


def copy_in_layout(value: Array, like: Array) -> Array:
    """A copy of an array whose axes lie in memory as those of another array of its shape.

    NumPy's reshape is a view or a copy according to the layout, so that in-place syntax must keep
    it. Axes that follow one another without a gap do so in the copy; a gap is one element wide.
    """
    if like.flags.c_contiguous:
        return value.copy()
    copy = np.empty_like(like, value.dtype)
    if copy.strides != like.strides:
        strides = [0] * like.ndim
        expected = end = value.itemsize  # strides of the next axis without a gap, in both arrays
        low = 0
        for axis in sorted(range(like.ndim), key=lambda axis: abs(like.strides[axis])):
            stride, extent = like.strides[axis], like.shape[axis]
            if extent > 1 and stride:
                own = end if abs(stride) == expected else end + value.itemsize
                strides[axis] = own if stride > 0 else -own
                low += 0 if stride > 0 else own * (extent - 1)
                expected, end = abs(stride) * extent, own * extent
        buffer = np.empty(end, np.uint8)
        copy = np.ndarray(like.shape, value.dtype, buffer, low, tuple(strides))
    copy[...] = value
    return copy


def plain_value(x: Any) -> Any:
    """The plain array behind a tracer; ``None`` where there is none (staging)."""
    while isinstance(x, Tracer):
        x = getattr(x, "_value", None)
    return x


def laid_out(value: Array, like: Array | complex) -> Any:
    """The value, copied if it is an array in another layout than an array that it replaces."""
    like = plain_value(like)
    if type(like) is not np.ndarray:
        return value
    if type(value) is np.ndarray:
        if value.strides != like.strides and value.shape == like.shape:
            return copy_in_layout(value, like)
    elif isinstance(value, Tracer):
        plain: Any = getattr(value, "_value", None)
        moved = laid_out(plain, like)
        if moved is not plain:
            value = value._twin()
            value._value = moved
    return value
