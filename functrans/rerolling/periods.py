"""Periods of a program: where the same equations come again and again.

Here: ``encode``, a program as arrays of numbers, and ``find_stretches``, the parts of it in which
blocks of equations repeat. Not here: loops made of them (``rerolling.rewrite``).

A part of a program repeats with period ``p`` when equation ``i + p`` does what equation ``i`` does
and reads what is as far along: the origin of every operand is an *affine* function of the number of
the repeat. A constant origin is an invariant, one that moves by ``p`` a value of this or an earlier
repeat, any other one (``-q``, say) walks along the results of another repeating part, as the
backward sweep of a derivative does. Arguments, results of one equation and static indices
(``x[i]``) are numbered, so that the same holds for them; numbers in the program may differ freely,
except exponents, which decide how a power is computed.

Candidates for ``p`` are the distances between equal windows of equations, found by sorting rolling
hashes of windows of a few lengths (Karp, Miller and Rosenberg, Rapid identification of repeated
patterns in strings, trees and arrays, STOC 1972); each candidate is then tested on the whole
program at once. The time is that of a few sorts.

Layer: ``rerolling``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.values import Array
from functrans.passes.dce import has_annotations
from functrans.passes.simplify import exact_key
from functrans.primitives.elementwise import power_p
from functrans.primitives.slicing import (
    BasicIndex,
    basic_places,
    embed_p,
    slice_p,
    slice_update_p,
)
from functrans.records import dataclass

ARGUMENT, LITERAL, START, NOTHING = -1, -2, -3, -4
"""Origins of operands that are no equations."""
MIN_REPEATS = 4
MAX_OPERANDS = 16
"""Equations with more operands do not repeat; they are rare, and would widen the table."""
_WINDOWS = (4, 32, 256)
_NEAR = 16
_CANDIDATES_PER_WINDOW = 8

Ints = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A program of ``n`` equations as numbers.

    Attributes:
      eqns: the equations.
      arguments: constants and arguments, in order.
      literals: numbers in the program.
      symbol: ``int64[n]``: what an equation does to operands of which types; negative and unique
        where it must not repeat.
      origin: ``int64[n, s]``: per operand, and then per static index, the equation that it comes
        from, or ``ARGUMENT``, ``LITERAL``, ``START``, ``NOTHING``.
      number: ``int64[n, s]``: which of the outputs, arguments or literals, or the index itself.
      n_operands: ``int64[n]``: number of operands; static indices follow. It is 0 where an
        equation has too many.
      places: per variable its origin and number.
    """

    eqns: Sequence[Equation]
    arguments: Sequence[Var]
    literals: Sequence[Literal]
    symbol: Ints
    origin: Ints
    number: Ints
    n_operands: Ints
    places: Callable[[Var], tuple[int, int]]

    def atom(self, origin: int, number: int) -> Var | Literal:
        """The operand that comes from an origin."""
        if origin >= 0:
            return self.eqns[origin].outputs[number]
        return self.arguments[number] if origin == ARGUMENT else self.literals[number]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Equations ``start`` to ``stop`` repeat with a period."""

    start: int
    stop: int
    period: int

    @property
    def saved(self) -> int:
        """Equations that a loop would not have."""
        return ((self.stop - self.start) // self.period - 1) * self.period


# static indices ---------------------------------------------------------------------------------


def static_starts(eqn: Equation) -> tuple[Hashable, tuple[int, ...]] | None:
    """Where a window into an array is, apart from its form.

    Returns:
      ``(form, starts)`` of a slice, of its transpose or of an update, one start per axis of the
      array; ``None`` where the window cannot move.
    """
    index: BasicIndex = eqn.params["index"]
    primitive = eqn.primitive
    if primitive is embed_p:
        shape, window = eqn.params["shape"], eqn.inputs[0].aval
    else:
        shape = eqn.inputs[0].aval.shape
        window = eqn.inputs[-1].aval if primitive is slice_update_p else eqn.outputs[0].aval
    if primitive is slice_update_p and window.dtype != eqn.outputs[0].aval.dtype:
        return None
    places = basic_places(index, shape)
    if any(step != 1 for _, step, _, _ in places):
        return None
    if primitive is slice_update_p and window.shape not in ((), index.result_shape(shape)):
        return None
    form = (shape, tuple([(count, axis) for _, _, count, axis in places]))
    return form, tuple([start for start, _, _, _ in places])


def window_sizes(eqn: Equation) -> tuple[int, ...]:
    """Extents of the window of a slice, embed or update, one per axis of the array."""
    index: BasicIndex = eqn.params["index"]
    shape = eqn.params["shape"] if eqn.primitive is embed_p else eqn.inputs[0].aval.shape
    return tuple([count for _, _, count, _ in basic_places(index, shape)])


WINDOWED = frozenset({slice_p, embed_p, slice_update_p})


# encoding ---------------------------------------------------------------------------------------


class _Encoder:
    """Numbers for variables, literals, types and kinds of equations.

    ``origins``, ``numbers`` and ``types`` say what is known of everything that an operand can be;
    ``known`` gives the position of a variable in them.
    """

    def __init__(self) -> None:
        self.known: dict[Var, int] = {}
        self.origins: list[int] = []
        self.numbers: list[int] = []
        self.types: list[int] = []
        self.literals: list[Literal] = []
        self._literal_of: dict[Hashable, int] = {}
        self._start_of: dict[int, int] = {}
        self._type_of: dict[Hashable, int] = {}
        self.symbol_of: dict[Hashable, int] = {}

    def add(self, origin: int, number: int, kind: int) -> int:
        self.origins.append(origin)
        self.numbers.append(number)
        self.types.append(kind)
        return len(self.origins) - 1

    def type(self, aval: object) -> int:
        if type(aval) is not ShapedArray:
            return -1
        key = (aval.shape, aval.dtype, aval.weak)
        return self._type_of.setdefault(key, len(self._type_of))

    def place(self, var: Var) -> tuple[int, int]:
        position = self.known[var]
        return self.origins[position], self.numbers[position]

    def literal(self, literal: Literal) -> int:
        value = literal.value
        kind = self.type(literal.aval)
        is_usual = type(value) is float and value and value == value
        text = value if is_usual else repr(value)  # -0.0 and NaN by their text
        key = (value.__class__, text, kind)
        found = self._literal_of.get(key)
        if found is None:
            found = self._literal_of[key] = self.add(LITERAL, len(self.literals), kind)
            self.literals.append(literal)
        return found

    def start(self, value: int) -> int:
        found = self._start_of.get(value)
        if found is None:
            found = self._start_of[value] = self.add(START, value, -2)
        return found


def encode(jaxpr: Jaxpr) -> Table:
    """A program as numbers.

    Equations with effects, with annotations, or of values that are no arrays, never repeat.
    """
    e = _Encoder()
    arguments = (*jaxpr.constvars, *jaxpr.invars)
    for number, var in enumerate(arguments):
        e.known[var] = e.add(ARGUMENT, number, e.type(var.aval))
    notes = jaxpr.annotations
    flat: list[int] = []
    counts: list[int] = []
    symbols: list[int] = []
    n_operands: list[int] = []
    known, literal, start, symbol = e.known, e.literal, e.start, e.symbol_of
    for i, eqn in enumerate(jaxpr.eqns):
        outputs, params, primitive = eqn.outputs, eqn.params, eqn.primitive
        before = len(flat)
        if len(eqn.inputs) <= MAX_OPERANDS:
            for x in eqn.inputs:
                flat.append(known[x] if type(x) is Var else literal(x))  # type: ignore[arg-type]  # or a Literal  # noqa: PERF401  # a list of its own costs more
        n_operands.append(len(flat) - before)
        key: Hashable = None
        if params:
            found = static_starts(eqn) if primitive in WINDOWED else None
            if found is None:
                key = params_key(params)
            else:
                key = found[0]
                flat += [start(value) for value in found[1]]
        elif primitive is power_p and type(eqn.inputs[1]) is Literal:
            key = flat[-1]
        n = len(flat) - before
        counts.append(n)
        kind = 0
        for number, var in enumerate(outputs):
            kind = e.type(var.aval)
            known[var] = e.add(i, number, kind)
        kinds: Hashable = kind
        if len(outputs) != 1:
            kinds = tuple([e.types[known[var]] for var in outputs])
            kind = min(kinds, default=0)
        if (
            kind < 0
            or len(eqn.inputs) > MAX_OPERANDS
            or primitive.effects
            or (primitive.holds_programs and _is_watched(eqn))
            or (notes and (eqn in notes or any(var in notes for var in outputs)))
        ):
            symbols.append(-1)
        else:
            text = (primitive, key, n, kinds)
            symbols.append(symbol.setdefault(text, len(symbol)))
    return _table(jaxpr, arguments, e, symbols, flat, counts, n_operands)


def _is_watched(eqn: Equation) -> bool:
    """Whether the programs of an equation have effects or annotations."""
    return bool(eqn.effects) or any(has_annotations(sub) for sub in subjaxprs(eqn.params))


def params_key(params: Mapping[str, Any]) -> Hashable:
    """Parameters by their values; programs by identity."""
    return tuple([(name, exact_key(value)) for name, value in sorted(params.items())])


def _table(
    jaxpr: Jaxpr,
    arguments: Sequence[Var],
    e: _Encoder,
    symbols: list[int],
    flat: list[int],
    counts: list[int],
    n_operands: list[int],
) -> Table:
    n = len(symbols)
    per_row = np.array(counts, np.int64)
    width = int(per_row.max(initial=1))
    positions = np.full((n, max(width, 1)), len(e.origins), np.int64)
    ends = np.cumsum(per_row)
    rows = np.repeat(np.arange(n), per_row)
    columns = np.arange(len(flat)) - np.repeat(ends - per_row, per_row)
    positions[rows, columns] = flat
    origin = np.array([*e.origins, NOTHING], np.int64)[positions]
    number = np.array([*e.numbers, 0], np.int64)[positions]
    types = np.array([*e.types, -3], np.int64)[positions]
    base = np.array(symbols, np.int64)
    base[(types == -1).any(axis=1)] = -1
    base = np.where(base < 0, -1 - np.arange(n), base)
    # One number for what an equation does and the types of its operands.
    mixed = _mix(base.astype(np.uint64), types.astype(np.uint64).T)
    symbol = np.where(base < 0, base, (mixed >> np.uint64(2)).astype(np.int64))
    return Table(
        jaxpr.eqns,
        arguments,
        e.literals,
        symbol,
        origin,
        number,
        np.array(n_operands, np.int64),
        e.place,
    )


# hashing ----------------------------------------------------------------------------------------

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio in 64 bits (Knuth, TAOCP 3, 6.4)
_SHIFT = np.uint64(29)


def _mix(state: Ints, columns: Array | list[Array]) -> Ints:
    """Hash values of rows, from hash values and further columns (arithmetic modulo 2^64)."""
    for column in columns:
        state = ((state ^ (state >> _SHIFT)) * _FACTOR + column) * _FACTOR  # not symmetric
    return state


def _tokens(table: Table) -> tuple[Ints, Ints]:
    """Two hashes per equation: what it does to what kind of operands; the same more finely.

    The finer one knows the values of literals, what made the operands, and how near that was.
    """
    origin, number = table.origin, table.number
    kinds = np.minimum(origin, 0)
    coarse = _mix(table.symbol.astype(np.uint64), kinds.astype(np.uint64).T)
    is_made = origin >= 0
    distance = np.arange(len(origin))[:, None] - origin
    near = np.where(is_made & (distance <= _NEAR), distance, 0)
    values = np.where(origin == LITERAL, number, near).astype(np.uint64)
    makers = np.where(is_made, coarse[np.maximum(origin, 0)], np.uint64(0))
    fine = _mix(coarse, [*values.T, *makers.T])
    return coarse, fine


def _window_hashes(tokens: Ints, length: int) -> Ints:
    """Hashes of all windows of a length, a power of two, by doubling."""
    hashes = tokens
    width = 1
    while width < length and len(hashes) > width:
        hashes = _mix(hashes[:-width], [hashes[width:]])
        width *= 2
    return hashes if width == length else hashes[:0]


def _candidates(table: Table) -> list[int]:
    """Distances at which windows of equations come again often."""
    found: set[int] = set()
    for tokens in _tokens(table):
        for length in _WINDOWS:
            hashes = _window_hashes(tokens, length)
            order = np.argsort(hashes, kind="stable")
            ordered = hashes[order]
            distances = np.diff(order)[ordered[1:] == ordered[:-1]]
            if not len(distances):
                continue
            counts = np.bincount(distances)
            best = np.argsort(-counts, kind="stable")[:_CANDIDATES_PER_WINDOW]
            found.update(int(d) for d in best if counts[d] >= length)
    found.discard(0)
    return sorted(found)


# testing candidates -----------------------------------------------------------------------------


def _is_regular(table: Table, period: int) -> Ints:
    """Per equation whether it and the ones one and two periods later are alike and affine."""
    symbol, origin, number = table.symbol, table.origin, table.number
    n = len(symbol) - 2 * period
    alike = symbol[:-period] == symbol[period:]
    good: Ints = alike[:-period] & alike[period:]
    if np.count_nonzero(good) < period:
        return good
    for column in range(origin.shape[1]):
        source, which = origin[:, column], number[:, column]
        moved = source[period:] - source[:-period]
        good &= moved[:n] == moved[period:]
        good &= (source[:n] >= 0) == (source[2 * period :] >= 0)
        shifted = which[period:] - which[:-period]
        good &= (shifted[:n] == shifted[period:]) | (source[:n] == LITERAL)
    return good


def find_stretches(table: Table, is_worth: Callable[[Stretch], bool]) -> list[Stretch]:
    """The parts of a program that repeat at least ``MIN_REPEATS - 1`` times, short periods first.

    Args:
      table: the program.
      is_worth: whether a stretch is wanted.
    """
    n = len(table.symbol)
    found: list[Stretch] = []
    for period in _candidates(table):
        if (MIN_REPEATS - 1) * period > n:
            continue
        good = _is_regular(table, period)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False])).view(np.int8)))
        starts, stops = edges[::2], edges[1::2] + 2 * period
        repeats = (stops - starts) // period
        for start, stop in zip(
            starts[repeats >= MIN_REPEATS - 1], stops[repeats >= MIN_REPEATS - 1], strict=True
        ):
            stretch = Stretch(int(start), int(stop), period)
            if is_worth(stretch):
                found.append(stretch)
    return found
