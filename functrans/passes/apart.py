"""The axes along which an operation acts on each element apart.

Here: ``axis_maps``, from the field ``axis_map`` of the primitive, else from how it is lowered. Not
here: the rules of families (``core.axes``), what is made of them (``higher.curvature``,
``sparse.rules``).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functrans.core.affine import as_affine, variable
from functrans.core.avals import ShapedArray
from functrans.core.axes import AxisMap, of_broadcast, over_axes
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.core.primitive import Primitive


def axis_maps(
    primitive: Primitive,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    params: Mapping[str, Any],
) -> list[AxisMap]:
    """Per operand the axes of the results that its axes become.

    Args:
      primitive: a first-order operation.
      avals: of the operands.
      outs: of the results.
      params: parameters of the equation.

    Returns:
      Per operand and axis the axis of the results along which the operation acts on each element
      apart, ``None`` where it mixes, moves or leaves out elements (or nothing is known).
    """
    lower = primitive.lower
    if primitive.axis_map is not None:
        return [list(own) for own in primitive.axis_map(*avals, **params)]
    if primitive.elementwise is not None or isinstance(lower, Pointwise):
        return [of_broadcast(aval.shape, outs[0].shape) for aval in avals]
    if isinstance(lower, Reduction):
        return over_axes(*avals, **params)
    if isinstance(lower, IndexMap):
        return _of_index_map(lower, avals, outs, params)
    return [[None] * aval.ndim for aval in avals]


def _of_index_map(
    lower: IndexMap,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    params: Mapping[str, Any],
) -> list[AxisMap]:
    """Axes that every read goes along as the result does, in full."""
    nothing: list[AxisMap] = [[None] * aval.ndim for aval in avals]
    found: dict[int, AxisMap] = {}
    for output, out in enumerate(outs):
        index = tuple(map(variable, range(out.ndim)))
        reads = lower.trace(index, avals, output, **params)
        if reads is None:
            return nothing
        for read in reads:
            shape = avals[read.operand].shape
            own = [_axis_of(e, n, out.shape) for e, n in zip(read.index, shape, strict=True)]
            own = [None if own.count(k) > 1 else k for k in own]
            known = found.get(read.operand, own)
            both = zip(own, known, strict=True)
            found[read.operand] = [a if a == b else None for a, b in both]
    return [found.get(i, own) for i, own in enumerate(nothing)]


def _axis_of(entry: Any, extent: int, shape: Sequence[int]) -> int | None:
    """The axis of the result whose index an entry is, if that has the extent of the operand's."""
    affine = as_affine(entry)
    if affine.constant or len(affine.terms) != 1:
        return None
    ((k, coefficient),) = affine.terms
    return k if coefficient == 1 and shape[k] == extent else None
