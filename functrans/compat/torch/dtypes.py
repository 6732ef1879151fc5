"""Torch's names of dtypes: they are NumPy's dtypes.

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.methods.conversion import bfloat16_dtype
from functrans.autograd.promotion import result_dtype, torch_defaults
from functrans.core.dispatch import dtype_of

dtype = np.dtype

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

DTYPES: dict[str, np.dtype] = {
    name: np.dtype(numpy_name) for numpy_name, names in _NAMES.items() for name in names
}


def bfloat16() -> np.dtype:
    """The dtype bfloat16 of the package ml_dtypes."""
    return bfloat16_dtype()


def get_default_dtype() -> np.dtype:
    """The dtype of Python floats in ``functrans.compat.torch``: float32 at first.

    Example:
      >>> get_default_dtype()
      dtype('float32')
    """
    return torch_defaults.dtype


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
      dtype('float64')
      >>> set_default_dtype(np.float32)
    """
    chosen = np.dtype(d)
    if chosen.kind not in "fV":
        raise TypeError(
            f"only floating-point types are supported as the default type, got {chosen}"
        )
    torch_defaults.dtype = chosen


def finfo(type: Any = None) -> np.finfo:  # torch's name
    """Limits of a floating dtype, by default the default one.

    Example:
      >>> float(finfo(np.float32).eps)
      1.1920928955078125e-07
    """
    return np.finfo(torch_defaults.dtype if type is None else type)


def iinfo(type: Any) -> np.iinfo:  # torch's name
    """Limits of an integer dtype.

    Example:
      >>> int(iinfo(np.int8).max)
      127
    """
    return np.iinfo(type)


def promote_types(type1: object, type2: object) -> np.dtype:
    """The dtype of an operation on tensors of two dtypes.

    Example:
      >>> promote_types(np.int64, np.float32)
      dtype('float32')
    """
    return result_dtype(np.zeros(1, type1), np.zeros(1, type2))


def result_type(tensor1: Any, tensor2: object) -> np.dtype:
    """The dtype of an operation on two tensors or numbers."""
    return result_dtype(tensor1, tensor2)


def can_cast(from_: Any, to: Any) -> bool:
    """Whether an in-place operation may convert one dtype to another.

    Example:
      >>> can_cast(np.float32, np.int64)
      False
    """
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
    return order[np.dtype(from_).kind] <= order[np.dtype(to).kind]


def is_floating_point(input: object) -> bool:  # torch's name
    """Whether a tensor is of floating numbers."""
    return dtype_of(input).kind in "fV"


def is_complex(input: Any) -> bool:  # torch's name
    """Whether a tensor is of complex numbers."""
    return dtype_of(input).kind == "c"
