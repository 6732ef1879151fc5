"""What the functions of vector math share.

Here: the numbers that describe the two floating formats, clamping, polynomials. Not here: the
functions.

Layer: ``emitter``.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.emitter.builder import Builder
from functrans.emitter.types import Value
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating format.

    Attributes:
      mantissa: stored bits of the mantissa.
      bias: what is added to an exponent before it is stored.
      shifter: ``1.5 * 2**mantissa``. A small number added to it is rounded to an integer, which
        then stands in the low bits of the sum, in two's complement.
      tiny: the smallest normal number.
      ln2_high: ln 2 with so few bits that its product with any exponent is exact.
      ln2_low: ln 2 less ``ln2_high``.
    """

    mantissa: int
    bias: int
    shifter: float
    tiny: float
    ln2_high: float
    ln2_low: float


FLOAT32 = Format(
    mantissa=23,
    bias=127,
    shifter=1.5 * 2.0**23,
    tiny=2.0**-126,
    ln2_high=float.fromhex("0x1.62e4p-1"),
    ln2_low=float.fromhex("0x1.7f7d1cp-20"),
)
FLOAT64 = Format(
    mantissa=52,
    bias=1023,
    shifter=1.5 * 2.0**52,
    tiny=2.0**-1022,
    ln2_high=float.fromhex("0x1.62e42fefa38p-1"),
    ln2_low=float.fromhex("0x1.ef35793c7673p-45"),
)


def format_of(x: Value) -> Format:
    """The format of a value's elements."""
    return FLOAT64 if x.type.bits == 64 else FLOAT32


def fitted(*coefficients: str) -> tuple[float, ...]:
    """A table of coefficients, lowest order first, from hexadecimal notation."""
    return tuple(float.fromhex(c) for c in coefficients)


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial: even and odd powers by Horner's rule, side by side.

    Two chains measured faster than one, which waits for itself, and than four or Estrin's scheme,
    which copy more constants.

    Args:
      b: where to write.
      x: its argument.
      coefficients: lowest order first, two at least.
    """
    square = b.fmul(x, x)
    even, odd = horner(b, square, coefficients[::2]), horner(b, square, coefficients[1::2])
    return b.fma(x, odd, even)


def horner(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial by Horner's rule; coefficients as for :func:`polynomial`."""
    *rest, last = coefficients
    result = b.const(x, last)
    for coefficient in reversed(rest):
        result = b.fma(result, x, b.const(x, coefficient))
    return result


def at_most(b: Builder, x: Value, limit: float) -> Value:
    """The smaller of a value and a number; NaN stays NaN."""
    bound = b.const(x, limit)
    return b.select(b.fcmp("olt", bound, x), bound, x)


def at_least(b: Builder, x: Value, limit: float) -> Value:
    """The larger of a value and a number; NaN stays NaN."""
    bound = b.const(x, limit)
    return b.select(b.fcmp("ogt", bound, x), bound, x)


def power_of_two(b: Builder, shifted: Value) -> Value:
    """``2**n`` of an integer ``n`` that was rounded by adding it to ``shifter + bias``."""
    bits = b.bits(shifted)
    return b.from_bits(b.shl(bits, b.const(bits, format_of(shifted).mantissa)))


def times_power_of_two(b: Builder, q: Value, shifted: Value, factor: float = 1.0) -> Value:
    """``(1 + q) 2**n factor``, rounded to a subnormal number or infinity where it must.

    The power is a product of two, so that both are normal numbers. The shift right is logical:
    what it brings in at the top, the shift left pushes out.

    Args:
      b: where to write.
      q: a number between -1/2 and 1.
      shifted: ``n`` rounded by adding it to ``shifter``.
      factor: between 1 and 2.
    """
    form = format_of(q)
    bits = b.bits(shifted)
    mantissa = b.const(bits, form.mantissa)
    one = form.bias << form.mantissa
    start = one + int((factor - 1.0) * (1 << form.mantissa))
    half = b.lshr(bits, b.const(bits, 1))
    first = b.from_bits(b.add(b.shl(half, mantissa), b.const(bits, start)))
    second = b.from_bits(b.add(b.shl(b.sub(bits, half), mantissa), b.const(bits, one)))
    return b.fmul(b.fma(q, first, first), second)
