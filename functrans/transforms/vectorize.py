"""``vmap``: a function of one example becomes a function of a batch.

Here: the interface; the function is staged over its mapped arguments and the program batched.
Unmapped arguments go in as they are, so that Python control flow on them works. Not here: the
batch pass (``passes.batch``) and the rules (records of the primitives).

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import canonical, name_of, named, result_leaf
from functrans.core.avals import ShapedArray
from functrans.core.boundary import at_user
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of, shape_of
from functrans.core.hidden_state import Draws
from functrans.core.ownership import own_arrays
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.core.transformed import transform
from functrans.core.values import Array, P, R
from functrans.passes.answers import LaneAnswers, LanesDiffer
from functrans.passes.batch import evaluate_batched
from functrans.passes.layouts import plain_value
from functrans.passes.staging import stage
from functrans.transforms.batch_axes import LazyPaths, axis_of, extent_of, in_dims, out_specs, place
from functrans.transforms.lanes import in_chunks, joined_paths, refuse_axis, some_lanes


@overload
def vmap(
    fun: np.ufunc, in_axes: object = 0, out_axes: object = 0, axis_name: str | None = None,
    axis_size: int | None = None, chunk_size: int | None = None,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def vmap(
    fun: Callable[P, R],
    in_axes: object = 0,
    out_axes: object = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
) -> Callable[P, R]: ...
@transform
def vmap(
    fun: Callable[..., Any],
    in_axes: object = 0,
    out_axes: object = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments, as one batched computation.

    Args:
      fun: function of pytrees of arrays for one example.
      in_axes: per positional argument (a tree prefix) the axis mapped over, or ``None`` for an
        argument that every example shares. Keyword arguments are mapped over axis 0.
      out_axes: per result (a tree prefix) where the batch axis goes; ``None`` for a result that
        does not depend on mapped arguments.
      axis_name: name by which collectives inside ``fun`` (``ft.lax.psum``) know the axis.
      axis_size: extent of the axis; needed only where no argument is mapped.
      chunk_size: evaluate this many examples at a time, to bound memory.

    Returns:
      Function of batched arguments.

    Raises:
      ShapeError: a mapped axis does not exist, or extents differ; names the key path.
      TreeMismatchError: ``in_axes`` or ``out_axes`` is no tree prefix.
      ConcretizationError: ``fun`` asks for the value of a mapped array (``if x > 0``), outside of
        functions that are specialised (``jit(f, specialize=True)``). In these, elements whose
        answers differ are evaluated one group after the other.

    Example:
      >>> import numpy as np
      >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(np.eye(2), np.array([1.0, 2.0]))
      array([1., 2.])
    """
    fun = traced_form("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size must be at least 1, got {chunk_size}{here()}")

    @named("vmap", fun)
    def vmapped(*args: object, **kwargs: object) -> Any:
        label = f"vmap of {name_of(fun)}"
        leaves, treedef = tree.flatten((args, kwargs))
        dims = in_dims(label, in_axes, args, kwargs)
        paths = LazyPaths(args, kwargs)
        numberless = [i for i, leaf in enumerate(leaves) if tree.is_float0(leaf)]
        values = [
            leaf
            if dim is None or i in numberless
            else canonical(leaf, functools.partial(paths.describe, label, i))
            for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True))
        ]
        mapped = [i for i, dim in enumerate(dims) if dim is not None]
        axes = [axis_of(label, paths, i, values[i], dims[i]) for i in mapped]
        size = extent_of(label, paths, mapped, values, axes, axis_size)
        for i in numberless:
            if i in mapped:  # one lane of it is no argument of the program
                position = mapped.index(i)
                del mapped[position]
                values[i] = np.zeros(np.delete(values[i].shape, axes.pop(position)), tree.FLOAT0)
        structure: list[Any] = []
        constant: dict[int, Any] = {}
        plain = [plain_value(values[i]) for i in mapped]
        is_known = size > 0 and all(value is not None for value in plain)
        lanes = LaneAnswers(size, plain, axes) if is_known else None

        def flat(*tracers: Array) -> list[Any]:
            if lanes is not None:
                lanes.begin(tracers)
            filled = list(values)
            for i, tracer in zip(mapped, tracers, strict=True):
                filled[i] = tracer
            own_args, own_kwargs = tree.unflatten(treedef, filled)
            result = fun(*own_args, **own_kwargs)
            outs, out_treedef = tree.flatten(result)
            structure.append(out_treedef)
            outs = [result_leaf(out, label, result, i) for i, out in enumerate(outs)]
            constant.update({i: out for i, out in enumerate(outs) if tree.is_float0(out)})
            return [out for i, out in enumerate(outs) if i not in constant]

        avals = []
        for i, axis in zip(mapped, axes, strict=True):
            shape = shape_of(values[i])
            aval = aval_of(values[i])
            avals.append(ShapedArray(shape[:axis] + shape[axis + 1 :], aval.dtype))
        draws = Draws(fun, once=True)
        try:
            jaxpr = stage(
                flat,
                avals,
                label,
                name=name_of(fun),
                arg_names=[paths[i] for i in mapped],
                axes={axis_name: size} if axis_name is not None else None,
                lanes=lanes,
            )
        except LanesDiffer as error:
            if error.lanes is not lanes:  # those of a vmap around this one
                raise
            filled = [leaves[i] if i in numberless else value for i, value in enumerate(values)]
            groups = error.groups
        else:
            groups = ()
        if groups:
            refuse_axis(label, axis_name)
            parts = []
            for group in groups:
                own_args, own_kwargs = tree.unflatten(treedef, some_lanes(filled, dims, group))
                part = vmap(fun, in_axes, 0, None, len(group), chunk_size)
                parts.append(tree.flatten(part(*own_args, **own_kwargs)))
            return joined_paths(label, groups, parts, out_axes, size)
        draws.tell(label, "lane")
        (out_treedef,) = structure
        arrays = [values[i] for i in mapped]
        step = size if chunk_size is None else chunk_size
        if step >= size:
            outs, out_dims = at_user(evaluate_batched, jaxpr, size, arrays, axes, axis_name)
        else:
            outs, out_dims = at_user(in_chunks, jaxpr, size, step, arrays, axes, label, axis_name)
        watch = current_config.get().nan_watch
        if watch is not None:
            watch.batched(jaxpr, arrays, axes, outs, out_dims)
        for i, leaf in constant.items():
            outs.insert(i, leaf)
            out_dims.insert(i, None)
        specs = out_specs(label, out_axes, out_treedef, len(outs))
        placed = [
            place(label, i, out, dim, spec, size)
            for i, (out, dim, spec) in enumerate(zip(outs, out_dims, specs, strict=True))
        ]
        return tree.unflatten(out_treedef, own_arrays(placed, [*leaves, *jaxpr.consts]))

    return vmapped
