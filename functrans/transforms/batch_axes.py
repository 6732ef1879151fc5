"""Which axes are mapped: ``in_axes`` and ``out_axes`` of ``vmap``, read and checked.

Here: the axis of every leaf, how many elements there are, where the axis of a result goes. Not
here: ``vmap`` itself (``transforms.vectorize``).

Layer: ``transforms``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import leaf_type
from functrans.core.dispatch import shape_of
from functrans.core.source import here
from functrans.errors import ShapeError, TreeMismatchError
from functrans.primitives.structural import broadcast_to, moveaxis


class LazyPaths:
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


def in_dims(
    label: str, in_axes: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
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


def _prefix(prefix: object, value: object, label: str, name: str) -> list[Any]:
    """``tree.broadcast_prefix``, with the user's line in its error."""
    try:
        return tree.broadcast_prefix(prefix, value, label, name)
    except TreeMismatchError as error:
        raise TreeMismatchError(f"{error}{here()}") from None


def axis_of(label: str, paths: LazyPaths, i: int, value: Any, dim: int) -> int:
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


def extent_of(
    label: str,
    paths: LazyPaths,
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


def out_specs(label: str, out_axes: object, out_treedef: object, n: int) -> list[Any]:
    """Where the batch axis of each result goes."""
    if out_axes is None or isinstance(out_axes, int):
        return [out_axes] * n
    dummy = tree.unflatten(out_treedef, list(range(n)))
    return _prefix(out_axes, dummy, label, "out_axes")


def place(label: str, i: int, out: Any, dim: int | None, spec: int, size: int) -> Any:
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
