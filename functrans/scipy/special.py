"""``scipy.special``-shaped functions: sums of exponentials, and functions of one element.

Here: ``logsumexp``, ``softmax``, ``log_softmax``, ``erf`` and its relatives, gamma and Bessel
functions, with SciPy's names, for plain and traced arrays. Not here: the primitives behind them
(``primitives.reduction``, ``primitives.special``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.ir.avals import is_differentiable_dtype
from functrans.numpy.common import as_operand
from functrans.primitives import elementwise as ew
from functrans.primitives import reduction
from functrans.primitives import special as sf
from functrans.primitives.complex_parts import absolute, sign
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    expand_reduced,
    normalize_axis,
    reshape,
)
from functrans.trace import Tracer, dtype_of, shape_of


def _floating(a: Any) -> Any:
    """The operand with a floating dtype."""
    a = a if isinstance(a, Tracer) else np.asarray(a)
    return a if is_differentiable_dtype(dtype_of(a)) else cast(a, np.float64)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Non-negative axes in order; all of them for ``None``."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(normalize_axis(i, ndim, "axis") for i in given))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
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
        kept_shape = tuple(1 if i in axes else n for i, n in enumerate(shape))
        value, signs = (
            reshape(value, kept_shape),
            reshape(broadcast_to(signs, value.shape), kept_shape),
        )
    return (value, signs) if return_sign else value


def _weighted(a: Any, b: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Any, Any]:
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
    return ew.where(low == -np.inf, top, top + ew.log1p(-ew.exp(gap))), signs


def _normalizer(x: Any, axis: Any) -> tuple[Any, Any]:
    x = _floating(x)
    shape = shape_of(x)
    axes = _axes(axis, len(shape))
    return x, expand_reduced(reduction.logsumexp(x, axes), shape, axes)


def softmax(x: Any, axis: Any = None) -> Any:
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
    x, total = _normalizer(x, axis)
    return ew.exp(x - total)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of :func:`softmax`, without underflow.

    Example:
      >>> log_softmax(np.array([0.0, -1000.0]))
      array([    0., -1000.])
    """
    x, total = _normalizer(x, axis)
    return x - total


def _unary(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of each element, with SciPy's name."""

    def applied(x: Any, /) -> Any:
        return function(as_operand(x))

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"{function.__doc__} As ``scipy.special.{name}``, for real operands."
    return applied


expit = _unary("expit", sf.sigmoid)
log_expit = _unary("log_expit", sf.log_sigmoid)
erf = _unary("erf", sf.erf)
erfc = _unary("erfc", sf.erfc)
erfcx = _unary("erfcx", sf.erfcx)
erfinv = _unary("erfinv", sf.erfinv)
ndtr = _unary("ndtr", sf.ndtr)
ndtri = _unary("ndtri", sf.ndtri)
log_ndtr = _unary("log_ndtr", sf.log_ndtr)
gammaln = _unary("gammaln", sf.lgamma)
digamma = psi = _unary("digamma", sf.digamma)
i0 = _unary("i0", sf.i0)
i1 = _unary("i1", sf.i1)
i0e = _unary("i0e", sf.i0e)
i1e = _unary("i1e", sf.i1e)
j0 = _unary("j0", sf.j0)
j1 = _unary("j1", sf.j1)
y0 = _unary("y0", sf.y0)
y1 = _unary("y1", sf.y1)
k0 = _unary("k0", sf.k0)
k1 = _unary("k1", sf.k1)
k0e = _unary("k0e", sf.k0e)
k1e = _unary("k1e", sf.k1e)


def zeta(x: Any, q: Any = 1.0) -> Any:
    """Hurwitz's zeta function; of ``q`` = 1 Riemann's.

    Args:
      x: exponent; there is no derivative in it.
      q: shift.

    Raises:
      NonDifferentiableError: a derivative in ``x`` was asked.
    """
    return sf.zeta(as_operand(x), as_operand(q))


def gammainc(a: Any, x: Any) -> Any:
    """The lower incomplete gamma function, over the gamma function.

    Args:
      a: parameter; there is no derivative in it.
      x: upper limit of the integral.

    Raises:
      NonDifferentiableError: a derivative in ``a`` was asked.
    """
    return sf.gammainc(as_operand(a), as_operand(x))


def gammaincc(a: Any, x: Any) -> Any:
    """The upper incomplete gamma function, over the gamma function.

    Args:
      a: parameter; there is no derivative in it.
      x: lower limit of the integral.

    Raises:
      NonDifferentiableError: a derivative in ``a`` was asked.
    """
    return sf.gammaincc(as_operand(a), as_operand(x))
