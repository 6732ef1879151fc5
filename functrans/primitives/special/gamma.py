"""Gamma and beta functions, their incomplete forms and inverses.

Here: records of these, and the functions that apply them. Not here: ``lgamma``, ``digamma``,
``gammainc``, ``gammaincc``, ``zeta`` (``functions``), sums of series (``series``).

Layer: ``primitives.special``. Source: DLMF chapters 5, 8 and 25 for the derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import dtype_of
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
from functrans.primitives.special.functions import digamma, gammainc_a, lgamma, zeta
from functrans.primitives.special.series import betainc_derivatives, riemann_derivatives
from functrans.primitives.special.series import zeta_decrease as zeta_decreases
from functrans.primitives.structural import cast

ArrayFunction = Callable[..., Any]
_LOG_BOUND = 80.0  # exp of it is finite in float32


def psi(x: Array) -> Array:
    """The derivative of the logarithm of gamma, complex numbers too."""
    return complex_digamma(x) if dtype_of(x).kind == "c" else digamma(x)


# gamma -------------------------------------------------------------------------------------------


def _rgamma_slope(x: Array, y: Array) -> Array:
    """The derivative of ``1 / gamma(x)``, which is finite at the poles of gamma.

    Left of 1/2 by reflection: ``rgamma(x) = gamma(1 - x) sin(pi x) / pi``.
    """
    if dtype_of(x).kind == "c":
        return -psi(x) * y
    is_left = x < 0.5
    mirrored = ew.where(is_left, 1 - x, 1)
    left = gamma(mirrored) * ew.cos(math.pi * ew.where(is_left, x, 0)) - digamma(mirrored) * y
    is_end = x == math.inf  # where it is 0
    right = -digamma(ew.where(is_left | is_end, 1, x)) * ew.where(is_end, 0, y)
    return ew.where(is_left, left, right)


def _poch_slopes(a: Any, b: Any, y: Array | complex) -> tuple[Any, Any]:
    """The derivatives of ``poch(a, b)``, also where ``a`` is a pole of gamma.

    Where it is 0 they are those of ``gamma(a + b) rgamma(a)``. Where ``a`` and ``a + b`` are both
    poles, digamma is reflected: ``psi(x) - psi(1 - x)`` is the same for both.
    """
    is_zero = y == 0
    both = (a <= 0) & (a + b <= 0) & (ew.floor(a) == a) & (ew.floor(a + b) == a + b)
    at_sum, at_a = ew.where(is_zero, a + b, 1), ew.where(is_zero, a, 1)
    scale, of_a = gamma(at_sum), rgamma(at_a)
    rate = digamma(at_sum)
    in_sum = ew.where(is_zero, 1, ew.where(both, 1 - a - b, a + b))
    in_a = ew.where(is_zero, 1, ew.where(both, 1 - a, a))
    change = digamma(in_sum) - digamma(in_a)
    return (
        ew.where(is_zero, scale * (rate * of_a + _rgamma_slope(at_a, of_a)), y * change),
        ew.where(is_zero, scale * rate * of_a, y * digamma(ew.where(is_zero, 1, a + b))),
    )


def _binom_slopes(a: Array | complex, b: Array | complex, y: Array) -> tuple[Any, Any]:
    """The derivatives of ``binom(a, b)``; where it is 0, by the reciprocals of gamma, at its poles.

    ``binom(a, b) = gamma(a + 1) rgamma(b + 1) rgamma(a - b + 1)``.
    """
    is_zero = y == 0
    top, low, rest = a + 1, b + 1, a - b + 1
    in_top, in_low, in_rest = (ew.where(is_zero, 1, x) for x in (top, low, rest))
    at_top, at_low, at_rest = (ew.where(is_zero, x, 1) for x in (top, low, rest))
    scale, of_low, of_rest = gamma(at_top), rgamma(at_low), rgamma(at_rest)
    low_slope, rest_slope = _rgamma_slope(at_low, of_low), _rgamma_slope(at_rest, of_rest)
    first = scale * of_low * (digamma(at_top) * of_rest + rest_slope)
    second = scale * (low_slope * of_rest - of_low * rest_slope)
    return (
        ew.where(is_zero, first, y * (digamma(in_top) - digamma(in_rest))),
        ew.where(is_zero, second, y * (digamma(in_rest) - digamma(in_low))),
    )


gamma_p: Primitive = special_primitive(
    "gamma", (lambda t, x, y: t * (y * psi(x)),), ("xy",), has_complex=True
)
loggamma_p: Primitive = special_primitive(
    "loggamma", (lambda t, x, y: t * psi(x),), ("x",), has_complex=True
)
rgamma_p: Primitive = special_primitive(
    "rgamma", (lambda t, x, y: t * _rgamma_slope(x, y),), ("xy",), has_complex=True
)
complex_digamma_p: Primitive = special_primitive(
    "complex_digamma",
    (refused_derivative("complex_digamma", 0, "of complex numbers"),),
    ("",),
    "psi",
    has_complex=True,
)
poch_p: Primitive = special_primitive(
    "poch",
    (
        lambda t, a, b, y: t * _poch_slopes(a, b, y)[0],
        lambda t, a, b, y: t * _poch_slopes(a, b, y)[1],
    ),
    ("aby", "aby"),
)
binom_p: Primitive = special_primitive(
    "binom",
    (
        lambda t, a, b, y: t * _binom_slopes(a, b, y)[0],
        lambda t, a, b, y: t * _binom_slopes(a, b, y)[1],
    ),
    ("aby", "aby"),
)
riemann_zeta_p: Primitive = special_primitive(
    "riemann_zeta", (lambda t, x, y: t * riemann_zeta_s(x),), ("x",), "zeta"
)
riemann_zeta_s_p: Primitive = special_primitive(
    "riemann_zeta_s",
    (lambda t, x, y: t * riemann_zeta_ss(x),),
    ("x",),
    lambda x: riemann_derivatives(x)[0],
    is_wide=True,
)
riemann_zeta_ss_p: Primitive = special_primitive(
    "riemann_zeta_ss",
    (refused_derivative("riemann_zeta_ss", 0, "the third derivative of zeta"),),
    ("",),
    lambda x: riemann_derivatives(x)[1],
    is_wide=True,
)
zetac_p: Primitive = special_primitive("zetac", (lambda t, x, y: t * riemann_zeta_s(x),), ("x",))

gamma: ArrayFunction = user_function(gamma_p, "The gamma function.")
loggamma: ArrayFunction = user_function(
    loggamma_p, "The principal branch of the logarithm of the gamma function."
)
rgamma: ArrayFunction = user_function(rgamma_p, "``1 / gamma(x)``, which is an entire function.")
complex_digamma: ArrayFunction = user_function(
    complex_digamma_p, "``digamma`` of complex numbers; no derivative."
)
poch: ArrayFunction = user_function(
    poch_p, "Pochhammer's symbol ``gamma(z + m) / gamma(z)``, also called rising factorial."
)
binom: ArrayFunction = user_function(binom_p, "The binomial coefficient of real numbers.")
riemann_zeta: ArrayFunction = user_function(
    riemann_zeta_p, "Riemann's zeta function; differentiable twice."
)
riemann_zeta_s: ArrayFunction = user_function(
    riemann_zeta_s_p, "The derivative of Riemann's zeta function."
)
riemann_zeta_ss: ArrayFunction = user_function(
    riemann_zeta_ss_p, "The second derivative of Riemann's zeta function."
)
zetac: ArrayFunction = user_function(zetac_p, "Riemann's zeta function minus 1.")

# beta --------------------------------------------------------------------------------------------


zeta_decrease_p: Primitive = special_primitive(
    "zeta_decrease",
    (
        refused_derivative("zeta_decrease", 0, "the exponent"),
        lambda t, a, b, c, y: -t * (zeta_decrease(a + 1, b, c) * a),
        lambda t, a, b, c, y: t * (zeta(cast(a + 1, dtype_of(c)), b + c) * a),
    ),
    ("", "abc", "abc"),
    zeta_decreases,
    names="abc",
    integers="a",
    is_wide=True,
)
zeta_decrease: ArrayFunction = user_function(
    zeta_decrease_p, "``zeta(s, q) - zeta(s, q + h)`` of whole exponents above 1."
)

# B_2j / (2j)
_DIGAMMA_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFTED = 8  # from here on these are enough


def _rise(q: Array, h: Array) -> Array:
    """``digamma(q + h) - digamma(q)`` of positive numbers, a sum of positive terms and small ones.

    Term by term a difference: of ``-1 / (q + k)`` to shift ``q`` (DLMF 5.5.2), then of the
    asymptotic series (DLMF 5.11.2), where ``u**j - w**j = u (u**(j-1) - w**(j-1)) + (u - w)
    w**(j-1)``. So nothing cancels, however small the step is.
    """
    total: Any = 0.0
    for k in range(_SHIFTED):
        total = total + (h / (q + k)) / (q + k + h)
    inverse, other = 1 / (q + _SHIFTED), 1 / (q + _SHIFTED + h)
    gap = h * inverse * other  # inverse - other
    total = total + ew.log1p(h * inverse) + gap * 0.5
    u, w = inverse * inverse, other * other
    fall = gap * (inverse + other)  # u - w
    power: Any = 1.0
    difference: Any = fall
    for i, coefficient in enumerate(_DIGAMMA_TERMS):
        if i:
            power = power * w
            difference = difference * u + fall * power
        total = total + difference * coefficient
    return total


def _digamma_rise(q: Array, h: Array) -> Array:
    """By the difference where a number is not positive."""
    is_regular = (q > 0) & (h > 0)
    rise = _rise(ew.where(is_regular, q, 1), ew.where(is_regular, h, 1))
    at, end = ew.where(is_regular, 1, q), ew.where(is_regular, 1, q + h)
    return ew.where(is_regular, rise, digamma(end) - digamma(at))


def _digamma_rise_plain(q: Array, h: Array) -> Array:
    """By the difference too where little of it cancels, since that is quicker in NumPy."""
    q, h = np.broadcast_arrays(q, h)
    psi = routine("psi")
    with np.errstate(all="ignore"):
        rise = np.asarray(psi(q + h) - psi(q))
        is_near = (q > 0) & (h > 0) & (h < 0.1 * np.maximum(q, 1))
        if is_near.any():
            rise[is_near] = _rise(q[is_near], h[is_near])
    return rise


digamma_rise_p: Primitive = special_primitive(
    "digamma_rise",
    (lambda t, a, b, y: -t * zeta_decrease(2, a, b), lambda t, a, b, y: t * trigamma(a + b)),
    ("ab", "ab"),
    _digamma_rise_plain,
    is_wide=True,
    expansion=_digamma_rise,
)
digamma_rise: ArrayFunction = user_function(digamma_rise_p, "``digamma(q + h) - digamma(q)``.")


def _log_slopes(a: Array | complex, b: Array | complex) -> tuple[Any, Any]:
    """The derivatives of ``log(beta(a, b))``, exact also where one is much larger."""
    dtype = common_dtype(a, b)
    a, b = cast(a, dtype), cast(b, dtype)
    return -digamma_rise(a, b), -digamma_rise(b, a)


beta_p: Primitive = special_primitive(
    "beta",
    (
        lambda t, a, b, y: t * (y * _log_slopes(a, b)[0]),
        lambda t, a, b, y: t * (y * _log_slopes(a, b)[1]),
    ),
    ("aby", "aby"),
)
betaln_p: Primitive = special_primitive(
    "betaln",
    (lambda t, a, b, y: t * _log_slopes(a, b)[0], lambda t, a, b, y: t * _log_slopes(a, b)[1]),
    ("ab", "ab"),
)


def beta_density(a: Array | complex, b: Array | complex, x: Array) -> Array:
    """The derivative of the incomplete beta function: ``x**(a-1) (1-x)**(b-1) / beta(a, b)``.

    At the ends of the interval the powers are powers, which have their derivatives there.
    """
    dtype = common_dtype(a, b, x)
    a, b, x = cast(a, dtype), cast(b, dtype), cast(x, dtype)
    is_end = (x == 0) | (x == 1)
    inner, end = ew.where(is_end, 0.5, x), ew.where(is_end, x, 0)
    value = ew.exp((a - 1) * ew.log(inner) + (b - 1) * ew.log1p(-inner) - betaln(a, b))
    scale = ew.exp(ew.minimum(-betaln(a, b), _LOG_BOUND))  # finite, so that 0 stays 0
    return ew.where(is_end, ew.power(end, a - 1) * ew.power(1 - end, b - 1) * scale, value)


def _inner(x: Array) -> tuple[Any, Any]:
    """Whether a point is an end of [0, 1], and the point moved inside if it is."""
    is_end = (x <= 0) | (x >= 1)
    return is_end, ew.where(is_end, 0.5, x)


def _scaled_density(factor: Callable[..., Any], a: Array, b: Array | complex, x: Array) -> Array:
    """The density times a factor; 0 at the ends, where the limit is."""
    is_end, inner = _inner(x)
    return ew.where(is_end, 0, beta_density(a, b, inner) * factor(inner))


def _log_slope(of_first: bool, a: Array, b: Array | complex) -> Callable[[Any], Any]:
    """The derivative of the density's logarithm in a parameter, as a function of the point."""

    def slope(x: Array) -> Any:
        log = ew.log(x) if of_first else ew.log1p(-x)
        return log - _log_slopes(a, b)[0 if of_first else 1]

    return slope


def _second(first: bool, second: bool, a: Array, b: Array) -> Callable[[Any], Any]:
    """The second derivative in parameters of the density, over the density."""

    def factor(x: Array) -> Any:
        bend = trigamma(a + b)
        if first == second:
            bend = bend - trigamma(a if first else b)
        return _log_slope(first, a, b)(x) * _log_slope(second, a, b)(x) + bend

    return factor


def trigamma(x: Array | complex) -> Array:
    """The derivative of ``digamma``."""
    return zeta(2.0, x)


betainc_p: Primitive = special_primitive(
    "betainc",
    (
        lambda t, a, b, c, y: t * betainc_a(a, b, c),
        lambda t, a, b, c, y: t * betainc_b(a, b, c),
        lambda t, a, b, c, y: t * beta_density(a, b, c),
    ),
    ("abc", "abc", "abc"),
)
betaincc_p: Primitive = special_primitive(
    "betaincc",
    (
        lambda t, a, b, c, y: -t * betainc_a(a, b, c),
        lambda t, a, b, c, y: -t * betainc_b(a, b, c),
        lambda t, a, b, c, y: -t * beta_density(a, b, c),
    ),
    ("abc", "abc", "abc"),
)


def _of_order(
    name: str, partials: tuple[Any, Any], saves: str, number: int, factor: Callable[..., Any]
) -> Primitive:
    """A derivative of the incomplete beta function in its parameters."""
    return special_primitive(
        name,
        (*partials, lambda t, a, b, c, y: t * _scaled_density(factor(a, b), a, b, c)),
        (saves, saves, "abc"),
        lambda a, b, c: betainc_derivatives(a, b, c)[number],
        is_wide=True,
    )


def _third(name: str) -> tuple[Any, Any]:
    what = "a third derivative of betainc in its parameters"
    return refused_derivative(name, 0, what), refused_derivative(name, 1, what)


betainc_a_p: Primitive = _of_order(
    "betainc_a",
    (lambda t, a, b, c, y: t * betainc_aa(a, b, c), lambda t, a, b, c, y: t * betainc_ab(a, b, c)),
    "abc",
    0,
    lambda a, b: _log_slope(True, a, b),
)
betainc_b_p: Primitive = _of_order(
    "betainc_b",
    (lambda t, a, b, c, y: t * betainc_ab(a, b, c), lambda t, a, b, c, y: t * betainc_bb(a, b, c)),
    "abc",
    1,
    lambda a, b: _log_slope(False, a, b),
)
betainc_aa_p: Primitive = _of_order(
    "betainc_aa", _third("betainc_aa"), "", 2, lambda a, b: _second(True, True, a, b)
)
betainc_ab_p: Primitive = _of_order(
    "betainc_ab", _third("betainc_ab"), "", 3, lambda a, b: _second(True, False, a, b)
)
betainc_bb_p: Primitive = _of_order(
    "betainc_bb", _third("betainc_bb"), "", 4, lambda a, b: _second(False, False, a, b)
)

_DOC = "A derivative of ``betainc`` in its parameters"
beta: ArrayFunction = user_function(beta_p, "``gamma(a) gamma(b) / gamma(a + b)``.")
betaln: ArrayFunction = user_function(betaln_p, "The logarithm of the absolute value of ``beta``.")
betainc: ArrayFunction = user_function(
    betainc_p, "The regularised incomplete beta function; differentiable twice in parameters."
)
betaincc: ArrayFunction = user_function(betaincc_p, "``1 - betainc(a, b, x)``, without rounding.")
betainc_a: ArrayFunction = user_function(betainc_a_p, f"{_DOC}: in the first.")
betainc_b: ArrayFunction = user_function(betainc_b_p, f"{_DOC}: in the second.")
betainc_aa: ArrayFunction = user_function(betainc_aa_p, f"{_DOC}: twice in the first.")
betainc_ab: ArrayFunction = user_function(betainc_ab_p, f"{_DOC}: in both.")
betainc_bb: ArrayFunction = user_function(betainc_bb_p, f"{_DOC}: twice in the second.")

# inverses ----------------------------------------------------------------------------------------
# Of F(p, x) = y: x_y = 1 / F_x and x_p = -F_p / F_x.


def _gamma_rate(a: Array, x: Array) -> Array:
    """``1 / density`` of the gamma distribution; 1 at 0 of the exponential one."""
    dtype = common_dtype(a, x)
    a, x = cast(a, dtype), cast(x, dtype)
    is_edge = (a == 1) & (x == 0)
    return ew.exp(x + lgamma(a) - (a - 1) * ew.log(ew.where(is_edge, 1, x)))


def _gamma_inverse_a(a: Array, x: Array) -> Array:
    """The derivative of the inverse in the parameter; 0 at the ends."""
    is_end = (x <= 0) | ew.isinf(x)
    inner = ew.where(is_end, 1, x)
    return ew.where(is_end, 0, -gammainc_a(a, inner) * _gamma_rate(a, inner))


def _beta_inverse(derivative: ArrayFunction, a: Array, b: Array, x: Array) -> Array:
    is_end, inner = _inner(x)
    return ew.where(is_end, 0, -derivative(a, b, inner) / beta_density(a, b, inner))


gammaincinv_p: Primitive = special_primitive(
    "gammaincinv",
    (lambda t, a, b, y: t * _gamma_inverse_a(a, y), lambda t, a, b, y: t * _gamma_rate(a, y)),
    ("ay", "ay"),
)
gammainccinv_p: Primitive = special_primitive(
    "gammainccinv",
    (lambda t, a, b, y: t * _gamma_inverse_a(a, y), lambda t, a, b, y: -t * _gamma_rate(a, y)),
    ("ay", "ay"),
)
betaincinv_p: Primitive = special_primitive(
    "betaincinv",
    (
        lambda t, a, b, c, y: t * _beta_inverse(betainc_a, a, b, y),
        lambda t, a, b, c, y: t * _beta_inverse(betainc_b, a, b, y),
        lambda t, a, b, c, y: t / beta_density(a, b, y),
    ),
    ("aby", "aby", "aby"),
)
betainccinv_p: Primitive = special_primitive(
    "betainccinv",
    (
        lambda t, a, b, c, y: t * _beta_inverse(betainc_a, a, b, y),
        lambda t, a, b, c, y: t * _beta_inverse(betainc_b, a, b, y),
        lambda t, a, b, c, y: -t / beta_density(a, b, y),
    ),
    ("aby", "aby", "aby"),
)

gammaincinv: ArrayFunction = user_function(gammaincinv_p, "The inverse of ``gammainc`` in ``x``.")
gammainccinv: ArrayFunction = user_function(
    gammainccinv_p, "The inverse of ``gammaincc`` in ``x``."
)
betaincinv: ArrayFunction = user_function(betaincinv_p, "The inverse of ``betainc`` in ``x``.")
betainccinv: ArrayFunction = user_function(betainccinv_p, "The inverse of ``betaincc`` in ``x``.")

PRIMITIVES: tuple[Primitive, ...] = (
    gamma_p, loggamma_p, rgamma_p, complex_digamma_p, poch_p, binom_p, riemann_zeta_p,
    riemann_zeta_s_p, riemann_zeta_ss_p, zetac_p, zeta_decrease_p, digamma_rise_p, beta_p,
    betaln_p, betainc_p, betaincc_p, betainc_a_p, betainc_b_p, betainc_aa_p, betainc_ab_p,
    betainc_bb_p, gammaincinv_p, gammainccinv_p, betaincinv_p, betainccinv_p,
)  # fmt: skip
