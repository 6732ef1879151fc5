"""Estimates of work and memory: of programs, and of passes over recorded nodes.

Here: ``operations`` of an equation; ``program_work`` and ``program_bytes`` of a Jaxpr;
``node_work``, and the largest memory that one tangent or cotangent of a pass over nodes needs
(``forward_bytes``, ``reverse_bytes``). Not here: what is chosen by them (``transforms.directions``,
``transforms.chunks``), what is known of one primitive (its field ``work``).

Work is in units of one addition of elements that are in memory. Products of matrices run at several
operations in that time, functions such as ``exp`` take several; the figures are those that the
compiler plans with. They are good for comparing two programs, not for predicting seconds.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.analyses import analysis
from functrans.core.avals import Aval, ShapedArray
from functrans.core.dispatch import aval_of
from functrans.core.jaxpr import Equation, Jaxpr, Var, subjaxprs
from functrans.core.lowering import Expansion, IndexMap, Pointwise, Reduction, Structured
from functrans.core.primitive import Primitive, Work, multilinear
from functrans.passes.executables import last_uses
from functrans.passes.nodes import LinearProgram, Node
from functrans.passes.staging import stage

_FLOPS_PER_UNIT = 8
_FUNCTION_WORK = 15
_FUNCTION_COST = 5
"""From this cost of an elementwise primitive on (in additions) it counts as a function."""
_UNKNOWN_ITERATIONS = 10


def aval_bytes(aval: Aval | Any) -> int:
    """Bytes of an array; 0 for a tape, whose length is not known."""
    return aval.size * aval.dtype.itemsize if type(aval) is ShapedArray else 0


def _size(aval: Any) -> int:
    return aval.size if type(aval) is ShapedArray else aval.element.size


# programs ---------------------------------------------------------------------------------------


def program_work(jaxpr: Jaxpr) -> float:
    """The work of one run of a program."""
    return sum(map(equation_work, jaxpr.eqns))


def equation_work(eqn: Equation) -> float:
    """The work of one equation; of a loop without a known length, that of some rounds."""
    programs = [program_work(jaxpr) for jaxpr in subjaxprs(eqn.params)]
    if programs:
        if "branches" in eqn.params:
            return max(programs)
        n = rounds(eqn)
        return (_UNKNOWN_ITERATIONS if n is None else n) * sum(programs)
    given = [atom.aval for atom in eqn.inputs]
    size = sum(_size(out.aval) for out in eqn.outputs)
    return _additions(eqn.primitive, given, size, eqn.params)


def rounds(eqn: Equation) -> int | None:
    """How often the programs of an equation run; ``None`` if data decide."""
    lower = eqn.primitive.lower
    is_open = isinstance(lower, Structured) and lower.kind == "while"
    return None if is_open else eqn.params.get("length", 1)


def _additions(
    primitive: Primitive, given: Sequence[Any], size: int, params: Mapping[str, Any]
) -> float:
    """The work of a first-order operation with ``size`` elements in its results."""
    if isinstance(primitive.lower, Pointwise):
        return size * primitive.lower.cost
    if primitive.work is not None:
        flops, functions = primitive.work(*given, **params)
        return size + flops / _FLOPS_PER_UNIT + _FUNCTION_WORK * functions
    if primitive.elementwise is not None:
        return _FUNCTION_WORK * size
    return _touches(primitive, size, given)


def _touches(primitive: Primitive, size: int, given: Sequence[Any]) -> float:
    """Movement and reductions touch each element once; factorizations a row of them."""
    total = size + sum(map(_size, given))
    if not callable(primitive.jvp):
        return total
    rows = [aval.shape[-1] for aval in given if type(aval) is ShapedArray and aval.ndim >= 2]
    return total * max(rows, default=1)


def operations(eqn: Equation) -> Work:
    """What a first-order equation computes: by its record, else by how it is lowered."""
    primitive, lower = eqn.primitive, eqn.primitive.lower
    given: list[Any] = [atom.aval for atom in eqn.inputs]
    outs: list[Any] = [out.aval for out in eqn.outputs]
    if primitive.effects or not all(type(aval) is ShapedArray for aval in (*given, *outs)):
        return Work()
    if primitive.work is not None:
        return primitive.work(*given, **eqn.params)
    parts = 2 if any(aval.dtype.kind == "c" for aval in (*given, *outs)) else 1
    if isinstance(lower, Reduction):
        return Work(float(parts * given[0].size))
    if primitive.moves or isinstance(lower, IndexMap):
        return Work()
    if isinstance(lower, Expansion) and primitive.elementwise is None:
        return _work_of_expansion(eqn, lower)
    size = sum(aval.size for aval in outs)
    if isinstance(lower, Pointwise) and lower.cost < _FUNCTION_COST:
        return Work(float(parts * size))
    if isinstance(lower, Pointwise) or primitive.elementwise is not None:
        return Work(0.0, float(size))
    return Work(float(_touches(primitive, 0, given)))


def _work_of_expansion(eqn: Equation, lower: Expansion) -> Work:
    """What the primitives compute that an equation is written in."""
    avals = [atom.aval.strong() for atom in eqn.inputs]

    def expanded(*operands: Any) -> list[Any]:
        return list(lower.function(*operands, **eqn.params))

    found = list(map(operations, stage(expanded, avals, eqn.primitive.name).eqns))
    return Work(sum(work.flops for work in found), sum(work.functions for work in found))


@analysis
def program_bytes(jaxpr: Jaxpr) -> int:
    """The most memory that values of a program take at one time, its arguments left out."""
    alive: dict[Var, int] = {}
    now = peak = 0
    for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        inner = max((program_bytes(sub) for sub in subjaxprs(eqn.params)), default=0)
        for out in eqn.outputs:
            alive[out] = aval_bytes(out.aval)
            now += alive[out]
        peak = max(peak, now + inner)
        for var in dying:
            now -= alive.pop(var, 0)
    return peak


# recorded nodes ---------------------------------------------------------------------------------


def _node_avals(node: Node) -> tuple[Any, ...]:
    """The types of the results of a node."""
    return tuple(node.dtype) if node.shape is None else (node.aval,)


def node_bytes(node: Node) -> int:
    """Bytes of one tangent of a node."""
    return sum(map(aval_bytes, _node_avals(node)))


def node_work(node: Node) -> float:
    """The work of pushing one tangent through a node, or pulling one cotangent back."""
    primitive = node.primitive
    if primitive is None:
        return 0.0
    if isinstance(node.saved, LinearProgram):
        return program_work(node.saved.jaxpr)
    size = sum(_size(aval) for aval in _node_avals(node))
    parents = [parent for parent in node.parents if parent is not None]
    if primitive.elementwise is not None:
        return 2.0 * size * len(parents)
    if primitive.jvp is multilinear:
        given = [
            aval_of(value) if parent is None else parent.aval
            for value, parent in zip(node.saved, node.parents, strict=True)
        ]
        return len(parents) * _additions(primitive, given, size, node.params)
    return _touches(primitive, size, [aval for p in parents for aval in _node_avals(p)])


def _inner_bytes(node: Node) -> int:
    """What a rule needs besides its operands and results.

    An elementwise one adds a term per operand, each made of a factor and a product; others may copy
    an operand into another layout.
    """
    if isinstance(node.saved, LinearProgram):
        return program_bytes(node.saved.jaxpr)
    if node.primitive is None:
        return 0
    parents = _parents(node)
    if node.primitive.elementwise is not None:
        return node_bytes(node) * len(parents)
    return node_bytes(node) + max(map(node_bytes, parents), default=0)


def forward_bytes(nodes: Sequence[Node], outputs: Sequence[Node | None]) -> int:
    """The most memory that one tangent of a forward pass needs.

    Args:
      nodes: the nodes that have tangents, in order of creation.
      outputs: the nodes of the results.
    """
    readers: dict[Node, int] = {}
    for read in (*(p for node in nodes for p in node.parents), *outputs):
        if read is not None:
            readers[read] = readers.get(read, 0) + 1
    known = set(nodes)
    now = peak = 0
    for node in nodes:
        now += node_bytes(node)
        peak = max(peak, now + _inner_bytes(node))
        for parent in node.parents:
            if parent is not None:
                readers[parent] -= 1
                if not readers[parent] and parent in known:
                    now -= node_bytes(parent)
    return peak


def reverse_bytes(nodes: Sequence[Node], output: Node, inputs: Sequence[Node]) -> int:
    """The most memory that one cotangent of a backward pass needs.

    Args:
      nodes: the nodes that the result depends on, in order of creation.
      output: the node of the result.
      inputs: nodes whose cotangents stay.
    """
    alive = {output}
    now = peak = node_bytes(output)
    kept = set(inputs)
    for node in reversed(nodes):
        for parent in node.parents:
            if parent is not None and parent not in alive:
                alive.add(parent)
                now += node_bytes(parent)
        peak = max(peak, now + _inner_bytes(node) + max(map(node_bytes, _parents(node)), default=0))
        if node not in kept:
            now -= node_bytes(node)
    return peak


def _parents(node: Node) -> list[Node]:
    return [parent for parent in node.parents if parent is not None]


def residual_bytes(nodes: Sequence[Node]) -> int:
    """The memory of what nodes keep, each array once."""
    seen: dict[int, int] = {}

    def note(value: object) -> None:
        if isinstance(value, (tuple, list)):
            for item in value:
                note(item)
        elif isinstance(value, LinearProgram):
            note(value.residuals)
            note(value.jaxpr.consts)
        elif isinstance(value, np.ndarray):
            while isinstance(value.base, np.ndarray):
                value = value.base
            seen[id(value)] = value.nbytes

    for node in nodes:
        note(node.saved)
    return sum(seen.values())
