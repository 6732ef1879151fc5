"""Compilers and emulators for processors that exported code is made for, where they are installed.

On Debian: ``gcc-aarch64-linux-gnu``, ``gcc-riscv64-linux-gnu``, ``gcc-arm-linux-gnueabihf``
and ``qemu-user``.
"""

import shutil

import pytest

OTHERS = {
    "aarch64-linux-gnu": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "riscv64-linux-gnu": ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
    "armv7-linux-gnueabihf": ("arm-linux-gnueabihf-gcc", "qemu-arm"),
}
"""Targets, with a C compiler for them and a program that emulates the processor."""


def tools_for(target: str) -> tuple[str, str]:
    """The C compiler for a target and the emulator; the test is skipped where one is missing."""
    compiler, name = OTHERS[target]
    emulator = shutil.which(name) or shutil.which(f"{name}-static")
    if shutil.which(compiler) is None or emulator is None:
        pytest.skip(f"there is no {compiler}, or no {name}")
    return compiler, emulator
