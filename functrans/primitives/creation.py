"""Triangles and diagonals of arrays: ``tril``, ``triu``, ``diagonal``, ``diag``.

Not here: a primitive; these are made of ``structural`` and ``slicing``. Arrays that depend on
nothing traced are NumPy's.

Layer: ``primitives``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.slicing import BasicIndex, embed, slice_index
from functrans.primitives.structural import normalize_axis, reshape, transpose

Shape = tuple[int, ...]


def _matrix_shape(name: str, x: Array) -> tuple[int, int]:
    """The last two extents."""
    shape = shape_of(x)
    if len(shape) < 2:
        raise ShapeError(f"{name}: a matrix or a stack of matrices is needed, got shape {shape}")
    return shape[-2], shape[-1]


def tril(x: Array, k: int = 0) -> Array:
    """Matrices with zeros above the ``k``-th diagonal."""
    n, m = _matrix_shape("tril", x)
    return ew.where(np.tri(n, m, k, bool), x, dtype_of(x).type(0))


def triu(x: Array, k: int = 0) -> Array:
    """Matrices with zeros below the ``k``-th diagonal."""
    n, m = _matrix_shape("triu", x)
    return ew.where(np.tri(n, m, k - 1, bool), dtype_of(x).type(0), x)


def _diagonal_index(n: int, m: int, offset: int) -> tuple[int, slice]:
    """Length of a diagonal, and where it lies in the flat memory of an ``n`` by ``m`` matrix.

    Neighbours on a diagonal are ``m + 1`` elements apart.
    """
    length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    if not length:
        return 0, slice(0, 0)
    start = offset if offset >= 0 else -offset * m
    return length, slice(start, start + (length - 1) * (m + 1) + 1, m + 1)


def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of the matrices in two axes, as the last axis of the result.

    Raises:
      ShapeError: the axes are the same.
    """
    ndim = len(shape_of(x))
    first = normalize_axis(axis1, ndim, "axis1")
    second = normalize_axis(axis2, ndim, "axis2")
    if first == second:
        raise ShapeError(f"diagonal: axis1 and axis2 are the same axis {first}")
    lead = [axis for axis in range(ndim) if axis not in (first, second)]
    x = transpose(x, (*lead, first, second))
    *stack, n, m = shape_of(x)
    _, places = _diagonal_index(n, m, offset)
    return slice_index(reshape(x, (*stack, n * m)), BasicIndex((Ellipsis, places)))


def diagonal_matrix(v: Array, k: int = 0) -> Array:
    """Square matrices with vectors (the last axis) on the ``k``-th diagonal, else zeros.

    Raises:
      ShapeError: there is no axis.
    """
    shape = shape_of(v)
    if not shape:
        raise ShapeError("diagonal_matrix: a vector or a stack of vectors is needed, got a scalar")
    n = shape[-1] + abs(k)
    _, places = _diagonal_index(n, n, k)
    flat = embed(v, BasicIndex((Ellipsis, places)), (*shape[:-1], n * n))
    return reshape(flat, (*shape[:-1], n, n))


def diag(x: Array, k: int = 0) -> Array:
    """The ``k``-th diagonal of a matrix, or the matrix with a vector on it, as ``np.diag``.

    Raises:
      ShapeError: neither a vector nor a matrix.
    """
    ndim = len(shape_of(x))
    if ndim == 1:
        return diagonal_matrix(x, k)
    if ndim == 2:
        return diagonal(x, k)
    raise ShapeError(f"diag: a vector or a matrix is needed, got shape {shape_of(x)}")


PRIMITIVES: tuple[Any, ...] = ()
