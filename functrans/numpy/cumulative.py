"""Running sums and products, differences, gradients and the trapezoidal rule.

Here: ``cumsum``, ``cumprod`` and their variants that skip NaN or include the start, ``diff``,
``ediff1d``, ``gradient``, ``trapezoid``. Not here: the running reductions as primitives
(``primitives.cumulative``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    as_operand,
    axis_of,
    inexact,
    listed_axes,
    stored,
)
from functrans.numpy.dispatch import implements
from functrans.numpy.reductions import widened
from functrans.primitives import cumulative as cum
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, normalize_axis, reduce_sum

# running sums and products ----------------------------------------------------------------------


def accumulated(
    name: str,
    function: Callable[..., Any],
    a: ArrayLike,
    axis: int | Sequence[int] | None,
    dtype: DTypeLike | None,
    out: Array | None,
) -> Array:
    """A running reduction along an axis, of the flattened operand for ``None``."""
    x = as_array(a)
    x = cast(x, widened(dtype_of(x)) if dtype is None else dtype)
    if axis is None:
        x = structural.reshape(x, (math.prod(shape_of(x)),))
        axis = 0
    elif not shape_of(x):
        x = structural.reshape(x, (1,))
    return stored(name, function(x, axis_of(axis, len(shape_of(x)))), out)


@implements(np.cumsum)
def cumsum(
    a: Any,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """Sums of all prefixes along an axis."""
    return accumulated("cumsum", cum.cumsum, a, axis, dtype, out)


@implements(np.cumprod)
def cumprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """Products of all prefixes along an axis."""
    return accumulated("cumprod", cum.cumprod, a, axis, dtype, out)


@implements(np.nancumsum)
def nancumsum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """Sums of all prefixes, NaN taken as 0."""
    return accumulated("nancumsum", cum.cumsum, _without_nan(a, 0), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """Products of all prefixes, NaN taken as 1."""
    return accumulated("nancumprod", cum.cumprod, _without_nan(a, 1), axis, dtype, out)


def _without_nan(a: ArrayLike, fill: int) -> Array:
    x = as_array(a)
    return ew.where(ew.isnan(x), fill, x) if dtype_of(x).kind in "fc" else x


def _cumulative(
    name: str,
    function: Callable[..., Any],
    x: ArrayLike,
    axis: int | Sequence[int] | None,
    dtype: DTypeLike | None,
    out: Array | None,
    first: int | None,
) -> Array:
    x = as_array(x)
    if axis is None:
        if len(shape_of(x)) > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` is required.")
        axis = 0
    if isinstance(axis, tuple):
        if len(axis) != 1:
            raise ValueError(f"{name}: axis must be one axis, got {axis}{here()}")
        (axis,) = axis
    result = accumulated(name, function, x, axis, dtype, None)
    if first is not None:
        shape = list(shape_of(result))
        k = axis_of(axis, len(shape))
        shape[k] = 1
        start = np.full(shape, first, dtype_of(result))
        result = movement.concatenate((start, result), k)
    return stored(name, result, out)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    include_initial: bool = False,
) -> Array:
    """Sums of all prefixes, with the empty one in front on demand."""
    first = 0 if include_initial else None
    return _cumulative("cumulative_sum", cum.cumsum, x, axis, dtype, out, first)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    include_initial: bool = False,
) -> Array:
    """Products of all prefixes, with the empty one in front on demand."""
    first = 1 if include_initial else None
    return _cumulative("cumulative_prod", cum.cumprod, x, axis, dtype, out, first)


# differences ------------------------------------------------------------------------------------


def part(
    x: ArrayLike, axis: int, start: int | None, stop: int | None, step: int | None = None
) -> Any:
    """A slice along one axis."""
    return slice_index(x, BasicIndex((*(slice(None),) * axis, slice(start, stop, step))))


@implements(np.diff)
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int | Sequence[int] | None = -1,
    prepend: Any = NO_VALUE,
    append: Any = NO_VALUE,
) -> Any:
    """Differences of neighbours along an axis, ``n`` times."""
    x = as_array(a)
    order = operator.index(n)
    if order < 0:
        raise ValueError(f"order must be non-negative but got {order}")
    if not order:
        return x
    shape = shape_of(x)
    if not shape:
        raise ValueError("diff requires input that is at least one dimensional")
    k = normalize_axis(axis, len(shape), "axis")
    pieces = [x]
    for margin, is_end in ((prepend, False), (append, True)):
        if margin is not NO_VALUE:
            extra = as_array(margin)
            if not shape_of(extra):
                extra = structural.broadcast_to(extra, (*shape[:k], 1, *shape[k + 1 :]))
            pieces.insert(len(pieces) if is_end else 0, extra)
    if len(pieces) > 1:
        x = movement.concatenate(pieces, k)
    minus = ew.not_equal if dtype_of(x).kind == "b" else ew.subtract
    for _ in range(order):
        x = minus(part(x, k, 1, None), part(x, k, None, -1))
    return x


@implements(np.ediff1d)
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Differences of neighbours of the flattened array, with values before and behind."""
    x = as_array(ary)
    x = structural.reshape(x, (math.prod(shape_of(x)),))
    pieces = [ew.subtract(part(x, 0, 1, None), part(x, 0, None, -1))]
    for margin, is_end in ((to_begin, False), (to_end, True)):
        if margin is not None:
            extra = as_array(margin)
            if not np.can_cast(dtype_of(extra), dtype_of(x), "same_kind"):
                side = "to_end" if is_end else "to_begin"
                raise TypeError(
                    f"dtype of `{side}` must be compatible with input `ary` under the `same_kind` "
                    "rule."
                )
            extra = structural.reshape(cast(extra, dtype_of(x)), (math.prod(shape_of(extra)),))
            pieces.insert(len(pieces) if is_end else 0, extra)
    return movement.concatenate(pieces, 0) if len(pieces) > 1 else pieces[0]


# gradient ---------------------------------------------------------------------------------------


def _spacings(varargs: tuple[Any, ...], axes: tuple[int, ...], shape: tuple[int, ...]) -> list[Any]:
    """Per axis a number, or the distances of its points."""
    if not varargs:
        return [1.0] * len(axes)
    given = [as_operand(v) for v in varargs]
    if len(given) == 1 and not shape_of(given[0]):
        return given * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    spacings = []
    for points, k in zip(given, axes, strict=True):
        own = shape_of(points)
        if not own:
            spacings.append(points)
            continue
        if len(own) != 1:
            raise ValueError("distances must be either scalars or 1d")
        if own[0] != shape[k]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        points = inexact(points)  # in floating point
        spacings.append(ew.subtract(part(points, 0, 1, None), part(points, 0, None, -1)))
    return spacings


def _derivative(f: ArrayLike, h: Array, axis: int, edge_order: int) -> Array:
    """Second-order differences inside, first- or second-order ones at the ends.

    For distances ``a`` before and ``b`` behind a point, Lagrange's interpolation gives the weights
    ``-b / (a (a + b))``, ``(b - a) / (a b)``, ``a / (b (a + b))``.
    """
    n = shape_of(f)[axis]
    left, mid, right = part(f, axis, None, -2), part(f, axis, 1, -1), part(f, axis, 2, None)

    def at(i: int) -> Any:
        return part(f, axis, i, i + 1 if i != -1 else None)

    if not shape_of(h):
        inner = (right - left) / (2.0 * h)
        first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
        if edge_order == 2:
            first = (-1.5 * at(0) + 2.0 * at(1) - 0.5 * at(2)) / h
            last = (0.5 * at(-3) - 2.0 * at(-2) + 1.5 * at(-1)) / h
        return movement.concatenate((first, inner, last), axis)
    h = structural.reshape(h, (n - 1,) + (1,) * (len(shape_of(f)) - axis - 1))
    before, behind = part(h, 0, None, -1), part(h, 0, 1, None)
    both = before + behind
    inner = (
        left * (-behind / (before * both))
        + mid * ((behind - before) / (before * behind))
        + right * (before / (behind * both))
    )
    first = (at(1) - at(0)) / part(h, 0, 0, 1)
    last = (at(-1) - at(-2)) / part(h, 0, -1, None)
    if edge_order == 2:
        a, b = part(h, 0, 0, 1), part(h, 0, 1, 2)
        first = (
            at(0) * (-(2.0 * a + b) / (a * (a + b)))
            + at(1) * ((a + b) / (a * b))
            + at(2) * (-a / (b * (a + b)))
        )
        a, b = part(h, 0, -2, -1), part(h, 0, -1, None)
        last = (
            at(-3) * (b / (a * (a + b)))
            + at(-2) * (-(b + a) / (a * b))
            + at(-1) * ((2.0 * b + a) / (b * (a + b)))
        )
    return movement.concatenate((first, inner, last), axis)


@implements(np.gradient)
def gradient(
    f: ArrayLike, *varargs: Array, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any:
    """Finite differences along axes, for uniform or given points."""
    x = inexact(as_array(f))
    shape = shape_of(x)
    axes = listed_axes(axis, len(shape))
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    results = []
    for k, h in zip(axes, _spacings(varargs, axes, shape), strict=True):
        if shape[k] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order "
                f"+ 1) elements are required{here()}."
            )
        results.append(_derivative(x, h, k, edge_order))
    return results[0] if len(results) == 1 else tuple(results)


@implements(np.trapezoid)
def trapezoid(
    y: ArrayLike, x: Any = None, dx: ArrayLike = 1.0, axis: int | Sequence[int] | None = -1
) -> Array:
    """Integral by the trapezoidal rule along an axis."""
    y = as_array(y)
    ndim = len(shape_of(y))
    k = axis_of(axis, ndim)
    if x is None:
        distance = as_operand(dx)
    else:
        points = as_array(x)
        if len(shape_of(points)) == 1:
            distance = ew.subtract(part(points, 0, 1, None), part(points, 0, None, -1))
            distance = structural.reshape(distance, shape_of(distance) + (1,) * (ndim - k - 1))
        else:
            own = normalize_axis(axis, len(shape_of(points)), "axis")
            distance = ew.subtract(part(points, own, 1, None), part(points, own, None, -1))
    pairs = ew.add(part(y, k, 1, None), part(y, k, None, -1))
    areas = ew.divide(ew.multiply(distance, pairs), 2.0)
    return reduce_sum(areas, (normalize_axis(axis, len(shape_of(areas)), "axis"),))
