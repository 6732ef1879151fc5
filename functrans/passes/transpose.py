"""The transpose pass: a linear program ``T a -> T b`` becomes ``CT b -> CT a``.

Here: ``transpose_linear``, which runs a linear Jaxpr backwards on cotangents. Not here: the
transpose of one primitive (its record).

Equations that do not depend on a linear argument are evaluated forwards first; the others are
visited in reverse. Zeros stay symbolic.

Layer: ``passes``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.errors import NonDifferentiableError
from functrans.ir.avals import Zero
from functrans.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.ir.primitive import LinearOperand, is_linear, multilinear
from functrans.passes.cotangents import (
    CARRIES_MASK,
    Masked,
    add_cotangents,
    materialize,
    pull_elementwise,
    pull_masked,
)
from functrans.passes.simplify import prune_equation
from functrans.primitives.elementwise import add_p, negative_p, subtract_p
from functrans.staging import source_text
from functrans.trace import bind, elementwise, replaying


def _forward(jaxpr: Jaxpr, env: dict[Any, Any], linear_vars: set[Var]) -> list[Equation]:
    """Evaluate the equations that depend on no linear argument; the others, in order."""
    linear_eqns = []
    with replaying() as replay:
        for eqn in jaxpr.eqns:
            if any(type(a) is Var and a in linear_vars for a in eqn.inputs):
                linear_vars.update(eqn.outputs)
                linear_eqns.append(eqn)
                continue
            if replay.is_on:
                replay.at(eqn.source, eqn.scope)
            operands = [a.value if type(a) is Literal else env[a] for a in eqn.inputs]
            if eqn.primitive.elementwise is not None and not eqn.params:
                outs: Sequence[Any] = (elementwise(eqn.primitive, *operands),)
            else:
                outs = bind(eqn.primitive, *operands, **eqn.params)
            env.update(zip(eqn.outputs, outs, strict=True))
    return linear_eqns


def separated(jaxpr: Jaxpr, linear: tuple[bool, ...]) -> Jaxpr:
    """The program with equations that hold programs cut in two where only a part is linear.

    A choice or a loop may have results that depend on linear arguments beside others that do not,
    and by which linear ones are multiplied.

    Args:
      jaxpr: the program; the result is cached with it.
      linear: per argument, whether it is linear.
    """
    table: dict[tuple[bool, ...], Jaxpr | None] = jaxpr.cache.setdefault("separated", {})
    if linear not in table:
        linear_vars = {var for var, flag in zip(jaxpr.invars, linear, strict=True) if flag}
        eqns: list[Equation] = []
        for eqn in jaxpr.eqns:
            parts = _parts(eqn, linear_vars)
            eqns.extend(parts)
            linear_vars.update(parts[-1].outputs if _reads(parts[-1].inputs, linear_vars) else ())
        is_same = all(map(operator.is_, eqns, jaxpr.eqns))
        table[linear] = None if is_same else replace(jaxpr, eqns=tuple(eqns), cache={})
    known = table[linear]
    return jaxpr if known is None else known


def _reads(inputs: Sequence[Any], linear_vars: set[Var]) -> bool:
    return any(type(a) is Var and a in linear_vars for a in inputs)


def _parts(eqn: Equation, linear_vars: set[Var]) -> list[Equation]:
    """An equation, or what of it does not depend on linear values and the rest."""
    prune = eqn.primitive.prune
    n = len(eqn.outputs)
    if prune is None or eqn.effects or not _reads(eqn.inputs, linear_vars):
        return [eqn]
    fixed = []
    for i in range(n):
        pruned = prune_equation(eqn, [i == j for j in range(n)], {})
        fixed.append(not _reads(pruned.inputs, linear_vars))
    if not any(fixed):
        return [eqn]
    cut = (fixed, [not flag for flag in fixed])
    return [prune_equation(eqn, flags, {}) for flags in cut if any(flags)]


def _pull_equation(
    eqn: Equation, cts: tuple[Any, ...], env: dict[Any, Any], linear_vars: set[Var]
) -> Sequence[Any]:
    """Cotangents of the inputs of one linear equation."""
    primitive = eqn.primitive
    flags = [type(a) is Var and a in linear_vars for a in eqn.inputs]
    if primitive.elementwise is not None and not eqn.params:
        operands = [
            None if flag else (a.value if type(a) is Literal else env[a])
            for a, flag in zip(eqn.inputs, flags, strict=True)
        ]
        letters = sum(1 << i for i, flag in enumerate(flags) if flag) | 1 << len(flags)
        for i, flag in enumerate(flags):
            if flag and (
                primitive.elementwise.partials[i] is None
                or primitive.elementwise.saves[i] & letters
                or (type(primitive.elementwise.partials[i]) is int and primitive not in _SUMS)
            ):
                raise NonDifferentiableError(
                    f"transpose: {primitive.name} is not linear in operand {i}{source_text(eqn)}; "
                    "only linear functions can be transposed"
                )
        targets = [a.aval if flag else None for a, flag in zip(eqn.inputs, flags, strict=True)]
        shape = eqn.outputs[0].aval.shape
        return pull_elementwise(primitive, cts[0], operands, None, shape, targets)
    if primitive.transpose is None:
        raise NonDifferentiableError(
            f"transpose: primitive {primitive.name} has no transpose rule{source_text(eqn)}; only "
            "linear functions can be transposed"
        )
    operands = [
        LinearOperand(a.aval) if flag else (a.value if type(a) is Literal else env[a])
        for a, flag in zip(eqn.inputs, flags, strict=True)
    ]
    if primitive.jvp is multilinear and sum(flags) > 1:
        raise NonDifferentiableError(
            f"transpose: {primitive.name} is not linear jointly in operands "
            f"{[i for i, flag in enumerate(flags) if flag]}{source_text(eqn)}"
        )
    is_masked = any(type(ct) is Masked for ct in cts)
    if is_masked and primitive in CARRIES_MASK:
        aval: Any = eqn.outputs[0].aval
        return pull_masked(
            primitive.transpose, cts[0], aval.shape, aval.dtype, operands, eqn.params
        )
    if is_masked and primitive.is_call:
        return _transpose_in(eqn.params["jaxpr"], operands, cts, keep_masks=True)
    full = tuple(
        ct if type(ct) is Zero else materialize(ct, var.aval.shape)
        for ct, var in zip(cts, eqn.outputs, strict=True)
    )
    return primitive.transpose(full, operands, **eqn.params)  # type: ignore[no-any-return]  # a sequence


_SUMS = frozenset({add_p, subtract_p, negative_p})
"""Elementwise primitives that are linear with constant partials; floor and remainder are not."""


def transpose_linear(
    jaxpr: Jaxpr, residuals: Sequence[Any], cts: Sequence[Any], keep_masks: bool = False
) -> list[Any]:
    """Run a linear program backwards.

    Args:
      jaxpr: linear in its last arguments; the first ``len(residuals)`` are not linear.
      residuals: values of the first arguments.
      cts: a cotangent per result, or ``Zero``; it may be masked, or narrower than the result.
      keep_masks: whether cotangents of arguments may be masked, too.

    Returns:
      A cotangent or ``Zero`` per linear argument.

    Raises:
      NonDifferentiableError: an equation is not linear; the message names it and its line.
    """
    k = len(residuals)
    operands = [*residuals, *(LinearOperand(var.aval) for var in jaxpr.invars[k:])]
    return _transpose_in(jaxpr, operands, cts, keep_masks)[k:]


def _transpose_in(
    jaxpr: Jaxpr, operands: Sequence[Any], cts: Sequence[Any], keep_masks: bool
) -> list[Any]:
    """Run a program backwards that is linear in those operands that are ``LinearOperand``.

    Returns:
      Per argument a cotangent or ``Zero``; ``None`` where it is not linear.
    """
    jaxpr = separated(jaxpr, tuple([is_linear(operand) for operand in operands]))
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    linear_vars = set()
    for var, operand in zip(jaxpr.invars, operands, strict=True):
        if is_linear(operand):
            linear_vars.add(var)
        else:
            env[var] = operand
    inputs = set(linear_vars)
    eqns = _forward(jaxpr, env, linear_vars)
    ct_of: dict[Var, Any] = {}

    def accumulate(atom: Any, ct: Any) -> None:
        if type(atom) is not Var or ct is None or type(ct) is Zero or atom not in linear_vars:
            return
        have = ct_of.get(atom)
        ct_of[atom] = ct if have is None else add_cotangents(have, ct)

    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        accumulate(atom, ct)
    with np.errstate(all="ignore"), replaying() as replay:
        for eqn in reversed(eqns):
            if replay.is_on:
                replay.at(eqn.source, eqn.scope)
            out_cts = tuple(
                ct_of.pop(var) if var in ct_of else Zero(var.aval) for var in eqn.outputs
            )
            if all(type(ct) is Zero for ct in out_cts):
                continue
            pulled = _pull_equation(eqn, out_cts, env, linear_vars)
            for atom, ct in zip(eqn.inputs, pulled, strict=True):
                accumulate(atom, ct)
    results: list[Any] = []
    for var in jaxpr.invars:
        ct = ct_of.get(var)
        if var not in inputs:
            results.append(None)
        elif ct is None:
            results.append(Zero(var.aval))
        elif keep_masks and type(ct) is Masked:
            results.append(ct)
        else:
            results.append(materialize(ct, var.aval.shape))
    return results
