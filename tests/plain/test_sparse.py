"""Sparse matrices built from traced data in plain code: SciPy's names, formats and results."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from scipy.sparse import coo_matrix, csr_array, csr_matrix, lil_matrix
from scipy.sparse.linalg import spsolve

import functrans as ft
from cases import each
from functrans.errors import UnsupportedOperationError
from helpers import fourth_order_differences

pytestmark = [
    pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning"),
]
FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
KINDS = ("matrix", "array")
ROWS = np.array([0, 0, 1, 2, 2, 3, 3, 1, 0])
COLS = np.array([0, 1, 1, 2, 0, 3, 2, 1, 3])
WEIGHTS = np.array([1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 0.5, 7.0, 1.5])
POINT = np.array([0.7, 1.3])
OUTSIDE = sp.csr_matrix(np.array([[2.0, 0, 1, 0], [0, 3, 0, 1], [1, 0, 4, 0], [0, 0, 0, 5.0]]))
VECTOR = np.array([1.0, -2.0, 0.5, 3.0])


def dense(result: Any) -> Any:
    """A result as an array."""
    return result.toarray() if sp.issparse(result) else np.asarray(result)


def values(x: Any) -> Any:
    """Entries that depend on both unknowns."""
    return WEIGHTS * x[0] + np.sin(WEIGHTS * x[1])


def check(f: Callable[[Any], Any], x: Any = POINT, *, jit: bool = False) -> None:
    """Value and derivatives of a function that gives an array."""
    expected, slope = np.asarray(f(x)), fourth_order_differences(f, x)
    value, tangent = ft.jvp(f, (x,), (np.array([0.3, -1.1]),))
    np.testing.assert_allclose(value, expected, 1e-12, 1e-13)
    assert np.shape(value) == expected.shape
    np.testing.assert_allclose(tangent, slope @ np.array([0.3, -1.1]), 1e-7, 1e-8)
    np.testing.assert_allclose(ft.jacobian(f)(x), slope, 1e-7, 1e-8)
    if jit:
        with ft.config(native=False):
            np.testing.assert_allclose(ft.jit(f)(x), expected, 1e-12, 1e-13)
            np.testing.assert_allclose(ft.jit(ft.jacobian(f))(x), slope, 1e-7, 1e-8)


def _triplets(make: Any, x: Any) -> Any:
    if make.__name__[:3] in ("csr", "csc", "coo", "bsr"):
        return make((values(x), (ROWS, COLS)), shape=(4, 4))
    return make(coo_matrix((values(x), (ROWS, COLS)), shape=(4, 4)))


def _lists(make: Any, x: Any) -> Any:
    v = values(x)
    return make(sp.coo_matrix((list(v), (list(ROWS), list(COLS))), shape=(4, 4)))


def _from_dense(make: Any, x: Any) -> Any:
    out = np.zeros((4, 4))
    for value, i, j in zip(values(x), ROWS, COLS):  # noqa: B905  # as users write it
        out[i, j] += value
    return make(out)


def _written(make: Any, x: Any) -> Any:
    out = lil_matrix((4, 4))
    for value, i, j in zip(values(x), ROWS, COLS):  # noqa: B905
        out[i, j] += value
    return make(out)


CONSTRUCTIONS = (_triplets, _lists, _from_dense, _written)

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda a, x: a,
    "product": lambda a, x: a @ VECTOR,
    "product_of_traced": lambda a, x: a @ (VECTOR * x[1]),
    "dot": lambda a, x: a.dot(VECTOR),
    "matrix_product": lambda a, x: a @ np.outer(VECTOR, [1.0, 2.0]),
    "left_product": lambda a, x: VECTOR @ a,
    "star": lambda a, x: a * OUTSIDE,
    "star_number": lambda a, x: 2.0 * a * x[0],
    "quotient": lambda a, x: a / x[1],
    "negative": lambda a, x: -a,
    "absolute": lambda a, x: abs(a),
    "sum_with_constant": lambda a, x: a + OUTSIDE,
    "constant_with": lambda a, x: OUTSIDE + a,
    "difference": lambda a, x: a - OUTSIDE * x[0],
    "constant_minus": lambda a, x: OUTSIDE - a,
    "with_own_transpose": lambda a, x: a + a.T,
    "sparse_product": lambda a, x: a @ a,
    "constant_product": lambda a, x: OUTSIDE @ a,
    "product_constant": lambda a, x: a @ OUTSIDE,
    "congruence": lambda a, x: OUTSIDE.T @ a @ OUTSIDE,
    "multiply_vector": lambda a, x: a.multiply(VECTOR),
    "multiply_column": lambda a, x: a.multiply(VECTOR[:, None] * x[0]),
    "multiply_sparse": lambda a, x: a.multiply(OUTSIDE),
    "multiply_number": lambda a, x: a.multiply(x[0]),
    "power": lambda a, x: a.power(2),
    "square": lambda a, x: a**2,
    "plus_dense": lambda a, x: a + np.ones((4, 4)),
    "transpose": lambda a, x: a.T,
    "diagonal": lambda a, x: a.diagonal(),
    "upper_diagonal": lambda a, x: a.diagonal(1),
    "trace": lambda a, x: a.trace(),
    "sum": lambda a, x: a.sum(),
    "sum_of_columns": lambda a, x: a.sum(axis=0),
    "sum_of_rows": lambda a, x: np.asarray(a.sum(axis=1)).ravel(),
    "mean": lambda a, x: a.mean(axis=1),
    "toarray": lambda a, x: a.toarray(),
    "todense": lambda a, x: a.todense(),
    "todense_times": lambda a, x: a.todense() * np.diag(VECTOR),
    "csr": lambda a, x: a.tocsr(),
    "csc": lambda a, x: a.tocsc(),
    "coo": lambda a, x: a.tocoo(),
    "dia": lambda a, x: a.todia(),
    "lil": lambda a, x: a.tolil(),
    "part": lambda a, x: a.tocsr()[np.array([0, 2, 3])][:, np.array([2, 0])].tocsc(),
    "slice": lambda a, x: a.tocsc()[1:, ::2],
    "entry": lambda a, x: a.tocsr()[2, 2],
    "absent_entry": lambda a, x: a.tocsr()[3, 0] + x[0],
    "by_mask": lambda a, x: a.tocsr()[np.array([True, False, True, False])],
    "row": lambda a, x: a.tocsr()[1:2].toarray(),
    "copy": lambda a, x: a.copy(),
    "sine": lambda a, x: a.tocsr().sin(),
    "entries": lambda a, x: a.tocsr().data,
    "stacked": lambda a, x: sp.hstack([a, OUTSIDE]),
    "stacked_below": lambda a, x: sp.vstack([a, OUTSIDE, a], format="csr"),
    "blocks": lambda a, x: sp.bmat([[a, None], [OUTSIDE, a.T]]),
    "block_diagonal": lambda a, x: sp.block_diag([a, OUTSIDE, a]),
    "kron": lambda a, x: sp.kron(np.array([[1.0, 2.0], [0.0, 3.0]]), a),
    "kron_right": lambda a, x: sp.kron(a, sp.identity(2)),
    "kronsum": lambda a, x: sp.kronsum(a, sp.csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0]]))),
    "lower": lambda a, x: sp.tril(a),
    "upper": lambda a, x: sp.triu(a, k=1),
    "shifted": lambda a, x: sp.eye(4) * 3.0 + x[0] * a,
    "solve": lambda a, x: spsolve((a + 9 * sp.eye(4)).tocsc(), VECTOR),
    "solve_matrix": lambda a, x: spsolve((a + 9 * sp.eye(4)).tocsc(), np.ones((4, 2)) * x[0]),
    "factors": lambda a, x: spl.splu((a + 9 * sp.eye(4)).tocsc()).solve(VECTOR),
    "factors_transposed": lambda a, x: spl.splu((a + 9 * sp.eye(4)).tocsc()).solve(VECTOR, "T"),
    "factorized": lambda a, x: spl.factorized((a + 9 * sp.eye(4)).tocsc())(VECTOR * x[1]),
    "inverse": lambda a, x: spl.inv((a + 9 * sp.eye(4)).tocsc()),
    "norm": lambda a, x: spl.norm(a),
    "norm_of_rows": lambda a, x: spl.norm(a, np.inf),
}

MATRICES = [(kind, layout) for kind in KINDS for layout in FORMATS]


def _is_offered(operation: str, kind: str, layout: str) -> bool:
    """Whether SciPy has it, too."""
    make = getattr(sp, f"{layout}_{kind}")
    try:
        OPERATIONS[operation](_triplets(make, POINT), POINT)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return False
    return True


@each("operation", OPERATIONS, by="operation", one_of=3)
@each(("kind", "layout"), MATRICES)
def test_an_operation_is_that_of_scipy(kind: str, layout: str, operation: str) -> None:
    if not _is_offered(operation, kind, layout):
        pytest.skip("SciPy does not offer it")
    make, apply = getattr(sp, f"{layout}_{kind}"), OPERATIONS[operation]
    check(lambda x: dense(apply(_triplets(make, x), x)), jit=layout == "csr")


@each("operation", ["itself", "product", "congruence", "part", "solve"], by="operation", one_of=3)
@each("construction", CONSTRUCTIONS)
@each(("kind", "layout"), MATRICES)
def test_a_construction_is_that_of_scipy(
    kind: str, layout: str, construction: Any, operation: str
) -> None:
    make, apply = getattr(sp, f"{layout}_{kind}"), OPERATIONS[operation]
    check(lambda x: dense(apply(construction(make, x), x)), jit=layout == "csr")


@each("operation", OPERATIONS, by="operation")
@each(("kind", "layout"), MATRICES)
def test_formats_and_shapes_are_those_of_scipy(kind: str, layout: str, operation: str) -> None:
    if not _is_offered(operation, kind, layout):
        pytest.skip("SciPy does not offer it")
    make, apply = getattr(sp, f"{layout}_{kind}"), OPERATIONS[operation]
    found: list[Any] = []

    def look(x: Any) -> Any:
        result = apply(_triplets(make, x), x)
        found.append(
            (result.format, result.shape, isinstance(result, sp.sparray))
            if sp.issparse(result)
            else np.shape(result)
        )
        return x[0]

    look(POINT)
    ft.grad(look)(POINT)
    assert found[1] == found[0]


# constructors of their own ------------------------------------------------------------------------


def _compressed(x: Any) -> Any:
    indices, indptr = np.array([0, 2, 1, 1]), np.array([0, 2, 4, 4])
    return csr_matrix((x[0] * np.arange(1.0, 5.0), indices, indptr), shape=(3, 3)) * x[1]


def _compressed_columns(x: Any) -> Any:
    indices, indptr = np.array([0, 2, 1, 2]), np.array([0, 2, 3, 4])
    return sp.csc_array((x[0] ** np.arange(1.0, 5.0), indices, indptr)) @ np.array([x[1], 1.0, 2.0])


def _diags(x: Any) -> Any:
    return sp.diags([x[0] * np.ones(3), np.arange(4.0) * x[1], -np.ones(3)], [-1, 0, 1])


def _diags_of_numbers(x: Any) -> Any:
    return sp.diags([x[0], -2.0 * x[1], 1.0], [-1, 0, 1], shape=(5, 5), format="csc")


def _diags_of_lists(x: Any) -> Any:
    return sp.diags([[x[0], 2.0, x[1]], [1.0, x[0] * x[1]]], [0, -1])


def _one_diagonal(x: Any) -> Any:
    return sp.diags(np.array([1.0, 2.0]) * x) @ csr_matrix(np.array([[0.0, 1.0], [2.0, 3.0]]))


def _diags_array(x: Any) -> Any:
    return sp.diags_array([x[0] * np.ones(3), x[1] * np.ones(2)], offsets=[0, 1])


def _spdiags(x: Any) -> Any:
    return sp.spdiags(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) * x[0], [0, 1], 3, 3)


def _dia(x: Any) -> Any:
    return sp.dia_matrix((np.ones((2, 4)) * x[1], np.array([0, -1])), shape=(4, 4)).tocsr()


def _blocks_by_rows(x: Any) -> Any:
    data = np.arange(8.0).reshape(2, 2, 2) * x[0]
    return sp.bsr_matrix((data, np.array([0, 1]), np.array([0, 1, 2])), shape=(4, 4)) * x[1]


def _keys(x: Any) -> Any:
    out = sp.dok_matrix((3, 3))
    out[0, 1] = x[0]
    out[2, 2] = 4.0
    out[0, 1] += x[1] ** 2
    out[1, 0] = out[0, 1] * out[2, 2]
    return out.tocsr()


def _lists_with_blocks(x: Any) -> Any:
    out = lil_matrix((6, 6))
    block = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for e in range(5):
        dofs = np.array([e, e + 1])
        out[np.ix_(dofs, dofs)] += x[e % 2] * block
    out[0, :] = 0
    out[0, 0] = 1.0
    return spsolve(out.tocsr(), np.arange(6.0) + x[0])


def _written_rows(x: Any) -> Any:
    out = csr_matrix(OUTSIDE * x[0])
    out[1] = 0.0
    out[1, 1] = x[1]
    out[[2, 3], [0, 1]] = np.array([1.0, x[0] * x[1]])
    out.setdiag(x[1], k=1)
    return out


def _diagonal_written(x: Any) -> Any:
    out = OUTSIDE.tocsc()
    out.setdiag(np.arange(4.0) * x[0])
    out.setdiag([x[1], 2.0], -1)
    return out


def _array_of_rows(x: Any) -> Any:
    a = csr_array((values(x), (ROWS, COLS)), shape=(4, 4))
    return a[0].toarray() + a[:, 1].toarray() * a[2].sum()


def _laplacian(x: Any) -> Any:
    weights = coo_matrix((values(x) ** 2, (ROWS, COLS)), shape=(4, 4)).tocsr()
    weights = weights + weights.T
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    return sp.diags(degrees) - weights


def _heat(x: Any) -> Any:
    n, dt = 6, 0.1
    second = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(n, n), format="csc")
    step = sp.eye(n, format="csc") - dt * x[0] * second
    solve = spl.factorized(step)
    u = np.sin(np.arange(n)) * x[1]
    for _ in range(3):
        u = solve(u)
    return u


def _entries_changed(x: Any) -> Any:
    a = csr_matrix((values(x), (ROWS, COLS)), shape=(4, 4))
    a.data *= 2.0
    a.data[0] = x[1]
    a *= 3.0
    return a


def _iterative(x: Any) -> Any:
    a = sp.diags([x[0], 3.0 + x[1] ** 2, x[0]], [-1, 0, 1], shape=(5, 5), format="csr")
    u, info = spl.cg(a, np.arange(5.0), rtol=1e-13)
    v, _ = spl.gmres(a, np.ones(5) * x[1], rtol=1e-13)
    return u + v + info


def _exponential(x: Any) -> Any:
    a = sp.diags([x[0], -1.0, x[1]], [-1, 0, 1], shape=(4, 4), format="csc")
    return spl.expm_multiply(a, VECTOR) + spl.expm(a) @ VECTOR


def _frequencies(x: Any) -> Any:
    stiffness = sp.diags([-1.0, 2.0 + x[0], -1.0], [-1, 0, 1], shape=(8, 8), format="csc")
    mass = sp.diags(1.0 + x[1] * np.arange(8.0), format="csc")
    low = spl.eigsh(stiffness, k=3, M=mass, sigma=0.0, return_eigenvectors=False)
    high, shapes = spl.eigsh(stiffness, k=2, which="LA")
    return np.concatenate([np.sort(low), high, (shapes**2)[:, 0]])


def _outside_factors(x: Any) -> Any:
    return FACTORS.solve(VECTOR * x[0]) + FACTORS.solve(VECTOR * x[1], "T")


FACTORS = spl.splu(OUTSIDE.tocsc())

PROGRAMS = (
    _compressed, _compressed_columns, _diags, _diags_of_numbers, _diags_of_lists, _one_diagonal,
    _diags_array, _spdiags, _dia, _blocks_by_rows, _keys, _lists_with_blocks, _written_rows,
    _diagonal_written, _array_of_rows, _laplacian, _heat, _entries_changed, _iterative,
    _exponential, _frequencies, _outside_factors,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_with_sparse_matrices(program: Any) -> None:
    check(lambda x: dense(program(x)), jit=True)


def _changed_in_place(make: Any, x: Any) -> Any:
    a = make(OUTSIDE.copy())
    alias = a
    a *= x[0]
    a /= 3.0
    a += make(OUTSIDE.T) * x[1]
    a *= 2.0
    a -= make(OUTSIDE)
    return alias.toarray() + 10 * a.toarray()


@pytest.mark.parametrize(("kind", "layout"), MATRICES)
def test_what_scipy_changes_in_place_is_changed_in_place(kind: str, layout: str) -> None:
    make = getattr(sp, f"{layout}_{kind}")
    check(lambda x: _changed_in_place(make, x))


@pytest.mark.parametrize("program", [_laplacian, _heat, _lists_with_blocks])
def test_second_derivatives(program: Any) -> None:
    def f(x: Any) -> Any:
        return (dense(program(x)) ** 2).sum()

    np.testing.assert_allclose(
        ft.hessian(f)(POINT), fourth_order_differences(lambda x: ft.grad(f)(x), POINT), 1e-7, 1e-7
    )


def test_the_beam_of_the_programs() -> None:
    beam = importlib.import_module("plain.programs.beam_fem")
    scale = beam.POINT
    slope = fourth_order_differences(lambda s: beam.main(s * scale), np.ones(6))
    np.testing.assert_allclose(ft.grad(beam.main)(scale) * scale, slope, 1e-8)
    slopes = fourth_order_differences(lambda s: beam.outputs(s * scale), np.ones(6))
    found = ft.jacobian(beam.outputs)(scale) * scale
    np.testing.assert_allclose(found, slopes, 1e-7, 1e-7 * np.abs(slopes).max())


# what stays SciPy's, and what is refused ----------------------------------------------------------


def test_plain_matrices_stay_those_of_scipy() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        a = csr_matrix((WEIGHTS, (ROWS, COLS)), shape=(4, 4))
        b = lil_matrix((2, 2))
        b[0, 1] = 3.0
        seen.extend([a, a.T @ OUTSIDE, b, b.tocsr(), sp.eye(3)])
        assert isinstance(a, csr_matrix) and sp.issparse(b)  # noqa: PT018
        assert isinstance(b, lil_matrix) and not isinstance(a, csr_array)  # noqa: PT018
        return x * a.sum()

    ft.grad(f)(2.0)
    assert all(isinstance(a, sp.spmatrix) for a in seen)


def test_results_are_matrices_of_scipy() -> None:
    def f(x: Any) -> Any:
        return x * 2.0, csr_matrix((WEIGHTS, (ROWS, COLS)), shape=(4, 4))

    _, matrix = ft.grad(f, has_aux=True)(2.0)
    assert type(matrix) is csr_matrix


def test_traced_matrices_are_of_the_classes_of_scipy() -> None:
    def f(x: Any) -> Any:
        a = csr_matrix(([x], ([0], [1])), shape=(2, 2))
        assert isinstance(a, csr_matrix)
        assert not isinstance(a, csr_array)
        assert isinstance(a.tocoo(), sp.spmatrix)
        assert sp.isspmatrix_csr(a)
        assert a.nnz == 1
        return a.sum()

    assert ft.grad(f)(2.0) == 1.0


def test_matrices_of_the_caller_are_not_changed() -> None:
    before = OUTSIDE.copy()

    def scaled(x: Any) -> Any:
        a = OUTSIDE
        a *= x
        return a.sum()

    def scaled_by_a_number(x: Any) -> Any:
        a = OUTSIDE
        a /= 2.0
        return x * a.sum()

    def written(x: Any) -> Any:
        OUTSIDE[0, 0] = x
        return OUTSIDE.sum()

    for change in (scaled, scaled_by_a_number, written):
        with pytest.raises(UnsupportedOperationError, match=r"A\.copy"):
            ft.grad(change)(2.0)
    assert (before != OUTSIDE).nnz == 0


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda a: a > 0, "__gt__"),
        (lambda a: a.max(), "max"),
        (lambda a: a.nonzero(), "nonzero"),
        (lambda a: a / a, "quotient by a sparse"),
        (lambda a: a.todense().ravel(), "np.asarray"),
        (lambda a: spl.svds(a), "scipy.sparse.linalg.svds"),
        (lambda a: sp.find(a), "scipy.sparse.find"),
        (lambda a: spl.splu(a.tocsc()).L, "splu"),
        (lambda a: spl.norm(a, 2), "norm"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(operation: Any, message: str) -> None:
    def f(x: Any) -> Any:
        operation(csr_matrix((values(x), (ROWS, COLS)), shape=(4, 4)))
        return x[0]

    with pytest.raises(UnsupportedOperationError, match=message):
        ft.grad(f)(POINT)


def test_a_matrix_of_integers_takes_no_traced_fractions() -> None:
    def f(x: Any) -> Any:
        a = lil_matrix((2, 2), dtype=int)
        a[0, 0] = x
        return a.tocsr().sum()

    with pytest.raises(TypeError, match="dtype=float"):
        ft.grad(f)(2.0)


def test_matrices_are_arguments_and_results_of_transformed_functions() -> None:
    def f(x: Any) -> Any:
        a = csr_matrix((values(x), (ROWS, COLS)), shape=(4, 4))
        return ft.jit(lambda b: (b @ VECTOR).sum())(a)

    np.testing.assert_allclose(
        ft.grad(f)(POINT),
        ft.grad(lambda x: (csr_matrix((values(x), (ROWS, COLS)), shape=(4, 4)) @ VECTOR).sum())(
            POINT
        ),
    )


# memory that matrices share -----------------------------------------------------------------------

POINTERS = np.array([0, 2, 3, 5, 6])
OVER_DATA: dict[str, Callable[[Any], Any]] = {
    "csr": lambda d: sp.csr_matrix((d, COLS[:6], POINTERS), shape=(4, 4)),
    "csc": lambda d: sp.csc_array((d, COLS[:6], POINTERS), shape=(4, 4)),
    "coo": lambda d: sp.coo_matrix((d, (ROWS[:6], COLS[:6])), shape=(4, 4)),
    "dia": lambda d: sp.dia_matrix((d.reshape(2, 3), [0, 1]), shape=(3, 3)),
    "bsr": lambda d: sp.bsr_matrix((d.reshape(3, 1, 2), [0, 1, 0], [0, 1, 2, 3]), shape=(3, 4)),
    "part": lambda d: sp.csr_array((d[::2], [0, 1, 0], [0, 1, 2, 3]), shape=(3, 3)),
    "copy": lambda d: sp.csr_matrix((d, COLS[:6], POINTERS), shape=(4, 4), copy=True),
    "triplets": lambda d: sp.csr_matrix((d, (ROWS[:6], COLS[:6])), shape=(4, 4)),
}
OF_MATRIX: dict[str, Callable[[Any], Any]] = {
    "itself": lambda K: K,
    "T": lambda K: K.T,
    "csr_matrix": csr_matrix,
    "coo_matrix": coo_matrix,
    "tocoo": lambda K: K.tocoo(copy=False),
    "copy": lambda K: K.copy(),
    "real": lambda K: K.real,
    "asformat": lambda K: K.asformat(K.format),
    "conj": lambda K: K.conj(copy=False),
    "twice": lambda K: K * 2,
}


def _scale(d: Any, K: Any, V: Any, x: Any) -> None:
    d *= x[0]


def _scale_data(d: Any, K: Any, V: Any, x: Any) -> None:
    K.data *= x[1]


def _scale_matrix(d: Any, K: Any, V: Any, x: Any) -> None:
    K *= x[1]


def _divide_matrix(d: Any, K: Any, V: Any, x: Any) -> None:
    K /= x[1]


def _scale_other(d: Any, K: Any, V: Any, x: Any) -> None:
    V *= x[1]


def _write(d: Any, K: Any, V: Any, x: Any) -> None:
    d[0] = x[1]


def _write_data(d: Any, K: Any, V: Any, x: Any) -> None:
    K.data[...] = x[1]


def _replace_data(d: Any, K: Any, V: Any, x: Any) -> None:
    K.data = K.data * x[1]


@each("change", [_scale, _scale_data, _scale_matrix, _divide_matrix,
                                    _scale_other, _write, _write_data, _replace_data])  # fmt: skip
@each("of", OF_MATRIX)
@each("over", OVER_DATA, by="over", one_of=3)
def test_matrices_share_the_memory_of_their_data_as_those_of_scipy(
    over: str, of: str, change: Any
) -> None:
    def program(x: Any, is_late: bool) -> Any:
        d = np.ones(6)
        if is_late:
            K = OVER_DATA[over](d)
            V = OF_MATRIX[of](K)
        for i in range(6):
            d[i] = x[i % 2] * (i + 1)
        if not is_late:
            K = OVER_DATA[over](d)
            V = OF_MATRIX[of](K)
        change(d, K, V, x)
        return np.array([*(K @ np.ones(K.shape[1])), *(V @ np.ones(V.shape[1])), *d])

    for is_late in (False, True):
        check(functools.partial(program, is_late=is_late))


def test_a_matrix_of_the_caller_keeps_its_data() -> None:
    matrix = OUTSIDE.copy()

    def scaled(x: Any) -> Any:
        matrix.data *= x[0]
        return matrix @ x

    with pytest.raises(UnsupportedOperationError, match="came from outside"):
        ft.grad(lambda x: np.sum(scaled(x)))(np.arange(1.0, 5.0))
    np.testing.assert_array_equal(matrix.toarray(), OUTSIDE.toarray())
