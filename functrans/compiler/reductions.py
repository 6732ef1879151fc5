"""The order in which a reduction combines elements along one axis.

Here: what is combined with what (``combine``, ``identity``), the order for elements in registers
(``fold``, ``fold_lanes``) and the constants of the order in loops (``compiler.accumulators``).

The order depends on the shape alone, never on what is fused with what, nor on the machine, nor on
the number of threads. Along the axis that loops over lanes run along (``axes.vector_axis``):
element ``k`` belongs to lane ``k mod 32``; a lane adds up 8 elements at a time, 4 such sums at a
time, 4 of these, and so on; the lanes are then added in halves: 32 to 16, to 8, ... to 1. Along any
other axis: 8 elements at a time, one after the other, and these sums one after the other.

For random numbers the squares of the rounding errors add up, those of a chain of ``m`` partial sums
to ``(m + 1) / 2 - 1 / m`` per element. That makes this order slightly more exact than NumPy's
pairwise sums (8 lanes over 128 elements, then halves): 11.6 against 14.4 for 1000 elements, 22.9
against 24.4 for a million. Along other axes NumPy adds one after the other.

A sum begins with -0.0, which changes no number, and a product with 1. Maxima and minima treat -0.0
as less than 0.0, so that they depend on no order.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from functrans.emitter.numbers import Number, Numbers

LANES = 32
ROUNDS = 8
"""Elements of a lane that are added one after the other."""
UPPER_ROUNDS = 4
"""Sums of each level that are added one after the other."""
BLOCK = 8
"""Elements that are added one after the other along an axis that is not in lanes."""


def combine(e: Numbers, kind: str, x: Number, y: Number) -> Number:
    """Two elements, or partial results, made one."""
    return getattr(e, _METHODS[kind])(x, y)


_METHODS = {
    "sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "logical_or",
    "all": "logical_and", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip


def identity_value(kind: str, dtype: np.dtype) -> object:
    """What changes no element that it is combined with."""
    is_float = dtype.kind == "f" or dtype.name == "bfloat16"
    if kind == "sum":
        return complex(-0.0, -0.0) if dtype.kind == "c" else -0.0 if is_float else 0
    if kind == "prod":
        return 1
    if kind in ("max", "min"):
        if dtype.kind == "b":
            return kind == "min"
        if is_float:
            return -np.inf if kind == "max" else np.inf
        if dtype.kind == "c":
            return complex(-np.inf, -np.inf) if kind == "max" else complex(np.inf, np.inf)
        limits = np.iinfo(dtype)
        return limits.min if kind == "max" else limits.max
    return {"any": False, "all": True, "and": -1, "or": 0, "xor": 0}[kind]


def identity(e: Numbers, kind: str, dtype: np.dtype, lanes: int = 1) -> Number:
    """:func:`identity_value` as a number, in all lanes."""
    return e.constant(dtype, identity_value(kind, dtype), lanes)


def is_ordered(kind: str, dtype: np.dtype) -> bool:
    """Whether the result depends on the order: of rounded sums and products it does."""
    return kind in ("sum", "prod") and (dtype.kind in "fc" or dtype.name == "bfloat16")


def empty_value(kind: str, dtype: np.dtype) -> object:
    """The result for no elements: NumPy's."""
    return 0 if kind == "sum" else identity_value(kind, dtype)


def fold(e: Numbers, kind: str, numbers: Sequence[Number], dtype: np.dtype) -> Number:
    """Combine elements of an axis that is not in lanes."""
    if not numbers:
        return e.constant(dtype, empty_value(kind, dtype))
    sums = [
        _in_order(e, kind, _alike(e, numbers[start : start + BLOCK], dtype))
        for start in range(0, len(numbers), BLOCK)
    ]
    return sums[0] if len(sums) == 1 else _in_order(e, kind, sums)


def fold_lanes(e: Numbers, kind: str, numbers: Sequence[Number], dtype: np.dtype) -> Number:
    """Combine elements of the axis in lanes, for at most ``LANES * ROUNDS`` of them."""
    lanes = [_begun(e, kind, number) for number in _alike(e, numbers[:LANES], dtype)]
    for start in range(LANES, len(numbers), LANES):
        for lane, number in enumerate(_alike(e, numbers[start : start + LANES], dtype)):
            lanes[lane] = combine(e, kind, *_same_lanes(e, lanes[lane], number))
    width = LANES
    while width > 1:
        width //= 2
        for lane in range(width):
            if lane + width < len(lanes):
                pair = _same_lanes(e, lanes[lane], lanes[lane + width])
                lanes[lane] = combine(e, kind, *pair)
        del lanes[width:]
    return lanes[0]


def _in_order(e: Numbers, kind: str, numbers: Sequence[Number]) -> Number:
    """Combine elements one after the other."""
    total = _begun(e, kind, numbers[0])
    for number in numbers[1:]:
        total = combine(e, kind, *_same_lanes(e, total, number))
    return total


def _begun(e: Numbers, kind: str, first: Number) -> Number:
    """The identity combined with the first element, which is that, but for complex products."""
    if kind != "prod" or first.dtype.kind != "c":
        return first
    return combine(e, kind, identity(e, kind, first.dtype, first.lanes), first)


def _alike(e: Numbers, numbers: Sequence[Number], dtype: np.dtype) -> list[Number]:
    return [number if number.dtype == dtype else e.cast(number, dtype) for number in numbers]


def _same_lanes(e: Numbers, x: Number, y: Number) -> tuple[Number, Number]:
    lanes = max(x.lanes, y.lanes)
    return e.splat(x, lanes), e.splat(y, lanes)


def fold_vector(e: Numbers, kind: str, number: Number) -> Number:
    """Combine the lanes of one number, in halves."""
    while number.lanes > 1:
        half = number.lanes // 2
        low = [e.b.shuffle(part, part, range(half)) for part in number.parts]
        high = [e.b.shuffle(part, part, range(half, 2 * half)) for part in number.parts]
        if half == 1:
            low = [e.b.extract(part, 0) for part in number.parts]
            high = [e.b.extract(part, 1) for part in number.parts]
        number = combine(
            e, kind, Number(number.dtype, tuple(low)), Number(number.dtype, tuple(high))
        )
    return number


def block_size(level: int) -> int:
    """Elements in lanes after which the sums of a level are added to those of the one above."""
    size: int = LANES * ROUNDS * UPPER_ROUNDS**level
    return size


def level_count(extent: int) -> int:
    """Levels of partial sums for so many elements in lanes."""
    levels = 1
    while extent > block_size(levels - 1):
        levels += 1
    return levels
