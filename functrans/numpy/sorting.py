"""Sorting and searching: sort, argsort, partition, lexsort, searchsorted.

Here: NumPy's interface of the ordering primitives. Not here: order statistics (``quantiles``),
sets (``sets``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import as_array, axis_of, fresh, value_of
from functrans.numpy.dispatch import implements
from functrans.primitives import sorting as prim
from functrans.primitives import structural
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable", "q", "m", "h", "s")


def _lane_axis(
    x: ArrayLike, axis: int | Sequence[int] | None, nonnegative: Callable[..., Any] = axis_of
) -> tuple[Any, int]:
    """The array and the axis to sort along; flattened for ``None``."""
    if axis is None:
        return structural.reshape(x, (math.prod(shape_of(x)),)), 0
    return x, nonnegative(axis, len(shape_of(x)), "axis")


def _with_axis(a: ArrayLike) -> Array:
    """An array; a number as one of one element, as NumPy's functions that give positions do."""
    x = as_array(a)
    return structural.reshape(x, (1,)) if shape_of(x) == () else x


def _check_options(kind: Any, order: Any, stable: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind not in _KINDS:
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time.")


@implements(np.sort)
def sort(
    a: Array,
    axis: int | Sequence[int] | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
) -> Any:
    """Sort along an axis; the derivative moves with the stable permutation."""
    _check_options(kind, order, stable)
    x, k = _lane_axis(as_array(a), axis, structural.normalize_axis)
    return prim.sort(x, k)


@implements(np.argsort)
def argsort(
    a: Any,
    axis: int | Sequence[int] | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
) -> Any:
    """Positions that sort along an axis; equal elements in order of position."""
    _check_options(kind, order, stable)
    x, k = _lane_axis(_with_axis(a), axis)
    return prim.argsort(x, k)


def _places(kth: object, extent: int) -> tuple[int, ...]:
    """Non-negative positions of a partition."""
    places = [operator.index(k) for k in np.atleast_1d(value_of(kth)).tolist()]
    if any(not -extent <= k < extent for k in places):
        raise ValueError(f"kth(={kth}) out of bounds ({extent})")
    return tuple([k % extent for k in places])


@implements(np.partition)
def partition(
    a: ArrayLike,
    kth: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    kind: str = "introselect",
    order: object = None,
) -> Array:
    """Bring elements to where a sort would bring them, smaller ones before."""
    x, k = _lane_axis(as_array(a), axis, structural.normalize_axis)
    return prim.partition(x, _places(kth, shape_of(x)[k]), k)


@implements(np.argpartition)
def argpartition(
    a: ArrayLike,
    kth: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    kind: str = "introselect",
    order: object = None,
) -> Array:
    """Positions that partition along an axis."""
    x, k = _lane_axis(_with_axis(a), axis)
    return prim.argpartition(x, _places(kth, shape_of(x)[k]), k)


@implements(np.lexsort)
def lexsort(keys: Array, axis: Any = -1) -> Array:
    """Positions that sort by several keys, the last one first."""
    parts: Sequence[Any] = list(keys) if not isinstance(keys, (list, tuple)) else keys
    arrays = [as_array(key) for key in parts]
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if not shape_of(arrays[0]):
        structural.normalize_axis(axis, 1, "axis")
        return np.asarray(0)
    return prim.lexsort(arrays, axis)


@implements(np.sort_complex)
def sort_complex(a: ArrayLike) -> Array:
    """Sort along the last axis as complex numbers."""
    x = as_array(a)
    if dtype_of(x).kind != "c":
        # NumPy's own rule: only integers of up to 16 bits become single precision.
        x = cast(x, np.complex64 if dtype_of(x).char in "bhBH" else np.complex128)
    return prim.sort(x, len(shape_of(x)) - 1) if shape_of(x) else fresh(x)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Positions at which values would be put into a sorted vector."""
    x, values = as_array(a), as_array(v)
    if sorter is not None:
        x = gather(x, (as_array(sorter),), (0,))
    dtype = np.result_type(dtype_of(x), dtype_of(values))
    return prim.searchsorted(cast(x, dtype), cast(values, dtype), side)
