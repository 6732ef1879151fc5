"""Warnings that point at the user's line.

Here: ``warn_user``. Not here: the lines that errors name (``functrans.core.source``).

Layer: ``compat``.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __file__.rpartition("compat")[0]


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is not of functrans.

    Args:
      text: what to say.
      category: kind of the warning.
    """
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += frame is not None
    warnings.warn(text, category, stacklevel=level)
