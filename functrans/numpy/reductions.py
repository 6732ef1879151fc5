"""Reductions: sum, product, extrema and their positions, truth, counting.

Here: reductions with NumPy's options ``axis`` (also tuples), ``dtype``, ``keepdims``, ``initial``
and ``where``. The plain forms of ``sum``, ``max``, ``min``, ``prod`` are one equation. Not here:
variants that skip NaN (``nan_functions``), quantiles (``quantiles``), running reductions
(``cumulative``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy.common import (
    NO_VALUE,
    as_array,
    axes_of,
    axis_of,
    flag,
    fresh,
    is_given,
    stored,
    truth,
)
from functrans.numpy.dispatch import implements
from functrans.primitives import elementwise as ew
from functrans.primitives import reduction as red
from functrans.primitives import structural
from functrans.primitives.structural import cast, reduce_sum_p

ALL_AXES = tuple(tuple(range(ndim)) for ndim in range(65))
_WIDE = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


def widened(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy sums and multiplies: integers have at least 64 bits."""
    wide = _WIDE.get(dtype.kind)
    return dtype if wide is None or dtype.itemsize >= wide.itemsize else wide


def without_identity(name: str) -> ValueError:
    """The error for a ``where`` mask that may leave nothing to start from."""
    return ValueError(
        f"reduction operation {name!r} does not have an identity, so to use a where mask one has "
        f"to specify 'initial'{here()}"
    )


def reduced(
    name: str,
    x: ArrayLike,
    axis: object,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
    reduce: Callable[[Any, tuple[int, ...]], Any],
    combine: Callable[[Any, Any], Any],
    identity: ArrayLike | None,
) -> Any:
    """A reduction with all of NumPy's options.

    Args:
      name: for messages.
      x: array.
      axis: NumPy's argument.
      out: NumPy's argument.
      keepdims: NumPy's argument.
      initial: NumPy's argument.
      where: NumPy's argument.
      reduce: the reduction over a tuple of axes.
      combine: joins a result with ``initial``.
      identity: what changes no result, or ``None`` where there is no such number.

    Raises:
      ValueError: ``where`` is given without ``initial`` to a reduction without identity.
    """
    dtype = dtype_of(x)
    if is_masked(where):
        if identity is None and not is_given(initial):
            raise without_identity(name)
        fill = cast(as_array(initial if identity is None else identity), dtype)
        x = ew.where(as_array(where), x, fill)
    shape = shape_of(x)
    axes = axes_of(axis, len(shape))
    if is_given(initial):
        start = cast(as_array(initial), dtype_of(x))
        if identity is None and 0 in [shape[k] for k in axes]:
            left = structural.reduced_shape(shape, axes)
            result = fresh(structural.broadcast_to(start, left))
        else:
            result = combine(reduce(x, axes), start)
    else:
        result = reduce(x, axes)
        if result is x:
            result = fresh(x)
    if flag(keepdims):
        result = structural.reshape(result, structural.kept_shape(shape, axes))
    return stored(name, result, out)


def is_masked(where: Any) -> bool:
    """Whether a mask is given; ``None`` is none, as in JAX."""
    return not (where is NO_VALUE or where is True or where is None)


def is_plain(dtype: DTypeLike | None, out: Any, keepdims: Any, initial: Any, where: Any) -> bool:
    """Whether a reduction is called without options."""
    return (
        dtype is None
        and out is None
        and (keepdims is NO_VALUE or keepdims is False)
        and initial is NO_VALUE
        and (where is NO_VALUE or where is True or where is None)
    )


@implements(np.sum)
def sum(  # NumPy's name
    a: Any,
    axis: object = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Sum over axes."""
    if isinstance(a, Tracer) and is_plain(dtype, out, keepdims, initial, where):
        ndim = len(a.shape)
        if ndim and a.dtype.kind not in "biu":
            axes = ALL_AXES[ndim] if axis is None else axes_of(axis, ndim)
            if axes:
                return bind(reduce_sum_p, a, axes=axes)[0]
    x = as_array(a)
    x = cast(x, widened(dtype_of(x)) if dtype is None else dtype)
    return reduced("sum", x, axis, out, keepdims, initial, where, structural.reduce_sum, ew.add, 0)


@implements(np.prod)
def prod(
    a: Any,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Product over axes; exact derivatives with any number of zeros."""
    x = as_array(a)
    x = cast(x, widened(dtype_of(x)) if dtype is None else dtype)
    return reduced("prod", x, axis, out, keepdims, initial, where, red.reduce_prod, ew.multiply, 1)


@implements(np.max, np.amax)
def max(  # NumPy's name
    a: Array,
    axis: object = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Maximum over axes; ties share the derivative evenly."""
    return reduced(
        "maximum", as_array(a), axis, out, keepdims, initial, where, red.reduce_max, ew.maximum,
        None,
    )  # fmt: skip


@implements(np.min, np.amin)
def min(  # NumPy's name
    a: ArrayLike,
    axis: object = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Minimum over axes; ties share the derivative evenly."""
    return reduced(
        "minimum", as_array(a), axis, out, keepdims, initial, where, red.reduce_min, ew.minimum,
        None,
    )  # fmt: skip


amax, amin = max, min


@implements(np.ptp)
def ptp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
) -> Array:
    """Maximum minus minimum."""
    x = as_array(a)
    high = max.traced(x, axis, None, keepdims)  # type: ignore[attr-defined]  # set by implements
    low = min.traced(x, axis, None, keepdims)  # type: ignore[attr-defined]  # set by implements
    return stored("ptp", ew.subtract(high, low), out)


@implements(np.any)
def any(  # NumPy's name
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Any:
    """Whether any element is nonzero."""
    return reduced(
        "any", truth(a), axis, out, keepdims, NO_VALUE, where, red.reduce_any, ew.logical_or, False
    )


@implements(np.all)
def all(  # NumPy's name
    a: Array,
    axis: object = None,
    out: Array | None = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Any:
    """Whether all elements are nonzero."""
    return reduced(
        "all", truth(a), axis, out, keepdims, NO_VALUE, where, red.reduce_all, ew.logical_and, True
    )


@implements(np.count_nonzero)
def count_nonzero(
    a: ArrayLike, axis: int | Sequence[int] | None = None, *, keepdims: bool = False
) -> Array:
    """Number of nonzero elements."""
    return reduced(
        "count_nonzero", cast(truth(a), np.int64), axis, None, keepdims, NO_VALUE, NO_VALUE,
        structural.reduce_sum, ew.add, 0,
    )  # fmt: skip


def _position(
    function: Callable[[Any, int], Any],
    name: str,
    a: Any,
    axis: object,
    out: Array | None,
    keepdims: Any,
) -> Array:
    x = as_array(a)
    shape = shape_of(x)
    if axis is None or not shape:
        if axis is not None:
            axis_of(axis, 1)
        result = function(structural.reshape(x, (math.prod(shape),)), 0)
        kept = (1,) * len(shape)
    else:
        k = axis_of(axis, len(shape))
        result = function(x, k)
        kept = structural.kept_shape(shape, (k,))
    if flag(keepdims):
        result = structural.reshape(result, kept)
    return stored(name, result, out)


@implements(np.argmax)
def argmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
    *,
    keepdims: Any = NO_VALUE,
) -> Any:
    """First position of the maximum."""
    return _position(red.argmax, "argmax", a, axis, out, keepdims)


@implements(np.argmin)
def argmin(
    a: ArrayLike, axis: object = None, out: Array | None = None, *, keepdims: Any = NO_VALUE
) -> Any:
    """First position of the minimum."""
    return _position(red.argmin, "argmin", a, axis, out, keepdims)
