"""Parts of tensors as views: slices, splits, diagonals, windows, any strides.

Not here: indexing by ``[]`` (``indexing``), other extents and orders of axes (``shaping``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.arrays.indexing import index_value
from functrans.autograd.methods.layouts import layout_of
from functrans.autograd.methods.rows import (
    Row,
    function_form,
    functions_of,
    looked_at,
    methods_of,
    rows_of,
)
from functrans.autograd.methods.shaping import (
    Shape,
    axis_of,
    extents,
    new_extents,
    reformed,
    refuse_number,
)
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor
from functrans.autograd.views import view, views
from functrans.core.dispatch import shape_of
from functrans.primitives import creation, structural
from functrans.primitives.indexing import gather


def part(self: Tensor, index: Any, label: str) -> Tensor:
    """A basic index as a view."""
    return view(label, self, lambda x: index_value(x, index), lambda x: x[(*index, ...)])


def _at(axis: int, entry: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis + (entry,)


def narrow(self: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """``length`` elements of an axis from ``start`` on.

    Raises:
      RuntimeError: they do not lie inside.
    """
    refuse_number(len(self.shape), "narrow() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, len(self.shape))
    n = self.shape[axis]
    start, length = integer(start, "start", "narrow"), integer(length, "length", "narrow")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return part(self, _at(axis, slice(start, start + length)), "Slice")


def select(self: Tensor, dim: int, index: int) -> Tensor:
    """One element of an axis.

    Raises:
      IndexError: it does not exist.
    """
    if not self.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, len(self.shape))
    n = self.shape[axis]
    index = integer(index, "index", "select")
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at "
            f"dimension {axis}"
        )
    return part(self, _at(axis, index), "Select")


def _parts(label: str, self: Tensor, indices: Sequence[Any]) -> tuple[Tensor, ...]:
    def one(index: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return lambda x: index_value(x, index), lambda x: x[(*index, ...)]

    return views(label, self, [one(index) for index in indices])


def _cut(label: str, self: Tensor, axis: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Consecutive parts of an axis."""
    ends = np.cumsum(sizes).tolist()
    return _parts(
        label, self, [_at(axis, slice(end - n, end)) for n, end in zip(sizes, ends, strict=True)]
    )


def split(self: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size along an axis, the last one smaller; or parts of given sizes.

    Raises:
      RuntimeError: the sizes do not fit.
    """
    refuse_number(len(self.shape), "split expects at least a 1-dimensional tensor")
    axis = axis_of(dim, len(self.shape))
    n = self.shape[axis]
    given = split_size_or_sections
    if isinstance(given, (tuple, list)):
        sizes = extents(given, "split_with_sizes", "split_sizes")
        if sum(sizes) != n or any(size < 0 for size in sizes):
            raise RuntimeError(
                "split_with_sizes expects split_sizes to sum exactly to "
                f"{n} (input tensor's size at dimension {dim}), but got split_sizes={list(sizes)}"
            )
        return _cut("SplitWithSizes", self, axis, sizes)
    size = integer(given, "split_size", "split")
    if size < 0 or (not size and n):
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    count = max(1, -(-n // size)) if size else 1
    return _cut("Split", self, axis, [min(size, n - i * size) for i in range(count)])


def _split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size along an axis, the last one smaller; or parts of given sizes."""
    return split(self, split_size, dim)


def split_with_sizes(self: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of given sizes along an axis."""
    return split(self, split_sizes, dim)


def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` parts of one size along an axis, the last one smaller.

    Raises:
      RuntimeError: none is asked for.
    """
    refuse_number(len(self.shape), "chunk expects at least a 1-dimensional tensor")
    chunks = integer(chunks, "chunks", "chunk")
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = self.shape[axis_of(dim, len(self.shape))]
    return split(self, -(-n // chunks) if n else [0] * chunks, dim)


def tensor_split(self: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis: a number of nearly one size, or cut at indices."""
    refuse_number(
        len(self.shape),
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
    )
    axis = axis_of(dim, len(self.shape))
    n = self.shape[axis]
    given = indices_or_sections
    if isinstance(given, Tensor):
        given = looked_at(given).tolist()
    if not isinstance(given, (tuple, list)):
        words = "number of sections must be larger than 0, got {}"
        given = integer(given, "sections", "tensor_split", "int or tuple of ints", 1, words)
        small, more = divmod(n, given)
        ends = np.cumsum([small + (i < more) for i in range(given)]).tolist()
        starts = [0, *ends[:-1]]
    else:
        starts, ends = [0, *given], [*given, n]
    pairs = [slice(a, b).indices(n)[:2] for a, b in zip(starts, ends, strict=True)]
    return tuple([part(self, _at(axis, slice(a, max(a, b))), "Slice") for a, b in pairs])


def _split_along(axis_for: Callable[[int], int]) -> Callable[..., Any]:
    def operation(self: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        return tensor_split(self, indices_or_sections, axis_for(len(self.shape)))

    operation.__doc__ = "Parts along one axis: a number of nearly one size, or cut at indices."
    return operation


def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The elements of an axis.

    Raises:
      IndexError: there is no axis.
    """
    if not self.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = axis_of(dim, len(self.shape))
    if not self.shape[axis]:
        return ()
    return _parts("Unbind", self, [_at(axis, i) for i in range(self.shape[axis])])


def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes, as the last axis.

    Raises:
      RuntimeError: the axes are the same.
    """
    ndim, offset = len(self.shape), integer(offset, "offset", "diagonal")
    i, j = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if i == j:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return view(
        "Diagonal",
        self,
        lambda x: creation.diagonal(x, offset, i, j),
        lambda x: _writable_diagonal(x, offset, i, j),
    )


def _writable_diagonal(x: np.ndarray, offset: int, i: int, j: int) -> np.ndarray:
    part = np.diagonal(x, offset, i, j)
    if x.flags.writeable:
        part.flags.writeable = True
    return part


def _line(x: Any) -> Any:
    """A number with an axis."""
    return structural.reshape(x, (1,))


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of an axis, as the last axis.

    Raises:
      RuntimeError: a window is larger than the axis.
    """
    axis = axis_of(dimension, len(self.shape))
    n = self.shape[axis] if self.shape else 1
    size = integer(size, "size", "unfold", least=0, words="size is {} but must be >= 0")
    step = integer(step, "step", "unfold")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {n} but size is {size}")
    if step < 1:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not self.shape:
        return view("Unfold", self, lambda x: _line(x)[:size], lambda x: _line(x)[:size])
    starts = np.arange(0, n - size + 1, step)
    index = starts[:, None] + np.arange(size)

    def windows(x: Any) -> Any:
        found = gather(x, (index,), (axis,))
        order = [*range(2, len(shape_of(found)))]
        order.insert(axis, 0)
        return structural.transpose(found, (*order, 1))

    def memory(x: np.ndarray) -> np.ndarray:
        found = np.lib.stride_tricks.sliding_window_view(
            x, size, axis, writeable=bool(x.flags.writeable)
        )
        return found[(slice(None),) * axis + (slice(None, None, step),)]

    return view("Unfold", self, windows, memory)


def storage_offset_of(self: Tensor) -> int:
    """Elements between the beginning of the memory and the first element."""
    own = layout_of(self)
    root: Any = own
    while hasattr(root.base, "__array_interface__"):  # NumPy's as_strided puts something between
        root = root.base
    start = root.__array_interface__["data"][0]
    return int((own.__array_interface__["data"][0] - start) // own.itemsize)


def _places(shape: Shape, strides: Shape, offset: int) -> np.ndarray:
    """Positions in memory of elements."""
    places = np.asarray(offset)
    for n, stride in zip(shape, strides, strict=True):
        places = places[..., None] + np.arange(n) * stride
    return places


def as_strided(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory with any extents and strides, counted in elements.

    Raises:
      RuntimeError: it reaches beyond the elements of the tensor.
    """
    shape = new_extents((tuple(size),), "as_strided")
    steps = extents((tuple(stride),), "as_strided", "stride")
    own = np.asarray(looked_at(self))
    mine = tuple(s // own.itemsize for s in own.strides)
    begin = storage_offset_of(self)
    start = begin if storage_offset is None else storage_offset
    wanted = _places(shape, steps, start)
    have = _places(self.shape, mine, begin).reshape(-1)
    order = np.argsort(have)
    at = np.searchsorted(have[order], wanted.reshape(-1))
    at = order[np.minimum(at, len(order) - 1)] if len(order) else at
    if wanted.size and not np.array_equal(have[at], wanted.reshape(-1)):
        raise RuntimeError(
            f"as_strided: sizes {list(shape)}, strides {list(steps)} and offset {start} reach "
            "beyond the elements of the tensor; take the view of its base"
        )
    index = at.reshape(shape)

    def gathered(x: Any) -> Any:
        return gather(structural.reshape(x, (math.prod(shape_of(x)),)), (index,), (0,))

    def memory(x: np.ndarray) -> np.ndarray:
        if x.size == 0 or any(n == 0 for n in shape):
            return np.empty(shape, x.dtype)
        if tuple(s // x.itemsize for s in x.strides) != mine:  # not the memory, but numbers of it
            return x.reshape(-1)[index]
        first = np.unravel_index(index[(0,) * index.ndim], x.shape)
        later: Any = (*(slice(i, None) for i in first), ...)  # an array, also without axes
        corner = x[later]
        return np.lib.stride_tricks.as_strided(corner, shape, tuple(s * x.itemsize for s in steps))

    return view("AsStrided", self, gathered, memory)


ROWS: tuple[Row, ...] = (
    *rows_of("mf", narrow, select, chunk, tensor_split, unbind, diagonal, as_strided),
    *rows_of("m", unfold),
    Row("split", split, (), "f"),
    Row("split", _split, (), "m"),
    Row("split_with_sizes", split_with_sizes, ("unsafe_split_with_sizes",)),
    Row("unsafe_split", split),
    Row("unsafe_chunk", chunk),
    Row("hsplit", _split_along(lambda ndim: 0 if ndim == 1 else 1)),
    Row("vsplit", _split_along(lambda ndim: 0)),
    Row("dsplit", _split_along(lambda ndim: 2)),
)  # fmt: skip

as_strided_ = reformed(as_strided, "AsStridedBackward1")
METHODS: dict[str, Any] = {
    **methods_of(ROWS),
    "storage_offset": storage_offset_of,
    "as_strided_": as_strided_,
}
FUNCTIONS: dict[str, Any] = {
    **functions_of(ROWS),
    "as_strided_": function_form("as_strided_", as_strided_),
}
