"""Images of other sizes: ``interpolate``, ``grid_sample``, rearranged channels and windows.

Not here: the classes (``nn.resampling_modules``).

Resampling by a factor is linear in the image and works axis by axis: it multiplies by a matrix per
axis.

Layer: ``compat``. Reference: Keys, Cubic convolution interpolation for digital image processing,
IEEE TASSP 29 (1981).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.methods.shaping import extents
from functrans.autograd.programs import Operation
from functrans.autograd.sizes import integer, wrong_type
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import check_tensor
from functrans.compat.torch.nn.convolutions import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    per_axis,
    window_counts,
    windows_of,
)
from functrans.compat.torch.nn.layers import padded
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.primitives import dot, movement, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute
from functrans.primitives.indexing import take_along_axis

__all__ = [
    "affine_grid", "channel_shuffle", "fold", "grid_sample", "interpolate", "pixel_shuffle",
    "pixel_unshuffle", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# sizes -------------------------------------------------------------------------------------------


def _nearest(n: int, size: int, scale: float | None, exact: bool) -> np.ndarray:
    """A matrix ``[size, n]`` that takes the nearest element."""
    step = 1 / scale if scale else n / size
    places = np.floor((np.arange(size) + (0.5 if exact else 0.0)) * step).astype(int)
    return np.asarray(np.eye(n)[np.minimum(places, n - 1)])


def _places(n: int, size: int, scale: float | None, corners: bool) -> np.ndarray:
    """Where the new elements lie among the old ones."""
    if corners:
        return np.arange(size) * ((n - 1) / (size - 1) if size > 1 else 0.0)
    step = 1 / scale if scale else n / size
    return (np.arange(size) + 0.5) * step - 0.5


def _near(t: Any, a: float) -> Any:
    """The kernel of cubic convolution up to 1."""
    return ((a + 2) * t - (a + 3)) * t * t + 1.0


def _far(t: Any, a: float) -> Any:
    """The same from 1 to 2."""
    return a * (((t - 5.0) * t + 8.0) * t - 4.0)


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    t = np.abs(t)
    return np.where(t <= 1, _near(t, a), np.where(t < 2, _far(t, a), 0.0))


def _hat(t: np.ndarray, a: float) -> np.ndarray:
    return np.asarray(np.maximum(1 - np.abs(t), 0.0))


def _linear(n: int, size: int, scale: float | None, corners: bool) -> np.ndarray:
    places = np.maximum(_places(n, size, scale, corners), 0.0)
    low = np.minimum(places.astype(int), n - 1)
    share = np.clip(places - low, 0.0, 1.0)
    matrix = np.zeros((size, n))
    np.add.at(matrix, (np.arange(size), low), 1 - share)
    np.add.at(matrix, (np.arange(size), np.minimum(low + 1, n - 1)), share)
    return matrix


def _bicubic(n: int, size: int, scale: float | None, corners: bool) -> np.ndarray:
    places = _places(n, size, scale, corners)
    low = np.floor(places).astype(int)
    matrix = np.zeros((size, n))
    for k in range(-1, 3):
        weight = _cubic(places - (low + k), -0.75)
        np.add.at(matrix, (np.arange(size), np.clip(low + k, 0, n - 1)), weight)
    return matrix


def _smoothed(
    n: int, size: int, scale: float | None, corners: bool, kernel: Callable[..., np.ndarray],
    reach: float,
) -> np.ndarray:  # fmt: skip
    """A matrix with the kernel as wide as the step, so that no detail is left out."""
    if corners:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1 / scale if scale else n / size
    support = reach * max(step, 1.0)
    narrowing = 1 / step if step >= 1 else 1.0
    matrix = np.zeros((size, n))
    for i in range(size):
        centre = step * (i + 0.5)
        low = max(int(centre - support + 0.5), 0)
        high = min(int(centre + support + 0.5), n)
        weight = kernel((np.arange(low, high) - centre + 0.5) * narrowing, -0.5)
        matrix[i, low:high] = weight / weight.sum()
    return matrix


def _matrix(
    mode: str, n: int, size: int, scale: float | None, corners: bool, antialias: bool
) -> np.ndarray:
    if mode in ("nearest", "nearest-exact"):
        return _nearest(n, size, scale, mode == "nearest-exact")
    if antialias:
        kernel, reach = (_cubic, 2.0) if mode == "bicubic" else (_hat, 1.0)
        return _smoothed(n, size, scale, corners, kernel, reach)
    if mode == "bicubic":
        return _bicubic(n, size, scale, corners)
    return _linear(n, size, scale, corners)


def _resampled(
    x: Array, *, mode: str, sizes: tuple[int, ...], scales: tuple[float | None, ...], corners: bool,
    antialias: bool,
) -> Array:  # fmt: skip
    ndim, n = len(shape_of(x)), len(sizes)
    for i, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis = ndim - n + i
        extent = shape_of(x)[axis]
        matrix = _matrix(mode, extent, size, scale, corners, antialias)
        if matrix.shape[0] == extent and (matrix == np.eye(extent)).all():
            continue
        product = dot.dot_general(x, structural.cast(matrix, x.dtype), ((axis,), (1,)), ((), ()))
        order = (*range(axis), ndim - 1, *range(axis, ndim - 1))
        x = structural.transpose(product, order)
    return x


_RESAMPLE = {
    (kind, n): Operation(f"Upsample{label}{n}D", _resampled)
    for kind, label in (("nearest", "Nearest"), ("nearest-exact", "NearestExact"))
    for n in (1, 2, 3)
} | {
    ("linear", 1): Operation("UpsampleLinear1D", _resampled),
    ("bilinear", 2): Operation("UpsampleBilinear2D", _resampled),
    ("bicubic", 2): Operation("UpsampleBicubic2D", _resampled),
    ("trilinear", 3): Operation("UpsampleTrilinear3D", _resampled),
}


def interpolate(
    input: Tensor, size: object = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Images of other sizes, ``[n, c, *]`` with one to three spatial axes.

    Args:
      input: the images.
      size: new extents.
      scale_factor: factors of the extents, in their place.
      mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``,
        ``"trilinear"`` or ``"area"``.
      align_corners: whether the outermost elements stay where they are; not for ``"nearest"`` and
        ``"area"``.
      recompute_scale_factor: whether the factor counts that the rounded extents have.
      antialias: whether kernels are as wide as the step, for ``"bilinear"`` and ``"bicubic"``.

    Raises:
      ValueError: neither or both of size and factor are given, or they do not fit the axes.
      NotImplementedError: the mode is not for so many axes.

    Example:
      >>> from functrans.autograd import tensor
      >>> interpolate(tensor([[[1.0, 2.0]]]), scale_factor=2)
      tensor([[[1., 1., 2., 2.]]])
    """
    check_tensor("interpolate", "input", 1, input)
    modes = ("nearest", "area", "nearest-exact")
    if mode in modes and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    n = len(input.shape) - 2
    sizes, scales = _sizes(input, size, scale_factor, n, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    if mode == "area":
        pools: Sequence[Any] = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[n - 1](input, sizes)
    if min(*input.shape[2:], *sizes, 1) < 1:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{list(input.shape[2:])} output {list(sizes)}"
        )
    if (mode, n) not in _RESAMPLE:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {n + 2}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
            f"area | nearest-exact (got {mode})"
        )
    return _RESAMPLE[mode, n](
        input, mode=mode, sizes=sizes, scales=scales, corners=bool(align_corners),
        antialias=bool(antialias),
    )  # fmt: skip


def _sizes(
    x: Any, size: Any, factor: Any, n: int, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """New extents and the factors that count."""
    if size is not None and factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given = size if factor is None else factor
    many = tuple(given) if isinstance(given, (tuple, list)) else (given,) * n
    if len(many) != n:
        what = "output size" if factor is None else "scale_factor"
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {list(x.shape[2:])} and {what} of {given}. Please provide "
            "input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{what} in (o1, o2, ...,oK) format."
        )
    if factor is None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        kind = "int or tuple of ints"
        return tuple([integer(s, "size", "interpolate", kind) for s in many]), (None,) * n
    for f in many:
        if isinstance(f, str):
            raise wrong_type(f, "scale_factor", "interpolate", "float or tuple of floats")
    sizes = tuple(math.floor(e * float(f)) for e, f in zip(x.shape[2:], many, strict=True))
    return sizes, (None,) * n if recompute else tuple(float(f) for f in many)


def upsample(
    input: Tensor,
    size: object = None,
    scale_factor: object = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """``interpolate``; torch's old name of it."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: object = None, scale_factor: object = None) -> Tensor:
    """``interpolate`` with ``mode="nearest"``."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: object = None, scale_factor: object = None) -> Tensor:
    """``interpolate`` with ``mode="bilinear"`` and ``align_corners=True``."""
    return interpolate(input, size, scale_factor, "bilinear", True)


# grids -------------------------------------------------------------------------------------------


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where ``grid_sample`` looks for an affine image of its input.

    Args:
      theta: ``[n, 2, 3]`` or ``[n, 3, 4]``.
      size: ``[n, c, h, w]`` or ``[n, c, d, h, w]`` of the result.
      align_corners: whether -1 and 1 are the centres of the outermost elements, not their edges.

    Raises:
      ValueError: the extents do not fit.
    """
    space = extents((tuple(size[2:]),), "affine_grid")
    n = len(space)
    if n not in (2, 3) or tuple(theta.shape[1:]) != (n, n + 1) or theta.shape[0] != size[0]:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size "
            f"{list(size)}. Got {list(theta.shape)}."
        )
    lines = []
    for extent in reversed(space):
        line = np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (extent - 1) / extent)
    full = np.meshgrid(*lines[::-1], indexing="ij")[::-1]
    base = np.stack([*full, np.ones(space)], -1).reshape(-1, n + 1).astype(theta.dtype)
    return _AFFINE(theta, base, space=space)


def _affine(theta: Array, base: Array, *, space: tuple[int, ...]) -> Array:
    # theta[b, i, j] base[p, j] -> [b, i, p]
    product = dot.dot_general(theta, base, ((2,), (1,)), ((), ()))
    batch, n, _ = shape_of(product)
    return structural.reshape(structural.transpose(product, (0, 2, 1)), (batch, *space, n))


_AFFINE = Operation("AffineGridGenerator", _affine)


def _unnormalized(x: Array, extent: int, corners: bool) -> Array:
    if corners:
        return (x + 1.0) * ((extent - 1) / 2)
    return (x + 1.0) * (extent / 2) - 0.5


def _reflected(x: Any, low: float, high: float) -> Any:
    """A place mirrored at two bounds until it lies between them."""
    span = high - low
    if span <= 0:
        return x * 0.0
    y = absolute(x - low)
    flips = stop_gradient(ew.floor(y / span))
    rest = y - flips * span
    is_even = flips - 2.0 * ew.floor(flips / 2.0) == 0
    return ew.where(is_even, rest + low, span - rest + low)


def _bounded(x: Array, extent: int, padding: str, corners: bool) -> Array:
    if padding == "zeros":
        return x
    if padding == "reflection":
        x = _reflected(x, 0.0, extent - 1.0) if corners else _reflected(x, -0.5, extent - 0.5)
    return ew.clip(x, 0.0, extent - 1.0)


def _picked(flat: Any, places: Sequence[Any], space: tuple[int, ...]) -> Array:
    """Elements of images at whole places, 0 outside."""
    inside: Any = True
    index: Any = 0
    for place, extent in zip(places, space, strict=True):
        inside = (place >= 0) & (place <= extent - 1) & inside
        index = index * extent + ew.clip(place, 0, extent - 1)
    batch, channels = shape_of(flat)[:2]
    count = math.prod(shape_of(index)[1:])
    index = structural.cast(structural.reshape(index, (batch, 1, count)), np.int64)
    index = structural.broadcast_to(index, (batch, channels, count))
    values = take_along_axis(flat, index, 2)
    return ew.where(structural.reshape(inside, (batch, 1, count)), values, 0.0)


def _sampled(x: Array, grid: Array, *, mode: str, padding: str, corners: bool) -> Array:
    batch, channels, *rest = shape_of(x)
    space = tuple(rest)
    n = len(space)
    flat = structural.reshape(x, (batch, channels, math.prod(space)))
    points = [
        _unnormalized(grid[..., n - 1 - i], extent, corners) for i, extent in enumerate(space)
    ]
    target = shape_of(grid)[1:-1]
    count = math.prod(target)
    if mode == "bicubic":
        out = _bicubic_sampled(flat, points, space, padding, corners)
    else:
        points = [_bounded(p, e, padding, corners) for p, e in zip(points, space, strict=True)]
        if mode == "nearest":
            out = _picked(flat, [stop_gradient(ew.rint(p)) for p in points], space)
        else:
            lows = [stop_gradient(ew.floor(p)) for p in points]
            shares = [p - low for p, low in zip(points, lows, strict=True)]
            out = 0.0
            for corner in itertools.product((0, 1), repeat=n):
                weight: Any = 1.0
                for c, share in zip(corner, shares, strict=True):
                    weight = weight * (share if c else 1.0 - share)
                value = _picked(flat, [a + c for a, c in zip(lows, corner, strict=True)], space)
                out = out + value * structural.reshape(weight, (batch, 1, count))
    return structural.reshape(out, (batch, channels, *target))


def _bicubic_sampled(
    flat: object, points: Sequence[Any], space: tuple[int, ...], padding: str, corners: bool
) -> Any:
    lows = [stop_gradient(ew.floor(p)) for p in points]
    shares = [p - low for p, low in zip(points, lows, strict=True)]
    batch = shape_of(flat)[0]
    count = math.prod(shape_of(points[0])[1:])
    out: Any = 0.0
    for i, j in itertools.product(range(-1, 3), repeat=2):
        places = [
            _bounded(low + k, extent, padding, corners)
            for low, k, extent in zip(lows, (i, j), space, strict=True)
        ]
        if padding == "reflection":
            places = [stop_gradient(ew.rint(place)) for place in places]
        weight = _keys(shares[0], i) * _keys(shares[1], j)
        out = out + _picked(flat, places, space) * structural.reshape(weight, (batch, 1, count))
    return out


def _keys(t: Any, k: int) -> Any:
    """The weight of the element ``k`` places on, ``t`` behind the first one."""
    d = (t - k) if k <= 0 else (k - t)
    return _near(d, -0.75) if k in (0, 1) else _far(d, -0.75)


_SAMPLE = {n: Operation(f"GridSampler{n}D", _sampled) for n in (2, 3)}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images at given places.

    Args:
      input: ``[n, c, h, w]`` or ``[n, c, d, h, w]``.
      grid: ``[n, *, 2]`` or ``[n, *, 3]``: the places, the last axis of the image first, from -1 to
        1.
      mode: ``"bilinear"``, ``"nearest"``, or ``"bicubic"`` for two axes.
      padding_mode: what lies outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
      align_corners: whether -1 and 1 are the centres of the outermost elements, not their edges.

    Raises:
      ValueError: there is no such mode.
      RuntimeError: the extents do not fit.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    n = len(input.shape) - 2
    if n not in (2, 3) or len(grid.shape) != n + 2 or grid.shape[-1] != n:
        raise RuntimeError(
            "grid_sampler(): expected grid to have size "
            f"{n} in last dimension, but got grid with sizes {list(grid.shape)}"
        )
    if grid.shape[0] != input.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if mode == "bicubic" and n == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _SAMPLE[n](input, grid, mode=mode, padding=padding_mode, corners=bool(align_corners))


# channels and windows ----------------------------------------------------------------------------


def _shuffled(
    x: Array, *, shape: tuple[int, ...], order: tuple[int, ...], to: tuple[Any, ...]
) -> Array:
    apart = structural.reshape(x, shape)
    return structural.reshape(structural.transpose(apart, order), to)


_SHUFFLE = Operation("PixelShuffle", _shuffled)
_UNSHUFFLE = Operation("PixelUnshuffle", _shuffled)
_CHANNELS = Operation("NativeChannelShuffle", _shuffled)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels moved into space: ``[*, c r r, h, w]`` to ``[*, c, h r, w r]``.

    Raises:
      RuntimeError: the channels cannot be divided.
    """
    words = "pixel_shuffle expects a positive upscale_factor, but got {}"
    r = integer(upscale_factor, "upscale_factor", "pixel_shuffle", least=1, words=words)
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    k = len(lead)
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return _SHUFFLE(
        input, shape=(*lead, c // (r * r), r, r, h, w), order=order,
        to=(*lead, c // (r * r), h * r, w * r),
    )  # fmt: skip


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Space moved into channels: the inverse of ``pixel_shuffle``.

    Raises:
      RuntimeError: the extents cannot be divided.
    """
    words = "pixel_unshuffle expects a positive downscale_factor, but got {}"
    r = integer(downscale_factor, "downscale_factor", "pixel_unshuffle", least=1, words=words)
    *lead, c, h, w = input.shape
    if h % r or w % r:
        side, extent = ("height", h) if h % r else ("width", w)
        raise RuntimeError(
            f"pixel_unshuffle expects {side} to be divisible by downscale_factor, but "
            f"input.size({-2 if h % r else -1})={extent} is not divisible by {r}"
        )
    k = len(lead)
    order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return _UNSHUFFLE(
        input, shape=(*lead, c, h // r, r, w // r, r), order=order,
        to=(*lead, c * r * r, h // r, w // r),
    )  # fmt: skip


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of ``[n, c, *]`` in turn from each group.

    Raises:
      RuntimeError: the channels cannot be divided.
    """
    groups = integer(groups, "groups", "channel_shuffle")
    n, c, *space = input.shape
    if groups <= 0 or c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    order = (0, 2, 1, *range(3, 3 + len(space)))
    return _CHANNELS(
        input, shape=(n, groups, c // groups, *space), order=order, to=tuple(input.shape)
    )


def _unfolded(
    x: Array, *, window: tuple[int, ...], dilation: tuple[int, ...], padding: tuple[int, ...],
    stride: tuple[int, ...], counts: tuple[int, ...],
) -> Array:  # fmt: skip
    x = padded(x, [(p, p) for p in padding], 0.0)
    stacked = movement.stack(windows_of(x, window, stride, dilation), axis=2)
    n, c = shape_of(x)[:2]
    return structural.reshape(stacked, (n, c * math.prod(window), math.prod(counts)))


def _folded(
    x: Array, *, size: tuple[int, ...], window: tuple[int, ...], dilation: tuple[int, ...],
    padding: tuple[int, ...], stride: tuple[int, ...], counts: tuple[int, ...],
) -> Array:  # fmt: skip
    n, c = shape_of(x)[:2]
    channels = c // math.prod(window)
    apart = structural.reshape(x, (n, channels, math.prod(window), *counts))
    out: Any = None
    for k, place in enumerate(itertools.product(*map(range, window))):
        part = apart[:, :, k]
        config = [(0, 0, 0), (0, 0, 0)]
        for e, p, d, s, m, q in zip(size, place, dilation, stride, counts, padding, strict=True):
            before = p * d - q
            config.append((before, e - before - (s * (m - 1) + 1), s - 1))
        placed = movement.pad(part, 0.0, config)
        out = placed if out is None else out + placed
    return out


def _windows(name: str, *given: object) -> list[tuple[int, ...]]:
    """Windows in images, of two numbers each."""
    arguments = ("kernel_size", "dilation", "padding", "stride")
    return [per_axis(v, 2, argument, name) for argument, v in zip(arguments, given, strict=True)]


_UNFOLD = Operation("Im2Col", _unfolded)
_FOLD = Operation("Col2Im", _folded)


def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """The windows of images as columns: ``[n, c, h, w]`` to ``[n, c kh kw, windows]``.

    Raises:
      RuntimeError: there are no windows.
    """
    check_tensor("unfold", "input", 1, input)
    if len(input.shape) == 3:
        whole: Any = input
        return unfold(whole.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    window, dilation, padding, stride = _windows("unfold", kernel_size, dilation, padding, stride)
    space = [e + 2 * p for e, p in zip(input.shape[2:], padding, strict=True)]
    counts = window_counts(space, window, stride, dilation)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(input.shape[2:])}, kernel_size={window}, "
            f"dilation={dilation}, padding={padding}, stride={stride}, calculated shape of the "
            f"array of sliding blocks as {counts}, but its components must be at least one."
        )
    return _UNFOLD(
        input, window=window, dilation=dilation, padding=padding, stride=stride, counts=counts
    )


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Images that sum up what columns say of their windows: the transpose of ``unfold``.

    Raises:
      RuntimeError: the columns do not fit.
    """
    check_tensor("fold", "input", 1, input)
    if len(input.shape) == 2:
        whole: Any = input
        one = fold(whole.unsqueeze(0), output_size, kernel_size, dilation, padding, stride)
        return one.squeeze(0)
    size = per_axis(output_size, 2, "output_size", "fold")
    window, dilation, padding, stride = _windows("fold", kernel_size, dilation, padding, stride)
    space = [e + 2 * p for e, p in zip(size, padding, strict=True)]
    counts = window_counts(space, window, stride, dilation)
    if input.shape[1] % math.prod(window):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={input.shape[1]} and kernel_size={window}."
        )
    if input.shape[2] != math.prod(counts):
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={window}, dilation={dilation}, "
            f"padding={padding}, stride={stride}, expected size of input's dimension 2 to match "
            f"the calculated number of sliding blocks {counts[0]} * {counts[1]} = "
            f"{math.prod(counts)}, but got input.size(2)={input.shape[2]}."
        )
    return _FOLD(
        input, size=size, window=window, dilation=dilation, padding=padding, stride=stride,
        counts=counts,
    )  # fmt: skip
