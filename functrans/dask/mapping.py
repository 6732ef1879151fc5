"""The primitive ``distributed_map``: programs evaluated for each part of data, or each item.

Here: the primitive with all its rules. Not here: how a program runs on workers (``running``,
``totals``), where parts come from (``chunks``), what users call (``sums``, ``items``).

An operand is the same for all parts, or *mapped*: each part gets its element along the first axis.
A result is *added up*, or stacked along a new first axis. Sums and stacks are linear in the results
of parts, so every derivative of a map is the map of a derived program. Transposition swaps the
kinds: the cotangent of an operand that all parts share is added up, that of a result that was added
up is shared. The gradient of one sum is computed together with it, in one pass over the data.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from functrans.control.calls import is_nonzero, kept_residuals
from functrans.core.avals import Aval
from functrans.core.dispatch import aval_of, bind, tracing
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.state import batch_axis
from functrans.dask.chunks import Chunks
from functrans.dask.exchange import evaluate_shards
from functrans.dask.staged import Programs
from functrans.dask.totals import evaluate_parts
from functrans.passes.batch import named_axes
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    batched_aval,
    derivation,
    jvp_jaxpr,
    linearize_jaxpr,
    prune_jaxpr,
    select,
    spread,
    tangent_avals,
    transpose_jaxpr,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import StagingTrace, stage
from functrans.primitives.structural import moveaxis, reduce_sum
from functrans.records import dataclass, replace


def _first(programs: Programs, operands: Sequence[Any]) -> int:
    """How many arguments of a program are the part's."""
    return len(programs[0].invars) - len(operands)


@dataclass(frozen=True, slots=True)
class Flow:
    """What goes to which part, and what becomes of results.

    Attributes:
      mapped: per operand, whether each part gets its element along the first axis.
      summed: per result, whether those of the parts are added up, and not stacked.
      axis_name: of the axis of parts, which collectives in a program may refer to.
    """

    mapped: Flags
    summed: Flags
    axis_name: str | None = None


def bind_map(
    programs: Programs, chunks: Chunks, flow: Flow, operands: Sequence[Any]
) -> tuple[Any, ...]:
    """Apply programs ``(*part, *operands) -> results``, one for each kind of part."""
    return bind(distributed_map_p, *operands, programs=programs, chunks=chunks, flow=flow)


def _widened(program: Jaxpr, own: Flags, wanted: Flags, avals: Sequence[Aval]) -> Jaxpr:
    """The program with zeros for results that only other kinds of parts have."""
    if own == wanted:
        return program

    def run(*args: object) -> list[Any]:
        found = spread(own, evaluate(program, args), lambda i: zeros(avals[i].strong()))
        return select(found, wanted)

    return stage(run, program.in_avals, f"results of {program.name}", name=program.name)


def _named(kind: str, program: Jaxpr) -> Jaxpr:
    """The program under the name that progress shows, such as ``grad[loss]``."""
    return replace(program, name=f"{kind}[{program.name.removesuffix('_transpose')}]", cache={})


def _named_axes(chunks: Chunks, flow: Flow) -> Any:
    """Opens the axis of parts for users' rules that are run when a program is derived."""
    if flow.axis_name is None:
        return nullcontext()
    return tracing(StagingTrace("shard_map", {flow.axis_name: len(chunks)}))


# rules ------------------------------------------------------------------------------------------


def _impl(*operands: Any, programs: Programs, chunks: Chunks, flow: Flow) -> tuple[Any, ...]:
    if not len(chunks):
        avals = _out_avals(programs=programs, chunks=chunks, flow=flow)
        return tuple(np.zeros(aval.shape, aval.dtype) for aval in avals)
    if flow.axis_name is not None and flow.axis_name in named_axes(programs[0]):
        found = evaluate_shards(
            programs[0], chunks, operands, flow.mapped, flow.summed, flow.axis_name
        )
    else:
        found = evaluate_parts(programs, chunks, operands, flow.mapped, flow.summed)
    avals = programs[0].out_avals
    return tuple(np.asarray(v, aval.dtype) for v, aval in zip(found, avals, strict=True))


def _out_avals(*avals: Aval, programs: Programs, chunks: Chunks, flow: Flow) -> tuple[Aval, ...]:
    outs = [aval.strong() for aval in programs[0].out_avals]
    return tuple(
        aval if is_summed else batched_aval(aval, len(chunks))
        for aval, is_summed in zip(outs, flow.summed, strict=True)
    )


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    programs: Programs,
    chunks: Chunks,
    flow: Flow,
) -> tuple[Sequence[Any], Sequence[Any]]:
    nonzero = is_nonzero(tangents)
    flags = (False,) * _first(programs, primals) + nonzero
    with _named_axes(chunks, flow):
        pushed = tuple(_pushed(program, flags) for program in programs)
    own = Flow((*flow.mapped, *select(flow.mapped, nonzero)), flow.summed * 2, flow.axis_name)
    results = bind_map(pushed, chunks, own, [*primals, *select(tangents, nonzero)])
    n = len(programs[0].outvars)
    return results[:n], results[n:]


@derivation
def _pushed(program: Jaxpr, nonzero: Flags) -> Jaxpr:
    return _named("jvp", jvp_jaxpr(program, nonzero, True)[0])


@derivation
def _tangents(program: Jaxpr, nonzero: Flags) -> Jaxpr:
    """``(*part, *operands, *tangents) -> tangents``: what is linear is apart from the rest."""
    parts = linearize_jaxpr(program, nonzero, True)
    n = len(program.invars)

    def run(*args: Any) -> list[Any]:
        residuals = evaluate(parts.primal, args[:n])[len(program.outvars) :]
        return list(evaluate(parts.linear, [*residuals, *args[n:]]))

    avals = [*program.in_avals, *select(tangent_avals(program.in_avals), nonzero)]
    label = f"tangents of {program.name}"
    return simplify(stage(run, avals, label, name=f"jvp[{program.name}]"))


@derivation
def _with_gradients(program: Jaxpr, needs: Flags) -> Jaxpr:
    """``(*part, *operands) -> (value, *gradients of operands that need them)``."""
    parts = linearize_jaxpr(program, needs, True)
    flags = (False,) * parts.n_residuals + (True,) * sum(needs)
    pulled, found = transpose_jaxpr(parts.linear, flags, (True,))
    avals = select(program.in_avals, needs)

    def run(*args: Any) -> list[Any]:
        value, *residuals = evaluate(parts.primal, args)
        one = np.ones((), program.out_avals[0].dtype)
        cts = evaluate(pulled, [*residuals, one])
        return [value, *spread(found, cts, lambda i: zeros(avals[i].strong()))]

    label = f"gradient of {program.name}"
    return simplify(stage(run, program.in_avals, label, name=f"grad[{program.name}]"))


def _linearize(
    needs: Flags, operands: Sequence[Any], *, programs: Programs, chunks: Chunks, flow: Flow
) -> tuple[tuple[Any, ...], LinearProgram]:
    outs = programs[0].out_avals
    targets = tuple(i for i, need in enumerate(needs) if need)
    flags = (False,) * _first(programs, operands) + tuple(needs)
    mapped = tuple(select(flow.mapped, needs))
    if flow.summed == (True,) and outs[0].shape == () and outs[0].dtype.kind == "f":
        with _named_axes(chunks, flow):
            graded = tuple(_with_gradients(program, flags) for program in programs)
        summed = (True, *(not flag for flag in mapped))
        value, *gradients = bind_map(
            graded, chunks, Flow(flow.mapped, summed, flow.axis_name), operands
        )
        avals = tuple(aval_of(gradient) for gradient in gradients)
        return (value,), LinearProgram(
            _inner_products(programs[0], avals), targets, tuple(gradients)
        )
    values = bind_map(programs, chunks, flow, operands)
    with _named_axes(chunks, flow):
        pushed = tuple(_tangents(program, flags) for program in programs)
    own = Flow((*flow.mapped, *mapped), flow.summed, flow.axis_name)

    def linear(*args: Any) -> tuple[Any, ...]:
        return bind_map(pushed, chunks, own, args)

    label = f"linear part of the sum of {programs[0].name}"
    avals = tuple(aval_of(operand).strong() for operand in operands)
    given = [*avals, *select(tangent_avals(avals), needs)]
    whole = stage(linear, given, label, name=programs[0].name)
    residuals = kept_residuals(operands, operands, needs)
    return values, LinearProgram(whole, targets, tuple(residuals))


@derivation
def _inner_products(program: Jaxpr, avals: tuple[Any, ...]) -> Jaxpr:
    """``(*gradients, *tangents) -> the tangent of the one result``."""
    n = len(avals)

    def run(*args: Any) -> list[Any]:
        terms = [
            reduce_sum(g * t, tuple(range(len(aval.shape))))
            for g, t, aval in zip(args[:n], args[n:], avals, strict=True)
        ]
        return [sum(terms[1:], terms[0])]

    return stage(run, [*avals, *avals], f"linear part of the sum of {program.name}")


def _transpose(
    cts: Sequence[Any],
    operands: Sequence[Any],
    *,
    programs: Programs,
    chunks: Chunks,
    flow: Flow,
) -> tuple[Any, ...]:
    linear = tuple(map(is_linear, operands))
    flags = (False,) * _first(programs, operands) + linear
    nonzero = is_nonzero(cts)
    with _named_axes(chunks, flow):
        made = [transpose_jaxpr(program, flags, nonzero) for program in programs]
    wanted = tuple(map(any, zip(*(own for _, own in made), strict=True)))
    avals = select(programs[0].in_avals, flags)
    pulled = tuple(_widened(_named("grad", program), own, wanted, avals) for program, own in made)
    known = [not flag for flag in linear]
    own_flow = Flow(
        (*select(flow.mapped, known), *(not flag for flag in select(flow.summed, nonzero))),
        tuple(not flag for flag in select(select(flow.mapped, linear), wanted)),
        flow.axis_name,
    )
    given = [*select(operands, known), *select(cts, nonzero)]
    results = iter(bind_map(pulled, chunks, own_flow, given))
    found = iter([next(results) if flag else None for flag in wanted])
    return tuple(next(found) if flag else None for flag in linear)


def _batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    programs: Programs,
    chunks: Chunks,
    flow: Flow,
) -> tuple[Sequence[Any], list[int]]:
    flags = (False,) * _first(programs, operands) + tuple(dim is not None for dim in dims)
    with _named_axes(chunks, flow):
        batched = tuple(
            _named("vmap", batch_jaxpr(program, size, flags, True, batch_axis.get())[0])
            for program in programs
        )
    given = [
        value if dim is None else moveaxis(value, dim, int(is_mapped))
        for value, dim, is_mapped in zip(operands, dims, flow.mapped, strict=True)
    ]
    outs = bind_map(batched, chunks, flow, given)
    return outs, [0 if is_summed else 1 for is_summed in flow.summed]


def _prune(
    used: Flags, *, programs: Programs, chunks: Chunks, flow: Flow
) -> tuple[dict[str, Any], Flags, Flags]:
    fewer = tuple(prune_jaxpr(program, used)[0] for program in programs)
    params = {
        "programs": fewer,
        "chunks": chunks,
        "flow": Flow(flow.mapped, tuple(select(flow.summed, used)), flow.axis_name),
    }
    return params, (True,) * len(flow.mapped), used


distributed_map_p = Primitive(
    "distributed_map",
    impl=_impl,
    abstract_eval=_out_avals,
    jvp=Joint(_jvp),
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    prune=_prune,
    holds_programs=True,
    reasons=(("lower", "it runs on workers"),),
)


PRIMITIVES: tuple[Primitive, ...] = (distributed_map_p,)
