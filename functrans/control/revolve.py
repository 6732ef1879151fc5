"""Loops whose reverse mode keeps few states and runs the steps between them again.

Here: the primitive ``binomial``, a ``scan`` or ``while`` in every respect but its linear part; the
primitive ``revolve``, that linear part, whose transpose follows a binomial schedule; and
``bind_loops``, which puts the first in the place of loops. Not here: the sweeps
(``control.reversal``), policies and the transform (``control.checkpoint``).

Layer: ``control``. Reference: see ``control.binomial``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.control.calls import (
    Binder,
    call_batch,
    call_jvp,
    call_linearize,
    call_transpose,
    is_nonzero,
    kept_residuals,
)
from functrans.control.loop_bodies import jvp_body
from functrans.control.loops import Shape, scan_p, scan_shape
from functrans.control.native import jit_p, run
from functrans.control.reversal import (
    forward_scan,
    forward_while,
    pull_back_loop,
    read_row,
    reversal,
)
from functrans.control.while_loop import bind_while, while_p
from functrans.core.avals import Aval, Tape, Zero
from functrans.core.dispatch import Tracer, aval_of, bind
from functrans.core.jaxpr import Equation, Jaxpr, Literal
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.state import batch_axis
from functrans.core.values import Array
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    derivation,
    derived,
    hoist,
    intern,
    select,
    split,
    spread,
    with_batch_axis,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives import elementwise as ew
from functrans.records import dataclass

# the primitive of the linear part ---------------------------------------------------------------


def _revolve_impl(
    *operands: object, jaxpr: Jaxpr, pullback: Jaxpr, n_known: int
) -> tuple[Any, ...]:
    return tuple(run(jaxpr, operands))


def _revolve_aval(*avals: Aval, jaxpr: Jaxpr, pullback: Jaxpr, n_known: int) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _call_binder(jaxpr: Jaxpr) -> Binder:
    return Binder(jit_p, (("name", jaxpr.name),))


def _revolve_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, pullback: Jaxpr, n_known: int
) -> Any:
    if any(is_nonzero(tangents[:n_known])):
        return call_jvp(_call_binder(jaxpr), jaxpr, primals, tangents)
    params = {"jaxpr": jaxpr, "pullback": pullback, "n_known": n_known}
    known = primals[:n_known]
    dots = [zeros(t.aval) if type(t) is Zero else t for t in tangents[n_known:]]
    outs = bind(revolve_p, *primals, **params)
    return outs, bind(revolve_p, *known, *dots, **params)


def _revolve_linearize(
    needs: Flags, operands: Sequence[Any], *, jaxpr: Jaxpr, pullback: Jaxpr, n_known: int
) -> Any:
    if any(needs[:n_known]):
        return call_linearize(_call_binder(jaxpr), jaxpr, needs, operands)
    params = {"jaxpr": jaxpr, "pullback": pullback, "n_known": n_known}
    known, given = operands[:n_known], needs[n_known:]
    dot_avals = jaxpr.in_avals[n_known:]

    def linear(*args: object) -> list[Any]:
        dots = spread(given, args[n_known:], lambda i: zeros(dot_avals[i]))
        return list(bind(revolve_p, *args[:n_known], *dots, **params))

    program = derived(
        jaxpr,
        ("revolve linear", given),
        lambda: stage(linear, [*jaxpr.in_avals[:n_known], *select(dot_avals, given)], jaxpr.name),
    )
    targets = tuple(i for i, need in enumerate(needs) if need)
    residuals = kept_residuals(known, operands, needs)
    return bind(revolve_p, *operands, **params), LinearProgram(program, targets, tuple(residuals))


def _revolve_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, jaxpr: Jaxpr, pullback: Jaxpr, n_known: int
) -> tuple[Any, ...]:
    known = operands[:n_known]
    filled = [
        zeros(aval.strong()) if type(ct) is Zero else ct
        for ct, aval in zip(cts, jaxpr.out_avals, strict=True)
    ]
    pulled = _call_binder(pullback)(pullback, *known, *filled)
    dots = zip(pulled, operands[n_known:], strict=True)
    return (*(None for _ in known), *(ct if is_linear(x) else None for ct, x in dots))


def _revolve_batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    jaxpr: Jaxpr,
    pullback: Jaxpr,
    n_known: int,
) -> tuple[Any, ...]:
    flags = tuple(dim is not None for dim in dims[:n_known])
    n_dots, n_outs = len(operands) - n_known, len(jaxpr.outvars)
    name = batch_axis.get()
    forward, _ = batch_jaxpr(jaxpr, size, (*flags, *(True,) * n_dots), True, name)
    backward, _ = batch_jaxpr(pullback, size, (*flags, *(True,) * n_outs), True, name)
    front = [
        x if dim is None and i < n_known else with_batch_axis(x, size, dim)
        for i, (x, dim) in enumerate(zip(operands, dims, strict=True))
    ]
    outs = bind(revolve_p, *front, jaxpr=forward, pullback=backward, n_known=n_known)
    return outs, (0,) * n_outs


revolve_p = Primitive(
    "revolve",
    impl=_revolve_impl,
    abstract_eval=_revolve_aval,
    jvp=Joint(_revolve_jvp),
    linearize=_revolve_linearize,
    transpose=_revolve_transpose,
    batch=_revolve_batch,
    lower=Structured("call"),
    holds_programs=True,
)
"""Tangents of a loop's results: ``(*known, *tangents) -> tangents``, linear in the tangents."""


# the primitive of the loop ----------------------------------------------------------------------


def _loop_of(jaxpr: Jaxpr) -> Equation:
    """The one equation of a loop's program."""
    (eqn,) = jaxpr.eqns
    return eqn


def _binomial_impl(*operands: object, jaxpr: Jaxpr, n: int) -> tuple[Any, ...]:
    return tuple(run(jaxpr, operands))


def _binomial_aval(*avals: Aval, jaxpr: Jaxpr, n: int) -> tuple[Aval, ...]:
    return jaxpr.out_avals


@dataclass(frozen=True, slots=True)
class _Rebinder:
    """Runs programs that rules derive from a loop's program, with their loops like it."""

    n: int

    def __call__(self, jaxpr: Jaxpr, *operands: object) -> tuple[Any, ...]:
        """Evaluate a program."""
        return tuple(bind_loops(jaxpr, operands, self.n))


def _binomial_jvp(primals: object, tangents: object, *, jaxpr: Jaxpr, n: int) -> Any:
    return call_jvp(_Rebinder(n), jaxpr, primals, tangents)  # type: ignore[arg-type]  # binds too


def _binomial_batch(
    size: int, operands: object, dims: object, *, jaxpr: Jaxpr, n: int
) -> tuple[Any, ...]:
    return call_batch(_Rebinder(n), jaxpr, size, operands, dims)  # type: ignore[arg-type]  # binds too


def _binomial_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, jaxpr: Jaxpr, n: int
) -> tuple[Any, ...]:
    return call_transpose(_call_binder(jaxpr), jaxpr, cts, operands)


def _binomial_prune(used: Flags, *, jaxpr: Jaxpr, n: int) -> tuple[Any, ...]:
    eqn = _loop_of(jaxpr)
    assert eqn.primitive.prune is not None
    params, inputs, outputs = eqn.primitive.prune(used, **eqn.params)
    avals = select(jaxpr.in_avals, inputs)
    program = derived(jaxpr, ("pruned", used), lambda: _loop_program(eqn.primitive, avals, params))
    return {"jaxpr": program, "n": n}, inputs, outputs


def _binomial_linearize(
    needs: Flags, operands: Sequence[Array | complex], *, jaxpr: Jaxpr, n: int
) -> tuple[tuple[Any, ...], LinearProgram]:
    eqn = _loop_of(jaxpr)
    if eqn.primitive is scan_p:
        shape = scan_shape(dict(eqn.params))
        body: Jaxpr = eqn.params["jaxpr"]
        n = min(n, shape.length or 1)
        outs, kept = forward_scan(body, shape, n, operands)
        _, consts, carry, xs = shape.unpack(operands)
        known, own_needs, n_first = [*consts, *xs, *kept], needs, 0
    else:
        n_cond, n_consts = eqn.params["n_cond_consts"], eqn.params["n_body_consts"]
        body = eqn.params["body_jaxpr"]
        cond_consts, consts, carry = split(operands, n_cond, n_consts)
        if _ends_within(n, eqn.params["cond_jaxpr"], body, cond_consts, consts, carry):
            plain = eqn.primitive.linearize
            assert plain is not None
            return plain(needs, operands, **eqn.params)
        shape = Shape(n_consts, len(carry), None, False, 1)
        xs = []
        number, outs, kept = forward_while(
            eqn.params["cond_jaxpr"], body, n, cond_consts, consts, carry
        )
        known, own_needs, n_first = [number, *consts, *kept], needs[n_cond:], n_cond
    const_needs, start, xs_needs = (
        tuple(part) for part in split(own_needs, shape.n_consts, shape.n_carry)
    )
    known = kept_residuals(known, operands, needs)
    known_avals = tuple(map(aval_of, known))
    program = _linear_program(body, shape, n, (const_needs, start, xs_needs), known_avals)
    targets = tuple(i + n_first for i, need in enumerate(own_needs) if need)
    return tuple(outs), LinearProgram(program, targets, tuple(known))


def _ends_within(
    n: int,
    cond: Jaxpr,
    body: Jaxpr,
    cond_consts: Sequence[Any],
    consts: Sequence[Any],
    carry: Sequence[Any],
) -> bool:
    """Whether a ``while`` of known values has at most ``n`` iterations, which can all be stored.

    It runs for that, at most ``n`` iterations; a schedule would run more again.
    """
    if any(isinstance(x, Tracer) for x in (*cond_consts, *consts, *carry)):
        return False
    n_cond, n_consts = len(cond_consts), len(consts)

    def holds(*args: object) -> list[Any]:
        own, (number,), state = split(args, n_cond, 1)
        return [ew.logical_and(evaluate(cond, [*own, *state])[0], number <= n)]

    def step(*args: object) -> list[Any]:
        own, (number,), state = split(args, n_consts, 1)
        return [number + 1, *evaluate(body, [*own, *state])]

    number_aval = aval_of(np.int64(0)).strong()

    def make() -> tuple[Jaxpr, Jaxpr]:
        states = [number_aval, *body.in_avals[n_consts:]]
        return (
            simplify(stage(holds, [*cond.in_avals[:n_cond], *states], cond.name)),
            simplify(stage(step, [*body.in_avals[:n_consts], *states], body.name)),
        )

    bounded, counting = derived(body, ("counted", cond, n), make)
    final, _ = bind_while(bounded, counting, cond_consts, consts, [np.int64(0), *carry])
    return bool(final[0] <= n)


@derivation
def _linear_program(
    body: Jaxpr,
    shape: Shape,
    n: int,
    needs: tuple[Flags, Flags, Flags],
    known_avals: tuple[Any, ...],
) -> Jaxpr:
    """``(*known, *tangents) -> tangents of all results``: one equation ``revolve``."""
    const_needs, start, xs_needs = needs
    c, k = shape.n_consts, shape.n_carry
    n_known = len(known_avals)
    n_first = int(shape.length is None)
    parts = reversal(body, shape, n, const_needs, start, xs_needs)
    carry_needs, ys_needs = parts.flags[1], parts.flags[3]
    consts, carry, xs = split(body.in_avals, c, k)
    dot_avals = [
        *(a.strong() for a in select(consts, const_needs)),
        *(a.strong() for a in select(carry, carry_needs)),
        *(shape.stacked(a.strong()) for a in select(xs, xs_needs)),
    ]
    label = f"linear part of {body.name}"

    def push(*args: object) -> list[Any]:
        """The tangents by forward mode, from the first state on."""
        known, dots = split(args, n_known)
        first, consts, xs, rows, rest = split(known, n_first, c, len(xs_needs), k)
        const_dots, carry_dots, x_dots = split(dots, sum(const_needs), sum(carry_needs))
        row = read_row(rest[1], np.int64(0))
        state = [read_row(x, row, aval) for x, aval in zip(rows, carry, strict=True)]
        program, carry_nz, ys_nz = jvp_body(body, const_needs, carry_needs, xs_needs)
        assert carry_nz == carry_needs
        final, ys = shape.bind(
            program, first, [*consts, *const_dots], [*state, *carry_dots], [*xs, *x_dots]
        )
        given = iter(ys[len(ys_nz) :])
        y_dots = [next(given) if flag else None for flag in ys_nz]
        stacks = [shape.stacked(a.strong()) for a in body.out_avals[k:]]
        return [
            *final[k:],
            *(
                zeros(aval) if dot is None else dot
                for dot, aval, need in zip(y_dots, stacks, ys_needs, strict=True)
                if need
            ),
        ]

    forward, _ = hoist(simplify(stage(push, [*known_avals, *dot_avals], label, name=body.name)))

    def pull(*args: object) -> list[Any]:
        return pull_back_loop(parts, args[:n_known], args[n_known:])

    ct_avals = [aval.strong() for aval in forward.out_avals]
    staged = stage(pull, [*known_avals, *ct_avals], f"transpose of {label}", name=body.name)
    backward = simplify(staged)
    out_avals = [aval.strong() for aval in (*carry, *map(shape.stacked, body.out_avals[k:]))]

    def linear(*args: object) -> list[Any]:
        const_dots, given, x_dots = split(args[n_known:], sum(const_needs), sum(start))
        carry_dots = spread(start, given, lambda i: zeros(carry[i].strong()))
        dots = [*const_dots, *select(carry_dots, carry_needs), *x_dots]
        outs = bind(
            revolve_p, *args[:n_known], *dots, jaxpr=forward, pullback=backward, n_known=n_known
        )
        return spread((*carry_needs, *ys_needs), outs, lambda i: zeros(out_avals[i]))

    tangent_avals = [
        *(a.strong() for a in select(consts, const_needs)),
        *(a.strong() for a in select(carry, start)),
        *(shape.stacked(a.strong()) for a in select(xs, xs_needs)),
    ]
    return stage(linear, [*known_avals, *tangent_avals], label)


binomial_p = Primitive(
    "binomial",
    impl=_binomial_impl,
    abstract_eval=_binomial_aval,
    jvp=Joint(_binomial_jvp),
    linearize=_binomial_linearize,
    transpose=_binomial_transpose,
    takes_masks=True,
    batch=_binomial_batch,
    prune=_binomial_prune,
    lower=Structured("call"),
    holds_programs=True,
)
"""A loop, whose program is the parameter ``jaxpr``, that keeps ``n`` states for reverse mode."""


def _loop_program(primitive: Primitive, avals: Sequence[Any], params: dict[str, Any]) -> Jaxpr:
    """A program of one equation."""
    name = params["jaxpr" if primitive is scan_p else "body_jaxpr"].name

    def run(*operands: Array) -> list[Any]:
        return list(bind(primitive, *operands, **params))

    return intern(stage(run, avals, name, name=name))


def bind_loops(jaxpr: Jaxpr, args: Sequence[Any], n: int) -> list[Any]:
    """Evaluate a program whose loops are to keep ``n`` states each for reverse mode.

    Loops with effects, which do not happen twice, and loops over tapes stay as they are.
    """
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    env.update(zip(jaxpr.constvars, jaxpr.consts, strict=True))

    def value(atom: object) -> Any:
        return atom.value if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        operands = [value(atom) for atom in eqn.inputs]
        outs: Sequence[Any]
        if _can_revolve(eqn, n):
            avals = tuple(atom.aval for atom in eqn.inputs)
            make = functools.partial(_loop_program, eqn.primitive, avals, dict(eqn.params))
            program = derived(jaxpr, ("loop", eqn), make)
            outs = bind(binomial_p, *operands, jaxpr=program, n=n)
        elif eqn.primitive.is_call:
            outs = bind_loops(eqn.params["jaxpr"], operands, n)
        else:
            outs = bind(eqn.primitive, *operands, **eqn.params)
        env.update(zip(eqn.outputs, outs, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _can_revolve(eqn: Equation, n: int) -> bool:
    """Whether an equation is a loop over arrays that may run again, and would have to."""
    if eqn.effects or any(type(var.aval) is Tape for var in (*eqn.inputs, *eqn.outputs)):
        return False
    if eqn.primitive is scan_p:
        return bool(eqn.params["length"] > n)
    return eqn.primitive is while_p


PRIMITIVES: tuple[Primitive, ...] = (binomial_p, revolve_p)
