"""Hidden random state: numbers drawn from NumPy's global generator while a function is staged.

Such numbers become constants of the program, the same in each call. Here: what tells that it
happened. Not here: random numbers as functions of keys (``functrans.random``).

Layer: ``jitted``.
"""

from __future__ import annotations

import sys
from typing import Any

from functrans.core.boundary import warn


def global_generator() -> Any:
    """Where NumPy's global generator stands; ``None`` while ``numpy.random`` is not loaded."""
    module = sys.modules.get("numpy.random")
    if module is None:
        return None
    state = module.get_state(legacy=False)
    inner = state["state"]
    if "key" not in inner:  # not the Mersenne twister: a user has replaced it
        return str(inner)
    return inner["pos"], int(inner["key"][0]), state["has_gauss"]  # the key changes as a whole


def warn_of_draws(label: str, before: tuple[Any, ...]) -> None:
    """Warn if NumPy's global generator was used since its place was noted.

    Another thread may have used it, so that this is no error.
    """
    if before is not None and global_generator() != before:
        warn(
            f"{label}: NumPy's global generator (numpy.random) was used while the function was "
            "traced; its numbers are constants of the program, the same in each call. Draw them "
            "outside and pass them as arguments, or use functrans.random with a key as argument.",
            UserWarning,
        )
