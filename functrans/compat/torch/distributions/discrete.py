"""Distributions of integers and choices, and relatives that have ``probs`` or ``logits``.

Here: their rows, and ``ByLogits``, the base of those that are given either. Not here: the words of
a row (``distribution``), transformed ones (``transformed``).

Layer: ``compat``. Source: Johnson, Kotz and Kemp, Univariate Discrete Distributions (1992);
Loaiza-Ganem and Cunningham, The continuous Bernoulli (NeurIPS 2019); Maddison, Mnih and Teh, The
concrete distribution (ICLR 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.autograd.composites import composite
from functrans.autograd.methods.filling import bernoulli, multinomial
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints
from functrans.compat.torch.distributions.distribution import (
    EMPTY,
    Distribution,
    ExponentialFamily,
    Family,
    Shape,
)
from functrans.compat.torch.distributions.sampling import numbers, standard_gamma, uniform
from functrans.compat.torch.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_or_probs,
    logits_to_probs,
    probs_to_logits,
)
from functrans.compat.torch.functional_names import TORCH
from functrans.core.values import Array
from functrans.primitives import torch_elementwise as te
from functrans.scipy import special as sp

__all__ = [
    "Bernoulli", "Binomial", "Categorical", "ContinuousBernoulli", "ExpRelaxedCategorical",
    "Geometric", "LogitRelaxedBernoulli", "Multinomial", "NegativeBinomial", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip


def _draw_poisson(shape: Shape, rate: Tensor) -> Tensor:
    return numbers(lambda rng, size, r: rng.poisson(r, size), shape, rate.dtype, rate)


class Poisson(
    Family,
    ExponentialFamily,
    parameters={"rate": constraints.nonnegative},
    support=constraints.nonnegative_integer,
    log_prob=lambda x, rate: te.xlogy(x, rate) - rate - sp.gammaln(x + 1),
    sample=_draw_poisson,
    mean="rate",
    mode=lambda rate: fnp.floor(rate),
    variance="rate",
):
    """Numbers of events of a given rate.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Poisson(2.0).log_prob(torch.tensor(0.0))
      tensor(-2.)
    """


_PROBABILITY = {"probs": constraints.unit_interval, "logits": constraints.real}
_EITHER = {"probs": None, "logits": None}


class ByLogits(Family, parameters=_PROBABILITY, defaults=_EITHER):
    """A family with probabilities, given as such or as log odds."""

    total_count: Any
    _param: Any

    def _prepared(self, values: dict[str, Any]) -> dict[str, Tensor]:
        for name in self._settings:
            setattr(self, name, values[name])
        name, value = logits_or_probs(values["probs"], values["logits"])
        if "total_count" not in values:
            return {name: value}
        count, value = broadcast_all(values["total_count"], value)
        return {"total_count": count.to(value.dtype), name: value}

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        self._param = parameters["probs" if "probs" in parameters else "logits"]
        super()._set(parameters, validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    param_shape = property(lambda self: Size(self._param.shape))


def _binary_entropy(logits: Array, probs: Array) -> Array:
    return sp.softplus(logits) - probs * logits


class Bernoulli(
    ByLogits,
    ExponentialFamily,
    support=constraints.boolean,
    log_prob=lambda x, logits: x * logits - sp.softplus(logits),
    sample=lambda shape, probs: bernoulli(probs.detach().expand(shape)),
    mean="probs",
    mode=lambda probs: fnp.where(probs == 0.5, np.nan, fnp.astype(probs > 0.5, probs.dtype)),
    variance=lambda probs: probs * (1 - probs),
    entropy=_binary_entropy,
):
    """1 with a probability, else 0.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Bernoulli(0.25).log_prob(torch.tensor([0.0, 1.0])).exp()
      tensor([0.75, 0.25])
    """

    has_enumerate_support = True

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1, along a new first axis."""
        return _enumerated(2, self._batch_shape, self._param.dtype, expand)


def _enumerated(count: int, batch_shape: Shape, dtype: DTypeLike, expand: bool) -> Tensor:
    values: Any = TORCH.arange(count, dtype=dtype).reshape(-1, *(1,) * len(batch_shape))
    return values.expand(-1, *batch_shape) if expand else values


def _geometric_log_prob(x: Array, probs: Array) -> Array:
    is_sure = (probs == 1) & (x == 0)
    return x * fnp.log1p(-fnp.where(is_sure, 0.0, probs)) + fnp.log(probs)


class Geometric(
    ByLogits,
    support=constraints.nonnegative_integer,
    log_prob=_geometric_log_prob,
    sample=lambda shape, probs: (
        uniform(shape, probs).clamp(float(np.finfo(probs.dtype).tiny)).log() / (-probs).log1p()
    ).floor(),
    mean=lambda probs: 1.0 / probs - 1.0,
    mode=lambda probs: fnp.zeros(probs.shape, probs.dtype),
    variance=lambda probs: (1.0 / probs - 1.0) / probs,
    entropy=lambda logits, probs: _binary_entropy(logits, probs) / probs,
):
    """Numbers of failures before the first success.

    Example:
      >>> Geometric(0.25).mean
      tensor(3.)
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if "probs" in vars(self) and not constraints.positive.check(self.probs).all():
            raise ValueError(
                f"Expected parameter probs of distribution {self!r} to be positive, but found "
                f"invalid values:\n{self.probs}"
            )


def _binomial_log_prob(x: Array, total_count: Array, logits: Array) -> Array:
    choices = sp.gammaln(total_count + 1) - sp.gammaln(x + 1) - sp.gammaln(total_count - x + 1)
    return choices + x * logits - total_count * sp.softplus(logits)


class Binomial(
    ByLogits,
    parameters={"total_count": constraints.nonnegative_integer, **_PROBABILITY},
    defaults={"total_count": 1, **_EITHER},
    support=lambda self: constraints.integer_interval(0, self.total_count),
    log_prob=_binomial_log_prob,
    sample=lambda shape, total_count, probs: numbers(
        lambda rng, size, n, p: rng.binomial(n.astype(np.int64), p, size),
        shape,
        probs.dtype,
        total_count,
        probs,
    ),
    mean=lambda total_count, probs: total_count * probs,
    mode=lambda total_count, probs: fnp.minimum(fnp.floor((total_count + 1) * probs), total_count),
    variance=lambda total_count, probs: total_count * probs * (1 - probs),
):
    """Numbers of successes in ``total_count`` trials.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Binomial(2, 0.5).log_prob(torch.tensor([0.0, 1.0, 2.0])).exp()
      tensor([0.25, 0.5 , 0.25])
    """

    has_enumerate_support = True

    def _one_count(self, what: str) -> int:
        total = int(self.total_count.max())
        if not bool((self.total_count == total).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return total

    def entropy(self) -> Tensor:
        """The sum over all values; the counts must be equal."""
        self._one_count("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The integers up to the count, along a new first axis."""
        count = 1 + self._one_count("enumerate_support")
        return _enumerated(count, self._batch_shape, self._param.dtype, expand)


def _negative_binomial_log_prob(x: Array, total_count: Array, logits: Array) -> Array:
    n = total_count
    both = fnp.where(n + x == 0, 1.0, n + x)
    norm = fnp.where(n + x == 0, 0.0, sp.gammaln(both) - sp.gammaln(fnp.where(n + x == 0, 1.0, n)))
    return norm - sp.gammaln(1 + x) - n * sp.softplus(logits) - x * sp.softplus(-logits)


class NegativeBinomial(
    ByLogits,
    parameters={
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    },
    defaults=_EITHER,
    support=constraints.nonnegative_integer,
    log_prob=_negative_binomial_log_prob,
    sample=lambda shape, total_count, logits: _draw_poisson(
        shape, standard_gamma(shape, total_count) * logits.exp()
    ),
    mean=lambda total_count, logits: total_count * fnp.exp(logits),
    mode=lambda total_count, logits: fnp.maximum(
        fnp.floor((total_count - 1) * fnp.exp(logits)), 0.0
    ),
    variance=lambda total_count, logits: total_count * fnp.exp(logits) / sp.expit(-logits),
):
    """Numbers of successes before ``total_count`` failures.

    Example:
      >>> NegativeBinomial(3.0, 0.5).mean
      tensor(3.)
    """


# relatives with real values ----------------------------------------------------------------------


def _apart(of: Callable[..., Any], series: Callable[..., Any]) -> Callable[..., Any]:
    """A formula with a removable singularity at 1/2, and its series between two bounds."""

    def formula(probs: Array, _low: Array, _high: Array, *x: Array) -> Array:
        is_apart = (probs <= _low) | (probs > _high)
        found = of(fnp.where(is_apart, probs, _low), *x)
        return fnp.where(is_apart, found, series(probs - 0.5, *x))

    return formula


_log_norm = _apart(
    lambda p: fnp.log(fnp.abs(fnp.log1p(-p) - fnp.log(p))) - fnp.log(fnp.abs(1 - 2 * p)),
    lambda d: math.log(2) + (4 / 3 + 104 / 45 * d**2) * d**2,
)
"""``log(2 atanh(1 - 2 p) / (1 - 2 p))``."""

_continuous_mean = _apart(
    lambda p: p / (2 * p - 1) + 1 / (fnp.log1p(-p) - fnp.log(p)),
    lambda d: 0.5 + (1 / 3 + 16 / 45 * d**2) * d,
)
_continuous_variance = _apart(
    lambda p: p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (fnp.log1p(-p) - fnp.log(p)) ** 2,
    lambda d: 1 / 12 - (1 / 15 - 128 / 945 * d**2) * d**2,
)
_inner_cdf = _apart(
    lambda p, x: (p**x * (1 - p) ** (1 - x) + p - 1) / (2 * p - 1),
    lambda d, x: x,
)
_inner_icdf = _apart(
    lambda p, x: (fnp.log1p(-p + x * (2 * p - 1)) - fnp.log1p(-p)) / (fnp.log(p) - fnp.log1p(-p)),
    lambda d, x: x,
)


def _continuous_entropy(probs: Array, _low: Array, _high: Array) -> Array:
    mean = _continuous_mean(probs, _low, _high)
    log_fail = fnp.log1p(-probs)
    return mean * (log_fail - fnp.log(probs)) - _log_norm(probs, _low, _high) - log_fail


class ContinuousBernoulli(
    ByLogits,
    ExponentialFamily,
    parameters=_PROBABILITY,
    arguments="probs logits lims",
    defaults={**_EITHER, "lims": (0.499, 0.501)},
    support=constraints.unit_interval,
    log_prob=lambda x, logits, probs, _low, _high: (
        x * logits - sp.softplus(logits) + _log_norm(probs, _low, _high)
    ),
    cdf=lambda x, probs, _low, _high: fnp.where(
        x <= 0, 0.0, fnp.where(x >= 1, 1.0, _inner_cdf(probs, _low, _high, x))
    ),
    icdf=lambda x, probs, _low, _high: _inner_icdf(probs, _low, _high, x),
    rsample=lambda shape, icdf, probs: icdf(uniform(shape, probs)),
    mean=_continuous_mean,
    variance=_continuous_variance,
    entropy=_continuous_entropy,
):
    """Numbers in [0, 1] of density in proportion to ``p**x * (1 - p)**(1 - x)``.

    Args:
      probs: ``p``.
      logits: its log odds.
      lims: where in between series about 1/2 are used.
      validate_args: whether parameters and values are checked.

    Example:
      >>> ContinuousBernoulli(0.5).mean
      tensor(0.5)
    """

    lims: tuple[float, float]
    _low = property(lambda self: self.lims[0])
    _high = property(lambda self: self.lims[1])
    log_normalizer = property(
        lambda self: composite("LogNormalizer", _log_norm, self.probs, *self.lims)
    )

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        super()._set(parameters, validate_args)
        if "probs" in parameters:
            self.probs = self._param = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))


def _draw_relaxed(shape: Shape, probs: Tensor, temperature: Any) -> Tensor:
    u = clamp_probs(uniform(shape, probs))
    return (probs_to_logits(u, True) + probs_to_logits(probs.expand(shape), True)) / temperature


def _relaxed_log_prob(x: Array, logits: Array, temperature: Array) -> Array:
    difference = logits - x * temperature
    return fnp.log(temperature) + difference - 2 * sp.softplus(difference)


class LogitRelaxedBernoulli(
    ByLogits,
    parameters=_PROBABILITY,
    arguments="temperature probs logits",
    defaults=_EITHER,
    support=constraints.real,
    log_prob=_relaxed_log_prob,
    rsample=_draw_relaxed,
):
    """Log odds of the relaxed Bernoulli distribution.

    Example:
      >>> import functrans.compat.torch as torch
      >>> LogitRelaxedBernoulli(torch.tensor(1.0), 0.5).log_prob(torch.tensor(0.0)).exp()
      tensor(0.25)
    """


# choices -----------------------------------------------------------------------------------------


def _draw_choice(shape: Shape, probs: Tensor) -> Tensor:
    batch, events = probs.shape[:-1], probs.shape[-1]
    n = math.prod(shape[: len(shape) - len(batch)])
    return multinomial(probs.reshape(-1, events), n, True).T.reshape(shape)


_CHOICE = {"probs": constraints.simplex, "logits": constraints.real_vector}


def _choice_entropy(logits: Array, probs: Array) -> Array:
    return -fnp.sum(fnp.maximum(logits, float(np.finfo(logits.dtype).min)) * probs, axis=-1)


class Categorical(
    ByLogits,
    ExponentialFamily,
    parameters=_CHOICE,
    defaults=_EITHER,
    support=constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self._num_events - 1),
        is_discrete=True,
        event_dim=0,
    ),
    shapes=lambda self, shape: (shape[:-1], EMPTY),
    sample=_draw_choice,
    mean=lambda probs: fnp.full(probs.shape[:-1], np.nan, probs.dtype),
    variance=lambda probs: fnp.full(probs.shape[:-1], np.nan, probs.dtype),
    entropy=_choice_entropy,
):
    """One of several places, with the probabilities along the last axis.

    Args:
      probs: probabilities, up to a factor.
      logits: their logarithms, up to a term.
      validate_args: whether parameters and values are checked.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Categorical(torch.tensor([1.0, 3.0])).probs
      tensor([0.25, 0.75])
    """

    has_enumerate_support = True
    _num_events = property(lambda self: self._param.shape[-1])

    def _prepared(self, values: dict[str, Any]) -> dict[str, Tensor]:
        name, value = logits_or_probs(values["probs"], values["logits"], 1)
        whole: Any = value
        if name == "probs":
            return {name: whole / whole.sum(-1, True)}
        return {name: whole - whole.logsumexp(-1, True)}

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits)

    mode = property(lambda self: self.probs.argmax(-1))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of places."""
        if self._validate_args:
            self._validate_sample(value)
        index: Any = value.long().unsqueeze(-1)
        shape = np.broadcast_shapes(index.shape[:-1], self._batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, index.expand(*shape, 1)).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The places, along a new first axis."""
        return _enumerated(self._num_events, self._batch_shape, np.int64, expand)


class _Choices(Family):
    """Distributions over vectors that are made of places with probabilities."""

    arg_constraints: Any = _CHOICE
    _categorical: Categorical

    def _build(self, values: dict[str, Any]) -> None:
        validate_args = values["validate_args"]
        vars(self).update({name: values[name] for name in self._settings})
        self._categorical = Categorical(values["probs"], values["logits"], validate_args)
        shape = self._categorical.param_shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    _param = property(lambda self: self._categorical._param)

    def _check_parameters(self) -> None:
        """They are those of the places."""
        if not self._categorical._validate_args:
            self._categorical._check_parameters()

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        settings = {name: getattr(self, name) for name in self._settings}
        choice = self._categorical.expand(batch_shape)
        return self._expanded(batch_shape, _instance, _categorical=choice, **settings)


def _one_hot(index: Tensor, count: int, like: Tensor) -> Tensor:
    return (index.unsqueeze(-1) == TORCH.arange(count)).to(like.dtype)


class OneHotCategorical(
    _Choices,
    parameters=_CHOICE,
    defaults=_EITHER,
    support=constraints.one_hot,
    mean="probs",
    variance=lambda probs: probs * (1 - probs),
    entropy=_choice_entropy,
):
    """One of several places, as a vector with a 1 there.

    Example:
      >>> import functrans.compat.torch as torch
      >>> OneHotCategorical(torch.tensor([1.0, 3.0])).mode
      tensor([0., 1.])
    """

    has_enumerate_support = True
    mode = property(lambda self: _one_hot(self._categorical.mode, self.event_shape[0], self.probs))

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values."""
        found = self._categorical.sample(sample_shape)
        return _one_hot(found, self.event_shape[0], self._param)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of values."""
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The rows of the unit matrix, along a new first axis."""
        n = self.event_shape[0]
        values: Any = TORCH.eye(n, dtype=self._param.dtype)
        values = values.reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, whose samples have the derivative of the probabilities.

    Example:
      >>> import functrans.compat.torch as torch
      >>> OneHotCategoricalStraightThrough(torch.tensor([0.0, 1.0])).rsample()
      tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values, with that derivative."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


def _multinomial_log_prob(x: Array, logits: Array) -> Array:
    is_free = (x == 0) & (logits == -np.inf)
    powers = fnp.where(is_free, 0.0, logits) * x
    counts = sp.gammaln(fnp.sum(x, axis=-1) + 1) - fnp.sum(sp.gammaln(x + 1), axis=-1)
    return counts + fnp.sum(powers, axis=-1)


def _draw_counts(shape: Shape, probs: Tensor, total_count: int) -> Tensor:
    def draw(rng: np.random.Generator, size: Any, p: np.ndarray) -> Any:
        p = p.astype(np.float64)
        return rng.multinomial(total_count, p / p.sum(-1, keepdims=True), size[:-1])

    return numbers(draw, shape, probs.dtype, probs)


class Multinomial(
    _Choices,
    parameters=_CHOICE,
    arguments="total_count probs logits",
    defaults={"total_count": 1, **_EITHER},
    support=constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    ),
    log_prob=_multinomial_log_prob,
    sample=_draw_counts,
    mean=lambda probs, total_count: probs * total_count,
    variance=lambda probs, total_count: total_count * probs * (1 - probs),
):
    """How often each place is chosen in ``total_count`` trials.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Multinomial(4, torch.tensor([1.0, 3.0])).mean
      tensor([1., 3.])
    """

    total_count: int

    def _build(self, values: dict[str, Any]) -> None:
        if not isinstance(values["total_count"], int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        super()._build(values)

    def entropy(self) -> Tensor:
        """By the entropy of one trial and the mean logarithms of the factorials."""
        n = self.total_count
        parts = Binomial(n, self.probs, validate_args=False)
        values = parts.enumerate_support(False)[1:]
        factorials = (parts.log_prob(values).exp() * (values + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + factorials


def _draw_log_choice(shape: Shape, logits: Tensor, temperature: Any) -> Tensor:
    gumbel = -(-clamp_probs(uniform(shape, logits)).log()).log()
    scores = (logits + gumbel) / temperature
    return scores - scores.logsumexp(-1, True)


def _relaxed_choice_log_prob(x: Array, logits: Array, temperature: Array) -> Array:
    count = logits.shape[-1]
    score = logits - x * temperature
    norm = math.lgamma(count) + (count - 1) * fnp.log(temperature)
    return fnp.sum(sp.log_softmax(score, axis=-1), axis=-1) + norm


class ExpRelaxedCategorical(
    _Choices,
    parameters=_CHOICE,
    arguments="temperature probs logits",
    defaults=_EITHER,
    support=constraints.real_vector,
    log_prob=_relaxed_choice_log_prob,
    rsample=_draw_log_choice,
):
    """Logarithms of the relaxed categorical distribution.

    Example:
      >>> import functrans.compat.torch as torch
      >>> ExpRelaxedCategorical(torch.tensor(1.0), torch.tensor([1.0, 3.0])).event_shape
      torch.Size([2])
    """
