"""Loops over the elements of arrays and tapes: the primitive ``scan`` and its rules.

Here: the primitive. Not here: the functions that users call (``control.scanning``), loops of which
only a condition tells the end (``control.while_loop``).

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

from functrans.control.branches import cond_lanes_p
from functrans.control.calls import are_masked, is_nonzero, kept_residuals, to_front, with_masks
from functrans.control.native import jit_p
from functrans.core.avals import Aval, ShapedArray, Tape, Zero
from functrans.core.byte_order import in_native_order
from functrans.core.dispatch import aval_of, bind
from functrans.core.jaxpr import Jaxpr, Literal, Var
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import here
from functrans.core.state import batch_axis
from functrans.core.tapes import TapeValue
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.ir.parameters import check_fits, check_number
from functrans.passes.batch import named_axes
from functrans.passes.cotangents import add_cotangents, instantiate, mask_of, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.executables import loop_executable
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    batched_aval,
    dependence,
    derivation,
    derived,
    jvp_jaxpr,
    linearize_jaxpr,
    permute,
    prune_jaxpr,
    select,
    split,
    spread,
    transpose_jaxpr_with_masks,
    value_part,
    with_arguments,
    with_batch_axis,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.elementwise import logical_or
from functrans.primitives.reduction import reduce_max
from functrans.primitives.structural import cast, moveaxis, weaken
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


def fixpoint(start: Flags, step: Callable[[Flags], Flags]) -> Flags:
    """The smallest flags from ``start`` on that ``step`` does not add to."""
    flags = start
    while True:
        more = tuple(a or b for a, b in zip(flags, step(flags), strict=True))
        if more == flags:
            return flags
        flags = more


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


# linearization ----------------------------------------------------------------------------------


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
    n_ys = len(jaxpr.outvars) - k

    def at(carry_needs: Flags) -> Any:
        needs = (*const_needs, *carry_needs, *xs_needs)
        return linearize_jaxpr(jaxpr, needs, (*carry_needs, *(False,) * n_ys))

    carry_needs = fixpoint(start, lambda flags: at(flags).out_nonzero[:k])
    parts = at(carry_needs)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Transposed:
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
    parts: _Transposed = derived(
        jaxpr,
        ("scan transpose", shape.n_carry, flags, start, y_nz, masked),
        lambda: _transposed_body(jaxpr, flags, start, y_nz, *masked),
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


def _transposed_body(
    jaxpr: Jaxpr,
    flags: tuple[Flags, Flags, Flags],
    start: Flags,
    y_nz: Flags,
    start_masked: Flags,
    y_masked: Flags,
) -> _Transposed:
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
    return _Transposed(simplify(staged), (const_nz, carry_nz, xs_nz), masked)


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
    program = _lanes_body(jaxpr, size, shape, batched)
    start = total - 1 if shape.reverse else np.int64(0)
    final, ys = shape.bind(
        program,
        [total],
        [counts, *to_front(size, consts, const_dims)],
        [start, *(with_batch_axis(x, size, dim) for x, dim in zip(carry, carry_dims, strict=True))],
        xs,
    )
    return (*final[1:], *ys), (0,) * (k + len(ys))


@derivation
def _lanes_body(jaxpr: Jaxpr, size: int, shape: Shape, batched: Flags) -> Jaxpr:
    """The body of the loop of all lanes, which carries the number of the iteration."""
    c, k = shape.n_consts, shape.n_carry
    idle = _idle_body(jaxpr, c, k)
    step = -1 if shape.reverse else 1

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
