"""Order statistics: median, quantile, percentile, and their variants that skip NaN.

Here: all of NumPy's methods, weights, derivatives with respect to the values and to the
probabilities. Not here: sorting (``sorting``), means (``reductions``).

Lanes are sorted with NaN last. A method gives, for ``n`` values, a position among the sorted ones:
an index and how far to go from it to the next one. The derivative moves with the elements that
were selected.

Layer: ``numpy``. Reference: Hyndman & Fan, Sample quantiles in statistical packages, American
Statistician 50 (1996), 361-365.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import aval_of, dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    as_operand,
    flag,
    inexact,
    is_known,
    listed_axes,
    stored,
    value_of,
)
from functrans.numpy.dispatch import implements
from functrans.primitives import cumulative as cum
from functrans.primitives import elementwise as ew
from functrans.primitives import sorting, structural
from functrans.primitives.indexing import gather, take_along_axis
from functrans.primitives.structural import cast

_PARAMETERS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_OF_WHOLE_STEPS = ("interpolated_inverted_cdf", "weibull", "averaged_inverted_cdf")
"""Methods of which whole probabilities have whole positions."""
_DISCRETE = frozenset({"inverted_cdf", "closest_observation", "lower", "higher", "nearest"})
_METHODS = (*_PARAMETERS, *sorted(_DISCRETE), "averaged_inverted_cdf", "linear", "midpoint")


def _position(method: str, n: Any, q: Any) -> tuple[Any, Any]:
    """Index of the lower element and the weight of the next one; not yet limited to the lane."""
    span = ew.subtract(n, 1)
    if method == "linear":
        h = span * q
    elif method in _PARAMETERS:
        alpha, beta = _PARAMETERS[method]
        h = n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method == "inverted_cdf":
        return ew.ceil(n * q) - 1, 0.0
    elif method == "averaged_inverted_cdf":
        h = n * q - 1
        low = ew.floor(h)
        return low, ew.where(ew.equal(h, low), 0.5, 1.0)
    elif method == "closest_observation":
        h = n * q - 1.5
        low = ew.floor(h)
        stays = ew.equal(h, low) & ew.equal(ew.remainder(low, 2), 1)
        return ew.where(stays, low, low + 1), 0.0
    elif method == "lower":
        return ew.floor(span * q), 0.0
    elif method == "higher":
        return ew.ceil(span * q), 0.0
    elif method == "nearest":
        return ew.rint(span * q), 0.0
    elif method == "midpoint":
        h = span * q
        low = ew.floor(h)
        return low, ew.where(ew.equal(h, low), 0.0, 0.5)
    else:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {sorted(_METHODS)}")
    low = ew.floor(h)
    return low, h - low


def _lanes(x: ArrayLike, axes: tuple[int, ...]) -> Array:
    """The array with the axes to reduce joined as its last one."""
    shape = shape_of(x)
    left = tuple([k for k in range(len(shape)) if k not in axes])
    moved = structural.transpose(x, (*left, *axes))
    size = math.prod([shape[k] for k in axes])
    return structural.reshape(moved, (*[shape[k] for k in left], size))


def _pick(lanes: ArrayLike, index: ArrayLike, by_lane: bool) -> Array:
    """Elements of sorted lanes; the axes of the probabilities come first.

    Args:
      lanes: ``[*lanes, n]``.
      index: shape ``Q``, or ``Q + lanes`` when ``by_lane``.
      by_lane: whether indices differ between lanes.
    """
    shape = shape_of(lanes)
    if not by_lane:
        return gather(lanes, (index,), (len(shape) - 1,))
    own = shape_of(index)
    n_q = len(own) - len(shape) + 1
    count = math.prod(own[:n_q])
    wide = structural.moveaxis(structural.reshape(index, (count, *shape[:-1])), 0, len(shape) - 1)
    taken = take_along_axis(lanes, wide, len(shape) - 1)
    return structural.reshape(structural.moveaxis(taken, len(shape) - 1, 0), own)


def _of_sorted(lanes: ArrayLike, q: ArrayLike, method: str, n: ArrayLike, by_lane: bool) -> Array:
    """Quantiles of sorted lanes, of shape ``Q + lanes``."""
    low, weight = _position(method, n, q)
    top = ew.maximum(ew.subtract(n, 1), 0)
    is_inside = ew.greater_equal(low, 0) & ew.less(low, top)
    low = cast(ew.minimum(ew.maximum(low, 0), top), np.int64)
    first = _pick(lanes, low, by_lane)
    if type(weight) is float:
        return first
    high = ew.minimum(low + 1, cast(top, np.int64) if by_lane else int(top))
    second = _pick(lanes, high, by_lane)
    weight = ew.where(is_inside, weight, 0)
    if not by_lane:
        n_lane_axes = len(shape_of(lanes)) - 1
        weight = structural.reshape(as_array(weight), shape_of(weight) + (1,) * n_lane_axes)
    # The limits at infinities, where differences and products with 0 would be NaN.
    is_endless = ew.isinf(first) & (ew.equal(first, second) | ew.isfinite(second))
    is_at_first = ew.isinf(second) & ew.equal(weight, 0)
    is_flat = is_endless | is_at_first
    gap = ew.where(is_flat, 0, second) - ew.where(is_flat, 0, first)
    return first + gap * cast(weight, _weight_dtype(weight, first, q))


def _weight_dtype(weight: ArrayLike, values: ArrayLike, q: ArrayLike) -> np.dtype:
    """A Python probability gives a weight in the dtype of the values."""
    return dtype_of(values) if type(q) in (int, float) else dtype_of(weight)


def _result_dtype(x: ArrayLike, q: ArrayLike, method: str) -> np.dtype:
    """NumPy's dtype: values that are selected keep theirs, values between promote with ``q``."""
    dtype = dtype_of(x)
    if method in _DISCRETE:
        return dtype
    of_q = aval_of(q)
    is_whole = of_q.dtype.kind in "biu"
    if is_whole and method == "linear":  # selects the first or the last value
        return dtype
    if of_q.weak and of_q.dtype.kind != "b":  # type: ignore[union-attr]  # no tape
        return np.result_type(dtype, 0.0)
    if is_whole:
        return np.result_type(dtype, np.int64 if method in _OF_WHOLE_STEPS else np.float64)
    return np.result_type(dtype, of_q.dtype)


def _weighted(lanes: ArrayLike, weights: ArrayLike, q: ArrayLike) -> Any:
    """Quantiles by the inverse of the weighted distribution function, ``Q + lanes``."""
    order = sorting.argsort(lanes, -1)
    values = take_along_axis(lanes, order, -1)
    cdf = cum.cumsum(cast(take_along_axis(weights, order, -1), np.float64), -1)
    ndim = len(shape_of(lanes))
    total = gather(cdf, (-1,), (ndim - 1,))
    cdf = cdf / structural.reshape(total, (*shape_of(total), 1))
    probabilities = structural.reshape(as_array(q), shape_of(q) + (1,) * ndim)
    is_before = ew.less(cdf, probabilities) | ew.equal(cdf, 0)
    index = structural.reduce_sum(cast(is_before, np.int64), (len(shape_of(is_before)) - 1,))
    index = ew.minimum(index, shape_of(lanes)[-1] - 1)
    return _pick(values, index, True)


def _weights_like(
    weights: ArrayLike, x: ArrayLike, axis: int | Sequence[int] | None, axes: tuple[int, ...]
) -> Any:
    """Weights in the shape of the values."""
    weights = as_array(weights)
    shape = shape_of(x)
    own = shape_of(weights)
    if own == shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if own != tuple([shape[k] for k in axes]):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    weights = structural.transpose(weights, tuple(order))
    wide = tuple([shape[k] if k in axes else 1 for k in range(len(shape))])
    return structural.broadcast_to(structural.reshape(weights, wide), shape)


def _quantile(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None,
    out: Array | None,
    method: str,
    keepdims: Any,
    weights: Any,
    skip_nan: bool,
) -> Array:
    """The function behind all of them; ``q`` in ``[0, 1]``."""
    x = as_array(a)
    if dtype_of(x).kind == "c":
        raise TypeError("a must be an array of real numbers")
    if is_known(q) and not np.all((np.asarray(value_of(q)) >= 0) & (np.asarray(value_of(q)) <= 1)):
        bounds = "[0, 100]" if "percentile" in name else "[0, 1]"
        raise ValueError(f"Quantiles must be in the range {bounds}")
    dtype = _result_dtype(x, q, method)
    is_floating = dtype_of(x).kind == "f"
    if skip_nan and not math.prod(shape_of(x)):
        dtype = np.result_type(dtype, np.float64) if not is_floating else dtype
        x, is_floating = cast(x, dtype), True
    skip_nan = skip_nan and is_floating
    if method not in _DISCRETE:
        x = inexact(x)
    q = _inexact_probability(q)
    shape = shape_of(x)
    axes = listed_axes(axis, len(shape))
    lanes = _lanes(x, axes)
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        known = _weights_like(weights, x, axis, axes)
        if is_known(known) and np.any(np.asarray(value_of(known)) < 0):
            raise ValueError("Weights must be non-negative.")
        known = _lanes(known, axes)
        if skip_nan:
            known = ew.where(ew.isnan(lanes), 0, known)
        result = _weighted(lanes, known, q)
    else:
        n: Any = shape_of(lanes)[-1]
        if skip_nan:
            counts = cast(ew.logical_not(ew.isnan(lanes)), np.int64)
            n = structural.reduce_sum(counts, (len(shape_of(lanes)) - 1,))
            if type(q) is not float:  # NumPy's positions are in the precision of ``q``
                n = cast(n, dtype_of(q))
        if skip_nan:
            n_q = len(shape_of(q))
            spread = structural.reshape(
                as_array(q), shape_of(q) + (1,) * (len(shape_of(lanes)) - 1)
            ) if n_q else q  # fmt: skip
            if shape_of(lanes)[-1]:
                result = _of_sorted(sorting.sort(lanes, -1), spread, method, n, True)
            else:
                result = np.full(shape_of(q) + shape_of(lanes)[:-1], math.nan, dtype)
        else:
            lanes = sorting.sort(lanes, -1)
            result = _of_sorted(lanes, q, method, n, False)
    if is_floating and not skip_nan and shape_of(lanes)[-1]:
        ndim = len(shape_of(lanes))
        total = structural.reduce_sum(lanes, (ndim - 1,)) if weights is not None else gather(
            lanes, (-1,), (ndim - 1,)
        )  # fmt: skip
        result = ew.where(ew.isnan(total), math.nan, result)
    if flag(keepdims):
        result = structural.reshape(result, shape_of(q) + structural.kept_shape(shape, axes))
    return stored(name, cast(result, dtype), out)


def _probability(q: Any, percent: bool = False) -> Any:
    """The probabilities; a Python number is weak, but for a boolean."""
    q = as_operand(q)
    if type(q) is bool:
        q = np.asarray(q)
    if not percent:
        return q
    return q / 100 if type(q) in (int, float) else ew.divide(q, 100)


def _inexact_probability(q: Any) -> Array | complex:
    return float(q) if type(q) in (int, float) else inexact(q)


@implements(np.quantile)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Quantiles over axes, by any of NumPy's methods."""
    p = _probability(q)
    return _quantile("quantile", a, p, axis, out, method, keepdims, weights, False)


@implements(np.percentile)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Percentiles over axes, by any of NumPy's methods."""
    p = _probability(q, percent=True)
    return _quantile("percentile", a, p, axis, out, method, keepdims, weights, False)


@implements(np.nanquantile)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: Any = None,
) -> Array:
    """Quantiles over axes of what is no NaN."""
    p = _probability(q)
    return _quantile("nanquantile", a, p, axis, out, method, keepdims, weights, True)


@implements(np.nanpercentile)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: Any = None,
) -> Array:
    """Percentiles over axes of what is no NaN."""
    p = _probability(q, percent=True)
    return _quantile("nanpercentile", a, p, axis, out, method, keepdims, weights, True)


def _median(
    name: str,
    a: ArrayLike,
    axis: int | Sequence[int] | None,
    out: Array | None,
    keepdims: Any,
    skip_nan: bool,
) -> Array:
    x = inexact(as_array(a))
    shape = shape_of(x)
    axes = listed_axes(axis, len(shape))
    lanes = sorting.sort(_lanes(x, axes), -1)
    last = len(shape_of(lanes)) - 1
    n: Any = shape_of(lanes)[-1]
    if not n:
        left = shape_of(lanes)[:-1]
        result: Any = np.full(left, math.nan, dtype_of(x))
    elif skip_nan:
        counts = cast(ew.logical_not(ew.isnan(lanes)), np.int64)
        n = structural.reduce_sum(counts, (last,))
        low = ew.maximum(ew.floor_divide(n - 1, 2), 0)
        first, second = _pick(lanes, low, True), _pick(lanes, ew.floor_divide(n, 2) * (n > 0), True)
        result = ew.where(ew.equal(low * 2 + 1, n), first, (first + second) / 2)
    else:
        result = gather(lanes, (n // 2,), (last,))
        if n % 2 == 0:
            result = (gather(lanes, (n // 2 - 1,), (last,)) + result) / 2
        result = ew.where(ew.isnan(gather(lanes, (-1,), (last,))), math.nan, result)
    if flag(keepdims):
        result = structural.reshape(result, structural.kept_shape(shape, axes))
    return stored(name, result, out)


@implements(np.median)
def median(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Median over axes."""
    return _median("median", a, axis, out, keepdims, False)


@implements(np.nanmedian)
def nanmedian(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    keepdims: Any = NO_VALUE,
) -> Array:
    """Median over axes of what is no NaN."""
    return _median("nanmedian", a, axis, out, keepdims, True)
