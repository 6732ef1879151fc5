"""How hooks of one module and of all are registered, tables of hooks, clearing of gradients.

Here: what ``Module`` and ``Optimizer`` share. Not here: calling the hooks (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.hooks import Hooks, RemovableHandle
from functrans.autograd.jitted.staged import depends_on
from functrans.autograd.modes import no_grad
from functrans.compat.torch.values import assign

__all__ = [
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
]  # fmt: skip


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


class HookRegistration:
    """The methods of ``Module`` that register hooks, in its tables."""

    def _add(self, table: str, entry: object, prepend: bool = False) -> RemovableHandle:
        return add_entry(self.__dict__[table], entry, prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the arguments.

        Args:
          hook: the function.
          prepend: whether it runs before the others.
          with_kwargs: ``hook(module, args, kwargs)``, which returns both or ``None``.
        """
        return self._add("_forward_pre_hooks", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; its result replaces the output.

        Args:
          hook: the function.
          prepend: whether it runs before the others.
          with_kwargs: ``hook(module, args, kwargs, output)``.
          always_call: also if ``forward`` raises.
        """
        return self._add("_forward_hooks", (hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when both are known.

        What it returns replaces ``grad_input``.
        """
        return self._add("_backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known.

        What it returns replaces ``grad_output``.
        """
        return self._add("_backward_pre_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated in torch: ``register_full_backward_hook``."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects."""
        return self._add("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata)`` after ``state_dict`` collected."""
        return self._add("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, ...)`` before ``load_state_dict`` reads."""
        return self._add("_load_pre_hooks", functools.partial(hook, self))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Call ``hook(state_dict, prefix, ...)`` before ``load_state_dict`` reads."""
        return self._add("_load_pre_hooks", functools.partial(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after ``load_state_dict`` compared names."""
        return self._add("_load_post_hooks", hook)
