"""NumPy's ``fft`` module for traced arrays.

Here: the transforms of ``numpy.fft`` with its signatures: padding and cropping (``n``, ``s``),
``norm``, Hermitian variants and shifts. Not here: the transforms of whole axes and their
derivatives (``primitives.fft``). Plain arrays go to NumPy itself.

Each function is one padding where an extent is asked for, one transform over all its axes, and one
multiplication where ``norm`` asks for it.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.boundary import warn
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.namespaces import listing as _listing
from functrans.numpy.array_api_fft import fftfreq as fftfreq
from functrans.numpy.array_api_fft import rfftfreq as rfftfreq
from functrans.numpy.common import as_array, fresh, stored
from functrans.numpy.dispatch import implements
from functrans.primitives import fft as dft
from functrans.primitives.complex_parts import complex_dtype, conjugate, real_dtype
from functrans.primitives.movement import pad, roll
from functrans.primitives.structural import cast, normalize_axis

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _scaled(y: Array, extents: Iterable[int], norm: str | None, *, inverse: bool) -> Array:
    """An unnormalized transform of axes of some extents, normalized."""
    if norm not in _SWAPPED:
        raise ValueError(
            f"fft: norm={norm!r}; expected 'backward' (the same as None), 'ortho' or 'forward'"
        )
    if inverse:
        norm = _SWAPPED[norm]
    if norm in (None, "backward"):
        return y
    size = math.prod(extents)
    return y * (1 / math.sqrt(size) if norm == "ortho" else 1 / size)


def _resized(a: ArrayLike, extents: Sequence[int], axes: Sequence[int]) -> Any:
    """The array cropped or padded with zeros at the end of axes."""
    shape = shape_of(a)
    config = [(0, 0, 0)] * len(shape)
    for n, axis in zip(extents, axes, strict=True):
        if n < 1:
            raise ValueError(f"fft: cannot transform {n} points along axis {axis}; at least 1")
        config[axis] = (0, n - shape[axis], 0)
    return pad(a, 0, config) if any(high for _, high, _ in config) else a


def _extents(
    a: ArrayLike, s: Any, axes: Any, *, half: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents to transform and non-negative axes, from NumPy's ``s`` and ``axes``.

    Args:
      a: array.
      s: extents, ``None`` for those of the array; -1 stands for the array's own.
      axes: ``None`` for all axes, or the last ``len(s)``.
      half: whether ``a`` is half a spectrum along its last transformed axis.

    Raises:
      ValueError: ``s`` and ``axes`` are not of one length.
      AxisError: an axis does not exist.
    """
    shape = shape_of(a)
    if s is not None and axes is None:
        warn(
            "numpy.fft: `s` without `axes` is deprecated since NumPy 2.0; pass axes=tuple(range("
            "len(s))) or the axes that `s` is meant for",
            DeprecationWarning,
        )
    if axes is None:
        axes = range(-(len(shape) if s is None else len(s)), 0)
    axes = tuple(normalize_axis(axis, len(shape), "axes") for axis in axes)
    asked = [None] * len(axes) if s is None else list(s)
    if len(asked) != len(axes):
        raise ValueError(f"fft: s has {len(asked)} entries and axes {len(axes)}; one per axis")
    default = [shape[axis] for axis in axes]
    if half and default:
        default[-1] = 2 * (default[-1] - 1)
    chosen = [
        own if n is None else shape[axis] if n == -1 else operator.index(n)
        for n, own, axis in zip(asked, default, axes, strict=True)
    ]
    return tuple(chosen), axes


def _complex(
    a: ArrayLike,
    extents: tuple[int, ...],
    axes: tuple[int, ...],
    norm: str | None,
    *,
    inverse: bool,
) -> Any:
    """Complex transform, the last axis first; axes may come more than once."""
    if not axes:
        return a
    if len(set(axes)) < len(axes):
        a = _complex(a, extents[1:], axes[1:], norm, inverse=inverse)
        return _complex(a, extents[:1], axes[:1], norm, inverse=inverse)
    y = dft.fft_c2c(_resized(a, extents, axes), axes, inverse=inverse)
    return _scaled(y, extents, norm, inverse=inverse)


def _from_real(
    a: ArrayLike, extents: tuple[int, ...], axes: tuple[int, ...], norm: str | None
) -> Array:
    """Half of the spectrum along the last axis; axes may come more than once."""
    if len(set(axes)) < len(axes):
        a = _from_real(a, extents[-1:], axes[-1:], norm)
        return _complex(a, extents[:-1], axes[:-1], norm, inverse=False)
    y = dft.rfft(_resized(a, extents, axes), axes)
    return _scaled(y, extents, norm, inverse=False)


def _to_real(
    a: ArrayLike, extents: tuple[int, ...], axes: tuple[int, ...], norm: str | None
) -> Array:
    """A real array from half of its spectrum; axes may come more than once."""
    if len(set(axes)) < len(axes):
        a = _complex(a, extents[-2::-1], axes[-2::-1], norm, inverse=True)
        return _to_real(a, extents[-1:], axes[-1:], norm)
    dtype = dtype_of(a)
    n = extents[-1]
    if n < 1:
        raise ValueError(f"fft: cannot transform {n} points along axis {axes[-1]}; at least 1")
    a = _resized(a, (*extents[:-1], n // 2 + 1), axes)
    a = cast(a, complex_dtype(dtype if dtype.kind not in "iub" else np.dtype(np.float64)))
    y = _scaled(dft.irfft(a, axes, n), extents, norm, inverse=True)
    # Of several axes NumPy transforms all but the last one first, which widens half precision.
    return y if len(axes) > 1 else cast(y, np.result_type(real_dtype(dtype), 1.0))


# one axis ---------------------------------------------------------------------------------------


def _one_axis(
    a: ArrayLike, n: int | None, axis: int, *, half: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extent and axis of a one-dimensional transform."""
    (axis,) = axes = (normalize_axis(axis, len(shape_of(a)), "axis"),)
    own = shape_of(a)[axis]
    return (operator.index(n) if n is not None else 2 * (own - 1) if half else own,), axes


@implements(np.fft.fft)
def fft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform along an axis, as ``numpy.fft.fft``."""
    a = as_array(a)
    return stored("fft.fft", _complex(a, *_one_axis(a, n, axis), norm, inverse=False), out)


@implements(np.fft.ifft)
def ifft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Inverse Fourier transform along an axis, as ``numpy.fft.ifft``."""
    a = as_array(a)
    return stored("fft.ifft", _complex(a, *_one_axis(a, n, axis), norm, inverse=True), out)


@implements(np.fft.rfft)
def rfft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform of a real array along an axis, as ``numpy.fft.rfft``."""
    a = as_array(a)
    return stored("fft.rfft", _from_real(a, *_one_axis(a, n, axis), norm), out)


@implements(np.fft.irfft)
def irfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Array | None = None
) -> Array:
    """Inverse of ``rfft`` along an axis, as ``numpy.fft.irfft``."""
    a = as_array(a)
    return stored("fft.irfft", _to_real(a, *_one_axis(a, n, axis, half=True), norm), out)


@implements(np.fft.hfft)
def hfft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform of a Hermitian array along an axis, as ``numpy.fft.hfft``."""
    a = conjugate(as_array(a))
    y = _to_real(a, *_one_axis(a, n, axis, half=True), _SWAPPED.get(norm, norm))
    return stored("fft.hfft", y, out)


@implements(np.fft.ihfft)
def ihfft(
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Inverse of ``hfft`` along an axis, as ``numpy.fft.ihfft``."""
    a = as_array(a)
    y = conjugate(_from_real(a, *_one_axis(a, n, axis), _SWAPPED.get(norm, norm)))
    return stored("fft.ihfft", y, out)


# several axes -----------------------------------------------------------------------------------


@implements(np.fft.fftn)
def fftn(
    a: ArrayLike,
    s: Any = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform along axes, as ``numpy.fft.fftn``."""
    a = as_array(a)
    return stored("fft.fftn", _complex(a, *_extents(a, s, axes), norm, inverse=False), out)


@implements(np.fft.ifftn)
def ifftn(
    a: ArrayLike,
    s: ArrayLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Inverse Fourier transform along axes, as ``numpy.fft.ifftn``."""
    a = as_array(a)
    return stored("fft.ifftn", _complex(a, *_extents(a, s, axes), norm, inverse=True), out)


@implements(np.fft.rfftn)
def rfftn(
    a: ArrayLike,
    s: ArrayLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform of a real array along axes, as ``numpy.fft.rfftn``."""
    a = as_array(a)
    return stored("fft.rfftn", _from_real(a, *_extents(a, s, axes), norm), out)


@implements(np.fft.irfftn)
def irfftn(
    a: ArrayLike,
    s: Any = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Inverse of ``rfftn`` along axes, as ``numpy.fft.irfftn``."""
    a = as_array(a)
    return stored("fft.irfftn", _to_real(a, *_extents(a, s, axes, half=True), norm), out)


@implements(np.fft.fft2)
def fft2(
    a: ArrayLike,
    s: Any = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform along two axes, as ``numpy.fft.fft2``."""
    a = as_array(a)
    return stored("fft.fft2", _complex(a, *_extents(a, s, axes), norm, inverse=False), out)


@implements(np.fft.ifft2)
def ifft2(
    a: ArrayLike,
    s: Any = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Inverse Fourier transform along two axes, as ``numpy.fft.ifft2``."""
    a = as_array(a)
    return stored("fft.ifft2", _complex(a, *_extents(a, s, axes), norm, inverse=True), out)


@implements(np.fft.rfft2)
def rfft2(
    a: ArrayLike,
    s: Any = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Fourier transform of a real array along two axes, as ``numpy.fft.rfft2``."""
    a = as_array(a)
    return stored("fft.rfft2", _from_real(a, *_extents(a, s, axes), norm), out)


@implements(np.fft.irfft2)
def irfft2(
    a: ArrayLike,
    s: Any = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """Inverse of ``rfft2`` along two axes, as ``numpy.fft.irfft2``."""
    a = as_array(a)
    return stored("fft.irfft2", _to_real(a, *_extents(a, s, axes, half=True), norm), out)


# shifts -----------------------------------------------------------------------------------------


def _shifted(x: ArrayLike, axes: int | Sequence[int] | None, sign: int) -> Array:
    """Roll each axis by half of its extent."""
    x = as_array(x)
    shape = shape_of(x)
    if axes is None:
        axes = range(len(shape))
    elif not isinstance(axes, Iterable):
        axes = (axes,)
    if not shape:
        raise ValueError("fftshift: an array without axes has no frequencies to move")
    normal = [normalize_axis(axis, len(shape), "axes") for axis in axes]
    rolled = roll(x, [sign * (shape[axis] // 2) for axis in normal], normal)
    return fresh(x) if rolled is x else rolled


@implements(np.fft.fftshift)
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency to the middle of axes, as ``numpy.fft.fftshift``."""
    return _shifted(x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Undo ``fftshift``, as ``numpy.fft.ifftshift``."""
    return _shifted(x, axes, -1)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = _listing(__all__)
