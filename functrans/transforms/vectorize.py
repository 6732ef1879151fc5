"""``vmap``: a function of one example becomes a function of a batch.

Here: the interface; the function is staged over its mapped arguments and the program batched.
Unmapped arguments go in as they are, so that Python control flow on them works. Not here: the
batch pass (``passes.batch``) and the rules (records of the primitives).

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import tree
from functrans.arrays.indexing import index_value
from functrans.core.arguments import (
    canonical,
    leaf_type,
    name_of,
    named,
    own_arrays,
    result_leaf,
    traced_form,
)
from functrans.core.avals import ShapedArray
from functrans.core.dispatch import aval_of, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.errors import ShapeError, TreeMismatchError, UnsupportedOperationError
from functrans.passes.answers import LaneAnswers, LanesDiffer
from functrans.passes.batch import evaluate_batched
from functrans.passes.staging import stage
from functrans.passes.value_tracers import plain_value
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import broadcast_to, moveaxis


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
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
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        label = f"vmap of {name_of(fun)}"
        leaves, treedef = tree.flatten((args, kwargs))
        dims = _in_dims(label, in_axes, args, kwargs)
        paths = _LazyPaths(args, kwargs)
        numberless = [i for i, leaf in enumerate(leaves) if tree.is_float0(leaf)]
        values = [
            leaf
            if dim is None or i in numberless
            else canonical(leaf, functools.partial(paths.describe, label, i))
            for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True))
        ]
        mapped = [i for i, dim in enumerate(dims) if dim is not None]
        axes = [_axis(label, paths, i, values[i], dims[i]) for i in mapped]
        size = _axis_size(label, paths, mapped, values, axes, axis_size)
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

        def flat(*tracers: Any) -> list[Any]:
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
            _refuse_axis(label, axis_name)
            parts = []
            for group in groups:
                own_args, own_kwargs = tree.unflatten(treedef, _some_lanes(filled, dims, group))
                part = vmap(fun, in_axes, 0, None, len(group), chunk_size)
                parts.append(tree.flatten(part(*own_args, **own_kwargs)))
            return _joined(label, groups, parts, out_axes, size)
        (out_treedef,) = structure
        arrays = [values[i] for i in mapped]
        step = size if chunk_size is None else chunk_size
        if step >= size:
            outs, out_dims = evaluate_batched(jaxpr, size, arrays, axes, axis_name)
        else:
            outs, out_dims = _in_chunks(jaxpr, size, step, arrays, axes, label, axis_name)
        watch = current_config.get().nan_watch
        if watch is not None:
            watch.batched(jaxpr, arrays, axes, outs, out_dims)
        for i, leaf in constant.items():
            outs.insert(i, leaf)
            out_dims.insert(i, None)
        specs = _out_specs(label, out_axes, out_treedef, len(outs))
        placed = [
            _place(label, i, out, dim, spec, size)
            for i, (out, dim, spec) in enumerate(zip(outs, out_dims, specs, strict=True))
        ]
        return tree.unflatten(out_treedef, own_arrays(placed, [*leaves, *jaxpr.consts]))

    return vmapped


# elements that take different paths ---------------------------------------------------------------


def _refuse_axis(label: str, axis_name: str | None) -> None:
    """Refuse a named axis of which not all elements would be there."""
    if axis_name is not None:
        raise UnsupportedOperationError(
            f"{label}{here()}: elements take different paths through a function that is "
            f"specialised, so that not all take part in collectives over {axis_name!r}; "
            "choose with np.where or ft.lax.cond"
        )


def _some_lanes(values: Sequence[Any], dims: Sequence[Any], lanes: np.ndarray) -> list[Any]:
    """The arguments with some lanes of those that are mapped."""
    picked = []
    for value, dim in zip(values, dims, strict=True):
        if dim is None:
            picked.append(value)
            continue
        index = (*[slice(None)] * (dim % value.ndim), lanes)
        picked.append(value[index] if tree.is_float0(value) else index_value(value, index))
    return picked


def _joined(
    label: str,
    groups: Sequence[np.ndarray],
    parts: Sequence[tuple[list[Any], Any]],
    out_axes: Any,
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
    specs = _out_specs(label, out_axes, treedef, len(columns))
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
        outs.append(_place(label, i, whole, 0, spec, size))
    return tree.unflatten(treedef, outs)


# arguments and results ----------------------------------------------------------------------------


class _LazyPaths:
    """Key paths of the leaves of a call, made when a message needs one."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._args = args
        self._kwargs = kwargs
        self._paths: list[str] | None = None

    def __getitem__(self, i: int) -> str:
        if self._paths is None:
            self._paths = []
            for k, arg in enumerate(self._args):
                self._paths += tree.key_paths(arg, f"args[{k}]")
            if self._kwargs:
                self._paths += tree.key_paths(self._kwargs, "kwargs")
        return self._paths[i]

    def describe(self, label: str, i: int) -> str:
        """Description of a leaf for messages."""
        return f"{label}: {self[i]}"


def _in_dims(label: str, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The mapped axis of every leaf of ``(args, kwargs)``."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise TreeMismatchError(
            f"{label}{here()}: in_axes has {len(in_axes)} entries, but the function was called "
            f"with {len(args)} positional arguments; give one entry per argument, or a single one"
        )
    if in_axes is None or isinstance(in_axes, int):
        dims = [in_axes] * len(tree.leaves(args))
    elif isinstance(in_axes, tuple):
        dims = []
        for number, (spec, arg) in enumerate(zip(in_axes, args, strict=True)):
            dims.extend(_prefix(spec, arg, label, f"in_axes[{number}]"))
    else:
        raise TypeError(
            f"{label}{here()}: in_axes must be an int, None, or a tuple with one entry per "
            f"positional argument, got {type(in_axes).__name__}"
        )
    for dim in dims:
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise TypeError(f"{label}{here()}: in_axes entries must be ints or None, got {dim!r}")
    return dims + [0] * len(tree.leaves(kwargs)) if kwargs else dims


def _prefix(prefix: Any, value: Any, label: str, name: str) -> list[Any]:
    """``tree.broadcast_prefix``, with the user's line in its error."""
    try:
        return tree.broadcast_prefix(prefix, value, label, name)
    except TreeMismatchError as error:
        raise TreeMismatchError(f"{error}{here()}") from None


def _axis(label: str, paths: _LazyPaths, i: int, value: Any, dim: int) -> int:
    """A mapped axis, non-negative."""
    aval = leaf_type(value)
    ndim = len(aval.shape)
    if ndim == 0:
        raise ShapeError(
            f"{label}{here()}: {paths[i]} ({aval}) is a scalar and has no axis {dim} to map over; "
            "use in_axes=None for it (a keyword argument: bind it with functools.partial)"
        )
    if not -ndim <= dim < ndim:
        raise ShapeError(
            f"{label}{here()}: axis {dim} of {paths[i]} ({aval}) does not exist; in_axes must be "
            f"in [{-ndim}, {ndim - 1}] or None"
        )
    return dim % ndim


def _axis_size(
    label: str,
    paths: _LazyPaths,
    mapped: list[int],
    values: list[Any],
    axes: list[int],
    axis_size: int | None,
) -> int:
    """The extent of the mapped axis."""
    sizes = [shape_of(values[i])[axis] for i, axis in zip(mapped, axes, strict=True)]
    if not sizes:
        if axis_size is None:
            raise ValueError(
                f"{label}{here()}: no argument is mapped (in_axes is None for all); give "
                "axis_size, or an axis for at least one argument"
            )
        return axis_size
    for i, axis, size in zip(mapped, axes, sizes, strict=True):
        if size != sizes[0] or (axis_size is not None and size != axis_size):
            expected = (
                f"axis_size={axis_size}"
                if axis_size is not None and size != axis_size
                else f"{sizes[0]} of {paths[mapped[0]]} (axis {axes[0]})"
            )
            raise ShapeError(
                f"{label}{here()}: mapped axes differ in extent: {paths[i]} "
                f"({leaf_type(values[i])}, axis {axis}) has {size}, but {expected} was expected"
            )
    return sizes[0]


def _out_specs(label: str, out_axes: Any, out_treedef: Any, n: int) -> list[Any]:
    """Where the batch axis of each result goes."""
    if out_axes is None or isinstance(out_axes, int):
        return [out_axes] * n
    dummy = tree.unflatten(out_treedef, list(range(n)))
    return _prefix(out_axes, dummy, label, "out_axes")


def _place(label: str, i: int, out: Any, dim: int | None, spec: Any, size: int) -> Any:
    """Put the batch axis of a result where it is wanted."""
    if spec is None:
        if dim is not None:
            raise ShapeError(
                f"{label}{here()}: out_axes is None for result {i}, but that result differs "
                "between examples; give it an axis"
            )
        return out
    shape = shape_of(out)
    ndim = len(shape) + (dim is None)
    if not -ndim <= spec < ndim:
        raise ShapeError(
            f"{label}{here()}: out_axes={spec} for result {i} of {ndim - 1} axes does not exist; "
            f"it must be in [{-ndim}, {ndim - 1}]"
        )
    axis = spec % ndim
    if dim is None and tree.is_float0(out):
        return np.zeros((*shape[:axis], size, *shape[axis:]), tree.FLOAT0)
    if dim is None:
        out = broadcast_to(out, (size, *shape))
        dim = 0
    return moveaxis(out, dim, axis)


def _in_chunks(
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
