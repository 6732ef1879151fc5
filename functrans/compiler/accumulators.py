"""Partial results of reductions in loops.

Here: ``Accumulator``, the memory of one reduction (for one choice of its unrolled axes) while the
loops of a nest run, following the order of ``compiler.reductions``. Memory that is small and
addressed by constants becomes registers.

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from functrans.compiler import access
from functrans.compiler.axes import vector_axis
from functrans.compiler.cursor import Cursor
from functrans.compiler.reductions import (
    BLOCK,
    LANES,
    block_size,
    combine,
    fold_vector,
    identity,
    is_ordered,
    level_count,
)
from functrans.compiler.schedule import Root
from functrans.core.affine import Affine, constant, variable
from functrans.core.lowering import Reduction
from functrans.emitter import casts
from functrans.emitter.builder import Builder
from functrans.emitter.numbers import Number, Numbers
from functrans.emitter.types import Value

_ON_STACK_BYTES = 4096


class Accumulator:
    """What a reduction has combined so far.

    Attributes:
      loop: number of the loop that the reduction runs over.
      operand: what is reduced.
      index: index of the operand in the innermost loop.
    """

    def __init__(self, nest: Cursor, root: Root, kept: dict[int, int]) -> None:
        assert root.reduced is not None
        lower = root.eqn.primitive.lower
        assert isinstance(lower, Reduction)
        self.nest = nest
        self.root = root
        self.kind = lower.kind
        self.dtype = root.var.aval.dtype
        self.operand = root.eqn.inputs[0]
        self.loop = root.loops.index(root.reduced)
        self.in_lanes = root.reduced == vector_axis(root.space)
        self.extent = root.space[root.reduced]
        space: list[Affine] = [
            variable(root.loops.index(axis)) if axis in root.loops else constant(kept.get(axis, 0))
            for axis in range(len(root.space))
        ]
        self.index = tuple(space)
        self.result = tuple(i for axis, i in enumerate(space) if axis != root.reduced)
        inner = range(self.loop + 1, len(root.loops))
        # the loop over lanes comes last in memory, so that lanes are neighbours
        self.inner = sorted(inner, key=lambda loop: loop == nest.nest.vector)
        self.dims = [nest.nest.extents[loop] for loop in self.inner]
        ordered = is_ordered(self.kind, self.dtype)
        self.levels = 1
        if ordered and self.in_lanes:
            self.levels = level_count(self.extent)
        elif ordered and self.extent > BLOCK:
            self.levels = 2
        self.width = 1
        self.memory: list[Value] = []

    # life of the memory --------------------------------------------------------------------------

    def open(self) -> None:
        """Begin: before the loop over the reduced axis."""
        nest = self.nest
        if self.in_lanes:
            self.width = LANES
        else:
            vector = nest.nest.vector
            is_outside = vector is not None and vector < self.loop
            self.width = nest.lanes if is_outside else 1
        count = math.prod(self.dims) * self.width
        size = max(count * self.dtype.itemsize, 1)
        is_small = not self.dims or size <= _ON_STACK_BYTES
        self.memory = [
            nest.b.alloca_bytes(size) if is_small else nest.body.workspace(size)
            for _ in range(self.levels)
        ]
        for memory in self.memory:
            with self._all_of(count) as (offset, lanes):
                self._store(memory, offset, identity(nest.e, self.kind, self.dtype, lanes))

    def add(self, number: Number) -> None:
        """Combine an element, or one per lane: in the innermost loop."""
        nest = self.nest
        e, b = nest.e, nest.b
        if number.dtype != self.dtype:
            number = e.cast(number, self.dtype)
        lanes = nest.lanes if self.in_lanes or self.width > 1 else self._lanes_inside()
        number = e.splat(number, lanes)
        offset = self._slot(nest.counters)
        if self.in_lanes and lanes < LANES:
            counter = nest.counters[self.loop]
            lane = b.and_(counter, b.index(LANES - 1))
            offset = lane if offset is None else b.add(offset, lane)
        memory = self.memory[0]
        total = combine(e, self.kind, self._load(memory, offset, lanes), number)
        self._store(memory, offset, total)

    def close(self) -> None:
        """End: after the loop, combine all levels and write the result."""
        nest = self.nest
        e = nest.e
        stored = nest.body.env[self.root.var]
        rests = [level for level in range(self.levels - 1) if self.extent % self._block(level)]
        parts = [self.memory[level] for level in (self.levels - 1, *reversed(rests))]
        with self._each_inside() as offset:
            if self._is_shared and self.levels > 1:
                name = f"functrans.fold_{self.kind}_{self.dtype}_{len(parts)}"
                element = casts.register_type(self.dtype)
                total = Number(self.dtype, (nest.b.helper(name, parts, element, self._write_fold),))
            else:
                total = self._folded(e, [self._pointer(part, offset) for part in parts])
            if len(self.root.loops) == 1:
                flat = access.flat_index(stored, self.result)
                stored.elements[flat.constant] = total
            else:
                access.write_all(nest, [access.Store(stored, self.result, total)])

    def _folded(self, e: Numbers, parts: Sequence[Value]) -> Number:
        """What is in these places, combined, lanes at the end."""
        total, *rest = (e.load(self.dtype, part, self.width) for part in parts)
        for number in rest:
            total = combine(e, self.kind, total, number)
        return fold_vector(e, self.kind, total) if self.in_lanes else total

    def _write_fold(self, b: Builder) -> None:
        b.ret(self._folded(Numbers(b), b.arguments).value)

    @property
    def _is_shared(self) -> bool:
        """Whether the code of flushing and folding is a function: not where slots are registers.

        A program with a hundred sums would have thousands of lines of them in one block, and LLVM's
        choice of instructions takes the square of a block's loads.
        """
        return (
            self.in_lanes
            and not self.dims
            and self.nest.wide_lanes < LANES
            and self.dtype.kind in "fiu"
            and self.dtype.itemsize >= 4
        )

    # memory --------------------------------------------------------------------------------------

    def _block(self, level: int) -> int:
        """Elements after which a level is combined into the one above, and is empty again."""
        return block_size(level) if self.in_lanes else BLOCK

    def _lanes_inside(self) -> int:
        """Lanes of an element where the loop over lanes is inside the reduced one."""
        vector = self.nest.nest.vector
        return self.nest.lanes if vector is not None and vector in self.inner else 1

    def _slot(self, counters: list[Value]) -> Value | None:
        """Offset, in elements, of the slot for the present round of the loops inside."""
        b = self.nest.b
        offset: Value | None = None
        step = self.width
        for loop, extent in zip(reversed(self.inner), reversed(self.dims), strict=True):
            term = counters[loop]
            if step != 1:
                term = b.mul(term, b.index(step))
            offset = term if offset is None else b.add(offset, term)
            step *= extent
        return offset

    def _pointer(self, memory: Value, offset: Value | None) -> Value:
        if offset is None:
            return memory
        b = self.nest.b
        return b.offset(memory, b.mul(offset, b.index(self.dtype.itemsize)))

    def _load(self, memory: Value, offset: Value | None, lanes: int) -> Number:
        return self.nest.e.load(self.dtype, self._pointer(memory, offset), lanes)

    def _store(self, memory: Value, offset: Value | None, number: Number) -> None:
        self.nest.e.store(number, self._pointer(memory, offset))

    @contextmanager
    def _all_of(self, count: int) -> Iterator[tuple[Value | None, int]]:
        """All elements of a level, as many at once as there are in a slot, or eight."""
        b = self.nest.b
        if not self.dims:
            yield None, self.width
            return
        lanes = self.width if self.width > 1 else math.gcd(count, 8)
        with b.loop(b.index(0), b.index(count), lanes) as offset:
            yield offset, lanes

    def flush(self, level: int) -> None:
        """Combine a level into the one above, and begin it anew."""
        nest = self.nest
        low, high = self.memory[level : level + 2]
        if self._is_shared:
            name = f"functrans.flush_{self.kind}_{self.dtype}"
            nest.b.helper(name, [low, high], None, self._write_flush)
            return
        count = math.prod(self.dims) * self.width
        with self._all_of(count) as (offset, lanes):
            self._move_up(nest.e, self._pointer(low, offset), self._pointer(high, offset), lanes)

    def _write_flush(self, b: Builder) -> None:
        low, high = b.arguments
        self._move_up(Numbers(b), low, high, LANES)
        b.ret()

    def _move_up(self, e: Numbers, low: Value, high: Value, lanes: int) -> None:
        """Combine what is in one place into another, and begin it anew."""
        number = e.load(self.dtype, low, lanes)
        e.store(combine(e, self.kind, e.load(self.dtype, high, lanes), number), high)
        e.store(identity(e, self.kind, self.dtype, lanes), low)

    @contextmanager
    def _each_inside(self) -> Iterator[Value | None]:
        """Loops over the slots, with the nest's counters set; yields the slot's offset."""
        nest = self.nest
        counters, lanes = list(nest.counters), nest.lanes
        if nest.nest.vector in self.inner:
            nest.lanes = 1
        nest.open_section()  # stands for the loop over the reduced axis, which is over

        with self._nested(sorted(self.inner)):
            yield self._slot(nest.counters)
        nest.close_section()
        nest.counters[:] = counters
        nest.lanes = lanes

    @contextmanager
    def _nested(self, loops: list[int]) -> Iterator[None]:
        """Loops in loops, each in a section of its own; recursive in their number."""
        if not loops:
            yield
            return
        nest, b = self.nest, self.nest.b
        stop = b.index(nest.nest.extents[loops[0]])
        with b.loop(b.index(0), stop) as counter:
            nest.counters[loops[0]] = counter
            nest.open_section()
            with self._nested(loops[1:]):
                yield
            nest.close_section()


def end_round(nest: Cursor, accumulators: Sequence[Accumulator], counter: Value) -> None:
    """Close blocks that are full: at the end of each round of the loop that they run over."""
    b = nest.b
    blocks = [acc for acc in accumulators if not acc.in_lanes and acc.levels > 1]
    if blocks:
        following = b.add(counter, b.index(1))
        rest = b.and_(following, b.index(BLOCK - 1))
        with b.when(b.icmp("eq", rest, b.index(0)), "block"):
            for accumulator in blocks:
                accumulator.flush(0)
    in_lanes = [acc for acc in accumulators if acc.in_lanes and acc.levels > 1]
    if in_lanes:
        _flush_full(nest, in_lanes, b.add(counter, b.index(nest.lanes)), 0)


def _flush_full(
    nest: Cursor, accumulators: Sequence[Accumulator], following: Value, level: int
) -> None:
    b = nest.b
    size = block_size(level)
    rest = b.and_(following, b.index(size - 1))
    with b.when(b.icmp("eq", rest, b.index(0)), "block"):
        for accumulator in accumulators:
            accumulator.flush(level)
        higher = [acc for acc in accumulators if level + 2 < acc.levels]
        if higher:
            _flush_full(nest, higher, following, level + 1)
