"""NumPy code behind the indexing primitives: reading and writing at index arrays.

Here: functions of plain ndarrays. Not here: the records of the primitives and everything that
knows of tracers (``gather_scatter``, ``scatter_reduce``).

Canonical form: index arrays, broadcast together to a shape ``S``, index the axes ``axes`` of an
array; the other axes are its *rest*, in order. What is read or written has shape ``S + rest``.
Modes for indices outside ``[-n, n)``: ``raise``; ``clip`` and ``wrap`` as in ``np.take`` (there a
negative index is outside too); ``drop`` reads 0 and writes nothing. ``inside`` says that all are
known to be in ``[0, n)``: machine code does not look, NumPy raises.

Writes happen in the row-major order of ``S``, so that among several to one place the last one
counts. NumPy iterates over several index arrays in the order of their memory, which for arrays that
are not C-contiguous is another order; therefore they are made one-dimensional first.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.kernels import table as kernels

Indices = tuple[Any, ...]
Axes = tuple[int, ...]
Shape = tuple[int, ...]

_TAKE_SIZE = 512
"""From this many indices on, ``take`` is faster than ``x[index]`` on a vector (0.24 us more)."""
_COLUMNS = 16
"""Up to this many elements per index, one ``ufunc.at`` each (2-4 times faster than one for all)."""
_ROWS = 512
"""From this many elements per index on, one addition of rows per index (0.6 us) is faster."""
_WRITE_S, _SORT_S = 2e-9, 1e-7
"""What a kernel saves for each element that is combined, for each write that is sorted."""
_SPARSE = 64
"""Up to this many places per write a table of all places is faster than sorting."""

_FIRST = (0,)


def rest_axes(ndim: int, axes: Axes) -> Axes:
    """The axes that are not indexed, in order."""
    return tuple([axis for axis in range(ndim) if axis not in axes])


def rest_shape(shape: Shape, axes: Axes) -> Shape:
    """Extents of the axes that are not indexed."""
    return tuple([extent for axis, extent in enumerate(shape) if axis not in axes])


def index_shape(name: str, shapes: list[Shape]) -> Shape:
    """The shape ``S`` that index arrays broadcast to.

    Raises:
      ShapeError: they do not broadcast.
    """
    if len(shapes) == 1:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = ", ".join(map(str, shapes))
        raise ShapeError(
            f"{name}: index arrays of shapes {text} do not broadcast together; extents must be "
            "equal or 1, counted from the last axis"
        ) from None


def out_of_bounds(name: str, indices: Indices, shape: Shape, axes: Axes) -> Exception:
    """The error for index arrays that NumPy refused: names index, axis, extent and line."""
    for index, axis in zip(indices, axes, strict=True):
        values = np.asarray(index)
        extent = shape[axis]
        if extent == 0 and values.size:
            return IndexError(
                f"{name}: axis {axis} of shape {shape} is empty{here(3)}; no index fits it"
            )
        is_bad = (values < -extent) | (values >= extent)
        if is_bad.any():
            position = tuple([int(k) for k in np.argwhere(is_bad)[0]])
            where = f" (at position {position} of the index array)" if position else ""
            return IndexError(
                f"{name}: index {values[position]}{where} is out of bounds for axis {axis} with "
                f"extent {extent}{here(3)}; modes 'clip', 'wrap' and 'fill' (reading) or 'drop' "
                "(writing) accept any index"
            )
    index_shape(name, [np.shape(index) for index in indices])
    dtypes = ", ".join(str(np.asarray(index).dtype) for index in indices)
    return IndexError(f"{name}: index arrays must be of integers, got {dtypes}{here(3)}")


def _resolve(
    name: str, indices: Indices, shape: Shape, axes: Axes, mode: str
) -> tuple[Indices, np.ndarray | None]:
    """Indices for which ``raise`` has the meaning of ``mode``, and which of them count.

    Returns:
      Indices, and a mask (``None`` when all count) that broadcasts to ``S``.
    """
    if mode in ("raise", "inside"):
        return indices, None
    whole = tuple([np.asarray(index).astype(np.intp, copy=False) for index in indices])
    extents = [shape[axis] for axis in axes]
    if mode == "drop":
        is_inside: Any = True
        for index, n in zip(whole, extents, strict=True):
            is_inside = is_inside & (index >= -n) & (index < n)
        if np.size(is_inside) and np.all(is_inside):
            return whole, None
        return tuple([np.where(is_inside, index, 0) for index in whole]), is_inside
    if 0 in extents and math.prod(index_shape(name, [index.shape for index in whole])) > 0:
        raise out_of_bounds(name, indices, shape, axes)
    if mode == "clip":
        pairs = zip(whole, extents, strict=True)
        return tuple([np.minimum(np.maximum(i, 0), max(n - 1, 0)) for i, n in pairs]), None
    return tuple([i % max(n, 1) for i, n in zip(whole, extents, strict=True)]), None


def _meets_nothing(shape: Shape, axes: Axes, mode: str) -> bool:
    """Whether there are no elements to read or write, whatever the indices: none is out of bounds.

    As in NumPy's ``take``; with ``mode="raise"`` indices are looked at all the same.
    """
    return mode in ("clip", "wrap") and 0 in rest_shape(shape, axes)


# reading ----------------------------------------------------------------------------------------


def read_at(x: np.ndarray, indices: Indices, axes: Axes, mode: str) -> Array:
    """Elements at index arrays, shape ``S + rest``; a view where all indices are scalars."""
    if mode == "drop":
        return _read_inside(x, indices, axes)
    if _meets_nothing(x.shape, axes, mode):
        s = index_shape("gather", [np.shape(index) for index in indices])
        return np.empty(s + rest_shape(x.shape, axes), x.dtype)
    try:
        if len(indices) == 1:
            if mode == "raise" and axes == _FIRST and _is_scalar(indices[0]):
                return x[indices[0]]
            return _read_axis(x, indices[0], axes[0], mode)
        indices, _ = _resolve("gather", indices, x.shape, axes, mode)
        return x.transpose(axes + rest_axes(x.ndim, axes))[indices]
    except IndexError:
        raise out_of_bounds("gather", indices, x.shape, axes) from None


def _read_axis(x: np.ndarray, index: Any, axis: int, mode: str) -> Array:
    """Elements at one index array.

    ``take`` copies whole runs, but first makes a copy of an array that is not C-contiguous.
    """
    index = np.asarray(index)
    ndim = index.ndim
    mode = "raise" if mode == "inside" else mode
    if mode != "raise" and not x.flags.c_contiguous:
        (index,), _ = _resolve("gather", (index,), x.shape, (axis,), mode)
        mode = "raise"
    if mode == "raise" and (
        not ndim or not x.flags.c_contiguous or (x.ndim == 1 and index.size < _TAKE_SIZE)
    ):
        if axis:
            x = x.transpose((axis, *rest_axes(x.ndim, (axis,))))
        return x[index]
    if index.dtype == np.uint64:  # which ``take`` refuses
        index = index.astype(np.intp)
    out = x.take(index, axis, mode=mode)  # type: ignore[call-overload]  # mode is one of the three
    if axis and ndim:
        moved = range(axis, axis + ndim)
        out = out.transpose((*moved, *rest_axes(out.ndim, tuple(moved))))
    return out


def _read_inside(x: np.ndarray, indices: Indices, axes: Axes) -> Array:
    """Elements at index arrays; 0 where an index is out of bounds."""
    safe, is_inside = _resolve("gather", indices, x.shape, axes, "drop")
    if is_inside is None:
        return read_at(x, safe, axes, "raise")
    shape = index_shape("gather", [np.shape(index) for index in safe])
    if not shape or 0 in [x.shape[axis] for axis in axes]:
        return np.zeros(shape + rest_shape(x.shape, axes), x.dtype)
    out = read_at(x, safe, axes, "raise")
    out[~np.broadcast_to(is_inside, shape)] = 0
    return out


def places_along(index: Any, shape: Shape, axes: Axes, mode: str) -> Array:
    """Where indices along one axis of a shape point, in ``[0, n)``; -1 for one that is dropped.

    Raises:
      IndexError: as ``read_at`` of an array of the shape.
    """
    n = shape[axes[0]]
    (found,), is_inside = _resolve("gather", (index,), shape, axes, mode)
    found = np.asarray(found).astype(np.int64)
    if mode == "raise" and ((np.asarray(index) < -n) | (np.asarray(index) >= n)).any():
        raise out_of_bounds("gather", (index,), shape, axes)
    found = np.where(found < 0, found + n, found)
    return found if is_inside is None else np.where(is_inside, found, -1)


# writing ----------------------------------------------------------------------------------------


def _flattened(
    name: str, v: Array, indices: Indices, shape: Shape, axes: Axes, mode: str
) -> tuple[Any, Indices, Shape]:
    """Value and indices with one axis in place of those of ``S``, without writes that are dropped.

    Returns:
      Value of shape ``(N, *rest)`` or ``()``, indices of shape ``(N,)``, the rest.
    """
    if mode == "raise" and len(indices) == 1 and indices[0].ndim == 1:
        return v, (np.ascontiguousarray(indices[0]),), rest_shape(shape, axes)
    indices, is_inside = _resolve(name, indices, shape, axes, mode)
    s = index_shape(name, [np.shape(index) for index in indices])
    rest = rest_shape(shape, axes)
    count = math.prod(s)
    flat = tuple([_raveled(index, s) for index in indices])
    if np.ndim(v):
        v = np.reshape(v, (count, *rest))
    if is_inside is not None:
        mask = _raveled(is_inside, s)
        flat = tuple([index[mask] for index in flat])
        v = v[mask] if np.ndim(v) else v
    return v, flat, rest


def _raveled(index: Array, s: Shape) -> Array:
    """An index array broadcast to ``S``, in row-major order, contiguous."""
    index = np.asarray(index)
    return (index if index.shape == s else np.broadcast_to(index, s)).ravel()


def _front(out: np.ndarray, axes: Axes) -> np.ndarray:
    """A view with the indexed axes in front."""
    return out if axes == _FIRST else out.transpose(axes + rest_axes(out.ndim, axes))


def _is_scalar(index: Array | complex) -> bool:
    """Whether an index is one number: a Python int, a NumPy scalar or a 0-d array."""
    return not isinstance(index, np.ndarray) or not index.ndim


def all_scalar(indices: Indices) -> bool:
    """Whether all indices are numbers."""
    return all(map(_is_scalar, indices))


def write_set(
    out: np.ndarray, v: Array, indices: Indices, axes: Axes, mode: str, unique_indices: bool
) -> None:
    """Write into ``out`` at index arrays; of several writes to one place the last one counts.

    Args:
      out: changed.
      v: shape ``S + rest`` or ``()``.
      indices: index arrays.
      axes: the axes they index.
      mode: for indices out of bounds.
      unique_indices: no place is written twice.
    """
    shape = out.shape
    if _meets_nothing(shape, axes, mode):
        return
    front = _front(out, axes)
    try:
        if mode != "raise" or not (unique_indices or all_scalar(indices)):
            v, indices, _ = _flattened("scatter", v, indices, shape, axes, mode)
        front[indices] = v
    except IndexError:
        raise out_of_bounds("scatter", indices, shape, axes) from None


def write_with(
    ufunc: np.ufunc,
    out: np.ndarray,
    v: Array,
    indices: Indices,
    axes: Axes,
    mode: str,
    unique_indices: bool,
) -> None:
    """``out[indices] = ufunc(out[indices], v)`` for one index after the other.

    ``ufunc.at`` is fast for one-dimensional operands of one dtype only, so that everything else is
    brought to that form.

    Args:
      ufunc: addition, multiplication, maximum, minimum.
      out: C-contiguous (the memory is written in flat form); changed.
      v: shape ``S + rest`` or ``()``.
      indices: index arrays.
      axes: the axes they index.
      mode: for indices out of bounds.
      unique_indices: no place is written twice.
    """
    assert out.flags.c_contiguous
    shape = out.shape
    if _meets_nothing(shape, axes, mode):
        return
    front = _front(out, axes)
    try:
        if mode == "raise" and all_scalar(indices):
            front[indices] = ufunc(front[indices], v)
            return
        v, indices, rest = _flattened("scatter", v, indices, shape, axes, mode)
        if out.ndim == 1:
            ufunc.at(out, indices[0], v)
            return
        width = math.prod(rest)
        if unique_indices and width > _COLUMNS:
            front[indices] = ufunc(front[indices], v)
            return
        if width >= _ROWS:
            rows = np.broadcast_to(v, (len(indices[0]), *rest))
            for place, row in zip(zip(*indices, strict=True), rows, strict=True):
                front[place] = ufunc(front[place], row)
            return
        _write_flat(ufunc, out, v, indices, axes, rest)
    except IndexError:
        raise out_of_bounds("scatter", indices, shape, axes) from None


def _write_flat(
    ufunc: np.ufunc, out: np.ndarray, v: Array, indices: Indices, axes: Axes, rest: Shape
) -> None:
    """The writes of ``write_with`` by offsets into the flat memory of ``out``."""
    strides = [stride // out.itemsize for stride in out.strides]
    places = np.zeros(len(indices[0]), np.intp)
    for index, axis in zip(indices, axes, strict=True):
        n = out.shape[axis]
        if index.size and (index.min() < -n or index.max() >= n):
            raise IndexError
        wrapped = index.astype(np.intp, copy=False)
        places += np.where(wrapped < 0, wrapped + n, wrapped) * strides[axis]
    offsets = np.zeros(rest, np.intp)
    for position, axis in enumerate(rest_axes(out.ndim, axes)):
        own = np.arange(out.shape[axis]) * strides[axis]
        offsets += own.reshape((-1,) + (1,) * (len(rest) - position - 1))
    offsets = offsets.ravel()
    flat = out.reshape(-1)
    kernel = kernels.name_for(f"scatter_{ufunc.__name__}", out.dtype)
    if flat.flags.aligned and kernels.pays(kernel, _WRITE_S * len(places) * len(offsets)):
        values = np.require(v, out.dtype, ["C", "A"])
        step = int(values.ndim > 0)
        kernels.function(kernel)(flat, values.reshape(-1), places, offsets, step)
        return
    if len(offsets) <= _COLUMNS:
        columns = np.reshape(v, (len(places), len(offsets))) if np.ndim(v) else None
        for k, offset in enumerate(offsets):
            ufunc.at(flat, places + offset, v if columns is None else columns[:, k])
        return
    every = (places[:, None] + offsets).ravel()
    ufunc.at(flat, every, np.reshape(v, -1) if np.ndim(v) else v)


# which writes meet ------------------------------------------------------------------------------


def last_writes(indices: Indices, extents: Shape, mode: str) -> Array:
    """Whether each write is the last one to its place, shape ``S``."""
    s = index_shape("scatter", [np.shape(index) for index in indices])
    count = math.prod(s)
    numbers = np.arange(count, dtype=np.int32 if count < 1 << 31 else np.intp).reshape(s)
    axes = tuple(range(len(extents)))
    winner = np.empty(extents, numbers.dtype)
    write_set(winner, numbers, indices, axes, mode, False)
    is_last = read_at(winner, indices, axes, mode) == numbers
    if mode == "drop":
        _, is_inside = _resolve("scatter", indices, extents, axes, mode)
        if is_inside is not None:
            is_last = is_last & is_inside
    return np.asarray(is_last)


def neighbour_writes(indices: Indices, extents: Shape, mode: str) -> tuple[Any, Any]:
    """Per write the previous and the next one to its place, as positions in row-major order.

    Returns:
      Two integer arrays of shape ``S``; -1 where there is none.
    """
    axes = tuple(range(len(extents)))
    s = index_shape("scatter", [np.shape(index) for index in indices])
    safe, is_inside = _resolve("scatter", indices, extents, axes, mode)
    keys: Any = np.int64(0)
    for index, n in zip(safe, extents, strict=True):
        wrapped = np.asarray(index).astype(np.int64, copy=False)
        keys = keys * n + np.where(wrapped < 0, wrapped + n, wrapped)
    if is_inside is not None:
        keys = np.where(is_inside, keys, -1)
    flat = _raveled(keys, s)
    before = np.full(len(flat), -1, np.int64)
    after = np.full(len(flat), -1, np.int64)
    extent = max(math.prod(extents), 1)
    if extent <= _SPARSE * len(flat) and kernels.pays("neighbour_writes", _SORT_S * len(flat)):
        latest = np.full(extent, -1, np.int64)
        kernels.function("neighbour_writes")(flat, latest, before, after)
        return before.reshape(s), after.reshape(s)
    order = np.argsort(flat, kind="stable")
    first, second = order[:-1], order[1:]
    meets = (flat[first] == flat[second]) & (flat[second] >= 0)
    before[second[meets]] = first[meets]
    after[first[meets]] = second[meets]
    return before.reshape(s), after.reshape(s)


def check_indices(*avals: object, mode: str, **_: tuple[int, ...]) -> None:
    """The ``check`` of primitives on an array and index arrays: gathers.

    Raises:
      TypeError: they are not of integers.
      ValueError: the mode is none that looks at indices; only plans, as they know the indices, have
        ``inside``.
    """
    check_integers(avals[1:])
    if mode not in ("raise", "clip", "wrap", "drop"):
        raise ValueError(f"mode={mode!r}; expected 'raise', 'clip', 'wrap' or 'drop'")


def check_scatter(x: Any, v: Any, *indices: Any, mode: str, **_: object) -> None:
    """The ``check`` of primitives on an array, what is written to it, and index arrays.

    Raises:
      TypeError, ValueError: see ``check_indices``.
    """
    check_indices(x, *indices, mode=mode)


def check_writes(*indices: object, extents: Shape, mode: str) -> None:
    """The ``check`` of primitives on index arrays alone, one for each extent.

    Raises:
      TypeError: there are more or fewer, or they are not of integers.
      ValueError: see ``check_indices``.
    """
    if len(indices) != len(extents):
        raise TypeError(f"{len(indices)} index arrays for extents {extents}")
    check_indices(None, *indices, mode=mode)


def check_integers(indices: Sequence[Any]) -> None:
    """Refuse index arrays that are not of integers.

    Raises:
      TypeError: names the first that is not.
    """
    for index in indices:
        if index.dtype.kind not in "iu":
            raise TypeError(f"{index} as an index array; expected integers")
