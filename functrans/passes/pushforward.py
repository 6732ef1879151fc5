"""The forward pass over recorded nodes: ``push_forward``.

Here: the pushforward of each kind of node, and the pass from inputs to results. Not here: the nodes
(``nodes``), the other direction (``pullback``).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, ShapedArray, Zero, is_differentiable_dtype
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, replaying, shape_of
from functrans.core.primitive import Primitive, linear, multilinear
from functrans.core.source import here
from functrans.core.state import current_config, name_scope
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import (
    OUTPUT,
    SOLE_REFERENCES,
    LinearProgram,
    Node,
    batch_first,
    detached,
    fill,
    is_jointly_linear,
    is_writable,
    jvp_rule,
)
from functrans.passes.staging import stage
from functrans.primitives.slicing import slice_p, slice_update_p
from functrans.primitives.structural import broadcast_to, cast, reshape


def push(node: Node, tangents: Sequence[Any], size: int | None = None) -> Any:
    """Push tangents of a node's parents forward to its result.

    Args:
      node: a node which is no input.
      tangents: a tangent per parent; ``None`` where there is none or it is zero.
      size: extent of a leading batch axis of the tangents, or ``None``.

    Returns:
      The tangent of the result, or a list with one per result; ``None`` for zero.
    """
    primitive = node.primitive
    assert primitive is not None
    if primitive is OUTPUT:
        return tangents[0][node.params["index"]] if tangents[0] is not None else None
    if primitive.elementwise is not None:
        return _push_elementwise(node, tangents, size)
    if size is not None:
        return _push_batched(node, tangents, size)
    if isinstance(node.saved, LinearProgram):
        program = node.saved
        given = [_filled_tangent(node, i, tangents[i]) for i in program.targets]
        outs = evaluate(program.jaxpr, (*program.residuals, *given))
    elif is_jointly_linear(primitive):
        operands = [
            value if parent is None else _filled_tangent(node, i, tangents[i])
            for i, (parent, value) in enumerate(zip(node.parents, node.saved, strict=True))
        ]
        outs = list(bind(primitive, *operands, **node.params))
        if primitive is slice_p:
            outs = [detached(outs[0], operands[0])]
    else:
        if primitive.jvp is not multilinear:
            jvp_rule(node)  # which is refused if it is none, with the line of the node
        values, results = (node.saved, ()) if primitive.jvp is multilinear else node.saved
        outs = list(push_tangents(primitive, values, tangents, results, node.params))
    return outs if node.shape is None else outs[0]


def symbolic(values: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Tangents with ``Zero`` in place of ``None``."""
    return tuple(
        [
            Zero(aval_of(value)) if tangent is None else tangent
            for value, tangent in zip(values, tangents, strict=True)
        ]
    )


def push_tangents(
    primitive: Primitive,
    values: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
    params: Mapping[str, Any],
) -> Sequence[Any]:
    """Tangents of the results of an equation; ``None`` stands for zero on both sides."""
    rule = primitive.jvp
    if rule is linear:
        operands = [
            value if not is_differentiable_dtype(dtype_of(value))
            else _filled(value) if tangent is None else tangent
            for value, tangent in zip(values, tangents, strict=True)
        ]  # fmt: skip
        return bind(primitive, *operands, **params)
    if rule is multilinear:
        total: tuple[Any, ...] = ()
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                operands = [tangent if j == i else value for j, value in enumerate(values)]
                term = bind(primitive, *operands, **params)
                total = tuple(a + b for a, b in zip(total, term, strict=True)) if total else term
        return total
    if not callable(rule):
        raise NonDifferentiableError(
            f"primitive {primitive.name} has no derivative rule (field jvp is None){here()}; use "
            "ft.stop_gradient or give a custom rule (ft.custom_jvp)"
        )
    results = rule(tuple(values), symbolic(values, tangents), outs, **params)
    return tuple(None if type(t) is Zero else t for t in results)


def _filled(value: Array) -> Array:
    """A zero tangent as an array; of a Python number, which is weak, as a Python number."""
    if type(value) in PYTHON_SCALARS:
        return type(value)(0)
    return zeros(ShapedArray(shape_of(value), dtype_of(value)))


def _push_elementwise(node: Node, tangents: Sequence[Any], size: int | None) -> Any:
    """Sum of partials applied to tangents; a batch axis in front broadcasts by itself."""
    *operands, out = node.saved
    family = node.primitive.elementwise  # type: ignore[union-attr]  # not an input
    assert family is not None
    rank = len(node.shape)
    total: Any = None
    for partial, tangent in zip(family.partials, tangents, strict=True):
        if tangent is None or partial is None or partial == 0:
            continue
        if size is not None:
            own = shape_of(tangent)[1:]
            if len(own) < rank:
                tangent = reshape(tangent, (size, *(1,) * (rank - len(own)), *own))
        if partial == 1:
            pushed = tangent
        elif partial == -1:
            pushed = -tangent
            if type(pushed) is np.ndarray and not tangent.flags.writeable:
                pushed.flags.writeable = False  # of a constant, such as a basis, made of it only
        else:
            pushed = partial(tangent, *operands, out)
            if type(pushed) is Zero:
                continue
        total = pushed if total is None else total + pushed
    if total is None:
        return None
    shape = node.shape if size is None else (size, *node.shape)
    return broadcast_to(cast(total, node.dtype), shape)


def _push_batched(node: Node, tangents: Sequence[Any], size: int) -> Any:
    """Push a batch of tangents: the pushforward staged for one of them, then batched."""
    present = [i for i, t in enumerate(tangents) if t is not None]
    found: list[int] = []
    count_outs: list[int] = []

    def one(*given: Array) -> list[Any]:
        pushed = push(node, fill(len(tangents), present, given))
        outs = [pushed] if node.shape is not None else pushed
        count_outs.append(len(outs))
        found.extend(i for i, t in enumerate(outs) if t is not None)
        return [outs[i] for i in found]

    jaxpr = stage(one, [node.parents[i].aval for i in present], "a batched pushforward")  # type: ignore[union-attr]  # a node each
    args = [tangents[i] for i in present]
    values, dims = evaluate_batched(jaxpr, size, args, [0] * len(args))
    outs = fill(
        count_outs[0],
        found,
        [batch_first(v, dim, size) for v, dim in zip(values, dims, strict=True)],
    )
    return outs if node.shape is None else outs[0]


def _filled_tangent(node: Node, i: int, tangent: Array | None) -> Any:
    """A tangent that a rule needs as an array."""
    return zeros(node.parents[i].aval) if tangent is None else tangent  # type: ignore[union-attr]  # it has a node


def _push_update_in_place(
    node: Node, tangents: dict[Node, Any], readers: dict[Node, int], size: int | None
) -> bool:
    """Push a write to a slice forward in place; whether it was done.

    The tangent written to must have been made by this pass, and nothing else may read it later.
    """
    parent, source = node.parents
    if (
        parent is None
        or parent.primitive is None
        or parent not in tangents
        or readers[parent] > 1
        or getrefcount(tangents[parent]) > SOLE_REFERENCES
        or not is_writable(tangents[parent])
    ):
        return False
    tangent = None if source is None else tangents.get(source)
    if isinstance(tangent, Tracer):
        return False
    entries = node.params["index"].entries
    whole = tangents[parent]
    if size is not None:
        entries = (slice(None), *entries)
        if tangent is not None:
            ones = (1,) * (whole[entries].ndim - tangent.ndim)
            tangent = tangent.reshape((size, *ones, *tangent.shape[1:]))
    whole[entries] = 0 if tangent is None else tangent
    tangents[node] = whole
    return True


def push_forward(
    nodes: Sequence[Node],
    inputs: Sequence[tuple[Node, Any]],
    outputs: Sequence[Node | None],
    size: int | None = None,
) -> list[Any]:
    """The forward pass over recorded nodes.

    Args:
      nodes: all nodes in order of creation (``ordered_nodes``).
      inputs: node and tangent of each input; ``None`` for zero.
      outputs: node of each result.
      size: extent of a leading batch axis of the tangents, or ``None``.

    Returns:
      A tangent per result, ``None`` for zero.
    """
    tangents: dict[Node, Any] = dict(inputs)
    readers: dict[Node, int] = {}
    for read in (*(p for node in nodes for p in node.parents), *outputs):
        if read is not None:
            readers[read] = readers.get(read, 0) + 1
    watch = current_config.get().nan_watch
    push_one = push if watch is None else watch.push
    with np.errstate(all="ignore"), replaying() as replay:
        for node in nodes:
            if node.primitive is None:
                continue
            if replay.is_on:
                replay.at(node.source, name_scope.get())
            is_update = node.primitive is slice_update_p
            if not (is_update and _push_update_in_place(node, tangents, readers, size)):
                given = [None if p is None else tangents.get(p) for p in node.parents]
                if any([t is not None for t in given]):  # noqa: C419  # a list is faster
                    tangents[node] = push_one(node, given, size)
                del given
            for p in node.parents:
                if p is not None:
                    readers[p] -= 1
                    if not readers[p]:  # a tangent goes after its last use
                        tangents.pop(p, None)
    return [None if node is None else tangents.get(node) for node in outputs]
