"""One program on all shards of arrays, which exchange values: ``shard_map``.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import Body, finish_results, stage_body
from functrans.control.collectives import axis_index
from functrans.core.arguments import name_of, named
from functrans.core.avals import ShapedArray
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of, dtype_of, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.core.transformed import transform
from functrans.dask.chunks import Chunks, KnownParts, items
from functrans.dask.mapping import Flow, bind_map
from functrans.dask.staged import Arguments, arguments_of
from functrans.errors import ShapeError, TreeMismatchError
from functrans.passes.programs import permute
from functrans.primitives.elementwise import where
from functrans.primitives.structural import moveaxis, reshape


class P:
    """Which axis of an array is cut into shards: ``P("i")``, ``P(None, "i")``; ``P()`` for none.

    Args:
      names: per axis, the name of the axis of shards along which it is cut, or ``None``.
    """

    __slots__ = ("names",)

    def __init__(self, *names: str | None) -> None:
        self.names = names

    def __repr__(self) -> str:
        """As it is written."""
        return f"P({', '.join(map(repr, self.names))})"


@boundary
@transform
def shard_map(
    fun: Callable[..., Any],
    in_specs: Any,
    out_specs: Any,
    axis_name: str,
    *,
    axis_size: int | None = None,
) -> Callable[..., Any]:
    """Run a function on all shards of its arguments, on the workers of Dask.

    Each shard runs ``fun`` with its part of the arguments. In it, ``ft.lax.psum``, ``pmean``,
    ``pmax``, ``pmin``, ``all_gather`` and ``axis_index`` refer to all shards by ``axis_name``, as
    under ``ft.vmap(..., axis_name=...)``, whose results and derivatives these are. Between two
    collectives nothing but what they exchange leaves a worker.

    Args:
      fun: function of pytrees of arrays.
      in_specs: per positional argument a ``P`` or a tree prefix of such: which axis is cut. An
        argument with ``P()`` goes to all shards.
      out_specs: a ``P`` or a tree prefix of the result: along which axis the results of shards are
        joined. With ``P()`` it is the result of the first shard; make it the same for all by a
        collective.
      axis_name: the name of the axis of shards.
      axis_size: how many shards there are. Where arguments are Dask arrays, their chunks are the
        shards.

    Returns:
      Function of the same arguments, with all derivatives in those that are arrays.

    Raises:
      TreeMismatchError: (when called) specs are no tree prefixes.
      ShapeError: (when called) an axis is not cut evenly, or does not exist.
      ValueError: (when called) a spec has another axis, or the number of shards is not known.
      UnsupportedOperationError: (when called) a collective is in a branch, or ``fun`` has no
        program that can travel.

    Example:
      >>> import functrans as ft, numpy as np
      >>> P = ft.dask.P
      >>> def normalized(x):
      ...     return x / ft.lax.psum(np.sum(x), "i")
      >>> ft.dask.shard_map(normalized, P("i"), P("i"), "i", axis_size=2)(np.arange(4.0))
      array([0.        , 0.16666667, 0.33333333, 0.5       ])
    """
    fun = traced_form("shard_map", fun)
    keep = KnownParts()

    @named("shard_map", fun)
    def sharded(*args: Any) -> Any:
        label = f"shard_map of {name_of(fun)}"
        arguments = arguments_of(args, {})
        axes = _in_axes(label, in_specs, args, arguments, axis_name)
        chunks = _shards(label, arguments, axes, axis_size, keep)
        count = len(chunks)
        operands: list[Any] = []
        avals: list[Any] = list(chunks.avals[0])
        for i in arguments.others:
            value = arguments.value(label, i)
            axis = axes[i]
            if axis is not None:
                value = _cut(label, value, axis, count, arguments.paths[i])
            aval = aval_of(value)
            operands.append(value)
            avals.append(aval if axis is None else ShapedArray(aval.shape[1:], aval.dtype))

        def of_shard(*given: Any) -> Any:
            positional, _ = arguments.of_part(given, chunks)
            result = fun(*positional)
            outs, structure = tree.flatten(result)
            joined[:] = _out_axes(label, out_specs, structure, outs, axis_name)
            is_first = axis_index(axis_name) == 0
            return tree.unflatten(
                structure,
                [
                    out if axis is not None else where(is_first, out, _zeros(out))
                    for out, axis in zip(outs, joined, strict=True)
                ],
            )

        joined: list[int | None] = []
        of_shard.__name__ = name_of(fun)
        structure = tree.structure((0,) * len(avals))
        body = stage_body(label, of_shard, structure, avals, axes={axis_name: count})
        n_data = len(chunks.avals[0])
        program = _data_first(body, n_data)
        flow = Flow(
            (*(False,) * len(body.captured), *(axes[i] is not None for i in arguments.others)),
            tuple(axis is None for axis in joined),
            axis_name,
        )
        given = [*body.captured, *operands]
        outs = bind_map((program,), chunks, flow, given)
        results = [
            out if axis is None else _joined(out, axis)
            for out, axis in zip(outs, joined, strict=True)
        ]
        return finish_results(results, given, body.treedef)

    return sharded


def _zeros(value: Any) -> Any:
    return np.zeros(shape_of(value), dtype_of(value))


def _data_first(body: Body, n_data: int) -> Jaxpr:
    """The program with the data in front of what the function captures."""
    n = len(body.captured)
    order = [*range(n, n + n_data), *range(n), *range(n + n_data, len(body.jaxpr.invars))]
    return body.jaxpr if not n or not n_data else permute(body.jaxpr, order)


def _axis(label: str, spec: Any, axis_name: str, where_: str) -> int | None:
    """The axis that a spec cuts."""
    if not isinstance(spec, P):
        raise TypeError(f"{label}: {where_} is {spec!r}{here()}; expected ft.dask.P(...)")
    named = [i for i, name in enumerate(spec.names) if name is not None]
    if any(spec.names[i] != axis_name for i in named):
        raise ValueError(
            f"{label}: {where_} is {spec}{here()}; the axis of shards is {axis_name!r}"
        )
    if len(named) > 1:
        raise ValueError(
            f"{label}: {where_} is {spec}{here()}; expected {axis_name!r} on one axis at most"
        )
    return named[0] if named else None


def _in_axes(
    label: str,
    specs: Any,
    args: tuple[Any, ...],
    arguments: Arguments,
    axis_name: str,
) -> list[int | None]:
    if isinstance(specs, P):
        found = [specs] * len(arguments.leaves)
    else:
        if not isinstance(specs, tuple) or len(specs) != len(args):
            raise TreeMismatchError(
                f"{label}: in_specs is {specs!r}{here()}; expected a P, or a tuple of one entry "
                f"for each of {len(args)} positional arguments"
            )
        found = []
        for i, (spec, arg) in enumerate(zip(specs, args, strict=True)):
            own = arguments_of((arg,), {})
            ((one,), _) = tree.unflatten(own.treedef, list(range(len(own.leaves))))
            found += _prefix(label, spec, one, f"in_specs[{i}]")
    return [
        _axis(label, spec, axis_name, f"the spec of {path}")
        for spec, path in zip(found, arguments.paths, strict=True)
    ]


def _out_axes(
    label: str, specs: Any, structure: Any, outs: Sequence[Any], axis_name: str
) -> list[int | None]:
    found = _prefix(label, specs, tree.unflatten(structure, list(range(len(outs)))), "out_specs")
    paths = tree.paths_of(structure, "result")
    axes = []
    for spec, path, out in zip(found, paths, outs, strict=True):
        axis = _axis(label, spec, axis_name, f"the spec of {path}")
        if axis is not None and axis >= len(shape_of(out)):
            raise ShapeError(
                f"{label}: {path} of a shard has shape {list(shape_of(out))}{here()}, and no axis "
                f"{axis} to be joined along; give it one (x[None]), or use P() and a collective"
            )
        axes.append(axis)
    return axes


def _prefix(label: str, spec: Any, value: Any, name: str) -> list[Any]:
    try:
        return tree.broadcast_prefix(spec, value, label, name)
    except TreeMismatchError as error:
        raise TreeMismatchError(f"{error}{here()}") from None


def _shards(
    label: str,
    arguments: Arguments,
    axes: Sequence[int | None],
    axis_size: int | None,
    keep: KnownParts,
) -> Chunks:
    """The shards: chunks of data, or as many as there should be."""
    if not arguments.places:
        if axis_size is None:
            raise ValueError(
                f"{label}: no argument is data in parts{here()}; give axis_size, the number of "
                "shards"
            )
        if isinstance(axis_size, bool) or not isinstance(axis_size, int) or axis_size < 1:
            raise ValueError(f"{label}: axis_size is {axis_size!r}; expected a positive integer")
        return items(axis_size)
    for i in arguments.places:
        if axes[i] != 0:
            raise ValueError(
                f"{label}: {arguments.paths[i]} is data in parts along its first axis{here()}; "
                "expected a spec that cuts this axis"
            )
    chunks = arguments.chunks(label, keep)
    if len(chunks.avals) > 1:
        first = chunks.kinds.index(1)
        raise ShapeError(
            f"{label}: {chunks.name(first)} is {', '.join(map(str, chunks.avals[1]))}, but "
            f"{chunks.name(0)} is {', '.join(map(str, chunks.avals[0]))}{here()}; shards must be "
            "of one size: rechunk the data"
        )
    if axis_size not in (None, len(chunks)):
        raise ValueError(
            f"{label}: axis_size is {axis_size}, but the data has {len(chunks)} chunks{here()}"
        )
    return chunks


def _cut(label: str, value: Any, axis: int, count: int, path: str) -> Any:
    """``[..., n, ...]`` as ``[shards, ..., n / shards, ...]``."""
    shape = shape_of(value)
    if axis >= len(shape):
        raise ShapeError(
            f"{label}: {path} has shape {list(shape)}{here()}, and no axis {axis} to be cut"
        )
    if shape[axis] % count:
        raise ShapeError(
            f"{label}: axis {axis} of {path} has {shape[axis]} entries{here()}, which {count} "
            "shards do not divide; pad it, or use another number of shards"
        )
    split = (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :])
    return moveaxis(reshape(value, split), axis, 0)


def _joined(value: Any, axis: int) -> Any:
    """``[shards, ..., n, ...]`` as ``[..., shards * n, ...]``."""
    moved = moveaxis(value, 0, axis)
    shape = shape_of(moved)
    return reshape(moved, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
