"""Schedules of the learning rate.

Re-exports what ``schedules`` and ``cyclic_schedules`` define.

Layer: ``compat``.
"""

from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.optim.cyclic_schedules import *
from functrans.compat.torch.optim.schedules import *
from functrans.compat.torch.optim.schedules import LRScheduler

_LRScheduler = LRScheduler  # its name before torch 2.0

__path__: list[str] = []  # import statements ask for what is not here, too
__getattr__ = _nothing_else(__name__)
