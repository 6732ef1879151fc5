"""The rules that all primitives share which call one program once.

Here: jvp, linearization, transposition and batching of an equation with one program, written once
and given the function that binds the primitive with another program. Not here: the primitives
(``jitted.jit``, ``checkpoint``, ``custom_rules``).

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import Tape, Zero
from functrans.core.dispatch import Tracer, aval_of, bind, innermost_staging
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Primitive, is_linear
from functrans.core.state import batch_axis
from functrans.core.values import Array
from functrans.passes.cotangents import Masked, plain, zeros
from functrans.passes.nodes import LinearProgram, kept
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    derived,
    jvp_jaxpr,
    linearize_jaxpr,
    prune_jaxpr,
    select,
    spread,
    transpose_jaxpr_with_masks,
    with_arguments,
    with_batch_axis,
)
from functrans.passes.staging import may_change, stage
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds one primitive with one program: ``(jaxpr, *operands) -> outs``.

    Attributes:
      primitive: the primitive, whose parameter ``jaxpr`` is the program.
      params: its other parameters, as items.
    """

    primitive: Primitive
    params: tuple[tuple[str, Any], ...] = ()

    def __call__(self, jaxpr: Jaxpr, *operands: Any) -> tuple[Any, ...]:
        """Apply the primitive."""
        return bind(self.primitive, *operands, jaxpr=jaxpr, **dict(self.params))


def is_nonzero(values: Sequence[Any]) -> Flags:
    """Which tangents or cotangents are not symbolic zeros."""
    return tuple(type(value) is not Zero for value in values)


def are_masked(cts: Sequence[Any]) -> Flags:
    """Which cotangents are masked."""
    return tuple([type(ct) is Masked for ct in cts])


def with_masks(
    nonzero: Flags, cts: Sequence[Any], masked: Flags, masks: Sequence[Any]
) -> list[Any]:
    """Cotangents, ``None`` where there is none, with the masks that there are, but for tapes."""
    return [
        ct if mask is None or type(aval_of(ct)) is Tape else Masked(ct, mask)
        for ct, mask in zip(
            spread(nonzero, cts, lambda i: None), spread(masked, masks, lambda i: None), strict=True
        )
    ]


def call_jvp(
    bind_program: Binder, jaxpr: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Results and tangents."""
    nonzero = is_nonzero(tangents)
    program, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    results = bind_program(program, *primals, *select(tangents, nonzero))
    n = len(jaxpr.outvars)
    avals = jaxpr.out_avals
    return results[:n], spread(out_nonzero, results[n:], lambda i: Zero(avals[i].strong()))


def call_linearize(
    bind_program: Binder, jaxpr: Jaxpr, needs: Flags, operands: Sequence[Any]
) -> tuple[tuple[Any, ...], LinearProgram]:
    """Results and the linear part, which is one equation."""
    split = linearize_jaxpr(jaxpr, needs)
    results = bind_program(split.primal, *operands)
    n = len(jaxpr.outvars)
    residuals = kept_residuals(results[n:], operands, needs)

    def linear(*args: object) -> list[Any]:
        outs = bind_program(split.linear, *args)
        return spread(split.out_nonzero, outs, lambda i: zeros(jaxpr.out_avals[i].strong()))

    program = derived(
        jaxpr,
        ("call", needs, bind_program),
        lambda: stage(linear, split.linear.in_avals, f"linear part of {jaxpr.name}"),
    )
    targets = tuple(i for i, need in enumerate(needs) if need)
    return tuple(results[:n]), LinearProgram(program, targets, tuple(residuals))


def kept_residuals(
    residuals: Sequence[Any], operands: Sequence[Any], needs: Sequence[bool]
) -> list[Any]:
    """Residuals, copied where they are, or share memory with, a constant that may change."""
    if innermost_staging() is not None:
        return list(residuals)  # constants of a program are read when it runs
    foreign = [
        operand
        for operand, need in zip(operands, needs, strict=True)
        if not need and (may_change(operand) or isinstance(operand, Tracer))
    ]
    if not foreign:
        return list(residuals)
    return [kept(value) if _shares_memory(value, foreign) else value for value in residuals]


def _shares_memory(value: Array, others: Sequence[Any]) -> bool:
    """Whether a value is one of others, or a view into one of them."""
    if any(value is other for other in others):
        return True
    return (
        type(value) is np.ndarray
        and value.base is not None
        and any(type(other) is np.ndarray and np.may_share_memory(value, other) for other in others)
    )


def call_transpose(
    bind_program: Binder, jaxpr: Jaxpr, cts: Sequence[Any], operands: Sequence[Any]
) -> tuple[Any, ...]:
    """Cotangents of the linear operands, masked by the selections in the program."""
    linear_flags = tuple(map(is_linear, operands))
    nonzero = is_nonzero(cts)
    masked = are_masked(cts)
    program, in_nonzero, in_masked = transpose_jaxpr_with_masks(
        jaxpr, linear_flags, nonzero, masked
    )
    known = [operand for operand in operands if not is_linear(operand)]
    values = [plain(ct) for ct in select(cts, nonzero)]
    masks = [ct.mask for ct in select(cts, masked)]
    results = bind_program(program, *known, *values, *masks)
    n = sum(in_nonzero)
    pulled = iter(with_masks(in_nonzero, results[:n], in_masked, results[n:]))
    return tuple(next(pulled) if flag else None for flag in linear_flags)


def call_batch(
    bind_program: Binder, jaxpr: Jaxpr, size: int, operands: Sequence[Any], dims: Sequence[Any]
) -> tuple[Sequence[Any], list[int | None]]:
    """Batched results; those that do not depend on batched operands stay as they are."""
    flags = tuple(dim is not None for dim in dims)
    program, out_batched = batch_jaxpr(jaxpr, size, flags, False, batch_axis.get())
    outs = bind_program(program, *to_front(size, operands, dims))
    return outs, [0 if flag else None for flag in out_batched]


def to_front(size: int, operands: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Operands with their batch axes in front."""
    return [
        operand if dim is None else with_batch_axis(operand, size, dim)
        for operand, dim in zip(operands, dims, strict=True)
    ]


def call_prune(
    bind_program: Binder, jaxpr: Jaxpr, used: Flags
) -> tuple[dict[str, Any], Flags, Flags]:
    """Parameters for some results only, operands and results that are left."""
    program, read = prune_jaxpr(jaxpr, used)
    params = {"jaxpr": with_arguments(program, read), **dict(bind_program.params)}
    return params, read, used
