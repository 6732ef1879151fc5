"""``ft.lax``: operations on single elements, under JAX's names.

Here: what neither NumPy's ufuncs nor SciPy's special functions are. Operands broadcast and dtypes
promote as NumPy's; JAX asks for equal ones. Not here: operations on whole arrays (``structural``),
matrix products (``contractions``).

Layer: ``lax``.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.numpy.common import as_array, as_operand, inexact
from functrans.primitives import complex_parts, movement
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import take_along_axis
from functrans.primitives.structural import broadcast_to, cast, reshape


class RoundingMethod(enum.Enum):
    """Where ``round`` brings halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer; halves away from zero, or to even numbers.

    Example:
      >>> round(np.array([0.5, 2.5, -0.5]))
      array([ 1.,  3., -1.])
      >>> round(np.array([0.5, 2.5, -0.5]), RoundingMethod.TO_NEAREST_EVEN)
      array([ 0.,  2., -0.])
    """
    x = as_operand(x)
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return ew.rint(x)
    whole = ew.trunc(x)
    is_half = ew.greater_equal(complex_parts.absolute(ew.subtract(x, whole)), 0.5)
    return ew.where(is_half, ew.add(whole, ew.sign(x)), whole)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The quotient; of integers rounded towards zero.

    Example:
      >>> div(-7, 2)
      np.int64(-3)
      >>> div(7.0, 2.0)
      np.float64(3.5)
    """
    a, b = as_operand(x), as_operand(y)
    dtypes = dtype_of(a), dtype_of(b)
    if any(dtype.kind not in "biu" for dtype in dtypes):
        return np.divide(a, b)
    return np.floor_divide(np.subtract(a, np.fmod(a, b)), b)


def rsqrt(x: ArrayLike) -> Array:
    """``1 / sqrt(x)``.

    Example:
      >>> rsqrt(4.0)
      np.float64(0.5)
    """
    return np.reciprocal(np.sqrt(inexact(as_operand(x))))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """``x`` to the power of an integer, which is not traced.

    Example:
      >>> integer_pow(3.0, 2)
      np.float64(9.0)
    """
    return np.power(as_operand(x), y)


def clamp(min: object, x: ArrayLike, max: Any) -> Array:  # JAX's names
    """``x`` limited to an interval.

    Example:
      >>> clamp(0.0, np.array([-1.0, 0.5, 2.0]), 1.0)
      array([0. , 0.5, 1. ])
    """
    return np.clip(as_array(x), as_operand(min), as_operand(max))


def complex(x: Any, y: Any) -> Array:
    """The complex number of a real and an imaginary part.

    Example:
      >>> complex(1.0, 2.0)
      np.complex128(1+2j)
    """
    return complex_parts.complex_of(*_pair(x, y))[()]


def _pair(x: Operand, y: Array) -> tuple[Any, Any]:
    """Two real operands of one floating dtype and shape."""
    a, b = as_array(x), as_array(y)
    shape = np.broadcast_shapes(shape_of(a), shape_of(b))
    dtype = movement.common_dtype((inexact(a), inexact(b)))
    return broadcast_to(cast(a, dtype), shape), broadcast_to(cast(b, dtype), shape)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits shifted right, zeros moving in.

    Example:
      >>> shift_right_logical(np.int8(-128), np.int8(7))
      np.int8(1)
    """
    x = as_operand(x)
    dtype = dtype_of(x)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return cast(ew.right_shift(cast(x, unsigned), cast(as_operand(y), unsigned)), dtype)[()]


def population_count(x: ArrayLike) -> Array:
    """How many bits are 1; negative numbers are taken as two's complements.

    Example:
      >>> population_count(np.array([7, -1], np.int8))
      array([3, 8], dtype=int8)
    """
    x = as_array(x)
    dtype = dtype_of(x)
    return cast(ew.bitwise_count(cast(x, np.dtype(f"u{dtype.itemsize}"))), dtype)


def select_n(which: object, *cases: object) -> Any:
    """Each element from the case whose number, or truth, ``which`` gives.

    Args:
      which: booleans (for two cases: the first where false) or integers; a scalar, or in the shape
        of the cases.
      *cases: arrays of one shape.

    Raises:
      ShapeError: there is no case, or booleans are given for more than two.

    Example:
      >>> select_n(np.array([True, False]), np.zeros(2), np.ones(2))
      array([1., 0.])
      >>> select_n(np.array([2, 0]), np.zeros(2), np.ones(2), np.full(2, 5.0))
      array([5., 0.])
    """
    number = as_array(which)
    if not cases or (dtype_of(number).kind == "b" and len(cases) > 2):
        raise ShapeError(
            f"select_n: got {len(cases)} cases for {dtype_of(number)}; booleans choose of two, "
            "integers of any number"
        )
    options = [as_operand(case) for case in cases]
    if dtype_of(number).kind == "b":
        return ew.where(number, options[-1], options[0])
    shape = np.broadcast_shapes(shape_of(number), *map(shape_of, options))
    table = movement.stack([broadcast_to(as_array(x), shape) for x in options], 0)
    places = reshape(broadcast_to(number, shape), (1, *shape))
    return reshape(take_along_axis(table, places, 0, "clip"), shape)


_guard(globals())
