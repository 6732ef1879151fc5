"""Elements between memory and registers.

Here: reading a stored variable at an affine index, for one element or one per lane, and writing.
Neighbouring lanes are one wide access; lanes that are a short row apart, with the whole row read or
written (``x[i, 0], x[i, 1], x[i, 2]``), are one wide access and shuffles; all else goes element by
element.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from functrans.compiler.cursor import Cursor
from functrans.compiler.storage import Stored
from functrans.core.affine import Affine, constant
from functrans.emitter.casts import float_bits, float_from_bits, is_half
from functrans.emitter.numbers import Number
from functrans.emitter.types import Value
from functrans.records import dataclass

LONGEST_ROW = 16
"""Elements of a row that are read or written together, in shuffled lanes."""


@dataclass(frozen=True, slots=True)
class Store:
    """A value to be written.

    Attributes:
      stored: where to.
      index: at which index of the loop variables.
      number: what.
    """

    stored: Stored
    index: tuple[Affine, ...]
    number: Number


def flat_index(stored: Stored, index: Sequence[Affine]) -> Affine:
    """Number of an element in C order."""
    flat = constant(0)
    for i, stride in zip(index, stored.strides, strict=True):
        flat = flat + i * stride
    return flat


def read(nest: Cursor, stored: Stored, index: tuple[Affine, ...]) -> Number:
    """An element, or one per lane, written into the present section."""
    # the only element of an array may be asked for by a loop of one round
    flat = flat_index(stored, index) if stored.size != 1 else constant(0)
    if flat.is_constant:
        found = stored.register(flat.constant)
        if found is not None:
            number, lane = found
            return number if number.lanes == 1 else nest.e.lane(number, lane)
    assert stored.pointer is not None, "a variable that is read is in registers or in memory"
    step = flat.coefficient(nest.nest.vector) if nest.nest.vector is not None else 0
    if nest.lanes == 1 or step == 0:
        return nest.e.load(stored.dtype, address(nest, stored, flat))
    lanes = nest.lanes
    if step == 1:
        return nest.e.load(stored.dtype, address(nest, stored, flat), lanes)
    if step == -1:
        first = address(nest, stored, flat + (1 - lanes))
        return _reversed(nest, nest.e.load(stored.dtype, first, lanes))
    column = _column(nest, stored, index, step)
    if column is not None:
        return _from_memory(nest, _read_column(nest, stored, flat, step, column), stored.dtype)
    numbers = [
        nest.e.load(_memory_dtype(stored), address(nest, stored, flat + lane * step))
        for lane in range(lanes)
    ]
    return _from_memory(nest, nest.e.pack(numbers), stored.dtype)


Place = tuple[Stored | None, int]
"""An element of a stored variable; without one, zero if the number is negative."""


def read_lanes(nest: Cursor, places: Sequence[Place]) -> Number | None:
    """Elements in one register: lanes of others, or neighbours in memory; ``None`` of others."""
    if any(stored is None and flat >= 0 for stored, flat in places):
        return None
    number = _picked(nest, places)
    return number if number is not None else _neighbours(nest, places)


def _picked(nest: Cursor, places: Sequence[Place]) -> Number | None:
    """Lanes of two vector registers at most, or of one and zeros."""
    found = [stored.register(flat) if stored is not None else None for stored, flat in places]
    first = next((register[0] for register in found if register is not None), None)
    if first is None or first.lanes == 1:
        return None
    zero = nest.e.like(first, 0)
    registers: list[tuple[Number, int]] = []
    for register, (stored, _) in zip(found, places, strict=True):
        if register is None and stored is not None:
            return None
        registers.append(register if register is not None else (zero, 0))
    others = {number for number, _ in registers if number is not first}
    if len(others) > 1 or any(number.lanes != first.lanes for number in others):
        return None
    second = others.pop() if others else first
    lanes = [lane if number is first else first.lanes + lane for number, lane in registers]
    if lanes == list(range(first.lanes)):
        return first
    pairs = zip(first.parts, second.parts, strict=True)
    return Number(first.dtype, tuple(nest.b.shuffle(p, q, lanes) for p, q in pairs))


def _neighbours(nest: Cursor, places: Sequence[Place]) -> Number | None:
    """Neighbours in memory, in either order, by one load."""
    stored = places[0][0]
    if stored is None or stored.elements or any(place[0] is not stored for place in places):
        return None
    numbers = [flat for _, flat in places]
    lanes, step = len(numbers), numbers[1] - numbers[0]
    if abs(step) != 1 or numbers != list(range(numbers[0], numbers[0] + step * lanes, step)):
        return None
    number = nest.e.load(stored.dtype, address(nest, stored, constant(min(numbers))), lanes)
    return number if step == 1 else _reversed(nest, number)


def _reversed(nest: Cursor, number: Number) -> Number:
    order = range(number.lanes - 1, -1, -1)
    return Number(number.dtype, tuple(nest.b.shuffle(p, p, order) for p in number.parts))


def _memory_dtype(stored: Stored) -> np.dtype:
    """Integers in the place of what has another form in registers.

    Truth values are one bit there, and 16-bit floats are converted: both are dear lane by lane.
    """
    if stored.dtype.kind == "b" or is_half(stored.dtype):
        return np.dtype(f"u{stored.dtype.itemsize}")
    return stored.dtype


def _from_memory(nest: Cursor, number: Number, dtype: np.dtype) -> Number:
    """Elements of an array of a dtype that were read in :func:`_memory_dtype`."""
    if number.dtype == dtype:
        return number
    if dtype.kind == "b":
        return nest.e.cast(number, dtype)
    return Number(dtype, (float_from_bits(nest.b, dtype, number.value),))


def _to_memory(nest: Cursor, number: Number, stored: Stored) -> Number:
    """Elements for an array, in its :func:`_memory_dtype`."""
    dtype = _memory_dtype(stored)
    if number.dtype == dtype:
        return number
    if stored.dtype.kind == "b":
        return nest.e.cast(number, dtype)
    return Number(dtype, (float_bits(nest.b, stored.dtype, number.value),))


def address(nest: Cursor, stored: Stored, flat: Affine) -> Value:
    """The address of an element; what does not change in a loop is computed outside."""
    assert stored.pointer is not None
    size = stored.dtype.itemsize
    pointer = stored.pointer
    b = nest.b
    if flat.terms:
        depth = flat.terms[-1][0] + 1
        memo = nest.memos[depth]
        key = (stored.pointer.text, flat.terms)
        base = memo.get(key)
        if base is None:
            base = pointer
            offset: Value | None = None
            with b.within(nest.sections[depth]):
                for loop, coefficient in flat.terms:
                    term = nest.counters[loop]
                    if coefficient * size != 1:
                        term = b.mul(term, b.index(coefficient * size))
                    offset = term if offset is None else b.add(offset, term)
                assert offset is not None
                base = b.offset(base, offset)
            memo[key] = base
        pointer = base
    if flat.constant:
        pointer = b.offset(pointer, b.index(flat.constant * size))
    return pointer


def _column(nest: Cursor, stored: Stored, index: tuple[Affine, ...], step: int) -> int | None:
    """Which column of short rows is read, if lanes run over whole rows."""
    if not 2 <= step <= LONGEST_ROW or stored.dtype.kind not in "bfiu":
        return None
    axis = len(index)
    row = 1
    column = 0
    while axis and row < step:
        axis -= 1
        if not index[axis].is_constant:
            return None
        column += index[axis].constant * row
        row *= stored.shape[axis]
    return column if row == step else None


def _read_column(nest: Cursor, stored: Stored, flat: Affine, step: int, column: int) -> Number:
    """One column out of rows that are read as a whole, once for all columns."""
    start = flat - column
    depth = start.terms[-1][0] + 1
    memo = nest.memos[depth]
    key = (stored.pointer.text if stored.pointer else "", start, "rows")
    rows = memo.get(key)
    if rows is None:
        with nest.b.within(nest.sections[depth]):
            place = address(nest, stored, start)
            rows = nest.e.load(_memory_dtype(stored), place, nest.lanes * step)
        memo[key] = rows
    lanes = range(column, column + nest.lanes * step, step)
    (part,) = rows.parts
    return Number(rows.dtype, (nest.b.shuffle(part, part, lanes),))


def write_all(nest: Cursor, stores: Sequence[Store]) -> None:
    """Write values; columns that make up whole rows are written together."""
    rows: dict[tuple[int, Affine], dict[int, Number]] = {}
    places: dict[tuple[int, Affine], tuple[Stored, int]] = {}
    for store in stores:
        stored = store.stored
        if stored.pointer is None:
            flat = flat_index(stored, store.index)
            stored.elements[flat.constant] = store.number
            continue
        flat = flat_index(stored, store.index)
        vector = nest.nest.vector
        step = flat.coefficient(vector) if vector is not None else 0
        if nest.lanes == 1:
            nest.e.store(store.number, address(nest, stored, flat))
            continue
        number = nest.e.splat(store.number, nest.lanes)
        if step == 1:
            nest.e.store(number, address(nest, stored, flat))
            continue
        number = _to_memory(nest, number, stored)
        column = _column(nest, stored, store.index, step)
        if column is None:
            for lane in range(nest.lanes):
                nest.e.store(nest.e.lane(number, lane), address(nest, stored, flat + lane * step))
            continue
        key = (id(stored), flat - column)
        places[key] = (stored, step)
        rows.setdefault(key, {})[column] = number
    for key, columns in rows.items():
        stored, step = places[key]
        _write_rows(nest, stored, key[1], step, columns)


def _write_rows(
    nest: Cursor, stored: Stored, start: Affine, step: int, columns: dict[int, Number]
) -> None:
    lanes = nest.lanes
    if len(columns) < step:
        for column, number in columns.items():
            for lane in range(lanes):
                place = address(nest, stored, start + (lane * step + column))
                nest.e.store(nest.e.lane(number, lane), place)
        return
    b = nest.b
    parts = [columns[column].value for column in range(step)]
    while len(parts) & (len(parts) - 1):
        parts.append(Value("poison", parts[0].type))
    while len(parts) > 1:
        width = parts[0].type.lanes
        parts = [
            b.shuffle(parts[i], parts[i + 1], range(2 * width)) for i in range(0, len(parts), 2)
        ]
    order = [column * lanes + lane for lane in range(lanes) for column in range(step)]
    whole = b.shuffle(parts[0], parts[0], order)
    nest.e.store(Number(_memory_dtype(stored), (whole,)), address(nest, stored, start))
