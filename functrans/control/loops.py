"""Loops over the elements of arrays and tapes: the primitive ``scan`` and its rules.

Here: the primitive. Not here: what becomes of the body (``control.loop_bodies``), the functions
that users call (``control.scanning``), loops of which only a condition tells the end
(``control.while_loop``).

``scan`` runs a program ``(*consts, *carry, *xs) -> (*carry, *ys)`` a number of times. The number is
either static, and then ``xs`` and ``ys`` are arrays with a leading axis of this extent; or it is
the first operand, and then they are tapes. Loops of the second kind are the linear parts of
``while_loop``: an iteration pops the residuals that the forward loop pushed.

Every derivative of a scan is a scan. Transposition turns the direction round, carried tangents into
carried cotangents, ``xs`` into ``ys`` (reading an entry is the transpose of writing it), and sums
the cotangents of ``consts`` in the carry. Linearization stores one entry per iteration of what the
linear part reads, except of what is an argument already (``consts``, ``xs``) or is the same in
every iteration.

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.calls import are_masked, is_nonzero, kept_residuals, to_front, with_masks
from functrans.control.loop_bodies import (
    Split,
    Transposed,
    fixpoint,
    jvp_body,
    lanes_body,
    split_body,
    transposed_body,
)
from functrans.control.native import jit_p
from functrans.core.avals import Aval, ShapedArray, Tape, Zero
from functrans.core.byte_order import in_native_order
from functrans.core.dispatch import aval_of, bind
from functrans.core.jaxpr import Jaxpr
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import here
from functrans.core.state import batch_axis
from functrans.core.tapes import TapeValue
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.ir.parameters import check_fits, check_number
from functrans.passes.batch import named_axes
from functrans.passes.cotangents import instantiate, mask_of, zeros
from functrans.passes.executables import loop_executable
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    dependence,
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
from functrans.primitives.reduction import reduce_max
from functrans.primitives.structural import moveaxis
from functrans.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Shape:
    """The static parameters of a scan besides its program.

    Attributes:
      n_consts: number of operands that every iteration sees unchanged.
      n_carry: number of values that each iteration computes for the next one.
      length: number of iterations; ``None`` where it is the first operand.
      reverse: whether the last element comes first.
      unroll: iterations per turn of a compiled loop.
    """

    n_consts: int
    n_carry: int
    length: int | None
    reverse: bool
    unroll: int

    def unpack(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """The number of iterations (or nothing), ``consts``, ``carry``, ``xs``."""
        first, consts, carry, xs = split(items, self.length is None, self.n_consts, self.n_carry)
        return first, consts, carry, xs

    def bind(
        self,
        jaxpr: Jaxpr,
        count: Sequence[Any],
        consts: Sequence[Any],
        carry: Sequence[Any],
        xs: Sequence[Any],
        *,
        reverse: bool | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """Bind a scan of as many iterations; returns the last carry and ``ys``."""
        outs = bind(
            scan_p,
            *count,
            *consts,
            *carry,
            *xs,
            jaxpr=jaxpr,
            n_consts=len(consts),
            n_carry=len(carry),
            length=self.length,
            reverse=self.reverse if reverse is None else reverse,
            unroll=self.unroll,
        )
        final, ys = split(outs, len(carry))
        return final, ys

    def stacked(self, aval: Aval) -> Aval:
        """The aval of one entry per iteration."""
        if self.length is None or type(aval) is Tape:
            return Tape(aval.strong())
        assert type(aval) is ShapedArray
        return ShapedArray((self.length, *aval.shape), aval.dtype)


def scan_shape(params: dict[str, Any]) -> Shape:
    """The static parameters of a scan as a record."""
    return Shape(
        params["n_consts"], params["n_carry"], params["length"], params["reverse"], params["unroll"]
    )


# evaluation -------------------------------------------------------------------------------------


def _scan_impl(*operands: Array | complex, jaxpr: Jaxpr, **params: Any) -> tuple[Any, ...]:
    shape = scan_shape(params)
    first, consts, carry, xs = shape.unpack(operands)
    n = int(first[0]) if first else params["length"]
    ys = [_new_stack(shape.stacked(aval), n) for aval in jaxpr.out_avals[shape.n_carry :]]
    if n:
        numbers = range(n - 1, -1, -1) if shape.reverse else range(n)
        loop = loop_executable(jaxpr, shape.n_consts, shape.n_carry)
        entries = [_entries(x, n) for x in xs]
        slots = [y.entries if type(y) is TapeValue else y for y in ys]
        fixed = (*in_native_order(jaxpr.consts), *consts)
        carry = loop(numbers, *fixed, *carry, *entries, *slots)  # type: ignore[assignment]  # a list here
    return (*carry, *ys)


def _new_stack(aval: Aval, n: int) -> TapeValue | Array:
    """Room for one entry per iteration."""
    return TapeValue(aval, n) if type(aval) is Tape else np.empty(aval.shape, aval.dtype)


def _entries(x: Any, n: int) -> Any:
    """The entries of an operand, by iteration."""
    if type(x) is not TapeValue:
        return x
    return x.entries if x.length >= n else [x.read(i) for i in range(n)]


def _scan_aval(*avals: Aval, jaxpr: Jaxpr, **params: object) -> tuple[Aval, ...]:
    shape = scan_shape(params)
    carry, ys = split(jaxpr.out_avals, shape.n_carry)
    return (*carry, *map(shape.stacked, ys))


def _scan_check(
    *avals: Aval, jaxpr: Jaxpr, n_consts: int, n_carry: int, length: int | None, **_: int
) -> None:
    if length is None:
        check_number("scan: the number of rounds", *avals[:1])
        avals = avals[1:]
    if n_consts + n_carry > len(avals):
        raise TypeError(f"scan: {n_consts} constants and {n_carry} carried values of {len(avals)}")
    given, carry, stacks = split(avals, n_consts, n_carry)
    entries = []
    for stack in stacks:
        if type(stack) is not Tape and (length is None or stack.shape[:1] != (length,)):
            raise TypeError(f"scan of {length} rounds: {stack} has not one entry for each")
        entries.append(
            stack.element if type(stack) is Tape else ShapedArray(stack.shape[1:], stack.dtype)
        )
    check_fits("scan: argument of its program", jaxpr.in_avals, (*given, *carry, *entries))
    check_fits("scan: next carried value", jaxpr.out_avals[:n_carry], carry)


# forward mode -----------------------------------------------------------------------------------


def _scan_jvp(
    primals: tuple[Array | complex, ...], tangents: tuple[Any, ...], *, jaxpr: Jaxpr, **params: Any
) -> tuple[Any, ...]:
    shape = scan_shape(params)
    first, consts, carry, xs = shape.unpack(primals)
    _, *parts = shape.unpack(tangents)
    const_nz, start, xs_nz = (is_nonzero(part) for part in parts)
    program, carry_nz, ys_nz = jvp_body(jaxpr, const_nz, start, xs_nz)
    carry_dots = [
        zeros(aval.strong()) if type(t) is Zero else t
        for t, aval in zip(parts[1], jaxpr.in_avals[shape.n_consts :], strict=False)
    ]
    final, ys = shape.bind(
        program,
        first,
        [*consts, *select(parts[0], const_nz)],
        [*carry, *select(carry_dots, carry_nz)],
        [*xs, *select(parts[2], xs_nz)],
    )
    outs = [*final[: shape.n_carry], *ys[: len(ys_nz)]]
    avals = _scan_aval(jaxpr=jaxpr, **params)
    given = [*final[shape.n_carry :], *ys[len(ys_nz) :]]
    return outs, spread((*carry_nz, *ys_nz), given, lambda i: Zero(avals[i].strong()))


# linearization ----------------------------------------------------------------------------------


def _scan_linearize(
    needs: Flags, operands: Sequence[Array | complex], *, jaxpr: Jaxpr, **params: object
) -> tuple[tuple[Any, ...], LinearProgram]:
    shape = scan_shape(params)
    first, consts, carry, xs = shape.unpack(operands)
    _, *flags = (tuple(part) for part in shape.unpack(needs))
    const_needs, start, xs_needs = flags
    parts = split_body(jaxpr, const_needs, start, xs_needs)
    same = (
        bind(jit_p, *consts, jaxpr=parts.invariant, name=jaxpr.name)
        if parts.invariant.outvars
        else ()
    )
    final, ys = shape.bind(parts.primal, first, consts, carry, xs)
    n_ys = len(jaxpr.outvars) - shape.n_carry
    residuals = kept_residuals(
        [
            *first,
            *(consts[i] for i in parts.const_residuals),
            *same,
            *(xs[i] for i in parts.x_residuals),
            *ys[n_ys:],
        ],
        operands,
        needs,
    )
    tangent_avals = [aval_of(x).strong() for x, need in zip(operands, needs, strict=True) if need]
    avals = [*map(aval_of, residuals), *tangent_avals]
    program = derived(
        jaxpr,
        ("scan linear", shape, needs, tuple(avals)),
        lambda: stage(
            linear_function(parts, shape, jaxpr, start, sum(const_needs)),
            avals,
            f"linear part of scan of {jaxpr.name}",
        ),
    )
    targets = tuple(i for i, need in enumerate(needs) if need)
    return (*final, *ys[:n_ys]), LinearProgram(program, targets, tuple(residuals))


def linear_function(
    parts: Split, shape: Shape, jaxpr: Jaxpr, start: Flags, n_const_dots: int
) -> Callable[..., list[Any]]:
    """The linear part of a scan as a function of residuals and tangents."""
    counts = (
        shape.length is None,
        len(parts.const_residuals) + len(parts.invariant.outvars),
        len(parts.x_residuals) + len(parts.primal.outvars) - len(jaxpr.outvars),
        n_const_dots,
        sum(start),
    )
    carry_avals = jaxpr.out_avals[: shape.n_carry]
    out_avals = [
        aval.strong()
        for aval in (*carry_avals, *map(shape.stacked, jaxpr.out_avals[shape.n_carry :]))
    ]

    def function(*args: object) -> list[Any]:
        first, known, x_known, const_dots, given, x_dots = split(args, *counts)
        carry_dots = spread(start, given, lambda i: zeros(carry_avals[i].strong()))
        final, ys = shape.bind(
            parts.linear,
            first,
            [*known, *const_dots],
            select(carry_dots, parts.carry_needs),
            [*x_known, *x_dots],
        )
        flags = (*parts.carry_needs, *parts.ys_nonzero)
        return spread(flags, [*final, *ys], lambda i: zeros(out_avals[i]))

    return function


# transposition ----------------------------------------------------------------------------------


def scan_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, jaxpr: Jaxpr, **params: object
) -> tuple[Any, ...]:
    """The transpose rule of ``scan``: a scan in the other direction."""
    shape = scan_shape(params)
    first, consts, carry, xs = shape.unpack(operands)
    const_lin, init_lin, xs_lin = (tuple(map(is_linear, part)) for part in (consts, carry, xs))
    k = shape.n_carry
    carry_lin = fixpoint(
        init_lin, lambda flags: dependence(jaxpr, (*const_lin, *flags, *xs_lin))[:k]
    )
    out_lin = dependence(jaxpr, (*const_lin, *carry_lin, *xs_lin))
    known_consts = [x for x in consts if not is_linear(x)]
    known_xs = [x for x in xs if not is_linear(x)]
    if not all(carry_lin):
        known_xs += _known_carries(jaxpr, shape, operands, const_lin, carry_lin, xs_lin)
    y_nz = tuple(
        type(ct) is not Zero and flag for ct, flag in zip(cts[k:], out_lin[k:], strict=True)
    )
    ct_carry, ct_ys = select(cts[:k], carry_lin), select(cts[k:], y_nz)
    start = is_nonzero(ct_carry)
    flags = (const_lin, carry_lin, xs_lin)
    masked = (are_masked(ct_carry), are_masked(ct_ys))
    parts: Transposed = derived(
        jaxpr,
        ("scan transpose", shape.n_carry, flags, start, y_nz, masked),
        lambda: transposed_body(jaxpr, flags, start, y_nz, *masked),
    )
    const_nz, carry_nz, xs_nz = parts.nonzero
    const_masked, carry_masked, xs_masked = parts.masked
    avals = [x.aval.strong() for x in consts if is_linear(x)]
    sums = [zeros(aval) for aval in select(avals, const_nz)]
    filled = [instantiate(ct) for ct in select(ct_carry, carry_nz)]
    sum_masks = [np.zeros(aval.shape, bool) for aval in select(avals, const_masked)]
    carry_masks = [mask_of(ct) for ct in select(ct_carry, carry_masked)]
    y_masks = [mask_of(ct) for ct in select(ct_ys, masked[1])]
    final, x_outs = shape.bind(
        parts.body,
        first,
        known_consts,
        [*sums, *filled, *sum_masks, *carry_masks],
        [*known_xs, *map(instantiate, ct_ys), *y_masks],
        reverse=not shape.reverse,
    )
    counts = sum(const_nz), sum(carry_nz), sum(const_masked)
    const_cts, carry_cts, const_on, carry_on = split(final, *counts)
    x_cts, x_on = split(x_outs, sum(xs_nz))
    own_consts = iter(with_masks(const_nz, const_cts, const_masked, const_on))
    carried = iter(with_masks(carry_nz, carry_cts, carry_masked, carry_on))
    own_xs = iter(with_masks(xs_nz, x_cts, xs_masked, x_on))
    all_carried = [next(carried) if flag else None for flag in carry_lin]
    return (
        *(None for _ in first),
        *(next(own_consts) if flag else None for flag in const_lin),
        *(ct if flag else None for ct, flag in zip(all_carried, init_lin, strict=True)),
        *(next(own_xs) if flag else None for flag in xs_lin),
    )


def _known_carries(
    jaxpr: Jaxpr,
    shape: Shape,
    operands: Sequence[Any],
    const_lin: Flags,
    carry_lin: Flags,
    xs_lin: Flags,
) -> list[Any]:
    """Per iteration, what the carried values that are not linear are when it begins."""
    first, consts, carry, xs = shape.unpack(operands)
    n_consts, k = shape.n_consts, shape.n_carry
    positions = [
        *(i for i, flag in enumerate(const_lin) if not flag),
        *(n_consts + i for i, flag in enumerate(carry_lin) if not flag),
        *(n_consts + k + i for i, flag in enumerate(xs_lin) if not flag),
    ]
    known = [i for i, flag in enumerate(carry_lin) if not flag]

    def make() -> Jaxpr:
        ordered = permute(jaxpr, positions, known)
        program = value_part(ordered)
        before = [jaxpr.invars[n_consts + i] for i in known]
        return simplify(replace(program, outvars=(*program.outvars, *before), cache={}))

    program = derived(jaxpr, ("scan known", k, const_lin, carry_lin, xs_lin), make)
    _, values = shape.bind(
        program,
        first,
        [x for x in consts if not is_linear(x)],
        [carry[i] for i in known],
        [x for x in xs if not is_linear(x)],
    )
    return values


# batching ---------------------------------------------------------------------------------------


def _scan_batch(
    size: int,
    operands: Sequence[Array | complex],
    dims: Sequence[int | None],
    *,
    jaxpr: Jaxpr,
    **params: object,
) -> tuple[Any, ...]:
    shape = scan_shape(params)
    first, *_ = shape.unpack(dims)
    if first and first[0] is not None:
        return _batch_lanes(size, operands, dims, jaxpr, shape)
    return _batch_together(size, operands, dims, jaxpr, shape)


def _batch_together(
    size: int,
    operands: Sequence[Array | complex],
    dims: Sequence[int | None],
    jaxpr: Jaxpr,
    shape: Shape,
) -> tuple[Any, ...]:
    """The batch of loops of one length: a loop of batches."""
    _, const_dims, carry_dims, x_dims = shape.unpack(dims)
    first, consts, carry, xs = shape.unpack(operands)
    const_flags, start, x_flags = (
        tuple(dim is not None for dim in part) for part in (const_dims, carry_dims, x_dims)
    )
    k = shape.n_carry
    n_ys = len(jaxpr.outvars) - k
    axis_name = batch_axis.get()

    def at(flags: Flags) -> tuple[Jaxpr, Flags]:
        force = (*flags, *(False,) * n_ys)
        return batch_jaxpr(jaxpr, size, (*const_flags, *flags, *x_flags), force, axis_name)

    carry_flags = fixpoint(start, lambda flags: at(flags)[1][:k])
    program, out_flags = at(carry_flags)
    final, ys = shape.bind(
        program,
        first,
        to_front(size, consts, const_dims),
        [
            with_batch_axis(x, size, dim) if flag else x
            for x, dim, flag in zip(carry, carry_dims, carry_flags, strict=True)
        ],
        [_behind_iterations(x, dim) for x, dim in zip(xs, x_dims, strict=True)],
    )
    y_dims = [
        (0 if type(aval_of(y)) is Tape else 1) if flag else None
        for y, flag in zip(ys, out_flags[k:], strict=True)
    ]
    return (*final, *ys), (*(0 if flag else None for flag in carry_flags), *y_dims)


def _behind_iterations(x: Array, dim: int | None) -> Array:
    """A stack with its batch axis in front of each entry."""
    if dim is None or type(aval_of(x)) is Tape:
        return x
    return moveaxis(x, dim, 1)


def _batch_lanes(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], jaxpr: Jaxpr, shape: Shape
) -> tuple[Any, ...]:
    """The batch of loops of different lengths: a loop as long as the longest of them.

    Each iteration is run by the lanes whose loop has it.
    """
    axis_name = batch_axis.get()
    if axis_name is not None and axis_name in named_axes(jaxpr):
        raise UnsupportedOperationError(
            f"vmap: a loop has a collective over axis {axis_name!r}{here()}, but its length "
            "differs between the elements of that axis, so that not all of them take part"
        )
    _, const_dims, carry_dims, x_dims = shape.unpack(dims)
    (counts,), consts, carry, xs = shape.unpack(operands)
    const_flags, x_flags = (tuple(dim is not None for dim in part) for part in (const_dims, x_dims))
    counts = with_batch_axis(counts, size, 0)
    total = reduce_max(counts, (0,)) if size else np.int64(0)
    k = shape.n_carry
    batched = (*const_flags, *(True,) * k, *x_flags)
    step = -1 if shape.reverse else 1
    program = lanes_body(jaxpr, size, shape.n_consts, k, step, batched)
    start = total - 1 if shape.reverse else np.int64(0)
    final, ys = shape.bind(
        program,
        [total],
        [counts, *to_front(size, consts, const_dims)],
        [start, *(with_batch_axis(x, size, dim) for x, dim in zip(carry, carry_dims, strict=True))],
        xs,
    )
    return (*final[1:], *ys), (0,) * (k + len(ys))


def _scan_prune(used: Flags, *, jaxpr: Jaxpr, **params: object) -> tuple[Any, ...]:
    shape = scan_shape(params)
    c, k = shape.n_consts, shape.n_carry
    ys_used = used[k:]
    carry_used = fixpoint(
        used[:k], lambda flags: prune_jaxpr(jaxpr, (*flags, *ys_used))[1][c : c + k]
    )
    program, read = prune_jaxpr(jaxpr, (*carry_used, *ys_used))
    own = (*read[:c], *carry_used, *read[c + k :])
    pruned = {
        **params,
        "jaxpr": with_arguments(program, own),
        "n_consts": sum(read[:c]),
        "n_carry": sum(carry_used),
    }
    inputs = own if shape.length is not None else (True, *own)
    return pruned, inputs, (*carry_used, *ys_used)


scan_p = Primitive(
    "scan",
    impl=_scan_impl,
    abstract_eval=_scan_aval,
    check=_scan_check,
    jvp=Joint(_scan_jvp),
    linearize=_scan_linearize,
    transpose=scan_transpose,
    takes_masks=True,
    batch=_scan_batch,
    prune=_scan_prune,
    lower=Structured("scan"),
    holds_programs=True,
)


PRIMITIVES: tuple[Primitive, ...] = (scan_p,)
