"""``scipy.fft`` for plain and traced arrays: Fourier, cosine and sine transforms.

Here: the namespace. Fourier transforms are those of ``functrans.numpy.fft``; cosine and sine
transforms are a real Fourier transform with a twiddle factor before or after it, so that they are
compiled and differentiated as it is. ``overwrite_x`` and ``workers`` are not used on traced arrays.
Not here: the records (``primitives.fft``).

Reference: Makhoul, A fast cosine transform in one and two dimensions, IEEE Trans. ASSP 28 (1980);
Martucci, Symmetric convolution and the discrete sine and cosine transforms, IEEE Trans. Signal
Processing 42 (1994).

Layer: ``scipy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.fft import fftfreq as fftfreq
from numpy.fft import rfftfreq as rfftfreq
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.numpy import fft as dft
from functrans.numpy.common import as_array, listed_axes
from functrans.primitives.complex_parts import complex_of, imag, is_complex, real
from functrans.primitives.structural import cast, normalize_axis
from functrans.scipy.dispatch import floats, implements, plain


def __getattr__(name: str) -> Any:
    """SciPy's functions of integers, imported at first use."""
    if name in ("next_fast_len", "prev_fast_len"):
        return plain(f"fft.{name}")
    raise _missing(__name__, name)


# Fourier ----------------------------------------------------------------------------------------


def _single(x: ArrayLike) -> Any:
    """The operand, half precision in single, as SciPy transforms it."""
    x = as_array(x)
    return cast(x, np.float32) if dtype_of(x) == np.float16 else x


def _one_axis(name: str) -> Callable[..., Any]:
    transform = getattr(dft, name)

    @implements(f"fft.{name}")
    def traced(
        x: ArrayLike,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: None = None,
    ) -> Any:
        return transform(_single(x), n=n, axis=axis, norm=norm)

    return _named(traced, name)


def _more_axes(name: str, default: object) -> Callable[..., Any]:
    transform = getattr(dft, name)
    is_to_real = name.startswith("irfft")

    @implements(f"fft.{name}")
    def traced(
        x: Array,
        s: Sequence[int] | None = None,
        axes: object = default,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: None = None,
    ) -> Any:
        x = _single(x)
        if axes is None and s is not None:
            axes = tuple(range(-len(s), 0))
        axes = listed_axes(axes, len(shape_of(x)), "axes")
        if s is None and is_to_real and axes and shape_of(x)[axes[-1]] == 1:
            s = [-1] * len(axes)  # SciPy makes one number of one, where others would have none
        return transform(x, s=s, axes=axes, norm=norm)

    return _named(traced, name)


def _named(function: Any, name: str) -> Callable[..., Any]:
    """The function with SciPy's name, and a docstring of its own."""
    for one in (function, function.traced):
        one.__name__ = one.__qualname__ = name
        one.__doc__ = f"``scipy.fft.{name}`` for plain and traced arrays."
    return function


fft = _one_axis("fft")
ifft = _one_axis("ifft")
rfft = _one_axis("rfft")
irfft = _one_axis("irfft")
hfft = _one_axis("hfft")
ihfft = _one_axis("ihfft")
fft2 = _more_axes("fft2", (-2, -1))
ifft2 = _more_axes("ifft2", (-2, -1))
rfft2 = _more_axes("rfft2", (-2, -1))
irfft2 = _more_axes("irfft2", (-2, -1))
fftn = _more_axes("fftn", None)
ifftn = _more_axes("ifftn", None)
rfftn = _more_axes("rfftn", None)
irfftn = _more_axes("irfftn", None)


@implements("fft.fftshift")
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency to the middle, as ``scipy.fft.fftshift``."""
    return dft.fftshift(x, axes)


@implements("fft.ifftshift")
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Undo :func:`fftshift`, as ``scipy.fft.ifftshift``."""
    return dft.ifftshift(x, axes)


# cosine and sine transforms of the last axis, not normalized ------------------------------------


def _phases(count: int, step: float, dtype: np.dtype, offset: float = 0.0) -> np.ndarray:
    """``exp(-i pi (k step + offset))`` for ``k < count``."""
    wide: np.ndarray = np.exp(-1j * np.pi * (np.arange(count) * step + offset))
    return wide.astype(np.result_type(dtype, np.complex64))


def _dct1(x: Array) -> Array:
    n = shape_of(x)[-1]
    if n < 2:
        raise ValueError(f"dct: type 1 needs at least 2 points, got {n}{here()}")
    return real(dft.rfft(fnp.concatenate((x, x[..., n - 2 : 0 : -1]), axis=-1)))


def _dct2(x: Array) -> Array:
    """Even elements, then odd ones backwards; ``z[k]`` holds elements ``k`` and ``n - k``."""
    n = shape_of(x)[-1]
    order = fnp.concatenate((x[..., ::2], x[..., 1::2][..., ::-1]), axis=-1)
    z = dft.rfft(order) * (_phases(n // 2 + 1, 1 / (2 * n), dtype_of(x)) * 2)
    upper = -imag(z)[..., 1 : (n + 1) // 2]
    return fnp.concatenate((real(z), upper[..., ::-1]), axis=-1)


def _dct3(x: Array) -> Array:
    """The inverse of :func:`_dct2`, times ``2 n``."""
    n = shape_of(x)[-1]
    half = n // 2 + 1
    zero = np.zeros((*shape_of(x)[:-1], 1), dtype_of(x))
    mirrored = fnp.concatenate((zero, x[..., ::-1]), axis=-1)
    z = complex_of(x[..., :half], -mirrored[..., :half])
    order = dft.irfft(z * (np.conj(_phases(half, 1 / (2 * n), dtype_of(x))) * n), n=n)
    place = np.empty(n, int)
    place[::2] = np.arange((n + 1) // 2)
    place[1::2] = np.arange(n - 1, (n + 1) // 2 - 1, -1)
    return fnp.take(order, place, axis=-1)


def _dct4(x: ArrayLike) -> Array:
    n = shape_of(x)[-1]
    turned = x * _phases(n, 1 / (2 * n), dtype_of(x))
    spectrum = dft.fft(turned, n=2 * n)[..., :n]
    return real(spectrum * (_phases(n, 1 / (2 * n), dtype_of(x), 1 / (4 * n)) * 2))


def _dst1(x: Array) -> Array:
    zero = np.zeros((*shape_of(x)[:-1], 1), dtype_of(x))
    odd = fnp.concatenate((zero, x, zero, -x[..., ::-1]), axis=-1)
    return -imag(dft.rfft(odd))[..., 1:-1]


def _alternating(x: ArrayLike) -> Any:
    """Every other element with the other sign."""
    signs = np.ones(shape_of(x)[-1], dtype_of(x))
    signs[1::2] = -1
    return x * signs


_TRANSFORMS: dict[tuple[str, int], Callable[[Any], Any]] = {
    ("dct", 1): _dct1,
    ("dct", 2): _dct2,
    ("dct", 3): _dct3,
    ("dct", 4): _dct4,
    ("dst", 1): _dst1,
    ("dst", 2): lambda x: _dct2(_alternating(x))[..., ::-1],
    ("dst", 3): lambda x: _alternating(_dct3(x[..., ::-1])),
    ("dst", 4): lambda x: _alternating(_dct4(x[..., ::-1])),
}
_PERIOD = {("dct", 1): -1, ("dst", 1): 1}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
# Which elements are scaled by sqrt(2) to make the matrix orthogonal, before and after.
_BEFORE = {("dct", 1): (0, -1), ("dct", 3): (0,), ("dst", 3): (-1,)}
_AFTER = {("dct", 1): (0, -1), ("dct", 2): (0,), ("dst", 2): (-1,)}


def _scaled(x: ArrayLike, places: tuple[int, ...], factor: float) -> Any:
    if not places:
        return x
    weights = np.ones(shape_of(x)[-1], dtype_of(x))
    weights[list(places)] *= factor
    return x * weights


def _trigonometric(
    kind: str,
    x: Any,
    type_: int,
    n: int | None,
    axis: int,
    norm: str | None,
    orthogonalize: bool | None,
    *,
    inverse: bool,
) -> Array:
    """One of the transforms along an axis, normalized as SciPy does."""
    name = f"i{kind}" if inverse else kind
    if type_ not in _INVERSE:
        raise ValueError(f"{name}: type={type_!r}; expected 1, 2, 3 or 4{here()}")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f"{name}: norm={norm!r}; expected 'backward' (the same as None), 'ortho' or 'forward'"
            f"{here()}"
        )
    (x,) = floats(_single(x))
    if is_complex(x):
        parts = [
            _trigonometric(kind, part, type_, n, axis, norm, orthogonalize, inverse=inverse)
            for part in (real(x), imag(x))
        ]
        return complex_of(*parts)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    x = fnp.moveaxis(x, axis, -1)
    own = shape_of(x)[-1]
    count = own if n is None else operator.index(n)
    if count < 1:
        raise ValueError(f"{name}: cannot transform {count} points along axis {axis}{here()}")
    if count < own:
        x = x[..., :count]
    elif count > own:
        x = fnp.pad(x, [(0, 0)] * (len(shape_of(x)) - 1) + [(0, count - own)])
    key = (kind, _INVERSE[type_] if inverse else type_)
    is_orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    if is_orthogonal:
        x = _scaled(x, _BEFORE.get(key, ()), math.sqrt(2))
    y = _TRANSFORMS[key](x)
    if is_orthogonal:
        y = _scaled(y, _AFTER.get(key, ()), math.sqrt(0.5))
    period = 2 * (count + _PERIOD.get(key, 0))
    if norm == "ortho":
        y = y * math.sqrt(1 / period)
    elif (norm == "forward") != inverse:
        y = y * (1 / period)
    return fnp.moveaxis(y, -1, axis)


def _one(kind: str, *, inverse: bool) -> Callable[..., Any]:
    name = f"i{kind}" if inverse else kind

    @implements(f"fft.{name}")
    def traced(
        x: ArrayLike,
        type: int = 2,  # SciPy's name
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        return _trigonometric(kind, x, type, n, axis, norm, orthogonalize, inverse=inverse)

    return _named(traced, name)


def _many(kind: str, *, inverse: bool) -> Callable[..., Any]:
    name = f"i{kind}n" if inverse else f"{kind}n"

    @implements(f"fft.{name}")
    def traced(
        x: ArrayLike,
        type: int = 2,  # SciPy's name
        s: Sequence[int] | None = None,
        axes: int | Sequence[int] | None = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        x = as_array(x)
        if axes is None and s is not None:
            axes = tuple(range(-len(s), 0))
        axes = listed_axes(axes, len(shape_of(x)), "axes")
        extents = [None] * len(axes) if s is None else list(s)
        if len(extents) != len(axes):
            raise ValueError(
                f"{name}: s has {len(extents)} entries and axes {len(axes)}{here()}; one per axis"
            )
        for n, axis in zip(extents, axes, strict=True):
            x = _trigonometric(kind, x, type, n, axis, norm, orthogonalize, inverse=inverse)
        return x

    return _named(traced, name)


dct = _one("dct", inverse=False)
idct = _one("dct", inverse=True)
dst = _one("dst", inverse=False)
idst = _one("dst", inverse=True)
dctn = _many("dct", inverse=False)
idctn = _many("dct", inverse=True)
dstn = _many("dst", inverse=False)
idstn = _many("dst", inverse=True)


__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "idct",
    "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "next_fast_len", "prev_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn",  # noqa: F822  # SciPy's own, by __getattr__
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
