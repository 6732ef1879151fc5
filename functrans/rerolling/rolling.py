"""Plans for loops: which runs become loops, and what they need of each other.

Here: ``plan_loops``, from a program to a ``Plan``: the loops, what each of them stacks for others
to read, what it scans, and which values of single blocks are read. Not here: the runs
(``rerolling.repeats``), the loops as equations (``rerolling.rewrite``).

Blocks at either end of a run stay straight-line where the loops that they belong to differ in
length, so that arrays are scanned as a whole. A run that would save too little, or would have to
collect too many single values, is given up.

Layer: ``rerolling``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.primitives.movement import stack_p, unstack_p
from functrans.primitives.slicing import basic_places, slice_p
from functrans.records import dataclass, field, replace
from functrans.rerolling.periods import MAX_OPERANDS, MIN_REPEATS, Stretch, Table, encode
from functrans.rerolling.repeats import Place, Role, Run, find_runs

MAX_SINGLES = 32
"""Values that are stacked one by one for a loop to scan."""
MAX_TRIMMED = 2
"""Blocks at either end that stay straight-line for the sake of another loop."""
MAX_IDLE_BYTES = 1 << 20
"""Memory of stacked values that no loop scans."""
_MAX_ATTEMPTS = 4

Key = tuple[Any, ...]


def plan_loops(jaxpr: Jaxpr, weights: Sequence[int], min_saved: int) -> Plan | None:
    """The loops that a program becomes; ``None`` where there are none.

    Args:
      jaxpr: the program.
      weights: per equation the number of equations that it stands for.
      min_saved: number of equations that a loop must save.
    """
    table = encode(jaxpr)
    before = np.cumsum([0, *weights])

    def is_worth(stretch: Stretch) -> bool:
        if stretch.stop - stretch.start < (MIN_REPEATS - 1) * stretch.period:
            return False
        block = before[stretch.start + stretch.period] - before[stretch.start]
        return bool(before[stretch.stop] - before[stretch.start] - block >= min_saved)

    runs = find_runs(table, is_worth)
    if runs:
        runs = _fitted(table, runs)
    for _ in range(_MAX_ATTEMPTS):  # a run that is given up may make another one poor
        if not runs:
            break
        plan = Plan(jaxpr, table, runs)
        poor = plan.poor_runs(before, min_saved)
        if not poor:
            return plan
        runs = [run for run in runs if run not in poor]
    return None


# which run a value belongs to -------------------------------------------------------------------


class _Owners:
    """Which run makes what."""

    def __init__(self, table: Table, runs: Sequence[Run]) -> None:
        self.table = table
        self.runs = list(runs)
        self.of = np.full(len(table.symbol), -1, np.int64)
        for number, run in enumerate(runs):
            self.of[run.start : run.stop] = number

    def trim(self, number: int, bounds: tuple[int, int] | None) -> None:
        """Leave out all but some blocks of a run, where that is possible."""
        old = self.runs[number]
        run = old.trimmed(*bounds) if bounds is not None else None
        if run is not None:
            self.of[old.start : old.stop] = -1
            self.of[run.start : run.stop] = number
            self.runs[number] = run

    def find(self, source: Place) -> tuple[Run, int, int] | None:
        """The run that makes a value, the position in the block, and the block."""
        origin = source[0]
        number = self.of[origin] if origin >= 0 else -1
        if number < 0:
            return None
        run = self.runs[number]
        block, position = divmod(origin - run.start, run.period)
        return run, position, block


def _blocks(sources: Sequence[Place], owners: _Owners) -> tuple[Run, Place, list[int]] | None:
    """The run, place and blocks that made most of some values.

    A value that a run started from counts as made by block -1 or before; what was not made there at
    all by block ``-MAX``.
    """
    middle = sources[len(sources) // 2]
    found = owners.find(middle)
    if found is None:
        return None
    run, position, _ = found
    place = (position, middle[1])
    lags = run.lags.get(place, 0)
    early = {run.initial[(*place, lag)]: -lag for lag in range(lags, 0, -1)}
    blocks = []
    for source in sources:
        origin, number = source
        inside = run.start <= origin < run.stop and number == place[1]
        block, rest = divmod(origin - run.start, run.period)
        if inside and rest == position:
            blocks.append(block)
        else:
            blocks.append(early.get(source, _ELSEWHERE))
    return run, place, blocks


_ELSEWHERE = -(1 << 40)


def _fitted(table: Table, runs: list[Run]) -> list[Run]:
    """The runs with some blocks left out, so that loops scan what other loops stacked whole."""
    owners = _Owners(table, runs)
    for number, run in enumerate(runs):
        owners.trim(number, _common_blocks(run, owners))
    spans: dict[int, list[tuple[int, int, int]]] = {}
    for number in range(len(runs) - 1, -1, -1):  # what reads a run stands behind it
        if number in spans:
            owners.trim(number, _read_blocks(owners.runs[number], spans[number]))
        for sources in _walks(owners.runs[number]):
            found = _blocks(sources, owners)
            if found is not None:
                run, place, blocks = found
                known = [block for block in blocks if block != _ELSEWHERE]
                maker = int(owners.of[run.start])
                spans.setdefault(maker, []).append((min(known), max(known), run.lags.get(place, 0)))
    return owners.runs


def walk_key(run: Run, position: int, column: int) -> Key:
    """The same for operands that walk along the same values."""
    return run.source(position, column, 0), run.source(position, column, 1)


def _walks(run: Run) -> list[list[Place]]:
    """The different operands that walk, one source per block."""
    found: dict[Key, list[Place]] = {}
    for position, column in zip(*np.nonzero(run.role == Role.WALKING), strict=True):
        key = walk_key(run, int(position), int(column))
        if key not in found:
            found[key] = run.sources(int(position), int(column))
    return list(found.values())


def _common_blocks(run: Run, owners: _Owners) -> tuple[int, int] | None:
    """The blocks whose operands all come from the blocks of other runs."""
    first, last = 0, run.repeats - 1
    for sources in _walks(run):
        found = _blocks(sources, owners)
        if found is not None:
            inside = [block != _ELSEWHERE for block in found[2]]
            first = max(first, inside.index(True))
            last = min(last, run.repeats - 1 - inside[::-1].index(True))
    if first > MAX_TRIMMED or run.repeats - 1 - last > MAX_TRIMMED:
        return None
    return first, last


def _read_blocks(run: Run, spans: Sequence[tuple[int, int, int]]) -> tuple[int, int] | None:
    """The blocks of a run that other runs scan.

    Args:
      run: the run.
      spans: per operand that walks along it the first block, the last one and the largest lag.
    """
    first = max(0, *[low for low, _, _ in spans])
    last = max(high for _, high, _ in spans)
    fits = all(
        (low, high) == (first, last) or ((low, high) == (first - 1, last - 1) and lag > 0)
        for low, high, lag in spans
    )
    if not fits or first > MAX_TRIMMED or run.repeats - 1 - last > MAX_TRIMMED:
        return None
    return first, last


# plans ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Some elements of an array along its first axis, or values that are to be stacked.

    Attributes:
      array: a variable, or a run, a place and a shift: what the run stacks; ``None`` for single
        values.
      first: the first element.
      step: from one element to the next.
      values: the single values.
      count: number of elements.
    """

    array: Key | None
    first: int
    step: int
    count: int
    values: tuple[Place, ...] = ()


@dataclass(slots=True, eq=False)
class Loop:
    """A run that becomes a loop.

    Attributes:
      run: the run.
      reverse: whether the loop goes through its arrays from the end.
      parts: what it scans, by what reads it.
      ys: what it stacks: places and shifts, with the position among its results.
      last: values of the last block that others read, and the next block does not: places.
      singles: values of single blocks that others read.
      scanned: what of it is read by other loops.
    """

    run: Run
    reverse: bool = False
    parts: dict[Key, list[Part]] = field(default_factory=dict)
    ys: dict[tuple[int, int, int], int] = field(default_factory=dict)
    last: dict[Place, None] = field(default_factory=dict)
    singles: dict[Place, None] = field(default_factory=dict)
    scanned: set[tuple[int, int, int]] = field(default_factory=set)


class Plan:
    """What becomes of each run, and what they need of each other."""

    def __init__(self, jaxpr: Jaxpr, table: Table, runs: Sequence[Run]) -> None:
        self.jaxpr = jaxpr
        self.table = table
        self.owners = _Owners(table, runs)
        self.loops = {run: Loop(run) for run in runs}
        self.wide: dict[int, list[Part]] = {}
        """Stacks of many values, by equation."""
        self.lost: set[Run] = set()
        for run in runs:
            self._plan_run(self.loops[run])
        self._plan_rest()

    # what elements of which arrays

    def _plan_run(self, loop: Loop) -> None:
        run = loop.run
        for position, column in zip(*np.nonzero(run.role > Role.VALUE), strict=True):
            role = run.role[position, column]
            if role == Role.WALKING:
                key: Key = walk_key(run, int(position), int(column))
                if key not in loop.parts:
                    loop.parts[key] = self._gather(run.sources(int(position), int(column)))
            elif role == Role.MOVING and is_scanned_slice(run, int(position)):
                loop.parts[int(position),] = [self._slices(run, int(position))]
        steps = Counter(
            np.sign(part.step)
            for parts in loop.parts.values()
            for part in parts
            if part.count > 1 and part.array is not None
        )
        loop.reverse = steps[-1] > steps[1]
        for parts in loop.parts.values():
            self._need_parts(parts)
            if sum(len(part.values) for part in parts) > MAX_SINGLES:
                self.lost.add(run)
        for source in run.initial.values():
            self._need(source)
        invariants = np.nonzero(run.role == Role.INVARIANT)
        for position, column in zip(*invariants, strict=True):
            self._need(run.source(int(position), int(column), 0))

    def _slices(self, run: Run, position: int) -> Part:
        """The elements of an array that a slice in the block goes through."""
        column = int(self.table.n_operands[run.start + position])
        first = run.source(position, column, 0)[1]
        x = run.source(position, 0, 0)
        return Part((x,), first, int(run.step_number[position, column]), run.repeats)

    def _gather(self, sources: Sequence[Place]) -> list[Part]:
        """Values, one after the other, as parts of arrays."""
        elements: list[tuple[Key | None, int]] = []
        found = _blocks(sources, self.owners)
        if found is None:
            elements = [self._element(source) for source in sources]
        else:
            run, place, blocks = found
            shift = self._shift(run, place, blocks)
            for block in blocks:
                if 0 <= block + shift < run.repeats:
                    elements.append(((run, *place, shift), block + shift))
                else:
                    elements.append((None, 0))
            alternative = [self._element(source) for source in sources]
            if all(array is not None for array, _ in alternative):
                elements = alternative
        return _joined(elements, sources)

    def _shift(self, run: Run, place: Place, blocks: Sequence[int]) -> int:
        """How far what is stacked is behind what is made: 1 for carried values as they arrive."""

        def fit(shift: int) -> tuple[bool, bool]:
            low, high = min(blocks) + shift, max(blocks) + shift
            is_inside = low >= 0 and high < run.repeats
            return is_inside, is_inside and low == 0 and high == run.repeats - 1

        return max(range(run.lags.get(place, 0) + 1), key=lambda shift: (fit(shift), -shift))

    def _element(self, source: Place) -> tuple[Key | None, int]:
        """A value as an element of an array of the program, if it is taken from one."""
        origin, number = source
        if origin < 0:
            return None, 0
        eqn = self.table.eqns[origin]
        x = self._outside(eqn.inputs[0]) if eqn.inputs else None
        if x is None:
            return None, 0
        if eqn.primitive is unstack_p and eqn.params["axis"] == 0:
            return (x,), number
        if eqn.primitive is slice_p and _takes_an_element(eqn):
            start, *_ = basic_places(eqn.params["index"], eqn.inputs[0].aval.shape)
            return (x,), start[0]
        return None, 0

    def _outside(self, atom: Atom) -> Place | None:
        """The place of a variable that no run makes."""
        if not isinstance(atom, Var):
            return None
        place = self.table.places(atom)
        return place if self.owners.find(place) is None else None

    # what is needed of the runs

    def _need_parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if part.array is None:
                for value in part.values:
                    self._need(value)
            elif len(part.array) == 1:
                self._need(part.array[0])
            else:
                run, *key = part.array
                loop = self.loops[run]
                loop.ys.setdefault(tuple(key), len(loop.ys))
                loop.scanned.add(tuple(key))

    def _need(self, source: Place) -> None:
        """Note that somebody reads a single value."""
        found = self.owners.find(source)
        if found is None:
            return
        run, position, block = found
        loop = self.loops[run]
        loop.singles[source] = None
        place = (position, source[1])
        if run.repeats - block <= run.lags.get(place, 0):
            return
        if block == run.repeats - 1:
            loop.last[place] = None
        else:
            loop.ys.setdefault((*place, 0), len(loop.ys))

    def _plan_rest(self) -> None:
        """What straight-line equations and the result read."""
        table, owners = self.table, self.owners
        makers = np.where(table.origin >= 0, owners.of[np.maximum(table.origin, 0)], -1)
        reads = (makers >= 0) & (owners.of[:, None] < 0)
        for row, column in zip(*np.nonzero(reads), strict=True):
            self._need((int(table.origin[row, column]), int(table.number[row, column])))
        for row in np.flatnonzero((owners.of < 0) & (table.n_operands == 0)).tolist():
            eqn = table.eqns[row]
            if len(eqn.inputs) > MAX_OPERANDS:
                self._plan_wide(row, eqn)
        for atom in self.jaxpr.outvars:
            if isinstance(atom, Var):
                self._need(table.places(atom))

    def _plan_wide(self, row: int, eqn: Equation) -> None:
        if eqn.primitive is stack_p and eqn.params["axis"] == 0:
            sources = [self.table.places(x) for x in eqn.inputs if isinstance(x, Var)]
            if len(sources) == len(eqn.inputs):
                parts = self._gather(sources)
                if sum(len(part.values) for part in parts) <= len(sources) // 2:
                    self.wide[row] = parts
                    self._need_parts(parts)
                    return
        for atom in eqn.inputs:
            if isinstance(atom, Var):
                self._need(self.table.places(atom))

    # whether it pays

    def poor_runs(self, before: np.ndarray, min_saved: int) -> set[Run]:
        """Runs that do not become loops.

        Args:
          before: per equation the weight of all before it.
          min_saved: what a loop must save.
        """
        poor = set(self.lost)
        for run, loop in self.loops.items():
            total = before[run.stop] - before[run.start]
            block = before[run.start + run.period] - before[run.start]
            cost = len(loop.singles) + sum(
                len(part.values) + 1
                for parts in loop.parts.values()
                for part in parts
                if part.count < run.repeats
            )
            if total - block - cost < min_saved or _idle_bytes(loop) > MAX_IDLE_BYTES:
                poor.add(run)
        return poor


def _idle_bytes(loop: Loop) -> int:
    """Memory of what is stacked only because somebody reads a few of the entries."""
    run = loop.run
    total = 0
    for key in loop.ys:
        if key not in loop.scanned:
            aval = run.table.eqns[run.start + key[0]].outputs[key[1]].aval
            total += aval.size * aval.dtype.itemsize * run.repeats  # type: ignore[union-attr]  # arrays only
    return total


def _takes_an_element(eqn: Equation) -> bool:
    """Whether a slice is ``x[i]``."""
    shape = eqn.inputs[0].aval.shape
    if None in eqn.params["index"].entries or not shape:
        return False
    first, *others = basic_places(eqn.params["index"], shape)
    return first[3] == -1 and all(
        start == 0 and step == 1 and count == extent
        for (start, step, count, _), extent in zip(others, shape[1:], strict=True)
    )


def is_scanned_slice(run: Run, position: int) -> bool:
    """Whether an equation of a block takes one element after the other from an array."""
    eqn = run.table.eqns[run.start + position]
    if eqn.primitive is not slice_p or run.role[position, 0] != Role.INVARIANT:
        return False
    moving = np.flatnonzero(run.role[position] == Role.MOVING)
    return len(moving) == 1 and moving[0] == 1 and _takes_an_element(eqn)


def _joined(elements: Sequence[tuple[Key | None, int]], sources: Sequence[Place]) -> list[Part]:
    """Elements as parts: neighbours of one array whose numbers have equal steps belong together."""
    parts: list[Part] = []
    for (array, number), source in zip(elements, sources, strict=True):
        last = parts[-1] if parts else None
        if last is not None and last.array == array:
            if array is None:
                parts[-1] = replace(last, count=last.count + 1, values=(*last.values, source))
                continue
            step = number - last.first if last.count == 1 else last.step
            if step and number == last.first + step * last.count:
                parts[-1] = replace(last, count=last.count + 1, step=step)
                continue
        values = (source,) if array is None else ()
        parts.append(Part(array, number, 1, 1, values))
    return parts
