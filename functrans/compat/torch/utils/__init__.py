"""``torch.utils``: checkpoints.

Layer: ``compat``.
"""

from functrans.compat.torch.utils import checkpoint as checkpoint
