"""Complex arithmetic on pairs of floats.

Here: functions of ``(real, imaginary)`` pairs with NumPy's formulas and special values. Not here:
dtypes (``emitter.numbers``), real functions (``emitter.math``).

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.types import Value

Pair = tuple[Value, ...]


def multiply(b: Builder, x: Pair, y: Pair) -> Pair:
    """``(ac - bd) + (ad + bc) i``, every product rounded."""
    (xr, xi), (yr, yi) = x, y
    re = b.fsub(b.fmul(xr, yr), b.fmul(xi, yi))
    im = b.fadd(b.fmul(xr, yi), b.fmul(xi, yr))
    return re, im


def divide(b: Builder, x: Pair, y: Pair) -> Pair:
    """``x / y`` by Smith's method, scaling with the larger part of the divisor.

    Smith, "Algorithm 116: Complex division", CACM 5 (1962). Division by zero divides each part by
    the absolute value of zero.
    """
    (xr, xi), (yr, yi) = x, y
    ar, ai = b.fabs(yr), b.fabs(yi)
    zero = b.const(yr, 0)
    is_zero = b.and_(b.fcmp("oeq", ar, zero), b.fcmp("oeq", ai, zero))
    by_real = b.fcmp("oge", ar, ai)
    big, small = b.select(by_real, yr, yi), b.select(by_real, yi, yr)
    ratio = b.fdiv(small, big)
    scale = b.fdiv(b.const(yr, 1), b.fadd(big, b.fmul(small, ratio)))
    # by the real part: (xr + xi r, xi - xr r); by the imaginary part: (xr r + xi, xi r - xr)
    first, second = b.select(by_real, xr, xi), b.select(by_real, xi, xr)
    re = b.fmul(b.fadd(first, b.fmul(second, ratio)), scale)
    im_by_real = b.fsub(xi, b.fmul(xr, ratio))
    im_by_imag = b.fsub(b.fmul(xi, ratio), xr)
    im = b.fmul(b.select(by_real, im_by_real, im_by_imag), scale)
    return (b.select(is_zero, b.fdiv(xr, ar), re), b.select(is_zero, b.fdiv(xi, ar), im))


def compare(b: Builder, name: str, x: Pair, y: Pair) -> Value:
    """Equality, or lexicographic order; false where a part that is NaN takes part."""
    (xr, xi), (yr, yi) = x, y
    if name == "eq":
        return b.and_(b.fcmp("oeq", xr, yr), b.fcmp("oeq", xi, yi))
    if name == "ne":
        return b.or_(b.fcmp("une", xr, yr), b.fcmp("une", xi, yi))
    first = b.and_(b.fcmp(f"o{name[0]}t", xr, yr), b.fcmp("ord", xi, yi))
    second = b.and_(b.fcmp("oeq", xr, yr), b.fcmp(f"o{name}", xi, yi))
    return b.or_(first, second)


def precedes(b: Builder, x: Pair, y: Pair) -> Value:
    """Whether ``x < y`` in NumPy's ``clip``.

    An imaginary part that is NaN counts where the real parts are equal only (in ``<``: always).
    """
    (xr, xi), (yr, yi) = x, y
    return b.select(b.fcmp("oeq", xr, yr), b.fcmp("olt", xi, yi), b.fcmp("olt", xr, yr))
