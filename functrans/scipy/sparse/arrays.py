"""Sparse matrices with traced entries, and products: ``csr_array``, ``csc_array``, ``matmul``.

Here: the constructors, under SciPy's names. Not here: the class (``functrans.arrays.sparse``),
systems of equations (``scipy.sparse.direct``).

Layer: ``scipy``.
"""

from __future__ import annotations

from typing import Any

from functrans.arrays.sparse import SparseArray as SparseArray
from functrans.arrays.sparse import compressed
from functrans.arrays.sparse import matmul as matmul
from functrans.core.values import Array


def csr_array(arrays: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """A matrix in compressed rows whose entries may be traced.

    Its products with dense arrays (``A @ x``, ``x @ A``, ``A.dot(x)``, ``A.T @ x``) and the solvers
    of ``functrans.scipy.sparse.linalg`` have derivatives in the entries, at the places of the
    pattern only, and in the dense operand.

    Args:
      arrays: ``(data, indices, indptr)`` as ``scipy.sparse.csr_array`` takes them: entries
        ``[nnz]``, their columns, and where rows begin ``[m + 1]``. Entries at the same place add
        up.
      shape: ``(m, n)``.

    Returns:
      The matrix; ``with_data`` gives one with other entries at the same places.

    Raises:
      ShapeError, TypeError: the arrays do not fit each other or the shape.
      IndexError, ValueError: the index arrays are no pattern of that shape.

    Example:
      >>> import numpy as np
      >>> import functrans as ft
      >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
      >>> def total(data, x):
      ...     return (csr_array((data, indices, indptr), shape=(2, 2)) @ x).sum()
      >>> ft.grad(total, argnums=(0, 1))(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0]))
      (array([4., 5., 5.]), array([1., 5.]))
    """
    return compressed(arrays, shape, "csr")


def csc_array(arrays: Array, shape: tuple[int, int] | None = None) -> SparseArray:
    """A matrix in compressed columns whose entries may be traced.

    Args:
      arrays: ``(data, indices, indptr)`` as ``scipy.sparse.csc_array`` takes them: entries, their
        rows, and where columns begin.
      shape: ``(m, n)``.

    Returns:
      The matrix; see :func:`csr_array`.

    Raises:
      ShapeError, TypeError, IndexError, ValueError: see :func:`csr_array`.

    Example:
      >>> import numpy as np
      >>> csc_array((np.ones(2), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 2)).toarray()
      array([[0., 1.],
             [1., 0.]])
    """
    return compressed(arrays, shape, "csc")
