"""Primitives for eigenvalues and singular values.

Here: ``eigh``, ``eig`` and ``svd``, each with or without its vectors. Not here: norms, rank and
condition made of them (``functrans.numpy.linalg``), least squares (``lstsq``).

Repeated values. The vectors of a repeated eigenvalue or singular value are an arbitrary basis of
its space and have no derivative; the values have one in the sense that functions which treat equal
values alike do. The rules put 0 for ``1 / (w_j - w_i)`` where two values are exactly equal, which
is *a* derivative of the vectors only under perturbations that do not mix them. It is there so that
first derivatives of values, and whatever does not turn vectors of equal values into each other
(the polar factor ``u @ vh``, the vector of a simple value), come out right and finite. A second
derivative of a function of values takes vectors into account: where values are exactly equal it
lacks the part that mixes them. Nearly equal values give large numbers, as they should.

The tangents of vectors are in a fixed gauge: a vector's tangent has no component along itself
(``eigh``); the phases of ``u`` and ``vh`` turn by opposite halves (``svd``); the largest component
of a vector stays real (``eig``, as LAPACK normalizes). Functions that do not depend on phases are
differentiated exactly in every gauge.

A rule for values alone computes the vectors when it is used: evaluating values alone is several
times cheaper, and most derivatives of values cost little more for it.

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import (
    complex_dtype,
    complex_of,
    conjugate,
    imag,
    real,
    real_dtype,
)
from functrans.primitives.dot import matmul
from functrans.primitives.linalg.common import (
    NOT_LINEAR,
    adjoint,
    as_column,
    as_row,
    check_matrices,
    cubic,
    from_triangle,
    per_matrix,
    reciprocal_or_zero,
    sum_over_rows,
)
from functrans.primitives.linalg.solve import linear_solve, lu_factor
from functrans.primitives.movement import concatenate
from functrans.primitives.native.fortran import (
    INTEGER,
    LETTER,
    Status,
    call,
    convert,
    double_of,
    each_matrix,
    fill_identity,
    move_by_column,
    move_by_row,
)
from functrans.primitives.reduction import argmax
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines

_BLOCK = 64
"""At least as many columns as LAPACK works on at once, for the sizes of its workspaces."""


def _diagonal_of_product(a: Any, b: Any) -> Any:
    """Diagonal of ``a^H b``, without the product: ``[..., m, n]`` twice to ``[..., n]``."""
    return sum_over_rows(conjugate(a) * b)


# eigh -------------------------------------------------------------------------------------------


def _eigh_impl(a: Any, *, uplo: Any, vectors: bool) -> tuple[Any, ...]:
    return tuple(np.linalg.eigh(a, uplo)) if vectors else (np.linalg.eigvalsh(a, uplo),)


def _eigh_aval(a: ShapedArray, *, uplo: str, vectors: bool) -> tuple[ShapedArray, ...]:
    check_matrices("eigh", a, square=True)
    w = ShapedArray(a.shape[:-1], real_dtype(a.dtype))
    return (w, a.strong()) if vectors else (w,)


def _eigh_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
    *,
    uplo: str,
    vectors: bool,
) -> tuple[Any, ...]:
    """From ``a v = v diag(w)`` with ``v^H v = 1``; let ``p = v^H a_dot v``.

    ``w_dot = diag(p)`` and ``v_dot = v x`` with ``x_ij = p_ij / (w_j - w_i)``, ``x_ii = 0``.

    One triangle is read; so its tangent, mirrored, is the tangent of the matrix.

    Reference: Giles, Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation (2008), section 3.1.
    """
    w, v = outs if vectors else bind(eigh_p, primals[0], uplo=uplo, vectors=True)
    pushed = matmul(from_triangle(tangents[0], lower=uplo == "L"), v)
    w_dot = real(_diagonal_of_product(v, pushed))
    if not vectors:
        return (w_dot,)
    turns = reciprocal_or_zero(as_row(w) - as_column(w))
    return w_dot, matmul(v, matmul(adjoint(v), pushed) * turns)


def _eigh_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, uplo: str, vectors: bool
) -> None:
    """Divide and conquer; workspaces as the documentation of ``syevd`` and ``heevd`` wants them."""
    (a,) = operands
    n = a.shape[-1]
    if a.size == 0:
        return
    work = double_of(a.dtype)
    memory, values = e.workspace((n, n), work), e.workspace((n,), np.float64)
    tridiagonal = (_BLOCK + 2) * n
    if work.kind == "c":
        sizes = [(2 * n + n * n, work), (1 + 5 * n + 2 * n * n, np.float64)]
        name = "lapack.zheevd"
    else:
        sizes = [(1 + 6 * n + 2 * n * n, work)]
        name = "lapack.dsyevd"
    sizes[0] = max(sizes[0][0], tridiagonal), work
    sizes.append((3 + 5 * n, INTEGER))
    spaces = [(e.workspace((size,), dtype), size) for size, dtype in sizes]
    status = Status(e)
    job = "V" if vectors else "N"
    with each_matrix(e, (a, *results), len(a.shape) - 2) as (matrix, w, *v):
        move_by_column(e, matrix, memory)
        arguments = [x for space in spaces for x in space]
        end = status.clear().pointer
        call(e, name, job, uplo, n, memory, n, values, *arguments, end)
        e.fail_when(status.is_bad(), np.linalg.LinAlgError, "Eigenvalues did not converge")
        convert(e, values, w)
        if vectors:
            move_by_row(e, memory, v[0])


eigh_p: Primitive = per_matrix(
    "eigh",
    impl=_eigh_impl,
    abstract_eval=_eigh_aval,
    jvp=_eigh_jvp,
    lower=Routine(_eigh_lower),
    reasons=NOT_LINEAR,
    work=cubic(9.0),
)


def eigh(a: Any, uplo: str = "L") -> tuple[Any, Any]:
    """Eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices ``[..., n, n]``.

    Args:
      a: the matrices; one triangle is read, and only that has a derivative.
      uplo: which triangle: ``"L"`` or ``"U"``.

    Returns:
      ``(w, v)``: ``[..., n]`` real and ``[..., n, n]``.
    """
    return bind(eigh_p, a, uplo=uplo, vectors=True)


def eigvalsh(a: Any, uplo: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices; see ``eigh``."""
    return bind(eigh_p, a, uplo=uplo, vectors=False)[0]


# eig --------------------------------------------------------------------------------------------


def _eig_impl(a: Any, *, vectors: bool) -> tuple[Any, ...]:
    results = tuple(np.linalg.eig(a)) if vectors else (np.linalg.eigvals(a),)
    return tuple(x.astype(complex_dtype(a.dtype), copy=False) for x in results)


def _eig_aval(a: ShapedArray, *, vectors: bool) -> tuple[ShapedArray, ...]:
    check_matrices("eig", a, square=True)
    dtype = complex_dtype(a.dtype)
    w = ShapedArray(a.shape[:-1], dtype)
    return (w, ShapedArray(a.shape, dtype)) if vectors else (w,)


def _eig_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any], *, vectors: bool
) -> tuple[Any, ...]:
    """From ``a v = v diag(w)``; let ``p = v^-1 a_dot v``.

    ``w_dot = diag(p)``, and ``v_dot = v x`` with ``x_ij = p_ij / (w_j - w_i)`` up to a factor for
    each vector. LAPACK makes vectors of length 1 whose largest component is real: the real part of
    that factor takes away the component of the tangent along its vector, the imaginary part keeps
    the largest component real. A defective matrix has no derivative: infinities and NaN.

    Reference: Boeddeker et al., On the computation of complex-valued gradients with application to
    statistically optimum beamforming, arXiv:1701.00392 (2017), section 4.3.
    """
    w, v = outs if vectors else bind(eig_p, primals[0], vectors=True)
    dtype = dtype_of(w)
    pushed = matmul(cast(tangents[0], dtype), v)
    factors = lu_factor(v, check=False)
    inner = linear_solve(v, *factors, pushed)
    n = shape_of(w)[-1]
    is_diagonal = np.eye(n, dtype=bool)
    w_dot = sum_over_rows(ew.where(is_diagonal, inner, 0))
    if not vectors:
        return (w_dot,)
    turns = reciprocal_or_zero(as_row(w) - as_column(w))
    v_dot = matmul(v, inner * turns)
    growth = as_row(real(_diagonal_of_product(v, v_dot)))
    v_dot = v_dot - v * cast(growth, dtype)
    if n:
        largest = as_row(argmax(real(v) * real(v) + imag(v) * imag(v), len(shape_of(v)) - 2))
        is_largest = largest == np.arange(n)[:, None]
        scale = ew.where(is_largest, real(v), np.inf)  # all other components get the weight 0
        rate = sum_over_rows(imag(v_dot) / scale)
        v_dot = v_dot - v * complex_of(0.0, as_row(rate))
    return w_dot, v_dot


eig_p: Primitive = per_matrix(
    "eig",
    impl=_eig_impl,
    abstract_eval=_eig_aval,
    jvp=_eig_jvp,
    reasons=(*NOT_LINEAR, ("lower", "NumPy's routine is called; programs are compiled around it")),
    work=cubic(25.0),
)


def eig(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and right eigenvectors of square matrices ``[..., n, n]``; always complex.

    The dtype does not depend on values, as it does in NumPy where all eigenvalues may be real.
    """
    return bind(eig_p, a, vectors=True)


def eigvals(a: Any) -> Any:
    """Eigenvalues of square matrices ``[..., n, n]``; always complex."""
    return bind(eig_p, a, vectors=False)[0]


# svd --------------------------------------------------------------------------------------------


NO_SVD = "SVD did not converge"


def check_finite(a: np.ndarray) -> None:
    """Refuse matrices whose singular vectors LAPACK would look for without an end.

    Raises:
      LinAlgError: a number is infinite or NaN.
    """
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError(NO_SVD)


def _svd_impl(a: Any, *, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    if not compute_uv:
        return (np.linalg.svd(a, compute_uv=False),)
    check_finite(a)
    return tuple(np.linalg.svd(a, full_matrices=full_matrices))


def _svd_aval(a: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> tuple[ShapedArray, ...]:
    check_matrices("svd", a)
    *stack, rows, columns = a.shape
    k = min(rows, columns)
    s = ShapedArray((*stack, k), real_dtype(a.dtype))
    if not compute_uv:
        return (s,)
    left, right = (rows, columns) if full_matrices else (k, k)
    return (
        ShapedArray((*stack, rows, left), a.dtype),
        s,
        ShapedArray((*stack, right, columns), a.dtype),
    )


def _svd_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
    *,
    full_matrices: bool,
    compute_uv: bool,
) -> tuple[Any, ...]:
    """From ``a = u diag(s) v^H`` with orthonormal columns; let ``p = u^H a_dot v``.

    Write ``u_dot = u x + u'`` and ``v_dot = v y + v'`` with anti-Hermitian ``x``, ``y`` and
    ``u'``, ``v'`` orthogonal to ``u``, ``v``. Then ``p = x s + s_dot - s y``, so ``s_dot`` is the
    real part of the diagonal, and off it, with ``f_ij = 1 / (s_j - s_i)``,
    ``g_ij = 1 / (s_j + s_i)``::

        x = (f * (p + p^H) + g * (p - p^H)) / 2
        y = (f * (p + p^H) - g * (p - p^H)) / 2

    The diagonal of the second term splits the phase evenly. ``u' = (a_dot v - u p) / s`` and
    ``v' = (a_dot^H u - v p^H) / s``. Zero singular values leave ``u'`` and ``v'`` undefined; they
    are set to 0 there.

    Columns beyond ``min(m, n)`` are an arbitrary basis of the complement of ``u`` (or ``v``); their
    tangent ``-u (u_dot^H n)`` does not turn that basis in itself.

    Reference: Giles (2008), section 3.2; Seeger et al., Auto-differentiating linear algebra,
    arXiv:1710.08717 (2017); Wan & Zhang, arXiv:1909.02659 (2019) for the phases.
    """
    (a_dot,) = tangents
    if not compute_uv:
        return push_singular_values(primals[0], a_dot)
    u_all, s, vh_all = outs
    rows, columns = shape_of(a_dot)[-2:]
    k = min(rows, columns)
    u = _columns(u_all, slice(0, k))
    v = _columns(adjoint(vh_all), slice(0, k))
    pushed = matmul(a_dot, v)
    s_dot = real(_diagonal_of_product(u, pushed))
    p = matmul(adjoint(u), pushed)
    p_adjoint = adjoint(p)
    row, column = as_row(s), as_column(s)
    mean = (p + p_adjoint) * (reciprocal_or_zero(row - column) * 0.5)
    difference = (p - p_adjoint) * (reciprocal_or_zero(row + column) * 0.5)
    u_dot = matmul(u, mean + difference)
    v_dot = matmul(v, mean - difference)
    inverse = reciprocal_or_zero(row)
    if rows > k:
        u_dot = u_dot + (pushed - matmul(u, p)) * inverse
    if columns > k:
        v_dot = v_dot + (matmul(adjoint(a_dot), u) - matmul(v, p_adjoint)) * inverse
    if full_matrices and rows > k:
        u_dot = _with_complement(u_all, u, u_dot, k)
    if full_matrices and columns > k:
        v_dot = _with_complement(adjoint(vh_all), v, v_dot, k)
    return u_dot, s_dot, adjoint(v_dot)


def push_singular_values(a: Any, a_dot: Any) -> tuple[Any]:
    """The tangent of the singular values alone."""
    u, _, vh = bind(svd_p, a, full_matrices=False, compute_uv=True)
    return (real(_diagonal_of_product(u, matmul(a_dot, adjoint(vh)))),)


def _columns(x: Any, which: slice) -> Any:
    if which == slice(0, shape_of(x)[-1]):
        return x
    return slice_index(x, BasicIndex((Ellipsis, which)))


def _with_complement(basis: Any, u: Any, u_dot: Any, k: int) -> Any:
    """The tangent of a whole orthonormal basis of which ``u`` are the first columns."""
    complement = _columns(basis, slice(k, None))
    complement_dot = -matmul(u, matmul(adjoint(u_dot), complement))
    return concatenate((u_dot, complement_dot), axis=len(shape_of(basis)) - 1)


def _svd_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    full_matrices: bool,
    compute_uv: bool,
) -> None:
    """Divide and conquer; workspaces are those of ``gesdd``'s documentation and blocks beside."""
    (a,) = operands
    stack = len(a.shape) - 2
    rows, columns = a.shape[-2:]
    short, long = sorted((rows, columns))
    if short == 0:
        for basis in (results[0], results[2]) if compute_uv and full_matrices else ():
            with each_matrix(e, (basis,), stack) as (matrix,):
                fill_identity(e, matrix)
        return
    work = double_of(a.dtype)
    memory, values = e.workspace((columns, rows), work), e.workspace((short,), np.float64)
    left, right = (rows, columns) if full_matrices else (short, short)
    if not compute_uv:
        left = right = 1
    u, vh = e.workspace((left, rows), work), e.workspace((columns, right), work)
    size = 4 * short * short + 10 * short + long + _BLOCK * (short + long)
    spaces: list[Any] = [e.workspace((size,), work), size]
    if work.kind == "c":
        real_size = max(5 * short, 2 * long + 2 * short + 1) * short + 7 * short
        spaces.append(e.workspace((real_size,), np.float64))
    spaces.append(e.workspace((8 * short,), INTEGER))
    status = Status(e)
    job = "N" if not compute_uv else "A" if full_matrices else "S"
    name = f"lapack.{LETTER[work.char]}gesdd"
    with each_matrix(e, (a, *results), stack) as (matrix, *outs):
        if compute_uv:
            with e.count(rows) as i, e.count(columns) as j:
                is_bad = e.logical_not(e.isfinite(e.read(matrix, (i, j)))).parts[0]
                e.fail_when(is_bad, np.linalg.LinAlgError, NO_SVD)
        move_by_column(e, matrix, memory)
        bases = u, rows, vh, right
        end = status.clear().pointer
        call(e, name, job, rows, columns, memory, rows, values, *bases, *spaces, end)
        e.fail_when(status.is_bad(), np.linalg.LinAlgError, NO_SVD)
        convert(e, values, outs[1 if compute_uv else 0])
        if compute_uv:
            move_by_row(e, u, outs[0])
            move_by_row(e, vh, outs[2])


svd_p: Primitive = per_matrix(
    "svd",
    impl=_svd_impl,
    abstract_eval=_svd_aval,
    jvp=_svd_jvp,
    lower=Routine(_svd_lower),
    reasons=NOT_LINEAR,
    work=cubic(22.0),
)


def svd(a: Any, *, full_matrices: bool = True) -> tuple[Any, Any, Any]:
    """Singular value decomposition ``u @ diag(s) @ vh`` of matrices ``[..., m, n]``.

    Args:
      a: the matrices.
      full_matrices: whether ``u`` and ``vh`` are square. What is then added to them is an arbitrary
        basis; derivatives are right for functions that do not depend on its choice.

    Returns:
      ``(u, s, vh)``; ``s`` is real and descending.
    """
    return bind(svd_p, a, full_matrices=full_matrices, compute_uv=True)


def svdvals(a: Any) -> Any:
    """Singular values of matrices ``[..., m, n]``, descending."""
    return bind(svd_p, a, full_matrices=False, compute_uv=False)[0]


PRIMITIVES: tuple[Primitive, ...] = (eigh_p, eig_p, svd_p)
