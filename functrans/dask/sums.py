"""Sums over data in parts: ``sum_over``, and the primitive that it binds.

Here: the primitive ``distributed_sum`` with all its rules. Not here: how a program runs on workers
(``running``), where the parts come from (``chunks``).

A sum of programs is linear in them, and operands are the same for all parts. So every derivative of
a sum is the sum of a derived program: the pushforward and the transposed program of the parts are
added up as the values are. The gradient of one scalar result is computed together with it, in one
pass over the data.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import finish_results, mismatch
from functrans.control.calls import is_nonzero, kept_residuals, to_front
from functrans.core.arguments import name_of, named
from functrans.core.avals import Aval, Zero
from functrans.core.calling import traced_form
from functrans.core.dispatch import bind, dtype_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.state import batch_axis
from functrans.core.transformed import transform
from functrans.dask.chunks import Chunks, Described
from functrans.dask.totals import total
from functrans.dask.staged import Parts, Programs, stage_parts
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
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
from functrans.passes.staging import stage
from functrans.primitives.structural import cast, reduce_sum
from functrans.records import replace


def _first(programs: Programs, operands: Sequence[Any]) -> int:
    """How many arguments of a program are the part's."""
    return len(programs[0].invars) - len(operands)


def _bind(programs: Programs, chunks: Chunks, operands: Sequence[Any]) -> tuple[Any, ...]:
    return bind(distributed_sum_p, *operands, programs=programs, chunks=chunks)


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


# rules ------------------------------------------------------------------------------------------


def _impl(*operands: Any, programs: Programs, chunks: Chunks) -> tuple[Any, ...]:
    found = total(programs, chunks, operands)
    avals = programs[0].out_avals
    return tuple(np.asarray(v, aval.dtype) for v, aval in zip(found, avals, strict=True))


def _out_avals(*avals: Aval, programs: Programs, chunks: Chunks) -> tuple[Aval, ...]:
    return tuple(aval.strong() for aval in programs[0].out_avals)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, programs: Programs, chunks: Chunks
) -> tuple[Sequence[Any], Sequence[Any]]:
    flags = (False,) * _first(programs, primals) + is_nonzero(tangents)
    pushed = tuple(_pushed(program, flags) for program in programs)
    results = _bind(pushed, chunks, [*primals, *(t for t in tangents if type(t) is not Zero)])
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
    needs: Flags, operands: Sequence[Any], *, programs: Programs, chunks: Chunks
) -> tuple[tuple[Any, ...], LinearProgram]:
    outs = programs[0].out_avals
    targets = tuple(i for i, need in enumerate(needs) if need)
    flags = (False,) * _first(programs, operands) + tuple(needs)
    if len(outs) == 1 and outs[0].shape == () and outs[0].dtype.kind == "f":
        graded = tuple(_with_gradients(program, flags) for program in programs)
        value, *gradients = _bind(graded, chunks, operands)
        return (value,), LinearProgram(
            _inner_products(programs[0], flags), targets, tuple(gradients)
        )
    values = _bind(programs, chunks, operands)
    pushed = tuple(_tangents(program, flags) for program in programs)

    def linear(*args: Any) -> tuple[Any, ...]:
        return _bind(pushed, chunks, args)

    first = _first(programs, operands)
    label = f"linear part of the sum of {programs[0].name}"
    whole = stage(linear, pushed[0].in_avals[first:], label, name=programs[0].name)
    residuals = kept_residuals(operands, operands, needs)
    return values, LinearProgram(whole, targets, tuple(residuals))


@derivation
def _inner_products(program: Jaxpr, needs: Flags) -> Jaxpr:
    """``(*gradients, *tangents) -> the tangent of the one result``."""
    avals = [aval.strong() for aval in select(program.in_avals, needs)]
    n = len(avals)

    def run(*args: Any) -> list[Any]:
        terms = [
            reduce_sum(g * t, tuple(range(len(aval.shape))))
            for g, t, aval in zip(args[:n], args[n:], avals, strict=True)
        ]
        return [sum(terms[1:], terms[0])]

    return stage(run, [*avals, *avals], f"linear part of the sum of {program.name}")


def _transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, programs: Programs, chunks: Chunks
) -> tuple[Any, ...]:
    linear = tuple(map(is_linear, operands))
    flags = (False,) * _first(programs, operands) + linear
    nonzero = is_nonzero(cts)
    made = [transpose_jaxpr(program, flags, nonzero) for program in programs]
    wanted = tuple(map(any, zip(*(own for _, own in made), strict=True)))
    avals = select(programs[0].in_avals, flags)
    pulled = tuple(_widened(_named("grad", program), own, wanted, avals) for program, own in made)
    known = [operand for operand in operands if not is_linear(operand)]
    results = iter(_bind(pulled, chunks, [*known, *select(cts, nonzero)]))
    found = iter([next(results) if flag else None for flag in wanted])
    return tuple(next(found) if flag else None for flag in linear)


def _batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    programs: Programs,
    chunks: Chunks,
) -> tuple[Sequence[Any], list[int]]:
    flags = (False,) * _first(programs, operands) + tuple(dim is not None for dim in dims)
    batched = tuple(
        _named("vmap", batch_jaxpr(program, size, flags, True, batch_axis.get())[0])
        for program in programs
    )
    outs = _bind(batched, chunks, to_front(size, operands, dims))
    return outs, [0] * len(outs)


def _prune(
    used: Flags, *, programs: Programs, chunks: Chunks
) -> tuple[dict[str, Any], Flags, Flags]:
    fewer = tuple(prune_jaxpr(program, used)[0] for program in programs)
    n = len(programs[0].invars) - len(chunks.avals[0])
    return {"programs": fewer, "chunks": chunks}, (True,) * n, used


distributed_sum_p = Primitive(
    "distributed_sum",
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


# the function -----------------------------------------------------------------------------------


@transform
def sum_over(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that adds up another one over parts of data.

    ``fun(params, X, y)`` is evaluated for each part of the arguments that are data, with the rows
    of that part, and the results are added. All transforms apply to what comes out, in its other
    arguments: its gradient is one pass over the data, a Hessian-vector product another.

    Data are Dask arrays, cut along their first axis, bags (items of a partition are stacked), and
    lists of delayed values, each of which gives a pytree of arrays. Parts are evaluated where
    Dask's scheduler puts them: on the workers of a client if there is one, else on threads. What
    travels is the program, once to each worker.

    Args:
      fun: function of pytrees of arrays; its result has the same shapes for all parts.

    Returns:
      Function of the same arguments. Results are added in a tree which depends on the number of
      parts alone: they have the same bits for any number of workers.

    Raises:
      TypeError: (when called) no argument is data.
      ShapeError: (when called) sizes of chunks are not known, arguments are cut differently or not
        along the first axis, or results of parts have different shapes.
      UnsupportedOperationError: (when called) ``fun`` has no program that can travel, such as one
        with callbacks.

    Example:
      >>> import dask.array as da, functrans as ft, numpy as np
      >>> X = da.ones((6, 2), chunks=(4, 2))
      >>> loss = ft.dask.sum_over(lambda w, X: 0.5 * np.sum((X @ w) ** 2))
      >>> loss(np.array([1.0, 2.0]), X)
      array(27.)
      >>> ft.grad(loss)(np.array([1.0, 2.0]), X)
      array([18., 18.])
    """
    fun = traced_form("sum_over", fun)
    keep = Described()

    @named("sum_over", fun)
    def summed(*args: Any, **kwargs: Any) -> Any:
        label = f"sum_over of {name_of(fun)}"
        parts = stage_parts(label, fun, args, kwargs, keep, _additive)
        _check_results(label, parts)
        outs = _bind(parts.programs, parts.chunks, parts.operands)
        return finish_results(outs, parts.operands, parts.treedef)

    return summed


def _additive(result: Any) -> Any:
    """Truth values are counted, and integers are added as NumPy adds them."""

    def wide(leaf: Any) -> Any:
        dtype = dtype_of(leaf)
        if dtype.kind not in "biu" or dtype.itemsize == 8:
            return leaf
        return cast(leaf, np.dtype(np.uint64 if dtype.kind == "u" else np.int64))

    return tree.map(wide, result)


def _check_results(label: str, parts: Parts) -> None:
    """Refuse results of parts that cannot be added."""
    first = parts.programs[0].out_avals
    for kind, program in enumerate(parts.programs):
        number = parts.chunks.kinds.index(kind)
        for i, (own, other) in enumerate(zip(program.out_avals, first, strict=True)):
            if own.shape != other.shape or own.dtype != other.dtype:
                path = tree.paths_of(parts.treedef, "result")[i]
                raise mismatch(
                    label, f"{path} of {parts.chunks.name(number)}", own,
                    f"that of {parts.chunks.name(0)}", other,
                    "results are added: take the sum or a fixed number of results over the rows",
                )  # fmt: skip


PRIMITIVES: tuple[Primitive, ...] = (distributed_sum_p,)
