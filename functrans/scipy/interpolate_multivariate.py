"""Interpolation on grids, at scattered points, and by one polynomial, of ``scipy.interpolate``.

Here: ``RegularGridInterpolator``, ``interpn``, ``RBFInterpolator``, ``BarycentricInterpolator``,
``KroghInterpolator``, ``lagrange``. Not here: functions of one variable in pieces
(``interpolate_piecewise``, ``interpolate_splines``).

Layer: ``scipy``.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.numpy.common import layout_of
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast
from functrans.records import dataclass
from functrans.scipy.dispatch import floats
from functrans.scipy.interpolate_piecewise import checked, columns, outside, to_axis
from functrans.scipy.interpolate_splines import basis, make_interp_spline, span
from functrans.scipy.reprs import of_fields

_STATIC = {"static": True}


# grids ------------------------------------------------------------------------------------------

_DEGREES = {"linear": 1, "slinear": 1, "cubic": 3, "quintic": 5}


@dataclass(frozen=True, slots=True, eq=False)
class RegularGridInterpolator:
    """Interpolation on the product of grids, as ``scipy.interpolate.RegularGridInterpolator``.

    A pytree of its points and values.

    Attributes:
      points: one ascending or descending vector per axis.
      values: ``[n1, n2, ..., *rest]``.
      method: ``"linear"``, ``"nearest"``, ``"slinear"``, ``"cubic"`` or ``"quintic"``; the last two
        are products of splines.
      bounds_error: whether points outside of the grid raise, where values are known.
      fill_value: value outside of the grid; ``None`` extrapolates.

    Example:
      >>> x = np.array([0.0, 1.0, 2.0])
      >>> f = RegularGridInterpolator((x, x), np.add.outer(x, 10 * x))
      >>> f(np.array([[0.5, 1.5]]))
      array([15.5])
    """

    points: Any
    values: Any
    method: str = dataclasses.field(default="linear", metadata=_STATIC)
    bounds_error: bool = dataclasses.field(default=True, metadata=_STATIC)
    fill_value: Any = np.nan

    __repr__ = of_fields

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Values at points ``[..., d]``.

        Raises:
          ShapeError: points or grid do not fit.
          ValueError: the method is unknown, known points of an axis neither ascend nor descend,
            or a known point lies outside and that is checked.
        """
        how = method or self.method
        if how not in (*_DEGREES, "nearest"):
            raise ValueError(
                f"RegularGridInterpolator: method={how!r}; expected 'linear', 'nearest', "
                f"'slinear', 'cubic' or 'quintic'{here()}"
            )
        grid = floats(*self.points)
        ndim = len(grid)
        (values,) = floats(self.values)
        if isinstance(xi, tuple):
            xi = fnp.stack(fnp.broadcast_arrays(*(fnp.asarray(x) for x in xi)), axis=-1)
        (xi,) = floats(xi)
        extents = tuple(shape_of(p)[0] for p in grid)
        if shape_of(values)[:ndim] != extents:
            raise ShapeError(
                f"RegularGridInterpolator: values of shape {shape_of(values)} on a grid of "
                f"{extents}{here()}"
            )
        if not shape_of(xi) or (shape_of(xi)[-1] != ndim and not (ndim == 1)):
            raise ShapeError(
                f"RegularGridInterpolator: points of shape {shape_of(xi)} in {ndim} dimensions"
                f"{here()}; the last axis must have that extent"
            )
        if ndim == 1 and shape_of(xi)[-1] != 1:
            xi = xi[..., None]
        if len(shape_of(xi)) == 1:
            xi = xi[None]
        for axis, p in enumerate(grid):
            grid[axis], values = _ascending(p, values, axis)
        coordinates = [xi[..., k] for k in range(ndim)]
        beyond: Any = False
        for x, p in zip(coordinates, grid, strict=True):
            beyond = beyond | outside(x, p[0], p[-1])
        known = layout_of(beyond) if isinstance(beyond, Tracer) else beyond
        if self.bounds_error and known is not None and np.any(known):
            raise ValueError(
                "RegularGridInterpolator: a point lies outside of the grid"
                f"{here()}; pass bounds_error=False, fill_value=..."
            )
        if how == "nearest":
            out = _nearest(grid, values, coordinates)
        else:
            out = _tensor(grid, values, coordinates, _DEGREES[how])
        if self.fill_value is not None:
            rest = len(shape_of(values)) - ndim
            out = fnp.where(columns(beyond, rest), self.fill_value, out)
        return out


def _ascending(p: Any, values: Any, axis: int) -> tuple[Any, Any]:
    """Points of an axis and values, both turned round where the points descend."""
    known = layout_of(p) if isinstance(p, Tracer) else p
    if known is not None and (known[1:] > known[:-1]).all():
        return p, values
    backwards = p[::-1], fnp.flip(values, axis)
    if known is None:
        descends = p[0] > p[-1]
        return fnp.where(descends, backwards[0], p), fnp.where(descends, backwards[1], values)
    if (known[1:] < known[:-1]).all():
        return backwards
    raise ValueError(
        f"RegularGridInterpolator: points of axis {axis} must strictly ascend or descend{here()}, "
        f"got {known}"
    )


def _nearest(grid: list[Any], values: object, coordinates: list[Any]) -> Any:
    index = []
    for x, p in zip(coordinates, grid, strict=True):
        place = fnp.clip(fnp.searchsorted(p, x, side="right") - 1, 0, shape_of(p)[0] - 2)
        low, high = fnp.take(p, place), fnp.take(p, place + 1)
        index.append(place + ((x - low) / (high - low) > 0.5))
    return gather(values, index, tuple(range(len(grid))), "clip")


def _tensor(grid: list[Any], values: object, coordinates: list[Any], degree: int) -> Array:
    """A product of splines: coefficients axis by axis, then the sum over the corners."""
    places, weights = [], []
    for axis, (x, p) in enumerate(zip(coordinates, grid, strict=True)):
        if degree == 1:
            place = fnp.clip(fnp.searchsorted(p, x, side="right") - 1, 0, shape_of(p)[0] - 2)
            low, high = fnp.take(p, place), fnp.take(p, place + 1)
            part = (x - low) / (high - low)
            places.append(place)
            weights.append([1 - part, part])
            continue
        spline = make_interp_spline(p, values, degree, axis=axis)
        values = fnp.moveaxis(spline.c, 0, axis)
        place = span(spline.t, degree, shape_of(p)[0], x)
        weights.append(basis(spline.t, degree, x, place))
        places.append(place - degree)
    ndim = len(grid)
    rest = len(shape_of(values)) - ndim
    total: Any = None
    for corner in itertools.product(range(degree + 1), repeat=ndim):
        index = [cast(p + k, np.int64) for p, k in zip(places, corner, strict=True)]
        weight = weights[0][corner[0]]
        for own, k in zip(weights[1:], corner[1:], strict=True):
            weight = weight * own[k]
        term = gather(values, index, tuple(range(ndim)), "clip") * columns(weight, rest)
        total = term if total is None else total + term
    return total


def interpn(
    points: Any,
    values: object,
    xi: object,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: object = np.nan,
) -> Any:
    """Interpolation on the product of grids, as ``scipy.interpolate.interpn``."""
    return RegularGridInterpolator(tuple(points), values, method, bounds_error, fill_value)(xi)


# radial basis functions -------------------------------------------------------------------------


def _safe(r2: object) -> tuple[Any, Any]:
    """Squares of distances with 1 in place of 0, and where they were 0."""
    is_zero = r2 == 0
    return fnp.where(is_zero, 1, r2), is_zero


def _powered(r2: object, exponent: float, sign: float) -> Any:
    safe, is_zero = _safe(r2)
    return fnp.where(is_zero, 0, safe**exponent * sign)


def _thin_plate(r2: object) -> Any:
    safe, is_zero = _safe(r2)
    return fnp.where(is_zero, 0, 0.5 * safe * fnp.log(safe))


_KERNELS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda r2: _powered(r2, 0.5, -1.0),
    "thin_plate_spline": _thin_plate,
    "cubic": lambda r2: _powered(r2, 1.5, 1.0),
    "quintic": lambda r2: _powered(r2, 2.5, -1.0),
    "multiquadric": lambda r2: -fnp.sqrt(r2 + 1),
    "inverse_multiquadric": lambda r2: 1 / fnp.sqrt(r2 + 1),
    "inverse_quadratic": lambda r2: 1 / (r2 + 1),
    "gaussian": lambda r2: fnp.exp(-r2),
}
"""Functions of squares of distances: smooth ones have smooth derivatives at distance 0."""

_LEAST_DEGREE = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}


def _squares(x: Any, y: Any) -> Any:
    """Squares of distances of points ``[m, d]`` and ``[n, d]``."""
    gaps = x[:, None, :] - y[None, :, :]
    return fnp.sum(gaps * gaps, axis=-1)


def _powers(ndim: int, degree: int) -> np.ndarray:
    """Exponents of all monomials up to a degree."""
    rows: list[list[int]] = []
    for total in range(degree + 1):
        rows.extend(
            [chosen.count(axis) for axis in range(ndim)]
            for chosen in itertools.combinations_with_replacement(range(ndim), total)
        )
    return np.array(rows, np.int64).reshape(len(rows), ndim)


def _monomials(x: Any, powers: np.ndarray) -> Any:
    """``[points, monomials]``, with each power a product, so that 0 has derivatives."""
    parts = []
    for row in powers:
        value: Any = fnp.ones_like(x[:, 0])
        for axis, exponent in enumerate(row):
            for _ in range(exponent):
                value = value * x[:, axis]
        parts.append(value)
    if not parts:
        return np.zeros((shape_of(x)[0], 0), dtype_of(x))
    return fnp.stack(parts, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class RadialInterpolant:
    """What :func:`RBFInterpolator` returns; a pytree.

    Attributes:
      y: points ``[n, d]``.
      weights: ``[n + monomials, values]``.
      shift: ``[d]``; monomials are of ``(x - shift) / scale``.
      scale: ``[d]``.
      epsilon: factor of distances.
      kernel: name of the radial function.
      degree: of the polynomial, -1 for none.
      shape: of the value at one point.
    """

    y: Any
    weights: Any
    shift: Any
    scale: Any
    epsilon: Any
    kernel: str = dataclasses.field(default="thin_plate_spline", metadata=_STATIC)
    degree: int = dataclasses.field(default=1, metadata=_STATIC)

    __repr__ = of_fields
    shape: tuple[int, ...] = dataclasses.field(default=(), metadata=_STATIC)

    def __call__(self, x: ArrayLike) -> Any:
        """Values at points ``[m, d]``."""
        (x,) = floats(x)
        y = fnp.asarray(self.y)
        if len(shape_of(x)) != 2 or shape_of(x)[1] != shape_of(y)[1]:
            raise ShapeError(
                f"RBFInterpolator: points of shape {shape_of(x)}; expected [points, "
                f"{shape_of(y)[1]}]{here()}"
            )
        radial = _KERNELS[self.kernel](_squares(x, y) * (self.epsilon * self.epsilon))
        powers = _powers(shape_of(y)[1], self.degree)
        polynomial = _monomials((x - self.shift) / self.scale, powers)
        out = fnp.concatenate((radial, polynomial), axis=1) @ self.weights
        return fnp.reshape(out, (shape_of(x)[0], *self.shape))


def RBFInterpolator(  # noqa: N802  # SciPy's name of a class
    y: Any,
    d: object,
    neighbors: int | None = None,
    smoothing: object = 0.0,
    kernel: str = "thin_plate_spline",
    epsilon: Any = None,
    degree: int | None = None,
) -> RadialInterpolant:
    """Radial basis functions through scattered data, as ``scipy.interpolate.RBFInterpolator``.

    Args:
      y: points ``[n, d]``.
      d: data ``[n, ...]``.
      neighbors: not offered.
      smoothing: number or ``[n]``; 0 interpolates.
      kernel: the radial function.
      epsilon: factor of distances, 1 by default where the kernel has a scale of its own not to be
        seen; it may be traced.
      degree: of the polynomial that is added.

    Returns:
      A function of points ``[m, d]``, differentiable in all arrays.

    Raises:
      UnsupportedOperationError: ``neighbors`` is given.
      ValueError: an unknown kernel, a degree that is too low, or no ``epsilon``.

    Reference: Fasshauer, Meshfree Approximation Methods with Matlab (2007).
    """
    if neighbors is not None:
        raise UnsupportedOperationError(
            f"RBFInterpolator with neighbors={neighbors} is not offered{here()}: which points are "
            "neighbours jumps; leave it out"
        )
    if kernel not in _KERNELS:
        raise ValueError(f"RBFInterpolator: kernel={kernel!r}; expected one of {list(_KERNELS)}")
    y, d = floats(y, d)
    if len(shape_of(y)) != 2 or not shape_of(d) or shape_of(d)[0] != shape_of(y)[0]:
        raise ShapeError(
            f"RBFInterpolator: points of shape {shape_of(y)} and data of shape {shape_of(d)}"
            f"{here()}; expected [n, d] and [n, ...]"
        )
    if epsilon is None:
        if kernel not in ("linear", "thin_plate_spline", "cubic", "quintic"):
            raise ValueError(f"RBFInterpolator: kernel {kernel!r} needs epsilon{here()}")
        epsilon = 1.0
    least = _LEAST_DEGREE.get(kernel, -1)
    chosen = max(least, 0) if degree is None else int(degree)
    if chosen < -1:
        raise ValueError(f"RBFInterpolator: degree {chosen}; expected at least -1{here()}")
    n, ndim = shape_of(y)
    shape = shape_of(d)[1:]
    low, high = fnp.min(y, axis=0), fnp.max(y, axis=0)
    shift, scale = (low + high) * 0.5, (high - low) * 0.5
    scale = fnp.where(scale == 0, 1, scale)
    powers = _powers(ndim, chosen)
    if len(powers) > n:
        raise ValueError(
            f"RBFInterpolator: {n} points for {len(powers)} monomials of degree {chosen}{here()}; "
            "give more points or a lower degree"
        )
    radial = _KERNELS[kernel](_squares(y, y) * (epsilon * epsilon))
    radial = radial + fnp.diag(fnp.broadcast_to(cast(floats(smoothing)[0], dtype_of(y)), (n,)))
    polynomial = _monomials((y - shift) / scale, powers)
    corner = np.zeros((len(powers), len(powers)), dtype_of(y))
    system = fnp.concatenate(
        (
            fnp.concatenate((radial, polynomial), axis=1),
            fnp.concatenate((fnp.transpose(polynomial), corner), axis=1),
        )
    )
    flat = fnp.reshape(d, (n, math.prod(shape)))
    rhs = fnp.concatenate((flat, np.zeros((len(powers), math.prod(shape)), dtype_of(d))))
    weights = fnp.linalg.solve(system, rhs)
    return RadialInterpolant(y, weights, shift, scale, epsilon, kernel, chosen, shape)


# one polynomial ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Polynomial:
    """The polynomial through points, in Newton's form; a pytree.

    Attributes:
      x: abscissas ``[n]``.
      c: divided differences ``[n, ...]``.
      axis: the axis of the data.
    """

    x: Any
    c: Any
    axis: int = dataclasses.field(default=0, metadata=_STATIC)

    __repr__ = of_fields

    def __call__(self, x: ArrayLike) -> Any:
        """Values at points of any shape; smooth also at the abscissas."""
        (x,) = floats(x)
        knots, c = fnp.asarray(self.x), fnp.asarray(self.c)
        rest = len(shape_of(c)) - 1
        n = shape_of(c)[0]
        total: Any = columns(fnp.zeros_like(x), rest) + c[n - 1]
        for k in range(n - 2, -1, -1):
            total = total * columns(x - knots[k], rest) + c[k]
        return to_axis(total, len(shape_of(x)), self.axis)

    def derivatives(self, x: ArrayLike, der: int | None = None) -> Any:
        """Value and derivatives up to an order, in front: ``[der, ...]``."""
        (x,) = floats(x)
        knots, c = fnp.asarray(self.x), fnp.asarray(self.c)
        n, rest = shape_of(c)[0], len(shape_of(c)) - 1
        count = n if der is None else int(der)
        zero = columns(fnp.zeros_like(x), rest) + c[0] * 0
        taylor = [zero for _ in range(count)]
        for k in range(n - 1, -1, -1):
            step = columns(x - knots[k], rest)
            before = taylor
            taylor = [before[i] * step + (before[i - 1] if i else c[k]) for i in range(count)]
        moved = [
            to_axis(part * float(math.factorial(i)), len(shape_of(x)), self.axis)
            for i, part in enumerate(taylor)
        ]
        return fnp.stack(moved)

    def derivative(self, x: ArrayLike, der: int = 1) -> Any:
        """The derivative of an order."""
        return self.derivatives(x, der + 1)[der]


def KroghInterpolator(xi: object, yi: object, axis: int = 0) -> Polynomial:  # noqa: N802  # SciPy's name of a class
    """The polynomial through points, as ``scipy.interpolate.KroghInterpolator``.

    Abscissas must differ: derivatives given by repeating one are not offered.

    Reference: Krogh, Efficient algorithms for polynomial interpolation and numerical
    differentiation, Math. Comp. 24 (1970).
    """
    return _newton("KroghInterpolator", xi, yi, axis)


def BarycentricInterpolator(xi: object, yi: object, axis: int = 0) -> Polynomial:  # noqa: N802  # SciPy's name of a class
    """The polynomial through points, as ``scipy.interpolate.BarycentricInterpolator``.

    It is evaluated in Newton's form with the abscissas in Leja's order, which is as accurate as the
    barycentric one and smooth at the abscissas, where that divides by zero.

    Reference: Berrut & Trefethen, Barycentric Lagrange interpolation, SIAM Review 46 (2004);
    Reichel, Newton interpolation at Leja points, BIT 30 (1990).
    """
    return _newton("BarycentricInterpolator", xi, yi, axis)


def lagrange(x: ArrayLike, w: object) -> Polynomial:
    """The polynomial through points, as ``scipy.interpolate.lagrange``, as a function."""
    return _newton("lagrange", x, w, 0)


def _leja(x: np.ndarray) -> np.ndarray:
    """An order in which each abscissa is far from those before it."""
    order = [int(np.argmax(np.abs(x - x.mean())))]
    logs = np.zeros(len(x))
    with np.errstate(divide="ignore"):
        while len(order) < len(x):
            logs += np.log(np.abs(x - x[order[-1]]))
            logs[order] = -np.inf
            order.append(int(np.argmax(logs)))
    return np.array(order)


def _newton(name: str, x: Any, y: Any, axis: int) -> Polynomial:
    """Divided differences, in Leja's order where the abscissas are known."""
    x, y = floats(x, y)
    order: Any = fnp.argsort(x)
    knots, values, own = checked(name, fnp.take(x, order), fnp.take(y, order, axis=axis), axis, 1)
    known = layout_of(knots) if isinstance(knots, Tracer) else knots
    if known is not None:
        leja = _leja(np.asarray(known, float))
        knots, values = fnp.take(knots, leja), fnp.take(values, leja, axis=0)
    n, rest = shape_of(knots)[0], len(shape_of(values)) - 1
    current, parts = values, [values[0]]
    for k in range(1, n):
        gaps = columns(knots[k:] - knots[:-k], rest)
        current = (current[1:] - current[:-1]) / gaps
        parts.append(current[0])
    return Polynomial(knots, fnp.stack(parts), own)
