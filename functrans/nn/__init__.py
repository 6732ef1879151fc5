"""``ft.nn``: functions of arrays that neither NumPy nor SciPy has, under JAX's names.

Here: activation functions, ``softmax`` and ``log_softmax``, ``standardize``, ``one_hot``. They take
what the functions of ``functrans.numpy`` take: traced and plain arrays, lists, numbers. Not here:
formulas that other namespaces share (``primitives.activations``, ``primitives.special.functions``),
layers with weights (``functrans.compat.torch.nn``), random weights (``nn.initializers``).

Integers become float64, except where NumPy keeps them (``relu``, ``relu6``, ``hard_tanh``: they
select and limit). Values and derivatives are accurate far out, where the textbook's formulas cancel
or overflow. Derivatives at kinks are rows of ``functrans.conventions``.

Layer: ``numpy``, ``scipy`` (above them).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.namespaces import listing as _listing
from functrans.nn import initializers as initializers
from functrans.numpy import means
from functrans.numpy.common import as_array, as_operand, axes_of, axis_of, inexact
from functrans.primitives import activations, complex_parts, movement
from functrans.primitives import elementwise as ew
from functrans.primitives.special import functions as sf
from functrans.primitives.structural import cast, moveaxis
from functrans.primitives.torch_elementwise import expm1_below
from functrans.scipy.special import logsumexp as functrans_logsumexp
from functrans.scipy.special_common import as_floating

_SELU_ALPHA = 1.6732632423543772848
_SELU_SCALE = 1.0507009873554804934
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)


def _real(name: str, x: ArrayLike) -> Any:
    """An operand that is real; booleans are the integers 0 and 1."""
    x = as_operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError(f"nn.{name}: expected real numbers, got {dtype_of(x)}")
    if dtype_of(x).kind == "b":
        return int(x) if type(x) is bool else cast(x, np.int64)
    return x


def _floating(name: str, x: Any) -> Any:
    """An operand that is real, in floating point; Python's numbers stay weak."""
    x = _real(name, x)
    return float(x) if type(x) is int else inexact(x)


def _number(x: Any) -> Any:
    """A result of ``where``, which makes arrays without axes, as NumPy's functions give it."""
    return x[()] if type(x) is np.ndarray and not x.ndim else x


# rectifiers --------------------------------------------------------------------------------------


def identity(x: ArrayLike) -> Any:
    """``x`` itself, as an array.

    Example:
      >>> identity([1.0, 2.0])
      array([1., 2.])
    """
    return as_array(x)


def relu(x: ArrayLike) -> Array:
    """``max(x, 0)``; the derivative at 0 is 0.

    Args:
      x: real array; integers stay integers.

    Raises:
      TypeError: it is complex.

    Example:
      >>> relu(np.array([-1.0, 2.0]))
      array([0., 2.])
    """
    return sf.relu(_real("relu", x))


def relu6(x: ArrayLike) -> Array:
    """``min(max(x, 0), 6)``; the derivative is 0 at 0, as that of ``relu``, and 1 at 6.

    Args:
      x: real array; integers stay integers.

    Example:
      >>> relu6(np.array([-1.0, 2.0, 7.0]))
      array([0., 2., 6.])
    """
    return ew.clip(sf.relu(_real("relu6", x)), 0, 6)


def leaky_relu(x: ArrayLike, negative_slope: object = 1e-2) -> Array:
    """``x`` above 0, ``negative_slope * x`` elsewhere.

    Args:
      x: real array.
      negative_slope: number or array, differentiable; it is the derivative at 0.

    Example:
      >>> leaky_relu(np.array([-1.0, 2.0]))
      array([-0.01,  2.  ])
    """
    x, slope = _floating("leaky_relu", x), _floating("leaky_relu", negative_slope)
    return _number(activations.leaky_relu(x, slope))


def elu(x: ArrayLike, alpha: object = 1.0) -> Array:
    """``x`` above 0, ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
      x: real array.
      alpha: number or array, differentiable; it is the derivative at 0.

    Example:
      >>> elu(np.array([-np.inf, 2.0]))
      array([-1.,  2.])

    Reference: Clevert, Unterthiner & Hochreiter, ICLR 2016.
    """
    x, alpha = _floating("elu", x), _floating("elu", alpha)
    return _number(activations.elu(x, alpha, 1.0, 1.0))


def celu(x: Any, alpha: object = 1.0) -> Array:
    """``x`` above 0, ``alpha * (exp(x / alpha) - 1)`` elsewhere; the slope is continuous.

    Args:
      x: real array.
      alpha: positive number or array, differentiable.

    Example:
      >>> celu(np.array([-np.inf, 2.0]), 0.5)
      array([-0.5,  2. ])

    Reference: Barron, Continuously Differentiable Exponential Linear Units (2017).
    """
    x, alpha = _floating("celu", x), _floating("celu", alpha)
    return _number(ew.where(x > 0, x, expm1_below(x / alpha, 1.0) * alpha))


def selu(x: ArrayLike) -> Array:
    """``elu`` with the two constants that keep mean 0 and variance 1 through layers.

    Example:
      >>> selu(np.array([0.0, 1.0])).round(4)
      array([0.    , 1.0507])

    Reference: Klambauer et al., Self-Normalizing Neural Networks, NeurIPS 2017.
    """
    return _number(activations.elu(_floating("selu", x), _SELU_ALPHA, _SELU_SCALE, 1.0))


# limits ------------------------------------------------------------------------------------------


def hard_tanh(x: ArrayLike) -> Array:
    """``x`` limited to ``[-1, 1]``; the derivative is 1 on the closed interval.

    Args:
      x: real array; integers stay integers.

    Example:
      >>> hard_tanh([-2.0, 0.5, 2.0])
      array([-1. ,  0.5,  1. ])
    """
    return ew.clip(_real("hard_tanh", x), -1, 1)


def hard_sigmoid(x: ArrayLike) -> Array:
    """``x / 6 + 1 / 2`` limited to ``[0, 1]``; the slope is 1 / 6 on the closed interval [-3, 3].

    Example:
      >>> hard_sigmoid([-4.0, 0.0, 4.0])
      array([0. , 0.5, 1. ])
    """
    return ew.clip(_floating("hard_sigmoid", x) + 3.0, 0.0, 6.0) / 6.0


def hard_silu(x: ArrayLike) -> Any:
    """``x * hard_sigmoid(x)``.

    Example:
      >>> hard_silu([-4.0, 0.0, 4.0])
      array([-0.,  0.,  4.])

    Reference: Howard et al., Searching for MobileNetV3, ICCV 2019.
    """
    x = _floating("hard_silu", x)
    return x * hard_sigmoid(x)


# smooth ones -------------------------------------------------------------------------------------


def sigmoid(x: ArrayLike) -> Array:
    """``1 / (1 + exp(-x))``.

    Args:
      x: real or complex array.

    Example:
      >>> sigmoid(np.array([-1000.0, 0.0]))
      array([0. , 0.5])
    """
    return sf.sigmoid(as_operand(x))


def log_sigmoid(x: ArrayLike) -> Array:
    """``log(sigmoid(x))``, which is ``-softplus(-x)``.

    Example:
      >>> log_sigmoid(np.array([-1000.0, 1000.0]))
      array([-1000.,     0.])
    """
    return sf.log_sigmoid(_floating("log_sigmoid", x))


def softplus(x: ArrayLike) -> Array:
    """``log(1 + exp(x))``.

    Example:
      >>> softplus(np.array([-1000.0, 1000.0]))
      array([   0., 1000.])
    """
    return sf.softplus(_floating("softplus", x))


def soft_sign(x: ArrayLike) -> Array:
    """``x / (1 + abs(x))``; the second derivative at 0 is 0.

    Example:
      >>> soft_sign(np.array([-1.0, np.inf]))
      array([-0.5,  1. ])
    """
    x = _floating("soft_sign", x)
    size = complex_parts.absolute(x)
    inverse = 1.0 / (1.0 + size)
    # In the first form the slope cancels far out, in the second the value near 0.
    is_near = size < 1
    near = ew.where(is_near, x, 0.0) * inverse
    return _number(ew.where(is_near, near, ew.copysign(1.0 - inverse, x)))


def squareplus(x: Any, b: Any = 4.0) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``, an algebraic relative of ``softplus``.

    Args:
      x: real array.
      b: number or array that is not negative; ``relu`` is the limit for 0.

    Example:
      >>> squareplus(np.array([0.0, 1e200, -1e8]))
      array([1.e+000, 1.e+200, 1.e-008])

    Reference: Barron, Squareplus: A Softplus-Like Algebraic Rectifier (2021).
    """
    x, b = as_floating(_real("squareplus", x), _real("squareplus", b))
    is_right = x > 0
    half = 0.5 * x
    larger = 0.5 * ew.hypot(x, ew.sqrt(b)) + ew.where(is_right, half, -half)
    left = 0.25 * b / ew.where(larger == 0, 1.0, larger)
    return _number(ew.where(is_right, larger, left))


def silu(x: ArrayLike) -> Array:
    """``x * sigmoid(x)``, also called swish.

    Example:
      >>> silu(np.array([-1000.0, 0.0, 1000.0]))
      array([  -0.,    0., 1000.])

    Reference: Elfwing, Uchibe & Doya, Neural Networks 107 (2018).
    """
    x = _floating("silu", x)
    return x * sf.sigmoid(x)


def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    Example:
      >>> mish(np.array([-1000.0, 0.0, 1000.0]))
      array([  -0.,    0., 1000.])

    Reference: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, BMVC 2020.
    """
    x = _floating("mish", x)
    return x * ew.tanh(sf.softplus(x))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """``x`` times the distribution function of the normal distribution.

    Args:
      x: real array.
      approximate: whether by a hyperbolic tangent, ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 *
        x**3))) / 2``, which is off by 5e-4 at most.

    Example:
      >>> gelu(np.array([-1.0, 1.0]), approximate=False).round(4)
      array([-0.1587,  0.8413])

    Reference: Hendrycks & Gimpel, Gaussian Error Linear Units (2016).
    """
    x = _floating("gelu", x)
    if not approximate:
        return x * sf.ndtr(x)
    # (1 + tanh(u)) / 2 = sigmoid(2 u), which is 0 or 1 to every precision beyond 30, where the
    # cube is on the safe side of overflow in half precision.
    held = ew.clip(x, -30.0, 30.0)
    return x * sf.sigmoid(2 * _ROOT_2_OVER_PI * held * (1.0 + 0.044715 * (held * held)))


def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))``, without cancellation near 0 and far out.

    Args:
      x: real array; negative numbers give NaN.

    Example:
      >>> log1mexp(np.array([1e-20, 50.0]))
      array([-4.60517019e+01, -1.92874985e-22])

    Reference: Mächler, Accurately Computing ``log(1 - exp(-|a|))``, R package Rmpfr (2012).
    """
    return _number(activations.log1mexp(_floating("log1mexp", x)))


# along axes --------------------------------------------------------------------------------------


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times ``sigmoid`` of the second.

    Args:
      x: real array.
      axis: axis of even extent.

    Returns:
      Array with half the extent.

    Raises:
      ShapeError: the extent is odd.
      AxisError: there is no such axis.

    Example:
      >>> glu(np.array([3.0, 0.0]))
      array([1.5])

    Reference: Dauphin et al., Language Modeling with Gated Convolutional Networks, ICML 2017.
    """
    x = _floating("glu", as_array(x))
    shape = shape_of(x)
    axis = axis_of(axis, len(shape))
    half, odd = divmod(shape[axis], 2)
    if odd:
        raise ShapeError(
            f"nn.glu: axis {axis} of an array of shape {shape} has the odd extent {shape[axis]}; "
            "its halves are values and gates, of equal number"
        )
    value, gate = movement.split(x, (half, half), axis)
    return value * sf.sigmoid(gate)


def softmax(x: Array, axis: int | Sequence[int] | None = -1, where: Any = None) -> Array:
    """Exponentials divided by their sum over axes.

    Args:
      x: real array.
      axis: axis or tuple of axes, all for ``None``.
      where: mask that broadcasts with ``x``; elements where it is false do not count and give 0.

    Returns:
      Array of the shape of ``x`` that sums to 1 over the axes, and to 0 where nothing counts.

    Raises:
      AxisError: there is no such axis.

    Example:
      >>> softmax([1000.0, 1000.0])
      array([0.5, 0.5])
      >>> softmax([1.0, 5.0, 1.0], where=[True, False, True])
      array([0.5, 0. , 0.5])
    """
    x, mask, axes = _masked("softmax", x, axis, where)
    result = activations.softmax(x, axes)
    return result if mask is None else ew.where(mask, result, 0.0)


def log_softmax(x: Array, axis: int | Sequence[int] | None = -1, where: Any = None) -> Any:
    """Logarithm of :func:`softmax`, without underflow.

    Args:
      x: real array.
      axis: axis or tuple of axes, all for ``None``.
      where: mask that broadcasts with ``x``; elements where it is false do not count and give
        ``-inf``.

    Example:
      >>> log_softmax([0.0, -1000.0])
      array([    0., -1000.])
    """
    x, mask, axes = _masked("log_softmax", x, axis, where)
    result = activations.log_softmax(x, axes)
    return result if mask is None else ew.where(mask, result, -math.inf)


def _masked(
    name: str, x: Array, axis: int | Sequence[int] | None, where: Any
) -> tuple[Any, Any, tuple[int, ...]]:
    """Operand, mask and axes: what does not count is ``-inf``, or 0 where nothing counts."""
    x = _floating(name, as_array(x))
    if where is None:
        return x, None, axes_of(axis, len(shape_of(x)))
    mask = cast(as_array(where), np.bool_)
    x = ew.where(mask, x, -math.inf)
    axes = axes_of(axis, len(shape_of(x)))
    is_any = np.any(mask & (x == x), axis=axes, keepdims=True)
    return ew.where(is_any, x, 0.0), mask, axes


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: object = 1e-5,
    where: Any = None,
) -> Array:
    """Shift and scale to mean 0 and variance 1 over axes.

    Args:
      x: real array.
      axis: axis or tuple of axes, all for ``None``.
      mean: subtracted in place of the mean of ``x``; broadcasts against it.
      variance: divided by in place of the variance of ``x``.
      epsilon: added to the variance.
      where: mask of the elements that mean and variance are taken of.

    Returns:
      ``(x - mean) / sqrt(variance + epsilon)``.

    Raises:
      AxisError: there is no such axis.

    Example:
      >>> standardize([1.0, 2.0, 3.0], epsilon=0.0).round(4)
      array([-1.2247,  0.    ,  1.2247])
    """
    x = _floating("standardize", as_array(x))
    options = {} if where is None else {"where": where}
    if mean is None:
        mean = means.mean(x, axis, keepdims=True, **options)
    if variance is None:
        variance = means.var(x, axis, keepdims=True, **options)
    return (x - as_operand(mean)) / ew.sqrt(as_operand(variance) + epsilon)


def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = np.float64, axis: int = -1
) -> Array:
    """Rows of the identity matrix for integers.

    Args:
      x: integers ``i64[...]``; those that are no class, from 0 to ``num_classes - 1``, give zeros.
      num_classes: extent of the new axis.
      dtype: of the result.
      axis: where the new axis goes in the result.

    Raises:
      TypeError: ``x`` is of no integers.
      ValueError: ``num_classes`` is negative.
      AxisError: there is no such axis.

    Example:
      >>> one_hot([0, 2, -1], 3)
      array([[1., 0., 0.],
             [0., 0., 1.],
             [0., 0., 0.]])
    """
    x = as_array(x)
    count = operator.index(num_classes)
    if dtype_of(x).kind not in "biu":
        raise TypeError(f"nn.one_hot: expected integers, got {dtype_of(x)}; convert them first")
    if count < 0:
        raise ValueError(f"nn.one_hot: num_classes must not be negative, got {count}")
    ndim = len(shape_of(x))
    hits = movement.expand_dims(x, (ndim,)) == np.arange(count)
    return moveaxis(cast(hits, np.dtype(dtype)), ndim, axis_of(axis, ndim + 1))


def logsumexp(
    a: ArrayLike,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Array:
    """Logarithm of the sum of exponentials, as ``functrans.scipy.special.logsumexp``.

    Args:
      a: array.
      axis: axis or tuple of axes, all for ``None``.
      b: factors of the exponentials.
      keepdims: whether the axes stay with extent 1.
      return_sign: whether the sign of the sum is given, too.
      where: mask of the elements that count.

    Example:
      >>> logsumexp([1000.0, 1000.0, 5000.0], where=[True, True, False]).round(4)
      np.float64(1000.6931)
    """
    if where is not None:
        a = ew.where(cast(as_array(where), np.bool_), inexact(as_array(a)), -math.inf)
    return functrans_logsumexp(a, axis, b, keepdims, return_sign)


def logmeanexp(x: ArrayLike, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """Logarithm of the mean of exponentials.

    Args:
      x: real array.
      axis: axis or tuple of axes, all for ``None``.
      where: mask of the elements that count.
      keepdims: whether the axes stay with extent 1.

    Example:
      >>> round(float(logmeanexp([1000.0, 1000.0])), 9)
      1000.0
    """
    x = _floating("logmeanexp", as_array(x))
    mask: Any = np.True_
    if where is not None:
        mask = cast(as_array(where), np.bool_)
        x = ew.where(mask, x, -math.inf)
    counted = np.sum(mask & np.ones(shape_of(x), bool), axis=axis, keepdims=keepdims)
    total = logsumexp(x, axis=axis, keepdims=keepdims)
    return total - ew.log(cast(counted, dtype_of(total)))


def tanh(x: ArrayLike) -> Array:
    """The hyperbolic tangent.

    Example:
      >>> tanh([0.0, np.inf])
      array([0., 1.])
    """
    return ew.tanh(_floating("tanh", x))


def sparse_plus(x: Any) -> Array:
    """0 below -1, ``x`` above 1, and ``(x + 1)**2 / 4`` between.

    Example:
      >>> sparse_plus(np.array([-2.0, 0.0, 2.0]))
      array([0.  , 0.25, 2.  ])
    """
    x = _floating("sparse_plus", x)
    half = 0.5 * (ew.clip(x, -1.0, 1.0) + 1.0)
    return _number(ew.where(x >= 1.0, x, half * half))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of :func:`sparse_plus`: ``(x + 1) / 2`` limited to ``[0, 1]``.

    Example:
      >>> sparse_sigmoid(np.array([-2.0, 0.0, 2.0]))
      array([0. , 0.5, 1. ])
    """
    return ew.clip(0.5 * (_floating("sparse_sigmoid", x) + 1.0), 0.0, 1.0)


def dot_product_attention(
    query: object,
    key: object,
    value: object,
    bias: object = None,
    mask: object = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
) -> Any:
    """Values weighted by the softmax of products of queries and keys.

    Args:
      query: ``[..., t, n, h]``: ``t`` positions, ``n`` heads, ``h`` features.
      key: ``[..., s, k, h]``, where ``n`` is a multiple of the number of heads ``k``.
      value: as ``key``.
      bias: added to the products; broadcasts with ``[..., n, t, s]``.
      mask: booleans that broadcast with them; where false there is no attention.
      scale: factor of the products; by default ``1 / sqrt(h)``.
      is_causal: whether a position attends to those before it and itself alone.

    Returns:
      ``[..., t, n, h]``.

    Raises:
      ShapeError: shapes do not fit.

    Example:
      >>> x = np.ones((2, 3, 1, 4))
      >>> dot_product_attention(x, x, x).shape
      (2, 3, 1, 4)

    Reference: Vaswani et al., Attention Is All You Need, NeurIPS 2017.
    """
    q, k, v = (_floating("dot_product_attention", as_array(x)) for x in (query, key, value))
    heads, own = shape_of(q)[-2], shape_of(k)[-2]
    if heads % own or shape_of(k)[:-1] != shape_of(v)[:-1]:
        raise ShapeError(
            f"nn.dot_product_attention: query {shape_of(q)}, key {shape_of(k)} and value "
            f"{shape_of(v)} do not fit; heads of the query are a multiple of those of the key, "
            "which has the value's positions"
        )
    if heads != own:
        k, v = (np.repeat(x, heads // own, axis=-2) for x in (k, v))
    logits = np.einsum("...tnh,...snh->...nts", q, k)
    logits = logits * (1.0 / math.sqrt(shape_of(q)[-1]) if scale is None else scale)
    if bias is not None:
        logits = logits + as_array(bias)
    allowed = None if mask is None else cast(as_array(mask), np.bool_)
    if is_causal:
        causal = np.tri(*shape_of(logits)[-2:], dtype=np.bool_)
        allowed = causal if allowed is None else allowed & causal
    if allowed is not None:
        logits = ew.where(allowed, logits, float(np.finfo(dtype_of(logits)).min))
    return np.einsum("...nts,...snh->...tnh", softmax(logits), v)


hard_swish = hard_silu
swish = silu

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp",
    "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6",
    "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
