"""Rejection sampling of arrays: propose for all elements, then for those that are left.

Here: ``until_taken``. Not here: the proposals (``gamma``, ``discrete``).

Few elements refuse their first proposal. While more than a sixth are open, all elements propose;
then the open ones are collected, as many as fit into a sixth of the array, and only these propose.
Large arrays are drawn piece by piece, so that what a round computes stays in the caches. Shapes
stay static, and the numbers depend on the key and the shape only.

Layer: ``random``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.control.scanning import scan, while_loop
from functrans.core.values import Array
from functrans.primitives.indexing import gather, scatter
from functrans.primitives.structural import cast
from functrans.random.keys import Shape, fold_in, split

_SHORT = 1024  # arrays of so few elements are not worth collecting
_SHARE = 6
_PIECE = 1 << 16

Propose = Callable[[Any, Shape, Sequence[Any]], tuple[Any, Any]]


def until_taken(
    key: object,
    shape: Shape,
    operands: Sequence[Any],
    propose: Propose,
    is_open: object,
    rest: object,
) -> Array:
    """Propose a number for every open element until all have taken one.

    Args:
      key: a key; its ``fold_in`` with the number of the round is that of a round.
      shape: shape of the result, of the operands, ``is_open`` and ``rest``.
      operands: arrays that proposals depend on.
      propose: ``(key, shape, operands) -> whether they are taken, proposals``, for any shape.
      is_open: for which elements to do so.
      rest: the result at the others.
    """
    size = math.prod(shape)
    arrays = [fnp.reshape(array, (size,)) for array in (is_open, rest, *operands)]
    n_pieces = -(-size // _PIECE)
    if n_pieces <= 1:
        return fnp.reshape(_drawn(key, size, propose, *arrays), shape)
    extent = -(-size // n_pieces)
    missing = n_pieces * extent - size
    if missing:  # copies of the first elements are drawn with them and left out
        arrays = [fnp.concatenate([array, array[:missing]]) for array in arrays]
    pieces = [fnp.reshape(array, (n_pieces, extent)) for array in arrays]

    def draw(_: None, piece: Any) -> tuple[None, Any]:
        return None, _drawn(piece[0], extent, propose, *piece[1])

    result = scan(draw, None, (split(key, n_pieces), pieces))[1]
    return fnp.reshape(fnp.reshape(result, (n_pieces * extent,))[:size], shape)


def _drawn(key: Any, size: int, propose: Propose, is_open: Any, result: Any, *operands: Any) -> Any:
    """One piece, a vector."""
    count = size // _SHARE if size > _SHORT else 0

    def many_are_open(state: Any) -> Array:
        return fnp.sum(state[1]) > count

    def propose_for_all(state: Any) -> tuple[Array, ...]:
        number, is_open, result = state
        is_taken, proposed = propose(fold_in(key, number), (size,), operands)
        return number + 1, is_open & ~is_taken, fnp.where(is_open & is_taken, proposed, result)

    state = while_loop(many_are_open, propose_for_all, (np.int64(0), is_open, result))
    if not count:
        return state[2]

    def is_one_open(state: Any) -> Array:
        return fnp.any(state[1])

    def propose_for_some(state: Any) -> tuple[Array, ...]:
        number, is_open, result = state
        # Missing places are ``size``, which is dropped below.
        places = fnp.flatnonzero(is_open, size=count, fill_value=size)
        chosen = [gather(operand, (places,), (0,), "clip") for operand in operands]
        is_taken, proposed = propose(fold_in(key, number), (count,), chosen)
        taken = fnp.where(is_taken, places, size)
        is_open = scatter(is_open, np.zeros(count, bool), (taken,), (0,), mode="drop")
        result = scatter(result, cast(proposed, result.dtype), (taken,), (0,), mode="drop")
        return number + 1, is_open, result

    return while_loop(is_one_open, propose_for_some, state)[2]
