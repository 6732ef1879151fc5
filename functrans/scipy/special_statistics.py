"""Distribution functions of ``scipy.special``: incomplete gamma and beta functions in disguise.

Here: cumulative distribution functions, their complements and inverses, under SciPy's names. Not
here: distributions with location and scale (``stats``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import math

from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.special import distributions as di
from functrans.primitives.special import functions as sf
from functrans.primitives.special import gamma as ga
from functrans.primitives.special import polynomials as po
from functrans.scipy.special_common import ArrayFunction, as_floating, public

# binomial: counts are rounded down, as SciPy does, and have no derivative ------------------------


def _bdtr(k: Array, n: Array, p: Array) -> Array:
    """The probability of at most ``k`` successes in ``n`` trials."""
    k, n, p = as_floating(k, n, p)
    k, n = ew.floor(k), ew.floor(n)
    is_all = k >= n
    value = ga.betaincc(ew.where(is_all, 0, k) + 1, ew.where(is_all, 1, n - k), p)
    return ew.where((k < 0) | (k > n) | (p < 0) | (p > 1), math.nan, ew.where(is_all, 1, value))


def _bdtrc(k: Array, n: Array, p: Array) -> Array:
    """The probability of more than ``k`` successes in ``n`` trials."""
    k, n, p = as_floating(k, n, p)
    k, n = ew.floor(k), ew.floor(n)
    is_all, is_none = k >= n, k < 0
    inner = ew.where(is_all | is_none, 0, k)
    value = ga.betainc(inner + 1, ew.where(is_all, 1, n - inner), p)
    value = ew.where(is_all, 0, ew.where(is_none, 1, value))
    return ew.where((k > n) | (p < 0) | (p > 1), math.nan, value)


def _bdtri(k: Array, n: Array, y: Array) -> Array:
    """``bdtr(k, n, p) = y`` solved for ``p``."""
    k, n, y = as_floating(k, n, y)
    k = ew.floor(k)
    return ga.betainccinv(k + 1, ew.floor(n) - k, y)


def _of_counts(function: ArrayFunction, k: Array, n: Array, p: Array) -> Array:
    """A function of ``(n, k + 1, p)``, counts rounded down; NaN where there are no such counts."""
    k, n = ew.floor(k), ew.floor(n)
    is_valid = (k >= 0) & (n >= 1)
    value = function(ew.where(is_valid, n, 1), ew.where(is_valid, k, 0) + 1, p)
    return ew.where(is_valid, value, math.nan)


def _nbdtr(k: Array, n: Array, p: Array) -> Array:
    """The probability of at most ``k`` failures before ``n`` successes."""
    k, n, p = as_floating(k, n, p)
    return _of_counts(ga.betainc, k, n, p)


def _nbdtrc(k: Array, n: Array, p: Array) -> Array:
    """The probability of more than ``k`` failures before ``n`` successes."""
    k, n, p = as_floating(k, n, p)
    return _of_counts(ga.betaincc, k, n, p)


def _nbdtri(k: Array, n: Array, y: Array) -> Array:
    """``nbdtr(k, n, p) = y`` solved for ``p``."""
    k, n, y = as_floating(k, n, y)
    return ga.betaincinv(ew.floor(n), ew.floor(k) + 1, y)


def _pdtr(k: Array, m: Array) -> Array:
    """The probability of at most ``k`` events, of which ``m`` are expected."""
    k, m = as_floating(k, m)
    return sf.gammaincc(ew.floor(k) + 1, m)


def _pdtrc(k: Array, m: Array) -> Array:
    """The probability of more than ``k`` events, of which ``m`` are expected."""
    k, m = as_floating(k, m)
    return sf.gammainc(ew.floor(k) + 1, m)


def _pdtri(k: Array, y: Array) -> Array:
    """``pdtr(k, m) = y`` solved for ``m``."""
    k, y = as_floating(k, y)
    return ga.gammainccinv(ew.floor(k) + 1, y)


_COUNT = "Counts are rounded down; their derivatives are 0."
bdtr = public("bdtr", _bdtr, "k n p", _COUNT)
bdtrc = public("bdtrc", _bdtrc, "k n p", _COUNT)
bdtri = public("bdtri", _bdtri, "k n y", _COUNT)
nbdtr = public("nbdtr", _nbdtr, "k n p", _COUNT)
nbdtrc = public("nbdtrc", _nbdtrc, "k n p", _COUNT)
nbdtri = public("nbdtri", _nbdtri, "k n y", _COUNT)
pdtr = public("pdtr", _pdtr, "k m", _COUNT)
pdtrc = public("pdtrc", _pdtrc, "k m", _COUNT)
pdtri = public("pdtri", _pdtri, "k y", _COUNT)
pdtrik = public("pdtrik", di.pdtrik, "p m")

# chi-squared and gamma ---------------------------------------------------------------------------


def _chdtr(v: Array, x: Array) -> Array:
    """The distribution function of chi-squared."""
    v, x = as_floating(v, x)
    return sf.gammainc(v * 0.5, ew.maximum(x, 0) * 0.5)


def _chdtrc(v: Array, x: Array) -> Array:
    """The complement of the distribution function of chi-squared."""
    v, x = as_floating(v, x)
    return sf.gammaincc(v * 0.5, ew.maximum(x, 0) * 0.5)


def _chdtri(v: Array, p: Array) -> Array:
    """``chdtrc(v, x) = p`` solved for ``x``."""
    v, p = as_floating(v, p)
    return ga.gammainccinv(v * 0.5, p) * 2


def _gdtr(a: Array, b: Array, x: Array) -> Array:
    """The distribution function of the gamma distribution of rate ``a`` and shape ``b``."""
    a, b, x = as_floating(a, b, x)
    return sf.gammainc(b, a * x)


def _gdtrc(a: Array, b: Array, x: Array) -> Array:
    """The complement of ``gdtr``."""
    a, b, x = as_floating(a, b, x)
    return sf.gammaincc(b, a * x)


def _gdtrix(a: Array, b: Array, p: Array) -> Array:
    """``gdtr(a, b, x) = p`` solved for ``x``."""
    a, b, p = as_floating(a, b, p)
    return ga.gammaincinv(b, p) / a


def _gdtria(p: Array, b: Array, x: Array) -> Array:
    """``gdtr(a, b, x) = p`` solved for ``a``."""
    p, b, x = as_floating(p, b, x)
    return ga.gammaincinv(b, p) / x


chdtr = public("chdtr", _chdtr, "v x")
chdtrc = public("chdtrc", _chdtrc, "v x")
chdtri = public("chdtri", _chdtri, "v p")
chdtriv = public("chdtriv", di.chdtriv, "p x")
gdtr = public("gdtr", _gdtr, "a b x")
gdtrc = public("gdtrc", _gdtrc, "a b x")
gdtrix = public("gdtrix", _gdtrix, "a b p")
gdtria = public("gdtria", _gdtria, "p b x")
gdtrib = public("gdtrib", di.gdtrib, "a p x")

# F, Student's t, beta, normal --------------------------------------------------------------------


def _of_ratio(near: ArrayFunction, far: ArrayFunction, dfn: Array, dfd: Array, x: Array) -> Array:
    """A function of ``dfn x / (dfd + dfn x)`` that is exact at both ends of [0, 1].

    Args:
      near: function of ``(dfn / 2, dfd / 2, ratio)``, for ratios below 1/2.
      far: the same as a function of ``(dfd / 2, dfn / 2, 1 - ratio)``.
      dfn: degrees of freedom.
      dfd: degrees of freedom.
      x: variable.
    """
    a, b, scaled = dfn * 0.5, dfd * 0.5, dfn * x
    is_far = scaled > dfd
    below = ew.where(is_far, 0.5, scaled / (dfd + ew.where(is_far, 0, scaled)))
    above = ew.where(is_far, dfd / (dfd + ew.where(is_far, scaled, 1)), 0.5)
    return ew.where(is_far, far(b, a, above), near(a, b, below))


def f_distribution(dfn: Array, dfd: Array, x: Array) -> Array:
    """The distribution function of F."""
    return _of_ratio(ga.betainc, ga.betaincc, *as_floating(dfn, dfd, x))


def f_survival(dfn: Array, dfd: Array, x: Array) -> Array:
    """The complement of the distribution function of F."""
    return _of_ratio(ga.betaincc, ga.betainc, *as_floating(dfn, dfd, x))


def _from_ratio(dfn: Array, dfd: Array, below: Array, above: Array) -> Array:
    """The variable of F from its ratio, and 1 minus it; the smaller one is exact."""
    is_low = below < 0.5
    below, above = ew.where(is_low, below, 1 - above), ew.where(is_low, 1 - below, above)
    return (dfd * below) / (dfn * above)


def f_quantile(dfn: Array, dfd: Array, p: Array) -> Array:
    """``fdtr(dfn, dfd, x) = p`` solved for ``x``."""
    dfn, dfd, p = as_floating(dfn, dfd, p)
    a, b = dfn * 0.5, dfd * 0.5
    return _from_ratio(dfn, dfd, ga.betaincinv(a, b, p), ga.betainccinv(b, a, p))


def f_upper_quantile(dfn: Array, dfd: Array, p: Array) -> Array:
    """``fdtrc(dfn, dfd, x) = p`` solved for ``x``."""
    dfn, dfd, p = as_floating(dfn, dfd, p)
    a, b = dfn * 0.5, dfd * 0.5
    return _from_ratio(dfn, dfd, ga.betainccinv(a, b, p), ga.betaincinv(b, a, p))


def _nrdtrimn(p: Array, std: Array, x: Array) -> Array:
    """The mean of a normal distribution of which ``x`` is the quantile."""
    p, std, x = as_floating(p, std, x)
    return x - std * sf.ndtri(p)


def _nrdtrisd(mn: Array, p: Array, x: Array) -> Array:
    """The standard deviation of a normal distribution of which ``x`` is the quantile."""
    mn, p, x = as_floating(mn, p, x)
    return (x - mn) / sf.ndtri(p)


fdtr = public("fdtr", f_distribution, "dfn dfd x")
fdtrc = public("fdtrc", f_survival, "dfn dfd x")
fdtri = public("fdtri", f_quantile, "dfn dfd p")
stdtr = public("stdtr", po.stdtr, "df t")
stdtrit = public("stdtrit", po.stdtrit, "df p")
stdtridf = public("stdtridf", di.stdtridf, "p t")
btdtria = public("btdtria", di.btdtria, "p b x")
btdtrib = public("btdtrib", di.btdtrib, "a p x")
nrdtrimn = public("nrdtrimn", _nrdtrimn, "p std x")
nrdtrisd = public("nrdtrisd", _nrdtrisd, "mn p x")
