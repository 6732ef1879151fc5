"""Sparse Jacobians and Hessians: patterns, colourings, compressed evaluation."""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import listing as _listing
from functrans.sparse.api import SparseFunction as SparseFunction
from functrans.sparse.api import sparse_hessian as sparse_hessian
from functrans.sparse.api import sparse_jacobian as sparse_jacobian
from functrans.sparse.coloring import Coloring as Coloring
from functrans.sparse.coloring import color_pattern as color_pattern
from functrans.sparse.pattern import sparsity_pattern as sparsity_pattern

__all__ = [
    "Coloring", "SparseFunction", "color_pattern", "sparse_hessian", "sparse_jacobian",
    "sparsity_pattern",
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
