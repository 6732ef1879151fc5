"""How tensors are made from data.

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.tensor import Tensor


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of data.

    Args:
      data: a number, nested sequences of numbers, an array.
      dtype: that of the tensor; by default that of NumPy.
      requires_grad: whether gradients are accumulated in it.

    Raises:
      RuntimeError: gradients of integers are asked for.
      TypeError: the data are no numbers.

    Example:
      >>> tensor([1.0, 2.0], requires_grad=True)
      tensor([1., 2.], requires_grad=True)
    """
    if isinstance(data, Tensor):
        data = data.detach()._memory()  # type: ignore[attr-defined]  # a method of the tables
    value = np.array(data, dtype=dtype)
    if value.dtype.kind not in "fciubV":
        raise TypeError(f"tensor: expected numbers, got an array of dtype {value.dtype}")
    result = Tensor.of(value)
    if requires_grad:
        result.requires_grad_()  # type: ignore[attr-defined]  # a method of the tables
    return result


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor on the memory of an array: writes to either are seen in the other.

    Raises:
      TypeError: it is no array of numbers.

    Example:
      >>> a = np.zeros(2)
      >>> t = from_numpy(a)
      >>> a[0] = 5.0
      >>> t
      tensor([5., 0.])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if array.dtype.kind not in "fciub" and array.dtype.name != "bfloat16":
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
    return Tensor.of(array)
