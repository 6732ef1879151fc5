"""NumPy functions that write, convert or decide, and the twins in ``numpy.linalg``."""

from typing import Any

import numpy as np
import pytest
from numpy_cases import Case, check, plain, recorded, staged

import functrans as ft
from functrans.errors import ConcretizationError

R = np.random.default_rng(12)
X = R.standard_normal((3, 4))
Y = R.standard_normal((4, 3))
S = R.standard_normal((3, 3))
V = np.array([0.7, -1.9, 0.4, 2.3, 1.1, -0.2])
W = R.uniform(0.5, 1.5, 6)
M = X > 0


def _filled_diagonal(x, v):
    out = x * 1.0
    np.fill_diagonal(out, v)
    return out


def _copied(x, y):
    out = x * 1.0
    np.copyto(out, y, where=M)
    return out


def _put(x, v):
    out = x * 1.0
    np.put(out, [0, 3], v)
    return out


def _put_along_axis(x, v):
    out = x * 1.0
    np.put_along_axis(out, np.array([[1], [0], [3]]), v, 1)
    return out


def _put_by_mask(x, v):
    out = x * 1.0
    np.putmask(out, M, v)
    return out


def _placed(x, v):
    out = x * 1.0
    np.place(out, M, v)
    return out


def _zeros_like(x):
    out = np.zeros(3, like=x)
    out[1:] = x[:2]
    return out


CASES = (
    Case("fill_diagonal", _filled_diagonal, X, V[:3]),
    Case("copyto", _copied, X, X + 1),
    Case("put", _put, V, W[:2]),
    Case("put_along_axis", _put_along_axis, X, W[:3, None]),
    Case("putmask", _put_by_mask, X, V),
    Case("place", _placed, X, V, is_staged=False),
    Case("zeros like=", _zeros_like, V),
    Case("full like=", lambda x: np.full((2, 3), x[:3], like=x), V),
    Case("array like=", lambda x: np.array([x[0], x[1] * x[2]], like=x), V),
    Case("asarray like=", lambda x: np.asarray([x[0], 2.0, x[1]], like=x) ** 2, V),
    Case("asanyarray like=", lambda x: np.asanyarray([x[0], x[1]], like=x) ** 2, V),
    Case("ascontiguousarray like=", lambda x: np.ascontiguousarray(x.T, like=x) ** 2, X),
    Case("asfortranarray like=", lambda x: np.asfortranarray(x, like=x) ** 2, X),
    Case("require like=", lambda x: np.require(x, requirements="C", like=x) ** 2, X),
    Case("eye like=", lambda x: np.eye(3, like=x) * x[0], V),
    Case("identity like=", lambda x: np.identity(3, like=x) * x[0], V),
    Case("ones like=", lambda x: np.ones(3, like=x) * x[0], V),
    Case("tri like=", lambda x: np.tri(3, like=x) * x[0], V),
    Case("permute_dims", lambda x: np.permute_dims(x, (1, 0)), X),
    Case("intersect1d", lambda x: np.intersect1d(x, x[:4]), V, is_staged=False),
    Case(
        "setdiff1d",
        lambda x: np.setdiff1d(np.concatenate((x, [5.0])), [5.0]),
        V,
        is_staged=False,
    ),
    Case("mod", np.mod, V, W),
    Case("divmod", lambda x, y: np.divmod(x, y)[1], V, W),
    Case("floor_divide", lambda x, y: np.floor_divide(x, y) * x, V, W),
    Case("spacing", lambda x: np.spacing(x) + x, V),
    Case("linalg.cross", np.linalg.cross, S, S.T),
    Case("linalg.diagonal", np.linalg.diagonal, S),
    Case("linalg.matrix_transpose", np.linalg.matrix_transpose, X),
    Case("linalg.outer", np.linalg.outer, V, W),
    Case("linalg.tensordot", lambda x, y: np.linalg.tensordot(x, y, axes=1), X, Y),
    Case("linalg.trace", np.linalg.trace, S),
)

BY_VALUES = ("nonzero", "flatnonzero", "argwhere")
COUNTS = np.array([4.0, 6.0, 9.0])
DECIDING = tuple(
    Case(name, function, *args, is_smooth=False, is_staged=name not in BY_VALUES)
    for name, function, *args in (
        ("equal", lambda x: np.equal(x, V), V),
        ("not_equal", lambda x: np.not_equal(x, V), V),
        ("less", lambda x: np.less(x, W), V),
        ("less_equal", lambda x: np.less_equal(x, W), V),
        ("greater", lambda x: np.greater(x, W), V),
        ("greater_equal", lambda x: np.greater_equal(x, W), V),
        ("isfinite", lambda x: np.isfinite(np.where(V > 0, np.inf, x)), V),
        ("isinf", lambda x: np.isinf(np.where(V > 0, np.inf, x)), V),
        ("isnan", lambda x: np.isnan(x), V),
        ("isposinf", lambda x: np.isposinf(np.where(V > 0, np.inf, x)), V),
        ("isneginf", lambda x: np.isneginf(np.where(V > 0, -np.inf, x)), V),
        ("signbit", lambda x: np.signbit(x), V),
        ("logical_and", lambda x: np.logical_and(x > 0, x < 1), V),
        ("logical_or", lambda x: np.logical_or(x < 0, x > 1), V),
        ("logical_xor", lambda x: np.logical_xor(x > 0, x > 1), V),
        ("logical_not", lambda x: np.logical_not(x > 0), V),
        ("bitwise_and", lambda x: np.bitwise_and(x.astype(int), 3), V),
        ("bitwise_or", lambda x: np.bitwise_or(x.astype(int), 3), V),
        ("bitwise_xor", lambda x: np.bitwise_xor(x.astype(int), 3), V),
        ("bitwise_count", lambda x: np.bitwise_count(x.astype(int)), V),
        ("invert", lambda x: np.invert(x.astype(int)), V),
        ("left_shift", lambda x: np.left_shift(x.astype(int), 2), W),
        ("right_shift", lambda x: np.right_shift((8 * x).astype(int), 2), W),
        ("gcd", lambda x: np.gcd(x.astype(int), 6), COUNTS),
        ("lcm", lambda x: np.lcm(x.astype(int), 6), COUNTS),
        ("isclose", lambda x: np.isclose(x, V), V),
        ("isin", lambda x: np.isin(x, V[:2]), V),
        ("searchsorted", lambda x: np.searchsorted([-1.0, 0.5], x), V),
        ("digitize", lambda x: np.digitize(x, [-1.0, 0.5]), V),
        ("argmax", lambda x: np.argmax(x), V),
        ("argmin", lambda x: np.argmin(x), V),
        ("argsort", lambda x: np.argsort(x), V),
        ("lexsort", lambda x: np.lexsort((x, x)), V),
        ("nonzero", lambda x: np.nonzero(x), np.append(V, 0.0)),
        ("flatnonzero", lambda x: np.flatnonzero(x), np.append(V, 0.0)),
        ("argwhere", lambda x: np.argwhere(x), np.append(V, 0.0)),
        ("count_nonzero", lambda x: np.count_nonzero(x > 0), V),
        ("all", lambda x: np.all(x > -5), V),
        ("any", lambda x: np.any(x > 5), V),
        ("allclose", lambda x: np.allclose(x, V), V),
        ("array_equal", lambda x: np.array_equal(x, V), V),
        ("array_equiv", lambda x: np.array_equiv(x, V), V),
        ("unravel_index", lambda x: np.unravel_index(x.astype(int), (4, 5)), COUNTS),
        (
            "ravel_multi_index",
            lambda x: np.ravel_multi_index((x.astype(int), x.astype(int)), (10, 10)),
            COUNTS,
        ),
        ("ix_", lambda x: np.ix_(x.astype(int), [0, 1]), COUNTS),
        ("linalg.matrix_rank", lambda x: np.linalg.matrix_rank(x), S),
    )
)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", DECIDING, ids=repr)
def test_integers_and_booleans_are_numpys(case: Case) -> None:
    """Plain, recorded, staged and compiled; they have no derivative, and say so."""
    expected = [np.asarray(x) for x in ft.tree.leaves(plain(case))]
    runs = [recorded(case)[0]]
    if case.is_staged:
        runs += [staged(case), ft.jit(case.function)(*case.args)]
    for found in runs:
        for one, other in zip(ft.tree.leaves(found), expected, strict=True):
            assert np.asarray(one).dtype == other.dtype
            assert other.dtype.kind in "biu"
            np.testing.assert_array_equal(one, other)
    pulled = ft.vjp(case.function, *case.args)[1](
        ft.tree.map(lambda x: np.zeros(np.shape(x), np.asarray(x).dtype), plain(case))
    )
    assert not any(np.any(p) for p in pulled)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.ma.array(x, mask=V > 0).sum(),
        lambda x: np.ma.masked_where(V > 0, x).sum(),
        lambda x: (np.ma.array(V, mask=V > 0) * x).sum(),
    ],
)
def test_masked_arrays_are_refused(function) -> None:
    """The message names what to write in their place."""
    with pytest.raises(ConcretizationError, match=r"np\.ma\.array\(x, mask=m\).*by np\.where"):
        ft.grad(function)(V)


def test_strides_are_refused() -> None:
    with pytest.raises(ConcretizationError, match=r"as_strided.*by .*sliding_window_view"):
        ft.grad(lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)).sum())(V)


def test_polynomials_of_plain_numpy_name_the_replacement() -> None:
    with pytest.raises(ConcretizationError, match=r"functrans\.numpy\.polynomial"):
        ft.grad(lambda c: np.polynomial.legendre.legder(c).sum())(V)


@pytest.mark.parametrize("method", ["linear", "hazen", "weibull", "midpoint", "median_unbiased"])
@pytest.mark.parametrize(
    "sample",
    [[1, 2, np.inf], [-np.inf, 1, 2], [-np.inf, 1, 2, np.inf], [np.inf, np.inf, 1], [1.0, 2, 3]],
)
def test_quantiles_beside_infinities_are_limits(method, sample):
    """Interpolation of huge finite numbers in place of infinities gives the same, up to size."""
    q = np.linspace(0, 1, 9)
    found = ft.jit(lambda a, q: np.quantile(a, q, method=method))(np.array(sample, float), q)
    huge = np.quantile(np.clip(sample, -1e300, 1e300), q, method=method)
    expected = np.where(np.abs(huge) > 1e100, np.copysign(np.inf, huge), huge)
    np.testing.assert_allclose(found, expected)
    slopes = ft.grad(lambda a, q: np.sum(np.quantile(a, q, method=method)), (0, 1))(
        np.array(sample, float), q[np.isfinite(expected)]
    )
    assert all(np.isfinite(slope).all() for slope in slopes)


def test_opposite_infinities_have_no_quantile_between():
    found = ft.jit(lambda a: np.quantile(a, [0.0, 0.5, 1.0]))(np.array([-np.inf, np.inf]))
    np.testing.assert_array_equal(found, [-np.inf, np.nan, np.inf])


@pytest.mark.parametrize("name", ["x", "xp"])
def test_interp_does_not_drop_imaginary_parts(name):
    operands = {"x": np.array([0.5]), "xp": np.array([0.0, 1.0]), "fp": np.array([2.0, 3.0])}
    operands[name] = operands[name] + 1j
    with pytest.raises(TypeError, match=f"{name} must be real, got complex128"):
        ft.jit(lambda operands: np.interp(**operands))(operands)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f4", "f8"])
def test_poly_of_integers_does_not_overflow(dtype):
    zeros = np.array([200, 100, 59]).astype(dtype)
    found, expected = ft.jit(np.poly)(zeros), np.poly(zeros)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("mode", ["mean", "median", "maximum", "minimum"])
def test_margins_of_an_empty_axis_have_no_statistic(mode):
    x = np.zeros((0, 3))
    with pytest.raises(ValueError, match="can't extend empty axis 0"):
        ft.jit(lambda x: np.pad(x, ((1, 0), (1, 1)), mode))(x)
    assert ft.jit(lambda x: np.pad(x, ((0, 0), (1, 1)), mode))(x).shape == (0, 5)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.array([True, False]), np.array([True, True])),
        (np.array([-128, 5], np.int8), np.array([127, 5], np.int8)),
        (np.array([1, 200], np.uint8), np.array([2, 200], np.uint8)),
        (np.array([1.0, np.inf, np.nan]), np.array([1 + 1e-9, np.inf, np.nan])),
    ],
)
def test_isclose_of_booleans_and_narrow_integers(a, b):
    np.testing.assert_array_equal(ft.jit(np.isclose)(a, b), np.isclose(a, b))
    assert bool(ft.jit(np.allclose)(a, b)) == np.allclose(a, b)


def test_ufuncs_of_booleans():
    x = np.array([True, False])
    for ufunc in (np.square, np.conjugate):
        found = ft.jit(lambda x, ufunc=ufunc: ufunc(x))(x)
        assert found.dtype == ufunc(x).dtype
        np.testing.assert_array_equal(found, ufunc(x))
    with pytest.raises(TypeError, match="positive"):
        ft.jit(np.positive)(x)


@pytest.mark.parametrize("name", ["sqrt", "log", "log10", "arccos", "arcsin", "arctanh"])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_complex_results_of_narrow_reals_have_numpys_dtype(name, dtype):
    x = np.array([-3.0, 0.5], dtype)
    fun = getattr(np.emath, name)
    found = ft.jvp(fun, (x,), (np.ones_like(x),))[0]
    assert found.dtype == fun(x).dtype
    np.testing.assert_allclose(found, fun(x), rtol=1e-6)


EDGES = {
    "u1": [0, 3, 200],
    "u8": [0, 3, 2**64 - 1],
    "i1": [-120, 5, 127],
    "i8": [-(2**63), 5, 2**63 - 1],
    "?": [False, True],
}


@pytest.mark.parametrize("dtype", EDGES)
@pytest.mark.parametrize("is_falling", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        np.digitize,
        lambda x, edges: np.digitize(x, edges, right=True),
        lambda x, edges: np.histogram(x, edges)[0],
        lambda x, edges: np.histogramdd(x[:, None], [edges])[0],
        lambda x, edges: np.histogram_bin_edges(x, edges),
    ],
)
def test_order_of_edges_whose_differences_wrap(function: Any, is_falling: Any, dtype: str) -> None:
    """Unsigned, wide and boolean edges, up and down: NumPy's values, or refused as by NumPy."""
    edges = np.array(EDGES[dtype], dtype)[:: -1 if is_falling else 1]
    x = np.array([-130.0, -5, 0, 0.5, 1, 4, 5, 120, 127, 190, 300])
    compiled = ft.jit(lambda x: function(x, edges))
    try:
        expected = function(x, edges)
    except ValueError:
        with pytest.raises(ValueError, match="monotonic"):
            compiled(x)
        return
    np.testing.assert_array_equal(compiled(x), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("floating", [np.float16, np.float32, np.float64])
def test_common_elements_of_wide_integers(dtype: Any, floating: Any) -> None:
    top = np.iinfo(dtype).max
    wide = np.array([top, top - 1, 3, 2], dtype)
    x = np.array([-1.0, 2.0, 3.0], floating)
    values, tangents = ft.jvp(
        lambda x: np.intersect1d(x, wide), (x,), (np.arange(3, dtype=floating),)
    )
    np.testing.assert_array_equal(values, [2.0, 3.0])
    np.testing.assert_array_equal(tangents, [1.0, 2.0])
