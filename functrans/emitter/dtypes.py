"""The dtypes that NumPy would compute in.

Here: ``loop_dtypes``, to which the operands of an elementwise equation are converted before its
primitive's ``write``, and ``literal_in``, for Python's numbers. Not here: conversions
(``emitter.casts``).

Layer: ``emitter``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.caching import remembered
from functrans.core.primitive import Primitive
from functrans.core.values import Array

_PYTHON_TYPES: dict[str, type] = {"i": int, "f": float, "c": complex}
_COMPARISONS = frozenset(
    (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
)
_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)


def loop_dtypes(
    primitive: Primitive, avals: tuple[ShapedArray, ...], out_aval: ShapedArray
) -> tuple[np.dtype, ...]:
    """The dtype that each operand is converted to before the operation.

    Args:
      primitive: an elementwise one, or any whose elements are computed one by one.
      avals: of the operands; weak ones are Python scalars and give way (NEP 50).
      out_aval: of the result.

    Returns:
      One dtype per operand. Where no ufunc decides, operands of an elementwise primitive have the
      result's dtype (but the condition of ``where``, which keeps its own), all others their own.
    """
    family = primitive.elementwise
    own = tuple(aval.dtype for aval in avals)
    if family is None:
        return own
    if family.ufunc is not None:
        is_number = out_aval.weak and out_aval.dtype.kind != "b"
        if is_number and all(dtype.kind == "b" for dtype in own):  # Python's booleans
            return _resolved(family.ufunc, (_INT64,) * len(avals))
        return _resolved(family.ufunc, tuple(map(_key, avals)))
    if primitive.name == "where":
        return own[0], out_aval.dtype, out_aval.dtype
    return (out_aval.dtype,) * len(avals)


def literal_in(
    value: float, dtype: np.dtype, primitive: Primitive | None = None
) -> Array | complex:
    """A number of a program in the dtype that an operation computes in.

    Args:
      value: Python's integers of any size; all others stay as they are.
      dtype: of the operation.
      primitive: the elementwise operation, if it is one.

    Returns:
      The number; ``np.where`` takes an integer that does not fit modulo two to the number of bits.

    Raises:
      OverflowError: it does not fit, where NumPy says so.
    """
    if type(value) is not int or dtype.kind not in "biu":
        return value
    limits = np.iinfo(dtype if dtype.kind != "b" else np.int64)
    if limits.min <= value <= limits.max:
        return value
    if primitive is None or primitive.name != "where" or not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    wrapped = value & ((1 << limits.bits) - 1)
    return wrapped if wrapped <= limits.max else wrapped - (1 << limits.bits)


def _key(aval: ShapedArray) -> Any:
    return _PYTHON_TYPES.get(aval.dtype.kind, aval.dtype) if aval.weak else aval.dtype


@remembered(4096)
def _resolved(ufunc: np.ufunc, keys: tuple[Any, ...]) -> tuple[np.dtype, ...]:
    """Dtypes of the operands in the loop that NumPy picks."""
    if all(isinstance(key, type) for key in keys):
        keys = tuple(np.dtype(key) for key in keys)
    # By identity: NumPy's int64 is equal to Python's int.
    others = [key for key in keys if key is not int]
    if ufunc in _COMPARISONS and len(others) == 1 and _is_integer(others[0]):
        # A Python integer is compared by value, also one that the dtype does not have.
        wide = _UINT64 if others[0] == _UINT64 else _INT64
        return tuple([_INT64 if key is int else wide for key in keys])
    return ufunc.resolve_dtypes((*keys, *(None,) * ufunc.nout))[: ufunc.nin]


def _is_integer(key: object) -> bool:
    return isinstance(key, np.dtype) and key.kind in "iu"
