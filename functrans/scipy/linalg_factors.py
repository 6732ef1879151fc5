"""Factorizations under SciPy's names.

Here: Cholesky, LU, QR, singular values, eigenvalues, polar form, pseudo-inverses, bases of range
and null space; Schur's and Hessenberg's forms, which have values only. Not here: their records and
rules (``primitives.linalg.functions``).

Layer: ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.control.callbacks import pure_callback
from functrans.control.custom_rules import custom_jvp, stop_gradient
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError, UnsupportedOperationError
from functrans.numpy.common import layout_of, value_of
from functrans.numpy.linalg_norms import check_square, check_stacked, floating
from functrans.primitives.complex_parts import complex_dtype, is_complex, real, real_dtype
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.structural import cast
from functrans.scipy.dispatch import implements, plain
from functrans.scipy.linalg_systems import as_columns, as_given, fitted_stacks

# Cholesky ---------------------------------------------------------------------------------------


@implements("linalg.cholesky")
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Cholesky factors, as ``scipy.linalg.cholesky``; one triangle is read.

    Raises:
      LinAlgError: a matrix is not positive definite.
    """
    (a,) = floating("cholesky", a)
    check_square("cholesky", a)
    return linalg.cholesky(a) if lower else linalg.adjoint(linalg.cholesky(linalg.adjoint(a)))


@implements("linalg.cho_factor")
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """Cholesky factors for :func:`cho_solve`, as ``scipy.linalg.cho_factor``.

    Returns:
      ``(c, lower)``. The other triangle of ``c`` is 0 (SciPy's holds arbitrary numbers).
    """
    return cholesky.traced(a, lower=bool(lower)), bool(lower)  # type: ignore[attr-defined]  # set by implements


@implements("linalg.cho_solve")
def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a system with factors of :func:`cho_factor`, as ``scipy.linalg.cho_solve``."""
    c, lower = c_and_lower
    c, b = floating("cho_solve", c, b)
    b, is_vector = as_columns(b, shape_of(c)[-1], "cho_solve")
    c, b = fitted_stacks(c, b)
    first, second = ("N", "C") if lower else ("C", "N")
    half = linalg.triangular_solve(c, b, lower=bool(lower), trans=first)
    return as_given(linalg.triangular_solve(c, half, lower=bool(lower), trans=second), is_vector)


# LU ---------------------------------------------------------------------------------------------


def _lower_unit(packed: Array) -> Array:
    """The factor ``l`` of packed factors, with its diagonal of ones."""
    rows, columns = shape_of(packed)[-2:]
    k = min(rows, columns)
    return fnp.tril(packed[..., :k], -1) + fnp.eye(rows, k, dtype=dtype_of(packed))


@implements("linalg.lu")
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Any, ...]:
    """LU factorization with partial pivoting, as ``scipy.linalg.lu``.

    Args:
      a: ``[..., m, n]``.
      permute_l: return ``(p @ l, u)``.
      overwrite_a: not used on traced arrays.
      check_finite: not used on traced arrays.
      p_indices: return ``p`` as the order of rows for which ``l[p] @ u`` is ``a``.

    Returns:
      ``(p, l, u)``; the permutation is locally constant.
    """
    (a,) = floating("lu", a)
    check_stacked("lu", a)
    packed, _, order = linalg.lu(a)
    rows, columns = shape_of(a)[-2:]
    low, high = _lower_unit(packed), fnp.triu(packed[..., : min(rows, columns), :])
    back = fnp.argsort(order, axis=-1)
    if permute_l:
        return fnp.take_along_axis(low, back[..., None], axis=-2), high
    if p_indices:
        return back, low, high
    matrix = order[..., None, :] == np.arange(rows)[:, None]
    return cast(matrix, real_dtype(dtype_of(a))), low, high


@implements("linalg.lu_factor")
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, Any]:
    """Packed LU factors and row interchanges, as ``scipy.linalg.lu_factor``."""
    (a,) = floating("lu_factor", a)
    check_stacked("lu_factor", a)
    packed, pivots, _ = linalg.lu(a)
    return packed, pivots


@implements("linalg.lu_solve")
def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a system with factors of :func:`lu_factor`, as ``scipy.linalg.lu_solve``.

    Args:
      lu_and_piv: packed factors and row interchanges.
      b: ``[n]`` or ``[..., n, k]``.
      trans: 0, 1 or 2: the matrix, its transpose, its adjoint.
      overwrite_b: not used on traced arrays.
      check_finite: not used on traced arrays.
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans={trans!r}; expected 0, 1 or 2{here()}")
    letter = "NTC"[trans]
    packed, pivots = lu_and_piv
    packed, b = floating("lu_solve", packed, b)
    n = shape_of(packed)[-1]
    b, is_vector = as_columns(b, n, "lu_solve")
    packed, b = fitted_stacks(packed, b)
    order = fnp.broadcast_to(np.arange(n), shape_of(packed)[:-1])
    for j in range(n):
        order = _interchanged(order, j, pivots[..., j : j + 1])
    unit: dict[str, Any] = {"lower": True, "unit_diagonal": True}
    if letter == "N":
        x = linalg.triangular_solve(
            packed, fnp.take_along_axis(b, order[..., None], axis=-2), **unit
        )
        return as_given(linalg.triangular_solve(packed, x, lower=False), is_vector)
    x = linalg.triangular_solve(packed, b, lower=False, trans=letter)
    x = linalg.triangular_solve(packed, x, trans=letter, **unit)
    back = fnp.argsort(order, axis=-1)
    return as_given(fnp.take_along_axis(x, back[..., None], axis=-2), is_vector)


def _interchanged(order: Array, j: int, other: ArrayLike) -> Array:
    """Positions ``j`` and ``other`` of each row exchanged."""
    place = np.arange(shape_of(order)[-1])
    here_, there = order[..., j : j + 1], fnp.take_along_axis(order, other, axis=-1)
    return fnp.where(place == j, there, fnp.where(place == other, here_, order))


# QR ---------------------------------------------------------------------------------------------


@implements("linalg.qr")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """QR factorization, as ``scipy.linalg.qr``.

    Args:
      a: ``[..., m, n]``.
      overwrite_a: not used on traced arrays.
      lwork: not used on traced arrays.
      mode: ``"full"`` (no derivative of tall matrices), ``"economic"`` or ``"r"``.
      pivoting: permute the columns so that the diagonal of ``r`` descends; the permutation is
        locally constant.
      check_finite: not used on traced arrays.

    Raises:
      UnsupportedOperationError: ``mode="raw"``.
    """
    if mode not in ("full", "economic", "r"):
        if mode == "raw":
            raise UnsupportedOperationError(
                f"scipy.linalg.qr with mode='raw' cannot be traced{here()}; use 'economic'"
            )
        raise ValueError(f"qr: mode={mode!r}; expected 'full', 'economic', 'r' or 'raw'")
    (a,) = floating("qr", a)
    check_stacked("qr", a)
    rows, columns = shape_of(a)[-2:]
    order: Any = None
    if pivoting:
        order = pure_callback(
            _pivot_order,
            ShapeDtypeStruct((*shape_of(a)[:-2], columns), np.int32),
            stop_gradient(a),
            vmap_method="expand_dims",
        )
        a = fnp.take_along_axis(a, order[..., None, :], axis=-1)
    if mode == "r" and rows > columns:
        _, r = linalg.qr(a, "reduced")
        zeros = np.zeros((*shape_of(a)[:-2], rows - columns, columns), dtype_of(a))
        outs: tuple[Any, ...] = (fnp.concatenate((r, zeros), axis=-2),)
    else:
        is_reduced = mode != "full" or rows <= columns
        q, r = linalg.qr(a, "reduced" if is_reduced else "complete")
        outs = (r,) if mode == "r" else (q, r)
    return (*outs, order) if pivoting else outs


def _pivot_order(a: np.ndarray) -> np.ndarray:
    """The permutation of LAPACK's QR factorization with pivoting."""
    factorize = plain("linalg.qr")
    out = np.empty(a.shape[:-2] + a.shape[-1:], np.int32)
    for lane in np.ndindex(a.shape[:-2]):
        out[lane] = factorize(a[lane], mode="r", pivoting=True)[1]
    return out


@implements("linalg.qr_multiply")
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """Products with the factor ``q`` of ``a``, as ``scipy.linalg.qr_multiply``.

    Args:
      a: ``[m, n]``.
      c: ``[m]`` or ``[k, m]``; with ``mode="left"`` ``[min(m, n)]`` or ``[min(m, n), k]``.
      mode: ``"right"`` for ``c @ q``, ``"left"`` for ``q @ c``.
      pivoting: as for ``qr``.
      conjugate: multiply with the conjugate of ``q``.
      overwrite_a: not used on traced arrays.
      overwrite_c: not used on traced arrays.

    Returns:
      The product, ``r``, and with ``pivoting`` the permutation.
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode={mode!r}; expected 'left' or 'right'")
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = fnp.conj(q) if conjugate else q
    wanted, given = shape_of(q)[-1 if mode == "left" else -2], shape_of(c)
    own = given[0 if mode == "left" else -1] if 1 <= len(given) <= 2 else None
    if own != wanted:
        raise ShapeError(
            f"qr_multiply: c has shape {given}{here()}; expected {wanted} elements along its "
            f"{'first' if mode == 'left' else 'last'} axis"
        )
    return (fnp.matmul(q, c) if mode == "left" else fnp.matmul(c, q), *rest)


@implements("linalg.rq")
def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """RQ factorization, as ``scipy.linalg.rq``: a QR factorization of the mirrored matrix.

    Args:
      a: ``[..., m, n]``.
      overwrite_a: not used on traced arrays.
      lwork: not used on traced arrays.
      mode: ``"full"``, which has no derivative of wide matrices, ``"economic"`` or ``"r"``.
      check_finite: not used on traced arrays.
    """
    (a,) = floating("rq", a)
    check_stacked("rq", a)
    mirrored = linalg.adjoint(a[..., ::-1, ::-1])
    outs = qr.traced(mirrored, mode=mode)  # type: ignore[attr-defined]  # set by implements
    r = linalg.adjoint(outs[-1])[..., ::-1, ::-1]
    return r if mode == "r" else (r, linalg.adjoint(outs[0])[..., ::-1, ::-1])


# singular values --------------------------------------------------------------------------------


@implements("linalg.svd")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular value decomposition, as ``scipy.linalg.svd``."""
    (a,) = floating("svd", a)
    check_stacked("svd", a)
    if not compute_uv:
        return linalg.svdvals(a)
    return linalg.svd(a, full_matrices=bool(full_matrices))


def _rank(s: Array, rcond: float | None, shape: tuple[int, ...], what: str) -> int:
    """How many singular values count, as SciPy's ``orth`` and ``null_space`` do."""
    known = layout_of(s)
    values = value_of(s, f"the shape of the result of {what}") if known is None else known
    limit = float(np.finfo(values.dtype).eps) * max(shape[-2:]) if rcond is None else rcond
    largest = np.max(values, axis=-1, keepdims=True, initial=0.0)
    ranks = np.unique(np.sum(values > largest * limit, axis=-1))
    if ranks.size > 1:
        raise ShapeError(
            f"{what}: matrices of the stack have ranks {ranks.tolist()}, so their bases differ in "
            f"size{here()}; use one matrix, or matrices of one rank"
        )
    return int(ranks[0]) if ranks.size else min(shape[-2:])


@implements("linalg.orth")
def orth(A: ArrayLike, rcond: float | None = None) -> Array:  # SciPy's name
    """An orthonormal basis of the range, as ``scipy.linalg.orth``.

    Its extent depends on values, which ``jit`` and ``vmap`` do not know. Derivatives are right for
    functions that do not depend on the choice of the basis.
    """
    (a,) = floating("orth", A)
    check_stacked("orth", a)
    u, s, _ = linalg.svd(a, full_matrices=False)
    return u[..., : _rank(s, rcond, shape_of(a), "orth")]


@implements("linalg.null_space")
def null_space(
    A: ArrayLike,  # SciPy's name
    rcond: float | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array:
    """An orthonormal basis of the null space, as ``scipy.linalg.null_space``; see :func:`orth`.

    The choice of the basis is arbitrary; derivatives are right for functions that do not depend on
    it, such as the projector ``n @ n.T``.
    """
    (a,) = floating("null_space", A)
    check_stacked("null_space", a)
    _, s, vh = linalg.svd(a)
    return linalg.adjoint(vh[..., _rank(s, rcond, shape_of(a), "null_space") :, :])


@implements("linalg.pinv")
def pinv(
    a: Any,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Pseudo-inverses, as ``scipy.linalg.pinv``; traced, ``atol`` must be ``None`` or 0."""
    return _pseudo_inverse("pinv", a, atol, rtol, return_rank, hermitian=False)


@implements("linalg.pinvh")
def pinvh(
    a: ArrayLike,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Array:
    """Pseudo-inverses of Hermitian matrices, as ``scipy.linalg.pinvh``; one triangle is read."""
    (a,) = floating("pinvh", a)
    check_square("pinvh", a)
    a = linalg.from_triangle(a, lower=lower)
    return _pseudo_inverse("pinvh", a, atol, rtol, return_rank, hermitian=True)


def _pseudo_inverse(
    name: str, a: Array, atol: Any, rtol: Any, return_rank: bool, *, hermitian: bool
) -> Any:
    (a,) = floating(name, a)
    check_stacked(name, a)
    if atol:
        raise UnsupportedOperationError(
            f"scipy.linalg.{name} with atol={atol} cannot be traced{here()}; give rtol, relative "
            "to the largest singular value"
        )
    shape = shape_of(a)
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(dtype_of(a)).eps)
    limit = fnp.broadcast_to(rtol, shape[:-2])
    result = linalg.pinv(a, limit, hermitian=hermitian)
    if not return_rank:
        return result
    s = linalg.svdvals(a)
    return result, fnp.sum(s > fnp.max(s, axis=-1, keepdims=True) * rtol, axis=-1)


# eigenvalues ------------------------------------------------------------------------------------


def _selected(name: str, n: int, by_index: Any, by_value: Any) -> slice:
    if by_value is not None:
        raise UnsupportedOperationError(
            f"scipy.linalg.{name} with subset_by_value cannot be traced{here()}: the shape of the "
            "result would depend on values; use subset_by_index, or mask the result"
        )
    if by_index is None:
        return slice(0, n)
    low, high = map(int, by_index)
    if not 0 <= low <= high < n:
        raise ValueError(
            f"{name}: indices of eigenvalues from {low} to {high}; expected 0 <= first <= last < "
            f"{n}{here()}"
        )
    return slice(low, high + 1)


@implements("linalg.eigh")
def eigh(
    a: Any,
    b: ArrayLike | None = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,  # SciPy's name
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Eigenvalues and vectors of Hermitian matrices, as ``scipy.linalg.eigh``.

    Args:
      a: ``[..., n, n]``; one triangle is read.
      b: positive definite; the problem is then ``a v = w b v`` (type 1), ``a b v = w v`` (2) or
        ``b a v = w v`` (3).
      lower: which triangle is read, of both matrices.
      eigvals_only: leave the vectors out.
      overwrite_a: not used on traced arrays.
      overwrite_b: not used on traced arrays.
      type: see ``b``.
      check_finite: not used on traced arrays.
      subset_by_index: first and last index of the eigenvalues wanted.
      subset_by_value: not for traced arrays.
      driver: not used on traced arrays.

    Reference: Golub & Van Loan, Matrix Computations (2013), section 8.7.
    """
    (a,) = floating("eigh", a)
    check_square("eigh", a)
    wanted = _selected("eigh", shape_of(a)[-1], subset_by_index, subset_by_value)
    uplo = "L" if lower else "U"
    if b is None:
        if eigvals_only:
            return linalg.eigvalsh(a, uplo)[..., wanted]
        w, v = linalg.eigh(a, uplo)
        return w[..., wanted], v[..., wanted]
    a, b = floating("eigh", a, b)
    a, b = (linalg.from_triangle(x, lower=lower) for x in (a, b))
    factor = linalg.cholesky(b)
    if type == 1:
        left = linalg.triangular_solve(factor, a, lower=True)
        c = linalg.adjoint(linalg.triangular_solve(factor, linalg.adjoint(left), lower=True))
    elif type in (2, 3):
        c = linalg.adjoint(factor) @ a @ factor
    else:
        raise ValueError(f"eigh: type must be 1, 2 or 3, got {type!r}")
    c = (c + linalg.adjoint(c)) * 0.5
    if eigvals_only:
        return linalg.eigvalsh(c)[..., wanted]
    w, y = linalg.eigh(c)
    solve = linalg.triangular_solve
    v = factor @ y if type == 3 else solve(factor, y, lower=True, trans="C")
    return w[..., wanted], v[..., wanted]


@implements("linalg.eigh_tridiagonal")
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues and vectors of a real tridiagonal matrix, as ``scipy.linalg.eigh_tridiagonal``.

    Traced, the dense matrix is formed.
    """
    d, e = floating("eigh_tridiagonal", d, e)
    if select not in ("a", "i", "all", "index"):
        raise UnsupportedOperationError(
            f"scipy.linalg.eigh_tridiagonal with select={select!r} cannot be traced{here()}; use "
            "'a' or 'i'"
        )
    a = fnp.diag(d) + fnp.diag(e, 1) + fnp.diag(e, -1)
    wanted = _selected(
        "eigh_tridiagonal", shape_of(d)[0], select_range if select.startswith("i") else None, None
    )
    if eigvals_only:
        return linalg.eigvalsh(a)[wanted]
    w, v = linalg.eigh(a)
    return w[wanted], v[:, wanted]


def _refuse_general(name: str, b: Any, left: bool, homogeneous: bool) -> None:
    if b is not None or left or homogeneous:
        option = "b" if b is not None else "left=True" if left else "homogeneous_eigvals=True"
        raise UnsupportedOperationError(
            f"scipy.linalg.{name} with {option} cannot be traced{here()}; eigenvalues of the pair "
            "(a, b) are those of solve(b, a), left eigenvectors of a those of its adjoint"
        )


@implements("linalg.eig")
def eig(
    a: ArrayLike,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> tuple[Array, ...]:
    """Eigenvalues and right eigenvectors, as ``scipy.linalg.eig``; the values are complex.

    Vectors are real where SciPy's are: for real matrices with real eigenvalues, if values are
    known.

    Raises:
      UnsupportedOperationError: generalized problems and left vectors.
    """
    _refuse_general("eig", b, left, homogeneous_eigvals)
    if not right:
        (a,) = floating("eigvals", a)
        check_square("eigvals", a)
        return linalg.eigvals(a)
    w, v = fnp.linalg.eig.traced(a)  # type: ignore[attr-defined]  # set by implements
    return cast(w, complex_dtype(dtype_of(w))), v


# polar form -------------------------------------------------------------------------------------


@custom_jvp
def _polar(a: ArrayLike) -> tuple[Any, Any]:
    """``a = u p`` for ``[..., m, n]`` with ``m >= n``."""
    w, s, vh = linalg.svd(a, full_matrices=False)
    return w @ vh, linalg.adjoint(vh) @ (s[..., None] * vh)


@_polar.defjvp
def _polar_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Any, Any]:
    """With ``u' = u x + u''``, ``x`` anti-Hermitian and ``u''`` orthogonal to ``u``.

    ``w = u^H a' = x p + p'`` and ``p'`` is Hermitian, so ``p x + x p = w - w^H``: Sylvester's
    equation, which is regular for every matrix of full rank, also with equal singular values.
    ``u'' = (a' - u w) p^-1``.

    Reference: Higham, Functions of Matrices (2008), section 8.1.
    """
    (a,), (a_dot,) = primals, tangents
    u, p = _polar(a)
    w = linalg.adjoint(u) @ a_dot
    x = linalg.sylvester(p, p, w - linalg.adjoint(w))
    u_dot = u @ x
    if shape_of(a)[-2] > shape_of(a)[-1]:
        u_dot = u_dot + (a_dot - u @ w) @ linalg.inv(p)
    return (u, p), (u_dot, w - x @ p)


@implements("linalg.polar")
def polar(a: ArrayLike, side: str = "right") -> tuple[Any, Any]:
    """Polar decomposition, as ``scipy.linalg.polar``.

    Args:
      a: ``[..., m, n]``.
      side: ``"right"`` for ``a = u @ p``, ``"left"`` for ``a = p @ u``.

    Returns:
      ``(u, p)`` with orthonormal columns or rows in ``u`` and ``p`` positive semidefinite. The
      derivative is defined for full rank.
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}")
    (a,) = floating("polar", a)
    check_stacked("polar", a)
    if side == "left":
        u, p = polar.traced(linalg.adjoint(a))  # type: ignore[attr-defined]  # set by implements
        return linalg.adjoint(u), p
    rows, columns = shape_of(a)[-2:]
    if rows >= columns:
        return _polar(a)
    w, s, vh = linalg.svd(a, full_matrices=False)
    return w @ vh, linalg.adjoint(vh) @ (s[..., None] * vh)


@implements("linalg.orthogonal_procrustes")
def orthogonal_procrustes(
    A: ArrayLike, B: ArrayLike, check_finite: bool = True
) -> tuple[Any, Any]:  # SciPy's names
    """The orthogonal matrix that maps ``A`` closest to ``B``, and the sum of singular values."""
    a, b = floating("orthogonal_procrustes", A, B)
    product = linalg.adjoint(a) @ b
    return _polar(product)[0], fnp.sum(linalg.svdvals(product), axis=-1)


# values only ------------------------------------------------------------------------------------


def _values_only(
    name: str, reason: str, call: Callable[[Any], Any], outs: object, a: ArrayLike
) -> Any:
    """Call SciPy on the values, and refuse derivatives."""

    def refuse(primals: Sequence[Array], tangents: Sequence[Array]) -> Any:
        raise NonDifferentiableError(f"scipy.linalg.{name} has no derivative: {reason}")

    return pure_callback(call, outs, a, vmap_method="sequential", jvp=refuse)


@implements("linalg.schur")
def schur(
    a: ArrayLike,
    output: str = "real",
    lwork: object = None,
    overwrite_a: bool = False,
    sort: object = None,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Schur's form ``a = z t z^H`` of one matrix, as ``scipy.linalg.schur``; values only.

    Raises:
      NonDifferentiableError: a derivative is asked.
      UnsupportedOperationError: ``sort`` is given.
    """
    if sort is not None:
        raise UnsupportedOperationError(f"scipy.linalg.schur with sort cannot be traced{here()}")
    (a,) = floating("schur", a)
    check_square("schur", a)
    dtype = dtype_of(a)
    if output in ("complex", "c"):
        dtype = complex_dtype(dtype)
    out = ShapeDtypeStruct(shape_of(a), dtype)
    reason = (
        "its vectors depend on the order that the algorithm finds the eigenvalues in; write the "
        "function through eig, expm, sqrtm or solve_sylvester, which are differentiable"
    )
    factorize = plain("linalg.schur")

    def call(matrix: Any) -> tuple[Array, ...]:
        return tuple(np.asarray(x, dtype) for x in factorize(matrix, output=output))

    return _values_only("schur", reason, call, (out, out), a)


@implements("linalg.hessenberg")
def hessenberg(
    a: ArrayLike, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg's form of one matrix, as ``scipy.linalg.hessenberg``; values only.

    Raises:
      NonDifferentiableError: a derivative is asked.
    """
    (a,) = floating("hessenberg", a)
    check_square("hessenberg", a)
    out = ShapeDtypeStruct(shape_of(a), dtype_of(a))
    reason = "its reflections are not unique; write the function through eig, qr or solve"
    reduce = plain("linalg.hessenberg")
    outs = (out, out) if calc_q else out

    def call(matrix: Any) -> Any:
        found = reduce(matrix, calc_q=calc_q)
        return tuple(found) if calc_q else found  # SciPy returns a list for stacks

    return _values_only("hessenberg", reason, call, outs, a)


def realized(result: Any, *operands: Any) -> Any:
    """A complex result as a real one where operands are real and values say that it is real."""
    if any(is_complex(x) for x in operands):
        return result
    values = layout_of(result)
    return real(result) if values is not None and not values.imag.any() else result
