"""The memory that arrays share: who owns it, and what stands for it once it is traced.

Here: ``Home``, which all views of an array have in common. Not here: the arrays (``plain.memory``),
tracers of views (``plain.views``).

Layer: ``plain``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import Alias
from functrans.core.source import here
from functrans.core.state import open_traces
from functrans.errors import AliasedWriteError, EscapedTracerError, UnsupportedOperationError
from functrans.plain.unreadable import mark, unmark, unmarked
from functrans.plain.views import memory_address

PLAIN_KINDS = "fciub"
"""Kinds of dtypes of arrays that may hold numbers."""

_homes: weakref.WeakValueDictionary[int, Home] = weakref.WeakValueDictionary()
"""The memories that are known, by identity of the arrays that own them."""


class Home:
    """The memory that an array and its views share.

    Attributes:
      owner: the array that owns it.
      root: the same as an ordinary array.
      trace: the trace that was innermost when it was made; ``None`` of an array from outside.
      tracer: what stands for ``root`` since a traced value was written to the memory.
      is_outside: whether others may see the memory, so that no traced value may be written.
      watchers: what is called when the memory becomes traced, while it exists.
    """

    __slots__ = ("__weakref__", "is_outside", "owner", "root", "trace", "tracer", "watchers")

    def __init__(self, owner: np.ndarray, trace: Any, *, is_outside: bool) -> None:
        self.owner = owner
        self.root = np.ndarray.view(owner, np.ndarray)
        self.is_outside = is_outside or owner.base is not None or not owner.flags.writeable
        self.trace = trace
        self.tracer: Any = None
        self.watchers: list[weakref.WeakMethod[Any]] = []
        _homes[id(owner)] = self

    def holds(self, array: np.ndarray) -> bool:
        """Whether an array lies in this memory."""
        start = memory_address(self.root)
        return start <= memory_address(array) < start + max(self.root.nbytes, 1)

    def become_traced(self) -> None:
        """Let a tracer stand for the memory from now on.

        Raises:
          UnsupportedOperationError: the array came from outside, or is none of numbers.
          AliasedWriteError: it was made in an enclosing trace.
          EscapedTracerError: it was made in a trace that is closed.
        """
        if self.root.dtype.kind not in PLAIN_KINDS:
            raise UnsupportedOperationError(
                f"a traced value was written{here()} to a part of an array of {self.root.dtype}, "
                "which cannot hold any; keep numbers in an array of their own"
            )
        if self.is_outside:
            raise UnsupportedOperationError(
                f"a traced value was written{here()} to an array that came from outside of the "
                "function; arrays of the caller are never changed. Write to a copy of it (a = "
                "a.copy())"
            )
        stack = open_traces.get()
        if self.trace is None or not self.trace.is_open:
            raise EscapedTracerError(
                f"a traced value was written{here()} to an array that an earlier call made; make "
                "it anew in each call"
            )
        if stack[-1] is not self.trace:
            raise AliasedWriteError(
                f"an array made in {self.trace.label} was written to{here()} inside of "
                f"{stack[-1].label}; the write would be lost or seen twice. Write to a copy made "
                "there (y = y.copy()) and return it"
            )
        root = self.root
        self.tracer = self.trace.lift(unmarked(np.array(root, order="K")))
        if not root.ndim:
            self.tracer._alias = Alias()  # an array, no number
        mark(root)  # nothing is to read old numbers behind the back of the tracer
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            notify = watcher()
            if notify is not None:
                notify()

    def __del__(self) -> None:
        """The memory may be somebody else's soon."""
        if self.tracer is not None:
            unmark(self.root, is_over=not self.trace.is_open)

    def watch(self, notify: Callable[..., Any]) -> None:
        """Call a method of an object when the memory becomes traced, if the object still exists."""
        many = len(self.watchers)
        if many >= _MANY_WATCHERS and not many & (many - 1):  # at powers of 2
            self.watchers = [watcher for watcher in self.watchers if watcher() is not None]
        self.watchers.append(weakref.WeakMethod(notify))


_MANY_WATCHERS = 16


def known_home(owner: np.ndarray) -> Home | None:
    """The memory that an array owns, if it is known."""
    known = _homes.get(id(owner))
    return known if known is not None and known.owner is owner else None


def home_of(array: np.ndarray, *, is_outside: bool = False) -> Home:
    """The memory of an array: the known one, or one that belongs to the innermost trace.

    Args:
      array: any.
      is_outside: whether memory that is not known yet is the caller's.
    """
    owner = owner_of(array)
    known = known_home(owner)
    if known is not None:
        return known
    stack = open_traces.get()
    return Home(owner, stack[-1] if stack and not is_outside else None, is_outside=is_outside)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of another one."""
    while True:
        base: Any = array.base
        if isinstance(base, memoryview):
            base = base.obj
        elif not isinstance(base, np.ndarray):  # as_strided keeps the array in another object
            base = getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return array
        array = base
