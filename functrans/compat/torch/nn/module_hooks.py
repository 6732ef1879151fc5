"""Hooks of all modules, tables of hooks, clearing of gradients.

Here: what ``Module`` and ``Optimizer`` share. Not here: the hooks of one module (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.hooks import Hooks, RemovableHandle
from functrans.autograd.jitted.staged import depends_on
from functrans.autograd.modes import no_grad
from functrans.compat.torch.values import assign


def clear_grad(x: Any, set_to_none: bool) -> None:
    """Remove a tensor's gradient, or make it zero in place.

    Args:
      x: the tensor.
      set_to_none: remove it.
    """
    grad = x.grad
    if grad is None:
        return
    if set_to_none:
        x.grad = None
        return
    if grad._node is not None:
        grad.detach_()
    with no_grad():
        assign("zero_", grad, np.zeros(grad.shape, grad.dtype))


def add_entry(table: Hooks, entry: Any, prepend: bool = False) -> RemovableHandle:
    """Add a hook to a table.

    Args:
      table: hooks by number.
      entry: the hook, or a tuple that begins with it.
      prepend: whether it runs before the others.
    """
    handle = RemovableHandle(table)
    rest = dict(table) if prepend else {}
    if prepend:
        table.clear()
    table[handle.id] = entry
    table.update(rest)
    return handle


class _Everywhere:
    """Hooks of all modules."""

    def __init__(self) -> None:
        self.before: Any = Hooks()
        self.after: Any = Hooks()
        self.backward: Any = Hooks()

    @property
    def is_set(self) -> bool:
        """Whether there are any."""
        return bool(self.before or self.after or self.backward)


everywhere = _Everywhere()
depends_on(lambda: tuple(map(tuple, (everywhere.before, everywhere.after, everywhere.backward))))


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before ``forward`` of every module."""
    return add_entry(everywhere.before, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after ``forward`` of every module.

    Args:
      hook: the function.
      always_call: also if ``forward`` raises.
    """
    return add_entry(everywhere.after, (hook, always_call))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in the backward pass of every module."""
    return add_entry(everywhere.backward, hook)
