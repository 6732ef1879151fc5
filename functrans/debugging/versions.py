"""What a report of a fault should say: ``show_versions``.

Here: versions of what takes part, the processor that code is made for, settings. Not here: what a
program does (``debugging.costs``), what the caches hold (``ft.cache_statistics``).

Layer: ``debugging``.
"""

from __future__ import annotations

import os
import platform
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
_OPTIONAL = ("ml_dtypes", "matplotlib", "tqdm", "threadpoolctl", "torch", "jax")


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
    return f"{target.cpu} ({target.triple})"


def _blas() -> str:
    """The library that NumPy was built with."""
    import numpy as np

    found: Any = np.show_config(mode="dicts")
    library = found.get("Build Dependencies", {}).get("blas", {})
    return f"{library.get('name', 'unknown')} {library.get('version', '')}".strip()


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

    Example:
      >>> import functrans as ft
      >>> ft.show_versions()
      functrans           ...
      Python              ...
      ...
    """
    cache = object_cache()
    rows = {
        "functrans": _version("functrans"),
        "Python": f"{platform.python_version()} ({sys.implementation.name})",
        "platform": platform.platform(),
        **{package: _version(package) for package in _NEEDED},
        **{p: found for p in _OPTIONAL if (found := _version(p)) != "not installed"},
        "BLAS of NumPy": _blas(),
        "native code for": _processor(),
        "threads": str(threads.get_num_threads()),
        "cache": str(cache.directory or "none"),
        "settings": _settings(),
    }
    for name, value in rows.items():
        print(f"{name:<20}{value}")
