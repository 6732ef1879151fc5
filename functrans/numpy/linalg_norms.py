"""``numpy.linalg``'s norms, rank and condition, and how its functions read their operands.

Here: ``norm``, ``vector_norm``, ``matrix_norm``, ``cond``, ``matrix_rank``, and the conversions and
checks of operands. Not here: all the rest (``functrans.numpy.linalg``, which exports these too).

The derivative of every norm is 0 where the norm is 0, at every order, and so is that of ``|x|**p``
in an element that is 0.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import Tracer, dtype_of, innermost_staging, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy.common import as_array, axes_of, inexact
from functrans.numpy.dispatch import implements
from functrans.passes.staging import may_change
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, imag, real, real_dtype
from functrans.primitives.dot import dot
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.movement import reverse
from functrans.primitives.reduction import reduce_any, reduce_max, reduce_min
from functrans.primitives.sorting import sort
from functrans.primitives.structural import (
    cast,
    kept_shape,
    moveaxis,
    reduce_sum,
    reduced_shape,
    reshape,
)

# operands ---------------------------------------------------------------------------------------


def floating(name: str, *operands: ArrayLike) -> list[Any]:
    """Operands in the common dtype of NumPy's linear algebra: integers become float64.

    Raises:
      TypeError: a floating dtype that LAPACK does not know.
    """
    arrays = [_captured(as_array(x), operands) for x in operands]
    is_double, is_complex = False, False
    for x in arrays:
        dtype = dtype_of(x)
        if dtype.kind in "iub":
            is_double = True
        elif dtype.char not in "fdFD":
            raise TypeError(
                f"{name}: array type {dtype.name} is unsupported in linalg{here()}; cast it to "
                "float32, float64, complex64 or complex128"
            )
        is_double = is_double or dtype.char in "dD"
        is_complex = is_complex or dtype.kind == "c"
    common = np.dtype({(0, 0): "f", (0, 1): "F", (1, 0): "d", (1, 1): "D"}[is_double, is_complex])
    return [cast(x, common) for x in arrays]


def _captured(x: ArrayLike, operands: Sequence[Any]) -> Any:
    """An array that meets a traced one in a program is a part of it, with what is made of it alone.

    Its factors would otherwise be computed once, when the program is traced.
    """
    if type(x) is np.ndarray and may_change(x) and any(isinstance(y, Tracer) for y in operands):
        staging = innermost_staging()
        if staging is not None:
            return staging.lift(x)
    return x


def check_stacked(name: str, x: ArrayLike) -> None:
    """Refuse what has fewer than two axes.

    Raises:
      LinAlgError: as NumPy does.
    """
    if len(shape_of(x)) < 2:
        raise np.linalg.LinAlgError(
            f"{name}: {len(shape_of(x))}-dimensional array given{here()}. Array must be at least "
            "two-dimensional"
        )


def check_square(name: str, x: ArrayLike) -> None:
    """Refuse what is no stack of square matrices.

    Raises:
      LinAlgError: as NumPy does.
    """
    check_stacked(name, x)
    shape = shape_of(x)
    if shape[-1] != shape[-2]:
        raise np.linalg.LinAlgError(
            f"{name}: Last 2 dimensions of the array must be square, got shape {shape}{here()}"
        )


def svd_values(name: str, a: ArrayLike, hermitian: bool) -> Array:
    """Singular values, descending; those of Hermitian matrices are sizes of eigenvalues."""
    (a,) = floating(name, a)
    if hermitian:
        check_square(name, a)
        sizes = absolute(linalg.eigvalsh(a))
        last = len(shape_of(sizes)) - 1
        return reverse(sort(sizes, last), (last,))
    check_stacked(name, a)
    return linalg.svdvals(a)


# norms ------------------------------------------------------------------------------------------


def abs_squared(x: Any) -> Array:
    """``|x| ** 2``, real."""
    if dtype_of(x).kind != "c":
        return x * x
    re, im = real(x), imag(x)
    return re * re + im * im


def _largest(x: ArrayLike, axis: int) -> Array:
    """Maximum of what is not negative; 0 of nothing."""
    shape = shape_of(x)
    if shape[axis] == 0:
        return np.zeros(reduced_shape(shape, (axis,)), dtype_of(x))
    return reduce_max(x, (axis,))


def _smallest(x: ArrayLike, axis: int) -> Any:
    return reduce_min(x, (axis,))


def _power_norm(x: ArrayLike, p: Any, axes: tuple[int, ...]) -> Array:
    """``sum(|x| ** p) ** (1 / p)``."""
    size = absolute(x)
    power_of_zero = 0.0 if p > 0 else np.inf
    is_zero = size == 0
    terms = ew.where(is_zero, power_of_zero, ew.where(is_zero, 1, size) ** p)
    total = reduce_sum(terms, axes)
    at_zero = total == power_of_zero
    return ew.where(at_zero, 0, ew.where(at_zero, 1, total) ** (1 / p))


def _vector_norm(x: ArrayLike, ord: object, axis: int) -> Array:
    """Norms of the vectors along an axis."""
    if isinstance(ord, str):
        raise ValueError(f"norm: invalid norm order {ord!r} for vectors{here()}")
    if ord is None or ord == 2:
        return linalg.norm_sqrt(reduce_sum(abs_squared(x), (axis,)))
    if ord == np.inf:
        return _largest(absolute(x), axis)
    if ord == -np.inf:
        return _smallest(absolute(x), axis)
    if ord == 0:
        return reduce_sum(cast(x != 0, real_dtype(dtype_of(x))), (axis,))
    if ord == 1:
        return reduce_sum(absolute(x), (axis,))
    return _power_norm(x, ord, (axis,))


def _matrix_norm(x: ArrayLike, ord: object, row_axis: int, column_axis: int) -> Array:
    """Norms of the matrices in two axes."""
    if ord is None or ord in ("fro", "f"):
        return linalg.norm_sqrt(reduce_sum(abs_squared(x), (row_axis, column_axis)))
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (row_axis, column_axis) if abs(ord) == 1 else (column_axis, row_axis)
        sums = reduce_sum(absolute(x), (summed,))
        return (_largest if ord > 0 else _smallest)(sums, kept - (summed < kept))
    if ord in (2, -2, "nuc"):
        ndim = len(shape_of(x))
        x = moveaxis(x, row_axis, ndim - 1)
        x = moveaxis(x, column_axis - (row_axis < column_axis), ndim - 1)
        s = absolute(linalg.svdvals(x))  # absolute: the derivative is 0 in a value that is 0
        if ord == "nuc":
            return reduce_sum(s, (ndim - 2,))
        return (_largest if ord == 2 else _smallest)(s, ndim - 2)
    raise ValueError(f"norm: invalid norm order {ord!r} for matrices{here()}")


def _norm_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a norm: what ``int`` takes is one axis, as in NumPy."""
    if axis is not None and not isinstance(axis, tuple):
        try:
            axis = int(axis)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"norm: axis must be None, an integer or a tuple of integers, got {axis!r}{here()}"
            ) from error
    return axes_of(axis, ndim, of_scalar=False)


@implements(np.linalg.norm)
def norm(x: ArrayLike, ord: object = None, axis: object = None, keepdims: bool = False) -> Any:
    """Norms of vectors or matrices; their derivative at 0 is 0."""
    x = inexact(as_array(x))
    shape = shape_of(x)
    ndim = len(shape)
    if axis is None and (
        ord is None or (ndim == 2 and ord in ("f", "fro")) or (ndim == 1 and ord == 2)
    ):
        parts = [reshape(part, (math.prod(shape),)) for part in _parts(x)]
        squares = [dot(part, part) for part in parts]
        result = linalg.norm_sqrt(sum(squares[1:], start=squares[0]))
        return reshape(result, (1,) * ndim) if keepdims else result
    axes = _norm_axes(axis, ndim)
    if len(axes) == 1:
        result = _vector_norm(x, ord, axes[0])
    elif len(axes) == 2:
        result = _matrix_norm(x, ord, *axes)
    else:
        raise ValueError(
            f"norm: {len(axes)} axes{here()}; a norm is of vectors (1 axis) or matrices (2 axes)"
        )
    if keepdims:
        result = reshape(result, kept_shape(shape, axes))
    return result


def _parts(x: ArrayLike) -> tuple[Any, ...]:
    return (real(x), imag(x)) if dtype_of(x).kind == "c" else (x,)


@implements(np.linalg.vector_norm)
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: ArrayLike = 2,
) -> Array:
    """Norms of vectors that lie along one or several axes."""
    x = inexact(as_array(x))
    shape = shape_of(x)
    axes = _norm_axes(axis, len(shape))
    rest = tuple(n for i, n in enumerate(shape) if i not in axes)
    for place, source in enumerate(sorted(axes)):
        x = moveaxis(x, source, place)
    flat = reshape(x, (math.prod(shape[i] for i in axes), *rest))
    result = _vector_norm(flat, ord, 0)
    if keepdims:
        result = reshape(result, kept_shape(shape, axes))
    return result


@implements(np.linalg.matrix_norm)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str = "fro") -> Array:
    """Norms of matrices."""
    return norm(x, ord, (-2, -1), keepdims)


# condition and rank -----------------------------------------------------------------------------


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Array:
    """Condition numbers; infinite for singular matrices."""
    (x,) = floating("cond", x)
    check_stacked("cond", x)
    if 0 in shape_of(x)[-2:]:
        raise np.linalg.LinAlgError("cond: cond is not defined on empty arrays")
    last = len(shape_of(x)) - 1
    if p is None or p in (2, -2):
        s = linalg.svdvals(x)
        first = reduce_max(s, (last - 1,))
        least = reduce_min(s, (last - 1,))
        with np.errstate(all="ignore"):
            r = least / first if p == -2 else first / least
    else:
        check_square("cond", x)
        inverse = linalg.inv(x, check=False)
        with np.errstate(all="ignore"):
            r = norm(x, p, (-2, -1)) * norm(inverse, p, (-2, -1))
    is_undefined = ew.isnan(r) & ew.logical_not(reduce_any(ew.isnan(x), (last - 1, last)))
    return ew.where(is_undefined, np.inf, r)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Number of singular values above a tolerance."""
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: tol and rtol can't be both set")
    A = as_array(A)
    ndim = len(shape_of(A))
    if ndim < 2:
        return cast(reduce_any(A != 0, tuple(range(ndim))), np.int64)
    s = svd_values("matrix_rank", A, hermitian)
    last = len(shape_of(s)) - 1
    if tol is None:
        if rtol is None:
            rtol = max(shape_of(A)[-2:]) * float(np.finfo(dtype_of(s)).eps)
        tol = _largest(s, last) * rtol
    tol = as_array(tol)
    tol = reshape(tol, (*shape_of(tol), 1))
    return reduce_sum(cast(s > tol, np.int64), (last,))
