"""Spectra of ``scipy.signal``: periodograms, short-time transforms, analytic signals, resampling.

Windows and times are constants; the signal is differentiated. Not here: the transforms
(``functrans.numpy.fft``) and the windows, which are SciPy's (``signal``).

Reference: Welch, The use of fast Fourier transform for the estimation of power spectra, IEEE Trans.
Audio Electroacoustics 15 (1967).

Layer: ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy import fft as dft
from functrans.primitives.complex_parts import is_complex, real_dtype
from functrans.primitives.structural import cast, normalize_axis
from functrans.records import dataclass
from functrans.scipy.dispatch import common_floating, floats, implements, plain
from functrans.scipy.signal_filters import detrended


@dataclass(frozen=True, slots=True)
class _Segments:
    """How a signal is cut and transformed.

    Attributes:
      window: ``[length]``.
      overlap: samples that neighbours share.
      points: points of the transform.
      is_onesided: whether only frequencies that are not negative are kept.
    """

    window: np.ndarray
    overlap: int
    points: int
    is_onesided: bool


def _window(window: object, length: int) -> Array:
    """A window by name; those for spectra are periodic, however SciPy's version names that."""
    name, *values = window if isinstance(window, tuple) else (window,)
    name = name.removesuffix("_periodic")
    return plain("signal.get_window")((name, *values) if values else name, length)


def _plan(
    name: str, n: int, window: object, nperseg: int | None, noverlap: int | None, nfft: int | None
) -> tuple[np.ndarray, int, int]:
    """Window, overlap and points."""
    if isinstance(window, (str, tuple)):
        length = min(256 if nperseg is None else int(nperseg), n)
        values = _window(window, length)
    else:
        values = np.asarray(window)
        length = len(values)
        if values.ndim != 1 or length > n or (nperseg is not None and nperseg != length):
            raise ValueError(
                f"{name}: a window of shape {values.shape} does not fit a signal of {n} samples "
                f"and nperseg={nperseg}{here()}"
            )
    points = length if nfft is None else int(nfft)
    overlap = length // 2 if noverlap is None else int(noverlap)
    if length < 1 or points < length or not 0 <= overlap < length:
        raise ValueError(
            f"{name}: nperseg={length}, noverlap={overlap} and nfft={points} do not fit{here()}; "
            "expected noverlap < nperseg <= nfft"
        )
    return values, overlap, points


def _transformed(x: ArrayLike, plan: _Segments, detrend: Any) -> Array:
    """Fourier transforms of windowed segments: ``[..., segments, frequencies]``."""
    length = len(plan.window)
    step = length - plan.overlap
    count = (shape_of(x)[-1] - plan.overlap) // step
    place = np.arange(count)[:, None] * step + np.arange(length)
    parts = fnp.take(x, place, axis=-1)
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = detrended(parts, detrend)
    parts = parts * plan.window.astype(real_dtype(dtype_of(x)))
    return (dft.rfft if plan.is_onesided else dft.fft)(parts, n=plan.points)


def _frequencies(plan: _Segments, fs: float) -> np.ndarray:
    make = np.fft.rfftfreq if plan.is_onesided else np.fft.fftfreq
    return make(plan.points, 1 / fs)


def _cross(
    name: str,
    x: ArrayLike,
    y: ArrayLike,
    fs: float,
    window: object,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: object,
    return_onesided: bool,
    scaling: str,
    axis: int,
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Frequencies, times and products of transforms ``[..., frequencies, segments]``."""
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: scaling={scaling!r}; expected 'density' or 'spectrum'{here()}")
    is_same = y is x
    (x,) = floats(x)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    x = fnp.moveaxis(x, axis, -1)
    if is_same:
        y = x
    else:
        (y,) = floats(y)
        y = fnp.moveaxis(y, axis, -1)
        n = max(shape_of(x)[-1], shape_of(y)[-1])
        x, y = (
            fnp.pad(v, [(0, 0)] * (len(shape_of(v)) - 1) + [(0, n - shape_of(v)[-1])])
            for v in (x, y)
        )
        lead = np.broadcast_shapes(shape_of(x)[:-1], shape_of(y)[:-1])
        x, y = (fnp.broadcast_to(v, (*lead, n)) for v in (x, y))
    values, overlap, points = _plan(name, shape_of(x)[-1], window, nperseg, noverlap, nfft)
    onesided = bool(return_onesided) and not is_complex(x) and not is_complex(y)
    plan = _Segments(values, overlap, points, onesided)
    first = _transformed(x, plan, detrend)
    second = first if is_same else _transformed(y, plan, detrend)
    product = fnp.conj(first) * second
    if is_same:
        product = fnp.real(product)
    square = float(np.sum(values**2)) * fs if scaling == "density" else float(np.sum(values)) ** 2
    weights = np.full(shape_of(product)[-1], 1 / square)
    if onesided:
        weights[1 : None if points % 2 else -1] *= 2
    product = product * weights.astype(real_dtype(dtype_of(product)))
    step = len(values) - overlap
    times = (np.arange(shape_of(product)[-2]) * step + len(values) / 2) / fs
    return _frequencies(plan, fs), times, fnp.swapaxes(product, -1, -2)


def _median_bias(count: int) -> float:
    """The median of a chi-square distributed estimate over its mean (Allen et al., 2012)."""
    even = 2 * np.arange(1.0, (count - 1) // 2 + 1)
    return float(1 + np.sum(1 / (even + 1) - 1 / even))


@implements("signal.csd")
def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: float = 1.0,
    window: object = "hann_periodic",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: object = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Cross power spectral density by Welch's method, as ``scipy.signal.csd``.

    Args:
      x: signal.
      y: signal.
      fs: samples per unit of time.
      window: name, tuple or values.
      nperseg: samples in a segment.
      noverlap: samples that neighbours share.
      nfft: points of the transform.
      detrend: ``"constant"``, ``"linear"``, ``False`` or a function.
      return_onesided: whether to leave out negative frequencies of real signals.
      scaling: ``"density"`` or ``"spectrum"``.
      axis: the axis of time.
      average: ``"mean"`` or ``"median"``.

    Returns:
      Frequencies and spectrum.

    Raises:
      ValueError: options that do not fit.
    """
    frequencies, _, product = _cross(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )
    count = shape_of(product)[-1]
    if average == "mean":
        out = fnp.mean(product, axis=-1)
    elif average == "median":
        if is_complex(product):
            middle = fnp.median(fnp.real(product), axis=-1) + 1j * fnp.median(
                fnp.imag(product), axis=-1
            )
        else:
            middle = fnp.median(product, axis=-1)
        out = middle / _median_bias(count)
    else:
        raise ValueError(f"csd: average={average!r}; expected 'mean' or 'median'{here()}")
    return frequencies, fnp.moveaxis(out, -1, normalize_axis(axis, len(shape_of(out)), "axis"))


_BOUNDARIES = {
    "zeros": lambda x, m: fnp.pad(x, m),
    "constant": lambda x, m: fnp.pad(x, m, mode="edge"),
    "even": lambda x, m: fnp.pad(x, m, mode="reflect"),
    "odd": lambda x, m: fnp.pad(x, m, mode="reflect", reflect_type="odd"),
}


@implements("signal.istft")
def istft(
    Zxx: object,  # SciPy's name
    fs: float = 1.0,
    window: object = "hann_periodic",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Any, Any]:
    """The signal of a short-time Fourier transform, as ``scipy.signal.istft``.

    Returns:
      Times and signal.
    """
    (z,) = floats(Zxx)
    if len(shape_of(z)) < 2:
        raise ShapeError(f"istft: transforms of shape {shape_of(z)}; expected two axes{here()}")
    z = fnp.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    bins = shape_of(z)[-1]
    default = 2 * (bins - 1) if input_onesided else bins
    length = default if nperseg is None else int(nperseg)
    if nfft is None:
        points = length if input_onesided and length == default + 1 else default
    else:
        points = int(nfft)
    values = _window(window, length) if isinstance(window, (str, tuple)) else np.asarray(window)
    overlap = length // 2 if noverlap is None else int(noverlap)
    if points < length or not 0 <= overlap < length or values.shape != (length,):
        raise ValueError(
            f"istft: nperseg={length}, noverlap={overlap}, nfft={points} and a window of shape "
            f"{values.shape} do not fit{here()}"
        )
    step = length - overlap
    parts = (dft.irfft if input_onesided else dft.ifft)(z, n=points)[..., :length]
    if scaling == "spectrum":
        size = float(np.sum(values))
    elif scaling == "psd":
        size = float(np.sqrt(fs * np.sum(values**2)))
    else:
        raise ValueError(f"istft: scaling={scaling!r}; expected 'spectrum' or 'psd'{here()}")
    weights = values.astype(real_dtype(dtype_of(parts)))
    total = _overlapped(parts * (weights * size), step)
    count = shape_of(z)[-2]
    norm = np.asarray(_overlapped(np.broadcast_to(values**2, (count, length)), step))
    if boundary:
        cut = slice(length // 2, shape_of(total)[-1] - length // 2)
        total, norm = total[..., cut], norm[cut]
    norm = np.where(norm > 1e-10, norm, 1.0).astype(weights.dtype)
    out = total / norm
    times = np.arange(shape_of(out)[-1]) / fs
    if len(shape_of(out)) > 1 and time_axis % len(shape_of(z)) != len(shape_of(z)) - 1:
        place = time_axis % len(shape_of(z))
        place -= int(freq_axis % len(shape_of(z)) < place)
        out = fnp.moveaxis(out, -1, place)
    return times, out


def _overlapped(parts: object, step: int) -> Array:
    """The sum of segments ``[..., count, length]`` that begin ``step`` after one another."""
    *lead, count, length = shape_of(parts)
    pieces = -(-length // step)
    rest = [(0, 0)] * len(lead)
    wide = fnp.pad(parts, [*rest, (0, 0), (0, pieces * step - length)])
    total: Any = None
    for k in range(pieces):
        piece = wide[..., k * step : (k + 1) * step]
        moved = fnp.pad(piece, [*rest, (k, pieces - 1 - k), (0, 0)])
        total = moved if total is None else total + moved
    flat = fnp.reshape(total, (*lead, (count + pieces - 1) * step))
    return flat[..., : (count - 1) * step + length]


# analytic signals, resampling, frequency responses ----------------------------------------------


@implements("signal.freqz")
def freqz(
    b: ArrayLike,
    a: ArrayLike = 1,
    worN: Any = 512,  # SciPy's name
    whole: bool = False,
    plot: Callable[..., Any] | None = None,
    fs: float = 2 * np.pi,
    include_nyquist: bool = False,
) -> tuple[Any, Any]:
    """Frequency response of a rational filter, as ``scipy.signal.freqz``.

    Args:
      b: numerator.
      a: denominator.
      worN: number of frequencies, or the frequencies.
      whole: whether they go up to ``fs`` and not half of it.
      plot: called with the result.
      fs: samples per unit of time.
      include_nyquist: whether the last one is half of ``fs``.

    Returns:
      Frequencies and complex response.
    """
    b, a = (fnp.atleast_1d(v) for v in floats(b, a))
    if worN is None or isinstance(worN, (int, np.integer)):
        count = 512 if worN is None else int(worN)
        end = 2 * np.pi if whole else np.pi
        w = np.linspace(0, end, count, endpoint=bool(include_nyquist) and not whole)
    else:
        w = np.atleast_1d(worN) * (2 * np.pi / fs)
    dtype = np.result_type(common_floating(b, a), np.complex64)

    def response(c: object) -> Array:
        phases = np.exp(-1j * np.outer(w, np.arange(shape_of(c)[0]))).astype(dtype)
        return phases @ cast(c, dtype)

    h = response(b) / response(a)
    w = w * (fs / (2 * np.pi))
    if plot is not None:
        plot(w, h)
    return w, h
