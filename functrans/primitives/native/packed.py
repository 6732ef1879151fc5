"""Large matrix products of real numbers, whatever the order of their operands in memory.

Here: ``write_packed``. Not here: which products are computed so (``dot_plan``), the others
(``dot``).

The second operand is copied once, in panels of as many columns as a tile has, and in slices of as
many terms as leave it in the last-level cache; the first one block by block, in panels of as many
rows, into memory that stays in the second-level cache. A tile's sums stay in registers for a block
of terms and are then added to the result. Rows (and columns, where there are few rows) are cut into
chunks, which whoever is free takes: a thread waits for the last copies of others alone, and gives
its processor away meanwhile, so that a busy machine costs what it takes away and no more.

The order of additions depends on nothing but the position in the sum: the terms of a block one
after the other, each multiplied and added with one rounding, then the blocks.

Layer: ``primitives.native``. Reference: Goto and van de Geijn, Anatomy of high-performance matrix
multiplication, ACM TOMS 34 (2008), article 12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.dot_plan import WORTH_THREADS
from functrans.primitives.native.tiles import Tiles

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value
    from functrans.primitives.native.dot_plan import Core

_TERMS = 256
"""Terms that are added up in registers."""
_BLOCK_BYTES = {8: 192 << 10, 32: 384 << 10}
"""Most bytes of a copied block, by vectors of 64 bytes in registers: 256 terms of 96 rows in
float64, of 192 rows with AVX-512, whose processors have second-level caches of 1 MB and more."""
_SLICE_BYTES = 16 << 20
"""Most bytes of copied panels, as far as a block of terms allows."""
_FEWEST_ROWS = 8
"""As many chunks of rows at least, where there is work for them."""
_CHUNKS = 12
"""As many chunks of rows and columns: threads wait for a part of one in the end."""


def write_packed(e: Routines, a: Array, b: Array, out: Array, core: Core) -> None:
    """Write ``out = a @ b`` for the axes of a core."""
    _Packed(e, out.dtype, core).write(a, b, out)


class _Packed:
    """Extents of tiles, panels and chunks of a product, and its code."""

    def __init__(self, e: Routines, dtype: np.dtype, core: Core) -> None:
        self.e, self.dtype, self.core = e, dtype, core
        registers = e.b.module.machine.registers
        self.tiles = tiles = Tiles(registers, dtype)
        self.lanes, self.height, self.width = tiles.lanes, tiles.height, tiles.width
        self.m, self.n, self.k = core.row.extent, core.column.extent, core.summed.extent
        self.across = -(-self.n // self.width)  # panels of columns
        down = -(-self.m // self.height)
        most = _BLOCK_BYTES[registers] // (_TERMS * dtype.itemsize * self.height)
        self.tall = max(1, min(most, -(-down // _FEWEST_ROWS)))  # panels of rows of a chunk
        self.rows = -(-down // self.tall)
        splits = max(1, min(-(-_CHUNKS // self.rows), self.across // 8))
        self.wide = -(-self.across // splits)  # panels of columns of a chunk
        self.columns = -(-self.across // self.wide)
        blocks = _SLICE_BYTES // (self.across * self.width * _TERMS * dtype.itemsize)
        self.depth = min(self.k, max(1, blocks) * _TERMS)  # terms of a slice

    def write(self, a: Array, b: Array, out: Array) -> None:
        """All of it, slice by slice."""
        e = self.e
        panels = e.workspace((self.across * self.depth * self.width,), self.dtype)
        start = e.workspace((1,), np.dtype(np.int64))  # the first term of the slice
        block = self.tall * self.height * min(self.k, _TERMS) * self.dtype.itemsize
        if self.depth == self.k:
            e.b.store(e.b.index(0), start.pointer, 8)
            self._write_slice(a, b, panels, out, start, block)
            return
        with e.b.loop(e.b.index(0), e.b.index(self.k), self.depth) as first:
            e.b.store(first, start.pointer, 8)
            self._write_slice(a, b, panels, out, start, block)

    def _write_slice(
        self, a: Array, b: Array, panels: Array, out: Array, start: Array, block: int
    ) -> None:
        """On threads where it is worth them."""

        def copy(e: Routines, arrays: list[Array], panel: Value) -> None:
            _, right, panels, _, start = arrays
            self._copy_columns(e, right, panels, start, panel)

        def chunk(e: Routines, arrays: list[Array], number: Value) -> None:
            left, _, panels, out, start, memory = arrays
            self._chunk(e, left, panels, out, start, memory.pointer, number)

        self.e.in_chunks(
            self.rows * self.columns,
            [a, b, panels, out, start],
            chunk,
            before=(self.across, copy),
            on_threads=self.m * self.n * self.k >= WORTH_THREADS,
            scratch_bytes=block,
        )

    # Each is a function that all products of a program share; extents and steps are arguments.

    def _copy_columns(
        self, e: Routines, b: Array, panels: Array, start: Array, panel: Value
    ) -> None:
        """One panel of columns."""
        column, k = self.core.column, self.core.summed
        numbers = (self.n, k.b, column.b)
        is_row = column.b == 1
        first, terms = self._slice(e, start)
        source = self.tiles.at(e, b.pointer, (first, k.b))
        e.b.helper(
            f"functrans.packed_copy_{self.dtype}_{self.lanes}_{int(is_row)}",
            [source, panels.pointer, panel, terms, *map(e.b.index, numbers)],
            None,
            lambda inner: self._write_copy_columns(e.on(inner), is_row),
        )

    def _chunk(
        self,
        e: Routines,
        a: Array,
        panels: Array,
        out: Array,
        start: Array,
        memory: Value,
        number: Value,
    ) -> None:
        """The tiles of some rows and columns."""
        row, k = self.core.row, self.core.summed
        is_row = k.a == 1
        numbers = (self.m, self.n, row.a, k.a, row.out)
        chunks = (self.tall, self.wide, self.columns, self.across)
        first, terms = self._slice(e, start)
        source = self.tiles.at(e, a.pointer, (first, k.a))
        e.b.helper(
            f"functrans.packed_chunk_{self.dtype}_{self.height}_{self.lanes}_{int(is_row)}",
            [
                *(source, panels.pointer, out.pointer, memory, number, first, terms),
                *map(e.b.index, (*numbers, *chunks)),
            ],
            None,
            lambda inner: self._write_chunk(e.on(inner), is_row),
        )

    def _slice(self, e: Routines, start: Array) -> tuple[Value, Value]:
        """Its first term, and how many it has."""
        first = e.read(start, e.b.index(0)).value
        left = e.b.sub(e.b.index(self.k), first)
        return first, e.b.intrinsic("smin", left, e.b.index(self.depth))

    def _write_copy_columns(self, e: Routines, is_row: bool) -> None:
        """Behind the last column, that again, whose sums nobody reads."""
        build = e.b
        b, panels, panel, k, n, k_step, column_step = build.arguments
        first = build.mul(panel, build.index(self.width))
        target = self.tiles.at(e, panels, (panel, build.mul(k, build.index(self.width))))
        is_full = build.icmp("sle", build.add(first, build.index(self.width)), n)
        single = build.true()
        if is_row:
            with build.when(is_full), e.count(k) as row:
                for start in (0, self.lanes):
                    source = self.tiles.at(e, b, (row, k_step), (first, 1), (start, 1))
                    to = self.tiles.at(e, target, (row, self.width), (start, 1))
                    e.store(e.load(self.dtype, source, self.lanes), to)
            single = build.not_(is_full)
        with build.when(single), e.count(self.width) as place:
            own = build.intrinsic("smin", build.add(first, place), build.sub(n, build.index(1)))
            with e.count(k) as row:
                source = self.tiles.at(e, b, (row, k_step), (own, column_step))
                e.store(
                    e.load(self.dtype, source),
                    self.tiles.at(e, target, (row, self.width), (place, 1)),
                )
        build.ret()

    def _write_chunk(self, e: Routines, is_row: bool) -> None:
        """Block of terms by block of terms."""
        build = e.b
        a, panels, out, memory, number, before, k, m, n, *rest = build.arguments
        row_step, k_step, out_step, tall, wide, across_chunks, across = rest
        rows, columns = build.udiv(number, across_chunks), build.urem(number, across_chunks)
        height = build.index(self.height)
        first_row = build.mul(build.mul(rows, tall), height)
        first = build.mul(columns, wide)
        last = build.intrinsic("smin", build.add(first, wide), across)
        spare = self.tiles.spare(e)
        left = build.sub(m, first_row)
        high = build.udiv(build.add(left, build.index(self.height - 1)), height)
        high = build.intrinsic("smin", high, tall)
        block = build.mul(build.intrinsic("smin", k, build.index(_TERMS)), height)
        with build.loop(build.index(0), k, _TERMS) as base:
            terms = build.intrinsic("smin", build.sub(k, base), build.index(_TERMS))
            with e.count(high) as panel:
                column = self.tiles.at(e, a, (base, k_step))
                own = build.add(build.mul(panel, height), first_row)
                sources = self.tiles.rows(e, column, own, m, row_step, self.height)
                target = self.tiles.at(e, memory, (panel, block))
                self.tiles.copy_rows(e, sources, target, terms, k_step, is_row)
            with e.count(last, first) as panel, e.count(high) as q:
                start = build.add(build.mul(panel, k), base)
                right = self.tiles.at(e, panels, (start, self.width))
                row = build.add(first_row, build.mul(q, height))
                column = build.mul(panel, build.index(self.width))
                target = self.tiles.at(e, out, (row, out_step), (column, 1))
                within = build.sub(m, row), build.sub(n, column)
                own = self.tiles.at(e, memory, (q, block))
                done = build.add(before, base)
                following = self.tiles.at(e, right, (k, self.width))
                ahead = build.offset(following, build.mul(q, build.index(self.tiles.fetched)))
                self.tiles.sum_within(
                    e, own, right, terms, target, out_step, within, spare, done=done, ahead=ahead
                )
        build.ret()
