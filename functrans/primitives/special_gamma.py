"""Gamma and beta functions, their incomplete forms and inverses.

Here: records of these, and the functions that apply them. Not here: ``lgamma``, ``digamma``,
``gammainc``, ``gammaincc``, ``zeta`` (``special``), sums of series (``special_series``).

Layer: ``primitives``. Source: DLMF chapters 5, 8 and 25 for the derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functrans.ir.primitive import Primitive
from functrans.primitives import elementwise as ew
from functrans.primitives.family import user_function
from functrans.primitives.special import digamma, gammainc_a, lgamma, zeta
from functrans.primitives.special_family import (
    common_dtype,
    refused_derivative,
    special_primitive,
)
from functrans.primitives.special_series import betainc_derivatives, riemann_derivatives
from functrans.primitives.structural import cast
from functrans.trace import dtype_of

ArrayFunction = Callable[..., Any]


def psi(x: Any) -> Any:
    """The derivative of the logarithm of gamma, complex numbers too."""
    return complex_digamma(x) if dtype_of(x).kind == "c" else digamma(x)


# gamma -------------------------------------------------------------------------------------------


def _rgamma_slope(x: Any, y: Any) -> Any:
    """The derivative of ``1 / gamma(x)``, which is finite at the poles of gamma.

    Left of 1/2 by reflection: ``rgamma(x) = gamma(1 - x) sin(pi x) / pi``.
    """
    if dtype_of(x).kind == "c":
        return -psi(x) * y
    is_left = x < 0.5
    mirrored = ew.where(is_left, 1 - x, 1)
    left = gamma(mirrored) * ew.cos(math.pi * ew.where(is_left, x, 0)) - digamma(mirrored) * y
    return ew.where(is_left, left, -digamma(ew.where(is_left, 1, x)) * y)


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
        lambda t, a, b, y: t * (y * (digamma(a + b) - digamma(a))),
        lambda t, a, b, y: t * (y * digamma(a + b)),
    ),
    ("aby", "aby"),
)
binom_p: Primitive = special_primitive(
    "binom",
    (
        lambda t, a, b, y: t * (y * (digamma(a + 1) - digamma(a - b + 1))),
        lambda t, a, b, y: t * (y * (digamma(a - b + 1) - digamma(b + 1))),
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


def _log_slopes(a: Any, b: Any) -> tuple[Any, Any]:
    """The derivatives of ``log(beta(a, b))``."""
    of_sum = digamma(a + b)
    return digamma(a) - of_sum, digamma(b) - of_sum


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
    (
        lambda t, a, b, y: t * _log_slopes(a, b)[0],
        lambda t, a, b, y: t * _log_slopes(a, b)[1],
    ),
    ("ab", "ab"),
)


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """The derivative of the incomplete beta function: ``x**(a-1) (1-x)**(b-1) / beta(a, b)``.

    At the ends of the interval an exponent of 0 makes the factor 1.
    """
    dtype = common_dtype(a, b, x)
    a, b, x = cast(a, dtype), cast(b, dtype), cast(x, dtype)
    is_low, is_high = (a == 1) & (x == 0), (b == 1) & (x == 1)
    low = (a - 1) * ew.log(ew.where(is_low, 1, x))
    high = (b - 1) * ew.log1p(-ew.where(is_high, 0, x))
    return ew.exp(low + high - betaln(a, b))


def _inner(x: Any) -> tuple[Any, Any]:
    """Whether a point is an end of [0, 1], and the point moved inside if it is."""
    is_end = (x <= 0) | (x >= 1)
    return is_end, ew.where(is_end, 0.5, x)


def _scaled_density(factor: Any, a: Any, b: Any, x: Any) -> Any:
    """The density times a factor; 0 at the ends, where the limit is."""
    is_end, inner = _inner(x)
    return ew.where(is_end, 0, beta_density(a, b, inner) * factor(inner))


def _log_slope(of_first: bool, a: Any, b: Any) -> Callable[[Any], Any]:
    """The derivative of the density's logarithm in a parameter, as a function of the point."""

    def slope(x: Any) -> Any:
        log = ew.log(x) if of_first else ew.log1p(-x)
        return log - _log_slopes(a, b)[0 if of_first else 1]

    return slope


def _second(first: bool, second: bool, a: Any, b: Any) -> Callable[[Any], Any]:
    """The second derivative in parameters of the density, over the density."""

    def factor(x: Any) -> Any:
        bend = trigamma(a + b)
        if first == second:
            bend = bend - trigamma(a if first else b)
        return _log_slope(first, a, b)(x) * _log_slope(second, a, b)(x) + bend

    return factor


def trigamma(x: Any) -> Any:
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


def _of_order(name: str, partials: tuple[Any, Any], saves: str, number: int, factor: Any) -> Any:
    """A derivative of the incomplete beta function in its parameters."""
    return special_primitive(
        name,
        (
            *partials,
            lambda t, a, b, c, y: t * _scaled_density(factor(a, b), a, b, c),
        ),
        (saves, saves, "abc"),
        lambda a, b, c: betainc_derivatives(a, b, c)[number],
        is_wide=True,
    )


def _third(name: str) -> tuple[Any, Any]:
    what = "a third derivative of betainc in its parameters"
    return refused_derivative(name, 0, what), refused_derivative(name, 1, what)


betainc_a_p: Primitive = _of_order(
    "betainc_a",
    (
        lambda t, a, b, c, y: t * betainc_aa(a, b, c),
        lambda t, a, b, c, y: t * betainc_ab(a, b, c),
    ),
    "abc",
    0,
    lambda a, b: _log_slope(True, a, b),
)
betainc_b_p: Primitive = _of_order(
    "betainc_b",
    (
        lambda t, a, b, c, y: t * betainc_ab(a, b, c),
        lambda t, a, b, c, y: t * betainc_bb(a, b, c),
    ),
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


def _gamma_rate(a: Any, x: Any) -> Any:
    """``1 / density`` of the gamma distribution."""
    dtype = common_dtype(a, x)
    a, x = cast(a, dtype), cast(x, dtype)
    return ew.exp(x + lgamma(a) - (a - 1) * ew.log(x))


def _gamma_inverse_a(a: Any, x: Any) -> Any:
    """The derivative of the inverse in the parameter; 0 at the ends."""
    is_end = (x <= 0) | ew.isinf(x)
    inner = ew.where(is_end, 1, x)
    return ew.where(is_end, 0, -gammainc_a(a, inner) * _gamma_rate(a, inner))


def _beta_inverse(derivative: ArrayFunction, a: Any, b: Any, x: Any) -> Any:
    is_end, inner = _inner(x)
    return ew.where(is_end, 0, -derivative(a, b, inner) / beta_density(a, b, inner))


gammaincinv_p: Primitive = special_primitive(
    "gammaincinv",
    (
        lambda t, a, b, y: t * _gamma_inverse_a(a, y),
        lambda t, a, b, y: t * _gamma_rate(a, y),
    ),
    ("ay", "ay"),
)
gammainccinv_p: Primitive = special_primitive(
    "gammainccinv",
    (
        lambda t, a, b, y: t * _gamma_inverse_a(a, y),
        lambda t, a, b, y: -t * _gamma_rate(a, y),
    ),
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

PRIMITIVES = (
    gamma_p, loggamma_p, rgamma_p, complex_digamma_p, poch_p, binom_p, riemann_zeta_p,
    riemann_zeta_s_p, riemann_zeta_ss_p, zetac_p, beta_p, betaln_p, betainc_p, betaincc_p,
    betainc_a_p, betainc_b_p, betainc_aa_p, betainc_ab_p, betainc_bb_p, gammaincinv_p,
    gammainccinv_p, betaincinv_p, betainccinv_p,
)  # fmt: skip
