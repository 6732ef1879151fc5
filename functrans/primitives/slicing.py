"""Basic indexing primitives: integers, slices, ``None`` and ``...``, all static.

Here: ``slice`` (NumPy's basic indexing), ``embed`` (its transpose) and ``slice_update``. Not here:
index arrays (``indexing``), or how ``x[...]`` is taken apart (``functrans.arrays.indexing``).

Layer: ``primitives``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, ShapedArray
from functrans.core.dispatch import bind, shape_of
from functrans.core.lowering import IndexMap, Read, Routine
from functrans.core.primitive import Primitive, is_linear, linear
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives.structural import front, moveaxis, reshape, sum_to_shape


class BasicIndex:
    """A static basic index, hashable; prints as it would be written: ``[1:, ..., 0]``.

    Attributes:
      entries: ints, slices of ints, ``None`` and ``Ellipsis``.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[Any, ...]) -> None:
        self.entries = entries

    def _key(self) -> tuple[Any, ...]:
        return tuple(
            ("slice", e.start, e.stop, e.step) if isinstance(e, slice) else e for e in self.entries
        )

    def __eq__(self, other: object) -> bool:
        """Equal entries, as written."""
        return isinstance(other, BasicIndex) and self._key() == other._key()

    def __hash__(self) -> int:
        """Hash of the entries."""
        return hash(self._key())

    def __str__(self) -> str:
        """``[1:, ..., 0]``."""
        return f"[{', '.join(map(_entry_text, self.entries))}]"

    __repr__ = __str__

    def under_batch(self, ndim: int) -> BasicIndex:
        """The index with a full slice in front, for an operand with a leading batch axis."""
        return BasicIndex((slice(None), *self.entries))

    def check(self) -> None:
        """Refuse entries that are no basic index; arrays and truth values would be another one.

        Raises:
          TypeError: names the entry.
        """
        entries = self.entries if type(self.entries) is tuple else (self.entries,)
        for entry in entries:
            parts = (entry.start, entry.stop, entry.step) if type(entry) is slice else ()
            is_number = type(entry) is int or entry is None or entry is Ellipsis
            if not (is_number or parts) or any(type(x) not in (int, type(None)) for x in parts):
                raise TypeError(f"index entry {entry!r} is no integer, slice, None or Ellipsis")

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of ``x[index]`` for ``x`` of a shape.

        Raises:
          IndexError: an integer is out of bounds, or there are too many indices.
        """
        found: tuple[int, ...] = _shape_probe(shape)[self.entries].shape
        return found


def _shape_probe(shape: tuple[int, ...]) -> np.ndarray:
    """An array of a shape without memory: NumPy itself does the index arithmetic on it."""
    return np.ndarray(shape, np.int8, _ONE_BYTE, 0, (0,) * len(shape))


_ONE_BYTE = bytes(1)


def _entry_text(entry: object) -> str:
    if entry is Ellipsis:
        return "..."
    if isinstance(entry, slice):
        start = "" if entry.start is None else str(entry.start)
        stop = "" if entry.stop is None else str(entry.stop)
        return f"{start}:{stop}" + (f":{entry.step}" if entry.step is not None else "")
    return str(entry)


# slice ------------------------------------------------------------------------------------------


def _slice_impl(x: Array, *, index: BasicIndex) -> tuple[Any, ...]:
    return ((np.asarray(x) if type(x) in PYTHON_SCALARS else x)[index.entries],)


def _slice_aval(x: ShapedArray, *, index: BasicIndex) -> tuple[ShapedArray, ...]:
    return (ShapedArray(index.result_shape(x.shape), x.dtype),)


def _slice_check(*avals: ShapedArray, index: BasicIndex) -> None:
    index.check()


def _slice_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, index: BasicIndex
) -> tuple[Any, ...]:
    return bind(embed_p, cts[0], index=index, shape=operands[0].aval.shape)


def _slice_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, index: BasicIndex
) -> tuple[Any, Any]:
    x = moveaxis(operands[0], dims[0], 0)
    return bind(slice_p, x, index=index.under_batch(len(shape_of(x)) - 1)), (0,)


def basic_places(index: BasicIndex, shape: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Where a basic index looks, per axis of the operand.

    Returns:
      ``(start, step, count, axis)`` per axis: element ``k`` of the result's ``axis`` is element
      ``start + k * step``; ``axis`` is -1 where an integer stands.
    """
    given = sum(entry is not None and entry is not Ellipsis for entry in index.entries)
    entries: list[Any] = []
    for entry in index.entries:
        entries.extend([slice(None)] * (len(shape) - given) if entry is Ellipsis else [entry])
    entries.extend([slice(None)] * (len(shape) - sum(entry is not None for entry in entries)))
    places = []
    position = axis = 0
    for entry in entries:
        if entry is None:
            axis += 1
            continue
        if isinstance(entry, slice):
            numbers = range(*entry.indices(shape[position]))
            places.append((numbers.start, numbers.step, len(numbers), axis))
            axis += 1
        else:
            k = int(entry)
            places.append((k + shape[position] if k < 0 else k, 1, 1, -1))
        position += 1
    return places


def _slice_lower(
    position: tuple[Any, ...], avals: Sequence[Any], output: int, *, index: BasicIndex
) -> tuple[Read, ...]:
    places = basic_places(index, avals[0].shape)
    return (
        Read(
            0,
            tuple(
                [
                    start if axis < 0 else position[axis] * step + start
                    for start, step, _, axis in places
                ]
            ),
        ),
    )


def _slice_expression(x: ShapedArray, *, index: BasicIndex) -> tuple[Any, ...]:
    return "{0}[{1}]", (index.entries,)


slice_p: Primitive = Primitive(
    "slice",
    impl=_slice_impl,
    abstract_eval=_slice_aval,
    check=_slice_check,
    jvp=linear,
    transpose=_slice_transpose,
    batch=_slice_batch,
    lower=IndexMap(_slice_lower),
    expression=_slice_expression,
)


# embed ------------------------------------------------------------------------------------------


def _embed_impl(v: Array, *, index: BasicIndex, shape: tuple[int, ...]) -> tuple[Any, ...]:
    out = np.zeros(shape, v.dtype)
    out[index.entries] = v
    return (out,)


def _embed_aval(
    v: ShapedArray, *, index: BasicIndex, shape: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    return (ShapedArray(shape, v.dtype),)


def _embed_check(v: ShapedArray, *, index: BasicIndex, shape: tuple[int, ...]) -> None:
    index.check()
    if index.result_shape(shape) != v.shape:
        raise ShapeError(f"embed: {v} has not the shape {index.result_shape(shape)} of {index}")


def _embed_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, index: BasicIndex, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return bind(slice_p, cts[0], index=index)


def _embed_batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[Any],
    *,
    index: BasicIndex,
    shape: tuple[int, ...],
) -> tuple[Any, Any]:
    v = moveaxis(operands[0], dims[0], 0)
    return bind(embed_p, v, index=index.under_batch(len(shape)), shape=(size, *shape)), (0,)


def _placed_read(
    operand: int, position: tuple[Any, ...], places: Sequence[Any], ndim: int
) -> Read | None:
    """What an index of the whole reads of the part that lies at ``places``.

    ``None`` where the part's step does not divide the index.
    """
    entries: list[Any] = [0] * ndim
    conditions = []
    for i, (start, step, count, axis) in zip(position, places, strict=True):
        offset = (i - start) * (1 if step > 0 else -1)
        if abs(step) != 1:
            if not isinstance(offset, int):
                parts = offset.split(abs(step))
                if parts is None:
                    return None
                quotient, rest = parts
            else:
                quotient, rest = divmod(offset, abs(step))
            conditions.append((rest, 1))
            offset = quotient
        conditions.append((offset, count))
        if axis >= 0:
            entries[axis] = offset
    return Read(operand, tuple(entries), tuple(conditions))


def _embed_lower(
    position: tuple[Any, ...],
    avals: Sequence[Any],
    output: int,
    *,
    index: BasicIndex,
    shape: tuple[int, ...],
) -> tuple[Read, ...] | None:
    read = _placed_read(0, position, basic_places(index, shape), len(avals[0].shape))
    return None if read is None else (read,)


def _write_part(e: Any, part: Any, whole: Any, index: BasicIndex) -> None:
    """Write the elements of a part, which is broadcast, to their places."""
    places = basic_places(index, whole.shape)
    shape = index.result_shape(whole.shape)
    with e.each(shape) as position:
        target = [
            start
            if axis < 0
            else e.b.add(e.b.mul(position[axis], e.b.index(step)), e.b.index(start))
            for start, step, _, axis in places
        ]
        tail = position[len(shape) - len(part.shape) :]
        source = [0 if n == 1 else i for i, n in zip(tail, part.shape, strict=True)]
        e.write(whole, target, e.read(part, source))


def _embed_routine(
    e: Any,
    operands: Sequence[Any],
    results: Sequence[Any],
    *,
    index: BasicIndex,
    shape: tuple[int, ...],
) -> None:
    e.fill(results[0], e.constant(results[0].dtype, 0))
    _write_part(e, operands[0], results[0], index)


embed_p: Primitive = Primitive(
    "embed",
    impl=_embed_impl,
    abstract_eval=_embed_aval,
    check=_embed_check,
    jvp=linear,
    transpose=_embed_transpose,
    batch=_embed_batch,
    lower=IndexMap(_embed_lower, routine=Routine(_embed_routine)),
    memory="own",
)


# slice_update -----------------------------------------------------------------------------------


def _slice_update_impl(x: Array, v: Array, *, index: BasicIndex) -> tuple[Any, ...]:
    return _slice_update_in_place(np.array(x), v, index=index)


def _slice_update_in_place(x: Array, v: Array, *, index: BasicIndex) -> tuple[Any, ...]:
    x[index.entries] = v
    return (x,)


def _slice_update_aval(
    x: ShapedArray, v: ShapedArray, *, index: BasicIndex
) -> tuple[ShapedArray, ...]:
    slot = index.result_shape(x.shape)
    if v.shape != slot and v.shape:
        padded = (1,) * (len(slot) - v.ndim) + v.shape
        if len(padded) != len(slot) or any(
            have not in (1, want) for have, want in zip(padded, slot, strict=True)
        ):
            raise ShapeError(
                f"slice_update: {v} does not broadcast to the shape {slot} that {index} selects "
                f"of {x}; extents must be equal or 1, counted from the last axis"
            )
    return (x.strong(),)


def _slice_update_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, index: BasicIndex
) -> tuple[Any, ...]:
    (ct,) = cts
    x, v = operands
    ct_x = ct_v = None
    if is_linear(v):  # first, so that the array can be written to after it was read
        ct_v = sum_to_shape(bind(slice_p, ct, index=index)[0], v.aval.shape)
    if is_linear(x):
        hole = np.zeros((), ct.dtype)[()]
        (ct_x,) = bind(slice_update_p, ct, hole, index=index)
    return (ct_x, ct_v)


def _slice_update_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, index: BasicIndex
) -> tuple[Any, Any]:
    x, v = operands
    x_dim, v_dim = dims
    x = front(size, x, x_dim)
    shape = shape_of(x)[1:]
    if v_dim is not None:  # the value broadcasts from the right: pad its rank behind the batch axis
        v = moveaxis(v, v_dim, 0)
        slot = index.result_shape(shape)
        own = shape_of(v)[1:]
        v = reshape(v, (size, *(1,) * (len(slot) - len(own)), *own))
    batched = index.under_batch(len(shape))
    return bind(slice_update_p, x, v, index=batched), (0,)


def _slice_update_lower(
    position: tuple[Any, ...], avals: Sequence[Any], output: int, *, index: BasicIndex
) -> tuple[Read, ...] | None:
    x, value = avals
    rank = len(index.result_shape(x.shape))
    read = _placed_read(1, position, basic_places(index, x.shape), rank)
    if read is None:
        return None
    tail = read.index[rank - len(value.shape) :]
    entries = [0 if n == 1 else i for i, n in zip(tail, value.shape, strict=True)]
    return (Read(1, tuple(entries), read.conditions), Read(0, position))


def _slice_update_routine(
    e: Any, operands: Sequence[Any], results: Sequence[Any], *, index: BasicIndex
) -> None:
    x, value = operands
    e.copy(x, results[0])
    _write_part(e, value, results[0], index)


slice_update_p: Primitive = Primitive(
    "slice_update",
    impl=_slice_update_impl,
    abstract_eval=_slice_update_aval,
    check=_slice_check,
    jvp=linear,
    transpose=_slice_update_transpose,
    batch=_slice_update_batch,
    lower=IndexMap(_slice_update_lower, routine=Routine(_slice_update_routine, in_place=0)),
    in_place=_slice_update_in_place,
    memory="own",
)


def slice_index(x: Any, index: BasicIndex) -> Array:
    """``x[index]`` for a static basic index."""
    return bind(slice_p, x, index=index)[0]


def embed(v: Array, index: BasicIndex, shape: tuple[int, ...]) -> Array:
    """Zeros of a shape with ``v`` at an index."""
    return bind(embed_p, v, index=index, shape=shape)[0]


def slice_update(x: Operand, v: Any, index: BasicIndex) -> Array:
    """``x`` with ``x[index] = v``; ``v`` broadcasts and has the dtype of ``x``."""
    return bind(slice_update_p, x, v, index=index)[0]


PRIMITIVES: tuple[Primitive, ...] = (slice_p, embed_p, slice_update_p)

RECORDS = {record.__name__: record for record in (BasicIndex,)}
"""Immutable classes of parameters, whose ``__slots__`` are the arguments of the constructor."""
