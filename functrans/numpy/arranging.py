"""Broadcasting, flips, rotations, shifts, repetition to a shape, windows.

Here: functions that arrange the elements of one array anew. Not here: reshapes and permutations of
axes (``shaping``), joining (``joining``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import (
    Axes,
    as_array,
    as_tuple,
    fresh,
    is_known,
    listed_axes,
    read_only_view,
    value_of,
    view,
)
from functrans.numpy.dispatch import implements
from functrans.numpy.selection import integers
from functrans.numpy.shaping import reshape_view, transposed
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast, normalize_axis

# broadcasting -----------------------------------------------------------------------------------


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Broadcast to a shape; a read-only view."""
    x = as_array(array)
    target = (
        tuple([operator.index(n) for n in shape])
        if isinstance(shape, (tuple, list))
        else (operator.index(shape),)
    )
    return read_only_view(
        x, structural.broadcast_to(x, target), lambda base: structural.broadcast_to(base, target)
    )


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Broadcast arrays against each other."""
    arrays = [as_array(x) for x in args]
    shape = np.broadcast_shapes(*map(shape_of, arrays))
    return tuple([x if shape_of(x) == shape else broadcast_to(x, shape) for x in arrays])


# flips ------------------------------------------------------------------------------------------


def reversed_view(x: ArrayLike, axes: Axes) -> Array:
    """Reverse the order along axes, as a view."""
    out = movement.reverse(x, axes)
    return view(
        x,
        out,
        lambda base: movement.reverse(base, axes),
        lambda base, new: movement.reverse(new, axes),
    )


@implements(np.flip)
def flip(m: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Reverse the order along axes; a view, or a number of an array without axes."""
    x = as_array(m)
    axes = listed_axes(axis, len(shape_of(x)))
    return reversed_view(x, axes) if shape_of(x) else x[()]


@implements(np.flipud)
def flipud(m: ArrayLike) -> Array:
    """Reverse the order along the first axis; a view."""
    return _flipped(m, 0)


@implements(np.fliplr)
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order along the second axis; a view."""
    return _flipped(m, 1)


def _flipped(m: ArrayLike, axis: int) -> Array:
    x = as_array(m)
    if len(shape_of(x)) <= axis:
        raise ValueError(f"Input must be >= {axis + 1}-d.")
    return reversed_view(x, (axis,))


@implements(np.rot90)
def rot90(m: ArrayLike, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Rotate by quarter turns in the plane of two axes; a view."""
    x = as_array(m)
    ndim = len(shape_of(x))
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = (normalize_axis(axis, ndim, "axes") for axis in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    turns = operator.index(k) % 4
    if turns == 0:
        return reshape_view(x, shape_of(x))
    if turns == 2:
        return reversed_view(x, (first, second))
    order = list(range(ndim))
    order[first], order[second] = second, first
    if turns == 1:
        return transposed(reversed_view(x, (second,)), tuple(order))
    return reversed_view(transposed(x, tuple(order)), (second,))


# other ------------------------------------------------------------------------------------------


@implements(np.roll)
def roll(a: Any, shift: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Shift cyclically along axes, by as many places as integers say, which may be traced."""
    x = as_array(a)
    if axis is None:
        flat = structural.reshape(x, (math.prod(shape_of(x)),))
        return fresh_from(x, structural.reshape(roll(flat, shift, 0), shape_of(x)))
    if not shape_of(x):
        raise ValueError("roll: an array without axes can be shifted with axis=None only")
    named = [normalize_axis(k, len(shape_of(x)), "axis") for k in as_tuple(axis)]
    places = as_array(shift)
    if len(shape_of(places)) > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    (n,) = np.broadcast_shapes(shape_of(places), (len(named),))
    axes = named * (n // len(named) if named else 1)
    if is_known(places):
        shifts = np.broadcast_to(np.asarray(value_of(places)), n).tolist()
        return fresh_from(x, movement.roll(x, shifts, axes))
    places = structural.broadcast_to(integers(places), (n,))
    if dtype_of(places) != np.uint64:
        places = cast(places, np.int64)
    for i, k in enumerate(axes):
        extent = shape_of(x)[k]
        period = dtype_of(places).type(max(extent, 1))
        places_on = cast(ew.remainder(places[i], period), np.int64)  # no difference overflows
        sources = ew.remainder(ew.subtract(np.arange(extent), places_on), max(extent, 1))
        x = structural.moveaxis(gather(x, (sources,), (k,)), 0, k)
    return x


def fresh_from(x: ArrayLike, out: Array | None) -> Any:
    """The result of a function that copies: the operand itself is copied, anything else is new."""
    return fresh(out) if out is x else out


@implements(np.resize)
def resize(a: ArrayLike, new_shape: Array) -> Array:
    """An array of a shape, filled with repetitions of the elements."""
    x = as_array(a)
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size, total = math.prod(shape_of(x)), math.prod(shape)
    if not size or not total:
        return np.zeros(shape, x.dtype)
    flat = structural.reshape(x, (size,))
    return structural.reshape(gather(flat, (np.arange(total) % size,), (0,)), shape)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: ArrayLike,
    window_shape: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Array:
    """All windows of an array, with the axes of the window last; a read-only view."""
    x = as_array(x)
    shape = shape_of(x)
    window = as_tuple(window_shape)
    axes = listed_axes(axis, len(shape))
    if len(window) != len(axes):
        raise ValueError("Must provide matching length window_shape and axis")
    indices = []
    for k, n in zip(axes, window, strict=True):
        if not 0 <= n <= shape[k]:
            raise ValueError("window shape cannot be larger than input array shape")
        indices.append(np.arange(shape[k] - n + 1)[:, None] + np.arange(n))

    def windows(base: ArrayLike) -> Any:
        out = base
        for k, places in zip(axes, indices, strict=True):
            ndim = len(shape_of(out))
            taken = gather(out, (places,), (k,))
            order = [*range(2, 2 + k), 0, *range(2 + k, ndim + 1), 1]
            out = structural.transpose(taken, tuple(order))
        return out

    return read_only_view(x, windows(x), windows)
