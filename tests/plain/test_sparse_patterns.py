"""What SciPy stores of sparse matrices with traced entries: patterns, zeros, memory.

A result of a traced function is that of SciPy, value and derivative, or there is a clear error:
never another number.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import functrans as ft
from functrans.errors import FunctransError

pytestmark = [
    pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning"),
]
FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
KINDS = ("matrix", "array")
MATRICES = [f"{layout}_{kind}" for kind in KINDS for layout in FORMATS]
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
        if transform != "jit" and "not supported" not in str(error):
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


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("transform", ["grad", "jit"])
def test_a_pattern_is_that_of_scipy_or_refused(
    transform: str, operation: str, question: str
) -> None:
    for name, construction in itertools.product(MATRICES, CONSTRUCTIONS):

        def f(x: Any, name: str = name, construction: str = construction) -> Any:
            A = CONSTRUCTIONS[construction](getattr(sp, name), x)
            return QUESTIONS[question](OPERATIONS[operation](A), x)

        if is_offered(f):
            try:
                check(f, transform)
            except BaseException as error:
                error.add_note(f"{name} {construction}")
                raise
