"""NumPy's ufuncs: the functions by which traced values answer them, and the functions of users.

Here: ``UFUNCS`` (ufunc to function of its operands) and one function per ufunc
of NumPy, which hands plain operands to the ufunc itself (``out=``, ``where=``, ``dtype=``
included). Not here: the methods ``reduce``, ``accumulate``, ``outer``, ``at``, ``reduceat``
(``ufunc_methods``), derivatives (``primitives``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.avals import PYTHON_SCALARS
from functrans.core.boundary import DEFAULT, ERRORS, WRITTEN, shorten, warn_at_user
from functrans.core.dispatch import Tracer, bind, dtype_of
from functrans.core.values import Array
from functrans.numpy.common import as_operand, fresh, from_sequence, ufunc_operand
from functrans.numpy.dispatch import has_tracer
from functrans.primitives import complex_parts, dot
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import cast, cast_p

# ufuncs made of others --------------------------------------------------------------------------


def _positive(x: ArrayLike) -> Array:
    return fresh(ufunc_operand(np.positive, x))


def _conjugate(x: ArrayLike) -> Array:
    return (
        complex_parts.conjugate(x)
        if complex_parts.is_complex(x)
        else fresh(ufunc_operand(np.conjugate, x))
    )


def _fabs(x: ArrayLike) -> Array:
    if complex_parts.is_complex(x):
        raise TypeError("ufunc 'fabs' not supported for complex arrays; use np.abs")
    return complex_parts.absolute(ufunc_operand(np.fabs, x))


def _square(x: ArrayLike) -> Array:
    return ew.power(ufunc_operand(np.square, x), 2)


def _reciprocal(x: ArrayLike) -> Array:
    kind = dtype_of(x).kind
    if kind in "biu":  # NumPy divides integers, rounding towards zero
        x = ufunc_operand(np.reciprocal, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            at_zero = np.reciprocal(np.zeros(1, dtype_of(x)))[0].item()  # the machine's number
        turned = ew.where(ew.equal(complex_parts.absolute(x), 1), x, 0)
        return ew.where(ew.equal(x, 0), at_zero, turned)
    if kind == "c":  # the zero's sign keeps those of the parts, as NumPy's formula without it does
        nowhere = complex(math.nan, math.nan)
        return ew.where(ew.equal(x, 0), nowhere, ew.divide(complex(1.0, -0.0), x))
    return ew.divide(1, x)


def _scaled(ufunc: np.ufunc, factor: float) -> Callable[[Any], Any]:
    def function(x: ArrayLike) -> Any:
        return ew.multiply(ufunc_operand(ufunc, x), factor)

    return function


def _divmod(a: ArrayLike, b: ArrayLike) -> tuple[Any, Any]:
    return ew.floor_divide(a, b), ew.remainder(a, b)


def _modf(x: ArrayLike) -> tuple[Any, Any]:
    x = ufunc_operand(np.modf, x)
    whole = ew.trunc(x)
    rest = ew.where(  # a fraction of 0 has the sign of the number
        ew.signbit(x), ew.negative(ew.subtract(whole, x)), ew.subtract(x, whole)
    )
    return ew.where(ew.isinf(x), ew.copysign(0, x), rest), whole


def _frexp(x: ArrayLike) -> tuple[Any, Any]:
    x = ufunc_operand(np.frexp, x)
    exponent = ew.frexp_exponent(x)
    return ew.ldexp(x, ew.negative(exponent)), exponent


def _float_power(a: ArrayLike, b: ArrayLike) -> Array:
    dtype = np.float_power.resolve_dtypes((dtype_of(a), dtype_of(b), None))[0]
    return ew.power(cast(a, dtype), cast(b, dtype))


def _rounding(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """floor, ceil, trunc: integers stay as they are."""

    def rounded(x: ArrayLike) -> Array:
        return fresh(x) if dtype_of(x).kind in "biu" else function(x)

    return rounded


def _giving_scalars(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of truths, which are NumPy's, also where the operator's would be Python's."""

    def apply(a: Any, b: Array) -> Any:
        result = function(a, b)
        if type(result) in PYTHON_SCALARS:
            return np.asarray(result)[()]
        is_weak = isinstance(result, Tracer) and result.aval.weak
        return bind(cast_p, result, dtype=result.dtype)[0] if is_weak else result

    return apply


UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.absolute: complex_parts.absolute,
    np.add: ew.add,
    np.arccos: ew.arccos,
    np.arccosh: ew.arccosh,
    np.arcsin: ew.arcsin,
    np.arcsinh: ew.arcsinh,
    np.arctan: ew.arctan,
    np.arctan2: ew.arctan2,
    np.arctanh: ew.arctanh,
    np.bitwise_and: _giving_scalars(ew.bitwise_and),
    np.bitwise_count: ew.bitwise_count,
    np.bitwise_or: _giving_scalars(ew.bitwise_or),
    np.bitwise_xor: _giving_scalars(ew.bitwise_xor),
    np.cbrt: ew.cbrt,
    np.ceil: _rounding(ew.ceil),
    np.conjugate: _conjugate,
    np.copysign: ew.copysign,
    np.cos: ew.cos,
    np.cosh: ew.cosh,
    np.deg2rad: _scaled(np.deg2rad, math.pi / 180),
    np.degrees: _scaled(np.degrees, 180 / math.pi),
    np.divide: ew.divide,
    np.divmod: _divmod,
    np.equal: _giving_scalars(ew.equal),
    np.exp: ew.exp,
    np.exp2: ew.exp2,
    np.expm1: ew.expm1,
    np.fabs: _fabs,
    np.float_power: _float_power,
    np.floor: _rounding(ew.floor),
    np.floor_divide: ew.floor_divide,
    np.fmax: ew.fmax,
    np.fmin: ew.fmin,
    np.fmod: ew.fmod,
    np.frexp: _frexp,
    np.gcd: ew.gcd,
    np.greater: _giving_scalars(ew.greater),
    np.greater_equal: _giving_scalars(ew.greater_equal),
    np.heaviside: ew.heaviside,
    np.hypot: ew.hypot,
    np.invert: ew.invert,
    np.isfinite: ew.isfinite,
    np.isinf: ew.isinf,
    np.isnan: ew.isnan,
    np.lcm: ew.lcm,
    np.ldexp: ew.ldexp,
    np.left_shift: ew.left_shift,
    np.less: _giving_scalars(ew.less),
    np.less_equal: _giving_scalars(ew.less_equal),
    np.log: ew.log,
    np.log10: ew.log10,
    np.log1p: ew.log1p,
    np.log2: ew.log2,
    np.logaddexp: ew.logaddexp,
    np.logaddexp2: ew.logaddexp2,
    np.logical_and: ew.logical_and,
    np.logical_not: ew.logical_not,
    np.logical_or: ew.logical_or,
    np.logical_xor: ew.logical_xor,
    np.matmul: dot.matmul,
    np.matvec: dot.matvec,
    np.maximum: ew.maximum,
    np.minimum: ew.minimum,
    np.modf: _modf,
    np.multiply: ew.multiply,
    np.negative: ew.negative,
    np.nextafter: ew.nextafter,
    np.not_equal: _giving_scalars(ew.not_equal),
    np.positive: _positive,
    np.power: ew.power,
    np.rad2deg: _scaled(np.rad2deg, 180 / math.pi),
    np.radians: _scaled(np.radians, math.pi / 180),
    np.reciprocal: _reciprocal,
    np.remainder: ew.remainder,
    np.right_shift: ew.right_shift,
    np.rint: ew.rint,
    np.sign: complex_parts.sign,
    np.signbit: ew.signbit,
    np.sin: ew.sin,
    np.sinh: ew.sinh,
    np.spacing: ew.spacing,
    np.sqrt: ew.sqrt,
    np.square: _square,
    np.subtract: ew.subtract,
    np.tan: ew.tan,
    np.tanh: ew.tanh,
    np.trunc: _rounding(ew.trunc),
    np.vecdot: dot.vecdot,
    np.vecmat: dot.vecmat,
}
"""Ufunc to the function of its operands; all of NumPy's but ``isnat``."""

# functions of users -----------------------------------------------------------------------------


class Unary(Protocol):
    """A function of one array."""

    def __call__(self, x: ArrayLike, /, *args: object, **options: object) -> Array:
        """The ufunc's result."""


class Binary(Protocol):
    """A function of two arrays."""

    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, *args: object, **options: object) -> Array:
        """The ufunc's result."""


Several = Callable[..., tuple[Array, Array]]
"""A function with two results."""


def _unary(ufunc: np.ufunc) -> Unary:
    traced = UFUNCS[ufunc]

    def function(x: ArrayLike, /, *args: object, **options: object) -> Any:
        try:
            if isinstance(x, Tracer) and not args and not options:
                return traced(x)
            if isinstance(x, (list, tuple)) and has_tracer(x):
                x = from_sequence(x)
            token = ERRORS.set(WRITTEN) if ERRORS.get() is DEFAULT else warn_at_user()
            try:
                return ufunc(x, *args, **options)
            finally:
                if token is not None:
                    ERRORS.reset(token)
        except Exception as error:
            shorten(error)
            raise

    return _finished(function, ufunc)


def _binary(ufunc: np.ufunc) -> Binary:
    traced = UFUNCS[ufunc]

    def function(x1: ArrayLike, x2: ArrayLike, /, *args: object, **options: object) -> Any:
        try:
            if (isinstance(x1, Tracer) or isinstance(x2, Tracer)) and not args and not options:
                return traced(as_operand(x1), as_operand(x2))
            if isinstance(x1, (list, tuple)) and has_tracer(x1):
                x1 = from_sequence(x1)
            if isinstance(x2, (list, tuple)) and has_tracer(x2):
                x2 = from_sequence(x2)
            token = ERRORS.set(WRITTEN) if ERRORS.get() is DEFAULT else warn_at_user()
            try:
                return ufunc(x1, x2, *args, **options)
            finally:
                if token is not None:
                    ERRORS.reset(token)
        except Exception as error:
            shorten(error)
            raise

    return _finished(function, ufunc)


def _finished(function: Any, ufunc: np.ufunc) -> Callable[..., Any]:
    """The function with NumPy's name and a pointer to its documentation."""
    function.__name__ = function.__qualname__ = ufunc.__name__
    function.__doc__ = f"``numpy.{ufunc.__name__}``; traced values give traced results."
    function.ufunc = ufunc
    return function


absolute = abs = _unary(np.absolute)  # NumPy's name
add = _binary(np.add)
arccos = acos = _unary(np.arccos)
arccosh = acosh = _unary(np.arccosh)
arcsin = asin = _unary(np.arcsin)
arcsinh = asinh = _unary(np.arcsinh)
arctan = atan = _unary(np.arctan)
arctan2 = atan2 = _binary(np.arctan2)
arctanh = atanh = _unary(np.arctanh)
bitwise_and = _binary(np.bitwise_and)
bitwise_count = _unary(np.bitwise_count)
bitwise_or = _binary(np.bitwise_or)
bitwise_xor = _binary(np.bitwise_xor)
cbrt = _unary(np.cbrt)
ceil = _unary(np.ceil)
conjugate = conj = _unary(np.conjugate)
copysign = _binary(np.copysign)
cos = _unary(np.cos)
cosh = _unary(np.cosh)
deg2rad = _unary(np.deg2rad)
degrees = _unary(np.degrees)
divide = true_divide = _binary(np.divide)
divmod: Several = _binary(np.divmod)  # type: ignore[assignment]  # of two results  # NumPy's name
equal = _binary(np.equal)
exp = _unary(np.exp)
exp2 = _unary(np.exp2)
expm1 = _unary(np.expm1)
fabs = _unary(np.fabs)
float_power = _binary(np.float_power)
floor = _unary(np.floor)
floor_divide = _binary(np.floor_divide)
fmax = _binary(np.fmax)
fmin = _binary(np.fmin)
fmod = _binary(np.fmod)
frexp: Several = _unary(np.frexp)  # type: ignore[assignment]  # of two results
gcd = _binary(np.gcd)
greater = _binary(np.greater)
greater_equal = _binary(np.greater_equal)
heaviside = _binary(np.heaviside)
hypot = _binary(np.hypot)
invert = bitwise_not = bitwise_invert = _unary(np.invert)
isfinite = _unary(np.isfinite)
isinf = _unary(np.isinf)
isnan = _unary(np.isnan)
lcm = _binary(np.lcm)
ldexp = _binary(np.ldexp)
left_shift = bitwise_left_shift = _binary(np.left_shift)
less = _binary(np.less)
less_equal = _binary(np.less_equal)
log = _unary(np.log)
log10 = _unary(np.log10)
log1p = _unary(np.log1p)
log2 = _unary(np.log2)
logaddexp = _binary(np.logaddexp)
logaddexp2 = _binary(np.logaddexp2)
logical_and = _binary(np.logical_and)
logical_not = _unary(np.logical_not)
logical_or = _binary(np.logical_or)
logical_xor = _binary(np.logical_xor)
matmul = _binary(np.matmul)
matvec = _binary(np.matvec)
maximum = _binary(np.maximum)
minimum = _binary(np.minimum)
modf: Several = _unary(np.modf)  # type: ignore[assignment]  # of two results
multiply = _binary(np.multiply)
negative = _unary(np.negative)
nextafter = _binary(np.nextafter)
not_equal = _binary(np.not_equal)
positive = _unary(np.positive)
power = pow = _binary(np.power)  # NumPy's name
rad2deg = _unary(np.rad2deg)
radians = _unary(np.radians)
reciprocal = _unary(np.reciprocal)
remainder = mod = _binary(np.remainder)
right_shift = bitwise_right_shift = _binary(np.right_shift)
rint = _unary(np.rint)
sign = _unary(np.sign)
signbit = _unary(np.signbit)
sin = _unary(np.sin)
sinh = _unary(np.sinh)
spacing = _unary(np.spacing)
sqrt = _unary(np.sqrt)
square = _unary(np.square)
subtract = _binary(np.subtract)
tan = _unary(np.tan)
tanh = _unary(np.tanh)
trunc = _unary(np.trunc)
vecdot = _binary(np.vecdot)
vecmat = _binary(np.vecmat)
