"""What the NumPy-shaped functions share: operands, axes, views, results.

Here: conversion of operands (lists of traced values included), axes and ``keepdims``, ``out=``,
values that Python needs, and the registration of views. Not here: functions of NumPy's namespace.

Layer: ``numpy`` (below its other modules).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.arrays.indexing import plain_array as plain_array
from functrans.arrays.writes import fresh as fresh
from functrans.arrays.writes import register_view
from functrans.core.avals import PYTHON_SCALARS
from functrans.core.caching import remembered
from functrans.core.dispatch import Tracer, dtype_of, shape_of, standing
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ConcretizationError, UnsupportedOperationError
from functrans.numpy.dispatch import has_tracer, store
from functrans.numpy.dispatch import lifted as lifted
from functrans.passes.layouts import plain_value
from functrans.passes.staging import has_answer
from functrans.primitives import elementwise as ew
from functrans.primitives.movement import stack
from functrans.primitives.structural import cast, normalize_axis, reshape

NO_VALUE: Any = np._NoValue
"""NumPy's mark of an option that was not given."""

Shape = tuple[int, ...]
Axes = tuple[int, ...]

_NUMBERS = frozenset("fciub")


# operands ---------------------------------------------------------------------------------------


def as_operand(x: Any) -> Any:
    """A tracer, an ndarray or a number; a Python number stays one, so that it is weak (NEP 50)."""
    return x if isinstance(x, Tracer) or type(x) in PYTHON_SCALARS else as_array(x)


def as_array(x: Any) -> Any:
    """A tracer or an ndarray; lists and tuples of traced values are joined."""
    if isinstance(x, Tracer) or (type(x) is np.ndarray and x.dtype.kind in _NUMBERS):
        return x
    if isinstance(x, (list, tuple)):
        return from_sequence(x)
    x = standing(x)
    return x if isinstance(x, Tracer) else plain_array(x)


def from_sequence(values: Sequence[Any], dtype: DTypeLike | None = None) -> Array:
    """An array of nested lists and tuples, which may hold traced values.

    All elements are joined in one equation. Python numbers are strong, as in ``np.array``.

    Raises:
      ValueError: the shapes of the elements differ.
    """
    values = [standing(item) for item in values]
    if not has_tracer(values):
        return plain_array(values, dtype)
    lead: Shape = (len(values),)
    level = list(values)
    while all(isinstance(item, (list, tuple)) for item in level):
        extents = {len(item) for item in level}
        if len(extents) > 1:
            raise _ragged(lead, extents)
        lead = (*lead, extents.pop())
        level = [item for row in level for item in row]
    level = [
        item if isinstance(item, Tracer) or type(item) in PYTHON_SCALARS else as_array(item)
        for item in level
    ]
    shapes = {shape_of(item) for item in level}
    if len(shapes) > 1:
        raise _ragged(lead, shapes)
    if dtype is None:
        dtype = np.result_type(*{dtype_of(item) for item in level})
    return reshape(stack(level, 0, dtype), lead + shapes.pop())


def _ragged(lead: Shape, found: set[Any]) -> ValueError:
    some = " and ".join(map(str, sorted(found)[:2]))
    return ValueError(
        f"setting an array element with a sequence: elements of the list have different shapes "
        f"({some}) behind the first {len(lead)} axes{here()}; pad them to one shape, or keep the "
        "list"
    )


def inexact(x: ArrayLike) -> Any:
    """The operand in floating point: integers and booleans become float64."""
    return cast(x, np.float64) if dtype_of(x).kind in "biu" else x


@remembered(512)
def _ufunc_input(ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    return ufunc.resolve_dtypes((dtype, *(None,) * (ufunc.nargs - 1)))[0]


def ufunc_operand(ufunc: np.ufunc, x: ArrayLike) -> Array:
    """The operand in the dtype in which a ufunc of one operand computes."""
    return cast(x, _ufunc_input(ufunc, np.dtype(dtype_of(x))))


layout_of = plain_value
"""The plain array behind a tracer; ``None`` where there is none (staging)."""


def value_of(x: Any, what: str = "a value-dependent shape") -> Any:
    """The plain value behind an operand, where results cannot be formed without it.

    Raises:
      ConcretizationError: it has none, since the trace has avals only.
    """
    return x._concrete(what) if isinstance(x, Tracer) else x


def is_known(x: Any) -> bool:
    """Whether an operand has a value, as in recording and pushing, or its trace can tell it."""
    return not isinstance(x, Tracer) or layout_of(x) is not None or has_answer(x)


def holds(condition: ArrayLike) -> bool:
    """Whether a condition is true, of operands that are known."""
    return bool(value_of(condition, "bool()"))


def is_readable(x: ArrayLike) -> bool:
    """Whether the numbers of an operand can be looked at.

    Those of a float in a function that is specialised cannot, only truths about them.
    """
    return is_known(x) and (dtype_of(x).kind in "biu" or not has_answer(x))


def needs_size(name: str, x: Any, keyword: str = "size") -> ConcretizationError:
    """The error for a function whose result has as many elements as it finds in a traced array."""
    return ConcretizationError(
        f"numpy.{name} of {x._describe()} was asked{here()}; how many elements it finds is not "
        f"known while shapes and dtypes only are traced. Use functrans.numpy.{name}(..., "
        f"{keyword}=n), which fills up or cuts off, or np.where with a mask, or let each answer "
        "have a program: jit with specialize=True."
    )


# axes -------------------------------------------------------------------------------------------


def axis_of(axis: Any, ndim: int, name: str = "axis") -> int:
    """A non-negative axis, as NumPy's compiled functions take one: no boolean.

    Those that are written in Python take booleans as 0 and 1, as ``normalize_axis`` does.

    Raises:
      AxisError: the axis does not exist.
      TypeError: it is no integer.
    """
    if isinstance(axis, bool):
        raise TypeError(f"{name}: an integer is required, got {axis}")
    return normalize_axis(axis, ndim, name)


def axes_of(axis: object, ndim: int, name: str = "axis", *, of_scalar: bool = True) -> Axes:
    """The axes that an argument of a compiled function names: all for ``None``.

    A scalar has the axes 0 and -1 in NumPy's compiled reductions; where not ``of_scalar``, none.

    Raises:
      AxisError: an axis does not exist.
      TypeError: it is neither an integer nor a tuple of integers.
      ValueError: an axis is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple):
        k = axis_of(axis, ndim or int(of_scalar), name)
        return (k,) if ndim else ()
    return _distinct(tuple([axis_of(one, ndim, name) for one in axis]), name)


def listed_axes(axis: object, ndim: int, name: str = "axis") -> Axes:
    """The axes that an integer or a sequence names in NumPy's Python functions: all for ``None``.

    Raises:
      AxisError: an axis does not exist.
      TypeError: it is neither an integer nor a sequence of integers.
      ValueError: an axis is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    return _distinct(tuple([normalize_axis(one, ndim, name) for one in as_tuple(axis)]), name)


def moved_axis(axis: int | Sequence[int] | None, ndim: int, name: str = "axis") -> int:
    """The one axis that ``moveaxis`` takes as an integer or a sequence of one."""
    axes = listed_axes(as_tuple(axis), ndim, name)
    if len(axes) != 1:
        raise ValueError(f"{name} must be one axis, got {axis}")
    return axes[0]


def _distinct(axes: Axes, name: str) -> Axes:
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in {name!r}: {axes}")
    return axes


def as_tuple(axis: Any) -> tuple[Any, ...]:
    """One axis, or a sequence of them, as a tuple."""
    is_several = isinstance(axis, (list, tuple)) or (isinstance(axis, np.ndarray) and axis.ndim)
    return tuple(axis) if is_several else (axis,)


def is_given(option: Any) -> bool:
    """Whether an option was given: neither NumPy's mark nor ``None``."""
    return option is not NO_VALUE and option is not None


def flag(option: Any) -> bool:
    """A boolean option whose default is NumPy's mark for false."""
    return option is not NO_VALUE and bool(option)


def count_of(shape: Shape, axes: Axes) -> int:
    """How many elements a reduction joins."""
    return math.prod([shape[axis] for axis in axes])


# results ----------------------------------------------------------------------------------------


def stored(name: str, result: ArrayLike, out: Array | None) -> Any:
    """The result, written to ``out`` if there is one."""
    return result if out is None else store(f"numpy.{name}", out, result)


def refuse_plain_target(name: str, target: ArrayLike) -> None:
    """Refuse to write traced values into a plain array.

    Raises:
      UnsupportedOperationError: the array is a plain one, which would lose the trace.
    """
    if not isinstance(target, Tracer):
        raise UnsupportedOperationError(
            f"numpy.{name} was asked to write traced values into a plain "
            f"{type(target).__name__}{here()}; the array would lose the trace. Make it traced "
            "first: np.zeros(n, like=x), np.array(buffer, like=x); use functrans.numpy.full and "
            "functrans.numpy.full_like in place of np.full and np.full_like."
        )


# views ------------------------------------------------------------------------------------------


def view(
    base: ArrayLike, out: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], Any]
) -> Any:
    """Note that a result shares memory with its operand, as it does in NumPy.

    Args:
      base: operand.
      out: result.
      read: the view as a function of the base.
      write: the base after the view was written, as a function of base and view.
    """
    if out is base or not isinstance(base, Tracer):
        return out
    return register_view(base, out, read, write)


def read_only_view(base: ArrayLike, out: Array | None, read: Callable[[Any], Any]) -> Array:
    """A view that NumPy does not allow to be written to."""
    if out is base and isinstance(base, Tracer):
        out = fresh(base)

    def write(base: Any, new: object) -> Any:
        raise ValueError(
            f"assignment destination is read-only{here()}: the array is a view with repeated or "
            "derived elements; write to a copy (np.array(x, like=x)) or to the array itself"
        )

    return view(base, out, read, write)


def uncertain_view(base: ArrayLike, out: Array | None, what: str) -> Array:
    """A result that is a view or a copy depending on a memory layout that staging does not know.

    Writing to either while both are in use raises: the other might have to change, or not.
    """
    if out is base:
        out = fresh(base)

    def fail(*_: ArrayLike) -> Any:
        raise UnsupportedOperationError(
            f"an array was written to{here()} that {what} made or was made from. Whether NumPy's "
            "result shares memory with its operand depends on the memory layout, which is not "
            "known while shapes and dtypes only are traced. Copy one of them first: x.copy(), or "
            "np.array(x, like=x)."
        )

    return view(base, out, fail, fail)


def shares_memory(base: Any, out: Any) -> bool | None:
    """Whether a result shares memory with its operand; ``None`` where that is not known."""
    first, second = layout_of(base), layout_of(out)
    if type(first) is not np.ndarray or type(second) is not np.ndarray:
        return None
    return bool(np.may_share_memory(first, second))


def truth(a: ArrayLike) -> Any:
    """The array as booleans: whether elements are not zero."""
    x = as_array(a)
    return x if dtype_of(x).kind == "b" else ew.not_equal(x, 0)
