"""Functions with derivative rules of their own as equations: the primitives behind the decorators.

Here: the primitives ``custom_jvp``, ``custom_vjp`` and ``linear_call``. Not here: the decorators
(``control.custom_rules``), the calling conventions of users' rules (``control.rule_conventions``).

A call is one equation until it is differentiated. Where values are at hand (in ``grad``, ``jvp``)
its parameter is the Python function, which runs on values, so that ``if`` works in it; when the
equation is put into a program, the function is staged (``_stage_call``). Traced values that the
function or its rules refer to are operands (``control.closures``): the derivative in the arguments
is the rule's, that in what the function refers to is the function's own.

``custom_jvp``: the rule, staged in its tangents, is the linear part; transposed, it gives reverse
mode. ``custom_vjp``: the linear part is a ``linear_call``, whose transpose is the user's backward
function; transposed, that gives forward mode, unless there is a rule for that besides.

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.control.call_records import (
    BatchedJvpCall,
    BatchedPullback,
    BatchedVjpCall,
    Call,
    JvpCall,
    Pullback,
    VjpCall,
    only_traces_of,
)
from functrans.control.calls import (
    Binder,
    call_jvp,
    call_linearize,
    call_transpose,
    kept_residuals,
    to_front,
)
from functrans.control.inline import inline_calls
from functrans.control.native import jit_p, run
from functrans.core.avals import Aval, Zero, is_differentiable_dtype
from functrans.core.dispatch import Tracer, aval_of, bind, tracing
from functrans.core.jaxpr import Jaxpr
from functrans.core.lowering import Expansion, Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import here
from functrans.core.state import batch_axis
from functrans.core.values import Array, Operand
from functrans.errors import NonDifferentiableError
from functrans.passes.cotangents import add_cotangents, instantiate, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram, input_node, ordered_nodes
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    hoist,
    jvp_jaxpr,
    select,
    split,
    spread,
)
from functrans.passes.pullback import transpose_linear
from functrans.passes.pushforward import push_forward
from functrans.passes.pushing import PushingTrace, PushingTracer
from functrans.passes.recording import RecordingTrace, RecordingTracer
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage

_CALL = Binder(jit_p, (("name", "custom"),))


# what both primitives share ---------------------------------------------------------------------


def _parts(operands: Sequence[Any], call: Call, n_extra: int) -> tuple[list[Any], ...]:
    """What the staged function captured besides, what it refers to, arguments."""
    extra, closed, args = split(operands, n_extra, call.n_closed)
    return extra, closed, args


def _call_impl(*operands: Array, call: Call, jaxpr: Jaxpr | None, n_extra: int) -> tuple[Any, ...]:
    if jaxpr is not None:
        return tuple(run(jaxpr, operands))
    _, closed, args = _parts(operands, call, n_extra)
    return tuple(call.primal(closed, list(map(guarded, args))))


def guarded(value: Array | complex) -> Any:
    """A value to run a user's function on: an array that it cannot write to by mistake."""
    if type(value) is np.ndarray and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def _call_aval(*avals: Aval, call: Call, jaxpr: Jaxpr | None, n_extra: int) -> tuple[Aval, ...]:
    if jaxpr is None:
        raise TypeError(
            f"{call.label} has not been staged, so that the types of its results are unknown"
        )
    return jaxpr.out_avals


def _stage_call(
    operands: tuple[Any, ...], *, call: Call, jaxpr: Jaxpr | None, n_extra: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call with its function as a program."""
    if jaxpr is not None:
        return operands, {"call": call, "jaxpr": jaxpr, "n_extra": n_extra}
    program = stage(
        lambda *args: call.primal(*split(args, call.n_closed)),
        [aval_of(operand) for operand in operands],
        call.label,
        name=call.label,
    )
    staged, captured = hoist(simplify(inline_calls(program, jit_p)))
    return (*captured, *operands), {"call": call, "jaxpr": staged, "n_extra": len(captured)}


def _call_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, call: Call, jaxpr: Jaxpr | None, n_extra: int
) -> tuple[Any, ...]:
    """The transpose of a call that is linear itself, rule or not."""
    assert jaxpr is not None  # what is transposed has been staged
    return call_transpose(_CALL, jaxpr, cts, operands)


def _refuse(call: Call, closed_needs: Sequence[bool]) -> None:
    """Refuse derivatives in what the rule does not cover and the user excluded."""
    for reason, need in zip(call.refused, closed_needs, strict=True):
        if need and reason is not None:
            raise NonDifferentiableError(f"{call.label}: {reason}{here()}")


def _closure_tangents(
    primitive: Primitive,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    call: Call,
    jaxpr: Jaxpr | None,
    n_extra: int,
) -> list[Any]:
    """Tangents of the results in what the function refers to; arguments stand still."""
    n = n_extra + call.n_closed
    if jaxpr is not None:
        nonzero = tuple(type(t) is not Zero for t in tangents[:n]) + (False,) * (len(primals) - n)
        program, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
        outs = bind(jit_p, *primals, *select(tangents, nonzero), jaxpr=program, name=call.label)
        return spread(out_nonzero, outs[len(jaxpr.outvars) :], lambda i: None)
    trace = PushingTrace(call.label)
    _, closed, args = _parts(primals, call, n_extra)
    with tracing(trace):
        tracers = [
            value if type(t) is Zero else PushingTracer(trace, value, t)
            for value, t in zip(closed, tangents[n_extra:n], strict=True)
        ]
        results = call.primal(tracers, list(map(guarded, args)))
    return trace.taken_apart(results)[1]


def _closure_nodes(
    needs: Flags, operands: Sequence[Any], call: Call, jaxpr: Jaxpr | None, n_extra: int
) -> tuple[list[Any], list[Any]]:
    """Nodes of the inputs and of the results in what the function refers to."""
    n = n_extra + call.n_closed
    trace = RecordingTrace(call.label)
    with tracing(trace):
        inputs = [
            input_node(value) if need else None
            for value, need in zip(operands[:n], needs[:n], strict=True)
        ]
        tracers = [
            value if node is None else RecordingTracer(trace, value, node)
            for value, node in zip(operands[:n], inputs, strict=True)
        ]
        if jaxpr is not None:
            outs = evaluate(jaxpr, [*tracers, *operands[n:]])
        else:
            outs = call.primal(tracers[n_extra:], list(map(guarded, operands[n:])))
    _, nodes = trace.taken_apart(outs)
    return [node for node in inputs if node is not None], nodes


def _sum(first: object, second: object) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return add_cotangents(first, second)


def _linear_part(
    call: Call,
    needs: Flags,
    operands: Sequence[Array | complex],
    n_lead: int,
    outs: Sequence[Any],
    rule: Callable[[list[Any]], Sequence[Any]],
    closure: tuple[list[Any], list[Any]] | None,
) -> LinearProgram:
    """The linear part of a call: the rule's in the arguments, the function's own in the rest."""
    targets = tuple(i for i, need in enumerate(needs) if need)
    n_lead_dots = sum(needs[:n_lead])
    arg_needs = needs[n_lead:]

    def linear(*dots: Array) -> list[Any]:
        lead, given = split(dots, n_lead_dots)
        total: list[Any] = [None] * len(outs)
        if any(arg_needs):
            total = list(rule(spread(arg_needs, given, lambda i: None)))
        if closure is not None:
            inputs, nodes = closure
            ordered = ordered_nodes([node for node in nodes if node is not None])
            own = push_forward(ordered, list(zip(inputs, lead, strict=True)), nodes)
            total = [_sum(a, b) for a, b in zip(total, own, strict=True)]
        return [
            zeros(aval_of(out).strong()) if t is None else t
            for t, out in zip(total, outs, strict=True)
        ]

    avals = [aval_of(operands[i]).strong() for i in targets]
    jaxpr = stage(linear, avals, f"linear part of {call.label}", name=call.label)
    consts = kept_residuals(jaxpr.consts, operands, needs)
    return LinearProgram(replace(jaxpr, consts=tuple(consts), cache={}), targets, ())


def _instantiated(call: JvpCall, tangents: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Tangents as arrays; ``None`` for integers, and for zeros if the rule takes that."""
    if call.takes_zeros:
        return [None if type(t) is Zero else t for t in tangents]
    return [
        (zeros(aval_of(x).strong()) if t is None or type(t) is Zero else t)
        if is_differentiable_dtype(aval_of(x).dtype)
        else None
        for t, x in zip(tangents, args, strict=True)
    ]


# custom_jvp -------------------------------------------------------------------------------------


def _custom_jvp_jvp(
    primals: tuple[Array | complex, ...],
    tangents: tuple[Any, ...],
    *,
    call: JvpCall,
    jaxpr: Jaxpr | None,
    n_extra: int,
) -> tuple[Any, ...]:
    _, closed, args = _parts(primals, call, n_extra)
    n = len(primals) - len(args)
    _refuse(call, [type(t) is not Zero for t in tangents[n_extra:n]])
    has_args = any(type(t) is not Zero for t in tangents[n:])
    has_closed = any(type(t) is not Zero for t in tangents[:n])
    if has_args:
        given = _instantiated(call, tangents[n:], args)
        with only_traces_of([*primals, *tangents]):
            outs, dots = call.jvp(closed, list(map(guarded, args)), given)
    else:
        outs = list(bind(custom_jvp_p, *primals, call=call, jaxpr=jaxpr, n_extra=n_extra))
        dots = [None] * len(outs)
    if has_closed:
        own = _closure_tangents(custom_jvp_p, primals, tangents, call, jaxpr, n_extra)
        dots = [_sum(a, b) for a, b in zip(dots, own, strict=True)]
    return outs, [
        Zero(aval_of(out).strong()) if t is None else t for t, out in zip(dots, outs, strict=True)
    ]


def _custom_jvp_linearize(
    needs: Flags, operands: Sequence[Array], *, call: JvpCall, jaxpr: Jaxpr | None, n_extra: int
) -> tuple[tuple[Any, ...], LinearProgram]:
    _, closed, args = _parts(operands, call, n_extra)
    n = len(operands) - len(args)
    _refuse(call, needs[n_extra:n])
    closure = _closure_nodes(needs, operands, call, jaxpr, n_extra) if any(needs[:n]) else None
    arg_needs = needs[n:]
    wanted = [aval_of(arg).strong() for arg in select(args, arg_needs)]
    results: list[Any] = []

    def dots_of(*given: Array) -> list[Any]:
        tangents = spread(arg_needs, given, lambda i: None)
        outs, dots = call.jvp(closed, list(map(guarded, args)), _instantiated(call, tangents, args))
        results.append((outs, [t is not None for t in dots]))
        return [t for t in dots if t is not None]

    if any(arg_needs):
        staged = stage(dots_of, wanted, f"tangents of {call.label}", name=call.label)
        ((outs, has_dot),) = results
        _check_primal(call, outs, staged)

        def rule(tangents: list[Any]) -> list[Any]:
            given = [t for t in tangents if t is not None]
            return spread(has_dot, evaluate(staged, given), lambda i: None)
    else:
        outs = list(bind(custom_jvp_p, *operands, call=call, jaxpr=jaxpr, n_extra=n_extra))

        def rule(tangents: list[Any]) -> list[Any]:
            return [None] * len(outs)

    return tuple(outs), _linear_part(call, needs, operands, n, outs, rule, closure)


def _check_primal(call: Call, outs: Sequence[Any], staged: Jaxpr) -> None:
    """Refuse results that depend on tangents."""
    for i, out in enumerate(outs):
        if isinstance(out, Tracer) and not out._trace.is_open:
            raise NonDifferentiableError(
                f"{call.label}: result {i} of the rule was computed from tangents; it must be the "
                "value of the function, which does not depend on them"
            )


def _custom_jvp_batch(
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    *,
    call: JvpCall,
    jaxpr: Jaxpr,
    n_extra: int,
) -> tuple[Any, ...]:
    flags = tuple(dim is not None for dim in dims)
    axis_name = batch_axis.get()
    program, _ = batch_jaxpr(jaxpr, size, flags, True, axis_name)
    batched = BatchedJvpCall(call, size, flags[n_extra:], axis_name)
    front = to_front(size, operands, dims)
    outs = bind(custom_jvp_p, *front, call=batched, jaxpr=program, n_extra=n_extra)
    return outs, (0,) * len(outs)


custom_jvp_p = Primitive(
    "custom_jvp",
    impl=_call_impl,
    abstract_eval=_call_aval,
    jvp=Joint(_custom_jvp_jvp),
    linearize=_custom_jvp_linearize,
    transpose=_call_transpose,
    takes_masks=True,
    batch=_custom_jvp_batch,
    stage=_stage_call,
    holds_programs=True,
    lower=Structured("call"),
)


# custom_vjp -------------------------------------------------------------------------------------


def _bind_linear(
    pullback: Pullback, residuals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    """Bind the linear part: tangents of the arguments in, tangents of the results out.

    Args:
      pullback: the transpose.
      residuals: what it reads.
      tangents: per argument, ``None`` where there is none.
      outs: the results.
    """
    wanted = tuple(t is not None for t in tangents)
    out_avals = tuple(aval_of(out).strong() for out in outs)
    return bind(
        linear_call_p,
        *residuals,
        *(t for t in tangents if t is not None),
        pullback=pullback,
        n_residuals=len(residuals),
        wanted=wanted,
        out_avals=out_avals,
    )


def _custom_vjp_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call: VjpCall,
    jaxpr: Jaxpr | None,
    n_extra: int,
) -> tuple[Any, ...]:
    _, closed, args = _parts(primals, call, n_extra)
    n = len(primals) - len(args)
    _refuse(call, [type(t) is not Zero for t in tangents[n_extra:n]])
    given = [None if type(t) is Zero else t for t in tangents[n:]]
    if any(t is not None for t in given):
        with only_traces_of([*primals, *tangents]):
            pushed = call.push(list(map(guarded, args)), given)
            if pushed is None:
                perturbed = tuple(t is not None for t in given)
                outs, residuals, pullback = call.forward(
                    closed, list(map(guarded, args)), perturbed
                )
                dots = list(_bind_linear(pullback, residuals, given, outs))
            else:
                outs, dots = pushed
    else:
        outs = list(bind(custom_vjp_p, *primals, call=call, jaxpr=jaxpr, n_extra=n_extra))
        dots = [None] * len(outs)
    if any(type(t) is not Zero for t in tangents[:n]):
        own = _closure_tangents(custom_vjp_p, primals, tangents, call, jaxpr, n_extra)
        dots = [_sum(a, b) for a, b in zip(dots, own, strict=True)]
    return outs, [
        Zero(aval_of(out).strong()) if t is None else t for t, out in zip(dots, outs, strict=True)
    ]


def _custom_vjp_linearize(
    needs: Flags,
    operands: Sequence[Array | complex],
    *,
    call: VjpCall,
    jaxpr: Jaxpr | None,
    n_extra: int,
) -> tuple[tuple[Any, ...], LinearProgram]:
    _, closed, args = _parts(operands, call, n_extra)
    n = len(operands) - len(args)
    _refuse(call, needs[n_extra:n])
    closure = _closure_nodes(needs, operands, call, jaxpr, n_extra) if any(needs[:n]) else None
    if any(needs[n:]):
        outs, residuals, pullback = call.forward(closed, list(map(guarded, args)), needs[n:])
        outs = list(map(_recorded_constant, outs))
        residuals = list(map(_recorded_constant, residuals))
    else:
        outs = list(bind(custom_vjp_p, *operands, call=call, jaxpr=jaxpr, n_extra=n_extra))

    def rule(tangents: list[Any]) -> Sequence[Any]:
        return _bind_linear(pullback, residuals, tangents, outs)

    return tuple(outs), _linear_part(call, needs, operands, n, outs, rule, closure)


def _recorded_constant(value: Operand) -> Any:
    """The value of a tracer on which no derivative depends; its trace closes before it is used."""
    while type(value) is RecordingTracer and value._node is None:
        value = value._value
    return value


def _custom_vjp_batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    call: VjpCall,
    jaxpr: Jaxpr,
    n_extra: int,
) -> Any:
    n = n_extra + call.n_closed
    n_mapped = call.n_mapped
    if n_mapped == len(jaxpr.outvars):
        return call.mapped(size, operands[n:], dims[n:])
    flags = tuple(dim is not None for dim in dims)
    axis_name = batch_axis.get()
    program, _ = batch_jaxpr(jaxpr, size, flags, True, axis_name)
    batched = BatchedVjpCall(call, size, flags[n_extra:], axis_name)
    front = to_front(size, operands, dims)
    outs = bind(custom_vjp_p, *front, call=batched, jaxpr=program, n_extra=n_extra)
    if n_mapped is None:
        return outs, (0,) * len(outs)
    # What is saved besides the results is that of the program; the rule may write to operands.
    mapped = call.mapped(size, operands[n:], dims[n:])
    assert mapped is not None
    own, own_dims = mapped
    return (*own, *outs[n_mapped:]), (*own_dims, *(0,) * (len(outs) - n_mapped))


custom_vjp_p = Primitive(
    "custom_vjp",
    impl=_call_impl,
    abstract_eval=_call_aval,
    jvp=Joint(_custom_vjp_jvp),
    linearize=_custom_vjp_linearize,
    transpose=_call_transpose,
    takes_masks=True,
    batch=_custom_vjp_batch,
    stage=_stage_call,
    holds_programs=True,
    lower=Structured("call"),
)


# linear_call ------------------------------------------------------------------------------------


def _pulled(
    pullback: Pullback, residuals: Sequence[Any], cts: Sequence[Any], wanted: Flags
) -> list[Any]:
    """Cotangents of the wanted arguments."""
    return select(pullback.pull(residuals, cts), wanted)


def _push(
    *operands: object,
    pullback: Pullback,
    n_residuals: int,
    wanted: Flags,
    out_avals: tuple[Any, ...],
) -> list[Any]:
    """The linear function: the user's, or the transpose of the user's backward function."""
    residuals, dots = split(operands, n_residuals)
    if pullback.has_push:
        return pullback.push(residuals, spread(wanted, dots, lambda i: None))
    found: list[bool] = []

    def backward(*cts: Any) -> list[Any]:
        pulled = _pulled(pullback, residuals, _of_all(cts, out_avals), wanted)
        found.extend(ct is not None for ct in pulled)
        return [ct for ct in pulled if ct is not None]

    real = [is_differentiable_dtype(aval.dtype) for aval in out_avals]
    jaxpr = stage(backward, select(out_avals, real), pullback.label, name=pullback.label)
    try:
        outs = transpose_linear(jaxpr, (), select(dots, found))
    except NonDifferentiableError as error:
        raise NonDifferentiableError(
            f"{pullback.label}: the backward function is not linear in the cotangent, so that it "
            f"cannot be transposed for forward mode ({error})"
        ) from None
    pushed = iter(outs)
    return [
        instantiate(next(pushed)) if flag else zeros(aval)
        for flag, aval in zip(real, out_avals, strict=True)
    ]


def _of_all(cts: Sequence[Any], out_avals: Sequence[Any]) -> list[Any]:
    """Cotangents of all results; ``None`` for integers."""
    real = [is_differentiable_dtype(aval.dtype) for aval in out_avals]
    return spread(real, cts, lambda i: None)


def _linear_call_impl(*operands: Any, **params: Any) -> tuple[Any, ...]:
    return tuple(_push(*operands, **params))


def _linear_call_aval(*avals: Aval, out_avals: tuple[Aval, ...], **_: object) -> tuple[Aval, ...]:
    return out_avals


def _as_program(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The linear function as a program, for derivatives in the residuals too."""
    avals = [aval_of(operand) for operand in operands]
    return hoist(stage(lambda *args: _push(*args, **params), avals, params["pullback"].label))


def _linear_call_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: object) -> Any:
    jaxpr, captured = _as_program(primals, params)
    still = [Zero(aval_of(value)) for value in captured]
    return call_jvp(_CALL, jaxpr, [*captured, *primals], [*still, *tangents])


def _linear_call_linearize(
    needs: Flags, operands: Sequence[Any], **params: object
) -> tuple[tuple[Any, ...], LinearProgram]:
    jaxpr, captured = _as_program(operands, params)
    flags = (False,) * len(captured) + tuple(needs)
    outs, program = call_linearize(_CALL, jaxpr, flags, [*captured, *operands])
    targets = tuple(i - len(captured) for i in program.targets)
    return outs, LinearProgram(program.jaxpr, targets, program.residuals)


def _linear_call_transpose(
    cts: Sequence[Any],
    operands: Sequence[Any],
    *,
    pullback: Pullback,
    n_residuals: int,
    wanted: Flags,
    out_avals: tuple[Any, ...],
) -> tuple[Any, ...]:
    residuals, dots = split(operands, n_residuals)
    if any(map(is_linear, residuals)):
        raise NonDifferentiableError(
            f"{pullback.label}: cannot be transposed in its residuals{here()}"
        )
    given = [
        None
        if not is_differentiable_dtype(aval.dtype) or (pullback.takes_zeros and type(ct) is Zero)
        else instantiate(ct)
        for ct, aval in zip(cts, out_avals, strict=True)
    ]
    pulled = _pulled(pullback, residuals, given, wanted)
    return (
        *(None for _ in residuals),
        *(ct if is_linear(dot) else None for ct, dot in zip(pulled, dots, strict=True)),
    )


def _linear_call_batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    pullback: Pullback,
    n_residuals: int,
    wanted: Flags,
    out_avals: tuple[Any, ...],
) -> tuple[Any, ...]:
    flags = tuple(dim is not None for dim in dims)
    dots = iter(flags[n_residuals:])
    arg_flags = tuple(next(dots) if flag else True for flag in wanted)
    batched = BatchedPullback(
        pullback, size, flags[:n_residuals], (True,) * len(out_avals), arg_flags, batch_axis.get()
    )
    outs = bind(
        linear_call_p,
        *to_front(size, operands, dims),
        pullback=batched,
        n_residuals=n_residuals,
        wanted=wanted,
        out_avals=tuple(replace(aval, shape=(size, *aval.shape)) for aval in out_avals),
    )
    return outs, (0,) * len(outs)


linear_call_p = Primitive(
    "linear_call",
    impl=_linear_call_impl,
    abstract_eval=_linear_call_aval,
    jvp=Joint(_linear_call_jvp),
    linearize=_linear_call_linearize,
    transpose=_linear_call_transpose,
    batch=_linear_call_batch,
    lower=Expansion(_linear_call_impl),
    memory="held",
)

PRIMITIVES: tuple[Primitive, ...] = (custom_jvp_p, custom_vjp_p, linear_call_p)

_RULED = (custom_jvp_p, custom_vjp_p)


def without_rules(jaxpr: Jaxpr) -> tuple[Jaxpr, bool]:
    """The program without rules of users, which are Python functions, and whether it had any.

    It evaluates to the same; it may have other derivatives. Calls that carry annotations stay.
    """
    program, has_rules = jaxpr, False
    for primitive in _RULED * 2:  # rules within the other kind's, too
        inlined = inline_calls(program, primitive)
        while inlined is not program:
            program, has_rules = inlined, True
            inlined = inline_calls(program, primitive) if not program.annotations else program
    eqns = []
    for eqn in program.eqns:
        params = {key: _value_without_rules(value) for key, value in eqn.params.items()}
        changed = any(value is not eqn.params[key] for key, value in params.items())
        eqns.append(replace(eqn, params=params) if changed else eqn)
        has_rules = has_rules or changed
    if all(new is old for new, old in zip(eqns, program.eqns, strict=True)):
        return program, has_rules
    if program.annotations:
        new_of = dict(zip(program.eqns, eqns, strict=True))
        notes = {new_of.get(key, key): value for key, value in program.annotations.items()}
        return replace(program, eqns=tuple(eqns), annotations=notes, cache={}), True
    return replace(program, eqns=tuple(eqns), cache={}), True


def _value_without_rules(value: Any) -> Any:
    """A parameter whose programs have no rules; itself if they had none."""
    if isinstance(value, Jaxpr):
        program, has_rules = without_rules(value)
        return program if has_rules else value
    if isinstance(value, tuple):
        items = tuple([_value_without_rules(item) for item in value])
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value
