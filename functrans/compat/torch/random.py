"""``torch.random``: the generator that all random functions draw from.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from functrans.autograd.random import Generator as Generator
from functrans.autograd.random import default_generator as default_generator
from functrans.autograd.random import get_rng_state as get_rng_state
from functrans.autograd.random import initial_seed as initial_seed
from functrans.autograd.random import manual_seed as manual_seed
from functrans.autograd.random import seed as seed
from functrans.autograd.random import set_rng_state as set_rng_state
from functrans.compat.torch.not_offered import nothing_else


@contextmanager
def fork_rng(
    devices: object = None, enabled: bool = True, _caller: str = "fork_rng",
    _devices_kw: str = "devices", device_type: str = "cuda",
) -> Iterator[None]:  # fmt: skip
    """A block whose random numbers are forgotten: the generator goes on as before it.

    Args:
      devices: accepted; the generator is that of the CPU.
      enabled: whether it is so.
      device_type: accepted.

    Example:
      >>> import functrans.compat.torch as torch
      >>> with fork_rng():
      ...     x = torch.rand(2)
      >>> bool((x == torch.rand(2)).all())
      True
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


__getattr__ = nothing_else(__name__)
