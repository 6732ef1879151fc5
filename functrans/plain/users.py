"""Whose code is left alone: the standard library's and that of a declared set of packages.

Layer: ``plain`` (first module).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from functrans.core.caching import remembered
from functrans.core.source import LIBRARIES


@remembered(4096)
def is_user_module(name: str) -> bool:
    """Whether the functions of a module are user code; what is compiled by Cython is not."""
    if not isinstance(name, str | None) or (name or "").startswith("_cython_"):
        return False
    top = (name or "__main__").partition(".")[0]
    return top == "__main__" or (top not in LIBRARIES and top not in sys.stdlib_module_names)


def is_user_function(function: Callable[..., Any]) -> bool:
    """Whether a function is user code; examples in docstrings are, whose names they see or not."""
    if function.__code__.co_filename.startswith("<doctest"):
        return True
    return is_user_module(function.__globals__.get("__name__"))
