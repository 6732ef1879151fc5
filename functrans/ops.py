"""``ft.ops``: reductions over segments, under JAX's names.

Layer: ``lax`` (beside it).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.namespaces import listing as _listing
from functrans.numpy.common import as_array, is_known, needs_size, value_of
from functrans.numpy.selection import integers
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import scatter


def _segments(name: str, op: str, data: object, ids: object, n: int | None, mode: Any) -> Array:
    """Rows combined, those of one number with each other; the numbers are not sorted for it."""
    x, places = as_array(data), integers(ids)
    shape = shape_of(places)
    if len(shape) != 1 or shape_of(x)[:1] != shape:
        raise ShapeError(
            f"{name}: segment_ids must have one number for each of the rows of data, got shapes "
            f"{shape} and {shape_of(x)}"
        )
    if n is None:
        if not is_known(places):
            raise needs_size(name, places, "num_segments")
        known = np.asarray(value_of(places))
        n = max(int(known.max()) + 1, 0) if known.size else 0
    n = operator.index(n)
    start = np.full((n, *shape_of(x)[1:]), _neutral(op, dtype_of(x)), dtype_of(x))
    places = ew.where(ew.less(places, 0), n, places)  # neither counts from the end
    return scatter(start, x, (places,), (0,), op, mode or "drop")


def _neutral(op: str, dtype: np.dtype) -> Array | complex:
    """What changes nothing."""
    if op in ("add", "multiply"):
        return dtype.type(op == "multiply")
    if dtype.kind == "b":
        return op == "minimum"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if op == "minimum" else info.min
    return np.inf if op == "minimum" else -np.inf


def segment_sum(
    data: object,
    segment_ids: object,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Array:
    """Sums of the rows that have the same number.

    Args:
      data: ``[n, ...]``.
      segment_ids: integers ``[n]``, in any order; rows whose number is none of ``0 ...
        num_segments - 1`` are left out.
      num_segments: extent of the result; by default one more than the largest number, which must
        have a value then.
      indices_are_sorted: not used.
      unique_indices: not used.
      bucket_size: not used.
      mode: what a number out of bounds means: it is left out; ``"clip"`` counts it to the last.

    Returns:
      ``[num_segments, ...]``; 0 for a segment without rows.

    Raises:
      ShapeError: there is not one number for each row.
      ConcretizationError: ``num_segments`` is missing and the numbers are traced without values.

    Example:
      >>> segment_sum(np.array([1.0, 2.0, 4.0]), [0, 2, 0])
      array([5., 0., 2.])
    """
    return _segments("segment_sum", "add", data, segment_ids, num_segments, mode)


def segment_prod(
    data: object,
    segment_ids: object,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Array:
    """Products of the rows that have the same number, 1 without rows; see ``segment_sum``.

    Example:
      >>> segment_prod(np.array([3.0, 2.0, 4.0]), [0, 2, 0])
      array([12.,  1.,  2.])
    """
    return _segments("segment_prod", "multiply", data, segment_ids, num_segments, mode)


def segment_max(
    data: object,
    segment_ids: object,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Array:
    """Largest elements of the rows that have the same number; see ``segment_sum``.

    Without rows it is ``-inf``, of integers the smallest.

    Example:
      >>> segment_max(np.array([3.0, 2.0, 4.0]), [0, 2, 0])
      array([  4., -inf,   2.])
    """
    return _segments("segment_max", "maximum", data, segment_ids, num_segments, mode)


def segment_min(
    data: object,
    segment_ids: object,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Array:
    """Smallest elements of the rows that have the same number; see ``segment_sum``.

    Without rows it is ``inf``, of integers the largest.

    Example:
      >>> segment_min(np.array([3.0, 2.0, 4.0]), [0, 2, 0])
      array([ 3., inf,  2.])
    """
    return _segments("segment_min", "minimum", data, segment_ids, num_segments, mode)


__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
__dir__ = _listing(__all__)
_guard(globals(), __all__)
