"""Triangular systems and Cholesky factors: of real matrices on tiles, on threads of our own.

Here: ``solve_triangle``, ``factors_on_tiles`` and ``write_cholesky``. Not here: other calls of
LAPACK (``fortran``), what a tile is (``tiles``).

LAPACK's own threads wait for each other in the midst of a factorization, which takes tens of
milliseconds instead of one where another process has a processor. Here whoever is free takes the
next piece, and threads wait for the last piece of others alone.

A system is solved for a strip of unknowns, as wide as a tile, at a time: each row of tiles is the
right-hand side less a sum of products with the rows before, and then a small triangle. Its matrix
is copied once, in panels of rows, each as long as its last row. A system that is solved from below,
or a transposed one, is the same with other steps in memory.

A Cholesky factor is made block of columns by block of columns: LAPACK factors the square on the
diagonal, which is so small that it does so on one thread; the rows below are a triangular system
with it, whose solutions make up the product that is then subtracted from the rest.

The order of operations does not depend on the number of threads.

Layer: ``primitives.native``. Reference: Golub and Van Loan, Matrix Computations, 4th ed. (2013),
sections 3.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.dot_plan import WORTH_THREADS
from functrans.primitives.native.fortran import LETTER, call, scalar
from functrans.primitives.native.tiles import SQUARE, Tiles

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

_FEWEST_UNKNOWNS = 24
"""Of a system; LAPACK's routines are as fast for smaller ones."""
_FEWEST_COLUMNS = 16
_MOST_UNKNOWNS = 1400
"""Whose panels, 8 MB in float64, the last-level cache holds for all strips."""
_NEAR_BYTES = 1 << 20
"""What a second-level cache holds: larger panels are read for several strips, of half of it."""
_FEWEST_PIECES = 4
"""As many at least, for threads."""
_BLOCK = 96
"""Columns of a block of a Cholesky factor: whole panels of 6 and 12 rows, and one thread's work."""
_SMALLEST_FACTOR = 112
_WORTH_THREADS = 256
"""Rows of a factor that is made on several threads."""
_LARGEST_FACTOR = 3000
"""Measured up to here, where LAPACK takes a fifth longer; products of longer blocks read less."""


def solve_triangle(
    e: Routines,
    matrix: Array,
    x: Array,
    *,
    lower: bool,
    trans: str = "N",
    unit_diagonal: bool = False,
    by_column: bool = False,
) -> None:
    """Solve ``op(matrix) y = x`` in place of ``x[n, k]``, which lies by row.

    By column the unknowns are ``y^T``, and the system is ``y^T op(matrix)^T = x^T``. The matrix by
    column is ``m = matrix^T``, and ``op(matrix)^T`` is ``m``, ``m^T`` or ``m^H`` when ``op`` is
    ``N``, ``T`` or ``C``: the same letter, of the other triangle. If the matrix itself lies by
    column it is ``matrix^T`` or ``matrix`` for ``N`` or ``T``; ``C`` is not to be had. A single
    unknown vector has a routine of its own, for the system as it stands.
    """
    n, k = x.shape
    if x.dtype.kind == "f" and _FEWEST_UNKNOWNS <= n <= _MOST_UNKNOWNS and k >= _FEWEST_COLUMNS:
        steps = (1, n) if (trans != "N") != by_column else (n, 1)
        _System(e, x.dtype, n, steps, lower == (trans == "N"), unit_diagonal).solve(matrix, x)
        return
    uplo = "L" if lower == by_column else "U"
    diagonal = "U" if unit_diagonal else "N"
    letter = LETTER[x.dtype.char]
    is_vector = k == 1 and (trans != "C" or x.dtype.kind == "f")
    if by_column != is_vector:
        trans = {"N": "T", "T": "N", "C": "N"}[trans]
    if is_vector:
        call(e, f"blas.{letter}trsv", uplo, trans, diagonal, n, matrix, n, x, 1)
        return
    one = scalar(e, x.dtype, 1)
    call(e, f"blas.{letter}trsm", "R", uplo, trans, diagonal, k, n, one, matrix, n, x, k)


def factors_on_tiles(n: int, dtype: np.dtype) -> bool:
    """Whether ``write_cholesky`` factors matrices of ``n`` rows."""
    return dtype.kind == "f" and _SMALLEST_FACTOR <= n <= _LARGEST_FACTOR


def write_cholesky(e: Routines, matrix: Array, factor: Callable[[Value, Value], None]) -> None:
    """Write the lower Cholesky factor of ``matrix[n, n]`` into its lower triangle.

    The upper triangle is neither read nor left as it was.

    Args:
      e: the emitter.
      matrix: by row.
      factor: writes code that factors a block on the diagonal, given its size and address.
    """
    _Cholesky(e, matrix, factor).write()


class _Triangle:
    """Panels of a lower triangular matrix, and solutions of systems for a strip of unknowns."""

    def __init__(self, e: Routines, dtype: np.dtype, n: int, steps: tuple[int, int]) -> None:
        self.tiles = Tiles(e.b.module.machine.registers, dtype)
        self.dtype, self.n, self.steps = dtype, n, steps
        self.height, self.width = self.tiles.height, self.tiles.width
        self.down = -(-n // self.height)
        self.padded = self.down * self.height

    def panels(self, e: Routines) -> Array:
        """Memory for all of them."""
        return e.workspace((self.height**2 * self.down * (self.down + 1) // 2,), self.dtype)

    def _panel(self, e: Routines, panels: Value, number: Value) -> Value:
        """Where a panel begins: each is a square longer than the one before."""
        build = e.b
        before = build.lshr(build.mul(number, build.add(number, build.index(1))), build.index(1))
        return self.tiles.at(e, panels, (before, self.height**2))

    def copy(self, e: Routines, matrix: Value, panels: Value, number: Value) -> None:
        """Copy a panel; behind the last row comes that again."""
        is_row = self.steps[1] == 1
        e.b.helper(
            f"functrans.triangle_copy_{self.dtype}_{self.height}_{int(is_row)}",
            [matrix, panels, number, *map(e.b.index, (self.n, *self.steps))],
            None,
            lambda inner: self._write_copy(e.on(inner), is_row),
        )

    def _write_copy(self, e: Routines, is_row: bool) -> None:
        build = e.b
        matrix, panels, number, n, row_step, term_step = build.arguments
        first = build.mul(number, build.index(self.height))
        sources = self.tiles.rows(e, matrix, first, n, row_step, self.height)
        terms = build.intrinsic("smin", build.add(first, build.index(self.height)), n)
        target = self._panel(e, panels, number)
        self.tiles.copy_rows(e, sources, target, terms, term_step, is_row)
        build.ret()

    def solve_strips(
        self, e: Routines, panels: Value, memory: Value, count: Value, is_unit: bool
    ) -> None:
        """Solve for ``[count, padded, width]`` in place."""
        kind = "unit" if is_unit else "any"
        e.b.helper(
            f"functrans.triangle_{kind}_{self.dtype}_{self.height}_{self.tiles.lanes}",
            [panels, memory, e.b.index(self.down), count],
            None,
            lambda inner: self._write_solve_strips(e.on(inner), is_unit),
        )

    def _write_solve_strips(self, e: Routines, is_unit: bool) -> None:
        """Panel by panel, each of which is read for all strips."""
        build, tiles, height = e.b, self.tiles, self.height
        panels, first_strip, down, count = build.arguments
        spare = tiles.spare(e)
        step = build.index(self.width * self.dtype.itemsize)
        length = build.mul(down, build.index(height * self.width))
        with e.count(down) as number, e.count(count) as strip:
            left = self._panel(e, panels, number)
            memory = tiles.at(e, first_strip, (strip, length))
            terms = build.mul(number, build.index(height))
            tiles.sum(e, left, memory, terms, spare, step, done=build.index(0), ahead=memory)
            square = tiles.at(e, left, (terms, height))
            own = tiles.at(e, memory, (terms, self.width))
            rows = [
                [
                    e.subtract(
                        tiles.load(e, own, (r, self.width), (v * tiles.lanes, 1)),
                        tiles.load(e, spare, (r, self.width), (v * tiles.lanes, 1)),
                    )
                    for v in range(2)
                ]
                for r in range(height)
            ]
            for q in range(height):
                if not is_unit:
                    pivot = e.load(self.dtype, tiles.at(e, square, (q, height), (q, 1)))
                    wide = e.splat(pivot, tiles.lanes)
                    rows[q] = [e.divide(x, wide) for x in rows[q]]
                for v, x in enumerate(rows[q]):
                    e.store(x, tiles.at(e, own, (q, self.width), (v * tiles.lanes, 1)))
                for r in range(q + 1, height):
                    factor = e.load(self.dtype, tiles.at(e, square, (q, height), (r, 1)))
                    minus = build.fneg(e.splat(factor, tiles.lanes).value)
                    rows[r] = [
                        replace(y, parts=(build.fma(minus, x.value, y.value),))
                        for x, y in zip(rows[q], rows[r], strict=True)
                    ]
        build.ret()


class _System(_Triangle):
    """A system, solved strip by strip of its unknowns.

    ``steps`` are those between rows and terms of the matrix; one that is not lower is read from its
    last row and term to the first, and so are the rows of unknowns.
    """

    def __init__(
        self,
        e: Routines,
        dtype: np.dtype,
        n: int,
        steps: tuple[int, int],
        is_lower: bool,
        is_unit: bool,
    ) -> None:
        sign = 1 if is_lower else -1
        super().__init__(e, dtype, n, (sign * steps[0], sign * steps[1]))
        self.e, self.sign, self.is_unit = e, sign, is_unit
        self.strip_bytes = self.padded * self.width * dtype.itemsize

    def solve(self, matrix: Array, x: Array) -> None:
        """On threads where it is worth them."""
        e = self.e
        strips = -(-x.shape[1] // self.width)
        together = 1  # strips that a piece solves
        if self.padded**2 * self.dtype.itemsize > 2 * _NEAR_BYTES:  # what panels take twice
            together = max(1, min(_NEAR_BYTES // 2 // self.strip_bytes, strips // _FEWEST_PIECES))

        def copy(e: Routines, arrays: list[Array], number: Value) -> None:
            matrix, panels, _ = arrays
            self.copy(e, self._first(e, matrix, sum(self.steps)), panels.pointer, number)

        def piece(e: Routines, arrays: list[Array], number: Value) -> None:
            _, panels, x, memory = arrays
            self._strips(e, panels, x, memory.pointer, number, together)

        e.in_chunks(
            -(-strips // together),
            [matrix, self.panels(e), x],
            piece,
            before=(self.down, copy),
            on_threads=self.n * self.n * x.shape[1] >= WORTH_THREADS,
            scratch_bytes=together * self.strip_bytes,
        )

    def _first(self, e: Routines, array: Array, step: int) -> Value:
        """The row that comes first."""
        return self.tiles.at(e, array.pointer, (self.n - 1 if self.sign < 0 else 0, -step))

    def _strips(
        self, e: Routines, panels: Array, x: Array, memory: Value, number: Value, together: int
    ) -> None:
        build, columns, step = e.b, x.shape[1], self.sign * x.shape[1]
        first = build.mul(number, build.index(together))
        last = build.index(-(-columns // self.width))
        count = build.intrinsic("smin", build.sub(last, first), build.index(together))

        def move(is_back: bool) -> None:
            with e.count(count) as strip:
                column = build.mul(build.add(first, strip), build.index(self.width))
                there = self.tiles.at(e, self._first(e, x, step), (column, 1))
                here = build.offset(memory, build.mul(strip, build.index(self.strip_bytes)))
                left = build.sub(build.index(columns), column)
                numbers = [left, *map(build.index, (self.n, step))]
                self._move(e, there, here, numbers, is_back)

        move(is_back=False)
        self.solve_strips(e, panels.pointer, memory, count, self.is_unit)
        move(is_back=True)

    def _move(
        self, e: Routines, source: Value, memory: Value, numbers: list[Value], is_back: bool
    ) -> None:
        """Copy a strip of unknowns, there or back."""
        e.b.helper(
            f"functrans.triangle_move_{self.dtype}_{self.height}_{int(is_back)}",
            [source, memory, *numbers],
            None,
            lambda inner: self._write_move(e.on(inner), is_back),
        )

    def _write_move(self, e: Routines, is_back: bool) -> None:
        """Behind the last row and column, those again, which are not copied back."""
        build, tiles = e.b, self.tiles
        source, memory, left, n, step = build.arguments
        width = build.index(self.width)
        is_full = build.icmp("sge", left, width)
        high = build.index(self.height)
        padded = build.mul(build.udiv(build.add(n, build.sub(high, build.index(1))), high), high)
        with e.count(n if is_back else padded) as row:
            own = build.intrinsic("smin", row, build.sub(n, build.index(1)))
            there = tiles.at(e, source, (own, step))
            here = tiles.at(e, memory, (row, self.width))
            with build.when(is_full):
                for v in range(2):
                    places = [tiles.at(e, place, (v * tiles.lanes, 1)) for place in (there, here)]
                    to, of = places if is_back else reversed(places)
                    e.store(e.load(self.dtype, of, tiles.lanes), to)
            with build.when(build.not_(is_full)), e.count(left if is_back else width) as column:
                own = build.intrinsic("smin", column, build.sub(left, build.index(1)))
                places = [tiles.at(e, there, (own, 1)), tiles.at(e, here, (column, 1))]
                to, of = places if is_back else reversed(places)
                e.store(e.load(self.dtype, of), to)
        build.ret()


class _Cholesky:
    """The blocks of a factor, and its code."""

    def __init__(self, e: Routines, matrix: Array, factor: Callable[[Value, Value], None]) -> None:
        self.e, self.matrix, self.factor = e, matrix, factor
        self.n = matrix.shape[0]
        self.block = _Triangle(e, matrix.dtype, _BLOCK, (self.n, 1))
        self.tiles = self.block.tiles

    def write(self) -> None:
        """Block by block."""
        e, tiles, n = self.e, self.tiles, self.n
        build = e.b
        panels = self.block.panels(e)
        rest = n - _BLOCK
        strips = e.workspace((-(-rest // tiles.width) * _BLOCK * tiles.width,), tiles.dtype)
        start = e.workspace((1,), np.dtype(np.int64))
        arrays = [self.matrix, panels, strips, start]
        with build.loop(build.index(0), build.index(n), _BLOCK) as first:
            size = build.intrinsic("smin", build.sub(build.index(n), first), build.index(_BLOCK))
            self.factor(size, tiles.at(e, self.matrix.pointer, (first, n + 1)))
            left = build.sub(build.sub(build.index(n), first), build.index(_BLOCK))
            with build.when(build.icmp("sgt", left, build.index(0))):
                build.store(first, start.pointer, 8)
                is_worth = n >= _WORTH_THREADS
                count = self._count(e, left, tiles.width)
                copies = self.block.down, self._copy
                e.in_chunks(count, arrays, self._solve_rows, before=copies, on_threads=is_worth)
                count = self._count(e, left, tiles.height)
                e.in_chunks(count, arrays, self._rest, on_threads=is_worth)

    def _count(self, e: Routines, extent: Value, size: int) -> Value:
        return e.b.udiv(e.b.add(extent, e.b.index(size - 1)), e.b.index(size))

    def _copy(self, e: Routines, arrays: list[Array], number: Value) -> None:
        """A panel of the block on the diagonal."""
        matrix, panels, _, start = arrays
        first = e.read(start, e.b.index(0)).value
        corner = self.tiles.at(e, matrix.pointer, (first, self.n + 1))
        self.block.copy(e, corner, panels.pointer, number)

    def _below(self, e: Routines, first: Value, row: Value) -> Value:
        """The number of a row below a block."""
        return e.b.add(e.b.add(first, e.b.index(_BLOCK)), row)

    def _rows(
        self, e: Routines, matrix: Array, first: Value, row: Value, count: int
    ) -> list[Value]:
        """Where rows begin in the columns of a block."""
        column = self.tiles.at(e, matrix.pointer, (first, 1))
        own = self._below(e, first, row)
        return self.tiles.rows(e, column, own, e.b.index(self.n), e.b.index(self.n), count)

    def _solve_rows(self, e: Routines, arrays: list[Array], number: Value) -> None:
        """Solve for as many rows below as a tile has columns, with the block on the diagonal.

        The same row several times gets the same numbers.
        """
        matrix, panels, strips, start = arrays
        build, tiles, width = e.b, self.tiles, self.tiles.width
        first = e.read(start, build.index(0)).value
        rows = self._rows(e, matrix, first, build.mul(number, build.index(width)), width)
        memory = tiles.at(e, strips.pointer, (number, _BLOCK * width))
        terms = build.index(_BLOCK)
        tiles.copy_rows(e, rows, memory, terms, build.index(1), is_row=True)
        self.block.solve_strips(e, panels.pointer, memory, build.index(1), is_unit=False)
        with build.loop(build.index(0), terms, SQUARE) as term:
            for place in range(0, width, SQUARE):
                own = [
                    tiles.at(e, memory, (term, width), (i * width + place, 1))
                    for i in range(SQUARE)
                ]
                columns = tiles.turned(e, [e.load(tiles.dtype, x, SQUARE) for x in own])
                for row, x in zip(rows[place : place + SQUARE], columns, strict=True):
                    e.store(x, tiles.at(e, row, (term, 1)))

    def _rest(self, e: Routines, arrays: list[Array], number: Value) -> None:
        """Subtract products from some rows, up to the diagonal; the longest rows come first."""
        matrix, _, strips, start = arrays
        build, tiles = e.b, self.tiles
        terms, n, high = map(build.index, (_BLOCK, self.n, tiles.height))
        first = e.read(start, build.index(0)).value
        left = build.sub(build.sub(n, first), terms)
        last = build.sub(self._count(e, left, tiles.height), build.index(1))
        place = build.mul(build.sub(last, number), high)
        memory = build.alloca_bytes(tiles.height * _BLOCK * tiles.dtype.itemsize)
        rows = self._rows(e, matrix, first, place, tiles.height)
        tiles.copy_rows(e, rows, memory, terms, build.index(1), is_row=True)
        spare, row = tiles.spare(e), self._below(e, first, place)
        reach = build.intrinsic("smin", build.add(place, high), left)
        with e.count(self._count(e, reach, tiles.width)) as strip:
            right = tiles.at(e, strips.pointer, (strip, _BLOCK * tiles.width))
            column = self._below(e, first, build.mul(strip, build.index(tiles.width)))
            target = tiles.at(e, matrix.pointer, (row, self.n), (column, 1))
            within = build.sub(n, row), build.sub(n, column)
            ahead = tiles.at(e, right, (_BLOCK, tiles.width))
            tiles.sum_within(
                e, memory, right, terms, target, n, within, spare, done=None, ahead=ahead
            )
