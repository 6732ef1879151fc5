"""Methods of ``Tensor`` that act element by element: operators, functions, their in-place forms.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd import operations as ops
from functrans.autograd.operations import as_tensor, check_write, named, result_dtype, write
from functrans.autograd.tensor import Tensor
from functrans.ir.primitive import Primitive
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import cast
from functrans.trace import Tracer, elementwise

_NUMBERS = (int, float, complex, bool)


def apply(primitive: Primitive, a: Any, b: Any, true: bool = False) -> Any:
    """A binary operation with torch's promotion.

    Args:
      primitive: the operation.
      a: a tensor or number.
      b: likewise.
      true: whether integers become floating numbers.
    """
    first: Tensor = a if isinstance(a, Tensor) else b
    dtype = first._value.dtype
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        is_same = b._value.dtype is dtype
    else:
        number = type(b) if a is first else type(a)
        is_same = dtype.kind in "fc" and (number is float or number is int)
    if not is_same or (true and dtype.kind in "iub"):
        a, b = promoted(a, b, true)
    if first._trace is getattr(b, "_trace", first._trace) is getattr(a, "_trace", first._trace):
        return first._trace.elementwise(primitive, (a, b))
    return elementwise(primitive, a, b)


def promoted(a: Any, b: Any, true: bool = False) -> tuple[Any, Any]:
    """Operands in their common dtype; numbers stay numbers where NumPy's rules agree."""
    dtype = result_dtype(a, b)
    if true and dtype.kind in "iub":
        dtype = ops.default_dtype
    return _in_dtype(a, dtype), _in_dtype(b, dtype)


def _in_dtype(x: Any, dtype: np.dtype) -> Any:
    if isinstance(x, _NUMBERS):
        return dtype.type(x) if dtype.kind in "biufc" else x
    return x if x.dtype == dtype else cast(x, dtype)


def _other(self: Tensor, other: Any) -> Any:
    """An operand as a tensor or number; ``NotImplemented`` for anything else."""
    if isinstance(other, Tensor) or type(other) in _NUMBERS:
        return other
    if isinstance(other, (np.ndarray, np.generic, Tracer)):
        return as_tensor(other, self)
    for kind in (int, float):  # subclasses: members of an IntEnum, for instance
        if isinstance(other, kind):
            return kind(other)
    return NotImplemented


def _binary(label: str, primitive: Primitive, true: bool = False) -> dict[str, Any]:
    """The operator, its reflection and its in-place form."""

    def forward(self: Tensor, other: Any) -> Any:
        if type(other) is not Tensor and type(other) is not float:
            other = _other(self, other)
            if other is NotImplemented:
                return NotImplemented
        return apply(primitive, self, other, true)

    def reflected(self: Tensor, other: Any) -> Any:
        other = _other(self, other)
        if other is NotImplemented:
            return NotImplemented
        return apply(primitive, other, self, true)

    def in_place(self: Tensor, other: Any) -> Any:
        other = _other(self, other)
        if other is NotImplemented:
            return NotImplemented
        check_write(self)
        return write(f"{label}_", self, forward(self, other))

    return {"": forward, "r": reflected, "i": in_place}


def _operators() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, label, primitive, true in (
        ("add", "Add", ew.add_p, False),
        ("sub", "Sub", ew.subtract_p, False),
        ("mul", "Mul", ew.multiply_p, False),
        ("truediv", "Div", ew.divide_p, True),
        ("pow", "Pow", ew.power_p, False),
        ("floordiv", "FloorDivide", ew.floor_divide_p, False),
        ("mod", "Remainder", ew.remainder_p, False),
    ):
        for prefix, method in _binary(label.lower(), primitive, true).items():
            table[f"__{prefix}{name}__"] = method
    return table


def _unary(label: str, function: Callable[..., Any], to_float: bool = True) -> Callable[..., Any]:
    def method(self: Tensor) -> Tensor:
        if to_float and self.dtype.kind in "iub":
            self = cast(self, ops.default_dtype)
        return named(function(self), label)

    return method


def in_place(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The form of a method that writes its result into the tensor."""

    def write_result(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_write(self)
        return write(name, self, method(self, *args, **kwargs))

    return write_result


METHODS: dict[str, Any] = {**_operators()}
for _name, _label, _to_float in (
    ("exp", "Exp", True),
    ("log", "Log", True),
    ("sin", "Sin", True),
    ("cos", "Cos", True),
    ("tanh", "Tanh", True),
    ("sqrt", "Sqrt", True),
    ("negative", "Neg", False),
):
    METHODS[_name] = _unary(_label, getattr(ew, _name), _to_float)
METHODS["neg"] = METHODS["__neg__"] = METHODS.pop("negative")
