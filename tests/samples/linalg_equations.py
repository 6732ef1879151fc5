"""Rows of banded systems, functions of matrices, equations between matrices, recursive filters."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import filters
from functrans.primitives.linalg import banded as lb
from functrans.primitives.linalg import equations as le
from functrans.primitives.linalg import functions as la
from functrans.primitives.linalg import matrix_functions as lm
from samples.linalg import STACKS, general, positive
from samples.row import Refused, Rng, Row, Sample, annulus, uniform

Shape = tuple[int, ...]


def _numbers(rng: Rng, shape: Shape, dtype: str = "f8") -> np.ndarray:
    draw = annulus if dtype.startswith("c") else uniform
    return draw(rng, shape).astype(dtype)


def _h(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


# functions of matrices --------------------------------------------------------------------------


def _through_eigenvectors(a: Any, name: str) -> Any:
    """The definition for matrices with a basis of eigenvectors."""
    function = {"expm": np.exp, "logm": np.log, "sqrtm": np.sqrt}[name]
    values, vectors = np.linalg.eig(a.astype(np.complex128))
    result = (vectors * function(values)[..., None, :]) @ np.linalg.inv(vectors)
    return (result if a.dtype.kind == "c" else result.real).astype(a.dtype)


def _divided(a: Any, e: Any, name: str) -> Any:
    """Daleckii and Krein's formula: divided differences in the basis of eigenvectors."""
    function, slope = {
        "expm": (np.exp, np.exp),
        "logm": (np.log, lambda x: 1 / x),
        "sqrtm": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    }[name]
    values, vectors = np.linalg.eig(a.astype(np.complex128))
    row, column = values[..., None, :], values[..., :, None]
    same = row == column
    gaps = np.where(same, 1, column - row)
    table = np.where(same, slope(column), (function(column) - function(row)) / gaps)
    inverse = np.linalg.inv(vectors)
    result = vectors @ (table * (inverse @ e @ vectors)) @ inverse
    return (result if e.dtype.kind == "c" else result.real).astype(e.dtype)


def _function_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, dtype in STACKS:
        yield Sample(f"expm_{label}", (general(rng, shape, dtype),), {"name": "expm"})
    for name in ("logm", "sqrtm"):
        for label, shape in (("3x3", (3, 3)), ("stack", (2, 2, 2)), ("0x0", (0, 0))):
            yield Sample(f"{name}_{label}", (positive(rng, shape, "c16"),), {"name": name})


def _frechet_samples(rng: Rng) -> Iterator[Sample]:
    for sample in _function_samples(rng):
        (a,) = sample.operands
        e = _numbers(rng, a.shape, a.dtype.str[1:])
        yield Sample(sample.label, (a, e), sample.params)


# equations --------------------------------------------------------------------------------------

PAIRS: tuple[tuple[str, Shape, int, int, str], ...] = (
    ("3x2", (), 3, 2, "f8"),
    ("stack", (2,), 2, 2, "f8"),
    ("empty_stack", (0,), 2, 2, "f8"),
    ("no_rows", (), 0, 2, "f8"),
    ("f32", (), 2, 2, "f4"),
    ("complex", (), 2, 3, "c16"),
)


def _sylvester_samples(rng: Rng) -> Iterator[Sample]:
    for label, stack, m, n, dtype in PAIRS:
        a, b = positive(rng, (*stack, m, m), dtype), positive(rng, (*stack, n, n), dtype)
        yield Sample(label, (a, b, _numbers(rng, (*stack, m, n), dtype)))


def _riccati_samples(rng: Rng) -> Iterator[Sample]:
    for is_discrete in (False, True):
        for label, stack, n, m, dtype in PAIRS[:1] + PAIRS[1:2] + PAIRS[4:]:
            a = (0.3 * general(rng, (*stack, n, n), dtype)).astype(dtype)
            b = _numbers(rng, (*stack, n, m), dtype)
            q, r = positive(rng, (*stack, n, n), dtype), positive(rng, (*stack, m, m), dtype)
            has_more = label in ("3x2", "complex")
            e = np.broadcast_to(np.eye(n, dtype=dtype), a.shape).copy()
            s = np.zeros_like(b)
            if has_more:
                e = e + (0.1 * _numbers(rng, e.shape, dtype)).astype(dtype)
                s = (0.1 * _numbers(rng, s.shape, dtype)).astype(dtype)
            params = {"is_discrete": is_discrete, "has_e": has_more, "has_s": has_more}
            yield Sample(f"{label}_{is_discrete}", (a, b, q, r, e, s), params)


def _riccati_residuals(
    outs: Any, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, **options: Any
) -> Any:
    (x,) = outs
    if options["is_discrete"]:
        g, h = _h(a) @ x @ b + s, r + _h(b) @ x @ b
        free = _h(a) @ x @ a - _h(e) @ x @ e
    else:
        g, h = _h(e) @ x @ b + s, r
        free = _h(a) @ x @ e + _h(e) @ x @ a
    return free - g @ np.linalg.solve(h, _h(g)) + q, x - _h(x)


def _hermitian_riccati(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, **options: Any) -> Any:
    """Derivatives are those of Hermitian changes; ``e`` and ``s`` are read if they move."""
    q, r = (la.adjoint(x) * 0.5 + x * 0.5 for x in (q, r))
    return (la.riccati(a, b, q, r, e, s, **{**options, "has_e": True, "has_s": True}),)


# banded systems ---------------------------------------------------------------------------------


def _banded_samples(rng: Rng) -> Iterator[Sample]:
    for label, stack, n, k, bands, dtype in (
        ("tridiagonal", (), 5, 2, (1, 1), "f8"),
        ("lopsided", (), 5, 1, (2, 1), "f8"),
        ("diagonal", (), 3, 2, (0, 0), "f8"),
        ("upper", (), 4, 1, (0, 2), "f8"),
        ("stack", (2,), 4, 2, (1, 1), "f8"),
        ("empty_stack", (0,), 4, 2, (1, 1), "f8"),
        ("f32", (), 4, 1, (1, 1), "f4"),
        ("complex", (), 4, 2, (1, 1), "c16"),
    ):
        for trans in "NT":
            ab = _numbers(rng, (*stack, sum(bands) + 1, n), dtype)
            ab[..., bands[1], :] += 6
            b = _numbers(rng, (*stack, n, k), dtype)
            yield Sample(f"{label}_{trans}", (ab, b), {"bands": bands, "trans": trans})


def _dense(ab: Any, bands: tuple[int, int]) -> Any:
    n = ab.shape[-1]
    a = np.zeros((*ab.shape[:-2], n, n), ab.dtype)
    for i, j in np.ndindex(n, n):
        if -bands[1] <= i - j <= bands[0]:
            a[..., i, j] = ab[..., bands[1] + i - j, j]
    return a


def _banded_residual(outs: Any, ab: Any, b: Any, *, bands: tuple[int, int], trans: str) -> Any:
    a = _dense(ab, bands)
    return ((a if trans == "N" else np.swapaxes(a, -1, -2)) @ outs[0] - b,)


# filters ----------------------------------------------------------------------------------------


def _filter_samples(rng: Rng) -> Iterator[Sample]:
    for label, c, x, dtype in (
        ("vector", (2,), (6,), "f8"),
        ("rows", (2,), (2, 5), "f8"),
        ("own_filters", (2, 1), (2, 5), "f8"),
        ("longer_than_x", (4,), (3,), "f8"),
        ("no_coefficients", (0,), (3,), "f8"),
        ("empty", (2,), (0,), "f8"),
        ("no_rows", (2,), (0, 3), "f8"),
        ("f32", (2,), (5,), "f4"),
        ("complex", (2,), (5,), "c16"),
    ):
        yield Sample(
            label, ((0.3 * _numbers(rng, c, dtype)).astype(dtype), _numbers(rng, x, dtype))
        )


def _filtered(c: Any, x: Any) -> Any:
    y = x.copy()
    for i in range(x.shape[-1]):
        for k in range(1, min(i, c.shape[-1]) + 1):
            y[..., i] -= c[..., k - 1] * y[..., i - k]
    return y


EYE = np.eye(2)
ROWS = (
    Row(
        lm.matrix_function_p,
        _function_samples,
        _through_eigenvectors,
        rtol=1e-11,
        refused=(Refused("oblong", (np.ones((2, 3)),), ShapeError, "square", {"name": "expm"}),),
    ),
    Row(
        lm.matrix_derivative_p,
        _frechet_samples,
        _divided,
        rtol=1e-11,
        linear_in=((1,),),
        refused=(
            Refused("dtypes", (EYE, EYE.astype("f4")), TypeError, "one dtype", {"name": "expm"}),
        ),
    ),
    Row(
        le.sylvester_p,
        _sylvester_samples,
        residuals=lambda outs, a, b, q: (a @ outs[0] + outs[0] @ b - q,),
        linear_in=((2,),),
        refused=(Refused("shape", (EYE, EYE, np.ones((3, 2))), ShapeError, "2 rows"),),
    ),
    Row(
        le.riccati_p,
        _riccati_samples,
        residuals=_riccati_residuals,
        rtol=1e-10,
        differentiated=_hermitian_riccati,
        fd_scale=10.0,
        refused=(
            Refused(
                "columns",
                (EYE, EYE, EYE, np.eye(3), EYE, EYE),
                ShapeError,
                "3 columns",
                {"is_discrete": False, "has_e": True, "has_s": True},
            ),
        ),
    ),
    Row(
        lb.banded_solve_p,
        _banded_samples,
        residuals=_banded_residual,
        linear_in=((1,),),
        refused=(
            Refused(
                "diagonals",
                (np.ones((2, 3)), np.ones((3, 1))),
                ShapeError,
                "3 diagonals",
                {"bands": (1, 1), "trans": "N"},
            ),
            Refused(
                "singular",
                (),
                np.linalg.LinAlgError,
                "Singular",
                call=lambda: la.banded_solve(np.zeros((1, 2)), np.ones((2, 1)), (0, 0)),
            ),
        ),
    ),
    Row(
        filters.recursive_filter_p,
        _filter_samples,
        _filtered,
        linear_in=((1,),),
        refused=(Refused("rows", (np.ones((3, 1)), np.ones((2, 4))), ShapeError, "one vector"),),
    ),
)
