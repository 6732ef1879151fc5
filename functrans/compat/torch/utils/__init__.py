"""``torch.utils``: checkpoints, data.

Layer: ``compat``.
"""

from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.submodules import add_aliases as _add_aliases
from functrans.compat.torch.utils import _pytree as _pytree
from functrans.compat.torch.utils import checkpoint as checkpoint
from functrans.compat.torch.utils import data as data

__getattr__ = _nothing_else(__name__)

_add_aliases(__name__, {f"data.{name}": data for name in ("dataloader", "dataset", "sampler")})
