"""Exponential functions: ``exp``, ``exp2``, ``expm1``.

Here: these, and ``reduced``, the argument reduction and polynomial that hyperbolic functions share.

``x = n ln 2 + r`` with ``|r| <= ln 2 / 2`` and ``n`` an integer; ``exp(r)`` is a polynomial. The
product with ``ln 2`` has two parts, of which the first is exact (Cody & Waite, Software Manual for
the Elementary Functions, 1980, ch. 6). ``n`` is rounded, and later shifted into an exponent,
without a conversion to an integer, which AVX2 lacks for vectors of doubles.

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import (
    at_least,
    at_most,
    fitted,
    format_of,
    polynomial,
    power_of_two,
    times_power_of_two,
)
from functrans.emitter.types import Value

_LOG2_E = float.fromhex("0x1.71547652b82fep+0")

# (exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2, minimax in the error relative to exp(r), which is
# 2**-56.5 for float64 and 2**-28.0 for float32.
_EXP = {
    64: fitted(
        "0x1.0000000000009p-1", "0x1.5555555555558p-3", "0x1.55555555503a0p-5",
        "0x1.111111110f7efp-7", "0x1.6c16c18611db9p-10", "0x1.a01a01b015fc1p-13",
        "0x1.a019938664e2bp-16", "0x1.71ddf69834cdap-19", "0x1.28b43b4f111dbp-22",
        "0x1.af635f16ead2dp-26",
    ),
    32: fitted(
        "0x1.fffffcp-2", "0x1.555492p-3", "0x1.5558f4p-5", "0x1.123a1cp-7", "0x1.6a23a4p-10"
    ),
}  # fmt: skip

# The same for -ln(2)/2 <= r <= 3 ln(2)/4, minimax in the error relative to exp(r) - 1, which is
# 2**-56.7 for float64 and 2**-28.1 for float32.
_EXPM1 = {
    64: fitted(
        "0x1.fffffffffffffp-2", "0x1.555555555553ep-3", "0x1.5555555555ab4p-5",
        "0x1.1111111117adep-7", "0x1.6c16c16a52cebp-10", "0x1.a01a017ea20fap-13",
        "0x1.a01a097706cdcp-16", "0x1.71de6bad9e455p-19", "0x1.27d53e7be7969p-22",
        "0x1.aea42ba5997f0p-26", "0x1.369e9edb44b76p-29",
    ),
    32: fitted(
        "0x1.000000p-1", "0x1.555564p-3", "0x1.5554c8p-5", "0x1.10fa40p-7", "0x1.6d498cp-10",
        "0x1.bfbbc0p-13",
    ),
}  # fmt: skip

# (2**r - 1 - r ln 2) / r**2 for |r| <= 1/2, minimax in the error relative to 2**r, which is
# 2**-56.6 for float64 and 2**-28.0 for float32; before it ln 2 in two parts.
_EXP2 = {
    64: (
        *fitted("0x1.62e42fefa39efp-1", "0x1.abc9e3b39803fp-56"),
        *fitted(
            "0x1.ebfbdff82c5a0p-3", "0x1.c6b08d704a0c3p-5", "0x1.3b2ab6fba0353p-7",
            "0x1.5d87fe78a4726p-10", "0x1.4309130f67eefp-13", "0x1.ffcbfc6c25056p-17",
            "0x1.62bfc48c770f9p-20", "0x1.b524ed52d4475p-24", "0x1.e6228bff026d1p-28",
            "0x1.e9ec20ad87111p-32",
        ),
    ),
    32: (
        *fitted("0x1.62e430p-1", "-0x1.05c610p-29"),
        *fitted(
            "0x1.ebfbdcp-3", "0x1.c6af88p-5", "0x1.3b2e0cp-7", "0x1.5f03d6p-10", "0x1.414eacp-13"
        ),
    ),
}  # fmt: skip

# Beyond which the result is infinite, and below which it is zero; for exp and exp2.
_HIGH = {64: (710.0, 1024.0), 32: (89.0, 128.0)}
_LOW = {64: (-746.0, -1076.0), 32: (-104.5, -151.0)}
# Below which expm1 rounds to -1.
_MINUS_ONE = {64: -38.0, 32: -18.0}


def reduced(
    b: Builder, x: Value, shifter: Value, offset: float = 0.0
) -> tuple[Value, Value, Value]:
    """Reduce the argument of an exponential.

    Args:
      b: where to write.
      x: argument; bounded, or NaN.
      shifter: the format's ``shifter``, and what is to be added to the exponent.
      offset: is added to ``x / ln 2`` before it is rounded.

    Returns:
      ``(r, n, shifted)`` with ``x = n ln 2 + r`` and ``shifted = shifter + n``.
    """
    form = format_of(x)
    if offset:
        scaled = b.fma(x, b.const(x, _LOG2_E), b.const(x, offset))
        shifted = b.fadd(scaled, shifter)
    else:
        shifted = b.fma(x, b.const(x, _LOG2_E), shifter)
    n = b.fsub(shifted, shifter)
    r = b.fma(n, b.const(x, -form.ln2_high), x)
    return b.fma(n, b.const(x, -form.ln2_low), r), n, shifted


def exp(b: Builder, x: Value) -> Value:
    """``e**x``."""
    return exp_below(b, at_most(b, x, _HIGH[x.type.bits][0]))


def exp_below(b: Builder, x: Value) -> Value:
    """``e**x`` for arguments so small that the result is finite."""
    x = at_least(b, x, _LOW[x.type.bits][0])
    r, _, shifted = reduced(b, x, b.const(x, format_of(x).shifter))
    q = b.fma(b.fmul(r, r), polynomial(b, r, _EXP[x.type.bits]), r)
    return times_power_of_two(b, q, shifted)


def exp_times(b: Builder, x: Value, factor: float) -> Value:
    """``factor e**x`` like :func:`exp_below`, a little more accurate; ``1 <= factor < 2``."""
    x = at_least(b, x, _LOW[x.type.bits][0])
    r, n, shifted = reduced(b, x, b.const(x, format_of(x).shifter))
    p = polynomial(b, r, _EXP[x.type.bits])
    q = b.fadd(r, b.fma(b.fmul(r, r), p, _lost(b, x, r, n)))
    return times_power_of_two(b, q, shifted, factor)


def _lost(b: Builder, x: Value, r: Value, n: Value) -> Value:
    """The rounding error of a reduced argument."""
    form = format_of(x)
    exact = b.fma(n, b.const(x, -form.ln2_high), x)
    return b.fma(n, b.const(x, -form.ln2_low), b.fsub(exact, r))


def exp2(b: Builder, x: Value) -> Value:
    """``2**x``."""
    x = at_least(b, at_most(b, x, _HIGH[x.type.bits][1]), _LOW[x.type.bits][1])
    shifter = b.const(x, format_of(x).shifter)
    shifted = b.fadd(x, shifter)
    r = b.fsub(x, b.fsub(shifted, shifter))
    return times_power_of_two(b, exp2m1(b, r), shifted)


def exp2m1(b: Builder, r: Value) -> Value:
    """``2**r - 1`` for ``|r| <= 1/2``, with an error that is small beside 1."""
    first, *rest = _EXP2[r.type.bits]
    return b.fma(r, b.const(r, first), b.fmul(r, polynomial(b, r, rest)))


def expm1(b: Builder, x: Value) -> Value:
    """``e**x - 1``, accurate near zero too."""
    form, bits = format_of(x), x.type.bits
    y = at_least(b, at_most(b, x, _HIGH[bits][0]), _MINUS_ONE[bits])
    # Half of 2**n is finite where the result is.
    shifter = b.const(x, form.shifter + form.bias - 1)
    r, n, shifted = reduced(b, y, shifter)
    # Where e**x is near 1, the rounding error of r counts.
    q = b.fadd(r, expm1_less(b, r, _lost(b, y, r, n)))
    half = power_of_two(b, shifted)
    whole = b.fmul(b.fma(q, half, b.fsub(half, b.const(x, 0.5))), b.const(x, 2.0))
    # Half of a subnormal number may not be one.
    result = b.select(b.fcmp("oeq", n, b.const(x, 0.0)), q, whole)
    return b.copysign(result, x)


def expm1_less(b: Builder, r: Value, addend: Value | None = None) -> Value:
    """``e**r - 1 - r + addend`` for ``-ln(2)/2 <= r <= 3 ln(2)/4``."""
    square, p = b.fmul(r, r), polynomial(b, r, _EXPM1[r.type.bits])
    return b.fmul(square, p) if addend is None else b.fma(square, p, addend)
