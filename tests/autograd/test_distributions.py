"""``torch.distributions``: densities against SciPy's, derivatives against differences, samples."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import pickle

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.compat.torch import distributions as dist
from functrans.compat.torch.distributions import constraints, transforms
from functrans.compat.torch.distributions.sampling import dirichlet_slope
from functrans.random.gamma import log_gamma_slope
from scipy import integrate, special, stats

X = [0.2, 0.7]


def _t(x, requires_grad=False):
    return torch.tensor(np.asarray(x, np.float64), requires_grad=requires_grad)


UNIVARIATE = {
    "Normal": ({"loc": 0.3, "scale": 1.5}, lambda loc, scale: stats.norm(loc, scale)),
    "Laplace": ({"loc": 0.3, "scale": 1.5}, lambda loc, scale: stats.laplace(loc, scale)),
    "Cauchy": ({"loc": 0.3, "scale": 1.5}, lambda loc, scale: stats.cauchy(loc, scale)),
    "Gumbel": ({"loc": 0.3, "scale": 1.5}, lambda loc, scale: stats.gumbel_r(loc, scale)),
    "LogNormal": (
        {"loc": 0.3, "scale": 0.8},
        lambda loc, scale: stats.lognorm(scale, 0, np.exp(loc)),
    ),
    "HalfNormal": ({"scale": 1.5}, lambda scale: stats.halfnorm(0, scale)),
    "HalfCauchy": ({"scale": 1.5}, lambda scale: stats.halfcauchy(0, scale)),
    "StudentT": (
        {"df": 3.5, "loc": 0.3, "scale": 1.5},
        lambda df, loc, scale: stats.t(df, loc, scale),
    ),
    "Uniform": ({"low": -0.3, "high": 1.5}, lambda low, high: stats.uniform(low, high - low)),
    "Exponential": ({"rate": 1.5}, lambda rate: stats.expon(0, 1 / rate)),
    "Gamma": (
        {"concentration": 2.5, "rate": 1.5},
        lambda concentration, rate: stats.gamma(concentration, 0, 1 / rate),
    ),
    "Chi2": ({"df": 3.5}, lambda df: stats.chi2(df)),
    "InverseGamma": (
        {"concentration": 2.5, "rate": 1.5},
        lambda concentration, rate: stats.invgamma(concentration, 0, rate),
    ),
    "Beta": (
        {"concentration1": 2.5, "concentration0": 1.5},
        lambda concentration1, concentration0: stats.beta(concentration1, concentration0),
    ),
    "Weibull": (
        {"scale": 1.3, "concentration": 2.5},
        lambda scale, concentration: stats.weibull_min(concentration, 0, scale),
    ),
    "Pareto": ({"scale": 0.1, "alpha": 2.5}, lambda scale, alpha: stats.pareto(alpha, 0, scale)),
    "GeneralizedPareto": (
        {"loc": -0.1, "scale": 1.3, "concentration": 0.3},
        lambda loc, scale, concentration: stats.genpareto(concentration, loc, scale),
    ),
    "FisherSnedecor": ({"df1": 3.5, "df2": 6.5}, lambda df1, df2: stats.f(df1, df2)),
    "VonMises": (
        {"loc": 0.3, "concentration": 1.5},
        lambda loc, concentration: stats.vonmises(concentration, loc),
    ),
    "Poisson": ({"rate": 2.5}, lambda rate: stats.poisson(rate)),
    "Bernoulli": ({"probs": 0.3}, lambda probs: stats.bernoulli(probs)),
    "Geometric": ({"probs": 0.3}, lambda probs: stats.geom(probs, -1)),
    "Binomial": (
        {"total_count": 5.0, "probs": 0.3},
        lambda total_count, probs: stats.binom(total_count, probs),
    ),
    "NegativeBinomial": (
        {"total_count": 2.5, "probs": 0.3},
        lambda total_count, probs: stats.nbinom(total_count, 1 - probs),
    ),
}
DISCRETE = {"Poisson", "Bernoulli", "Geometric", "Binomial", "NegativeBinomial"}
WITHOUT_DERIVATIVE = {"total_count"}


def _made(name, requires_grad=False, **changed):
    parameters = {**UNIVARIATE[name][0], **changed}
    tensors = {key: _t(value, requires_grad) for key, value in parameters.items()}
    return getattr(dist, name)(**tensors), tensors


@pytest.mark.parametrize("name", UNIVARIATE)
def test_densities_and_moments_are_scipys(name):
    ours, _ = _made(name)
    theirs = UNIVARIATE[name][1](**UNIVARIATE[name][0])
    x = np.array([0.0, 1.0] if name in DISCRETE else X)
    log_density = theirs.logpmf(x) if name in DISCRETE else theirs.logpdf(x)
    np.testing.assert_allclose(ours.log_prob(_t(x)).numpy(), log_density, rtol=1e-10)
    if name not in ("VonMises", "Cauchy", "HalfCauchy"):  # variance is the circular one, or none
        np.testing.assert_allclose(ours.mean.numpy(), theirs.mean(), rtol=1e-10)
        np.testing.assert_allclose(ours.variance.numpy(), theirs.var(), rtol=1e-9)
        np.testing.assert_allclose(ours.stddev.numpy(), theirs.std(), rtol=1e-9)
    base = (dist.Distribution.entropy, dist.ExponentialFamily.entropy)
    if type(ours).entropy not in base:
        np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-8)
        perplexity = np.exp(ours.entropy().numpy())
        np.testing.assert_allclose(ours.perplexity().numpy(), perplexity)
    for method, reference in (("cdf", theirs.cdf), ("icdf", theirs.ppf)):
        try:
            found = getattr(ours, method)(_t(X))
        except NotImplementedError:
            continue
        np.testing.assert_allclose(found.numpy(), reference(X), rtol=1e-9)


@pytest.mark.parametrize("name", UNIVARIATE)
@pytest.mark.parametrize("method", ["log_prob", "cdf", "icdf", "entropy", "mean", "variance"])
def test_derivatives_in_parameters_and_values_are_those_of_differences(name, method):
    x = 1.0 if name in DISCRETE else 0.4
    names = [n for n in UNIVARIATE[name][0] if n not in WITHOUT_DERIVATIVE]

    def value(x, **changed):
        made, _ = _made(name, **changed)
        word = getattr(made, method)
        return (
            word(x) if method in ("log_prob", "cdf", "icdf") else word() if callable(word) else word
        )

    made, tensors = _made(name, requires_grad=True)
    point = _t(x, requires_grad=name not in DISCRETE)
    try:
        word = getattr(made, method)
        takes_value = method in ("log_prob", "cdf", "icdf")
        result = word(point) if takes_value else word() if callable(word) else word
    except NotImplementedError:
        return
    if not result.requires_grad:
        assert not np.isfinite(result.numpy()) or method == "variance"
        return
    leaves = [tensors[n] for n in names] + [point] * point.requires_grad
    found = torch.autograd.grad(result, leaves, allow_unused=True)
    h = 1e-5
    for key, slope in zip([*names, None], found, strict=False):
        if key is None:
            ends = [float(value(_t(x + s))) for s in (h, -h)]
        else:
            at = UNIVARIATE[name][0][key]
            ends = [float(value(_t(x), **{key: at + s}).detach()) for s in (h, -h)]
        expected = (ends[0] - ends[1]) / (2 * h)
        assert (0.0 if slope is None else slope.item()) == pytest.approx(expected, 2e-6, 1e-8), key


@pytest.mark.parametrize("name", [n for n in UNIVARIATE if n != "VonMises"])
def test_samples_are_distributed_so(name):
    torch.manual_seed(0)
    ours, _ = _made(name)
    theirs = UNIVARIATE[name][1](**UNIVARIATE[name][0])
    sample = ours.sample((5000,))
    assert sample.dtype == np.float64
    assert not sample.requires_grad
    if name in DISCRETE:
        z = (sample.numpy().mean() - theirs.mean()) / (theirs.std() / 5000**0.5)
        assert abs(z) < 4
        assert sample.numpy().var() == pytest.approx(theirs.var(), 0.1)
    else:
        assert stats.kstest(sample.numpy(), theirs.cdf).pvalue > 1e-3
    torch.manual_seed(1)
    first = ours.sample((3,)).numpy()
    torch.manual_seed(1)
    np.testing.assert_array_equal(ours.sample((3,)).numpy(), first)


def test_angles_are_distributed_so():
    torch.manual_seed(0)
    sample = dist.VonMises(3.0, 0.7).sample((5000,)).numpy()
    assert np.abs(sample).max() <= math.pi + 1e-6
    turned = (sample - 3.0 + math.pi) % (2 * math.pi) - math.pi
    assert stats.kstest(turned, stats.vonmises(0.7).cdf).pvalue > 1e-3


# derivatives of samples --------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.3, 2.5, 40.0])
@pytest.mark.parametrize("p", [0.1, 0.6, 0.95])
def test_gamma_variables_move_at_constant_probability(a, p):
    h = 1e-5 * a
    expected = (special.gammaincinv(a + h, p) - special.gammaincinv(a - h, p)) / (2 * h)
    x = special.gammaincinv(a, p)
    assert log_gamma_slope(np.float64(a), np.log(x)) * x == pytest.approx(expected, 1e-6)


@pytest.mark.parametrize(("a", "b"), [(0.7, 1.5), (3.0, 0.4), (5.0, 8.0)])
def test_beta_variables_move_at_constant_probability(a, b):
    x, h = special.betaincinv(a, b, 0.4), 1e-5
    slopes = dirichlet_slope(np.array([a, b]), np.array([x, 1 - x]))
    steps = [special.betaincinv(a + h, b, 0.4) - special.betaincinv(a - h, b, 0.4),
             special.betaincinv(a, b + h, 0.4) - special.betaincinv(a, b - h, 0.4)]  # fmt: skip
    found = [slopes[0] * (1 - x), -slopes[1] * x]
    np.testing.assert_allclose(found, np.array(steps) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "of", "mean"),
    [
        (lambda q: dist.Normal(q, q), lambda x: x**2, lambda q: 2 * q**2),
        (lambda q: dist.Gamma(q, 2.0), lambda x: x**2, lambda q: q * (q + 1) / 4),
        (lambda q: dist.Beta(q, 2.0), lambda x: x, lambda q: q / (q + 2)),
        (lambda q: dist.StudentT(q + 9), lambda x: x**2, lambda q: (q + 9) / (q + 7)),
        (lambda q: dist.Dirichlet(q * torch.ones(3)), lambda x: x[..., 0] * x[..., 1],
         lambda q: q / (3 * (3 * q + 1))),
        (lambda q: dist.Wishart(q + 3, torch.eye(2).double()), lambda x: x[..., 0, 1] ** 2,
         lambda q: q + 3),
        (lambda q: dist.Weibull(1.0, q), lambda x: x, lambda q: (1 + 1 / q).lgamma().exp()),
    ],
)  # fmt: skip
def test_samples_have_derivatives_whose_mean_is_that_of_the_mean(make, of, mean):
    torch.manual_seed(0)
    q = _t(1.3, requires_grad=True)
    values = of(make(q).rsample((20000,)))
    (found,) = torch.autograd.grad(values.mean(), q)
    (expected,) = torch.autograd.grad(mean(q), q)
    assert found.item() == pytest.approx(expected.item(), 0.1, 0.01)


def test_samples_that_are_not_differentiable_say_so():
    assert not dist.Poisson(1.0).has_rsample
    with pytest.raises(NotImplementedError, match="Poisson has no rsample"):
        dist.Poisson(1.0).rsample()


@pytest.mark.parametrize(
    "name",
    ["cdf", "entropy", "enumerate_support", "expand", "icdf", "log_prob", "mean", "mode",
     "rsample", "support", "variance"],
)  # fmt: skip
def test_what_a_distribution_lacks_is_named(name):
    class Bare(dist.Distribution):
        arg_constraints = {}  # noqa: RUF012  # as users write it

    takes = {"cdf": (X,), "icdf": (X,), "log_prob": (X,), "expand": ((2,),)}
    with pytest.raises(NotImplementedError, match=rf"Bare.* {name}$"):
        getattr(Bare(), name)(*takes.get(name, ()))


# vectors -----------------------------------------------------------------------------------------

COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])
POINT = np.array([0.3, -0.4])
LOC = np.array([0.1, 0.2])


@pytest.mark.parametrize("form", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_normal_vectors_are_scipys_in_each_form(form):
    matrix = {
        "covariance_matrix": COVARIANCE,
        "precision_matrix": np.linalg.inv(COVARIANCE),
        "scale_tril": np.linalg.cholesky(COVARIANCE),
    }[form]
    ours = dist.MultivariateNormal(_t(LOC), **{form: _t(matrix)})
    theirs = stats.multivariate_normal(LOC, COVARIANCE)
    np.testing.assert_allclose(ours.log_prob(_t(POINT)).numpy(), theirs.logpdf(POINT))
    np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy())
    np.testing.assert_allclose(ours.covariance_matrix.numpy(), COVARIANCE)
    np.testing.assert_allclose(ours.precision_matrix.numpy(), np.linalg.inv(COVARIANCE))
    np.testing.assert_allclose(ours.variance.numpy(), np.diag(COVARIANCE))
    torch.manual_seed(0)
    np.testing.assert_allclose(np.cov(ours.sample((20000,)).numpy().T), COVARIANCE, atol=0.06)


def test_the_derivative_in_the_covariance_is_symmetric():
    matrix = _t(COVARIANCE, requires_grad=True)
    dist.MultivariateNormal(_t(LOC), matrix).log_prob(_t(POINT)).backward()
    r = np.linalg.solve(COVARIANCE, POINT - LOC)
    np.testing.assert_allclose(
        matrix.grad.numpy(), 0.5 * (np.outer(r, r) - np.linalg.inv(COVARIANCE))
    )


def test_normal_vectors_of_low_rank_are_scipys():
    factor, diagonal = np.array([[1.0], [0.5], [-0.3]]), np.array([0.5, 1.0, 2.0])
    covariance = factor @ factor.T + np.diag(diagonal)
    ours = dist.LowRankMultivariateNormal(_t(np.zeros(3)), _t(factor), _t(diagonal))
    theirs = stats.multivariate_normal(np.zeros(3), covariance)
    x = np.array([0.3, -0.4, 1.0])
    np.testing.assert_allclose(ours.log_prob(_t(x)).numpy(), theirs.logpdf(x))
    np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy())
    np.testing.assert_allclose(ours.precision_matrix.numpy(), np.linalg.inv(covariance))
    np.testing.assert_allclose(ours.scale_tril.numpy(), np.linalg.cholesky(covariance))
    full = dist.MultivariateNormal(_t(np.ones(3)), _t(covariance))
    same = dist.MultivariateNormal(_t(np.zeros(3)), _t(covariance))
    expected = dist.kl_divergence(same, full).numpy()
    np.testing.assert_allclose(dist.kl_divergence(ours, full).numpy(), expected)
    moved = dist.LowRankMultivariateNormal(_t(np.ones(3)), _t(factor), _t(diagonal))
    np.testing.assert_allclose(dist.kl_divergence(same, moved).numpy(), expected)
    np.testing.assert_allclose(dist.kl_divergence(ours, moved).numpy(), expected)


def test_dirichlet_multinomial_and_wishart_are_scipys():
    a, p = np.array([0.7, 1.3, 2.0]), np.array([0.2, 0.3, 0.5])
    ours, theirs = dist.Dirichlet(_t(a)), stats.dirichlet(a)
    np.testing.assert_allclose(ours.log_prob(_t(p)).numpy(), theirs.logpdf(p))
    np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy())
    np.testing.assert_allclose(ours.variance.numpy(), theirs.var())
    counts, theirs = dist.Multinomial(6, _t(p)), stats.multinomial(6, p)
    x = np.array([1.0, 3.0, 2.0])
    np.testing.assert_allclose(counts.log_prob(_t(x)).numpy(), theirs.logpmf(x))
    np.testing.assert_allclose(counts.entropy().numpy(), theirs.entropy())
    matrices, theirs = dist.Wishart(_t(4.0), _t(COVARIANCE)), stats.wishart(4.0, COVARIANCE)
    m = COVARIANCE + np.eye(2)
    np.testing.assert_allclose(matrices.log_prob(_t(m)).numpy(), theirs.logpdf(m))
    np.testing.assert_allclose(matrices.entropy().numpy(), theirs.entropy())
    np.testing.assert_allclose(matrices.variance.numpy(), theirs.var())
    torch.manual_seed(0)
    mean = matrices.sample((20000,)).numpy().mean(0)
    np.testing.assert_allclose(mean, 4 * COVARIANCE, rtol=0.05)


@pytest.mark.parametrize(("n", "c"), [(2, 0.7), (4, 2.0)])
def test_each_correlation_of_lkj_is_a_beta_variable(n, c):
    torch.manual_seed(0)
    factors = dist.LKJCholesky(n, c).sample((5000,))
    assert constraints.corr_cholesky.check(factors).all()
    whole = (factors @ factors.mT).numpy()
    b = c - 1 + n / 2
    for i in range(1, n):
        for j in range(i):
            assert stats.kstest((whole[:, i, j] + 1) / 2, stats.beta(b, b).cdf).pvalue > 1e-4


def test_the_density_of_lkj_is_normalised():
    def density(r):
        factor = np.array([[1.0, 0.0], [r, math.sqrt(1 - r * r)]])
        found = dist.LKJCholesky(2, _t(1.7), validate_args=False).log_prob(_t(factor))
        return math.exp(found.item())

    # the Jacobian from the correlation to the factor of two rows is 1
    assert integrate.quad(density, -1, 1)[0] == pytest.approx(1, 1e-6)


# choices -----------------------------------------------------------------------------------------


def test_choices_have_probabilities_up_to_a_factor():
    p = _t([1.0, 1.0, 2.0])
    for choice in (dist.Categorical(p), dist.Categorical(logits=p.log() + 3)):
        np.testing.assert_allclose(choice.probs.numpy(), [0.25, 0.25, 0.5])
        places = choice.enumerate_support()
        np.testing.assert_allclose(choice.log_prob(places).exp().numpy(), [0.25, 0.25, 0.5])
        np.testing.assert_allclose(choice.entropy().numpy(), 1.5 * math.log(2))
        assert choice.mode.item() == 2
    rows = dist.OneHotCategorical(p)
    np.testing.assert_allclose(rows.log_prob(rows.enumerate_support()).exp().sum().item(), 1)
    torch.manual_seed(0)
    np.testing.assert_allclose(rows.sample((20000,)).numpy().mean(0), rows.mean, atol=0.02)
    counted = np.bincount(dist.Categorical(p).sample((20000,)).numpy()) / 20000
    np.testing.assert_allclose(counted, [0.25, 0.25, 0.5], atol=0.02)


def test_straight_through_samples_have_the_derivative_of_the_probabilities():
    p = _t([0.25, 0.75], requires_grad=True)
    sample = dist.OneHotCategoricalStraightThrough(p).rsample()
    assert sorted(sample.tolist()) == [0.0, 1.0]
    (found,) = torch.autograd.grad(sample[0], p)
    np.testing.assert_allclose(found.numpy(), [0.75, -0.25])


@pytest.mark.parametrize("probs", [0.3, 0.5, 0.5004, 0.9])
def test_the_continuous_bernoulli_distribution_is_normalised(probs):
    made = dist.ContinuousBernoulli(_t(probs))
    x = np.linspace(0, 1, 2001)
    density = made.log_prob(_t(x)).exp().numpy()
    assert integrate.simpson(density, x=x) == pytest.approx(1, 1e-6)
    assert integrate.simpson(x * density, x=x) == pytest.approx(made.mean.item(), 1e-6)
    np.testing.assert_allclose(made.cdf(made.icdf(_t(X))).numpy(), X, rtol=1e-6)


def test_relaxed_choices_are_normalised():
    made = dist.RelaxedBernoulli(_t(0.7), _t(0.3))
    assert integrate.quad(lambda x: made.log_prob(_t(x)).exp().item(), 0, 1)[0] == pytest.approx(
        1, 1e-4
    )
    pair = dist.RelaxedOneHotCategorical(_t(0.7), _t([0.3, 0.7]))
    density = lambda x: pair.log_prob(_t([x, 1 - x])).exp().item()  # noqa: E731  # short
    assert integrate.quad(density, 0, 1)[0] == pytest.approx(1, 1e-4)
    assert made.has_rsample
    assert pair.rsample((3,)).shape == (3, 2)


# made of others ----------------------------------------------------------------------------------


def test_independent_sums_over_axes():
    inner = dist.Normal(_t(np.zeros((3, 2))), 1.0)
    outer = dist.Independent(inner, 1)
    assert (outer.batch_shape, outer.event_shape) == ((3,), (2,))
    x = _t(np.ones((3, 2)))
    np.testing.assert_allclose(outer.log_prob(x).numpy(), inner.log_prob(x).sum(-1).numpy())
    np.testing.assert_allclose(outer.entropy().numpy(), inner.entropy().sum(-1).numpy())
    other = dist.Independent(dist.Normal(_t(np.ones((3, 2))), 1.0), 1)
    np.testing.assert_allclose(dist.kl_divergence(outer, other).numpy(), [1.0] * 3)
    with pytest.raises(ValueError, match="actual 3 vs 2"):
        dist.Independent(inner, 3)


def test_a_mixture_is_the_mean_of_its_components():
    w, loc = np.array([0.25, 0.75]), np.array([-1.0, 2.0])
    made = dist.MixtureSameFamily(dist.Categorical(_t(w)), dist.Normal(_t(loc), 1.0))
    x = 0.5
    density = (w * stats.norm(loc, 1).pdf(x)).sum()
    assert made.log_prob(_t(x)).exp().item() == pytest.approx(density)
    assert made.cdf(_t(x)).item() == pytest.approx((w * stats.norm(loc, 1).cdf(x)).sum())
    assert made.mean.item() == pytest.approx(1.25)
    assert made.variance.item() == pytest.approx(1 + (w * (loc - 1.25) ** 2).sum())
    torch.manual_seed(0)
    sample = made.sample((5000,)).numpy()
    assert stats.kstest(sample, lambda x: made.cdf(_t(x)).numpy()).pvalue > 1e-3
    assert made.expand((3,)).sample((2,)).shape == (2, 3)


def test_transformed_distributions_have_the_density_of_the_change_of_variables():
    made = dist.TransformedDistribution(
        dist.Normal(_t(0.3), _t(0.5)),
        [transforms.AffineTransform(1.0, -2.0), transforms.SigmoidTransform()],
    )
    density = lambda y: made.log_prob(_t(y)).exp().item()  # noqa: E731  # short
    assert integrate.quad(density, 0, 1)[0] == pytest.approx(1, 1e-6)
    assert integrate.quad(density, 0, 0.4)[0] == pytest.approx(made.cdf(_t(0.4)).item(), 1e-6)
    assert made.icdf(made.cdf(_t(0.4))).item() == pytest.approx(0.4)
    assert repr(made.support) == "Interval(lower_bound=0.0, upper_bound=1.0)"


# transforms and constraints ----------------------------------------------------------------------

TRANSFORMS = {
    "exp": (transforms.ExpTransform(), (3,)),
    "sigmoid": (transforms.SigmoidTransform(), (3,)),
    "tanh": (transforms.TanhTransform(), (3,)),
    "softplus": (transforms.SoftplusTransform(), (3,)),
    "affine": (transforms.AffineTransform(1.0, -2.0), (3,)),
    "power": (transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.PowerTransform(2.5)]), (3,)),
    "stick": (transforms.StickBreakingTransform(), (3,)),
    "correlations": (transforms.CorrCholeskyTransform(), (3,)),
    "reshape": (transforms.ReshapeTransform((6,), (2, 3)), (6,)),
    "independent": (transforms.IndependentTransform(transforms.ExpTransform(), 1), (3,)),
    "cat": (transforms.CatTransform(
        [transforms.ExpTransform(), transforms.SigmoidTransform()], lengths=[2, 1]), (3,)),
    "stack": (transforms.StackTransform(
        [transforms.ExpTransform(), transforms.TanhTransform()]), (2,)),
    "probability": (transforms.CumulativeDistributionTransform(dist.Normal(0.0, 2.0)), (3,)),
}  # fmt: skip
"""Transforms and the shape of one argument."""


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_have_inverses_and_the_jacobian_of_differentiation(name):
    transform, shape = TRANSFORMS[name]
    x = _t(np.random.default_rng(0).normal(size=shape))
    y = transform(x)
    assert transform.codomain.check(y).all()
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), atol=1e-7)
    assert transform.inv.inv is transform
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)

    def free(x):  # as many numbers as x has
        y = transform(x)
        if name == "stick":
            return y[:-1]
        return y[np.tril_indices(3, -1)] if name == "correlations" else y.reshape(-1)

    jacobian = torch.func.jacfwd(free)(x).numpy()
    expected = np.linalg.slogdet(jacobian)[1]
    found = transform.log_abs_det_jacobian(x, y).sum()
    assert found.item() == pytest.approx(expected, 1e-6, 1e-9)
    back = transform.inv.log_abs_det_jacobian(y, x).sum()
    assert back.item() == pytest.approx(-expected, 1e-6, 1e-9)


def test_a_transform_with_a_cache_returns_the_argument_itself():
    transform = transforms.ExpTransform(cache_size=1)
    x = _t(X)
    assert transform.inv(transform(x)) is x
    assert transforms.ExpTransform().with_cache()._cache_size == 1
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        transforms.ExpTransform(cache_size=2)


def test_transforms_are_equal_by_their_settings():
    assert transforms.AffineTransform(1.0, 2.0) == transforms.AffineTransform(1.0, 2.0)
    assert transforms.AffineTransform(1.0, 2.0) != transforms.AffineTransform(1.0, 3.0)
    assert transforms.ExpTransform() == transforms.ExpTransform()
    assert transforms.ExpTransform() != transforms.SigmoidTransform()
    assert transforms.PowerTransform(2.0) != transforms.PowerTransform(3.0)


CONSTRAINTS = {
    "real": (constraints.real, (3,)),
    "positive": (constraints.positive, (3,)),
    "nonnegative": (constraints.nonnegative, (3,)),
    "above": (constraints.greater_than(2.0), (3,)),
    "below": (constraints.less_than(2.0), (3,)),
    "interval": (constraints.interval(-1.0, 3.0), (3,)),
    "half_open": (constraints.half_open_interval(-1.0, 3.0), (3,)),
    "unit": (constraints.unit_interval, (3,)),
    "simplex": (constraints.simplex, (3,)),
    "correlations": (constraints.corr_cholesky, (6,)),
    "lower_cholesky": (constraints.lower_cholesky, (3, 3)),
    "definite": (constraints.positive_definite, (3, 3)),
    "vector": (constraints.independent(constraints.positive, 1), (3,)),
    "cat": (constraints.cat([constraints.real, constraints.positive], lengths=[2, 1]), (3,)),
    "stack": (constraints.stack([constraints.real, constraints.positive]), (2,)),
}


@pytest.mark.parametrize("registry", [dist.biject_to, dist.transform_to])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_registered_transforms_lead_into_the_set(name, registry):
    constraint, shape = CONSTRAINTS[name]
    if registry is dist.biject_to and name in ("lower_cholesky", "definite"):
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            registry(constraint)
        return
    x = _t(np.random.default_rng(0).normal(size=shape))
    assert constraint.check(registry(constraint)(x)).all()


def test_sets_refuse_what_lies_outside():
    for constraint, value in (
        (constraints.positive, 0.0),
        (constraints.real, math.nan),
        (constraints.boolean, 0.5),
        (constraints.integer_interval(0, 3), 4.0),
        (constraints.nonnegative_integer, 1.5),
        (constraints.simplex, [0.5, 0.6]),
        (constraints.one_hot, [1.0, 1.0]),
        (constraints.multinomial(3), [2.0, 2.0]),
        (constraints.lower_triangular, [[1.0, 1.0], [0.0, 1.0]]),
        (constraints.lower_cholesky, [[1.0, 0.0], [0.0, -1.0]]),
        (constraints.corr_cholesky, [[1.0, 0.0], [1.0, 1.0]]),
        (constraints.symmetric, [[1.0, 1.0], [0.0, 1.0]]),
        (constraints.positive_definite, [[1.0, 2.0], [2.0, 1.0]]),
        (constraints.positive_definite, np.full((2, 2), np.inf)),
        (constraints.positive_semidefinite, [[1.0, 2.0], [2.0, 1.0]]),
        (constraints.square, np.ones((2, 3))),
    ):
        assert not constraint.check(_t(value)).any(), constraint


# divergences -------------------------------------------------------------------------------------

PAIRS = [
    dist.Beta(_t(2.5), _t(1.5)), dist.ContinuousBernoulli(_t(0.3)), dist.Exponential(_t(1.5)),
    dist.Gamma(_t(2.5), _t(1.5)), dist.Gumbel(_t(0.3), _t(1.5)), dist.Laplace(_t(0.3), _t(1.5)),
    dist.Normal(_t(0.5), _t(0.8)), dist.Pareto(_t(0.5), _t(3.5)), dist.Uniform(_t(0.2), _t(0.9)),
    dist.HalfNormal(_t(0.7)), dist.Cauchy(_t(0.3), _t(1.5)), dist.LogNormal(_t(0.5), _t(0.8)),
]  # fmt: skip


def _support(p):
    support = p.support
    low = getattr(support, "lower_bound", -math.inf)
    high = getattr(support, "upper_bound", math.inf)
    return float(low), float(high)


@pytest.mark.parametrize("p", PAIRS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("q", PAIRS, ids=lambda q: type(q).__name__)
def test_divergences_are_those_of_quadrature(p, q):
    other = copy.copy(q)
    if type(p) is type(q):  # another one of the class
        other = type(q)(*[getattr(q, name) * 1.2 for name in q.arg_constraints if name != "logits"])
        if isinstance(q, dist.Uniform):
            other = dist.Uniform(_t(0.1), _t(1.0))
        if isinstance(q, dist.LogNormal):
            other = dist.LogNormal(_t(0.7), _t(0.9))
        if isinstance(q, dist.Pareto):
            other = dist.Pareto(_t(0.4), _t(3.0))
    try:
        found = dist.kl_divergence(p, other).item()
    except NotImplementedError:
        return
    (low, high), (q_low, q_high) = _support(p), _support(other)
    if low < q_low or high > q_high:
        assert found == math.inf
        return

    def density(x):
        x = _t(x)
        a, b = (d.log_prob(x).item() for d in (p, other))
        return 0.0 if a == -math.inf else math.exp(a) * (a - b)

    ends = [max(low, -40.0), *[e for e in (0.0, 0.5, 2.0) if low < e < high], min(high, 40.0)]
    if isinstance(p, (dist.Cauchy, dist.Pareto)):
        ends = [ends[0] if low > -40 else -1e5, *ends[1:-1], 1e4 if high > 40 else ends[-1]]
        ends = sorted({*ends, 10.0, 100.0, 1000.0, *([-10.0, -100.0, -1000.0] if low < 0 else [])})
    parts = itertools.pairwise(ends)
    total = sum(integrate.quad(density, a, b, limit=200)[0] for a, b in parts)
    assert found == pytest.approx(total, 1e-3, 1e-4)


def test_discrete_divergences_are_sums():
    pairs = [
        (dist.Bernoulli(_t(0.3)), dist.Bernoulli(_t(0.6)), 2),
        (dist.Bernoulli(_t(0.3)), dist.Poisson(_t(0.6)), 2),
        (dist.Binomial(5, _t(0.3)), dist.Binomial(5, _t(0.6)), 6),
        (dist.Geometric(_t(0.3)), dist.Geometric(_t(0.6)), 200),
        (dist.Poisson(_t(1.5)), dist.Poisson(_t(0.6)), 60),
        (dist.Categorical(_t([1.0, 2, 3])), dist.Categorical(_t([3.0, 2, 1])), 3),
    ]
    for p, q, n in pairs:
        x = torch.arange(n) if isinstance(p, dist.Categorical) else _t(np.arange(n))
        logs = p.log_prob(x)
        expected = (logs.exp() * (logs - q.log_prob(x))).sum().item()
        assert dist.kl_divergence(p, q).item() == pytest.approx(expected)
    assert dist.kl_divergence(dist.Poisson(1.0), dist.Bernoulli(0.5)).item() == math.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda a: dist.Dirichlet(a),
        lambda a: dist.Wishart(a[0] + 3, a[1] * torch.eye(2, dtype=torch.float64)),
        lambda a: dist.MultivariateNormal(a, (a[2] + 1) * torch.eye(3, dtype=torch.float64)),
    ],
)
def test_divergences_of_vectors_are_those_of_samples(make):
    torch.manual_seed(0)
    p, q = make(_t([0.7, 1.3, 2.0])), make(_t([1.0, 1.0, 1.0]))
    x = p.sample((20000,))
    mean = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert dist.kl_divergence(p, q).item() == pytest.approx(mean, 0.1)
    assert dist.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-9)


def test_an_exponential_family_has_the_entropy_and_divergence_of_its_normaliser():
    class Rate(dist.ExponentialFamily):
        arg_constraints = {"rate": constraints.positive}  # noqa: RUF012  # torch's
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -(-x).log()

    p, q = Rate(_t([1.5, 2.0])), Rate(_t([0.5, 3.0]))
    plain = dist.Exponential(p.rate), dist.Exponential(q.rate)
    np.testing.assert_allclose(p.entropy().detach().numpy(), plain[0].entropy().numpy())
    expected = dist.kl_divergence(*plain).numpy()
    np.testing.assert_allclose(dist.kl_divergence(p, q).detach().numpy(), expected)


def test_an_ambiguous_divergence_warns():
    class A(dist.Normal):
        pass

    @dist.register_kl(A, dist.Normal)
    def _(p, q):
        return 1.0

    @dist.register_kl(dist.Normal, A)
    def _(p, q):
        return 2.0

    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        assert dist.kl_divergence(A(0.0, 1.0), A(0.0, 1.0)) == 1.0
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        dist.register_kl(int, dist.Normal)
    with pytest.raises(NotImplementedError, match="p type Uniform and q type Binomial"):
        dist.kl_divergence(dist.Uniform(0.0, 1.0), dist.Binomial(3, 0.5))


# arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: dist.Normal(0.0, -1.0), ValueError,
         r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(loc: 0.0, "
         r"scale: -1.0\) to satisfy the constraint GreaterThan\(lower_bound=0.0\), but found"),
        (lambda: dist.Normal(math.nan, 1.0), ValueError, "Expected parameter loc"),
        (lambda: dist.Uniform(1.0, 0.0), ValueError, "Expected parameter low"),
        (lambda: dist.Normal("a", 1.0), ValueError, "must all be instances of Number"),
        (lambda: dist.Normal(0.0, 1.0).log_prob(1.0), ValueError, "must be a Tensor"),
        (lambda: dist.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)), ValueError,
         "not broadcastable with batch_shape"),
        (lambda: dist.Gamma(1.0, 1.0).log_prob(torch.tensor(-1.0)), ValueError,
         "to be within the support"),
        (lambda: dist.Bernoulli(), ValueError, "Either `probs` or `logits` must be specified"),
        (lambda: dist.Categorical(torch.tensor(1.0)), ValueError, "at least one-dimensional"),
        (lambda: dist.Geometric(0.0), ValueError, "probs"),
        (lambda: dist.MultivariateNormal(torch.zeros(2)), ValueError, "Exactly one of"),
        (lambda: dist.MultivariateNormal(torch.zeros(2), -torch.eye(2)), ValueError,
         "Expected parameter covariance_matrix"),
        (lambda: dist.Wishart(torch.tensor(0.5), torch.eye(2)), ValueError, "ndim - 1"),
        (lambda: dist.LKJCholesky(1), ValueError, "greater than or equal to 2"),
        (lambda: dist.Normal(0.0), TypeError, "takes the arguments loc, scale"),
        (lambda: dist.Multinomial(torch.tensor(2), torch.ones(2)), NotImplementedError, "total"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_checks_can_be_switched_off():
    assert dist.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0
    assert dist.Uniform(0.0, 1.0, validate_args=False).log_prob(_t(2.0)).item() == -math.inf
    try:
        dist.Distribution.set_default_validate_args(False)
        dist.Normal(0.0, -1.0)
    finally:
        dist.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale"):
        dist.Normal(0.0, -1.0)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_expanded_distributions_are_the_same_with_more_axes(name):
    made, _ = _made(name)
    wide = made.expand((3, 2))
    assert (type(wide), wide.batch_shape, made.batch_shape) == (type(made), (3, 2), ())
    x = _t(1.0 if name in DISCRETE else 0.4)
    np.testing.assert_allclose(wide.log_prob(x).numpy(), np.full((3, 2), made.log_prob(x).numpy()))
    assert wide.sample((4,)).shape == (4, 3, 2)
    again = pickle.loads(pickle.dumps(made))
    assert again.log_prob(x).item() == made.log_prob(x).item()


def test_a_subclass_with_its_own_constructor_must_expand_itself():
    class Unit(dist.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Unit(_t(0.0)).expand((3,))

    class Rounded(dist.LogNormal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Rounded(_t(0.0)).expand((3,))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("StudentT", "(df, loc=0.0, scale=1.0, validate_args=None)"),
        ("Binomial", "(total_count=1, probs=None, logits=None, validate_args=None)"),
        ("RelaxedBernoulli", "(temperature, probs=None, logits=None, validate_args=None)"),
        ("OneHotCategorical", "(probs=None, logits=None, validate_args=None)"),
        ("LKJCholesky", "(dim, concentration=1.0, validate_args=None)"),
        ("Weibull", "(scale, concentration, validate_args=None)"),
        ("Wishart", "(df, covariance_matrix=None, precision_matrix=None, scale_tril=None, "
         "validate_args=None)"),
    ],
)  # fmt: skip
def test_constructors_say_their_arguments(name, expected):
    kind = getattr(dist, name)
    assert str(inspect.signature(kind)) == expected
    with pytest.raises(TypeError, match=r"takes the arguments .* and validate_args, got 0 by pos"):
        kind(other=1.0)
    inherited = type("Inherited", (kind,), {})
    assert str(inspect.signature(inherited)) == expected
    own = type("Own", (kind,), {"__init__": lambda self, a: None})
    assert str(inspect.signature(own)) == "(a)"


@pytest.mark.parametrize("name", ["Gamma", "Beta", "Poisson", "StudentT", "Binomial", "VonMises"])
def test_vmap_draws_different_numbers_for_the_examples(name):
    parameters = list(UNIVARIATE[name][0].values())

    def draw(scale):
        return getattr(dist, name)(*[scale * p for p in parameters]).sample((50,))

    scales = _t([1.0, 1.0])
    first, second = torch.func.vmap(draw, randomness="different")(scales).numpy()
    assert not np.array_equal(first, second)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.vmap(draw)(scales)


def test_densities_under_transforms():
    x = _t(X)

    def total(a):
        return dist.Gamma(a, 1.5).log_prob(x).sum()

    a = _t([1.2, 2.5])
    slopes = torch.func.vmap(torch.func.grad(total))(a).numpy()
    expected = (math.log(1.5) + np.log(X)[:, None] - special.digamma(a.numpy())).sum(0)
    np.testing.assert_allclose(slopes, expected)
    curvature = torch.func.hessian(total)(a[0]).item()
    assert curvature == pytest.approx(-2 * special.polygamma(1, 1.2))


def test_float32_stays_float32():
    for name, (parameters, _) in UNIVARIATE.items():
        made = getattr(dist, name)(**parameters)
        x = torch.tensor(1.0 if name in DISCRETE else 0.4)
        assert made.log_prob(x).dtype == made.sample().dtype == made.variance.dtype == np.float32


def test_matrices_and_vectors_of_triangles():
    matrix = _t(np.arange(1.0, 10).reshape(3, 3))
    vector = dist.utils.tril_matrix_to_vec(matrix, -1)
    np.testing.assert_array_equal(vector.numpy(), [4, 7, 8])
    back = dist.utils.vec_to_tril_matrix(vector, -1).numpy()
    np.testing.assert_array_equal(back, np.tril(matrix.numpy(), -1))
    with pytest.raises(ValueError, match="is outside"):
        dist.utils.tril_matrix_to_vec(matrix, 5)
    with pytest.raises(ValueError, match="cannot be expressed"):
        dist.utils.vec_to_tril_matrix(_t(np.ones(4)))


def test_submodules_are_importable():
    from functrans.compat.torch.distributions.normal import Normal  # the test
    from functrans.compat.torch.distributions.relaxed_bernoulli import (
        LogitRelaxedBernoulli,
    )

    assert Normal is dist.Normal
    assert LogitRelaxedBernoulli(_t(1.0), _t(0.5)).has_rsample


def test_derivatives_of_samples_after_those_of_the_other_mode():
    a = torch.tensor([1.5, 2.5])

    def sample(a):
        torch.manual_seed(0)
        return dist.Beta(a, 1.0).rsample()

    forward = torch.func.jacfwd(sample, randomness="same")(a)
    np.testing.assert_allclose(torch.func.jacrev(sample)(a).numpy(), forward.numpy(), rtol=1e-6)


def test_distributions_that_are_modules():
    """As GPyTorch's priors and distributions are made."""

    class Prior(torch.distributions.Gamma, torch.nn.Module):
        def __init__(self, concentration, rate):
            torch.nn.Module.__init__(self)
            torch.distributions.Gamma.__init__(self, concentration=concentration, rate=rate)

    prior = Prior(torch.ones(2), 2.0)
    assert prior.log_prob(torch.ones(2)).shape == (2,)

    class Normal(torch.distributions.MultivariateNormal):
        def __init__(self, batch_shape):
            super(torch.distributions.MultivariateNormal, self).__init__(
                batch_shape, torch.Size([3]), validate_args=False
            )

    assert Normal(torch.Size([2])).batch_shape == (2,)


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_choices_are_those_of_multinomial(batch):
    probs = torch.tensor(np.random.default_rng(0).random((*batch, 4)))
    torch.manual_seed(3)
    expected = torch.multinomial(probs.reshape(-1, 4), 6, True).T.reshape(2, 3, *batch)
    torch.manual_seed(3)
    assert torch.equal(torch.distributions.Categorical(probs).sample((2, 3)), expected)


WITHOUT_TANGENT = {
    "Normal": lambda m: dist.Normal(m, m),
    "LogNormal": lambda m: dist.LogNormal(m, 1.0),
    "HalfNormal": lambda m: dist.HalfNormal(m),
    "Independent": lambda m: dist.Independent(dist.Normal(m, 1.0), 1),
    "TransformedDistribution": lambda m: dist.TransformedDistribution(
        dist.Normal(m, 1.0), [transforms.ExpTransform()]
    ),
    "MixtureSameFamily": lambda m: dist.MixtureSameFamily(
        dist.Categorical(_t(X)), dist.Normal(m, 1.0)
    ),
}


@pytest.mark.parametrize("name", WITHOUT_TANGENT)
def test_samples_of_normal_variables_have_no_tangents(name):
    """Score-function derivatives in forward mode are those of reverse mode."""
    make, at = WITHOUT_TANGENT[name], _t([0.4, 0.9])

    def score(m):
        torch.manual_seed(0)
        made = make(m)
        return made.log_prob(made.sample()).sum()

    expected = torch.func.grad(score)(at)
    assert expected.abs().sum() > 0
    _, slope = torch.func.jvp(score, (at,), (_t([1.0, 0.0]),))
    np.testing.assert_allclose(slope, expected[0])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(at, _t([0.0, 1.0]))
        found = torch.autograd.forward_ad.unpack_dual(score(dual)).tangent
    np.testing.assert_allclose(found, expected[1])


PARAMETERS = {
    "Bernoulli": (dist.Bernoulli, 0.3),
    "Bernoulli, logits": (lambda x: dist.Bernoulli(logits=x), 0.3),
    "Beta": (dist.Beta, 0.7, 1.5),
    "Binomial": (lambda p: dist.Binomial(5, p), 0.3),
    "Categorical": (dist.Categorical, X),
    "Cauchy": (dist.Cauchy, 0.2, 1.0),
    "Chi2": (dist.Chi2, 3.0),
    "ContinuousBernoulli": (dist.ContinuousBernoulli, 0.3),
    "Dirichlet": (dist.Dirichlet, [0.5, 2.0]),
    "ExpRelaxedCategorical": (dist.ExpRelaxedCategorical, 0.5, X),
    "Exponential": (dist.Exponential, 2.0),
    "FisherSnedecor": (dist.FisherSnedecor, 3.0, 4.0),
    "Gamma": (dist.Gamma, 2.0, 3.0),
    "GeneralizedPareto": (dist.GeneralizedPareto, 0.0, 1.0, 0.3),
    "Geometric": (dist.Geometric, 0.3),
    "Gumbel": (dist.Gumbel, 0.1, 2.0),
    "HalfCauchy": (dist.HalfCauchy, 2.0),
    "HalfNormal": (dist.HalfNormal, 2.0),
    "Independent": (lambda a: dist.Independent(dist.Gamma(a, 1.0), 1), [2.0, 3.0]),
    "InverseGamma": (dist.InverseGamma, 2.0, 3.0),
    "Kumaraswamy": (dist.Kumaraswamy, 2.0, 3.0),
    "LKJCholesky": (lambda c: dist.LKJCholesky(3, c), 1.5),
    "Laplace": (dist.Laplace, 1.0, 3.0),
    "LogNormal": (dist.LogNormal, 1.0, 3.0),
    "LogisticNormal": (dist.LogisticNormal, [1.0, 2.0], [3.0, 1.0]),
    "LogitRelaxedBernoulli": (dist.LogitRelaxedBernoulli, 0.5, 0.3),
    "LowRankMultivariateNormal": (
        dist.LowRankMultivariateNormal,
        LOC,
        [[1.0], [0.5]],
        [3.0, 1.0],
    ),
    "MixtureSameFamily": (
        lambda p, a: dist.MixtureSameFamily(dist.Categorical(p), dist.Gamma(a, 1.0)),
        X,
        [1.0, 3.0],
    ),
    "Multinomial": (lambda p: dist.Multinomial(4, p), X),
    "MultivariateNormal": (dist.MultivariateNormal, LOC, COVARIANCE),
    "NegativeBinomial": (dist.NegativeBinomial, 3.0, 0.3),
    "Normal": (dist.Normal, 1.0, 3.0),
    "OneHotCategorical": (dist.OneHotCategorical, X),
    "OneHotCategoricalStraightThrough": (dist.OneHotCategoricalStraightThrough, X),
    "Pareto": (dist.Pareto, 1.0, 3.0),
    "Poisson": (dist.Poisson, 3.0),
    "RelaxedBernoulli": (dist.RelaxedBernoulli, 0.5, 0.3),
    "RelaxedOneHotCategorical": (dist.RelaxedOneHotCategorical, 0.5, X),
    "StudentT": (dist.StudentT, 3.0, 1.0, 2.0),
    "TransformedDistribution": (
        lambda a, b: dist.TransformedDistribution(
            dist.Gamma(a, 1.0), [transforms.AffineTransform(b, a)]
        ),
        3.0,
        1.0,
    ),
    "Uniform": (dist.Uniform, 0.0, 3.0),
    "VonMises": (dist.VonMises, 0.0, 3.0),
    "Weibull": (dist.Weibull, 2.0, 3.0),
    "Wishart": (dist.Wishart, 4.0, COVARIANCE),
}


def test_the_parameters_are_those_of_all_distributions():
    kinds = {
        name
        for name, kind in vars(dist).items()
        if isinstance(kind, type) and issubclass(kind, dist.Distribution)
    }
    told = {name.partition(",")[0] for name in PARAMETERS}
    assert told == kinds - {"Distribution", "ExponentialFamily"}


@pytest.mark.filterwarnings("ignore:Low df values")
@pytest.mark.parametrize("name", PARAMETERS)
def test_samples_have_no_derivatives_in_the_parameters(name):
    make, *at = PARAMETERS[name]
    at = tuple(map(_t, at))
    ones = tuple(map(torch.ones_like, at))
    ad = torch.autograd.forward_ad

    def sample(*parameters):
        return make(*parameters).sample((2,))

    assert not sample(*[x.clone().requires_grad_() for x in at]).requires_grad
    found, slope = torch.func.jvp(sample, at, ones)
    assert slope.dtype == found.dtype
    assert not slope.any()
    with ad.dual_level():
        assert ad.unpack_dual(sample(*map(ad.make_dual, at, ones))).tangent is None
    for slope in torch.func.grad(lambda *x: sample(*x).sum().double(), tuple(range(len(at))))(*at):
        assert not slope.any()
