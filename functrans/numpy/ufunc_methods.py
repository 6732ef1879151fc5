"""The methods of ufuncs on traced values: reduce, accumulate, outer, at, reduceat.

Here: ``UFUNC_METHODS``. Where a ufunc has a reduction of its own (``np.add.reduce`` is a sum) that
is used; the others are applied one element after the other, as NumPy defines it. Not here: the
ufuncs themselves (``ufuncs``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.arrays.indexing import index_value, updated
from functrans.arrays.writes import assign
from functrans.core.caching import remembered
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    axes_of,
    flag,
    fresh,
    is_given,
    refuse_plain_target,
    stored,
    value_of,
)
from functrans.numpy.reductions import prod as reduce_prod
from functrans.numpy.reductions import reduced, without_identity
from functrans.numpy.reductions import sum as reduce_sum
from functrans.numpy.ufuncs import UFUNCS
from functrans.primitives import cumulative as cum
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives import reduction as red
from functrans.primitives.indexing import accumulate as scatter_zeros
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, normalize_axis


def _function(ufunc: np.ufunc) -> Callable[..., Any]:
    """The function of a ufunc."""
    function = UFUNCS.get(ufunc)
    if function is None or ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise UnsupportedOperationError(
            f"numpy.{ufunc.__name__}: this method needs a ufunc of two operands that functrans has "
            f"a rule for{here()}"
        )
    return function


@remembered(4096)
def _result_dtype(
    ufunc: np.ufunc,
    method: str,
    dtype: np.dtype,
    ndim: int,
    axis: int | Sequence[int] | None,
    wanted: object,
) -> np.dtype:
    """The dtype in which a method computes: NumPy's own answer for an array of extents 1."""
    array = np.ones((1,) * ndim, dtype)
    arguments = (array, [0]) if method == "reduceat" else (array,)
    with np.errstate(all="ignore"):
        return getattr(ufunc, method)(*arguments, axis=axis, dtype=wanted).dtype


def _prepared(
    ufunc: np.ufunc, method: str, x: ArrayLike, axis: int | Sequence[int] | None, wanted: Any
) -> tuple[Any, np.dtype]:
    """The array as its elements enter the loop of a method, and the dtype of the result."""
    wanted = None if wanted is None else np.dtype(wanted)
    dtype = _result_dtype(ufunc, method, dtype_of(x), len(shape_of(x)), axis, wanted)
    return (x if ufunc is np.ldexp else cast(x, dtype)), dtype  # exponents stay integers


# reduce -----------------------------------------------------------------------------------------


def _fold(
    ufunc: np.ufunc,
    x: ArrayLike,
    axes: tuple[int, ...],
    dtype: np.dtype,
    start: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> Array:
    """A reduction one element after the other, in NumPy's order.

    Args:
      ufunc: the operation.
      x: array.
      axes: axes of it, not negative.
      dtype: of the result.
      start: what the first element is joined to; by default that element is the start.
      mask: elements that take part.

    Raises:
      ValueError: there is neither an element nor a start.
    """
    function = UFUNCS[ufunc]
    lead = len(axes)
    rest = [k for k in range(len(shape_of(x))) if k not in axes]
    x = structural.transpose(x, (*axes, *rest))
    left = shape_of(x)[lead:]
    parts = movement.unstack(structural.reshape(x, (math.prod(shape_of(x)[:lead]), *left)), 0)
    chosen: Any = (None,) * len(parts)
    if mask is not None:
        mask = structural.transpose(mask, (*axes, *rest))
        chosen = movement.unstack(structural.reshape(mask, (len(parts), *left)), 0)
    if start is not None:
        result = structural.broadcast_to(cast(as_array(start), dtype), left)
    elif parts:
        result, parts, chosen = cast(parts[0], dtype), parts[1:], chosen[1:]
    else:
        raise ValueError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity{here()}"
        )
    for part, is_chosen in zip(parts, chosen, strict=True):
        if is_chosen is not None:  # what is left out raises nothing and has no derivative
            part = ew.where(is_chosen, part, 1)
        following = cast(function(result, part), dtype)
        result = following if is_chosen is None else ew.where(is_chosen, following, result)
    return result


_SUMS: dict[np.ufunc, Any] = {np.add: reduce_sum, np.multiply: reduce_prod}
_REDUCTIONS: dict[np.ufunc, Any] = {
    np.bitwise_and: (red.reduce_bitwise_and, -1),
    np.bitwise_or: (red.reduce_bitwise_or, 0),
    np.bitwise_xor: (red.reduce_bitwise_xor, 0),
    np.logaddexp: (red.logsumexp, -np.inf),
    np.logical_and: (red.reduce_all, True),
    np.logical_or: (red.reduce_any, False),
    np.maximum: (red.reduce_max, None),
    np.minimum: (red.reduce_min, None),
}


def reduce(
    ufunc: np.ufunc,
    array: ArrayLike,
    axis: int | Sequence[int] | None = 0,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: ArrayLike = True,
) -> Array:
    """``ufunc.reduce``."""
    function = _function(ufunc)
    x = as_array(array)
    if ufunc in _SUMS:
        return _SUMS[ufunc].traced(x, axis, dtype, out, keepdims, initial, where)
    axes = axes_of(axis, len(shape_of(x)))
    x, result_dtype = _prepared(ufunc, "reduce", x, axes, dtype)
    name = ufunc.__name__
    if ufunc in _REDUCTIONS:
        fold, identity = _REDUCTIONS[ufunc]
        return reduced(name, x, axis, out, keepdims, initial, where, fold, function, identity)
    start: Any = initial if is_given(initial) else ufunc.identity
    if start is None and where is not True:
        raise without_identity(name)
    mask = None if where is True else structural.broadcast_to(as_array(where), shape_of(x))
    result = _fold(ufunc, x, axes, result_dtype, start, mask)
    if flag(keepdims):
        result = structural.reshape(result, structural.kept_shape(shape_of(x), axes))
    return stored(name, fresh(result), out)


# accumulate -------------------------------------------------------------------------------------

_RUNNING: dict[np.ufunc, Callable[..., Any]] = {
    np.add: cum.cumsum,
    np.multiply: cum.cumprod,
    np.maximum: cum.cummax,
    np.minimum: cum.cummin,
    np.logaddexp: cum.cumlogsumexp,
}


def accumulate(
    ufunc: np.ufunc,
    array: ArrayLike,
    axis: int | Sequence[int] | None = 0,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """``ufunc.accumulate``; ``out`` is stored by the dispatch."""
    function = _function(ufunc)
    x = as_array(array)
    if not shape_of(x):
        raise TypeError("cannot accumulate on a scalar")
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    x, result_dtype = _prepared(ufunc, "accumulate", x, k, dtype)
    running = _RUNNING.get(ufunc)
    if running is not None:
        return running(x, k)
    parts = movement.unstack(x, k)
    results = [cast(part, result_dtype) for part in parts[:1]]
    for following in parts[1:]:
        results.append(cast(function(results[-1], following), result_dtype))
    return movement.stack(results, k) if results else fresh(cast(x, result_dtype))


# outer ------------------------------------------------------------------------------------------


def outer(ufunc: np.ufunc, A: Array, B: ArrayLike, /, **options: object) -> Any:
    """``ufunc.outer``."""
    a, b = as_array(A), as_array(B)
    if shape_of(b):
        a = structural.reshape(a, shape_of(a) + (1,) * len(shape_of(b)))
    return ufunc(a, b, **options)


# at ---------------------------------------------------------------------------------------------

_SCATTERED: dict[np.ufunc, str] = {
    np.add: "add",
    np.multiply: "multiply",
    np.maximum: "max",
    np.minimum: "min",
}


@remembered(4096)
def _check_at(ufunc: np.ufunc, dtype: np.dtype, other: np.dtype | None) -> None:
    """Refuse a write that NumPy refuses, in its words."""
    with np.errstate(all="ignore"):
        ufunc.at(np.ones(1, dtype), [0], *(() if other is None else (np.ones((), other),)))


def at(ufunc: np.ufunc, a: Any, indices: object, b: Any = None, /) -> None:
    """``ufunc.at``: a write into a traced array, repeated indices counting each time.

    Raises:
      UnsupportedOperationError: the array is a plain one, and would lose the trace.
    """
    refuse_plain_target(f"{ufunc.__name__}.at", a)
    if b is not None:
        b = as_array(b)
    _check_at(ufunc, dtype_of(a), None if b is None else dtype_of(b))
    operation = _SCATTERED.get(ufunc)
    if ufunc is np.subtract:
        operation, b = "add", ew.negative(b)
    if operation is not None:
        assign(a, updated(a, indices, b, operation))
        return
    function = UFUNCS.get(ufunc)
    if function is None:
        _function(ufunc)
    assert function is not None
    for places, values in _rounds(a, indices, b):
        selected = index_value(a, places)
        new = function(selected) if ufunc.nin == 1 else function(selected, values)
        assign(a, updated(a, places, cast(new, dtype_of(a)), "set"))


def _rounds(a: ArrayLike, indices: object, b: ArrayLike) -> Any:
    """The writes of ``ufunc.at`` in rounds, none of which writes twice to one place."""
    entries = indices if isinstance(indices, tuple) else (indices,)
    plain = tuple([value_of(entry) for entry in entries])
    numbers = np.arange(int(np.prod(shape_of(a), dtype=int))).reshape(shape_of(a))
    chosen = numbers[plain]
    flat = chosen.ravel()
    rank = np.zeros(len(flat), int)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(flat)])
    rank[order] = np.arange(len(flat)) - np.repeat(starts, lengths)
    values = None if b is None else structural.broadcast_to(as_array(b), chosen.shape)
    if values is not None:
        values = structural.reshape(values, (len(flat),))
    for turn in range(int(rank.max(initial=-1)) + 1):
        positions = np.flatnonzero(rank == turn)
        places = np.unravel_index(flat[positions], shape_of(a))
        yield places, None if values is None else index_value(values, positions)


# reduceat ---------------------------------------------------------------------------------------


def reduceat(
    ufunc: np.ufunc,
    array: ArrayLike,
    indices: ArrayLike,
    axis: int | Sequence[int] | None = 0,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """``ufunc.reduceat``: reductions of the slices between neighbouring indices."""
    _function(ufunc)
    x = as_array(array)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    x, result_dtype = _prepared(ufunc, "reduceat", x, k, dtype)
    extent = shape_of(x)[k]
    starts = [operator.index(i) for i in np.asarray(value_of(indices)).tolist()]
    for i in starts:
        if not 0 <= i < extent:
            raise IndexError(f"index {i} out-of-bounds in {ufunc.__name__}.reduceat [0, {extent})")
    lead = (slice(None),) * k
    stops = [*starts[1:], extent]
    if not starts:
        return fresh(cast(slice_index(x, BasicIndex((*lead, slice(0, 0)))), result_dtype))
    if ufunc is np.add and all(i < j for i, j in zip(starts, stops, strict=True)):
        lengths = [j - i for i, j in zip(starts, stops, strict=True)]
        segment = np.repeat(np.arange(len(starts)), lengths)
        values = structural.moveaxis(
            slice_index(x, BasicIndex((*lead, slice(starts[0], None)))), k, 0
        )
        shape = (len(starts), *shape_of(values)[1:])
        return structural.moveaxis(scatter_zeros(values, (segment,), (0,), shape), 0, k)
    parts = []
    for start, stop in zip(starts, stops, strict=True):
        piece = slice_index(x, BasicIndex((*lead, slice(start, max(stop, start + 1)))))
        if ufunc in _SUMS or ufunc in _REDUCTIONS:
            parts.append(reduce(ufunc, piece, k, result_dtype))
        else:  # without the identity
            parts.append(_fold(ufunc, piece, (k,), result_dtype))
    return movement.stack(parts, k)


UFUNC_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at, "reduceat": reduceat,
}  # fmt: skip
