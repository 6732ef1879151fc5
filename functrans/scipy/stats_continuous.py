"""Continuous distributions on the whole line, and on intervals of it.

Here: a record per distribution; fields are functions of the standardised variable. Not here: those
of positive variables (``stats_positive``), location and scale (``stats_families``).

Layer: ``numpy``, ``scipy``. Source: Johnson, Kotz and Balakrishnan, Continuous Univariate
Distributions, 2nd ed. (1994), for the formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute
from functrans.primitives.special import elementary as el
from functrans.primitives.special import functions as sf
from functrans.primitives.special import gamma as ga
from functrans.primitives.special import polynomials as po
from functrans.scipy.stats_families import (
    Continuous,
    Power,
    complement_of_exp,
    exp_of_log,
    filled_like,
)

_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)


def _normal_log_density(y: Array) -> Array:
    return y * y * -0.5 - _LOG_ROOT_2_PI


norm = Continuous(
    "norm", (), _normal_log_density,
    distribution=sf.ndtr,
    survival=lambda y: sf.ndtr(-y),
    log_distribution=sf.log_ndtr,
    log_survival=lambda y: sf.log_ndtr(-y),
    quantile=sf.ndtri,
    upper_quantile=lambda q: -sf.ndtri(q),
)  # fmt: skip


def _log_difference(high: Array, low: Array) -> Array:
    """``log(exp(high) - exp(low))``."""
    return high + ew.log(-ew.expm1(low - high))


def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the normal probability of ``[a, b]``, from the tail that is nearer."""
    is_right = a > 0
    low = ew.where(is_right, -b, a)
    high = ew.where(is_right, -a, b)
    return _log_difference(sf.log_ndtr(high), sf.log_ndtr(low))


def _truncated_quantile(q: Array, a: Array, b: Array) -> Array:
    is_right = a > 0
    low, high = ew.where(is_right, -b, a), ew.where(is_right, -a, b)
    share = ew.where(is_right, ew.log1p(-q), ew.log(q))
    value = el.ndtri_exp(ew.logaddexp(sf.log_ndtr(low), share + _log_mass(low, high)))
    return ew.where(is_right, -value, value)


truncnorm = Continuous(
    "truncnorm", ("a", "b"),
    lambda y, a, b: _normal_log_density(y) - _log_mass(a, b),
    inside=lambda a, b: ew.maximum(a, ew.minimum(b, 0)),
    typical=(-1.0, 1.0),
    support=lambda a, b: (a, b),
    is_valid=lambda a, b: a < b,
    distribution=lambda y, a, b: ew.exp(_log_mass(a, y) - _log_mass(a, b)),
    survival=lambda y, a, b: ew.exp(_log_mass(y, b) - _log_mass(a, b)),
    log_distribution=lambda y, a, b: _log_mass(a, y) - _log_mass(a, b),
    log_survival=lambda y, a, b: _log_mass(y, b) - _log_mass(a, b),
    quantile=_truncated_quantile,
)  # fmt: skip

t = Continuous(
    "t", ("df",),
    lambda y, df: (ew.log1p(y * y / df) * ((df + 1) * -0.5)
                   - ga.betaln(df * 0.5, filled_like(0.5, df)) - ew.log(df) * 0.5),
    typical=(3.0,),
    distribution=lambda y, df: po.stdtr(df, y),
    survival=lambda y, df: po.stdtr(df, -y),
    quantile=lambda q, df: po.stdtrit(df, q),
    upper_quantile=lambda q, df: -po.stdtrit(df, q),
)  # fmt: skip


def _cotangent(q: Array) -> Array:
    return ew.cos(q * math.pi) / ew.sin(q * math.pi)


cauchy = Continuous(
    "cauchy", (), lambda y: -ew.log1p(y * y) - math.log(math.pi),
    distribution=lambda y: ew.arctan2(filled_like(1.0, y), -y) / math.pi,
    survival=lambda y: ew.arctan2(filled_like(1.0, y), y) / math.pi,
    quantile=lambda q: -_cotangent(q),
    upper_quantile=lambda q: _cotangent(q),
)  # fmt: skip


def _half_exponential(y: Array) -> Array:
    """The distribution function of Laplace's distribution."""
    tail = ew.exp(-absolute(y)) * 0.5
    return ew.where(y > 0, 1 - tail, tail)


def _log_half_exponential(y: Array) -> Array:
    positive = ew.where(y > 0, y, 1)
    return ew.where(y > 0, ew.log1p(ew.exp(-positive) * -0.5), y - math.log(2))


def _laplace_quantile(q: Array) -> Array:
    is_upper = q > 0.5
    return ew.where(is_upper, -ew.log((1 - q) * 2), ew.log(q * 2))


laplace = Continuous(
    "laplace", (), lambda y: -absolute(y) - math.log(2),
    distribution=_half_exponential,
    survival=lambda y: _half_exponential(-y),
    log_distribution=_log_half_exponential,
    log_survival=lambda y: _log_half_exponential(-y),
    quantile=_laplace_quantile,
    upper_quantile=lambda q: -_laplace_quantile(q),
)  # fmt: skip


def _log_logistic(y: Array) -> Array:
    """``-2 log(2 cosh(y / 2))``; beside 0 so, where the slopes of logarithms of sigmoids cancel."""
    is_near = absolute(y) < 1
    near = -2 * ew.log(ew.cosh(ew.where(is_near, y, 0) * 0.5)) - 2 * math.log(2)
    return ew.where(is_near, near, sf.log_sigmoid(y) + sf.log_sigmoid(-y))


logistic = Continuous(
    "logistic", (), _log_logistic,
    distribution=sf.sigmoid,
    survival=lambda y: sf.sigmoid(-y),
    log_distribution=sf.log_sigmoid,
    log_survival=lambda y: sf.log_sigmoid(-y),
    quantile=el.logit,
    upper_quantile=lambda q: -el.logit(q),
)  # fmt: skip

gumbel_r = Continuous(
    "gumbel_r", (), lambda y: -y - ew.exp(-y),
    distribution=lambda y: exp_of_log(-ew.exp(-y)),
    survival=lambda y: complement_of_exp(-ew.exp(-y)),
    log_distribution=lambda y: -ew.exp(-y),
    quantile=lambda q: -ew.log(-ew.log(q)),
    upper_quantile=lambda q: -ew.log(-ew.log1p(-q)),
)  # fmt: skip

gumbel_l = Continuous(
    "gumbel_l", (), lambda y: y - ew.exp(y),
    distribution=lambda y: complement_of_exp(-ew.exp(y)),
    survival=lambda y: exp_of_log(-ew.exp(y)),
    log_survival=lambda y: -ew.exp(y),
    quantile=lambda q: ew.log(-ew.log1p(-q)),
    upper_quantile=lambda q: ew.log(-ew.log(q)),
)  # fmt: skip

uniform = Continuous(
    "uniform", (), lambda y: y * 0,
    support=(0.0, 1.0),
    distribution=lambda y: y,
    survival=lambda y: 1 - y,
    quantile=lambda q: q,
    upper_quantile=lambda q: 1 - q,
)  # fmt: skip

beta = Continuous(
    "beta", ("a", "b"),
    lambda y, a, b: -ga.betaln(a, b),
    typical=(1.0, 1.0),
    support=(0.0, 1.0),
    distribution=lambda y, a, b: ga.betainc(a, b, y),
    survival=lambda y, a, b: ga.betaincc(a, b, y),
    powers=lambda y, a, b: (Power(y, a - 1), Power(1 - y, b - 1, y)),
    quantile=lambda q, a, b: ga.betaincinv(a, b, q),
    upper_quantile=lambda q, a, b: ga.betainccinv(a, b, q),
)  # fmt: skip

powerlaw = Continuous(
    "powerlaw", ("a",), lambda y, a: ew.log(a),
    typical=(1.0,),
    support=(0.0, 1.0),
    distribution=ew.power,
    survival=lambda y, a: -ew.expm1(a * ew.log(y)),
    log_distribution=lambda y, a: a * ew.log(y),
    powers=lambda y, a: (Power(y, a - 1),),
    quantile=lambda q, a: ew.power(q, 1 / a),
)  # fmt: skip

vonmises = Continuous(
    "vonmises", ("kappa",),
    lambda y, kappa: kappa * el.cosm1(y) - math.log(2 * math.pi) - ew.log(sf.i0e(kappa)),
    typical=(1.0,),
    is_valid=lambda kappa: kappa >= 0,
)  # fmt: skip

wrapcauchy = Continuous(
    "wrapcauchy", ("c",),
    lambda y, c: ew.log1p(-c * c) - ew.log((1 + c * c - c * ew.cos(y) * 2) * (2 * math.pi)),
    typical=(0.5,),
    support=(0.0, 2 * math.pi),
    is_valid=lambda c: (c > 0) & (c < 1),
)  # fmt: skip


_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(32)


def _skew_log_density(y: Array, a: Array) -> Array:
    return _normal_log_density(y) + sf.log_ndtr(a * y) + math.log(2)


def _skew_tail(y: Array, a: Array) -> Array:
    """The logarithm of the distribution function where both ``y`` and ``a y`` are negative.

    There the normal distribution function and Owen's function cancel. The density falls like an
    exponential to the left; what it is more than that is smooth: Gauss and Laguerre's formula. The
    squares in its logarithm are subtracted from each other before they are rounded.
    """
    root = math.sqrt(0.5)
    mills = sf.erfcx(a * y * -root)
    slope = -y + a * (math.sqrt(2 / math.pi) / mills)
    terms = []
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        step = node / slope
        fall = (1 + a * a) * (y - step * 0.5) * step + node
        terms.append(weight * ew.exp(fall) * (sf.erfcx(a * (y - step) * -root) / mills))
    return _skew_log_density(y, a) - ew.log(slope) + ew.log(sum(terms[1:], terms[0]))


def _skew_parts(y: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Where the tail is, its logarithm, and distribution and survival function elsewhere."""
    is_tail = (y < 0) & (a * y < -1)
    tail = _skew_tail(ew.where(is_tail, y, -2), ew.where(is_tail, a, 1))
    y, a = ew.where(is_tail, 1, y), ew.where(is_tail, 0, a)
    twice = el.owens_t(y, a) * 2
    return is_tail, tail, sf.ndtr(y) - twice, sf.ndtr(-y) + twice


def _skew_distribution(y: ArrayLike, a: ArrayLike) -> Array:
    is_tail, tail, lower, _ = _skew_parts(y, a)
    return ew.where(is_tail, exp_of_log(tail), lower)


def _skew_log_distribution(y: ArrayLike, a: ArrayLike) -> Array:
    is_tail, tail, lower, upper = _skew_parts(y, a)
    is_high = upper < 0.5
    high = ew.log1p(-ew.where(is_high, upper, 0))
    return ew.where(is_tail, tail, ew.where(is_high, high, ew.log(ew.where(is_high, 1, lower))))


skewnorm = Continuous(
    "skewnorm", ("a",),
    _skew_log_density,
    typical=(0.0,),
    is_valid=lambda a: a == a,
    distribution=_skew_distribution,
    survival=lambda y, a: _skew_distribution(-y, -a),
    log_distribution=_skew_log_distribution,
    log_survival=lambda y, a: _skew_log_distribution(-y, -a),
)  # fmt: skip


def _general_power(y: Array, beta: Array) -> Array:
    """``|y|**beta``; at 0 with all derivatives where it is a polynomial, and flat at a cusp."""
    is_even = beta % 2 == 0
    at_zero = ew.where(is_even, ew.power(ew.where(is_even, y, 0), beta), 0)
    is_zero = (y == 0) & (is_even | (beta <= 1))
    return ew.where(is_zero, at_zero, ew.power(absolute(y), beta))


def _general_upper(y: Array, beta: Array) -> Array:
    """The survival function of the generalised normal distribution.

    Near 0 by the power series of the incomplete gamma function (DLMF 8.7.1), whose terms have
    slopes there; the next term is below 1e-20 of the first.
    """
    size, order = absolute(y), 1 / beta
    is_near = ew.power(size, beta) < 1e-5
    near = ew.where(is_near, size, 0)
    series = ew.where(is_near, y, 0)
    for k, factor in enumerate((-1.0, 0.5, -1 / 6), 1):
        term = ew.power(near, 1 + k * beta) * (factor / (1 + k * beta))
        series = series + ew.where(y < 0, -term, term)
    middle = 0.5 - series * ew.exp(-sf.lgamma(1 + order)) * 0.5
    power = ew.power(ew.where(is_near, 1, size), beta)
    is_finite = ew.isfinite(power)
    tail = ew.where(is_finite, sf.gammaincc(order, ew.where(is_finite, power, 1)) * 0.5, 0)
    return ew.where(is_near, middle, ew.where(y > 0, tail, 1 - tail))


def _general_quantile(q: Array, beta: Array) -> Array:
    is_upper = q > 0.5
    is_median = q == 0.5
    tail = ew.where(is_median, 0.25, ew.where(is_upper, 1 - q, q))
    size = ew.power(ga.gammainccinv(1 / beta, tail * 2), 1 / beta)
    # At the median the quantile is 0, and its slope is 1 / density.
    middle = (q - 0.5) * ew.exp(sf.lgamma(1 / beta)) * 2 / beta
    return ew.where(is_median, middle, ew.where(is_upper, size, -size))


gennorm = Continuous(
    "gennorm", ("beta",),
    lambda y, beta: ew.log(beta * 0.5) - sf.lgamma(1 / beta) - _general_power(y, beta),
    typical=(2.0,),
    distribution=lambda y, beta: _general_upper(-y, beta),
    survival=_general_upper,
    quantile=_general_quantile,
    upper_quantile=lambda q, beta: -_general_quantile(q, beta),
)  # fmt: skip
