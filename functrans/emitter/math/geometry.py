"""Lengths.

Here: ``hypot``. Not here: angles (``emitter.math.inverse_trigonometry``).

Layer: ``emitter``.
"""

from __future__ import annotations

import math

from functrans.emitter.builder import Builder
from functrans.emitter.types import Value

BOUNDS = {"hypot": 1.5}
"""The error that no result exceeds, in units of the last place of the exact result."""

# Outside of the first two a square may overflow, or lose digits that count; the third, a power of
# two, brings all numbers beyond inside.
_SAFE = {64: (2.0**-450, 2.0**500, 2.0**600), 32: (2.0**-50, 2.0**60, 2.0**80)}


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """``sqrt(x^2 + y^2)`` without overflow on the way; infinity beside a NaN, as in NumPy and C."""
    x, y = b.fabs(x), b.fabs(y)
    is_first = b.fcmp("ogt", x, y)
    large, small = b.select(is_first, x, y), b.select(is_first, y, x)
    low, high, factor = _SAFE[x.type.bits]
    one = b.const(x, 1.0)
    is_low = b.fcmp("olt", large, b.const(x, low))
    is_high = b.fcmp("ogt", large, b.const(x, high))
    up, down = b.const(x, factor), b.const(x, 1 / factor)
    scale = b.select(is_high, down, b.select(is_low, up, one))
    inverse = b.select(is_high, up, b.select(is_low, down, one))
    large, small = b.fmul(large, scale), b.fmul(small, scale)
    length = b.fmul(b.sqrt(b.fma(large, large, b.fmul(small, small))), inverse)
    infinity = b.const(x, math.inf)
    is_infinite = b.or_(b.fcmp("oeq", x, infinity), b.fcmp("oeq", y, infinity))
    return b.select(is_infinite, infinity, length)
