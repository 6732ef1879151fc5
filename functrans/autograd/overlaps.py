"""Memory in which several elements share a place, as in expanded tensors and windows.

Here: ``check_memory`` and ``check_places``, which refuse to write different numbers there. Not
here: the other conditions of a write (``autograd.writes``).

Layer: ``autograd``.
"""

from __future__ import annotations

import numpy as np

from functrans.autograd.residuals import region_of, root_of
from functrans.autograd.tensors import Tensor


def share_memory(x: Tensor, y: Tensor) -> bool:
    """Whether tensors have elements in common; of traced ones, as views of the same one."""
    own, other = x._memory(), y._memory()
    if not (isinstance(own, np.ndarray) and isinstance(other, np.ndarray)):
        root = root_of(x)
        if root is not root_of(y):
            return False
        if any(t._view is not None and t._view.is_copied for t in (x, y)):
            return True
        whole = np.empty(root.shape, root._value.dtype)
        views = [() if t._view is None else t._view.path for t in (x, y)]
        own, other = [region_of(path)(whole) for path in views]
    return bool(np.shares_memory(own, other))


def check_memory(memory: np.ndarray, is_constant: bool = False) -> None:
    """Refuse to write to elements that share memory, unless all become one number.

    Raises:
      RuntimeError: several do.
    """
    flags = memory.flags
    if not (flags.writeable and (flags.forc or is_constant or not _overlaps(memory))):
        _refuse()


def check_places(places: np.ndarray, is_constant: bool = False) -> None:
    """The same for elements that lie in numbered places.

    Raises:
      RuntimeError: several lie in one.
    """
    if not is_constant and np.unique(places).size < places.size:
        _refuse()


def _refuse() -> None:
    raise RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a "
        "single memory location. Please clone() the tensor before performing the operation."
    )


def _overlaps(memory: np.ndarray) -> bool:
    """Whether elements share memory: a smaller axis reaches beyond the step of a larger one."""
    axes = sorted((abs(s), n) for s, n in zip(memory.strides, memory.shape, strict=True) if n > 1)
    if not memory.size or not axes:
        return False
    reach = memory.itemsize
    for stride, n in axes:
        if stride < reach:
            break
        reach += stride * (n - 1)
    else:
        return False
    places = np.zeros((), np.intp)
    for stride, n in axes if axes[0][0] else ():
        places = np.add.outer(places, stride * np.arange(n))
    return np.unique(places).size < memory.size
