"""The schedule of a program: what is computed together, in which order, and what is kept.

Here: ``schedule``, from a prepared program to loop nests, routines and views in order, with the
decision which variables are kept in memory and which are computed where they are used. Not here:
instructions (``compiler.nests``, ``compiler.bodies``), memory addresses (``compiler.storage``).

Every variable has a *level*: how many loops-over-everything (large reductions, routines, control
flow) must have finished before it can be computed. Within a level all stored variables with the
same loops share one nest; what they have in common is computed once. A variable is stored when
something needs it in memory (results, routines), when it is needed in several nests and dearer to
compute than to load, or when a nest with more iterations than it has elements would compute it
again and again. All others exist in registers only, where they are used.

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from functrans.compiler.axes import (
    FEWEST_LANES,
    FULLY_UNROLLED,
    loop_axes,
    unrolled,
    vector_axis,
)
from functrans.compiler.elements import DEAR, general_reads, pointwise_cost, step_cost
from functrans.compiler.rows import rows_in_lanes
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction, Routine
from functrans.records import dataclass, field

MAX_PARTS = 32
"""Parts that a nest may be cut into; beyond, what cuts it is stored."""
FEW_PARTS = 8
"""Parts of a map that has no routine: several of them may be in one nest."""
FEW_ROWS = 4
"""So many long rows of light work are computed together."""
LONG_ROW = 256
"""Elements of a row from which it is long."""
LIGHT_WORK = 60
"""Cost of an element up to which registers hold what a few rows are computed from; a function
such as ``exp`` is more than that by itself."""
WIDE = 4096
"""Elements from which a transpose is worth a pass of its own, tile by tile."""
SUMMED_IN_REGISTERS = 32
"""The longest axis in front of lanes that is summed inside of them: so many rows are read at once,
and the partial sums are registers instead of a row of memory that each round reads and writes."""
LONG_REDUCTION = 1000
"""Cost, for all elements that are unrolled, from which a short reduction is a loop."""
HIGHEST_COST = 4000
"""Where costs are no longer counted: what several equations use is counted for each of them."""

Key = tuple[int, tuple[int, ...], bool]
"""What shares a nest: level, extents of the loops, and whether sums run across rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A variable that a nest computes and keeps.

    Attributes:
      eqn: its equation.
      output: which of the equation's outputs it is.
      space: shape of the iteration space: the variable's, or that of a reduction's operand.
      loops: axes of the space that are loops, from the outside in; the others are unrolled.
      reduced: the axis that a reduction runs over, else ``None``.
    """

    eqn: Equation
    output: int
    space: tuple[int, ...]
    loops: tuple[int, ...]
    reduced: int | None = None

    @property
    def var(self) -> Var:
        """The variable."""
        return self.eqn.outputs[self.output]


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """Loops and what is computed in them.

    Attributes:
      extents: one per loop, from the outside in.
      vector: number of the loop that runs over lanes, if any.
      roots: what is kept.
      equations: positions of the equations that it may compute, in order.
    """

    extents: tuple[int, ...]
    vector: int | None
    roots: tuple[Root, ...]
    equations: tuple[int, ...]

    @property
    def key(self) -> Any:
        """What two schedules of a program have in common if this nest is the same in both."""
        roots = [(root.var, root.space, root.loops, root.reduced) for root in self.roots]
        return self.extents, self.vector, tuple(roots), self.equations


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An equation with code of its own: a routine or control flow."""

    eqn: Equation


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """An equation whose result is its operand's memory with other extents."""

    eqn: Equation


Item = Nest | Call | View


@dataclass(slots=True)
class Schedule:
    """The order of a program.

    Attributes:
      jaxpr: the prepared program.
      items: what is done, in order.
      stored: variables in memory or registers after the item that makes them.
      in_memory: those that something needs in memory.
      reads: per item the stored variables that it reads.
    """

    jaxpr: Jaxpr
    items: list[Item]
    stored: set[Var]
    in_memory: set[Var]
    reads: list[tuple[Var, ...]] = field(default_factory=list)


def is_view(eqn: Equation) -> bool:
    """Whether a result is taken for its operand's memory: a reshape that no index map covers."""
    lower = eqn.primitive.lower
    if not isinstance(lower, IndexMap) or not lower.is_view:
        return False
    if math.prod(eqn.outputs[0].aval.shape) <= FULLY_UNROLLED:
        return False
    return next(general_reads(eqn, lower)) is None


def needs_routine(eqn: Equation) -> bool:
    """Whether an index map has no affine form at a general index."""
    lower = eqn.primitive.lower
    if not isinstance(lower, IndexMap) or lower.is_view or lower.routine is None:
        return False
    is_wide = math.prod(eqn.outputs[0].aval.shape) >= WIDE
    avals = [atom.aval for atom in eqn.inputs]
    if is_wide and lower.prefers_routine is not None and lower.prefers_routine(avals, **eqn.params):
        return True
    return any(reads is None for reads in general_reads(eqn, lower))


def routine_of(eqn: Equation) -> Routine | None:
    """The code for whole arrays that an equation has; ``None`` of control flow."""
    lower = eqn.primitive.lower
    routine = lower.routine if isinstance(lower, IndexMap) else lower
    return routine if isinstance(routine, Routine) else None


def schedule(
    jaxpr: Jaxpr, forced: AbstractSet[Var] = frozenset(), by_routine: AbstractSet[Var] = frozenset()
) -> Schedule:
    """Plan a prepared program.

    Args:
      jaxpr: the program.
      forced: variables that are stored whatever they cost.
      by_routine: results of index maps that their routines compute.

    Returns:
      The schedule.
    """
    return _Planner(jaxpr, forced, by_routine).plan()


class _Planner:
    def __init__(
        self, jaxpr: Jaxpr, forced: AbstractSet[Var], by_routine: AbstractSet[Var]
    ) -> None:
        self.jaxpr = jaxpr
        self.forced = forced
        self.by_routine = by_routine
        self.level: dict[Var, int] = {}
        self.own_level: dict[Var, int] = {}
        """Level of the nest that computes a forced variable."""
        self.cost: dict[Var, int] = {}
        self.highest_cost: dict[tuple[int, ...], int] = {}
        """Of the elements of arrays, by their shape."""
        self.kinds: list[str] = []
        self.makers: dict[Var, int] = {}
        self.readers: Counter[Atom] = Counter()
        """How often each variable is read by equations."""
        self.row_shapes: frozenset[tuple[int, ...]] = frozenset()
        """Shapes whose short rows are worked on by lanes along them."""

    def plan(self) -> Schedule:
        """All steps in order."""
        self._classify()
        self._rank()
        self.row_shapes = rows_in_lanes(self.jaxpr, self.kinds)
        roots, in_memory = self._choose()
        return self._order(roots, in_memory)

    # what each equation is

    def _classify(self) -> None:
        for number, eqn in enumerate(self.jaxpr.eqns):
            for var in eqn.outputs:
                self.makers[var] = number
            self.readers.update(eqn.inputs)
            lower = eqn.primitive.lower
            if isinstance(lower, Pointwise):
                kind = "inline"
            elif isinstance(lower, IndexMap):
                is_call = eqn.outputs[0] in self.by_routine or needs_routine(eqn)
                kind = "view" if is_view(eqn) else "call" if is_call else "inline"
            elif isinstance(lower, Reduction):
                kind = "inline" if is_inner(eqn) else "reduce"
            else:
                kind = "call"
            self.kinds.append(kind)

    def _rank(self) -> None:
        """Levels and costs, forward."""
        level, cost = self.level, self.cost
        for var in (*self.jaxpr.constvars, *self.jaxpr.invars):
            level[var], cost[var] = 0, 1
        for position, (kind, eqn) in enumerate(zip(self.kinds, self.jaxpr.eqns, strict=True)):
            inputs = [atom for atom in eqn.inputs if isinstance(atom, Var)]
            highest = max([level[var] for var in inputs], default=0)
            if kind == "inline" and isinstance(eqn.primitive.lower, Reduction):
                (axis,), shape = eqn.params["axes"], eqn.inputs[0].aval.shape
                total = (sum(cost[var] for var in inputs) + 1) * shape[axis]
                kept: Any = eqn.outputs[0].aval
                each = step_cost(eqn.primitive.lower.kind, kept.dtype)
                work = total * unrolled(kept.shape) * each
                if work > LONG_REDUCTION and axis in loop_axes(shape):
                    kind = self.kinds[position] = "reduce"
            if kind == "inline":
                lower = eqn.primitive.lower
                if not isinstance(lower, Reduction):
                    total = sum(cost[var] for var in inputs)
                if isinstance(lower, Pointwise):
                    total += pointwise_cost(eqn)
                total = min(total, HIGHEST_COST)
            else:
                total = 1
                if kind == "view":
                    var = inputs[0]
                    number = self.makers.get(var)
                    if number is not None and self.kinds[number] == "inline":
                        highest += 1
                else:
                    highest += 1
            for out in eqn.outputs:
                level[out], cost[out] = highest, total
                if kind == "inline":
                    is_dear = isinstance(eqn.primitive.lower, Pointwise) and pointwise_cost(eqn) > 4
                    own, shape = HIGHEST_COST if is_dear else total, out.aval.shape
                    self.highest_cost[shape] = max(self.highest_cost.get(shape, 0), own)
                if kind == "inline" and out in self.forced:
                    # its nest must have finished before the nests that could not compute it
                    self.own_level[out] = highest
                    level[out] += 1

    # what is kept

    def _choose(self) -> tuple[dict[Key, list[Root]], set[Var]]:
        """The roots, by nest, and what must be in memory."""
        in_memory: set[Var] = {atom for atom in self.jaxpr.outvars if isinstance(atom, Var)}
        for kind, eqn in zip(self.kinds, self.jaxpr.eqns, strict=True):
            if kind in ("call", "view"):
                in_memory.update(atom for atom in eqn.inputs if isinstance(atom, Var))
        users: dict[Var, set[Key]] = {}
        roots: dict[Key, list[Root]] = {}
        for number in reversed(range(len(self.jaxpr.eqns))):
            eqn, kind = self.jaxpr.eqns[number], self.kinds[number]
            keys: set[Key] = set()
            if kind == "reduce":
                x = eqn.inputs[0]
                shape = x.aval.shape
                axis = eqn.params["axes"][0]
                loops = self._loops(shape, axis)
                if self._is_summed_inside(x, axis, loops, in_memory):
                    loops = (loops[-1], *[o for o in loops[:-1] if o != axis], axis)
                root = Root(eqn, 0, shape, loops, axis)
                level = self.level.get(x, 0) if isinstance(x, Var) else 0
                key = (level, _extents(root), self._is_across(root))
                roots.setdefault(key, []).append(root)
                keys.add(key)
            elif kind == "inline":
                for output, var in enumerate(eqn.outputs):
                    wanted = users.get(var, set())
                    shape = var.aval.shape
                    level = self.own_level.get(var, self.level[var])
                    loops = self._loops(shape)
                    own = (level, tuple(shape[a] for a in loops), False)
                    if var in in_memory or self._is_worth_keeping(var, wanted, own):
                        root = Root(eqn, output, shape, loops)
                        roots.setdefault(own, []).append(root)
                        keys.add(own)
                    else:
                        keys |= wanted
            for atom in eqn.inputs:
                if isinstance(atom, Var):
                    users.setdefault(atom, set()).update(keys)
        return roots, in_memory

    def _loops(self, shape: tuple[int, ...], reduced: int | None = None) -> tuple[int, ...]:
        """The loops of a root: a few long rows of light work are computed together.

        What does not depend on the row, as in products with a few directions, is computed once.
        """
        loops = loop_axes(shape)
        if shape in self.row_shapes and (reduced is None or reduced != vector_axis(shape)):
            return (*loops, len(shape) - 1)
        if (
            len(loops) == 2
            and shape[loops[0]] <= FEW_ROWS
            and shape[loops[1]] >= LONG_ROW
            and loops[0] != reduced
            and self.highest_cost.get(shape, 0) <= LIGHT_WORK
        ):
            return loops[1:]
        return loops

    def _is_across(self, root: Root) -> bool:
        """Whether a reduction has lanes across short rows that others have lanes along."""
        shape = root.space
        lanes, last = vector_axis(shape), len(shape) - 1
        if root.reduced is None or root.reduced != lanes or lanes == last:
            return False
        return shape in self.row_shapes or (last in root.loops and shape[last] >= FEWEST_LANES)

    def _is_summed_inside(
        self, x: Atom, axis: int, loops: tuple[int, ...], in_memory: set[Var]
    ) -> bool:
        """Whether a sum along an axis in front of lanes runs inside of them, all other loops, too.

        That is for operands that are computed from much smaller arrays, whose columns then stay in
        the cache, and that nothing else has a use for: where another nest reads what they are
        computed from, both shall share the usual loops.
        """
        shape = x.aval.shape
        if (
            axis not in loops[:-1]
            or shape[axis] > SUMMED_IN_REGISTERS
            or vector_axis(shape) != loops[-1]
            or not isinstance(x, Var)
            or self.cost[x] <= DEAR
        ):
            return False
        size = math.prod(shape)
        pending: list[Var] = [x]
        while pending:
            var = pending.pop()
            number = self.makers.get(var)
            if 2 * var.aval.size <= size:  # type: ignore[union-attr]  # an array
                continue
            is_stored = number is None or self.kinds[number] != "inline" or var in self.forced
            if is_stored or var in in_memory or self.readers[var] > 1:
                return False
            assert number is not None
            pending.extend(a for a in self.jaxpr.eqns[number].inputs if isinstance(a, Var))
        return True

    def _is_worth_keeping(self, var: Var, wanted: set[Key], own: Key) -> bool:
        if not wanted:
            return False
        if var in self.forced:
            return True
        cost, size = self.cost[var], var.aval.size  # type: ignore[union-attr]  # arrays only
        if not own[1]:  # small: worth keeping wherever another nest uses it
            return wanted != {own} and cost > 1
        if len(wanted) > 1 and cost > DEAR:
            return True
        return (
            cost > 2
            and any(math.prod(extents) >= 4 * math.prod(own[1]) for _, extents, _ in wanted)
            and size > 0
        )

    # order

    def _order(self, roots: dict[Key, list[Root]], in_memory: set[Var]) -> Schedule:
        calls: dict[int, list[tuple[int, Item]]] = {}
        for number, (kind, eqn) in enumerate(zip(self.kinds, self.jaxpr.eqns, strict=True)):
            if kind in ("call", "view"):
                after = self.level[eqn.outputs[0]] - 1 if eqn.outputs else 0
                item: Item = Call(eqn) if kind == "call" else View(eqn)
                calls.setdefault(after, []).append((number, item))
        by_level: dict[int, list[tuple[tuple[bool, bool, int], Key, list[Root]]]] = {}
        for key, found in roots.items():
            first = min(self.makers[root.var] for root in found)
            order = (bool(key[1]), key[2], first)  # sums across rows read what others store
            by_level.setdefault(key[0], []).append((order, key, found))
        given = {*self.jaxpr.constvars, *self.jaxpr.invars}
        result = Schedule(self.jaxpr, [], set(given), in_memory)
        for level in sorted(by_level.keys() | calls):
            nests = by_level.get(level, ())
            for _, key, found in sorted(nests, key=lambda entry: entry[0]):
                ordered = tuple(sorted(found, key=lambda root: self.makers[root.var]))
                equations, reads = self._ancestors([root.eqn for root in ordered], result.stored)
                result.items.append(Nest(key[1], _vector(ordered), ordered, tuple(equations)))
                result.reads.append(tuple(reads))
                result.stored.update(root.var for root in ordered)
            for _, item in sorted(calls.get(level, ()), key=lambda entry: entry[0]):
                assert not isinstance(item, Nest)
                result.items.append(item)
                result.reads.append(
                    tuple([atom for atom in item.eqn.inputs if isinstance(atom, Var)])
                )
                result.stored.update(item.eqn.outputs)
        return result

    def _ancestors(self, eqns: Sequence[Equation], stored: set[Var]) -> tuple[list[int], list[Var]]:
        """Equations that a nest computes, and stored variables that it reads."""
        numbers = {self.makers[eqn.outputs[0]] for eqn in eqns}
        reads: dict[Var, None] = {}
        pending = list(numbers)
        while pending:
            for atom in self.jaxpr.eqns[pending.pop()].inputs:
                if not isinstance(atom, Var):
                    continue
                if atom in stored:
                    reads[atom] = None
                    continue
                number = self.makers[atom]
                if number not in numbers:
                    numbers.add(number)
                    pending.append(number)
        return sorted(numbers), list(reads)


def is_inner(eqn: Equation) -> bool:
    """Whether a reduction runs over so few elements that it is written out where it is used."""
    shape = eqn.inputs[0].aval.shape
    (axis,) = eqn.params["axes"]
    if axis == vector_axis(shape) or shape[axis] == 0:
        return bool(shape[axis] == 0)
    return bool(shape[axis] <= 16 or axis not in loop_axes(shape))


def is_summed_inside(root: Root) -> bool:
    """Whether the outermost loop runs over lanes, and the innermost over the reduced axis."""
    return len(root.loops) > 1 and root.reduced == root.loops[-1] < root.loops[0]


def _extents(root: Root) -> tuple[int, ...]:
    return tuple(root.space[axis] for axis in root.loops)


def _vector(roots: Sequence[Root]) -> int | None:
    """Which loop runs over lanes: the last one that is long enough, alike for all roots.

    Inside it there should be no other loop: elements of different lanes would be far apart. Only a
    reduction along it must have it, and sums inside of lanes are written for that.
    """
    extents = _extents(roots[0])
    if all(is_summed_inside(root) for root in roots):
        return 0
    found = vector_axis(extents)
    last = len(extents) - 1
    if found is not None and (
        found == last
        or any(root.reduced is not None and root.loops[found] == root.reduced for root in roots)
    ):
        return found
    is_free = all(
        root.reduced is None or not extents or root.loops[last] != root.reduced for root in roots
    )
    return last if extents and extents[last] >= FEWEST_LANES and is_free else None
