"""Distributions on integers.

Here: a record per distribution. Not here: location and support (``stats_families``).

Layer: ``numpy``, ``scipy``. Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 3rd
ed. (2005), for the formulas.
"""

from __future__ import annotations

import math

from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute
from functrans.primitives.special import functions as sf
from functrans.primitives.special import gamma as ga
from functrans.scipy.stats_families import Discrete, Power


def _is_probability(p: Array) -> Array:
    return (p >= 0) & (p <= 1)


def _is_count(n: Array) -> Array:
    return (n >= 0) & (ew.floor(n) == n)


def _log_choose(n: Array, k: Array) -> Array:
    return -ew.log1p(n) - ga.betaln(n - k + 1, k + 1)


poisson = Discrete(
    "poisson", ("mu",), lambda k, mu: -sf.lgamma(k + 1) - mu,
    lambda mu: (0.0, math.inf), (1.0,), lambda mu: mu >= 0,
    powers=lambda k, mu: (Power(mu, k),),
    distribution=lambda k, mu: sf.gammaincc(k + 1, mu),
    survival=lambda k, mu: sf.gammainc(k + 1, mu),
)  # fmt: skip
bernoulli = Discrete(
    "bernoulli", ("p",), lambda k, p: k * 0,
    lambda p: (0.0, 1.0), (0.5,), _is_probability,
    powers=lambda k, p: (Power(p, k), Power(1 - p, 1 - k, p)),
    distribution=lambda k, p: 1 - p,
    survival=lambda k, p: p,
)  # fmt: skip
binom = Discrete(
    "binom", ("n", "p"),
    lambda k, n, p: _log_choose(n, k),
    lambda n, p: (0.0, n), (1.0, 0.5), lambda n, p: _is_count(n) & _is_probability(p),
    powers=lambda k, n, p: (Power(p, k), Power(1 - p, n - k, p)),
    distribution=lambda k, n, p: ga.betaincc(k + 1, ew.maximum(n - k, 0.5), p),
    survival=lambda k, n, p: ga.betainc(k + 1, ew.maximum(n - k, 0.5), p),
)  # fmt: skip
nbinom = Discrete(
    "nbinom", ("n", "p"),
    lambda k, n, p: sf.lgamma(n + k) - sf.lgamma(k + 1) - sf.lgamma(n) + n * ew.log(p),
    lambda n, p: (0.0, math.inf), (1.0, 0.5), lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    powers=lambda k, n, p: (Power(1 - p, k, p),),
    distribution=lambda k, n, p: ga.betainc(n, k + 1, p),
    survival=lambda k, n, p: ga.betaincc(n, k + 1, p),
)  # fmt: skip
geom = Discrete(
    "geom", ("p",), lambda k, p: ew.log(p),
    lambda p: (1.0, math.inf), (0.5,), lambda p: (p > 0) & (p <= 1),
    powers=lambda k, p: (Power(1 - p, k - 1, p),),
    distribution=lambda k, p: -ew.expm1(ew.log1p(-p) * k),
    survival=lambda k, p: ew.exp(ew.log1p(-p) * k),
    log_survival=lambda k, p: ew.log1p(-p) * k,
)  # fmt: skip
betabinom = Discrete(
    "betabinom", ("n", "a", "b"),
    lambda k, n, a, b: _log_choose(n, k) + ga.betaln(k + a, n - k + b) - ga.betaln(a, b),
    lambda n, a, b: (0.0, n), (1.0, 1.0, 1.0), lambda n, a, b: _is_count(n) & (a > 0) & (b > 0),
)  # fmt: skip
hypergeom = Discrete(
    "hypergeom", ("M", "n", "N"),
    lambda k, total, good, drawn: (_log_choose(good, k) + _log_choose(total - good, drawn - k)
                                   - _log_choose(total, drawn)),
    lambda total, good, drawn: (ew.maximum(drawn - (total - good), 0), ew.minimum(good, drawn)),
    (1.0, 1.0, 1.0),
    lambda total, good, drawn: (_is_count(total) & _is_count(good) & _is_count(drawn)
                                & (good <= total) & (drawn <= total)),
)  # fmt: skip
zipf = Discrete(
    "zipf", ("a",), lambda k, a: -a * ew.log(k) - ew.log(ga.riemann_zeta(a)),
    lambda a: (1.0, math.inf), (2.0,), lambda a: a > 1,
)  # fmt: skip
dlaplace = Discrete(
    "dlaplace", ("a",), lambda k, a: ew.log(ew.tanh(a * 0.5)) - a * absolute(k),
    lambda a: (-math.inf, math.inf), (1.0,), lambda a: a > 0,
)  # fmt: skip
