"""Memory on the stack that is read and written as vectors.

Here: ``Slots``, which sees to it that all vectors at one place of such memory are of one type. Not
here: instructions (``emitter.builder``), what is kept where (``compiler.storage``).

LLVM turns memory on the stack into registers where all addresses in it are known. Where a vector
was stored and one of another width is loaded it makes one register of the larger and cuts vectors
out of it; of three or six lanes there are no registers, and LLVM 20 ends the process over some of
these (``<2 x double>`` out of ``<6 x double>``, "Cannot BITCAST between types of different sizes").
So what does not agree in place and type with every vector that is stored there goes element by
element, which is what it is in registers anyhow.

Layer: ``emitter``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from functrans.emitter.types import Type, Value
from functrans.records import dataclass

_GRAIN = 8
"""Bytes in which overlaps are looked for; smaller ones than that count as overlaps too."""


@dataclass(frozen=True, slots=True)
class _Access:
    """A vector that is loaded or stored.

    Attributes:
      offset: where, in bytes.
      type: its type.
      name: prefix of names of registers; that of the result where it is loaded.
      pointer: its address.
      value: what is stored; ``None`` if it is loaded.
      lines: the instruction, in a list of its own.
    """

    offset: int
    type: Type
    name: str
    pointer: str
    value: Value | None
    lines: list[Any]

    @property
    def span(self) -> tuple[int, Type]:
        """Place and type."""
        return self.offset, self.type

    @property
    def grains(self) -> range:
        """The pieces of memory that it touches."""
        end = self.offset + self.type.lanes * self.type.size_bytes
        return range(self.offset // _GRAIN, -(-end // _GRAIN))

    def split(self) -> None:
        """Go element by element instead."""
        element, size = self.type.element, self.type.size_bytes
        lines = self.lines
        lines.clear()
        vector = "poison"
        for lane in range(self.type.lanes):
            place = self.pointer
            if lane:
                place = f"{self.name}.a{lane}"
                lines.append(f"  {place} = getelementptr i8, ptr {self.pointer}, i64 {lane * size}")
            number = f"{self.name}.e{lane}"
            if self.value is not None:
                whole = f"{self.type} {self.value.text}"
                lines.append(f"  {number} = extractelement {whole}, i64 {lane}")
                lines.append(f"  store {element} {number}, ptr {place}, align {size}")
                continue
            lines.append(f"  {number} = load {element}, ptr {place}, align {size}")
            name = self.name if lane == self.type.lanes - 1 else f"{self.name}.i{lane}"
            lines.append(
                f"  {name} = insertelement {self.type} {vector}, {element} {number}, i64 {lane}"
            )
            vector = name


class Slots:
    """Places on the stack of one function, and the vectors in them."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}
        self._accesses: dict[str, list[_Access] | None] = {}

    def add(self, slot: str, pointer: str, offset: int = 0) -> None:
        """Note the address of a slot, or of a place in it."""
        self._places[pointer] = slot, offset
        self._accesses.setdefault(slot, [])

    def move(self, pointer: Value, distance: str, size: int, result: Value) -> None:
        """Note an address some elements after another; an unknown one gives the slot up."""
        place = self._places.get(pointer.text)
        if place is None:
            return
        if distance.isdigit():
            self.add(place[0], result.text, place[1] + int(distance) * size)
        else:
            self.give_up(pointer)

    def give_up(self, *values: Value) -> None:
        """Note that LLVM cannot know all that is done with slots, and leaves them in memory."""
        for value in values:
            place = self._places.get(value.text)
            if place is not None:
                self._accesses[place[0]] = None

    def access(
        self, type_: Type, pointer: Value, name: str, value: Value | None
    ) -> list[Any] | None:
        """Note a vector; a list for its instruction if it may have to be split, else ``None``."""
        place = self._places.get(pointer.text)
        accesses = self._accesses.get(place[0]) if place is not None else None
        if place is None or accesses is None:
            return None
        access = _Access(place[1], type_, name, pointer.text, value, [])
        accesses.append(access)
        return access.lines

    def settle(self) -> None:
        """Split what does not agree with a vector that is stored at its place."""
        for accesses in filter(None, self._accesses.values()):
            stored: dict[int, set[tuple[int, Type]]] = defaultdict(set)
            for access in accesses:
                if access.value is not None:
                    for grain in access.grains:
                        stored[grain].add(access.span)
            for access in accesses:
                if any(stored[grain] - {access.span} for grain in access.grains):
                    access.split()
