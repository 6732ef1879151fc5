"""``torch.cuda``: there is none, as programs ask before they use it.

What torch does without CUDA is done here, too; ``synchronize`` waits for nothing.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.compat.torch.amp import CUDA
from functrans.compat.torch.submodules import add_aliases


def is_available() -> bool:
    """``False``: functrans computes on the CPU.

    Example:
      >>> is_available()
      False
    """
    return False


def is_initialized() -> bool:
    """``False``."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """``False``."""
    return False


def device_count() -> int:
    """0.

    Example:
      >>> device_count()
      0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Accepted: there is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """Accepted: there is no generator to seed."""


def empty_cache() -> None:
    """Nothing: no memory of a device is kept."""


def synchronize(device: object = None) -> None:
    """Nothing: every operation is done when it returns."""


def reset_peak_memory_stats(device: object = None) -> None:
    """Nothing: no memory of a device is counted."""


def memory_allocated(device: object = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: object = None) -> int:
    """0."""
    return 0


def memory_reserved(device: object = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: object = None) -> int:
    """0."""
    return 0


def get_rng_state_all() -> list[Any]:
    """No states: there are no devices."""
    return []


def _needs_device(name: str) -> Callable[..., Any]:
    """A function that programs refer to and that needs a device."""

    def function(*args: object, **kwargs: object) -> Any:
        raise AssertionError(
            f"Torch not compiled with CUDA enabled: torch.cuda.{name}() needs a device, and "
            "functrans computes on the CPU; ask torch.cuda.is_available() first"
        )

    function.__name__ = function.__qualname__ = name
    return function


_NEED_DEVICE = (
    "current_device", "current_stream", "device", "device_of", "get_device_capability",
    "get_device_name", "get_device_properties", "get_rng_state", "init", "ipc_collect",
    "mem_get_info", "memory_stats", "memory_summary", "set_device", "set_rng_state",
)  # fmt: skip
globals().update({name: _needs_device(name) for name in _NEED_DEVICE})


def __getattr__(name: str) -> Any:
    """Nothing else: it would need a device.

    Raises:
      AttributeError: always.
    """
    raise AttributeError(
        f"torch.cuda.{name} is not offered by functrans.compat.torch: functrans computes on the "
        "CPU; ask torch.cuda.is_available() first",
        name=name,
    )


add_aliases(__name__, {"amp": CUDA})
