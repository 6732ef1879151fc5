"""``functrans.scipy.spatial``: ``distance``.

Layer: ``scipy``.
"""

from functrans.namespaces import listing as _listing
from functrans.scipy.spatial import distance as distance

__all__ = ["distance"]
__dir__ = _listing(__all__)
