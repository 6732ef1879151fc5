"""Linear algebra of tensors: the functions of ``torch.linalg``, and their names in ``torch``.

Here: inverses, determinants, factorizations, norms of matrices, solutions. Not here: products
(``products``), the derivatives of factorizations (``primitives.linalg.functions``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.autograd.composites import composite, several
from functrans.autograd.dtypes import given_dtype
from functrans.autograd.methods import products
from functrans.autograd.methods.blending import where
from functrans.autograd.methods.reductions import axes_of, norm, reduced
from functrans.autograd.methods.rows import (
    Row,
    by_name,
    check_tensor,
    constant,
    documented,
    fixed,
    functions_of,
    known,
    methods_of,
    results,
    rows_of,
    with_out,
)
from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.promotion import to_dtype, torch_kind
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor
from functrans.control.callbacks import pure_callback
from functrans.control.custom_rules import custom_jvp
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.structs import ShapeDtypeStruct
from functrans.numpy.linalg_norms import abs_squared
from functrans.primitives import creation, reduction, structural
from functrans.primitives import elementwise as ew
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.linalg import triangular as linalg_triangular


class LinAlgError(np.linalg.LinAlgError, RuntimeError):
    """A computation of linear algebra failed: a singular matrix, no convergence."""


_RESULTS = {
    name: results(f"linalg_{name}", *fields.split())
    for name, fields in {
        "slogdet": "sign logabsdet",
        "qr": "Q R",
        "svd": "U S Vh",
        "eig": "eigenvalues eigenvectors",
        "eigh": "eigenvalues eigenvectors",
        "lu": "P L U",
        "lstsq": "solution residuals rank singular_values",
    }.items()
}
_OldSvdResult = results("svd", "U", "S", "V")
_OldQrResult = results("qr", "Q", "R")
_OldSlogdetResult = results("slogdet", "sign", "logabsdet")
_TriangularSolution = results("triangular_solve", "solution", "cloned_coefficient")


@custom_jvp
def _as_hermitian(a: Any) -> Any:
    """Matrices with the derivative on Hermitian matrices, which is torch's; the values stay.

    Functions that read one triangle have gradients in that triangle only. Behind this function
    both triangles get half of them.
    """
    return a


@_as_hermitian.defjvp
def _as_hermitian_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    return _as_hermitian(a), (a_dot + fnp.conj(linalg.matrix_transpose(a_dot))) * 0.5


# checks ------------------------------------------------------------------------------------------


def _check_matrix(
    name: str, a: Tensor, is_square: bool = False, takes_integers: bool = False
) -> None:
    """Refuse what is no stack of matrices of floating or complex numbers, or of integers."""
    check_tensor(name, a, "A")
    if len(a.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if a.dtype.kind in ("b" if takes_integers else "iub"):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{torch_kind(a.dtype)}"
        )
    if is_square and a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by "
            f"{a.shape[-1]} matrices"
        )


def _computed(name: str, label: str, function: Callable[..., Any], *operands: Any) -> Tensor:
    """A composite whose failure is torch's."""
    try:
        return composite(label, function, *operands)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {_REASONS.get(label, error)}") from error


def _factors(name: str, label: str, function: Callable[..., Any], a: Tensor) -> Any:
    """Several results, with the names that torch gives them."""
    found: Any = _computed(f"linalg.{name}", label, lambda x: tuple(function(x)), a)
    return _RESULTS[name](*found)


def _of_matrices(
    name: str, label: str, function: Callable[..., Any], what: str, is_square: bool = True
) -> Callable[..., Any]:
    """A function of matrices alone.

    Args:
      name: torch's name, in ``torch.linalg``.
      label: torch's name of the node.
      function: the function of arrays.
      what: what it gives.
      is_square: whether the matrices must be square.
    """

    def operation(A: Tensor) -> Tensor:
        _check_matrix(f"linalg.{name}", A, is_square)
        return _computed(f"linalg.{name}", label, function, A)

    return documented(operation, name, what)


_NOT_DEFINITE = (
    "The factorization could not be completed because the input is not positive-definite"
)
_REASONS = {
    "LinalgInvEx": "The inversion could not be completed because the input matrix is singular.",
    "LinalgSolveEx": "The solver failed because the input matrix is singular.",
    "LinalgCholeskyEx": f"{_NOT_DEFINITE}.",
    "Cholesky": f"{_NOT_DEFINITE}.",
}
"""Why a computation failed, by the name of its node."""


# inverses and determinants -----------------------------------------------------------------------


inv = _of_matrices("inv", "LinalgInvEx", fnp.linalg.inv, "The inverse of square matrices.")
det = _of_matrices("det", "LinalgDet", fnp.linalg.det, "The determinant of square matrices.")


def linalg_slogdet(A: Tensor) -> tuple[Tensor, ...]:
    """Sign and logarithm of the size of the determinant."""
    _check_matrix("linalg.slogdet", A, is_square=True)
    return _factors("slogdet", "LinalgSlogdet", fnp.linalg.slogdet, A)


def slogdet(input: Tensor) -> tuple[Tensor, ...]:
    """Sign and logarithm of the size of the determinant."""
    return _OldSlogdetResult(*linalg_slogdet(input))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is real and negative."""
    _check_matrix("logdet", input, is_square=True)

    def of(a: Any) -> Any:
        sign, size = fnp.linalg.slogdet(a)
        if dtype_of(a).kind == "c":
            return size + ew.log(sign)
        return fnp.where(sign < 0, math.nan, size)

    return composite("Where", of, input)


def pinv(A: Tensor, *, rtol: object = None, atol: object = None, hermitian: bool = False) -> Tensor:
    """The pseudoinverse; singular values below the larger tolerance count as 0."""
    _check_matrix("linalg.pinv", A)
    if rtol is None and atol is None:
        rtol = max(A.shape[-2:]) * float(np.finfo(A.dtype).eps)
    levels = [0.0 if level is None else level for level in (rtol, atol)]

    def of(a: Any, rtol: Any, atol: Any) -> Any:
        if not (type(atol) is float and atol == 0.0):
            rtol = ew.maximum(rtol, atol / bind(structural.stop_gradient_p, _largest(a))[0])
        if hermitian:
            a = _as_hermitian(a)
        return fnp.linalg.pinv(a, rtol, hermitian=hermitian)

    return composite("LinalgPinv", of, A, *levels)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse; singular values below ``rcond`` times the largest count as 0."""
    return pinv(input, rtol=rcond)


def _largest(a: Any) -> Any:
    """The largest singular value of matrices."""
    sizes = fnp.linalg.svdvals(a)
    return reduction.reduce_max(sizes, (len(shape_of(sizes)) - 1,))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution ``X`` of ``A X = B``, or of ``X A = B``.

    Raises:
      RuntimeError: shapes do not fit, or a matrix is singular.
    """
    _check_matrix("linalg.solve", A, is_square=True)
    products.same_dtype(A, B)
    is_vector = len(B.shape) == 1 or (len(A.shape) - 1 == len(B.shape) and B.shape == A.shape[:-1])
    n = A.shape[-1]
    if B.shape[-1 if is_vector or not left else -2] != n:
        raise RuntimeError(
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B "
            f"({A.shape[-2]}x{n} and {'x'.join(map(str, B.shape[-2:]))})"
        )

    def of(a: Any, b: Any) -> Any:
        if is_vector:
            found = fnp.linalg.solve(a, structural.reshape(b, (*shape_of(b), 1)))
            return structural.reshape(found, shape_of(found)[:-1])
        if not left:
            return linalg.matrix_transpose(
                fnp.linalg.solve(linalg.matrix_transpose(a), linalg.matrix_transpose(b))
            )
        return fnp.linalg.solve(a, b)

    return _computed("linalg.solve", "LinalgSolveEx", of, A, B)


def _together(*matrices: Any) -> list[Any]:
    """Stacks of matrices of as many each."""
    lead = np.broadcast_shapes(*[shape_of(x)[:-2] for x in matrices])
    return [structural.broadcast_to(x, (*lead, *shape_of(x)[-2:])) for x in matrices]


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solution of a triangular system; the other triangle is not read."""
    _check_matrix("linalg.solve_triangular", A, is_square=True)

    def of(a: Any, b: Any) -> Any:
        if not left:
            a, b = linalg.matrix_transpose(a), linalg.matrix_transpose(b)
        a, b = _together(a, b)
        found = linalg_triangular.triangular_solve(
            a, b, lower=upper != left, unit_diagonal=unitriangular
        )
        return found if left else linalg.matrix_transpose(found)

    return _computed("linalg.solve_triangular", "LinalgSolveTriangular", of, A, B)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The solution of a triangular system, and the matrix."""
    matrix = A.mT if transpose else A
    made = solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return _TriangularSolution(made, A.clone())


def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """The solution of a system whose matrix is given by its Cholesky factor."""
    check_tensor("cholesky_solve", input)
    check_tensor("cholesky_solve", input2, "input2", 2)
    _check_matrix("cholesky_solve", input2)

    def of(b: Any, factor: Any) -> Any:
        b, factor = _together(b, factor)
        lower = _as_factor(_adjoint(factor) if upper else factor)
        half = linalg_triangular.triangular_solve(lower, b, lower=True)
        return linalg_triangular.triangular_solve(_adjoint(lower), half, lower=False)

    return composite("CholeskySolve", of, input, input2)


def _adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices."""
    return fnp.conj(linalg.matrix_transpose(x))


@custom_jvp
def _as_factor(a: Any) -> Any:
    """Lower factors as Cholesky factors of their products, whose derivative they have; as they are.

    What is above the diagonal moves the product, too, and so has a gradient, as in torch.
    """
    return a


@_as_factor.defjvp
def _as_factor_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    factor = _as_factor(a)
    product_dot = a_dot @ _adjoint(factor)
    left = linalg_triangular.triangular_solve(
        factor, product_dot + _adjoint(product_dot), lower=True
    )
    inner = linalg_triangular.triangular_solve(factor, _adjoint(left), lower=True)
    half = np.tril(np.full(shape_of(a)[-2:], 1, dtype_of(a).type(0).real.dtype))
    np.fill_diagonal(half, 0.5)
    return factor, factor @ (inner * half)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix that is given by its Cholesky factor."""
    eye = constant(np.eye(L.shape[-1], dtype=L.dtype), L)
    return cholesky_solve(eye, L, upper)


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """The solution of a least-squares problem, residuals, rank and singular values."""
    _check_matrix("linalg.lstsq", A)
    products.same_dtype(A, B)
    m, n = A.shape[-2:]
    is_vector = len(B.shape) == 1
    level = max(m, n) * float(np.finfo(A.dtype).eps) if rcond is None else float(rcond)

    def of(a: Any, b: Any) -> Any:
        if is_vector:
            b = structural.reshape(b, (m, 1))
        a, b = _together(a, b)
        x, rank, _ = linalg.lstsq(a, b, level)
        x = structural.reshape(x, (n,)) if is_vector else x
        return x, structural.cast(rank, np.dtype(np.int64))

    def left(a: Any, b: Any, x: Any) -> Any:
        squares = abs_squared(b - fnp.matmul(a, x))
        return structural.reduce_sum(squares, (0 if is_vector else len(shape_of(squares)) - 2,))

    solution, rank = several("LinalgLstsq", of, A, B)
    ranks = known(rank)
    if m > n and (ranks is None or (ranks == n).all()):
        residuals = composite("Sum", left, A, B, solution)
    else:
        residuals = constant(np.empty((0,), A.dtype), A)
    return _RESULTS["lstsq"](solution, residuals, rank, constant(np.empty((0,), A.dtype), A))


# factorizations ----------------------------------------------------------------------------------


def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices.

    Raises:
      LinAlgError: a matrix is not positive definite.
    """
    return _cholesky("linalg.cholesky", "LinalgCholeskyEx", A, upper)


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices."""
    return _cholesky("cholesky", "Cholesky", input, upper)


def _cholesky(name: str, label: str, a: Tensor, upper: bool) -> Tensor:
    _check_matrix(name, a, is_square=True)
    return _computed(name, label, lambda a: fnp.linalg.cholesky(_as_hermitian(a), upper=upper), a)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """An orthogonal and a triangular factor."""
    _check_matrix("linalg.qr", A)
    if mode == "r":
        r = composite("LinalgQr", lambda a: fnp.linalg.qr(a, "r"), A)
        return _RESULTS["qr"](constant(np.empty((0,), A.dtype), A), r)
    if mode not in ("reduced", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    return _factors("qr", "LinalgQr", lambda a: fnp.linalg.qr(a, mode), A)


def old_qr(input: Tensor, some: bool = True) -> Any:
    """An orthogonal and a triangular factor."""
    return _OldQrResult(*qr(input, "reduced" if some else "complete"))


def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Singular vectors, values and the adjoint of the right vectors."""
    _check_matrix("linalg.svd", A)
    return _factors("svd", "LinalgSvd", lambda a: fnp.linalg.svd(a, full_matrices=full_matrices), A)


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Singular vectors and values; the right vectors are columns."""
    u, s, vh = linalg_svd(input, not some)
    return _OldSvdResult(u, s, vh.mH)


svdvals = _of_matrices(
    "svdvals", "LinalgSvd", fnp.linalg.svdvals, "Singular values, descending.", is_square=False
)


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices."""
    _check_matrix("linalg.eigh", A, is_square=True)
    return _factors("eigh", "LinalgEigh", lambda a: fnp.linalg.eigh(_as_hermitian(a), UPLO), A)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending."""
    _check_matrix("linalg.eigvalsh", A, is_square=True)
    return _computed(
        "linalg.eigvalsh", "LinalgEigh", lambda a: fnp.linalg.eigvalsh(_as_hermitian(a), UPLO), A
    )


def _as_complex(x: Any) -> Any:
    dtype = dtype_of(x)
    return x if dtype.kind == "c" else structural.cast(x, np.result_type(dtype, np.complex64))


def eig(A: Tensor) -> Any:
    """Eigenvalues and eigenvectors, complex."""
    _check_matrix("linalg.eig", A, is_square=True)
    return _factors("eig", "LinalgEig", lambda a: fnp.linalg.eig(_as_complex(a)), A)


eigvals = _of_matrices(
    "eigvals", "LinalgEig", lambda a: fnp.linalg.eigvals(_as_complex(a)), "Eigenvalues, complex."
)


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A permutation, a lower and an upper triangular factor.

    Raises:
      RuntimeError: ``pivot`` is false.
    """
    _check_matrix("linalg.lu", A)
    if not pivot:
        raise RuntimeError("linalg.lu: LU without pivoting is not implemented on the CPU")

    rows, columns = A.shape[-2:]
    size = min(rows, columns)

    def of(a: Any) -> Any:
        both, _, order = linalg.lu(a)
        eye = np.eye(rows, size, dtype=dtype_of(a))
        places = order[..., None, :] == np.arange(rows)[:, None]
        lower = creation.tril(both, -1)[..., :size] + eye
        return structural.cast(places, dtype_of(a)), lower, creation.triu(both)[..., :size, :]

    return _factors("lu", "LinalgLu", of, A)


def _singular(a: Any) -> Any:
    """Per matrix the number of its first pivot that is 0; 0 where there is none."""
    pivots = fnp.diagonal(linalg.lu(a)[0], axis1=-2, axis2=-1)
    last = len(shape_of(pivots)) - 1
    is_zero = pivots == 0
    return ew.where(reduction.reduce_any(is_zero, (last,)), reduction.argmax(is_zero, last) + 1, 0)


def _indefinite(a: Any) -> Any:
    """Per matrix 1 where there is no Cholesky factor, else 0."""

    def failures(matrices: np.ndarray) -> np.ndarray:
        found = np.zeros(matrices.shape[:-2], np.int64)
        for place in np.ndindex(found.shape):
            try:
                np.linalg.cholesky(matrices[place])
            except np.linalg.LinAlgError:
                found[place] = 1
        return found

    a = bind(structural.stop_gradient_p, a)[0]
    shape = ShapeDtypeStruct(shape_of(a)[:-2], np.dtype(np.int64))
    return pure_callback(failures, shape, a, vmap_method="broadcast_all")


def _checked_form(
    function: Callable[..., Any], failures: Callable[[Any], Any], *fields: str
) -> Callable[..., Any]:
    """The form of a computation that reports a failure as a number.

    Args:
      function: the computation.
      failures: from matrices to numbers that are not 0 where it fails.
      *fields: names of its result and of the report.
    """
    name = function.__name__.removeprefix("linalg_")
    kind = results(f"linalg_{name}_ex", *fields)

    def operation(A: Tensor, *args: Any, check_errors: bool = False, **kwargs: object) -> Any:
        _check_matrix(f"linalg.{name}", A, is_square=True)
        info = fixed(lambda a: structural.cast(failures(a), np.dtype(np.int32)), A)
        numbers = known(info)
        if check_errors or (numbers is not None and not numbers.any()):
            return kind(function(A, *args, **kwargs), info)
        has_failed: Any = composite("", lambda n: n != 0, info)
        lead = info.shape
        eye = constant(np.eye(A.shape[-1], dtype=A.dtype), A)
        safe = where(has_failed.reshape(*lead, 1, 1), eye, A)
        found = function(safe, *args, **kwargs)
        has_failed = has_failed.reshape(lead + (1,) * (len(found.shape) - len(lead)))
        return kind(where(has_failed, math.nan, found), info)

    operation.__doc__ = f"As ``{function.__name__}``, with a number that is not 0 for a failure."
    return operation


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a linear map from its last axes to its first ``ind``."""
    return _computed("linalg.tensorinv", "ReshapeAlias", lambda a: fnp.linalg.tensorinv(a, ind), A)


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """The solution of a system whose unknown and right side have several axes."""
    axes = None if dims is None else tuple(dims)
    return _computed(
        "linalg.tensorsolve", "View", lambda a, b: fnp.linalg.tensorsolve(a, b, axes), A, B
    )


# norms -------------------------------------------------------------------------------------------


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: object = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norm of the elements as vectors, of any order."""
    return norm(x, ord, dim, keepdim, dtype)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices: Frobenius, nuclear, or of order 1, 2, infinity, or a negative one.

    Raises:
      RuntimeError: another order.
    """
    if dtype is not None:
        A = to_dtype(A, given_dtype(dtype))
    if ord == "fro":
        return norm(A, 2, dim, keepdim)
    if ord not in (1, -1, 2, -2, "nuc", math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    axes = tuple(axis_of(d, len(A.shape)) for d in dim)
    label = "SumBackward1" if ord == "nuc" else "Amax" if ord > 0 else "Amin"
    return reduced(label, A, lambda x, _: fnp.linalg.norm(x, ord, axes), dim, keepdim)


def linalg_norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: object = None
) -> Tensor:
    """The norm of vectors or matrices, by the number of axes and the order."""
    if dim is None and ord is not None and len(A.shape) not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{len(A.shape)}D."
        )
    n_axes = len(axes_of(A, dim)) if dim is not None or ord is not None else 1
    if ord is None:
        return norm(A, 2, dim, keepdim, dtype)
    if n_axes == 2:
        return matrix_norm(A, ord, dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
    return norm(A, float(ord), dim, keepdim, dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number of matrices."""
    label = "SqueezeBackward1" if p in (None, 2, -2) else "Mul"
    return composite(label, lambda a: fnp.linalg.cond(a, p), A)


def matrix_rank(A: Tensor, *, tol: object = None, hermitian: bool = False) -> Tensor:
    """The rank of matrices."""
    _check_matrix("linalg.matrix_rank", A)
    if tol is None:
        return fixed(lambda a: fnp.linalg.matrix_rank(a, hermitian=hermitian), A)
    return fixed(lambda a, tol: fnp.linalg.matrix_rank(a, tol, hermitian), A, tol)


# functions of matrices ---------------------------------------------------------------------------


matrix_exp = _of_matrices(
    "matrix_exp",
    "LinalgMatrixExp",
    lambda a: linalg.matrix_function(a, "expm"),
    "The exponential of square matrices.",
)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """An integer power of square matrices; negative ones of floating or complex numbers."""
    n = integer(n, "n", "matrix_power")
    _check_matrix("linalg.inv" if n < 0 else "linalg.matrix_power", A, True, n >= 0)
    label = "LinalgInvEx" if n == -1 else "UnsafeView" if len(A.shape) > 2 else "Mm"
    return _computed("linalg.matrix_power", label, lambda a: fnp.linalg.matrix_power(a, n), A)


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices."""
    return A.diagonal(offset, dim1, dim2)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along an axis of extent 3."""
    return products.cross(input, other, dim)


ROWS: tuple[Row, ...] = (
    *rows_of(
        "mf", det, slogdet, logdet, pinverse, cholesky, cholesky_solve, cholesky_inverse,
        triangular_solve, svd, matrix_exp, matrix_power,
    ),
    Row("inverse", inv),
    Row("qr", old_qr),
)  # fmt: skip

METHODS: dict[str, Any] = {**methods_of(ROWS)}
FUNCTIONS: dict[str, Any] = functions_of(ROWS)
_TABLE: dict[str, Any] = {
    **by_name(
        inv, det, pinv, solve, solve_triangular, lstsq, qr, svdvals, eigh, eigvalsh, eig,
        eigvals, vector_norm, matrix_norm, cond, matrix_rank, matrix_exp, matrix_power,
        products.matmul, lu, tensorinv, tensorsolve, products.multi_dot, products.vecdot,
    ),
    "cholesky": linalg_cholesky,
    "svd": linalg_svd,
    "slogdet": linalg_slogdet,
    "norm": linalg_norm,
    "inv_ex": _checked_form(inv, _singular, "inverse", "info"),
    "cholesky_ex": _checked_form(linalg_cholesky, _indefinite, "L", "info"),
    "solve_ex": _checked_form(solve, _singular, "result", "info"),
    "cross": linalg_cross,
    "diagonal": linalg_diagonal,
}  # fmt: skip
LINALG: dict[str, Any] = {
    "LinAlgError": LinAlgError,
    **{name: with_out(f"linalg_{name}", function) for name, function in _TABLE.items()},
}
"""The functions of ``torch.linalg``."""
