"""Putting the programs of call equations in the place of the equations.

Here: ``inline_calls``. A jitted function called inside another one needs no boundary: without it,
common expressions are found across the call, and what the caller does not use is dropped.

Layer: ``control``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from functrans.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.ir.primitive import Primitive


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
    consts: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    inlined = _Inlined(primitive, consts)
    env: dict[Var, Atom] = {}
    inlined.emit(jaxpr, env)
    return replace(
        jaxpr,
        constvars=tuple(consts),
        consts=tuple(consts.values()),
        eqns=tuple(inlined.eqns),
        outvars=tuple([_renamed(atom, env) for atom in jaxpr.outvars]),
        annotations=inlined.notes,
        cache={},
    )


def _renamed(atom: Atom, env: dict[Var, Atom]) -> Atom:
    return env.get(atom, atom) if isinstance(atom, Var) else atom


class _Inlined:
    """A program that is put together from those that it calls.

    Attributes:
      primitive: of the calls.
      consts: constants of all programs.
      eqns: equations.
      notes: annotations.
    """

    def __init__(self, primitive: Primitive, consts: dict[Var, Any]) -> None:
        self.primitive = primitive
        self.consts = consts
        self.eqns: list[Equation] = []
        self.notes: dict[Any, tuple[Any, ...]] = {}

    def emit(self, jaxpr: Jaxpr, env: dict[Var, Atom], is_inner: bool = False) -> None:
        """Append the equations of a program and the constants of the programs that it calls.

        ``env`` tells what its variables are called outside. An inner program may be called twice,
        so that its variables get new names.
        """
        renewed: dict[Any, Equation] = {}
        for eqn in jaxpr.eqns:
            inputs = tuple([_renamed(atom, env) for atom in eqn.inputs])
            if eqn.primitive is self.primitive and not _is_annotated(eqn, jaxpr):
                inner: Jaxpr = eqn.params["jaxpr"]
                own: dict[Var, Atom] = dict(zip(inner.invars, inputs, strict=True))
                for var, const in zip(inner.constvars, inner.consts, strict=True):
                    own[var] = moved = Var(var.aval)
                    self.consts[moved] = const
                self.emit(inner, own, is_inner=True)
                outs = [_renamed(atom, own) for atom in inner.outvars]
                env.update(zip(eqn.outputs, outs, strict=True))
                continue
            made = eqn
            if is_inner:
                outputs = tuple([Var(var.aval) for var in eqn.outputs])
                env.update(zip(eqn.outputs, outputs, strict=True))
                made = replace(eqn, inputs=inputs, outputs=outputs)
            elif inputs != eqn.inputs:
                made = replace(eqn, inputs=inputs)
            renewed[eqn] = made
            self.eqns.append(made)
        for key, notes in jaxpr.annotations.items():
            place = _renamed(key, env) if isinstance(key, Var) else renewed[key]
            if not isinstance(place, Literal):
                self.notes[place] = (*self.notes.get(place, ()), *notes)


def _is_annotated(eqn: Equation, jaxpr: Jaxpr) -> bool:
    notes = jaxpr.annotations
    return bool(notes) and (eqn in notes or any(var in notes for var in eqn.outputs))
