"""Calls of exported functions in this process."""

import ctypes
from typing import Any

import numpy as np

from functrans.compiler.export import Exported


def called(exported: Exported, args: Any, like: Any, workspace_at: int = 0) -> tuple[int, Any]:
    """The status and results of a shared library, and that it stays within its workspace."""
    library = ctypes.CDLL(str(exported.code))
    function = getattr(library, exported.name)
    memory = np.full(exported.workspace_bytes + 192, 0xA5, np.uint8)
    start = -memory.ctypes.data % 64 + 64 + workspace_at
    results = [np.full_like(x, 7) for x in like]
    given = [np.asarray(x) for x in args]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*given, *results)]
    status = function(*pointers, ctypes.c_void_p(memory.ctypes.data + start))
    assert (memory[:start] == 0xA5).all()
    assert (memory[start + exported.workspace_bytes :] == 0xA5).all()
    return status, results
