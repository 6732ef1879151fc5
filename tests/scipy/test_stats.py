"""Distributions: values against SciPy, derivatives in all real parameters, supports."""

import inspect
import itertools
import pydoc
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.scipy import stats as ours
from functrans.scipy.stats_families import Continuous, Discrete
from functrans.testing import central_difference, check_grads
from helpers import assert_close
from scipy import stats as theirs

CONTINUOUS = [each for each in vars(ours).values() if isinstance(each, Continuous)]


@dataclass(frozen=True, slots=True)
class Case:
    """A distribution: points, parameters that broadcast with them, and where it is tested.

    Attributes:
      name: SciPy's name.
      points: inside the support, for loc 0.3 and scale 1.7 of continuous ones.
      shapes: parameters.
      outside: points outside the support.
      moving: parameters that derivatives are taken in; all by default.
    """

    name: str
    points: tuple[float, ...]
    shapes: tuple[float, ...] = ()
    outside: tuple[float, ...] = ()
    moving: tuple[int, ...] | None = None


LINE = (-2.5, 0.1, 0.9, 4.2)
POSITIVE_POINTS = (0.5, 1.3, 2.9, 6.0)
UNIT_POINTS = (0.4, 0.9, 1.4, 1.9)
LOC, SCALE = 0.3, 1.7
BELOW = (-1.0, 0.2)

CASES = (
    Case("norm", LINE),
    Case("truncnorm", (-1.5, 0.4, 1.9), (-1.2, 1.5), (-5.0, 4.0)),
    Case("t", LINE, (3.4,)),
    Case("cauchy", LINE),
    Case("laplace", LINE),
    Case("logistic", LINE),
    Case("gumbel_r", LINE),
    Case("gumbel_l", LINE),
    Case("uniform", UNIT_POINTS, (), (0.1, 2.5)),
    Case("beta", UNIT_POINTS, (1.7, 0.6), (0.1, 2.5)),
    Case("powerlaw", UNIT_POINTS, (1.7,), (0.1, 2.5)),
    Case("vonmises", LINE, (1.4,)),
    Case("wrapcauchy", POSITIVE_POINTS, (0.4,), (-1.0,)),
    Case("skewnorm", LINE, (1.4,)),
    Case("gennorm", LINE, (1.4,)),
    Case("expon", POSITIVE_POINTS, (), BELOW),
    Case("weibull_min", POSITIVE_POINTS, (1.6,), BELOW),
    Case("rayleigh", POSITIVE_POINTS, (), BELOW),
    Case("pareto", (2.3, 3.1, 6.0), (1.6,), (1.0,)),
    Case("lomax", POSITIVE_POINTS, (1.6,), BELOW),
    Case("gompertz", (0.5, 1.3, 2.9), (0.6,), BELOW),
    Case("gamma", POSITIVE_POINTS, (2.3,), BELOW),
    Case("chi2", POSITIVE_POINTS, (3.1,), BELOW),
    Case("chi", POSITIVE_POINTS, (3.1,), BELOW),
    Case("maxwell", POSITIVE_POINTS, (), BELOW),
    Case("lognorm", POSITIVE_POINTS, (0.8,), (*BELOW, LOC)),
    Case("invgamma", POSITIVE_POINTS, (2.3,), (*BELOW, LOC)),
    Case("f", POSITIVE_POINTS, (3.1, 5.2), BELOW),
    Case("halfnorm", POSITIVE_POINTS, (), BELOW),
    Case("halfcauchy", POSITIVE_POINTS, (), BELOW),
    Case("invweibull", POSITIVE_POINTS, (1.6,), (*BELOW, LOC)),
    Case("fisk", POSITIVE_POINTS, (1.6,), BELOW),
)  # fmt: skip
METHODS = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
PROBABILITIES = np.array([0.05, 0.3, 0.45, 0.8, 0.97])

COUNTS = (
    Case("poisson", (0, 1, 4, 7), (2.3,), (-1, 1.5)),
    Case("bernoulli", (0, 1), (0.3,), (-1, 2)),
    Case("binom", (0, 1, 4, 5), (5, 0.3), (-1, 6), (1,)),
    Case("nbinom", (0, 1, 4, 7), (2.5, 0.3), (-1, 1.5)),
    Case("geom", (1, 2, 4, 7), (0.3,), (0, 1.5)),
    Case("betabinom", (0, 1, 4, 5), (5, 1.3, 0.7), (-1, 6), (1, 2)),
    Case("hypergeom", (1, 2, 4), (20, 7, 12), (-1, 8), ()),
    Case("zipf", (1, 2, 4, 7), (2.3,), (0, 1.5)),
    Case("dlaplace", (-3, 0, 4), (0.8,), (1.5,)),
)


def _has(distribution: Any, method: str) -> bool:
    if method.endswith("df") and method not in ("cdf",) and "pdf" in method:
        return True
    return distribution.distribution is not None and (
        method not in ("ppf", "isf") or distribution.quantile is not None
    )


EACH = [
    pytest.param(case, method, id=f"{case.name}-{method}")
    for case in CASES
    for method in METHODS
    if _has(getattr(ours, case.name), method)
]
EACH_COUNT = [
    pytest.param(case, method, id=f"{case.name}-{method}")
    for case in COUNTS
    for method in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf")
    if "pmf" in method or getattr(ours, case.name).distribution is not None
]


def _operands(case: Case, method: str) -> tuple[np.ndarray, ...]:
    points = PROBABILITIES if method in ("ppf", "isf") else np.array(case.points)
    return (points, *map(np.float64, (*case.shapes, LOC, SCALE)))


def test_every_distribution_has_a_case() -> None:
    names = {case.name for case in (*CASES, *COUNTS)}
    discrete = [each for each in vars(ours).values() if isinstance(each, Discrete)]
    assert names == {each.name for each in (*CONTINUOUS, *discrete)}
    assert len(EACH) + len(EACH_COUNT) > 250


@each(("case", "method"), EACH, by="method")
def test_values_are_those_of_scipy(case: Case, method: str) -> None:
    operands = _operands(case, method)
    found = getattr(getattr(ours, case.name), method)(*operands)
    expected = getattr(getattr(theirs, case.name), method)(*operands)
    np.testing.assert_allclose(found, expected, rtol=2e-11, atol=1e-14)
    compiled = ft.jit(getattr(getattr(ours, case.name), method))(*operands)
    np.testing.assert_allclose(compiled, found, rtol=1e-12, atol=1e-15)
    batched = ft.vmap(
        getattr(getattr(ours, case.name), method), (0, *(None,) * 10)[: len(operands)]
    )
    np.testing.assert_allclose(batched(*operands), found, rtol=1e-13)


@each(("case", "method"), EACH, by="method")
def test_derivatives_in_all_operands(case: Case, method: str) -> None:
    operands, function = _operands(case, method), getattr(getattr(ours, case.name), method)
    rng = np.random.default_rng(5)
    direction = tuple(np.asarray(rng.standard_normal(x.shape)) for x in operands)

    def fun(*xs: Any) -> tuple[Any, ...]:
        return (function(*xs),)

    (out,), (pushed,) = ft.jvp(fun, operands, direction)
    (numerical,) = central_difference(fun, operands, direction, 1e-6)
    np.testing.assert_allclose(pushed, numerical, rtol=2e-6, atol=2e-6)
    ct = rng.standard_normal(out.shape)
    pulled = ft.vjp(fun, *operands)[1]((ct,))
    backward = sum(float(np.sum(a * b)) for a, b in zip(pulled, direction, strict=True))
    assert backward == pytest.approx(float(np.sum(ct * pushed)), rel=1e-10, abs=1e-12)


@each(("case", "method"), EACH, by="method")
def test_second_derivatives(case: Case, method: str) -> None:
    operands, function = _operands(case, method), getattr(getattr(ours, case.name), method)

    def gradient(*xs: Any) -> Any:
        return ft.grad(lambda *ys: np.sum(function(*ys)), tuple(range(len(xs))))(*xs)

    rng = np.random.default_rng(6)
    direction = tuple(np.asarray(rng.standard_normal(x.shape)) for x in operands)
    found = ft.jvp(gradient, operands, direction)[1]
    numerical = central_difference(gradient, operands, direction, 1e-5)
    for one, other in zip(found, numerical, strict=True):
        scale = max(1.0, float(np.max(np.abs(other))))
        np.testing.assert_allclose(one / scale, other / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.outside], ids=lambda c: c.name)
def test_outside_the_support(case: Case) -> None:
    distribution, points = getattr(ours, case.name), np.array(case.outside)
    expected = getattr(theirs, case.name)
    rest = _operands(case, "pdf")[1:]
    for method in ("logpdf", "pdf", "cdf", "sf"):
        if _has(distribution, method):
            function = getattr(distribution, method)
            np.testing.assert_array_equal(
                function(points, *rest), getattr(expected, method)(points, *rest)
            )
    # Together with points inside: derivatives are finite, and those outside are 0.
    both = np.concatenate([points, np.array(case.points)])
    slopes = ft.grad(lambda x, *p: np.sum(distribution.pdf(x, *p)), tuple(range(1 + len(rest))))(
        both, *rest
    )
    assert all(np.isfinite(slope).all() for slope in slopes)
    np.testing.assert_array_equal(slopes[0][: len(points)], 0)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_single_precision_names_and_bad_parameters(case: Case) -> None:
    distribution = getattr(ours, case.name)
    x, *rest = (x.astype(np.float32) for x in _operands(case, "pdf"))
    value = distribution.logpdf(x, *rest)
    assert value.dtype == np.float32
    wide = distribution.logpdf(*_operands(case, "pdf"))
    np.testing.assert_allclose(value, wide, rtol=2e-4, atol=2e-5)
    named = dict(zip(distribution.shapes, rest, strict=False))
    np.testing.assert_array_equal(
        distribution.logpdf(x, **named, scale=rest[-1], loc=rest[-2]), value
    )
    assert np.isnan(distribution.logpdf(*_operands(case, "pdf")[:-1], -1.0)).all()
    assert np.isnan(distribution.logpdf(np.nan, *_operands(case, "pdf")[1:]))
    with pytest.raises(TypeError, match=r"argument 'wrong' is unknown; it takes \(x, "):
        distribution.pdf(x, *rest[:-2], wrong=1.0)
    with pytest.raises(TypeError, match=r"expected .* at most"):
        distribution.pdf(x, *rest, 1.0)
    assert repr(distribution) == f"functrans.scipy.stats.{case.name}"


def test_what_has_no_formula_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"vonmises\.cdf has no formula"):
        ours.vonmises.cdf(0.5, 1.0)
    with pytest.raises(UnsupportedOperationError, match=r"skewnorm\.ppf has no formula"):
        ours.skewnorm.ppf(0.5, 1.0)
    with pytest.raises(UnsupportedOperationError, match=r"zipf\.cdf has no formula"):
        ours.zipf.cdf(2, 1.5)
    with pytest.raises(TypeError, match="missing a; it takes"):
        ours.gamma.pdf(1.0)


def test_quantiles_at_the_ends() -> None:
    q = np.array([0.0, 1.0, -0.1, 1.1])
    for name, shapes in (("norm", ()), ("gamma", (2.0,)), ("beta", (2.0, 3.0)), ("pareto", (2.0,))):
        for method in ("ppf", "isf"):
            found = getattr(getattr(ours, name), method)(q, *shapes, 1.0, 2.0)
            expected = getattr(getattr(theirs, name), method)(q, *shapes, 1.0, 2.0)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["norm", "t", "cauchy", "laplace", "logistic", "gennorm"])
def test_slopes_at_the_median(name: str) -> None:
    shapes = {"t": (3.4,), "gennorm": (1.4,)}.get(name, ())
    distribution = getattr(ours, name)
    for method, sign in (("ppf", 1.0), ("isf", -1.0)):
        slope = ft.grad(lambda q, method=method: getattr(distribution, method)(q, *shapes))(0.5)
        np.testing.assert_allclose(slope, sign / distribution.pdf(0.0, *shapes), rtol=1e-12)


def test_tails_keep_their_digits() -> None:
    for name, x in (("norm", 30.0), ("logistic", 300.0), ("gumbel_l", 3.0), ("expon", 500.0)):
        for method in ("logsf", "sf"):
            found = getattr(getattr(ours, name), method)(x)
            expected = getattr(getattr(theirs, name), method)(x)
            np.testing.assert_allclose(found, expected, rtol=1e-11)
    found = ours.truncnorm.logpdf(np.array([9.5, 11.0]), 9.0, 12.0)
    expected = theirs.truncnorm.logpdf(np.array([9.5, 11.0]), 9.0, 12.0)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert np.isfinite(ft.grad(lambda a: ours.truncnorm.logpdf(9.5, a, 12.0))(9.0))


# integers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "method"), EACH_COUNT)
def test_counts(case: Case, method: str) -> None:
    k = np.array([*case.points, *case.outside])
    shapes = tuple(map(np.float64, case.shapes))
    function = getattr(getattr(ours, case.name), method)
    found = function(k + 2, *shapes, loc=2)
    with np.errstate(divide="ignore"):
        expected = getattr(getattr(theirs, case.name), method)(k + 2, *shapes, loc=2)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ft.jit(function)(k, *shapes), function(k, *shapes), rtol=1e-12)
    moving = case.moving if case.moving is not None else tuple(range(len(shapes)))
    inside = np.array(case.points)

    def total(*values: Any) -> Any:
        given = list(shapes)
        for i, value in zip(moving, values, strict=True):
            given[i] = value
        out = function(inside, *given)
        return np.sum(np.where(np.isfinite(out), out, 0.0))

    if moving:
        ft.check_grads(total, tuple(shapes[i] for i in moving), order=2, rtol=2e-5, eps=1e-5)


def test_counts_with_bad_parameters_are_nan() -> None:
    assert np.isnan(ours.poisson.logpmf(1, -1.0))
    assert np.isnan(ours.binom.pmf(1, 2.5, 0.5))
    assert np.isnan(ours.binom.pmf(1, 2, 1.5))


# vectors ----------------------------------------------------------------------------------------

X = np.array([[0.3, -1.2], [0.8, 0.1], [2.0, 1.5]])
MEAN = np.array([0.1, 0.4])
COV = np.array([[1.5, 0.4], [0.4, 0.9]])
SHARES = np.array([0.2, 0.5, 0.3])


def _symmetric(a: Any) -> Any:
    return (a + a.T) / 2


VECTORS = (
    ("multivariate_normal", "logpdf", (X, MEAN, COV), (0, 1, 2)),
    ("multivariate_normal", "pdf", (X, MEAN, COV), (0, 1, 2)),
    ("multivariate_t", "logpdf", (X, MEAN, COV, 3.5), (0, 1, 2, 3)),
    ("multivariate_t", "pdf", (X, MEAN, COV, 3.5), (0, 1, 2, 3)),
    ("dirichlet", "logpdf", (SHARES, np.array([1.5, 0.7, 2.2])), (1,)),
    ("dirichlet", "pdf", (SHARES[:2], np.array([1.5, 0.7, 2.2])), (0, 1)),
    ("multinomial", "logpmf", (np.array([[1, 2, 3], [0, 6, 0]]), 6, SHARES), (2,)),
    ("multinomial", "pmf", (np.array([[1, 2, 3], [0, 6, 0]]), 6, SHARES), (2,)),
    ("wishart", "logpdf", (COV + np.eye(2), 3.5, COV), (0, 1, 2)),
    ("wishart", "pdf", (COV + np.eye(2), 3.5, COV), (0, 1, 2)),
)  # fmt: skip


@pytest.mark.parametrize(("name", "method", "operands", "moving"), VECTORS)
def test_vectors(name: str, method: str, operands: Any, moving: tuple[int, ...]) -> None:
    function = getattr(getattr(ours, name), method)
    expected = getattr(getattr(theirs, name), method)(*operands)
    np.testing.assert_allclose(function(*operands), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(function)(*operands), expected, rtol=1e-12)

    def fun(*values: Any) -> Any:
        given = list(operands)
        for i, value in zip(moving, values, strict=True):
            is_matrix = np.shape(given[i]) == (2, 2)
            given[i] = _symmetric(value) if is_matrix else value
        return function(*given)

    ft.check_grads(fun, tuple(np.float64(operands[i]) for i in moving), order=2, rtol=1e-4)


def test_diagonal_covariances() -> None:
    found = ours.multivariate_normal.logpdf(X, MEAN, np.array([1.5, 0.9]))
    np.testing.assert_allclose(found, theirs.multivariate_normal.logpdf(X, MEAN, [1.5, 0.9]))
    np.testing.assert_allclose(
        ours.multivariate_normal.entropy(MEAN, COV), theirs.multivariate_normal.entropy(MEAN, COV)
    )
    with pytest.raises(ShapeError, match=r"the scale has shape \(3, 3\), expected \(2, 2\)"):
        ours.multivariate_normal.logpdf(X, MEAN, np.eye(3))
    with pytest.raises(ShapeError, match=r"mean has shape \(3,\)"):
        ours.multivariate_normal.logpdf(X, np.zeros(3), COV)
    with pytest.raises(ShapeError, match="dirichlet: x has shape"):
        ours.dirichlet.logpdf(SHARES, np.ones(5))
    with pytest.raises(ShapeError, match="wishart: x and scale must be square"):
        ours.wishart.logpdf(COV, 3.0, np.eye(3))


@pytest.mark.parametrize("method", [None, "silverman", 0.4])
@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.5, 1.5])])
def test_densities_of_samples(method: Any, weights: Any) -> None:
    data = np.array([[0.1, 1.2, -0.4, 2.2], [0.5, 0.1, 0.9, -1.0]])
    points = np.array([[0.3, 0.9, 5.0], [0.2, -0.4, 1.0]])
    found = ours.gaussian_kde(data, method, weights)
    expected = theirs.gaussian_kde(data, method, weights)
    np.testing.assert_allclose(found.logpdf(points), expected.logpdf(points), rtol=1e-12)
    np.testing.assert_allclose(found(points), expected(points), rtol=1e-10)
    ft.check_grads(
        lambda data, points: ours.gaussian_kde(data, method, weights).logpdf(points),
        (data, points), rtol=1e-4,
    )  # fmt: skip
    line, whole = ours.gaussian_kde(data[0]), theirs.gaussian_kde(data[0])
    np.testing.assert_allclose(
        line.integrate_box_1d(-0.5, 1.0), whole.integrate_box_1d(-0.5, 1.0), rtol=1e-12
    )


def test_densities_of_samples_refuse() -> None:
    with pytest.raises(ValueError, match="expected 2 or more"):
        ours.gaussian_kde(np.ones(1))
    with pytest.raises(ValueError, match="bw_method must be"):
        ours.gaussian_kde(np.arange(3.0), "other")
    with pytest.raises(ShapeError, match=r"points of shape \(3, 2\), expected \(1, m\)"):
        ours.gaussian_kde(np.arange(3.0)).logpdf(np.ones((3, 2)))
    with pytest.raises(ShapeError, match="for one variable"):
        ours.gaussian_kde(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 0.5]])).integrate_box_1d(0, 1)


# summaries --------------------------------------------------------------------------------------

A = np.array([[0.5, 1.2, 3.0], [2.0, 0.7, 1.1], [1.4, 2.2, 0.3], [0.9, 1.0, 4.0]])

SUMMARIES = (
    ("moment", {"order": 3}), ("sem", {}), ("sem", {"axis": None}), ("zscore", {}),
    ("zscore", {"axis": 1, "ddof": 1}), ("zscore", {"axis": None}), ("skew", {}),
    ("skew", {"bias": False}), ("kurtosis", {}), ("kurtosis", {"bias": False, "axis": None}),
    ("kurtosis", {"fisher": False}), ("gmean", {}), ("gmean", {"axis": None}), ("hmean", {}),
    ("entropy", {}), ("entropy", {"base": 2, "axis": 1}),
)  # fmt: skip


@pytest.mark.parametrize(("name", "options"), SUMMARIES)
def test_summaries(name: str, options: dict[str, Any]) -> None:
    function = getattr(ours, name)
    expected = getattr(theirs, name)(A, **options)
    np.testing.assert_allclose(function(A, **options), expected, rtol=1e-12, atol=1e-14)
    compiled = ft.jit(lambda a: function(a, **options))(A)
    np.testing.assert_allclose(compiled, expected, rtol=1e-12, atol=1e-14)
    ft.check_grads(lambda a: function(a, **options), (A,))
    assert function(A.astype(np.float32), **options).dtype == np.float32


def test_summaries_of_two() -> None:
    np.testing.assert_allclose(ours.pmean(A, 2.5), theirs.pmean(A, 2.5))
    np.testing.assert_allclose(ours.entropy(A, A[::-1]), theirs.entropy(A, A[::-1]))
    np.testing.assert_allclose(ours.zmap(A[0], A), theirs.zmap(A[0], A))
    ft.check_grads(lambda a, p: ours.pmean(a, p), (A, 2.5))
    ft.check_grads(ours.entropy, (A, A[::-1].copy()))
    ft.check_grads(lambda s, a: ours.zmap(s, a), (A[0].copy(), A))
    with pytest.raises(ValueError, match="base must be positive, got -1"):
        ours.entropy(A, base=-1)


@pytest.mark.parametrize("name", ["multivariate_normal", "multivariate_t"])
@pytest.mark.parametrize("mean", [0.5, np.array([0.5])])
@pytest.mark.parametrize("scale", [2.0, np.array([[2.0]])])
def test_numbers_as_parameters_mean_one_variable(name: str, mean: Any, scale: Any) -> None:
    one, other = getattr(ours, name), getattr(theirs, name)
    for x in (np.float64(0.3), np.array([0.3, -1.0, 2.0]), np.array([[0.3], [1.5]])):
        expected = other.logpdf(x, mean, scale)
        found = ft.jit(lambda x: one.logpdf(x, mean, scale))(x)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected)
    with pytest.raises(ShapeError, match=r"one variable; give points of shape \(..., 1\)"):
        one.logpdf(np.ones((2, 3)), mean, scale)


def test_f_at_both_ends() -> None:
    for x in (1e-18, 1e-9, 0.5, 3.0, 1e9, 1e18):
        with mp.workdps(40):
            a, b, z = mp.mpf(1.25), mp.mpf(2.25), mp.mpf(2.5) * mp.mpf(x)
            lower = mp.betainc(a, b, 0, z / (z + 4.5), regularized=True)
            upper = mp.betainc(b, a, 0, 4.5 / (z + 4.5), regularized=True)
        assert ours.f.cdf(x, 2.5, 4.5) == pytest.approx(float(lower), rel=1e-12, abs=0)
        assert ours.f.sf(x, 2.5, 4.5) == pytest.approx(float(upper), rel=1e-12, abs=0)
        assert ft.grad(ours.f.logcdf)(x, 2.5, 4.5) == pytest.approx(
            ours.f.pdf(x, 2.5, 4.5) / float(lower), rel=1e-9, abs=0
        )
        for probability, quantile in ((lower, ours.f.ppf), (upper, ours.f.isf)):
            if probability < 0.9:
                assert quantile(float(probability), 2.5, 4.5) == pytest.approx(x, rel=1e-10, abs=0)


def test_power_mean_of_exponent_zero_is_the_geometric_one() -> None:
    a = np.array([[1.0, 4.0], [2.0, 9.0]])
    np.testing.assert_allclose(ft.jit(lambda a: ours.pmean(a, 0))(a), theirs.pmean(a, 0))


def test_methods_have_signatures_with_the_parameters() -> None:
    def text(method: Any) -> str:
        return str(inspect.signature(method))

    assert text(ours.gamma.logpdf) == "(x, a, loc=0, scale=1)"
    assert text(ours.beta.ppf) == "(q, a, b, loc=0, scale=1)"
    assert text(ours.norm.sf) == "(x, loc=0, scale=1)"
    assert text(ours.hypergeom.pmf) == "(k, M, n, N, loc=0)"
    assert ours.gamma.logpdf.__qualname__ == "gamma.logpdf"
    assert ours.gamma.logpdf.__doc__.startswith("The logarithm of the density")


def test_documentation_names_parameters_and_methods_with_formulas() -> None:
    text = ours.betabinom.__doc__
    assert "``n``, ``a``, ``b``" in text
    assert "logpmf(k, n, a, b, loc=0)" in text
    assert "cdf(" not in text
    assert "log_mass" not in dir(ours.betabinom)
    assert {"logpmf", "pmf", "name", "shapes"} <= set(dir(ours.betabinom))
    for distribution in (ours.gamma, ours.poisson):
        page = pydoc.plain(pydoc.render_doc(distribution))
        assert "log_density" not in page
        assert "*args" not in page


def test_documented_methods_work_and_others_refuse() -> None:
    plain = {"a": 1.5, "b": 2.0, "n": 4.0, "p": 0.4, "mu": 1.2, "M": 9.0, "N": 3.0}
    for name in ("gamma", "beta", "gennorm", "poisson", "betabinom", "zipf"):
        distribution = getattr(ours, name)
        shapes = [plain.get(name, 1.5) for name in distribution.shapes]
        for method in set(dir(distribution)) - {"name", "shapes"}:
            if f"  {method}(" in distribution.__doc__:
                assert not np.isnan(getattr(distribution, method)(0.5, *shapes))
            else:
                with pytest.raises(ft.errors.UnsupportedOperationError, match=method):
                    getattr(distribution, method)(0.5, *shapes)


def test_harmonic_mean_with_a_zero() -> None:
    """Near a single zero ``x`` the mean of ``n`` numbers is ``n x``."""
    assert ours.hmean(np.array([0.0, 1.0, 2.0])) == 0
    slope = ft.grad(lambda a: ours.hmean(a))
    np.testing.assert_array_equal(slope(np.array([1.0, 0.0, 2.0])), [0, 3, 0])
    np.testing.assert_array_equal(slope(np.array([0.0, 0.0, 2.0])), [0, 0, 0])
    weighted = ft.grad(lambda a: ours.hmean(a, weights=np.array([1.0, 3.0])))
    np.testing.assert_allclose(weighted(np.array([0.0, 2.0])), [4, 0])
    check_grads(lambda a: ours.hmean(a), (np.array([1.0, 1.0, 2.0]),), order=2)
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    for options in ({"axis": None}, {"axis": -1}, {"axis": None, "weights": table}):
        found = ft.jit(lambda a, options=options: ours.hmean(a, **options))(table)
        np.testing.assert_allclose(found, theirs.hmean(table, **options))


def test_densities_at_the_ends_of_supports_are_scipys():
    """Limits, also at infinity, where SciPy says NaN; it says 0 of powerlaw at 0."""
    found = []
    for distribution in CONTINUOUS:
        name = distribution.name
        if name == "powerlaw":
            continue
        expected = getattr(theirs, name)
        for shapes in itertools.product((0.4, 1.0, 2.0), repeat=expected.numargs):
            ends = expected.support(*shapes)
            for method, x in itertools.product(("pdf", "logpdf", "cdf", "sf"), ends):
                with np.errstate(all="ignore"):
                    if np.isnan(x) or not hasattr(distribution, method):
                        continue
                    try:
                        a = getattr(distribution, method)(x, *shapes)
                    except UnsupportedOperationError:
                        continue
                    b = getattr(expected, method)(x, *shapes)
                if np.isinf(x) and np.isnan(b):
                    b = {"pdf": 0.0, "logpdf": -np.inf}.get(method, b)
                if not np.allclose(a, b, rtol=1e-8, equal_nan=True):
                    found.append(f"{name}.{method}({x}, {shapes}): {a}, {b} in SciPy")
    assert not found


@pytest.mark.parametrize(
    ("y", "a", "expected"),
    [
        (-0.5, 1.0, -2.35182352319),
        (-1.0, 4.0, -14.0164413569),
        (-1.0, 20.0, -210.64184676),
        (-3.0, 4.0, -84.0810302099),
        (-8.0, 4.0, -553.525926281),
        (-30.0, 1.0, -908.642487913),
    ],
)
def test_tails_of_skewnorm(y, a, expected):
    """By quadrature with 60 digits; the slope is density by distribution function."""
    distribution = ours.skewnorm
    for value in (distribution.logcdf(y, a), distribution.logsf(-y, -a)):
        np.testing.assert_allclose(value, expected, rtol=1e-11)
    slope = np.exp(distribution.logpdf(y, a) - distribution.logcdf(y, a))
    np.testing.assert_allclose(ft.grad(distribution.logcdf)(y, a), slope, rtol=1e-11)
    np.testing.assert_allclose(distribution.cdf(y, a), np.exp(expected), rtol=1e-8)
    check_grads(distribution.logcdf, (y, a), order=2, rtol=1e-4)


# ends and tails -----------------------------------------------------------------------------------

DENSITIES = [
    pytest.param(distribution, shapes, id=f"{distribution.name}-{'-'.join(map(str, shapes))}")
    for distribution in CONTINUOUS
    for shapes in itertools.product((1.0, 1.5, 2.0, 3.0, 4.0), repeat=len(distribution.shapes))
]


@each(("distribution", "shapes"), DENSITIES)
def test_slopes_of_densities_at_the_ends_are_those_from_inside(distribution, shapes):
    """Where the density is finite; a slope that has no limit is infinite, with the right sign."""
    slope = ft.grad(distribution.pdf)
    ends = map(float, getattr(theirs, distribution.name).support(*shapes))
    for end, step in zip(ends, (1, -1), strict=True):
        if not np.isfinite(end) or np.isinf(distribution.pdf(end, *shapes)):
            continue
        found = slope(end, *shapes)
        near, nearer = (slope(end + step * h, *shapes) for h in (1e-6, 1e-9))
        if abs(near - nearer) < 1e-4 * (1 + abs(nearer)):
            if not distribution.is_open:
                assert abs(found - nearer) < 1e-4 * (1 + abs(nearer))
        elif abs(nearer) > abs(near) and not distribution.is_open:
            assert np.isinf(found)
            assert np.sign(found) == np.sign(nearer)
        else:
            assert abs(found) < 1e-3


FAR = np.array([-np.inf, np.inf, -1e200, 1e200, -1e30, 1e30, -1e5, 1e5, -800.0, 800.0, -90.0, 90.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("distribution", "shapes"), DENSITIES[::5])
def test_far_out_derivatives_are_numbers(distribution, shapes, dtype):
    if np.isnan(getattr(theirs, distribution.name).pdf(0.5, *shapes)):
        pytest.skip("there is no such distribution")
    with np.errstate(all="ignore"):
        points = FAR.astype(dtype)
        args = [points, *(np.full(FAR.shape, s, dtype) for s in (*shapes, 0.0, 1.0))]
        for method in ("pdf", "cdf", "sf"):
            function = getattr(distribution, method)
            try:
                value = function(*args)
            except UnsupportedOperationError:
                continue
            assert not np.isnan(value).any()
            for slope in ft.vjp(function, *args)[1](np.ones_like(value)):
                assert not np.isnan(slope).any()
            assert not np.isnan(ft.jvp(function, args, [np.ones_like(x) for x in args])[1]).any()


def test_counts_at_the_ends_of_their_parameters():
    """Polynomials in the parameter: ``mu``, ``3 p (1 - p)**2``, ``(1 - p) p``, ``p``."""
    for function, at, first, second in (
        (lambda p: ours.poisson.pmf(1, p), 0.0, 1.0, -2.0),
        (lambda p: ours.poisson.pmf(2, p), 0.0, 0.0, 1.0),
        (lambda p: ours.poisson.pmf(0, p), 0.0, -1.0, 1.0),
        (lambda p: ours.binom.pmf(1, 3, p), 0.0, 3.0, -12.0),
        (lambda p: ours.binom.pmf(2, 3, p), 1.0, -3.0, -12.0),
        (lambda p: ours.geom.pmf(2, p), 1.0, -1.0, -2.0),
        (lambda p: ours.bernoulli.pmf(1, p), 0.0, 1.0, 0.0),
        (lambda p: ours.bernoulli.pmf(0, p), 1.0, -1.0, 0.0),
        (lambda p: ours.nbinom.pmf(1, 2.0, p), 1.0, -2.0, -8.0),
    ):
        for transform in (lambda f: f, ft.jit):
            np.testing.assert_allclose(transform(ft.grad(function))(at), first, atol=1e-15)
            np.testing.assert_allclose(transform(ft.hessian(function))(at), second, atol=1e-14)


@pytest.mark.parametrize("beta", [0.7, 1.0, 1.5, 2.0, 3.0, 4.0])
def test_gennorm_at_its_centre(beta):
    """The slope of the distribution function is the density, in ``beta`` it is 0."""
    density = ours.gennorm.pdf(0.0, beta)
    for method, sign in (("cdf", 1), ("sf", -1)):
        in_x, in_beta = ft.grad(getattr(ours.gennorm, method), (0, 1))(0.0, beta)
        np.testing.assert_allclose([in_x, in_beta], [sign * density, 0], rtol=1e-12)
        np.testing.assert_allclose(
            ft.grad(getattr(ours.gennorm, f"log{method}"))(0.0, beta), sign * 2 * density
        )
    # On both sides of the place where the power series ends.
    x = (1e-5 * np.array([0.999999, 1.000001])) ** (1 / beta)
    for points in (x, -x):
        below, above = (ours.gennorm.cdf(p, beta) for p in points)
        np.testing.assert_allclose(above - below, density * (points[1] - points[0]), 1e-4, 1e-16)
        slopes = [ft.grad(ours.gennorm.cdf)(p, beta) for p in points]
        np.testing.assert_allclose(slopes, ours.gennorm.pdf(points, beta), rtol=1e-10)
        bends = [ft.grad(ft.grad(ours.gennorm.cdf))(p, beta) for p in points]
        np.testing.assert_allclose(
            bends, [ft.grad(ours.gennorm.pdf)(p, beta) for p in points], rtol=1e-8
        )


def test_gennorm_has_the_derivatives_of_its_polynomials_at_its_centre():
    for beta, order, expected in ((2.0, 2, -2.0), (4.0, 4, -24.0), (4.0, 2, 0.0)):
        function = ours.gennorm.logpdf
        for _ in range(order):
            function = ft.grad(function)
        assert function(0.0, beta) == expected


def test_the_tail_of_skewnorm_far_out():
    """The logarithm is that of the density over the slope of its exponent, and 1 / y**2 of it."""
    for y in (-1e4, -1e8, -1e150):
        expected = ours.skewnorm.logpdf(y, 3.0) - np.log(-10 * y)
        np.testing.assert_allclose(ours.skewnorm.logcdf(y, 3.0), expected, rtol=1e-13)
        np.testing.assert_allclose(ft.grad(ours.skewnorm.logcdf)(y, 3.0), -10 * y, rtol=1e-7)


@pytest.mark.parametrize("case", [*CASES, *COUNTS], ids=lambda case: case.name)
def test_scipys_frozen_distributions_of_outside(case: Case) -> None:
    """A model refers to a prior that was made before; its methods are functions themselves."""
    is_continuous = case in CASES
    parameters = (*case.shapes, LOC, SCALE) if is_continuous else case.shapes
    frozen = getattr(theirs, case.name)(*parameters)
    points = np.array(case.points)
    has_cdf = is_continuous and case.name not in ("vonmises", "wrapcauchy")
    for name in ("logpdf" if is_continuous else "logpmf", "cdf")[: 1 + has_cdf]:
        method = getattr(frozen, name)
        expected = method(points)
        assert_close(ft.jit(method)(points), expected, "method", rtol=1e-10)
        assert_close(ft.vmap(method)(points), expected, "batch", rtol=1e-10)
        if not is_continuous:
            continue
        own = getattr(getattr(ours, case.name), name)
        slopes = ft.grad(lambda x, own=own: np.sum(own(x, *parameters)))(points)
        found = ft.grad(lambda x, name=name: np.sum(getattr(frozen, name)(x)))(points)
        assert_close(found, slopes, "derivative", rtol=1e-12)


@pytest.mark.parametrize(
    ("frozen", "point"),
    [
        (theirs.multivariate_normal([0.1, 0.2], [[1.5, 0.2], [0.2, 0.7]]), [0.4, -0.3]),
        (theirs.multivariate_t([0.1, 0.2], [[1.5, 0.2], [0.2, 0.7]], df=3.2), [0.4, -0.3]),
        (theirs.dirichlet([0.7, 1.4, 2.2]), [0.2, 0.5, 0.3]),
        (theirs.wishart(3, [[1.5, 0.2], [0.2, 0.7]]), [[1.1, 0.1], [0.1, 0.4]]),
        (theirs.gaussian_kde([0.1, 0.4, 0.9, 2.0], 0.3, [1, 2, 1, 1]), [0.4]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_scipys_frozen_distributions_of_several_variables(frozen: Any, point: Any) -> None:
    point = np.array(point)
    expected = frozen.logpdf(point)
    assert_close(ft.jit(frozen.logpdf)(point), expected, "method", rtol=1e-10)
    assert_close(ft.jit(lambda x: frozen.logpdf(x))(point), expected, "object", rtol=1e-10)
    if type(frozen).__name__ != "dirichlet_frozen":  # whose points add up to 1
        check_grads(lambda x: np.sum(frozen.logpdf(x)), (point,), 2)
