"""The backward pass over recorded nodes: ``pull_back``.

Here: the pullback of each kind of node, and the pass from results to inputs. Not here: the nodes
(``nodes``), the other direction (``pushforward``), the transposition of linear programs
(``transpose``).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from functrans.core.avals import ShapedArray, Tape, Zero, is_differentiable_dtype
from functrans.core.caching import remembered
from functrans.core.dispatch import aval_of, dtype_of, replaying, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import LinearOperand, Primitive, multilinear
from functrans.core.quiet import quietly
from functrans.core.state import current_config, name_scope
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import (
    Masked,
    add_cotangents,
    materialize,
    plain,
    pull_elementwise,
    pull_masked,
    unmasked,
    with_full_mask,
    zeros,
)
from functrans.passes.evaluate import evaluate
from functrans.passes.in_place import pull_slice_in_place
from functrans.passes.nodes import (
    OUTPUT,
    LinearNode,
    LinearProgram,
    Node,
    batch_first,
    fill,
    is_jointly_linear,
    jvp_rule,
    line_of,
    ordered_nodes,
    with_batch,
)
from functrans.passes.simplify import exact_key, simplify
from functrans.passes.staging import stage
from functrans.passes.transpose import check_linear, linear_nodes
from functrans.primitives.slicing import slice_p, slice_update_p
from functrans.primitives.structural import broadcast_to, kept_shape, reduce_sum_p, reshape


def pull(node: Node, ct: Any, size: int | None = None) -> Sequence[Any]:
    """Pull the cotangent of a node's result back to its parents.

    Args:
      node: a node which is no input.
      ct: cotangent of the one result, or a list with one per result (``None`` where none came).
      size: extent of a leading batch axis of the cotangents, or ``None``.

    Returns:
      A cotangent or ``None`` per parent.
    """
    primitive = node.primitive
    assert primitive is not None
    saved = node.saved
    is_listed = type(node) is LinearNode
    if primitive.elementwise is not None and not node.params:
        if is_listed:
            check_linear(node)
        *operands, out = saved
        return pull_elementwise(primitive, ct, operands, out, node.shape, node.parents, size)
    if primitive is reduce_sum_p:
        return (_pull_sum(node, ct, size),)
    if size is not None:
        return _pull_batched(node, ct, size)
    given = ct if node.shape is None else [ct]
    avals = node.dtype if node.shape is None else [node]
    cts = tuple([Zero(aval) if c is None else c for c, aval in zip(given, avals, strict=True)])
    if isinstance(saved, LinearProgram):
        pulled = transpose_linear(saved.jaxpr, saved.residuals, cts, keep_masks=True)
        return fill(len(node.parents), saved.targets, pulled)
    rule = primitive.jvp
    if not is_listed and rule is not multilinear and not is_jointly_linear(primitive):
        return _pull_derived(node, cts, avals)
    transpose = _transpose(node)
    wanted = _wanted(node)
    if rule is multilinear and len(wanted) > 1:
        if is_listed:
            raise NonDifferentiableError(
                f"transpose: {primitive.name} is not linear jointly in operands {wanted}"
                f"{line_of(node)}"
            )
        cts = unmasked(cts, avals)
        pairs = [(i, transpose(cts, _operands(node, [i]), **node.params)[i]) for i in wanted]
        return fill(len(node.parents), *zip(*pairs, strict=True))
    operands = _operands(node, wanted)
    if any(type(c) is Masked for c in cts):
        if primitive.moves:
            return pull_masked(transpose, cts, avals, operands, node.params)
        if primitive.takes_masks:
            cts = tuple([with_full_mask(c, aval.shape) for c, aval in zip(cts, avals, strict=True)])
            return transpose(cts, operands, **node.params)
    return transpose(unmasked(cts, avals), operands, **node.params)


def _operands(node: Node, targets: Sequence[int]) -> list[Any]:
    """Operands for a ``transpose`` rule: those at ``targets`` as linear, the others saved."""
    operands = list(node.saved)
    for i in targets:
        operands[i] = LinearOperand(node.parents[i].aval)  # type: ignore[union-attr]  # a target has a node
    return operands


def _transpose(node: Node) -> Callable[..., Any]:
    """The transpose rule of a node's primitive.

    Raises:
      NonDifferentiableError: the primitive has none.
    """
    primitive = node.primitive
    assert primitive is not None
    if primitive.transpose is not None:
        return primitive.transpose
    if type(node) is LinearNode:
        raise NonDifferentiableError(
            f"transpose: primitive {primitive.name} has no transpose rule{line_of(node)}; only "
            "linear functions can be transposed"
        )
    raise NonDifferentiableError(
        f"primitive {primitive.name} has no transpose rule (field transpose is None)"
        f"{line_of(node)}, so that there is no reverse mode through it; use "
        "ft.jvp, or give it a custom rule (ft.custom_vjp)"
    )


def _wanted(node: Node) -> list[int]:
    """Positions of the parents that get a cotangent."""
    return [i for i, parent in enumerate(node.parents) if parent is not None]


def _pull_sum(node: Node, ct: Any, size: int | None) -> Any:
    """The cotangent of a sum for its operand, not yet broadcast."""
    if type(ct) is Masked:
        return Masked(_pull_sum(node, ct.value, size), _pull_sum(node, ct.mask, size))
    narrow = kept_shape(node.parents[0].shape, node.params["axes"])  # type: ignore[union-attr]  # it has a node
    if size is not None:
        full = broadcast_to(ct, (size, *node.shape))
        return reshape(full, (size, *narrow))
    if not node.shape and shape_of(ct) == ():
        return ct
    return reshape(broadcast_to(ct, node.shape), narrow)


def _pull_batched(node: Node, ct: Any, size: int) -> list[Any]:
    """Pull a batch of cotangents back: the pullback staged for one of them, then batched."""
    given = ct if node.shape is None else [ct]
    avals = node.dtype if node.shape is None else (node.aval,)
    present = [i for i, c in enumerate(given) if c is not None]
    masked = [i for i in present if type(given[i]) is Masked]
    found: list[int] = []
    found_masked: list[int] = []

    def one(*args: object) -> list[Any]:
        slots = fill(len(avals), present, args[: len(present)])
        for i, mask in zip(masked, args[len(present) :], strict=True):
            slots[i] = Masked(slots[i], mask)
        pulled = pull(node, slots if node.shape is None else slots[0])
        found.extend(i for i, c in enumerate(pulled) if c is not None and type(c) is not Zero)
        found_masked.extend(i for i in found if type(pulled[i]) is Masked)
        return [*(plain(pulled[i]) for i in found), *(pulled[i].mask for i in found_masked)]

    of_masks = [ShapedArray(avals[i].shape, np.dtype(bool)) for i in masked]
    jaxpr = stage(one, [*(avals[i] for i in present), *of_masks], "a batched pullback")
    args = [with_batch(plain(given[i]), size, avals[i]) for i in present]
    for i, aval in zip(masked, of_masks, strict=True):
        args.append(with_batch(given[i].mask, size, aval))
    values, dims = evaluate_batched(jaxpr, size, args, [0] * len(args))
    outs = [batch_first(out, dim, size) for out, dim in zip(values, dims, strict=True)]
    results = fill(len(node.parents), found, outs[: len(found)])
    for i, mask in zip(found_masked, outs[len(found) :], strict=True):
        results[i] = Masked(results[i], mask)
    return results


def _pull_derived(node: Node, cts: tuple[Any, ...], avals: Sequence[Any]) -> list[Any]:
    """The pullback derived from the jvp rule: a program of primals, results and cotangents."""
    primals, outs = node.saved
    present = tuple([i for i, ct in enumerate(cts) if type(ct) is not Zero])
    masked = tuple([i for i in present if type(cts[i]) is Masked])
    jaxpr, found, found_masked = _pullback_of(node, present, masked)
    given = [materialize(cts[i], avals[i].shape) for i in present]
    masks = [broadcast_to(cts[i].mask, avals[i].shape) for i in masked]
    values = evaluate(jaxpr, [*primals, *outs, *given, *masks])
    wanted = _wanted(node)
    n = len(found)
    results = fill(len(node.parents), [wanted[i] for i in found], values[:n])
    for i, mask in zip(found_masked, values[n:], strict=True):
        results[wanted[i]] = Masked(results[wanted[i]], mask)
    return results


def read_by(node: Node) -> Sequence[Any]:
    """What the pullback reads of what a node saved; more where that is not known exactly."""
    saved = node.saved
    if saved is None or isinstance(saved, LinearProgram):
        return () if saved is None else saved.residuals
    if len(saved) != 2 or type(saved[0]) is not tuple or type(saved[1]) is not tuple:
        return saved
    values = (*saved[0], *saved[1])
    present = [i for i, out in enumerate(saved[1]) if is_differentiable_dtype(dtype_of(out))]
    jaxpr, *_ = _pullback_of(node, tuple(present), ())
    read = {atom for eqn in jaxpr.eqns for atom in eqn.inputs} | set(jaxpr.outvars)
    return [x for x, var in zip(values, jaxpr.invars, strict=False) if var in read]


def _pullback_of(
    node: Node, present: tuple[int, ...], masked: tuple[int, ...]
) -> tuple[Jaxpr, tuple[int, ...], tuple[int, ...]]:
    """The program of a node whose pullback is derived; see ``_derived_pullback``."""
    primals, outs = node.saved
    jvp_rule(node)
    return _derived_pullback(
        node.primitive,
        _Params(node.params),
        tuple([aval_of(value) for value in primals]),
        tuple([aval_of(value) for value in outs]),
        tuple(_wanted(node)),
        present,
        masked,
        current_config.get().safe_where,
    )


class _Params:
    """Parameters as a key of a cache, which tells ``1``, ``1.0`` and ``True`` apart."""

    __slots__ = ("_hash", "_key", "values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self._key = tuple([(name, exact_key(value)) for name, value in values.items()])
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Params) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


@remembered(1024)
def _derived_pullback(
    primitive: Primitive,
    params: _Params,
    in_avals: tuple[Any, ...],
    out_avals: tuple[Any, ...],
    wanted: tuple[int, ...],
    present: tuple[int, ...],
    masked: tuple[int, ...],
    safe_where: bool,
) -> tuple[Jaxpr, tuple[int, ...], tuple[int, ...]]:
    """The transposed jvp rule of an equation.

    The rule is staged in its tangents, which gives a linear program, and that is transposed, under
    a staging trace of primals, results and cotangents.

    Args:
      primitive: the operation.
      params: its parameters.
      in_avals: avals of the operands.
      out_avals: avals of the results.
      wanted: operands that get a cotangent.
      present: results that have one.
      masked: results whose cotangent is masked.
      safe_where: the setting in force, which the transpose of a selection in the rule depends on.

    Returns:
      Program ``(*primals, *outs, *cts, *masks) -> (*cotangents, *masks)``, which of ``wanted`` it
      gives, and of which of them a mask.
    """
    n, m = len(in_avals), len(out_avals)
    found: list[int] = []
    found_masked: list[int] = []

    def run(*args: object) -> list[Any]:
        primals, outs = args[:n], args[n : n + m]
        cts: list[Any] = [Zero(aval) for aval in out_avals]
        for i, ct in zip(present, args[n + m :], strict=False):
            cts[i] = ct
        for i, mask in zip(masked, args[n + m + len(present) :], strict=True):
            cts[i] = Masked(cts[i], mask)

        def tangents_out(*given: Array) -> list[Any]:
            tangents: list[Any] = [Zero(aval) for aval in in_avals]
            for i, tangent in zip(wanted, given, strict=True):
                tangents[i] = tangent
            results = primitive.jvp(primals, tuple(tangents), outs, **params.values)  # type: ignore[operator]  # a rule
            return [zeros(t.aval) if type(t) is Zero else t for t in results]

        tangent_avals = [in_avals[i].strong() for i in wanted]
        linear_jaxpr = stage(tangents_out, tangent_avals, f"jvp of {primitive.name}")
        pulled = transpose_linear(linear_jaxpr, (), cts, keep_masks=bool(masked))
        found.extend(i for i, ct in enumerate(pulled) if type(ct) is not Zero)
        found_masked.extend(i for i in found if type(pulled[i]) is Masked)
        values = [materialize(pulled[i], in_avals[wanted[i]].shape) for i in found]
        return [
            *values,
            *(broadcast_to(pulled[i].mask, in_avals[wanted[i]].shape) for i in found_masked),
        ]

    avals = [*in_avals, *out_avals, *(out_avals[i].strong() for i in present)]
    avals += [ShapedArray(out_avals[i].shape, np.dtype(bool)) for i in masked]
    jaxpr = stage(run, avals, f"pullback of {primitive.name}", name=f"pullback_{primitive.name}")
    return simplify(jaxpr), tuple(found), tuple(found_masked)


def transpose_linear(
    jaxpr: Jaxpr, residuals: Sequence[Any], cts: Sequence[Any], keep_masks: bool = False
) -> list[Any]:
    """Run a linear program ``T a -> T b`` backwards: ``CT b -> CT a``.

    Args:
      jaxpr: linear in its last arguments; the first ``len(residuals)`` are not linear.
      residuals: values of the first arguments.
      cts: a cotangent per result, or ``Zero``; it may be masked, or narrower than the result.
      keep_masks: whether cotangents of arguments may be masked, too.

    Returns:
      A cotangent of the full shape, with a mask of the full shape if it has one, or ``Zero`` per
      linear argument. Masks end at tapes.

    Raises:
      NonDifferentiableError: an equation is not linear; the message names it and its line.
    """
    k = len(residuals)
    operands = [*residuals, *(LinearOperand(var.aval) for var in jaxpr.invars[k:])]
    inputs, nodes, outs = linear_nodes(jaxpr, operands)
    ct_of: dict[Node, Any] = {}
    for node, ct in zip(outs, cts, strict=True):
        if node is not None and type(ct) is not Zero:
            add(ct_of, node, ct)
    quietly(walk, nodes, ct_of, pull, None)
    results: list[Any] = []
    for var, node in zip(jaxpr.invars[k:], inputs[k:], strict=True):
        assert node is not None
        ct = ct_of.get(node)
        if ct is None:
            results.append(Zero(var.aval))
        elif keep_masks and type(var.aval) is not Tape:
            results.append(with_full_mask(ct, var.aval.shape))
        else:
            results.append(materialize(ct, var.aval.shape))
    return results


def pull_back(
    outputs: list[tuple[Node, Any]],
    inputs: Sequence[Node],
    *,
    keep: bool = True,
    size: int | None = None,
) -> list[Any]:
    """The backward pass: pull cotangents of results back to inputs.

    Args:
      outputs: node and cotangent of each result; a node may come more than once.
      inputs: nodes whose cotangents are wanted.
      keep: ``False`` empties ``outputs`` and lets each node go as soon as it was used, so that its
        residuals are freed on the way, if the caller holds no node.
      size: extent of a leading batch axis of the cotangents, or ``None``.

    Returns:
      Per input its cotangent, full shape and own dtype, or ``None`` when no result depends on it.
    """
    cts: dict[Node, Any] = {}
    for node, ct in outputs:
        add(cts, node, ct)
    nodes = ordered_nodes([node for node, _ in outputs])
    if not keep:
        outputs.clear()
    node = ct = None  # type: ignore[assignment]  # not to be kept
    watch = current_config.get().nan_watch
    quietly(walk, nodes, cts, pull if watch is None else watch.pull, size)
    lead = () if size is None else (size,)
    return [None if cts.get(i) is None else materialize(cts[i], (*lead, *i.shape)) for i in inputs]


def add(cts: dict[Node, Any], node: Node, ct: Array | Masked) -> None:
    """Add a contribution to the cotangent of a node."""
    have = cts.get(node)
    cts[node] = ct if have is None else add_cotangents(have, ct)


class Visitor(Protocol):
    """What a walk meets besides pullbacks: that of ``Tensor.backward``.

    Attributes:
      special: nodes to meet though they carry no annotation.
      is_quiet: whether nobody looks at what single nodes do.
    """

    special: set[Node]
    is_quiet: bool

    def meet(self, node: object, ct: Array) -> Sequence[Any]:
        """Pull back through a node that is special or carries annotations; ``ct`` may be none."""

    def arrive(self, leaf: object, ct: Array) -> None:
        """Take the cotangent of an input, or ``None``."""


def walk(
    nodes: list[Any],
    cts: dict[Node, Any],
    pull_one: Callable[[Node, Any, int | None], Sequence[Any]],
    size: int | None,
    visitor: Visitor | None = None,
) -> None:
    """Go through nodes, the last first, and add the cotangents of their parents (``quietly``).

    Args:
      nodes: in order of creation, or inputs later; emptied.
      cts: cotangents of results; those of inputs are left in it if there is no visitor.
      pull_one: the pullback of a node.
      size: extent of a leading batch axis of the cotangents, or ``None``.
      visitor: meets annotations, and takes what arrives at inputs.
    """
    own: set[Node] = set()
    ct = have = value = None
    with replaying() as replay:
        replays = replay.is_on and visitor is None
        while nodes:
            node = nodes.pop()
            primitive = node.primitive
            is_met: Any = False
            if visitor is not None:
                if primitive is None:
                    visitor.arrive(node, cts.pop(node, None))
                    continue
                is_met = node.annotations or node in visitor.special
            elif primitive is None:
                continue
            ct = cts.pop(node, None)
            if ct is None and not is_met:
                continue
            if replays:
                is_listed = type(node) is LinearNode
                replay.at(node.source, node.scope if is_listed else name_scope.get())
            if primitive is OUTPUT:
                main = node.parents[0]
                slots = cts.get(main)
                if slots is None:
                    slots = cts[main] = [None] * len(main.dtype)
                i = node.params["index"]  # derivatives of a node have result nodes of their own
                slots[i] = ct if slots[i] is None else add_cotangents(slots[i], ct)
                continue
            if is_met:
                own.discard(node)
                pulled = visitor.meet(node, ct)  # type: ignore[union-attr]  # it is met by one
            else:
                if primitive is slice_p or primitive is slice_update_p:
                    is_own = node in own
                    own.discard(node)
                    if (
                        visitor is None or (visitor.is_quiet and primitive is slice_p)
                    ) and pull_slice_in_place(node, ct, is_own, cts, own, size):
                        continue
                elif own:
                    own.discard(node)
                pulled = pull_one(node, ct, size)
            for parent, value in zip(node.parents, pulled):  # noqa: B905  # same by construction
                if parent is not None and value is not None and type(value) is not Zero:
                    have = cts.get(parent)
                    cts[parent] = value if have is None else add_cotangents(have, value)
                    if own:
                        own.discard(parent)
