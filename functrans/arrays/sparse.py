"""Sparse matrices in traced code: SciPy's as constants, and ``SparseArray`` with traced entries.

Here: ``SparseArray``, what becomes one (``as_sparse``), products with dense arrays, and what the
operators of SciPy are told about tracers. Not here: the primitives
(``primitives.sparse.products``), systems of equations (``functrans.scipy.sparse.linalg``), sparse
derivatives (``functrans.sparse``).

The index arrays of a matrix of SciPy are used as they are, without a copy.

Layer: ``arrays`` (below ``operators``).
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np

from functrans.core.boundary import boundary
from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.gather_scatter import accumulate_p
from functrans.primitives.linalg.common import matrix_transpose
from functrans.primitives.sparse.products import FLIPPED, check_pattern, csr_matmul, rows_of
from functrans.primitives.structural import cast, moveaxis, reshape
from functrans.records import dataclass

_STATIC = {"static": True}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SparseArray:
    """A matrix in compressed rows or columns, whose entries may be traced; immutable.

    :func:`csr_array` and :func:`csc_array` make it. It is a pytree of its three arrays, so that it
    can be an argument of transformed functions.

    Attributes:
      data: entries ``[nnz]``; those at the same place add up.
      indices: their columns (rows, if it is stored by columns).
      indptr: where rows (columns) begin.
      shape: ``(m, n)``.
      format: ``"csr"`` or ``"csc"``.
    """

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int] = dataclasses.field(metadata=_STATIC)
    format: str = dataclasses.field(metadata=_STATIC)

    __array_ufunc__ = None  # so that NumPy's operators leave the word to this class
    ndim = 2

    def __repr__(self) -> str:
        """Shape and number of entries."""
        return f"{self.format}_array({self.dtype}, shape={self.shape}, nnz={self.nnz})"

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the entries."""
        return dtype_of(self.data)

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(shape_of(self.data)[-1])

    @property
    def row_shape(self) -> tuple[int, int]:
        """The shape of the matrix that the arrays describe by rows: this one or its transpose."""
        m, n = self.shape
        return (m, n) if self.format == "csr" else (n, m)

    @property
    def T(self) -> SparseArray:  # noqa: N802  # NumPy's name
        """The transpose, of the same arrays."""
        layout = "csc" if self.format == "csr" else "csr"
        return SparseArray(self.data, self.indices, self.indptr, self.shape[::-1], layout)

    def transpose(self) -> SparseArray:
        """The transpose, of the same arrays."""
        return self.T

    def with_data(self, data: Array) -> SparseArray:
        """Other entries at the same places.

        Raises:
          ShapeError: there are not as many.
        """
        if shape_of(data) != shape_of(self.data):
            raise ShapeError(
                f"with_data: {self!r} was given entries of shape {shape_of(data)}{here()}; "
                f"expected {shape_of(self.data)}"
            )
        return SparseArray(data, self.indices, self.indptr, self.shape, self.format)

    def conj(self) -> SparseArray:
        """Complex conjugate entries."""
        return self.with_data(conjugate(self.data))

    def toarray(self) -> Any:
        """The dense matrix ``[m, n]``."""
        if isinstance(self.indices, Tracer) or isinstance(self.indptr, Tracer):
            return matmul(self, np.eye(self.shape[1], dtype=self.dtype))
        check_pattern(self.indices, self.indptr, self.row_shape[1])
        places = (rows_of(self.indptr), self.indices)
        if self.format == "csc":
            places = places[::-1]
        return bind(accumulate_p, self.data, *places, shape=self.shape, axes=(0, 1), mode="clip")[0]

    def dot(self, other: Array) -> Any:
        """The product with a dense vector or matrix."""
        return matmul(self, other)

    def __matmul__(self, other: Array) -> Array:
        """The product with a dense vector or matrix."""
        return matmul(self, other)

    def __rmatmul__(self, other: Array) -> Array:
        """The product of a dense vector or matrix with this one."""
        return matmul(other, self)

    def _not_a_number(self, other: Array | complex) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"{self!r} meets an operand of shape {np.shape(other)} elementwise{here()}; only "
            "numbers are supported: multiply its entries (A.with_data(A.data * v)), or use A @ x "
            "for products with vectors"
        )

    def __mul__(self, other: int) -> SparseArray:
        """The product with a number.

        Raises:
          UnsupportedOperationError: it is an array.
        """
        if is_sparse(other) or np.ndim(other):
            raise self._not_a_number(other)
        return self.with_data(self.data * other)

    __rmul__ = __mul__

    def __truediv__(self, other: int) -> SparseArray:
        """The quotient by a number."""
        if is_sparse(other) or np.ndim(other):
            raise self._not_a_number(other)
        return self.with_data(self.data / other)

    def __neg__(self) -> SparseArray:
        """Negative entries."""
        return self.with_data(-self.data)


# conversion -------------------------------------------------------------------------------------


def is_scipy_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy; SciPy is not imported for it."""
    module = sys.modules.get("scipy.sparse")
    return isinstance(x, (getattr(module, "spmatrix", ()), getattr(module, "sparray", ())))


def is_spmatrix(x: Any) -> bool:
    """Whether it is a matrix of SciPy's, for which ``*`` is the matrix product."""
    return isinstance(x, getattr(sys.modules.get("scipy.sparse"), "spmatrix", ()))


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix, of SciPy or a :class:`SparseArray`."""
    return type(x) is SparseArray or is_scipy_sparse(x)


_ANSWERS = {
    "_matmul_dispatch": ((), object),  # one object: it returns NotImplemented, and Python asks x
    "dot": ((0,), float),  # an array, which is not read: it calls S @ x
}


def answer_to_scipy(frame: Any, x: Operand) -> Array | None:
    """What ``x.__array__()`` returns to a product of SciPy's that asks whether ``x`` is an array.

    Args:
      frame: who asks.
      x: the traced array.

    Returns:
      An array that stands for nothing; ``None`` to all others.

    Raises:
      UnsupportedOperationError: it is another operation of a sparse matrix.
    """
    if not frame.f_globals.get("__name__", "").startswith("scipy.sparse._"):
        return None
    answer = _ANSWERS.get(frame.f_code.co_name)
    if answer is not None:
        return np.empty(*answer)
    matrix = frame.f_locals.get("self")
    if frame.f_code.co_name != "__init__" and is_scipy_sparse(matrix):
        raise not_a_product(matrix, x)
    return None


def not_a_product(matrix: Any, x: Any) -> UnsupportedOperationError:
    """The error for a sparse matrix of SciPy that meets a traced array elsewhere."""
    return UnsupportedOperationError(
        f"a {type(matrix).__qualname__} of shape {matrix.shape} meets {x._describe()}{here()}; "
        "only products with dense arrays (S @ x, x @ S) keep a matrix sparse. Use S.toarray(), or "
        "compute with the entries of a CSR array: functrans.scipy.sparse.csr_array((v * S.data, "
        "S.indices, S.indptr), shape=S.shape)"
    )


def as_sparse(x: Any) -> SparseArray:
    """A sparse matrix of SciPy, of any format, as a constant.

    Args:
      x: matrix or array of two axes, or a :class:`SparseArray`.

    Raises:
      ShapeError: it has not two axes.
    """
    if type(x) is SparseArray:
        return x
    if x.ndim != 2:
        raise ShapeError(
            f"a {type(x).__qualname__} of shape {x.shape} meets a traced value{here()}; only "
            "sparse arrays with two axes are supported: use x.reshape((m, n)) first"
        )
    if x.format not in ("csr", "csc"):
        x = x.tocsr()
    nnz = int(x.indptr[-1])
    shape = (int(x.shape[0]), int(x.shape[1]))
    return SparseArray(x.data[:nnz], x.indices[:nnz], x.indptr, shape, x.format)


def compressed(arrays: object, shape: Any, layout: str) -> SparseArray:
    """The matrix of ``(data, indices, indptr)``.

    Raises:
      ShapeError, TypeError: they do not fit each other or the shape.
    """
    name = f"{layout}_array"
    if is_sparse(arrays):
        own = as_sparse(arrays)
        if own.format != layout:
            raise UnsupportedOperationError(
                f"{name}: the matrix is stored as {own.format}{here()}; convert it first, with "
                f"SciPy's .to{layout}()"
            )
        return own
    if not isinstance(arrays, tuple) or len(arrays) != 3:
        raise TypeError(
            f"{name}: got a {type(arrays).__qualname__}{here()}; expected the triple (data, "
            "indices, indptr), or a sparse matrix of SciPy"
        )
    data, indices, indptr = (x if isinstance(x, Tracer) else np.asarray(x) for x in arrays)
    if shape is None:
        raise TypeError(f"{name}: the shape is missing{here()}; give shape=(m, n)")
    m, n = map(int, shape)
    count = (m if layout == "csr" else n) + 1
    sizes = [shape_of(x) for x in (data, indices, indptr)]
    if sizes != [(sizes[0] or (0,))[:1], sizes[0], (count,)]:
        raise ShapeError(
            f"{name}: data, indices and indptr have the shapes {sizes[0]}, {sizes[1]} and "
            f"{sizes[2]}{here()}; a matrix of shape {(m, n)} with nnz entries needs (nnz,), (nnz,) "
            f"and {(count,)}"
        )
    for what, x in (("indices", indices), ("indptr", indptr)):
        if dtype_of(x).kind not in "iu" and shape_of(x) != (0,):
            raise TypeError(f"{name}: {what} are {dtype_of(x)}{here()}; expected integers")
    if shape_of(indices) == (0,) and not isinstance(indices, Tracer):
        indices = indices.astype(np.intp)
    if not isinstance(indices, Tracer) and not isinstance(indptr, Tracer):
        check_pattern(indices, indptr, n if layout == "csr" else m)
    return SparseArray(data, indices, indptr, (m, n), layout)


# products ---------------------------------------------------------------------------------------


@boundary
def matmul(a: Any, b: Any) -> Any:
    """The product of a sparse matrix and a dense array, in either order.

    Args:
      a: sparse matrix ``[m, n]`` (any format of SciPy, or :class:`SparseArray`) or array.
      b: array ``[n]`` or ``[..., n, k]``, or sparse matrix. One of the two is sparse.

    Returns:
      A dense array, of the dtype of NumPy's product.

    Raises:
      ShapeError: the extents do not fit.
      UnsupportedOperationError: both are sparse.
    """
    if is_sparse(a) and is_sparse(b):
        raise UnsupportedOperationError(
            f"the product of two sparse matrices of shapes {a.shape} and {b.shape} is not "
            f"supported in traced code{here()}; apply them one after the other: a @ (b @ x)"
        )
    if is_sparse(a):
        return _left(as_sparse(a), b, (tuple(a.shape), np.shape(b)))
    x = a if isinstance(a, Tracer) else np.asarray(a)
    ndim = len(shape_of(x))
    last = matrix_transpose(x) if ndim > 1 else x
    out = _left(as_sparse(b).T, last, (shape_of(x), tuple(b.shape)))
    return matrix_transpose(out) if ndim > 1 else out


def _left(a: SparseArray, x: Operand, shapes: tuple[Any, Any]) -> Array:
    """``a @ x``.

    Args:
      a: the matrix.
      x: the array.
      shapes: of the operands as they were given, for messages.
    """
    x = x if isinstance(x, Tracer) else np.asarray(x)
    shape = shape_of(x)
    m, n = a.shape
    if not shape or shape[max(len(shape) - 2, 0)] != n:
        advice = (
            "scale its entries in place of a product with a number"
            if not shape
            else ("the inner extents must be equal")
        )
        raise ShapeError(
            f"matmul: operands of shapes {shapes[0]} and {shapes[1]} do not fit each "
            f"other{here()}; {advice}"
        )
    dtype = np.result_type(a.dtype, dtype_of(x))
    front = moveaxis(x, len(shape) - 2, 0) if len(shape) > 2 else x
    rest = shape_of(front)[1:]
    columns = reshape(front, (n, int(np.prod(rest)))) if len(shape) != 2 else front
    trans = "N" if a.format == "csr" else FLIPPED["N"]
    out = csr_matmul(
        cast(a.data, dtype), a.indices, a.indptr, a.row_shape, cast(columns, dtype), trans
    )
    if len(shape) != 2:
        out = reshape(out, (m, *rest))
    return moveaxis(out, 0, len(shape) - 2) if len(shape) > 2 else out
