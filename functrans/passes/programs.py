"""Transformations of whole Jaxprs: what the rules of control flow are made of.

Here: ``jvp_jaxpr``, ``linearize_jaxpr``, ``transpose_jaxpr``, ``batch_jaxpr``, each of which stages
the corresponding trace or pass over a program; and ``intern``, which finds the program that stands
for all programs of the same text. Not here: the rules that use them (one file per primitive in
``control``), the staging of users' functions (``control.bodies``).

A program in the parameters of an equation has no constants: arrays and tracers that the user's
function captured are operands of the equation (``hoist``). So a loop copies nothing per iteration,
a captured array that changes is seen, and whatever is derived from a program can be kept with it.
A function written inside another one is a new object at each call, but gives the same program, so
that its derivatives are found again.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from functrans.core.analyses import analysis
from functrans.core.arguments import canonical
from functrans.core.avals import Aval, ShapedArray, Tape, Zero
from functrans.core.caching import Recent, listed
from functrans.core.dispatch import aval_of, tracing
from functrans.core.jaxpr import Jaxpr, Literal, Var
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import Masked, plain, zeros
from functrans.passes.dce import dce
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram, Node, batch_first, input_node, ordered_nodes
from functrans.passes.pullback import transpose_linear
from functrans.passes.pushforward import push_forward
from functrans.passes.pushing import PushingTrace, PushingTracer
from functrans.passes.recording import RecordingTrace, RecordingTracer
from functrans.passes.simplify import exact_key, simplify
from functrans.passes.staging import StagingTrace, StagingTracer, stage
from functrans.primitives.slicing import BasicIndex
from functrans.primitives.structural import cast
from functrans.records import dataclass, replace

Flags = tuple[bool, ...]

P = ParamSpec("P")
T = TypeVar("T")


@analysis
def _derived(jaxpr: Jaxpr) -> dict[Hashable, Any]:
    return {}


def derived(jaxpr: Jaxpr, key: Hashable, make: Callable[[], T]) -> T:
    """A value derived from a program, kept with it; where a ``derivation`` cannot be written."""
    table = _derived(jaxpr)
    key = (key, current_config.get().safe_where)  # which the derivative of a selection depends on
    value: Any = table.get(key, table)
    if value is table:
        value = table[key] = make()
    return value


def derivation(function: Callable[Concatenate[Jaxpr, P], T]) -> Callable[Concatenate[Jaxpr, P], T]:
    """A function of a program, and of hashable values, whose results are kept with the program."""

    @wraps(function)
    def known(jaxpr: Jaxpr, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (function, args, *kwargs.items())
        return derived(jaxpr, key, lambda: function(jaxpr, *args, **kwargs))

    return known


def select(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The items whose flag is set."""
    return [item for item, flag in zip(items, flags, strict=True) if flag]


def spread(flags: Sequence[bool], items: Sequence[Any], default: Callable[[int], Any]) -> list[Any]:
    """One item per flag: the next one where it is set, ``default(i)`` where it is not."""
    given = iter(items)
    return [next(given) if flag else default(i) for i, flag in enumerate(flags)]


def split(items: Sequence[Any], *counts: int) -> list[list[Any]]:
    """Consecutive parts of the given lengths, and the rest as the last one."""
    parts = []
    start = 0
    for count in counts:
        parts.append(list(items[start : start + count]))
        start += count
    parts.append(list(items[start:]))
    return parts


def hoist(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Turn all constants of a program into leading arguments.

    Returns:
      The program, and the values of the new arguments.
    """
    if not jaxpr.consts:
        return jaxpr, ()
    names = ("",) * len(jaxpr.constvars) + jaxpr.arg_names if jaxpr.arg_names else ()
    hoisted = replace(
        jaxpr,
        constvars=(),
        consts=(),
        invars=(*jaxpr.constvars, *jaxpr.invars),
        arg_names=names,
        cache={},
    )
    return hoisted, jaxpr.consts


def permute(
    jaxpr: Jaxpr, arguments: Sequence[int] | None = None, results: Sequence[int] | None = None
) -> Jaxpr:
    """The program with arguments in another order, and some results, in the given order."""
    invars, names, outvars = jaxpr.invars, jaxpr.arg_names, jaxpr.outvars
    if arguments is not None:
        invars = tuple([invars[i] for i in arguments])
        names = tuple([names[i] for i in arguments]) if names else ()
    if results is not None:
        outvars = tuple([outvars[i] for i in results])
    return replace(jaxpr, invars=invars, arg_names=names, outvars=outvars, cache={})


# interning --------------------------------------------------------------------------------------

_interned: Recent[Hashable, Jaxpr] = listed("interned programs", Recent(512))


def intern(jaxpr: Jaxpr) -> Jaxpr:
    """The one program that stands for all programs of this text.

    Programs that hold constants or Python functions stand for themselves, since the table
    would keep what they refer to alive.
    """
    if jaxpr.consts or jaxpr.annotations or not holds_data(jaxpr):
        return jaxpr
    return _interned.kept(_text_key(jaxpr), jaxpr)


@analysis
def holds_data(jaxpr: Jaxpr) -> bool:
    """Whether the parameters of a program refer to nothing of the user's."""
    return all(_is_data(value) for eqn in jaxpr.eqns for value in eqn.params.values())


def _is_data(value: Any) -> bool:
    """Whether a parameter refers to nothing of the user's: no function, no rule, no callback."""
    cls = type(value)
    if cls is Jaxpr:
        return holds_data(value)
    if cls is tuple:
        return all(map(_is_data, value))
    return cls in _DATA or isinstance(value, (np.dtype, np.generic))


_DATA = frozenset(
    {bool, int, float, complex, str, bytes, type(None), ShapedArray, Tape, BasicIndex}
)


def _text_key(jaxpr: Jaxpr) -> Hashable:
    """Equal for programs that differ in the identity of variables only; sources count."""
    number: dict[Any, int] = {var: i for i, var in enumerate(jaxpr.invars)}
    parts: list[Any] = [jaxpr.name, jaxpr.arg_names, jaxpr.in_avals]
    for eqn in jaxpr.eqns:
        parts.append(
            (
                eqn.primitive,
                tuple([a if type(a) is Literal else number[a] for a in eqn.inputs]),
                tuple([(key, exact_key(value)) for key, value in eqn.params.items()]),
                eqn.source,
                eqn.scope,
            )
        )
        for var in eqn.outputs:
            number[var] = len(number)
    parts.append(tuple([a if type(a) is Literal else number[a] for a in jaxpr.outvars]))
    return tuple(parts)


# dependence -------------------------------------------------------------------------------------


def dependence(jaxpr: Jaxpr, flags: Sequence[bool]) -> Flags:
    """Which results depend on the arguments whose flag is set."""
    found = {var for var, flag in zip(jaxpr.invars, flags, strict=True) if flag}
    for eqn in jaxpr.eqns:
        if any(type(atom) is Var and atom in found for atom in eqn.inputs):
            found.update(eqn.outputs)
    return tuple(type(atom) is Var and atom in found for atom in jaxpr.outvars)


def value_part(jaxpr: Jaxpr) -> Jaxpr:
    """The equations that the results need; effects, which take place elsewhere, are left out."""
    live: set[Any] = set(jaxpr.outvars)
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if any(var in live for var in eqn.outputs):
            eqns.append(eqn)
            live.update(eqn.inputs)
    return replace(jaxpr, eqns=tuple(reversed(eqns)), cache={})


def prune_jaxpr(jaxpr: Jaxpr, used: Sequence[bool]) -> tuple[Jaxpr, Flags]:
    """The program of some results, and which of its arguments it still reads (it has them all)."""
    program = dce(jaxpr, used)
    read = {atom for eqn in program.eqns for atom in eqn.inputs}
    read.update(program.outvars)
    return program, tuple(var in read for var in program.invars)


def with_arguments(jaxpr: Jaxpr, flags: Sequence[bool]) -> Jaxpr:
    """The program without arguments that it does not read."""
    return permute(jaxpr, [i for i, flag in enumerate(flags) if flag])


# jvp --------------------------------------------------------------------------------------------


@derivation
def jvp_jaxpr(
    jaxpr: Jaxpr, nonzero: Flags, instantiate: Flags | bool = False
) -> tuple[Jaxpr, Flags]:
    """The program of values and tangents.

    Args:
      jaxpr: the program.
      nonzero: per argument, whether it has a tangent.
      instantiate: per result (or for all) whether a zero tangent is made an array.

    Returns:
      Program ``(*primals, *tangents[nonzero]) -> (*outs, *tangents[out_nonzero])``, and
      ``out_nonzero``.
    """
    flags = _per_result(jaxpr, instantiate)
    n = len(jaxpr.invars)
    out_nonzero: list[bool] = []

    def run(*args: object) -> list[Any]:
        trace = PushingTrace(f"jvp of {jaxpr.name or 'a program'}")
        with tracing(trace):
            tangents = iter(args[n:])
            tracers = [
                PushingTracer(trace, value, next(tangents)) if flag else value
                for value, flag in zip(args[:n], nonzero, strict=True)
            ]
            outs = evaluate(jaxpr, tracers)
        values, found = trace.taken_apart(outs)
        out_tangents = []
        for tangent, flag, aval in zip(found, flags, jaxpr.out_avals, strict=True):
            if tangent is None and flag:
                tangent = zeros(aval.strong())
            out_nonzero.append(tangent is not None)
            if tangent is not None:
                out_tangents.append(tangent)
        return values + out_tangents

    avals = [*jaxpr.in_avals, *select(tangent_avals(jaxpr.in_avals), nonzero)]
    program = stage(run, avals, f"jvp of {jaxpr.name}", name=jaxpr.name)
    return simplify(program), tuple(out_nonzero)


def _per_result(jaxpr: Jaxpr, flags: Flags | bool) -> Flags:
    return (flags,) * len(jaxpr.outvars) if isinstance(flags, bool) else flags


def tangent_avals(avals: Sequence[Any]) -> list[Any]:
    """Avals of tangents: strong versions of the primals'."""
    return [aval.strong() for aval in avals]


# linearize --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Linearized:
    """A program split at its linear part.

    Attributes:
      primal: ``(*args) -> (*outs, *residuals)``.
      linear: ``(*residuals, *tangents[needs]) -> (*tangents[out_nonzero])``.
      n_residuals: number of residuals.
      out_nonzero: per result of the original program, whether its tangent is among the results
        of ``linear``.
    """

    primal: Jaxpr
    linear: Jaxpr
    n_residuals: int
    out_nonzero: Flags


@derivation
def linearize_jaxpr(jaxpr: Jaxpr, needs: Flags, instantiate: Flags | bool = False) -> Linearized:
    """Split a program into its primal part with residuals and its linear part.

    Args:
      jaxpr: the program.
      needs: per argument, whether it has a tangent.
      instantiate: per result (or for all) whether a zero tangent is made an array.
    """
    instantiate = _per_result(jaxpr, instantiate)
    staging = StagingTrace(f"linearize of {jaxpr.name or 'a program'}")
    with tracing(staging):
        arguments = [staging.argument(aval) for aval in jaxpr.in_avals]
        invars = [argument._var for argument in arguments]
        recording = RecordingTrace(staging.label, lifts=False)
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
        values, out_nodes = recording.taken_apart(outs)
        ordered = ordered_nodes([node for node in out_nodes if node is not None])
        residuals: dict[Var, Any] = {}

        def note(value: Operand | None) -> Any:
            if type(value) is StagingTracer and value._trace is staging:
                residuals.setdefault(value._var, value)
            return value

        for node in ordered:
            map_saved(node.saved, note)
        primal = staging.jaxpr(invars, [*values, *residuals.values()], jaxpr.name, jaxpr.arg_names)
    input_nodes = [node for node in nodes if node is not None]
    out_nonzero: list[bool] = []
    k = len(residuals)

    def linear(*args: object) -> list[Any]:
        given = dict(zip(residuals, args[:k], strict=True))

        def fill(value: Operand | None) -> Any:
            if type(value) is StagingTracer and value._trace is staging:
                return given[value._var]
            return value

        copies = with_saved(ordered, lambda node: map_saved(node.saved, fill))
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
        outs = [
            zeros(aval.strong()) if out is None and flag else out
            for out, flag, aval in zip(outs, instantiate, jaxpr.out_avals, strict=True)
        ]
        out_nonzero.extend(out is not None for out in outs)
        return [out for out in outs if out is not None]

    avals = [
        *(value.aval for value in residuals.values()),
        *select(tangent_avals(jaxpr.in_avals), needs),
    ]
    program = stage(linear, avals, f"linear part of {jaxpr.name}", name=f"{jaxpr.name}_linear")
    return _without_idle_residuals(primal, simplify(program), k, tuple(out_nonzero))


def _without_idle_residuals(primal: Jaxpr, linear: Jaxpr, k: int, out_nonzero: Flags) -> Linearized:
    """Drop the residuals that the simplified linear part does not read."""
    read = {atom for eqn in linear.eqns for atom in eqn.inputs}
    read.update(linear.outvars)
    kept = [i for i in range(k) if linear.invars[i] in read]
    n_outs = len(primal.outvars) - k
    if len(kept) < k:
        linear = permute(linear, [*kept, *range(k, len(linear.invars))])
        primal = permute(primal, None, [*range(n_outs), *(n_outs + i for i in kept)])
    return Linearized(simplify(primal), linear, len(kept), out_nonzero)


def with_saved(nodes: Sequence[Node], saved: Callable[[Node], Any]) -> dict[Node, Node]:
    """Copies of nodes, in order of creation, that keep something else."""
    copies: dict[Node, Node] = {}
    for node in nodes:
        parents = tuple([None if p is None else copies.get(p, p) for p in node.parents])
        copies[node] = Node(
            node.primitive, node.params, saved(node), parents, node.shape, node.dtype, node.source
        )
    return copies


def map_saved(saved: object, function: Callable[[Any], Any]) -> Any:
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


@derivation
def transpose_jaxpr(jaxpr: Jaxpr, is_linear: Flags, ct_nonzero: Flags) -> tuple[Jaxpr, Flags]:
    """The transposed program; masks of selections end with it.

    Args:
      jaxpr: the program.
      is_linear: per argument, whether the program is transposed in it; it must be linear in those
        arguments jointly.
      ct_nonzero: per result, whether a cotangent is given.

    Returns:
      Program ``(*arguments that are not linear, *cts[ct_nonzero]) -> (*cts[in_nonzero])``, and
      ``in_nonzero`` per linear argument.
    """
    return _transpose_jaxpr(jaxpr, is_linear, ct_nonzero, None)[:2]


@derivation
def transpose_jaxpr_with_masks(
    jaxpr: Jaxpr, is_linear: Flags, ct_nonzero: Flags, ct_masked: Flags
) -> tuple[Jaxpr, Flags, Flags]:
    """The transposed program, which takes and gives the masks of cotangents besides.

    Args:
      jaxpr: the program.
      is_linear: per argument, whether the program is transposed in it.
      ct_nonzero: per result, whether a cotangent is given.
      ct_masked: per result, whether its cotangent is masked.

    Returns:
      Program ``(*arguments that are not linear, *cts, *masks[ct_masked]) -> (*cts[in_nonzero],
      *masks[in_masked])``, ``in_nonzero`` and ``in_masked`` per linear argument.
    """
    return _transpose_jaxpr(jaxpr, is_linear, ct_nonzero, ct_masked)


def _transpose_jaxpr(
    jaxpr: Jaxpr, is_linear: Flags, ct_nonzero: Flags, ct_masked: Flags | None
) -> tuple[Jaxpr, Flags, Flags]:
    in_nonzero: list[bool] = []
    in_masked: list[bool] = []
    first = [i for i, flag in enumerate(is_linear) if not flag]
    n, m = len(first), sum(ct_nonzero)
    ordered = permute(jaxpr, [*first, *(i for i, flag in enumerate(is_linear) if flag)])
    masked = [i for i, flag in enumerate(ct_masked or ()) if flag]

    def run(*args: object) -> list[Any]:
        out_avals = jaxpr.out_avals
        cts = spread(ct_nonzero, args[n : n + m], lambda i: Zero(out_avals[i]))
        for i, mask in zip(masked, args[n + m :], strict=True):
            cts[i] = Masked(cts[i], mask)
        results = transpose_linear(ordered, args[:n], cts, keep_masks=ct_masked is not None)
        in_nonzero.extend(type(ct) is not Zero for ct in results)
        in_masked.extend(type(ct) is Masked for ct in results)
        values = [plain(ct) for ct in results if type(ct) is not Zero]
        return values + [ct.mask for ct in results if type(ct) is Masked]

    avals = [
        *ordered.in_avals[:n],
        *select(tangent_avals(jaxpr.out_avals), ct_nonzero),
        *(ShapedArray(jaxpr.out_avals[i].shape, np.dtype(bool)) for i in masked),
    ]
    program = stage(run, avals, f"transpose of {jaxpr.name}", name=f"{jaxpr.name}_transpose")
    return simplify(program), tuple(in_nonzero), tuple(in_masked)


# batch ------------------------------------------------------------------------------------------


@derivation
def batch_jaxpr(
    jaxpr: Jaxpr,
    size: int,
    batched: Flags,
    force: Flags | bool = False,
    axis_name: str | None = None,
) -> tuple[Jaxpr, Flags]:
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
    force = _per_result(jaxpr, force)
    out_batched: list[bool] = []

    def run(*args: object) -> list[Any]:
        dims = [0 if flag else None for flag in batched]
        outs, out_dims = evaluate_batched(jaxpr, size, args, dims, axis_name)
        results = []
        for out, dim, flag in zip(outs, out_dims, force, strict=True):
            is_batched = dim is not None or flag
            results.append(with_batch_axis(out, size, dim) if is_batched else out)
            out_batched.append(is_batched)
        return results

    avals = [
        batched_aval(aval, size) if flag else aval
        for aval, flag in zip(jaxpr.in_avals, batched, strict=True)
    ]
    program = stage(run, avals, f"vmap of {jaxpr.name}", name=jaxpr.name)
    return simplify(program), tuple(out_batched)


def batched_aval(aval: Aval, size: int) -> Aval:
    """The aval with a leading batch axis; that of a tape is on its entries."""
    if type(aval) is Tape:
        return Tape(batched_aval(aval.element, size))
    assert type(aval) is ShapedArray
    return ShapedArray((size, *aval.shape), aval.dtype)


def with_batch_axis(value: Array, size: int, dim: int | None) -> Any:
    """A value with its batch axis in front, where it may have none yet."""
    return value if dim == 0 else batch_first(value, dim, size)


def fitted(
    who: str, paths: Sequence[str], values: Sequence[Any], avals: Sequence[Any]
) -> list[Any]:
    """Arguments of a program, converted to its dtypes where nothing is lost.

    Python's numbers take the dtype, as they do where they meet an array. An array of a wider one is
    refused: rounded or cut off, it would give other numbers than the function that it is from.

    Args:
      who: begins messages.
      paths: what arguments are called.
      values: the arguments.
      avals: what the program takes.

    Raises:
      ShapeError: an argument has another shape, or a dtype that does not fit into the program's.
      OverflowError: an integer of Python's is out of the dtype's bounds.
      UnsupportedOperationError: it is no array of numbers.
    """
    found = []
    for path, given, aval in zip(paths, values, avals, strict=True):
        value = canonical(given, partial("{}: {}".format, who, path))
        own = aval_of(value)
        fits = np.can_cast(own.dtype, aval.dtype, "safe" if own == own.strong() else "same_kind")
        if own.shape != aval.shape or not fits:
            remedy = (
                f"convert it (.astype({aval.dtype.name!r})), or make the program anew for its dtype"
                if own.shape == aval.shape
                else "make it anew for other shapes"
            )
            raise ShapeError(
                f"{who}: {path} is {own}{here()}, but the program was made for {aval}; {remedy}"
            )
        if own.dtype == aval.dtype:
            found.append(value)
            continue
        if type(value) is int and aval.dtype.kind in "iu":  # it does not wrap around
            try:
                value = np.asarray(value, aval.dtype)
            except OverflowError:
                raise OverflowError(
                    f"{who}: {path} is {value}{here()}, which is out of bounds for {aval.dtype}"
                ) from None
        found.append(cast(value, aval.dtype))
    return found
