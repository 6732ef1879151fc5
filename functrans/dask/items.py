"""Functions of the items of a batch, spread over workers: ``map``.

Layer: ``dask``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import finish_results, flatten_operands, stage_body
from functrans.core.arguments import name_of, named
from functrans.core.avals import ShapedArray
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of
from functrans.core.source import here
from functrans.dask.chunks import is_data, items
from functrans.dask.mapping import Flow, bind_map
from functrans.errors import ShapeError
from functrans.random.keys import fold_in


@boundary
def map(fun: Callable[..., Any], batch: Any, *, key: Any = None) -> Any:  # as lax.map
    """Apply a function to each item of a batch, on the workers of Dask.

    It is ``ft.vmap(fun)(batch)`` with the items spread over workers, and has all derivatives of
    that, in the batch and in what ``fun`` captures. Items are evaluated one by one: a loop that
    depends on its item runs as often as that item needs, and results have the same bits wherever
    they are computed.

    Args:
      fun: function of one item, a pytree of arrays; its results are a pytree of arrays.
      batch: pytree of arrays whose first axis is that of the items.
      key: a key of ``ft.random``; ``fun(item, key)`` gets one of its own then, which is
        ``ft.random.fold_in(key, i)`` for item ``i``.

    Returns:
      The results, stacked along a new first axis.

    Raises:
      TypeError: the batch has no arrays, or is data of Dask.
      ShapeError: arrays of the batch have different extents, or no axis.
      UnsupportedOperationError: ``fun`` has no program that can travel, such as one with callbacks.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.dask.map(lambda x: x**2, np.arange(3.0))
      array([0., 1., 4.])
    """
    label = f"dask.map of {name_of(fun)}"
    if builtins.any(is_data(leaf) for leaf in tree.leaves(batch)):
        raise TypeError(
            f"{label}: the batch is data of Dask{here()}; give NumPy arrays, or use "
            "ft.dask.sum_over or ft.dask.jacobian for data in parts"
        )
    leaves, structure, paths = flatten_operands(label, batch, "batch")
    count = _count(label, leaves, paths)
    traced = traced_form("dask.map", fun)

    @named("map", fun)
    def of_item(item: Any, *more: Any) -> Any:
        if key is None:
            return traced(item)
        return traced(item, fold_in(key, more[0]))

    of_item.__name__ = name_of(fun)
    given = [*leaves, np.arange(count, dtype=np.uint32)] if key is not None else leaves
    avals = [ShapedArray(aval.shape[1:], aval.dtype) for aval in builtins.map(aval_of, given)]
    own = tree.unflatten(structure, range(len(leaves)))
    arguments = tree.structure((own, 0) if key is not None else (own,))
    body = stage_body(label, of_item, arguments, avals)
    flow = Flow(
        (False,) * len(body.captured) + (True,) * len(given), (False,) * len(body.out_avals)
    )
    operands = [*body.captured, *given]
    outs = bind_map((body.jaxpr,), items(count), flow, operands)
    return finish_results(outs, operands, body.treedef)


def _count(label: str, leaves: list[Any], paths: list[str]) -> int:
    """How many items a batch has."""
    if not leaves:
        raise TypeError(f"{label}: the batch has no arrays{here()}; expected one item per row")
    shapes = [aval_of(leaf).shape for leaf in leaves]
    if builtins.any(shape[:1] != shapes[0][:1] or not shape for shape in shapes):
        texts = ", ".join(
            f"{path} {list(shape)}" for path, shape in zip(paths, shapes, strict=True)
        )
        raise ShapeError(
            f"{label}: expected arrays whose first axis is that of the items{here()}, got {texts}"
        )
    return int(shapes[0][0])
