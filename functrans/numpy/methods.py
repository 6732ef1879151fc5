"""Attributes and methods of ``ndarray`` for traced arrays.

Here: the table of methods that ``Tracer`` gets, and ``flat``. Reshapes and permutations are views,
as in NumPy; ``sort``, ``partition``, ``fill`` and ``put`` write in place. Not here: operators and
indexing (``arrays.operators``), the functions behind the methods.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from functrans.arrays.callers import is_plain_code, is_rebinding
from functrans.arrays.indexing import index_value
from functrans.arrays.python_values import nested_elements
from functrans.arrays.writes import assign, write
from functrans.core.boundary import boundary, shorten
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import FunctransError, UnsupportedOperationError
from functrans.numpy import (
    array_api,
    cumulative,
    diagonals,
    elements,
    joining,
    means,
    products,
    reductions,
    selection,
    shaping,
    sorting,
)
from functrans.numpy.at import At
from functrans.numpy.common import as_operand, fresh, view
from functrans.primitives import complex_parts, structural
from functrans.primitives.structural import cast


def _traced(function: Any) -> Callable[..., Any]:
    """The traced implementation of a NumPy function, as a method."""
    return function.traced


# attributes -------------------------------------------------------------------------------------


def _ndim(self: Any) -> int:
    """Number of axes."""
    return len(shape_of(self))


def _size(self: Any) -> int:
    """Number of elements."""
    return math.prod(shape_of(self))


def _itemsize(self: Any) -> int:
    """Bytes per element."""
    return dtype_of(self).itemsize


def _nbytes(self: Any) -> int:
    """Bytes of all elements."""
    return dtype_of(self).itemsize * math.prod(shape_of(self))


def _set_real(self: Any, value: ArrayLike) -> None:
    if not complex_parts.is_complex(self):
        write(self, as_operand(value), "real")
        return
    assign(self, complex_parts.complex_of(_wide(value, self), complex_parts.imag(self)))


def _set_imag(self: Any, value: ArrayLike) -> None:
    if not complex_parts.is_complex(self):
        raise TypeError("array does not have imaginary part to set")
    assign(self, complex_parts.complex_of(complex_parts.real(self), _wide(value, self)))


def _wide(value: ArrayLike, x: ArrayLike) -> Array:
    """A value for a part of a complex array, in its shape."""
    dtype = complex_parts.real_dtype(dtype_of(x))
    return structural.broadcast_to(cast(as_operand(value), dtype), shape_of(x))


def _conj(self: Any) -> Array:
    """Conjugates; an array that is not complex itself, where the ufunc makes int8 of booleans."""
    return complex_parts.conjugate(self) if complex_parts.is_complex(self) else self


class Flat:
    """``x.flat``: the elements in row-major order, to read and to write.

    Attributes:
      base: the array.
    """

    __slots__ = ("base",)

    def __init__(self, base: ArrayLike) -> None:
        self.base = base

    def __getitem__(self, index: Any) -> Any:
        """Elements at an index into the flattened array, a copy."""
        return index_value(selection.flat(self.base), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write values, repeated as often as needed, to an index into the flattened array."""
        places = np.arange(math.prod(shape_of(self.base)))[index]
        count = math.prod(places.shape)
        if selection.is_empty(value):
            return
        values = selection.repeated(value, count)
        selection.write_flat(self.base, np.reshape(places, (count,)), values)

    def __len__(self) -> int:
        return math.prod(shape_of(self.base))

    def __iter__(self) -> Iterator[Any]:
        return iter(selection.flat(self.base))

    def __repr__(self) -> str:
        """``Flat(Traced<f64[3]>)``."""
        return f"Flat({self.base!r})"


def _set_flat(self: Any, value: Array) -> None:
    Flat(self)[:] = value


# methods ----------------------------------------------------------------------------------------


@boundary
def _astype(
    self: Any,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Array:
    """Convert to a dtype."""
    if not np.can_cast(dtype_of(self), dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(self)!r} to {np.dtype(dtype)!r} according to "
            f"the rule {casting!r}{here()}"
        )
    result = cast(self, dtype)
    return fresh(result, order) if copy and result is self else result


def fresh_copy(self: Any, order: str = "C") -> Array:
    """The same elements with memory of their own."""
    return fresh(self, order)


def _reshape(self: Any, *shape: ArrayLike, order: str = "C", copy: bool | None = None) -> Array:
    """The same elements in another shape."""
    target = shape[0] if len(shape) == 1 else shape
    return shaping.reshape.traced(self, target, order, copy=copy)  # type: ignore[attr-defined]  # set by implements


def _transpose(self: Any, *axes: int | Sequence[int] | None) -> Array:
    """Permute axes."""
    if not axes or axes == (None,):
        return shaping.transposed(self)
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return shaping.transpose.traced(self, order)  # type: ignore[attr-defined]  # set by implements


def _view(self: Any, dtype: DTypeLike | None = None, type: object = None) -> Array:  # NumPy's name
    """The same memory as another array."""
    if dtype is not None and np.dtype(dtype) != dtype_of(self):
        raise UnsupportedOperationError(
            f"view with another dtype ({np.dtype(dtype)} of {dtype_of(self)}) cannot be traced"
            f"{here()}: bits have no derivative. Use .astype(dtype), or .real and .imag."
        )
    return view(self, fresh(self), fresh, lambda base, new: new)


def _clip(
    self: Any, min: object = None, max: object = None, out: Array | None = None, **options: Any
) -> Array:
    """Limit values to an interval."""
    return elements.clip.traced(self, min, max, out, **options)  # type: ignore[attr-defined]  # set by implements


def _sort(
    self: Any,
    axis: int | Sequence[int] | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
) -> Array | None:
    """Sort along an axis in place; where arrays are not written to, the sorted array."""
    result: Array = sorting.sort.traced(self, axis, kind, order, stable=stable)  # type: ignore[attr-defined]  # set by implements
    if is_rebinding(sys._getframe(1)):
        return result
    assign(self, result)
    return None


@boundary
def _partition(
    self: Any,
    kth: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    kind: str = "introselect",
    order: Any = None,
) -> None:
    """Partition along an axis in place."""
    assign(self, sorting.partition.traced(self, kth, axis, kind, order))  # type: ignore[attr-defined]  # set by implements


@boundary
def _fill(self: Any, value: ArrayLike) -> None:
    """Write one value to all elements."""
    value = as_operand(value)
    if shape_of(value):
        raise ValueError("fill needs a scalar value")
    assign(self, structural.broadcast_to(cast(value, dtype_of(self)), shape_of(self)))


@boundary
def _compress(
    self: Any,
    condition: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """Slices along an axis where a condition holds."""
    return selection.compress.traced(condition, self, axis, out)  # type: ignore[attr-defined]  # set by implements


def _tolist(self: Any) -> Any:
    """Refused outside of plain code: Python numbers would lose the derivative."""
    try:
        if is_plain_code(sys._getframe(1)):
            return nested_elements(self)
        return self._concrete(".tolist()").tolist()
    except FunctransError as error:
        shorten(error)
        raise


def _dot(self: Any, b: ArrayLike, out: Array | None = None) -> Array:
    """Product over the last axis and the last but one of ``b``."""
    return products.dot.traced(self, b, out)  # type: ignore[attr-defined]  # set by implements


def _contains(self: Any, value: ArrayLike) -> bool:
    return bool(reductions.any.traced(self == value))  # type: ignore[attr-defined]  # set by implements


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """``functrans.numpy``, which follows the Python array API standard."""
    array_api.check_version(api_version)
    own = sys.modules["functrans.numpy"]
    names: Any = sys._getframe(1).f_globals
    return own if type(names) is dict else names.stand_in(own)  # what the module is in a twin


@boundary
def _to_device(self: Any, device: str, /, *, stream: object = None) -> Array:
    """The array itself: everything is on the CPU."""
    if device != "cpu":
        raise ValueError(f'Unsupported device "{device}". Only "cpu" is accepted.')
    return self


def _deepcopy(self: Any, memo: object) -> Array:
    return fresh(self)


def method_table() -> dict[str, Any]:
    """Attributes and methods by name."""
    table: dict[str, Any] = {
        name: _traced(function)
        for name, function in {
            "all": reductions.all,
            "any": reductions.any,
            "argmax": reductions.argmax,
            "argmin": reductions.argmin,
            "argsort": sorting.argsort,
            "cumprod": cumulative.cumprod,
            "cumsum": cumulative.cumsum,
            "diagonal": diagonals.diagonal,
            "max": reductions.max,
            "mean": means.mean,
            "min": reductions.min,
            "nonzero": selection.nonzero,
            "prod": reductions.prod,
            "put": selection.put,
            "ravel": shaping.ravel,
            "repeat": joining.repeat,
            "round": elements.round,
            "squeeze": shaping.squeeze,
            "std": means.std,
            "sum": reductions.sum,
            "swapaxes": shaping.swapaxes,
            "take": selection.take,
            "trace": diagonals.trace,
            "var": means.var,
        }.items()
    }
    for function in (sorting.argpartition, selection.choose, sorting.searchsorted):
        table[function.__name__] = boundary(_traced(function))
    table.update(
        T=property(shaping.transposed),
        mT=property(_traced(shaping.matrix_transpose)),
        __array_namespace__=_namespace,
        __dlpack__=array_api.refuse_dlpack,
        __dlpack_device__=array_api.dlpack_device,
        __contains__=_contains,
        __copy__=fresh,
        __deepcopy__=_deepcopy,
        astype=_astype,
        at=property(At),
        clip=_clip,
        compress=_compress,
        conj=_conj,
        conjugate=_conj,
        copy=fresh_copy,
        device=property(lambda self: "cpu"),
        dot=_dot,
        fill=_fill,
        flat=property(Flat, _set_flat),
        flatten=shaping.flattened,
        imag=property(_traced(elements.imag), _set_imag),
        itemsize=property(_itemsize),
        nbytes=property(_nbytes),
        ndim=property(_ndim),
        partition=_partition,
        real=property(_traced(elements.real), _set_real),
        reshape=_reshape,
        size=property(_size),
        sort=_sort,
        to_device=_to_device,
        tolist=_tolist,
        transpose=_transpose,
        view=_view,
    )
    return table
