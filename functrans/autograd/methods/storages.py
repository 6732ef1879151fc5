"""The memory of tensors: ``untyped_storage``, ``storage``, ``set_``, ``resize_``.

Here: ``UntypedStorage`` and ``TypedStorage``, which are looked at when they are asked for, and the
methods of tensors that take another memory. Not here: versions and views (``tensors.Storage``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.autograd.methods.layouts import layout_of
from functrans.autograd.methods.parts import storage_offset_of
from functrans.autograd.methods.shaping import extents, new_extents
from functrans.autograd.methods.state import memory_part
from functrans.autograd.modes import modes
from functrans.autograd.recording import node_of
from functrans.autograd.tensors import Tensor
from functrans.autograd.writes import check_captured, check_inference
from functrans.core.dispatch import Tracer


class UntypedStorage:
    """The bytes of a tensor and of all that shares its memory.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0])
      >>> x[1].untyped_storage().nbytes(), x.data_ptr() == x[1].untyped_storage().data_ptr()
      (16, True)
    """

    _of: Tensor

    def __init__(self, flat: np.ndarray, of: Tensor) -> None:
        self._flat = flat
        self._of = of

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._flat.nbytes

    def size(self) -> int:
        """How many elements there are."""
        return self._flat.size

    __len__ = size

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._flat.ctypes.data

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._flat.itemsize

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._flat.tolist()

    def __getitem__(self, index: int | slice) -> Any:
        """An element, or a list of some."""
        return self._flat[index].tolist()

    def __iter__(self) -> Iterator[Any]:
        """One after the other."""
        return iter(self.tolist())

    def __repr__(self) -> str:
        """The elements, and ``[torch.storage.UntypedStorage(device=cpu) of size 16]``."""
        lines = [f" {element}" for element in self.tolist()]
        return "\n".join([*lines, f"[torch.storage.{self._kind()} of size {self.size()}]"])

    def _kind(self) -> str:
        return "UntypedStorage(device=cpu)"


class TypedStorage(UntypedStorage):
    """The elements of a tensor and of all that shares its memory.

    Example:
      >>> from functrans.autograd import tensor
      >>> list(tensor([1.0, 2.0])[1:].storage())
      [1.0, 2.0]
    """

    @property
    def dtype(self) -> Any:
        """That of the tensor."""
        return self._of.dtype

    def _kind(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, device=cpu)"

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return untyped_storage(self._of)


def _whole(x: Tensor) -> np.ndarray:
    """The array whose memory a tensor has, flat."""
    root = own = layout_of(x)
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not (root.flags.c_contiguous or root.flags.f_contiguous):
        root = own
    flat = root.ravel("K")
    if not np.may_share_memory(flat, root) and root.size:
        raise RuntimeError("the memory of this tensor has gaps; take the storage of a clone()")
    return flat


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes of the memory, those of other tensors on it included."""
    return UntypedStorage(_whole(self).view(np.uint8), self)


def storage(self: Tensor) -> TypedStorage:
    """The elements of the memory, those of other tensors on it included."""
    return TypedStorage(_whole(self).view(layout_of(self).dtype), self)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether it is the same memory with the same extents and strides."""
    mine, other = layout_of(self), layout_of(tensor)
    return (mine.ctypes.data, mine.shape, mine.strides) == (
        other.ctypes.data, other.shape, other.strides
    )  # fmt: skip


def _check(self: Tensor, what: str, reason: str) -> None:
    """Refuse what has derivatives or no memory, and what a differentiated function captures."""
    check_inference(self)
    if modes.level:
        check_captured(self)
    if node_of(self) is not None:
        raise RuntimeError(reason)
    if isinstance(self._value, Tracer):
        raise RuntimeError(f"{what}: a traced tensor has no memory of its own; use a new tensor")
    if self._view is not None or self._stored().is_viewed:
        raise RuntimeError(f"{what}: the tensor is a view or has views; call it on a clone()")


def set_(
    self: Tensor,
    source: Tensor | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Take the memory of another tensor, or a part of a storage.

    Args:
      self: the tensor.
      source: a tensor, a storage, or nothing for no elements.
      storage_offset: where the first element is.
      size: extents, by default those of the source.
      stride: elements from one index to the next, by default C order.

    Raises:
      RuntimeError: the tensor has derivatives, views, or another dtype than the source.
    """
    _check(self, "set_", "cannot change the memory of a tensor that requires grad: use .data")
    if source is None:
        self._value, self._storage = np.empty(0, self._value.dtype), None
        return self
    of = source if isinstance(source, Tensor) else source._of
    if node_of(of) is not None:
        raise RuntimeError("set_: the source requires grad; give source.detach()")
    own = of._memory()
    if own.dtype != self._value.dtype:
        raise RuntimeError(f"set_: the source has dtype {of.dtype}, the tensor {self.dtype}")
    if not isinstance(source, Tensor) or size is not None:
        flat = _whole(of).view(own.dtype)
        shape = (flat.size - storage_offset,) if size is None else extents((size,), "set_")
        width, steps = own.itemsize, _in_c_order(shape) if stride is None else tuple(stride)
        own = memory_part(
            flat, shape, own.dtype, storage_offset * width, tuple(n * width for n in steps)
        )
    self._value, self._storage = own, of._stored()
    self._storage.is_viewed = True
    return self


def _in_c_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: object = None) -> Tensor:
    """Other extents on the same elements in C order; more memory where they need it.

    Raises:
      RuntimeError: the tensor has derivatives or views.
    """
    shape = new_extents(sizes or (size,), "resize_")
    reason = "cannot resize variables that require grad"
    is_same = shape == self._value.shape
    if not is_same or self._inference or node_of(self) is not None:
        _check(self, "resize_", reason)
    if is_same:
        return self
    flat = _whole(self).view(self._value.dtype)[storage_offset_of(self) :]
    count = math.prod(shape)
    if flat.size < count:
        new = np.zeros(count, flat.dtype)
        new[: flat.size] = flat
        flat = new
    self._value = flat[:count].reshape(shape)
    self._stored().bump("resize_", None)
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: object = None) -> Tensor:
    """The extents of another tensor; see ``resize_``."""
    return resize_(self, the_template.shape)


METHODS: dict[str, Any] = {
    function.__name__: function
    for function in (untyped_storage, storage, is_set_to, set_, resize_, resize_as_)
}
