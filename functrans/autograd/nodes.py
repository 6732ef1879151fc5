"""Nodes of the imperative graph: recorded equations with hooks and guarded residuals.

Here: ``GraphNode`` (an equation), ``LeafNode`` (where
gradients are accumulated), and how a node's residuals become tensors again for derivatives of
derivatives. Not here: who makes nodes (``autograd.recording``), the backward pass
(``autograd.engine``).

A node of ``passes.nodes`` says how its cotangent is pulled back; these add what torch's nodes have.
Residuals are values and not tensors; each is guarded by the version of the storage it lies in, so
that a value which was written to later is noticed. A residual's place in the graph is that of the
operand (``parents``) or of the result (the node itself), so that nothing more is kept for it.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.tensor import Storage, Tensor, plain_of
from functrans.ir.source import resolve
from functrans.passes.nodes import OUTPUT, LinearProgram, Node
from functrans.passes.pullback import pull


class Guard:
    """A residual's storage, and its version when it was saved.

    Attributes:
      storage: where it lies.
      version: the version that the derivative needs.
      shape: of the residual.
      dtype: of the residual.
      origin: the node that made it, or that node's name; empty for leaves and constants.
    """

    __slots__ = ("dtype", "origin", "shape", "storage", "version")

    def __init__(self, storage: Storage, value: Any, origin: Any) -> None:
        self.storage = storage
        self.version = storage.version
        self.shape = value.shape
        self.dtype = value.dtype
        self.origin = origin


class Packed:
    """A residual that a pack hook has taken.

    Attributes:
      held: what the hook returned.
      unpack: gives the tensor back.
      shape: of the residual.
    """

    __slots__ = ("held", "shape", "unpack")

    def __init__(self, held: Any, unpack: Callable[[Any], Any], shape: Any) -> None:
        self.held = held
        self.unpack = unpack
        self.shape = shape


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Hooked:
    """The hooks of a node; class attributes until the first one is added.

    Attributes:
      tensor_hooks: on the gradient of the result, by number.
      retains: weak reference to the tensor that keeps its gradient, or ``None``.
      prehooks: on the gradients of the results, before the node runs.
      posthooks: on the gradients of the operands, after it ran.
      metadata: a dictionary for the user, made when asked for.
    """

    tensor_hooks: dict[int, Any] | None = None
    retains: Any = None
    prehooks: dict[int, Any] | None = None
    posthooks: dict[int, Any] | None = None
    _metadata: dict[str, Any] | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata


class GraphNode(Node, Hooked):
    """A recorded equation.

    Attributes:
      label: torch's name of the operation, without ``Backward0``.
      guards: one per residual that lies in the memory of a tensor.
      primals: operands, where residuals are not operands or results (``linearize`` rules).
      forward_stack: where it was recorded, in anomaly mode.
      is_freed: whether its residuals were given up.
    """

    label = ""
    guards: Sequence[Guard | None] = ()
    primals: Sequence[Any] | None = None
    forward_stack: str | None = None
    is_freed = False

    def name(self) -> str:
        """Torch's name of the node: ``MulBackward0``."""
        return f"{self.label or label_of(self.primitive)}Backward0"

    def __repr__(self) -> str:
        """``<MulBackward0 object at 0x...>``, as torch prints nodes."""
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Node and number of the result that each operand came from."""
        return tuple(map(edge_of, self.parents))

    def residuals(self) -> Any:
        """What the pullback reads, checked.

        Raises:
          RuntimeError: it was given up, or written to since.
        """
        if self.is_freed:
            raise RuntimeError(FREED)
        for guard in self.guards:
            if guard is not None and guard.storage.version != guard.version:
                raise modified(guard, self)
        return self.saved

    def free(self) -> None:
        """Give residuals up."""
        if self.saved is not None and _has_residuals(self.saved):
            self.is_freed = True
            self.guards = ()
            self.saved = self.primals = None

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Pull a cotangent back.

        Args:
          ct: that of the result, or one per result.
          records: whether the derivative is recorded itself.
          size: extent of a leading batch axis, or ``None``.

        Returns:
          A cotangent or ``None`` per parent.
        """
        saved = self.residuals()
        if records or _is_packed(saved):
            return pull(self.with_saved(unpacked(self, saved, records)), ct, size)
        return pull(self, ct, size)

    def with_saved(self, saved: Any) -> Node:
        """The same equation with other residuals."""
        copy = Node.__new__(Node)
        for name in Node.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.saved = saved
        return copy


class LeafNode(Node, Hooked):
    """Where the gradient of a leaf is accumulated.

    Attributes:
      owner: weak reference to the leaf.
      post_accumulate: hooks that run after the gradient was accumulated.
    """

    label = "AccumulateGrad"
    post_accumulate: dict[int, Any] | None = None

    def __init__(self, owner: Any, shape: Any, dtype: Any) -> None:
        super().__init__(None, {}, None, (), shape, dtype, None)
        self.owner = owner

    @property
    def variable(self) -> Any:
        """The leaf; ``None`` when it is gone."""
        return self.owner()

    def name(self) -> str:
        """``AccumulateGrad``."""
        return "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Nothing comes before a leaf."""
        return ()

    def __repr__(self) -> str:
        """``<AccumulateGrad object at 0x...>``."""
        return f"<AccumulateGrad object at {id(self):#x}>"


def edge_of(node: Any) -> tuple[Any, int]:
    """The node that users see, and which of its results is meant."""
    if node is not None and node.primitive is OUTPUT:
        return node.parents[0], node.params["index"]
    return node, 0


LABELS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "true_divide": "Div",
    "negative": "Neg",
    "power": "Pow",
    "reduce_sum": "Sum",
    "transpose": "Permute",
    "dot_general": "Mm",
    "slice": "Slice",
    "slice_update": "CopySlices",
    "broadcast_to": "Expand",
    "convert_element_type": "ToCopy",
    "absolute": "Abs",
    "where": "Where",
}


def label_of(primitive: Any) -> str:
    """Torch's name of a primitive's node."""
    name = primitive.name
    return LABELS.get(name) or "".join(part.capitalize() for part in name.split("_"))


def modified(guard: Guard, node: GraphNode) -> RuntimeError:
    """The error for a residual that was written to."""
    shape = ", ".join(map(str, guard.shape))
    saved_at = resolve(node.source)
    origin = guard.origin if isinstance(guard.origin, str) else edge_of(guard.origin)[0].name()
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{torch_type(guard.dtype)} [{shape}]]"
        f"{f', which is output 0 of {origin},' if origin else ','} is at "
        f"version {guard.storage.version}; expected version {guard.version} instead."
    )
    message += f" It was saved by {node.name()}{f' at {saved_at}' if saved_at else ''}"
    writer = guard.storage.writer
    if writer is not None:
        line = resolve(writer[1])
        message += f" and written to by {writer[0]}{f' at {line}' if line else ''}"
    return RuntimeError(
        f"{message}. Hint: work on a copy (x = x.clone()), or use the operation without the "
        "underscore."
    )


_TORCH_TYPES = {
    "float64": "Double",
    "float32": "Float",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def torch_type(dtype: np.dtype) -> str:
    """Torch's name of a kind of tensor: ``torch.DoubleTensor``."""
    return f"torch.{_TORCH_TYPES.get(dtype.name, dtype.name)}Tensor"


# residuals ---------------------------------------------------------------------------------------


def map_residuals(saved: Any, function: Callable[[Any, Any], Any], node: GraphNode) -> Any:
    """Residuals, each replaced by a function of it and its place in the graph.

    Args:
      saved: by kind of node; see ``passes.nodes``.
      function: called with each value and the node that made it (``None`` for a constant).
      node: the node that holds them.
    """
    parents = node.parents
    primitive = node.primitive
    if primitive is not None and primitive.elementwise is not None and type(saved) is list:
        *operands, out = saved
        mapped = [
            None if x is None else function(x, parent)
            for x, parent in zip(operands, parents, strict=True)
        ]
        return [*mapped, None if out is None else function(out, node)]
    if len(saved) == 2 and type(saved[0]) is tuple and type(saved[1]) is tuple:  # derived
        operands, outs = saved
        sources = [node] if node.shape is not None else _outputs_of(node)
        return (
            tuple([function(x, p) for x, p in zip(operands, parents, strict=True)]),
            tuple([function(x, source) for x, source in zip(outs, sources, strict=True)]),
        )
    return tuple(
        [None if x is None else function(x, p) for x, p in zip(saved, parents, strict=False)]
    )


def _outputs_of(node: GraphNode) -> list[Node]:
    return [
        Node(OUTPUT, {"index": i}, None, (node,), aval.shape, aval.dtype, node.source)
        for i, aval in enumerate(node.dtype)
    ]


def _has_residuals(saved: Any) -> bool:
    if isinstance(saved, (list, tuple)):
        return any(map(_has_residuals, saved))
    return saved is not None


def _is_packed(saved: Any) -> bool:
    if type(saved) in (list, tuple):
        return any(map(_is_packed, saved))
    if isinstance(saved, LinearProgram):
        return any(type(x) is Packed for x in saved.residuals)
    return type(saved) is Packed


def unpacked(node: GraphNode, saved: Any, records: bool) -> Any:
    """Residuals as values, or as tensors with their place in the graph."""

    def value_of(x: Any) -> Any:
        return plain_of(x.unpack(x.held)) if type(x) is Packed else x

    if isinstance(saved, LinearProgram):
        if not records or node.primals is None:
            return LinearProgram(saved.jaxpr, saved.targets, tuple(map(value_of, saved.residuals)))
        return _linearized_again(node, value_of)
    if saved is None:
        return None

    def one(x: Any, origin: Any) -> Any:
        value = value_of(x)
        if records and origin is not None and hasattr(value, "shape"):
            return Tensor.of(value, origin)
        return value

    return map_residuals(saved, one, node)


def _linearized_again(node: GraphNode, value_of: Callable[[Any], Any]) -> LinearProgram:
    """The linear part with residuals that are recorded functions of the operands."""
    primitive = node.primitive
    assert primitive is not None
    assert primitive.linearize is not None
    assert node.primals is not None
    needs = tuple(parent is not None for parent in node.parents)
    operands = [
        x if parent is None else Tensor.of(value_of(x), parent)
        for x, parent in zip(node.primals, node.parents, strict=True)
    ]
    _, program = primitive.linearize(needs, operands, **node.params)
    assert isinstance(program, LinearProgram)
    return program
