"""Batches in parts: some elements at a time, and elements that take different paths.

Here: what ``vmap`` does where not all elements go through one program at once. Not here: ``vmap``
itself (``transforms.vectorize``), the answers of elements (``passes.answers``).

Layer: ``transforms``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.arrays.indexing import index_value
from functrans.core.dispatch import shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.passes.batch import evaluate_batched
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import moveaxis
from functrans.transforms.batch_axes import out_specs, place


def refuse_axis(label: str, axis_name: str | None) -> None:
    """Refuse a named axis of which not all elements would be there."""
    if axis_name is not None:
        raise UnsupportedOperationError(
            f"{label}{here()}: elements take different paths through a function that is "
            f"specialised, so that not all take part in collectives over {axis_name!r}; "
            "choose with np.where or ft.lax.cond"
        )


def some_lanes(values: Sequence[Any], dims: Sequence[Any], lanes: np.ndarray) -> list[Any]:
    """The arguments with some lanes of those that are mapped."""
    picked = []
    for value, dim in zip(values, dims, strict=True):
        if dim is None:
            picked.append(value)
            continue
        index = (*[slice(None)] * (dim % value.ndim), lanes)
        picked.append(value[index] if tree.is_float0(value) else index_value(value, index))
    return picked


def joined_paths(
    label: str,
    groups: Sequence[np.ndarray],
    parts: Sequence[tuple[list[Any], Any]],
    out_axes: object,
    size: int,
) -> Any:
    """The results of all lanes from those of groups of them."""
    _, treedef = parts[0]
    for _, other in parts[1:]:
        tree.check_same(
            treedef, other, f"{label}{here()}", "result of some elements", "result of others"
        )
    order = np.argsort(np.concatenate(groups))
    columns = list(zip(*[own for own, _ in parts], strict=True))
    specs = out_specs(label, out_axes, treedef, len(columns))
    outs = []
    for i, (column, spec) in enumerate(zip(columns, specs, strict=True)):
        shapes = {shape_of(out)[1:] for out in column}
        if len(shapes) > 1:
            raise ShapeError(
                f"{label}{here()}: result {i} has the shapes {sorted(shapes)} for elements that "
                "take different paths through a function that is specialised"
            )
        if tree.is_float0(column[0]):
            whole: Any = np.zeros((size, *column[0].shape[1:]), tree.FLOAT0)
        else:
            whole = index_value(concatenate(column, 0), (order,))
        outs.append(place(label, i, whole, 0, spec, size))
    return tree.unflatten(treedef, outs)


def in_chunks(
    jaxpr: Jaxpr,
    size: int,
    step: int,
    arrays: list[Any],
    axes: list[int],
    label: str,
    axis_name: str | None,
) -> tuple[list[Any], list[int | None]]:
    """Evaluate a batch in pieces and join the results."""
    if axis_name is not None:
        raise ValueError(
            f"{label}{here()}: chunk_size cannot be used with axis_name, since collectives need "
            "the whole axis at once"
        )
    pieces: list[list[Any]] = []
    for start in range(0, size, step):
        stop = min(start + step, size)
        parts = [
            slice_index(array, BasicIndex((*[slice(None)] * axis, slice(start, stop))))
            for array, axis in zip(arrays, axes, strict=True)
        ]
        outs, dims = evaluate_batched(jaxpr, stop - start, parts, axes, axis_name)
        pieces.append(
            [
                out if dim is None else moveaxis(out, dim, 0)
                for out, dim in zip(outs, dims, strict=True)
            ]
        )
    joined = [
        column[0] if dim is None else concatenate(column, 0)
        for column, dim in zip(zip(*pieces, strict=True), dims, strict=True)
    ]
    return joined, [None if dim is None else 0 for dim in dims]
