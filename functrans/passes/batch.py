"""The batch pass: run a Jaxpr on arrays that have one more axis.

Here: ``evaluate_batched``. Called on plain arrays it evaluates, called on tracers it rewrites.
Not here: the batching rule of one primitive (its record).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.analyses import analysis
from functrans.core.dispatch import bind, pass_on, replaying
from functrans.core.jaxpr import Equation, Jaxpr, Literal, subjaxprs
from functrans.core.state import batch_axis
from functrans.errors import UnsupportedOperationError
from functrans.passes.executables import last_uses
from functrans.passes.staging import source_text


def evaluate_batched(
    jaxpr: Jaxpr,
    size: int,
    args: Sequence[Any],
    dims: Sequence[int | None],
    axis_name: str | None = None,
    consts: Sequence[Any] | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Run a program with some arguments batched.

    Args:
      jaxpr: the program for one element of the batch.
      size: extent of the batch axis.
      args: arguments; batched ones have an extra axis of extent ``size``.
      dims: position of the batch axis per argument, ``None`` for those that have none.
      axis_name: name that collectives inside know the axis by.
      consts: values for ``constvars`` in place of the captured ones.

    Returns:
      Results, and per result the position of its batch axis or ``None``.
    """
    env: dict[Any, tuple[Any, int | None]] = {
        var: (value, None)
        for var, value in zip(
            jaxpr.constvars, jaxpr.consts if consts is None else consts, strict=True
        )
    }
    env.update(zip(jaxpr.invars, zip(args, dims, strict=True), strict=True))
    token = batch_axis.set(axis_name)
    try:
        with replaying() as replay:
            for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
                if replay.is_on:
                    replay.at(eqn.source, eqn.scope)
                pairs = [(a.value, None) if type(a) is Literal else env[a] for a in eqn.inputs]
                operands = [pair[0] for pair in pairs]
                own_dims = [pair[1] for pair in pairs]
                primitive = eqn.primitive
                if all(dim is None for dim in own_dims) and not _depends_on_lane(eqn, axis_name):
                    outs: Sequence[Any] = bind(primitive, *operands, **eqn.params)
                    out_dims: Sequence[int | None] = [None] * len(outs)
                elif primitive.batch is None:
                    raise UnsupportedOperationError(
                        f"vmap: primitive {primitive.name} has no batching rule{source_text(eqn)}"
                    )
                else:
                    outs, out_dims = primitive.batch(size, operands, own_dims, **eqn.params)
                env.update(zip(eqn.outputs, zip(outs, out_dims, strict=True), strict=True))
                if jaxpr.annotations:
                    pass_on(jaxpr.annotations, eqn.outputs, outs, eqn)
                for var in dying:
                    del env[var]
    finally:
        batch_axis.reset(token)
    results = [(a.value, None) if type(a) is Literal else env[a] for a in jaxpr.outvars]
    return [value for value, _ in results], [dim for _, dim in results]


def _depends_on_lane(eqn: Equation, axis_name: str | None) -> bool:
    """Whether an equation without batched operands differs between elements of the batch.

    A collective over the axis does; an effect takes place once for each element.
    """
    if eqn.primitive.effects or eqn.params.get("axis_name", _NO_AXIS) == axis_name:
        return True
    return eqn.primitive.holds_programs and any(
        jaxpr.effects or (axis_name is not None and axis_name in named_axes(jaxpr))
        for jaxpr in subjaxprs(eqn.params)
    )


_NO_AXIS = object()


@analysis
def named_axes(jaxpr: Jaxpr) -> frozenset[str]:
    """The axes that collectives in a program and its sub-programs refer to."""
    found: set[str] = set()
    for eqn in jaxpr.eqns:
        if "axis_name" in eqn.params:
            found.add(eqn.params["axis_name"])
        for sub in subjaxprs(eqn.params):
            found |= named_axes(sub)
    return frozenset(found)
