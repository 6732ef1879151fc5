"""Distributions that are transforms of others, a row for each.

Here: their classes, which are families and transformed distributions. Not here: these two
(``distribution``, ``composed``).

Layer: ``compat``. Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions
(1994); Jones, Kumaraswamy's distribution, Statistical Methodology 6 (2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints, transforms
from functrans.compat.torch.distributions.composed import TransformedDistribution, of_base
from functrans.compat.torch.distributions.continuous import (
    Cauchy,
    Exponential,
    Gamma,
    Normal,
    Uniform,
)
from functrans.compat.torch.distributions.discrete import (
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
)
from functrans.compat.torch.distributions.distribution import EMPTY, Distribution, Family, construct
from functrans.core.values import Array
from functrans.primitives import torch_elementwise as te
from functrans.scipy import special as sp

__all__ = [
    "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "LogNormal",
    "LogisticNormal", "Pareto", "RelaxedBernoulli", "RelaxedOneHotCategorical", "Weibull",
]  # fmt: skip

_LOCATION = {"loc": constraints.real, "scale": constraints.positive}
Made = tuple[Distribution, list[transforms.Transform]]


class TransformedFamily(TransformedDistribution, Family):
    """A family of transformed distributions.

    A subclass says by ``made_of``, a function of the object, of which distribution and transforms
    it is made, and has the words of a family.
    """

    __init__ = construct
    expand = Family.expand
    _made_of: ClassVar[Callable[[Any], Made]]

    def __init_subclass__(cls, made_of: Callable[[Any], Made] | None = None, **words: Any) -> None:
        """The methods that the words stand for."""
        super().__init_subclass__(**words)
        if made_of is not None:
            cls._made_of = made_of

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        vars(self).update(parameters)
        if validate_args is not False and self._validate_args:
            shape = next(iter(parameters.values())).shape
            Distribution.__init__(self, shape, EMPTY, validate_args)  # before they are used
        base, parts = self._made_of()
        TransformedDistribution.__init__(self, base, parts, False)
        if validate_args is None:
            del self._validate_args
        else:
            self._validate_args = validate_args


def _plain(kind: type[Family], *parameters: Any) -> Distribution:
    return kind(*parameters, validate_args=False)


class LogNormal(
    TransformedFamily,
    parameters=_LOCATION,
    support=constraints.positive,
    mean=lambda loc, scale: fnp.exp(loc + scale**2 / 2),
    mode=lambda loc, scale: fnp.exp(loc - scale**2),
    variance=lambda loc, scale: fnp.expm1(scale**2) * fnp.exp(2 * loc + scale**2),
    entropy=lambda loc, scale: 0.5 + 0.5 * math.log(2 * math.pi) + fnp.log(scale) + loc,
    made_of=lambda self: (_plain(Normal, self.loc, self.scale), [transforms.ExpTransform()]),
):
    """Exponentials of normal variables.

    Example:
      >>> LogNormal(0.0, 1.0).mode
      tensor(0.3679)
    """


class _Half(TransformedFamily):
    """Absolute values of a symmetric distribution."""

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density; it is 0 below 0."""
        if self._validate_args:
            self._validate_sample(value)
        found: Any = self.base_dist.log_prob(value) + math.log(2)
        return fnp.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        """The value of a given cumulative probability."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """Shannon's entropy, in nats."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(
    _Half,
    parameters={"scale": constraints.positive},
    support=constraints.nonnegative,
    mean=lambda scale: scale * math.sqrt(2 / math.pi),
    mode=lambda scale: fnp.zeros(scale.shape, scale.dtype),
    variance=lambda scale: scale**2 * (1 - 2 / math.pi),
    made_of=lambda self: (_plain(Normal, 0, self.scale), [transforms.AbsTransform()]),
):
    """Absolute values of normal variables.

    Example:
      >>> HalfNormal(1.0).mean
      tensor(0.7979)
    """


class HalfCauchy(
    _Half,
    parameters={"scale": constraints.positive},
    support=constraints.nonnegative,
    mean=lambda scale: fnp.full(scale.shape, np.inf, scale.dtype),
    mode=lambda scale: fnp.zeros(scale.shape, scale.dtype),
    variance=lambda scale: fnp.full(scale.shape, np.inf, scale.dtype),
    made_of=lambda self: (_plain(Cauchy, 0, self.scale), [transforms.AbsTransform()]),
):
    """Absolute values of Cauchy variables.

    Example:
      >>> import functrans.compat.torch as torch
      >>> HalfCauchy(1.0).cdf(torch.tensor(1.0))
      tensor(0.5)
    """


def _gumbel(self: Any) -> Made:
    info, scale = np.finfo(self.loc.dtype), self.scale
    low = scale.detach() * 0 + float(info.tiny)
    return _plain(Uniform, low, 1 - float(info.eps)), [
        transforms.ExpTransform().inv,
        transforms.AffineTransform(0, -scale.new_ones(scale.shape)),
        transforms.ExpTransform().inv,
        transforms.AffineTransform(self.loc, -scale),
    ]


class Gumbel(
    TransformedFamily,
    parameters=_LOCATION,
    support=constraints.real,
    log_prob=lambda x, loc, scale: (loc - x) / scale - fnp.exp((loc - x) / scale) - fnp.log(scale),
    mean=lambda loc, scale: loc + scale * np.euler_gamma,
    mode="loc",
    variance=lambda scale: (math.pi**2 / 6) * scale**2,
    stddev=lambda scale: (math.pi / math.sqrt(6)) * scale,
    entropy=lambda scale: fnp.log(scale) + (1 + np.euler_gamma),
    made_of=_gumbel,
):
    """Largest values.

    Example:
      >>> Gumbel(0.0, 1.0).mean
      tensor(0.5772)
    """


def _weibull_variance(scale: Array, concentration: Array) -> Array:
    k = 1 / concentration
    return scale**2 * (fnp.exp(sp.gammaln(1 + 2 * k)) - fnp.exp(2 * sp.gammaln(1 + k)))


class Weibull(
    TransformedFamily,
    parameters={"scale": constraints.positive, "concentration": constraints.positive},
    support=constraints.positive,
    mean=lambda scale, concentration: scale * fnp.exp(sp.gammaln(1 + 1 / concentration)),
    mode=lambda scale, concentration: (
        scale * ((concentration - 1) / concentration) ** (1 / concentration)
    ),
    variance=_weibull_variance,
    entropy=lambda scale, concentration: (
        np.euler_gamma * (1 - 1 / concentration) + fnp.log(scale / concentration) + 1
    ),
    made_of=lambda self: (
        _plain(Exponential, self.scale.new_ones(self.scale.shape)),
        [
            transforms.PowerTransform(1 / self.concentration),
            transforms.AffineTransform(0, self.scale),
        ],
    ),
):
    """Powers of exponential variables.

    Example:
      >>> Weibull(1.0, 1.0).mean
      tensor(1.)
    """

    concentration_reciprocal = property(lambda self: 1 / self.concentration)


def _pareto_mean(scale: Array, alpha: Array) -> Array:
    a = te.clamp_min(alpha, 1.0)
    return a * scale / (a - 1)


def _pareto_variance(scale: Array, alpha: Array) -> Array:
    a = te.clamp_min(alpha, 2.0)
    return scale**2 * a / ((a - 1) ** 2 * (a - 2))


class Pareto(
    TransformedFamily,
    parameters={"scale": constraints.positive, "alpha": constraints.positive},
    support=lambda self: constraints.greater_than_eq(self.scale),
    mean=_pareto_mean,
    mode="scale",
    variance=_pareto_variance,
    entropy=lambda scale, alpha: fnp.log(scale / alpha) + (1 + 1 / alpha),
    made_of=lambda self: (
        _plain(Exponential, self.alpha),
        [transforms.ExpTransform(), transforms.AffineTransform(0, self.scale)],
    ),
):
    """Numbers from ``scale`` on, of which a power of exponent ``-alpha`` is uniform.

    Example:
      >>> Pareto(1.0, 2.0).mean
      tensor(2.)
    """


def _kumaraswamy_moment(a: Array, b: Array, n: int) -> Array:
    """``b * B(1 + n / a, b)``."""
    first = 1 + n / a
    return fnp.exp(fnp.log(b) + sp.gammaln(first) + sp.gammaln(b) - sp.gammaln(first + b))


def _kumaraswamy_mode(concentration1: Array, concentration0: Array) -> Array:
    a, b = concentration1, concentration0
    is_inside = (a >= 1) & (b >= 1) & (a * b > 1)
    share = (a - 1) / fnp.where(is_inside, a * b - 1, 1.0)
    return fnp.where(is_inside, fnp.where(is_inside, share, 1.0) ** (1 / a), np.nan)


def _kumaraswamy_variance(concentration1: Array, concentration0: Array) -> Array:
    mean = _kumaraswamy_moment(concentration1, concentration0, 1)
    return _kumaraswamy_moment(concentration1, concentration0, 2) - mean**2


def _kumaraswamy_entropy(concentration1: Array, concentration0: Array) -> Array:
    a, b = concentration1, concentration0
    harmonic = sp.digamma(b + 1) + np.euler_gamma
    return (1 - 1 / b) + (1 - 1 / a) * harmonic - fnp.log(a) - fnp.log(b)


class Kumaraswamy(
    TransformedFamily,
    parameters={"concentration1": constraints.positive, "concentration0": constraints.positive},
    support=constraints.unit_interval,
    mean=lambda concentration1, concentration0: _kumaraswamy_moment(
        concentration1, concentration0, 1
    ),
    mode=_kumaraswamy_mode,
    variance=_kumaraswamy_variance,
    entropy=_kumaraswamy_entropy,
    made_of=lambda self: (
        _plain(Uniform, self.concentration0.detach() * 0, self.concentration0.detach() * 0 + 1),
        [
            transforms.PowerTransform(1 / self.concentration0),
            transforms.AffineTransform(1.0, -1.0),
            transforms.PowerTransform(1 / self.concentration1),
        ],
    ),
):
    """Numbers in [0, 1] of which ``1 - x**a`` is a power of a uniform number.

    Example:
      >>> Kumaraswamy(1.0, 3.0).mean
      tensor(0.25)
    """


def _inverse_gamma_variance(concentration: Array, rate: Array) -> Array:
    a = concentration
    return fnp.where(a > 2, rate**2 / ((a - 1) ** 2 * (a - 2)), np.inf)


def _inverse_gamma_entropy(concentration: Array, rate: Array) -> Array:
    a = concentration
    return a + fnp.log(rate) + sp.gammaln(a) - (1 + a) * sp.digamma(a)


class InverseGamma(
    TransformedFamily,
    parameters={"concentration": constraints.positive, "rate": constraints.positive},
    support=constraints.positive,
    mean=lambda concentration, rate: fnp.where(
        concentration > 1, rate / (concentration - 1), np.inf
    ),
    mode=lambda concentration, rate: rate / (concentration + 1),
    variance=_inverse_gamma_variance,
    entropy=_inverse_gamma_entropy,
    made_of=lambda self: (
        _plain(Gamma, self.concentration, self.rate),
        [transforms.PowerTransform(-self.rate.new_ones(()))],
    ),
):
    """Reciprocals of gamma variables.

    Example:
      >>> InverseGamma(3.0, 2.0).mean
      tensor(1.)
    """


class LogisticNormal(
    TransformedFamily,
    parameters=_LOCATION,
    support=constraints.simplex,
    made_of=lambda self: (
        _plain(Normal, *(p if self.loc.shape else p.expand(1) for p in (self.loc, self.scale))),
        [transforms.StickBreakingTransform()],
    ),
):
    """Probabilities that are broken from a stick by normal variables.

    Example:
      >>> import functrans.compat.torch as torch
      >>> LogisticNormal(torch.zeros(2), 1.0).event_shape
      torch.Size([3])
    """


class _Relaxed(TransformedDistribution, Family):
    """A distribution of choices that are not made sharply."""

    has_rsample: Any = True
    _of: tuple[type[Family], type[transforms.Transform]]
    _tells_base = True  # of ``validate_args``

    __init__ = construct
    expand = TransformedDistribution.expand

    def _build(self, values: dict[str, Any]) -> None:
        kind, transform = self._of
        checks = values["validate_args"]
        own = values | {"validate_args": checks if self._tells_base else None}
        TransformedDistribution.__init__(self, kind(**own), transform(), checks)

    temperature, probs, logits = map(of_base, ("temperature", "probs", "logits"))


class RelaxedBernoulli(
    _Relaxed,
    parameters=LogitRelaxedBernoulli.arg_constraints,
    arguments="temperature probs logits",
    defaults={"probs": None, "logits": None},
    support=constraints.unit_interval,
):
    """Numbers in [0, 1], the closer to its ends the lower ``temperature`` is.

    Example:
      >>> import functrans.compat.torch as torch
      >>> RelaxedBernoulli(torch.tensor(1.0), 0.5).log_prob(torch.tensor(0.5)).exp()
      tensor(1.)
    """

    _of = LogitRelaxedBernoulli, transforms.SigmoidTransform
    _tells_base = False


class RelaxedOneHotCategorical(
    _Relaxed,
    parameters=ExpRelaxedCategorical.arg_constraints,
    arguments="temperature probs logits",
    defaults={"probs": None, "logits": None},
    support=constraints.simplex,
):
    """Probabilities, the closer to a choice the lower ``temperature`` is.

    Example:
      >>> import functrans.compat.torch as torch
      >>> RelaxedOneHotCategorical(torch.tensor(1.0), torch.tensor([1.0, 1.0])).event_shape
      torch.Size([2])
    """

    _of = ExpRelaxedCategorical, transforms.ExpTransform
