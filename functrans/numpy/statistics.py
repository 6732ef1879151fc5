"""Statistics: weighted averages, covariances, histograms, counting.

Here: ``average``, ``cov``, ``corrcoef``, the histograms, ``bincount``, ``digitize``. Counts have no
derivative; edges and weights have. Not here: means and variances (``reductions``), quantiles
(``quantiles``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy import means, reductions
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    as_operand,
    flag,
    holds,
    inexact,
    is_known,
    listed_axes,
    value_of,
)
from functrans.numpy.creation import linspace
from functrans.numpy.cumulative import part
from functrans.numpy.dispatch import implements
from functrans.numpy.selection import flat, integers
from functrans.primitives import complex_parts, movement, sorting, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.creation import diagonal
from functrans.primitives.dot import matmul
from functrans.primitives.indexing import accumulate, gather
from functrans.primitives.structural import cast

# averages ---------------------------------------------------------------------------------------


@implements(np.average)
def average(
    a: ArrayLike,
    axis: object = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = NO_VALUE,
) -> Any:
    """Weighted mean over axes."""
    x = as_array(a)
    shape = shape_of(x)
    axes = listed_axes(axis, len(shape))
    if weights is None:
        result = means.mean.traced(x, axes, None, None, keepdims)  # type: ignore[attr-defined]  # set by implements
        total: Any = np.asarray(math.prod([shape[k] for k in axes]), dtype_of(result))
    else:
        w = as_array(weights)
        if shape_of(w) != shape:
            if axis is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            if shape_of(w) != tuple([shape[k] for k in axes]):
                raise ValueError(
                    "Shape of weights must be consistent with shape of a along specified axis."
                )
            order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
            wide = tuple([n if k in axes else 1 for k, n in enumerate(shape)])
            w = structural.reshape(structural.transpose(w, order), wide)
        dtype = np.result_type(dtype_of(x), dtype_of(w))
        if dtype_of(x).kind in "biu":
            dtype = np.result_type(dtype, np.float64)
        x, w = cast(x, dtype), cast(w, dtype)
        total = structural.reduce_sum(structural.broadcast_to(w, shape), axes)
        if is_known(total) and holds(np.any(ew.equal(total, 0))):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = structural.reduce_sum(x * w, axes) / total
        if flag(keepdims):
            result = structural.reshape(result, structural.kept_shape(shape, axes))
            total = structural.reshape(total, structural.kept_shape(shape, axes))
    if not returned:
        return result
    return result, structural.broadcast_to(total, shape_of(result))


# covariance -------------------------------------------------------------------------------------


def _observations(name: str, m: ArrayLike, rowvar: bool, dtype: DTypeLike | None) -> Array:
    """Variables in rows, observations in columns."""
    x = as_array(m)
    if len(shape_of(x)) > 2:
        raise ValueError(f"{name} has more than 2 dimensions")
    x = cast(x, np.result_type(dtype_of(x), np.float64) if dtype is None else dtype)
    if len(shape_of(x)) < 2:
        return structural.reshape(x, (1, math.prod(shape_of(x))))
    is_row = name == "y" and shape_of(x)[0] == 1  # NumPy leaves a row of ``y`` one
    return x if rowvar or is_row else structural.transpose(x, (1, 0))


def _frequencies(name: str, weights: ArrayLike, n: int) -> Any:
    """Weights of observations."""
    w = as_array(weights)
    if len(shape_of(w)) != 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape_of(w)[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if is_known(w) and holds(np.any(ew.less(w, 0))):
        raise ValueError(f"{name} cannot be negative")
    return w


@implements(np.cov)
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """Covariance matrix of variables."""
    if ddof is not None and ddof != operator.index(ddof):
        raise ValueError("ddof must be integer")
    x = _observations("m", m, rowvar, dtype)
    if not shape_of(x)[0]:  # whatever ``y`` and the dtypes are, as in NumPy
        return np.zeros((0, 0))
    if y is not None:
        other = _observations("y", y, rowvar, dtype)
        kind = np.result_type(dtype_of(x), dtype_of(other))
        x = movement.concatenate((cast(x, kind), cast(other, kind)), 0)
    if ddof is None:
        ddof = 0 if bias else 1
    n = shape_of(x)[1]
    weights: Any = None
    if fweights is not None:
        counts = _frequencies("fweights", fweights, n)
        if is_known(counts) and not holds(np.all(ew.equal(counts, np.around(counts)))):
            raise TypeError("fweights must be integer")
        weights = cast(counts, np.float64)
    if aweights is not None:
        importance = cast(_frequencies("aweights", aweights, n), np.float64)
        weights = importance if weights is None else weights * importance
    if weights is None:
        mean = structural.reduce_sum(x, (1,)) / n
        freedom: Any = n - ddof
    else:
        total = structural.reduce_sum(weights, (0,))
        mean = structural.reduce_sum(x * weights, (1,)) / total
        freedom = total - ddof
        if ddof and aweights is not None:
            freedom = total - ddof * structural.reduce_sum(weights * importance, (0,)) / total
    if is_known(freedom) and holds(ew.less_equal(freedom, 0)):
        freedom = 0.0
    x = x - structural.reshape(mean, (shape_of(mean)[0], 1))
    right = x if weights is None else x * weights
    matrix = matmul(x, structural.transpose(complex_parts.conjugate(right), (1, 0)))
    matrix = ew.divide(matrix, freedom)
    return _squeezed(matrix)


def _squeezed(matrix: ArrayLike) -> Any:
    """A matrix of one variable as a scalar."""
    return structural.reshape(matrix, ()) if shape_of(matrix) == (1, 1) else matrix


@implements(np.corrcoef)
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> Array:
    """Correlation coefficients of variables."""
    matrix = cov.traced(x, y, rowvar, dtype=dtype)  # type: ignore[attr-defined]  # set by implements
    if not shape_of(matrix):
        return matrix / matrix
    deviation = ew.sqrt(complex_parts.real(diagonal(matrix)))
    n = shape_of(deviation)[0]
    matrix = matrix / structural.reshape(deviation, (n, 1))
    matrix = matrix / structural.reshape(deviation, (1, n))
    if complex_parts.is_complex(matrix):
        re, im = complex_parts.real(matrix), complex_parts.imag(matrix)
        return complex_parts.complex_of(ew.clip(re, -1, 1), ew.clip(im, -1, 1))
    return ew.clip(matrix, -1, 1)


# counting ---------------------------------------------------------------------------------------


@implements(np.bincount, own=("length",))
def bincount(
    x: ArrayLike,
    /,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Array:
    """How often each number occurs, or the sum of its weights.

    Args:
      x: non-negative integers, a vector.
      weights: a vector of the same length.
      minlength: least length of the result.
      length: length of the result, so that it depends on no value; larger numbers are left out.
    """
    numbers = integers(x)
    if len(shape_of(numbers)) != 1:
        raise ValueError("object too deep for desired array")
    if length is None:
        plain = np.asarray(value_of(numbers))
        if plain.size and plain.min() < 0:
            raise ValueError("'list' argument must have no negative elements")
        n = max(int(plain.max()) + 1 if plain.size else 0, operator.index(minlength))
        mode = "raise"
    else:
        n, mode = operator.index(length), "drop"
    if weights is None or (length is None and not shape_of(numbers)[0]):  # NumPy's counts of none
        values: Any = np.ones(shape_of(numbers), np.int64)
    else:
        weights = as_array(weights)
        if dtype_of(weights).kind == "c":
            raise TypeError(
                "Cannot cast array data from dtype('complex128') to dtype('float64') according to "
                "the rule 'safe'"
            )
        values = cast(weights, np.float64)
        if shape_of(values) != shape_of(numbers):
            raise ValueError("The weights and list don't have the same length.")
    return accumulate(values, (numbers,), (0,), (n,), mode)


def _falls(edges: Array) -> bool:
    """Whether an edge is below the one before it; differences of integers would wrap."""
    return holds(np.any(ew.less(edges[1:], edges[:-1])))


@implements(np.digitize)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Array:
    """Numbers of the intervals that values lie in."""
    values, edges = as_array(x), as_array(bins)
    if dtype_of(values).kind == "c":
        raise TypeError("x may not be complex")
    is_falling = False
    if is_known(edges):
        is_falling = _falls(edges)
        if is_falling and _falls(movement.reverse(edges, (0,))):
            raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    dtype = np.result_type(dtype_of(values), dtype_of(edges))
    values, edges = cast(values, dtype), cast(edges, dtype)
    if is_falling:
        count = shape_of(edges)[0]
        found = sorting.searchsorted(movement.reverse(edges, (0,)), values, side)
        return ew.subtract(count, found)
    return sorting.searchsorted(edges, values, side)


# histograms -------------------------------------------------------------------------------------


def _edges(x: Array, bins: Any, limits: Any, weights: Any = None) -> Any:
    """Edges of bins: given, or of equal width."""
    if isinstance(bins, str):
        return np.histogram_bin_edges(np.asarray(value_of(x)), bins, limits, weights)
    if len(shape_of(as_operand(bins))):
        edges = as_array(bins)
        if is_known(edges) and _falls(edges):
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    count = operator.index(bins)
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if limits is not None:
        low, high = (as_operand(limit) for limit in limits)
        if is_known(low) and is_known(high) and holds(ew.greater(low, high)):
            raise ValueError("max must be larger than min in range parameter.")
    elif 0 in shape_of(x):
        low, high = 0.0, 1.0
    else:
        low = inexact(reductions.min.traced(x))  # type: ignore[attr-defined]  # set by implements
        high = inexact(reductions.max.traced(x))  # type: ignore[attr-defined]  # set by implements
    is_point = ew.equal(low, high)
    kind = movement.common_dtype((low, high, x))
    kind = np.dtype(np.float64) if kind.kind in "biu" else kind
    half = ew.where(is_point, kind.type(0.5), kind.type(0.0))
    return linspace.traced(low - half, high + half, count + 1, dtype=kind)  # type: ignore[attr-defined]  # set by implements


@implements(np.histogram_bin_edges)
def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: Any = None
) -> Array:
    """Edges of the bins of a histogram."""
    return _edges(flat(as_array(a)), bins, range, weights)


def _bin_of(x: ArrayLike, edges: ArrayLike) -> Array:
    """Number of the bin of each value; the number of bins for one outside."""
    count = shape_of(edges)[0] - 1
    dtype = np.result_type(dtype_of(x), dtype_of(edges))
    x, edges = cast(x, dtype), cast(edges, dtype)
    found = ew.subtract(sorting.searchsorted(edges, x, "right"), 1)
    last = gather(edges, (count,), (0,))
    found = ew.where(ew.equal(x, last), count - 1, found)
    return ew.where(ew.less(found, 0) | ew.greater(found, count - 1), count, found)


def _counts(number: ArrayLike, weights: Any, count: int) -> Array:
    """Counts, or sums of weights, per bin."""
    if weights is None:
        values: Any = np.ones(shape_of(number), np.int64)
    else:
        values = as_array(weights)
        if shape_of(values) != shape_of(number):
            raise ValueError("weights should have the same shape as a.")
    return accumulate(values, (number,), (0,), (count,), "drop")


@implements(np.histogram)
def histogram(
    a: Array, bins: Any = 10, range: object = None, density: object = None, weights: Any = None
) -> tuple[Any, Any]:
    """Counts in bins, and their edges."""
    x = as_array(a)
    w = None if weights is None else as_array(weights)
    if w is not None and shape_of(w) != shape_of(x):
        raise ValueError("weights should have the same shape as a.")
    x, w = flat(x), None if w is None else flat(w)
    edges = _edges(x, bins, range, weights)
    counts = _counts(_bin_of(x, edges), w, shape_of(edges)[0] - 1)
    if density:
        widths = cast(ew.subtract(part(edges, 0, 1, None), part(edges, 0, None, -1)), np.float64)
        total = structural.reduce_sum(counts, (0,))
        return ew.divide(ew.divide(counts, widths), total), edges
    return counts, edges


@implements(np.histogramdd)
def histogramdd(
    sample: Array, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    """Counts in the cells of a grid, and the edges along each axis."""
    if isinstance(sample, (list, tuple)):
        columns = [flat(as_array(column)) for column in sample]
    else:
        points = as_array(sample)
        is_vector = len(shape_of(points)) == 1
        columns = [points] if is_vector else list(movement.unstack(points, 1))
    rank = len(columns)
    if isinstance(bins, (int, np.integer)):
        bins = [bins] * rank
    if len(bins) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    limits = [None] * rank if range is None else list(range)
    if len(limits) != rank:
        raise ValueError(f"range argument must have one entry per dimension{here()}")
    edges = [_edges(*row) for row in zip(columns, bins, limits, strict=True)]
    extents = tuple([shape_of(e)[0] - 1 for e in edges])
    numbers = [_bin_of(x, e) for x, e in zip(columns, edges, strict=True)]
    total = math.prod(extents)
    cell: Any = 0
    is_outside: Any = False
    for number, extent in zip(numbers, extents, strict=True):
        cell = cell * extent + number
        is_outside = ew.equal(number, extent) | is_outside
    w = None if weights is None else flat(as_array(weights))
    counts = _counts(ew.where(is_outside, total, cell), w, total)
    counts = structural.reshape(cast(counts, np.float64), extents)
    if density:
        sums = structural.reduce_sum(counts, tuple(np.arange(rank).tolist()))
        for k, edge in enumerate(edges):
            widths = ew.subtract(part(edge, 0, 1, None), part(edge, 0, None, -1))
            wide = (1,) * k + (extents[k],) + (1,) * (rank - k - 1)
            counts = counts / structural.reshape(widths, wide)
        counts = counts / sums
    return counts, edges


@implements(np.histogram2d)
def histogram2d(
    x: Any,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    density: object = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:
    """Counts in the cells of a plane grid, and the edges along both axes."""
    if len(shape_of(as_array(x))) and shape_of(as_array(x)) != shape_of(as_array(y)):
        raise ValueError("x and y must have the same length.")
    if not isinstance(bins, (int, np.integer)) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd.traced((x, y), bins, range, density, weights)  # type: ignore[attr-defined]  # set by implements
    return counts, edges[0], edges[1]
