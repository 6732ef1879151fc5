"""``torch.jit``: marks of TorchScript, which change nothing here.

Functions and modules stay Python, as they do in torch when ``PYTORCH_JIT=0``. Not here: what needs
a program of TorchScript (``trace``, ``save``, ``freeze``); ``functrans.jit`` compiles.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from functrans.compat.torch.not_offered import nothing_else

__all__ = [
    "Final", "annotate", "export", "ignore", "interface", "is_scripting", "is_tracing", "script",
    "script_if_tracing", "script_method", "unused",
]  # fmt: skip


def script(obj: Any, *args: object, **kwargs: object) -> Any:
    """The function, class or module itself.

    Example:
      >>> import functrans.compat.torch as torch
      >>> torch.jit.script(torch.sin) is torch.sin
      True
    """
    return obj


def ignore(drop: Any = False, **kwargs: object) -> Callable[..., Any]:
    """The function itself, or a decorator that gives it."""
    return drop if callable(drop) else script


def annotate(the_type: object, the_value: Any) -> Any:
    """The value itself."""
    return the_value


def is_scripting() -> bool:
    """``False``."""
    return False


is_tracing = is_scripting
export = interface = script_if_tracing = script_method = unused = script

__getattr__ = nothing_else(__name__)
