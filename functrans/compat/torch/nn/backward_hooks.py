"""Backward hooks of modules: what gradients pass a module's inputs and outputs.

Here: ``BackwardHooks``, which puts identity nodes around a module's call. Not here: ``Module``.

The node behind the inputs runs when their gradients are known, the one behind the outputs when
theirs are; the hooks of the module are hooks of these nodes.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.autograd.hooks import add_hook
from functrans.autograd.modes import modes
from functrans.autograd.nodes import COMPOSITE, GraphNode
from functrans.autograd.recording import node_of
from functrans.autograd.tensors import Tensor
from functrans.core.annotations import POST_HOOK, PRE_HOOK
from functrans.core.avals import ShapedArray
from functrans.core.source import capture
from functrans.passes.nodes import OUTPUT


class PassNode(GraphNode):
    """The same values under another node."""

    def name(self) -> str:
        """``BackwardHookFunctionBackward``."""
        return "BackwardHookFunctionBackward"

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """The cotangents as they are."""
        return list(ct)


def _passed(tensors: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
    """Tensors behind a node of their own, and the node."""
    avals = tuple([ShapedArray(x.shape, x.dtype) for x in tensors])
    parents = tuple([node_of(x) for x in tensors])
    node = PassNode(COMPOSITE, {}, None, parents, None, avals, capture())
    results = []
    for i, x in enumerate(tensors):
        if parents[i] is None:
            results.append(x)
            continue
        place = GraphNode(OUTPUT, {"index": i}, None, (node,), x.shape, x.dtype, node.source)
        passed = Tensor.of(x._value, place, x.__dict__.get("_trace"))
        passed._storage = x._stored()
        results.append(passed)
    return node, results


def _replaced(value: Any, function: Callable[[list[Tensor]], list[Tensor]]) -> Any:
    """A value in which the tensors of the outermost tuple or list are others."""
    if isinstance(value, Tensor):
        return function([value])[0]
    if isinstance(value, (tuple, list)):
        places = [i for i, x in enumerate(value) if isinstance(x, Tensor)]
        items = list(value)
        for i, x in zip(places, function([value[i] for i in places]), strict=True):
            items[i] = x
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    return value


class BackwardHooks:
    """The hooks of one call of a module.

    Args:
      module: the module.
      hooks: ``hook(module, grad_input, grad_output)``.
      pre_hooks: ``hook(module, grad_output)``.
    """

    def __init__(self, module: Any, hooks: Sequence[Any], pre_hooks: Sequence[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: Any = None
        self.has_inputs = False
        self.size = 0
        self.places: list[int] = []

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put a node behind the inputs."""
        self.size = len(args)
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        tensors = [args[i] for i in self.places]
        if not modes.grad or not any(node_of(x) is not None for x in tensors):
            return args
        self.has_inputs = True
        node, passed = _passed(tensors)
        add_hook(node, POST_HOOK, self._on_inputs)
        result = list(args)
        for i, x in zip(self.places, passed, strict=True):
            result[i] = x
        return tuple(result)

    def leave(self, result: Tensor) -> Tensor:
        """Put a node behind the outputs."""
        if not modes.grad:
            return result

        def behind(tensors: list[Tensor]) -> list[Tensor]:
            if not any(node_of(x) is not None for x in tensors):
                return tensors
            node, passed = _passed(tensors)
            add_hook(node, PRE_HOOK, self._on_outputs)
            return passed

        return _replaced(result, behind)

    def _on_outputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        changed_any = False
        for hook in self.pre_hooks:
            changed = hook(self.module, gradients)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
                changed_any = True
        self.grad_output = gradients
        if not self.has_inputs:
            nothing = (None,) * self.size
            for hook in self.hooks:
                if hook(self.module, nothing, gradients) is not None:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
        return gradients if changed_any else None

    def _on_inputs(self, gradients: tuple[Any, ...], _: Sequence[Any]) -> tuple[Any, ...]:
        full: list[Any] = [None] * self.size
        for i, gradient in zip(self.places, gradients, strict=True):
            full[i] = gradient
        found = tuple(full)
        for hook in self.hooks:
            changed = hook(self.module, found, self.grad_output)
            if changed is None:
                continue
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != len(found):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, got "
                    f"{len(changed)}, but expected {len(found)}"
                )
            found = changed
        self.grad_output = None
        return tuple([found[i] for i in self.places])
