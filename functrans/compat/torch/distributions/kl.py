"""Kullback and Leibler's divergence of distributions, by a table of pairs.

Here: ``kl_divergence``, ``register_kl``, and the pairs. Between continuous distributions of single
numbers it is ``-H(p) - E_p[log q]``, where ``log q`` is a sum of few functions whose means under
``p`` are known: ``_SINGLE`` has both.

Layer: ``compat``. Source: Gil, Alajaji and Linder, Renyi divergence measures for commonly used
univariate continuous distributions, Information Sciences 249 (2013); Penny, KL-divergences of
normal, gamma, Dirichlet and Wishart densities (2001).
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.api import grad as gradient_of
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import (
    composed,
    continuous,
    discrete,
    multivariate,
    transformed,
)
from functrans.compat.torch.distributions.distribution import Distribution, ExponentialFamily
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
      >>> from functrans.compat.torch.distributions import Normal
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


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of ``log p - log q`` under ``p``, of shape ``batch_shape``.

    Raises:
      NotImplementedError: there is no entry for the two classes.

    Example:
      >>> from functrans.compat.torch.distributions import Normal
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


def _uniform_log_mean(low: Any, high: Any) -> Any:
    return (sp.xlogy(high, high) - sp.xlogy(low, low)) / (high - low) - 1


def _gamma_cross(p: Any, q: Any, log: Any) -> Any:
    a, rate = q.concentration, q.rate
    return a * fnp.log(rate) - sp.gammaln(a) + (a - 1) * log(p) - rate * p.mean


def _beta_cross(p: Any, q: Any, log: Any, log1m: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    norm = sp.gammaln(a + b) - sp.gammaln(a) - sp.gammaln(b)
    return (a - 1) * log(p) + (b - 1) * log1m(p) + norm


def _normal_cross(p: Any, q: Any) -> Any:
    square = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return -0.5 * math.log(2 * math.pi) - fnp.log(q.scale) - square


def _gumbel_cross(p: Any, q: Any, exp: Any) -> Any:
    tail = fnp.exp(q.loc / q.scale) * exp(p, -1 / q.scale)
    return (q.loc - p.mean) / q.scale - tail - fnp.log(q.scale)


def _normal_distance(p: Any, m: Any) -> Any:
    z = (p.loc - m) / p.scale
    peak = math.sqrt(2 / math.pi) * p.scale * fnp.exp(-(z**2) / 2)
    return peak + (p.loc - m) * sp.erf(z * math.sqrt(0.5))


def _both(p: Any) -> Any:
    return fnp.stack([p.concentration1, p.concentration0], axis=-1)


_INF = math.inf
_SINGLE: dict[Kind, tuple[Any, Any, Callable[..., Any], dict[str, Callable[..., Any]]]] = {
    continuous.Beta: (0.0, 1.0, _beta_cross, {
        "log": lambda p: sp.digamma(p.concentration1) - sp.digamma(_both(p).sum(-1)),
        "log1m": lambda p: sp.digamma(p.concentration0) - sp.digamma(_both(p).sum(-1)),
    }),
    discrete.ContinuousBernoulli: (
        0.0, 1.0, lambda p, q: p.mean * q.logits + q.log_normalizer + fnp.log1p(-q.probs), {}
    ),
    continuous.Exponential: (0.0, _INF, lambda p, q: fnp.log(q.rate) - q.rate * p.mean, {
        "log": lambda p: -np.euler_gamma - fnp.log(p.rate),
        "exp": lambda p, t: p.rate / (p.rate - t),
    }),
    continuous.Gamma: (0.0, _INF, _gamma_cross, {
        "log": lambda p: sp.digamma(p.concentration) - fnp.log(p.rate),
        "exp": lambda p, t: (1 - t / p.rate) ** -p.concentration,
    }),
    transformed.Gumbel: (-_INF, _INF, _gumbel_cross, {
        "exp": lambda p, t: fnp.exp(p.loc * t + sp.gammaln(1 - p.scale * t)),
    }),
    continuous.Laplace: (
        -_INF, _INF,
        lambda p, q, distance: -fnp.log(2 * q.scale) - distance(p, q.loc) / q.scale, {},
    ),
    continuous.Normal: (-_INF, _INF, _normal_cross, {
        "exp": lambda p, t: fnp.exp(p.loc * t + (p.scale * t) ** 2 / 2),
        "distance": _normal_distance,
    }),
    transformed.Pareto: (
        "scale", _INF,
        lambda p, q, log: fnp.log(q.alpha) + q.alpha * fnp.log(q.scale) - (q.alpha + 1) * log(p),
        {"log": lambda p: fnp.log(p.scale) + 1 / p.alpha},
    ),
    continuous.Uniform: ("low", "high", lambda p, q: -fnp.log(q.high - q.low), {
        "log": lambda p: _uniform_log_mean(p.low, p.high),
        "log1m": lambda p: _uniform_log_mean(1 - p.high, 1 - p.low),
        "exp": lambda p, t: (fnp.exp(t * p.high) - fnp.exp(t * p.low)) / (t * (p.high - p.low)),
    }),
}  # fmt: skip
"""Between which bounds, numbers or attributes, the values of a class lie; the mean of its log
density under ``p``, by the means of ``p`` that its arguments name; its own means of ``log x``,
``log(1 - x)``, ``exp(t x)`` and ``abs(x - m)``."""


def _infinite(p: Any, q: Any) -> Tensor:
    """Infinity, of the shape of both."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    name = next(name for name in p.arg_constraints if name in vars(p) or hasattr(p, name))
    return getattr(p, name).new_full(shape, math.inf)


def _bounds(p: Any, kind: Kind) -> list[Any]:
    return [getattr(p, b) if isinstance(b, str) else b for b in _SINGLE[kind][:2]]


def _by_means(kind_p: Kind, kind_q: Kind) -> Divergence | None:
    """The divergence of two classes, if the means are known that it needs."""
    p_low, p_high, _, means = _SINGLE[kind_p]
    q_low, q_high, cross, _ = _SINGLE[kind_q]
    is_lower = p_low == -_INF != q_low or (p_low == 0 and q_low == "scale")
    if is_lower or p_high == _INF != q_high:  # never all between the other bounds
        return _infinite
    code = cross.__code__
    needed = code.co_varnames[2 : code.co_argcount]
    if not means.keys() >= set(needed):
        return None

    def divergence(p: Any, q: Any) -> Any:
        found = -p.entropy() - cross(p, q, *[means[name] for name in needed])
        (p_low, p_high), (q_low, q_high) = _bounds(p, kind_p), _bounds(q, kind_q)
        is_outside: Any = (p_low < q_low) | (p_high > q_high)
        return found if isinstance(is_outside, bool) else fnp.where(is_outside, _INF, found)

    return divergence


_KL_REGISTRY.update(
    {
        (p, q): divergence
        for p in _SINGLE
        for q in _SINGLE
        if (divergence := _by_means(p, q)) is not None
    }
)

# pairs of one class, and discrete ones -----------------------------------------------------------


def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - fnp.log(ratio))


def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * fnp.exp(-distance / p.scale) - fnp.log(ratio) - 1


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


def _parts(p: Any) -> list[Any]:
    """Matrices whose outer products make the covariance."""
    if isinstance(p, multivariate.MultivariateNormal):
        return [p._factor]
    unit = np.eye(p._diagonal.shape[-1], dtype=p._diagonal.dtype)
    return [p._factor, fnp.sqrt(p._diagonal)[..., None] * unit]


def _log_det(p: Any) -> Any:
    if isinstance(p, multivariate.MultivariateNormal):
        return 2 * multivariate.half_log_det(p._factor)
    return multivariate.low_rank_log_det(p._factor, p._diagonal)


def _normal_vectors(p: Any, q: Any) -> Tensor:
    """By ``trace(Q^-1 P)``, the distance of the means and the determinants."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            "cannot be computed"
        )
    difference, factor = q.loc - p.loc, q._factor
    if isinstance(q, multivariate.MultivariateNormal):
        trace = sum(fnp.sum(multivariate.solved(factor, x) ** 2, axis=(-2, -1)) for x in _parts(p))
        distance = multivariate.mahalanobis(factor, difference)
    else:
        wide = factor[..., None, :, :], q._diagonal[..., None, :]
        columns = [
            multivariate.low_rank_mahalanobis(*wide, fnp.swapaxes(x, -1, -2)) for x in _parts(p)
        ]
        trace = sum(fnp.sum(column, axis=-1) for column in columns)
        distance = multivariate.low_rank_mahalanobis(factor, q._diagonal, difference)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


_SAME: dict[Kind, Divergence] = {
    discrete.Bernoulli: _bernoulli,
    continuous.Beta: lambda p, q: _dirichlet(_both(p), _both(q)),
    discrete.Binomial: _binomial,
    discrete.Categorical: lambda p, q: _terms(p.probs, p.logits - q.logits, q.probs).sum(-1),
    continuous.Cauchy: lambda p, q: fnp.log(
        ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)
    ),
    discrete.ContinuousBernoulli: _continuous_bernoulli,
    multivariate.Dirichlet: lambda p, q: _dirichlet(p.concentration, q.concentration),
    continuous.Exponential: lambda p, q: q.rate / p.rate - 1 - fnp.log(q.rate / p.rate),
    ExponentialFamily: _exponential_family,
    continuous.Gamma: _gamma,
    discrete.Geometric: lambda p, q: -p.entropy() - fnp.log1p(-q.probs) / p.probs - q.logits,
    transformed.HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    composed.Independent: _independent,
    continuous.Laplace: _laplace,
    continuous.Normal: _normal,
    discrete.OneHotCategorical: lambda p, q: kl_divergence(p._categorical, q._categorical),
    discrete.Poisson: lambda p, q: p.rate * (fnp.log(p.rate) - fnp.log(q.rate)) - (p.rate - q.rate),
    composed.TransformedDistribution: _transformed,
}
_KL_REGISTRY.update({(kind, kind): divergence for kind, divergence in _SAME.items()})
_VECTORS = (multivariate.LowRankMultivariateNormal, multivariate.MultivariateNormal)
_KL_REGISTRY.update(dict.fromkeys(itertools.product(_VECTORS, _VECTORS), _normal_vectors))
_KL_REGISTRY[discrete.Poisson, discrete.Bernoulli] = _infinite
_KL_REGISTRY[discrete.Poisson, discrete.Binomial] = _infinite
_KL_REGISTRY[discrete.Bernoulli, discrete.Poisson] = lambda p, q: (
    -p.entropy() - (p.probs * fnp.log(q.rate) - q.rate)
)
