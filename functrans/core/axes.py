"""Axes along which an operation acts on each element apart.

Here: rules for the field ``axis_map`` of primitives, which families share. Not here: what follows
from ``lower`` where a record has no such rule (``passes.apart``).

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.core.avals import ShapedArray

AxisMap = Sequence[int | None]
"""Per axis of an operand the axis of the results, or ``None``; see ``Primitive``."""


def of_broadcast(shape: Sequence[int], result: Sequence[int]) -> AxisMap:
    """The map of an operand that is broadcast to the result."""
    skipped = len(result) - len(shape)
    return [skipped + m if n == result[skipped + m] else None for m, n in enumerate(shape)]


def without(axes: Sequence[int], rank: int) -> AxisMap:
    """The map of an operand whose axes but some stay where they are."""
    mixed = {axis % rank for axis in axes} if rank else set()
    return [None if m in mixed else m for m in range(rank)]


def reduced(axes: Sequence[int], rank: int) -> AxisMap:
    """The map of an operand that loses some axes."""
    mixed = {axis % rank for axis in axes}
    kept = [m for m in range(rank) if m not in mixed]
    return [kept.index(m) if m in kept else None for m in range(rank)]


def along_axis(*avals: ShapedArray, axis: int, **params: object) -> list[AxisMap]:
    """An ``axis_map``: what the parameter ``axis`` names is mixed."""
    return [without((axis,), aval.ndim) for aval in avals]


def along_axes(*avals: ShapedArray, axes: Sequence[int], **params: object) -> list[AxisMap]:
    """An ``axis_map``: what the parameter ``axes`` names is mixed."""
    return [without(axes, aval.ndim) for aval in avals]


def over_axes(*avals: ShapedArray, axes: Sequence[int], **params: object) -> list[AxisMap]:
    """An ``axis_map``: a reduction over the parameter ``axes``."""
    return [reduced(axes, aval.ndim) for aval in avals]
