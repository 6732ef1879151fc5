"""What ``np.matrix`` is for traced values: ``TracedDense``.

SciPy's ``spmatrix`` gives an ``np.matrix`` where a result is dense (``todense``, ``sum(axis)``),
whose ``*`` is the matrix product.

Here: that class, numbers as arrays. Not here: sparse matrices (``plain.sparse.matrices``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import functrans.numpy as fnp
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.plain.memory import holds_tracer, settled


class Sparse:
    """First base of the classes of sparse matrices in twins."""


def array_of(value: object) -> Any:
    """Numbers as an array, traced or not."""
    value = settled(value)
    if isinstance(value, TracedDense):
        return value.array
    if isinstance(value, Tracer):
        return value
    return fnp.asarray(value) if holds_tracer(value) else np.asarray(value)


class TracedDense:
    """What ``np.matrix`` is for traced values: a dense matrix whose ``*`` is the matrix product.

    Attributes:
      array: traced, of two axes.
    """

    __array_ufunc__ = None
    __array_priority__ = 30.0

    def __init__(self, array: Array) -> None:
        self.array = array

    A = property(lambda self: self.array, doc="The array.")
    A1 = property(lambda self: self.array.reshape(-1), doc="The elements as a vector.")
    T = property(lambda self: TracedDense(self.array.T), doc="The transpose.")
    shape = property(lambda self: self.array.shape, doc="The extents.")
    dtype = property(lambda self: self.array.dtype, doc="The dtype.")
    size = property(lambda self: int(np.prod(self.array.shape)), doc="Number of elements.")
    ndim = 2

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0])

    def __neg__(self) -> TracedDense:
        """Negative elements."""
        return TracedDense(-self.array)

    def _elementwise(self, other: object, combine: Callable[[Any, Any], Any]) -> TracedDense:
        return TracedDense(combine(self.array, array_of(other)))

    def __add__(self, other: object) -> Any:
        """``self + other``."""
        if isinstance(other, Sparse):
            return NotImplemented
        return self._elementwise(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        """``self - other``."""
        if isinstance(other, Sparse):
            return NotImplemented
        return self._elementwise(other, lambda a, b: a - b)

    def __rsub__(self, other: object) -> Any:
        """``other - self``."""
        return self._elementwise(other, lambda a, b: b - a)

    def __truediv__(self, other: object) -> Any:
        """``self / other``."""
        return self._elementwise(other, lambda a, b: a / b)

    def __rtruediv__(self, other: object) -> Any:
        """``other / self``."""
        return self._elementwise(other, lambda a, b: b / a)

    def __mul__(self, other: Array) -> Any:
        """The matrix product, or the product with a number."""
        if isinstance(other, Sparse):
            return NotImplemented
        other = array_of(other)
        if not shape_of(other):
            return TracedDense(self.array * other)
        # a vector is a row to np.matrix
        return TracedDense(self.array @ (other[None, :] if len(shape_of(other)) == 1 else other))

    def __rmul__(self, other: Any) -> Any:
        """The matrix product, in the other order."""
        other = array_of(other)
        if not shape_of(other):
            return TracedDense(self.array * other)
        return TracedDense((other[None, :] if len(shape_of(other)) == 1 else other) @ self.array)

    def __matmul__(self, other: object) -> TracedDense:
        """The matrix product."""
        if isinstance(other, Sparse):
            return NotImplemented
        other = array_of(other)
        result = self.array @ other
        return TracedDense(result if len(shape_of(other)) == 2 else result[None, :])

    def __rmatmul__(self, other: object) -> TracedDense:
        """The matrix product, in the other order."""
        other = array_of(other)
        result = other @ self.array
        return TracedDense(result if len(shape_of(other)) == 2 else result[None, :])

    def __getitem__(self, key: Any) -> Any:
        """An element; of more, ``np.asarray(x)[...]``."""
        is_pair = type(key) is tuple and len(key) == 2
        if is_pair and all(isinstance(k, (int, np.integer)) for k in key):
            return self.array[key]
        raise self._refused("indexing")

    def __array__(self, dtype: DTypeLike | None = None, copy: object = None) -> Any:
        """Refused: its values are traced."""
        raise self._refused("a function")

    def __array_function__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """``np.ravel``; other functions are refused."""
        if func in (np.shape, np.ndim, np.size):
            return func(self.array, *args[1:], **kwargs)
        if func is np.ravel and len(args) == 1 and not kwargs:
            return self.array.reshape(-1)
        raise self._refused(f"np.{func.__name__}")

    def __getattr__(self, name: str) -> Any:
        """What ``np.matrix`` has and this has not."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._refused(f".{name}")

    @staticmethod
    def _refused(what: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"{what} of a traced np.matrix{here()} (the result of .todense(), .sum(axis) or A + B "
            "of a spmatrix) is not supported; make it an array: np.asarray(x)"
        )
