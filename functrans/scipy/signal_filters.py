"""Filters of ``scipy.signal``: recursive ones, forwards and backwards, medians, trends.

A rational filter is a convolution with the numerator and then the recursion of the denominator
(``primitives.filters``), so that it is differentiable in the signal, in both coefficients and in
the initial state. Not here: convolutions (``signal_convolution``) and the design of filters, which
is SciPy's (``signal``).

Reference: Oppenheim & Schafer, Discrete-Time Signal Processing (1989), ch. 6.

Layer: ``scipy``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.filters import recursive_filter
from functrans.primitives.structural import cast, normalize_axis
from functrans.scipy.dispatch import common_floating, floats, implements, whole
from functrans.scipy.ndimage_filters import median_filter, rank_filter
from functrans.scipy.signal_convolution import convolve, fir


def _coefficients(name: str, b: ArrayLike, a: Any) -> tuple[Any, Any]:
    """Numerator and denominator of equal lengths, divided by the first of the denominator."""
    b, a = (fnp.atleast_1d(x) for x in floats(b, a))
    if len(shape_of(b)) != 1 or len(shape_of(a)) != 1:
        raise ShapeError(
            f"{name}: coefficients of shapes {shape_of(b)} and {shape_of(a)} must be vectors"
            f"{here()}"
        )
    n = max(shape_of(b)[0], shape_of(a)[0])
    wide = [fnp.pad(x, (0, n - shape_of(x)[0])) for x in (b, a)]
    first = a[0]
    return wide[0] / first, wide[1] / first


def _run(b: ArrayLike, a: Any, x: ArrayLike, zi: Any) -> tuple[Any, Any]:
    """Filter along the last axis from an initial state, and the final state.

    The state of the transposed direct form is what earlier samples still contribute:
    ``z_m[i] = sum_j b[m + 1 + j] x[i - j] - a[m + 1 + j] y[i - j]``.
    """
    order = shape_of(b)[0] - 1
    lead, n = shape_of(x)[:-1], shape_of(x)[-1]
    rows = fnp.reshape(x, (int(np.prod(lead, dtype=int)), 1, n))
    terms = fnp.reshape(fir(b, rows, (order, 0)), shape_of(x))
    if zi is not None and order:
        terms = terms + fnp.pad(zi, [(0, 0)] * len(lead) + [(0, max(n - order, 0))])[..., :n]
    y = recursive_filter(a[1:], terms) if order else terms
    if not order:
        return y, zi
    back = np.arange(order)[:, None] + np.arange(order)
    inside = back < order
    place = np.where(inside, back, 0) + 1
    margin = [(0, 0)] * len(lead) + [(max(order - n, 0), 0)]
    last_x, last_y = (fnp.pad(v, margin)[..., ::-1][..., :order] for v in (x, y))
    hankel_b, hankel_a = (fnp.where(inside, fnp.take(c, place), 0) for c in (b, a))
    state = last_x @ hankel_b.T - last_y @ hankel_a.T
    if zi is not None and order > n:
        rest = fnp.pad(zi[..., n:], [(0, 0)] * len(lead) + [(0, n)])
        state = state + rest
    return y, state


@implements("signal.lfilter")
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: Any = None) -> Any:
    """Filter a signal by a rational filter, as ``scipy.signal.lfilter``.

    Args:
      b: numerator ``[p]``.
      a: denominator ``[q]``; its first element is not 0.
      x: signal.
      axis: the axis.
      zi: initial state, ``max(p, q) - 1`` elements along the axis.

    Returns:
      The filtered signal; with ``zi`` also the final state.

    Raises:
      ShapeError: coefficients or state do not fit.

    Example:
      >>> import functrans as ft
      >>> ft.jit(lfilter)(np.ones(1), np.array([1.0, -0.5]), np.array([1.0, 0.0, 0.0]))
      array([1.  , 0.5 , 0.25])
    """
    b, a = _coefficients("lfilter", b, a)
    (x,) = floats(x)
    dtype = common_floating(b, a, x) if zi is None else common_floating(b, a, x, fnp.asarray(zi))
    b, a, x = (cast(v, dtype) for v in (b, a, x))
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    moved = fnp.moveaxis(x, axis, -1)
    if zi is None:
        return fnp.moveaxis(_run(b, a, moved, None)[0], -1, axis)
    state = fnp.moveaxis(cast(fnp.asarray(zi), dtype), axis, -1)
    want = (*shape_of(moved)[:-1], shape_of(b)[0] - 1)
    try:
        state = fnp.broadcast_to(state, want)
    except ValueError:
        raise ShapeError(
            f"lfilter: an initial state of shape {shape_of(zi)} does not fit{here()}; expected "
            f"{want} with the filtered axis last"
        ) from None
    y, end = _run(b, a, moved, state)
    return fnp.moveaxis(y, -1, axis), fnp.moveaxis(end, -1, axis)


@implements("signal.lfiltic")
def lfiltic(b: ArrayLike, a: ArrayLike, y: ArrayLike, x: Any = None) -> Array:
    """The state of a filter after given outputs and inputs, as ``scipy.signal.lfiltic``.

    Args:
      b: numerator.
      a: denominator.
      y: outputs before, the latest first.
      x: inputs before, the latest first.
    """
    b, a = _coefficients("lfiltic", b, a)
    order = shape_of(b)[0] - 1
    y = fnp.atleast_1d(floats(y)[0])
    x = np.zeros(0) if x is None else fnp.atleast_1d(floats(x)[0])
    y, x = (fnp.pad(v, (0, max(order - shape_of(v)[0], 0)))[:order] for v in (y, x))
    back = np.arange(order)[:, None] + np.arange(order)
    inside = back < order
    place = np.where(inside, back, 0) + 1
    return (
        fnp.where(inside, fnp.take(b, place), 0) @ x - fnp.where(inside, fnp.take(a, place), 0) @ y
    )


@implements("signal.lfilter_zi")
def lfilter_zi(b: Any, a: Any) -> Array:
    """The state in which a filter answers a unit step at once, as ``scipy.signal.lfilter_zi``."""
    b, a = _coefficients("lfilter_zi", b, a)
    order = shape_of(b)[0] - 1
    if not order:
        return np.zeros(0, dtype_of(b))
    shifted = np.eye(order, k=1, dtype=dtype_of(a))
    transposed = shifted - fnp.concatenate(
        (a[1:][:, None], np.zeros((order, order - 1), dtype_of(a))), axis=1
    )
    return fnp.linalg.solve(np.eye(order, dtype=dtype_of(a)) - transposed, b[1:] - a[1:] * b[0])


# forwards and backwards -------------------------------------------------------------------------


def _sections(name: str, sos: object) -> Any:
    (sos,) = floats(sos)
    if len(shape_of(sos)) != 2 or shape_of(sos)[1] != 6:
        raise ShapeError(
            f"{name}: sections of shape {shape_of(sos)}; expected [sections, 6]{here()}"
        )
    return sos


@implements("signal.sosfilt")
def sosfilt(sos: Any, x: ArrayLike, axis: int = -1, zi: object = None) -> Any:
    """Filter by second-order sections one after the other, as ``scipy.signal.sosfilt``.

    Args:
      sos: ``[sections, 6]``: numerator and denominator of each.
      x: signal.
      axis: the axis.
      zi: initial state, ``[sections, ..., 2, ...]`` with 2 along the axis.

    Returns:
      The filtered signal; with ``zi`` also the final state.
    """
    sos = _sections("sosfilt", sos)
    (x,) = floats(x)
    dtype = common_floating(sos, x)
    sos, x = cast(sos, dtype), cast(x, dtype)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    y, ends = fnp.moveaxis(x, axis, -1), []
    state = None if zi is None else fnp.moveaxis(cast(fnp.asarray(zi), dtype), axis + 1, -1)
    for k in range(shape_of(sos)[0]):
        b, a = sos[k, :3] / sos[k, 3], sos[k, 3:] / sos[k, 3]
        y, end = _run(b, a, y, None if state is None else state[k])
        ends.append(end)
    out = fnp.moveaxis(y, -1, axis)
    return out if zi is None else (out, fnp.moveaxis(fnp.stack(ends), -1, axis + 1))


@implements("signal.deconvolve")
def deconvolve(signal: object, divisor: object) -> tuple[Any, Any]:
    """Quotient and remainder of polynomials, as ``scipy.signal.deconvolve``."""
    signal, divisor = (fnp.atleast_1d(x) for x in floats(signal, divisor))
    n, k = shape_of(signal)[0], shape_of(divisor)[0]
    if k > n:
        return np.zeros(0, dtype_of(signal)), signal
    impulse = np.zeros(n - k + 1, dtype_of(signal))
    impulse[0] = 1
    quotient = lfilter.traced(signal, divisor, impulse)  # type: ignore[attr-defined]  # set by implements
    return quotient, signal - convolve.traced(divisor, quotient)  # type: ignore[attr-defined]  # set by implements


# medians, means, trends -------------------------------------------------------------------------


@implements("signal.medfilt")
def medfilt(volume: object, kernel_size: object = None) -> Array:
    """Medians of windows of odd extents, zeros beyond the border, as ``scipy.signal.medfilt``."""
    (x,) = floats(fnp.atleast_1d(volume))
    ndim = len(shape_of(x))
    sizes = np.broadcast_to(3 if kernel_size is None else np.asarray(kernel_size), (ndim,)).tolist()
    if any(n % 2 == 0 for n in sizes):
        raise ValueError(f"medfilt: extents must be odd, got {sizes}{here()}")
    out = median_filter.traced(x, size=tuple(sizes), mode="constant")  # type: ignore[attr-defined]  # set by implements
    return whole(out, volume)


@implements("signal.medfilt2d")
def medfilt2d(input: object, kernel_size: object = 3) -> Array:  # SciPy's name
    """:func:`medfilt` of an image, as ``scipy.signal.medfilt2d``."""
    return medfilt.traced(input, kernel_size)  # type: ignore[attr-defined]  # set by implements


@implements("signal.order_filter")
def order_filter(a: ArrayLike, domain: object, rank: int) -> Array:
    """Elements of a rank in windows, zeros beyond the border, as ``scipy.signal.order_filter``."""
    domain = np.asarray(domain)
    if any(n % 2 == 0 for n in domain.shape):
        raise ValueError(f"order_filter: extents must be odd, got {domain.shape}{here()}")
    out = rank_filter.traced(a, rank, footprint=domain, mode="constant")  # type: ignore[attr-defined]  # set by implements
    return whole(out, a)


@implements("signal.wiener")
def wiener(im: object, mysize: object = None, noise: object = None) -> Array:
    """Wiener's filter from local means and variances, as ``scipy.signal.wiener``."""
    (x,) = floats(im)
    ndim = len(shape_of(x))
    sizes = np.broadcast_to(3 if mysize is None else np.asarray(mysize), (ndim,))
    ones = np.ones(sizes, dtype_of(x))
    count = float(np.prod(sizes))
    mean = convolve.traced(x, ones, "same") / count  # type: ignore[attr-defined]  # set by implements
    variance = convolve.traced(x * x, ones, "same") / count - mean * mean  # type: ignore[attr-defined]  # set by implements
    level = fnp.mean(variance) if noise is None else noise
    is_noise = variance < level
    safe = fnp.where(is_noise, 1, variance)
    return fnp.where(is_noise, mean, mean + (x - mean) * (1 - level / safe))


def detrended(x: Any, kind: str, breaks: Any = 0) -> Array:
    """A signal without its mean, or without lines between break points, along the last axis.

    Raises:
      ValueError: the kind is unknown, or a break point beyond the signal.
    """
    if kind in ("constant", "c"):
        return x - fnp.mean(x, axis=-1, keepdims=True)
    if kind not in ("linear", "l"):
        raise ValueError(f"detrend: type={kind!r}; expected 'linear' or 'constant'{here()}")
    n = shape_of(x)[-1]
    points = np.sort(np.unique(np.concatenate([np.atleast_1d(0), np.atleast_1d(breaks), [n]])))
    if (points > n).any():
        raise ValueError(f"detrend: a break point lies beyond {n} samples{here()}")
    parts = []
    for start, stop in itertools.pairwise(points):
        count = int(stop - start)
        design = np.stack([np.arange(1, count + 1) / count, np.ones(count)], axis=1)
        basis = np.linalg.qr(design)[0].astype(dtype_of(x))
        part = x[..., int(start) : int(stop)]
        parts.append(part - (part @ basis) @ basis.T)
    return parts[0] if len(parts) == 1 else fnp.concatenate(parts, axis=-1)


@implements("signal.detrend")
def detrend(
    data: object, axis: int = -1, type: str = "linear", bp: object = 0, overwrite_data: bool = False
) -> Array:  # SciPy's names
    """A signal without its linear or constant trend, as ``scipy.signal.detrend``."""
    (x,) = floats(data)
    axis = normalize_axis(axis, len(shape_of(x)), "axis")
    return fnp.moveaxis(detrended(fnp.moveaxis(x, axis, -1), type, bp), -1, axis)
