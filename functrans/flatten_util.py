"""Pytrees as vectors: ``ravel_pytree``.

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import canonical, leaf_description
from functrans.core.boundary import boundary
from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.ownership import own_array
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.namespaces import listing as _listing
from functrans.primitives.movement import concatenate, split
from functrans.primitives.structural import cast, reshape
from functrans.records import dataclass


def ravel_pytree(pytree: object) -> tuple[Any, Callable[[Any], Any]]:
    """Put all leaves of a pytree into one vector.

    Args:
      pytree: containers of arrays.

    Returns:
      The vector, of the promoted dtype of the leaves (``f64[0]`` for none), and a function that
      turns such a vector back into the pytree with the leaves' own shapes and dtypes: what a leaf
      of a narrower dtype does not hold, as imaginary parts beside complex leaves, is dropped there.

    Raises:
      ShapeError: (by that function) the vector has another length.
      TypeError: (by that function) the vector is complex, or floating, and the leaves are not.
      ValueError: a plain integer is not exactly a number of the promoted dtype.

    Example:
      >>> vector, unravel = ravel_pytree({"a": np.ones(2), "b": 3.0})
      >>> vector
      array([1., 1., 3.])
      >>> unravel(2 * vector)["b"]
      array(6.)
    """
    leaves, treedef = tree.flatten(pytree)
    values = [
        canonical(leaf, functools.partial(leaf_description, "ravel_pytree", pytree, i, "pytree"))
        for i, leaf in enumerate(leaves)
    ]
    shapes = tuple([shape_of(value) for value in values])
    dtypes = tuple([dtype_of(value) for value in values])
    sizes = tuple(math.prod(shape) for shape in shapes)
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    for i, value in enumerate(values):
        if not isinstance(value, Tracer) and not _holds_exactly(dtype, np.asarray(value)):
            where = leaf_description("ravel_pytree", pytree, i, "pytree")
            raise ValueError(
                f"{where}: integers that {dtype}, the common dtype of the leaves, does not hold "
                "exactly; leave them out of the vector"
            )
    flat = [reshape(cast(value, dtype), (n,)) for value, n in zip(values, sizes, strict=True)]
    vector = concatenate(flat, 0) if flat else np.zeros(0)
    return own_array(vector), _Unravel(treedef, shapes, dtypes)


def _holds_exactly(dtype: np.dtype, value: np.ndarray) -> bool:
    """Whether the integers in an array are numbers of a dtype; other numbers count as such."""
    if value.dtype.kind not in "iu" or dtype.kind in "iu":
        return True
    most = 1 << (np.finfo(dtype).nmant + 1)
    large = value[(value > most) | (value < -most)]
    return all(int(x) == int(dtype.type(x).real) for x in large)


@dataclass(frozen=True, slots=True)
class _Unravel:
    """The way back from a vector to a pytree; equal for equal structures, shapes and dtypes."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]

    @boundary
    def __call__(self, new: Array | complex) -> dict[str, Any]:
        """Turn a vector back into the pytree."""
        sizes = tuple(math.prod(shape) for shape in self.shapes)
        if shape_of(new) != (sum(sizes),):
            raise ShapeError(
                f"unravel: expected a vector of shape ({sum(sizes)},), got {shape_of(new)}"
            )
        dtype = np.result_type(*self.dtypes) if self.dtypes else np.dtype(np.float64)
        if not np.can_cast(dtype_of(new), dtype, "same_kind"):
            raise TypeError(
                f"unravel: a vector of {dtype_of(new)} does not fit into leaves of {dtype}; "
                "take the part that is meant (x.real, or a cast with astype)"
            )
        parts = split(new, sizes, 0) if sizes else ()
        return tree.unflatten(
            self.treedef,
            [
                own_array(cast(reshape(part, shape), own))
                for part, shape, own in zip(parts, self.shapes, self.dtypes, strict=True)
            ],
        )


__all__ = [
    "ravel_pytree",
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
