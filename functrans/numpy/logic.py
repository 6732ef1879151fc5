"""Tests and comparisons: isclose, allclose, array_equal, kinds of numbers, types of results.

Here: functions that answer questions about arrays. Where NumPy gives a Python bool, a value that
staging does not know gives a traced boolean. Not here: comparisons that are ufuncs (``ufuncs``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import (
    as_array,
    as_operand,
    inexact,
    is_known,
    layout_of,
    stored,
    value_of,
)
from functrans.numpy.dispatch import implements
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives.reduction import reduce_all


def _truth(x: ArrayLike) -> Any:
    """A Python bool where there is a value, else the traced boolean."""
    return bool(value_of(x, "bool()")) if is_known(x) else x


def _all(x: ArrayLike) -> Array:
    return reduce_all(x, tuple(range(len(shape_of(x)))))


@implements(np.isclose)
def isclose(
    a: Array,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements are equal within a tolerance."""
    x, y = as_operand(a), as_operand(b)
    y = inexact(as_array(y)) if dtype_of(y).kind in "biu" else y  # differences of integers wrap
    limit = ew.add(atol, ew.multiply(rtol, complex_parts.absolute(y)))
    is_near = ew.less_equal(complex_parts.absolute(ew.subtract(x, y)), limit)
    result = (is_near & ew.isfinite(y)) | ew.equal(x, y)
    return result | (ew.isnan(x) & ew.isnan(y)) if equal_nan else result


@implements(np.allclose)
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Any:
    """Whether all elements are equal within a tolerance."""
    return _truth(_all(isclose.traced(a, b, rtol, atol, equal_nan)))  # type: ignore[attr-defined]  # set by implements


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal."""
    x, y = as_array(a1), as_array(a2)
    if shape_of(x) != shape_of(y):
        return False
    same = ew.equal(x, y)
    if equal_nan:
        same = same | (ew.isnan(x) & ew.isnan(y))
    return _truth(_all(same))


@implements(np.array_equiv)
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array | complex:
    """Whether all elements are equal after broadcasting."""
    x, y = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(shape_of(x), shape_of(y))
    except ValueError:
        return False
    return _truth(_all(ew.equal(x, y)))


# kinds of numbers -------------------------------------------------------------------------------


@implements(np.isreal)
def isreal(x: ArrayLike) -> Array:
    """Whether elements have no imaginary part."""
    x = as_array(x)
    if not complex_parts.is_complex(x):
        return np.ones(shape_of(x), bool)
    return ew.equal(complex_parts.imag(x), 0)


@implements(np.iscomplex)
def iscomplex(x: ArrayLike) -> Array:
    """Whether elements have an imaginary part."""
    x = as_array(x)
    if not complex_parts.is_complex(x):
        return np.zeros(shape_of(x), bool)
    return ew.not_equal(complex_parts.imag(x), 0)


@implements(np.isrealobj)
def isrealobj(x: ArrayLike) -> bool:
    """Whether the dtype is not complex."""
    return dtype_of(as_array(x)).kind != "c"


@implements(np.iscomplexobj)
def iscomplexobj(x: ArrayLike) -> bool:
    """Whether the dtype is complex."""
    return dtype_of(as_array(x)).kind == "c"


def _is_infinite(name: str, x: ArrayLike, out: Array | None, sign: float) -> Array:
    x = as_array(x)
    if complex_parts.is_complex(x):
        raise TypeError(f"This operation is not supported for {dtype_of(x)} values ({name})")
    return stored(name, ew.equal(x, sign * math.inf), out)


@implements(np.isposinf)
def isposinf(x: ArrayLike, out: Array | None = None) -> Array:
    """Whether elements are positive infinity."""
    return _is_infinite("isposinf", x, out, 1.0)


@implements(np.isneginf)
def isneginf(x: ArrayLike, out: Array | None = None) -> Array:
    """Whether elements are negative infinity."""
    return _is_infinite("isneginf", x, out, -1.0)


# types ------------------------------------------------------------------------------------------


def _type_of(x: Any) -> Any:
    """What decides about promotion: a dtype, or a Python number for a weak scalar."""
    if isinstance(x, Tracer):
        aval = aval_of(x)
        return aval.dtype.type(0).item() if aval.weak else aval.dtype  # type: ignore[union-attr]  # no tape
    return x


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype of the result of an operation on arrays."""
    return np.result_type(*map(_type_of, arrays_and_dtypes))


@implements(np.common_type)
def common_type(*arrays: ArrayLike) -> type:
    """The floating or complex scalar type that all arrays fit in."""
    return np.common_type(*[np.empty(0, dtype_of(as_array(x))) for x in arrays])


@implements(np.can_cast)
def can_cast(from_: ArrayLike, to: Any, casting: Any = "safe") -> bool:
    """Whether values of one dtype can be cast to another."""
    return np.can_cast(_dtype(from_), _dtype(to), casting)


def _dtype(x: Any) -> Any:
    return dtype_of(x) if isinstance(x, Tracer) else x


@implements(np.shares_memory)
def shares_memory(a: Any, b: Array, /, max_work: Any = -1) -> bool:
    """Whether arrays share memory, as far as their values tell."""
    first, second = layout_of(a), layout_of(b)
    if first is None or second is None:
        return a is b
    return np.shares_memory(first, second, max_work)


@implements(np.may_share_memory)
def may_share_memory(a: Array, b: Array, /, max_work: Any = 0) -> bool:
    """Whether arrays may share memory, as far as their values tell."""
    first, second = layout_of(a), layout_of(b)
    if first is None or second is None:
        return a is b
    return np.may_share_memory(first, second, max_work)
