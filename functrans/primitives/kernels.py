"""Loops that numba compiled, as operations: ``kernel``.

Here: the record, and the code with which compiled programs call such a loop. Not here: the loops
and how they are compiled (``kernels.loops``), what users call (``solvers.kernels``).

A batch is a loop over calls, in the order of its axes: ``lanes`` has a size for each axis, the
outermost one first, and flags, whether an operand has it. Results are zeros before the call.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero, is_differentiable_dtype
from functrans.core.dispatch import bind
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive
from functrans.core.source import here
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.kernels import loops
from functrans.kernels.loops import Loop
from functrans.primitives.native import routine_loops
from functrans.primitives.structural import moveaxis

if TYPE_CHECKING:
    from functrans.emitter.routine import Array as Memory
    from functrans.emitter.routine import Routines
    from functrans.emitter.types import Value

Lanes = tuple[tuple[int, tuple[bool, ...]], ...]
Avals = tuple[ShapedArray, ...]

_WORTH_THREADS = 10_000
"""From so many elements on, read and written together, a batch is run on threads."""


def _kernel_impl(
    *operands: Any, loop: Loop, in_avals: Avals, out_avals: Avals, lanes: Lanes, on_threads: bool
) -> tuple[Any, ...]:
    _check(loop, in_avals, lanes, operands)
    given = [
        loops.aligned(x, argument.dtype)
        for x, argument in zip(operands, loop.arguments, strict=False)
    ]
    sizes = _sizes(lanes)
    outs = [np.zeros((*sizes, *aval.shape), aval.dtype) for aval in out_avals]
    for index in np.ndindex(*sizes):
        own = [x[(*_own(index, lanes, k), ...)] for k, x in enumerate(given)]
        loop.run(*own, *[out[(*index, ...)] for out in outs])
    return tuple(outs)


def _sizes(lanes: Lanes) -> tuple[int, ...]:
    """Extents of the axes of the batch."""
    return tuple([size for size, _ in lanes])


def _own(index: Sequence[Any], lanes: Lanes, operand: int) -> list[Any]:
    """Of one entry per axis of the batch, those whose axis an operand has."""
    return [entry for entry, (_, flags) in zip(index, lanes, strict=True) if flags[operand]]


def _check(loop: Loop, in_avals: Avals, lanes: Lanes, operands: Sequence[Any]) -> None:
    """Look at operands, since a loop writes where it thinks that there is memory."""
    sizes = _sizes(lanes)
    for k, (x, aval) in enumerate(zip(operands, in_avals, strict=True)):
        expected = (*_own(sizes, lanes, k), *aval.shape)
        if x.shape != expected or x.dtype != aval.dtype:
            raise ShapeError(
                f"kernel {loop}: operand {k} has shape {x.shape} and dtype {x.dtype}, expected "
                f"{expected} and {aval.dtype}"
            )


def _kernel_check(
    *avals: ShapedArray,
    loop: Loop,
    in_avals: Avals,
    out_avals: Avals,
    lanes: Lanes,
    on_threads: bool,
) -> None:
    """Look at parameters, since a loop writes where they say that there is memory."""
    is_batch = type(lanes) is tuple and all(
        type(lane) is tuple
        and len(lane) == 2
        and type(lane[0]) is int
        and 0 <= lane[0] <= np.iinfo(np.intp).max
        and type(lane[1]) is tuple
        and len(lane[1]) == len(avals)
        and all(type(flag) is bool for flag in lane[1])
        for lane in lanes
    )
    if not is_batch or type(on_threads) is not bool or not isinstance(loop, Loop):
        raise TypeError(f"kernel {loop}: lanes {lanes!r}, on_threads {on_threads!r}")
    told = [(aval.dtype, len(aval.shape)) for aval in (*in_avals, *out_avals)]
    if told != [(argument.dtype, argument.ndim) for argument in loop.arguments]:
        raise TypeError(f"kernel {loop} was compiled for other types than {in_avals}, {out_avals}")


def _kernel_aval(
    *avals: ShapedArray, loop: Loop, in_avals: Avals, out_avals: Avals, lanes: Lanes, **_: object
) -> tuple[ShapedArray, ...]:
    _check(loop, in_avals, lanes, avals)
    sizes = _sizes(lanes)
    return tuple([replace(aval, shape=(*sizes, *aval.shape)) for aval in out_avals])


def _kernel_jvp(
    primals: object,
    tangents: object,
    outs: Sequence[Any],
    *,
    loop: Loop,
    out_avals: Avals,
    **_: object,
) -> tuple[Any, ...]:
    if any(is_differentiable_dtype(aval.dtype) for aval in out_avals):
        raise NonDifferentiableError(
            f"kernel {loop} has no derivative{here()}: nothing is known of the function. Give "
            "ft.kernel a rule, jvp=(primals, tangents) or vjp=(primals, outs, cotangents), or "
            "ft.stop_gradient its arguments"
        )
    return tuple([Zero(ShapedArray(out.shape, out.dtype)) for out in outs])


def _kernel_transpose(cts: object, operands: object, *, loop: Loop, **_: object) -> tuple[Any, ...]:
    raise NonDifferentiableError(
        f"kernel {loop} cannot be transposed{here()}: nothing is known of the function. A rule "
        "that calls it serves one mode; give the function that has the rule jvp and vjp, both"
    )


def _kernel_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, lanes: Lanes, **params: Any
) -> tuple[Any, Any]:
    flags = tuple([dim is not None for dim in dims])
    front = [
        x if dim is None else moveaxis(x, dim, 0) for x, dim in zip(operands, dims, strict=True)
    ]
    outs = bind(kernel_p, *front, lanes=((size, flags), *lanes), **params)
    return outs, (0,) * len(outs)


# native code --------------------------------------------------------------------------------------


def _kernel_lower(
    e: Routines,
    operands: Sequence[Memory],
    results: Sequence[Memory],
    *,
    loop: Loop,
    lanes: Lanes,
    on_threads: bool,
    **_: object,
) -> None:
    arrays = [*operands, *results]
    for out in results:
        routine_loops.zeros(e, out)
    sizes = _sizes(lanes)
    count = math.prod(sizes)
    message = f"kernel {loop}"

    def call(e: Routines, arrays: Sequence[Memory], k: Value) -> Value:
        """Call the loop for one element of the batch: 0, or where it says what went wrong."""
        b = e.b
        nothing, failure = b.alloca_bytes(8), b.alloca_bytes(8)
        b.store(b.index(0), failure, 8)
        args = [nothing, failure]
        index = _unravelled(e, k, sizes)
        for position, array in enumerate(arrays):
            is_result = position >= len(operands)
            own = index if is_result else _own(index, lanes, position)
            args += _passed(e, array, own)
        none = e.constant(np.dtype(np.int32), 0).value
        status = e.call_symbol(f"kernel.{loop.name}", args, none.type)
        failed = b.or_(
            b.icmp("sgt", status, none), b.icmp("eq", status, b.const(none, loops.PYTHON_ERROR))
        )
        told = b.load(b.index(0).type, failure, 8)
        told = b.select(b.icmp("eq", told, b.index(0)), b.index(loops.NO_RECORD), told)
        return b.select(failed, told, b.index(0))

    def leave_when(told: Value) -> None:
        failed = e.b.icmp("ne", told, e.b.index(0))
        with e.b.when(failed):
            e.b.store(told, e.symbol_place("kernelfailure.last"), 8)
        e.fail_when(failed, loops.raised_in_program, message)

    elements = sum(array.size for array in arrays)
    if on_threads and count > 1 and elements >= _WORTH_THREADS:
        told = e.workspace((count,), np.int64)

        def piece(e: Routines, arrays: list[Memory], k: Value) -> None:
            e.b.store(call(e, arrays[:-1], k), e.address(arrays[-1], k), 8)

        e.in_chunks(count, [*arrays, told], piece)
        with e.count(count) as k:
            leave_when(e.b.load(k.type, e.address(told, k), 8))
        return
    with e.count(count) as k:
        leave_when(call(e, arrays, k))


def _unravelled(e: Routines, k: Value, sizes: Sequence[int]) -> list[Value]:
    """The index, in C order, of an element given by its number."""
    index: list[Value] = []
    for size in reversed(sizes):
        index.append(e.b.urem(k, e.b.index(size)))
        k = e.b.udiv(k, e.b.index(size))
    return index[::-1]


def _passed(e: Routines, array: Memory, index: Sequence[Value]) -> list[Value]:
    """What a loop is given of an array, or of the part of it that belongs to an index."""
    b = e.b
    lead, shape = array.shape[: len(index)], array.shape[len(index) :]
    size, itemsize = math.prod(shape), array.dtype.itemsize
    place = array.pointer
    if index:
        number = e.flat_index(array.reshape(*lead), index)
        place = b.offset(place, b.mul(number, b.index(size * itemsize)))
    strides = [stride * itemsize for stride in routine_loops.contiguous(shape)]
    numbers = [b.index(number) for number in (*shape, *strides)]
    return [b.null(), b.null(), b.index(size), b.index(itemsize), place, *numbers]


kernel_p = Primitive(
    "kernel",
    impl=_kernel_impl,
    abstract_eval=_kernel_aval,
    jvp=_kernel_jvp,
    transpose=_kernel_transpose,
    batch=_kernel_batch,
    check=_kernel_check,
    lower=Routine(_kernel_lower, one_thread=True),
    memory="own",
)

PRIMITIVES: tuple[Primitive, ...] = (kernel_p,)
