"""The reroll pass: repeated straight-line code becomes loops again.

Here: ``reroll``, which turns blocks of equations that repeat into ``scan`` equations. Every value
is computed by the same operations from the same values as before, so that the results are the same
bits. It is meant for programs that a Python loop unrolled, whose machine code would be long to make
and long to load. Not here: how repeats are found (``passes.periods``), what the operands of a
repeated block are (``passes.repeats``).

What all blocks read is a ``const``, what a block leaves to the next one is carried. What other
repeats made, one value per block, is stacked by them (``ys``) and scanned here (``xs``); the
backward sweep of a derivative scans the residuals of the forward sweep in reverse. Elements of an
array are scanned in place, numbers that differ become an array, indices that move are counted.
Values of single blocks that the rest of the program reads are slices of the stacked ones.

Blocks at either end of a run stay straight-line where the loops that they belong to differ in
length, so that arrays are scanned as a whole. Inner loops are rolled first; the loop around them
then repeats their ``scan``.

Layer: ``control``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from functrans.control.loops import scan_p, weaken_p
from functrans.ir.avals import ShapedArray
from functrans.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.ir.lowering import Structured
from functrans.passes.periods import (
    ARGUMENT,
    LITERAL,
    MAX_OPERANDS,
    MIN_REPEATS,
    Stretch,
    Table,
    encode,
    params_key,
    window_sizes,
)
from functrans.passes.repeats import Place, Role, Run, find_runs
from functrans.primitives.dynamic_slicing import (
    dynamic_embed_p,
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from functrans.primitives.elementwise import add_p
from functrans.primitives.movement import concatenate_p, stack_p, unstack_p
from functrans.primitives.slicing import BasicIndex, basic_places, embed_p, slice_p
from functrans.primitives.structural import reshape_p

MIN_SAVED = 200
"""Equations that a loop must save."""
MAX_SINGLES = 32
"""Values that are stacked one by one for a loop to scan."""
MAX_TRIMMED = 2
"""Blocks at either end that stay straight-line for the sake of another loop."""
_MAX_ROUNDS = 4

Key = tuple[Any, ...]


def reroll(jaxpr: Jaxpr) -> Jaxpr:
    """The program with repeated blocks of equations as ``scan`` equations.

    Args:
      jaxpr: a program, best a simplified one; the result is cached with it.

    Returns:
      A program with the same arguments and results, to the last bit; the same object where nothing
      repeats often enough. Equations with effects or annotations stay where they are.
    """
    known: Jaxpr | None = jaxpr.cache.get("rerolled")
    if known is None:
        known = _with_rolled_programs(jaxpr)
        for _ in range(_MAX_ROUNDS):
            if _weight(known) < MIN_SAVED:
                break
            rolled = _roll_once(known)
            if rolled is known:
                break
            known = rolled
        known.cache["rerolled"] = jaxpr.cache["rerolled"] = known
    return known


def _weight(jaxpr: Jaxpr) -> int:
    return sum(map(_weight_of, jaxpr.eqns))


def _weight_of(eqn: Equation) -> int:
    """Equations that an equation stands for."""
    if not eqn.primitive.holds_programs:
        return 1
    return 1 + sum(len(sub.eqns) for sub in subjaxprs(eqn.params))


def _with_rolled_programs(jaxpr: Jaxpr) -> Jaxpr:
    """Roll the programs of control flow."""
    eqns = list(jaxpr.eqns)
    renewed: dict[Any, Equation] = {}
    for i, eqn in enumerate(eqns):
        if not eqn.primitive.holds_programs or not isinstance(eqn.primitive.lower, Structured):
            continue
        params = {name: _rolled_param(value) for name, value in eqn.params.items()}
        if any(params[name] is not value for name, value in eqn.params.items()):
            renewed[eqn] = eqns[i] = replace(eqn, params=params)
    if not renewed:
        return jaxpr
    notes = {renewed.get(key, key): values for key, values in jaxpr.annotations.items()}
    return replace(jaxpr, eqns=tuple(eqns), annotations=notes, cache={})


def _rolled_param(value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return reroll(value)
    if type(value) is tuple and any(isinstance(item, Jaxpr) for item in value):
        return tuple([reroll(item) if isinstance(item, Jaxpr) else item for item in value])
    return value


def _roll_once(jaxpr: Jaxpr) -> Jaxpr:
    """Roll the innermost repeats."""
    table = encode(jaxpr)
    weights = np.cumsum([0, *map(_weight_of, jaxpr.eqns)])

    def is_worth(stretch: Stretch) -> bool:
        if stretch.stop - stretch.start < (MIN_REPEATS - 1) * stretch.period:
            return False
        block = weights[stretch.start + stretch.period] - weights[stretch.start]
        return bool(weights[stretch.stop] - weights[stretch.start] - block >= MIN_SAVED)

    runs = find_runs(table, is_worth)
    if runs:
        runs = _fitted(table, runs)
    for _ in range(_MAX_ROUNDS):  # a run that is given up may make another one poor
        if not runs:
            break
        plan = _Plan(jaxpr, table, runs)
        poor = plan.poor_runs(weights)
        if not poor:
            return _Writer(jaxpr, plan).write()
        runs = [run for run in runs if run not in poor]
    return jaxpr


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
    """The runs with some blocks left out, so that loops scan what other loops stacked as a whole."""
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
                spans.setdefault(maker, []).append(
                    (min(known), max(known), run.lags.get(place, 0))
                )
    return owners.runs


def _walks(run: Run) -> list[list[Place]]:
    """The different operands that walk, one source per block."""
    found: dict[Hashable, list[Place]] = {}
    for position, column in zip(*np.nonzero(run.role == Role.WALKING), strict=True):
        key = (
            run.source(position, column, 0),
            int(run.step_origin[position, column]),
            int(run.step_number[position, column]),
        )
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
    """The blocks of a run that other runs scan: first ones, last ones and lags of what they read."""
    first = max(0, *[low for low, _, _ in spans])
    last = max(high for _, high, _ in spans)
    fits = all(
        (low, high) == (first, last) or ((low, high) == (first - 1, last - 1) and lag)
        for low, high, lag in spans
    )
    if not fits or first > MAX_TRIMMED or run.repeats - 1 - last > MAX_TRIMMED:
        return None
    return first, last


# plans ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
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
class _Loop:
    """A run that becomes a loop.

    Attributes:
      run: the run.
      reverse: whether the loop goes through its arrays from the end.
      ys: what it stacks: places and shifts, with the position among its results.
      singles: values of single blocks that others read.
    """

    run: Run
    reverse: bool = False
    ys: dict[tuple[int, int, int], int] = field(default_factory=dict)
    singles: dict[Place, None] = field(default_factory=dict)


class _Plan:
    """What becomes of each run, and what they need of each other."""

    def __init__(self, jaxpr: Jaxpr, table: Table, runs: Sequence[Run]) -> None:
        self.jaxpr = jaxpr
        self.table = table
        self.owners = _Owners(table, runs)
        self.loops = {run: _Loop(run) for run in runs}
        self.parts: dict[Hashable, list[_Part]] = {}
        self.wide: dict[int, list[_Part]] = {}
        """Stacks of many values, by equation."""
        self.lost: set[Run] = set()
        for run in runs:
            self._plan_run(self.loops[run])
        self._plan_rest()

    # what elements of which arrays

    def _plan_run(self, loop: _Loop) -> None:
        run = loop.run
        wanted: dict[Hashable, list[Place]] = {}
        for position, column in zip(*np.nonzero(run.role > Role.VALUE), strict=True):
            role = run.role[position, column]
            if role == Role.WALKING:
                sources = run.sources(int(position), int(column))
                wanted[run, "walk", sources[0], sources[1]] = sources
            elif role == Role.MOVING and is_scanned_slice(run, int(position)):
                wanted[run, "slice", int(position)] = []
        for key, sources in wanted.items():
            if sources:
                self.parts[key] = self._gather(sources)
            else:
                self.parts[key] = [self._slices(run, key[2])]  # type: ignore[index]  # a tuple
        steps = Counter(
            np.sign(part.step)
            for key in wanted
            for part in self.parts[key]
            if part.count > 1 and part.array is not None
        )
        loop.reverse = steps[-1] > steps[1]
        for key in wanted:
            self._need_parts(self.parts[key])
            if sum(len(part.values) for part in self.parts[key]) > MAX_SINGLES:
                self.lost.add(run)
        for source in run.initial.values():
            self._need(source)
        invariants = np.nonzero((run.role == Role.INVARIANT))
        for position, column in zip(*invariants, strict=True):
            self._need(run.source(int(position), int(column), 0))

    def _slices(self, run: Run, position: int) -> _Part:
        """The elements of an array that a slice in the block goes through."""
        column = int(self.table.n_operands[run.start + position])
        first = run.source(position, column, 0)[1]
        x = run.source(position, 0, 0)
        return _Part((x,), first, int(run.step_number[position, column]), run.repeats)

    def _gather(self, sources: Sequence[Place]) -> list[_Part]:
        """Values, one after the other, as parts of arrays."""
        elements: list[tuple[Key | None, int]] = []
        found = _blocks(sources, self.owners)
        if found is None:
            elements = [self._element(source) for source in sources]
        else:
            run, place, blocks = found
            shift = self._shift(run, place, blocks)
            for source, block in zip(sources, blocks, strict=True):
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

    def _need_parts(self, parts: Sequence[_Part]) -> None:
        for part in parts:
            if part.array is None:
                for value in part.values:
                    self._need(value)
            elif len(part.array) == 1:
                self._need(part.array[0])
            else:
                run, *key = part.array
                ys = self.loops[run].ys
                ys.setdefault(tuple(key), len(ys))  # type: ignore[arg-type]  # three numbers

    def _need(self, source: Place) -> None:
        """Note that somebody reads a single value."""
        found = self.owners.find(source)
        if found is None:
            return
        run, position, block = found
        loop = self.loops[run]
        loop.singles[source] = None
        if not is_last(run, (position, source[1]), block):
            loop.ys.setdefault((position, source[1], 0), len(loop.ys))

    def _plan_rest(self) -> None:
        """What straight-line equations and the result read."""
        table, owners = self.table, self.owners
        makers = np.where(table.origin >= 0, owners.of[np.maximum(table.origin, 0)], -1)
        reads = (makers >= 0) & (owners.of[:, None] < 0)
        for row, column in zip(*np.nonzero(reads), strict=True):
            self._need((int(table.origin[row, column]), int(table.number[row, column])))
        for row in np.flatnonzero((owners.of < 0) & (table.n_operands == 0)):
            eqn = table.eqns[row]
            if len(eqn.inputs) > MAX_OPERANDS:
                self._plan_wide(int(row), eqn)
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

    def poor_runs(self, weights: np.ndarray) -> set[Run]:
        """Runs that do not become loops."""
        poor = set(self.lost)
        for run, loop in self.loops.items():
            total = weights[run.stop] - weights[run.start]
            block = weights[run.start + run.period] - weights[run.start]
            cost = len(loop.singles) + sum(
                len(part.values) + 1
                for key, parts in self.parts.items()
                if key[0] is run  # type: ignore[index]  # a tuple
                for part in parts
                if part.count < run.repeats
            )
            if total - block - cost < MIN_SAVED:
                poor.add(run)
        return poor


def is_last(run: Run, place: Place, block: int) -> bool:
    """Whether a value is carried out of the last block."""
    return run.repeats - block <= run.lags.get(place, 0)


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


def _joined(
    elements: Sequence[tuple[Key | None, int]], sources: Sequence[Place]
) -> list[_Part]:
    """Elements as parts: neighbours of one array whose numbers have equal steps belong together."""
    parts: list[_Part] = []
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
        parts.append(_Part(array, number, 1, 1, values))
    return parts


# writing ----------------------------------------------------------------------------------------


class _Writer:
    """Writes the program that a plan describes."""

    def __init__(self, jaxpr: Jaxpr, plan: _Plan) -> None:
        self.jaxpr = jaxpr
        self.plan = plan
        self.table = plan.table
        self.eqns: list[Equation] = []
        self.consts: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
        self.stacked: dict[Key, Var] = {}
        self._arrays: dict[Hashable, Var] = {}
        self.bodies: dict[Hashable, Jaxpr] = {}

    def write(self) -> Jaxpr:
        """The whole program."""
        eqns = self.jaxpr.eqns
        row = 0
        for run, loop in self.plan.loops.items():
            self._copy(row, run.start)
            self._write_loop(loop)
            row = run.stop
        self._copy(row, len(eqns))
        return replace(
            self.jaxpr,
            constvars=tuple(self.consts),
            consts=tuple(self.consts.values()),
            eqns=tuple(_without_dead_slices(self.eqns, self.jaxpr.outvars)),
            cache={},
        )

    def _copy(self, start: int, stop: int) -> None:
        """Straight-line equations as they are, but for stacks of what loops have stacked."""
        wide = self.plan.wide
        if not wide:
            self.eqns += self.jaxpr.eqns[start:stop]
            return
        for row in range(start, stop):
            eqn = self.jaxpr.eqns[row]
            if row in wide:
                self._assemble(wide[row], eqn, eqn.outputs[0])
            else:
                self.eqns.append(eqn)

    def emit(
        self,
        like: Equation,
        primitive: Any,
        inputs: Sequence[Atom],
        out: Var | None = None,
        **params: Any,
    ) -> Var:
        """Append an equation of one result that belongs to the user's line of another one."""
        return _emit(self.eqns, like, primitive, inputs, out, params)

    # arrays

    def array(self, part: _Part, like: Equation, reverse: bool) -> Var:
        """The elements of a part, stacked."""
        if part.array is None:
            atoms = [self.table.atom(*value) for value in part.values]
            return self.emit(like, stack_p, atoms[::-1] if reverse else atoms, axis=0)
        if len(part.array) == 1:
            whole = self.table.atom(*part.array[0])
            first, step = part.first, part.step
        else:
            run, *key = part.array
            whole = self.stacked[part.array]
            first, step = part.first, part.step
            if self.plan.loops[run].reverse:
                first, step = run.repeats - 1 - first, -step
        assert isinstance(whole, Var)
        if reverse:
            first, step = first + (part.count - 1) * step, -step
        if first == 0 and step == 1 and part.count == whole.aval.shape[0]:
            return whole
        found = self._arrays.get((whole, first, step, part.count))
        if found is None:
            stop: int | None = first + step * part.count
            entry = slice(first, None if stop < 0 else stop, None if step == 1 else step)  # type: ignore[operator]  # a number
            found = self.emit(like, slice_p, (whole,), index=BasicIndex((entry,)))
            self._arrays[whole, first, step, part.count] = found
        return found

    def _assemble(self, parts: Sequence[_Part], like: Equation, out: Var | None = None) -> Var:
        """Parts one behind the other."""
        pieces = [self.array(part, like, reverse=False) for part in parts]
        return self.emit(like, concatenate_p, pieces, out, axis=0)

    def scanned(self, parts: Sequence[_Part], like: Equation, reverse: bool) -> Var:
        """The array that a loop scans."""
        if reverse:
            parts = parts[::-1]
        if len(parts) == 1:
            return self.array(parts[0], like, reverse)
        pieces = [self.array(part, like, reverse) for part in parts]
        return self.emit(like, concatenate_p, pieces, axis=0)

    def numbers(self, values: Sequence[Any], dtype: np.dtype, reverse: bool) -> Var:
        """A constant array."""
        array = np.array(values[::-1] if reverse else values, dtype)
        var = Var(ShapedArray(array.shape, array.dtype))
        self.consts[var] = array
        return var

    # loops

    def _write_loop(self, loop: _Loop) -> None:
        run = loop.run
        like = self.table.eqns[run.start]
        block = _Block(self, loop)
        jaxpr = block.program()
        outputs = [
            *[self._final(run, key) for key in block.carried],
            *[Var(counter.aval) for counter in block.counters.values()],
            *[Var(_stacked(atom.aval, run.repeats)) for atom in block.stacked],
        ]
        n_carry = len(block.carried) + len(block.counters)
        for (place, number, shift), var in zip(loop.ys, outputs[n_carry:], strict=True):
            self.stacked[run, place, number, shift] = var
        self.eqns.append(
            Equation(
                scan_p,
                (*block.consts, *block.starts, *block.xs),
                {
                    "jaxpr": jaxpr,
                    "n_consts": len(block.consts),
                    "n_carry": n_carry,
                    "length": run.repeats,
                    "reverse": loop.reverse,
                    "unroll": 1,
                },
                tuple(outputs),
                like.source,
                like.scope,
            )
        )
        self._write_singles(loop)

    def _final(self, run: Run, key: tuple[int, int, int]) -> Var:
        """The variable that is carried out of the last block."""
        place, number, lag = key
        return self.table.eqns[run.stop - lag * run.period + place].outputs[number]

    def _write_singles(self, loop: _Loop) -> None:
        run = loop.run
        for origin, number in loop.singles:
            block, position = divmod(origin - run.start, run.period)
            if is_last(run, (position, number), block):
                continue
            eqn = self.table.eqns[origin]
            out = eqn.outputs[number]
            stack = self.stacked[run, position, number, 0]
            at = run.repeats - 1 - block if loop.reverse else block
            index = BasicIndex((at,))
            if out.aval.weak:
                strong = self.emit(eqn, slice_p, (stack,), index=index)
                self.emit(eqn, weaken_p, (strong,), out)
            else:
                self.emit(eqn, slice_p, (stack,), out, index=index)


def _stacked(aval: ShapedArray, count: int) -> ShapedArray:
    return ShapedArray((count, *aval.shape), aval.dtype)


def _emit(
    eqns: list[Equation],
    like: Equation,
    primitive: Any,
    inputs: Sequence[Atom],
    out: Var | None,
    params: dict[str, Any],
) -> Var:
    if out is None:
        (aval,) = primitive.abstract_eval(*[x.aval for x in inputs], **params)
        out = Var(aval)
    eqns.append(Equation(primitive, tuple(inputs), params, (out,), like.source, like.scope))
    return out


def _text(jaxpr: Jaxpr) -> Hashable:
    """Equal for programs that do the same for the same lines of the user's."""
    names: dict[Any, int] = {var: i for i, var in enumerate(jaxpr.invars)}
    rows = []
    for eqn in jaxpr.eqns:
        inputs = tuple([names[x] if isinstance(x, Var) else x for x in eqn.inputs])
        for var in eqn.outputs:
            names[var] = len(names)
        avals = tuple([var.aval for var in eqn.outputs])
        rows.append((eqn.primitive, inputs, params_key(eqn.params), avals, eqn.source, eqn.scope))
    outs = tuple([names[atom] for atom in jaxpr.outvars])
    return jaxpr.in_avals, tuple(rows), outs


def _without_dead_slices(eqns: Sequence[Equation], outvars: Sequence[Atom]) -> list[Equation]:
    """The equations without slices that were only read by blocks which now scan the array."""
    live: set[Any] = {atom for atom in outvars if isinstance(atom, Var)}
    kept = []
    for eqn in reversed(eqns):
        if eqn.primitive not in (slice_p, unstack_p) or any(v in live for v in eqn.outputs):
            kept.append(eqn)
            live.update(atom for atom in eqn.inputs if isinstance(atom, Var))
    kept.reverse()
    return kept


class _Block:
    """The body of a loop, and what it is called with.

    Attributes:
      consts: operands that stay the same.
      carried: carried values: place, number and lag.
      counters: moving indices that are counted, by first value and step.
      starts: what carried values and counters start with.
      xs: arrays that are scanned.
      stacked: atoms of the body that are stacked.
    """

    def __init__(self, writer: _Writer, loop: _Loop) -> None:
        self.writer = writer
        self.loop = loop
        self.run = loop.run
        self.table = writer.table
        run = self.run
        self.like = self.table.eqns[run.start]
        self.eqns: list[Equation] = []
        self.consts: list[Atom] = []
        self.const_vars: dict[Place, Var] = {}
        self.carried: dict[tuple[int, int, int], Var] = {}
        for (place, number), lags in sorted(run.lags.items()):
            aval = self.table.eqns[run.start + place].outputs[number].aval
            for lag in range(1, lags + 1):
                self.carried[place, number, lag] = Var(aval)
        self.starts: list[Atom] = [self.table.atom(*run.initial[key]) for key in self.carried]
        self.counters: dict[tuple[int, int], Var] = {}
        self.xs: list[Var] = []
        self.x_vars: list[Var] = []
        self.scanned: dict[Hashable, Var] = {}
        self.made: list[tuple[Atom, ...]] = []
        self.stacked: list[Atom] = []

    def program(self) -> Jaxpr:
        """Write the body."""
        run = self.run
        for position in range(run.period):
            self._write_equation(position)
        outs: list[Atom] = [self._made(place, number, lag - 1) for place, number, lag in self.carried]
        for (first, step), counter in self.counters.items():
            self.starts.append(Literal(first))
            following = Var(counter.aval)
            self.eqns.append(
                Equation(
                    add_p, (counter, Literal(step)), {}, (following,), self.like.source
                )
            )
            outs.append(following)
        self.stacked = [self._made(*key) for key in self.loop.ys]
        invars = (
            *self.const_vars.values(),
            *self.carried.values(),
            *self.counters.values(),
            *self.x_vars,
        )
        name = self.writer.jaxpr.name
        jaxpr = Jaxpr((), (), invars, tuple(self.eqns), (*outs, *self.stacked), name)
        return self.writer.bodies.setdefault(_text(jaxpr), jaxpr)

    def _made(self, place: int, number: int, lag: int) -> Atom:
        return self.carried[place, number, lag] if lag else self.made[place][number]

    # operands

    def _operand(self, position: int, column: int) -> Atom:
        run = self.run
        role = run.role[position, column]
        if role == Role.VALUE:
            number = run.source(position, column, run.repeats - 1)[1]
            return self._made(
                int(run.place[position, column]), number, int(run.lag[position, column])
            )
        first = run.source(position, column, 0)
        if role == Role.INVARIANT:
            return self.table.literals[first[1]] if first[0] == LITERAL else self._const(first)
        if role == Role.WALKING:
            key = (run, "walk", first, run.source(position, column, 1))
            aval = self.table.eqns[run.start + position].inputs[column].aval
            return self._scan(key, aval)
        return self._number(position, column)

    def _const(self, place: Place) -> Var:
        var = self.const_vars.get(place)
        if var is None:
            atom = self.table.atom(*place)
            self.consts.append(atom)
            var = self.const_vars[place] = Var(atom.aval)
        return var

    def _scan(self, key: Hashable, aval: Any, array: Var | None = None) -> Var:
        """The entry of an array that is scanned, of the type that the block wants."""
        var = self.scanned.get(key)
        if var is None:
            writer = self.writer
            if array is None:
                array = writer.scanned(writer.plan.parts[key], self.like, self.loop.reverse)
            self.xs.append(array)
            entry = Var(aval.strong())
            self.x_vars.append(entry)
            var = entry
            if aval.weak:
                var = _emit(self.eqns, self.like, weaken_p, (entry,), None, {})
            self.scanned[key] = var
        return var

    def _number(self, position: int, column: int) -> Var:
        """A literal that differs from block to block."""
        places = self.run.sources(position, column)
        key = ("numbers", tuple([number for _, number in places]))
        aval = self.table.literals[places[0][1]].aval
        if key in self.scanned:
            return self.scanned[key]
        values = [self.table.literals[number].value for _, number in places]
        array = self.writer.numbers(values, aval.dtype, self.loop.reverse)
        return self._scan(key, aval, array)

    # equations

    def _write_equation(self, position: int) -> None:
        run = self.run
        eqn = self.table.eqns[run.start + position]
        n = int(self.table.n_operands[run.start + position])
        if (run.role[position] == Role.MOVING).any():
            if is_scanned_slice(run, position):
                entry = self._scan((run, "slice", position), eqn.outputs[0].aval)
                self.made.append((entry,))
                return
            operands = [self._operand(position, column) for column in range(n)]
            self.made.append((self._moving(position, eqn, operands),))
            return
        inputs = tuple([self._operand(position, column) for column in range(n)])
        outputs = tuple([Var(var.aval) for var in eqn.outputs])
        self.eqns.append(replace(eqn, inputs=inputs, outputs=outputs))
        self.made.append(outputs)

    def _moving(self, position: int, eqn: Equation, operands: list[Atom]) -> Var:
        """A slice, embed or update whose window moves."""
        run = self.run
        starts: list[Atom] = []
        for column in range(len(operands), len(operands) + len(window_sizes(eqn))):
            first = run.source(position, column, 0)[1]
            step = int(run.step_number[position, column])
            if step:
                counter = self.counters.get((first, step))
                if counter is None:
                    counter = self.counters[first, step] = Var(Literal(first).aval)
                starts.append(counter)
            else:
                starts.append(Literal(first))
        sizes = window_sizes(eqn)
        shape = eqn.outputs[0].aval.shape
        if eqn.primitive is slice_p:
            out = self._emit(eqn, dynamic_slice_p, (*operands, *starts), sizes=sizes)
            return out if sizes == shape else self._emit(eqn, reshape_p, (out,), shape=shape)
        *others, window = operands
        if window.aval.shape != sizes and (eqn.primitive is embed_p or window.aval.shape):
            window = self._emit(eqn, reshape_p, (window,), shape=sizes)
        if eqn.primitive is embed_p:
            return self._emit(eqn, dynamic_embed_p, (window, *starts), shape=shape)
        inputs = (*others, window, *starts)
        return self._emit(eqn, dynamic_update_slice_p, inputs, sizes=sizes)

    def _emit(self, like: Equation, primitive: Any, inputs: Sequence[Atom], **params: Any) -> Var:
        return _emit(self.eqns, like, primitive, inputs, None, params)
