"""Blocks of a Jacobian that know their sparsity, and how operations act on them.

Here: ``Block`` (the derivative of a value by one input), its arithmetic, and the rules of
elementwise, linear and multilinear primitives for blocks and for the second-order terms of a
Laplacian. Not here: the trace that applies them, and what is done with other primitives
(``higher.laplacian``).

The derivative of a value of shape ``v`` by an input of shape ``s`` is an array ``[*s, *v]``: one
direction per element of the input. Often it is diagonal in some axes: row ``i`` of an elementwise
function of the input depends on row ``i`` only. Such an axis of the input is *aligned* with an axis
of the value, and the array has extent 1 in its place. So the derivative of an elementwise function
of the input has as many elements as its value, and a product with a constant that sums over an
aligned axis costs no product at all, since the sum has one term per direction.

Layer: ``higher``. Reference: Li et al., A computational framework for neural network-based
variational Monte Carlo with Forward Laplacian, Nature Machine Intelligence 6 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.axes import of_broadcast
from functrans.core.dispatch import aval_of, bind, dtype_of, shape_of
from functrans.core.lowering import Reduction
from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.passes.apart import axis_maps
from functrans.passes.nodes import batch_first
from functrans.primitives import elementwise as ew
from functrans.primitives.dot import dot_general
from functrans.primitives.structural import broadcast_to, cast, reduce_sum, reshape, transpose
from functrans.records import dataclass

Places = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The derivative of a value by one input.

    Attributes:
      array: axes of the input, then axes of the value.
      places: per axis of the input the axis of the value that it is aligned with, or ``None``.
    """

    array: Any
    places: Places

    @property
    def lead(self) -> tuple[int, ...]:
        """Extents of the axes of the input; 1 for those that are aligned."""
        return shape_of(self.array)[: len(self.places)]


def seed(shape: tuple[int, ...], dtype: np.dtype) -> Block:
    """The derivative of an input by itself."""
    ones = np.ones((1,) * len(shape) + shape, dtype)
    ones.flags.writeable = False
    return Block(ones, tuple(range(len(shape))))


def spread_axes(block: Block, axes: Sequence[int]) -> Block:
    """The block with some axes of the input not aligned."""
    array, places = block.array, list(block.places)
    rank = len(places)
    for a in axes:
        m = places[a]
        if m is None:
            continue
        n = shape_of(array)[rank + m]
        extents = [1] * len(shape_of(array))
        extents[a] = extents[rank + m] = n
        array = ew.where(np.eye(n, dtype=bool).reshape(extents), array, 0)
        places[a] = None
    return Block(array, tuple(places))


def dense(block: Block) -> Any:
    """The array ``[*input, *value]``."""
    return spread_axes(block, range(len(block.places))).array


def moved(block: Block, image: Sequence[int | None]) -> Places:
    """Where the aligned axes are in a result, by the axis of the result for each of the value."""
    return tuple([None if m is None else image[m] for m in block.places])


def agreed(blocks: Sequence[Block], images: Sequence[Sequence[int | None]]) -> tuple[Any, Any]:
    """Blocks of one input, of the operands of an operation, aligned alike in the result.

    Args:
      blocks: one per operand that depends on the input.
      images: per block, the axis of the result that each axis of its value becomes, ``None`` where
        the operation mixes elements along it.

    Returns:
      The blocks, and their common places in the result.
    """
    places = [moved(block, image) for block, image in zip(blocks, images, strict=True)]
    common = tuple([own[0] if len(set(own)) == 1 else None for own in zip(*places, strict=True)])
    mixed = [a for a, m in enumerate(common) if m is None]
    return [spread_axes(block, mixed) for block in blocks], common


def add_blocks(first: Block, second: Block) -> Block:
    """The sum of two derivatives of one value by one input."""
    rank = len(shape_of(first.array)) - len(first.places)
    (a, b), places = agreed([first, second], [range(rank)] * 2)
    return Block(a.array + b.array, places)


# second-order terms -----------------------------------------------------------------------------


def weighted(block: Block, weights: object) -> Array:
    """The array of a block, each direction times its weight (``None`` is 1)."""
    if weights is None:
        return block.array
    shape = shape_of(weights)
    rank = len(shape_of(block.array)) - len(shape)
    extents = list(block.lead) + [1] * rank
    for a, m in enumerate(block.places):
        if m is not None:
            extents[len(shape) + m] = shape[a]
    free = [a for a, m in enumerate(block.places) if m is None]
    aligned = sorted(
        (a for a, m in enumerate(block.places) if m is not None),
        key=lambda a: block.places[a],  # type: ignore[arg-type,return-value]  # aligned
    )
    return block.array * reshape(transpose(weights, (*free, *aligned)), tuple(extents))


def paired(first: Block, second: Block, weights: object) -> Array:
    """The sum over directions of the products of two derivatives, elementwise.

    Both are of operands that have the rank of the result and are aligned alike.
    """
    left = weighted(first, weights)
    rank = len(first.places)
    products = left * second.array
    if math.prod(first.lead) == 1:
        return reshape(products, shape_of(products)[rank:])
    return reduce_sum(products, tuple(range(rank)))


# elementwise ------------------------------------------------------------------------------------


def raised_rank(block: Block, rank: int) -> Block:
    """The block of a value with axes of extent 1 in front, so that it has a rank."""
    lead = len(block.places)
    shape = shape_of(block.array)
    skipped = rank - (len(shape) - lead)
    array = reshape(block.array, (*shape[:lead], *(1,) * skipped, *shape[lead:]))
    return Block(array, tuple([None if m is None else skipped + m for m in block.places]))


def aligned_operands(
    blocks: Sequence[Block | None], out_shape: tuple[int, ...]
) -> tuple[list[Block | None], Places]:
    """Blocks of the operands of an elementwise operation, of its rank and aligned alike."""
    rank = len(out_shape)
    present = [raised_rank(block, rank) for block in blocks if block is not None]
    images = [
        of_broadcast(shape_of(block.array)[len(block.places) :], out_shape) for block in present
    ]
    found, places = agreed(present, images)
    rest = iter(found)
    return [None if block is None else next(rest) for block in blocks], places


def push_elementwise(
    primitive: Primitive,
    values: Sequence[Any],
    tangents: Sequence[Any],
    out: object,
    lead: Any = (),
) -> Array | None:
    """The sum of the partial derivatives applied to tangents; ``None`` for zero.

    Args:
      primitive: an elementwise one.
      values: operands.
      tangents: one per operand, with further axes in front; ``None`` for zero.
      out: the result.
      lead: extents of the axes in front.
    """
    family = primitive.elementwise
    assert family is not None
    total = None
    for partial, tangent in zip(family.partials, tangents, strict=True):
        if tangent is None or partial is None or partial == 0:
            continue
        if partial == 1:
            term = tangent
        elif partial == -1:
            term = -tangent
        else:
            term = partial(tangent, *values, out)
        total = term if total is None else total + term
    if total is None:
        return None
    return broadcast_to(cast(total, dtype_of(out)), (*lead, *shape_of(out)))


# linear -----------------------------------------------------------------------------------------


def freed(block: Block, axes: Sequence[int]) -> Block:
    """The block with the axes of the value that are summed over moved to the input.

    A sum over an aligned axis has one term in each direction, so that nothing is added; the axis
    of the value has extent 1 afterwards.
    """
    array, places = block.array, list(block.places)
    rank = len(places)
    for a, m in enumerate(places):
        if m is not None and m in axes:
            order = list(range(len(shape_of(array))))
            order[a], order[rank + m] = order[rank + m], order[a]
            array = transpose(array, tuple(order))
            places[a] = None
    return Block(array, tuple(places))


def push_linear(
    primitive: Primitive,
    params: Mapping[str, Any],
    values: Sequence[Any],
    blocks: Sequence[Block | None],
    outs: Sequence[Any],
    filled: Any,
) -> list[Block]:
    """Blocks of the results of an operation that is linear in all operands that have one.

    Args:
      primitive: the operation.
      params: its parameters.
      values: operands.
      blocks: those of one input, ``None`` for an operand that does not depend on it.
      outs: results.
      filled: gives what stands for an operand that does not.
    """
    present = [i for i, block in enumerate(blocks) if block is not None]
    own: list[Block] = [block for block in blocks if block is not None]
    if isinstance(primitive.lower, Reduction):  # a sum, since it is linear
        axes = [axis % len(shape_of(values[0])) for axis in params["axes"]]
        own = [freed(own[0], axes)]
    avals, out_avals = [[aval_of(x) for x in group] for group in (values, outs)]
    shapes = [shape_of(out) for out in outs]
    maps = axis_maps(primitive, avals, out_avals, params)  # type: ignore[arg-type]  # no tapes
    own, places = agreed(own, [maps[i] for i in present])
    lead = own[0].lead
    size = math.prod(lead)
    rank = len(lead)
    operands = [filled(value) for value in values]
    for i, block in zip(present, own, strict=True):
        rest = shape_of(block.array)[rank:]
        operands[i] = reshape(block.array, rest if size == 1 else (size, *rest))
    if size == 1:
        results = list(bind(primitive, *operands, **params))
    else:
        dims = [0 if i in present else None for i in range(len(values))]
        assert primitive.batch is not None
        batched, out_dims = primitive.batch(size, operands, dims, **params)
        results = [
            batch_first(value, dim, size) for value, dim in zip(batched, out_dims, strict=True)
        ]
    return [
        Block(reshape(result, (*lead, *shape)), places)
        for result, shape in zip(results, shapes, strict=True)
    ]


# products ---------------------------------------------------------------------------------------


def push_dot(
    block: Block, other: object, position: int, contract: Sequence[Any], batch: Sequence[Any]
) -> Block:
    """The block of ``dot_general`` in one operand, the other one held.

    Args:
      block: that of the operand.
      other: the other operand.
      position: which of the two operands has the block.
      contract: pairs of contracted axes.
      batch: pairs of batch axes.
    """
    rank = len(block.places)
    own_contract, its_contract = contract[position], contract[1 - position]
    own_batch, its_batch = batch[position], batch[1 - position]
    value_rank = len(shape_of(block.array)) - rank
    free = [m for m in range(value_rank) if m not in own_contract and m not in own_batch]
    n_other_free = len(shape_of(other)) - len(its_contract) - len(its_batch)
    # An aligned axis that is summed over becomes a batch axis: the direction that it belongs to.
    freed_axes = [a for a, m in enumerate(block.places) if m is not None and m in own_contract]
    pairs = list(zip(own_contract, its_contract, strict=True))
    its_axis = dict(pairs)
    directions = [(block.places[a], its_axis[block.places[a]]) for a in freed_axes]
    summed = [pair for pair in pairs if pair not in directions]
    kept = [*directions, *zip(own_batch, its_batch, strict=True)]
    own_axes = [
        [rank + m for m, _ in summed],
        [rank + m for m, _ in kept],
    ]
    its_axes = [[m for _, m in summed], [m for _, m in kept]]
    n_dirs, n_batch, n_free = len(directions), len(own_batch), len(free)
    if position == 0:
        out = dot_general(
            block.array, other, (own_axes[0], its_axes[0]), (own_axes[1], its_axes[1])
        )
        lead_at = n_dirs + n_batch
        rest = list(range(lead_at + rank, lead_at + rank + n_free + n_other_free))
        own_at = n_batch
    else:
        out = dot_general(
            other, block.array, (its_axes[0], own_axes[0]), (its_axes[1], own_axes[1])
        )
        lead_at = n_dirs + n_batch + n_other_free
        rest = [
            *range(n_dirs + n_batch, lead_at),
            *range(lead_at + rank, lead_at + rank + n_free),
        ]
        own_at = n_batch + n_other_free
    lead = [freed_axes.index(a) if a in freed_axes else lead_at + a for a in range(rank)]
    dropped = [lead_at + a for a in freed_axes]
    order = (*lead, *range(n_dirs, n_dirs + n_batch), *rest, *dropped)
    arranged = transpose(out, order)
    shape = shape_of(arranged)
    array = reshape(arranged, shape[: len(shape) - len(dropped)])
    image: dict[int, int] = {m: i for i, m in enumerate(own_batch)}
    image.update({m: own_at + i for i, m in enumerate(free)})
    places = tuple([None if m is None or m in own_contract else image[m] for m in block.places])
    return Block(array, places)


def cross_dot(
    first: Block,
    second: Block,
    contract: Sequence[Any],
    batch: Sequence[Any],
    weights: object,
) -> Any:
    """The sum over directions of ``dot_general`` of two derivatives."""
    rank = len(first.places)
    whole = Block(dense(first), (None,) * rank)
    left, right = weighted(whole, weights), dense(second)
    directions = list(range(rank))
    contracted = [[*directions, *(rank + m for m in axes)] for axes in contract]
    batched = [[rank + m for m in axes] for axes in batch]
    return dot_general(left, right, contracted, batched)
