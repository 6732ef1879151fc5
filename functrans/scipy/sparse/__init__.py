"""``functrans.scipy.sparse``: ``matmul``, ``csr_array``, ``csc_array`` and ``linalg``.

Sparse matrices of SciPy are constants of traced code, in all formats: ``S @ x``, ``x @ S`` and
``S.dot(x)`` work as they stand. :func:`csr_array` and :func:`csc_array` hold traced entries.

Layer: ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.sparse import linalg as linalg
from functrans.scipy.sparse.arrays import SparseArray as SparseArray
from functrans.scipy.sparse.arrays import csc_array as csc_array
from functrans.scipy.sparse.arrays import csr_array as csr_array
from functrans.scipy.sparse.arrays import matmul as matmul

__all__ = _exported(globals(), ("linalg",))
__dir__ = _listing(__all__)
_guard(globals(), __all__)
