"""Activation functions that are compositions of primitives, on arrays.

Here: the formulas that ``functrans.nn``, torch's namespace and ``scipy.special`` share. Not here:
those that are primitives (``special``: ``sigmoid``, ``softplus``, ``log_sigmoid``, ``relu``), nor
conversion and checks of operands, which each namespace does in its own way.

Layer: ``primitives``.
"""

from __future__ import annotations

from typing import Any

from functrans.core.dispatch import bind, shape_of
from functrans.core.values import Array, Operand
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import real
from functrans.primitives.reduction import reduce_max
from functrans.primitives.structural import kept_shape, reduce_sum, reshape, stop_gradient_p
from functrans.primitives.torch_elementwise import expm1_below


def leaky_relu(x: Any, slope: object) -> Array:
    """``x`` above 0, ``slope * x`` elsewhere; the derivative at 0 is ``slope``."""
    return ew.where(x > 0, x, x * slope)


def elu(x: Any, alpha: Any, scale: object, rate: object) -> Array:
    """``scale * x`` above 0, ``alpha * scale * expm1(rate * x)`` elsewhere."""
    return ew.where(x > 0, x * scale, expm1_below(x, rate) * (alpha * scale))


def log1mexp(x: Any) -> Array:
    """``log(1 - exp(-x))`` for positive ``x``: each form where it does not cancel.

    Source: Mächler, Accurately Computing log(1 - exp(-|a|)), R package Rmpfr (2012).
    """
    is_near = x < ew.LN2
    near = ew.log(-ew.expm1(-ew.where(is_near, x, ew.LN2)))
    return ew.where(is_near, near, ew.log1p(-ew.exp(-ew.where(is_near, ew.LN2, x))))


def top(x: Operand, axes: tuple[int, ...]) -> Array:
    """The largest (real part) over axes, which is taken off before exponentials.

    It cancels, and counts as a constant.
    """
    return reduce_max(bind(stop_gradient_p, real(x))[0], axes)


def _beside(reduced: Array, x: Array | complex, axes: tuple[int, ...]) -> Array:
    """A result of a reduction that broadcasts with the operand."""
    return reshape(reduced, kept_shape(shape_of(x), axes))


def softmax(x: Array | complex, axes: tuple[int, ...]) -> Any:
    """Exponentials divided by their sum over axes."""
    if not all(shape_of(x)):  # no maximum
        return x
    weights = ew.exp(x - _beside(top(x, axes), x, axes))
    return weights / _beside(reduce_sum(weights, axes), x, axes)


def log_softmax(x: Array | complex, axes: tuple[int, ...]) -> Any:
    """Logarithm of the softmax over axes."""
    if not all(shape_of(x)):
        return x
    below = x - _beside(top(x, axes), x, axes)
    return below - _beside(ew.log(reduce_sum(ew.exp(below), axes)), x, axes)
