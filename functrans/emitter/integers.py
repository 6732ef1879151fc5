"""Integer arithmetic with NumPy's answers where the machine has none.

Here: functions of integer values (signedness is an argument): division, shifts, powers, common
divisors. Not here: dtypes (``emitter.numbers``).

Layer: ``emitter``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.emitter.builder import Builder
from functrans.emitter.types import Value


def compare(
    b: Builder, name: str, x: Value, y: Value, x_is_signed: bool, y_is_signed: bool
) -> Value:
    """Compare by value, also integers of different signedness (booleans are unsigned)."""
    if name in ("eq", "ne"):
        result = b.icmp(name, x, y)
    elif x_is_signed and y_is_signed:
        return b.icmp(f"s{name}", x, y)
    else:
        result = b.icmp(f"u{name}", x, y)
    if x_is_signed == y_is_signed:
        return result
    # One is signed and the other is not: a negative number is below all of the other's.
    signed = x if x_is_signed else y
    is_negative = b.icmp("slt", signed, b.const(signed, 0))
    holds = name == "ne" if name in ("eq", "ne") else (name[0] == "l") == x_is_signed
    return b.select(is_negative, b.const(is_negative, holds), result)


# division -----------------------------------------------------------------------------------------


def _safe_divisor(b: Builder, x: Value, y: Value, is_signed: bool) -> tuple[Value, Value]:
    """A divisor that cannot trap, and where the true one is zero.

    1 stands for 0, and for the -1 that the smallest integer cannot be divided by: its quotient
    wraps to itself and its remainder is 0, as by 1.
    """
    is_zero = b.icmp("eq", y, b.const(y, 0))
    unusable = is_zero
    if is_signed:
        smallest = b.const(x, 1 << (x.type.bits - 1))
        wraps = b.and_(b.icmp("eq", x, smallest), b.icmp("eq", y, b.const(y, -1)))
        unusable = b.or_(is_zero, wraps)
    return b.select(unusable, b.const(y, 1), y), is_zero


def floor_divide(b: Builder, x: Value, y: Value, is_signed: bool) -> Value:
    """Quotient rounded down; 0 by zero."""
    divisor, is_zero = _safe_divisor(b, x, y, is_signed)
    zero = b.const(x, 0)
    if not is_signed:
        return b.select(is_zero, zero, b.udiv(x, divisor))
    quotient = b.sdiv(x, divisor)
    rest = b.sub(x, b.mul(quotient, divisor))
    quotient = b.select(_needs_step(b, rest, divisor), b.sub(quotient, b.const(x, 1)), quotient)
    return b.select(is_zero, zero, quotient)


def remainder(b: Builder, x: Value, y: Value, is_signed: bool) -> Value:
    """Remainder with the sign of the divisor; 0 by zero."""
    divisor, is_zero = _safe_divisor(b, x, y, is_signed)
    zero = b.const(x, 0)
    if not is_signed:
        return b.select(is_zero, zero, b.urem(x, divisor))
    rest = b.srem(x, divisor)
    rest = b.select(_needs_step(b, rest, divisor), b.add(rest, divisor), rest)
    return b.select(is_zero, zero, rest)


def _needs_step(b: Builder, rest: Value, divisor: Value) -> Value:
    """Whether a remainder is not 0 and has not the divisor's sign."""
    zero = b.const(rest, 0)
    differs = b.icmp("slt", b.xor(rest, divisor), zero)
    return b.and_(differs, b.icmp("ne", rest, zero))


def fmod(b: Builder, x: Value, y: Value, is_signed: bool) -> Value:
    """Remainder with the sign of the dividend; 0 by zero."""
    divisor, is_zero = _safe_divisor(b, x, y, is_signed)
    rest = b.srem(x, divisor) if is_signed else b.urem(x, divisor)
    return b.select(is_zero, b.const(x, 0), rest)


# shifts, signs ------------------------------------------------------------------------------------


def left_shift(b: Builder, x: Value, y: Value) -> Value:
    """``x << y``; 0 for a shift of the width or more, or a negative one."""
    return _shift(b, b.shl, x, y, b.const(x, 0))


def right_shift(b: Builder, x: Value, y: Value, is_signed: bool) -> Value:
    """``x >> y``; nothing but the sign is left by a shift of the width or more."""
    if not is_signed:
        return _shift(b, b.lshr, x, y, b.const(x, 0))
    return _shift(b, b.ashr, x, y, b.ashr(x, b.const(x, x.type.bits - 1)))


def _shift(
    b: Builder, shift: Callable[[Value, Value], Value], x: Value, y: Value, beyond: Value
) -> Value:
    fits = b.icmp("ult", y, b.const(y, x.type.bits))
    return b.select(fits, shift(x, b.select(fits, y, b.const(y, 0))), beyond)


def negative(b: Builder, x: Value) -> Value:
    """``-x``, wrapping."""
    return b.sub(b.const(x, 0), x)


def absolute(b: Builder, x: Value) -> Value:
    """Absolute value of a signed integer; the smallest is its own."""
    return b.select(b.icmp("slt", x, b.const(x, 0)), negative(b, x), x)


def sign(b: Builder, x: Value, is_signed: bool) -> Value:
    """-1, 0 or 1."""
    zero, one = b.const(x, 0), b.const(x, 1)
    if not is_signed:
        return b.select(b.icmp("eq", x, zero), zero, one)
    above = b.select(b.icmp("sgt", x, zero), one, zero)
    return b.select(b.icmp("slt", x, zero), b.const(x, -1), above)


# loops --------------------------------------------------------------------------------------------


def power(b: Builder, x: Value, y: Value) -> Value:
    """``x ** y`` for exponents that are not negative, wrapping."""
    return b.helper(f"ft_ipow_i{x.type.bits}x{x.type.lanes}", (x, y), x.type, _write_power)


def _write_power(b: Builder) -> None:
    """Squares, multiplied where the exponent has a bit."""
    base, exponent = b.arguments
    one, zero = b.const(base, 1), b.const(base, 0)

    def step(state: list[Value]) -> list[Value]:
        base, exponent, result = state
        has_bit = b.icmp("ne", b.and_(exponent, one), zero)
        result = b.select(has_bit, b.mul(result, base), result)
        return [b.mul(base, base), b.lshr(exponent, one), result]

    *_, result = _repeat(b, [base, exponent, one], lambda state: b.icmp("ne", state[1], zero), step)
    b.ret(result)


def gcd(b: Builder, x: Value, y: Value, is_signed: bool) -> Value:
    """Greatest common divisor, of absolute values."""
    if is_signed:
        x, y = absolute(b, x), absolute(b, y)
    return b.helper(f"ft_gcd_i{x.type.bits}x{x.type.lanes}", (x, y), x.type, _write_gcd)


def _write_gcd(b: Builder) -> None:
    """Euclid's algorithm, one lane after the other: the numbers of steps differ."""
    x, y = b.arguments
    if x.type.lanes > 1:
        result = x
        for lane in range(x.type.lanes):
            divisor = gcd(b, b.extract(x, lane), b.extract(y, lane), False)
            result = b.insert(result, divisor, lane)
        b.ret(result)
        return
    zero = b.const(x, 0)
    result, _ = _repeat(
        b,
        (x, y),
        lambda state: b.icmp("ne", state[1], zero),
        lambda state: [state[1], b.urem(*state)],
    )
    b.ret(result)


def lcm(b: Builder, x: Value, y: Value, is_signed: bool) -> Value:
    """Least common multiple of absolute values, wrapping; 0 with 0."""
    if is_signed:
        x, y = absolute(b, x), absolute(b, y)
    divisor = gcd(b, x, y, False)
    is_zero = b.icmp("eq", divisor, b.const(x, 0))
    return b.mul(b.udiv(x, b.select(is_zero, b.const(x, 1), divisor)), y)


def _repeat(
    b: Builder,
    state: Sequence[Value],
    condition: Callable[[list[Value]], Value],
    step: Callable[[list[Value]], list[Value]],
) -> list[Value]:
    """Go on while the condition holds in some lane."""
    slots = [b.alloca(value.type) for value in state]
    for value, slot in zip(state, slots, strict=True):
        b.store(value, slot)
    head, body, done = b.label("again"), b.label("step"), b.label("done")
    b.branch(head)
    b.start(head)
    current = [b.load(value.type, slot) for value, slot in zip(state, slots, strict=True)]
    b.branch_if(b.any_lane(condition(current)), body, done)
    b.start(body)
    for value, slot in zip(step(current), slots, strict=True):
        b.store(value, slot)
    b.branch(head)
    b.start(done)
    return current
