"""Programs made ready for planning: calls inlined, composite primitives written out.

Here: ``prepare``. After it every equation of a program has a lowering of its own kind, reductions
run over one axis each, and every result is the output of an equation of its own. Not here: order
and memory (``compiler.schedule``).

A reduction over several axes is a reduction over the last of them, then over the one before, and so
on; the order of additions along one axis is ``compiler.reductions``'.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from functrans.compiler.bounds import with_checked_indices
from functrans.compiler.execution import execution_of
from functrans.compiler.gathers import with_gathers_in_front
from functrans.compiler.invariants import with_invariants_outside
from functrans.compiler.merging import with_merged_axes
from functrans.compiler.parts import with_parts_in_place
from functrans.compiler.products import with_products_inline
from functrans.compiler.spectra import with_half_spectra
from functrans.core.analyses import analysis
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.lowering import Expansion, Reduction, Structured
from functrans.core.values import Array
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.dot import dot_general_p
from functrans.primitives.structural import cast, cast_p, copy_p

_SMALL = 64
"""Elements of a constant array up to which machine code may contain it."""

_COMPARED_BYTES = 1 << 16
"""Size of a constant array up to which it is compared with others."""

MAX_EXPANSION_DEPTH = 100
"""Calls in calls; deeper ones are left to the interpreter."""


@analysis
def prepare(jaxpr: Jaxpr) -> Jaxpr:
    """The program as the scheduler wants it.

    Args:
      jaxpr: a simplified program.
    """
    known = execution_of(jaxpr).constants
    jaxpr = with_half_spectra(jaxpr)
    writer = _Writer()
    writer.walk(jaxpr, _equal_constants(known), is_outermost=True, depth=0)
    consts = {**dict(zip(jaxpr.constvars, jaxpr.consts, strict=True)), **writer.consts}
    result = simplify(
        replace(
            jaxpr,
            constvars=tuple(consts),
            consts=tuple(consts.values()),
            eqns=tuple(writer.eqns),
            outvars=tuple([writer.current(atom, writer.top) for atom in jaxpr.outvars]),
            annotations={},
            cache={},
        )
    )
    result = with_products_inline(with_parts_in_place(result))
    result = simplify(with_gathers_in_front(result, known, execution_of(jaxpr).lasting))
    result = with_invariants_outside(_with_single_axes(with_merged_axes(result)), prepare)
    result = with_checked_indices(_with_own_results(result), known)
    execution_of(result).constants = known
    return result


def known_values(jaxpr: Jaxpr) -> Mapping[Var, np.ndarray]:
    """Constants among the arguments that are small enough to be a part of the machine code."""
    known = execution_of(jaxpr).constants
    return {var: value for var, value in known.items() if value.size <= _SMALL}


def _equal_constants(known: Mapping[Var, np.ndarray]) -> dict[Var, Atom]:
    """What stands for constants that equal an earlier one bit by bit, as zeros made twice do."""
    first: dict[Hashable, Var] = {}
    found: dict[Var, Atom] = {}
    for var, value in known.items():
        if value.nbytes > _COMPARED_BYTES:
            continue
        earlier = first.setdefault((var.aval, value.tobytes()), var)
        if earlier is not var:
            found[var] = earlier
    return found


class _Writer:
    """Collects the equations of a program and of the programs that it calls."""

    def __init__(self) -> None:
        self.eqns: list[Equation] = []
        self.consts: dict[Var, Any] = {}
        self.top: dict[Var, Atom] = {}

    @staticmethod
    def current(atom: Atom, env: dict[Var, Atom]) -> Atom:
        return env.get(atom, atom) if isinstance(atom, Var) else atom

    def walk(
        self, jaxpr: Jaxpr, env: dict[Var, Atom], *, is_outermost: bool, depth: int
    ) -> list[Atom]:
        """Append a program's equations; the variables of an inner one get new names."""
        if is_outermost:
            self.top = env
        for eqn in jaxpr.eqns:
            inputs = tuple([self.current(atom, env) for atom in eqn.inputs])
            inner = inner_program(eqn) if depth < MAX_EXPANSION_DEPTH else None
            if inner is not None:
                own: dict[Var, Atom] = dict(zip(inner.invars, inputs, strict=True))
                for var, const in zip(inner.constvars, inner.consts, strict=True):
                    own[var] = moved = Var(var.aval)
                    self.consts[moved] = const
                outs = self.walk(inner, own, is_outermost=False, depth=depth + 1)
                env.update(zip(eqn.outputs, outs, strict=True))
                continue
            outputs = eqn.outputs
            if not is_outermost:
                outputs = tuple([Var(var.aval) for var in outputs])
                env.update(zip(eqn.outputs, outputs, strict=True))
            if eqn.primitive is dot_general_p:
                inputs = self._converted(inputs, outputs[0].aval.dtype)
            self.eqns.append(replace(eqn, inputs=inputs, outputs=outputs))
        return [self.current(atom, env) for atom in jaxpr.outvars]

    def _converted(self, operands: Sequence[Atom], dtype: np.dtype) -> tuple[Atom, ...]:
        """Operands of a product in the dtype of its result, as NumPy multiplies them."""
        found: list[Atom] = []
        for x in operands:
            if x.aval.dtype != dtype:
                out = Var(ShapedArray(x.aval.shape, dtype))
                self.eqns.append(Equation(cast_p, (x,), {"dtype": dtype}, (out,)))
                x = out
            found.append(x)
        return tuple(found)


def inner_program(eqn: Equation) -> Jaxpr | None:
    """The program that an equation stands for: that of a call, or an expansion."""
    lower = eqn.primitive.lower
    if isinstance(lower, Structured) and lower.kind == "call":
        program: Jaxpr = eqn.params["jaxpr"]
        return program
    if not isinstance(lower, Expansion):
        return None
    avals = [atom.aval.strong() for atom in eqn.inputs]
    if lower.supports is not None and not lower.supports(*avals, **eqn.params):
        return None
    dtype = eqn.outputs[0].aval.dtype if eqn.primitive.elementwise is not None else None

    def expanded(*operands: Array) -> list[Any]:
        if dtype is not None and dtype.kind in "fc":  # Python numbers give way to arrays
            operands = tuple([
                cast(x, dtype) if atom.aval.weak else x  # type: ignore[union-attr]  # no tape
                for x, atom in zip(operands, eqn.inputs, strict=True)
            ])  # fmt: skip
        return list(lower.function(*operands, **eqn.params))

    return stage(expanded, avals, eqn.primitive.name)


def entry_program(eqn: Equation) -> Jaxpr:
    """What an equation of entries of tapes does to one of each, prepared."""
    lower = eqn.primitive.lower
    assert isinstance(lower, Structured)
    assert lower.entry is not None
    entry = partial(lower.entry, **eqn.params)
    avals = [atom.aval.element for atom in eqn.inputs]  # type: ignore[union-attr]  # tapes
    name = f"an entry of {eqn.primitive.name}"
    return prepare(stage(lambda *entries: [entry(*entries)], avals, name, name=name))


def programs_of(eqn: Equation) -> list[Jaxpr]:
    """The programs that an equation runs."""
    lower = eqn.primitive.lower
    if isinstance(lower, Structured) and lower.kind == "entries":
        return [entry_program(eqn)]
    return list(subjaxprs(eqn.params))


def _with_single_axes(jaxpr: Jaxpr) -> Jaxpr:
    """The program with reductions over one axis each, the last one first."""
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if not isinstance(eqn.primitive.lower, Reduction):
            eqns.append(eqn)
            continue
        axes: Sequence[int] = sorted(eqn.params["axes"], reverse=True)
        if not axes:
            eqns.append(replace(eqn, primitive=copy_p, params={}))
            continue
        x = eqn.inputs[0]
        out = eqn.outputs[0]
        dtype = out.aval.dtype
        is_half = eqn.primitive.lower.kind in ("sum", "prod") and dtype.itemsize == 2
        is_half = is_half and dtype.kind not in "iu"
        if is_half:  # added up in single precision, as NumPy does, and rounded once
            dtype = np.dtype(np.float32)
            wide = Var(ShapedArray(x.aval.shape, dtype))
            eqns.append(
                replace(
                    eqn, primitive=cast_p, inputs=(x,), params={"dtype": dtype}, outputs=(wide,)
                )
            )
            x = wide
        for axis in axes:
            shape = x.aval.shape
            is_last = axis == axes[-1] and not is_half
            aval = ShapedArray(shape[:axis] + shape[axis + 1 :], dtype)
            part = out if is_last else Var(aval)
            eqns.append(replace(eqn, inputs=(x,), params={"axes": (axis,)}, outputs=(part,)))
            x = part
        if is_half:
            narrow = {"dtype": out.aval.dtype}
            eqns.append(replace(eqn, primitive=cast_p, inputs=(x,), params=narrow, outputs=(out,)))
    return replace(jaxpr, eqns=tuple(eqns), cache={})


def _with_own_results(jaxpr: Jaxpr) -> Jaxpr:
    """The program with a copy for each result that is an argument, a number or there twice."""
    given: set[Any] = {*jaxpr.invars, *jaxpr.constvars}
    copies: list[Equation] = []
    outs: list[Atom] = []
    for atom in jaxpr.outvars:
        if type(atom.aval) is ShapedArray and (isinstance(atom, Literal) or atom in given):
            out = Var(atom.aval.strong())
            copies.append(Equation(copy_p, (atom,), {}, (out,)))
            outs.append(out)
        else:
            given.add(atom)
            outs.append(atom)
    if not copies:
        return jaxpr
    return replace(jaxpr, eqns=(*jaxpr.eqns, *copies), outvars=tuple(outs), cache={})
