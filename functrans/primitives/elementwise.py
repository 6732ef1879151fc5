"""Elementwise primitives: arithmetic, exponentials, trigonometry, extrema, selection, comparisons.

Here: one record per operation, derivative included, and the function that applies it. Not here:
complex parts (``complex_parts``), casts and broadcasting (``structural``), the constructors and the
meaning of ``partial`` and ``saves`` (``family``).

``t`` is a tangent or cotangent, ``y`` the result. Conventions at kinks are those of docs/kinks.
Sources: elementary calculus; complex branch cuts as in NumPy (C99 Annex G).

Layer: ``primitives``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, ShapedArray, Zero
from functrans.core.dispatch import aval_of, dtype_of
from functrans.core.lowering import Expansion
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.source import may_be_caught
from functrans.core.values import Array
from functrans.primitives.choosing import choose
from functrans.primitives.family import (
    binary,
    broadcast_shapes,
    in_precision_of_result,
    nothing,
    products,
    promoted_dtype,
    quotients,
    ternary,
    unary,
    user_function,
)
from functrans.primitives.structural import cast

ArrayFunction = Callable[..., Any]

LN2 = math.log(2.0)
LN10 = math.log(10.0)

# Functions on plain values: Python's operators, since they are the fastest entry to NumPy's ufuncs
# and keep Python scalars Python scalars. Where they raise on Python floats and NumPy does not, they
# raise if an operator in the user's code asks that may catch it, and else give NumPy's number.


def _plain_divide(a: Array | complex, b: Array | complex) -> Array | complex:
    try:
        return a / b
    except ZeroDivisionError:
        if may_be_caught():
            raise
        return np.divide(a, b)


def _plain_floor_divide(a: Array, b: Array | complex) -> Array:
    try:
        return a // b
    except ZeroDivisionError:
        if may_be_caught():
            raise
        return np.floor_divide(a, b)


def _plain_remainder(a: Array, b: Array | complex) -> Array | complex:
    try:
        return a % b
    except ZeroDivisionError:
        if may_be_caught():
            raise
        return np.remainder(a, b)


_BOOL = np.dtype(bool)  # Python's operator squares in int8
_INEXACT = (float, complex)
_REAL = (int, float)


def _plain_power(a: Any, b: Any) -> Array | complex:
    if type(a) is np.ndarray:
        if a.dtype.char in "fd" and type(b) in _REAL and b == 3:
            return a * a * a  # as compiled programs do, in a fortieth of the time
        return a**b if a.dtype is not _BOOL or type(b) is not int or b != 2 else np.power(a, b)
    if (
        type(a) in PYTHON_SCALARS
        and type(b) in PYTHON_SCALARS
        and (type(a) in _INEXACT or type(b) in _INEXACT)
    ):
        return _power_of_floats(a, b)
    if type(b) is int and b == 2 and type(a) is np.bool_:
        return np.power(a, b)
    return a**b


def _power_of_floats(a: float, b: Any) -> float:
    """NumPy's power: Python's is complex for ``(-1.0) ** 0.5``, and raises for ``0.0 ** -1``."""
    try:
        a**b
    except (ZeroDivisionError, OverflowError):
        if may_be_caught():
            raise
    return np.power(a, b).item()


def _shifting(ufunc: np.ufunc) -> ArrayFunction:
    def shift(a: Array, b: Array | complex) -> Array:
        result = ufunc(a, b)
        return result.item() if type(a) in PYTHON_SCALARS and type(b) in PYTHON_SCALARS else result

    return shift


# select -----------------------------------------------------------------------------------------


def _where_aval(c: ShapedArray, a: ShapedArray, b: ShapedArray) -> tuple[ShapedArray, ...]:
    shape = broadcast_shapes("where", [c.shape, a.shape, b.shape])
    return (ShapedArray(shape, promoted_dtype((a, b))),)


where_p: Primitive = ternary(
    "where",
    choose,
    (None, lambda t, c, a, b, y: where(c, t, 0), lambda t, c, a, b, y: where(c, 0, t)),
    ("", "a", "a"),
    abstract_eval=_where_aval,
)
where: ArrayFunction = user_function(where_p, "``a`` where the condition holds, else ``b``.")


def _plain_mul_strong_zero(a: Array, b: Array) -> Array:
    return np.where(a == 0, 0, a * b)


mul_strong_zero_p: Primitive = binary(
    "mul_strong_zero",
    _plain_mul_strong_zero,
    (lambda t, a, b, y: mul_strong_zero(t, b), lambda t, a, b, y: mul_strong_zero(a, t)),
    ("b", "a"),
    ufunc=np.multiply,
    kinds="iuf",
)
mul_strong_zero: ArrayFunction = user_function(
    mul_strong_zero_p,
    "``a * b``, but 0 where ``a`` is exactly 0, whatever ``b`` is: for derivatives infinite at 0.",
)

# arithmetic -------------------------------------------------------------------------------------

add_p: Primitive = binary("add", operator.add, (1, 1), ufunc=np.add, operator="+")
subtract_p: Primitive = binary("subtract", operator.sub, (1, -1), ufunc=np.subtract, operator="-")
multiply_p: Primitive = binary(
    "multiply",
    operator.mul,
    (lambda t, a, b, y: t * b, lambda t, a, b, y: t * a),
    ("b", "a"),
    ufunc=np.multiply,
    has_plain_partials=True,
    work=products,
    operator="*",
)
divide_p: Primitive = binary(
    "divide",
    _plain_divide,
    (lambda t, a, b, y: t / b, lambda t, a, b, y: -t * (y / b)),
    ("b", "by"),
    ufunc=np.divide,
    has_plain_partials=True,
    cost=4,
    work=quotients,
    operator="/",
)
floor_divide_p: Primitive = binary(
    "floor_divide", _plain_floor_divide, (0, 0), ufunc=np.floor_divide, keeps_weak=True, cost=4
)
remainder_p: Primitive = binary(
    "remainder",
    _plain_remainder,
    (1, lambda t, a, b, y: -t * floor(divide(a, b))),
    ("", "ab"),
    ufunc=np.remainder,
    keeps_weak=True,
    cost=4,
)
fmod_p: Primitive = binary(
    "fmod", np.fmod, (1, lambda t, a, b, y: -t * trunc(divide(a, b))), ("", "ab"), cost=4
)
negative_p: Primitive = unary("negative", operator.neg, -1, ufunc=np.negative, operator="-")


def power_in_base(t: Array | complex, a: Any, b: Any, y: Array | None) -> Any:
    """``t * b * a**(b-1)``; 0 where ``b`` is 0 (also at ``a`` = 0 and NaN).

    Elsewhere the slope at ``b`` = 0 is computed, not set: its own derivative in ``b`` is ``1 / a``.
    """
    if type(b) in PYTHON_SCALARS:
        if b == 2:
            return t * (2 * a)
        if b == 0:
            return Zero(aval_of(t))  # a constant, whatever is made of it
        if b == 1:
            return t
        if b in (math.inf, -math.inf) and dtype_of(a).kind != "c":  # a step
            is_flat = (a > -1) & (a < 1) if b > 0 else (a < -1) | (a > 1)
            return mul_strong_zero(t, where(is_flat, 0.0, b * copysign(1.0, a)))
        slope = b * power(a, b - 1)  # Python's own ** raises at 0.0 and where it overflows
        return mul_strong_zero(t, slope) if not isinstance(b, complex) and 0 < b < 1 else t * slope
    return _power_in_base_of_array(t, a, b, y)


def _in_base_of_array(t: Array, a: Array, b: Array, y: Array | None) -> Array:
    is_flat = (b == 0) & ((a == 0) | (a != a))
    slope = where(is_flat, 0, b * power(a, where(is_flat, 1, b - 1)))
    return mul_strong_zero(t, slope)


_power_in_base_of_array = in_precision_of_result(_in_base_of_array, 0b011, 2)


def _power_in_exponent(t: Array, a: Array | complex, b: Array | None, y: Array) -> Array:
    """``t * y * log(a)``; 0 at ``a`` = 0 where the power is 0, the limit, or 1.

    The logarithm of a negative base is NaN if the power is real, and complex if that is. Where
    the exponent does not change (``t`` = 0), it does not matter: forward mode finds the slope in
    the base, as reverse mode does.
    """
    if dtype_of(y).kind == "c" and dtype_of(a).kind != "c":
        a = a + 0j
    elif dtype_of(a).kind in "biu" and type(a) not in PYTHON_SCALARS:
        a = cast(a, dtype_of(y))  # NumPy takes logarithms of small integers in half precision
    if type(a) in PYTHON_SCALARS:
        with np.errstate(all="ignore"):
            if a != 0:
                return mul_strong_zero(t, y * np.log(a).item())
            return mul_strong_zero(t, where((y == 0) | (y == 1), 0, -y))  # of an infinite power
    is_flat = (a == 0) & ((y == 0) | (y == 1))
    return mul_strong_zero(t, where(is_flat, 0, y * log(where(is_flat, 1, a))))


power_p: Primitive = binary(
    "power",
    _plain_power,
    (power_in_base, in_precision_of_result(_power_in_exponent, 0b101, 2)),
    ("ab", "ay"),
    ufunc=np.power,
    keeps_weak=True,
    has_plain_partials=True,
    cost=40,
)

# exponentials -----------------------------------------------------------------------------------

exp_p: Primitive = unary("exp", np.exp, lambda t, x, y: t * y, "y", cost=15)
exp2_p: Primitive = unary("exp2", np.exp2, lambda t, x, y: t * (y * LN2), "y", cost=15)
expm1_p: Primitive = unary("expm1", np.expm1, lambda t, x, y: t * exp(x), "x", cost=15)
log_p: Primitive = unary("log", np.log, lambda t, x, y: t / x, "x", cost=15)
log2_p: Primitive = unary("log2", np.log2, lambda t, x, y: t / (x * LN2), "x", cost=15)
log10_p: Primitive = unary("log10", np.log10, lambda t, x, y: t / (x * LN10), "x", cost=15)
log1p_p: Primitive = unary("log1p", np.log1p, lambda t, x, y: t / (1 + x), "x", cost=15)
sqrt_p: Primitive = unary("sqrt", np.sqrt, lambda t, x, y: mul_strong_zero(t, 0.5 / y), "y", cost=4)
cbrt_p: Primitive = unary(
    "cbrt", np.cbrt, lambda t, x, y: mul_strong_zero(t, 1 / (3 * y * y)), "y", cost=15
)


def _gap(a: Array, b: Array | complex) -> Array:
    """``b - a``; 0 where both are the same infinity, so that each weighs half."""
    return where((a == b) & isinf(a), 0, b - a)


def _logaddexp_weight(a: Array, b: Array | complex) -> Array:
    """``exp(a - logaddexp(a, b))``, from the difference alone: exact also for large numbers."""
    return exp(-logaddexp(0, _gap(a, b)))


def _logaddexp2_weight(a: Array, b: Array | complex) -> Array:
    return exp2(-logaddexp2(0, _gap(a, b)))


logaddexp_p: Primitive = binary(
    "logaddexp",
    np.logaddexp,
    (
        lambda t, a, b, y: t * _logaddexp_weight(a, b),
        lambda t, a, b, y: t * _logaddexp_weight(b, a),
    ),
    ("ab", "ab"),
    cost=15,
)
logaddexp2_p: Primitive = binary(
    "logaddexp2",
    np.logaddexp2,
    (
        lambda t, a, b, y: t * _logaddexp2_weight(a, b),
        lambda t, a, b, y: t * _logaddexp2_weight(b, a),
    ),
    ("ab", "ab"),
    cost=15,
)

# trigonometry -----------------------------------------------------------------------------------


def _root_beside(square: Array, reference: Array) -> Array:
    """The complex root of ``square`` that lies beside a reference, which is close to a root.

    On a branch cut ``sqrt(square)`` may be the root of the other side: sums with 1 lose the sign of
    a zero imaginary part. The reference has the right side, and half the digits near the branch
    point; one step of Newton's method gives it all of them.
    """
    is_zero = square == 0
    near = where(is_zero, 1, reference)
    return where(is_zero, 0, (near + square / near) * 0.5)


circle_square_p: Primitive = unary(
    "circle_square",
    lambda x: (1 - x) * (1 + x),
    lambda t, x, y: t * (-2 * x),
    "x",
    ufunc=np.square,
    keeps_weak=True,
    lower=Expansion(lambda x: ((1 - x) * (1 + x),)),
    kinds="iuf",
)
circle_square: ArrayFunction = user_function(
    circle_square_p, "``1 - x**2``, exact beside 1; so is its derivative beside 0."
)


def _circle_root(x: Array) -> Array:
    """``sqrt(1 - x**2)``, on the side of ``arcsin(x)``."""
    square = circle_square(x)
    if dtype_of(x).kind == "c":
        return _root_beside(square, cos(arcsin(x)))
    return sqrt(square)


def _far_out(x: Array) -> float:
    """From where on ``x**2`` plus or minus 1 is ``x**2``, which may overflow, as derivatives do."""
    return float(10.0 ** dtype_of(x).itemsize)


def _sum_root(x: Array) -> Array:
    """``sqrt(1 + x**2)``, on the side of ``arcsinh(x)``."""
    if dtype_of(x).kind == "c":
        return _root_beside(x * x + 1, cosh(arcsinh(x)))
    end = _far_out(x)
    is_far = (x > end) | (x < -end)
    near = where(is_far, 0, x)
    return where(is_far, x * sign(x), sqrt(near * near + 1))


def _difference_root(x: Array) -> Array:
    """``sqrt(x - 1) * sqrt(x + 1)``, on the side of ``arccosh(x)``; NaN left of 1."""
    if dtype_of(x).kind == "c":
        return _root_beside((x - 1) * (x + 1), sinh(arccosh(x)))
    is_far = x > _far_out(x)
    near = where(is_far, 0, x)
    return where(is_far, x, sqrt(where(near < 0, near, 0 - circle_square(near))))


NEAR_LIMIT = 1 / 256
"""Slopes of tanh and sigmoid below which they are computed from the operand."""


def hump(x: Array, rate: float, height: float) -> Array:
    """``height * e / (1 + e)**2`` of ``e = exp(-rate * abs(x))``, without overflow."""
    e = np.exp(-rate * np.abs(x))
    root = 1 + e
    return height * e / (root * root)


_SINGLE = 4
"""So many elements are taken one by one: two steps of NumPy on arrays take as long."""


def plain_slope(x: Array, slope: Array, rate: float, height: float) -> Array:
    """A slope computed from the result, and as a ``hump`` of the operand where it is small.

    Args:
      x: operand.
      slope: computed of the result; written to.
      rate: of the hump.
      height: of the hump.
    """
    if not (slope.size and slope.ndim and slope.flags.c_contiguous):
        is_small = slope < NEAR_LIMIT
        if is_small.any():
            with np.errstate(under="ignore"):
                np.copyto(slope, hump(x, rate, height), where=is_small)
        return slope[()]
    if slope.item(slope.argmin()) >= NEAR_LIMIT:  # not of NaN
        return slope
    slopes, operands = slope.reshape(-1), x.reshape(-1)
    (places,) = (slopes < NEAR_LIMIT).nonzero()
    if places.size > _SINGLE:
        with np.errstate(under="ignore"):
            slopes[places] = hump(operands[places], rate, height)
        return slope
    for place in places.tolist():
        e = math.exp(-rate * abs(operands.item(place)))
        slopes[place] = height * e / ((1 + e) * (1 + e))
    return slope


def met(*operands: Array) -> tuple[np.ndarray, ...]:
    """Plain operands in their common shape and dtype."""
    first = operands[0]
    for x in operands:
        if not (type(x) is np.ndarray and x.shape == first.shape and x.dtype is first.dtype):
            break
    else:
        return operands
    dtype = np.result_type(*operands)
    return np.broadcast_arrays(*[np.asarray(x, dtype) for x in operands])


def _plain_tanh_slope(x: Array, y: Array) -> Array:
    x, y = met(x, y)
    square = np.asarray(y * y)
    return plain_slope(x, np.subtract(1, square, square), 2.0, 4.0)


# The result has lost what the slope is made of where it is beside 1 or -1: ``1 - y * y`` is all
# rounding there. The slope of the slope does not suffer from that.
tanh_slope_p: Primitive = binary(
    "tanh_slope",
    _plain_tanh_slope,
    (0, lambda t, x, y, slope: t * (-2 * y)),
    ("", "b"),
    ufunc=np.hypot,
    kinds="f",
    cost=4,
)
tanh_slope: ArrayFunction = user_function(
    tanh_slope_p, "The derivative of ``tanh``, of the operand and the result: ``1 - y**2``."
)


def _tanh_slope(x: Array, y: Array) -> Array:
    return 1 - y * y if dtype_of(x).kind == "c" else tanh_slope(x, y)


sin_p: Primitive = unary("sin", np.sin, lambda t, x, y: t * cos(x), "x", cost=15)
cos_p: Primitive = unary("cos", np.cos, lambda t, x, y: -t * sin(x), "x", cost=15)
tan_p: Primitive = unary("tan", np.tan, lambda t, x, y: t * (1 + y * y), "y", cost=15)
arcsin_p: Primitive = unary("arcsin", np.arcsin, lambda t, x, y: t / _circle_root(x), "x", cost=15)
arccos_p: Primitive = unary("arccos", np.arccos, lambda t, x, y: -t / _circle_root(x), "x", cost=15)
arctan_p: Primitive = unary("arctan", np.arctan, lambda t, x, y: t / (1 + x * x), "x", cost=15)
sinh_p: Primitive = unary("sinh", np.sinh, lambda t, x, y: t * cosh(x), "x", cost=15)
cosh_p: Primitive = unary("cosh", np.cosh, lambda t, x, y: t * sinh(x), "x", cost=15)
tanh_p: Primitive = unary("tanh", np.tanh, lambda t, x, y: t * _tanh_slope(x, y), "xy", cost=15)
arcsinh_p: Primitive = unary("arcsinh", np.arcsinh, lambda t, x, y: t / _sum_root(x), "x", cost=15)
arccosh_p: Primitive = unary(
    "arccosh", np.arccosh, lambda t, x, y: t / _difference_root(x), "x", cost=15
)
arctanh_p: Primitive = unary(
    "arctanh", np.arctanh, lambda t, x, y: t / circle_square(x), "x", cost=15
)


arctan2_p: Primitive = binary(
    "arctan2",
    np.arctan2,
    (
        lambda t, a, b, y: t * (b / hypot(a, b) / hypot(a, b)),
        lambda t, a, b, y: -t * (a / hypot(a, b) / hypot(a, b)),
    ),
    ("ab", "ab"),
    cost=15,
)
hypot_p: Primitive = binary(
    "hypot",
    np.hypot,
    (lambda t, a, b, y: t * cosine(a, b), lambda t, a, b, y: t * cosine(b, a)),
    ("ab", "ab"),
    cost=4,
)


def _over(a: Array, y: Array) -> Array:
    return where(y == 0, 0, a / where(y == 0, 1, y))


def _plain_cosine(a: Array, b: Array | complex) -> Array:
    y = np.hypot(a, b)
    return np.divide(a, y, out=np.zeros_like(y), where=y != 0)[()]


# The derivative of the quotient would be ``(1 - (a / y)**2) / y``, which cancels.
cosine_p: Primitive = binary(
    "cosine",
    _plain_cosine,
    (
        lambda t, a, b, y: t * _over(cosine(b, a) * cosine(b, a), hypot(a, b)),
        lambda t, a, b, y: -t * _over(y * cosine(b, a), hypot(a, b)),
    ),
    ("ab", "aby"),
    ufunc=np.hypot,
    lower=Expansion(lambda a, b: (_over(a, hypot(a, b)),)),
)
cosine: ArrayFunction = user_function(cosine_p, "``a / hypot(a, b)`` of two arrays, 0 at 0.")

# extrema and rounding ---------------------------------------------------------------------------


def _share(t: Array, a_wins: Array, b_wins: Array) -> Array:
    """The part of the tangent that ``a`` gets in max/min: all, half at a tie, none."""
    return where(a_wins, where(b_wins, t * 0.5, t), 0)


def _wins(a: Array | complex, y: Array) -> Any:
    """Whether an operand is the result of max/min; a NaN operand is."""
    return (a == y) | (a != a)


def _extremum_partials() -> tuple[Any, Any]:
    return (
        lambda t, a, b, y: _share(t, _wins(a, y), _wins(b, y)),
        lambda t, a, b, y: _share(t, _wins(b, y), _wins(a, y)),
    )


maximum_p: Primitive = binary("maximum", np.maximum, _extremum_partials(), ("aby", "aby"))
minimum_p: Primitive = binary("minimum", np.minimum, _extremum_partials(), ("aby", "aby"))


def _fwins(a: Array, b: Array, y: Array) -> Array:
    """Like ``_wins`` for fmax/fmin: a NaN operand loses against a number."""
    return (a == y) | ((a != a) & (b != b))


def _fextremum_partials() -> tuple[Any, Any]:
    return (
        lambda t, a, b, y: _share(t, _fwins(a, b, y), _fwins(b, a, y)),
        lambda t, a, b, y: _share(t, _fwins(b, a, y), _fwins(a, b, y)),
    )


fmax_p: Primitive = binary("fmax", np.fmax, _fextremum_partials(), ("aby", "aby"))
fmin_p: Primitive = binary("fmin", np.fmin, _fextremum_partials(), ("aby", "aby"))


def _clip_aval(x: ShapedArray, lo: ShapedArray, hi: ShapedArray) -> tuple[ShapedArray, ...]:
    shape = broadcast_shapes("clip", [x.shape, lo.shape, hi.shape])
    return (ShapedArray(shape, promoted_dtype((x.strong(), lo, hi))),)


clip_p: Primitive = ternary(
    "clip",
    np.clip,
    (
        lambda t, x, lo, hi, y: where((x >= lo) & (x <= hi), t, 0),
        lambda t, x, lo, hi, y: where((x < lo) & (lo <= hi), t, 0),
        lambda t, x, lo, hi, y: where((x > hi) | (lo > hi), t, 0),
    ),
    ("abc", "abc", "abc"),
    abstract_eval=_clip_aval,
)


def _multiply_add_aval(a: ShapedArray, b: ShapedArray, c: ShapedArray) -> tuple[ShapedArray, ...]:
    shape = broadcast_shapes("multiply_add", [a.shape, b.shape, c.shape])
    dtype = promoted_dtype((a.strong(), b, c))
    if dtype.kind not in "fc":
        raise TypeError(f"multiply_add: not defined for operands {a}, {b}, {c}")
    return (ShapedArray(shape, dtype),)


multiply_add_p: Primitive = ternary(
    "multiply_add",
    lambda a, b, c: a * b + c,  # native code rounds once
    (lambda t, a, b, c, y: t * b, lambda t, a, b, c, y: t * a, 1),
    ("b", "a", ""),
    abstract_eval=_multiply_add_aval,
)
absolute_p: Primitive = unary("absolute", np.absolute, lambda t, x, y: t * sign(x), "x")
sign_p: Primitive = unary("sign", np.sign, 0)
floor_p: Primitive = unary("floor", np.floor, 0)
ceil_p: Primitive = unary("ceil", np.ceil, 0)
trunc_p: Primitive = unary("trunc", np.trunc, 0)
rint_p: Primitive = unary("rint", np.rint, 0)
spacing_p: Primitive = unary("spacing", np.spacing, 0)
heaviside_p: Primitive = binary(
    "heaviside",
    np.heaviside,
    (0, lambda t, a, b, y: where(a == 0, t, 0)),  # at 0 it is its second operand
    ("", "a"),
)
nextafter_p: Primitive = binary("nextafter", np.nextafter, (1, 0))
copysign_p: Primitive = binary(
    "copysign",
    np.copysign,
    (lambda t, a, b, y: where(signbit(a) == signbit(b), t, -t), 0),
    ("ab", ""),
    work=nothing,
)
ldexp_p: Primitive = binary("ldexp", np.ldexp, (lambda t, a, b, y: ldexp(t, b), None), ("b", ""))

# no derivative: comparisons, logic, bits, tests --------------------------------------------------


def _ordered(compare: Callable[[Any, Any], Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """An order as arrays have it: the operators of complex scalars leave NaN parts out."""

    def function(a: Array | complex, b: Array | complex) -> Any:
        if isinstance(a, np.complexfloating) or isinstance(b, np.complexfloating):
            return ufunc(a, b)
        return compare(a, b)

    return function


equal_p: Primitive = binary("equal", operator.eq, nondifferentiable, ufunc=np.equal, operator="==")
not_equal_p: Primitive = binary(
    "not_equal", operator.ne, nondifferentiable, ufunc=np.not_equal, operator="!="
)
less_p: Primitive = binary(
    "less", _ordered(operator.lt, np.less), nondifferentiable, ufunc=np.less, operator="<"
)
less_equal_p: Primitive = binary(
    "less_equal",
    _ordered(operator.le, np.less_equal),
    nondifferentiable,
    ufunc=np.less_equal,
    operator="<=",
)
greater_p: Primitive = binary(
    "greater", _ordered(operator.gt, np.greater), nondifferentiable, ufunc=np.greater, operator=">"
)
greater_equal_p: Primitive = binary(
    "greater_equal",
    _ordered(operator.ge, np.greater_equal),
    nondifferentiable,
    ufunc=np.greater_equal,
    operator=">=",
)
logical_and_p: Primitive = binary("logical_and", np.logical_and, nondifferentiable)
logical_or_p: Primitive = binary("logical_or", np.logical_or, nondifferentiable)
logical_xor_p: Primitive = binary("logical_xor", np.logical_xor, nondifferentiable)
logical_not_p: Primitive = unary("logical_not", np.logical_not, nondifferentiable)
bitwise_and_p: Primitive = binary(
    "bitwise_and", operator.and_, nondifferentiable, ufunc=np.bitwise_and, operator="&"
)
bitwise_or_p: Primitive = binary(
    "bitwise_or", operator.or_, nondifferentiable, ufunc=np.bitwise_or, operator="|"
)
bitwise_xor_p: Primitive = binary(
    "bitwise_xor", operator.xor, nondifferentiable, ufunc=np.bitwise_xor, operator="^"
)
invert_p: Primitive = unary("invert", np.invert, nondifferentiable)
left_shift_p: Primitive = binary(
    "left_shift", _shifting(np.left_shift), nondifferentiable, ufunc=np.left_shift, keeps_weak=True
)
right_shift_p: Primitive = binary(
    "right_shift",
    _shifting(np.right_shift),
    nondifferentiable,
    ufunc=np.right_shift,
    keeps_weak=True,
)
gcd_p: Primitive = binary("gcd", np.gcd, nondifferentiable, cost=4)
lcm_p: Primitive = binary("lcm", np.lcm, nondifferentiable, cost=4)
bitwise_count_p: Primitive = unary("bitwise_count", np.bitwise_count, nondifferentiable)
isnan_p: Primitive = unary("isnan", np.isnan, nondifferentiable)
isinf_p: Primitive = unary("isinf", np.isinf, nondifferentiable)
isfinite_p: Primitive = unary("isfinite", np.isfinite, nondifferentiable)
signbit_p: Primitive = unary("signbit", np.signbit, nondifferentiable, work=nothing)


def _plain_frexp_exponent(x: Array) -> Array:
    return np.frexp(x)[1]


def _frexp_exponent_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    if x.dtype.kind == "c":
        raise TypeError(f"frexp_exponent: not defined for {x}")
    return (ShapedArray(x.shape, np.dtype(np.int32)),)


frexp_exponent_p: Primitive = unary(
    "frexp_exponent",
    _plain_frexp_exponent,
    nondifferentiable,
    ufunc=np.frexp,
    abstract_eval=_frexp_exponent_aval,
)

add: ArrayFunction = user_function(add_p)
subtract: ArrayFunction = user_function(subtract_p)
multiply: ArrayFunction = user_function(multiply_p)
divide: ArrayFunction = user_function(divide_p)
floor_divide: ArrayFunction = user_function(floor_divide_p)
remainder: ArrayFunction = user_function(remainder_p)
fmod: ArrayFunction = user_function(fmod_p)
negative: ArrayFunction = user_function(negative_p)
power: ArrayFunction = user_function(power_p)
exp: ArrayFunction = user_function(exp_p)
exp2: ArrayFunction = user_function(exp2_p)
expm1: ArrayFunction = user_function(expm1_p)
log: ArrayFunction = user_function(log_p)
log2: ArrayFunction = user_function(log2_p)
log10: ArrayFunction = user_function(log10_p)
log1p: ArrayFunction = user_function(log1p_p)
sqrt: ArrayFunction = user_function(sqrt_p)
cbrt: ArrayFunction = user_function(cbrt_p)
logaddexp: ArrayFunction = user_function(logaddexp_p)
logaddexp2: ArrayFunction = user_function(logaddexp2_p)
sin: ArrayFunction = user_function(sin_p)
cos: ArrayFunction = user_function(cos_p)
tan: ArrayFunction = user_function(tan_p)
arcsin: ArrayFunction = user_function(arcsin_p)
arccos: ArrayFunction = user_function(arccos_p)
arctan: ArrayFunction = user_function(arctan_p)
sinh: ArrayFunction = user_function(sinh_p)
cosh: ArrayFunction = user_function(cosh_p)
tanh: ArrayFunction = user_function(tanh_p)
arcsinh: ArrayFunction = user_function(arcsinh_p)
arccosh: ArrayFunction = user_function(arccosh_p)
arctanh: ArrayFunction = user_function(arctanh_p)
arctan2: ArrayFunction = user_function(arctan2_p)
hypot: ArrayFunction = user_function(hypot_p)
maximum: ArrayFunction = user_function(maximum_p)
minimum: ArrayFunction = user_function(minimum_p)
fmax: ArrayFunction = user_function(fmax_p)
fmin: ArrayFunction = user_function(fmin_p)
clip: ArrayFunction = user_function(clip_p)
sign: ArrayFunction = user_function(sign_p)
floor: ArrayFunction = user_function(floor_p)
ceil: ArrayFunction = user_function(ceil_p)
trunc: ArrayFunction = user_function(trunc_p)
rint: ArrayFunction = user_function(rint_p)
spacing: ArrayFunction = user_function(spacing_p)
heaviside: ArrayFunction = user_function(heaviside_p)
nextafter: ArrayFunction = user_function(nextafter_p)
copysign: ArrayFunction = user_function(copysign_p)
ldexp: ArrayFunction = user_function(ldexp_p)
equal: ArrayFunction = user_function(equal_p)
not_equal: ArrayFunction = user_function(not_equal_p)
less: ArrayFunction = user_function(less_p)
less_equal: ArrayFunction = user_function(less_equal_p)
greater: ArrayFunction = user_function(greater_p)
greater_equal: ArrayFunction = user_function(greater_equal_p)
logical_and: ArrayFunction = user_function(logical_and_p)
logical_or: ArrayFunction = user_function(logical_or_p)
logical_xor: ArrayFunction = user_function(logical_xor_p)
logical_not: ArrayFunction = user_function(logical_not_p)
bitwise_and: ArrayFunction = user_function(bitwise_and_p)
bitwise_or: ArrayFunction = user_function(bitwise_or_p)
bitwise_xor: ArrayFunction = user_function(bitwise_xor_p)
invert: ArrayFunction = user_function(invert_p)
left_shift: ArrayFunction = user_function(left_shift_p)
right_shift: ArrayFunction = user_function(right_shift_p)
gcd: ArrayFunction = user_function(gcd_p)
lcm: ArrayFunction = user_function(lcm_p)
bitwise_count: ArrayFunction = user_function(bitwise_count_p)
isnan: ArrayFunction = user_function(isnan_p)
isinf: ArrayFunction = user_function(isinf_p)
isfinite: ArrayFunction = user_function(isfinite_p)
signbit: ArrayFunction = user_function(signbit_p)
frexp_exponent: ArrayFunction = user_function(frexp_exponent_p)

PRIMITIVES: tuple[Primitive, ...] = (
    add_p, subtract_p, multiply_p, divide_p, floor_divide_p, remainder_p, fmod_p, negative_p,
    power_p, exp_p, exp2_p, expm1_p, log_p, log2_p, log10_p, log1p_p, sqrt_p, cbrt_p, logaddexp_p,
    logaddexp2_p, sin_p, cos_p, tan_p, arcsin_p, arccos_p, arctan_p, sinh_p, cosh_p, tanh_p,
    arcsinh_p, arccosh_p, arctanh_p, circle_square_p, tanh_slope_p,
    arctan2_p, hypot_p, cosine_p, maximum_p, minimum_p, fmax_p, fmin_p,
    clip_p, multiply_add_p, absolute_p, sign_p, floor_p, ceil_p, trunc_p, rint_p, spacing_p,
    heaviside_p, nextafter_p, copysign_p, ldexp_p, where_p, mul_strong_zero_p, equal_p, not_equal_p,
    less_p, less_equal_p, greater_p, greater_equal_p, logical_and_p, logical_or_p, logical_xor_p,
    logical_not_p, bitwise_and_p, bitwise_or_p, bitwise_xor_p, invert_p, left_shift_p,
    right_shift_p, gcd_p, lcm_p, bitwise_count_p, isnan_p, isinf_p, isfinite_p, signbit_p,
    frexp_exponent_p,
)  # fmt: skip
