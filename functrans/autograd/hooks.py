"""Hooks and their handles.

Not here: the kinds of annotations (``core.annotations``), when hooks run (``autograd.engine``).

Hooks on a tensor belong to the gradient that it has when they are added: they stay with its node.
``retain_grad`` follows the tensor to its next node when it is written to. A node with several
results carries the annotations of all of them, since its hooks run once for all.

Layer: ``autograd``.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

from functrans.autograd.labels import edge_of
from functrans.autograd.tensors import Tensor
from functrans.core.annotations import NODE_NAME, RETAINED, TRACED_HOOK, Annotation, Kind, When
from functrans.core.dispatch import Tracer
from functrans.errors import UnsupportedOperationError
from functrans.passes.nodes import ordered_nodes

_numbers = itertools.count()
changing = threading.RLock()
"""Held where several threads may change what they share: annotations, accumulated gradients."""


class Hooks(dict[int, Callable[..., Any]]):
    """Hooks by number, in the order in which they were added; can be referred to weakly."""

    __slots__ = ("__weakref__",)

    def discard(self, number: int) -> None:
        """Remove a hook; nothing happens if it is gone."""
        self.pop(number, None)


class _Removable:
    """Something that ``remove()`` or the end of a ``with`` block ends."""

    def remove(self) -> None:
        """End it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class RemovableHandle(_Removable):
    """What removes a hook; also at the end of a ``with`` block.

    A pickled handle refers to nothing.

    Attributes:
      id: number of the hook.
      holders: weak references to what it hangs on: nodes or tables.
    """

    id: int

    def __init__(self, holder: Any) -> None:
        self.holders: list[Any] = [weakref.ref(holder)]
        self.id = next(_numbers)

    def hold(self, holder: object) -> None:
        """Note that the hook hangs on another object, too."""
        self.holders = [ref for ref in self.holders if ref() is not None] + [weakref.ref(holder)]

    def remove(self) -> None:
        """Remove the hook; nothing happens if it is gone."""
        for reference in self.holders:
            holder = reference()
            if holder is not None:
                holder.discard(self.id)

    def __getstate__(self) -> int:
        return self.id

    def __setstate__(self, state: int) -> None:
        self.id = state
        self.holders = []


class MultiHandle(_Removable):
    """What removes one hook from several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hook from all of them."""
        for handle in self.handles:
            handle.remove()


class _Registered(threading.local):
    """The number of the newest hook that the calling thread has registered on a node."""

    newest = -1


registered = _Registered()


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
        if any(note.number > since for note in node.annotations):
            label = getattr(node, "label", "")
            raise UnsupportedOperationError(
                f"{what}: a hook was registered on a gradient inside{label and f' ({label})'}, and "
                "would not be called: the derivative of the whole function is taken at once. Take "
                "it with backward() or torch.autograd.grad, in a jitted step if it is to be "
                "compiled, or register the hook on the argument, outside"
            )


def annotate(node: Any, note: Annotation) -> None:
    """Attach something to a node, behind what its result carries for the same time."""
    with changing:
        notes = list(node.annotations)
        when, result = note.kind.when, note.result
        same = [i for i, n in enumerate(notes) if n.kind.when is when and n.result == result]
        notes.insert(same[-1] + 1 if same else len(notes), note)
        node.annotations = tuple(notes)


def add_hook(node: object, kind: Kind, hook: Callable[..., Any]) -> RemovableHandle:
    """Add a hook to a node; to one for a result among several, where it runs.

    Raises:
      TypeError: the hook cannot be called.
    """
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    node, result = edge_of(node)
    handle = RemovableHandle(node)
    registered.newest = handle.id
    annotate(node, Annotation(kind, hook, result, handle.id, weakref.ref(handle)))
    return handle


def add_node_hook(node: Any, kind: Kind, hook: Callable[..., Any]) -> RemovableHandle:
    """Add a hook to a node; of a dual tensor also to that of its primal."""
    handle = add_hook(node, kind, hook)
    if node.below is not None:
        carry(node.below[0], Annotation(kind, hook, 0, handle.id, weakref.ref(handle)))
    return handle


def made_by(tensor: Tensor, node: object) -> Any:
    """The node of an equation as the user gets it: one of a dual tensor knows its primal's."""
    made, _ = edge_of(node)
    for primal in _primals(tensor):
        own, _ = edge_of(primal)
        if (own.shape is None) == (made.shape is None) and own not in made.parents:
            made.below = own, tensor._trace
    return made


def carry(node: Any, note: Annotation) -> None:
    """Attach to a node what the equation carries that it was made by, unless it has it."""
    node, result = edge_of(node)
    if note.kind is NODE_NAME:
        node.label = note.value
    elif note.kind.when is When.READ or note.kind is TRACED_HOOK:
        return  # residuals and equations say it themselves
    elif note not in node.annotations:
        annotate(node, note if note.result == result else replace(note, result=result))
        handle = note.handle and note.handle()
        if handle is not None:
            handle.hold(node)


def add_tensor_hook(
    tensor: Tensor, node: object, kind: Kind, hook: Callable[..., Any]
) -> RemovableHandle:
    """Add a hook to the node of a tensor; the program that is being traced says so, too."""
    handle = add_hook(node, kind, hook)
    note = Annotation(kind, hook, 0, handle.id, weakref.ref(handle))
    for primal in _primals(tensor):
        carry(primal, note)
    say(tensor, Annotation(kind, hook))
    return handle


def _primals(tensor: Tensor) -> list[Any]:
    """Nodes of the primal of a dual tensor, through which its gradients may come alone."""
    trace: Any = tensor._trace
    primal = getattr(tensor._value, "_value", None) if trace.keeps_account else None
    node = primal._node if isinstance(primal, Tensor) else None
    return [] if node is None else [node]


def say(tensor: Tensor, note: object, is_result: bool = True) -> None:
    """Note in the program that the value of a tensor belongs to what it carries."""
    value = tensor._value
    if isinstance(value, Tracer):
        if isinstance(note, Annotation) and note.kind.when is not When.NEVER:
            note = Annotation(TRACED_HOOK, str(note))
        value._trace.annotate(value, note, is_result)


class _Retained:
    """Keeps the gradient of a tensor in its ``.grad``.

    Attributes:
      holders: weak references to the nodes that carry it: of a dual tensor also its primal's.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor._weak()
        self.holders: list[Any] = []

    def __call__(self, gradient: Tensor) -> None:
        owner = self.tensor()
        if owner is not None and gradient is not None:
            with changing:
                have = owner._grad
                is_new = have is None or not have._trace.is_open  # of a batch that is over
                owner._grad = gradient.clone() if is_new else have + gradient


def retain(node: Any, tensor: Tensor) -> None:
    """Keep the gradient of a result in ``.grad`` of its tensor."""
    node, result = edge_of(node)
    _drop([n for n in node.annotations if n.kind is RETAINED and n.result == result])
    note = Annotation(RETAINED, _Retained(tensor), result)
    annotate(node, note)
    primals = _primals(tensor)
    for primal in primals:
        carry(primal, note)
    note.value.holders = [weakref.ref(edge_of(x)[0]) for x in (node, *primals)]
    say(tensor, note)


def move_retain(tensor: Tensor, old: object, new: Any) -> None:
    """Let ``retain_grad`` follow a tensor from one node to the next.

    Args:
      tensor: it retains its gradient.
      old: its node until now, or ``None``.
      new: its node from now on, or ``None``.
    """
    if old is new:
        return
    if old is not None:
        node, _ = edge_of(old)
        retained = [n for n in node.annotations if n.kind is RETAINED]
        _drop([n for n in retained if n.value.tensor() is tensor])
    if new is not None and new.primitive is not None:
        retain(new, tensor)


def _drop(retained: Sequence[Annotation]) -> None:
    """Take notes from all nodes that carry them."""
    with changing:
        for note in retained:
            for node in [holder() for holder in note.value.holders]:
                if node is not None:
                    notes = node.annotations
                    node.annotations = tuple([n for n in notes if n.value is not note.value])
