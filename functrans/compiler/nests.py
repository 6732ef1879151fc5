"""Loop nests as instructions.

Here: ``NestWriter``, from a nest of a schedule to loops, loads, arithmetic and stores. Not here:
which variables share a nest (``compiler.schedule``), how elements are combined
(``compiler.accumulators``), how they come from and go to memory (``compiler.access``).

Values are written on demand, from the roots down: ``value(variable, index)`` writes the equation of
the variable at an affine index of the loop variables, once, at the outermost loop where the index
is known. So loop-invariant values are computed outside by construction. One loop may run over
lanes: the same instructions on vectors, then scalars for what is left over.

An element that comes from one place in one part of a loop and from another place, or from none, in
another part (pad, concatenate, the transpose of a slice) cuts the loop: each part is written
without conditions.

Layer: ``compiler``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.compiler import access
from functrans.compiler.accumulators import Accumulator, end_round
from functrans.compiler.axes import SHORT, vector_axis
from functrans.compiler.cursor import Cursor
from functrans.compiler.elements import pointwise_cost
from functrans.compiler.packs import pieces
from functrans.compiler.places import Body
from functrans.compiler.reductions import fold, fold_lanes
from functrans.compiler.schedule import MAX_PARTS, Nest, Root
from functrans.compiler.sharing import call_shared, shares_code
from functrans.compiler.storage import Stored
from functrans.core.affine import Affine, as_affine, constant, variable
from functrans.core.jaxpr import Atom, Equation, Literal, Var
from functrans.core.lowering import IndexMap, Pointwise, Read, Reduction
from functrans.core.primitive import Primitive
from functrans.emitter.dtypes import literal_in
from functrans.emitter.numbers import Number, Numbers
from functrans.emitter.types import Value, float_text, parameter
from functrans.errors import CompilationError
from functrans.passes.simplify import exact_key
from functrans.primitives.elementwise import multiply_p

Index = tuple[Affine, ...]
DEEP = 100
"""Equations of a nest from which they are written one by one, and not only from the roots down."""
LARGEST_TILE = 256
"""Elements, lanes times what is unrolled, that a round of a nest may work on."""
LIGHT = 60
"""Cost of a body up to which 32 lanes are worked on at once."""
HEAVY = 400
"""Cost of a body up to which 16 lanes are: two vectors hide each other's latency."""


class MustStore(Exception):  # noqa: N818  # a message to the scheduler, no error
    """A variable cannot be computed inside a nest and must be stored before.

    Attributes:
      var: the variable.
      by_routine: whether its own nest could not compute it either.
    """

    def __init__(self, var: Var, by_routine: bool = False) -> None:
        super().__init__(var)
        self.var = var
        self.by_routine = by_routine


class NestWriter(Cursor):
    """Writes one nest into a body."""

    def __init__(self, body: Body, nest: Nest) -> None:
        super().__init__(body, nest)
        self.cuts: list[set[int]] = [{0, extent} for extent in nest.extents]
        self.ranges: list[tuple[int, int]] = [(0, extent) for extent in nest.extents]
        self.accumulators: list[Accumulator] = []
        self.pending: list[access.Store] = []
        self.cost = 0
        self.pinned: dict[int, int] = {}
        """Counters of the parts of loops that have one round."""
        self.read_indices: dict[Var, set[Index]] = {}
        """At which indices stored variables are read."""
        self.limits: tuple[Value, Value] | None = None
        """Bounds of the outermost loop in a function that does a part of it."""
        self.own = {root.var for root in nest.roots if root.reduced is None}
        self.packs: dict[Atom, Stored] = {}
        """Variables in vector registers, in a nest without loops."""
        self.shares_code = False
        """Whether functions such as ``exp`` are called instead of written out."""

    # planning ------------------------------------------------------------------------------------

    def explore(self) -> None:
        """Find where loops are cut, and how much a body does, before anything is written.

        Without loops, all elements of a variable are one entry of what is looked at.

        Raises:
          MustStore: a variable cannot be computed here.
        """
        seen: set[tuple[Var, Index | None]] = set()
        cost = 0
        widest = 1
        pending: list[tuple[Atom, Index | None]] = []
        for root in self.nest.roots:
            widest = max(widest, root.var.aval.dtype.itemsize)
            if not self.nest.extents:
                pending.append((root.var if root.reduced is None else root.eqn.inputs[0], None))
            elif root.reduced is None:
                pending.extend((root.var, index) for index in self.root_indices(root))
            else:
                pending.extend((root.eqn.inputs[0], index) for index in self.root_indices(root))
                cost += 2
        while pending:
            atom, index = pending.pop()
            if isinstance(atom, Literal) or (atom, index) in seen:
                continue
            seen.add((atom, index))
            widest = max(widest, atom.aval.dtype.itemsize)
            if atom in self.body.available and atom not in self.own:
                cost += 1
                if index is not None:
                    self.read_indices.setdefault(atom, set()).add(index)
                continue
            eqn, output = self.body.maker(atom)
            lower = eqn.primitive.lower
            if index is None:
                if isinstance(lower, IndexMap):
                    pending.extend((atom, i) for i in all_indices(atom.aval.shape))
                else:
                    pending.extend((x, None) for x in eqn.inputs)
            elif isinstance(lower, Pointwise):
                cost += pointwise_cost(eqn)
                pending.extend(
                    (x, broadcast_index(index, atom.aval.shape, x.aval.shape)) for x in eqn.inputs
                )
            elif isinstance(lower, IndexMap):
                pending.extend(
                    (eqn.inputs[read.operand], affine_index(read.index))
                    for read in self.reads(eqn, output, index)
                    if self._may_hold(read, atom)
                )
            else:
                axis = eqn.params["axes"][0]
                extent = eqn.inputs[0].aval.shape[axis]
                cost += extent
                pending.extend(
                    (eqn.inputs[0], (*index[:axis], constant(k), *index[axis:]))
                    for k in range(extent)
                )
        self.cost = cost
        if self.nest.vector is not None:
            native = max(1, 64 // min(widest, 8))
            extent = self.nest.extents[self.nest.vector]
            lanes = 32 if cost <= LIGHT else max(16, native) if cost <= HEAVY else native
            lanes = lanes if extent >= 64 else native
            while lanes > 2 and lanes > extent:
                lanes //= 2
            # lanes run across what is unrolled, so that each costs an access of its own
            unrolled = max(math.prod(root.space) for root in self.nest.roots)
            unrolled //= math.prod(self.nest.extents)
            while lanes > 8 and lanes * unrolled > LARGEST_TILE:
                lanes //= 2
            self.wide_lanes = lanes

    def _may_hold(self, read: Read, var: Var) -> bool:
        """Whether a read's conditions can hold; notes where they begin and cease to."""
        for position, extent in read.conditions:
            place = as_affine(position)
            low, high = place.bounds(self.ranges)
            if high < 0 or low >= extent:
                return False
            if low >= 0 and high < extent:
                continue
            if len(place.terms) != 1:
                raise MustStore(var, by_routine=any(root.var is var for root in self.nest.roots))
            ((loop, coefficient),) = place.terms
            for edge in (0, extent):
                # first counter where coefficient * counter + constant >= edge (or < edge)
                if coefficient > 0:
                    cut = -((place.constant - edge) // coefficient)
                else:
                    cut = (place.constant - edge) // -coefficient + 1
                if 0 < cut < self.nest.extents[loop]:
                    self.cuts[loop].add(cut)
                    if math.prod(len(cuts) - 1 for cuts in self.cuts) > MAX_PARTS:
                        raise self._cut_too_often(var)
        return True

    def _cut_too_often(self, var: Var) -> MustStore:
        """A variable with conditions, to be stored in a nest of its own or by its routine.

        Args:
          var: whose conditions cut the nest once too often.
        """
        roots = {root.var for root in self.nest.roots}
        if var not in roots:
            return MustStore(var)
        moved: list[Equation] = []
        for number in self.nest.equations:
            eqn = self.body.jaxpr.eqns[number]
            if isinstance(eqn.primitive.lower, IndexMap):
                if eqn.outputs[0] not in roots and eqn.outputs[0] not in self.body.available:
                    return MustStore(eqn.outputs[0])
                if eqn.primitive.lower.routine is not None:
                    moved.append(eqn)
        if not moved:
            raise CompilationError(
                f"maps without a routine cut a loop nest into more than {MAX_PARTS} parts"
            )
        return MustStore(max(moved, key=lambda eqn: len(eqn.inputs)).outputs[0], by_routine=True)

    def reads_where_it_writes(self, var: Var, root: Root) -> bool:
        """Whether each round reads a variable only at the indices where it writes a root.

        The root may then take over the variable's memory: reads come before writes in a round.
        """
        found = self.read_indices.get(var, set())
        return root.reduced is None and found <= set(self.root_indices(root))

    def root_indices(self, root: Root) -> Iterator[Index]:
        """The indices of a root's space: loop variables, and all numbers of unrolled axes."""
        choices: list[list[Affine]] = []
        if 0 in root.space:  # whose other extents may be as large as they like
            return iter(())
        for axis, extent in enumerate(root.space):
            if axis in root.loops:
                choices.append([variable(root.loops.index(axis))])
            else:
                choices.append([constant(k) for k in range(extent)])
        return itertools.product(*choices)

    def reads(self, eqn: Equation, output: int, index: Index) -> Sequence[Read]:
        """Where an element of an index map comes from.

        Raises:
          MustStore: there is no affine map at this index.
        """
        lower = eqn.primitive.lower
        assert isinstance(lower, IndexMap)
        avals = [atom.aval for atom in eqn.inputs]
        reads: Sequence[Read] | None = lower.trace(index, avals, output, **eqn.params)
        if reads is None and lower.is_view:
            reads = reads_of_view(index, eqn.outputs[output].aval.shape, avals[0].shape)
        if reads is None:
            raise MustStore(eqn.outputs[output])
        return reads

    # writing -------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the nest; its roots are in ``body.env`` afterwards."""
        if 0 in self.nest.extents:
            for root in self.nest.roots:
                self.body.declare(root)
            return
        for root in self.nest.roots:
            self.body.declare(root)
        self.open_section()
        if not self.nest.extents:
            self._write_straight()
        else:
            self.accumulators = [
                Accumulator(self, root, kept)
                for root in self.nest.roots
                if root.reduced is not None
                for kept in self._kept_choices(root)
            ]
            self._write_axis(0)
            if self.limits is None:
                for root in self.nest.roots:
                    self.body.spill(root.var)
            self.accumulators = []  # they refer to this
        self.close_section()

    def _write_straight(self) -> None:
        """A nest without loops: equations in order, so that none is recursive in their number."""
        reduced = {root.var for root in self.nest.roots if root.reduced is not None}
        self.shares_code = shares_code(self.body.jaxpr.eqns[n] for n in self.nest.equations)
        for number in self.nest.equations:
            eqn = self.body.jaxpr.eqns[number]
            if reduced.isdisjoint(eqn.outputs):
                is_scalar = not any(x.aval.shape for x in eqn.inputs)
                for var in eqn.outputs:
                    if var in self.body.packed:
                        with self.b.within(self.sections[0]):
                            self._write_packs(var)
                    elif not var.aval.shape:
                        (self.value if is_scalar else self.value_in_order)(var, ())
        for root in self.nest.roots:
            var = root.var
            stored = self.body.env[var]
            if var in self.packs:
                stored.elements = dict(self.packs[var].elements)
            elif root.reduced is None:
                for flat, index in enumerate(self.root_indices(root)):
                    stored.elements[flat] = self.value_in_order(var, index)
            else:
                self._reduce_straight(root, stored)
            self.body.spill(var)

    def _write_packs(self, var: Var) -> None:
        """Compute a small array in vector registers."""
        eqn, _ = self.body.maker(var)
        lower = eqn.primitive.lower
        shape = var.aval.shape
        stored = Stored(shape, var.aval.dtype)
        for start, lanes in pieces(stored.size):
            if isinstance(lower, Pointwise):
                dtypes = self.body.loop_dtypes(eqn)
                numbers = [
                    literal(self.e, x, dtype, eqn.primitive)
                    if isinstance(x, Literal)
                    else self._lanes(x, shape, start, lanes)
                    for x, dtype in zip(eqn.inputs, dtypes, strict=True)
                ]
                number = self._combined(eqn, lower, numbers, dtypes, 0)
            else:
                number = self._lanes(var, shape, start, lanes)
            stored.elements[start] = self.e.splat(number, lanes)
        self.packs[var] = stored

    def _lanes(self, atom: Atom, shape: tuple[int, ...], start: int, lanes: int) -> Number:
        """Elements of what is broadcast to a shape; a single number where all are the same."""
        own = atom.aval.shape
        stored = self._kept(atom) if own == shape else None
        if stored is not None and start in stored.elements:
            number = stored.elements[start]
            if number.lanes == lanes:
                return number
        indices = [
            broadcast_index(i, shape, own) for i in all_indices(shape)[start : start + lanes]
        ]
        return self._gathered(atom, indices)

    def _gathered(self, atom: Atom, indices: Sequence[Index]) -> Number:
        """Elements of a variable in one register; a single number where all are the same."""
        sources = [self._source(atom, index) for index in indices]
        first = sources[0]
        zero = self.e.constant(atom.aval.dtype, 0)
        if all(source == first for source in sources):
            return zero if first is None else self.value_in_order(*first)
        key = ("lanes", tuple(sources))
        number: Number | None = self.memos[0].get(key)
        if number is None:
            number = access.read_lanes(self, [self._place(source) for source in sources])
            if number is None:
                number = self.e.pack(
                    [zero if source is None else self.value_in_order(*source) for source in sources]
                )
            self.memos[0][key] = number
        return number

    def _source(self, atom: Atom, index: Index) -> tuple[Atom, Index] | None:
        """Where an element comes from, through index maps; ``None`` of one that is zero."""
        while isinstance(atom, Var) and self._kept(atom) is None:
            eqn, output = self.body.maker(atom)
            if not isinstance(eqn.primitive.lower, IndexMap):
                break
            read = next(filter(self._holds, self.reads(eqn, output, index)), None)
            if read is None:
                return None
            x = eqn.inputs[read.operand]
            if x.aval.dtype != atom.aval.dtype:
                break
            atom, index = x, affine_index(read.index)
        return atom, index

    def _place(self, source: tuple[Atom, Index] | None) -> tuple[Stored | None, int]:
        """The variable of a source, if it is computed, and the element; none of zero is -1."""
        if source is None:
            return None, -1
        stored = self._kept(source[0])
        return stored, access.flat_index(stored, source[1]).constant if stored is not None else 0

    def _kept(self, atom: Atom) -> Stored | None:
        """Where a variable is, if it is computed already."""
        stored = self.packs.get(atom)
        if stored is None and atom not in self.own and isinstance(atom, Var):
            stored = self.body.env.get(atom)
        return stored

    def _reduce_straight(self, root: Root, stored: Stored) -> None:
        """A reduction whose operand is unrolled."""
        lower = root.eqn.primitive.lower
        assert isinstance(lower, Reduction)
        assert root.reduced is not None
        x = root.eqn.inputs[0]
        in_lanes = root.reduced == vector_axis(root.space)
        for flat, index in enumerate(
            itertools.product(
                *[
                    map(constant, range(n))
                    for axis, n in enumerate(root.space)
                    if axis != root.reduced
                ]
            )
        ):
            numbers = [
                self.value_in_order(
                    x, (*index[: root.reduced], constant(k), *index[root.reduced :])
                )
                for k in range(root.space[root.reduced])
            ]
            combine = fold_lanes if in_lanes else fold
            self.b.begin(root.eqn)
            stored.elements[flat] = combine(self.e, lower.kind, numbers, stored.dtype)
            self.b.end()

    def _kept_choices(self, root: Root) -> Iterator[dict[int, int]]:
        """All choices of numbers for the unrolled axes that a reduction keeps."""
        axes = [a for a in range(len(root.space)) if a not in root.loops and a != root.reduced]
        for numbers in itertools.product(*[range(root.space[a]) for a in axes]):
            yield dict(zip(axes, numbers, strict=True))

    def _write_axis(self, loop: int) -> None:
        """Write a loop, in its parts, with all loops inside."""
        if loop == len(self.nest.extents):
            self._write_innermost()
            return
        own = [acc for acc in self.accumulators if acc.loop == loop]
        for accumulator in own:
            self.b.begin(accumulator.root.eqn)
            accumulator.open()
            self.b.end()
        edges = sorted(self.cuts[loop])
        for start, stop in itertools.pairwise(edges):
            self.ranges[loop] = (start, stop)
            self.pinned.pop(loop, None)
            if stop - start == 1:
                self.pinned[loop] = start
            if loop == 0 and self.limits is not None:
                self._write_limited(start, stop, own)
                continue
            if loop != self.nest.vector:
                self._write_part(loop, start, stop, 1, own)
                continue
            lanes = self.wide_lanes
            # the lanes of a reduction are counted from 0: begin at a multiple of their number
            first = -(-start // lanes) * lanes if own else start
            first = min(first, stop)
            last = first + (stop - first) // lanes * lanes
            parts = [(start, first, 1), (first, last, lanes), *self._rest(loop, last, stop)]
            for begin, end, step in parts:
                if begin < end:
                    self._write_part(loop, begin, end, step, own)
        self.ranges[loop] = (0, self.nest.extents[loop])
        self.pinned.pop(loop, None)
        for accumulator in own:
            self.b.begin(accumulator.root.eqn)
            accumulator.close()
            self.b.end()

    def _rest(self, loop: int, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """What full lanes leave over: in short rows by half as many, a quarter, and so on."""
        lanes = self.wide_lanes if self.nest.extents[loop] < SHORT and loop else 1
        while lanes > 1 and start < stop:
            lanes //= 2
            if stop - start >= lanes:
                yield start, start + lanes, lanes
                start += lanes
        if start < stop:
            yield start, stop, 1

    def _write_part(
        self, loop: int, start: int, stop: int, lanes: int, own: Sequence[Accumulator]
    ) -> None:
        """Write a loop over a range, in steps of some lanes."""
        outer = self.lanes
        if loop == self.nest.vector:
            self.lanes = lanes
        b = self.b
        if stop - start == lanes:
            self._write_round(loop, b.index(start), own)
        else:
            with b.loop(b.index(start), b.index(stop), lanes) as counter:
                self._write_round(loop, counter, own)
        self.lanes = outer

    def _write_limited(self, start: int, stop: int, own: Sequence[Accumulator]) -> None:
        """Write the part of the outermost loop that lies within the limits."""
        assert self.limits is not None
        b = self.b
        low = b.intrinsic("smax", b.index(start), self.limits[0])
        high = b.intrinsic("smax", low, b.intrinsic("smin", b.index(stop), self.limits[1]))
        pieces = [(low, high, 1)]
        if self.nest.vector == 0 and self.wide_lanes > 1:
            lanes = self.wide_lanes
            full = b.and_(b.sub(high, low), b.index(-lanes))
            middle = b.add(low, full)
            pieces = [(low, middle, lanes), (middle, high, 1)]
        for begin, end, step in pieces:
            self.lanes = step
            with b.loop(begin, end, step) as counter:
                self._write_round(0, counter, own)
        self.lanes = 1

    def _write_round(self, loop: int, counter: Value, own: Sequence[Accumulator]) -> None:
        self.counters[loop] = counter
        self.open_section()
        self._write_axis(loop + 1)
        end_round(self, own, counter)
        self.close_section()

    def _write_innermost(self) -> None:
        self.pending = []
        if len(self.nest.equations) > DEEP:
            self._write_in_order()
        for root in self.nest.roots:
            if root.reduced is not None:
                continue
            stored = self.body.env[root.var]
            for index in self.root_indices(root):
                number = self.value_in_order(root.var, index)
                self.pending.append(access.Store(stored, index, number))
        for accumulator in self.accumulators:
            number = self.value_in_order(accumulator.operand, accumulator.index)
            self.b.begin(accumulator.root.eqn)
            accumulator.add(number)
            self.b.end()
        access.write_all(self, self.pending)

    def _write_in_order(self) -> None:
        """Write long chains from their beginning, so that nothing is recursive in their length."""
        spaces = {root.space: root for root in self.nest.roots}
        for number in self.nest.equations:
            eqn = self.body.jaxpr.eqns[number]
            if isinstance(eqn.primitive.lower, Pointwise):
                (var,) = eqn.outputs
                root = spaces.get(var.aval.shape)
                if root is not None:
                    for index in self.root_indices(root):
                        self.value_in_order(var, index)
                elif not var.aval.shape:
                    self.value_in_order(var, ())

    # values --------------------------------------------------------------------------------------

    def depth(self, index: Index) -> int:
        """How many loops must be open for an index to be known."""
        return max((terms[-1][0] + 1 for i in index if (terms := i.terms)), default=0)

    def value(self, atom: Atom, index: Index) -> Number:
        """An element of a variable, or one per lane; written where it is first known."""
        if isinstance(atom, Literal):
            return literal(self.e, atom, atom.aval.dtype)
        if self.pinned:
            index = self._with_known_counters(index)
        depth = self.depth(index)
        memo = self.memos[depth]
        number: Number | None = memo.get((atom, index))
        if number is not None:
            return number
        stored = self._kept(atom)
        if stored is not None:
            with self.b.within(self.sections[depth]):
                number = access.read(self, stored, index)
        else:
            number = self._compute(atom, index, depth)
        memo[atom, index] = number
        return number

    def value_in_order(self, atom: Atom, index: Index) -> Number:
        """:meth:`value`, in a large nest after all that it needs: chains may be of any length."""
        if len(self.nest.equations) > DEEP:
            pending = [(atom, index)]
            while pending:
                wanted = pending[-1]
                missing = [] if self._is_known(*wanted) else self._operands(*wanted)
                missing = [operand for operand in missing if not self._is_known(*operand)]
                pending.extend(missing)
                if not missing:
                    self.value(*pending.pop())
        return self.value(atom, index)

    def _is_known(self, atom: Atom, index: Index) -> bool:
        """Whether :meth:`value` computes nothing: a number, a memory access, or known already."""
        if isinstance(atom, Literal) or self._kept(atom) is not None:
            return True
        if self.pinned:
            index = self._with_known_counters(index)
        return (atom, index) in self.memos[self.depth(index)]

    def _operands(self, var: Atom, index: Index) -> list[tuple[Atom, Index]]:
        """What :meth:`value` computes an element from."""
        assert isinstance(var, Var)
        if self.pinned:
            index = self._with_known_counters(index)
        eqn, output = self.body.maker(var)
        lower = eqn.primitive.lower
        if isinstance(lower, Pointwise):
            shape = var.aval.shape
            return [(x, broadcast_index(index, shape, x.aval.shape)) for x in eqn.inputs]
        if isinstance(lower, IndexMap):
            for read in self.reads(eqn, output, index):
                if self._holds(read):
                    return [(eqn.inputs[read.operand], affine_index(read.index))]
            return []
        axis = eqn.params["axes"][0]
        return [
            (eqn.inputs[0], (*index[:axis], constant(k), *index[axis:]))
            for k in range(eqn.inputs[0].aval.shape[axis])
        ]

    def _with_known_counters(self, index: Index) -> Index:
        """An index in a part of one round, whose counter is a number."""
        pinned = self.pinned
        return tuple(
            [
                sum(
                    (variable(v) * c for v, c in i.terms if v not in pinned),
                    constant(i.constant + sum(c * pinned[v] for v, c in i.terms if v in pinned)),
                )
                for i in index
            ]
        )

    def _compute(self, var: Var, index: Index, depth: int) -> Number:
        eqn, output = self.body.maker(var)
        lower = eqn.primitive.lower
        if isinstance(lower, Pointwise):
            return self._compute_pointwise(eqn, lower, var, index, depth)
        if isinstance(lower, IndexMap):
            for read in self.reads(eqn, output, index):
                if self._holds(read):
                    x = eqn.inputs[read.operand]
                    number = self.value(x, affine_index(read.index))
                    if number.dtype == var.aval.dtype:
                        return number
                    with self.b.within(self.sections[depth]):
                        self.b.begin(eqn)
                        number = self.e.cast(number, var.aval.dtype)
                        self.b.end()
                    return number
            return self.e.constant(var.aval.dtype, 0)
        assert isinstance(lower, Reduction)
        axis = eqn.params["axes"][0]
        extent = eqn.inputs[0].aval.shape[axis]
        numbers = [
            self.value(eqn.inputs[0], (*index[:axis], constant(k), *index[axis:]))
            for k in range(extent)
        ]
        with self.b.within(self.sections[depth]):
            self.b.begin(eqn)
            number = fold(self.e, lower.kind, numbers, var.aval.dtype)
            self.b.end()
        return number

    def _compute_pointwise(
        self, eqn: Equation, lower: Pointwise, var: Var, index: Index, depth: int
    ) -> Number:
        dtypes = self.body.loop_dtypes(eqn)
        shape = var.aval.shape
        numbers: list[Number] = []
        for x, dtype in zip(eqn.inputs, dtypes, strict=True):
            if isinstance(x, Literal):
                numbers.append(literal(self.e, x, dtype, eqn.primitive))
            else:
                numbers.append(self.value(x, broadcast_index(index, shape, x.aval.shape)))
        return self._combined(eqn, lower, numbers, dtypes, depth)

    def _combined(
        self,
        eqn: Equation,
        lower: Pointwise,
        numbers: Sequence[Number],
        dtypes: Sequence[np.dtype],
        depth: int,
    ) -> Number:
        """An elementwise equation of numbers, one or one per lane."""
        dtype = eqn.outputs[0].aval.dtype
        same = _value_key(eqn, numbers, dtypes)
        known: Number | None = self.memos[depth].get(same)
        if known is not None:
            return known
        unit = _without_unit(eqn, numbers)
        if unit is not None and unit.dtype == dtype:
            return unit
        lanes = max(number.lanes for number in numbers) if numbers else 1
        with self.b.within(self.sections[depth]):
            self.b.begin(eqn)
            operands = []
            for number, wanted in zip(numbers, dtypes, strict=True):
                operand = number if number.dtype == wanted else self.e.cast(number, wanted)
                operands.append(self.e.splat(operand, lanes) if operand.lanes != lanes else operand)
            self.body.program.at_equation(eqn)
            result = call_shared(self.b, eqn, operands) if self.shares_code else None
            if result is None:
                result = lower.write(self.e, *operands, **eqn.params)
            if result.dtype != dtype:
                result = self.e.cast(result, dtype)
            self.b.end()
        self.memos[depth][same] = result
        return result

    def _holds(self, read: Read) -> bool:
        """Whether a read's conditions hold in the present part of the loops."""
        for position, extent in read.conditions:
            low, high = as_affine(position).bounds(self.ranges)
            if high < 0 or low >= extent:
                return False
        return True


def all_indices(shape: tuple[int, ...]) -> list[Index]:
    """The indices of an array in C order."""
    return list(itertools.product(*[map(constant, range(n)) for n in shape]))


def broadcast_index(index: Index, shape: tuple[int, ...], operand: tuple[int, ...]) -> Index:
    """The index of an operand that is broadcast to a shape."""
    if shape == operand:
        return index
    tail = index[len(index) - len(operand) :]
    return tuple([constant(0) if n == 1 else i for i, n in zip(tail, operand, strict=True)])


def reads_of_view(
    index: Index, shape: tuple[int, ...], operand: tuple[int, ...]
) -> tuple[Read, ...] | None:
    """The element of the same number in C order, where that is affine: at least for constants."""
    flat = constant(0)
    for i, extent in zip(index, shape, strict=True):
        flat = flat * extent + i
    found: list[Affine] = []
    for extent in reversed(operand):
        parts = flat.split(max(extent, 1))
        if parts is None:
            return None
        flat, rest = parts
        found.append(rest)
    return (Read(0, tuple(reversed(found))),)


def affine_index(index: Sequence[Any]) -> Index:
    """The entries of a read as affine indices."""
    return tuple([as_affine(i) for i in index])


def _value_key(
    eqn: Equation, numbers: Sequence[Number], dtypes: Sequence[np.dtype]
) -> tuple[Any, ...]:
    """What an elementwise result depends on: operands by their registers and constants."""
    texts = [(part.text, part.type) for number in numbers for part in number.parts]
    return (eqn.primitive, exact_key(tuple(eqn.params.items())), tuple(dtypes), tuple(texts))


def _without_unit(eqn: Equation, numbers: Sequence[Number]) -> Number | None:
    """The other factor of a product with 1, which is the same number to the last bit."""
    if eqn.primitive is not multiply_p:
        return None
    for number, other in zip(numbers, reversed(numbers), strict=True):
        is_alike = number.dtype == other.dtype and number.dtype.kind == "f"
        if is_alike and number.parts[0].text == float_text(1.0, 64):
            return other
    return None


def literal(
    e: Numbers, atom: Literal, dtype: np.dtype, primitive: Primitive | None = None
) -> Number:
    """A number of the program: as a parameter, if it may come from an extent, as 1 / n does."""
    value = atom.value
    if dtype.kind == "f" and dtype.itemsize >= 4 and not isinstance(value, complex):
        number = float(value)
        if math.isfinite(number) and not (abs(number) <= 16 and (16 * number).is_integer()):
            return Number(dtype, (parameter(number, 8 * dtype.itemsize),))
    return e.constant(dtype, literal_in(value, dtype, primitive))
