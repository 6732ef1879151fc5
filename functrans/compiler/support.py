"""What has a native form and what has not.

Here: ``obstacle``, why an equation cannot be compiled, and ``partition``, a prepared program as
native parts with NumPy calls between them. Not here: the native parts (``compiler.programs``).

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from functrans.compiler.elements import general_reads
from functrans.compiler.prepare import prepare, programs_of
from functrans.compiler.schedule import FEW_PARTS
from functrans.core.affine import as_affine
from functrans.core.analyses import analysis
from functrans.core.avals import ShapedArray, Tape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction, Routine, Structured
from functrans.primitives.tapes import entry_aval
from functrans.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class HostCall:
    """An equation that is evaluated by NumPy, between native parts.

    Attributes:
      eqn: the equation.
      reason: why it is not compiled.
    """

    eqn: Equation
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class NativePart:
    """Equations that are compiled together.

    Attributes:
      jaxpr: them as a program of the variables that they read and give.
      inputs: variables of the whole program that it reads.
    """

    jaxpr: Jaxpr
    inputs: tuple[Var, ...]


Part = HostCall | NativePart


def obstacle(eqn: Equation) -> str | None:
    """Why an equation of a prepared program has no native form; ``None`` if it has one."""
    name = eqn.primitive.name
    arrays, tapes = _operands_and_results(eqn)
    for aval in (*arrays, *tapes):
        reason = _aval_obstacle(aval)
        if reason is not None:
            return f"{name}: {reason}"
    if eqn.effects:
        return f"{name}: has the effect {', '.join(sorted(eqn.effects))}"
    lower = eqn.primitive.lower
    if isinstance(lower, Structured):
        return _structured_obstacle(eqn, lower.kind)
    if isinstance(lower, Routine):
        avals = [atom.aval for atom in eqn.inputs]
        if lower.supports is not None and not lower.supports(*avals, **eqn.params):
            return f"{name}: not for {', '.join(map(str, avals))}"
        return None
    if isinstance(lower, IndexMap):
        return None if lower.routine is not None or lower.is_view else _map_obstacle(eqn, lower)
    if isinstance(lower, (Pointwise, Reduction)):
        return None
    return f"{name} has no native form"


def _map_obstacle(eqn: Equation, lower: IndexMap) -> str | None:
    """Why loops cannot read where a map without a routine says."""
    for reads in general_reads(eqn, lower):
        if reads is None:
            return f"{eqn.primitive.name}: not affine, and without a routine"
        cuts: dict[int, set[int]] = {}
        for read in reads:
            for position, extent in read.conditions:
                place = as_affine(position)
                if len(place.terms) > 1:
                    return f"{eqn.primitive.name}: conditions in two indices, without a routine"
                for loop, _ in place.terms:
                    cuts.setdefault(loop, {0}).update((place.constant, place.constant - extent))
        if math.prod(map(len, cuts.values())) > FEW_PARTS:
            return f"{eqn.primitive.name}: too many parts, without a routine"
    return None


def _operands_and_results(eqn: Equation) -> tuple[list[Any], list[Any]]:
    """Avals of an equation, and of the arrays in tapes where these have a native form."""
    arrays: list[Any] = []
    entries: list[Any] = []
    lower = eqn.primitive.lower
    kind = lower.kind if isinstance(lower, Structured) else ""
    # what loops carry is no tape, but what they read and what they give each round may be one
    n_before = n_carry = 0
    if kind == "scan":
        n_before, n_carry = (
            (eqn.params["length"] is None) + eqn.params["n_consts"],
            eqn.params["n_carry"],
        )
    elif kind == "while":
        n_before = eqn.params["n_cond_consts"] + eqn.params["n_body_consts"]
        n_carry = len(eqn.inputs) - n_before
    for first, atoms in ((n_before, eqn.inputs), (0, eqn.outputs)):
        for i, atom in enumerate(atoms):
            is_carried = first <= i < first + n_carry
            if type(atom.aval) is Tape and kind in ("scan", "while", "entries") and not is_carried:
                entries.append(entry_aval(atom.aval))
            else:
                arrays.append(atom.aval)
    return arrays, entries


def _aval_obstacle(aval: ShapedArray) -> str | None:
    if type(aval) is not ShapedArray:
        return f"{aval} is no array"
    dtype = aval.dtype
    if dtype.kind in "biu" or dtype.name == "bfloat16":
        return None
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return None
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return None
    return f"dtype {dtype} is not compiled"


def _structured_obstacle(eqn: Equation, kind: str) -> str | None:
    if kind == "call":
        return f"{eqn.primitive.name}: calls are nested too deep"
    for sub in programs_of(eqn):
        reason = program_obstacle(sub)
        if reason is not None:
            return f"{kind} of {reason}"
    return None


@analysis
def program_obstacle(jaxpr: Jaxpr) -> str | None:
    """Why an inner program has no native form; ``None`` if it has one."""
    prepared = prepare(jaxpr)
    reasons = [*_reasons(prepared), _tape_obstacle(prepared)]
    return next((r for r in reasons if r is not None), None)


def _tape_obstacle(body: Jaxpr) -> str | None:
    """Tapes that a body gives become entries of others, so that each is its own, given once."""
    made = {var for eqn in body.eqns for var in eqn.outputs}
    tapes = [atom for atom in body.outvars if type(atom.aval) is Tape]
    if len(made.intersection(tapes)) < len(tapes):
        return f"{body.name}: it gives a tape of others"
    return None


def _reasons(jaxpr: Jaxpr, seen: Collection[Atom] = ()) -> list[str | None]:
    """Per equation why it is not compiled; a tape that Python sees is not made natively.

    Args:
      jaxpr: the program.
      seen: what goes in or out of the program, or from one native part to another.
    """
    reasons = [obstacle(eqn) for eqn in jaxpr.eqns]
    outside = {atom for atom in seen if type(atom.aval) is Tape}
    while True:
        for eqn, reason in zip(jaxpr.eqns, reasons, strict=True):
            if reason is not None:
                outside.update(x for x in (*eqn.inputs, *eqn.outputs) if type(x.aval) is Tape)
        changed = False
        for number, eqn in enumerate(jaxpr.eqns):
            if reasons[number] is None and any(
                x in outside for x in (*eqn.inputs, *eqn.outputs) if type(x.aval) is Tape
            ):
                reasons[number] = f"{eqn.primitive.name}: a tape of it is used outside"
                changed = True
        if not changed:
            return reasons


def partition(jaxpr: Jaxpr) -> list[Part]:
    """A prepared program as native parts and NumPy calls, as few as its order allows."""
    seen: set[Atom] = {*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars}
    while True:
        reasons = _reasons(jaxpr, seen)
        inputs = (*jaxpr.constvars, *jaxpr.invars)
        if not any(reasons) and not any(type(var.aval) is Tape for var in inputs):
            return [NativePart(jaxpr, inputs)]
        parts = _grouped(jaxpr, reasons)
        found = {
            var
            for part in parts
            if isinstance(part, NativePart)
            for var in part.inputs
            if type(var.aval) is Tape
        }
        if not found:
            return parts
        seen |= found


def _grouped(jaxpr: Jaxpr, reasons: Sequence[str | None]) -> list[Part]:
    """Equations that can be compiled together, and the others one by one, in order.

    Groups have even numbers if they are native, odd ones if not. An equation is in the first group
    of its kind that is not before those of its operands; effects stay in order.
    """
    group_of: dict[Var, int] = {}
    grouped: dict[int, list[tuple[Equation, str | None]]] = {}
    last_effect = 0
    for eqn, reason in zip(jaxpr.eqns, reasons, strict=True):
        first = max([group_of.get(x, 0) for x in eqn.inputs if isinstance(x, Var)], default=0)
        has_effects = bool(eqn.effects)
        if has_effects:
            first = max(first, last_effect)
        own = first + (first % 2 != (reason is not None))
        if has_effects:
            last_effect = own
        group_of.update(dict.fromkeys(eqn.outputs, own))
        grouped.setdefault(own, []).append((eqn, reason))
    groups = [grouped[number] for number in sorted(grouped)]
    needed = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
    parts: list[Part] = []
    for group in reversed(groups):
        if group[0][1] is not None:
            parts.extend(
                HostCall(eqn, reason) for eqn, reason in reversed(group) if reason is not None
            )
            needed.update(x for eqn, _ in group for x in eqn.inputs if isinstance(x, Var))
            continue
        part = _native_part([eqn for eqn, _ in group], needed)
        needed.update(part.inputs)
        parts.append(part)
    parts.reverse()
    return parts


def _native_part(eqns: Sequence[Equation], needed: set[Var]) -> NativePart:
    made = {var for eqn in eqns for var in eqn.outputs}
    inputs: dict[Var, None] = {}
    for eqn in eqns:
        for atom in eqn.inputs:
            if isinstance(atom, Var) and atom not in made:
                inputs[atom] = None
    outs = tuple([var for eqn in eqns for var in eqn.outputs if var in needed])
    jaxpr = Jaxpr((), (), tuple(inputs), tuple(eqns), outs)
    return NativePart(jaxpr, tuple(inputs))
