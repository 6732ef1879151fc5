"""Native code of ``dot_general``.

Here: the cores. Not here: the record (``dot``), which axes are loops and what the core is
(``dot_plan``), calls of BLAS and copies between orders (``fortran``).

Each axis of the product is a loop with a step in either operand and in the result. Axes of one role
(batch, rows, columns, summed) that are one axis in memory are merged. At most one axis of each role
belongs to the core, the others are loops around it; if those would be many and the core small, an
operand is copied into the order that leaves none. Cores:

========= ======================================================================================
gemm      BLAS, in any of the four orders without a copy; for products that are worth the call, and
          too large or too narrow for the others
by lanes  lanes along the result's last axis, which must lie side by side in one operand; tiles of
          several rows share what they load. Each sum runs in the order of the summed axis. Large
          products run in ranges of rows or columns on several threads
by sums   lanes along the summed axis, which lies side by side in both operands: inner products
          and rows of a matrix times a vector
========= ======================================================================================

Where neither order fits, an operand is copied. Sums are of two levels: blocks of the summed axis,
then their sums, so that errors grow with the length of a block. Products are fused into the sums
(``fma``), as BLAS does. Half precision is summed in single precision, integers wrap, booleans are
combined by *and* and *or*.

Products with a vector never call BLAS: they are bound by memory, and BLAS would let the order of
sums depend on the number of threads. Nor do products whose operands stay in the caches: a tile
works at 98 % of what the processor can do (Zen 4, 116 of 118 GFLOP/s in float32), while a library,
which must suit all sizes, spends 15 % on copying its operands first.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from functrans.primitives.native.dot_plan import (
    GEMM_WORK,
    NO_AXIS,
    PACKED_WORK,
    THIN,
    WORTH_THREADS,
    WORTH_THREADS_AROUND,
    Axis,
    Pairs,
    Roles,
    choose,
    count,
    is_own,
    packed,
    roles_of,
    tall,
    without_loops,
)
from functrans.primitives.native.fortran import LETTER, call, lanes_of, offset, scalar, shuffled
from functrans.primitives.native.packed import write_packed
from functrans.primitives.native.routine_loops import LoopVariable
from functrans.records import dataclass

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

Limits: TypeAlias = "tuple[Value, Value] | None"

_CHUNKS = 32
_FEWEST_ROUNDS = 4
"""Rounds of a loop around a product that are shared by threads."""
_LARGEST_COPY_BYTES = 1 << 19
"""What a copied operand may take on the stack of a thread."""
_CHUNK_TILES = 4
"""Fewest tiles, one below the other, that share a column of the second operand."""

_ACCUMULATORS = 8
"""Vectors of sums of a small tile: what hides the latency of a multiplication."""

_CHAINS = 4
"""Vectors of sums of an inner product; with lanes of 8 doubles, 32 sums run side by side."""

_BLOCK = 512
"""Terms of a sum that are added one after the other."""

_UNROLLED = 16
"""Most multiplications of vectors that are written one after the other instead of as a loop."""


def dot_supports(a: Any, b: Any, *, contract: Pairs, batch: Pairs) -> bool:
    """Whether both operands have the result's dtype; the caller converts them."""
    return bool(a.dtype == b.dtype)


def write_dot(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    contract: Pairs,
    batch: Pairs,
) -> None:
    """Code of ``dot_general``; the operands have the result's dtype."""
    a, b = operands
    (out,) = results
    if out.size == 0:
        return
    roles = roles_of(a, b, out, contract, batch)
    if any(a.shape[axis] == 0 for axis in contract[0]):
        e.fill(out, e.constant(out.dtype, 0))
        return
    if not roles.columns and roles.rows:
        a, b = b, a
        roles = Roles(
            [axis.swapped() for axis in roles.batch],
            [],
            [axis.swapped() for axis in roles.rows],
            [axis.swapped() for axis in roles.summed],
        )
    a, b, roles = without_loops(e, a, b, roles)
    _Product(e, a, b, out, roles).write()


# the product ------------------------------------------------------------------------------------


def _fused(e: Routines, total: Number, x: Number, y: Number) -> Number:
    """``total + x * y``."""
    b = e.b
    if total.kind == "f":
        return dataclasses.replace(total, parts=(b.fma(x.value, y.value, total.value),))
    if total.kind != "c":
        return e.add(total, e.multiply(x, y))
    (re, im), (xr, xi), (yr, yi) = total.parts, x.parts, y.parts
    re = b.fma(b.fneg(xi), yi, b.fma(xr, yr, re))
    im = b.fma(xi, yr, b.fma(xr, yi, im))
    return dataclasses.replace(total, parts=(re, im))


class _Product:
    """Writes the loops and the core of a product."""

    def __init__(self, e: Routines, a: Array, b: Array, out: Array, roles: Roles) -> None:
        self.e = e
        self.dtype = out.dtype
        machine, is_same = e.b.module.machine, a.pointer.text == b.pointer.text
        core, copies = choose(machine, out.dtype, roles, is_same)
        if "a" in copies:
            a, roles = packed(e, a, "a", roles)
        if "b" in copies:
            b, roles = packed(e, b, "b", roles)
        if copies:
            core, copies = choose(machine, out.dtype, roles, is_same=False)
        self.a, self.b, self.out, self.roles, self.core = a, b, out, roles, core
        # Sums of half precision are kept in single precision until they are complete.
        is_half = out.dtype.itemsize == 2 and out.dtype.kind not in "iu"
        self.work = np.dtype(np.float32) if is_half else out.dtype

    def write(self) -> None:
        """Write it."""
        e, roles, core = self.e, self.roles, self.core
        outer = [
            axis
            for axes in (roles.batch, roles.rows, roles.columns)
            for axis in axes
            if axis not in (core.row, core.column)
        ]
        if core.kind == "gemm":
            if roles.summed[:-1]:  # BLAS adds to what is there
                e.fill(self.out, e.constant(self.dtype, 0))
            outer += roles.summed[:-1]
        longest = max(outer, key=lambda axis: axis.extent, default=NO_AXIS)
        if not self._may_share(longest, count(outer)):
            self._all_of(outer)
            return
        rest = [axis for axis in outer if axis is not longest]
        length = -(-longest.extent // _CHUNKS)

        def write(e: Routines, arrays: list[Array], number: Value) -> None:
            e.workspace_on_stack()
            first = e.b.mul(number, e.b.index(length))
            stop = e.b.intrinsic(
                "smin", e.b.add(first, e.b.index(length)), e.b.index(longest.extent)
            )
            with e.count(stop, first) as place:
                part = copy.copy(self)
                part.e = e
                part.a, part.b, part.out = arrays
                part.a, part.b, part.out = (
                    part._at(array, side, [(place, longest)])
                    for array, side in ((part.a, "a"), (part.b, "b"), (part.out, "out"))
                )
                part._all_of(rest)

        e.in_chunks(-(-longest.extent // length), [self.a, self.b, self.out], write)

    def _all_of(self, outer: Sequence[Axis]) -> None:
        cores = {
            "gemm": self._gemm,
            "packed": self._packed,
            "lanes": self._by_lanes,
            "sums": self._by_sums,
        }
        with self._around(outer) as (a, b, out):
            cores[self.core.kind](a, b, out)

    def _may_share(self, longest: Axis, around: int) -> bool:
        """Whether rounds of a loop around the core run on threads, which the core does not then."""
        roles, core = self.roles, self.core
        work = count([*roles.batch, *roles.rows, *roles.columns, *roles.summed])
        copied = core.column.extent * core.summed.extent if core.kind == "packed" else 0
        if core.kind == "gemm" and (len(roles.summed) > 1 or work // around >= PACKED_WORK):
            return False  # a loop adds to what is there, or BLAS has threads of its own
        return (
            longest.extent >= _FEWEST_ROUNDS
            and longest.out != 0
            and work >= WORTH_THREADS_AROUND
            and work // around < WORTH_THREADS
            and copied * self.dtype.itemsize <= _LARGEST_COPY_BYTES
        )

    @contextmanager
    def _around(self, axes: Sequence[Axis]) -> Iterator[tuple[Array, Array, Array]]:
        """Loops; yields the operands and the result at each place."""
        e = self.e
        with e.each([axis.extent for axis in axes]) as indices:
            places = list(zip(indices, axes, strict=True))
            yield (
                self._at(self.a, "a", places),
                self._at(self.b, "b", places),
                self._at(self.out, "out", places),
            )

    # BLAS

    def _gemm(self, a: Array, b: Array, out: Array) -> None:
        """``out^T = b^T a^T`` by columns is ``out = a b`` by rows."""
        e, core = self.e, self.core
        row, column, k = core.row, core.column, core.summed
        is_square = (row.a, row.extent, k.a) == (column.b, column.extent, k.b)
        if is_square and a.pointer.text == b.pointer.text:
            self._gram(a, out)
            return
        b_order = ("N", k.b) if column.b == 1 else ("T", column.b)
        a_order = ("N", row.a) if k.a == 1 else ("T", k.a)
        call(
            e,
            f"blas.{LETTER[self.dtype.char]}gemm",
            b_order[0],
            a_order[0],
            column.extent,
            row.extent,
            k.extent,
            scalar(e, self.dtype, 1),
            b,
            b_order[1],
            a,
            a_order[1],
            scalar(e, self.dtype, int(len(self.roles.summed) > 1)),
            out,
            row.out,
        )

    def _packed(self, a: Array, b: Array, out: Array) -> None:
        write_packed(self.e, a, b, out, self.core)

    def _gram(self, a: Array, out: Array) -> None:
        """The product of an operand and its own transpose: one triangle, and its mirror image."""
        e, row, k = self.e, self.core.row, self.core.summed
        order = ("T", row.a) if k.a == 1 else ("N", k.a)
        call(
            e,
            f"blas.{LETTER[self.dtype.char]}syrk",
            "U",  # by columns; by rows it is the lower one
            order[0],
            row.extent,
            k.extent,
            scalar(e, self.dtype, 1),
            a,
            order[1],
            scalar(e, self.dtype, int(len(self.roles.summed) > 1)),
            out,
            row.out,
        )
        with e.count(row.extent) as i, e.count(i) as j:
            x = e.load(out.dtype, offset(e, out, [(i, row.out), (j, 1)]))
            e.store(x, offset(e, out, [(j, row.out), (i, 1)]))

    # sums

    def _totals(
        self,
        lanes: Sequence[int],
        length: int,
        step: int,
        block: int,
        add: Callable[[list[Number], list[tuple[Any, Axis]]], list[Number]],
        rest: Callable[[list[Number], list[tuple[Any, Axis]]], list[Number]] | None = None,
    ) -> list[Number]:
        """Sums over all summed axes, in registers.

        Args:
          lanes: lanes of each sum.
          length: how much of the innermost axis the loop goes over, a multiple of ``step``.
          step: how much of it one round takes.
          block: how much of it is added one after the other.
          add: adds the terms of one round to sums, given the indices of the summed axes.
          rest: adds what the loop leaves of the innermost axis.
        """
        e, b = self.e, self.e.b
        *outer, inner = self.roles.summed or [NO_AXIS]
        is_one_pass = not outer and length <= block
        sums = _Sums(e, self.work, lanes)
        totals = sums if is_one_pass else _Sums(e, self.work, lanes)
        with e.each([axis.extent for axis in outer]) as indices:
            places = list(zip(indices, outer, strict=True))
            if length and is_one_pass and length // step * len(lanes) <= _UNROLLED:
                values = sums.get()
                for start in range(0, length, step):
                    values = add(values, [(start, inner)])
                sums.put(values)
            elif length and is_one_pass:
                with b.loop(b.index(0), b.index(length), step) as k:
                    sums.put(add(sums.get(), [(k, inner)]))
            elif length:
                with b.loop(b.index(0), b.index(length), block) as base:
                    end = b.add(base, b.index(block))
                    end = b.select(b.icmp("slt", end, b.index(length)), end, b.index(length))
                    sums.clear()
                    with b.loop(base, end, step) as k:
                        sums.put(add(sums.get(), [*places, (k, inner)]))
                    pairs = zip(totals.get(), sums.get(), strict=True)
                    totals.put([e.add(total, x) for total, x in pairs])
            if rest is not None:
                totals.put(rest(totals.get(), places))
        return totals.get()

    def _load(self, array: Array, step: int, lanes: int = 1) -> Number:
        """Numbers some elements behind the first one, in the dtype of the sums."""
        x = self.e.load(array.dtype, offset(self.e, array, [(step, 1)]), lanes)
        return self.e.cast(x, self.work)

    def _save(self, x: Number, out: Array, step: int) -> None:
        self.e.store(self.e.cast(x, self.dtype), offset(self.e, out, [(step, 1)]))

    def _at(self, array: Array, side: str, places: Sequence[tuple[Any, Axis]]) -> Array:
        """An operand or the result from a place on."""
        terms = [(index, getattr(axis, side)) for index, axis in places]
        return dataclasses.replace(array, pointer=offset(self.e, array, terms))

    def _moved(
        self, a: Array, b: Array, out: Array, places: Sequence[tuple[Any, Axis]]
    ) -> tuple[Array, Array, Array]:
        """Both operands and the result from a place on."""
        return self._at(a, "a", places), self._at(b, "b", places), self._at(out, "out", places)

    @contextmanager
    def _tiles(self, extent: int, size: int, limits: Limits = None) -> Iterator[Value | int]:
        """Starts of tiles that cover an extent; the last one may overlap the one before it.

        What is computed twice costs less than code for a narrower tile.

        Args:
          extent: what they cover.
          size: of a tile.
          limits: where the loop begins and ends; multiples of ``size``, but for the end of all.
        """
        b = self.e.b
        if extent == size:
            yield 0
            return
        start, stop = limits or (b.index(0), b.index(extent))
        with b.loop(start, stop, size) as place:
            if extent % size == 0:
                yield place
            else:
                last = b.index(extent - size)
                yield b.select(b.icmp("slt", place, last), place, last)

    # lanes along the result

    def _by_lanes(self, a: Array, b: Array, out: Array) -> None:
        """Tiles of some rows and some vectors of columns."""
        row, column = self.core.row, self.core.column
        n, lanes = column.extent, lanes_of(self.work)
        if self._is_large():
            height, most = tall(row.extent), 2
        else:
            height = _height(row.extent)
            most = max(1, _ACCUMULATORS // height)
        if n <= lanes:
            self._region(a, b, out, _Tiles(height, ((0, n),), n))
            return
        count = min(most, -(-n // lanes))
        width = min(count * lanes, n)
        vectors = tuple((min(v * lanes, width - lanes), lanes) for v in range(count))
        narrow = -(-(n % width) // lanes)
        if narrow == count:  # a full tile that overlaps the one before it
            narrow = 0
        rest = narrow * lanes
        self._region(a, b, out, _Tiles(height, vectors, n - n % width if narrow else n))
        if narrow:
            places = [(n - rest, column)]
            moved = self._moved(a, b, out, places)
            self._region(*moved, _Tiles(height, vectors[:narrow], rest))

    def _region(self, a: Array, b: Array, out: Array, tiles: _Tiles) -> None:
        """A range of columns; in ranges of rows or columns on several threads, if it is large."""
        rows = self.core.row.extent
        counts = -(-rows // tiles.height), -(-tiles.columns // tiles.width)
        axis = int(counts[0] < counts[1])
        work = rows * tiles.columns * count(self.roles.summed)
        if work < WORTH_THREADS or counts[axis] < 2 * _CHUNK_TILES:
            self._all_tiles(a, b, out, tiles)
            return
        extent, size = ((rows, tiles.height), (tiles.columns, tiles.width))[axis]
        length = size * max(_CHUNK_TILES, -(-counts[axis] // _CHUNKS))

        def write(e: Routines, arrays: list[Array], number: Value) -> None:
            part = copy.copy(self)
            part.e = e
            start = e.b.mul(number, e.b.index(length))
            stop = e.b.intrinsic("smin", e.b.add(start, e.b.index(length)), e.b.index(extent))
            inner_a, inner_b, inner_out = arrays
            limits = (None, (start, stop)) if axis else ((start, stop), None)
            part._all_tiles(inner_a, inner_b, inner_out, tiles, *limits)

        self.e.in_chunks(-(-extent // length), [a, b, out], write)

    def _all_tiles(
        self,
        a: Array,
        b: Array,
        out: Array,
        tiles: _Tiles,
        rows: Limits = None,
        columns: Limits = None,
    ) -> None:
        row, column = self.core.row, self.core.column
        across = self._tiles(tiles.columns, tiles.width, columns)
        with across as j, self._tiles(row.extent, tiles.height, rows) as i:
            places = [(i, row), (j, column)]
            tile = self._moved(a, b, out, places)
            if self._is_large():
                self._shared_tile(*tile, tiles)
            else:
                self._tile_by_lanes(*tile, tiles.height, tiles.vectors)

    def _is_large(self) -> bool:
        """Whether it is a product that BLAS could do."""
        m, n, summed = self.core.row.extent, self.core.column.extent, self.roles.summed
        return (
            self.dtype.char in LETTER
            and len(summed) == 1
            and min(m, n) > THIN
            and m * n * summed[0].extent >= GEMM_WORK
            and is_own(self.e.b.module.machine, self.dtype, m, n, summed[0].extent)
        )

    def _shared_tile(self, a: Array, b: Array, out: Array, tiles: _Tiles) -> None:
        """A tile by a function, which all large products of a program share."""
        row, k, size = self.core.row, self.core.summed, self.dtype.itemsize
        builder = self.e.b
        steps = [builder.index(step * size) for step in (row.a, k.a, k.b, row.out)]
        pointers = [a.pointer, b.pointer, out.pointer]
        columns = "_".join(f"{start}.{lanes}" for start, lanes in tiles.vectors)
        builder.helper(
            f"functrans.product_{self.dtype}_{tiles.height}_{columns}",
            [*pointers, builder.index(k.extent), *steps],
            None,
            lambda b: _write_tile(self.e.on(b), self.dtype, tiles),
        )

    def _tile_by_lanes(
        self, a: Array, b: Array, out: Array, height: int, vectors: Sequence[tuple[int, int]]
    ) -> None:
        e = self.e
        row, column = self.core.row, self.core.column

        def factors(places: Sequence[tuple[Any, Axis]]) -> Iterator[tuple[Number, Number]]:
            """Both factors for each vector of the tile."""
            left, right = self._at(a, "a", places), self._at(b, "b", places)
            ys = [self._load(right, start, lanes) for start, lanes in vectors]
            for r in range(height):
                if column.a:  # a batch axis
                    for (start, lanes), y in zip(vectors, ys, strict=True):
                        yield self._load(left, r * row.a + start, lanes), y
                else:
                    x = self._load(left, r * row.a)
                    for (_, lanes), y in zip(vectors, ys, strict=True):
                        yield e.splat(x, lanes), y

        def add(totals: list[Number], places: list[tuple[Any, Axis]]) -> list[Number]:
            pairs = zip(totals, factors(places), strict=True)
            return [_fused(e, total, x, y) for total, (x, y) in pairs]

        if self.roles.summed:
            lanes = [lanes for _ in range(height) for _, lanes in vectors]
            totals = self._totals(lanes, self.core.summed.extent, 1, _BLOCK, add)
        else:
            totals = [e.multiply(x, y) for x, y in factors([])]
        for r in range(height):
            for v, (start, _) in enumerate(vectors):
                self._save(totals[r * len(vectors) + v], out, r * row.out + start)

    # lanes along the sum

    def _by_sums(self, a: Array, b: Array, out: Array) -> None:
        """Tiles of some rows and columns."""
        row, column = self.core.row, self.core.column
        height = min(row.extent, 2)
        width = min(column.extent, _ACCUMULATORS // height)
        with self._tiles(column.extent, width) as j, self._tiles(row.extent, height) as i:
            places = [(i, row), (j, column)]
            arrays = self._moved(a, b, out, places)
            self._tile_by_sums(arrays[0], arrays[1], arrays[2], height, width)

    def _tile_by_sums(self, a: Array, b: Array, out: Array, height: int, width: int) -> None:
        e = self.e
        row, column, extent = self.core.row, self.core.column, self.core.summed.extent
        lanes = min(lanes_of(self.work), 1 << (extent - 1).bit_length())
        tile = list(itertools.product(range(height), range(width)))
        # A sum alone needs several chains of additions to keep the processor busy.
        chains = _CHAINS if len(tile) == 1 and extent >= _CHAINS * lanes else 1
        step = lanes * chains

        def fused(
            totals: list[Number], left: Array, right: Array, start: int, mask: Number | None
        ) -> list[Number]:
            """Add the products of one vector of the summed axis."""

            def vector(x: Array, at: int) -> Number:
                loaded = self._load(x, at + start, min(lanes, extent))
                return self._zeroed(loaded, lanes, mask)

            xs = {
                (r, c): vector(left, r * row.a + c * column.a)
                for r, c in (tile if column.a else [(r, 0) for r in range(height)])
            }
            ys = [vector(right, c * column.b) for c in range(width)]
            return [
                _fused(e, total, xs[r, c if column.a else 0], ys[c])
                for total, (r, c) in zip(totals, tile, strict=True)
            ]

        def add(totals: list[Number], places: list[tuple[Any, Axis]]) -> list[Number]:
            left, right = self._at(a, "a", places), self._at(b, "b", places)
            if chains == 1:
                return fused(totals, left, right, 0, None)
            return [
                fused([total], left, right, chain * lanes, None)[0]
                for chain, total in enumerate(totals)
            ]

        length = extent - extent % step

        def rest(totals: list[Number], places: list[tuple[Any, Axis]]) -> list[Number]:
            left, right = self._at(a, "a", places), self._at(b, "b", places)
            first, size = totals[: len(tile)], extent - length
            for start in range(length, extent - size % lanes, lanes):
                first = fused(first, left, right, start, None)
            if size % lanes:
                # The last vector overlaps what was added already, which is masked.
                start = max(extent - lanes, 0)
                seen = lanes - size % lanes if start else 0
                first = fused(first, left, right, start, self._mask(lanes, seen) if seen else None)
            return [*first, *totals[len(tile) :]]

        totals = self._totals(
            [lanes] * (len(tile) * chains),
            length,
            step,
            _BLOCK * step,
            add,
            rest if length < extent else None,
        )
        while len(totals) > len(tile):
            half = len(totals) // 2
            totals = [e.add(x, y) for x, y in zip(totals[:half], totals[half:], strict=True)]
        folded = self._folded(totals)
        if height == 1 and column.out == 1 and len(folded) == 1:
            self._save(folded[0], out, 0)
            return
        sums = [shuffled(e, x, x, [lane]) for x in folded for lane in range(x.lanes)]
        for (r, c), total in zip(tile, sums, strict=True):
            self._save(total, out, r * row.out + c * column.out)

    def _mask(self, lanes: int, seen: int) -> Number:
        """Whether lanes are new: all but the first ones."""
        mask = self.e.constant(bool, False, lanes)
        none = mask.value
        truths = ", ".join(f"i1 {'false' if lane < seen else 'true'}" for lane in range(lanes))
        return dataclasses.replace(mask, parts=(type(none)(f"<{truths}>", none.type),))

    def _zeroed(self, x: Number, lanes: int, mask: Number | None) -> Number:
        """A vector with zeros where the mask does not hold, or behind its end."""
        e = self.e
        if mask is not None:
            return e.select(mask, x, e.like(x, 0))
        if x.lanes == lanes:
            return x
        if x.lanes == 1:
            zero = e.constant(x.dtype, 0, lanes)
            parts = [e.b.insert(z, p, 0) for z, p in zip(zero.parts, x.parts, strict=True)]
            return dataclasses.replace(x, parts=tuple(parts))
        return shuffled(e, x, e.like(x, 0), [min(lane, x.lanes) for lane in range(lanes)])

    def _folded(self, vectors: list[Number]) -> list[Number]:
        """The sum of the lanes of each vector: in one vector, where their number allows it."""
        count, width = len(vectors), vectors[0].lanes
        if count & (count - 1) or count > width:
            return [x for vector in vectors for x in self._folded([vector])]
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self._halved(x, y, width) for x, y in pairs]
            width //= 2
        (x,) = vectors
        while width > 1:
            x = self._halved(x, None, width)
            width //= 2
        return [x]

    def _halved(self, x: Number, y: Number | None, width: int) -> Number:
        """Sums of neighbours: each ``width`` lanes of one or two vectors become half as many."""
        count = x.lanes if y is None else 2 * x.lanes
        low = [start + lane for start in range(0, count, width) for lane in range(width // 2)]
        high = [lane + width // 2 for lane in low]
        y = x if y is None else y
        return self.e.add(shuffled(self.e, x, y, low), shuffled(self.e, x, y, high))


def _write_tile(e: Routines, dtype: np.dtype, tiles: _Tiles) -> None:
    """The function of ``_Product._shared_tile``; steps are in bytes."""
    b = e.b
    left, right, out, terms, a_row, a_k, b_k, out_row = b.arguments
    lanes = [lanes for _ in range(tiles.height) for _, lanes in tiles.vectors]
    totals, sums = _Sums(e, dtype, lanes), _Sums(e, dtype, lanes)

    def places(pointer: Value, step: Value) -> list[Value]:
        return [b.offset(pointer, b.mul(step, b.const(step, r))) for r in range(tiles.height)]

    def vectors(pointer: Value) -> list[tuple[Value, int]]:
        return [
            (b.offset(pointer, b.const(terms, start * dtype.itemsize)), lanes)
            for start, lanes in tiles.vectors
        ]

    with b.loop(b.const(terms, 0), terms, _BLOCK) as base:
        sums.clear()
        end = b.intrinsic("smin", b.add(base, b.const(terms, _BLOCK)), terms)
        with b.loop(base, end) as k:
            ys = [e.load(dtype, *y) for y in vectors(b.offset(right, b.mul(k, b_k)))]
            xs = [e.load(dtype, x) for x in places(b.offset(left, b.mul(k, a_k)), a_row)]
            pairs = zip(sums.get(), itertools.product(xs, ys), strict=True)
            sums.put([_fused(e, total, e.splat(x, y.lanes), y) for total, (x, y) in pairs])
        totals.put([e.add(x, y) for x, y in zip(totals.get(), sums.get(), strict=True)])
    results = iter(totals.get())
    for place in places(out, out_row):
        for target, _ in vectors(place):
            e.store(next(results), target)
    b.ret()


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Tiles of a result, side by side and one below the other.

    Attributes:
      height: rows of each.
      vectors: first column and lanes of each vector of columns.
      columns: how many columns they cover.
    """

    height: int
    vectors: tuple[tuple[int, int], ...]
    columns: int

    @property
    def width(self) -> int:
        """Columns of each."""
        start, lanes = self.vectors[-1]
        return start + lanes


def _height(rows: int) -> int:
    """Rows of a tile: 4 or 3, whichever computes fewer rows twice."""
    return rows if rows <= 4 else min((4, 3), key=lambda height: -(-rows // height) * height)


class _Sums:
    """Sums that are carried through a loop."""

    def __init__(self, e: Routines, dtype: np.dtype, lanes: Sequence[int]) -> None:
        self._zeros = [e.constant(dtype, 0, count) for count in lanes]
        self._sums = [LoopVariable(e, zero) for zero in self._zeros]

    def get(self) -> list[Number]:
        """Their values."""
        return [own.get() for own in self._sums]

    def clear(self) -> None:
        """Set them to 0."""
        self.put(self._zeros)

    def put(self, numbers: Sequence[Number]) -> None:
        """Set them."""
        for own, number in zip(self._sums, numbers, strict=True):
            own.set(number)
