"""Powers and roots: ``pow``, ``cbrt``.

Here: these. Not here: powers with a constant integer exponent, which are products, and ``sqrt``,
which is an instruction.

``x**y = 2**(y log2(x))``. An absolute error of the exponent is a relative error of the result, and
the exponent may be 1074: for float64 the logarithm is a sum of two doubles, right to 2**-64. The
rounding error of a product is found with an fma (Dekker, A floating-point technique for extending
the available precision, Numer. Math. 18, 1971; Markstein, IA-64 and Elementary Functions, 2000).
float32 is computed in float64.

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import (
    FLOAT64,
    at_least,
    at_most,
    fitted,
    format_of,
    polynomial,
    power_of_two,
    times_power_of_two,
)
from functrans.emitter.math.exponential import exp2m1
from functrans.emitter.math.logarithm import SplitNumber, split, split_positive
from functrans.emitter.types import F32, F64, Value

_INFINITY = float("inf")
_NAN = float("nan")

# log2(1 + f) = s (A0 + A1 z + z**2 T(z)) with s = f / (2 + f), z = s**2; A0 = 2 / ln 2 and
# A1 = 2 / (3 ln 2) in two parts, T minimax for 0 <= z <= 0.02944; the error relative to the sum is
# 2**-65.6.
_A0 = fitted("0x1.71547652b82fep+1", "0x1.777d0ffda0d24p-55")
_A1 = fitted("0x1.ec709dc3a03fdp-1", "0x1.d27f05548af0cp-55")
_LOG2_TAIL = fitted(
    "0x1.2776c50ef9c31p-1", "0x1.a61762a78a5e4p-2", "0x1.484b14037db6fp-2", "0x1.0c9a6d1baea42p-2",
    "0x1.c69c8051ce692p-3", "0x1.87f230bfc0c00p-3", "0x1.83b4544f61291p-3",
)  # fmt: skip
# For results in float32: log2(1 + f) / s, relative error 2**-37.8, and (2**r - 1) / r for
# |r| <= 1/2, error relative to 2**r 2**-27.9.
_ROUGH_LOG2 = fitted(
    "0x1.71547652beef9p+1", "0x1.ec709d119b8dap-1", "0x1.277780c0105a1p-1", "0x1.a58d26ea306d9p-2",
    "0x1.5cef51d094368p-2",
)  # fmt: skip
_ROUGH_EXP2M1 = fitted(
    "0x1.62e431713b79ep-1", "0x1.ebfbe07db8730p-3", "0x1.c6ae2b5223794p-5", "0x1.3b29e3a986a38p-7",
    "0x1.5f8932e52b056p-10", "0x1.446ca23393c1cp-13",
)  # fmt: skip


def _log2(b: Builder, parts: SplitNumber) -> tuple[Value, Value]:
    """``k + log2(m)`` as a sum of two doubles."""
    one = b.const(parts.m, 1.0)
    half = b.const(parts.m, 0.5)
    f = b.fsub(parts.m, one)
    # s = f / (2 + f), with what the sum and the quotient leave; 1 / (2 + f) = (1 - s) / 2.
    two = b.const(f, 2.0)
    d = b.fadd(f, two)
    d_low = b.fsub(f, b.fsub(d, two))
    s = b.fdiv(f, d)
    minus_s = b.fneg(s)
    left = b.fma(minus_s, d_low, b.fma(minus_s, d, f))
    s_low = b.fmul(left, b.fma(minus_s, half, half))
    z = b.fmul(s, s)
    z_low = b.fma(b.fadd(s, s), s_low, b.fma(s, s, b.fneg(z)))
    # u = A1 + z T
    tail = b.fmul(z, polynomial(b, z, _LOG2_TAIL))
    a1 = b.const(f, _A1[0])
    u = b.fadd(a1, tail)
    u_low = b.fadd(b.fadd(b.fsub(a1, u), tail), b.const(f, _A1[1]))
    # v = A0 + z u
    a0 = b.const(f, _A0[0])
    zu = b.fmul(z, u)
    zu_low = b.fma(z_low, u, b.fma(z, u_low, b.fma(z, u, b.fneg(zu))))
    v = b.fadd(a0, zu)
    v_low = b.fadd(b.fadd(b.fsub(a0, v), zu), b.fadd(zu_low, b.const(f, _A0[1])))
    # k + s v; |k| > |s v| unless k = 0.
    sv = b.fmul(s, v)
    sv_low = b.fma(s_low, v, b.fma(s, v_low, b.fma(s, v, b.fneg(sv))))
    total = b.fadd(parts.k, sv)
    return total, b.fadd(b.fadd(b.fsub(parts.k, total), sv), sv_low)


def _power(b: Builder, a: Value, y: Value) -> Value:
    """``a**y`` for ``a >= 0``, computed in float64; NaN for ``0**0`` and ``inf**0``."""
    high, low = _log2(b, split_positive(b, a))
    high = _at_ends(b, a, high)
    p = b.fmul(y, high)
    p_low = b.fma(y, low, b.fma(y, high, b.fneg(p)))
    # What is out of range is infinite or zero; of infinities the low part is NaN.
    inside = b.fcmp("olt", b.fabs(p), b.const(p, 1100.0))
    p_low = b.select(inside, p_low, b.const(p, 0.0))
    p = at_least(b, at_most(b, p, 1100.0), -1100.0)
    shifter = b.const(p, FLOAT64.shifter)
    shifted = b.fadd(p, shifter)
    r = b.fadd(b.fsub(p, b.fsub(shifted, shifter)), p_low)
    return times_power_of_two(b, exp2m1(b, r), shifted)


def _rough_power(b: Builder, a: Value, y: Value) -> Value:
    """The same for operands and a result that are float32 numbers."""
    parts = split(b, a)
    f = b.fsub(parts.m, b.const(a, 1.0))
    s = b.fdiv(f, b.fadd(f, b.const(f, 2.0)))
    logarithm = b.fma(s, polynomial(b, b.fmul(s, s), _ROUGH_LOG2), parts.k)
    p = b.fmul(y, _at_ends(b, a, logarithm))
    # Powers of two at these ends are infinite and zero as float32, and normal as float64.
    p = at_least(b, at_most(b, p, 300.0), -300.0)
    shifter = b.const(p, FLOAT64.shifter + FLOAT64.bias)
    shifted = b.fadd(p, shifter)
    r = b.fsub(p, b.fsub(shifted, shifter))
    scale = power_of_two(b, shifted)
    return b.fma(b.fmul(r, polynomial(b, r, _ROUGH_EXP2M1)), scale, scale)


def _at_ends(b: Builder, a: Value, logarithm: Value) -> Value:
    """The logarithm of ``a``, also of zero, infinity and NaN."""
    logarithm = b.select(b.fcmp("olt", a, b.const(a, _INFINITY)), logarithm, a)
    return b.select(b.fcmp("oeq", a, b.const(a, 0.0)), b.const(a, -_INFINITY), logarithm)


def pow(b: Builder, x: Value, y: Value) -> Value:  # C's and NumPy's name
    """``x**y`` with C's special cases (C99, F.9.4.4)."""
    if x.type.bits == 32:
        wide = F64.with_lanes(x.type.lanes)
        result = _pow(b, b.convert("fpext", x, wide), b.convert("fpext", y, wide), rough=True)
        return b.convert("fptrunc", result, F32)
    return _pow(b, x, y, rough=False)


def _pow(b: Builder, x: Value, y: Value, rough: bool) -> Value:
    one, zero = b.const(x, 1.0), b.const(x, 0.0)
    # Beyond, every exponent is even and all powers but those of 1 are infinite or zero; bounded,
    # its product with log2(1) = 0 is zero.
    bound = 2.0**100
    y = at_least(b, at_most(b, y, bound), -bound)
    a = b.fabs(x)
    magnitude = _rough_power(b, a, y) if rough else _power(b, a, y)
    half = b.fmul(y, b.const(y, 0.5))
    whole = b.fcmp("oeq", b.truncate(y), y)
    odd = b.and_(whole, b.fcmp("une", b.truncate(half), half))
    result = b.copysign(magnitude, b.select(odd, x, one))
    # Negative and finite to a power that is no integer.
    undefined = b.and_(b.fcmp("olt", x, zero), b.fcmp("one", x, b.const(x, -_INFINITY)))
    undefined = b.and_(undefined, b.not_(whole))
    result = b.select(undefined, b.const(x, _NAN), result)
    is_one = b.or_(b.fcmp("oeq", x, one), b.fcmp("oeq", y, zero))
    return b.select(is_one, one, result)


# m**(-1/3) for sqrt(1/2) <= m <= sqrt(2), minimax, relative error 2**-11.9 and 2**-14.7.
_CBRT = {
    64: fitted(
        "0x1.bb10f5387fc55p+0",
        "-0x1.492954baef09ep+0",
        "0x1.6d42abc9057e1p-1",
        "-0x1.44bb528e52373p-3",
    ),
    32: fitted(
        "0x1.dfe18ap+0", "-0x1.dca528p+0", "0x1.8fb7c8p+0", "-0x1.67a6c2p-1", "0x1.06ed74p-3"
    ),
}
_THIRD = 1.0 / 3.0


def cbrt(b: Builder, x: Value) -> Value:
    """Cube root.

    ``|x| = 8**j a`` with ``1/4 < a < 4``; ``r`` approximates ``a**(-1/3)``. For float64 it is made
    better by ``r += r (h / 3 + 2 h**2 / 9)`` with ``h = 1 - a r**3``. Then ``y = a r**2`` is
    corrected to ``y + (a - y**3) r**2 / 3``, with ``a - y**3`` exact but for its last rounding.
    """
    form = format_of(x)
    positive = b.fabs(x)
    parts = split_positive(b, positive)
    third = b.const(x, _THIRD)
    shifter = b.const(x, form.shifter + form.bias)
    shifted = b.fma(parts.k, third, shifter)
    j = b.fsub(shifted, shifter)
    rest = b.fma(j, b.const(x, -3.0), parts.k)
    above = b.fcmp("ogt", rest, b.const(x, 0.5))
    below = b.fcmp("olt", rest, b.const(x, -0.5))

    def by_rest(at_zero: float, at_one: float, at_minus_one: float) -> Value:
        low = b.select(below, b.const(x, at_minus_one), b.const(x, at_zero))
        return b.select(above, b.const(x, at_one), low)

    a = b.fmul(parts.m, by_rest(1.0, 2.0, 0.5))
    r = b.fmul(polynomial(b, parts.m, _CBRT[x.type.bits]), by_rest(1.0, 2.0**-_THIRD, 2.0**_THIRD))
    if x.type.bits == 64:
        h = b.fma(b.fneg(b.fmul(a, r)), b.fmul(r, r), b.const(x, 1.0))
        r = b.fma(b.fmul(r, h), b.fma(h, b.const(x, 2.0 / 9.0), third), r)
    square = b.fmul(r, r)
    y = b.fmul(a, square)
    y_square = b.fmul(y, y)
    y_square_low = b.fma(y, y, b.fneg(y_square))
    left = b.fma(b.fneg(y_square), y, a)
    left = b.fma(b.fneg(y_square_low), y, left)
    root = b.fma(left, b.fmul(square, third), y)
    result = b.fmul(root, power_of_two(b, shifted))
    result = b.select(b.fcmp("olt", positive, b.const(x, _INFINITY)), result, positive)
    result = b.select(b.fcmp("oeq", positive, b.const(x, 0.0)), positive, result)
    return b.copysign(result, x)
