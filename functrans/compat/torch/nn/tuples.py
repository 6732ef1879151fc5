"""``torch.nn.modules.utils``: a number for each of several axes.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from functrans.compat.torch.not_offered import nothing_else


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """The function that repeats a number ``n`` times, and makes a tuple of several."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")

__getattr__ = nothing_else(__name__)
