"""Operations that are several equations, recorded as one node with torch's name.

Here: ``composite`` (evaluates the equations and makes their node), ``CompositeNode``, and names of
nodes that are one equation (``named``, ``alias``). Not here: the operations themselves
(``autograd.methods``), how one equation is recorded (``autograd.recording``), composites whose
program is kept from call to call (``autograd.programs``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.engine import run_backward
from functrans.autograd.kinks import PIECEWISE_LINEAR
from functrans.autograd.labels import SAVES_NOTHING
from functrans.autograd.modes import modes
from functrans.autograd.nodes import COMPOSITE, AliasNode, GraphNode
from functrans.autograd.promotion import with_default
from functrans.autograd.recording import (
    IN_ROWS,
    PERMANENT,
    enter_session,
    guard_of,
    in_rows,
    node_of,
    note_node,
    refuse_inference,
    sizes_differ,
    unsaved_guard,
)
from functrans.autograd.residuals import (
    Guard,
    Packed,
    again,
    lies_in,
    map_residuals,
    modified,
    pack_tensor,
)
from functrans.autograd.tensors import Tensor
from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.boundary import cause
from functrans.core.dispatch import Tracer, bind, dtype_of, owner, shape_of, tracing
from functrans.core.jaxpr import Jaxpr
from functrans.core.quiet import quietly
from functrans.core.source import capture
from functrans.core.values import Array
from functrans.errors import ConcretizationError
from functrans.passes.cotangents import materialize
from functrans.passes.nodes import OUTPUT, LinearProgram, Node, input_node, kept, ordered_nodes
from functrans.passes.pullback import pull_back, read_by
from functrans.passes.recording import RecordingTrace, RecordingTracer
from functrans.passes.staging import stage
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.structural import cast, copy_p

_TRUTH = np.dtype(bool)
_SINGLE = np.dtype(np.float32)


class CompositeNode(GraphNode):
    """Several equations as one node.

    Attributes:
      function: the operation on tensors, for derivatives of derivatives.
      operands: its operands, as values.
      operand_guards: of all operands that are tensors, for derivatives of derivatives.
      inner: nodes of the operands and of the results among the equations.
    """

    function: Any = None
    operands: Any = ()
    operand_guards: Sequence[Guard] = ()
    inner: Any = None
    packed: Any = np.ndarray
    """What goes to a pack hook."""
    packs_operands = True
    """Whether all operands do, not only those that are residuals."""

    def free(self) -> None:
        """Give residuals up; of a linear operation only the values of its operands."""
        if self.name() in SAVES_NOTHING and self.reads_nothing():
            self.operands = [_without_memory(x) for x in self.operands]
            self.guards = self.operand_guards = ()
            return
        self.is_freed = True
        self.inner = self.function = None
        self.operands = self.guards = self.operand_guards = ()

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Pull a cotangent back through the equations."""
        self.residuals()
        cts = [ct] if self.shape is not None else ct
        if not records or self.is_linear():
            starts, ends = self.unpacked_inner() if self.is_packed else self.inner
            pairs = [(n, c) for n, c in zip(ends, cts, strict=True) if c is not None and n]
            found = pull_back(pairs, [node for node in starts if node is not None], size=size)
            remaining = iter(found)
            return [None if node is None else next(remaining) for node in starts]
        for guard in self.operand_guards:
            if guard.storage.version != guard.version:
                raise modified(guard, self)
        aliases = [
            None if p is None else AliasNode(COMPOSITE, {}, None, (p,), p.shape, p.dtype, None)
            for p in self.parents
        ]
        operands = [
            again(x, alias, self.operand_guards, None)
            for x, alias in zip(self.operands, aliases, strict=True)
        ]
        results = self.function(*operands)
        results = results if isinstance(results, tuple) else (results,)
        lead = () if size is None else (size,)
        roots = [
            (r._node, _conjugated(_as_tensor(materialize(c, (*lead, *r.shape)))))
            for r, c in zip(results, cts, strict=True)
            if c is not None and r._node is not None
        ]
        wanted = [alias for alias in aliases if alias is not None]
        gradients = iter(
            run_backward(roots, wanted, accumulate=False, keeps=True, records=True, size=size)
        )
        return [None if alias is None else _conjugated(next(gradients)) for alias in aliases]

    def read(self) -> Sequence[Any]:
        """What the pullbacks of the equations read."""
        if self.inner is None:
            return super().read()
        ends = [end for end in self.inner[1] if end is not None]
        return [x for node in ordered_nodes(ends) for x in read_by(node)]

    def is_linear(self) -> bool:
        """Whether no derivative of the equations reads what depends on the operands."""
        ends = [end for end in self.inner[1] if end is not None] if self.inner else []
        depends = not ends  # nothing is known of a program's equations

        def note(value: Array | complex, origin: Node | None) -> None:
            nonlocal depends
            if value is not None and origin is not None:
                depends = True

        for node in ordered_nodes(ends):
            if isinstance(node.saved, LinearProgram):
                return False
            if node.saved is not None:
                map_residuals(node.saved, note, node)
        return not depends

    def reads_nothing(self) -> bool:
        """Whether its pullback reads no operand."""
        return self.is_linear()

    def keep_operand(self, x: Tensor) -> None:
        """Keep the value of an operand that is about to be written to, for second derivatives."""
        value = x._value
        if not isinstance(value, Tracer) and any(value is operand for operand in self.operands):
            copy = np.array(value)
            self.operands = [copy if value is operand else operand for operand in self.operands]
        self.operand_guards = [
            guard for guard in self.operand_guards if guard.storage is not x._storage
        ]

    def subprogram(self) -> Jaxpr | None:
        """The operation as a program of the operands that are arrays, if they are at hand."""
        operands = self.operands
        if self.function is None or any(type(x) is Packed for x in operands):
            return None
        places = [i for i, x in enumerate(operands) if hasattr(x, "shape")]

        def flat(*args: object) -> list[Any]:
            full = list(operands)
            for i, arg in zip(places, args, strict=True):
                full[i] = arg
            outs = self.function(*full)
            return list(outs) if isinstance(outs, tuple) else [outs]

        avals = [ShapedArray(operands[i].shape, operands[i].dtype) for i in places]
        try:
            return stage(flat, avals, self.label, name=self.label)
        except ConcretizationError:  # it looks at values
            return None

    def pack_residuals(
        self,
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
        operands: Sequence[Any],
        results: Sequence[Tensor],
    ) -> None:
        """Hand the residuals of the equations and the operands to a pack hook, each array once."""
        known: dict[int, Any] = {}
        tensors = [x for x in (*operands, *results) if isinstance(x, Tensor)]
        follows = any(x._follows for x in tensors)

        def one(value: object) -> Any:
            if not isinstance(value, self.packed):
                return value
            if id(value) not in known:
                tensor = Tensor.of(value)
                tensor._follows = follows
                for x in tensors:
                    if lies_in(x._value, [value]):
                        tensor._storage = x._stored()
                known[id(value)] = pack_tensor(tensor, pack, unpack, self.name(), self.source)
            return known[id(value)]

        self.replace_residuals(one)
        if self.packs_operands:
            self.operands = [one(value) for value in self.operands]
            self.operand_guards = ()
        else:
            self.operands = [known.get(id(value), value) for value in self.operands]
        self.note_packed(pack)
        self.guards = ()

    def replace_residuals(self, function: Callable[[Any], Any]) -> None:
        """Put what a function makes of each residual of the equations in its place."""
        starts, ends = self.inner
        self.inner = _mapped_graph(starts, ends, function)

    def unpacked_inner(self) -> tuple[list[Any], list[Any]]:
        """Copies of the inner nodes with their residuals; each array is unpacked once."""
        known: dict[int, Any] = {}

        def one(value: Any) -> Any:
            if type(value) is not Packed:
                return value
            if id(value) not in known:
                known[id(value)] = value.value()
            return known[id(value)]

        starts, ends = self.inner
        return _mapped_graph(starts, ends, one)


def _mapped_graph(
    starts: Sequence[Any], ends: Sequence[Any], function: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """A copy of recorded equations, with residuals replaced.

    Args:
      starts: input nodes, or ``None``.
      ends: nodes of the results, or ``None``.
      function: from residual to residual.
    """
    copies: dict[Any, Any] = {None: None}
    for node in ordered_nodes([end for end in ends if end is not None]):
        copies[node] = copy = Node(
            node.primitive,
            node.params,
            _mapped(node.saved, function),
            tuple([copies[parent] for parent in node.parents]),
            node.shape,
            node.dtype,
            node.source,
        )
        copy.number = node.number
    for start in starts:
        copies.setdefault(start, start)
    return [copies[start] for start in starts], [copies[end] for end in ends]


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor.of(x)


def _conjugated(x: Tensor) -> Any:
    """A cotangent as a gradient, or the other way round."""
    return x if x is None or x.dtype.kind != "c" else conjugate(x)


def _mapped(saved: Any, function: Callable[[Any], Any]) -> Any:
    """Residuals, each replaced by a function of it."""
    if type(saved) in (list, tuple):
        return type(saved)([_mapped(item, function) for item in saved])
    if isinstance(saved, LinearProgram):
        return LinearProgram(saved.jaxpr, saved.targets, _mapped(saved.residuals, function))
    return function(saved)


def composite(label: str, function: Callable[..., Any], *operands: Any) -> Tensor:
    """Apply a function that is several equations, as one node.

    Args:
      label: torch's name of the operation, without ``Backward0``.
      function: of tensors, arrays or tracers alike, made of functrans operations; returns an array
        (for ``several``, a tuple of arrays).
      *operands: tensors, arrays, numbers.
    """
    result: Tensor
    try:
        if not modes.observers:
            result = _composite(label, function, operands)
            return result
        ends = [observer(label, operands) for observer in modes.observers]
        try:
            result = _composite(label, function, operands)
        finally:
            for end in reversed(ends):
                end()
    except ValueError as error:
        clearer = sizes_differ(error, operands)
        if clearer is None:
            raise
        raise clearer from cause(error)
    return result


several: Callable[..., tuple[Tensor, ...]] = composite  # type: ignore[assignment]  # by its function
"""``composite`` of a function with several results: a tuple of tensors."""


def _made(results: Any, operands: tuple[Any, ...]) -> Any:
    """Results as tensors, copied where a function gave back an operand: a result is always new."""
    if isinstance(results, tuple):
        return tuple([_made(result, operands) for result in results])
    if not isinstance(results, Tracer):
        return _result(results, None, [x for x in operands if isinstance(x, Tensor)])
    is_operand = any(results is x for x in operands) and isinstance(results, Tensor)
    return bind(copy_p, results)[0] if is_operand else results


def _without_memory(x: Any) -> Any:
    """What has the shape and dtype of an array, where its values are not read."""
    return np.broadcast_to(x.dtype.type(0), x.shape) if isinstance(x, np.ndarray) else x


class _Equations(RecordingTrace):
    """Records the equations of an operation of the imperative graph, outside of all programs."""

    __slots__ = ()
    is_outermost = True


def rounded(function: Callable[..., Any], operands: Sequence[Any]) -> Callable[..., Any]:
    """The function; of bfloat16 one that computes in single precision and rounds the results once.

    NumPy has no common dtype of bfloat16 and Python's numbers but single precision.
    """
    floats = {x.dtype for x in operands if getattr(x, "dtype", _TRUTH).kind in "fcV"}
    if len(floats) != 1 or next(iter(floats)).kind != "V":
        return function
    (half,) = floats

    def widened(x: Any) -> Any:
        return cast(x, _SINGLE) if getattr(x, "dtype", _TRUTH) == half else x

    def narrow(out: Any) -> Any:
        return cast(out, half) if dtype_of(out) == _SINGLE else out

    def wide(*xs: Any, **static: object) -> Any:
        outs = function(*map(widened, xs), **static)
        return tuple(map(narrow, outs)) if isinstance(outs, tuple) else narrow(outs)

    return wide


def _composite(label: str, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    tensors = [x for x in operands if isinstance(x, Tensor)]
    for x in tensors:
        if x._value.dtype.kind == "V":
            function = rounded(function, operands)
            break
    enter_session(*tensors)
    trace = owner(operands)
    if trace is not PERMANENT and trace is not None:
        results = _made(function(*operands), operands)
        if modes.session is not None and label in IN_ROWS:
            modes.session.put_in_rows(results)
        return _marked(results, label) if label in PIECEWISE_LINEAR else results
    nodes = [node_of(x) if isinstance(x, Tensor) else None for x in operands]
    values = [x._value if isinstance(x, Tensor) else x for x in operands]
    if not modes.grad or not any(nodes):
        return _wrapped(_owned(quietly(function, *values), values, label), [], tensors)
    inner = _Equations(label)
    with tracing(inner):
        starts = [
            None if node is None else input_node(v) for node, v in zip(nodes, values, strict=True)
        ]
        outs = quietly(
            function,
            *[
                v if start is None else RecordingTracer(inner, v, start)
                for v, start in zip(values, starts, strict=True)
            ],
        )
    many = isinstance(outs, tuple)
    flat = outs if many else (outs,)
    results = _owned(
        tuple([out._value if isinstance(out, RecordingTracer) else out for out in flat]),
        values,
        label,
    )
    ends = [out._node if isinstance(out, RecordingTracer) else None for out in flat]
    if not any(ends):
        return _wrapped(results if many else results[0], [], tensors)
    avals = tuple([ShapedArray(shape_of(r), np.asarray(r).dtype) for r in results])
    node = CompositeNode(
        COMPOSITE, {}, None, tuple(nodes), None if many else avals[0].shape,
        avals if many else avals[0].dtype, capture(),
    )  # fmt: skip
    node.label = label
    node.operands = [
        value if isinstance(x, Tensor) else kept(value)
        for x, value in zip(operands, values, strict=True)
    ]
    node.function, node.inner = function, (starts, ends)
    node.operand_guards = [unsaved_guard(x) for x in tensors]
    held = _held_by([end for end in ends if end is not None])
    guards = [guard for guard in node.operand_guards if lies_in(guard.value, held)]
    if any(x._inference and lies_in(x._value, held) for x in tensors):
        refuse_inference()
    if many:
        found = _wrapped(
            tuple(results),
            [
                None
                if end is None or not is_differentiable_dtype(aval.dtype)
                else GraphNode(
                    OUTPUT, {"index": i}, None, (node,), aval.shape, aval.dtype, node.source
                )
                for i, (end, aval) in enumerate(zip(ends, avals, strict=True))
            ],
            tensors,
        )
    else:
        found = with_default(Tensor.of(results[0], node), tensors)
    made = found if many else (found,)
    guards.extend([guard_of(x, node.name()) for x in made if lies_in(x._value, held)])
    node.guards = guards
    if modes.is_special:
        note_node(node, operands, made)
    return found


def _owned(outs: object, operands: Sequence[Any], label: str) -> Any:
    """Results in memory of their own: a view of an operand would be written to unnoticed."""
    if isinstance(outs, tuple):
        return tuple([_owned(out, operands, label) for out in outs])
    if type(outs) is not np.ndarray:
        return outs
    if not outs.flags.writeable:
        return outs.copy()
    if outs.flags.owndata:
        is_operand = any(outs is x for x in operands)
        return outs.copy() if is_operand else in_rows(outs, operands, label)
    is_shared = any(type(x) is np.ndarray and np.may_share_memory(outs, x) for x in operands)
    return outs.copy() if is_shared else in_rows(outs, operands, label)


def _wrapped(outs: object, nodes: Sequence[Any], tensors: Sequence[Tensor]) -> Any:
    if isinstance(outs, tuple):
        nodes = nodes or [None] * len(outs)
        return tuple([_result(o, n, tensors) for o, n in zip(outs, nodes, strict=True)])
    return _result(outs, None, tensors)


def _result(value: Any, node: GraphNode | None, tensors: Sequence[Tensor]) -> Tensor:
    result = Tensor.of(value if hasattr(value, "shape") else np.asarray(value), node)
    if modes.inference:
        result._inference = True
    return with_default(result, tensors)


def _marked(results: Any, label: str) -> Any:
    """Results of equations with nodes of torch's name, by which ``kinks`` knows them."""
    if isinstance(results, tuple):
        return tuple([_marked(result, label) for result in results])
    if not isinstance(results, Tensor) or node_of(results) is None:
        return results
    return named(alias(results), label)


def _held_by(ends: Sequence[Any]) -> list[Any]:
    """The arrays that nodes keep."""
    held: dict[int, Any] = {}
    for node in ordered_nodes(ends):
        _note_held(node.saved, held)
    return list(held.values())


def _note_held(saved: Any, held: dict[int, Any]) -> None:
    """Note the arrays among residuals by identity; no closure, which would be a cycle."""
    if type(saved) in (list, tuple):
        for item in saved:
            _note_held(item, held)
    elif isinstance(saved, LinearProgram):
        _note_held(saved.residuals, held)
    elif saved is not None:
        held[id(saved)] = saved


def named(result: Tensor, label: str) -> Tensor:
    """A result whose node goes by torch's name of the operation."""
    node = result._node if isinstance(result, Tensor) else None
    if node is not None:
        (node.parents[0] if node.primitive is OUTPUT else node).label = label
    return result


def alias(x: Tensor) -> Tensor:
    """The same value as another tensor with a node of its own."""
    node = node_of(x)
    if node is not None and modes.grad:
        node = AliasNode(COMPOSITE, {}, None, (node,), x._value.shape, x._value.dtype, capture())
    result = Tensor.of(x._value, node, x.__dict__.get("_trace"))
    result._follows = x._follows
    result._storage = x._stored()
    return result
