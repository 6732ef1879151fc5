"""Where writing stands in the loops of a nest.

Here: ``Cursor``: counters, lanes, and for each open loop the place for what is known from there on.
Not here: going through the loops (``compiler.nests``), reading and writing at a place in them
(``compiler.access``).

Layer: ``compiler``.
"""

from __future__ import annotations

from typing import Any

from functrans.compiler.places import Body
from functrans.compiler.schedule import Nest
from functrans.emitter.builder import Section
from functrans.emitter.types import I64, Value


class Cursor:
    """A place in the loops of a nest.

    Attributes:
      body: what the nest is written into.
      nest: the nest.
      b: instructions.
      e: numbers and arrays.
      counters: of the loops.
      sections: for each open loop, and before them all, where it is written.
      memos: the same, what is known there.
      lanes: how many elements are worked on at once here.
      wide_lanes: how many are, where the loop over lanes is whole.
    """

    def __init__(self, body: Body, nest: Nest) -> None:
        self.body = body
        self.nest = nest
        self.b = body.b
        self.e = body.e
        self.counters: list[Value] = [Value("0", I64)] * len(nest.extents)
        self.sections: list[Section] = []
        self.memos: list[dict[Any, Any]] = []
        self.lanes = 1
        self.wide_lanes = 1

    def open_section(self) -> None:
        """Begin a loop's body: a place for what is known from here on."""
        self.sections.append(self.b.section())
        self.memos.append({})

    def close_section(self) -> None:
        """End a loop's body."""
        self.sections.pop()
        self.memos.pop()
