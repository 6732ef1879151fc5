"""Distributions of vectors and matrices, and densities estimated from samples.

Here: multivariate normal and t, Dirichlet, multinomial, Wishart, ``gaussian_kde``. Not here:
distributions of one variable (``stats_families``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.control.custom_rules import stop_gradient
from functrans.core.boundary import boundary
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import as_operand
from functrans.numpy.linalg import cholesky, eigvalsh, pinv, solve
from functrans.primitives import elementwise as ew
from functrans.primitives.reduction import logsumexp
from functrans.primitives.special import elementary as el
from functrans.primitives.special import functions as sf
from functrans.scipy.special_common import as_floating
from functrans.scipy.special_gamma import multigammaln


def _log_det_and_distance(x: Array, mean: Any, scale: Array) -> tuple[Any, Any, int]:
    """``log(det(scale))``, Mahalanobis' distance squared, and the dimension.

    Args:
      x: points ``[..., n]``; of one variable also ``[m]``, one point an element.
      mean: ``[n]`` or a number.
      scale: positive definite ``[n, n]``, a diagonal ``[n]``, or a number times the identity.

    ``mean`` and ``scale`` say how many variables there are, as in SciPy: two numbers mean one.

    Raises:
      ShapeError: the shapes do not fit.
    """
    is_univariate = {*shape_of(mean), *shape_of(scale)} <= {1}
    if (is_univariate and len(shape_of(x)) < 2) or not shape_of(x):
        x = fnp.reshape(x, (*shape_of(x), 1))
    n = shape_of(x)[-1]
    if is_univariate and n != 1:
        raise ShapeError(
            f"points have shape {shape_of(x)}, but mean and scale of shapes {shape_of(mean)} and "
            f"{shape_of(scale)} are of one variable; give points of shape (..., 1), or a mean of "
            f"shape ({n},)"
        )
    if shape_of(mean) not in ((), (1,), (n,)):
        raise ShapeError(f"mean has shape {shape_of(mean)}, expected ({n},) or a number")
    gap = x - mean
    shape = shape_of(scale)
    if shape == (n, n):
        factor = cholesky(scale)
        rest = solve(factor, gap[..., None])[..., 0]
        return fnp.sum(ew.log(fnp.diagonal(factor))) * 2, fnp.sum(rest * rest, axis=-1), n
    if shape in ((), (1,), (n,)):
        widths = fnp.broadcast_to(scale, (n,))
        return fnp.sum(ew.log(widths)), fnp.sum(gap * gap / widths, axis=-1), n
    raise ShapeError(f"the scale has shape {shape}, expected ({n}, {n}), ({n},) or a number")


def _singular_logpdf(x: Any, mean: Any, cov: Any) -> Any:
    """The logarithm of the density on the support of a positive semidefinite matrix."""
    n = shape_of(cov)[-1]
    gap = x - mean if shape_of(x)[-1:] == (n,) else x[..., None] - mean
    widths = eigvalsh(cov)
    dtype = dtype_of(cov)
    limit = stop_gradient(fnp.max(fnp.abs(widths)) * (1e6 if dtype.itemsize > 4 else 1e3))
    limit = limit * np.finfo(dtype).eps
    is_wide = widths > limit
    inverse = pinv(cov, rcond=1e6 * np.finfo(dtype).eps, hermitian=True)
    log_det = fnp.sum(ew.log(fnp.where(is_wide, widths, 1.0)))
    inside = gap @ inverse
    distance = fnp.sum(inside * gap, axis=-1)
    rest = stop_gradient(gap - inside @ cov)
    is_off = fnp.sqrt(fnp.sum(rest * rest, axis=-1)) >= limit * 1e3
    rank = fnp.sum(is_wide)
    result = (distance + log_det + rank * math.log(2 * math.pi)) * -0.5
    return fnp.where(is_off, -np.inf, result)


class MultivariateNormal:
    """The multivariate normal distribution, ``functrans.scipy.stats.multivariate_normal``.

    Example:
      >>> import numpy as np
      >>> round(float(MultivariateNormal().logpdf(np.zeros(2), np.zeros(2), np.eye(2))), 12)
      -1.837877066409
    """

    __slots__ = ()

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density.

        Args:
          x: points ``[..., n]``; of one variable also ``[m]``.
          mean: ``[n]`` or a number; by default 0.
          cov: positive definite ``[n, n]``; a diagonal ``[n]`` or a number times the identity.
          allow_singular: whether ``cov`` may be singular: pseudo-determinant and pseudo-inverse
            are taken, and the density is zero off the support.

        Returns:
          Array ``[...]``.

        Raises:
          ShapeError: the shapes do not fit.
          LinAlgError: ``cov`` is not positive definite, or with ``allow_singular`` not positive
            semidefinite.
        """
        mean = 0.0 if mean is None else mean
        x, mean, cov = as_floating(*map(as_operand, (x, mean, cov)))
        if allow_singular and len(shape_of(cov)) == 2:
            return _singular_logpdf(x, mean, cov)
        log_det, distance, n = _log_det_and_distance(x, mean, cov)
        return (distance + log_det + n * math.log(2 * math.pi)) * -0.5

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density; see ``logpdf``."""
        return ew.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: object = None, cov: Any = 1) -> Array:
        """The differential entropy; ``mean`` does not matter."""
        (cov,) = as_floating(as_operand(cov))
        n = shape_of(cov)[-1] if shape_of(cov) else 1
        log_det, _, _ = _log_det_and_distance(fnp.zeros((n,)), 0.0, cov)
        return (log_det + n * (1 + math.log(2 * math.pi))) * 0.5


class MultivariateT:
    """The multivariate t distribution, ``functrans.scipy.stats.multivariate_t``."""

    __slots__ = ()

    def logpdf(self, x: Any, loc: Any = 0, shape: Any = 1, df: Any = 1) -> Any:
        """The logarithm of the density.

        Args:
          x: points ``[..., n]``; of one variable also ``[m]``.
          loc: ``[n]`` or a number.
          shape: positive definite ``[n, n]``; a diagonal ``[n]`` or a number times the identity.
          df: degrees of freedom, a positive number.

        Returns:
          Array ``[...]``.

        Raises:
          ShapeError: the shapes do not fit.
          LinAlgError: ``shape`` is not positive definite.
        """
        x, loc, shape, df = as_floating(*map(as_operand, (x, loc, shape, df)))
        log_det, distance, n = _log_det_and_distance(x, loc, shape)
        constants = sf.lgamma((df + n) * 0.5) - sf.lgamma(df * 0.5)
        constants = constants - (ew.log(df * math.pi) * n + log_det) * 0.5
        return constants - ew.log1p(distance / df) * ((df + n) * 0.5)

    def pdf(
        self, x: ArrayLike, loc: ArrayLike = 0, shape: ArrayLike = 1, df: ArrayLike = 1
    ) -> Array:
        """The density; see ``logpdf``."""
        return ew.exp(self.logpdf(x, loc, shape, df))


class Dirichlet:
    """Dirichlet's distribution, ``functrans.scipy.stats.dirichlet``."""

    __slots__ = ()

    def logpdf(self, x: Array, alpha: Array) -> Array:
        """The logarithm of the density.

        Args:
          x: shares ``[n]`` or ``[n, m]`` that sum to 1 along the first axis; or ``[n - 1]``, then
            the last one is what is left.
          alpha: positive concentrations ``[n]``.

        Returns:
          A number, or an array ``[m]``; ``-inf`` outside the simplex. The sum of ``x`` is not
          checked, so that derivatives in all shares are there.

        Raises:
          ShapeError: the shapes do not fit.
        """
        x, alpha = as_floating(as_operand(x), as_operand(alpha))
        (n,) = shape_of(alpha)
        if shape_of(x)[0] == n - 1:
            x = fnp.concatenate([x, (1 - fnp.sum(x, axis=0))[None]])
        if shape_of(x)[0] != n:
            raise ShapeError(
                f"dirichlet: x has shape {shape_of(x)}, expected ({n}, ...) or ({n - 1}, ...)"
            )
        is_inside = fnp.all((x >= 0) & (x <= 1), axis=0)
        weights = fnp.reshape(alpha, (n,) + (1,) * (len(shape_of(x)) - 1))
        safe = ew.where((x >= 0) & (x <= 1), x, 0.5)
        value = fnp.sum(el.xlogy(weights - 1, safe), axis=0)
        value = value + sf.lgamma(fnp.sum(alpha)) - fnp.sum(sf.lgamma(alpha))
        return ew.where(is_inside, value, -math.inf)

    def pdf(self, x: Array, alpha: Array) -> Array:
        """The density; see ``logpdf``."""
        return ew.exp(self.logpdf(x, alpha))


class Multinomial:
    """The multinomial distribution, ``functrans.scipy.stats.multinomial``."""

    __slots__ = ()

    def logpmf(self, x: Array, n: Array, p: Array) -> Array:
        """The logarithm of the probability.

        Args:
          x: counts ``[..., k]``.
          n: their sum, an integer.
          p: probabilities ``[..., k]``; they are not normalised.

        Returns:
          Array ``[...]``; ``-inf`` where the counts do not sum to ``n``.
        """
        x, n, p = as_floating(*map(as_operand, (x, n, p)))
        is_inside = fnp.all((x >= 0) & (ew.floor(x) == x), axis=-1) & (fnp.sum(x, axis=-1) == n)
        counts = ew.where(x >= 0, x, 0)
        value = sf.lgamma(n + 1) + fnp.sum(el.xlogy(counts, p) - sf.lgamma(counts + 1), axis=-1)
        return ew.where(is_inside, value, -math.inf)

    def pmf(self, x: Array, n: Array, p: Array) -> Array:
        """The probability; see ``logpmf``."""
        return ew.exp(self.logpmf(x, n, p))


class Wishart:
    """Wishart's distribution, ``functrans.scipy.stats.wishart``."""

    __slots__ = ()

    def logpdf(self, x: Array, df: Array, scale: Array) -> Array:
        """The logarithm of the density of one matrix.

        Args:
          x: positive definite ``[n, n]``.
          df: degrees of freedom, a number above ``n - 1``.
          scale: positive definite ``[n, n]``.

        Raises:
          ShapeError: the shapes do not fit.
          LinAlgError: a matrix is not positive definite.
        """
        x, df, scale = as_floating(*map(as_operand, (x, df, scale)))
        shape = shape_of(scale)
        if len(shape) != 2 or shape[0] != shape[1] or shape_of(x) != shape:
            raise ShapeError(
                f"wishart: x and scale must be square matrices of one shape, got {shape_of(x)} "
                f"and {shape}"
            )
        n = shape[0]

        def log_det(matrix: Array) -> Array:
            return fnp.sum(ew.log(fnp.diagonal(cholesky(matrix)))) * 2

        trace = fnp.trace(solve(scale, x))
        value = (df - n - 1) * log_det(x) * 0.5 - trace * 0.5
        value = value - df * (0.5 * n * math.log(2)) - df * log_det(scale) * 0.5
        return value - multigammaln(df * 0.5, n)

    def pdf(self, x: Array, df: Array, scale: Array) -> Array:
        """The density; see ``logpdf``."""
        return ew.exp(self.logpdf(x, df, scale))


class gaussian_kde:  # noqa: N801  # SciPy's name
    """A density estimated by a sum of normal ones, as ``scipy.stats.gaussian_kde``.

    Everything is differentiable in points and data set.

    Args:
      dataset: points ``[n]`` or ``[d, n]``.
      bw_method: ``"scott"`` (default), ``"silverman"``, or a number: the factor of the widths.
      weights: ``[n]``, by default equal ones.

    Raises:
      ValueError: there are fewer than two points, or the method is unknown.

    Example:
      >>> import numpy as np
      >>> bool(gaussian_kde(np.array([0.0, 1.0]))(0.5) > 0.4)
      True
    """

    __slots__ = ("covariance", "dataset", "factor", "weights")

    @boundary
    def __init__(self, dataset: Array, bw_method: Any = None, weights: Any = None) -> None:
        (data,) = as_floating(as_operand(dataset))
        if len(shape_of(data)) < 2:
            data = fnp.reshape(data, (1, -1))
        d, n = shape_of(data)
        if n < 2:
            raise ValueError(f"gaussian_kde: the data set has {n} points, expected 2 or more")
        if weights is None:
            shares = fnp.full((n,), 1 / n)
        else:
            (shares,) = as_floating(as_operand(weights))
            shares = shares / fnp.sum(shares)
        effective = 1 / fnp.sum(shares * shares)
        if bw_method is None or bw_method == "scott":
            factor = ew.power(effective, -1 / (d + 4))
        elif bw_method == "silverman":
            factor = ew.power(effective * ((d + 2) / 4), -1 / (d + 4))
        elif isinstance(bw_method, str):
            raise ValueError(
                f"gaussian_kde: bw_method must be 'scott', 'silverman' or a number, got "
                f"{bw_method!r}"
            )
        else:
            factor = as_operand(bw_method)
        gap = data - fnp.sum(data * shares, axis=1)[:, None]
        spread = fnp.matmul(gap * shares, gap.T) / (1 - fnp.sum(shares * shares))
        self.dataset, self.weights, self.factor = data, shares, factor
        self.covariance = spread * (factor * factor)

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density.

        Args:
          x: points ``[m]`` of one variable, or ``[d, m]``.

        Raises:
          ShapeError: the points have another dimension than the data set.
        """
        (x,) = as_floating(as_operand(x))
        d, _ = shape_of(self.dataset)
        if len(shape_of(x)) < 2:
            x = fnp.reshape(x, (1, -1) if d == 1 else (-1, 1))
        if shape_of(x)[0] != d:
            raise ShapeError(f"gaussian_kde: points of shape {shape_of(x)}, expected ({d}, m)")
        factor = cholesky(self.covariance)
        left, right = solve(factor, x), solve(factor, self.dataset)
        gap = left[:, :, None] - right[:, None, :]
        terms = fnp.sum(gap * gap, axis=0) * -0.5 + ew.log(self.weights)
        log_norm = fnp.sum(ew.log(fnp.diagonal(factor))) + 0.5 * d * math.log(2 * math.pi)
        return logsumexp(terms, (1,)) - log_norm

    def pdf(self, x: Array) -> Array:
        """The density; see ``logpdf``."""
        return ew.exp(self.logpdf(x))

    evaluate = pdf
    __call__ = pdf

    def integrate_box_1d(self, low: Array, high: Array) -> Array:
        """The probability of an interval, of one variable.

        Raises:
          ShapeError: the data set has several variables.
        """
        if shape_of(self.dataset)[0] != 1:
            raise ShapeError("gaussian_kde: integrate_box_1d is for one variable")
        width = ew.sqrt(self.covariance[0, 0])
        points = self.dataset[0]
        mass = sf.ndtr((high - points) / width) - sf.ndtr((low - points) / width)
        return fnp.sum(mass * self.weights)


multivariate_normal = MultivariateNormal()
multivariate_t = MultivariateT()
dirichlet = Dirichlet()
multinomial = Multinomial()
wishart = Wishart()
