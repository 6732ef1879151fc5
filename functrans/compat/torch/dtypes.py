"""Torch's names of dtypes, and functions of dtypes.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.dtypes import dtype as dtype
from functrans.autograd.dtypes import given_dtype, limits_of, torch_dtype
from functrans.autograd.methods.conversion import bfloat16_dtype
from functrans.autograd.promotion import result_dtype, torch_defaults
from functrans.core.boundary import boundary
from functrans.core.dispatch import dtype_of

_NAMES: dict[str, tuple[str, ...]] = {
    "float64": ("float64", "double"),
    "float32": ("float32", "float"),
    "float16": ("float16", "half"),
    "complex64": ("complex64", "cfloat"),
    "complex128": ("complex128", "cdouble"),
    "uint8": ("uint8",),
    "int8": ("int8",),
    "int16": ("int16", "short"),
    "int32": ("int32", "int"),
    "int64": ("int64", "long"),
    "uint16": ("uint16",),
    "uint32": ("uint32",),
    "uint64": ("uint64",),
    "bool": ("bool",),
}

DTYPES: dict[str, dtype] = {
    name: torch_dtype(np.dtype(numpy_name))
    for numpy_name, names in _NAMES.items()
    for name in names
}


def bfloat16() -> dtype:
    """The dtype bfloat16 of the package ml_dtypes."""
    return torch_dtype(bfloat16_dtype())


def get_default_dtype() -> dtype:
    """The dtype of Python floats in ``functrans.compat.torch``: float32 at first.

    Example:
      >>> get_default_dtype()
      torch.float32
    """
    return torch_dtype(torch_defaults.dtype)


def set_default_dtype(d: Any) -> None:
    """Set the dtype of Python floats in ``functrans.compat.torch``, for the process.

    ``functrans.autograd`` keeps float64.

    Args:
      d: a floating dtype.

    Raises:
      TypeError: it is none.

    Example:
      >>> set_default_dtype(np.float64)
      >>> get_default_dtype()
      torch.float64
      >>> set_default_dtype(np.float32)
    """
    chosen = given_dtype(d)
    if chosen.kind not in "fV":
        raise TypeError(
            f"only floating-point types are supported as the default type, got {chosen}"
        )
    torch_defaults.dtype = chosen


class _Limits:
    """Limits of a dtype, as Python numbers."""

    _names: tuple[str, ...]

    def __init__(self, limits: Any, number: Callable[[Any], Any]) -> None:
        self.bits, self.dtype = limits.bits, limits.dtype.name
        for name in self._names:
            setattr(self, name, number(getattr(limits, name)))

    def __repr__(self) -> str:
        """``iinfo(min=-128, max=127, dtype=int8)``."""
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in self._names)
        return f"{type(self).__name__}({shown}, dtype={self.dtype})"


class finfo(_Limits):  # noqa: N801  # torch's name
    """Limits of a floating dtype, by default the default one.

    Attributes:
      bits: of a number.
      dtype: its name.
      eps: distance from 1 to the next number.
      max: the largest number; ``min`` is its negative.
      resolution: of decimal digits.
      tiny: the smallest positive number with all its digits; also ``smallest_normal``.

    Raises:
      TypeError: the dtype is of integers.

    Example:
      >>> finfo(np.float32).eps
      1.1920928955078125e-07
    """

    _names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    @boundary
    def __init__(self, type: Any = None) -> None:
        own = given_dtype(torch_defaults.dtype if type is None else type)
        if own.kind not in "fcV":
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo for "
                f"{torch_dtype(own)!r}"
            )
        super().__init__(limits_of(own), float)


class iinfo(_Limits):  # noqa: N801  # torch's name
    """Limits of an integer dtype.

    Attributes:
      bits: of a number.
      dtype: its name.
      max: the largest number.
      min: the smallest number.

    Raises:
      TypeError: the dtype is of no integers.

    Example:
      >>> iinfo(np.int8).max
      127
    """

    _names = ("min", "max")

    @boundary
    def __init__(self, type: Any) -> None:
        own = given_dtype(type)
        if own.kind not in "iu":
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo for "
                f"{torch_dtype(own)!r}"
            )
        super().__init__(np.iinfo(own), int)


def promote_types(type1: object, type2: object) -> dtype:
    """The dtype of an operation on tensors of two dtypes.

    Example:
      >>> promote_types(np.int64, np.float32)
      torch.float32
    """
    return torch_dtype(
        np.dtype(result_dtype(*(np.zeros(1, given_dtype(x)) for x in (type1, type2))))
    )


def result_type(tensor1: Any, tensor2: object) -> dtype:
    """The dtype of an operation on two tensors or numbers."""
    return torch_dtype(np.dtype(result_dtype(tensor1, tensor2)))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether an in-place operation may convert one dtype to another.

    Example:
      >>> can_cast(np.float32, np.int64)
      False
    """
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
    return order[given_dtype(from_).kind] <= order[given_dtype(to).kind]


def is_floating_point(input: object) -> bool:
    """Whether a tensor is of floating numbers."""
    return dtype_of(input).kind in "fV"


def is_complex(input: Any) -> bool:
    """Whether a tensor is of complex numbers."""
    return dtype_of(input).kind == "c"
