"""``vspace``: the vector space that a pytree of arrays belongs to.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans import pytrees
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import aval_of, dtype_of, shape_of
from functrans.core.values import Array


class VSpace:
    """Shapes and dtypes of a pytree of floating or complex arrays, and what can be done in it.

    Args:
      value: one element.

    Raises:
      TypeError: a leaf is neither floating nor complex.

    Example:
      >>> VSpace(np.ones(2)).zeros()
      array([0., 0.])
      >>> VSpace([1.0, np.ones(2)]).size
      3
    """

    def __init__(self, value: Any) -> None:
        leaves, self.treedef = pytrees.flatten(value)
        self.avals: list[Any] = [aval_of(leaf).strong() for leaf in leaves]
        for aval in self.avals:
            if not is_differentiable_dtype(aval.dtype):
                raise TypeError(
                    f"Can't find vector space for a value of dtype {aval.dtype}: expected floating "
                    "or complex numbers"
                )

    @property
    def shape(self) -> Any:
        """Of an array, its shape; of a container, a pytree of them."""
        return pytrees.unflatten(self.treedef, [aval.shape for aval in self.avals])

    @property
    def dtype(self) -> Any:
        """The dtype of an array."""
        return self.avals[0].dtype

    @property
    def ndim(self) -> int:
        """Number of axes of an array."""
        return len(self.avals[0].shape)

    @property
    def iscomplex(self) -> bool:
        """Whether all leaves are complex."""
        return all(aval.dtype.kind == "c" for aval in self.avals)

    @property
    def size(self) -> int:
        """The dimension over the real numbers."""
        return sum(aval.size * (2 if aval.dtype.kind == "c" else 1) for aval in self.avals)

    def _made(self, make: Callable[..., Any]) -> Array:
        return pytrees.unflatten(self.treedef, [make(aval)[()] for aval in self.avals])

    def zeros(self) -> Any:
        """The zero."""
        return self._made(lambda aval: np.zeros(aval.shape, aval.dtype))

    def ones(self) -> Any:
        """Ones, and of complex numbers both parts."""
        return self._made(
            lambda aval: np.full(aval.shape, 1 + 1j if aval.dtype.kind == "c" else 1, aval.dtype)
        )

    def randn(self) -> Any:
        """Normal numbers, of NumPy's global generator."""

        def normal(aval: Any) -> Array:
            x = np.array(np.random.randn(*aval.shape))  # noqa: NPY002  # autograd's generator
            if aval.dtype.kind == "c":
                x = x + 1j * np.random.randn(*aval.shape)  # noqa: NPY002  # autograd's generator
            return x.astype(aval.dtype)

        return self._made(normal)

    def standard_basis(self) -> Iterator[Any]:
        """The basis vectors, one after the other."""
        for k, aval in enumerate(self.avals):
            for unit in (1, 1j) if aval.dtype.kind == "c" else (1,):
                for index in np.ndindex(*aval.shape):
                    parts = [np.zeros(other.shape, other.dtype) for other in self.avals]
                    parts[k][index] = unit
                    yield pytrees.unflatten(self.treedef, [part[()] for part in parts])

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return pytrees.map(fnp.add, x, y)

    def mut_add(self, x: Any, y: Any) -> Array:
        """The sum; nothing is changed in place."""
        return y if x is None else self.add(x, y)

    def scalar_mul(self, x: Any, a: Any) -> dict[str, Any]:
        """A multiple."""
        return pytrees.map(lambda leaf: leaf * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real inner product."""
        pairs = zip(pytrees.leaves(x), pytrees.leaves(y), strict=True)
        return sum(fnp.real(fnp.sum(fnp.conj(a) * b)) for a, b in pairs)

    def covector(self, x: Any) -> Any:
        """The conjugate."""
        return pytrees.map(fnp.conj, x)

    def __eq__(self, other: object) -> bool:
        """Equal structure, shapes and dtypes."""
        return (
            isinstance(other, VSpace)
            and self.treedef == other.treedef
            and self.avals == other.avals
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value only

    def __repr__(self) -> str:
        """``VSpace(f64[3])``."""
        return f"VSpace({', '.join(map(str, self.avals))})"


def vspace(value: Any) -> VSpace:
    """The vector space of a value.

    Example:
      >>> vspace(np.ones(3))
      VSpace(f64[3])
    """
    return VSpace(value)


def metadata(x: Any) -> tuple[Any, ...]:
    """Shape, number of axes, dtype, and whether it is complex."""
    shape, dtype = shape_of(x), dtype_of(x)
    return shape, len(shape), dtype, dtype.kind == "c"
