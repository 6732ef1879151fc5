"""Nodes of the imperative graph: recorded equations with hooks and guarded residuals.

Here: ``GraphNode`` (an equation), ``LeafNode`` (where gradients are accumulated), and how a node's
residuals become tensors again for derivatives of derivatives. Not here: what is kept
(``autograd.residuals``), torch's names (``autograd.labels``, ``autograd.saved_values``), who makes
nodes (``autograd.recording``), the backward pass (``autograd.engine``).

A node of ``passes.nodes`` says how its cotangent is pulled back; these add what torch's nodes have:
names, hooks, metadata, and a check that what they kept was not written to.

Layer: ``autograd``.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.hooks import RemovableHandle, add_node_hook, annotate, changing
from functrans.autograd.labels import SAVES_NOTHING, edge_of, label_of
from functrans.autograd.listing import drawn_as_dot, recorded_program
from functrans.autograd.pictures import drawn_as_html
from functrans.autograd.residuals import (
    FREED,
    Guard,
    Packed,
    again,
    has_residuals,
    lies_in,
    map_residuals,
    modified,
    pack_tensor,
)
from functrans.autograd.saved_values import (
    PREFIXES,
    SavedTensor,
    position_of,
    saved_by_name,
    saved_names,
)
from functrans.autograd.tensors import Storage, Tensor
from functrans.core.annotations import POST_HOOK, PRE_HOOK, SAVED_VALUE_HOOK, Annotation
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Primitive, linear
from functrans.core.values import Array
from functrans.debugging.documents import framed
from functrans.passes.cotangents import pull_elementwise
from functrans.passes.nodes import LinearProgram, Node
from functrans.passes.pullback import pull, read_by

COMPOSITE = Primitive(
    "composite",
    impl=lambda *operands: operands,
    abstract_eval=lambda *avals: avals,
    jvp=linear,
)
"""Marks the node of an operation that is several equations."""


class Running(threading.local):
    """What the calling thread is running.

    Attributes:
      backward: the innermost backward pass, or ``None``.
    """

    backward: Any = None


running = Running()


class Hooked:
    """What nodes have for their user: hooks, metadata, printouts.

    Attributes:
      below: of a node of a dual tensor the primal's, by which gradients come after the level, and
        the trace of the level.
    """

    annotations: tuple[Annotation, ...]
    below: tuple[Any, Any] | None = None
    _metadata: dict[str, Any] | None = None

    def discard(self, number: int) -> None:
        """Remove a hook; nothing happens if it is gone."""
        with changing:
            self.annotations = tuple([n for n in self.annotations if n.number != number])

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user."""
        if self._metadata is None:
            self._metadata = {} if self.below is None else self.below[0].metadata
        return self._metadata

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Node and number of the result that each operand came from."""
        edges = map(edge_of, self.parents)  # type: ignore[attr-defined]  # of Node
        return tuple([(shown(node), number) for node, number in edges])

    def __repr__(self) -> str:
        """``<MulBackward0 object at 0x...>``, as torch prints nodes."""
        return f"<{self.name()} object at {id(self):#x}>"  # type: ignore[attr-defined]  # nodes have it

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function with the gradients of operands and results after the node ran.

        Args:
          hook: ``hook(grad_inputs, grad_outputs)``, both tuples; a tuple that it returns replaces
            the gradients of the operands.

        Returns:
          A handle, whose ``remove()`` ends it.
        """
        return add_node_hook(self, POST_HOOK, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function with the gradients of the results before the node runs.

        Args:
          hook: ``hook(grad_outputs)``, a tuple; a tuple that it returns replaces them.

        Returns:
          A handle, whose ``remove()`` ends it.
        """
        return add_node_hook(self, PRE_HOOK, hook)

    def _sequence_nr(self) -> int:
        """A number that increases with creation: nodes run latest first."""
        return self.number  # type: ignore[attr-defined]  # of Node

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

    def _repr_html_(self) -> str:
        """What a notebook shows: ``to_html`` in a frame."""
        return framed(self.to_html(), 20)


_LISTED = frozenset({
    "jaxpr", "metadata", "name", "next_functions", "register_hook", "register_prehook", "to_dot",
    "to_html", "variable",
})  # fmt: skip
"""Public attributes of nodes: torch's, and ours to look at a graph."""


def shown(node: Any) -> Any:
    """A node as its user gets it: of a class that is called as the node is."""
    if node is None:
        return None
    cls, name = type(node), node.name().rpartition("::")[2]
    if cls.__name__ != name:
        plain = cls if cls.__module__ != "builtins" else cls.__bases__[0]
        key = plain, name
        if key not in _named:
            own = {"__slots__": (), "__module__": "builtins", "__reduce_ex__": _not_pickled}
            _named[key] = type(name, (plain,), own)
        node.__class__ = _named[key]
    return node


_named: dict[tuple[type, str], type] = {}


def _not_pickled(node: Any, protocol: object) -> Any:
    raise TypeError(f"cannot pickle '{type(node).__name__}' object")


class GraphNode(Hooked, Node):
    """A recorded equation.

    Attributes:
      label: torch's name of the operation, without ``Backward0``; complete for other numbers.
      guards: one per residual that lies in the memory of a tensor.
      primals: operands, where residuals are not operands or results (``linearize`` rules).
      primal_guards: of those that are tensors, for derivatives of derivatives.
      is_freed: whether its residuals were given up.
    """

    label = ""
    guards: Sequence[Guard] = ()
    primals: Sequence[Any] | None = None
    primal_guards: Sequence[Guard] = ()
    is_freed = False

    def name(self) -> str:
        """Torch's name of the node: ``MulBackward0``."""
        label = self.label or label_of(self.primitive)
        return label if "Backward" in label else f"{label}Backward0"

    @property
    def is_packed(self) -> bool:
        """Whether pack hooks have taken some of its residuals."""
        return any([note.kind is SAVED_VALUE_HOOK for note in self.annotations])  # noqa: C419  # faster

    def note_packed(self, pack: Callable[[Any], Any]) -> None:
        """Note that a pack hook has taken residuals."""
        annotate(self, Annotation(SAVED_VALUE_HOOK, pack))

    def residuals(self) -> Any:
        """What the pullback reads, checked.

        Raises:
          RuntimeError: it was given up, or written to since.
        """
        if self.is_freed:
            raise RuntimeError(FREED)
        for guard in self.guards:
            if guard.storage.version == guard.version:
                continue
            if lies_in(guard.value, self.read()):
                raise modified(guard, self)
        return self.saved

    def read(self) -> Sequence[Any]:
        """What the pullback reads of the residuals, which may be less than is kept."""
        return read_by(self)

    def __getattr__(self, name: str) -> Any:
        """Saved values by torch's names: ``_saved_self``, ``_raw_saved_self``."""
        if name.startswith("_saved_"):
            return saved_by_name(self, name[7:])
        if name.startswith("_raw_saved_"):
            return SavedTensor(self, position_of(self, name[11:]))
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        """What torch's nodes have, with the names of saved values; the rest is the library's."""
        own = [name for name in super().__dir__() if name[0] == "_" or name in _LISTED]
        names = saved_names(self)
        return [*own, *(f"{prefix}saved_{n}" for n in names for prefix in PREFIXES)]

    def free(self) -> None:
        """Give residuals up."""
        if self.label in SAVES_NOTHING:
            return
        if self.guards or (self.saved is not None and has_residuals(self.saved)):
            self.is_freed = True
            self.guards, self.saved = (), None
            if self.primals is not None:
                self.primals, self.primal_guards = None, ()

    def keep_result(self, storage: Storage, memory: np.ndarray) -> None:
        """Keep what is saved of a result, whose memory is about to be written to."""
        own = [guard for guard in self.guards if guard.storage is storage]
        if self.is_freed or any(guard.version != storage.version for guard in own):
            return  # it is lost already
        copies: dict[int, Any] = {}

        def one(value: Any) -> Any:
            if not isinstance(value, np.ndarray) or not np.may_share_memory(value, memory):
                return value
            return copies.setdefault(id(value), value.copy())

        self.replace_residuals(one)
        self.guards = [g for g in self.guards if g.storage is not storage]

    def replace_residuals(self, function: Callable[[Any], Any]) -> None:
        """Put what a function makes of each residual in its place."""
        if isinstance(self.saved, LinearProgram):
            residuals = tuple(map(function, self.saved.residuals))
            self.saved = LinearProgram(self.saved.jaxpr, self.saved.targets, residuals)
        elif self.saved is not None:
            self.saved = map_residuals(self.saved, lambda x, _: function(x), self)

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Pull a cotangent back.

        Args:
          ct: that of the result, or one per result.
          records: whether the derivative is recorded itself.
          size: extent of a leading batch axis, or ``None``.

        Returns:
          A cotangent or ``None`` per parent.
        """
        if self.is_freed:
            raise RuntimeError(FREED)
        for guard in self.guards:
            if guard.storage.version != guard.version:
                self.residuals()  # says what was written to, unless that is not read
                break
        saved = self.saved
        if records or (self.annotations and self.is_packed):
            return pull(self.with_saved(unpacked(self, saved, records)), ct, size)
        primitive = self.primitive
        try:
            if primitive.elementwise is None or self.params:  # type: ignore[union-attr]  # no leaf
                return pull(self, ct, size)
            *operands, out = saved
            return pull_elementwise(primitive, ct, operands, out, self.shape, self.parents, size)  # type: ignore[arg-type]  # no leaf
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
        tensors = [(x, True) for x in operands if isinstance(x, Tensor)]
        tensors += [(x, False) for x in results]
        name, is_torchs = self.name(), any(x._follows for x, _ in tensors)

        def one(value: object) -> Any:
            found = next((pair for pair in tensors if pair[0]._value is value), None)
            if found is None:  # memory of its own, or a part of an operand's
                found = next((pair for pair in tensors if lies_in(pair[0]._value, [value])), None)
                if found is None:
                    return value
                tensor, node = found[0], None
            else:
                tensor, is_operand = found
                node = tensor._node if is_operand else None
            if tensor._value is not value or node is None or node.primitive is not None:
                storage, trace = tensor._stored(), tensor.__dict__.get("_trace")
                tensor = Tensor.of(value, node, trace)
                tensor._storage, tensor._follows = storage, is_torchs
            return pack_tensor(tensor, pack, unpack, name, self.source)

        self.replace_residuals(one)
        if isinstance(self.saved, LinearProgram) and self.primals is not None:
            self.primals = list(map(one, self.primals))
        self.note_packed(pack)
        self.guards = self.primal_guards = ()

    def with_saved(self, saved: Any) -> Node:
        """The same equation with other residuals."""
        copy = Node.__new__(Node)
        for name in Node.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.saved = saved
        return copy


class AliasNode(GraphNode):
    """The same value under another node."""

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """The cotangent as it is."""
        return [ct]


class LeafNode(Hooked, Node):
    """Where the gradient of a leaf is accumulated.

    Attributes:
      owner: weak reference to the leaf.
      is_turned: whether the axes of the leaf were changed in place since.
      former: weak references to its nodes before it got other data or axes.
    """

    label = "AccumulateGrad"
    is_turned = False
    former: tuple[weakref.ref[LeafNode], ...] = ()

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


def leaf_like(leaf: LeafNode, value: Tensor) -> LeafNode:
    """The node of a leaf whose memory gets another shape or dtype; hooks on the tensor stay.

    Args:
      leaf: its node until now; graphs that it is a part of keep it.
      value: of the new shape and dtype.
    """
    new = LeafNode(leaf.owner, value.shape, value.dtype)
    new.former = (*[node for node in leaf.former if node() is not None], weakref.ref(leaf))
    new.annotations = tuple([note for note in leaf.annotations if note.kind.stays])
    for note in new.annotations:
        handle = note.handle()
        if handle is not None:
            handle.hold(new)
    return new


def unpacked(node: GraphNode, saved: object, records: bool) -> Any:
    """Residuals as values, or as tensors with their place in the graph."""

    def value_of(x: Any) -> Any:
        return x.value() if type(x) is Packed else x

    if isinstance(saved, LinearProgram):
        if not records or node.primals is None:
            return LinearProgram(saved.jaxpr, saved.targets, tuple(map(value_of, saved.residuals)))
        return _linearized_again(node)
    if saved is None:
        return None

    trace = _trace_of_pass()
    guards = node.guards

    def one(x: Array | complex | Packed, origin: object) -> Any:
        return again(x, origin if records else None, guards, trace)

    return map_residuals(saved, one, node)


def _trace_of_pass() -> Any:
    """The trace of the tensors of the backward pass that runs; ``None`` for the permanent one."""
    trace = None if running.backward is None else running.backward.trace
    return None if trace is Tensor._trace else trace


def _linearized_again(node: GraphNode) -> LinearProgram:
    """The linear part with residuals that are recorded functions of the operands."""
    primitive = node.primitive
    assert primitive is not None
    assert primitive.linearize is not None
    assert node.primals is not None
    for guard in node.primal_guards:
        if guard.storage.version != guard.version:
            raise modified(guard, node)
    needs = tuple(parent is not None for parent in node.parents)
    trace = _trace_of_pass()
    operands = [
        again(x, parent, node.primal_guards, trace)
        for x, parent in zip(node.primals, node.parents, strict=True)
    ]
    _, program = primitive.linearize(needs, operands, **node.params)
    assert isinstance(program, LinearProgram)
    return program
