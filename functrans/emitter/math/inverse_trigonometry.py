"""Inverse sine, cosine and tangent.

Here: ``asin``, ``acos``, ``atan`` and ``atan2``. Not here: ``sin`` and its family
(``emitter.math.trigonometry``).

All four are a multiple of pi/4 plus an odd polynomial of a small number: of the operand or a square
root (arc sine and cosine), of the operand or a quotient (arc tangent). The quotients come from
``atan(u) = pi/4 + atan((u - 1) / (u + 1)) = pi/2 + atan(-1 / u)`` (Cody and Waite, Software Manual
for the Elementary Functions, 1980, ch. 10 and 11). The middle range is [1/2, 2], where ``u - 1`` is
exact.

Layer: ``emitter``.
"""

from __future__ import annotations

import math

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import horner
from functrans.emitter.types import Value

BOUNDS = {"asin": 1.5, "acos": 1.5, "atan": 1.75, "atan2": 2.0}
"""The error that no result exceeds, in units of the last place of the exact result."""

# pi/4, rounded, and what rounding took from it.
_QUARTER_PI = {
    64: (0.7853981633974483, 3.061616997868383e-17),
    32: (0.7853981852531433, -2.1855694143368964e-08),
}

# atan(z) = z + z t P(t), t = z^2, |z| <= 1/2. Least squares in Chebyshev points, relative errors
# 2^-57.6 and 2^-27.3.
_ARC_TANGENT = {
    64: (
        -0.33333333333332954, 0.199999999998974, -0.1428571427595821, 0.11111110643283645,
        -0.09090895876504305, 0.07692068653857906, -0.06663761134537823, 0.058579880068005616,
        -0.05120714339317453, 0.04183099742562236, -0.027383355419103663, 0.010082620351267325,
    ),
    32: (
        -0.33333227038383484, 0.19993974268436432, -0.14172162115573883, 0.10147061198949814,
        -0.05112028494477272,
    ),
}  # fmt: skip

# asin(z) = z + z t P(t), t = z^2, |z| <= 1/2. Minimax in relative error: 2^-55.4 and 2^-27.5.
_ARC_SINE = {
    64: (
        0.16666666666665408, 0.0750000000037363, 0.044642856780956315, 0.03038196155665458,
        0.02237169200197986, 0.017360792699490896, 0.013873773657483652, 0.012248279075987963,
        0.006172352382937957, 0.020533003838880046, -0.017843150067342453, 0.033046943689573796,
    ),
    32: (
        0.16666731238365173, 0.07495957612991333, 0.04540133476257324, 0.024476660415530205,
        0.041713859885931015,
    ),
}  # fmt: skip

# What atan2 multiplies both operands by, by which they are out of the safe range: a power of two.
_SAFE = {64: (2.0**-900, 2.0**1000, 2.0**120), 32: (2.0**-80, 2.0**100, 2.0**60)}


def asin(b: Builder, x: Value) -> Value:
    """Arc sine; NaN outside of [-1, 1]."""
    magnitude = b.fabs(x)
    is_big, t, root = _half_angle(b, magnitude)
    # asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
    lead = b.select(is_big, b.fneg(root), magnitude)
    quarters = b.select(is_big, b.const(x, 2.0), b.const(x, 0.0))
    return b.copysign(_arc(b, quarters, lead, t, horner(b, t, _ARC_SINE[x.type.bits])), x)


def acos(b: Builder, x: Value) -> Value:
    """Arc cosine; NaN outside of [-1, 1]."""
    is_big, t, root = _half_angle(b, b.fabs(x))
    # acos(x) = 2 asin(sqrt((1 - x) / 2)) = pi - 2 asin(sqrt((1 + x) / 2)) = pi/2 - asin(x).
    lead = b.select(is_big, b.copysign(root, x), b.fneg(x))
    is_negative = b.fcmp("olt", x, b.const(x, 0.0))
    ends = b.select(is_negative, b.const(x, 4.0), b.const(x, 0.0))
    quarters = b.select(is_big, ends, b.const(x, 2.0))
    return _arc(b, quarters, lead, t, horner(b, t, _ARC_SINE[x.type.bits]))


def atan(b: Builder, x: Value) -> Value:
    """Arc tangent."""
    magnitude = b.fabs(x)
    one, zero = b.const(x, 1.0), b.const(x, 0.0)
    is_middle = b.fcmp("ogt", magnitude, b.const(x, 0.5))
    is_big = b.fcmp("ogt", magnitude, b.const(x, 2.0))
    above = b.select(is_middle, b.fsub(magnitude, one), magnitude)
    above = b.select(is_big, b.const(x, -1.0), above)
    below = b.select(is_middle, b.fadd(magnitude, one), one)
    below = b.select(is_big, magnitude, below)
    quarters = b.select(is_big, b.const(x, 2.0), b.select(is_middle, one, zero))
    return b.copysign(_arc_of_quotient(b, quarters, above, below), x)


def atan2(b: Builder, y: Value, x: Value) -> Value:
    """Angle of the point ``(x, y)``; infinities and zeros as in NumPy and C."""
    zero, one = b.const(x, 0.0), b.const(x, 1.0)
    width, height = b.fabs(x), b.fabs(y)
    is_steep = b.fcmp("ogt", height, width)
    small = b.select(is_steep, width, height)
    large = b.select(is_steep, height, width)
    # Two infinities count as equal, and beside one a finite number counts as zero.
    infinity = b.const(x, math.inf)
    is_infinite = b.fcmp("oeq", large, infinity)
    ratio = b.select(b.fcmp("oeq", small, infinity), one, zero)
    small = b.select(is_infinite, ratio, small)
    large = b.select(b.or_(is_infinite, b.fcmp("oeq", large, zero)), one, large)
    low, high, factor = _SAFE[x.type.bits]
    scale = b.select(b.fcmp("olt", large, b.const(x, low)), b.const(x, factor), one)
    scale = b.select(b.fcmp("ogt", large, b.const(x, high)), b.const(x, 1 / factor), scale)
    small, large = b.fmul(small, scale), b.fmul(large, scale)

    is_middle = b.fcmp("ogt", small, b.fmul(large, b.const(x, 0.5)))
    above = b.select(is_middle, b.fsub(small, large), small)
    below = b.select(is_middle, b.fadd(small, large), large)
    quarters = b.select(is_middle, one, zero)
    quarters = b.select(is_steep, b.fsub(b.const(x, 2.0), quarters), quarters)
    is_left = b.icmp("slt", b.bits(x), b.const(x.type.integer, 0))
    quarters = b.select(is_left, b.fsub(b.const(x, 4.0), quarters), quarters)
    above = b.select(b.xor(is_steep, is_left), b.fneg(above), above)
    angle = b.copysign(_arc_of_quotient(b, quarters, above, below), y)
    return b.select(b.fcmp("uno", x, y), b.fadd(x, y), angle)


def _half_angle(b: Builder, magnitude: Value) -> tuple[Value, Value, Value]:
    """For the arc sine: whether a number is above 1/2, ``t``, and twice the root of ``t``."""
    half = b.const(magnitude, 0.5)
    is_big = b.fcmp("ogt", magnitude, half)
    rest = b.fma(magnitude, b.const(magnitude, -0.5), half)
    root = b.fmul(b.const(magnitude, 2.0), b.sqrt(rest))
    return is_big, b.select(is_big, rest, b.fmul(magnitude, magnitude)), root


def _arc_of_quotient(b: Builder, quarters: Value, above: Value, below: Value) -> Value:
    """``quarters * pi/4 + atan(above / below)`` for quotients up to 1/2."""
    z = b.fdiv(above, below)
    t = b.fmul(z, z)
    return _arc(b, quarters, z, t, horner(b, t, _ARC_TANGENT[z.type.bits]))


def _arc(b: Builder, quarters: Value, lead: Value, t: Value, p: Value) -> Value:
    """``quarters * pi/4 + lead + lead t p``, where the first is zero or the largest term."""
    high, low = (b.const(lead, part) for part in _QUARTER_PI[lead.type.bits])
    start = b.fmul(quarters, high)
    rest = b.fma(quarters, low, b.fma(quarters, high, b.fneg(start)))
    total = b.fadd(start, lead)
    error = b.fadd(b.fsub(start, total), lead)
    return b.fadd(total, b.fadd(error, b.fma(b.fmul(lead, t), p, rest)))
