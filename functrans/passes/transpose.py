"""Linear programs as recorded equations: what the backward pass goes through to transpose them.

Here: ``linear_nodes``, which evaluates the equations of a program that depend on no linear
argument, and makes a node of each of the others. Not here: the pass (``pullback``), which is the
same as that over what was recorded; the transpose of one primitive (its record).

Layer: ``passes``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from functrans.core.analyses import analysis
from functrans.core.dispatch import bind, elementwise, replaying
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive, is_linear
from functrans.errors import NonDifferentiableError
from functrans.passes.dce import prune_equation
from functrans.passes.nodes import OUTPUT, LinearNode, Node, line_of
from functrans.primitives.elementwise import add_p, negative_p, subtract_p


def linear_nodes(
    jaxpr: Jaxpr, operands: Sequence[Any]
) -> tuple[list[Node | None], list[Node], list[Node | None]]:
    """The nodes of a program that is linear in those operands that are ``LinearOperand``.

    Returns:
      The node of each argument, ``None`` where it is not linear; those of the equations, in order;
      and that of each result, ``None`` where it depends on no linear argument.
    """
    jaxpr = separated(jaxpr, tuple([is_linear(operand) for operand in operands]))
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    node_of: dict[Any, Node] = {}
    nodes: list[Node] = []
    for var, operand in zip(jaxpr.invars, operands, strict=True):
        if is_linear(operand):
            node_of[var] = Node(None, {}, None, (), var.aval.shape, var.aval.dtype, None)
        else:
            env[var] = operand
    inputs = [node_of.get(var) for var in jaxpr.invars]
    with replaying() as replay:
        for eqn in jaxpr.eqns:
            parents = tuple([None if type(a) is Literal else node_of.get(a) for a in eqn.inputs])
            values = [
                (a.value if type(a) is Literal else env[a]) if parent is None else None
                for a, parent in zip(eqn.inputs, parents, strict=True)
            ]
            if any(parents):
                nodes.extend(_nodes_of(eqn, values, parents, node_of))
                continue
            if replay.is_on:
                replay.at(eqn.source, eqn.scope)
            if eqn.primitive.elementwise is not None and not eqn.params:
                outs: Sequence[Any] = (elementwise(eqn.primitive, *values),)
            else:
                outs = bind(eqn.primitive, *values, **eqn.params)
            env.update(zip(eqn.outputs, outs, strict=True))
    return inputs, nodes, [None if type(a) is Literal else node_of.get(a) for a in jaxpr.outvars]


def _nodes_of(
    eqn: Equation, values: list[Any], parents: tuple[Node | None, ...], node_of: dict[Any, Node]
) -> list[Node]:
    """The node of a linear equation, and those of its results if it has several."""
    avals = tuple([var.aval for var in eqn.outputs])
    is_one = len(avals) == 1
    shape, dtype = (avals[0].shape, avals[0].dtype) if is_one else (None, avals)
    if eqn.primitive.elementwise is not None and not eqn.params:
        values.append(None)  # the result, which no partial reads
    main = LinearNode(eqn.primitive, eqn.params, values, parents, shape, dtype, eqn.source)
    main.scope = eqn.scope
    nodes: list[Node] = [main]
    if is_one:
        node_of[eqn.outputs[0]] = main
        return nodes
    for i, (var, aval) in enumerate(zip(eqn.outputs, avals, strict=True)):
        node = Node(OUTPUT, {"index": i}, None, (main,), aval.shape, aval.dtype, eqn.source)
        node_of[var] = node
        nodes.append(node)
    return nodes


@analysis
def separated(jaxpr: Jaxpr, linear: tuple[bool, ...]) -> Jaxpr:
    """The program with equations that hold programs cut in two where only a part is linear.

    A choice or a loop may have results that depend on linear arguments beside others that do not,
    and by which linear ones are multiplied.

    Args:
      jaxpr: the program; the result is cached with it.
      linear: per argument, whether it is linear.
    """
    linear_vars = {var for var, flag in zip(jaxpr.invars, linear, strict=True) if flag}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        parts = _parts(eqn, linear_vars)
        eqns.extend(parts)
        linear_vars.update(parts[-1].outputs if _reads(parts[-1].inputs, linear_vars) else ())
    is_same = all(map(operator.is_, eqns, jaxpr.eqns))
    return jaxpr if is_same else replace(jaxpr, eqns=tuple(eqns), cache={})


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


def check_linear(node: Node) -> None:
    """Refuse an elementwise equation that is not linear in what it is to be linear in.

    Raises:
      NonDifferentiableError: names the operand.
    """
    primitive: Primitive = node.primitive  # type: ignore[assignment]  # no input
    family = primitive.elementwise
    assert family is not None
    flags = [parent is not None for parent in node.parents]
    letters = sum(1 << i for i, flag in enumerate(flags) if flag) | 1 << len(flags)
    for i, flag in enumerate(flags):
        partial = family.partials[i]
        is_step = type(partial) is int and primitive not in _SUMS
        if flag and (partial is None or family.saves[i] & letters or is_step):
            raise NonDifferentiableError(
                f"transpose: {primitive.name} is not linear in operand {i}{line_of(node)}; "
                "only linear functions can be transposed"
            )


_SUMS = frozenset({add_p, subtract_p, negative_p})
"""Elementwise primitives that are linear with constant partials; floor and remainder are not."""
