"""Indexing of ``Tensor``: views where NumPy gives views, gathers elsewhere, and writes.

Here: ``x[index]`` and ``x[index] = value``. Not here: reading and writing at index tensors by name
(``gathering``).

Layer: ``autograd``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans.arrays.indexing import index_value, updated
from functrans.autograd.composites import composite
from functrans.autograd.methods.rows import overwrite
from functrans.autograd.promotion import as_tensor, exact, python_number, to_dtype
from functrans.autograd.tensors import Tensor
from functrans.autograd.views import view
from functrans.autograd.writes import check_write, write
from functrans.core.boundary import cause, warn
from functrans.core.dispatch import Tracer

_SEVERAL = (Tensor, Tracer, np.ndarray, slice, str, list, tuple, range)
"""What makes a tuple of a list that holds it."""
_INTEGERS = (int, np.integer)
_LISTS = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] "
    "instead of x[seq]."
)


def plain_index(index: object) -> Any:
    """An index with tensors replaced by arrays, lists by arrays.

    A short list that holds anything but numbers is a tuple of indices.
    """
    if type(index) is list and _is_tuple(index):
        warn(_LISTS)
        index = tuple(index)
    if isinstance(index, tuple):
        return tuple([_plain_item(i) for i in index])
    return _plain_item(index)


def _is_tuple(index: list[Any]) -> bool:
    return len(index) < 32 and any(
        item is None or item is Ellipsis or isinstance(item, _SEVERAL) for item in index
    )


def _plain_item(index: object) -> Any:
    if isinstance(index, Tensor):
        value = index._value
        if isinstance(value, Tracer):
            return value
        if index.dtype == np.uint8:
            value = np.asarray(value).astype(bool)
        if index.dtype.kind in "fc":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return value.item() if not index.shape and index.dtype.kind in "iu" else np.asarray(value)
    if isinstance(index, (list, range, tuple)):
        return np.asarray([_plain_item(i) for i in index], None if len(index) else np.int64)
    if isinstance(index, np.ndarray) and index.shape and index.dtype == np.uint8:
        return index.astype(bool)
    return index


def _is_basic(index: object) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(
        item is None
        or item is Ellipsis
        or isinstance(item, slice)
        or (isinstance(item, _INTEGERS) and not isinstance(item, bool))
        for item in items
    )


def _check_basic(self: Tensor, index: object) -> None:
    """Refuse what torch refuses."""
    items = index if isinstance(index, tuple) else (index,)
    taken = [item for item in items if item is not None and item is not Ellipsis]
    shape = self._value.shape
    ndim = len(shape)
    if len(taken) > ndim:
        if not ndim:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    axis = 0
    for position, item in enumerate(items):
        if item is Ellipsis:
            axis = ndim - sum(i is not None for i in items[position + 1 :])
            continue
        if item is None:
            continue
        if isinstance(item, slice):
            if item.step is not None and _end(item.step) <= 0:
                raise ValueError("step must be greater than zero")
        elif not -shape[axis] <= item < shape[axis]:
            raise IndexError(
                f"index {item} is out of bounds for dimension {axis} with size {shape[axis]}"
            )
        axis += 1


def _label(index: object) -> str:
    """Torch's name of the last step of a basic index."""
    items = [i for i in (index if isinstance(index, tuple) else (index,)) if i is not Ellipsis]
    for item in reversed(items):
        if item is None:
            return "Unsqueeze"
        if not isinstance(item, slice):
            return "Select"
        if item != slice(None):
            return "Slice"
    return "Alias" if not items else "Slice"


def _end(end: Any) -> int:
    """An end of a slice, or its step."""
    if not hasattr(end, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return operator.index(end)


def _clean(index: object) -> Any:
    """A basic index with plain integers."""
    if isinstance(index, tuple):
        return tuple([_clean(i) for i in index])
    if isinstance(index, slice):
        ends = (index.start, index.stop, index.step)
        return slice(*[None if i is None else _end(i) for i in ends])
    return int(index) if isinstance(index, np.integer) else index


def _selects_first(index: object, ndim: int) -> tuple[Any, Any] | None:
    """A mixed index as a basic one and an advanced one after it, as torch reads it.

    Integers and new axes beside arrays are applied first, so that they do not count among the
    arrays, as they do in NumPy. A single truth value is a mask of a new axis with one element.

    Returns:
      Both; ``None`` where NumPy means the same.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not any(item is None or _is_truth(item) or _is_integer(item) for item in items):
        return None
    if all(_is_plain(item) and not _is_truth(item) for item in items):
        return None
    taken = 0
    for item in items:
        if _is_truth(item):
            continue
        if not _is_plain(item) and item.dtype == bool:
            taken += item.ndim
        elif item is not None and item is not Ellipsis:
            taken += 1
    first: list[Any] = []
    then: list[Any] = []
    for item in (*items, *(() if Ellipsis in _plain_items(items) else (Ellipsis,))):
        if item is Ellipsis:
            first += [slice(None)] * (ndim - taken)
            then += [slice(None)] * (ndim - taken)
        elif _is_truth(item):
            first.append(None)
            then.append(np.zeros(int(item), np.int64))
        elif not _is_plain(item):
            first += [slice(None)] * (item.ndim if item.dtype == bool else 1)
            then.append(item)
        elif item is None or isinstance(item, slice):
            first.append(item)
            then.append(slice(None))
        else:
            first.append(item)
    return tuple(first), tuple(then)


def _is_truth(item: Any) -> bool:
    is_array = isinstance(item, np.ndarray)
    return (is_array and not item.shape and item.dtype == bool) or isinstance(item, (bool, np.bool))


def _is_integer(item: object) -> bool:
    """Whether it is a number, which may be traced."""
    is_traced = isinstance(item, Tracer) and not item.shape and item.dtype.kind in "iu"
    return is_traced or isinstance(item, _INTEGERS)


def _is_plain(item: object) -> bool:
    return not isinstance(item, (np.ndarray, Tracer)) or _is_integer(item)


def _plain_items(items: Any) -> list[Any]:
    return [item for item in items if not isinstance(item, (np.ndarray, Tracer))]


@contextmanager
def inside(shape: tuple[int, ...], index: object) -> Iterator[None]:
    """Say which element of an index does not fit a shape, in torch's words."""
    try:
        yield
    except IndexError as error:
        items = [item for item in _tuple_of(index) if item is not None]
        axes = [_axes_taken(item) for item in items]
        if sum(n for item, n in zip(items, axes, strict=True) if item is not Ellipsis) > len(shape):
            words = f"too many indices for tensor of dimension {len(shape)}"
            raise IndexError(words) from cause(error)
        axis = 0
        for item, extent in zip(items, axes, strict=True):
            if item is Ellipsis:
                axis += len(shape) - sum(axes) + 1
                continue
            if isinstance(item, (int, np.ndarray)) and extent == 1 and axis < len(shape):
                places = np.asarray(item)
                n = shape[axis]
                bad = places[(places < -n) | (places >= n)]
                if bad.size and places.dtype != bool:
                    raise IndexError(
                        f"index {bad[0]} is out of bounds for dimension {axis} with size {n}"
                    ) from cause(error)
            if isinstance(item, (np.ndarray, Tracer)) and item.dtype.kind == "b":
                for i, own in enumerate(item.shape):
                    if own != shape[axis + i]:
                        raise IndexError(
                            f"The shape of the mask {list(item.shape)} at index {i} does not match "
                            f"the shape of the indexed tensor {list(shape)} at index {axis + i}"
                        ) from cause(error)
            axis += extent
        raise


def _axes_taken(item: Any) -> int:
    """How many axes an item of an index stands for."""
    is_array = isinstance(item, (np.ndarray, Tracer))
    return len(item.shape) if is_array and item.dtype.kind == "b" else 1


def _tuple_of(index: object) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def index_put(x: Tensor, index: Any, value: Tensor, op: str = "set") -> Tensor:
    """Elements at a plain index replaced, or values added to them."""
    with inside(x.shape, index):
        return composite("IndexPut", lambda x, v: updated(x, index, v, op), x, value)


def _getitem(self: Tensor, index: object) -> Tensor:
    if type(index) is int:
        shape, at = self._value.shape, index
        if shape and -shape[0] <= at < shape[0]:
            return view("Select", self, lambda x: index_value(x, at), lambda x: x[at, ...])
    index = plain_index(index)
    if _is_basic(index):
        index = _clean(index)
        _check_basic(self, index)
        full = index if isinstance(index, tuple) else (index,)
        if Ellipsis not in full:
            full = (*full, Ellipsis)
        return view(_label(index), self, lambda x: index_value(x, index), lambda x: x[full])
    parts = _selects_first(index, len(self.shape))
    if parts is not None:
        return _getitem(_getitem(self, parts[0]), parts[1])
    with inside(self.shape, index):
        return composite("Index", lambda x: index_value(x, index), self)


def _setitem(self: Tensor, index: object, value: Any) -> None:
    index = plain_index(index)
    is_tensor = isinstance(value, Tensor)
    value = python_number(value) if isinstance(value, np.generic) else as_tensor(value, self)
    if value is None:
        raise TypeError(f"can't assign a NoneType to a tensor of dtype {self.dtype}")
    if not isinstance(value, Tensor):
        is_number = isinstance(value, (int, float, complex))
        array = exact(value, self.dtype) if is_number else np.asarray(value, self.dtype)
        value = self._trace.lift(array)
    if _is_basic(index):
        part = self if index is Ellipsis else _getitem(self, index)
        check_write(part)
        extra = len(value.shape) - len(part.shape)
        if extra > 0 and value.shape[:extra] == (1,) * extra:
            value = value.reshape(value.shape[extra:])
        if is_tensor:  # to any dtype, as copy_
            value = to_dtype(value, part.dtype)
        write("copy_", part, value)
        return
    parts = _selects_first(index, len(self.shape))
    if parts is not None:
        _setitem(_getitem(self, parts[0]), parts[1], value)
        return
    if value.dtype != self.dtype:
        if value.shape:
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{self.dtype} for the destination and {value.dtype} for the source."
            )
        value = value.to(self.dtype)
    overwrite(
        "index_put_",
        self,
        lambda x: index_put(x, index, value),
    )


METHODS: dict[str, Any] = {"__getitem__": _getitem, "__setitem__": _setitem}
