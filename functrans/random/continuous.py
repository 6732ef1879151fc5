"""Continuous distributions that are functions of uniform and normal numbers.

Here: distributions with a quantile in closed form, and those made of two. They are differentiable
in their parameters by that formula. Not here: ``uniform`` and ``normal`` (``uniform``), what is
made of gamma variables (``gamma``).

Layer: ``random``. Source: Devroye, Non-Uniform Random Variate Generation (1986), for the formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans import numpy as fnp
from functrans.core.values import Array
from functrans.primitives.elementwise import logaddexp
from functrans.primitives.special import elementary as el
from functrans.primitives.special import functions as sf
from functrans.primitives.structural import cast
from functrans.random.keys import (
    checked,
    checked_key,
    checked_shape,
    parameters,
    raw_bits,
    sampler,
    split,
    without_derivative,
)
from functrans.random.uniform import open_unit, standard_normal, unit


def signs(key: object, shape: Any, dtype: Any) -> Array:
    """1 and -1 with equal probability, in a dtype."""
    bit = raw_bits(key, shape, 32) >> np.uint32(31)
    return cast(bit, dtype) * dtype.type(2) - dtype.type(1)


@sampler()
def exponential(key: object, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Numbers of the exponential distribution of rate 1."""
    shape, dtype = checked("exponential", key, shape, dtype)
    return cast(-fnp.log1p(-unit(key, shape, dtype)), dtype)


@sampler()
def laplace(key: object, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Numbers of Laplace's distribution with density ``exp(-abs(x)) / 2``."""
    shape, dtype = checked("laplace", key, shape, dtype)
    u = open_unit(key, shape, dtype) * 2.0 - 1.0
    return cast(fnp.copysign(fnp.log1p(-fnp.abs(u)), u), dtype)


@sampler()
def logistic(key: object, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Numbers of the logistic distribution."""
    shape, dtype = checked("logistic", key, shape, dtype)
    u = open_unit(key, shape, dtype)
    return cast(fnp.log(u) - fnp.log1p(-u), dtype)


@sampler()
def gumbel(key: object, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Numbers of Gumbel's distribution, with distribution function ``exp(-exp(-x))``."""
    shape, dtype = checked("gumbel", key, shape, dtype)
    return cast(-fnp.log(-fnp.log(open_unit(key, shape, dtype))), dtype)


@sampler()
def cauchy(key: object, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Numbers of Cauchy's distribution."""
    shape, dtype = checked("cauchy", key, shape, dtype)
    return cast(fnp.tan((open_unit(key, shape, dtype) - 0.5) * math.pi), dtype)


@sampler()
def maxwell(key: object, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Lengths of vectors of three standard normal numbers: Maxwell's distribution."""
    shape, dtype = checked("maxwell", key, shape, dtype)
    vectors = standard_normal(key, (*shape, 3), dtype)
    return fnp.sqrt(fnp.sum(vectors * vectors, axis=-1))


@sampler(
    0.0,
    1.0,
    loc="the centre; differentiable",
    scale="the factor before it is added; differentiable",
)
def double_sided_maxwell(
    key: object, loc: object, scale: object, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of Maxwell's distribution with a random sign, scaled and moved."""
    shape, dtype, [loc, scale] = parameters("double_sided_maxwell", key, shape, dtype, loc, scale)
    key_size, key_sign = split(key)
    return loc + scale * (maxwell(key_size, shape, dtype) * signs(key_sign, shape, dtype))


def rademacher(key: object, shape: object = (), dtype: DTypeLike | None = np.int64) -> Array:
    """1 and -1 with equal probability.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a signed dtype.

    Returns:
      Array of ``shape`` and ``dtype``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` cannot hold -1.

    Example:
      >>> set(rademacher(np.array([0, 0], np.uint32), (100,)).tolist()) == {1, -1}
      True
    """
    checked_key("rademacher", key)
    dtype = np.dtype(dtype)
    if dtype.kind not in "ifc":
        raise TypeError(f"random.rademacher: dtype must be signed, got {dtype}")
    is_up = unit(key, checked_shape("rademacher", shape), np.dtype(np.float64)) < 0.5
    return cast(is_up, dtype) * dtype.type(2) - dtype.type(1)


@sampler(2.0, scale="the mode, positive; differentiable")
def rayleigh(
    key: object, scale: object, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of Rayleigh's distribution."""
    shape, dtype, [scale] = parameters("rayleigh", key, shape, dtype, scale)
    return cast(scale * fnp.sqrt(-2.0 * fnp.log(open_unit(key, shape, dtype))), dtype)


@sampler(2.0, b="the exponent, positive; differentiable")
def pareto(
    key: object, b: ArrayLike, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of Pareto's distribution on ``[1, inf)``."""
    shape, dtype, [b] = parameters("pareto", key, shape, dtype, b)
    return cast(fnp.exp(-fnp.log(open_unit(key, shape, dtype)) / b), dtype)


@sampler(
    2.0,
    1.5,
    scale="scale, positive; differentiable",
    concentration="exponent, positive; differentiable",
)
def weibull_min(
    key: object, scale: object, concentration: Any, shape: object = None, dtype: object = None
) -> Array:
    """Numbers of Weibull's distribution."""
    own = parameters("weibull_min", key, shape, dtype, scale, concentration)
    shape, dtype, [scale, concentration] = own
    e = -fnp.log(open_unit(key, shape, dtype))
    return cast(scale * e ** (1.0 / concentration), dtype)


@sampler(0.5, sigma="standard deviation of the logarithm; differentiable")
def lognormal(
    key: object, sigma: object = 1.0, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Exponentials of normal numbers of mean 0."""
    shape, dtype, [sigma] = parameters("lognormal", key, shape, dtype, sigma)
    return fnp.exp(sigma * standard_normal(key, shape, dtype))


@sampler(
    0.0,
    0.5,
    2.0,
    left="lower end; differentiable",
    mode="the most frequent value; differentiable",
    right="upper end; differentiable",
)
def triangular(
    key: object,
    left: object,
    mode: Any,
    right: Any,
    shape: object = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers of the triangular distribution."""
    shape, dtype, [left, mode, right] = parameters(
        "triangular", key, shape, dtype, left, mode, right
    )
    u = cast(open_unit(key, shape, dtype), dtype)
    width = right - left
    is_left = u * width < mode - left
    rising = left + fnp.sqrt(fnp.where(is_left, u * width * (mode - left), 1.0))
    falling = right - fnp.sqrt(fnp.where(is_left, 1.0, (1.0 - u) * width * (right - mode)))
    return fnp.where(is_left, rising, falling)


@sampler(
    2.0,
    mean="the mean, positive. "
    "The choice between the roots depends on it, so that there is no derivative of one sample that "
    "is unbiased: the result is a constant of ``mean``",
)
def wald(key: object, mean: Any, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the inverse Gaussian distribution of scale 1."""
    shape, dtype, [mean] = parameters("wald", key, shape, dtype, mean)
    mean = without_derivative(mean)
    # Michael, Schucany and Haas, Generating random variates using transformations with multiple
    # roots, The American Statistician 30 (1976): a root of a quadratic equation, or the other.
    key_normal, key_unit = split(key)
    z = standard_normal(key_normal, shape, dtype)
    y = mean * z * z
    # mean (1 + y/2 - sqrt(y + y**2/4)), without cancellation.
    root = mean / (1.0 + y * 0.5 + fnp.sqrt(y * (4.0 + y)) * 0.5)
    is_root = unit(key_unit, shape, dtype) * (mean + root) <= mean
    return fnp.where(is_root, root, mean * mean / root)


@sampler(
    1.0,
    2.0,
    lower="lower bound, which may be ``-inf``; differentiable",
    upper="upper bound, which may be ``inf``; differentiable",
)
def truncated_normal(
    key: object, lower: Any, upper: Any, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Standard normal numbers between two bounds, however far out."""
    shape, dtype, [lower, upper] = parameters("truncated_normal", key, shape, dtype, lower, upper)
    u = cast(open_unit(key, shape, dtype), dtype)
    # By the lower tail, in logarithms; an interval right of 0 is mirrored.
    turned = fnp.where(lower > 0, -1.0, 1.0)
    low, high = fnp.where(lower > 0, -upper, lower), fnp.where(lower > 0, -lower, upper)
    weight = logaddexp(sf.log_ndtr(low) + fnp.log1p(-u), sf.log_ndtr(high) + fnp.log(u))
    z = cast(turned * el.ndtri_exp(weight), dtype)
    return z + without_derivative(fnp.clip(z, lower, upper) - z)
