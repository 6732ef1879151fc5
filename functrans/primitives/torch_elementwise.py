"""Elementwise primitives with torch's values and derivatives at special points.

Here: operations that ``functrans.autograd`` needs beside those of ``elementwise`` and ``special``,
because torch decides otherwise at ties, zeros, infinities and NaN; and operations that torch has as
one and NumPy has not. Not here: the conventions of ``functrans.numpy`` (``elementwise``).

``t`` is a tangent or cotangent, ``y`` the result. Torch's derivatives are in its documentation and
were read off its results.

Layer: ``primitives``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, ShapedArray
from functrans.core.dispatch import dtype_of
from functrans.core.lowering import Expansion
from functrans.core.primitive import Primitive
from functrans.core.values import Array, Operand
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives.family import (
    arithmetic,
    binary,
    broadcast_shapes,
    promoted_dtype,
    ternary,
    unary,
    user_function,
)
from functrans.primitives.special import functions as sf
from functrans.primitives.special.family import floating

ArrayFunction = Callable[..., Any]


def _floating_aval(name: str) -> Callable[..., Any]:
    """``abstract_eval`` of an operation of floating numbers; integers become float64."""

    def abstract_eval(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
        shape = broadcast_shapes(name, [aval.shape for aval in avals])
        dtype = promoted_dtype(avals)
        if dtype.kind == "c":
            raise TypeError(f"{name}: not defined for operands {', '.join(map(str, avals))}")
        return (ShapedArray(shape, np.dtype(np.float64) if dtype.kind in "biu" else dtype),)

    return abstract_eval


def _expanded(function: Callable[..., Any]) -> Expansion:
    """A lowering in other operations."""
    return Expansion(lambda *operands: (function(*operands),))


def _of_one_formula(formula: Callable[..., Any], name: str) -> dict[str, Any]:
    """Value, aval and lowering of a formula, which takes the namespace of its functions first."""
    return {
        "function": _plain(functools.partial(formula, np)),
        "abstract_eval": _floating_aval(name),
        "lower": _expanded(functools.partial(formula, ew)),
    }


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays of one floating dtype as one of all plain operands."""

    def plain(*operands: Array | complex) -> Any:
        dtype = floating(np.result_type(*operands))
        wide = np.dtype(np.float32) if dtype.kind == "V" else dtype  # bfloat16, rounded once
        out = function(*[np.asarray(x, wide) for x in operands])
        return out[()] if wide is dtype else np.asarray(out, dtype)[()]

    return plain


def _typed(x: Array, like: Array) -> Array:
    """A Python number in the dtype of an array; an array as it is."""
    return dtype_of(like).type(x) if type(x) in PYTHON_SCALARS else x


# signs and absolute values -----------------------------------------------------------------------


def _plain_sign(x: Array) -> Array:
    return np.where(x != x, 0, np.sign(x)).astype(np.result_type(x), copy=False)[()]


torch_sign_p: Primitive = unary(
    "torch_sign",
    _plain_sign,
    0,
    ufunc=np.sign,
    lower=_expanded(lambda x: ew.where(x == x, ew.sign(x), x * 0 if _is_integer(x) else 0.0)),
    work=arithmetic,
)
torch_absolute_p: Primitive = unary(
    "torch_absolute",
    np.absolute,
    lambda t, x, y: t * sign(x),
    "x",
    lower=_expanded(complex_parts.absolute),
    work=arithmetic,
)


def _is_integer(x: Operand) -> bool:
    return dtype_of(x).kind in "biu"


sign: ArrayFunction = user_function(torch_sign_p, "-1, 0 or 1; 0 for NaN.")
_real_absolute: ArrayFunction = user_function(torch_absolute_p)


def absolute(x: Operand) -> Array:
    """The absolute value, with derivative 0 at 0 and at NaN."""
    return complex_parts.absolute(x) if dtype_of(x).kind == "c" else _real_absolute(x)


# extrema -----------------------------------------------------------------------------------------


def _is_extremum(a: Operand, b: Operand, t: Any, a_loses: object) -> Any:
    """All of a tangent for an operand that does not lose, half of it at a tie."""
    return ew.where(a_loses, 0, ew.where(a == b, t * 0.5, t))


torch_maximum_p: Primitive = binary(
    "torch_maximum",
    np.maximum,
    (
        lambda t, a, b, y: _is_extremum(a, b, t, a < b),
        lambda t, a, b, y: _is_extremum(a, b, t, a > b),
    ),
    ("ab", "ab"),
    lower=_expanded(ew.maximum),
    work=arithmetic,
)
torch_minimum_p: Primitive = binary(
    "torch_minimum",
    np.minimum,
    (
        lambda t, a, b, y: _is_extremum(a, b, t, a > b),
        lambda t, a, b, y: _is_extremum(a, b, t, a < b),
    ),
    ("ab", "ab"),
    lower=_expanded(ew.minimum),
    work=arithmetic,
)
torch_fmax_p: Primitive = binary(
    "torch_fmax",
    np.fmax,
    (
        lambda t, a, b, y: ew.where((a >= b) | (b != b), t, 0),
        lambda t, a, b, y: ew.where((a >= b) | (b != b), 0, t),
    ),
    ("ab", "ab"),
    lower=_expanded(ew.fmax),
    work=arithmetic,
)
torch_fmin_p: Primitive = binary(
    "torch_fmin",
    np.fmin,
    (
        lambda t, a, b, y: ew.where((a <= b) | (b != b), t, 0),
        lambda t, a, b, y: ew.where((a <= b) | (b != b), 0, t),
    ),
    ("ab", "ab"),
    lower=_expanded(ew.fmin),
    work=arithmetic,
)
clamp_min_p: Primitive = binary(
    "clamp_min",
    np.maximum,
    (lambda t, x, low, y: ew.where(x >= low, t, 0), lambda t, x, low, y: ew.where(x < low, t, 0)),
    ("ab", "ab"),
    lower=_expanded(ew.maximum),
    work=arithmetic,
)
clamp_max_p: Primitive = binary(
    "clamp_max",
    np.minimum,
    (
        lambda t, x, high, y: ew.where(x <= high, t, 0),
        lambda t, x, high, y: ew.where(x > high, t, 0),
    ),
    ("ab", "ab"),
    lower=_expanded(ew.minimum),
    work=arithmetic,
)


def _clamp_aval(x: ShapedArray, low: ShapedArray, high: ShapedArray) -> tuple[ShapedArray, ...]:
    shape = broadcast_shapes("clamp", [x.shape, low.shape, high.shape])
    return (ShapedArray(shape, promoted_dtype((x, low, high))),)


clamp_p: Primitive = ternary(
    "clamp",
    np.clip,
    (
        lambda t, x, low, high, y: ew.where((x >= low) & (x <= high), t, 0),
        lambda t, x, low, high, y: ew.where((low <= high) & (x < low), t, 0),
        lambda t, x, low, high, y: ew.where((high < low) | (x > high), t, 0),
    ),
    ("abc", "abc", "abc"),
    abstract_eval=_clamp_aval,
    lower=_expanded(ew.clip),
    work=arithmetic,
)

clamp_min: ArrayFunction = user_function(
    clamp_min_p, "``max(x, low)``; the derivative at a tie is that of ``x``, and 0 at NaN."
)
clamp_max: ArrayFunction = user_function(
    clamp_max_p, "``min(x, high)``; the derivative at a tie is that of ``x``, and 0 at NaN."
)
clamp: ArrayFunction = user_function(
    clamp_p, "``min(max(x, low), high)``; the derivative at ties is that of ``x``, and 0 at NaN."
)

# two operands ------------------------------------------------------------------------------------


def _angle_slope(t: object, part: object, a: Array, b: Array) -> Any:
    """``t * part / (a**2 + b**2)``; 0 at the origin."""
    size = ew.hypot(a, b)
    size = ew.where(size == 0, math.inf, size)
    return t * (part / size / size)


torch_arctan2_p: Primitive = binary(
    "torch_arctan2",
    np.arctan2,
    (lambda t, a, b, y: _angle_slope(t, b, a, b), lambda t, a, b, y: -_angle_slope(t, a, a, b)),
    ("ab", "ab"),
    lower=_expanded(ew.arctan2),
)
angle_of: ArrayFunction = user_function(torch_arctan2_p, "``arctan2``, with derivative 0 at 0.")
torch_hypot_p: Primitive = binary(
    "torch_hypot",
    np.hypot,
    (lambda t, a, b, y: t * (a / y), lambda t, a, b, y: t * (b / y)),
    ("ay", "by"),
    lower=_expanded(ew.hypot),
    work=arithmetic,
)
torch_logaddexp_p: Primitive = binary(
    "torch_logaddexp",
    np.logaddexp,
    (lambda t, a, b, y: t * sf.sigmoid(a - b), lambda t, a, b, y: t * sf.sigmoid(b - a)),
    ("ab", "ab"),
    lower=_expanded(ew.logaddexp),
)
torch_logaddexp2_p: Primitive = binary(
    "torch_logaddexp2",
    np.logaddexp2,
    (
        lambda t, a, b, y: t * sf.sigmoid((a - b) * ew.LN2),
        lambda t, a, b, y: t * sf.sigmoid((b - a) * ew.LN2),
    ),
    ("ab", "ab"),
    lower=_expanded(ew.logaddexp2),
)
_NEVER = np.zeros((), bool)

torch_copysign_p: Primitive = binary(
    "torch_copysign",
    np.copysign,
    (
        lambda t, a, b, y: ew.where(a == 0, 0, ew.where(ew.signbit(a) == ew.signbit(b), t, -t)),
        lambda t, a, b, y: ew.where(_NEVER, t, 0),  # torch has a gradient of zeros
    ),
    ("ab", ""),
    lower=_expanded(ew.copysign),
    work=arithmetic,
)
torch_remainder_p: Primitive = binary(
    "torch_remainder",
    np.remainder,
    (1, lambda t, a, b, y: -t * ew.floor_divide(a, b)),
    ("", "ab"),
    lower=_expanded(ew.remainder),
    work=arithmetic,
)


def _plain_power(a: Array | complex, b: Array | complex) -> Any:
    if type(b) is float and b == -0.5 and type(a) not in PYTHON_SCALARS:
        return 1 / np.sqrt(a)  # keeps the sign of zeros, and has no value at minus infinity
    if type(a) is float and type(b) in PYTHON_SCALARS:
        return np.power(a, b).item()
    return a**b


def _power_in_base(t: Array, a: Array, b: float, y: object) -> Array:
    """``t * b * a**(b-1)``; 0 where ``b`` is 0."""
    if type(b) in PYTHON_SCALARS:
        if b == 0:
            return ew.where(False, t, 0)
        if b == 1:
            return t
        if b == 2:
            return t * (2 * a)
        slope = b * torch_power(a, b - 1)
        is_root = not isinstance(b, complex) and 0 < b < 1
        return ew.mul_strong_zero(t, slope) if is_root else t * slope
    is_flat = b == 0
    if not (_is_integer(a) and _is_integer(b)):
        size = complex_parts.absolute(a)
        dtype = floating(dtype_of(size))
        limits = np.finfo(np.float32 if dtype.name == "bfloat16" else dtype)
        # elsewhere 1 / a is finite: the derivative of the slope in b
        is_flat = is_flat & ew.logical_not(size >= 4 * float(limits.smallest_normal))
    slope = ew.where(is_flat, 0, b * torch_power(a, ew.where(is_flat, 1, b - 1)))
    return ew.mul_strong_zero(t, slope)


def _power_in_exponent(t: object, a: Array, b: Array, y: Array) -> Any:
    """``t * y * log(a)``; 0 where ``a`` is 0 and ``b`` is not negative."""
    if type(a) in PYTHON_SCALARS:
        if a == 0:
            return t * ew.where(b >= 0, 0.0, -y)
        with np.errstate(all="ignore"):
            return t * (y * np.log(a).item())
    is_flat = a == 0
    if dtype_of(a).kind != "c" and dtype_of(b).kind != "c":
        is_flat = is_flat & (b >= 0)
    return t * ew.where(is_flat, 0, y * ew.log(ew.where(is_flat, 1, a)))


torch_power_p: Primitive = binary(
    "torch_power",
    _plain_power,
    (_power_in_base, _power_in_exponent),
    ("ab", "aby"),
    ufunc=np.power,
    keeps_weak=True,
    lower=_expanded(ew.power),
)
torch_power: ArrayFunction = user_function(torch_power_p)


def _xlogy(m: Any, a: Array | complex, b: Array | complex) -> Array:
    return m.where((a == 0) & (b == b), 0, a * m.log(b))


def _xlog1py(m: Any, a: Operand, b: Operand) -> Array:
    return m.where((a == 0) & (b == b), 0, a * m.log1p(b))


torch_xlogy_p: Primitive = binary(
    "torch_xlogy",
    partials=(
        lambda t, a, b, y: t * ew.where((a == 0) & (b <= 0), 0, ew.log(_typed(b, t))),
        lambda t, a, b, y: t * a / b,
    ),
    saves=("ab", "ab"),
    **_of_one_formula(_xlogy, "torch_xlogy"),
)
torch_xlog1py_p: Primitive = binary(
    "torch_xlog1py",
    partials=(
        lambda t, a, b, y: t * ew.where((a == 0) & (b <= -1), 0, ew.log1p(_typed(b, t))),
        lambda t, a, b, y: t * a / (b + 1),
    ),
    saves=("ab", "ab"),
    **_of_one_formula(_xlog1py, "torch_xlog1py"),
)
xlogy: ArrayFunction = user_function(torch_xlogy_p, "``a * log(b)``, 0 where ``a`` is 0.")
xlog1py: ArrayFunction = user_function(torch_xlog1py_p, "``a * log1p(b)``, 0 where ``a`` is 0.")


_LEAST_LOG = -100.0
_LEAST_PRODUCT = 1e-12


def _bce(m: Any, x: Array | complex, y: Array) -> Array:
    hit = m.maximum(m.log(x), _LEAST_LOG)
    miss = m.maximum(m.log1p(-x), _LEAST_LOG)
    return (y - 1) * miss - y * hit


binary_cross_entropy_p: Primitive = binary(
    "binary_cross_entropy",
    partials=(
        lambda t, x, y, out: t * ((x - y) / clamp_min(x * (1 - x), _LEAST_PRODUCT)),
        lambda t, x, y, out: t * (ew.log1p(_typed(-x, t)) - ew.log(_typed(x, t))),
    ),
    saves=("ab", "a"),
    **_of_one_formula(_bce, "binary_cross_entropy"),
)
binary_cross_entropy: ArrayFunction = user_function(
    binary_cross_entropy_p,
    "``-(y log(x) + (1 - y) log(1 - x))``; logarithms are at least -100, and the denominator "
    "``x (1 - x)`` of the slope at least 1e-12.",
)


def _value_aval(value: ShapedArray, carrier: ShapedArray) -> tuple[ShapedArray, ...]:
    shape = broadcast_shapes("with_slope", [value.shape, carrier.shape])
    return (ShapedArray(shape, promoted_dtype((value, carrier))),)


def _plain_with_slope(value: Any, carrier: Any) -> Array:
    return np.where(False, carrier, value)[()]


with_slope_p: Primitive = binary(
    "with_slope",
    _plain_with_slope,
    (0, 1),
    abstract_eval=_value_aval,
    lower=_expanded(lambda value, carrier: ew.where(carrier == carrier, value, value)),
    work=arithmetic,
)
with_slope: ArrayFunction = user_function(
    with_slope_p, "The value of the first operand with the derivative of the second."
)

# one operand -------------------------------------------------------------------------------------


torch_logit_p: Primitive = unary(
    "torch_logit",
    partial=lambda t, x, y: t * ew.where((x < 0) | (x > 1), math.nan, 1 / (x * (1 - x))),
    saves="x",
    **_of_one_formula(lambda m, x: m.log(x / (1 - x)), "torch_logit"),
)


def _sinc_slope(t: object, x: Array, y: Array) -> Any:
    """``t * (cos(pi x) - y) / x``; near 0 its series, whose derivatives are exact at 0, too."""
    angle = math.pi * x
    squared = angle * angle
    series = angle * (-1 / 3 + squared * (1 / 30 + squared * (-1 / 840 + squared / 45360)))
    is_near = (x > -0.01) & (x < 0.01)
    apart = ew.where(is_near, 1, x)
    return t * ew.where(is_near, math.pi * series, (ew.cos(math.pi * apart) - y) / apart)


def _sinc(m: Any, x: Operand) -> Array:
    angle = math.pi * m.where(x == 0, 1, x)
    return m.where(x == 0, 1, m.sin(angle) / angle)


torch_sinc_p: Primitive = unary(
    "torch_sinc", partial=_sinc_slope, saves="xy", **_of_one_formula(_sinc, "torch_sinc")
)


def _entropy(m: Any, x: Array) -> Array:
    value = -x * m.log(m.where(x > 0, x, 1))
    return m.where((x > 0) | (x != x), value, m.where(x == 0, x, -math.inf))


entropy_p: Primitive = unary(
    "entropy",
    partial=lambda t, x, y: t * (-1 - ew.log(x)),
    saves="x",
    **_of_one_formula(_entropy, "entropy"),
)


def _plain_expm1_below(x: Array, rate: Array) -> Array:
    return np.expm1(np.where(x > 0, 0, x) * rate)


def _expm1_below_slope(t: Array, x: Array, rate: float, y: Array | None) -> Array:
    """``rate * exp(rate * x)`` up to 0; constant at 0, so that the second derivative is 0 there."""
    inside = ew.where(x >= 0, 0, x)
    return t * ew.where(x > 0, 0, ew.exp(inside * rate) * rate)


expm1_below_p: Primitive = binary(
    "expm1_below",
    _plain(_plain_expm1_below),
    (_expm1_below_slope, None),
    ("ab", ""),
    abstract_eval=_floating_aval("expm1_below"),
    lower=_expanded(lambda x, rate: ew.expm1(ew.where(x > 0, 0, x) * rate)),
)
expm1_below: ArrayFunction = user_function(
    expm1_below_p, "``expm1(rate * min(x, 0))``: the part of ``elu`` and its kin below 0."
)


def _plain_softplus_below(x: Array, limit: Array) -> Array:
    value = sf.softplus_p.elementwise.function(x)  # type: ignore[union-attr]  # it is elementwise
    return np.where(x > limit, x, value)


def _softplus_below_slope(t: Array, x: Array, limit: float, y: object) -> Array:
    """``sigmoid(x)`` up to the limit; constant from there on."""
    return t * sf.sigmoid(ew.where(x >= limit, limit, x))


softplus_below_p: Primitive = binary(
    "softplus_below",
    _plain(_plain_softplus_below),
    (_softplus_below_slope, None),
    ("ab", ""),
    abstract_eval=_floating_aval("softplus_below"),
    lower=_expanded(lambda x, limit: ew.where(x > limit, x, sf.softplus(x))),
)
softplus_below: ArrayFunction = user_function(
    softplus_below_p,
    "``log(1 + exp(x))`` up to a limit, ``x`` above; the slope above is that at the limit.",
)


def _plain_lgamma(x: Array) -> Array:
    y = sf.lgamma_p.elementwise.function(x)  # type: ignore[union-attr]  # it is elementwise
    return np.where(x == -math.inf, np.asarray(math.inf, y.dtype), y)[()]


torch_lgamma_p: Primitive = unary(
    "torch_lgamma",
    _plain_lgamma,
    lambda t, x, y: t * sf.digamma(x),
    "x",
    abstract_eval=_floating_aval("torch_lgamma"),
    lower=_expanded(lambda x: ew.where(x == -math.inf, math.inf, sf.lgamma(x))),
)
lgamma: ArrayFunction = user_function(
    torch_lgamma_p, "The logarithm of the absolute value of the gamma function."
)

# Torch keeps the results of these and not the operands, which programs may overwrite. Where the
# results round to 1 or -1 the slopes are 0.
torch_tanh_p: Primitive = unary(
    "torch_tanh", np.tanh, lambda t, x, y: t * (1 - y * y), "y", lower=_expanded(ew.tanh)
)
torch_sigmoid_p: Primitive = unary(
    "torch_sigmoid",
    sf.sigmoid_p.elementwise.function,  # type: ignore[union-attr]  # it is elementwise
    lambda t, x, y: t * (y * (1 - y)),
    "y",
    abstract_eval=sf.sigmoid_p.abstract_eval,
    lower=_expanded(sf.sigmoid),
)
torch_expm1_p: Primitive = unary(
    "torch_expm1", np.expm1, lambda t, x, y: t * (y + 1), "y", lower=_expanded(ew.expm1)
)
tanh: ArrayFunction = user_function(torch_tanh_p, "``tanh(x)``.")
sigmoid: ArrayFunction = user_function(torch_sigmoid_p, "``1 / (1 + exp(-x))``.")
expm1: ArrayFunction = user_function(torch_expm1_p, "``exp(x) - 1``.")

logit: ArrayFunction = user_function(torch_logit_p, "``log(x / (1 - x))``.")
sinc: ArrayFunction = user_function(torch_sinc_p, "``sin(pi x) / (pi x)``, 1 at 0.")
entropy: ArrayFunction = user_function(entropy_p, "``-x log(x)``, 0 at 0 and minus infinity below.")

PRIMITIVES: tuple[Primitive, ...] = (
    torch_sign_p, torch_absolute_p, torch_maximum_p, torch_minimum_p, torch_fmax_p,
    torch_fmin_p, clamp_min_p, clamp_max_p, clamp_p, torch_arctan2_p, torch_hypot_p,
    torch_logaddexp_p, torch_logaddexp2_p, torch_copysign_p, torch_remainder_p, torch_power_p,
    torch_xlogy_p, torch_xlog1py_p, binary_cross_entropy_p, with_slope_p, torch_logit_p,
    torch_sinc_p, entropy_p, torch_lgamma_p, expm1_below_p, softplus_below_p, torch_tanh_p,
    torch_sigmoid_p, torch_expm1_p,
)  # fmt: skip
