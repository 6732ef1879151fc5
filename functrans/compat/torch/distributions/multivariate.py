"""Distributions of vectors and matrices.

Here: ``Dirichlet``, the normal distributions of vectors, ``Wishart``, ``LKJCholesky``. Not here:
choices (``discrete``).

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
from functrans.autograd.modes import no_grad
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints
from functrans.compat.torch.distributions.distribution import (
    EMPTY,
    Distribution,
    ExponentialFamily,
    Family,
    Shape,
    value_beside,
)
from functrans.compat.torch.distributions.sampling import dirichlet, normal, standard_gamma
from functrans.compat.torch.distributions.utils import Value, broadcast_all, lazy_property
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
    a = concentration
    total = fnp.sum(a, axis=-1, keepdims=True)
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

    concentration: Any

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        vars(self).update(parameters)
        shape = self.concentration.shape
        if not shape:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        new = self._get_checked_instance(Dirichlet, _instance)
        shape = (*batch_shape, *self._event_shape)
        new._set({"concentration": self.concentration.expand(*shape)}, False)
        new._validate_args = self._validate_args
        return new


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


_MATRICES: dict[str, Callable[[Any], Any]] = {
    "scale_tril": lambda factor: factor,
    "covariance_matrix": lambda factor: fnp.matmul(factor, _mT(factor)),
    "precision_matrix": lambda factor: _inverse(factor),
}
"""Name of a parameter to what it is of the factor."""


def _inverse(factor: Array) -> Array:
    inverse = solved(factor, _unit(factor))
    return fnp.matmul(_mT(inverse), inverse)


class _ByMatrix(Distribution):
    """A distribution with a positive definite matrix, given in one of three ways.

    Attributes:
      _unbroadcasted_scale_tril: its Cholesky factor.
    """

    _unbroadcasted_scale_tril: Any

    def _keep(self, error: type[Exception], **matrices: Tensor | None) -> tuple[str, Any]:
        """The matrix that was given.

        Raises:
          ValueError: it is no matrix.
        """
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise error(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        [(name, matrix)] = given
        if len(matrix.shape) < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        return name, matrix

    def _keep_factor(self, name: str, matrix: Any) -> None:
        if name == "covariance_matrix":
            matrix = LINALG["cholesky"](matrix)
        elif name == "precision_matrix":
            flipped = LINALG["cholesky"](matrix.flip(-2, -1))
            matrix = composite("FactorOfInverse", _factor_of_inverse, flipped)
        self._unbroadcasted_scale_tril = matrix

    def _matrix(self, name: str) -> Tensor:
        found: Any = composite("Matrix", _MATRICES[name], self._unbroadcasted_scale_tril)
        return found.expand(*self._batch_shape, *found.shape[-2:])

    scale_tril: Any = lazy_property(lambda self: self._matrix("scale_tril"))
    covariance_matrix: Any = lazy_property(lambda self: self._matrix("covariance_matrix"))
    precision_matrix: Any = lazy_property(lambda self: self._matrix("precision_matrix"))

    def _expanded(self, new: Any, batch_shape: Shape, **vectors: Any) -> Any:
        """An empty distribution with expanded parameters."""
        n = self._event_shape[-1]
        vars(new).update(vectors, _unbroadcasted_scale_tril=self._unbroadcasted_scale_tril)
        for name in _MATRICES:
            if name in vars(self):
                vars(new)[name] = getattr(self, name).expand(*batch_shape, n, n)
        Distribution.__init__(new, batch_shape, self._event_shape, False)
        new._validate_args = self._validate_args
        return new


for _name in _MATRICES:
    vars(_ByMatrix)[_name].__name__ = _name

_DEFINITE = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def _normal_log_prob(x: Array, loc: Array, factor: Array) -> Array:
    norm = 0.5 * loc.shape[-1] * _LOG_2PI + half_log_det(factor)
    return -0.5 * mahalanobis(factor, x - loc) - norm


class MultivariateNormal(_ByMatrix):
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

    arg_constraints: Any = {"loc": constraints.real_vector, **_DEFINITE}  # noqa: RUF012  # torch's
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not loc.shape:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._keep(
            ValueError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch = np.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc: Any = loc.expand(*batch, -1)
        setattr(self, name, matrix.expand(*batch, -1, -1))
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._keep_factor(name, matrix)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        new = self._get_checked_instance(MultivariateNormal, _instance)
        loc = self.loc.expand(*batch_shape, *self._event_shape)
        return self._expanded(new, batch_shape, loc=loc)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        square = (self._unbroadcasted_scale_tril**2).sum(-1)
        return square.expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random vectors that are differentiable in the parameters."""
        noise = normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + _times(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at vectors."""
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        value = value_beside(value, (self.loc,))
        return composite("MultivariateNormalLogProb", _normal_log_prob, value, self.loc, factor)

    def entropy(self) -> Tensor:
        """Shannon's entropy, in nats."""
        constant = 0.5 * self._event_shape[0] * (1 + _LOG_2PI)
        return (half_log_det(self._unbroadcasted_scale_tril) + constant).expand(*self._batch_shape)


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


def _low_rank_log_prob(x: Array, loc: Array, factor: Array, diagonal: Array) -> Array:
    distance = low_rank_mahalanobis(factor, diagonal, x - loc)
    return -0.5 * (loc.shape[-1] * _LOG_2PI + low_rank_log_det(factor, diagonal) + distance)


def _low_rank_covariance(factor: Array, diagonal: Array) -> Array:
    return fnp.matmul(factor, _mT(factor)) + diagonal[..., None] * _unit(diagonal)


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


class LowRankMultivariateNormal(Distribution):
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

    arg_constraints: Any = {  # noqa: RUF012  # torch's
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if not loc.shape:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if len(cov_factor.shape) < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        shapes = (loc.shape, cov_factor.shape, cov_diag.shape)
        try:
            batch = np.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except ValueError:
            raise ValueError(
                "Incompatible batch shapes: loc {}, cov_factor {}, cov_diag {}".format(*shapes)
            ) from None
        self._unbroadcasted = (cov_factor, cov_diag)
        self.loc: Any = loc.expand(*batch, -1)
        self.cov_factor: Any = cov_factor.expand(*batch, -1, -1)
        self.cov_diag: Any = cov_diag.expand(*batch, -1)
        super().__init__(batch, event, validate_args)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        shape = (*batch_shape, *self._event_shape)
        new._unbroadcasted = self._unbroadcasted
        new.loc, new.cov_diag = self.loc.expand(*shape), self.cov_diag.expand(*shape)
        new.cov_factor = self.cov_factor.expand(*shape, -1)
        Distribution.__init__(new, batch_shape, self._event_shape, False)
        new._validate_args = self._validate_args
        return new

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def _of(self, formula: Callable[..., Any]) -> Tensor:
        found: Any = composite("LowRank", formula, *self._unbroadcasted)
        own = len(
            np.broadcast_shapes(*[x.shape[: -2 + i] for i, x in enumerate(self._unbroadcasted)])
        )
        return found.expand(*self._batch_shape, *found.shape[own:])

    variance = property(
        lambda self: self._of(lambda factor, diagonal: fnp.sum(factor**2, axis=-1) + diagonal)
    )
    scale_tril = property(lambda self: self._of(_low_rank_factor))
    covariance_matrix = property(lambda self: self._of(_low_rank_covariance))
    precision_matrix = property(lambda self: self._of(_low_rank_precision))

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random vectors that are differentiable in the parameters."""
        shape = self._extended_shape(sample_shape)
        factor, diagonal = self._unbroadcasted
        few = normal((*shape[:-1], factor.shape[-1]), self.loc)
        return self.loc + _times(factor, few) + diagonal.sqrt() * normal(shape, self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at vectors."""
        if self._validate_args:
            self._validate_sample(value)
        value = value_beside(value, (self.loc,))
        return composite(
            "LowRankLogProb", _low_rank_log_prob, value, self.loc, *self._unbroadcasted
        )

    def entropy(self) -> Tensor:
        """Shannon's entropy, in nats."""
        constant = self._event_shape[0] * (1 + _LOG_2PI)
        return 0.5 * (self._of(low_rank_log_det) + constant)


def _multi(of: Callable[..., Any], x: Array, n: int) -> Array:
    """The sum of a function at ``x, x - 1/2, ...``."""
    return fnp.sum(of(x[..., None] - np.arange(n).astype(x.dtype) / 2), axis=-1)


def multi_log_gamma(x: Array, n: int) -> Array:
    """The logarithm of the gamma function of matrices."""
    return _multi(sp.gammaln, x, n) + n * (n - 1) / 4 * math.log(math.pi)


def _wishart_log_prob(x: Array, df: Array, factor: Array) -> Array:
    n = factor.shape[-1]
    trace = fnp.sum(_diagonal(solved(factor, _mT(solved(factor, x)))), axis=-1)
    return (
        -df * (n * math.log(2) / 2 + half_log_det(factor))
        - multi_log_gamma(df / 2, n)
        + (df - n - 1) / 2 * fnp.linalg.slogdet(x)[1]
        - trace / 2
    )


def _wishart_log_normalizer(x: Array, y: Array) -> Array:
    n = x.shape[-1]
    a = y + (n + 1) / 2
    return a * (n * math.log(2) - fnp.linalg.slogdet(-2 * x)[1]) + multi_log_gamma(a, n)


def _wishart_entropy(df: Array, factor: Array) -> Array:
    n = factor.shape[-1]
    return (
        (n + 1) * (n * math.log(2) / 2 + half_log_det(factor))
        + multi_log_gamma(df / 2, n)
        - (df - n - 1) / 2 * _multi(sp.digamma, df / 2, n)
        + df * n / 2
    )


class Wishart(_ByMatrix, ExponentialFamily):
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

    support: Any = constraints.positive_definite
    has_rsample = True
    arg_constraints: Any = property(
        lambda self: {**_DEFINITE, "df": constraints.greater_than(self.event_shape[-1] - 1)}
    )

    def __init__(
        self,
        df: Value,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._keep(
            AssertionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        given: Any = df if isinstance(df, Tensor) else matrix.new_full((), df)
        batch = np.broadcast_shapes(matrix.shape[:-2], given.shape)
        n = matrix.shape[-1]
        self.df: Any = given.expand(*batch)
        setattr(self, name, matrix.expand(*batch, -1, -1))
        values = known(self.df)
        if values is not None and (values <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if values is not None and (values < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch, (n, n), validate_args)
        self._keep_factor(name, matrix)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        new = self._get_checked_instance(Wishart, _instance)
        return self._expanded(new, batch_shape, df=self.df.expand(*batch_shape))

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return composite("WishartLogNormalizer", _wishart_log_normalizer, *natural_params)

    @property
    def mode(self) -> Tensor:
        """The most probable matrix, NaN where there is none."""
        factor = self.df - self._event_shape[-1] - 1
        return fnp.where(factor > 0, factor, np.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """Variances of the elements."""
        v = self.covariance_matrix
        d = _diagonal(v)
        return self.df[..., None, None] * (v**2 + d[..., :, None] * d[..., None, :])

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

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at matrices."""
        if self._validate_args:
            self._validate_sample(value)
        value = value_beside(value, (self.df,))
        factor = self._unbroadcasted_scale_tril
        return composite("WishartLogProb", _wishart_log_prob, value, self.df, factor)

    def entropy(self) -> Tensor:
        """Shannon's entropy, in nats."""
        return composite(
            "WishartEntropy", _wishart_entropy, self.df, self._unbroadcasted_scale_tril
        )


def _lkj_log_prob(x: Array, concentration: Array) -> Array:
    n = x.shape[-1]
    order = 2 * (concentration[..., None] - 1) + np.arange(n - 2, -1, -1).astype(x.dtype)
    alpha = concentration + 0.5 * (n - 1)
    norm = 0.5 * (n - 1) * math.log(math.pi) + multi_log_gamma(alpha - 0.5, n - 1)
    power = fnp.sum(order * fnp.log(_diagonal(x)[..., 1:]), axis=-1)
    return power - norm + (n - 1) * sp.gammaln(alpha)


class LKJCholesky(Family, parameters={"concentration": constraints.positive}):
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

    support: Any = constraints.corr_cholesky
    concentration: Any

    def __init__(
        self, dim: int, concentration: Value = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        self._set({"concentration": broadcast_all(concentration)[0]}, validate_args)

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        vars(self).update(parameters)
        event = (self.dim, self.dim)
        Distribution.__init__(self, self.concentration.shape, event, validate_args)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        return super().expand(batch_shape, new)

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random factors, by the onion method: row after row on spheres of random radius."""
        with no_grad():
            n, c = self.dim, self.concentration
            offset = np.concatenate([[0], np.arange(n - 1)]).astype(c.dtype) / 2
            first = c.new_zeros((*c.shape, n)) + (offset + 0.5)
            second = (c + 0.5 * (n - 2))[..., None] - offset
            lead = (*sample_shape, *self._batch_shape)
            square = dirichlet((*lead, n, 2), fnp.stack([first, second], axis=-1))[..., 0]
            direction = normal((*lead, n, n), c).tril(-1)
            length = (direction**2).sum(-1, True).sqrt()
            unit = direction / fnp.where(length > 0, length, 1.0)
            rows = square.sqrt()[..., None] * unit
            rest = (1 - (rows**2).sum(-1)).clamp(float(np.finfo(c.dtype).tiny))
            return rows + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at factors."""
        if self._validate_args:
            self._validate_sample(value)
        value = value_beside(value, (self.concentration,))
        return composite("LKJLogProb", _lkj_log_prob, value, self.concentration)
