"""Contexts and nodes of ``Function``, and the tensors that they save.

Here: ``FunctionCtx``, ``FunctionNode``, ``SavedTensor``, and the checks of what a user's
``backward`` returns. Not here: the class and its calls (``autograd.function``).

What the user sees of a call is the context (``ctx``), which the node holds: the user's attributes
must not meet those of the node. A saved tensor is kept as value, guard and node, like any residual,
so that nothing refers in a circle.

Layer: ``autograd``.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.custom_functions import backward_on_traced
from functrans.autograd.modes import modes
from functrans.autograd.nodes import GraphNode
from functrans.autograd.recording import guard_of, node_of
from functrans.autograd.residuals import FREED, modified, pack_tensor
from functrans.autograd.tensors import Tensor
from functrans.core.avals import Zero
from functrans.core.boundary import warn
from functrans.core.dispatch import Tracer
from functrans.core.source import capture
from functrans.passes.cotangents import materialize
from functrans.passes.nodes import OUTPUT
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.structural import cast, sum_to_shape

# saved tensors -----------------------------------------------------------------------------------


class SavedTensor:
    """A tensor that is kept for a derivative.

    Attributes:
      follows: whether it comes from ``functrans.compat.torch``.
      value: its array, unless a pack hook took it.
      packed: what a pack hook made of it, or ``None``.
      origin: the node of the tensor; ``None`` for constants and results of the node itself.
      result: which result of the node it is, or ``None``.
      guard: its storage and version.
      tensor: weak reference to the tensor.
    """

    __slots__ = ("follows", "guard", "origin", "packed", "result", "tensor", "value")

    def __init__(self, tensor: Tensor, result: int | None = None, name: str = "") -> None:
        self.origin = node_of(tensor) if result is None else None
        self.result = result
        self.tensor = weakref.ref(tensor)
        self.follows = tensor._follows
        self.value = tensor._memory()
        self.guard: Any = guard_of(tensor, name)  # by name: a node must not refer to itself
        self.packed: Any = None
        if modes.packers and isinstance(self.value, np.ndarray):
            self._pack(*modes.packers[-1])

    def _pack(self, pack: Any, unpack: Any) -> None:
        """Hand the tensor to a pack hook: a leaf itself, else a tensor of the same value."""
        origin = self.origin
        is_leaf = self.result is None and (origin is None or origin.primitive is None)
        tensor = self.tensor() if is_leaf else None
        if tensor is not None and tensor._node is not origin:
            tensor = None
        if tensor is None:
            tensor = Tensor.of(self.value)
            tensor._storage, tensor._follows = self.guard.storage, self.follows
        self.packed = pack_tensor(tensor, pack, unpack, "a Function", capture())
        self.value = self.guard = None

    def register_hooks(self, pack: object, unpack: object) -> None:
        """Keep what ``pack`` makes of the tensor; ``unpack`` gives it back when it is needed.

        Args:
          pack: called at once with the tensor.
          unpack: called with what ``pack`` returned.

        Raises:
          TypeError: they cannot be called.
          RuntimeError: it has hooks, or was written to.
        """
        if not callable(pack) or not callable(unpack):
            raise TypeError("register_hooks(): incompatible function arguments: pass two callables")
        if self is _NOTHING:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if self.packed is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        guard = self.guard
        if guard.storage.version != guard.version:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor that has been modified by an inplace "
                "operation since it was saved."
            )
        self._pack(pack, unpack)

    def tensor_for(self, node: GraphNode | None) -> Tensor:
        """The tensor again, with its place in the graph.

        Args:
          node: the node that saved it.

        Raises:
          RuntimeError: it was written to since.
        """
        if self.packed is not None:
            packed = self.packed.tensor()
            value, storage = packed._value, packed._stored()
        else:
            guard = self.guard
            if guard.storage.version != guard.version and node is not None:
                raise modified(guard, node)
            value, storage = self.value, guard.storage
            tensor = self.tensor()
            if tensor is not None and self.result is None and node_of(tensor) is self.origin:
                return tensor
        origin = self.origin
        if self.result is not None and node is not None:
            origin = result_node(node, self.result)
        again = Tensor.of(value, origin)
        again._storage, again._follows = storage, self.follows
        return again


_NOTHING = object.__new__(SavedTensor)
"""The place of a ``None`` among saved tensors."""


def result_node(node: GraphNode, index: int) -> GraphNode:
    """The node of a result of a node."""
    if node.shape is not None:
        return node
    aval = node.dtype[index]
    return GraphNode(OUTPUT, {"index": index}, None, (node,), aval.shape, aval.dtype, node.source)


# contexts ----------------------------------------------------------------------------------------


class FunctionCtx:
    """What ``forward`` tells ``backward`` and the graph.

    Attributes:
      to_save: what was given to ``save_for_backward``.
      saved_for_forward: what was given to ``save_for_forward``.
      dirty_tensors: what was given to ``mark_dirty``.
      non_differentiable: what was given to ``mark_non_differentiable``.
      materialize_grads: whether gradients that did not come are zeros for ``backward``.
      needs_input_grad: per argument of ``forward``, whether it requires a gradient.
    """

    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = ()
    non_differentiable: Any = ()
    materialize_grads = True
    _materialize_non_diff_grads = True  # of results that were marked as such
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for ``backward``; to be called at most once.

        Writes to them are noticed, and hooks for saved tensors see them.

        Args:
          *tensors: arguments, results and intermediate tensors; ``None`` stays ``None``.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for ``jvp``.

        Args:
          *tensors: tensors or ``None``.
        """
        for x in tensors:
            assert x is None or isinstance(x, Tensor), (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors "
                "as attributes on ctx."
            )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: object) -> None:
        """Say which arguments ``forward`` wrote to; it must return all of them.

        Args:
          *args: tensors among the arguments.
        """
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: object) -> None:
        """Do nothing: shared memory is found without it."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *args: object) -> None:
        """Say which results have no derivative.

        Args:
          *args: tensors among the results.
        """
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Say what ``backward`` gets where no gradient came: zeros, or ``None``.

        Args:
          value: whether it gets zeros, as it does by default.
        """
        self.materialize_grads = bool(value)


class BackwardCFunction(FunctionCtx):
    """The context of one call; ``grad_fn`` of its results forwards to it.

    Each ``Function`` has a subclass of its own, ``<name>Backward``.
    """

    _forward_cls: Any = None
    _saved: Any = ()
    _node: Any = staticmethod(lambda: None)
    _given: Any = None

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to ``save_for_backward``.

        Raises:
          RuntimeError: the graph was freed, or one of them was written to.
        """
        if self._given is not None:
            return self._given
        if self._saved is None:
            raise RuntimeError(FREED)
        node = self._node()
        return tuple([None if s is None else s.tensor_for(node) for s in self._saved])

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """The places of the saved tensors, which take hooks (``register_hooks``)."""
        if self._saved is None:
            raise RuntimeError(FREED)
        return tuple([_NOTHING if saved is None else saved for saved in self._saved])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """``saved_tensors`` by its former name."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    def name(self) -> str:
        """``<name>Backward``."""
        return type(self).__name__

    def _graph_node(self) -> Any:
        node = self._node()
        if node is None:
            raise RuntimeError(f"{self.name()}: the call was not recorded, so it has no node")
        return node

    @property
    def next_functions(self) -> Any:
        """Node and number of the result that each tensor argument came from."""
        return self._graph_node().next_functions

    @property
    def metadata(self) -> Any:
        """A dictionary for the user."""
        return self._graph_node().metadata

    def __repr__(self) -> str:
        """``<MyFunctionBackward object at 0x...>``."""
        return f"<{self.name()} object at {id(self):#x}>"


class FunctionNode(GraphNode):
    """A call of a ``Function``; its attributes besides those of nodes are those of the context.

    Attributes:
      ctx: the context.
      positions: of the tensors among the arguments.
      n_args: number of arguments.
      results: aval of each result, ``None`` for what is no tensor or gets no zeros.
      follows: whether results are tensors of ``functrans.compat.torch``.
    """

    ctx: Any
    follows: bool
    positions: tuple[int, ...]
    n_args: int
    results: tuple[Any, ...]
    takes_none = True  # zeros are made for it, or its backward knows what to do

    def name(self) -> str:
        """``<name>Backward``."""
        return type(self.ctx).__name__

    def __getattr__(self, name: str) -> Any:
        """Attributes of the context."""
        if name.startswith("__") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def pack_residuals(self, *_: object) -> None:
        """Nothing: tensors were handed to hooks when they were saved."""

    def free(self) -> None:
        """Give saved tensors up."""
        if self.ctx._saved:
            self.is_freed = True
            self.ctx._saved = None

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Pull cotangents back through the user's function."""
        cts = [ct] if self.shape is not None else list(ct)
        given = [None if c is None or type(c) is Zero else c for c in cts]
        lead = () if size is None else (size,)
        values: list[Any] = []
        for c, aval in zip(given, self.results, strict=True):
            if c is None or aval is None:
                values.append(None)
                continue
            value = materialize(c, (*lead, *aval.shape))
            values.append(conjugate(value) if aval.dtype.kind == "c" else value)
        if size is not None or any(
            isinstance(v, Tracer) and not isinstance(v, Tensor) for v in values
        ):
            pulled = backward_on_traced(self._gradients, values, size)
        else:
            tensors = [
                v if v is None or isinstance(v, Tensor) else Tensor.of(np.asarray(v))
                for v in values
            ]
            pulled = self._gradients(tensors)
        results: list[Any] = []
        for gradient, parent in zip(pulled, self.parents, strict=True):
            if gradient is None or parent is None:
                results.append(None)
                continue
            value = gradient if records or not isinstance(gradient, Tensor) else gradient._value
            results.append(conjugate(value) if parent.dtype.kind == "c" else value)
        return results

    def _gradients(self, gradients: Sequence[Any]) -> list[Any]:
        """What the user's function makes of gradients, for each tensor argument."""
        ctx = self.ctx
        if ctx.materialize_grads:
            gradients = [
                Tensor.of(np.zeros(aval.shape, aval.dtype)) if g is None and aval is not None else g
                for g, aval in zip(gradients, self.results, strict=True)
            ]
        if self.follows:
            for g in gradients:
                if g is not None:
                    g._follows = True
        result = type(ctx)._forward_cls.call_backward(ctx, gradients)
        return checked_gradients(self.name(), result, self.n_args, self.positions, self.parents)


def checked_gradients(
    name: str, result: Any, n_args: int, positions: Sequence[int], inputs: Sequence[Any]
) -> list[Any]:
    """Gradients of the tensor arguments, in their shapes and dtypes.

    Args:
      name: of the node, for messages.
      result: what the user's function returned.
      n_args: number of arguments of ``forward``.
      positions: of the tensors among them.
      inputs: per tensor something with shape and dtype, or ``None`` where no gradient is wanted.

    Raises:
      RuntimeError: their number, a type or a shape is wrong.
    """
    items = list(result) if isinstance(result, tuple) else [result]
    if len(items) > n_args and all(item is None for item in items[n_args:]):
        del items[n_args:]
    if len(items) != n_args:
        raise RuntimeError(
            f"function {name} returned an incorrect number of gradients (expected {n_args}, got "
            f"{len(items)})"
        )
    for i, item in enumerate(items):
        if i not in positions:
            if item is not None:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position "
                    f"{i + 1}, but the corresponding forward input was not a Variable"
                )
        elif item is not None and not isinstance(item, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(item).__name__})")
    return [
        None if items[i] is None or like is None else _fitted(name, n, items[i], like)
        for n, (i, like) in enumerate(zip(positions, inputs, strict=True))
    ]


def _fitted(name: str, index: int, gradient: Tensor, like: Any) -> Any:
    """A gradient in the shape and dtype of its input."""
    if gradient.shape != like.shape:
        if not _expands(like.shape, gradient.shape):
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {index} - got "
                f"{list(gradient.shape)} but expected shape compatible with {list(like.shape)}"
            )
        gradient = sum_to_shape(gradient, like.shape)
    if gradient.dtype != like.dtype:
        if gradient.dtype.kind == "c" and like.dtype.kind != "c":
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                f"grad_is_complex) to be true, but got false: backward of {name} returned a "
                f"complex gradient at index {index} for an input of {like.dtype}; return its "
                "real part"
            )
        gradient = cast(gradient, like.dtype)
    return gradient


def _expands(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    if len(shape) > len(to):
        return False
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return all(extent in (1, other) for extent, other in pairs)
