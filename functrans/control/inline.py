"""Putting the programs of call equations in the place of the equations.

Here: ``inline_calls``. A jitted function called inside another one needs no boundary: without it,
common expressions are found across the call, and what the caller does not use is dropped.

Layer: ``control``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive


def inline_calls(jaxpr: Jaxpr, primitive: Primitive) -> Jaxpr:
    """The program without equations of a primitive that does nothing but call its program.

    Programs in other equations stay as they are, and so do calls that carry annotations; those in
    a program that is called go along.

    Args:
      jaxpr: the program.
      primitive: the primitive, whose parameter ``jaxpr`` is the program.
    """
    if not any(eqn.primitive is primitive for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    env: dict[Var, Atom] = {}
    consts: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    notes: dict[Any, tuple[Any, ...]] = {}
    _emit(jaxpr, primitive, env, eqns, consts, notes)
    return replace(
        jaxpr,
        constvars=tuple(consts),
        consts=tuple(consts.values()),
        eqns=tuple(eqns),
        outvars=tuple([_renamed(atom, env) for atom in jaxpr.outvars]),
        annotations=notes,
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
    notes: dict[Any, tuple[Any, ...]],
    is_inner: bool = False,
) -> None:
    """Append what a program and those that it calls have: equations, constants, annotations.

    ``env`` tells what its variables are called outside. An inner program may be called twice, so
    that its variables get new names.
    """
    own_notes = jaxpr.annotations
    renewed: dict[Any, Equation] = {}
    for eqn in jaxpr.eqns:
        inputs = tuple([_renamed(atom, env) for atom in eqn.inputs])
        is_annotated = own_notes and any(place in own_notes for place in (eqn, *eqn.outputs))
        if eqn.primitive is primitive and not is_annotated:
            inner: Jaxpr = eqn.params["jaxpr"]
            own: dict[Var, Atom] = dict(zip(inner.invars, inputs, strict=True))
            for var, const in zip(inner.constvars, inner.consts, strict=True):
                own[var] = moved = Var(var.aval)
                consts[moved] = const
            _emit(inner, primitive, own, eqns, consts, notes, is_inner=True)
            outs = [_renamed(atom, own) for atom in inner.outvars]
            env.update(zip(eqn.outputs, outs, strict=True))
            continue
        made = eqn if inputs == eqn.inputs else replace(eqn, inputs=inputs)
        if is_inner:
            made = replace(made, outputs=tuple([Var(var.aval) for var in eqn.outputs]))
            env.update(zip(eqn.outputs, made.outputs, strict=True))
        renewed[eqn] = made
        eqns.append(made)
    for key, values in own_notes.items():
        place = _renamed(key, env) if isinstance(key, Var) else renewed[key]
        if not isinstance(place, Literal):
            notes[place] = (*notes.get(place, ()), *values)
