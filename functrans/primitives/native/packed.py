"""Large matrix products of real numbers, whatever the order of their operands in memory.

Here: ``write_packed``. Not here: which products are computed so (``dot_plan``), the others
(``dot``).

The second operand is copied once, in panels of as many columns as a tile has; the first one block
by block, in panels of as many rows, into memory that stays in the second-level cache. A tile's sums
stay in registers for a block of terms and are then added to the result. Rows (and columns, where
there are few rows) are cut into chunks, which whoever is free takes: no thread waits for another
one by spinning, so that a busy machine costs what it takes away and no more.

The order of additions depends on nothing but the position in the sum: the terms of a block one
after the other, each multiplied and added with one rounding, then the blocks.

Layer: ``primitives.native``. Reference: Goto and van de Geijn, Anatomy of high-performance matrix
multiplication, ACM TOMS 34 (2008), article 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.routine_loops import LoopVariable

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value
    from functrans.primitives.native.dot_plan import Core

_TERMS = 256
"""Terms that are added up in registers."""
_BLOCK_ROWS = 96
"""Most rows of a copied block: with 256 terms of 8 bytes, 192 KiB."""
_CHUNKS = 8
"""As many chunks at least, where there is work for them."""
_WORTH_THREADS = 8_000_000
"""Multiplications from which chunks run on threads."""


def write_packed(e: Routines, a: Array, b: Array, out: Array, core: Core) -> None:
    """Write ``out = a @ b`` for the axes of a core."""
    _Packed(e, out.dtype, core).write(a, b, out)


class _Packed:
    """Extents of tiles, panels and chunks of a product, and its code."""

    def __init__(self, e: Routines, dtype: np.dtype, core: Core) -> None:
        self.e, self.dtype, self.core = e, dtype, core
        is_wide = e.b.module.machine.registers > 8
        self.lanes = (64 if is_wide else 32) // dtype.itemsize
        self.height, self.width = (12 if is_wide else 6), 2 * self.lanes
        self.m, self.n, self.k = core.row.extent, core.column.extent, core.summed.extent
        self.across = -(-self.n // self.width)  # panels of columns
        down = -(-self.m // self.height)
        most = _BLOCK_ROWS // self.height
        self.tall = max(1, min(most, -(-down // _CHUNKS)))  # panels of rows of a chunk
        self.rows = -(-down // self.tall)
        splits = max(1, min(-(-_CHUNKS // self.rows), self.across // 8))
        self.wide = -(-self.across // splits)  # panels of columns of a chunk
        self.columns = -(-self.across // self.wide)

    def write(self, a: Array, b: Array, out: Array) -> None:
        """All of it, on threads where it is worth them."""
        e, size = self.e, self.dtype.itemsize
        panels = e.workspace((self.across * self.k * self.width,), self.dtype)
        block = self.tall * self.height * min(self.k, _TERMS)
        if self.m * self.n * self.k < _WORTH_THREADS:
            memory = e.workspace((block,), self.dtype)
            with e.count(self.across) as panel:
                self._copy_columns(e, b, panels, panel)
            with e.count(self.rows * self.columns) as number:
                self._chunk(e, a, panels, out, memory.pointer, number)
            return

        def copy(e: Routines, arrays: list[Array], number: Value) -> None:
            source, target = arrays
            self._copy_columns(e, source, target, number)

        def chunk(e: Routines, arrays: list[Array], number: Value) -> None:
            left, right, result = arrays
            self._chunk(e, left, right, result, e.b.alloca_bytes(block * size), number)

        e.in_chunks(self.across, [b, panels], copy)
        e.in_chunks(self.rows * self.columns, [a, panels, out], chunk)

    def _copy_columns(self, e: Routines, b: Array, panels: Array, panel: Value) -> None:
        """One panel of columns; behind the last one, that again, whose sums nobody reads."""
        build, size = e.b, self.dtype.itemsize
        column, k = self.core.column, self.core.summed
        first = build.mul(panel, build.index(self.width))
        target = build.offset(
            panels.pointer, build.mul(panel, build.index(self.k * self.width * size))
        )

        def at(row: Value, place: Value) -> Value:
            step = build.add(
                build.mul(row, build.index(k.b)), build.mul(place, build.index(column.b))
            )
            return build.offset(b.pointer, build.mul(step, build.index(size)))

        def to(row: Value, place: int | Value) -> Value:
            flat = build.add(
                build.mul(row, build.index(self.width)),
                place if not isinstance(place, int) else build.index(place),
            )
            return build.offset(target, build.mul(flat, build.index(size)))

        is_full = build.icmp("sle", build.add(first, build.index(self.width)), build.index(self.n))
        if column.b == 1:
            with build.when(is_full), e.count(self.k) as row:
                for start in (0, self.lanes):
                    x = e.load(
                        self.dtype, at(row, build.add(first, build.index(start))), self.lanes
                    )
                    e.store(x, to(row, start))
            single = build.not_(is_full)
        else:
            single = build.true()
        with build.when(single), e.count(self.width) as place:
            own = build.intrinsic("smin", build.add(first, place), build.index(self.n - 1))
            with e.count(self.k) as row:
                e.store(e.load(self.dtype, at(row, own)), to(row, place))

    def _copy_rows(
        self, e: Routines, a: Array, memory: Value, first_row: Value, first: Value, terms: Value
    ) -> None:
        """A block of rows and terms, panel by panel."""
        build, size = e.b, self.dtype.itemsize
        row, k = self.core.row, self.core.summed
        with e.count(self.tall) as panel:
            start = build.add(first_row, build.mul(panel, build.index(self.height)))
            sources = []
            for r in range(self.height):
                own = build.intrinsic(
                    "smin", build.add(start, build.index(r)), build.index(self.m - 1)
                )
                step = build.add(
                    build.mul(own, build.index(row.a)), build.mul(first, build.index(k.a))
                )
                sources.append(build.offset(a.pointer, build.mul(step, build.index(size))))
            target = build.offset(
                memory,
                build.mul(panel, build.index(self.height * min(self.k, _TERMS) * size)),
            )
            with e.count(terms) as term:
                step = build.mul(term, build.index(k.a * size))
                place = build.offset(target, build.mul(term, build.index(self.height * size)))
                for r, source in enumerate(sources):
                    x = e.load(self.dtype, build.offset(source, step))
                    e.store(x, build.offset(place, build.index(r * size)))

    def _chunk(
        self, e: Routines, a: Array, panels: Array, out: Array, memory: Value, number: Value
    ) -> None:
        """The tiles of some rows and columns, block of terms by block of terms."""
        build, size = e.b, self.dtype.itemsize
        rows = build.udiv(number, build.index(self.columns))
        columns = build.urem(number, build.index(self.columns))
        first_row = build.mul(rows, build.index(self.tall * self.height))
        first = build.mul(columns, build.index(self.wide))
        last = build.intrinsic(
            "smin", build.add(first, build.index(self.wide)), build.index(self.across)
        )
        spare = build.alloca_bytes(self.height * self.width * size)
        left = build.sub(build.index(self.m), first_row)
        high = build.intrinsic(
            "smin",
            build.udiv(build.add(left, build.index(self.height - 1)), build.index(self.height)),
            build.index(self.tall),
        )
        with build.loop(build.index(0), build.index(self.k), _TERMS) as base:
            terms = build.intrinsic(
                "smin", build.sub(build.index(self.k), base), build.index(_TERMS)
            )
            self._copy_rows(e, a, memory, first_row, base, terms)
            with e.count(last, first) as panel, e.count(high) as q:
                step = build.add(build.mul(panel, build.index(self.k)), base)
                right = build.offset(
                    panels.pointer, build.mul(step, build.index(self.width * size))
                )
                block = self.height * min(self.k, _TERMS) * size
                own = build.offset(memory, build.mul(q, build.index(block)))
                row = build.add(first_row, build.mul(q, build.index(self.height)))
                column = build.mul(panel, build.index(self.width))
                self._tile(e, own, right, terms, base, out, row, column, spare)

    def _tile(
        self,
        e: Routines,
        left: Value,
        right: Value,
        terms: Value,
        base: Value,
        out: Array,
        row: Value,
        column: Value,
        spare: Value,
    ) -> None:
        """One tile, straight into the result where all of it is inside, else through a copy."""
        build, size = e.b, self.dtype.itemsize
        step = self.core.row.out
        place = build.add(build.mul(row, build.index(step)), column)
        target = build.offset(out.pointer, build.mul(place, build.index(size)))
        below, behind = (
            build.sub(build.index(extent), first)
            for extent, first in ((self.m, row), (self.n, column))
        )
        is_inside = build.and_(
            build.icmp("sge", below, build.index(self.height)),
            build.icmp("sge", behind, build.index(self.width)),
        )
        with build.when(is_inside):
            self._sum(e, left, right, terms, base, target, build.index(step * size))
        with build.when(build.not_(is_inside)):
            first = build.index(0)
            self._sum(e, left, right, terms, first, spare, build.index(self.width * size))
            rows = build.intrinsic("smin", below, build.index(self.height))
            columns = build.intrinsic("smin", behind, build.index(self.width))
            with e.each((rows, columns)) as (i, j):
                at = build.add(build.mul(i, build.index(self.width)), j)
                x = e.load(self.dtype, build.offset(spare, build.mul(at, build.index(size))))
                to = build.add(build.mul(i, build.index(step)), j)
                to = build.offset(target, build.mul(to, build.index(size)))
                with build.when(build.icmp("ne", base, first)):
                    e.store(e.add(e.load(self.dtype, to), x), to)
                with build.when(build.icmp("eq", base, first)):
                    e.store(x, to)

    def _sum(
        self,
        e: Routines,
        left: Value,
        right: Value,
        terms: Value,
        base: Value,
        target: Value,
        step: Value,
    ) -> None:
        """Call the function that sums a tile; it adds to what is there unless ``base`` is 0."""
        name = f"functrans.packed_{self.dtype}_{self.height}_{self.lanes}"
        e.b.helper(
            name,
            [left, right, terms, base, target, step],
            None,
            lambda inner: self._write_sum(e.on(inner)),
        )

    def _write_sum(self, e: Routines) -> None:
        build, size = e.b, self.dtype.itemsize
        left, right, terms, base, target, step = build.arguments
        tile = list(itertools.product(range(self.height), range(2)))
        sums = [LoopVariable(e, e.constant(self.dtype, 0, self.lanes)) for _ in tile]
        with e.count(terms) as term:
            x_at = build.offset(left, build.mul(term, build.index(self.height * size)))
            y_at = build.offset(right, build.mul(term, build.index(self.width * size)))
            ys = [
                e.load(
                    self.dtype, build.offset(y_at, build.index(v * self.lanes * size)), self.lanes
                )
                for v in range(2)
            ]
            for r in range(self.height):
                x = e.load(self.dtype, build.offset(x_at, build.index(r * size)))
                wide = e.splat(x, self.lanes)
                for v, y in enumerate(ys):
                    total = sums[2 * r + v]
                    fused = build.fma(wide.value, y.value, total.get().value)
                    total.set(replace(y, parts=(fused,)))

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

        is_first = build.icmp("eq", base, build.index(0))
        with build.when(is_first):
            finish(lambda place, total: e.store(total.get(), place))
        with build.when(build.not_(is_first)):
            finish(
                lambda place, total: e.store(
                    e.add(e.load(self.dtype, place, self.lanes), total.get()), place
                )
            )
        build.ret()
