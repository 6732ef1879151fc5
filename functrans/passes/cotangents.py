"""Cotangents: accumulation, and masks that keep the untaken branch of a selection out.

Here: ``Masked`` and the pullback of elementwise operations, which both the backward pass over
recorded nodes (``linearize``) and the transposition of linear programs (``transpose``) use. Not
here: the order in which cotangents are visited.

The transpose of ``where`` gives a cotangent and the mask of where it counts. Elementwise, movement,
broadcast and sum carry the mask and write 0 where it is off, so that an infinite derivative in the
branch that was not taken cannot become NaN; adding an unmasked cotangent clears it. Elsewhere
``0 * inf`` stays NaN.

A cotangent may be *narrower* than its value as long as it broadcasts to it: the pullback of a sum
does not materialise its broadcast.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.ir.avals import Tape, Zero
from functrans.ir.primitive import Primitive
from functrans.ir.tapes import zero_entry
from functrans.primitives.dynamic_slicing import dynamic_slice_p
from functrans.primitives.elementwise import logical_and, logical_not, logical_or, where, where_p
from functrans.primitives.gather_scatter import gather_p
from functrans.primitives.movement import concatenate_p, pad_p, reverse_p, stack_p
from functrans.primitives.slicing import embed_p, slice_p, slice_update_p
from functrans.primitives.structural import (
    broadcast_to,
    broadcast_to_p,
    cast,
    reduce_sum_p,
    reshape,
    reshape_p,
    sum_to_shape,
    transpose_p,
)
from functrans.primitives.tapes import tape_add
from functrans.state import current_config
from functrans.trace import Tracer, dtype_of


class Masked:
    """A cotangent that is exactly zero where its mask is off.

    Attributes:
      value: the cotangent.
      mask: boolean, of a shape that broadcasts with the value.
    """

    __slots__ = ("mask", "value")

    def __init__(self, value: Any, mask: Any) -> None:
        self.value = value
        self.mask = mask


def plain(ct: Any) -> Any:
    """The cotangent without its mask."""
    return ct.value if type(ct) is Masked else ct


def add_cotangents(first: Any, second: Any) -> Any:
    """Sum of two cotangents; masked only where both are."""
    if type(first) is Masked:
        if type(second) is Masked:
            return Masked(first.value + second.value, logical_or(first.mask, second.mask))
        return first.value + second
    if type(second) is Masked:
        return first + second.value
    if isinstance(first, Tracer) and isinstance(first.aval, Tape):
        return tape_add(first, second)
    return first + second


def _fit(ct: Any, from_shape: tuple[int, ...], target: Any, size: int | None) -> Any:
    """Bring an operand's cotangent from the result's shape to its own shape and dtype.

    Args:
      ct: cotangent; with ``size``, it has a leading batch axis besides.
      from_shape: shape of the result.
      target: has ``shape`` and ``dtype`` of the operand.
      size: extent of the batch axis, or ``None``.
    """
    shape = target.shape
    if type(ct) is Masked:
        mask = ct.mask
        if from_shape != shape:
            mask = _sum_to(cast(mask, np.int64), from_shape, shape, size) > 0
        return Masked(_fit(ct.value, from_shape, target, size), mask)
    if from_shape != shape:
        ct = _sum_to(ct, from_shape, shape, size)
    return ct if dtype_of(ct) == target.dtype else cast(ct, target.dtype)


def _sum_to(x: Any, from_shape: tuple[int, ...], shape: tuple[int, ...], size: int | None) -> Any:
    """Undo the broadcast from ``shape`` to ``from_shape``, under a batch axis or none."""
    if size is None:
        return sum_to_shape(broadcast_to(x, from_shape), shape)
    lead = (1,) * (len(from_shape) - len(shape))
    summed = sum_to_shape(broadcast_to(x, (size, *from_shape)), (size, *lead, *shape))
    return reshape(summed, (size, *shape))


def pull_elementwise(
    primitive: Primitive,
    ct: Any,
    operands: Sequence[Any],
    out: Any,
    shape: tuple[int, ...],
    targets: Sequence[Any],
    size: int | None = None,
) -> list[Any]:
    """Pull a cotangent back through an elementwise operation.

    Args:
      primitive: the operation.
      ct: cotangent of the result, possibly masked, possibly narrower than ``shape``.
      operands: saved operands; those that no needed partial reads may be ``None``.
      out: the saved result, or ``None``.
      shape: shape of the result.
      targets: per operand an object with ``shape`` and ``dtype`` where a cotangent is wanted,
        else ``None``.
      size: extent of a leading batch axis of the cotangent, or ``None``. Operands broadcast
        against it as they are, since the axis is in front.

    Returns:
      A cotangent or ``None`` per operand.
    """
    family = primitive.elementwise
    assert family is not None
    if primitive is where_p and current_config.get().safe_where:
        return _pull_where(ct, operands[0], shape, targets, size)
    results: list[Any] = []
    for partial, target in zip(family.partials, targets):  # noqa: B905  # same by construction
        if target is None or partial is None or partial == 0:
            results.append(None)
            continue
        if partial == 1:
            pulled = ct
        elif type(ct) is Masked:
            value = -ct.value if partial == -1 else partial(ct.value, *operands, out)
            if partial != -1:
                value = where(ct.mask, value, 0)
            pulled = Masked(value, ct.mask)
        elif partial == -1:
            pulled = -ct
        else:
            pulled = partial(ct, *operands, out)
        if shape != target.shape or type(pulled) is Masked or pulled.dtype != target.dtype:
            pulled = _fit(pulled, shape, target, size)
        results.append(pulled)
    return results


def _pull_where(
    ct: Any,
    condition: Any,
    shape: tuple[int, ...],
    targets: Sequence[Any],
    size: int | None,
) -> list[Any]:
    """The transpose of a selection: cotangent and mask to either branch."""
    outer = ct.mask if type(ct) is Masked else None
    value = plain(ct)
    results: list[Any] = [None]
    for target, is_first in ((targets[1], True), (targets[2], False)):
        if target is None:
            results.append(None)
            continue
        mask = condition if is_first else logical_not(condition)
        if outer is not None:
            mask = logical_and(mask, outer)
        arms = (value, 0) if is_first else (0, value)
        results.append(_fit(Masked(where(condition, *arms), mask), shape, target, size))
    return results


CARRIES_MASK = frozenset(
    {
        reduce_sum_p,
        reshape_p,
        transpose_p,
        broadcast_to_p,
        slice_p,
        embed_p,
        slice_update_p,
        concatenate_p,
        stack_p,
        pad_p,
        reverse_p,
        gather_p,
        dynamic_slice_p,
    }
)
"""Movement and sums: linear maps with entries 0 and 1, where a mask goes the way of values."""


def pull_masked(
    rule: Any, ct: Masked, shape: tuple[int, ...], dtype: Any, operands: Any, params: Any
) -> list[Any]:
    """A masked cotangent through a movement operation: cotangent and mask go the same way.

    Args:
      rule: transpose rule of one of ``CARRIES_MASK``.
      ct: cotangent of the result.
      shape: shape of the result.
      dtype: dtype of the result.
      operands: as the rule takes them.
      params: parameters of the equation.
    """
    values = rule((broadcast_to(ct.value, shape),), operands, **params)
    masks = rule((cast(broadcast_to(ct.mask, shape), dtype),), operands, **params)
    return [
        value if value is None or type(value) is Zero else Masked(value, on != 0)
        for value, on in zip(values, masks, strict=True)
    ]


def materialize(ct: Any, shape: tuple[int, ...]) -> Any:
    """An unmasked cotangent of the full shape."""
    value = plain(ct)
    return value if value.shape == shape else broadcast_to(value, shape)


def zeros(aval: Any) -> Any:
    """A zero array of an aval, read-only, without memory of its own; or a zero tape."""
    return zero_entry(aval)


def instantiate(ct: Any) -> Any:
    """A symbolic zero as an array; anything else unmasked."""
    return zeros(ct.aval) if type(ct) is Zero else plain(ct)
