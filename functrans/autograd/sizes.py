"""``Size``: the extents of a tensor, as ``shape`` and ``size()`` give them.

Here: the tuple with torch's name and ``numel``, and the ``Size`` of each plain tuple. Equations
hold the plain tuples of values.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans.core.boundary import boundary


def wrong_type(x: Any, argument: str, name: str, kind: str) -> TypeError:
    """The error for an argument of another type than the kind that is taken."""
    lead = f"{name}(): " if name else ""
    return TypeError(f"{lead}argument '{argument}' must be {kind}, not {type(x).__name__}")


NEGATIVE = "Trying to create tensor with negative dimension {0}: [{0}]"


def integer(
    x: Any,
    argument: str,
    name: str = "",
    kind: str = "int",
    least: int | None = None,
    words: str = NEGATIVE,
) -> int:
    """An argument that is an integer: of Python, of NumPy, or as a tensor.

    Args:
      x: what is given.
      argument: its name.
      name: of the function.
      kind: what the argument is made of, for the message.
      least: the least that is taken.
      words: what is said of less.

    Raises:
      TypeError: it is something else, as a float or a truth value.
      RuntimeError: it is less.
    """
    if type(x) is not int:
        if not hasattr(x, "__index__") or isinstance(x, (bool, np.bool_)):
            raise wrong_type(x, argument, name, kind)
        x = operator.index(x)
    if least is not None and x < least:
        raise RuntimeError(words.format(x))
    return x


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


class Sizes(dict[tuple[int, ...], Size]):
    """Extents to their ``Size``, which is faster to look up than to make."""

    def __missing__(self, extents: tuple[int, ...]) -> Size:
        """Made at the first use; not all are kept."""
        if len(self) >= 1024:
            self.clear()
        made = self[extents] = tuple.__new__(Size, extents)
        return made


SIZES = Sizes()
"""Those of all tensors."""
