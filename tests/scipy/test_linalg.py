"""``scipy.linalg``: values, derivatives, batches and compiled programs against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy_cases import Case, check

import functrans as ft
from functrans.errors import (
    ConcretizationError,
    NonDifferentiableError,
    ShapeError,
    UnsupportedOperationError,
)

R = np.random.default_rng(11)
A = R.standard_normal((3, 3)) + 3 * np.eye(3)
B = R.standard_normal((3, 3)) * 0.5
T = R.standard_normal((4, 3))
W = R.standard_normal((3, 4))
V = R.standard_normal(3)
X = R.standard_normal((3, 2))
C = (R.standard_normal((3, 3)) + 1j * R.standard_normal((3, 3))) * 0.5 + 2 * np.eye(3)
P = B @ B.T + np.diag([1.0, 2.0, 3.5])
E = np.eye(3)
AB = R.standard_normal((4, 5)) + np.array([0, 0, 6.0, 0])[:, None]
HB = np.abs(R.standard_normal((3, 5))) * 0.3 + np.array([0, 0, 4.0])[:, None]
RHS = R.standard_normal((5, 2))
COL = np.array([4.0, 1.0, 0.5, -0.3])
ROW = np.array([4.0, -0.6, 0.2, 0.1])


def sym(x: Any) -> Any:
    return (x + x.swapaxes(-1, -2)) / 2


def her(x: Any) -> Any:
    return (x + x.conj().swapaxes(-1, -2)) / 2


CASES = (
    Case("solve", lambda m, a, b: m.solve(a, b), A, V),
    Case("solve columns", lambda m, a, b: m.solve(a, b), A, X),
    Case("solve transposed", lambda m, a, b: m.solve(a, b, transposed=True), A, X),
    Case("solve sym", lambda m, a, b: m.solve(a, b, assume_a="sym"), P, X),
    Case("solve sym lower", lambda m, a, b: m.solve(a, b, lower=True, assume_a="sym"), P, X),
    Case("solve her", lambda m, a, b: m.solve(her(a), b, assume_a="her"), C, C[0]),
    Case("solve pos", lambda m, a, b: m.solve(sym(a), b, assume_a="pos"), P, V),
    Case("solve upper", lambda m, a, b: m.solve(a, b, assume_a="upper triangular"), A, V),
    Case("solve diagonal", lambda m, a, b: m.solve(a, b, assume_a="diagonal"), np.diag(V), X),
    Case("solve complex", lambda m, a, b: m.solve(a, b), C, C[1]),
    Case("solve_triangular", lambda m, a, b: m.solve_triangular(a, b), A, V),
    Case(
        "solve_triangular trans",
        lambda m, a, b: m.solve_triangular(a, b, trans="T", lower=True, unit_diagonal=True),
        A,
        X,
    ),
    Case("solve_triangular adjoint", lambda m, a, b: m.solve_triangular(a, b, trans=2), C, C),
    Case("inv", lambda m, a: m.inv(a), A),
    Case("inv pos", lambda m, a: m.inv(sym(a), assume_a="pos"), P),
    Case("det", lambda m, a: m.det(a), A),
    Case("lstsq", lambda m, a, b: m.lstsq(a, b)[0], T, R.standard_normal(4)),
    Case("lstsq residues", lambda m, a, b: m.lstsq(a, b)[:2], T, R.standard_normal((4, 2))),
    Case("lstsq wide", lambda m, a, b: m.lstsq(a, b)[0], W, V),
    Case("solve_banded", lambda m, ab, b: m.solve_banded((1, 2), ab, b), AB, RHS),
    Case("solve_banded vector", lambda m, ab, b: m.solve_banded((1, 2), ab, b), AB, RHS[:, 0]),
    Case("solveh_banded", lambda m, ab, b: m.solveh_banded(ab, b), HB, RHS),
    Case("solveh_banded lower", lambda m, ab, b: m.solveh_banded(ab, b, lower=True), HB[::-1], RHS),
    Case("solve_toeplitz", lambda m, c, r, b: m.solve_toeplitz((c, r), b), COL, ROW, RHS[:4]),
    Case("solve_toeplitz symmetric", lambda m, c, b: m.solve_toeplitz(c, b), COL, RHS[:4, 0]),
    Case("matmul_toeplitz", lambda m, c, r, x: m.matmul_toeplitz((c, r), x), COL, ROW[:3], X),
    Case("matmul_toeplitz square", lambda m, c, x: m.matmul_toeplitz(c, x), COL, RHS[:4, 0]),
    Case("solve_circulant", lambda m, c, b: m.solve_circulant(c, b), COL, RHS[:4]),
    Case("cholesky", lambda m, a: m.cholesky(sym(a)), P),
    Case("cholesky lower", lambda m, a: m.cholesky(her(a), lower=True), C + 2 * E),
    Case("cho_factor", lambda m, a: np.triu(m.cho_factor(sym(a))[0]), P),
    Case("cho_solve", lambda m, a, b: m.cho_solve(m.cho_factor(sym(a)), b), P, X),
    Case("cho_solve lower", lambda m, c, b: m.cho_solve((c, True), b), A, V),
    Case("lu", lambda m, a: m.lu(a), A),
    Case("lu permute_l", lambda m, a: m.lu(a, permute_l=True), T),
    Case("lu p_indices", lambda m, a: m.lu(a, p_indices=True)[1:], W),
    Case("lu_factor", lambda m, a: m.lu_factor(a)[0], A[[2, 0, 1]]),
    Case("lu_solve", lambda m, a, b: m.lu_solve(m.lu_factor(a), b), A[[2, 0, 1]], X),
    Case("lu_solve trans", lambda m, a, b: m.lu_solve(m.lu_factor(a), b, 1), A[[2, 0, 1]], V),
    Case("qr", lambda m, a: m.qr(a), A),
    Case("qr economic", lambda m, a: m.qr(a, mode="economic"), T),
    Case("qr r", lambda m, a: m.qr(a, mode="r")[0], T),
    Case("qr_multiply", lambda m, a, c: m.qr_multiply(a, c), T, T.T),
    Case("qr_multiply left", lambda m, a, c: m.qr_multiply(a, c, "left", True)[:2], A, A[:, :2]),
    Case("qr_multiply vector", lambda m, a, c: m.qr_multiply(a, c, conjugate=True), A, V),
    Case("qr pivoting", lambda m, a: m.qr(a, pivoting=True)[:2], A[:, ::-1]),
    Case("rq", lambda m, a: m.rq(a), A),
    Case("rq economic", lambda m, a: m.rq(a, mode="economic"), W),
    Case("svd", lambda m, a: m.svd(a), A),
    Case("svd values", lambda m, a: m.svd(a, compute_uv=False), T),
    Case("svd thin", lambda m, a: m.svd(a, full_matrices=False), T),
    Case("svdvals", lambda m, a: m.svdvals(a), W),
    Case("diagsvd", lambda m, s: m.diagsvd(s, 3, 5), V),
    Case("orth", lambda m, a: m.orth(a) @ m.orth(a).T, T, is_staged=False),
    Case("null_space", lambda m, a: m.null_space(a) @ m.null_space(a).T, W, is_staged=False),
    Case("pinv", lambda m, a: m.pinv(a), T),
    Case("pinvh", lambda m, a: m.pinvh(sym(a)), P),
    Case("eigh", lambda m, a: [x * np.sign(x[:1]) for x in m.eigh(sym(a))], P),
    Case("eigh upper", lambda m, a: m.eigh(sym(a), lower=False, eigvals_only=True), P),
    Case("eigh pair", lambda m, a, b: m.eigh(sym(a), sym(b)), P, A @ A.T),
    Case("eigh pair 2", lambda m, a, b: m.eigh(sym(a), sym(b), type=2)[0], P, A @ A.T),
    Case("eigh pair 3", lambda m, a, b: m.eigh(sym(a), sym(b), type=3)[0], P, A @ A.T),
    Case("eigh subset", lambda m, a: m.eigh(sym(a), subset_by_index=[1, 2]), P),
    Case("eigvalsh", lambda m, a: m.eigvalsh(her(a)), C),
    Case("eigvalsh pair", lambda m, a, b: m.eigvalsh(sym(a), sym(b)), P, A @ A.T),
    Case("eigh_tridiagonal", lambda m, d, e: m.eigh_tridiagonal(d, e), V * 3, V[:2]),
    Case(
        "eigh_tridiagonal range",
        lambda m, d, e: m.eigh_tridiagonal(d, e, True, select="i", select_range=(0, 1)),
        V * 3,
        V[:2],
    ),
    Case("eig", lambda m, a: m.eig(a), A),
    Case("eigvals", lambda m, a: m.eigvals(a), A),
    Case("polar", lambda m, a: m.polar(a), A),
    Case("polar tall", lambda m, a: m.polar(a), T),
    Case("polar left", lambda m, a: m.polar(a, "left"), A),
    Case("polar equal values", lambda m, a: m.polar(a), np.eye(3)[[1, 0, 2]] * 2),
    Case("polar complex", lambda m, a: m.polar(a), C),
    Case("orthogonal_procrustes", lambda m, a, b: m.orthogonal_procrustes(a, b), T, T @ A),
    Case("expm", lambda m, a: m.expm(a), B),
    Case("expm large", lambda m, a: m.expm(a), 4 * B, derivative_rtol=1e-4),
    Case("expm stack", lambda m, a: m.expm(a), np.stack([B, B.T])),
    Case("expm complex", lambda m, a: m.expm(a), C),
    Case("expm nilpotent", lambda m, a: m.expm(a), np.diag([1.0, 2.0], 1)),
    Case("expm_frechet", lambda m, a, e: m.expm_frechet(a, e), B, A),
    Case("expm_frechet alone", lambda m, a, e: m.expm_frechet(a, e, compute_expm=False), B, A),
    Case("logm", lambda m, a: m.logm(a), P + 0.1 * B),
    Case("logm complex", lambda m, a: m.logm(a), C),
    Case("sqrtm", lambda m, a: m.sqrtm(a), P + 0.1 * B),
    Case("sqrtm complex", lambda m, a: m.sqrtm(a), C),
    Case("sqrtm equal values", lambda m, a: m.sqrtm(a), 2 * E),
    Case("fractional_matrix_power", lambda m, a: m.fractional_matrix_power(a, 0.3), P),
    Case("fractional_matrix_power whole", lambda m, a: m.fractional_matrix_power(a, -2), P),
    Case("sinm", lambda m, a: m.sinm(a), B),
    Case("cosm", lambda m, a: m.cosm(a), B),
    Case("cosm complex", lambda m, a: m.cosm(a), C),
    Case("tanm", lambda m, a: m.tanm(a), 0.5 * B),
    Case("sinhm", lambda m, a: m.sinhm(a), B),
    Case("coshm", lambda m, a: m.coshm(a), B),
    Case("tanhm", lambda m, a: m.tanhm(a), B),
    Case("signm", lambda m, a: m.signm(a), A @ np.diag([1.0, -1, 1]) @ np.linalg.inv(A)),
    Case("funm", lambda m, a: m.funm(a, lambda x: x * np.exp(x)), P, derivative_rtol=1e-4),
    Case("funm equal values", lambda m, a: m.funm(a, np.exp), np.diag([1.0, 1.0, 2.0])),
    Case("funm close values", lambda m, a: m.funm(a, np.exp), np.diag([1.0, 1.0 + 1e-9, 2.0])),
    Case("funm identity", lambda m, a: m.funm(a, np.sqrt), E),
    Case("funm complex", lambda m, a: m.funm(a, np.exp), C),
    Case("solve_sylvester", lambda m, a, b, q: m.solve_sylvester(a, b, q), A, P[:2, :2], X),
    Case("solve_continuous_lyapunov", lambda m, a, q: m.solve_continuous_lyapunov(a, q), A, B),
    Case("solve_lyapunov", lambda m, a, q: m.solve_lyapunov(a, q), C, C.T),
    Case("solve_discrete_lyapunov", lambda m, a, q: m.solve_discrete_lyapunov(a, q), B, A),
    Case(
        "solve_discrete_lyapunov bilinear",
        lambda m, a, q: m.solve_discrete_lyapunov(a, q, "bilinear"),
        B,
        A,
    ),
    Case(
        "solve_continuous_are",
        lambda m, a, b, q, r: m.solve_continuous_are(a, b, sym(q), sym(r)),
        B,
        X,
        P,
        P[:2, :2],
        rtol=1e-9,
        derivative_rtol=2e-4,
    ),
    Case(
        "solve_continuous_are e s",
        lambda m, a, b, q, r, e, s: m.solve_continuous_are(a, b, sym(q), sym(r), e, s),
        B,
        X,
        P,
        P[:2, :2],
        E + 0.1 * B,
        0.1 * X,
        rtol=1e-9,
        derivative_rtol=2e-4,
    ),
    Case(
        "solve_discrete_are",
        lambda m, a, b, q, r: m.solve_discrete_are(a, b, sym(q), sym(r)),
        B,
        X,
        P,
        P[:2, :2],
        rtol=1e-9,
        derivative_rtol=2e-4,
    ),
    Case("block_diag", lambda m, a, b, c: m.block_diag(a, b, c), X, V, np.asarray(2.0)),
    Case("toeplitz", lambda m, c, r: m.toeplitz(c, r), V, ROW),
    Case("toeplitz complex", lambda m, c: m.toeplitz(c), C[0]),
    Case("hankel", lambda m, c, r: m.hankel(c, r), V, ROW),
    Case("hankel zeros", lambda m, c: m.hankel(c), V),
    Case("circulant", lambda m, c: m.circulant(c), V),
    Case("companion", lambda m, a: m.companion(a), ROW),
    Case("leslie", lambda m, f, s: m.leslie(f, s), ROW, V),
    Case("fiedler", lambda m, a: m.fiedler(a), V),
    Case("fiedler_companion", lambda m, a: m.fiedler_companion(a), ROW),
    Case("fiedler_companion odd", lambda m, a: m.fiedler_companion(a), np.r_[ROW, 2.0]),
    Case("fiedler_companion short", lambda m, a: m.fiedler_companion(a), ROW[:2]),
    Case("convolution_matrix", lambda m, a: m.convolution_matrix(a, 4), V),
    Case("convolution_matrix same", lambda m, a: m.convolution_matrix(a, 4, "same"), V),
    Case("convolution_matrix valid", lambda m, a: m.convolution_matrix(a, 5, "valid"), V),
    Case("khatri_rao", lambda m, a, b: m.khatri_rao(a, b), T, A),
    Case("norm", lambda m, a: m.norm(a), A),
    Case("norm nuclear", lambda m, a: m.norm(a, "nuc"), A),
    Case("norm vector", lambda m, a: m.norm(a, 3), V),
)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_function_agrees_with_scipy_and_differences(case: Case) -> None:
    check(case, "linalg")


@pytest.mark.parametrize(
    "name", ["dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"]
)
def test_constant_matrices_are_scipys(name: str) -> None:
    np.testing.assert_array_equal(getattr(ft.scipy.linalg, name)(4), getattr(scipy.linalg, name)(4))


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ft.scipy.linalg.nonsense  # noqa: B018  # the access is what raises


@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur_has_values_only(output: str) -> None:
    schur = ft.scipy.linalg.schur
    for found, expected in zip(
        ft.jit(lambda a: schur(a, output))(A), scipy.linalg.schur(A, output), strict=True
    ):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(NonDifferentiableError, match=r"scipy.linalg.schur has no derivative"):
        ft.grad(lambda a: np.sum(np.abs(schur(a, output)[0])))(A)


def test_hessenberg_has_values_only() -> None:
    hessenberg = ft.scipy.linalg.hessenberg
    np.testing.assert_allclose(ft.jit(hessenberg)(A), scipy.linalg.hessenberg(A))
    with pytest.raises(NonDifferentiableError, match=r"scipy.linalg.hessenberg has no derivative"):
        ft.grad(lambda a: np.sum(hessenberg(a)))(A)


def test_shapes_that_depend_on_values_need_them() -> None:
    with pytest.raises(ConcretizationError, match="shape of the result of orth"):
        ft.jit(ft.scipy.linalg.orth)(T)


def test_logarithm_of_a_matrix_without_a_real_one() -> None:
    a = np.array([[0.0, -1.0], [1.0, 0.0]]) - 0.1 * np.eye(2)
    out, _ = ft.vjp(ft.scipy.linalg.sqrtm, np.diag([-1.0, 4.0]))
    np.testing.assert_allclose(out, np.diag([1j, 2.0]))
    np.testing.assert_allclose(ft.jit(ft.scipy.linalg.logm)(a), scipy.linalg.logm(a), atol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m, a: m.solve(a, np.ones(4)), ShapeError, "do.* not fit"),
        (lambda m, a: m.solve(a, a, assume_a="odd"), ValueError, "assume_a='odd'"),
        (lambda m, a: m.inv(a[:2]), np.linalg.LinAlgError, "square"),
        (lambda m, a: m.solve_triangular(a, a, trans=5), ValueError, "trans=5"),
        (lambda m, a: m.solve_triangular(a, np.ones(2)), ShapeError, "3 rows"),
        (lambda m, a: m.qr(a, mode="raw"), UnsupportedOperationError, "economic"),
        (lambda m, a: m.qr(a, mode="odd"), ValueError, "mode='odd'"),
        (lambda m, a: m.pinv(a, atol=0.1), UnsupportedOperationError, "rtol"),
        (lambda m, a: m.eigh(a, subset_by_value=(0, 1)), UnsupportedOperationError, "by_index"),
        (lambda m, a: m.eig(a, a), UnsupportedOperationError, r"solve\(b, a\)"),
        (lambda m, a: m.polar(a, "up"), ValueError, "side"),
        (lambda m, a: m.schur(a, sort="lhp"), UnsupportedOperationError, "sort"),
        (lambda m, a: m.solve_sylvester(a, a, a[:2]), ShapeError, "3 rows"),
        (lambda m, a: m.solve_discrete_lyapunov(a, a, "odd"), ValueError, "method='odd'"),
        (lambda m, a: m.companion(a[:1, 0]), ShapeError, "at least 2 elements"),
        (lambda m, a: m.leslie(a[0], a[0]), ValueError, "one less than the length of f"),
        (lambda m, a: m.khatri_rao(a, a[:, :2]), ValueError, "number of columns for both"),
        (lambda m, a: m.solve_circulant(a[0] * 0, a[0]), np.linalg.LinAlgError, "near singular"),
        (lambda m, a: m.convolution_matrix(a[0], 0), ValueError, "positive"),
        (lambda m, a: m.lu_solve(m.lu_factor(a), a, trans=5), ValueError, "trans=5"),
        (lambda m, a: m.eigh(a, subset_by_index=(0, 9)), ValueError, "from 0 to 9"),
        (lambda m, a: m.eigvalsh(a, subset_by_index=(2, 1)), ValueError, "from 2 to 1"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ft.vjp(lambda a: call(ft.scipy.linalg, a), A)


@pytest.mark.usefixtures("names_as_they_are")
def test_plain_scipy_on_traced_arrays_names_the_replacement() -> None:
    with pytest.raises(ConcretizationError, match=r"functrans\.scipy\.linalg\.expm"):
        ft.grad(lambda a: np.sum(scipy.linalg.expm(a)))(A)


def test_exponential_has_third_derivatives() -> None:
    expm = ft.scipy.linalg.expm

    def f(t: Any) -> Any:
        return np.sum(expm(t * B))

    third = ft.grad(ft.grad(ft.grad(f)))(0.3)
    assert third == pytest.approx(np.sum(B @ B @ B @ scipy.linalg.expm(0.3 * B)), rel=1e-12)


@pytest.mark.parametrize("name", ["orth", "null_space"])
def test_bases_of_stacks(name: str) -> None:
    function = getattr(ft.scipy.linalg, name)
    rng = np.random.default_rng(0)
    stack = rng.standard_normal((2, 4, 2)) @ rng.standard_normal((2, 2, 5))  # rank 2
    expected = getattr(scipy.linalg, name)(stack)
    found, _ = ft.jvp(function, (stack,), (stack,))
    assert found.shape == expected.shape
    projections = (x @ np.swapaxes(x, -1, -2) for x in (found, expected))
    np.testing.assert_allclose(*projections, atol=1e-12)
    stack[0] = np.outer(np.ones(4), np.ones(5))
    with pytest.raises(ShapeError, match=r"have ranks \[1, 2\]"):
        ft.jvp(function, (stack,), (stack,))


def test_hermitian_diagonals_are_read_as_real() -> None:
    a = np.array([[4.0, 1.0 + 1j], [1.0 - 1j, 3.0]])
    noisy = a + 0.5j * np.eye(2)
    b = np.array([1.0, 2.0 - 1j])
    for kind in ("her", "pos"):
        found = ft.jit(lambda a, b: ft.scipy.linalg.solve(a, b, assume_a=kind))(noisy, b)  # noqa: B023
        np.testing.assert_allclose(found, np.linalg.solve(a, b))


MATRICES = {
    "two equal values": np.diag([1.0, 1.0, 2.0]),
    "identity": E,
    "zero": np.zeros((3, 3)),
    "general": A,
    "symmetric": P,
    "rotation": np.array([[0.0, -2.0, 0], [2.0, 0, 0], [0, 0, 1.0]]),
    "without a basis of eigenvectors": np.diag([1.0, 1.0], 1) + E,
}


@pytest.mark.parametrize("name", MATRICES)
def test_derivatives_of_matrix_functions_by_numbers_are_exact(name: str) -> None:
    """Those of ``funm`` with ``exp`` are those of ``expm``, which knows no eigenvalues."""
    matrix = MATRICES[name]

    def by_numbers(a: Any) -> Any:
        return np.sum(np.real(ft.scipy.linalg.funm(a, np.exp)) * A)

    def exact(a: Any) -> Any:
        return np.sum(ft.scipy.linalg.expm(a) * A)

    scale = np.abs(ft.grad(exact)(matrix)).max()
    for transform in (ft.grad, ft.jacfwd, ft.hessian):
        expected = transform(exact)(matrix)
        np.testing.assert_allclose(transform(by_numbers)(matrix), expected, atol=1e-10 * scale)
    np.testing.assert_allclose(
        ft.jit(ft.grad(by_numbers))(matrix), ft.grad(exact)(matrix), atol=1e-10 * scale
    )
    third = ft.nth_derivative(lambda t: exact(matrix + t * B), 3)(0.0)
    found = ft.jacfwd(ft.jacfwd(ft.jacfwd(lambda t: by_numbers(matrix + t * B))))(0.0)
    assert found == pytest.approx(third, rel=1e-7)


def test_functions_by_numbers_of_larger_matrices() -> None:
    """With clusters of eigenvalues that are apart in Schur's form."""
    values = np.array([1.0, 3.0, 1.0, -2.0, 3.0 + 1e-7, 1.0 - 1e-9, 0.0, 0.0])
    basis = np.random.default_rng(5).standard_normal((8, 8)) + 3 * np.eye(8)
    a = basis @ np.diag(values) @ np.linalg.inv(basis)
    weights = basis[::-1]
    found = ft.grad(lambda a: np.sum(np.real(ft.scipy.linalg.funm(a, np.cos)) * weights))(a)
    expected = ft.grad(lambda a: np.sum(ft.scipy.linalg.cosm(a) * weights))(a)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_functions_by_numbers_may_refer_to_traced_values() -> None:
    def function(s: Any, a: Any) -> Any:
        return np.sum(np.real(ft.scipy.linalg.funm(a, lambda z: np.exp(s * z))))

    found = ft.grad(function, (0, 1))(0.7, A)
    expected = ft.grad(lambda s, a: np.sum(ft.scipy.linalg.expm(s * a)), (0, 1))(0.7, A)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


# One matrix with two negative eigenvalues, one with a negative and two complex ones, one without.
ROOTS = {
    "negative": np.array([[-2.0, 0.3], [0.3, -1.0]]),
    "mixed": np.array([[1.0, 2.0, 3.0], [-2.0, 1.0, 4.0], [0.5, 0.1, -3.0]]),
    "positive": A,
    "complex": C,
}
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(ft.scipy.linalg, name) for name in ("expm", "sqrtm", "logm")},
    "power": lambda a: ft.scipy.linalg.fractional_matrix_power(a, 0.3),
    "funm of sqrt": lambda a: ft.scipy.linalg.funm(a, np.sqrt),
    "funm of log": lambda a: ft.scipy.linalg.funm(a, np.log),
}


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate:RuntimeWarning")
@pytest.mark.parametrize("matrix", ROOTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_higher_derivatives_of_matrix_functions_agree_in_all_modes(name: str, matrix: str) -> None:
    """The branch at negative eigenvalues is that of the matrix, whatever the directions are."""
    a = ROOTS[matrix]
    n = len(a)
    weights = np.cos(np.arange(n * n)).reshape(n, n)

    def fun(x: Any) -> Any:
        y = FUNCTIONS[name](a + x[0] * weights + x[1] * weights.T)
        return np.sum(np.imag(y) ** 3 * weights + np.real(y) ** 2)

    x, v, h = np.array([0.02, -0.01]), np.array([0.6, -0.8]), 1e-4
    forward, reverse = ft.jacfwd, ft.jacrev
    gradient = ft.grad(fun)(x)
    assert v @ gradient == pytest.approx((fun(x + h * v) - fun(x - h * v)) / (2 * h), rel=1e-5)
    expected = (ft.grad(fun)(x + h * v) - ft.grad(fun)(x - h * v)) / (2 * h)
    scale = np.abs(expected).max()
    first = forward(forward(fun))(x)
    np.testing.assert_allclose(first @ v, expected, atol=1e-5 * scale)
    for outer, inner in ((forward, reverse), (reverse, forward), (reverse, reverse)):
        np.testing.assert_allclose(outer(inner(fun))(x), first, atol=1e-9 * scale)
    third = forward(forward(forward(fun)))(x)
    found = reverse(forward(ft.grad(fun)))(x)
    np.testing.assert_allclose(found, third, atol=1e-8 * np.abs(third).max())


@pytest.mark.filterwarnings("ignore:Matrix is singular")
def test_the_derivative_of_the_root_of_a_singular_matrix_is_no_number() -> None:
    found = ft.grad(lambda a: np.sum(ft.scipy.linalg.sqrtm(a)))(np.diag([1.0, 0.0]))
    assert np.isnan(found).all()


@pytest.mark.parametrize("name", ["sqrtm", "logm", "power"])
def test_real_results_of_matrix_functions_can_be_asked_for(name: str) -> None:
    def function(a: Any) -> Any:
        if name == "power":
            return ft.scipy.linalg.fractional_matrix_power(a, 0.3, real=True)
        return getattr(ft.scipy.linalg, name)(a, real=True)

    def total(a: Any) -> Any:
        return np.sum(function(a) ** 2)

    for transform in (lambda f: f, ft.jit, lambda f: lambda a: ft.vmap(f)(a[None])[0]):
        assert transform(function)(P).dtype == np.float64
        with pytest.raises(np.linalg.LinAlgError, match="no real result"):
            transform(function)(-P)
        for derivative in (ft.grad(total), lambda a: ft.jvp(function, (a,), (a,))[1]):
            with pytest.raises(np.linalg.LinAlgError, match="no real result"):  # value unused
                transform(derivative)(-P)
    np.testing.assert_allclose(ft.jit(ft.hessian(total))(P), ft.hessian(total)(P), rtol=1e-9)
    with pytest.raises(NonDifferentiableError, match="real=True"):
        ft.jit(ft.grad(lambda a: np.sum(ft.scipy.linalg.sqrtm(a))))(P)


def _generalized(m: Any, a: Any) -> Any:
    return m.eigh(a, np.eye(3) * 2 + 0.1 * a, eigvals_only=True)


READERS: dict[str, Any] = {  # whether the lower triangle is read, and the function
    "numpy cholesky": (True, np.linalg.cholesky),
    "numpy cholesky upper": (False, lambda a: np.linalg.cholesky(a, upper=True)),
    "numpy eigvalsh": (True, np.linalg.eigvalsh),
    "numpy eigvalsh upper": (False, lambda a: np.linalg.eigvalsh(a, "U")),
    "numpy eigh": (True, lambda a: abs(np.linalg.eigh(a)[1])),
    "numpy eigh upper": (False, lambda a: abs(np.linalg.eigh(a, "U")[1])),
    "numpy pinv": (True, lambda a: np.linalg.pinv(a, hermitian=True)),
    "numpy svd": (True, lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True)),
    "cholesky": (False, lambda a: ft.scipy.linalg.cholesky(a)),
    "cholesky lower": (True, lambda a: ft.scipy.linalg.cholesky(a, lower=True)),
    "cho_solve": (False, lambda a: ft.scipy.linalg.cho_solve(ft.scipy.linalg.cho_factor(a), V)),
    "eigh": (True, lambda a: abs(ft.scipy.linalg.eigh(a)[1])),
    "eigvalsh upper": (False, lambda a: ft.scipy.linalg.eigvalsh(a, lower=False)),
    "eigh of pairs": (True, lambda a: _generalized(ft.scipy.linalg, a)),
    "pinvh": (True, lambda a: ft.scipy.linalg.pinvh(a)),
    "pinvh upper": (False, lambda a: ft.scipy.linalg.pinvh(a, lower=False)),
    "solve pos": (False, lambda a: ft.scipy.linalg.solve(a, V, assume_a="pos")),
    "solve her": (True, lambda a: ft.scipy.linalg.solve(a, V, assume_a="her", lower=True)),
}


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", READERS)
def test_functions_that_read_one_triangle_differentiate_what_they_compute(
    name: str, kind: str
) -> None:
    """At a matrix that is not Hermitian, along any direction; the other triangle has no part."""
    is_lower, function = READERS[name]
    a, direction = A + 2 * E, B
    if kind == "complex":
        a, direction = a + 1j * B.T, B + 1j * A
    step = 1e-6 * direction
    _, found = ft.jvp(function, (a,), (direction,))
    expected = (function(a + step) - function(a - step)) / 2e-6
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(
        ft.jit(lambda a, d: ft.jvp(function, (a,), (d,))[1])(a, direction), found, atol=1e-10
    )
    weights = np.cos(np.arange(found.size)).reshape(found.shape).astype(found.dtype)
    (back,) = ft.vjp(function, a)[1](weights)
    assert np.sum(back * direction).real == pytest.approx(np.sum(weights * found).real, rel=1e-9)
    is_unread = np.triu(np.ones((3, 3), bool), 1) if is_lower else np.tri(3, k=-1, dtype=bool)
    assert (back[is_unread] == 0).all()
    _, same = ft.jvp(function, (a,), (np.where(is_unread, np.nan, direction),))
    np.testing.assert_array_equal(same, found)


STRUCTURED: dict[str, Any] = {
    "companion": lambda m, v: m.companion(v),
    "fiedler": lambda m, v: m.fiedler(v),
    "leslie": lambda m, v: m.leslie(v, v[..., 1:]),
    "toeplitz": lambda m, v: m.toeplitz(v, v[..., :2]),
    "circulant": lambda m, v: m.circulant(v),
    "convolution_matrix": lambda m, v: m.convolution_matrix(v, 3),
    "hessenberg": lambda m, v: m.hessenberg(v[:, None] * v[0] + E[:3, :3], calc_q=True),
    "hessenberg alone": lambda m, v: m.hessenberg(v[:, None] * v[0] + E[:3, :3]),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_stacks_are_taken_alike_plain_and_traced(name: str) -> None:
    function, stack = STRUCTURED[name], R.standard_normal((2, 3))
    plain = function(scipy.linalg, stack)
    traced = ft.jit(lambda v: function(ft.scipy.linalg, v))(stack)
    if isinstance(plain, list):
        plain = tuple(plain)
    assert type(plain) is type(traced)
    for one, other in zip(
        *((x if isinstance(x, tuple) else (x,)) for x in (plain, traced)), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "assume_a", ["tridiagonal", "diagonal", "upper triangular", "lower triangular", "sym", "pos"]
)
def test_solve_reads_of_a_structure_what_scipy_reads(assume_a, transposed):
    """Traced too, whatever stands in the rest of the matrix, which has no derivative."""
    a = np.array([[4.0, 1.0, 0.3], [2.0, 5.0, 1.0], [0.7, 0.5, 6.0]])
    b = np.array([1.0, 2.0, 3.0])

    def solved(a):
        return ft.scipy.linalg.solve(a, b, assume_a=assume_a, transposed=transposed)

    expected = scipy.linalg.solve(a, b, assume_a=assume_a, transposed=transposed)
    np.testing.assert_allclose(ft.jit(solved)(a), expected, rtol=1e-13)
    jacobian = ft.jacobian(solved)(a)
    for place in np.ndindex(3, 3):
        moved = a.copy()
        moved[place] += 1e-6
        step = scipy.linalg.solve(moved, b, assume_a=assume_a, transposed=transposed) - expected
        np.testing.assert_allclose(jacobian[(slice(None), *place)], step / 1e-6, atol=1e-5)
