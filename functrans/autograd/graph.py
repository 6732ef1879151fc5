"""The recorded graph: its nodes, hooks on several tensors, hooks on saved tensors.

Not here: how nodes are made (``autograd.recording``), when hooks run (``autograd.engine``).

Every node that a backward pass runs is logged on ``functrans.autograd.graph`` at level DEBUG.

Layer: ``autograd``. Reference: PyTorch's ``torch.autograd.graph``.
"""

from __future__ import annotations

import functools
import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.api import GradientEdge as GradientEdge
from functrans.autograd.api import get_gradient_edge as get_gradient_edge
from functrans.autograd.hooks import MultiHandle, RemovableHandle, add_tensor_hook
from functrans.autograd.listing import drawn_as_dot
from functrans.autograd.modes import Scope, modes
from functrans.autograd.nodes import GraphNode, LeafNode, running
from functrans.autograd.pictures import drawn_as_html
from functrans.autograd.recording import node_of
from functrans.autograd.tensors import Tensor
from functrans.core.annotations import MULTI_GRAD_HOOK
from functrans.core.boundary import boundary
from functrans.core.boundary import guard as _guard
from functrans.core.source import capture
from functrans.core.values import Array
from functrans.namespaces import listing

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "save_to_disk",
    "saved_tensors_hooks",
    "to_dot",
    "to_html",
]
__dir__ = listing(__all__)

# nodes -------------------------------------------------------------------------------------------


class Node(ABC):
    """What ``Tensor.grad_fn`` is: an operation of the graph, for ``isinstance``.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor(2.0, requires_grad=True)
      >>> isinstance((x * x).grad_fn, Node)
      True
    """

    @abstractmethod
    def name(self) -> str:
        """Torch's name of the operation: ``MulBackward0``."""

    @property
    @abstractmethod
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Node and number of the result that each operand came from."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user."""

    @abstractmethod
    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node ran."""

    @abstractmethod
    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node runs."""


Node.register(GraphNode)
Node.register(LeafNode)


def _nodes_of(roots: Sequence[Any]) -> list[Any]:
    found = []
    for root in roots:
        node = node_of(root) if isinstance(root, Tensor) else root
        if node is None:
            raise RuntimeError("a tensor that does not require grad has no graph")
        found.append(node)
    return found


@boundary
def to_dot(*roots: object) -> str:
    """The graph that tensors (or nodes) were computed by, for Graphviz; hooks are marked.

    Args:
      *roots: tensors or nodes.

    Raises:
      RuntimeError: a tensor requires no gradient.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> to_dot((x * x).sum()).splitlines()[0]
      'digraph jaxpr {'
    """
    return drawn_as_dot(_nodes_of(roots))


@boundary
def to_html(*roots: object) -> str:
    """A page of HTML with a picture of the graph and its program; hooks are marked.

    Args:
      *roots: tensors or nodes.

    Raises:
      RuntimeError: a tensor requires no gradient.
    """
    return drawn_as_html(_nodes_of(roots))


@boundary
def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that the memory of tensors was written to behind the library's back.

    Args:
      tensor: a tensor, or several.

    Raises:
      RuntimeError: something else is given.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0])
      >>> x.numpy()[0] = 2.0
      >>> increment_version(x)
      >>> x._version
      1
    """
    if isinstance(tensor, Tensor):
        tensors = [tensor]
    else:
        try:
            tensors = list(tensor)
        except TypeError:
            raise RuntimeError("increment_version expect a Iterable[Tensor] as input") from None
    for x in tensors:
        if not isinstance(x, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a "
                               "tensor")  # fmt: skip
    source = capture(2)
    for x in tensors:
        if not x._inference:  # whose writes are not counted
            x._stored().bump("increment_version", source)


# hooks on several tensors ------------------------------------------------------------------------


class _MultiGradHook:
    """A hook on several tensors.

    Attributes:
      fn: the function.
      n: how many tensors.
      waits: whether it is called when the last gradient has come, not when the first has.
      passes: by backward pass, the gradients so far, and how many are still to come.
    """

    def __init__(self, fn: Callable[[Any], Any], n: int, waits: bool) -> None:
        self.fn = fn
        self.n = n
        self.waits = waits
        self.passes: weakref.WeakKeyDictionary[Any, tuple[list[Any], list[int]]] = (
            weakref.WeakKeyDictionary()
        )
        self.lock = threading.Lock()

    def collect(self, i: int, gradient: object) -> None:
        """Take the gradient of a tensor, and call the function when it is time."""
        run = running.backward
        assert run is not None
        with self.lock:
            is_first = run not in self.passes
            if is_first:
                self.passes[run] = [None] * self.n, [self._due(run)]
            gradients, missing = self.passes[run]
            gradients[i] = gradient
            missing[0] -= 1
            is_due = not missing[0] if self.waits else is_first
        if is_due:
            self.fn(gradients if self.waits else gradient)

    def _due(self, run: Any) -> int:
        """How many gradients a pass will bring."""
        notes = [note for node in run.scheduled for note in node.annotations]
        return sum(n.kind is MULTI_GRAD_HOOK and n.value.func == self.collect for n in notes)


@boundary
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], Any], *, mode: str = "all"
) -> MultiHandle:
    """Call a function when the gradients of several tensors are there.

    What belongs together are the gradients of one backward pass, also when passes run in several
    threads or inside each other.

    Args:
      tensors: they require gradients; of others, ``"any"`` takes no notice.
      fn: called with a list of gradients, ``None`` for tensors that have none in this pass
        (``"all"``), or with the first gradient (``"any"``). It can not replace gradients.
      mode: ``"all"`` when the last gradient is there, ``"any"`` when the first one is.

    Returns:
      A handle, whose ``remove()`` ends it.

    Raises:
      ValueError: another mode.
      AssertionError: a tensor requires no gradient.

    Example:
      >>> from functrans.autograd import tensor
      >>> a = tensor(2.0, requires_grad=True)
      >>> b = tensor(3.0, requires_grad=True)
      >>> handle = register_multi_grad_hook((a, b), print)
      >>> (a * b).backward()
      [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if mode == "any":
        tensors = tuple([tensor for tensor in tensors if tensor.requires_grad])
    nodes = [node_of(tensor) for tensor in tensors]
    if None in nodes:
        raise AssertionError(
            f"Expected gradient function to be set, but tensor {nodes.index(None)} requires no "
            "gradient"
        )
    whole = _MultiGradHook(fn, len(nodes), mode == "all")
    handles = []
    for i, (tensor, node) in enumerate(zip(tensors, nodes, strict=True)):
        hook: Any = functools.partial(whole.collect, i)
        hook.__name__ = getattr(fn, "__name__", None) or type(fn).__name__
        handles.append(add_tensor_hook(tensor, node, MULTI_GRAD_HOOK, hook))
    return MultiHandle(handles)


# hooks on saved tensors --------------------------------------------------------------------------


class saved_tensors_hooks(Scope):  # noqa: N801  # torch's name
    """Decide how tensors that derivatives need are kept, for operations recorded in a block.

    A context manager and a decorator, for the calling thread; the innermost one counts.

    Args:
      pack_hook: called with a tensor when it is saved; what it returns is kept.
      unpack_hook: called with that when the tensor is needed; returns the tensor.

    Raises:
      TypeError: they can not be called.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> with saved_tensors_hooks(lambda t: t.tolist(), tensor):
      ...     y = x * x
      >>> y.sum().backward()
      >>> x.grad
      tensor([2., 4.])
    """

    @boundary
    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("saved_tensors_hooks: pack_hook and unpack_hook must be callable")
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> Any:
        """Refuse where ``disable_saved_tensors_hooks`` is in force."""
        if modes.no_packers is not None:
            raise RuntimeError(modes.no_packers)
        self._before = modes.packers
        modes.change({"packers": (*modes.packers, (self.pack_hook, self.unpack_hook))})
        return None

    def __exit__(self, *_: object) -> None:
        """Restore the hooks from before."""
        modes.packers = self._before
        modes.update()

    def clone(self) -> saved_tensors_hooks:
        """Another one of the same hooks, for one call of a decorated function."""
        return saved_tensors_hooks(self.pack_hook, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  # torch's name
    """Keep saved tensors as copies in main memory; they are read from there when needed.

    Tensors of functrans are in main memory, so that this only separates what is saved from later
    writes.

    Args:
      pin_memory: accepted for torch's sake.
      device_type: accepted for torch's sake.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        self.pin_memory = pin_memory
        self.device_type = device_type
        super().__init__(_copied, Tensor.of)


def _copied(tensor: Tensor) -> Array:
    return np.array(tensor._value, order="K")


class OnDisk:
    """An array in a file, which goes when nothing needs it any more.

    Attributes:
      path: the file.
      shape: of the array.
      dtype: of the array.
    """

    def __init__(self, value: np.ndarray, directory: str) -> None:
        handle, self.path = tempfile.mkstemp(".saved", "functrans-", directory)
        self.shape, self.dtype = value.shape, value.dtype
        self._finalizer = weakref.finalize(self, _remove_file, self.path, os.getpid())
        with os.fdopen(handle, "wb") as file:
            np.ascontiguousarray(value).tofile(file)

    def load(self) -> Tensor:
        """A tensor on the file's pages; writes to it do not reach the file."""
        if 0 in self.shape:
            return Tensor.of(np.empty(self.shape, self.dtype))
        pages = np.memmap(self.path, self.dtype, "c", shape=self.shape or (1,))
        return Tensor.of(np.asarray(pages).reshape(self.shape))


def _remove_file(path: str, owner: int) -> None:
    """Remove a file of this process; a forked one leaves the files of its parent."""
    if os.getpid() == owner and os.path.exists(path):  # noqa: PTH110  # as ir.source: pathlib takes 5 ms to import
        os.remove(path)  # noqa: PTH107  # as above


class save_to_disk(saved_tensors_hooks):  # noqa: N801  # named as save_on_cpu
    """Keep saved tensors in files, and map them into memory when they are needed.

    A file is removed when the graph no longer needs it.

    Args:
      path: an existing directory for the files; that for temporary files if not given.

    Raises:
      NotADirectoryError: there is no such directory.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> with save_to_disk():
      ...     y = x * x
      >>> y.sum().backward()
      >>> x.grad
      tensor([2., 4.])
    """

    @boundary
    def __init__(self, path: Any = None) -> None:
        directory = tempfile.gettempdir() if path is None else os.fspath(path)
        if not os.path.isdir(directory):  # noqa: PTH112  # as ir.source: pathlib takes 5 ms
            raise NotADirectoryError(f"save_to_disk: no directory {directory!r}")
        self.path = directory

        def pack(tensor: Tensor) -> OnDisk:
            return OnDisk(np.asarray(tensor._value), directory)

        super().__init__(pack, OnDisk.load)


class disable_saved_tensors_hooks(Scope):  # noqa: N801  # torch's name
    """Refuse hooks for saved tensors in a block.

    Args:
      error_message: of the ``RuntimeError``.

    Example:
      >>> with disable_saved_tensors_hooks("not here"), save_on_cpu():
      ...     pass
      Traceback (most recent call last):
      ...
      RuntimeError: not here
    """

    _settings = ("error_message",)

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        """Refuse if there are hooks already."""
        if modes.packers:
            raise RuntimeError(self.error_message)
        self._before = modes.no_packers
        modes.no_packers = self.error_message

    def __exit__(self, *_: object) -> None:
        """Restore what was before."""
        modes.no_packers = self._before


# writes to saved tensors -------------------------------------------------------------------------


class _Held:
    """A saved tensor that may be written to.

    Attributes:
      tensor: as it was saved; a copy once its memory was written to.
      context: where it was saved.
    """

    __slots__ = ("__weakref__", "context", "tensor")

    def __init__(self, tensor: Tensor, context: MutationContext) -> None:
        self.tensor = tensor
        self.context = weakref.ref(context)


class MutationContext:
    """What ``allow_mutation_on_saved_tensors`` gives: the tensors saved inside.

    Attributes:
      held: by storage, saved tensors that lie in it.
    """

    def __init__(self) -> None:
        self.held: weakref.WeakKeyDictionary[Any, weakref.WeakSet[_Held]] = (
            weakref.WeakKeyDictionary()
        )
        self.is_open = True

    def pack(self, tensor: Tensor) -> _Held:
        """Note that a tensor was saved."""
        storage = tensor._stored()
        view = Tensor.of(tensor._memory())
        held = _Held(view, self)
        self.held.setdefault(storage, weakref.WeakSet()).add(held)
        return held

    def unpack(self, held: _Held) -> Tensor:
        """The tensor as it was saved.

        Raises:
          AssertionError: outside of the block.
        """
        if held.context() is not self or not self.is_open or modes.mutation is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        return held.tensor

    def before_write(self, storage: object) -> None:
        """Copy what was saved of memory that is about to be written to."""
        for held in self.held.pop(storage, ()):
            held.tensor = Tensor.of(np.array(held.tensor._value, order="K"))

    def clear(self) -> None:
        """Forget all saved tensors; the graphs of the block can no longer be used."""
        for group in list(self.held.values()):
            for held in list(group):
                held.context = weakref.ref(MutationContext())
        self.held.clear()


class allow_mutation_on_saved_tensors(Scope):  # noqa: N801  # torch's name
    """Writes to saved tensors copy them first, so that the backward pass sees what was saved.

    Forward and backward have to run inside the block.

    Raises:
      RuntimeError: it is used inside another one.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> with allow_mutation_on_saved_tensors():
      ...     y = x * 1
      ...     z = (y * y).sum()
      ...     y += 1
      ...     z.backward()
      >>> x.grad
      tensor([2., 4.])
    """

    def __enter__(self) -> MutationContext:
        """Begin."""
        if modes.mutation is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        context = MutationContext()
        self._hooks = saved_tensors_hooks(context.pack, context.unpack)
        self._hooks.__enter__()
        modes.mutation = context
        return context

    def __exit__(self, *_: object) -> None:
        """The graphs of the block can no longer be used."""
        modes.mutation.clear()
        modes.mutation.is_open = False
        modes.mutation = None
        self._hooks.__exit__()


_guard(globals(), __all__, homes=("functrans.autograd",))
