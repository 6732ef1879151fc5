"""Dtypes of results: torch's rules of promotion, and defaults of numbers and integers.

Here: ``result_dtype`` (the common dtype of operands), the default floating dtypes, conversion of
operands. Not here: dtypes as values of the torch namespace (``functrans.compat.torch.dtypes``).

Layer: ``autograd``. Reference: PyTorch documentation, "Tensor Attributes", type promotion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.labels import torch_type
from functrans.autograd.modes import modes
from functrans.autograd.modes import torch_defaults as torch_defaults
from functrans.autograd.recording import follows, mark_origin, namespaces
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Trace, Tracer, inner_trace
from functrans.core.values import Operand
from functrans.passes.nodes import kept
from functrans.primitives.structural import cast

default_dtype = np.dtype(np.float64)
"""Of Python floats; ``functrans.compat.torch`` has its own."""


def default_of(*operands: Tensor | complex) -> np.dtype:
    """The floating dtype that integers become: by the namespace in which they were made."""
    return torch_defaults.dtype if any(map(follows, operands)) else default_dtype


def with_default(result: Tensor, operands: Sequence[Any]) -> Tensor:
    """A result that remembers from which namespace its operands come."""
    if result.dtype.kind in "iub" and any(map(follows, operands)):
        result._follows = True
    elif namespaces.has_torch:
        mark_origin(result, operands)
    return result


def torch_tensor(value: Operand, trace: Trace | None = None) -> Tensor:
    """The tensor of ``functrans.compat.torch`` on a value, which is not copied."""
    result = Tensor.of(value, None, trace)
    result._follows = True
    return result


CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
"""Kinds of numbers, lowest first; bfloat16 is of kind V."""


def result_dtype(*operands: Any) -> np.dtype:
    """Torch's common dtype: tensors with axes count before those without, these before numbers.

    Args:
      *operands: tensors, arrays, Python numbers.

    Reference: PyTorch documentation, "Tensor Attributes", type promotion.
    """
    best: list[np.dtype | None] = [None, None, None]
    for x in operands:
        own = x._value if isinstance(x, Tensor) else x
        dtype = getattr(own, "dtype", None)
        if dtype is None:
            rank, dtype = 2, _NUMBERS[type(x)] or number_dtype(type(x), default_of(*operands))
        else:
            rank = 0 if own.shape else 1
        have = best[rank]
        best[rank] = dtype if have is None or have is dtype else wider(have, dtype)
    found: np.dtype | None = None
    for dtype in best:
        if dtype is None:
            continue
        if found is None:
            found = dtype
        elif CATEGORY[dtype.kind] > CATEGORY[found.kind]:
            if CATEGORY[dtype.kind] == 3 and CATEGORY[found.kind] == 2:
                found = np.result_type(found, np.complex64)
            else:
                found = dtype
    assert found is not None
    return found


def wider(a: np.dtype, b: np.dtype) -> np.dtype:
    """The common dtype of two of one rank: the kind counts first, then the size."""
    kinds = CATEGORY[a.kind], CATEGORY[b.kind]
    if kinds[0] == kinds[1] or kinds in ((2, 3), (3, 2)):
        if {a.name, b.name} == {"float16", "bfloat16"}:  # of which NumPy has none
            return np.dtype(np.float32)
        return np.promote_types(a, b)
    return a if kinds[0] > kinds[1] else b


_NUMBERS: dict[type, Any] = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: None,
    complex: None,
}


def number_dtype(kind: type, default: np.dtype) -> np.dtype:
    """The dtype of Python numbers of a type, or of one made from it."""
    if issubclass(kind, int):
        return np.dtype(bool if kind is bool else np.int64)
    return np.result_type(default, np.complex64) if issubclass(kind, complex) else default


def to_dtype(x: Any, dtype: np.dtype) -> Any:
    """A tensor of another dtype; the same where it has it already."""
    own = x._value.dtype if isinstance(x, Tensor) else x.dtype
    return x if own is dtype or own == dtype else cast(x, dtype)


def wrapped(x: Any, dtype: np.dtype) -> Any:
    """A number as an operand of a dtype; integers keep the bits that it has.

    Raises:
      OverflowError: an integer of more than 64 bits.
    """
    try:
        return dtype.type(x)
    except OverflowError:
        if dtype.kind not in "iu":
            raise
    _check_size(x)
    return np.array(x % (1 << 64), np.uint64).astype(dtype)[()]


def _check_size(x: object) -> None:
    """Refuse an integer of more than 64 bits, in Python's words as PyTorch does."""
    if isinstance(x, int) and not -(1 << 63) <= x < 1 << 64:
        x.to_bytes(8, "little")


def exact(x: Any, dtype: np.dtype) -> Any:
    """A number to fill with, or to multiply by, in a dtype that must hold it.

    Integers without sign hold negative ones, too, as in C.

    Raises:
      TypeError: it is no number.
      RuntimeError: it is too large, not finite, or complex.
      OverflowError: an integer of more than 64 bits.
    """
    if not hasattr(x, "real"):
        raise TypeError(f"argument must be Number, not {type(x).__name__}")
    _check_size(x)
    value = x if x.imag else x.real
    if x.imag and dtype.kind not in "cb":
        pass
    elif dtype.kind in "iu":
        ends = np.iinfo(dtype)
        wraps = dtype.kind == "u" and isinstance(value, (int, np.integer))
        if (-int(ends.max) if wraps else int(ends.min)) <= value <= int(ends.max):
            return wrapped(int(value), dtype)
    else:
        with np.errstate(over="ignore"):
            number = np.array(value).astype(dtype)[()]
        if dtype.kind == "b" or np.isfinite(number) or not np.isfinite(value):
            return number
    kind = _C_TYPES.get(dtype.name, f"{dtype.name}_t")
    raise RuntimeError(f"value cannot be converted to type {kind} without overflow: {x}")


_C_TYPES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def as_tensor(x: Any, like: Tensor) -> Any:
    """A plain array among operands as a tensor; tensors and numbers as they are.

    A traced array is one for a tensor of a trace inside its own; else the operation is the array's.
    An array that may change is copied: its later contents are not what a derivative reads.
    """
    if isinstance(x, (np.ndarray, np.generic)):
        # A step under jit looks itself at the arrays that it reads.
        return like._trace.lift(kept(x) if modes.grad and modes.session is None else x)
    if isinstance(x, Tracer) and not isinstance(x, Tensor):
        trace = like._trace
        return trace.lift(x) if inner_trace(trace, x._trace) is trace else x
    return x


def python_number(x: Any) -> Any:
    """A scalar of NumPy's as Python's number, which it is to torch; others as they are."""
    number = x.item()
    return number if type(number) in _NUMBERS else x


def with_python_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments of a function of torch without scalars of NumPy; keywords are replaced in place."""
    for key, x in kwargs.items():
        if isinstance(x, np.generic):
            kwargs[key] = python_number(x)
    for x in args:
        if isinstance(x, np.generic):
            return tuple([python_number(x) if isinstance(x, np.generic) else x for x in args])
    return args


def torch_kind(dtype: np.dtype) -> str:
    """Torch's short name of a dtype: ``Double``."""
    return torch_type(dtype).removeprefix("torch.").removesuffix("Tensor")
