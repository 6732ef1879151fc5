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

from functrans.ir.avals import Zero
from functrans.ir.primitive import Primitive
from functrans.primitives.elementwise import logical_or, where, where_p
from functrans.primitives.structural import broadcast_to, cast, sum_to_shape
from functrans.state import current_config
from functrans.trace import dtype_of, shape_of


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
    return first + second


def _fit(ct: Any, from_shape: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Bring an operand's cotangent from the result's shape to its own shape and dtype."""
    if type(ct) is Masked:
        mask = ct.mask
        if from_shape != shape:
            wide = broadcast_to(mask, from_shape)
            mask = sum_to_shape(cast(wide, np.int64), shape) > 0
        return Masked(_fit(ct.value, from_shape, shape, dtype), mask)
    if from_shape != shape:
        ct = sum_to_shape(broadcast_to(ct, from_shape), shape)
    return ct if dtype_of(ct) == dtype else cast(ct, dtype)


def pull_elementwise(
    primitive: Primitive,
    ct: Any,
    operands: Sequence[Any],
    out: Any,
    shape: tuple[int, ...],
    targets: Sequence[Any],
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

    Returns:
      A cotangent or ``None`` per operand.
    """
    family = primitive.elementwise
    assert family is not None
    results: list[Any] = []
    if primitive is where_p and current_config.get().safe_where:
        return _pull_where(ct, operands[0], shape, targets)
    for partial, target in zip(family.partials, targets, strict=True):
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
        if shape != target.shape or (
            pulled.dtype if type(pulled) is not Masked else None
        ) is not target.dtype:
            pulled = _fit(pulled, shape, target.shape, target.dtype)
        results.append(pulled)
    return results


def _pull_where(
    ct: Any, condition: Any, shape: tuple[int, ...], targets: Sequence[Any]
) -> list[Any]:
    """The transpose of a selection: cotangent and mask to either branch."""
    results: list[Any] = [None]
    outer = ct.mask if type(ct) is Masked else None
    value = plain(ct)
    for target, mask, arms in (
        (targets[1], condition, (value, 0)),
        (targets[2], None, (0, value)),
    ):
        if target is None:
            results.append(None)
            continue
        if mask is None:
            mask = condition == False  # noqa: E712, PLW2901  # elementwise not
        if outer is not None:
            mask = mask & outer  # noqa: PLW2901
        pulled = Masked(where(condition, *arms), mask)
        results.append(_fit(pulled, shape, target.shape, target.dtype))
    return results


def materialize(ct: Any, shape: tuple[int, ...]) -> Any:
    """An unmasked cotangent of the full shape."""
    value = plain(ct)
    return value if value.shape == shape else broadcast_to(value, shape)


def zeros(aval: Any) -> Any:
    """A zero array of an aval; read-only, without memory of its own."""
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)


def instantiate(ct: Any) -> Any:
    """A symbolic zero as an array; anything else unmasked."""
    return zeros(ct.aval) if type(ct) is Zero else plain(ct)


def shape_matches(ct: Any, shape: tuple[int, ...]) -> bool:
    """Whether a cotangent already has its full shape."""
    return shape_of(plain(ct)) == shape
