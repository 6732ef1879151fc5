"""Slices and writes to them, pulled back in place.

Here: ``pull_slice_in_place``, a case of the backward pass. Not here: the pass
(``passes.pullback``).

Layer: ``passes``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.values import Array
from functrans.passes.cotangents import add_cotangents, plain
from functrans.passes.nodes import Node
from functrans.primitives.slicing import slice_p
from functrans.primitives.structural import sum_to_shape


def pull_slice_in_place(
    node: Node, ct: Any, is_own: bool, cts: dict[Node, Any], own: set[Node], size: int | None
) -> bool:
    """Pull back through a slice, or a write to one, in place; whether it was done.

    The derivative of n slices of one array would otherwise add n arrays of its size, and that of
    filling an array of n in a loop would copy it n times.

    Args:
      node: of ``slice_p`` or ``slice_update_p``.
      ct: cotangent of its result.
      is_own: whether ``ct`` is a buffer that was made here.
      cts: cotangents of other nodes.
      own: nodes whose cotangent in ``cts`` is a buffer that was made here, and that nothing but
        ``cts`` refers to. Any other is copied before it is written to.
      size: extent of a leading batch axis of the cotangents, or ``None``.
    """
    is_plain = isinstance(ct, (np.ndarray, np.generic))
    if not is_plain:
        return False
    entries = node.params["index"].entries
    lead: tuple[int, ...] = ()
    if size is not None:
        entries = (slice(None), *entries)
        lead = (size,)
    if node.primitive is slice_p:
        (parent,) = node.parents
        assert parent is not None
        have = cts.get(parent)
        if isinstance(plain(have), Tracer):
            return False
        if have is None:
            have = np.zeros((*lead, *parent.shape), parent.dtype)
            have[entries] = ct
        else:
            if parent not in own:
                have = np.array(np.broadcast_to(plain(have), (*lead, *parent.shape)))
            have[entries] += ct
        cts[parent] = have
        own.add(parent)
        return True
    shape = (*lead, *node.shape)
    if ct.shape != shape or not shape:
        return False
    parent, source = node.parents
    if source is not None:
        slot = np.array(ct[entries])
        if slot.shape != (*lead, *source.shape):
            slot = _sum_to_source(slot, source.shape, size)
        have = cts.get(source)
        cts[source] = slot if have is None else add_cotangents(have, slot)
        own.discard(source)
    if parent is not None:
        if not is_own:
            ct = np.array(ct)
        ct[entries] = 0
        have = cts.get(parent)
        if have is None:
            cts[parent] = ct
            own.add(parent)
        else:
            cts[parent] = add_cotangents(have, ct)
            own.discard(parent)
    return True


def _sum_to_source(slot: Array, shape: tuple[int, ...], size: int | None) -> Any:
    """The cotangent of what was written to a slot, by undoing its broadcast."""
    if size is None:
        return sum_to_shape(slot, shape)
    ones = (1,) * (slot.ndim - 1 - len(shape))
    return sum_to_shape(slot, (size, *ones, *shape)).reshape((size, *shape))
