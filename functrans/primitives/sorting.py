"""Ordering primitives: sort, argsort, top-k, lexsort, searchsorted, partition.

Here: the records, and the linear pair ``select_along`` and ``place_along`` in which the derivatives
of ordering are written. Not here: gathers with arbitrary, possibly repeated indices (``indexing``).

Order is NumPy's: NaN last, complex numbers lexicographically. The derivative of a sort moves
tangents as the *stable* permutation moves the elements: at a tie each element keeps its own
tangent, in the order of their positions. ``top_k`` takes the largest first, NaN being largest, and
the one with the lowest position first among equals. ``partition`` has no record: it is
``select_along`` by ``argpartition``, whose derivative is that of the permutation it chose.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.axes import along_axis, without
from functrans.core.boundary import boundary
from functrans.core.dispatch import bind, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, Work, is_linear, linear, nondifferentiable
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.index_arrays import check_integers
from functrans.primitives.native.index import place_along_lower, select_along_lower
from functrans.primitives.native.sorting import (
    argsort_lower,
    lexsort_lower,
    searchsorted_lower,
    sort_lower,
    top_k_lower,
)
from functrans.primitives.structural import moveaxis, normalize_axis, to_front, zeros_like_aval

_INT64 = np.dtype(np.int64)
_NOT_LINEAR = (("transpose", "not linear"),)
_NO_DERIVATIVE = (("transpose", "has no derivative"),)


def _axis_moved(axis: int, dim: int) -> int:
    """An axis after a batch axis was put in."""
    return axis + (axis >= dim)


# select_along, place_along ----------------------------------------------------------------------


def _select_along_impl(x: Array, indices: Array, *, axis: int) -> tuple[Any, ...]:
    if x.ndim == 1:
        return (x[indices],)
    return (np.take_along_axis(x, indices, axis),)


def _select_along_aval(
    x: ShapedArray, indices: ShapedArray, *, axis: int
) -> tuple[ShapedArray, ...]:
    _check_lanes("select_along", x.shape, indices.shape, axis)
    check_integers([indices])
    return (ShapedArray(indices.shape, x.dtype),)


def _check_lanes(name: str, shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> None:
    """Refuse indices whose lanes are not those of the array."""
    if (
        not axis < len(shape) == len(indices)
        or shape[:axis] != indices[:axis]
        or shape[axis + 1 :] != indices[axis + 1 :]
    ):
        raise ShapeError(
            f"{name}: an array of shape {tuple(shape)} and indices of shape {tuple(indices)} must "
            f"agree in all axes but axis {axis}; broadcast them first"
        )


def _select_along_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axis: int
) -> tuple[Any, ...]:
    x, indices = operands
    if not is_linear(x):
        return (None, None)
    placed = bind(place_along_p, cts[0], indices, axis=axis, size=x.shape[axis])
    return (*placed, None)


def _select_along_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, axis: int
) -> tuple[Any, Any]:
    return bind(select_along_p, *to_front(size, operands, dims), axis=axis + 1), (0,)


select_along_p = Primitive(
    "select_along",
    impl=_select_along_impl,
    abstract_eval=_select_along_aval,
    jvp=linear,
    transpose=_select_along_transpose,
    batch=_select_along_batch,
    lower=Routine(select_along_lower),
    moves=True,
    axis_map=along_axis,
    memory="own",
)


def _place_along_impl(v: Array, indices: Array, *, axis: int, size: int) -> tuple[Any, ...]:
    shape = (*v.shape[:axis], size, *v.shape[axis + 1 :])
    out = np.zeros(shape, v.dtype)
    if v.ndim == 1:
        out[indices] = v
    else:
        np.put_along_axis(out, indices, v, axis)
    return (out,)


def _place_along_aval(
    v: ShapedArray, indices: ShapedArray, *, axis: int, size: int
) -> tuple[ShapedArray, ...]:
    if v.shape != indices.shape or axis >= len(v.shape):
        raise ShapeError(
            f"place_along: values {v} and indices {indices} must have the same shape, and an axis "
            f"{axis}; broadcast them first"
        )
    check_integers([indices])
    return (ShapedArray((*v.shape[:axis], size, *v.shape[axis + 1 :]), v.dtype),)


def _place_along_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, axis: int, size: int
) -> tuple[Any, ...]:
    v, indices = operands
    if not is_linear(v):
        return (None, None)
    return (*bind(select_along_p, cts[0], indices, axis=axis), None)


def _place_along_batch(
    batch_size: int, operands: Sequence[Array], dims: Sequence[int | None], *, axis: int, size: int
) -> tuple[Any, Any]:
    moved = to_front(batch_size, operands, dims)
    return bind(place_along_p, *moved, axis=axis + 1, size=size), (0,)


place_along_p = Primitive(
    "place_along",
    impl=_place_along_impl,
    abstract_eval=_place_along_aval,
    jvp=linear,
    transpose=_place_along_transpose,
    batch=_place_along_batch,
    lower=Routine(place_along_lower),
    moves=True,
    axis_map=along_axis,
    memory="own",
)


def select_along(x: Array | complex, indices: Array, axis: int) -> Any:
    """``np.take_along_axis`` for indices that do not repeat within a lane.

    Args:
      x: ``[..., n, ...]``.
      indices: ``i64[..., k, ...]``, each lane with distinct values in ``[0, n)``; other extents
        are those of ``x``.
      axis: the axis of extent ``n``.

    Returns:
      The elements, of the shape of ``indices``.
    """
    axis = normalize_axis(axis, len(shape_of(x)), "select_along")
    return bind(select_along_p, x, indices, axis=axis)[0]


# sort, argsort ----------------------------------------------------------------------------------


def _kind(stable: bool) -> Any:
    return "stable" if stable else None


def _sort_impl(x: Array | complex, *, axis: int, stable: bool) -> tuple[Any, ...]:
    return (np.sort(x, axis=axis, kind=_kind(stable)),)


def _sort_aval(x: ShapedArray, *, axis: int, stable: bool) -> tuple[ShapedArray, ...]:
    return (x.strong(),)


def _sort_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    outs: Sequence[Array],
    *,
    axis: int,
    stable: bool,
) -> tuple[Any, ...]:
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    return bind(select_along_p, t, argsort(x, axis), axis=axis)


def _sort_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, axis: int, stable: bool
) -> tuple[Any, Any]:
    moved = _axis_moved(axis, dims[0])
    return bind(sort_p, operands[0], axis=moved, stable=stable), dims


def _work(*keys: ShapedArray, **params: object) -> Work:
    aval = keys[0]
    return Work(aval.size * math.log2(max(2, *aval.shape)))


sort_p = Primitive(
    "sort",
    impl=_sort_impl,
    abstract_eval=_sort_aval,
    jvp=_sort_jvp,
    batch=_sort_batch,
    lower=Routine(sort_lower),
    reasons=_NOT_LINEAR,
    work=_work,
    memory="own",
    axis_map=along_axis,
)


def sort(x: Array | complex, axis: int, stable: bool = True) -> Any:
    """Sort along an axis, ascending, NaN last.

    Args:
      x: array.
      axis: axis.
      stable: keep the order of equal elements (only ``-0.0`` and ``0.0`` can show it).
    """
    axis = normalize_axis(axis, len(shape_of(x)), "sort")
    return bind(sort_p, x, axis=axis, stable=stable)[0]


def _argsort_impl(x: Array, *, axis: int, stable: bool) -> tuple[Any, ...]:
    return (np.argsort(x, axis=axis, kind=_kind(stable)).astype(np.int64, copy=False),)


def _argsort_aval(x: ShapedArray, *, axis: int, stable: bool) -> tuple[ShapedArray, ...]:
    return (ShapedArray(x.shape, _INT64),)


def _argsort_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, axis: int, stable: bool
) -> tuple[Any, Any]:
    moved = _axis_moved(axis, dims[0])
    return bind(argsort_p, operands[0], axis=moved, stable=stable), dims


argsort_p = Primitive(
    "argsort",
    impl=_argsort_impl,
    abstract_eval=_argsort_aval,
    jvp=nondifferentiable,
    batch=_argsort_batch,
    lower=Routine(argsort_lower),
    reasons=_NO_DERIVATIVE,
    work=_work,
    memory="own",
    axis_map=along_axis,
)


def argsort(x: Any, axis: int, stable: bool = True) -> Any:
    """Positions that sort along an axis, ``i64``; equal elements in order of position."""
    axis = normalize_axis(axis, len(shape_of(x)), "argsort")
    return bind(argsort_p, x, axis=axis, stable=stable)[0]


# top_k ------------------------------------------------------------------------------------------


def _descending(x: Array) -> Array:
    """Positions that sort the last axis downwards, the lowest first among equals, NaN first."""
    order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return x.shape[-1] - 1 - order


def _top_k_impl(x: Array, *, k: int) -> tuple[Any, ...]:
    extent = x.shape[-1]
    if 0 < k <= extent // 8 and not (x != x).any():
        candidates = _largest(x, k)
        order = _descending(np.take_along_axis(x, candidates, -1))
        indices = np.take_along_axis(candidates, order, -1)
    else:
        indices = np.ascontiguousarray(_descending(x)[..., :k])
    indices = indices.astype(np.int64, copy=False)
    return (np.take_along_axis(x, indices, -1), indices)


def _largest(x: Array, k: int) -> Array:
    """Positions of the ``k`` largest, in order of position: selection instead of a sort.

    All above the ``k``-th largest value, and the first of those equal to it. No NaN.
    """
    at = x.shape[-1] - k
    threshold = np.partition(x, at, axis=-1)[..., at : at + 1]
    above = x > threshold
    equal = x == threshold
    missing = k - np.count_nonzero(above, axis=-1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=-1) <= missing))
    return np.nonzero(chosen)[-1].reshape(*x.shape[:-1], k)


def _top_k_aval(x: ShapedArray, *, k: int) -> tuple[ShapedArray, ...]:
    _check_k(x.shape, k)
    shape = (*x.shape[:-1], k)
    return (ShapedArray(shape, x.dtype), ShapedArray(shape, _INT64))


def _check_k(shape: tuple[int, ...], k: int) -> None:
    """Refuse to take more elements than there are."""
    if not shape or not 0 <= k <= shape[-1]:
        raise ShapeError(
            f"top_k: k = {k} elements asked of the last axis of shape {tuple(shape)}; k must be "
            "between 0 and its extent"
        )


def _top_k_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any], *, k: int
) -> tuple[Any, ...]:
    (t,), (values, indices) = tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(values), zeros_like_aval(indices))
    axis = len(shape_of(values)) - 1
    return (*bind(select_along_p, t, indices, axis=axis), zeros_like_aval(indices))


def _top_k_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, k: int
) -> tuple[Any, Any]:
    return bind(top_k_p, moveaxis(operands[0], dims[0], 0), k=k), (0, 0)


top_k_p = Primitive(
    "top_k",
    impl=_top_k_impl,
    abstract_eval=_top_k_aval,
    jvp=_top_k_jvp,
    batch=_top_k_batch,
    lower=Routine(top_k_lower),
    reasons=_NOT_LINEAR,
    work=_work,
    memory="own",
    axis_map=lambda x, *, k: [without((-1,), x.ndim)],
)


@boundary
def top_k(operand: object, k: int, *, axis: int = -1) -> tuple[Any, Any]:
    """The ``k`` largest elements along an axis, largest first, and their positions.

    Args:
      operand: array ``[..., n]``.
      k: how many, at most ``n``.
      axis: the axis along which they are looked for.

    Returns:
      Values ``[..., k]`` and positions ``i64[..., k]``; the lowest position first among equals.

    Raises:
      ShapeError: ``k`` is negative or above ``n``.
    """
    shape = shape_of(operand)
    k = operator.index(k)
    if not shape:
        _check_k(shape, k)
    position = normalize_axis(axis, len(shape), "axis")
    last = len(shape) - 1
    is_last = position == last
    x = operand if is_last else moveaxis(operand, position, last)
    _check_k(shape_of(x), k)
    values, indices = bind(top_k_p, x, k=k)
    if is_last:
        return values, indices
    return moveaxis(values, last, position), moveaxis(indices, last, position)


# lexsort ----------------------------------------------------------------------------------------


def _lexsort_impl(*keys: Array, axis: int) -> tuple[Any, ...]:
    if keys[0].shape[axis] == 0:
        return (np.zeros(keys[0].shape, np.int64),)
    return (np.lexsort(keys, axis=axis).astype(np.int64, copy=False),)


def _lexsort_aval(*keys: ShapedArray, axis: int) -> tuple[ShapedArray, ...]:
    if any(key.shape != keys[0].shape for key in keys):
        text = ", ".join(map(str, keys))
        raise ShapeError(f"lexsort: keys {text} must have the same shape; broadcast them first")
    return (ShapedArray(keys[0].shape, _INT64),)


def _lexsort_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, axis: int
) -> tuple[Any, Any]:
    return bind(lexsort_p, *to_front(size, operands, dims), axis=axis + 1), (0,)


lexsort_p = Primitive(
    "lexsort",
    impl=_lexsort_impl,
    abstract_eval=_lexsort_aval,
    jvp=nondifferentiable,
    batch=_lexsort_batch,
    lower=Routine(lexsort_lower),
    reasons=_NO_DERIVATIVE,
    work=_work,
    memory="own",
    axis_map=along_axis,
)


def lexsort(keys: Sequence[Any], axis: int) -> Array:
    """Positions that sort by several keys of one shape, the last key first; stable, ``i64``."""
    axis = normalize_axis(axis, len(shape_of(keys[0])), "lexsort")
    return bind(lexsort_p, *keys, axis=axis)[0]


# searchsorted -----------------------------------------------------------------------------------


def _searchsorted_impl(a: Any, v: Any, *, side: Any) -> tuple[Any, ...]:
    if a.ndim == 1:
        return (np.asarray(np.searchsorted(a, v, side), np.int64),)
    out = np.empty(v.shape, np.int64)
    for lane in np.ndindex(a.shape[:-1]):
        out[lane] = np.searchsorted(a[lane], v[lane], side)
    return (out,)


def _searchsorted_aval(a: ShapedArray, v: ShapedArray, *, side: str) -> tuple[ShapedArray, ...]:
    if a.ndim == 0 or v.shape[: a.ndim - 1] != a.shape[:-1]:
        raise ShapeError(
            f"searchsorted: sorted values {a} need one axis behind the leading axes that they "
            f"share with the values {v} looked for"
        )
    return (ShapedArray(v.shape, _INT64),)


def _searchsorted_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, side: str
) -> tuple[Any, Any]:
    a, v = operands
    if dims[0] is None and len(shape_of(a)) == 1:
        return bind(searchsorted_p, a, v, side=side), (dims[1],)
    return bind(searchsorted_p, *to_front(size, operands, dims), side=side), (0,)


searchsorted_p = Primitive(
    "searchsorted",
    impl=_searchsorted_impl,
    abstract_eval=_searchsorted_aval,
    jvp=nondifferentiable,
    batch=_searchsorted_batch,
    lower=Routine(searchsorted_lower),
    reasons=_NO_DERIVATIVE,
    memory="own",
)


def searchsorted(a: Any, v: Any, side: str = "left") -> Any:
    """Positions at which values would be put into sorted ones, ``i64``.

    Args:
      a: sorted along its last axis, ``[*lanes, n]``.
      v: values ``[*lanes, ...]``; any shape for a one-dimensional ``a``.
      side: ``"left"`` puts before equal elements, ``"right"`` behind them.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    return bind(searchsorted_p, a, v, side=side)[0]


# partition --------------------------------------------------------------------------------------


def _argpartition_impl(x: Array, *, kth: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    return (np.argpartition(x, kth, axis=axis).astype(np.int64, copy=False),)


def _argpartition_aval(x: ShapedArray, *, kth: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    if any(not 0 <= k < x.shape[axis] for k in kth):
        raise ShapeError(
            f"argpartition: positions {kth} asked along axis {axis} of {x}; they must be "
            "non-negative and below its extent"
        )
    return (ShapedArray(x.shape, _INT64),)


def _argpartition_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, kth: tuple[int, ...], axis: int
) -> tuple[Any, Any]:
    moved = _axis_moved(axis, dims[0])
    return bind(argpartition_p, operands[0], kth=kth, axis=moved), dims


argpartition_p = Primitive(
    "argpartition",
    impl=_argpartition_impl,
    abstract_eval=_argpartition_aval,
    jvp=nondifferentiable,
    batch=_argpartition_batch,
    reasons=(
        *_NO_DERIVATIVE,
        ("lower", "the order within the parts is that of NumPy's selection, which varies by CPU"),
    ),
    memory="own",
)


def argpartition(x: Array, kth: tuple[int, ...], axis: int) -> Array:
    """Positions that bring the elements ``kth`` to where a sort would bring them, ``i64``."""
    axis = normalize_axis(axis, len(shape_of(x)), "argpartition")
    return bind(argpartition_p, x, kth=kth, axis=axis)[0]


def partition(x: Array, kth: tuple[int, ...], axis: int) -> Array:
    """Bring the elements ``kth`` to where a sort would bring them, smaller ones before."""
    return select_along(x, argpartition(x, kth, axis), axis)


PRIMITIVES: tuple[Primitive, ...] = (
    select_along_p, place_along_p, sort_p, argsort_p, top_k_p, lexsort_p, searchsorted_p,
    argpartition_p,
)  # fmt: skip
