"""Joining and repeating: concatenate, stack, block, tile, repeat, insert, delete, append, r_.

Here: functions that make one array of several, or of parts of one. Joining any number of traced
values is one equation. Not here: splitting (``splitting``), padding (``padding``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.numpy.common import (
    as_array,
    axis_of,
    fresh,
    is_known,
    listed_axes,
    needs_size,
    stored,
    value_of,
)
from functrans.numpy.dispatch import has_tracer, implements
from functrans.numpy.selection import integers
from functrans.numpy.shaping import at_least
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives.cumulative import cumsum
from functrans.primitives.indexing import accumulate, gather
from functrans.primitives.structural import cast, normalize_axis

# joining ----------------------------------------------------------------------------------------


def _parts(arrays: object, casting: str, dtype: DTypeLike | None) -> list[Any]:
    """The arrays to join, in the dtype asked for."""
    parts = [as_array(x) for x in _sequence(arrays)]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if dtype is not None:
        for x in parts:
            if not np.can_cast(dtype_of(x), dtype, casting):  # type: ignore[arg-type]  # a rule
                raise TypeError(
                    f"Cannot cast array data from {dtype_of(x)!r} to {np.dtype(dtype)!r} according "
                    f"to the rule {casting!r}{here()}"
                )
    return parts


def _sequence(arrays: Any) -> Sequence[Any]:
    """The arrays to join: a sequence of them, or the slices of one along its first axis."""
    return arrays if isinstance(arrays, (list, tuple)) else list(arrays)


@implements(np.concatenate)
def concatenate(
    arrays: object,
    /,
    axis: int | Sequence[int] | None = 0,
    out: Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Any:
    """Join arrays along an axis they have."""
    parts = _parts(arrays, casting, dtype)
    if axis is None:
        parts = [structural.reshape(x, (math.prod(shape_of(x)),)) for x in parts]
        axis = 0
    if not shape_of(parts[0]):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    k = axis_of(axis, len(shape_of(parts[0])))
    return stored("concatenate", movement.concatenate(parts, k, dtype), out)


concat = concatenate


@implements(np.stack)
def stack(
    arrays: object,
    axis: Any = 0,
    out: Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Any:
    """Join arrays of one shape along a new axis."""
    parts = _parts(arrays, casting, dtype)
    return stored("stack", movement.stack(parts, axis, dtype), out)


@implements(np.vstack)
def vstack(tup: ArrayLike, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Join along the first axis; vectors are rows."""
    parts = [at_least(x, 2) for x in _parts(tup, casting, dtype)]
    return movement.concatenate(parts, 0, dtype)


@implements(np.hstack)
def hstack(tup: ArrayLike, *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Join along the second axis; vectors along their only one."""
    parts = [at_least(x, 1) for x in _parts(tup, casting, dtype)]
    return movement.concatenate(parts, min(len(shape_of(parts[0])), 2) - 1, dtype)


@implements(np.dstack)
def dstack(tup: ArrayLike) -> Array:
    """Join along the third axis."""
    return movement.concatenate([at_least(x, 3) for x in _parts(tup, "same_kind", None)], 2)


@implements(np.column_stack)
def column_stack(tup: ArrayLike) -> Array:
    """Join along the second axis; vectors are columns."""
    columns = []
    for x in _parts(tup, "same_kind", None):
        shape = shape_of(x)
        columns.append(structural.reshape(x, (math.prod(shape), 1)) if len(shape) < 2 else x)
    return movement.concatenate(columns, 1)


@implements(np.append)
def append(arr: ArrayLike, values: ArrayLike, axis: int | Sequence[int] | None = None) -> Any:
    """An array with values joined to its end."""
    x, new = as_array(arr), as_array(values)
    if axis is None:
        x, new = (structural.reshape(v, (math.prod(shape_of(v)),)) for v in (x, new))
        axis = 0
    return movement.concatenate((x, new), axis_of(axis, len(shape_of(x))))


def _block_depth(arrays: ArrayLike) -> int:
    """How deep lists are nested."""
    if isinstance(arrays, tuple):
        raise TypeError("block: only lists can be used to arrange blocks, not tuples")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block: lists cannot be empty")
    depths = {_block_depth(item) for item in arrays}
    if len(depths) > 1:
        raise ValueError(f"block: lists are nested to different depths: {sorted(depths)}")
    return depths.pop() + 1


def _largest_rank(arrays: ArrayLike) -> int:
    if isinstance(arrays, list):
        return max(map(_largest_rank, arrays))
    return len(shape_of(as_array(arrays)))


def _join_blocks(arrays: Any, depth: int, ndim: int) -> Array:
    if not depth:
        x = as_array(arrays)
        return structural.reshape(x, (1,) * (ndim - len(shape_of(x))) + shape_of(x))
    return movement.concatenate(
        [_join_blocks(item, depth - 1, ndim) for item in arrays], ndim - depth
    )


@implements(np.block)
def block(arrays: ArrayLike) -> Array:
    """An array of nested lists of blocks."""
    depth = _block_depth(arrays)
    out = _join_blocks(arrays, depth, max(depth, _largest_rank(arrays)))
    return fresh(out) if not depth else out


# repetition -------------------------------------------------------------------------------------


@implements(np.tile)
def tile(A: ArrayLike, reps: ArrayLike) -> Array:
    """An array repeated along its axes."""
    x = as_array(A)
    counts = tuple(map(operator.index, reps)) if isinstance(reps, (tuple, list)) else (
        tuple(np.asarray(value_of(reps)).ravel().tolist())
    )  # fmt: skip
    shape = shape_of(x)
    ndim = max(len(counts), len(shape))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(shape)) + shape
    if all(n == 1 for n in counts):
        return fresh(structural.reshape(x, shape))
    apart: tuple[int, ...] = ()
    wide: tuple[int, ...] = ()
    for count, extent in zip(counts, shape, strict=True):
        apart += (1, extent)
        wide += (count, extent)
    spread = structural.broadcast_to(structural.reshape(x, apart), wide)
    return structural.reshape(spread, tuple([c * n for c, n in zip(counts, shape, strict=True)]))


@implements(np.repeat, own=("total_repeat_length",))
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Array:
    """Each element, or each slice along an axis, repeated.

    With ``total_repeat_length`` the result has that extent, and ``repeats`` may be traced: what is
    more is cut off, the last element fills up what is missing.
    """
    x = as_array(a)
    if axis is None or shape_of(x) == ():
        x = structural.reshape(x, (math.prod(shape_of(x)),))
        axis = 0 if axis is None else axis
    k = axis_of(axis, len(shape_of(x)))
    shape = shape_of(x)
    if total_repeat_length is not None:
        counts = structural.broadcast_to(integers(repeats), (shape[k],))
        places = _spread_places(counts, operator.index(total_repeat_length))
        return _taken(x, places, k)
    if not is_known(repeats):
        raise needs_size("repeat", repeats, "total_repeat_length")
    counts = np.asarray(value_of(repeats))
    if counts.size == 1:
        n = operator.index(counts.reshape(())[()])
        if n < 0:
            raise ValueError("repeats may not contain negative values.")
        head, tail = shape[: k + 1], shape[k + 1 :]
        spread = structural.broadcast_to(
            structural.reshape(x, (*head, 1, *tail)), (*head, n, *tail)
        )
        return structural.reshape(spread, (*shape[:k], shape[k] * n, *tail))
    places = np.repeat(np.arange(shape[k]), counts)
    return _taken(x, places, k)


def _spread_places(counts: ArrayLike, n: int) -> Array:
    """Which element each of ``n`` places repeats: one more wherever the next one starts."""
    starts = cumsum(counts, 0) - counts
    ones = np.ones(shape_of(counts), np.int64)
    return cumsum(accumulate(ones, (starts,), (0,), (n,), "drop"), 0) - 1


def _taken(x: ArrayLike, places: ArrayLike, axis: int) -> Any:
    """Slices of an array along an axis, at positions of a vector."""
    out = gather(x, (places,), (axis,))
    return structural.moveaxis(out, 0, axis)


# insert and delete ------------------------------------------------------------------------------


@implements(np.delete)
def delete(arr: ArrayLike, obj: object, axis: int | Sequence[int] | None = None) -> Array:
    """An array without some of its slices along an axis; the position of one may be traced."""
    x = as_array(arr)
    if axis is None:
        x = structural.reshape(x, (math.prod(shape_of(x)),))
        axis = 0
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    n = shape_of(x)[k]
    if _is_one_position(obj) and n:
        kept = np.arange(n - 1)
        return _taken(x, ew.add(kept, ew.greater_equal(kept, _counted(obj, n))), k)
    return _taken(x, np.delete(np.arange(n), value_of(obj)), k)


def _is_one_position(obj: object) -> bool:
    """Whether it is one traced integer, for which the result's shape depends on no value."""
    return not is_known(obj) and shape_of(obj) == () and dtype_of(obj).kind in "iu"


def _counted(position: Any, n: int) -> Array:
    """A position that is counted from the end if it is negative."""
    position = cast(position, np.int64)
    return ew.where(ew.less(position, 0), ew.add(position, n), position)


@implements(np.insert)
def insert(
    arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: int | Sequence[int] | None = None
) -> Array:
    """An array with values inserted before positions along an axis; one position may be traced."""
    x, new = as_array(arr), as_array(values)
    if axis is None:
        x = structural.reshape(x, (math.prod(shape_of(x)),))
        axis = 0
    shape = shape_of(x)
    k = normalize_axis(axis, len(shape), "axis")
    if _is_one_position(obj):
        new = structural.moveaxis(_inserted_once(new, len(shape)), 0, k)
        count = shape_of(new)[k]
        new = structural.broadcast_to(cast(new, dtype_of(x)), (*shape[:k], count, *shape[k + 1 :]))
        numbers, start = np.arange(shape[k] + count), _counted(obj, shape[k])
        shifted = ew.where(
            ew.less(numbers, ew.add(start, count)),
            ew.add(ew.subtract(numbers, start), shape[k]),
            numbers - count,
        )
        places = ew.where(ew.less(numbers, start), numbers, shifted)
        return _taken(movement.concatenate((x, new), k), places, k)
    before = value_of(obj)
    if isinstance(before, slice):
        before = range(*before.indices(shape[k]))
    before = np.asarray(before, None if np.size(before) else np.intp)
    if before.dtype == bool:
        before = np.flatnonzero(before)
    new = cast(new, dtype_of(x))
    # NumPy itself finds out where old slices (negative) and new ones (by number) go.
    count = len(np.insert(np.arange(shape[k]), before, 0)) - shape[k]
    if count == 1:  # one position takes any number of values
        new = _inserted_once(new, len(shape))
        if not before.ndim:
            new = structural.moveaxis(new, 0, k)
        count = shape_of(new)[k]
        before = before.repeat(count)
    numbers = np.insert(np.full(shape[k], -1), before, np.arange(count))
    new = structural.broadcast_to(new, (*shape[:k], count, *shape[k + 1 :]))
    places = np.where(numbers < 0, np.cumsum(numbers < 0) - 1, shape[k] + numbers)
    return _taken(movement.concatenate((x, new), k), places, k)


def _inserted_once(values: ArrayLike, ndim: int) -> Array:
    """Values for one position, with as many axes as the array."""
    shape = shape_of(values)
    return structural.reshape(values, (1,) * (ndim - len(shape)) + shape)


@implements(np.trim_zeros)
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """An array without its margins of zeros; a view."""
    x = as_array(filt)
    ends = trim.lower()
    if ends not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    nonzero = np.argwhere(np.asarray(value_of(ew.not_equal(x, 0))))
    shape = shape_of(x)
    entries = [slice(None)] * len(shape)
    for k in listed_axes(axis, len(shape)):
        if not len(nonzero):
            entries[k] = slice(0, 0)
            continue
        start, stop = int(nonzero[:, k].min()), int(nonzero[:, k].max()) + 1
        entries[k] = slice(start if "f" in ends else None, stop if "b" in ends else None)
    return x[(*entries, ...)]


# index tricks -----------------------------------------------------------------------------------


class _Joiner:
    """``r_`` and ``c_``: joining by indexing; plain items go to NumPy's own.

    Attributes:
      plain: NumPy's object.
      as_columns: whether vectors are columns, joined along the last axis.
    """

    __slots__ = ("as_columns", "plain")

    def __init__(self, plain: Any, as_columns: bool) -> None:
        self.plain = plain
        self.as_columns = as_columns

    def __getitem__(self, key: Array) -> Any:
        """The items joined."""
        items = key if isinstance(key, tuple) else (key,)
        if not has_tracer(items):
            return self.plain[key]
        parts = []
        for item in items:
            if isinstance(item, str):
                raise UnsupportedOperationError(
                    f"the directive {item!r} cannot be used with traced values{here()}; use "
                    "np.concatenate or np.stack with axis="
                )
            x = self.plain[item] if isinstance(item, slice) else at_least(item, 1)
            if self.as_columns and len(shape_of(x)) == 1:
                x = structural.reshape(x, (shape_of(x)[0], 1))
            parts.append(x)
        return movement.concatenate(parts, -1 if self.as_columns else 0)


r_ = _Joiner(np.r_, False)
c_ = _Joiner(np.c_, True)
