"""Hooks and their handles.

Here: ``RemovableHandle``, ``add_hook``. Not here: when hooks run (``autograd.engine``).

Layer: ``autograd``.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

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
    handle = RemovableHandle(hooks)
    if first:
        rest = dict(hooks)
        hooks.clear()
        hooks[handle.id] = hook
        hooks.update(rest)
    else:
        hooks[handle.id] = hook
    return handle
