"""Uniform and normal numbers, from which the others are made.

Here: ``uniform``, ``normal``, ``randint`` and what they share. Not here: keys (``keys``), other
distributions.

Layer: ``random``. Source: Wichura, Algorithm AS241: the percentage points of the normal
distribution, Applied Statistics 37 (1988), for the normal quantile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.structural import broadcast_to, cast
from functrans.random.keys import (
    Shape,
    checked,
    checked_float,
    checked_integer,
    checked_key,
    checked_shape,
    raw_bits,
    split,
)

_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)  # fmt: skip
_FLANK = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)  # fmt: skip
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def unit(key: object, shape: Shape, dtype: np.dtype) -> Array:
    """Uniform numbers in ``[0, 1)``: multiples of the distance of 1 and its successor."""
    width, digits = 8 * dtype.itemsize, np.finfo(dtype).nmant
    number = raw_bits(key, shape, width)
    number = number >> number.dtype.type(width - digits)
    return cast(number, dtype) * (0.5**digits)


def open_unit(key: object, shape: Shape, dtype: np.dtype) -> Any:
    """Uniform numbers in ``(0, 1)``, the middles of the steps of ``unit``, of 24 bits or more."""
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    half_step = 0.5 ** (np.finfo(wide).nmant + 1)
    return unit(key, shape, wide) + half_step


def _quotient(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: object) -> Any:
    above, below = (_horner(each, r) for each in coefficients)
    return above / below


def _horner(coefficients: tuple[float, ...], r: Any) -> float:
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * r + coefficient
    return value


def normal_of(q: Any) -> Array:
    """The normal quantile of ``q + 1/2``, for ``-1/2 < q < 1/2``.

    It is arithmetic that compiles to a few vector instructions, and keeps the dtype.
    """
    size = fnp.abs(q)
    is_central = size <= 0.425
    centre = q * _quotient(_CENTRE, 0.180625 - q * q)
    r = fnp.sqrt(-fnp.log(0.5 - size))
    outer = fnp.where(r <= 5.0, _quotient(_FLANK, r - 1.6), _quotient(_TAIL, r - 5.0))
    return fnp.where(is_central, centre, fnp.copysign(outer, q))


def standard_normal(key: object, shape: Shape, dtype: np.dtype) -> Any:
    """Standard normal numbers of a real dtype."""
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    low = math.nextafter(-1.0, 0.0) if wide.itemsize == 8 else float(np.nextafter(wide.type(-1), 0))
    u = unit(key, shape, wide) * (1.0 - low) + low
    return cast(normal_of(fnp.maximum(u, low) * 0.5), dtype)


def uniform(
    key: Any,
    shape: object = (),
    dtype: DTypeLike | None = np.float64,
    minval: object = 0.0,
    maxval: object = 1.0,
) -> Any:
    """Numbers uniformly distributed in ``[minval, maxval)``, up to rounding.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a floating dtype.
      minval: lower end; it and the other broadcast to ``shape``. Differentiable.
      maxval: upper end, differentiable.

    Returns:
      Array of ``shape`` and ``dtype``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not floating.
      ShapeError: the ends do not broadcast to ``shape``.

    Example:
      >>> float(uniform(np.array([0, 0], np.uint32)))
      0.41845711171638644
    """
    shape, dtype = checked("uniform", key, shape, dtype)
    low, high = (_fitting("uniform", value, shape, dtype) for value in (minval, maxval))
    return unit(key, shape, dtype) * (high - low) + low


def _fitting(name: str, value: object, shape: Shape, dtype: np.dtype) -> Array:
    """A parameter in the shape of the result."""
    value = value if isinstance(value, Tracer) else np.asarray(value)
    try:
        return broadcast_to(cast(value, dtype), shape)
    except (ShapeError, ValueError):
        raise ShapeError(
            f"random.{name}: a parameter of shape {shape_of(value)} does not broadcast to {shape}"
        ) from None


def normal(key: Any, shape: object = (), dtype: DTypeLike | None = np.float64) -> Array:
    """Standard normal numbers.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a floating or complex dtype. Complex numbers have independent parts of variance 1/2.

    Returns:
      Array of ``shape`` and ``dtype``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` is of integers.

    Example:
      >>> mean, scale = 3.0, 0.5
      >>> sample = mean + scale * normal(np.array([0, 0], np.uint32), (1000,))
      >>> round(float(sample.std()), 1)
      0.5
    """
    checked_key("normal", key)
    shape = checked_shape("normal", shape)
    dtype = checked_float("normal", dtype, has_complex=True)
    if dtype.kind != "c":
        return standard_normal(key, shape, dtype)
    real = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    key_re, key_im = split(key)
    re, im = standard_normal(key_re, shape, real), standard_normal(key_im, shape, real)
    return cast((re + 1j * im) * math.sqrt(0.5), dtype)


def randint(
    key: object, shape: object, minval: object, maxval: object, dtype: DTypeLike | None = np.int64
) -> Array:
    """Integers uniformly distributed in ``[minval, maxval)``.

    Args:
      key: a key.
      shape: shape of the result.
      minval: lower end; it and the other broadcast to ``shape``.
      maxval: upper end, excluded; the largest integer of ``dtype`` plus 1 is allowed. Where it is
        not above ``minval``, the result is ``minval``.
      dtype: an integer dtype.

    Returns:
      Array of ``shape`` and ``dtype``. Twice as many bits are drawn as ``dtype`` has, and at least
      64, so that no number is favoured by a measurable amount.

    Raises:
      TypeError: ``key`` is no key; ends or ``dtype`` are not of integers.
      ShapeError: the ends do not broadcast to ``shape``.

    Example:
      >>> sample = randint(np.array([0, 0], np.uint32), (1000,), -1, 2)
      >>> [int(n) for n in np.unique(sample)]
      [-1, 0, 1]
    """
    checked_key("randint", key)
    shape, dtype = checked_shape("randint", shape), checked_integer("randint", dtype)
    limits = np.iinfo(dtype)
    ends = []
    for value in (minval, maxval):
        value = value if isinstance(value, Tracer) else np.asarray(value)
        if value.dtype.kind not in "iub" and not (value.dtype == object and not value.shape):
            raise TypeError(f"random.randint: ends must be integers, got {value.dtype}{here()}")
        ends.append(value)
    low, high = ends
    reaches_end: Any = False
    if not isinstance(low, Tracer):
        low = np.clip(low, int(limits.min), int(limits.max))
    if not isinstance(high, Tracer):
        reaches_end = high > int(limits.max)
        high = np.clip(high, int(limits.min), int(limits.max))
    low, high = (_fitting("randint", end, shape, dtype) for end in (low, high))
    width = max(32, 8 * dtype.itemsize)  # narrower dtypes are drawn from as many bits
    unsigned = np.dtype(f"uint{width}")
    span = cast(high, unsigned) - cast(low, unsigned)
    span = span + np.asarray(reaches_end, unsigned)
    span = fnp.where((high <= low) & ~np.asarray(reaches_end), unsigned.type(1), span)
    key_high, key_low = split(key)
    upper, lower = raw_bits(key_high, shape, width), raw_bits(key_low, shape, width)
    # A span of 0 is the whole range.
    offset = fnp.where(span == 0, lower, _below(upper, lower, fnp.where(span == 0, 1, span)))
    return cast(low + cast(offset, dtype), dtype)


def _below(upper: Any, lower: Any, span: Any) -> Any:
    """Integers in ``[0, span)`` of numbers of two words; words are u32 or u64.

    The remainder of ``upper * 2**width + lower``, as in JAX, while its arithmetic does not wrap
    round; for u64 and wider spans the number scaled to the span.
    """
    dtype = np.dtype(upper.dtype)
    if dtype == np.uint32:
        wide = np.dtype(np.uint64)
        number = (cast(upper, wide) << wide.type(32)) | cast(lower, wide)
        return cast(number % cast(span, wide), dtype)
    factor = dtype.type(1 << 32) % span
    factor = (factor * factor) % span
    near = ((upper % span) * factor + lower % span) % span
    is_wide = span > dtype.type(1 << 32)
    if not isinstance(is_wide, Tracer) and not np.any(is_wide):
        return near
    from_lower = _high_product(lower, span)
    sums = upper * span + from_lower
    carry = cast(sums < from_lower, dtype)
    return fnp.where(is_wide, _high_product(upper, span) + carry, near)


def _high_product(a: Any, b: Any) -> Any:
    """The upper word of the product of two u64, from products of their halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    cross, other = a_low * b_high, a_high * b_low
    middle = ((a_low * b_low) >> half) + (cross & mask) + (other & mask)
    return a_high * b_high + (cross >> half) + (other >> half) + (middle >> half)
