"""Results as arrays of their own, which nobody else refers to.

Here: ``own_array``, ``own_arrays``, ``private_arrays``. Not here: checks (``core.arguments``).

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.values import Array


def own_array(value: Array | complex, foreign: Sequence[Any] = ()) -> Any:
    """A result as an ndarray that the caller may write to.

    Args:
      value: plain value or tracer.
      foreign: arrays that are not the result's own (arguments): it is copied if it is one of them.

    Returns:
      Tracers as they are; everything else as a writable ndarray (0-d for a scalar) that shares no
      memory with an argument, or a tensor with such an array if an argument is a tensor.
    """
    if isinstance(value, Tracer):
        return value
    for argument in foreign:
        if isinstance(argument, Tracer) and not argument._is_array:  # a tensor
            return cast(Any, argument._trace).lift(own_array(value), foreign)
    if type(value) is not np.ndarray:
        return np.array(value)
    if not value.flags.owndata or not value.flags.writeable or any(value is f for f in foreign):
        return value.copy()
    return value


def own_arrays(values: Sequence[Any], foreign: Sequence[Any] = ()) -> list[Any]:
    """``own_array`` of each; a value that occurs twice is copied."""
    seen = {id(value) for value in foreign}
    root: Any = None
    for f in foreign:
        if isinstance(f, Tracer) and not f._is_array:
            root = f._trace
            break
    results = []
    for value in values:
        result = value if isinstance(value, Tracer) else own_array(value)
        if root is not None and not isinstance(value, Tracer):
            array: Any = result
            result = root.lift(array.copy() if id(array) in seen else array, foreign)
        if id(result) in seen and type(result) is np.ndarray:
            result = result.copy()
        seen.add(id(result))
        results.append(result)
    return results


def private_arrays(values: Sequence[Any]) -> list[Any]:
    """Copies of values that somebody else goes on using."""
    return own_arrays(values, values)
