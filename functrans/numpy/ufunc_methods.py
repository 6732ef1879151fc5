"""The methods of ufuncs on traced values: reduce, accumulate, outer, at, reduceat.

Here: ``UFUNC_METHODS``. Where a ufunc has a reduction of its own (``np.add.reduce`` is a sum) that
is used; the others are applied one element after the other, as NumPy defines it. Not here: the
ufuncs themselves (``ufuncs``).

Layer: ``numpy``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.errors import UnsupportedOperationError
from functrans.indexing import index_value, updated
from functrans.ir.source import here
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    as_operand,
    fresh,
    inexact,
    refuse_plain_target,
    value_of,
)
from functrans.numpy.reductions import all as reduce_all
from functrans.numpy.reductions import any as reduce_any
from functrans.numpy.reductions import max as reduce_max
from functrans.numpy.reductions import min as reduce_min
from functrans.numpy.reductions import prod as reduce_prod
from functrans.numpy.reductions import reduced, widened
from functrans.numpy.reductions import sum as reduce_sum
from functrans.numpy.ufuncs import UFUNCS
from functrans.operators import assign
from functrans.primitives import cumulative as cum
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives import reduction as red
from functrans.primitives.indexing import accumulate as scatter_zeros
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, normalize_axis
from functrans.trace import dtype_of, shape_of


def _function(ufunc: np.ufunc) -> Callable[..., Any]:
    """The function of a ufunc.

    Raises:
      UnsupportedOperationError: it has none, or not two operands.
    """
    function = UFUNCS.get(ufunc)
    if function is None or ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise UnsupportedOperationError(
            f"numpy.{ufunc.__name__}: this method needs a ufunc of two operands that functrans has "
            f"a rule for{here()}"
        )
    return function


# reduce -----------------------------------------------------------------------------------------


def _folded(function: Callable[..., Any]) -> Callable[[Any, tuple[int, ...]], Any]:
    """A reduction one element after the other."""

    def reduce(x: Any, axes: tuple[int, ...]) -> Any:
        for axis in sorted(axes, reverse=True):
            parts = movement.unstack(x, axis)
            if not parts:
                raise ValueError(f"zero-size array to reduction operation without identity{here()}")
            x = parts[0]
            for following in parts[1:]:
                x = function(x, following)
        return x

    return reduce


_LOGICAL: dict[np.ufunc, Any] = {np.logical_and: reduce_all, np.logical_or: reduce_any}
_SUMS: dict[np.ufunc, Any] = {np.add: reduce_sum, np.multiply: reduce_prod}
_EXTREMA: dict[np.ufunc, Any] = {np.maximum: reduce_max, np.minimum: reduce_min}
_BITS: dict[np.ufunc, Any] = {
    np.bitwise_and: (red.reduce_bitwise_and, -1),
    np.bitwise_or: (red.reduce_bitwise_or, 0),
    np.bitwise_xor: (red.reduce_bitwise_xor, 0),
}


def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Any:
    """``ufunc.reduce``."""
    function = _function(ufunc)
    x = as_array(array)
    if ufunc in _SUMS:
        return _SUMS[ufunc].traced(x, axis, dtype, out, keepdims, initial, where)
    if ufunc in _LOGICAL:
        return _LOGICAL[ufunc].traced(x, axis, out, keepdims, where=where)
    if dtype is not None:
        x = cast(x, dtype)
    if ufunc in _EXTREMA:
        return _EXTREMA[ufunc].traced(x, axis, out, keepdims, initial, where)
    fold, identity = _folded(function), None
    if ufunc is np.logaddexp:
        x, fold, identity = inexact(x), red.logsumexp, -np.inf
    elif ufunc in _BITS:
        fold, identity = _BITS[ufunc]
    return reduced(ufunc.__name__, x, axis, out, keepdims, initial, where, fold, function, identity)


# accumulate -------------------------------------------------------------------------------------

_RUNNING: dict[np.ufunc, Callable[..., Any]] = {
    np.add: cum.cumsum,
    np.multiply: cum.cumprod,
    np.maximum: cum.cummax,
    np.minimum: cum.cummin,
    np.logaddexp: cum.cumlogsumexp,
}


def accumulate(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """``ufunc.accumulate``; ``out`` is stored by the dispatch."""
    function = _function(ufunc)
    x = as_array(array)
    if not shape_of(x):
        raise TypeError("cannot accumulate on a scalar")
    if dtype is not None:
        x = cast(x, dtype)
    elif ufunc in _SUMS:
        x = cast(x, widened(dtype_of(x)))
    elif ufunc is np.logaddexp:
        x = inexact(x)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    running = _RUNNING.get(ufunc)
    if running is not None:
        return running(x, k)
    parts = movement.unstack(x, k)
    results = list(parts[:1])
    for following in parts[1:]:
        results.append(function(results[-1], following))
    return movement.stack(results, k) if results else fresh(x)


# outer ------------------------------------------------------------------------------------------


def outer(ufunc: np.ufunc, A: Any, B: Any, /, **options: Any) -> Any:
    """``ufunc.outer``."""
    a, b = as_operand(A), as_operand(B)
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


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None, /) -> None:
    """``ufunc.at``: a write into a traced array, repeated indices counting each time.

    Raises:
      UnsupportedOperationError: the array is a plain one, and would lose the trace.
    """
    refuse_plain_target(f"{ufunc.__name__}.at", a)
    operation = _SCATTERED.get(ufunc)
    if ufunc is np.subtract:
        operation, b = "add", ew.negative(as_operand(b))
    if operation is not None:
        assign(a, updated(a, indices, as_operand(b), operation))
        return
    function = UFUNCS.get(ufunc)
    if function is None:
        _function(ufunc)
    assert function is not None
    for places, values in _rounds(a, indices, b):
        selected = index_value(a, places)
        new = function(selected) if ufunc.nin == 1 else function(selected, values)
        assign(a, updated(a, places, cast(new, dtype_of(a)), "set"))


def _rounds(a: Any, indices: Any, b: Any) -> Any:
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
    ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """``ufunc.reduceat``: reductions of the slices between neighbouring indices."""
    _function(ufunc)
    x = as_array(array)
    if dtype is not None:
        x = cast(x, dtype)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    extent = shape_of(x)[k]
    starts = [operator.index(i) for i in np.asarray(value_of(indices)).tolist()]
    for i in starts:
        if not 0 <= i < extent:
            raise IndexError(f"index {i} out-of-bounds in {ufunc.__name__}.reduceat [0, {extent})")
    lead = (slice(None),) * k
    stops = [*starts[1:], extent]
    if ufunc is np.add and all(i < j for i, j in zip(starts, stops, strict=True)):
        x = cast(x, widened(dtype_of(x)) if dtype is None else dtype)
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
        parts.append(reduce(ufunc, piece, k, dtype))
    return movement.stack(parts, k)


UFUNC_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce,
    "accumulate": accumulate,
    "outer": outer,
    "at": at,
    "reduceat": reduceat,
}
