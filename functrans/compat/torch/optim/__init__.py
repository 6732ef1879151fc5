"""``torch.optim``: optimizers and schedules of the learning rate.

Layer: ``compat``.
"""

import sys as _sys

from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.optim import lr_scheduler as lr_scheduler
from functrans.compat.torch.optim.algorithms import *
from functrans.compat.torch.optim.algorithms import ASGD as ASGD
from functrans.compat.torch.optim.lbfgs import LBFGS as LBFGS
from functrans.compat.torch.optim.optimizer import Optimizer as Optimizer
from functrans.compat.torch.submodules import add_aliases as _add_aliases

__getattr__ = _nothing_else(__name__)

_add_aliases(
    __name__,
    dict.fromkeys(
        (
            "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam",
            "rmsprop", "rprop", "sgd",
        ),
        _sys.modules[__name__],  # which has all of their names
    ),
)  # fmt: skip
