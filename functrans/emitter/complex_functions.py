"""Complex functions from real ones: roots, exponentials, logarithms, powers, trigonometry.

Here: functions of ``(real, imaginary)`` pairs, branch-free, any lanes, with the special values of
C99 Annex G, which are NumPy's. Not here: arithmetic (``emitter.complexes``), inverse functions
(``emitter.complex_inverses``), the real functions (``emitter.math``).

Source: Kahan, "Branch cuts for complex elementary functions" (1987).

Layer: ``emitter``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from functrans.emitter.builder import Builder
from functrans.emitter.casts import literal
from functrans.emitter.complexes import Pair, divide, multiply
from functrans.emitter.floats import is_infinite, is_nan, sign_bit
from functrans.emitter.math import (
    exponential,
    geometry,
    hyperbolic,
    inverse_trigonometry,
    logarithm,
    trigonometry,
)
from functrans.emitter.types import Value

# ln 2 as the sum of two doubles, and of two floats.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")
LN2_FLOAT = float.fromhex("0x1.62e430p-1")
LN2_FLOAT_LOW = LN2_HIGH - LN2_FLOAT


def first_of(b: Builder, *cases: Value) -> Value:
    """The value of the first condition that holds: ``condition, value, ..., otherwise``."""
    result: Value = cases[-1]
    for i in reversed(range(0, len(cases) - 1, 2)):
        result = b.select(cases[i], cases[i + 1], result)
    return result


def _abs_exceeds(b: Builder, x: Value, limit: float) -> Value:
    return b.fcmp("ogt", b.fabs(x), b.const(x, limit))


def absolute(b: Builder, z: Pair) -> Value:
    """``|z|``."""
    return geometry.hypot(b, *z)


def sign(b: Builder, z: Pair) -> Pair:
    """``z / |z|``, 0 at 0; along an infinite part, NaN where both are infinite."""
    quarter = b.const(z[0], 0.25)
    is_far = is_infinite(b, absolute(b, z))
    # Parts that are finite may have an infinite size: a quarter of them has none.
    x, y = (b.select(is_far, b.fmul(part, quarter), part) for part in z)
    size = absolute(b, (x, y))
    zero, one = b.const(x, 0), b.const(x, 1)
    is_zero = b.fcmp("oeq", size, zero)
    is_far = is_infinite(b, size)
    x_is_far, y_is_far = is_infinite(b, x), is_infinite(b, y)
    both = b.and_(x_is_far, y_is_far)
    nan = b.const(x, math.nan)

    def part_of(value: Value, value_is_far: Value) -> Value:
        at_infinity = b.select(value_is_far, b.copysign(one, value), zero)
        at_infinity = b.select(both, nan, at_infinity)
        return first_of(b, is_zero, zero, is_far, at_infinity, b.fdiv(value, size))

    return part_of(x, x_is_far), part_of(y, y_is_far)


# roots, exponentials, logarithms ------------------------------------------------------------------


def sqrt(b: Builder, z: Pair) -> Pair:
    """The root in the right half plane; the branch cut is the negative real axis."""
    x, y = z
    bits = x.type.bits
    zero, one = b.const(x, 0), b.const(x, 1)
    ax, ay = b.fabs(x), b.fabs(y)
    # Scaled by a power of 4 that keeps the sum below from overflowing or losing digits.
    huge, tiny, digits = (2.0**1021, 2.0**-960, 54) if bits == 64 else (2.0**125, 2.0**-100, 26)
    top = b.select(b.fcmp("ogt", ax, ay), ax, ay)
    is_huge, is_tiny = b.fcmp("ogt", top, b.const(x, huge)), b.fcmp("olt", top, b.const(x, tiny))
    scale = first_of(b, is_huge, b.const(x, 0.0625), is_tiny, b.const(x, 2.0**digits), one)
    back = first_of(b, is_huge, b.const(x, 4.0), is_tiny, b.const(x, 2.0 ** (-digits // 2)), one)
    sx, sy = b.fmul(ax, scale), b.fmul(ay, scale)
    half = b.const(x, 0.5)
    big = b.sqrt(b.fmul(b.fadd(geometry.hypot(b, sx, sy), sx), half))
    small = b.fdiv(sy, b.fadd(big, big))  # the half of the smallest number is none
    big, small = b.fmul(big, back), b.fmul(small, back)
    is_right = b.not_(sign_bit(b, x))
    re, im = b.select(is_right, big, small), b.select(is_right, small, big)
    is_zero = b.and_(b.fcmp("oeq", x, zero), b.fcmp("oeq", y, zero))
    x_is_far, y_is_far = is_infinite(b, x), is_infinite(b, y)
    not_a_number = b.fadd(x, y)
    infinity = b.const(x, math.inf)
    far_right = b.and_(x_is_far, is_right)
    far_left = b.and_(x_is_far, b.not_(is_right))
    y_is_nan = is_nan(b, y)
    re = first_of(
        b,
        y_is_far, infinity,
        far_right, infinity,
        far_left, b.select(y_is_nan, not_a_number, zero),
        is_zero, zero,
        re,
    )  # fmt: skip
    im = first_of(
        b,
        y_is_far, infinity,
        far_right, b.select(y_is_nan, not_a_number, zero),
        far_left, infinity,
        is_zero, zero,
        im,
    )  # fmt: skip
    return re, b.copysign(im, y)


def exp(b: Builder, z: Pair) -> Pair:
    """``exp(x) (cos y + i sin y)``."""
    x, y = z
    sine, cosine = trigonometry.sin(b, y), trigonometry.cos(b, y)
    step = 709.0 if x.type.bits == 64 else 88.0
    return _spiral(b, x, cosine, sine, y, exponential.exp, step, math.exp(step))


def _spiral(
    b: Builder,
    x: Value,
    cosine: Value,
    sine: Value,
    y: Value,
    growth: Callable[[Builder, Value], Value],
    step: float,
    step_growth: float,
) -> Pair:
    """An exponential times a cosine and a sine, which may bring back what overflows.

    Args:
      b: where to write.
      x: the exponent.
      cosine: cosine of the angle.
      sine: its sine.
      y: the angle, which may be 0, an infinity or NaN.
      growth: the real exponential function.
      step: a number so large that ``growth`` of twice of it overflows, but not of itself.
      step_growth: ``growth(step)``.
    """
    zero = b.const(x, 0)
    is_large = b.fcmp("ogt", x, b.const(x, step))
    rest = b.select(is_large, b.fsub(x, b.const(x, step)), x)
    rest_is_large = b.fcmp("ogt", rest, b.const(x, step))
    rest = b.select(rest_is_large, b.const(x, math.inf), rest)
    size = growth(b, rest)
    factor = b.select(is_large, b.const(x, step_growth), b.const(x, 1))
    y_is_zero = b.fcmp("oeq", y, zero)
    is_far_left = b.fcmp("oeq", x, b.const(x, -math.inf))
    y_is_wild = b.fcmp("uno", b.fsub(y, y), zero)
    # The factor first: what is too small for all digits has them again.
    re = b.fmul(b.fmul(factor, cosine), size)
    im = b.fmul(b.fmul(factor, sine), size)
    is_far_right = b.fcmp("oeq", x, b.const(x, math.inf))
    re = first_of(
        b,
        y_is_zero, b.fmul(size, factor),
        b.and_(is_far_left, y_is_wild), zero,
        b.and_(is_far_right, y_is_wild), x,
        re,
    )  # fmt: skip
    im = first_of(b, y_is_zero, y, b.and_(is_far_left, y_is_wild), b.copysign(zero, y), im)
    return re, im


def exp2(b: Builder, z: Pair) -> Pair:
    """``2**x (cos(y ln 2) + i sin(y ln 2))``, with what the angle lost in rounding."""
    x, y = z
    ln2, rest = (LN2_HIGH, LN2_LOW) if x.type.bits == 64 else (LN2_FLOAT, LN2_FLOAT_LOW)
    angle = b.fmul(y, b.const(y, ln2))
    tail = b.fma(y, b.const(y, ln2), b.fneg(angle))
    tail = b.fma(y, b.const(y, rest), tail)
    # Beyond this an angle has no digit after the point, and its tail is no small one.
    is_small = b.fcmp("olt", b.fabs(tail), b.const(y, 2.0**-10))
    tail = b.select(is_small, tail, b.const(y, 0))
    sine, cosine = trigonometry.sin(b, angle), trigonometry.cos(b, angle)
    sine, cosine = b.fma(tail, cosine, sine), b.fma(b.fneg(tail), sine, cosine)
    step = 1000.0 if x.type.bits == 64 else 120.0
    return _spiral(b, x, cosine, sine, angle, exponential.exp2, step, 2.0**step)


def expm1(b: Builder, z: Pair) -> Pair:
    """``exp(z) - 1``: ``expm1(x) cos y - 2 sin(y/2)**2`` and ``exp(x) sin y``."""
    x, y = z
    half_sine = trigonometry.sin(b, b.fmul(y, b.const(y, 0.5)))
    less = b.fmul(b.fmul(b.const(y, 2), half_sine), half_sine)
    re = b.fsub(b.fmul(exponential.expm1(b, x), trigonometry.cos(b, y)), less)
    return re, b.fmul(exponential.exp(b, x), trigonometry.sin(b, y))


def log(b: Builder, z: Pair) -> Pair:
    """``log|z| + i arg z``."""
    return log_absolute(b, z), inverse_trigonometry.atan2(b, z[1], z[0])


def log_absolute(b: Builder, z: Pair) -> Value:
    """``log|z|``, to full relative precision where ``|z|`` is near 1.

    There it is ``log1p(x**2 + y**2 - 1) / 2``, with squares and sum in more digits.
    """
    x, y = b.fabs(z[0]), b.fabs(z[1])
    bits = x.type.bits
    one, half = b.const(x, 1), b.const(x, 0.5)
    shift = 54 if bits == 64 else 26
    limit = 2.0**900 if bits == 64 else 2.0**100
    size = geometry.hypot(b, x, y)
    is_large = b.fcmp("ogt", b.select(b.fcmp("ogt", x, y), x, y), b.const(x, limit))
    is_small = b.fcmp("olt", size, b.const(x, 1 / limit))
    scale = first_of(b, is_large, b.const(x, 2.0**-shift), is_small, b.const(x, 2.0**shift), one)
    moved = first_of(
        b,
        is_large, b.const(x, shift * math.log(2)),
        is_small, b.const(x, -shift * math.log(2)),
        b.const(x, 0),
    )  # fmt: skip
    far = b.fadd(logarithm.log(b, geometry.hypot(b, b.fmul(x, scale), b.fmul(y, scale))), moved)
    x_is_larger = b.fcmp("ogt", x, y)
    top, low = b.select(x_is_larger, x, y), b.select(x_is_larger, y, x)
    high, high_rest = _square(b, top)
    small, small_rest = _square(b, low)
    excess = _sum_exactly(b, [b.const(x, -1), high, small, high_rest, small_rest])
    near = b.fmul(half, logarithm.log1p(b, excess))
    is_near = b.and_(b.fcmp("ogt", size, half), b.fcmp("olt", size, b.const(x, 1.75)))
    return b.select(is_near, near, far)


def _square(b: Builder, x: Value) -> Pair:
    """A square and what was rounded away."""
    square = b.fmul(x, x)
    return square, b.fma(x, x, b.fneg(square))


def _sum_exactly(b: Builder, terms: list[Value]) -> Value:
    """A sum as if in three times the digits: ``SumK`` of Ogita, Rump and Oishi (2005), K = 3."""
    for _ in range(2):
        rests = []
        total = terms[0]
        for term in terms[1:]:
            larger = b.fadd(total, term)
            taken = b.fsub(larger, total)
            rest = b.fadd(b.fsub(total, b.fsub(larger, taken)), b.fsub(term, taken))
            rests.append(rest)
            total = larger
        terms = [*rests, total]
    result = terms[0]
    for term in terms[1:]:
        result = b.fadd(result, term)
    return result


def log_in_base(b: Builder, z: Pair, base: float) -> Pair:
    """Logarithm in another base: :func:`log` times a constant."""
    factor = b.const(z[0], 1 / math.log(base))
    re, im = log(b, z)
    return b.fmul(re, factor), b.fmul(im, factor)


def log1p(b: Builder, z: Pair) -> Pair:
    """``log|1 + z| + i arg(1 + z)``.

    Where ``|1 + z|`` is near 1 its logarithm is ``log1p(2x + x**2 + y**2) / 2``: NumPy's has
    no right digit at small ``z``.
    """
    x, y = z
    half = b.const(x, 0.5)
    more = b.fadd(x, b.const(x, 1))
    size = geometry.hypot(b, more, y)
    xx, x_rest = _square(b, x)
    yy, y_rest = _square(b, y)
    excess = _sum_exactly(b, [b.fadd(x, x), xx, yy, x_rest, y_rest])
    near = b.fmul(half, logarithm.log1p(b, excess))
    is_near = b.and_(b.fcmp("ogt", size, half), b.fcmp("olt", size, b.const(x, 1.75)))
    re = b.select(is_near, near, log_absolute(b, (more, y)))
    return re, inverse_trigonometry.atan2(b, y, more)


# powers -------------------------------------------------------------------------------------------


def power(b: Builder, z: Pair, w: Pair) -> Pair:
    """``z ** w`` as NumPy: products for whole exponents below 100, else ``exp(w log z)``."""
    fixed = [literal(part) for part in w]
    whole = _whole_exponent(*fixed)
    if whole is not None:
        return _fixed_power(b, z, whole)
    x, y = z
    zero, one, nan = b.const(x, 0), b.const(x, 1), b.const(x, math.nan)
    product = multiply(b, w, log(b, z))
    general = exp(b, product)
    # Whole exponents: their bits, from the lowest, pick squares of squares.
    n = b.fabs(w[0])
    is_whole = b.and_(b.fcmp("oeq", b.truncate(n), n), b.fcmp("oeq", w[1], zero))
    is_whole = b.and_(is_whole, b.fcmp("olt", n, b.const(x, 100)))
    count = b.convert("fptosi", b.select(is_whole, n, zero), x.type.integer)
    result: Pair = (one, zero)
    square = z
    for bit in range(7):
        lower = b.and_(count, b.const(count, (1 << bit) - 1))
        is_first = b.icmp("eq", lower, b.const(count, 0))
        has_bit = b.icmp("ne", b.and_(count, b.const(count, 1 << bit)), b.const(count, 0))
        result = tuple(
            first_of(b, b.and_(has_bit, is_first), power_of_two, has_bit, product, kept)
            for power_of_two, product, kept in zip(
                square, multiply(b, result, square), result, strict=True
            )
        )
        square = multiply(b, square, square)
    inverse = divide(b, (one, zero), result)
    is_negative = b.fcmp("olt", w[0], zero)
    result = tuple(b.select(is_negative, p, q) for p, q in zip(inverse, result, strict=True))
    base_is_zero = b.and_(b.fcmp("oeq", x, zero), b.fcmp("oeq", y, zero))
    exponent_is_zero = b.and_(b.fcmp("oeq", w[0], zero), b.fcmp("oeq", w[1], zero))
    at_zero = b.select(b.fcmp("ogt", w[0], zero), zero, nan)
    parts = zip((one, zero), result, general, strict=True)
    return tuple(
        first_of(b, exponent_is_zero, unit, base_is_zero, at_zero, is_whole, p, q)
        for unit, p, q in parts
    )


def _whole_exponent(re: float | None, im: float | None) -> int | None:
    """The exponent as an integer, where it is a constant that is small and whole."""
    if re is None or im is None or im != 0 or not -16 <= re <= 16 or re != int(re):
        return None
    return int(re)


def _fixed_power(b: Builder, z: Pair, n: int) -> Pair:
    """A whole power by the products that :func:`power` has for it."""
    zero, one = b.const(z[0], 0), b.const(z[0], 1)
    if n == 0:
        return one, zero
    if n == 2:  # ``np.square``, which the operator calls, keeps the signs of zeros
        return multiply(b, z, z)
    result, square, left = None, z, abs(n)
    while left:
        if left & 1:
            result = square if result is None else multiply(b, result, square)
        left >>= 1
        if left:
            square = multiply(b, square, square)
    assert result is not None
    base_is_zero = b.and_(b.fcmp("oeq", z[0], zero), b.fcmp("oeq", z[1], zero))
    if n > 0:
        return tuple(b.select(base_is_zero, zero, part) for part in result)
    nan = b.const(z[0], math.nan)
    return tuple(b.select(base_is_zero, nan, part) for part in divide(b, (one, zero), result))


# hyperbolic and circular functions ----------------------------------------------------------------


def sinh(b: Builder, z: Pair) -> Pair:
    """``sinh x cos y + i cosh x sin y``."""
    return _hyperbolic(b, z, hyperbolic.sinh, is_sinh=True)


def cosh(b: Builder, z: Pair) -> Pair:
    """``cosh x cos y + i sinh x sin y``."""
    return _hyperbolic(b, z, hyperbolic.cosh, is_sinh=False)


def _hyperbolic(b: Builder, z: Pair, own: Callable[[Builder, Value], Value], is_sinh: bool) -> Pair:
    x, y = z
    zero = b.const(x, 0)
    sine, cosine = trigonometry.sin(b, y), trigonometry.cos(b, y)
    hyperbolic_sine = hyperbolic.sinh(b, x)
    hyperbolic_cosine = hyperbolic.cosh(b, x)
    along = hyperbolic_sine if is_sinh else hyperbolic_cosine
    across = hyperbolic_cosine if is_sinh else hyperbolic_sine
    re, im = b.fmul(along, cosine), b.fmul(across, sine)
    # Where the hyperbolic functions overflow they are exp|x| / 2, whose products may be finite.
    limit = 709.0 if x.type.bits == 64 else 88.0
    is_large = _abs_exceeds(b, x, limit)
    far_re, far_im = _spiral(
        b, b.fabs(x), cosine, sine, y, exponential.exp, limit, math.exp(limit) / 2
    )
    signed = b.copysign(b.const(x, 1), x)
    if is_sinh:
        far_re = b.fmul(far_re, signed)
    else:
        far_im = b.fmul(far_im, signed)
    re, im = b.select(is_large, far_re, re), b.select(is_large, far_im, im)
    x_is_zero, y_is_zero = b.fcmp("oeq", x, zero), b.fcmp("oeq", y, zero)
    y_is_wild = b.fcmp("uno", b.fsub(y, y), zero)
    far = b.and_(is_infinite(b, x), y_is_wild)
    x_is_zero = b.and_(x_is_zero, y_is_wild)
    if is_sinh:
        re = first_of(b, y_is_zero, along, x_is_zero, x, far, b.fabs(x), re)
        return re, b.select(y_is_zero, y, im)
    re = first_of(b, y_is_zero, along, far, b.fabs(x), re)
    nothing = b.fmul(b.copysign(zero, x), b.copysign(b.const(x, 1), y))
    nothing = first_of(b, is_nan(b, x), y, y_is_wild, zero, nothing)
    return re, b.select(b.or_(x_is_zero, y_is_zero), nothing, im)


def tanh(b: Builder, z: Pair) -> Pair:
    """``(sinh x cosh x + i sin y cos y) / (sinh x**2 + cos y**2)``."""
    x, y = z
    zero, one = b.const(x, 0), b.const(x, 1)
    limit = 22.0 if x.type.bits == 64 else 10.0
    is_large = _abs_exceeds(b, x, limit)
    inner = b.select(is_large, zero, x)
    sine, cosine = trigonometry.sin(b, y), trigonometry.cos(b, y)
    s, c = hyperbolic.sinh(b, inner), hyperbolic.cosh(b, inner)
    below = b.fadd(b.fmul(s, s), b.fmul(cosine, cosine))
    re = b.fdiv(b.fmul(s, c), below)
    circular = b.fmul(sine, cosine)
    im = b.fdiv(circular, below)
    # Far out the denominator is exp(2|x|) / 4.
    decay = exponential.exp(b, b.fneg(b.fabs(x)))
    far_im = b.fmul(b.fmul(b.fmul(b.const(x, 4), circular), decay), decay)
    y_is_wild = b.fcmp("uno", b.fsub(y, y), zero)
    no_angle = b.and_(is_infinite(b, x), y_is_wild)
    far_re = b.select(b.or_(no_angle, b.not_(y_is_wild)), b.copysign(one, x), b.fsub(y, y))
    re = b.select(is_large, far_re, re)
    im = b.select(is_large, b.select(no_angle, b.copysign(zero, y), far_im), im)
    y_is_zero, x_is_zero = b.fcmp("oeq", y, zero), b.fcmp("oeq", x, zero)
    re = first_of(b, x_is_zero, x, y_is_zero, hyperbolic.tanh(b, x), re)
    return re, b.select(y_is_zero, y, im)


def sin(b: Builder, z: Pair) -> Pair:
    """``-i sinh(i z)``: the parts of ``sinh(y + i x)`` exchanged."""
    im, re = sinh(b, (z[1], z[0]))
    return re, im


def cos(b: Builder, z: Pair) -> Pair:
    """``cosh(i z)``."""
    return cosh(b, (b.fneg(z[1]), z[0]))


def tan(b: Builder, z: Pair) -> Pair:
    """``-i tanh(i z)``: the parts of ``tanh(y + i x)`` exchanged."""
    im, re = tanh(b, (z[1], z[0]))
    return re, im
