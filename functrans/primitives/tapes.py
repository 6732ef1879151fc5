"""Operations on whole tapes: what cotangents of tapes need besides the loops that read them.

Here: ``tape_add``, ``tape_broadcast_to`` and ``tape_sum_to``, entry by entry. Not here: filling and
reading a tape, which loops do (``control``).

All three are linear; broadcasting and summation are each other's transposes. Under ``vmap`` the
batch axis of a tape is the first axis of its entries.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import Aval, ShapedArray, Tape
from functrans.core.dispatch import aval_of, bind
from functrans.core.lowering import Structured
from functrans.core.primitive import Primitive, is_linear, linear, nondifferentiable
from functrans.core.tapes import TapeValue
from functrans.core.values import Array
from functrans.primitives.elementwise import add
from functrans.primitives.structural import broadcast_to, reshape, sum_to_shape


def entry_aval(aval: Aval) -> ShapedArray:
    """The aval of the arrays in a tape, or in the tapes in it."""
    while type(aval) is Tape:
        aval = aval.element
    return aval  # type: ignore[return-value]  # what is no tape is an array


def with_entry_shape(aval: Aval, shape: tuple[int, ...]) -> Aval:
    """The aval with arrays of another shape in it."""
    if type(aval) is Tape:
        return Tape(with_entry_shape(aval.element, shape))
    return ShapedArray(shape, aval.dtype)


# empty_tape -------------------------------------------------------------------------------------


def _empty_tape_impl(*, aval: Tape) -> tuple[TapeValue]:
    return (TapeValue(aval),)


def _empty_tape_aval(*, aval: Tape) -> tuple[Aval]:
    return (aval,)


def _empty_tape_batch(size: int, operands: object, dims: object, *, aval: Tape) -> tuple[Any, Any]:
    return bind(empty_tape_p, aval=aval), (None,)


empty_tape_p = Primitive(
    "empty_tape",
    impl=_empty_tape_impl,
    abstract_eval=_empty_tape_aval,
    jvp=nondifferentiable,
    batch=_empty_tape_batch,
    reasons=(
        ("lower", "no loop makes it"),
        ("transpose", "it has no operands"),
    ),
)
"""The zero tape as an equation: it is no array, so that no file could hold it as a constant."""


# tape_add ---------------------------------------------------------------------------------------


def _tape_add_impl(a: TapeValue, b: TapeValue) -> tuple[TapeValue]:
    return (a + b,)


def _tape_add_aval(a: Tape, b: Tape) -> tuple[Aval]:
    shape = np.broadcast_shapes(entry_aval(a).shape, entry_aval(b).shape)
    return (with_entry_shape(a, shape),)


def _tape_add_transpose(cts: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        tape_sum_to(cts[0], entry_aval(operand.aval).shape) if is_linear(operand) else None
        for operand in operands
    )


def _tape_add_batch(size: int, operands: Sequence[Any], dims: object) -> tuple[Any, Any]:
    return bind(tape_add_p, *operands), (0,)


def _added(a: Array, b: Array) -> Any:
    return tape_add(a, b) if type(aval_of(a)) is Tape else add(a, b)


tape_add_p = Primitive(
    "tape_add",
    impl=_tape_add_impl,
    abstract_eval=_tape_add_aval,
    jvp=linear,
    transpose=_tape_add_transpose,
    batch=_tape_add_batch,
    lower=Structured("entries", _added),
)


def tape_add(a: Array, b: Array) -> Any:
    """Sum of two tapes, entry by entry; entries broadcast, as they do under ``vmap``."""
    return bind(tape_add_p, a, b)[0]


# tape_broadcast_to ------------------------------------------------------------------------------


def _tape_broadcast_to_impl(tape: TapeValue, *, shape: tuple[int, ...]) -> tuple[TapeValue]:
    def widen(entry: Any) -> TapeValue | Array:
        if type(entry) is TapeValue:
            return _tape_broadcast_to_impl(entry, shape=shape)[0]
        return np.broadcast_to(entry, shape)

    return (tape.map(widen, with_entry_shape(tape.aval.element, shape)),)


def _tape_shape_aval(tape: Tape, *, shape: tuple[int, ...]) -> tuple[Aval]:
    return (with_entry_shape(tape, shape),)


def _tape_broadcast_to_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return (tape_sum_to(cts[0], entry_aval(operands[0].aval).shape),)


def _tape_broadcast_to_batch(
    size: int, operands: Sequence[Any], dims: object, *, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    own = entry_aval(aval_of(operands[0])).shape[1:]
    padding = (1,) * (len(shape) - len(own))
    padded = bind(tape_reshape_p, operands[0], shape=(size, *padding, *own))[0]
    return bind(tape_broadcast_to_p, padded, shape=(size, *shape)), (0,)


def _broadcast(entry: object, *, shape: tuple[int, ...]) -> Any:
    whole = type(aval_of(entry)) is Tape
    return tape_broadcast_to(entry, shape) if whole else broadcast_to(entry, shape)


tape_broadcast_to_p = Primitive(
    "tape_broadcast_to",
    impl=_tape_broadcast_to_impl,
    abstract_eval=_tape_shape_aval,
    jvp=linear,
    transpose=_tape_broadcast_to_transpose,
    batch=_tape_broadcast_to_batch,
    lower=Structured("entries", _broadcast),
)


def tape_broadcast_to(tape: object, shape: tuple[int, ...]) -> Any:
    """Broadcast every entry; the same tape if its entries have the shape."""
    if entry_aval(aval_of(tape)).shape == shape:
        return tape
    return bind(tape_broadcast_to_p, tape, shape=shape)[0]


# tape_sum_to ------------------------------------------------------------------------------------


def _tape_sum_to_impl(tape: TapeValue, *, shape: tuple[int, ...]) -> tuple[TapeValue]:
    def narrow(entry: object) -> Any:
        if type(entry) is TapeValue:
            return _tape_sum_to_impl(entry, shape=shape)[0]
        return sum_to_shape(entry, shape)

    return (tape.map(narrow, with_entry_shape(tape.aval.element, shape)),)


def _tape_sum_to_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return (tape_broadcast_to(cts[0], entry_aval(operands[0].aval).shape),)


def _tape_sum_to_batch(
    size: int, operands: Sequence[Any], dims: object, *, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    own = entry_aval(aval_of(operands[0])).shape[1:]
    padding = (1,) * (len(own) - len(shape))
    summed = bind(tape_sum_to_p, operands[0], shape=(size, *padding, *shape))[0]
    return bind(tape_reshape_p, summed, shape=(size, *shape)), (0,)


def _summed(entry: object, *, shape: tuple[int, ...]) -> Any:
    whole = type(aval_of(entry)) is Tape
    return tape_sum_to(entry, shape) if whole else sum_to_shape(entry, shape)


tape_sum_to_p = Primitive(
    "tape_sum_to",
    impl=_tape_sum_to_impl,
    abstract_eval=_tape_shape_aval,
    jvp=linear,
    transpose=_tape_sum_to_transpose,
    batch=_tape_sum_to_batch,
    lower=Structured("entries", _summed),
)


def tape_sum_to(tape: object, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast of every entry; the same tape if its entries have the shape."""
    if entry_aval(aval_of(tape)).shape == shape:
        return tape
    return bind(tape_sum_to_p, tape, shape=shape)[0]


# tape_reshape -----------------------------------------------------------------------------------


def _tape_reshape_impl(tape: TapeValue, *, shape: tuple[int, ...]) -> tuple[TapeValue]:
    def reshaped(entry: Any) -> TapeValue | Array:
        if type(entry) is TapeValue:
            return _tape_reshape_impl(entry, shape=shape)[0]
        return np.reshape(entry, shape)

    assert math.prod(shape) == entry_aval(tape.aval).size
    return (tape.map(reshaped, with_entry_shape(tape.aval.element, shape)),)


def _tape_reshape_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    return bind(tape_reshape_p, cts[0], shape=entry_aval(operands[0].aval).shape)


def _tape_reshape_batch(
    size: int, operands: Sequence[Any], dims: object, *, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    return bind(tape_reshape_p, operands[0], shape=(size, *shape)), (0,)


def _reshaped(entry: object, *, shape: tuple[int, ...]) -> Any:
    if type(aval_of(entry)) is Tape:
        return bind(tape_reshape_p, entry, shape=shape)[0]
    return reshape(entry, shape)


tape_reshape_p = Primitive(
    "tape_reshape",
    impl=_tape_reshape_impl,
    abstract_eval=_tape_shape_aval,
    jvp=linear,
    transpose=_tape_reshape_transpose,
    batch=_tape_reshape_batch,
    lower=Structured("entries", _reshaped),
)


PRIMITIVES: tuple[Primitive, ...] = (
    empty_tape_p, tape_add_p, tape_broadcast_to_p, tape_sum_to_p, tape_reshape_p,
)  # fmt: skip
