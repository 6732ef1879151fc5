"""Triangular systems and Cholesky factors on tiles, at extents around those of tiles and blocks."""

import itertools

import numpy as np
import pytest

import functrans as ft
from compiler.routine_harness import program
from functrans.emitter.types import Machine
from functrans.primitives.linalg.factor import cholesky_p
from functrans.primitives.linalg.solve import linear_solve_p, lu_factor
from functrans.primitives.linalg.triangular import triangular_solve_p

RTOL = {"f8": 1e-12, "f4": 2e-4}  # of the largest element: conditions are up to some hundreds
DTYPES = pytest.mark.parametrize("dtype", sorted(RTOL))
REGISTERS = pytest.mark.parametrize("registers", [8, 32])


def unread(matrix: np.ndarray, lower: bool, unit_diagonal: bool) -> np.ndarray:
    """A triangular matrix with NaN where nothing may be read."""
    n = len(matrix)
    own = matrix.copy()
    own[np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)] = np.nan
    if unit_diagonal:
        own[np.arange(n), np.arange(n)] = np.nan
    return own


def triangle(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    matrix = rng.normal(size=(n, n)) / n
    matrix[np.arange(n), np.arange(n)] = rng.choice([-1, 1], n) * rng.uniform(1, 2, n)
    return matrix.astype(dtype)


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    rtol = RTOL[found.dtype.str[1:]]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@DTYPES
@REGISTERS
@pytest.mark.parametrize(
    ("n", "k"), [(24, 16), (25, 17), (36, 40), (97, 33), (131, 16), (420, 65), (460, 300)]
)
def test_solutions(n: int, k: int, registers: int, dtype: str, rng: np.random.Generator) -> None:
    matrix, b = triangle(rng, n, dtype), rng.normal(size=(n, k)).astype(dtype)
    for lower, trans, unit_diagonal in itertools.product((True, False), "NTC", (True, False)):
        params = {"lower": lower, "trans": trans, "unit_diagonal": unit_diagonal}
        given = unread(matrix, lower, unit_diagonal), b
        native = program(
            triangular_solve_p, *given, level=0, machine=Machine(registers=registers), **params
        )
        assert not native.symbols
        (expected,) = triangular_solve_p.impl(matrix, b, **params)
        assert_near(native(*given)[0], expected)
        np.testing.assert_array_equal(given[1], b)


@DTYPES
@pytest.mark.parametrize(("n", "k"), [(24, 16), (101, 33)])
def test_solutions_of_a_stack_and_by_other_factors(
    n: int, k: int, dtype: str, rng: np.random.Generator
) -> None:
    matrices = rng.normal(size=(3, n, n)).astype(dtype) + n * np.eye(n, dtype=dtype)
    b = rng.normal(size=(3, n, k)).astype(dtype)
    params = {"lower": True, "trans": "T", "unit_diagonal": False}
    (found,) = program(triangular_solve_p, matrices, b, **params)(matrices, b)
    assert_near(found, triangular_solve_p.impl(matrices, b, **params)[0])
    operands = (matrices, *lu_factor(matrices), b)
    for trans in "NT":
        (found,) = program(linear_solve_p, *operands, trans=trans)(*operands)
        assert_near(found, linear_solve_p.impl(*operands, trans=trans)[0])


@DTYPES
@REGISTERS
@pytest.mark.parametrize("n", [112, 113, 191, 192, 193, 288, 301, 500])
def test_factors(n: int, registers: int, dtype: str, rng: np.random.Generator) -> None:
    root = rng.normal(size=(n, n))
    matrix = (root @ root.T / n + np.eye(n)).astype(dtype)
    given = unread(matrix, lower=True, unit_diagonal=False)
    native = program(cholesky_p, given, level=0, machine=Machine(registers=registers))
    assert_near(native(given)[0], np.linalg.cholesky(matrix))
    np.testing.assert_array_equal(given, unread(matrix, lower=True, unit_diagonal=False))


@pytest.mark.parametrize("place", [0, 95, 96, 150, 192, 299])
def test_what_is_not_positive_definite_is_refused(place: int) -> None:
    matrix, factor = np.eye(300), ft.jit(np.linalg.cholesky)
    matrix[place, place] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        factor(matrix)
    matrix[place, place] = np.nan
    np.testing.assert_array_equal(factor(matrix), np.linalg.cholesky(matrix))
    matrix[place, place] = 4.0
    np.testing.assert_array_equal(factor(matrix), np.linalg.cholesky(matrix))


@DTYPES
def test_no_element_depends_on_the_number_of_threads(dtype: str, rng: np.random.Generator) -> None:
    root = rng.normal(size=(400, 400))
    matrix = (root @ root.T / 400 + np.eye(400)).astype(dtype)
    b = rng.normal(size=(400, 130)).astype(dtype)
    solve = ft.jit(lambda a, b: ft.lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
    factor = ft.jit(np.linalg.cholesky)
    before = ft.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            ft.set_num_threads(threads)
            lower = factor(matrix)
            found.append((lower, solve(lower, b)))
    finally:
        ft.set_num_threads(before)
    for other in found[1:]:
        for x, y in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(x, y)
