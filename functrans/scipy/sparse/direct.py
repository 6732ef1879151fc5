"""Direct solvers of sparse systems, under SciPy's names: ``spsolve``, ``splu``, ``factorized``.

Here: the functions. Not here: the primitives and the factors (``primitives.sparse.solve``),
iterative solvers (``solvers.krylov``).

Layer: ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.arrays.sparse import SparseArray, as_sparse, is_sparse
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.primitives.complex_parts import complex_of, conjugate, imag, real
from functrans.primitives.sparse.products import FLIPPED
from functrans.primitives.sparse.solve import Factor, csr_solve, factor_solve
from functrans.primitives.structural import cast, reshape


def _square(name: str, matrix: Any) -> SparseArray:
    """A square sparse matrix."""
    if not is_sparse(matrix):
        raise TypeError(
            f"{name}: the matrix is of type {type(matrix).__qualname__}{here()}; expected a sparse "
            "matrix of SciPy or functrans.scipy.sparse.csr_array (np.linalg.solve takes dense ones)"
        )
    a = as_sparse(matrix)
    if a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name}: the matrix has shape {a.shape}{here()}; it must be square")
    return a


def _columns(name: str, a_shape: tuple[int, int], b: ArrayLike) -> tuple[Any, bool]:
    """Right-hand sides as ``[n, k]``, and whether it was one vector."""
    if is_sparse(b):
        raise UnsupportedOperationError(
            f"{name}: the right-hand side is a sparse matrix{here()}; use b.toarray()"
        )
    b = b if isinstance(b, Tracer) else np.asarray(b)
    shape = shape_of(b)
    if len(shape) not in (1, 2) or shape[0] != a_shape[0]:
        raise ShapeError(
            f"{name}: a matrix of shape {a_shape} does not fit a right-hand side of shape "
            f"{shape}{here()}; expected {(a_shape[0],)} or {(a_shape[0], 'k')}"
        )
    return (reshape(b, (*shape, 1)), True) if len(shape) == 1 else (b, False)


def _floating(*dtypes: np.dtype) -> np.dtype:
    """The common dtype, floating."""
    dtype = np.result_type(*dtypes)
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def spsolve(A: Any, b: ArrayLike) -> Array:
    """Solve ``A @ x = b`` with a sparse matrix, as ``scipy.sparse.linalg.spsolve``.

    SciPy's SuperLU factorizes the matrix; derivatives in both modes use the same factors. Those of
    the last few matrices are kept.

    Args:
      A: square sparse matrix: of SciPy, of any format, as a constant; or a matrix with traced
        entries (:func:`functrans.scipy.sparse.csr_array`), which has derivatives at its places.
      b: ``[n]`` or ``[n, k]``, dense.

    Returns:
      ``x``, shaped as ``b``. Within a jitted function SuperLU is called between native parts.

    Raises:
      LinAlgError: the matrix is singular.
      ShapeError: it is not square, or does not fit the right-hand side.

    Example:
      >>> import numpy as np
      >>> import scipy.sparse
      >>> import functrans as ft
      >>> A = scipy.sparse.csr_array(np.array([[2.0, 1.0], [0.0, 4.0]]))
      >>> ft.grad(lambda b: spsolve(A, b).sum())(np.ones(2))
      array([0.5  , 0.125])

    Reference: Demmel et al., A supernodal approach to sparse partial pivoting, SIAM J. Matrix Anal.
    Appl. 20 (1999).
    """
    a = _square("spsolve", A)
    columns, is_vector = _columns("spsolve", a.shape, b)
    dtype = _floating(a.dtype, dtype_of(columns))
    trans = "N" if a.format == "csr" else "T"
    x = csr_solve(cast(a.data, dtype), a.indices, a.indptr, cast(columns, dtype), trans)
    return reshape(x, shape_of(x)[:-1]) if is_vector else x


class SparseLU:
    """A factorized sparse matrix; :func:`splu` makes it.

    Attributes:
      shape: of the matrix.
      nnz: number of entries of both factors.
    """

    __slots__ = ("_factor", "_is_by_rows", "nnz", "shape")

    def __init__(self, factor: Factor, is_by_rows: bool) -> None:
        self._factor = factor
        self._is_by_rows = is_by_rows
        self.shape = (factor.n, factor.n)
        self.nnz = factor.nnz

    def __repr__(self) -> str:
        """Shape and number of entries."""
        return f"SparseLU({self._factor.dtype}, shape={self.shape}, nnz={self.nnz})"

    def solve(self, rhs: ArrayLike, trans: str = "N") -> Any:
        """Solve with the matrix, its transpose or its adjoint.

        Args:
          rhs: ``[n]`` or ``[n, k]``, may be traced; differentiable.
          trans: ``"N"``, ``"T"`` or ``"H"``.

        Raises:
          ShapeError: it does not fit the matrix.
        """
        if trans not in ("N", "T", "H"):
            raise ValueError(f"SparseLU.solve: trans={trans!r}{here()}; expected 'N', 'T' or 'H'")
        columns, is_vector = _columns("SparseLU.solve", self.shape, rhs)
        if trans == "H":
            x = conjugate(self._solved(conjugate(columns), "T"))
        else:
            x = self._solved(columns, trans)
        return reshape(x, shape_of(x)[:-1]) if is_vector else x

    def _solved(self, columns: ArrayLike, trans: str) -> Array:
        own = self._factor.dtype
        own_trans = trans if self._is_by_rows else FLIPPED[trans]
        if dtype_of(columns).kind == "c" and own.kind != "c":  # two real systems
            return complex_of(
                self._solved(real(columns), trans), self._solved(imag(columns), trans)
            )
        wanted = _floating(own, dtype_of(columns))
        return factor_solve(self._factor, cast(columns, wanted), own_trans)


def splu(A: Any, **options: object) -> SparseLU:
    """Factorize a sparse matrix once, for many right-hand sides, as ``scipy.sparse.linalg.splu``.

    Args:
      A: square sparse matrix with known entries, which are copied.
      options: of ``scipy.sparse.linalg.splu`` (``permc_spec``, ``diag_pivot_thresh``, ``relax``,
        ``panel_size``, ``options``); they apply to the matrix by columns, as SuperLU takes it.

    Returns:
      An object whose ``solve(b, trans="N")`` takes traced right-hand sides. It holds the factors;
      programs that use it, and their derivatives, factorize nothing.

    Raises:
      UnsupportedOperationError: the entries are traced (use :func:`spsolve`).
      LinAlgError: the matrix is singular.

    Example:
      >>> import numpy as np
      >>> import scipy.sparse
      >>> import functrans as ft
      >>> lu = splu(scipy.sparse.csc_array(np.array([[2.0, 1.0], [0.0, 4.0]])))
      >>> ft.jacobian(ft.jit(lu.solve))(np.ones(2))
      array([[ 0.5  , -0.125],
             [ 0.   ,  0.25 ]])
    """
    a = _square("splu", A)
    if any(isinstance(x, Tracer) for x in (a.data, a.indices, a.indptr)):
        raise UnsupportedOperationError(
            f"splu: the entries of the matrix are traced{here()}; factors are of known numbers "
            "only: use functrans.scipy.sparse.linalg.spsolve, which has derivatives in them"
        )
    data = a.data.astype(_floating(a.dtype), copy=False)
    factor = Factor(data, a.indices, a.indptr, tuple(options.items()))
    return SparseLU(factor, a.format == "csr")


def factorized(A: Any) -> Callable[[Any], Any]:
    """A function that solves with a sparse matrix, as ``scipy.sparse.linalg.factorized``.

    Args:
      A: square sparse matrix with known entries.

    Returns:
      ``solve(b)``, see :func:`splu`.

    Example:
      >>> import numpy as np
      >>> import scipy.sparse
      >>> solve = factorized(scipy.sparse.csc_array(2 * np.eye(2)))
      >>> solve(np.array([1.0, 4.0]))
      array([0.5, 2. ])
    """
    return splu(A).solve
