"""Kullback and Leibler's divergence of distributions, by a table of pairs.

Here: ``kl_divergence``, ``register_kl``, and the pairs. Between continuous distributions of single
numbers it is ``-H(p) - E_p[log q]``, where ``log q`` is a sum of few functions whose means under
``p`` are known: ``_MEANS`` has these, ``_CROSS`` the sums, ``_BOUNDS`` where the divergence is
infinite.

Layer: ``compat``. Source: Gil, Alajaji and Linder, Renyi divergence measures for commonly used
univariate continuous distributions, Information Sciences 249 (2013); Penny, KL-divergences of
normal, gamma, Dirichlet and Wishart densities (2001).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.api import grad as gradient_of
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions.composed import Independent, TransformedDistribution
from functrans.compat.torch.distributions.continuous import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Uniform,
)
from functrans.compat.torch.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    ContinuousBernoulli,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from functrans.compat.torch.distributions.distribution import Distribution, ExponentialFamily
from functrans.compat.torch.distributions.multivariate import (
    Dirichlet,
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    low_rank_log_det,
    low_rank_mahalanobis,
    mahalanobis,
    solved,
)
from functrans.compat.torch.distributions.transformed import Gumbel, HalfNormal, Pareto
from functrans.compat.torch.distributions.utils import sum_rightmost
from functrans.scipy import special as sp

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Any]
Kind = type[Distribution]

_KL_REGISTRY: dict[tuple[Kind, Kind], Divergence] = {}
_FOUND: dict[tuple[Kind, Kind], Divergence | None] = {}


def register_kl(type_p: Kind, type_q: Kind) -> Callable[[Divergence], Divergence]:
    """A decorator that enters the divergence of two classes, and their subclasses.

    Raises:
      TypeError: they are no classes of distributions.

    Example:
      >>> class Mine(Normal):
      ...     pass
      >>> @register_kl(Mine, Mine)
      ... def _(p, q):
      ...     return abs(p.loc - q.loc)
      >>> kl_divergence(Mine(0.0, 1.0), Mine(3.0, 1.0))
      tensor(3.)
    """
    for kind, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def enter(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return enter


def _nearest(first: Kind, second: Kind, pairs: dict[tuple[Kind, Kind], Divergence]) -> Any:
    """The entry of the nearest class above the first one, of these the nearest of the second."""
    for above in first.__mro__:
        for other in second.__mro__:
            if (above, other) in pairs:
                return pairs[above, other]
    return None


def _dispatched(p: Kind, q: Kind) -> Divergence | None:
    found: Divergence | None = _nearest(p, q, _KL_REGISTRY)
    other = _nearest(q, p, {(b, a): function for (a, b), function in _KL_REGISTRY.items()})
    if found is not other:
        warnings.warn(
            f"Ambiguous kl_divergence({p.__name__}, {q.__name__}). Please register_kl("
            f"{p.__name__}, {q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return found


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The mean of ``log p - log q`` under ``p``, of shape ``batch_shape``.

    Raises:
      NotImplementedError: there is no entry for the two classes.

    Example:
      >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
      tensor(0.5)
    """
    kinds = (type(p), type(q))
    if kinds not in _FOUND:
        _FOUND[kinds] = _dispatched(*kinds)
    found = _FOUND[kinds]
    if found is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return found(p, q)


# single numbers ----------------------------------------------------------------------------------

_EULER = np.euler_gamma


def _uniform_log_mean(low: Any, high: Any) -> Any:
    return (sp.xlogy(high, high) - sp.xlogy(low, low)) / (high - low) - 1


_MEANS: dict[Kind, dict[str, Callable[..., Any]]] = {
    Beta: {
        "log": lambda p: (
            sp.digamma(p.concentration1) - sp.digamma(p.concentration1 + p.concentration0)
        ),
        "log1m": lambda p: (
            sp.digamma(p.concentration0) - sp.digamma(p.concentration1 + p.concentration0)
        ),
    },
    ContinuousBernoulli: {},
    Exponential: {
        "log": lambda p: -_EULER - fnp.log(p.rate),
        "exp": lambda p, t: p.rate / (p.rate - t),
    },
    Gamma: {
        "log": lambda p: sp.digamma(p.concentration) - fnp.log(p.rate),
        "exp": lambda p, t: (1 - t / p.rate) ** -p.concentration,
    },
    Gumbel: {"exp": lambda p, t: fnp.exp(p.loc * t + sp.gammaln(1 - p.scale * t))},
    Laplace: {},
    Normal: {
        "exp": lambda p, t: fnp.exp(p.loc * t + (p.scale * t) ** 2 / 2),
        "distance": lambda p, m: (
            math.sqrt(2 / math.pi) * p.scale * fnp.exp(-(((p.loc - m) / p.scale) ** 2) / 2)
            + (p.loc - m) * sp.erf((p.loc - m) / p.scale * math.sqrt(0.5))
        ),
    },
    Pareto: {"log": lambda p: fnp.log(p.scale) + 1 / p.alpha},
    Uniform: {
        "log": lambda p: _uniform_log_mean(p.low, p.high),
        "log1m": lambda p: _uniform_log_mean(1 - p.high, 1 - p.low),
        "exp": lambda p, t: (fnp.exp(t * p.high) - fnp.exp(t * p.low)) / (t * (p.high - p.low)),
    },
}
"""Means under a distribution: of ``log x``, ``log(1 - x)``, ``exp(t x)`` and ``abs(x - m)``."""


def _gamma_cross(p: Any, q: Any, log: Any) -> Tensor:
    a, rate = q.concentration, q.rate
    return a * fnp.log(rate) - sp.gammaln(a) + (a - 1) * log(p) - rate * p.mean


def _beta_cross(p: Any, q: Any, log: Any, log1m: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = sp.gammaln(a + b) - sp.gammaln(a) - sp.gammaln(b)
    return (a - 1) * log(p) + (b - 1) * log1m(p) + norm


def _normal_cross(p: Any, q: Any) -> Tensor:
    square = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return -0.5 * math.log(2 * math.pi) - fnp.log(q.scale) - square


def _gumbel_cross(p: Any, q: Any, exp: Any) -> Tensor:
    tail = fnp.exp(q.loc / q.scale) * exp(p, -1 / q.scale)
    return (q.loc - p.mean) / q.scale - tail - fnp.log(q.scale)


def _continuous_bernoulli_cross(p: Any, q: Any) -> Tensor:
    return p.mean * q.logits + q.log_normalizer + fnp.log1p(-q.probs)


_CROSS: dict[Kind, tuple[tuple[str, ...], Callable[..., Any]]] = {
    Beta: (("log", "log1m"), _beta_cross),
    ContinuousBernoulli: ((), _continuous_bernoulli_cross),
    Exponential: ((), lambda p, q: fnp.log(q.rate) - q.rate * p.mean),
    Gamma: (("log",), _gamma_cross),
    Gumbel: (("exp",), _gumbel_cross),
    Laplace: (
        ("distance",),
        lambda p, q, distance: -fnp.log(2 * q.scale) - distance(p, q.loc) / q.scale,
    ),
    Normal: ((), _normal_cross),
    Pareto: (
        ("log",),
        lambda p, q, log: fnp.log(q.alpha) + q.alpha * fnp.log(q.scale) - (q.alpha + 1) * log(p),
    ),
    Uniform: ((), lambda p, q: -fnp.log(q.high - q.low)),
}
"""Means of ``log q``: which means under ``p`` they need, beside ``p.mean`` and ``p.variance``."""

_BOUNDS: dict[Kind, Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda p: (0.0, 1.0),
    ContinuousBernoulli: lambda p: (0.0, 1.0),
    Exponential: lambda p: (0.0, math.inf),
    Gamma: lambda p: (0.0, math.inf),
    Gumbel: lambda p: (-math.inf, math.inf),
    Laplace: lambda p: (-math.inf, math.inf),
    Normal: lambda p: (-math.inf, math.inf),
    Pareto: lambda p: (p.scale, math.inf),
    Uniform: lambda p: (p.low, p.high),
}
"""Between which bounds the values lie."""


def _infinite(p: Any, q: Any) -> Tensor:
    """Infinity, of the shape of both."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    name = next(name for name in p.arg_constraints if name in vars(p) or hasattr(p, name))
    return getattr(p, name).new_full(shape, math.inf)


def _by_means(kind_p: Kind, kind_q: Kind) -> Divergence | None:
    """The divergence of two classes, if the means are known that it needs."""
    needed, cross = _CROSS[kind_q]
    means = _MEANS[kind_p]
    if any(name not in means for name in needed):
        return None

    def divergence(p: Any, q: Any) -> Any:
        found = -p.entropy() - cross(p, q, *[means[name] for name in needed])
        (p_low, p_high), (q_low, q_high) = _BOUNDS[kind_p](p), _BOUNDS[kind_q](q)
        is_outside: Any = (p_low < q_low) | (p_high > q_high)
        if isinstance(is_outside, bool):
            return found
        return fnp.where(is_outside, math.inf, found)

    return divergence


_UNBOUNDED = (Gumbel, Laplace, Normal)
_POSITIVE = (Exponential, Gamma, Pareto)
_WITHIN_ONE = (Beta, ContinuousBernoulli)


def _is_wider(p: Kind, q: Kind) -> bool:
    """Whether values of a class never lie all between the bounds of another one."""
    if p in _UNBOUNDED:
        return q not in _UNBOUNDED
    if p in _POSITIVE:
        return q in (*_WITHIN_ONE, Uniform) or (q is Pareto and p is not Pareto)
    return q is Pareto and p in _WITHIN_ONE


for _p in _MEANS:
    for _q in _CROSS:
        _pair = _infinite if _is_wider(_p, _q) else _by_means(_p, _q)
        if _pair is not None:
            _KL_REGISTRY[_p, _q] = _pair


# pairs of one class, and discrete ones -----------------------------------------------------------


def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - fnp.log(ratio))


def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * fnp.exp(-distance / p.scale) - fnp.log(ratio) - 1


def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - fnp.log(ratio)


def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    gammas = sp.gammaln(b) - sp.gammaln(a) + (a - b) * sp.digamma(a)
    return gammas + b * fnp.log(p.rate / q.rate) + (q.rate - p.rate) * (a / p.rate)


def _dirichlet(a: Any, b: Any) -> Any:
    """Of parameters along the last axis."""
    whole_a, whole_b = fnp.sum(a, axis=-1), fnp.sum(b, axis=-1)
    gammas = (
        sp.gammaln(whole_a) - sp.gammaln(whole_b) - fnp.sum(sp.gammaln(a) - sp.gammaln(b), axis=-1)
    )
    slopes = sp.digamma(a) - sp.digamma(whole_a)[..., None]
    return gammas + fnp.sum((a - b) * slopes, axis=-1)


def _both(p: Any) -> Any:
    return fnp.stack([p.concentration1, p.concentration0], axis=-1)


def _terms(weight: Any, difference: Any, other: Any) -> Any:
    """``weight * difference``, 0 where the weight is, infinite where the other one is 0."""
    found = fnp.where(other == 0, math.inf, weight * difference)
    return fnp.where(weight == 0, 0.0, found)


def _bernoulli(p: Any, q: Any) -> Tensor:
    one = _terms(p.probs, sp.softplus(-q.logits) - sp.softplus(-p.logits), q.probs)
    return one + _terms(1 - p.probs, sp.softplus(q.logits) - sp.softplus(p.logits), 1 - q.probs)


def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    each = p.probs * (p.logits - q.logits) + fnp.log1p(-p.probs) - fnp.log1p(-q.probs)
    return fnp.where(p.total_count > q.total_count, math.inf, p.total_count * each)


def _categorical(p: Any, q: Any) -> Tensor:
    return _terms(p.probs, p.logits - q.logits, q.probs).sum(-1)


def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    mine = p.log_normalizer + fnp.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + mine - q.log_normalizer - fnp.log1p(-q.probs)


def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence of transformed distributions needs the same transforms and event shapes"
        )
    return kl_divergence(p.base_dist, q.base_dist)


def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence of Independent distributions needs the same reinterpreted_batch_ndims"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _exponential_family(p: Any, q: Any) -> Tensor:
    """Bregman's divergence of the logarithm of the normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    params = [param.detach().requires_grad_() for param in p._natural_params]
    norm = p._log_normalizer(*params)
    slopes = gradient_of(norm.sum(), params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - norm
    for mine, its, slope in zip(params, q._natural_params, slopes, strict=True):
        term = (its - mine) * slope
        result = result - sum_rightmost(term, len(term.shape) - len(result.shape))
    return result


# normal vectors ----------------------------------------------------------------------------------


def _squares(matrix: Any) -> Any:
    return fnp.sum(matrix**2, axis=(-2, -1))


def _parts(p: Any) -> list[Any]:
    """Matrices whose outer products make the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    factor, diagonal = p._unbroadcasted
    return [
        factor,
        fnp.sqrt(diagonal)[..., None] * np.eye(diagonal.shape[-1], dtype=diagonal.dtype),
    ]


def _log_det(p: Any) -> Any:
    if isinstance(p, MultivariateNormal):
        return 2 * half_log_det(p._unbroadcasted_scale_tril)
    return low_rank_log_det(*p._unbroadcasted)


def _normal_vectors(p: Any, q: Any) -> Tensor:
    """By ``trace(Q^-1 P)``, the distance of the means and the determinants."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            "cannot be computed"
        )
    difference = q.loc - p.loc
    if isinstance(q, MultivariateNormal):
        factor = q._unbroadcasted_scale_tril
        trace = sum(_squares(solved(factor, part)) for part in _parts(p))
        distance = mahalanobis(factor, difference)
    else:
        factor, diagonal = _spread(q)
        trace = sum(
            fnp.sum(low_rank_mahalanobis(factor, diagonal, fnp.swapaxes(part, -1, -2)), axis=-1)
            for part in _parts(p)
        )
        factor, diagonal = q._unbroadcasted
        distance = low_rank_mahalanobis(factor, diagonal, difference)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


def _spread(q: Any) -> tuple[Any, Any]:
    """The matrices of low rank, with an axis for several vectors."""
    factor, diagonal = q._unbroadcasted
    return factor[..., None, :, :], diagonal[..., None, :]


_KL_REGISTRY.update(
    {
        (Bernoulli, Bernoulli): _bernoulli,
        (Bernoulli, Poisson): lambda p, q: -p.entropy() - (p.probs * fnp.log(q.rate) - q.rate),
        (Beta, Beta): lambda p, q: _dirichlet(_both(p), _both(q)),
        (Binomial, Binomial): _binomial,
        (Categorical, Categorical): _categorical,
        (Cauchy, Cauchy): lambda p, q: fnp.log(
            ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)
        ),
        (ContinuousBernoulli, ContinuousBernoulli): _continuous_bernoulli,
        (Dirichlet, Dirichlet): lambda p, q: _dirichlet(p.concentration, q.concentration),
        (Exponential, Exponential): _exponential,
        (ExponentialFamily, ExponentialFamily): _exponential_family,
        (Gamma, Gamma): _gamma,
        (Geometric, Geometric): lambda p, q: (
            -p.entropy() - fnp.log1p(-q.probs) / p.probs - q.logits
        ),
        (HalfNormal, HalfNormal): lambda p, q: _normal(p.base_dist, q.base_dist),
        (Independent, Independent): _independent,
        (Laplace, Laplace): _laplace,
        (LowRankMultivariateNormal, LowRankMultivariateNormal): _normal_vectors,
        (LowRankMultivariateNormal, MultivariateNormal): _normal_vectors,
        (MultivariateNormal, LowRankMultivariateNormal): _normal_vectors,
        (MultivariateNormal, MultivariateNormal): _normal_vectors,
        (Normal, Normal): _normal,
        (OneHotCategorical, OneHotCategorical): lambda p, q: _categorical(
            p._categorical, q._categorical
        ),
        (Poisson, Bernoulli): _infinite,
        (Poisson, Binomial): _infinite,
        (Poisson, Poisson): lambda p, q: (
            p.rate * (fnp.log(p.rate) - fnp.log(q.rate)) - (p.rate - q.rate)
        ),
        (TransformedDistribution, TransformedDistribution): _transformed,
    }
)
