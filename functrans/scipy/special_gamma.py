"""Gamma, beta and zeta functions, error functions, logarithms and powers with SciPy's names.

Here: functions of elements that are primitives or composed of them. Not here: the primitives
(``primitives.special.gamma``, ``primitives.special.elementary``), sums over axes (``special``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.control.custom_rules import custom_jvp
from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.numpy.common import as_operand
from functrans.numpy.elements import sinc as sinc
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, complex_of, real
from functrans.primitives.special import distributions as di
from functrans.primitives.special import elementary as el
from functrans.primitives.special import functions as sf
from functrans.primitives.special import gamma as ga
from functrans.primitives.structural import cast
from functrans.scipy.special_common import (
    as_complex,
    as_floating,
    by_field,
    of_reals,
    public,
    several,
)

# gamma -------------------------------------------------------------------------------------------

gamma = public("gamma", ga.gamma, "z")
gammaln = public("gammaln", sf.lgamma, "x")
loggamma = public("loggamma", ga.loggamma, "z")
rgamma = public("rgamma", ga.rgamma, "z")
digamma = public("digamma", by_field(sf.digamma, ga.complex_digamma), "z")
psi = public("psi", by_field(sf.digamma, ga.complex_digamma), "z")
poch = public("poch", ga.poch, "z m")
binom = public("binom", ga.binom, "x y")
beta = public("beta", ga.beta, "a b")
betaln = public("betaln", ga.betaln, "a b")
betainc = public("betainc", ga.betainc, "a b x", "Differentiable twice in ``a`` and ``b``.")
betaincc = public("betaincc", ga.betaincc, "a b x", "Differentiable twice in ``a`` and ``b``.")
betaincinv = public("betaincinv", ga.betaincinv, "a b y")
betainccinv = public("betainccinv", ga.betainccinv, "a b y")
gammainc = public("gammainc", sf.gammainc, "a x", "Differentiable twice in ``a``.")
gammaincc = public("gammaincc", sf.gammaincc, "a x", "Differentiable twice in ``a``.")
gammaincinv = public("gammaincinv", ga.gammaincinv, "a y")
gammainccinv = public("gammainccinv", ga.gammainccinv, "a y")
zetac = public("zetac", ga.zetac, "x")


def _gammasgn(x: Array) -> Array:
    """The sign of the gamma function; its derivative is 0."""
    (x,) = as_floating(x)
    is_odd = ew.remainder(ew.floor(x), 2) == 1
    is_pole = (x < 0) & (ew.floor(x) == x)
    is_minus = ((x < 0) & is_odd) | ((x == 0) & ew.signbit(x))
    sign = ew.where(is_minus, -1.0, ew.where(is_pole | ew.isnan(x), math.nan, 1.0))
    return cast(ew.where(is_pole, math.nan, sign), dtype_of(x))


gammasgn = public("gammasgn", _gammasgn, "x")


def zeta(x: ArrayLike, q: Any = None) -> Array:
    """Riemann's zeta function, or Hurwitz's.

    Args:
      x: exponent, real. Derivatives in it are there up to the second.
      q: shift of Hurwitz's function; without it the function is Riemann's, of negative numbers too.

    Returns:
      Array of the broadcast shape.

    Raises:
      NonDifferentiableError: a third derivative in ``x`` was asked.

    Example:
      >>> f"{zeta(2.0):.12f}"
      '1.644934066848'
    """
    x = as_operand(x)
    return ga.riemann_zeta(x) if q is None else sf.zeta(x, as_operand(q))


def polygamma(n: int, x: ArrayLike) -> Array:
    """The derivative of order ``n`` of ``digamma``.

    Args:
      n: order, a non-negative integer.
      x: real array.

    Raises:
      ValueError: the order is negative.

    Example:
      >>> f"{polygamma(1, 1.0):.12f}"
      '1.644934066848'
    """
    order = operator.index(n)
    if order < 0:
        raise ValueError(f"polygamma: the order must not be negative, got {order}")
    x = as_operand(x)
    if order == 0:
        return sf.digamma(x)
    factor = (-1.0) ** (order + 1) * math.factorial(order)
    return sf.zeta(float(order + 1), x) * factor


def multigammaln(a: Array, d: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension ``d``.

    Args:
      a: array of numbers above ``(d - 1) / 2``.
      d: dimension, a positive integer.

    Raises:
      ValueError: the dimension is not positive.

    Example:
      >>> bool(multigammaln(2.5, 1) == gammaln(2.5))
      True
    """
    dimension = operator.index(d)
    if dimension < 1:
        raise ValueError(f"multigammaln: d must be a positive integer, got {dimension}")
    a = as_operand(a)
    total: Any = dimension * (dimension - 1) * 0.25 * math.log(math.pi)
    for j in range(dimension):
        total = sf.lgamma(a - j * 0.5) + total
    return total


def factorial(n: Array, exact: bool = False) -> Array:
    """``gamma(n + 1)``, 0 of negative numbers.

    Args:
      n: real array.
      exact: must be false: exact integers have no derivative.

    Raises:
      ValueError: exact results were asked.

    Example:
      >>> float(factorial(4.0))
      24.0
    """
    if exact:
        raise ValueError("factorial: exact=True is for integers; call scipy.special.factorial")
    (n,) = as_floating(as_operand(n))
    is_negative = n < 0
    return ew.where(is_negative, 0, ga.gamma(ew.where(is_negative, 0, n) + 1))


def comb(N: ArrayLike, k: Array, *, exact: bool = False, repetition: bool = False) -> Array:
    """The number of combinations, of real numbers; 0 outside ``0 <= k <= N``.

    Args:
      N: number of things.
      k: number of things that are taken.
      exact: must be false: exact integers have no derivative.
      repetition: whether a thing may be taken several times.

    Raises:
      ValueError: exact results were asked.

    Example:
      >>> float(comb(5.0, 2.0))
      10.0
    """
    if exact:
        raise ValueError("comb: exact=True is for integers; call scipy.special.comb")
    n, k = as_floating(as_operand(N), as_operand(k))
    if repetition:
        n = n + k - 1
    is_inside = (k <= n) & (n >= 0) & (k >= 0)
    value = ga.binom(ew.where(is_inside, n, 1), ew.where(is_inside, k, 0))
    return ew.where(is_inside, value, 0)


def perm(N: ArrayLike, k: Array, exact: bool = False) -> Array:
    """The number of ordered selections, of real numbers; 0 outside ``0 <= k <= N``.

    Args:
      N: number of things.
      k: number of things that are taken.
      exact: must be false: exact integers have no derivative.

    Raises:
      ValueError: exact results were asked.

    Example:
      >>> float(perm(5.0, 2.0))
      20.0
    """
    if exact:
        raise ValueError("perm: exact=True is for integers; call scipy.special.perm")
    n, k = as_floating(as_operand(N), as_operand(k))
    is_inside = (k <= n) & (n >= 0) & (k >= 0)
    value = ga.poch(ew.where(is_inside, n - k + 1, 1), ew.where(is_inside, k, 0))
    return ew.where(is_inside, value, 0)


# the error function ------------------------------------------------------------------------------

erf = public("erf", by_field(sf.erf, el.complex_erf), "z")
erfc = public("erfc", by_field(sf.erfc, el.complex_erfc), "z")
erfcx = public("erfcx", by_field(sf.erfcx, el.complex_erfcx), "z")
erfi = public("erfi", el.erfi, "z")
erfinv = public("erfinv", sf.erfinv, "y")
erfcinv = public("erfcinv", el.erfcinv, "y")
dawsn = public("dawsn", el.dawsn, "z")
fresnel = several("fresnel", "z", el.fresnel_s, el.fresnel_c)
ndtr = public("ndtr", sf.ndtr, "x")
ndtri = public("ndtri", sf.ndtri, "y")
ndtri_exp = public("ndtri_exp", el.ndtri_exp, "y")
log_ndtr = public("log_ndtr", sf.log_ndtr, "x")
owens_t = public("owens_t", el.owens_t, "h a")


def _wofz(z: ArrayLike) -> Array:
    """The Faddeeva function ``exp(-z**2) erfc(-1j z)``."""
    return el.wofz(as_complex(z))


def _voigt_profile(x: Array, sigma: ArrayLike, gamma: Array) -> Array:
    """The density of a normal variable plus one of Cauchy's distribution.

    The real part of ``wofz((x + 1j gamma) / (sigma sqrt(2))) / (sigma sqrt(2 pi))``; at 0 ``sigma``
    its limit, of which the derivative in ``sigma`` is 0.
    """
    x, sigma, gamma = as_floating(x, sigma, gamma)
    is_narrow = sigma == 0
    width = ew.where(is_narrow, 1, sigma)
    z = complex_of(x / width, gamma / width) * math.sqrt(0.5)
    smooth = real(el.wofz(z)) / (width * math.sqrt(2 * math.pi))
    square = x * x + gamma * gamma
    is_point = square == 0
    lorentzian = gamma / (ew.where(is_point, 1, square) * math.pi)
    return ew.where(is_narrow, ew.where(is_point, math.inf, lorentzian), smooth)


wofz = public("wofz", _wofz, "z")
voigt_profile = public("voigt_profile", of_reals("voigt_profile", _voigt_profile), "x sigma gamma")

# logarithms, powers, losses ----------------------------------------------------------------------

expit = public("expit", sf.sigmoid, "x")
logit = public("logit", el.logit, "x")
log_expit = public("log_expit", of_reals("log_expit", sf.log_sigmoid), "x")
softplus = public("softplus", of_reals("softplus", sf.softplus), "x")
xlogy = public("xlogy", el.xlogy, "x y", "Where ``x`` is 0 a zero tangent of it gives 0.")
xlog1py = public("xlog1py", el.xlog1py, "x y", "Where ``x`` is 0 a zero tangent of it gives 0.")
entr = public("entr", el.entr, "x")
rel_entr = public("rel_entr", el.rel_entr, "x y")
kl_div = public("kl_div", el.kl_div, "x y")
exprel = public("exprel", el.exprel, "x")
boxcox = public("boxcox", el.boxcox, "x lmbda")
boxcox1p = public("boxcox1p", el.boxcox1p, "x lmbda")
inv_boxcox = public("inv_boxcox", el.inv_boxcox, "y lmbda")
inv_boxcox1p = public("inv_boxcox1p", el.inv_boxcox1p, "y lmbda")
cosm1 = public("cosm1", el.cosm1, "x")
powm1 = public("powm1", el.powm1, "x y")
exp10 = public("exp10", el.exp10, "x")
sindg = public("sindg", el.sindg, "x")
cosdg = public("cosdg", el.cosdg, "x")
tandg = public("tandg", el.tandg, "x")
cotdg = public("cotdg", el.cotdg, "x")
tklmbda = public("tklmbda", el.tklmbda, "x lmbda")
kolmogorov = public("kolmogorov", di.kolmogorov, "y")
kolmogi = public("kolmogi", di.kolmogi, "p")


def _floating(x: ArrayLike) -> Array:
    return as_floating(x)[0]


def _log1p(x: ArrayLike) -> Array:
    """``log(1 + x)``, without cancellation."""
    return ew.log1p(_floating(x))


def _expm1(x: ArrayLike) -> Array:
    """``exp(x) - 1``, without cancellation."""
    return ew.expm1(_floating(x))


def _exp2(x: ArrayLike) -> Array:
    """``2**x``."""
    return ew.exp2(_floating(x))


def _cbrt(x: ArrayLike) -> Array:
    """The cube root of a real number."""
    return ew.cbrt(_floating(x))


def _round(x: ArrayLike) -> Array:
    """The nearest integer, the even one of two; its derivative is 0."""
    return ew.rint(_floating(x))


def _radian(d: Array, m: Array, s: Array) -> Array:
    """Degrees, minutes and seconds of an angle as radians."""
    d, m, s = as_floating(d, m, s)
    return ((s / 60 + m) / 60 + d) * (math.pi / 180)


def _huber(delta: Array, r: Array) -> Array:
    """Huber's loss: ``r**2 / 2``, and ``delta (abs(r) - delta / 2)`` where ``r`` is larger."""
    delta, r = as_floating(delta, r)
    size = absolute(r)
    value = ew.where(size <= delta, r * r * 0.5, delta * (size - delta * 0.5))
    return ew.where(delta < 0, math.inf, value)


@custom_jvp
def _smooth_loss(delta: ArrayLike, r: ArrayLike) -> Array:
    """``delta (h - delta)`` with ``h = hypot(delta, r)``, so ``h - delta = r**2 / (h + delta)``."""
    rest = ew.where(ew.isinf(r), absolute(r), r * (r / (ew.hypot(delta, r) + delta)))
    return ew.where(r == 0, 0, delta * rest)


@_smooth_loss.defjvp
def _smooth_loss_jvp(primals: Array, tangents: Array) -> tuple[Array, ...]:
    """The slopes are ``(h - delta)**2 / h`` and ``delta r / h``.

    The derivative of the latter cancels where ``r`` is large, but for that of ``1 - abs(r) / h =
    delta**2 / (h (h + abs(r)))``.
    """
    (delta, r), (delta_dot, r_dot) = primals, tangents
    h, size = ew.hypot(delta, r), absolute(r)
    rest = r * (r / (h + delta))
    far = ew.sign(r) * (1 - (delta / h) * (delta / (h + size)))
    slope = delta * ew.where(size > delta, far, r / h)
    return _smooth_loss(delta, r), rest * (rest / h) * delta_dot + slope * r_dot


def _pseudo_huber(delta: Array, r: ArrayLike) -> Array:
    """The smooth loss ``delta**2 (sqrt(1 + (r / delta)**2) - 1)``; 0 where ``delta`` is 0."""
    delta, r = as_floating(delta, r)
    is_zero = delta == 0
    value = ew.where(is_zero, 0, _smooth_loss(ew.where(is_zero, 1, delta), r))
    return ew.where(delta < 0, math.inf, value)


log1p = public("log1p", _log1p, "x")
expm1 = public("expm1", _expm1, "x")
exp2 = public("exp2", _exp2, "x")
cbrt = public("cbrt", _cbrt, "x")
round = public("round", of_reals("round", _round), "x")  # SciPy's name
radian = public("radian", of_reals("radian", _radian), "d m s")
huber = public("huber", of_reals("huber", _huber), "delta r", "``delta`` is not negative.")
pseudo_huber = public(
    "pseudo_huber", of_reals("pseudo_huber", _pseudo_huber), "delta r", "``delta`` is not negative."
)


def diric(x: Array, n: int) -> Array:
    """Dirichlet's kernel ``sin(n x / 2) / (n sin(x / 2))``.

    Args:
      x: real array.
      n: positive integer.

    Raises:
      ValueError: ``n`` is not positive.

    Example:
      >>> float(diric(0.0, 5))
      1.0
    """
    count = operator.index(n)
    if count < 1:
        raise ValueError(f"diric: n must be a positive integer, got {count}")
    (x,) = as_floating(as_operand(x))
    # A sum of cosines: smooth at the multiples of 2 pi.
    steps = np.arange(count) - (count - 1) / 2
    total: Any = 0.0
    for step in steps:
        total = total + ew.cos(x * float(step))
    return total / count if dtype_of(x).kind == "f" else total / float(count)
