"""``Size``: the extents of a tensor as ``size()`` gives them.

Here: the tuple with torch's name and ``numel``. Not here: ``tensor.shape``, which is the plain
tuple that NumPy has; the two are equal.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from functrans.core.boundary import boundary


class Size(tuple[int, ...]):
    """The extents of a tensor, as torch has them.

    Args:
      sizes: integers.

    Raises:
      TypeError: something else.

    Example:
      >>> Size((2, 3)).numel()
      6
      >>> Size((2, 3))[1:]
      torch.Size([3])
    """

    __slots__ = ()

    @boundary
    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        """The tuple of them."""
        found = []
        for i, size in enumerate(sizes):
            if not hasattr(size, "__index__"):
                raise TypeError(
                    f"torch.Size() takes an iterable of 'int' (item {i} is '{type(size).__name__}')"
                )
            found.append(operator.index(size))
        return tuple.__new__(cls, found)

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        """``torch.Size([2, 3])``."""
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index: Any) -> Any:
        """One of them, or several as ``Size``."""
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: object) -> Any:
        """Those of both."""
        return Size(tuple(self) + tuple(other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: object) -> Any:
        """Those of both."""
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        """Several times the same."""
        return Size(tuple(self) * times)

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        """By its elements."""
        return Size, (tuple(self),)
