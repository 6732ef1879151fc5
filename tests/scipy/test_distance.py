"""Distances, lines and correlations: values of SciPy, derivatives of differences."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.spatial import distance as theirs

import functrans as ft
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.scipy import stats
from functrans.scipy.spatial import distance

RNG = np.random.default_rng(3)
X = RNG.uniform(0.2, 2.0, (5, 3))
Y = RNG.uniform(0.2, 2.0, (4, 3))
WEIGHTS = np.array([0.5, 2.0, 1.0])
SPREAD = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 3.0]])
METRICS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("euclidean", {}),
    ("euclidean", {"w": WEIGHTS}),
    ("sqeuclidean", {}),
    ("cityblock", {"w": WEIGHTS}),
    ("chebyshev", {}),
    ("minkowski", {"p": 3.0}),
    ("minkowski", {"p": 4.0, "w": WEIGHTS}),
    ("canberra", {}),
    ("braycurtis", {}),
    ("cosine", {}),
    ("correlation", {}),
    ("seuclidean", {}),
    ("seuclidean", {"V": WEIGHTS}),
    ("mahalanobis", {}),
    ("mahalanobis", {"VI": SPREAD}),
    ("jensenshannon", {}),
)


def _check(f: Any, x: Any, expected: Any) -> None:
    value, tangent = ft.jvp(f, (x,), (np.cos(np.arange(x.size).reshape(x.shape)),))
    np.testing.assert_allclose(value, expected, 1e-12, 1e-14)
    step = 1e-5 * np.cos(np.arange(x.size).reshape(x.shape))
    slope = (np.asarray(f(x + step)) - np.asarray(f(x - step))) / 2e-5
    np.testing.assert_allclose(tangent, slope, 1e-6, 1e-8)
    ft.testing.check_grads(f, (x,), order=2)


@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_distances_of_two_sets(metric: str, options: dict[str, Any]) -> None:
    def f(x: Any) -> Any:
        return distance.cdist(x, Y, metric, **options)

    _check(f, X, theirs.cdist(X, Y, metric, **options))


@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_distances_of_one_set(metric: str, options: dict[str, Any]) -> None:
    def f(x: Any) -> Any:
        return distance.pdist(x, metric, **options)

    _check(f, X, theirs.pdist(X, metric, **options))


@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_distances_of_two_vectors(metric: str, options: dict[str, Any]) -> None:
    if metric in ("seuclidean", "mahalanobis") and not options:
        options = {"seuclidean": {"V": WEIGHTS}, "mahalanobis": {"VI": SPREAD}}[metric]

    def f(u: Any) -> Any:
        return getattr(distance, metric)(u, Y[0], **options)

    _check(f, X[0], getattr(theirs, metric)(X[0], Y[0], **options))


def test_the_base_of_a_divergence() -> None:
    def f(u: Any) -> Any:
        return distance.jensenshannon(u, Y[0], 2.0)

    _check(f, X[0], theirs.jensenshannon(X[0], Y[0], 2.0))


def test_a_metric_may_be_a_function() -> None:
    def f(x: Any) -> Any:
        return distance.cdist(x, Y, lambda u, v: ((u - v) ** 4).sum())

    _check(f, X, theirs.cdist(X, Y, lambda u, v: ((u - v) ** 4).sum()))


def test_the_square_form_and_back() -> None:
    def f(x: Any) -> Any:
        matrix = distance.squareform(distance.pdist(x))
        return matrix @ matrix + distance.squareform(matrix).sum()

    matrix = theirs.squareform(theirs.pdist(X))
    _check(f, X, matrix @ matrix + theirs.pdist(X).sum())


def test_the_derivative_of_the_distance_of_a_vector_to_itself_is_0() -> None:
    gradient = ft.grad(lambda x: distance.cdist(x, x).sum())(X)
    assert np.isfinite(gradient).all()


def test_metrics_of_booleans_are_refused_and_plain_ones_are_those_of_scipy() -> None:
    with pytest.raises(UnsupportedOperationError, match="hamming"):
        ft.grad(lambda x: distance.cdist(x, Y, "hamming").sum())(X)
    np.testing.assert_array_equal(distance.cdist(X, Y, "hamming"), theirs.cdist(X, Y, "hamming"))


TIMES = np.array([0.0, 1.0, 2.0, 3.5, 4.0])
SAMPLE = np.array([0.3, 0.8, 2.6, 2.9, 4.4])


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_line_through_points(alternative: str) -> None:
    def f(y: Any) -> Any:
        found = stats.linregress(TIMES, y, alternative)
        return ft.numpy.asarray([*found, found.intercept_stderr])

    plain = scipy.stats.linregress(TIMES, SAMPLE, alternative)
    _check(f, SAMPLE, [*plain, plain.intercept_stderr])
    np.testing.assert_allclose(stats.linregress(TIMES, SAMPLE, alternative), plain)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_correlation_of_samples(alternative: str) -> None:
    def f(y: Any) -> Any:
        found = stats.pearsonr(TIMES, y, alternative=alternative)
        return ft.numpy.asarray([found.correlation, found.pvalue])

    plain = scipy.stats.pearsonr(TIMES, SAMPLE, alternative=alternative)
    _check(f, SAMPLE, [plain.statistic, plain.pvalue])


def test_samples_of_different_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="same length"):
        ft.grad(lambda y: stats.linregress(TIMES[:3], y).slope)(SAMPLE)
