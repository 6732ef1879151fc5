"""Logarithm of the gamma function and its derivative.

Here: ``gammaln`` and ``digamma``. Not here: the error function (``emitter.math.special``).

Positive arguments use two polynomials: one around the zeros, where the zero is a factor, and an
asymptotic series refitted to start as early as 2. Both functions have a zero between any two poles
left of -2 (``digamma`` left of 0), where large terms cancel; negative arguments, which are rare, go
a slow way in twice the precision. Formulas: Abramowitz and Stegun, Handbook of Mathematical
Functions (1964), ch. 6.

The functions are long, so a program holds each once, as an internal function.

Layer: ``emitter``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from functrans.emitter.builder import Builder
from functrans.emitter.math import double_double as dd
from functrans.emitter.math.common import FLOAT64, fitted, horner
from functrans.emitter.math.lanes import polynomial_of, rarely
from functrans.emitter.math.logarithm import series, split_positive
from functrans.emitter.types import F64, I64, Value


def _pairs(*numbers: str) -> tuple[tuple[float, float], ...]:
    """A table of coefficients as doubles or sums of two, lowest order first."""
    halves = ([float.fromhex(half) for half in number.split()] for number in numbers)
    return tuple((high, sum(low)) for high, *low in halves)


# log Gamma(2 + u) = u (1 - gamma) + u^2 P(u) for |u| <= 1/2. Least squares in Chebyshev points,
# relative error 2^-58.0.
_ONE_MINUS_GAMMA = (float.fromhex("0x1.b0ee6072093cep-2"), float.fromhex("0x1.6cb90701fbfabp-58"))
_NEAR_TWO = fitted(
    "0x1.4a34cc4a60fa7p-2", "-0x1.13e001a55760cp-4", "0x1.51322ac7d7c85p-6",
    "-0x1.e404fc218c4f0p-8", "0x1.7add6eaea4277p-9", "-0x1.38ac5c2e53f54p-10",
    "0x1.0b36af1bf46abp-11", "-0x1.d3fd4aaec28aep-13", "0x1.a127e61174a31p-14",
    "-0x1.78debd93f9fd7p-15", "0x1.5805e14d76254p-16", "-0x1.3cafef57d3967p-17",
    "0x1.265007e78ba5dp-18", "-0x1.12b479fb6192ep-19", "0x1.ecea646955a6dp-21",
    "-0x1.c9ebc38b3f79dp-22", "0x1.2d254dceb5713p-22", "-0x1.278ba10041abfp-23",
)  # fmt: skip
# log Gamma(x) = (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + S(1/x^2) / x for x >= 5/2. Least
# squares in Chebyshev points, error relative to log Gamma 2^-60.2.
_STIRLING = fitted(
    "0x1.55555555554ccp-4", "-0x1.6c16c16a6cebap-9", "0x1.a019fdbbdf4b2p-11",
    "-0x1.38124b7daee89p-11", "0x1.b9165da2364ddp-11", "-0x1.f2cf99834457ap-10",
    "0x1.8d2ed3ca78e46p-8", "-0x1.7d8976a5c05a9p-6", "0x1.720b4e84102abp-4",
    "-0x1.3475ada3a1b19p-2", "0x1.80dc00d4dfeb0p-1", "-0x1.3339f2e1d0641p+0",
    "0x1.cdf9560f20b8fp-1",
)  # fmt: skip
# (log(2 pi) - 1) / 2
_STIRLING_CONSTANT = (float.fromhex("0x1.acfe390c97d69p-2"), float.fromhex("0x1.3494bc9001442p-56"))

# digamma(1 + u) = (u - u0) P(u - 1/2) for 0 <= u <= 1. Least squares in Chebyshev points, relative
# error 2^-53.6.
_ROOT = (float.fromhex("0x1.d8b618d5af8fep-2"), float.fromhex("-0x1.1e563779a1f5bp-56"))
_NEAR_ROOT = fitted(
    "0x1.e6f0cbb873617p-1", "-0x1.b1cb63005ee97p-2", "0x1.eca189b8e6b60p-3",
    "-0x1.2feeeb98a7c0cp-3", "0x1.8512e59075768p-4", "-0x1.fb442029de7b1p-5",
    "0x1.4de9a9fe47d0cp-5", "-0x1.b9f8b131628acp-6", "0x1.2564772e57340p-6",
    "-0x1.8635604a71281p-7", "0x1.03bfe663a72a7p-7", "-0x1.5a07063f7383dp-8",
    "0x1.cd429240ee506p-9", "-0x1.3367898b16c31p-9", "0x1.97e31f5f8fff4p-10",
    "-0x1.0ff41848b251fp-10", "0x1.7c57074f28e62p-11", "-0x1.fa57aae4916f4p-12",
    "0x1.d4a8debf5ec25p-13", "-0x1.3b23575d33acep-13", "0x1.134d663d885dcp-12",
    "-0x1.6d00740c59df3p-13",
)  # fmt: skip
# digamma(x) = log(x) - 1/(2x) - T(1/x^2) / x^2 for x >= 2. Least squares in Chebyshev points, error
# relative to digamma 2^-57.5.
_ASYMPTOTIC = fitted(
    "0x1.5555555554fefp-4", "-0x1.1111110cb5c01p-7", "0x1.04103bc7a85afp-8",
    "-0x1.110f65d7581afp-8", "0x1.f02779b5de17ep-8", "-0x1.56b890ad76b59p-6",
    "0x1.433bfdb064819p-4", "-0x1.6d9a39c10d16cp-2", "0x1.add75ed4c6331p+0",
    "-0x1.d1aadd72dbb56p+2", "0x1.aa823e6fe8b7ep+4", "-0x1.36000b1fcab4ap+6",
    "0x1.517d787257a97p+7", "-0x1.00170c552bf8cp+8", "0x1.e08560d4ccc7ep+7",
    "-0x1.a23be57dd404ep+6",
)  # fmt: skip

# In twice the precision, by interpolation in Chebyshev points. 1 / Gamma(1 + d), |d| <= 1/2, error
# 2^-109; A&S 6.1.34 is its Taylor series.
_RECIPROCAL_GAMMA = _pairs(
    "0x1.0000000000000p+0 0x1.e020fd370aec6p-112", "0x1.2788cfc6fb619p-1 -0x1.6cb90701fbfaap-58",
    "-0x1.4fcf4026afa2ep-1 0x1.8a3db7a90c38bp-56", "-0x1.5815e8fa27048p-5 0x1.b85ea59bc24afp-60",
    "0x1.5512320b43fbep-3 0x1.77e9bfd85e6a8p-57", "-0x1.59af103c34092p-5 -0x1.ef8da023a1890p-59",
    "-0x1.3b4af28483e21p-7 -0x1.38dbcfa06571ep-61", "0x1.d919c527f60b2p-8 -0x1.a917160297d51p-62",
    "-0x1.317112ce3a2a8p-10 0x1.0b491b34d045fp-64", "-0x1.c364fe6f1563dp-13 0x1.6726189e8db89p-69",
    "0x1.0c8a78cd9f9d2p-13 -0x1.6208dd417b517p-67", "-0x1.51ce8af47eabep-16 0x1.680f962e7e128p-77",
    "-0x1.4fad41fc34fbap-20 -0x1.f854244f48e9ap-76", "0x1.302509dbc0de5p-20 -0x1.e420f9307f72dp-74",
    "-0x1.b9986666c22bcp-23 0x1.7b076d7af1da2p-77", "0x1.a44b7ba22c1c2p-28 -0x1.19f41556fc7fbp-82",
    "0x1.57bc3fc38a2bfp-28 0x1.d1386b54c4a2bp-82", "-0x1.44b4cedc7abfep-30 -0x1.4829d51e62199p-84",
    "0x1.cae76753c5702p-34 0x1.9bfca8632a1a1p-88", "0x1.11d0654fcc73cp-37 -0x1.a347d228c2807p-93",
    "-0x1.0423b8cfae5b2p-38", "0x1.1f202ef552cf1p-41", "-0x1.72d06efdb0e42p-46",
    "-0x1.817e51c6dfe74p-48", "0x1.620d9b42e79fap-50", "-0x1.0b07a8c647f0ep-53",
)  # fmt: skip
# digamma(3 - d), |d| <= 1/2, error 2^-107.
_DIGAMMA_THREE = _pairs(
    "0x1.d8773039049e7p-1 0x1.6cb90701fbfa7p-58", "-0x1.94699894c1f4dp-2 0x1.cf184eddbbfe8p-56",
    "-0x1.3ba004f006214p-4 0x1.f23a3a8e9a600p-58", "-0x1.44c8ab1f6120ep-6 0x1.40ddbddcd4d8cp-60",
    "-0x1.7418eca7ccdb8p-8 0x1.773ec6e6b1ffcp-62", "-0x1.c26130249123ep-10 0x1.2687a3f5e5981p-67",
    "-0x1.196d0a679c46dp-11 -0x1.37eaad3643a77p-65", "-0x1.66d5f0c72dd18p-13 0x1.a6371c6854ab0p-68",
    "-0x1.cf9ec0b5ab818p-15 0x1.3a9f6a71d83afp-74", "-0x1.2e33a5bb97e18p-16 -0x1.24a46fc8b06c9p-72",
    "-0x1.8c6f922ccaa23p-18 0x1.55a47fba05e76p-74", "-0x1.052d9669820cdp-19 -0x1.8c3eda959c467p-73",
    "-0x1.593a1177bd67fp-21 -0x1.b6942ab3a5a69p-76",
    "-0x1.c95e569c2acd5p-23 -0x1.152c1d24f4be3p-77", "-0x1.2f797e2379e98p-24 0x1.caa11554abde1p-80",
    "-0x1.9337ac8bbed97p-26 0x1.3e3c2823ea784p-80", "-0x1.0c1cda1afc3fdp-27 -0x1.8b39f53db4a22p-82",
    "-0x1.64ca9ba435d44p-29 -0x1.ffd28d496d7b2p-84",
    "-0x1.db08f903d899ep-31 -0x1.e84d54f215987p-85", "-0x1.3c5943ed49a15p-32 0x1.9321ee3484291p-86",
    "-0x1.a5758766bfccap-34 0x1.5dc39d3ba3cdep-89", "-0x1.18cdb47c74289p-35 -0x1.4ae49ef507238p-89",
    "-0x1.7637afa28f748p-37", "-0x1.f2c9d662dbc8bp-39", "-0x1.4ce354d4c16f5p-40",
    "-0x1.bbc44e7c3161bp-42", "-0x1.20aec97f5a4a7p-43", "-0x1.80de69c43fd16p-45",
    "-0x1.4410d253a4d0dp-46", "-0x1.b01069f3c75d9p-48",
)  # fmt: skip
# (log((1 + s) / (1 - s)) - 2 s) / s^3 as a function of s^2 <= 0.0295, error 2^-101.
_LOG = _pairs(
    "0x1.5555555555555p-1 0x1.5555555555532p-55", "0x1.999999999999ap-2 -0x1.99999998b450ep-56",
    "0x1.2492492492492p-2 0x1.2492416d98dd8p-56", "0x1.c71c71c71c71cp-3 0x1.c750c5c7d21fdp-57",
    "0x1.745d1745d1746p-3 -0x1.16bf30cb474cep-57", "0x1.3b13b13b13b2cp-3 0x1.99a96aaaf33cbp-58",
    "0x1.1111111110043p-3 0x1.944b663020f7ap-57", "0x1.e1e1e1e2dbe90p-4 -0x1.c564361f33ca3p-58",
    "0x1.af286b792d540p-4 -0x1.492d136d22b16p-62", "0x1.861873f2b872bp-4 -0x1.384bc42865d59p-60",
    "0x1.642995c89eb25p-4 0x1.16b5ac26c9d29p-59", "0x1.48000fe25c674p-4", "0x1.299a61968b663p-4",
    "0x1.575471983ef7dp-4",
)  # fmt: skip
# (log(z) + 1/(2z) - digamma(1 + z)) z^2 as a function of 1/z^2, z >= 16, error 2^-103.
_DIGAMMA_FAR = _pairs(
    "0x1.5555555555555p-4 0x1.555555555550dp-58", "-0x1.1111111111111p-7 -0x1.1111106e6e9d9p-63",
    "0x1.0410410410410p-8 0x1.04011872b4345p-62", "-0x1.1111111111111p-8 0x1.ae9782beddfc9p-63",
    "0x1.f07c1f07c1c5ap-8 -0x1.4f6d1d0dbec72p-64", "-0x1.5995995958589p-6 0x1.9d2c4530b4d6fp-62",
    "0x1.5555551dbdd31p-4 -0x1.a77d768ed9054p-58", "-0x1.c5e5c497cc6ecp-2 0x1.985c0ce41568bp-56",
    "0x1.86e14a6c25a4cp+1", "-0x1.a668023f7fa4ep+4", "0x1.0f9f85c85e31fp+8",
    "-0x1.419a2705b2bc7p+11",
)  # fmt: skip
_LN2 = ("0x1.62e42fefa38p-1", "0x1.ef35793c7673p-45", "0x1.f97b57a079a19p-103")

# Up to which magnitude the zeros of gammaln are next to no pole; from there on the terms differ.
_FACTORS = 40
# Up to which magnitude digamma is computed by its recurrence.
_STEPS = 16


def gammaln(b: Builder, x: Value) -> Value:
    """Logarithm of the absolute value of the gamma function; infinite at its poles."""
    return _in_double(b, "gammaln", x, _gammaln)


def digamma(b: Builder, x: Value) -> Value:
    """Derivative of the logarithm of the gamma function; NaN at negative integers."""
    return _in_double(b, "digamma", x, _digamma)


def _in_double(
    b: Builder, name: str, x: Value, function: Callable[[Builder, Value], Value]
) -> Value:
    """Call a function that the program holds once, in double precision."""
    wide = b.convert("fpext", x, F64)

    def write(inner: Builder) -> None:
        inner.ret(function(inner, inner.arguments[0]))

    result = b.helper(f"math.{name}.f64x{x.type.lanes}", [wide], wide.type, write)
    return b.convert("fptrunc", result, x.type.element)


def _with_negative(
    b: Builder, name: str, x: Value, usual: Value, function: Callable[[Builder, Value], Value]
) -> Value:
    """``usual``, and what a function gives where ``x`` is negative."""
    is_negative = b.fcmp("olt", x, b.const(x, 0.0))

    def write(inner: Builder) -> None:
        inner.ret(function(inner, inner.arguments[0]))

    def otherwise() -> Value:
        result = b.helper(f"math.{name}_negative.f64x{x.type.lanes}", [x], x.type, write)
        return b.select(is_negative, result, usual)

    return rarely(b, is_negative, usual, otherwise)


def _log_sum(b: Builder, x: Value) -> dd.Pair:
    """``log(x)`` of a positive finite number, as a sum with an error of some 2^-56."""
    parts = split_positive(b, x)
    f = b.fsub(parts.m, b.const(x, 1.0))
    s, half_square, rest = series(b, f)
    whole = b.fmul(parts.k, b.const(x, FLOAT64.ln2_high))
    high, error = dd.quick_two_sum(b, whole, f)
    tail = b.fma(s, rest, b.fmul(parts.k, b.const(x, FLOAT64.ln2_low)))
    return high, b.fsub(error, b.fsub(half_square, tail))


# gammaln -----------------------------------------------------------------------------------------


def _gammaln(b: Builder, x: Value) -> Value:
    return _with_negative(b, "gammaln", x, _gammaln_positive(b, x), _gammaln_negative)


def _gammaln_positive(b: Builder, x: Value) -> Value:
    """``log Gamma(x)``: Stirling's series, or around 2, from where 0 and 1 are reached by steps.

    Both are ``factor * (log(y) - c) + start + slope (linear + t p)``; all terms but the last keep
    their rounding errors.
    """
    zero, one = b.const(x, 0.0), b.const(x, 1.0)
    is_large = b.fcmp("oge", x, b.const(x, 2.5))
    below_half = b.fcmp("olt", x, b.const(x, 0.5))
    below_three_halves = b.fcmp("olt", x, b.const(x, 1.5))
    nearest = b.select(below_half, zero, b.select(below_three_halves, one, b.const(x, 2.0)))
    u = b.fsub(x, nearest)
    inverse = b.fdiv(one, x)
    t = b.select(is_large, b.fmul(inverse, inverse), u)
    p = polynomial_of(b, is_large, t, _STIRLING[1:], _NEAR_TWO)

    # log Gamma(x) = log Gamma(x + 1) - log(x) = log Gamma(x + 2) - log(x (x + 1)).
    y = b.select(below_three_halves, x, one)
    y = b.select(below_half, b.fma(x, x, x), y)
    y = b.select(is_large, x, y)
    high, low = _log_sum(b, y)
    factor = b.select(is_large, b.fsub(x, b.const(x, 0.5)), b.const(x, -1.0))
    high, error = dd.quick_two_sum(b, high, b.select(is_large, b.const(x, -1.0), zero))
    product = b.fmul(factor, high)
    product_rest = b.fma(factor, high, b.fneg(product))
    product_rest = b.fma(factor, b.fadd(error, low), product_rest)

    def choose(large: float, near: float) -> Value:
        return b.select(is_large, b.const(x, large), b.const(x, near))

    slope = b.select(is_large, inverse, u)
    start, start_rest = (choose(part, 0.0) for part in _STIRLING_CONSTANT)
    linear = choose(_STIRLING[0], _ONE_MINUS_GAMMA[0])
    linear_rest = choose(0.0, _ONE_MINUS_GAMMA[1])
    term = b.fma(slope, linear, start)
    term_rest = b.fma(slope, linear, b.fsub(start, term))
    term_rest = b.fma(slope, b.fma(t, p, linear_rest), b.fadd(term_rest, start_rest))
    total, total_rest = dd.two_sum(b, product, term)
    rest = b.fadd(product_rest, term_rest)
    result = b.fadd(total, b.fadd(total_rest, rest))
    infinity = b.const(x, math.inf)
    is_infinite = b.or_(b.fcmp("oeq", product, infinity), b.fcmp("oeq", x, zero))
    return b.select(is_infinite, infinity, result)


def _gammaln_negative(b: Builder, x: Value) -> Value:
    """``log |Gamma(x)|`` for negative ``x``, wherever it crosses zero.

    With ``x = d - n`` and the nearest integer ``-n``,
    ``1 / |Gamma(x)| = |d| (1 - d) (2 - d) ... (n - d) / Gamma(1 + d)``; far from 0 the reflection
    ``1 / |Gamma(x)| = |x sin(pi x) / pi| Gamma(-x)`` with ``sin(pi d) / pi = d / (Gamma(1 + d)
    Gamma(1 - d))``.
    """
    zero, infinity = b.const(x, 0.0), b.const(x, math.inf)
    z = b.fneg(x)
    n = b.round_even(z)
    d = b.fadd(x, n)
    reciprocal = dd.polynomial(b, d, _RECIPROCAL_GAMMA)
    magnitude = b.fabs(d)
    product = dd.multiply_double(b, reciprocal, magnitude)

    high, low = b.alloca(x.type), b.alloca(x.type)
    b.store(product[0], high)
    b.store(product[1], low)
    # As many factors as the lane that needs most.
    most = b.const(x, float(_FACTORS))
    count = b.select(b.fcmp("olt", b.fabs(n), most), n, most)
    if x.type.lanes > 1:
        count = b.intrinsic("vector.reduce.fmax", count, result=F64)
    stop = b.add(b.convert("fptosi", count, I64), b.index(1))
    with b.loop(b.index(1), stop) as i:
        k = b.splat(b.convert("sitofp", i, F64), x.type.lanes)
        before = b.load(x.type, high), b.load(x.type, low)
        after = dd.multiply(b, before, dd.quick_two_sum(b, k, b.fneg(d)))
        after = dd.select(b, b.fcmp("ole", k, n), after, before)
        b.store(after[0], high)
        b.store(after[1], low)
    product = b.load(x.type, high), b.load(x.type, low)
    log_high, log_low = _log_sum(b, product[0])
    log_low = b.fadd(log_low, b.fdiv(product[1], product[0]))
    near = b.fneg(b.fadd(log_high, log_low))

    mirrored = horner(b, b.fneg(d), [c for c, _ in _RECIPROCAL_GAMMA])
    sine = b.fmul(b.fmul(magnitude, reciprocal[0]), mirrored)
    log_high, log_low = _log_sum(b, b.fmul(z, sine))
    far = b.fneg(b.fadd(_gammaln_positive(b, z), b.fadd(log_high, log_low)))

    result = b.select(b.fcmp("olt", z, b.const(x, float(_FACTORS))), near, far)
    result = b.select(b.fcmp("oeq", d, zero), infinity, result)
    # As SciPy has it, though infinity is no better than the poles around it.
    return b.select(b.fcmp("oeq", z, infinity), x, result)


# digamma -----------------------------------------------------------------------------------------


def _digamma(b: Builder, x: Value) -> Value:
    return _with_negative(b, "digamma", x, _digamma_positive(b, x), _digamma_negative)


def _digamma_positive(b: Builder, x: Value) -> Value:
    """``digamma(x)``: the asymptotic series, or around the zero, from where 0 is a step away."""
    zero, one = b.const(x, 0.0), b.const(x, 1.0)
    is_large = b.fcmp("oge", x, b.const(x, 2.0))
    below_one = b.fcmp("olt", x, one)
    inverse = b.fdiv(one, x)
    square = b.fmul(inverse, inverse)
    u = b.fsub(x, b.select(below_one, zero, one))
    t = b.select(is_large, square, b.fsub(u, b.const(x, 0.5)))
    p = polynomial_of(b, is_large, t, _ASYMPTOTIC, _NEAR_ROOT)
    distance = b.fsub(b.fsub(u, b.const(x, _ROOT[0])), b.const(x, _ROOT[1]))
    high, low = _log_sum(b, b.select(is_large, x, one))
    far = b.fadd(low, b.fma(b.const(x, -0.5), inverse, b.fneg(b.fmul(square, p))))
    # digamma(x) = digamma(x + 1) - 1/x.
    start = b.select(is_large, high, b.select(below_one, b.fneg(inverse), zero))
    result = b.fadd(start, b.select(is_large, far, b.fmul(distance, p)))
    return b.select(b.fcmp("oeq", x, b.const(x, math.inf)), x, result)


def _digamma_negative(b: Builder, x: Value) -> Value:
    """``digamma(x)`` for negative ``x``, wherever it crosses zero.

    With ``-x = n + d`` and the nearest integer ``n``, the recurrence gives
    ``digamma(x) = digamma(3 - d) - 1/(1 - d) - 1/(2 - d) + 1/d + 1/(1 + d) + ... + 1/(n + d)``.
    Far from 0 the last terms from ``1/(3 + d)`` on are ``digamma(1 - x) - digamma(3 + d)``.
    """
    zero = b.const(x, 0.0)
    z = b.fneg(x)
    n = b.round_even(z)
    d = b.fsub(z, n)
    minus = b.fneg(d)
    far = b.fcmp("ogt", n, b.const(x, float(_STEPS)))

    total = dd.polynomial(b, d, _DIGAMMA_THREE)
    for whole in (1.0, 2.0):
        step = dd.reciprocal(b, dd.quick_two_sum(b, b.const(x, whole), minus))
        total = dd.add(b, total, dd.negative(b, step))
    total = dd.add(b, total, dd.reciprocal(b, (d, zero)))
    mirrored = dd.polynomial(b, minus, _DIGAMMA_THREE)
    rest = dd.add(b, _digamma_far(b, b.select(far, z, b.const(x, 32.0))), dd.negative(b, mirrored))
    total = dd.select(b, far, dd.add(b, total, rest), total)

    count = b.select(far, b.const(x, 2.0), n)
    high, low = b.alloca(x.type), b.alloca(x.type)
    b.store(total[0], high)
    b.store(total[1], low)
    with b.loop(b.index(1), b.index(_STEPS + 1)) as i:
        k = b.splat(b.convert("sitofp", i, F64), x.type.lanes)
        before = b.load(x.type, high), b.load(x.type, low)
        step = dd.reciprocal(b, dd.quick_two_sum(b, k, d))
        after = dd.select(b, b.fcmp("ole", k, count), dd.add(b, before, step), before)
        b.store(after[0], high)
        b.store(after[1], low)
    result = b.fadd(b.load(x.type, high), b.load(x.type, low))

    # Next to zero only the pole counts, and its reciprocal may overflow.
    result = b.select(b.fcmp("olt", z, b.const(x, 2.0**-60)), b.fdiv(b.const(x, 1.0), z), result)
    return b.select(b.fcmp("oeq", d, zero), b.const(x, math.nan), result)


def _digamma_far(b: Builder, z: Value) -> dd.Pair:
    """``digamma(1 + z)`` for ``z >= 16`` in twice the precision."""
    zero = b.const(z, 0.0)
    parts = split_positive(b, z)
    f = b.fsub(parts.m, b.const(z, 1.0))
    denominator = dd.quick_two_sum(b, b.const(z, 2.0), f)
    s = dd.multiply_double(b, dd.reciprocal(b, denominator), f)
    square = dd.multiply(b, s, s)
    tail = dd.multiply(b, dd.multiply(b, s, square), dd.polynomial(b, square, _LOG))
    log_m = dd.add(b, (b.fadd(s[0], s[0]), b.fadd(s[1], s[1])), tail)
    first, second, third = (b.const(z, float.fromhex(part)) for part in _LN2)
    product, product_rest = dd.two_product(b, parts.k, second)
    whole = dd.quick_two_sum(b, b.fmul(parts.k, first), product)
    whole = whole[0], b.fadd(whole[1], b.fma(parts.k, third, product_rest))
    log_z = dd.add(b, whole, log_m)

    inverse = dd.reciprocal(b, (z, zero))
    y = dd.multiply(b, inverse, inverse)
    correction = dd.multiply(b, y, dd.polynomial(b, y, _DIGAMMA_FAR))
    half = b.const(z, 0.5)
    total = dd.add(b, log_z, (b.fmul(inverse[0], half), b.fmul(inverse[1], half)))
    return dd.add(b, total, dd.negative(b, correction))
