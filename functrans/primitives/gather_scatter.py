"""The primitives that read and write at index arrays and are linear.

Here: the records, in the canonical form of ``index_arrays``. Not here: their functions
(``indexing``), scatters that multiply or compare (``scatter_reduce``), the NumPy code
(``index_arrays``).

=================  ================================================================================
``gather``         ``x[indices]``, linear in ``x``
``accumulate``     its transpose: zeros with ``v`` added at the indices
``scatter_add``    ``x`` with ``v`` added, linear in both
``scatter_set``    ``x`` with ``v`` written, linear in both; the last write to a place counts
``is_last_write``  which writes of a ``scatter_set`` count (integers in, booleans out)
``places``         where indices along one axis point, in ``[0, n)``; -1 for one that is dropped
=================  ================================================================================

Under a batch, a batch axis of ``x`` alone is one more axis of the rest; where the indices have a
batch axis too, it is one more indexed axis with the index ``0, 1, ..., size - 1``.

A written value may be one scalar for all places.

Layer: ``primitives``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import AxisMap
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear, linear, nondifferentiable
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.family import move_batch_axes, once_each
from functrans.primitives.index_arrays import (
    Axes,
    Shape,
    all_scalar,
    check_indices,
    check_scatter,
    check_writes,
    index_shape,
    last_writes,
    places_along,
    read_at,
    rest_axes,
    rest_shape,
    write_set,
    write_with,
)
from functrans.primitives.native.index import (
    accumulate_lower,
    gather_lower,
    is_last_write_lower,
    places_lower,
    scatter_add_lower,
    scatter_set_lower,
)
from functrans.primitives.structural import (
    broadcast_to,
    moveaxis,
    reduce_sum,
    reshape,
    without_axis,
)


def _check(name: str, shape: Shape, indices: Sequence[ShapedArray], axes: Axes) -> Shape:
    """The shape ``S + rest`` of what is read or written."""
    if len(indices) != len(axes) or len(set(axes)) != len(axes) or not axes:
        raise ShapeError(
            f"{name}: got {len(indices)} index arrays for the axes {axes}; one per axis is needed"
        )
    if not all(0 <= axis < len(shape) for axis in axes):
        raise ShapeError(f"{name}: axes {axes} do not exist in the shape {shape}")
    return index_shape(name, [index.shape for index in indices]) + rest_shape(shape, axes)


def _check_value(name: str, x: ShapedArray, v: ShapedArray, slot: Shape) -> None:
    if v.shape not in ((), slot):
        raise ShapeError(
            f"{name}: the value has shape {v.shape}; the indices select shape {slot} of {x}"
        )
    if v.dtype != x.dtype:
        raise TypeError(f"{name}: the value is {v}, the array {x}; convert it to one dtype first")


def _fit_value(ct: Array, v: Any) -> Array:
    """The cotangent of a value: summed where the value is one scalar for all places."""
    return reduce_sum(ct, tuple(range(len(shape_of(ct))))) if not shape_of(v) else ct


def batched_indices(
    size: int, indices: Sequence[Any], dims: Sequence[int | None], count: bool
) -> list[Any]:
    """Index arrays with the batch axis in front.

    Args:
      size: extent of the batch axis.
      indices: index arrays, at least one of which has a batch axis.
      dims: their batch axes.
      count: put the index ``0, 1, ..., size - 1`` before them.
    """
    ndims = [len(shape_of(i)) - (dim is not None) for i, dim in zip(indices, dims, strict=True)]
    moved = move_batch_axes(indices, dims, ndims)
    if not count:
        return moved
    return [np.arange(size).reshape((size,) + (1,) * max(ndims)), *moved]


def _batched_value(size: int, v: Array, dim: int | None, slot: Shape, position: int) -> Array:
    """A written value with its batch axis at a position of its shape ``S + rest``.

    A scalar without a batch axis stays one.
    """
    batched = (*slot[:position], size, *slot[position:])
    if dim is None:
        if not shape_of(v):
            return v
        return broadcast_to(reshape(v, (*slot[:position], 1, *slot[position:])), batched)
    if len(shape_of(v)) == 1 and slot:
        ones = (1,) * len(slot)
        return broadcast_to(reshape(v, (*ones[:position], size, *ones[position:])), batched)
    return moveaxis(v, dim, position)


def scatter_batch(
    primitive: Primitive,
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    axes: Axes,
    **params: object,
) -> tuple[Any, Any]:
    """The batching rule of all primitives that write into an array."""
    x, v, *indices = operands
    x_dim, v_dim, *index_dims = dims
    slot = _slot_without(size, x, x_dim, indices, index_dims, axes)
    if x_dim is None:
        x = broadcast_to(x, (size, *shape_of(x)))
        x_dim = 0
    moved = tuple([axis + (axis >= x_dim) for axis in axes])
    if any(dim is not None for dim in index_dims):
        indices = batched_indices(size, indices, index_dims, True)
        v = _batched_value(size, v, v_dim, slot, 0)
        moved = (x_dim, *moved)
    else:
        rest = rest_axes(len(shape_of(x)), moved)
        position = len(slot) - len(rest) + 1 + rest.index(x_dim)
        v = _batched_value(size, v, v_dim, slot, position)
    return bind(primitive, x, v, *indices, axes=moved, **params), (x_dim,)


def _slot_without(
    size: int,
    x: Array,
    x_dim: int | None,
    indices: Sequence[Array],
    index_dims: Sequence[Any],
    axes: Axes,
) -> Shape:
    """The shape ``S + rest`` of one element of the batch."""
    shapes = [without_axis(i, dim) for i, dim in zip(indices, index_dims, strict=True)]
    return index_shape("scatter", shapes) + rest_shape(without_axis(x, x_dim), axes)


# gather -----------------------------------------------------------------------------------------


def _gather_impl(x: Array, *indices: Array | complex, axes: Axes, mode: str) -> tuple[Any, ...]:
    out = read_at(x, indices, axes, mode)
    is_view = x.ndim > len(axes) and all_scalar(indices)
    return (out.copy() if is_view else out,)


def _gather_aval(
    x: ShapedArray, *indices: ShapedArray, axes: Axes, mode: str
) -> tuple[ShapedArray, ...]:
    return (ShapedArray(_check("gather", x.shape, indices, axes), x.dtype),)


def _gather_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axes: Axes, mode: str
) -> tuple[Any, ...]:
    x, *indices = operands
    (ct,) = bind(accumulate_p, cts[0], *indices, shape=shape_of(x), axes=axes, mode=mode)
    return (ct, *(None,) * len(indices))


def _gather_batch(
    size: int,
    operands: Sequence[Array | complex],
    dims: Sequence[int | None],
    *,
    axes: Axes,
    mode: str,
) -> tuple[Any, Any]:
    x, *indices = operands
    x_dim, *index_dims = dims
    if x_dim is None:
        indices = batched_indices(size, indices, index_dims, False)
        return bind(gather_p, x, *indices, axes=axes, mode=mode), (0,)
    moved = tuple([axis + (axis >= x_dim) for axis in axes])
    if any(dim is not None for dim in index_dims):
        indices = batched_indices(size, indices, index_dims, True)
        return bind(gather_p, x, *indices, axes=(x_dim, *moved), mode=mode), (0,)
    (out,) = bind(gather_p, x, *indices, axes=moved, mode=mode)
    rest = rest_axes(len(shape_of(x)), moved)
    return (out,), (len(shape_of(out)) - len(rest) + rest.index(x_dim),)


def _gather_map(x: ShapedArray, *indices: ShapedArray, axes: Axes, mode: str) -> list[AxisMap]:
    first = max([index.ndim for index in indices], default=0)
    rest = rest_axes(x.ndim, axes)
    own = [None if m in axes else first + rest.index(m) for m in range(x.ndim)]
    return [own, *[(None,) * index.ndim for index in indices]]


def _written_map(v: ShapedArray, ndim: int, axes: Axes) -> AxisMap:
    """Of values that are written along some axes of an array."""
    rest = rest_axes(ndim, axes) if v.ndim else ()
    return (*(None,) * (v.ndim - len(rest)), *rest)


def scatter_map(
    x: ShapedArray, v: ShapedArray, *indices: ShapedArray, axes: Axes, **params: object
) -> list[AxisMap]:
    """The ``axis_map`` of primitives that write into an array."""
    own = [range(x.ndim), _written_map(v, x.ndim, axes)]
    return [*own, *[(None,) * index.ndim for index in indices]]


gather_p = Primitive(
    "gather",
    impl=_gather_impl,
    abstract_eval=_gather_aval,
    check=check_indices,
    jvp=linear,
    transpose=_gather_transpose,
    batch=_gather_batch,
    lower=Routine(gather_lower),
    moves=True,
    axis_map=_gather_map,
    indices=1,
    memory="own",
)


# accumulate -------------------------------------------------------------------------------------


def _accumulate_impl(
    v: Array, *indices: Array | complex, shape: Shape, axes: Axes, mode: str
) -> tuple[Any, ...]:
    out = np.zeros(shape, dtype_of(v))
    write_with(np.add, out, v, indices, axes, mode, False)
    return (out,)


def _accumulate_aval(
    v: ShapedArray, *indices: ShapedArray, shape: Shape, axes: Axes, mode: str
) -> tuple[ShapedArray, ...]:
    out = ShapedArray(shape, v.dtype)
    _check_value("accumulate", out, v, _check("accumulate", shape, indices, axes))
    return (out,)


def _accumulate_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, shape: Shape, axes: Axes, mode: str
) -> tuple[Any, ...]:
    v, *indices = operands
    (ct,) = bind(gather_p, cts[0], *indices, axes=axes, mode=mode)
    return (_fit_value(ct, v), *(None,) * len(indices))


def _accumulate_batch(
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    *,
    shape: Shape,
    axes: Axes,
    mode: str,
) -> tuple[Any, Any]:
    v, *indices = operands
    v_dim, *index_dims = dims
    shapes = [without_axis(i, dim) for i, dim in zip(indices, index_dims, strict=True)]
    slot = index_shape("accumulate", shapes) + rest_shape(shape, axes)
    moved = tuple([axis + 1 for axis in axes])
    if any(dim is not None for dim in index_dims):
        indices = batched_indices(size, indices, index_dims, True)
        v = _batched_value(size, v, v_dim, slot, 0)
        moved = (0, *moved)
    else:
        v = _batched_value(size, v, v_dim, slot, len(slot) - len(shape) + len(axes))
    return bind(accumulate_p, v, *indices, shape=(size, *shape), axes=moved, mode=mode), (0,)


def _accumulate_map(
    v: ShapedArray, *indices: ShapedArray, shape: Shape, axes: Axes, mode: str
) -> list[AxisMap]:
    return [_written_map(v, len(shape), axes), *[(None,) * index.ndim for index in indices]]


accumulate_p = Primitive(
    "accumulate",
    impl=_accumulate_impl,
    abstract_eval=_accumulate_aval,
    check=check_indices,
    jvp=linear,
    transpose=_accumulate_transpose,
    batch=_accumulate_batch,
    lower=Routine(accumulate_lower),
    moves=True,
    memory="own",
    axis_map=_accumulate_map,
    work=once_each,
    indices=1,
)


# scatter_add ------------------------------------------------------------------------------------


def scatter_aval(
    x: ShapedArray, v: ShapedArray, *indices: ShapedArray, axes: Axes, **params: object
) -> tuple[ShapedArray, ...]:
    """Abstract evaluation of all primitives that write into an array."""
    _check_value("scatter", x, v, _check("scatter", x.shape, indices, axes))
    return (ShapedArray(x.shape, x.dtype),)


def _scatter_add_impl(
    x: Array, v: Array, *indices: Array, axes: Axes, mode: str, unique_indices: bool
) -> tuple[Any, ...]:
    out = np.array(x, order="C")
    write_with(np.add, out, v, indices, axes, mode, unique_indices)
    return (out,)


def _scatter_add_in_place(
    x: Array, v: Array, *indices: object, axes: Axes, mode: str, unique_indices: bool
) -> tuple[Any, ...]:
    x = np.ascontiguousarray(x)
    write_with(np.add, x, v, indices, axes, mode, unique_indices)
    return (x,)


def _scatter_add_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axes: Axes, mode: str, unique_indices: bool
) -> tuple[Any, ...]:
    (ct,) = cts
    x, v, *indices = operands
    ct_v = None
    if is_linear(v):
        ct_v = _fit_value(bind(gather_p, ct, *indices, axes=axes, mode=mode)[0], v)
    return (ct if is_linear(x) else None, ct_v, *(None,) * len(indices))


def _scatter_add_batch(size: int, operands: list[Any], dims: Any, **params: Any) -> tuple[Any, Any]:
    return scatter_batch(scatter_add_p, size, operands, dims, **params)


scatter_add_p = Primitive(
    "scatter_add",
    impl=_scatter_add_impl,
    abstract_eval=scatter_aval,
    check=check_scatter,
    jvp=linear,
    transpose=_scatter_add_transpose,
    batch=_scatter_add_batch,
    lower=Routine(scatter_add_lower, in_place=0),
    in_place=_scatter_add_in_place,
    moves=True,
    memory="own",
    axis_map=scatter_map,
    work=once_each,
    indices=2,
)


# scatter_set ------------------------------------------------------------------------------------


def _scatter_set_impl(
    x: Array, v: Array, *indices: Array, axes: Axes, mode: str, unique_indices: bool
) -> tuple[Any, ...]:
    out = np.array(x)
    write_set(out, v, indices, axes, mode, unique_indices)
    return (out,)


def _scatter_set_in_place(
    x: Array, v: Array, *indices: Array, axes: Axes, mode: str, unique_indices: bool
) -> tuple[Any, ...]:
    write_set(x, v, indices, axes, mode, unique_indices)
    return (x,)


def _scatter_set_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axes: Axes, mode: str, unique_indices: bool
) -> tuple[Any, ...]:
    """The array's cotangent is 0 where it was overwritten; of the values only the last counts."""
    (ct,) = cts
    x, v, *indices = operands
    ct_x = ct_v = None
    if is_linear(v):  # first, so that the array can be written to after it was read
        (ct_v,) = bind(gather_p, ct, *indices, axes=axes, mode=mode)
        if not unique_indices:
            extents = tuple([shape_of(ct)[axis] for axis in axes])
            (is_last,) = bind(is_last_write_p, *indices, extents=extents, mode=mode)
            ct_v = ew.where(over_rest(is_last, shape_of(ct_v)), ct_v, 0)
        ct_v = _fit_value(ct_v, v)
    if is_linear(x):
        hole = np.zeros((), dtype_of(ct))[()]
        (ct_x,) = bind(
            scatter_set_p, ct, hole, *indices, axes=axes, mode=mode, unique_indices=unique_indices
        )
    return (ct_x, ct_v, *(None,) * len(indices))


def over_rest(x: Array, slot: Shape) -> Array:
    """An array of shape ``S`` with axes of extent 1 for the rest."""
    shape = shape_of(x)
    return reshape(x, shape + (1,) * (len(slot) - len(shape)))


def _scatter_set_batch(
    size: int, operands: Sequence[Array], dims: Any, **params: Any
) -> tuple[Any, Any]:
    return scatter_batch(scatter_set_p, size, operands, dims, **params)


scatter_set_p = Primitive(
    "scatter_set",
    impl=_scatter_set_impl,
    abstract_eval=scatter_aval,
    check=check_scatter,
    jvp=linear,
    transpose=_scatter_set_transpose,
    batch=_scatter_set_batch,
    lower=Routine(scatter_set_lower, in_place=0),
    in_place=_scatter_set_in_place,
    moves=True,
    memory="own",
    axis_map=scatter_map,
    indices=2,
)


# is_last_write ----------------------------------------------------------------------------------


def _is_last_write_impl(*indices: Array, extents: Shape, mode: str) -> tuple[Any, ...]:
    return (last_writes(indices, extents, mode),)


def _is_last_write_aval(
    *indices: ShapedArray, extents: Shape, mode: str
) -> tuple[ShapedArray, ...]:
    return (ShapedArray(index_shape("scatter", [i.shape for i in indices]), np.dtype(bool)),)


def _is_last_write_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, extents: Shape, mode: str
) -> tuple[Any, Any]:
    indices = batched_indices(size, operands, dims, True)
    return bind(is_last_write_p, *indices, extents=(size, *extents), mode=mode), (0,)


is_last_write_p = Primitive(
    "is_last_write",
    impl=_is_last_write_impl,
    abstract_eval=_is_last_write_aval,
    check=check_writes,
    jvp=nondifferentiable,
    batch=_is_last_write_batch,
    lower=Routine(is_last_write_lower),
    reasons=(("transpose", "booleans have no derivative"),),
    indices=0,
    memory="own",
)


# places -----------------------------------------------------------------------------------------


def _places_impl(index: Array, *, shape: Shape, axes: Axes, mode: str) -> tuple[Any, ...]:
    return (places_along(index, shape, axes, mode),)


def _places_aval(
    index: ShapedArray, *, shape: Shape, axes: Axes, mode: str
) -> tuple[ShapedArray, ...]:
    _check("places", shape, [index], axes)
    return (ShapedArray(index.shape, np.dtype(np.int64)),)


def _places_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    return bind(places_p, *operands, **params), (dims[0],)


def _places_map(index: ShapedArray, **params: object) -> list[AxisMap]:
    return [range(index.ndim)]


places_p = Primitive(
    "places",
    impl=_places_impl,
    abstract_eval=_places_aval,
    check=lambda index, *, shape, axes, mode: check_indices(None, index, mode=mode),
    jvp=nondifferentiable,
    batch=_places_batch,
    lower=Routine(places_lower),
    axis_map=_places_map,
    reasons=(("transpose", "indices have no derivative"),),
    indices=0,
    memory="own",
)


PRIMITIVES: tuple[Primitive, ...] = (
    gather_p, accumulate_p, scatter_add_p, scatter_set_p, is_last_write_p, places_p,
)  # fmt: skip
