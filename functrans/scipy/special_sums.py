"""``scipy.special``-shaped functions that sum over axes: sums of exponentials.

Here: ``logsumexp``, ``softmax``, ``log_softmax``. Not here: the primitives behind them
(``primitives.reduction``), functions of one element (``special_gamma``, ``special_bessel``,
``special_statistics``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import as_array, axes_of
from functrans.primitives import activations, reduction
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, sign
from functrans.primitives.structural import broadcast_to, cast, kept_shape, reshape


def _floating(a: ArrayLike) -> Any:
    """The operand with a floating dtype."""
    a = as_array(a)
    return a if is_differentiable_dtype(dtype_of(a)) else cast(a, np.float64)


def _axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Non-negative axes in order; all of them for ``None``. A scalar has axes 0 and -1 (NumPy)."""
    return tuple(sorted(axes_of(axis, ndim)))


def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """Logarithm of the sum of exponentials, without overflow.

    Args:
      a: array; integers are converted to ``f64``.
      axis: axis or tuple of axes, by default all.
      b: factors of the exponentials, broadcast against ``a``; may be negative or zero.
      keepdims: whether the axes stay, with extent 1.
      return_sign: whether to return ``(value, sign)``; without it a negative sum gives NaN.

    Returns:
      ``log(sum(b * exp(a)))``. ``-inf`` for an empty sum. Where the result is infinite, its
      derivative is split evenly between the elements that equal it.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> float(logsumexp(np.array([1000.0, 1000.0])))
      1000.6931471805599
    """
    a = _floating(a)
    if b is None:
        shape = shape_of(a)
        axes = _axes(axis, len(shape))
        value = reduction.logsumexp(a, axes)
        signs: Any = ew.where(value == -np.inf, 0.0, 1.0)
    else:
        b = _floating(b)
        shape = np.broadcast_shapes(shape_of(a), shape_of(b))
        axes = _axes(axis, len(shape))
        value, signs = _weighted(a, b, shape, axes)
        if not return_sign:
            value = ew.where(signs < 0, np.nan, value)
    if keepdims:
        kept = kept_shape(shape, axes)
        value, signs = reshape(value, kept), reshape(broadcast_to(signs, value.shape), kept)
    return (value, signs) if return_sign else value


def _weighted(
    a: ArrayLike, b: Any, shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[Any, Any]:
    """Logarithm of the absolute sum of ``b exp(a)``, and the sign of the sum.

    The terms of either sign are summed apart, as ``exp(p)`` and ``exp(n)``; the difference is
    ``exp(p) - exp(n) = sign * exp(top) * (1 - exp(low - top))``.
    """
    size = broadcast_to(
        ew.where(b == 0, -np.inf, a + ew.log(absolute(ew.where(b == 0, 1, b)))), shape
    )
    is_negative = broadcast_to(b < 0, shape)
    plus = reduction.logsumexp(ew.where(is_negative, -np.inf, size), axes)
    minus = reduction.logsumexp(ew.where(is_negative, size, -np.inf), axes)
    signs = sign(ew.where(plus == minus, 0.0, ew.where(plus > minus, 1.0, -1.0)))
    top, low = ew.maximum(plus, minus), ew.minimum(plus, minus)
    gap = ew.where(low == -np.inf, -np.inf, low - ew.where(low == -np.inf, 0, top))
    return ew.where(low == -np.inf, top, top + activations.log1mexp(-gap)), signs


def softmax(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """Exponentials divided by their sum over axes.

    Args:
      x: array.
      axis: axis or tuple of axes, by default all.

    Returns:
      Array of the shape of ``x`` that sums to 1 over the axes.

    Example:
      >>> softmax(np.array([0.0, 0.0]))
      array([0.5, 0.5])
    """
    x = _floating(x)
    return activations.softmax(x, _axes(axis, len(shape_of(x))))


def log_softmax(x: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Logarithm of :func:`softmax`, without underflow.

    Example:
      >>> log_softmax(np.array([0.0, -1000.0]))
      array([    0., -1000.])
    """
    x = _floating(x)
    return activations.log_softmax(x, _axes(axis, len(shape_of(x))))
