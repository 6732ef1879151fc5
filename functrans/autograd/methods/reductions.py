"""Methods of ``Tensor`` that reduce axes, and matrix products.

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd import operations as ops
from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.operations import composite, named, result_dtype, to_dtype
from functrans.autograd.tensor import Tensor
from functrans.primitives import dot, structural
from functrans.trace import shape_of


def axes_of(self: Tensor, dim: Any) -> tuple[int, ...]:
    """Axes to reduce: all without ``dim``."""
    ndim = len(self.shape)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple(axis_of(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[0]} appears multiple times in the list of dims")
    return axes if ndim else ()


def _kept_shape(x: Any, axes: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    shape = shape_of(x)
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdim or i not in axes)


def sum(
    self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:  # torch's name
    """Sum over some axes, or all; integers are added up in int64."""
    axes = axes_of(self, dim)
    if dtype is not None:
        self = to_dtype(self, np.dtype(dtype))
    elif self.dtype.kind in "iub" and self.dtype != np.int64:
        self = to_dtype(self, np.dtype(np.int64))
    if not keepdim:
        return named(structural.reduce_sum(self, axes), "Sum")
    shape = _kept_shape(self, axes, keepdim)
    return composite(  # type: ignore[no-any-return]  # one tensor
        "Sum", lambda x: structural.reshape(structural.reduce_sum(x, axes), shape), self
    )


def mean(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over some axes, or all.

    Raises:
      RuntimeError: the tensor is of integers.
    """
    if dtype is not None:
        self = to_dtype(self, np.dtype(dtype))
    if self.dtype.kind in "iub":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {self.dtype}"
        )
    axes = axes_of(self, dim)
    count = int(np.prod([self.shape[i] for i in axes], dtype=np.int64))
    shape = _kept_shape(self, axes, keepdim)
    scale = float(count)

    def of(x: Any) -> Any:
        return structural.reshape(structural.reduce_sum(x, axes), shape) / scale

    return composite("Mean", of, self)  # type: ignore[no-any-return]  # one tensor


def matmul(self: Tensor, other: Any) -> Any:
    """Matrix product, as ``np.matmul``.

    Raises:
      RuntimeError: shapes or dtypes do not fit.
    """
    if not isinstance(other, Tensor):
        other = ops.as_tensor(other, self)
        if not isinstance(other, Tensor):
            return NotImplemented
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self.dtype} != {other.dtype}"
        )
    if len(self.shape) == 2 == len(other.shape) and self.shape[1] != other.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({self.shape[0]}x{self.shape[1]} and {other.shape[0]}x{other.shape[1]})"
        )
    label = {(1, 1): "Dot", (2, 1): "Mv", (2, 2): "Mm"}.get(
        (len(self.shape), len(other.shape)), "Bmm"
    )
    if max(len(self.shape), len(other.shape)) <= 2 and label in ("Mm", "Mv", "Dot"):
        return named(dot.matmul(self, other), label)
    return composite(label, dot.matmul, self, other)


_ = result_dtype

METHODS: dict[str, Any] = {
    "sum": sum,
    "mean": mean,
    "matmul": matmul,
    "__matmul__": matmul,
    "mm": matmul,
}
