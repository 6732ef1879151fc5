"""Derivatives of cylinder functions of any order, each one operation.

Here: ``jv_derivative`` and its like, ``(k, v, x)`` to the derivative of order ``k`` in ``x``. Not
here: the functions themselves (``functions``, ``bessel``), whose rules begin with ``k = 1``.

The neighbouring orders give it without a division, so that nothing cancels near 0 (DLMF 10.6.7,
10.29.5): ``2**k C_v^(k) = sum_j s**j binom(k, j) C_{v-k+2j}``, with ``s = -1`` for ``J, Y, H`` and
1 for ``I, K``, and times ``(-1)**k`` for ``K``. The derivative of one is the next one: a derivative
of order ``k`` costs ``k + 1`` values, where a rule of two neighbours would ask for ``2**k``.

Layer: ``primitives.special``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.family import user_function
from functrans.primitives.special.family import (
    is_half,
    refused_derivative,
    routine,
    special_primitive,
)

if TYPE_CHECKING:
    from functrans.emitter.routine import Array as Memory
    from functrans.emitter.routine import Routines

ArrayFunction = Callable[..., Any]

# SciPy's functions of real numbers of orders 0 and 1, which are much quicker.
_LOW_ORDERS = {
    "jv": ("j0", "j1"),
    "yv": ("y0", "y1"),
    "iv": ("i0", "i1"),
    "kv": ("k0", "k1"),
    "ive": ("i0e", "i1e"),
    "kve": ("k0e", "k1e"),
}
_SCALED = ("ive", "kve")
_LIMIT = 1e9
"""Where SciPy's scaled functions of order 2 and more are still exact; NaN from 1.07e9 on."""
_TINY = 1e-300
_FINITE_AT_ZERO = ("jv", "iv", "ive")
_LIMITS = {"jv": 0.0, "yv": 0.0, "iv": math.inf}
"""The values at infinity."""


def with_limits(name: str, order: Any, x: Array, y: Array) -> Array:
    """Values of a cylinder function, at infinity their limits: SciPy's are NaN there.

    Args:
      name: SciPy's name of the function of order and argument.
      order: its order.
      x: real arguments.
      y: SciPy's values.
    """
    if name not in _LIMITS:
        return y
    is_end = np.isinf(x)
    if name == "iv":  # SciPy's is NaN already before
        is_end = np.abs(x) > np.finfo(x.dtype).max * x.dtype.type(1e-8)
    if not is_end.any():
        return y
    limit = np.where(x > 0, _LIMITS[name], np.nan)
    if name in _FINITE_AT_ZERO:
        is_whole, is_odd = order == np.floor(order), order % 2 == 1
        left = np.where(is_whole, np.where(is_odd, -1.0, 1.0), np.nan) * _LIMITS[name]
        limit = np.where(x > 0, limit, left)
    return np.where(is_end, limit.astype(y.dtype), y)[()]


def write_limits(e: Routines, name: str, order: int, x: Memory, out: Memory) -> None:
    """``with_limits`` of a whole order in a program, where SciPy's values are in ``out``."""
    if name not in _LIMITS:
        return
    right = _LIMITS[name]
    left = (-right if order % 2 else right) if name in _FINITE_AT_ZERO else math.nan
    inner = np.dtype(np.float32) if is_half(out.dtype) else out.dtype
    largest = np.finfo(inner).max
    end = float(largest * inner.type(1e-8)) if name == "iv" else float(largest)
    with e.count(out.size) as i:
        at = e.cast(e.read(x, i), inner)
        is_right = e.greater(at, e.constant(inner, end))
        is_left = e.less(at, e.constant(inner, -end))
        y = e.select(is_right, e.constant(out.dtype, right), e.read(out, i))
        e.write(out, i, e.select(is_left, e.constant(out.dtype, left), y))


def _value(name: str, order: float, x: np.ndarray) -> Any:
    """A cylinder function of a single order."""
    y = _value_of_scipy(name, order, x)
    return with_limits(name, order, x, y) if x.dtype.kind == "f" else y


def _value_of_scipy(name: str, order: float, x: np.ndarray) -> Array:
    if name in ("iv", "ive") and order < 0 and order != math.floor(order) and np.any(x == 0):
        pole = routine("jv")(order, np.zeros_like(x))  # NaN from SciPy
        return np.where(x == 0, pole, routine(name)(order, x))
    if order in (0, 1) and name in _LOW_ORDERS and x.dtype.kind == "f":
        return routine(_LOW_ORDERS[name][int(order)])(x)
    if name in _SCALED and x.dtype.kind == "f" and np.any(np.abs(x) > _LIMIT):
        return _scaled_far_out(name, order, x)
    if name == "iv" and np.any(is_tiny := np.abs(x) < _TINY):  # NaN from SciPy; the scale is 1
        plain = routine("iv")(order, np.where(is_tiny, x.dtype.type(1), x))
        return np.where(is_tiny, routine("ive")(order, x), plain)
    return routine(name)(order, x)


def _scaled_far_out(name: str, order: float, x: np.ndarray) -> Array:
    """A scaled function where SciPy's gives up: ``1 + O(1 / x)`` times its limit (DLMF 10.40)."""
    is_far = np.abs(x) > _LIMIT
    size = np.abs(np.where(is_far, x, 1))
    slope = (4 * order**2 - 1) / (8 * size)
    far = np.sqrt(np.pi / (2 * size)) * (1 + slope)
    if name == "ive":
        far = (1 - slope) / np.sqrt(2 * np.pi * size)
    is_integer = order == math.floor(order)
    sign = (-1.0 if order % 2 else 1.0) if is_integer and name == "ive" else np.nan
    far = np.where(x < 0, sign * far, far).astype(x.dtype)
    return np.where(is_far, far, routine(name)(order, np.where(is_far, x.dtype.type(1), x)))


_FAR = 25.0
_TERMS = 26


def scaled_slope(name: str, v: Array | complex, x: Array) -> tuple[Any, Any]:
    """Where the asymptotic series of the derivative of a scaled function holds, and the derivative.

    The function is ``c x**(-1/2) sum(a_k / x**k)`` with ``a_k / a_(k-1)`` equal to ``(2k-1)**2 - 4
    v**2`` over ``8 k``, and the negative of that for ``kve`` (DLMF 10.40.1, 10.40.2); so far out
    its derivative is a small difference of the function and its neighbour, and so on at each order.
    """
    is_far = x > _FAR + v * v
    inverse = 1 / ew.where(is_far, x, math.inf)
    total: Any = _TERMS + 0.5
    for k in range(_TERMS, 0, -1):
        factor = ((2 * k - 1) ** 2 - 4 * v * v) * (1 if name == "ive" else -1) / (8 * k)
        total = total * (inverse * factor) + (k - 0.5)
    scale = -math.sqrt(math.pi / 2) if name == "kve" else -1 / math.sqrt(2 * math.pi)
    return is_far, total * ew.power(inverse, 1.5) * scale


def _first_of_order_one(name: str, x: np.ndarray) -> Array:
    """``C_1' = C_0 - C_1 / x``, which is quicker and as exact: it is 1/2 at 0."""
    below, own = _value(name, 0, x), _value(name, 1, x)
    is_regular = (x != 0) & np.isfinite(own)
    ratio = np.divide(own, x, out=np.zeros_like(own), where=is_regular)
    return below - np.where(x == 0, own.dtype.type(0.5), ratio)


def _of_one_order(name: str, sign: int, k: int, v: float, x: np.ndarray) -> Array:
    """The sum for one order; of integers, those of ``n`` and ``-n`` are taken together."""
    if k == 1 and v == 1 and name in _FINITE_AT_ZERO and x.dtype.kind == "f":
        return _first_of_order_one(name, x)
    weights: dict[float, int] = {}
    for j in range(k + 1):
        order = v - k + 2 * j
        weight = sign**j * math.comb(k, j)
        if order < 0 and order == math.floor(order):
            order, weight = -order, weight * sign ** int(-order)
        weights[order] = weights.get(order, 0) + weight
    total: Any = 0.0
    for order, weight in weights.items():
        total = total + _value(name, order, x) * (weight * 0.5**k)
    return total


def _of_orders(name: str, sign: int, k: np.ndarray, v: np.ndarray, x: np.ndarray) -> Array:
    """The sum for arrays of orders, of which some may have less terms than others."""
    total: Any = 0.0
    for j in range(int(np.max(k, initial=0)) + 1):
        weight = routine("binom")(k, j) * 0.5**k * sign**j
        is_term = j <= k
        order = np.where(is_term, v - k + 2 * j, v)
        value = routine(name)(order, x)
        if x.dtype.kind == "f":
            value = with_limits(name, order, x, value)
        total = total + np.where(is_term, value * weight, 0)
    return total


def _at_pole(k: object, v: Array) -> Array:
    """The derivative of order ``k`` of ``yv`` at 0, where the sum has infinities of both signs."""
    is_mirrored = (v < 0) & (v == np.floor(v))  # (-1)**v times that of -v
    sign = np.where((k + np.where(is_mirrored, v, 0)) % 2 == 0, -1.0, 1.0)
    return np.where((v >= 0) | is_mirrored, sign * math.inf, np.nan)


def _summed(name: str, sign: int, phase: int) -> ArrayFunction:
    def function(k: np.ndarray, v: np.ndarray, x: np.ndarray) -> Any:
        if k.ndim == 0 and v.ndim == 0:
            total = _of_one_order(name, sign, int(k), v.item(), x) * phase ** int(k)
        else:
            total = _of_orders(name, sign, k, v, x) * np.where(k % 2, phase, 1)
        if name == "yv" and x.dtype.kind == "f" and (is_pole := x == 0).any():
            return np.where(is_pole, _at_pole(k, v), total).astype(x.dtype)
        return total

    return function


def _derivative(
    name: str,
    sign: int,
    get: Callable[[], ArrayFunction],
    *,
    phase: int = 1,
    rate: Callable[[Any, Any], Any] | None = None,
    has_complex: bool = True,
) -> Primitive:
    """The derivative of any order of a cylinder function.

    Args:
      name: SciPy's name of the function.
      sign: between neighbouring orders.
      get: gives the function that applies the record.
      phase: factor per derivative.
      rate: of scaled functions, ``(x, y)`` to what the factor adds to the derivative: it is the
        derivative of the function itself that is scaled.
      has_complex: whether it takes complex arguments.
    """
    own = f"{name}_derivative"

    def partial(t: Array, k: int, v: Array | complex, x: Array, y: Array | None) -> Any:
        slope = get()(k + 1, v, x)
        return t * (slope if rate is None else slope + rate(x, y))

    return special_primitive(
        own,
        (refused_derivative(own, 0), refused_derivative(own, 1, "the order"), partial),
        ("", "", "abc" if rate is None else "abcy"),
        _summed(name, sign, phase),
        names="abc",
        parameters="b",
        integers="a",
        has_complex=has_complex,
    )


jv_derivative_p: Primitive = _derivative("jv", -1, lambda: jv_derivative)
yv_derivative_p: Primitive = _derivative("yv", -1, lambda: yv_derivative)
iv_derivative_p: Primitive = _derivative("iv", 1, lambda: iv_derivative)
kv_derivative_p: Primitive = _derivative("kv", 1, lambda: kv_derivative, phase=-1)
hankel1_derivative_p: Primitive = _derivative("hankel1", -1, lambda: hankel1_derivative)
hankel2_derivative_p: Primitive = _derivative("hankel2", -1, lambda: hankel2_derivative)
ive_derivative_p: Primitive = _derivative(
    "ive",
    1,
    lambda: ive_derivative,
    rate=lambda x, y: -ew.sign(x) * ew.where(x == 0, 0, y),
    has_complex=False,
)
kve_derivative_p: Primitive = _derivative(
    "kve", 1, lambda: kve_derivative, phase=-1, rate=lambda x, y: ew.where(x == 0, 0, y)
)
hankel1e_derivative_p: Primitive = _derivative(
    "hankel1e", -1, lambda: hankel1e_derivative, rate=lambda x, y: -1j * y
)
hankel2e_derivative_p: Primitive = _derivative(
    "hankel2e", -1, lambda: hankel2e_derivative, rate=lambda x, y: 1j * y
)

_DOC = "The derivative of order ``k`` in the argument of"
jv_derivative: ArrayFunction = user_function(jv_derivative_p, f"{_DOC} ``jv``.")
yv_derivative: ArrayFunction = user_function(yv_derivative_p, f"{_DOC} ``yv``.")
iv_derivative: ArrayFunction = user_function(iv_derivative_p, f"{_DOC} ``iv``.")
kv_derivative: ArrayFunction = user_function(kv_derivative_p, f"{_DOC} ``kv``.")
hankel1_derivative: ArrayFunction = user_function(hankel1_derivative_p, f"{_DOC} ``hankel1``.")
hankel2_derivative: ArrayFunction = user_function(hankel2_derivative_p, f"{_DOC} ``hankel2``.")
ive_derivative: ArrayFunction = user_function(ive_derivative_p, f"{_DOC} ``iv``, scaled.")
kve_derivative: ArrayFunction = user_function(kve_derivative_p, f"{_DOC} ``kv``, scaled.")
hankel1e_derivative: ArrayFunction = user_function(
    hankel1e_derivative_p, f"{_DOC} ``hankel1``, scaled."
)
hankel2e_derivative: ArrayFunction = user_function(
    hankel2e_derivative_p, f"{_DOC} ``hankel2``, scaled."
)

PRIMITIVES: tuple[Primitive, ...] = (
    jv_derivative_p, yv_derivative_p, iv_derivative_p, kv_derivative_p, hankel1_derivative_p,
    hankel2_derivative_p, ive_derivative_p, kve_derivative_p, hankel1e_derivative_p,
    hankel2e_derivative_p,
)  # fmt: skip
