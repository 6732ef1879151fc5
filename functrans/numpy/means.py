"""Means, variances and standard deviations.

Here: the moments with NumPy's options. The plain form of ``mean`` is two equations. Not here:
weighted means and covariances (``statistics``), variants that skip NaN (``nan_functions``).

Layer: ``numpy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import NO_VALUE, Shape, as_array, axes_of, count_of, flag, stored
from functrans.numpy.dispatch import implements
from functrans.numpy.reductions import ALL_AXES, is_masked, is_plain
from functrans.primitives import complex_parts, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.linalg.lstsq import norm_sqrt
from functrans.primitives.structural import cast, reduce_sum_p


def _mean_input(x: ArrayLike, dtype: DTypeLike | None) -> tuple[Any, Any]:
    """The operand in the dtype of the sum, and the dtype of the result where that differs."""
    own = dtype_of(x)
    if dtype is not None:
        return cast(x, dtype), None
    if own.kind in "biu":
        return cast(x, np.float64), None
    if own == np.float16:
        return cast(x, np.float32), own
    return x, None


def _selected(x: ArrayLike, where: ArrayLike) -> tuple[Any, Any]:
    """The operand with zeros where it is not selected, and the mask in its shape."""
    mask = as_array(where)
    x = ew.where(mask, x, 0)
    return x, structural.broadcast_to(mask, shape_of(x))


def _count(shape: Shape, axes: tuple[int, ...], mask: ArrayLike | None) -> Array | complex:
    """How many elements a reduction joins, of those that count where a mask is given."""
    if mask is None:
        return count_of(shape, axes)
    return structural.reduce_sum(cast(mask, np.int64), axes)


def _over_axes(result: ArrayLike, shape: Shape, axes: tuple[int, ...]) -> Any:
    """The result of a reduction in a shape that broadcasts to the operand's."""
    return (
        result
        if not shape_of(result)
        else structural.reshape(result, structural.kept_shape(shape, axes))
    )


@implements(np.mean)
def mean(
    a: ArrayLike,
    axis: object = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Any:
    """Arithmetic mean over axes."""
    if isinstance(a, Tracer) and is_plain(dtype, out, keepdims, NO_VALUE, where):
        shape = a.shape
        kind = a.dtype
        if shape and kind.kind in "fc" and kind != np.float16:
            axes = ALL_AXES[len(shape)] if axis is None else axes_of(axis, len(shape))
            if axes:
                return bind(reduce_sum_p, a, axes=axes)[0] / count_of(shape, axes)
    x, final = _mean_input(as_array(a), dtype)
    mask = None
    if is_masked(where):
        x, mask = _selected(x, where)
    shape = shape_of(x)
    axes = axes_of(axis, len(shape), of_scalar=mask is not None)
    total = structural.reduce_sum(x, axes)
    result = ew.divide(total, _divisor(_count(shape, axes, mask), total))
    if flag(keepdims):
        result = structural.reshape(result, structural.kept_shape(shape, axes))
    return stored("mean", result if final is None else cast(result, final), out)


def _divisor(count: ArrayLike, total: ArrayLike) -> Array | complex:
    """A count as a divisor that keeps the dtype of what it divides, and divides 0 into NaN."""
    if isinstance(count, int):
        return count if count else dtype_of(total).type(0)
    return cast(count, complex_parts.real_dtype(dtype_of(total)))


@implements(np.var)
def var(
    a: Array,
    axis: object = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Array:
    """Variance over axes, real also for complex operands."""
    if correction is not NO_VALUE:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x, final = _mean_input(as_array(a), dtype)
    mask = None
    summed = x
    if is_masked(where):
        summed, mask = _selected(x, where)
    shape = shape_of(summed)
    axes = axes_of(axis, len(shape), of_scalar=mask is not None)
    count = _count(shape, axes, mask)
    if mean is NO_VALUE:
        total = structural.reduce_sum(summed, axes)
        mean = _over_axes(ew.divide(total, _divisor(count, total)), shape, axes)
    deviation = ew.subtract(x, mean)
    if complex_parts.is_complex(deviation):
        re, im = complex_parts.real(deviation), complex_parts.imag(deviation)
        squares = re * re + im * im
    else:
        squares = ew.power(deviation, 2)
    if mask is not None:
        squares = ew.where(mask, squares, 0)
    total = structural.reduce_sum(squares, axes)
    freedom = count - ddof
    if isinstance(freedom, (int, float)):
        freedom = freedom if freedom > 0 else dtype_of(total).type(0)
    else:
        freedom = cast(ew.maximum(freedom, 0), dtype_of(total))
    result = ew.divide(total, freedom)
    if flag(keepdims):
        result = structural.reshape(result, structural.kept_shape(shape, axes))
    return stored("var", result if final is None else cast(result, final), out)


@implements(np.std)
def std(
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
) -> Any:
    """Standard deviation over axes; its derivative is 0 where it is 0, as that of a norm."""
    variance = var.traced(  # type: ignore[attr-defined]  # set by implements
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return stored("std", norm_sqrt(variance), out)
