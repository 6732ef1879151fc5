"""Dead code: equations that no result needs.

Here: ``drop_dead``, ``dce`` for programs of which only some results are wanted, and what is needed
of an equation that holds programs. Not here: the other simplifications (``passes.simplify``).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from functrans.core.analyses import analysis
from functrans.core.jaxpr import Equation, Jaxpr, Var, subjaxprs


@analysis
def has_annotations(jaxpr: Jaxpr) -> bool:
    """Whether something in a program or its sub-programs carries an annotation."""
    return bool(jaxpr.annotations) or any(
        has_annotations(sub) for eqn in jaxpr.eqns for sub in subjaxprs(eqn.params)
    )


def drop_dead(jaxpr: Jaxpr) -> Jaxpr:
    """Remove equations without effects whose results nothing reads, and unused constants."""
    return dce(jaxpr, (True,) * len(jaxpr.outvars))


def dce(jaxpr: Jaxpr, used: Sequence[bool]) -> Jaxpr:
    """The program that computes only some of its results.

    Args:
      jaxpr: the program; the result is cached with it. The rules of loops ask again and again
        which arguments some results need, and each time so do those of the loops in their bodies:
        computed anew, that is work exponential in the depth of a nest.
      used: per result, whether it is kept.
    Returns:
      The program with the results in ``used``, without the equations that only served the others
      and have no effects, and without constants that nothing reads. The arguments stay.
    """
    return _without_dead(jaxpr, tuple(used))


@analysis
def _without_dead(jaxpr: Jaxpr, used: tuple[bool, ...]) -> Jaxpr:
    """What ``dce`` computes."""
    outvars = tuple([atom for atom, flag in zip(jaxpr.outvars, used, strict=True) if flag])
    live: set[Any] = {atom for atom in outvars if type(atom) is Var}
    kept = []
    is_same = len(outvars) == len(jaxpr.outvars)
    for eqn in reversed(jaxpr.eqns):
        results_used = [var in live for var in eqn.outputs]
        if any(results_used) or eqn.effects:
            if eqn.primitive.prune is not None:  # also of operands that its programs do not read
                pruned = prune_equation(eqn, results_used, jaxpr.annotations)
                is_same = is_same and pruned is eqn
                eqn = pruned  # what is left of it
            kept.append(eqn)
            live.update([atom for atom in eqn.inputs if type(atom) is Var])
    consts_used = [var in live for var in jaxpr.constvars]
    if is_same and len(kept) == len(jaxpr.eqns) and all(consts_used):
        return jaxpr
    kept.reverse()
    annotations = jaxpr.annotations
    if annotations:
        bound = {*jaxpr.invars, *live, *kept}
        bound.update(var for eqn in kept for var in eqn.outputs)
        annotations = {key: values for key, values in annotations.items() if key in bound}
    return replace(
        jaxpr,
        constvars=_select(jaxpr.constvars, consts_used),
        consts=_select(jaxpr.consts, consts_used),
        eqns=tuple(kept),
        outvars=outvars,
        annotations=annotations,
        cache={},
    )


def prune_equation(
    eqn: Equation, used: Sequence[bool], annotations: Mapping[Any, tuple[Any, ...]]
) -> Equation:
    """What is needed of an equation that holds programs; annotated ones stay as they are."""
    if annotations and (eqn in annotations or any(var in annotations for var in eqn.outputs)):
        return eqn
    if any(has_annotations(sub) for sub in subjaxprs(eqn.params)):
        return eqn
    assert eqn.primitive.prune is not None
    params, inputs, outputs = eqn.primitive.prune(tuple(used), **eqn.params)
    if all(inputs) and all(outputs):
        return eqn
    return replace(
        eqn,
        params=params,
        inputs=_select(eqn.inputs, inputs),
        outputs=_select(eqn.outputs, outputs),
    )


def _select(items: Sequence[Any], flags: Sequence[bool]) -> tuple[Any, ...]:
    return tuple([item for item, flag in zip(items, flags, strict=True) if flag])
