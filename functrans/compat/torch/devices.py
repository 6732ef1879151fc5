"""The check of ``device=`` arguments.

Here: ``check_device``. Not here: ``device`` (``functrans.autograd.methods.conversion``).

Layer: ``compat``.
"""

from __future__ import annotations

from functrans.autograd.methods.conversion import device as _device


def check_device(device: object) -> None:
    """Refuse devices other than the CPU.

    Args:
      device: a device, its name, or ``None``.

    Raises:
      RuntimeError: it is another one.

    Example:
      >>> check_device("cpu")
    """
    if device is not None:
        _device(device)
