"""What a report of a fault should say: ``show_versions``.

Here: versions of what takes part, the processor that code is made for, settings. Not here: what a
program does (``debugging.costs``), what the caches hold (``ft.cache_statistics``).

Layer: ``debugging``.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from functrans.compiler import threads
from functrans.core.state import Config, current_config
from functrans.errors import FunctransError
from functrans.machine import engine
from functrans.machine.cache import object_cache

_NEEDED = ("numpy", "scipy", "optree", "numba", "llvmlite", "typing_extensions")
_OPTIONAL = ("ml_dtypes", "dask", "matplotlib", "tqdm", "threadpoolctl", "torch", "jax")
_VECTORS = re.compile("sse|ssse|avx|fma$|amx|neon|s[mv]e|fp16|bf16")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """What native code is made for, or why there is none."""
    try:
        target = engine.target()
    except FunctransError as error:
        return f"interpreted only: {error}"
    return f"{target.cpu} ({target.triple}), LLVM {target.llvm_version}"


def _features() -> str:
    """Instruction sets of vectors and matrices that native code may use."""
    try:
        found = re.findall(r"\+([\w.-]+)", engine.target().features)
    except FunctransError:
        return "unknown"
    return " ".join(name for name in found if _VECTORS.match(name)) or "those of its kind"


def _blas() -> str:
    """The library that NumPy was built with."""
    import numpy as np

    found: Any = np.show_config(mode="dicts")
    library = found.get("Build Dependencies", {}).get("blas", {})
    return f"{library.get('name', 'unknown')} {library.get('version', '')}".strip()


def _cache() -> str:
    """Where compiled code is kept, and how much there is."""
    cache = object_cache()
    if cache.directory is None:
        return "none"
    found = cache.statistics()
    used, limit = found.size_bytes / 2**20, cache.limit_bytes / 2**20
    return f"{cache.directory}: {found.entries} programs, {used:.1f} of {limit:.0f} MB"


def _settings() -> str:
    """Settings that are not the default."""
    settings, default = current_config.get(), Config()
    changed = {
        field.name: getattr(settings, field.name)
        for field in fields(settings)
        if getattr(settings, field.name) != getattr(default, field.name)
    }
    changed |= {key: os.environ[key] for key in sorted(os.environ) if key.startswith("FUNCTRANS_")}
    return ", ".join(f"{name}={value!r}" for name, value in changed.items()) or "default"


def show_versions() -> None:
    """Print what a report of a fault should say: versions, processor, threads, cache, settings.

    Versions of functrans and of what it uses, platform, the processor that native code is made for
    and its vector instructions, the BLAS of NumPy, threads, the directory of compiled code and its
    size, settings that are not the default. It prints no more of the machine than that.

    Example:
      >>> import functrans as ft
      >>> ft.show_versions()
      functrans           ...
      Python              ...
      ...
    """
    rows = {
        "functrans": _version("functrans"),
        "Python": f"{platform.python_version()} ({sys.implementation.name})",
        "platform": platform.platform(),
        **{package: _version(package) for package in _NEEDED},
        **{p: found for p in _OPTIONAL if (found := _version(p)) != "not installed"},
        "BLAS of NumPy": _blas(),
        "native code for": _processor(),
        "vector instructions": _features(),
        "threads": f"{threads.get_num_threads()} of {os.cpu_count()} processors",
        "cache": _cache(),
        "settings": _settings(),
    }
    for name, value in rows.items():
        print(f"{name:<21}{value}")
