"""``ft.lax``: gathers and scatters of windows, with JAX's dimension numbers.

Here: ``gather``, ``scatter`` and its relatives, as index arrays of all axes. Code is clearer with
``x[...]`` and ``x.at[...]``; these are for code that is written for ``jax.lax``.

Layer: ``lax``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import as_array
from functrans.primitives import elementwise as ew
from functrans.primitives import indexing
from functrans.primitives.structural import cast, reshape, transpose


class GatherScatterMode(enum.Enum):
    """What a window out of bounds means; ``CLIP`` moves it inside."""

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of a word; ``None`` is ``FILL_OR_DROP``.

        Raises:
          ValueError: it is an unknown word.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _MODES:
            names = ", ".join(repr(name) for name in _MODES if name is not None)
            raise ValueError(f"mode must be one of {names} or None, got {mode!r}")
        return _MODES[mode]


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class GatherDimensionNumbers(NamedTuple):
    """Which axes of a gather are which.

    Attributes:
      offset_dims: axes of the result that lie in the window.
      collapsed_slice_dims: axes of the operand along which the window has extent 1 and is dropped.
      start_index_map: axes of the operand that the entries of an index vector are for.
      operand_batching_dims: axes of the operand that go with axes of the indices.
      start_indices_batching_dims: those axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of a scatter are which.

    Attributes:
      update_window_dims: axes of the updates that lie in the window.
      inserted_window_dims: axes of the operand along which the window has extent 1.
      scatter_dims_to_operand_dims: axes of the operand that the entries of an index vector are for.
      operand_batching_dims: axes of the operand that go with axes of the indices.
      scatter_indices_batching_dims: those axes of the indices.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def _starts(
    shape: Sequence[int],
    indices: Any,
    index_axes: Sequence[int],
    batching: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    mode: GatherScatterMode,
) -> tuple[list[Any], Any]:
    """Starts of the windows along each axis, inside; and where they lay inside before."""
    batch = shape_of(indices)[:-1]
    starts: list[Any] = [np.zeros(batch, np.int64)] * len(shape)
    is_inside: Any = None
    for i, k in enumerate(index_axes):
        start, last = indices[..., i], shape[k] - sizes[k]
        starts[k] = ew.clip(start, 0, max(last, 0))
        if mode is GatherScatterMode.FILL_OR_DROP:
            is_fit = ew.logical_and(ew.greater_equal(start, 0), ew.less_equal(start, last))
            is_inside = is_fit if is_inside is None else ew.logical_and(is_inside, is_fit)
    for own, axis in batching:
        wide = [1] * len(batch)
        wide[axis] = batch[axis]
        starts[own] = np.broadcast_to(np.arange(batch[axis]).reshape(wide), batch)
    return starts, is_inside


def _places(starts: Sequence[Any], sizes: Sequence[int], window: Sequence[int]) -> list[Any]:
    """Index arrays ``[batch, window]`` of each axis."""
    n_batch, n = len(shape_of(starts[0])) if starts else 0, len(window)
    places = []
    for k, start in enumerate(starts):
        wide = reshape(start, (*shape_of(start), *(1,) * n))
        if k in window:
            offsets = [1] * (n_batch + n)
            offsets[n_batch + window.index(k)] = sizes[k]
            wide = ew.add(wide, np.arange(sizes[k]).reshape(offsets))
        places.append(wide)
    return places


def gather(
    operand: Any,
    start_indices: object,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: object = None,
) -> Any:
    """Windows of an array.

    Args:
      operand: array.
      start_indices: integers ``[batch, entries]``: where windows start.
      dimension_numbers: which axes are which.
      slice_sizes: extents of the window.
      unique_indices: not used.
      indices_are_sorted: not used.
      mode: what a window out of bounds means: by default it is moved inside; ``"fill"`` reads
        ``fill_value``.
      fill_value: by default NaN; of integers the smallest if signed, else the largest; true.

    Example:
      >>> numbers = GatherDimensionNumbers((1,), (), (0,))
      >>> gather(np.arange(5), np.array([[0], [3]]), numbers, (2,))
      array([[0, 1],
             [3, 4]])
    """
    x, indices = as_array(operand), as_array(start_indices)
    numbers, own_mode = dimension_numbers, GatherScatterMode.from_any(mode or "clip")
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [k for k in range(len(shape_of(x))) if k not in dropped]
    batching = list(
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    )
    starts, is_inside = _starts(
        shape_of(x), indices, numbers.start_index_map, batching, slice_sizes, own_mode
    )
    places = _places(starts, slice_sizes, window)
    result = indexing.gather(x, places, tuple(range(len(places)))) if places else x
    n_batch = len(shape_of(indices)) - 1
    if is_inside is not None:
        fill = indexing.default_fill(dtype_of(x)) if fill_value is None else fill_value
        mask = reshape(is_inside, (*shape_of(is_inside), *(1,) * len(window)))
        result = ew.where(mask, result, cast(fill, dtype_of(x)))
    order = _order(n_batch, len(window), numbers.offset_dims)
    return transpose(result, order)


def _order(n_batch: int, n_window: int, window_axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation of ``[batch, window]`` that brings the window to axes of the result."""
    batch, window = iter(range(n_batch)), iter(range(n_batch, n_batch + n_window))
    inside = {*window_axes}
    return tuple([next(window if k in inside else batch) for k in range(n_batch + n_window)])


def _scattered(
    op: str,
    operand: object,
    scatter_indices: object,
    updates: object,
    numbers: ScatterDimensionNumbers,
    mode: str | GatherScatterMode | None,
) -> Array:
    """Windows written to an array, or combined with it."""
    x, indices = as_array(operand), as_array(scatter_indices)
    own_mode, shape = GatherScatterMode.from_any(mode), shape_of(x)
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = [k for k in range(len(shape)) if k not in dropped]
    n_batch = len(shape_of(indices)) - 1
    new = cast(as_array(updates), dtype_of(x))
    order = _order(n_batch, len(window), numbers.update_window_dims)
    new = transpose(new, tuple(np.argsort(order).tolist()))
    sizes = [1] * len(shape)
    for k, extent in zip(window, shape_of(new)[n_batch:], strict=True):
        sizes[k] = extent
    batching = list(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    starts, is_inside = _starts(
        shape, indices, numbers.scatter_dims_to_operand_dims, batching, sizes, own_mode
    )
    if is_inside is not None and numbers.scatter_dims_to_operand_dims:
        k = numbers.scatter_dims_to_operand_dims[0]
        starts[k] = ew.where(is_inside, starts[k], shape[k])
    places = _places(starts, sizes, window)
    drop = "raise" if is_inside is None else "drop"
    return indexing.scatter(x, new, places, tuple(range(len(places))), op, drop)


def _scattering(name: str, op: str, words: str) -> Callable[..., Any]:
    def function(
        operand: object,
        scatter_indices: object,
        updates: object,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any:
        return _scattered(op, operand, scatter_indices, updates, dimension_numbers, mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The array with windows {words}.

    Args:
      operand: array; it is not changed.
      scatter_indices: integers ``[batch, entries]``: where windows start.
      updates: the windows.
      dimension_numbers: which axes are which.
      indices_are_sorted: not used.
      unique_indices: not used.
      mode: what a window out of bounds means: by default it is left out.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> {name}(np.ones(3), np.array([[1]]), np.array([4.0]), numbers).shape
      (3,)
    """
    return function


scatter = _scattering("scatter", "set", "written")
scatter_add = _scattering("scatter_add", "add", "added")
scatter_mul = _scattering("scatter_mul", "multiply", "multiplied")
scatter_min = _scattering("scatter_min", "minimum", "of which the smaller elements are taken")
scatter_max = _scattering("scatter_max", "maximum", "of which the larger elements are taken")


def index_take(src: object, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Elements at index arrays of axes.

    Example:
      >>> index_take(np.arange(6), [np.array([1, 5])], (0,))
      array([1, 5])
    """
    return indexing.gather(as_array(src), [as_array(i) for i in idxs], tuple(axes))


_guard(globals())
