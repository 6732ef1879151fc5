"""Samples against the distributions that they come from, and their derivatives."""

import numpy as np
import pytest

import functrans as ft
from functrans import random
from scipy import special, stats

N = 20_000

CONTINUOUS = {
    "uniform": (lambda k, **o: random.uniform(k, N, **o), stats.uniform()),
    "normal": (lambda k, **o: random.normal(k, N, **o), stats.norm()),
    "exponential": (lambda k, **o: random.exponential(k, N, **o), stats.expon()),
    "laplace": (lambda k, **o: random.laplace(k, N, **o), stats.laplace()),
    "logistic": (lambda k, **o: random.logistic(k, N, **o), stats.logistic()),
    "gumbel": (lambda k, **o: random.gumbel(k, N, **o), stats.gumbel_r()),
    "cauchy": (lambda k, **o: random.cauchy(k, N, **o), stats.cauchy()),
    "maxwell": (lambda k, **o: random.maxwell(k, N, **o), stats.maxwell()),
    "double_sided_maxwell": (
        lambda k, **o: np.abs(random.double_sided_maxwell(k, 1.5, 2.0, N, **o) - 1.5),
        stats.maxwell(scale=2),
    ),
    "rayleigh": (lambda k, **o: random.rayleigh(k, 2.0, N, **o), stats.rayleigh(scale=2)),
    "pareto": (lambda k, **o: random.pareto(k, 2.0, N, **o), stats.pareto(2)),
    "weibull_min": (
        lambda k, **o: random.weibull_min(k, 2.0, 1.5, N, **o), stats.weibull_min(1.5, scale=2)
    ),
    "lognormal": (lambda k, **o: random.lognormal(k, 0.5, N, **o), stats.lognorm(0.5)),
    "triangular": (
        lambda k, **o: random.triangular(k, 0.0, 0.5, 2.0, N, **o), stats.triang(0.25, scale=2)
    ),
    "wald": (lambda k, **o: random.wald(k, 2.0, N, **o), stats.invgauss(2.0)),
    "truncated_normal": (
        lambda k, **o: random.truncated_normal(k, 1.0, 2.0, N, **o), stats.truncnorm(1, 2)
    ),
    "truncated_normal, left": (
        lambda k, **o: random.truncated_normal(k, -np.inf, -1.0, N, **o),
        stats.truncnorm(-np.inf, -1),
    ),
    "gamma 0.3": (lambda k, **o: random.gamma(k, 0.3, N, **o), stats.gamma(0.3)),
    "gamma 2.5": (lambda k, **o: random.gamma(k, 2.5, N, **o), stats.gamma(2.5)),
    "gamma 1000": (lambda k, **o: random.gamma(k, 1000.0, N, **o), stats.gamma(1000)),
    "beta": (lambda k, **o: random.beta(k, 2.0, 0.5, N, **o), stats.beta(2, 0.5)),
    "chisquare": (lambda k, **o: random.chisquare(k, 3.0, N, **o), stats.chi2(3)),
    "t": (lambda k, **o: random.t(k, 3.0, N, **o), stats.t(3)),
    "f": (lambda k, **o: random.f(k, 3.0, 4.0, N, **o), stats.f(3, 4)),
    "generalized_normal": (
        lambda k, **o: random.generalized_normal(k, 1.5, N, **o), stats.gennorm(1.5)
    ),
    "generalized_normal, flat": (
        lambda k, **o: random.generalized_normal(k, np.inf, N, **o), stats.uniform(-1, 2)
    ),
    "ball, cube": (
        lambda k, **o: random.ball(k, 3, np.inf, N, **o)[:, 1], stats.uniform(-1, 2)
    ),
    "dirichlet": (
        lambda k, **o: random.dirichlet(k, np.array([1.0, 2.0, 3.0]), N, **o)[:, 1],
        stats.beta(2, 4),
    ),
    "ball": (
        lambda k, **o: np.sum(np.abs(random.ball(k, 4, 1.0, N, **o)), -1) ** 4, stats.uniform()
    ),
}  # fmt: skip

DISCRETE = {
    "geometric": (lambda k: random.geometric(k, 0.2, N), stats.geom(0.2)),
    "poisson 0.1": (lambda k: random.poisson(k, 0.1, N), stats.poisson(0.1)),
    "poisson 4": (lambda k: random.poisson(k, 4.0, N), stats.poisson(4)),
    "poisson 10": (lambda k: random.poisson(k, 10.0, N), stats.poisson(10)),
    "poisson 100": (lambda k: random.poisson(k, 100.0, N), stats.poisson(100)),
    "binomial 20": (lambda k: random.binomial(k, 20, 0.3, N), stats.binom(20, 0.3)),
    "binomial 25": (lambda k: random.binomial(k, 25, 0.45, N), stats.binom(25, 0.45)),
    "binomial 100": (lambda k: random.binomial(k, 100, 0.7, N), stats.binom(100, 0.7)),
    "binomial 1000": (lambda k: random.binomial(k, 1000, 0.3, N), stats.binom(1000, 0.3)),
    "randint": (lambda k: random.randint(k, N, -3, 9), stats.randint(-3, 9)),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, N).astype(int), stats.bernoulli(0.3)),
    "rademacher": (lambda k: (random.rademacher(k, N) + 1) // 2, stats.bernoulli(0.5)),
    "categorical": (
        lambda k: random.categorical(k, np.log([0.3, 0.5, 0.2]), shape=(N,)),
        stats.rv_discrete(values=([0, 1, 2], [0.3, 0.5, 0.2])),
    ),
    "choice": (
        lambda k: random.choice(k, np.array([5, 6, 7]), (N,), p=np.array([3, 5, 2.0])),
        stats.rv_discrete(values=([5, 6, 7], [0.3, 0.5, 0.2])),
    ),
    "multinomial": (
        lambda k: random.multinomial(k, 50, np.array([0.1, 0.6, 0.3]), (N, 3))[:, 1],
        stats.binom(50, 0.6),
    ),
}


def chi_square(sample, law):
    """The p value of the counts of those integers that are expected five times or more."""
    values = np.arange(int(law.ppf(1e-6)) - 1, int(law.ppf(1 - 1e-6)) + 2)
    expected = law.pmf(values) * len(sample)
    counts = np.array([(sample == value).sum() for value in values])
    assert counts.sum() == len(sample)
    often = expected >= 5
    counts = np.append(counts[often], counts[~often].sum())
    expected = np.append(expected[often], len(sample) - expected[often].sum())
    kept = expected > 1e-3
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    return stats.chi2.sf(statistic, kept.sum() - 1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_samples_have_their_distribution(name, dtype):
    draw, law = CONTINUOUS[name]
    sample = draw(random.key(11), dtype=dtype)
    assert sample.dtype == dtype
    assert stats.kstest(sample, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_samples_have_their_distribution(name):
    draw, law = DISCRETE[name]
    assert chi_square(draw(random.key(5)), law) > 1e-4


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_compiled_samples_are_the_same(name):
    draw, _ = {**CONTINUOUS, **DISCRETE}[name]
    key = random.key(2)
    expected, sample = draw(key), ft.jit(lambda k: draw(k))(key)
    if name in CONTINUOUS:
        np.testing.assert_allclose(sample, expected, rtol=1e-12, atol=1e-12)
    else:
        assert np.array_equal(sample, expected)


@pytest.mark.parametrize("draw", [
    lambda k: random.normal(k, 3),
    lambda k: random.gamma(k, 0.5, 3),
    lambda k: random.poisson(k, np.array([1.0, 30.0]), 2),
    lambda k: random.binomial(k, 40, np.array([0.01, 0.4]), 2),
    lambda k: random.permutation(k, 5),
    lambda k: random.choice(k, 6, (3,), replace=False),
    lambda k: random.dirichlet(k, np.ones(3)),
    lambda k: random.truncated_normal(k, -1.0, 1.0, 3),
    lambda k: random.orthogonal(k, 2),
])  # fmt: skip
def test_map_over_keys_is_one_key_after_the_other(draw):
    keys = random.split(random.key(8), 5)
    expected = np.stack([draw(key) for key in keys])
    np.testing.assert_allclose(ft.vmap(draw)(keys), expected, rtol=1e-12)


def test_float16():
    for name in ("normal", "uniform", "exponential", "laplace", "gumbel", "logistic"):
        sample = getattr(random, name)(random.key(0), 5000, np.float16)
        assert sample.dtype == np.float16
        assert np.isfinite(sample).all()
    assert random.gamma(random.key(0), np.float16(2.0), 7).dtype == np.float16


def test_parameters_give_shape_and_dtype():
    key = random.key(0)
    assert random.gamma(key, np.ones((2, 1), np.float32)).dtype == np.float32
    assert random.beta(key, np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert random.gamma(key, 3).dtype == np.float64
    assert random.gamma(key, np.ones(3), (0, 3)).shape == (0, 3)
    assert random.normal(key, (2, 0)).shape == (2, 0)
    assert random.dirichlet(key, np.ones((4, 3)), (2, 4)).shape == (2, 4, 3)


def test_invalid_parameters_end():
    key = random.key(0)
    for a in (0.0, -1.0, np.nan):
        assert np.isnan(random.gamma(key, a))
        assert np.isnan(ft.jit(random.gamma)(key, a))
    lam = np.array([-1.0, np.nan, 0.0, np.inf])
    assert random.poisson(key, lam).tolist() == [-1, -1, 0, np.iinfo(np.int64).max]
    n, p = np.array([-1, 5, 5, 5, 0]), np.array([0.5, np.nan, 0.0, 1.0, 0.5])
    assert random.binomial(key, n, p).tolist() == [-1, -1, 0, 5, 0]


# uniform and normal ------------------------------------------------------------------------------


def test_normal_quantile():
    u = np.concatenate([[2.0**-53], np.logspace(-15, -0.31, 200)])
    from functrans.random.uniform import normal_of

    np.testing.assert_allclose(normal_of(u - 0.5), special.ndtri((u - 0.5) + 0.5), rtol=2e-14)
    np.testing.assert_allclose(normal_of(0.5 - u), -special.ndtri(0.5 - (0.5 - u)), rtol=2e-14)


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("uint8", 0, 100),
        ("int8", -100, 100),
        ("uint16", 0, 60_000),
        ("uint32", 0, 3_000_000_000),
        ("int32", -(2**31), 2**30),
        ("int64", 0, 3 * 2**61),
        ("uint64", 5, 3 * 2**62),
    ],
)
def test_integers_below_any_end_are_equally_likely(dtype, low, high, compiled):
    """Spans at which the remainder of one word, or wrapped arithmetic, favours small numbers."""

    def draw(key):
        return random.randint(key, (40_000,), low, high, dtype)

    sample = (ft.jit(draw) if compiled else draw)(random.key(3))
    assert sample.dtype == dtype
    offsets = [int(n) - low for n in sample]
    assert min(offsets) >= 0
    assert max(offsets) < high - low
    counts = np.bincount([20 * n // (high - low) for n in offsets], minlength=20)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_narrow_integers_are_those_of_jax():
    """Written down from JAX 0.10: it draws narrow dtypes from 32 bits."""
    assert random.randint(random.key(42), (4,), 0, 100, np.uint8).tolist() == [44, 14, 71, 69]


def test_ends_that_are_traced_give_the_same_wide_integers():
    key, low, high = random.key(4), np.int64(-(2**62)), np.int64(2**61)
    expected = random.randint(key, (50,), -(2**62), 2**61)
    traced = ft.jit(lambda a, b: random.randint(key, (50,), a, b))(low, high)
    assert np.array_equal(traced, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_integers_of_the_whole_range(dtype):
    info = np.iinfo(dtype)
    sample = random.randint(random.key(1), N, info.min, int(info.max) + 1, dtype)
    assert sample.dtype == dtype
    scaled = (sample.astype(float) - float(info.min)) / (float(info.max) - float(info.min))
    assert abs(scaled.mean() - 0.5) < 0.01
    assert scaled.min() < 0.01
    assert scaled.max() > 0.99


def test_complex_normal():
    z = random.normal(random.key(0), N, np.complex64)
    assert z.dtype == np.complex64
    assert abs(np.mean(np.abs(z) ** 2) - 1) < 0.03
    assert abs(np.mean(z * z)) < 0.03


def test_far_tail_of_the_normal_distribution():
    z = random.truncated_normal(random.key(0), 50.0, np.inf, N)
    assert z.min() >= 50
    assert abs((z.mean() - 50) * 50 - 1) < 0.03


# arrays ------------------------------------------------------------------------------------------


def test_permutations():
    key = random.key(4)
    x = np.arange(12.0).reshape(3, 4)
    columns = random.permutation(key, x, 1)
    assert {tuple(c) for c in columns.T} == {tuple(c) for c in x.T}
    lanes = random.permutation(key, x, 1, independent=True)
    assert np.array_equal(np.sort(lanes, 1), x)
    assert (
        ft.grad(lambda x: np.sum(random.permutation(key, x)[0] ** 2))(x).sum()
        == 2 * x[random.permutation(key, 3)[0]].sum()
    )
    counts = np.zeros((4, 4))
    for k in random.split(key, 1000):
        counts[np.arange(4), random.permutation(k, 4)] += 1
    assert np.abs(counts / 1000 - 0.25).max() < 0.06


def test_choices_without_replacement_follow_the_weights():
    p = np.array([0.0, 0.1, 0.6, 0.3])
    picks = ft.vmap(lambda k: random.choice(k, 4, (3,), False, p))(random.split(random.key(3), N))
    assert np.array_equal(np.unique(np.sort(picks, 1), axis=0), [[1, 2, 3]])
    first = np.bincount(picks[:, 0], minlength=4) / N
    np.testing.assert_allclose(first, p, atol=0.015)
    x = np.arange(12.0).reshape(3, 4)
    assert random.choice(random.key(0), x, (2, 5), axis=1).shape == (3, 2, 5)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    x = random.multivariate_normal(random.key(0), mean, cov, N, method=method)
    np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.05)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_orthogonal(n, m, dtype):
    q = random.orthogonal(random.key(0), n, (5,), dtype, m)
    assert q.shape == (5, n, m)
    assert q.dtype == dtype
    gram = np.conj(np.swapaxes(q, 1, 2)) @ q if n >= m else q @ np.conj(np.swapaxes(q, 1, 2))
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(min(n, m)), gram.shape), atol=1e-5)


# derivatives -------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [1.0, 1.5, 20.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_derivative_of_gamma_is_that_of_the_quantile(a, seed):
    draw = lambda a: random.gamma(random.key(seed), a)  # noqa: E731
    p, step = special.gammainc(a, draw(a)), 1e-5 * a
    ends = special.gammaincinv(a + step, p), special.gammaincinv(a - step, p)
    assert ft.grad(draw)(a) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7)
    assert ft.jit(ft.grad(draw))(a) == pytest.approx(ft.grad(draw)(a), rel=1e-12)
    assert ft.jvp(draw, (a,), (2.0,))[1] == pytest.approx(2 * ft.grad(draw)(a), rel=1e-12)


@pytest.mark.parametrize("a", [0.03, 0.3, 0.9])
def test_derivative_below_one_is_at_constant_probability(a):
    """Of ``P(a, x) = x**a / Gamma(a + 1) M(1, a + 1, x) exp(-x)``, in logarithms."""
    draw = lambda a: random.loggamma(random.key(6), a, (40,))  # noqa: E731
    sample, slope = ft.jvp(draw, (a,), (1.0,))

    def log_probability(a, log_x):
        tiny = a * log_x - special.gammaln(a + 1) - np.exp(log_x) * a / (a + 1)
        with np.errstate(divide="ignore"):
            return np.where(log_x < -18, tiny, np.log(special.gammainc(a, np.exp(log_x))))

    step = 1e-6
    along_a = (log_probability(a + step, sample) - log_probability(a - step, sample)) / (2 * step)
    along_x = (log_probability(a, sample + step) - log_probability(a, sample - step)) / (2 * step)
    np.testing.assert_allclose(slope, -along_a / along_x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("draw", [
    lambda k: random.gamma(k, 0.7, 140_003),
    lambda k: random.poisson(k, 30.0, 140_003),
    lambda k: random.binomial(k, 100, 0.3, (7, 20_001)),
], ids=["gamma", "poisson", "binomial"])  # fmt: skip
def test_arrays_drawn_in_pieces(draw):
    """Larger than a piece, and no multiple of it."""
    keys = random.split(random.key(8), 2)
    expected = np.stack([draw(key) for key in keys])
    np.testing.assert_allclose(ft.jit(draw)(keys[0]), expected[0], rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(draw)(keys), expected, rtol=1e-12)
    flat = expected[0].ravel()
    law = stats.gamma(0.7) if flat.dtype == float else None
    if law is None:
        law = stats.poisson(30) if flat.size == 140_003 else stats.binom(100, 0.3)
        assert chi_square(flat, law) > 1e-4
        assert chi_square(flat[-20_000:], law) > 1e-4
    else:
        assert stats.kstest(flat, law.cdf).pvalue > 1e-4
        assert stats.kstest(flat[-20_000:], law.cdf).pvalue > 1e-4
    assert len(np.unique(flat[:1000])) > 10
    assert not np.array_equal(flat[:1000], flat[-1000:])


@pytest.mark.parametrize("a", [0.05, 0.3, 0.9, 3.0])
def test_derivative_of_the_mean_of_logarithms(a):
    """``E log x = digamma(a)``, and its variance is the derivative."""
    mean = lambda a: np.mean(random.loggamma(random.key(1), a, 4 * N))  # noqa: E731
    assert mean(a) == pytest.approx(special.digamma(a), rel=0.05)
    assert ft.grad(mean)(a) == pytest.approx(special.polygamma(1, a), rel=0.03)
    second = ft.grad(ft.grad(mean))(a)
    assert second == pytest.approx(special.polygamma(2, a), rel=0.1)


SMOOTH = {
    "uniform": lambda k, a, b: random.uniform(k, 5, minval=a, maxval=a + b),
    "rayleigh": lambda k, a, b: random.rayleigh(k, a, 5),
    "pareto": lambda k, a, b: random.pareto(k, a, 5),
    "weibull_min": lambda k, a, b: random.weibull_min(k, a, b, 5),
    "lognormal": lambda k, a, b: random.lognormal(k, a, 5),
    "triangular": lambda k, a, b: random.triangular(k, -a, 0.1, b, 5),
    "truncated_normal": lambda k, a, b: random.truncated_normal(k, a, a + b, 5),
    "multivariate_normal": lambda k, a, b: random.multivariate_normal(
        k, np.array([a, b], like=a), np.array([[a + 2, 0.3], [0.3, b]], like=a), 3
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_formulas(name):
    fun = lambda a, b: SMOOTH[name](random.key(7), a, b)  # noqa: E731
    ft.check_grads(fun, (0.8, 1.3), order=2)


def test_integers_have_no_derivative_and_do_not_stop_others():
    def fun(p):
        k = random.key(0)
        chosen = random.bernoulli(k, p, 4)
        count = random.poisson(k, p, 4) + random.binomial(k, 3, p, 4)
        return np.sum(np.where(chosen, p, 2 * p) * count)

    chosen, count = random.bernoulli(random.key(0), 0.4, 4), fun(0.4)
    assert chosen.dtype == bool
    assert ft.grad(fun)(0.4) == pytest.approx(count / 0.4)


def test_means_move_with_parameters():
    key = random.key(3)
    mean = lambda a, b: np.mean(random.beta(key, a, b, N))  # noqa: E731
    slope_a, slope_b = ft.grad(mean, (0, 1))(2.0, 3.0)
    assert slope_a == pytest.approx(3 / 25, rel=0.05)
    assert slope_b == pytest.approx(-2 / 25, rel=0.05)
