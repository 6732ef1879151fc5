"""What the code that calls an operator or a method of a traced array is doing, by its frame.

Here: whether it assigns in place, formats a text, or is plain code. Not here: which line of the
user's that is (``core.source``).

Layer: ``arrays``.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from functrans.core.source import is_internal
from functrans.core.state import rebinds

_BINARY_OP = dis.opmap["BINARY_OP"]
_FIRST_IN_PLACE, _LAST_IN_PLACE = 13, 25
"""The arguments of that instruction for augmented assignments."""
_REMAINDERS = frozenset({6, 19})
"""The arguments of that instruction for ``%`` and ``%=``."""


def is_rebinding(frame: FrameType) -> bool:
    """Whether what the code of a frame says to be done in place makes another array.

    Not where that code belongs to a library written for NumPy.
    """
    return rebinds.get() and not is_internal(frame.f_code.co_filename)


def is_augmented(inputs: Sequence[Any], out: Any) -> bool:
    """Whether the user's ``a += x`` is what a ufunc is called for, and not a library's.

    Where ``x`` is of a library whose arrays are never written to, that makes another array, also of
    an ``a`` that is not.
    """
    if type(out) is not tuple or out[0] is not inputs[0]:
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__array_ufunc__":
        frame = frame.f_back
    if frame is None or is_internal(frame.f_code.co_filename):
        return False
    code, place = frame.f_code.co_code, frame.f_lasti
    return code[place] == _BINARY_OP and _FIRST_IN_PLACE <= code[place + 1] <= _LAST_IN_PLACE


def is_formatting(frame: Any) -> bool:
    """Whether a frame is at an operator ``%``, which asks a number for itself only for a text."""
    code, place = frame.f_code.co_code, frame.f_lasti
    return code[place] == _BINARY_OP and code[place + 1] in _REMAINDERS


def is_plain_code(frame: Any) -> bool:
    """Whether a frame is of a function of plain NumPy, whose numbers stay traced (``plain``)."""
    return hasattr(type(frame.f_globals), "original")
