"""``ft.lax``: operations on whole arrays, under JAX's names and keywords.

Here: shapes, joining, padding, slices, sorting, sums and running sums. They are composites of what
``functrans.numpy`` is made of. Not here: windows of reductions (``windows``), general gathers and
scatters (``indexed``).

Layer: ``lax``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.numpy import flip
from functrans.numpy import split as _split
from functrans.numpy import squeeze as _squeeze
from functrans.numpy import transpose as _transpose
from functrans.numpy.common import as_array, as_operand, fresh
from functrans.primitives import cumulative, movement, reduction, sorting, structural
from functrans.primitives.dynamic_slicing import dynamic_slice, dynamic_update_slice
from functrans.primitives.structural import cast, normalize_axis

# making -------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: object, dtype: DTypeLike | None = None) -> Any:
    """An array of one value.

    Example:
      >>> full((2,), 1.5)
      array([1.5, 1.5])
    """
    value = as_array(fill_value)
    value = value if dtype is None else cast(value, dtype)
    return structural.broadcast_to(fresh(value), tuple(map(operator.index, shape)))


def iota(dtype: DTypeLike | None, size: int) -> Array:
    """The numbers from 0 on.

    Example:
      >>> iota(np.int32, 3)
      array([0, 1, 2], dtype=int32)
    """
    return np.arange(operator.index(size)).astype(dtype)


def broadcasted_iota(dtype: DTypeLike | None, shape: Sequence[int], dimension: int) -> Array:
    """Each element's position along one axis.

    Example:
      >>> broadcasted_iota(int, (2, 2), 0)
      array([[0, 0],
             [1, 1]])
    """
    return np.indices(tuple(shape))[dimension].astype(dtype)


# shapes and dtypes --------------------------------------------------------------------------------


def dtype(x: ArrayLike) -> np.dtype:
    """The dtype of an array or number.

    Example:
      >>> dtype(1.0)
      dtype('float64')
    """
    return dtype_of(as_operand(x))


def convert_element_type(operand: object, new_dtype: Any) -> Array:
    """The array in another dtype.

    Example:
      >>> convert_element_type(np.array([1.7]), int)
      array([1])
    """
    return cast(as_array(operand), np.dtype(new_dtype))


def bitcast_convert_type(operand: object, new_dtype: Any) -> Array:
    """The array's bits read as another dtype of the same size.

    Example:
      >>> hex(int(bitcast_convert_type(np.float32(1.0), np.uint32)))
      '0x3f800000'
    """
    return as_array(operand).view(np.dtype(new_dtype))


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    """The elements in another shape; ``dimensions`` permutes the axes before.

    Example:
      >>> reshape(np.arange(4), (2, 2)).shape
      (2, 2)
    """
    x = as_array(operand)
    if dimensions is not None:
        x = _transpose(x, tuple(dimensions))
    return x.reshape(tuple(new_sizes))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """New axes of extent 1 at places of the result.

    Example:
      >>> expand_dims(np.arange(3), (0,)).shape
      (1, 3)
    """
    return movement.expand_dims(
        as_array(array),
        _axes(dimensions, len(shape_of(as_array(array))) + len(tuple(dimensions))),
    )


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Without axes of extent 1.

    Example:
      >>> squeeze(np.ones((1, 3)), (0,)).shape
      (3,)
    """
    return _squeeze(as_array(array), tuple(dimensions))


def collapse(operand: object, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Neighbouring axes joined to one.

    Example:
      >>> collapse(np.ones((2, 3, 4)), 1).shape
      (2, 12)
    """
    x = as_array(operand)
    shape = shape_of(x)
    start, stop, _ = slice_of(start_dimension, stop_dimension).indices(len(shape))
    return x.reshape((*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


slice_of = slice  # Python's, whose name a function below has


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """The axes in another order.

    Example:
      >>> transpose(np.ones((2, 3)), (1, 0)).shape
      (3, 2)
    """
    return _transpose(as_array(operand), tuple(permutation))


def rev(operand: object, dimensions: Sequence[int]) -> Array:
    """Axes turned round.

    Example:
      >>> rev(np.arange(3), (0,))
      array([2, 1, 0])
    """
    return flip(as_array(operand), tuple(dimensions))


def broadcast(operand: object, sizes: Sequence[int]) -> Array:
    """New axes in front, along which the array is repeated.

    Example:
      >>> broadcast(np.arange(2), (3,)).shape
      (3, 2)
    """
    x = as_array(operand)
    return structural.broadcast_to(x, (*map(operator.index, sizes), *shape_of(x)))


def broadcast_in_dim(
    operand: object, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Array:
    """The array in a larger shape; ``broadcast_dimensions`` says where its axes go.

    Raises:
      ShapeError: there is not one place for each axis.

    Example:
      >>> broadcast_in_dim(np.arange(2), (2, 3), (0,))
      array([[0, 0, 0],
             [1, 1, 1]])
    """
    x = as_array(operand)
    own, places = shape_of(x), tuple(map(operator.index, broadcast_dimensions))
    target = tuple(map(operator.index, shape))
    if len(places) != len(own) or list(places) != sorted({*places}):
        raise ShapeError(
            f"broadcast_in_dim: an array of shape {own} needs {len(own)} increasing places in "
            f"{target}, got {places}"
        )
    wide = [1] * len(target)
    for extent, place in zip(own, places, strict=True):
        wide[place] = extent
    return structural.broadcast_to(structural.reshape(x, tuple(wide)), target)


# joining and slicing ------------------------------------------------------------------------------


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays joined along an axis.

    Example:
      >>> concatenate([np.zeros(1), np.ones(1)], 0)
      array([0., 1.])
    """
    arrays = [as_array(x) for x in operands]
    return movement.concatenate(arrays, dimension)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Parts of given extents along an axis.

    Example:
      >>> [part.tolist() for part in split(np.arange(3), (1, 2))]
      [[0], [1, 2]]
    """
    return list(_split(as_array(operand), np.cumsum(sizes)[:-1].tolist(), axis))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """The array among values: ``(low, high, interior)`` for each axis; negative ones crop.

    Example:
      >>> pad(np.ones(2), 0.0, [(1, 0, 1)])
      array([0., 1., 0., 1.])
    """
    x = as_array(operand)
    fill = cast(as_array(padding_value), dtype_of(x))
    for k, (low, high, interior) in enumerate(padding_config):
        n = shape_of(x)[k]
        if interior and n > 1:
            shape = shape_of(x)
            wide = structural.reshape(x, (*shape[: k + 1], 1, *shape[k + 1 :]))
            gaps = structural.broadcast_to(fill, (*shape[: k + 1], interior, *shape[k + 1 :]))
            joined = movement.concatenate((wide, gaps), k + 1)
            n_wide = n * (interior + 1)
            x = structural.reshape(joined, (*shape[:k], n_wide, *shape[k + 1 :]))
            x = slice_in_dim(x, 0, n_wide - interior, axis=k)
        n = shape_of(x)[k]
        x = slice_in_dim(x, -low if low < 0 else 0, n + high if high < 0 else n, axis=k)
        parts = []
        for extent in (low, high):
            shape = shape_of(x)
            margin = (*shape[:k], operator.index(extent), *shape[k + 1 :])
            parts.append([structural.broadcast_to(fill, margin)] if extent > 0 else [])
        if parts[0] or parts[1]:
            x = movement.concatenate((*parts[0], x, *parts[1]), k)
    return x


def slice(  # JAX's name
    operand: object,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """A part of static place and size.

    Example:
      >>> slice(np.arange(6), (1,), (6,), (2,))
      array([1, 3, 5])
    """
    steps = (1,) * len(start_indices) if strides is None else strides
    entries = zip(start_indices, limit_indices, steps, strict=True)
    return as_array(operand)[tuple([slice_of(*entry) for entry in entries])]


def slice_in_dim(
    operand: object,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """A part along one axis.

    Example:
      >>> slice_in_dim(np.arange(6), 1, -1)
      array([1, 2, 3, 4])
    """
    x = as_array(operand)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    return x[(slice_of(None),) * k + (slice_of(start_index, limit_index, stride),)]


def index_in_dim(operand: object, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The elements at one position of an axis.

    Example:
      >>> index_in_dim(np.arange(3), 1)
      array([1])
    """
    return dynamic_index_in_dim(operand, operator.index(index), axis, keepdims)


def dynamic_slice_in_dim(
    operand: object, start_index: object, slice_size: int, axis: int = 0
) -> Array:
    """A window along one axis, whose start may be traced; see ``dynamic_slice``.

    Example:
      >>> dynamic_slice_in_dim(np.arange(6), 2, 3)
      array([2, 3, 4])
    """
    x = as_array(operand)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    sizes = list(shape_of(x))
    sizes[k] = slice_size
    return dynamic_slice(x, _starts(len(sizes), k, start_index), sizes)


def dynamic_index_in_dim(
    operand: object, index: object, axis: int = 0, keepdims: bool = True
) -> Array:
    """The elements at one position of an axis, which may be traced.

    Example:
      >>> dynamic_index_in_dim(np.arange(3), 1, keepdims=False)
      array(1)
    """
    window = dynamic_slice_in_dim(operand, index, 1, axis)
    return window if keepdims else _squeeze(window, axis)


def dynamic_update_slice_in_dim(
    operand: object, update: object, start_index: object, axis: int
) -> Array:
    """The array with a window along one axis overwritten.

    Example:
      >>> dynamic_update_slice_in_dim(np.zeros(3), np.ones(1), 1, 0)
      array([0., 1., 0.])
    """
    x = as_array(operand)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    return dynamic_update_slice(x, as_array(update), _starts(len(shape_of(x)), k, start_index))


def dynamic_update_index_in_dim(operand: object, update: object, index: object, axis: int) -> Array:
    """The array with the elements at one position of an axis overwritten.

    Example:
      >>> dynamic_update_index_in_dim(np.zeros(3), 1.0, 1, 0)
      array([0., 1., 0.])
    """
    x, new = as_array(operand), as_array(update)
    if len(shape_of(new)) < len(shape_of(x)):
        k = normalize_axis(axis, len(shape_of(x)), "axis")
        new = movement.expand_dims(new, (k,))
    return dynamic_update_slice_in_dim(x, new, index, axis)


def _starts(ndim: int, axis: int, start: object) -> list[Any]:
    """Starts of a window that is moved along one axis."""
    return [start if k == axis else 0 for k in range(ndim)]


# sorting ------------------------------------------------------------------------------------------


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """An array in increasing order, or several in the order of the first ``num_keys``.

    Example:
      >>> sort(np.array([3, 1, 2]))
      array([1, 2, 3])
      >>> keys, values = sort((np.array([3, 1, 2]), np.arange(3)))
      >>> values
      array([1, 2, 0])
    """
    if not isinstance(operand, (tuple, list)):
        x = as_array(operand)
        return sorting.sort(x, normalize_axis(dimension, len(shape_of(x)), "axis"), is_stable)
    arrays = [as_array(x) for x in operand]
    axis = normalize_axis(dimension, len(shape_of(arrays[0])), "axis")
    if num_keys == 1:
        order = sorting.argsort(arrays[0], axis, is_stable)
    else:
        order = sorting.lexsort(arrays[num_keys - 1 :: -1], axis)
    return tuple([sorting.select_along(x, order, axis) for x in arrays])


def sort_key_val(
    keys: object, values: object, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """Keys in increasing order, and values in the order of their keys.

    Example:
      >>> sort_key_val(np.array([3, 1]), np.array([30.0, 10.0]))[1]
      array([10., 30.])
    """
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values


def argmax(operand: object, axis: int, index_dtype: Any = np.int64) -> Any:
    """Position of the first largest element along an axis.

    Example:
      >>> argmax(np.array([1, 3, 2]), 0)
      np.int64(1)
    """
    x = as_array(operand)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    return cast(reduction.argmax(x, k), np.dtype(index_dtype))


def argmin(operand: object, axis: int, index_dtype: Any = np.int64) -> Any:
    """Position of the first smallest element along an axis.

    Example:
      >>> argmin(np.array([1, 3, 2]), 0)
      np.int64(0)
    """
    x = as_array(operand)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    return cast(reduction.argmin(x, k), np.dtype(index_dtype))


# reductions ---------------------------------------------------------------------------------------


def _axes(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    return tuple([normalize_axis(axis, ndim, "axis") for axis in axes])


def _reducing(name: str, function: Callable[..., Any], words: str) -> Callable[..., Any]:
    def reduce(operand: object, axes: Sequence[int]) -> Any:
        x = as_array(operand)
        return function(x, _axes(axes, len(shape_of(x))))

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{words} over axes; see ``functrans.numpy.{_NUMPY_NAMES[name]}``."
    return reduce


_NUMPY_NAMES = {
    "reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod",
    "reduce_and": "all", "reduce_or": "any", "reduce_xor": "bitwise_xor",
}  # fmt: skip


def _bitwise(
    of_booleans: Callable[..., Any], of_integers: Callable[..., Any]
) -> Callable[..., Any]:
    def function(x: Operand, axes: tuple[int, ...]) -> Any:
        return (of_booleans if dtype_of(x).kind == "b" else of_integers)(x, axes)

    return function


reduce_sum = _reducing("reduce_sum", structural.reduce_sum, "Sum")
reduce_max = _reducing("reduce_max", reduction.reduce_max, "Largest element")
reduce_min = _reducing("reduce_min", reduction.reduce_min, "Smallest element")
reduce_prod = _reducing("reduce_prod", reduction.reduce_prod, "Product")
reduce_and = _reducing(
    "reduce_and", _bitwise(reduction.reduce_all, reduction.reduce_bitwise_and), "Conjunction"
)
reduce_or = _reducing(
    "reduce_or", _bitwise(reduction.reduce_any, reduction.reduce_bitwise_or), "Disjunction"
)
reduce_xor = _reducing("reduce_xor", reduction.reduce_bitwise_xor, "Exclusive disjunction")


def _running(name: str, function: Callable[..., Any], words: str) -> Callable[..., Any]:
    def running(operand: object, axis: int = 0, reverse: bool = False) -> Any:
        x = as_array(operand)
        return function(x, normalize_axis(axis, len(shape_of(x)), "axis"), reverse)

    running.__name__ = running.__qualname__ = name
    running.__doc__ = f"{words} along an axis, from its end if ``reverse``."
    return running


cumsum = _running("cumsum", cumulative.cumsum, "Running sum")
cumprod = _running("cumprod", cumulative.cumprod, "Running product")
cummax = _running("cummax", cumulative.cummax, "Running maximum")
cummin = _running("cummin", cumulative.cummin, "Running minimum")
cumlogsumexp = _running(
    "cumlogsumexp", cumulative.cumlogsumexp, "Logarithm of the running sum of exponentials"
)

_guard(globals())
