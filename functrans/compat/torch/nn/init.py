"""Initial values of parameters.

Not here: the layers that call them (``nn.modules``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd import factories
from functrans.autograd.methods.layouts import memory_of
from functrans.autograd.methods.rows import drawn_in
from functrans.autograd.modes import modes, no_grad
from functrans.autograd.random import check_filled, stream
from functrans.autograd.recording import enter_session
from functrans.autograd.tensors import Tensor
from functrans.autograd.writes import check_write, write
from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.values import assign
from functrans.core.boundary import warn
from functrans.core.values import Array

__getattr__ = _nothing_else(__name__)


def _set(tensor: Tensor, value: Array | complex) -> Tensor:
    with no_grad():
        assign("init_", tensor, np.broadcast_to(np.asarray(value, tensor.dtype), tensor.shape))
    return tensor


def _fill(
    name: str,
    tensor: Tensor,
    draw: Callable[[tuple[int, ...], bool], Any],
    by_memory: bool = True,
) -> Tensor:
    """Fill with random numbers.

    ``vmap`` draws them for all examples at once, steps of ``jit`` draw anew in each call.

    Args:
      name: for messages.
      tensor: what is filled.
      draw: as of ``drawn_in``.
      by_memory: whether in the order of memory.
    """
    enter_session(tensor)
    layout = memory_of(tensor) if by_memory else np.empty(tensor.shape)
    if modes.session is None and not modes.batches and layout.flags.c_contiguous:
        return _set(tensor, draw(tensor.shape, True))
    check_filled(name, tensor)
    with no_grad():
        check_write(tensor)
        return write(name, tensor, drawn_in(layout, draw, np.dtype(tensor.dtype)))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers between ``a`` and ``b``.

    Args:
      tensor: what is filled.
      a: lower bound.
      b: upper bound.
      generator: where the numbers come from.

    Returns:
      The tensor.
    """
    dtype = tensor.dtype
    low, high = (np.asarray(end, dtype) for end in (a, b))
    wide = np.result_type(dtype, np.float64)  # product and sum are rounded once, as in torch

    def draw(size: tuple[int, ...], is_plain: bool) -> np.ndarray:
        share = factories.uniform(generator, size, dtype).astype(wide)
        return np.asarray(share * (high - low).astype(wide) + low.astype(wide))

    return _fill("uniform_", tensor, draw)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers."""
    dtype = tensor.dtype
    return _fill(
        "normal_",
        tensor,
        lambda size, is_plain: mean + std * factories.normal(generator, size, dtype, is_plain),
    )


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with normal numbers, drawn again where they are not between ``a`` and ``b``."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect."
        )
    from scipy.special import ndtr, ndtri

    low, high = ndtr((a - mean) / std), ndtr((b - mean) / std)
    dtype = np.dtype(tensor.dtype)

    def draw(size: tuple[int, ...], is_plain: bool) -> np.ndarray:
        def drawn() -> np.ndarray:
            return mean + std * factories.normal(generator, size, dtype, is_plain)

        if high - low > 0.3:  # as in PyTorch: drawn again until all are inside
            values = drawn()
            while (is_out := (values < a) | (values > b)).any():
                values = np.where(is_out, drawn(), values)
            return np.asarray(values)
        u = low + (high - low) * factories.uniform(generator, size, np.dtype(np.float64))
        return np.asarray(np.clip(mean + std * ndtri(u), a, b))

    return _fill("trunc_normal_", tensor, draw)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a number.

    Example:
      >>> from functrans.autograd import tensor
      >>> constant_(tensor([1.0, 2.0]), 0.5)
      tensor([0.5, 0.5])
    """
    return _set(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _set(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _set(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Raises:
      ValueError: it is no matrix.
    """
    if len(tensor.shape) != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _set(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill kernels so that a convolution with them changes nothing.

    Raises:
      ValueError: it has no kernels, or they cannot be divided into groups.
    """
    if len(tensor.shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out, inner, *window = tensor.shape
    if out % groups:
        raise ValueError("dim 0 must be divisible by groups")
    value = np.zeros(tensor.shape)
    each = out // groups
    for group in range(groups):
        for d in range(min(each, inner)):
            value[(group * each + d, d, *(k // 2 for k in window))] = 1
    return _set(tensor, value)


def calculate_gain(nonlinearity: str, param: object = None) -> float:
    """The factor by which weights before an activation are to be larger.

    Args:
      nonlinearity: name of the function.
      param: slope of ``leaky_relu``.

    Raises:
      ValueError: the name is not known.
    """
    known = {
        "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
        "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0), "selu": 3.0 / 4,
    }  # fmt: skip
    if nonlinearity in known:
        return known[nonlinearity]
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Numbers of inputs and outputs of a unit."""
    if len(tensor.shape) < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    area = math.prod(tensor.shape[2:])
    return tensor.shape[1] * area, tensor.shape[0] * area


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: object = None) -> Tensor:
    """Fill with uniform numbers such that values and gradients keep their size.

    Reference: Glorot & Bengio, Understanding the difficulty of training deep feedforward neural
    networks, AISTATS 2010.
    """
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: object = None) -> Tensor:
    """``xavier_uniform_`` with normal numbers."""
    return normal_(
        tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator
    )


def _he_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op", UserWarning)
        return 0.0
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: object = None,
) -> Tensor:
    """Fill with uniform numbers such that values keep their size through rectifiers.

    Args:
      tensor: what is filled.
      a: slope of ``leaky_relu``.
      mode: ``"fan_in"`` for values, ``"fan_out"`` for gradients.
      nonlinearity: name of the activation.
      generator: where the numbers come from.

    Reference: He et al., Delving deep into rectifiers, ICCV 2015.
    """
    std = _he_deviation(tensor, a, mode, nonlinearity)
    bound = math.sqrt(3.0) * std  # in this order, for the same rounding as torch
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: object = None,
) -> Tensor:
    """``kaiming_uniform_`` with normal numbers."""
    std = _he_deviation(tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with orthonormal rows or columns, whichever are fewer.

    Raises:
      ValueError: it has fewer than two axes.
    """
    if len(tensor.shape) < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    dtype = np.dtype(tensor.dtype)

    def draw(size: tuple[int, ...], is_plain: bool) -> np.ndarray:
        lead = size[: len(size) - len(tensor.shape)]
        a = factories.normal(generator, (*lead, rows, columns), dtype)
        q, r = np.linalg.qr(a.swapaxes(-1, -2) if rows < columns else a)
        q = q * np.sign(np.diagonal(r, 0, -2, -1))[..., None, :]
        return np.asarray(gain * (q.swapaxes(-1, -2) if rows < columns else q).reshape(size))

    return _fill("orthogonal_", tensor, draw, False)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal numbers, and zeros at random places of each column.

    Raises:
      ValueError: it is no matrix.
    """
    if len(tensor.shape) != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, dtype = tensor.shape[0], np.dtype(tensor.dtype)

    def draw(size: tuple[int, ...], is_plain: bool) -> np.ndarray:
        value = std * factories.normal(generator, size, dtype)
        for matrix in value.reshape(-1, *tensor.shape):
            for column in matrix.T:  # whose order is of the default stream, as in PyTorch
                column[stream(None).permutation(rows)[: math.ceil(sparsity * rows)]] = 0
        return value

    return _fill("sparse_", tensor, draw, False)
