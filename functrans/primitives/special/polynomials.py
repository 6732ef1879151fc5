"""Orthogonal polynomials, associated Legendre functions, and Student's distribution.

Here: records of these, and the functions that apply them. Not here: shifted polynomials and
spherical harmonics, which are composed of them (``scipy.special``).

Degrees that are integers stay integers, since SciPy evaluates these by recurrences. The derivative
of a polynomial is one of the next family and of a degree less, so that all orders are there and the
ends of the interval are no exception.

Layer: ``primitives.special``. Source: DLMF 14.10, 18.9 for the derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.family import user_function
from functrans.primitives.special.family import (
    common_dtype,
    refused_derivative,
    routine,
    special_primitive,
)
from functrans.primitives.special.gamma import betainc_a, betaln, poch
from functrans.primitives.structural import cast

ArrayFunction = Callable[..., Any]

# polynomials -------------------------------------------------------------------------------------


def _lowered(n: int, value: Callable[[Any], Any]) -> Array:
    """A function of the degree below, 0 for degree 0."""
    is_constant = n == 0
    return ew.where(is_constant, 0, value(ew.where(is_constant, 1, n) - 1))


def _polynomial(
    name: str,
    count: int,
    slope: Callable[..., Any],
    *,
    integers: str = "",
    has_complex: bool = True,
) -> Primitive:
    """A polynomial of ``count`` operands: degree, parameters, argument."""
    letters = "abcd"[:count]
    refused = tuple(
        refused_derivative(name, i, "a parameter" if i else "the degree") for i in range(count - 1)
    )
    return special_primitive(
        name,
        (*refused, lambda t, *operands: t * slope(*operands[:-1])),
        (*("",) * (count - 1), letters),
        parameters="".join(c for c in letters[:-1] if c not in integers),
        integers=integers,
        has_complex=has_complex,
    )


eval_jacobi_p: Primitive = _polynomial(
    "eval_jacobi",
    4,
    lambda n, a, b, x: _lowered(
        n, lambda k: eval_jacobi(k, a + 1, b + 1, x) * ((n + a + b + 1) * 0.5)
    ),
)
eval_gegenbauer_p: Primitive = _polynomial(
    "eval_gegenbauer",
    3,
    lambda n, a, x: _lowered(n, lambda k: eval_gegenbauer(k, a + 1, x) * (2 * a)),
)
eval_legendre_p: Primitive = _polynomial(
    "eval_legendre",
    2,
    lambda n, x: _lowered(n, lambda k: eval_jacobi(k, 1.0, 1.0, x) * ((n + 1) * 0.5)),
)
eval_chebyt_p: Primitive = _polynomial(
    "eval_chebyt", 2, lambda n, x: _lowered(n, lambda k: eval_chebyu(k, x) * n)
)
eval_chebyu_p: Primitive = _polynomial(
    "eval_chebyu", 2, lambda n, x: _lowered(n, lambda k: eval_gegenbauer(k, 2.0, x) * 2)
)
eval_genlaguerre_p: Primitive = _polynomial(
    "eval_genlaguerre", 3, lambda n, a, x: _lowered(n, lambda k: -eval_genlaguerre(k, a + 1, x))
)
eval_laguerre_p: Primitive = _polynomial(
    "eval_laguerre", 2, lambda n, x: _lowered(n, lambda k: -eval_genlaguerre(k, 1.0, x))
)
eval_hermite_p: Primitive = _polynomial(
    "eval_hermite",
    2,
    lambda n, x: _lowered(n, lambda k: eval_hermite(k, x) * (2 * n)),
    integers="a",
    has_complex=False,
)
eval_hermitenorm_p: Primitive = _polynomial(
    "eval_hermitenorm",
    2,
    lambda n, x: _lowered(n, lambda k: eval_hermitenorm(k, x) * n),
    integers="a",
    has_complex=False,
)

eval_jacobi: ArrayFunction = user_function(eval_jacobi_p, "Jacobi's polynomial.")
eval_gegenbauer: ArrayFunction = user_function(eval_gegenbauer_p, "Gegenbauer's polynomial.")
eval_legendre: ArrayFunction = user_function(eval_legendre_p, "Legendre's polynomial.")
eval_chebyt: ArrayFunction = user_function(
    eval_chebyt_p, "Chebyshev's polynomial of the first kind."
)
eval_chebyu: ArrayFunction = user_function(
    eval_chebyu_p, "Chebyshev's polynomial of the second kind."
)
eval_genlaguerre: ArrayFunction = user_function(
    eval_genlaguerre_p, "The generalised Laguerre polynomial."
)
eval_laguerre: ArrayFunction = user_function(eval_laguerre_p, "Laguerre's polynomial.")
eval_hermite: ArrayFunction = user_function(eval_hermite_p, "The physicists' Hermite polynomial.")
eval_hermitenorm: ArrayFunction = user_function(
    eval_hermitenorm_p, "The probabilists' Hermite polynomial."
)

# associated Legendre functions -------------------------------------------------------------------


def _lpmv_slope(m: Any, v: Array, x: Array, y: Array) -> Array:
    """DLMF 14.10.5: ``(1 - x**2) P' = (v + m) P_{v-1} - v x P_v``; at the ends ``_at_ends``."""
    is_end = (x * x == 1) & (m >= 0)
    inner = ew.where(is_end, 0, x)
    slope = ((v + m) * lpmv(m, v - 1, inner) - v * inner * y) / (1 - inner * inner)
    return ew.where(is_end, _lpmv_slope_at_ends(m, v, ew.where(is_end, x, 1)), slope)


def _lpmv_slope_at_ends(m: Array | complex, v: Array, x: Array) -> Array:
    """The derivative by Jacobi's polynomials, of orders from 0 on, which holds at the ends too.

    ``P = c (1 - x**2)**(m/2) J_{v-m}^{(m, m)}(x)`` with ``c = (-1/2)**m (v+1)_m`` (DLMF 14.3.21,
    18.7.9): the factor of the power has its derivatives where the power has.
    """
    dtype = common_dtype(m, v, x)
    m, v, x = cast(m, dtype), cast(v, dtype), cast(x, dtype)
    v = ew.where(v < -0.5, -1 - v, v)  # the same function
    is_integer = ew.floor(v) == v
    scale = ew.power(-0.5, m) * ew.where(is_integer & (v < m), 0, poch(v + 1, m))

    def jacobi(order: Array | complex) -> Array:
        degree = v - order
        is_none = is_integer & (degree < 0)
        value = eval_jacobi(ew.where(is_none, 0, degree), order, order, x)
        return ew.where(is_none, 0, value)

    rest = (1 - x) * (1 + x)
    steep = ew.where(m == 0, 0, ew.power(ew.where(m == 0, 1, rest), m * 0.5 - 1) * (m * x))
    flat = ew.power(ew.where(m == 0, 1, rest), m * 0.5) * (v + m + 1) * 0.5
    own, next_one = jacobi(m), jacobi(m + 1)
    return scale * (flat * next_one - ew.where(own == 0, 0, steep * own))


def _sph_legendre_slope(n: Array, m: Array, theta: Array) -> Array:
    """The derivative in the angle by the neighbouring orders, which holds at the poles too.

    With Condon and Shortley's phase: ``(c(m) p(m + 1) - c(-m) p(m - 1)) / 2`` where ``c(m)**2`` is
    ``(n - m) (n + m + 1)``.
    """
    dtype = common_dtype(theta)
    up = ew.sqrt(cast(ew.maximum((n - m) * (n + m + 1), 0), dtype))
    down = ew.sqrt(cast(ew.maximum((n + m) * (n - m + 1), 0), dtype))
    higher = ew.where(up == 0, 0, sph_legendre_p(n, ew.where(up == 0, m, m + 1), theta))
    lower = ew.where(down == 0, 0, sph_legendre_p(n, ew.where(down == 0, m, m - 1), theta))
    return (up * higher - down * lower) * 0.5


def _plain_sph_legendre(n: Array, m: Array, theta: Array) -> Array:
    shape = np.broadcast_shapes(n.shape, m.shape, theta.shape)
    if 0 in shape:
        return np.zeros(shape, theta.dtype)
    # SciPy's result has an axis of derivatives, of which there is none.
    return np.reshape(routine("sph_legendre_p")(n, m, theta), shape)


lpmv_p: Primitive = special_primitive(
    "lpmv",
    (
        refused_derivative("lpmv", 0, "the order"),
        refused_derivative("lpmv", 1, "the degree"),
        lambda t, a, b, c, y: t * _lpmv_slope(a, b, c, y),
    ),
    ("", "", "abcy"),
)
sph_legendre_p_p: Primitive = special_primitive(
    "sph_legendre_p",
    (
        refused_derivative("sph_legendre_p", 0, "the degree"),
        refused_derivative("sph_legendre_p", 1, "the order"),
        lambda t, a, b, c, y: t * _sph_legendre_slope(a, b, c),
    ),
    ("", "", "abc"),
    _plain_sph_legendre,
    integers="ab",
)

lpmv: ArrayFunction = user_function(
    lpmv_p, "The associated Legendre function of integer order and real degree."
)
sph_legendre_p: ArrayFunction = user_function(
    sph_legendre_p_p, "The spherical Legendre polynomial of an angle."
)

# Student's distribution --------------------------------------------------------------------------


def student_density(df: Array | complex, x: Array | complex) -> Array:
    """The density ``(1 + x**2 / df)**(-(df + 1) / 2) / (sqrt(df) beta(df / 2, 1 / 2))``."""
    dtype = common_dtype(df, x)
    df, x = cast(df, dtype), cast(x, dtype)
    exponent = ew.log1p(x * x / df) * ((df + 1) * -0.5)
    return ew.exp(exponent - betaln(df * 0.5, 0.5)) / ew.sqrt(df)


def student_df(df: Array, x: Array | complex) -> Array:
    """The derivative of the distribution function in the degrees of freedom.

    For positive ``x`` it is ``1 - I_z(df/2, 1/2) / 2`` of ``z = df / (df + x**2)``; and
    ``z_df I_z' = abs(x) density / df``.
    """
    dtype = common_dtype(df, x)
    df, x = cast(df, dtype), cast(x, dtype)
    z = df / (df + x * x)
    half = ew.sign(x) * betainc_a(df * 0.5, 0.5, z) * -0.25
    return half - x * student_density(df, x) / (df * 2)


stdtr_p: Primitive = special_primitive(
    "stdtr",
    (lambda t, a, b, y: t * student_df(a, b), lambda t, a, b, y: t * student_density(a, b)),
    ("ab", "ab"),
)
stdtrit_p: Primitive = special_primitive(
    "stdtrit",
    (
        lambda t, a, b, y: -t * (student_df(a, y) / student_density(a, y)),
        lambda t, a, b, y: t / student_density(a, y),
    ),
    ("ay", "ay"),
)
stdtr: ArrayFunction = user_function(
    stdtr_p, "The cumulative distribution function of Student's t."
)
stdtrit: ArrayFunction = user_function(stdtrit_p, "The inverse of ``stdtr`` in ``t``.")


PRIMITIVES: tuple[Primitive, ...] = (
    eval_jacobi_p, eval_gegenbauer_p, eval_legendre_p, eval_chebyt_p, eval_chebyu_p,
    eval_genlaguerre_p, eval_laguerre_p, eval_hermite_p, eval_hermitenorm_p, lpmv_p,
    sph_legendre_p_p, stdtr_p, stdtrit_p,
)  # fmt: skip
