"""Jacobians of functions of rows: one block of rows from each part of the data.

Layer: ``dask``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import name_of, named
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import shape_of
from functrans.core.source import here
from functrans.core.transformed import transform
from functrans.dask.chunks import KnownParts, is_data
from functrans.dask.running import Package, run_part, text_of
from functrans.dask.staged import Parts, stage_parts
from functrans.errors import ShapeError
from functrans.transforms.jacobian import jacobian as local_jacobian


@boundary
@transform
def jacobian(fun: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The Jacobian of a function of data in parts, by blocks of rows, as Dask arrays.

    Args:
      fun: function of pytrees of arrays, some of which are data in parts (see ``sum_over``); it
        returns a pytree of arrays whose first axis is that of the rows.
      argnums: positions of the arguments to differentiate in; none of them is data.

    Returns:
      Function of the same arguments; it gives what ``ft.jacobian`` gives, with Dask arrays
      ``[rows, ..., *shape of the argument]`` whose chunks are those of the data. They are computed
      when they are asked for.

    Raises:
      TypeError: (when called) no argument is data.
      ShapeError: (when called) a result has no axis of rows.

    Example:
      >>> import dask.array as da, functrans as ft, numpy as np
      >>> X = da.ones((6, 2), chunks=(4, 2))
      >>> blocks = ft.dask.jacobian(lambda w, X: np.exp(X @ w))(np.zeros(2), X)
      >>> blocks.chunks
      ((4, 2), (2,))
      >>> blocks.compute()[0]
      array([1., 1.])
    """
    fun = traced_form("dask.jacobian", fun)
    keep = KnownParts()

    @named("jacobian", fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        label = f"dask.jacobian of {name_of(fun)}"

        def of_rows(*own: Any, **named: Any) -> Any:
            return _with_rows(label, fun(*own, **named))

        positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if any(-len(args) <= i < len(args) and is_data(args[i]) for i in positions):
            raise TypeError(
                f"{label}: argnums={argnums} names data in parts{here()}; expected arguments that "
                "are the same for all parts"
            )
        of_rows.__name__ = name_of(fun)
        parts = stage_parts(label, local_jacobian(of_rows, argnums), args, kwargs, keep)
        return _arrays(f"jacobian[{name_of(fun)}]", parts)

    return differentiated


def _with_rows(label: str, result: Any) -> Any:
    """Refuse results without a common first axis."""
    shapes = [shape_of(leaf) for leaf in tree.leaves(result)]
    if len({shape[:1] for shape in shapes}) != 1 or not shapes[0]:
        raise ShapeError(
            f"{label}: the function gives results of shapes {shapes}; expected one axis of rows in "
            "front of all of them"
        )
    return result


def _arrays(name: str, parts: Parts) -> Any:
    """Dask arrays of the results of parts, joined along their first axes."""
    import dask.array as da
    from dask._task_spec import DataNode, List, Task, TaskRef
    from dask.highlevelgraph import HighLevelGraph

    chunks, programs = parts.chunks, parts.programs
    rows = tuple(programs[kind].out_avals[0].shape[0] for kind in chunks.kinds)
    cuts = chunks.rows
    expected = None if cuts is None else tuple([end - first for first, end in cuts])
    trailing = {tuple(aval.shape[1:] for aval in program.out_avals) for program in programs}
    if (expected and rows != expected) or len(trailing) > 1:
        raise ShapeError(
            f"{name}: the function gives {rows} rows for chunks of {expected}, and rows of shapes "
            f"{sorted(trailing)}; expected a row of one shape for each row of the data"
        )
    # it is computed later, when arrays of the caller may have changed
    operands = [np.array(v) if isinstance(v, np.ndarray) else v for v in parts.operands]
    label = f"{name}-{uuid4().hex}"
    texts = [text_of(program) for program in programs]
    given = DataNode(f"operands-{label}", Package(operands))
    tasks: dict[Hashable, Any] = {**chunks.graph, given.key: given}
    tasks |= {key: DataNode(key, package) for key, package in texts}
    keys = [(label, number) for number in range(len(chunks))]
    for number, (key, kind) in enumerate(zip(keys, chunks.kinds, strict=True)):
        part = List(*map(TaskRef, chunks.keys[number]))
        program, name = TaskRef(texts[kind][0]), f"{chunks.name(number)} of the data"
        tasks[key] = Task(key, run_part, program, TaskRef(given.key), name, part)
    arrays = []
    for i, aval in enumerate(programs[0].out_avals):
        own = f"{label}-{i}"
        rest = aval.shape[1:]
        layer = dict(tasks)
        for number, key in enumerate(keys):
            place = (own, number, *(0,) * len(rest))
            layer[place] = Task(place, operator.getitem, TaskRef(key), i)
        graph = HighLevelGraph.from_collections(own, layer, chunks.collections())
        extents = (rows, *((extent,) for extent in rest))
        arrays.append(da.Array(graph, own, extents, dtype=aval.dtype))
    return tree.unflatten(parts.treedef, arrays)
