"""Which loops a product has, which of them are its core, and what is copied for that.

Here: the axes of ``dot_general`` by role, copies of operands that save loops, and the choice of a
core. Not here: the code of the cores (``native.dot``, which says what they are).

Layer: ``primitives.native``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.fortran import LETTER, lanes_of, move
from functrans.records import dataclass

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Machine

Pairs = tuple[tuple[int, ...], tuple[int, ...]]

GEMM_WORK = 16_000
"""Multiplications from which a matrix product is left to BLAS: about 25 in each direction."""

WORTH_THREADS = 8_000_000
"""Multiplications from which a product runs on several threads: some 0.15 ms."""
WORTH_THREADS_AROUND = 2_000_000
"""Multiplications from which those of a batch do."""

PACKED_WORK = 250_000
"""Multiplications from which operands are copied into panels: there BLAS would use threads."""

_LARGEST_OWN_WORK = {4: 64_000_000, 8: 32_000_000}
"""Multiplications from which, by item size, blocks for the caches are needed, which BLAS has."""

_USEFUL = 0.8
"""Smallest part of its tiles that a product must fill, if BLAS is not to be called instead."""

_TALL = 8
"""Most rows of a tile of a large product, two vectors wide."""

THIN = 4
"""Most rows or columns of a product that BLAS is slower at (by a factor of two for 4)."""

_CORE_WORK = 2_000
"""Multiplications of a core from which loops around it cost nothing to speak of."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a product.

    Attributes:
      extent: number of rounds.
      a: elements from one round to the next in the first operand; 0 where it lacks the axis.
      b: the same in the second operand.
      out: the same in the result.
    """

    extent: int
    a: int
    b: int
    out: int

    def swapped(self) -> Axis:
        """The axis when the operands change places."""
        return Axis(self.extent, self.b, self.a, self.out)


NO_AXIS = Axis(1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Roles:
    """The axes of a product by role, each in the order of the result, extents of 1 left out."""

    batch: list[Axis]
    rows: list[Axis]
    columns: list[Axis]
    summed: list[Axis]


def roles_of(a: Array, b: Array, out: Array, contract: Pairs, batch: Pairs) -> Roles:
    """The loops of a product."""
    a_free = [i for i in range(len(a.shape)) if i not in contract[0] and i not in batch[0]]
    b_free = [j for j in range(len(b.shape)) if j not in contract[1] and j not in batch[1]]
    steps = iter(out.strides)
    lead = [
        Axis(a.shape[i], a.strides[i], b.strides[j], next(steps))
        for i, j in zip(*batch, strict=True)
    ]
    rows = [Axis(a.shape[i], a.strides[i], 0, next(steps)) for i in a_free]
    columns = [Axis(b.shape[j], 0, b.strides[j], next(steps)) for j in b_free]
    summed = [
        Axis(a.shape[i], a.strides[i], b.strides[j], 0) for i, j in zip(*contract, strict=True)
    ]
    summed.sort(key=lambda axis: -axis.a)
    return Roles(merged_axes(lead), merged_axes(rows), merged_axes(columns), merged_axes(summed))


def merged_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Axes without those of extent 1, neighbours made one where all steps allow it."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        last = merged[-1] if merged else NO_AXIS
        n = axis.extent
        if merged and (last.a, last.b, last.out) == (axis.a * n, axis.b * n, axis.out * n):
            merged[-1] = dataclasses.replace(axis, extent=n * last.extent)
        else:
            merged.append(axis)
    return merged


def count(axes: Sequence[Axis]) -> int:
    """Rounds of loops in one another."""
    return math.prod(axis.extent for axis in axes)


# copies -----------------------------------------------------------------------------------------


def without_loops(e: Routines, a: Array, b: Array, roles: Roles) -> tuple[Array, Array, Roles]:
    """The operands, copied where that saves loops around a small core."""
    inside = roles.rows, roles.columns, roles.summed
    if all(len(axes) <= 1 for axes in inside):
        return a, b, roles
    core = math.prod(axes[-1].extent for axes in inside if axes)
    loops_are_cheap = core >= _CORE_WORK or math.prod(map(count, inside)) < _CORE_WORK
    if loops_are_cheap:
        return a, b, roles
    by_a = sorted(roles.summed, key=lambda axis: -axis.a)
    by_b = sorted(roles.summed, key=lambda axis: -axis.b)

    def to_copy(order: list[Axis]) -> list[tuple[str, int]]:
        """Which operands are not in this order, and the sizes of their copies."""
        sides = []
        for side, free in (("a", roles.rows), ("b", roles.columns)):
            alone = [Axis(axis.extent, getattr(axis, side), 0, 0) for axis in order]
            if len(free) > 1 or len(merged_axes(alone)) > 1:
                sides.append((side, count((*roles.batch, *free, *order))))
        return sides

    order = min((by_a, by_b), key=lambda order: sum(size for _, size in to_copy(order)))
    copies = [side for side, _ in to_copy(order)]
    roles = dataclasses.replace(roles, summed=order)
    if "a" in copies:
        a, roles = packed(e, a, "a", roles)
    if "b" in copies:
        b, roles = packed(e, b, "b", roles)
    return a, b, roles


def packed(e: Routines, x: Array, side: str, roles: Roles) -> tuple[Array, Roles]:
    """A copy of an operand: of ``a`` by batch, row, summed, of ``b`` by batch, summed, column."""
    own = ("batch", "rows", "summed") if side == "a" else ("batch", "summed", "columns")
    axes = [axis for name in own for axis in getattr(roles, name)]
    packed = e.workspace([axis.extent for axis in axes], x.dtype)
    move(e, x, packed, packed.shape, [getattr(axis, side) for axis in axes], packed.strides)
    steps = iter(packed.strides)
    changed = {
        name: [dataclasses.replace(axis, **{side: next(steps)}) for axis in getattr(roles, name)]
        for name in own
    }
    roles = dataclasses.replace(roles, **changed)
    merged = {
        field.name: merged_axes(getattr(roles, field.name)) for field in dataclasses.fields(roles)
    }
    return packed, Roles(**merged)


# the core ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Core:
    """What is computed inside the loops around it.

    Attributes:
      kind: ``gemm``, ``packed``, ``lanes`` or ``sums``.
      row: axis of the first operand and the result.
      column: axis of the second operand and the result; of both operands if it is a batch axis.
      summed: the summed axis.
    """

    kind: str
    row: Axis
    column: Axis
    summed: Axis


def inner(axes: Sequence[Axis]) -> Axis:
    """The axis of a role that the core may take."""
    return axes[-1] if axes else NO_AXIS


def is_own(machine: Machine, dtype: np.dtype, m: int, n: int, terms: int) -> bool:
    """Whether a matrix product that BLAS could do is faster as loops."""
    if dtype.kind != "f" or m * n * terms > _LARGEST_OWN_WORK[dtype.itemsize]:
        return False
    if machine.registers < 2 * _TALL:  # with half the registers, tiles would have half the size
        return False
    height, lanes = tall(m), lanes_of(dtype)
    computed = -(-m // height) * height * -(-n // lanes) * lanes
    return n >= lanes and m * n >= _USEFUL * computed


def tall(rows: int) -> int:
    """Rows of a tile of a large product: 8 or less, what computes fewest rows twice."""
    if rows <= _TALL:
        return rows
    sizes = range(_TALL, _TALL // 2, -1)
    return min(sizes, key=lambda height: -(-rows // height) * height)


def choose(machine: Machine, dtype: np.dtype, roles: Roles, is_same: bool) -> tuple[Core, str]:
    """The core, and the operands that must be copied for it: a text of ``a`` and ``b``.

    Args:
      machine: what is fast.
      dtype: that of the result.
      roles: the axes.
      is_same: whether both operands are one array.
    """
    row, column, k = inner(roles.rows), inner(roles.columns), inner(roles.summed)
    if not roles.columns:  # there are no rows either: these are products of vectors
        last = inner(roles.batch)
        if k.a == k.b == 1:
            return Core("sums", NO_AXIS, last, k), ""
        if last.a == last.b == 1:
            return Core("lanes", NO_AXIS, last, k), ""
        return Core("lanes", NO_AXIS, NO_AXIS, k), ""
    m, n, terms = row.extent, column.extent, k.extent
    is_long = max(m, n, terms, row.a, k.a, k.b, column.b, row.out) >= 2**31
    if (
        dtype.char in LETTER
        and min(m, n) > THIN
        and terms > 1
        and m * n * terms >= GEMM_WORK
        and not is_long
    ):
        is_gram = is_same and (row.a, m, k.a) == (column.b, n, k.b)
        if is_own(machine, dtype, m, n, terms) and not is_gram:
            return Core("lanes", row, column, k), "" if column.b == 1 else "b"
        is_one = len(roles.summed) == 1 and column.out == 1
        if dtype.kind == "f" and is_one and not is_gram and m * n * terms >= PACKED_WORK:
            return Core("packed", row, column, k), ""
        copies = "" if 1 in (row.a, k.a) else "a"
        copies += "" if 1 in (k.b, column.b) else "b"
        return Core("gemm", row, column, k), copies
    if column.b == 1:
        return Core("lanes", row, column, k), ""
    if k.b == 1 and (m == 1 or (k.a == 1 and (m <= THIN or terms >= 8 * lanes_of(dtype)))):
        return Core("sums", row, column, k), "" if k.a == 1 else "a"
    return Core("lanes", row, column, k), "b"
