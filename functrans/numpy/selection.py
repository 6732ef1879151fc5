"""Selecting and storing by index: where, take, choose, select, put, place, copyto, nonzero, ix_.

Here: NumPy's functions about indices. Functions that write (``put``, ``place``, ``putmask``,
``copyto``, ``put_along_axis``) write to traced arrays only: a plain array would lose the trace.
Not here: ``x[index]`` (``functrans.arrays.indexing``), diagonals (``diagonals``).

Where the shape of a result depends on values (``nonzero``), values are needed: recording has them,
staging takes ``size=``.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.arrays.indexing import fitted
from functrans.arrays.writes import assign, write
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy.common import (
    as_array,
    as_operand,
    axis_of,
    is_known,
    needs_size,
    refuse_plain_target,
    stored,
    truth,
    value_of,
)
from functrans.numpy.dispatch import has_tracer, implements
from functrans.primitives import cumulative as cum
from functrans.primitives import elementwise as ew
from functrans.primitives import indexing, movement, structural
from functrans.primitives.structural import cast, normalize_axis


def flat(x: ArrayLike) -> Any:
    """The elements as a vector."""
    return structural.reshape(x, (math.prod(shape_of(x)),))


# where, nonzero ---------------------------------------------------------------------------------


@implements(np.where, own=("size", "fill_value"))
def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Any:
    """``x`` where the condition holds, else ``y``; without them ``nonzero(condition)``.

    The operand that is not taken contributes exactly 0 to derivatives, also where it is infinite.
    """
    if x is None and y is None:
        return nonzero.traced(condition, size=size, fill_value=fill_value)  # type: ignore[attr-defined]  # set by implements
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    mask = as_operand(condition)
    if dtype_of(mask).kind != "b":
        mask = ew.not_equal(mask, 0)
    return ew.where(mask, as_operand(x), as_operand(y))


@implements(np.flatnonzero, own=("size", "fill_value"))
def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Any:
    """Positions of nonzero elements of the flattened array.

    Args:
      a: array.
      size: number of positions to give, so that the result's shape depends on no value; missing
        ones are ``fill_value``.
      fill_value: position given where there are less than ``size``.
    """
    mask = flat(truth(a))
    if size is None:
        if not is_known(mask):
            raise needs_size("flatnonzero", mask)
        return np.flatnonzero(value_of(mask))
    n = operator.index(size)
    slots = ew.where(mask, cum.cumsum(cast(mask, np.int64), 0) - 1, n)
    start = np.full(n, fill_value, np.int64)
    return indexing.scatter(start, np.arange(shape_of(mask)[0]), (slots,), (0,), mode="drop")


@implements(np.nonzero, own=("size", "fill_value"))
def nonzero(
    a: ArrayLike, *, size: ArrayLike | None = None, fill_value: ArrayLike | None = None
) -> tuple[Any, ...]:
    """Positions of nonzero elements, one array per axis; ``size`` as for ``flatnonzero``."""
    mask = truth(a)
    shape = shape_of(mask)
    if size is None:
        if not is_known(mask):
            raise needs_size("nonzero", mask)
        return np.nonzero(value_of(mask))
    total = math.prod(shape)
    places = flatnonzero.traced(mask, size=size, fill_value=total)  # type: ignore[attr-defined]  # set by implements
    fill = 0 if fill_value is None else fill_value
    fills = fill if isinstance(fill, tuple) else (fill,) * len(shape)
    is_found = ew.less(places, total)
    return tuple(
        [
            ew.where(is_found, index, rest)
            for index, rest in zip(_unraveled(places, shape), fills, strict=True)
        ]
    )


@implements(np.argwhere, own=("size", "fill_value"))
def argwhere(
    a: ArrayLike, *, size: ArrayLike | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Positions of nonzero elements, one row each; ``size`` as for ``flatnonzero``."""
    mask = truth(a)
    if size is None:
        if not is_known(mask):
            raise needs_size("argwhere", mask)
        return np.argwhere(value_of(mask))
    return movement.stack(nonzero.traced(mask, size=size, fill_value=fill_value), 1)  # type: ignore[attr-defined]  # set by implements


def _unraveled(places: ArrayLike, shape: tuple[int, ...]) -> list[Any]:
    """Positions per axis of row-major positions."""
    results = []
    for extent in reversed(shape):
        results.append(ew.remainder(places, max(extent, 1)))
        places = ew.floor_divide(places, max(extent, 1))
    return results[::-1]


# take -------------------------------------------------------------------------------------------


def integers(indices: object) -> Any:
    """Indices as an array of integers.

    Raises:
      TypeError: they are none.
    """
    places = as_array(indices)
    if dtype_of(places).kind == "b":
        places = cast(places, np.int64)
    if dtype_of(places).kind not in "iu":
        if type(places) is np.ndarray and not places.size:
            return places.astype(np.int64)
        raise TypeError(
            f"indices must be integers, got {dtype_of(places)}{here()}; convert them with "
            ".astype(int)"
        )
    return places


@implements(np.take, own=("fill_value", "fill"))
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    mode: str | None = "raise",
    *,
    fill_value: Any = None,
) -> Array:
    """Elements at integer positions along an axis, of the flattened array for ``None``.

    ``mode`` may also be ``"fill"``, which reads ``fill_value`` (NaN) out of bounds.
    """
    x, places = as_array(a), integers(indices)
    if axis is None or shape_of(x) == ():
        x, axis = flat(x), 0 if axis is None else axis
    k = axis_of(axis, len(shape_of(x)))
    result = indexing.gather(x, (places,), (k,), mode or "raise", fill_value)
    s = len(shape_of(places))
    order = (*range(s, s + k), *range(s), *range(s + k, len(shape_of(result))))
    return stored("take", structural.transpose(result, order), out)


def _along_mode(mode: str | None) -> str:
    """A mode of ``.at`` as ``indexing`` names it."""
    return {None: "raise", "promise_in_bounds": "promise"}.get(mode) or str(mode)


@implements(np.take_along_axis, own=("mode", "fill_value"))
def take_along_axis(
    arr: Any, indices: ArrayLike, axis: Any = -1, *, mode: str | None = None, fill_value: Any = None
) -> Array:
    """Elements at positions along an axis, given for each line apart.

    Args:
      arr: array.
      indices: integers, with as many axes as ``arr``.
      axis: axis along which they count, the flattened array for ``None``.
      mode: what an index out of bounds means, as for ``x.at[...].get``: an error by default.
      fill_value: what ``mode="fill"`` reads; NaN by default.
    """
    x, places = as_array(arr), integers(indices)
    if axis is None:
        if len(shape_of(places)) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        x, axis = flat(x), 0
    if len(shape_of(x)) != len(shape_of(places)):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return indexing.take_along_axis(x, places, axis, _along_mode(mode), fill_value)


@implements(np.compress, own=("size", "fill_value"))
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    *,
    size: ArrayLike | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Slices along an axis where a condition holds, of the flattened array for ``None``.

    With ``size`` there are so many, filled up with ``fill_value`` or cut off.
    """
    mask = truth(condition)
    if len(shape_of(mask)) != 1:
        raise ValueError("condition must be a 1-d array")
    if size is None:
        if not is_known(mask):
            raise needs_size("compress", mask)
        return take.traced(a, np.flatnonzero(value_of(mask)), axis, out)  # type: ignore[attr-defined]  # set by implements
    x = as_array(a)
    if axis is None:
        x, axis = flat(x), 0
    k = axis_of(axis, len(shape_of(x)))
    n = min(shape_of(mask)[0], shape_of(x)[k])
    places = flatnonzero.traced(_head(mask, n), size=size, fill_value=shape_of(x)[k])  # type: ignore[attr-defined]  # set by implements
    return take.traced(x, places, k, out, "fill", fill_value=fill_value)  # type: ignore[attr-defined]  # set by implements


def _head(x: ArrayLike, n: int) -> Any:
    """The first elements of a vector."""
    return x if shape_of(x)[0] == n else indexing.gather(x, (np.arange(n),), (0,))


@implements(np.extract, own=("size", "fill_value"))
def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: ArrayLike | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Elements where a condition holds; ``size`` as for ``compress``."""
    mask = flat(truth(condition))
    if size is None and not is_known(mask):
        raise needs_size("extract", mask)
    return compress.traced(mask, flat(as_array(arr)), 0, size=size, fill_value=fill_value)  # type: ignore[attr-defined]  # set by implements


@implements(np.choose)
def choose(a: ArrayLike, choices: Array, out: Array | None = None, mode: str = "raise") -> Array:
    """Each element from the choice whose number an index array gives."""
    number = integers(a)
    options = [as_array(x) for x in choices]
    shape = np.broadcast_shapes(shape_of(number), *map(shape_of, options))
    table = movement.stack([structural.broadcast_to(x, shape) for x in options], 0)
    places = structural.reshape(structural.broadcast_to(number, shape), (1, *shape))
    result = indexing.take_along_axis(table, places, 0, mode)
    return stored("choose", structural.reshape(result, shape), out)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Array:
    """Each element from the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    masks = [as_array(c) for c in condlist]
    for i, mask in enumerate(masks):
        if dtype_of(mask).kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = [as_operand(x) for x in (*choicelist, default)]
    dtype = movement.common_dtype(choices)
    shape = np.broadcast_shapes(*map(shape_of, masks), *map(shape_of, choices))
    result = cast(choices[-1], dtype)
    for mask, choice in zip(reversed(masks), reversed(choices[:-1]), strict=True):
        result = ew.where(mask, cast(choice, dtype), result)
    return structural.broadcast_to(result, shape)


# indices ----------------------------------------------------------------------------------------


@implements(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """Index arrays of an open mesh."""
    results = []
    for k, arg in enumerate(args):
        places = as_array(arg)
        if len(shape_of(places)) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if dtype_of(places).kind == "b":
            places = np.flatnonzero(value_of(places))
        n = shape_of(places)[0]
        wide = (1,) * k + (n,) + (1,) * (len(args) - k - 1)
        results.append(structural.reshape(places, wide))
    return tuple(results)


@implements(np.unravel_index)
def unravel_index(indices: ArrayLike, shape: ArrayLike, order: str = "C") -> tuple[Any, ...]:
    """Positions per axis of positions in the flattened array."""
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    extents = tuple(map(operator.index, extents))
    places = cast(integers(indices), np.intp)
    if order == "F":
        return tuple(_unraveled(places, extents[::-1])[::-1])
    return tuple(_unraveled(places, extents))


@implements(np.ravel_multi_index)
def ravel_multi_index(
    multi_index: Array, dims: ArrayLike, mode: object = "raise", order: str = "C"
) -> Array:
    """Positions in the flattened array of positions per axis."""
    extents = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    parts = [cast(integers(index), np.intp) for index in multi_index]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(parts)
    if len(parts) != len(extents):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(extents)}")
    total: Any = 0
    pairs = list(zip(parts, extents, modes, strict=True))
    for places, extent, rule in pairs if order == "C" else reversed(pairs):
        if rule == "wrap":
            places = ew.remainder(places, extent)  # brought into bounds
        elif rule == "clip":
            places = ew.clip(places, 0, extent - 1)  # brought into bounds
        total = ew.add(ew.multiply(total, extent), places)
    return total


# writing ----------------------------------------------------------------------------------------


def is_empty(values: ArrayLike) -> bool:
    """Whether there are no values, of which NumPy writes nothing without an error."""
    return 0 in shape_of(as_array(values))


def repeated(values: ArrayLike, n: int) -> Any:
    """The first ``n`` of the values, which are repeated as often as needed."""
    values = flat(as_array(values))
    own = shape_of(values)[0]
    if own == n or n == 0:
        return values if own == n else np.zeros(0, dtype_of(values))
    return indexing.gather(values, (np.arange(n) % own,), (0,))


def write_flat(x: Any, places: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
    """``x.flat[places] = values``."""
    new = indexing.scatter(flat(x), cast(values, dtype_of(x)), (places,), (0,), mode=mode)
    assign(x, structural.reshape(new, shape_of(x)))


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values to a traced array, where a mask holds."""
    target = dst
    refuse_plain_target("copyto", target)
    values = as_operand(src)
    if where is not True:
        values = ew.where(as_array(where), cast(values, dtype_of(target)), target)
    if casting == "unsafe":
        values = cast(values, dtype_of(target))
    if len(shape_of(values)) > len(shape_of(target)):
        values = fitted(values, shape_of(target))
    write(target, values, "numpy.copyto")


@implements(np.put)
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str = "raise") -> None:
    """Write values to positions of the flattened, traced array."""
    target = a
    refuse_plain_target("put", target)
    places = flat(integers(ind))
    if not is_empty(v):
        write_flat(target, places, repeated(v, shape_of(places)[0]), mode)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values one after the other to where a mask holds, in a traced array."""
    target = arr
    refuse_plain_target("place", target)
    condition = truth(mask)
    values = flat(as_array(vals))
    if shape_of(values) == (1,):
        values = structural.reshape(cast(values, dtype_of(target)), ())
        assign(target, ew.where(structural.reshape(condition, shape_of(target)), values, target))
        return
    if not is_known(condition):
        n = shape_of(values)[0]
        if not n:
            raise ValueError("Cannot insert from an empty array!")
        condition = flat(condition)
        turns = cum.cumsum(cast(condition, np.int64), 0) - 1
        written = indexing.gather(values, (ew.remainder(turns, n),), (0,))
        chosen = ew.where(condition, cast(written, dtype_of(target)), flat(target))
        assign(target, structural.reshape(chosen, shape_of(target)))
        return
    places = np.flatnonzero(value_of(condition))
    if len(places) and not shape_of(values)[0]:
        raise ValueError("Cannot insert from an empty array!")
    write_flat(target, places, repeated(values, len(places)))


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write the values at the same positions to where a mask holds, in a traced array."""
    target = a
    refuse_plain_target("putmask", target)
    if is_empty(values):
        return
    shape = shape_of(target)
    new = structural.reshape(repeated(values, math.prod(shape)), shape)
    condition = structural.reshape(truth(mask), shape)
    assign(target, ew.where(condition, cast(new, dtype_of(target)), target))


@implements(np.put_along_axis, own=("mode",))
def put_along_axis(
    arr: Array,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | Sequence[int] | None,
    *,
    mode: str | None = None,
) -> None:
    """Write values to positions along an axis, given for each line apart.

    With ``mode="drop"`` what lies out of bounds is not written, as for ``x.at[...].set``.
    """
    target, own_mode = arr, _along_mode(mode)
    if has_tracer((arr, indices, values)):
        refuse_plain_target("put_along_axis", target)
    places, new = integers(indices), cast(as_operand(values), dtype_of(target))
    if axis is None:
        if len(shape_of(places)) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        flat, k = structural.reshape(target, (math.prod(shape_of(target)),)), 0
    else:
        flat, k = target, normalize_axis(axis, len(shape_of(target)), "axis")
    lines = list(shape_of(flat))
    lines[k] = 1
    if len(shape_of(places)) != len(lines):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    shape = np.broadcast_shapes(shape_of(places), tuple(lines))
    new = fitted(new, shape, is_gathered=True)
    places = structural.broadcast_to(places, shape)
    written = indexing.put_along_axis(flat, places, new, k, mode=own_mode)
    written = structural.reshape(written, shape_of(target))
    if isinstance(target, Tracer):
        assign(target, written)
    else:
        target[...] = written
