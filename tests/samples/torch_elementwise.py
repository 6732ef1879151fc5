"""Rows of the elementwise primitives with torch's conventions.

Definitions are functions of Python numbers (``math``), so that NumPy is not compared with itself.
Values and derivatives at special points: tests/autograd/test_special_points.py.
"""

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.primitives import torch_elementwise as te
from samples.elementwise import (
    _clip_samples,
    binary,
    by_element,
    extremum,
    fraction,
    ints,
    shapes_differ,
    signed,
    span,
    unary,
)
from samples.row import Row, annulus, booleans, integers


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


def _logit(x: float) -> float:
    return math.log(x / (1 - x))


def _sinc(x: float) -> float:
    return math.sin(math.pi * x) / (math.pi * x) if x else 1.0


def _entropy(x: float) -> float:
    return -x * math.log(x)


def _cross_entropy(x: float, y: float) -> float:
    return -y * math.log(x) - (1 - y) * math.log(1 - x)


def _softplus(x: float, limit: float) -> float:
    return math.log1p(math.exp(x))


def _expm1_below(x: float, rate: float) -> float:
    return math.expm1(min(x, 0) * rate)


def _power(a: Any, b: Any) -> Any:
    return a**b


def _times_log(log: Callable[[float], float]) -> Callable[[float, float], float]:
    return lambda a, b: a * log(b)


ROWS: tuple[Row, ...] = (
    unary(te.torch_sign_p, np.sign, _sign, None, signed(0.2, 2), draw_int=integers, zero_in=(0,),
          refused=()),
    unary(te.torch_absolute_p, np.absolute, abs, None, signed(0.2, 2), draw_int=integers,
          kinks=(0.0, -0.0, 1.0), is_flat=True, refused=()),
    extremum(te.torch_maximum_p, np.maximum, max),
    extremum(te.torch_minimum_p, np.minimum, min),
    extremum(te.torch_fmax_p, np.fmax, max),
    extremum(te.torch_fmin_p, np.fmin, min),
    extremum(te.clamp_min_p, np.maximum, max),
    extremum(te.clamp_max_p, np.minimum, min),
    Row(te.clamp_p, _clip_samples, by_element(lambda x, lo, hi: min(max(x, lo), hi)), rtol=0,
        numpy=np.clip, is_flat=True, refused=shapes_differ("clamp", 3)),
    binary(te.torch_arctan2_p, np.arctan2, math.atan2, signed(0.4, 2), signed(0.4, 2)),
    binary(te.torch_hypot_p, np.hypot, math.hypot, signed(0.4, 2), signed(0.4, 2)),
    binary(te.torch_logaddexp_p, np.logaddexp, lambda a, b: math.log(math.exp(a) + math.exp(b))),
    binary(te.torch_logaddexp2_p, np.logaddexp2, lambda a, b: math.log2(2**a + 2**b)),
    binary(te.torch_copysign_p, np.copysign, math.copysign, signed(0.2, 2), signed(0.2, 2),
           zero_in=(1,), is_flat=True),
    binary(te.torch_remainder_p, np.remainder, lambda a, b: a % b, fraction(0.3, 0.5),
           lambda r, s: 2.0 * np.where(booleans(r, s), 1.0, -1.0), None, (integers, ints(1, 4)),
           jumps_at_integers=True, is_flat=True),
    binary(te.torch_power_p, np.power, _power, span(0.3, 2), draw_complex=annulus,
           draw_int=(ints(1, 4), ints(0, 4)), kinks=((0.0, 0.0, 0.0), (0.0, 1.0, 2.5))),
    binary(te.torch_xlogy_p, None, _times_log(math.log), draw_b=span(0.3, 3)),
    binary(te.torch_xlog1py_p, None, _times_log(math.log1p), draw_b=span(-0.6, 3)),
    binary(te.binary_cross_entropy_p, None, _cross_entropy, span(0.1, 0.9), span(0.1, 0.9)),
    binary(te.with_slope_p, None, lambda value, carrier: value, fixed=(0,), is_flat=True,
           differentiated=lambda value, carrier: (te.with_slope(carrier, carrier),)),
    unary(te.torch_logit_p, None, _logit, None, span(0.25, 0.75)),
    unary(te.torch_sinc_p, None, _sinc, None, signed(0.2, 2), kinks=(0.0, -0.0, 1.0, 0.005)),
    unary(te.entropy_p, None, _entropy, None, span(0.2, 2)),
    unary(te.torch_lgamma_p, None, math.lgamma, None, span(0.3, 4), draw_int=ints(1, 9),
          kinks=(math.inf, -math.inf, math.nan, 1e3, 1e-310, -1e-310)),
    unary(te.torch_tanh_p, np.tanh, math.tanh, cmath.tanh, draw_int=integers),
    unary(te.torch_sigmoid_p, None, lambda x: 1 / (1 + math.exp(-x)),
          lambda x: 1 / (1 + cmath.exp(-x)), draw_int=integers),
    unary(te.torch_expm1_p, np.expm1, math.expm1, lambda x: cmath.exp(x) - 1,
          draw_int=integers),
    binary(te.expm1_below_p, None, _expm1_below, signed(0.2, 2), span(0.5, 2), fixed=(1,)),
    binary(te.softplus_below_p, None, _softplus, signed(0.2, 2), span(3, 4), fixed=(1,)),
)  # fmt: skip
