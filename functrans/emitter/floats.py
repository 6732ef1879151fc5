"""Real floating-point operations with NumPy's answers: remainders, extrema, neighbours, powers.

Here: functions of float values, for 16-bit dtypes held in wider registers where the last digit
matters. Not here: dtypes of results (``emitter.numbers``), polynomials (``emitter.math``).

Layer: ``emitter``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from functrans.emitter.builder import Builder
from functrans.emitter.casts import float_bits, float_from_bits
from functrans.emitter.math.lanes import rarely
from functrans.emitter.math.power import pow as pow_
from functrans.emitter.types import F64, I32, Type, Value


def type_name(type_: Type) -> str:
    """A type in the name of a helper: ``f64x8``."""
    return f"{type_.kind}{type_.bits}x{type_.lanes}"


def is_nan(b: Builder, x: Value) -> Value:
    """Whether a float is NaN."""
    return b.fcmp("uno", x, x)


def is_infinite(b: Builder, x: Value) -> Value:
    """Whether a float is an infinity."""
    return b.fcmp("oeq", b.fabs(x), b.const(x, np.inf))


def is_finite(b: Builder, x: Value) -> Value:
    """Whether a float is a number, and no infinity."""
    return b.fcmp("olt", b.fabs(x), b.const(x, np.inf))


def is_not_finite(b: Builder, x: Value) -> Value:
    """Whether a float is an infinity or NaN."""
    return b.fcmp("ueq", b.fabs(x), b.const(x, np.inf))


def sign_bit(b: Builder, x: Value) -> Value:
    """Whether the sign bit is set, of NaN too."""
    bits = b.bits(x)
    return b.icmp("slt", bits, b.const(bits, 0))


# remainders ---------------------------------------------------------------------------------------


def fmod(b: Builder, x: Value, y: Value) -> Value:
    """``x - trunc(x / y) * y``, exactly; the sign is that of ``x``.

    A quotient below ``2**52`` (``2**23``) is rounded at most to the next integer, and the remainder
    that belongs to either is representable, so that one fused product gives it. Where some lane has
    a larger quotient or none, all go through the library's function.
    """
    digits = 52 if x.type.bits == 64 else 23
    ax, ay = b.fabs(x), b.fabs(y)
    quotient = b.fdiv(ax, ay)
    is_easy = b.fcmp("olt", quotient, b.const(x, 2.0**digits))
    rest = b.fma(b.fneg(b.truncate(quotient)), ay, ax)
    rest = b.select(b.fcmp("olt", rest, b.const(x, 0)), b.fadd(rest, ay), rest)
    rest = b.select(b.fcmp("olt", ax, ay), ax, rest)
    return rarely(
        b,
        b.not_(is_easy),
        b.copysign(rest, x),
        lambda: b.helper(f"ft_fmod_{type_name(x.type)}", (x, y), x.type, _write_fmod),
    )


def _write_fmod(b: Builder) -> None:
    """The library's ``fmod``, lane by lane."""
    x, y = b.arguments
    element = x.type.element
    name = "fmod" if element.bits == 64 else "fmodf"
    result = x
    for lane in range(x.type.lanes):
        rest = b.call(name, (b.extract(x, lane), b.extract(y, lane)), element)
        result = rest if x.type.lanes == 1 else b.insert(result, rest, lane)
    b.ret(result)


def remainder(b: Builder, x: Value, y: Value) -> Value:
    """``x - floor(x / y) * y``: NumPy's ``npy_remainder``, the sign is that of ``y``."""
    zero = b.const(x, 0)
    rest = fmod(b, x, y)
    differs = b.xor(b.fcmp("olt", y, zero), b.fcmp("olt", rest, zero))
    moved = b.select(differs, b.fadd(rest, y), rest)
    moved = b.select(b.fcmp("oeq", rest, zero), b.copysign(zero, y), moved)
    return b.select(b.fcmp("oeq", y, zero), rest, moved)


def floor_divide(b: Builder, x: Value, y: Value) -> Value:
    """NumPy's ``npy_floor_divide``: the quotient of what remains without the remainder, rounded."""
    zero, one = b.const(x, 0), b.const(x, 1)
    quotient = b.fdiv(x, y)
    rest = fmod(b, x, y)
    whole = b.fdiv(b.fsub(x, rest), y)
    differs = b.xor(b.fcmp("olt", y, zero), b.fcmp("olt", rest, zero))
    differs = b.and_(differs, b.fcmp("une", rest, zero))
    whole = b.select(differs, b.fsub(whole, one), whole)
    low = b.floor(whole)
    low = b.select(b.fcmp("ogt", b.fsub(whole, low), b.const(x, 0.5)), b.fadd(low, one), low)
    low = b.select(b.fcmp("oeq", whole, zero), b.copysign(zero, quotient), low)
    return b.select(b.fcmp("oeq", y, zero), quotient, low)


# extrema ------------------------------------------------------------------------------------------


def maximum(b: Builder, x: Value, y: Value) -> Value:
    """The larger; NaN if either is, and ``+0`` of zeros of both signs."""
    return b.intrinsic("maximum", x, y)


def minimum(b: Builder, x: Value, y: Value) -> Value:
    """The smaller; NaN if either is, and ``-0`` of zeros of both signs."""
    return b.intrinsic("minimum", x, y)


def number_of(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Both operands with a NaN replaced by the other: for ``fmax`` and ``fmin``."""
    return b.select(is_nan(b, x), y, x), b.select(is_nan(b, y), x, y)


def clip(b: Builder, dtype: np.dtype, x: Value, low: Value, high: Value) -> Value:
    """``min(max(x, low), high)``; NaN if any is.

    A zero that ties with a bound gives way to it, but of float16, as in NumPy.
    """
    keeps_ties = dtype.name == "float16"
    for bound, predicate in (
        (low, "ge" if keeps_ties else "gt"),
        (high, "le" if keeps_ties else "lt"),
    ):
        keeps = b.or_(b.fcmp(f"o{predicate}", x, bound), is_nan(b, x))
        x = b.select(keeps, x, bound)
    return x


def sign(b: Builder, dtype: np.dtype, x: Value) -> Value:
    """-1, 0, 1 or NaN; the zero of bfloat16 keeps its sign (ml_dtypes)."""
    zero, one = b.const(x, 0), b.const(x, 1)
    signed = b.copysign(one, x)
    is_one = b.fcmp("one", x, zero)
    if dtype.name == "bfloat16":
        return b.select(is_one, signed, x)
    return b.select(is_one, signed, b.fadd(x, zero))


def heaviside(b: Builder, x: Value, at_zero: Value) -> Value:
    """0 below, 1 above, ``at_zero`` at 0; NaN of NaN."""
    zero, one = b.const(x, 0), b.const(x, 1)
    step = b.select(b.fcmp("ogt", x, zero), one, zero)
    step = b.select(b.fcmp("oeq", x, zero), at_zero, step)
    return b.select(is_nan(b, x), x, step)


# neighbours, exponents ----------------------------------------------------------------------------


def nextafter(b: Builder, dtype: np.dtype, x: Value, y: Value) -> Value:
    """The float next to ``x`` in the direction of ``y``."""
    bits = float_bits(b, dtype, x)
    one, zero = b.const(bits, 1), b.const(x, 0)
    # Away from zero where y lies beyond x on the same side of zero.
    grows = b.select(b.fcmp("ogt", x, zero), b.fcmp("ogt", y, x), b.fcmp("olt", y, x))
    moved = float_from_bits(b, dtype, b.select(grows, b.add(bits, one), b.sub(bits, one)))
    smallest = float_from_bits(b, dtype, one)
    moved = b.select(b.fcmp("oeq", x, zero), b.copysign(smallest, y), moved)
    # Of two zeros NumPy takes the second, for float16 the first.
    moved = b.select(b.fcmp("oeq", x, y), x if dtype.name == "float16" else y, moved)
    return b.select(b.fcmp("uno", x, y), b.fadd(x, y), moved)


def spacing(b: Builder, dtype: np.dtype, x: Value) -> Value:
    """Distance to the neighbour away from zero, with the sign of ``x``; NaN of an infinity.

    NumPy's float16 has the distance to the neighbour above instead, and its float32 and float64 a
    positive one at both zeros.
    """
    bits = float_bits(b, dtype, x)
    one, zero = b.const(bits, 1), b.const(x, 0)
    if dtype.name == "float16":
        is_below = b.fcmp("olt", x, zero)
        moved = b.select(is_below, b.sub(bits, one), b.add(bits, one))
        moved = b.select(b.fcmp("oeq", x, zero), one, moved)
        result = b.fsub(float_from_bits(b, dtype, moved), x)
    else:
        if dtype.name != "bfloat16":
            x = b.fadd(x, zero)
            bits = float_bits(b, dtype, x)
        result = b.fsub(float_from_bits(b, dtype, b.add(bits, one)), x)
    return b.select(is_finite(b, x), result, b.const(x, np.nan))


def ldexp(b: Builder, x: Value, n: Value) -> Value:
    """``x * 2**n``, rounded once; ``n`` is an integer of 32 or 64 bits."""
    if x.type.bits == 32:
        wide = b.convert("fpext", x, F64)
        return b.convert("fptrunc", _scale(b, wide, _bounded(b, n, 400)), x.type)
    n = _bounded(b, n, 2200)
    # Two steps bring the exponent into the range of one factor. Going down they leave 53 bits above
    # the smallest number, so that only the last product rounds.
    up, down = b.const(n, 1023), b.const(n, 969)
    for _ in range(2):
        is_high = b.icmp("sgt", n, up)
        is_low = b.icmp("slt", n, b.const(n, -1022))
        factor = b.select(is_high, b.const(x, 2.0**1023), b.const(x, 1))
        x = b.fmul(x, b.select(is_low, b.const(x, 2.0**-969), factor))
        n = b.select(is_high, b.sub(n, up), b.select(is_low, b.add(n, down), n))
    return _scale(b, x, _bounded(b, n, 1023, -1022))


def _bounded(b: Builder, n: Value, high: int, low: int | None = None) -> Value:
    """An integer brought into a range, as 64 bits."""
    n = b.convert("sext", n, Type("i", 64))
    n = b.intrinsic("smin", n, b.const(n, high))
    return b.intrinsic("smax", n, b.const(n, -high if low is None else low))


def _scale(b: Builder, x: Value, n: Value) -> Value:
    """A double times ``2**n`` for ``-1022 <= n <= 1023``."""
    return b.fmul(x, b.from_bits(b.shl(b.add(n, b.const(n, 1023)), b.const(n, 52))))


def frexp_exponent(b: Builder, x: Value) -> Value:
    """The ``n`` of ``x = m * 2**n`` with ``0.5 <= |m| < 1`` as 32 bits; 0 of what has none."""
    digits, bias = (52, 1022) if x.type.bits == 64 else (23, 126)
    is_tiny = b.fcmp("olt", b.fabs(x), b.const(x, 2.0 ** (1 - bias)))
    scaled = b.select(is_tiny, b.fmul(x, b.const(x, 2.0 ** (digits + 2))), x)
    bits = b.bits(b.fabs(scaled))
    field = b.lshr(bits, b.const(bits, digits))
    shift = b.select(is_tiny, b.const(field, bias + digits + 2), b.const(field, bias))
    exponent = b.convert("trunc", b.sub(field, shift), I32)
    has_one = b.and_(is_finite(b, x), b.fcmp("une", x, b.const(x, 0)))
    return b.select(has_one, exponent, b.const(exponent, 0))


# powers -------------------------------------------------------------------------------------------


def power(b: Builder, x: Value, y: Value, fixed: float | None) -> Value:
    """A power of floats; ``fixed`` is the exponent if that is a constant."""
    if fixed == 0.5:
        return b.sqrt(x)
    if fixed == 0:
        return b.const(x, 1)
    if fixed in _SIMPLE_POWERS:
        return _SIMPLE_POWERS[fixed](b, x)
    result = pow_(b, x, y)
    if fixed is not None:
        return result

    def simple() -> Value:
        # C's power has no negative zero and no NaN here, the root has both.
        root = b.sqrt(b.fadd(x, b.const(x, 0)))
        root = b.select(b.fcmp("oeq", x, b.const(x, -math.inf)), b.const(x, math.inf), root)
        picked = b.select(b.fcmp("oeq", y, b.const(y, 0.5)), root, result)
        for exponent, write in _SIMPLE_POWERS.items():
            is_that = b.fcmp("oeq", y, b.const(y, exponent))
            picked = b.select(is_that, write(b, x), picked)
        return picked

    double = b.fadd(y, y)
    is_simple = b.and_(
        b.fcmp("oeq", b.truncate(double), double), b.fcmp("ole", b.fabs(y), b.const(y, 3))
    )
    return rarely(b, is_simple, result, simple)


_SIMPLE_POWERS: dict[float | None, Callable[[Builder, Value], Value]] = {
    -1: lambda b, x: b.fdiv(b.const(x, 1), x),
    1: lambda b, x: x,
    2: lambda b, x: b.fmul(x, x),
    3: lambda b, x: b.fmul(b.fmul(x, x), x),
}
"""Powers that NumPy or this module has an operation for; the same for constants and variables."""
