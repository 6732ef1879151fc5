"""``torch.cuda``: there is none, as programs ask before they use it.

What torch does without CUDA is done here, too; ``synchronize`` waits for nothing.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.autograd.methods.rows import documented
from functrans.compat.torch.amp import CUDA
from functrans.compat.torch.submodules import add_aliases


def is_available() -> bool:
    """``False``: functrans computes on the CPU.

    Example:
      >>> is_available()
      False
    """
    return False


def device_count() -> int:
    """0.

    Example:
      >>> device_count()
      0
    """
    return 0


_ANSWERS: dict[str, tuple[Callable[..., Any], str]] = {
    "is_initialized": (lambda: False, "``False``."),
    "is_bf16_supported": (lambda including_emulation=True: False, "``False``."),
    "manual_seed": (lambda seed: None, "Accepted: there is no generator to seed."),
    "manual_seed_all": (lambda seed: None, "Accepted: there is no generator to seed."),
    "empty_cache": (lambda: None, "Nothing: no memory of a device is kept."),
    "synchronize": (lambda device=None: None, "Nothing: every operation is done when it returns."),
    "reset_peak_memory_stats": (
        lambda device=None: None, "Nothing: no memory of a device is counted."
    ),
    "memory_allocated": (lambda device=None: 0, "0."),
    "max_memory_allocated": (lambda device=None: 0, "0."),
    "memory_reserved": (lambda device=None: 0, "0."),
    "max_memory_reserved": (lambda device=None: 0, "0."),
    "get_rng_state_all": (lambda: [], "No states: there are no devices."),  # noqa: PIE807  # named
}  # fmt: skip
"""Functions whose answer is always the same, and their documentation."""
globals().update({name: documented(f, name, text) for name, (f, text) in _ANSWERS.items()})


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
