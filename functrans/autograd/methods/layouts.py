"""How tensors lie in memory: those that have memory, and traced ones, which will have some.

Layer: ``autograd``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.memory_order import dense_like
from functrans.autograd.modes import modes
from functrans.autograd.recording import enter_session
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer
from functrans.passes.layouts import plain_value


def layout_of(x: Tensor) -> np.ndarray:
    """An array with the extents and strides of a tensor: its memory, where there is one.

    Values of a batch or a program have none; they are computed in C order.
    """
    value = x._memory()
    if not isinstance(value, Tracer):
        return value
    found = plain_value(value)
    return np.zeros(value.shape, value.dtype) if found is None else np.asarray(found)


def memory_of(x: Tensor) -> np.ndarray:
    """``layout_of``, in a step that ``jit`` traces as it is without."""
    if modes.session is None:
        return layout_of(x)
    enter_session(x)
    layout: np.ndarray = modes.session.layout(x._value)
    return layout


def viewed_layout(x: Tensor) -> np.ndarray:
    """The same for views; what levels compute counts as in C order."""
    value, how = x._value, x._view
    if not isinstance(value, Tracer):
        return x._memory()
    if how is not None:
        own = viewed_layout(how.base)
        for step in how.steps:
            own = step(own)
        return own
    if modes.session is not None:
        return memory_of(x)
    is_argument = id(x) in getattr(x._trace, "arguments", ())
    return layout_of(x) if is_argument else np.empty(value.shape, value.dtype)


def laid_out(x: Tensor, dtype: DTypeLike | None = None) -> np.ndarray:
    """Zeros with the extents and layout of a tensor, without gaps and repetitions."""
    return dense_like(memory_of(x), np.dtype(dtype or x.dtype))
