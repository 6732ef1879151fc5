"""Reductions that skip NaN: sums, products, extrema, means, variances.

Here: the ``nan*`` functions but quantiles (``quantiles``) and running ones (``cumulative``). Where
NumPy warns about lanes of NaN only, the result is NaN without a warning.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.numpy import means, reductions
from functrans.numpy.common import NO_VALUE, as_array, is_known, stored, value_of
from functrans.numpy.dispatch import implements
from functrans.primitives import elementwise as ew

_sum: Callable[..., Any] = reductions.sum.traced  # type: ignore[attr-defined]  # set by implements
_all: Callable[..., Any] = reductions.all.traced  # type: ignore[attr-defined]  # set by implements


def _split(a: ArrayLike, fill: float) -> tuple[Any, Any]:
    """The array with NaN replaced, and where it was no NaN (``None`` for integers)."""
    x = as_array(a)
    if dtype_of(x).kind not in "fc":
        return x, None
    is_nan = ew.isnan(x)
    return ew.where(is_nan, fill, x), ew.logical_not(is_nan)


@implements(np.nansum)
def nansum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """Sum, NaN taken as 0."""
    return _sum(_split(a, 0)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """Product, NaN taken as 1."""
    x = _split(a, 1)[0]
    return reductions.prod.traced(x, axis, dtype, out, keepdims, initial, where)  # type: ignore[attr-defined]  # set by implements


def _extremum(
    name: str,
    function: Any,
    fill: float,
    a: ArrayLike,
    axis: object,
    out: Array | None,
    *options: object,
) -> Array:
    x, is_number = _split(a, fill)
    keepdims, initial, where = options
    result = function.traced(x, axis, None, keepdims, initial, where)
    if is_number is not None and initial is NO_VALUE:
        is_empty = _all(ew.logical_not(is_number), axis, None, keepdims, where=where)
        result = ew.where(is_empty, math.nan, result)
    return stored(name, result, out)


@implements(np.nanmax)
def nanmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """Maximum of what is no NaN."""
    return _extremum("nanmax", reductions.max, -math.inf, a, axis, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Array:
    """Minimum of what is no NaN."""
    return _extremum("nanmin", reductions.min, math.inf, a, axis, out, keepdims, initial, where)


def _position(
    function: Any, fill: float, a: Any, axis: Any, out: Array | None, keepdims: Any
) -> Array:
    x, is_number = _split(a, fill)
    if is_number is not None and is_known(is_number):
        lanes = np.logical_not(value_of(is_number))
        if np.any(np.all(lanes, axis=axis)):
            raise ValueError("All-NaN slice encountered")
    return function.traced(x, axis, out, keepdims=keepdims)


@implements(np.nanargmax)
def nanargmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    *,
    keepdims: Any = NO_VALUE,
) -> Array:
    """First position of the maximum of what is no NaN."""
    return _position(reductions.argmax, -math.inf, a, axis, out, keepdims)


@implements(np.nanargmin)
def nanargmin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    *,
    keepdims: Any = NO_VALUE,
) -> Array:
    """First position of the minimum of what is no NaN."""
    return _position(reductions.argmin, math.inf, a, axis, out, keepdims)


def _numbers(a: ArrayLike, where: Any) -> tuple[Any, Any]:
    """The array with NaN replaced by 0, and the mask of what counts."""
    x, is_number = _split(a, 0)
    if is_number is None:
        return x, where
    if where is NO_VALUE or where is True:
        return x, is_number
    return x, ew.logical_and(as_array(where), is_number)


@implements(np.nanmean)
def nanmean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Array:
    """Mean of what is no NaN."""
    x, mask = _numbers(a, where)
    return means.mean.traced(x, axis, dtype, out, keepdims, where=mask)  # type: ignore[attr-defined]  # set by implements


@implements(np.nanvar)
def nanvar(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    ddof: ArrayLike = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Array:
    """Variance of what is no NaN."""
    x, mask = _numbers(a, where)
    return means.var.traced(  # type: ignore[attr-defined]  # set by implements
        x, axis, dtype, out, ddof, keepdims, where=mask, mean=mean, correction=correction
    )


@implements(np.nanstd)
def nanstd(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    ddof: ArrayLike = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Array:
    """Standard deviation of what is no NaN."""
    x, mask = _numbers(a, where)
    return means.std.traced(  # type: ignore[attr-defined]  # set by implements
        x, axis, dtype, out, ddof, keepdims, where=mask, mean=mean, correction=correction
    )
