"""Splines in the basis of B-splines, and ``interp1d``, of ``scipy.interpolate``.

Here: ``BSpline``, ``make_interp_spline``, ``splrep`` (interpolating), ``splev``, ``splint``,
``interp1d``. Not here: piecewise polynomials (``interpolate_piecewise``), smoothing splines, whose
knots are chosen by an algorithm.

Values are computed by de Boor's recursion, interpolating coefficients by a banded system.

Reference: de Boor, A Practical Guide to Splines (2001), ch. 9, 10 and 13.

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
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.numpy.common import layout_of
from functrans.primitives.indexing import scatter
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.structural import cast, normalize_axis
from functrans.records import dataclass
from functrans.scipy.dispatch import common_floating, floats
from functrans.scipy.interpolate_piecewise import checked, columns, outside, periodic, to_axis
from functrans.scipy.reprs import of_fields

_STATIC = {"static": True}


def _ratio(a: ArrayLike, b: ArrayLike) -> Array:
    """``a / b``, 0 where ``b`` is: the convention for knots that coincide."""
    is_zero = b == 0
    return fnp.where(is_zero, 0, a / fnp.where(is_zero, 1, b))


def span(t: ArrayLike, k: int, n: int, x: ArrayLike) -> Array:
    """The index ``i`` with ``t[i] <= x < t[i + 1]``, within the base interval."""
    return fnp.clip(fnp.searchsorted(t, x, side="right") - 1, k, n - 1)


def basis(t: ArrayLike, k: int, x: Array, place: Array, nu: int = 0) -> list[Any]:
    """The ``k + 1`` B-splines that are not zero on an interval, or derivatives of them.

    Element ``j`` belongs to coefficient ``place - k + j``.
    """
    if nu > k:
        return [x * 0] * (k + 1)
    values: list[Any] = [fnp.ones_like(x)]
    for degree in range(1, k + 1):
        # Splines of one degree less, each between two knots that are `degree` apart.
        ramps = []
        for j, value in enumerate(values):
            low = fnp.take(t, place - degree + 1 + j)
            high = fnp.take(t, place + 1 + j)
            ramps.append((low, high, _ratio(value, high - low)))
        grown: list[Any] = [0.0] * (degree + 1)
        for j, (low, high, value) in enumerate(ramps):
            if degree <= k - nu:
                grown[j] = grown[j] + (high - x) * value
                grown[j + 1] = grown[j + 1] + (x - low) * value
            else:
                grown[j] = grown[j] - degree * value
                grown[j + 1] = grown[j + 1] + degree * value
        values = grown
    return values


@dataclass(frozen=True, slots=True, eq=False)
class BSpline:
    """A spline in the basis of B-splines, as ``scipy.interpolate.BSpline``; a pytree.

    Attributes:
      t: knots ``[n + k + 1]``, not descending.
      c: coefficients ``[n, ...]``; more than ``n`` are not read.
      k: degree.
      extrapolate: whether the outermost pieces go on; false gives NaN there, ``"periodic"``
        repeats.
      axis: the axis of the data along which they were interpolated.

    Example:
      >>> s = BSpline(np.array([0.0, 0.0, 1.0, 1.0]), np.array([2.0, 4.0]), 1)
      >>> float(s(0.25)), float(s.derivative()(0.25)), float(s.integrate(0.0, 1.0))
      (2.5, 2.0, 3.0)
    """

    t: Any
    c: Any
    k: int = dataclasses.field(default=3, metadata=_STATIC)
    extrapolate: Any = dataclasses.field(default=True, metadata=_STATIC)
    axis: int = dataclasses.field(default=0, metadata=_STATIC)

    __repr__ = of_fields

    def __call__(self, x: Any, nu: int = 0, extrapolate: object = None) -> Array:
        """Values, or derivatives of order ``nu``, at points of any shape."""
        how = self.extrapolate if extrapolate is None else extrapolate
        (x,) = floats(x)
        t, c = fnp.asarray(self.t), fnp.asarray(self.c)
        n = shape_of(t)[0] - self.k - 1
        first, last = t[self.k], t[n]
        beyond = outside(x, first, last)
        if how == "periodic":
            x = periodic(x, first, last)
        place = span(t, self.k, n, x)
        rest = len(shape_of(c)) - 1
        total: Any = None
        for j, weight in enumerate(basis(t, self.k, x, place, nu)):
            term = columns(weight, rest) * fnp.take(c, place - self.k + j, axis=0)
            total = term if total is None else total + term
        if not how:
            total = fnp.where(columns(beyond, rest), np.nan, total)
        return to_axis(total, len(shape_of(x)), self.axis)

    def derivative(self, nu: int = 1) -> BSpline:
        """The derivative of order ``nu``; the antiderivative if it is negative."""
        if nu < 0:
            return self.antiderivative(-nu)
        t, c, k = fnp.asarray(self.t), fnp.asarray(self.c), self.k
        c = c[: shape_of(t)[0] - k - 1]
        for _ in range(nu):
            if not k:
                return dataclasses.replace(self, t=t, c=c * 0, k=0)
            n = shape_of(c)[0]
            gaps = columns(t[k + 1 : n + k] - t[1:n], len(shape_of(c)) - 1)
            c = _ratio(k * fnp.diff(c, axis=0), gaps)
            t, k = t[1:-1], k - 1
        return dataclasses.replace(self, t=t, c=c, k=k)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The antiderivative of order ``nu`` that vanishes at the start of the base interval."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = fnp.asarray(self.t), fnp.asarray(self.c), self.k
        c = c[: shape_of(t)[0] - k - 1]
        for _ in range(nu):
            n = shape_of(c)[0]
            gaps = columns(t[k + 1 : n + k + 1] - t[:n], len(shape_of(c)) - 1)
            sums = fnp.cumsum(c * gaps / (k + 1), axis=0)
            c = fnp.concatenate((sums[:1] * 0, sums))
            t, k = fnp.concatenate((t[:1], t, t[-1:])), k + 1
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return dataclasses.replace(self, t=t, c=c, k=k, extrapolate=how)

    def integrate(self, a: ArrayLike, b: Any, extrapolate: Any = None) -> Any:
        """The integral from ``a`` to ``b``; without extrapolation from what lies inside."""
        how = self.extrapolate if extrapolate is None else extrapolate
        t = fnp.asarray(self.t)
        first, last = t[self.k], t[shape_of(t)[0] - self.k - 1]
        whole = dataclasses.replace(self, axis=0, extrapolate=True).antiderivative()
        if how == "periodic":
            total = whole(last) - whole(first)

            def upto(x: ArrayLike) -> Any:
                turns = fnp.floor((x - first) / (last - first))
                return turns * total + whole(periodic(x, first, last))

            return upto(b) - upto(a)
        if not how:
            a, b = fnp.clip(a, first, last), fnp.clip(b, first, last)
        return whole(b) - whole(a)


# interpolation ----------------------------------------------------------------------------------


def _repeated(x: ArrayLike, count: int) -> Array:
    return fnp.broadcast_to(x, (count,))


def not_a_knot(x: Array, k: int) -> Array:
    """Knots for interpolation at ``x`` without conditions at the ends."""
    if k % 2:
        half = (k + 1) // 2
        inner = x[half : shape_of(x)[0] - half]
    else:
        middles = (x[1:] + x[:-1]) * 0.5
        inner = middles[k // 2 : shape_of(middles)[0] - k // 2]
    return fnp.concatenate((_repeated(x[0], k + 1), inner, _repeated(x[-1], k + 1)))


def collocation(
    t: ArrayLike, k: int, x: Array, left: list[int], right: list[int]
) -> tuple[Any, tuple[int, int]]:
    """The matrix of interpolation by diagonals: derivatives at the left end, values, at the right.

    Every row has ``k + 1`` elements that are not zero, next to the diagonal.
    """
    n = shape_of(t)[0] - k - 1
    bands = np.zeros((2 * k + 1, n), dtype_of(t))
    ends = [(order, x[:1]) for order in left], [(order, x[-1:]) for order in right]
    rows = [*ends[0], (0, x), *ends[1]]
    start = 0
    for order, points in rows:
        count = shape_of(points)[0]
        place = span(t, k, n, points)
        number = start + np.arange(count)
        for j, value in enumerate(basis(t, k, points, place, order)):
            column = cast(place - k + j, np.int64)
            bands = scatter(bands, value, (k + number - column, column), (0, 1))
        start += count
    return bands, (k, k)


def _end_conditions(bc_type: Any, shape: tuple[int, ...], dtype: np.dtype) -> list[list[Any]]:
    """Orders and values of derivatives at either end."""
    pair = bc_type if isinstance(bc_type, (tuple, list)) and len(bc_type) == 2 else [bc_type] * 2
    out: list[list[Any]] = []
    for one in pair:
        if one is None or one == "not-a-knot":
            out.append([])
        elif isinstance(one, str):
            order = {"clamped": 1, "natural": 2}.get(one)
            if order is None:
                raise ValueError(
                    f"make_interp_spline: bc_type={one!r}; expected 'not-a-knot', 'clamped', "
                    f"'natural' or pairs (order, value){here()}"
                )
            out.append([(order, np.zeros(shape, dtype))])
        else:
            out.append(
                [(int(o), fnp.broadcast_to(cast(floats(v)[0], dtype), shape)) for o, v in one]
            )
    return out


def make_interp_spline(
    x: ArrayLike,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """The interpolating spline of a degree, as ``scipy.interpolate.make_interp_spline``.

    Args:
      x: abscissas ``[n]``, ascending.
      y: data, ``n`` along ``axis``.
      k: degree, at least 1.
      t: knots; by default as many as the conditions need.
      bc_type: ``None`` or ``"not-a-knot"``, ``"clamped"``, ``"natural"``, or a pair of lists of
        ``(order, value)``, the derivatives at either end.
      axis: the axis of the data.
      check_finite: not used.

    Raises:
      ShapeError: shapes or the number of conditions do not fit.
      UnsupportedOperationError: periodic splines.
    """
    if bc_type == "periodic":
        raise UnsupportedOperationError(
            f"make_interp_spline with bc_type='periodic' is not offered{here()}; use CubicSpline"
        )
    if k < 1:
        raise ValueError(f"make_interp_spline: degree {k}; expected at least 1{here()}")
    points, values, own = checked("make_interp_spline", x, y, axis)
    shape = shape_of(values)[1:]
    left, right = _end_conditions(bc_type, shape, dtype_of(values))
    extra = len(left) + len(right)
    n = shape_of(points)[0]
    if t is None:
        if not extra:
            if n <= k:
                raise ShapeError(
                    f"make_interp_spline: {n} samples for degree {k}{here()}; at least {k + 1}"
                )
            t = not_a_knot(points, k)
        else:
            t = fnp.concatenate((_repeated(points[0], k), points, _repeated(points[-1], k)))
    (t,) = floats(t)
    if shape_of(t)[0] - k - 1 != n + extra:
        raise ShapeError(
            f"make_interp_spline: {shape_of(t)[0]} knots of degree {k} give "
            f"{shape_of(t)[0] - k - 1} coefficients, but there are {n} samples and {extra} "
            f"conditions{here()}"
        )
    bands, widths = collocation(t, k, points, [o for o, _ in left], [o for o, _ in right])
    parts = [*(v[None] for _, v in left), values, *(v[None] for _, v in right)]
    b = fnp.concatenate(parts) if extra else values
    dtype = common_floating(bands, b)
    flat = fnp.reshape(cast(b, dtype), (n + extra, math.prod(shape)))
    c = linalg.banded_solve(cast(bands, dtype), flat, widths)
    return BSpline(t, fnp.reshape(c, (n + extra, *shape)), k, True, own)


def splrep(x: ArrayLike, y: ArrayLike, k: int = 3, s: float = 0.0) -> tuple[Any, Any, int]:
    """The interpolating spline as ``(t, c, k)``, as ``scipy.interpolate.splrep`` with ``s=0``.

    Raises:
      UnsupportedOperationError: smoothing (``s`` above 0), which chooses knots.
    """
    if s:
        raise UnsupportedOperationError(
            f"splrep with s={s} cannot be traced{here()}: its knots are chosen by an algorithm; "
            "use make_interp_spline, or a least-squares fit with given knots"
        )
    spline = make_interp_spline(x, y, k)
    return spline.t, fnp.pad(spline.c, (0, k + 1)), k


def splev(x: ArrayLike, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Values or derivatives of a spline, as ``scipy.interpolate.splev``.

    Args:
      x: points.
      tck: a :class:`BSpline`, or ``(t, c, k)``.
      der: order of the derivative.
      ext: beyond the ends: 0 goes on, 1 gives 0, 3 the value at the end.
    """
    spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
    (x,) = floats(x)
    if ext not in (0, 1, 3):
        raise UnsupportedOperationError(
            f"splev with ext={ext!r} cannot be traced{here()}; use 0, 1 or 3"
        )
    t = fnp.asarray(spline.t)
    first, last = t[spline.k], t[shape_of(t)[0] - spline.k - 1]
    beyond = outside(x, first, last)
    out = spline(fnp.clip(x, first, last) if ext == 3 else x, der, True)
    return fnp.where(beyond, 0, out) if ext == 1 else out


def splint(a: ArrayLike, b: ArrayLike, tck: Any) -> Any:
    """The integral of a spline, which is 0 beyond its ends, as ``scipy.interpolate.splint``."""
    spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
    return spline.integrate(a, b, False)


# interp1d ---------------------------------------------------------------------------------------

_STEPS = ("nearest", "nearest-up", "previous", "next", "zero")
_DEGREES = {"linear": 1, "slinear": 1, "quadratic": 2, "cubic": 3}


@dataclass(frozen=True, slots=True, eq=False)
class Interpolant:
    """What :func:`interp1d` returns; a pytree.

    Attributes:
      x: abscissas.
      y: data with the interpolated axis in front.
      spline: for degrees above 1.
      fill: values below and above the abscissas.
      kind: one of SciPy's kinds.
      axis: the axis of the data.
      is_extrapolated: whether the ends go on.
      is_checked: whether points beyond the ends raise, where values are known.
    """

    x: Any
    y: Any
    spline: Any
    fill: Any
    kind: str = dataclasses.field(default="linear", metadata=_STATIC)
    axis: int = dataclasses.field(default=0, metadata=_STATIC)
    is_extrapolated: bool = dataclasses.field(default=False, metadata=_STATIC)
    is_checked: bool = dataclasses.field(default=False, metadata=_STATIC)

    __repr__ = of_fields

    def __call__(self, x: Any) -> Array:
        """Values at points of any shape.

        Raises:
          ValueError: a known point lies beyond the ends, and that was to be checked.
        """
        (x,) = floats(x)
        knots, y = fnp.asarray(self.x), fnp.asarray(self.y)
        beyond = outside(x, knots[0], knots[-1])
        known = layout_of(beyond) if isinstance(beyond, Tracer) else beyond
        if self.is_checked and known is not None and np.any(known):
            raise ValueError(
                f"interp1d: points lie outside of the range of interpolation{here()}; pass "
                "bounds_error=False, fill_value=..."
            )
        n, rest = shape_of(knots)[0], len(shape_of(y)) - 1
        if self.spline is not None:
            out = self.spline(x, 0, True)
        elif self.kind in _STEPS:
            if self.kind.startswith("nearest"):
                side = "right" if self.kind == "nearest-up" else "left"
                place = fnp.searchsorted((knots[1:] + knots[:-1]) * 0.5, x, side=side)
            elif self.kind in ("previous", "zero"):
                place = fnp.searchsorted(knots, x, side="right") - 1
            else:
                place = fnp.searchsorted(knots, x, side="left")
            out = fnp.take(y, fnp.clip(place, 0, n - 1), axis=0)
        else:
            place = fnp.clip(fnp.searchsorted(knots, x, side="right") - 1, 0, n - 2)
            low, high = fnp.take(knots, place), fnp.take(knots, place + 1)
            part = columns((x - low) / (high - low), rest)
            first, second = (fnp.take(y, place + k, axis=0) for k in (0, 1))
            out = first + part * (second - first)
        if not self.is_extrapolated:
            low_fill, high_fill = self.fill
            out = fnp.where(columns(x < knots[0], rest), low_fill, out)
            out = fnp.where(columns(x > knots[-1], rest), high_fill, out)
        return to_axis(out, len(shape_of(x)), self.axis)


def interp1d(
    x: ArrayLike,
    y: ArrayLike,
    kind: Any = "linear",
    axis: int = -1,
    copy: bool = True,
    bounds_error: bool | None = None,
    fill_value: ArrayLike = np.nan,
    assume_sorted: bool = False,
) -> Interpolant:
    """Interpolation along an axis, as ``scipy.interpolate.interp1d``.

    Args:
      x: abscissas ``[n]``.
      y: data.
      kind: ``"linear"``, ``"nearest"``, ``"nearest-up"``, ``"previous"`` (``"zero"``), ``"next"``,
        ``"slinear"``, ``"quadratic"``, ``"cubic"`` or a degree.
      axis: the axis of the data.
      copy: not used.
      bounds_error: whether points beyond the ends raise, where values are known; by default unless
        ``fill_value`` is given. In staging they give ``fill_value``.
      fill_value: value beyond the ends, or a pair for below and above, or ``"extrapolate"``.
      assume_sorted: whether ``x`` ascends; otherwise data are sorted.

    Returns:
      A function of points, which is a pytree.
    """
    x, y = floats(x, y)
    axis = normalize_axis(axis, len(shape_of(y)), "axis")
    if not assume_sorted:
        order = fnp.argsort(x)
        x, y = fnp.take(x, order), fnp.take(y, order, axis=axis)
    kind = "zero" if isinstance(kind, int) and kind == 0 else kind
    degree = kind if isinstance(kind, int) else _DEGREES.get(kind)
    if degree is None and kind not in _STEPS:
        raise ValueError(
            f"interp1d: kind={kind!r}; expected one of {', '.join((*_STEPS, *_DEGREES))} or a "
            f"degree{here()}"
        )
    knots, values, own = checked("interp1d", x, y, axis, 1 if degree is None else 2)
    is_extrapolated = isinstance(fill_value, str) and fill_value == "extrapolate"
    is_given = is_extrapolated or not (np.ndim(fill_value) == 0 and np.isnan(fill_value))
    is_checked = (not is_given) if bounds_error is None else bool(bounds_error)
    fill = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    if is_extrapolated and kind in ("previous", "next"):  # nothing precedes the first one
        fill = (np.nan, values[-1]) if kind == "previous" else (values[0], np.nan)
        is_extrapolated = False
    spline = (
        make_interp_spline(knots, values, degree) if degree is not None and degree > 1 else None
    )
    return Interpolant(
        knots,
        values,
        spline,
        None if is_extrapolated else fill,
        kind if isinstance(kind, str) else "linear",
        own,
        is_extrapolated,
        is_checked,
    )
