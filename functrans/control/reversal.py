"""Loops that keep few states: the forward sweep that keeps them, the backward pass that reads them.

Here: ``forward_scan``, ``forward_while`` and ``pull_back_loop``, functions that bind loops. Not
here: the primitives whose rules call them (``control.revolve``), the arithmetic of schedules
(``control.binomial``).

While the loop runs, ``n`` of its states are written to rows of one array per carried value: those
of the optimal schedule where the length is known, else states at a distance that doubles whenever
all rows are taken. One more row takes the states that are not kept. The backward pass is a loop
over the iterations, last one first. It restores the latest state before the iteration, runs the
loop's body up to it, keeps states on the way in rows that are free, and pulls the cotangents
through that one iteration. So it stores no more than these rows, whatever the length, and is
compiled like any other loop.

Layer: ``control``. Reference: see ``control.binomial``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.binomial import first_positions, online_stores
from functrans.control.loop_bodies import linearized_body
from functrans.control.loops import Shape
from functrans.control.while_loop import bind_while
from functrans.core.avals import Aval, ShapedArray
from functrans.core.dispatch import aval_of, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.values import Array, Operand
from functrans.passes.cotangents import add_cotangents, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import (
    Flags,
    derivation,
    hoist,
    permute,
    split,
    spread,
    transpose_jaxpr,
    value_part,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives import elementwise as ew
from functrans.primitives.dynamic_slicing import dynamic_slice, dynamic_update_slice
from functrans.primitives.sorting import argsort
from functrans.primitives.structural import broadcast_to, cast, reduce_sum, reshape, weaken
from functrans.records import dataclass

_INT = np.dtype(np.int64)

# rows of arrays, and loops of functions ---------------------------------------------------------


def read_row(x: Array, row: Any, aval: Aval | None = None) -> Array:
    """One entry along the first axis."""
    shape = shape_of(x)[1:]
    start = (row, *(0,) * len(shape))
    entry = reshape(dynamic_slice(x, start, (1, *shape)), shape)
    if type(aval) is ShapedArray and aval.weak:
        entry = weaken(entry)
    return entry


def _written(x: Operand, row: Array, entry: Operand) -> Array:
    """An array with another entry along the first axis."""
    shape = shape_of(x)[1:]
    return dynamic_update_slice(x, reshape(entry, (1, *shape)), (row, *(0,) * len(shape)))


def _rows(aval: Aval, n: int) -> Array:
    """Room for entries."""
    assert type(aval) is ShapedArray
    return broadcast_to(np.zeros((), aval.dtype), (n, *aval.shape))


def _loop(
    holds: Callable[..., Any],
    step: Callable[..., Sequence[Any]],
    consts: Sequence[Any],
    carry: Sequence[Any],
) -> list[Any]:
    """A loop over functions ``(*consts, *carry)``; returns the last carry."""
    avals = [*map(aval_of, consts), *map(aval_of, carry)]
    condition, cond_consts = hoist(simplify(stage(lambda *a: [holds(*a)], avals, "schedule")))
    body, body_consts = hoist(simplify(stage(lambda *a: list(step(*a)), avals, "schedule")))
    final, _ = bind_while(
        condition, body, [*cond_consts, *consts], [*body_consts, *consts], list(carry)
    )
    return final


def _cut(length: Array, n: Array) -> Array:
    """``control.binomial.cut`` of traced integers."""

    def step(length: Array, n: Array, r: Array, beta: Array) -> list[Any]:
        return [r + 1, beta * (n + r + 1) // (r + 1)]

    r, beta = _loop(lambda length, n, r, beta: beta < length, step, [length, n], [n * 0 + 1, n + 1])
    behind = beta * r // (n + r) * (r - 1) // (n + r - 1)
    return ew.maximum(ew.maximum(behind, length - beta * n // (n + r)), 1)


# the schedule -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Reversal:
    """What the backward pass of a loop needs of its body.

    Attributes:
      shape: of the loop.
      n: states that are kept.
      advance: ``(*consts, *carry, *xs) -> carry``.
      adjoint: ``(*consts, *carry, *xs, *carry cts, *y cts) -> (*const cts, *carry cts, *x cts)``
        of one iteration.
      carry_avals: avals of the carry.
      flags: which consts, carried values, xs, ys have tangents.
      given: which consts, carried values, xs have a cotangent after one iteration.
    """

    shape: Shape
    n: int
    advance: Jaxpr
    adjoint: Jaxpr
    carry_avals: tuple[Any, ...]
    flags: tuple[Flags, Flags, Flags, Flags]
    given: tuple[Flags, Flags, Flags]


def reversal(
    jaxpr: Jaxpr, shape: Shape, n: int, const_needs: Flags, start: Flags, xs_needs: Flags
) -> Reversal:
    """One iteration of the backward pass."""
    c, k = shape.n_consts, shape.n_carry
    carry_needs, parts = linearized_body(jaxpr, const_needs, start, xs_needs)
    m = len(jaxpr.outvars)
    residuals = simplify(permute(parts.primal, None, range(m, len(parts.primal.outvars))))
    n_dots = len(parts.linear.invars) - parts.n_residuals
    transposed, in_nz = transpose_jaxpr(
        parts.linear,
        (False,) * parts.n_residuals + (True,) * n_dots,
        (True,) * len(parts.linear.outvars),
    )
    n_given = len(jaxpr.invars)

    def adjoint(*args: object) -> list[Any]:
        kept = evaluate(residuals, args[:n_given])
        return evaluate(transposed, [*kept, *args[n_given:]])

    avals = [*jaxpr.in_avals, *transposed.in_avals[parts.n_residuals :]]
    program = simplify(stage(adjoint, avals, f"adjoint of {jaxpr.name}", name=jaxpr.name))
    const_nz, carry_nz, xs_nz = split(in_nz, sum(const_needs), sum(carry_needs))
    return Reversal(
        shape,
        n,
        simplify(value_part(permute(jaxpr, None, range(k)))),
        program,
        tuple(jaxpr.in_avals[c : c + k]),
        (const_needs, carry_needs, xs_needs, parts.out_nonzero[k:]),
        (tuple(const_nz), tuple(carry_nz), tuple(xs_nz)),
    )


def pull_back_loop(parts: Reversal, known: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The backward pass.

    Args:
      parts: what it needs of the body.
      known: ``(*count, *consts, *xs, *rows, steps, order, top)``: ``rows`` are arrays of states,
        ``steps`` what iteration each belongs to, ``order`` the numbers of the rows by iteration,
        and ``top`` the last of them that is used.
      cts: cotangents of the last carry and of ``ys``.

    Returns:
      Cotangents of ``consts``, of the first carry and of ``xs``, of those that have tangents.
    """
    shape, n = parts.shape, parts.n
    c, k = shape.n_consts, shape.n_carry
    const_needs, carry_needs, xs_needs, _ = parts.flags
    n_xs = len(xs_needs)
    count, consts, xs, rows, (steps, order, top) = split(known, shape.length is None, c, n_xs, k)
    n_sums, n_cts = sum(const_needs), sum(carry_needs)
    ct_carry, ct_ys = split(cts, n_cts)
    last = shape.length - 1 if shape.length is not None else count[0] - 1
    sums = [zeros(aval_of(x).strong()) for x, need in zip(consts, const_needs, strict=True) if need]

    def position(i: Any) -> Any:
        return last - i if shape.reverse else i

    def walk(i: Array, given: Sequence[Any], order: Array, carry: Sequence[Any]) -> list[Any]:
        """From the latest kept state to that before iteration ``i``."""

        def holds(i: Array, *rest: object) -> Any:
            return rest[n_given] < i

        def store(i: Array, *rest: Array) -> list[Any]:
            given, (place, top, steps), rows, state = split(rest, n_given, 3, k)
            own, order = split(given, c + n_xs)
            free = n - top
            may_keep = free > 1
            far = i - place
            reach = ew.where(may_keep, _cut(far + 1, ew.maximum(free, 2)), far)
            place_after = place + reach

            def holds_inner(i: Array, *rest: Array) -> Any:
                return rest[c + n_xs + 1] < rest[c + n_xs]

            def advance(i: Array, *rest: object) -> list[Any]:
                own, (_, at), state = split(rest, c + n_xs, 2)
                entries = [
                    read_row(x, position(at), a) for x, a in zip(own[c:], x_avals, strict=True)
                ]
                return [at + 1, *evaluate(parts.advance, [*own[:c], *state, *entries])]

            _, *state = _loop(holds_inner, advance, [i, *own, place_after], [place, *state])
            top = ew.where(may_keep, top + 1, top)
            row = ew.where(may_keep, read_row(order[0], ew.minimum(top, n - 1)), n)
            rows = [_written(x, row, s) for x, s in zip(rows, state, strict=True)]
            return [place_after, top, _written(steps, row, place_after), *rows, *state]

        return _loop(holds, store, [i, *given, order], carry)

    n_given = c + n_xs + 1
    x_avals = parts.advance.in_avals[c + k :]

    def iteration(*args: object) -> list[Any]:
        own, full, (order,), carry, inputs = split(args, c, n_xs, 1, 3 + k + n_sums + n_cts)
        (i, top, steps), rows, sums, ct_carry = split(carry, 3, k, n_sums)
        entries, ct_ys = split(inputs, n_xs)
        # the last row holds the state that the forward sweep left before its last iteration
        row = ew.where(read_row(steps, np.int64(n)) == i, n, read_row(order, top))
        state = [read_row(x, row, aval) for x, aval in zip(rows, parts.carry_avals, strict=True)]
        place = read_row(steps, row)
        walked = walk(i, [*own, *full], order, [place, top, steps, *rows, *state])
        (_, top, steps), rows, state = split(walked, 3, k)
        pulled = evaluate(parts.adjoint, [*own, *state, *entries, *ct_carry, *ct_ys])
        const_nz, carry_nz, _ = parts.given
        const_cts, own_cts, x_cts = split(pulled, sum(const_nz), sum(carry_nz))
        totals = [
            add_cotangents(a, b) if nz else a
            for a, b, nz in zip(
                sums, spread(const_nz, const_cts, lambda i: None), const_nz, strict=True
            )
        ]
        carry_avals = [
            a.strong() for a, need in zip(parts.carry_avals, carry_needs, strict=True) if need
        ]
        own_cts = spread(carry_nz, own_cts, lambda i: zeros(carry_avals[i]))
        is_done = read_row(steps, read_row(order, top)) == i
        top = ew.where(is_done, top - 1, top)
        return [i - 1, top, steps, *rows, *totals, *own_cts, *x_cts]

    consts_all = [*consts, *xs, order]
    carry = [np.int64(last) if shape.length is not None else last, top, steps, *rows]
    carry += [*sums, *ct_carry]
    inputs = [*xs, *ct_ys]
    avals = [
        *map(aval_of, consts_all),
        *map(aval_of, carry),
        *x_avals,
        *(_entry_aval(aval_of(ct)) for ct in ct_ys),
    ]
    staged = stage(iteration, avals, f"backward pass of {parts.advance.name}", name="iteration")
    body, extra = hoist(simplify(staged))
    loop = Shape(len(extra) + len(consts_all), len(carry), shape.length, not shape.reverse, 1)
    final, x_cts = loop.bind(body, count, [*extra, *consts_all], carry, inputs)
    totals, own_cts = split(final[3 + k :], n_sums)
    stacked = iter(x_cts)
    x_all = [x for x, need in zip(xs, xs_needs, strict=True) if need]
    return [
        *totals,
        *own_cts,
        *(
            next(stacked) if nz else zeros(aval_of(x).strong())
            for x, nz in zip(x_all, parts.given[2], strict=True)
        ),
    ]


def _entry_aval(aval: Any) -> ShapedArray:
    return ShapedArray(aval.shape[1:], aval.dtype)


# the forward sweep ------------------------------------------------------------------------------


@derivation
def _keeping_scan(jaxpr: Jaxpr, shape: Shape, n: int) -> tuple[Jaxpr, np.ndarray, list[int]]:
    """The body that writes states to rows; the row of each iteration; what rows are used for."""
    assert shape.length is not None
    positions = first_positions(shape.length, n)
    table = np.full(shape.length, n, _INT)
    table[positions] = np.arange(len(positions))

    def run(*args: object) -> list[Any]:
        consts, carry, rows, (row,), xs = split(
            args, shape.n_consts, shape.n_carry, shape.n_carry, 1
        )
        new_rows = [_written(x, row, value) for x, value in zip(rows, carry, strict=True)]
        outs = evaluate(jaxpr, [*consts, *carry, *xs])
        return [*outs[: shape.n_carry], *new_rows, *outs[shape.n_carry :]]

    consts, carry, xs = split(jaxpr.in_avals, shape.n_consts, shape.n_carry)
    row_avals = [ShapedArray((n + 1, *a.shape), a.dtype) for a in carry]
    avals = [*consts, *carry, *row_avals, ShapedArray((), _INT), *xs]
    program = stage(run, avals, f"{jaxpr.name} with states kept", name=jaxpr.name)
    return simplify(program), np.flip(table).copy() if shape.reverse else table, positions


def forward_scan(
    jaxpr: Jaxpr, shape: Shape, n: int, operands: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Results of a scan, and what the backward pass reads besides the operands."""
    assert shape.length is not None
    _, consts, carry, xs = shape.unpack(operands)
    program, table, positions = _keeping_scan(jaxpr, shape, n)
    carry_avals = jaxpr.in_avals[shape.n_consts : shape.n_consts + shape.n_carry]
    rows = [_rows(aval, n + 1) for aval in carry_avals]
    final, ys = shape.bind(program, [], consts, [*carry, *rows], [table, *xs])
    outs, rows = split(final, shape.n_carry)
    steps = np.full(n + 1, -1, _INT)
    steps[: len(positions)] = positions
    if positions[-1] != shape.length - 1:
        steps[n] = shape.length - 1
    top = np.int64(len(positions) - 1)
    return [*outs, *ys], [*rows, steps, np.arange(n, dtype=_INT), top]


def forward_while(
    cond: Jaxpr,
    jaxpr: Jaxpr,
    n: int,
    cond_consts: Sequence[Any],
    consts: Sequence[Any],
    carry: Sequence[Any],
) -> tuple[Any, list[Any], list[Any]]:
    """The number of iterations, the results, and what the backward pass reads besides."""
    k = len(carry)
    stores, places = (np.array(part, _INT) for part in online_stores(n))

    def holds(*args: object) -> Any:
        own, _, state = split(args, len(cond_consts), 2 + len(consts) + 3 + k)
        return evaluate(cond, [*own, *state])[0]

    def step(*args: object) -> list[Any]:
        _, (stores, places), consts_in, (number, event, steps), rows, state = split(
            args, len(cond_consts), 2, len(consts), 3, k
        )
        is_kept = read_row(stores, ew.minimum(event, len(stores) - 1)) == number
        row = ew.where(is_kept, read_row(places, ew.minimum(event, len(stores) - 1)), n)
        new_rows = [_written(x, row, value) for x, value in zip(rows, state, strict=True)]
        event = ew.where(is_kept, event + 1, event)
        outs = evaluate(jaxpr, [*consts_in, *state])
        return [number + 1, event, _written(steps, row, number), *new_rows, *outs]

    rows = [_rows(aval, n + 1) for aval in jaxpr.in_avals[len(consts) :]]
    never = np.full(n + 1, np.iinfo(_INT).max, _INT)
    never[n] = -1
    lead = [*cond_consts, stores, places, *consts]
    final = _loop(holds, step, lead, [np.int64(0), np.int64(0), never, *rows, *carry])
    (number, _, steps), rows, outs = split(final, 3, k)
    taken = steps[:n]
    n_used = reduce_sum(cast(taken < np.iinfo(_INT).max, _INT), (0,))
    return number, outs, [*rows, steps, argsort(taken, 0), n_used - 1]
