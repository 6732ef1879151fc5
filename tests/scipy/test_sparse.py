"""Sparse matrices in traced code: products, matrices with traced entries, systems of equations."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg as scipy_linalg

import functrans as ft
from functrans import autograd
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.primitives.sparse.products import csr_matmul
from functrans.primitives.sparse.solve import Factor, Recent
from functrans.scipy import sparse
from functrans.scipy.sparse import linalg
from functrans.testing import check_grads

R = np.random.default_rng(5)
DENSE = R.standard_normal((4, 5)) * (R.random((4, 5)) < 0.5)
DENSE[1] = 0.0
SQUARE = R.standard_normal((5, 5)) * (R.random((5, 5)) < 0.5) + 4 * np.eye(5)
POSITIVE = SQUARE @ SQUARE.T
V4, V5 = R.standard_normal(4), R.standard_normal(5)
M45, M53 = R.standard_normal((4, 5)), R.standard_normal((5, 3))
M34 = R.standard_normal((3, 4))
ENTRIES = scipy.sparse.csr_array(SQUARE).data

FORMATS = ("csr", "csc", "coo", "dia", "bsr", "lil", "dok")
PRODUCTS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "S @ x": (lambda S, x: S @ x, V5),
    "x @ S": (lambda S, x: x @ S, V4),
    "S.T @ x": (lambda S, x: S.T @ x, V4),
    "S.dot(x)": (lambda S, x: S.dot(x), V5),
    "S @ X": (lambda S, x: S @ x, M53),
    "X @ S": (lambda S, x: x @ S, M34),
    "matmul": (sparse.matmul, M53),
}
OF_MATRICES: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "S * x": (lambda S, x: S * x, V5),
    "x * S": (lambda S, x: x * S, V4),
}
ways = pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])


def given(layout: str, kind: str, values: Any = DENSE) -> Any:
    return getattr(scipy.sparse, f"{layout}_{kind}")(values)


# products with constants ------------------------------------------------------------------------


def cases() -> Iterator[Any]:
    """All ways to write a product; compiled for the formats that are stored differently."""
    for layout in FORMATS:
        for kind, products in (("array", PRODUCTS), ("matrix", {**PRODUCTS, **OF_MATRICES})):
            for label, (of, x) in products.items():
                yield pytest.param(layout, kind, of, x, False, id=f"{layout}_{kind} {label}")
                if layout in ("csr", "csc") and kind == "array":
                    yield pytest.param(layout, kind, of, x, True, id=f"jit {layout} {label}")


@pytest.mark.parametrize(("layout", "kind", "of", "x", "is_compiled"), list(cases()))
def test_products_with_constants(
    layout: str, kind: str, of: Callable[..., Any], x: np.ndarray, is_compiled: bool
) -> None:
    way = ft.jit if is_compiled else lambda f: f
    S = given(layout, kind)
    f = way(lambda x: of(S, x))
    expected = np.asarray(of(S, x))
    np.testing.assert_allclose(f(x), expected, rtol=1e-13)
    jacobian = ft.jacrev(f)(x)
    columns = [np.asarray(of(S, e.reshape(x.shape))) for e in np.eye(x.size)]
    exact = np.stack(columns, -1).reshape(expected.shape + x.shape)
    np.testing.assert_allclose(jacobian, exact, rtol=1e-13)
    np.testing.assert_allclose(ft.jacfwd(f)(x), exact, rtol=1e-13)
    batch = way(ft.vmap(lambda x: of(S, x), in_axes=1, out_axes=1))(np.stack([x, 2 * x], 1))
    np.testing.assert_allclose(batch, np.stack([expected, 2 * expected], 1), rtol=1e-13)


@ways
def test_derivatives_of_a_quadratic_form(way: Any) -> None:
    S = scipy.sparse.csr_array(SQUARE)
    f = way(lambda x: 0.5 * x @ (S @ x))
    np.testing.assert_allclose(ft.grad(f)(V5), 0.5 * (SQUARE + SQUARE.T) @ V5, rtol=1e-12)
    np.testing.assert_allclose(ft.hessian(f)(V5), 0.5 * (SQUARE + SQUARE.T), rtol=1e-12)
    check_grads(lambda x: np.sum(np.sin(S @ x)), (V5,), order=3)


@ways
@pytest.mark.parametrize(
    ("own", "other", "wanted"),
    [
        ("f4", "f4", "f4"),
        ("f4", "f8", "f8"),
        ("f8", "f4", "f8"),
        ("i8", "f8", "f8"),
        ("f8", "c16", "c16"),
        ("c8", "f4", "c8"),
        ("?", "?", "?"),
        ("i4", "i4", "i4"),
    ],
)
def test_dtypes_of_products(own: str, other: str, wanted: str, way: Any) -> None:
    values = DENSE * (1 + 2j) if own[0] == "c" else DENSE
    S = scipy.sparse.csr_array((3 * values).astype(own))
    x = (3 * V5).astype(other)
    found = way(lambda x: S @ x)(ft.numpy.array(x))
    via = ft.vmap(lambda x: S @ x)(x[None])[0]
    for result in (found, via):
        assert result.dtype == np.dtype(wanted) == (S @ x).dtype
        np.testing.assert_allclose(result, S @ x, rtol=1e-6)


def test_complex_products_have_derivatives() -> None:
    S = scipy.sparse.csr_array(DENSE * (1 + 0.5j))
    check_grads(lambda x: S @ x, (V5 + 1j * V5[::-1],), order=2)
    check_grads(ft.jit(lambda x: x @ S), (V4 - 1j,), order=2)


@ways
def test_odd_matrices(way: Any) -> None:
    duplicates = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 2))
    np.testing.assert_allclose(way(ft.vmap(lambda x: duplicates @ x))(np.eye(2))[1], [3.0, 0, 0])
    unordered = scipy.sparse.csr_array(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3]), shape=(1, 2))
    np.testing.assert_allclose(way(ft.jacobian(lambda x: unordered @ x))(np.ones(2)), [[2, 5]])
    empty = scipy.sparse.csr_array((3, 2))
    np.testing.assert_array_equal(
        way(ft.jacobian(lambda x: empty @ x))(np.ones(2)), np.zeros((3, 2))
    )
    nothing = scipy.sparse.csr_array((0, 2))
    assert way(ft.jacobian(lambda x: nothing @ x))(np.ones(2)).shape == (0, 2)
    assert way(ft.jacobian(lambda x: x @ nothing))(np.ones(0)).shape == (2, 0)
    spare = scipy.sparse.csr_array(DENSE)
    spare.data, spare.indices = np.r_[spare.data, 7.0], np.r_[spare.indices, 99]  # room behind
    np.testing.assert_allclose(way(ft.jacobian(lambda x: spare @ x))(V5), DENSE)


def test_stacks_of_matrices_are_multiplied_as_numpy_does() -> None:
    S = scipy.sparse.csr_array(DENSE)
    x = R.standard_normal((2, 3, 5, 2))
    np.testing.assert_allclose(sparse.matmul(S, x), DENSE @ x, rtol=1e-13)
    y = R.standard_normal((2, 3, 2, 4))
    np.testing.assert_allclose(sparse.matmul(y, S), y @ DENSE, rtol=1e-13)


def test_a_jitted_product_sees_writes_to_the_entries() -> None:
    S = scipy.sparse.csr_array(DENSE)
    f = ft.jit(lambda x: S @ x)
    f(V5)
    S.data[:] *= 2
    np.testing.assert_allclose(f(V5), 2 * DENSE @ V5, rtol=1e-13)


def test_the_product_is_native() -> None:
    S = scipy.sparse.csr_array(DENSE)
    f = ft.jit(ft.grad(lambda x: np.sum(np.tanh(S @ x) ** 2)))
    plan = str(f.plan(V5))
    assert "csr_matmul" in plan
    assert "call NumPy" not in plan


def test_native_code_refuses_indices_outside() -> None:
    def product(indices: Any, indptr: Any) -> Any:
        return csr_matmul(np.ones(2), indices, indptr, (2, 3), np.ones((3, 1)))

    for run in (product, ft.jit(product)):
        np.testing.assert_array_equal(run(np.array([0, 2]), np.array([0, 1, 2]))[:, 0], [1, 1])
        for bad in (3, -1):
            with pytest.raises(IndexError, match="out of bounds for 3 columns"):
                run(np.array([0, bad]), np.array([0, 1, 2]))
        for pointers in ([0, 3, 2], [0, -1, 2], [1, 1, 2], [0, 1, 1]):
            with pytest.raises(ValueError, match="rise from 0 to the number of entries"):
                run(np.array([0, 1]), np.array(pointers))


def test_patterns_of_products_are_exact() -> None:
    S = scipy.sparse.csr_array(SQUARE)
    pattern = ft.sparsity_pattern(lambda x: np.sin(S @ x) + x @ S, np.ones(5)).toarray()
    np.testing.assert_array_equal(pattern, (SQUARE != 0) | (SQUARE.T != 0))
    hessian = ft.sparse_hessian(lambda x: np.sum((S @ x) ** 4))(V5)
    dense = ft.hessian(lambda x: np.sum((SQUARE @ x) ** 4))(V5)
    np.testing.assert_allclose(hessian.toarray(), dense, rtol=1e-12)


def test_tensors() -> None:
    S = scipy.sparse.csr_array(DENSE)
    for of, x, exact in (
        (lambda x: S @ x, V5, np.ones(4) @ DENSE),
        (lambda x: S.dot(x), V5, np.ones(4) @ DENSE),
        (lambda x: x @ S, V4, DENSE @ np.ones(5)),
    ):
        tensor = autograd.tensor(x.tolist(), requires_grad=True, dtype=np.float64)
        of(tensor).sum().backward()
        np.testing.assert_allclose(tensor.grad.numpy(), exact, rtol=1e-12)
    assert type(S @ autograd.tensor(V5.tolist())) is np.ndarray


ERRORS: dict[str, tuple[Callable[[Any, Any], Any], type[Exception], str]] = {
    "too short": (lambda S, x: S @ x[:3], ShapeError, r"\(4, 5\) and \(3,\)"),
    "from the left": (lambda S, x: x @ S, ShapeError, r"\(5,\) and \(4, 5\)"),
    "a number": (lambda S, x: S @ x[0], ShapeError, r"\(4, 5\) and \(\)"),
    "a sum": (lambda S, x: S + x, UnsupportedOperationError, "only products with dense arrays"),
    "a sum from the left": (lambda S, x: x + S, UnsupportedOperationError, "csr_array of shape"),
    "elementwise": (lambda S, x: S * x, UnsupportedOperationError, r"S\.toarray\(\)"),
    "scaled": (lambda S, x: S * x[0], UnsupportedOperationError, r"\(v \* S\.data, S\.indices"),
    "one axis": (
        lambda S, x: scipy.sparse.coo_array(np.ones(5)) @ x,
        ShapeError,
        "only sparse arrays with two axes",
    ),
    "SciPy's solver": (
        lambda S, x: scipy_linalg.spsolve(scipy.sparse.csc_array(np.eye(5)), x),
        Exception,
        r"functrans\.scipy\.sparse\.linalg\.spsolve",
    ),
}


@pytest.mark.usefixtures("names_as_they_are")
@pytest.mark.parametrize("label", ERRORS)
def test_errors_say_what_to_do(label: str) -> None:
    of, error, match = ERRORS[label]
    S = scipy.sparse.csr_array(DENSE)
    with ft.config(plain=False), pytest.raises(error, match=match):
        ft.jvp(lambda x: of(S, x), (V5,), (V5,))


# traced entries ---------------------------------------------------------------------------------


def traced(layout: str, data: Any) -> Any:
    S = given(layout, "array", SQUARE)
    make = {"csr": sparse.csr_array, "csc": sparse.csc_array}[layout]
    return make((data, S.indices, S.indptr), shape=S.shape)


@ways
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(
    "of",
    [
        lambda A, x: A @ x,
        lambda A, x: x @ A,
        lambda A, x: A.T @ (2 * A @ x),
        lambda A, x: (-A / 3).dot(np.stack([x, x * x], 1)),
        lambda A, x: A.toarray() * x,
        lambda A, x: linalg.spsolve(A, x),
        lambda A, x: linalg.spsolve(A.T, np.stack([x, x * x], 1)),
        lambda A, x: linalg.gmres(A, x, tol=1e-14)[0],
    ],
)
def test_entries_have_derivatives(of: Any, layout: str, way: Any) -> None:
    S = given(layout, "array", SQUARE)
    f = way(lambda data, x: of(traced(layout, data), x))
    expected = of(sparse.csr_array(S.tocsr()), V5)
    np.testing.assert_allclose(f(S.data, V5), expected, rtol=1e-10)
    check_grads(f, (S.data, V5), order=2)


@ways
def test_batches_of_entries(way: Any) -> None:
    S = scipy.sparse.csr_array(SQUARE)
    data = np.stack([S.data, 2 * S.data, S.data + 1])
    for of in (lambda d, x: traced("csr", d) @ x, lambda d, x: linalg.spsolve(traced("csr", d), x)):
        found = way(ft.vmap(of, in_axes=(0, None)))(data, V5)
        np.testing.assert_allclose(found, [of(d, V5) for d in data], rtol=1e-12)
        slopes = way(ft.vmap(ft.grad(lambda d, x, of=of: of(d, x).sum()), in_axes=(0, None)))
        expected = [ft.grad(lambda d, of=of: of(d, V5).sum())(d) for d in data]
        np.testing.assert_allclose(slopes(data, V5), expected, rtol=1e-12)


def test_arrays_are_arguments_of_transformed_functions() -> None:
    A = sparse.csr_array(scipy.sparse.csr_array(SQUARE))
    product = ft.jit(lambda A, x: A @ x)
    np.testing.assert_allclose(product(A, V5), SQUARE @ V5, rtol=1e-13)
    np.testing.assert_allclose(product(A.T, V5), SQUARE.T @ V5, rtol=1e-13)
    np.testing.assert_allclose(ft.jit(lambda A: 2 * A)(A).toarray(), 2 * SQUARE, rtol=1e-13)
    np.testing.assert_allclose(ft.jit(lambda A: A.toarray())(A.T), SQUARE.T)
    slope = ft.grad(lambda A: (A @ V5) @ V5, allow_int=True)(A)
    np.testing.assert_allclose(A.with_data(slope.data).toarray(), np.outer(V5, V5) * (SQUARE != 0))
    other = sparse.csr_array(scipy.sparse.csr_array(SQUARE[::-1]))  # of as many entries
    both = ft.tree.map(lambda a, b: np.stack([a, b]), A, other)
    for way in (lambda f: f, ft.jit):
        for of, dense in ((product, np.matmul), (linalg.spsolve, np.linalg.solve)):
            found = way(ft.vmap(of, in_axes=(0, None)))(both, V5)
            np.testing.assert_allclose(found[0], dense(SQUARE, V5), rtol=1e-11)
            np.testing.assert_allclose(found[1], dense(SQUARE[::-1], V5), rtol=1e-11)


def test_arrays_with_traced_entries_say_what_they_are() -> None:
    A = sparse.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3))
    assert repr(A) == "csr_array(float64, shape=(2, 3), nnz=2)"
    assert repr(A.T) == "csc_array(float64, shape=(3, 2), nnz=2)"
    np.testing.assert_array_equal(np.ones(2) @ A, [1, 1, 0])
    np.testing.assert_array_equal(A.conj().toarray(), [[1, 0, 0], [0, 1, 0]])
    assert sparse.csr_array(scipy.sparse.csr_array(DENSE)).shape == (4, 5)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: sparse.csr_array((np.ones(2), [0, 1], [0, 2])), TypeError, "shape is missing"),
        (lambda: sparse.csr_array(np.eye(2), (2, 2)), TypeError, "the triple"),
        (
            lambda: sparse.csr_array((np.ones(2), [0], [0, 2]), (1, 2)),
            ShapeError,
            r"\(2,\), \(1,\)",
        ),
        (lambda: sparse.csr_array((np.ones(1), [0], [0, 1]), (2, 2)), ShapeError, r"and \(3,\)"),
        (lambda: sparse.csr_array((np.ones(1), [0.0], [0, 1]), (1, 2)), TypeError, "integers"),
        (lambda: sparse.csr_array((np.ones(1), [2], [0, 1]), (1, 2)), IndexError, "2 columns"),
        (lambda: sparse.csr_array((np.ones(1), [0], [0, 2]), (1, 2)), ValueError, "rise from 0"),
        (
            lambda: sparse.csr_array(scipy.sparse.csc_array(DENSE)),
            UnsupportedOperationError,
            r"SciPy's \.tocsr\(\)",
        ),
        (lambda: traced("csr", ENTRIES) * V5, UnsupportedOperationError, "with_data"),
        (
            lambda: traced("csr", ENTRIES) @ scipy.sparse.csr_array(SQUARE),
            UnsupportedOperationError,
            r"a @ \(b @ x\)",
        ),
        (lambda: traced("csr", ENTRIES).with_data(np.ones(2)), ShapeError, r"shape \(2,\)"),
    ],
)
def test_wrong_arrays_are_refused(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()


# systems ----------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("b", [V5, M53], ids=["vector", "columns"])
def test_systems(layout: str, b: np.ndarray, way: Any) -> None:
    S = given(layout, "array", SQUARE)
    lu = linalg.splu(S)
    for solve in (lambda b: linalg.spsolve(S, b), lu.solve, linalg.factorized(S)):
        f = way(solve)
        np.testing.assert_allclose(f(b), np.linalg.solve(SQUARE, b), rtol=1e-11)
        check_grads(f, (b,), order=2)
        batch = way(ft.vmap(solve, in_axes=-1, out_axes=-1))(np.stack([b, 2 * b], -1))
        np.testing.assert_allclose(batch, np.stack([f(b), 2 * f(b)], -1), rtol=1e-11)
    turned = {"N": SQUARE, "T": SQUARE.T, "H": SQUARE.T}
    for trans, matrix in turned.items():
        complex_b = b * (1 - 2j)
        expected = np.linalg.solve(matrix, complex_b)
        found = way(lambda b, trans=trans: lu.solve(b, trans))(complex_b)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert repr(lu) == f"SparseLU(float64, shape=(5, 5), nnz={lu.nnz})"


def test_complex_systems() -> None:
    A = SQUARE * (1 + 0.3j)
    S = scipy.sparse.csr_array(A)
    lu = linalg.splu(S)
    np.testing.assert_allclose(lu.solve(V5), np.linalg.solve(A, V5), rtol=1e-11)
    np.testing.assert_allclose(lu.solve(V5, "H"), np.linalg.solve(A.conj().T, V5), rtol=1e-11)
    check_grads(lambda b: linalg.spsolve(S, b), (V5 + 1j,), order=2)


def test_single_precision_stays() -> None:
    S = scipy.sparse.csr_array(SQUARE.astype(np.float32))
    b = V5.astype(np.float32)
    for solve in (lambda b: linalg.spsolve(S, b), linalg.splu(S).solve):
        value, slope = ft.value_and_grad(lambda b, solve=solve: solve(b).sum())(b)
        assert value.dtype == slope.dtype == np.float32


def test_factors_are_found_again() -> None:
    recent = Recent(2, 1 << 20)
    S = scipy.sparse.csr_array(SQUARE)
    arrays = (S.data, S.indices, S.indptr)
    first = recent.of(*arrays)
    assert recent.of(*(x.copy() for x in arrays)) is first
    S.data[0] += 1.0
    changed = recent.of(*arrays)
    assert changed is not first
    assert recent.of(*first.arrays) is first
    recent.of(2 * S.data, S.indices, S.indptr)
    assert recent.of(*first.arrays) is first
    assert recent.of(*changed.arrays) is not changed, "more were kept than allowed"


def test_forward_and_backward_pass_factorize_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    start = Factor.__init__

    def counted(self: Factor, *args: Any) -> None:
        made.append(args)
        start(self, *args)

    monkeypatch.setattr(Factor, "__init__", counted)
    S = scipy.sparse.csr_array(SQUARE + 0.125)
    f = ft.jit(ft.grad(lambda d: np.sum(linalg.spsolve(S_of(S, d), V5) ** 2)))
    f(S.data)
    assert len(made) == 1
    lu = linalg.splu(S)
    ft.hessian(ft.jit(lambda b: np.sum(lu.solve(b) ** 2)))(V5)
    assert len(made) == 2


def S_of(S: Any, data: Any) -> Any:  # noqa: N802  # a matrix
    return sparse.csr_array((data, S.indices, S.indptr), shape=S.shape)


@ways
def test_singular_matrices(way: Any) -> None:
    S = scipy.sparse.csr_array(np.array([[1.0, 2.0], [2.0, 4.0]]))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        way(ft.grad(lambda b: linalg.spsolve(S, b).sum()))(np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        linalg.splu(S)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: linalg.spsolve(scipy.sparse.csr_array(DENSE), x), ShapeError, r"\(4, 5\)"),
        (lambda x: linalg.spsolve(np.eye(5), x), TypeError, r"np\.linalg\.solve"),
        (
            lambda x: linalg.spsolve(scipy.sparse.eye_array(3), x),
            ShapeError,
            r"\(3, 3\) does not fit a right-hand side of shape \(5,\)",
        ),
        (
            lambda x: linalg.spsolve(scipy.sparse.eye_array(5), scipy.sparse.eye_array(5)),
            UnsupportedOperationError,
            r"b\.toarray\(\)",
        ),
        (
            lambda x: linalg.splu(S_of(scipy.sparse.csr_array(np.eye(5)), x)),
            UnsupportedOperationError,
            r"linalg\.spsolve",
        ),
        (
            lambda x: linalg.splu(scipy.sparse.eye_array(5)).solve(x, "C"),
            ValueError,
            "expected 'N', 'T' or 'H'",
        ),
    ],
)
def test_wrong_systems_are_refused(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ft.jvp(call, (V5,), (V5,))


@ways
@pytest.mark.parametrize("solver", [linalg.cg, linalg.bicgstab, linalg.gmres])
@pytest.mark.parametrize("layout", ["csr", "csc", "dia"])
def test_iterative_solvers_take_sparse_matrices(layout: str, solver: Any, way: Any) -> None:
    A = given(layout, "array", POSITIVE)
    M = given(layout, "array", np.diag(1 / np.diag(POSITIVE)))
    f = way(lambda b: solver(A, b, tol=1e-13, M=M)[0])
    np.testing.assert_allclose(f(V5), np.linalg.solve(POSITIVE, V5), rtol=1e-9)
    slope = ft.grad(lambda b: f(b).sum())(V5)
    np.testing.assert_allclose(slope, np.linalg.solve(POSITIVE, np.ones(5)), rtol=1e-9)
