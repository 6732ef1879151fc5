"""``torch.special``: special functions, by name.

Here: names. Not here: the functions (``functrans.autograd.methods.special``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.methods.special import SPECIAL

globals().update(SPECIAL)


def __getattr__(name: str) -> Any:
    """Nothing beside the table.

    Raises:
      AttributeError: always.
    """
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
