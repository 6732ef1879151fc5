"""The libraries that compete: what to import, how to limit threads, how to convert.

One ``Library`` record each in ``LIBRARIES``; nothing is imported before it is asked for. Layer:
above ``record``; workloads and workers build on it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Library:
    """How to start one library in a worker.

    Attributes:
      modules: imported in this order before anything else is timed; the first is the package.
      environment: variables set before the process starts, from ``(threads, dtype)``.
      configure: called after the imports with the number of threads.
    """

    modules: tuple[str, ...]
    environment: Callable[[int, str], dict[str, str]]
    configure: Callable[[int], None]


def _no_environment(_threads: int, _dtype: str) -> dict[str, str]:
    return {}


def _jax_environment(threads: int, dtype: str) -> dict[str, str]:
    """XLA's flag alone leaves its thread pool as large as the machine; ``NPROC`` sets the size."""
    multi = "true" if threads > 1 else "false"
    return {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1" if dtype in {"float64", "complex128"} else "0",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={multi}",
        "NPROC": str(threads),
        "PJRT_NPROC": str(threads),
    }


def _do_nothing(_threads: int) -> None:
    return None


def _configure_torch(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def _functrans_environment(threads: int, _dtype: str) -> dict[str, str]:
    return {"FUNCTRANS_NUM_THREADS": str(threads)}


LIBRARIES: Mapping[str, Library] = {
    "functrans": Library(
        ("functrans", "functrans.tables", "functrans.lax", "llvmlite.binding"),
        _functrans_environment,
        _do_nothing,
    ),
    "numpy": Library(("numpy",), _no_environment, _do_nothing),
    "autograd": Library(
        ("autograd", "autograd.numpy", "autograd.scipy.special"), _no_environment, _do_nothing
    ),
    "torch": Library(("torch", "torch.func"), _no_environment, _configure_torch),
    "jax": Library(
        ("jax", "jax.numpy", "jax.lax", "jax.scipy.special"), _jax_environment, _do_nothing
    ),
    "numba": Library(("numba",), _no_environment, _do_nothing),
    "casadi": Library(("casadi",), _no_environment, _do_nothing),
}

POOLS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def environment(library: str, threads: int, dtype: str) -> dict[str, str]:
    """Variables that a worker of ``library`` needs from its first instruction on."""
    pools = dict.fromkeys(POOLS, str(threads))
    return pools | LIBRARIES[library].environment(threads, dtype)


def load(library: str, threads: int) -> None:
    """Import and configure ``library``.

    Raises:
      ImportError: it is not installed, or a module of it is missing.
    """
    record = LIBRARIES[library]
    for name in record.modules:
        importlib.import_module(name)
    record.configure(threads)


def version(library: str) -> str:
    """Version of the loaded ``library``, from itself or from its installation."""
    name = LIBRARIES[library].modules[0]
    own = getattr(sys.modules[name], "__version__", None)
    if own is not None:
        return str(own)
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def leaves_to_numpy(result: Any) -> tuple[np.ndarray, ...]:
    """Flatten nested tuples, lists and dicts of any library's arrays to a tuple of ndarrays."""
    import numpy as np

    if isinstance(result, tuple | list):
        return tuple(leaf for part in result for leaf in leaves_to_numpy(part))
    if isinstance(result, dict):
        return tuple(leaf for key in sorted(result) for leaf in leaves_to_numpy(result[key]))
    return (np.asarray(result),)
