"""What modules print and return: names of types, indented lines, ``_IncompatibleKeys``.

Layer: ``compat``.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from functrans.autograd.labels import torch_type
from functrans.autograd.tensors import Tensor


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        """``<All keys matched successfully>`` if so."""
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def typename(x: Any) -> str:
    """Torch's name of a value's type: ``torch.FloatTensor``."""
    return torch_type(x.dtype) if type(x) is Tensor else type(x).__name__


def indented(text: str, n: int) -> str:
    """A text whose lines, but for the first one, are moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * n + line for line in rest)])
