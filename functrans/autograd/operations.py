"""What facade operations are made of: promotion, composites, views, writes.

Here: ``promoted`` (torch's rules of dtypes), ``composite`` (several equations as one node),
``view`` and ``write`` (tensors that share memory). Not here: the operations themselves
(``autograd.methods``), how one equation is recorded (``autograd.recording``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.engine import run_backward
from functrans.autograd.hooks import move_retain
from functrans.autograd.modes import modes
from functrans.autograd.nodes import (
    GraphNode,
    Guard,
    Packed,
    edge_of,
    map_residuals,
    modified,
    pack_tensor,
    torch_type,
)
from functrans.autograd.recording import (
    PERMANENT,
    enter_session,
    follows,
    guard_of,
    lies_in,
    node_of,
    note_node,
)
from functrans.autograd.tensors import IN_CUSTOM_FUNCTION, Tensor, View
from functrans.control.custom_rules import stop_gradient
from functrans.errors import ConcretizationError
from functrans.indexing import updated
from functrans.ir.avals import ShapedArray, is_differentiable_dtype
from functrans.ir.jaxpr import Jaxpr
from functrans.ir.primitive import Primitive, linear
from functrans.ir.source import capture
from functrans.passes.cotangents import materialize
from functrans.passes.nodes import OUTPUT, LinearProgram, Node, input_node, ordered_nodes
from functrans.passes.pullback import pull_back
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.elementwise import where
from functrans.primitives.structural import broadcast_to, cast, reshape
from functrans.staging import stage
from functrans.trace import Tracer, inner_trace, owner, shape_of, tracing
from functrans.traces.recording import RecordingTrace, RecordingTracer
from functrans.transforms.vectorize import vmap

# dtypes ------------------------------------------------------------------------------------------

default_dtype = np.dtype(np.float64)
"""Of Python floats; ``functrans.compat.torch`` has its own."""


class TorchDefaults:
    """Settings of ``functrans.compat.torch``, for the process.

    Attributes:
      dtype: of Python floats there, and of floating results from integer tensors made there.
    """

    dtype = np.dtype(np.float32)


torch_defaults = TorchDefaults()


def default_of(*operands: Any) -> np.dtype:
    """The floating dtype that integers become: by the namespace in which they were made."""
    return torch_defaults.dtype if any(map(follows, operands)) else default_dtype


def with_default(result: Tensor, operands: Sequence[Any]) -> Tensor:
    """A result of integers that remembers what floating dtype its operands would become."""
    if result.dtype.kind in "iub" and any(map(follows, operands)):
        result._follows = True
    return result


_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
"""Kinds of numbers, lowest first; bfloat16 is of kind V."""


def result_dtype(*operands: Any) -> np.dtype:
    """Torch's common dtype: tensors with axes count before those without, these before numbers.

    Args:
      *operands: tensors, arrays, Python numbers.

    Reference: PyTorch documentation, "Tensor Attributes", type promotion.
    """
    best: list[np.dtype | None] = [None, None, None]
    for x in operands:
        dtype = getattr(x, "dtype", None)
        if dtype is None:
            rank, dtype = 2, _NUMBERS[type(x)] or _complex_or_default(x, operands)
        else:
            rank = 0 if shape_of(x) else 1
        have = best[rank]
        best[rank] = dtype if have is None else _wider(have, dtype)
    found: np.dtype | None = None
    for dtype in best:
        if dtype is None:
            continue
        if found is None:
            found = dtype
        elif _CATEGORY[dtype.kind] > _CATEGORY[found.kind]:
            if _CATEGORY[dtype.kind] == 3 and found.kind == "f":
                found = np.result_type(found, np.complex64)
            else:
                found = dtype
    assert found is not None
    return found


def _wider(a: np.dtype, b: np.dtype) -> np.dtype:
    """The common dtype of two of one rank: the kind counts first, then the size."""
    kinds = _CATEGORY[a.kind], _CATEGORY[b.kind]
    if kinds[0] == kinds[1] or kinds in ((2, 3), (3, 2)):
        return np.promote_types(a, b)
    return a if kinds[0] > kinds[1] else b


_NUMBERS: dict[type, Any] = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: None,
    complex: None,
}


def _complex_or_default(x: Any, operands: Sequence[Any]) -> np.dtype:
    default = default_of(*operands)
    return np.result_type(default, np.complex64) if type(x) is complex else default


def to_dtype(x: Any, dtype: np.dtype) -> Any:
    """A tensor of another dtype; the same where it has it already."""
    return x if x.dtype == dtype else cast(x, dtype)


def as_tensor(x: Any, like: Tensor) -> Any:
    """A plain array among operands as a tensor; tensors and numbers as they are.

    A traced array is one for a tensor of a trace inside its own; else the operation is the array's.
    """
    if isinstance(x, (np.ndarray, np.generic)):
        return like._trace.lift(x)
    if isinstance(x, Tracer) and not isinstance(x, Tensor):
        trace = like._trace
        return trace.lift(x) if inner_trace(trace, x._trace) is trace else x
    return x


# composites --------------------------------------------------------------------------------------

COMPOSITE = Primitive(
    "composite",
    impl=lambda *operands: operands,
    abstract_eval=lambda *avals: avals,
    jvp=linear,
)
"""Marks the node of an operation that is several equations."""


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

    def free(self) -> None:
        """Give residuals up."""
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
        values = [x.value() if type(x) is Packed else x for x in self.operands]
        operands = [
            value if alias is None else Tensor.of(value, alias)
            for value, alias in zip(values, aliases, strict=True)
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

    def is_linear(self) -> bool:
        """Whether no derivative of the equations reads what depends on the operands."""
        ends = [end for end in self.inner[1] if end is not None] if self.inner else []
        depends = not ends  # nothing is known of a program's equations

        def note(value: Any, origin: Any) -> None:
            nonlocal depends
            if value is not None and origin is not None:
                depends = True

        for node in ordered_nodes(ends):
            if isinstance(node.saved, LinearProgram):
                return False
            if node.saved is not None:
                map_residuals(node.saved, note, node)  # type: ignore[arg-type]  # reads what all nodes have
        return not depends

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

        def flat(*args: Any) -> list[Any]:
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

        def one(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return value
            if id(value) not in known:
                tensor = Tensor.of(value)
                for x in tensors:
                    if lies_in(x._value, [value]):
                        tensor._storage = x._stored()
                known[id(value)] = pack_tensor(tensor, pack, unpack)
            return known[id(value)]

        starts, ends = self.inner
        self.inner = _mapped_graph(starts, ends, one)
        self.operands = [one(value) for value in self.operands]
        self.is_packed = True
        self.guards = self.operand_guards = ()

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


def _conjugated(x: Any) -> Any:
    """A cotangent as a gradient, or the other way round."""
    return x if x is None or x.dtype.kind != "c" else conjugate(x)


def _mapped(saved: Any, function: Callable[[Any], Any]) -> Any:
    """Residuals, each replaced by a function of it."""
    if type(saved) in (list, tuple):
        return type(saved)([_mapped(item, function) for item in saved])
    if isinstance(saved, LinearProgram):
        return LinearProgram(saved.jaxpr, saved.targets, _mapped(saved.residuals, function))
    return function(saved)


class AliasNode(GraphNode):
    """The same value under another node."""

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """The cotangent as it is."""
        return [ct]


def composite(label: str, function: Callable[..., Any], *operands: Any) -> Any:
    """Apply a function that is several equations, as one node.

    Args:
      label: torch's name of the operation, without ``Backward0``.
      function: of tensors, arrays or tracers alike, made of functrans operations; returns an array
        or a tuple of arrays.
      *operands: tensors, arrays, numbers.
    """
    if not modes.observers:
        return _composite(label, function, operands)
    ends = [observer(label, operands) for observer in modes.observers]
    try:
        return _composite(label, function, operands)
    finally:
        for end in reversed(ends):
            end()


def _composite(label: str, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    tensors = [x for x in operands if isinstance(x, Tensor)]
    enter_session(*tensors)
    trace = owner(operands)
    if trace is not PERMANENT and trace is not None:
        return function(*operands)
    nodes = [node_of(x) if isinstance(x, Tensor) else None for x in operands]
    values = [x._value if isinstance(x, Tensor) else x for x in operands]
    if not modes.grad or not any(nodes):
        return _wrapped(_owned(function(*values), values), [], tensors)
    inner = RecordingTrace(label)
    with tracing(inner):
        starts = [
            None if node is None else input_node(v) for node, v in zip(nodes, values, strict=True)
        ]
        outs = function(
            *[
                v if start is None else RecordingTracer(inner, v, start)
                for v, start in zip(values, starts, strict=True)
            ]
        )
    many = isinstance(outs, tuple)
    flat = outs if many else (outs,)
    results = _owned(
        tuple([out._value if isinstance(out, RecordingTracer) else out for out in flat]), values
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
    node.function, node.operands, node.inner = function, values, (starts, ends)
    node.operand_guards = [guard_of(x) for x in tensors]
    held = _held_by([end for end in ends if end is not None])
    guards = [guard for guard in node.operand_guards if lies_in(guard.value, held)]
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
        found = Tensor.of(results[0], node)
    made = found if many else (found,)
    guards.extend([guard_of(x, node.name()) for x in made if lies_in(x._value, held)])
    node.guards = guards
    if modes.is_special:
        note_node(node, operands, made)
    return found


def _owned(outs: Any, operands: Sequence[Any]) -> Any:
    """Results in memory of their own: a view of an operand would be written to unnoticed."""
    if isinstance(outs, tuple):
        return tuple([_owned(out, operands) for out in outs])
    if type(outs) is not np.ndarray:
        return outs
    if not outs.flags.writeable:
        return outs.copy()
    if outs.flags.owndata:
        return outs.copy() if any(outs is x for x in operands) else outs
    is_shared = any(type(x) is np.ndarray and np.may_share_memory(outs, x) for x in operands)
    return outs.copy() if is_shared else outs


def _wrapped(outs: Any, nodes: Sequence[Any], tensors: Sequence[Tensor]) -> Any:
    if isinstance(outs, tuple):
        nodes = nodes or [None] * len(outs)
        return tuple([_result(o, n, tensors) for o, n in zip(outs, nodes, strict=True)])
    return _result(outs, None, tensors)


def _result(value: Any, node: Any, tensors: Sequence[Tensor]) -> Tensor:
    result = Tensor.of(value if hasattr(value, "shape") else np.asarray(value), node)
    if modes.inference:
        result._inference = True
    return with_default(result, tensors)


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
        node = AliasNode(COMPOSITE, {}, None, (node,), x.shape, x.dtype, capture())
    return Tensor.of(x._value, node, x.__dict__.get("_trace"))


# views -------------------------------------------------------------------------------------------


def view(
    label: str,
    x: Tensor,
    step: Callable[[Any], Any],
    memory: Callable[[np.ndarray], np.ndarray],
) -> Tensor:
    """A tensor that shares the memory of another one.

    Args:
      label: torch's name of the operation.
      x: the other one.
      step: the view as a functrans operation on tensors.
      memory: the view as NumPy has it.

    Returns:
      The view; a tensor of its own where NumPy cannot share.
    """
    enter_session(x)
    if isinstance(x._value, Tracer):
        return _traced_view(label, x, step, memory)
    own = x._memory()
    value = memory(own)
    node = node_of(x)
    is_recorded = node is not None and modes.grad
    result = _labelled(step, label)(x) if is_recorded else Tensor.of(value)
    result._follows = x._follows
    result._value = value
    if not np.may_share_memory(value, own):
        return result
    storage = x._stored()
    result._storage = storage
    how = x._view
    base, steps = (x, ()) if how is None else (how.base, how.steps)
    both = _on_either(_labelled(step, label), memory)
    result._view = View(base, (*steps, both), storage.version, label)
    result._view.is_unrecorded = not modes.grad or (how is not None and how.is_unrecorded)
    result._inference = x._inference
    return result


def _traced_view(
    label: str,
    x: Tensor,
    step: Callable[[Any], Any],
    memory: Callable[[np.ndarray], np.ndarray],
) -> Tensor:
    """A view whose value is traced: writes to it are written to its base, functionally."""
    result: Tensor = _labelled(step, label)(x)
    storage = x._stored()
    result._storage = storage
    how = x._view
    base, steps = (x, ()) if how is None else (how.base, how.steps)
    both = _on_either(_labelled(step, label), memory)
    result._view = View(base, (*steps, both), storage.version, label)
    return result


def detached(x: Tensor) -> Tensor:
    """The memory of a tensor outside of the graph; a write to either is seen in the other."""
    enter_session(x)
    trace = x.__dict__.get("_trace")
    value = x._value
    if not isinstance(value, Tracer):
        return Tensor.of(x._memory(), None, trace)
    result = Tensor.of(stop_gradient(value), None, trace)
    how = x._view
    base, steps = (x, ()) if how is None else (how.base, how.steps)
    storage = result._storage = x._stored()
    result._view = View(base, steps, storage.version, "Detach", is_detached=True)
    return result


def _from_other_trace(x: Tensor, new: Tensor) -> Any:
    """The value to be written, where the tensors belong to different traces.

    Raises:
      RuntimeError: a tensor would get a value of a transform inside of its own trace.
    """
    trace: Any = new._trace
    if inner_trace(x._trace, trace) is x._trace:  # a constant, whose derivatives are kept below
        is_constant = node_of(new) is None and not isinstance(new._value, Tracer)
        return new._value if is_constant else new
    if not trace.keeps_account or x._view is not None:
        raise RuntimeError(
            f"a tensor made outside of {trace.label} is being modified inplace by one that belongs "
            "to it; the write would outlive the transform. Write to a copy (x = x.clone()) made "
            "inside, or use the operation without the underscore."
        )
    x._trace = trace  # it gets a tangent
    trace.note(x)
    return new._value


def _write_traced(x: Tensor, value: Any) -> None:
    """Give a tensor, and the base that it is a view of, another traced value."""
    x._value = value
    how = x._view
    if how is None:
        return
    base = how.base
    if not how.steps:
        base._value = value
        return
    places = np.arange(int(np.prod(base.shape, dtype=np.int64))).reshape(base.shape)
    for step in how.steps:
        places = step(places)
    flat = reshape(base._value, (int(np.prod(base.shape, dtype=np.int64)),))
    base._value = reshape(updated(flat, places, value), base.shape)


def views(
    label: str,
    x: Tensor,
    parts: Sequence[tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]],
) -> tuple[Tensor, ...]:
    """Several tensors that share the memory of another one, as results of one node.

    Args:
      label: torch's name of the operation.
      x: the other one.
      parts: step and memory of each, as ``view`` takes them.
    """
    steps = [step for step, _ in parts]
    results: tuple[Tensor, ...] = composite(label, lambda v: tuple([s(v) for s in steps]), x)
    if isinstance(x._value, Tracer):
        return results
    own, storage, how = x._memory(), x._stored(), x._view
    base, before = (x, ()) if how is None else (how.base, how.steps)
    for result, (step, memory) in zip(results, parts, strict=True):
        result._value = memory(own)
        result._storage = storage
        both = _on_either(step, memory)
        result._view = View(base, (*before, both), storage.version, label, is_multiple=True)
        result._inference = x._inference
    return results


def _labelled(step: Callable[[Any], Any], label: str) -> Callable[[Any], Any]:
    """A view whose node goes by torch's name, also when it is made anew."""

    def labelled(part: Any) -> Any:
        result = step(part)
        if not isinstance(result, Tensor):
            return result
        return named(alias(result) if result is part else result, label)

    return labelled


def _on_either(
    step: Callable[[Any], Any], memory: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Any], Any]:
    """A view as a function of arrays and of tensors."""

    def both(part: Any) -> Any:
        return memory(part) if isinstance(part, np.ndarray) else step(part)

    return both


class CopySlices(GraphNode):
    """The base of a view after the view was written to.

    Attributes:
      region: from an array of the base's shape to the part that was written to.
    """

    label = "CopySlices"
    region: Any = None

    def name(self) -> str:
        """``CopySlices``."""
        return "CopySlices"

    def subprogram(self) -> Jaxpr:
        """The write as a program of the base and of what was written."""
        places = np.arange(int(np.prod(self.shape, dtype=np.int64))).reshape(self.shape)
        region = np.array(self.region(places))

        def write_part(base: Any, part: Any) -> Any:
            flat = reshape(base, (region_size,))
            return reshape(updated(flat, region, part), self.shape)

        region_size = places.size
        avals = [ShapedArray(self.shape, self.dtype), ShapedArray(region.shape, self.dtype)]
        return stage(lambda *args: [write_part(*args)], avals, "CopySlices", name="CopySlices")

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """The cotangent outside of the part for the base, inside for what was written."""
        lead = () if size is None else (size,)
        full = materialize(ct, (*lead, *self.shape))
        inside = np.zeros(self.shape, bool)
        self.region(inside)[...] = True
        if isinstance(full, Tracer):
            part = self.region(full) if size is None else _each(self.region, full)
        elif size is None:
            part = self.region(np.asarray(full)).copy()
        else:
            part = np.stack([self.region(np.asarray(one)) for one in full])
        return [where(inside, 0, full), part]


def _each(region: Callable[[Any], Any], full: Any) -> Any:
    return vmap(region)(full)


class Overwritten(GraphNode):
    """A tensor of the graph after all of it was overwritten by a constant."""

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Zeros."""
        lead = () if size is None else (size,)
        return [np.zeros((*lead, *self.shape), self.dtype)]


# writes ------------------------------------------------------------------------------------------


def _index_of(x: Tensor) -> int:
    return edge_of(x._node)[1]


def check_write(x: Tensor) -> None:
    """Refuse a write that would spoil the graph, before anything is changed.

    Raises:
      RuntimeError: a leaf that requires a gradient, or a view of one; an inference tensor outside
        of inference mode; memory that several elements share.
    """
    enter_session(x)
    if x._inference and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update."
        )
    if modes.grad:
        how = x._view
        node = x._node
        if how is not None:
            base = how.base._node
            if how.is_unrecorded and base is not None:
                raise RuntimeError(
                    "A view was created in no_grad mode and is being modified inplace with grad "
                    "mode enabled. Given that this use case is ambiguous and error-prone, it is "
                    "forbidden. You can clarify your code by moving both the view and the inplace "
                    "either both inside the no_grad block (if you don't want the inplace to be "
                    "tracked) or both outside (if you want the inplace to be tracked)."
                )
            if base is not None and base.primitive is None:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation."
                )
            if how.is_custom and node is not None:
                raise RuntimeError(
                    f"Output 0 of {how.creator} is a view and is being modified inplace. "
                    f"{IN_CUSTOM_FUNCTION}"
                )
            if how.is_multiple and (base is not None or node is not None):
                raise RuntimeError(
                    f"Output {_index_of(x)} of {how.creator} is a view and is being modified "
                    "inplace. This view is the output of a function that returns multiple views. "
                    "Such functions do not allow the output views to be modified inplace. You "
                    "should replace the inplace operation by an out-of-place one."
                )
        elif node is not None and node.primitive is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
    memory = x._memory()
    if isinstance(memory, np.ndarray) and not memory.flags.writeable:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def write(label: str, x: Tensor, new: Any) -> Tensor:
    """Store a result in a tensor's memory, and put it into the graph.

    Args:
      label: name of the operation, with its underscore.
      x: what is written to; ``check_write`` was called.
      new: a tensor of its shape, or one that broadcasts to it.

    Returns:
      ``x``.

    Raises:
      RuntimeError: shape or dtype do not fit.
    """
    if tuple(np.broadcast_shapes(new.shape, x.shape)) != x.shape:
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape "
            f"{list(np.broadcast_shapes(new.shape, x.shape))}"
        )
    if _CATEGORY[new.dtype.kind] > _CATEGORY[x.dtype.kind]:
        raise RuntimeError(
            f"result type {torch_kind(new.dtype)} can't be cast to the desired output type "
            f"{torch_kind(x.dtype)}"
        )
    source = capture(2)
    if new.shape != x.shape:
        new = broadcast_to(new, x.shape)
    new = to_dtype(new, x.dtype)
    written = node_of(new)  # before the write: it may be a view of the same memory
    memory = x._memory()
    if modes.mutation is not None:
        modes.mutation.before_write(x._stored())
    if isinstance(memory, Tracer) or isinstance(new._value, Tracer):
        _write_traced(x, new._value if new._trace is x._trace else _from_other_trace(x, new))
    else:
        np.copyto(memory, new._value)
    storage = x._stored()
    storage.bump(label, source)
    how = x._view
    if how is None:
        if modes.grad:
            node = written
            if node is None and x._node is not None:
                node = Overwritten(COMPOSITE, {}, None, (x._node,), x.shape, x.dtype, source)
                node.label = "".join([part.capitalize() for part in label.split("_")])
            _move(x, node)
        return x
    if how.is_detached:
        return x
    base = how.base
    if modes.grad and (written is not None or base._node is not None):
        node = CopySlices(
            COMPOSITE, {}, None, (base._node, written), base.shape, base.dtype, source
        )
        node.region = _region(how.steps)
        _move(base, node)
    elif modes.grad:
        x._node = None
    return x


def _move(x: Tensor, node: Any) -> None:
    """Give a tensor another node; ``retain_grad`` goes with it."""
    if x._retains:
        move_retain(x, x._node, node)
    x._node = node


def _region(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def region(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return region


def torch_kind(dtype: np.dtype) -> str:
    """Torch's short name of a dtype: ``Double``."""
    return torch_type(dtype).removeprefix("torch.").removesuffix("Tensor")
