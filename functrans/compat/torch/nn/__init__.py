"""``torch.nn``: modules, parameters, their functional forms, initial values.

Layer: ``compat``.
"""

from functrans.compat.torch.nn import functional as functional
from functrans.compat.torch.nn import init as init
from functrans.compat.torch.nn import modules as modules
from functrans.compat.torch.nn import packing as _packing
from functrans.compat.torch.nn import parallel as parallel
from functrans.compat.torch.nn import parameter as parameter
from functrans.compat.torch.nn import tuples as _tuples
from functrans.compat.torch.nn import utils as utils
from functrans.compat.torch.nn.modules import *
from functrans.compat.torch.nn.parallel import DataParallel as DataParallel
from functrans.compat.torch.nn.parameter import Buffer as Buffer
from functrans.compat.torch.nn.parameter import Parameter as Parameter
from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.submodules import add_aliases as _add_aliases

__getattr__ = _nothing_else(__name__)

_MODULES = (
    "activation", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout",
    "flatten", "fold", "instancenorm", "linear", "loss", "module", "normalization", "padding",
    "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling",
)  # fmt: skip
"""Torch's submodules of ``nn.modules``: here it has all of their names."""

_add_aliases(
    __name__,
    {
        **{f"modules.{name}": modules for name in _MODULES},
        "modules.utils": _tuples,
        "utils.clip_grad": utils,
        "utils.convert_parameters": utils,
        "utils.rnn": _packing,
    },
)
