"""The reuse pass: which equations may write into the memory of an operand.

Here: ``plan_reuse``, which ``passes.executables`` follows. Not here: the writing.

An array may be written to when it was made by the program itself (or belongs to it, as a loop's
carried value does after one copy), nothing else shares its memory, and nobody reads it afterwards.
Views are followed: what is not known to have memory of its own is taken for a view of all its
operands, and what goes to another program or to a callback is not touched again.

Small parts that are read from an array which is written to later are copied, so that they do not
keep it from being written to: an array of n is filled, and its derivative pulled back, in n steps.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.records import dataclass

_PART = 8
"""A part that is this many times smaller than its array is copied rather than kept as a view."""
_SMALLEST_BYTES = 1 << 14
"""Elementwise results from this size on take over an operand's memory; smaller ones are cheap."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where an executable writes.

    Attributes:
      updates: by number of the equation, the operand whose memory the result takes over.
      copies: numbers of the equations whose result is a view that must be copied.
      owned: arguments that belong to the program: their memory is written to.
    """

    updates: Mapping[int, int]
    copies: frozenset[int]
    owned: frozenset[Var]


def ufunc_of(primitive: Primitive) -> np.ufunc | None:
    """The ufunc of an elementwise primitive, which can write into a given array."""
    family = primitive.elementwise
    if family is None:
        return None
    if family.operator:
        return family.ufunc
    return family.function if isinstance(family.function, np.ufunc) else None


def _size_bytes(var: Var) -> int:
    aval = var.aval
    return aval.size * aval.dtype.itemsize if type(aval) is ShapedArray and aval.shape else 0


class _Memory:
    """What is known of the memory of variables while a program is walked through.

    Attributes:
      roots: per variable, the variables whose memory it may share, itself included.
      sharing: per root, the variables that share its memory.
      own: roots whose memory belongs to the program.
    """

    def __init__(self, owned: Collection[Var], foreign: Collection[Var]) -> None:
        self.roots: dict[Var, frozenset[Var]] = {}
        self.sharing: dict[Var, set[Var]] = {}
        self.own: set[Var] = set(owned)
        for var in (*owned, *foreign):
            self.make(var)

    def make(self, var: Var) -> None:
        """A variable with memory that no other one shares."""
        self.roots[var] = frozenset((var,))
        self.sharing[var] = {var}

    def share(self, var: Var, others: Collection[Var]) -> None:
        """A variable that may be a view of others."""
        roots = frozenset().union(*(self.roots[other] for other in others)) if others else None
        if roots is None:
            self.make(var)
            return
        self.roots[var] = roots
        for root in roots:
            self.sharing[root].add(var)

    def take_over(self, var: Var, old: Var) -> None:
        """A variable that has the memory of one that is no longer used."""
        self.make(var)
        self.own.add(var)
        self.own.discard(old)

    def let_go(self, variables: Collection[Var]) -> None:
        """Variables that something else may hold from now on."""
        for var in variables:
            self.own -= self.roots[var]

    def is_exclusive(self, var: Var, dead: Collection[Var]) -> bool:
        """Whether a variable's memory may be written to, once ``dead`` are not used any more."""
        return (
            self.roots[var] == {var}
            and var in self.own
            and all(other is var or other in dead for other in self.sharing[var])
        )


def plan_reuse(jaxpr: Jaxpr, dying: list[list[Var]], carry: tuple[Var, ...] = ()) -> Plan | None:
    """Find the equations that may write into the memory of an operand.

    Args:
      jaxpr: the program.
      dying: per equation, the variables that nothing reads afterwards.
      carry: arguments whose next values are the first results: the body of a loop.

    Returns:
      The plan; ``None`` when there is nothing to reuse.
    """
    owned = frozenset(var for var in carry if type(var.aval) is ShapedArray and var.aval.shape)
    while True:
        plan, lost = _walk(jaxpr, dying, carry, owned)
        if not lost:
            return plan if plan.updates else None
        owned -= lost


def _walk(
    jaxpr: Jaxpr, dying: list[list[Var]], carry: tuple[Var, ...], owned: frozenset[Var]
) -> tuple[Plan, frozenset[Var]]:
    """A plan, and the arguments that turned out not to belong to the program."""
    foreign = [var for var in (*jaxpr.constvars, *jaxpr.invars) if var not in owned]
    memory = _Memory(owned, foreign)
    updates: dict[int, int] = {}
    copies: set[int] = set()
    written = any(eqn.primitive.in_place is not None for eqn in jaxpr.eqns)
    dead: set[Var] = set()
    for number, eqn in enumerate(jaxpr.eqns):
        dead.update(dying[number])
        position = _writable_operand(eqn, memory, dead)
        operands = [atom for atom in eqn.inputs if isinstance(atom, Var)]
        if position is not None:
            (out,) = eqn.outputs
            old = eqn.inputs[position]
            assert isinstance(old, Var)
            updates[number] = position
            memory.take_over(out, old)
        elif eqn.primitive.memory == "own":
            for out in eqn.outputs:
                memory.make(out)
                memory.own.add(out)
        elif written and _is_small_part(eqn):
            copies.add(number)
            for out in eqn.outputs:
                memory.make(out)
                memory.own.add(out)
        else:
            if eqn.primitive.memory == "held":
                memory.let_go(operands)
            for out in eqn.outputs:
                memory.share(out, operands)
    lost = set()
    for i, var in enumerate(carry):
        if var not in owned:
            continue
        result = jaxpr.outvars[i]
        others = [atom for j, atom in enumerate(jaxpr.outvars) if j != i and j < len(carry)]
        is_own = (
            isinstance(result, Var)
            and memory.roots[result] == {result}
            and result in memory.own
            and not any(
                isinstance(other, Var) and memory.roots[other] & memory.roots[result]
                for other in others
            )
        )
        if not is_own:
            lost.add(var)
    written_to = {jaxpr.eqns[number].inputs[position] for number, position in updates.items()}
    touched = frozenset(var for var in owned if var in written_to)
    return Plan(updates, frozenset(copies), touched), frozenset(lost)


def _is_small_part(eqn: Equation) -> bool:
    """Whether an equation reads a part that is much smaller than its array."""
    if eqn.primitive.memory != "shares" or len(eqn.outputs) != 1 or not eqn.inputs:
        return False
    part, whole = eqn.outputs[0].aval, eqn.inputs[0].aval
    if type(part) is not ShapedArray or type(whole) is not ShapedArray or not whole.shape:
        return False
    return not part.shape or _PART * part.size <= whole.size


def _writable_operand(eqn: Equation, memory: _Memory, dead: set[Var]) -> int | None:
    """Position of the operand whose memory the result may take over."""
    primitive = eqn.primitive
    if primitive.in_place is not None:
        candidates: tuple[int, ...] = (0,)
    elif primitive.elementwise is not None and not eqn.params:
        if _size_bytes(eqn.outputs[0]) < _SMALLEST_BYTES or ufunc_of(primitive) is None:
            return None
        candidates = tuple(range(len(eqn.inputs)))
    else:
        return None
    (out,) = eqn.outputs
    for i in candidates:
        x = eqn.inputs[i]
        if (
            isinstance(x, Var)
            and x.aval == out.aval
            and x.aval.shape
            and x in dead
            and memory.is_exclusive(x, dead)
            and not _reads_again(eqn, i, memory)
        ):
            return i
    return None


def _reads_again(eqn: Equation, position: int, memory: _Memory) -> bool:
    """Whether another operand shares the memory that would be written to.

    The same array twice is no harm to an elementwise operation, which reads an element before it
    writes it.
    """
    x = eqn.inputs[position]
    for i, other in enumerate(eqn.inputs):
        if i == position or not isinstance(other, Var):
            continue
        if other is x and eqn.primitive.elementwise is not None:
            continue
        if memory.roots[other] & memory.roots[x]:  # type: ignore[index]  # a Var
            return True
    return False
