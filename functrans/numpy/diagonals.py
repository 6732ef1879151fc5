"""Diagonals and triangles: diag, diagonal, trace, tril, triu, fill_diagonal.

Here: functions about diagonals. Not here: index functions (``selection``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.arrays.writes import assign
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import (
    as_array,
    is_known,
    read_only_view,
    refuse_plain_target,
    stored,
    value_of,
)
from functrans.numpy.dispatch import implements
from functrans.numpy.reductions import widened
from functrans.numpy.selection import integers, is_empty, repeated
from functrans.primitives import creation, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.slicing import BasicIndex, slice_update
from functrans.primitives.structural import cast


@implements(np.diagonal)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of the matrices in two axes; a read-only view."""
    x = as_array(a)
    if len(shape_of(x)) < 2:
        raise ValueError("diag requires an array of at least two dimensions")

    def read(base: Array) -> Any:
        return creation.diagonal(base, operator.index(offset), axis1, axis2)

    return read_only_view(x, read(x), read)


@implements(np.diag)
def diag(v: ArrayLike, k: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    x = as_array(v)
    if len(shape_of(x)) == 2:
        return diagonal.traced(x, k)  # type: ignore[attr-defined]  # set by implements
    if len(shape_of(x)) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    return creation.diag(x, operator.index(k))


@implements(np.diagflat)
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened array on its diagonal."""
    x = as_array(v)
    return creation.diag(structural.reshape(x, (math.prod(shape_of(x)),)), operator.index(k))


@implements(np.trace)
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Any:
    """Sum of the diagonal."""
    x = as_array(a)
    x = cast(x, widened(dtype_of(x)) if dtype is None else dtype)
    entries = creation.diagonal(x, operator.index(offset), axis1, axis2)
    return stored("trace", structural.reduce_sum(entries, (len(shape_of(entries)) - 1,)), out)


def _rows(x: ArrayLike) -> Any:
    """A vector is taken as every row of a square matrix, as NumPy does."""
    shape = shape_of(x)
    if not shape:
        raise ValueError("tril and triu need an array of at least one dimension")
    return structural.broadcast_to(x, (shape[0], shape[0])) if len(shape) == 1 else x


@implements(np.tril)
def tril(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Matrices with zeros above the diagonal ``k``, which may be traced."""
    return _triangle(m, k, creation.tril, ew.less_equal)


@implements(np.triu)
def triu(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Matrices with zeros below the diagonal ``k``, which may be traced."""
    return _triangle(m, k, creation.triu, ew.greater_equal)


def _triangle(
    m: ArrayLike, k: ArrayLike, known: Callable[..., Any], compare: Callable[..., Any]
) -> Array:
    """Matrices with zeros on one side of a diagonal."""
    x = _rows(as_array(m))
    if is_known(k):
        return known(x, operator.index(value_of(k)))
    rows, columns = (np.arange(n) for n in shape_of(x)[-2:])
    return ew.where(compare(columns - rows[:, None], integers(k)), x, cast(0, dtype_of(x)))


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write values to the main diagonal of a traced array."""
    target = a
    refuse_plain_target("fill_diagonal", target)
    shape = shape_of(target)
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    size = math.prod(shape)
    stop: int | None = None
    if len(shape) == 2:
        step = shape[1] + 1
        if not wrap:
            stop = shape[1] * shape[1]
    else:
        if len(set(shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        step = 1 + sum(math.prod(shape[:k]) for k in range(1, len(shape)))
    count = len(range(0, size if stop is None else min(stop, size), step))
    if is_empty(val):
        return
    values = repeated(val, count)
    flat = structural.reshape(target, (size,))
    new = slice_update(flat, cast(values, dtype_of(target)), BasicIndex((slice(None, stop, step),)))
    assign(target, structural.reshape(new, shape))


@implements(np.tril_indices_from)
def tril_indices_from(arr: ArrayLike, k: ArrayLike = 0) -> tuple[Array, ...]:
    """Indices of the lower triangle of a matrix."""
    return np.tril_indices(*_matrix_extents(arr, k))


@implements(np.triu_indices_from)
def triu_indices_from(arr: ArrayLike, k: ArrayLike = 0) -> tuple[Array, ...]:
    """Indices of the upper triangle of a matrix."""
    return np.triu_indices(*_matrix_extents(arr, k))


def _matrix_extents(arr: ArrayLike, k: Any) -> tuple[int, int, int]:
    shape = shape_of(as_array(arr))
    if len(shape) != 2:
        raise ValueError("input array must be 2-d")
    return shape[0], k, shape[1]


@implements(np.diag_indices_from)
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array of equal extents."""
    shape = shape_of(as_array(arr))
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return np.diag_indices(shape[0], len(shape))
