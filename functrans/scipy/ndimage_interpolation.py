"""Interpolation of ``scipy.ndimage``: splines of order 0 to 5 on regular grids.

Here: the spline filter, evaluation at coordinates, and geometric transformations. Not here:
splines on other grids (``interpolate``) and filters (``ndimage_filters``).

The filter is two first-order recursions per pole. What lies beyond the border is treated as SciPy
treats it in each mode. Derivatives in the coordinates are those of the spline; at order 1 they jump
at grid points, at order 0 they are zero.

Reference: Unser, Splines: a perfect fit for signal and image processing, IEEE Signal Processing
Magazine 16 (1999).

Layer: ``scipy``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import is_known, layout_of, value_of
from functrans.primitives.complex_parts import real_dtype
from functrans.primitives.filters import recursive_filter
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast, normalize_axis
from functrans.scipy.dispatch import floats, implements, plain
from functrans.scipy.ndimage_filters import as_image, extended, in_dtype, per_axis

_POLES: dict[int, tuple[float, ...]] = {
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (
        math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}
"""Roots inside the unit circle of the B-splines' z-transforms."""

_MODES = (
    "reflect", "grid-mirror", "mirror", "nearest", "wrap", "grid-wrap", "constant", "grid-constant",
)  # fmt: skip
_MARGIN = 12  # SciPy's, where the recursion cannot start exactly


def _check(name: str, order: int, mode: str) -> None:
    if order not in range(6):
        raise ValueError(f"{name}: spline order must be 0 to 5, got {order!r}{here()}")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode={mode!r}; expected one of {', '.join(_MODES)}{here()}")


def _kind(mode: str) -> str:
    """How the spline goes on beyond the border: by mirroring, reflection or repetition."""
    if mode == "grid-wrap":
        return "wrap"
    return "reflect" if mode in ("nearest", "reflect", "grid-mirror") else "mirror"


@functools.cache
def _is_exact() -> bool:
    """Whether SciPy's reflected splines are exact: from 1.18 on. Plain and traced arrays agree."""
    major, minor = plain("version.version").split(".")[:2]
    return (int(major), int(minor)) >= (1, 18)


def _start_weights(n: int, z: float, kind: str) -> np.ndarray:
    """The first element of the causal recursion as weights of all samples, summed in closed form.

    The samples repeat with period ``2 n - 2`` (mirror), ``2 n`` (reflect) or ``n`` (wrap).
    """
    k = np.arange(n)
    if kind == "mirror":
        weights = z**k + z ** (2 * n - 2 - k).astype(float)
        weights[[0, -1]] = 1.0, z ** (n - 1)
        return weights / (1 - z ** (2 * n - 2))
    if kind == "reflect":
        weights = z ** k.astype(float) + z ** (2.0 * n - 1 - k)
        if not _is_exact():
            # SciPy's loop read the first sample last, when the sum already stood in its place: the
            # term of weight z**(2 n - 1) was that of the sum.
            weights[0], weights[-1] = 1.0, z**n
            weights *= 1 + z ** (2 * n - 1)
            weights[-1] += z ** (n - 1)
        weights *= z / (1 - z ** (2 * n))
        weights[0] += 1
        return weights
    weights = z ** ((n - k) % n).astype(float)
    return weights / (1 - z**n)


def _filtered(x: Any, z: float, kind: str) -> Array:
    """Both recursions of one pole along the last axis."""
    dtype = dtype_of(x)
    n = shape_of(x)[-1]
    real = real_dtype(dtype)
    pole = np.array([-z], real)
    start = fnp.sum(x * _start_weights(n, z, kind).astype(real), axis=-1, keepdims=True)
    causal = recursive_filter(pole, fnp.concatenate((start, x[..., 1:]), axis=-1))
    last, before = causal[..., -1:], causal[..., -2:-1]
    if kind == "mirror":
        end = (before * z + last) * (z / (z * z - 1))
    elif kind == "reflect":
        end = last * (z / (z - 1))
    else:
        weights = z ** (np.arange(n) + 1.0)
        weights[-1] = 1.0
        total = fnp.sum(causal * weights.astype(real), axis=-1, keepdims=True)
        end = total * (z / (z**n - 1))
    backward = fnp.concatenate((end, causal[..., -2::-1] * -z), axis=-1)
    return recursive_filter(pole, backward)[..., ::-1]


def _one_axis(x: Any, order: int, axis: int, mode: str) -> Any:
    if order < 2 or shape_of(x)[axis] == 1:
        return x
    x = fnp.moveaxis(x, axis, -1)
    gain = 1.0
    for z in _POLES[order]:
        gain *= (1 - z) * (1 - 1 / z)
    x = x * gain
    for z in _POLES[order]:
        x = _filtered(x, z, _kind(mode))
    return fnp.moveaxis(x, -1, axis)


def _output_dtype(x: ArrayLike, output: Any) -> np.dtype:
    """SciPy's result is f64 unless asked; single precision stays so here."""
    dtype = dtype_of(x)
    if output is np.float64 and dtype.char in "fFD":
        return dtype
    return np.dtype(output)


@implements("ndimage.spline_filter1d")
def spline_filter1d(
    input: ArrayLike,  # SciPy's name
    order: int = 3,
    axis: int = -1,
    output: Any = np.float64,
    mode: str = "mirror",
) -> Array:
    """Coefficients of the spline through samples along an axis, as SciPy's ``spline_filter1d``.

    Args:
      input: samples.
      order: 0 to 5.
      axis: the axis.
      output: dtype of the result; traced single precision stays so by default.
      mode: how the samples go on.

    Raises:
      ValueError: order or mode are unknown.
    """
    _check("spline_filter1d", order, mode)
    x, _ = as_image("spline_filter1d", input)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    return in_dtype(_one_axis(x, order, axis, mode), _output_dtype(x, output))


@implements("ndimage.spline_filter")
def spline_filter(
    input: ArrayLike,  # SciPy's name
    order: int = 3,
    output: Any = np.float64,
    mode: str = "mirror",
) -> Array:
    """Coefficients of the spline through samples on a grid, as ``scipy.ndimage.spline_filter``."""
    _check("spline_filter", order, mode)
    x, _ = as_image("spline_filter", input)
    for axis in range(len(shape_of(x))):
        x = _one_axis(x, order, axis, mode)
    return in_dtype(x, _output_dtype(x, output))


# evaluation -------------------------------------------------------------------------------------


def _weights(t: Array, order: int) -> list[Any]:
    """The B-splines that are not zero, ``t`` after the knot (odd order) or the nearest point."""
    if order == 0:
        return []
    if order == 1:
        return [1 - t, t]
    if order == 2:
        low, high = 0.5 - t, 0.5 + t
        return [0.5 * low * low, 0.75 - t * t, 0.5 * high * high]
    s = 1 - t
    if order == 3:
        return [
            s * s * s / 6,
            (t * t * (t - 2) * 3 + 4) / 6,
            (s * s * (s - 2) * 3 + 4) / 6,
            t * t * t / 6,
        ]
    if order == 4:
        low, high, square = 0.5 - t, 0.5 + t, t * t

        def beside(y: Array) -> Array:
            return y * (y * (y * (5 - y) / 6 - 1.25) + 5 / 24) + 55 / 96

        return [
            low * low * low * low / 24,
            beside(1 + t),
            square * (square * 0.25 - 0.625) + 115 / 192,
            beside(s),
            high * high * high * high / 24,
        ]

    def inner(y: Array) -> Any:
        square = y * y
        return square * (square * (0.25 - y / 12) - 0.5) + 0.55

    def outer(y: Any) -> Any:
        return y * (y * (y * (y * (y / 24 - 0.375) + 1.25) - 1.75) + 0.625) + 0.425

    s_square, t_square = s * s, t * t
    return [
        s * s_square * s_square / 120,
        outer(t + 1),
        inner(t),
        inner(s),
        outer(s + 1),
        t * t_square * t_square / 120,
    ]


def _folded(c: Array, n: int, mode: str) -> Array:
    """Coordinates (or indices) beyond the border moved to where the mode says they lie."""
    if mode == "mirror":
        if n == 1:
            return c * 0
        period = 2 * n - 2
        c = fnp.abs(c) % period
        return fnp.where(c > n - 1, period - c, c)
    if mode in ("reflect", "grid-mirror"):
        period = 2 * n
        c = fnp.where(c < 0, -1 - c, c) % period
        return fnp.where(c > n - 0.5, period - 1 - c, c)
    if mode == "grid-wrap":
        return c % n
    if mode == "wrap":
        inside = (c >= 0) & (c <= n - 1)
        return fnp.where(inside, c, c % (n - 1)) if n > 1 else c * 0
    return c


def _near(place: Array, n: int, order: int, mode: str) -> Array:
    """:func:`_folded` of indices that are beyond the border by no more than the spline's order."""
    if mode == "nearest":
        return fnp.clip(place, 0, n - 1)
    if n <= order + 1:
        return _folded(place, n, mode)
    if mode == "grid-wrap":
        place = fnp.where(place < 0, place + n, place)
        return fnp.where(place >= n, place - n, place)
    low, high = (0, 2 * n - 2) if mode == "mirror" else (-1, 2 * n - 1)
    place = fnp.where(place < 0, low - place, place)
    return fnp.where(place >= n, high - place, place)


def evaluate(
    name: str,
    x: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str,
    cval: object,
    prefilter: bool,
) -> Any:
    """The spline through samples at coordinates, one array per axis, all of one shape."""
    _check(name, order, mode)
    dtype = dtype_of(x)
    shape = shape_of(x)
    margin = 0
    if prefilter and order > 1:
        if mode in ("nearest", "grid-constant"):
            margin = _MARGIN
            x = extended(x, [(margin, margin)] * len(shape), mode, cval)
        for axis in range(len(shape)):
            x = _one_axis(x, order, axis, mode)
    extents = shape_of(x)
    places: list[list[Any]] = []
    weights: list[list[Any]] = []
    is_outside: Any = False
    for c, own, n in zip(coordinates, shape, extents, strict=True):
        if mode == "constant":
            is_outside = is_outside | ((c < 0) | (c > own - 1))
            c = fnp.clip(c, 0, own - 1)
        elif mode == "grid-constant":
            c = c + margin
        elif mode == "nearest":  # the coefficients go on; where all are one, farther is the same
            c = fnp.clip(c + margin, -order - 1, n + order)
        else:
            c = _folded(c + margin, n, mode)
        base = fnp.floor(c) if order % 2 else fnp.floor(c + 0.5)
        fractions = _weights(cast(c - base, real_dtype(dtype)), order)
        first = cast(base, np.int64) - order // 2
        places.append([first + k for k in range(order + 1)])
        weights.append(fractions)
    inner_mode = "mirror" if mode in ("constant", "wrap") else mode
    axes = tuple(range(len(shape)))
    total: Any = None
    for corner in itertools.product(range(order + 1), repeat=len(shape)):
        index, weight, is_beyond = [], None, False
        for axis, k in enumerate(corner):
            place = places[axis][k]
            if mode == "grid-constant":
                is_beyond = is_beyond | ((place < 0) | (place >= extents[axis]))
            else:
                place = _near(place, extents[axis], order, inner_mode)
            index.append(cast(place, np.int64))
            if order:
                own_weight = weights[axis][k]
                weight = own_weight if weight is None else weight * own_weight
        term = gather(x, index, axes, "clip")
        if mode == "grid-constant":
            term = fnp.where(is_beyond, cast(cval, dtype), term)
        term = term if weight is None else term * weight
        total = term if total is None else total + term
    if mode == "constant":
        total = fnp.where(is_outside, cast(cval, dtype), total)
    return total


def _rounded(y: ArrayLike, dtype: np.dtype) -> Array:
    """A result in its dtype: the nearest integer of its range, halves away from zero."""
    if dtype.kind not in "iub":
        return in_dtype(y, dtype)
    y = y + fnp.copysign(0.5, y)
    if dtype.kind != "b" and dtype.itemsize < 8:
        y = fnp.clip(y, float(np.iinfo(dtype).min), float(np.iinfo(dtype).max))
    return in_dtype(fnp.maximum(y, 0.0) if dtype.kind == "u" else y, dtype)


@implements("ndimage.map_coordinates")
def map_coordinates(
    input: ArrayLike,  # SciPy's name
    coordinates: Array,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """An image at coordinates, as ``scipy.ndimage.map_coordinates``.

    Args:
      input: image of ``d`` axes.
      coordinates: ``[d, ...]``, in units of the grid.
      output: dtype of the result, by default that of the image.
      order: order of the spline, 0 to 5.
      mode: what lies beyond the border: ``"reflect"`` (``"grid-mirror"``), ``"mirror"``,
        ``"nearest"``, ``"wrap"``, ``"grid-wrap"``, ``"constant"`` or ``"grid-constant"``.
      cval: value there with the last two.
      prefilter: whether ``input`` are samples, not the coefficients of ``spline_filter``.

    Returns:
      Values of shape ``coordinates.shape[1:]``, differentiable in the image and the coordinates.

    Raises:
      ShapeError: there is not one row of coordinates per axis.
      ValueError: order or mode are unknown.

    Example:
      >>> import functrans as ft
      >>> image = np.arange(9.0).reshape(3, 3)
      >>> ft.jit(lambda c: map_coordinates(image, c, order=1))(np.array([[0.5], [1.5]]))
      array([3.])
    """
    x, dtype = as_image("map_coordinates", input, output)
    if isinstance(coordinates, (list, tuple)):
        coordinates = fnp.stack([fnp.asarray(c) for c in coordinates])
    (coordinates,) = floats(coordinates)
    ndim = len(shape_of(x))
    if not shape_of(coordinates) or shape_of(coordinates)[0] != ndim:
        raise ShapeError(
            f"map_coordinates: coordinates of shape {shape_of(coordinates)} for an image of {ndim} "
            f"axes{here()}; the first axis must have that extent"
        )
    rows = [coordinates[axis] for axis in range(ndim)]
    out = evaluate("map_coordinates", x, rows, order, mode, cval, prefilter)
    return _rounded(out, dtype)


def _grid(shape: Sequence[int]) -> list[np.ndarray]:
    """Indices of a grid, one array per axis, that broadcast together."""
    return [
        np.arange(n, dtype=float).reshape([-1 if k == axis else 1 for k in range(len(shape))])
        for axis, n in enumerate(shape)
    ]


def _separable(
    name: str,
    x: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str,
    cval: object,
    prefilter: bool,
) -> Array:
    """Evaluate on the product of coordinates that are vectors, one per axis."""
    shape = tuple(shape_of(c)[0] for c in coordinates)
    ndim = len(shape)
    full = [
        fnp.broadcast_to(fnp.reshape(c, [-1 if k == axis else 1 for k in range(ndim)]), shape)
        for axis, c in enumerate(coordinates)
    ]
    return evaluate(name, x, full, order, mode, cval, prefilter)


@implements("ndimage.shift")
def shift(
    input: ArrayLike,  # SciPy's name
    shift: ArrayLike,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """An image moved along its axes, as ``scipy.ndimage.shift``; ``shift`` may be traced."""
    x, dtype = as_image("shift", input, output)
    shape = shape_of(x)
    steps = (
        list(fnp.unstack(shift))
        if isinstance(shift, Tracer) and shape_of(shift)
        else per_axis("shift", shift, len(shape))
    )
    vectors = [np.arange(n, dtype=float) - step for n, step in zip(shape, steps, strict=True)]
    out = _separable("shift", x, vectors, order, mode, cval, prefilter)
    return _rounded(out, dtype)


@implements("ndimage.zoom")
def zoom(
    input: ArrayLike,  # SciPy's name
    zoom: ArrayLike,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Array:
    """An image on a finer or coarser grid, as ``scipy.ndimage.zoom``.

    The factors are shapes, so they are not traced.
    """
    x, dtype = as_image("zoom", input, output)
    shape = shape_of(x)
    factors = per_axis("zoom", value_of(zoom, "the shape of a zoomed image"), len(shape))
    vectors = []
    for n, factor in zip(shape, factors, strict=True):
        count = round(n * factor)
        place = np.arange(count, dtype=float)
        if grid_mode:
            scale = n / count if count else 1.0
            vectors.append((place + 0.5) * scale - 0.5)
        else:
            vectors.append(place * ((n - 1) / (count - 1) if count > 1 else 1.0))
    out = _separable("zoom", x, vectors, order, mode, cval, prefilter)
    return _rounded(out, dtype)


@implements("ndimage.affine_transform")
def affine_transform(
    input: Any,  # SciPy's name
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: object = 0.0,
    prefilter: bool = True,
) -> Any:
    """An image under an affine map, as ``scipy.ndimage.affine_transform``.

    Args:
      input: image of ``d`` axes.
      matrix: ``[d, d]``, ``[d]`` (its diagonal), or homogeneous ``[d, d + 1]`` or
        ``[d + 1, d + 1]``; the result at ``o`` is the image at ``matrix @ o + offset``. It may be
        traced, and so may ``offset``.
      offset: number or ``[d]``.
      output_shape: by default the image's.
      output: dtype of the result.
      order: see :func:`map_coordinates`.
      mode: see :func:`map_coordinates`.
      cval: see :func:`map_coordinates`.
      prefilter: see :func:`map_coordinates`.

    Raises:
      ShapeError: the matrix does not fit.
    """
    x, dtype = as_image("affine_transform", input, output)
    ndim = len(shape_of(x))
    matrix, offset = floats(matrix, offset)
    form = shape_of(matrix)
    if form in ((ndim, ndim + 1), (ndim + 1, ndim + 1)):
        offset, matrix = matrix[:ndim, ndim], matrix[:ndim, :ndim]
    elif form not in ((ndim,), (ndim, ndim)):
        raise ShapeError(
            f"affine_transform: a matrix of shape {form} does not fit an image of {ndim} axes"
            f"{here()}"
        )
    offset = fnp.broadcast_to(offset, (ndim,))
    target = shape_of(x) if output_shape is None else tuple(map(int, output_shape))
    if len(shape_of(matrix)) == 1:
        vectors = [np.arange(n) * matrix[k] + offset[k] for k, n in enumerate(target)]
        out = _separable("affine_transform", x, vectors, order, mode, cval, prefilter)
        return _rounded(out, dtype)
    grid = np.stack(np.meshgrid(*(np.arange(n, dtype=float) for n in target), indexing="ij"))
    rows = []
    for axis in range(ndim):
        row = offset[axis]
        for k in range(ndim):  # in SciPy's order: rounding decides what is beyond an edge
            row = row + matrix[axis, k] * grid[k]
        rows.append(row)
    out = evaluate("affine_transform", x, rows, order, mode, cval, prefilter)
    return _rounded(out, dtype)


@implements("ndimage.rotate")
def rotate(
    input: ArrayLike,  # SciPy's name
    angle: ArrayLike,
    axes: tuple[int, int] = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: object = 0.0,
    prefilter: bool = True,
) -> Any:
    """An image turned in the plane of two axes, as ``scipy.ndimage.rotate``.

    Args:
      input: image.
      angle: in degrees; it may be traced. With ``reshape`` the shape of the result depends on it,
        so that in staging ``reshape=False`` is needed; the shape is locally constant.
      axes: the plane.
      reshape: whether the result holds the whole turned image.
      output: dtype of the result.
      order: see :func:`map_coordinates`.
      mode: see :func:`map_coordinates`.
      cval: see :func:`map_coordinates`.
      prefilter: see :func:`map_coordinates`.
    """
    x, dtype = as_image("rotate", input, output)
    ndim = len(shape_of(x))
    plane = sorted(normalize_axis(axis, ndim, "axes") for axis in axes)
    if ndim < 2 or len(set(plane)) != 2:
        raise ShapeError(f"rotate: axes {axes} of an image of {ndim} axes are no plane{here()}")
    radians: Any = fnp.deg2rad(angle)
    cosine, sine = fnp.cos(radians), fnp.sin(radians)
    own = np.array([shape_of(x)[axis] for axis in plane])
    target = own
    if reshape:
        if not is_known(radians):
            value_of(radians, "the shape of a rotated image (give reshape=False)")
        known = layout_of(radians) if isinstance(radians, Tracer) else radians
        c, s = np.cos(known), np.sin(known)
        corners = np.array([[c, s], [-s, c]]) @ [[0, 0, own[0], own[0]], [0, own[1], 0, own[1]]]
        target = (np.ptp(corners, axis=1) + 0.5).astype(int)
    out_center, in_center = (target - 1) / 2, (own - 1) / 2
    shape = list(shape_of(x))
    for axis, n in zip(plane, target, strict=True):
        shape[axis] = int(n)
    grid = _grid(shape)
    first, second = grid[plane[0]] - out_center[0], grid[plane[1]] - out_center[1]
    turned = {
        plane[0]: cosine * first + sine * second + in_center[0],
        plane[1]: cosine * second - sine * first + in_center[1],
    }
    rows = [fnp.broadcast_to(turned.get(axis, grid[axis]), tuple(shape)) for axis in range(ndim)]
    out = evaluate("rotate", x, rows, order, mode, cval, prefilter)
    return _rounded(out, dtype)
