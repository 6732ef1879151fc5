"""Methods of ``Tensor`` that share its memory: views.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.operations import named, view
from functrans.autograd.tensor import Tensor
from functrans.primitives import structural


def extents(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    return tuple(int(size) for size in sizes)


def axis_of(dim: int, ndim: int) -> int:
    """A dimension counted from the front.

    Raises:
      IndexError: there is no such dimension.
    """
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    if not low <= dim <= high:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim % ndim if ndim else 0


def resolved(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Extents with -1 replaced.

    Raises:
      RuntimeError: the sizes do not fit.
    """
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = int(np.prod([n for n in shape if n != -1], dtype=np.int64))
    if -1 in shape:
        if not known or size % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
        return tuple(size // known if n == -1 else n for n in shape)
    if known != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return shape


def reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements in C order with other extents: a view where the layout allows it."""
    full = resolved(extents(shape), self.numel())  # type: ignore[attr-defined]  # a method
    return view(
        "View",
        self,
        lambda x: structural.reshape(x, full),
        lambda x: np.reshape(x, full),
    )


def view_as_shape(self: Tensor, *shape: Any) -> Tensor:
    """A view with other extents, or of another dtype.

    Raises:
      RuntimeError: the memory layout allows no view.
    """
    full = resolved(extents(shape), self.numel())  # type: ignore[attr-defined]  # a method
    own = self._memory()
    if isinstance(own, np.ndarray) and own.size:
        try:
            np.reshape(own, full, copy=False)
        except ValueError:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            ) from None
    return reshape(self, full)


def permute(self: Tensor, *dims: Any) -> Tensor:
    """Axes in another order."""
    ndim = len(self.shape)
    axes = tuple(axis_of(d, ndim) for d in extents(dims))
    if sorted(axes) != list(range(ndim)):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal "
            f"to len(dims) = {len(axes)}"
            if len(axes) != ndim
            else "permute(): duplicate dims are not allowed."
        )
    return _permuted(self, axes, "Permute")


def _permuted(self: Tensor, axes: tuple[int, ...], label: str) -> Tensor:
    return view(
        label, self, lambda x: structural.transpose(x, axes), lambda x: np.transpose(x, axes)
    )


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    ndim = len(self.shape)
    axes = list(range(ndim))
    if ndim:
        i, j = axis_of(dim0, ndim), axis_of(dim1, ndim)
        axes[i], axes[j] = axes[j], axes[i]
    return _permuted(self, tuple(axes), "Transpose")


def t(self: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is.

    Raises:
      RuntimeError: there are more than two axes.
    """
    if len(self.shape) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {len(self.shape)}D"
        )
    return _permuted(self, tuple(reversed(range(len(self.shape)))), "T")


def expand(self: Tensor, *sizes: Any) -> Tensor:
    """Axes of extent 1 repeated, without memory; -1 leaves an axis as it is."""
    shape = extents(sizes)
    own = (1,) * (len(shape) - len(self.shape)) + self.shape
    full = tuple(n if want == -1 else want for want, n in zip(shape, own, strict=False))
    if len(shape) < len(self.shape) or any(
        n not in (1, want) for n, want in zip(own, full, strict=True)
    ):
        raise RuntimeError(
            f"The expanded size of the tensor ({list(shape)}) must match the existing size "
            f"({list(self.shape)}) at non-singleton dimensions."
        )
    return view(
        "Expand",
        self,
        lambda x: structural.broadcast_to(x, full),
        lambda x: np.broadcast_to(x, full),
    )


def squeeze(self: Tensor, dim: Any = None) -> Tensor:
    """Without axes of extent 1: all, or some."""
    ndim = len(self.shape)
    if dim is None:
        drop = {i for i, n in enumerate(self.shape) if n == 1}
    else:
        dims = dim if isinstance(dim, (tuple, list)) else (dim,)
        drop = {axis_of(d, ndim) for d in dims} if ndim else set()
        drop = {i for i in drop if self.shape[i] == 1}
    shape = tuple(n for i, n in enumerate(self.shape) if i not in drop)
    return _reshaped(self, shape, "Squeeze")


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """With another axis of extent 1."""
    at = axis_of(dim, len(self.shape) + 1)
    return _reshaped(self, (*self.shape[:at], 1, *self.shape[at:]), "Unsqueeze")


def _reshaped(self: Tensor, shape: tuple[int, ...], label: str) -> Tensor:
    return view(label, self, lambda x: structural.reshape(x, shape), lambda x: np.reshape(x, shape))


_ = named

METHODS: dict[str, Any] = {
    "reshape": reshape,
    "view": view_as_shape,
    "permute": permute,
    "transpose": transpose,
    "t": t,
    "T": property(lambda self: _permuted(self, tuple(reversed(range(len(self.shape)))), "Permute")),
    "expand": expand,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
}
