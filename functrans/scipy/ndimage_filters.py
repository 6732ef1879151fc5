"""Filters of ``scipy.ndimage``: correlations, Gaussian and rank filters, differences.

Here: filters of images of any number of axes. Not here: interpolation (``ndimage_interpolation``)
and measurements (``ndimage_measurements``).

A filter of one axis with known weights is a sum of shifted copies, which is one loop in compiled
programs. Results have the dtype of the image or that asked for, as SciPy's. Sums are in the
floating dtype of both; for integers in f64, cut off after each axis that a filter works along.

Layer: ``scipy``.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.numpy.common import as_array, layout_of, listed_axes, value_of
from functrans.primitives.convolution import conv
from functrans.primitives.movement import reverse
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, normalize_axis
from functrans.scipy.dispatch import common_floating, floats, implements

_PAD_MODES = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge",
    "wrap": "wrap", "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
_MOST_SHIFTS = 64


def extended(x: ArrayLike, widths: Sequence[tuple[int, int]], mode: str, cval: object = 0.0) -> Any:
    """An image with margins, filled as one of SciPy's modes says.

    Raises:
      ValueError: the mode is unknown.
    """
    if mode not in _PAD_MODES:
        raise ValueError(f"ndimage: mode={mode!r}; expected one of {', '.join(_PAD_MODES)}{here()}")
    if not any(low or high for low, high in widths):
        return x
    name = _PAD_MODES[mode]
    options = {"constant_values": cast(cval, dtype_of(x))} if name == "constant" else {}
    return fnp.pad(x, list(widths), mode=name, **options)


def as_image(name: str, x: ArrayLike, output: Any = None) -> tuple[Any, np.dtype]:
    """The operand as a floating array, and the dtype of the result.

    Raises:
      UnsupportedOperationError: ``output`` is an array, which would have to be written to.
    """
    if output is not None and not isinstance(output, (type, np.dtype, str)):
        raise UnsupportedOperationError(
            f"scipy.ndimage.{name} with an array as output cannot be traced{here()}; use the result"
        )
    x = as_array(x)
    dtype = dtype_of(x) if output is None else np.dtype(output)
    (x,) = floats(x)
    return (cast(x, np.result_type(dtype_of(x), dtype)) if dtype.kind in "fc" else x), dtype


def in_dtype(y: ArrayLike, dtype: np.dtype) -> Any:
    """A result in its dtype: towards zero for integers, and modulo their range."""
    if dtype.kind in "iub":
        whole = cast(y, np.int64)
        return whole != 0 if dtype.kind == "b" else cast(whole, dtype)
    return y if dtype_of(y).kind == "c" and dtype.kind != "c" else cast(y, dtype)


def axes_of_image(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes that a filter works along."""
    return listed_axes(axes, ndim, "axes")


def per_axis(name: str, value: object, count: int) -> list[Any]:
    """One entry for each axis.

    Raises:
      ShapeError: there are more or fewer.
    """
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim):
        if len(value) != count:
            raise ShapeError(f"{name}: {len(value)} entries for {count} axes{here()}")
        return list(value)
    return [value] * count


# correlations -----------------------------------------------------------------------------------


def slide(
    x: ArrayLike, weights: ArrayLike, axis: int, low: int, mode: str, cval: ArrayLike
) -> Array:
    """``sum_k weights[k] x[i + k - low]`` along an axis."""
    size = shape_of(weights)[0]
    widths = [(0, 0)] * len(shape_of(x))
    widths[axis] = (low, size - 1 - low)
    if low < 0 or low >= size:
        raise ValueError(f"ndimage: the origin shifts the filter of extent {size} off{here()}")
    wide = extended(x, widths, mode, cval)
    dtype = dtype_of(x)
    n = shape_of(x)[axis]
    if not isinstance(weights, Tracer) and size <= _MOST_SHIFTS:
        total: Any = None
        before = (slice(None),) * axis
        for k, weight in enumerate(np.asarray(weights)):  # SciPy multiplies by zeros, too
            part = slice_index(wide, BasicIndex((*before, slice(k, k + n))))
            term = part if weight == 1 else part * dtype.type(weight)
            total = term if total is None else total + term
        return total
    moved = fnp.moveaxis(wide, axis, -1)
    kernel = cast(weights, dtype)
    flat = fnp.reshape(moved, (math.prod(shape_of(moved)[:-1]), 1, shape_of(moved)[-1]))
    out = conv(flat, fnp.reshape(kernel, (1, 1, size)))
    return fnp.moveaxis(fnp.reshape(out, (*shape_of(moved)[:-1], n)), -1, axis)


def _sparse_sum(wide: ArrayLike, weights: np.ndarray, axes: Sequence[int], shape: Any) -> Array:
    """The correlation with weights some of which are 0: SciPy does not look at what they cover."""
    total: Any = None
    for place in zip(*np.nonzero(weights), strict=True):
        entries = [slice(None)] * len(shape)
        for axis, k in zip(axes, place, strict=True):
            entries[axis] = slice(int(k), int(k) + shape[axis])
        term = slice_index(wide, BasicIndex(tuple(entries))) * weights[place]
        total = term if total is None else total + term
    return np.zeros(shape, weights.dtype) if total is None else total


def _weights(
    name: str, x: ArrayLike, weights: ArrayLike, ndim: int | None = None
) -> tuple[Any, Any]:
    """Weights of the image's dtype; the image follows complex ones."""
    (weights,) = floats(weights)
    shape = shape_of(weights)
    if not shape or 0 in shape or (ndim is not None and len(shape) != ndim):
        raise ShapeError(
            f"{name}: weights of shape {shape} do not fit; expected {ndim or 1} axes of at least "
            f"one element{here()}"
        )
    if dtype_of(weights).kind == "c" and dtype_of(x).kind != "c":
        x = cast(x, common_floating(x, weights))
    return x, cast(weights, dtype_of(x))


@implements("ndimage.correlate1d")
def correlate1d(
    input: ArrayLike,  # SciPy's name
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Correlation along an axis, as ``scipy.ndimage.correlate1d``.

    Args:
      input: image.
      weights: ``[k]``.
      axis: the axis.
      output: dtype of the result, by default that of the image.
      mode: what lies beyond the border: ``"reflect"``, ``"mirror"``, ``"nearest"``, ``"wrap"`` or
        ``"constant"``.
      cval: value there with ``"constant"``.
      origin: how far the filter is moved.

    Raises:
      ShapeError: the weights are no vector.
      ValueError: the mode is unknown, or the origin outside of the filter.

    Example:
      >>> import functrans as ft
      >>> ft.jit(correlate1d)(np.array([1.0, 2.0, 4.0]), np.array([-1.0, 0.0, 1.0]))
      array([1., 3., 2.])
    """
    x, dtype = as_image("correlate1d", input, output)
    x, weights = _weights("correlate1d", x, weights, 1)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    out = slide(x, weights, axis, shape_of(weights)[0] // 2 + origin, mode, cval)
    return in_dtype(out, dtype)


@implements("ndimage.correlate")
def correlate(
    input: ArrayLike,  # SciPy's name
    weights: Array,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: ArrayLike = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Correlation, as ``scipy.ndimage.correlate``.

    Args:
      input: image.
      weights: as many axes as the image, or as ``axes`` names.
      output: dtype of the result.
      mode: see :func:`correlate1d`.
      cval: see :func:`correlate1d`.
      origin: how far the filter is moved, for all axes or each.
      axes: the axes of the image, by default all.
    """
    x, dtype = as_image("correlate", input, output)
    chosen = axes_of_image(axes, len(shape_of(x)))
    x, weights = _weights("correlate", x, weights, len(chosen))
    extents = shape_of(weights)
    widths = [(0, 0)] * len(shape_of(x))
    for axis, k, shift in zip(
        chosen, extents, per_axis("correlate", origin, len(chosen)), strict=True
    ):
        low = k // 2 + operator.index(shift)
        if not 0 <= low < k:
            raise ValueError(f"correlate: origin {shift} is outside of a filter of extent {k}")
        widths[axis] = (low, k - 1 - low)
    wide = extended(x, widths, mode, cval)
    is_sparse = not isinstance(weights, Tracer) and not np.all(weights)
    if is_sparse and np.count_nonzero(weights) <= _MOST_SHIFTS:
        return in_dtype(_sparse_sum(wide, weights, chosen, shape_of(x)), dtype)
    rest = [axis for axis in range(len(shape_of(x))) if axis not in chosen]
    order = (*rest, *chosen)
    moved = fnp.transpose(wide, order)
    space = shape_of(moved)[len(rest) :]
    flat = fnp.reshape(moved, (math.prod(shape_of(moved)[: len(rest)]), 1, *space))
    out = conv(flat, fnp.reshape(weights, (1, 1, *extents)))
    out = fnp.reshape(out, tuple(shape_of(x)[axis] for axis in order))
    return in_dtype(fnp.transpose(out, tuple(np.argsort(order).tolist())), dtype)


@implements("ndimage.convolve")
def convolve(
    input: ArrayLike,  # SciPy's name
    weights: Array,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: ArrayLike = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """Convolution, as ``scipy.ndimage.convolve``; see :func:`correlate`."""
    (weights,) = floats(weights)
    extents = shape_of(weights)
    origins = [
        -operator.index(shift) - (k % 2 == 0)
        for shift, k in zip(per_axis("convolve", origin, len(extents)), extents, strict=True)
    ]
    mirrored = reverse(weights, tuple(range(len(extents))))
    return correlate.traced(input, mirrored, output, mode, cval, origins, axes=axes)  # type: ignore[attr-defined]  # set by implements


# smoothing --------------------------------------------------------------------------------------


def _gaussian_weights(sigma: Array, order: int, radius: int) -> Array:
    """Samples of a derivative of a Gaussian, the Gaussian itself summing to 1.

    The derivative of order ``n`` is ``q_n(x) phi(x)`` with ``q_(n+1) = q_n' - q_n x / sigma^2``.
    """
    x = np.arange(-radius, radius + 1).astype(float)
    variance = sigma * sigma
    phi = fnp.exp(-0.5 / variance * x**2)
    phi = phi / fnp.sum(phi)
    q: list[Any] = [1.0]
    for _ in range(order):
        raised = [0.0, *(-c / variance for c in q)]
        lowered = [*(k * c for k, c in enumerate(q) if k), 0.0, 0.0]
        q = [r + c for r, c in zip(raised, lowered, strict=True)]
    return phi * sum(c * x**k for k, c in enumerate(q))


@implements("ndimage.gaussian_filter1d")
def gaussian_filter1d(
    input: ArrayLike,  # SciPy's name
    sigma: Array,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Array:
    """Gaussian filter along an axis, as ``scipy.ndimage.gaussian_filter1d``.

    Args:
      input: image.
      sigma: standard deviation, which may be traced. The filter's extent is a shape: in staging
        (``jit``, ``vmap``) give ``radius`` with a traced ``sigma``.
      axis: the axis.
      order: 0 smoothes; above, a derivative of the Gaussian.
      output: dtype of the result.
      mode: see :func:`correlate1d`.
      cval: see :func:`correlate1d`.
      truncate: extent of the filter in standard deviations.
      radius: extent of the filter to either side, in place of ``truncate``.

    Raises:
      ConcretizationError: ``sigma`` has no value, and ``radius`` is not given.
    """
    if order < 0:
        raise ValueError(f"gaussian_filter1d: order must be non-negative, got {order}{here()}")
    if radius is None:
        known = layout_of(sigma) if isinstance(sigma, Tracer) else sigma
        if known is None:
            known = value_of(sigma, "the extent of a Gaussian filter (give radius=)")
        radius = int(truncate * float(known) + 0.5)
    if not isinstance(radius, int) or radius < 0:
        raise ValueError(f"gaussian_filter1d: radius must be a non-negative integer, got {radius}")
    weights = _gaussian_weights(sigma, order, radius)[::-1]
    return correlate1d.traced(input, weights, axis, output, mode, cval, 0)  # type: ignore[attr-defined]  # set by implements


@implements("ndimage.gaussian_filter")
def gaussian_filter(
    input: ArrayLike,  # SciPy's name
    sigma: ArrayLike,
    order: ArrayLike = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Gaussian filter along axes, as ``scipy.ndimage.gaussian_filter``; see its 1-d sibling."""
    x, dtype = as_image("gaussian_filter", input, output)
    chosen = axes_of_image(axes, len(shape_of(x)))
    if isinstance(sigma, Tracer) and shape_of(sigma):
        sigma = list(fnp.unstack(sigma))
    options = zip(
        chosen,
        per_axis("gaussian_filter", sigma, len(chosen)),
        per_axis("gaussian_filter", order, len(chosen)),
        per_axis("gaussian_filter", mode, len(chosen)),
        per_axis("gaussian_filter", radius, len(chosen)),
        strict=True,
    )
    for axis, width, degree, how, extent in options:
        if isinstance(width, Tracer) or width > 1e-15:
            x = gaussian_filter1d.traced(  # type: ignore[attr-defined]  # set by implements
                x, width, axis, degree, dtype, how, cval, truncate, radius=extent
            )
    return in_dtype(x, dtype)


@implements("ndimage.uniform_filter1d")
def uniform_filter1d(
    input: ArrayLike,  # SciPy's name
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Means of windows along an axis, as ``scipy.ndimage.uniform_filter1d``."""
    x, dtype = as_image("uniform_filter1d", input, output)
    if size < 1:
        raise ValueError(f"uniform_filter1d: size must be at least 1, got {size}{here()}")
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    out = slide(x, np.ones(size), axis, size // 2 + origin, mode, cval)
    return in_dtype(
        out / size, dtype
    )  # divided last, so that integers are cut off where SciPy's are


@implements("ndimage.uniform_filter")
def uniform_filter(
    input: ArrayLike,  # SciPy's name
    size: ArrayLike = 3,
    output: Any = None,
    mode: ArrayLike = "reflect",
    cval: ArrayLike = 0.0,
    origin: ArrayLike = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Means of windows, as ``scipy.ndimage.uniform_filter``."""
    x, dtype = as_image("uniform_filter", input, output)
    chosen = axes_of_image(axes, len(shape_of(x)))
    lists = (per_axis("uniform_filter", value, len(chosen)) for value in (size, mode, origin))
    for axis, extent, how, shift in zip(chosen, *lists, strict=True):
        if extent > 1:
            x = uniform_filter1d.traced(x, extent, axis, dtype, how, cval, shift)  # type: ignore[attr-defined]  # set by implements
    return in_dtype(x, dtype)


# differences ------------------------------------------------------------------------------------


def _edges(
    name: str, x: Any, axis: int, output: Any, mode: str, cval: ArrayLike, smooth: ArrayLike
) -> Any:
    x, dtype = as_image(name, x, output)
    ndim = len(shape_of(x))
    axis = normalize_axis(axis, ndim, "axis")
    modes = per_axis(name, mode, ndim)
    out = in_dtype(slide(x, np.array([-1.0, 0.0, 1.0]), axis, 1, modes[axis], cval), dtype)
    for other in range(ndim):
        if other != axis:
            (out,) = floats(out)
            out = in_dtype(slide(out, np.array(smooth), other, 1, modes[other], cval), dtype)
    return out


@implements("ndimage.sobel")
def sobel(
    input: ArrayLike,  # SciPy's name
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:
    """Sobel's differences along an axis, as ``scipy.ndimage.sobel``."""
    return _edges("sobel", input, axis, output, mode, cval, [1.0, 2.0, 1.0])


@implements("ndimage.prewitt")
def prewitt(
    input: ArrayLike,  # SciPy's name
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:
    """Prewitt's differences along an axis, as ``scipy.ndimage.prewitt``."""
    return _edges("prewitt", input, axis, output, mode, cval, [1.0, 1.0, 1.0])


@implements("ndimage.laplace")
def laplace(
    input: ArrayLike,  # SciPy's name
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Sum of second differences, as ``scipy.ndimage.laplace``."""
    x, dtype = as_image("laplace", input, output)
    weights = np.array([1.0, -2.0, 1.0])
    chosen = axes_of_image(axes, len(shape_of(x)))
    modes = per_axis("laplace", mode, len(chosen))
    parts = [
        in_dtype(slide(x, weights, k, 1, how, cval), dtype)
        for k, how in zip(chosen, modes, strict=True)
    ]
    return sum(parts[1:], parts[0]) if parts else in_dtype(x, dtype)


@implements("ndimage.gaussian_laplace")
def gaussian_laplace(
    input: ArrayLike,  # SciPy's name
    sigma: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: int | Sequence[int] | None = None,
    **kwargs: object,
) -> Array:
    """Sum of second derivatives of a Gaussian filter, as ``scipy.ndimage.gaussian_laplace``."""
    return _gaussian_sum("gaussian_laplace", input, sigma, output, mode, cval, axes, 2, kwargs)


@implements("ndimage.gaussian_gradient_magnitude")
def gaussian_gradient_magnitude(
    input: ArrayLike,  # SciPy's name
    sigma: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: int | Sequence[int] | None = None,
    **kwargs: object,
) -> Array:
    """Size of the gradient of a Gaussian filter, as SciPy's function of the same name."""
    name = "gaussian_gradient_magnitude"
    return _gaussian_sum(name, input, sigma, output, mode, cval, axes, 1, kwargs)


def _gaussian_sum(
    name: str,
    x: ArrayLike,
    sigma: ArrayLike,
    output: Any,
    mode: str,
    cval: ArrayLike,
    axes: int | Sequence[int] | None,
    degree: int,
    kwargs: dict[str, Any],
) -> Array:
    """The sum of second derivatives, or the root of that of squares of first ones."""
    x, dtype = as_image(name, x, output)
    ndim = len(shape_of(x))
    chosen = axes_of_image(axes, ndim)
    modes = per_axis(name, mode, len(chosen))
    terms = []
    for axis, how in zip(chosen, modes, strict=True):
        # With first derivatives SciPy smoothes along all axes, not only those that are named.
        smoothed, how = (tuple(range(ndim)), how) if degree == 1 else (chosen, mode)
        order = [degree if k == axis else 0 for k in smoothed]
        part = gaussian_filter.traced(  # type: ignore[attr-defined]  # set by implements
            x, sigma, order, dtype, how, cval, axes=smoothed, **kwargs
        )
        terms.append(part if degree == 2 else part * part)
    if not terms:
        return in_dtype(x, dtype)
    total = sum(terms[1:], terms[0])
    return total if degree == 2 else in_dtype(fnp.sqrt(total), dtype)


# rank filters -----------------------------------------------------------------------------------


def _windows(
    name: str,
    x: ArrayLike,
    size: object,
    footprint: Any,
    mode: object,
    cval: object,
    origin: object,
    axes: int | Sequence[int] | None,
) -> Array:
    """The elements of each window along a new last axis."""
    ndim = len(shape_of(x))
    chosen = axes_of_image(axes, ndim)
    if footprint is None:
        if size is None:
            raise ValueError(f"{name}: give a size or a footprint{here()}")
        extents = [operator.index(n) for n in per_axis(name, size, len(chosen))]
        footprint = np.ones(extents, bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != len(chosen) or not footprint.any():
        raise ValueError(
            f"{name}: a footprint of shape {footprint.shape} with {int(footprint.sum())} elements "
            f"does not fit {len(chosen)} axes{here()}"
        )
    widths = [(0, 0)] * ndim
    shifts = per_axis(name, origin, len(chosen))
    for axis, n, shift in zip(chosen, footprint.shape, shifts, strict=True):
        low = n // 2 + operator.index(shift)
        if not 0 <= low < n:
            raise ValueError(f"{name}: origin {shift} is outside of a window of extent {n}{here()}")
        widths[axis] = (low, n - 1 - low)
    wide = x
    for axis, how in zip(chosen, per_axis(name, mode, len(chosen)), strict=True):
        one = [(0, 0)] * ndim
        one[axis] = widths[axis]
        wide = extended(wide, one, how, cval)
    parts = []
    for place in itertools.product(*map(range, footprint.shape)):
        if footprint[place]:
            entries = [slice(None)] * ndim
            for axis, k in zip(chosen, place, strict=True):
                entries[axis] = slice(k, k + shape_of(x)[axis])
            parts.append(slice_index(wide, BasicIndex(tuple(entries))))
    return fnp.stack(parts, axis=-1)


def _ranked(windows: Any, rank: int) -> Array:
    """One rank of the elements along the last axis."""
    count = shape_of(windows)[-1]
    if rank == 0:
        return fnp.min(windows, axis=-1)
    if rank == count - 1:
        return fnp.max(windows, axis=-1)
    return fnp.sort(windows, axis=-1)[..., rank]


@implements("ndimage.rank_filter")
def rank_filter(
    input: ArrayLike,  # SciPy's name
    rank: int,
    size: object = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """The element of a rank in each window, as ``scipy.ndimage.rank_filter``.

    Its derivative goes to that element; equal ones share it for the least and largest rank.
    """
    x, dtype = as_image("rank_filter", input, output)
    windows = _windows("rank_filter", x, size, footprint, mode, cval, origin, axes)
    count = shape_of(windows)[-1]
    place = rank + count if rank < 0 else rank
    if not 0 <= place < count:
        raise ValueError(f"rank_filter: rank {rank} of {count} elements does not exist{here()}")
    return in_dtype(_ranked(windows, place), dtype)


@implements("ndimage.median_filter")
def median_filter(
    input: ArrayLike,  # SciPy's name
    size: object = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Medians of windows, as ``scipy.ndimage.median_filter``; the upper one of an even number."""
    x, dtype = as_image("median_filter", input, output)
    windows = _windows("median_filter", x, size, footprint, mode, cval, origin, axes)
    return in_dtype(_ranked(windows, shape_of(windows)[-1] // 2), dtype)


@implements("ndimage.percentile_filter")
def percentile_filter(
    input: ArrayLike,  # SciPy's name
    percentile: float,
    size: object = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Percentiles of windows, as ``scipy.ndimage.percentile_filter``."""
    x, dtype = as_image("percentile_filter", input, output)
    windows = _windows("percentile_filter", x, size, footprint, mode, cval, origin, axes)
    count = shape_of(windows)[-1]
    percentile = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= percentile <= 100:
        raise ValueError(f"percentile_filter: percentile {percentile} is outside [0, 100]{here()}")
    rank = count - 1 if percentile == 100 else int(count * percentile / 100.0)
    return in_dtype(_ranked(windows, rank), dtype)


def _extreme(
    name: str,
    x: ArrayLike,
    size: object,
    footprint: Any,
    output: Any,
    mode: object,
    cval: object,
    origin: object,
    axes: int | Sequence[int] | None,
    *,
    is_max: bool,
) -> Array:
    """Largest or least element of each window; one axis after the other for a box."""
    x, dtype = as_image(name, x, output)
    reduce = fnp.max if is_max else fnp.min
    if footprint is not None or size is None:
        windows = _windows(name, x, size, footprint, mode, cval, origin, axes)
        return in_dtype(reduce(windows, axis=-1), dtype)
    chosen = axes_of_image(axes, len(shape_of(x)))
    lists = (per_axis(name, value, len(chosen)) for value in (size, mode, origin))
    for axis, extent, how, shift in zip(chosen, *lists, strict=True):
        if extent > 1:
            windows = _windows(name, x, extent, None, how, cval, shift, axis)
            x = reduce(windows, axis=-1)
    return in_dtype(x, dtype)


@implements("ndimage.maximum_filter")
def maximum_filter(
    input: ArrayLike,  # SciPy's name
    size: object = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Largest elements of windows, as ``scipy.ndimage.maximum_filter``."""
    return _extreme(
        "maximum_filter", input, size, footprint, output, mode, cval, origin, axes, is_max=True
    )


@implements("ndimage.minimum_filter")
def minimum_filter(
    input: ArrayLike,  # SciPy's name
    size: object = None,
    footprint: Any = None,
    output: Any = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Least elements of windows, as ``scipy.ndimage.minimum_filter``."""
    return _extreme(
        "minimum_filter", input, size, footprint, output, mode, cval, origin, axes, is_max=False
    )


@implements("ndimage.maximum_filter1d")
def maximum_filter1d(
    input: ArrayLike,  # SciPy's name
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Largest elements of windows along an axis, as ``scipy.ndimage.maximum_filter1d``."""
    name = "maximum_filter1d"
    axis = normalize_axis(axis, len(shape_of(as_array(input))), "axis")
    return _extreme(name, input, size, None, output, mode, cval, origin, axis, is_max=True)


@implements("ndimage.minimum_filter1d")
def minimum_filter1d(
    input: ArrayLike,  # SciPy's name
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Least elements of windows along an axis, as ``scipy.ndimage.minimum_filter1d``."""
    name = "minimum_filter1d"
    axis = normalize_axis(axis, len(shape_of(as_array(input))), "axis")
    return _extreme(name, input, size, None, output, mode, cval, origin, axis, is_max=False)
