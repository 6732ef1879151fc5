"""What SciPy stores of sparse matrices with traced entries: patterns, zeros, memory.

A result of a traced function is that of SciPy, value and derivative, or there is a clear error:
never another number.
"""

import itertools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import functrans as ft
from cases import each, share
from functrans.errors import FunctransError, UnsupportedOperationError

pytestmark = [
    pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning"),
]
FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
KINDS = ("matrix", "array")
MATRICES = [f"{layout}_{kind}" for kind in KINDS for layout in FORMATS]
OF_TRANSFORM = {"grad": MATRICES, "jit": MATRICES[: len(FORMATS)]}
POINT = np.array([0.7, -0.4, 1.3, 0.2])
PLAIN = sp.csr_matrix(np.array([[2.0, 0, 1, 0], [0, 3, 0, 1], [1, 0, 0, 0], [0, 0, 0, 5.0]]))


def is_offered(f: Callable[[Any], Any]) -> bool:
    """Whether SciPy does it."""
    try:
        f(POINT)
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
        return False
    return True


def check(f: Callable[[Any], Any], transform: str = "grad") -> None:
    """Value and slope of a function of a vector are right, or refused with a clear error."""
    expected = np.asarray(f(POINT))
    try:
        if transform == "grad":
            value, slope = ft.value_and_grad(f)(POINT)
            step = 1e-4 * np.arange(1.0, 5.0)
            along = (8 * (f(POINT + step) - f(POINT - step)) - f(POINT + 2 * step)) / 12
            along += f(POINT - 2 * step) / 12
            np.testing.assert_allclose(slope @ step, along, 1e-7, 1e-11)
        else:
            with ft.config(native=False):
                value = ft.jit(f, specialize=transform == "specialize")(POINT)
    except FunctransError as error:
        if transform != "jit" and not isinstance(error, UnsupportedOperationError):
            raise
        return
    np.testing.assert_allclose(value, expected, 1e-12, 1e-13)


def _filled(make: Any, x: Any) -> Any:
    A = sp.lil_matrix((4, 4))
    A[1, 2] = x[0]
    A[0, 0] = x[1] * 0
    A[3, 1] = 2.0
    A[3, 2] = x[2]
    A[3, 2] = 0
    return make(A)


def _explicit_zeros(make: Any, x: Any) -> Any:
    data = np.array([1.0, 2.0, 0.0, 3.0]) * x
    return make(sp.coo_matrix((data, ([0, 1, 3, 2], [3, 1, 0, 1])), shape=(4, 4)))


CONSTRUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "dense": lambda make, x: make(np.diag(x)),
    "triplets": lambda make, x: make(sp.coo_matrix((x * 1, ([2, 0, 0, 3], [1, 3, 3, 2])), (4, 4))),
    "explicit_zeros": _explicit_zeros,
    "filled": _filled,
    "diagonals": lambda make, x: make(sp.diags([x, x[:3] * 0, x[:2]], [0, 1, -2])),
    "difference": lambda make, x: make(sp.csr_matrix(np.diag(x)) - sp.diags(x * [1, 1, 2, 2])),
}


def _without_small(A: Any) -> Any:
    A = A.tocsr()
    A.data[A.data < 0.5] = 0
    A.eliminate_zeros()
    return A


def _row_of_zeros(A: Any) -> Any:
    A[1, :] = 0
    return A


def _written(A: Any) -> Any:
    A[2, 2] = A[0, 0] * 3.0
    A[0, 1:3] = 2.0
    return A


def _diagonal(A: Any) -> Any:
    A.setdiag(A.sum() * np.array([1.0, 0.0, 2.0, 3.0]))
    return A


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda A: A,
    "csr": lambda A: A.tocsr(),
    "csc": lambda A: A.tocsc(),
    "coo": lambda A: A.tocoo(),
    "lil": lambda A: A.tolil(),
    "dok": lambda A: A.todok(),
    "dia_and_back": lambda A: A.todia().tocsr(),
    "sum": lambda A: A + A.T,
    "with_plain": lambda A: PLAIN + A,
    "difference": lambda A: A - A.copy(),
    "times_number": lambda A: 0.0 * A,
    "multiplied": lambda A: A.multiply(A.T),
    "multiplied_by_dense": lambda A: A.multiply(np.diag(np.arange(4.0))),
    "square": lambda A: A @ A,
    "product": lambda A: A @ PLAIN,
    "sine": lambda A: A.tocsr().sin(),
    "absolute": lambda A: abs(A).tocsr(),
    "part": lambda A: A.tocsr()[1:, ::2],
    "transpose": lambda A: A.T,
    "reshaped": lambda A: A.reshape((2, 8)),
    "stacked": lambda A: sp.vstack([A, PLAIN, A]),
    "blocks": lambda A: sp.block_diag([A, PLAIN]),
    "kron": lambda A: sp.kron(A, np.array([[1.0, 0.0], [2.0, 3.0]])),
    "lower": lambda A: sp.tril(A),
    "eliminated": _without_small,
    "row_of_zeros": _row_of_zeros,
    "written": _written,
    "diagonal": _diagonal,
}

QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "data": lambda A, x: np.exp(A.data).sum(),
    "data_of_csr": lambda A, x: (np.exp(A.tocsr().data) * (1 + A.tocsr().indices)).sum(),
    "data_of_coo": lambda A, x: (np.exp(A.tocoo().data) * (1 + A.tocoo().row)).sum(),
    "nnz": lambda A, x: A.nnz * x[0],
    "counts": lambda A, x: (A.tocsr().getnnz(axis=0) * np.arange(A.shape[1])).sum() * x[0],
    "toarray": lambda A, x: np.sin(A.toarray()).sum(),
    "product": lambda A, x: ((A @ np.arange(1.0, 1 + A.shape[1])) ** 2).sum(),
}


@each("question", QUESTIONS, one_of=2, full=2)
@each("operation", OPERATIONS, by="operation")
@each("transform", ["grad", "jit"])
def test_a_pattern_is_that_of_scipy_or_refused(
    transform: str, operation: str, question: str
) -> None:
    every = list(itertools.product(OF_TRANSFORM[transform], CONSTRUCTIONS))
    first = zlib.crc32(f"{transform} {operation} {question}".encode())
    for name, construction in share(every, 4, first, 2):

        def f(x: Any, name: str = name, construction: str = construction) -> Any:
            A = CONSTRUCTIONS[construction](getattr(sp, name), x)
            return QUESTIONS[question](OPERATIONS[operation](A), x)

        if is_offered(f):
            try:
                check(f, transform)
            except BaseException as error:
                error.add_note(f"{name} {construction}")
                raise


def test_entries_that_are_zero_have_derivatives() -> None:
    point = np.array([0.7, 0.0, 1.3, 0.0])
    for name in MATRICES:
        if name.startswith("dia"):  # SciPy does not add all of these
            continue
        make = getattr(sp, name)

        def f(x: Any, make: Any = make) -> Any:
            A = make(np.diag(x))
            B = A + A.T - make(np.diag(x[::-1] * 0 + point))
            n = B.tocsr().nnz + A.tocoo().nnz
            return (B @ np.arange(1.0, 5.0)).sum() * n + 3 * A.sum()

        n = make(np.diag(point)).tocoo().nnz + (
            2 * make(np.diag(point)) - make(np.diag(point))
        ).tocsr().nnz  # fmt: skip
        slope = 2 * n * np.arange(1.0, 5.0) + 3
        np.testing.assert_allclose(ft.grad(f)(point), slope)


def test_diagonals_of_other_lengths_are_added() -> None:
    def f(x: Any) -> Any:
        A = sp.dia_matrix((x.reshape(1, 4), [-1]), shape=(4, 4))
        return ((A + sp.dia_matrix((np.ones((1, 4)), [-1]), shape=(4, 4))).toarray() ** 2).sum()

    for transform in ("grad", "jit"):
        check(f, transform)


# matrices of keys ---------------------------------------------------------------------------------


def _sums(D: Any, x: Any) -> Any:
    total = 0.0
    for (i, j), v in D.items():
        total = total + (1 + i + 2 * j) * v
    for k, v in enumerate(D.values()):
        total = total + (k + 1) * v**2
    for i, j in D.keys():  # noqa: SIM118  # iteration of a dok_array gives rows
        total = total + (i + 3 * j) * x[1]
    return total


def _removed(D: Any, x: Any) -> Any:
    total = D.pop((0, 1)) + D.pop((3, 3), x[2])
    del D[2, 2]
    key, value = D.popitem()
    return total + _sums(D, x) + key[0] * value


def _updated(D: Any, x: Any) -> Any:
    D.update({(1, 1): x[3] * 0, (0, 1): x[0] ** 2})
    D.update([((3, 0), x[1])])
    return _sums(D, x) + D.setdefault((2, 2), x[0]) * D.setdefault((0, 3), x[2]) + D.nnz * x[0]


def _cleared(D: Any, x: Any) -> Any:
    D.clear()
    D[1, 2] = x[3]
    return _sums(D, x) + len(D) * x[0]


def _rows(D: Any, x: Any) -> Any:
    return sum((k + 1) * row.sum() for k, row in enumerate(D))


KEYED: dict[str, Callable[[Any, Any], Any]] = {
    "sums": _sums,
    "length": lambda D, x: len(D) * x[0],
    "contains": lambda D, x: ((0, 1) in D) * x[0] + ((0, 0) in D) * x[1],
    "get": lambda D, x: D.get((0, 1)) + D.get((3, 3), 2.0) * x[0] + D.get((1, 1)) + D.get((-2, 2)),
    "removed": _removed,
    "updated": _updated,
    "cleared": _cleared,
    "rows": _rows,
    "copy": lambda D, x: _sums(D.copy(), x),
    "transpose": lambda D, x: _sums(D.T, x),
    "filled_again": lambda D, x: _sums(D, x) + _sums(_row_of_zeros(D), x),
}


def _early(kind: str, x: Any) -> Any:
    D = getattr(sp, f"dok_{kind}")((4, 4))
    D[2, 2] = 4.0
    D[0, 1] = x[0]
    D[1, 0] = x[1] * 0
    D[1, 2] = x[1]
    return D


@pytest.mark.parametrize("transform", ["grad", "specialize", "jit"])
@pytest.mark.parametrize("use", KEYED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_of_keys_is_a_dict(kind: str, use: str, transform: str) -> None:
    def made(x: Any) -> Any:
        return KEYED[use](_early(kind, x), x)

    def converted(x: Any) -> Any:
        make = getattr(sp, f"dok_{kind}")
        return KEYED[use](make(sp.coo_matrix((x, ([0, 2, 1, 3], [1, 2, 3, 0])), (4, 4))), x)

    for f in (made, converted):
        if is_offered(f):
            check(f, transform)


# memory that is written through matrices ----------------------------------------------------------

ROWS, COLS, POINTERS = np.array([0, 1, 2, 3]), np.array([1, 1, 0, 2]), np.array([0, 1, 2, 3, 4])
OVER_DATA: dict[str, Callable[[Any, Any], Any]] = {
    "csr": lambda make, d: make((d, COLS, POINTERS), shape=(4, 4)),
    "csc": lambda make, d: make((d, COLS, POINTERS), shape=(4, 4)),
    "coo": lambda make, d: make((d, (ROWS, COLS)), shape=(4, 4)),
    "dia": lambda make, d: make((d.reshape(1, 4), [0]), shape=(4, 4)),
    "bsr": lambda make, d: make((d.reshape(2, 1, 2), [0, 1], [0, 1, 1, 2, 2]), shape=(4, 4)),
    "lil": lambda make, d: make(sp.coo_matrix((d, (ROWS, COLS)), shape=(4, 4))),
    "dok": lambda make, d: make(sp.coo_matrix((d, (ROWS, COLS)), shape=(4, 4))),
}
OTHER: dict[str, Callable[[Any], Any]] = {
    "T": lambda M: M.T,
    "matrix": lambda M: getattr(sp, f"{M.format}_matrix")(M),
    "array": lambda M: getattr(sp, f"{M.format}_array")(M),
    "array_of_rows": lambda M: sp.csr_array(M),
    "tocoo": lambda M: M.tocoo(),
    "tocoo_of_same": lambda M: M.tocoo(copy=False),
    "tocsr": lambda M: M.tocsr(),
    "tolil": lambda M: M.tolil(),
    "todok": lambda M: M.todok(),
    "astype": lambda M: M.astype(float, copy=False),
    "astype_copy": lambda M: M.astype(float),
    "reshape": lambda M: M.reshape((2, 8)),
    "copy": lambda M: M.copy(),
    "real": lambda M: M.real,
    "part": lambda M: M[:, :],
    "twice": lambda M: 2 * M,
    "T_of_T": lambda M: M.T.T,
}


def _at(i: Any, j: Any, value: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def change(M: Any, c: Any, x: Any) -> None:
        M[i, j] = value(x)

    return change


def _other_at(M: Any, c: Any, x: Any) -> None:
    c[1, 1] = x[2] * 3


def _setdiag(M: Any, c: Any, x: Any) -> None:
    M.setdiag(x * 3)


def _setdiag_of_number(M: Any, c: Any, x: Any) -> None:
    M.setdiag(5.0, k=-1)


def _twice_written(M: Any, c: Any, x: Any) -> None:
    M[1, 1] = x[0] * 5
    M[3, 3] = x[1]
    M[1, 1] = 7.0


def _written_data(M: Any, c: Any, x: Any) -> None:
    M.data[...] = x.reshape(M.data.shape) * 2


def _scaled_data(M: Any, c: Any, x: Any) -> None:
    M.data *= 2


def _added(M: Any, c: Any, x: Any) -> None:
    M += c * x[1]


def _scaled(M: Any, c: Any, x: Any) -> None:
    M *= x[1]


def _filled_by_matrix(M: Any, c: Any, x: Any) -> None:
    M[1:3, :] = sp.csr_matrix(([x[3], 2.0], ([0, 1], [1, 3])), shape=(2, 4))


CHANGES: dict[str, Callable[[Any, Any, Any], None]] = {
    "place": _at(1, 1, lambda x: 5.0),
    "traced_place": _at(1, 1, lambda x: x[2] * 4),
    "new_place": _at(1, 3, lambda x: x[2] * 4),
    "row": _at(1, slice(None), lambda x: 0.0),
    "traced_row": _at(2, slice(None), lambda x: x * 2),
    "block": _at(slice(0, 2), slice(1, 3), lambda x: x[1]),
    "places": _at([0, 2], [1, 0], lambda x: x[:2] * 3),
    "other_place": _other_at,
    "diagonal": _setdiag,
    "diagonal_of_number": _setdiag_of_number,
    "twice": _twice_written,
    "data": _written_data,
    "scaled_data": _scaled_data,
    "added": _added,
    "scaled": _scaled,
    "matrix": _filled_by_matrix,
}


@each("change", CHANGES)
@each("other", OTHER, by="other")
@each("transform", ["grad", "jit"])
def test_what_is_written_to_a_matrix_is_seen_where_scipy_shares(
    transform: str, other: str, change: str
) -> None:
    every = list(itertools.product(OF_TRANSFORM[transform], ("early", "late", "filled_after")))
    for name, when in share(every, 4, zlib.crc32(f"{transform} {other} {change}".encode()), 2):

        def f(x: Any, name: str = name, when: str = when) -> Any:
            d = np.ones(4) if when != "early" else x * 1
            M = OVER_DATA[name[:3]](getattr(sp, name), d)
            c = OTHER[other](M)
            has_data = M.format not in ("dok", "lil")
            seen = M.data if has_data else d
            if change in ("data", "scaled_data") and not has_data:
                raise NotImplementedError
            CHANGES[change](M, c, x)
            if when == "filled_after":
                d[0] = x[3]
            total = np.sin(d).sum() + 3 * (M @ np.arange(1.0, 5.0)).sum()
            total += 7 * (c @ np.arange(1.0, 1 + c.shape[1])).sum() + 11 * (seen**2).sum()
            return total + 13 * (M.data**3).sum() if has_data else total

        if is_offered(f):
            try:
                check(f, transform)
            except BaseException as error:
                error.add_note(f"{name} {when}")
                raise


def _compacted(A: Any, x: Any) -> Any:
    A.eliminate_zeros()
    A.data[...] = A.data * 2
    return A


IN_MEMORY: dict[str, Callable[[Any, Any], Any]] = {
    "eliminate_zeros": _compacted,
    "sort_indices": lambda A, x: A.sort_indices(),
    "sum_duplicates": lambda A, x: A.sum_duplicates(),
}


@pytest.mark.parametrize("transform", ["grad", "jit", "specialize"])
@pytest.mark.parametrize("operation", IN_MEMORY)
def test_what_scipy_does_in_the_memory_of_the_data(operation: str, transform: str) -> None:
    weights = np.arange(1.0, 5.0)
    for zeros, indices, name in itertools.product(
        ([1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1]),
        ([3, 0, 2, 1], [0, 0, 1, 2], [0, 1, 2, 3]),
        ("csr_matrix", "csc_array"),
    ):

        def f(x: Any, zeros: Any = zeros, indices: Any = indices, name: str = name) -> Any:
            d = x * np.array(zeros)
            A = getattr(sp, name)((d, np.array(indices), [0, 2, 3, 4, 4]), shape=(4, 4))
            is_moving = operation == "eliminate_zeros"
            B = A if is_moving else A.T
            IN_MEMORY[operation](A, x)
            total = (A @ weights) @ weights + (A.data**2).sum() + (d * weights).sum()
            return total if is_moving else total + (d * weights) @ d + B.sum()

        if is_offered(f):
            check(f, transform)


@pytest.mark.parametrize("transform", ["grad", "jit", "specialize"])
def test_references_to_data_follow_when_zeros_are_dropped(transform: str) -> None:
    weights = np.arange(1.0, 5.0)
    for zeros, name, writes in itertools.product(
        ([1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]),
        ("csr_matrix", "csc_array"),
        (False, True),
    ):

        def f(x: Any, zeros: Any = zeros, name: str = name, writes: bool = writes) -> Any:
            d = x * np.array(zeros)
            A = getattr(sp, name)((d, np.array([3, 0, 2, 1]), [0, 2, 3, 4, 4]), shape=(4, 4))
            seen = A.data
            A.eliminate_zeros()
            if writes:
                d[0] = 3 * x[2]
            return (A @ weights) @ weights**2 + (d * weights).sum() + (seen**2) @ weights

        check(f, transform)


@pytest.mark.parametrize("transform", ["grad", "jit"])
@pytest.mark.parametrize("view", ["T", "real"])
def test_zeros_that_other_matrices_share_are_not_dropped(view: str, transform: str) -> None:
    def f(x: Any) -> Any:
        A = sp.csr_matrix((x * [1, 0, 1, 1], np.array([3, 0, 2, 1]), [0, 2, 3, 4, 4]), shape=(4, 4))
        other = getattr(A, view)
        A.eliminate_zeros()
        return (A + other).sum()

    def alone(x: Any) -> Any:
        A = sp.csr_matrix((x * [1, 0, 1, 1], np.array([3, 0, 2, 1]), [0, 2, 3, 4, 4]), shape=(4, 4))
        total = (getattr(A, view) @ np.arange(4.0)).sum()
        A.eliminate_zeros()
        return (A @ np.arange(4.0)).sum() + 2 * total

    with pytest.raises(UnsupportedOperationError, match=r"A = A.copy\(\); A.eliminate_zeros"):
        {"grad": ft.grad, "jit": ft.jit}[transform](f)(np.arange(1.0, 5.0))
    check(alone, transform)


UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "neg": lambda A: -A,
    "round": lambda A: round(A, 1),
    "power": lambda A: A.power(2),
    "astype": lambda A: A.astype(complex),
    "sin": lambda A: A.sin(),
    "conj": lambda A: A.conj(),
    "twice": lambda A: A * 2,
}


@pytest.mark.parametrize("transform", ["grad", "jit"])
@pytest.mark.parametrize("operation", UNARY)
@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_entries_at_one_place_are_added_up_where_scipy_does(
    layout: str, operation: str, transform: str
) -> None:
    """SciPy does it in the matrix itself, in operations that seem not to change it."""
    for kind, view in itertools.product(KINDS, (False, True)):

        def f(x: Any, name: str = f"{layout}_{kind}", view: bool = view) -> Any:
            places = ([0, 2, 0, 1], [1, 1, 1, 0])
            A = getattr(sp, name)((x * 1.0, places if layout == "coo" else (
                [2, 0, 0, 1], [0, 1, 3, 4])), shape=(3, 3))  # fmt: skip
            T = A.T if view else A
            B = UNARY[operation](A)
            total = np.real(B.data) @ np.arange(1.0, 1 + len(B.data)) + A.nnz + 3 * B.nnz
            total += A.data @ np.arange(1.0, 1 + len(A.data)) ** 2
            A.data[0] = 5 * x[1]
            return total + (T @ np.arange(3.0)) @ np.arange(1.0, 4.0) + np.real(B.sum())

        if is_offered(f):
            check(f, transform)
