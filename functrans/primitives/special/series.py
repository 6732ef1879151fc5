"""Derivatives of incomplete gamma, incomplete beta and zeta functions in their parameters.

Here: functions of float64 arrays that sum a series or a continued fraction together with its first
and second derivatives, until all have converged. Not here: the records that call them.

The incomplete functions are a factor of elementary and gamma functions times a series of positive
terms (or a continued fraction). The value itself is SciPy's; only the *logarithmic* derivatives are
summed, so that the derivative is as exact in relative terms as the value, also far in the tails:
``P_a = P (log x - psi(a + 1) + S_a / S)``, and the like.

Layer: ``primitives.special``. Sources: DLMF 8.11.4, 8.9.2 and 8.17.22 for the expansions; Moore,
Algorithm AS 187 (1982) and Boik and Robison-Cox, Derivatives of the incomplete beta function
(1998), for their derivatives term by term; DLMF 25.11.5 for the zeta function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core.values import Array
from functrans.primitives.special.family import routine

_EPS = 1e-16
_TINY = 1e-300
# Terms grow as the root of the largest parameter; this many serve for parameters up to 1e9.
_MOST_TERMS = 1_000_000


# incomplete gamma --------------------------------------------------------------------------------


def _gamma_series(a: Array, x: Array) -> tuple[Any, Any]:
    """First and second logarithmic derivative in ``a`` of ``sum(x**n / ((a+1) ... (a+n)))``."""
    term = np.ones_like(a)
    first = np.zeros_like(a)  # of the logarithm of the term
    second = np.zeros_like(a)
    total, slope, bend = term.copy(), np.zeros_like(a), np.zeros_like(a)
    for n in range(1, _MOST_TERMS):
        inverse = 1 / (a + n)
        term = term * (x * inverse)
        first -= inverse
        second += inverse * inverse
        total += term
        slope += term * first
        increment = term * (first * first + second)
        bend += increment
        if n % 8 == 0 and not np.any(increment > _EPS * bend):
            break
    ratio = slope / total
    return ratio, bend / total - ratio * ratio


def _multiply(u: Array, v: Array) -> Array:
    """Product of ``(value, first, second derivative)``."""
    return np.stack(
        (u[0] * v[0], u[1] * v[0] + u[0] * v[1], u[2] * v[0] + 2 * u[1] * v[1] + u[0] * v[2])
    )


def _invert(u: Array) -> Array:
    """Reciprocal of ``(value, first, second derivative)``."""
    r = 1 / np.where(u[0] == 0, _TINY, u[0])
    return np.stack((r, -u[1] * r * r, (2 * u[1] * u[1] * r - u[2]) * r * r))


def _gamma_fraction(a: Array, x: Array) -> tuple[Any, Any]:
    """First and second logarithmic derivative in ``a`` of the continued fraction of DLMF 8.9.2.

    Lentz's method in Steed's form, on value and derivatives; where ``a`` is an integer the fraction
    ends, but its derivatives go on.
    """
    zero, one = np.zeros_like(a), np.ones_like(a)
    b = x + 1 - a
    d = _invert(np.stack((b, -one, zero)))
    c = np.stack((one / _TINY, zero, zero))
    first, second = -d[1] / d[0], zero  # of the logarithm of the denominator, for the start
    first = d[1] / d[0]
    second = d[2] / d[0] - first * first
    settled = 0
    for n in range(1, _MOST_TERMS):
        step = np.stack((-n * (n - a), n * one, zero))
        b = b + 2
        base = np.stack((b, -one, zero))
        d = _invert(base + _multiply(step, d))
        c = base + (_multiply(step, _invert(c)) if n > 1 else 0)
        factor = _multiply(c, d)
        ratio = factor[1] / factor[0]
        bend = factor[2] / factor[0] - ratio * ratio
        first = first + ratio
        second = second + bend
        is_open = (np.abs(ratio) > _EPS * np.abs(first)) | (np.abs(bend) > _EPS * np.abs(second))
        settled = 0 if np.any(is_open) else settled + 1
        if settled == 3:
            break
    return first, second


def _gamma_at_zero(x: Array) -> tuple[Any, Any]:
    """First and second derivative of the lower ratio in its parameter at 0, from the right.

    The upper one is ``gamma(a, x) / gamma(a) = (a + euler a**2 + ...) gamma(a, x)``, and
    ``gamma(0, x)`` is ``exp1``.
    """
    value = routine("exp1")(x)
    is_near = x < 1
    first = -value
    second = np.zeros_like(x)
    far, near = x[~is_near], x[is_near]
    slope, _ = _gamma_fraction(np.zeros_like(far), far)
    second[~is_near] = -2 * value[~is_near] * (np.euler_gamma + np.log(far) + slope)
    slope, bend = _gamma_series(np.zeros_like(near), near)
    rise = slope + (np.log(near) + np.euler_gamma)  # of the logarithm of the lower ratio, 1 at 0
    second[is_near] = rise * rise + bend - math.pi**2 / 6
    second[np.isinf(x)] = 0
    return first, second


def gammainc_derivatives(a: Array, x: Array) -> tuple[Any, Any]:
    """First and second derivative of the lower incomplete gamma ratio in its parameter.

    Args:
      a: parameter, ``f64[...]``.
      x: upper limit, of a shape that broadcasts with it.
    """
    a, x = np.broadcast_arrays(a, x)
    shape, a, x = a.shape, a.ravel(), x.ravel()
    first, second = np.zeros(a.shape), np.zeros(a.shape)
    is_valid = (a > 0) & (x >= 0)
    first[~is_valid] = second[~is_valid] = np.nan
    is_inside = is_valid & (x > 0) & np.isfinite(x) & np.isfinite(a)
    psi, zeta = routine("psi"), routine("zeta")
    (at,) = np.nonzero((a == 0) & (x > 0))
    if at.size:
        first[at], second[at] = _gamma_at_zero(x[at])
    for is_lower in (True, False):
        (at,) = np.nonzero(is_inside & ((x < a + 1) == is_lower))
        value = routine("gammainc" if is_lower else "gammaincc")(a[at], x[at])
        is_left = value != 0  # the slopes of the logarithm need not settle where nothing is left
        at, value = at[is_left], value[is_left]
        if not at.size:
            continue
        aa, xx = a[at], x[at]
        if is_lower:
            shift = 1.0
            slope, bend = _gamma_series(aa, xx)
        else:
            value, shift = -value, 0.0
            slope, bend = _gamma_fraction(aa, xx)
        slope = slope + (np.log(xx) - psi(aa + shift))
        bend = bend - zeta(2.0, aa + shift)
        first[at] = value * slope
        second[at] = value * (slope * slope + bend)
    return first.reshape(shape), second.reshape(shape)


# incomplete beta ---------------------------------------------------------------------------------

# Value, first derivatives in a and b, second ones: aa, ab, bb.
_COMPONENTS = 6


def _product(u: Array, v: Any) -> Array:
    """Product of two values with their derivatives in two variables."""
    w = u[0] * v + u * v[0]
    w[0] = u[0] * v[0]
    w[3] += 2 * u[1] * v[1]
    w[4] += u[1] * v[2] + u[2] * v[1]
    w[5] += 2 * u[2] * v[2]
    return w


def _reciprocal(u: Array) -> Array:
    """Reciprocal of a value with its derivatives in two variables."""
    r = 1 / np.where(u[0] == 0, _TINY, u[0])
    w = u * -(r * r)
    w[0] = r
    cube = 2 * r * r * r
    w[3] += cube * u[1] * u[1]
    w[4] += cube * u[1] * u[2]
    w[5] += cube * u[2] * u[2]
    return w


def _logarithm(u: Array) -> Array:
    """Derivatives of the logarithm of a value with derivatives: 1, 2, 11, 12, 22."""
    first, second = u[1] / u[0], u[2] / u[0]
    return np.stack((
        first, second, u[3] / u[0] - first * first, u[4] / u[0] - first * second,
        u[5] / u[0] - second * second,
    ))  # fmt: skip


def _beta_fraction(a: Array, b: Array, x: Array, added: Array) -> Array:
    """Logarithmic derivatives of the continued fraction of DLMF 8.17.22: a, b, aa, ab, bb.

    Args:
      a: first parameter.
      b: second parameter.
      x: upper limit.
      added: what they are added to, whose rounding is the accuracy that counts: where ``b`` is 1 a
        derivative is 0, and what is left of it is noise.
    """
    one = np.zeros((_COMPONENTS, a.size))
    one[0] = 1

    def step(m: int, is_even: bool) -> Any:
        """The coefficient with its derivatives."""
        s = np.zeros((_COMPONENTS, a.size))
        if is_even:
            p, q = 1 / (a + 2 * m - 1), 1 / (a + 2 * m)
            of_b = m * x * p * q
            s[0] = of_b * (b - m)
            s[1], s[2] = -s[0] * (p + q), of_b
            s[3], s[4] = s[0] * ((p + q) ** 2 + p * p + q * q), -of_b * (p + q)
            return s
        p, q = 1 / (a + 2 * m), 1 / (a + 2 * m + 1)
        u, v = 1 / (a + m), 1 / (a + b + m)
        s[0] = -(a + m) * (a + b + m) * x * p * q
        slope = u + v - p - q
        s[1], s[2] = s[0] * slope, s[0] * v
        s[3] = s[0] * (slope * slope - u * u - v * v + p * p + q * q)
        s[4] = s[0] * v * (slope - v)
        return s

    c = one
    d = _reciprocal(one + step(0, False))
    total = _logarithm(d)
    settled = 0
    floor = np.abs(added)
    for m in range(1, _MOST_TERMS):
        increment: Any = 0.0
        for is_even in (True, False):
            s = step(m, is_even)
            d = _reciprocal(one + _product(s, d))
            c = one + _product(s, _reciprocal(c))
            increment = increment + _logarithm(_product(c, d))
        total = total + increment
        settled = (
            0 if np.any(np.abs(increment) > 2 * _EPS * (np.abs(total) + floor)) else settled + 1
        )
        if settled == 2:
            break
    return total


def betainc_derivatives(a: Any, b: Any, x: Array) -> tuple[Any, Any, Any, Any, Any]:
    """Derivatives of the regularised incomplete beta function in its parameters: a, b, aa, ab, bb.

    Where a parameter is 0, the first ones are limits from the right, the second ones are NaN.

    Args:
      a: first parameter, ``f64[...]``.
      b: second parameter.
      x: upper limit.
    """
    a, b, x = np.broadcast_arrays(a, b, x)
    shape, a, b, x = a.shape, a.ravel(), b.ravel(), x.ravel()
    out = np.zeros((5, a.size))
    is_valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    out[:, ~is_valid] = np.nan
    is_inside = is_valid & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
    for number, zero, other, end in ((0, a, b, 1 - x), (1, b, a, x)):
        (at,) = np.nonzero((zero == 0) & (other > 0) & (x > 0) & (x < 1))
        if at.size:
            p, z = other[at], end[at]
            slope = z**p / p * routine("hyp2f1")(1.0, p, p + 1, z)  # of beta(z; p, 0)
            out[number, at], out[1 - number, at] = (2 * number - 1) * slope, 0
    for is_lower in (True, False):
        (at,) = np.nonzero(is_inside & ((x * (a + b + 2) < a + 1) == is_lower))
        if not at.size:
            continue
        if is_lower:
            out[:, at] = _beta_lower(a[at], b[at], x[at], np.log(x[at]), np.log1p(-x[at]))
        else:
            # I_x(a, b) = 1 - I_{1-x}(b, a)
            swapped = _beta_lower(b[at], a[at], 1 - x[at], np.log1p(-x[at]), np.log(x[at]), x[at])
            out[:, at] = -swapped[[1, 0, 4, 3, 2]]
    return tuple(row.reshape(shape) for row in out)


def _beta_lower(
    a: Array, b: Array, x: Array, log_x: Array, log_1x: Array, rest: Array | None = None
) -> Array:
    """The derivatives where ``x`` is below the mean; ``rest`` is ``1 - x``, where that is exact."""
    psi, zeta = routine("psi"), routine("zeta")
    value = routine("betainc")(a, b, x) if rest is None else routine("betaincc")(b, a, rest)
    # The factor is x**a (1-x)**b / (a B(a, b)).
    of_sum, bend_of_sum = psi(a + b), zeta(2.0, a + b)
    of_a, of_b = psi(a + 1), psi(b)
    bend_of_a, bend_of_b = zeta(2.0, a + 1), zeta(2.0, b)
    added = (np.abs(log_x) + np.abs(of_sum) + np.abs(of_a),
             np.abs(log_1x) + np.abs(of_sum) + np.abs(of_b),
             bend_of_sum + bend_of_a, bend_of_sum, bend_of_sum + bend_of_b)  # fmt: skip
    logs = _beta_fraction(a, b, x, np.stack(added))
    first = logs[0] + (log_x + of_sum - of_a)
    second = logs[1] + (log_1x + of_sum - of_b)
    return value * np.stack((
        first,
        second,
        first * first + logs[2] + bend_of_sum - bend_of_a,
        first * second + logs[3] + bend_of_sum,
        second * second + logs[4] + bend_of_sum - bend_of_b,
    ))  # fmt: skip


# zeta --------------------------------------------------------------------------------------------

_TERMS = 24
# B_2j / (2j)!
_BERNOULLI = tuple(
    number / math.factorial(2 * j)
    for j, number in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
         -174611 / 330, 854513 / 138),
        start=1,
    )
)  # fmt: skip


def hurwitz_derivatives(s: Array, q: Array) -> tuple[Any, Any]:
    """First and second derivative of Hurwitz's zeta function in its exponent.

    By Euler and Maclaurin's formula, which holds for exponents above -20; close to and above 1 and
    for exponents down to 0 it is exact to rounding.

    Args:
      s: exponent, ``f64[...]``; the limit from above at the pole 1, that at infinity.
      q: shift, positive; NaN elsewhere.
    """
    s, q = np.broadcast_arrays(s, q)
    q = np.where(q > 0, q, np.nan)
    first, second = np.zeros(s.shape), np.zeros(s.shape)
    with np.errstate(all="ignore"):
        for k in range(_TERMS):
            log = np.log(q + k)
            power = np.exp(-s * log)
            first -= power * log
            second += power * (log * log)
        end = q + _TERMS
        log = np.log(end)
        power = np.exp(-s * log)
        # The integral, end**(1-s) / (s-1).
        pole = 1 / (s - 1)
        integral = end * power * pole
        slope = -log - pole
        first += integral * slope
        second += integral * (slope * slope + pole * pole)
        # The corrections: half of the first term left out, then (s)_{2j-1} end**(-s-2j+1).
        factor = np.stack((power, -power * log, power * (log * log)))
        first += factor[1] / 2
        second += factor[2] / 2
        zero, one = np.zeros_like(s), np.ones_like(s)
        for j, coefficient in enumerate(_BERNOULLI, start=1):
            for shift in range(max(2 * j - 3, 0), 2 * j - 1):
                factor = _multiply(factor, np.stack((s + shift, one, zero))) / end
            first += coefficient * factor[1]
            second += coefficient * factor[2]
    return _with_ends(s, q, first, second)


def _with_ends(s: Array, q: Array, first: Array, second: Array) -> tuple[Any, Any]:
    """The derivatives of Hurwitz's function, at its pole and at infinity their limits.

    Those are the limits for ``1 / (s - 1)`` and for ``q**-s``.
    """
    is_pole, is_far = s == 1, (s == math.inf) | ((q == math.inf) & (s > 1))
    is_end = (is_pole | is_far) & (q > 0)
    if not is_end.any():
        return first, second
    end = np.where(is_pole | (q < 1), math.inf, 0.0)
    return (np.where(is_end, np.where(is_pole, -end, end), first), np.where(is_end, end, second))


_SHIFTED = 10  # from here on Euler and Maclaurin's formula converges to rounding
_FAR = 0.1  # of the shift: steps from here on do not cancel


def zeta_decrease(s: Array, q: Array, h: Array) -> Array:
    """``zeta(s, q) - zeta(s, q + h)``, the sum of ``(q+k)**-s - (q+h+k)**-s``, for small steps too.

    Args:
      s: exponent, integers from 2 on.
      q: shift, ``f64[...]``.
      h: step; where one of both is not positive, the difference is taken as it is.
    """
    s, q, h = np.broadcast_arrays(s, q, h)
    zeta = routine("zeta")
    with np.errstate(all="ignore"):
        exponent = s.astype(q.dtype)
        total = np.asarray(zeta(exponent, q) - zeta(exponent, q + h))
        is_near = (q > 0) & (h > 0) & (h < _FAR * np.maximum(q, 1)) & np.isfinite(q)
        if is_near.any():
            total[is_near] = _near_decrease(exponent[is_near], q[is_near], h[is_near])
    return total


def _near_decrease(s: Array, q: Array, h: Array) -> Array:
    """By Euler and Maclaurin's formula, each of its powers as a difference."""

    def decrease(p: Array, at: Array) -> Array:
        return -np.expm1(-p * np.log1p(h / at)) * at**-p

    total = np.zeros_like(q)
    if q.min() < _SHIFTED:
        for k in range(_SHIFTED):
            total += decrease(s, q + k)
        q = q + _SHIFTED
    total += decrease(s - 1, q) / (s - 1) + decrease(s, q) / 2
    rising = s
    for j, coefficient in enumerate(_BERNOULLI[:8], start=1):
        total += coefficient * rising * decrease(s + (2 * j - 1), q)
        rising = rising * (s + (2 * j - 1)) * (s + 2 * j)
    return total


def riemann_derivatives(s: Array) -> tuple[Any, Any]:
    """First and second derivative of Riemann's zeta function; negative numbers by reflection.

    Not those beside 0, of which 1 - s has not all digits.

    Source: DLMF 25.4.1, ``zeta(s) = 2 (2 pi)**(s-1) sin(pi s / 2) gamma(1-s) zeta(1-s)``.
    """
    s = np.asarray(s)
    is_negative = s < -0.05
    first, second = hurwitz_derivatives(np.where(is_negative, 2.0, s), np.ones_like(s))
    if not is_negative.any():
        return first, second
    u = np.where(is_negative, 1 - s, 2.0)
    slope, bend = hurwitz_derivatives(u, np.ones_like(u))
    zeta = np.stack((routine("zeta")(u, 1.0), -slope, bend))
    with np.errstate(over="ignore", invalid="ignore"):
        growth = 2 * np.exp(-u * math.log(2 * math.pi) + routine("gammaln")(u))
        log = math.log(2 * math.pi) - routine("psi")(u)
        factor = np.stack((growth, growth * log, growth * (log * log + routine("zeta")(2.0, u))))
        # sin(pi s / 2), reduced so that it vanishes at even numbers.
        rest = np.where(is_negative, s - 4 * np.round(s / 4), 0.0) * (math.pi / 2)
        half = math.pi / 2
        wave = np.stack((np.sin(rest), half * np.cos(rest), -half * half * np.sin(rest)))
        whole = _multiply(_multiply(factor, wave), zeta)
    return np.where(is_negative, whole[1], first), np.where(is_negative, whole[2], second)
