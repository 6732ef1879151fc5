"""Elementary functions that become complex outside their real domain: ``numpy.lib.scimath``.

Here: ``sqrt``, ``log`` and the others of ``numpy.emath``. Whether the result is complex depends on
values: where there are none, as in ``jit``, a real operand raises; make it complex before. Not
here: the functions of the real domain (``ufuncs``).

>>> import functrans as ft
>>> ft.jvp(np.emath.sqrt, (np.array([-4.0, 4.0]),), (np.array([1.0, 1.0]),))[1]
array([0.  -0.25j, 0.25+0.j  ])

Layer: ``numpy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib import scimath
from numpy.typing import ArrayLike

from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.numpy.common import as_array, inexact, value_of
from functrans.numpy.dispatch import implements
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import cast

Test = Callable[[Any], Any]


def _is_complex_at(x: ArrayLike, is_outside: Test) -> bool:
    """Whether an element of a real operand is outside the real domain."""
    return bool(np.any(is_outside(np.asarray(value_of(x)))))


def _widened(x: Any, is_outside: Test) -> Array:
    """The operand, complex if it is real and one of its elements is outside the real domain."""
    x = as_array(x)
    if dtype_of(x).kind == "c" or not _is_complex_at(x, is_outside):
        return x
    dtype = dtype_of(_floating(x))
    return cast(x, complex_parts.complex_dtype(dtype))


def _floating(x: ArrayLike) -> Any:
    """A real operand that becomes complex; half precision becomes double, as in NumPy."""
    return cast(x, np.float64) if dtype_of(x) == np.float16 else inexact(x)


def _is_negative(x: Array) -> Array:
    return x < 0


def _is_beyond_one(x: Array) -> Array:
    return abs(x) > 1


@implements(scimath.sqrt)
def sqrt(x: Any) -> Any:
    """Square root; complex if an element is negative."""
    return np.sqrt(_widened(x, _is_negative))


@implements(scimath.log)
def log(x: Array) -> Any:
    """Natural logarithm; complex if an element is negative."""
    return np.log(_widened(x, _is_negative))


@implements(scimath.log2)
def log2(x: ArrayLike) -> Array:
    """Logarithm in base 2; complex if an element is negative."""
    return np.log2(_widened(x, _is_negative))


@implements(scimath.log10)
def log10(x: ArrayLike) -> Array:
    """Logarithm in base 10; complex if an element is negative."""
    return np.log10(_widened(x, _is_negative))


@implements(scimath.logn)
def logn(n: ArrayLike, x: ArrayLike) -> Array:
    """Logarithm in base ``n``; complex if an element of either is negative."""
    return ew.divide(np.log(_widened(x, _is_negative)), np.log(_widened(n, _is_negative)))


@implements(scimath.power)
def power(x: Array, p: ArrayLike) -> Any:
    """Power; complex if an element of ``x`` is negative; negative ``p`` makes it floating."""
    exponent = as_array(p)
    if dtype_of(exponent).kind in "iu" and np.any(np.asarray(value_of(exponent)) < 0):
        exponent = inexact(exponent)
    return np.power(_widened(x, _is_negative), exponent)


def _parts(x: ArrayLike, inverse: Callable[[Any], Any], sign: int) -> Array:
    """An inverse of a circular function at real numbers, which may be beyond 1.

    On the cut ``f(x) = f(+-1) + i sign arccosh |x|``. In complex arithmetic the derivative would
    lie on the other side of the cut, since ``1 - (x + 0j) ** 2`` has the imaginary part +0.
    """
    size = np.abs(x)
    is_outside = size > 1
    over = np.where(is_outside, np.arccosh(np.where(is_outside, size, 2.0)), 0.0)
    at_zero = float(inverse(0.0))
    ends = at_zero + (float(inverse(1.0)) - at_zero) * np.sign(x)
    inside = np.where(is_outside, ends, inverse(np.where(is_outside, 0.0, x)))
    return complex_parts.complex_of(inside, sign * over)


@implements(scimath.arccos)
def arccos(x: ArrayLike) -> Array:
    """Inverse cosine; complex if an element is beyond 1 in magnitude."""
    x = as_array(x)
    if dtype_of(x).kind == "c" or not _is_complex_at(x, _is_beyond_one):
        return np.arccos(x)
    return _parts(_floating(x), np.arccos, -1)


@implements(scimath.arcsin)
def arcsin(x: ArrayLike) -> Array:
    """Inverse sine; complex if an element is beyond 1 in magnitude."""
    x = as_array(x)
    if dtype_of(x).kind == "c" or not _is_complex_at(x, _is_beyond_one):
        return np.arcsin(x)
    return _parts(_floating(x), np.arcsin, 1)


@implements(scimath.arctanh)
def arctanh(x: ArrayLike) -> Array:
    """Inverse hyperbolic tangent; complex if an element is beyond 1 in magnitude."""
    return np.arctanh(_widened(x, _is_beyond_one))
