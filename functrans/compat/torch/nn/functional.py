"""``torch.nn.functional``: activations, losses and layers as functions.

Re-exports what ``activations``, ``losses``, ``layers`` and ``convolutions`` define.

Layer: ``compat``.
"""

from typing import Any as _Any

from functrans.compat.torch.nn.activations import *
from functrans.compat.torch.nn.attention import *
from functrans.compat.torch.nn.convolutions import *
from functrans.compat.torch.nn.layers import *
from functrans.compat.torch.nn.losses import *
from functrans.compat.torch.nn.margin_losses import *
from functrans.compat.torch.nn.noise import *
from functrans.compat.torch.nn.pooling import *
from functrans.compat.torch.nn.resampling import *
from functrans.compat.torch.not_offered import not_offered as _not_offered
from functrans.core.boundary import guard as _guard

__path__: list[str] = []  # import statements ask for what is not here, too
_guard(globals(), list(globals()), homes=("functrans.compat.torch", "functrans.autograd"))


def __getattr__(name: str) -> _Any:
    """Nothing beside the names above.

    Raises:
      AttributeError: always.
    """
    raise _not_offered("torch.nn.functional", name, __name__)
