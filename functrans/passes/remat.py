"""The remat pass: which residuals a backward pass keeps, and a program for the rest of them.

Here: ``split_residuals``, and the primitive ``name`` by which users mark values for policies. Not
here: policies and the transform (``control.checkpoint``).

Layer: ``passes``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from functrans.core.avals import Aval
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, same_place
from functrans.core.primitive import Primitive, linear
from functrans.core.values import Array

Policy = Callable[..., bool]
"""``(primitive, *avals of the operands, **params)``: whether the results are kept."""


def _name_impl(x: Array, *, name: str) -> tuple[Any, ...]:
    return (x,)


def _name_aval(x: Aval, *, name: str) -> tuple[Aval, ...]:
    return (x,)


def _name_transpose(cts: Sequence[Any], operands: object, *, name: str) -> tuple[Any, ...]:
    return (cts[0],)


def _name_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, name: str
) -> tuple[Any, ...]:
    return bind(name_p, operands[0], name=name), dims


name_p = Primitive(
    "name",
    impl=_name_impl,
    abstract_eval=_name_aval,
    jvp=linear,
    transpose=_name_transpose,
    batch=_name_batch,
    lower=IndexMap(same_place),
)


def split_residuals(primal: Jaxpr, n_outs: int, policy: Policy) -> tuple[Jaxpr, Jaxpr]:
    """Keep what a policy allows, and compute the other residuals again.

    Args:
      primal: ``(*args) -> (*outs, *residuals)``.
      n_outs: number of ``outs``.
      policy: whether the results of an equation are kept.

    Returns:
      Program ``(*args) -> (*outs, *kept)``, and program ``(*args, *kept) -> residuals``, which has
      only the equations that it needs.
    """
    residuals = primal.outvars[n_outs:]
    bound = {*primal.invars, *primal.constvars}
    needed: set[Var] = {a for a in residuals if isinstance(a, Var) and a not in bound}
    kept: dict[Var, None] = {}
    renamed: dict[Var, Var] = {}
    again: list[Equation] = []
    excluded: set[Any] = set()  # values under a name that the policy does not store
    for eqn in reversed(primal.eqns):
        wanted = [var for var in eqn.outputs if var in needed]
        marks_needed = eqn.primitive is name_p and eqn.inputs[0] in needed
        if not wanted and not marks_needed:
            continue
        is_excluded = any(var in excluded for var in wanted)
        avals = [atom.aval for atom in eqn.inputs]
        allowed = not is_excluded and policy(eqn.primitive, *avals, **eqn.params)
        if allowed or eqn.effects:  # what has an effect does not run again
            kept.update(dict.fromkeys(eqn.outputs if marks_needed else wanted))
            if marks_needed:  # the value that was named is the one that is kept
                (source,) = eqn.inputs
                renamed[source] = eqn.outputs[0]  # type: ignore[index]  # a Var, since needed
                needed.discard(source)
            continue
        if eqn.primitive is name_p:
            excluded.add(eqn.inputs[0])
        if wanted:
            again.append(eqn)
            needed.update(a for a in eqn.inputs if isinstance(a, Var) and a not in bound)
    saved = {var: Var(var.aval) for var in kept}
    place: dict[Any, Any] = dict(saved)
    place.update((source, saved[name]) for source, name in renamed.items())

    def moved(atoms: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([place.get(atom, atom) if isinstance(atom, Var) else atom for atom in atoms])

    recompute = replace(
        primal,
        invars=(*primal.invars, *saved.values()),
        eqns=tuple([replace(eqn, inputs=moved(eqn.inputs)) for eqn in reversed(again)]),
        outvars=moved(residuals),
        arg_names=(),
        cache={},
    )
    forward = replace(primal, outvars=(*primal.outvars[:n_outs], *kept), cache={})
    return forward, recompute


PRIMITIVES: tuple[Primitive, ...] = (name_p,)
