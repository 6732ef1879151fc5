"""Numbers of twice the precision: unevaluated sums of two doubles.

Here: sums, products, quotients and polynomials of pairs ``(high, low)`` with ``|low|`` at most half
an ulp of ``high``; about 104 bits. For the few places where a function crosses zero as the
difference of large terms. Not here: functions.

Error-free sums and products: Dekker, A floating-point technique for extending the available
precision, Numer. Math. 18 (1971); Knuth, The Art of Computer Programming 2, 4.2.2. Arithmetic of
pairs: Joldes, Muller and Popescu, Tight and rigorous error bounds for basic building blocks of
double-word arithmetic, ACM TOMS 44 (2017).

Layer: ``emitter``.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.emitter.builder import Builder
from functrans.emitter.math.common import horner
from functrans.emitter.types import F64, Value

Pair = tuple[Value, Value]


def two_sum(b: Builder, x: Value, y: Value) -> Pair:
    """``x + y`` exactly."""
    total = b.fadd(x, y)
    part = b.fsub(total, x)
    return total, b.fadd(b.fsub(x, b.fsub(total, part)), b.fsub(y, part))


def quick_two_sum(b: Builder, x: Value, y: Value) -> Pair:
    """``x + y`` exactly, where ``x`` is zero or has at least the exponent of ``y``."""
    total = b.fadd(x, y)
    return total, b.fadd(b.fsub(x, total), y)


def two_product(b: Builder, x: Value, y: Value) -> Pair:
    """``x y`` exactly, if nothing underflows."""
    product = b.fmul(x, y)
    return product, b.fma(x, y, b.fneg(product))


def add(b: Builder, x: Pair, y: Pair) -> Pair:
    """``x + y``, to within three units of the 106th bit."""
    high, error = two_sum(b, x[0], y[0])
    low, rest = two_sum(b, x[1], y[1])
    high, error = quick_two_sum(b, high, b.fadd(error, low))
    return quick_two_sum(b, high, b.fadd(rest, error))


def negative(b: Builder, x: Pair) -> Pair:
    """``-x``."""
    return b.fneg(x[0]), b.fneg(x[1])


def multiply(b: Builder, x: Pair, y: Pair) -> Pair:
    """``x y``, to within five units of the 106th bit."""
    high, error = two_product(b, x[0], y[0])
    low = b.fma(x[1], y[0], b.fma(x[0], y[1], b.fmul(x[1], y[1])))
    return quick_two_sum(b, high, b.fadd(error, low))


def multiply_double(b: Builder, x: Pair, y: Value) -> Pair:
    """``x y`` of a pair and a double, to within two units of the 106th bit."""
    high, error = two_product(b, x[0], y)
    return quick_two_sum(b, high, b.fma(x[1], y, error))


def reciprocal(b: Builder, x: Pair) -> Pair:
    """``1 / x``, to within three units of the 106th bit."""
    one = b.const(x[0], 1.0)
    first = b.fdiv(one, x[0])
    minus = b.fneg(first)
    error = b.fma(minus, x[0], one)
    # 1 / x = first (1 + e + e^2 ...) with e = 1 - x first, which is below 2^-51.
    error, error_low = quick_two_sum(b, error, b.fmul(minus, x[1]))
    error_low = b.fadd(error_low, b.fma(minus, x[1], b.fneg(b.fmul(minus, x[1]))))
    error_low = b.fma(error, error, error_low)
    high, low = two_product(b, first, error)
    high, low = quick_two_sum(b, high, b.fma(first, error_low, low))
    total, rest = quick_two_sum(b, first, high)
    return total, b.fadd(rest, low)


def select(b: Builder, condition: Value, x: Pair, y: Pair) -> Pair:
    """``x`` where the condition holds, else ``y``."""
    return b.select(condition, x[0], y[0]), b.select(condition, x[1], y[1])


def polynomial(b: Builder, x: Pair | Value, coefficients: Sequence[tuple[float, float]]) -> Pair:
    """A polynomial by Horner's rule, as a loop over a table in memory.

    Args:
      b: where to write.
      x: its argument, a pair or a double.
      coefficients: lowest order first. Those without a second part must be so small that double
        precision does for their sum.
    """
    first = x if isinstance(x, Value) else x[0]
    type_, lanes = first.type, first.type.lanes
    plain = sum(low == 0.0 for _, low in coefficients)
    paired = coefficients[: len(coefficients) - plain]
    start = horner(b, first, [high for high, _ in coefficients[len(paired) :]])
    table = b.module.table([part for pair in reversed(paired) for part in pair], F64)
    high, low = b.alloca(type_), b.alloca(type_)
    b.store(start, high)
    b.store(b.const(first, 0.0), low)
    with b.loop(b.index(0), b.index(2 * len(paired)), 2) as i:
        total = b.load(type_, high), b.load(type_, low)
        if isinstance(x, Value):
            product, error = two_product(b, total[0], x)
            error = b.fma(total[1], x, error)
        else:
            product, error = multiply(b, total, x)
        c = b.splat(b.load(F64, b.element(table, i, F64)), lanes)
        c_low = b.splat(b.load(F64, b.element(table, b.add(i, b.index(1)), F64)), lanes)
        whole, rest = two_sum(b, c, product)
        whole, rest = quick_two_sum(b, whole, b.fadd(rest, b.fadd(c_low, error)))
        b.store(whole, high)
        b.store(rest, low)
    return b.load(type_, high), b.load(type_, low)
