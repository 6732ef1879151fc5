"""Choosing one of several functions: ``cond`` and ``switch``.

Here: the primitive ``cond`` (one choice), the primitive ``cond_lanes`` (a choice for each element
of a batch), and the functions ``cond``, ``switch``, ``select``. Not here: loops.

Under ``vmap`` a batched choice becomes ``cond_lanes``: the elements (lanes) that take a branch are
gathered, the branch runs on them alone, and the results are put together. So a lane sees neither
NaN nor effects nor cost of a branch that it does not take, and neither do derivatives, which are
``cond_lanes`` again.

Linearized branches have residuals of their own; they share slots of equal type, and a branch leaves
zeros in the slots that it does not use.

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import (
    Body,
    cast_results,
    check_structure,
    finish_results,
    flatten_operands,
    joined_aval,
    mismatch,
    stage_body,
)
from functrans.control.calls import (
    Binder,
    are_masked,
    call_jvp,
    call_linearize,
    is_nonzero,
    kept_residuals,
    to_front,
    with_masks,
)
from functrans.control.lanes import (
    flatten_lanes,
    gather_lanes,
    join_lanes,
    sum_lanes,
    unflatten_lanes,
)
from functrans.control.native import jit_p, run
from functrans.core.arguments import canonical
from functrans.core.avals import Aval, ShapedArray, Tape, Zero
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, bind, shape_of
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.lowering import Structured, branch_number
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import defined_at, here
from functrans.core.state import batch_axis, current_config
from functrans.core.values import Array, R, Result
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.ir.parameters import check_fits, check_number
from functrans.passes.batch import evaluate_batched, named_axes
from functrans.passes.cotangents import plain, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    batched_aval,
    derived,
    intern,
    jvp_jaxpr,
    linearize_jaxpr,
    prune_jaxpr,
    spread,
    transpose_jaxpr,
    transpose_jaxpr_with_masks,
    with_arguments,
)
from functrans.passes.programs import select as chosen
from functrans.passes.staging import stage
from functrans.primitives.elementwise import clip, where
from functrans.primitives.structural import broadcast_to, cast

Branches = tuple[Jaxpr, ...]


def _union(rows: Sequence[Flags]) -> Flags:
    return tuple(map(any, zip(*rows, strict=True))) if rows else ()


# one choice -------------------------------------------------------------------------------------


def _cond_impl(index: object, *operands: object, branches: Branches) -> tuple[Any, ...]:
    return tuple(run(branches[branch_number(index, len(branches))], operands))


def _cond_aval(index: Aval, *avals: Aval, branches: Branches) -> tuple[Aval, ...]:
    return branches[0].out_avals


def _cond_check(index: Aval, *avals: Aval, branches: Branches) -> None:
    check_number("cond: the number of the branch", index)
    _check_branches("cond", branches, avals)


def _check_branches(name: str, branches: Branches, avals: Sequence[Aval]) -> None:
    for i, branch in enumerate(branches):
        check_fits(f"{name}: argument of branch {i}", branch.in_avals, avals)
        check_fits(f"{name}: result of branch {i}", branch.out_avals, branches[0].out_avals)


def _jvp_branches(branches: Branches, nonzero: Flags) -> tuple[Branches, Flags]:
    """The branches of values and tangents, which give the same tangents."""
    out_nonzero = _union([jvp_jaxpr(branch, nonzero)[1] for branch in branches])
    return tuple(jvp_jaxpr(branch, nonzero, out_nonzero)[0] for branch in branches), out_nonzero


def _cond_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches
) -> tuple[Any, ...]:
    index, *operands = primals
    own = tangents[1:]
    if not isinstance(index, Tracer):
        return call_jvp(_CALL, branches[int(index)], operands, own)
    nonzero = is_nonzero(own)
    programs, out_nonzero = _jvp_branches(branches, nonzero)
    results = bind(cond_p, index, *operands, *chosen(own, nonzero), branches=programs)
    return _split_tangents(branches[0], results, out_nonzero)


def _split_tangents(branch: Jaxpr, results: Sequence[Any], out_nonzero: Flags) -> tuple[Any, ...]:
    n = len(branch.outvars)
    avals = branch.out_avals
    return results[:n], spread(out_nonzero, results[n:], lambda i: Zero(avals[i].strong()))


class _Split:
    """Linearized branches.

    Attributes:
      primals: ``(*operands) -> (*outs, *slots)``, one per branch.
      linears: ``(*slots, *tangents[needs]) -> (*tangents[out_nonzero])``.
      slots: avals of the residuals.
      out_nonzero: per result, whether its tangent is among the results of ``linears``.
    """

    __slots__ = ("linears", "out_nonzero", "primals", "slots")

    def __init__(self, branches: Branches, needs: Flags) -> None:
        self.out_nonzero = _union([linearize_jaxpr(b, needs).out_nonzero for b in branches])
        parts = [linearize_jaxpr(branch, needs, self.out_nonzero) for branch in branches]
        n = len(branches[0].outvars)
        slots: list[Aval] = []
        places: list[list[int]] = []
        for part in parts:
            free = list(range(len(slots)))
            own = []
            for aval in part.primal.out_avals[n:]:
                place = next((i for i in free if slots[i] == aval), None)
                if place is None:
                    place = len(slots)
                    slots.append(aval)
                else:
                    free.remove(place)
                own.append(place)
            places.append(own)
        self.slots = tuple(slots)
        self.primals = tuple(
            self._primal(part.primal, n, own) for part, own in zip(parts, places, strict=True)
        )
        self.linears = tuple(
            self._linear(part.linear, own) for part, own in zip(parts, places, strict=True)
        )

    def _primal(self, primal: Jaxpr, n: int, places: list[int]) -> Jaxpr:
        def fill(*args: object) -> list[Any]:
            outs = evaluate(primal, args)
            slots: list[Any] = [None] * len(self.slots)
            for place, residual in zip(places, outs[n:], strict=True):
                slots[place] = residual
            filled = [
                _unused(aval) if slot is None else slot
                for slot, aval in zip(slots, self.slots, strict=True)
            ]
            return [*outs[:n], *filled]

        return stage(fill, primal.in_avals, f"linearize of {primal.name}", name=primal.name)

    def _linear(self, linear: Jaxpr, places: list[int]) -> Jaxpr:
        k = len(self.slots)

        def run_linear(*args: object) -> list[Any]:
            return evaluate(linear, [*(args[place] for place in places), *args[k:]])

        avals = [*self.slots, *linear.in_avals[len(places) :]]
        return stage(run_linear, avals, f"linear part of {linear.name}", name=linear.name)


def _unused(aval: Aval) -> Array | complex:
    """What a branch leaves in a slot that it does not use."""
    if type(aval) is ShapedArray and aval.weak:
        return aval.dtype.type(0).item()
    return zeros(aval)


def _split_branches(branches: Branches, needs: Flags) -> _Split:
    return derived(branches[0], ("cond", branches, needs), lambda: _Split(branches, needs))


def _cond_linearize(
    needs: Flags, operands: Any, *, branches: Branches
) -> tuple[tuple[Any, ...], LinearProgram]:
    index, *own = operands
    own_needs = needs[1:]
    if not isinstance(index, Tracer):
        outs, program = call_linearize(_CALL, branches[int(index)], own_needs, own)
        targets = tuple(i + 1 for i in program.targets)
        return outs, LinearProgram(program.jaxpr, targets, program.residuals)
    split = _split_branches(branches, own_needs)
    results = bind(cond_p, index, *own, branches=split.primals)
    n = len(branches[0].outvars)
    out_avals = branches[0].out_avals

    def linear(choice: Array, *args: object) -> list[Any]:
        outs = bind(cond_p, choice, *args, branches=split.linears)
        return spread(split.out_nonzero, outs, lambda i: zeros(out_avals[i].strong()))

    avals = [aval_of(index), *split.linears[0].in_avals]
    program_jaxpr = derived(
        branches[0],
        ("cond linear", branches, own_needs, avals[0]),
        lambda: stage(linear, avals, "linear part of cond"),
    )
    residuals = (index, *kept_residuals(results[n:], own, own_needs))
    return results[:n], LinearProgram(program_jaxpr, _targets(needs), residuals)


def _targets(needs: Flags) -> tuple[int, ...]:
    return tuple(i for i, need in enumerate(needs) if need)


def _transposed_branches(
    branches: Branches, linear_flags: Flags, nonzero: Flags, masked: Flags
) -> tuple[Branches, Flags, Flags]:
    """Transposed branches, which give the same cotangents, and masks if they take some."""

    def make() -> tuple[Branches, Flags, Flags]:
        parts = [
            transpose_jaxpr_with_masks(branch, linear_flags, nonzero, masked)
            if any(masked)
            else (*transpose_jaxpr(branch, linear_flags, nonzero), none_masked)
            for branch in branches
        ]
        in_nonzero = _union([flags for _, flags, _ in parts])
        # A branch that does not depend on an argument leaves its cotangent as it is elsewhere.
        in_masked = tuple(
            [
                any(own[i] for _, _, own in parts)
                and all(own[i] or not flags[i] for _, flags, own in parts)
                for i in range(len(in_nonzero))
            ]
        )
        avals = [aval.strong() for aval in chosen(branches[0].in_avals, linear_flags)]

        def filled(program: Jaxpr, flags: Flags, own_masked: Flags) -> Jaxpr:
            def fill(*args: object) -> list[Any]:
                outs = evaluate(program, args)
                n = sum(flags)
                cts = spread(flags, outs[:n], lambda i: zeros(avals[i]))
                masks = spread(
                    own_masked,
                    outs[n:],
                    lambda i: np.zeros(avals[i].shape, bool) if in_masked[i] else None,
                )
                return [*chosen(cts, in_nonzero), *chosen(masks, in_masked)]

            if flags == in_nonzero and own_masked == in_masked:
                return program
            return stage(fill, program.in_avals, f"transpose of {program.name}", name=program.name)

        return tuple([filled(*part) for part in parts]), in_nonzero, in_masked

    none_masked = (False,) * sum(linear_flags)
    return derived(branches[0], ("cond transpose", branches, linear_flags, nonzero, masked), make)


def _cond_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, branches: Branches
) -> tuple[Any, ...]:
    index, *own = operands
    linear_flags = tuple(map(is_linear, own))
    nonzero, masked = is_nonzero(cts), are_masked(cts)
    programs, in_nonzero, in_masked = _transposed_branches(branches, linear_flags, nonzero, masked)
    known = [operand for operand in own if not is_linear(operand)]
    values = [plain(ct) for ct in chosen(cts, nonzero)]
    masks = [ct.mask for ct in chosen(cts, masked)]
    results = bind(cond_p, index, *known, *values, *masks, branches=programs)
    n = sum(in_nonzero)
    pulled = iter(with_masks(in_nonzero, results[:n], in_masked, results[n:]))
    return (None, *(next(pulled) if flag else None for flag in linear_flags))


def _cond_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, branches: Branches
) -> tuple[Any, ...]:
    index, *own = to_front(size, operands, dims)
    flags = tuple(dim is not None for dim in dims[1:])
    if dims[0] is not None:
        _refuse_collectives(branches)
        outs = bind(cond_lanes_p, index, *own, branches=branches, batched=flags)
        return outs, (0,) * len(outs)
    axis_name = batch_axis.get()
    out_batched = _union(
        [batch_jaxpr(branch, size, flags, False, axis_name)[1] for branch in branches]
    )
    programs = tuple(
        batch_jaxpr(branch, size, flags, out_batched, axis_name)[0] for branch in branches
    )
    outs = bind(cond_p, index, *own, branches=programs)
    return outs, [0 if flag else None for flag in out_batched]


def _refuse_collectives(branches: Branches) -> None:
    """Refuse collectives over lanes that take different branches."""
    axis_name = batch_axis.get()
    if axis_name is not None and any(axis_name in named_axes(branch) for branch in branches):
        raise UnsupportedOperationError(
            f"vmap: a branch of cond has a collective over axis {axis_name!r}{here()}, but the "
            "choice differs between the elements of that axis, so that not all of them take part; "
            "compute the collective before the cond, or choose with np.where"
        )


def _pruned_branches(branches: Branches, used: Flags) -> tuple[Branches, Flags]:
    """The branches for some results only, and the operands that are left."""
    pairs = [prune_jaxpr(branch, used) for branch in branches]
    read = _union([flags for _, flags in pairs])
    return tuple(with_arguments(program, read) for program, _ in pairs), read


def _cond_prune(used: Flags, *, branches: Branches) -> tuple[Any, ...]:
    programs, read = _pruned_branches(branches, used)
    return {"branches": programs}, (True, *read), used


cond_p = Primitive(
    "cond",
    impl=_cond_impl,
    abstract_eval=_cond_aval,
    check=_cond_check,
    jvp=Joint(_cond_jvp),
    linearize=_cond_linearize,
    transpose=_cond_transpose,
    takes_masks=True,
    batch=_cond_batch,
    prune=_cond_prune,
    lower=Structured("cond"),
    holds_programs=True,
)
NOT_GIVEN: Any = object()
"""An argument that was left out."""
_CALL = Binder(jit_p, (("name", "branch"),))


# a choice per lane ------------------------------------------------------------------------------


def _cond_lanes_impl(
    index: Array, *operands: Array, branches: Branches, batched: Flags
) -> tuple[Any, ...]:
    size = len(index)
    last = len(branches) - 1
    numbers = np.where((index >= 0) & (index < last), index, last)  # as ``branch_number``
    parts = []
    for number, branch in enumerate(branches):
        lanes = np.flatnonzero(numbers == number)
        if len(lanes) == size and size:
            program, _ = batch_jaxpr(branch, size, batched, True)
            return tuple(run(program, operands))
        if len(lanes):
            parts.append((lanes, _run_lanes(branch, lanes, operands, batched)))
    return tuple(
        join_lanes(aval, size, [(lanes, outs[i]) for lanes, outs in parts])
        for i, aval in enumerate(branches[0].out_avals)
    )


def _run_lanes(
    branch: Jaxpr, lanes: Array, operands: tuple[Array, ...], batched: Flags
) -> list[Any]:
    """Results of some lanes; their axis is in front."""
    own = [
        gather_lanes(operand, lanes) if flag else operand
        for operand, flag in zip(operands, batched, strict=True)
    ]
    dims = [0 if flag else None for flag in batched]
    outs, out_dims = evaluate_batched(branch, len(lanes), own, dims)
    return [
        out if dim in (None, 0) else np.moveaxis(out, dim, 0)
        for out, dim in zip(outs, out_dims, strict=True)
    ]


def _cond_lanes_aval(
    index: ShapedArray, *avals: Aval, branches: Branches, batched: Flags
) -> tuple[Aval, ...]:
    return tuple(batched_aval(aval, index.shape[0]) for aval in branches[0].out_avals)


def _cond_lanes_check(index: ShapedArray, *avals: Aval, branches: Branches, batched: Flags) -> None:
    lane = ShapedArray(index.shape[1:], index.dtype)
    check_number("cond_lanes: the number of a lane's branch", lane)
    own: list[Aval] = []
    for aval, has_lanes in zip(avals, batched, strict=True):
        own.append(_lane_aval(aval, index) if has_lanes else aval)
    _check_branches("cond_lanes", branches, own)


def _lane_aval(aval: Aval, index: ShapedArray) -> Aval:
    """The aval of one lane; the lanes of a tape are those of its entries."""
    if type(aval) is Tape:
        return Tape(_lane_aval(aval.element, index))
    assert type(aval) is ShapedArray
    if aval.shape[:1] != index.shape:
        raise TypeError(f"cond_lanes: {aval} has not one entry for each lane of {index}")
    return ShapedArray(aval.shape[1:], aval.dtype)


def _cond_lanes_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches, batched: Flags
) -> tuple[Any, Any]:
    index, *operands = primals
    own = tangents[1:]
    nonzero = is_nonzero(own)
    programs, out_nonzero = _jvp_branches(branches, nonzero)
    flags = (*batched, *chosen(batched, nonzero))
    results = bind(
        cond_lanes_p, index, *operands, *chosen(own, nonzero), branches=programs, batched=flags
    )
    n = len(branches[0].outvars)
    avals = [batched_aval(aval, shape_of(index)[0]) for aval in branches[0].out_avals]
    return results[:n], spread(out_nonzero, results[n:], lambda i: Zero(avals[i]))


def _cond_lanes_linearize(
    needs: Flags, operands: Sequence[Array], *, branches: Branches, batched: Flags
) -> tuple[tuple[Any, ...], LinearProgram]:
    index, *own = operands
    own_needs = needs[1:]
    split = _split_branches(branches, own_needs)
    results = bind(cond_lanes_p, index, *own, branches=split.primals, batched=batched)
    n = len(branches[0].outvars)
    index_aval = aval_of(index)
    size = index_aval.shape[0]
    flags = (True,) * len(split.slots) + tuple(chosen(batched, own_needs))

    def linear(choice: Array, *args: object) -> list[Any]:
        outs = bind(cond_lanes_p, choice, *args, branches=split.linears, batched=flags)
        return spread(
            split.out_nonzero,
            outs,
            lambda i: zeros(batched_aval(branches[0].out_avals[i].strong(), size)),
        )

    avals = [
        index_aval,
        *(
            batched_aval(aval, size) if flag else aval
            for aval, flag in zip(split.linears[0].in_avals, flags, strict=True)
        ),
    ]
    program_jaxpr = derived(
        branches[0],
        ("cond_lanes linear", branches, needs, batched, index_aval),
        lambda: stage(linear, avals, "linear part of cond"),
    )
    residuals = (index, *kept_residuals(results[n:], own, own_needs))
    return results[:n], LinearProgram(program_jaxpr, _targets(needs), residuals)


def _cond_lanes_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, branches: Branches, batched: Flags
) -> tuple[Any, ...]:
    index, *own = operands
    linear_flags = tuple(map(is_linear, own))
    nonzero, masked = is_nonzero(cts), are_masked(cts)
    programs, in_nonzero, in_masked = _transposed_branches(branches, linear_flags, nonzero, masked)
    known = [(o, flag) for o, flag in zip(own, batched, strict=True) if not is_linear(o)]
    given = [plain(ct) for ct in chosen(cts, nonzero)] + [ct.mask for ct in chosen(cts, masked)]
    flags = tuple(flag for _, flag in known) + (True,) * len(given)
    results = bind(
        cond_lanes_p,
        index,
        *(operand for operand, _ in known),
        *given,
        branches=programs,
        batched=flags,
    )
    n = sum(in_nonzero)
    pulled = iter(with_masks(in_nonzero, results[:n], in_masked, results[n:]))
    cts_in: list[Any] = [None]
    for operand, is_lin, is_batched in zip(own, linear_flags, batched, strict=True):
        ct = next(pulled) if is_lin else None
        shared = ct is not None and not is_batched
        cts_in.append(sum_lanes(ct, operand.aval) if shared else ct)
    return tuple(cts_in)


def _cond_lanes_batch(
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    *,
    branches: Branches,
    batched: Flags,
) -> tuple[Any, ...]:
    _refuse_collectives(branches)
    flags = (True, *batched)
    front = to_front(size, operands, dims)
    is_outer = [dim is not None for dim in dims]
    n = shape_of(front[0])[1 if is_outer[0] else 0]
    flat = [
        flatten_lanes(operand, size, n, outer, inner)
        for operand, outer, inner in zip(front, is_outer, flags, strict=True)
    ]
    flat[0] = flatten_lanes(front[0], size, n, is_outer[0], True)
    own_flags = tuple(outer or inner for outer, inner in zip(is_outer[1:], batched, strict=True))
    outs = bind(cond_lanes_p, *flat, branches=branches, batched=own_flags)
    return [unflatten_lanes(out, size, n) for out in outs], (0,) * len(outs)


def _cond_lanes_prune(used: Flags, *, branches: Branches, batched: Flags) -> tuple[Any, ...]:
    programs, read = _pruned_branches(branches, used)
    params = {"branches": programs, "batched": tuple(chosen(batched, read))}
    return params, (True, *read), used


cond_lanes_p = Primitive(
    "cond_lanes",
    impl=_cond_lanes_impl,
    abstract_eval=_cond_lanes_aval,
    check=_cond_lanes_check,
    jvp=Joint(_cond_lanes_jvp),
    linearize=_cond_lanes_linearize,
    transpose=_cond_lanes_transpose,
    takes_masks=True,
    batch=_cond_lanes_batch,
    prune=_cond_lanes_prune,
    holds_programs=True,
    lower=Structured("cond_lanes"),
)


# user functions ---------------------------------------------------------------------------------


def choose(
    who: str, index: Any, bodies: Sequence[Body], names: Sequence[str], leaves: Sequence[Array]
) -> Any:
    """Run one of several staged functions of the same arguments.

    Args:
      who: ``cond`` or ``switch``, for messages.
      index: number of the branch, within bounds.
      bodies: the branches.
      names: what the user calls them.
      leaves: leaves of the arguments.
    """
    first = bodies[0]
    for name, body in zip(names[1:], bodies[1:], strict=True):
        check_structure(
            who, first.treedef, body.treedef, f"the result of {name}", f"that of {names[0]}"
        )
    avals = _joined_avals(who, bodies, names)
    captured: list[Any] = []
    position: dict[int, int] = {}
    for body in bodies:
        for value in body.captured:
            if id(value) not in position:
                position[id(value)] = len(captured)
                captured.append(value)
    branches = tuple(
        cast_results(_with_captured(body, captured, position), avals) for body in bodies
    )
    operands = (*captured, *leaves)
    if isinstance(index, Tracer):
        outs = bind(cond_p, index, *operands, branches=branches)
    else:
        branch = branches[int(index)]
        outs = bind(jit_p, *operands, jaxpr=branch, name=branch.name)
        watch = current_config.get().nan_watch
        if watch is not None:
            watch.program(branch, operands, outs)
    return finish_results(outs, operands, first.treedef)


def _with_captured(body: Body, captured: list[Any], position: dict[int, int]) -> Jaxpr:
    """The branch as a function of what any branch captures."""
    jaxpr = body.jaxpr
    if len(body.captured) == len(captured) and all(
        a is b for a, b in zip(body.captured, captured, strict=True)
    ):
        return jaxpr
    k = len(body.captured)
    lead = [Var(aval_of(value)) for value in captured]
    for value, var in zip(body.captured, jaxpr.invars[:k], strict=True):
        lead[position[id(value)]] = var
    names = ("",) * len(lead) + jaxpr.arg_names[k:] if jaxpr.arg_names else ()
    return intern(replace(jaxpr, invars=(*lead, *jaxpr.invars[k:]), arg_names=names, cache={}))


def _joined_avals(who: str, bodies: Sequence[Body], names: Sequence[str]) -> list[Any]:
    """The types of the results, to which every branch converts."""
    joined = list(bodies[0].out_avals)
    for name, body in zip(names[1:], bodies[1:], strict=True):
        for i, aval in enumerate(body.out_avals):
            both = joined_aval(joined[i], aval)
            if both is None:
                path = tree.paths_of(body.treedef, "out")[i]
                raise mismatch(
                    who,
                    f"{path} of {name}",
                    aval,
                    f"{path} of {names[0]}",
                    joined[i],
                    f"all branches must return the same types{here()}; convert with "
                    ".astype or np.broadcast_to in one of them",
                )
            joined[i] = both
    return joined


def _stage_branches(
    who: str,
    functions: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
) -> tuple[list[Body], list[Any]]:
    """The branches staged for their operands, and the leaves of those."""
    functions = [
        traced_form(f"{who}: {name}", function)
        for name, function in zip(names, functions, strict=True)
    ]
    leaves, treedef, paths = flatten_operands(who, operands, "operands")
    avals = [aval_of(leaf) for leaf in leaves]
    bodies = [
        stage_body(f"{who}: {name}", function, treedef, avals, paths, is_branch=True)
        for name, function in zip(names, functions, strict=True)
    ]
    return bodies, leaves


@boundary
def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., Result],
    *operands: Any,
    operand: Any = NOT_GIVEN,
) -> R | Result:
    """Call one of two functions, depending on a traced condition.

    Args:
      pred: scalar; nonzero means true.
      true_fun: function of ``operands``, called if ``pred`` holds.
      false_fun: function of ``operands`` whose result has the same structure and types.
      *operands: pytrees of arrays.
      operand: the only operand, as older code for JAX gives it.
    Returns:
      The result of the function that was chosen. Under ``vmap`` each element of the batch runs the
      branch that it takes, and only that.
    Raises:
      TreeMismatchError, ShapeError, TypeError: the two results differ; names the key path.

    Example:
      >>> import numpy as np
      >>> cond(True, lambda x: x + 1.0, lambda x: x * 2.0, np.arange(3.0))
      array([1., 2., 3.])
    """
    if operand is not NOT_GIVEN:
        if operands:
            raise TypeError(
                f"cond: got {len(operands)} operands and operand={operand!r}{here()}; pass them in "
                "one of the two ways"
            )
        operands = (operand,)
    pred = canonical(pred, lambda: "cond: pred")
    if shape_of(pred):
        raise ShapeError(
            f"cond: pred must be a scalar, got {aval_of(pred)}{here()}; reduce it with np.any or "
            "np.all, or choose elementwise with np.where"
        )
    names = (f"false_fun{defined_at(false_fun)}", f"true_fun{defined_at(true_fun)}")
    bodies, leaves = _stage_branches("cond", (false_fun, true_fun), names, operands)
    is_true = pred if aval_of(pred).dtype == np.dtype(bool) else pred != 0
    index = cast(is_true, np.int64) if isinstance(is_true, Tracer) else int(bool(is_true))
    return choose("cond", index, bodies, names, leaves)


@boundary
def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """Call one of several functions, chosen by a traced number.

    Args:
      index: integer scalar; numbers out of range are moved to the nearest branch.
      branches: functions of ``operands`` whose results have the same structure and types.
      *operands: pytrees of arrays.
    Returns:
      The result of the function that was chosen.
    Raises:
      TypeError: ``index`` is no integer.
      ValueError: there is no branch.
      TreeMismatchError, ShapeError, TypeError: results differ; names the key path.

    Example:
      >>> switch(1, [lambda x: x, lambda x: 10 * x, lambda x: -x], 2.0)
      array(20.)
    """
    functions = tuple(branches)
    if not functions:
        raise ValueError("switch: branches is empty; give at least one function")
    index = canonical(index, lambda: "switch: index")
    aval = aval_of(index)
    if aval.shape or aval.dtype.kind not in "iu":
        kind = ShapeError if aval.shape else TypeError
        raise kind(f"switch: index must be an integer scalar, got {aval}{here()}")
    names = [f"branches[{i}]{defined_at(function)}" for i, function in enumerate(functions)]
    bodies, leaves = _stage_branches("switch", functions, names, operands)
    last = len(functions) - 1
    if isinstance(index, Tracer):
        index = clip(cast(index, np.int64), 0, last)
    else:
        index = min(max(int(index), 0), last)
    return choose("switch", index, bodies, names, leaves)


@boundary
def select(pred: object, on_true: object, on_false: object) -> Array:
    """Choose elementwise between two arrays of one shape and dtype.

    Args:
      pred: booleans: a scalar, or of the shape of the arrays.
      on_true: array taken where ``pred`` holds.
      on_false: array taken elsewhere.
    Raises:
      ShapeError, TypeError: shapes or dtypes differ.

    Example:
      >>> import numpy as np
      >>> select(np.array([True, False]), np.ones(2), np.zeros(2))
      array([1., 0.])
    """
    first, second, choice = aval_of(on_true), aval_of(on_false), aval_of(pred)
    if first.shape != second.shape or first.dtype != second.dtype:
        raise mismatch(
            "select", "on_true", first, "on_false", second, "both must have one shape and dtype"
        )
    if choice.shape not in ((), first.shape):
        raise ShapeError(
            f"select: pred is {choice}; it must be a scalar or have the shape of the arrays, "
            f"{first}"
        )
    return where(broadcast_to(pred, first.shape), on_true, on_false)


PRIMITIVES: tuple[Primitive, ...] = (cond_p, cond_lanes_p)
