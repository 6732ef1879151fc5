"""Splitting: split and its siblings, unstack.

Here: functions that make several arrays of one; the parts are views. Not here: joining
(``joining``).

Layer: ``numpy``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.numpy.common import as_array, moved_axis, value_of, view
from functrans.numpy.dispatch import implements
from functrans.primitives import movement
from functrans.primitives.slicing import BasicIndex, slice_index, slice_update
from functrans.primitives.structural import normalize_axis


def _slice_view(x: ArrayLike, part: ArrayLike, index: BasicIndex) -> Array:
    """A part of an array that lies at a basic index, as a view."""
    return view(
        x,
        part,
        lambda base: slice_index(base, index),
        lambda base, new: slice_update(base, new, index),
    )


def _split_views(x: ArrayLike, sizes: Sequence[int], axis: int) -> list[Any]:
    """Consecutive parts along an axis, in one equation; each is a view."""
    parts = []
    stop = 0
    for n, part in zip(sizes, movement.split(x, sizes, axis), strict=True):
        start, stop = stop, stop + n
        index = BasicIndex((*(slice(None),) * axis, slice(start, stop)))
        parts.append(_slice_view(x, part, index))
    return parts


@implements(np.array_split)
def array_split(
    ary: ArrayLike, indices_or_sections: Array, axis: int | Sequence[int] | None = 0
) -> list[Any]:
    """Consecutive parts along an axis, at positions or nearly equal; views."""
    x = as_array(ary)
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    extent = shape_of(x)[k]
    if np.ndim(indices_or_sections):
        cuts = [operator.index(c) for c in np.asarray(value_of(indices_or_sections))]
        bounds = [range(extent)[:c].stop for c in cuts]
        if [0, *bounds, extent] == sorted([0, *bounds, extent]):
            sizes = np.diff([0, *bounds, extent]).tolist()
            return _split_views(x, sizes, k)
        lead = (slice(None),) * k
        ends = [*cuts, extent]
        return [x[(*lead, slice(i, j))] for i, j in zip([0, *cuts], ends, strict=True)]
    n = operator.index(indices_or_sections)
    if n <= 0:
        raise ValueError("number sections must be larger than 0.")
    each, extra = divmod(extent, n)
    return _split_views(x, [each + 1] * extra + [each] * (n - extra), k)


@implements(np.split)
def split(ary: Any, indices_or_sections: Array, axis: int | Sequence[int] | None = 0) -> list[Any]:
    """Consecutive parts along an axis, at positions or equal; views."""
    x = as_array(ary)
    if not np.ndim(indices_or_sections):
        extent = shape_of(x)[normalize_axis(axis, len(shape_of(x)), "axis")]
        if extent % operator.index(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split.traced(x, indices_or_sections, axis)  # type: ignore[attr-defined]  # set by implements


def _split_along(
    name: str, ary: ArrayLike, sections: ArrayLike, axis: int, least: int
) -> list[Any]:
    x = as_array(ary)
    ndim = len(shape_of(x))
    if ndim < least:
        raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
    return split.traced(x, sections, axis)  # type: ignore[attr-defined]  # set by implements


@implements(np.vsplit)
def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike) -> list[Any]:
    """Parts along the first axis."""
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


@implements(np.hsplit)
def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike) -> list[Any]:
    """Parts along the second axis; of vectors along their only one."""
    axis = 1 if len(shape_of(as_array(ary))) > 1 else 0
    return _split_along("hsplit", ary, indices_or_sections, axis, 1)


@implements(np.dsplit)
def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike) -> list[Any]:
    """Parts along the third axis."""
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int | Sequence[int] | None = 0) -> tuple[Any, ...]:
    """The slices along an axis, without that axis; views."""
    x = as_array(x)
    if not shape_of(x):
        raise ValueError("Input array must be at least 1-d.")
    k = moved_axis(axis, len(shape_of(x)))
    parts = []
    for i, part in enumerate(movement.unstack(x, k)):
        index = BasicIndex((*(slice(None),) * k, i))
        parts.append(_slice_view(x, part, index) if shape_of(part) else part)
    return tuple(parts)
