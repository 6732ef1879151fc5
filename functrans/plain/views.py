"""Views of memory that has become traced.

Here: the tracer that stands for a view, by where it lies in the memory. Not here: memory
(``plain.memory``).

Layer: ``plain``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.arrays.writes import register_view
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.primitives.indexing import gather, scatter
from functrans.primitives.movement import concatenate
from functrans.primitives.structural import reshape


def memory_address(array: np.ndarray) -> int:
    """Where an array begins."""
    return int(array.__array_interface__["data"][0])


def view_of(root: np.ndarray, base: Array, array: np.ndarray) -> Array:
    """The tracer of a view.

    Args:
      root: the array that owns the memory.
      base: the tracer that stands for it.
      array: the view; it may be of real or imaginary parts.

    Raises:
      UnsupportedOperationError: it is of another dtype.
    """
    shape, strides = array.shape, array.strides
    start = memory_address(array) - memory_address(root)
    if array.dtype == root.dtype:
        return _view_at(root, base, start, shape, strides)
    is_part = root.dtype.kind == "c" and array.dtype == root.real.dtype
    steps = [stride for extent, stride in zip(shape, strides, strict=True) if extent > 1]
    if not is_part or any(step % root.itemsize for step in steps):
        raise UnsupportedOperationError(
            f"an array of {root.dtype} seen as one of {array.dtype} holds traced values{here()}; "
            "their bits cannot be traced"
        )
    behind = start % root.itemsize
    whole = _view_at(root, base, start - behind, shape, strides)
    return whole.imag if behind else whole.real


def _view_at(
    root: np.ndarray, base: Array, start: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Array:
    """The same for a view of the dtype of the memory, by its offset in bytes."""
    if not start and shape == root.shape and strides == root.strides:
        return base
    if not root.ndim:
        base = _reshaped(base, (1,))
    is_same_order = root.flags.c_contiguous and _is_dense(shape, strides, root.itemsize)
    if not start and math.prod(shape) == root.size and is_same_order:
        return base if shape == base.shape else _reshaped(base, shape)
    numbers = np.empty_like(root, np.intp)  # in the same order of axes in memory
    numbers[...] = np.arange(root.size).reshape(root.shape)
    places: Any = start // root.itemsize
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent) * (stride // root.itemsize)
        places = places + steps.reshape((extent,) + (1,) * (len(shape) - axis - 1))
    return view_of_places(base, numbers.ravel(order="K")[places])


def _is_dense(shape: Sequence[Any], strides: Sequence[Any], itemsize: int) -> bool:
    """Whether the elements lie one after the other in C order."""
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != itemsize:
            return False
        itemsize *= extent
    return True


def _reshaped(base: Any, shape: tuple[Any, ...]) -> Array:
    """All elements of a traced array in another shape."""
    return register_view(
        base,
        reshape(base, shape),
        lambda base: reshape(base, shape),
        lambda base, view: reshape(view, base.shape),
    )


def first_and(base: Any, n: int, rest: object) -> Any:
    """A view of the first elements of a traced vector, with others behind that are not in it."""
    index = (np.arange(n),)

    def read(base: object) -> Any:
        return concatenate([gather(base, index, (0,)), rest])

    return register_view(
        base,
        read(base),
        read,
        lambda base, view: scatter(base, gather(view, index, (0,)), index, (0,)),
    )


def view_of_places(base: Any, places: np.ndarray) -> Any:
    """A view of some elements of a traced array, by their numbers in C order."""
    index = np.unravel_index(places, base.shape)
    axes = tuple(range(base.ndim))
    return register_view(
        base,
        gather(base, index, axes),
        lambda base: gather(base, index, axes),
        lambda base, view: scatter(base, view, index, axes),
    )
