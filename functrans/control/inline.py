"""Putting the programs of call equations in the place of the equations.

Here: ``inline_calls``. A jitted function called inside another one needs no boundary: without it,
common expressions are found across the call, and what the caller does not use is dropped.

Layer: ``control``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from functrans.ir.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.ir.primitive import Primitive


def inline_calls(jaxpr: Jaxpr, primitive: Primitive) -> Jaxpr:
    """The program without equations of a primitive that does nothing but call its program.

    Programs in other equations stay as they are, and so does what carries annotations.

    Args:
      jaxpr: the program.
      primitive: the primitive, whose parameter ``jaxpr`` is the program.
    """
    if jaxpr.annotations or not any(eqn.primitive is primitive for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    env: dict[Var, Atom] = {}
    consts: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    _emit(jaxpr, primitive, env, eqns, consts)
    return replace(
        jaxpr,
        constvars=tuple(consts),
        consts=tuple(consts.values()),
        eqns=tuple(eqns),
        outvars=tuple([_renamed(atom, env) for atom in jaxpr.outvars]),
        cache={},
    )


def _renamed(atom: Atom, env: dict[Var, Atom]) -> Atom:
    return env.get(atom, atom) if isinstance(atom, Var) else atom


def _emit(
    jaxpr: Jaxpr,
    primitive: Primitive,
    env: dict[Var, Atom],
    eqns: list[Equation],
    consts: dict[Var, Any],
) -> None:
    """Append the equations of a program and the constants of the programs that it calls.

    ``env`` tells what its variables are called outside; constants keep their variables.
    """
    for eqn in jaxpr.eqns:
        inputs = tuple([_renamed(atom, env) for atom in eqn.inputs])
        if eqn.primitive is not primitive or eqn.params["jaxpr"].annotations:
            eqns.append(eqn if inputs == eqn.inputs else replace(eqn, inputs=inputs))
            continue
        inner: Jaxpr = eqn.params["jaxpr"]
        own: dict[Var, Atom] = dict(zip(inner.invars, inputs, strict=True))
        fresh: list[Equation] = []
        consts.update(zip(inner.constvars, inner.consts, strict=True))
        _emit(inner, primitive, own, fresh, consts)
        renamed: dict[Var, Var] = {}
        for inner_eqn in fresh:
            outputs = tuple([Var(var.aval) for var in inner_eqn.outputs])
            own.update(zip(inner_eqn.outputs, outputs, strict=True))
            renamed.update(zip(inner_eqn.outputs, outputs, strict=True))
            eqns.append(
                replace(
                    inner_eqn,
                    inputs=tuple([_renamed(atom, renamed) for atom in inner_eqn.inputs]),  # type: ignore[arg-type]  # atoms to atoms
                    outputs=outputs,
                )
            )
        outs = [_renamed(atom, own) for atom in inner.outvars]
        env.update(zip(eqn.outputs, outs, strict=True))
