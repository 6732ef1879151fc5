"""Reductions, running sums, means, quantiles, statistics, NaN variants."""

import numpy as np
import pytest
from numpy_cases import Case, check, leaves

import functrans as ft
import functrans.numpy as fnp

R = np.random.default_rng(1)
X = R.standard_normal((3, 4))
T = R.standard_normal((2, 3, 4))
V = np.array([0.7, -1.9, 0.4, 2.3, 1.1, -0.2])
W = R.uniform(0.5, 2.0, (3, 4))
Z = X + 1j * R.standard_normal((3, 4))
N = X.copy()
N[0, 1] = N[2, 3] = N[1, 0] = N[2, 1] = np.nan
M = R.uniform(size=(3, 4)) > 0.4
P = R.uniform(0.1, 0.9, 5)

REDUCTIONS = (
    Case("sum", np.sum, X),
    Case("sum axis", lambda x: np.sum(x, axis=1), X),
    Case("sum axes keepdims", lambda x: np.sum(x, axis=(0, -1), keepdims=True), T),
    Case("sum no axes", lambda x: np.sum(x, axis=()), X),
    Case("sum where initial", lambda x: np.sum(x, 0, where=M, initial=3.0), X),
    Case("sum 0-d", np.sum, np.asarray(2.0)),
    Case("sum empty", np.sum, np.zeros((0, 3))),
    Case("sum dtype", lambda x: np.sum(x, dtype=np.float64), X.astype(np.float32), is_smooth=False),
    Case("sum complex", lambda x: np.sum(x, axis=0), Z),
    Case("prod", np.prod, V),
    Case("prod axis", lambda x: np.prod(x, axis=1, keepdims=True), X),
    Case("prod where", lambda x: np.prod(x, axis=0, where=M, initial=2.0), X),
    Case("prod empty", np.prod, np.zeros(0)),
    Case("max", np.max, X),
    Case("max axis", lambda x: np.max(x, axis=(0, 2)), T),
    Case("max where", lambda x: np.max(x, axis=1, where=M, initial=-9.0), X),
    Case("max initial", lambda x: np.max(x, axis=1, initial=0.5, keepdims=True), X),
    Case("amax", np.amax, X),
    Case("min", np.min, X),
    Case("min axis", lambda x: np.min(x, axis=0), X),
    Case("amin", lambda x: np.amin(x, axis=1), X),
    Case("ptp", lambda x: np.ptp(x, axis=1), X),
    Case("mean", np.mean, X),
    Case("mean axis", lambda x: np.mean(x, axis=(0, 1), keepdims=True), T),
    Case("mean where", lambda x: np.mean(x, axis=1, where=M), X),
    Case("mean complex", np.mean, Z),
    Case("mean float32", np.mean, X.astype(np.float32), is_smooth=False),
    Case("mean float16", np.mean, X.astype(np.float16), is_smooth=False),
    Case("var", np.var, X),
    Case("var axis", lambda x: np.var(x, axis=0, ddof=1, keepdims=True), X),
    Case("var where", lambda x: np.var(x, axis=1, where=M), X),
    Case("var mean", lambda x: np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)), X),
    Case("var correction", lambda x: np.var(x, correction=1), X),
    Case("var complex", lambda x: np.var(x, axis=0), Z),
    Case("std", lambda x: np.std(x, axis=1), X),
    Case("std all", np.std, X),
    Case("std complex", np.std, Z),
    Case("average", np.average, X),
    Case("average weights", lambda x, w: np.average(x, axis=1, weights=w), X, W),
    Case("average vector", lambda x, w: np.average(x, 1, w, returned=True), X, W[0]),
    Case("average axes", lambda x, w: np.average(x, (1, 0), w, keepdims=True), X, W.T),
    Case("count_nonzero", lambda x: np.count_nonzero(x > 0, axis=1) * x.sum(), X),
    Case("argmax", lambda x: np.take(x, np.argmax(x)), X),
    Case("argmin", lambda x: np.take_along_axis(x, np.argmin(x, 1, keepdims=True), 1), X),
    Case("logical", lambda x: np.where(np.any(x > 1, 0) | np.all(x < 1, axis=0), x[0], x[1]), X),
)

CUMULATIVE = (
    Case("cumsum", np.cumsum, X),
    Case("cumsum axis", lambda x: np.cumsum(x, axis=1), X),
    Case("cumsum 0-d", np.cumsum, np.asarray(2.0)),
    Case("cumprod", np.cumprod, V),
    Case("cumprod axis", lambda x: np.cumprod(x, axis=0), X),
    Case("cumulative_sum", lambda x: np.cumulative_sum(x, axis=1, include_initial=True), X),
    Case("cumulative_prod", lambda x: np.cumulative_prod(x, include_initial=True), V),
    Case("nancumsum", lambda x: np.nancumsum(x, axis=0), N),
    Case("nancumprod", lambda x: np.nancumprod(x, axis=1), N),
    Case("diff", np.diff, X),
    Case("diff twice", lambda x: np.diff(x, 2, axis=0), X),
    Case("diff margins", lambda x: np.diff(x, prepend=0.5, append=x[:, :2]), X),
    Case("diff short", np.diff, np.ones(1)),
    Case("ediff1d", lambda x: np.ediff1d(x, to_end=x[0], to_begin=[1.0, 2.0]), X),
    Case("gradient", np.gradient, V),
    Case("gradient axes", lambda x: np.gradient(x, 0.5), X),
    Case("gradient order", lambda x: np.gradient(x, 2.0, axis=1, edge_order=2), X),
    Case("gradient points", lambda x, p: np.gradient(x, p), V, np.cumsum(np.abs(V))),
    Case(
        "gradient points order",
        lambda x, p: np.gradient(x, p, axis=1, edge_order=2),
        X,
        np.array([0.0, 0.5, 1.7, 2.0]),
    ),
    Case("trapezoid", np.trapezoid, X),
    Case("trapezoid dx", lambda y, d: np.trapezoid(y, dx=d, axis=0), X, np.asarray(0.3)),
    Case("trapezoid x", lambda y, x: np.trapezoid(y, x, axis=0), X, V[:3]),
    Case("trapezoid grid", lambda y, x: np.trapezoid(y, x), X, W),
)

NAN = (
    Case("nansum", lambda x: np.nansum(x, axis=0), N),
    Case("nanprod", lambda x: np.nanprod(x, axis=1), N),
    Case("nanmax", lambda x: np.nanmax(x, axis=1), N),
    Case("nanmin", lambda x: np.nanmin(x, axis=1, keepdims=True), N),
    Case("nanmean", lambda x: np.nanmean(x, axis=1), N),
    Case("nanvar", lambda x: np.nanvar(x, axis=1), N),
    Case("nanstd", lambda x: np.nanstd(x, axis=1, ddof=1), N),
    Case("nanmedian", lambda x: np.nanmedian(x, axis=1), N),
    Case("nanmedian all", np.nanmedian, N),
    Case("nanquantile", lambda x: np.nanquantile(x, [0.2, 0.7], axis=1), N),
    Case("nanpercentile", lambda x: np.nanpercentile(x, 35.0, axis=1, keepdims=True), N),
    Case("nanargmax", lambda x: x[np.arange(3), np.nanargmax(x, axis=1)], N),
    Case("nanargmin", lambda x: np.take(x, np.nanargmin(x)), N),
)

METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)
QUANTILES = (
    Case("median", np.median, X),
    Case("median odd", lambda x: np.median(x, axis=0, keepdims=True), X),
    Case("median axes", lambda x: np.median(x, axis=(0, 2)), T),
    Case("quantile", lambda x: np.quantile(x, 0.3), X),
    Case("quantile in q", lambda x, q: np.quantile(x, q, axis=1), X, P),
    Case("percentile", lambda x: np.percentile(x, [10.0, 50.0, 95.0], axis=0), X),
    Case(
        "percentile table",
        lambda x: np.percentile(x, [[10.0, 50.0]], axis=(0, 1), keepdims=True),
        T,
    ),
    *(
        Case(f"quantile {method}", lambda x, m=method: np.quantile(x, P, axis=1, method=m), X)
        for method in METHODS
    ),
    *(
        Case(
            f"quantile exact {method}",
            lambda x, m=method: np.quantile(x, [0.0, 0.25, 0.5, 1.0], method=m),
            V,
        )
        for method in METHODS
    ),
    *(
        Case(f"nanquantile {method}", lambda x, m=method: np.nanquantile(x, P, axis=0, method=m), N)
        for method in METHODS
    ),
    Case(
        "quantile weights",
        lambda x: np.quantile(x, P, axis=1, weights=W, method="inverted_cdf"),
        X,
    ),
    Case(
        "quantile vector of weights",
        lambda x: np.quantile(x, 0.4, axis=1, weights=W[0], method="inverted_cdf"),
        X,
    ),
)

STATISTICS = (
    Case("cov", np.cov, X),
    Case("cov y", lambda x, y: np.cov(x, y, rowvar=False, bias=True), X, W),
    Case("cov weights", lambda x: np.cov(x, fweights=[1, 2, 3, 1], aweights=W[0]), X),
    Case("cov vector", np.cov, V),
    Case("cov complex", np.cov, Z),
    Case("corrcoef", np.corrcoef, X),
    Case("corrcoef y", lambda x, y: np.corrcoef(x, y), V, V[::-1] ** 2),
    Case("bincount", lambda w: np.bincount([0, 2, 2, 5, 1, 0], w, minlength=8), V),
    Case("digitize", lambda x: x * np.digitize(x, [-1.0, 0.0, 1.0]), V),
    Case("digitize falling", lambda x: x * np.digitize(x, [1.0, 0.0, -1.0], right=True), V),
    Case("histogram", lambda x: np.histogram(x, 4), V),
    Case("histogram range", lambda x: np.histogram(x, 5, (-1.0, 1.5), density=True), V),
    Case(
        "histogram weights",
        lambda x, w: np.histogram(x, [-2.0, 0.0, 1.0, 2.5], weights=w),
        V,
        W.ravel()[:6],
    ),
    Case("histogram2d", lambda x, y: np.histogram2d(x, y, (3, 2), density=True), V, V[::-1] + 0.1),
    Case("histogramdd", lambda x: np.histogramdd(x, (2, 3, 2, 2)), X),
    Case("histogram_bin_edges", lambda x: np.histogram_bin_edges(x, 3), V),
)


@pytest.mark.parametrize(
    "case", [*REDUCTIONS, *CUMULATIVE, *NAN, *QUANTILES, *STATISTICS], ids=repr
)
def test_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.bool_, np.int64])
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "var",
        "std",
        "any",
        "all",
        "argmax",
        "argmin",
        "cumsum",
        "cumprod",
        "count_nonzero",
        "median",
    ],
)
def test_integer_reductions_have_numpys_dtype(name: str, dtype: type) -> None:
    if name == "ptp" and dtype is np.bool_:
        return
    x = np.array([[1, 0, 3], [2, 5, 4]]).astype(dtype)
    function = getattr(np, name)
    expected = function(x)
    (out,) = ft.eval_jaxpr(ft.make_jaxpr(function)(x), None, x)
    np.testing.assert_allclose(out, expected)
    assert out.dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "cumsum", "max", "median"])
def test_small_floats_stay_small(name: str, dtype: type) -> None:
    if np.dtype(dtype).kind == "c" and name in ("max", "median"):
        return
    x = X.astype(dtype)
    function = getattr(np, name)
    (out,) = ft.eval_jaxpr(ft.make_jaxpr(function)(x), None, x)
    assert out.dtype == function(x).dtype
    if np.dtype(dtype) == np.float32:
        assert ft.grad(lambda v: function(v).sum())(x).dtype == dtype


def test_plain_reductions_are_one_equation() -> None:
    for function in (np.sum, np.max, np.min, np.prod, lambda x: x.sum(), lambda x: x.max(0)):
        assert len(ft.make_jaxpr(function)(X).eqns) == 1
    assert len(ft.make_jaxpr(np.mean)(X).eqns) == 2


def test_reduction_of_an_empty_axis_with_initial() -> None:
    check(Case("max", lambda x: np.max(x, axis=0, initial=2.0), np.zeros((0, 2))))
    with pytest.raises(ValueError, match="zero-size"):
        ft.grad(lambda x: np.max(x))(np.zeros(0))


def test_reduction_errors_are_numpys() -> None:
    with pytest.raises(ValueError, match="initial"):
        ft.grad(lambda x: np.max(x, where=M))(X)
    with pytest.raises(ValueError, match="duplicate"):
        ft.grad(lambda x: np.sum(x, axis=(0, 0)).sum())(X)
    with pytest.raises(np.exceptions.AxisError):
        ft.grad(lambda x: np.sum(x, axis=2).sum())(X)
    with pytest.raises(ValueError, match="range"):
        ft.grad(lambda x: np.quantile(x, 1.2))(X)
    with pytest.raises(ValueError, match="valid method"):
        ft.grad(lambda x: np.quantile(x, 0.2, method="best"))(X)
    with pytest.raises(ZeroDivisionError):
        ft.grad(lambda x: np.average(x, weights=np.zeros((3, 4))))(X)


def test_positional_out_writes_to_traced_array() -> None:
    def f(x):
        buffer = np.zeros_like(x[0])
        np.sum(x, 0, None, buffer)
        np.mean(x, 0, out=buffer)
        return buffer

    check(Case("mean out", f, X))


def test_list_of_traced_values_is_reduced() -> None:
    g = ft.grad(lambda x: fnp.mean([x, x + 2.0]) + fnp.sum([[x, 1.0], [2.0, x]]))(3.0)
    np.testing.assert_allclose(g, 3.0)


def test_std_of_constant_has_derivative_zero() -> None:
    np.testing.assert_array_equal(ft.grad(np.std)(np.ones(3)), np.zeros(3))


def test_quantile_of_nan_is_nan() -> None:
    for out in leaves(ft.vjp(lambda x: (np.median(x, 1), np.quantile(x, 0.5, 1)), N)[0]):
        assert np.isnan(out).all()


def test_all_nan_lane_of_nanargmax_raises() -> None:
    with pytest.raises(ValueError, match="All-NaN"):
        ft.grad(lambda x: np.take(x, np.nanargmax(x)))(np.full(3, np.nan))


def test_bincount_with_length_is_staged() -> None:
    index = np.array([0, 3, 1, 9])
    jaxpr = ft.make_jaxpr(lambda i: fnp.bincount(i, length=4))(index)
    np.testing.assert_array_equal(ft.eval_jaxpr(jaxpr, None, index)[0], [1, 1, 0, 1])


def test_value_dependent_edges_need_values() -> None:
    with pytest.raises(ft.errors.ConcretizationError):
        ft.make_jaxpr(lambda x: np.histogram(x, "auto")[0])(V)
    with pytest.raises(ft.errors.ConcretizationError):
        ft.make_jaxpr(lambda i: np.bincount(i))(np.array([1, 2]))
