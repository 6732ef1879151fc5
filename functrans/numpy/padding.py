"""``np.pad`` in all modes.

Here: padding. Modes that repeat elements are one gather per axis at positions that NumPy itself
gives; odd reflections are affine in the elements. Not here: the primitive for constant margins
(``primitives.movement``).

Layer: ``numpy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy import means, reductions
from functrans.numpy.common import as_array, fresh, lifted
from functrans.numpy.cumulative import part
from functrans.numpy.dispatch import implements
from functrans.numpy.quantiles import median
from functrans.numpy.shaping import transposed
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives.indexing import gather
from functrans.primitives.slicing import BasicIndex, slice_update
from functrans.primitives.structural import cast

Widths = tuple[tuple[int, int], ...]

_OPTIONS = {
    "constant": {"constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}


def _pairs(value: ArrayLike, ndim: int) -> list[tuple[Any, Any]]:
    """An option as one pair (before, after) per axis; entries may be traced."""
    table = as_array(value)
    wide = structural.broadcast_to(table, (ndim, 2))
    return [(wide[k, 0], wide[k, 1]) for k in range(ndim)]


def _widths(pad_width: object, ndim: int) -> Widths:
    """The widths as non-negative integers per axis."""
    if isinstance(pad_width, dict):
        by_axis: list[Any] = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            by_axis[axis] = (width, width) if isinstance(width, int) else tuple(width)
        pad_width = by_axis
    table = np.asarray(pad_width)
    if table.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    table = np.broadcast_to(table, (ndim, 2))
    if (table < 0).any():
        raise ValueError("index can't contain negative values")
    return tuple([(int(low), int(high)) for low, high in table])


def _grown(x: ArrayLike, k: int, low: ArrayLike, high: ArrayLike, widths: tuple[int, int]) -> Any:
    """The array with a margin on both sides of an axis; margins broadcast to their widths."""
    shape = shape_of(x)
    parts = [x]
    for margin, width, is_end in ((low, widths[0], False), (high, widths[1], True)):
        if width:
            wide = structural.broadcast_to(
                cast(margin, dtype_of(x)), (*shape[:k], width, *shape[k + 1 :])
            )
            parts.insert(len(parts) if is_end else 0, wide)
    return movement.concatenate(parts, k) if len(parts) > 1 else x


def _repeated(x: ArrayLike, k: int, widths: tuple[int, int], mode: str) -> Array:
    """Margins that repeat elements: positions along the axis."""
    n = shape_of(x)[k]
    if not n:
        raise ValueError(
            f"can't extend empty axis {k} using modes other than 'constant' or 'empty'"
        )
    places = np.pad(np.arange(n), widths, mode)  # type: ignore[call-overload]  # one of the modes
    return structural.moveaxis(gather(x, (places,), (k,)), 0, k)


def _odd(x: ArrayLike, k: int, widths: tuple[int, int], mode: str) -> Array:
    """Odd reflections: ``f(-i) = 2 f(0) - f(i)`` at both ends, continued over all periods.

    Two reflections shift by a period and add twice the difference of the ends. At position ``p``
    in period ``m`` the value is an element, or twice the end minus an element, plus ``2 m``
    times that difference.
    """
    n = shape_of(x)[k]
    if not n:
        raise ValueError(
            f"can't extend empty axis {k} using modes other than 'constant' or 'empty'"
        )
    if n == 1:
        return _repeated(x, k, widths, "edge")
    positions = np.arange(-widths[0], n + widths[1])
    period = 2 * (n - 1) if mode == "reflect" else 2 * n
    turns, offset = np.divmod(positions, period)
    is_turned = offset >= n
    mirrored = period - offset - (mode == "symmetric")
    places = np.where(is_turned, mirrored, offset)
    wide = (-1,) + (1,) * (len(shape_of(x)) - k - 1)
    sign = np.where(is_turned, -1, 1).reshape(wide)
    from_last = (2 * is_turned + 2 * turns).reshape(wide)
    from_first = (-2 * turns).reshape(wide)
    taken = structural.moveaxis(gather(x, (places,), (k,)), 0, k)
    result = taken * sign + part(x, k, -1, None) * from_last + part(x, k, 0, 1) * from_first
    return cast(result, dtype_of(x))


def _ramps(x: ArrayLike, k: int, widths: tuple[int, int], ends: tuple[Any, Any]) -> Array:
    """Margins that go linearly from an end value to the edge."""
    margins = []
    for edge, end, width, is_end in (
        (part(x, k, 0, 1), ends[0], widths[0], False),
        (part(x, k, -1, None), ends[1], widths[1], True),
    ):
        fraction = np.arange(width)[:: -1 if is_end else 1] / max(width, 1)
        fraction = fraction.reshape((-1,) + (1,) * (len(shape_of(x)) - k - 1))
        ramp = ew.add(end, ew.multiply(fraction, ew.subtract(edge, end)))
        if dtype_of(x).kind in "iu":
            ramp = ew.floor(ramp)
        margins.append(ramp)
    return _grown(x, k, margins[0], margins[1], widths)


_STATISTICS: dict[str, Any] = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": means.mean,
    "median": median,
}


def _statistic(x: ArrayLike, k: int, widths: tuple[int, int], mode: str, lengths: Any) -> Array:
    """Margins of a statistic of the elements next to them."""
    n = shape_of(x)[k]
    if not n and any(widths):
        raise ValueError(
            f"can't extend empty axis {k} using modes other than 'constant' or 'empty'"
        )
    margins = []
    for length, is_end in zip(lengths, (False, True), strict=True):
        count = n if length is None else min(int(length), n)
        if count == 0 and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        near = part(x, k, n - count, None) if is_end else part(x, k, 0, count)
        value = _STATISTICS[mode].traced(near, k, keepdims=True)
        if dtype_of(x).kind in "iu" and mode in ("mean", "median"):
            value = ew.rint(value)
        margins.append(value)
    return _grown(x, k, margins[0], margins[1], widths)


def _by_function(
    x: ArrayLike, widths: Widths, function: Callable[..., Any], options: object
) -> Array:
    """Margins that a function writes into each vector along each axis."""
    shape = tuple([n + low + high for n, (low, high) in zip(shape_of(x), widths, strict=True)])
    place = BasicIndex(
        tuple([slice(low, low + n) for n, (low, _) in zip(shape_of(x), widths, strict=True)])
    )
    padded = slice_update(lifted(np.zeros(shape, dtype_of(x)), x), x, place)
    for k in range(len(shape)):
        order = (*[axis for axis in range(len(shape)) if axis != k], k)
        lanes = transposed(padded, order)
        for index in np.ndindex(tuple([shape[axis] for axis in order[:-1]])):
            function(lanes[index], widths[k], k, options)
    return padded


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: ArrayLike) -> Any:
    """Margins around an array, in any of NumPy's modes."""
    x = as_array(array)
    ndim = len(shape_of(x))
    widths = _widths(pad_width, ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ValueError(f"mode {mode!r} is not supported")
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode in ("constant", "empty"):
        value = as_array(kwargs.get("constant_values", 0))
        if not shape_of(value):
            return movement.pad(x, value, [(low, high, 0) for low, high in widths])
        values = _pairs(value, ndim)
        result = x
        for k, (own, width) in enumerate(zip(values, widths, strict=True)):
            result = _grown(result, k, own[0], own[1], width)
        return fresh(result) if result is x else result
    result = x
    for k, width in enumerate(widths):
        if width == (0, 0):
            continue
        if mode == "linear_ramp":
            result = _ramps(result, k, width, _pairs(kwargs.get("end_values", 0), ndim)[k])
        elif mode in _STATISTICS:
            given = kwargs.get("stat_length")
            lengths = (None, None) if given is None else np.broadcast_to(given, (ndim, 2))[k]
            result = _statistic(result, k, width, mode, lengths)
        elif kwargs.get("reflect_type", "even") == "odd":
            result = _odd(result, k, width, mode)
        else:
            result = _repeated(result, k, width, mode)
    return fresh(result) if result is x else result
