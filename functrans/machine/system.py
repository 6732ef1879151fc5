"""What differs between operating systems.

Here: ``system``, the one place where the platform is asked; ``unsupported_platform``, where there
is no machine code at all; the addresses of functions of the C library and of the system. Not here:
the processor (``machine.engine.target``), what code calls them (``emitter.chunks``: threads).

| | Windows | macOS | others |
|---|---|---|---|
| functions of C | Universal CRT | the process | the process, ``libm``, ``libgcc_s`` |
| threads | ``CreateThread`` | pthreads | pthreads |
| LLVM gives up (``abort``) | the process ends | is caught | is caught |
| owners and modes of cached files | not looked at | looked at | looked at |

Object code is ELF everywhere, with the system's calling convention and plain names: it never leaves
the process but for our own cache.

Layer: ``machine``.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from typing import Any, Literal

System = Literal["windows", "macos", "posix"]


def system() -> System:
    """The kind of operating system; ``"posix"`` for Linux and all others with its interfaces."""
    if sys.platform == "win32":
        return "windows"
    return "macos" if sys.platform == "darwin" else "posix"


def unsupported_platform() -> str | None:
    """What of this platform machine code cannot be made for, if anything."""
    if sys.maxsize < 2**63 - 1 or sys.byteorder != "little":
        return f"{8 * ctypes.sizeof(ctypes.c_void_p)}-bit {sys.byteorder}-endian processes"
    if system() == "windows" and platform.machine().lower() in ("arm64", "aarch64"):
        return "Windows on ARM"  # as ELF, LLVM ends the process over frames of functions
    return None


_LIBRARIES: dict[System, tuple[str | None, ...]] = {
    # The C library that Python itself uses (``msvcrt`` is an old one, with a heap of its own and
    # without C99's mathematics), threads, and the probe of the stack that LLVM calls in functions
    # with large frames (``__chkstk``).
    "windows": ("ucrtbase.dll", "kernel32.dll", "ntdll.dll"),
    "macos": (None,),
    # ``libgcc_s`` has the conversions of half precision.
    "posix": (None, "libm.so.6", "libgcc_s.so.1"),
}
"""Where functions are looked for, in order; ``None`` is all that the process has loaded."""


@functools.cache
def _libraries(kind: System) -> tuple[Any, ...]:
    """What is there of a system's libraries, and Python's own functions."""
    libraries: list[Any] = []
    for name in _LIBRARIES[kind]:
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:
            continue
    return (*libraries, ctypes.pythonapi)


def function_address(name: str) -> int:
    """The address of a function of the C library, of the system or of Python; 0 if none has it."""
    return _function_address(system(), name)


_SAME = {"roundeven": "nearbyint", "roundevenf": "nearbyintf"}
"""Functions of C23 and what does the same as long as numbers are rounded to nearest."""


@functools.cache
def _function_address(kind: System, name: str) -> int:
    for library in _libraries(kind):
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return _function_address(kind, _SAME[name]) if name in _SAME else 0
