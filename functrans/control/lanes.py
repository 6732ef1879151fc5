"""The elements of a batch taken apart and put together: lanes of arrays and tapes.

Here: what ``cond_lanes`` does with its operands and results. A lane is an element of the first axis
of an array, or of the first axis of the entries of a tape.

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import Aval, ShapedArray, Tape
from functrans.core.dispatch import aval_of, bind, shape_of
from functrans.core.tapes import TapeValue, zero_entry
from functrans.core.values import Array
from functrans.passes.cotangents import Masked
from functrans.passes.programs import batched_aval
from functrans.primitives.structural import broadcast_to, cast, reduce_sum, reshape
from functrans.primitives.tapes import entry_aval, tape_broadcast_to, tape_reshape_p, tape_sum_to

# plain values -----------------------------------------------------------------------------------


def gather_lanes(value: Any, lanes: np.ndarray) -> Any:
    """Some lanes of an array or a tape."""
    if type(value) is TapeValue:
        element = _with_lanes(value.aval.element, len(lanes))
        return value.map(lambda entry: gather_lanes(entry, lanes), element)
    return value[lanes]


def _with_lanes(aval: Aval, n: int) -> Aval:
    """The aval with another number of lanes."""
    if type(aval) is Tape:
        return Tape(_with_lanes(aval.element, n))
    return ShapedArray((n, *aval.shape[1:]), aval.dtype)


def join_lanes(aval: Aval, size: int, parts: Sequence[tuple[np.ndarray, Any]]) -> TapeValue | Array:
    """An array or a tape of all lanes from the results for some of them each.

    Args:
      aval: aval of one lane.
      size: number of lanes; those in no part are zero.
      parts: lanes, and their results with the lane axis in front.
    """
    if type(aval) is Tape:
        full = batched_aval(aval, size)
        assert type(full) is Tape
        length = max([part.length for _, part in parts], default=0)
        result = TapeValue(full, length)
        for i in range(length):
            entries = [
                (lanes, part.read(i) if i < part.length else zero_entry(part.aval.element))
                for lanes, part in parts
            ]
            result.write(i, join_lanes(aval.element, size, entries))
        return result
    assert type(aval) is ShapedArray
    taken = sum(len(lanes) for lanes, _ in parts)
    out = (np.empty if taken == size else np.zeros)((size, *aval.shape), aval.dtype)
    for lanes, part in parts:
        out[lanes] = part
    return out


# traced values ----------------------------------------------------------------------------------


def sum_lanes(value: object, aval: Aval) -> Any:
    """Sum over lanes: the cotangent of an operand that all lanes share."""
    if type(value) is Masked:
        mask = reduce_sum(cast(value.mask, np.int64), (0,)) > 0
        return Masked(sum_lanes(value.value, aval), mask)
    if type(aval) is Tape:
        return tape_sum_to(value, entry_aval(aval).shape)
    return reduce_sum(value, (0,))


def flatten_lanes(value: Array, size: int, n: int, is_outer: bool, is_inner: bool) -> Array:
    """Two batch axes as one.

    Args:
      value: array or tape, whose leading axes are the outer and the inner one.
      size: extent of the outer axis.
      n: extent of the inner axis.
      is_outer: whether it has the outer axis.
      is_inner: whether it has the inner axis; with neither, it stays as it is.
    """
    if not is_outer and not is_inner:
        return value
    aval = aval_of(value)
    shape = entry_aval(aval).shape if type(aval) is Tape else shape_of(value)
    rest = shape[is_outer + is_inner :]
    narrow = (size if is_outer else 1, n if is_inner else 1, *rest)
    if type(aval) is Tape:
        (value,) = bind(tape_reshape_p, value, shape=narrow)
        (value,) = bind(tape_reshape_p, tape_broadcast_to(value, (size, n, *rest)),
                        shape=(size * n, *rest))  # fmt: skip
        return value
    return reshape(broadcast_to(reshape(value, narrow), (size, n, *rest)), (size * n, *rest))


def unflatten_lanes(value: Array, size: int, n: int) -> Array:
    """One batch axis as two."""
    aval = aval_of(value)
    if type(aval) is Tape:
        shape = entry_aval(aval).shape
        return bind(tape_reshape_p, value, shape=(size, n, *shape[1:]))[0]
    return reshape(value, (size, n, *shape_of(value)[1:]))
