"""The value of a tape: one entry per iteration of a loop whose length is not known beforehand.

Here: ``TapeValue``, what stands for an aval ``Tape`` when a program runs. Not here: the loops that
fill and read tapes (``control.loops``, ``control.while_loop``), operations on whole tapes
(``primitives.tapes``).

A tape is filled by one loop and read by others, always by the number of the iteration; it is not
written to afterwards. What was never written reads as zero, so that the zero tape needs no length.

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.avals import Aval, ShapedArray, Tape

_FIRST_CAPACITY = 16


def zero_entry(aval: Aval) -> Any:
    """The zero of an aval: an array without memory of its own, or a zero tape."""
    if type(aval) is ShapedArray:
        zero = np.zeros((), aval.dtype)
        zero.flags.writeable = False  # nobody's to change: a constant of a program, not its input
        return np.broadcast_to(zero, aval.shape)
    assert type(aval) is Tape
    return TapeValue(aval)


class TapeValue:
    """The entries of a tape.

    Entries of arrays lie in one array that grows by doubling; tapes of tapes are lists.

    Attributes:
      aval: aval of the tape.
      length: number of entries that may differ from zero.
      entries: array ``[capacity, ...]`` or list.
    """

    __slots__ = ("aval", "entries", "length")

    def __init__(self, aval: Tape, length: int = 0) -> None:
        self.aval = aval
        self.length = length
        element = aval.element
        self.entries: Any
        if type(element) is ShapedArray:
            self.entries = np.empty((length, *element.shape), element.dtype)
        else:
            self.entries = [None] * length

    @property
    def shape(self) -> tuple[Any, ...]:
        """That of the aval."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the entries."""
        return self.aval.dtype

    def read(self, i: int) -> Any:
        """Entry of an iteration."""
        return self.entries[i] if i < self.length else zero_entry(self.aval.element)

    def write(self, i: int, value: Any) -> None:
        """Set an entry that ``TapeValue(aval, length)`` has room for."""
        self.entries[i] = value

    def append(self, value: object) -> None:
        """Add an entry."""
        if type(self.entries) is list:
            self.entries.append(value)
        else:
            if self.length == len(self.entries):
                capacity = max(_FIRST_CAPACITY, 2 * self.length)
                grown = np.empty((capacity, *self.entries.shape[1:]), self.entries.dtype)
                grown[: self.length] = self.entries
                self.entries = grown
            self.entries[self.length] = value
        self.length += 1

    def map(self, function: Callable[[Any], Any], element: Aval) -> TapeValue:
        """A tape of the images of the entries, which have the aval ``element``."""
        result = TapeValue(Tape(element), self.length)
        for i in range(self.length):
            result.write(i, function(self.entries[i]))
        return result

    def __add__(self, other: TapeValue) -> TapeValue:
        """Sum of the entries."""
        long, short = (self, other) if self.length >= other.length else (other, self)
        result = TapeValue(self.aval, long.length)
        for i in range(long.length):
            entry = long.entries[i]
            result.write(i, entry + short.entries[i] if i < short.length else entry)
        return result

    def __repr__(self) -> str:
        """``Tape[f64[3]] of 7``."""
        return f"{self.aval} of {self.length}"
