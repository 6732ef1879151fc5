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
      values: by identity of the value: it and its twin.
      cells: by identity of a closure's cell: it, its twin and what the twin held at first.
      containers: lists and dictionaries from outside, their twins and what these held at first.
      objects: objects from outside that were seen, to look at what was written to them.
      classes: classes whose twins are up to date, and what these hold.
      shared: containers from outside that are their own twins.
      made: objects that were made, and are kept by others.
      written: owners and names of what was written to globals, closures and classes.
      traces: those whose values are kept by all these.
      ended: one that has ended: plain values are put in the place of its own.
    """

    __slots__ = (
        "cells", "classes", "containers", "ended", "made", "objects", "shared", "traces", "values",
        "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.values: dict[int, tuple[Any, Any]] = {}
        self.cells: dict[int, tuple[Any, Any, Any]] = {}
        self.containers: list[tuple[Any, Any, Any]] = []
        self.objects: list[Any] = []
        self.classes: dict[type, dict[str, Any]] = {}
        self.shared: list[Any] = []
        self.made: list[Any] = []
        self.written: list[tuple[Any, str]] = []
        self.traces: set[Any] = set()
        self.ended: Any = None


memo_of_call: ContextVar[Memo | None] = ContextVar("functrans_plain_memo", default=None)


def memo() -> Memo:
    """The memo of the call at hand; one of its own in a thread or task that outlives it."""
    found = memo_of_call.get()
    if found is None:
        found = Memo()
        memo_of_call.set(found)
    return found
