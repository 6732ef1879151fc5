"""Tensors that share the memory of others.

Here: ``view``, ``views`` (several, as results of one node), ``detached``, ``in_place_of``. Not
here: which operations are views (``autograd.methods``), writes to shared memory
(``autograd.writes``), how a view gets a new node after a write (``autograd.recording.renew``).

Layer: ``autograd``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.composites import alias, named, several
from functrans.autograd.modes import modes
from functrans.autograd.nodes import COMPOSITE, AliasNode
from functrans.autograd.recording import enter_session, follow, node_of, with_only
from functrans.autograd.residuals import keep_result
from functrans.autograd.tensors import ARGUMENT, Tensor, View
from functrans.core.dispatch import Tracer
from functrans.core.source import capture
from functrans.core.values import Array


def view(
    label: str,
    x: Tensor,
    step: Callable[[Any], Any],
    memory: Callable[[np.ndarray], np.ndarray],
    is_copied: bool = False,
) -> Tensor:
    """A tensor that shares the memory of another one.

    Args:
      label: torch's name of the operation.
      x: the other one.
      step: the view as a functrans operation on tensors.
      memory: the view as NumPy has it.
      is_copied: whether that is a conjugated copy, which is to be kept equal to the memory.

    Returns:
      The view; a tensor of its own where NumPy cannot share.
    """
    enter_session(x)
    labelled = _labelled(step, label)
    both = on_either(labelled, memory)
    if isinstance(x._value, Tracer):
        traced: Tensor = labelled(x)
        if isinstance(traced, Tensor):  # else a branch of ``cond`` around took it
            follow(traced, x, both, label, is_copied=is_copied)
        return traced
    own = x._memory()
    value = memory(own)
    node = node_of(x)
    is_recorded = node is not None and modes.grad
    result = _recorded_view(labelled, x) if is_recorded else Tensor.of(value)
    result._follows = x._follows
    result._value = value
    if not is_copied and value.size and not np.may_share_memory(value, own):
        return result
    follow(result, x, both, label, is_copied=is_copied)
    return result


def _recorded_view(step: Callable[[Any], Any], x: Tensor) -> Tensor:
    """The node of a view; that its equations may share memory is told by the view itself."""
    before = modes.is_viewing
    modes.is_viewing = True
    try:
        result: Tensor = step(x)
    finally:
        modes.is_viewing = before
    return result


def detached(x: Tensor, detach: Callable[[Any, Any], Any] = with_only) -> Tensor:
    """The memory of a tensor outside of the graph; a write to either is seen in the other.

    Args:
      x: the tensor.
      detach: what makes its traced value; see ``View``.
    """
    enter_session(x)
    trace = x.__dict__.get("_trace")
    value = x._value
    how = x._view
    is_plain = not isinstance(value, Tracer)
    if is_plain:
        keep_result(x, x._memory())
    if is_plain and not modes.level and (how is None or not how.is_copied):
        result = Tensor.of(x._memory(), None, trace)
        result._inference = x._inference
        result._follows = x._follows
        return result
    result = Tensor.of(x._memory() if is_plain else detach(value, None), None, trace)
    base, steps = (x, ()) if how is None else (how.base, how.steps)
    result._follows, result._inference = x._follows, x._inference
    storage = result._storage = x._stored()
    storage.note_view(result)
    made = result._view = View(base, steps, storage, "Detach", detach=detach)
    if how is not None:
        made.copy_from(how)
    return result


def in_place_of(x: Tensor) -> Tensor:
    """Another tensor that is what a tensor is now, and keeps this shape when that one does not."""
    twin = Tensor.of(x._value, x._node, x.__dict__.get("_trace"))
    twin._storage, twin._follows, twin._inference = x._stored(), x._follows, x._inference
    twin._dual, twin._view = x._dual, copy.copy(x._view)
    twin._place = None if x._place is None else copy.copy(x._place)
    if twin._view is not None:
        twin._storage.note_view(twin)
    trace: Any = twin._trace
    trace.note(twin)
    return twin


def viewed_as(x: Tensor, how: View) -> Tensor:
    """The view of a tensor that another tensor is of its base."""
    for step in how.steps:
        x = view(how.creator, x, step, step)
    return x


def view_node(tensor: Tensor, node: Any) -> AliasNode:
    """A node of its own for a view of all of a tensor, whose node it leads to."""
    result: Any = AliasNode(
        COMPOSITE, {}, None, (node,), tensor._value.shape, tensor._value.dtype, capture(3)
    )
    result.label = "View"
    return result


def whole_view(tensor: Tensor) -> Tensor:
    """A view of all of a tensor, with hooks of its own; the tensor itself if it is traced."""
    if isinstance(tensor._value, Tracer):
        return tensor
    node = node_of(tensor)
    result = Tensor.of(tensor._memory(), node and view_node(tensor, node))
    result._follows = tensor._follows
    follow(result, tensor, lambda x: x, "View")
    return result


def argument_of(tensor: Tensor, level: int) -> Tensor:
    """The argument that stands for a tensor in a transform which hands it on as it is.

    Its writes are writes to the tensor; but it is another one than the tensor, which the function
    may refer to as well and may not write to.

    Args:
      tensor: the tensor of the caller.
      level: the number of the transform.
    """
    enter_session(tensor)
    node = node_of(tensor)
    value = tensor._value if isinstance(tensor._value, Tracer) else tensor._memory()
    result = Tensor.of(value, node and view_node(tensor, node), tensor.__dict__.get("_trace"))
    result._follows = tensor._follows
    follow(result, tensor, lambda x: x, ARGUMENT)
    made: Any = result._view
    made.levels = (*made.levels, level)
    return result


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
    results = several(label, lambda v: tuple([s(v) for s in steps]), x)
    own = x._memory()
    for result, (step, memory) in zip(results, parts, strict=True):
        if not isinstance(own, Tracer):
            result._value = memory(own)
        follow(result, x, on_either(step, memory), label, is_multiple=True)
    return results


def _labelled(step: Callable[[Any], Any], label: str) -> Callable[[Any], Any]:
    """A view whose node goes by torch's name, also when it is made anew."""

    def labelled(part: Any) -> Any:
        result = step(part)
        if not isinstance(result, Tensor):
            return result
        if result is part and not modes.grad:
            return result._trace._result(result._value, (result,))
        return named(alias(result) if result is part else result, label)

    return labelled


def on_either(
    step: Callable[[Any], Any], memory: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Any], Any]:
    """A view as a function of arrays and of tensors."""

    def both(part: Array | Tensor) -> Any:
        return memory(part) if isinstance(part, np.ndarray) else step(part)

    return both
