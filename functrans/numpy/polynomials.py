"""Polynomials as vectors of coefficients, the highest power first: evaluation, arithmetic, fits.

Here: the ``poly*`` functions and ``roots``. Not here: ``np.polynomial`` (its functions do not
dispatch), Vandermonde matrices (``creation``).

Layer: ``numpy``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.boundary import warn
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy import linalg
from functrans.numpy.common import as_array, as_operand, inexact, is_known, value_of
from functrans.numpy.creation import vander
from functrans.numpy.cumulative import part
from functrans.numpy.dispatch import implements
from functrans.numpy.shaping import at_least
from functrans.primitives import complex_parts, convolution, movement, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.creation import diagonal_matrix
from functrans.primitives.dot import matmul
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast


def _coefficients(p: ArrayLike) -> Array:
    """Coefficients as a vector."""
    return at_least(as_operand(p), 1)


@implements(np.polyval)
def polyval(p: ArrayLike, x: ArrayLike) -> Array:
    """Value of a polynomial, by Horner's scheme."""
    coefficients, points = _coefficients(p), as_array(x)
    result: Any = np.zeros(shape_of(points), dtype_of(points))
    for c in movement.unstack(coefficients, 0):
        result = result * points + c
    return result


def _aligned(a1: ArrayLike, a2: ArrayLike) -> tuple[Any, Any]:
    """Two polynomials with as many coefficients."""
    p, q = _coefficients(a1), _coefficients(a2)
    n = max(shape_of(p)[0], shape_of(q)[0])
    p, q = (movement.pad(v, 0, ((n - shape_of(v)[0], 0, 0),)) for v in (p, q))
    return p, q


@implements(np.polyadd)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Sum of two polynomials."""
    return ew.add(*_aligned(a1, a2))


@implements(np.polysub)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Difference of two polynomials."""
    return ew.subtract(*_aligned(a1, a2))


@implements(np.polymul)
def polymul(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Product of two polynomials."""
    return convolution.convolve(_coefficients(a1), _coefficients(a2))


@implements(np.polydiv)
def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials; leading zeros are dropped, which needs values."""
    rest, divisor = inexact(_coefficients(u)), inexact(_coefficients(v))
    m, n = shape_of(rest)[0] - 1, shape_of(divisor)[0] - 1
    scale = ew.divide(1.0, gather(divisor, (0,), (0,)))
    digits = []
    for k in range(m - n + 1):
        digit = gather(rest, (k,), (0,)) * scale
        digits.append(digit)
        rest = ew.subtract(rest, movement.pad(digit * divisor, 0, ((k, m - n - k, 0),)))
    dtype = np.result_type(dtype_of(rest), dtype_of(divisor))
    quotient = movement.stack(digits, 0) if digits else np.zeros(1, dtype)
    start = 0
    values = np.asarray(value_of(rest))
    while np.allclose(values[start], 0, rtol=1e-14) and start < len(values) - 1:
        start += 1
    return quotient, part(rest, 0, start, None)


@implements(np.polyder)
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Derivative of a polynomial."""
    order = operator.index(m)
    if order < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    result = _coefficients(p)
    for _ in range(order):
        n = shape_of(result)[0] - 1
        result = ew.multiply(part(result, 0, None, -1), np.arange(n, 0, -1))
    return result


@implements(np.polyint)
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Any:
    """Antiderivative of a polynomial."""
    order = operator.index(m)
    if order < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = _coefficients(0.0 if k is None else k)
    if shape_of(constants)[0] == 1 and order > 1:
        constants = structural.broadcast_to(constants, (order,))
    if shape_of(constants)[0] < order:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    result = inexact(_coefficients(p))
    for i in range(order):
        n = shape_of(result)[0]
        raised = ew.divide(result, np.arange(n, 0, -1))
        result = movement.concatenate((raised, part(constants, 0, i, i + 1)), 0)
    return result


@implements(np.poly)
def poly(seq_of_zeros: ArrayLike) -> Any:
    """Monic polynomial of given roots, or of the eigenvalues of a matrix."""
    zeros = at_least(as_array(seq_of_zeros), 1)
    shape = shape_of(zeros)
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros = linalg.eigvals.traced(zeros)  # type: ignore[attr-defined]  # set by implements
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not shape_of(zeros)[0]:
        return 1.0
    zeros = cast(zeros, np.mintypecode(dtype_of(zeros).char))  # products of integers overflow
    result: Any = np.ones(1, dtype_of(zeros))
    for zero in movement.unstack(zeros, 0):
        factor = movement.stack((dtype_of(zeros).type(1), ew.negative(zero)), 0)
        result = convolution.convolve(result, factor)
    if dtype_of(result).kind == "c" and is_known(zeros):
        plain = np.asarray(value_of(zeros))
        if np.all(np.sort(plain) == np.sort(plain.conjugate())):
            result = complex_parts.real(result)
    return result


@implements(np.roots)
def roots(p: ArrayLike) -> Array:
    """Roots of a polynomial, as eigenvalues of its companion matrix; zeros need values."""
    coefficients = _coefficients(p)
    if len(shape_of(coefficients)) != 1:
        raise ValueError("Input must be a rank-1 array.")
    places = np.flatnonzero(np.asarray(value_of(coefficients)))
    if not len(places):
        return np.array([])
    n_zeros = shape_of(coefficients)[0] - int(places[-1]) - 1
    coefficients = inexact(part(coefficients, 0, int(places[0]), int(places[-1]) + 1))
    n = shape_of(coefficients)[0]
    if n < 2:
        return np.zeros(n_zeros)
    below = diagonal_matrix(np.ones(n - 2, dtype_of(coefficients)), -1)
    first = ew.negative(part(coefficients, 0, 1, None) / part(coefficients, 0, 0, 1))
    companion = movement.concatenate((structural.reshape(first, (1, n - 1)), below[1:]), 0)
    found = linalg.eigvals.traced(companion)  # type: ignore[attr-defined]  # set by implements
    if not n_zeros:
        return found
    return movement.concatenate((found, np.zeros(n_zeros, dtype_of(found))), 0)


@implements(np.polyfit)
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: object = False,
) -> Any:
    """Least-squares fit of a polynomial."""
    order = operator.index(deg) + 1
    points, values = inexact(as_array(x)), inexact(as_array(y))
    if order < 1:
        raise ValueError("expected deg >= 0")
    if len(shape_of(points)) != 1:
        raise TypeError("expected 1D vector for x")
    n = shape_of(points)[0]
    if not n:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= len(shape_of(values)) <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(values)[0] != n:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = n * np.finfo(dtype_of(points)).eps
    matrix = vander.traced(points, order)  # type: ignore[attr-defined]  # set by implements
    if w is not None:
        weights = inexact(as_array(w))
        if shape_of(weights) != (n,):
            raise TypeError("expected w and y to have the same length")
        column = structural.reshape(weights, (n, 1))
        matrix = matrix * column
        values = values * (column if len(shape_of(values)) == 2 else weights)
    scale = ew.sqrt(structural.reduce_sum(matrix * matrix, (0,)))
    matrix = matrix / scale
    fit, residuals, rank, singular = linalg.lstsq.traced(matrix, values, rcond)  # type: ignore[attr-defined]  # set by implements
    divisor = scale if len(shape_of(fit)) == 1 else structural.reshape(scale, (order, 1))
    fit = fit / divisor
    if is_known(rank) and int(value_of(rank)) != order and not full:
        warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning)
    if full:
        return fit, residuals, rank, singular, rcond
    if not cov:
        return fit
    gram = matmul(structural.transpose(matrix, (1, 0)), matrix)
    base = linalg.inv.traced(gram)  # type: ignore[attr-defined]  # set by implements
    base = base / (structural.reshape(scale, (order, 1)) * scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if n <= order:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        factor = residuals / (n - order)
    if len(shape_of(values)) == 1:
        return fit, base * factor
    wide = structural.reshape(base, (order, order, 1))
    return fit, wide * cast(factor, dtype_of(wide))
