"""Distributions of vectors and matrices.

Not here: choices (``discrete``).

Layer: ``compat``. Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices
based on vines and extended onion method, J. Multivariate Analysis 100 (2009); Odell and Feiveson, A
numerical procedure to generate a sample covariance matrix, JASA 61 (1966); Anderson, An
Introduction to Multivariate Statistical Analysis (2003); Rasmussen and Williams, Gaussian Processes
for Machine Learning, section A.3, for matrices of low rank.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.composites import composite
from functrans.autograd.methods.linear_algebra import LINALG
from functrans.autograd.methods.rows import known
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints
from functrans.compat.torch.distributions.distribution import (
    EMPTY,
    Distribution,
    ExponentialFamily,
    Family,
    Shape,
)
from functrans.compat.torch.distributions.sampling import dirichlet, normal, standard_gamma
from functrans.compat.torch.distributions.utils import lazy_property
from functrans.core.values import Array
from functrans.primitives import torch_elementwise as te
from functrans.scipy import linalg
from functrans.scipy import special as sp

__all__ = [
    "Dirichlet", "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart",
]  # fmt: skip

_LOG_2PI = math.log(2 * math.pi)


def _dirichlet_log_prob(x: Array, concentration: Array) -> Array:
    a = concentration
    norm = sp.gammaln(fnp.sum(a, axis=-1)) - fnp.sum(sp.gammaln(a), axis=-1)
    return fnp.sum(te.xlogy(a - 1, x), axis=-1) + norm


def _dirichlet_mode(concentration: Array) -> Array:
    """The first place where all parameters are below 1."""
    above = te.clamp_min(concentration - 1, 0.0)
    is_low = fnp.all(concentration < 1, axis=-1, keepdims=True)
    total = fnp.where(is_low, 1.0, fnp.sum(above, axis=-1, keepdims=True))
    first = (np.arange(concentration.shape[-1]) == 0).astype(concentration.dtype)
    return fnp.where(is_low, first, above / total)


def _dirichlet_variance(concentration: Array) -> Array:
    a, total = concentration, fnp.sum(concentration, axis=-1, keepdims=True)
    return a * (total - a) / (total**2 * (total + 1))


def _dirichlet_entropy(concentration: Array) -> Array:
    a, k = concentration, concentration.shape[-1]
    total = fnp.sum(a, axis=-1)
    return (
        fnp.sum(sp.gammaln(a), axis=-1)
        - sp.gammaln(total)
        - (k - total) * sp.digamma(total)
        - fnp.sum((a - 1) * sp.digamma(a), axis=-1)
    )


class Dirichlet(
    Family,
    ExponentialFamily,
    parameters={"concentration": constraints.independent(constraints.positive, 1)},
    shapes=lambda self, shape: (shape[:-1], shape[-1:]),
    support=constraints.simplex,
    log_prob=_dirichlet_log_prob,
    rsample=lambda shape, concentration: dirichlet(shape, concentration),
    mean=lambda concentration: concentration / fnp.sum(concentration, axis=-1, keepdims=True),
    mode=_dirichlet_mode,
    variance=_dirichlet_variance,
    entropy=_dirichlet_entropy,
):
    """Probabilities.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
      tensor([0.25, 0.75])
    """

    def _prepared(self, values: dict[str, Any]) -> dict[str, Tensor]:
        found = super()._prepared(values)
        if not found["concentration"].shape:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        return found


# matrices ----------------------------------------------------------------------------------------


def _mT(x: Array) -> Array:  # noqa: N802  # as of tensors
    return fnp.swapaxes(x, -1, -2)


def _diagonal(x: Array) -> Array:
    return fnp.diagonal(x, axis1=-2, axis2=-1)


def solved(factor: Array, x: Array) -> Array:
    """``factor**-1 @ x`` of a lower triangle."""
    lead = np.broadcast_shapes(factor.shape[:-2], x.shape[:-2])
    factor = fnp.broadcast_to(factor, (*lead, *factor.shape[-2:]))
    return linalg.solve_triangular(factor, fnp.broadcast_to(x, (*lead, *x.shape[-2:])), lower=True)


def mahalanobis(factor: Array, x: Array) -> Array:
    """``|factor**-1 x|**2``."""
    return fnp.sum(solved(factor, x[..., None])[..., 0] ** 2, axis=-1)


def _times(matrix: Any, x: Any) -> Any:
    return fnp.matmul(matrix, x[..., None])[..., 0]


def half_log_det(factor: Array) -> Array:
    """The logarithm of the determinant of a lower triangle."""
    return fnp.sum(fnp.log(_diagonal(factor)), axis=-1)


def _unit(x: Array) -> Array:
    return np.eye(x.shape[-1], dtype=x.dtype)


def _factor_of_inverse(flipped: Array) -> Array:
    """The Cholesky factor of a matrix, from that of its flipped inverse."""
    return solved(_mT(fnp.flip(flipped, (-2, -1))), _unit(flipped))


def _inverse(factor: Array) -> Array:
    inverse = solved(factor, _unit(factor))
    return fnp.matmul(_mT(inverse), inverse)


_MATRICES: dict[str, Callable[[Any], Any]] = {
    "scale_tril": lambda factor: factor,
    "covariance_matrix": lambda factor: fnp.matmul(factor, _mT(factor)),
    "precision_matrix": _inverse,
}
"""Name of a parameter to what it is of the factor."""

_DEFINITE = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


_FORMS = dict.fromkeys(_MATRICES)


def _of_factor(name: str) -> Any:
    """The property of a matrix that was not given."""

    def matrix(self: Any) -> Any:
        found: Any = composite("Matrix", _MATRICES[name], self._unbroadcasted_scale_tril)
        return found.expand(*self._batch_shape, *found.shape[-2:])

    matrix.__name__ = name
    return lazy_property(matrix)


class _ByMatrix(Family):
    """A distribution with a vector or number and a positive definite matrix, in one of three ways.

    Attributes:
      _unbroadcasted_scale_tril: the Cholesky factor of the matrix.
    """

    _unbroadcasted_scale_tril: Any
    _kept = ("_unbroadcasted_scale_tril",)
    _wrong_count: type[Exception] = ValueError
    _factor = property(lambda self: self._unbroadcasted_scale_tril)
    scale_tril, covariance_matrix, precision_matrix = map(_of_factor, _MATRICES)

    def _build(self, values: dict[str, Any]) -> None:
        given = [name for name in _MATRICES if values[name] is not None]
        if len(given) != 1:
            raise self._wrong_count(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        [name] = given
        matrix = values[name]
        if len(matrix.shape) < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch, event = self._keep(values, matrix)
        setattr(self, name, matrix.expand(*batch, -1, -1))
        Distribution.__init__(self, batch, event, values["validate_args"])
        if name == "covariance_matrix":
            matrix = LINALG["cholesky"](matrix)
        elif name == "precision_matrix":
            flipped = LINALG["cholesky"](matrix.flip(-2, -1))
            matrix = composite("FactorOfInverse", _factor_of_inverse, flipped)
        self._unbroadcasted_scale_tril = matrix

    def _keep(self, values: dict[str, Any], matrix: Any) -> tuple[Shape, Shape]:
        """Keep the other parameter; returns ``batch_shape`` and ``event_shape``."""
        raise NotImplementedError


def _normal_log_prob(x: Array, loc: Array, _factor: Array) -> Array:
    norm = 0.5 * loc.shape[-1] * _LOG_2PI + half_log_det(_factor)
    return -0.5 * mahalanobis(_factor, x - loc) - norm


def _normal_entropy(loc: Array, _factor: Array) -> Array:
    constant = 0.5 * loc.shape[-1] * (1 + _LOG_2PI)
    return fnp.broadcast_to(half_log_det(_factor) + constant, loc.shape[:-1])


class MultivariateNormal(
    _ByMatrix,
    parameters={"loc": constraints.real_vector, **_DEFINITE},
    defaults=_FORMS,
    shapes=lambda self, shape: (shape[:-1], shape[-1:]),
    support=constraints.real_vector,
    log_prob=_normal_log_prob,
    rsample=lambda shape, loc, _factor: loc + _times(_factor, normal(shape, loc)),
    mean="loc",
    mode="loc",
    variance=lambda loc, _factor: fnp.broadcast_to(fnp.sum(_factor**2, axis=-1), loc.shape),
    entropy=_normal_entropy,
):
    """Normal vectors.

    Args:
      loc: their mean.
      covariance_matrix: their covariance.
      precision_matrix: its inverse.
      scale_tril: its Cholesky factor; one of the three.
      validate_args: whether parameters and values are checked.

    Raises:
      ValueError: shapes do not fit; another number of matrices is given.

    Example:
      >>> import functrans.compat.torch as torch
      >>> MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 1.0], [1.0, 2.0]])).variance
      tensor([2., 2.])
    """

    def _build(self, values: dict[str, Any]) -> None:
        if not values["loc"].shape:
            raise ValueError("loc must be at least one-dimensional.")
        super()._build(values)

    def _keep(self, values: dict[str, Any], matrix: Any) -> tuple[Shape, Shape]:
        loc = values["loc"]
        batch = np.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        return batch, loc.shape[-1:]


def capacitance(factor: Array, diagonal: Array) -> Array:
    """The Cholesky factor of ``I + W^T D^-1 W``."""
    return fnp.linalg.cholesky(
        fnp.matmul(_mT(factor) / diagonal[..., None, :], factor) + _unit(factor)
    )


def low_rank_log_det(factor: Array, diagonal: Array) -> Array:
    """``log |W W^T + D|``."""
    return 2 * half_log_det(capacitance(factor, diagonal)) + fnp.sum(fnp.log(diagonal), axis=-1)


def low_rank_mahalanobis(factor: Array, diagonal: Array, x: Array) -> Array:
    """``x^T (W W^T + D)^-1 x``."""
    inner = _times(_mT(factor) / diagonal[..., None, :], x)
    return fnp.sum(x**2 / diagonal, axis=-1) - mahalanobis(capacitance(factor, diagonal), inner)


def _low_rank_log_prob(x: Array, loc: Array, _factor: Array, _diagonal: Array) -> Array:
    distance = low_rank_mahalanobis(_factor, _diagonal, x - loc)
    return -0.5 * (loc.shape[-1] * _LOG_2PI + low_rank_log_det(_factor, _diagonal) + distance)


def _low_rank_entropy(loc: Array, _factor: Array, _diagonal: Array) -> Array:
    determinant = low_rank_log_det(_factor, _diagonal)
    return fnp.broadcast_to(0.5 * (determinant + loc.shape[-1] * (1 + _LOG_2PI)), loc.shape[:-1])


def _draw_low_rank(shape: Shape, loc: Tensor, _factor: Tensor, _diagonal: Tensor) -> Tensor:
    few = normal((*shape[:-1], _factor.shape[-1]), loc)
    return loc + _times(_factor, few) + _diagonal.sqrt() * normal(shape, loc)


def _low_rank_factor(factor: Array, diagonal: Array) -> Array:
    root = fnp.sqrt(diagonal)[..., None]
    scaled = factor / root
    inner = fnp.matmul(scaled, _mT(scaled)) + _unit(diagonal)
    return root * fnp.linalg.cholesky(inner)


def _low_rank_precision(factor: Array, diagonal: Array) -> Array:
    """Woodbury's identity."""
    inner = solved(capacitance(factor, diagonal), _mT(factor) / diagonal[..., None, :])
    unit = _unit(diagonal)
    return unit / diagonal[..., None] - fnp.matmul(_mT(inner), inner)


class LowRankMultivariateNormal(
    Family,
    parameters={
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    },
    shapes=lambda self, shape: (shape[:-1], shape[-1:]),
    support=constraints.real_vector,
    log_prob=_low_rank_log_prob,
    rsample=_draw_low_rank,
    mean="loc",
    mode="loc",
    variance=lambda loc, _factor, _diagonal: fnp.broadcast_to(
        fnp.sum(_factor**2, axis=-1) + _diagonal, loc.shape
    ),
    entropy=_low_rank_entropy,
):
    """Normal vectors with the covariance ``W W^T + D`` of low rank and a diagonal.

    Args:
      loc: their mean.
      cov_factor: ``W``, with few columns.
      cov_diag: the diagonal of ``D``.
      validate_args: whether parameters and values are checked.

    Raises:
      ValueError: shapes do not fit.

    Example:
      >>> import functrans.compat.torch as torch
      >>> vectors = LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2))
      >>> vectors.covariance_matrix
      tensor([[2., 1.],
              [1., 2.]])
    """

    cov_factor: Tensor
    cov_diag: Tensor
    _unbroadcasted: tuple[Any, Any]
    _kept = ("_unbroadcasted",)
    _factor = property(lambda self: self._unbroadcasted[0])
    _diagonal = property(lambda self: self._unbroadcasted[1])
    scale_tril = property(lambda self: self._of(_low_rank_factor))
    covariance_matrix = property(
        lambda self: self._of(lambda w, d: fnp.matmul(w, _mT(w)) + d[..., None] * _unit(d))
    )
    precision_matrix = property(lambda self: self._of(_low_rank_precision))

    def _build(self, values: dict[str, Any]) -> None:
        loc, factor, diagonal = (values[name] for name in self._parameter_names)
        if not loc.shape:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if len(factor.shape) < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if diagonal.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = np.broadcast_shapes(loc.shape[:-1], factor.shape[:-2], diagonal.shape[:-1])
        except ValueError:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {factor.shape}, cov_diag "
                f"{diagonal.shape}"
            ) from None
        self._unbroadcasted = (factor, diagonal)
        self.loc, self.cov_diag = loc.expand(*batch, -1), diagonal.expand(*batch, -1)
        self.cov_factor = factor.expand(*batch, -1, -1)
        Distribution.__init__(self, batch, event, values["validate_args"])

    def _of(self, formula: Callable[..., Any]) -> Tensor:
        found: Any = composite("LowRank", formula, *self._unbroadcasted)
        return found.expand(*self.loc.shape, -1)


def _multi(of: Callable[..., Any], x: Array, n: int) -> Array:
    """The sum of a function at ``x, x - 1/2, ...``."""
    return fnp.sum(of(x[..., None] - np.arange(n).astype(x.dtype) / 2), axis=-1)


def multi_log_gamma(x: Array, n: int) -> Array:
    """The logarithm of the gamma function of matrices."""
    return _multi(sp.gammaln, x, n) + n * (n - 1) / 4 * math.log(math.pi)


def _wishart_log_prob(x: Array, df: Array, _factor: Array) -> Array:
    n = _factor.shape[-1]
    trace = fnp.sum(_diagonal(solved(_factor, _mT(solved(_factor, x)))), axis=-1)
    return (
        -df * (n * math.log(2) / 2 + half_log_det(_factor))
        - multi_log_gamma(df / 2, n)
        + (df - n - 1) / 2 * fnp.linalg.slogdet(x)[1]
        - trace / 2
    )


def _wishart_log_normalizer(x: Array, y: Array) -> Array:
    n = x.shape[-1]
    a = y + (n + 1) / 2
    return a * (n * math.log(2) - fnp.linalg.slogdet(-2 * x)[1]) + multi_log_gamma(a, n)


def _wishart_entropy(df: Array, _factor: Array) -> Array:
    n = _factor.shape[-1]
    return (
        (n + 1) * (n * math.log(2) / 2 + half_log_det(_factor))
        + multi_log_gamma(df / 2, n)
        - (df - n - 1) / 2 * _multi(sp.digamma, df / 2, n)
        + df * n / 2
    )


def _wishart_mode(df: Array, covariance_matrix: Array) -> Array:
    """NaN where there is none."""
    factor = df - covariance_matrix.shape[-1] - 1
    return fnp.where(factor > 0, factor, np.nan)[..., None, None] * covariance_matrix


def _wishart_variance(df: Array, covariance_matrix: Array) -> Array:
    d = _diagonal(covariance_matrix)
    return df[..., None, None] * (covariance_matrix**2 + d[..., :, None] * d[..., None, :])


class Wishart(
    _ByMatrix,
    ExponentialFamily,
    parameters={
        **_DEFINITE,
        "df": lambda self: constraints.greater_than(self.event_shape[-1] - 1),
    },
    arguments="df covariance_matrix precision_matrix scale_tril",
    defaults=_FORMS,
    shapes=lambda self, shape: (shape, self._factor.shape[-2:]),
    support=constraints.positive_definite,
    log_prob=_wishart_log_prob,
    mean=lambda df, covariance_matrix: df[..., None, None] * covariance_matrix,
    mode=_wishart_mode,
    variance=_wishart_variance,
    entropy=_wishart_entropy,
):
    """Sums of the outer products of ``df`` normal vectors.

    Args:
      df: above the dimension less 1.
      covariance_matrix: of the vectors.
      precision_matrix: its inverse.
      scale_tril: its Cholesky factor; one of the three.
      validate_args: whether parameters and values are checked.

    Raises:
      AssertionError: another number of matrices is given.
      ValueError: ``df`` is too small; the matrix is none.

    Example:
      >>> import functrans.compat.torch as torch
      >>> Wishart(torch.tensor(3.0), torch.eye(2)).mean
      tensor([[3., 0.],
              [0., 3.]])
    """

    has_rsample = True
    _wrong_count = AssertionError

    def _keep(self, values: dict[str, Any], matrix: Any) -> tuple[Shape, Shape]:
        df, n = values["df"], matrix.shape[-1]
        given: Any = df if isinstance(df, Tensor) else matrix.new_full((), df)
        batch = np.broadcast_shapes(matrix.shape[:-2], given.shape)
        self.df = given.expand(batch)
        found = known(self.df)
        if found is not None and (found <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if found is not None and (found < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim.",
                stacklevel=5,
            )
        return batch, (n, n)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return composite("WishartLogNormalizer", _wishart_log_normalizer, *natural_params)

    def rsample(self, sample_shape: Shape = EMPTY, max_try_correction: int | None = None) -> Tensor:
        """Random matrices that are differentiable in the parameters (Bartlett's decomposition).

        Args:
          sample_shape: how many.
          max_try_correction: accepted; matrices that are singular by rounding are given as such.
        """
        n = self._event_shape[-1]
        lead = (*sample_shape, *self._batch_shape)
        dfs = (self.df[..., None] - np.arange(n).astype(self.df.dtype)) / 2
        square = 2 * standard_gamma((*lead, n), dfs)
        eps = float(np.finfo(self.df.dtype).eps)
        diagonal = square.sqrt().clamp(eps).diag_embed()
        noise = normal((*lead, n, n), self.df).tril(-1) + diagonal
        factor: Tensor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT


def _lkj_log_prob(x: Array, concentration: Array) -> Array:
    n = x.shape[-1]
    order = 2 * (concentration[..., None] - 1) + np.arange(n - 2, -1, -1).astype(x.dtype)
    alpha = concentration + 0.5 * (n - 1)
    norm = 0.5 * (n - 1) * math.log(math.pi) + multi_log_gamma(alpha - 0.5, n - 1)
    power = fnp.sum(order * fnp.log(_diagonal(x)[..., 1:]), axis=-1)
    return power - norm + (n - 1) * sp.gammaln(alpha)


def _draw_lkj(shape: Shape, concentration: Any) -> Tensor:
    """Factors by the onion method: row after row on spheres of random radius."""
    *lead, n, _ = shape
    c = concentration
    offset = np.concatenate([[0], np.arange(n - 1)]).astype(c.dtype) / 2
    first = c.new_zeros((*c.shape, n)) + (offset + 0.5)
    second = (c + 0.5 * (n - 2))[..., None] - offset
    square = dirichlet((*lead, n, 2), fnp.stack([first, second], axis=-1))[..., 0]
    direction = normal(shape, c).tril(-1)
    length = (direction**2).sum(-1, True).sqrt()
    unit = direction / fnp.where(length > 0, length, 1.0)
    rows = square.sqrt()[..., None] * unit
    rest = (1 - (rows**2).sum(-1)).clamp(float(np.finfo(c.dtype).tiny))
    return rows + rest.sqrt().diag_embed()


class LKJCholesky(
    Family,
    parameters={"concentration": constraints.positive},
    arguments="dim concentration",
    defaults={"concentration": 1.0},
    support=constraints.corr_cholesky,
    shapes=lambda self, shape: (shape, (self.dim, self.dim)),
    log_prob=_lkj_log_prob,
    sample=_draw_lkj,
):
    """Cholesky factors of correlation matrices of density in proportion to ``det**(c - 1)``.

    Args:
      dim: number of rows.
      concentration: ``c``.
      validate_args: whether parameters and values are checked.

    Raises:
      ValueError: there is one row.

    Example:
      >>> LKJCholesky(3, 0.5).sample().shape
      torch.Size([3, 3])
    """

    dim: int

    def _build(self, values: dict[str, Any]) -> None:
        if values["dim"] < 2:
            raise ValueError(
                "Expected dim to be an integer greater than or equal to 2. Found "
                f"dim={values['dim']}."
            )
        super()._build(values)
