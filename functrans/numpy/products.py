"""Products: dot, inner, outer, tensordot, kron, cross, convolve, correlate.

Here: NumPy's products but those that are ufuncs (``matmul``, ``vecdot``) and ``einsum``
(``einstein``). Not here: the primitives (``primitives.dot``, ``primitives.convolution``), linear
algebra (``linalg``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.numpy.common import as_array, stored
from functrans.numpy.dispatch import implements
from functrans.primitives import convolution, movement, structural
from functrans.primitives import dot as prim
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import gather
from functrans.primitives.structural import cast, normalize_axis


@implements(np.dot)
def dot(a: ArrayLike, b: ArrayLike, out: Array | None = None) -> Any:
    """Product over the last axis of ``a`` and the last but one of ``b``; scalars multiply."""
    return stored("dot", prim.dot(as_array(a), as_array(b)), out)


@implements(np.vdot)
def vdot(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Inner product of the flattened operands, the first one conjugated."""
    return prim.vdot(as_array(a), as_array(b))


@implements(np.inner)
def inner(a: ArrayLike, b: ArrayLike, /) -> Any:
    """Product over the last axes of both operands."""
    return prim.inner(as_array(a), as_array(b))


@implements(np.outer)
def outer(a: Array, b: Array, out: Array | None = None) -> Any:
    """Outer product of the flattened operands."""
    return stored("outer", prim.outer(as_array(a), as_array(b)), out)


@implements(np.tensordot)
def tensordot(a: ArrayLike, b: Array, axes: object = 2) -> Any:
    """Product over several axes."""
    return prim.tensordot(as_array(a), as_array(b), axes)


@implements(np.kron)
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product."""
    x, y = as_array(a), as_array(b)
    m, n = shape_of(x), shape_of(y)
    ndim = max(len(m), len(n))
    m, n = (1,) * (ndim - len(m)) + m, (1,) * (ndim - len(n)) + n
    left = structural.reshape(x, tuple([e for extent in m for e in (extent, 1)]))
    right = structural.reshape(y, tuple([e for extent in n for e in (1, extent)]))
    return structural.reshape(
        ew.multiply(left, right), tuple([p * q for p, q in zip(m, n, strict=True)])
    )


def _components(x: ArrayLike, axis: object) -> list[Any]:
    """The two or three components of vectors along an axis."""
    k = normalize_axis(axis, len(shape_of(x)), "axis")
    if shape_of(x)[k] not in (2, 3):
        raise ValueError(
            "incompatible dimensions for cross product\n(dimension must be 2 or 3), got shape "
            f"{shape_of(x)}{here()}"
        )
    return [gather(x, (i,), (k,)) for i in range(shape_of(x)[k])]


@implements(np.cross)
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: ArrayLike = -1,
    axisb: ArrayLike = -1,
    axisc: ArrayLike = -1,
    axis: int | Sequence[int] | None = None,
) -> Array:
    """Cross product of vectors of three (or two) components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = as_array(a), as_array(b)
    dtype = np.result_type(dtype_of(a), dtype_of(b))
    u, v = _components(cast(a, dtype), axisa), _components(cast(b, dtype), axisb)
    if len(u) == len(v) == 2:
        return u[0] * v[1] - u[1] * v[0]
    if len(u) == 2 or len(v) == 2:
        u, v = (w if len(w) == 3 else [*w, 0 * w[0]] for w in (u, v))
    parts = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
    return movement.stack(parts, normalize_axis(axisc, len(shape_of(parts[0])) + 1, "axisc"))


def _vector(x: Any) -> Any:
    """Scalars as vectors of one element."""
    x = as_array(x)
    return structural.reshape(x, (1,)) if not shape_of(x) else x


def _mode(mode: str) -> str:
    names = {"f": "full", "s": "same", "v": "valid"}
    if isinstance(mode, str) and mode[:1].lower() in names:
        return names[mode[0].lower()]
    raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


def _check_not_empty(a: ArrayLike, v: ArrayLike) -> None:
    for name, x in (("a", a), ("v", v)):
        if not math.prod(shape_of(x)):
            raise ValueError(f"{name} cannot be empty")


@implements(np.convolve)
def convolve(a: ArrayLike, v: Array, mode: str = "full") -> Any:
    """Convolution of two vectors."""
    x, kernel = _vector(a), _vector(v)
    _check_not_empty(x, kernel)
    return convolution.convolve(x, kernel, _mode(mode))


@implements(np.correlate)
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> Array:
    """Correlation of two vectors, the second one conjugated."""
    x, kernel = _vector(a), _vector(v)
    _check_not_empty(x, kernel)
    return convolution.correlate(x, kernel, _mode(mode))
