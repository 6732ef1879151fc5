"""``torch.nn.parallel``: ``DataParallel`` where there is no device to spread over.

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.tensors import refuse_device
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.not_offered import nothing_else

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A module that calls another one, as torch's does without a GPU.

    Args:
      module: the other one; its parameters have names below ``module``.
      device_ids: must be none, or the CPU.
      output_device: must be the CPU.
      dim: accepted.

    Raises:
      RuntimeError: another device.

    Example:
      >>> import functrans.compat.torch as torch
      >>> DataParallel(torch.nn.Linear(2, 3))(torch.ones(1, 2)).shape
      torch.Size([1, 3])
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        for place in (*(device_ids or ()), output_device):
            refuse_device(place)
        self.module, self.dim, self.device_ids = module, dim, list[Any]()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module."""
        return self.module(*inputs, **kwargs)


__getattr__ = nothing_else(__name__)
