"""What the rules of loops make of a body: the programs of one iteration.

Here: bodies of values and tangents, split at their linear part, transposed, and of lanes whose
loops differ in length; which carried values have tangents or cotangents, as a fixed point over the
iterations. Not here: the loops of these bodies (``control.loops``, ``control.while_loop``,
``control.reversal``).

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.branches import cond_lanes_p
from functrans.core.avals import Aval, ShapedArray, Tape
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Jaxpr, Literal, Var
from functrans.passes.cotangents import add_cotangents, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import (
    Flags,
    batched_aval,
    derivation,
    jvp_jaxpr,
    linearize_jaxpr,
    permute,
    select,
    split,
    spread,
    transpose_jaxpr_with_masks,
    value_part,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.elementwise import logical_or
from functrans.primitives.structural import cast, weaken
from functrans.records import dataclass


def fixpoint(start: Flags, step: Callable[[Flags], Flags]) -> Flags:
    """The smallest flags from ``start`` on that ``step`` does not add to."""
    flags = start
    while True:
        more = tuple(a or b for a, b in zip(flags, step(flags), strict=True))
        if more == flags:
            return flags
        flags = more


@derivation
def jvp_body(
    jaxpr: Jaxpr, const_nz: Flags, start: Flags, xs_nz: Flags
) -> tuple[Jaxpr, Flags, Flags]:
    """The body of values and tangents; which carried values and ``ys`` have tangents."""
    c, k = len(const_nz), len(start)
    n_ys = len(jaxpr.outvars) - k

    def at(carry_nz: Flags) -> tuple[Jaxpr, Flags]:
        flags = (*const_nz, *carry_nz, *xs_nz)
        return jvp_jaxpr(jaxpr, flags, (*carry_nz, *(False,) * n_ys))

    carry_nz = fixpoint(start, lambda flags: at(flags)[1][:k])
    program, out_nz = at(carry_nz)
    n = len(jaxpr.invars)
    dots = split(range(n, len(program.invars)), sum(const_nz), sum(carry_nz))
    plain = split(range(n), c, k)
    arguments = [i for pair in zip(plain, dots, strict=True) for part in pair for i in part]
    m = len(jaxpr.outvars)
    first_y_dot = m + sum(carry_nz)
    results = [*range(k), *range(m, first_y_dot), *range(k, m)]
    results += range(first_y_dot, len(program.outvars))
    return permute(program, arguments, results), carry_nz, out_nz[k:]


def linearized_body(
    jaxpr: Jaxpr, const_needs: Flags, start: Flags, xs_needs: Flags
) -> tuple[Flags, Any]:
    """Which carried values have tangents, and the body's value and linear part for these."""
    k = len(start)
    n_ys = len(jaxpr.outvars) - k

    def at(carry_needs: Flags) -> Any:
        needs = (*const_needs, *carry_needs, *xs_needs)
        return linearize_jaxpr(jaxpr, needs, (*carry_needs, *(False,) * n_ys))

    carry_needs = fixpoint(start, lambda flags: at(flags).out_nonzero[:k])
    parts = at(carry_needs)
    return carry_needs, parts


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A body split at its linear part.

    Attributes:
      invariant: ``consts -> residuals`` that are the same in every iteration.
      primal: ``(*consts, *carry, *xs) -> (*carry, *ys, *stacked residuals)``.
      linear: ``(*const residuals, *invariants, *const tangents, *carry tangents,
        *x residuals, *stacked residuals, *x tangents) -> (*carry tangents, *y tangents)``.
      const_residuals: which ``consts`` are residuals.
      x_residuals: which ``xs`` are residuals.
      carry_needs: which carried values have tangents.
      ys_nonzero: which ``ys`` have tangents.
    """

    invariant: Jaxpr
    primal: Jaxpr
    linear: Jaxpr
    const_residuals: tuple[int, ...]
    x_residuals: tuple[int, ...]
    carry_needs: Flags
    ys_nonzero: Flags


@derivation
def split_body(jaxpr: Jaxpr, const_needs: Flags, start: Flags, xs_needs: Flags) -> Split:
    """Split a body at its linear part."""
    c, k = len(const_needs), len(start)
    carry_needs, parts = linearized_body(jaxpr, const_needs, start, xs_needs)
    primal: Jaxpr = parts.primal
    linear_part: Jaxpr = parts.linear
    m = len(jaxpr.outvars)
    position: dict[Any, int] = {var: i for i, var in enumerate(primal.invars)}
    varying = _varying(primal, c)
    groups: dict[str, list[tuple[int, int]]] = {
        name: [] for name in ("const", "x", "same", "stack")
    }
    for i, atom in enumerate(primal.outvars[m:]):
        where = position.get(atom, -1)  # a Literal is in no table
        if 0 <= where < c:
            groups["const"].append((i, where))
        elif where >= c + k:
            groups["x"].append((i, where - c - k))
        elif type(atom) is Literal or (where < 0 and atom not in varying):
            groups["same"].append((i, m + i))
        else:
            groups["stack"].append((i, m + i))
    order = [[i for i, _ in groups[name]] for name in ("const", "same", "x", "stack")]
    own = parts.n_residuals
    const_dots, carry_dots, x_dots = split(
        range(own, len(linear_part.invars)), sum(const_needs), sum(carry_needs)
    )
    arguments = [
        *order[0], *order[1], *const_dots, *carry_dots, *order[2], *order[3], *x_dots
    ]  # fmt: skip
    linear_body = _reading_strong(permute(linear_part, arguments), order, arguments)
    same = [place for _, place in groups["same"]]
    stacks = [place for _, place in groups["stack"]]
    invariant = simplify(value_part(permute(primal, range(c), same)))
    return Split(
        invariant,
        simplify(permute(primal, None, [*range(m), *stacks])),
        linear_body,
        tuple(where for _, where in groups["const"]),
        tuple(where for _, where in groups["x"]),
        carry_needs,
        parts.out_nonzero[k:],
    )


def _varying(jaxpr: Jaxpr, n_consts: int) -> set[Any]:
    """Variables that may differ between iterations."""
    found: set[Any] = set(jaxpr.invars[n_consts:])
    for eqn in jaxpr.eqns:
        if eqn.effects or any(type(atom) is Var and atom in found for atom in eqn.inputs):
            found.update(eqn.outputs)
    return found


def _reading_strong(linear_body: Jaxpr, order: list[list[int]], arguments: list[int]) -> Jaxpr:
    """The linear body for residuals read from arrays, where a Python scalar has become strong."""
    from_arrays = {arguments.index(i) for i in (*order[2], *order[3])}
    weak = [
        i
        for i in sorted(from_arrays)
        if type(linear_body.in_avals[i]) is ShapedArray and linear_body.in_avals[i].weak
    ]
    if not weak:
        return linear_body

    def run(*args: object) -> list[Any]:
        values = list(args)
        for i in weak:
            values[i] = weaken(values[i])
        return evaluate(linear_body, values)

    avals = [aval.strong() if i in weak else aval for i, aval in enumerate(linear_body.in_avals)]
    return stage(run, avals, linear_body.name, name=linear_body.name)


@dataclass(frozen=True, slots=True, eq=False)
class Transposed:
    """A transposed body.

    Attributes:
      body: ``(*known consts, *sums, *carry cts, *masks of sums, *masks of carry cts, *known xs, *y
        cts, *their masks) -> (*sums, *carry cts, *their masks, *x cts, *their masks)``.
      nonzero: of the linear consts, carried values and xs, which have a cotangent; those of carried
        values are carried.
      masked: of the same, which have a masked one.
    """

    body: Jaxpr
    nonzero: tuple[Flags, Flags, Flags]
    masked: tuple[Flags, Flags, Flags]


def transposed_body(
    jaxpr: Jaxpr,
    flags: tuple[Flags, Flags, Flags],
    start: Flags,
    y_nz: Flags,
    start_masked: Flags,
    y_masked: Flags,
) -> Transposed:
    """Transpose a body.

    Args:
      jaxpr: the body.
      flags: of its consts, carried values and xs, which are linear.
      start: of the linear carried values, which have a cotangent when the loop begins.
      y_nz: which ``ys`` have a cotangent.
      start_masked: of the linear carried values, which have a masked one then.
      y_masked: of the ``ys`` with a cotangent, which have a masked one.
    """
    const_lin, carry_lin, xs_lin = flags
    k = len(carry_lin)
    carried = [i for i, flag in enumerate(carry_lin) if flag]
    program = permute(jaxpr, None, [*carried, *range(k, len(jaxpr.outvars))])
    is_lin = (*const_lin, *carry_lin, *xs_lin)
    n_const, n_carry = sum(const_lin), len(carried)
    has_masks = any(start_masked) or any(y_masked)
    all_y_masked = tuple(spread(y_nz, y_masked, lambda i: False))

    def parts_of(flags: Flags) -> tuple[Flags, Flags, Flags]:
        const, carry, xs = (tuple(part) for part in split(flags, n_const, n_carry))
        return const, carry, xs

    def at(carry_nz: Flags, masked: Flags) -> tuple[Jaxpr, Flags, Flags]:
        nonzero = (*carry_nz, *y_nz)
        return transpose_jaxpr_with_masks(program, is_lin, nonzero, (*masked, *all_y_masked))

    none_masked = (False,) * n_carry
    carry_nz = fixpoint(start, lambda nz: parts_of(at(nz, none_masked)[1])[1])
    # What begins as zero is masked everywhere, until something is added to it.
    carry_masked = tuple(
        [
            has_masks and nz and (is_masked or not at_start) and type(aval) is not Tape
            for nz, is_masked, at_start, aval in zip(
                carry_nz, start_masked, start, program.out_avals[:n_carry], strict=True
            )
        ]
    )
    while True:
        transposed, in_nz, in_masked = at(carry_nz, carry_masked)
        const_nz, own_nz, xs_nz = parts_of(in_nz)
        if not has_masks:
            in_masked = (False,) * len(in_nz)
        const_masked, own_masked, xs_masked = parts_of(in_masked)
        keeps = zip(carry_masked, own_masked, own_nz, strict=True)
        still = tuple([before and (mask or not nz) for before, mask, nz in keeps])
        if still == carry_masked:
            break
        carry_masked = still
    avals = [aval.strong() for aval in select(jaxpr.in_avals, is_lin)]
    sum_avals = select(avals[:n_const], const_nz)
    carry_avals = avals[n_const : n_const + n_carry]
    n_known = [len(part) - sum(part) for part in flags]

    def body(*args: object) -> list[Any]:
        consts, sums, cts, sum_on, carry_on, xs, known_carry, y_args = split(
            args, n_known[0], sum(const_nz), sum(carry_nz), sum(const_masked), sum(carry_masked),
            n_known[2], n_known[1],
        )  # fmt: skip
        y_cts, y_on = split(y_args, sum(y_nz))
        outs = evaluate(transposed, [*consts, *known_carry, *xs, *cts, *y_cts, *carry_on, *y_on])
        const_cts, carry_out, x_cts, masks = split(outs, sum(const_nz), sum(own_nz), sum(xs_nz))
        new_cts = spread(own_nz, carry_out, lambda i: zeros(carry_avals[i]))
        new_sums = [add_cotangents(a, b) for a, b in zip(sums, const_cts, strict=True)]
        const_on, own_on, x_on = split(
            spread(in_masked, masks, lambda i: None) if has_masks else [None] * len(in_nz),
            n_const,
            n_carry,
        )
        const_on = select(const_on, const_masked)
        new_on = [logical_or(a, b) for a, b in zip(sum_on, const_on, strict=True)]
        off = [np.zeros(aval.shape, bool) for aval in carry_avals]
        still_on = [x if on is None else on for x, on in zip(off, own_on, strict=True)]
        return [
            *new_sums, *select(new_cts, carry_nz), *new_on, *select(still_on, carry_masked),
            *x_cts, *select(x_on, xs_masked),
        ]  # fmt: skip

    def of_masks(avals: Sequence[Aval], flags: Flags) -> list[Aval]:
        return [ShapedArray(aval.shape, np.dtype(bool)) for aval in select(avals, flags)]

    known_avals = split(transposed.in_avals[: sum(n_known)], n_known[0], n_known[1])
    y_avals = transposed.in_avals[sum(n_known) + sum(carry_nz) :][: sum(y_nz)]
    in_avals = [
        *known_avals[0], *sum_avals, *select(carry_avals, carry_nz),
        *of_masks(avals[:n_const], const_masked), *of_masks(carry_avals, carry_masked),
        *known_avals[2], *known_avals[1], *y_avals, *of_masks(y_avals, y_masked),
    ]  # fmt: skip
    staged = stage(body, in_avals, f"transpose of scan of {jaxpr.name}", name=transposed.name)
    masked = (const_masked, carry_masked, xs_masked)
    return Transposed(simplify(staged), (const_nz, carry_nz, xs_nz), masked)


@derivation
def lanes_body(jaxpr: Jaxpr, size: int, c: int, k: int, step: int, batched: Flags) -> Jaxpr:
    """The body of the loop of all lanes, which carries the number of the iteration."""
    idle = _idle_body(jaxpr, c, k)

    def body(*args: object) -> list[Any]:
        (counts,), consts, (t,), carry, xs = split(args, 1, c, 1, k)
        active = cast(t < counts, np.int64)
        outs = bind(
            cond_lanes_p, active, *consts, *carry, *xs, branches=(idle, jaxpr), batched=batched
        )
        return [t + step, *outs]

    lane_avals = [
        batched_aval(aval, size) if flag else aval
        for aval, flag in zip(jaxpr.in_avals, batched, strict=True)
    ]
    number = np.dtype(np.int64)
    consts, carry, xs = split(lane_avals, c, k)
    avals = [
        ShapedArray((size,), number), *consts, ShapedArray((), number), *carry, *xs
    ]  # fmt: skip
    return simplify(stage(body, avals, f"vmap of scan of {jaxpr.name}", name=jaxpr.name))


def _idle_body(jaxpr: Jaxpr, n_consts: int, n_carry: int) -> Jaxpr:
    """The body of a lane whose loop is over: carried values stay, ``ys`` are zero."""
    y_avals = jaxpr.out_avals[n_carry:]

    def idle(*args: object) -> list[Any]:
        return [*args[n_consts : n_consts + n_carry], *map(zeros, y_avals)]

    return stage(idle, jaxpr.in_avals, f"idle lane of {jaxpr.name}", name=jaxpr.name)
