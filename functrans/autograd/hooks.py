"""Hooks and their handles.

Here: ``RemovableHandle``, ``add_hook``, and how hooks and ``retain_grad`` of a tensor are kept with
its node. Not here: when hooks run (``autograd.engine``).

Hooks on a tensor belong to the gradient that it has when they are added: they stay with its node.
``retain_grad`` follows the tensor to its next node when it is written to. A node with several
results keeps both by number of the result, since its hooks run once for all of them.

Layer: ``autograd``.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.errors import UnsupportedOperationError
from functrans.passes.nodes import OUTPUT, ordered_nodes

_numbers = itertools.count()


class Hooks(dict[int, Callable[..., Any]]):
    """Hooks by number, in the order in which they were added; can be referred to weakly."""

    __slots__ = ("__weakref__",)


class RemovableHandle:
    """What removes a hook; also at the end of a ``with`` block.

    A pickled handle refers to nothing.

    Attributes:
      id: number of the hook.
    """

    id: int

    def __init__(self, hooks: Hooks) -> None:
        self._hooks: Any = weakref.ref(hooks)
        self.id = next(_numbers)

    def remove(self) -> None:
        """Remove the hook; nothing happens if it is gone."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the hook."""
        self.remove()

    def __getstate__(self) -> int:
        return self.id

    def __setstate__(self, state: int) -> None:
        self.id = state
        self._hooks = weakref.ref(Hooks())


class MultiHandle:
    """What removes one hook from several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hook from all of them."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the hook."""
        self.remove()


class _Registered(threading.local):
    """The number of the newest hook that the calling thread has registered on a node."""

    newest = -1


registered = _Registered()
HOOK_TABLES = ("tensor_hooks", "prehooks", "posthooks", "post_accumulate")
"""Where nodes keep hooks."""


def refuse_hooks(what: str, nodes: Iterable[Any], since: int) -> None:
    """Refuse hooks in a graph whose derivative is taken by other means than a backward pass.

    Args:
      what: whose graph it is, for the message.
      nodes: results of the graph.
      since: ``registered.newest`` before the graph was made; older hooks, of leaves outside, stay
        with them.

    Raises:
      UnsupportedOperationError: a node has hooks.
    """
    if registered.newest == since:
        return
    for node in ordered_nodes(list(nodes)):
        tables = [getattr(node, table, None) or () for table in HOOK_TABLES]
        if any(number > since for table in tables for number in table):
            label = getattr(node, "label", "")
            raise UnsupportedOperationError(
                f"{what}: a hook was registered on a gradient inside{label and f' ({label})'}, and "
                "would not be called: the derivative of the whole function is taken at once. Take "
                "it with backward() or torch.autograd.grad, in a jitted step if it is to be "
                "compiled, or register the hook on the argument, outside"
            )


def add_hook(holder: Any, name: str, hook: Callable[..., Any], first: bool = False) -> Any:
    """Add a hook to a table of an object, which is made if it has none.

    Args:
      holder: the node.
      name: of the table.
      hook: the function.
      first: whether it runs before the others.

    Raises:
      TypeError: the hook cannot be called.
    """
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    hooks = getattr(holder, name)
    if hooks is None:
        hooks = Hooks()
        setattr(holder, name, hooks)
        holder.is_watched = True
    handle = RemovableHandle(hooks)
    registered.newest = handle.id
    if first:
        rest = dict(hooks)
        hooks.clear()
        hooks[handle.id] = hook
        hooks.update(rest)
    else:
        hooks[handle.id] = hook
    return handle


def add_tensor_hook(node: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Add a hook on the gradient of a result.

    Args:
      node: the place of the tensor in the graph.
      hook: called with the gradient.
    """
    handle: RemovableHandle = add_hook(node, "tensor_hooks", hook)
    if node.primitive is OUTPUT:
        (main,) = node.parents
        if main.output_hooks is None:
            main.output_hooks = {}
        main.output_hooks.setdefault(node.params["index"], node.tensor_hooks)
        main.is_watched = True
    return handle


def retain(node: Any, tensor: Tensor) -> None:
    """Keep the gradient of a result in ``.grad`` of its tensor."""
    if node.primitive is OUTPUT:
        (main,) = node.parents
        if main.output_retains is None:
            main.output_retains = {}
        main.output_retains[node.params["index"]] = tensor._weak()
        main.is_watched = True
    else:
        node.retains = tensor._weak()
        node.is_watched = True


def move_retain(tensor: Tensor, old: Any, new: Any) -> None:
    """Let ``retain_grad`` follow a tensor from one node to the next.

    Args:
      tensor: it retains its gradient.
      old: its node until now, or ``None``.
      new: its node from now on, or ``None``.
    """
    if old is new:
        return
    if old is not None and old.primitive is OUTPUT:
        (old.parents[0].output_retains or {}).pop(old.params["index"], None)
    elif old is not None and old.retains is not None and old.retains() is tensor:
        old.retains = None
    if new is not None and new.primitive is not None:
        retain(new, tensor)
