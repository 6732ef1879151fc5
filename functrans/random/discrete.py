"""Distributions of integers.

Here: ``bernoulli``, ``categorical``, ``geometric``, ``poisson``, ``binomial``, ``multinomial``.
None has a derivative in its parameters. Not here: ``randint`` (``uniform``), choices from arrays
(``permuting``).

Layer: ``random``. Source: Hoermann, The transformed rejection method for generating Poisson random
variables, Insurance: Mathematics and Economics 12 (1993), and The generation of binomial random
variates, J. Stat. Comput. Simul. 46 (1993); sequential inversion where the mean is below 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.control.scanning import while_loop
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.special.functions import lgamma
from functrans.primitives.structural import broadcast_to, cast, normalize_axis
from functrans.random.continuous import gumbel
from functrans.random.keys import (
    Shape,
    checked_integer,
    checked_shape,
    parameters,
    split,
    without_derivative,
)
from functrans.random.rejection import until_taken
from functrans.random.uniform import open_unit, unit

_WIDE = np.dtype(np.float64)
_SMALL_MEAN = 10.0
_LONGEST_INVERSION = 200  # a mean below 10 is exceeded that far with probability 1e-180


def bernoulli(key: object, p: object = 0.5, shape: object = None) -> Array:
    """True with probability ``p``.

    Args:
      key: a key.
      p: probabilities.
      shape: shape of the result; by default that of ``p``.

    Returns:
      Array of booleans.

    Raises:
      TypeError: ``key`` is no key.
      ShapeError: ``p`` does not broadcast to ``shape``.

    Example:
      >>> bernoulli(np.array([0, 0], np.uint32), np.array([0.0, 1.0])).tolist()
      [False, True]
    """
    shape, dtype, [p] = parameters("bernoulli", key, shape, None, p)
    return unit(key, shape, dtype) < without_derivative(p)


def geometric(
    key: object, p: Any, shape: object = None, dtype: DTypeLike | None = np.int64
) -> Array:
    """The number of trials up to the first success, which has probability ``p``.

    Args:
      key: a key.
      p: probabilities in ``(0, 1]``.
      shape: shape of the result; by default that of ``p``.
      dtype: an integer dtype.

    Returns:
      Array of ``shape`` and ``dtype``, at least 1.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not of integers.
      ShapeError: ``p`` does not broadcast to ``shape``.

    Example:
      >>> int(geometric(np.array([0, 0], np.uint32), 1.0))
      1
    """
    dtype = checked_integer("geometric", dtype)
    shape, _, [p] = parameters("geometric", key, shape, _WIDE, p)
    p = without_derivative(p)
    is_sure = p >= 1
    trials = fnp.ceil(
        fnp.log(open_unit(key, shape, _WIDE)) / fnp.log1p(-fnp.where(is_sure, 0.5, p))
    )
    return _as_integers(fnp.where(is_sure, 1.0, fnp.maximum(trials, 1.0)), dtype)


def _as_integers(x: Any, dtype: np.dtype) -> Array:
    """Numbers as integers, those beyond the dtype as its largest one."""
    limit = int(np.iinfo(dtype).max)
    largest = float(limit)
    if largest > limit:
        largest = float(np.nextafter(largest, 0.0))
    is_over = x > largest
    return fnp.where(is_over, dtype.type(limit), cast(fnp.where(is_over, 0.0, x), dtype))


def categorical(key: object, logits: object, axis: int = -1, shape: object = None) -> Array:
    """Positions along an axis, with probabilities proportional to the exponentials there.

    Args:
      key: a key.
      logits: logarithms of probabilities, up to a constant.
      axis: the axis that is drawn from.
      shape: shape of the result; the shape of ``logits`` without the axis broadcasts to it, and is
        the default.

    Returns:
      Array of int64.

    Raises:
      TypeError: ``key`` is no key.
      ShapeError: ``logits`` has no axis, or does not broadcast.

    Example:
      >>> int(categorical(np.array([0, 0], np.uint32), np.log(np.array([0.0, 1.0, 0.0]) + 1e-300)))
      1
    """
    logits = logits if isinstance(logits, Tracer) else np.asarray(logits)
    own = shape_of(logits)
    if not own:
        raise ShapeError(f"random.categorical: logits need an axis, got a scalar{here()}")
    axis = normalize_axis(axis, len(own), "random.categorical")
    if not own[axis]:
        raise ValueError(f"random.categorical: nothing to draw from along axis {axis} of {own}")
    last = fnp.moveaxis(logits, axis, -1)
    wanted = None if shape is None else (*checked_shape("categorical", shape), own[axis])
    full, dtype, [last] = parameters("categorical", key, wanted, None, last)
    return fnp.argmax(without_derivative(last) + gumbel(key, full, dtype), axis=-1)


def _inversion(u: Any, first: Any, ratio: Callable[[Any], Any], is_open: Any) -> Any:
    """Sum probabilities until they exceed ``u``.

    Args:
      u: uniform numbers.
      first: the probability of 0.
      ratio: that of ``k + 1`` over that of ``k``, as a function of ``k``.
      is_open: for which elements to do so.
    """

    def goes_on(state: Any) -> Array:
        return fnp.any(state[3]) & (state[0] < _LONGEST_INVERSION)

    def step(state: Any) -> Any:
        k, probability, total, is_open, count = state
        probability = probability * ratio(k)
        count = fnp.where(is_open, count + 1.0, count)
        total = total + probability
        return k + 1.0, probability, total, is_open & (u >= total), count

    start = (np.float64(0), first, first, is_open & (u >= first), fnp.zeros_like(u))
    return while_loop(goes_on, step, start)[4]


def _rejection(
    key: object,
    shape: Shape,
    operands: Sequence[Any],
    candidate: Callable[..., Any],
    accepts: Callable[..., Any],
    is_open: object,
) -> Array:
    """Propose a number for every element until all have taken one.

    Args:
      key: a key.
      shape: shape of the result.
      operands: parameters of the elements, which the functions get as their last arguments.
      candidate: ``(v, distance, *operands) -> k`` of a uniform number in ``(-1/2, 1/2)`` and its
        distance from the ends.
      accepts: ``(k, distance, w, *operands) -> whether`` of a uniform number ``w``.
      is_open: for which elements to do so.
    """

    def propose(key: object, shape: Shape, operands: Sequence[Any]) -> tuple[Any, Any]:
        key_v, key_w = split(key)
        v, w = open_unit(key_v, shape, _WIDE) - 0.5, open_unit(key_w, shape, _WIDE)
        distance = 0.5 - fnp.abs(v)
        k = candidate(v, distance, *operands)
        return accepts(k, distance, w, *operands), k

    return until_taken(key, shape, operands, propose, is_open, np.zeros(shape))


def _poisson(key: object, mean: Any, shape: Shape) -> Array:
    key_small, key_large = split(key)
    is_small = (mean > 0) & (mean < _SMALL_MEAN)
    is_large = (mean >= _SMALL_MEAN) & fnp.isfinite(mean)
    low = fnp.where(is_small, mean, 1.0)
    u = unit(key_small, shape, _WIDE)
    small = _inversion(u, fnp.exp(-low), lambda k: low / (k + 1.0), is_small)

    high = fnp.where(is_large, mean, _SMALL_MEAN)

    def extent(high: Any) -> tuple[Any, ...]:
        b = 0.931 + 2.53 * fnp.sqrt(high)
        return -0.059 + 0.02483 * b, b

    def candidate(v: Any, distance: Any, high: Any) -> Array:
        a, b = extent(high)
        return fnp.floor((2.0 * a / distance + b) * v + high + 0.43)

    def accepts(k: Any, distance: Any, w: Any, high: Any) -> Array:
        a, b = extent(high)
        is_sure = (distance >= 0.07) & (w <= 0.9277 - 3.6224 / (b - 2.0))
        is_out = (k < 0) | ((distance < 0.013) & (w > distance))
        inner = fnp.where(is_out, 0.0, k)
        weight = fnp.log(1.1239 + 1.1328 / (b - 3.4))
        size = fnp.log(w) + weight - fnp.log(a / (distance * distance) + b)
        bound = inner * fnp.log(high) - high - lgamma(inner + 1.0)
        return is_sure | (~is_out & (size <= bound))

    large = _rejection(key_large, shape, [high], candidate, accepts, is_large)
    result = fnp.where(is_large, large, small)
    result = fnp.where(mean == np.inf, np.inf, result)
    return fnp.where(mean >= 0, result, -1.0)


def poisson(
    key: object, lam: object, shape: object = None, dtype: DTypeLike | None = np.int64
) -> Array:
    """Numbers of Poisson's distribution.

    Args:
      key: a key.
      lam: means.
      shape: shape of the result; by default that of ``lam``.
      dtype: an integer dtype.

    Returns:
      Array of ``shape`` and ``dtype``; -1 where ``lam`` is negative or NaN.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not of integers.
      ShapeError: ``lam`` does not broadcast to ``shape``.

    Example:
      >>> float(poisson(np.array([0, 0], np.uint32), 4.0, (10_000,)).mean().round())
      4.0
    """
    dtype = checked_integer("poisson", dtype)
    shape, _, [lam] = parameters("poisson", key, shape, _WIDE, lam)
    return _as_integers(_poisson(key, without_derivative(lam), shape), dtype)


def _log_factorials(n: Any, k: Any) -> Array:
    """Logarithm of ``k! (n - k)!``."""
    return lgamma(k + 1.0) + lgamma(n - k + 1.0)


def _binomial(key: object, n: Any, p: Any, shape: Shape) -> Array:
    key_small, key_large = split(key)
    is_valid = (n >= 0) & fnp.isfinite(n) & (p >= 0) & (p <= 1)
    n = fnp.where(is_valid, fnp.floor(fnp.where(is_valid, n, 0.0)), 0.0)
    turned = p > 0.5
    less = fnp.where(is_valid, fnp.where(turned, 1.0 - p, p), 0.0)
    mean = n * less
    odds = less / (1.0 - less)
    is_small = (mean > 0) & (mean < _SMALL_MEAN)
    is_large = mean >= _SMALL_MEAN
    u = unit(key_small, shape, _WIDE)
    first = fnp.exp(fnp.where(is_small, n, 0.0) * fnp.log1p(-less))
    small = _inversion(u, first, lambda k: fnp.maximum(n - k, 0.0) / (k + 1.0) * odds, is_small)

    n_large, p_large = fnp.where(is_large, n, 40.0), fnp.where(is_large, less, 0.5)
    at_mode = _log_factorials(n_large, fnp.floor((n_large + 1.0) * p_large))

    def extent(n: Any, p: Any) -> tuple[Array, ...]:
        deviation = fnp.sqrt(n * p * (1.0 - p))
        b = 1.15 + 2.53 * deviation
        return -0.0873 + 0.0248 * b + 0.01 * p, b, (2.83 + 5.1 / b) * deviation

    def candidate(v: Any, distance: Any, n: Any, p: Any, at_mode: object) -> Array:
        a, b, _ = extent(n, p)
        return fnp.floor((2.0 * a / distance + b) * v + n * p + 0.5)

    def accepts(k: Any, distance: Any, w: Any, n: Any, p: Any, at_mode: object) -> Array:
        a, b, alpha = extent(n, p)
        is_inside = (k >= 0) & (k <= n)
        is_sure = (distance >= 0.07) & (w <= 0.92 - 4.2 / b) & is_inside
        mode = fnp.floor((n + 1.0) * p)
        inner = fnp.where(is_inside, k, mode)
        size = fnp.log(w * alpha / (a / (distance * distance) + b))
        bound = at_mode - _log_factorials(n, inner)
        log_odds = fnp.log(p) - fnp.log1p(-p)
        return is_sure | (is_inside & (size <= bound + (inner - mode) * log_odds))

    large = _rejection(key_large, shape, [n_large, p_large, at_mode], candidate, accepts, is_large)
    count = fnp.where(is_large, large, fnp.minimum(small, n))
    return fnp.where(is_valid, fnp.where(turned, n - count, count), -1.0)


def binomial(
    key: object, n: object, p: object, shape: object = None, dtype: DTypeLike | None = np.int64
) -> Array:
    """How many of ``n`` trials succeed, each with probability ``p``.

    Args:
      key: a key.
      n: numbers of trials.
      p: probabilities.
      shape: shape of the result; by default that of the parameters.
      dtype: an integer dtype.

    Returns:
      Array of ``shape`` and ``dtype``; -1 where ``n`` is negative or ``p`` no probability.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not of integers.
      ShapeError: the parameters do not broadcast to ``shape``.

    Example:
      >>> int(binomial(np.array([0, 0], np.uint32), 5, 1.0))
      5
    """
    dtype = checked_integer("binomial", dtype)
    shape, _, [n, p] = parameters("binomial", key, shape, _WIDE, n, p)
    return _as_integers(_binomial(key, without_derivative(n), without_derivative(p), shape), dtype)


def multinomial(
    key: object, n: object, p: Any, shape: object = None, dtype: DTypeLike | None = np.int64
) -> Array:
    """How many of ``n`` trials have each outcome.

    Args:
      key: a key.
      n: numbers of trials; they broadcast to the shape of ``p`` without its last axis.
      p: probabilities of the outcomes along the last axis; they are divided by their sum.
      shape: shape of the result with its last axis; by default that of ``p`` and ``n``.
      dtype: an integer dtype.

    Returns:
      Array of ``shape`` and ``dtype``, with sums ``n`` along the last axis.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not of integers.
      ShapeError: ``p`` has no axis, or the parameters do not broadcast.

    Example:
      >>> multinomial(np.array([0, 0], np.uint32), 10, np.array([0.0, 1.0])).tolist()
      [0, 10]
    """
    dtype = checked_integer("multinomial", dtype)
    p = p if isinstance(p, Tracer) else np.asarray(p)
    if not shape_of(p) or not shape_of(p)[-1]:
        raise ShapeError(f"random.multinomial: p needs a last axis of outcomes, got {shape_of(p)}")
    n = fnp.asarray(n)
    wanted = None if shape is None else checked_shape("multinomial", shape)
    full, _, [p] = parameters("multinomial", key, wanted, _WIDE, p, lead=(*shape_of(n), 1))
    p, shape = without_derivative(p), full[:-1]
    rest = broadcast_to(cast(n, _WIDE), shape)
    weights = fnp.flip(fnp.cumsum(fnp.flip(p, -1), -1), -1)
    counts = []
    for outcome, own in enumerate(split(key, full[-1])[:-1]):
        below = weights[..., outcome]
        share = fnp.where(below > 0, p[..., outcome] / fnp.where(below > 0, below, 1.0), 0.0)
        count = _binomial(own, rest, fnp.minimum(share, 1.0), shape)
        counts.append(count)
        rest = rest - count
    return cast(fnp.stack([*counts, rest], -1), dtype)
