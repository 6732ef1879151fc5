"""How hooks of a module are registered.

Here: ``HookRegistration``, a base of ``Module``. Not here: calling them (``nn.module``), hooks of
all modules (``nn.module_hooks``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.autograd.hooks import RemovableHandle
from functrans.compat.torch.nn.module_hooks import add_entry


class HookRegistration:
    """The methods that register hooks, in tables of the module."""

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
