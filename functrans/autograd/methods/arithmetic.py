"""Arithmetic of ``Tensor``: operators, operations of two or three tensors, their in-place forms.

Here: torch's promotion of operands (``apply``, ``promoted``), operators, and the operations that
take several tensors element by element. Not here: functions of one tensor (``pointwise``,
``special``), comparisons (``comparison``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.composites import composite, named
from functrans.autograd.methods.rows import (
    Row,
    check_tensor,
    documented,
    fixed,
    functions_of,
    known,
    methods_of,
    number,
    overwrite,
    rows_of,
    with_out,
)
from functrans.autograd.modes import modes
from functrans.autograd.overrides import refused
from functrans.autograd.promotion import (
    as_tensor,
    default_of,
    exact,
    python_number,
    result_dtype,
    to_dtype,
    torch_kind,
    wrapped,
)
from functrans.autograd.recording import node_of
from functrans.autograd.tensors import Tensor
from functrans.core.boundary import boundary, shorten
from functrans.core.dispatch import Tracer, dtype_of, elementwise
from functrans.core.primitive import Primitive
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.complex_parts import real
from functrans.primitives.structural import cast

_NUMBERS = (int, float, complex, bool)
_USUAL = frozenset({float, int})

# promotion ---------------------------------------------------------------------------------------


def apply(primitive: Primitive, a: Any, b: Any, true: bool = False) -> Any:
    """A binary operation with torch's promotion.

    Args:
      primitive: the operation.
      a: a tensor or number.
      b: likewise.
      true: whether integers become floating numbers.
    """
    if isinstance(a, Tensor):
        dtype = a._value.dtype
        if isinstance(b, Tensor):
            is_usual = b._trace is a._trace and b._value.dtype is dtype
            is_usual = is_usual and not (true and dtype.kind in "iub")
        else:
            is_usual = type(b) in _USUAL and dtype.kind in "fc"
        if is_usual and a._trace.is_direct:  # else a branch of ``cond`` takes it
            return a._trace.elementwise(primitive, (a, b))
    elif type(a) in _USUAL and b._value.dtype.kind in "fc" and b._trace.is_direct:
        return b._trace.elementwise(primitive, (a, b))
    return elementwise(primitive, *promoted(a, b, true))


def promoted(a: Any, b: Any, true: bool = False) -> tuple[Any, Any]:
    """Operands in their common dtype; numbers stay numbers where NumPy's rules agree."""
    dtype = result_dtype(a, b)
    if true and dtype.kind in "iub":
        dtype = default_of(a, b)
    return in_dtype(a, dtype), in_dtype(b, dtype)


def in_dtype(x: Tensor | complex, dtype: np.dtype, convert: Any = wrapped) -> Any:
    """An operand, tensor or number, in a dtype."""
    if isinstance(x, _NUMBERS):
        return convert(x, dtype)
    return to_dtype(x, dtype)


def refuse_kinds(name: str, kinds: str, *operands: object) -> None:
    """Refuse operands whose common dtype is of some kinds.

    Args:
      name: torch's name of the kernel.
      kinds: NumPy's letters, ``"c"`` for complex numbers.
      *operands: tensors and numbers.

    Raises:
      NotImplementedError: they are of such, as in PyTorch.
    """
    dtype = result_dtype(*operands)
    if dtype.kind in kinds:
        # torch's class and words for a kernel that there is not: the operation has no meaning here
        raise NotImplementedError(f"\"{name}\" not implemented for '{torch_kind(dtype)}'")


def other_operand(self: Tensor, other: Any) -> Any:
    """An operand as a tensor or number; ``NotImplemented`` for anything else."""
    if isinstance(other, Tensor) or type(other) in _NUMBERS:
        return other
    if isinstance(other, np.generic):
        other = python_number(other)
        if type(other) in _NUMBERS:
            return other
    if isinstance(other, (np.ndarray, np.generic, Tracer)):
        return as_tensor(other, self)
    for kind in (int, float):  # subclasses: members of an IntEnum, for instance
        if isinstance(other, kind):
            return kind(other)
    return refused(other)


def checked_operand(name: str, input: Tensor, other: Any) -> Any:
    """An operand as a tensor or number.

    Raises:
      TypeError: it is anything else.
    """
    found = other_operand(input, other)
    if found is NotImplemented:
        raise TypeError(
            f"{name}(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}"
        )
    return found


# binary operations -------------------------------------------------------------------------------


def binary(
    name: str, label: str, primitive: Primitive, true: bool = False, refuses: str = ""
) -> Callable[..., Any]:
    """The operation of two tensors, or a tensor and a number.

    Args:
      name: torch's name, for messages.
      label: torch's name of the node.
      primitive: the operation.
      true: whether integers become floating numbers.
      refuses: kinds of dtypes that torch refuses.
    """

    def operation(input: Any, other: Any) -> Tensor:
        if type(other) is not Tensor and type(other) is not float:
            first = input if isinstance(input, Tensor) else other
            check_tensor(name, first)
            other = checked_operand(name, first, other)
        if refuses:
            refuse_kinds(f"{name}_cpu", refuses, input, other)
        return named(apply(primitive, input, other, true), label)

    return documented(
        operation, name, f"``{name}`` of two tensors, or of a tensor and a number, which broadcast."
    )


def operator_forms(label: str, primitive: Primitive, true: bool = False) -> dict[str, Any]:
    """The operator, its reflection and its in-place form."""
    written = f"{label.lower()}_"

    def forward(self: Tensor, other: Any) -> Tensor:
        if type(other) is not Tensor and type(other) is not float:
            other = other_operand(self, other)
            if other is NotImplemented:
                return NotImplemented
        try:
            trace = self._trace
            if type(other) is float and self._value.dtype.kind == "f" and trace.is_direct:
                return trace.elementwise(primitive, (self, other))  # a look less
            return apply(primitive, self, other, true)
        except Exception as error:
            shorten(error)
            raise

    def reflected(self: Tensor, other: Any) -> Tensor:
        other = other_operand(self, other)
        if other is NotImplemented:
            return NotImplemented
        made = apply(primitive, other, self, true)
        return named(made, "Mul") if label == "Div" and not isinstance(other, Tensor) else made

    def in_place(self: Tensor, other: Any) -> Tensor:
        other = other_operand(self, other)
        if other is NotImplemented:
            return NotImplemented
        return overwrite(written, self, lambda x: apply(primitive, x, other, true))

    return {"": forward, "r": reflected, "i": boundary(in_place)}


def _operators() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, label, primitive, true in (
        ("add", "Add", ew.add_p, False),
        ("mul", "Mul", ew.multiply_p, False),
        ("truediv", "Div", ew.divide_p, True),
    ):
        for prefix, method in operator_forms(label, primitive, true).items():
            table[f"__{prefix}{name}__"] = method
    for name, function in (
        ("sub", sub),
        ("pow", power),
        ("floordiv", floor_divide),
        ("mod", remainder),
        ("and", bitwise_and),
        ("or", bitwise_or),
        ("xor", bitwise_xor),
        ("lshift", left_shift),
        ("rshift", right_shift),
    ):
        table[f"__{name}__"] = _operator(function)
        table[f"__r{name}__"] = _operator(lambda a, b, f=function: f(b, a))
        table[f"__i{name}__"] = _writing(name, function)
    return table


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Tensor:
        other = other_operand(self, other)
        return NotImplemented if other is NotImplemented else function(self, other)

    return method


def _writing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, other: object) -> Tensor:
        other = other_operand(self, other)
        if other is NotImplemented:
            return NotImplemented
        return overwrite(f"{name}_", self, lambda x: function(x, other))

    return boundary(method)


def add(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input + alpha * other``."""
    other = checked_operand("add", input, other)
    if type(alpha) is int and alpha == 1:
        return apply(ew.add_p, input, other)
    return _with_alpha("add", "Add", ew.add_p, input, other, alpha)


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input - alpha * other``.

    Raises:
      RuntimeError: both are of truth values.
    """
    if isinstance(input, Tensor):
        other = checked_operand("sub", input, other)
    refuse_truth(input, other)
    if type(alpha) is int and alpha == 1:
        made = apply(ew.subtract_p, input, other)
        return made if isinstance(input, Tensor) else named(made, "RsubBackward1")
    return _with_alpha("sub", "Sub", ew.subtract_p, input, other, alpha)


def refuse_truth(a: Tensor | complex, b: Any) -> None:
    """Refuse the subtraction of truth values."""
    kinds = [x._value.dtype.kind for x in (a, b) if isinstance(x, Tensor)]
    if kinds == ["b", "b"]:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if "b" in kinds or type(b) is bool:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )


def _with_alpha(
    name: str, label: str, primitive: Primitive, a: Tensor, b: Any, alpha: Any
) -> Tensor:
    dtype = result_dtype(a, b)
    alpha = _alpha(name, alpha, dtype)
    if not isinstance(b, Tensor):
        return apply(primitive, a, b * alpha)
    if not modes.observers and not (modes.grad and (node_of(a) or node_of(b))):
        b = apply(ew.multiply_p, in_dtype(b, dtype), alpha)
        return apply(primitive, in_dtype(a, dtype), b)
    return composite(
        label, lambda x, y: elementwise(primitive, cast(x, dtype), cast(y, dtype) * alpha), a, b
    )


def _alpha(name: str, alpha: Any, dtype: np.dtype) -> Any:
    """The factor of an operand, in the dtype of the result."""
    alpha = number(name, "alpha", alpha)
    if isinstance(alpha, (float, complex)) and dtype.kind in "iub":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if isinstance(alpha, bool) and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    return alpha if isinstance(alpha, Tensor) else exact(alpha, dtype)


def rsub(input: Tensor, other: object, *, alpha: object = 1) -> Tensor:
    """``other - alpha * input``."""
    other = checked_operand("rsub", input, other)
    refuse_truth(input, other)
    label = "Rsub" if isinstance(other, Tensor) else "RsubBackward1"
    factor = _alpha("rsub", alpha, result_dtype(input, other))
    return joined(label, lambda x, y: y - (x if alpha == 1 else x * factor), input, other)


def mul(input: Tensor, other: Any) -> Tensor:
    """Product, element by element."""
    return apply(ew.multiply_p, input, checked_operand("mul", input, other))


def div(input: Tensor, other: object, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient; ``rounding_mode`` is ``None``, ``"trunc"`` or ``"floor"``.

    Raises:
      RuntimeError: another rounding mode.
    """
    other = checked_operand("div", input, other)
    if rounding_mode is None:
        return apply(ew.divide_p, input, other, true=True)
    if rounding_mode == "floor":
        return floor_divide(input, other, _rounded_label(other))
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    a, b = promoted(input, other)
    refuse_kinds("div_trunc_cpu", "c", a, b)
    if result_dtype(a, b).kind in "iub":
        _refuse_zero(b)
        return fixed(_truncated, a, b)
    return stepwise(_rounded_label(other), lambda x, y: ew.trunc(x / y), a, b)


def _truncated(x: Any, y: Any) -> Any:
    """The quotient of integers, rounded towards 0."""
    quotient = ew.floor_divide(x, y)
    is_below = (quotient * y != x) & ((x < 0) != (y < 0))
    return quotient + cast(is_below, dtype_of(quotient))


def _rounded_label(other: object) -> str:
    return "DivBackward2" if isinstance(other, Tensor) else "DivBackward3"


_NEVER = np.zeros((), bool)


def stepwise(label: str, function: Callable[..., Any], *operands: Any) -> Tensor:
    """A piecewise constant operation: it is recorded, with derivative 0."""

    def of(*xs: Any) -> Any:
        made = function(*xs)
        for x in xs:
            made = ew.where(_NEVER, x, made)  # depends on x, with derivative 0 whatever comes
        return made

    return composite(label, of, *operands)


def _refuse_zero(x: Any) -> None:
    """Refuse to divide integers by 0; where values are not known, the quotient is NumPy's: 0."""
    divisors = known(x)
    if divisors is not None and np.any(divisors == 0):
        raise RuntimeError("ZeroDivisionError")


def floor_divide(input: Any, other: object, label: str = "FloorDivide") -> Tensor:
    """The largest integer below the quotient.

    Raises:
      RuntimeError: division of integers by zero.
    """
    a, b = promoted(input, other)
    refuse_kinds("div_floor_cpu", "c", a, b)
    if result_dtype(a, b).kind in "iub":
        _refuse_zero(b)
        return elementwise(ew.floor_divide_p, a, b)
    return stepwise(label, ew.floor_divide, a, b)


def _remainder(name: str, label: str, primitive: Primitive, sign_of: str) -> Callable[..., Any]:
    def operation(input: object, other: Any) -> Tensor:
        a, b = promoted(input, other)
        refuse_kinds(f"{name}_cpu", "c", a, b)
        if result_dtype(a, b).kind in "iub":
            _refuse_zero(b)
        own = f"{label}Backward1" if isinstance(other, Tensor) else label
        return named(elementwise(primitive, a, b), own)

    return documented(
        operation, name, f"The remainder of a division, with the sign of the {sign_of}."
    )


remainder = _remainder("remainder", "Remainder", te.torch_remainder_p, "divisor")
fmod = _remainder("fmod", "Fmod", ew.fmod_p, "dividend")


_logaddexp = binary("logaddexp", "Logaddexp", te.torch_logaddexp_p, refuses="iub")


def logaddexp(input: Tensor, other: Any) -> Tensor:
    """The logarithm of the sum of exponentials of two tensors, which broadcast."""
    if result_dtype(input, other).kind != "c":
        return _logaddexp(input, other)

    def of(x: Any, y: Any) -> Any:
        is_first = real(x) >= real(y)
        larger, smaller = ew.where(is_first, x, y), ew.where(is_first, y, x)
        is_same = (real(x) == real(y)) & ew.isinf(real(x))  # whose difference has no value
        step = ew.where(is_same, 0, smaller - ew.where(is_same, 0, larger))
        return ew.where(is_same, smaller, larger + ew.log1p(ew.exp(step)))

    return joined("Logaddexp", of, input, other)


def power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent``; one of them may be a number.

    Raises:
      RuntimeError: integers to negative integer powers.
    """
    if not isinstance(input, Tensor):
        check_tensor("pow", exponent, "exponent", 2)
        primitive = ew.power_p if input else te.torch_power_p  # they differ at base 0
        return named(apply(primitive, input, exponent), "PowBackward2")
    exponent = checked_operand("pow", input, exponent)
    if not isinstance(exponent, Tensor):
        dtype = result_dtype(input, exponent)
        if dtype.kind in "iu":
            if exponent < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            exact(exponent, dtype)
        is_whole = not isinstance(exponent, float) or exponent.is_integer()
        # they differ at roots; and torch's power 0 passes a gradient on, of zeros
        primitive = ew.power_p if is_whole and exponent != 0 else te.torch_power_p
        return named(apply(primitive, input, exponent), "Pow")
    if result_dtype(input, exponent).kind in "iu":
        return fixed(_integer_power, *promoted(input, exponent))
    return named(apply(te.torch_power_p, input, exponent), "PowBackward1")


def _integer_power(x: Any, y: Any) -> Any:
    """Powers of integers, also negative ones: 0 but for 1 and -1."""
    inverse = ew.where(x == 1, 1, ew.where(x == -1, 1 - 2 * (y & 1), 0))
    return cast(ew.where(y < 0, inverse, ew.power(x, ew.maximum(y, 0))), dtype_of(x))


def float_power(input: object, exponent: object) -> Tensor:
    """``input ** exponent`` in float64 or complex128."""
    is_complex = result_dtype(input, exponent).kind == "c"
    dtype = np.dtype(np.complex128 if is_complex else np.float64)
    a, b = (to_dtype(x, dtype) if isinstance(x, Tensor) else x for x in (input, exponent))
    return power(a, b)


bitwise_and = binary("bitwise_and", "And", ew.bitwise_and_p, refuses="fc")
bitwise_or = binary("bitwise_or", "Or", ew.bitwise_or_p, refuses="fc")
bitwise_xor = binary("bitwise_xor", "Xor", ew.bitwise_xor_p, refuses="fc")
left_shift = binary("bitwise_left_shift", "Lshift", ew.left_shift_p, refuses="fc")
right_shift = binary("bitwise_right_shift", "Rshift", ew.right_shift_p, refuses="fc")

# operations of several tensors -------------------------------------------------------------------


def joined(label: str, function: Callable[..., Any], *operands: Any, true: bool = False) -> Tensor:
    """Several equations as one node, of operands in their common dtype."""
    dtype = result_dtype(*operands)
    if true and dtype.kind in "iub":
        dtype = default_of(*operands)
    return composite(label, function, *[in_dtype(x, dtype) for x in operands])


def _two(name: str, label: str, primitive: Primitive, forms: str = "mf", **options: Any) -> Row:
    return Row(name, binary(name, label, primitive, **options), (), forms)


ROWS: tuple[Row, ...] = (
    *rows_of(
        "mfi", add, floor_divide, fmod, bitwise_and, bitwise_or, bitwise_xor, left_shift,
        right_shift,
    ),
    *rows_of("f", rsub),
    *rows_of("mi", remainder, float_power),
    Row("sub", sub, ("subtract",), "mfi"),
    Row("mul", mul, ("multiply",), "mfi"),
    Row("div", div, ("divide", "true_divide"), "mfi"),
    Row("pow", power, (), "mi"),
    _two("maximum", "Maximum", te.torch_maximum_p, refuses="c"),
    _two("minimum", "Minimum", te.torch_minimum_p, refuses="c"),
    _two("fmax", "Fmax", te.torch_fmax_p, refuses="c"),
    _two("fmin", "Fmin", te.torch_fmin_p, refuses="c"),
    Row(
        "atan2",
        binary("atan2", "Atan2", te.torch_arctan2_p, true=True, refuses="c"),
        ("arctan2",),
        "mfi",
    ),
    _two("hypot", "Hypot", te.torch_hypot_p, "mfi", refuses="c"),
    Row("logaddexp", logaddexp),
    _two("logaddexp2", "Logaddexp2", te.torch_logaddexp2_p, refuses="iubc"),
    _two("copysign", "Copysign", te.torch_copysign_p, "mfi", true=True, refuses="c"),
    _two("nextafter", "Nextafter", ew.nextafter_p, "mfi", refuses="c"),
    _two("gcd", "Gcd", ew.gcd_p, "mfi", refuses="fc"),
    _two("lcm", "Lcm", ew.lcm_p, "mfi", refuses="fc"),
)  # fmt: skip

METHODS: dict[str, Any] = {**_operators(), **methods_of(ROWS)}
FUNCTIONS: dict[str, Any] = {
    **functions_of(ROWS),
    **{
        name: with_out(name, function)  # they take a number first, too
        for name, function in (
            ("pow", power),
            ("float_power", float_power),
            ("remainder", remainder),
        )
    },
}
