"""``torch.utils``: checkpoints, data.

Layer: ``compat``.
"""

from functrans.compat.torch.utils import checkpoint as checkpoint
from functrans.compat.torch.utils import data as data
