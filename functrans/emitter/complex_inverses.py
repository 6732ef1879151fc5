"""Inverse circular and hyperbolic functions of complex numbers.

Here: functions of ``(real, imaginary)`` pairs as in ``emitter.complex_functions``, with the branch
cuts of C99 Annex G. Not here: the real functions (``emitter.math``).

Sources: Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using
exception handling", ACM TOMS 23 (1997); Kahan, "Branch cuts for complex elementary functions"
(1987).

Layer: ``emitter``.
"""

from __future__ import annotations

import math

from functrans.emitter.builder import Builder
from functrans.emitter.complex_functions import first_of, log_absolute
from functrans.emitter.complexes import Pair
from functrans.emitter.floats import is_infinite, sign_bit
from functrans.emitter.math import geometry, inverse_trigonometry, logarithm
from functrans.emitter.types import Value

EPSILON = {64: 2.0**-52, 32: 2.0**-23}


def _crossover(b: Builder, z: Pair) -> tuple[Value, Value, Value]:
    """Arcsine, arccosine and the imaginary part of both, of ``|x| + i |y|`` (Hull et al.)."""
    bits = z[0].type.bits
    x, y = b.fabs(z[0]), b.fabs(z[1])
    one, half = b.const(x, 1), b.const(x, 0.5)
    limit = b.const(x, 2.0**34 if bits == 64 else 2.0**15)
    is_large = b.or_(b.fcmp("ogt", x, limit), b.fcmp("ogt", y, limit))
    x_far, y_far = x, y
    x, y = b.select(is_large, one, x), b.select(is_large, one, y)
    more = b.fadd(x, one)
    less = b.fabs(b.fsub(x, one))
    r, s = geometry.hypot(b, more, y), geometry.hypot(b, less, y)
    a = b.fmul(half, b.fadd(r, s))
    ratio = b.fdiv(x, a)
    is_inside = b.fcmp("ole", x, one)
    yy = b.fmul(y, y)
    right = b.fadd(r, more)
    left = b.fadd(s, less)
    first = b.fdiv(yy, right)
    # The root that both tangents have, in a form without cancellation on either side of 1.
    reach = b.fmul(half, b.fadd(a, x))
    inner = b.sqrt(b.fmul(reach, b.fadd(first, left)))
    outer = b.fmul(y, b.sqrt(b.fadd(b.fdiv(reach, right), b.fdiv(reach, left))))
    root = b.select(is_inside, inner, outer)
    is_steep = b.fcmp("ogt", ratio, b.const(x, 0.6417))
    arcsine = b.select(
        is_steep, inverse_trigonometry.atan2(b, x, root), inverse_trigonometry.asin(b, ratio)
    )
    arccosine = b.select(
        is_steep, inverse_trigonometry.atan2(b, root, x), inverse_trigonometry.acos(b, ratio)
    )
    # a - 1 without cancellation
    is_below = b.fcmp("olt", x, one)
    second = b.select(is_below, b.fdiv(yy, left), left)
    both = b.fadd(first, second)  # twice a - 1, of which the half may be too small for a number
    middle = b.fmul(half, b.fadd(a, one))
    near = logarithm.log1p(b, b.fadd(b.fmul(half, both), b.sqrt(b.fmul(both, middle))))
    wide = logarithm.log(b, b.fadd(a, b.sqrt(b.fmul(b.fsub(a, one), b.fadd(a, one)))))
    flat = b.fdiv(y, b.sqrt(b.fmul(less, more)))
    is_flat = b.and_(is_below, b.fcmp("olt", y, b.fmul(b.const(x, EPSILON[bits]), less)))
    imaginary = first_of(b, is_flat, flat, b.fcmp("ole", a, b.const(x, 1.5)), near, wide)
    far = b.fadd(log_absolute(b, (x_far, y_far)), b.const(x, math.log(2)))
    return (
        b.select(is_large, inverse_trigonometry.atan2(b, x_far, y_far), arcsine),
        b.select(is_large, inverse_trigonometry.atan2(b, y_far, x_far), arccosine),
        b.select(is_large, far, imaginary),
    )


def arcsin(b: Builder, z: Pair) -> Pair:
    """Arcsine; branch cuts on the real axis beyond -1 and 1."""
    arcsine, _, imaginary = _crossover(b, z)
    x_is_zero = b.fcmp("oeq", z[0], b.const(z[0], 0))
    re = b.select(x_is_zero, z[0], b.copysign(arcsine, z[0]))
    return re, b.copysign(imaginary, z[1])


def arccos(b: Builder, z: Pair) -> Pair:
    """Arccosine; branch cuts on the real axis beyond -1 and 1."""
    x = z[0]
    _, arccosine, imaginary = _crossover(b, z)
    re = b.select(sign_bit(b, x), b.fsub(b.const(x, math.pi), arccosine), arccosine)
    re = b.select(b.fcmp("oeq", x, b.const(x, 0)), b.const(x, math.pi / 2), re)
    return re, b.fneg(b.copysign(imaginary, z[1]))


def arcsinh(b: Builder, z: Pair) -> Pair:
    """``-i arcsin(i z)``."""
    im, re = arcsin(b, (z[1], z[0]))
    return re, im


def arccosh(b: Builder, z: Pair) -> Pair:
    """``i arccos z`` or ``-i arccos z``, in the right half plane."""
    re, im = arccos(b, z)
    return b.fabs(im), b.copysign(re, z[1])


def arctanh(b: Builder, z: Pair) -> Pair:
    """``log1p(4x / ((1-x)**2 + y**2)) / 4 + i atan2(2y, (1-x)(1+x) - y**2) / 2`` for x, y >= 0."""
    bits = z[0].type.bits
    x, y = b.fabs(z[0]), b.fabs(z[1])
    zero, one, half = b.const(x, 0), b.const(x, 1), b.const(x, 0.5)
    epsilon = EPSILON[bits]
    limit = b.const(x, 1 / epsilon)
    is_large = b.or_(b.fcmp("ogt", x, limit), b.fcmp("ogt", y, limit))
    less, more = b.fsub(one, x), b.fadd(one, x)
    squares = b.fadd(b.fmul(less, less), b.fmul(y, y))
    grown = logarithm.log1p(b, b.fdiv(b.fmul(b.const(x, 4), x), squares))
    re = b.fmul(b.const(x, 0.25), grown)
    is_pole = b.and_(b.fcmp("oeq", x, one), b.fcmp("olt", y, b.const(x, epsilon)))
    at_pole = b.fmul(half, b.fsub(b.const(x, math.log(2)), logarithm.log(b, y)))
    # x / (x**2 + y**2), halved twice against overflow
    x_is_larger = b.fcmp("ogt", x, y)
    top, low = b.select(x_is_larger, x, y), b.select(x_is_larger, y, x)
    ratio = b.fdiv(low, top)
    below = b.fadd(b.fmul(top, half), b.fmul(b.fmul(low, half), ratio))
    far = b.fdiv(b.fmul(half, b.select(x_is_larger, one, ratio)), below)
    far = b.select(b.or_(is_infinite(b, x), is_infinite(b, y)), zero, far)
    re = first_of(b, is_pole, at_pole, is_large, far, re)
    across = b.fmul(less, more)
    is_flat = b.fcmp("olt", y, b.const(x, epsilon))
    across = b.select(is_flat, across, b.fsub(across, b.fmul(y, y)))
    double = b.fmul(b.const(y, 2), y)
    on_one = b.fcmp("oeq", x, one)
    up = first_of(b, on_one, b.const(x, 2), double)
    over = first_of(b, on_one, b.fneg(y), across)
    im = b.fmul(half, inverse_trigonometry.atan2(b, up, over))
    has_angle = b.or_(b.fcmp("ord", x, y), is_infinite(b, y))
    right_angle = b.select(has_angle, b.const(x, math.pi / 2), b.const(x, math.nan))
    im = b.select(is_large, right_angle, im)
    re, im = b.copysign(re, z[0]), b.copysign(im, z[1])
    y_is_zero = b.and_(b.fcmp("oeq", y, zero), b.fcmp("ole", x, one))
    im = b.select(y_is_zero, z[1], im)
    return b.select(b.fcmp("oeq", x, zero), z[0], re), im


def arctan(b: Builder, z: Pair) -> Pair:
    """``-i arctanh(i z)``."""
    im, re = arctanh(b, (z[1], z[0]))
    return re, im
