"""Where the elements of an array lie, and arrays whose elements lie as those of another one.

Not here: layouts of tensors (``autograd.methods.layouts``).

Layer: ``autograd``.
"""

from __future__ import annotations

import numpy as np


def is_dense(x: np.ndarray) -> bool:
    """Whether the elements lie side by side, in any order of axes."""
    expected = x.itemsize
    for stride, extent in sorted(zip(x.strides, x.shape, strict=True)):
        if extent != 1:
            if stride != expected:
                return False
            expected *= extent
    return True


def axes_in_memory(x: np.ndarray) -> tuple[int, ...]:
    """The axes of an array, outermost first, in the order in which PyTorch goes through them.

    Those of larger strides are outside; one that repeats elements stays where it is.
    """
    strides, shape = x.strides, x.shape
    inner_first = list(range(x.ndim))[::-1]
    for i in range(1, x.ndim):
        place = i
        for j in range(i - 1, -1, -1):
            inner, outer = inner_first[j], inner_first[place]
            a, b = strides[inner], strides[outer]
            if a and b and (a > b or (a == b and shape[inner] > shape[outer])):
                inner_first[j], inner_first[place] = outer, inner
                place = j
            elif a and b and a < b:
                break
    return tuple(inner_first[::-1])


def dense_like(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Zeros with the extents and the order of axes of an array, without gaps and repetitions."""
    if x.flags.c_contiguous:
        return np.zeros(x.shape, dtype)
    if is_dense(x):
        strides = [stride // x.itemsize * dtype.itemsize for stride in x.strides]
        return np.ndarray(x.shape, dtype, np.zeros(x.size, dtype), 0, strides)
    axes = axes_in_memory(x)
    return np.zeros([x.shape[axis] for axis in axes], dtype).transpose(np.argsort(axes))
