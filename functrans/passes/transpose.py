"""The transpose pass: a linear program ``T a -> T b`` becomes ``CT b -> CT a``.

Here: ``transpose_linear``, which runs a linear Jaxpr backwards on cotangents. Not here: the
transpose of one primitive (its record).

Equations that do not depend on a linear argument are evaluated forwards first; the others are
visited in reverse. Zeros stay symbolic.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.errors import NonDifferentiableError
from functrans.ir.avals import Zero
from functrans.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.ir.primitive import LinearOperand, multilinear
from functrans.passes.cotangents import add_cotangents, materialize, plain, pull_elementwise
from functrans.staging import source_text
from functrans.trace import bind, elementwise


def _forward(jaxpr: Jaxpr, env: dict[Any, Any], is_linear: set[Var]) -> list[Equation]:
    """Evaluate the equations that depend on no linear argument; the others, in order."""
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(type(a) is Var and a in is_linear for a in eqn.inputs):
            is_linear.update(eqn.outputs)
            linear_eqns.append(eqn)
            continue
        operands = [a.value if type(a) is Literal else env[a] for a in eqn.inputs]
        if eqn.primitive.elementwise is not None and not eqn.params:
            outs: Sequence[Any] = (elementwise(eqn.primitive, *operands),)
        else:
            outs = bind(eqn.primitive, *operands, **eqn.params)
        env.update(zip(eqn.outputs, outs, strict=True))
    return linear_eqns


def _pull_equation(
    eqn: Equation, cts: tuple[Any, ...], env: dict[Any, Any], is_linear: set[Var]
) -> Sequence[Any]:
    """Cotangents of the inputs of one linear equation."""
    primitive = eqn.primitive
    flags = [type(a) is Var and a in is_linear for a in eqn.inputs]
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
            ):
                raise NonDifferentiableError(
                    f"transpose: {primitive.name} is not linear in operand {i}{source_text(eqn)}; "
                    "only linear functions can be transposed"
                )
        targets = [a.aval if flag else None for a, flag in zip(eqn.inputs, flags, strict=True)]
        shape = eqn.outputs[0].aval.shape  # type: ignore[union-attr]
        return pull_elementwise(primitive, cts[0], operands, None, shape, targets)
    if primitive.transpose is None:
        raise NonDifferentiableError(
            f"transpose: primitive {primitive.name} has no transpose rule{source_text(eqn)}; only "
            "linear functions can be transposed"
        )
    full = tuple(
        ct if type(ct) is Zero else materialize(ct, var.aval.shape)  # type: ignore[union-attr]
        for ct, var in zip(cts, eqn.outputs, strict=True)
    )
    operands = [
        LinearOperand(a.aval) if flag else (a.value if type(a) is Literal else env[a])  # type: ignore[arg-type]
        for a, flag in zip(eqn.inputs, flags, strict=True)
    ]
    if primitive.jvp is multilinear and sum(flags) > 1:
        raise NonDifferentiableError(
            f"transpose: {primitive.name} is not linear jointly in operands "
            f"{[i for i, flag in enumerate(flags) if flag]}{source_text(eqn)}"
        )
    return primitive.transpose(full, operands, **eqn.params)  # type: ignore[no-any-return]


def transpose_linear(jaxpr: Jaxpr, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Run a linear program backwards.

    Args:
      jaxpr: linear in its last arguments; the first ``len(residuals)`` are not linear.
      residuals: values of the first arguments.
      cts: a cotangent per result, or ``Zero``.

    Returns:
      A cotangent or ``Zero`` per linear argument.

    Raises:
      NonDifferentiableError: an equation is not linear; the message names it and its line.
    """
    k = len(residuals)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    env.update(zip(jaxpr.invars[:k], residuals, strict=True))
    linear_vars = set(jaxpr.invars[k:])
    eqns = _forward(jaxpr, env, linear_vars)
    ct_of: dict[Var, Any] = {}

    def accumulate(atom: Any, ct: Any) -> None:
        if type(atom) is not Var or ct is None or type(ct) is Zero or atom not in linear_vars:
            return
        have = ct_of.get(atom)
        ct_of[atom] = ct if have is None else add_cotangents(have, ct)

    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        accumulate(atom, ct)
    with np.errstate(all="ignore"):
        for eqn in reversed(eqns):
            out_cts = tuple(
                ct_of.pop(var) if var in ct_of else Zero(var.aval)  # type: ignore[arg-type]
                for var in eqn.outputs
            )
            if all(type(ct) is Zero for ct in out_cts):
                continue
            pulled = _pull_equation(eqn, out_cts, env, linear_vars)
            for atom, ct in zip(eqn.inputs, pulled, strict=True):
                accumulate(atom, ct)
    return [
        materialize(plain(ct_of[var]), var.aval.shape) if var in ct_of else Zero(var.aval)  # type: ignore[union-attr,arg-type]
        for var in jaxpr.invars[k:]
    ]
