"""Systems of equations with sparse matrices, by SciPy's SuperLU.

Here: the records ``csr_solve`` (the matrix is an operand, so that there are derivatives in its
entries) and ``factor_solve`` (with factors that are known), and the factors. Not here: products
(``products``), the functions of users (``functrans.scipy.sparse.linalg``), iterative solvers
(``solvers.krylov``).

``x = A^-1 b`` has the tangent ``A^-1 (b' - A' x)``: one more system with the same factors. The
cotangent of the entries is ``-sample(A^-T x_bar, x)``, at the places of the pattern only; it
follows by transposition. Forward and backward pass need the same factors, and so do the calls of an
iteration: those of the last few matrices are kept, and found again by comparing the arrays.

Layer: ``primitives.sparse``. Reference: Demmel, Eisenstat, Gilbert, Li & Liu, A supernodal approach
to sparse partial pivoting, SIAM J. Matrix Anal. Appl. 20 (1999), 720-755; Giles, An extended
collection of matrix derivative results, Oxford NA-08/01 (2008), section 2.3.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, shape_of
from functrans.core.primitive import Primitive, is_linear, linear
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.linalg.triangular import fold_batch
from functrans.primitives.sparse.products import (
    FLIPPED,
    Trans,
    block_diagonal,
    check_csr,
    check_pattern,
    check_trans,
    csr_matmul_p,
    joined,
    scipy_sparse,
)
from functrans.primitives.structural import reshape, to_front, zeros_like_aval

_SINGULAR = "Singular matrix"
_NOT_LOWERED = ("lower", "SciPy's SuperLU is called; programs are compiled around it")


# factors ----------------------------------------------------------------------------------------


class Factor:
    """The LU factors of a square matrix in compressed rows; immutable.

    Args:
      data: entries, floating.
      indices: their columns.
      indptr: where rows begin.
      options: of ``scipy.sparse.linalg.splu``.

    Attributes:
      arrays: copies of the arguments.
      n: number of rows.
      dtype: of the factors: double precision for all but ``float32`` and ``complex64``.
      size_bytes: memory of the factors.

    Raises:
      LinAlgError: the matrix is singular.
    """

    __slots__ = ("_lu", "arrays", "dtype", "n", "size_bytes")

    def __init__(
        self, data: Array, indices: Array, indptr: Array, options: tuple[Any, ...] = ()
    ) -> None:
        import scipy.sparse.linalg

        self.arrays = tuple([np.array(x) for x in (data, indices, indptr)])
        self.n = len(indptr) - 1
        self.dtype = np.dtype(np.float32) if data.dtype == np.float16 else data.dtype
        self._lu = None
        self.size_bytes = 0
        if not self.n:
            return
        # The rows of a matrix are the columns of its transpose; it is put in order in place.
        own = (data.astype(self.dtype), np.array(indices), np.array(indptr))
        columns = scipy_sparse().csc_array(own, shape=(self.n, self.n))
        try:
            self._lu = scipy.sparse.linalg.splu(columns, **dict(options))
        except RuntimeError as error:
            if "singular" not in str(error):
                raise
            raise np.linalg.LinAlgError(_SINGULAR) from None
        self.size_bytes = self._lu.nnz * (self.dtype.itemsize + 4)

    def __repr__(self) -> str:
        """Its size."""
        return f"Factor({self.dtype}[{self.n}, {self.n}])"

    @property
    def nnz(self) -> int:
        """Number of entries of both factors."""
        return 0 if self._lu is None else int(self._lu.nnz)

    def is_of(self, arrays: tuple[Any, ...]) -> bool:
        """Whether it belongs to these arrays, bit by bit."""
        return all(
            x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()
            for x, y in zip(self.arrays[::-1], arrays[::-1], strict=True)
        )

    def solve(self, b: Array, trans: Trans) -> Any:
        """The solution for right-hand sides ``[n, k]``, computed in the dtype of the factors."""
        if self._lu is None or not b.size:
            return np.zeros(b.shape, b.dtype)
        given = np.asarray(b, self.dtype, order="F")
        return self._lu.solve(given, trans=FLIPPED[trans])


class Recent:
    """The factors of the last matrices.

    Args:
      count: how many are kept.
      size_bytes: memory that all but the last one may take.
    """

    def __init__(self, count: int, size_bytes: int) -> None:
        self._count = count
        self._size_bytes = size_bytes
        self._factors: tuple[Factor, ...] = ()
        self._lock = threading.Lock()

    def of(self, data: Array, indices: Array, indptr: Array) -> Factor:
        """The factors of a matrix: known ones if its arrays are equal, bit by bit."""
        arrays = (data, indices, indptr)
        with self._lock:
            known = self._factors
        found = next((factor for factor in known if factor.is_of(arrays)), None)
        if found is None:
            found = Factor(*arrays)
        with self._lock:
            kept = [found]
            total = 0
            for factor in self._factors:
                if factor is not found and len(kept) < self._count:
                    total += factor.size_bytes
                    if total > self._size_bytes:
                        break
                    kept.append(factor)
            self._factors = tuple(kept)
        return found


_recent = Recent(4, 1 << 28)


# csr_solve --------------------------------------------------------------------------------------


def _csr_solve_impl(
    data: Array, b: Array, indices: Array, indptr: Array, *, trans: Trans
) -> tuple[Any, ...]:
    n = b.shape[-2]
    check_pattern(indices, indptr, n)
    out = np.empty(b.shape, b.dtype)
    count = math.prod(b.shape[:-2])
    wide = b.reshape(count, *b.shape[-2:])
    results = out.reshape(wide.shape)
    for k, entries in enumerate(data.reshape(count, data.shape[-1])):
        results[k] = _recent.of(entries, indices, indptr).solve(wide[k], trans)
    return (out,)


def _csr_solve_aval(
    data: ShapedArray, b: ShapedArray, indices: ShapedArray, indptr: ShapedArray, *, trans: Trans
) -> tuple[ShapedArray, ...]:
    n = indptr.shape[0] - 1 if indptr.shape else 0
    check_csr("csr_solve", data, indices, indptr, (n, n))
    if len(b.shape) < 2 or b.shape[-2] != n or b.shape[:-2] != data.shape[:-1]:
        raise ShapeError(
            f"csr_solve: a matrix of shape {(n, n)} with the entries {data} does not fit the "
            f"right-hand side {b}; expected {(*data.shape[:-1], n, 'k')}"
        )
    if data.dtype != b.dtype or b.dtype.kind not in "fc":
        raise TypeError(
            f"csr_solve: the entries are {data} and the right-hand side is {b}; cast both to one "
            "floating dtype"
        )
    return (b.strong(),)


def _csr_solve_jvp(
    primals: tuple[Array, ...], tangents: tuple[Any, ...], outs: tuple[Array, ...], *, trans: Trans
) -> tuple[Any, ...]:
    """``A x' = b' - A' x``."""
    data, _, *pattern = primals
    data_dot, b_dot = tangents[:2]
    (x,) = outs
    if type(data_dot) is not Zero:
        n = shape_of(x)[-2]
        (moved,) = bind(csr_matmul_p, data_dot, x, *pattern, shape=(n, n), trans=trans)
        b_dot = -moved if type(b_dot) is Zero else b_dot - moved
    if type(b_dot) is Zero:
        return (zeros_like_aval(x),)
    return bind(csr_solve_p, data, b_dot, *pattern, trans=trans)


def _csr_solve_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, trans: Trans
) -> tuple[Any, ...]:
    data, b, *pattern = operands
    if is_linear(data) or not is_linear(b):
        raise TypeError("csr_solve is linear in its right-hand side only")
    (ct,) = bind(csr_solve_p, data, cts[0], *pattern, trans=FLIPPED[trans])
    return None, ct, None, None


def _csr_solve_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, trans: Trans
) -> tuple[Any, Any]:
    data, b, *pattern = operands
    if dims[2] is not None or dims[3] is not None:  # one system of all matrices
        data, b = to_front(size, (data, b), dims[:2])
        n = shape_of(b)[-2]
        *pattern, _ = block_diagonal(size, pattern, dims[2:], (n, n))
        (x,) = bind(csr_solve_p, joined(data, 1), joined(b, 2), *pattern, trans=trans)
        axis = len(shape_of(x)) - 2
        return (reshape(x, (*shape_of(x)[:axis], size, n, shape_of(x)[-1])),), (axis,)
    if dims[0] is None:
        wide, axis, shape = fold_batch(b, dims[1])
        (x,) = bind(csr_solve_p, data, wide, *pattern, trans=trans)
        return (reshape(x, shape),), (axis,)
    return bind(csr_solve_p, *to_front(size, (data, b), dims[:2]), *pattern, trans=trans), (0,)


csr_solve_p: Primitive = Primitive(
    "csr_solve",
    impl=_csr_solve_impl,
    abstract_eval=_csr_solve_aval,
    check=check_trans,
    jvp=_csr_solve_jvp,
    transpose=_csr_solve_transpose,
    batch=_csr_solve_batch,
    reasons=(_NOT_LOWERED,),
    memory="own",
)


# factor_solve -----------------------------------------------------------------------------------


def _factor_solve_impl(b: Array, *, factor: Factor, trans: Trans) -> tuple[Any, ...]:
    out = np.empty(b.shape, b.dtype)
    wide = b.reshape(math.prod(b.shape[:-2]), *b.shape[-2:])
    for rhs, result in zip(wide, out.reshape(wide.shape), strict=True):
        result[...] = factor.solve(rhs, trans)
    return (out,)


def _factor_solve_aval(b: ShapedArray, *, factor: Factor, trans: Trans) -> tuple[ShapedArray, ...]:
    if len(b.shape) < 2 or b.shape[-2] != factor.n:
        raise ShapeError(
            f"factor_solve: factors of a matrix of shape {(factor.n, factor.n)} do not fit the "
            f"right-hand side {b}; expected {(factor.n, 'k')}"
        )
    if b.dtype.kind != factor.dtype.kind:
        raise TypeError(
            f"factor_solve: the factors are {factor.dtype} and the right-hand side is {b}; "
            "expected both real or both complex"
        )
    return (b.strong(),)


def _factor_solve_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, factor: Factor, trans: Trans
) -> tuple[Any, ...]:
    return bind(factor_solve_p, cts[0], factor=factor, trans=FLIPPED[trans])


def _factor_solve_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, factor: Factor, trans: Trans
) -> tuple[Any, Any]:
    wide, axis, shape = fold_batch(operands[0], dims[0])
    (x,) = bind(factor_solve_p, wide, factor=factor, trans=trans)
    return (reshape(x, shape),), (axis,)


factor_solve_p: Primitive = Primitive(
    "factor_solve",
    impl=_factor_solve_impl,
    abstract_eval=_factor_solve_aval,
    jvp=linear,
    transpose=_factor_solve_transpose,
    batch=_factor_solve_batch,
    reasons=(_NOT_LOWERED,),
    memory="own",
)


# functions --------------------------------------------------------------------------------------


def csr_solve(data: Array, indices: Array, indptr: Array, b: Array, trans: Trans = "N") -> Array:
    """Solve ``A @ x = b`` or ``A.T @ x = b`` with a square matrix in compressed rows.

    Args:
      data: entries ``[nnz]``, floating.
      indices: their columns.
      indptr: where rows begin, ``[n + 1]``.
      b: ``[n, k]``, of the same dtype.
      trans: ``"N"`` or ``"T"``.

    Raises:
      LinAlgError: the matrix is singular.
      ShapeError, TypeError: shapes or dtypes do not fit.
    """
    return bind(csr_solve_p, data, b, indices, indptr, trans=trans)[0]


def factor_solve(factor: Factor, b: Array, trans: Trans = "N") -> Array:
    """Solve with factors that are known.

    Args:
      factor: the factors.
      b: ``[n, k]``, real or complex as the factors are; the result has its dtype.
      trans: ``"N"`` or ``"T"``.

    Raises:
      ShapeError, TypeError: shapes or dtypes do not fit.
    """
    return bind(factor_solve_p, b, factor=factor, trans=trans)[0]


PRIMITIVES: tuple[Primitive, ...] = (csr_solve_p, factor_solve_p)
