"""Native code of the primitives that read and write at index arrays.

Here: the ``lower`` rules of ``gather_scatter``, ``scatter_reduce`` and of ``select_along`` and
``place_along``, in the canonical form of ``index_arrays``. Not here: the records, their NumPy code.

The indexed axes are resolved once per element of ``S``; what stands behind the last indexed axis is
one contiguous run, which is copied or combined in vectors.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.primitives.index_arrays import Axes, Shape, index_shape, rest_axes
from functrans.primitives.native.fortran import number_of
from functrans.primitives.native.routine_loops import (
    broadcast_strides,
    contiguous,
    copy_run,
    extremum,
    fill_run,
    load_run,
    nest,
    plus,
    set_bytes,
    split_axis,
    store_run,
    vectors,
    zeros,
)
from functrans.records import dataclass

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value


_IN_A_ROUND = 8
"""Single elements that are read in one round of a loop."""


@dataclass(frozen=True, slots=True)
class _Indices:
    """Index arrays, and what they index."""

    name: str
    arrays: Sequence[Array]
    axes: Axes
    shape: Shape
    mode: str

    @property
    def s(self) -> Shape:
        """The shape ``S``."""
        return index_shape(self.name, [array.shape for array in self.arrays])

    def strides(self) -> list[tuple[int, ...]]:
        """With which the arrays are read."""
        return [broadcast_strides(array.shape, self.s) for array in self.arrays]

    def out_of_bounds(self, axis: int) -> str:
        """The message for an index that does not fit."""
        extent = self.shape[axis]
        if not extent:
            return f"{self.name}: axis {axis} of shape {self.shape} is empty; no index fits it"
        return (
            f"{self.name}: an index is out of bounds for axis {axis} with extent {extent}; modes "
            "'clip', 'wrap' and 'fill' (reading) or 'drop' (writing) accept any index"
        )

    def resolve(
        self, e: Routines, places: Sequence[Value], strides: Sequence[int]
    ) -> tuple[Value, Value | None]:
        """Where the indices at some places of their arrays point.

        Args:
          e: the emitter.
          places: per array the number of its element.
          strides: per array the distance of neighbours along its axis.

        Returns:
          The sum of indices times strides, and whether the indices count (``None``: they do).
        """
        offset: Value = e.b.index(0)
        inside: Value | None = None
        for array, axis, place, stride in zip(self.arrays, self.axes, places, strides, strict=True):
            index = read_index(e, array, place)
            index, is_inside = self._one(e, index, axis)
            if is_inside is not None:
                inside = is_inside if inside is None else e.b.and_(inside, is_inside)
            offset = plus(e, offset, e.b.mul(index, e.b.index(stride)))
        return offset, inside

    def _one(self, e: Routines, index: Value, axis: int) -> tuple[Value, Value | None]:
        """A non-negative index along one axis; whether it counts."""
        b, n = e.b, self.shape[axis]
        if self.mode == "inside":
            return index, None
        zero, extent = b.index(0), b.index(n)
        if self.mode == "clip":
            index = b.select(b.icmp("sgt", index, b.index(n - 1)), b.index(n - 1), index)
            return b.select(b.icmp("slt", index, zero), zero, index), None
        if self.mode == "wrap":
            index = b.srem(index, extent)
            return from_end(e, index, n), None
        index = from_end(e, index, n)
        if self.mode == "drop":
            return index, b.icmp("ult", index, extent)
        e.fail_when(b.icmp("uge", index, extent), IndexError, self.out_of_bounds(axis))
        return index, None

    def has_rows(self) -> bool:
        """Whether single elements are read, and some arrays stay at one index for all of a row."""
        is_held = [bool(self.s) and own[-1] == 0 for own in self.strides()]
        return any(is_held) and not all(is_held) and _runs(self.shape, self.axes).rest == 1

    def is_done(self, e: Routines) -> bool:
        """Whether nothing is left to do: an axis is empty that indices clip or wrap around in.

        No index fits it: the code to fail is written where one would read or write an element.
        """
        if self.mode not in ("clip", "wrap") or 0 in self.s:
            return False
        for axis in self.axes:
            if self.shape[axis] == 0:
                if all(self.shape[i] for i in rest_axes(len(self.shape), self.axes)):
                    e.fail_when(e.b.true(), IndexError, self.out_of_bounds(axis))
                return True
        return False


def read_index(e: Routines, array: Array, place: Value) -> Value:
    """An index as a 64-bit integer."""
    return e.cast(e.load(array.dtype, e.address(array, place)), np.dtype(np.int64)).value


def from_end(e: Routines, index: Value, extent: int) -> Value:
    """A negative index counted from the end."""
    b = e.b
    is_negative = b.icmp("slt", index, b.index(0))
    return b.select(is_negative, b.add(index, b.index(extent)), index)


@dataclass(frozen=True, slots=True)
class _Runs:
    """How ``S + rest`` and the array fall into contiguous runs.

    Attributes:
      width: elements of a run.
      outer: extents of the axes of the rest that are not in the run.
      array: strides of the array along them.
      slot: strides of ``S + rest`` along them.
      rest: number of elements per element of ``S``.
    """

    width: int
    outer: Shape
    array: tuple[int, ...]
    slot: tuple[int, ...]
    rest: int


def _runs(shape: Shape, axes: Axes) -> _Runs:
    strides = contiguous(shape)
    rest = rest_axes(len(shape), axes)
    extents = tuple([shape[axis] for axis in rest])
    behind = max(axes) + 1
    outer = sum(axis < behind for axis in rest)
    return _Runs(
        math.prod(shape[behind:]),
        extents[:outer],
        tuple([strides[axis] for axis in rest[:outer]]),
        contiguous(extents)[:outer],
        math.prod(extents),
    )


@contextmanager
def _each_write(
    e: Routines, indices: _Indices
) -> Iterator[tuple[Value, Value, Value | None, _Runs]]:
    """Loops over ``S``.

    Yields:
      Number of the first element in the array and in ``S + rest``; whether it counts; the runs.
    """
    runs = _runs(indices.shape, indices.axes)
    s = indices.s
    slots = tuple([stride * runs.rest for stride in contiguous(s)])
    steps = contiguous(indices.shape)
    with nest(e, s, [*indices.strides(), slots]) as (*places, slot):
        offset, inside = indices.resolve(e, places, [steps[axis] for axis in indices.axes])
        yield offset, slot, inside, runs


@contextmanager
def _where(e: Routines, inside: Value | None) -> Iterator[None]:
    """A block for the indices that count."""
    if inside is None:
        yield
        return
    with e.b.when(inside):
        yield


@contextmanager
def _each_run(
    e: Routines, runs: _Runs, offset: Value, slot: Value
) -> Iterator[tuple[Value, Value]]:
    """Loops over the runs of one element of ``S``."""
    with nest(e, runs.outer, [runs.array, runs.slot]) as (a, b):
        yield plus(e, offset, a), plus(e, slot, b)


# gather -----------------------------------------------------------------------------------------


def gather_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axes: Axes, mode: str
) -> None:
    """``S + rest`` is read run by run."""
    x, *arrays = operands
    (out,) = results
    indices = _Indices("gather", arrays, axes, x.shape, mode)
    if indices.is_done(e):
        return
    if mode not in ("raise", "drop") and indices.has_rows():
        _gather_rows(e, x, out, indices)
        return
    with _each_write(e, indices) as (offset, slot, inside, runs):
        if inside is None:
            with _each_run(e, runs, offset, slot) as (source, target):
                copy_run(e, x, source, out, target, runs.width)
            return
        with e.b.when(inside), _each_run(e, runs, offset, slot) as (source, target):
            copy_run(e, x, source, out, target, runs.width)
        with e.b.when(e.b.not_(inside)):
            set_bytes(e, out, slot, runs.rest)


def _gather_rows(e: Routines, x: Array, out: Array, indices: _Indices) -> None:
    """Single elements, several in a round; indices that do not change in it are resolved once."""
    s, strides, steps = indices.s, indices.strides(), contiguous(x.shape)
    is_held = [own[-1] == 0 for own in strides]

    def resolved(places: Sequence[Value], held: bool) -> Value:
        own = [k for k, flag in enumerate(is_held) if flag == held]
        some = dataclasses.replace(
            indices,
            arrays=[indices.arrays[k] for k in own],
            axes=tuple([indices.axes[k] for k in own]),
        )
        numbers = [steps[indices.axes[k]] for k in own]
        return some.resolve(e, [places[k] for k in own], numbers)[0]

    outer = [own[:-1] for own in (*strides, contiguous(s))]
    with nest(e, s[:-1], outer) as (*places, slot):
        base = resolved(places, held=True)

        def part(first: Value, lanes: int) -> None:
            for k in range(lanes):
                at = plus(e, first, e.b.index(k))
                source = resolved([plus(e, place, at) for place in places], held=False)
                copy_run(e, x, plus(e, base, source), out, plus(e, slot, at), 1)

        vectors(e, s[-1], x.dtype, part, _IN_A_ROUND)


# scatters ---------------------------------------------------------------------------------------

_Combine = Callable[[Any, "Number", "Number"], "Number"]
COMBINE: dict[str, _Combine] = {
    "add": lambda e, x, y: e.add(x, y),
    "multiply": lambda e, x, y: e.multiply(x, y),
    "maximum": lambda e, x, y: extremum(e, x, y, True),
    "minimum": lambda e, x, y: extremum(e, x, y, False),
}


def _combine_at(e: Routines, out: Array, v: Array, indices: _Indices, combine: _Combine) -> None:
    """``out[place] = combine(out[place], v)`` for one write after the other."""
    if indices.is_done(e):
        return
    constant = None if v.shape else load_run(e, v, e.b.index(0))
    with (
        _each_write(e, indices) as (offset, slot, inside, runs),
        _where(e, inside),
        _each_run(e, runs, offset, slot) as (target, source),
    ):

        def part(first: Value, lanes: int) -> None:
            at = plus(e, target, first)
            if constant is not None:
                value = e.splat(constant, lanes)
            else:
                value = load_run(e, v, plus(e, source, first), lanes)
            store_run(e, out, at, combine(e, load_run(e, out, at, lanes), value))

        vectors(e, runs.width, out.dtype, part)


def accumulate_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    shape: Shape,
    axes: Axes,
    mode: str,
) -> None:
    """Zeros, to which values are added."""
    v, *arrays = operands
    (out,) = results
    zeros(e, out)
    _combine_at(e, out, v, _Indices("scatter", arrays, axes, shape, mode), COMBINE["add"])


def scatter_add_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    axes: Axes,
    mode: str,
    unique_indices: bool,
) -> None:
    """The array, to which values are added."""
    x, v, *arrays = operands
    (out,) = results
    e.copy(x, out)
    _combine_at(e, out, v, _Indices("scatter", arrays, axes, x.shape, mode), COMBINE["add"])


def scatter_reduce_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    axes: Axes,
    mode: str,
    unique_indices: bool,
    op: str,
) -> None:
    """The array, multiplied by values or compared with them."""
    x, v, *arrays = operands
    (out,) = results
    e.copy(x, out)
    _combine_at(e, out, v, _Indices("scatter", arrays, axes, x.shape, mode), COMBINE[op])


def scatter_set_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    axes: Axes,
    mode: str,
    unique_indices: bool,
) -> None:
    """The array with values written one after the other, so that the last one stays."""
    x, v, *arrays = operands
    (out,) = results
    e.copy(x, out)
    indices = _Indices("scatter", arrays, axes, x.shape, mode)
    if indices.is_done(e):
        return
    constant = None if v.shape else load_run(e, v, e.b.index(0))
    with (
        _each_write(e, indices) as (offset, slot, inside, runs),
        _where(e, inside),
        _each_run(e, runs, offset, slot) as (target, source),
    ):
        if constant is None:
            copy_run(e, v, source, out, target, runs.width)
        else:
            fill_run(e, out, target, constant, runs.width)


# where indices point ----------------------------------------------------------------------------


def places_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    shape: Shape,
    axes: Axes,
    mode: str,
) -> None:
    """Each index is resolved once."""
    (out,) = results
    indices = _Indices("gather", operands, axes, shape, mode)
    if indices.is_done(e):
        return
    with nest(e, (out.size,), [(1,)]) as (number,):
        place, inside = indices.resolve(e, (number,), (1,))
        if inside is not None:
            place = e.b.select(inside, place, e.b.index(-1))
        e.write(out, number, number_of(e, place))


# which writes meet ------------------------------------------------------------------------------


def is_last_write_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, extents: Shape, mode: str
) -> None:
    """The number of every write goes to its place; the one that is found there was the last."""
    (out,) = results
    axes = tuple(range(len(extents)))
    indices = _Indices("scatter", operands, axes, extents, mode)
    if indices.is_done(e) or not out.size:
        return
    dtype = np.dtype(np.int32 if out.size < 1 << 31 else np.int64)
    winner = e.workspace((max(math.prod(extents), 1),), dtype)
    for is_second in (False, True):
        with _each_write(e, indices) as (place, number, inside, _):
            own = e.cast(number_of(e, number), dtype)
            if not is_second:
                with _where(e, inside):
                    e.write(winner, place, own)
                continue
            if inside is not None:
                place = e.b.select(inside, place, e.b.index(0))  # its memory exists
            is_last = e.equal(e.read(winner, place), own)
            if inside is not None:
                is_last = type(is_last)(is_last.dtype, (e.b.and_(is_last.value, inside),))
            e.write(out, number, is_last)


def neighbour_writes_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, extents: Shape, mode: str
) -> None:
    """The last write to every place is remembered while going through all writes."""
    before, after = results
    axes = tuple(range(len(extents)))
    indices = _Indices("scatter", operands, axes, extents, mode)
    if indices.is_done(e) or not before.size:
        return
    latest = e.workspace((max(math.prod(extents), 1),), np.int64)
    zero = e.b.index(0)
    for array in (latest, before, after):
        set_bytes(e, array, zero, array.size, 255)
    with _each_write(e, indices) as (place, number, inside, _), _where(e, inside):
        previous = e.read(latest, place)
        e.write(latest, place, number_of(e, number))
        with e.b.when(e.b.icmp("sge", previous.value, zero)):
            e.write(before, number, previous)
            e.write(after, previous.value, number_of(e, number))


# along one axis ---------------------------------------------------------------------------------


@contextmanager
def _each_along(
    e: Routines, indices: Array, axis: int, extent: int
) -> Iterator[tuple[Value, Value]]:
    """Loops over the indices of all lanes.

    Yields:
      Number of the index, and of the element that it points to.
    """
    outer, count, inner = split_axis(indices.shape, axis)
    shape, strides = (outer, count, inner), (count * inner, inner, 1)
    with nest(e, shape, [strides, (extent * inner, 0, 1)]) as (place, base):
        index = from_end(e, read_index(e, indices, place), extent)
        e.fail_when(
            e.b.icmp("uge", index, e.b.index(extent)),
            IndexError,
            f"an index is out of bounds for axis {axis} with size {extent}",
        )
        yield place, plus(e, base, e.b.mul(index, e.b.index(inner)))


def select_along_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int
) -> None:
    """One element for each index."""
    x, indices = operands
    (out,) = results
    with _each_along(e, indices, axis, x.shape[axis]) as (place, source):
        copy_run(e, x, source, out, place, 1)


def place_along_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int, size: int
) -> None:
    """Zeros, and one element for each index."""
    v, indices = operands
    (out,) = results
    zeros(e, out)
    with _each_along(e, indices, axis, size) as (place, target):
        copy_run(e, v, place, out, target, 1)
