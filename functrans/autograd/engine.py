"""The backward pass over the imperative graph.

Here: ``run_backward``: which nodes run, in which order, with which hooks, and where gradients go.
Not here: the checks of arguments (``autograd.api``), the pullback of a node (``nodes``), traces of
what failed (``autograd.anomaly``).

Order. Nodes run latest first, a leaf as soon as the last contribution to it has come, and before
all if nothing else reads it. For a node: what ``grad`` asked for, hooks on its results' tensors,
``retain_grad`` (which sees what they made of the gradient), pre-hooks, the pullback, hooks; where
nothing below a node was asked for, it does not run, and hands out what its hooks made. For a leaf:
hooks on the tensor, pre-hooks, ``.grad``, post-accumulate hooks, hooks. What a hook returns in
place of a gradient counts from there on. A node that no gradient reaches runs its hooks with
``None``.

Gradients between nodes are cotangents as ``passes`` has them, at times narrower than their value or
masked; hooks and leaves see arrays of full shape. Gradients of complex values are conjugates of
cotangents, so that they point in the direction of steepest ascent.

Layer: ``autograd``. Reference: PyTorch's documentation of hooks, for the order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from functrans.autograd.anomaly import check_nan, explain
from functrans.autograd.func_batches import vmap
from functrans.autograd.hooks import changing
from functrans.autograd.kinks import PIECEWISE_LINEAR, dependent
from functrans.autograd.labels import edge_of, torch_type
from functrans.autograd.memory_order import is_dense
from functrans.autograd.modes import modes
from functrans.autograd.nodes import Hooked, LeafNode, running
from functrans.autograd.recording import PERMANENT
from functrans.autograd.tensors import Tensor
from functrans.core.annotations import When
from functrans.core.avals import Zero
from functrans.core.dispatch import Tracer, bind
from functrans.core.quiet import quietly
from functrans.core.values import Array
from functrans.passes.cotangents import materialize
from functrans.passes.nodes import Node, ordered_nodes
from functrans.passes.pullback import add, walk
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.structural import copy_p

_log = logging.getLogger("functrans.autograd.graph")
_number = attrgetter("number")


class Pass:
    """One backward pass: what ``passes.pullback.walk`` meets on its way.

    Attributes:
      records: whether it is recorded itself (``create_graph``).
      keeps: whether residuals stay for another pass.
      size: extent of a leading batch axis of all gradients, or ``None``.
      trace: the trace of the tensors.
      captures: by node, number of the result and position of a gradient that was asked for.
      captured: those gradients.
      stops: nodes that are not run, since nothing below them was asked for.
      special: all nodes whose gradients were asked for, and those that run without any.
      scheduled: all nodes whose gradient is computed.
      logs: whether the log is told of every node.
      is_quiet: whether nobody looks at what single nodes do.
      node: where it is.
      is_for_all: whether it goes to all leaves, and not to chosen inputs.
      follows: whether it comes from tensors of ``functrans.compat.torch``.
      callbacks: what is called when it is done.
    """

    def __init__(self, records: bool, keeps: bool, size: int | None, trace: Any) -> None:
        self.records = records
        self.keeps = keeps
        self.size = size
        self.trace = trace
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured: list[Any] = []
        self.stops: set[Node] = set()
        self.special: set[Node] = set()
        self.scheduled: set[Node] = set()
        self.logs = _log.isEnabledFor(logging.DEBUG)
        self.is_quiet = not (modes.observers or modes.anomaly or self.logs)
        self.is_for_all = True
        self.node: Any = None
        self.follows = False
        self.callbacks: list[Callable[[], object]] = []

    def schedule(
        self, roots: Sequence[Node], wanted: Sequence[Node] | None, accumulate: bool
    ) -> list[Any]:
        """The nodes to run, the last one first.

        Args:
          roots: nodes of the results.
          wanted: nodes whose gradients are asked for; ``None`` for all leaves.
          accumulate: whether these are added to ``.grad`` in place of being returned.

        Raises:
          RuntimeError: a leaf that is asked for had another shape or dtype when it was used.
        """
        # Nodes are older than what is computed from them: nothing below the oldest is needed.
        goals = {edge_of(node)[0] for node in wanted} if wanted is not None else None
        former = {} if goals is None else _former(goals)
        oldest = min(map(_number, (*goals, *former))) if goals else -1
        order: list[Any] = ordered_nodes(roots, oldest)
        if former:
            _refuse_former(former, order)
        if wanted is not None and goals is not None:
            self.is_for_all = False
            leading: set[Node | None] = set()
            for node in order:
                for parent in node.parents:
                    if parent in goals or parent in leading:
                        leading.add(node)
                        break
            order = [node for node in order if node in leading or node in goals]
            if not accumulate:
                self.stops = goals - leading
                self.captured = [None] * len(wanted)
                for position, (node, index) in enumerate(map(edge_of, wanted)):
                    self.captures.setdefault(node, []).append((index, position))
                self.special = goals
        self.scheduled = set(order)
        # Leaves that nothing reads.
        lone = {x for x in roots if x.primitive is None and x in self.scheduled}
        if lone:
            lone.difference_update(*[node.parents for node in order])
        placed: set[Node] = set()
        found: list[Any] = []
        for node in order:
            if node.primitive is None:
                continue
            if node.takes_none:
                self.special.add(node)
            for parent in reversed(node.parents):
                if (
                    parent is not None
                    and parent.primitive is None
                    and parent not in placed
                    and parent in self.scheduled
                ):
                    placed.add(parent)
                    found.append(parent)
            found.append(node)
        found += [node for node in dict.fromkeys(reversed(roots)) if node in lone]
        return found

    # gradients and cotangents

    def gradient(self, ct: Any, result: Any) -> Tensor:
        """A cotangent as a tensor of full shape.

        Args:
          ct: the cotangent.
          result: anything with shape and dtype of the value.
        """
        value = self.tensor_of(ct, result.shape)
        return conjugate(value) if result.dtype.kind == "c" else value

    def tensor_of(self, ct: Any, shape: tuple[int, ...]) -> Tensor:
        """A cotangent as a tensor, of a shape and the batch axis before it."""
        lead = () if self.size is None else (self.size,)
        value = materialize(ct, (*lead, *shape))
        result: Tensor = value
        if not isinstance(value, Tensor):
            result = self.trace.tensor(value if self.records else self.trace.unrecorded(value))
        if self.follows:
            result._follows = True
        return result

    def cotangent(self, gradient: Tensor) -> Array | Tensor:
        """A gradient as a cotangent."""
        value = gradient if self.records else gradient._value
        return conjugate(value) if gradient.dtype.kind == "c" else value

    # what the walk calls

    def pull(self, node: Any, ct: Any, _: int | None = None) -> Sequence[Any]:
        """The pullback, and what watches it."""
        self.node = node
        if not (self.logs or self.records or modes.is_special):
            pulled = node.pull(ct, False, self.size)
            if not self.keeps:
                node.free()
            return pulled
        if self.logs:
            _log.debug("Executing: %r with grad_outputs: %s", node, _described(node, ct))
        if modes.observers:
            ends = [observer(node.name(), (node,)) for observer in modes.observers]
            try:
                pulled = node.pull(ct, self.records, self.size)
            finally:
                for end in reversed(ends):
                    end()
        else:
            pulled = node.pull(ct, self.records, self.size)
        if modes.anomaly and modes.check_nan:
            check_nan(node, pulled)
        if self.records and node.name().partition("Backward")[0] in PIECEWISE_LINEAR:
            full = [
                None if c is None or p is None or type(c) is Zero else self.tensor_of(c, p.shape)
                for c, p in zip(pulled, node.parents, strict=True)
            ]
            pulled = dependent(node, full)
        if not self.keeps:
            node.free()
        return pulled

    def meet(self, node: Any, ct: Any) -> Sequence[Any]:
        """Run a node that has annotations, whose gradient was asked for, or that takes ``None``.

        Returns:
          Cotangents of the operands; nothing if it has none or is not to run.
        """
        self.node = node
        is_one = node.shape is not None
        results = [node] if is_one else list(node.dtype)
        cts = [ct] if is_one else (ct or [None] * len(results))
        if not (_is_met(node) or node in self.captures or node in self.stops):
            return self._pulled(node, cts)
        gradients = [
            None if c is None else self.gradient(c, r) for c, r in zip(cts, results, strict=True)
        ]
        before = list(gradients)
        self._meet(node, gradients)
        asked = gradients if node in self.stops else before
        for index, position in self.captures.get(node, ()):
            self.captured[position] = asked[index]
        if node in self.stops:
            return ()
        for hook in _met(node, When.BEFORE):
            gradients = self._replaced_many(hook, hook(tuple(gradients)), gradients)
        cts = [None if g is None else self.cotangent(g) for g in gradients]
        pulled = self._pulled(node, cts)
        hooks = _met(node, When.AFTER)
        if not hooks:
            return pulled
        inputs: list[Any] = [None] * len(node.parents)
        for i, (c, parent) in enumerate(zip(pulled, node.parents, strict=bool(pulled))):
            if c is not None and parent in self.scheduled and type(c) is not Zero:
                inputs[i] = self.gradient(c, parent)
        given = tuple(gradients)
        for hook in hooks:
            inputs = self._replaced_many(hook, hook(tuple(inputs), given), inputs)
        return [None if g is None else self.cotangent(g) for g in inputs]

    def _pulled(self, node: Any, cts: Sequence[Any]) -> Sequence[Any]:
        """The pullback of cotangents, of which some may be ``None``."""
        if not node.takes_none and all([c is None for c in cts]):  # noqa: C419  # a list is faster
            return ()
        return self.pull(node, cts[0] if node.shape is not None else cts)

    def arrive(self, leaf: Any, ct: Any) -> None:
        """Hand a leaf its gradient."""
        self.node = leaf
        if ct is None and not leaf.annotations:
            return
        gradients = [None if ct is None else self.gradient(ct, leaf)]
        if leaf.annotations:
            self._meet(leaf, gradients)
        (gradient,) = gradients
        for _, position in self.captures.get(leaf, ()):
            self.captured[position] = gradient
        if leaf in self.stops:
            return
        for hook in _met(leaf, When.BEFORE) if leaf.annotations else ():
            (gradient,) = self._replaced_many(hook, hook((gradient,)), [gradient])
        owner = leaf.owner()
        if owner is None:
            return
        if gradient is not None and owner._node is not None:  # not frozen since it was used
            if owner._node.primitive is not None:
                raise RuntimeError(
                    "leaf variable has been moved into the graph interior: it was detached after "
                    "it was used, and written to by an operation that is recorded. Hint: work on "
                    "a copy (x = x.detach().clone())."
                )
            if leaf.is_turned and leaf.shape == owner.shape:
                raise RuntimeError(
                    "a gradient came to a leaf whose axes were changed in place since it was "
                    "recorded. Record the graph anew, or use the operation without the underscore."
                )
            accumulate_grad(owner, gradient, self.records)
        if not leaf.annotations:
            return
        for hook in _met(leaf, When.ACCUMULATED):
            if hook(owner) is not None:
                raise RuntimeError(
                    f"Tensor post accumulate grad hooks should return None, but "
                    f"'{_name(hook)}' did not."
                )
        for hook in _met(leaf, When.AFTER):
            self._replaced_many(hook, hook((), (gradient,)), [])

    # annotations

    def _meet(self, node: Any, gradients: list[Any]) -> None:
        """What annotations of results make of their gradients."""
        for when in (When.GRADIENT, When.KEPT):
            for note in [note for note in node.annotations if note.kind.when is when]:
                i, hook = note.result, note.value
                gradients[i] = self._replaced(hook, hook(gradients[i]), gradients[i])

    def _replaced(
        self, hook: object, result: Tensor | None, gradient: Tensor | None
    ) -> Tensor | None:
        """The gradient after a hook.

        Raises:
          TypeError: the hook returned something else than a tensor.
          RuntimeError: it returned one of another shape or dtype, or one in place of ``None``.
        """
        if result is None:
            return gradient
        if not isinstance(result, Tensor):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
        if gradient is None:
            raise RuntimeError("can't replace a None gradient with a non-None value")
        if result.dtype != gradient.dtype:
            raise RuntimeError(
                f"hook '{_name(hook)}' has changed the type of value (was "
                f"{torch_type(gradient.dtype)} got {torch_type(result.dtype)})"
            )
        if result.shape != gradient.shape:
            raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
        return result

    def _replaced_many(
        self, hook: Callable[..., Any], results: tuple[Any, ...] | None, gradients: list[Any]
    ) -> list[Any]:
        """The gradients after a hook that returns a tuple of them.

        Raises:
          TypeError: it returned something else.
          RuntimeError: it returned another number of gradients; see ``_replaced``.
        """
        if results is None:
            return gradients
        if not isinstance(results, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
        if len(results) != len(gradients):
            raise RuntimeError(
                f"hook '{_name(hook)}' has returned an incorrect number of values (got "
                f"{len(results)}, but expected {len(gradients)})"
            )
        return [
            None if result is None else self._replaced(hook, result, gradient)
            for result, gradient in zip(results, gradients, strict=True)
        ]


def run_backward(
    roots: Sequence[tuple[Node, Any]],
    wanted: Sequence[Node] | None,
    *,
    accumulate: bool,
    keeps: bool,
    records: bool,
    size: int | None = None,
    trace: object = PERMANENT,
) -> list[Any]:
    """Pull gradients back through the graph.

    Args:
      roots: node and gradient (a tensor) of each result.
      wanted: nodes whose gradients are asked for; ``None`` for all leaves.
      accumulate: whether gradients are added to ``.grad`` of leaves among ``wanted``.
      keeps: whether residuals stay.
      records: whether the pass is recorded.
      size: extent of a leading batch axis of the gradients.
      trace: the trace of the tensors.

    Returns:
      Gradients of ``wanted``, ``None`` where nothing came; nothing if they are accumulated.
    """
    run = Pass(records, keeps, size, trace)
    run.follows = any(gradient._follows for _, gradient in roots)
    order = run.schedule([node for node, _ in roots], wanted, accumulate)
    if size and any(map(_is_met, run.scheduled.union(edge_of(node)[0] for node, _ in roots))):
        return _mapped(roots, wanted or (), keeps, records)
    before = modes.grad, running.backward
    modes.grad = records
    running.backward = run
    cts: dict[Node, Any] = {}
    try:
        for node, gradient in roots:
            if node in run.scheduled:
                ct = run.cotangent(gradient)
                quietly(add, cts, node, ct if node.shape is not None else [ct])
            elif len(roots) == 1:  # hooks of the one result see its gradient in any case
                made_by, index = edge_of(node)
                run._meet(made_by, [None] * index + [gradient])
        quietly(walk, order, cts, run.pull, size, run)
        while run.callbacks:
            run.callbacks.pop(0)()
    except Exception as error:
        explain(run.node, error)
        raise
    finally:
        modes.grad, running.backward = before
    return run.captured


class Engine:
    """What ``Variable._execution_engine`` is."""

    @staticmethod
    def queue_callback(callback: Callable[[], object]) -> None:
        """Call a function when the backward pass that runs is done; it may queue others.

        Raises:
          RuntimeError: none runs.
        """
        if running.backward is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        running.backward.callbacks.append(callback)


def _of_node(node: Any, *gradients: Any) -> Any:
    """Gradients of what a node was computed from; for a leaf they are added to ``.grad``.

    Hooks do not run.

    Args:
      node: it.
      *gradients: a tensor, or ``None``, per result.

    Raises:
      TypeError: their number is another one, or one is no tensor.
    """
    count = len(node.dtype) if node.primitive is not None and node.shape is None else 1
    if len(gradients) != count:
        raise TypeError(f"expected {count} arguments, got {len(gradients)} instead")
    for i, gradient in enumerate(gradients):
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(f"argument {i} is not a Variable")
    if node.primitive is None:
        if gradients[0] is not None:
            accumulate_grad(node.owner(), gradients[0], modes.grad)
        return None
    run = Pass(modes.grad, True, None, PERMANENT)
    run.follows = any(g is not None and g._follows for g in gradients)
    pulled = run._pulled(node, [None if g is None else run.cotangent(g) for g in gradients])
    found = tuple(
        None if c is None or p is None else run.gradient(c, p)
        for c, p in zip(pulled or [None] * len(node.parents), node.parents, strict=True)
    )
    return found if len(found) != 1 else found[0]


Hooked.__call__ = _of_node  # type: ignore[method-assign]  # nodes are below this module


def _mapped(
    roots: Sequence[tuple[Node, Any]], wanted: Sequence[Node], keeps: bool, records: bool
) -> list[Any]:
    """A batch of gradients as one pass under ``vmap``: hooks see gradients of one example."""
    has: list[bool] = []

    def one(*gradients: Tensor) -> tuple[Any, ...]:
        pairs = [(node, gradient) for (node, _), gradient in zip(roots, gradients, strict=True)]
        trace = gradients[0]._trace
        found = run_backward(
            pairs, wanted, accumulate=False, keeps=keeps, records=records, trace=trace
        )
        has[:] = [gradient is not None for gradient in found]
        return tuple([gradient for gradient in found if gradient is not None])

    found = iter(vmap(one)(*[gradient for _, gradient in roots]))
    return [next(found) if is_there else None for is_there in has]


def accumulate_grad(owner: Tensor, gradient: Tensor, records: bool) -> None:
    """Add to a tensor's gradient: in place, unless the pass is recorded.

    The first gradient gets the memory layout of the tensor, if that has no gaps.

    Raises:
      RuntimeError: the tensor or its gradient has another shape since its data was replaced.
    """
    with changing:
        have = owner._grad
        if gradient.shape != (owner if have is None else have).shape:
            raise RuntimeError(
                f"a gradient of shape {list(gradient.shape)} came to a leaf of shape "
                f"{list(owner.shape)} whose .grad is "
                f"{'None' if have is None else f'of shape {list(have.shape)}'}: .data or its "
                "shape was changed after the graph was recorded, or .grad is older. Set .grad to "
                "None, and record the graph anew."
            )
        if have is None:
            if records:
                (copy,) = bind(copy_p, gradient)
                if isinstance(copy._value, np.ndarray):
                    copy._value = _laid_out(copy._value, owner)
            else:
                trace = gradient.__dict__.get("_trace")
                copy = Tensor.of(_laid_out(gradient._value, owner), None, trace)
            owner._grad = copy
        elif records:
            owner._grad = have + gradient
        elif isinstance(have._value, Tracer) or isinstance(gradient._value, Tracer):
            have.copy_(have + gradient)
        else:
            memory = have._memory()
            have._stored().release()
            np.add(memory, gradient._value, out=memory, casting="unsafe")
            have._stored().bump("AccumulateGrad", None)


def _laid_out(value: Any, owner: Tensor) -> Tracer | Array:
    """A copy of a gradient in the layout of its tensor."""
    if isinstance(value, Tracer):
        return value
    like = owner._value
    if isinstance(like, np.ndarray) and is_dense(like):
        copy = np.empty_like(like, dtype=value.dtype)
    else:
        copy = np.empty(value.shape, value.dtype)
    copy[...] = value
    return copy


def _former(goals: set[Any]) -> dict[Any, Any]:
    """The nodes that leaves had before they got data of another shape or dtype, or other axes."""
    found = [(ref(), leaf) for leaf in goals if type(leaf) is LeafNode for ref in leaf.former]
    return {node: leaf for node, leaf in found if node is not None}


def _refuse_former(former: dict[Any, Any], order: list[Any]) -> None:
    """Refuse to lose what belongs to a leaf as it was."""
    for node in order:
        for was in (node, *node.parents):
            if was in former:
                raise RuntimeError(
                    f"a gradient of shape {list(was.shape)} would come to a leaf of shape "
                    f"{list(former[was].shape)}: .data or its shape was changed after the graph "
                    "was recorded. Record the graph anew."
                )


def _met(node: Any, when: When) -> list[Any]:
    """What the annotations of a node call at a time."""
    return [note.value for note in node.annotations if note.kind.when is when]


def _is_met(node: Any) -> bool:
    """Whether an annotation of a node is called with gradients."""
    return any(note.kind.when not in _SILENT for note in node.annotations)


_SILENT = frozenset({When.NEVER, When.READ, When.FAILED})


def _name(hook: object) -> str:
    return str(getattr(hook, "__name__", type(hook).__name__))


def _described(node: Any, ct: Any) -> str:
    """Types of the gradients of a node's results: ``[torch.DoubleTensor[2]]``."""
    is_one = node.shape is not None
    parts = [
        "None" if c is None else f"{torch_type(r.dtype)}{list(r.shape)}"
        for c, r in zip([ct] if is_one else ct, [node] if is_one else node.dtype, strict=True)
    ]
    return f"[{', '.join(parts)}]"
