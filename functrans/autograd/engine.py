"""The backward pass over the imperative graph.

Here: ``run_backward``: which nodes run, in which order, with which hooks, and where gradients go.
Not here: the checks of arguments (``autograd.api``), the pullback of a node (``nodes``).

Order. Nodes run latest first. Before a node runs, the hooks on its result's tensor see the
gradient, then ``retain_grad`` keeps it, then the node's pre-hooks; after it, its hooks. A leaf runs
as soon as the last contribution to it has come. What a hook returns in place of a gradient counts
from there on.

Gradients between nodes are cotangents as ``passes`` has them, at times narrower than their value or
masked; hooks and leaves see arrays of full shape. Gradients of complex values are conjugates of
cotangents, so that they point in the direction of steepest ascent.

Layer: ``autograd``. Reference: PyTorch's documentation of hooks, for the order.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.modes import modes
from functrans.autograd.nodes import GraphNode, LeafNode, edge_of, torch_type
from functrans.autograd.recording import PERMANENT
from functrans.autograd.tensor import Tensor
from functrans.ir.avals import Zero
from functrans.ir.source import resolve
from functrans.passes.cotangents import add_cotangents, materialize
from functrans.passes.nodes import OUTPUT, Node
from functrans.primitives.complex_parts import conjugate
from functrans.trace import Tracer

_log = logging.getLogger("functrans.autograd.graph")
_accumulating = threading.RLock()


class Pass:
    """One backward pass.

    Attributes:
      records: whether it is recorded itself (``create_graph``).
      keeps: whether residuals stay for another pass.
      size: extent of a leading batch axis of all gradients, or ``None``.
      trace: the trace of the tensors.
    """

    def __init__(self, records: bool, keeps: bool, size: int | None, trace: Any) -> None:
        self.records = records
        self.keeps = keeps
        self.size = size
        self.trace = trace
        self.cts: dict[Node, Any] = {}

    # gradients and cotangents

    def gradient(self, ct: Any, node: Node) -> Tensor:
        """A cotangent as a tensor of full shape."""
        lead = () if self.size is None else (self.size,)
        value = materialize(ct, (*lead, *node.shape))
        if node.dtype.kind == "c":
            value = conjugate(value)
        return value if isinstance(value, Tensor) else self.trace.tensor(value)

    def cotangent(self, gradient: Tensor) -> Any:
        """A gradient as a cotangent."""
        value = gradient if self.records else gradient._value
        return conjugate(value) if gradient.dtype.kind == "c" else value

    def add(self, node: Node, ct: Any) -> None:
        """Add a contribution to a node's cotangent."""
        have = self.cts.get(node)
        self.cts[node] = ct if have is None else add_cotangents(have, ct)

    def take(self, node: Node) -> Any:
        """The cotangent of a node's result, or one per result; ``None`` if nothing came."""
        return self.cts.pop(node, None)

    # hooks

    def through_tensor_hooks(self, node: Any, ct: Any) -> Any:
        """What the hooks on a result make of its cotangent."""
        hooks = getattr(node, "tensor_hooks", None)
        retains = getattr(node, "retains", None)
        if not hooks and retains is None:
            return ct
        gradient = self.gradient(ct, node)
        for hook in list(hooks.values()) if hooks else ():
            gradient = self.replaced(hook, hook(gradient), gradient)
        if retains is not None:
            owner = retains()
            if owner is not None:
                have = owner._grad
                owner._grad = gradient if have is None else have + gradient
        return self.cotangent(gradient)

    def replaced(self, hook: Any, result: Any, gradient: Tensor) -> Tensor:
        """The gradient after a hook.

        Raises:
          TypeError: the hook returned something else than a tensor.
          RuntimeError: it returned one of another shape or dtype.
        """
        if result is None:
            return gradient
        name = getattr(hook, "__name__", type(hook).__name__)
        if not isinstance(result, Tensor):
            raise TypeError(
                f"expected Tensor, but hook '{name}' returned '{type(result).__name__}'"
            )
        if result.shape != gradient.shape:
            raise RuntimeError(f"hook '{name}' has changed the size of value")
        if result.dtype != gradient.dtype:
            raise RuntimeError(f"hook '{name}' has changed the type of value")
        return result


def run_backward(
    roots: Sequence[tuple[Node, Any]],
    wanted: Sequence[Node] | None,
    *,
    accumulate: bool,
    keeps: bool,
    records: bool,
    size: int | None = None,
    trace: Any = PERMANENT,
) -> list[Any]:
    """Pull gradients back through the graph.

    Args:
      roots: node and gradient (a tensor) of each result.
      wanted: nodes whose gradients are asked for; ``None`` for all leaves.
      accumulate: whether gradients are added to ``.grad`` of the tensors of ``wanted``.
      keeps: whether residuals stay.
      records: whether the pass is recorded.
      size: extent of a leading batch axis of the gradients.
      trace: the trace of the tensors.

    Returns:
      Gradients of ``wanted``, ``None`` where nothing came; nothing if they are accumulated.
    """
    run = Pass(records, keeps, size, trace)
    order, waiting = _schedule([node for node, _ in roots], wanted)
    captured: dict[Node, Any] = {}
    wants = set(wanted) if wanted is not None else None
    before = modes.grad
    modes.grad = records
    node: Any = None
    try:
        with np.errstate(all="ignore"):
            for node, gradient in roots:
                run.add(node, run.cotangent(gradient))
            for leaf in [n for n in waiting if not waiting[n]]:
                _run_leaf(run, leaf, wants, captured, accumulate)
            while order:
                node = order.pop()
                _run_node(run, node, wants, captured, waiting, accumulate)
    except Exception as error:
        _explain(node, error)
        raise
    finally:
        modes.grad = before
    if wanted is None or accumulate:
        return []
    return [captured.get(node) for node in wanted]


def _schedule(
    roots: Sequence[Node], wanted: Sequence[Node] | None
) -> tuple[list[Node], dict[Node, int]]:
    """Nodes to run, in order of creation, and how many contributions each leaf waits for."""
    seen = set(roots)
    pending = list(seen)
    while pending:
        for parent in pending.pop().parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                pending.append(parent)
    order = sorted(seen, key=_number)
    if wanted is not None:
        needed = set(wanted) & seen
        for node in order:
            if node not in needed and any(parent in needed for parent in node.parents):
                needed.add(node)
        order = [node for node in order if node in needed]
    waiting: dict[Node, int] = {}
    for node in order:
        if node.primitive is None and type(node) is LeafNode:
            waiting[node] = 0
        else:
            for parent in node.parents:
                if parent in waiting:
                    waiting[parent] += 1
    return [node for node in order if node not in waiting], waiting


def _number(node: Node) -> int:
    return node.number


def _run_node(
    run: Pass,
    node: Any,
    wants: set[Node] | None,
    captured: dict[Node, Any],
    waiting: dict[Node, int],
    accumulate: bool,
) -> None:
    ct = run.take(node)
    if ct is None:
        _pass_nothing(run, node, wants, captured, waiting, accumulate)
        return
    is_result = node.shape is not None
    if is_result:
        ct = run.through_tensor_hooks(node, ct)
        if wants is not None and node in wants:
            captured[node] = run.gradient(ct, node)
            if accumulate:
                _accumulate_in_result(node, captured[node], run.records)
    if node.primitive is OUTPUT:
        main = node.parents[0]
        slots = run.cts.get(main)
        if slots is None:
            slots = run.cts[main] = [None] * len(main.dtype)
        slots[node.params["index"]] = ct
        return
    if wants is not None and not any(
        p is not None and (p in wants or p in waiting or True) for p in node.parents
    ):
        return
    hooked = node.prehooks or node.posthooks
    given: Any = None
    if hooked:
        ct, given = _through_prehooks(run, node, ct)
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("Executing: %r with grad_outputs: %s", node, _described(run, node, ct))
    if modes.observers:
        ends = [observer(node.name(), ()) for observer in modes.observers]
        try:
            pulled = node.pull(ct, run.records, run.size)
        finally:
            for end in reversed(ends):
                end()
    else:
        pulled = node.pull(ct, run.records, run.size)
    if modes.anomaly and modes.check_nan:
        _check_nan(run, node, pulled)
    if node.posthooks:
        pulled = _through_posthooks(run, node, pulled, given)
    if not run.keeps:
        node.free()
    ready = []
    for parent, value in zip(node.parents, pulled):  # noqa: B905  # same by construction
        if parent is None:
            continue
        if value is not None and type(value) is not Zero:
            run.add(parent, value)
        if parent in waiting:
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    for leaf in ready:
        _run_leaf(run, leaf, wants, captured, accumulate)


def _pass_nothing(
    run: Pass,
    node: Any,
    wants: set[Node] | None,
    captured: dict[Node, Any],
    waiting: dict[Node, int],
    accumulate: bool,
) -> None:
    """A node that no gradient reached: its leaves wait for nothing more from it."""
    for parent in node.parents:
        if parent in waiting:
            waiting[parent] -= 1
            if not waiting[parent]:
                _run_leaf(run, parent, wants, captured, accumulate)


def _run_leaf(
    run: Pass,
    leaf: Any,
    wants: set[Node] | None,
    captured: dict[Node, Any],
    accumulate: bool,
) -> None:
    """Hand a leaf its gradient."""
    ct = run.take(leaf)
    if ct is None:
        return
    ct = run.through_tensor_hooks(leaf, ct)
    if wants is not None:
        if leaf not in wants:
            return
        captured[leaf] = run.gradient(ct, leaf)
        if not accumulate:
            return
    gradient = run.gradient(ct, leaf)
    if leaf.prehooks:
        for hook in list(leaf.prehooks.values()):
            result = hook((gradient,))
            if result is not None:
                gradient = run.replaced(hook, _only(result), gradient)
    owner = leaf.owner()
    if owner is not None:
        accumulate_grad(owner, gradient, run.records)
    if leaf.posthooks:
        for hook in list(leaf.posthooks.values()):
            hook((), (gradient,))
    if owner is not None and leaf.post_accumulate:
        for hook in list(leaf.post_accumulate.values()):
            hook(owner)


def _only(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) else result


def accumulate_grad(owner: Tensor, gradient: Tensor, records: bool) -> None:
    """Add to a tensor's gradient: in place, unless the pass is recorded.

    The first gradient gets the memory layout of the tensor, if that has no gaps.
    """
    with _accumulating:
        have = owner._grad
        if have is None:
            owner._grad = gradient if records else Tensor.of(_laid_out(gradient._value, owner))
            if "_trace" in gradient.__dict__:
                owner._grad._trace = gradient._trace
        elif records or isinstance(have._value, Tracer) or isinstance(gradient._value, Tracer):
            owner._grad = have + gradient
        else:
            memory = have._memory()
            np.add(memory, gradient._value, out=memory, casting="unsafe")
            have._stored().bump("AccumulateGrad", None)


def _laid_out(value: Any, owner: Tensor) -> Any:
    """A copy of a gradient in the layout of its tensor."""
    if isinstance(value, Tracer):
        return value
    like = owner._value
    if isinstance(like, np.ndarray) and _is_dense(like):
        copy = np.empty_like(like, dtype=value.dtype)
    else:
        copy = np.empty(value.shape, value.dtype)
    copy[...] = value
    return copy


def _is_dense(x: np.ndarray) -> bool:
    """Whether the elements lie side by side, in any order of axes."""
    expected = x.itemsize
    for stride, extent in sorted(zip(x.strides, x.shape, strict=True)):
        if extent != 1:
            if stride != expected:
                return False
            expected *= extent
    return True


def _accumulate_in_result(node: Any, gradient: Tensor, records: bool) -> None:
    """``backward(inputs=...)`` with a tensor that is no leaf."""
    owner = node.wanted_by() if getattr(node, "wanted_by", None) is not None else None
    if owner is not None:
        accumulate_grad(owner, gradient, records)


# hooks of nodes ----------------------------------------------------------------------------------


def _results(node: Any) -> list[Any]:
    """The results of a node, each with shape and dtype."""
    return [node] if node.shape is not None else list(node.dtype)


def _through_prehooks(run: Pass, node: Any, ct: Any) -> tuple[Any, Any]:
    """Cotangents after the pre-hooks, and gradients of the results for the hooks."""
    results = _results(node)
    cts = [ct] if node.shape is not None else ct
    gradients: tuple[Any, ...] = tuple(
        [None if c is None else run.gradient(c, r) for c, r in zip(cts, results, strict=True)]
    )
    for hook in list(node.prehooks.values()) if node.prehooks else ():
        changed = hook(gradients)
        if changed is not None:
            changed = changed if isinstance(changed, (tuple, list)) else (changed,)
            gradients = tuple(
                [
                    new if old is None else run.replaced(hook, new, old)
                    for new, old in zip(changed, gradients, strict=True)
                ]
            )
    cts = [None if g is None else run.cotangent(g) for g in gradients]
    return (cts[0] if node.shape is not None else cts), gradients


def _through_posthooks(run: Pass, node: Any, pulled: Sequence[Any], given: Any) -> list[Any]:
    """Cotangents of the operands after the hooks."""
    gradients: tuple[Any, ...] = tuple(
        [
            None if c is None or type(c) is Zero or p is None else run.gradient(c, p)
            for c, p in zip(pulled, node.parents, strict=True)
        ]
    )
    for hook in list(node.posthooks.values()):
        changed = hook(gradients, given)
        if changed is None:
            continue
        changed = changed if isinstance(changed, (tuple, list)) else (changed,)
        if len(changed) != len(gradients):
            raise RuntimeError(
                f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number of "
                f"values (got {len(changed)}, but expected {len(gradients)})"
            )
        gradients = tuple(
            [
                new if old is None or new is None else run.replaced(hook, new, old)
                for new, old in zip(changed, gradients, strict=True)
            ]
        )
    return [None if g is None else run.cotangent(g) for g in gradients]


def _described(run: Pass, node: Any, ct: Any) -> str:
    cts = [ct] if node.shape is not None else ct
    parts = [
        "None" if c is None else f"{torch_type(r.dtype)}{list(r.shape)}"
        for c, r in zip(cts, _results(node), strict=True)
    ]
    return f"[{', '.join(parts)}]"


# anomaly -----------------------------------------------------------------------------------------


def _check_nan(run: Pass, node: GraphNode, pulled: Sequence[Any]) -> None:
    """Raise on NaN in a gradient.

    Raises:
      RuntimeError: names the node and the operand.
    """
    for i, (ct, parent) in enumerate(zip(pulled, node.parents, strict=True)):
        if ct is None or parent is None or type(ct) is Zero:
            continue
        value: Any = run.gradient(ct, parent)._value
        if not isinstance(value, Tracer) and np.isnan(value).any():
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _explain(node: Any, error: Exception) -> None:
    """Add where the failing operation was recorded."""
    if node is None or not isinstance(node, GraphNode):
        return
    if node.forward_stack is not None:
        error.add_note(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
            f"{node.forward_stack}"
        )
        return
    line = resolve(node.source)
    if line is not None:
        error.add_note(f"in the gradient of {edge_of(node)[0].name()}, recorded at {line}")


Observer = Callable[[str, Any], Callable[[], None]]
