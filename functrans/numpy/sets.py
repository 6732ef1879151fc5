"""Sets: unique elements, unions, intersections, membership.

Here: functions whose results have as many elements as they find; they need values, which recording
has. The elements are selected from the operands, so that they carry derivatives. Not here: sorting
(``sorting``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.numpy.common import as_array, is_known, is_readable, needs_size, value_of
from functrans.numpy.dispatch import implements
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives.cumulative import cumsum
from functrans.primitives.indexing import accumulate, gather, scatter
from functrans.primitives.reduction import reduce_any
from functrans.primitives.sorting import argsort
from functrans.primitives.structural import cast


def _flat(a: ArrayLike) -> Array:
    x = as_array(a)
    return structural.reshape(x, (math.prod(shape_of(x)),))


def _at(x: ArrayLike, places: np.ndarray, axis: int = 0) -> Array:
    """Elements at concrete positions along an axis."""
    return structural.moveaxis(gather(x, (places,), (axis,)), 0, axis)


@implements(np.unique, own=("size", "fill_value"))
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Unique elements, sorted; each carries the derivative of its first occurrence.

    With ``size`` there are so many, also of traced arrays: the greatest are cut off, what is
    missing is ``fill_value``, by default the least element (index of its first occurrence,
    count 0).
    """
    x = as_array(ar)
    if size is not None:
        found = _sized(x, axis, operator.index(size), fill_value, equal_nan)
        wanted = (True, return_index, return_inverse, return_counts)
        results = [part for part, flag in zip(found, wanted, strict=True) if flag]
        return tuple(results) if len(results) > 1 else results[0]
    if not is_known(x):
        raise needs_size("unique", x)
    if axis is None:
        elements, k = _flat(x), 0
    else:
        elements, k = x, structural.normalize_axis(axis, len(shape_of(x)), "axis")
    if not is_readable(x) and len(shape_of(elements)) == 1 and shape_of(elements)[0]:
        first, inverse, counts = _by_neighbours(elements, equal_nan)
        inverse = structural.reshape(inverse, shape_of(x))
    else:
        values = np.zeros(shape_of(x)) if 0 in shape_of(x) else np.asarray(value_of(x))
        _, first, inverse, counts = np.unique(values, True, True, True, axis, equal_nan=equal_nan)
    results = [_at(elements, first, k)]
    for is_wanted, extra in (
        (return_index, first), (return_inverse, inverse), (return_counts, counts)
    ):  # fmt: skip
        if is_wanted:
            results.append(extra)
    return tuple(results) if len(results) > 1 else results[0]


def _ranked(elements: Any, equal_nan: bool) -> tuple[Any, Any]:
    """The order of the elements of a vector, and which of the ordered ones differ from the last."""
    n = shape_of(elements)[0]
    order = argsort(elements, 0)
    ranked = gather(elements, (order,), (0,))
    before, after = (gather(ranked, (np.arange(n - 1) + i,), (0,)) for i in (0, 1))
    differs = ew.not_equal(before, after)
    if equal_nan and dtype_of(elements).kind in "fc":
        differs = ew.bitwise_and(
            differs, ew.invert(ew.bitwise_and(ew.isnan(before), ew.isnan(after)))
        )
    return order, movement.concatenate((np.ones(1, bool), differs), 0)


def _by_neighbours(elements: object, equal_nan: bool) -> tuple[Any, Any, np.ndarray]:
    """First positions, the inverse and counts, by which ordered elements differ: no more is asked.

    Args:
      elements: a vector, not empty.
      equal_nan: whether all NaN are one element.
    """
    n = shape_of(elements)[0]
    order, is_first = _ranked(elements, equal_nan)
    is_first = np.asarray(value_of(is_first))
    starts = np.flatnonzero(is_first)
    inverse = scatter(np.zeros(n, np.int64), np.cumsum(is_first) - 1, (order,), (0,))
    return gather(order, (starts,), (0,)), inverse, np.diff(np.append(starts, n))


def _sized(
    x: ArrayLike,
    axis: int | Sequence[int] | None,
    size: int,
    fill_value: ArrayLike | None,
    equal_nan: bool,
) -> tuple[Any, ...]:
    """So many unique elements, their first positions, the inverse, and counts."""
    shape = shape_of(x)
    if axis is not None and len(shape) != 1:
        raise UnsupportedOperationError(
            f"numpy.unique: size= goes with vectors and axis=None{here()}, not with axis={axis!r}"
        )
    if axis is not None:
        structural.normalize_axis(axis, 1, "axis")
    elements = _flat(x)
    n = shape_of(elements)[0]
    if not n:
        raise ValueError("unique: size= needs an array with elements")
    order, is_first = _ranked(elements, equal_nan)
    group = cumsum(cast(is_first, np.int64), 0) - 1
    inverse = scatter(np.zeros(n, np.int64), group, (order,), (0,))
    counts = accumulate(np.ones(n, np.int64), (group,), (0,), (size,), "drop")
    starts = scatter(
        np.zeros(size, np.int64),
        np.arange(n),
        (ew.where(is_first, group, size),),
        (0,),
        mode="drop",
    )
    first = gather(order, (starts,), (0,))
    values = gather(elements, (first,), (0,))
    if fill_value is not None:
        is_found = ew.greater(counts, 0)
        values = ew.where(is_found, values, cast(fill_value, dtype_of(values)))
    return values, first, structural.reshape(inverse, shape if axis is None else (n,)), counts


def _unique_parts(x: ArrayLike) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Unique elements, their first positions, the inverse and counts; NaN differ."""
    values = np.asarray(value_of(as_array(x)))
    _, first, inverse, counts = np.unique(values, True, True, True, equal_nan=False)
    return _at(_flat(x), first), first, inverse.reshape(values.shape), counts


@implements(np.unique_values)
def unique_values(x: ArrayLike) -> Array:
    """Unique elements."""
    return _unique_parts(x)[0]


@implements(np.unique_counts)
def unique_counts(x: ArrayLike) -> Any:
    """Unique elements, and how often each occurs."""
    values, _, _, counts = _unique_parts(x)
    return type(np.unique_counts(np.zeros(1)))(values, counts)


@implements(np.unique_inverse)
def unique_inverse(x: ArrayLike) -> Any:
    """Unique elements, and for each element which one it is."""
    values, _, inverse, _ = _unique_parts(x)
    return type(np.unique_inverse(np.zeros(1)))(values, inverse)


@implements(np.unique_all)
def unique_all(x: ArrayLike) -> Any:
    """Unique elements, first positions, inverse, counts."""
    return type(np.unique_all(np.zeros(1)))(*_unique_parts(x))


@implements(np.union1d, own=("size", "fill_value"))
def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Sorted unique elements of either array; ``size`` and ``fill_value`` are as for ``unique``."""
    both = movement.concatenate((_flat(ar1), _flat(ar2)), 0)
    return unique.traced(both, size=size, fill_value=fill_value)  # type: ignore[attr-defined]  # set by implements


@implements(np.intersect1d)
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Sorted unique elements of both arrays; they carry the derivative of the first."""
    first, second = _flat(ar1), _flat(ar2)
    dtype = np.result_type(dtype_of(first), dtype_of(second))
    # NumPy looks for neighbours that are equal in the common dtype; wide integers may become so.
    values, others = (np.asarray(value_of(x)).astype(dtype) for x in (first, second))
    _, in_first, in_second = np.intersect1d(values, others, assume_unique, True)
    result = cast(_at(first, in_first), dtype)
    return (result, in_first, in_second) if return_indices else result


@implements(np.setdiff1d)
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """Unique elements of the first array that are not in the second."""
    first = _flat(ar1)
    if not assume_unique:
        first = unique.traced(first)  # type: ignore[attr-defined]  # set by implements
    others = np.asarray(value_of(as_array(ar2)))
    return _at(first, np.flatnonzero(~np.isin(np.asarray(value_of(first)), others)))


@implements(np.setxor1d)
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """Sorted unique elements of exactly one of two arrays."""
    both = movement.concatenate((_flat(ar1), _flat(ar2)), 0)
    first, second = (np.asarray(value_of(as_array(x))) for x in (ar1, ar2))
    chosen = np.setxor1d(first, second, assume_unique)
    values, positions = np.unique(np.asarray(value_of(both)), return_index=True, equal_nan=False)
    return _at(both, positions[np.searchsorted(values, chosen)])


@implements(np.isin)
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Array:
    """Whether each element is among others."""
    x, others = as_array(element), _flat(test_elements)
    if is_readable(x) and is_readable(others):
        return np.isin(value_of(x), value_of(others), assume_unique, invert, kind=kind)
    wide = structural.reshape(x, (*shape_of(x), 1))
    found = reduce_any(ew.equal(wide, others), (len(shape_of(x)),))
    return ew.logical_not(found) if invert else found
