"""Creating arrays: array, zeros, full, arange, linspace, meshgrid, indices and their relatives.

Here: functions that make arrays. With ``like=x`` or by a ``*_like`` function of a traced array the
result is one that traced values can be written to. Not here: joining (``joining``), triangles of
given matrices (``diagonals``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.core.dispatch import Tracer, dtype_of, shape_of, standing
from functrans.core.values import Array
from functrans.numpy.arranging import broadcast_to as broadcast_view
from functrans.numpy.common import (
    as_array,
    as_operand,
    fresh,
    from_sequence,
    holds,
    inexact,
    is_known,
    lifted,
    moved_axis,
    plain_array,
    value_of,
)
from functrans.numpy.dispatch import implements
from functrans.numpy.selection import integers
from functrans.numpy.shaping import reshape_view
from functrans.primitives import elementwise as ew
from functrans.primitives import structural
from functrans.primitives.movement import common_dtype
from functrans.primitives.structural import cast, normalize_axis

# array ------------------------------------------------------------------------------------------


@implements(np.array)
def array(
    object: Array,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: ArrayLike | None = None,
) -> Any:
    """An array of its own of numbers, traced values, and nested lists of them."""
    object = standing(object)
    if isinstance(object, (list, tuple)):
        result = from_sequence(object, dtype)
        copy = False
    else:
        result = object if isinstance(object, Tracer) else plain_array(object, dtype)
    own = result
    if dtype is not None:
        result = cast(result, dtype)
    if getattr(copy, "value", copy) == 1 and result is own:  # IF_NEEDED of NumPy's _CopyMode is 2
        result = fresh(result, order)
    if len(shape_of(result)) < ndmin:
        shape = shape_of(result)
        result = reshape_view(result, (1,) * (ndmin - len(shape)) + shape)
    return lifted(result, like)


@implements(np.asarray)
def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: object = None,
    *,
    device: object = None,
    copy: Any = None,
    like: ArrayLike | None = None,
) -> Any:
    """An array of numbers, traced values, and nested lists of them; arrays stay themselves."""
    return array.traced(a, dtype, copy=copy, like=like)  # type: ignore[attr-defined]  # set by implements


@implements(np.asanyarray)
def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    """As ``asarray``."""
    return array.traced(a, dtype, copy=copy, like=like)  # type: ignore[attr-defined]  # set by implements


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """As ``asarray``, with at least one axis; the memory layout is not part of a traced value."""
    return array.traced(a, dtype, copy=False, ndmin=1, like=like)  # type: ignore[attr-defined]  # set by implements


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """As ``asarray``, with at least one axis; the memory layout is not part of a traced value."""
    return array.traced(a, dtype, copy=False, ndmin=1, like=like)  # type: ignore[attr-defined]  # set by implements


@implements(np.asarray_chkfinite)
def asarray_chkfinite(a: ArrayLike, dtype: DTypeLike | None = None, order: object = None) -> Any:
    """As ``asarray``, refusing NaN and infinities; needs values."""
    result = array.traced(a, dtype, copy=False)  # type: ignore[attr-defined]  # set by implements
    if not holds(np.all(ew.isfinite(result))):
        raise ValueError("array must not contain infs or NaNs")
    return result


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """As ``asarray``; the memory layout is not part of a traced value."""
    return array.traced(a, dtype, copy=False, like=like)  # type: ignore[attr-defined]  # set by implements


# filled arrays ----------------------------------------------------------------------------------


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, (tuple, list)):
        return tuple([operator.index(n) for n in shape])
    return (operator.index(shape),)


@implements(np.full)
def full(
    shape: object,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: object = None,
    like: ArrayLike | None = None,
) -> Any:
    """An array of one value, which may be traced."""
    value = as_array(fill_value)
    if dtype is not None:
        value = cast(value, dtype)
    return lifted(structural.broadcast_to(fresh(value), _shape(shape)), like)


def _like(x: ArrayLike, dtype: DTypeLike | None, shape: Any) -> tuple[tuple[int, ...], np.dtype]:
    own = as_array(x)
    return (
        shape_of(own) if shape is None else _shape(shape),
        dtype_of(own) if dtype is None else np.dtype(dtype),
    )


@implements(np.full_like)
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: object = None,
) -> Array:
    """An array of one value with the shape and dtype of another."""
    extents, kind = _like(a, dtype, shape)
    value = as_operand(fill_value)
    if not isinstance(value, Tracer):
        return lifted(np.full(extents, value, kind), a)
    return structural.broadcast_to(fresh(cast(value, kind)), extents)


@implements(np.zeros_like)
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: object = None,
) -> Any:
    """Zeros with the shape and dtype of another array."""
    return lifted(np.zeros(*_like(a, dtype, shape)), a)


@implements(np.ones_like)
def ones_like(
    a: Array,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ArrayLike | None = None,
    *,
    device: object = None,
) -> Array:
    """Ones with the shape and dtype of another array."""
    return lifted(np.ones(*_like(a, dtype, shape)), a)


@implements(np.empty_like)
def empty_like(
    prototype: ArrayLike,
    /,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: object = None,
) -> Any:
    """An array to be filled, with the shape and dtype of another; it begins as zeros."""
    return lifted(np.zeros(*_like(prototype, dtype, shape)), prototype)


def _plain(numpy_function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain arguments, whose result ``like=`` makes one to write traced values to."""

    def function(*args: object, like: object = None, **kwargs: object) -> Any:
        return lifted(numpy_function(*args, **kwargs), like)

    function.__name__ = function.__qualname__ = numpy_function.__name__
    function.__doc__ = f"``numpy.{numpy_function.__name__}``."
    return implements(numpy_function)(function)


@implements(np.zeros)
def zeros(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array of zeros."""
    return lifted(np.zeros(shape, dtype, order, device=device), like)


@implements(np.ones)
def ones(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array of ones."""
    return lifted(np.ones(shape, dtype, order, device=device), like)


@implements(np.empty)
def empty(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array to be filled."""
    return lifted(np.empty(shape, dtype, order, device=device), like)


def diagonal_distance(n: int, m: int | None, k: ArrayLike) -> Any:
    """How far each element of a matrix lies right of the diagonal ``k``, which may be traced."""
    columns = np.arange(operator.index(n if m is None else m))
    return ew.subtract(columns - np.arange(operator.index(n))[:, None], integers(k))


@implements(np.eye)
def eye(
    N: Any,  # NumPy's name
    M: Any = None,  # NumPy's name
    k: Any = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Ones on the diagonal ``k``, which may be traced, and zeros."""
    if not is_known(k):
        return cast(ew.equal(diagonal_distance(N, M, k), 0), dtype)
    return lifted(np.eye(N, M, value_of(k), dtype, order, device=device), like)


@implements(np.identity)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """A square matrix with ones on its diagonal."""
    return lifted(np.identity(n, dtype), like)


@implements(np.tri)
def tri(
    N: int,  # NumPy's name
    M: int | None = None,  # NumPy's name
    k: ArrayLike = 0,
    dtype: DTypeLike | None = float,
    *,
    like: Array | None = None,
) -> Array:
    """Ones on and below the diagonal ``k``, which may be traced, and zeros."""
    if not is_known(k):
        return cast(ew.less_equal(diagonal_distance(N, M, k), 0), dtype)
    return lifted(np.tri(N, M, value_of(k), dtype), like)


frombuffer = _plain(np.frombuffer)
fromfile = _plain(np.fromfile)
fromiter = _plain(np.fromiter)
fromstring = _plain(np.fromstring)
loadtxt = _plain(np.loadtxt)
genfromtxt = _plain(np.genfromtxt)


@implements(np.fromfunction)
def fromfunction(
    function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """An array of a function of positions."""
    return lifted(function(*np.indices(shape, dtype=dtype), **kwargs), like)


# ranges -----------------------------------------------------------------------------------------


@implements(np.arange)
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: object = None,
    like: ArrayLike | None = None,
) -> Any:
    """Values at equal distances; traced bounds need values, which give the length."""
    low, high = (0, start) if stop is None else (start, stop)
    distance = 1 if step is None else step
    operands = [as_operand(v) for v in (low, high, distance)]
    first, last, gap = (np.asarray(value_of(v)) for v in operands)
    if not gap:
        raise ValueError("Maximum allowed size exceeded")
    n = max(math.ceil((last - first) / gap), 0)
    if dtype is None:
        dtype = np.result_type(*[dtype_of(v) for v in operands])
    result = ew.add(operands[0], ew.multiply(np.arange(n), operands[2]))
    return lifted(cast(result, dtype), like)


@implements(np.linspace)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int | Sequence[int] | None = 0,
    *,
    device: object = None,
) -> Any:
    """Numbers at equal distances between bounds, which may be arrays."""
    n = operator.index(num)
    if n < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    low, high = as_operand(start), as_operand(stop)
    kind = np.result_type(common_dtype((low, high)), n * 1.0)
    low, high = cast(low, kind), cast(high, kind)
    span = ew.subtract(high, low)
    parts = n - 1 if endpoint else n
    ndim = len(shape_of(span))
    numbers = np.arange(n).reshape((n,) + (1,) * ndim)
    fractions = (numbers / parts if parts > 0 else numbers * 1.0).astype(
        np.finfo(kind).dtype, copy=False
    )
    result = ew.add(low, ew.multiply(fractions, span))
    if endpoint and n > 1:
        result = ew.where(numbers == n - 1, high, result)
    if dtype is not None:
        if np.dtype(dtype).kind in "iu":
            result = ew.floor(result)
        result = cast(result, dtype)
    if axis != 0:
        k = moved_axis(axis, len(shape_of(result)))
        result = structural.moveaxis(result, 0, k)
    if not retstep:
        return result
    return result, ew.divide(span, parts) if parts > 0 else np.full(shape_of(span), math.nan)


@implements(np.logspace)
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: ArrayLike = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int | Sequence[int] | None = 0,
) -> Array:
    """Powers of a base whose exponents are at equal distances."""
    low, high, root = as_array(start), as_array(stop), as_operand(base)
    if len(shape_of(root)):
        shape = np.broadcast_shapes(shape_of(low), shape_of(high), shape_of(root))
        low, high = (structural.broadcast_to(v, shape) for v in (low, high))
        if axis != 0:
            root = structural.broadcast_to(root, shape)
            k = normalize_axis(axis, len(shape) + 1, "axis")
            root = structural.reshape(root, (*shape[:k], 1, *shape[k:]))
    exponents = linspace.traced(low, high, num, endpoint, axis=axis)  # type: ignore[attr-defined]  # set by implements
    result = ew.power(root, exponents)
    return result if dtype is None else cast(result, dtype)


@implements(np.geomspace)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int | Sequence[int] | None = 0,
) -> Array:
    """Numbers at equal ratios between bounds of one sign."""
    low, high = inexact(as_array(start)), inexact(as_array(stop))
    n = operator.index(num)
    kind = np.result_type(dtype_of(low), dtype_of(high), np.float64)
    low, high = cast(low, kind), cast(high, kind)
    exponents = linspace.traced(  # type: ignore[attr-defined]  # set by implements
        ew.log(ew.divide(low, low)), ew.log(ew.divide(high, low)), num, endpoint
    )
    result = ew.multiply(low, ew.exp(exponents))
    numbers = np.arange(n).reshape((n,) + (1,) * (len(shape_of(result)) - 1))
    if endpoint and n > 1:
        result = ew.where(numbers == n - 1, high, result)
    if axis != 0:
        k = moved_axis(axis, len(shape_of(result)))
        result = structural.moveaxis(result, 0, k)
    return result if dtype is None else cast(result, dtype)


# grids ------------------------------------------------------------------------------------------


@implements(np.meshgrid)
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Coordinates of a grid from vectors of coordinates."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    vectors = [as_array(x) for x in xi]
    ndim = len(vectors)
    grids = []
    sizes = [math.prod(shape_of(x)) for x in vectors]
    for k, x in enumerate(vectors):
        position = 1 - k if indexing == "xy" and k < 2 and ndim > 1 else k
        wide = (1,) * position + (sizes[k],) + (1,) * (ndim - position - 1)
        grids.append(structural.reshape(x, wide))
    if not sparse:
        order = [1, 0, *range(2, ndim)] if indexing == "xy" and ndim > 1 else list(range(ndim))
        shape = tuple([sizes[k] for k in order])
        grids = [structural.broadcast_to(x, shape) if copy else broadcast_view(x, shape)
                 for x in grids]  # fmt: skip
    return tuple([fresh(g) if copy and any(g is x for x in vectors) else g for g in grids])


@implements(np.indices)
def indices(dimensions: object, dtype: DTypeLike | None = int, sparse: bool = False) -> Any:
    """Positions of the elements of an array of a shape, which is static."""
    plain: Any = np.indices
    return plain(_shape(dimensions), dtype, sparse)


@implements(np.vander)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of the elements of a vector, one row each."""
    values = as_array(x)
    if len(shape_of(values)) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = shape_of(values)[0] if N is None else operator.index(N)
    column = structural.reshape(values, (shape_of(values)[0], 1))
    column = cast(column, np.result_type(dtype_of(values), int))
    exponents = np.arange(n) if increasing else np.arange(n)[::-1]
    return ew.power(column, exponents)
