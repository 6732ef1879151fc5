"""Data that tensors are made of: nested sequences, arrays and tensors as one array.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
from array import array as array_type
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.methods.rows import plain
from functrans.autograd.promotion import CATEGORY, exact, number_dtype, wider
from functrans.autograd.tensors import Tensor


def _plain_data(data: object, found: set[Any]) -> Any:
    """Nested data with arrays in place of tensors.

    Args:
      data: what is given.
      found: takes the dtypes in it, and the types of its Python numbers.
    """
    if isinstance(data, Tensor):
        data = np.asarray(plain(data, "item()"))
    if isinstance(data, (np.ndarray, np.generic)):
        found.add(data.dtype)
        return data
    if isinstance(data, (list, tuple)):
        items = [_plain_data(item, found) for item in data]
        if not any(isinstance(x, Tensor) for x in data):
            return items
        if isinstance(data[0], Tensor) and any(x.size != 1 for x in items if hasattr(x, "size")):
            raise ValueError(
                "only one element tensors can be converted to Python scalars; torch.stack joins "
                "tensors"
            )
        return [x.reshape(()) if getattr(x, "size", 0) == 1 else x for x in items]
    found.add(type(data))
    return data


def _common(found: set[Any], default: np.dtype) -> np.dtype | None:
    """Torch's dtype of nested data: all count alike; ``None`` where NumPy's is taken."""
    dtypes = set()
    for x in found:
        is_number = isinstance(x, type) and issubclass(x, (bool, int, float, complex))
        dtypes.add(number_dtype(x, default) if is_number else x)
    if not all(isinstance(x, np.dtype) and x.kind in CATEGORY for x in dtypes):
        return None
    return functools.reduce(wider, dtypes)


def _ragged(data: Any) -> ValueError | None:
    """Torch's error for sequences of different lengths."""
    level = 0
    rows = [data]
    while rows and all(isinstance(row, (list, tuple)) for row in rows):
        length = len(rows[0])
        for row in rows:
            if len(row) != length:
                return ValueError(
                    f"expected sequence of length {length} at dim {level} (got {len(row)})"
                )
        rows = [item for row in rows for item in row]
        level += 1
    if any(isinstance(row, str) for row in rows):
        return ValueError("too many dimensions 'str'")
    return None


def array_of(data: object, dtype: DTypeLike | None, default: np.dtype) -> np.ndarray:
    """Data as an array of their own.

    Args:
      data: a number, nested sequences, arrays, tensors.
      dtype: that of the array; by default that of the data.
      default: the dtype of Python floats.

    Raises:
      ValueError: sequences of different lengths, or of text.
      RuntimeError: the data are no numbers.
      TypeError: text, or complex numbers for a real dtype.
    """
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type {type(data).__name__!r}")
    if isinstance(data, (bytearray, memoryview, array_type)):  # numbers of Python, as to torch
        data = data.tolist() if isinstance(data, memoryview) else list(data)
    found: set[Any] = set()
    values = _plain_data(data, found)
    has_dtype = any(isinstance(x, np.dtype) for x in found)
    try:
        array = np.array(values)
    except ValueError as error:
        raise _ragged(values) or error from None
    if array.dtype.kind not in "fciub" and array.dtype.name != "bfloat16":
        reason = _ragged(values)
        if reason is not None:
            raise reason
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if dtype is not None:
        kind = np.dtype(dtype)
        if complex in found and kind.kind not in "cb":
            raise TypeError(
                "'complex' object cannot be interpreted as an integer"
                if kind.kind in "iu"
                else "must be real number, not complex"
            )
        if kind.kind in "iu" and array.size and not has_dtype:
            for end in (array.min(), array.max()):
                exact(end, kind)
        return array.astype(kind)
    if has_dtype:
        common = _common(found, default)
        return array if common is None else array.astype(common, copy=False)
    if array.dtype.kind == "f":
        return array.astype(default)
    if array.dtype.kind == "c":
        return array.astype(np.result_type(default, np.complex64))
    return array
