"""Equations that a function of arrays becomes, between the variables of a program.

Here: ``equations_of``, for steps of preparing that put several equations in the place of one. Not
here: those steps (``compiler.products``, ``compiler.gathers``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from functrans.core.jaxpr import Atom, Equation, Var
from functrans.core.source import Captured, SourceLine
from functrans.passes.staging import stage


def equations_of(
    fun: Callable[..., Sequence[Any]],
    inputs: Sequence[Atom],
    outputs: Sequence[Var],
    source: Captured | SourceLine | None,
) -> tuple[tuple[Equation, ...], dict[Var, Any]]:
    """What a function does.

    Args:
      fun: takes one tracer per operand, returns results, all of which it computes.
      inputs: the operands.
      outputs: the variables that the results are.
      source: the user's line that they stand for.

    Returns:
      The equations, and the arrays that they refer to by variables.
    """
    program = stage(fun, [x.aval.strong() for x in inputs], "preparing")
    renamed: dict[Any, Any] = dict(zip(program.invars, inputs, strict=True))
    renamed.update(zip(program.outvars, outputs, strict=True))
    found = []
    for own in program.eqns:
        for var in own.outputs:
            renamed.setdefault(var, Var(var.aval))
        operands = tuple([renamed.get(x, x) for x in own.inputs])
        results = tuple([renamed[var] for var in own.outputs])
        found.append(replace(own, inputs=operands, outputs=results, source=source))
    return tuple(found), dict(zip(program.constvars, program.consts, strict=True))
