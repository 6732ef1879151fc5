"""``torch.cuda``: there is none, as programs ask before they use it.

Layer: ``compat``.
"""

from __future__ import annotations


def is_available() -> bool:
    """``False``: functrans computes on the CPU.

    Example:
      >>> is_available()
      False
    """
    return False


def device_count() -> int:
    """0.

    Example:
      >>> device_count()
      0
    """
    return 0


def manual_seed_all(seed: int) -> None:
    """Accepted: there is no generator to seed."""
