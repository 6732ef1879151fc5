"""Complex tensors: their parts, conjugates, and real tensors as pairs of parts.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.autograd.composites import composite, named
from functrans.autograd.methods.arithmetic import stepwise
from functrans.autograd.methods.rows import (
    Row,
    copied,
    floating,
    functions_of,
    methods_of,
    rows_of,
    with_out,
)
from functrans.autograd.promotion import torch_kind
from functrans.autograd.tensors import Tensor
from functrans.autograd.views import view
from functrans.core.dispatch import dtype_of, shape_of
from functrans.primitives import complex_parts, movement
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.indexing import gather


def real(input: Tensor) -> Tensor:
    """The real part: a view; a real tensor itself."""
    if input.dtype.kind != "c":
        return input
    return view("Select", input, complex_parts.real, lambda x: x.real)


def imag(input: Tensor) -> Tensor:
    """The imaginary part: a view.

    Raises:
      RuntimeError: the tensor is real.
    """
    if input.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view("Select", input, complex_parts.imag, lambda x: x.imag)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view, though its memory is a copy; a real tensor itself."""
    if input.dtype.kind != "c":
        return input

    def memory(z: np.ndarray) -> np.ndarray:
        return np.asarray(np.conjugate(z))

    return view("Conj", input, complex_parts.conjugate, memory, is_copied=True)


def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, as a copy."""
    if input.dtype.kind != "c":
        return copied(input, "Clone")
    return named(complex_parts.conjugate(input), "ConjPhysical")


def is_conj(input: Tensor) -> bool:
    """Whether it is a view of what was conjugated."""
    return input.dtype.kind == "c" and input._view is not None and input._view.is_conj


def resolve_conj(input: Tensor) -> Tensor:
    """A copy of a view of what was conjugated; any other tensor itself."""
    return copied(input, "Clone") if is_conj(input) else input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are never views."""
    return input


def angle(input: Tensor) -> Tensor:
    """The argument of complex numbers; 0 or pi for real ones."""
    if input.dtype.kind == "c":
        return composite(
            "Angle", lambda z: te.angle_of(complex_parts.imag(z), complex_parts.real(z)), input
        )
    x = floating(input)

    def of(x: Any) -> Any:
        side = ew.where(x < 0, dtype_of(x).type(math.pi), dtype_of(x).type(0))
        return ew.where(x == x, side, dtype_of(x).type(math.nan))

    return stepwise("Angle", of, x)


def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along another, last axis: a view.

    Raises:
      RuntimeError: the tensor is real.
    """
    if input.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")

    def step(z: Any) -> Any:
        return movement.stack((complex_parts.real(z), complex_parts.imag(z)), len(shape_of(z)))

    def memory(z: np.ndarray) -> np.ndarray:
        part = z.real
        return np.lib.stride_tricks.as_strided(
            part, (*part.shape, 2), (*part.strides, part.itemsize)
        )

    return view("ViewAsReal", input, step, memory)


def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers along the last axis as complex ones: a view.

    Raises:
      RuntimeError: the last axis has another extent, or is not contiguous.
    """
    if input.dtype.kind != "f" or input.dtype.itemsize < 4:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {torch_kind(input.dtype)}"
        )
    if not input.shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if isinstance(input._value, np.ndarray) and input._value.strides[-1] != input.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")

    def step(x: Any) -> Any:
        axis = len(shape_of(x)) - 1
        return complex_parts.complex_of(
            gather(x, (np.asarray(0),), (axis,)), gather(x, (np.asarray(1),), (axis,))
        )

    def memory(x: np.ndarray) -> np.ndarray:
        pairs = x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)  # of its layout
        found: np.ndarray = pairs.view(complex_parts.complex_dtype(x.dtype))[..., 0]
        return found

    return view("ViewAsComplex", input, step, memory)


def complex_from(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of real and imaginary parts.

    Raises:
      RuntimeError: dtypes differ, or are not floating.
    """
    _check_parts(real, imag)
    return composite("Complex", complex_parts.complex_of, real, imag)


def _check_parts(first: Tensor, second: Tensor) -> None:
    if first.dtype.kind != "f" or second.dtype.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{torch_kind(first.dtype)} and {torch_kind(second.dtype)}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {torch_kind(first.dtype)} but got scalar type "
            f"{torch_kind(second.dtype)} for second argument"
        )


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of absolute values and arguments.

    Raises:
      RuntimeError: dtypes differ, or are not floating.
    """
    _check_parts(abs, angle)
    return composite(
        "Polar", lambda r, t: complex_parts.complex_of(r * ew.cos(t), r * ew.sin(t)), abs, angle
    )


ROWS: tuple[Row, ...] = (
    *rows_of("mf", conj, resolve_conj, resolve_neg, is_conj, angle),
    *rows_of("mfi", conj_physical),
    *rows_of("f", real, imag, view_as_real, view_as_complex, polar),
)  # fmt: skip


def _set_real(self: Tensor, value: object) -> None:
    real(self)[...] = value


def _set_imag(self: Tensor, value: object) -> None:
    imag(self)[...] = value


METHODS: dict[str, Any] = {
    **methods_of(ROWS),
    "real": property(real, _set_real),
    "imag": property(imag, _set_imag),
    "is_neg": lambda self: False,
}
FUNCTIONS: dict[str, Any] = {**functions_of(ROWS), "complex": with_out("complex", complex_from)}
