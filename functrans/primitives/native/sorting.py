"""Native code of the ordering primitives: sort, argsort, top_k, lexsort, searchsorted.

Here: the ``lower`` rules of ``sorting`` that compare elements, those of ``argmax`` and ``argmin``.
Not here: ``select_along`` and ``place_along`` (``index``), the records.

One algorithm serves all: a stable merge sort without branches that depend on data. Runs of four are
sorted in registers; two runs of the same length are merged from both ends at once, which needs no
test of bounds and keeps two chains of dependent operations in progress (the bidirectional merge of
van den Hoven's quadsort, 2020). Blocks that fit into the cache are sorted one by one, then merged.
Runs that are in order already are only copied. NaN are taken out first and put behind (before, for
``top_k``) in their order, so that all comparisons are single instructions; complex numbers are
compared by the whole of NumPy's definition.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.primitives.native.fortran import number_of
from functrans.primitives.native.routine_loops import (
    Counter,
    LoopVariable,
    copy_run,
    load_run,
    most_lanes,
    nest,
    plus,
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

_RUN = 4
_SMALL = 16
"""Up to so many elements are sorted by insertion alone."""
_BLOCK_ROUNDS = 10
"""Rounds of merging within a block: even, so that the block ends where it began."""
_BLOCK = 64
"""Vectors after which ``argmax`` looks whether there was a new extremum."""
_SHORT = 16
"""Up to so many steps along a lane of ``argmax`` are written out."""
_FEW = 32
"""Up to so many largest elements are kept in order by insertion."""


def _precedes(e: Routines, x: Number, y: Number) -> Value:
    """Whether ``x`` stands before ``y`` in NumPy's order of numbers that are not NaN.

    Complex numbers may have NaN parts: then the order is that of ``np.sort``, where an element
    whose real part is NaN comes last, and before these one whose imaginary part is.
    """
    if x.dtype.kind != "c":
        return e.less(x, y).value
    b = e.b
    (xr, xi), (yr, yi) = x.parts, y.parts
    x_ordered = b.fcmp("ord", xi, xi)
    y_unordered = b.fcmp("uno", yi, yi)
    if_less = b.or_(x_ordered, y_unordered)
    if_greater = b.and_(y_unordered, x_ordered)
    if_equal = b.or_(b.fcmp("olt", xi, yi), if_greater)
    both_nan = b.and_(b.fcmp("uno", xr, xr), b.fcmp("uno", yr, yr))
    equal = b.or_(b.fcmp("oeq", xr, yr), both_nan)
    result = b.select(equal, if_equal, b.fcmp("uno", yr, yr))
    result = b.select(b.fcmp("ogt", xr, yr), if_greater, result)
    return b.select(b.fcmp("olt", xr, yr), if_less, result)


def _precedes_nan_last(e: Routines, x: Number, y: Number) -> Value:
    """The same, NaN being larger than all other numbers."""
    if x.kind != "f":
        return _precedes(e, x, y)
    b = e.b
    x_is_number, y_is_nan = e.equal(x, x).value, e.not_equal(y, y).value
    return b.or_(e.less(x, y).value, b.and_(x_is_number, y_is_nan))


def _precedes_downwards(e: Routines, x: Number, y: Number) -> Value:
    """The order of ``top_k``: the largest first, NaN before all."""
    return _precedes_nan_last(e, y, x)


_Order = Callable[["Routines", "Number", "Number"], "Value"]
Item = tuple["Number", ...]


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Memory of the elements that are sorted: keys, and what moves with them."""

    arrays: tuple[Array, ...]

    def read(self, e: Routines, at: Value) -> Item:
        return tuple([e.read(array, at) for array in self.arrays])

    def write(self, e: Routines, at: Value, item: Item) -> None:
        for array, number in zip(self.arrays, item, strict=True):
            e.write(array, at, number)

    def from_element(self, e: Routines, at: Value) -> _Buffer:
        """The memory from an element on."""
        return _Buffer(tuple([type(a)(e.address(a, at), a.shape, a.dtype) for a in self.arrays]))

    def chosen(self, e: Routines, condition: Value, other: _Buffer) -> _Buffer:
        """This memory where a condition holds, else another."""
        return _Buffer(
            tuple(
                [
                    type(a)(e.b.select(condition, a.pointer, o.pointer), a.shape, a.dtype)
                    for a, o in zip(self.arrays, other.arrays, strict=True)
                ]
            )
        )


def _pick(e: Routines, condition: Value, x: Item, y: Item) -> Item:
    """One of two elements."""
    make = type(x[0])
    return tuple(
        [
            make(
                p.dtype,
                tuple([e.b.select(condition, u, v) for u, v in zip(p.parts, q.parts, strict=True)]),
            )
            for p, q in zip(x, y, strict=True)
        ]
    )


class _Sorter:
    """Writes the code that sorts up to ``size`` elements.

    Attributes:
      buffer: where the elements are put first; where they are found afterwards is what
        :meth:`sort` returns.
    """

    def __init__(
        self, e: Routines, size: int, dtypes: Sequence[Any], precedes: _Order | None = None
    ) -> None:
        self.e = e
        self.size = size
        self._precedes = precedes or _precedes
        self.buffer, self.other = (
            _Buffer(tuple([e.workspace((size,), dtype) for dtype in dtypes])) for _ in range(2)
        )

    def _before(self, x: Item, y: Item) -> Value:
        return self._precedes(self.e, x[0], y[0])

    # NaN

    def fill(self, item: Callable[[Value], Item]) -> Value:
        """Take the elements, those that are NaN behind the others.

        Returns:
          How many are not NaN.
        """
        e, b = self.e, self.e.b
        if e.constant(self.buffer.arrays[0].dtype, 0).kind != "f":
            with e.count(self.size) as i:
                self.buffer.write(e, i, item(i))
            return b.index(self.size)
        kept, apart = Counter(e, b.index(0)), Counter(e, b.index(0))
        with e.count(self.size) as i:
            x = item(i)
            is_nan = e.not_equal(x[0], x[0]).value
            self.buffer.write(e, kept.get(), x)
            self.other.write(e, apart.get(), x)
            kept.advance(b.not_(is_nan))
            apart.advance(is_nan)
        with e.count(apart.get()) as i:
            self.buffer.write(e, plus(e, kept.get(), i), self.other.read(e, i))
        return kept.get()

    # sorting

    def sort(self, count: Value) -> _Buffer:
        """Sort the first ``count`` elements of the buffer; the others keep their places."""
        e, b = self.e, self.e.b
        if self.size <= _SMALL:
            self._insert(b.index(0), count)
            return self.buffer
        self._runs_of_four(count)
        rounds = 2
        while rounds < _BLOCK_ROUNDS and _RUN << rounds < self.size:
            rounds += 2
        block = _RUN << rounds
        blocks = -(-self.size // block)
        more = (blocks - 1).bit_length()
        # The blocks one after the other, then all of them together.
        with e.count(blocks + (more > 0)) as k:
            is_whole = b.icmp("eq", k, b.index(blocks))
            start = b.select(is_whole, b.index(0), b.mul(k, b.index(block)))
            extent = b.select(is_whole, count, b.index(block))
            first = b.select(is_whole, b.index(block), b.index(_RUN))
            times = b.select(is_whole, b.index(more), b.index(rounds))
            self._rounds(start, self._smaller(plus(e, start, extent), count), first, times)
        if more % 2 == 0:
            return self.buffer
        with e.count(b.index(self.size), count) as i:  # NaN
            self.other.write(e, i, self.buffer.read(e, i))
        return self.other

    def _smaller(self, x: Value, y: Value) -> Value:
        return self.e.b.select(self.e.b.icmp("slt", x, y), x, y)

    def _runs_of_four(self, count: Value) -> None:
        """Sort each four elements, and those that are left over by insertion."""
        e, b, buffer = self.e, self.e.b, self.buffer
        whole = b.and_(count, b.index(-_RUN))
        with e.count(b.lshr(whole, b.index(2))) as k:
            start = b.mul(k, b.index(_RUN))
            places = [plus(e, start, i) for i in range(_RUN)]
            items = self._four([buffer.read(e, place) for place in places])
            for place, item in zip(places, items, strict=True):
                buffer.write(e, place, item)
        self._insert(whole, count)

    def _insert(self, start: Value, count: Value) -> None:
        """Sort the elements from ``start`` on: each sinks from place to place."""
        e, b, buffer = self.e, self.e.b, self.buffer
        with e.count(count, plus(e, start, 1)) as i, e.count(b.sub(i, start)) as step:
            right = b.sub(i, step)
            left = plus(e, right, -1)
            x, y = buffer.read(e, left), buffer.read(e, right)
            swap = self._before(y, x)
            buffer.write(e, left, _pick(e, swap, y, x))
            buffer.write(e, right, _pick(e, swap, x, y))

    def _four(self, items: list[Item]) -> list[Item]:
        """Sort two pairs and merge them; stable."""
        e = self.e
        a, b = self._two(items[0], items[1])
        c, d = self._two(items[2], items[3])
        first_is_right, last_is_left = self._before(c, a), self._before(d, b)
        first = _pick(e, first_is_right, c, a)
        last = _pick(e, last_is_left, b, d)
        second = _pick(e, first_is_right, a, _pick(e, last_is_left, c, b))
        third = _pick(e, last_is_left, d, _pick(e, first_is_right, b, c))
        return [first, *self._two(second, third), last]

    def _two(self, x: Item, y: Item) -> tuple[Item, Item]:
        swap = self._before(y, x)
        return _pick(self.e, swap, y, x), _pick(self.e, swap, x, y)

    def _rounds(self, start: Value, end: Value, first: Value, count: Value) -> None:
        """Merge the runs of a block, ``count`` times, from one buffer to the other and back."""
        e, b = self.e, self.e.b
        with e.count(count) as k:
            width = b.shl(first, k)
            is_even = b.icmp("eq", b.and_(k, b.index(1)), b.index(0))
            source = self.buffer.chosen(e, is_even, self.other)
            target = self.other.chosen(e, is_even, self.buffer)
            double = b.shl(width, b.index(1))
            pairs = b.sdiv(plus(e, b.sub(end, start), b.sub(double, b.index(1))), double)
            with e.count(pairs) as pair:
                low = plus(e, start, b.mul(pair, double))
                length = self._smaller(double, b.sub(end, low))
                self._merge(source.from_element(e, low), target.from_element(e, low), width, length)

    def _merge(self, source: _Buffer, target: _Buffer, width: Value, length: Value) -> None:
        """Merge ``[0, width)`` with ``[width, length)``, which may be short or missing."""
        e, b = self.e, self.e.b
        zero, one = b.index(0), b.index(1)
        is_single = b.icmp("sle", length, width)
        # A place that exists for a run without a partner: its comparison does not count.
        middle = b.select(is_single, zero, width)
        before_middle = b.sub(b.select(is_single, one, width), one)
        left_last = source.read(e, before_middle)
        in_order = b.or_(is_single, b.not_(self._before(source.read(e, middle), left_last)))
        copy, merge, even, odd, done = map(b.label, ("copy", "merge", "even", "odd", "merged"))
        b.branch_if(in_order, copy, merge)
        b.start(copy)
        for from_, to in zip(source.arrays, target.arrays, strict=True):
            size = b.mul(length, b.index(from_.dtype.itemsize))
            b.statement(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {to.pointer.text}, "
                f"ptr {from_.pointer.text}, i64 {size.text}, i1 false)"
            )
        b.module.declarations.setdefault(
            "llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        )
        b.branch(done)
        b.start(merge)
        b.branch_if(b.icmp("eq", length, b.shl(width, one)), even, odd)
        b.start(even)
        self._merge_even(source, target, width)
        b.branch(done)
        b.start(odd)
        self._merge_odd(source, target, width, length)
        b.branch(done)
        b.start(done)

    def _merge_even(self, source: _Buffer, target: _Buffer, width: Value) -> None:
        """Two runs of one length, from both ends."""
        e, b = self.e, self.e.b
        last = b.sub(b.shl(width, b.index(1)), b.index(1))
        left_last = b.sub(width, b.index(1))
        rights, lefts = Counter(e, b.index(0)), Counter(e, b.index(0))
        with e.count(width) as k:
            taken = rights.get()
            x = source.read(e, b.sub(k, taken))
            y = source.read(e, plus(e, width, taken))
            is_right = self._before(y, x)
            target.write(e, k, _pick(e, is_right, y, x))
            rights.advance(is_right)
            taken = lefts.get()
            x = source.read(e, b.sub(left_last, taken))
            y = source.read(e, b.sub(last, b.sub(k, taken)))
            is_left = self._before(y, x)
            target.write(e, b.sub(last, k), _pick(e, is_left, x, y))
            lefts.advance(is_left)

    def _merge_odd(self, source: _Buffer, target: _Buffer, width: Value, length: Value) -> None:
        """Two runs of which the second is shorter."""
        e, b = self.e, self.e.b
        count = b.sub(length, width)
        last_left, last_right = b.sub(width, b.index(1)), b.sub(length, b.index(1))
        rights = Counter(e, b.index(0))
        with e.count(length) as k:
            right = rights.get()
            left = b.sub(k, right)
            x = source.read(e, self._smaller(left, last_left))
            y = source.read(e, self._smaller(plus(e, width, right), last_right))
            is_right = b.or_(b.icmp("sge", left, width), self._before(y, x))
            is_right = b.and_(is_right, b.icmp("slt", right, count))
            target.write(e, k, _pick(e, is_right, y, x))
            rights.advance(is_right)


def _lanes(shape: tuple[int, ...], axis: int) -> tuple[tuple[int, int], tuple[int, int], int, int]:
    """Extents and strides of the loop over lanes, the extent and the stride within a lane."""
    outer, length, inner = split_axis(shape, axis)
    return (outer, inner), (length * inner, 1), length, inner


def sort_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int, stable: bool
) -> None:
    """Lane by lane; always stable."""
    (x,), (out,) = operands, results
    if not out.size:
        return
    shape, strides, length, step = _lanes(x.shape, axis)
    sorter = _Sorter(e, length, (x.dtype,))
    with nest(e, shape, [strides]) as (lane,):

        def place(i: Value) -> Value:
            return plus(e, lane, e.b.mul(i, e.b.index(step)))

        count = sorter.fill(lambda i: (e.read(x, place(i)),))
        found = sorter.sort(count)
        if step == 1:
            copy_run(e, found.arrays[0], e.b.index(0), out, lane, length)
        else:
            with e.count(length) as i:
                e.write(out, place(i), e.read(found.arrays[0], i))


def argsort_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int, stable: bool
) -> None:
    """Positions move with the elements; always stable."""
    lexsort_lower(e, operands, results, axis=axis)


def lexsort_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int
) -> None:
    """Sorted by one key after the other, the last one being the first to count."""
    (out,) = results
    if not out.size:
        return
    shape, strides, length, step = _lanes(out.shape, axis)
    sorters: dict[Any, _Sorter] = {}
    with nest(e, shape, [strides]) as (lane,):

        def place(i: Value) -> Value:
            return plus(e, lane, e.b.mul(i, e.b.index(step)))

        for number, key in enumerate(operands):
            if key.dtype not in sorters:
                sorters[key.dtype] = _Sorter(e, length, (key.dtype, np.dtype(np.int64)))
            sorter = sorters[key.dtype]

            def item(i: Value, key: Array = key, number: int = number) -> Item:
                position = e.read(out, place(i)) if number else number_of(e, i)
                return e.read(key, place(position.value)), position

            found = sorter.sort(sorter.fill(item))
            with e.count(length) as i:
                e.write(out, place(i), e.read(found.arrays[1], i))


# top_k ------------------------------------------------------------------------------------------


def top_k_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, k: int
) -> None:
    """A few elements by insertion, many by sorting all."""
    (x,), (values, positions) = operands, results
    if not positions.size:
        return
    if k <= _FEW:
        _top_few(e, x, values, positions, k)
    else:
        _top_sorted(e, x, values, positions, k)


def _top_few(e: Routines, x: Array, values: Array, positions: Array, k: int) -> None:
    """The ``k`` largest so far are kept in order; a later equal one stands behind."""
    b = e.b
    length = x.shape[-1]
    lanes = x.size // length
    with e.count(lanes) as lane:
        source, target = b.mul(lane, b.index(length)), b.mul(lane, b.index(k))

        def insert(i: Value, number: Number, start: Value) -> None:
            """Put an element into a row of which the element at ``start`` is free."""
            at = Counter(e, start)
            head, move, done = b.label("head"), b.label("move"), b.label("placed")
            step, test = b.label("step"), b.label("test")
            b.branch(head)
            b.start(head)
            b.branch_if(b.icmp("sgt", at.get(), b.index(0)), test, done)
            b.start(test)
            before = plus(e, target, plus(e, at.get(), -1))
            other = e.read(values, before)
            b.branch_if(_precedes_downwards(e, number, other), move, done)
            b.start(move)
            e.write(values, plus(e, target, at.get()), other)
            e.write(positions, plus(e, target, at.get()), e.read(positions, before))
            b.branch(step)
            b.start(step)
            at.set(plus(e, at.get(), -1))
            b.branch(head)
            b.start(done)
            e.write(values, plus(e, target, at.get()), number)
            e.write(positions, plus(e, target, at.get()), number_of(e, i))

        with e.count(k) as i:
            insert(i, e.read(x, plus(e, source, i)), i)
        with e.count(length, k) as i:
            number = e.read(x, plus(e, source, i))
            smallest = e.read(values, plus(e, target, k - 1))
            with b.when(_precedes_downwards(e, number, smallest)):
                insert(i, number, b.index(k - 1))


def _top_sorted(e: Routines, x: Array, values: Array, positions: Array, k: int) -> None:
    """Candidates are collected, and the ``k`` largest of them kept whenever there is no room.

    What is not larger than the last one kept is no candidate. The kept ones stand before those that
    are collected later, so that a stable sort keeps the lowest position first among equals.
    """
    b = e.b
    length = x.shape[-1]
    room = min(2 * k, length)
    sorter = _Sorter(e, room, (x.dtype, np.dtype(np.int64)), _precedes_downwards)
    buffer = sorter.buffer
    with e.count(x.size // length) as lane:
        source, target = b.mul(lane, b.index(length)), b.mul(lane, b.index(k))
        count = Counter(e, b.index(0))
        least = LoopVariable(e, e.read(x, source))
        with e.count(length) as i:
            number = e.read(x, plus(e, source, i))
            is_first = b.icmp("slt", i, b.index(room))
            is_larger = _precedes_downwards(e, number, least.get())
            with b.when(b.or_(is_first, is_larger)):
                buffer.write(e, count.get(), (number, number_of(e, i)))
                count.set(plus(e, count.get(), 1))
            is_last = b.icmp("eq", i, b.index(length - 1))
            with b.when(b.or_(is_last, b.icmp("eq", count.get(), b.index(room)))):
                found = sorter.sort(count.get())
                with e.count(k) as j:
                    item = found.read(e, j)
                    if found is not buffer:
                        buffer.write(e, j, item)
                    e.write(values, plus(e, target, j), item[0])
                    e.write(positions, plus(e, target, j), item[1])
                least.set(buffer.read(e, b.index(k - 1))[0])
                count.set(b.index(k))


# searchsorted -----------------------------------------------------------------------------------


def searchsorted_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, side: str
) -> None:
    """Binary search with a fixed number of steps and no branches."""
    (a, v), (out,) = operands, results
    if not out.size:
        return
    b = e.b
    length = a.shape[-1]
    lanes = math.prod(a.shape[:-1])
    each = out.size // lanes
    if not length:
        zeros(e, out)
        return
    dtype = np.result_type(a.dtype, v.dtype)
    with e.count(lanes) as lane, e.count(each) as i:
        place = plus(e, b.mul(lane, b.index(each)), i)
        key = e.cast(e.read(v, place), dtype)
        first = b.mul(lane, b.index(length))
        base = b.index(0)
        left = length  # the answer is in [base, base + left]
        while left:
            half = (left + 1) // 2
            moved = plus(e, base, half)
            element = e.cast(e.read(a, plus(e, first, plus(e, moved, -1))), dtype)
            if side == "left":
                goes_on = _precedes_nan_last(e, element, key)
            else:
                goes_on = b.not_(_precedes_nan_last(e, key, element))
            base = b.select(goes_on, moved, base)
            left -= half
        e.write(out, place, number_of(e, base))


# argmax, argmin ---------------------------------------------------------------------------------


def argextremum_lower(is_max: bool) -> Callable[..., None]:
    """The rule of ``argmax`` or ``argmin``: the first extremum, the first NaN if there is one."""

    def lower(
        e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int
    ) -> None:
        (x,), (out,) = operands, results
        if not out.size:
            return
        outer, length, inner = split_axis(x.shape, axis)
        lanes = most_lanes(x.dtype)
        if inner == 1 and x.dtype.kind != "c" and length >= 4 * lanes:
            with e.count(outer) as lane:
                start = e.b.mul(lane, e.b.index(length))
                e.write(out, lane, number_of(e, _first_extremum(e, x, start, length, is_max)))
            return
        with e.count(outer) as block:
            start = e.b.mul(block, e.b.index(length * inner))

            def column(first: Value, lanes: int) -> None:
                at = plus(e, start, first)
                found = _extremum_rows(e, x, at, (length, inner), lanes, is_max)
                store_run(e, out, plus(e, e.b.mul(block, e.b.index(inner)), first), found)

            vectors(e, inner, x.dtype, column)

    return lower


def _first_extremum(e: Routines, x: Array, start: Value, length: int, is_max: bool) -> Value:
    """In one contiguous lane: the first block that has the extremum, then its place there."""
    b = e.b
    lanes = most_lanes(x.dtype)
    lanes *= 4 if length >= 4 * _BLOCK * lanes else 1
    blocks = -(-length // (_BLOCK * lanes))
    size = -(-length // (blocks * lanes)) * lanes
    if size > length:
        size -= lanes
        blocks += 1

    def begin(i: Value) -> Value:
        """The first element of a block; the last one overlaps with the one before."""
        at, last = b.mul(i, b.index(size)), b.index(length - size)
        return plus(e, start, b.select(b.icmp("slt", at, last), at, last))

    def within(first: Value) -> tuple[Number, Number]:
        """The extremum of a block, and whether there is a NaN."""
        number = load_run(e, x, first, lanes)
        best, has_nan = LoopVariable(e, number), LoopVariable(e, e.not_equal(number, number))
        with e.count(size // lanes, 1) as i:
            number = load_run(e, x, plus(e, first, b.mul(i, b.index(lanes))), lanes)
            best.set(e.select(_goes_beyond(e, best.get(), number, is_max), best.get(), number))
            has_nan.set(e.logical_or(has_nan.get(), e.not_equal(number, number)))
        whole, wide = best.get(), lanes
        while wide > 1:
            wide //= 2
            low, high = (_part(e, whole, at, wide) for at in (0, wide))
            whole = e.select(_goes_beyond(e, low, high, is_max), low, high)
        return whole, type(whole)(np.dtype(bool), (b.any_lane(has_nan.get().value),))

    best, had_nan = map(partial(LoopVariable, e), within(start))
    where = Counter(e, start)
    with e.count(blocks, 1) as i:
        first = begin(i)
        number, has_nan = within(first)
        better = b.or_(_goes_beyond(e, number, best.get(), is_max).value, has_nan.value)
        with b.when(b.and_(better, b.not_(had_nan.get().value))):
            best.set(number)
            had_nan.set(has_nan)
            where.set(first)
    wanted, seek_nan = best.get(), had_nan.get()

    def holds(at: Value, lanes: int) -> Value:
        number = load_run(e, x, at, lanes)
        is_equal = e.equal(number, e.splat(wanted, lanes))
        return e.select(seek_nan, e.not_equal(number, number), is_equal).value

    first = _search(e, where.get(), lanes, lambda at: b.any_lane(holds(at, lanes)))
    return b.sub(_search(e, first, 1, lambda at: holds(at, 1)), start)


def _goes_beyond(e: Routines, x: Number, y: Number, is_max: bool) -> Number:
    return e.greater(x, y) if is_max else e.less(x, y)


def _part(e: Routines, number: Number, first: int, lanes: int) -> Number:
    """Some neighbouring lanes."""
    parts = [
        e.b.extract(part, first)
        if lanes == 1
        else e.b.shuffle(part, part, range(first, first + lanes))
        for part in number.parts
    ]
    return type(number)(number.dtype, tuple(parts))


def _search(e: Routines, first: Value, step: int, holds: Callable[[Value], Value]) -> Value:
    """The first of ``first``, ``first + step``... for which a condition holds; there is one."""
    b = e.b
    head, next_, done = b.label("seek"), b.label("next"), b.label("found")
    at = Counter(e, first)
    b.branch(head)
    b.start(head)
    b.branch_if(holds(at.get()), done, next_)
    b.start(next_)
    at.set(plus(e, at.get(), step))
    b.branch(head)
    b.start(done)
    return at.get()


def _extremum_rows(
    e: Routines, x: Array, at: Value, shape: tuple[int, int], lanes: int, is_max: bool
) -> Number:
    """Positions of the extrema of neighbouring columns, row after row."""
    b = e.b
    length, inner = shape
    best = LoopVariable(e, load_run(e, x, at, lanes))
    found = LoopVariable(e, e.constant(np.int64, 0, lanes))

    def row(i: Value) -> None:
        number, before = load_run(e, x, plus(e, at, b.mul(i, b.index(inner))), lanes), best.get()
        takes = _takes_over(e, number, before, is_max)
        truth = type(number)(np.dtype(bool), (takes,))
        best.set(e.select(truth, number, before))
        found.set(e.select(truth, e.splat(number_of(e, i), lanes), found.get()))

    if length <= _SHORT:
        for k in range(1, length):
            row(b.index(k))
    else:
        with e.count(length, 1) as i:
            row(i)
    return found.get()


def _takes_over(e: Routines, number: Number, before: Number, is_max: bool) -> Value:
    """Whether an element is the extremum instead of the one before; NaN stays for ever."""
    b = e.b
    if number.kind not in "fc":
        return (e.greater if is_max else e.less)(number, before).value
    not_beyond = (e.less_equal if is_max else e.greater_equal)(number, before).value
    is_number = b.true(number.lanes)
    for part in before.parts:
        is_number = b.and_(is_number, b.fcmp("ord", part, part))
    return b.and_(b.not_(not_beyond), is_number)
