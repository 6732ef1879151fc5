"""Rows of products with sparse matrices and of systems with them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives.sparse import products as sp
from functrans.primitives.sparse import solve as ss
from samples.row import Refused, Rng, Row, Sample, annulus, integers, uniform

Shape = tuple[int, ...]

INDICES = np.array([0, 2, 3, 2, 2, 0, 1], np.int32)
INDPTR = np.array([0, 3, 3, 5, 7], np.int32)
"""Four rows and four columns: an empty row, a column twice in one row, no order."""

# label, leading axes, columns of the dense factor, dtype
FACTORS: tuple[tuple[str, Shape, int, str], ...] = (
    ("vector", (), 1, "f8"),
    ("matrix", (), 3, "f8"),
    ("wide", (), 19, "f8"),
    ("no_columns", (), 0, "f8"),
    ("stack", (2,), 2, "f8"),
    ("empty_stack", (0,), 2, "f8"),
    ("f32", (), 2, "f4"),
    ("complex", (), 2, "c16"),
)


def _numbers(rng: Rng, shape: Shape, dtype: str) -> np.ndarray:
    draw = annulus if dtype.startswith("c") else uniform
    return draw(rng, shape).astype(dtype)


def dense(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> np.ndarray:
    """The matrices ``[..., m, n]``."""
    out = np.zeros((*data.shape[:-1], *shape), data.dtype)
    for i in range(shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            out[..., i, indices[p]] += data[..., p]
    return out


# products ---------------------------------------------------------------------------------------


def _matmul_samples(rng: Rng) -> Iterator[Sample]:
    for trans in "NT":
        params: dict[str, Any] = {"shape": (4, 5), "trans": trans}
        rows = 5 if trans == "N" else 4
        for label, stack, k, dtype in FACTORS:
            data = _numbers(rng, (*stack, len(INDICES)), dtype)
            x = _numbers(rng, (*stack, rows, k), dtype)
            yield Sample(f"{label}_{trans}", (data, x, INDICES, INDPTR), params)
        pattern = (np.zeros(0, np.int64), np.zeros(5, np.int64))
        x = uniform(rng, (rows, 2))
        yield Sample(f"no_entries_{trans}", (np.zeros(0), x, *pattern), params)
        whole = integers(rng, (len(INDICES),)), integers(rng, (rows, 2))
        yield Sample(f"int_{trans}", (*whole, INDICES, INDPTR.astype(np.int64)), params)
    empty = (np.zeros(0), np.zeros((0, 2)), np.zeros(0, np.int32), np.zeros(1, np.int32))
    yield Sample("no_rows", empty, {"shape": (0, 0), "trans": "N"})


def _matmul(
    data: Any, x: Any, indices: Any, indptr: Any, *, shape: tuple[int, int], trans: str
) -> Any:
    a = dense(data, indices, indptr, shape)
    return (a if trans == "N" else np.swapaxes(a, -1, -2)) @ x


def _sample_samples(rng: Rng) -> Iterator[Sample]:
    for label, stack, k, dtype in FACTORS:
        factors = (_numbers(rng, (*stack, n, k), dtype) for n in (4, 5))
        yield Sample(label, (*factors, INDICES, INDPTR), {"shape": (4, 5)})
    pattern = (np.zeros(0, np.int64), np.zeros(5, np.int64))
    factors = (uniform(rng, (n, 2)) for n in (4, 5))
    yield Sample("no_entries", (*factors, *pattern), {"shape": (4, 5)})


def _sample(a: Any, b: Any, indices: Any, indptr: Any, *, shape: tuple[int, int]) -> Any:
    product = a @ np.swapaxes(b, -1, -2)
    rows = [i for i in range(shape[0]) for _ in range(indptr[i], indptr[i + 1])]
    return product[..., rows, indices]


# systems ----------------------------------------------------------------------------------------

SQUARE = (np.array([0, 3, 1, 0, 2, 1, 3], np.int32), np.array([0, 2, 3, 5, 7], np.int32))
IS_DIAGONAL = np.array([True, False, True, False, True, False, True])


def _solve_samples(rng: Rng) -> Iterator[Sample]:
    for trans in "NT":
        for label, stack, k, dtype in FACTORS:
            data = _numbers(rng, (*stack, len(IS_DIAGONAL)), dtype) + 5 * IS_DIAGONAL
            b = _numbers(rng, (*stack, 4, k), dtype)
            yield Sample(f"{label}_{trans}", (data.astype(dtype), b, *SQUARE), {"trans": trans})


def _solve_residual(outs: Any, data: Any, b: Any, indices: Any, indptr: Any, *, trans: str) -> Any:
    a = dense(data, indices, indptr, (4, 4))
    return ((a if trans == "N" else np.swapaxes(a, -1, -2)) @ outs[0] - b,)


_DATA = np.array([4.0, 1.0, 3.0, -1.0, 5.0, 2.0, 6.0])
_FACTORS = {dtype: ss.Factor(_DATA.astype(dtype), *SQUARE) for dtype in ("f8", "f4", "c16")}


def _factor_samples(rng: Rng) -> Iterator[Sample]:
    for trans in "NT":
        for label, stack, k, dtype in FACTORS:
            params = {"factor": _FACTORS[dtype], "trans": trans}
            yield Sample(f"{label}_{trans}", (_numbers(rng, (*stack, 4, k), dtype),), params)


def _factor_residual(outs: Any, b: Any, *, factor: Any, trans: str) -> Any:
    return _solve_residual(outs, *factor.arrays[:1], b, *factor.arrays[1:], trans=trans)


_WRONG_X = (np.ones(7), np.ones((4, 2)), INDICES, INDPTR)
_WRONG_POINTERS = (np.ones(7), np.ones((5, 2)), INDICES, INDPTR[:-1])

ROWS: tuple[Row, ...] = (
    Row(
        sp.csr_matmul_p,
        _matmul_samples,
        _matmul,
        refused=(
            Refused(
                "factor",
                _WRONG_X,
                ShapeError,
                r"matrix of shape \(4, 5\).*f64\[4,2\]",
                {"shape": (4, 5), "trans": "N"},
            ),
            Refused(
                "pointers",
                _WRONG_POINTERS,
                ShapeError,
                "needs 5 row pointers",
                {"shape": (4, 5), "trans": "N"},
            ),
            Refused(
                "dtypes",
                (np.ones(7, np.float32), np.ones((5, 2)), INDICES, INDPTR),
                TypeError,
                "cast one",
                {"shape": (4, 5), "trans": "N"},
            ),
            Refused(
                "indices",
                (np.ones(7), np.ones((5, 2)), INDICES * 1.0, INDPTR),
                TypeError,
                "vector of integers",
                {"shape": (4, 5), "trans": "N"},
            ),
        ),
    ),
    Row(
        sp.csr_sample_p,
        _sample_samples,
        _sample,
        refused=(
            Refused(
                "factors",
                (np.ones((4, 2)), np.ones((4, 2)), INDICES, INDPTR),
                ShapeError,
                r"product a @ b.T of shape \(4, 5\)",
                {"shape": (4, 5)},
            ),
        ),
    ),
    Row(
        ss.csr_solve_p,
        _solve_samples,
        residuals=_solve_residual,
        linear_in=((1,),),
        refused=(
            Refused(
                "right_hand_side",
                (_DATA, np.ones((3, 1)), *SQUARE),
                ShapeError,
                r"matrix of shape \(4, 4\).*f64\[3,1\]",
                {"trans": "N"},
            ),
            Refused(
                "dtypes",
                (_DATA, np.ones((4, 1), np.float32), *SQUARE),
                TypeError,
                "one floating dtype",
                {"trans": "N"},
            ),
        ),
    ),
    Row(
        ss.factor_solve_p,
        _factor_samples,
        residuals=_factor_residual,
        is_flat=True,
        refused=(
            Refused(
                "right_hand_side",
                (np.ones((3, 1)),),
                ShapeError,
                "do not fit the right-hand side",
                {"factor": _FACTORS["f8"], "trans": "N"},
            ),
        ),
    ),
)
