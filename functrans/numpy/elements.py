"""Elementwise functions that are no ufuncs: clip, round, parts, sinc, i0, nan_to_num, interp, ...

Here: NumPy's functions that act on each element and need more than one primitive or options. Not
here: ufuncs (``ufuncs``), tests and comparisons (``logic``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.arrays.indexing import updated
from functrans.arrays.items import getitem
from functrans.arrays.writes import assign
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    as_operand,
    axis_of,
    fresh,
    holds,
    inexact,
    is_known,
    stored,
    value_of,
    view,
)
from functrans.numpy.cumulative import part
from functrans.numpy.dispatch import implements
from functrans.primitives import complex_parts, movement, sorting, structural
from functrans.primitives import cumulative as cum
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast

# clip, round ------------------------------------------------------------------------------------


@implements(np.clip)
def clip(
    a: ArrayLike,
    a_min: object = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Array | None = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: DTypeLike | None = None,
) -> Array:
    """Limit values to an interval; the derivative is 1 on the closed interval."""
    if min is not NO_VALUE or max is not NO_VALUE:
        if a_min is not NO_VALUE or a_max is not NO_VALUE:
            raise ValueError(
                "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is "
                "forbidden."
            )
        a_min, a_max = min, max
    x = as_operand(a)
    if dtype_of(x).kind in "iu":  # integers that lie outside of the dtype are no bounds
        info = np.iinfo(dtype_of(x))
        a_min = None if type(a_min) is int and a_min <= info.min else a_min
        a_max = None if type(a_max) is int and a_max >= info.max else a_max
    low, high = (
        None if bound is NO_VALUE or bound is None else as_operand(bound)
        for bound in (a_min, a_max)
    )
    if low is None and high is None:
        result = fresh(x)
    elif dtype_of(x).kind == "f" or (low is not None and high is not None):
        low = -math.inf if low is None else low
        high = math.inf if high is None else high
        result = ew.clip(x, low, high)
    else:
        result = ew.maximum(x, low) if high is None else ew.minimum(x, high)
    return stored("clip", result if dtype is None else cast(result, dtype), out)


@implements(np.round, np.around)
def round(a: ArrayLike, decimals: int = 0, out: Array | None = None) -> Array:  # NumPy's name
    """Round to a number of decimals, halves to even; the derivative is 0."""
    x = as_array(a)
    places = operator.index(decimals)
    dtype = dtype_of(x)
    if dtype.kind in "iu" and places >= 0:
        result = fresh(x)
    elif not places:
        result = ew.rint(x)
    elif places > 0:
        result = ew.divide(ew.rint(ew.multiply(x, 10.0**places)), 10.0**places)
    else:
        result = ew.multiply(ew.rint(ew.divide(x, 10.0**-places)), 10.0**-places)
        result = cast(result, dtype) if dtype.kind in "iu" else result
    return stored("round", result, out)


around = round


@implements(np.fix)
def fix(x: ArrayLike, out: Array | None = None) -> Array:
    """Round towards zero; the derivative is 0."""
    x = as_array(x)
    return stored("fix", fresh(x) if dtype_of(x).kind in "biu" else ew.trunc(x), out)


# complex parts ----------------------------------------------------------------------------------


@implements(np.real)
def real(val: Any) -> Array:
    """Real part; a view of a complex operand, a real operand itself."""
    x = as_array(val)
    return view(
        x,
        complex_parts.real(x),
        complex_parts.real,
        lambda base, new: complex_parts.complex_of(new, complex_parts.imag(base)),
    )


@implements(np.imag)
def imag(val: Any) -> Array:
    """Imaginary part; a view of a complex operand, zeros for a real one."""
    x = as_array(val)
    if not complex_parts.is_complex(x):
        return np.zeros(shape_of(x), dtype_of(x))
    return view(
        x,
        complex_parts.imag(x),
        complex_parts.imag,
        lambda base, new: complex_parts.complex_of(complex_parts.real(base), new),
    )


@implements(np.angle)
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Argument of complex numbers, in radians or degrees."""
    x = as_array(z)
    if complex_parts.is_complex(x):
        result = ew.arctan2(complex_parts.imag(x), complex_parts.real(x))
    else:  # a step: of sign and NaN of x only
        result = ew.arctan2(0, ew.trunc(x))
    return ew.multiply(result, 180 / math.pi) if deg else result


@implements(np.real_if_close)
def real_if_close(a: ArrayLike, tol: int = 100) -> Array:
    """The real part, if all imaginary parts are nearly zero; needs values."""
    x = as_array(a)
    if not complex_parts.is_complex(x):
        return x
    limit = tol if tol <= 1 else np.finfo(dtype_of(x)).eps * tol
    is_close = holds(np.all(ew.less(complex_parts.absolute(complex_parts.imag(x)), limit)))
    return complex_parts.real(x) if is_close else x


# special functions ------------------------------------------------------------------------------

_SERIES = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(9)]


@implements(np.sinc)
def sinc(x: ArrayLike) -> Array:
    """``sin(pi x) / (pi x)``, 1 at 0; all derivatives are exact near 0.

    Below 1/2 in magnitude of ``y = pi x`` it is summed as its Maclaurin series in ``y**2``, whose
    first term left out is below 1e-20.
    """
    y = ew.multiply(inexact(as_array(x)), math.pi)
    is_small = ew.less(complex_parts.absolute(y), 0.5)
    near = ew.where(is_small, y, 0)
    squares = near * near
    series: Any = _SERIES[-1]
    for coefficient in _SERIES[-2::-1]:
        series = series * squares + coefficient
    far = ew.where(is_small, 1, y)
    return ew.where(is_small, series, ew.sin(far) / far)


_NODES = 64


@implements(np.i0)
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind and order 0, for real operands up to 700.

    The mean of ``cosh(x cos(t))`` over ``[0, pi / 2]`` by the midpoint rule, whose error falls
    geometrically: with ``n`` nodes it is ``2 I_4n(x)``, below 1e-20 of the result. All terms of all
    derivatives have one sign. Half precision is summed in float32, since the sum may overflow.

    Reference: Trefethen & Weideman, The exponentially convergent trapezoidal rule, SIAM Review 56
    (2014).
    """
    operand = as_array(x)
    if complex_parts.is_complex(operand):
        raise TypeError("i0 not supported for complex values")
    operand = inexact(operand)
    shape, dtype = shape_of(operand), dtype_of(operand)
    inner = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    cosines = np.cos((np.arange(_NODES) + 0.5) * (math.pi / 2 / _NODES)).astype(inner)
    column = structural.reshape(structural.cast(operand, inner), (*shape, 1))
    terms = ew.cosh(ew.multiply(column, cosines)) * (1 / _NODES)
    return structural.cast(structural.reduce_sum(terms, (len(shape),)), dtype)


# repair -----------------------------------------------------------------------------------------


@implements(np.nan_to_num)
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Any:
    """NaN and infinities replaced by numbers; their derivative is 0."""
    operand: Any = as_array(x)
    dtype = dtype_of(operand)
    if dtype.kind not in "fc":
        return fresh(operand) if copy else operand if shape_of(operand) else operand[()]
    limits = np.finfo(dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf

    def repaired(values: ArrayLike) -> Array:
        kind = dtype_of(values)
        values = ew.where(ew.isnan(values), cast(nan, kind), values)
        values = ew.where(ew.equal(values, math.inf), cast(high, kind), values)
        return ew.where(ew.equal(values, -math.inf), cast(low, kind), values)

    if dtype.kind == "c":
        result = complex_parts.complex_of(
            repaired(complex_parts.real(operand)), repaired(complex_parts.imag(operand))
        )
    else:
        result = repaired(operand)
    if copy or not isinstance(operand, Tracer):
        return result
    assign(operand, result)
    return operand if shape_of(operand) else getitem(operand, ())


@implements(np.unwrap)
def unwrap(p: Array, discont: Any = None, axis: object = -1, *, period: Any = 2 * math.pi) -> Array:
    """Phases without jumps larger than half a period."""
    x = as_array(p)
    k = axis_of(axis, len(shape_of(x)))
    difference = ew.not_equal if dtype_of(x).kind == "b" else ew.subtract  # as numpy.diff
    step = difference(part(x, k, 1, None), part(x, k, None, -1))
    limit = period / 2 if discont is None else discont
    dtype = np.result_type(dtype_of(step), period)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        is_even = rest == 0
    else:
        high, is_even = period / 2, True
    low = -high
    folded = ew.add(ew.remainder(ew.subtract(step, low), period), low)
    if is_even:  # a jump of exactly half a period upwards stays one
        folded = ew.where(ew.equal(folded, low) & ew.greater(step, 0), high, folded)
    jumps = ew.where(ew.less(complex_parts.absolute(step), limit), 0, ew.subtract(folded, step))
    head = cast(part(x, k, 0, 1), dtype)
    tail = ew.add(part(x, k, 1, None), cum.cumsum(cast(jumps, dtype), k))
    return movement.concatenate((head, cast(tail, dtype)), k, dtype)


# copies -----------------------------------------------------------------------------------------


@implements(np.copy)
def copy(a: ArrayLike, order: str = "K", subok: bool = False) -> Any:
    """The same values with memory of their own."""
    return fresh(as_array(a), order)


@implements(np.astype)
def astype(
    x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = True, device: Any = None
) -> Any:
    """Convert to a dtype."""
    if device not in ("cpu", None):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
    result = cast(as_array(x), dtype)
    return fresh(result, "K") if copy and result is x else result


# interpolation ----------------------------------------------------------------------------------


@implements(np.interp)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: Any = None,
) -> Array:
    """Linear interpolation between points, constant outside; at a point the slope to its right."""
    x, points, values = as_array(x), as_array(xp), as_array(fp)
    for name, operand in (("x", x), ("xp", points)):
        if complex_parts.is_complex(operand):
            raise TypeError(f"interp: {name} must be real, got {dtype_of(operand)}; see also fp")
    x, points = cast(x, np.float64), cast(points, np.float64)
    values = cast(values, np.complex128 if complex_parts.is_complex(values) else np.float64)
    if len(shape_of(points)) != 1 or shape_of(points) != shape_of(values):
        raise ValueError("fp and xp are not of the same length.")
    n = shape_of(points)[0]
    if not n:
        raise ValueError("array of sample points is empty")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period = abs(period)
        x, points = ew.remainder(x, period), ew.remainder(points, period)
        order = sorting.argsort(points, 0)
        points, values = gather(points, (order,), (0,)), gather(values, (order,), (0,))
        ends = [ew.subtract(part(points, 0, -1, None), period)]
        ends += [points, ew.add(part(points, 0, 0, 1), period)]
        points = movement.concatenate(ends, 0)
        values = movement.concatenate((part(values, 0, -1, None), values, part(values, 0, 0, 1)), 0)
        left = right = None
        n += 2
    first, last = gather(points, (0,), (0,)), gather(points, (n - 1,), (0,))
    below = gather(values, (0,), (0,)) if left is None else left
    above = gather(values, (n - 1,), (0,)) if right is None else right
    if n == 1:
        inner = gather(values, (0,), (0,))
    else:
        node = ew.subtract(sorting.searchsorted(points, x, "right"), 1)
        i = ew.clip(node, 0, n - 2)
        x0, f0 = gather(points, (i,), (0,)), gather(values, (i,), (0,))
        x1, f1 = gather(points, (ew.add(i, 1),), (0,)), gather(values, (ew.add(i, 1),), (0,))
        is_step = ew.equal(x0, x1)  # the last point is double
        slope = ew.where(is_step, 0, f1 - f0) / ew.where(is_step, 1, x1 - x0)
        at_end = ew.greater(node, n - 2)
        from_right = f1 + ew.mul_strong_zero(x - x1, slope)
        inner = ew.where(at_end, from_right, f0 + ew.mul_strong_zero(x - x0, slope))
        # An infinite point beside: from the other one, or both are the same infinity.
        inner = ew.where(ew.isnan(inner), from_right, inner)
        is_exact = ew.where(at_end, ew.equal(x, x1), ew.equal(x, x0))
        is_lost = ew.isnan(inner) & (is_exact | (ew.equal(f0, f1) & ew.equal(x, x)))
        inner = ew.where(is_lost, ew.where(at_end, f1, f0), inner)
    result = ew.where(ew.less(x, first), below, ew.where(ew.greater(x, last), above, inner))
    return structural.broadcast_to(result, shape_of(x))


# piecewise --------------------------------------------------------------------------------------


def _conditions(condlist: Any, ndim: int) -> list[Any]:
    """The conditions; a single one stands for a list of one."""
    if isinstance(condlist, (list, tuple)):
        is_one = ndim > 0 and not isinstance(condlist[0], (list, np.ndarray, Tracer))
        return [condlist] if is_one else list(condlist)
    return [condlist] if len(shape_of(condlist)) <= ndim else list(condlist)


@implements(np.piecewise)
def piecewise(
    x: ArrayLike, condlist: ArrayLike, funclist: Array, *args: Any, **kw: object
) -> Array:
    """Functions applied where their conditions hold; a last one where none does."""
    x = as_array(x)
    masks = [_mask_of(x, c) for c in _conditions(condlist, len(shape_of(x)))]
    functions = list(funclist)
    if len(functions) == len(masks) + 1:
        other: Any = masks[0]
        for mask in masks[1:]:
            other = ew.logical_or(other, mask)
        masks.append(ew.logical_not(other))
    elif len(functions) != len(masks):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions "
            "are expected"
        )
    result: Any = np.zeros(shape_of(x), dtype_of(x))
    for mask, function in zip(masks, functions, strict=True):
        value = function
        if callable(function):
            if is_known(mask) and shape_of(mask) == shape_of(x):
                result = _applied_where(x, result, np.asarray(value_of(mask)), function, args, kw)
                continue
            value = function(x, *args, **kw)
        result = ew.where(mask, cast(value, dtype_of(x)), result)
    return result


def _mask_of(x: ArrayLike, condition: ArrayLike) -> Array:
    """A condition on leading axes of ``x`` as a mask in as many axes."""
    mask = cast(as_array(condition), bool)
    shape, own = shape_of(x), shape_of(mask)
    if own != shape[: len(own)]:
        raise ShapeError(
            f"piecewise: a condition has shape {own}, where x has shape {shape}; the shapes must "
            "be equal"
        )
    return structural.reshape(mask, own + (1,) * (len(shape) - len(own)))


def _applied_where(
    x: Any, result: ArrayLike, mask: np.ndarray, function: Any, args: Any, kw: Any
) -> Any:
    """``result[mask] = function(x[mask])`` for a mask that has values."""
    from_x = x[mask]
    if not shape_of(from_x)[0]:
        return result
    value = function(from_x, *args, **kw)
    return updated(result, mask, cast(as_array(value), dtype_of(x)))
