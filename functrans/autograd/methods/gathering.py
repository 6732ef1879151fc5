"""Reading and writing of ``Tensor`` at index tensors: ``gather``, ``scatter``, ``index_add``, ...

Not here: ``x[index]`` (``indexing``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.arrays.indexing import index_value
from functrans.autograd.composites import composite
from functrans.autograd.methods.blending import where
from functrans.autograd.methods.indexing import index_put as put_at
from functrans.autograd.methods.indexing import plain_index
from functrans.autograd.methods.rows import (
    Row,
    check_tensor,
    functions_of,
    known,
    lifted,
    looked_at,
    methods_of,
    overwrite,
    rows_of,
)
from functrans.autograd.methods.shaping import axis_of, refuse_number
from functrans.autograd.promotion import exact
from functrans.autograd.recording import enter_session
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.values import Array
from functrans.passes.nodes import kept
from functrans.primitives import cumulative, indexing, structural
from functrans.primitives import elementwise as ew


def _index_array(name: str, index: Tensor) -> Array:
    """An index tensor as an array; a traced one as it is, to be checked where the program runs."""
    check_tensor(name, index, "index", 3)
    if index.dtype.kind not in "iu":
        raise RuntimeError(f"{name}(): Expected dtype int64 for index")
    return _positions(index)


def _positions(index: Tensor) -> Any:
    enter_session(index)
    value = index._value
    return value if isinstance(value, Tracer) else np.asarray(looked_at(index))


def _all_in(at: Any, low: int, high: int) -> bool:
    """Whether all positions lie in a half-open range; traced ones are not known."""
    if isinstance(at, Tracer) or not at.size:
        return True
    return bool(low <= at.min() and at.max() < high)


def _check_lines(name: str, x: Tensor, index: Any, axis: int, source: Tensor | None = None) -> None:
    """Refuse an index that does not fit a tensor along an axis."""
    ndim = max(len(x.shape), 1)
    if max(index.ndim, 1) != ndim:
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as "
            f"{'input' if name == 'gather' else 'self'} tensor"
        )
    if source is not None and max(len(source.shape), 1) != ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    shape = x.shape or (1,)
    for i, n in enumerate(index.shape):
        if i != axis and n > shape[i]:
            raise RuntimeError(
                f"Size does not match at dimension {i} expected index {list(index.shape)} to be no "
                f"larger than self {list(x.shape)} apart from dimension {axis}"
            )
        if source is not None and source.shape and n > source.shape[i]:
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than src "
                f"{list(source.shape)} in all dimensions"
            )
    size = shape[axis]
    if isinstance(index, Tracer):
        return
    bad = index[(index < 0) | (index >= size)]
    if bad.size:
        raise RuntimeError(
            f"index {bad.flat[0]} is out of bounds for dimension {axis} with size {size}"
        )


def _lines(index: Any, axis: int) -> tuple[Any, ...]:
    """Index arrays of all axes: the index for one, the own position for the others."""
    ndim = index.ndim
    return tuple(
        index if k == axis else np.arange(n).reshape((n,) + (1,) * (ndim - k - 1))
        for k, n in enumerate(index.shape)
    )


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements of each line along an axis.

    Raises:
      RuntimeError: the index does not fit.
    """
    axis = axis_of(dim, len(input.shape))
    at = _index_array("gather", index)
    _check_lines("gather", input, at, axis)

    def of(x: Any) -> Any:
        if not shape_of(x):
            return structural.broadcast_to(x, at.shape)
        return indexing.gather(x, _lines(at, axis), tuple(range(at.ndim)))

    return composite("Gather", of, input)


def _scattered(
    name: str, label: str, op: str, x: Tensor, dim: int, index: Tensor, source: Any
) -> Tensor:
    axis = axis_of(dim, len(x.shape))
    at = _index_array(name, index)
    _check_lines(name, x, at, axis, source if isinstance(source, Tensor) else None)
    if isinstance(source, Tensor):
        if source.dtype != x.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    else:
        source = exact(source, x.dtype)

    at = kept(at)  # curved ones run again on tensors, for second derivatives

    def of(v: Any, s: Any) -> Any:
        if not shape_of(v):
            v = structural.reshape(v, (1,))
        where_to = at.reshape(1) if not at.ndim else at
        if shape_of(s):
            s = index_value(s, tuple(slice(0, n) for n in where_to.shape))
        lines = _lines(where_to, axis)
        made = indexing.scatter(v, s, lines, tuple(range(where_to.ndim)), op)
        return structural.reshape(made, x.shape)

    return composite(label, of, x, source)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: object = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Elements of each line along an axis replaced; of several writes the last one counts.

    Raises:
      RuntimeError: the index does not fit.
    """
    source = value if src is None else src
    if src is None and isinstance(value, Tensor):
        source = value.expand(index.shape)
    ops = {None: "set", "add": "add", "multiply": "multiply"}
    if reduce not in ops:
        raise RuntimeError("reduce argument must be either add or multiply.")
    label = "Scatter" if isinstance(source, Tensor) else "ScatterBackward1"
    return _scattered("scatter", label, ops[reduce], input, dim, index, source)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Elements added to each line along an axis; all of several writes count."""
    return _scattered("scatter_add", "ScatterAdd", "add", input, dim, index, src)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Elements of each line along an axis combined with others.

    Args:
      input: the tensor.
      dim: the axis.
      index: where, along it.
      src: the others.
      reduce: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``.
      include_self: whether the elements themselves count.
    """
    ops = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum", "mean": "add"}
    if reduce not in ops:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}."
        )
    start = input
    axis = axis_of(dim, len(input.shape))
    at = _index_array("scatter_reduce", index)
    _check_lines("scatter_reduce", input, at, axis, src)
    shape, where_to = (input.shape, at) if input.shape else ((1,), at.reshape(1))
    hits = indexing.scatter(
        np.zeros(shape, np.int64),
        np.ones(where_to.shape, np.int64),
        _lines(where_to, axis),
        tuple(range(where_to.ndim)),
        "add",
    )
    hits = structural.reshape(hits, input.shape)
    if not include_self:
        neutral = {"add": 0, "multiply": 1, "maximum": -math.inf, "minimum": math.inf}[ops[reduce]]
        start = where(lifted(hits > 0, input), input.dtype.type(neutral).item(), input)
    made = _scattered("scatter_reduce", "ScatterReduce", ops[reduce], start, dim, index, src)
    if reduce == "mean":
        count = structural.cast(ew.maximum(hits + int(include_self), 1), input.dtype)
        made = composite("ScatterReduce", lambda v: v / count, made)
    return made


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Elements of an axis.

    Raises:
      IndexError: an index is out of bounds.
      RuntimeError: the index is no vector of integers.
    """
    if index.dtype.kind not in "iu":
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    at = _positions(index).reshape(-1)
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    axis = axis_of(dim, len(input.shape))
    n = input.shape[axis] if input.shape else 1
    if not _all_in(at, 0, n):
        raise IndexError("index out of range in self")
    if not input.shape and at.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {at.size} value(s)"
        )

    def of(x: Any) -> Any:
        if not shape_of(x):
            return x
        found = indexing.gather(x, (at,), (axis,))
        return structural.moveaxis(found, 0, axis)

    return composite("IndexSelect", of, input)


def _at_axis(
    name: str, label: str, op: str, x: Tensor, dim: int, index: Tensor, source: Any, scale: Any = 1
) -> Tensor:
    """Slices of an axis written, or combined with others."""
    axis = axis_of(dim, len(x.shape))
    at = _index_array(name, index).reshape(-1)
    n = x.shape[axis] if x.shape else 1
    if not _all_in(at, -n, n):
        raise IndexError("index out of range in self")
    if isinstance(source, Tensor) and (source.shape or name != "index_fill_"):
        if source.dtype != x.dtype:
            raise RuntimeError(
                f"{name}(): self ({x.dtype}) and source ({source.dtype}) must have the same "
                "scalar type"
            )
        want = (*x.shape[:axis], at.size, *x.shape[axis + 1 :])
        takes_one = name == "index_copy_" and source.shape in {(), (1,)}
        if source.shape != (want if x.shape else ()) and not (takes_one and want in {(), (1,)}):
            there = source.shape[axis : axis + 1]
            raise RuntimeError(
                f"{name}(): Number of indices ({at.size}) should be equal to source.size(dim): "
                f"({there[0]}), for dim: {dim}"
                if there and there != (at.size,)
                else f"{name}(): source tensor shape must match self tensor shape, excluding the "
                f"specified dimension: source has size {list(source.shape)}, self {list(x.shape)}"
            )

    def of(v: Any, s: Any) -> Any:
        if not shape_of(v):
            made = of(structural.reshape(v, (1,)), s)
            return structural.reshape(made, ())
        s = s * scale if not (type(scale) is int and scale == 1) else s
        if shape_of(s):
            s = structural.moveaxis(s, axis, 0)
        return indexing.scatter(v, s, (at,), (axis,), op)

    return composite(label, of, x, source)


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Slices added to slices of an axis; all of several writes count."""
    return _at_axis("index_add_", "IndexAdd", "add", input, dim, index, source, alpha)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Slices of an axis replaced by slices."""
    return _at_axis("index_copy_", "IndexCopy", "set", input, dim, index, source)


def index_fill(input: Tensor, dim: int, index: Tensor, value: object) -> Tensor:
    """Slices of an axis replaced by a number."""
    label = "IndexFill"
    if isinstance(value, Tensor):
        if value.shape:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value.shape)} dimension(s)."
            )
        label = "IndexFillBackward1"
    else:
        value = exact(value, input.dtype)
    return _at_axis("index_fill_", label, "set", input, dim, index, value)


_REDUCTIONS = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}


def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Slices of an axis combined with slices: ``prod``, ``amax`` or ``amin``.

    Raises:
      RuntimeError: another reduction, or ``include_self=False``.
    """
    if reduce not in _REDUCTIONS or not include_self:
        raise RuntimeError(
            "index_reduce(): expected reduce to be one of prod, amax or amin with include_self, "
            f"got {reduce}"
        )
    op = _REDUCTIONS[reduce]
    return _at_axis("index_reduce_", "IndexReduce", op, input, dim, index, source)


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Elements at index tensors replaced, or values added to them."""
    index = plain_index(tuple(indices))
    op = "add" if accumulate else "set"
    return put_at(input, index, values, op)


def _flat(x: object, shape: tuple[int, ...]) -> Any:
    return structural.reshape(structural.broadcast_to(x, shape), (math.prod(shape),))


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask holds, as a vector.

    Raises:
      RuntimeError: the mask is not of truth values.
    """
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    holds = np.asarray(looked_at(mask))
    shape = np.broadcast_shapes(input.shape, holds.shape)
    at = np.flatnonzero(np.broadcast_to(holds, shape))

    def of(x: Any) -> Any:
        return indexing.gather(_flat(x, shape), (at,), (0,))

    return composite("MaskedSelect", of, input)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements where a mask holds replaced by those of another tensor, in order.

    Raises:
      RuntimeError: it has too few.
    """
    shape = np.broadcast_shapes(input.shape, mask.shape)
    size = math.prod(source.shape)
    holds = known(mask)
    if holds is not None and size < np.count_nonzero(np.broadcast_to(holds, shape)):
        raise RuntimeError(
            "masked_scatter_: expected self and source to have same number of elements"
        )

    def of(x: Any, mask: object, s: object) -> Any:
        mask = _flat(mask, shape)
        place = cumulative.cumsum(structural.cast(mask, np.dtype(np.int64)), 0) - 1
        place = ew.minimum(ew.maximum(place, 0), max(size - 1, 0))
        taken = indexing.gather(structural.reshape(s, (size,)), (place,), (0,)) if size else 0
        return structural.reshape(ew.where(mask, taken, _flat(x, shape)), shape)

    return composite("MaskedScatter", of, input, mask, source)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements by their position in C order.

    Raises:
      IndexError: a position is out of bounds.
    """
    at = _index_array("take", index)
    n = math.prod(input.shape)
    if not _all_in(at, -n, n):
        raise IndexError(
            f"out of range: tried to access index {at.max()} on a tensor of {n} elements."
        )
    return composite(
        "Take", lambda x: indexing.gather(structural.reshape(x, (n,)), (at,), (0,)), input
    )


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements replaced by their position in C order, or values added to them."""
    at = _index_array("put_", index).reshape(-1)
    n = math.prod(input.shape)
    if math.prod(source.shape) != at.size:
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {math.prod(source.shape)}, index.numel() = {at.size}"
        )
    op = "add" if accumulate else "set"

    def of(x: Any, s: object) -> Any:
        flat, values = structural.reshape(x, (n,)), structural.reshape(s, (at.size,))
        return structural.reshape(indexing.scatter(flat, values, (at,), (0,), op), input.shape)

    return composite("Put", of, input, source)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements of each line along an axis; index and tensor broadcast along the others."""
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    axis = axis_of(dim, len(input.shape))
    at = _index_array("take_along_dim", indices)
    return composite("Gather", lambda x: fnp.take_along_axis(x, at, axis), input)


def _embedded(label: str, x: Tensor, src: Tensor, part_of: Any) -> Tensor:
    """A tensor with a part of it replaced."""
    places = np.arange(math.prod(x.shape)).reshape(x.shape)
    part = part_of(places)
    at = part.reshape(-1)
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )

    def of(v: Any, s: object) -> Any:
        flat = structural.reshape(v, (math.prod(x.shape),))
        values = structural.reshape(structural.cast(s, x.dtype), (at.size,))
        made = indexing.scatter(flat, values, (at,), (0,), "set", unique_indices=True)
        return structural.reshape(made, x.shape)

    return composite(label, of, x, src)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """One element of an axis replaced."""
    refuse_number(len(input.shape), "select() cannot be applied to a 0-dim tensor.", IndexError)
    axis = axis_of(dim, len(input.shape))
    return _embedded("SelectScatter", input, src, lambda p: np.take(p, index, axis))


def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A slice of an axis replaced."""
    axis = axis_of(dim, len(input.shape))
    index = (slice(None),) * axis + (slice(start, end, step),)
    return _embedded("SliceScatter", input, src, lambda p: p[index])


def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """The diagonal of two axes replaced."""
    return _embedded("DiagonalScatter", input, src, lambda p: np.diagonal(p, offset, dim1, dim2))


def fill_diagonal_(self: Tensor, fill_value: object, wrap: bool = False) -> Tensor:
    """Write a number to the diagonal."""
    mask = np.zeros(self.shape, bool)
    np.fill_diagonal(mask, True, wrap)
    number = exact(fill_value, self.dtype)
    return overwrite(
        "fill_diagonal_",
        self,
        lambda x: composite("FillDiagonal", lambda v: ew.where(mask, number, v), x),
    )


ROWS: tuple[Row, ...] = (
    *rows_of(
        "mf", gather, index_select, masked_select, take, take_along_dim, select_scatter,
        slice_scatter, diagonal_scatter,
    ),
    *rows_of(
        "mfi", scatter, scatter_add, scatter_reduce, index_add, index_copy, index_fill,
        index_reduce, index_put, masked_scatter, put,
    ),
)  # fmt: skip

METHODS: dict[str, Any] = {**methods_of(ROWS), "fill_diagonal_": fill_diagonal_}
FUNCTIONS: dict[str, Any] = functions_of(ROWS)
