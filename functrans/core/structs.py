"""Shapes and dtypes that stand for arrays: ``ShapeDtypeStruct``, ``SymbolicZero``.

Layer: ``core``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.avals import ShapedArray, dtype_name
from functrans.core.boundary import boundary


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

    @boundary
    def __init__(self, shape: int | Sequence[int], dtype: Any) -> None:
        try:
            extents = (shape,) if hasattr(shape, "__index__") else tuple(shape)
            self.shape = tuple([operator.index(extent) for extent in extents])
        except TypeError:
            raise TypeError(
                f"ShapeDtypeStruct: shape must be a tuple of integers, got {shape!r}"
            ) from None
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

    def __array_function__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """NumPy's functions ``zeros_like`` and its kin; others need numbers."""
        if func not in _LIKE:
            return NotImplemented
        place = "prototype" if func is np.empty_like and not args else "a"
        rest = {name: value for name, value in kwargs.items() if name != place}
        rest["shape"] = self.shape if rest.get("shape") is None else rest["shape"]
        return func(np.empty((), self.dtype), *args[1:], **rest)

    def __repr__(self) -> str:
        """``ShapeDtypeStruct(f64[3])``."""
        return f"ShapeDtypeStruct({dtype_name(self.dtype)}[{','.join(map(str, self.shape))}])"


class SymbolicZero:
    """A tangent or cotangent that is zero for certain, in rules that ask for such.

    Rules set with ``defjvp(..., symbolic_zeros=True)`` and ``defvjp(..., symbolic_zeros=True)`` get
    it in place of an array of zeros, and any rule may return it.

    Attributes:
      aval: shape and dtype of the array that it stands for; dtype ``float0`` for an integer's.

    Example:
      >>> import functrans as ft
      >>> @ft.custom_jvp
      ... def product(x, y):
      ...     return x * y
      >>> def rule(primals, tangents):
      ...     (x, y), (x_dot, y_dot) = primals, tangents
      ...     print(y_dot)
      ...     return x * y, x_dot * y if type(y_dot) is SymbolicZero else x_dot * y + x * y_dot
      >>> product.defjvp(rule, symbolic_zeros=True) is rule
      True
      >>> ft.grad(product)(2.0, 3.0)
      SymbolicZero(f64[])
      array(3.)
    """

    __slots__ = ("aval",)

    @boundary
    def __init__(self, aval: Any) -> None:
        self.aval = ShapedArray(tuple(aval.shape), np.dtype(aval.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the array."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    def __repr__(self) -> str:
        """``SymbolicZero(f64[3])``."""
        return f"SymbolicZero({dtype_name(self.dtype)}[{','.join(map(str, self.shape))}])"


_LIKE = frozenset({np.zeros_like, np.ones_like, np.empty_like, np.full_like})
