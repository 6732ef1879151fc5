"""``torch.amp``: mixed precision, as far as it is off.

Here: ``autocast`` and ``GradScaler``, which programs made for a GPU switch off where there is none.
Not here: computing in bfloat16, for which tensors are converted.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.amp``, for the behaviour.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.compat.torch.dtypes import bfloat16
from functrans.core.boundary import boundary, warn

_KINDS = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla")


class autocast:  # noqa: N801  # torch's name
    """A block, or a decorator, in which torch would choose dtypes by operation; here it is off.

    Args:
      device_type: for CUDA it warns, as torch does where there is none.
      dtype: of the operations; on the CPU, bfloat16 and float16 are refused.
      enabled: whether it is asked for.
      cache_enabled: accepted.

    Raises:
      NotImplementedError: operations on the CPU are to be of a narrow dtype.
      RuntimeError: there is no such device.

    Example:
      >>> with autocast("cpu", enabled=False) as block:
      ...     block.enabled
      False
    """

    @boundary
    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type not in _KINDS:
            raise RuntimeError(
                f"Expected one of {', '.join(_KINDS)} device type at start of device string: "
                f"{device_type}"
            )
        if enabled and device_type == "cuda":
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
        elif enabled and device_type == "cpu":
            if dtype is None or np.dtype(dtype).itemsize == 2:
                raise NotImplementedError(
                    "autocast('cpu') would compute in bfloat16 or float16, which functrans does "
                    "not do by itself: use enabled=False, or convert with tensor.to(dtype)"
                )
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
        self.device = device_type
        self.fast_dtype = dtype
        self.enabled = False

    @property
    def dtype(self) -> Any:
        """The dtype that was asked for."""
        return bfloat16() if self.fast_dtype is None else self.fast_dtype

    def __enter__(self) -> autocast:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to undo."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself, as another one."""

        @functools.wraps(function)
        def same(*args: object, **kwargs: object) -> Any:
            return function(*args, **kwargs)

        return same


class GradScaler:
    """Scales losses for narrow dtypes on GPUs; here it is off: all of it does nothing.

    Args:
      device: for CUDA it warns if it is enabled, as torch does where there is none.
      init_scale: accepted.
      growth_factor: accepted.
      backoff_factor: accepted.
      growth_interval: accepted.
      enabled: whether it is asked for.

    Raises:
      NotImplementedError: it is enabled for the CPU.

    Example:
      >>> scaler = GradScaler(enabled=False)
      >>> scaler.get_scale()
      1.0
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if enabled and str(device).partition(":")[0] == "cpu":
            raise NotImplementedError(
                "GradScaler('cpu') is not supported: gradients are not scaled; use enabled=False"
            )
        if enabled:
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")

    def is_enabled(self) -> bool:
        """``False``."""
        return False

    def scale(self, outputs: object) -> Any:
        """What it is given."""
        return outputs

    def unscale_(self, optimizer: object) -> None:
        """Nothing: gradients are not scaled."""

    def step(self, optimizer: Any, *args: object, **kwargs: object) -> Any:
        """A step of an optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: object = None) -> None:
        """Nothing: there is no scale."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Accepted."""


def is_autocast_available(device_type: str) -> bool:
    """``False``: dtypes are those of the operands."""
    return False


def _deprecated(what: str) -> None:
    warn(
        f"`torch.cuda.amp.{what}(args...)` is deprecated. Please use "
        f"`torch.amp.{what}('cuda', args...)` instead.",
        FutureWarning,
    )


def _autocast_of_cuda(
    enabled: bool = True, dtype: DTypeLike | None = None, cache_enabled: bool = True
) -> autocast:
    """``torch.amp.autocast("cuda")``."""
    _deprecated("autocast")
    return autocast("cuda", dtype, enabled, cache_enabled)


def _scaler_of_cuda(*args: Any, **kwargs: Any) -> GradScaler:
    """``torch.amp.GradScaler("cuda")``."""
    _deprecated("GradScaler")
    return GradScaler("cuda", *args, **kwargs)


CUDA = ModuleType("functrans.compat.torch.cuda.amp", "``torch.cuda.amp``: deprecated names.")
vars(CUDA).update(autocast=_autocast_of_cuda, GradScaler=_scaler_of_cuda)
