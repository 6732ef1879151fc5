"""Tiles of matrix products in registers, and copies of rows for them.

Here: ``Tiles``. Not here: how tiles make up products (``packed``), and systems and factors
(``triangles``).

A tile is some rows by two vectors of columns. Its left operand lies term by term, a row's number
after the other's (a *panel*), its right one term by term, too. The sums stay in registers for all
terms of a call, one after the other, each multiplied and added with one rounding.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.routine_loops import LoopVariable

if TYPE_CHECKING:
    from functrans.emitter.builder import Builder
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Routines
    from functrans.emitter.types import Value

SQUARE = 4
"""Rows and terms that are copied together."""
_LINE = 64
"""Bytes of a line of the caches."""
_AHEAD = 3
"""Lines of what is needed later that are fetched for each row of a tile."""


class Tiles:
    """The extents of tiles on a machine, and their code; functions are shared by a program.

    Attributes:
      lanes: elements of a vector.
      height: rows of a tile.
      width: its columns, two vectors.
      fetched: bytes of what is needed later that each tile fetches.
    """

    def __init__(self, registers: int, dtype: np.dtype) -> None:
        is_wide = registers > 8
        self.dtype = dtype
        self.lanes = (64 if is_wide else 32) // dtype.itemsize
        self.height, self.width = (12 if is_wide else 6), 2 * self.lanes
        self.fetched = self.height * _AHEAD * _LINE

    def at(self, e: Routines, pointer: Value, *terms: tuple[Value | int, Value | int]) -> Value:
        """The address of an element, by indices and their steps."""
        build = e.b
        total = build.index(0)
        for pair in terms:
            index, step = (x if not isinstance(x, int) else build.index(x) for x in pair)
            total = build.add(total, build.mul(index, step))
        return build.offset(pointer, build.mul(total, build.index(self.dtype.itemsize)))

    def load(self, e: Routines, pointer: Value, *terms: tuple[Value | int, Value | int]) -> Number:
        """A vector that begins at an element."""
        return e.load(self.dtype, self.at(e, pointer, *terms), self.lanes)

    def rows(
        self, e: Routines, matrix: Value, first: Value, stop: Value, step: Value, count: int
    ) -> list[Value]:
        """Where some rows begin; from ``stop`` on that is the last one again."""
        last = e.b.sub(stop, e.b.index(1))
        numbers = [e.b.add(first, e.b.index(r)) for r in range(count)]
        return [self.at(e, matrix, (e.b.intrinsic("smin", row, last), step)) for row in numbers]

    def copy_rows(
        self,
        e: Routines,
        sources: Sequence[Value],
        target: Value,
        terms: Value,
        step: Value,
        is_row: bool,
    ) -> None:
        """Write rows term by term.

        Args:
          e: the emitter.
          sources: where rows begin.
          target: ``[terms, len(sources)]``.
          terms: how many there are.
          step: from one term to the next, in elements.
          is_row: whether it is known to be 1: squares are copied then.
        """
        build, done, height = e.b, e.b.index(0), len(sources)
        if is_row:
            done = build.and_(terms, build.index(-SQUARE))
            places = {*range(0, height - SQUARE + 1, SQUARE), height - SQUARE}
            with build.loop(build.index(0), done, SQUARE) as term:
                for place in sorted(places):
                    own = [
                        e.load(self.dtype, self.at(e, source, (term, 1)), SQUARE)
                        for source in sources[place : place + SQUARE]
                    ]
                    for i, x in enumerate(self.turned(e, own)):
                        e.store(x, self.at(e, target, (term, height), (i * height + place, 1)))
        with e.count(terms, done) as term:
            for r, source in enumerate(sources):
                x = e.load(self.dtype, self.at(e, source, (term, step)))
                e.store(x, self.at(e, target, (term, height), (r, 1)))

    def turned(self, e: Routines, rows: Sequence[Number]) -> list[Number]:
        """The columns of a square. Halves of 16 bytes are not left before the last step."""
        build = e.b
        a, b, c, d = (x.value for x in rows)
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
        columns = (build.shuffle(x, y, lanes) for (x, y), lanes in order)
        return [replace(rows[0], parts=(column,)) for column in columns]

    def sum(
        self,
        e: Routines,
        left: Value,
        right: Value,
        terms: Value,
        target: Value,
        step: Value,
        *,
        done: Value | None,
        ahead: Value,
    ) -> None:
        """Sum the products of a tile.

        Args:
          e: the emitter.
          left: ``[terms, height]``.
          right: ``[terms, width]``.
          terms: how many there are.
          target: where the first sum goes.
          step: from one row of the target to the next, in bytes.
          done: sums are added to what is there, unless this is 0; ``None``: they are subtracted.
          ahead: what is needed later.
        """
        kind = "minus" if done is None else "plus"
        e.b.helper(
            f"functrans.tile_{kind}_{self.dtype}_{self.height}_{self.lanes}",
            [left, right, terms, e.b.index(1) if done is None else done, target, step, ahead],
            None,
            lambda inner: self._write_sum(e.on(inner), done is None),
        )

    def spare(self, e: Routines) -> Value:
        """Memory for a tile."""
        return e.b.alloca_bytes(self.height * self.width * self.dtype.itemsize)

    def sum_within(
        self,
        e: Routines,
        left: Value,
        right: Value,
        terms: Value,
        target: Value,
        step: Value,
        within: tuple[Value, Value],
        spare: Value,
        *,
        done: Value | None,
        ahead: Value,
    ) -> None:
        """Sum the products of a tile that may reach beyond the target.

        Args:
          e: the emitter.
          left: ``[terms, height]``.
          right: ``[terms, width]``.
          terms: how many there are.
          target: where the first sum goes.
          step: from one row of the target to the next, in elements.
          within: rows and columns that the target has from there on; 0 or less are none.
          spare: memory for a tile.
          done: as in ``sum``.
          ahead: as in ``sum``.
        """
        build, zero = e.b, e.b.index(0)
        full = [build.index(extent) for extent in (self.height, self.width)]
        is_inside = build.and_(
            *[build.icmp("sge", own, extent) for own, extent in zip(within, full, strict=True)]
        )
        size = build.index(self.dtype.itemsize)
        with build.when(is_inside):
            self.sum(e, left, right, terms, target, build.mul(step, size), done=done, ahead=ahead)
        with build.when(build.not_(is_inside)):
            own_step = build.mul(full[1], size)
            self.sum(e, left, right, terms, spare, own_step, done=zero, ahead=ahead)
            extents = [
                build.intrinsic("smin", own, extent)
                for own, extent in zip(within, full, strict=True)
            ]
            with e.each(extents) as (i, j):
                x = e.load(self.dtype, self.at(e, spare, (i, self.width), (j, 1)))
                to = self.at(e, target, (i, step), (j, 1))
                if done is None:
                    e.store(e.subtract(e.load(self.dtype, to), x), to)
                else:
                    with build.when(build.icmp("ne", done, zero)):
                        e.store(e.add(e.load(self.dtype, to), x), to)
                    with build.when(build.icmp("eq", done, zero)):
                        e.store(x, to)

    def _write_sum(self, e: Routines, is_minus: bool) -> None:
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

        def finish(is_first: bool) -> None:
            for (r, v), total in zip(tile, sums, strict=True):
                place = build.offset(target, build.mul(step, build.index(r)))
                place = build.offset(place, build.index(v * self.lanes * size))
                value = total.get()
                if not is_first:
                    combine = e.subtract if is_minus else e.add
                    value = combine(e.load(self.dtype, place, self.lanes), value)
                e.store(value, place)

        if is_minus:
            finish(False)
        else:
            is_first = build.icmp("eq", done, build.index(0))
            with build.when(is_first):
                finish(True)
            with build.when(build.not_(is_first)):
                finish(False)
        build.ret()

    def _add_term(
        self, e: Routines, left: Value, right: Value, term: Value, sums: Sequence[LoopVariable]
    ) -> None:
        """Add the products of a term to all sums of a tile."""
        build = e.b
        ys = [self.load(e, right, (term, self.width), (v * self.lanes, 1)) for v in range(2)]
        for r in range(self.height):
            x = e.load(self.dtype, self.at(e, left, (term, self.height), (r, 1)))
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
