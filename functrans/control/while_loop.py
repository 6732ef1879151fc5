"""Loops of which a condition tells the end: the primitive ``while``.

Here: the primitive and its rules. Not here: the function that users call (``control.scanning``).

``while`` runs a body ``(*consts, *carry) -> (*carry, *ys)`` as long as a condition of the carry
holds. What the body gives besides the carry is pushed on tapes, one entry per iteration. Reverse
mode goes through tapes: the linearized loop counts its iterations and pushes what the linear part
reads, and the linear part is a ``scan`` of that many iterations which pops it (``control.loops``).

Under ``vmap`` with a condition that differs between lanes, the loop runs as long as any lane does,
and each iteration is run by the lanes whose condition holds (``cond_lanes``): a lane that is done
keeps its values, pushes zeros and has no effects.

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.control.branches import cond_lanes_p
from functrans.control.calls import is_nonzero, kept_residuals, to_front
from functrans.control.loop_bodies import Split, fixpoint, jvp_body, split_body
from functrans.control.loops import Shape, linear_function, scan_transpose
from functrans.control.native import jit_p
from functrans.core.avals import Aval, ShapedArray, Tape, Zero
from functrans.core.byte_order import in_native_order
from functrans.core.dispatch import aval_of, bind
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import here
from functrans.core.state import batch_axis
from functrans.core.tapes import TapeValue
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, UnsupportedOperationError
from functrans.ir.parameters import check_fits
from functrans.passes.batch import named_axes
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate, executable
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    batched_aval,
    dependence,
    derivation,
    derived,
    permute,
    prune_jaxpr,
    select,
    split,
    spread,
    value_part,
    with_arguments,
    with_batch_axis,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.reduction import reduce_any
from functrans.primitives.structural import cast

_NUMBER = ShapedArray((), np.dtype(np.int64))
_FLAG = ShapedArray((), np.dtype(np.bool_))


def bind_while(
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    cond_consts: Sequence[Any],
    body_consts: Sequence[Any],
    carry: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Bind a loop; returns the last carry and the tapes."""
    outs = bind(
        while_p,
        *cond_consts,
        *body_consts,
        *carry,
        cond_jaxpr=cond_jaxpr,
        body_jaxpr=body_jaxpr,
        n_cond_consts=len(cond_consts),
        n_body_consts=len(body_consts),
    )
    final, ys = split(outs, len(carry))
    return final, ys


def _loop_shape(n_body_consts: int, n_carry: int) -> Shape:
    """The loop over tapes that a linear part is."""
    return Shape(n_body_consts, n_carry, None, False, 1)


@derivation
def _with_extra(jaxpr: Jaxpr, position: int, avals: tuple[Aval, ...]) -> Jaxpr:
    """The program with arguments that it does not read."""
    extra = tuple([Var(aval) for aval in avals])
    names = jaxpr.arg_names
    if names:
        names = (*names[:position], *("" for _ in extra), *names[position:])
    invars = (*jaxpr.invars[:position], *extra, *jaxpr.invars[position:])
    return replace(jaxpr, invars=invars, arg_names=names, cache={})


# evaluation -------------------------------------------------------------------------------------


def _while_impl(
    *operands: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, n_cond_consts: int, n_body_consts: int
) -> tuple[Any, ...]:
    cond_consts, body_consts, carry = split(operands, n_cond_consts, n_body_consts)
    n = len(carry)
    holds, body = executable(cond_jaxpr), executable(body_jaxpr)
    cond_lead = (*in_native_order(cond_jaxpr.consts), *cond_consts)
    body_lead = (*in_native_order(body_jaxpr.consts), *body_consts)
    tapes = [TapeValue(Tape(aval.strong())) for aval in body_jaxpr.out_avals[n:]]
    if not tapes:
        while holds(*cond_lead, *carry)[0]:
            carry = body(*body_lead, *carry)
        return tuple(carry)
    while holds(*cond_lead, *carry)[0]:
        outs = body(*body_lead, *carry)
        carry = outs[:n]
        for tape, y in zip(tapes, outs[n:], strict=True):
            tape.append(y)
    return (*carry, *tapes)


def _while_aval(
    *avals: Aval, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, n_cond_consts: int, n_body_consts: int
) -> tuple[Aval, ...]:
    carry, ys = split(body_jaxpr.out_avals, len(avals) - n_cond_consts - n_body_consts)
    return (*carry, *(Tape(aval.strong()) for aval in ys))


def _while_check(
    *avals: Aval, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, n_cond_consts: int, n_body_consts: int
) -> None:
    if n_cond_consts + n_body_consts > len(avals):
        raise TypeError(f"while: {n_cond_consts} and {n_body_consts} constants of {len(avals)}")
    cond_consts, body_consts, carry = split(avals, n_cond_consts, n_body_consts)
    check_fits("while: argument of its condition", cond_jaxpr.in_avals, (*cond_consts, *carry))
    check_fits("while: argument of its body", body_jaxpr.in_avals, (*body_consts, *carry))
    check_fits("while: next carried value", body_jaxpr.out_avals[: len(carry)], carry)
    check_fits("while: result of its condition", cond_jaxpr.out_avals, (_FLAG,))


# derivatives ------------------------------------------------------------------------------------


def _while_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    n_cond_consts: int,
    n_body_consts: int,
) -> tuple[Any, Any]:
    cond_consts, body_consts, carry = split(primals, n_cond_consts, n_body_consts)
    _, const_dots, carry_dots = split(tangents, n_cond_consts, n_body_consts)
    const_nz, start = is_nonzero(const_dots), is_nonzero(carry_dots)
    program, carry_nz, ys_nz = jvp_body(body_jaxpr, const_nz, start, ())
    filled = [
        zeros(aval_of(x).strong()) if type(t) is Zero else t
        for x, t in zip(carry, carry_dots, strict=True)
    ]
    dots = select(filled, carry_nz)
    extra = tuple(select([aval_of(x).strong() for x in carry], carry_nz))
    condition = _with_extra(cond_jaxpr, len(cond_jaxpr.invars), extra)
    final, ys = bind_while(
        condition,
        program,
        cond_consts,
        [*body_consts, *select(const_dots, const_nz)],
        [*carry, *dots],
    )
    n, n_ys = len(carry), len(ys_nz)
    outs = [*final[:n], *ys[:n_ys]]
    given = [*final[n:], *ys[n_ys:]]
    return outs, spread((*carry_nz, *ys_nz), given, lambda i: Zero(aval_of(outs[i]).strong()))


def _while_linearize(
    needs: Flags,
    operands: Sequence[Any],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    n_cond_consts: int,
    n_body_consts: int,
) -> tuple[tuple[Any, ...], LinearProgram]:
    cond_consts, body_consts, carry = split(operands, n_cond_consts, n_body_consts)
    _, const_needs, start = (tuple(part) for part in split(needs, n_cond_consts, n_body_consts))
    n = len(carry)
    shape = _loop_shape(n_body_consts, n)
    parts: Split = split_body(body_jaxpr, const_needs, start, ())
    counting = _counting(parts.primal, n_body_consts)
    condition = _with_extra(cond_jaxpr, n_cond_consts, (_NUMBER,))
    same: Sequence[Any] = ()
    if parts.invariant.outvars:
        same = bind(jit_p, *body_consts, jaxpr=parts.invariant, name=body_jaxpr.name)
    final, ys = bind_while(condition, counting, cond_consts, body_consts, [np.int64(0), *carry])
    count, *final = final
    n_ys = len(body_jaxpr.outvars) - n
    residuals = kept_residuals(
        [count, *(body_consts[i] for i in parts.const_residuals), *same, *ys[n_ys:]],
        operands,
        needs,
    )
    own_needs = (False,) * n_cond_consts + const_needs + start
    tangent_avals = [
        aval_of(x).strong() for x, need in zip(operands, own_needs, strict=True) if need
    ]
    avals = [*map(aval_of, residuals), *tangent_avals]
    program = derived(
        body_jaxpr,
        ("while linear", const_needs, start, tuple(avals)),
        lambda: stage(
            linear_function(parts, shape, body_jaxpr, start, sum(const_needs)),
            avals,
            f"linear part of while of {body_jaxpr.name}",
        ),
    )
    targets = tuple(i for i, need in enumerate(own_needs) if need)
    return (*final, *ys[:n_ys]), LinearProgram(program, targets, tuple(residuals))


@derivation
def _counting(body: Jaxpr, n_consts: int) -> Jaxpr:
    """The body of a loop that carries the number of iterations done."""

    def run(*args: object) -> list[Any]:
        consts, (number,), carry = split(args, n_consts, 1)
        return [number + 1, *evaluate(body, [*consts, *carry])]

    avals = [*body.in_avals[:n_consts], _NUMBER, *body.in_avals[n_consts:]]
    return simplify(stage(run, avals, body.name, name=body.name))


def _while_transpose(
    cts: Any,
    operands: Any,
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    n_cond_consts: int,
    n_body_consts: int,
) -> tuple[Any, ...]:
    """The transpose of a loop whose number of iterations does not depend on what it is linear in.

    A loop of what is known counts the iterations; the rest is the transpose of a scan.
    """
    cond_consts, body_consts, carry = split(operands, n_cond_consts, n_body_consts)
    const_lin, init_lin = (tuple(map(is_linear, part)) for part in (body_consts, carry))
    n = len(carry)
    carry_lin = fixpoint(init_lin, lambda flags: dependence(body_jaxpr, (*const_lin, *flags))[:n])
    cond_lin = (*map(is_linear, cond_consts), *carry_lin)
    if any(dependence(cond_jaxpr, cond_lin)):
        raise NonDifferentiableError(
            f"transpose: the condition of a while_loop depends on what the loop is to be linear "
            f"in{here()}; only linear functions can be transposed"
        )
    known = [i for i, flag in enumerate(carry_lin) if not flag]

    def make() -> tuple[Jaxpr, Jaxpr]:
        positions = [
            *(i for i, flag in enumerate(const_lin) if not flag),
            *(n_body_consts + i for i in known),
        ]
        body = value_part(permute(body_jaxpr, positions, known))
        condition = permute(cond_jaxpr, [i for i, flag in enumerate(cond_lin) if not flag])
        k = sum(not flag for flag in const_lin)
        first = sum(not is_linear(x) for x in cond_consts)
        return _counting(body, k), _with_extra(condition, first, (_NUMBER,))

    counting, condition = derived(
        body_jaxpr, ("while known", cond_jaxpr, const_lin, cond_lin), make
    )
    final, _ = bind_while(
        condition,
        counting,
        [x for x in cond_consts if not is_linear(x)],
        [x for x in body_consts if not is_linear(x)],
        [np.int64(0), *(carry[i] for i in known)],
    )
    pulled = scan_transpose(
        cts,
        (final[0], *body_consts, *carry),
        jaxpr=body_jaxpr,
        n_consts=n_body_consts,
        n_carry=n,
        length=None,
        reverse=False,
        unroll=1,
    )
    return (*(None for _ in cond_consts), *pulled[1:])


# batching ---------------------------------------------------------------------------------------


def _while_batch(
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    n_cond_consts: int,
    n_body_consts: int,
) -> tuple[Any, ...]:
    front = to_front(size, operands, dims)
    cond_consts, body_consts, carry = split(front, n_cond_consts, n_body_consts)
    is_batched = tuple(dim is not None for dim in dims)
    cond_flags, const_flags, start = (
        tuple(part) for part in split(is_batched, n_cond_consts, n_body_consts)
    )
    n = len(carry)
    n_ys = len(body_jaxpr.outvars) - n
    axis_name = batch_axis.get()

    def at(flags: Flags) -> tuple[Jaxpr, Flags]:
        force = (*flags, *(False,) * n_ys)
        return batch_jaxpr(body_jaxpr, size, (*const_flags, *flags), force, axis_name)

    flags = fixpoint(start, lambda flags: at(flags)[1][:n])
    condition, (differs,) = batch_jaxpr(cond_jaxpr, size, (*cond_flags, *flags), False, axis_name)
    if not differs and not cond_jaxpr.effects:
        program, out_flags = at(flags)
        wide = [
            with_batch_axis(x, size, 0 if have else None) if flag else x
            for x, have, flag in zip(carry, start, flags, strict=True)
        ]
        final, ys = bind_while(condition, program, cond_consts, body_consts, wide)
        return (*final, *ys), [0 if flag else None for flag in out_flags]
    if axis_name is not None and axis_name in named_axes(cond_jaxpr) | named_axes(body_jaxpr):
        raise UnsupportedOperationError(
            f"vmap: a while_loop has a collective over axis {axis_name!r}{here()}, but its length "
            "differs between the elements of that axis, so that not all of them take part"
        )
    kept = _kept(body_jaxpr, n_body_consts)
    if any(kept):  # constants of the loop: not batched only because its lanes end apart
        arguments, params = derived(
            body_jaxpr,
            ("while kept", cond_jaxpr, n_cond_consts, n_body_consts),
            lambda: _without_kept(kept, cond_jaxpr, body_jaxpr, n_cond_consts, n_body_consts),
        )
        places = [None if dim is None else 0 for dim in dims]
        outs, out_dims = _while_batch(
            size, [front[i] for i in arguments], [places[i] for i in arguments], **params
        )
        moving = iter([*zip(outs, out_dims, strict=True)])
        first = n_cond_consts + n_body_consts
        pairs = [
            (front[first + i], places[first + i]) if flag else next(moving)
            for i, flag in enumerate(kept)
        ]
        pairs += moving
        return [out for out, _ in pairs], [dim for _, dim in pairs]
    wide = [
        with_batch_axis(x, size, 0 if have else None) for x, have in zip(carry, start, strict=True)
    ]
    starts, _ = batch_jaxpr(cond_jaxpr, size, (*cond_flags, *(True,) * n), True, axis_name)
    (active,) = bind(jit_p, *cond_consts, *wide, jaxpr=starts, name="cond_fun")
    batched = (*cond_flags, *const_flags, *(True,) * n)
    any_active, program = _lanes_programs(
        body_jaxpr, cond_jaxpr, n_cond_consts, n_body_consts, size, batched
    )
    final, ys = bind_while(any_active, program, [], [*cond_consts, *body_consts], [active, *wide])
    return (*final[1:], *ys), (0,) * (n + n_ys)


def _kept(body_jaxpr: Jaxpr, n_consts: int) -> Flags:
    """Which carried values the body returns as they are."""
    carried = body_jaxpr.invars[n_consts:]
    return tuple([out is var for out, var in zip(body_jaxpr.outvars, carried, strict=False)])


def _without_kept(
    kept: Flags, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, n_cond: int, n_body: int
) -> tuple[list[int], dict[str, Any]]:
    """The loop with carried values that no iteration changes as constants.

    Returns:
      Which operands of the loop are its operands, and its parameters.
    """
    n = len(kept)
    fixed = [i for i in range(n) if kept[i]]
    moving = [i for i in range(n) if not kept[i]]
    first = n_cond + n_body
    arguments = [*range(n_cond), *(first + i for i in fixed), *range(n_cond, first)]
    arguments += [first + i for i in (*fixed, *moving)]
    results = [*moving, *range(n, len(body_jaxpr.outvars))]
    params = {
        "cond_jaxpr": permute(cond_jaxpr, _constants_first(n_cond, fixed, moving)),
        "body_jaxpr": permute(body_jaxpr, _constants_first(n_body, fixed, moving), results),
        "n_cond_consts": n_cond + len(fixed),
        "n_body_consts": n_body + len(fixed),
    }
    return arguments, params


def _constants_first(n_consts: int, fixed: list[int], moving: list[int]) -> list[int]:
    return [*range(n_consts), *(n_consts + i for i in (*fixed, *moving))]


@derivation
def _lanes_programs(
    body_jaxpr: Jaxpr, cond_jaxpr: Jaxpr, n_cond: int, n_body: int, size: int, batched: Flags
) -> tuple[Jaxpr, Jaxpr]:
    """Condition and body of the loop of all lanes, which carries whose condition holds."""
    in_avals = [*cond_jaxpr.in_avals[:n_cond], *body_jaxpr.in_avals]
    n = len(body_jaxpr.invars) - n_body
    y_avals = body_jaxpr.out_avals[n:]

    def step(*args: object) -> list[Any]:
        cond_consts, body_consts, carry = split(args, n_cond, n_body)
        outs = evaluate(body_jaxpr, [*body_consts, *carry])
        (holds,) = evaluate(cond_jaxpr, [*cond_consts, *outs[:n]])
        return [holds, *outs]

    def idle(*args: object) -> list[Any]:
        return [np.False_, *args[n_cond + n_body :], *map(zeros, y_avals)]

    label = f"vmap of while of {body_jaxpr.name}"
    branches = tuple(
        simplify(stage(function, in_avals, label, name=body_jaxpr.name))
        for function in (idle, step)
    )

    def body(*args: object) -> Sequence[Any]:
        consts, (active,), carry = split(args, n_cond + n_body, 1)
        index = cast(active, np.int64)
        return bind(cond_lanes_p, index, *consts, *carry, branches=branches, batched=batched)

    lane_avals = [
        batched_aval(aval, size) if flag else aval
        for aval, flag in zip(in_avals, batched, strict=True)
    ]
    consts, carry = split(lane_avals, n_cond + n_body)
    active_aval = ShapedArray((size,), np.dtype(bool))
    condition = stage(
        lambda active, *carry: [reduce_any(active, (0,))], [active_aval, *carry], label
    )
    program = stage(body, [*consts, active_aval, *carry], label, name=body_jaxpr.name)
    return condition, program


def _while_prune(
    used: Flags, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, n_cond_consts: int, n_body_consts: int
) -> tuple[Any, Any, Any]:
    n = len(body_jaxpr.invars) - n_body_consts
    ys_used = used[n:]
    _, read_by_condition = prune_jaxpr(cond_jaxpr, (True,))
    start = tuple(a or b for a, b in zip(used[:n], read_by_condition[n_cond_consts:], strict=True))
    carry_used = fixpoint(
        start, lambda flags: prune_jaxpr(body_jaxpr, (*flags, *ys_used))[1][n_body_consts:]
    )
    program, read = prune_jaxpr(body_jaxpr, (*carry_used, *ys_used))
    cond_read, body_read = read_by_condition[:n_cond_consts], read[:n_body_consts]
    params = {
        "cond_jaxpr": with_arguments(cond_jaxpr, (*cond_read, *carry_used)),
        "body_jaxpr": with_arguments(program, (*body_read, *carry_used)),
        "n_cond_consts": sum(cond_read),
        "n_body_consts": sum(body_read),
    }
    return params, (*cond_read, *body_read, *carry_used), (*carry_used, *ys_used)


while_p = Primitive(
    "while",
    impl=_while_impl,
    abstract_eval=_while_aval,
    check=_while_check,
    jvp=Joint(_while_jvp),
    linearize=_while_linearize,
    transpose=_while_transpose,
    takes_masks=True,
    batch=_while_batch,
    prune=_while_prune,
    lower=Structured("while"),
    holds_programs=True,
)

PRIMITIVES: tuple[Primitive, ...] = (while_p,)
