"""Functions of one ``Tensor``, element by element: elementary functions, rounding, activations.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functrans import numpy as fnp
from functrans.autograd.composites import composite, named
from functrans.autograd.dtypes import limits_of
from functrans.autograd.methods.arithmetic import refuse_kinds, stepwise
from functrans.autograd.methods.rows import (
    Row,
    copied,
    documented,
    fixed,
    floating,
    functions_of,
    methods_of,
    results,
    rows_of,
)
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.special import functions as sf

# how integers are taken
TO_FLOAT = "float"  # as floating numbers
SAME = "same"  # as they are
COPY = "copy"  # the result is the same numbers
REFUSED = "refused"


def unary(
    name: str,
    label: str,
    function: Callable[..., Any],
    integers: str = TO_FLOAT,
    complex_: bool = True,
    is_one: bool = True,
) -> Callable[..., Any]:
    """A function of one tensor.

    Args:
      name: torch's name.
      label: torch's name of the node.
      function: the operation of functrans.
      integers: how they are taken.
      complex_: whether complex numbers are.
      is_one: whether the function is a single primitive.
    """

    def operation(input: Tensor) -> Tensor:
        kind = input._value.dtype.kind
        if kind not in "fV":
            if kind == "c" and not complex_:
                refuse_kinds(f"{name}_vml_cpu", "c", input)
            if kind in "iub":
                if integers == REFUSED:
                    refuse_kinds(f"{name}_cpu", "iub", input)
                if integers == TO_FLOAT:
                    input = floating(input)
                elif integers == COPY:
                    return copied(input, "Clone")
        if is_one:
            return named(function(input), label)
        return composite(label, function, input)

    return documented(operation, name, f"``{name}`` of each element.")


def neg(input: Tensor) -> Tensor:
    """The negative.

    Raises:
      RuntimeError: the tensor is of truth values.
    """
    if input.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return named(ew.negative(input), "Neg")


absolute = unary("abs", "Abs", te.absolute, SAME)


def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1."""
    if input.dtype.kind == "b":
        return copied(input, "Clone")
    if input.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
            "torch.sgn instead."
        )
    return stepwise("Sign", te.sign, input)


def sgn(input: Tensor) -> Tensor:
    """The sign; for complex numbers ``x / |x|``."""
    if input.dtype.kind == "b":
        return copied(input, "Clone")
    if input.dtype.kind == "c":
        return composite("Sgn", complex_parts.sign, input)
    return stepwise("Sgn", te.sign, input)


def round_(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, the even one of two; or the nearest number of some decimals."""
    if input.dtype.kind in "iub":
        return copied(input, "Clone")
    refuse_kinds("round_vml_cpu", "c", input)
    if not decimals:
        return stepwise("Round", ew.rint, input)
    scale = 10.0 ** abs(decimals)

    def rounded(x: Any) -> Any:
        return ew.rint(x * scale) / scale if decimals > 0 else ew.rint(x / scale) * scale

    return stepwise("RoundBackward1", rounded, input)


def _stepwise(name: str, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operation(input: Tensor) -> Tensor:
        if input.dtype.kind in "iub":
            return copied(input, "Clone")
        if input.dtype.kind == "c":
            # torch's class and words: complex numbers have no neighbours above and below
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        return stepwise(label, function, input)

    return documented(operation, name, f"``{name}`` of each element.")


def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Numbers in place of NaN and infinities; the derivative is 0 there."""
    if input.dtype.kind in "iub":
        return copied(input, "Clone")
    limits = limits_of(input.dtype)
    dtype = input.dtype.type
    high = dtype(limits.max if posinf is None else posinf)
    low = dtype(limits.min if neginf is None else neginf)
    nan = dtype(0.0 if nan is None else nan)

    def cleaned(x: Any) -> Array:
        x = ew.where(x != x, nan, x)
        return ew.where(x == math.inf, high, ew.where(x == -math.inf, low, x))

    return composite("NanToNum", cleaned, input)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``; ``eps`` bounds the elements away from 0 and 1."""

    def of(x: Any) -> Any:
        if eps is not None:
            number = dtype_of(x).type
            x = te.clamp(x, number(eps), number(1 - eps))
        return te.logit(x)

    refuse_kinds("logit_cpu", "c", input)
    return composite("Logit", of, floating(input))


def _complex_sinc(z: Any) -> Any:
    is_zero = z == 0
    angle = math.pi * ew.where(is_zero, 1, z)
    series = 1 - (math.pi * z) ** 2 / 6  # its derivatives at 0 are those of sinc up to the third
    return ew.where(is_zero, series, ew.sin(angle) / angle)


def sinc(input: Tensor) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0."""
    if input.dtype.kind == "c":
        return composite("Sinc", _complex_sinc, input)
    return named(te.sinc(floating(input)), "Sinc")


def _degrees(x: Any) -> Any:
    return x * dtype_of(x).type(180 / math.pi)


def _radians(x: Any) -> Any:
    return x * dtype_of(x).type(math.pi / 180)


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def signbit(input: Tensor) -> Tensor:
    """Whether the sign bit is set."""
    if input.dtype.kind == "c":
        # torch's class and words: complex numbers have two signs
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return fixed(fnp.signbit, input)


def frexp(input: Tensor) -> Any:
    """Mantissa and exponent."""
    return _FREXP(*composite("Frexp", fnp.frexp, input))


_FREXP = results("frexp", "mantissa", "exponent")


def _one(
    name: str,
    label: str,
    function: Callable[..., Any],
    integers: str = TO_FLOAT,
    aliases: tuple[str, ...] = (),
    **options: Any,
) -> Row:
    return Row(name, unary(name, label, function, integers, **options), aliases, "mfi")


ROWS: tuple[Row, ...] = (
    *rows_of(
        "mfi", sinc, sign, sgn, _stepwise("floor", "Floor", ew.floor),
        _stepwise("ceil", "Ceil", ew.ceil), nan_to_num, logit,
    ),
    *rows_of("mf", positive, signbit, frexp),
    _one("exp", "Exp", ew.exp),
    _one("exp2", "Exp2", ew.exp2),
    _one("expm1", "Expm1", te.expm1),
    _one("log", "Log", ew.log),
    _one("log2", "Log2", ew.log2),
    _one("log10", "Log10", ew.log10),
    _one("log1p", "Log1P", ew.log1p),
    _one("sqrt", "Sqrt", ew.sqrt),
    _one("rsqrt", "Rsqrt", sf.rsqrt),
    _one("reciprocal", "Reciprocal", sf.reciprocal),
    _one("sin", "Sin", ew.sin),
    _one("cos", "Cos", ew.cos),
    _one("tan", "Tan", ew.tan),
    _one("asin", "Asin", ew.arcsin, aliases=("arcsin",)),
    _one("acos", "Acos", ew.arccos, aliases=("arccos",)),
    _one("atan", "Atan", ew.arctan, aliases=("arctan",)),
    _one("sinh", "Sinh", ew.sinh),
    _one("cosh", "Cosh", ew.cosh),
    _one("tanh", "Tanh", te.tanh),
    _one("asinh", "Asinh", ew.arcsinh, aliases=("arcsinh",)),
    _one("acosh", "Acosh", ew.arccosh, aliases=("arccosh",)),
    _one("atanh", "Atanh", ew.arctanh, aliases=("arctanh",)),
    _one("sigmoid", "Sigmoid", te.sigmoid),
    _one("relu", "Relu", sf.relu, SAME, complex_=False),
    _one("erf", "Erf", sf.erf, complex_=False),
    _one("erfc", "Erfc", sf.erfc, complex_=False),
    _one("erfinv", "Erfinv", sf.erfinv, complex_=False),
    _one("lgamma", "Lgamma", te.lgamma, complex_=False),
    _one("digamma", "Digamma", sf.digamma, complex_=False),
    _one("i0", "I0", sf.i0, complex_=False),
    _one("deg2rad", "Deg2Rad", _radians, is_one=False, complex_=False),
    _one("rad2deg", "Rad2Deg", _degrees, is_one=False, complex_=False),
    Row("neg", neg, ("negative",), "mfi"),
    Row("abs", absolute, ("absolute",), "mfi"),
    _one("square", "Pow", lambda x: ew.power(x, 2), SAME),
    Row("trunc", _stepwise("trunc", "Trunc", ew.trunc), ("fix",), "mfi"),
    Row("round", round_, (), "mfi"),
    _one("frac", "Frac", lambda x: x - ew.trunc(x), REFUSED, is_one=False, complex_=False),
)  # fmt: skip

METHODS: dict[str, Any] = {
    **methods_of(ROWS),
    "__neg__": neg,
    "__pos__": positive,
    "__abs__": absolute,
}
FUNCTIONS: dict[str, Any] = functions_of(ROWS)
