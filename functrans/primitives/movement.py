"""Movement primitives: joining, splitting, padding, reversing.

Here: ``concatenate`` and ``split``, ``stack`` and ``unstack`` (pairs of mutual transposes),
``pad``, ``reverse``, and ``roll``, ``expand_dims`` made of them. Not here: reshape,
transpose and broadcast (``structural``), basic indexing (``slicing``), index arrays (``indexing``).

Joining any number of operands is one equation, and so is its transpose; the work and the memory are
linear in the number of operands. The primitives want one dtype; the functions convert.

Layer: ``primitives``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.core.avals import PYTHON_SCALARS, ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import IndexMap, Read, Routine
from functrans.core.primitive import Primitive, is_linear, linear
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives.native.fortran import move
from functrans.primitives.slicing import BasicIndex, basic_places, embed, slice_index, slice_update
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    normalize_axis,
    reduce_sum,
    reshape,
    to_front,
)

PadConfig = tuple[tuple[int, int, int], ...]


def along_axis(axis: int, entry: slice) -> BasicIndex:
    """The basic index that applies a slice to one axis."""
    return BasicIndex((*(slice(None),) * axis, entry))


def _same_dtype(name: str, avals: Sequence[ShapedArray]) -> np.dtype:
    """The one dtype of all operands."""
    dtypes = {aval.dtype for aval in avals}
    if len(dtypes) > 1:
        raise TypeError(
            f"{name}: operands have dtypes {', '.join(sorted(map(str, dtypes)))}; convert them to "
            "one dtype first"
        )
    return dtypes.pop()


def common_dtype(arrays: Sequence[Any]) -> np.dtype:
    """NumPy's common dtype of any number of arrays; Python scalars give way."""
    strong = {dtype_of(x) for x in arrays if type(x) not in PYTHON_SCALARS}
    weak = {type(x) for x in arrays if type(x) in PYTHON_SCALARS}
    return np.result_type(*strong, *(kind(0) for kind in weak))


def _with_dtype(arrays: Sequence[Any], dtype: np.dtype | None) -> list[Any]:
    """The arrays in one dtype."""
    if dtype is None:
        dtype = common_dtype(arrays)
    return [cast(x, dtype) for x in arrays]


def _instantiated(cts: Sequence[Any]) -> list[Any]:
    """Cotangents with symbolic zeros as arrays, one array for all that are alike."""
    zeros: dict[Any, Any] = {}
    results = []
    for ct in cts:
        if type(ct) is Zero:
            aval = ct.aval
            if aval not in zeros:
                zeros[aval] = np.broadcast_to(np.zeros((), aval.dtype), aval.shape)
            ct = zeros[aval]  # the array in place of the symbol
        results.append(ct)
    return results


# concatenate ------------------------------------------------------------------------------------


def _concatenate_impl(*arrays: Array, axis: int) -> tuple[Any, ...]:
    return (np.concatenate(arrays, axis),)


def _concatenate_aval(*avals: ShapedArray, axis: int) -> tuple[ShapedArray, ...]:
    dtype = _same_dtype("concatenate", avals)
    first = avals[0].shape
    head, tail = first[:axis], first[axis + 1 :]
    extent = 0
    for i, aval in enumerate(avals):
        shape = aval.shape
        if len(shape) != len(first) or shape[:axis] != head or shape[axis + 1 :] != tail:
            raise ShapeError(
                f"concatenate: operand {i} has shape {shape}, operand 0 has {first}; all extents "
                f"but that of axis {axis} must be equal"
            )
        extent += shape[axis]
    return (ShapedArray((*head, extent, *tail), dtype),)


def _concatenate_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axis: int
) -> tuple[Any, ...]:
    """Each operand's cotangent is its part of the result's: one ``split`` for all of them."""
    flags = [is_linear(x) for x in operands]
    sizes = tuple([shape_of(x)[axis] for x in operands])
    if sum(flags) == 1:
        position = flags.index(True)
        start = sum(sizes[:position])
        part = slice_index(cts[0], along_axis(axis, slice(start, start + sizes[position])))
        return tuple([part if flag else None for flag in flags])
    parts = bind(split_p, cts[0], sizes=sizes, axis=axis)
    return tuple([part if flag else None for part, flag in zip(parts, flags, strict=True)])


def _concatenate_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, axis: int
) -> tuple[Any, Any]:
    return bind(concatenate_p, *to_front(size, operands, dims), axis=axis + 1), (0,)


def _concatenate_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, axis: int
) -> tuple[Read, ...]:
    reads = []
    start = 0
    for operand, aval in enumerate(avals):
        place = index[axis] - start
        entries = (*index[:axis], place, *index[axis + 1 :])
        reads.append(Read(operand, entries, ((place, aval.shape[axis]),)))
        start += aval.shape[axis]
    return tuple(reads)


def _concatenate_routine(
    e: Any, operands: Sequence[Any], results: Sequence[Any], *, axis: int
) -> None:
    """One part after the other."""
    (out,) = results
    start = 0
    for part in operands:
        source = part.strides
        target = out.strides
        place = replace(out, pointer=e.address(out, e.b.index(start * target[axis])))
        move(e, part, place, part.shape, source, target)
        start += part.shape[axis]


concatenate_p = Primitive(
    "concatenate",
    impl=_concatenate_impl,
    abstract_eval=_concatenate_aval,
    jvp=linear,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    lower=IndexMap(_concatenate_lower, routine=Routine(_concatenate_routine)),
    memory="own",
)


def concatenate(arrays: Sequence[Any], axis: int = 0, dtype: DTypeLike | None = None) -> Any:
    """Join arrays along an axis they have, in one equation.

    Args:
      arrays: at least one, of equal shape but for ``axis``.
      axis: may be negative.
      dtype: of the result; NumPy's common dtype by default.

    Raises:
      ShapeError: there are no arrays, or their shapes do not fit.
      AxisError: the arrays have no such axis.
    """
    if not arrays:
        raise ShapeError("concatenate: got no arrays; at least one is needed")
    axis = normalize_axis(axis, len(shape_of(arrays[0])), "axis")
    parts = _with_dtype(arrays, None if dtype is None else np.dtype(dtype))
    return bind(concatenate_p, *parts, axis=axis)[0]


# split ------------------------------------------------------------------------------------------


def _split_impl(x: Array, *, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    head = (slice(None),) * axis
    ends = accumulate(sizes)
    return tuple([x[(*head, slice(end - n, end))] for end, n in zip(ends, sizes, strict=True)])


def _split_aval(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> tuple[ShapedArray, ...]:
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        raise ShapeError(
            f"split: sizes {sizes} do not add up to the extent {x.shape[axis]} of axis {axis} of "
            f"{x}"
        )
    head, tail = x.shape[:axis], x.shape[axis + 1 :]
    return tuple([ShapedArray((*head, n, *tail), x.dtype) for n in sizes])


def _split_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, sizes: tuple[int, ...], axis: int
) -> tuple[Any, ...]:
    return bind(concatenate_p, *_instantiated(cts), axis=axis)


def _split_batch(
    size: int, operands: Any, dims: Sequence[Any], *, sizes: tuple[int, ...], axis: int
) -> tuple[Any, Any]:
    (dim,) = dims
    moved = axis + (axis >= dim)
    return bind(split_p, operands[0], sizes=sizes, axis=moved), (dim,) * len(sizes)


def _split_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, sizes: tuple[int, ...], axis: int
) -> tuple[Read, ...]:
    start = sum(sizes[:output])
    return (Read(0, (*index[:axis], index[axis] + start, *index[axis + 1 :])),)


split_p = Primitive(
    "split",
    impl=_split_impl,
    abstract_eval=_split_aval,
    jvp=linear,
    transpose=_split_transpose,
    batch=_split_batch,
    lower=IndexMap(_split_lower),
)


def split(x: Any, sizes: Sequence[int], axis: int = 0) -> tuple[Any, ...]:
    """Cut an array into consecutive parts along an axis, in one equation.

    Args:
      x: array.
      sizes: extent of each part; they add up to the extent of the axis.
      axis: may be negative.

    Raises:
      ShapeError: the sizes do not add up.
    """
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    sizes = tuple([operator.index(n) for n in sizes])
    if sum(sizes) != shape_of(x)[axis] or min(sizes, default=0) < 0:
        _split_aval(ShapedArray(shape_of(x), dtype_of(x)), sizes=sizes, axis=axis)
    return bind(split_p, x, sizes=sizes, axis=axis) if sizes else ()


# stack ------------------------------------------------------------------------------------------


def _stack_impl(*arrays: Array, axis: int) -> tuple[Any, ...]:
    shape = shape_of(arrays[0])
    dtype = dtype_of(arrays[0])
    if not shape:
        return (np.array(arrays, dtype),)
    out = np.empty((*shape[:axis], len(arrays), *shape[axis:]), dtype)
    front = np.moveaxis(out, axis, 0) if axis else out
    for i, x in enumerate(arrays):
        if x.shape != shape:
            raise _stack_error(i, x.shape, shape)
        front[i] = x
    return (out,)


def _stack_error(i: int, shape: tuple[int, ...], first: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"stack: operand {i} has shape {shape}, operand 0 has {first}; all shapes must be equal"
    )


def _stack_aval(*avals: ShapedArray, axis: int) -> tuple[ShapedArray, ...]:
    dtype = _same_dtype("stack", avals)
    shape = avals[0].shape
    for i, aval in enumerate(avals):
        if aval.shape != shape:
            raise _stack_error(i, aval.shape, shape)
    return (ShapedArray((*shape[:axis], len(avals), *shape[axis:]), dtype),)


def _stack_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axis: int
) -> tuple[Any, ...]:
    flags = [is_linear(x) for x in operands]
    if sum(flags) == 1:
        position = flags.index(True)
        part = slice_index(cts[0], BasicIndex((*(slice(None),) * axis, position)))
        return tuple([part if flag else None for flag in flags])
    parts = bind(unstack_p, cts[0], axis=axis)
    return tuple([part if flag else None for part, flag in zip(parts, flags, strict=True)])


def _stack_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, axis: int
) -> tuple[Any, Any]:
    return bind(stack_p, *to_front(size, operands, dims), axis=axis + 1), (0,)


def _stack_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, axis: int
) -> tuple[Read, ...]:
    entries = (*index[:axis], *index[axis + 1 :])
    return tuple(
        [Read(operand, entries, ((index[axis] - operand, 1),)) for operand in range(len(avals))]
    )


def _stack_routine(e: Any, operands: Sequence[Any], results: Sequence[Any], *, axis: int) -> None:
    """One slice after the other."""
    (out,) = results
    steps = out.strides
    kept = (*steps[:axis], *steps[axis + 1 :])
    for number, part in enumerate(operands):
        place = replace(out, pointer=e.address(out, e.b.index(number * steps[axis])))
        move(e, part, place, part.shape, part.strides, kept)


stack_p = Primitive(
    "stack",
    impl=_stack_impl,
    abstract_eval=_stack_aval,
    jvp=linear,
    transpose=_stack_transpose,
    batch=_stack_batch,
    lower=IndexMap(_stack_lower, routine=Routine(_stack_routine)),
    memory="own",
)


def stack(arrays: Sequence[Any], axis: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Join arrays of one shape along a new axis, in one equation.

    Args:
      arrays: at least one; scalars are arrays of shape ``()``.
      axis: position of the new axis in the result; may be negative.
      dtype: of the result; NumPy's common dtype by default.

    Raises:
      ShapeError: there are no arrays, or their shapes differ.
      AxisError: the result has no such axis.
    """
    if not arrays:
        raise ShapeError("stack: got no arrays; at least one is needed")
    shape = shape_of(arrays[0])
    axis = normalize_axis(axis, len(shape) + 1, "axis")
    if not shape:
        for i, x in enumerate(arrays):
            if shape_of(x) != ():
                raise _stack_error(i, shape_of(x), shape)
    parts = _with_dtype(arrays, None if dtype is None else np.dtype(dtype))
    return bind(stack_p, *parts, axis=axis)[0]


# unstack ----------------------------------------------------------------------------------------


def _unstack_impl(x: Array, *, axis: int) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0) if axis else x)


def _unstack_aval(x: ShapedArray, *, axis: int) -> tuple[ShapedArray, ...]:
    part = ShapedArray(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)
    return (part,) * x.shape[axis]


def _unstack_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, axis: int
) -> tuple[Any, ...]:
    return bind(stack_p, *_instantiated(cts), axis=axis)


def _unstack_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, axis: int
) -> tuple[Any, Any]:
    (dim,) = dims
    moved = axis + (axis >= dim)
    outs = bind(unstack_p, operands[0], axis=moved)
    return outs, (dim - (moved < dim),) * len(outs)


def _unstack_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, axis: int
) -> tuple[Read, ...]:
    return (Read(0, (*index[:axis], output, *index[axis:])),)


unstack_p = Primitive(
    "unstack",
    impl=_unstack_impl,
    abstract_eval=_unstack_aval,
    jvp=linear,
    transpose=_unstack_transpose,
    batch=_unstack_batch,
    lower=IndexMap(_unstack_lower),
)


def unstack(x: Operand, axis: int = 0) -> tuple[Any, ...]:
    """All slices of an array along an axis, without that axis, in one equation."""
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    return bind(unstack_p, x, axis=axis) if shape_of(x)[axis] else ()


# pad --------------------------------------------------------------------------------------------


def _pad_axis(extent: int, low: int, high: int, interior: int) -> tuple[int, slice, slice]:
    """Extent after padding, which elements stay, and where they go.

    Element ``k`` goes to ``low + k * (interior + 1)``, and is dropped where that is outside.
    """
    out = low + high + extent + max(extent - 1, 0) * interior
    if interior < 0 or out < 0:
        raise ShapeError(
            f"pad: (low, high, interior) = {(low, high, interior)} does not fit an axis of extent "
            f"{extent}; interior and the resulting extent {out} must not be negative"
        )
    step = interior + 1
    first = max(0, -(low // step))
    last = min(extent, -((low - out) // step))
    if last <= first:
        return out, slice(0, 0), slice(0, 0)
    source = slice(None) if last - first == extent else slice(first, last)
    start = low + first * step
    end = low + (last - 1) * step + 1
    target = slice(None) if end - start == out and step == 1 else slice(start, end, step)
    return out, source, target


def _pad_places(
    shape: tuple[int, ...], config: PadConfig
) -> tuple[tuple[int, ...], BasicIndex, BasicIndex]:
    """Shape after padding, index of the elements that stay, index of where they go."""
    if len(shape) != len(config):
        raise ShapeError(
            f"pad: got {len(config)} entries (low, high, interior) for an array of shape {shape}; "
            "one per axis is needed"
        )
    axes = [_pad_axis(n, *entry) for n, entry in zip(shape, config, strict=True)]
    return (
        tuple([out for out, _, _ in axes]),
        BasicIndex(tuple([source for _, source, _ in axes])),
        BasicIndex(tuple([target for _, _, target in axes])),
    )


def _pad_impl(x: Array, value: Array, *, config: PadConfig) -> tuple[Any, ...]:
    shape, source, target = _pad_places(shape_of(x), config)
    out = np.full(shape, value, dtype_of(x))
    out[target.entries] = np.asarray(x)[source.entries]
    return (out,)


def _pad_aval(x: ShapedArray, value: ShapedArray, *, config: PadConfig) -> tuple[ShapedArray, ...]:
    _same_dtype("pad", (x, value))
    if value.shape:
        raise ShapeError(f"pad: the padding value must be a scalar, got {value}")
    return (ShapedArray(_pad_places(x.shape, config)[0], x.dtype),)


def _pad_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, config: PadConfig
) -> tuple[Any, ...]:
    (ct,) = cts
    x, value = operands
    shape = shape_of(x)
    _, source, target = _pad_places(shape, config)
    ct_x = None
    if is_linear(x):
        ct_x = slice_index(ct, target)
        if shape_of(ct_x) != shape:
            ct_x = embed(ct_x, source, shape)
    ct_value = None
    if is_linear(value):
        margin = slice_update(ct, np.zeros((), dtype_of(ct))[()], target)
        ct_value = reduce_sum(margin, tuple(range(len(shape))))
    return (ct_x, ct_value)


def _pad_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, config: PadConfig
) -> tuple[Any, Any]:
    x, value = operands
    x_dim, value_dim = dims
    if value_dim is None:
        moved = (*config[:x_dim], (0, 0, 0), *config[x_dim:])
        return bind(pad_p, x, value, config=moved), (x_dim,)
    (x,) = to_front(size, (x,), (x_dim,))
    shape, source, target = _pad_places(shape_of(x), ((0, 0, 0), *config))
    filled = broadcast_to(reshape(value, (size,) + (1,) * len(config)), shape)
    return (slice_update(filled, slice_index(x, source), target),), (0,)


def _pad_lower(
    index: tuple[Any, ...], avals: Any, output: int, *, config: PadConfig
) -> tuple[Read, ...] | None:
    entries = []
    conditions = []
    for i, extent, (low, _, interior) in zip(index, avals[0].shape, config, strict=True):
        place = i - low
        if interior:
            parts = (
                divmod(place, interior + 1) if isinstance(place, int) else place.split(interior + 1)
            )
            if parts is None:
                return None
            place, rest = parts
            conditions.append((rest, 1))
        entries.append(place)
        conditions.append((place, extent))
    return (Read(0, tuple(entries), tuple(conditions)), Read(1, ()))


def _pad_routine(
    e: Any, operands: Sequence[Any], results: Sequence[Any], *, config: PadConfig
) -> None:
    x, value = operands
    (out,) = results
    e.fill(out, e.read(value, ()))
    _, source, target = _pad_places(x.shape, config)
    read = basic_places(source, x.shape)
    written = basic_places(target, out.shape)
    with e.each(target.result_shape(out.shape)) as position:

        def places(axes: Any) -> list[Any]:
            return [
                e.b.add(e.b.mul(position[axis], e.b.index(step)), e.b.index(start))
                for start, step, _, axis in axes
            ]

        e.write(out, places(written), e.read(x, places(read)))


pad_p = Primitive(
    "pad",
    impl=_pad_impl,
    abstract_eval=_pad_aval,
    jvp=linear,
    transpose=_pad_transpose,
    batch=_pad_batch,
    lower=IndexMap(_pad_lower, routine=Routine(_pad_routine)),
    memory="own",
)


def pad(x: Any, value: Any, config: Sequence[Sequence[int]]) -> Any:
    """Pad with a value before, after and between the elements of each axis.

    Args:
      x: array.
      value: scalar, converted to the dtype of ``x``.
      config: per axis ``(low, high, interior)``; negative ``low`` and ``high`` crop.

    Raises:
      ShapeError: the entries do not fit the shape.
    """
    entries = tuple([(int(low), int(high), int(gap)) for low, high, gap in config])
    dtype = dtype_of(x)
    value = dtype.type(value) if type(value) in PYTHON_SCALARS else cast(value, dtype)
    return bind(pad_p, x, value, config=entries)[0]


# reverse ----------------------------------------------------------------------------------------


def _reverse_impl(x: Array, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    backwards = slice(None, None, -1)
    return (x[tuple([backwards if a in axes else slice(None) for a in range(x.ndim)])],)


def _reverse_aval(x: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    return (ShapedArray(x.shape, x.dtype),)


def _reverse_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    return bind(reverse_p, cts[0], axes=axes)


def _reverse_batch(
    size: int, operands: Any, dims: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    (dim,) = dims
    moved = tuple([axis + (axis >= dim) for axis in axes])
    return bind(reverse_p, operands[0], axes=moved), dims


def _reverse_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, axes: tuple[int, ...]
) -> tuple[Read, ...]:
    shape = avals[0].shape
    entries = [i * -1 + (shape[a] - 1) if a in axes else i for a, i in enumerate(index)]
    return (Read(0, tuple(entries)),)


reverse_p = Primitive(
    "reverse",
    impl=_reverse_impl,
    abstract_eval=_reverse_aval,
    jvp=linear,
    transpose=_reverse_transpose,
    batch=_reverse_batch,
    lower=IndexMap(_reverse_lower),
)


def reverse(x: Any, axes: Sequence[int]) -> Any:
    """Reverse the order of elements along axes; the same value for no axes."""
    ndim = len(shape_of(x))
    normal = tuple(sorted({normalize_axis(axis, ndim, "axes") for axis in axes}))
    return bind(reverse_p, x, axes=normal)[0] if normal else x


# composites -------------------------------------------------------------------------------------


def roll(x: Any, shifts: Sequence[int], axes: Sequence[int]) -> Any:
    """Shift cyclically along axes by static amounts, as ``np.roll``; axes may repeat."""
    shape = shape_of(x)
    total: dict[int, int] = {}
    for shift, axis in zip(shifts, axes, strict=True):
        axis = normalize_axis(axis, len(shape), "axis")  # made non-negative
        total[axis] = total.get(axis, 0) + operator.index(shift)
    for axis, shift in total.items():
        amount = shift % shape[axis] if shape[axis] else 0
        if amount:
            cut = shape[axis] - amount
            head = slice_index(x, along_axis(axis, slice(0, cut)))
            tail = slice_index(x, along_axis(axis, slice(cut, None)))
            x = concatenate((tail, head), axis)
    return x


def expand_dims(x: Any, axes: Sequence[int]) -> Array:
    """Put axes of extent 1 at positions of the result, as ``np.expand_dims``."""
    shape = shape_of(x)
    ndim = len(shape) + len(axes)
    normal = {normalize_axis(axis, ndim, "axis") for axis in axes}
    if len(normal) != len(axes):
        raise ShapeError(f"expand_dims: axes {tuple(axes)} name a position twice")
    extents = iter(shape)
    return reshape(x, tuple([1 if i in normal else next(extents) for i in range(ndim)]))


PRIMITIVES: tuple[Primitive, ...] = (concatenate_p, split_p, stack_p, unstack_p, pad_p, reverse_p)
