"""Systems of linear equations under SciPy's names.

Here: dense, triangular, banded, Toeplitz and circulant systems, inverses, determinants, least
squares. Not here: factorizations (``linalg_factors``) and the records
(``primitives.linalg.functions``).

Layer: ``scipy``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import is_known, value_of
from functrans.numpy.linalg_norms import check_square, floating
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.structural import broadcast_to, normalize_axis, reshape
from functrans.scipy.dispatch import implements
from functrans.scipy.linalg_structured import circulant_product, toeplitz

_TRANS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def as_columns(b: ArrayLike, n: int, name: str) -> tuple[Any, bool]:
    """Right-hand sides as ``[..., n, k]``, and whether it was one vector.

    Raises:
      ShapeError: it has not ``n`` rows.
    """
    is_vector = len(shape_of(b)) == 1
    b = reshape(b, (*shape_of(b), 1)) if is_vector else b
    if len(shape_of(b)) < 2 or shape_of(b)[-2] != n:
        raise ShapeError(
            f"{name}: a right-hand side of shape {shape_of(b)} does not fit a matrix of {n} rows"
            f"{here()}"
        )
    return b, is_vector


def as_given(x: ArrayLike, is_vector: bool) -> Any:
    """Undo :func:`as_columns`."""
    return reshape(x, shape_of(x)[:-1]) if is_vector else x


def fitted_stacks(a: Any, b: ArrayLike) -> tuple[Any, Any]:
    """Both operands with the same leading axes."""
    lead = np.broadcast_shapes(shape_of(a)[:-2], shape_of(b)[:-2])
    return tuple(broadcast_to(x, (*lead, *shape_of(x)[-2:])) for x in (a, b))


@implements("linalg.solve")
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """Solve ``a @ x = b``, as ``scipy.linalg.solve``.

    Args:
      a: ``[..., n, n]``.
      b: ``[n]`` or ``[..., n, k]``.
      lower: which triangle is read where ``assume_a`` says that one is enough.
      overwrite_a: not used on traced arrays.
      overwrite_b: not used on traced arrays.
      check_finite: not used on traced arrays.
      assume_a: ``"sym"``, ``"her"`` and ``"pos"`` read one triangle, and the derivative is that of
        this triangle; so do ``"upper triangular"`` and ``"lower triangular"``; ``"diagonal"`` reads
        the diagonal. All others are solved as general matrices.
      transposed: solve with the transpose.

    Raises:
      LinAlgError: the matrix is singular, or not positive definite with ``"pos"``.
      ShapeError: shapes do not fit.

    Example:
      >>> import functrans as ft
      >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
      >>> ft.jit(solve)(a, np.array([2.0, 5.0]))
      array([1., 1.])
    """
    a, b = floating("solve", a, b)
    check_square("solve", a)
    kind = {"symmetric": "sym", "hermitian": "her", "positive definite": "pos"}.get(
        assume_a or "", assume_a
    )
    if transposed and kind in ("her", "pos") and dtype_of(a).kind == "c":
        raise NotImplementedError("solve: transposed=True with a complex Hermitian matrix")
    if kind in ("upper triangular", "lower triangular"):
        is_lower = kind.startswith("lower")
        return solve_triangular.traced(a, b, trans=int(transposed), lower=is_lower)  # type: ignore[attr-defined]  # set by implements
    if kind == "diagonal":
        columns, is_vector = as_columns(b, shape_of(a)[-1], "solve")
        return as_given(columns / linalg_diagonal(a), is_vector)
    if kind == "pos":
        columns, is_vector = as_columns(b, shape_of(a)[-1], "solve")
        factor = linalg.cholesky(linalg.from_triangle(a, lower=bool(lower)))
        factor, columns = fitted_stacks(factor, columns)
        half = linalg.triangular_solve(factor, columns, lower=True)
        return as_given(linalg.triangular_solve(factor, half, lower=True, trans="C"), is_vector)
    if kind in ("sym", "her"):
        a = linalg.from_triangle(a, lower=bool(lower), hermitian=kind == "her")
    elif kind == "tridiagonal":  # the rest is not read
        a = fnp.triu(fnp.tril(a, 1), -1)
    elif kind not in (None, "gen", "general", "banded"):
        raise ValueError(f"solve: assume_a={assume_a!r} is not a recognized structure{here()}")
    return fnp.linalg.solve(linalg.matrix_transpose(a) if transposed else a, b)


def linalg_diagonal(a: ArrayLike) -> Array:
    """The diagonal of each matrix as a column."""
    d = fnp.diagonal(a, axis1=-2, axis2=-1)
    return reshape(d, (*shape_of(d), 1))


@implements("linalg.solve_triangular")
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: ArrayLike = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve ``a @ x = b`` with a triangular matrix, as ``scipy.linalg.solve_triangular``.

    Args:
      a: ``[..., n, n]``; only one triangle is read, and has derivatives.
      b: ``[n]`` or ``[..., n, k]``.
      trans: 0 or ``"N"``; 1 or ``"T"``; 2 or ``"C"``: the matrix, its transpose, its adjoint.
      lower: whether the lower triangle is read.
      unit_diagonal: take the diagonal to be 1.
      overwrite_b: not used on traced arrays.
      check_finite: not used on traced arrays.

    Returns:
      ``x``. A zero on the diagonal gives infinities and NaN.
    """
    a, b = floating("solve_triangular", a, b)
    check_square("solve_triangular", a)
    if trans not in _TRANS:
        raise ValueError(f"solve_triangular: trans={trans!r}; expected 0, 1, 2, 'N', 'T' or 'C'")
    b, is_vector = as_columns(b, shape_of(a)[-1], "solve_triangular")
    a, b = fitted_stacks(a, b)
    options = {"lower": bool(lower), "unit_diagonal": bool(unit_diagonal)}
    return as_given(linalg.triangular_solve(a, b, trans=_TRANS[trans], **options), is_vector)


@implements("linalg.inv")
def inv(
    a: ArrayLike,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Array:
    """Inverses of square matrices, as ``scipy.linalg.inv``; options of structure as ``solve``."""
    (a,) = floating("inv", a)
    check_square("inv", a)
    if assume_a in (None, "gen", "general"):
        return linalg.inv(a)
    eye = np.broadcast_to(np.eye(shape_of(a)[-1], dtype=dtype_of(a)), shape_of(a))
    return solve.traced(a, eye, lower=lower, assume_a=assume_a)  # type: ignore[attr-defined]  # set by implements


@implements("linalg.det")
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Determinants, as ``scipy.linalg.det``; derivatives are exact at singular matrices, too."""
    (a,) = floating("det", a)
    check_square("det", a)
    return linalg.det(a)


@implements("linalg.lstsq")
def lstsq(
    a: Array,
    b: Array,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Least-squares solution of least norm, as ``scipy.linalg.lstsq``.

    Returns:
      ``(x, residues, rank, s)``; ``residues`` is empty where the system is not overdetermined.
    """
    (a, b) = floating("lstsq", a, b)
    eps = float(np.finfo(dtype_of(a)).eps)
    x, residues, rank, s = fnp.linalg.lstsq.traced(a, b, eps if cond is None else cond)  # type: ignore[attr-defined]  # set by implements
    if len(shape_of(b)) == 1 and shape_of(residues) == (1,):
        residues = reshape(residues, ())
    return x, residues, rank, s


# structure --------------------------------------------------------------------------------------


@implements("linalg.solve_banded")
def solve_banded(
    l_and_u: tuple[int, int],
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a banded system, as ``scipy.linalg.solve_banded``.

    Args:
      l_and_u: numbers of diagonals below and above the main one.
      ab: ``[l + u + 1, n]``, with ``ab[u + i - j, j] == a[i, j]``.
      b: ``[n]`` or ``[n, k]``.
      overwrite_ab: not used on traced arrays.
      overwrite_b: not used on traced arrays.
      check_finite: not used on traced arrays.

    Raises:
      LinAlgError: the matrix is singular.
      ShapeError: shapes do not fit.
    """
    ab, b = floating("solve_banded", ab, b)
    b, is_vector = as_columns(b, shape_of(ab)[-1], "solve_banded")
    ab, b = fitted_stacks(ab, b)
    low, high = map(int, l_and_u)
    return as_given(linalg.banded_solve(ab, b, (low, high)), is_vector)


@implements("linalg.solveh_banded")
def solveh_banded(
    ab: Array,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a Hermitian positive definite banded system, as ``scipy.linalg.solveh_banded``.

    The other half of the matrix is filled in; definiteness is not checked on traced arrays.
    """
    ab, b = floating("solveh_banded", ab, b)
    n, width = shape_of(ab)[-1], shape_of(ab)[-2] - 1
    main = ab[..., 0:1, :] if lower else ab[..., width : width + 1, :]
    above, below = [], []
    for k in range(1, width + 1):
        zeros = np.zeros((*shape_of(ab)[:-2], k), dtype_of(ab))
        if lower:
            given = ab[..., k, :]
            below.append(given)
            moved = fnp.conj(given[..., : n - k])
            above.append(fnp.concatenate((zeros, moved), axis=-1))
        else:
            given = ab[..., width - k, :]
            above.append(given)
            moved = fnp.conj(given[..., k:])
            below.append(fnp.concatenate((moved, zeros), axis=-1))
    parts = [fnp.stack(half, axis=-2) for half in (above[::-1], below) if half]
    whole = fnp.concatenate([*parts[:1], main, *parts[1:]], axis=-2) if parts else main
    return solve_banded.traced((width, width), whole, b)  # type: ignore[attr-defined]  # set by implements


@implements("linalg.solve_toeplitz")
def solve_toeplitz(c_or_cr: ArrayLike, b: ArrayLike, check_finite: bool = True) -> Array:
    """Solve a Toeplitz system, as ``scipy.linalg.solve_toeplitz``.

    Args:
      c_or_cr: first column, or ``(column, row)``; the row is by default the column's conjugate.
      b: ``[n]`` or ``[n, k]``.
      check_finite: not used on traced arrays.

    On traced arrays the matrix is formed and factorized, which is stable for every one; derivatives
    reuse the factors.
    """
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, fnp.conj(c_or_cr))
    return fnp.linalg.solve(toeplitz(c, r), b)


@implements("linalg.matmul_toeplitz")
def matmul_toeplitz(
    c_or_cr: ArrayLike, x: ArrayLike, check_finite: bool = False, workers: int | None = None
) -> Array:
    """Product of a Toeplitz matrix by Fourier transforms, as ``scipy.linalg.matmul_toeplitz``."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, fnp.conj(c_or_cr))
    c, r, x = floating("matmul_toeplitz", c, r, x)
    rows, columns = shape_of(c)[0], shape_of(r)[0]
    x, is_vector = as_columns(x, columns, "matmul_toeplitz")
    around = fnp.concatenate((c, r[:0:-1]))  # the first column of a circulant matrix
    rest = np.zeros((rows - 1, shape_of(x)[1]), dtype_of(x))
    product = circulant_product(around, fnp.concatenate((x, rest)))
    return as_given(product[:rows], is_vector)


@implements("linalg.solve_circulant")
def solve_circulant(
    c: ArrayLike,
    b: ArrayLike,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """Solve circulant systems by Fourier transforms, as ``scipy.linalg.solve_circulant``.

    Args:
      c: first columns, along ``caxis``.
      b: right-hand sides, along ``baxis``.
      singular: ``"raise"`` or ``"lstsq"``, the solution of least norm.
      tol: eigenvalues of a smaller size count as 0.
      caxis: see above.
      baxis: see above.
      outaxis: the axis of the result along which solutions lie.

    Raises:
      LinAlgError: a matrix is singular, ``singular`` is ``"raise"``, and values are known; in
        staging the result is infinite or NaN instead.
    """
    c, b = floating("solve_circulant", fnp.atleast_1d(c), fnp.atleast_1d(b))
    real_result = dtype_of(c).kind != "c" and dtype_of(b).kind != "c"
    c, b = (
        fnp.moveaxis(v, normalize_axis(axis, len(shape_of(v)), name), -1)
        for v, axis, name in ((c, caxis, "caxis"), (b, baxis, "baxis"))
    )
    n = shape_of(c)[-1]
    if n != shape_of(b)[-1]:
        raise ShapeError(
            f"solve_circulant: {n} columns and {shape_of(b)[-1]} right-hand sides do not fit"
            f"{here()}"
        )
    values = fnp.fft.fft(c)
    size = fnp.abs(values)
    if tol is None:
        limit = fnp.max(size, axis=-1, keepdims=True) * (n * float(np.finfo(np.float64).eps))
    else:
        limit = np.full((*shape_of(c)[:-1], 1), tol)
    is_small = size <= limit
    if singular != "lstsq" and is_known(is_small) and np.any(value_of(is_small)):
        raise np.linalg.LinAlgError(f"solve_circulant: a matrix is near singular{here()}")
    if singular == "lstsq":
        quotient = fnp.where(is_small, 0, fnp.fft.fft(b) / fnp.where(is_small, 1, values))
    else:
        quotient = fnp.fft.fft(b) / values
    x = fnp.fft.ifft(quotient)
    return fnp.moveaxis(fnp.real(x) if real_result else x, -1, outaxis)
