"""Series in a basis of orthogonal polynomials, or of powers: one implementation for all bases.

Here: ``Basis`` (a three-term recurrence and NumPy's module of the same name) and what
``numpy.polynomial`` offers for each: evaluation, arithmetic, derivatives, integrals, Vandermonde
matrices, fits, roots. Not here: the names with prefixes (the modules beside this one).

Differentiation, integration and changes of basis are linear in the coefficients: their matrices
are what NumPy's function gives for unit vectors. Arrays of coefficients keep their lengths:
trailing zeros are not cut off, since that would depend on values.

Layer: ``numpy``.
Reference: Clenshaw, A note on the summation of Chebyshev series (1955).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.boundary import warn
from functrans.core.caching import remembered
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy import linalg
from functrans.numpy.common import as_array, holds, inexact, is_known, value_of
from functrans.numpy.cumulative import part
from functrans.numpy.dispatch import implements
from functrans.numpy.shaping import at_least
from functrans.numpy.sorting import sort
from functrans.primitives import complex_parts, convolution, movement, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.dot import tensordot
from functrans.primitives.structural import cast
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Basis:
    """Polynomials ``P[k]`` with ``P[0] = 1`` and a three-term recurrence.

    Attributes:
      name: of NumPy's module, ``"chebyshev"``.
      prefix: of its functions, ``"cheb"``.
      recurrence: ``k`` to ``(a, b, c)`` in ``P[k+1] = (a x + b) P[k] + c P[k-1]``; ``c`` is 0 at
        ``k = 0``.
    """

    name: str
    prefix: str
    recurrence: Callable[[int], tuple[float, float, float]]

    def plain(self, name: str) -> Callable[..., Any]:
        """NumPy's function: ``plain("val")`` is ``chebval``."""
        module = getattr(np.polynomial, self.name)
        found = getattr(module, self.prefix + name, None)
        return getattr(module, name) if found is None else found


# matrices of linear maps ------------------------------------------------------------------------


@remembered(256)
def _matrix(basis: Basis, name: str, n: int, order: int) -> Array:
    """The matrix of one of NumPy's linear functions of ``n`` coefficients."""
    plain = basis.plain(name)
    if name in ("der", "int"):
        return plain(np.eye(n), order)
    images = [plain(row[: i + 1]) for i, row in enumerate(np.eye(n))]
    result = np.zeros((max(map(len, images)), n))
    for i, image in enumerate(images):
        result[: len(image), i] = image
    return result


@remembered(64)
def _products(basis: Basis, n: int, m: int) -> Array:
    """Coefficients of ``P[i] P[j]``: an array of shape ``(n, m, n + m - 1)``."""
    size = n + m - 1
    by_x = _matrix(basis, "mulx", size, 0)[:size]
    last, current = np.zeros((size, size)), np.eye(size)
    result = np.zeros((n, m, size))
    for k in range(n):
        result[k] = current[:, :m].T
        a, b, c = basis.recurrence(k)
        last, current = current, a * (by_x @ current) + b * current + c * last
    return result


def _mapped(matrix: Array, c: Any, axis: int = 0) -> Any:
    """A linear map of coefficients that lie along an axis."""
    dtype = dtype_of(c)
    real = np.finfo(dtype).dtype if dtype.kind in "fc" else dtype
    return structural.moveaxis(tensordot(matrix.astype(real), c, ((1,), (axis,))), 0, axis)


def _vector(c: Any) -> Any:
    """Coefficients of one series, in floating point."""
    c = inexact(at_least(as_array(c), 1))
    if len(shape_of(c)) != 1:
        raise ValueError("Coefficient array is not 1-d")
    if not shape_of(c)[0]:
        raise ValueError("Coefficient array is empty")
    return c


def _padded(c: ArrayLike, n: int) -> Array:
    return movement.pad(c, 0, ((0, n - shape_of(c)[0], 0),))


# evaluation -------------------------------------------------------------------------------------


def val(basis: Basis, x: Any, c: Any, tensor: bool = True) -> Any:
    """Value of a series, by Clenshaw's recurrence; ``c: f64[n, ...]``."""
    c, x = inexact(at_least(as_array(c), 1)), as_array(x)
    n, *rest = shape_of(c)
    if tensor:
        c = structural.reshape(c, (n, *rest, *(1,) * len(shape_of(x))))
    rows = movement.unstack(c, 0)
    result, above = rows[-1] + x * 0, None
    for k in range(n - 2, -1, -1):
        a, b, _ = basis.recurrence(k)
        slope = x if a == 1 else a * x
        value = rows[k] + result * (slope if b == 0 else slope + b)
        c_next = basis.recurrence(k + 1)[2]
        if above is not None and c_next:
            value = value + c_next * above
        result, above = value, result
    return result


def _val_all(basis: Basis, c: ArrayLike, *points: ArrayLike) -> Array:
    arrays = [as_array(x) for x in points]
    if len({shape_of(x) for x in arrays}) > 1:
        raise ValueError(
            "x, y, z are incompatible" if len(points) == 3 else "x, y are incompatible"
        )
    result = val(basis, arrays[0], c)
    for x in arrays[1:]:
        result = val(basis, x, result, tensor=False)
    return result


def val2d(basis: Basis, x: ArrayLike, y: ArrayLike, c: ArrayLike) -> Array:
    """Value of a series in two variables at points."""
    return _val_all(basis, c, x, y)


def val3d(basis: Basis, x: ArrayLike, y: ArrayLike, z: ArrayLike, c: ArrayLike) -> Array:
    """Value of a series in three variables at points."""
    return _val_all(basis, c, x, y, z)


def grid2d(basis: Basis, x: ArrayLike, y: ArrayLike, c: ArrayLike) -> Array:
    """Value of a series in two variables on a grid."""
    return val(basis, y, val(basis, x, c))


def grid3d(basis: Basis, x: ArrayLike, y: ArrayLike, z: ArrayLike, c: ArrayLike) -> Array:
    """Value of a series in three variables on a grid."""
    return val(basis, z, grid2d(basis, x, y, c))


def _degree(deg: int) -> int:
    degree = operator.index(deg)
    if degree < 0:
        raise ValueError("deg must be non-negative")
    return degree


def vander(basis: Basis, x: Array, deg: int) -> Any:
    """Values of the first ``deg + 1`` polynomials, along a new last axis."""
    degree = _degree(deg)
    x = inexact(at_least(as_array(x), 1))
    columns = [x * 0 + 1]
    for k in range(degree):
        a, b, c = basis.recurrence(k)
        slope = x if a == 1 else a * x
        column = columns[k] * (slope if b == 0 else slope + b) if k else slope + b
        columns.append(column + c * columns[k - 1] if c else column)
    return movement.stack(columns, len(shape_of(x)))


def _vander_all(basis: Basis, points: tuple[Any, ...], deg: Any) -> Array:
    if len(deg) != len(points):
        raise ValueError(f"Expected {len(points)} dimensions of sample degrees, got {len(deg)}")
    arrays = [inexact(as_array(x)) for x in points]
    shape = np.broadcast_shapes(*(shape_of(x) for x in arrays))
    result: Any = None
    for x, degree in zip(arrays, deg, strict=True):
        matrix = vander(basis, structural.broadcast_to(x, shape), degree)
        lead = shape_of(matrix)[:-1]
        if result is None:
            result = matrix
            continue
        m, n = shape_of(result)[-1], shape_of(matrix)[-1]
        product = structural.reshape(result, (*lead, m, 1)) * structural.reshape(
            matrix, (*lead, 1, n)
        )
        result = structural.reshape(product, (*lead, m * n))
    return result


def vander2d(basis: Basis, x: ArrayLike, y: ArrayLike, deg: ArrayLike) -> Array:
    """Products of values in two variables, along a new last axis."""
    return _vander_all(basis, (x, y), deg)


def vander3d(basis: Basis, x: ArrayLike, y: ArrayLike, z: ArrayLike, deg: ArrayLike) -> Array:
    """Products of values in three variables, along a new last axis."""
    return _vander_all(basis, (x, y, z), deg)


# arithmetic -------------------------------------------------------------------------------------


def add(basis: Basis, c1: ArrayLike, c2: ArrayLike) -> Any:
    """Sum of two series."""
    p, q = _vector(c1), _vector(c2)
    n = max(shape_of(p)[0], shape_of(q)[0])
    return ew.add(_padded(p, n), _padded(q, n))


def sub(basis: Basis, c1: ArrayLike, c2: ArrayLike) -> Array:
    """Difference of two series."""
    p, q = _vector(c1), _vector(c2)
    n = max(shape_of(p)[0], shape_of(q)[0])
    return ew.subtract(_padded(p, n), _padded(q, n))


def mulx(basis: Basis, c: ArrayLike) -> Array:
    """Product of a series and ``x``."""
    c = _vector(c)
    return _mapped(_matrix(basis, "mulx", shape_of(c)[0], 0), c)


def mul(basis: Basis, c1: ArrayLike, c2: ArrayLike) -> Array:
    """Product of two series."""
    p, q = _vector(c1), _vector(c2)
    if basis.prefix == "poly":
        return convolution.convolve(p, q)
    table = _products(basis, shape_of(p)[0], shape_of(q)[0])
    real = np.finfo(np.result_type(dtype_of(p), dtype_of(q))).dtype
    return tensordot(q, tensordot(p, table.astype(real), ((0,), (0,))), ((0,), (0,)))


def div(basis: Basis, c1: ArrayLike, c2: ArrayLike) -> tuple[Any, Any]:
    """Quotient and remainder of two series; the leading coefficient of ``c2`` is not 0."""
    rest, divisor = _vector(c1), _vector(c2)
    n, m = shape_of(rest)[0], shape_of(divisor)[0]
    if is_known(divisor) and holds(ew.equal(divisor[-1], 0)):
        raise ZeroDivisionError(f"{basis.prefix}div: the leading coefficient of c2 is 0")
    if n < m:
        return part(rest, 0, None, 1) * 0, rest
    if m == 1:
        return rest / divisor, part(rest, 0, None, 1) * 0
    digits = []
    for i in range(n - m, -1, -1):
        product = mul(basis, np.eye(i + 1, dtype=np.finfo(dtype_of(divisor)).dtype)[i], divisor)
        digit = part(rest, 0, -1, None) / part(product, 0, -1, None)
        rest = part(rest, 0, None, -1) - digit * part(product, 0, None, -1)
        digits.append(digit)
    return movement.concatenate(digits[::-1], 0), rest


def pow(basis: Basis, c: ArrayLike, pow: int, maxpower: int = 16) -> Array:
    """Power of a series."""
    c = _vector(c)
    power = int(pow)
    if power != pow or power < 0:
        raise ValueError("Power must be a non-negative integer.")
    if maxpower is not None and power > maxpower:
        raise ValueError("Power is too large")
    result: Any = np.ones(1, dtype_of(c))
    for i in range(power):
        result = mul(basis, result, c) if i else c
    return result


def line(basis: Basis, off: ArrayLike, scl: ArrayLike) -> Any:
    """The series of ``off + scl x``."""
    offset, scale = inexact(as_array(off)), inexact(as_array(scl))
    constant = np.zeros(2)
    constant[0] = 1.0
    slope = np.zeros(2)
    plain = basis.plain("line")(0, 1)
    slope[: len(plain)] = plain
    real = np.finfo(np.result_type(dtype_of(offset), dtype_of(scale))).dtype
    return offset * constant.astype(real) + scale * slope.astype(real)


def fromroots(basis: Basis, roots: ArrayLike) -> Array:
    """The series with given roots, of leading coefficient 1 in powers."""
    zeros = inexact(at_least(as_array(roots), 1))
    if len(shape_of(zeros)) != 1:
        raise ValueError("Coefficient array is not 1-d")
    if not shape_of(zeros)[0]:
        return np.ones(1)
    one = dtype_of(zeros).type(1)
    level = [line(basis, ew.negative(zero), one) for zero in movement.unstack(zeros, 0)]
    while len(level) > 1:
        pairs = [mul(basis, p, q) for p, q in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def trim(basis: Basis, c: Array, tol: Any = 0) -> Any:
    """A series without trailing coefficients that are small; their number needs values."""
    if tol < 0:
        raise ValueError("tol must be non-negative")
    c = _vector(c)
    kept = np.flatnonzero(value_of(ew.greater(complex_parts.absolute(c), tol)))
    return part(c, 0, None, int(kept[-1]) + 1) if len(kept) else part(c, 0, None, 1) * 0


def to_powers(basis: Basis, c: ArrayLike) -> Array:
    """Coefficients of powers of ``x`` from those of a series."""
    c = _vector(c)
    return _mapped(_matrix(basis, f"{basis.prefix}2poly", shape_of(c)[0], 0), c)


def from_powers(basis: Basis, pol: ArrayLike) -> Array:
    """Coefficients of a series from those of powers of ``x``."""
    c = _vector(pol)
    return _mapped(_matrix(basis, f"poly2{basis.prefix}", shape_of(c)[0], 0), c)


# calculus ---------------------------------------------------------------------------------------


def _is_one(scl: ArrayLike) -> bool:
    return type(scl) in (int, float) and scl == 1


def der(
    basis: Basis, c: Array, m: int = 1, scl: ArrayLike = 1, axis: int | Sequence[int] | None = 0
) -> Array:
    """Derivative of a series."""
    c, order = inexact(at_least(as_array(c), 1)), operator.index(m)
    if order < 0:
        raise ValueError("The order of derivation must be non-negative")
    axis = structural.normalize_axis(axis, len(shape_of(c)), "axis")
    if not order:
        return c
    result = _mapped(_matrix(basis, "der", shape_of(c)[axis], order), c, axis)
    return result if _is_one(scl) else result * as_array(scl) ** order


def integral(
    basis: Basis,
    c: Array,
    m: int = 1,
    k: ArrayLike = (),
    lbnd: ArrayLike = 0,
    scl: ArrayLike = 1,
    axis: int | Sequence[int] | None = 0,
) -> Array:
    """Antiderivative of a series; ``k`` are its values at ``lbnd``."""
    c, order = inexact(at_least(as_array(c), 1)), operator.index(m)
    if order < 0:
        raise ValueError("The order of integration must be non-negative")
    k = as_array(k) if not isinstance(k, (list, tuple)) else list(k)
    if not isinstance(k, list):
        k = list(movement.unstack(k, 0)) if shape_of(k) else [k]
    if len(k) > order:
        raise ValueError("Too many integration constants")
    if shape_of(as_array(lbnd)) != ():
        raise ValueError("lbnd must be a scalar.")
    if shape_of(as_array(scl)) != ():
        raise ValueError("scl must be a scalar.")
    axis = structural.normalize_axis(axis, len(shape_of(c)), "axis")
    c, dtype = structural.moveaxis(c, axis, 0), dtype_of(c)
    for i in range(order):
        if not _is_one(scl):
            c = c * scl
        c = _mapped(_matrix(basis, "int", shape_of(c)[0], 1), c)
        constant = (k[i] if i < len(k) else dtype.type(0)) - val(basis, lbnd, c)
        first = part(c, 0, None, 1)
        c = movement.concatenate((cast(first + constant, dtype_of(c)), part(c, 0, 1, None)), 0)
    return structural.moveaxis(c, 0, axis)


# fits and roots ---------------------------------------------------------------------------------


def fit(
    basis: Basis,
    x: ArrayLike,
    y: ArrayLike,
    deg: ArrayLike,
    rcond: Any = None,
    full: bool = False,
    w: ArrayLike | None = None,
) -> Any:
    """Least-squares fit of a series to points."""
    points, values = inexact(as_array(x)), inexact(as_array(y))
    degrees = np.asarray(deg)
    if degrees.ndim > 1 or degrees.dtype.kind not in "iu" or degrees.size == 0:
        raise TypeError("deg must be an int or non-empty 1-D array of int")
    if degrees.min() < 0:
        raise ValueError("expected deg >= 0")
    if len(shape_of(points)) != 1:
        raise TypeError("expected 1D vector for x")
    n = shape_of(points)[0]
    if not n:
        raise TypeError("expected non-empty vector for x")
    if len(shape_of(values)) not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(values)[0] != n:
        raise TypeError("expected x and y to have same length")
    largest = int(degrees.max())
    matrix = vander(basis, points, largest)
    chosen = np.arange(largest + 1) if degrees.ndim == 0 else np.sort(degrees)
    if len(chosen) != largest + 1:
        columns = movement.unstack(matrix, 1)
        matrix = movement.stack([columns[i] for i in chosen], 1)
    if w is not None:
        weights = inexact(as_array(w))
        if len(shape_of(weights)) != 1:
            raise TypeError("expected 1D vector for w")
        if shape_of(weights) != (n,):
            raise TypeError("expected x and w to have same length")
        column = structural.reshape(weights, (n, 1))
        matrix = matrix * column
        values = values * (column if len(shape_of(values)) == 2 else weights)
    if rcond is None:
        rcond = n * np.finfo(dtype_of(points)).eps
    squares = matrix * matrix
    if dtype_of(matrix).kind == "c":
        squares = complex_parts.real(matrix * complex_parts.conjugate(matrix))
    scale = ew.sqrt(structural.reduce_sum(squares, (0,)))
    found, residuals, rank, singular = linalg.lstsq.traced(matrix / scale, values, rcond)  # type: ignore[attr-defined]  # set by implements
    order = len(chosen)
    found = found / (scale if len(shape_of(found)) == 1 else structural.reshape(scale, (order, 1)))
    if order != largest + 1:
        rows = dict(zip(chosen.tolist(), movement.unstack(found, 0), strict=True))
        zero = np.zeros(shape_of(found)[1:], dtype_of(found))
        found = movement.stack([rows.get(i, zero) for i in range(largest + 1)], 0)
    if full:
        return found, [residuals, rank, singular, rcond]
    if is_known(rank) and int(value_of(rank)) != order:
        warn("The fit may be poorly conditioned", np.exceptions.RankWarning)
    return found


def companion(basis: Basis, c: ArrayLike) -> Array:
    """The companion matrix of a series; its leading coefficient is not 0.

    Only the last column depends on the coefficients, and it is affine in ``c[:-1] / c[-1]``.
    """
    c = _vector(c)
    n = shape_of(c)[0] - 1
    if n < 1:
        raise ValueError("Series must have maximum degree of at least 1.")
    real = np.finfo(dtype_of(c)).dtype
    plain = basis.plain("companion")
    unit = np.eye(n + 1)[n]
    base = plain(unit)
    slope = plain(np.ones(n + 1))[:, -1] - base[:, -1]
    ratio = part(c, 0, None, -1) / part(c, 0, -1, None)
    column = structural.reshape(ratio * slope.astype(real), (n, 1))
    return base.astype(real) + column * np.eye(n)[-1].astype(real)


def roots(basis: Basis, c: ArrayLike) -> Array:
    """Roots of a series, sorted, as eigenvalues of its companion matrix."""
    c = _vector(c)
    n = shape_of(c)[0] - 1
    if n < 1:
        return np.zeros(0, dtype_of(c))
    matrix = movement.reverse(companion(basis, c), (0, 1))
    if n == 1:
        return structural.reshape(matrix, (1,))
    return sort.traced(linalg.eigvals.traced(matrix))  # type: ignore[attr-defined]  # set by implements


# names ------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": add, "sub": sub, "mulx": mulx, "mul": mul, "div": div, "pow": pow, "val": val,
    "val2d": val2d, "val3d": val3d, "grid2d": grid2d, "grid3d": grid3d, "vander": vander,
    "vander2d": vander2d, "vander3d": vander3d, "der": der, "int": integral, "fit": fit,
    "companion": companion, "roots": roots, "fromroots": fromroots, "line": line, "trim": trim,
}  # fmt: skip
NAMES = tuple(_FUNCTIONS)
"""NumPy's names without the prefix, of all bases."""


def functions(basis: Basis) -> Callable[[str], Callable[..., Any]]:
    """The functions of a basis, by NumPy's names without the prefix.

    Args:
      basis: the basis.

    Returns:
      A function of a name: ``of("val")`` is ``chebval``. What it gives calls NumPy's function on
      plain arguments.
    """

    def of(name: str) -> Callable[..., Any]:
        general: Callable[..., Any]
        if name.endswith("2poly"):
            general = to_powers
        elif name.startswith("poly2"):
            general = from_powers
        else:
            general = _FUNCTIONS[name]
        plain = basis.plain(name)

        def traced(*args: Array, **kwargs: Any) -> Any:
            return general(basis, *args, **kwargs)

        traced.__doc__ = f"{general.__doc__} NumPy's ``{plain.__name__}``."
        traced.__name__ = traced.__qualname__ = plain.__name__
        traced.__module__ = f"functrans.numpy.polynomial.{basis.name}"
        return implements(plain)(traced)

    return of
