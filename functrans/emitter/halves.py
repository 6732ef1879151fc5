"""The 16-bit floats, held in registers as ``float``.

Here: rounding to float16 and bfloat16, and the way between their bits and registers. Not here:
which dtype is which (``emitter.casts``).

All of it is arithmetic on bits: LLVM's ``half`` would be faster where the CPU converts it, but
elsewhere calls functions of a compiler's runtime library that a process need not have.

Layer: ``emitter``.
"""

from __future__ import annotations

import math

from functrans.emitter.builder import Builder
from functrans.emitter.types import F32, F64, I16, I32, Value

# float16: the smallest normal number, a float whose last place is the smallest subnormal one, the
# first power of two that is too large, and the difference of the exponents' biases.
_NORMAL = 2.0**-14
_GRID = 0.5
_TOO_LARGE = 65536.0
_REBIAS = 112


def round_to_half(b: Builder, x: Value) -> Value:
    """The float16 nearest to a float, ties to even."""
    size = b.fabs(x)
    normal = b.from_bits(_round_bits(b, b.bits(size), 13))
    normal = b.select(b.fcmp("oge", normal, b.const(x, _TOO_LARGE)), b.const(x, math.inf), normal)
    grid = b.const(x, _GRID)
    small = b.fsub(b.fadd(size, grid), grid)
    result = b.select(b.fcmp("olt", size, b.const(x, _NORMAL)), small, normal)
    return b.select(b.fcmp("uno", x, x), x, b.copysign(result, x))


def half_bits(b: Builder, x: Value) -> Value:
    """The bits of a float16 in a register."""
    size = b.fabs(x)
    bits = b.bits(size)
    normal = b.sub(b.lshr(bits, b.const(bits, 13)), b.const(bits, _REBIAS << 10))
    grid = b.const(x, _GRID)
    small = b.sub(b.bits(b.fadd(size, grid)), b.bits(grid))
    result = b.select(b.fcmp("olt", size, b.const(x, _NORMAL)), small, normal)
    far = b.fcmp("oeq", size, b.const(x, math.inf))
    result = b.select(far, b.const(bits, 0x7C00), result)
    result = b.select(b.fcmp("uno", x, x), b.const(bits, 0x7E00), result)
    sign = b.and_(b.lshr(b.bits(x), b.const(bits, 16)), b.const(bits, 0x8000))
    return b.convert("trunc", b.or_(result, sign), I16)


def half_from_bits(b: Builder, bits: Value) -> Value:
    """The register of a float16 with these bits."""
    wide = b.convert("zext", bits, I32)
    shifted = b.shl(b.and_(wide, b.const(wide, 0x7FFF)), b.const(wide, 13))
    small = b.from_bits(shifted)
    finite = b.bits(b.fmul(small, b.const(small, 2.0**_REBIAS)))
    exponent = b.const(wide, 0x7C00)
    is_special = b.icmp("eq", b.and_(wide, exponent), exponent)
    size = b.select(is_special, b.or_(shifted, b.const(wide, 0x7F800000)), finite)
    sign = b.shl(b.and_(wide, b.const(wide, 0x8000)), b.const(wide, 16))
    return b.from_bits(b.or_(size, sign))


def round_to_brain(b: Builder, x: Value) -> Value:
    """The bfloat16 nearest to a float, ties to even: its upper half."""
    bits = b.bits(x)
    nan = b.or_(b.and_(bits, b.const(bits, 1 << 31)), b.const(bits, 0x7FC00000))
    return b.from_bits(b.select(b.fcmp("uno", x, x), nan, _round_bits(b, bits, 16)))


def brain_bits(b: Builder, x: Value) -> Value:
    """The bits of a bfloat16 in a register."""
    bits = b.bits(x)
    return b.convert("trunc", b.lshr(bits, b.const(bits, 16)), I16)


def brain_from_bits(b: Builder, bits: Value) -> Value:
    """The register of a bfloat16 with these bits."""
    wide = b.convert("zext", bits, I32)
    return b.from_bits(b.shl(wide, b.const(wide, 16)))


def _round_bits(b: Builder, bits: Value, dropped: int) -> Value:
    """Bits of a float without the last ones, rounded to nearest, ties to even."""
    odd = b.and_(b.lshr(bits, b.const(bits, dropped)), b.const(bits, 1))
    up = b.add(bits, b.add(odd, b.const(bits, (1 << (dropped - 1)) - 1)))
    return b.and_(up, b.const(bits, -(1 << dropped)))


def double_to_float_by_odd(b: Builder, x: Value) -> Value:
    """A double as a float from which rounding to float16 gives what one rounding would.

    It is rounded to odd: of the two floats around an inexact value, the one with the odd last bit
    (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    near = b.convert("fptrunc", x, F32)
    back = b.convert("fpext", near, F64)
    is_inexact = b.fcmp("one", back, x)
    is_larger = b.fcmp("ogt", b.fabs(back), b.fabs(x))
    bits = b.bits(near)
    one = b.const(bits, 1)
    down = b.select(is_larger, b.sub(bits, one), bits)
    return b.from_bits(b.select(is_inexact, b.or_(down, one), bits))
