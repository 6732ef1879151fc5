"""Rows of the special functions.

Definitions are series and functions of Python numbers (``math``, ``cmath``, ``statistics``), so
that SciPy is not compared with itself.
"""

import cmath
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from functrans.primitives.special import functions as sf
from samples.elementwise import binary, ints, signed, span, unary
from samples.row import Refused, Row, annulus, integers

ROOT_2 = math.sqrt(2)
NORMAL = NormalDist()
EDGES = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1e3, -1e3)


# definitions ------------------------------------------------------------------------------------


def _exponential(x: float) -> float:
    """``exp`` with an infinity where Python's raises."""
    return math.exp(x) if not x > 700 else math.inf


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exponential(-x))


def _softplus(x: float) -> float:
    return x if x > 700 else math.log1p(_exponential(x))


def _relu(x: Any) -> Any:
    return x if x > 0 or x != x else 0


def _ndtr(x: float) -> float:
    return 0.5 * math.erfc(-x / ROOT_2)


def _lgamma(x: float) -> float:
    """``math.lgamma``, but SciPy's value at minus infinity."""
    return x if x == -math.inf else math.lgamma(x)


def _gammainc(a: float, x: float) -> float:
    """The sum of ``x**(a+n) exp(-x) / gamma(a+n+1)`` (DLMF 8.7.1)."""
    terms = ((a + n) * math.log(x) - x - math.lgamma(a + n + 1) for n in range(80))
    return math.fsum(map(math.exp, terms))


def _zeta(s: float, q: float) -> float:
    """A sum and what Euler and Maclaurin's formula says of the rest (DLMF 25.11.5)."""
    n = 20
    first = math.fsum((q + k) ** -s for k in range(n))
    end = q + n
    rest = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    rest -= s * (s + 1) * (s + 2) * end ** (-s - 3) / 720
    rest += s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * end ** (-s - 5) / 30240
    return first + rest


def _digamma(x: float) -> float:
    """Shifted to where the asymptotic series holds (DLMF 5.5.2, 5.11.2)."""
    shift = math.fsum(1 / (x + k) for k in range(20))
    z = x + 20
    series = 1 / (12 * z**2) - 1 / (120 * z**4) + 1 / (252 * z**6) - 1 / (240 * z**8)
    return math.log(z) - 1 / (2 * z) - series - shift


def _bessel(order: int) -> Callable[[float], float]:
    """The power series of ``i0`` and ``i1`` (DLMF 10.25.2)."""

    def value(x: float) -> float:
        factorials = ((k, math.factorial(k) * math.factorial(k + order)) for k in range(40))
        return math.fsum((x / 2) ** (2 * k + order) / product for k, product in factorials)

    return value


def _first_kind(order: int) -> Callable[[float], float]:
    """Bessel's integral (DLMF 10.9.2), by a sum over the period, which is exact to rounding."""

    def value(x: float) -> float:
        angles = (2 * math.pi * k / 64 for k in range(64))
        return math.fsum(math.cos(order * t - x * math.sin(t)) for t in angles) / 64

    return value


def _y0(x: float) -> float:
    """Neumann's series (DLMF 10.8.3)."""
    tail = ((-1) ** (k + 1) * _first_kind(2 * k)(x) / k for k in range(1, 12))
    euler = 0.57721566490153286
    return 2 / math.pi * ((math.log(x / 2) + euler) * _first_kind(0)(x) + 2 * math.fsum(tail))


def _y1(x: float) -> float:
    """From the Wronskian of the two kinds (DLMF 10.5.2)."""
    return (_first_kind(1)(x) * _y0(x) - 2 / (math.pi * x)) / _first_kind(0)(x)


def _second_kind(order: int) -> Callable[[float], float]:
    """The integral of ``exp(-x cosh t) cosh(order t)`` (DLMF 10.32.9), by the trapezoidal rule."""

    def value(x: float) -> float:
        terms = (
            math.exp(-x * math.cosh(k / 16)) * math.cosh(order * k / 16) for k in range(1, 120)
        )
        return (math.exp(-x) / 2 + math.fsum(terms)) / 16

    return value


def _scaled(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: function(x) * math.exp(-abs(x))


# rows -------------------------------------------------------------------------------------------


def refused_complex(primitive: Any) -> Refused:
    operands = np.ones(2) * 1j, np.ones(2)
    return Refused("complex", operands, TypeError, f"{primitive.name}: not defined")


ROWS: tuple[Row, ...] = (
    unary(sf.sigmoid_p, None, _sigmoid, lambda z: 1 / (1 + cmath.exp(-z)), draw_int=integers,
          kinks=EDGES),
    unary(sf.relu_p, None, _relu, None, signed(0.2, 2), draw_int=integers, kinks=EDGES,
          is_flat=True),
    unary(sf.log_sigmoid_p, None, lambda x: -_softplus(-x), draw_int=integers, kinks=EDGES),
    unary(sf.softplus_p, None, _softplus, draw_int=integers, kinks=EDGES),
    unary(sf.rsqrt_p, None, lambda x: 1 / math.sqrt(x), lambda z: 1 / cmath.sqrt(z), span(0.3, 3),
          draw_int=ints(1, 9)),
    unary(sf.reciprocal_p, None, lambda x: 1 / x, lambda z: 1 / z, signed(0.4, 2),
          lambda r, s: annulus(r, s, 0.5), ints(1, 9)),
    unary(sf.gaussian_p, None, lambda x: math.exp(-x * x), lambda z: cmath.exp(-z * z)),
    unary(sf.erf_p, None, math.erf, draw_int=integers, kinks=EDGES),
    unary(sf.erfc_p, None, math.erfc, draw_int=integers, kinks=EDGES),
    unary(sf.erfcx_p, None, lambda x: math.exp(x * x) * math.erfc(x), None, span(-1, 2),
          draw_int=ints(-1, 3)),
    binary(sf.sigmoid_slope_p, None, lambda x, y: y - y * y, signed(0.2, 2), span(0.1, 0.9),
           fixed=(0,)),
    binary(sf.sigmoid_tilt_p, None, lambda x, y: 1 - 2 * y, signed(0.2, 2), span(0.1, 0.9),
           fixed=(0,), is_flat=True),
    unary(sf.erfinv_p, None, lambda x: NORMAL.inv_cdf((1 + x) / 2) / ROOT_2, None, span(-0.8, 0.8)),
    unary(sf.ndtr_p, None, _ndtr, draw_int=integers, kinks=EDGES),
    unary(sf.ndtri_p, None, NORMAL.inv_cdf, None, span(0.15, 0.85)),
    unary(sf.log_ndtr_p, None, lambda x: math.log(_ndtr(x)), draw_int=integers),
    unary(sf.lgamma_p, None, _lgamma, None, span(0.3, 4), draw_int=ints(1, 9),
          kinks=(math.inf, -math.inf, math.nan, 1e3, 1e-310, -1e-310)),
    unary(sf.digamma_p, None, _digamma, None, span(0.6, 4), draw_int=ints(1, 9)),
    binary(sf.zeta_p, None, _zeta, span(1.5, 4), span(0.6, 3), draw_int=(ints(2, 5), ints(1, 5)),
           refused=(refused_complex(sf.zeta_p),), order=2),
    binary(sf.gammainc_p, None, _gammainc, span(0.6, 3), span(0.4, 3),
           draw_int=(ints(1, 4), ints(1, 4)), refused=(refused_complex(sf.gammainc_p),), order=2),
    binary(sf.gammaincc_p, None, lambda a, x: 1 - _gammainc(a, x), span(0.6, 3), span(0.4, 3),
           draw_int=(ints(1, 4), ints(1, 4)), refused=(refused_complex(sf.gammaincc_p),), order=2),
    unary(sf.i0_p, None, _bessel(0), draw_int=integers),
    unary(sf.i1_p, None, _bessel(1), draw_int=integers, kinks=(0.0, -0.0, 1.0)),
    unary(sf.i0e_p, None, _scaled(_bessel(0)), None, signed(0.2, 2), draw_int=integers,
          kinks=(0.0, -0.0, 1.0)),
    unary(sf.i1e_p, None, _scaled(_bessel(1)), None, signed(0.2, 2), draw_int=integers,
          kinks=(0.0, -0.0, 1.0)),
    unary(sf.j0_p, None, _first_kind(0), draw_int=integers),
    unary(sf.j1_p, None, _first_kind(1), draw_int=integers, kinks=(0.0, -0.0, 1.0)),
    unary(sf.y0_p, None, _y0, None, span(0.4, 2), draw_int=ints(1, 2)),
    unary(sf.y1_p, None, _y1, None, span(0.4, 2), draw_int=ints(1, 2)),
    unary(sf.k0_p, None, _second_kind(0), None, span(0.3, 3), draw_int=ints(1, 5)),
    unary(sf.k1_p, None, _second_kind(1), None, span(0.3, 3), draw_int=ints(1, 5)),
    unary(sf.k0e_p, None, lambda x: _second_kind(0)(x) * math.exp(x), None, span(0.3, 3),
          draw_int=ints(1, 5)),
    unary(sf.k1e_p, None, lambda x: _second_kind(1)(x) * math.exp(x), None, span(0.7, 3),
          draw_int=ints(1, 5)),
)  # fmt: skip
