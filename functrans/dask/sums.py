"""Sums over data in parts: ``sum_over``.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import finish_results, mismatch
from functrans.core.arguments import name_of, named
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import dtype_of
from functrans.core.transformed import transform
from functrans.dask.chunks import KnownParts
from functrans.dask.mapping import Flow, bind_map
from functrans.dask.staged import Parts, stage_parts
from functrans.primitives.structural import cast


@boundary
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
    keep = KnownParts()

    @named("sum_over", fun)
    def summed(*args: Any, **kwargs: Any) -> Any:
        label = f"sum_over of {name_of(fun)}"
        parts = stage_parts(label, fun, args, kwargs, keep, _additive)
        _check_results(label, parts)
        flow = Flow((False,) * len(parts.operands), (True,) * len(parts.programs[0].outvars))
        outs = bind_map(parts.programs, parts.chunks, flow, parts.operands)
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
