"""Activation functions: ``relu``, ``gelu``, ``softmax`` and their kin, one node each.

Not here: layers with weights (``nn.layers``), losses (``nn.losses``), the classes (``nn.modules``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.dtypes import limits_of
from functrans.autograd.labels import torch_type
from functrans.autograd.methods import reductions
from functrans.autograd.methods.blending import refuse_complex_bounds
from functrans.autograd.methods.rows import check_tensor as check
from functrans.autograd.methods.rows import overwrite
from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.programs import Operation
from functrans.autograd.tensors import Tensor
from functrans.control.custom_rules import stop_gradient
from functrans.core.boundary import warn
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.primitives import activations
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.complex_parts import absolute
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.special.functions import erf, log_sigmoid
from functrans.primitives.special.functions import relu as relu_of
from functrans.primitives.special.functions import softplus as softplus_of

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "selu",
    "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "swish", "tanh",
    "tanhshrink", "threshold",
]  # fmt: skip


def check_tensor(name: str, argument: str, position: int, x: Tensor) -> None:
    """Refuse what is no tensor.

    Raises:
      TypeError: in torch's words.
    """
    check(name, x, argument, position)


_OF_COMPLEX = ("silu", "softsign", "tanhshrink")
_OF_INTEGERS = ("threshold", "hardtanh")
"""The functions that keep integers, whose numbers are cut to integers beside them."""


def _check_floating(name: str, x: Tensor) -> None:
    if x.dtype.kind in ("iub" if name in _OF_COMPLEX else "iubc"):
        # torch's class and words, which programs catch
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{short_dtype(x.dtype)}'")


def short_dtype(dtype: np.dtype) -> str:
    """Torch's name of a dtype: ``Float``."""
    return torch_type(dtype).removeprefix("torch.").removesuffix("Tensor")


# the functions on arrays --------------------------------------------------------------------------


def _hardtanh(x: Array, *, low: float, high: float) -> Array:
    inside = (x > low) & (x < high)
    return ew.where(inside, x, stop_gradient(ew.clip(x, low, high)))


def _elu(x: Array, *, alpha: float, scale: float, input_scale: float) -> Array:
    return activations.elu(x, alpha, scale, input_scale)


def _softplus(x: Array, *, beta: float, threshold: float) -> Array:
    scaled = x * beta
    return ew.where(scaled > threshold, x, te.softplus_below(scaled, threshold) / beta)


def _hardsigmoid(x: Array) -> Array:
    inside = (x > -3.0) & (x < 3.0)
    line = x / 6.0 + 0.5
    return ew.where(inside, line, stop_gradient(ew.clip(line, 0.0, 1.0)))


def _hardshrink(x: Array, *, lambd: float) -> Array:
    is_outside = (x > lambd) | (x < -lambd)
    return ew.where(is_outside, x, stop_gradient(ew.where(x == x, 0.0, x)))  # NaN stays


def along(x: Any, axis: int, start: int, stop: int) -> Array:
    """A part of an array along an axis."""
    entries = (slice(None),) * axis + (slice(start, stop),)
    return slice_index(x, BasicIndex(entries))


def _glu(x: Array, *, axis: int) -> Array:
    half = shape_of(x)[axis] // 2
    return along(x, axis, 0, half) * te.sigmoid(along(x, axis, half, 2 * half))


# the functions on tensors -------------------------------------------------------------------------

RELU = Operation("Relu", relu_of)
_HARDTANH = Operation("Hardtanh", _hardtanh)
_LEAKY_RELU = Operation("LeakyRelu", lambda x, *, slope: activations.leaky_relu(x, slope))
_ELU = Operation("Elu", _elu)
_CELU = Operation("Celu", _elu)
_GELU = Operation("Gelu", lambda x: x * (0.5 * (1.0 + erf(x * math.sqrt(0.5)))))
_GELU_TANH = Operation(
    "Gelu",
    lambda x: 0.5 * x * (1.0 + te.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))),
)
_SILU = Operation("Silu", lambda x: x * te.sigmoid(x))
_MISH = Operation("Mish", lambda x: x * te.tanh(softplus_of(x)))
_SOFTPLUS = Operation("Softplus", _softplus)
_SOFTSIGN = Operation("Div", lambda x: x / (1.0 + absolute(x)))
_TANHSHRINK = Operation("Sub", lambda x: x - te.tanh(x))
_HARDSIGMOID = Operation("Hardsigmoid", _hardsigmoid)
_HARDSWISH = Operation(
    "Hardswish", lambda x: ew.where(x <= -3.0, 0.0, ew.where(x >= 3.0, x, x * (x + 3.0) / 6.0))
)
_LOGSIGMOID = Operation("LogSigmoid", log_sigmoid)
_SOFTSHRINK = Operation(
    "Softshrink",
    lambda x, *, lambd: ew.where(x > lambd, x - lambd, ew.where(x < -lambd, x + lambd, x * 0.0)),
)
_HARDSHRINK = Operation("Hardshrink", _hardshrink)
_THRESHOLD = Operation(
    "Threshold", lambda x, *, threshold, value: ew.where(x <= threshold, value, x)
)
_PRELU = Operation("PreluKernel", activations.leaky_relu)
_GLU = Operation("Glu", _glu)
_SIGMOID = Operation("Sigmoid", te.sigmoid)
_TANH = Operation("Tanh", te.tanh)


def _applied(name: str, operation: Operation, x: Any, inplace: bool, **static: Any) -> Tensor:
    check_tensor(name, "input", 1, x)
    if name == "hardtanh" and x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if name == "hardtanh" and x.dtype.kind == "u" and static["low"] < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if name in _OF_INTEGERS and x.dtype.kind in "iu":
        static = {key: int(number) for key, number in static.items()}
    else:
        _check_floating(name, x)
    if inplace:
        return overwrite(f"{name}_", x, lambda old: operation(old, **static))
    return operation(x, **static)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; the derivative at 0 is 0.

    Args:
      input: a tensor.
      inplace: whether the result is written into it.

    Raises:
      TypeError: it is no tensor.

    Example:
      >>> from functrans.autograd import tensor
      >>> relu(tensor([-1.0, 2.0]))
      tensor([0., 2.])
    """
    if inplace or type(input) is not Tensor:
        check_tensor("relu", "input", 1, input)
        if inplace:
            return overwrite("relu_", input, RELU)
    refuse_complex_bounds(input)
    return RELU(input)


def relu_(input: Tensor) -> Tensor:
    """``relu`` into the tensor itself."""
    return relu(input, inplace=True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``input`` held between 0 and 6."""
    return _applied("hardtanh", _HARDTANH, input, inplace, low=0.0, high=6.0)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``input`` held between two numbers.

    Raises:
      ValueError: the first is larger than the second.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _applied("hardtanh", _HARDTANH, input, inplace, low=float(min_val), high=float(max_val))


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input``, times a slope where it is negative."""
    return _applied("leaky_relu", _LEAKY_RELU, input, inplace, slope=float(negative_slope))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input``; where it is negative, ``alpha * (exp(input) - 1)``."""
    return _applied("elu", _ELU, input, inplace, alpha=float(alpha), scale=1.0, input_scale=1.0)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``elu`` with the two constants that keep mean and variance.

    Reference: Klambauer et al., Self-Normalizing Neural Networks, NeurIPS 2017.
    """
    return _applied(
        "selu", _ELU, input, inplace,
        alpha=1.6732632423543772848170429916717, scale=1.0507009873554804934193349852946,
        input_scale=1.0,
    )  # fmt: skip


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input``; where it is negative, ``alpha * (exp(input / alpha) - 1)``."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _applied(
        "celu", _CELU, input, inplace,
        alpha=float(alpha), scale=1.0, input_scale=1 / float(alpha),
    )  # fmt: skip


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """``input`` times the normal distribution function of it.

    Args:
      input: a tensor.
      approximate: ``"none"``, or ``"tanh"`` for the approximation by a hyperbolic tangent.

    Raises:
      RuntimeError: another word.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _applied("gelu", _GELU_TANH if approximate == "tanh" else _GELU, input, False)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    return _applied("silu", _SILU, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return _applied("mish", _MISH, input, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; ``input`` itself where ``beta * input`` is large."""
    return _applied(
        "softplus", _SOFTPLUS, input, False, beta=float(beta), threshold=float(threshold)
    )


def softsign(input: Tensor) -> Tensor:
    """``input / (1 + abs(input))``."""
    return _applied("softsign", _SOFTSIGN, input, False)


def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return _applied("tanhshrink", _TANHSHRINK, input, False)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``input / 6 + 1 / 2``, held between 0 and 1."""
    return _applied("hardsigmoid", _HARDSIGMOID, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return _applied("hardswish", _HARDSWISH, input, inplace)


def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of ``sigmoid(input)``."""
    return _applied("log_sigmoid", _LOGSIGMOID, input, False)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` moved towards 0 by a number.

    Raises:
      RuntimeError: the number is negative.
    """
    if lambd < 0:
        largest = float(limits_of(input.dtype).max)
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {short_dtype(input.dtype)}, "
            f"but found {float(lambd):g}"
        )
    return _applied("softshrink", _SOFTSHRINK, input, False, lambd=float(lambd))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input``; 0 where its absolute value is not larger than a number."""
    return _applied("hardshrink", _HARDSHRINK, input, False, lambd=float(lambd))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``input`` where it is larger than ``threshold``, ``value`` elsewhere."""
    return _applied(
        "threshold", _THRESHOLD, input, inplace, threshold=float(threshold), value=float(value)
    )


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input``, times a weight where it is negative; one weight, or one for each channel.

    Raises:
      RuntimeError: the number of weights does not fit.
    """
    check_tensor("prelu", "input", 1, input)
    check_tensor("prelu", "weight", 2, weight)
    n = int(math.prod(weight.shape))
    if n != 1:
        channels = input.shape[1] if len(input.shape) > 1 else 1
        if n != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{n} and channel size = {channels}."
            )
        weight = weight.reshape((n,) + (1,) * (len(input.shape) - 2))
    return _PRELU(input, weight)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second half.

    Raises:
      RuntimeError: the axis has an odd extent.
    """
    check_tensor("glu", "input", 1, input)
    if not input.shape:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = axis_of(dim, len(input.shape))
    if input.shape[axis] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}"
        )
    return _GLU(input, axis=axis)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return _applied("sigmoid", _SIGMOID, input, False)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return _applied("tanh", _TANH, input, False)


def _axis(name: str, input: Tensor, dim: int | None) -> int:
    """The axis of a softmax; one that is chosen by the rank comes with a warning."""
    check_tensor(name, "input", 1, input)
    if dim is None:
        dim = int(len(input.shape) not in (0, 1, 3))
        warn(f"Implicit dimension choice for {name} has been deprecated: dim={dim} is taken here")
    return dim


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None
) -> Tensor:
    """Exponentials divided by their sum along an axis.

    Args:
      input: a tensor.
      dim: the axis; chosen by the rank as torch does, with a warning, if not given.
      _stacklevel: accepted for torch's sake.
      dtype: the input is converted to it first.

    Example:
      >>> from functrans.autograd import tensor
      >>> softmax(tensor([0.0, 0.0]), dim=0)
      tensor([0.5, 0.5])
    """
    return reductions.softmax(input, _axis("softmax", input, dim), dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None
) -> Tensor:
    """``softmax(-input)``."""
    return reductions.softmax(-input, _axis("softmin", input, dim), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None
) -> Tensor:
    """Logarithm of ``softmax(input)``."""
    return reductions.log_softmax(input, _axis("log_softmax", input, dim), dtype)


swish = silu
