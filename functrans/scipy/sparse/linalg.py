"""``functrans.scipy.sparse.linalg``: iterative solvers of linear systems, under SciPy's names.

They take a matrix or a function, and pytrees as vectors; they are compiled, batched and
differentiable (``control.krylov``).

Layer: ``scipy``.
"""

from functrans.control.krylov import bicgstab as bicgstab
from functrans.control.krylov import cg as cg
from functrans.control.krylov import gmres as gmres
