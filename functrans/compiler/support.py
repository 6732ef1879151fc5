"""What has a native form and what has not.

Here: ``obstacle``, why an equation cannot be compiled, and ``partition``, a prepared program as
native parts with NumPy calls between them. Not here: the native parts (``compiler.programs``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from functrans.compiler.prepare import prepare
from functrans.ir.avals import ShapedArray
from functrans.ir.jaxpr import Equation, Jaxpr, Var, subjaxprs
from functrans.ir.lowering import IndexMap, Pointwise, Reduction, Routine, Structured


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
    for atom in (*eqn.inputs, *eqn.outputs):
        reason = _aval_obstacle(atom.aval)
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
    if isinstance(lower, (Pointwise, IndexMap, Reduction)):
        return None
    return f"{name} has no native form"


def _aval_obstacle(aval: Any) -> str | None:
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
    if kind == "scan" and eqn.params["length"] is None:
        return "scan: its length is known when it runs only"
    for sub in subjaxprs(eqn.params):
        reason = program_obstacle(sub)
        if reason is not None:
            return f"{kind} of {reason}"
    return None


def program_obstacle(jaxpr: Jaxpr) -> str | None:
    """Why an inner program has no native form; ``None`` if it has one."""
    if "obstacle" not in jaxpr.cache:
        prepared = prepare(jaxpr)
        reasons = (obstacle(eqn) for eqn in prepared.eqns)
        jaxpr.cache["obstacle"] = next((r for r in reasons if r is not None), None)
    found: str | None = jaxpr.cache["obstacle"]
    return found


def partition(jaxpr: Jaxpr) -> list[Part]:
    """A prepared program as native parts and NumPy calls, as few as its order allows."""
    reasons = [obstacle(eqn) for eqn in jaxpr.eqns]
    if not any(reasons):
        return [NativePart(jaxpr, (*jaxpr.constvars, *jaxpr.invars))]
    known: set[Var] = {*jaxpr.constvars, *jaxpr.invars}
    waiting = list(zip(jaxpr.eqns, reasons, strict=True))
    groups: list[list[tuple[Equation, str | None]]] = []
    native = True
    while waiting:
        taken: list[tuple[Equation, str | None]] = []
        left: list[tuple[Equation, str | None]] = []
        effects_wait = False
        for eqn, reason in waiting:
            is_ready = all(not isinstance(x, Var) or x in known for x in eqn.inputs)
            if eqn.effects:
                is_ready = is_ready and not effects_wait
            if is_ready and (reason is None) == native:
                taken.append((eqn, reason))
                known.update(eqn.outputs)
            else:
                left.append((eqn, reason))
                effects_wait = effects_wait or bool(eqn.effects)
        if taken:
            groups.append(taken)
        waiting = left
        native = not native
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


