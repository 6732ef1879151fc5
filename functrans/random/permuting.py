"""Permutations and choices from arrays.

Here: ``permutation``, ``choice``. Not here: ``categorical`` (``discrete``).

Layer: ``random``. Source: Efraimidis and Spirakis, Weighted random sampling with a reservoir,
Information Processing Letters 97 (2006), for choices without replacement.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.sorting import argsort, top_k
from functrans.primitives.structural import cast, normalize_axis
from functrans.random.continuous import gumbel
from functrans.random.keys import blocks, checked_key, checked_shape, without_derivative
from functrans.random.uniform import randint, unit

_WIDE = np.dtype(np.float64)


def _items(name: str, a: Any) -> Any:
    """The array that is drawn from; an integer stands for all below it."""
    if isinstance(a, Tracer) and shape_of(a):
        return a
    if not isinstance(a, Tracer):
        a = np.asarray(a)
        if a.shape:
            return a
        if a.dtype.kind in "iu":
            return np.arange(int(a))
    raise TypeError(f"random.{name}: needs an array or an integer, got {a!r}{here()}")


def permutation(key: object, x: ArrayLike, axis: int = 0, independent: bool = False) -> Any:
    """The slices of an array in random order.

    Args:
      key: a key.
      x: an array, or an integer for ``arange(x)``. Differentiable.
      axis: the axis along which the order changes.
      independent: whether each lane has an order of its own.

    Returns:
      A new array of the shape of ``x``.

    Raises:
      TypeError: ``key`` is no key, ``x`` no array and no integer.
      AxisError: there is no such axis.

    Example:
      >>> sorted(permutation(np.array([0, 0], np.uint32), 4).tolist())
      [0, 1, 2, 3]
    """
    checked_key("permutation", key)
    x = _items("permutation", x)
    shape = shape_of(x)
    axis = normalize_axis(axis, len(shape), "random.permutation")
    if independent:
        return fnp.take_along_axis(x, argsort(blocks(key, shape), axis), axis)
    return fnp.take(x, argsort(blocks(key, (shape[axis],)), 0), axis)


def choice(
    key: object,
    a: ArrayLike,
    shape: object = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Array:
    """Elements of an array.

    Args:
      key: a key.
      a: an array, or an integer for ``arange(a)``. Differentiable.
      shape: how many, as a shape.
      replace: whether an element may be chosen again.
      p: weights of the slices along the axis, which are divided by their sum; by default equal.
      axis: the axis that is chosen from.

    Returns:
      Array of the shape of ``a`` with ``shape`` in the place of the axis.

    Raises:
      TypeError: ``key`` is no key, ``a`` no array and no integer.
      ValueError: more elements are asked for than there are.
      ShapeError: ``p`` has not one weight per slice.

    Example:
      >>> sorted(choice(np.array([0, 0], np.uint32), 3, (3,), replace=False).tolist())
      [0, 1, 2]
    """
    checked_key("choice", key)
    shape = checked_shape("choice", shape)
    a = _items("choice", a)
    axis = normalize_axis(axis, len(shape_of(a)), "random.choice")
    n, count = shape_of(a)[axis], math.prod(shape)
    if count and (not n or (not replace and count > n)):
        raise ValueError(
            f"random.choice: cannot choose {count} of {n} elements"
            + ("" if replace else " without replacement")
            + here()
        )
    if p is not None:
        p = p if isinstance(p, Tracer) else np.asarray(p)
        if shape_of(p) != (n,):
            raise ShapeError(
                f"random.choice: p needs shape ({n},), one weight per slice, got {shape_of(p)}"
                f"{here()}"
            )
        dtype = dtype_of(p) if dtype_of(p).kind == "f" else _WIDE
        p = cast(without_derivative(p), dtype)
    if not count:
        index: Any = np.zeros(shape, np.int64)
    elif p is None and replace:
        index = randint(key, shape, 0, n)
    elif p is None:
        index = argsort(blocks(key, (n,)), 0)[:count]
    elif replace:
        sums = fnp.cumsum(cast(p, _WIDE))
        index = fnp.searchsorted(sums, unit(key, shape, _WIDE) * sums[-1], side="right")
        # A product that is rounded up to the last sum.
        last = n - 1 - fnp.argmax(fnp.flip(p) > 0)
        index = fnp.minimum(index, last)
    else:
        is_possible = p > 0
        logs = fnp.where(is_possible, fnp.log(fnp.where(is_possible, p, 1.0)), -np.inf)
        index = top_k(logs + gumbel(key, (n,), dtype), count)[1]
    return fnp.take(a, fnp.reshape(index, shape), axis)
