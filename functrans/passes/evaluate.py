"""The evaluate pass: run a Jaxpr on values.

Here: ``evaluate``. Every other way to run a program (staged into another one, batched,
differentiated) is this loop under another trace, since it goes through ``bind``.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.ir.jaxpr import Jaxpr, Literal, Var
from functrans.trace import bind, elementwise


def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """Per equation, the variables that no later equation nor the result reads."""
    known = jaxpr.cache.get("last_uses")
    if known is None:
        alive = {v for v in jaxpr.outvars if isinstance(v, Var)}
        known = []
        for eqn in reversed(jaxpr.eqns):
            dying = []
            for var in (*eqn.outputs, *eqn.inputs):
                if isinstance(var, Var) and var not in alive:
                    alive.add(var)
                    dying.append(var)
            known.append(dying)
        known.reverse()
        jaxpr.cache["last_uses"] = known
    return known


def evaluate(jaxpr: Jaxpr, args: Sequence[Any], consts: Sequence[Any] | None = None) -> list[Any]:
    """Run a program.

    Args:
      jaxpr: the program.
      args: one value or tracer per argument.
      consts: values for ``constvars`` in place of the captured ones.

    Returns:
      One value per result. Values are dropped after their last use.
    """
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts if consts is None else consts))  # noqa: B905  # checked by the caller
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        operands = [a.value if type(a) is Literal else env[a] for a in eqn.inputs]
        primitive = eqn.primitive
        if primitive.elementwise is not None and not eqn.params:
            env[eqn.outputs[0]] = elementwise(primitive, *operands)
        else:
            outs = bind(primitive, *operands, **eqn.params)
            for var, out in zip(eqn.outputs, outs, strict=True):
                env[var] = out
        del operands
        for var in dying:
            del env[var]
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]
