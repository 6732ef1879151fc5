"""What nodes keep of the forward pass: values with guards, or what pack hooks made of them.

Here: ``Guard`` (the version of the memory that a value lies in), ``Packed`` (a value that a hook
has taken), and the errors for values that were given up or written to. Not here: which values are
kept (``autograd.recording``), their names in torch (``autograd.saved_values``).

Residuals are values and not tensors. A residual's place in the graph is that of the operand
(``parents``) or of the result (the node itself), so that nothing more is kept for it.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.labels import SAVES_OPERANDS, edge_of, torch_type
from functrans.autograd.modes import modes
from functrans.autograd.tensors import Storage, Tensor
from functrans.core.dispatch import Tracer
from functrans.core.source import resolve
from functrans.passes.nodes import OUTPUT, Node


class Guard:
    """A residual, the storage that it lies in, and its version when it was saved.

    Attributes:
      storage: where it lies.
      version: the version that the derivative needs.
      value: the residual.
      origin: the node that made it, or that node's name; empty for leaves and constants.
    """

    __slots__ = ("origin", "storage", "value", "version")

    def __init__(
        self, storage: Storage, value: Any, origin: Any, version: int | None = None
    ) -> None:
        self.storage = storage
        self.version = storage.version if version is None else version
        self.value = value
        self.origin = origin


class Packed:
    """A residual that a pack hook has taken.

    Attributes:
      held: what the hook returned.
      unpack: gives the tensor back.
      shape: of the residual.
      storage: where it lay when the hook took it.
      version: of that storage then.
      saver: name of the node.
      source: the user's line that made the node.
    """

    __slots__ = ("held", "saver", "shape", "source", "storage", "unpack", "version")

    def __init__(self, held: Any, unpack: Any, tensor: Tensor, saver: str, source: Any) -> None:
        self.held = held
        self.unpack = unpack
        self.shape = tensor.shape
        self.storage = tensor._stored()
        self.version = self.storage.version
        self.saver = saver
        self.source = source

    def name(self) -> str:
        """The name of the node."""
        return self.saver

    def value(self) -> Any:
        """The residual."""
        return self.tensor()._value

    def tensor(self) -> Tensor:
        """The tensor that the residual is the value of, in the storage that the hook gave it.

        Raises:
          TypeError: the unpack hook returned something else than a tensor.
          RuntimeError: it returned one of another shape, or one in the memory that was saved and
            that was written to since.
        """
        before = modes.packers
        try:
            tensor = self.unpack(self.held)
        finally:  # hooks that it entered, or left, are its own
            modes.packers = before
            modes.update()
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
        if tensor._storage is self.storage and self.storage.version != self.version:
            raise modified(Guard(self.storage, tensor._value, "", self.version), self)
        return tensor


def pack_tensor(
    tensor: Tensor,
    pack: Callable[[Any], Any],
    unpack: Callable[[Any], Any],
    saver: str,
    source: Any = None,
) -> Packed:
    """Hand a tensor to a pack hook; a copy, if its memory is about to be overwritten.

    Args:
      tensor: the tensor.
      pack: makes of a tensor what is kept.
      unpack: gives the tensor back.
      saver: name of the node that saves it.
      source: the user's line that made the node.

    Raises:
      RuntimeError: the hook wrote to it.
    """
    storage = tensor._stored()
    if storage is modes.overwritten and isinstance(tensor._value, np.ndarray):
        node, follows = tensor._node, tensor._follows
        tensor = Tensor.of(tensor._value.copy("K"), node, tensor.__dict__.get("_trace"))
        tensor._follows = follows
        storage = tensor._stored()
    version = storage.version
    packers, grad = modes.packers, modes.grad
    try:
        modes.update(packers=(), grad=False)
        held = pack(tensor)
    finally:
        modes.packers, modes.grad = packers, grad
        modes.update()
    if storage.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook cannot be modified by in-place operations as this can lead to unexpected "
            "side-effects. Work on a copy in the hook."
        )
    return Packed(held, unpack, tensor, saver, source)


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


def modified(guard: Guard, node: Any) -> RuntimeError:
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


def again(residual: Any, origin: object, guards: Sequence[Any], trace: object) -> Any:
    """A residual as a tensor in the storage that it was saved from, so that writes are noticed.

    Args:
      residual: a value, or what a pack hook made of it.
      origin: its place in the graph; without one it stays a value.
      guards: of the residuals, checked.
      trace: see ``Tensor.of``; an array is of a graph outside of all transforms.
    """
    packed = residual.tensor() if type(residual) is Packed else None
    value = residual if packed is None else packed._value
    if origin is None or not hasattr(value, "shape"):
        return value
    tensor = Tensor.of(value, origin, trace if isinstance(value, Tracer) else None)
    if packed is not None:
        tensor._storage = packed._stored()
        return tensor
    for guard in guards:
        if guard is not None and guard.value is value:
            tensor._storage = guard.storage
    return tensor


def map_residuals(saved: Any, function: Callable[[Any, Any], Any], node: Any) -> Any:
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
        sources = [node] if node.shape is not None else outputs_of(node)
        return (
            tuple([function(x, p) for x, p in zip(operands, parents, strict=True)]),
            tuple([function(x, source) for x, source in zip(outs, sources, strict=True)]),
        )
    return tuple(
        [None if x is None else function(x, p) for x, p in zip(saved, parents, strict=False)]
    )


def outputs_of(node: Any) -> list[Node]:
    """Nodes that stand for the results of a node with several."""
    return [
        Node(OUTPUT, {"index": i}, None, (node,), aval.shape, aval.dtype, node.source)
        for i, aval in enumerate(node.dtype)
    ]


def lies_in(value: Any, residuals: Sequence[Any]) -> bool:
    """Whether one of several residuals is a value, or a part of its memory."""
    if not isinstance(value, np.ndarray):
        return any(held is value for held in residuals)
    return any(
        held is value
        or (
            type(held) is np.ndarray
            and (held.base is not None or value.base is not None)
            and np.may_share_memory(held, value)
        )
        for held in residuals
    )


def has_residuals(saved: object) -> bool:
    """Whether any value is kept."""
    if isinstance(saved, (list, tuple)):
        for held in saved:  # noqa: SIM110  # faster than any()
            if held is not None and has_residuals(held):
                return True
        return False
    return saved is not None


def root_of(x: Tensor) -> Tensor:
    """The tensor that is no view."""
    return x if x._view is None else x._view.root


def twins_of(dual: Tensor) -> tuple[Tensor, ...]:
    """Primal and tangent that a dual tensor was made of, in the shapes that they had then."""
    return tuple([x if (how := x._view).steps or how.detach else how.base for x in dual._dual[:2]])


def region_of(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """From an array of a base's shape to the part that a view of these steps shows."""
    return lambda x: functools.reduce(lambda part, step: step(part), steps, x)


def keep_result(x: Tensor, memory: np.ndarray) -> None:
    """Keep what the node of a tensor, or of its base, saved of it, where torch's saves operands.

    Args:
      x: a tensor whose memory may be written to from now on.
      memory: that, or a part of it.
    """
    node = root_of(x)._node
    if node is not None and node.primitive is not None:
        made_by = edge_of(node)[0]
        if made_by.name() in SAVES_OPERANDS:
            made_by.keep_result(x._stored(), memory)
