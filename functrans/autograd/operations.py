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
from functrans.autograd.modes import modes
from functrans.autograd.nodes import GraphNode, torch_type
from functrans.autograd.recording import PERMANENT, guard_of, node_of
from functrans.autograd.tensor import Tensor, View
from functrans.ir.avals import ShapedArray, is_differentiable_dtype
from functrans.ir.primitive import Primitive, linear
from functrans.ir.source import capture
from functrans.passes.cotangents import materialize
from functrans.passes.nodes import OUTPUT, input_node, ordered_nodes
from functrans.passes.pullback import pull_back
from functrans.primitives.elementwise import where
from functrans.primitives.structural import broadcast_to, cast
from functrans.trace import Tracer, shape_of, tracing
from functrans.traces.recording import RecordingTrace, RecordingTracer
from functrans.transforms.vectorize import vmap

# dtypes ------------------------------------------------------------------------------------------

default_dtype = np.dtype(np.float64)
"""Of Python floats; ``functrans.compat.torch`` has its own."""

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
            rank, dtype = 2, _NUMBERS[type(x)] or _complex_or_default(x)
        else:
            rank = 0 if shape_of(x) else 1
        have = best[rank]
        best[rank] = dtype if have is None else np.promote_types(have, dtype)
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


_NUMBERS: dict[type, Any] = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: None,
    complex: None,
}


def _complex_or_default(x: Any) -> np.dtype:
    return np.result_type(default_dtype, np.complex64) if type(x) is complex else default_dtype


def to_dtype(x: Any, dtype: np.dtype) -> Any:
    """A tensor of another dtype; the same where it has it already."""
    return x if x.dtype == dtype else cast(x, dtype)


def as_tensor(x: Any, like: Tensor) -> Any:
    """A plain array among operands as a tensor; tensors and numbers as they are."""
    if isinstance(x, (np.ndarray, np.generic)) or (
        isinstance(x, Tracer) and not isinstance(x, Tensor)
    ):
        return like._trace.lift(x)
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
      inner: nodes of the operands and of the results among the equations.
    """

    function: Any = None
    operands: Any = ()
    inner: Any = None

    def free(self) -> None:
        """Give residuals up."""
        self.is_freed = True
        self.inner = self.function = None
        self.operands = self.guards = ()

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Pull a cotangent back through the equations."""
        self.residuals()
        cts = [ct] if self.shape is not None else ct
        starts, ends = self.inner
        if not records:
            pairs = [(n, c) for n, c in zip(ends, cts, strict=True) if c is not None and n]
            found = pull_back(pairs, [node for node in starts if node is not None], size=size)
            values = iter(found)
            return [None if node is None else next(values) for node in starts]
        aliases = [
            None if p is None else AliasNode(COMPOSITE, {}, None, (p,), p.shape, p.dtype, None)
            for p in self.parents
        ]
        operands = [
            value if alias is None else Tensor.of(value, alias)
            for value, alias in zip(self.operands, aliases, strict=True)
        ]
        results = self.function(*operands)
        results = results if isinstance(results, tuple) else (results,)
        roots = [
            (r._node, c if isinstance(c, Tensor) else Tensor.of(c))
            for r, c in zip(results, cts, strict=True)
            if c is not None and r._node is not None
        ]
        wanted = [alias for alias in aliases if alias is not None]
        values = iter(
            run_backward(roots, wanted, accumulate=False, keeps=True, records=True, size=size)
        )
        return [None if alias is None else next(values) for alias in aliases]


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
    tensors = [x for x in operands if isinstance(x, Tensor)]
    trace = tensors[0]._trace if tensors else PERMANENT
    if trace is not PERMANENT:
        return function(*operands)
    nodes = [node_of(x) if isinstance(x, Tensor) else None for x in operands]
    values = [x._value if isinstance(x, Tensor) else x for x in operands]
    if not modes.grad or not any(nodes):
        return _wrapped(function(*values), [])
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
    results = [out._value if isinstance(out, RecordingTracer) else out for out in flat]
    ends = [out._node if isinstance(out, RecordingTracer) else None for out in flat]
    if not any(ends):
        return _wrapped(tuple(results) if many else results[0], [])
    avals = tuple([ShapedArray(shape_of(r), np.asarray(r).dtype) for r in results])
    node = CompositeNode(
        COMPOSITE, {}, None, tuple(nodes), None if many else avals[0].shape,
        avals if many else avals[0].dtype, capture(),
    )  # fmt: skip
    node.label = label
    node.function, node.operands, node.inner = function, values, (starts, ends)
    held = _held_by([end for end in ends if end is not None])
    node.guards = [guard_of(x) for x in tensors if id(x._value) in held]
    if not many:
        return Tensor.of(results[0], node)
    return _wrapped(
        tuple(results),
        [
            None if end is None or not is_differentiable_dtype(aval.dtype)
            else GraphNode(OUTPUT, {"index": i}, None, (node,), aval.shape, aval.dtype, node.source)
            for i, (end, aval) in enumerate(zip(ends, avals, strict=True))
        ],
    )  # fmt: skip


def _wrapped(outs: Any, nodes: Sequence[Any]) -> Any:
    if isinstance(outs, tuple):
        nodes = nodes or [None] * len(outs)
        return tuple([_result(o, n) for o, n in zip(outs, nodes, strict=True)])
    return _result(outs, None)


def _result(value: Any, node: Any) -> Tensor:
    result = Tensor.of(value if hasattr(value, "shape") else np.asarray(value), node)
    if modes.inference:
        result._inference = True
    return result


def _held_by(ends: Sequence[Any]) -> set[int]:
    """Identities of the arrays that nodes keep."""
    held: set[int] = set()

    def note(saved: Any) -> None:
        if type(saved) in (list, tuple):
            for item in saved:
                note(item)
        elif hasattr(saved, "residuals"):
            note(saved.residuals)
        elif saved is not None:
            held.add(id(saved))

    for node in ordered_nodes(ends):
        note(node.saved)
    return held


def named(result: Tensor, label: str) -> Tensor:
    """A result whose node goes by torch's name of the operation."""
    if result._node is not None:
        result._node.label = label
    return result


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
    if isinstance(x._value, Tracer):
        return named(step(x), label)
    own = x._memory()
    value = memory(own)
    node = x._node
    result = named(step(x), label) if node is not None and modes.grad else Tensor.of(value)
    result._value = value
    if not np.may_share_memory(value, own):
        return result

    def both(part: Any) -> Any:
        return memory(part) if isinstance(part, np.ndarray) else step(part)

    storage = x._stored()
    result._storage = storage
    how = x._view
    base, steps = (x, ()) if how is None else (how.base, how.steps)
    result._view = View(base, (*steps, both), storage.version, label)
    result._inference = x._inference
    return result


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


# writes ------------------------------------------------------------------------------------------


def check_write(x: Tensor) -> None:
    """Refuse a write that would spoil the graph, before anything is changed.

    Raises:
      RuntimeError: a leaf that requires a gradient, or a view of one; an inference tensor outside
        of inference mode; memory that several elements share.
    """
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
            if base is not None and base.primitive is None:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation."
                )
            if how.is_multiple and (base is not None or node is not None):
                raise RuntimeError(
                    f"Output 0 of {how.creator}Backward0 is a view and is being modified inplace. "
                    "This view is the output of a function that returns multiple views. Such "
                    "functions do not allow the output views to be modified inplace. You should "
                    "replace the inplace operation by an out-of-place one."
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
            f"result type {_kind(new.dtype)} can't be cast to the desired output type "
            f"{_kind(x.dtype)}"
        )
    source = capture(2)
    if new.shape != x.shape:
        new = broadcast_to(new, x.shape)
    new = to_dtype(new, x.dtype)
    memory = x._memory()
    if isinstance(memory, Tracer) or isinstance(new._value, Tracer):
        x._value = new._value
    else:
        np.copyto(memory, new._value)
    storage = x._stored()
    storage.bump(label, source)
    how = x._view
    if how is None:
        if modes.grad:
            x._node = new._node
        return x
    base = how.base
    if modes.grad and (new._node is not None or base._node is not None):
        node = CopySlices(
            COMPOSITE, {}, None, (base._node, new._node), base.shape, base.dtype, source
        )
        node.region = _region(how.steps)
        base._node = node
    elif modes.grad:
        x._node = None
    return x


def _region(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def region(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return region


def _kind(dtype: np.dtype) -> str:
    return torch_type(dtype).removeprefix("torch.").removesuffix("Tensor")
