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

from functrans.core.avals import Tape, Zero
from functrans.core.dispatch import Tracer, dtype_of
from functrans.core.primitive import Primitive
from functrans.core.state import current_config
from functrans.core.tapes import zero_entry
from functrans.core.values import Array
from functrans.primitives.elementwise import logical_and, logical_not, logical_or, where, where_p
from functrans.primitives.structural import broadcast_to, cast, reshape, sum_to_shape
from functrans.primitives.tapes import tape_add


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


def add_cotangents(first: Any, second: Any) -> Array | Masked:
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


def _sum_to(
    x: Array | complex, from_shape: tuple[int, ...], shape: tuple[int, ...], size: int | None
) -> Array:
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
    out: Array | complex | None,
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
        pulled: Any = None
        if target is None or partial is None or (type(partial) is int and not partial):
            pass
        elif type(partial) is int and (partial > 0 or type(ct) is not Masked):
            pulled = ct if partial > 0 else -ct
        elif type(ct) is Masked:
            pulled = -ct.value if type(partial) is int else partial(ct.value, *operands, out)
            if type(pulled) is not Zero:
                pulled = Masked(where(ct.mask, pulled, 0), ct.mask)
        else:
            pulled = partial(ct, *operands, out)
        if pulled is None or type(pulled) is Zero:
            results.append(None)
            continue
        if shape != target.shape or type(pulled) is Masked or pulled.dtype is not target.dtype:
            pulled = _fit(pulled, shape, target, size)
        results.append(pulled)
    return results


def _pull_where(
    ct: Array | Masked,
    condition: Array,
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


def pull_masked(
    rule: Any, cts: Sequence[Any], avals: Sequence[Any], operands: Any, params: Any
) -> list[Any]:
    """Masked cotangents through a movement operation: cotangents and masks go the same way.

    Args:
      rule: transpose rule of a primitive that ``moves``.
      cts: cotangents of the results, ``Zero`` where none came; some are masked.
      avals: avals of the results.
      operands: as the rule takes them.
      params: parameters of the equation.
    """
    masks = [_mask_of(ct, aval) for ct, aval in zip(cts, avals, strict=True)]
    values = rule(unmasked(cts, avals), operands, **params)
    on = rule(tuple(masks), operands, **params)
    return [
        value if value is None or type(value) is Zero else Masked(value, mask != 0)
        for value, mask in zip(values, on, strict=True)
    ]


def _mask_of(ct: Any, aval: Any) -> Any:
    """Where a cotangent may be something else than zero, as numbers of its dtype."""
    if type(ct) is Zero:
        return ct
    mask = ct.mask if type(ct) is Masked else np.ones((), bool)
    return cast(broadcast_to(mask, aval.shape), aval.dtype)


def materialize(ct: Any, shape: tuple[int, ...]) -> Any:
    """An unmasked cotangent of the full shape."""
    value = plain(ct)
    return value if value.shape == shape else broadcast_to(value, shape)


def unmasked(cts: Sequence[Any], avals: Sequence[Any]) -> tuple[Any, ...]:
    """Cotangents of the full shapes, without masks; ``Zero`` as it is."""
    return tuple(
        [
            ct if type(ct) is Zero else materialize(ct, aval.shape)
            for ct, aval in zip(cts, avals, strict=True)
        ]
    )


def with_full_mask(ct: Any, shape: tuple[int, ...]) -> Any:
    """A cotangent of the full shape, and so its mask; ``Zero`` as it is."""
    if type(ct) is Masked:
        return Masked(materialize(ct, shape), broadcast_to(ct.mask, shape))
    return ct if type(ct) is Zero else materialize(ct, shape)


def mask_of(ct: Any) -> Array:
    """Where a cotangent that is masked or ``Zero`` may be something else than zero."""
    return np.zeros(ct.aval.shape, bool) if type(ct) is Zero else ct.mask


def zeros(aval: Any) -> Any:
    """A zero array of an aval, read-only, without memory of its own; or a zero tape."""
    return zero_entry(aval)


def instantiate(ct: Array | Zero) -> Any:
    """A symbolic zero as an array; anything else unmasked."""
    return zeros(ct.aval) if type(ct) is Zero else plain(ct)
