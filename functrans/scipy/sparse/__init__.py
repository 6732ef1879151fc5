"""``functrans.scipy.sparse``: its ``linalg``.

Layer: ``scipy``.
"""

from functrans.scipy.sparse import linalg as linalg
