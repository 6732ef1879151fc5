"""Functions that read and write at index arrays.

Here: ``gather``, ``scatter``, ``accumulate``, ``take_along_axis``, ``put_along_axis``. Not here:
the records they apply (``gather_scatter``, ``block_gather``, ``scatter_reduce``), basic indexing
(``slicing``), windows whose start is traced (``dynamic_slicing``), how ``x[...]`` is taken apart
(``functrans.arrays.indexing``).

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives import block_gather, gather_scatter, scatter_reduce
from functrans.primitives import elementwise as ew
from functrans.primitives.gather_scatter import (
    accumulate_p,
    gather_p,
    over_rest,
    scatter_add_p,
    scatter_set_p,
)
from functrans.primitives.index_arrays import Axes, Shape, index_shape, rest_shape
from functrans.primitives.scatter_reduce import UFUNCS, scatter_reduce_p
from functrans.primitives.structural import broadcast_to, cast, normalize_axis, reshape

_MODES = {
    "raise": "raise", "promise": "raise", "clip": "clip", "wrap": "wrap", "fill": "drop",
    "drop": "drop",
}  # fmt: skip


def _checked_mode(name: str, mode: str) -> str:
    try:
        return _MODES[mode]
    except KeyError:
        raise ValueError(f"{name}: mode must be one of {', '.join(_MODES)}; got {mode!r}") from None


def _check_integers(name: str, indices: Sequence[Any]) -> None:
    for index in indices:
        if type(index) is not int and dtype_of(index).kind not in "iu":
            raise TypeError(f"{name}: index arrays must be of integers, got {dtype_of(index)}")


def gather(
    x: Any, indices: Sequence[Any], axes: Axes, mode: str = "raise", fill_value: object = None
) -> Any:
    """Elements of an array at index arrays.

    Args:
      x: array.
      indices: integer arrays which broadcast together, to a shape ``S``.
      axes: the axes of ``x`` that they index, non-negative, in any order.
      mode: what an index outside ``[-n, n)`` means: ``raise`` (and ``promise``) an error, ``clip``
        and ``wrap`` as in ``np.take`` (where negative indices are outside too), ``fill`` the
        ``fill_value``.
      fill_value: by default NaN; of integers the smallest if signed, else the largest; true.

    Returns:
      Shape ``S`` and then the axes that are not indexed, in order.

    Raises:
      IndexError: an index is out of bounds; the message names it, its axis and the extent.
    """
    own_mode = _checked_mode("gather", mode)
    _check_integers("gather", indices)
    if not indices:
        return x
    (out,) = bind(gather_p, x, *indices, axes=axes, mode=own_mode)
    if own_mode != "drop":
        return out
    dtype = dtype_of(x)
    if fill_value is None:
        fill_value = default_fill(dtype)
    if type(fill_value) in (int, float) and fill_value == 0:
        return out
    is_inside: Any = True
    for index, axis in zip(indices, axes, strict=True):
        extent = shape_of(x)[axis]
        is_inside = is_inside & ((index >= -extent) & (index < extent))
    return ew.where(over_rest(is_inside, shape_of(out)), out, cast(fill_value, dtype))


def default_fill(dtype: np.dtype) -> Any:
    """What ``mode="fill"`` reads out of bounds."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(info.min if dtype.kind == "i" else info.max, dtype)
    return True if dtype.kind == "b" else np.nan


def scatter(
    x: Operand,
    v: Operand,
    indices: Sequence[Any],
    axes: Axes,
    op: str = "set",
    mode: str = "raise",
    unique_indices: bool = False,
) -> Any:
    """An array with values written, or combined with it, at index arrays.

    Args:
      x: array; it is not changed.
      v: broadcasts to shape ``S`` and then the axes that are not indexed; converted to the dtype
        of ``x``.
      indices: integer arrays which broadcast together, to a shape ``S``.
      axes: the axes of ``x`` that they index, non-negative, in any order.
      op: ``set`` (of several writes to one place the last one counts), ``add``, ``multiply``,
        ``minimum`` or ``maximum`` (all of them count).
      mode: what an index outside ``[-n, n)`` means: ``raise`` (and ``promise``) an error, ``clip``
        and ``wrap`` as in ``np.take``, ``drop`` (and ``fill``) that nothing is written.
      unique_indices: the caller knows that no place is written twice; the derivative is cheaper.

    Raises:
      IndexError: an index is out of bounds; the message names it, its axis and the extent.
      ShapeError: the value does not fit.
    """
    own_mode = _checked_mode("scatter", mode)
    _check_integers("scatter", indices)
    s = index_shape("scatter", [shape_of(i) for i in indices]) if indices else ()
    slot = s + rest_shape(shape_of(x), axes)
    v = cast(v, dtype_of(x))
    if type(v) is np.ndarray and not v.ndim:
        v = v[()]  # a NumPy scalar is a literal in a program
    if shape_of(v) not in ((), slot):
        v = _broadcast_value(v, slot)
    if not indices:
        return _combine(x, v, op)
    if math.prod(s) <= 1:
        unique_indices = True
    params = {"axes": axes, "mode": own_mode, "unique_indices": unique_indices}
    if op == "set":
        return bind(scatter_set_p, x, v, *indices, **params)[0]
    if op == "add":
        return bind(scatter_add_p, x, v, *indices, **params)[0]
    if op not in UFUNCS:
        names = ", ".join(("set", "add", *UFUNCS))
        raise ValueError(f"scatter: op must be one of {names}; got {op!r}")
    return bind(scatter_reduce_p, x, v, *indices, op=op, **params)[0]


def _broadcast_value(v: Operand, slot: Shape) -> Any:
    """A value in the shape that is written; extra leading axes of extent 1 go, as in NumPy."""
    shape = shape_of(v)
    extra = len(shape) - len(slot)
    if extra > 0 and shape[:extra] == (1,) * extra:
        v = reshape(v, shape[extra:])
    try:
        return broadcast_to(v, slot)
    except ValueError:
        raise ShapeError(
            f"scatter: a value of shape {shape} does not broadcast to the shape {slot} that the "
            "indices select"
        ) from None


def _combine(x: Operand, v: Operand, op: str) -> Any:
    """What ``scatter`` does without indices: the whole array is the place."""
    if op == "set":
        return broadcast_to(v, shape_of(x))
    return {"add": ew.add, "multiply": ew.multiply, "minimum": ew.minimum, "maximum": ew.maximum}[
        op
    ](x, v)


def accumulate(
    v: Any, indices: Sequence[Any], axes: Axes, shape: Shape, mode: str = "raise"
) -> Array:
    """Zeros of a shape with values added at index arrays: the transpose of ``gather``.

    Args:
      v: shape ``S`` and then the axes that are not indexed, or ``()``.
      indices: integer arrays which broadcast together, to a shape ``S``.
      axes: the axes of the result that they index, non-negative, in any order.
      shape: of the result.
      mode: as in ``scatter``.
    """
    own_mode = _checked_mode("accumulate", mode)
    _check_integers("accumulate", indices)
    return bind(accumulate_p, v, *indices, shape=shape, axes=axes, mode=own_mode)[0]


def _along_axis(shape: Shape, index: Array, axis: int) -> tuple[Any, ...]:
    """Index arrays of all axes: ``index`` for one, the own position for the others."""
    ndim = len(shape)
    if len(shape_of(index)) != ndim:
        raise ShapeError(
            f"take_along_axis: the index array has {len(shape_of(index))} axes, the array {ndim}"
        )
    return tuple(
        [
            index if k == axis else np.arange(n).reshape((n,) + (1,) * (ndim - k - 1))
            for k, n in enumerate(shape)
        ]
    )


def take_along_axis(
    x: Any, index: Array, axis: int, mode: str = "raise", fill_value: object = None
) -> Array:
    """``np.take_along_axis``: one index array for each line along an axis."""
    shape = shape_of(x)
    axis = normalize_axis(axis, len(shape), "axis")
    indices = _along_axis(shape, index, axis)
    return gather(x, indices, tuple(range(len(shape))), mode, fill_value)


def put_along_axis(
    x: Array | complex,
    index: Array,
    v: Array,
    axis: int,
    op: str = "set",
    mode: str = "raise",
    unique_indices: bool = False,
) -> Array:
    """``np.put_along_axis`` as a function: the array with values written along an axis.

    Args:
      x: array; it is not changed.
      index: integers, as many axes as ``x``.
      v: broadcasts against ``index``.
      axis: the axis that is indexed.
      op: as in ``scatter``.
      mode: as in ``scatter``.
      unique_indices: no line is written twice at one place (a permutation, for instance).
    """
    shape = shape_of(x)
    axis = normalize_axis(axis, len(shape), "axis")
    indices = _along_axis(shape, index, axis)
    return scatter(x, v, indices, tuple(range(len(shape))), op, mode, unique_indices)


PRIMITIVES = (*gather_scatter.PRIMITIVES, *block_gather.PRIMITIVES, *scatter_reduce.PRIMITIVES)
