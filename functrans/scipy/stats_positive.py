"""Continuous distributions of positive variables.

Here: a record per distribution; fields are functions of the standardised variable. Not here: those
on the whole line (``stats_continuous``), location and scale (``stats_families``).

Layer: ``numpy``, ``scipy``. Source: Johnson, Kotz and Balakrishnan, Continuous Univariate
Distributions, 2nd ed. (1994), for the formulas.
"""

from __future__ import annotations

import math
from typing import Any

from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.special import elementary as el
from functrans.primitives.special import functions as sf
from functrans.primitives.special import gamma as ga
from functrans.scipy.special_statistics import (
    f_distribution,
    f_quantile,
    f_survival,
    f_upper_quantile,
)
from functrans.scipy.stats_families import (
    Continuous,
    Function,
    Power,
    complement_of_exp,
    exp_of_log,
    filled_like,
)

_HALF_LINE = (0.0, math.inf)
_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)


def _by_hazard(
    name: str,
    shapes: tuple[str, ...],
    log_density: Function,
    hazard: Function,
    inverse: Function,
    typical: tuple[float, ...] = (),
    low: float = 0.0,
    **options: Any,
) -> Continuous:
    """A distribution whose survival function is ``exp(-hazard)``.

    Args:
      name: SciPy's name.
      shapes: names of the shape parameters.
      log_density: of variable and shapes.
      hazard: the cumulative hazard.
      inverse: its inverse.
      typical: see ``Continuous``.
      low: lower end of the support.
      **options: more fields of ``Continuous``.
    """
    return Continuous(
        name, shapes, log_density,
        inside=low + 1.0,
        typical=typical,
        support=(low, math.inf),
        distribution=lambda y, *s: complement_of_exp(-hazard(y, *s)),
        survival=lambda y, *s: exp_of_log(-hazard(y, *s)),
        log_survival=lambda y, *s: -hazard(y, *s),
        quantile=lambda q, *s: inverse(-ew.log1p(-q), *s),
        upper_quantile=lambda q, *s: inverse(-ew.log(q), *s),
        **options,
    )  # fmt: skip


expon = _by_hazard("expon", (), lambda y: -y, lambda y: y, lambda h: h)
weibull_min = _by_hazard(
    "weibull_min", ("c",),
    lambda y, c: ew.log(c) - ew.power(y, c),
    lambda y, c: ew.power(y, c),
    lambda h, c: ew.power(h, 1 / c),
    (1.0,),
    powers=lambda y, c: (Power(y, c - 1),),
)  # fmt: skip

rayleigh = _by_hazard(
    "rayleigh", (), lambda y: y * y * -0.5, lambda y: y * y * 0.5, lambda h: ew.sqrt(h * 2),
    powers=lambda y: (Power(y, 1.0),),
)  # fmt: skip
pareto = _by_hazard(
    "pareto", ("b",),
    lambda y, b: ew.log(b) - (b + 1) * ew.log(y),
    lambda y, b: b * ew.log(y),
    lambda h, b: ew.exp(h / b),
    (1.0,),
    1.0,
)  # fmt: skip
lomax = _by_hazard(
    "lomax", ("c",),
    lambda y, c: ew.log(c) - (c + 1) * ew.log1p(y),
    lambda y, c: c * ew.log1p(y),
    lambda h, c: ew.expm1(h / c),
    (1.0,),
)  # fmt: skip
gompertz = _by_hazard(
    "gompertz", ("c",),
    lambda y, c: ew.log(c) + y - c * ew.expm1(y),
    lambda y, c: c * ew.expm1(y),
    lambda h, c: ew.log1p(h / c),
    (1.0,),
)  # fmt: skip


def _by_gamma(
    name: str, shapes: tuple[str, ...], log_density: Function, order: Function, variable: Function,
    inverse: Function, powers: Function, typical: tuple[float, ...] = (),
) -> Continuous:  # fmt: skip
    """A distribution that is an increasing function of a gamma variable.

    Args:
      name: SciPy's name.
      shapes: names of the shape parameters.
      log_density: of variable and shapes.
      order: shape of the gamma variable, of the variable and the shapes.
      variable: the gamma variable.
      inverse: the inverse of ``variable``.
      powers: see ``Continuous``.
      typical: see ``Continuous``.
    """

    def by(ratio: Function, far: float) -> Function:
        def function(y: Array, *s: Array) -> Any:
            g = variable(y, *s)
            is_finite = ew.isfinite(g)  # a square may not be
            return ew.where(is_finite, ratio(order(y, *s), ew.where(is_finite, g, 1)), far)

        return function

    return Continuous(
        name, shapes, log_density,
        inside=1.0,
        typical=typical,
        powers=powers,
        support=_HALF_LINE,
        distribution=by(sf.gammainc, 1.0),
        survival=by(sf.gammaincc, 0.0),
        quantile=lambda q, *s: inverse(ga.gammaincinv(order(q, *s), q), *s),
        upper_quantile=lambda q, *s: inverse(ga.gammainccinv(order(q, *s), q), *s),
    )  # fmt: skip


gamma = _by_gamma(
    "gamma", ("a",), lambda y, a: -y - sf.lgamma(a),
    lambda y, a: a, lambda y, a: y, lambda g, a: g, lambda y, a: (Power(y, a - 1),), (1.0,),
)  # fmt: skip
chi2 = _by_gamma(
    "chi2", ("df",),
    lambda y, df: y * -0.5 - sf.lgamma(df * 0.5) - df * (0.5 * math.log(2)),
    lambda y, df: df * 0.5, lambda y, df: y * 0.5, lambda g, df: g * 2,
    lambda y, df: (Power(y, df * 0.5 - 1),), (1.0,),
)  # fmt: skip
chi = _by_gamma(
    "chi", ("df",),
    lambda y, df: (y * y * -0.5 - sf.lgamma(df * 0.5) + math.log(2)
                   - df * (0.5 * math.log(2))),
    lambda y, df: df * 0.5, lambda y, df: y * y * 0.5, lambda g, df: ew.sqrt(g * 2),
    lambda y, df: (Power(y, df - 1),), (1.0,),
)  # fmt: skip
maxwell = _by_gamma(
    "maxwell", (),
    lambda y: y * y * -0.5 + 0.5 * math.log(2 / math.pi),
    lambda y: filled_like(1.5, y), lambda y: y * y * 0.5, lambda g: ew.sqrt(g * 2),
    lambda y: (Power(y, 2.0),),
)  # fmt: skip

lognorm = Continuous(
    "lognorm", ("s",),
    lambda y, s: (ew.log(y) / s) ** 2 * -0.5 - ew.log(s * y) - _LOG_ROOT_2_PI,
    inside=1.0,
    typical=(1.0,),
    support=_HALF_LINE,
    is_open=True,
    distribution=lambda y, s: sf.ndtr(ew.log(y) / s),
    survival=lambda y, s: sf.ndtr(-ew.log(y) / s),
    log_distribution=lambda y, s: sf.log_ndtr(ew.log(y) / s),
    log_survival=lambda y, s: sf.log_ndtr(-ew.log(y) / s),
    quantile=lambda q, s: ew.exp(s * sf.ndtri(q)),
    upper_quantile=lambda q, s: ew.exp(-s * sf.ndtri(q)),
)  # fmt: skip

invgamma = Continuous(
    "invgamma", ("a",), lambda y, a: -(a + 1) * ew.log(y) - sf.lgamma(a) - 1 / y,
    inside=1.0,
    typical=(1.0,),
    support=_HALF_LINE,
    is_open=True,
    distribution=lambda y, a: sf.gammaincc(a, 1 / y),
    survival=lambda y, a: sf.gammainc(a, 1 / y),
    quantile=lambda q, a: 1 / ga.gammainccinv(a, q),
    upper_quantile=lambda q, a: 1 / ga.gammaincinv(a, q),
)  # fmt: skip


def _f_log_density(y: Array, dfn: Array, dfd: Array) -> Array:
    half, other = dfn * 0.5, dfd * 0.5
    total = (half + other) * ew.log(dfd + dfn * y)
    return other * ew.log(dfd) + half * ew.log(dfn) - total - ga.betaln(half, other)


f = Continuous(
    "f", ("dfn", "dfd"), _f_log_density,
    inside=1.0,
    typical=(1.0, 1.0),
    support=_HALF_LINE,
    distribution=lambda y, m, n: f_distribution(m, n, y),
    survival=lambda y, m, n: f_survival(m, n, y),
    powers=lambda y, m, n: (Power(y, m * 0.5 - 1),),
    quantile=lambda q, m, n: f_quantile(m, n, q),
    upper_quantile=lambda q, m, n: f_upper_quantile(m, n, q),
)  # fmt: skip

halfnorm = Continuous(
    "halfnorm", (), lambda y: y * y * -0.5 + 0.5 * math.log(2 / math.pi),
    inside=1.0,
    support=_HALF_LINE,
    distribution=lambda y: sf.erf(y * math.sqrt(0.5)),
    survival=lambda y: sf.erfc(y * math.sqrt(0.5)),
    log_survival=lambda y: sf.log_ndtr(-y) + math.log(2),
    quantile=lambda q: sf.erfinv(q) * math.sqrt(2),
    upper_quantile=lambda q: el.erfcinv(q) * math.sqrt(2),
)  # fmt: skip

halfcauchy = Continuous(
    "halfcauchy", (), lambda y: math.log(2 / math.pi) - ew.log1p(y * y),
    inside=1.0,
    support=_HALF_LINE,
    distribution=lambda y: ew.arctan(y) * (2 / math.pi),
    survival=lambda y: ew.arctan2(filled_like(1.0, y), y) * (2 / math.pi),
    quantile=lambda q: ew.tan(q * (math.pi / 2)),
    upper_quantile=lambda q: 1 / ew.tan(q * (math.pi / 2)),
)  # fmt: skip

invweibull = Continuous(
    "invweibull", ("c",), lambda y, c: ew.log(c) - (c + 1) * ew.log(y) - ew.power(y, -c),
    inside=1.0,
    typical=(1.0,),
    support=_HALF_LINE,
    is_open=True,
    distribution=lambda y, c: exp_of_log(-ew.power(y, -c)),
    survival=lambda y, c: complement_of_exp(-ew.power(y, -c)),
    log_distribution=lambda y, c: -ew.power(y, -c),
    quantile=lambda q, c: ew.power(-ew.log(q), -1 / c),
    upper_quantile=lambda q, c: ew.power(-ew.log1p(-q), -1 / c),
)  # fmt: skip


def _fisk_log_density(y: Array, c: Array) -> Array:
    """By the smaller of ``y**c`` and its reciprocal, so that both ends have their limits."""
    power = ew.power(ew.where(y < 1, y, 1 / ew.where(y < 1, 1, y)), c)
    return ew.log(c) - ew.log1p(power) * 2


fisk = Continuous(
    "fisk", ("c",),
    _fisk_log_density,
    inside=1.0,
    typical=(1.0,),
    support=_HALF_LINE,
    powers=lambda y, c: (Power(y, ew.where(y < 1, c - 1, -c - 1)),),
    distribution=lambda y, c: sf.sigmoid(c * ew.log(y)),
    survival=lambda y, c: sf.sigmoid(-c * ew.log(y)),
    log_distribution=lambda y, c: sf.log_sigmoid(c * ew.log(y)),
    log_survival=lambda y, c: sf.log_sigmoid(-c * ew.log(y)),
    quantile=lambda q, c: ew.exp(el.logit(q) / c),
    upper_quantile=lambda q, c: ew.exp(-el.logit(q) / c),
)  # fmt: skip
