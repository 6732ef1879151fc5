"""``torch.utils``: checkpoints, data.

Layer: ``compat``.
"""

from typing import Any as _Any

from functrans.compat.torch.not_offered import not_offered as _not_offered
from functrans.compat.torch.submodules import add_aliases as _add_aliases
from functrans.compat.torch.utils import _pytree as _pytree
from functrans.compat.torch.utils import checkpoint as checkpoint
from functrans.compat.torch.utils import data as data


def __getattr__(name: str) -> _Any:
    """Nothing beside the names above.

    Raises:
      AttributeError: always.
    """
    raise _not_offered("torch.utils", name, __name__)


_add_aliases(__name__, {f"data.{name}": data for name in ("dataloader", "dataset", "sampler")})
