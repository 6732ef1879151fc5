"""Logarithms: ``log``, ``log2``, ``log10``, ``log1p``.

Here: these, and ``log1p_sum``, which inverse hyperbolic functions share.

``x = 2**k (1 + f)`` with ``sqrt(1/2) <= 1 + f < sqrt(2)`` and ``s = f / (2 + f)``:
``log(1 + f) = log((1 + s) / (1 - s)) = 2 s + s R(s**2) = f - f**2 / 2 + s (f**2 / 2 + R)``; in the
last form the leading term has no rounding error (Tang, Table-driven implementation of the logarithm
function, ACM TOMS 16, 1990; the same form is that of FDLIBM's ``e_log.c``).

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import fitted, format_of, polynomial
from functrans.emitter.types import Value
from functrans.records import dataclass

_INFINITY = float("inf")
_NAN = float("nan")

# R(z) / z = (2 artanh(s) - 2 s) / s**3 with z = s**2, for 0 <= z <= 0.02944, minimax in the error
# relative to 2 artanh(s), which is 2**-58.6 for float64 and 2**-29.4 for float32.
_LOG = {
    64: fitted(
        "0x1.555555555557cp-1", "0x1.999999998573ep-2", "0x1.2492493de3b00p-2",
        "0x1.c71c54dc75d2ep-3", "0x1.7465a1a7c9c29p-3", "0x1.39b5a08a8d927p-3",
        "0x1.2dfd996d2a1bcp-3",
    ),
    32: fitted("0x1.55557ap-1", "0x1.995ed0p-2", "0x1.31e19cp-2"),
}  # fmt: skip

_SQRT_HALF_BITS = {64: 0x3FE6A09E667F3BCD, 32: 0x3F3504F3}


@dataclass(frozen=True, slots=True)
class SplitNumber:
    """A positive number as ``2**k m`` with ``sqrt(1/2) <= m < sqrt(2)``.

    Attributes:
      k: the exponent, a float.
      m: the mantissa.
      inverse: ``2**-k``; meaningless where that is no normal number.
    """

    k: Value
    m: Value
    inverse: Value


def split(b: Builder, x: Value, offset: Value | float = 0.0) -> SplitNumber:
    """Split a positive normal number; meaningless for others.

    Args:
      b: where to write.
      x: the number.
      offset: is added to ``k``.
    """
    form = format_of(x)
    bits = b.bits(x)
    unit = 1 << form.mantissa
    # With sqrt(1/2) subtracted, the exponent field counts from there; it is kept positive.
    surplus = form.bias + 1
    base = _SQRT_HALF_BITS[x.type.bits]
    moved = b.add(bits, b.const(bits, surplus * unit - base))
    m = b.from_bits(b.add(b.and_(moved, b.const(bits, unit - 1)), b.const(bits, base)))
    exponent = b.and_(moved, b.const(bits, -unit))
    inverse = b.from_bits(b.sub(b.const(bits, (form.bias + surplus) * unit), exponent))
    # An integer in the mantissa of 2**mantissa is a float without conversion.
    count = b.lshr(moved, b.const(bits, form.mantissa))
    one = (form.bias + form.mantissa) * unit
    raised = b.from_bits(b.or_(count, b.const(bits, one)))
    zero = b.const(x, float(unit + surplus))
    if isinstance(offset, Value):
        zero = b.fsub(zero, offset)
    return SplitNumber(b.fsub(raised, zero), m, inverse)


def split_positive(b: Builder, x: Value) -> SplitNumber:
    """Split a positive number, subnormal ones too."""
    form = format_of(x)
    small = b.fcmp("olt", x, b.const(x, form.tiny))
    raised = b.fmul(x, b.const(x, 2.0 ** (form.mantissa + 2)))
    offset = b.select(small, b.const(x, -float(form.mantissa + 2)), b.const(x, 0.0))
    return split(b, b.select(small, raised, x), offset)


def series(b: Builder, f: Value) -> tuple[Value, Value, Value]:
    """``(s, f**2 / 2, f**2 / 2 + R)`` of the module's formula."""
    s = b.fdiv(f, b.fadd(f, b.const(f, 2.0)))
    z = b.fmul(s, s)
    half_square = b.fmul(b.fmul(f, b.const(f, 0.5)), f)
    return s, half_square, b.fma(z, polynomial(b, z, _LOG[f.type.bits]), half_square)


def _assembled(b: Builder, k: Value, f: Value, f_low: Value | None = None) -> Value:
    """``k ln 2 + log(1 + f + f_low)``."""
    form = format_of(f)
    s, half_square, rest = series(b, f)
    low = b.fmul(k, b.const(k, form.ln2_low))
    if f_low is not None:
        # 1 / (1 + f) = (1 - s) / (1 + s), and near enough 1 - 2 s.
        low = b.fadd(low, b.fma(b.fmul(f_low, b.const(s, -2.0)), s, f_low))
    tail = b.fsub(half_square, b.fma(s, rest, low))
    return b.fma(k, b.const(k, form.ln2_high), b.fsub(f, tail))


def _completed(b: Builder, x: Value, result: Value) -> Value:
    """The result where ``x`` is positive and finite, else what a logarithm has there."""
    result = b.select(b.fcmp("olt", x, b.const(x, _INFINITY)), result, x)
    result = b.select(b.fcmp("olt", x, b.const(x, 0.0)), b.const(x, _NAN), result)
    return b.select(b.fcmp("oeq", x, b.const(x, 0.0)), b.const(x, -_INFINITY), result)


def log(b: Builder, x: Value) -> Value:
    """Natural logarithm."""
    parts = split_positive(b, x)
    f = b.fsub(parts.m, b.const(x, 1.0))
    return _completed(b, x, _assembled(b, parts.k, f))


@dataclass(frozen=True, slots=True)
class _Base:
    """A base of logarithms: ``1 / ln(base)`` and ``log_base(2)``, each in two parts."""

    scale: tuple[float, ...]
    two: tuple[float, ...]


_BASE2 = {
    64: _Base(fitted("0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56"), (1.0, 0.0)),
    32: _Base(fitted("0x1.715476p+0", "0x1.4ae0c0p-26"), (1.0, 0.0)),
}
# The first part of log10(2) is so short that its product with any exponent is exact.
_BASE10 = {
    64: _Base(
        fitted("0x1.bcb7b1526e50ep-2", "0x1.95355baaafad3p-57"),
        fitted("0x1.34413509f78p-2", "0x1.fef311f12b358p-46"),
    ),
    32: _Base(fitted("0x1.bcb7b2p-2", "-0x1.5b235ep-27"), fitted("0x1.3440p-2", "0x1.3509f8p-18")),
}


def _in_base(b: Builder, x: Value, base: _Base) -> Value:
    """Logarithm in another base, as the sum of products in two parts."""
    parts = split_positive(b, x)
    f = b.fsub(parts.m, b.const(x, 1.0))
    s, half_square, rest = series(b, f)
    # log(1 + f) = high + low
    high = b.fsub(f, half_square)
    low = b.fma(b.fmul(f, b.const(f, -0.5)), f, b.fsub(f, high))
    low = b.fma(s, rest, low)
    scale, scale_low = (b.const(x, c) for c in base.scale)
    product = b.fmul(high, scale)
    error = b.fma(high, scale, b.fneg(product))
    error = b.fma(low, scale, b.fma(high, scale_low, error))
    whole = b.fmul(parts.k, b.const(x, base.two[0]))
    if base.two[1]:
        error = b.fma(parts.k, b.const(x, base.two[1]), error)
    total = b.fadd(whole, product)
    # |whole| > |product| unless whole is zero: this difference is the rounding error of the sum.
    error = b.fadd(error, b.fadd(b.fsub(whole, total), product))
    return _completed(b, x, b.fadd(total, error))


def log2(b: Builder, x: Value) -> Value:
    """Logarithm to the base 2; exact for powers of two."""
    return _in_base(b, x, _BASE2[x.type.bits])


def log10(b: Builder, x: Value) -> Value:
    """Logarithm to the base 10."""
    return _in_base(b, x, _BASE10[x.type.bits])


def log1p(b: Builder, x: Value) -> Value:
    """``log(1 + x)``, accurate near zero too."""
    result = log1p_sum(b, x)
    result = _completed(b, b.fadd(x, b.const(x, 1.0)), result)
    return b.copysign(result, x)


def log1p_sum(
    b: Builder, x: Value, x_low: Value | None = None, exponent: Value | None = None
) -> Value:
    """``log(1 + x + x_low) + exponent ln 2`` for finite ``x > -1``.

    ``1 + f = 2**-k (1 + x)``, hence ``f = 2**-k x + (2**-k - 1)``: one rounding, and none where
    ``k = 0``, however small ``x`` is. For large ``x`` the 1 does not count, and ``2**-k`` may be
    too small.

    Args:
      b: where to write.
      x: argument.
      x_low: what was lost when ``x`` was rounded.
      exponent: an integer; nonzero only for large ``x``.
    """
    one = b.const(x, 1.0)
    parts = split(b, b.fadd(x, one), 0.0 if exponent is None else exponent)
    large = b.fcmp("ogt", x, b.const(x, 2.0**60))
    less = b.fsub(parts.inverse, one)
    f = b.fma(parts.inverse, x, less)
    chosen = b.select(large, b.fsub(parts.m, one), f)
    if x_low is None:
        return _assembled(b, parts.k, chosen)
    lost = b.fma(parts.inverse, x, b.fsub(less, f))
    f_low = b.select(large, b.const(x, 0.0), b.fma(parts.inverse, x_low, lost))
    return _assembled(b, parts.k, chosen, f_low)
