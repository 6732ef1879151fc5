"""The gamma distribution and those made of it.

Here: ``gamma``, ``loggamma``, ``beta``, ``chisquare``, ``t``, ``f``, ``dirichlet``,
``generalized_normal``. Not here: other distributions.

The derivative in the parameter is that of the sample at constant probability (implicit
reparameterisation): of ``P(a, x) = p`` it is ``dx/da = -P_a(a, x) / P_x(a, x)``.

Layer: ``random``. Source: Marsaglia and Tsang, A simple method for generating gamma variables, ACM
TOMS 26 (2000); Figurnov, Mohamed and Mnih, Implicit reparameterization gradients (NeurIPS 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans import numpy as fnp
from functrans.control.custom_rules import custom_jvp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.elementwise import logaddexp
from functrans.primitives.special.distributions import gamma_density
from functrans.primitives.special.functions import digamma, gammainc_a
from functrans.primitives.structural import cast
from functrans.random.continuous import signs
from functrans.random.keys import parameters, sampler, split, without_derivative
from functrans.random.rejection import until_taken
from functrans.random.uniform import open_unit, standard_normal

_TINY = 1e-8


def _large_gamma(key: object, a: Any) -> Any:
    """Gamma variables of parameters ``a >= 1``; NaN of other ones."""
    dtype, shape = dtype_of(a), shape_of(a)
    d = a - 1.0 / 3.0
    is_valid = (a >= 1) & fnp.isfinite(a)
    d = fnp.where(is_valid, d, 1.0)
    c = 1.0 / (3.0 * fnp.sqrt(d))

    def propose(key: object, shape: Any, operands: Any) -> tuple[Any, Any]:
        d, c = operands
        key_normal, key_unit = split(key)
        x = standard_normal(key_normal, shape, dtype)
        log_u = cast(fnp.log(open_unit(key_unit, shape, dtype)), dtype)
        root = 1.0 + c * x
        is_positive = root > 0
        v = fnp.where(is_positive, root, 1.0) ** 3
        return is_positive & (log_u < 0.5 * x * x + d * (1.0 - v + fnp.log(v))), d * v

    rest = fnp.where(is_valid, dtype.type(0), fnp.where(a > 1, a, np.nan))
    return until_taken(key, shape, (d, c), propose, is_valid, rest)


@custom_jvp
def _log_gamma(key: object, a: Any) -> Array:
    """Logarithms of gamma variables of any positive parameters.

    Of ``a < 1``: those of ``a + 1`` times ``u**(1/a)``, in logarithms, since that underflows.
    """
    dtype = dtype_of(a)
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    a = cast(a, wide)
    is_small = a < 1
    key_large, key_unit = split(key)
    large = _large_gamma(key_large, fnp.where(is_small, a + 1.0, a))
    log_u = fnp.log(open_unit(key_unit, shape_of(a), wide))
    power = fnp.where(is_small, log_u / fnp.where(is_small & (a > 0), a, 1.0), 0.0)
    power = fnp.where(a > 0, power, np.nan)
    return cast(fnp.log(large) + power, dtype)


@_log_gamma.defjvp
def _log_gamma_jvp(primals: Any, tangents: Any) -> Any:
    log_x = _log_gamma(*primals)
    return log_x, tangents[1] * log_gamma_slope(primals[1], log_x)


def log_gamma_slope(a: Any, log_x: Any) -> Array:
    """At constant probability, ``d log(x) / da = -P_a(a, x) / (x P_x(a, x))``.

    Near 0 by the first two terms of ``P(a, x) = x**a exp(-x) / Gamma(a + 1) (1 + x/(a+1) + ...)``,
    since ``x`` underflows.
    """
    wide_a, wide_log = cast(a, np.float64), cast(log_x, np.float64)
    x = fnp.exp(wide_log)
    is_tiny = x < _TINY
    safe = fnp.where(is_tiny, 1.0, x)
    slope = -gammainc_a(wide_a, safe) / (gamma_density(wide_a, safe) * safe)
    step = 1.0 / (wide_a + 1.0)
    near = (digamma(wide_a + 1.0) - wide_log) * (1.0 + x * step) + x * step * step
    return cast(fnp.where(is_tiny, near / wide_a, slope), dtype_of(a))


@sampler(0.01, a="parameter, positive; differentiable")
def loggamma(
    key: object, a: ArrayLike, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Logarithms of numbers of the gamma distribution; they do not underflow."""
    shape, dtype, [a] = parameters("loggamma", key, shape, dtype, a)
    return _log_gamma(key, a)


@sampler(2.5, a="parameter, positive; differentiable. NaN where it is not positive")
def gamma(key: object, a: ArrayLike, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the gamma distribution of scale 1."""
    shape, dtype, [a] = parameters("gamma", key, shape, dtype, a)
    return fnp.exp(_log_gamma(key, a))


@sampler(
    2.0,
    3.0,
    a="first parameter, positive; differentiable",
    b="second parameter, positive; differentiable",
)
def beta(
    key: object, a: ArrayLike, b: ArrayLike, shape: object = None, dtype: DTypeLike | None = None
) -> Any:
    """Numbers of the beta distribution."""
    shape, dtype, [a, b] = parameters("beta", key, shape, dtype, a, b)
    key_a, key_b = split(key)
    log_a, log_b = _log_gamma(key_a, a), _log_gamma(key_b, b)
    return fnp.exp(log_a - logaddexp(log_a, log_b))


@sampler(3.0, df="degrees of freedom, positive; differentiable")
def chisquare(key: object, df: Any, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the chi-square distribution."""
    shape, dtype, [df] = parameters("chisquare", key, shape, dtype, df)
    return 2.0 * fnp.exp(_log_gamma(key, df * 0.5))


@sampler(3.0, df="degrees of freedom, positive; differentiable")
def t(key: object, df: Any, shape: object = None, dtype: DTypeLike | None = None) -> Any:
    """Numbers of Student's t distribution."""
    shape, dtype, [df] = parameters("t", key, shape, dtype, df)
    key_normal, key_gamma = split(key)
    half = df * 0.5
    spread = fnp.exp(0.5 * (fnp.log(half) - _log_gamma(key_gamma, half)))
    return standard_normal(key_normal, shape, dtype) * spread


@sampler(
    3.0,
    4.0,
    dfnum="degrees of freedom of the numerator, positive; differentiable",
    dfden="those of the denominator, positive; differentiable",
)
def f(
    key: object, dfnum: Any, dfden: Any, shape: object = None, dtype: DTypeLike | None = None
) -> Any:
    """Numbers of Fisher's F distribution."""
    shape, dtype, [dfnum, dfden] = parameters("f", key, shape, dtype, dfnum, dfden)
    key_above, key_below = split(key)
    above, below = dfnum * 0.5, dfden * 0.5
    log_above = _log_gamma(key_above, above) - fnp.log(above)
    return fnp.exp(log_above - _log_gamma(key_below, below) + fnp.log(below))


@sampler(2.0, p="exponent, positive; differentiable. Infinity gives uniform numbers in ``(-1, 1)``")
def generalized_normal(
    key: object, p: object, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers with a density proportional to ``exp(-abs(x)**p)``."""
    shape, dtype, [p] = parameters("generalized_normal", key, shape, dtype, p)
    key_size, key_sign = split(key)
    is_flat = p == np.inf  # uniform in (-1, 1); exp(-x) of an exponential number x is uniform
    inner = fnp.where(is_flat, 1.0, p)
    log_gamma = _log_gamma(key_size, 1.0 / inner)
    log_size = fnp.where(is_flat, -fnp.exp(log_gamma), log_gamma / inner)
    return signs(key_sign, shape, dtype) * fnp.exp(log_size)


def dirichlet(key: object, alpha: Any, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Probabilities of Dirichlet's distribution.

    Args:
      key: a key.
      alpha: parameters along the last axis, positive; differentiable.
      shape: shape of the result without its last axis; by default that of ``alpha``.
      dtype: a floating dtype; by default that of ``alpha``.

    Returns:
      Array of shape ``(*shape, alpha.shape[-1])``, with sums 1 along the last axis.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not floating.
      ShapeError: ``alpha`` is a scalar, or does not broadcast to ``shape``.

    Example:
      >>> dirichlet(np.array([0, 0], np.uint32), np.ones(4)).sum().round(12)
      np.float64(1.0)
    """
    alpha = alpha if isinstance(alpha, Tracer) else np.asarray(alpha)
    if not shape_of(alpha):
        raise ShapeError(f"random.dirichlet: alpha needs an axis, got a scalar{here()}")
    if shape is not None:
        shape = (*((shape,) if isinstance(shape, int) else shape), shape_of(alpha)[-1])
    _, dtype, [alpha] = parameters("dirichlet", key, shape, dtype, alpha)
    logs = _log_gamma(key, alpha)
    shifted = fnp.exp(
        logs - without_derivative(fnp.max(logs, axis=-1, keepdims=True, initial=-np.inf))
    )
    return shifted / fnp.sum(shifted, axis=-1, keepdims=True)
