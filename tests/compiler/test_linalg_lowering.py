"""Native linear algebra against NumPy's and SciPy's, with either width of LAPACK's integers."""

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

from cases import each
from compiler.routine_harness import program, run
from functrans.compiler import symbols
from functrans.core.lowering import Expansion, Routine
from functrans.primitives.linalg import det as ld
from functrans.primitives.linalg import factor as lf
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.linalg import lstsq as ls
from functrans.primitives.linalg import solve as lv
from functrans.primitives.linalg import spectral as sp
from functrans.primitives.linalg import triangular as lt
from samples import ROWS, Row

NATIVE = [
    row
    for row in ROWS
    if row.primitive in linalg.PRIMITIVES and isinstance(row.primitive.lower, Routine)
]
WORK = {"f": "f8", "c": "c16"}


@pytest.fixture(params=["numpy", "scipy"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both sources of routines: NumPy's integers are 64 bits wide in its wheels, SciPy's 32."""
    if request.param == "scipy":
        monkeypatch.setattr(symbols, "_from_numpy", lambda routine: 0)
    return str(request.param)


def _compare(row: Row, operands: list[np.ndarray], params: Any, in_place: bool = False) -> None:
    found = run(row.primitive, *operands, in_place=in_place, **params)
    expected = row.primitive.impl(*operands, **params)
    for x, y in zip(found, map(np.asarray, expected), strict=True):
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        if y.dtype.kind in "iu":
            np.testing.assert_array_equal(x, y)
        elif y.size:
            # Samples are well-conditioned, so that only rounding differs.
            size = max(1.0, np.abs(y).max())
            np.testing.assert_allclose(x, y, rtol=0, atol=50 * np.finfo(y.dtype).eps * size)


@each(
    ("row", "label"),
    [
        pytest.param(row, sample.label, id=f"{row.name}-{sample.label}")
        for row in NATIVE
        for sample in row.samples()
    ],
    by="row",
)
def test_samples(row: Row, label: str, library: str) -> None:
    sample = row.sample(label)
    operands = [np.asarray(x) for x in sample.operands]
    _compare(row, operands, sample.params)
    if row.primitive.lower.in_place is not None:  # type: ignore[union-attr]
        _compare(row, operands, sample.params, in_place=True)


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in NATIVE])
def test_other_dtypes(row: Row, dtype: str) -> None:
    for sample in row.samples():
        operands = [np.asarray(x) for x in sample.operands]
        if operands[0].dtype != np.float64 or operands[0].size == 0:
            continue
        changed = [x.astype(dtype) if x.dtype.kind == "f" else x for x in operands]
        if row.primitive is lv.linear_solve_p:
            changed[1] = operands[1].astype(WORK[dtype[0]])  # factors are in double precision
        _compare(row, changed, sample.params)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("n", [9, 70])
def test_bigger_systems(n: int, dtype: str, rng: np.random.Generator) -> None:
    """Extents above those of tiles and of LAPACK's blocks."""
    rtol = 1e-3 if dtype == "f4" else 1e-9
    a = _random(rng, (2, n, n), dtype)
    positive = a @ a.conj().swapaxes(-1, -2) + n * np.eye(n, dtype=dtype)
    b = _random(rng, (2, n, 3), dtype)
    factors = lv.lu_factor(a)
    triangular = {"lower": True, "unit_diagonal": False}
    for primitive, operands, params in (
        (lf.cholesky_p, (positive,), {}),
        (lv.lu_p, (a,), {}),
        (lv.lu_p, (a[..., : n // 2],), {}),
        (lv.lu_p, (a[:, : n // 2],), {}),
        (lv.lu_factor_p, (a,), {"check": True}),
        *((lv.linear_solve_p, (a, *factors, b), {"trans": trans}) for trans in "NTC"),
        *((lt.triangular_solve_p, (positive, b), {**triangular, "trans": t}) for t in "NTC"),
        *(
            (lt.triangular_solve_p, (positive, b[..., :1]), {**triangular, "trans": t})
            for t in "NTC"
        ),
        (ld.inv_p, (a,), {"check": True}),
        (ld.det_p, (a / n,), {}),
        (ld.slogdet_p, (a,), {}),
    ):
        found = run(primitive, *map(np.ascontiguousarray, operands), **params)
        expected = primitive.impl(*operands, **params)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max())


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("shape", [(33, 33), (70, 20), (20, 70), (90, 3), (2, 9, 10)], ids=str)
def test_bigger_factors(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """The same routines on the same copies as NumPy's: signs and phases agree."""
    rtol = 1e-3 if dtype == "f4" else 1e-9
    a = _random(rng, shape, dtype)
    square = a @ a.conj().swapaxes(-1, -2)
    cases: list[Any] = [(lf.qr_p, a, {"mode": mode}) for mode in ("reduced", "complete", "raw")]
    cases += [(sp.eigh_p, square, {"uplo": u, "vectors": False}) for u in "LU"]
    cases += [(sp.svd_p, a, {"full_matrices": False, "compute_uv": uv}) for uv in (True, False)]
    if a.shape[-1] >= a.shape[-2]:  # no eigenvalue is repeated
        cases.append((sp.eigh_p, square, {"uplo": "L", "vectors": True}))
        cases.append((sp.eigh_p, square, {"uplo": "U", "vectors": True}))
    if a.shape[-1] == a.shape[-2]:  # bases of complements are arbitrary
        cases.append((sp.svd_p, a, {"full_matrices": True, "compute_uv": True}))
    for primitive, operand, params in cases:
        found = run(primitive, operand, **params)
        expected = primitive.impl(operand, **params)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max())


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("shape", [(40, 9), (9, 40)], ids=str)
def test_full_bases_are_unitary(shape: Any, dtype: str, rng: np.random.Generator) -> None:
    a = _random(rng, shape, dtype)
    u, s, vh = run(sp.svd_p, a, full_matrices=True, compute_uv=True)
    np.testing.assert_allclose((u[:, :9] * s) @ vh[:9], a, atol=1e-13)
    for x in (u, vh):
        np.testing.assert_allclose(x @ x.conj().T, np.eye(len(x)), atol=1e-13)


# errors -----------------------------------------------------------------------------------------

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
UNEQUAL = np.stack([np.eye(2), SINGULAR])


@pytest.mark.parametrize(
    ("primitive", "operand", "params"),
    [
        (lf.cholesky_p, -np.eye(2), {}),
        (lf.cholesky_p, np.stack([np.eye(2), -np.eye(2)]), {}),
        (lv.lu_factor_p, SINGULAR, {"check": True}),
        (lv.lu_factor_p, UNEQUAL, {"check": True}),
        (ld.inv_p, SINGULAR, {"check": True}),
        (ld.inv_p, UNEQUAL.astype(np.complex128), {"check": True}),
        (sp.svd_p, np.full((3, 2), np.nan), {"full_matrices": False, "compute_uv": True}),
    ],
)
def test_errors_are_numpys(primitive: Any, operand: Any, params: Any, library: str) -> None:
    try:
        primitive.impl(operand, **params)
    except np.linalg.LinAlgError as error:
        message = str(error)
    with pytest.raises(np.linalg.LinAlgError) as raised:
        run(primitive, operand, **params)
    assert str(raised.value) == message


def test_factors_of_nan_are_nan() -> None:
    a = np.array([[1.0, 0.0], [0.0, np.nan]])
    np.testing.assert_array_equal(run(lf.cholesky_p, a)[0], lf.cholesky_p.impl(a)[0])


def test_unchecked_inverses_of_singular_matrices_are_nan() -> None:
    (found,) = run(ld.inv_p, UNEQUAL, check=False)
    np.testing.assert_array_equal(found, ld.inv_p.impl(UNEQUAL, check=False)[0])


def test_unchecked_factors_of_singular_matrices() -> None:
    for x, y in zip(
        run(lv.lu_factor_p, UNEQUAL, check=False),
        lv.lu_factor_p.impl(UNEQUAL, check=False),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_determinants_of_singular_matrices(dtype: str) -> None:
    for a in (SINGULAR, np.zeros((3, 3)), UNEQUAL):
        for primitive in (ld.det_p, ld.slogdet_p):
            with np.errstate(all="ignore"):
                expected = primitive.impl(a.astype(dtype))
            for x, y in zip(run(primitive, a.astype(dtype)), expected, strict=True):
                np.testing.assert_allclose(x, y)


@pytest.mark.parametrize(
    "diagonal",
    [
        (1e200, 1e200, 1e-300),  # partial products leave the range, the whole does not
        (1e-200, 1e-200, 1e300),
        (1e-160, 1e-160, 1e20),
        (1e200, -1e200, 1.0),
        (1e-200, 1e-200, -1e-5),
        (np.nan, 1.0, 1.0),
        (np.inf, 1.0, -1.0),
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_determinants_beyond_the_range(diagonal: Any, dtype: str) -> None:
    a = np.diag(np.array(diagonal)).astype(dtype)
    with np.errstate(all="ignore"):
        (expected,) = ld.det_p.impl(a)
    (found,) = run(ld.det_p, a)
    if np.isfinite(expected):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        assert not np.isfinite(found)


def test_zero_on_the_diagonal_of_a_triangle_is_no_error() -> None:
    a, b = np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[1.0], [2.0]])
    params = {"lower": True, "trans": "N", "unit_diagonal": False}
    (found,) = run(lt.triangular_solve_p, a, b, **params)
    assert found[0] == 1
    assert not np.isfinite(found[1])


# symbols ----------------------------------------------------------------------------------------


def test_both_libraries_have_the_routines(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        name
        for row in NATIVE
        for sample in row.samples()
        for name in program(row.primitive, *sample.operands, **sample.params).symbols
    }
    first = {name: symbols.address(name) for name in names}
    monkeypatch.setattr(symbols, "_from_numpy", lambda routine: 0)
    assert all(symbols.address(name) for name in names)
    assert all(first.values())


def test_unknown_functions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("blas.nothing", "lapack.nothing", "c.no_such_function", "kernel.nothing", "x.y"):
        with pytest.raises(LookupError):
            symbols.address(name)


def test_functions_of_the_process() -> None:
    assert symbols.address("c.malloc")
    assert symbols.symbol_name("c.malloc") == "ft_c_malloc"


def test_numpys_routines_need_no_import() -> None:
    if not symbols._from_numpy("dgemm"):
        pytest.skip("NumPy's library does not show its routines here")
    code = """
        import sys
        from functrans.compiler import symbols
        symbols.address("blas.dgemm"), symbols.address("lapack.dgesdd")
        assert not {"scipy", "numba"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


# expansions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_hermitian", [False, True])
def test_pseudo_inverses_are_expanded(is_hermitian: bool, rng: np.random.Generator) -> None:
    rule = ls.pinv_p.lower
    assert isinstance(rule, Expansion)
    row = next(row for row in ROWS if row.primitive is ls.pinv_p)
    for sample in row.samples():
        a, rtol = sample.operands
        if is_hermitian:
            a = a @ a.conj().swapaxes(-1, -2)
        params = {"hermitian": is_hermitian}
        (x,) = rule.function(a, rtol, **params)
        (y,) = ls.pinv_p.impl(a, rtol, **params)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, atol=1e-4 if a.dtype == np.float32 else 1e-11)


def test_pseudo_inverses_cut_small_values_off() -> None:
    a, rtol = np.diag([2.0, 1e-9]), np.array(1e-6)
    for is_hermitian in (False, True):
        (x,) = ls.pinv_p.lower.function(a, rtol, hermitian=is_hermitian)  # type: ignore[union-attr]
        np.testing.assert_array_equal(x, np.diag([0.5, 0.0]))
