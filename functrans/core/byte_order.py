"""The byte order of arrays that are captured.

Arrays of the other byte order may be captured, and stay as they are, so that what their owner
writes to them is seen. Their avals have this machine's order, and they are converted when an
operation is evaluated on them (``in_native_order``).

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_ndarray = np.ndarray  # found faster: each evaluation of an operation asks


def native_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in the byte order of this machine."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def native_array(value: Any) -> Any:
    """A value; an array of the other byte order as one of this machine's."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(native_dtype(value.dtype))
    return value


def in_native_order(values: Sequence[Any]) -> Sequence[Any]:
    """Operands of an evaluation: the same sequence, unless an array has the other byte order."""
    for value in values:
        if isinstance(value, _ndarray) and not value.dtype.isnative:
            return [native_array(value) for value in values]
    return values
