"""Special functions: activations, the error function and its relatives, gamma and Bessel functions.

Here: elementwise operations that NumPy does not have, and the function that applies each. Not here:
what is made of them (``autograd.methods.special``), SciPy's names for them (``scipy.special``).

Integers become float64, as in SciPy. Half precision is kept: values are computed in float32 and
rounded once. Values of most come from ``scipy.special``, which is imported when the first of them
is evaluated.

``t`` is a tangent or cotangent, ``y`` the result.

Layer: ``primitives.special``. Sources: DLMF chapters 5, 7, 8, 10, 25 for derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import aval_of, dtype_of
from functrans.core.lowering import Expansion, Routine
from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import imag, real
from functrans.primitives.family import (
    arithmetic,
    binary,
    broadcast_shapes,
    elementwise_primitive,
    promoted_dtype,
    unary,
    user_function,
)
from functrans.primitives.special.cylinder import (
    iv_derivative,
    ive_derivative,
    jv_derivative,
    scaled_slope,
    with_limits,
    write_limits,
)
from functrans.primitives.special.family import (
    floating,
    in_single_or_double,
    is_half,
    refused_derivative,
    routine,
    scipy_lowering,
    special_primitive,
)
from functrans.primitives.special.series import gammainc_derivatives, hurwitz_derivatives
from functrans.primitives.structural import cast

if TYPE_CHECKING:
    from functrans.emitter.routine import Array as Memory
    from functrans.emitter.routine import Routines

ArrayFunction = Callable[..., Any]

_DIRECT = (np.dtype(np.float64), np.dtype(np.float32))
_ROOT_PI = math.sqrt(math.pi)
_ROOT_2_PI = math.sqrt(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)

# dtypes ------------------------------------------------------------------------------------------


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32, float64 and wider arrays as one of all plain operands."""

    def plain(*operands: Array | complex) -> Any:
        for x in operands:
            if type(x) is not np.ndarray or x.dtype not in _DIRECT:
                break
        else:
            return function(*operands)
        dtype = floating(np.result_type(*operands))
        if not is_half(dtype):
            return function(*[np.asarray(x, dtype) for x in operands])
        return function(*[np.asarray(x, np.float32) for x in operands]).astype(dtype)

    return plain


def _scipy(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``."""

    def function(*operands: Array) -> Any:
        if any(x.dtype.kind == "c" for x in operands):
            raise TypeError(f"{name}: not defined for complex numbers")
        return routine(name)(*operands)

    return _plain(function)


def _aval_rule(name: str, kinds: str, is_wide: bool, keeps_integers: bool) -> Callable[..., Any]:
    """``abstract_eval`` for operands of some kinds of dtype.

    Args:
      name: name of the primitive.
      kinds: letters of the kinds of dtype that it takes.
      is_wide: whether it takes floats of more than 64 bits.
      keeps_integers: whether integers stay integers.
    """

    def abstract_eval(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
        shape = broadcast_shapes(name, [aval.shape for aval in avals])
        dtype = promoted_dtype(avals)
        is_taken = dtype.kind in kinds and (is_wide or dtype.itemsize <= 8 or dtype.kind == "c")
        if not is_taken and dtype.name != "bfloat16":
            text = ", ".join(map(str, avals))
            raise TypeError(f"{name}: not defined for operands {text}")
        return (ShapedArray(shape, dtype if keeps_integers else floating(dtype)),)

    return abstract_eval


def _one(
    name: str,
    function: Callable[..., Any],
    partial: Any,
    saves: str = "",
    *,
    kinds: str = "biuf",
    is_wide: bool = True,
    keeps_integers: bool = False,
    expansion: Callable[..., Any] | None = None,
    **options: Any,
) -> Primitive:
    """An operation of one operand that is written in NumPy.

    Args:
      name: name of the primitive.
      function: evaluates it on plain operands of any dtype that it takes.
      partial: as in ``family``.
      saves: as in ``family``.
      kinds: see ``_aval_rule``.
      is_wide: see ``_aval_rule``.
      keeps_integers: see ``_aval_rule``.
      expansion: writes it in other operations, for operands of the result's dtype.
      **options: as in ``family``.
    """

    def expanded(x: Array) -> tuple[Any, ...]:
        return (expansion(x if keeps_integers else cast(x, floating(dtype_of(x)))),)  # type: ignore[misc]  # it is used with one only

    return elementwise_primitive(
        name,
        function,
        (partial,),
        (saves,),
        "x",
        abstract_eval=_aval_rule(name, kinds, is_wide, keeps_integers),
        lower=None if expansion is None else Expansion(expanded),
        **options,
    )


def _of_scipy(
    name: str,
    partials: tuple[Any, ...],
    saves: tuple[str, ...],
    routine: str = "",
    *,
    is_native: bool = False,
    cost: int = 1,
) -> Primitive:
    """An operation of SciPy; ``is_native`` where the emitter has a method of its name."""
    aval_rule = _aval_rule(name, "biuf", False, False)
    own: dict[str, Any] = {"cost": cost}
    if not is_native:
        own["lower"] = scipy_lowering(routine or name, aval_rule, in_single_or_double)
    return elementwise_primitive(
        name,
        _scipy(routine or name),
        partials,
        saves,
        "x" if len(saves) == 1 else "ab",
        abstract_eval=aval_rule,
        **own,
    )


# activations -------------------------------------------------------------------------------------


def _plain_sigmoid(x: Array) -> Array:
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    with np.errstate(under="ignore"):
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1, e) / (1 + e)


def _plain_log_sigmoid(x: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _plain_softplus(x: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is computed step by step in the dtype of the result, halves too."""

    def plain(x: Array | complex) -> Any:
        return function(np.asarray(x, floating(np.result_type(x))))

    return plain


def _plain_sigmoid_slope(x: Array, y: Array) -> Array:
    x, y = ew.met(x, y)
    slope = np.asarray(1 - y)
    if slope.size and not slope.item(slope.argmin()) >= ew.NEAR_LIMIT:  # or NaN
        y = np.where(slope < ew.NEAR_LIMIT, 1, y)
        slope = ew.plain_slope(x, slope, 1.0, 1.0)
    return (y * slope)[()]


def _plain_sigmoid_tilt(x: Array, y: Array) -> Array:
    x, y = ew.met(x, y)
    return np.where(np.abs(x) < ew.NEAR_LIMIT, -np.tanh(x * 0.5), 1 - 2 * y)[()]


# As for tanh: ``1 - y`` is all rounding where the result is beside 1, ``1 - 2 y`` beside 0.
sigmoid_slope_p: Primitive = binary(
    "sigmoid_slope",
    _plain_sigmoid_slope,
    (0, lambda t, x, y, slope: t * sigmoid_tilt(x, y)),
    ("", "ab"),
    ufunc=np.hypot,
    kinds="f",
    cost=4,
)
sigmoid_tilt_p: Primitive = binary(
    "sigmoid_tilt",
    _plain_sigmoid_tilt,
    (0, lambda t, x, y, tilt: t * -2),
    ("", ""),
    ufunc=np.hypot,
    kinds="f",
    cost=4,
)
sigmoid_slope: ArrayFunction = user_function(
    sigmoid_slope_p, "The derivative of ``sigmoid``, of the operand and the result: ``y - y**2``."
)
sigmoid_tilt: ArrayFunction = user_function(
    sigmoid_tilt_p, "``1 - 2 sigmoid(x)``, of the operand and the result."
)


def _sigmoid_rate(x: Array, y: Array) -> Array:
    if dtype_of(y).kind == "c":
        return y * (1 - y)
    return sigmoid_slope(cast(x, dtype_of(y)), y)


sigmoid_p: Primitive = _one(
    "sigmoid",
    _plain(_plain_sigmoid),
    lambda t, x, y: t * _sigmoid_rate(x, y),
    "xy",
    kinds="biufc",
    cost=15,
)


def _plain_relu(x: Any) -> Any:
    """``relu(-0.0)`` is -0.0, as in torch: NumPy gives the second one of equal operands.

    Of those in half precision it gives the first one.
    """
    if getattr(x, "itemsize", 8) == 2 and x.dtype.kind in "fV":
        return np.where(x < 0, x.dtype.type(0), x)
    return np.maximum(0, x)


relu_p: Primitive = _one(
    "relu",
    _plain_relu,
    lambda t, x, y: ew.where(y <= 0, 0, t),
    "y",
    kinds="iuf",
    keeps_integers=True,
    expansion=lambda x: ew.where(x < 0, 0, x),
    work=arithmetic,
)
log_sigmoid_p: Primitive = _one(
    "log_sigmoid",
    _plain(_plain_log_sigmoid),
    lambda t, x, y: t * sigmoid(-x),
    "x",
    expansion=lambda x: 0 - softplus(-x),
)
softplus_p: Primitive = _one(
    "softplus", _plain(_plain_softplus), lambda t, x, y: t * sigmoid(x), "x", cost=15
)
rsqrt_p: Primitive = _one(
    "rsqrt",
    _exactly(lambda x: 1 / np.sqrt(x)),
    lambda t, x, y: t * (-0.5 * (y * y * y)),
    "y",
    kinds="biufc",
    expansion=lambda x: 1 / ew.sqrt(x),
    work=arithmetic,
)
reciprocal_p: Primitive = _one(
    "reciprocal",
    _exactly(lambda x: 1 / x),
    lambda t, x, y: -t * (y * y),
    "y",
    kinds="biufc",
    expansion=lambda x: 1 / x,
    work=arithmetic,
)

sigmoid: ArrayFunction = user_function(sigmoid_p, "``1 / (1 + exp(-x))``.")
relu: ArrayFunction = user_function(relu_p, "``max(x, 0)``, with derivative 0 at 0 and 1 at NaN.")
log_sigmoid: ArrayFunction = user_function(log_sigmoid_p, "``log(sigmoid(x))`` without underflow.")
softplus: ArrayFunction = user_function(softplus_p, "``log(1 + exp(x))`` without overflow.")
rsqrt: ArrayFunction = user_function(rsqrt_p, "``1 / sqrt(x)``.")
reciprocal: ArrayFunction = user_function(reciprocal_p, "``1 / x``.")

# the error function ------------------------------------------------------------------------------

FAR = 100.0
"""Squares above which the series of ``far_series`` holds to rounding; below, differences do."""


def far_series(z: Array) -> Array:
    """The asymptotic series ``sum((3/2)_n z**n)`` for ``|z| <= 1 / 100`` (DLMF 7.12.1).

    Far from 0, derivatives of scaled error functions are small differences of large numbers; they
    are multiples of this series without any cancellation, and so are their own derivatives.
    """
    total: Any = 1.0
    for n in range(15, 0, -1):
        total = 1 + total * z * (n + 0.5)
    return total


def erfcx_slope(x: Array, y: Array) -> Array:
    """The derivative of ``erfcx``: ``2 x y - 2 / sqrt(pi)``; its series where that cancels."""
    if dtype_of(x).kind == "c":
        half_plane = real(x) >= 0
        is_far = half_plane & (real(x) * real(x) + imag(x) * imag(x) > FAR)
    else:
        is_far = x > math.sqrt(FAR)
    inverse = 1 / ew.where(is_far, x, math.sqrt(FAR))
    z = inverse * inverse
    far = z * far_series(-z) * (-1 / _ROOT_PI)
    near_x, near_y = ew.where(is_far, 0, x), ew.where(is_far, 0, y)
    return ew.where(is_far, far, 2 * near_x * near_y - 2 / _ROOT_PI)


_FLAT = 40.0
"""Right of it the normal density is 0."""
_FAR_LEFT = -200.0
"""Left of it, three steps of the continued fraction of Mills' ratio hold to rounding."""


def _log_ndtr_slope(x: Array, y: Array) -> Array:
    """The density over the distribution function; left of 0 by ``erfcx``, without overflow.

    Far out by Laplace's continued fraction (DLMF 7.9.1), of which no derivative overflows.
    """
    is_left, is_far = x < 0, x < _FAR_LEFT
    near = ew.where(is_left & ew.logical_not(is_far), x, 0)
    left = math.sqrt(2 / math.pi) / erfcx(near * -math.sqrt(0.5))
    size = -ew.where(is_far, x, _FAR_LEFT)
    far = size + 1 / (size + 2 / (size + 3 / size))
    right_x, right_y = ew.where(is_left, 0, ew.minimum(x, _FLAT)), ew.where(is_left, 0, y)
    right = ew.exp(right_x * right_x * -0.5 - right_y) / _ROOT_2_PI
    return ew.where(is_left, ew.where(is_far, far, left), right)


def inverse_bell(x: Array, y: Array) -> Array:
    """``exp(y * y)`` for ``erfc(y) = x``; ``erfcx(y) / x`` where the square would lose digits."""
    is_right = x < 1
    tail, size = ew.where(is_right, x, 2 - x), ew.where(is_right, y, -y)
    is_far = (size > 1) & (tail > 0)
    far = erfcx(ew.where(is_far, size, 1)) / ew.where(is_far, tail, 1)
    near = ew.where(is_far, 0, y)
    return ew.where(is_far, far, ew.exp(near * near))


gaussian_p: Primitive = unary(
    "gaussian",
    lambda x: np.exp(-(x * x)),
    lambda t, x, y: t * (ew.mul_strong_zero(y, x) * -2),
    "xy",
    ufunc=np.exp,
    lower=Expansion(lambda x: (ew.exp(-(x * x)),)),
    kinds="f",
)
gaussian: ArrayFunction = user_function(
    gaussian_p, "``exp(-x**2)``; at infinity its derivatives are 0."
)

erf_p: Primitive = _of_scipy(
    "erf", (lambda t, x, y: t * (gaussian(x) * (2 / _ROOT_PI)),), ("x",), is_native=True, cost=40
)
erfc_p: Primitive = _of_scipy(
    "erfc", (lambda t, x, y: t * (gaussian(x) * (-2 / _ROOT_PI)),), ("x",), is_native=True, cost=40
)
erfcx_p: Primitive = _of_scipy("erfcx", (lambda t, x, y: t * erfcx_slope(x, y),), ("xy",))
erfinv_p: Primitive = _of_scipy(
    "erfinv", (lambda t, x, y: t * (ew.exp(y * y) * (_ROOT_PI / 2)),), ("y",)
)
ndtr_p: Primitive = _of_scipy(
    "ndtr", (lambda t, x, y: t * (gaussian(x * _ROOT_HALF) / _ROOT_2_PI),), ("x",)
)
ndtri_p: Primitive = _of_scipy(
    "ndtri", (lambda t, x, y: t * (inverse_bell(2 * x, y * -math.sqrt(0.5)) * _ROOT_2_PI),), ("xy",)
)
log_ndtr_p: Primitive = _of_scipy("log_ndtr", (lambda t, x, y: t * _log_ndtr_slope(x, y),), ("xy",))

erf: ArrayFunction = user_function(erf_p, "The error function.")
erfc: ArrayFunction = user_function(erfc_p, "``1 - erf(x)``.")
erfcx: ArrayFunction = user_function(erfcx_p, "``exp(x ** 2) * erfc(x)``.")
erfinv: ArrayFunction = user_function(erfinv_p, "The inverse of ``erf``.")
ndtr: ArrayFunction = user_function(ndtr_p, "The normal distribution function.")
ndtri: ArrayFunction = user_function(ndtri_p, "The inverse of ``ndtr``.")
log_ndtr: ArrayFunction = user_function(log_ndtr_p, "``log(ndtr(x))`` without underflow.")

# gamma functions ---------------------------------------------------------------------------------


def _plain_lgamma(x: Array) -> Array:
    """SciPy's ``gammaln``, without its overflow for subnormal numbers."""
    if x.dtype.kind == "c":
        raise TypeError("lgamma: not defined for complex numbers")
    y = routine("gammaln")(x)
    is_infinite = np.isinf(y)
    if not is_infinite.any():
        return y
    with np.errstate(divide="ignore"):
        near_zero = -np.log(np.abs(x))
    return np.where(is_infinite & (np.abs(x) < 0.5), near_zero, y)[()]


lgamma_p: Primitive = _one(
    "lgamma", _plain(_plain_lgamma), lambda t, x, y: t * digamma(x), "x", is_wide=False, cost=40
)


def _plain_digamma(x: Array) -> Array:
    """SciPy's ``psi``; left of 0 by reflection, for which SciPy rounds the distance to the pole."""
    if x.dtype.kind == "c":
        raise TypeError("digamma: not defined for complex numbers")
    psi = routine("psi")
    y = psi(x)
    is_left = (x < 0) & np.isfinite(y)
    if not is_left.any():
        return y
    left = np.where(is_left, x, x.dtype.type(-0.5))
    distance = left - np.rint(left)
    reflected = psi(1 - left) - math.pi / np.tan(math.pi * distance)
    is_near = is_left & (np.abs(distance) < 0.125)  # SciPy has the digits beside the zeros
    return np.where(is_near, reflected, y)[()]


digamma_p: Primitive = _one(
    "digamma", _plain(_plain_digamma), lambda t, x, y: t * zeta(2.0, x), "x", is_wide=False, cost=40
)
zeta_p: Primitive = _of_scipy(
    "zeta",
    (lambda t, a, b, y: t * zeta_s(a, b), lambda t, a, b, y: t * (-a * zeta(a + 1, b))),
    ("ab", "ab"),
)
# The derivative of -a zeta(a + 1, b) in a.
zeta_s_p: Primitive = special_primitive(
    "zeta_s",
    (
        lambda t, a, b, y: t * zeta_ss(a, b),
        lambda t, a, b, y: t * (-zeta(a + 1, b) - a * zeta_s(a + 1, b)),
    ),
    ("ab", "ab"),
    lambda a, b: hurwitz_derivatives(a, b)[0],
    is_wide=True,
)
zeta_ss_p: Primitive = special_primitive(
    "zeta_ss",
    (
        refused_derivative("zeta_ss", 0, "the third derivative of zeta in its exponent"),
        lambda t, a, b, y: t * (-2 * zeta_s(a + 1, b) - a * zeta_ss(a + 1, b)),
    ),
    ("", "ab"),
    lambda a, b: hurwitz_derivatives(a, b)[1],
    is_wide=True,
)


def _density(a: Array | complex, x: Array) -> Array:
    """The derivative of the lower incomplete gamma ratio in ``x``: ``x**(a-1) exp(-x) / gamma(a)``.

    At 0 it is 0, 1 or infinite, as ``a`` is above, at or below 1; at infinity 0. ``a`` is converted
    first, since ``lgamma`` of a Python number is float64.
    """
    dtype = promoted_dtype((aval_of(a), aval_of(x)))  # type: ignore[arg-type]  # of arrays
    a = cast(a, floating(dtype))
    is_end, is_far = x == 0, x == math.inf
    inner, end = ew.where(is_end | is_far, 1, x), ew.where(is_end, x, 0)
    value = ew.exp((a - 1) * ew.log(inner) - inner - lgamma(a))
    at_end = ew.power(end, a - 1) * ew.exp(-end - lgamma(a))  # a power has its derivatives at 0
    return ew.where(is_end, at_end, ew.where(is_far, 0, value))


gammainc_p: Primitive = _of_scipy(
    "gammainc",
    (lambda t, a, b, y: t * gammainc_a(a, b), lambda t, a, b, y: t * _density(a, b)),
    ("ab", "ab"),
)
gammaincc_p: Primitive = _of_scipy(
    "gammaincc",
    (lambda t, a, b, y: -t * gammainc_a(a, b), lambda t, a, b, y: -t * _density(a, b)),
    ("ab", "ab"),
)


def _density_slope(a: Array, x: Array) -> tuple[Any, Any]:
    """The density, and the derivative of its logarithm in ``a``; the density is 0 at its ends."""
    is_end = (x == 0) | (x == math.inf)
    inner = ew.where(is_end, 1, x)
    return ew.where(is_end, 0, _density(a, inner)), ew.log(inner) - digamma(a)


def _density_a(t: Array, a: Array, x: Array) -> Array:
    density, slope = _density_slope(a, x)
    return t * (density * slope)


def _density_aa(t: object, a: Array, x: Array) -> Any:
    density, slope = _density_slope(a, x)
    return t * (density * (slope * slope - zeta(2.0, a)))


gammainc_a_p: Primitive = special_primitive(
    "gammainc_a",
    (lambda t, a, b, y: t * gammainc_aa(a, b), lambda t, a, b, y: _density_a(t, a, b)),
    ("ab", "ab"),
    lambda a, b: gammainc_derivatives(a, b)[0],
    is_wide=True,
)
gammainc_aa_p: Primitive = special_primitive(
    "gammainc_aa",
    (
        refused_derivative("gammainc_aa", 0, "the third derivative of gammainc in its parameter"),
        lambda t, a, b, y: _density_aa(t, a, b),
    ),
    ("", "ab"),
    lambda a, b: gammainc_derivatives(a, b)[1],
    is_wide=True,
)

lgamma: ArrayFunction = user_function(
    lgamma_p, "The logarithm of the absolute value of the gamma function."
)
digamma: ArrayFunction = user_function(digamma_p, "The derivative of ``lgamma``.")
zeta: ArrayFunction = user_function(
    zeta_p, "Hurwitz's zeta function; differentiable twice in the exponent."
)
zeta_s: ArrayFunction = user_function(zeta_s_p, "The derivative of ``zeta`` in the exponent.")
zeta_ss: ArrayFunction = user_function(
    zeta_ss_p, "The second derivative of ``zeta`` in the exponent."
)
gammainc: ArrayFunction = user_function(
    gammainc_p,
    "The lower incomplete gamma function, over the gamma; differentiable twice in the parameter.",
)
gammaincc: ArrayFunction = user_function(
    gammaincc_p,
    "The upper incomplete gamma function, over the gamma; differentiable twice in the parameter.",
)
gammainc_a: ArrayFunction = user_function(
    gammainc_a_p, "The derivative of ``gammainc`` in its parameter."
)
gammainc_aa: ArrayFunction = user_function(
    gammainc_aa_p, "The second derivative of ``gammainc`` in its parameter."
)

# Bessel functions --------------------------------------------------------------------------------


# The derivatives of those of order 0 are the ones of order 1, but for the sign. Those of order 1
# of the first kind go on with neighbouring orders, since f1' = +-f0 - f1 / x cancels near 0 in
# higher derivatives; the second kind is singular at 0 and has that (DLMF 10.6.2, 10.29.2).


def _whole(name: str, kind: str, order: int, partial: Callable[..., Any], saves: str) -> Primitive:
    """A Bessel function of a whole order, at infinity its limit; ``kind`` is that of any order."""

    def function(x: Array) -> Any:
        if x.dtype.kind == "c":
            raise TypeError(f"{name}: not defined for complex numbers")
        return with_limits(kind, order, x, routine(name)(x))

    aval_rule = _aval_rule(name, "biuf", False, False)
    lowering = scipy_lowering(name, aval_rule, in_single_or_double)

    def write(e: Routines, operands: Sequence[Memory], results: Sequence[Memory]) -> None:
        lowering.write(e, operands, results)
        write_limits(e, kind, order, operands[0], results[0])

    return elementwise_primitive(
        name,
        _plain(function),
        (partial,),
        (saves,),
        "x",
        abstract_eval=aval_rule,
        lower=Routine(write, lowering.supports, one_thread=True),
    )


def _i0e_slope(x: Array, y: Array) -> Array:
    is_far, slope = scaled_slope("ive", 0.0, x * ew.sign(x))
    return ew.where(is_far, ew.sign(x) * slope, i1e(x) - ew.sign(x) * y)


def _i1e_slope(x: Array, y: Array) -> Array:
    is_far, slope = scaled_slope("ive", 1.0, x * ew.sign(x))
    return ew.where(is_far, slope, ive_derivative(1, 1, x) - ew.sign(x) * y)


def _k0e_slope(x: Array, y: Array) -> Array:
    is_far, slope = scaled_slope("kve", 0.0, x)
    return ew.where(
        is_far, slope, ew.where(x == 0, -y, y - k1e(x))
    )  # not a difference of infinities


def _k1e_slope(x: Array, y: Array) -> Array:
    is_far, slope = scaled_slope("kve", 1.0, x)
    near = ew.where(is_far, 1, x)
    return ew.where(is_far, slope, y * ((near - 1) / near) - k0e(x))


i0_p: Primitive = _whole("i0", "iv", 0, lambda t, x, y: t * i1(x), "x")
i1_p: Primitive = _whole("i1", "iv", 1, lambda t, x, y: t * iv_derivative(1, 1, x), "x")
i0e_p: Primitive = _of_scipy("i0e", (lambda t, x, y: t * _i0e_slope(x, y),), ("xy",))
i1e_p: Primitive = _of_scipy("i1e", (lambda t, x, y: t * _i1e_slope(x, y),), ("xy",))

i0: ArrayFunction = user_function(i0_p, "The modified Bessel function of the first kind, order 0.")
i1: ArrayFunction = user_function(i1_p, "The modified Bessel function of the first kind, order 1.")
i0e: ArrayFunction = user_function(i0e_p, "``i0(x) * exp(-|x|)``.")
i1e: ArrayFunction = user_function(i1e_p, "``i1(x) * exp(-|x|)``.")

j0_p: Primitive = _whole("j0", "jv", 0, lambda t, x, y: -t * j1(x), "x")
j1_p: Primitive = _whole("j1", "jv", 1, lambda t, x, y: t * jv_derivative(1, 1, x), "x")
y0_p: Primitive = _whole("y0", "yv", 0, lambda t, x, y: -t * y1(x), "x")
y1_p: Primitive = _whole(
    "y1",
    "yv",
    1,
    # At 0 the pole of ``y`` alone; not a difference of infinities.
    lambda t, x, y: t * (y0(ew.where(x == 0, 1, x)) - y / x),
    "xy",
)
k0_p: Primitive = _of_scipy("k0", (lambda t, x, y: -t * k1(x),), ("x",))
k1_p: Primitive = _of_scipy("k1", (lambda t, x, y: -t * (k0(x) + y / x),), ("xy",))
k0e_p: Primitive = _of_scipy("k0e", (lambda t, x, y: t * _k0e_slope(x, y),), ("xy",))
k1e_p: Primitive = _of_scipy("k1e", (lambda t, x, y: t * _k1e_slope(x, y),), ("xy",))

j0: ArrayFunction = user_function(j0_p, "The Bessel function of the first kind, order 0.")
j1: ArrayFunction = user_function(j1_p, "The Bessel function of the first kind, order 1.")
y0: ArrayFunction = user_function(y0_p, "The Bessel function of the second kind, order 0.")
y1: ArrayFunction = user_function(y1_p, "The Bessel function of the second kind, order 1.")
k0: ArrayFunction = user_function(k0_p, "The modified Bessel function of the second kind, order 0.")
k1: ArrayFunction = user_function(k1_p, "The modified Bessel function of the second kind, order 1.")
k0e: ArrayFunction = user_function(k0e_p, "``k0(x) * exp(x)``.")
k1e: ArrayFunction = user_function(k1e_p, "``k1(x) * exp(x)``.")

PRIMITIVES: tuple[Primitive, ...] = (
    sigmoid_slope_p, sigmoid_tilt_p, sigmoid_p, relu_p, log_sigmoid_p, softplus_p, rsqrt_p,
    reciprocal_p, gaussian_p, erf_p, erfc_p, erfcx_p,
    erfinv_p, ndtr_p, ndtri_p, log_ndtr_p, lgamma_p, digamma_p, zeta_p, gammainc_p, gammaincc_p,
    zeta_s_p, zeta_ss_p, gammainc_a_p, gammainc_aa_p,
    i0_p, i1_p, i0e_p, i1e_p, j0_p, j1_p, y0_p, y1_p, k0_p, k1_p, k0e_p, k1e_p,
)  # fmt: skip
