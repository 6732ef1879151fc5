"""Convolutions of ``scipy.signal``: direct, by Fourier transforms, with changes of rate.

Not here: recursive filters (``signal_filters``) and spectra (``signal_spectra``).

Layer: ``scipy``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.primitives.convolution import conv
from functrans.primitives.movement import reverse
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, normalize_axis
from functrans.scipy.dispatch import common_floating, floats, implements, plain, whole
from functrans.scipy.ndimage_filters import slide

_MODES = ("full", "same", "valid")


def _operands(name: str, a: Any, b: Any, mode: str) -> tuple[Any, Any]:
    """Both operands in one dtype, with equally many axes."""
    if mode not in _MODES:
        raise ValueError(f"{name}: mode={mode!r}; expected 'full', 'same' or 'valid'{here()}")
    a, b = floats(a, b)
    if len(shape_of(a)) != len(shape_of(b)):
        raise ShapeError(
            f"{name}: operands of shapes {shape_of(a)} and {shape_of(b)} must have equally many "
            f"axes{here()}"
        )
    dtype = common_floating(a, b)
    return cast(a, dtype), cast(b, dtype)


def _must_swap(name: str, a: ArrayLike, b: ArrayLike, mode: str, axes: Sequence[int]) -> bool:
    """Whether the second operand is the larger one, of which ``valid`` results are taken."""
    if mode != "valid":
        return False
    pairs = [(shape_of(a)[axis], shape_of(b)[axis]) for axis in axes]
    if all(n >= k for n, k in pairs):
        return False
    if all(n <= k for n, k in pairs):
        return True
    raise ShapeError(
        f"{name}: for mode 'valid' one operand must be at least as large as the other along every "
        f"axis, got shapes {shape_of(a)} and {shape_of(b)}{here()}"
    )


def _everything(x: ArrayLike) -> tuple[int, ...]:
    return tuple(range(len(shape_of(x))))


def _direct(a: Any, b: Any, mode: str) -> Array:
    """Convolution by sums."""
    if not shape_of(a):
        return a * b
    margins = []
    for k in shape_of(b):
        low = {"full": k - 1, "same": k // 2, "valid": 0}[mode]
        high = {"full": k - 1, "same": k - 1 - k // 2, "valid": 0}[mode]
        margins.append((low, high))
    lhs = fnp.reshape(a, (1, 1, *shape_of(a)))
    kernel = reverse(b, _everything(b))
    out = conv(lhs, fnp.reshape(kernel, (1, 1, *shape_of(b))), padding=tuple(margins))
    return fnp.reshape(out, shape_of(out)[2:])


def _by_fourier(a: ArrayLike, b: ArrayLike, mode: str, axes: Sequence[int]) -> Array:
    """Convolution along axes by products of transforms; other axes broadcast."""
    fast = plain("fft.next_fast_len")
    is_real = dtype_of(a).kind != "c"
    full = [shape_of(a)[axis] + shape_of(b)[axis] - 1 for axis in axes]
    extents = [fast(n, is_real) for n in full]
    forward, backward = (
        (fnp.fft.rfftn, fnp.fft.irfftn) if is_real else (fnp.fft.fftn, fnp.fft.ifftn)
    )
    chosen = tuple(axes)
    product = forward(a, s=extents, axes=chosen) * forward(b, s=extents, axes=chosen)
    out = backward(product, s=extents, axes=chosen)
    entries = [slice(None)] * len(shape_of(out))
    for axis, n in zip(axes, full, strict=True):
        own, other = shape_of(a)[axis], shape_of(b)[axis]
        count = {"full": n, "same": own, "valid": own - other + 1}[mode]
        start = {"full": 0, "same": (n - own) // 2, "valid": other - 1}[mode]
        entries[axis] = slice(start, start + count)
    return slice_index(out, BasicIndex(tuple(entries)))


def _is_large(a: ArrayLike, b: ArrayLike) -> bool:
    """Whether transforms are quicker than sums, by counts of operations."""
    direct = math.prod(shape_of(a)) * math.prod(shape_of(b))
    total = math.prod(n + k - 1 for n, k in zip(shape_of(a), shape_of(b), strict=True))
    return direct > 60 * total * math.log2(total + 1)


@implements("signal.convolve")
def convolve(in1: object, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Convolution of arrays of any number of axes, as ``scipy.signal.convolve``.

    Args:
      in1: array.
      in2: array of as many axes.
      mode: ``"full"``, ``"same"`` (the middle, shaped as ``in1``) or ``"valid"``.
      method: ``"direct"``, ``"fft"`` or ``"auto"``, which chooses by the number of operations.

    Raises:
      ShapeError: shapes do not fit.
      ValueError: mode or method are unknown.

    Example:
      >>> import functrans as ft
      >>> ft.jit(convolve)(np.array([1.0, 2.0]), np.array([1.0, 0.5]))
      array([1. , 2.5, 1. ])
    """
    return whole(_convolved(*_operands("convolve", in1, in2, mode), mode, method), in1, in2)


def _convolved(a: ArrayLike, b: ArrayLike, mode: str, method: str) -> Any:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"convolve: method={method!r}; expected 'auto', 'direct' or 'fft'{here()}")
    if _must_swap("convolve", a, b, mode, _everything(a)):
        a, b = b, a
    if not math.prod(shape_of(a)) or not math.prod(shape_of(b)):
        return np.zeros((0,), dtype_of(a))
    if shape_of(a) and (method == "fft" or (method == "auto" and _is_large(a, b))):
        return _by_fourier(a, b, mode, _everything(a))
    return _direct(a, b, mode)


def _two_axes(
    name: str, in1: object, in2: object, mode: str, boundary: str, fillvalue: object, flip: bool
) -> Array:
    a, b = _operands(name, in1, in2, mode)
    if len(shape_of(a)) != 2:
        raise ShapeError(f"{name}: expected two axes, got shape {shape_of(a)}{here()}")
    how = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap"}.get(
        boundary, {"symm": "symmetric", "symmetric": "symmetric"}.get(boundary)
    )
    if how is None:
        raise ValueError(
            f"{name}: boundary={boundary!r}; expected 'fill', 'wrap' or 'symm'{here()}"
        )
    is_swapped = _must_swap(name, a, b, mode, (0, 1))
    if is_swapped:
        a, b = b, a
    if mode != "valid":
        margins = []
        for k in shape_of(b):
            low = k - 1 if mode == "full" else (k // 2 if flip else (k - 1) // 2)
            margins.append((low, (2 * k - 2 if mode == "full" else k - 1) - low))
        options = {"constant_values": cast(fillvalue, dtype_of(a))} if how == "constant" else {}
        a = fnp.pad(a, margins, mode=how, **options)
    out = _direct(a, b if flip else fnp.conj(reverse(b, (0, 1))), "valid")
    return whole(fnp.conj(reverse(out, (0, 1))) if is_swapped and not flip else out, in1, in2)


@implements("signal.convolve2d")
def convolve2d(
    in1: object, in2: object, mode: str = "full", boundary: str = "fill", fillvalue: object = 0
) -> Array:
    """Convolution of two images, as ``scipy.signal.convolve2d``.

    Args:
      in1: image.
      in2: image.
      mode: see :func:`convolve`.
      boundary: what lies beyond the border of ``in1``: ``"fill"``, ``"wrap"`` or ``"symm"``.
      fillvalue: value there with ``"fill"``.
    """
    return _two_axes("convolve2d", in1, in2, mode, boundary, fillvalue, True)


@implements("signal.correlate2d")
def correlate2d(
    in1: object, in2: object, mode: str = "full", boundary: str = "fill", fillvalue: object = 0
) -> Array:
    """Correlation of two images, as ``scipy.signal.correlate2d``; options as :func:`convolve2d`."""
    return _two_axes("correlate2d", in1, in2, mode, boundary, fillvalue, False)


# changes of rate --------------------------------------------------------------------------------


def _rows(x: ArrayLike, axis: int) -> tuple[Any, Any]:
    """``[rows, 1, n]`` of the vectors along an axis, and the way back."""
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    moved = fnp.moveaxis(x, axis, -1)
    lead = shape_of(moved)[:-1]

    def back(y: ArrayLike) -> Array:
        return fnp.moveaxis(fnp.reshape(y, (*lead, shape_of(y)[-1])), -1, axis)

    return fnp.reshape(moved, (math.prod(lead), 1, shape_of(moved)[-1])), back


def fir(h: Any, x: ArrayLike, margins: tuple[int, int], up: int = 1, down: int = 1) -> Array:
    """Convolve rows ``[rows, 1, n]``, with zeros between elements and results left out."""
    kernel = fnp.reshape(h[::-1], (1, 1, shape_of(h)[0]))
    return conv(x, kernel, strides=down, padding=(margins,), lhs_dilation=up)


@implements("signal.upfirdn")
def upfirdn(
    h: object,
    x: ArrayLike,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: object = 0,
) -> Array:
    """Insert zeros, filter, and keep every ``down``-th element, as ``scipy.signal.upfirdn``.

    Raises:
      UnsupportedOperationError: a mode other than zeros beyond the border.
    """
    if mode != "constant" or cval != 0:
        raise UnsupportedOperationError(
            f"scipy.signal.upfirdn with mode={mode!r} and cval={cval!r} cannot be traced{here()}; "
            "extend the signal with np.pad first"
        )
    h, x = floats(h, x)
    dtype = common_floating(h, x)
    rows, back = _rows(cast(x, dtype), axis)
    k = shape_of(h)[0]
    return back(fir(cast(h, dtype), rows, (k - 1, k - 1), int(up), int(down)))


@implements("signal.savgol_filter")
def savgol_filter(
    x: ArrayLike,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Array:
    """Fit polynomials to windows, as ``scipy.signal.savgol_filter``.

    Args:
      x: signal.
      window_length: samples in a window.
      polyorder: degree of the polynomials, less than that.
      deriv: which derivative of them.
      delta: distance of samples.
      axis: the axis.
      mode: ``"interp"`` evaluates the polynomials of the first and last window near the border;
        ``"mirror"``, ``"constant"``, ``"nearest"`` and ``"wrap"`` extend the signal.
      cval: value beyond the border with ``"constant"``.

    Reference: Savitzky & Golay, Analytical Chemistry 36 (1964).
    """
    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise ValueError(
            f"savgol_filter: mode={mode!r}; expected 'mirror', 'constant', 'nearest', 'wrap' or "
            f"'interp'{here()}"
        )
    (x,) = floats(x)
    dtype = dtype_of(x)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    weights = plain("signal.savgol_coeffs")(window_length, polyorder, deriv=deriv, delta=delta)
    weights = np.asarray(weights)[::-1]
    low = len(weights) // 2 - (len(weights) % 2 == 0)
    if mode != "interp":
        return slide(x, weights, axis, low, mode, cval)
    n = shape_of(x)[axis]
    if window_length > n:
        raise ValueError(
            f"savgol_filter: mode 'interp' needs at least {window_length} samples, got {n}{here()}"
        )
    inner = fnp.moveaxis(slide(x, weights, axis, low, "constant", 0.0), axis, -1)
    moved = fnp.moveaxis(x, axis, -1)
    half = window_length // 2
    edges = []
    for start, places in (
        (0, np.arange(half)),
        (n - window_length, np.arange(half) + window_length - half),
    ):
        fit = np.linalg.pinv(np.vander(np.arange(window_length), polyorder + 1, increasing=True))
        table = np.zeros((half, polyorder + 1))
        for power in range(deriv, polyorder + 1):
            factor = math.perm(power, deriv)
            table[:, power] = factor * places.astype(float) ** (power - deriv)
        matrix = (table @ fit / delta**deriv).astype(dtype)
        edges.append(moved[..., start : start + window_length] @ matrix.T)
    out = fnp.concatenate((edges[0], inner[..., half : n - half], edges[1]), axis=-1)
    return fnp.moveaxis(out, -1, axis)
