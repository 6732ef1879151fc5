"""Indexing of ``Tensor``: views where NumPy gives views, gathers elsewhere, and writes.

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.operations import as_tensor, check_write, composite, view, write
from functrans.autograd.tensor import Tensor
from functrans.indexing import index_value, updated


def _plain_index(index: Any) -> Any:
    """An index with tensors replaced by arrays."""
    if isinstance(index, tuple):
        return tuple(_plain_index(i) for i in index)
    if isinstance(index, Tensor):
        value = index._value
        return value.item() if not index.shape and index.dtype.kind in "iu" else np.asarray(value)
    if isinstance(index, list):
        return np.asarray([_plain_index(i) for i in index])
    return index


def _is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(
        item is None
        or item is Ellipsis
        or isinstance(item, slice)
        or (isinstance(item, (int, np.integer)) and not isinstance(item, bool))
        for item in items
    )


def _getitem(self: Tensor, index: Any) -> Tensor:
    index = _plain_index(index)
    if _is_basic(index):
        has_slice = isinstance(index, (slice, tuple))
        return view(
            "Slice" if has_slice else "Select",
            self,
            lambda x: index_value(x, index),
            lambda x: x[(*index, ...)] if isinstance(index, tuple) and Ellipsis not in index
            else x[index, ...] if not isinstance(index, tuple) and index is not Ellipsis
            else x[index],
        )  # fmt: skip
    return composite("Index", lambda x: index_value(x, index), self)  # type: ignore[no-any-return]  # a tensor


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    index = _plain_index(index)
    value = as_tensor(value, self)
    if not isinstance(value, Tensor):
        value = self._trace.lift(np.asarray(value, self.dtype))
    if _is_basic(index):
        part = _getitem(self, index)
        check_write(part)
        write("copy_", part, value)
        return
    check_write(self)
    new = composite("IndexPut", lambda x, v: updated(x, index, v), self, value)
    write("index_put_", self, new)


METHODS: dict[str, Any] = {"__getitem__": _getitem, "__setitem__": _setitem}
