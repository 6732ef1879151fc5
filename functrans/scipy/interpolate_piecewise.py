"""Piecewise polynomials of ``scipy.interpolate``: ``PPoly`` and the interpolants made of it.

Here: ``PPoly``, cubic splines with all boundary conditions, Hermite, monotone and Akima's
interpolants. Not here: splines in the basis of B-splines (``interpolate_splines``).

A ``PPoly`` is a pytree of its coefficients and break points: it may be an argument or a result of
every transform, and is differentiable in data, abscissas and points of evaluation.

Layer: ``scipy``.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import layout_of
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.structural import cast, normalize_axis
from functrans.records import dataclass
from functrans.scipy.dispatch import common_floating, floats
from functrans.scipy.reprs import summary

_STATIC = {"static": True}


def periodic(x: Any, start: Any, stop: Any) -> Array:
    """Points moved by whole periods into an interval."""
    return start + (x - start) % (stop - start)


def outside(x: Any, start: Array, stop: Array) -> Array:
    """Which points are not in a closed interval."""
    return (x < start) | (x > stop)


def to_axis(out: Array | None, point_ndim: int, axis: int) -> Any:
    """Move the axes of the points from the front to where the interpolated axis was."""
    if not axis:
        return out
    order = list(range(len(shape_of(out))))
    moved = order[point_ndim : point_ndim + axis] + order[:point_ndim] + order[point_ndim + axis :]
    return fnp.transpose(out, tuple(moved))


def columns(x: ArrayLike, ndim: int) -> Any:
    """``x`` with axes of extent 1 after its own, to broadcast against ``[*x.shape, ...]``."""
    return fnp.reshape(x, (*shape_of(x), *(1,) * ndim))


@dataclass(frozen=True, slots=True, eq=False)
class PPoly:
    """A piecewise polynomial, as ``scipy.interpolate.PPoly``; a pytree.

    Attributes:
      c: coefficients ``[k, m, ...]``, the highest power first, of ``x`` less the left break point.
      x: break points ``[m + 1]``, ascending.
      extrapolate: whether the outermost pieces go on; false gives NaN there, ``"periodic"``
        repeats.
      axis: the axis of the data along which they were interpolated.
      kind: the name of SciPy's class, as it prints.

    Example:
      >>> p = PPoly(np.array([[1.0], [0.0]]), np.array([0.0, 2.0]))
      >>> float(p(1.5)), float(p.integrate(0.0, 2.0))
      (1.5, 2.0)
    """

    c: Any
    x: Any
    extrapolate: Any = dataclasses.field(default=True, metadata=_STATIC)
    axis: int = dataclasses.field(default=0, metadata=_STATIC)
    kind: str = dataclasses.field(default="PPoly", metadata=_STATIC)

    def __repr__(self) -> str:
        """``CubicSpline(c=f64[4,9], x=f64[10], extrapolate=True, axis=0)``."""
        fields = {"c": self.c, "x": self.x, "extrapolate": self.extrapolate, "axis": self.axis}
        return summary(self.kind, fields)

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: Any = None) -> Array:
        """Values, or derivatives of order ``nu``, at points of any shape."""
        how = self.extrapolate if extrapolate is None else extrapolate
        (x,) = floats(x)
        knots = fnp.asarray(self.x)
        c = fnp.asarray(self.c)
        first, last = knots[0], knots[-1]
        beyond = outside(x, first, last)
        if how == "periodic":
            x = periodic(x, first, last)
        pieces = shape_of(c)[1]
        place = fnp.clip(fnp.searchsorted(knots, x, side="right") - 1, 0, pieces - 1)
        rest = len(shape_of(c)) - 2
        step = columns(x - fnp.take(knots, place), rest)
        local = fnp.take(c, place, axis=1)
        degree = shape_of(c)[0] - 1
        total: Any = None
        for k in range(degree - nu + 1):
            factor = math.perm(degree - k, nu)
            term = local[k] if factor == 1 else local[k] * factor
            total = term if total is None else total * step + term
        if total is None:
            total = local[0] * 0
        if not how:
            total = fnp.where(columns(beyond, rest), np.nan, total)
        return to_axis(total, len(shape_of(x)), self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of order ``nu``; the antiderivative if it is negative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = fnp.asarray(self.c)
        k = shape_of(c)[0]
        if nu >= k:
            return dataclasses.replace(self, c=c[:1] * 0, kind="PPoly")
        factors = np.array([math.perm(k - 1 - i, nu) for i in range(k - nu)], float)
        kept = c[: k - nu] * factors.astype(dtype_of(c)).reshape(-1, *(1,) * (len(shape_of(c)) - 1))
        return dataclasses.replace(self, c=kept, kind="PPoly")

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The antiderivative of order ``nu`` that vanishes at the first break point."""
        if nu < 0:
            return self.derivative(-nu)
        out = self
        for _ in range(nu):
            c, knots = fnp.asarray(out.c), fnp.asarray(out.x)
            k, rest = shape_of(c)[0], len(shape_of(c)) - 2
            powers = np.arange(k, 0, -1).astype(dtype_of(c)).reshape(-1, *(1,) * (rest + 1))
            raised = c / powers
            widths = columns(fnp.diff(knots), rest)
            pieces = raised[0]
            for i in range(1, k):
                pieces = pieces * widths + raised[i]
            ends = fnp.cumsum(pieces * widths, axis=0)
            starts = fnp.concatenate((ends[:1] * 0, ends[:-1]))
            extrapolate = False if out.extrapolate == "periodic" else out.extrapolate
            out = PPoly(fnp.concatenate((raised, starts[None])), knots, extrapolate, out.axis)
        return out

    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: object = None) -> Any:
        """The integral from ``a`` to ``b``, which may be traced."""
        how = self.extrapolate if extrapolate is None else extrapolate
        whole = dataclasses.replace(self, extrapolate=True, axis=0).antiderivative()
        if how == "periodic":
            knots = fnp.asarray(self.x)
            first, last = knots[0], knots[-1]
            total = whole(last)

            def upto(x: ArrayLike) -> Array:
                return fnp.floor((x - first) / (last - first)) * total + whole(
                    periodic(x, first, last)
                )

            return upto(b) - upto(a)
        out = whole(b) - whole(a)
        if not how:
            beyond = outside(a, self.x[0], self.x[-1]) | outside(b, self.x[0], self.x[-1])
            out = fnp.where(beyond, np.nan, out)
        return out


# interpolants -----------------------------------------------------------------------------------


def checked(name: str, x: Any, y: ArrayLike, axis: int, least: int = 2) -> tuple[Any, Any, int]:
    """Abscissas, data with the interpolated axis in front, and that axis.

    Raises:
      ShapeError: they do not fit.
      ValueError: abscissas that are known do not ascend.
    """
    x, y = floats(x, y)
    axis = normalize_axis(axis, len(shape_of(y)), "axis")
    n = shape_of(x)[0] if len(shape_of(x)) == 1 else -1
    if n < least or shape_of(y)[axis] != n:
        raise ShapeError(
            f"{name}: abscissas of shape {shape_of(x)} do not fit data of shape {shape_of(y)} "
            f"along axis {axis}{here()}; expected a vector of at least {least} elements, "
            "one per sample"
        )
    known = layout_of(x) if isinstance(x, Tracer) else x
    if known is not None and not (known[1:] > known[:-1]).all():
        raise ValueError(f"{name}: abscissas must ascend strictly{here()}")
    dtype = common_floating(x, y)
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    return cast(x, real), fnp.moveaxis(cast(y, dtype), axis, 0), axis


def hermite(
    x: ArrayLike,
    y: Array,
    slopes: Array,
    extrapolate: object,
    axis: int,
    kind: str = "CubicHermiteSpline",
) -> PPoly:
    """The cubic of given values and slopes at break points."""
    widths = columns(fnp.diff(x), len(shape_of(y)) - 1)
    secants = fnp.diff(y, axis=0) / widths
    bend = (slopes[:-1] + slopes[1:] - 2 * secants) / widths
    c = fnp.stack((bend / widths, (secants - slopes[:-1]) / widths - bend, slopes[:-1], y[:-1]))
    return PPoly(c, x, True if extrapolate is None else extrapolate, axis, kind)


def CubicHermiteSpline(  # noqa: N802  # SciPy's name of a class
    x: ArrayLike, y: ArrayLike, dydx: object, axis: int = 0, extrapolate: object = None
) -> PPoly:
    """The piecewise cubic of given values and slopes, as SciPy's class of the same name."""
    knots, values, own = checked("CubicHermiteSpline", x, y, axis)
    slopes = fnp.moveaxis(floats(dydx)[0], own, 0)
    return hermite(knots, values, slopes, extrapolate, own)


def PchipInterpolator(  # noqa: N802  # SciPy's name
    x: ArrayLike, y: ArrayLike, axis: int = 0, extrapolate: object = None
) -> PPoly:
    """The monotone piecewise cubic, as ``scipy.interpolate.PchipInterpolator``.

    Reference: Fritsch & Butland, A method for constructing local monotone piecewise cubic
    interpolants, SIAM J. Sci. Stat. Comput. 5 (1984).
    """
    knots, values, own = checked("PchipInterpolator", x, y, axis)
    widths = columns(fnp.diff(knots), len(shape_of(values)) - 1)
    secants = fnp.diff(values, axis=0) / widths
    if shape_of(knots)[0] == 2:
        return hermite(
            knots,
            values,
            fnp.concatenate((secants, secants)),
            extrapolate,
            own,
            "PchipInterpolator",
        )
    left, right = secants[:-1], secants[1:]
    is_flat = (fnp.sign(left) != fnp.sign(right)) | (left == 0) | (right == 0)
    w1, w2 = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    safe_left, safe_right = fnp.where(is_flat, 1, left), fnp.where(is_flat, 1, right)
    mean = (w1 / safe_left + w2 / safe_right) / (w1 + w2)
    inner = fnp.where(is_flat, 0, 1 / mean)
    ends = []
    for h0, h1, m0, m1 in (
        (widths[0], widths[1], secants[0], secants[1]),
        (widths[-1], widths[-2], secants[-1], secants[-2]),
    ):
        d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
        turns = (fnp.sign(m0) != fnp.sign(m1)) & (fnp.abs(d) > 3 * fnp.abs(m0))
        d = fnp.where(turns, 3 * m0, d)
        ends.append(fnp.where(fnp.sign(d) != fnp.sign(m0), 0, d)[None])
    slopes = fnp.concatenate((ends[0], inner, ends[1]))
    return hermite(knots, values, slopes, extrapolate, own, "PchipInterpolator")


def Akima1DInterpolator(  # noqa: N802  # SciPy's name of a class
    x: ArrayLike, y: ArrayLike, axis: int = 0, *, method: str = "akima", extrapolate: object = None
) -> PPoly:
    """Akima's piecewise cubic, as ``scipy.interpolate.Akima1DInterpolator``.

    Args:
      x: abscissas ``[n]``.
      y: data.
      axis: the axis of the data.
      method: ``"akima"`` or ``"makima"``, which is flatter where slopes are equal.
      extrapolate: by default NaN outside.

    Reference: Akima, A new method of interpolation and smooth curve fitting, J. ACM 17 (1970).
    """
    if method not in ("akima", "makima"):
        raise ValueError(f"Akima1DInterpolator: method={method!r}; expected 'akima' or 'makima'")
    knots, values, own = checked("Akima1DInterpolator", x, y, axis)
    how = False if extrapolate is None else extrapolate
    widths = columns(fnp.diff(knots), len(shape_of(values)) - 1)
    inner = fnp.diff(values, axis=0) / widths
    if shape_of(knots)[0] == 2:
        return hermite(
            knots, values, fnp.concatenate((inner, inner)), how, own, "Akima1DInterpolator"
        )
    below = 2 * inner[0] - inner[1]
    above = 2 * inner[-1] - inner[-2]
    m = fnp.concatenate(
        (
            (2 * below - inner[0])[None],
            below[None],
            inner,
            above[None],
            (2 * above - inner[-1])[None],
        )
    )
    gaps = fnp.abs(fnp.diff(m, axis=0))
    if method == "makima":
        means = fnp.abs(m[1:] + m[:-1])
        first, second = gaps[2:] + 0.5 * means[2:], gaps[:-2] + 0.5 * means[:-2]
    else:
        first, second = gaps[2:], gaps[:-2]
    total = first + second
    size = layout_of(total) if isinstance(total, Tracer) else total
    limit = 1e-9 * (fnp.max(total) if size is None else np.max(size, initial=0.0))
    is_even = total <= limit
    safe = fnp.where(is_even, 1, total)
    weighed = (first * m[1:-2] + second * m[2:-1]) / safe
    plain = 0.5 * (m[3:] + m[:-3])
    return hermite(
        knots, values, fnp.where(is_even, plain, weighed), how, own, "Akima1DInterpolator"
    )


# cubic splines ----------------------------------------------------------------------------------

_ENDS = {"clamped": (1, 0.0), "natural": (2, 0.0)}


def _conditions(bc_type: object, shape: tuple[int, ...], dtype: np.dtype) -> list[Any]:
    """The condition at either end: a name, or order and value."""
    if isinstance(bc_type, str):
        pair = [bc_type, bc_type]
    elif isinstance(bc_type, (tuple, list)) and len(bc_type) == 2:
        pair = list(bc_type)
    else:
        raise ValueError(f"CubicSpline: bc_type={bc_type!r}; expected a name or one for each end")
    if "periodic" in (one for one in pair if isinstance(one, str)) and pair[0] != pair[1]:
        raise ValueError("CubicSpline: 'periodic' must be given for both ends")
    out = []
    for one in pair:
        if isinstance(one, str):
            if one not in (*_ENDS, "not-a-knot", "periodic"):
                raise ValueError(
                    f"CubicSpline: bc_type={one!r}; expected 'not-a-knot', 'periodic', 'clamped', "
                    f"'natural' or (order, value){here()}"
                )
            out.append(_ENDS.get(one, one))
            continue
        order, value = one
        if order not in (1, 2):
            raise ValueError(f"CubicSpline: a derivative of order {order}; expected 1 or 2{here()}")
        out.append((order, fnp.broadcast_to(cast(floats(value)[0], dtype), shape)))
    return out


def CubicSpline(  # noqa: N802  # SciPy's name of a class
    x: ArrayLike, y: ArrayLike, axis: int = 0, bc_type: str = "not-a-knot", extrapolate: Any = None
) -> PPoly:
    """The interpolating cubic spline, as ``scipy.interpolate.CubicSpline``.

    Args:
      x: abscissas ``[n]``, ascending.
      y: data, ``n`` along ``axis``.
      axis: the axis of the data.
      bc_type: ``"not-a-knot"``, ``"periodic"``, ``"clamped"``, ``"natural"``, or a pair of these or
        of ``(order, value)``: a first or second derivative at that end.
      extrapolate: whether to go on beyond the ends; by default so, periodically for
        ``"periodic"``.

    Returns:
      A :class:`PPoly`, differentiable in ``x``, ``y`` and the values of ``bc_type``.

    Raises:
      ShapeError: shapes do not fit.
      ValueError: the abscissas do not ascend, or a condition is unknown.

    Example:
      >>> import functrans as ft
      >>> x = np.array([0.0, 1.0, 2.0, 3.0])
      >>> round(float(ft.grad(lambda t: CubicSpline(x, x**3)(t))(1.5)), 12)
      6.75

    Reference: de Boor, A Practical Guide to Splines (2001), ch. 4.
    """
    knots, values, own = checked("CubicSpline", x, y, axis)
    first, last = _conditions(bc_type, shape_of(values)[1:], dtype_of(values))
    n, rest = shape_of(knots)[0], len(shape_of(values)) - 1
    if extrapolate is None:
        extrapolate = "periodic" if first == "periodic" else True
    if first == "periodic":
        _check_periodic(values)
    widths = fnp.diff(knots)
    wide = columns(widths, rest)
    secants = fnp.diff(values, axis=0) / wide
    if n == 2:
        ends = [
            (1, secants[0] if first == "not-a-knot" else 0.0) if isinstance(one, str) else one
            for one in (first, last)
        ]
        first, last = ends
    if n == 3 and first == last == "not-a-knot":
        h0, h1 = widths[0], widths[1]
        curve = (secants[1] - secants[0]) / (h0 + h1)
        slopes = fnp.stack(
            (secants[0] - h0 * curve, secants[0] + h0 * curve, secants[1] + h1 * curve)
        )
    elif n == 3 and first == "periodic":
        middle = fnp.sum(secants / wide, axis=0) / fnp.sum(1 / wide, axis=0)
        slopes = fnp.stack((middle, middle, middle))
    elif first == "periodic":
        slopes = _periodic_slopes(widths, wide, secants)
    else:
        slopes = _slopes(widths, wide, secants, first, last)
    return hermite(knots, values, slopes, extrapolate, own, "CubicSpline")


def _check_periodic(values: Any) -> None:
    known = layout_of(values) if isinstance(values, Tracer) else values
    if known is not None and not np.allclose(known[0], known[-1], rtol=1e-15, atol=1e-15):
        raise ValueError(f"CubicSpline: periodic data must end with their first value{here()}")


def _solve(lower: ArrayLike, main: ArrayLike, upper: Array, b: Array) -> Array:
    """A tridiagonal system for ``[n, ...]``."""
    dtype = common_floating(main, b)
    zero = np.zeros(1, dtype_of(main))
    bands = fnp.stack((fnp.concatenate((zero, upper)), main, fnp.concatenate((lower, zero))))
    flat = fnp.reshape(b, (shape_of(b)[0], math.prod(shape_of(b)[1:])))
    out = linalg.banded_solve(cast(bands, dtype), cast(flat, dtype), (1, 1))
    return fnp.reshape(out, shape_of(b))


def _slopes(widths: Any, wide: Any, secants: Any, first: Array, last: Array) -> Array:
    """Slopes at the break points, from continuity of the second derivative."""
    inner = 3 * (wide[1:] * secants[:-1] + wide[:-1] * secants[1:])
    main = [2 * (widths[:-1] + widths[1:])]
    lower, upper, b = [widths[1:]], [widths[:-1]], [inner]

    def end(
        condition: Any, h: Any, k: Any, secant: Any, other: Any, sign: float
    ) -> tuple[Array, ...]:
        """Diagonal, neighbour and right-hand side of the row of an end."""
        if isinstance(condition, str):  # not-a-knot
            both = h + k
            return k, both, ((h + 2 * both) * k * secant + h * h * other) / both
        order, value = condition
        one = fnp.ones_like(h)
        if order == 1:
            return one, one * 0, secant * 0 + value
        return 2 * h, h, 3 * h * secant - sign * 0.5 * value * h * h

    n = shape_of(widths)[0]
    for condition, near, far, sign, is_first in (
        (first, 0, min(1, n - 1), 1.0, True),
        (last, n - 1, max(n - 2, 0), -1.0, False),
    ):
        d, o, r = end(condition, widths[near], widths[far], secants[near], secants[far], sign)
        where = 0 if is_first else len(main)
        main.insert(where, d[None])
        b.insert(where, r[None])
        (upper if is_first else lower).insert(0 if is_first else len(lower), o[None])
    return _solve(
        fnp.concatenate(lower), fnp.concatenate(main), fnp.concatenate(upper), fnp.concatenate(b)
    )


def _periodic_slopes(widths: Any, wide: Any, secants: Any) -> Array:
    """Slopes of a periodic spline: the last unknown apart, the rest is tridiagonal."""
    before = fnp.concatenate((widths[-1:], widths[:-1]))
    rows = fnp.concatenate((wide[-1:], wide[:-1]))
    b = 3 * (wide * fnp.concatenate((secants[-1:], secants[:-1])) + rows * secants)
    main = 2 * (before + widths)
    # Row i: widths[i] s[i - 1] + main[i] s[i] + before[i] s[i + 1], cyclic.
    count = shape_of(widths)[0] - 1
    inner = (widths[1:count], main[:count], before[: count - 1])
    tail = fnp.concatenate(
        (-widths[:1], np.zeros(count - 2, dtype_of(widths)), -before[count - 1 : count])
    )
    one = _solve(*inner, b[:count])
    two = _solve(*inner, tail)
    top = b[count] - before[count] * one[0] - widths[count] * one[-1]
    last = top / (main[count] + before[count] * two[0] + widths[count] * two[-1])
    rest = one + columns(two, len(shape_of(b)) - 1) * last
    return fnp.concatenate((rest, last[None], rest[:1]))
