"""Schedules of the learning rate.

Re-exports what ``schedules`` and ``cyclic_schedules`` define.

Layer: ``compat``.
"""

from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.optim.cyclic_schedules import ChainedScheduler as ChainedScheduler
from functrans.compat.torch.optim.cyclic_schedules import CyclicLR as CyclicLR
from functrans.compat.torch.optim.cyclic_schedules import OneCycleLR as OneCycleLR
from functrans.compat.torch.optim.schedules import ConstantLR as ConstantLR
from functrans.compat.torch.optim.schedules import CosineAnnealingLR as CosineAnnealingLR
from functrans.compat.torch.optim.schedules import (
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
)
from functrans.compat.torch.optim.schedules import ExponentialLR as ExponentialLR
from functrans.compat.torch.optim.schedules import LambdaLR as LambdaLR
from functrans.compat.torch.optim.schedules import LinearLR as LinearLR
from functrans.compat.torch.optim.schedules import LRScheduler as LRScheduler
from functrans.compat.torch.optim.schedules import MultiplicativeLR as MultiplicativeLR
from functrans.compat.torch.optim.schedules import MultiStepLR as MultiStepLR
from functrans.compat.torch.optim.schedules import PolynomialLR as PolynomialLR
from functrans.compat.torch.optim.schedules import ReduceLROnPlateau as ReduceLROnPlateau
from functrans.compat.torch.optim.schedules import SequentialLR as SequentialLR
from functrans.compat.torch.optim.schedules import StepLR as StepLR

_LRScheduler = LRScheduler  # its name before torch 2.0

__path__: list[str] = []  # import statements ask for what is not here, too
__getattr__ = _nothing_else(__name__)
