"""Rows of dense linear algebra. Factors are tested by what they must satisfy."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np

from functrans.core.dispatch import bind, dtype_of
from functrans.errors import ShapeError
from functrans.primitives.dot import matmul
from functrans.primitives.elementwise import sin
from functrans.primitives.linalg import det as ld
from functrans.primitives.linalg import factor as lf
from functrans.primitives.linalg import functions as la
from functrans.primitives.linalg import lstsq as ls
from functrans.primitives.linalg import solve as lv
from functrans.primitives.linalg import spectral as sp
from functrans.primitives.linalg import triangular as lt
from samples.elementwise import span, unary
from samples.row import Refused, Rng, Row, Sample, annulus, uniform

Shape = tuple[int, ...]


def _h(x: Any) -> Any:
    """Adjoint of plain matrices."""
    return np.conj(np.swapaxes(x, -1, -2))


# matrices ---------------------------------------------------------------------------------------


def general(rng: Rng, shape: Shape, dtype: str = "f8") -> np.ndarray:
    """Well-conditioned matrices with distinct singular values."""
    *stack, rows, columns = shape
    k = min(rows, columns)
    draw = annulus if dtype.startswith("c") else uniform
    left = np.linalg.qr(draw(rng, (*stack, rows, rows)))[0][..., :k]
    right = np.linalg.qr(draw(rng, (*stack, columns, columns)))[0][..., :k]
    values = 2.5 - 0.7 * np.arange(k) + uniform(rng, (*stack, k), -0.1, 0.1)
    return ((left * values[..., None, :]) @ _h(right)).astype(dtype)


def hermitian(rng: Rng, shape: Shape, dtype: str = "f8", low: float = -1.0) -> np.ndarray:
    """Hermitian matrices with distinct eigenvalues, by default of either sign."""
    *stack, n, _ = shape
    draw = annulus if dtype.startswith("c") else uniform
    vectors = np.linalg.qr(draw(rng, (*stack, n, n)))[0]
    values = low + 0.7 * np.arange(n) + uniform(rng, (*stack, n), -0.1, 0.1)
    return ((vectors * values[..., None, :]) @ _h(vectors)).astype(dtype)


def positive(rng: Rng, shape: Shape, dtype: str = "f8") -> np.ndarray:
    return hermitian(rng, shape, dtype, 0.6)


def triangular(rng: Rng, shape: Shape, dtype: str = "f8") -> np.ndarray:
    """Full matrices either triangle of which is well-conditioned."""
    draw = annulus if dtype.startswith("c") else uniform
    return (0.5 * draw(rng, shape) + 2 * np.eye(shape[-1])).astype(dtype)


STACKS: tuple[tuple[str, Shape, str], ...] = (
    ("3x3", (3, 3), "f8"),
    ("1x1", (1, 1), "f8"),
    ("stack", (2, 2, 2), "f8"),
    ("many_small", (30, 2, 2), "f8"),
    ("empty_stack", (0, 2, 2), "f8"),
    ("0x0", (0, 0), "f8"),
    ("f32", (3, 3), "f4"),
    ("complex", (3, 3), "c16"),
)
RECTANGLES: tuple[tuple[str, Shape, str], ...] = (
    ("tall", (4, 2), "f8"),
    ("wide", (2, 4), "f8"),
    ("tall_stack", (2, 3, 2), "f8"),
    ("wide_stack", (2, 2, 3), "f8"),
    ("tall_complex", (3, 2), "c16"),
    ("wide_complex", (2, 3), "c16"),
)


def over(
    cases: tuple[tuple[str, Shape, str], ...], draw: Callable[..., np.ndarray], **params: Any
) -> Callable[[Rng], Iterator[Sample]]:
    def make(rng: Rng) -> Iterator[Sample]:
        for label, shape, dtype in cases:
            yield Sample(label, (draw(rng, shape, dtype),), params)

    return make


def each(*makers: tuple[str, Callable[[Rng], Iterator[Sample]]]) -> Callable[[Rng], Any]:
    """Samples of several makers, their labels with a prefix."""

    def make(rng: Rng) -> Iterator[Sample]:
        for prefix, maker in makers:
            for sample in maker(rng):
                yield Sample(
                    f"{prefix}{sample.label}",
                    sample.operands,
                    sample.params,
                    sample.is_smooth,
                    sample.has_derivative,
                )

    return make


NOT_SQUARE = np.ones((2, 3))


def not_square(name: str, **params: Any) -> tuple[Refused, ...]:
    return (
        Refused("not_square", (NOT_SQUARE,), ShapeError, name, params),
        Refused("vector", (np.ones(3),), ShapeError, name, params),
        Refused("int", (np.ones((2, 2), int),), TypeError, name, params),
    )


# systems ----------------------------------------------------------------------------------------


def _op(a: Any, trans: str) -> Any:
    return a if trans == "N" else np.swapaxes(a, -1, -2) if trans == "T" else _h(a)


# label, shape of the matrix, of the right-hand sides, dtype
SYSTEMS: tuple[tuple[str, Shape, Shape, str], ...] = (
    ("3x3", (3, 3), (3, 2), "f8"),
    ("1x1", (1, 1), (1, 1), "f8"),
    ("stack", (2, 2, 2), (2, 2, 1), "f8"),
    ("many_small", (30, 2, 2), (30, 2, 1), "f8"),
    ("no_columns", (2, 2), (2, 0), "f8"),
    ("0x0", (0, 0), (0, 2), "f8"),
    ("f32", (2, 2), (2, 2), "f4"),
    ("complex", (3, 3), (3, 2), "c16"),
)


def _triangular_samples(rng: Rng) -> Iterator[Sample]:
    for lower in (True, False):
        for label, a, b, dtype in SYSTEMS:
            params = {"lower": lower, "trans": "N", "unit_diagonal": False}
            operands = triangular(rng, a, dtype), _rhs(rng, b, dtype)
            yield Sample(f"{'lower' if lower else 'upper'}_{label}", operands, params)
    for trans in "TC":
        for dtype in ("f8", "c16"):
            params = {"lower": True, "trans": trans, "unit_diagonal": dtype == "f8"}
            operands = triangular(rng, (3, 3), dtype), _rhs(rng, (3, 2), dtype)
            yield Sample(f"{trans}_{dtype}", operands, params)
    params = {"lower": False, "trans": "C", "unit_diagonal": False}
    many = triangular(rng, (30, 2, 2), "c16"), _rhs(rng, (30, 2, 1), "c16")
    yield Sample("many_small_C", many, params)


def _rhs(rng: Rng, shape: Shape, dtype: str) -> np.ndarray:
    draw = annulus if dtype.startswith("c") else uniform
    return draw(rng, shape).astype(dtype)


def _triangular_residual(
    outs: Any, a: Any, b: Any, *, lower: bool, trans: str, unit_diagonal: bool
) -> Any:
    t = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        t = t - np.triu(np.tril(t)) + np.eye(a.shape[-1])
    return (_op(t, trans) @ outs[0] - b,)


def _solve_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, b, dtype in SYSTEMS:
        for trans in "NTC" if label in ("3x3", "complex", "many_small") else "N":
            a = general(rng, shape, dtype)
            operands = a, *la.lu_factor(a), _rhs(rng, b, dtype)
            yield Sample(f"{label}_{trans}", operands, {"trans": trans})


def _solved(a: Any, factors: Any, pivots: Any, b: Any, *, trans: str) -> tuple[Any]:
    """The solution as a function of the matrix: the factors follow it."""
    return (la.linear_solve(a, *la.lu_factor(a), b, trans=trans),)


def _unpacked(lu: Any, rows: int, columns: int) -> tuple[Any, Any]:
    k = min(rows, columns)
    return np.tril(lu[..., :k], -1) + np.eye(rows, k), np.triu(lu[..., :k, :])


def _rows_in_order(a: Any, pivots: Any) -> Any:
    """The rows after LAPACK's interchanges."""
    out = a.copy()
    for lane in np.ndindex(a.shape[:-2]):
        for j, other in enumerate(pivots[lane]):
            out[lane][[j, other]] = out[lane][[other, j]]
    return out


def _lu_residuals(outs: Any, a: Any) -> Any:
    lu, pivots, permutation = outs
    lower, upper = _unpacked(lu, *a.shape[-2:])
    in_order = _rows_in_order(a, pivots)
    by_permutation = np.take_along_axis(a, permutation[..., None].astype(int), -2)
    return lower @ upper - in_order, in_order - by_permutation


def _lu_factor_residuals(outs: Any, a: Any, *, check: bool) -> Any:
    lower, upper = _unpacked(outs[0], *a.shape[-2:])
    return (lower @ upper - _rows_in_order(a, outs[1]),)


SYSTEM_ROWS = (
    Row(
        lt.triangular_solve_p,
        _triangular_samples,
        residuals=_triangular_residual,
        linear_in=((1,),),
        refused=(
            Refused("rows", (np.eye(2), np.ones((3, 1))), ShapeError, "triangular_solve", {
                "lower": True, "trans": "N", "unit_diagonal": False}),
            Refused("dtypes", (np.eye(2), np.ones((2, 1), "f4")), TypeError, "one dtype", {
                "lower": True, "trans": "N", "unit_diagonal": False}),
        ),
    ),
    Row(
        lv.lu_p,
        each(("", over(STACKS, general)), ("", over(RECTANGLES, general))),
        residuals=_lu_residuals,
        refused=(Refused("vector", (np.ones(3),), ShapeError, "lu"),),
    ),
    Row(
        lv.lu_factor_p,
        over(STACKS, general, check=True),
        residuals=_lu_factor_residuals,
        refused=(
            *not_square("lu_factor", check=True),
            Refused("singular", (), np.linalg.LinAlgError, "Singular",
                call=lambda: la.lu_factor(np.ones((2, 2)))),
        ),
    ),
    Row(
        lv.linear_solve_p,
        _solve_samples,
        residuals=lambda outs, a, factors, pivots, b, trans: (_op(a, trans) @ outs[0] - b,),
        linear_in=((3,),),
        fixed=(1,),
        differentiated=_solved,
        refused=(
            Refused("rows", (np.eye(2), np.eye(2), np.zeros(2, int), np.ones((3, 1))), ShapeError,
                "linear_solve", {"trans": "N"}),
        ),
    ),
)  # fmt: skip


# determinants -----------------------------------------------------------------------------------


def _parity(order: tuple[int, ...]) -> int:
    return (-1) ** sum(order[i] > order[j] for i, j in combinations(range(len(order)), 2))


def _leibniz(a: Any) -> Any:
    """Determinants as sums over permutations."""
    n = a.shape[-1]
    total = np.zeros(a.shape[:-2], a.dtype)
    for order in permutations(range(n)):
        term = np.full(a.shape[:-2], _parity(order), a.dtype)
        for i, j in enumerate(order):
            term = term * a[..., i, j]
        total = total + term
    return total


def _minors(a: Any) -> Any:
    """Cofactors as determinants of submatrices."""
    n = a.shape[-1]
    out = np.zeros(a.shape, a.dtype)
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(a, i, -2), j, -1)
        out[..., i, j] = (-1) ** (i + j) * _leibniz(rest)
    return out


def _cofactor(a: Any, *directions: Any) -> Any:
    """Exact for n <= 3, where cofactors are quadratic: their derivative is a difference."""
    if not directions:
        return _minors(a)
    if len(directions) == 1:
        return (_minors(a + directions[0]) - _minors(a - directions[0])) / 2
    h, k = directions
    return (_minors(h + k) - _minors(h) - _minors(k)) if a.shape[-1] == 3 else 0 * a


def _cofactor_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, dtype in STACKS:
        yield Sample(f"{label}_order0", (general(rng, shape, dtype),))
    for label, shape, dtype in (("3x3", (3, 3), "f8"), ("stack", (2, 2, 2), "f8")):
        operands = tuple(general(rng, shape, dtype) for _ in range(2))
        yield Sample(f"{label}_order1", operands)
    yield Sample("complex_order1", tuple(general(rng, (3, 3), "c16") for _ in range(2)))
    yield Sample("3x3_order2", tuple(general(rng, (3, 3)) for _ in range(3)))
    yield Sample("singular_order0", (np.ones((3, 3)) + np.diag([1.0, 0, 0]),))
    yield Sample("singular_order1", (np.ones((2, 2)), uniform(rng, (2, 2))))


def _det_samples(rng: Rng) -> Iterator[Sample]:
    yield from over(STACKS, general)(rng)
    yield Sample("singular", (np.array([[1.0, 2.0], [2.0, 4.0]]),))


def _slogdet_residuals(outs: Any, a: Any) -> Any:
    sign, logabsdet = outs
    return sign * np.exp(logabsdet) - _leibniz(a), np.abs(sign) - 1


DETERMINANT_ROWS = (
    Row(
        ld.inv_p,
        over(STACKS, general, check=True),
        residuals=lambda outs, a, check: (a @ outs[0] - np.eye(a.shape[-1]),),
        refused=not_square("inv", check=True),
    ),
    Row(ld.det_p, _det_samples, _leibniz, refused=not_square("det")),
    Row(
        ld.slogdet_p,
        over(STACKS, general),
        residuals=_slogdet_residuals,
        refused=not_square("slogdet"),
    ),
    Row(
        ld.cofactor_p,
        _cofactor_samples,
        _cofactor,
        linear_in=((1,), (2,)),
        refused=not_square("cofactor"),
    ),
)


# factors ----------------------------------------------------------------------------------------


def _cholesky_residuals(outs: Any, a: Any) -> Any:
    (factor,) = outs
    return factor @ _h(factor) - a, np.triu(factor, 1)


def _qr_residuals(outs: Any, a: Any, *, mode: str) -> Any:
    if mode == "raw":
        h, tau = outs
        r = np.linalg.qr(a, "r")
        return np.triu(np.swapaxes(h, -1, -2))[..., : r.shape[-2], :] - r, np.imag(tau)
    q, r = outs
    return q @ r - a, _h(q) @ q - np.eye(q.shape[-1]), np.tril(r, -1)


def _underived(maker: Callable[[Rng], Iterator[Sample]]) -> Callable[[Rng], Iterator[Sample]]:
    def make(rng: Rng) -> Iterator[Sample]:
        for sample in maker(rng):
            yield Sample(sample.label, sample.operands, sample.params, has_derivative=False)

    return make


TALL = (("tall", (3, 2), "f8"),)

FACTOR_ROWS = (
    Row(
        lf.cholesky_p,
        over(STACKS, positive),
        residuals=_cholesky_residuals,
        hermitian=(0,),
        refused=(
            *not_square("cholesky"),
            Refused("indefinite", (), np.linalg.LinAlgError, "positive definite",
                call=lambda: la.cholesky(-np.eye(2))),
        ),
    ),
    Row(
        lf.qr_p,
        each(
            ("", over(STACKS, general, mode="reduced")),
            ("", over(RECTANGLES, general, mode="reduced")),
            ("complete_", over((("wide", (2, 3), "f8"),), general, mode="complete")),
            ("complete_", _underived(over(TALL, general, mode="complete"))),
            ("raw_", _underived(over(TALL, general, mode="raw"))),
        ),
        residuals=_qr_residuals,
        refused=(Refused("vector", (np.ones(3),), ShapeError, "qr", {"mode": "reduced"}),),
    ),
)  # fmt: skip


# eigenvalues and singular values ----------------------------------------------------------------


def _eigh_residuals(outs: Any, a: Any, *, uplo: str, vectors: bool) -> Any:
    w = outs[0]
    if not vectors:
        power = (w**2).sum(-1) - (np.abs(a) ** 2).sum((-2, -1))
        return w.sum(-1) - np.trace(a, axis1=-2, axis2=-1).real, power, np.minimum(np.diff(w), 0)
    v = outs[1]
    return a @ v - v * w[..., None, :], _h(v) @ v - np.eye(a.shape[-1]), np.minimum(np.diff(w), 0)


def _eigh_without_phases(a: Any, *, uplo: str, vectors: bool) -> tuple[Any, ...]:
    """A phase of complex vectors is LAPACK's choice: a function of the matrix instead."""
    outs = bind(sp.eigh_p, a, uplo=uplo, vectors=vectors)
    if not vectors or dtype_of(a).kind != "c":
        return outs
    w, v = outs
    return w, matmul(v * sin(w)[..., None, :], la.adjoint(v))


def _nonsymmetric(rng: Rng, shape: Shape, dtype: str = "f8") -> np.ndarray:
    """Diagonalizable matrices with eigenvalues apart; for real ones n = 3 has a complex pair."""
    n = shape[-1]
    if dtype.startswith("c"):
        values = np.diag(np.exp(2j * np.pi * np.arange(n) / max(n, 1)) * (1 + 0.3 * np.arange(n)))
    else:
        values = np.diag(1.0 + np.arange(n))
        if n == 3:
            values[1:, 1:] = [[0.5, 1.2], [-1.2, 0.5]]
    basis = general(rng, shape, dtype)
    return (basis @ values @ np.linalg.inv(basis)).astype(dtype)


def _eig_residuals(outs: Any, a: Any, *, vectors: bool) -> Any:
    w = outs[0]
    if not vectors:
        square = np.trace(a @ a, axis1=-2, axis2=-1)
        return w.sum(-1) - np.trace(a, axis1=-2, axis2=-1), (w**2).sum(-1) - square
    v = outs[1]
    return a @ v - v * w[..., None, :], (np.abs(v) ** 2).sum(-2) - 1


def _svd_residuals(outs: Any, a: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    if not compute_uv:
        (s,) = outs
        return ((s**2).sum(-1) - (np.abs(a) ** 2).sum((-2, -1)), np.maximum(np.diff(s), 0))
    u, s, vh = outs
    k = s.shape[-1]
    rebuilt = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    return (
        rebuilt - a,
        _h(u) @ u - np.eye(u.shape[-1]),
        vh @ _h(vh) - np.eye(vh.shape[-2]),
        np.maximum(np.diff(s), 0),
    )


def _svd_without_gauge(a: Any, *, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    """Phases and bases of complements are LAPACK's choice: functions of the matrix instead."""
    outs = bind(sp.svd_p, a, full_matrices=full_matrices, compute_uv=compute_uv)
    if not compute_uv or (dtype_of(a).kind != "c" and not full_matrices):
        return outs
    u, s, vh = outs
    k = s.shape[-1]
    spaces = [matmul(x, la.adjoint(x)) for x in (u[..., k:], la.adjoint(vh)[..., k:])]
    return s, matmul(u[..., :k] * sin(s)[..., None, :], vh[..., :k, :]), *spaces


SPECTRAL_ROWS = (
    Row(
        sp.eigh_p,
        each(
            ("", over(STACKS, hermitian, uplo="L", vectors=True)),
            ("upper_", over((("3x3", (3, 3), "f8"),), hermitian, uplo="U", vectors=True)),
            ("values_", over(STACKS, hermitian, uplo="L", vectors=False)),
        ),
        residuals=_eigh_residuals,
        hermitian=(0,),
        differentiated=_eigh_without_phases,
        refused=not_square("eigh", uplo="L", vectors=True),
    ),
    Row(
        sp.eig_p,
        each(
            ("", over(STACKS, _nonsymmetric, vectors=True)),
            ("values_", over(STACKS, _nonsymmetric, vectors=False)),
        ),
        residuals=_eig_residuals,
        fd_scale=10,
        refused=not_square("eig", vectors=True),
    ),
    Row(
        sp.svd_p,
        each(
            ("", over(STACKS, general, full_matrices=False, compute_uv=True)),
            ("", over(RECTANGLES, general, full_matrices=False, compute_uv=True)),
            ("full_", over(RECTANGLES, general, full_matrices=True, compute_uv=True)),
            ("values_", over(RECTANGLES, general, full_matrices=False, compute_uv=False)),
        ),
        residuals=_svd_residuals,
        differentiated=_svd_without_gauge,
        refused=(
            Refused("vector", (np.ones(3),), ShapeError, "svd", {
                "full_matrices": False, "compute_uv": True}),
        ),
    ),
)  # fmt: skip


# least squares ----------------------------------------------------------------------------------


def _pinv_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, dtype in (*STACKS, *RECTANGLES):
        rtol = np.full(shape[:-2], 1e-10)
        yield Sample(label, (general(rng, shape, dtype), rtol), {"hermitian": False})


def _pinv_residuals(outs: Any, a: Any, rtol: Any, *, hermitian: bool) -> Any:
    """The four equations of Penrose."""
    (x,) = outs
    ax, xa = a @ x, x @ a
    return ax @ a - a, xa @ x - x, ax - _h(ax), xa - _h(xa)


def _lstsq_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, dtype in (*STACKS, *RECTANGLES):
        if 0 not in shape[-2:]:
            b = _rhs(rng, (*shape[:-1], 2), dtype)
            yield Sample(label, (general(rng, shape, dtype), b), {"rcond": 1e-10})


def _lstsq_residuals(outs: Any, a: Any, b: Any, *, rcond: float) -> Any:
    """The normal equations, a solution in the range of the adjoint, rank and singular values."""
    x, rank, s = outs
    adjoint = _h(a)
    projected = adjoint @ np.linalg.pinv(adjoint) @ x
    norms = (s**2).sum(-1) - (np.abs(a) ** 2).sum((-2, -1))
    return adjoint @ (a @ x - b), projected - x, rank - min(a.shape[-2:]), norms


LEAST_SQUARES_ROWS = (
    Row(
        ls.pinv_p,
        _pinv_samples,
        residuals=_pinv_residuals,
        fixed=(1,),
        refused=(
            Refused("rtol", (np.ones((2, 2)), np.ones(3)), ShapeError, "one tolerance", {
                "hermitian": False}),
        ),
    ),
    Row(
        ls.lstsq_p,
        _lstsq_samples,
        residuals=_lstsq_residuals,
        refused=(
            Refused("rows", (np.ones((2, 2)), np.ones((3, 1))), ShapeError, "as many rows", {
                "rcond": 1e-10}),
        ),
    ),
    unary(ls.norm_sqrt_p, np.sqrt, math.sqrt, None, span(0.2, 3), kinks=(0.0, 1.0), refused=()),
)  # fmt: skip

ROWS = (
    *SYSTEM_ROWS,
    *DETERMINANT_ROWS,
    *FACTOR_ROWS,
    *SPECTRAL_ROWS,
    *LEAST_SQUARES_ROWS,
)
