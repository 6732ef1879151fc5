"""Which results of a program may take over the memory of arguments that the caller gives away.

Here: ``find_donations``, from a planned program and the positions of such arguments to pairs of a
result and an argument. Not here: how an array changes hands (``compiler.entry``), which arguments
are given away (``jitted.jit``).

A program reads arguments at any index while it writes results, so memory may be shared only where
every read of an element comes before the write of that element:

- no item of the schedule after the one that makes the result reads the argument, and
- that item does not read it at all, or it is a loop nest in which every round reads those elements
  only that the same round writes (a round writes after it has read, and no two rounds write the
  same element), or straight-line code that has read them all, or a routine whose result takes over
  an operand's memory by its contract (``Routine.in_place``), or a loop that carries the
  argument in one place.

The same is asked of variables that are in the result's memory before it.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from functrans.compiler import access
from functrans.compiler.bodies import BodyWriter
from functrans.compiler.functions import ProgramFunction
from functrans.compiler.nests import NestWriter, affine_index, broadcast_index
from functrans.compiler.places import is_small
from functrans.compiler.prepare import prepare
from functrans.compiler.schedule import Call, Item, Nest, Root, Schedule, View, routine_of
from functrans.compiler.storage import Stored
from functrans.core.affine import Affine, constant
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import IndexMap, Pointwise, Structured
from functrans.emitter.builder import Module
from functrans.emitter.types import POINTER, Value
from functrans.records import dataclass

Index = tuple[Affine, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A program with its schedule, before anything is written.

    Attributes:
      body: who would write it.
      schedule: its items.
      writers: one per item: who would write a loop nest, ``None`` for other items.
      heirs: variables that are in the memory of one computed later.
      parts: variables that are computed in a part of a result.
    """

    body: BodyWriter
    schedule: Schedule
    writers: tuple[NestWriter | None, ...]
    heirs: Mapping[Var, Var]
    parts: Mapping[Var, tuple[Var, int]]


@contextmanager
def planned(jaxpr: Jaxpr) -> Iterator[Planned]:
    """The plan of a prepared program, as ``write_program`` follows it, for a ``with`` block.

    Args:
      jaxpr: a program without obstacles (``compiler.support``).
    """
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    writer = ProgramFunction(Module(), len(inputs), len(jaxpr.outvars))
    env = {
        var: Stored(var.aval.shape, var.aval.dtype, Value(f"%a{i}", POINTER))
        for i, var in enumerate(inputs)
    }
    places = {atom: Value("%out", POINTER) for atom in jaxpr.outvars if isinstance(atom, Var)}
    body = BodyWriter(writer, jaxpr, env, places)
    try:
        writers = body.plan()
        assert body.schedule is not None
        heirs, parts = dict(body.heirs(writers)), body.parts_of_results()
        yield Planned(body, body.schedule, tuple(writers), heirs, parts)
    finally:
        writer.release()


@dataclass(frozen=True, slots=True)
class Donations:
    """What becomes of arguments that are given away.

    Attributes:
      taken: argument by result: positions among the program's inputs (constants first) and results.
      unused: why the others are not used, by position among the inputs.
    """

    taken: Mapping[int, int]
    unused: Mapping[int, str]


NO_DONATIONS = Donations({}, {})


def find_donations(jaxpr: Jaxpr, given: Sequence[int]) -> Donations:
    """Results that may be written over arguments.

    Args:
      jaxpr: a prepared program that is compiled as a whole.
      given: positions of the arguments, among its constants and arguments.
    """
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    taken: dict[int, int] = {}
    unused: dict[int, str] = {}
    with planned(jaxpr) as plan:
        for position in given:
            number, reason = _place_for(plan, jaxpr, inputs[position], taken)
            if number is None:
                unused[position] = reason
            else:
                taken[number] = position
    return Donations(taken, unused)


def _place_for(
    plan: Planned, jaxpr: Jaxpr, given: Var, taken: Mapping[int, int]
) -> tuple[int | None, str]:
    """The result that may be written over an argument, or why there is none."""
    reason = "no result is left with its shape and dtype"
    for number, out in enumerate(jaxpr.outvars):
        if out.aval == given.aval and isinstance(out, Var) and number not in taken:
            if _may_replace(plan, out, given):
                return number, ""
            reason = "it is still read when the result is written"
    return None, reason


def _may_replace(plan: Planned, out: Var, given: Var) -> bool:
    """Whether a result may be written to an argument's memory."""
    shown = _views_of(plan.schedule, given)
    for part, (whole, offset) in plan.parts.items():
        if whole is not out:
            continue
        for var in (part, *_tenants(plan.heirs, part)):
            if not offset:  # its elements are where those of the argument are
                if not _may_write(plan, var, shown):
                    return False
            elif any(
                shown.intersection(reads) for reads in plan.schedule.reads[_made(plan, var) :]
            ):
                return False
    return all(_may_write(plan, var, shown) for var in (out, *_tenants(plan.heirs, out)))


def _made(plan: Planned, var: Var) -> int:
    """The number of the item that makes a variable."""
    return next(i for i, item in enumerate(plan.schedule.items) if var in _results(item))


def _tenants(heirs: Mapping[Var, Var], out: Var) -> Iterator[Var]:
    """Variables that are in a result's memory before it."""
    before = {heir: var for var, heir in heirs.items()}  # a result is the heir of one
    while out in before:
        out = before[out]
        yield out


def _may_write(plan: Planned, var: Var, shown: set[Var]) -> bool:
    """Whether a variable may be written to memory that others show."""
    items = plan.schedule.items
    made = _made(plan, var)
    if any(shown.intersection(reads) for reads in plan.schedule.reads[made + 1 :]):
        return False
    if not shown.intersection(plan.schedule.reads[made]):
        return True
    item, writer = items[made], plan.writers[made]
    if isinstance(item, Nest):
        assert writer is not None
        return _reads_what_it_writes(plan, writer, var, shown)
    if not isinstance(item, Call):
        return False
    return _is_in_place(item.eqn, var, shown) or _is_carried(plan, item.eqn, var, shown)


def _results(item: Item) -> Sequence[Var]:
    """Variables that an item makes."""
    return [root.var for root in item.roots] if isinstance(item, Nest) else item.eqn.outputs


def _views_of(plan: Schedule, var: Var) -> set[Var]:
    """The variables whose elements are in a variable's memory."""
    shown = {var}
    for item in plan.items:
        if isinstance(item, View) and item.eqn.inputs[0] in shown:
            shown.add(item.eqn.outputs[0])
    return shown


def _is_in_place(eqn: Equation, out: Var, shown: set[Var]) -> bool:
    """Whether a routine writes its result over the operand that is given away, and reads no other.

    It copies the operand first, which does nothing where source and target are the same.
    """
    routine = routine_of(eqn)
    if routine is None or routine.in_place is None or eqn.outputs[0] is not out:
        return False
    return all(atom not in shown for k, atom in enumerate(eqn.inputs) if k != routine.in_place)


def _is_carried(plan: Planned, eqn: Equation, out: Var, shown: set[Var]) -> bool:
    """Whether a loop carries the argument to the result in one place, and only that reads it."""
    lower = eqn.primitive.lower
    if not isinstance(lower, Structured) or lower.kind != "scan":
        return False
    start, n_carry = eqn.params["n_consts"], eqn.params["n_carry"]
    number = eqn.outputs.index(out)
    reads = [k for k, atom in enumerate(eqn.inputs) if atom in shown]
    if number >= n_carry or reads != [start + number]:
        return False
    jaxpr = prepare(eqn.params["jaxpr"])
    block = BodyWriter(plan.body.program, jaxpr, {}, {})
    writers = block.plan_ahead()
    before, after = jaxpr.invars[start + number], jaxpr.outvars[number]
    assert isinstance(after, Var)
    return not is_small(out.aval) and block.may_overwrite(writers, before, after)


# loop nests --------------------------------------------------------------------------------------


def _reads_what_it_writes(plan: Planned, writer: NestWriter, out: Var, shown: set[Var]) -> bool:
    """Whether a nest may write a result over what it reads."""
    nest = writer.nest
    position = next(i for i, root in enumerate(nest.roots) if root.var is out)
    root = nest.roots[position]
    items = plan.schedule.items
    known = {var for item in items[: items.index(nest)] for var in _results(item)}
    if not nest.extents:
        # Each root is stored before the next one is computed; what was read stays in registers.
        before = set(_elements_read(writer, nest.roots[: position + 1], shown, known))
        return before.issuperset(_elements_read(writer, nest.roots[position + 1 :], shown, known))
    if root.reduced is not None:
        return False
    target = Stored(out.aval.shape, out.aval.dtype)
    written = {access.flat_index(target, index) for index in writer.root_indices(root)}
    return written.issuperset(_elements_read(writer, nest.roots, shown, known))


def _elements_read(
    writer: NestWriter, roots: Sequence[Root], shown: set[Var], known: set[Var]
) -> Iterator[Affine]:
    """Places, in C order, at which the roots of a nest read memory that some variables show.

    Args:
      writer: who writes the nest.
      roots: some of its roots.
      shown: the variables whose memory it is.
      known: variables that were computed before the nest.
    """
    pending: list[tuple[Atom, Index]] = []
    for root in roots:
        atom: Atom = root.var if root.reduced is None else root.eqn.inputs[0]
        pending.extend((atom, index) for index in writer.root_indices(root))
    seen: set[tuple[Atom, Index]] = set()
    while pending:
        atom, index = pending.pop()
        if isinstance(atom, Literal) or (atom, index) in seen:
            continue
        seen.add((atom, index))
        if atom in shown:
            yield access.flat_index(Stored(atom.aval.shape, atom.aval.dtype), index)
        elif atom not in writer.body.env and atom not in known:
            pending.extend(_operands(writer, atom, index))


def _operands(writer: NestWriter, var: Var, index: Index) -> Iterator[tuple[Atom, Index]]:
    """What an element of a variable is computed from, wherever conditions hold."""
    eqn, output = writer.body.maker(var)
    lower = eqn.primitive.lower
    if isinstance(lower, Pointwise):
        for x in eqn.inputs:
            yield x, broadcast_index(index, var.aval.shape, x.aval.shape)
    elif isinstance(lower, IndexMap):
        for read in writer.reads(eqn, output, index):
            yield eqn.inputs[read.operand], affine_index(read.index)
    else:
        axis = eqn.params["axes"][0]
        for k in range(eqn.inputs[0].aval.shape[axis]):
            yield eqn.inputs[0], (*index[:axis], constant(k), *index[axis:])
