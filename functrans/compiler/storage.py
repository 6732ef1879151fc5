"""Where values are: registers, memory, and the memory of a program's own.

Here: ``Stored`` (the elements of a variable after it was computed), ``Arena`` (offsets in one block
of memory, reused as soon as nothing reads them any more) and ``Frame`` (the block of a function).
Not here: who needs what when (``compiler.schedule``).

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from functrans.emitter.builder import Builder
from functrans.emitter.numbers import Number
from functrans.emitter.routine import strides_of
from functrans.emitter.spare import LARGE_BYTES, give_block, take_block
from functrans.emitter.types import I64, POINTER, Type, Value
from functrans.records import dataclass, field

ALIGNMENT = 64
MEMORY_END = Value("%memory_end", POINTER)
"""The address behind a function's memory, where ``Frame.mark_end`` says so."""
TAPE_BYTES = 24
"""A tape that is an entry of another: an address and two numbers."""
ON_STACK_BYTES = 1 << 15
"""Memory that a function takes from the stack; more is taken from the heap."""


@dataclass(frozen=True, slots=True)
class TapeSlots:
    """Where a program keeps a tape: a growing array on the heap, given back at the program's end.

    An entry that is a tape itself is its three slots in this order; all that there is room for are
    tapes, empty ones at first.

    Attributes:
      data: slot that holds the address of the entries.
      capacity: slot that holds how many entries there is room for.
      length: slot that holds how many entries there are.
      depth: how often entries are tapes: 0 if they are arrays, 1 if they are tapes of arrays.
    """

    data: Value
    capacity: Value
    length: Value
    depth: int = 0

    @property
    def slots(self) -> tuple[tuple[Type, Value], ...]:
        """The slots in their order, each with the type of what it holds."""
        return (POINTER, self.data), (I64, self.capacity), (I64, self.length)


@dataclass(slots=True)
class Stored:
    """A variable that has been computed.

    Attributes:
      shape: its extents.
      dtype: its dtype.
      pointer: address of its elements in C order, if they are in memory.
      elements: elements in registers, by the number in C order of the first one in each: packs
        have several.
      tape: of a tape, where its entries are; shape and dtype are those of an entry.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    pointer: Value | None = None
    elements: dict[int, Number] = field(default_factory=dict)
    tape: TapeSlots | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, per axis."""
        return strides_of(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Memory of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def entry_bytes(self) -> int:
        """Memory of an entry of a tape."""
        return TAPE_BYTES if self.tape is not None and self.tape.depth else self.size_bytes

    def register(self, flat: int) -> tuple[Number, int] | None:
        """The register that an element is in, and the lane; ``None`` if it is in memory only."""
        for start in range(flat, -1, -1) if self.elements else ():
            number = self.elements.get(start)
            if number is not None:
                return (number, flat - start) if number.lanes > flat - start else None
        return None

    def inner(self) -> Stored:
        """The same for a block of its own: what it loads into registers is its own."""
        return Stored(self.shape, self.dtype, self.pointer, dict(self.elements), self.tape)


class Arena:
    """Offsets in a block of memory.

    Attributes:
      size_bytes: what has been needed at most.
    """

    def __init__(self) -> None:
        self.size_bytes = 0
        self._free: list[tuple[int, int]] = []
        self._sizes: dict[int, int] = {}

    def allocate(self, size_bytes: int) -> int:
        """The offset of free memory: the smallest gap that fits, else the end."""
        size = max(ALIGNMENT, -(-size_bytes // ALIGNMENT) * ALIGNMENT)
        fitting = [(length, start) for start, length in self._free if length >= size]
        if fitting:
            length, start = min(fitting)
            self._free.remove((start, length))
            if length > size:
                self._free.append((start + size, length - size))
        else:
            start = self.size_bytes
            last = max(self._free, default=None)
            if last is not None and last[0] + last[1] == self.size_bytes:
                self._free.remove(last)
                start = last[0]
            self.size_bytes = start + size
        self._sizes[start] = size
        return start

    def release(self, start: int) -> None:
        """Give memory back."""
        size = self._sizes.pop(start)
        merged = (start, size)
        for gap in list(self._free):
            if gap[0] + gap[1] == merged[0]:
                self._free.remove(gap)
                merged = (gap[0], gap[1] + merged[1])
            elif merged[0] + merged[1] == gap[0]:
                self._free.remove(gap)
                merged = (merged[0], merged[1] + gap[1])
        self._free.append(merged)


class Frame:
    """The temporary memory of one emitted function.

    Attributes:
      arena: which part of it is in use.
      given: where the caller has it, if the function takes none of its own.
    """

    def __init__(self, b: Builder, only_stack: bool = False) -> None:
        self.arena = Arena()
        self.given: Value | None = None
        self._b = b
        self._only_stack = only_stack
        self._block = Value("%block", POINTER)
        self._memory = Value("%memory", POINTER)
        self._entry = b.section()

    def at(self, offset: int) -> Value:
        """An address in the memory."""
        with self._b.within(self._entry):
            place = self._b.emit(
                POINTER,
                f"getelementptr i8, ptr {self._memory.text}, i64 {self._b.index(offset).text}",
            )
        self._b.slots.add(self._memory.text, place.text, offset)
        return place

    def scratch(self, size_bytes: int) -> Value:
        """Memory that is not given back."""
        return self.at(self.arena.allocate(size_bytes))

    def before(self) -> AbstractContextManager[None]:
        """Write before everything else."""
        return self._b.within(self._b.memory_section(self._entry))

    def mark_end(self) -> None:
        """Have ``MEMORY_END`` be the end of the memory: after everything is allocated."""
        b = self._b
        with self.before():
            place = f"ptr {self._memory.text}, i64 {self.arena.size_bytes}"
            b.statement(f"{MEMORY_END.text} = getelementptr i8, {place}")

    def release(self) -> None:
        """Give the memory back: before the function returns, after everything is allocated."""
        if self.given is not None or self._is_on_stack:
            return
        if self.arena.size_bytes < LARGE_BYTES:
            self._b.call("free", [self._block], None)
        else:
            give_block(self._b, self._block)

    @property
    def _is_on_stack(self) -> bool:
        return self.arena.size_bytes <= ON_STACK_BYTES or self._only_stack

    def acquire(self, leave: Callable[[], None]) -> None:
        """Take the memory at the start of the function, once its size is known.

        Args:
          leave: writes the function's end where there is none.
        """
        b, size = self._b, self.arena.size_bytes
        with self.before():
            if self.given is not None:
                self._start_in(self.given)
                return
            if self._is_on_stack:
                # in steps, so that programs for other extents have the same text
                rounded = max(1 << (size - 1).bit_length(), 64) if size else 64
                b.statement(f"%memory = alloca [{rounded} x i8], align 64")
                return
            # ``aligned_alloc`` is not everywhere, nor freed by ``free`` everywhere
            whole = b.index(size + ALIGNMENT - 1)
            is_large = size >= LARGE_BYTES
            block = take_block(b, whole) if is_large else b.call("malloc", [whole], POINTER)
            b.statement(f"{self._block.text} = getelementptr i8, ptr {block.text}, i64 0")
            lost, found = b.label("lost"), b.label("found")
            b.branch_if(b.icmp("eq", self._block, Value("null", POINTER)), lost, found)
            b.start(lost)
            leave()
            b.start(found)
            self._start_in(block)

    def _start_in(self, block: Value) -> None:
        """Have the memory at the first boundary in a block."""
        b = self._b
        last = b.offset(block, b.index(ALIGNMENT - 1))
        start = b.boundary(last, ALIGNMENT)
        b.statement(f"{self._memory.text} = getelementptr i8, ptr {start.text}, i64 0")
