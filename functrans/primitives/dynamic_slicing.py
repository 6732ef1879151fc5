"""Windows of static size whose start is traced: ``lax.dynamic_slice`` and its relatives.

Here: ``dynamic_slice``, ``dynamic_embed`` (its transpose: zeros with a window in them),
and ``dynamic_update_slice``. Not here: static starts (``slicing``), single elements and arbitrary
index arrays (``indexing``).

Starts are integer scalars, one per axis: a negative one counts from the end, then it is moved so
that the whole window is inside. With starts of its own for each element of a batch, a window is
read and written by index arrays.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import AxisMap, of_broadcast
from functrans.core.boundary import boundary
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear, linear
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.gather_scatter import accumulate_p, gather_p, scatter_set_p
from functrans.primitives.native.routine_loops import (
    contiguous,
    copy_run,
    fill_run,
    load_run,
    nest,
    plus,
    zeros,
)
from functrans.primitives.slicing import BasicIndex, slice_index, slice_update
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    front,
    inverse_permutation,
    moveaxis,
    reduce_sum,
    reshape,
    transpose,
    without_axis,
)

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

Shape = tuple[int, ...]


def _start(start: Any, extent: int, size: int) -> int:
    """Where a window really starts."""
    position = int(start)
    if position < 0:
        position += extent
    return min(max(position, 0), extent - size)


def _window(starts: Sequence[Any], shape: Shape, sizes: Shape) -> tuple[slice, ...]:
    """A window as a basic index."""
    entries = []
    for start, extent, size in zip(starts, shape, sizes, strict=True):
        first = _start(start, extent, size)
        entries.append(slice(first, first + size))
    return tuple(entries)


def _check(name: str, starts: Sequence[ShapedArray], shape: Shape, sizes: Shape) -> None:
    if not len(starts) == len(shape) == len(sizes) or any(
        not 0 <= size <= extent for size, extent in zip(sizes, shape, strict=True)
    ):
        raise ShapeError(
            f"{name}: a window of sizes {sizes} at {len(starts)} starts does not fit an array of "
            f"shape {shape}; one start and one size per axis are needed, no size larger than its "
            "extent"
        )
    for start in starts:
        if start.shape or start.dtype.kind not in "iu":
            raise ShapeError(f"{name}: starts must be integer scalars, got {start}")


# native code ------------------------------------------------------------------------------------


def _first_element(e: Routines, starts: Sequence[Array], shape: Shape, sizes: Shape) -> Value:
    """Number of the first element of a window."""
    b, offset = e.b, e.b.index(0)
    for start, extent, size, stride in zip(starts, shape, sizes, contiguous(shape), strict=True):
        last = extent - size
        if not last:
            continue
        number = e.load(start.dtype, start.pointer)
        if number.dtype == np.uint64:  # a large one is no negative one
            is_large = b.icmp("ugt", number.value, b.index(last))
            first = b.select(is_large, b.index(last), number.value)
        else:
            first = e.cast(number, np.int64).value
            is_negative = b.icmp("slt", first, b.index(0))
            first = b.select(is_negative, b.add(first, b.index(extent)), first)
            first = b.select(b.icmp("slt", first, b.index(0)), b.index(0), first)
            first = b.select(b.icmp("sgt", first, b.index(last)), b.index(last), first)
        offset = plus(e, offset, b.mul(first, b.index(stride)))
    return offset


@contextmanager
def _each_row(e: Routines, shape: Shape, sizes: Shape) -> Iterator[tuple[Value, Value, int]]:
    """Loops over the contiguous parts of a window.

    Yields:
      Number of the first element in the array (from the window's first) and in the window; extent.
    """
    behind = len(shape)
    while behind and sizes[behind - 1] == shape[behind - 1]:
        behind -= 1
    outer = max(behind - 1, 0)
    steps = [contiguous(shape)[:outer], contiguous(sizes)[:outer]]
    with nest(e, sizes[:outer], steps) as (array, window):
        yield array, window, math.prod(sizes[outer:])


def _dynamic_slice_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, sizes: Shape
) -> None:
    """The rows of the window are copied."""
    x, *starts = operands
    (out,) = results
    first = _first_element(e, starts, x.shape, sizes)
    with _each_row(e, x.shape, sizes) as (source, target, width):
        copy_run(e, x, plus(e, first, source), out, target, width)


def _write_window(e: Routines, out: Array, v: Array, starts: Sequence[Array], sizes: Shape) -> None:
    """Copy an array, or one element, into a window."""
    first = _first_element(e, starts, out.shape, sizes)
    constant = load_run(e, v, e.b.index(0)) if v.shape != sizes else None
    with _each_row(e, out.shape, sizes) as (target, source, width):
        at = plus(e, first, target)
        if constant is None:
            copy_run(e, v, source, out, at, width)
        else:
            fill_run(e, out, at, constant, width)


def _dynamic_embed_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, shape: Shape
) -> None:
    """Zeros, then the rows of the window."""
    v, *starts = operands
    zeros(e, results[0])
    _write_window(e, results[0], v, starts, v.shape)


def _dynamic_update_slice_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, sizes: Shape
) -> None:
    """The array, then the rows of the window."""
    x, v, *starts = operands
    e.copy(x, results[0])
    _write_window(e, results[0], v, starts, sizes)


# batches whose elements have starts of their own ------------------------------------------------


class _Windows:
    """How windows with a batch of starts are read and written by index arrays.

    Attributes:
      axes: the axes along which the window is smaller than the array; the others have no start.
      indices: one index array per such axis, shape ``(size, *window)`` or broadcasting to it.
      order: axes of a window of the array's rank as ``(*axes, *others)``.
    """

    __slots__ = ("axes", "indices", "order")

    def __init__(
        self, starts: Sequence[Any], dims: Sequence[int | None], shape: Shape, sizes: Shape
    ) -> None:
        self.axes = tuple([a for a, n in enumerate(shape) if sizes[a] < n])
        self.order = self.axes + tuple([a for a, n in enumerate(shape) if sizes[a] == n])
        self.indices: list[Any] = []
        rank = len(self.axes)
        for position, axis in enumerate(self.axes):
            start, extent, size = cast(starts[axis], np.int64), shape[axis], sizes[axis]
            start = ew.clip(ew.where(start < 0, start + extent, start), 0, extent - size)
            if dims[axis] is not None:
                start = reshape(start, shape_of(start) + (1,) * rank)
            span = np.arange(size).reshape((size,) + (1,) * (rank - position - 1))
            self.indices.append(start + span)

    def to_front(self, v: Any) -> Any:
        """A batched window with its axes in ``order``."""
        return transpose(v, (0, *(axis + 1 for axis in self.order)))

    def from_front(self, v: Any) -> Any:
        """The inverse of ``to_front``."""
        return transpose(v, inverse_permutation((0, *(axis + 1 for axis in self.order))))

    def counted(self, size: int) -> list[Any]:
        """The index arrays after one for the batch axis."""
        return [np.arange(size).reshape((size,) + (1,) * len(self.axes)), *self.indices]


def _needed_starts(
    starts: Sequence[Any], dims: Sequence[int | None], shape: Shape, sizes: Shape
) -> tuple[list[Any], list[int | None]]:
    """Starts and their batch axes; 0 where the window is as large as the array."""
    is_needed = [size < extent for size, extent in zip(sizes, shape, strict=True)]
    kept = [start if needed else 0 for start, needed in zip(starts, is_needed, strict=True)]
    kept_dims = [dim if needed else None for dim, needed in zip(dims, is_needed, strict=True)]
    return kept, kept_dims


# dynamic_slice ----------------------------------------------------------------------------------


def _dynamic_slice_impl(x: Any, *starts: object, sizes: Shape) -> tuple[Any, ...]:
    return (x[_window(starts, x.shape, sizes)],)


def _dynamic_slice_aval(
    x: ShapedArray, *starts: ShapedArray, sizes: Shape
) -> tuple[ShapedArray, ...]:
    _check("dynamic_slice", starts, x.shape, sizes)
    return (ShapedArray(sizes, x.dtype),)


def _dynamic_slice_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, sizes: Shape
) -> tuple[Any, ...]:
    x, *starts = operands
    (ct,) = bind(dynamic_embed_p, cts[0], *starts, shape=shape_of(x))
    return (ct, *(None,) * len(starts))


def _dynamic_slice_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, sizes: Shape
) -> tuple[Any, Any]:
    x, *starts = operands
    x_dim, *start_dims = dims
    shape = without_axis(x, x_dim)
    starts, start_dims = _needed_starts(starts, start_dims, shape, sizes)
    if all(dim is None for dim in start_dims):
        if x_dim is None:
            return bind(dynamic_slice_p, x, *starts, sizes=sizes), (None,)
        starts.insert(x_dim, 0)
        moved = (*sizes[:x_dim], size, *sizes[x_dim:])
        return bind(dynamic_slice_p, x, *starts, sizes=moved), (x_dim,)
    windows = _Windows(starts, start_dims, shape, sizes)
    if x_dim is None:
        (out,) = bind(gather_p, x, *windows.indices, axes=windows.axes, mode="raise")
    else:
        x = moveaxis(x, x_dim, 0)
        axes = (0, *(axis + 1 for axis in windows.axes))
        (out,) = bind(gather_p, x, *windows.counted(size), axes=axes, mode="raise")
    return (windows.from_front(out),), (0,)


def _whole(window: Shape, shape: Shape) -> AxisMap:
    """Axes along which a window is as long as what it moves in."""
    return [k if n == size else None for k, (n, size) in enumerate(zip(window, shape, strict=True))]


def _update_map(
    x: ShapedArray, v: ShapedArray, *starts: ShapedArray, sizes: Shape
) -> list[AxisMap]:
    return [range(x.ndim), of_broadcast(v.shape, x.shape), *[()] * len(starts)]


dynamic_slice_p = Primitive(
    "dynamic_slice",
    impl=_dynamic_slice_impl,
    abstract_eval=_dynamic_slice_aval,
    jvp=linear,
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
    lower=Routine(_dynamic_slice_lower),
    moves=True,
    axis_map=lambda x, *starts, sizes: [_whole(sizes, x.shape), *[()] * len(starts)],
)


# dynamic_embed ----------------------------------------------------------------------------------


def _dynamic_embed_impl(v: Any, *starts: object, shape: Shape) -> tuple[Any, ...]:
    out = np.zeros(shape, dtype_of(v))
    out[_window(starts, shape, shape_of(v))] = v
    return (out,)


def _dynamic_embed_aval(
    v: ShapedArray, *starts: ShapedArray, shape: Shape
) -> tuple[ShapedArray, ...]:
    _check("dynamic_embed", starts, shape, v.shape)
    return (ShapedArray(shape, v.dtype),)


def _dynamic_embed_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: Shape
) -> tuple[Any, ...]:
    v, *starts = operands
    (ct,) = bind(dynamic_slice_p, cts[0], *starts, sizes=shape_of(v))
    return (ct, *(None,) * len(starts))


def _dynamic_embed_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, shape: Shape
) -> tuple[Any, Any]:
    v, *starts = operands
    v_dim, *start_dims = dims
    sizes = without_axis(v, v_dim)
    starts, start_dims = _needed_starts(starts, start_dims, shape, sizes)
    if all(dim is None for dim in start_dims):
        if v_dim is None:
            return bind(dynamic_embed_p, v, *starts, shape=shape), (None,)
        starts.insert(v_dim, 0)
        moved = (*shape[:v_dim], size, *shape[v_dim:])
        return bind(dynamic_embed_p, v, *starts, shape=moved), (v_dim,)
    windows = _Windows(starts, start_dims, shape, sizes)
    v = windows.to_front(front(size, v, v_dim))
    axes = (0, *(axis + 1 for axis in windows.axes))
    return bind(
        accumulate_p, v, *windows.counted(size), shape=(size, *shape), axes=axes, mode="raise"
    ), (0,)


dynamic_embed_p = Primitive(
    "dynamic_embed",
    impl=_dynamic_embed_impl,
    abstract_eval=_dynamic_embed_aval,
    jvp=linear,
    transpose=_dynamic_embed_transpose,
    batch=_dynamic_embed_batch,
    lower=Routine(_dynamic_embed_lower),
    moves=True,
    memory="own",
    axis_map=lambda v, *starts, shape: [_whole(v.shape, shape), *[()] * len(starts)],
)


# dynamic_update_slice ---------------------------------------------------------------------------


def _dynamic_update_slice_impl(x: Any, v: Any, *starts: object, sizes: Shape) -> tuple[Any, ...]:
    return _dynamic_update_slice_in_place(np.array(x), v, *starts, sizes=sizes)


def _dynamic_update_slice_in_place(x: Any, v: Any, *starts: Any, sizes: Shape) -> tuple[Any, ...]:
    x[_window(starts, x.shape, sizes)] = v
    return (x,)


def _dynamic_update_slice_aval(
    x: ShapedArray, v: ShapedArray, *starts: ShapedArray, sizes: Shape
) -> tuple[ShapedArray, ...]:
    _check("dynamic_update_slice", starts, x.shape, sizes)
    if v.shape not in ((), sizes) or v.dtype != x.dtype:
        raise ShapeError(
            f"dynamic_update_slice: the value is {v}, the window has shape {sizes} and dtype "
            f"{x.dtype}"
        )
    return (ShapedArray(x.shape, x.dtype),)


def _dynamic_update_slice_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, sizes: Shape
) -> tuple[Any, ...]:
    (ct,) = cts
    x, v, *starts = operands
    ct_x = ct_v = None
    if is_linear(v):  # first, so that the array can be written to after it was read
        (ct_v,) = bind(dynamic_slice_p, ct, *starts, sizes=sizes)
        if shape_of(v) != sizes:
            ct_v = reduce_sum(ct_v, tuple(range(len(sizes))))
    if is_linear(x):
        hole = np.zeros((), dtype_of(ct))[()]
        (ct_x,) = bind(dynamic_update_slice_p, ct, hole, *starts, sizes=sizes)
    return (ct_x, ct_v, *(None,) * len(starts))


def _dynamic_update_slice_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, sizes: Shape
) -> tuple[Any, Any]:
    x, v, *starts = operands
    x_dim, v_dim, *start_dims = dims
    shape = without_axis(x, x_dim)
    starts, start_dims = _needed_starts(starts, start_dims, shape, sizes)
    x = front(size, x, x_dim)
    if v_dim is not None or shape_of(v):  # one scalar for all windows stays one
        v = front(size, v, v_dim)
        if len(shape_of(v)) == 1 and sizes:
            v = broadcast_to(reshape(v, (size,) + (1,) * len(sizes)), (size, *sizes))
    if all(dim is None for dim in start_dims):
        return bind(dynamic_update_slice_p, x, v, 0, *starts, sizes=(size, *sizes)), (0,)
    windows = _Windows(starts, start_dims, shape, sizes)
    if shape_of(v):
        v = windows.to_front(v)
    axes = (0, *(axis + 1 for axis in windows.axes))
    return bind(
        scatter_set_p, x, v, *windows.counted(size), axes=axes, mode="raise", unique_indices=True
    ), (0,)


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    impl=_dynamic_update_slice_impl,
    abstract_eval=_dynamic_update_slice_aval,
    jvp=linear,
    transpose=_dynamic_update_slice_transpose,
    batch=_dynamic_update_slice_batch,
    lower=Routine(_dynamic_update_slice_lower, in_place=0),
    in_place=_dynamic_update_slice_in_place,
    moves=True,
    memory="own",
    axis_map=_update_map,
)


# functions --------------------------------------------------------------------------------------


def _is_static(start: Any) -> bool:
    """Whether a start is a number that cannot change (an ndarray could be written to)."""
    return isinstance(start, (int, np.integer))


def _checked(name: str, x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Shape:
    shape = shape_of(x)
    own_sizes = tuple([operator.index(size) for size in sizes])
    avals = [ShapedArray(shape_of(start), dtype_of(start)) for start in starts]
    _check(name, avals, shape, own_sizes)
    return own_sizes


def _starts(start_indices: Sequence[Any]) -> tuple[Any, ...]:
    """Starts, one per axis; an array of them is taken apart, one stands for that of a vector."""
    if isinstance(start_indices, (list, tuple)):
        return tuple(start_indices)
    shape = shape_of(start_indices)
    if not shape:
        return (start_indices,)
    return tuple([start_indices[i] for i in range(shape[0])])


@boundary
def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """A window of static size whose start may be traced.

    Args:
      operand: array.
      start_indices: integer scalar per axis, or a vector of them; negative ones count from the
        end, and a window that would reach over an end is moved inside.
      slice_sizes: extents of the window.

    Raises:
      ShapeError: the window is larger than the array.
    """
    starts = _starts(start_indices)
    sizes = _checked("dynamic_slice", operand, starts, slice_sizes)
    if all(map(_is_static, starts)):
        return slice_index(operand, BasicIndex(_window(starts, shape_of(operand), sizes)))
    return bind(dynamic_slice_p, operand, *starts, sizes=sizes)[0]


@boundary
def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    """An array with a window overwritten; the start may be traced.

    Args:
      operand: array; it is not changed.
      update: the window, of the rank of ``operand``; converted to its dtype.
      start_indices: as in ``dynamic_slice``.

    Raises:
      ShapeError: the window is larger than the array.
    """
    starts = _starts(start_indices)
    sizes = _checked("dynamic_update_slice", operand, starts, shape_of(update))
    v = cast(update, dtype_of(operand))
    if all(map(_is_static, starts)):
        return slice_update(operand, v, BasicIndex(_window(starts, shape_of(operand), sizes)))
    return bind(dynamic_update_slice_p, operand, v, *starts, sizes=sizes)[0]


PRIMITIVES: tuple[Primitive, ...] = (dynamic_slice_p, dynamic_embed_p, dynamic_update_slice_p)
