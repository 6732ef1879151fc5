"""Shapes and dtypes that stand for arrays: ``ShapeDtypeStruct``.

Layer: ``core``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.avals import ShapedArray, dtype_name


class ShapeDtypeStruct:
    """Shape and dtype in place of an array, for ``make_jaxpr`` and ``eval_shape``.

    Args:
      shape: extents, or the only one.
      dtype: anything ``np.dtype`` accepts that is a number, in native byte order.

    Raises:
      TypeError: the dtype is of no numbers, or an extent is no integer.
      ValueError: an extent is negative.

    Example:
      >>> ShapeDtypeStruct((2, 3), np.float32)
      ShapeDtypeStruct(f32[2,3])
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: int | Sequence[int], dtype: Any) -> None:
        extents = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        self.shape = tuple([operator.index(extent) for extent in extents])
        if dtype is None:
            raise TypeError("ShapeDtypeStruct: dtype is None; give the dtype of the array")
        self.dtype = np.dtype(dtype).newbyteorder("=")
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"ShapeDtypeStruct: extents must not be negative, got {self.shape}")
        is_number = self.dtype.kind in "fciub" or self.dtype.name == "bfloat16"
        if not is_number and self.dtype != tree.FLOAT0:
            raise TypeError(f"ShapeDtypeStruct: expected a dtype of numbers, got {self.dtype}")

    def __eq__(self, other: object) -> bool:
        """Equal shape and dtype."""
        return isinstance(other, ShapeDtypeStruct) and self.aval == other.aval

    def __hash__(self) -> int:
        """Hash of shape and dtype."""
        return hash(self.aval)

    @property
    def aval(self) -> ShapedArray:
        """The abstract value."""
        return ShapedArray(self.shape, self.dtype)

    def __len__(self) -> int:
        """Extent of the first axis."""
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without axes")
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    def __repr__(self) -> str:
        """``ShapeDtypeStruct(f64[3])``."""
        return f"ShapeDtypeStruct({dtype_name(self.dtype)}[{','.join(map(str, self.shape))}])"
