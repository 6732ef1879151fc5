"""Sine, cosine and tangent.

Here: ``sin``, ``cos`` and ``tan``. Not here: their inverses
(``emitter.math.inverse_trigonometry``).

The argument is reduced by the nearest multiple of pi/2 in three steps with fma (Cody and Waite,
Software Manual for the Elementary Functions, 1980). Each part of pi/2 has all the digits of the
format: the first step is exact because its product is not rounded and both terms are multiples of
the last place of the first part; the later ones round relative to what is left, so the reduced
argument stays right in relative terms next to the zeros. That is so as long as the multiple is an
exact number and its product with what the three parts leave out is negligible beside the smallest
reduced argument, about 2^-62 for doubles. From ``LARGE`` on an exact reduction in integers takes
over (Payne and Hanek, SIGNUM Newsletter 18, 1983), lane by lane outside the vector code.

Layer: ``emitter``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import format_of, horner
from functrans.emitter.math.lanes import horner_of, lane_by_lane, rarely
from functrans.emitter.types import F64, I64, Type, Value

BOUNDS = {"sin": 1.75, "cos": 1.75, "tan": 1.25}
"""The error that no result exceeds, in units of the last place of the exact result."""

LARGE = {64: 2.0**30, 32: 2.0**17}
"""Magnitude from which on arguments are reduced in integers, by width."""

# Parts of pi/2, each cut off (not rounded) after as many bits as the format has: all are positive,
# so that zeros keep their sign through the reduction.
_HALF_PI = {
    64: (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
    32: (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
}
_INVERSE_HALF_PI = 0.6366197723675814

# For |r| <= pi/4 and t = r^2, minimax in relative error: sin(r) = r + r t S(t), errors 2^-57.9 and
# 2^-27.9; cos(r) = 1 + t C(t), errors 2^-63.6 and 2^-33.0.
_SINE = {
    64: (
        -0.1666666666666663, 0.00833333333332184, -0.00019841269829358498, 2.7557313538613256e-06,
        -2.505073444360374e-08, 1.5895440235695152e-10,
    ),
    32: (-0.16666655242443085, 0.008332189172506332, -0.00019518275803420693),
}  # fmt: skip
_COSINE = {
    64: (
        -0.5, 0.041666666666666595, -0.0013888888888873333, 2.4801587288993463e-05,
        -2.7557314213766735e-07, 2.0875704865355864e-09, -1.1358718026309499e-11,
    ),
    32: (-0.5, 0.04166664555668831, -0.0013887310633435845, 2.4432611098745838e-05),
}  # fmt: skip

# tan(r) = r (1 + t N(t)) / (1 + t D(t)), t = r^2, |r| <= pi/4. Both were found by interpolation in
# Chebyshev points, then D was rounded and N fitted again, minimax in relative error; 2^-61.3 and
# 2^-27.5 with rounded coefficients.
_TANGENT_NUMERATOR = {
    64: (
        -0.1309896684507533,
        0.003117848480115462,
        -1.115034826222633e-05,
        -1.7860873667752395e-08,
    ),
    32: (-0.11130841076374054, 0.0010714991949498653),
}
_TANGENT_DENOMINATOR = {
    64: (-0.46432300178408664, 0.02455884907481112, -0.00025595377024234815),
    32: (-0.44464173913002014, 0.015952076762914658),
}

# The bits of 1/pi after the binary point, behind 64 zeros.
_INVERSE_PI_BITS = (
    0x0000000000000000, 0x517CC1B727220A94, 0xFE13ABE8FA9A6EE0, 0x6DB14ACC9E21C820,
    0xFF28B1D5EF5DE2B0, 0xDB92371D2126E970, 0x0324977504E8C90E, 0x7F0EF58E5894D39F,
    0x74411AFA975DA242, 0x74CE38135A2FBF20, 0x9CC8EB1CC1A99CFA, 0x4E422FC5DEFC941D,
    0x8FFC4BFFEF02CC07, 0xF79788C5AD05368F, 0xB69B3F6793E584DB, 0xA7A31FB34F2FF516,
    0xBA93DD63F5F2F8BD, 0x9E839CFBC5294975, 0x35FDAFD88FC6AE84, 0x2B0198237E3DB5D5,
)  # fmt: skip


def sin(b: Builder, x: Value) -> Value:
    """Sine; NaN for infinities."""
    r, quadrant = _reduce(b, x)
    # Zero is the one number that the last sum would strip of its sign.
    usual = b.select(b.fcmp("oeq", x, b.const(x, 0.0)), x, _sine_reduced(b, r, quadrant))
    return _exact_if_large(b, "sin", x, usual, _sine_large)


def cos(b: Builder, x: Value) -> Value:
    """Cosine; NaN for infinities."""
    r, quadrant = _reduce(b, x)
    usual = _sine_reduced(b, r, b.add(quadrant, b.const(quadrant, 1)))
    return _exact_if_large(b, "cos", x, usual, _cosine_large)


def tan(b: Builder, x: Value) -> Value:
    """Tangent; NaN for infinities."""
    r, rest, quadrant = _reduce_with_rest(b, x)
    usual = _tangent_reduced(b, r, rest, quadrant)
    usual = b.select(b.fcmp("oeq", x, b.const(x, 0.0)), x, usual)
    return _exact_if_large(b, "tan", x, usual, _tangent_large)


def _multiple(b: Builder, x: Value) -> tuple[Value, Value]:
    """The integer nearest to ``x / (pi/2)``, as a float and in the last bits of a word."""
    shifter = b.const(x, format_of(x).shifter)
    shifted = b.fma(x, b.const(x, _INVERSE_HALF_PI), shifter)
    return b.fsub(shifted, shifter), b.bits(shifted)


def _reduce(b: Builder, x: Value) -> tuple[Value, Value]:
    """``x`` less the nearest multiple of pi/2, and the multiple in the last bits of a word."""
    multiple, quadrant = _multiple(b, x)
    r = x
    for part in _HALF_PI[x.type.bits]:
        r = b.fma(multiple, b.const(x, -part), r)
    return r, quadrant


def _reduce_with_rest(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """As :func:`_reduce`, and between both what rounding takes from the reduced argument."""
    multiple, quadrant = _multiple(b, x)
    first, second, third = (b.const(x, part) for part in _HALF_PI[x.type.bits])
    minus = b.fneg(multiple)
    exact = b.fma(minus, first, x)
    product = b.fmul(multiple, second)
    # The difference and its error: ``exact`` is a multiple of the last place of ``product``.
    high = b.fsub(exact, product)
    low = b.fsub(b.fsub(exact, high), product)
    low = b.fsub(low, b.fma(multiple, second, b.fneg(product)))
    low = b.fma(minus, third, low)
    r = b.fadd(high, low)
    return r, b.fadd(b.fsub(high, r), low), quadrant


def _sine_reduced(b: Builder, r: Value, quadrant: Value) -> Value:
    """``sin(r + q pi/2)`` for ``|r| <= pi/4``, with ``q`` in the last two bits of a word."""
    one = b.const(quadrant, 1)
    odd = b.icmp("ne", b.and_(quadrant, one), b.const(quadrant, 0))
    width = r.type.bits
    t = b.fmul(r, r)
    p = horner_of(b, odd, t, _COSINE[width], _SINE[width])
    start = b.select(odd, b.const(r, 1.0), r)
    result = b.fma(b.fmul(start, t), p, start)
    sign = b.shl(b.lshr(quadrant, one), b.const(quadrant, width - 1))
    return b.from_bits(b.xor(b.bits(result), sign))


def _tangent_reduced(b: Builder, r: Value, rest: Value, quadrant: Value) -> Value:
    """``tan(r + rest + q pi/2)`` for ``|r| <= pi/4``, with ``q`` in the last bit of a word.

    Numerator and denominator, which are proportional to sine and cosine of the reduced argument,
    keep what rounding takes from them; so the quotient is right to little more than half an ulp.
    """
    width = r.type.bits
    t = b.fmul(r, r)
    rt = b.fmul(r, t)
    numerator = horner(b, t, _TANGENT_NUMERATOR[width])
    denominator = horner(b, t, _TANGENT_DENOMINATOR[width])
    one = b.const(r, 1.0)
    sine = b.fma(rt, numerator, r)
    cosine = b.fma(t, denominator, one)
    sine_rest = b.fma(rt, numerator, b.fsub(r, sine))
    cosine_rest = b.fma(t, denominator, b.fsub(one, cosine))
    # sin(r + d) = sin(r) + d cos(r), cos(r + d) = cos(r) - d sin(r).
    sine_rest = b.fma(rest, cosine, sine_rest)
    cosine_rest = b.fma(b.fneg(rest), sine, cosine_rest)
    odd = b.icmp("ne", b.and_(quadrant, b.const(quadrant, 1)), b.const(quadrant, 0))
    above = b.select(odd, b.fneg(cosine), sine)
    above_rest = b.select(odd, b.fneg(cosine_rest), sine_rest)
    below = b.select(odd, sine, cosine)
    below_rest = b.select(odd, sine_rest, cosine_rest)
    inverse = b.fdiv(one, below)
    quotient = b.fmul(above, inverse)
    minus = b.fneg(quotient)
    remainder = b.fadd(b.fma(minus, below, above), b.fma(minus, below_rest, above_rest))
    return b.fma(remainder, inverse, quotient)


# large arguments ---------------------------------------------------------------------------------


def _exact_if_large(
    b: Builder, name: str, x: Value, usual: Value, exact: Callable[[Builder, Value], Value]
) -> Value:
    limit = LARGE[x.type.bits]

    def is_large(inner: Builder, y: Value) -> Value:
        return inner.fcmp("oge", inner.fabs(y), inner.const(y, limit))

    def pick(inner: Builder, y: Value) -> Value:
        finite = inner.fcmp("olt", inner.fabs(y), inner.const(y, math.inf))
        return inner.and_(is_large(inner, y), finite)

    return rarely(b, is_large(b, x), usual, lambda: lane_by_lane(b, name, x, usual, pick, exact))


def _sine_large(b: Builder, x: Value) -> Value:
    r, _, quadrant = _reduce_large(b, x)
    result = _sine_reduced(b, r, quadrant)
    return b.select(b.fcmp("olt", x, b.const(x, 0.0)), b.fneg(result), result)


def _cosine_large(b: Builder, x: Value) -> Value:
    r, _, quadrant = _reduce_large(b, x)
    return _sine_reduced(b, r, b.add(quadrant, b.index(1)))


def _tangent_large(b: Builder, x: Value) -> Value:
    result = _tangent_reduced(b, *_reduce_large(b, x))
    return b.select(b.fcmp("olt", x, b.const(x, 0.0)), b.fneg(result), result)


def _reduce_large(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """As :func:`_reduce_with_rest`, of the absolute value of a large double."""
    high, low = _turns(b, b.fabs(x))
    # The nearest multiple of 1/4; what is left is a signed number in units of 2^-128.
    quadrant = b.add(b.lshr(high, b.index(62)), b.and_(b.lshr(high, b.index(61)), b.index(1)))
    high = b.intrinsic("fshl", high, low, b.index(2))
    low = b.shl(low, b.index(2))

    def scaled(operation: str, word: Value, exponent: int) -> Value:
        return b.fmul(b.convert(operation, word, F64), b.const(F64, 2.0**exponent))

    top = scaled("sitofp", b.ashr(high, b.index(32)), -32)
    middle = scaled("uitofp", b.and_(high, b.index((1 << 32) - 1)), -64)
    bottom = scaled("uitofp", low, -128)
    fraction = b.fadd(top, middle)
    fraction_rest = b.fadd(b.fadd(b.fsub(top, fraction), middle), bottom)
    first, second, _ = (b.const(F64, part) for part in _HALF_PI[64])
    product = b.fmul(fraction, first)
    error = b.fma(fraction, first, b.fneg(product))
    tail = b.fadd(error, b.fma(fraction, second, b.fmul(fraction_rest, first)))
    r = b.fadd(product, tail)
    return r, b.fadd(b.fsub(product, r), tail), quadrant


def _turns(b: Builder, x: Value) -> tuple[Value, Value]:
    """``x / pi`` modulo 2 of a positive double, in 128 bits of which the first is the integer.

    ``x`` is ``m 2^e`` with an integer ``m`` of 53 bits. Bits of 1/pi before the e-th give multiples
    of 2 and are left out; the 192 bits from there on leave an error of at most 2^-138.
    """
    wide = Type("i", 128)
    bits = b.bits(x)
    exponent = b.sub(b.lshr(bits, b.index(52)), b.index(1075))
    mantissa = b.or_(b.and_(bits, b.index((1 << 52) - 1)), b.index(1 << 52))
    table = b.module.table(_INVERSE_PI_BITS, I64)
    position = b.add(exponent, b.index(63))
    first = b.element(table, b.lshr(position, b.index(6)), I64)
    words = [b.load(I64, b.element(first, b.index(i), I64)) for i in range(4)]
    shift = b.and_(position, b.index(63))
    window = [
        b.convert("zext", b.intrinsic("fshl", words[i], words[i + 1], shift), wide)
        for i in range(3)
    ]
    m = b.convert("zext", mantissa, wide)
    word = b.const(wide, 64)
    product = b.add(
        b.mul(m, window[1]),
        b.add(b.shl(b.mul(m, window[0]), word), b.lshr(b.mul(m, window[2]), word)),
    )
    high = b.convert("trunc", b.lshr(product, word), I64)
    return high, b.convert("trunc", product, I64)
