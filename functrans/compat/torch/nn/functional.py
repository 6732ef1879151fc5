"""``torch.nn.functional``: activations, losses and layers as functions.

Re-exports what ``activations``, ``losses``, ``layers`` and ``convolutions`` define.

Layer: ``compat``.
"""

from functrans.autograd.overrides import overridable as _overridable
from functrans.compat.torch.nn.activations import *
from functrans.compat.torch.nn.attention import *
from functrans.compat.torch.nn.convolutions import *
from functrans.compat.torch.nn.layers import *
from functrans.compat.torch.nn.losses import *
from functrans.compat.torch.nn.margin_losses import *
from functrans.compat.torch.nn.noise import *
from functrans.compat.torch.nn.pooling import *
from functrans.compat.torch.nn.resampling import *
from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.core.boundary import guard as _guard

__path__: list[str] = []  # import statements ask for what is not here, too
_guard(
    globals(),
    list(globals()),
    homes=("functrans.compat.torch", "functrans.autograd"),
    make=_overridable,
)

__getattr__ = _nothing_else(__name__)
