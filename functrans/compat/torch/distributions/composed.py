"""Distributions that are made of others, and the transform by a distribution.

Not here: families of transformed ones (``transformed``).

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.distributions``, for the behaviour.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from functrans.autograd.modes import no_grad
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints
from functrans.compat.torch.distributions.discrete import Categorical
from functrans.compat.torch.distributions.distribution import EMPTY, Distribution, Shape
from functrans.compat.torch.distributions.transforms import ComposeTransform, Transform
from functrans.compat.torch.distributions.utils import log_softmax, sum_rightmost

__all__ = [
    "CumulativeDistributionTransform", "Independent", "MixtureSameFamily",
    "TransformedDistribution",
]  # fmt: skip


def of_base(name: str) -> Any:
    """An attribute that is that of ``base_dist``."""
    return property(lambda self: getattr(self.base_dist, name))


class Independent(Distribution):
    """A distribution of which some axes of ``batch_shape`` belong to one value.

    Args:
      base_distribution: the distribution.
      reinterpreted_batch_ndims: how many of its last batch axes.
      validate_args: whether parameters and values are checked.

    Raises:
      ValueError: there are fewer.

    Example:
      >>> import functrans.compat.torch as torch
      >>> from functrans.compat.torch.distributions import Normal
      >>> Independent(Normal(torch.zeros(3, 2), 1.0), 1).event_shape
      torch.Size([2])
    """

    arg_constraints: Any = {}  # noqa: RUF012  # torch's

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        shape = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(shape)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        cut = len(shape) - reinterpreted_batch_ndims
        event = shape[cut:] + base_distribution.event_shape
        super().__init__(shape[:cut], event, validate_args)

    has_rsample = of_base("has_rsample")
    has_enumerate_support = property(
        lambda self: not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support
    )
    mean, mode, variance = map(of_base, ("mean", "mode", "variance"))

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the distribution, with those axes."""
        support, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, count) if count else support

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.expand(Size((*batch_shape, *self.event_shape[:count])))
        return self._expanded(
            batch_shape, _instance, base_dist=base, reinterpreted_batch_ndims=count
        )

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values that are differentiable in the parameters."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum over those axes."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The sum over those axes."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, where no axis was taken.

        Raises:
          NotImplementedError: one was.
        """
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented: use enumerate_support of "
                "base_dist and itertools.product"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of ``transforms[-1](...transforms[0](x))`` where ``x`` is distributed.

    Args:
      base_distribution: that of ``x``.
      transforms: a transform, or a list of them.
      validate_args: whether values are checked.

    Raises:
      ValueError: there are no such transforms, or they need more axes.

    Example:
      >>> import functrans.compat.torch as torch
      >>> from functrans.compat.torch.distributions import ExpTransform, Normal
      >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(torch.tensor(1.0))
      tensor(-0.9189)
    """

    arg_constraints: Any = {}  # noqa: RUF012  # torch's
    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(parts, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(part, Transform) for part in parts):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = parts
        base = base_distribution
        shape, base_dim = base.batch_shape + base.event_shape, len(base.event_shape)
        whole = ComposeTransform(parts)
        before, after = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < before:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{before}, but got {Size(shape)}."
            )
        result = Size(whole.forward_shape(shape))
        wanted = Size(whole.inverse_shape(result))
        if tuple(wanted) != tuple(shape):
            base = base.expand(wanted[: len(wanted) - base_dim])
        if before > base_dim:
            base = Independent(base, before - base_dim)
        self.base_dist = base
        cut = len(result) - max(after, base_dim + after - before)
        Distribution.__init__(self, result[:cut], result[cut:], validate_args)

    has_rsample = of_base("has_rsample")

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """Where the last transform leads."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        shape: Any = Size((*batch_shape, *self.event_shape))
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return self._expanded(batch_shape, _instance, base_dist=base, transforms=self.transforms)

    def _forward(self, x: Any) -> Tensor:
        return functools.reduce(lambda value, transform: transform(value), self.transforms, x)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values."""
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values that are differentiable in the parameters."""
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """That of the argument of the transforms, less the logarithm of their Jacobian."""
        if self._validate_args:
            self._validate_sample(value)
        dim, y = len(self.event_shape), value
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x: Any = transform.inv(y)
            dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(slope, dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, dim - len(self.base_dist.event_shape))

    def _upwards(self, probability: Any) -> Any:
        """``p``, or ``1 - p`` where the transforms decrease."""
        sign: Any = functools.reduce(operator.mul, [t.sign for t in self.transforms], 1)
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        x: Any = value
        for transform in reversed(self.transforms):
            x = transform.inv(x)
        if self._validate_args:
            self.base_dist._validate_sample(x)
        return self._upwards(self.base_dist.cdf(x))

    def icdf(self, value: Tensor) -> Tensor:
        """The value of a given cumulative probability."""
        return self._forward(self.base_dist.icdf(self._upwards(value)))


class CumulativeDistributionTransform(
    Transform,
    domain=property(lambda self: self.distribution.support),
    codomain=constraints.unit_interval,
    sign=1,
    call=lambda self, x: self.distribution.cdf(x),
    inverse=lambda self, y: self.distribution.icdf(y),
    log_slope=lambda self, x, y: self.distribution.log_prob(x),
    settings="distribution",
):
    """The transform of values to their cumulative probability.

    Example:
      >>> import functrans.compat.torch as torch
      >>> from functrans.compat.torch.distributions import Normal
      >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(torch.tensor(0.0))
      tensor(0.5)
    """

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution


class MixtureSameFamily(Distribution):
    """Mixtures of the distributions along the last axis of a batch.

    Args:
      mixture_distribution: of the numbers of the components.
      component_distribution: the components.
      validate_args: whether values are checked.

    Raises:
      ValueError: they are no distributions, or their shapes do not fit.

    Example:
      >>> import functrans.compat.torch as torch
      >>> from functrans.compat.torch.distributions import Normal
      >>> weights = Categorical(torch.tensor([0.25, 0.75]))
      >>> MixtureSameFamily(weights, Normal(torch.tensor([0.0, 4.0]), 1.0)).mean
      tensor(3.)
    """

    arg_constraints: Any = {}  # noqa: RUF012  # torch's

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        mixed, parts = mixture_distribution.batch_shape, component_distribution.batch_shape
        if any(i != j and 1 not in (i, j) for i, j in zip(mixed[::-1], parts[:-1][::-1])):  # noqa: B905  # the shorter one counts
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                f"`component_distribution.batch_shape`({parts[:-1]})"
            )
        count = mixture_distribution.param_shape[-1]
        if count != parts[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({parts[-1]})"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        super().__init__(parts[:-1], component_distribution.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    _mixture_distribution = property(lambda self: self.mixture_distribution)
    _component_distribution = property(lambda self: self.component_distribution)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        count = self.component_distribution.batch_shape[-1]
        parts = self.component_distribution.expand(Size((*batch_shape, count)))
        mixed = self.mixture_distribution.expand(batch_shape)
        return self._expanded(
            batch_shape, _instance, mixture_distribution=mixed, component_distribution=parts
        )

    def _weighted(self, values: Any) -> Tensor:
        """The mean over the components."""
        dim = len(self.event_shape)
        weights = self.mixture_distribution.probs
        weights = weights.reshape(*weights.shape, *(1,) * dim)
        return (weights * values).sum(-1 - dim)

    mean = property(lambda self: self._weighted(self.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        parts = self.component_distribution
        centre = self._spread(self.mean)
        return self._weighted(parts.variance) + self._weighted((parts.mean - centre) ** 2)

    def _spread(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self.event_shape))

    def cdf(self, x: Tensor) -> Tensor:
        """The probability of at most a value."""
        found = self.component_distribution.cdf(self._spread(x))
        return (found * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """The logarithm of the density at values."""
        if self._validate_args:
            self._validate_sample(x)
        found = self.component_distribution.log_prob(self._spread(x))
        return (found + log_softmax(self.mixture_distribution.logits)).logsumexp(-1)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values."""
        with no_grad():
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            axis = len(sample_shape) + len(self.batch_shape)
            index = chosen.reshape(*chosen.shape, 1, *(1,) * len(self.event_shape))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return values.gather(axis, index).squeeze(axis)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n  {self.mixture_distribution},\n"
            f"  {self.component_distribution})"
        )
