"""``functrans.scipy.sparse.linalg``: solvers of sparse linear systems, under SciPy's names.

The iterative ones take a matrix, dense or sparse, or a function, and pytrees as vectors; they are
compiled, batched and differentiable (``solvers.krylov``). The direct ones call SciPy's SuperLU
(``scipy.sparse.direct``).

Layer: ``scipy``.
"""

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.sparse.direct import SparseLU as SparseLU
from functrans.scipy.sparse.direct import factorized as factorized
from functrans.scipy.sparse.direct import splu as splu
from functrans.scipy.sparse.direct import spsolve as spsolve
from functrans.solvers.krylov import bicgstab as bicgstab
from functrans.solvers.krylov import cg as cg
from functrans.solvers.krylov import gmres as gmres

__all__ = _exported(globals())
__dir__ = _listing(__all__)
