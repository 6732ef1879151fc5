"""Transformations of whole Jaxprs: what the rules of control flow are made of.

Here: ``jvp_jaxpr``, ``linearize_jaxpr``, ``transpose_jaxpr``, ``batch_jaxpr``. Each stages the
corresponding trace or pass over a program and is cached on it. Not here: the rules that use them
(one file per primitive in ``control``).

The programs have no tracers among their constants; whoever binds an equation with a sub-Jaxpr
passes captured tracers as operands (``hoist_tracers``).

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from functrans.ir.avals import ShapedArray, Zero
from functrans.ir.jaxpr import Jaxpr, Var
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.linearize import (
    LinearProgram,
    Node,
    input_node,
    ordered_nodes,
    push_forward,
)
from functrans.passes.simplify import simplify
from functrans.passes.transpose import transpose_linear
from functrans.primitives.structural import broadcast_to, moveaxis
from functrans.staging import StagingTrace, StagingTracer, stage
from functrans.trace import Tracer, shape_of, tracing
from functrans.traces.pushing import PushingTrace, PushingTracer
from functrans.traces.recording import RecordingTrace, RecordingTracer


def _cached(jaxpr: Jaxpr, key: Hashable, make: Callable[[], Any]) -> Any:
    """A value derived from a program, kept with it."""
    table = jaxpr.cache.setdefault("programs", {})
    if key not in table:
        table[key] = make()
    return table[key]


def hoist_tracers(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Turn the captured tracers of a program into leading arguments.

    Returns:
      The program without tracers among its constants, and the tracers in order.
    """
    moved = [isinstance(const, Tracer) for const in jaxpr.consts]
    if not any(moved):
        return jaxpr, ()
    pairs = list(zip(jaxpr.constvars, jaxpr.consts, moved, strict=True))
    tracers = tuple(const for _, const, is_moved in pairs if is_moved)
    lead = tuple(var for var, _, is_moved in pairs if is_moved)
    return (
        replace(
            jaxpr,
            constvars=tuple(var for var, _, is_moved in pairs if not is_moved),
            consts=tuple(const for _, const, is_moved in pairs if not is_moved),
            invars=(*lead, *jaxpr.invars),
            arg_names=("",) * len(lead) + jaxpr.arg_names if jaxpr.arg_names else (),
            cache={},
        ),
        tracers,
    )


def hoist_all(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Turn all constants of a program into leading arguments (for writable captured arrays)."""
    if not jaxpr.consts:
        return jaxpr, ()
    return (
        replace(
            jaxpr,
            constvars=(),
            consts=(),
            invars=(*jaxpr.constvars, *jaxpr.invars),
            arg_names=("",) * len(jaxpr.constvars) + jaxpr.arg_names if jaxpr.arg_names else (),
            cache={},
        ),
        jaxpr.consts,
    )


# jvp --------------------------------------------------------------------------------------------


def jvp_jaxpr(
    jaxpr: Jaxpr, nonzero: tuple[bool, ...], instantiate: tuple[bool, ...] | bool = False
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The program of values and tangents.

    Args:
      jaxpr: the program.
      nonzero: per argument, whether it has a tangent.
      instantiate: per result (or for all) whether a zero tangent is made an array.

    Returns:
      Program ``(*primals, *tangents[nonzero]) -> (*outs, *tangents[out_nonzero])``, and
      ``out_nonzero``.
    """

    def make() -> tuple[Jaxpr, tuple[bool, ...]]:
        flags = (
            (instantiate,) * len(jaxpr.outvars) if isinstance(instantiate, bool) else instantiate
        )
        n = len(jaxpr.invars)
        out_nonzero: list[bool] = []

        def run(*args: Any) -> list[Any]:
            tangents = iter(args[n:])
            trace = PushingTrace(f"jvp of {jaxpr.name or 'a program'}")
            with tracing(trace):
                tracers = [
                    PushingTracer(trace, value, next(tangents)) if flag else value
                    for value, flag in zip(args[:n], nonzero, strict=True)
                ]
                outs = evaluate(jaxpr, tracers)
            values, out_tangents = [], []
            for out, flag, aval in zip(outs, flags, jaxpr.out_avals, strict=True):
                own = type(out) is PushingTracer and out._trace is trace
                values.append(out._value if own else out)
                tangent = out._tangent if own else None
                if tangent is None and flag:
                    tangent = zeros(aval)
                out_nonzero.append(tangent is not None)
                if tangent is not None:
                    out_tangents.append(tangent)
            return values + out_tangents

        avals = [*jaxpr.in_avals, *_select(tangent_avals(jaxpr.in_avals), nonzero)]
        program = stage(run, avals, f"jvp of {jaxpr.name}", name=jaxpr.name)
        return simplify(program), tuple(out_nonzero)

    return _cached(jaxpr, ("jvp", nonzero, instantiate), make)  # type: ignore[no-any-return]


def tangent_avals(avals: Sequence[Any]) -> list[Any]:
    """Avals of tangents: strong versions of the primals'."""
    return [aval.strong() if isinstance(aval, ShapedArray) else aval for aval in avals]


def _select(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [item for item, flag in zip(items, flags, strict=True) if flag]


# linearize --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Linearized:
    """A program split at its linear part.

    Attributes:
      primal: ``(*args) -> (*outs, *residuals)``.
      linear: ``(*residuals, *tangents[needs]) -> (*tangents[out_nonzero])``.
      n_residuals: number of residuals.
      out_nonzero: per result of the original program, whether its tangent can be nonzero.
    """

    primal: Jaxpr
    linear: Jaxpr
    n_residuals: int
    out_nonzero: tuple[bool, ...]


def linearize_jaxpr(jaxpr: Jaxpr, needs: tuple[bool, ...]) -> Linearized:
    """Split a program into its primal part with residuals and its linear part.

    Args:
      jaxpr: the program.
      needs: per argument, whether it has a tangent.
    """
    return _cached(jaxpr, ("linearize", needs), lambda: _linearize_jaxpr(jaxpr, needs))  # type: ignore[no-any-return]


def _linearize_jaxpr(jaxpr: Jaxpr, needs: tuple[bool, ...]) -> Linearized:
    staging = StagingTrace(f"linearize of {jaxpr.name or 'a program'}")
    with tracing(staging):
        arguments = [staging.argument(aval) for aval in jaxpr.in_avals]
        invars = [argument._var for argument in arguments]
        recording = RecordingTrace(staging.label)
        with tracing(recording):
            nodes = [
                input_node(argument) if need else None
                for argument, need in zip(arguments, needs, strict=True)
            ]
            tracers = [
                RecordingTracer(recording, argument, node) if node is not None else argument
                for argument, node in zip(arguments, nodes, strict=True)
            ]
            outs = evaluate(jaxpr, tracers)
        values, out_nodes = split_recorded(recording, outs)
        roots = [node for node in out_nodes if node is not None]
        ordered = ordered_nodes(roots)
        residuals: dict[Var, Any] = {}

        def note(value: Any) -> Any:
            if type(value) is StagingTracer and value._trace is staging:
                residuals.setdefault(value._var, value)
            return value

        for node in ordered:
            map_saved(node.saved, note)
        primal = staging.jaxpr(invars, [*values, *residuals.values()], jaxpr.name, jaxpr.arg_names)
    input_nodes = [node for node in nodes if node is not None]

    def linear(*args: Any) -> list[Any]:
        k = len(residuals)
        given = dict(zip(residuals, args[:k], strict=True))

        def fill(value: Any) -> Any:
            if type(value) is StagingTracer and value._trace is staging:
                return given[value._var]
            return value

        copies: dict[Node, Node] = {}
        for node in ordered:
            parents = tuple(None if p is None else copies.get(p, p) for p in node.parents)
            copies[node] = Node(
                node.primitive, node.params, map_saved(node.saved, fill), parents, node.shape,
                node.dtype, node.source,
            )  # fmt: skip
        pairs = [
            (copies[node], tangent)
            for node, tangent in zip(input_nodes, args[k:], strict=True)
            if node in copies
        ]
        outs = push_forward(
            list(copies.values()),
            pairs,
            [None if node is None else copies[node] for node in out_nodes],
        )
        out_nonzero.extend(out is not None for out in outs)
        return [out for out in outs if out is not None]

    out_nonzero: list[bool] = []
    avals = [
        *(value.aval for value in residuals.values()),
        *_select(tangent_avals(jaxpr.in_avals), needs),
    ]
    program = stage(linear, avals, f"linear part of {jaxpr.name}", name=f"{jaxpr.name}_linear")
    return Linearized(primal, simplify(program), len(residuals), tuple(out_nonzero))


def split_recorded(trace: RecordingTrace, outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Values and nodes of the results of a recorded function."""
    values, nodes = [], []
    for out in outs:
        own = type(out) is RecordingTracer and out._trace is trace
        values.append(out._value if own else out)
        nodes.append(out._node if own else None)
    return values, nodes


def map_saved(saved: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to every value that a node saved."""
    if isinstance(saved, LinearProgram):
        return LinearProgram(
            _map_consts(saved.jaxpr, function),
            saved.targets,
            tuple(function(value) for value in saved.residuals),
        )
    if isinstance(saved, (tuple, list)):
        return tuple(
            map_saved(item, function) if isinstance(item, (tuple, list)) else function(item)
            for item in saved
        )
    return saved


def _map_consts(jaxpr: Jaxpr, function: Callable[[Any], Any]) -> Jaxpr:
    consts = tuple(function(const) for const in jaxpr.consts)
    if all(new is old for new, old in zip(consts, jaxpr.consts, strict=True)):
        return jaxpr
    return replace(jaxpr, consts=consts, cache={})


# transpose --------------------------------------------------------------------------------------


def transpose_jaxpr(
    jaxpr: Jaxpr, n_residuals: int, ct_nonzero: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The transposed program.

    Args:
      jaxpr: linear in its arguments after the first ``n_residuals``.
      n_residuals: number of non-linear arguments.
      ct_nonzero: per result, whether a cotangent is given.

    Returns:
      Program ``(*residuals, *cts[ct_nonzero]) -> (*cts[in_nonzero])`` and ``in_nonzero`` per
      linear argument.
    """

    def make() -> tuple[Jaxpr, tuple[bool, ...]]:
        in_nonzero: list[bool] = []

        def run(*args: Any) -> list[Any]:
            given = iter(args[n_residuals:])
            cts = [
                next(given) if flag else Zero(aval)
                for flag, aval in zip(ct_nonzero, jaxpr.out_avals, strict=True)
            ]
            results = transpose_linear(jaxpr, args[:n_residuals], cts)
            in_nonzero.extend(type(ct) is not Zero for ct in results)
            return [ct for ct in results if type(ct) is not Zero]

        avals = [
            *jaxpr.in_avals[:n_residuals],
            *_select(tangent_avals(jaxpr.out_avals), ct_nonzero),
        ]
        program = stage(run, avals, f"transpose of {jaxpr.name}", name=f"{jaxpr.name}_transpose")
        return simplify(program), tuple(in_nonzero)

    return _cached(jaxpr, ("transpose", n_residuals, ct_nonzero), make)  # type: ignore[no-any-return]


# batch ------------------------------------------------------------------------------------------


def batch_jaxpr(
    jaxpr: Jaxpr,
    size: int,
    batched: tuple[bool, ...],
    force: tuple[bool, ...] | bool = False,
    axis_name: str | None = None,
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The program with a leading batch axis on some arguments.

    Args:
      jaxpr: the program for one element.
      size: extent of the batch axis.
      batched: per argument, whether it has the axis (in front).
      force: per result (or for all) whether it must have the axis.
      axis_name: name that collectives inside know the axis by.

    Returns:
      The program, and per result whether it has the axis (in front).
    """

    def make() -> tuple[Jaxpr, tuple[bool, ...]]:
        flags = (force,) * len(jaxpr.outvars) if isinstance(force, bool) else force
        out_batched: list[bool] = []

        def run(*args: Any) -> list[Any]:
            dims = [0 if flag else None for flag in batched]
            outs, out_dims = evaluate_batched(jaxpr, size, args, dims, axis_name)
            results = []
            for out, dim, flag in zip(outs, out_dims, flags, strict=True):
                if dim is None and flag:
                    results.append(broadcast_to(out, (size, *shape_of(out))))
                else:
                    results.append(out if dim is None else moveaxis(out, dim, 0))
                out_batched.append(dim is not None or flag)
            return results

        avals = [
            ShapedArray((size, *aval.shape), aval.dtype) if flag else aval
            for aval, flag in zip(jaxpr.in_avals, batched, strict=True)
        ]
        program = stage(run, avals, f"vmap of {jaxpr.name}", name=jaxpr.name)
        return simplify(program), tuple(out_batched)

    return _cached(jaxpr, ("batch", size, batched, force, axis_name), make)  # type: ignore[no-any-return]
