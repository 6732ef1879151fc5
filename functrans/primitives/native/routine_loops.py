"""Loops that the native code of whole arrays shares.

Here: nested loops over strided arrays, runs of contiguous elements in vectors, raw copies, for the
``lower`` rules that are ``Routine``. Not here: the rules (beside their primitives), the emitter
they are given (``emitter.routine``), of which nothing is imported.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

Shape = tuple[int, ...]
Strides = tuple[int, ...]

_VECTOR_BYTES = 64
_UNROLLED = 4
"""Up to so many vectors are written out, without a loop."""


def contiguous(shape: Sequence[int]) -> Strides:
    """Strides of a C-contiguous array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def broadcast_strides(shape: Shape, target: Shape) -> Strides:
    """Strides with which a C-contiguous array is read as one of another shape."""
    own = contiguous(shape)
    padded = (0,) * (len(target) - len(shape)) + own
    extents = (1,) * (len(target) - len(shape)) + shape
    return tuple([0 if n == 1 else stride for n, stride in zip(extents, padded, strict=True)])


def collapsed(shape: Shape, strides: Sequence[Strides]) -> tuple[Shape, list[Strides]]:
    """The same loops with as few axes as possible.

    Args:
      shape: extents of the loops.
      strides: per array its strides along them.

    Returns:
      Extents and strides; neighbouring axes are one where all arrays allow it.
    """
    kept: list[tuple[int, list[int]]] = []
    for axis, extent in enumerate(shape):
        steps = [s[axis] for s in strides]
        if extent == 1:
            continue
        if kept and all(
            outer == step * extent for outer, step in zip(kept[-1][1], steps, strict=True)
        ):
            kept[-1] = (kept[-1][0] * extent, steps)
        else:
            kept.append((extent, steps))
    extents = tuple([extent for extent, _ in kept])
    return extents, [tuple([steps[k] for _, steps in kept]) for k in range(len(strides))]


@contextmanager
def nest(e: Routines, shape: Shape, strides: Sequence[Strides]) -> Iterator[list[Value]]:
    """Loops over all indices of a shape, in C order.

    Args:
      e: the emitter.
      shape: extents.
      strides: per array its strides along the axes, in elements.

    Yields:
      Per array the number of its element.
    """
    extents, steps = collapsed(tuple(shape), [tuple(s) for s in strides])
    with e.each(extents) as index:
        yield [weighted(e, index, own) for own in steps]


def weighted(e: Routines, index: Sequence[Value], strides: Sequence[int]) -> Value:
    """The sum of indices times strides."""
    total: Value | None = None
    for i, stride in zip(index, strides, strict=True):
        if stride == 0:
            continue
        term = i if stride == 1 else e.b.mul(i, e.b.index(stride))
        total = term if total is None else e.b.add(total, term)
    return e.b.index(0) if total is None else total


def plus(e: Routines, a: Value, b: Value | int) -> Value:
    """The sum of two indices."""
    if isinstance(b, int):
        b = e.b.index(b)
    if a.text == "0":
        return b
    return a if b.text == "0" else e.b.add(a, b)


def most_lanes(dtype: np.dtype) -> int:
    """Elements of one vector."""
    return max(_VECTOR_BYTES // dtype.itemsize, 1)


def vectors(
    e: Routines, width: int, dtype: np.dtype, body: Callable[[Value, int], None], lanes: int = 0
) -> None:
    """Cover a run of elements by vectors, the last ones shorter.

    Args:
      e: the emitter.
      width: number of elements.
      dtype: their dtype.
      body: ``(first, lanes) -> None`` writes the code for elements ``first + k``.
      lanes: elements of a vector, a power of 2; by default those of 64 bytes.
    """
    lanes = lanes or most_lanes(dtype)
    whole = width // lanes
    if whole > _UNROLLED:
        with e.count(whole) as i:
            body(e.b.mul(i, e.b.index(lanes)), lanes)
    else:
        for number in range(whole):
            body(e.b.index(number * lanes), lanes)
    at = whole * lanes
    while at < width:
        piece = 1 << ((width - at).bit_length() - 1)
        body(e.b.index(at), piece)
        at += piece


def load_run(e: Routines, array: Array, at: Value, lanes: int = 1) -> Number:
    """Neighbouring elements from a flat index on."""
    return e.load(array.dtype, e.address(array, at), lanes)


def store_run(e: Routines, array: Array, at: Value, number: Number) -> None:
    """Set neighbouring elements from a flat index on."""
    e.store(number, e.address(array, at))


def fill_run(e: Routines, target: Array, to: Value, number: Number, width: int) -> None:
    """Give elements that stand one after the other one value."""

    def part(first: Value, lanes: int) -> None:
        store_run(e, target, plus(e, to, first), e.splat(number, lanes))

    vectors(e, width, target.dtype, part)


def copy_run(e: Routines, source: Array, at: Value, target: Array, to: Value, width: int) -> None:
    """Copy elements that stand one after the other, bit by bit; they do not overlap."""
    if not width:
        return
    e.b.module.declarations.setdefault(
        "llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    )
    align = min(source.dtype.itemsize, 8)
    e.b.statement(
        f"call void @llvm.memcpy.p0.p0.i64(ptr align {align} {e.address(target, to).text}, "
        f"ptr align {align} {e.address(source, at).text}, "
        f"i64 {width * source.dtype.itemsize}, i1 false)"
    )


def set_bytes(e: Routines, array: Array, at: Value, width: int, byte: int = 0) -> None:
    """Give all bytes of elements that stand one after the other one value (0 makes zeros)."""
    if not width:
        return
    e.b.module.declarations.setdefault(
        "llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    )
    e.b.statement(
        f"call void @llvm.memset.p0.i64(ptr {e.address(array, at).text}, i8 {byte}, "
        f"i64 {width * array.dtype.itemsize}, i1 false)"
    )


def zeros(e: Routines, array: Array) -> None:
    """Set all elements to 0."""
    set_bytes(e, array, e.b.index(0), array.size)


class LoopVariable:
    """A number or an index that changes in a loop; the optimiser makes it a register."""

    __slots__ = ("_dtype", "_e", "_slots")

    def __init__(self, e: Routines, first: Number) -> None:
        self._e = e
        self._dtype = first
        self._slots = [e.b.alloca(part.type) for part in first.parts]
        self.set(first)

    def get(self) -> Number:
        """Its value now."""
        parts = tuple(
            [
                self._e.b.load(part.type, slot)
                for part, slot in zip(self._dtype.parts, self._slots, strict=True)
            ]
        )
        return type(self._dtype)(self._dtype.dtype, parts)

    def set(self, number: Number) -> None:
        """Change it."""
        for part, slot in zip(number.parts, self._slots, strict=True):
            self._e.b.store(part, slot)


class Counter:
    """An index that changes in a loop; the optimiser makes it a register."""

    __slots__ = ("_b", "_slot", "_type")

    def __init__(self, e: Routines, first: Value) -> None:
        self._b = e.b
        self._type = first.type
        self._slot = e.b.alloca(first.type, align=8)
        self.set(first)

    def get(self) -> Value:
        """Its value now."""
        return self._b.load(self._type, self._slot)

    def set(self, value: Value) -> None:
        """Change it."""
        self._b.store(value, self._slot)

    def advance(self, condition: Value) -> None:
        """Add 1 where a truth value holds."""
        step = self._b.convert("zext", condition, self._type)
        self.set(self._b.add(self.get(), step))


def extremum(e: Routines, x: Number, y: Number, is_max: bool) -> Number:
    """The larger or smaller of two numbers as NumPy's ufuncs choose it, NaN before all others.

    Of equal numbers, which may be zeros of both signs, the second one; the first one of 16 bits.
    """
    if x.kind != "f":
        return e.maximum(x, y) if is_max else e.minimum(x, y)
    wins = e.logical_or(beyond(e, x, y, is_max), e.not_equal(x, x))
    return e.select(wins, x, y)


def beyond(e: Routines, x: Number, y: Number, is_max: bool) -> Number:
    """Whether ``x`` is chosen and not ``y`` by :func:`extremum`, if none of them is NaN."""
    if x.dtype.itemsize == 2:
        return e.greater_equal(x, y) if is_max else e.less_equal(x, y)
    return e.greater(x, y) if is_max else e.less(x, y)


def split_axis(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Extents before, along and behind an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
