"""Which axes of an array are loops, and which of them lanes run along.

Here: what is known from a shape alone; the order of reductions depends on it. Not here: what also
depends on the program (``compiler.rows``, ``compiler.schedule``).

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

FULLY_UNROLLED = 16
"""Arrays up to this size are computed without loops, and live in registers."""
UNROLLED = 40
"""Trailing axes are unrolled up to this many elements of a loop's body."""
UNROLLED_AXIS = 16
"""The longest axis that is unrolled: rows up to this length are read and written as a whole."""
SHORT = 32
"""Extents from here on are worth a vector loop: the reduction order depends on it."""
FEWEST_LANES = 8
"""The shortest innermost loop that runs over lanes, where nothing is reduced along it."""


def vector_axis(shape: Sequence[int]) -> int | None:
    """The axis of a shape that loops over lanes run along: the last one that is not short."""
    for axis in reversed(range(len(shape))):
        if shape[axis] >= SHORT:
            return axis
    return None


def loop_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a shape that become loops; the others are unrolled or have one element.

    Short trailing axes are unrolled where another axis is long enough for lanes; arrays with no
    such axis are small, and written out they would be long.
    """
    if math.prod(shape) <= FULLY_UNROLLED:
        return ()
    if vector_axis(shape) is None:
        return tuple(axis for axis, extent in enumerate(shape) if extent != 1)
    unrolled = 1
    last = len(shape)
    while last and shape[last - 1] <= UNROLLED_AXIS and unrolled * shape[last - 1] <= UNROLLED:
        unrolled *= shape[last - 1]
        last -= 1
    return tuple(axis for axis in range(last) if shape[axis] != 1)


def unrolled(shape: tuple[int, ...]) -> int:
    """Elements of an array that are computed in one round of its loops."""
    return math.prod(shape) // math.prod(shape[axis] for axis in loop_axes(shape))
