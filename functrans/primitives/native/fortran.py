"""What lowering rules need to call BLAS and LAPACK: arguments by address, matrices by column.

Here: ``call`` and its arguments, the status and the row interchanges that routines return,
``move``, a copy between memory orders, and what several rules of linear algebra share: LU factors,
triangular systems, work in double precision. Not here: the rules (beside the primitives), where
routines come from (``compiler.symbols``).

Order. Routines read matrices by column, arrays lie by row: an array ``[m, n]`` is, by column, its
transpose. Where an algorithm for the transpose gives the same, no copy is made. Factorizations
whose result depends on the order (pivots, signs of vectors) are made of a copy by column, as NumPy
does, so that compiled programs and NumPy agree in more than rounding.

Integers. Libraries differ in the width of their integers, and emitted code serves both: an integer
argument is a slot of 64 bits, whose lower half a 32-bit routine reads on little-endian machines; an
array of integers has 8 bytes for each entry, and ``Interchanges`` finds out which width was
written.

The emitter is an argument: nothing of ``emitter`` is imported at run time.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from functrans.emitter.builder import Builder
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

INTEGER = np.dtype(np.int64)
_NARROW = np.dtype(np.int32)

# calls ------------------------------------------------------------------------------------------


def call(e: Routines, name: str, *args: int | str | Array | Value) -> None:
    """Call a routine.

    Args:
      e: the emitter.
      name: ``"blas.dgemm"``, ``"lapack.dpotrf"``.
      *args: integers, letters, arrays, or addresses of anything else.
    """
    e.call_symbol(name, [_argument(e, arg) for arg in args])


def _argument(e: Routines, arg: Any) -> Value:
    """The address that an argument is passed by; constants lie in constant memory."""
    index = e.b.index(0).type
    if isinstance(arg, str):  # the first of the eight bytes
        return e.b.module.table((ord(arg),), index)
    if isinstance(arg, int):
        return e.b.module.table((arg,), index)
    pointer: Value = getattr(arg, "pointer", arg)
    return pointer


def scalar(e: Routines, dtype: np.dtype, value: complex) -> Value:
    """The address of a constant number."""
    part = e.constant(dtype, 0).parts[0].type
    numbers = (value.real, value.imag) if dtype.kind == "c" else (value.real,)
    return e.b.module.table(numbers, part)


class Status:
    """What a routine says about its success: 0, or what went wrong."""

    def __init__(self, e: Routines) -> None:
        self._e = e
        self.pointer = e.b.alloca(e.b.index(0).type)

    def clear(self) -> Status:
        """Make it 0 again, also the half that a 32-bit routine does not write."""
        self._e.b.store(self._e.b.index(0), self.pointer)
        return self

    def is_bad(self) -> Value:
        """Whether the last routine did not succeed."""
        b = self._e.b
        return b.icmp("ne", b.load(b.index(0).type, self.pointer), b.index(0))


def number_of(e: Routines, index: Value) -> Number:
    """An index as a number of dtype int64."""
    return dataclasses.replace(e.constant(INTEGER, 0), parts=(index,))


class Interchanges:
    """The row interchanges of an LU factorization, as the library writes them."""

    def __init__(self, e: Routines, count: int) -> None:
        self._e = e
        self._memory = e.workspace((max(count, 1),), INTEGER)
        self._step: Value | None = None

    @property
    def pointer(self) -> Value:
        """Where the library writes them."""
        return self._memory.pointer

    def clear(self) -> Interchanges:
        """Prepare for a call."""
        self._e.write(self._memory, self._e.b.index(0), self._e.constant(INTEGER, 0))
        return self

    def written(self) -> Interchanges:
        """Find out the width after a call.

        Entries count from 1. If they are 32 bits wide and there are two, the upper half of the
        first 64 bits is the second entry, hence not 0; with one entry it is what ``clear`` wrote.
        """
        b = self._e.b
        first = self._e.read(self._memory, b.index(0)).value
        is_wide = b.icmp("eq", b.lshr(first, b.index(32)), b.index(0))
        self._step = b.select(is_wide, b.index(8), b.index(4))
        return self

    def row(self, j: Value) -> Number:
        """The row that row ``j`` was exchanged with, counted from 0; of dtype int64."""
        e, b = self._e, self._e.b
        assert self._step is not None
        narrow = e.load(_NARROW, b.offset(self.pointer, b.mul(j, self._step)))
        return e.subtract(e.cast(narrow, INTEGER), e.constant(INTEGER, 1))


# loops over matrices ----------------------------------------------------------------------------


def part_of(e: Routines, array: Array, number: Value, shape: Sequence[int]) -> Array:
    """One of the arrays of a shape that follow one another in memory."""
    size = math.prod(shape) * array.dtype.itemsize
    pointer = e.b.offset(array.pointer, e.b.mul(number, e.b.index(size)))
    return dataclasses.replace(array, pointer=pointer, shape=tuple(shape))


@contextmanager
def each_matrix(e: Routines, arrays: Sequence[Array], stack: int) -> Iterator[list[Array]]:
    """Loop over stacks whose leading ``stack`` axes agree; yields the array at each place."""
    count = math.prod(arrays[0].shape[:stack])
    if count == 1:
        yield [dataclasses.replace(x, shape=x.shape[stack:]) for x in arrays]
        return
    with e.count(count) as i:
        yield [part_of(e, x, i, x.shape[stack:]) for x in arrays]


def offset(e: Routines, array: Array, terms: Sequence[tuple[Value | int, int]]) -> Value:
    """The address of an element: the array's own, and indices times steps in elements."""
    b = e.b
    fixed, pointer = 0, array.pointer
    for index, step in terms:
        if isinstance(index, int):
            fixed += index * step
        elif step:
            size = b.index(step * array.dtype.itemsize)
            pointer = b.offset(pointer, b.mul(index, size))
    return b.offset(pointer, b.index(fixed * array.dtype.itemsize))


# copies -----------------------------------------------------------------------------------------

_TILE = 8


def move(
    e: Routines,
    source: Array,
    target: Array,
    shape: Sequence[int],
    source_steps: Sequence[int],
    target_steps: Sequence[int],
) -> None:
    """Copy elements between memory orders, converted to the target's dtype.

    Args:
      e: the emitter.
      source: where the first element is read.
      target: where it is written.
      shape: extents of the loops.
      source_steps: elements from one index to the next in the source, per axis.
      target_steps: the same in the target.
    """
    if 0 in shape:
        return
    axes = _merged(
        sorted(
            (axis for axis in zip(target_steps, source_steps, shape, strict=True) if axis[2] > 1),
            key=lambda axis: -axis[0],
        )
    )
    *outer, inner = axes or [(1, 1, 1)]
    across = [axis for axis in outer if axis[1] == 1]
    is_transposed = inner[0] == 1 < inner[1] and across
    if is_transposed and min(inner[2], across[0][2]) >= _TILE:
        outer.remove(across[0])
        with e.each([axis[2] for axis in outer]) as indices:
            places = list(zip(indices, outer, strict=True))
            ends = [
                dataclasses.replace(x, pointer=offset(e, x, [(i, axis[k]) for i, axis in places]))
                for x, k in ((source, 1), (target, 0))
            ]
            _transpose(e, ends[0], ends[1], across[0], inner)
        return
    is_dense = inner[:2] == (1, 1)
    with e.each([axis[2] for axis in outer]) as indices:
        places = list(zip(indices, outer, strict=True))
        for start, stop, lanes in pieces(inner[2], lanes_of(target.dtype) if is_dense else 1):
            with blocks(e, start, stop, lanes) as i:
                terms = [*places, (i, inner)]
                at = offset(e, source, [(index, axis[1]) for index, axis in terms])
                x = e.cast(e.load(source.dtype, at, lanes), target.dtype)
                e.store(x, offset(e, target, [(index, axis[0]) for index, axis in terms]))


def _merged(axes: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Axes ``(target step, source step, extent)`` with neighbours that are one in both arrays."""
    merged: list[tuple[int, int, int]] = []
    for target, source, extent in axes:
        if merged and merged[-1][:2] == (target * extent, source * extent):
            merged[-1] = target, source, merged[-1][2] * extent
        else:
            merged.append((target, source, extent))
    return merged


def _transpose(
    e: Routines, source: Array, target: Array, rows: tuple[int, ...], columns: tuple[int, ...]
) -> None:
    """Exchange two axes, by a function that all copies between two dtypes share.

    Args:
      e: the emitter.
      source: where the first element is read.
      target: where it is written.
      rows: target step, source step (1) and extent of the axis that lies side by side in the
        source.
      columns: target step (1), source step and extent of the other one.
    """
    b = e.b
    numbers = (rows[2], columns[2], columns[1], rows[0])
    b.helper(
        f"transpose_{source.dtype.name}_{target.dtype.name}",
        [source.pointer, target.pointer, *map(b.index, numbers)],
        None,
        lambda inner: _write_transpose(_emitter(e, inner), source.dtype, target.dtype),
    )


def _emitter(e: Routines, builder: Builder) -> Routines:
    """The emitter of another function, which has neither workspace nor errors."""
    other = copy.copy(e)
    other.b = builder
    return other


def _write_transpose(e: Routines, source: np.dtype, target: np.dtype) -> None:
    """``target[i, j] = source[j, i]``: tiles in registers, the rest one by one.

    Parameters are both addresses, the extents of ``i`` and ``j``, and the elements from one row to
    the next in the source and in the target.
    """
    b = e.b
    read, written, rows, columns, source_step, target_step = b.arguments
    tile = b.index(_TILE)
    full_rows, full_columns = (b.sub(n, b.urem(n, tile)) for n in (rows, columns))

    def place(pointer: Value, i: Value, j: Value, step: Value, dtype: np.dtype) -> Value:
        flat = b.add(b.mul(i, step), j)
        return b.offset(pointer, b.mul(flat, b.index(dtype.itemsize)))

    def one_by_one(i: Value, first: Value) -> None:
        with b.loop(first, columns) as j:
            x = e.cast(e.load(source, place(read, j, i, source_step, source)), target)
            e.store(x, place(written, i, j, target_step, target))

    with b.loop(b.index(0), full_rows, _TILE) as i:
        with b.loop(b.index(0), full_columns, _TILE) as j:
            vectors = []
            for k in range(_TILE):
                at = place(read, b.add(j, b.index(k)), i, source_step, source)
                vectors.append(e.cast(e.load(source, at, _TILE), target))
            for k, x in enumerate(transposed(e, vectors)):
                e.store(x, place(written, b.add(i, b.index(k)), j, target_step, target))
        with b.loop(b.index(0), tile) as row:
            one_by_one(b.add(i, row), full_columns)
    with b.loop(full_rows, rows) as i:
        one_by_one(i, b.index(0))
    b.ret()


def transposed(e: Routines, rows: list[Number]) -> list[Number]:
    """The columns of as many vectors as each has lanes, a power of two.

    Reference: Eklundh, A fast computer method for matrix transposing, IEEE Transactions on
    Computers C-21 (1972).
    """
    n = len(rows)
    half = n // 2
    while half:
        first = [lane + (n - half if lane & half else 0) for lane in range(n)]
        second = [lane + half for lane in first]
        for i in range(n):
            if not i & half:
                x, y = rows[i], rows[i + half]
                rows[i], rows[i + half] = shuffled(e, x, y, first), shuffled(e, x, y, second)
        half //= 2
    return rows


def shuffled(e: Routines, x: Number, y: Number, lanes: Sequence[int]) -> Number:
    """Numbers picked out of two vectors of numbers."""
    if len(lanes) == 1:  # a scalar is no vector of one
        source, lane = (x, lanes[0]) if lanes[0] < x.lanes else (y, lanes[0] - x.lanes)
        return dataclasses.replace(x, parts=tuple(e.b.extract(part, lane) for part in source.parts))
    pairs = zip(x.parts, y.parts, strict=True)
    return dataclasses.replace(x, parts=tuple(e.b.shuffle(p, q, lanes) for p, q in pairs))


def lanes_of(dtype: np.dtype) -> int:
    """How many numbers of a dtype are worked on at once: 64 bytes, but at most 16."""
    return min(16, 64 // dtype.itemsize)


def pieces(extent: int, lanes: int) -> list[tuple[int, int, int]]:
    """Cut an extent into ``(start, stop, lanes)``: full vectors, then one narrower vector."""
    full = extent - extent % lanes
    cut = [(0, full, lanes)] if full else []
    return [*cut, (full, extent, extent - full)] if full < extent else cut


@contextmanager
def blocks(e: Routines, start: int, stop: int, step: int) -> Iterator[Value | int]:
    """``for i in range(start, stop, step)``; a single round is written without a loop."""
    if stop - start <= step:
        if stop > start:
            yield start
            return
        raise ValueError("an empty range has no rounds to write")
    with e.b.loop(e.b.index(start), e.b.index(stop), step) as i:
        yield i


def convert(e: Routines, source: Array, target: Array) -> None:
    """Copy an array of the same shape, converted to the target's dtype."""
    if source.dtype == target.dtype:
        e.copy(source, target)
    else:
        move(e, source, target, source.shape, source.strides, source.strides)


def move_by_column(e: Routines, source: Array, target: Array) -> None:
    """Copy a matrix ``source[m, n]`` to memory by column."""
    m, n = source.shape
    move(e, source, target, (m, n), (n, 1), (1, m))


def move_by_row(e: Routines, source: Array, target: Array) -> None:
    """Copy a matrix by column to ``target[m, n]``."""
    m, n = target.shape
    move(e, source, target, (m, n), (1, m), (n, 1))


def write_transpose(
    e: Routines, operands: Sequence[Any], results: Sequence[Any], *, axes: tuple[int, ...]
) -> None:
    """The lowering of ``transpose`` for arrays whose last axis moves."""
    (source,), (target,) = operands, results
    steps = source.strides
    move(e, source, target, target.shape, [steps[axis] for axis in axes], target.strides)


def clear_triangle(e: Routines, matrix: Array, is_upper: bool) -> None:
    """Set what is strictly above, or below, the diagonal of ``[m, n]`` to 0."""
    m, n = matrix.shape
    b = e.b
    zero = e.constant(matrix.dtype, 0)
    with e.count(m) as i:
        if is_upper:
            start, stop = b.add(i, b.index(1)), b.index(n)
        else:
            start, stop = b.index(0), b.select(b.icmp("slt", i, b.index(n)), i, b.index(n))
        with e.count(stop, start) as j:
            e.write(matrix, (i, j), zero)


def fill_identity(e: Routines, matrix: Array) -> None:
    """Make a square matrix the identity."""
    e.fill(matrix, e.constant(matrix.dtype, 0))
    with e.count(matrix.shape[0]) as i:
        e.write(matrix, (i, i), e.constant(matrix.dtype, 1))


def in_double(e: Routines, like: Array) -> Array | None:
    """Workspace in the dtype that NumPy's linear algebra computes in, if that is another one."""
    work = double_of(like.dtype)
    return None if work == like.dtype else e.workspace(like.shape, work)


def double_of(dtype: np.dtype) -> np.dtype:
    """Double precision of the same kind."""
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


# systems ----------------------------------------------------------------------------------------

LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""First letter of the names of routines, by dtype."""


def factorize(
    e: Routines, matrix: Array, factors: Array, interchanges: Interchanges, status: Status
) -> None:
    """LU factors of ``matrix[m, n]``, by column in ``factors``; the status is bad if singular."""
    m, n = matrix.shape
    move_by_column(e, matrix, factors)
    name = f"lapack.{LETTER[factors.dtype.char]}getrf"
    call(e, name, m, n, factors, m, interchanges.clear().pointer, status.clear().pointer)
    interchanges.written()


def exchange_rows(e: Routines, matrix: Array, i: Value, j: Value) -> None:
    """Exchange two rows of ``matrix[n, k]``."""
    with e.b.when(e.b.icmp("ne", i, j)), e.count(matrix.shape[1]) as column:
        x, y = e.read(matrix, (i, column)), e.read(matrix, (j, column))
        e.write(matrix, (i, column), y)
        e.write(matrix, (j, column), x)
