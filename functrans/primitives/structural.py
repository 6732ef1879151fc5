"""The five linear primitives in which broadcasting and promotion are expressed and undone.

Here: ``cast``, ``reshape``, ``transpose``, ``broadcast_to``, ``reduce_sum``, and ``unbroadcast``,
``moveaxis`` made of them. The rules of all other families are written in these; they use no other
family. Not here: further movement (``movement``), further reductions (``reduction``).

Layer: ``primitives``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import WEAK_DTYPES, ShapedArray, Zero, is_differentiable_dtype
from functrans.core.axes import AxisMap
from functrans.core.byte_order import native_dtype
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, shape_of
from functrans.core.lowering import (
    Expansion,
    IndexMap,
    Pointwise,
    Read,
    Reduction,
    Routine,
    same_place,
)
from functrans.core.primitive import Primitive, linear, nondifferentiable
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives.native.fortran import write_transpose

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number, Numbers

_SMALL = 2048


# cast -------------------------------------------------------------------------------------------


def _cast_impl(x: Array | complex, *, dtype: np.dtype) -> tuple[Any, ...]:
    value = x if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x)
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = value.real if dtype.kind != "b" else value
    return (value.astype(dtype),)


def _cast_aval(x: ShapedArray, *, dtype: np.dtype) -> tuple[ShapedArray, ...]:
    return (ShapedArray(x.shape, dtype),)


def _cast_jvp(
    primals: tuple[Array, ...],
    tangents: tuple[Array, ...],
    outs: tuple[Array, ...],
    *,
    dtype: np.dtype,
) -> tuple[Any, ...]:
    from_dtype = dtype_of(primals[0])
    if is_differentiable_dtype(dtype) and is_differentiable_dtype(from_dtype):
        return bind(cast_p, tangents[0], dtype=dtype)
    return (zeros_like_aval(outs[0]),)


def zeros_like_aval(value: Array) -> Zero:
    """The symbolic zero of a value's aval."""
    from_value = ShapedArray(shape_of(value), dtype_of(value))
    return Zero(from_value)


def _cast_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, dtype: np.dtype
) -> tuple[Any, ...]:
    return (cast(cts[0], operands[0].aval.dtype),)


def _cast_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, dtype: np.dtype
) -> tuple[Any, Any]:
    return bind(cast_p, operands[0], dtype=dtype), dims


def _cast_lower(e: Numbers, x: Number, *, dtype: np.dtype) -> Number:
    return e.cast(x, dtype)


def _cast_expression(x: ShapedArray, *, dtype: np.dtype) -> tuple[Any, ...]:
    part = ".real" if x.dtype.kind == "c" and dtype.kind not in "bc" else ""
    return f"{{0}}{part}.astype({{1}})", (dtype,)


cast_p: Primitive = Primitive(
    "cast",
    impl=_cast_impl,
    abstract_eval=_cast_aval,
    jvp=_cast_jvp,
    transpose=_cast_transpose,
    batch=_cast_batch,
    lower=Pointwise(_cast_lower),
    moves=True,
    expression=_cast_expression,
)


def cast(x: Any, dtype: Any) -> Any:
    """Convert to a dtype; complex to real takes the real part. The same value if it has it."""
    dtype = np.dtype(dtype)
    if isinstance(x, Tracer):
        dtype = native_dtype(dtype)
    own = getattr(x, "dtype", None)
    if isinstance(own, np.dtype) and own == dtype:
        return x
    return bind(cast_p, x, dtype=dtype)[0]


# weaken -----------------------------------------------------------------------------------------


def _weaken_impl(x: Array) -> tuple[Any, ...]:
    return (x.item() if isinstance(x, (np.ndarray, np.generic)) else x,)


def _weaken_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    if x.shape or x.dtype not in WEAK_DTYPES.values():
        raise TypeError(f"weaken: {x} is no number of Python")
    return (ShapedArray((), x.dtype, True),)


def _weaken_transpose(cts: tuple[Array, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    return (cts[0],)


def _weaken_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None]
) -> tuple[Any, ...]:
    return operands, dims


weaken_p: Primitive = Primitive(
    "weaken",
    impl=_weaken_impl,
    abstract_eval=_weaken_aval,
    jvp=linear,
    transpose=_weaken_transpose,
    batch=_weaken_batch,
    lower=IndexMap(same_place),
)
"""A number that went through an array, or is to count as one of Python's, as a Python scalar."""


def weaken(x: Any) -> Any:
    """A traced number of a dtype that Python has as one of Python's numbers."""
    return x if aval_of(x).weak else bind(weaken_p, x)[0]  # type: ignore[union-attr]  # no tape


# reshape ----------------------------------------------------------------------------------------


def _reshape_impl(x: Array | complex, *, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return (np.reshape(x, shape),)


def _reshape_aval(x: ShapedArray, *, shape: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if math.prod(shape) != x.size:
        raise ShapeError(
            f"reshape: cannot reshape {x} of {x.size} elements into {tuple(shape)}; the number of "
            "elements must stay the same"
        )
    return (ShapedArray(shape, x.dtype, x.weak and not shape),)


def _reshape_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return bind(reshape_p, cts[0], shape=operands[0].aval.shape)


def _reshape_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    x = moveaxis(operands[0], dims[0], 0)
    return bind(reshape_p, x, shape=(size, *shape)), (0,)


def _reshape_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, shape: tuple[int, ...]
) -> tuple[Read, ...] | None:
    """Axes of extent 1 come and go, and axes merge or part where the index allows it."""
    old = avals[0].shape
    wanted = [(i, n) for i, n in zip(index, shape, strict=True) if n != 1]
    entries: list[Any] = []
    for extent in reversed(old):
        if extent == 1:
            entries.append(0)
            continue
        position: Any = 0
        scale = 1
        while scale < extent and wanted:
            i, n = wanted.pop()
            position = i * scale + position
            scale *= n
        while scale > extent:  # the part that belongs to the axes before
            parts = divide_exactly(position, extent, scale)
            if parts is None:
                return None
            high, position = parts
            wanted.append((high, scale // extent))
            scale = extent
        if scale != extent:
            return None
        entries.append(position)
    return (Read(0, tuple(reversed(entries))),)


def divide_exactly(position: Any, extent: int, total: int) -> tuple[Any, Any] | None:
    """Quotient and remainder of an index below ``total`` by ``extent``, if both are affine."""
    if total % extent:
        return None
    parts: tuple[Any, Any] | None = (
        divmod(position, extent) if isinstance(position, int) else position.split(extent)
    )
    return parts


def _reshape_map(x: ShapedArray, *, shape: tuple[int, ...]) -> list[AxisMap]:
    """Axes that a reshape leaves as they are: as long, with as many elements before them."""
    found: list[int | None] = []
    places = {}
    before = 1
    for m, n in enumerate(shape):
        if n != 1:
            places[before, n] = m
        before *= n
    before = 1
    for n in x.shape:
        found.append(places.get((before, n)) if n != 1 else None)
        before *= n
    return [found]


reshape_p: Primitive = Primitive(
    "reshape",
    impl=_reshape_impl,
    abstract_eval=_reshape_aval,
    jvp=linear,
    transpose=_reshape_transpose,
    batch=_reshape_batch,
    lower=IndexMap(_reshape_lower, is_view=True),
    axis_map=_reshape_map,
    expression=lambda x, *, shape: ("{0}.reshape({1})", (shape,)),
)


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    """Row-major reshape to a complete shape (no -1); the same value if it has it."""
    if shape_of(x) == shape:
        return x
    return bind(reshape_p, x, shape=shape)[0]


# view -------------------------------------------------------------------------------------------


def _view_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return bind(view_p, cts[0], shape=operands[0].aval.shape)


def _view_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    return bind(view_p, moveaxis(operands[0], dims[0], 0), shape=(size, *shape)), (0,)


def _view_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, shape: tuple[int, ...]
) -> None:
    """Never read through: it is the operand's memory."""


view_p: Primitive = Primitive(
    "view",
    impl=_reshape_impl,
    abstract_eval=_reshape_aval,
    jvp=linear,
    transpose=_view_transpose,
    batch=_view_batch,
    lower=IndexMap(_view_lower, is_view=True),
    axis_map=_reshape_map,
)
"""A reshape whose operand is stored: the compiler's, which changes the shapes of loops by it."""


# transpose --------------------------------------------------------------------------------------


def _transpose_impl(x: Array, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    return (np.asarray(x).transpose(axes),)


def _transpose_aval(x: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    if sorted(axes) != list(range(x.ndim)):
        raise ShapeError(f"transpose: axes {axes} are no permutation of the {x.ndim} axes of {x}")
    return (ShapedArray(tuple(x.shape[axis] for axis in axes), x.dtype),)


def inverse_permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes another one."""
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


def _transpose_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    return bind(transpose_p, cts[0], axes=inverse_permutation(axes))


def _transpose_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, Any]:
    (dim,) = dims
    moved = tuple(axis + (axis >= dim) for axis in axes)
    return bind(transpose_p, operands[0], axes=(dim, *moved)), (0,)


def _transpose_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, axes: tuple[int, ...]
) -> tuple[Read, ...]:
    inverse = inverse_permutation(axes)
    return (Read(0, tuple([index[i] for i in inverse])),)


def _is_wide(avals: Any, *, axes: tuple[int, ...]) -> bool:
    """Whether lanes would be far apart in the operand: tiles are copied then."""
    shape = avals[0].shape
    last = len(axes) - 1
    rows = shape[axes[-1]] if axes else 1
    return bool(axes) and axes[-1] != last and rows >= 32 and shape[last] >= 32


transpose_p: Primitive = Primitive(
    "transpose",
    impl=_transpose_impl,
    abstract_eval=_transpose_aval,
    jvp=linear,
    transpose=_transpose_transpose,
    batch=_transpose_batch,
    lower=IndexMap(_transpose_lower, routine=Routine(write_transpose), prefers_routine=_is_wide),
    expression=lambda x, *, axes: ("{0}.transpose({1})", (axes,)),
)


def transpose(x: Any, axes: tuple[int, ...]) -> Any:
    """Permute axes; the same value for the identity."""
    if axes == tuple(range(len(axes))):
        return x
    return bind(transpose_p, x, axes=axes)[0]


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Move one axis; both positions are non-negative."""
    if source == destination:
        return x
    axes = [axis for axis in range(len(shape_of(x))) if axis != source]
    axes.insert(destination, source)
    return bind(transpose_p, x, axes=tuple(axes))[0]


def front(size: int, x: Array, dim: int | None) -> Array:
    """An operand with its batch axis in front; one that has none is broadcast."""
    return broadcast_to(x, (size, *shape_of(x))) if dim is None else moveaxis(x, dim, 0)


def to_front(size: int, operands: Any, dims: Any) -> list[Any]:
    """``front`` of each."""
    return [front(size, x, dim) for x, dim in zip(operands, dims, strict=True)]


def without_axis(x: Array, dim: int | None) -> tuple[int, ...]:
    """The shape without the batch axis."""
    shape = shape_of(x)
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


# broadcast_to -----------------------------------------------------------------------------------


def _broadcast_to_impl(x: Array, *, shape: tuple[int, ...]) -> tuple[Any, ...]:
    if math.prod(shape) <= _SMALL:  # np.broadcast_to costs 3 us, filling a small array 0.5 us
        out = np.empty(shape, dtype_of(x))
        out[...] = x
        return (out,)
    return (np.broadcast_to(x, shape),)


def _broadcast_to_aval(x: ShapedArray, *, shape: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    padded = (1,) * (len(shape) - x.ndim) + x.shape
    if len(shape) < x.ndim or any(
        have not in (1, want) for have, want in zip(padded, shape, strict=True)
    ):
        raise ShapeError(
            f"broadcast_to: {x} does not broadcast to {tuple(shape)}; extents must be equal or 1, "
            "counted from the last axis"
        )
    return (ShapedArray(shape, x.dtype),)


def _broadcast_to_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return (sum_to_shape(cts[0], operands[0].aval.shape),)


def _broadcast_to_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    x = moveaxis(operands[0], dims[0], 0)
    own = shape_of(x)[1:]
    x = reshape(x, (size, *(1,) * (len(shape) - len(own)), *own))
    return bind(broadcast_to_p, x, shape=(size, *shape)), (0,)


def _broadcast_to_lower(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, *, shape: tuple[int, ...]
) -> tuple[Read, ...]:
    old = avals[0].shape
    tail = index[len(index) - len(old) :]
    return (Read(0, tuple([0 if n == 1 else i for i, n in zip(tail, old, strict=True)])),)


broadcast_to_p: Primitive = Primitive(
    "broadcast_to",
    impl=_broadcast_to_impl,
    abstract_eval=_broadcast_to_aval,
    jvp=linear,
    transpose=_broadcast_to_transpose,
    batch=_broadcast_to_batch,
    lower=IndexMap(_broadcast_to_lower),
)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast as NumPy does; the same value if it has the shape."""
    if shape_of(x) == shape:
        return x
    return bind(broadcast_to_p, x, shape=shape)[0]


# reduce_sum -------------------------------------------------------------------------------------


_HALF = np.dtype(np.float16)


def _reduce_sum_impl(x: Array, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    dtype = dtype_of(x)
    if (
        dtype is _HALF
    ):  # as in machine code; NumPy rounds each sum unless it runs along the last axis
        return (np.add.reduce(x, axis=axes, dtype=np.float32).astype(_HALF),)
    return (np.add.reduce(x, axis=axes, dtype=dtype),)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without some axes."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _reduce_sum_aval(x: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    return (ShapedArray(reduced_shape(x.shape, axes), x.dtype),)


def _reduce_sum_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    return (expand_reduced(cts[0], operands[0].aval.shape, axes),)


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after a reduction over ``axes`` that keeps them, with extent 1."""
    return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])


def expand_reduced(x: Operand, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Bring a result of a reduction over ``axes`` back to the shape before it."""
    if not axes:
        return x
    return broadcast_to(reshape(x, kept_shape(shape, axes)), shape)


def batched_axes(axes: tuple[int, ...], dim: int) -> tuple[tuple[int, ...], int]:
    """Axes of a reduction after a batch axis was put in, and where the batch axis ends up."""
    moved = tuple(axis + (axis >= dim) for axis in axes)
    return moved, dim - sum(axis < dim for axis in moved)


def _reduce_sum_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, Any]:
    moved, out_dim = batched_axes(axes, dims[0])
    return bind(reduce_sum_p, operands[0], axes=moved), (out_dim,)


def _reduce_sum_expression(x: ShapedArray, *, axes: tuple[int, ...]) -> Any:
    if x.dtype == _HALF:
        return None
    return "{1}({0})", (partial(np.add.reduce, axis=axes, dtype=x.dtype),)


reduce_sum_p: Primitive = Primitive(
    "reduce_sum",
    impl=_reduce_sum_impl,
    abstract_eval=_reduce_sum_aval,
    jvp=linear,
    transpose=_reduce_sum_transpose,
    batch=_reduce_sum_batch,
    lower=Reduction("sum"),
    moves=True,
    expression=_reduce_sum_expression,
)


def reduce_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over axes in the operand's own dtype; the same value for no axes."""
    if not axes:
        return x
    return bind(reduce_sum_p, x, axes=axes)[0]


# copy -------------------------------------------------------------------------------------------


def _copy_impl(x: Array) -> tuple[Any, ...]:
    return (np.array(x),)


def _copy_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    return (x.strong(),)


def _copy_transpose(cts: tuple[Any, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(cts)


def _copy_batch(size: int, operands: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
    return bind(copy_p, operands[0]), dims


copy_p: Primitive = Primitive(
    "copy",
    impl=_copy_impl,
    abstract_eval=_copy_aval,
    jvp=linear,
    transpose=_copy_transpose,
    batch=_copy_batch,
    lower=IndexMap(same_place),
    memory="own",
)
"""The same elements in memory of their own: a result that is an argument, in compiled programs."""


# stop_gradient ----------------------------------------------------------------------------------


def _stop_impl(x: Array) -> tuple[Any, ...]:
    return (x,)


def _stop_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    return (x,)


def _stop_batch(size: int, operands: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, ...]:
    return bind(stop_gradient_p, operands[0]), dims


stop_gradient_p = Primitive(
    "stop_gradient",
    impl=_stop_impl,
    abstract_eval=_stop_aval,
    jvp=nondifferentiable,
    batch=_stop_batch,
    lower=IndexMap(same_place),
    reasons=(("transpose", "its derivative is zero by definition"),),
)


def _unrecorded_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None]
) -> tuple[Any, ...]:
    return bind(unrecorded_p, operands[0]), dims


def _unrecorded_transpose(cts: object, operands: object) -> tuple[Any]:
    return (None,)


unrecorded_p = Primitive(
    "unrecorded",
    impl=_stop_impl,
    abstract_eval=_stop_aval,
    jvp=linear,
    transpose=_unrecorded_transpose,
    batch=_unrecorded_batch,
    lower=IndexMap(same_place),
)
"""What ``no_grad`` makes of a value: a constant of reverse mode; tangents go on in forward mode."""


def _overwritten_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None]
) -> tuple[Any, Any]:
    moved = [
        x if dim is None else moveaxis(x, dim, 0) for x, dim in zip(operands, dims, strict=True)
    ]
    whole = (size, *shape_of(moved[dims[0] is None])[1:])
    return bind(overwritten_p, *[broadcast_to(x, whole) for x in moved]), (0,)


overwritten_p = Primitive(
    "overwritten",
    impl=lambda new, old: (new,),
    abstract_eval=lambda new, old: (ShapedArray(new.shape, new.dtype),),
    jvp=linear,
    transpose=lambda cts, operands: (None, cts[0]),
    batch=_overwritten_batch,
    lower=Expansion(lambda new, old: tuple(bind(unrecorded_p, new))),
    moves=True,
    axis_map=lambda new, old: [range(new.ndim)] * 2,
)
"""What a write in ``no_grad`` leaves: the first operand, whose tangents go on in forward mode;
reverse mode goes to the second, which was there before. Both have one shape and dtype."""


def sum_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: sum over the axes that a broadcast from ``shape`` made or stretched."""
    have = shape_of(x)
    if have == shape:
        return x
    lead = len(have) - len(shape)
    axes = tuple(
        axis
        for axis, extent in enumerate(have)
        if axis < lead or (shape[axis - lead] == 1 and extent != 1)
    )
    return reshape(reduce_sum(x, axes), shape)


def unbroadcast(ct: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Bring a cotangent back to the aval of a broadcast or promoted operand (sum, then cast)."""
    return cast(sum_to_shape(ct, shape), dtype)


def normalize_axis(axis: Any, ndim: int, name: str) -> int:
    """A non-negative axis.

    Raises:
      AxisError: the axis is out of range.
    """
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim, name)
    return index % ndim if ndim else 0


PRIMITIVES: tuple[Primitive, ...] = (
    cast_p, weaken_p, reshape_p, view_p, transpose_p, broadcast_to_p, reduce_sum_p, copy_p,
    stop_gradient_p, unrecorded_p, overwritten_p,
)  # fmt: skip
