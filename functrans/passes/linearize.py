"""The linear part of a computation: one node per recorded equation, pushed forward or pulled back.

Here: ``Node`` (what an equation keeps for its derivative), ``record`` (make it), ``push_forward``
and ``pull_back`` over all nodes that lead to a result. This is the one engine of derivatives: the
recording trace makes nodes while the user's function runs on values, and when those values are
staging tracers, the same nodes linearize a whole Jaxpr. Not here: the trace (``traces.recording``)
and the transposition of linear programs (``transpose``).

Nodes point from result to operands; nothing points back, so that what no result needs is freed at
once. A node keeps only what its derivative reads:

=============  ===================================  ===============================================
kind           kept                                 pullback
=============  ===================================  ===============================================
elementwise    the operands its partials name       partials applied to the cotangent
linear         operands that are not differentiated the primitive's ``transpose``
multilinear    the other operands                   the primitive's ``transpose``, one at a time
linearize      residuals of the augmented equation  transpose of its linear program
derived        operands and results                 the jvp rule, staged in its tangents, transposed
=============  ===================================  ===============================================

Layer: ``passes``. Reference: Radul et al., You Only Linearize Once, POPL 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from operator import attrgetter
from sys import getrefcount
from typing import Any

import numpy as np

from functrans.errors import NonDifferentiableError
from functrans.ir.avals import PYTHON_SCALARS, ShapedArray, Zero, is_differentiable_dtype
from functrans.ir.jaxpr import Jaxpr
from functrans.ir.primitive import (
    LinearOperand,
    Primitive,
    linear,
    multilinear,
    nondifferentiable,
)
from functrans.ir.source import Captured, resolve
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import (
    CARRIES_MASK,
    Masked,
    add_cotangents,
    materialize,
    plain,
    pull_elementwise,
    pull_masked,
    zeros,
)
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import exact_key, simplify
from functrans.passes.transpose import transpose_linear
from functrans.primitives.slicing import slice_p, slice_update_p
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    moveaxis,
    reduce_sum_p,
    reshape,
    sum_to_shape,
)
from functrans.staging import may_change, stage
from functrans.state import current_config
from functrans.trace import Tracer, aval_of, bind, dtype_of, shape_of

_numbers = count()
_next_number = _numbers.__next__


class Node:
    """What a recorded equation keeps for its derivative.

    Not frozen: creating it is on the path of every eager operation (0.18 us against 0.68 us for a
    frozen dataclass of six fields). Nobody writes to it after creation.

    Attributes:
      primitive: the operation; ``None`` for an input of the traced function.
      params: its static parameters.
      saved: what the pullback reads, by kind; see the module docstring.
      parents: the node of each operand, ``None`` where no derivative flows.
      shape: shape of the result (``None`` for a node with several results).
      dtype: dtype of the result.
      number: increases with creation; the order of the backward pass.
      source: the user's line.
    """

    __slots__ = ("dtype", "number", "params", "parents", "primitive", "saved", "shape", "source")

    def __init__(
        self,
        primitive: Primitive | None,
        params: Mapping[str, Any],
        saved: Any,
        parents: tuple[Node | None, ...],
        shape: Any,
        dtype: Any,
        source: Captured | None,
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.saved = saved
        self.parents = parents
        self.shape = shape
        self.dtype = dtype
        self.number = _next_number()
        self.source = source

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype of the result."""
        return ShapedArray(self.shape, self.dtype)

    def __repr__(self) -> str:
        """``Node(sin: f64[3])``."""
        name = self.primitive.name if self.primitive is not None else "input"
        return f"Node({name}: {self.shape})"


_OUTPUT = Primitive(
    "output",
    impl=lambda *values, index: (values[index],),
    abstract_eval=lambda *avals, index: (avals[index],),
    jvp=linear,
)
"""Marks the node of one result of an equation with several; its parent is the equation's node."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """The linear part of an equation whose primitive has a ``linearize`` rule.

    Attributes:
      jaxpr: takes residuals, then the tangents of the operands in ``targets``; gives the tangents
        of all results.
      targets: positions of the operands whose tangents it takes.
      residuals: values of the first arguments.
    """

    jaxpr: Jaxpr
    targets: tuple[int, ...]
    residuals: tuple[Any, ...]


def input_node(value: Any) -> Node:
    """The node of an input of a traced function."""
    return Node(None, {}, None, (), shape_of(value), dtype_of(value), None)


def kept(value: Any) -> Any:
    """A constant operand that a derivative will read: an ndarray that may change is copied.

    A plain ndarray has no version counter, so that a later write into it could not be seen. A
    read-only view of a writable array changes with it; of a broadcast one only the elements that
    have memory of their own are copied. A tracer of an enclosing trace may be written to before a
    pullback is called.
    """
    if type(value) is not np.ndarray:
        return value._twin() if isinstance(value, Tracer) else value
    if not current_config.get().copy_residuals:
        return value
    if value.flags.writeable:
        return value.copy("K")
    if not may_change(value):
        return value
    own = tuple([slice(None) if stride else slice(0, 1) for stride in value.strides])
    return np.broadcast_to(value[own].copy("K"), value.shape)


def detached(part: Any, whole: Any) -> Any:
    """A small part of a large array as an array of its own.

    As a view, a residual would keep the large array alive; and a loop that reads row i and writes
    row i + 1 could not write in place. The copy has the layout of the view, since a later reshape
    is a view or a copy according to the layout.
    """
    if type(part) is np.ndarray and part.flags.c_contiguous and _SMALL * part.size <= whole.size:
        return part.copy()
    return part


_SMALL = 8


SOLE_REFERENCES = 2
"""``getrefcount(holder[key])`` of an object that only the holder refers to: the holder, the argument.

Not counted on a local variable, since whether that holds a reference depends on the interpreter.
"""


def is_writable(value: Any) -> bool:
    """Whether a value is an array with memory of its own that may be written to."""
    return type(value) is np.ndarray and value.flags.owndata and value.flags.writeable


def record(
    primitive: Primitive,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    parents: tuple[Node | None, ...],
    source: Captured | None,
    is_plain: bool = False,
    keep: Callable[[Any], Any] = kept,
) -> tuple[tuple[Any, ...], tuple[Node | None, ...]]:
    """Evaluate an equation and make the node of each result.

    Args:
      primitive: the operation.
      operands: values (of the enclosing trace).
      params: static parameters.
      parents: node per operand, ``None`` for constants.
      source: the user's line.
      is_plain: no operand is a tracer, so that the dispatch can be left out.
      keep: makes of a constant operand what is saved of it.

    Returns:
      Results, and a node or ``None`` per result.
    """
    rule = primitive.jvp
    is_constant = rule is nondifferentiable or not any(parents)
    if not is_constant and primitive.linearize is not None:
        needs = tuple(parent is not None for parent in parents)
        outs, program = primitive.linearize(needs, operands, **params)
        saved: Any = program
    else:
        if is_plain:
            outs = primitive.impl(*operands, **params)
        else:
            outs = bind(primitive, *operands, **params)
        if is_constant:
            return outs, (None,) * len(outs)
        if rule is linear:
            saved = tuple(
                [
                    _linear_constant(value, keep) if parent is None else None
                    for value, parent in zip(operands, parents, strict=True)
                ]
            )
        elif rule is multilinear:
            saved = _multilinear_residuals(operands, parents, keep)
        else:
            saved = (
                tuple(
                    keep(value) if parent is None else value
                    for value, parent in zip(operands, parents, strict=True)
                ),
                outs,
            )
    if len(outs) == 1:
        (out,) = outs
        try:
            shape, dtype = out.shape, out.dtype
        except AttributeError:
            shape, dtype = shape_of(out), dtype_of(out)
        if not is_differentiable_dtype(dtype):
            return outs, (None,)
        return outs, (Node(primitive, params, saved, parents, shape, dtype, source),)
    avals = tuple(aval_of(out) for out in outs)
    main = Node(primitive, params, saved, parents, None, avals, source)
    nodes = tuple(
        Node(_OUTPUT, {"index": i}, None, (main,), aval.shape, aval.dtype, source)
        if is_differentiable_dtype(aval.dtype)
        else None
        for i, aval in enumerate(avals)
    )
    return outs, nodes


def _linear_constant(value: Any, keep: Callable[[Any], Any]) -> Any:
    """What a jointly linear equation keeps of a constant operand: its tangent, if it has one."""
    if type(value) in PYTHON_SCALARS:
        return type(value)(0) if isinstance(value, (float, complex)) else value
    aval = aval_of(value)
    return zeros(aval) if is_differentiable_dtype(aval.dtype) else keep(value)  # type: ignore[union-attr]


def _multilinear_residuals(
    operands: Sequence[Any], parents: tuple[Node | None, ...], keep: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """Operands that the transposes of the differentiated ones read."""
    wanted = sum(parent is not None for parent in parents)
    return tuple(
        keep(value) if parent is None else (value if wanted > 1 else None)
        for value, parent in zip(operands, parents, strict=True)
    )


# backward ---------------------------------------------------------------------------------------


def _linear_operands(node: Node, targets: Sequence[bool]) -> list[Any]:
    """Operands for a ``transpose`` rule: those in ``targets`` as linear, the others saved."""
    return [
        LinearOperand(parent.aval) if is_target else value  # type: ignore[union-attr]
        for parent, is_target, value in zip(node.parents, targets, node.saved, strict=True)
    ]


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
    if primitive.elementwise is not None:
        *operands, out = node.saved
        return pull_elementwise(primitive, ct, operands, out, node.shape, node.parents, size)
    if primitive is reduce_sum_p:
        return (_pull_sum(node, ct, size),)
    if size is not None:
        return _pull_batched(node, ct, size)
    if type(ct) is Masked and primitive in CARRIES_MASK:
        operands = _linear_operands(node, [parent is not None for parent in node.parents])
        return pull_masked(_transpose(node), ct, node.shape, node.dtype, operands, node.params)
    given = ct if node.shape is None else [ct]
    avals = node.dtype if node.shape is None else [node]
    if isinstance(node.saved, LinearProgram):
        program = node.saved
        cts = tuple([Zero(aval) if c is None else c for c, aval in zip(given, avals, strict=True)])
        pulled = transpose_linear(program.jaxpr, program.residuals, cts, keep_masks=True)
        return _spread(node, program.targets, pulled)
    cts = tuple(
        [
            Zero(aval) if c is None else materialize(c, aval.shape)
            for c, aval in zip(given, avals, strict=True)
        ]
    )
    if primitive.jvp is linear:
        targets = [parent is not None for parent in node.parents]
        return _transpose(node)(cts, _linear_operands(node, targets), **node.params)  # type: ignore[no-any-return]
    if primitive.jvp is multilinear:
        results: list[Any] = [None] * len(node.parents)
        for i in _wanted(node):
            targets = [j == i for j in range(len(node.parents))]
            operands = _linear_operands(node, targets)
            results[i] = _transpose(node)(cts, operands, **node.params)[i]
        return results
    return _pull_derived(node, cts)


def _transpose(node: Node) -> Any:
    """The transpose rule of a node's primitive.

    Raises:
      NonDifferentiableError: the primitive has none.
    """
    primitive = node.primitive
    assert primitive is not None
    if primitive.transpose is None:
        line = resolve(node.source)
        raise NonDifferentiableError(
            f"primitive {primitive.name} has no transpose rule (field transpose is None)"
            f"{f' (at {line})' if line else ''}, so that there is no reverse mode through it; use "
            "ft.jvp, or give it a custom rule (ft.custom_vjp)"
        )
    return primitive.transpose


def _wanted(node: Node) -> list[int]:
    """Positions of the parents that get a cotangent."""
    return [i for i, parent in enumerate(node.parents) if parent is not None]


def _spread(node: Node, positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Values at positions among the parents, ``None`` elsewhere."""
    results: list[Any] = [None] * len(node.parents)
    for position, value in zip(positions, values, strict=True):
        results[position] = value
    return results


def _pull_sum(node: Node, ct: Any, size: int | None) -> Any:
    """The cotangent of a sum for its operand, not yet broadcast."""
    if type(ct) is Masked:
        return Masked(_pull_sum(node, ct.value, size), _pull_sum(node, ct.mask, size))
    shape, axes = node.parents[0].shape, node.params["axes"]  # type: ignore[union-attr]
    narrow = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    if size is not None:
        full = broadcast_to(ct, (size, *node.shape))
        return reshape(full, (size, *narrow))
    if not node.shape and shape_of(ct) == ():
        return ct
    return reshape(broadcast_to(ct, node.shape), narrow)


def _pull_batched(node: Node, ct: Any, size: int) -> list[Any]:
    """Pull a batch of cotangents back: the pullback staged for one of them, then batched."""
    if type(ct) is Masked and node.primitive in CARRIES_MASK:
        shape = (size, *node.shape)
        mask = cast(broadcast_to(ct.mask, shape), node.dtype)
        pairs = zip(_pull_batched(node, ct.value, size), _pull_batched(node, mask, size), strict=True)
        return [None if value is None else Masked(value, on != 0) for value, on in pairs]
    if node.shape is None:
        avals = node.dtype
        given = [None if c is None else plain(c) for c in ct]
    else:
        avals = (node.aval,)
        given = [plain(ct)]
    present = [i for i, c in enumerate(given) if c is not None]
    found: list[int] = []

    def one(*cts: Any) -> list[Any]:
        slots = _fill(len(avals), present, cts)
        pulled = pull(node, slots if node.shape is None else slots[0])
        found.extend(i for i, c in enumerate(pulled) if c is not None and type(c) is not Zero)
        return [plain(pulled[i]) for i in found]

    jaxpr = stage(one, [avals[i] for i in present], "a batched pullback")
    args = [broadcast_to(given[i], (size, *avals[i].shape)) for i in present]
    outs, dims = evaluate_batched(jaxpr, size, args, [0] * len(args))
    return _spread(
        node, found, [_batch_first(out, dim, size) for out, dim in zip(outs, dims, strict=True)]
    )


def _fill(n: int, positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    slots: list[Any] = [None] * n
    for position, value in zip(positions, values, strict=True):
        slots[position] = value
    return slots


def _batch_first(value: Any, dim: int | None, size: int) -> Any:
    """A result with its batch axis in front."""
    if dim is None:
        return broadcast_to(value, (size, *shape_of(value)))
    return moveaxis(value, dim, 0)


def _pull_derived(node: Node, cts: tuple[Any, ...]) -> list[Any]:
    """The pullback derived from the jvp rule: a program of primals, results and cotangents."""
    primals, outs = node.saved
    _jvp_rule(node)
    wanted = tuple(_wanted(node))
    present = tuple(i for i, ct in enumerate(cts) if type(ct) is not Zero)
    jaxpr, found = _derived_pullback(
        node.primitive,  # type: ignore[arg-type]
        _Params(node.params),
        tuple([aval_of(value) for value in primals]),
        tuple([aval_of(value) for value in outs]),
        wanted,
        present,
        current_config.get().safe_where,
    )
    values = evaluate(jaxpr, [*primals, *outs, *(cts[i] for i in present)])
    return _spread(node, [wanted[i] for i in found], values)


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


@lru_cache(maxsize=1024)
def _derived_pullback(
    primitive: Primitive,
    params: _Params,
    in_avals: tuple[Any, ...],
    out_avals: tuple[Any, ...],
    wanted: tuple[int, ...],
    present: tuple[int, ...],
    safe_where: bool,
) -> tuple[Jaxpr, tuple[int, ...]]:
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
      safe_where: the setting in force, which the transpose of a selection in the rule depends on.

    Returns:
      Program ``(*primals, *outs, *cts) -> cotangents``, and which of ``wanted`` it gives.
    """
    n, m = len(in_avals), len(out_avals)
    found: list[int] = []

    def run(*args: Any) -> list[Any]:
        primals, outs = args[:n], args[n : n + m]
        cts: list[Any] = [Zero(aval) for aval in out_avals]
        for i, ct in zip(present, args[n + m :], strict=True):
            cts[i] = ct

        def tangents_out(*given: Any) -> list[Any]:
            tangents: list[Any] = [Zero(aval) for aval in in_avals]
            for i, tangent in zip(wanted, given, strict=True):
                tangents[i] = tangent
            results = primitive.jvp(primals, tuple(tangents), outs, **params.values)  # type: ignore[operator]
            return [zeros(t.aval) if type(t) is Zero else t for t in results]

        tangent_avals = [in_avals[i].strong() for i in wanted]
        linear_jaxpr = stage(tangents_out, tangent_avals, f"jvp of {primitive.name}")
        pulled = transpose_linear(linear_jaxpr, (), cts)
        found.extend(i for i, ct in enumerate(pulled) if type(ct) is not Zero)
        return [pulled[i] for i in found]

    avals = [*in_avals, *out_avals, *(out_avals[i].strong() for i in present)]
    jaxpr = stage(run, avals, f"pullback of {primitive.name}", name=f"pullback_{primitive.name}")
    return simplify(jaxpr), tuple(found)


def _jvp_rule(node: Node) -> Any:
    """The jvp rule of a node's primitive.

    Raises:
      NonDifferentiableError: it has none.
    """
    rule = node.primitive.jvp  # type: ignore[union-attr]
    if not callable(rule):
        line = resolve(node.source)
        raise NonDifferentiableError(
            f"primitive {node.primitive.name} has no derivative rule (field jvp is None)"  # type: ignore[union-attr]
            f"{f' (at {line})' if line else ''}; use ft.stop_gradient or give a custom rule "
            "(ft.custom_jvp)"
        )
    return rule


_number_of = attrgetter("number")


def ordered_nodes(roots: Sequence[Node]) -> list[Node]:
    """All nodes that roots depend on, in order of creation; iterative, for deep graphs."""
    seen = set(roots)
    pending = list(seen)
    while pending:
        for parent in pending.pop().parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return sorted(seen, key=_number_of)


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
        have = cts.get(node)
        cts[node] = ct if have is None else add_cotangents(have, ct)
    nodes = ordered_nodes([node for node, _ in outputs])
    if not keep:
        outputs.clear()
    own: set[Node] = set()
    ct = have = value = None
    with np.errstate(all="ignore"):
        while nodes:
            node = nodes.pop()
            if node.primitive is None:
                continue
            ct = cts.pop(node, None)
            if ct is None:
                continue
            if node.primitive is _OUTPUT:
                main = node.parents[0]
                assert main is not None
                slots = cts.get(main)
                if slots is None:
                    slots = cts[main] = [None] * len(main.dtype)
                slots[node.params["index"]] = ct
                continue
            is_own = node in own
            own.discard(node)
            is_slice = node.primitive is slice_p or node.primitive is slice_update_p
            if is_slice and _pull_slice_in_place(node, ct, is_own, cts, own, size):
                continue
            for parent, value in zip(node.parents, pull(node, ct, size)):  # noqa: B905  # same by construction
                if parent is not None and value is not None and type(value) is not Zero:
                    have = cts.get(parent)
                    cts[parent] = value if have is None else add_cotangents(have, value)
                    own.discard(parent)
    lead = () if size is None else (size,)
    return [None if cts.get(i) is None else materialize(cts[i], (*lead, *i.shape)) for i in inputs]


def _pull_slice_in_place(
    node: Node, ct: Any, is_own: bool, cts: dict[Node, Any], own: set[Node], size: int | None
) -> bool:
    """Pull back through a slice, or a write to one, in place; whether it was done.

    The derivative of n slices of one array would otherwise add n arrays of its size, and that of
    filling an array of n in a loop would copy it n times.

    Args:
      node: of ``slice_p`` or ``slice_update_p``.
      ct: cotangent of its result.
      is_own: whether ``ct`` is a buffer that was made here.
      cts: cotangents of other nodes.
      own: nodes whose cotangent in ``cts`` is a buffer that was made here, and that nothing but
        ``cts`` refers to. Any other is copied before it is written to.
      size: extent of a leading batch axis of the cotangents, or ``None``.
    """
    if not isinstance(ct, (np.ndarray, np.generic)):
        return False
    entries = node.params["index"].entries
    lead: tuple[int, ...] = ()
    if size is not None:
        entries = (slice(None), *entries)
        lead = (size,)
    if node.primitive is slice_p:
        (parent,) = node.parents
        assert parent is not None
        have = cts.get(parent)
        if isinstance(plain(have), Tracer):
            return False
        if have is None:
            have = np.zeros((*lead, *parent.shape), parent.dtype)
            have[entries] = ct
        else:
            if parent not in own:
                have = np.array(np.broadcast_to(plain(have), (*lead, *parent.shape)))
            have[entries] += ct
        cts[parent] = have
        own.add(parent)
        return True
    shape = (*lead, *node.shape)
    if ct.shape != shape or not shape:
        return False
    parent, source = node.parents
    if source is not None:
        slot = np.array(ct[entries])
        if slot.shape != (*lead, *source.shape):
            slot = _sum_to_source(slot, source.shape, size)
        have = cts.get(source)
        cts[source] = slot if have is None else add_cotangents(have, slot)
        own.discard(source)
    if parent is not None:
        if not is_own:
            ct = np.array(ct)
        ct[entries] = 0
        have = cts.get(parent)
        if have is None:
            cts[parent] = ct
            own.add(parent)
        else:
            cts[parent] = add_cotangents(have, ct)
            own.discard(parent)
    return True


def _sum_to_source(slot: Any, shape: tuple[int, ...], size: int | None) -> Any:
    """The cotangent of what was written to a slot, by undoing its broadcast."""
    if size is None:
        return sum_to_shape(slot, shape)
    ones = (1,) * (slot.ndim - 1 - len(shape))
    return sum_to_shape(slot, (size, *ones, *shape)).reshape((size, *shape))


# forward ----------------------------------------------------------------------------------------


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
    if primitive is _OUTPUT:
        return tangents[0][node.params["index"]] if tangents[0] is not None else None
    if primitive.elementwise is not None:
        return _push_elementwise(node, tangents, size)
    if size is not None:
        return _push_batched(node, tangents, size)
    if isinstance(node.saved, LinearProgram):
        program = node.saved
        given = [_filled_tangent(node, i, tangents[i]) for i in program.targets]
        outs = evaluate(program.jaxpr, (*program.residuals, *given))
    elif primitive.jvp is linear:
        operands = [
            value if parent is None else _filled_tangent(node, i, tangents[i])
            for i, (parent, value) in enumerate(zip(node.parents, node.saved, strict=True))
        ]
        outs = list(bind(primitive, *operands, **node.params))
        if primitive is slice_p:
            outs = [detached(outs[0], operands[0])]
    elif primitive.jvp is multilinear:
        outs = []
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                operands = [tangent if j == i else v for j, v in enumerate(node.saved)]
                term = bind(primitive, *operands, **node.params)
                outs = [a + b for a, b in zip(outs, term, strict=True)] if outs else list(term)
    else:
        primals, results = node.saved
        filled = tuple(
            Zero(aval_of(p)) if t is None else t  # type: ignore[arg-type]
            for p, t in zip(primals, tangents, strict=True)
        )
        outs = list(_jvp_rule(node)(primals, filled, results, **node.params))
        outs = [None if type(t) is Zero else t for t in outs]
    return outs if node.shape is None else outs[0]


def _push_elementwise(node: Node, tangents: Sequence[Any], size: int | None) -> Any:
    """Sum of partials applied to tangents; a batch axis in front broadcasts by itself."""
    *operands, out = node.saved
    family = node.primitive.elementwise  # type: ignore[union-attr]
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
        else:
            pushed = partial(tangent, *operands, out)
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

    def one(*given: Any) -> list[Any]:
        pushed = push(node, _fill(len(tangents), present, given))
        outs = [pushed] if node.shape is not None else pushed
        count_outs.append(len(outs))
        found.extend(i for i, t in enumerate(outs) if t is not None)
        return [outs[i] for i in found]

    jaxpr = stage(one, [node.parents[i].aval for i in present], "a batched pushforward")  # type: ignore[union-attr]
    args = [tangents[i] for i in present]
    values, dims = evaluate_batched(jaxpr, size, args, [0] * len(args))
    outs = _fill(
        count_outs[0],
        found,
        [_batch_first(v, dim, size) for v, dim in zip(values, dims, strict=True)],
    )
    return outs if node.shape is None else outs[0]


def _filled_tangent(node: Node, i: int, tangent: Any) -> Any:
    """A tangent that a rule needs as an array."""
    return zeros(node.parents[i].aval) if tangent is None else tangent  # type: ignore[union-attr]


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
    for node in (*(p for node in nodes for p in node.parents), *outputs):
        if node is not None:
            readers[node] = readers.get(node, 0) + 1
    with np.errstate(all="ignore"):
        for node in nodes:
            if node.primitive is None:
                continue
            is_update = node.primitive is slice_update_p
            if not (is_update and _push_update_in_place(node, tangents, readers, size)):
                given = [None if p is None else tangents.get(p) for p in node.parents]
                if any([t is not None for t in given]):
                    tangents[node] = push(node, given, size)
                del given
            for p in node.parents:
                if p is not None:
                    readers[p] -= 1
                    if not readers[p]:  # a tangent goes after its last use
                        tangents.pop(p, None)
    return [None if node is None else tangents.get(node) for node in outputs]
