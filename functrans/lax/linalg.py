"""``ft.lax.linalg``: factorizations and triangular systems, under JAX's names and keywords.

Layer: ``lax``.
"""

from __future__ import annotations

from typing import Any

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array, Operand
from functrans.namespaces import listing as _listing
from functrans.numpy import linalg
from functrans.numpy.common import as_array, inexact
from functrans.primitives.linalg.common import adjoint
from functrans.primitives.linalg.triangular import triangular_solve as solve_triangle


def _floating(x: Any) -> Any:
    return inexact(as_array(x))


def _symmetrized(x: Operand) -> Array:
    """The mean of matrices and their adjoints."""
    return (x + adjoint(x)) * dtype_of(x).type(0.5)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """Lower Cholesky factors of positive definite matrices.

    Args:
      x: ``[..., n, n]``.
      symmetrize_input: whether the mean of ``x`` and its adjoint is factored; otherwise the lower
        triangle alone is read.

    Example:
      >>> cholesky([[4.0, 0.0], [0.0, 9.0]])
      array([[2., 0.],
             [0., 3.]])
    """
    x = _floating(x)
    return linalg.cholesky(_symmetrized(x) if symmetrize_input else x)


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of Hermitian matrices, in this order.

    Args:
      x: ``[..., n, n]``.
      lower: which triangle is read, unless ``symmetrize_input``.
      symmetrize_input: whether the mean of ``x`` and its adjoint is taken.

    Example:
      >>> eigh([[1.0, 0.0], [0.0, 2.0]])[1]
      array([1., 2.])
    """
    x = _floating(x)
    values, vectors = linalg.eigh(_symmetrized(x) if symmetrize_input else x, "L" if lower else "U")
    return vectors, values


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Any, Any]:
    """QR factors.

    Example:
      >>> qr([[1.0], [0.0]], full_matrices=False)[0].shape
      (2, 1)
    """
    q, r = linalg.qr(_floating(x), "complete" if full_matrices else "reduced")
    return q, r


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular value decomposition ``(u, s, vh)``, or singular values.

    Example:
      >>> svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False)
      array([4., 3.])
    """
    result = linalg.svd(_floating(x), full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve ``x @ op(a) = b``, or ``op(a) @ x = b``, where one triangle of ``a`` is read.

    Args:
      a: ``[..., n, n]``.
      b: ``[..., m, n]``, or ``[..., n, m]`` if ``left_side``; a vector ``[..., n]``, too.
      left_side: on which side of ``x`` the matrix stands.
      lower: which triangle is read.
      transpose_a: whether ``op`` transposes.
      conjugate_a: whether ``op`` conjugates.
      unit_diagonal: whether the diagonal is taken to be ones.

    Example:
      >>> triangular_solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [8.0]], left_side=True).tolist()
      [[1.0], [2.0]]
    """
    a, b = _floating(a), _floating(b)
    if conjugate_a:
        a = a.conj()
    is_vector = len(shape_of(b)) == len(shape_of(a)) - 1
    if is_vector:
        b = b[..., None] if left_side else b[..., None, :]
    x = solve_triangle(
        a, b, lower=lower, trans="T" if transpose_a else "N", unit_diagonal=unit_diagonal,
        left_side=left_side,
    )  # fmt: skip
    return x[..., 0] if is_vector and left_side else x[..., 0, :] if is_vector else x


__all__ = ["cholesky", "eigh", "qr", "svd", "triangular_solve"]
__dir__ = _listing(__all__)

_guard(globals())
