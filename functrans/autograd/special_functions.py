"""Primitives that torch has as one operation and NumPy not at all.

Here: activations (``sigmoid``, ``relu``, ``softplus``, ...), the error function and its relatives,
gamma functions, Bessel functions. Not here: what is made of them (``autograd.methods.special``).

Values come from ``scipy.special``, which is imported when the first of them is evaluated. The
activations are written in elementary functions, and are compiled as these.

Layer: ``autograd``. Sources: DLMF chapters 5, 7, 8, 10 for derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.ir.avals import ShapedArray
from functrans.ir.lowering import Expansion
from functrans.ir.primitive import Primitive, nondifferentiable
from functrans.primitives import elementwise as ew
from functrans.primitives.family import (
    binary,
    broadcast_shapes,
    move_batch_axes,
    promoted_dtype,
    unary,
    user_function,
)
from functrans.trace import elementwise, shape_of

ArrayFunction = Callable[..., Any]

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2_PI = math.sqrt(2 * math.pi)


def _scipy(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``."""

    def function(*operands: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*operands)

    return function


def _aval(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
    shape = broadcast_shapes("a special function", [aval.shape for aval in avals])
    return (ShapedArray(shape, promoted_dtype(avals)),)


def _one(
    name: str,
    function: Callable[..., Any],
    partial: Any,
    saves: str = "",
    expansion: Callable[..., Any] | None = None,
) -> Primitive:
    """An operation of one operand; ``expansion`` writes it in elementary ones."""
    made = unary(name, function, partial, saves, abstract_eval=_aval)
    lower = None if expansion is None else Expansion(lambda x: (expansion(x),))

    def batch(size: int, operands: Any, dims: Any) -> tuple[Any, Any]:
        return (elementwise(primitive, *operands),), dims

    primitive: Primitive = replace(made, lower=lower, batch=batch)
    return primitive


def _two(
    name: str, function: Callable[..., Any], partials: Any, saves: tuple[str, str] = ("", "")
) -> Primitive:
    """An operation of two operands."""
    made = binary(name, function, partials, saves, abstract_eval=_aval)

    def batch(size: int, operands: Any, dims: Any) -> tuple[Any, Any]:
        ndims = [
            len(shape_of(x)) - (dim is not None) for x, dim in zip(operands, dims, strict=True)
        ]
        moved = move_batch_axes(operands, dims, ndims)
        return (elementwise(primitive, *moved),), (0,)

    primitive: Primitive = replace(made, lower=None, batch=batch)
    return primitive


# activations -------------------------------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))`` without overflow: the exponential of ``-|x|`` is at most 1."""
    e = ew.exp(-_size(x))
    return ew.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _size(x: Any) -> Any:
    return ew.where(x >= 0, x, -x)


def _plain_sigmoid(x: Any) -> Any:
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    with np.errstate(under="ignore"):
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1, e) / (1 + e)


def _plain_log_sigmoid(x: Any) -> Any:
    with np.errstate(under="ignore"):
        return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _plain_softplus(x: Any) -> Any:
    with np.errstate(under="ignore"):
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


sigmoid_p = _one("sigmoid", _plain_sigmoid, lambda t, x, y: t * (y * (1 - y)), "y", _sigmoid)
relu_p = _one(
    "relu",
    lambda x: np.maximum(x, 0),
    lambda t, x, y: ew.where(y > 0, t, 0),
    "y",
    lambda x: ew.where((x > 0) | (x != x), x, 0 * x),
)
log_sigmoid_p = _one(
    "log_sigmoid",
    _plain_log_sigmoid,
    lambda t, x, y: t * sigmoid(-x),
    "x",
    lambda x: ew.where(x < 0, x, 0 * x) - ew.log1p(ew.exp(-_size(x))),
)
softplus_p = _one(
    "softplus",
    _plain_softplus,
    lambda t, x, y: t * sigmoid(x),
    "x",
    lambda x: ew.where(x > 0, x, 0 * x) + ew.log1p(ew.exp(-_size(x))),
)
rsqrt_p = _one(
    "rsqrt",
    lambda x: 1 / np.sqrt(x),
    lambda t, x, y: t * (-0.5 * (y * y * y)),
    "y",
    lambda x: 1 / ew.sqrt(x),
)
reciprocal_p = _one(
    "reciprocal", lambda x: 1 / x, lambda t, x, y: -t * (y * y), "y", lambda x: 1 / x
)

sigmoid: ArrayFunction = user_function(sigmoid_p, "``1 / (1 + exp(-x))``.")
relu: ArrayFunction = user_function(relu_p, "``max(x, 0)``, with derivative 0 at 0.")
log_sigmoid: ArrayFunction = user_function(log_sigmoid_p, "``log(sigmoid(x))`` without underflow.")
softplus: ArrayFunction = user_function(softplus_p, "``log(1 + exp(x))`` without overflow.")
rsqrt: ArrayFunction = user_function(rsqrt_p, "``1 / sqrt(x)``.")
reciprocal: ArrayFunction = user_function(reciprocal_p, "``1 / x``.")

# the error function ------------------------------------------------------------------------------

erf_p = _one("erf", _scipy("erf"), lambda t, x, y: t * (ew.exp(-(x * x)) * (2 / _ROOT_PI)), "x")
erfc_p = _one("erfc", _scipy("erfc"), lambda t, x, y: t * (ew.exp(-(x * x)) * (-2 / _ROOT_PI)), "x")
erfcx_p = _one("erfcx", _scipy("erfcx"), lambda t, x, y: t * (2 * x * y - 2 / _ROOT_PI), "xy")
erfinv_p = _one(
    "erfinv", _scipy("erfinv"), lambda t, x, y: t * (ew.exp(y * y) * (_ROOT_PI / 2)), "y"
)
ndtr_p = _one("ndtr", _scipy("ndtr"), lambda t, x, y: t * (ew.exp(x * x * -0.5) / _ROOT_2_PI), "x")
ndtri_p = _one(
    "ndtri", _scipy("ndtri"), lambda t, x, y: t * (ew.exp(y * y * 0.5) * _ROOT_2_PI), "y"
)
log_ndtr_p = _one(
    "log_ndtr",
    _scipy("log_ndtr"),
    lambda t, x, y: t * (ew.exp(x * x * -0.5 - y) / _ROOT_2_PI),
    "xy",
)
erf: ArrayFunction = user_function(erf_p, "The error function.")
erfc: ArrayFunction = user_function(erfc_p, "``1 - erf(x)``.")
erfcx: ArrayFunction = user_function(erfcx_p, "``exp(x ** 2) * erfc(x)``.")
erfinv: ArrayFunction = user_function(erfinv_p, "The inverse of ``erf``.")
ndtr: ArrayFunction = user_function(ndtr_p, "The normal distribution function.")
ndtri: ArrayFunction = user_function(ndtri_p, "The inverse of ``ndtr``.")
log_ndtr: ArrayFunction = user_function(log_ndtr_p, "``log(ndtr(x))`` without underflow.")

# gamma functions ---------------------------------------------------------------------------------

lgamma_p = _one("lgamma", _scipy("gammaln"), lambda t, x, y: t * digamma(x), "x")
digamma_p = _one("digamma", _scipy("digamma"), lambda t, x, y: t * zeta(2.0, x), "x")
zeta_p = _two(
    "zeta",
    lambda s, q: _scipy("zeta")(s, q),
    (None, lambda t, s, q, y: t * (-s * zeta(s + 1, q))),
    ("", "ab"),
)


def _density(a: Any, x: Any) -> Any:
    """The derivative of the lower incomplete gamma ratio in ``x``."""
    return ew.exp((a - 1) * ew.log(x) - x - lgamma(a))


gammainc_p = _two(
    "gammainc", _scipy("gammainc"), (None, lambda t, a, x, y: t * _density(a, x)), ("", "ab")
)
gammaincc_p = _two(
    "gammaincc", _scipy("gammaincc"), (None, lambda t, a, x, y: -t * _density(a, x)), ("", "ab")
)
lgamma: ArrayFunction = user_function(
    lgamma_p, "The logarithm of the absolute value of the gamma function."
)
digamma: ArrayFunction = user_function(digamma_p, "The derivative of ``lgamma``.")
zeta: ArrayFunction = user_function(
    zeta_p, "Hurwitz's zeta function; no derivative in the first operand."
)
gammainc: ArrayFunction = user_function(
    gammainc_p, "The lower incomplete gamma function, divided by the gamma."
)
gammaincc: ArrayFunction = user_function(
    gammaincc_p, "The upper incomplete gamma function, divided by the gamma."
)

# Bessel functions --------------------------------------------------------------------------------


def _i1_over_x(x: Any, y: Any) -> Any:
    """``i1(x) / x``, 1/2 at 0."""
    is_zero = x == 0
    return ew.where(is_zero, 0.5, y / ew.where(is_zero, 1, x))


i0_p = _one("i0", _scipy("i0"), lambda t, x, y: t * i1(x), "x")
i1_p = _one("i1", _scipy("i1"), lambda t, x, y: t * (i0(x) - _i1_over_x(x, y)), "xy")
i0e_p = _one("i0e", _scipy("i0e"), lambda t, x, y: t * (i1e(x) - ew.sign(x) * y), "xy")
i1e_p = _one(
    "i1e",
    _scipy("i1e"),
    lambda t, x, y: t * (i0e(x) - _i1_over_x(x, y) - ew.sign(x) * y),
    "xy",
)
i0: ArrayFunction = user_function(i0_p, "The modified Bessel function of the first kind, order 0.")
i1: ArrayFunction = user_function(i1_p, "The modified Bessel function of the first kind, order 1.")
i0e: ArrayFunction = user_function(i0e_p, "``i0(x) * exp(-|x|)``.")
i1e: ArrayFunction = user_function(i1e_p, "``i1(x) * exp(-|x|)``.")


def without_derivative(name: str, routine: str) -> Callable[..., Any]:
    """A function of SciPy for which torch has no derivative either."""
    return user_function(_one(name, _scipy(routine), nondifferentiable))
