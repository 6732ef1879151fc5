"""``numpy.linalg`` for plain and traced arrays: NumPy's names, signatures, results and errors.

Here: systems, inverses, least squares, determinants, factorizations, eigen- and singular values.
Not here: norms, rank and condition (``linalg_norms``) and products (``linalg_products``), which are
exported from here too; rules of differentiation (``primitives.linalg.functions``).

Where the kind of a result depends on values, it is NumPy's if values are known (recording, pushing)
and the general case in staging (``jit``, ``vmap``): ``eig`` and ``eigvals`` of real matrices are
complex then also when all eigenvalues are real, and ``lstsq`` returns residuals as for full rank.

Functions that read one triangle of a matrix (``cholesky``, ``eigh``, ``hermitian=True``) are
differentiated as what they compute: gradients are 0 in the other triangle, and the entries that are
read stand for two each.

Layer: ``numpy``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError as LinAlgError
from numpy.typing import ArrayLike

from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.namespaces import listing as _listing
from functrans.numpy.common import as_array, layout_of, lifted
from functrans.numpy.dispatch import implements
from functrans.numpy.linalg_norms import (
    abs_squared,
    check_square,
    check_stacked,
    floating,
    svd_values,
)
from functrans.numpy.linalg_norms import cond as cond
from functrans.numpy.linalg_norms import matrix_norm as matrix_norm
from functrans.numpy.linalg_norms import matrix_rank as matrix_rank
from functrans.numpy.linalg_norms import norm as norm
from functrans.numpy.linalg_norms import vector_norm as vector_norm
from functrans.numpy.linalg_products import cross as cross
from functrans.numpy.linalg_products import diagonal as diagonal
from functrans.numpy.linalg_products import matmul as matmul
from functrans.numpy.linalg_products import matrix_transpose as matrix_transpose
from functrans.numpy.linalg_products import multi_dot as multi_dot
from functrans.numpy.linalg_products import outer as outer
from functrans.numpy.linalg_products import tensordot as tensordot
from functrans.numpy.linalg_products import trace as trace
from functrans.numpy.linalg_products import vecdot as vecdot
from functrans.primitives import dot as products
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, real
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.movement import reverse
from functrans.primitives.sorting import argsort, select_along
from functrans.primitives.structural import broadcast_to, reduce_sum, reshape, transpose

_ONE = np.ones((1, 1))
EigResult = type(np.linalg.eig(_ONE))
EighResult = type(np.linalg.eigh(_ONE))
QRResult = type(np.linalg.qr(_ONE))
SVDResult = type(np.linalg.svd(_ONE))
SlogdetResult = type(np.linalg.slogdet(_ONE))

# systems ----------------------------------------------------------------------------------------


@implements(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike) -> Any:
    """Solve ``a @ x = b``; the LU factors serve all derivatives."""
    a, b = floating("solve", a, b)
    check_square("solve", a)
    a_shape, b_shape = shape_of(a), shape_of(b)
    n, is_vector = a_shape[-1], len(b_shape) == 1
    if is_vector:
        b = reshape(b, (*b_shape, 1))
    b_shape = shape_of(b)
    if len(b_shape) < 2 or b_shape[-2] != n:
        raise ShapeError(
            f"solve: right-hand side of shape {b_shape[:-1] if is_vector else b_shape} does not "
            f"fit matrices of shape {a_shape}{here()}; it needs {n} rows"
        )
    factors, pivots = linalg.lu_factor(a)
    lead, b_lead = a_shape[:-2], b_shape[:-2]
    if not lead and b_lead:  # one matrix, many right-hand sides: they become columns
        ndim = len(b_shape)
        wide = transpose(b, (ndim - 2, *range(ndim - 2), ndim - 1))
        x = linalg.linear_solve(
            a, factors, pivots, reshape(wide, (n, math.prod(b_shape) // max(n, 1)))
        )
        x = reshape(x, shape_of(wide))
        return transpose(x, (*range(1, ndim - 1), 0, ndim - 1))
    if lead != b_lead:
        common = np.broadcast_shapes(lead, b_lead)
        a, factors = (broadcast_to(x, (*common, n, n)) for x in (a, factors))
        pivots = broadcast_to(pivots, (*common, n))
        b = broadcast_to(b, (*common, *b_shape[-2:]))
    x = linalg.linear_solve(a, factors, pivots, b)
    return reshape(x, shape_of(x)[:-1]) if is_vector else x


@implements(np.linalg.inv)
def inv(a: ArrayLike) -> Array:
    """Inverses of square matrices."""
    (a,) = floating("inv", a)
    check_square("inv", a)
    return linalg.inv(a)


@implements(np.linalg.tensorsolve)
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Array:
    """Solve ``tensordot(a, x, x.ndim) = b`` for ``x``."""
    a, b = as_array(a), as_array(b)
    ndim = len(shape_of(a))
    if axes is not None:
        order = list(range(ndim))
        for axis in axes:
            order.remove(axis)
            order.append(axis)
        a = transpose(a, tuple(order))
    b_shape = shape_of(b)
    x_shape = shape_of(a)[len(b_shape) :]
    n = math.prod(x_shape)
    if math.prod(shape_of(a)) != n * n or math.prod(b_shape) != n:
        raise LinAlgError(
            f"tensorsolve: shapes {shape_of(a)} and {b_shape} do not fit{here()}; the axes of a "
            "beyond those of b must have as many elements as b"
        )
    return reshape(solve(reshape(a, (n, n)), reshape(b, (n,))), x_shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of ``a`` under ``tensordot`` over its first ``ind`` axes."""
    a = as_array(a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind={ind} is invalid{here()}; it must be positive")
    shape = shape_of(a)
    n = math.prod(shape[ind:])
    if math.prod(shape) != n * n:
        raise LinAlgError(
            f"tensorinv: the axes before and after ind={ind} of shape {shape} must have equally "
            f"many elements{here()}"
        )
    return reshape(inv(reshape(a, (n, n))), shape[ind:] + shape[:ind])


@implements(np.linalg.matrix_power)
def matrix_power(a: ArrayLike, n: int) -> Any:
    """Power of square matrices by repeated squaring; inverted first for negative ``n``."""
    a = as_array(a)
    check_square("matrix_power", a)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: exponent must be an integer, got {n!r}") from None
    shape, dtype = shape_of(a), dtype_of(a)
    if n == 0:
        return lifted(np.array(np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)), a)
    if n < 0:
        a, n = inv(a), -n
    if n == 3:  # in NumPy's order, which infinities tell from the other
        return products.matmul(products.matmul(a, a), a)
    result = None
    while True:
        n, bit = divmod(n, 2)
        if bit:
            result = a if result is None else products.matmul(result, a)
        if not n:
            return result
        a = products.matmul(a, a)


@implements(np.linalg.lstsq)
def lstsq(a: Array, b: Array, rcond: float | None = None) -> tuple[Any, Any, Any, Any]:
    """Least-squares solution of least norm, residuals, rank and singular values."""
    a, b = floating("lstsq", a, b)
    is_vector = len(shape_of(b)) == 1
    if is_vector:
        b = reshape(b, (*shape_of(b), 1))
    for x in (a, b):
        if len(shape_of(x)) != 2:
            raise LinAlgError(
                f"lstsq: expected matrices, got {len(shape_of(x))} axes{here()}; use ft.vmap for "
                "stacks"
            )
    rows, columns = shape_of(a)
    if shape_of(b)[0] != rows:
        raise LinAlgError(
            f"lstsq: {rows} equations, but {shape_of(b)[0]} right-hand sides{here()}; a and b must "
            "have as many rows"
        )
    eps = float(np.finfo(np.float64).eps)
    tolerance = eps * max(rows, columns) if rcond is None else float(rcond)
    x, rank, s = linalg.lstsq(a, b, eps if tolerance < 0 else tolerance)
    is_full_rank = isinstance(rank, Tracer) or int(rank) == columns
    if rows > columns and is_full_rank:
        difference = b - products.matmul(a, x)
        residuals = reduce_sum(abs_squared(difference), (0,))
    else:
        residuals = np.zeros((0,), dtype_of(s))
    if is_vector:
        x = reshape(x, (columns,))
    return x, residuals, rank if isinstance(rank, Tracer) else rank[()], s


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """Pseudo-inverses; singular values below ``rcond`` times the largest count as 0."""
    (a,) = floating("pinv", a)
    check_stacked("pinv", a)
    shape = shape_of(a)
    if rcond is None:
        if rtol is np._NoValue:
            rcond = 1e-15
        elif rtol is None:
            rcond = max(shape[-2:]) * float(np.finfo(dtype_of(a)).eps)
        else:
            rcond = rtol
    elif rtol is not np._NoValue:
        raise ValueError("pinv: rtol and rcond are two names of one tolerance; give only one")
    rcond = broadcast_to(as_array(rcond), shape[:-2])
    return linalg.pinv(a, rcond, hermitian=bool(hermitian))


# determinants -----------------------------------------------------------------------------------


@implements(np.linalg.det)
def det(a: ArrayLike) -> Array:
    """Determinants; their derivatives are exact at singular matrices, too."""
    (a,) = floating("det", a)
    check_square("det", a)
    return linalg.det(a)


@implements(np.linalg.slogdet)
def slogdet(a: ArrayLike) -> Any:
    """Sign and logarithm of the absolute value of determinants."""
    (a,) = floating("slogdet", a)
    check_square("slogdet", a)
    return SlogdetResult(*linalg.slogdet(a))


# factorizations ---------------------------------------------------------------------------------


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """Cholesky factors, lower or upper triangular."""
    (a,) = floating("cholesky", a)
    check_square("cholesky", a)
    return linalg.adjoint(linalg.cholesky(linalg.adjoint(a))) if upper else linalg.cholesky(a)


@implements(np.linalg.qr)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR factors; mode ``"raw"``, and ``"complete"`` of tall matrices, have no derivative."""
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(
            f"qr: unrecognized mode {mode!r}{here()}; expected reduced, complete, r or raw"
        )
    (a,) = floating("qr", a)
    check_stacked("qr", a)
    rows, columns = shape_of(a)[-2:]
    is_reduced = mode == "r" or (mode == "complete" and rows <= columns)
    q, r = linalg.qr(a, "reduced" if is_reduced else mode)
    if mode == "r":
        return r
    return (q, r) if mode == "raw" else QRResult(q, r)


def _uplo(name: str, uplo: str) -> str:
    letter = uplo.upper()
    if letter not in ("L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {uplo!r}")
    return letter


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    letter = _uplo("eigh", UPLO)
    (a,) = floating("eigh", a)
    check_square("eigh", a)
    return EighResult(*linalg.eigh(a, letter))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, ascending."""
    letter = _uplo("eigvalsh", UPLO)
    (a,) = floating("eigvalsh", a)
    check_square("eigvalsh", a)
    return linalg.eigvalsh(a, letter)


@implements(np.linalg.eig)
def eig(a: ArrayLike) -> Any:
    """Eigenvalues and right eigenvectors; complex unless they are known to be real."""
    (a,) = floating("eig", a)
    check_square("eig", a)
    w, v = linalg.eig(a)
    return EigResult(real(w), real(v)) if _are_real(a, w) else EigResult(w, v)


@implements(np.linalg.eigvals)
def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues; complex unless they are known to be real."""
    (a,) = floating("eigvals", a)
    check_square("eigvals", a)
    w = linalg.eigvals(a)
    return real(w) if _are_real(a, w) else w


def _are_real(a: ArrayLike, w: Array) -> bool:
    """Whether NumPy gives real eigenvalues of a real matrix; false where values are not known."""
    values = layout_of(w)
    return dtype_of(a).kind != "c" and values is not None and not values.imag.any()


@implements(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Singular value decomposition; with ``hermitian`` through the eigenvalues."""
    if not compute_uv:
        return svd_values("svd", a, hermitian)
    (a,) = floating("svd", a)
    if not hermitian:
        check_stacked("svd", a)
        return SVDResult(*linalg.svd(a, full_matrices=bool(full_matrices)))
    check_square("svd", a)
    w, v = linalg.eigh(a)
    last = len(shape_of(w)) - 1
    size = absolute(w)
    order = reverse(argsort(size, last), (last,))
    signs = ew.copysign(np.ones((), dtype_of(w)), select_along(w, order, last))
    columns = broadcast_to(reshape(order, (*shape_of(w)[:-1], 1, shape_of(w)[-1])), shape_of(v))
    u = select_along(v, columns, last + 1)
    signed = u * reshape(signs, (*shape_of(w)[:-1], 1, shape_of(w)[-1]))
    return SVDResult(u, select_along(size, order, last), linalg.adjoint(signed))


@implements(np.linalg.svdvals)
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values, descending."""
    return svd_values("svdvals", x, False)


__all__ = [
    "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky",
    "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv",
    "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = _listing(__all__)
