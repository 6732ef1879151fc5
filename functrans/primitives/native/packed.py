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

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.dot_plan import WORTH_THREADS
from functrans.primitives.native.routine_loops import LoopVariable

if TYPE_CHECKING:
    from functrans.emitter.builder import Builder
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value
    from functrans.primitives.native.dot_plan import Core

_SQUARE = 4
"""Rows and terms that are copied together."""
_LINE = 64
"""Bytes of a line of the caches."""
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
_AHEAD = 3
"""Lines of the next panel of columns that are fetched for each row of a tile: with the fewest rows
that fill a block, all of it is near when its turn comes."""


def write_packed(e: Routines, a: Array, b: Array, out: Array, core: Core) -> None:
    """Write ``out = a @ b`` for the axes of a core."""
    _Packed(e, out.dtype, core).write(a, b, out)


class _Packed:
    """Extents of tiles, panels and chunks of a product, and its code."""

    def __init__(self, e: Routines, dtype: np.dtype, core: Core) -> None:
        self.e, self.dtype, self.core = e, dtype, core
        registers = e.b.module.machine.registers
        is_wide = registers > 8
        self.lanes = (64 if is_wide else 32) // dtype.itemsize
        self.height, self.width = (12 if is_wide else 6), 2 * self.lanes
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
        e = self.e
        if self.m * self.n * self.k < WORTH_THREADS:
            memory = e.workspace((block,), np.dtype(np.uint8)).pointer
            with e.count(self.across) as panel:
                self._copy_columns(e, b, panels, start, panel)
            with e.count(self.rows * self.columns) as number:
                self._chunk(e, a, panels, out, start, memory, number)
            return

        def piece(e: Routines, arrays: list[Array], number: Value) -> None:
            left, right, panels, out, start = arrays
            rest = e.b.sub(number, e.b.index(self.across))
            is_copy = e.b.icmp("slt", rest, e.b.index(0))
            with e.b.when(is_copy):
                self._copy_columns(e, right, panels, start, number)
            with e.b.when(e.b.not_(is_copy)):
                self._chunk(e, left, panels, out, start, e.b.alloca_bytes(block), rest)

        count = self.across + self.rows * self.columns
        e.in_chunks(count, [a, b, panels, out, start], piece, first=self.across)

    # Each is a function that all products of a program share; extents and steps are arguments.

    def _copy_columns(
        self, e: Routines, b: Array, panels: Array, start: Array, panel: Value
    ) -> None:
        """One panel of columns."""
        column, k = self.core.column, self.core.summed
        numbers = (self.n, k.b, column.b)
        is_row = column.b == 1
        first, terms = self._slice(e, start)
        source = self._at(e, b.pointer, (first, k.b))
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
        source = self._at(e, a.pointer, (first, k.a))
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

    def _at(self, e: Routines, pointer: Value, *terms: tuple[Value | int, Value | int]) -> Value:
        """The address of an element, by indices and their steps."""
        build = e.b
        total = build.index(0)
        for pair in terms:
            index, step = (x if not isinstance(x, int) else build.index(x) for x in pair)
            total = build.add(total, build.mul(index, step))
        return build.offset(pointer, build.mul(total, build.index(self.dtype.itemsize)))

    def _write_copy_columns(self, e: Routines, is_row: bool) -> None:
        """Behind the last column, that again, whose sums nobody reads."""
        build = e.b
        b, panels, panel, k, n, k_step, column_step = build.arguments
        first = build.mul(panel, build.index(self.width))
        target = self._at(e, panels, (panel, build.mul(k, build.index(self.width))))
        is_full = build.icmp("sle", build.add(first, build.index(self.width)), n)
        single = build.true()
        if is_row:
            with build.when(is_full), e.count(k) as row:
                for start in (0, self.lanes):
                    source = self._at(e, b, (row, k_step), (first, 1), (start, 1))
                    to = self._at(e, target, (row, self.width), (start, 1))
                    e.store(e.load(self.dtype, source, self.lanes), to)
            single = build.not_(is_full)
        with build.when(single), e.count(self.width) as place:
            own = build.intrinsic("smin", build.add(first, place), build.sub(n, build.index(1)))
            with e.count(k) as row:
                source = self._at(e, b, (row, k_step), (own, column_step))
                e.store(
                    e.load(self.dtype, source),
                    self._at(e, target, (row, self.width), (place, 1)),
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
        spare = build.alloca_bytes(self.height * self.width * self.dtype.itemsize)
        left = build.sub(m, first_row)
        high = build.udiv(build.add(left, build.index(self.height - 1)), height)
        high = build.intrinsic("smin", high, tall)
        block = build.mul(build.intrinsic("smin", k, build.index(_TERMS)), height)
        with build.loop(build.index(0), k, _TERMS) as base:
            terms = build.intrinsic("smin", build.sub(k, base), build.index(_TERMS))
            with e.count(high) as panel:
                sources = []
                for r in range(self.height):
                    own = build.add(build.mul(panel, height), build.add(first_row, build.index(r)))
                    own = build.intrinsic("smin", own, build.sub(m, build.index(1)))
                    sources.append(self._at(e, a, (own, row_step), (base, k_step)))
                target = self._at(e, memory, (panel, block))
                self._copy_rows(e, sources, target, terms, k_step, is_row)
            with e.count(last, first) as panel, e.count(high) as q:
                start = build.add(build.mul(panel, k), base)
                right = self._at(e, panels, (start, self.width))
                row = build.add(first_row, build.mul(q, height))
                column = build.mul(panel, build.index(self.width))
                target = self._at(e, out, (row, out_step), (column, 1))
                within = build.sub(m, row), build.sub(n, column)
                own = self._at(e, memory, (q, block))
                done = build.add(before, base)
                following = self._at(e, right, (k, self.width))
                ahead = build.mul(q, build.index(self.height * _AHEAD * _LINE))
                ahead = build.offset(following, ahead)
                self._tile(e, own, right, terms, done, target, out_step, within, spare, ahead)
        build.ret()

    def _copy_rows(
        self,
        e: Routines,
        sources: Sequence[Value],
        target: Value,
        terms: Value,
        k_step: Value,
        is_row: bool,
    ) -> None:
        """A panel of rows, term by term: by squares, where terms follow each other in memory."""
        build, done = e.b, e.b.index(0)
        if is_row:
            done = build.and_(terms, build.index(-_SQUARE))
            places = {*range(0, self.height - _SQUARE + 1, _SQUARE), self.height - _SQUARE}
            with build.loop(build.index(0), done, _SQUARE) as term:
                for place in sorted(places):
                    own = [
                        e.load(self.dtype, self._at(e, source, (term, 1)), _SQUARE)
                        for source in sources[place : place + _SQUARE]
                    ]
                    turned = self._turned(build, [x.value for x in own])
                    for i, (x, value) in enumerate(zip(own, turned, strict=True)):
                        to = self._at(e, target, (term, self.height), (i * self.height + place, 1))
                        e.store(replace(x, parts=(value,)), to)
        with e.count(terms, done) as term:
            for r, source in enumerate(sources):
                x = e.load(self.dtype, self._at(e, source, (term, k_step)))
                e.store(x, self._at(e, target, (term, self.height), (r, 1)))

    def _turned(self, build: Builder, rows: Sequence[Value]) -> list[Value]:
        """The columns of a square. Halves of 16 bytes are not left before the last step."""
        a, b, c, d = rows
        is_two = self.dtype.itemsize == 8  # in a half
        low, high = ((0, 4, 2, 6), (1, 5, 3, 7)) if is_two else ((0, 4, 1, 5), (2, 6, 3, 7))
        first, second = (0, 1, 4, 5), (2, 3, 6, 7)
        lows, highs = (
            (build.shuffle(a, b, lanes), build.shuffle(c, d, lanes)) for lanes in (low, high)
        )
        order = (
            [(lows, first), (highs, first), (lows, second), (highs, second)]
            if is_two
            else [(lows, first), (lows, second), (highs, first), (highs, second)]
        )
        return [build.shuffle(x, y, lanes) for (x, y), lanes in order]

    def _tile(
        self,
        e: Routines,
        left: Value,
        right: Value,
        terms: Value,
        done: Value,
        target: Value,
        out_step: Value,
        within: tuple[Value, Value],
        spare: Value,
        ahead: Value,
    ) -> None:
        """One tile, straight into the result where all of it is inside, else through a copy."""
        build, zero = e.b, e.b.index(0)
        full = [build.index(extent) for extent in (self.height, self.width)]
        is_inside = build.and_(
            *[build.icmp("sge", own, extent) for own, extent in zip(within, full, strict=True)]
        )
        size = build.index(self.dtype.itemsize)
        with build.when(is_inside):
            self._sum(e, left, right, terms, done, target, build.mul(out_step, size), ahead)
        with build.when(build.not_(is_inside)):
            self._sum(e, left, right, terms, zero, spare, build.mul(full[1], size), ahead)
            extents = [
                build.intrinsic("smin", own, extent)
                for own, extent in zip(within, full, strict=True)
            ]
            with e.each(extents) as (i, j):
                x = e.load(self.dtype, self._at(e, spare, (i, self.width), (j, 1)))
                to = self._at(e, target, (i, out_step), (j, 1))
                with build.when(build.icmp("ne", done, zero)):
                    e.store(e.add(e.load(self.dtype, to), x), to)
                with build.when(build.icmp("eq", done, zero)):
                    e.store(x, to)

    def _sum(
        self,
        e: Routines,
        left: Value,
        right: Value,
        terms: Value,
        done: Value,
        target: Value,
        step: Value,
        ahead: Value,
    ) -> None:
        """Call the function that sums a tile; it adds to what is there if terms are ``done``."""
        name = f"functrans.packed_{self.dtype}_{self.height}_{self.lanes}"
        e.b.helper(
            name,
            [left, right, terms, done, target, step, ahead],
            None,
            lambda inner: self._write_sum(e.on(inner)),
        )

    def _write_sum(self, e: Routines) -> None:
        """All terms, while what is needed next comes nearer: a row of the result at a time."""
        build, size = e.b, self.dtype.itemsize
        left, right, terms, done, target, step, ahead = build.arguments
        tile = list(itertools.product(range(self.height), range(2)))
        sums = [LoopVariable(e, e.constant(self.dtype, 0, self.lanes)) for _ in tile]
        height = build.index(self.height)
        share = build.udiv(build.add(terms, build.index(self.height - 1)), height)
        with e.count(self.height) as row:
            self._prefetch(build, build.offset(target, build.mul(step, row)))
            own = build.offset(ahead, build.mul(row, build.index(_AHEAD * _LINE)))
            for line in range(_AHEAD):
                _fetch(build, build.offset(own, build.index(line * _LINE)), 2)
            first = build.intrinsic("smin", build.mul(row, share), terms)
            with e.count(build.intrinsic("smin", build.add(first, share), terms), first) as term:
                self._add_term(e, left, right, term, sums)

        def places() -> list[Value]:
            return [
                build.offset(
                    build.offset(target, build.mul(step, build.index(r))),
                    build.index(v * self.lanes * size),
                )
                for r, v in tile
            ]

        def finish(combine: Callable[[Value, LoopVariable], None]) -> None:
            for place, total in zip(places(), sums, strict=True):
                combine(place, total)

        is_first = build.icmp("eq", done, build.index(0))
        with build.when(is_first):
            finish(lambda place, total: e.store(total.get(), place))
        with build.when(build.not_(is_first)):
            finish(
                lambda place, total: e.store(
                    e.add(e.load(self.dtype, place, self.lanes), total.get()), place
                )
            )
        build.ret()

    def _add_term(
        self, e: Routines, left: Value, right: Value, term: Value, sums: Sequence[LoopVariable]
    ) -> None:
        """Add the products of a term to all sums of a tile."""
        build, size = e.b, self.dtype.itemsize
        x_at = build.offset(left, build.mul(term, build.index(self.height * size)))
        y_at = build.offset(right, build.mul(term, build.index(self.width * size)))
        ys = [
            e.load(self.dtype, build.offset(y_at, build.index(v * self.lanes * size)), self.lanes)
            for v in range(2)
        ]
        for r in range(self.height):
            x = e.load(self.dtype, build.offset(x_at, build.index(r * size)))
            wide = e.splat(x, self.lanes)
            for v, y in enumerate(ys):
                total = sums[2 * r + v]
                fused = build.fma(wide.value, y.value, total.get().value)
                total.set(replace(y, parts=(fused,)))

    def _prefetch(self, build: Builder, row: Value) -> None:
        """Have a row of a result come nearer: each lies in a page that no hardware looks at."""
        size = self.width * self.dtype.itemsize
        for place in (*range(0, size, _LINE), size - 1):  # one more if it begins within a line
            _fetch(build, build.offset(row, build.index(place)), 3)


def _fetch(build: Builder, place: Value, locality: int) -> None:
    """Have a line come nearer: into the first-level cache (3) or the second-level one (2)."""
    build.module.declarations.setdefault(
        "llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    )
    build.statement(f"call void @llvm.prefetch.p0(ptr {place.text}, i32 0, i32 {locality}, i32 1)")
