"""Continuous distributions of single numbers, a row for each.

Here: those with a formula for the density. Not here: those that are transforms of others
(``transformed``), those with ``probs`` (``discrete``), vectors (``multivariate``).

Layer: ``compat``. Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions
(1994); Best and Fisher, Efficient simulation of the von Mises distribution, Applied Statistics 28
(1979), whose numbers are NumPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.composites import composite
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints, sampling
from functrans.compat.torch.distributions.distribution import ExponentialFamily, Family, Shape
from functrans.compat.torch.functional_names import TORCH
from functrans.core.values import Array
from functrans.primitives import torch_elementwise as te
from functrans.scipy import special as sp

__all__ = [
    "Beta", "Cauchy", "Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "Laplace", "Normal", "StudentT", "Uniform", "VonMises",
]  # fmt: skip

_LOCATION = {"loc": constraints.real, "scale": constraints.positive}
_SHAPES = {"concentration1": constraints.positive, "concentration0": constraints.positive}
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _full(x: Array, value: float) -> Array:
    return fnp.full(x.shape, value, x.dtype)


class Normal(
    Family,
    ExponentialFamily,
    parameters=_LOCATION,
    support=constraints.real,
    log_prob=lambda x, loc, scale: (
        -((x - loc) ** 2) / (2 * scale**2) - fnp.log(scale) - _HALF_LOG_2PI
    ),
    cdf=lambda x, loc, scale: 0.5 * (1 + sp.erf((x - loc) / scale / math.sqrt(2))),
    icdf=lambda p, loc, scale: loc + scale * sp.erfinv(2 * p - 1) * math.sqrt(2),
    sample=lambda shape, loc, scale: TORCH.normal(loc.expand(shape), scale.expand(shape)),
    rsample=lambda shape, loc, scale: loc + sampling.normal(shape, loc) * scale,
    mean="loc",
    mode="loc",
    variance=lambda scale: scale**2,
    stddev="scale",
    entropy=lambda scale: 0.5 + _HALF_LOG_2PI + fnp.log(scale),
):
    """The normal distribution.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Normal(0.0, 1.0).log_prob(torch.tensor([0.0, 2.0]))
      tensor([-0.9189, -2.9189])
    """


def _draw_laplace(shape: Shape, loc: Tensor, scale: Tensor) -> Tensor:
    eps = float(np.finfo(loc.dtype).eps)
    u = sampling.uniform(shape, loc) * (2 - eps) + (eps - 1)
    return loc - scale * u.sign() * (-u.abs()).log1p()


class Laplace(
    Family,
    parameters=_LOCATION,
    support=constraints.real,
    log_prob=lambda x, loc, scale: -fnp.log(2 * scale) - te.absolute(x - loc) / scale,
    cdf=lambda x, loc, scale: (
        0.5 - 0.5 * te.sign(x - loc) * fnp.expm1(-te.absolute(x - loc) / scale)
    ),
    icdf=lambda p, loc, scale: (
        loc - scale * te.sign(p - 0.5) * fnp.log1p(-2 * te.absolute(p - 0.5))
    ),
    rsample=_draw_laplace,
    mean="loc",
    mode="loc",
    variance=lambda scale: 2 * scale**2,
    stddev=lambda scale: math.sqrt(2) * scale,
    entropy=lambda scale: 1 + fnp.log(2 * scale),
):
    """The difference of two exponential variables.

    Example:
      >>> Laplace(0.0, 1.0).variance
      tensor(2.)
    """


class Cauchy(
    Family,
    parameters=_LOCATION,
    support=constraints.real,
    log_prob=lambda x, loc, scale: (
        -math.log(math.pi) - fnp.log(scale) - fnp.log1p(((x - loc) / scale) ** 2)
    ),
    cdf=lambda x, loc, scale: fnp.arctan((x - loc) / scale) / math.pi + 0.5,
    icdf=lambda p, loc, scale: fnp.tan(math.pi * (p - 0.5)) * scale + loc,
    rsample=lambda shape, loc, scale: loc + sampling.cauchy(shape, loc) * scale,
    mean=lambda loc: _full(loc, np.nan),
    mode="loc",
    variance=lambda loc: _full(loc, np.inf),
    entropy=lambda scale: math.log(4 * math.pi) + fnp.log(scale),
):
    """The ratio of two normal variables.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Cauchy(0.0, 1.0).cdf(torch.tensor(1.0))
      tensor(0.75)
    """


def _student_t_log_prob(x: Array, df: Array, loc: Array, scale: Array) -> Array:
    half = 0.5 * df
    norm = 0.5 * fnp.log(df * math.pi) + sp.gammaln(half) - sp.gammaln(0.5 * (df + 1))
    y = (x - loc) / scale
    return -0.5 * (df + 1) * fnp.log1p(y**2 / df) - norm - fnp.log(scale)


def _student_t_variance(df: Array, scale: Array) -> Array:
    finite = df > 2
    above = scale**2 * df / (fnp.where(finite, df, 3.0) - 2)
    return fnp.where(finite, above, fnp.where(df > 1, _full(df, np.inf), np.nan))


def _student_t_entropy(df: Array, scale: Array) -> Array:
    half, more = 0.5 * df, 0.5 * (df + 1)
    log_beta = sp.gammaln(half) + math.lgamma(0.5) - sp.gammaln(more)
    slope = more * (sp.digamma(more) - sp.digamma(half))
    return fnp.log(scale) + slope + 0.5 * fnp.log(df) + log_beta


class StudentT(
    Family,
    parameters={"df": constraints.positive, **_LOCATION},
    defaults={"loc": 0.0, "scale": 1.0},
    support=constraints.real,
    log_prob=_student_t_log_prob,
    rsample=lambda shape, df, loc, scale: (
        (2 * sampling.standard_gamma(shape, 0.5 * df) / df).rsqrt()
        * (scale * sampling.normal(shape, loc))
        + loc
    ),
    mean=lambda df, loc: fnp.where(df > 1, loc, np.nan),
    mode="loc",
    variance=_student_t_variance,
    entropy=_student_t_entropy,
):
    """Student's distribution.

    Example:
      >>> StudentT(4.0).variance
      tensor(2.)
    """


class Uniform(
    Family,
    parameters={
        "low": lambda self: constraints.less_than(self.high),
        "high": lambda self: constraints.greater_than(self.low),
    },
    support=lambda self: constraints.interval(self.low, self.high),
    log_prob=lambda x, low, high: (
        fnp.log(fnp.astype((low <= x) & (x < high), low.dtype)) - fnp.log(high - low)
    ),
    cdf=lambda x, low, high: te.clamp((x - low) / (high - low), 0.0, 1.0),
    icdf=lambda p, low, high: p * (high - low) + low,
    rsample=lambda shape, low, high: low + sampling.uniform(shape, low) * (high - low),
    mean=lambda low, high: (high + low) / 2,
    mode=lambda low: _full(low, np.nan),
    variance=lambda low, high: (high - low) ** 2 / 12,
    stddev=lambda low, high: (high - low) / math.sqrt(12),
    entropy=lambda low, high: fnp.log(high - low),
):
    """Numbers in an interval.

    Example:
      >>> Uniform(1.0, 3.0).mean
      tensor(2.)
    """


class Exponential(
    Family,
    ExponentialFamily,
    parameters={"rate": constraints.positive},
    support=constraints.nonnegative,
    log_prob=lambda x, rate: fnp.log(rate) - rate * x,
    cdf=lambda x, rate: 1 - fnp.exp(-rate * x),
    icdf=lambda p, rate: -fnp.log1p(-p) / rate,
    rsample=lambda shape, rate: sampling.exponential(shape, rate) / rate,
    mean=lambda rate: 1 / rate,
    mode=lambda rate: _full(rate, 0.0),
    variance=lambda rate: rate**-2,
    stddev=lambda rate: 1 / rate,
    entropy=lambda rate: 1 - fnp.log(rate),
):
    """Times between events of a given rate.

    Example:
      >>> Exponential(2.0).mean
      tensor(0.5)
    """


def _gamma_log_prob(x: Array, concentration: Array, rate: Array) -> Array:
    power = te.xlogy(concentration, rate) + te.xlogy(concentration - 1, x)
    return power - rate * x - sp.gammaln(concentration)


class Gamma(
    Family,
    ExponentialFamily,
    parameters={"concentration": constraints.positive, "rate": constraints.positive},
    support=constraints.nonnegative,
    log_prob=_gamma_log_prob,
    cdf=lambda x, concentration, rate: sp.gammainc(concentration, rate * x),
    rsample=lambda shape, concentration, rate: sampling.standard_gamma(shape, concentration) / rate,
    mean=lambda concentration, rate: concentration / rate,
    mode=lambda concentration, rate: te.clamp_min((concentration - 1) / rate, 0.0),
    variance=lambda concentration, rate: concentration / rate**2,
    entropy=lambda rate, concentration: (
        concentration
        - fnp.log(rate)
        + sp.gammaln(concentration)
        + (1 - concentration) * sp.digamma(concentration)
    ),
):
    """The gamma distribution.

    Example:
      >>> Gamma(3.0, 2.0).mean
      tensor(1.5)
    """


class Chi2(Gamma, parameters={"df": constraints.positive}):
    """Sums of squares of ``df`` normal variables.

    Example:
      >>> Chi2(3.0).variance
      tensor(6.)
    """

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        df: Any = parameters["df"]
        vars(self).update(concentration=0.5 * df, rate=df.new_full(df.shape, 0.5))
        super()._set(parameters, validate_args)


def _fisher_log_prob(x: Array, df1: Array, df2: Array) -> Array:
    a, b = df1 * 0.5, df2 * 0.5
    ratio = df1 / df2
    norm = sp.gammaln(a + b) - sp.gammaln(a) - sp.gammaln(b)
    return norm + a * fnp.log(ratio) + (a - 1) * fnp.log(x) - (a + b) * fnp.log1p(ratio * x)


def _fisher_variance(df1: Array, df2: Array) -> Array:
    d = fnp.where(df2 > 4, df2, np.nan)
    return 2 * d**2 * (df1 + d - 2) / (df1 * (d - 2) ** 2 * (d - 4))


def _draw_fisher(shape: Shape, df1: Tensor, df2: Tensor) -> Tensor:
    above, below = (sampling.standard_gamma(shape, df * 0.5) * 2 / df for df in (df1, df2))
    return above / below.clamp(float(np.finfo(df1.dtype).tiny))


class FisherSnedecor(
    Family,
    parameters={"df1": constraints.positive, "df2": constraints.positive},
    support=constraints.positive,
    log_prob=_fisher_log_prob,
    rsample=_draw_fisher,
    mean=lambda df2: fnp.where(df2 > 2, df2 / (fnp.where(df2 > 2, df2, 3.0) - 2), np.nan),
    mode=lambda df1, df2: fnp.where(df1 > 2, (df1 - 2) / df1 * df2 / (df2 + 2), np.nan),
    variance=_fisher_variance,
):
    """The ratio of two mean squares of normal variables.

    Example:
      >>> FisherSnedecor(2.0, 4.0).mean
      tensor(2.)
    """


def _beta_log_prob(x: Array, concentration1: Array, concentration0: Array) -> Array:
    a, b = concentration1, concentration0
    norm = sp.gammaln(a + b) - sp.gammaln(a) - sp.gammaln(b)
    return te.xlogy(a - 1, x) + te.xlogy(b - 1, 1 - x) + norm


def _beta_entropy(concentration1: Array, concentration0: Array) -> Array:
    a, b = concentration1, concentration0
    log_beta = sp.gammaln(a) + sp.gammaln(b) - sp.gammaln(a + b)
    slopes = (a - 1) * sp.digamma(a) + (b - 1) * sp.digamma(b)
    return log_beta - slopes + (a + b - 2) * sp.digamma(a + b)


def _beta_mode(concentration1: Array, concentration0: Array) -> Array:
    """Between the ends; 1 where both parameters are below 1, as ``Dirichlet`` takes the first."""
    a, b = te.clamp_min(concentration1 - 1, 0.0), te.clamp_min(concentration0 - 1, 0.0)
    is_low = (concentration1 < 1) & (concentration0 < 1)
    return fnp.where(is_low, 1.0, a / fnp.where(is_low, 1.0, a + b))


def _beta_variance(concentration1: Array, concentration0: Array) -> Array:
    total = concentration1 + concentration0
    return concentration1 * concentration0 / (total**2 * (total + 1))


class Beta(
    Family,
    ExponentialFamily,
    parameters=_SHAPES,
    support=constraints.unit_interval,
    log_prob=_beta_log_prob,
    rsample=lambda shape, concentration1, concentration0: sampling.dirichlet(
        (*shape, 2), fnp.stack([concentration1, concentration0], axis=-1)
    )[..., 0],
    mean=lambda concentration1, concentration0: concentration1 / (concentration1 + concentration0),
    mode=_beta_mode,
    variance=_beta_variance,
    entropy=_beta_entropy,
):
    """Numbers in [0, 1] of density in proportion to ``x**(a - 1) * (1 - x)**(b - 1)``.

    Example:
      >>> Beta(1.0, 3.0).mean
      tensor(0.25)
    """


# the tail of a distribution ----------------------------------------------------------------------


def _safe(concentration: Any) -> tuple[Any, Any]:
    """Whether it is about 0, and the others."""
    is_zero = fnp.abs(concentration) <= 1e-8
    return is_zero, fnp.where(is_zero, 1.0, concentration)


def _pareto_log_survival(x: Array, loc: Array, scale: Array, concentration: Array) -> Array:
    z = (x - loc) / scale
    is_zero, k = _safe(concentration)
    return fnp.where(is_zero, -z, -fnp.log1p(k * z) / k)


def _pareto_log_prob(x: Array, loc: Array, scale: Array, concentration: Array) -> Array:
    z = (x - loc) / scale
    is_zero, k = _safe(concentration)
    power = 1 / k + 1
    return -fnp.log(scale) - fnp.where(
        is_zero, z, fnp.where(power == 0, power, power * fnp.log1p(k * z))
    )


def _pareto_icdf(p: Array, loc: Array, scale: Array, concentration: Array) -> Array:
    is_zero, k = _safe(concentration)
    log_q = fnp.log1p(-p)
    return fnp.where(is_zero, loc - scale * log_q, loc + scale / k * fnp.expm1(-k * log_q))


def _pareto_mean(loc: Array, scale: Array, concentration: Array) -> Array:
    is_finite = concentration < 1
    k = fnp.where(is_finite, concentration, 0.5)
    return fnp.where(is_finite, loc + scale / (1 - k), np.nan)


def _pareto_variance(scale: Array, concentration: Array) -> Array:
    is_finite = concentration < 0.5
    k = fnp.where(is_finite, concentration, 0.25)
    return fnp.where(is_finite, scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), np.nan)


def _pareto_support(self: GeneralizedPareto) -> Any:
    is_bounded = self.concentration < 0
    upper = fnp.where(is_bounded, self.loc - self.scale / self.concentration, np.inf)
    return constraints.interval(self.loc, upper)


class GeneralizedPareto(
    Family,
    parameters={**_LOCATION, "concentration": constraints.real},
    support=_pareto_support,
    log_prob=_pareto_log_prob,
    cdf=lambda x, loc, scale, concentration: (
        -fnp.expm1(_pareto_log_survival(x, loc, scale, concentration))
    ),
    icdf=_pareto_icdf,
    rsample=lambda shape, loc, scale, concentration: _pareto_icdf(
        sampling.uniform(shape, loc), loc, scale, concentration
    ),
    mean=_pareto_mean,
    mode="loc",
    variance=_pareto_variance,
    entropy=lambda scale, concentration: fnp.log(scale) + concentration + 1,
):
    """Excesses over a threshold.

    Example:
      >>> GeneralizedPareto(0.0, 1.0, 0.5).mean
      tensor(2.)
    """

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than a value."""
        if self._validate_args:
            self._validate_sample(value)
        operands = (self.loc, self.scale, self.concentration)
        return composite("LogSurvival", _pareto_log_survival, value, *operands)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of at most a value."""
        return (-self.log_survival_function(value).exp()).log1p()


class VonMises(
    Family,
    parameters={"loc": constraints.real, "concentration": constraints.positive},
    support=constraints.real,
    log_prob=lambda x, loc, concentration: (
        concentration * (fnp.cos(x - loc) - 1)
        - math.log(2 * math.pi)
        - fnp.log(sp.i0e(concentration))
    ),
    sample=lambda shape, loc, concentration: sampling.numbers(
        lambda rng, size, mu, kappa: rng.vonmises(mu, kappa, size),
        shape,
        loc.dtype,
        loc,
        concentration,
    ),
    mean="loc",
    mode="loc",
    variance=lambda concentration: 1 - sp.i1e(concentration) / sp.i0e(concentration),
):
    """Angles, in proportion to ``exp(concentration * cos(x - loc))``; variance is the circular one.

    Example:
      >>> VonMises(1.0, 2.0).mean
      tensor(1.)
    """
