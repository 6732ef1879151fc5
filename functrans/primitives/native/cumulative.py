"""Native code of the cumulative primitives and of linear recurrences.

Here: the ``lower`` rules of ``cumulative``. Not here: the records, their NumPy code.

An element depends on its predecessor alone, and every step is rounded as NumPy rounds it: sums are
not regrouped. What can be done side by side are lanes: those that are neighbours in memory are
vectors, and where lanes are contiguous themselves several are in progress at a time, since each of
them waits for the latency of its own operations.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.primitives.native.routine_loops import (
    LoopVariable,
    beyond,
    extremum,
    load_run,
    plus,
    split_axis,
    store_run,
    vectors,
)
from functrans.records import dataclass

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

_LANES_AT_ONCE = 4
_ROW_BYTES = 1024
"""From rows of so many bytes on, whole rows are read one after the other."""

_State = tuple["Number", ...]


def _only(state: _State) -> Number:
    return state[0]


@dataclass(frozen=True, slots=True)
class _Steps:
    """What happens along an axis.

    Attributes:
      first: ``(at, lanes) -> state``: at the beginning of some lanes.
      step: ``(state, at, lanes) -> state``: from the elements before to those at ``at``.
      result: ``(state) -> number``: what is written.
      after: ``(number, at, lanes) -> number``: as ``step``, from the result that was written.
    """

    first: Callable[[Value, int], _State]
    step: Callable[[_State, Value, int], _State]
    after: Callable[[Number, Value, int], Number]
    result: Callable[[_State], Number] = _only


def _plain_steps(
    first: Callable[[Value, int], Number], after: Callable[[Number, Value, int], Number]
) -> _Steps:
    """Steps whose state is the result."""
    return _Steps(
        lambda at, lanes: (first(at, lanes),),
        lambda state, at, lanes: (after(state[0], at, lanes),),
        after,
    )


def _scan(e: Routines, out: Array, axis: int, reverse: bool, steps: _Steps) -> None:
    """Write all elements of the result along an axis.

    Args:
      e: the emitter.
      out: the result.
      axis: along which to go.
      reverse: from the last element to the first.
      steps: what to write.
    """
    if not out.size:
        return
    outer, length, inner = split_axis(out.shape, axis)
    if inner == 1:
        _scan_lanes(e, out, (outer, length), reverse, steps)
    elif inner * out.dtype.itemsize < _ROW_BYTES:
        _scan_columns(e, out, (outer, length, inner), reverse, steps)
    else:
        _scan_rows(e, out, (outer, length, inner), reverse, steps)


def _place(e: Routines, i: Value, length: int, reverse: bool) -> Value:
    """Position of the element that is number ``i`` in order."""
    return e.b.sub(e.b.index(length - 1), i) if reverse else i


def _scan_lanes(
    e: Routines, out: Array, shape: Sequence[int], reverse: bool, steps: _Steps
) -> None:
    """Contiguous lanes, several at a time."""
    outer, length = shape

    def some(lane: Value, count: int) -> None:
        starts = [e.b.mul(plus(e, lane, k), e.b.index(length)) for k in range(count)]
        zero = e.b.index(0)
        states = []
        for start in starts:
            at = plus(e, start, _place(e, zero, length, reverse))
            state = steps.first(at, 1)
            store_run(e, out, at, steps.result(state))
            states.append([LoopVariable(e, number) for number in state])
        with e.count(length, 1) as i:
            where = _place(e, i, length, reverse)
            for start, variables in zip(starts, states, strict=True):
                _proceed(e, out, steps, variables, plus(e, start, where), 1)

    groups, left = divmod(outer, _LANES_AT_ONCE)
    if groups:
        with e.count(groups) as group:
            some(e.b.mul(group, e.b.index(_LANES_AT_ONCE)), _LANES_AT_ONCE)
    if left:
        some(e.b.index(groups * _LANES_AT_ONCE), left)


def _proceed(
    e: Routines, out: Array, steps: _Steps, variables: Sequence[LoopVariable], at: Value, lanes: int
) -> None:
    """One step of some lanes."""
    state = steps.step(tuple([variable.get() for variable in variables]), at, lanes)
    store_run(e, out, at, steps.result(state))
    for variable, number in zip(variables, state, strict=True):
        variable.set(number)


def _scan_columns(
    e: Routines, out: Array, shape: Sequence[int], reverse: bool, steps: _Steps
) -> None:
    """A vector of neighbouring lanes goes along the whole axis in registers."""
    outer, length, inner = shape
    with e.count(outer) as block:
        start = e.b.mul(block, e.b.index(length * inner))

        def some(lane: Value, lanes: int) -> None:
            base = plus(e, start, lane)
            at = plus(e, base, (length - 1) * inner if reverse else 0)
            state = steps.first(at, lanes)
            store_run(e, out, at, steps.result(state))
            variables = [LoopVariable(e, number) for number in state]
            with e.count(length, 1) as i:
                row = _place(e, i, length, reverse)
                at = plus(e, base, e.b.mul(row, e.b.index(inner)))
                _proceed(e, out, steps, variables, at, lanes)

        vectors(e, inner, out.dtype, some)


def _scan_rows(e: Routines, out: Array, shape: Sequence[int], reverse: bool, steps: _Steps) -> None:
    """Row after row; the row before is read back from the result."""
    outer, length, inner = shape
    back = e.b.index(inner if reverse else -inner)
    with e.count(outer) as block:
        start = e.b.mul(block, e.b.index(length * inner))
        head = plus(e, start, (length - 1) * inner if reverse else 0)

        def begin(lane: Value, lanes: int) -> None:
            at = plus(e, head, lane)
            store_run(e, out, at, steps.result(steps.first(at, lanes)))

        vectors(e, inner, out.dtype, begin)
        with e.count(length, 1) as i:
            row = e.b.mul(_place(e, i, length, reverse), e.b.index(inner))
            base = plus(e, start, row)

            def proceed(lane: Value, lanes: int) -> None:
                at = plus(e, base, lane)
                before = load_run(e, out, e.b.add(at, back), lanes)
                store_run(e, out, at, steps.after(before, at, lanes))

            vectors(e, inner, out.dtype, proceed)


def cumulative_lower(combine: Callable[[Any, Number, Number], Number]) -> Callable[..., None]:
    """The rule of a primitive that accumulates ``combine(e, before, x)``."""

    def lower(
        e: Routines,
        operands: Sequence[Array],
        results: Sequence[Array],
        *,
        axis: int,
        reverse: bool,
    ) -> None:
        (x,), (out,) = operands, results
        steps = _plain_steps(
            lambda at, lanes: load_run(e, x, at, lanes),
            lambda before, at, lanes: combine(e, before, load_run(e, x, at, lanes)),
        )
        _scan(e, out, axis, reverse, steps)

    return lower


def running_extremum_lower(is_max: bool) -> Callable[..., None]:
    """The rule of ``cummax`` or ``cummin``.

    Whether there was a NaN is remembered apart, so that a step waits for one instruction only.
    """

    def lower(
        e: Routines,
        operands: Sequence[Array],
        results: Sequence[Array],
        *,
        axis: int,
        reverse: bool,
    ) -> None:
        (x,), (out,) = operands, results
        steps = _extremum_steps(e, x, is_max)
        _scan(e, out, axis, reverse, steps)

    return lower


def _extremum_steps(e: Routines, x: Array, is_max: bool) -> _Steps:
    def after(before: Number, at: Value, lanes: int) -> Number:
        return extremum(e, before, load_run(e, x, at, lanes), is_max)

    def first(at: Value, lanes: int) -> _State:
        number = load_run(e, x, at, lanes)
        return number, e.not_equal(number, number)

    def step(state: _State, at: Value, lanes: int) -> _State:
        before, had_nan = state
        number = load_run(e, x, at, lanes)
        wins = beyond(e, before, number, is_max)
        has_nan = e.logical_or(had_nan, e.not_equal(number, number))
        return e.select(wins, before, number), has_nan

    def result(state: _State) -> Number:
        number, has_nan = state
        return e.select(has_nan, e.like(number, math.nan), number)

    if e.constant(x.dtype, 0).kind == "f":
        return _Steps(first, step, after, result)
    return _plain_steps(lambda at, lanes: load_run(e, x, at, lanes), after)


def linear_recurrence_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int, reverse: bool
) -> None:
    """Products and sums are rounded one by one."""
    (a, b), (out,) = operands, results
    steps = _plain_steps(
        lambda at, lanes: load_run(e, b, at, lanes),
        lambda before, at, lanes: e.add(
            e.multiply(load_run(e, a, at, lanes), before), load_run(e, b, at, lanes)
        ),
    )
    _scan(e, out, axis, reverse, steps)


def cumlogsumexp_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axis: int, reverse: bool
) -> None:
    """Every step is one ``logaddexp``, of complex numbers by its definition."""
    (x,), (out,) = operands, results
    is_complex = x.dtype.kind == "c"

    def combine(before: Number, number: Number) -> Number:
        return _complex_logaddexp(e, before, number) if is_complex else e.logaddexp(before, number)

    steps = _plain_steps(
        lambda at, lanes: load_run(e, x, at, lanes),
        lambda before, at, lanes: combine(before, load_run(e, x, at, lanes)),
    )
    _scan(e, out, axis, reverse, steps)


def _complex_logaddexp(e: Routines, x: Number, y: Number) -> Number:
    """``log(exp(x) + exp(y))``, scaled by the larger real part where that is finite."""
    make, real = type(x), x.parts[0].type
    dtype = np.dtype(f"f{x.dtype.itemsize // 2}")
    scale = e.maximum(*(make(dtype, (number.parts[0],)) for number in (x, y)))
    zero = e.constant(dtype, 0, real.lanes)
    scale = e.select(e.isinf(scale), zero, scale)
    wide = e.cast(scale, x.dtype)
    total = e.add(e.exp(e.subtract(x, wide)), e.exp(e.subtract(y, wide)))
    return e.add(e.log(total), wide)
