"""Gradients and parameters taken together: ``clip_grad_norm_``, ``parameters_to_vector``.

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans.autograd.composites import composite
from functrans.autograd.modes import no_grad
from functrans.autograd.promotion import torch_tensor
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.values import assign, value_of
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives.complex_parts import absolute
from functrans.primitives.reduction import reduce_max

__getattr__ = _nothing_else(__name__)


def _gradients(parameters: Any) -> list[Tensor]:
    given: list[Any] = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [grad for grad in (p.grad for p in given) if grad is not None]


def _norm(x: Array, order: float) -> Array:
    size = absolute(x)
    axes = tuple(range(len(shape_of(x))))
    if order == math.inf:
        return reduce_max(size, axes)
    if order == 2.0:
        return ew.sqrt(structural.reduce_sum(size * size, axes))
    return structural.reduce_sum(size**order, axes) ** (1.0 / order)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: object = None
) -> Tensor:
    """The norm of several tensors as one vector.

    Args:
      tensors: a tensor, or several.
      norm_type: order of the norm; may be infinite.
      error_if_nonfinite: whether an infinite norm is an error.
      foreach: accepted for torch's sake.

    Raises:
      RuntimeError: the norm is not finite, and that is an error.
    """
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    order = float(norm_type)
    if not given:
        return torch_tensor(np.zeros((), np.float32))
    norms = movement.stack([_norm(value_of(x), order) for x in given])
    total = _norm(norms, order)
    if error_if_nonfinite and not isinstance(total, Tracer) and not np.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm anyway, set `error_if_nonfinite=False`"
        )
    return torch_tensor(total, given[0].__dict__.get("_trace"))


def clip_grads_with_norm_(
    parameters: object, max_norm: float, total_norm: Tensor, foreach: object = None
) -> None:
    """Multiply gradients so that a norm of ``total_norm`` becomes ``max_norm``, if it is larger."""
    factor = ew.minimum(max_norm / (value_of(total_norm) + 1e-6), 1.0)
    with no_grad():
        for grad in _gradients(parameters):
            value = value_of(grad)
            assign("mul_", grad, value * structural.cast(factor, value.dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: object = None,
) -> Tensor:
    """Shorten the gradients, as one vector, to a norm.

    Args:
      parameters: a tensor, or several.
      max_norm: the largest norm.
      norm_type: order of the norm; may be infinite.
      error_if_nonfinite: whether an infinite norm is an error.
      foreach: accepted for torch's sake.

    Returns:
      The norm before.

    Raises:
      RuntimeError: the norm is not finite, and that is an error.

    Example:
      >>> import functrans.compat.torch as torch
      >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
      >>> (0.5 * x * x).sum().backward()
      >>> clip_grad_norm_(x, 1.0)
      tensor(5.)
      >>> print(f"{x.grad.norm().item():.3f}")
      1.000
    """
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


def clip_grad_value_(parameters: object, clip_value: float, foreach: object = None) -> None:
    """Hold the elements of gradients between ``-clip_value`` and ``clip_value``."""
    limit = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            assign("clamp_", grad, ew.clip(value_of(grad), -limit, limit))


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """All elements of tensors in one vector.

    Example:
      >>> from functrans.autograd import tensor
      >>> parameters_to_vector([tensor([[1.0, 2.0]]), tensor([3.0])])
      tensor([1., 2., 3.])
    """

    def joined(*xs: Any) -> Any:
        return movement.concatenate(
            [structural.reshape(x, (math.prod(shape_of(x)),)) for x in xs], 0
        )

    return composite("Cat", joined, *parameters)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Any]) -> None:
    """Copy the elements of a vector into tensors.

    Raises:
      TypeError: it is no tensor.
      RuntimeError: it has fewer elements than they.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    given = list(parameters)
    need = sum(math.prod(p.shape) for p in given)
    if vec.shape[0] < need:
        raise RuntimeError(f"the vector has {vec.shape[0]} elements, the parameters have {need}")
    value = value_of(vec)
    start = 0
    with no_grad():
        for p in given:
            stop = start + math.prod(p.shape)
            part = structural.reshape(value[start:stop], p.shape)
            assign("copy_", p, structural.cast(part, p.dtype))
            start = stop
