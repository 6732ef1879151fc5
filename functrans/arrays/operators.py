"""Operators of tracers: the first injected table.

Here: what ``Tracer`` can do by Python's operators, and the table of all its syntax. Not here: items
(``arrays.items``), in-place syntax (``arrays.writes``), conversions to Python's numbers
(``arrays.python_values``), ndarray methods and NumPy functions (``numpy``, which hands its tables
over in ``install``).

Augmented assignment rebinds: ``x += v`` computes a new array and the tracer takes it over.

Layer: ``arrays`` (above primitives, below numpy).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.arrays import items, python_values
from functrans.arrays.callers import is_rebinding
from functrans.arrays.indexing import PLAIN_OPERANDS, as_value, check_not_in_parts
from functrans.arrays.items import setitem
from functrans.arrays.python_values import is_python_number, made_python_number, python_number
from functrans.arrays.sparse import is_scipy_sparse, is_sparse, is_spmatrix, not_a_product
from functrans.arrays.sparse import matmul as sparse_matmul
from functrans.arrays.writes import fresh, write
from functrans.core.boundary import shorten
from functrans.core.dispatch import Tracer, elementwise, shape_of
from functrans.core.primitive import Primitive
from functrans.core.source import attribute, here
from functrans.errors import UnsupportedOperationError
from functrans.passes.recording import RecordingTracer
from functrans.passes.staging import StagingTracer
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives.dot import matmul
from functrans.primitives.family import integer_of_truth
from functrans.primitives.structural import cast


def _binary(primitive: Primitive) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operator method of a primitive and its reflection."""

    def forward(self: Any, other: Any) -> Any:
        try:
            if type(other) in PLAIN_OPERANDS:
                if self._trace.is_direct:
                    return self._trace.elementwise(primitive, (self, other))
            elif not isinstance(other, Tracer):
                given, other = other, operator_operand(other)
                if other is NotImplemented:
                    return _with_sparse(primitive, self, given)
                if primitive is ew.multiply_p:
                    _check_no_repetition(self, given)
            return elementwise(primitive, self, other)
        except Exception as error:  # of a value that escaped, too, around which no boundary is
            shorten(error)
            raise

    def reflected(self: Any, other: Any) -> Any:
        try:
            if type(other) in PLAIN_OPERANDS:
                if self._trace.is_direct:
                    return self._trace.elementwise(primitive, (other, self))
            elif not isinstance(other, Tracer):
                given, other = other, operator_operand(other)
                if other is NotImplemented:
                    return _with_sparse(primitive, given, self)
                if primitive is ew.multiply_p:
                    _check_no_repetition(self, given)
            return elementwise(primitive, other, self)
        except Exception as error:  # of a value that escaped, too, around which no boundary is
            shorten(error)
            raise

    return forward, reflected


def _check_no_repetition(x: Any, other: Any) -> None:
    """Refuse a list times a traced Python integer: Python repeats the list, NumPy multiplies."""
    aval = x.aval
    if aval.weak and aval.dtype.kind in "biu" and isinstance(other, (list, tuple)):
        kind = type(other).__name__
        raise TypeError(
            f"a {kind} times {x._describe()}{here()}: Python repeats a {kind} as often as the "
            "number says, which is not known while it is traced. Write np.asarray(values) * n for "
            "products, or make the number static (static_argnums) to repeat"
        )


def _with_sparse(primitive: Primitive, a: Any, b: Any) -> Any:
    """An operator between a traced array and an object that may be a sparse matrix of SciPy."""
    x, matrix = (a, b) if isinstance(a, Tracer) else (b, a)
    if not is_scipy_sparse(matrix) or is_foreign(matrix):  # those of plain code answer themselves
        return NotImplemented
    if primitive is not ew.multiply_p or not shape_of(x) or not is_spmatrix(matrix):
        raise not_a_product(matrix, x)
    return sparse_matmul(a, b)


def as_operand(other: Any) -> Any:
    """Lists and tuples of numbers become arrays, as NumPy's operators do."""
    if isinstance(other, (bool, np.generic)):
        return other
    if isinstance(other, (list, tuple, np.ndarray)):
        return as_value(other)
    kinds: tuple[Any, ...] = (int, float, complex)
    for kind in kinds:  # subclasses: members of an IntEnum, for instance
        if isinstance(other, kind):
            return kind(other)
    if (
        attribute(other, "__array__") is not None
    ):  # its own operators would take a tracer for one element
        raise UnsupportedOperationError(
            f"a {type(other).__module__}.{type(other).__qualname__} meets a traced value{here()}; "
            "convert it with np.asarray(x) first"
        )
    return NotImplemented


def is_foreign(value: Any) -> bool:
    """Whether a value answers ufuncs itself, so that its operators are the ones to ask (NEP 13)."""
    return hasattr(type(value), "__array_ufunc__") and not isinstance(
        value, (np.ndarray, np.generic, Tracer)
    )


def operator_operand(other: Any) -> Any:
    """``as_operand`` of a plain operand of an operator, which leaves foreign arrays alone."""
    if not is_foreign(other):
        return as_operand(other)
    check_not_in_parts(other)
    return NotImplemented


_power, _reflected_power = _binary(ew.power_p)


def _pow(self: Any, other: Any) -> Any:
    """``self ** other``: NumPy's operator squares booleans as int8, its function as int64."""
    try:
        if type(other) is not int:
            return _power(self, other)
        if other == 2 and self.dtype.kind == "b" and not self.aval.weak:
            self = cast(self, np.dtype(np.int8))
        elif type(self) is RecordingTracer and self._trace.is_direct:
            return self._trace.elementwise(ew.power_p, (self, other))
        return elementwise(ew.power_p, self, other)
    except Exception as error:
        shorten(error)
        raise


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator method of a function; Python's truths are integers to it."""

    def method(self: Any) -> Any:
        try:
            if type(self) is StagingTracer and self.dtype.kind == "b" and self.aval.weak:
                self = integer_of_truth(self)
            return function(self)
        except Exception as error:
            shorten(error)
            raise

    return method


def _magnitude(x: Any) -> Any:
    result = complex_parts.absolute(x)
    if type(x) is RecordingTracer:
        return made_python_number(result) if type(x._value) is float else result
    return python_number(result) if is_python_number(x) else result


def _matmul(self: Any, other: Any) -> Any:
    try:
        if not isinstance(other, (np.ndarray, Tracer)) and is_sparse(other):
            return sparse_matmul(self, other)
        factor = _factor(other)
        return NotImplemented if factor is NotImplemented else matmul(self, factor)
    except Exception as error:
        shorten(error)
        raise


def _rmatmul(self: Any, other: Any) -> Any:
    try:
        if not isinstance(other, (np.ndarray, Tracer)) and is_sparse(other):
            return sparse_matmul(other, self)
        factor = _factor(other)
        return NotImplemented if factor is NotImplemented else matmul(factor, self)
    except Exception as error:
        shorten(error)
        raise


def _factor(other: Any) -> Any:
    """An operand of a matrix product."""
    if type(other) is np.ndarray or isinstance(other, Tracer):
        return other
    return operator_operand(other)


def _is_number(x: Tracer) -> bool:
    """Whether a tracer stands for a number: no axes, and no memory that others may see."""
    return not x.shape and x._alias is None


def _iadd(primitive: Primitive) -> Callable[..., Any]:
    """The augmented assignment of a primitive: a write into the array, in its own dtype.

    A number is another one then, as in Python and of NumPy's scalars: no other name of it changes.
    So is an array in code for libraries whose arrays are never written to.
    """

    def method(self: Any, other: Any) -> Any:
        if type(other) not in PLAIN_OPERANDS and not isinstance(other, Tracer):
            other = operator_operand(other)
            if other is NotImplemented:
                return NotImplemented
        result = elementwise(primitive, self, other)
        if _is_number(self) or is_rebinding(sys._getframe(1)):
            return result
        write(self, result, primitive.name)
        return self

    return method


def _imatmul(self: Any, other: Any) -> Any:
    """``self @= other``, in place."""
    result = _matmul(self, other)
    if result is NotImplemented or is_rebinding(sys._getframe(1)):
        return result
    if len(shape_of(self)) < 2 or len(shape_of(other)) < 2:
        raise ValueError(
            f"in-place matrix product of arrays of {len(shape_of(self))} and "
            f"{len(shape_of(other))} axes{here()}; both need two or more"
        )
    setitem(self, Ellipsis, result)
    return self


def operator_table() -> dict[str, Any]:
    """All syntax by method name."""
    table: dict[str, Any] = {}
    for name, primitive in {
        "add": ew.add_p,
        "sub": ew.subtract_p,
        "mul": ew.multiply_p,
        "truediv": ew.divide_p,
        "floordiv": ew.floor_divide_p,
        "mod": ew.remainder_p,
        "and": ew.bitwise_and_p,
        "or": ew.bitwise_or_p,
        "xor": ew.bitwise_xor_p,
        "lshift": ew.left_shift_p,
        "rshift": ew.right_shift_p,
    }.items():
        table[f"__{name}__"], table[f"__r{name}__"] = _binary(primitive)
        table[f"__i{name}__"] = _iadd(primitive)
    table["__pow__"], table["__rpow__"] = _pow, _reflected_power
    table["__ipow__"] = _iadd(ew.power_p)
    for name, primitive in {
        "eq": ew.equal_p,
        "ne": ew.not_equal_p,
        "lt": ew.less_p,
        "le": ew.less_equal_p,
        "gt": ew.greater_p,
        "ge": ew.greater_equal_p,
    }.items():
        table[f"__{name}__"] = _binary(primitive)[0]
    table.update(
        __neg__=_unary(ew.negative),
        __pos__=_unary(fresh),
        __abs__=_unary(_magnitude),
        __invert__=_unary(ew.invert),
        __matmul__=_matmul,
        __imatmul__=_imatmul,
        __rmatmul__=_rmatmul,
        __divmod__=lambda self, other: (self // other, self % other),
        __rdivmod__=lambda self, other: (other // self, other % self),
        __array_priority__=1000.0,
        **items.METHODS,
        **python_values.METHODS,
    )
    return table
