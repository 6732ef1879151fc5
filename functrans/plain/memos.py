"""What is known during one call of a twin.

Here: ``Memo`` and the one of the call at hand. Not here: what is kept in it (``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any


class Memo:
    """What stands for which value from outside, during one call of a twin.

    Attributes:
      is_active: whether the call goes on.
      inner: traces that were opened in it, with calls of their own.
      values: by identity of the value: it and its twin.
      origins: by identity of the twin: it and the value.
      of_result: whether a result is given back, whose containers are none of the program.
      cells: by identity of a closure's cell: it, its twin and what the twin held at first.
      containers: lists and dictionaries from outside, their twins and what these held at first.
      objects: objects from outside that were seen, to look at what was written to them.
      classes: classes whose twins are up to date, and what these hold.
      shared: containers from outside that are their own twins.
      made: objects that were made, and are kept by others.
      written: owners and names of what was written to globals, closures and classes.
      slotted: objects with slots from outside, and their twins.
      traces: those whose values are kept by all these.
      visited: identities of containers that were looked through.
      ended: one that has ended: plain values are put in the place of its own.
    """

    __slots__ = (
        "cells", "classes", "containers", "ended", "inner", "is_active", "made", "objects",
        "of_result", "origins", "shared", "slotted", "traces", "values", "visited", "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.values: dict[int, tuple[Any, Any]] = {}
        self.origins: dict[int, tuple[Any, Any]] = {}
        self.is_active = False
        self.inner: set[Any] = set()
        self.of_result = False
        self.visited: set[int] = set()
        self.cells: dict[int, tuple[Any, Any, Any]] = {}
        self.containers: list[tuple[Any, Any, Any]] = []
        self.objects: list[Any] = []
        self.classes: dict[type, dict[str, Any]] = {}
        self.shared: list[Any] = []
        self.made: list[Any] = []
        self.written: list[tuple[Any, str]] = []
        self.slotted: list[tuple[Any, Any]] = []
        self.traces: set[Any] = set()
        self.ended: Any = None

    def note(self, value: object, replaced: object) -> None:
        """Know the twin of a value."""
        self.values[id(value)] = value, replaced
        self.origins[id(replaced)] = replaced, value

    def known(self, value: object) -> Any:
        """The twin of a value, or ``None``."""
        found = self.values.get(id(value))
        return found[1] if found is not None and found[0] is value else None

    def origin(self, replaced: object) -> Any:
        """The value that a twin stands for, or ``None``."""
        found = self.origins.get(id(replaced))
        return found[1] if found is not None and found[0] is replaced else None

    def has_visited(self, container: object) -> bool:
        """Whether what a container holds was given back already, which it is from now on."""
        if id(container) in self.visited:
            return True
        self.visited.add(id(container))
        return False

    def share(self, container: object) -> None:
        """Know that a container from outside is its own twin."""
        _, replaced = self.values.get(id(container), (container, container))
        self.origins.pop(id(replaced), None)
        self.values[id(container)] = container, container
        self.shared.append(container)


memo_of_call: ContextVar[Memo | None] = ContextVar("functrans_plain_memo", default=None)


def memo() -> Memo:
    """The memo of the call at hand; one of its own in a thread or task that outlives it."""
    found = memo_of_call.get()
    if found is None:
        found = Memo()
        memo_of_call.set(found)
    return found
