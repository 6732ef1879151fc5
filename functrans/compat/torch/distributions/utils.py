"""Parameters of distributions: broadcasting, probabilities and logits, values computed once.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.distributions``, for the behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.methods.joining import FUNCTIONS as JOINING
from functrans.autograd.modes import enable_grad
from functrans.autograd.promotion import torch_defaults
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.functional_names import TORCH
from functrans.scipy import special as sp

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

Value = Tensor | complex
"""What parameters are given as."""


def broadcast_all(*values: Value) -> tuple[Tensor, ...]:
    """Tensors and numbers as tensors of one shape; numbers get the dtype of the first tensor.

    Raises:
      ValueError: a value is neither.

    Example:
      >>> import functrans.compat.torch as torch
      >>> broadcast_all(torch.tensor([1.0, 2.0]), 3)
      (tensor([1., 2.]), tensor([3., 3.]))
    """
    first = values[0]
    if all(isinstance(v, Tensor) and v.shape == first.shape for v in values):  # type: ignore[union-attr]  # a tensor
        return values  # type: ignore[return-value]  # they are tensors
    if not all(isinstance(value, (Tensor, Number)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    dtype = next((v.dtype for v in values if isinstance(v, Tensor)), torch_defaults.dtype)
    tensors = [v if isinstance(v, Tensor) else TORCH.tensor(v, dtype=dtype) for v in values]
    return tuple(JOINING["broadcast_tensors"](*tensors))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds; of unnormalised logarithms along the last axis if not binary."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1."""
    eps = float(np.finfo(probs.dtype).eps)
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of probabilities; their logarithms if not binary."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:  # noqa: N801  # torch's name
    """A property that is computed once, recorded also in ``no_grad``.

    Example:
      >>> class Table:
      ...     @lazy_property
      ...     def size(self):
      ...         print("computed")
      ...         return 3
      >>> table = Table()
      >>> table.size + table.size
      computed
      6
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The value, from now on an attribute of the instance."""
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangles, row by row.

    Raises:
      ValueError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = np.tril_indices(n, diag)
    return _taken(mat.reshape(*mat.shape[:-2], n * n), rows * n + columns)


def _taken(x: Tensor, places: np.ndarray) -> Any:
    return fnp.take(x, places, axis=-1)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangles of their elements, row by row; 0 above.

    Raises:
      ValueError: there is no triangle of so many elements.
    """
    size = vec.shape[-1]
    shift = 1 + 2 * diag
    n = (math.sqrt(shift**2 + 8 * size + 4 * abs(diag) * (diag + 1)) - shift) / 2
    if abs(round(n) - n) > np.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    n = round(n)
    places = np.zeros((n, n), int)
    places[np.tril_indices(n, diag)] = np.arange(size)
    return _taken(vec, places.reshape(-1)).reshape(*vec.shape[:-1], n, n).tril(diag)


def _standard_normal(shape: Any, dtype: Any, device: object) -> Tensor:
    """Standard normal numbers; libraries of distributions import it."""
    return TORCH.randn(shape, dtype=dtype)


def sum_rightmost(value: Any, count: int) -> Any:
    """The sum over the last axes."""
    return value.sum(tuple(range(-count, 0))) if count else value


def logits_or_probs(probs: Value | None, logits: Value | None, ndim: int = 0) -> tuple[str, Tensor]:
    """Which of the two was given, as a tensor.

    Raises:
      ValueError: both or none are given; there are too few axes.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    name, value = ("logits", logits) if probs is None else ("probs", probs)
    (tensor,) = broadcast_all(value)  # type: ignore[arg-type]  # one of them is given
    if len(tensor.shape) < ndim:
        raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
    return name, tensor


def log_softmax(x: Tensor) -> Tensor:
    """Logarithms that are normalised along the last axis."""
    result: Any = sp.log_softmax(x, axis=-1)
    return result
