"""Floating-point conditions without NumPy's warnings.

Here: ``quietly`` (``begin_quiet``, ``end_quiet``), with which derivatives are evaluated, and all
imperative operations, since torch reports no condition.

NumPy keeps its error state in a context variable. ``np.errstate`` builds a new state at every
entry, which takes as long as a small operation; here one state is built once and set by token.

Layer: ``core``. Reference: NumPy 2 release notes, floating-point error handling.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


def _error_state() -> tuple[contextvars.ContextVar[Any], Any] | None:
    """NumPy's context variable and the state that ignores all conditions, if it has one."""
    before = contextvars.copy_context()
    with np.errstate(all="ignore"):
        for variable, state in contextvars.copy_context().items():
            if variable.name.startswith("numpy") and before.get(variable) is not state:
                return variable, state
    return None


_FOUND = _error_state()


def _begin_errstate() -> Any:
    state = np.errstate(all="ignore")
    state.__enter__()
    return state


def _end_errstate(state: Any) -> None:
    state.__exit__(None, None, None)


begin_quiet: Callable[[], Any]
end_quiet: Callable[[Any], None]
if _FOUND is None:
    begin_quiet, end_quiet = _begin_errstate, _end_errstate
else:
    begin_quiet, end_quiet = partial(_FOUND[0].set, _FOUND[1]), _FOUND[0].reset
"""What ``quietly`` does before and after the call, for the hottest places: a token goes between."""


def quietly(function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """A function of arguments, evaluated without NumPy's warnings.

    Example:
      >>> quietly(np.log, np.zeros(1))
      array([-inf])
    """
    token = begin_quiet()
    try:
        return function(*args, **kwargs)
    finally:
        end_quiet(token)
