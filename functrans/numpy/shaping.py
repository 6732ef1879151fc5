"""Shape functions: reshape, permutations of axes, axes of extent 1.

Here: functions whose results are views in NumPy, so that a write to the result of ``reshape`` or
``transpose`` reaches the operand. Not here: broadcasting, flips and shifts (``arranging``), joining
(``joining``), diagonals (``diagonals``).

A reshape is a view or a copy depending on the memory layout: with values at hand the real strides
tell which; in staging, only those reshapes are known to be views that merge no axes, and a write
through another one raises.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.numpy.common import (
    Axes,
    Shape,
    as_array,
    as_operand,
    as_tuple,
    axes_of,
    fresh,
    layout_of,
    listed_axes,
    shares_memory,
    uncertain_view,
    view,
)
from functrans.numpy.dispatch import implements
from functrans.primitives import structural
from functrans.primitives.structural import inverse_permutation, normalize_axis

# reshape ----------------------------------------------------------------------------------------


def full_shape(shape: Any, size: int) -> Shape:
    """A shape argument as a complete tuple: an int, or a sequence with one ``-1``.

    Raises:
      ValueError: it does not fit the number of elements.
    """
    if isinstance(shape, (tuple, list)):
        extents = tuple([operator.index(n) for n in shape])
    elif isinstance(shape, np.ndarray):
        extents = tuple(map(int, np.atleast_1d(shape)))
    else:
        extents = (operator.index(shape),)
    if -1 in extents:
        known = -math.prod(extents)
        if extents.count(-1) > 1:
            raise ValueError("can only specify one unknown dimension")
        if known > 0 and size % known == 0:
            extents = tuple([size // known if n == -1 else n for n in extents])
    if math.prod(extents) != size or any(n < 0 for n in extents):
        raise ShapeError(
            f"cannot reshape array of size {size} into shape {shape}{here()}; the number of "
            "elements must stay the same"
        )
    return extents


def _only_splits(shape: Shape, new: Shape) -> bool:
    """Whether a reshape merges no axes, so that it is a view for all strides."""
    if 0 in shape:
        return True
    old = [n for n in shape if n != 1]
    position, rest = 0, 1
    for extent in new:
        if extent == 1:
            continue
        if rest == 1:
            if position == len(old):
                return False
            rest = old[position]
            position += 1
        if rest % extent:
            return False
        rest //= extent
    return True


def reshape_view(x: ArrayLike, shape: Shape) -> Array:
    """A row-major reshape, which shares memory with ``x`` where NumPy's does."""
    out = structural.reshape(x, shape)
    if out is x or not isinstance(x, Tracer):
        return out
    own = shape_of(x)
    shared = shares_memory(x, out)
    if shared is None:
        if not _only_splits(own, shape):
            return uncertain_view(x, out, f"a reshape from {own} to {shape}")
    elif not shared:
        return out
    return view(
        x,
        out,
        lambda base: structural.reshape(base, shape),
        lambda base, new: structural.reshape(new, own),
    )


def order_of(x: Array, order: str | None) -> str:
    """``C`` or ``F`` for an order argument.

    Raises:
      UnsupportedOperationError: it depends on the memory layout, which staging does not know.
    """
    if order in (None, "C", "c"):
        return "C"
    if order in ("F", "f"):
        return "F"
    if order not in ("A", "K", "a", "k"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if len(shape_of(x)) < 2:
        return "C"
    if layout_of(x) is None:
        raise UnsupportedOperationError(
            f"order={order!r} depends on the memory layout{here()}, which is not known while "
            "shapes and dtypes only are traced; use order='C' or order='F'"
        )
    flags = layout_of(x).flags
    if order in ("A", "a") or flags.forc:
        return "F" if flags.fnc else "C"
    return "K"


@implements(np.reshape)
def reshape(a: Any, /, shape: object, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements in another shape; a view where NumPy's is."""
    x = as_array(a)
    new = full_shape(shape, math.prod(shape_of(x)))
    if order == "C" or order_of(x, "C" if order in ("K", "k") else order) == "C":
        out = reshape_view(x, new)
    else:
        out = transposed(reshape_view(transposed(x), new[::-1]))
    if copy:
        return fresh(out)
    if copy is False and layout_of(x) is not None and not shares_memory(x, out) and 0 not in new:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return out


@implements(np.ravel)
def ravel(a: Any, order: Any = "C") -> Array:
    """The elements as a vector; a view where the operand is contiguous."""
    x = as_array(a)
    kind = order_of(x, order)
    if kind == "K":
        strides = layout_of(x).strides
        x = transposed(x, tuple(sorted(range(len(strides)), key=lambda k: -abs(strides[k]))))
    elif kind == "F":
        x = transposed(x)
    size = (math.prod(shape_of(x)),)
    if not isinstance(x, Tracer):
        return np.ravel(x)
    plain = layout_of(x)
    if type(plain) is not np.ndarray and shape_of(x):
        return uncertain_view(x, structural.reshape(x, size), "ravel")
    if shape_of(x) and not plain.flags.c_contiguous:
        return fresh(structural.reshape(x, size), "C")  # also where a reshape would be a view
    return reshape_view(x, size)


def flattened(x: Array, order: str = "C") -> Array:
    """The elements as a vector of its own, as ``ndarray.flatten``."""
    kind = order_of(x, order)
    if kind == "K":
        strides = layout_of(x).strides
        x = transposed(x, tuple(sorted(range(len(strides)), key=lambda k: -abs(strides[k]))))
    elif kind == "F":
        x = transposed(x)
    return fresh(structural.reshape(x, (math.prod(shape_of(x)),)), "C")


# permutations of axes ---------------------------------------------------------------------------


def transposed(x: ArrayLike, axes: Axes | None = None) -> Any:
    """A permutation of axes (their reversal by default), as a view."""
    if axes is None:
        axes = tuple(range(len(shape_of(x)) - 1, -1, -1))
    out = structural.transpose(x, axes)
    if out is x:
        return x
    back = inverse_permutation(axes)
    return view(
        x,
        out,
        lambda base: structural.transpose(base, axes),
        lambda base, new: structural.transpose(new, back),
    )


@implements(np.transpose)
def transpose(a: Any, axes: int | Sequence[int] | None = None) -> Any:
    """Permute axes; a view."""
    x = as_array(a)
    if axes is None:
        return transposed(x)
    ndim = len(shape_of(x))
    order = axes_of(as_tuple(axes), ndim, "axes")
    if len(order) != ndim:
        raise ValueError(f"axes don't match array: got {len(order)} axes for shape {shape_of(x)}")
    return transposed(x, order)


permute_dims = transpose


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """Exchange the last two axes; a view."""
    x = as_array(x)
    ndim = len(shape_of(x))
    if ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {ndim}")
    return transposed(x, (*range(ndim - 2), ndim - 1, ndim - 2))


@implements(np.swapaxes)
def swapaxes(a: ArrayLike, axis1: ArrayLike, axis2: ArrayLike) -> Array:
    """Exchange two axes; a view."""
    x = as_array(a)
    ndim = len(shape_of(x))
    first, second = normalize_axis(axis1, ndim, "axis1"), normalize_axis(axis2, ndim, "axis2")
    order = list(range(ndim))
    order[first], order[second] = second, first
    return transposed(x, tuple(order))


@implements(np.moveaxis)
def moveaxis(a: Any, source: object, destination: ArrayLike) -> Any:
    """Move axes to new positions; a view."""
    x = as_array(a)
    ndim = len(shape_of(x))
    sources = listed_axes(as_tuple(source), ndim, "source")
    targets = listed_axes(as_tuple(destination), ndim, "destination")
    if len(sources) != len(targets):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for target, own in sorted(zip(targets, sources, strict=True)):
        order.insert(target, own)
    return transposed(x, tuple(order))


@implements(np.rollaxis)
def rollaxis(a: ArrayLike, axis: int | Sequence[int] | None, start: int = 0) -> Array:
    """Move an axis backwards until it lies at a position; a view."""
    x = as_array(a)
    ndim = len(shape_of(x))
    source = normalize_axis(axis, ndim, "axis")
    target = operator.index(start)
    if target < 0:
        target += ndim
    if not 0 <= target <= ndim:
        raise np.exceptions.AxisError(
            f"'start' arg requires {-ndim} <= start < {ndim + 1}, but {start} was passed in"
        )
    order = [k for k in range(ndim) if k != source]
    order.insert(target - (source < target), source)
    return transposed(x, tuple(order))


# axes of extent 1 -------------------------------------------------------------------------------


@implements(np.squeeze)
def squeeze(a: ArrayLike, axis: object = None) -> Array:
    """Remove axes of extent 1; a view."""
    x = as_array(a)
    shape = shape_of(x)
    if axis is None:
        return reshape_view(x, tuple([n for n in shape if n != 1]))
    axes = axes_of(axis, len(shape))
    if any(shape[k] != 1 for k in axes):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one: axis "
            f"{axis} of shape {shape}{here()}"
        )
    return reshape_view(x, tuple([n for k, n in enumerate(shape) if k not in axes]))


@implements(np.expand_dims)
def expand_dims(a: Any, axis: object) -> Array:
    """Insert axes of extent 1; a view."""
    x = as_array(a)
    shape = shape_of(x)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    ndim = len(shape) + len(axes)
    places = listed_axes(axes, ndim)
    extents = iter(shape)
    return reshape_view(x, tuple([1 if k in places else next(extents) for k in range(ndim)]))


def at_least(x: ArrayLike, ndim: int) -> Any:
    """The operand with axes of extent 1 as ``np.atleast_1d`` and its siblings add them."""
    x = as_array(x)
    shape = shape_of(x)
    if len(shape) >= ndim:
        return x
    if ndim == 3:
        n, m = (1, 1, *shape)[-2:]
        return reshape_view(x, (n, m, 1))
    return reshape_view(x, (1,) * (ndim - len(shape)) + shape)


def _all_at_least(arrays: Sequence[Any], ndim: int) -> Any:
    results = tuple([at_least(x, ndim) for x in arrays])
    return results[0] if len(results) == 1 else results


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Scalars as vectors of one element."""
    return _all_at_least(arys, 1)


@implements(np.atleast_2d)
def atleast_2d(*arys: ArrayLike) -> Any:
    """Vectors as rows."""
    return _all_at_least(arys, 2)


@implements(np.atleast_3d)
def atleast_3d(*arys: ArrayLike) -> Any:
    """Vectors and matrices with three axes."""
    return _all_at_least(arys, 3)


# questions --------------------------------------------------------------------------------------


@implements(np.shape)
def shape(a: Any) -> Shape:
    """Extents of an array."""
    return shape_of(as_operand(a))


@implements(np.ndim)
def ndim(a: Any) -> int:
    """Number of axes of an array."""
    return len(shape_of(as_operand(a)))


@implements(np.size)
def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Number of elements of an array, in all or along axes."""
    own = shape_of(as_operand(a))
    return math.prod([own[k] for k in listed_axes(axis, len(own))])
