"""Measurements of ``scipy.ndimage``: sums, means and extremes of labelled regions.

Labels are constants; values are differentiated. Not here: the labelling itself, which has no
derivative (``scipy.ndimage.label`` on plain arrays).

Layer: ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.numpy.common import as_array
from functrans.primitives.structural import cast
from functrans.scipy.dispatch import floats, implements


def _masks(name: str, x: ArrayLike, labels: Any, index: Any) -> tuple[np.ndarray, bool]:
    """One mask for each region ``[regions, *shape]``, and whether one number was asked for."""
    if isinstance(labels, Tracer) or isinstance(index, Tracer):
        raise UnsupportedOperationError(
            f"scipy.ndimage.{name} with traced labels or index cannot be traced{here()}; keep them "
            "out of the traced arguments"
        )
    shape = shape_of(x)
    if labels is None:
        return np.ones((1, *shape), bool), True
    labels = np.broadcast_to(np.asarray(labels), shape)
    if index is None:
        return (labels > 0)[None], True
    chosen = np.asarray(index)
    masks = labels == chosen.reshape(-1, *(1,) * len(shape))
    return masks, chosen.ndim == 0


def _measured(
    name: str, x: ArrayLike, labels: Any, index: Any, measure: Callable[[Any, np.ndarray], Any]
) -> Array:
    (x,) = floats(x)
    masks, is_one = _masks(name, x, labels, index)
    out = measure(fnp.reshape(x, (-1,)), masks.reshape(len(masks), -1))
    return out[0] if is_one else fnp.reshape(out, np.shape(index))


def _sums(x: ArrayLike, masks: np.ndarray) -> Array:
    return masks.astype(dtype_of(x)) @ x


def _counts(x: ArrayLike, masks: np.ndarray) -> np.ndarray:
    counts: np.ndarray = masks.sum(axis=1).astype(dtype_of(x))
    return counts


def _means(x: ArrayLike, masks: np.ndarray) -> Array:
    return _sums(x, masks) / _counts(x, masks)


def _variances(x: ArrayLike, masks: np.ndarray) -> Array:
    weights = masks.astype(dtype_of(x))
    centered = (x - _means(x, masks)[:, None]) * weights
    return fnp.sum(centered * centered, axis=1) / _counts(x, masks)


@implements("ndimage.sum_labels")
def sum_labels(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:  # SciPy's names
    """Sums over regions, as ``scipy.ndimage.sum_labels``.

    Args:
      input: values.
      labels: which region each value belongs to; by default all to one.
      index: the regions wanted; by default one of all labels that are not 0.

    Returns:
      A number for each entry of ``index``, or one. Many are of a floating dtype, one is as ``sum``
      gives it.
    """
    out = _measured("sum_labels", input, labels, index, _sums)
    own = dtype_of(as_array(input))
    if own.kind not in "iub" or np.ndim(index):
        return out
    return cast(out, np.sum(np.zeros(0, own)).dtype)  # one region of integers is summed in them


sum = sum_labels  # SciPy's older name


@implements("ndimage.mean")
def mean(input: ArrayLike, labels: Any = None, index: Any = None) -> Any:  # SciPy's names
    """Means over regions, as ``scipy.ndimage.mean``; see :func:`sum_labels`."""
    return _measured("mean", input, labels, index, _means)


@implements("ndimage.variance")
def variance(input: ArrayLike, labels: Any = None, index: Any = None) -> Any:  # SciPy's names
    """Variances over regions, as ``scipy.ndimage.variance``; see :func:`sum_labels`."""
    return _measured("variance", input, labels, index, _variances)


@implements("ndimage.minimum")
def minimum(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:  # SciPy's names
    """Least values of regions, as ``scipy.ndimage.minimum``; equal ones share the derivative.

    A region without values gives 0, as in SciPy.
    """

    def measure(x: ArrayLike, masks: np.ndarray) -> Array:
        least = fnp.min(fnp.where(masks, x, np.inf), axis=1, initial=np.inf)
        return fnp.where(masks.any(axis=1), least, 0.0)

    return cast(_measured("minimum", input, labels, index, measure), dtype_of(as_array(input)))


@implements("ndimage.maximum")
def maximum(input: ArrayLike, labels: Any = None, index: Any = None) -> Any:  # SciPy's names
    """Largest values of regions, as ``scipy.ndimage.maximum``; see :func:`minimum`."""

    def measure(x: ArrayLike, masks: np.ndarray) -> Array:
        largest = fnp.max(fnp.where(masks, x, -np.inf), axis=1, initial=-np.inf)
        return fnp.where(masks.any(axis=1), largest, 0.0)

    return cast(_measured("maximum", input, labels, index, measure), dtype_of(as_array(input)))


@implements("ndimage.center_of_mass")
def center_of_mass(
    input: ArrayLike, labels: Any = None, index: Any = None
) -> Sequence[Any]:  # SciPy's names
    """Centers of mass of regions, as ``scipy.ndimage.center_of_mass``: a tuple, or a list."""
    (x,) = floats(input)
    masks, is_one = _masks("center_of_mass", x, labels, index)
    flat, masks = fnp.reshape(x, (-1,)), masks.reshape(len(masks), -1)
    total = _sums(flat, masks)
    grids = np.indices(shape_of(x)).reshape(len(shape_of(x)), -1).astype(dtype_of(x))
    parts = [_sums(flat * grid, masks) / total for grid in grids]
    rows = [tuple(part[k] for part in parts) for k in range(len(masks))]
    return rows[0] if is_one else rows
