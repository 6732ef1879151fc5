"""Repeating parts of a program as loops in waiting: what each operand of a repeated block is.

Here: ``Run``, a number of consecutive blocks of equations that do the same, with one ``Role`` per
operand of the block, and ``find_runs``. Not here: the search for periods (``rerolling.periods``),
the loops (``rerolling.rewrite``).

A block may begin anywhere within the period; the best place is the one over which the fewest values
are carried. The first block may start from anything (``x = x0``), all others must be regular.

Layer: ``rerolling``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from functrans.records import dataclass
from functrans.rerolling.periods import (
    LITERAL,
    MIN_REPEATS,
    NOTHING,
    START,
    Stretch,
    Table,
    find_stretches,
)

MAX_LAG = 4
"""Values are carried over at most so many blocks."""

Ints = np.ndarray
Place = tuple[int, int]
"""Origin and number of an atom, see ``Table``; or position in a block and number."""


class Role(IntEnum):
    """What an operand of a repeated equation is."""

    NOTHING = 0
    INVARIANT = 1
    """The same in all blocks: a variable, a literal or a static index."""
    VALUE = 2
    """Made by this block, or by one before."""
    WALKING = 3
    """Other variables in every block, none of them of the run itself."""
    NUMBERS = 4
    """Other literals in every block."""
    MOVING = 5
    """A static index that grows or falls."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Consecutive blocks of equations that do the same.

    Attributes:
      table: the program.
      start: the first equation.
      period: equations of a block.
      repeats: number of blocks.
      role: ``[period, s]``, the ``Role`` of each operand and static index.
      place: ``[period, s]``, where in the block a ``VALUE`` is made.
      lag: ``[period, s]``, how many blocks before.
      step_origin: ``[period, s]``, by how much the origin changes from block to block.
      step_number: ``[period, s]``, by how much the number does.
      initial: what stands for values of blocks before the first: by place, number and lag.
      lags: the largest lag of each carried value, by place and number.
    """

    table: Table
    start: int
    period: int
    repeats: int
    role: Ints
    place: Ints
    lag: Ints
    step_origin: Ints
    step_number: Ints
    initial: dict[tuple[int, int, int], Place]
    lags: dict[Place, int]

    @property
    def stop(self) -> int:
        """The first equation behind the run."""
        return self.start + self.period * self.repeats

    def source(self, position: int, column: int, block: int) -> Place:
        """Origin and number of an operand."""
        row = self.start + block * self.period + position
        table = self.table
        return int(table.origin[row, column]), int(table.number[row, column])

    def sources(self, position: int, column: int) -> list[Place]:
        """Origin and number of an operand, per block."""
        table = self.table
        rows = slice(self.start + position, self.stop, self.period)
        origins, numbers = table.origin[rows, column], table.number[rows, column]
        return list(zip(origins.tolist(), numbers.tolist(), strict=True))

    def trimmed(self, first: int, last: int) -> Run | None:
        """The blocks from ``first`` to ``last``, inclusive."""
        if first == 0 and last == self.repeats - 1:
            return self
        return analyse(self.table, self.start + first * self.period, self.period, last - first + 1)


# roles ------------------------------------------------------------------------------------------


def analyse(table: Table, start: int, period: int, repeats: int) -> Run | None:
    """The run of some blocks, of which all but perhaps the first are known to be regular.

    Returns:
      The run; ``None`` where the blocks cannot be a loop.
    """
    if repeats < MIN_REPEATS or start < 0:
        return None
    stop = start + period * repeats
    last = slice(stop - period, stop)
    before = slice(stop - 2 * period, stop - period)
    origin, number = table.origin[last], table.number[last]
    step_origin = origin - table.origin[before]
    step_number = number - table.number[before]
    is_made = origin >= 0
    is_walking = (step_origin != 0) | (step_number != 0)
    follows = is_made & (step_origin == period) & (step_number == 0)
    lag = np.where(follows, repeats - 1 - (origin - start) // period, 0)
    follows &= lag < repeats
    if (lag[follows] > MAX_LAG).any():
        return None
    if (is_made & ~is_walking & (origin >= start)).any():
        return None
    role = np.full(origin.shape, Role.INVARIANT, np.int64)
    role[origin == NOTHING] = Role.NOTHING
    role[is_walking] = Role.WALKING
    role[(origin == START) & is_walking] = Role.MOVING
    role[follows] = Role.VALUE
    literals = table.number[start:stop].reshape(repeats, period, -1)
    differ = (literals != literals[0]).any(axis=0)
    role[origin == LITERAL] = Role.INVARIANT
    role[(origin == LITERAL) & differ] = Role.NUMBERS
    lag = np.where(follows, lag, 0)
    place = np.where(follows, (origin - start) % period, 0)
    run = Run(table, start, period, repeats, role, place, lag, step_origin, step_number, {}, {})
    return run if _begins_well(run) and _walks_outside(run) else None


def _begins_well(run: Run) -> bool:
    """Whether the first two blocks fit; notes what the carried values start with."""
    table, period, start = run.table, run.period, run.start
    ends = slice(run.stop - period, run.stop)
    for block in (0, 1):
        rows = slice(start + block * period, start + (block + 1) * period)
        if (table.symbol[rows] != table.symbol[ends]).any():
            return False
        away = run.repeats - 1 - block
        same_origin = table.origin[rows] == table.origin[ends] - away * run.step_origin
        same_number = table.number[rows] == table.number[ends] - away * run.step_number
        is_literal = (table.origin[rows] == LITERAL) & (table.origin[ends] == LITERAL)
        fits = same_origin & (same_number | is_literal)
        if not (fits | (run.lag > block)).all():
            return False
    initial = run.initial
    for position, column in zip(*np.nonzero(run.lag), strict=True):
        place, lag = int(run.place[position, column]), int(run.lag[position, column])
        made = int(table.number[run.stop - period + position, column])
        run.lags[place, made] = max(lag, run.lags.get((place, made), 0))
        for block in range(lag):
            found = run.source(int(position), int(column), block)
            if initial.setdefault((place, made, lag - block), found) != found:
                return False
    return True


def _walks_outside(run: Run) -> bool:
    """Whether operands that walk never come from the run itself."""
    position, column = np.nonzero(run.role == Role.WALKING)
    if not len(position):
        return True
    last = run.table.origin[run.stop - run.period + position, column]
    away = np.arange(run.repeats)[:, None]
    origins = last - away * run.step_origin[position, column]
    return not ((origins >= run.start) & (origins < run.stop)).any()


# finding runs -----------------------------------------------------------------------------------


def _best_phase(table: Table, stretch: Stretch) -> int:
    """Where blocks begin, so that the fewest values live from one to the next."""
    period = stretch.period
    first = stretch.start + (stretch.stop - stretch.start) // period // 2 * period
    rows = slice(first, min(first + period, stretch.stop))
    origin = table.origin[rows]
    step = origin - table.origin[first - period : first - period + len(origin)]
    position, column = np.nonzero((step == period) & (origin >= 0))
    reach = position + first - origin[position, column]
    inside = reach <= MAX_LAG * period
    position, reach = position[inside], reach[inside]
    longest = np.zeros(period, np.int64)  # per place, how far away its value is still read
    np.maximum.at(longest, (position - reach) % period, reach)
    whole, rest = np.divmod(longest, period)
    change = np.zeros(2 * period + 1, np.int64)
    places = np.arange(period)
    np.add.at(change, places + 1, 1)
    np.add.at(change, places + rest + 1, -1)
    alive = np.cumsum(change)
    carried = alive[:period] + alive[period : 2 * period] + int(whole.sum())
    # The stretch begins `first - start` equations, whole periods, before place 0.
    return int(np.argmin(carried))


def _run_of(table: Table, stretch: Stretch, free: Ints) -> Run | None:
    """The longest run in a stretch; it may take one more free block at its start."""
    period = stretch.period
    begin = stretch.start + _best_phase(table, stretch)
    run = None
    for start in range(begin - period, begin + MAX_LAG * period, period):
        if start >= 0 and free[start:begin].all():
            run = analyse(table, start, period, (stretch.stop - start) // period)
            if run is not None:
                return run
    return None


def find_runs(table: Table, is_worth: Callable[[Stretch], bool]) -> list[Run]:
    """Runs that do not overlap, in order; short periods, which are the inner loops, go first.

    Args:
      table: the program.
      is_worth: whether a stretch is long enough.
    """
    free = np.ones(len(table.symbol), bool)
    runs: list[Run] = []
    for stretch in find_stretches(table, is_worth):
        for start, stop in _intervals(free[stretch.start : stretch.stop]):
            part = Stretch(stretch.start + start, stretch.start + stop, stretch.period)
            run = _run_of(table, part, free) if is_worth(part) else None
            if run is not None:
                runs.append(run)
                free[run.start : run.stop] = False
    return sorted(runs, key=lambda run: run.start)


def _intervals(flags: Ints) -> list[Place]:
    """The parts of an array of flags that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).view(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
