"""Short rows that lanes run along.

Here: ``rows_in_lanes``. Not here: which axes are loops otherwise (``compiler.axes``).

Rows of up to 16 elements are unrolled, with lanes along another axis: eight rows are worked on at
once, a register for each column. Reductions of a row, single columns, and functions waste nothing
so. But every array that is read or written is shuffled from rows to columns or back, in as many
steps for each register as it has lanes. Lanes along the row read and write it as it is, while some
of them may have nothing to do: a row of 13 elements takes registers of 8, 4 and 1 of them.

Both are counted in additions. Whichever is chosen, results have the same bits: the order of
reductions does not depend on it.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from functrans.compiler.axes import FEWEST_LANES, loop_axes
from functrans.compiler.elements import general_reads, is_dear, pointwise_cost
from functrans.core.affine import as_affine
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction

_LANE_BYTES = 64
"""Bytes of a vector register, or of the two that stand for one."""
_SHUFFLE = 2
"""Cost of a shuffle of two registers."""
_FUNCTION = 3
"""How much more a function such as ``exp`` takes than its cost says, beside shuffles."""

Shape = tuple[int, ...]


def rows_in_lanes(jaxpr: Jaxpr, kinds: Sequence[str]) -> frozenset[Shape]:
    """Shapes with short rows that lanes shall run along.

    That is where it is less work, and where nothing looks across the rows: no reduction of them, no
    column that is taken out or put in.

    Args:
      jaxpr: the program.
      kinds: per equation ``"inline"``, ``"reduce"``, ``"call"`` or ``"view"``.
    """
    work: Counter[Shape] = Counter()
    crossed: set[Shape] = set()
    joined: set[Atom] = set()
    given: set[Atom] = {*jaxpr.invars, *jaxpr.constvars}
    in_memory: set[Atom] = {*jaxpr.outvars, *given}
    rows: dict[Var, None] = {}
    for kind, eqn in zip(kinds, jaxpr.eqns, strict=True):
        arrays = [x for x in (*eqn.inputs, *eqn.outputs) if isinstance(x, Var) and has_rows(x)]
        rows.update(dict.fromkeys(arrays))
        if kind in ("call", "view"):
            given.update(eqn.outputs)
            in_memory.update(arrays)
            continue
        lower = eqn.primitive.lower
        if isinstance(lower, Reduction):
            summed: Shape = eqn.inputs[0].aval.shape
            if eqn.params["axes"][0] == len(summed) - 1:
                crossed.add(summed)
            if kind == "reduce":
                in_memory.update(eqn.outputs)
            continue
        if not joined.isdisjoint(eqn.inputs):  # what it is computed from may be computed with it
            joined.update(eqn.outputs)
        if arrays and isinstance(lower, IndexMap):
            apart, together = _crossed(eqn, lower, given)
            crossed.update(apart)
            joined.update(together)
        elif arrays and isinstance(lower, Pointwise):
            cost = pointwise_cost(eqn) * (_FUNCTION if is_dear(eqn) else 1)
            work[eqn.outputs[0].aval.shape] += cost
    crossed.update(var.aval.shape for var in joined.intersection(rows))
    accesses: Counter[Shape] = Counter()
    lanes: dict[Shape, int] = {}
    for var in rows:
        shape: Shape = var.aval.shape
        itemsize = min(var.aval.dtype.itemsize, 8)
        accesses[shape] += var in in_memory
        lanes[shape] = min(lanes.get(shape, _LANE_BYTES), _LANE_BYTES // itemsize)
    return frozenset(
        shape
        for shape, count in accesses.items()
        if shape not in crossed and _is_less_along(shape[-1], lanes[shape], work[shape], count)
    )


def has_rows(var: Var) -> bool:
    """Whether an array has loops, and an unrolled last axis that is long enough for lanes."""
    if type(var.aval) is not ShapedArray:
        return False
    shape = var.aval.shape
    if not shape or shape[-1] < FEWEST_LANES:
        return False
    loops = loop_axes(shape)
    return bool(loops) and loops[-1] < len(shape) - 1


def _is_less_along(row: int, lanes: int, work: int, accesses: int) -> bool:
    """Whether lanes along rows are less work than lanes across, for as many rows as lanes.

    A register that is not full costs half as much as a full one.
    """
    registers = row // lanes + (row % lanes).bit_count() / 2
    along = lanes * registers * (work + accesses)
    across = row * (work + _SHUFFLE * min(row, lanes) * accesses)
    return along < across


def _crossed(
    eqn: Equation, lower: IndexMap, given: AbstractSet[Atom]
) -> tuple[set[Shape], set[Var]]:
    """What an index map does across rows.

    Args:
      eqn: the equation.
      lower: its map.
      given: what is in memory before: a column of that is read from there.

    Returns:
      Shapes whose rows it takes apart, and results whose rows it puts together or turns round.
    """
    apart: set[Shape] = set()
    together: set[Var] = set()
    for reads, out in zip(general_reads(eqn, lower), eqn.outputs, strict=True):
        last = len(out.aval.shape) - 1
        for read in reads or ():
            operand = eqn.inputs[read.operand]
            index = [as_affine(i) for i in read.index]
            shape: Shape = operand.aval.shape
            axis = max((i for i, extent in enumerate(shape) if extent != 1), default=-1)
            others = [place for i, place in enumerate(index) if i != axis]
            others += [as_affine(place) for place, _ in read.conditions]
            if any(place.coefficient(last) for place in others):
                together.add(out)
            if axis >= 0 and operand not in given and index[axis].is_constant:
                apart.add(shape)
    return apart, together
