"""What stands in memory whose numbers are traced: NaN that says so.

A tracer answers for an array to which a traced value was written, and nothing is to read old
numbers in its memory. There stands a NaN with a payload that no computation makes, which survives
arithmetic and conversions. Where it arrives in a result of a traced function, or in a constant of
its program, code that does not ask NumPy (a library in C) has read the memory: an error, since the
derivative would be lost. NaN of users is never taken for it.

Here: the mark and the look for it, which costs nothing before memory has become traced. Not here:
when memory becomes traced (``plain.memory``), when the mark is looked for (``plain.entry``).

Layer: ``plain``.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import numpy as np

from functrans.core.avals import shape_text
from functrans.core.jaxpr import Equation, Literal, subjaxprs
from functrans.core.source import Captured, capture, resolve
from functrans.core.values import Array
from functrans.errors import (
    ConcretizationError,
    FunctransError,
    UnsupportedOperationError,
)
from functrans.passes.layouts import plain_value
from functrans.passes.staging import StagingTrace

Note = tuple[Captured | None, tuple[int, ...], np.dtype]
"""The user's line that wrote the first traced value to an array, its shape and its dtype."""


class Notes:
    """What is known of arrays that have become traced.

    Attributes:
      arrays: the first of them; the mark in each has its number, which begins at 1.
      overwritten: numbers of those whose memory was written to since, past the tracer.
    """

    __slots__ = ("arrays", "overwritten")

    def __init__(self) -> None:
        self.arrays: list[Note] = []
        self.overwritten: list[int] = []


notes: ContextVar[Notes | None] = ContextVar("functrans_plain_unreadable", default=None)
"""Of the outermost call of a twin at hand, once an array has become traced in it."""

_N_NUMBERS = 0xFF
"""How many arrays are told from each other; 0 is the number of all others."""
_PAYLOAD = 0x365
"""The first bits of the significand, as many as ``f16`` has; those that follow are the number."""
_MARKS = (
    np.uint64(0x7FF << 52 | _PAYLOAD << 42)
    | np.arange(_N_NUMBERS + 1, dtype=np.uint64) << np.uint64(34)
).view(np.float64)
_IN_WORDS: dict[int, tuple[Any, Any, int]] = {
    2: (np.uint16(0x7FFF), np.uint16(0x1F << 10 | _PAYLOAD), 0),
    4: (np.uint32(0x7FFFFFFF ^ _N_NUMBERS << 5), np.uint32(0xFF << 23 | _PAYLOAD << 13), 5),
    8: (
        np.uint64(0x7FFFFFFFFFFFFFFF ^ _N_NUMBERS << 34),
        np.uint64(0x7FF << 52 | _PAYLOAD << 42),
        34,
    ),
}
"""By size of a number in bytes: the bits of the mark without sign and number, what they are, and
where the number begins."""
_INTEGERS = {"i": np.int64(-0x5DA5C3E17B294D01), "u": np.uint64(0x5DA5C3E17B294D01)}
"""What stands in arrays of 64-bit integers."""


def mark(array: np.ndarray) -> None:
    """Write the mark to an array, and note it."""
    known = notes.get()
    if known is None:
        known = Notes()
        notes.set(known)
    number = 0
    if len(known.arrays) < _N_NUMBERS:
        known.arrays.append((capture(), array.shape, array.dtype))
        number = len(known.arrays)
    kind = array.dtype.kind
    if kind in "fc":
        _fill(array, _MARKS[number])
    elif kind in "iu":
        bound = np.iinfo(array.dtype)
        array[...] = (
            _INTEGERS[kind] if array.itemsize == 8 else bound.min if kind == "i" else bound.max
        )


def unmark(array: np.ndarray, *, is_over: bool) -> None:
    """Leave ordinary NaN in memory that is freed, which ``np.empty`` may give to somebody.

    Whether it was written to past the tracer is noted, if its trace is not over.
    """
    if array.dtype.kind in "fc":
        known = notes.get()
        if known is not None and not is_over and not _is_marked(array):
            known.overwritten.append(_number_in(array) or 0)
        _fill(array, _NAN)


def _is_marked(array: np.ndarray) -> bool:
    """Whether there is nothing but the mark."""
    if array.dtype.kind == "c":
        return _is_marked(array.real) and _is_marked(array.imag)
    if array.itemsize not in _IN_WORDS:
        return bool(np.isnan(array).all())
    bits, expected, _ = _IN_WORDS[array.itemsize]
    return bool((array.view(bits.dtype) & bits == expected).all())


def unmarked(array: np.ndarray) -> np.ndarray:
    """The array, in which marks that ``np.empty`` has found in memory are ordinary NaN."""
    if notes.get() is not None and _number_in(array) is not None:
        array[np.isnan(array)] = _NAN
    return array


_NAN = float("nan")


def _fill(array: np.ndarray, value: Array | complex) -> None:
    if array.dtype.kind == "c":
        array.imag[...] = value
        array = array.real
    array[...] = value


# the look -----------------------------------------------------------------------------------------


def check_results(results: Iterable[Any], label: str) -> None:
    """Refuse results that were computed from the memory of a traced array, or lack a write to it.

    Raises:
      ConcretizationError: says which array was read.
      UnsupportedOperationError: says which array was written to past the tracer.
    """
    known = notes.get()
    if known is not None and known.overwritten:
        raise UnsupportedOperationError(
            f"the memory of {_array(known.overwritten[0])} was written to by code that does not "
            f"ask NumPy, or through a view that it made, in {label}: the write is lost. Write to "
            "the array itself, a[...] = ..."
        )
    for result in results:
        number = _number_in(plain_value(result))
        if number is not None:
            raise _error(number, f"a result of {label}")


def check_program(trace: StagingTrace) -> None:
    """Refuse constants of a program that were computed from the memory of a traced array.

    Raises:
      ConcretizationError: says which array it was.
    """
    for position in range(len(trace.consts)):
        number = _number_in(plain_value(trace.captured(position)))
        if number is not None:
            raise _error(number, f"a constant of {trace.label}")
    pending: list[Iterable[Equation]] = [trace.eqns]
    while pending:
        for eqn in pending.pop():
            for atom in eqn.inputs:
                if type(atom) is Literal and (number := _number_in(atom.value)) is not None:
                    line = resolve(eqn.source)
                    where = "" if line is None else f" at {line}"
                    raise _error(number, f"a constant of {trace.label}{where}")
            for program in subjaxprs(eqn.params):
                pending.append(program.eqns)
                for value in program.consts:
                    number = _number_in(plain_value(value))
                    if number is not None:
                        raise _error(number, f"a constant of {trace.label}")


def explain(error: Exception) -> None:
    """Add to an error of a library about NaN where that may come from."""
    known = notes.get()
    if known is None or isinstance(error, FunctransError) or hasattr(error, "__notes__"):
        return
    text = str(error).lower()
    if "nan" in text or "finite" in text:
        error.add_note(
            f"{_array(len(known.arrays))} has NaN in its memory. If that code was given such an "
            f"array, give it {_ADVICE}"
        )


def _number_in(value: Array | complex | None) -> int | None:
    """The number of a mark in an array or a number; ``None`` if there is none."""
    kind = type(value)
    if kind is float or kind is np.float64:
        if value == value:
            return None
    elif kind is not np.ndarray and kind is not complex and not isinstance(value, np.generic):
        return None
    array = np.asarray(value)
    letter = array.dtype.kind
    if letter == "c":
        number = _number_in(array.real)
        return _number_in(array.imag) if number is None else number
    if not array.size:
        return None
    if letter in "iu":
        found = array.itemsize == 8 and bool(np.any(array == _INTEGERS[letter]))
        return 0 if found else None
    if letter != "f" or not np.isnan(np.max(array)):
        return None
    if array.itemsize not in _IN_WORDS:
        array = array.astype(np.float64)
    bits, expected, start = _IN_WORDS[array.itemsize]
    words = array.view(bits.dtype)
    words = words[words & bits == expected]
    if not words.size:
        return None
    return int(words[0]) >> start & _N_NUMBERS if start else 0


def _array(number: int) -> str:
    """The array with this number, in words."""
    known = notes.get()
    if known is None or not 0 < number <= len(known.arrays):
        return "an array that holds traced values"
    source, shape, dtype = known.arrays[number - 1]
    line = resolve(source)
    written = "" if line is None else f" (the first was written at {line})"
    return f"an array of {dtype}[{shape_text(shape)}] that holds traced values{written}"


_ADVICE = (
    "a copy, array.copy(), which is a traced value: it is computed with, or refused where it is "
    "read. Code that cannot be traced is called by ft.external."
)


def _error(number: int, where: str) -> ConcretizationError:
    return ConcretizationError(
        f"the memory of {_array(number)} was read by code that does not ask NumPy, and is in "
        f"{where}: the numbers are not there, and the derivative would be lost. Give that code "
        f"{_ADVICE}"
    )
