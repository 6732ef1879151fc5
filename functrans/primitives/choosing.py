"""``np.where`` by bits, where that is faster: NumPy branches for each element.

500,000 conditions without order take 0.3 ms in float32 instead of 2.1; if they have an order, as
long. Two arrays of float64 take longer if there is one; 0 and an array do not.

Layer: ``primitives``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS

_MANY = 4096
"""Elements from which on the calls are not most of the time."""
_BITS: dict[np.dtype, type] = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}


def choose(c: Any, a: Any, b: Any) -> Any:
    """``np.where(c, a, b)``, the same bytes."""
    x = a if type(a) is np.ndarray else b
    if not (
        type(c) is type(x) is np.ndarray
        and c.size >= _MANY
        and c.shape == x.shape
        and x.dtype in _BITS
        and c.dtype == bool
        and c.flags.c_contiguous
        and x.flags.c_contiguous
    ):
        return np.where(c, a, b)
    bits = _BITS[x.dtype]
    other = b if x is a else a
    mask: np.ndarray = c.view(np.int8).astype(bits)
    if type(other) in PYTHON_SCALARS and str(other) in ("0", "0.0"):
        mask = np.negative(mask, out=mask) if x is a else np.subtract(mask, 1, out=mask)
        mask &= x.view(bits)
        return mask.view(x.dtype)
    if (
        bits is np.int32
        and type(other) is np.ndarray
        and (other.dtype, other.shape) == (x.dtype, x.shape)
    ):
        np.negative(mask, out=mask)
        mask &= a.view(bits) ^ b.view(bits)
        mask ^= b.view(bits)
        return mask.view(x.dtype)
    return np.where(c, a, b)
