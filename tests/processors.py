"""Processors of the kind that the tests run on, by LLVM's names."""

import platform

ON_X86 = platform.machine() in ("x86_64", "AMD64")

SMALL = ("x86-64", "x86-64-v2", "x86-64-v3") if ON_X86 else ("generic", "cortex-a35", "cortex-a72")
"""Processors whose code runs here, the smallest first."""
