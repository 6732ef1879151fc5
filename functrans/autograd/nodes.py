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

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.hooks import RemovableHandle, add_hook
from functrans.autograd.listing import drawn_as_dot, drawn_as_html, recorded_program
from functrans.autograd.modes import modes
from functrans.autograd.tensors import Storage, Tensor
from functrans.ir.jaxpr import Jaxpr
from functrans.ir.primitive import linear, multilinear
from functrans.ir.source import resolve
from functrans.passes.nodes import OUTPUT, LinearProgram, Node
from functrans.passes.pullback import pull
from functrans.trace import Tracer


class Guard:
    """A residual, the storage that it lies in, and its version when it was saved.

    Attributes:
      storage: where it lies.
      version: the version that the derivative needs.
      value: the residual.
      origin: the node that made it, or that node's name; empty for leaves and constants.
    """

    __slots__ = ("origin", "storage", "value", "version")

    def __init__(self, storage: Storage, value: Any, origin: Any) -> None:
        self.storage = storage
        self.version = storage.version
        self.value = value
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

    def value(self) -> Any:
        """The residual.

        Raises:
          TypeError: the unpack hook returned something else than a tensor.
          RuntimeError: it returned one of another shape.
        """
        tensor = self.unpack(self.held)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(tensor).__name__}"
            )
        if tensor.shape != self.shape:
            raise RuntimeError(
                f"Output of saved tensor unpack_hook has shape {list(tensor.shape)}, but the "
                f"tensor that was saved had shape {list(self.shape)}"
            )
        return tensor._value


def pack_tensor(tensor: Tensor, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Packed:
    """Hand a tensor to a pack hook.

    Raises:
      RuntimeError: the hook wrote to it.
    """
    storage = tensor._stored()
    version = storage.version
    packers, grad = modes.packers, modes.grad
    modes.update(packers=(), grad=False)
    try:
        held = pack(tensor)
    finally:
        modes.update(packers=packers, grad=grad)
    if storage.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook cannot be modified by in-place operations as this can lead to unexpected "
            "side-effects. Work on a copy in the hook."
        )
    return Packed(held, unpack, tensor.shape)


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Running(threading.local):
    """What the calling thread is running.

    Attributes:
      backward: the innermost backward pass, or ``None``.
      node: the node that it is at.
    """

    backward: Any = None
    node: Any = None


running = Running()


class Hooked:
    """What nodes have for their user: hooks, metadata, printouts.

    Hooks are class attributes until the first one is added.

    Attributes:
      is_watched: whether there ever was a hook or a retained gradient.
      tensor_hooks: on the gradient of the one result, by number.
      output_hooks: the same of a node with several results, by number of the result.
      retains: weak reference to the tensor that keeps its gradient, or ``None``.
      output_retains: the same of a node with several results, by number of the result.
      prehooks: on the gradients of the results, before the node runs.
      posthooks: on the gradients of the operands, after it ran.
    """

    is_watched = False
    tensor_hooks: dict[int, Any] | None = None
    output_hooks: dict[int, dict[int, Any]] | None = None
    retains: Any = None
    output_retains: dict[int, Any] | None = None
    prehooks: dict[int, Any] | None = None
    posthooks: dict[int, Any] | None = None
    _metadata: dict[str, Any] | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function with the gradients of operands and results after the node ran.

        Args:
          hook: ``hook(grad_inputs, grad_outputs)``, both tuples; a tuple that it returns replaces
            the gradients of the operands.

        Returns:
          A handle, whose ``remove()`` ends it.
        """
        handle: RemovableHandle = add_hook(self, "posthooks", hook)
        return handle

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function with the gradients of the results before the node runs.

        Args:
          hook: ``hook(grad_outputs)``, a tuple; a tuple that it returns replaces them.

        Returns:
          A handle, whose ``remove()`` ends it.
        """
        handle: RemovableHandle = add_hook(self, "prehooks", hook)
        return handle

    def _sequence_nr(self) -> int:
        """A number that increases with creation: nodes run latest first."""
        return self.number  # type: ignore[attr-defined,no-any-return]  # of Node

    def jaxpr(self) -> Jaxpr:
        """The recorded program of this node and everything below it; hooks are annotations.

        Arguments are the leaves, and operands that no derivative needs (they were not kept).

        Example:
          >>> from functrans.autograd import tensor
          >>> x = tensor([1.0, 2.0], requires_grad=True)
          >>> y = (x * x).sum()
          >>> handle = y.register_hook(print)
          >>> print(y.grad_fn.jaxpr())
          { lambda ; a:f64[2]. let
              b:f64[2] = multiply a a {MulBackward0}
              c:f64[]{tensor hook print} = reduce_sum[axes=(0,)] b {SumBackward0}
            in (c,) }
        """
        return recorded_program([self])  # type: ignore[list-item]  # a Node

    def to_dot(self) -> str:
        """The graph below this node for Graphviz; hooks are marked."""
        return drawn_as_dot([self])  # type: ignore[list-item]  # a Node

    def to_html(self) -> str:
        """The graph below this node as a page of HTML with a picture; hooks are marked."""
        return drawn_as_html([self])  # type: ignore[list-item]  # a Node


class GraphNode(Node, Hooked):
    """A recorded equation.

    Attributes:
      label: torch's name of the operation, without ``Backward0``; complete for other numbers.
      guards: one per residual that lies in the memory of a tensor.
      primals: operands, where residuals are not operands or results (``linearize`` rules).
      forward_stack: where it was recorded, in anomaly mode.
      is_freed: whether its residuals were given up.
      is_packed: whether pack hooks have taken some of them.
    """

    label = ""
    guards: Sequence[Guard | None] = ()
    primals: Sequence[Any] | None = None
    forward_stack: str | None = None
    is_freed = False
    is_packed = False

    def name(self) -> str:
        """Torch's name of the node: ``MulBackward0``."""
        label = self.label or label_of(self.primitive)
        return label if "Backward" in label else f"{label}Backward0"

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

    def __getattr__(self, name: str) -> Any:
        """Saved values by torch's names: ``_saved_self``, ``_raw_saved_self``."""
        if name.startswith("_saved_"):
            return saved_by_name(self, name[7:])
        if name.startswith("_raw_saved_"):
            return SavedTensor(self, position_of(self, name[11:]))
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        """Attributes, with the names of saved values."""
        names = saved_names(self)
        return [*super().__dir__(), *(f"{prefix}saved_{n}" for n in names for prefix in _PREFIXES)]

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
        if records or self.is_packed:
            return pull(self.with_saved(unpacked(self, saved, records)), ct, size)
        try:
            return pull(self, ct, size)
        except TypeError:
            if self.is_freed:  # by another thread, meanwhile
                raise RuntimeError(FREED) from None
            raise

    def pack_residuals(
        self,
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
        operands: Sequence[Any],
        results: Sequence[Tensor],
    ) -> None:
        """Hand the tensors that the node saved to a pack hook.

        The hook gets a leaf itself, else a tensor of the same value; a result comes without its
        node, so that keeping it makes no cycle.

        Args:
          pack: makes of a tensor what is kept.
          unpack: gives the tensor back.
          operands: tensors or constants.
          results: tensors.
        """
        tensors = {id(x._value): (x, False) for x in results}
        for x in operands:
            if isinstance(x, Tensor):
                tensors[id(x._value)] = (x, True)

        def one(value: Any, _: Any = None) -> Any:
            tensor, is_operand = tensors.get(id(value), (None, False))
            if tensor is None:
                return value
            node = tensor._node if is_operand else None
            if node is None or node.primitive is not None:
                storage = tensor._stored()
                tensor = Tensor.of(value, node, tensor.__dict__.get("_trace"))
                tensor._storage = storage
            return pack_tensor(tensor, pack, unpack)

        saved = self.saved
        if isinstance(saved, LinearProgram):
            residuals = tuple(map(one, saved.residuals))
            self.saved = LinearProgram(saved.jaxpr, saved.targets, residuals)
            if self.primals is not None:
                self.primals = list(map(one, self.primals))
        elif saved is not None:
            self.saved = map_residuals(saved, one, self)
        self.is_packed = True
        self.guards = ()

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
    "divide": "Div",
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
    shape = ", ".join(map(str, guard.value.shape))
    saved_at = resolve(node.source)
    origin = guard.origin if isinstance(guard.origin, str) else edge_of(guard.origin)[0].name()
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{torch_type(guard.value.dtype)} [{shape}]]"
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


def unpacked(node: GraphNode, saved: Any, records: bool) -> Any:
    """Residuals as values, or as tensors with their place in the graph."""

    def value_of(x: Any) -> Any:
        return x.value() if type(x) is Packed else x

    if isinstance(saved, LinearProgram):
        if not records or node.primals is None:
            return LinearProgram(saved.jaxpr, saved.targets, tuple(map(value_of, saved.residuals)))
        return _linearized_again(node, value_of)
    if saved is None:
        return None

    def one(x: Any, origin: Any) -> Any:
        value = value_of(x)
        if records and origin is not None and hasattr(value, "shape"):
            return Tensor.of(value, origin, trace)
        return value

    trace = _trace_of_pass()

    return map_residuals(saved, one, node)


def _trace_of_pass() -> Any:
    """The trace of the tensors of the backward pass that runs; ``None`` for the permanent one."""
    trace = None if running.backward is None else running.backward.trace
    return None if trace is Tensor._trace else trace


def _linearized_again(node: GraphNode, value_of: Callable[[Any], Any]) -> LinearProgram:
    """The linear part with residuals that are recorded functions of the operands."""
    primitive = node.primitive
    assert primitive is not None
    assert primitive.linearize is not None
    assert node.primals is not None
    needs = tuple(parent is not None for parent in node.parents)
    operands = [
        x if parent is None else Tensor.of(value_of(x), parent, _trace_of_pass())
        for x, parent in zip(node.primals, node.parents, strict=True)
    ]
    _, program = primitive.linearize(needs, operands, **node.params)
    assert isinstance(program, LinearProgram)
    return program


# saved values by torch's names -------------------------------------------------------------------

_PREFIXES = ("_", "_raw_")

_NAMES: dict[str, tuple[str | None, ...]] = {
    "power": ("self", "exponent", "result"),
    "where": ("condition", "self", "other", None),
    "clip": ("self", "min", "max", None),
    "dot_general": ("self", "mat2"),
}
"""Names of operands, then of the result, where they are not ``self``, ``other``, ``result``."""

_NAMES_BY_LABEL: dict[str, tuple[str | None, ...]] = {
    "Mv": ("self", "vec"),
    "Dot": ("self", "tensor"),
}

_OF_PARAMS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "Sum": {"self_sym_sizes": lambda node: node.parents[0].shape},
    "Expand": {"self_sym_sizes": lambda node: node.parents[0].shape},
    "View": {"self_sym_sizes": lambda node: node.parents[0].shape},
    "Permute": {"dims": lambda node: tuple(node.params["axes"])},
}
"""By label, names of what a node knows from its parameters."""


def saved_names(node: GraphNode) -> dict[str, int | Callable[[Any], Any]]:
    """What a node saved: by torch's name the position of a residual, or a function of the node."""
    primitive = node.primitive
    label = node.label or label_of(primitive)
    found: dict[str, int | Callable[[Any], Any]] = dict(_OF_PARAMS.get(label, {}))
    n = len(node.parents)
    if primitive is None or isinstance(node.saved, LinearProgram):
        return found
    names = _NAMES_BY_LABEL.get(label) or _NAMES.get(primitive.name)
    if names is None:
        names = (*("self", "other", "third")[:n], "result") if n <= 3 else ()
    needed = -1
    if primitive.elementwise is not None:
        needed = 0
        for bits in primitive.elementwise.saves:
            needed |= bits
    elif primitive.jvp is linear:
        return found
    elif primitive.jvp is multilinear:
        needed = (1 << n) - 1
    elif node.shape is None or label == "CopySlices" or not primitive.jvp:
        return found
    found.update({name: i for i, name in enumerate(names) if name is not None and needed >> i & 1})
    return found


def position_of(node: GraphNode, name: str) -> int:
    """Which residual torch calls by a name.

    Raises:
      AttributeError: none.
    """
    position = saved_names(node).get(name)
    if not isinstance(position, int):
        raise AttributeError(f"{node.name()!r} object has no saved tensor {name!r}")
    return position


def saved_by_name(node: GraphNode, name: str) -> Any:
    """What torch calls ``_saved_<name>``.

    Raises:
      AttributeError: the node saved nothing of the name.
      RuntimeError: it was given up, or written to since.
    """
    place = saved_names(node).get(name)
    if place is None:
        raise AttributeError(f"{node.name()!r} object has no attribute '_saved_{name}'")
    if not isinstance(place, int):
        return place(node)
    if node.is_freed:
        raise RuntimeError(FREED)
    value = _residual(node.saved, place)
    if value is None:
        return None
    if type(value) is Packed:
        value = value.value()
    else:
        for guard in node.guards:
            if guard is not None and guard.value is value:
                if guard.storage.version != guard.version:
                    raise modified(guard, node)
                break
    if not hasattr(value, "shape") or not isinstance(value, (np.ndarray, np.generic, Tracer)):
        return value if name == "exponent" else Tensor.of(np.asarray(value))
    origin = _origin(node, place)
    if type(origin) is LeafNode:
        owner = origin.owner()
        if owner is not None and owner._value is value:
            return owner
    return Tensor.of(value, origin)


def _origin(node: GraphNode, place: int) -> Any:
    return node.parents[place] if place < len(node.parents) else node


def _residual(saved: Any, place: int) -> Any:
    if saved and type(saved[0]) is tuple:
        operands, outs = saved
        return (*operands, *outs)[place]
    return saved[place]


def _with_residual(saved: Any, place: int, value: Any) -> Any:
    """Residuals with another one at a place; of the same structure."""
    if saved and type(saved[0]) is tuple:
        operands, outs = saved
        n = len(operands)
        if place < n:
            return (*operands[:place], value, *operands[place + 1 :]), outs
        return operands, (*outs[: place - n], value, *outs[place - n + 1 :])
    changed = list(saved)
    changed[place] = value
    return changed if type(saved) is list else tuple(changed)


class SavedTensor:
    """A place where a node keeps a residual; torch's ``_raw_saved_*``.

    Attributes:
      node: the node.
      place: which of its residuals.
    """

    __slots__ = ("node", "place")

    def __init__(self, node: GraphNode, place: int) -> None:
        self.node = node
        self.place = place

    def register_hooks(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Keep what ``pack`` makes of the tensor; ``unpack`` gives it back when it is needed.

        Args:
          pack: called at once with the tensor.
          unpack: called with what ``pack`` returned.

        Raises:
          TypeError: they cannot be called.
          RuntimeError: there is no tensor (any more), it has hooks, it was written to.

        Example:
          >>> from functrans.autograd import tensor
          >>> x = tensor([1.0, 2.0], requires_grad=True)
          >>> y = x.exp()
          >>> y.grad_fn._raw_saved_result.register_hooks(lambda t: t.numpy() * 10, tensor)
          >>> y.grad_fn._saved_result
          tensor([27.1828, 73.8906], grad_fn=<ExpBackward0>)
        """
        if not callable(pack) or not callable(unpack):
            raise TypeError("register_hooks(): incompatible function arguments: pass two callables")
        node = self.node
        if node.is_freed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        value = _residual(node.saved, self.place)
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if type(value) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        guards = list(node.guards)
        tensor = Tensor.of(value if hasattr(value, "shape") else np.asarray(value))
        for i, guard in enumerate(guards):
            if guard is not None and guard.value is value:
                if guard.storage.version != guard.version:
                    raise modified(guard, node)
                tensor._storage = guard.storage
                del guards[i]
                break
        packed = pack_tensor(tensor, pack, unpack)
        node.saved = _with_residual(node.saved, self.place, packed)
        node.is_packed = True
        node.guards = guards
