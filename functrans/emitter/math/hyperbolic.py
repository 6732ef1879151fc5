"""Hyperbolic functions and their inverses, the logistic function and ``softplus``.

Here: ``sinh``, ``cosh``, ``tanh``, ``asinh``, ``acosh``, ``atanh``, ``expit``, ``softplus``. Not
here: the exponential and the logarithm they rest on (``exponential``, ``logarithm``).

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import at_least, at_most, fitted, format_of, horner, power_of_two
from functrans.emitter.math.exponential import exp_below, exp_times, expm1_less, reduced
from functrans.emitter.math.lanes import rarely
from functrans.emitter.math.logarithm import log1p_sum
from functrans.emitter.types import Value

_INFINITY = float("inf")
_NAN = float("nan")

# With this offset, ``a >= 0`` is reduced to -ln(2)/4 <= r <= 3 ln(2)/4. For ``n = 1``, the parts of
# sinh(a) and expm1(a) then do not cancel as much as with |r| <= ln(2)/2.
_OFFSET = -0.25

# (cosh(r) - 1) / r**2 in powers of r**2 for |r| <= 3 ln(2)/4; minimax, the error of cosh(r) is
# below 2**-61 for float64 and 2**-29 for float32.
_COSH = {
    64: fitted(
        "0x1.0000000000000p-1", "0x1.5555555555584p-5", "0x1.6c16c16bfe204p-10",
        "0x1.a01a020d09410p-16", "0x1.27e432f3ae042p-22", "0x1.20381deb9dcf7p-29",
    ),
    32: fitted("0x1.000004p-1", "0x1.555038p-5", "0x1.6fcdbep-10"),
}  # fmt: skip
# (sinh(r) - r) / r**3 likewise; the error relative to sinh(r) is below 2**-63 and 2**-32.
_SINH = {
    64: fitted(
        "0x1.5555555555555p-3", "0x1.111111111126dp-7", "0x1.a01a019fabd5bp-13",
        "0x1.71de3b4cc7f9dp-19", "0x1.ae6236fa1bf34p-26", "0x1.635895aead499p-33",
    ),
    32: fitted("0x1.555556p-3", "0x1.110fa0p-7", "0x1.a2d682p-13"),
}  # fmt: skip

# Beyond which sinh and cosh are infinite.
_HIGH = {64: 710.6, 32: 89.6}
# Beyond which tanh rounds to 1.
_ONE = {64: 20.0, 32: 10.0}

# Slopes of tanh and expit below which they are computed from the operand.
_SMALL_SLOPE = 1 / 256
# -tanh(x / 2) / x in powers of x**2, for |x| < 1 / 256.
_TILT = (-1 / 2, 1 / 24, -1 / 240, 17 / 40320)


def _halves(b: Builder, a: Value, offset: float) -> tuple[Value, Value, Value, Value, Value]:
    """What ``sinh`` and ``cosh`` of ``a >= 0`` are made of, without a division.

    ``a = n ln 2 + r``; ``cosh(a) = C cosh(r) + S sinh(r)`` and ``sinh(a) = S cosh(r) + C sinh(r)``
    with ``C, S = (2**n +- 2**-n) / 2``.

    Returns:
      ``cosh(r) - 1``, ``sinh(r)``, ``C / 4``, ``S / 4`` (so that they are finite), ``n``.
    """
    form, bits = format_of(a), a.type.bits
    a = at_most(b, a, _HIGH[bits])
    shifter = b.const(a, form.shifter + form.bias - 3)
    r, n, shifted = reduced(b, a, shifter, offset)
    z = b.fmul(r, r)
    cosh_less_1 = b.fmul(z, horner(b, z, _COSH[bits]))
    sinh_r = b.fma(b.fmul(z, r), horner(b, z, _SINH[bits]), r)
    growing = power_of_two(b, shifted)
    # Where it is bounded, 2**-n does not count.
    falling = power_of_two(b, b.fsub(shifter, at_most(b, n, 100.0)))
    return cosh_less_1, sinh_r, b.fadd(growing, falling), b.fsub(growing, falling), n


def sinh(b: Builder, x: Value) -> Value:
    """Hyperbolic sine."""
    cosh_less_1, sinh_r, c, s, n = _halves(b, b.fabs(x), _OFFSET)
    quarter = b.fadd(s, b.fma(s, cosh_less_1, b.fmul(c, sinh_r)))
    result = b.fmul(quarter, b.const(x, 4.0))
    # A quarter of a subnormal number may not be one.
    result = b.select(b.fcmp("oeq", n, b.const(x, 0.0)), sinh_r, result)
    return b.copysign(result, x)


def cosh(b: Builder, x: Value) -> Value:
    """Hyperbolic cosine."""
    cosh_less_1, sinh_r, c, s, _ = _halves(b, b.fabs(x), 0.0)
    quarter = b.fadd(c, b.fma(c, cosh_less_1, b.fmul(s, sinh_r)))
    return b.fmul(quarter, b.const(x, 4.0))


def tanh(b: Builder, x: Value) -> Value:
    """Hyperbolic tangent: ``e / (e + 2)`` with ``e = expm1(2 |x|)``.

    Where ``2 a = 2 |x|`` is not reduced, ``e = 2 a + w`` with a small ``w``, and the quotient is
    ``a + (w - a e) / (e + 2)``, of which only the last sum has a rounding error that counts.
    """
    form, zero = format_of(x), b.const(x, 0.0)
    a = at_most(b, b.fabs(x), _ONE[x.type.bits])
    shifter = b.const(x, form.shifter + form.bias)
    r, n, shifted = reduced(b, b.fadd(a, a), shifter, _OFFSET)
    w = expm1_less(b, r)
    q = b.fadd(r, w)
    scale = power_of_two(b, shifted)
    e = b.fma(q, scale, b.fsub(scale, b.const(x, 1.0)))
    near = b.fcmp("oeq", n, zero)
    numerator = b.select(near, b.fma(b.fneg(a), e, w), e)
    quotient = b.fdiv(numerator, b.fadd(e, b.const(x, 2.0)))
    return b.copysign(b.fadd(b.select(near, a, zero), quotient), x)


def tanh_slope(b: Builder, x: Value, y: Value) -> Value:
    """``1 - y**2`` of ``y = tanh(x)``; where it is small by ``e = exp(-2 |x|)``."""

    def tail() -> Value:
        a = b.fabs(x)
        q = _bell(b, b.fneg(b.fadd(a, a)))
        return b.select(is_tail, b.fmul(q, b.const(x, 4.0)), slope)

    slope = b.fma(b.fneg(y), y, b.const(x, 1.0))
    is_tail = b.fcmp("olt", slope, b.const(x, _SMALL_SLOPE))
    return rarely(b, is_tail, slope, tail)


def expit_slope(b: Builder, x: Value, y: Value) -> Value:
    """``y - y**2`` for ``y = expit(x)``; where it is small on the right ``e / (1 + e)**2``."""
    one = b.const(x, 1.0)
    rest = b.fsub(one, y)
    slope = b.fmul(y, rest)
    is_tail = b.fcmp("olt", rest, b.const(x, _SMALL_SLOPE))
    return rarely(b, is_tail, slope, lambda: b.select(is_tail, _bell(b, b.fneg(b.fabs(x))), slope))


def expit_tilt(b: Builder, x: Value, y: Value) -> Value:
    """``1 - 2 y`` for ``y = expit(x)``; where it is small ``-tanh(x / 2)``, by its series."""
    tilt = b.fma(y, b.const(x, -2.0), b.const(x, 1.0))
    is_near = b.fcmp("olt", b.fabs(x), b.const(x, _SMALL_SLOPE))
    near = b.fmul(x, horner(b, b.fmul(x, x), _TILT))
    return b.select(is_near, near, tilt)


def _bell(b: Builder, x: Value) -> Value:
    """``e / (1 + e)**2`` with ``e = exp(x)``."""
    e = exp_below(b, x)
    total = b.fadd(b.const(x, 1.0), e)
    return b.fdiv(e, b.fmul(total, total))


def expit(b: Builder, x: Value) -> Value:
    """The logistic function ``1 / (1 + exp(-x))``; left of zero ``e / (1 + e)``, ``e = exp(x)``.

    Both parts of the fraction are multiplied by 3/2. The relative error of a sum a little above 1
    is twice that of one below 2, and ``1 + e`` is a little above 1 for most arguments.
    """
    factor = b.const(x, 1.5)
    e = exp_times(b, b.fneg(b.fabs(x)), 1.5)
    numerator = b.select(b.fcmp("olt", x, b.const(x, 0.0)), e, factor)
    return b.fdiv(numerator, b.fadd(factor, e))


def softplus(b: Builder, x: Value) -> Value:
    """``log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))``."""
    e = exp_below(b, b.fneg(b.fabs(x)))
    return b.fadd(at_least(b, x, 0.0), log1p_sum(b, e))


def _doubled_if_large(b: Builder, x: Value) -> tuple[Value, Value]:
    """Whether ``x`` is so large that a formula turns to ``log(2 x)``, and 1 or 0 accordingly."""
    large = b.fcmp("ogt", x, b.const(x, 2.0**60))
    return large, b.select(large, b.const(x, 1.0), b.const(x, 0.0))


def asinh(b: Builder, x: Value) -> Value:
    """Inverse hyperbolic sine: ``log1p(a + a**2 / (1 + sqrt(1 + a**2)))`` with ``a = |x|``."""
    one = b.const(x, 1.0)
    a = b.fabs(x)
    large, exponent = _doubled_if_large(b, a)
    square = b.fmul(a, a)
    root = b.sqrt(b.fma(a, a, one))
    excess = b.select(large, b.const(x, 0.0), b.fdiv(square, b.fadd(root, one)))
    y = b.fadd(a, excess)
    result = log1p_sum(b, y, b.fadd(b.fsub(a, y), excess), exponent)
    result = b.select(b.fcmp("olt", a, b.const(x, _INFINITY)), result, a)
    return b.copysign(result, x)


def acosh(b: Builder, x: Value) -> Value:
    """Inverse hyperbolic cosine: ``log1p(t + sqrt(t**2 + 2 t))`` with ``t = x - 1``."""
    one = b.const(x, 1.0)
    large, exponent = _doubled_if_large(b, x)
    t = b.fsub(x, one)
    root = b.sqrt(b.fma(t, t, b.fadd(t, t)))
    root = b.select(large, b.const(x, 0.0), root)
    y = b.fadd(root, t)
    result = log1p_sum(b, y, b.fadd(b.fsub(root, y), t), exponent)
    result = b.select(b.fcmp("olt", x, b.const(x, _INFINITY)), result, x)
    return b.select(b.fcmp("olt", x, one), b.const(x, _NAN), result)


def atanh(b: Builder, x: Value) -> Value:
    """Inverse hyperbolic tangent: ``log1p(2 a / (1 - a)) / 2`` with ``a = |x|``."""
    one = b.const(x, 1.0)
    a = b.fabs(x)
    twice = b.fadd(a, a)
    d = b.fsub(one, a)
    d_low = b.fsub(b.fsub(one, d), a)
    q = b.fdiv(twice, d)
    # What the quotient leaves, divided by 1 - a: 1 / (1 - a) = 1 + q / 2.
    left = b.fsub(b.fma(b.fneg(q), d, twice), b.fmul(q, d_low))
    q_low = b.fmul(left, b.fma(q, b.const(x, 0.5), one))
    result = b.fmul(log1p_sum(b, q, q_low), b.const(x, 0.5))
    beyond = b.select(b.fcmp("oeq", a, one), b.const(x, _INFINITY), b.const(x, _NAN))
    return b.copysign(b.select(b.fcmp("olt", a, one), result, beyond), x)
