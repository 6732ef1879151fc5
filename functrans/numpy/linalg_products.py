"""``numpy.linalg``'s products and views: matrix chains, diagonals, vector products.

Here: ``multi_dot``, ``matmul``, ``tensordot``, ``vecdot``, ``outer``, ``cross``, ``diagonal``,
``trace``, ``matrix_transpose``, as ``numpy.linalg`` has them: some differ from ``numpy``'s own. Not
here: the rest of it (``functrans.numpy.linalg``, which exports these too).

Layer: ``numpy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError as LinAlgError
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy.common import as_array, read_only_view
from functrans.numpy.dispatch import implements
from functrans.numpy.linalg_norms import check_stacked
from functrans.numpy.linalg_norms import cond as cond
from functrans.numpy.linalg_norms import matrix_norm as matrix_norm
from functrans.numpy.linalg_norms import matrix_rank as matrix_rank
from functrans.numpy.linalg_norms import norm as norm
from functrans.numpy.linalg_norms import vector_norm as vector_norm
from functrans.numpy.shaping import matrix_transpose as transposed_matrices
from functrans.primitives import dot as products
from functrans.primitives.movement import stack
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, moveaxis, normalize_axis, reduce_sum, reshape

# products ---------------------------------------------------------------------------------------


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Array | None = None) -> Array:
    """Product of several matrices in the cheapest order; the first and last may be vectors."""
    factors = [as_array(x) for x in arrays]
    if len(factors) < 2:
        raise ValueError(f"multi_dot: expected at least two arrays, got {len(factors)}")
    if len(factors) == 2:
        return products.dot(*factors)
    first, last = (len(shape_of(factors[i])) == 1 for i in (0, -1))
    if first:
        factors[0] = reshape(factors[0], (1, *shape_of(factors[0])))
    if last:
        factors[-1] = reshape(factors[-1], (*shape_of(factors[-1]), 1))
    for x in factors:
        if len(shape_of(x)) != 2:
            raise LinAlgError(
                f"multi_dot: array of shape {shape_of(x)}{here()}; expected matrices, and "
                "vectors at the ends only"
            )
    extents = [shape_of(x)[0] for x in factors] + [shape_of(factors[-1])[1]]
    result = _chain(factors, _cheapest_splits(extents), 0, len(factors) - 1)
    rows, columns = shape_of(result)
    return reshape(result, (() if first else (rows,)) + (() if last else (columns,)))


def _cheapest_splits(extents: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each range of a matrix chain: dynamic programming over its length."""
    n = len(extents) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            )
    return split


def _chain(factors: list[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Array:
    if i == j:
        return factors[i]
    k = split[i, j]
    return products.matmul(_chain(factors, split, i, k), _chain(factors, split, k + 1, j))


@implements(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """Matrix product; leading axes broadcast."""
    return products.matmul(as_array(x1), as_array(x2))


@implements(np.linalg.tensordot)
def tensordot(x1: ArrayLike, x2: Array, /, *, axes: int | Sequence[int] | None = 2) -> Any:
    """Contraction over several axes."""
    return products.tensordot(as_array(x1), as_array(x2), axes)


@implements(np.linalg.vecdot)
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Inner products along an axis; the first operand is conjugated."""
    if isinstance(axis, bool):
        raise TypeError(f"vecdot: an integer is required for the axis, got {axis}")
    return products.vecdot(as_array(x1), as_array(x2), axis)


@implements(np.linalg.outer)
def outer(x1: Array, x2: Array, /) -> Any:
    """Outer product of two vectors."""
    x1, x2 = as_array(x1), as_array(x2)
    if len(shape_of(x1)) != 1 or len(shape_of(x2)) != 1:
        raise ValueError(
            f"outer: expected two vectors, got shapes {shape_of(x1)} and {shape_of(x2)}{here()}; "
            "numpy.outer flattens its arguments"
        )
    return products.outer(x1, x2)


@implements(np.linalg.cross)
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Vector product of vectors of three components along an axis."""
    x1, x2 = as_array(x1), as_array(x2)
    places = [normalize_axis(axis, len(shape_of(x)), "axis") for x in (x1, x2)]
    if shape_of(x1)[places[0]] != 3 or shape_of(x2)[places[1]] != 3:
        raise ValueError(
            f"cross: expected vectors of 3 components along axis {axis}, got shapes {shape_of(x1)} "
            f"and {shape_of(x2)}{here()}"
        )
    a, b = (
        [slice_index(moved, BasicIndex((Ellipsis, i))) for i in range(3)]
        for moved in (
            moveaxis(x, place, len(shape_of(x)) - 1)
            for x, place in zip((x1, x2), places, strict=True)
        )
    )
    parts = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    ndim = len(shape_of(parts[0])) + 1
    return stack(parts, normalize_axis(axis, ndim, "axis"))


@implements(np.linalg.diagonal)
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Any:
    """Diagonals of matrices; a read-only view."""
    x = as_array(x)
    return read_only_view(x, _diagonal(x, offset), lambda base: _diagonal(base, offset))


def _diagonal(x: ArrayLike, offset: int) -> Array:
    check_stacked("diagonal", x)
    *lead, rows, columns = shape_of(x)
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = max(offset, 0) - min(offset, 0) * columns
    flat = reshape(x, (*lead, rows * columns))
    stop = start + max(length - 1, 0) * (columns + 1) + (length > 0)
    return slice_index(flat, BasicIndex((Ellipsis, slice(start, stop, columns + 1))))


@implements(np.linalg.trace)
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Any:
    """Sums of diagonals of matrices."""
    diagonals = _diagonal(as_array(x), offset)
    if dtype is None:
        own = dtype_of(diagonals)
        dtype = (
            np.result_type(own, np.uint if own.kind == "u" else int) if own.kind in "iub" else own
        )
    return reduce_sum(cast(diagonals, dtype), (len(shape_of(diagonals)) - 1,))


@implements(np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """Swap the last two axes."""
    return transposed_matrices(x)
