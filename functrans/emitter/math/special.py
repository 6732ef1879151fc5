"""Special functions.

Here: ``erf`` and ``erfc``; ``gammaln`` and ``digamma`` under the name of this module. Not here: how
the latter are computed (``emitter.math.gamma``).

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import at_most, fitted, format_of, horner, polynomial
from functrans.emitter.math.gamma import digamma as digamma
from functrans.emitter.math.gamma import gammaln as gammaln
from functrans.emitter.math.lanes import polynomial_of
from functrans.emitter.types import Type, Value

BOUNDS = {"erf": 1.75, "erfc": 4.0, "gammaln": 2.5, "digamma": 2.5}
"""The error that no result exceeds, in units of the last place of the exact result."""

# Up to ``_ERF_SPLIT``: erf(x) = x + x P(x^2). From there to ``_ERF_ONE``, where erf rounds to 1:
# -log(erfc(x)) is a polynomial of x - _ERF_SPLIT. Least squares in Chebyshev points; errors of erf
# relative to it 2^-56.4 and 2^-55.4 for float64, 2^-29.2 and 2^-26.8 for float32.
_ERF_SPLIT = {64: 1.1875, 32: 1.0}
_ERF_ONE = {64: 5.95, 32: 4.0}
_ERF = {
    64: fitted(
        "0x1.06eba8214db69p-3", "-0x1.812746b0379f9p-2", "0x1.ce2f21a0432a5p-4",
        "-0x1.b82ce3129b152p-6", "0x1.565bcd1022667p-8", "-0x1.c02db431c8894p-11",
        "0x1.f9a32a6e06d41p-14", "-0x1.f4d280db08811p-17", "0x1.b9e771a78271ep-20",
        "-0x1.5f704489f49a1p-23", "0x1.fc1a4286ee84cp-27", "-0x1.4cca4226144c2p-30",
        "0x1.73eb6b1499f2dp-34", "-0x1.0c17002bbb1ccp-38",
    ),
    32: fitted(
        "0x1.06eba8p-3", "-0x1.81273ep-2", "0x1.ce2cf0p-4", "-0x1.b7f858p-6", "0x1.53ff88p-8",
        "-0x1.a3c8f2p-11", "0x1.48ec9ap-14",
    ),
}  # fmt: skip
_MINUS_LOG_ERFC = {
    64: fitted(
        "0x1.2fe988e9ef85dp+1", "0x1.7ac9251897df2p+1", "0x1.ba9f0e2accaedp-1",
        "0x1.1c41093698d0fp-5", "-0x1.10422665b57e9p-7", "0x1.bdafa0f52df8ep-10",
        "-0x1.0601b47170844p-12", "0x1.003aa47c65baep-18", "0x1.d873c182ef994p-17",
        "-0x1.a2ec9faa0fed2p-18", "0x1.d55d7d3ac31f5p-20", "-0x1.7c436a921e39cp-22",
        "0x1.b3d5d2422afa0p-25", "-0x1.3d0f290316f1cp-28", "0x1.b68d2c2e21219p-33",
    ),
    32: fitted(
        "0x1.d97fc0p+0", "0x1.51c99ep+1", "0x1.afaecap-1", "0x1.53a6a4p-5", "-0x1.42354ap-7",
        "0x1.d4b640p-10", "-0x1.720f8ep-13",
    ),
}  # fmt: skip

# exp(x^2) erfc(x) (x + K) is a polynomial of w = (x - K) / (x + K) for 0 <= x <= _ERFC_ZERO, where
# erfc rounds to zero. The variable is that of Shepherd and Laframboise, Chebyshev approximation of
# (1 + 2x) exp(x^2) erfc x, Math. Comp. 36 (1981). Each K was chosen such that the first two
# coefficients lose next to nothing to rounding. Least squares in Chebyshev points, errors relative
# to erfc 2^-54.8 and 2^-28.2.
_ERFC_NEAR = 0.5
_ERFC_CENTRE = {64: float.fromhex("0x1.e0f54p+1"), 32: float.fromhex("0x1.4070cp+1")}
_ERFC_ZERO = {64: 27.5, 32: 10.3}
_ERFC = {
    64: fitted(
        "0x1.1790f25b4c16ap+0", "-0x1.eb2b994c96dbbp-1", "0x1.799923c459da4p-1",
        "-0x1.f7db6f42b23d3p-2", "0x1.1f5fe3be287ddp-2", "-0x1.10c41070faabcp-3",
        "0x1.988e02f4646bdp-5", "-0x1.a63caff5bfd9cp-7", "0x1.1f438de72dea4p-10",
        "0x1.9a638f5ecdddbp-11", "-0x1.760d4839fe975p-12", "0x1.f4a4f9ff9e27fp-17",
        "0x1.3862ab03f81a9p-15", "-0x1.3cb59213991a2p-17", "-0x1.a5e52f374ddbap-19",
        "0x1.c902795485fa4p-20", "0x1.10d4668af68e2p-22", "-0x1.1590f6082915ap-22",
        "-0x1.b19ce05dd2790p-26", "0x1.15714d485a25ep-25", "0x1.beef640a83fd7p-29",
        "-0x1.015e1c5e7648dp-29",
    ),
    32: fitted(
        "0x1.0de042p+0", "-0x1.9c50fap-1", "0x1.d1e62ep-2", "-0x1.60b948p-3", "0x1.d92a26p-6",
        "0x1.0f743ep-7", "-0x1.3d44b8p-8", "-0x1.bcdf10p-12", "0x1.573370p-11", "0x1.e9514ap-15",
        "-0x1.a85cb2p-15",
    ),
}  # fmt: skip

# (exp(r) - 1 - r) / r^2 for |r| <= log(2)/2. Least squares in Chebyshev points, errors relative to
# exp(r) 2^-57.6 and 2^-28.0.
_EXP = {
    64: fitted(
        "0x1.000000000000cp-1", "0x1.5555555555516p-3", "0x1.555555554fe59p-5",
        "0x1.1111111120de0p-7", "0x1.6c16c185eeaaap-10", "0x1.a01a014ee5450p-13",
        "0x1.a019960227738p-16", "0x1.71ded4c954341p-19", "0x1.28b0b47908226p-22",
        "0x1.adfd93bffeeb1p-26",
    ),
    32: fitted(
        "0x1.fffff8p-2", "0x1.55548ep-3", "0x1.555b98p-5", "0x1.123bdep-7", "0x1.685188p-10"
    ),
}  # fmt: skip
_LOG2_E = float.fromhex("0x1.71547652b82fep+0")


def erf(b: Builder, x: Value) -> Value:
    """Error function."""
    width = x.type.bits
    magnitude = at_most(b, b.fabs(x), _ERF_ONE[width])
    split = b.const(x, _ERF_SPLIT[width])
    is_small = b.fcmp("olt", magnitude, split)
    t = b.select(is_small, b.fmul(magnitude, magnitude), b.fsub(magnitude, split))
    p = polynomial_of(b, is_small, t, _ERF[width], _MINUS_LOG_ERFC[width])
    near = b.fma(magnitude, p, magnitude)
    # Where the second polynomial was taken its values are in [1, 37], else in [-1, 1].
    q, exponent = _exponential(b, b.fneg(p))
    power = _power_of_two(b, exponent)
    far = b.fma(b.fneg(q), power, b.fsub(b.const(x, 1.0), power))
    return b.copysign(b.select(is_small, near, far), x)


def erfc(b: Builder, x: Value) -> Value:
    """Complement of the error function, ``1 - erf(x)``."""
    width = x.type.bits
    magnitude = at_most(b, b.fabs(x), _ERFC_ZERO[width])
    one, centre = b.const(x, 1.0), b.const(x, _ERFC_CENTRE[width])
    # 1 / (x + K) with what rounding takes from the sum and from the quotient.
    below = b.fadd(magnitude, centre)
    part = b.fsub(below, centre)
    below_rest = b.fadd(b.fsub(magnitude, part), b.fsub(centre, b.fsub(below, part)))
    inverse = b.fdiv(one, below)
    minus = b.fneg(inverse)
    error = b.fma(minus, below, one)
    inverse_rest = b.fmul(inverse, b.fma(minus, below_rest, error))
    # w = 1 - 2 K / (x + K). Even and odd powers apart would be several times their sum.
    slope = b.const(x, -2 * _ERFC_CENTRE[width])
    w = b.fadd(b.fma(inverse, slope, one), b.fmul(inverse_rest, slope))
    scaled = b.fmul(b.fadd(inverse, inverse_rest), horner(b, w, _ERFC[width]))

    minus = b.fneg(magnitude)
    square = b.fmul(minus, magnitude)
    square_rest = b.fma(minus, magnitude, b.fneg(square))
    q, exponent = _exponential(b, square)
    q = b.fadd(q, b.fma(q, square_rest, square_rest))
    # The power of two in two parts, since the result may be subnormal.
    half = b.ashr(exponent, b.const(exponent, 1))
    tail = b.fmul(b.fma(q, scaled, scaled), _power_of_two(b, half))
    tail = b.fmul(tail, _power_of_two(b, b.sub(exponent, half)))
    is_negative = b.fcmp("olt", x, b.const(x, 0.0))
    far = b.select(is_negative, b.fsub(b.const(x, 2.0), tail), tail)
    # Near 0 the difference is exact enough, and the exponential's error does not come in.
    near = b.fsub(one, b.fma(x, horner(b, b.fmul(x, x), _ERF[width]), x))
    return b.select(b.fcmp("olt", magnitude, b.const(x, _ERFC_NEAR)), near, far)


def _exponential(b: Builder, x: Value) -> tuple[Value, Value]:
    """``(q, n)`` with ``exp(x) = (1 + q) 2^n`` and an integer ``n``, for a bounded ``x``."""
    form = format_of(x)
    shifter = b.const(x, form.shifter)
    shifted = b.fma(x, b.const(x, _LOG2_E), shifter)
    n = b.fsub(shifted, shifter)
    r = b.fma(n, b.const(x, -form.ln2_high), x)
    r = b.fma(n, b.const(x, -form.ln2_low), r)
    q = b.fma(b.fmul(r, r), polynomial(b, r, _EXP[x.type.bits]), r)
    return q, b.sub(b.bits(shifted), b.bits(shifter))


def _power_of_two(b: Builder, exponent: Value) -> Value:
    """``2^n`` of an integer within the range of exponents, as a float of the same width."""
    form = format_of(Value("", Type("f", exponent.type.bits)))
    biased = b.add(exponent, b.const(exponent, form.bias))
    return b.from_bits(b.shl(biased, b.const(exponent, form.mantissa)))
