"""Samplers and variational inference in plain PyTorch, as papers and their small packages do.

Draws come from NumPy, or on purpose from the generator of PyTorch after a seed. Chains are short:
trajectories are chaotic, so that rounding grows with their length.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import distributions as dist
from torch.autograd.functional import hessian as tape_hessian
from torch.autograd.functional import hvp, vjp
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vmap,
)
from torch.func import vjp as func_vjp
from torch.nn.utils import parameters_to_vector, vector_to_parameters

pytestmark = pytest.mark.filterwarnings("ignore")


def tensor(value):
    return torch.as_tensor(np.asarray(value), dtype=torch.float64)


def normal(*shape, seed=0):
    return tensor(np.random.default_rng(seed).normal(size=shape))


def banana(x):
    """A curved density in two dimensions."""
    return -0.5 * (x[0] ** 2 + 4.0 * (x[1] - x[0] ** 2) ** 2)


def funnel(x):
    """After Neal: the first variable is the logarithm of the scale of others.

    Their scales differ, as PyTorch's derivatives for equal eigenvalues of a Hessian are not finite.
    """
    scale = torch.exp(0.5 * x[0]) * tensor([1.0, 1.5, 2.5])
    first = dist.Normal(tensor(0.0), tensor(1.5)).log_prob(x[0])
    return first + dist.Normal(torch.zeros_like(x[1:]), scale).log_prob(x[1:]).sum()


def correlated(x):
    """A normal density by its Cholesky factor."""
    factor = tensor([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.3, 0.2, 0.9]])
    law = dist.MultivariateNormal(torch.zeros(3, dtype=torch.float64), scale_tril=factor)
    return law.log_prob(x)


def regression(x):
    """The posterior of a logistic regression."""
    A, labels = normal(20, 3, seed=1), (normal(20, seed=2) > 0).double()
    likelihood = dist.Bernoulli(logits=A @ x).log_prob(labels).sum()
    return likelihood + dist.Laplace(tensor(0.0), tensor(2.0)).log_prob(x).sum()


DENSITIES = {
    "banana": (banana, 2),
    "funnel": (funnel, 4),
    "correlated": (correlated, 3),
    "regression": (regression, 3),
}


def tape_slope(density):
    """Its gradient by ``torch.autograd.grad`` on a leaf."""

    def slope(x):
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(density(x), x)[0]

    return slope


def leapfrog(slope, x, p, step, steps):
    """Half a kick, drifts and kicks, half a kick; all places on the way."""
    places = []
    p = p + 0.5 * step * slope(x)
    for k in range(steps):
        x = x + step * p
        places.append(x)
        p = p + (step if k < steps - 1 else 0.5 * step) * slope(x)
    return x, p, torch.stack(places)


def metropolis(density, slope, x, momenta, levels, step, steps):
    """A chain by Hamilton's equations with given momenta and levels of acceptance."""
    chain, accepted = [], []
    for p, level in zip(momenta, levels, strict=True):
        y, q, _ = leapfrog(slope, x, p, step, steps)
        change = density(y) - density(x) + 0.5 * (p @ p - q @ q)
        accepted.append(bool(torch.log(level) < change))
        x = y.detach() if accepted[-1] else x
        chain.append(x)
    return torch.stack(chain), accepted


@pytest.mark.parametrize("slopes", ["tape", "func"])
@pytest.mark.parametrize("name", DENSITIES)
def test_hamiltonian_chains(agree, name, slopes):
    """Chains by both ways to a gradient."""
    density, d = DENSITIES[name]
    slope = tape_slope(density) if slopes == "tape" else grad(density)
    levels = tensor(np.random.default_rng(4).random(12))
    start = 0.1 * torch.ones(d, dtype=torch.float64)
    found = metropolis(density, slope, start, normal(12, d, seed=3), levels, 0.15, 6)
    agree("chain", found)


@pytest.mark.parametrize("name", DENSITIES)
def test_many_chains_at_once(agree, name):
    """``vmap`` of gradients along trajectories, and energies that are kept."""
    density, d = DENSITIES[name]
    x, p = 0.3 * normal(5, d, seed=5), normal(5, d, seed=6)
    y, q, places = leapfrog(vmap(grad(density)), x, p, 0.1, 8)
    agree("places", places)
    agree("change", vmap(density)(y) - vmap(density)(x) - 0.5 * (q**2 - p**2).sum(-1))


def test_a_chain_from_the_stream(agree):
    """Momenta and levels from the generator of PyTorch."""
    torch.manual_seed(11)
    x, chain = torch.zeros(3, dtype=torch.float64), []
    momentum = dist.MultivariateNormal(torch.zeros(3, dtype=torch.float64), torch.eye(3).double())
    for _ in range(10):
        p = momentum.sample()
        y, q, _ = leapfrog(tape_slope(correlated), x, p, 0.2, 5)
        change = correlated(y) - correlated(x) + momentum.log_prob(q) - momentum.log_prob(p)
        x = y if torch.rand(1).log() < change else x
        chain.append(x)
    agree("chain", torch.stack(chain))


def softabs(H, alpha=1e2):
    """A positive metric from a Hessian, by its eigenvalues."""
    values, vectors = torch.linalg.eigh(H)
    smooth = values / torch.tanh(alpha * values)
    return (vectors * smooth) @ vectors.mT


@pytest.mark.parametrize("derivative", ["tape", "func"])
@pytest.mark.parametrize("name", ["banana", "funnel"])
def test_metrics_from_hessians(agree, name, derivative):
    """Riemannian energies: log-determinants and solves by Cholesky factors, differentiated."""
    density, d = DENSITIES[name]

    def curvature(x):
        if derivative == "func":
            return hessian(lambda y: -density(y))(x)
        return tape_hessian(lambda y: -density(y), x, create_graph=True)

    def energy(x, p):
        factor = torch.linalg.cholesky(softabs(curvature(x)))
        white = torch.linalg.solve_triangular(factor, p[:, None], upper=False)[:, 0]
        return -density(x) + factor.diagonal().log().sum() + 0.5 * white @ white

    x, p = (0.4 * normal(d, seed=7)).requires_grad_(True), normal(d, seed=8).requires_grad_(True)
    value = energy(x, p)
    agree("energy", value)
    agree("slopes", torch.autograd.grad(value, (x, p)), rtol=1e-5)


def test_implicit_midpoints_on_a_manifold(agree):
    """The generalised leapfrog: fixed points for momentum and place, metric of Fisher's kind."""
    A = normal(15, 2, seed=9)

    def energy(x, p):
        weight = torch.sigmoid(A @ x)
        metric = A.T @ (A * (weight * (1 - weight))[:, None]) + torch.eye(2, dtype=torch.float64)
        factor = torch.linalg.cholesky(metric)
        kinetic = 0.5 * p @ torch.cholesky_solve(p[:, None], factor)[:, 0]
        return dist.Normal(A @ x, 1.0).log_prob(A.sum(-1)).sum().neg() + kinetic + (factor.logdet())

    of_place, of_momentum = grad(energy, argnums=0), grad(energy, argnums=1)
    x, p, step = tensor([0.5, 0.2]), tensor([1.0, -0.3]), 0.02
    places = []
    for _ in range(4):
        half = p
        for _ in range(6):
            half = p - 0.5 * step * of_place(x, half)
        y = x
        for _ in range(6):
            y = x + 0.5 * step * (of_momentum(x, half) + of_momentum(y, half))
        x, p = y, half - 0.5 * step * of_place(y, half)
        places.append(x)
    agree("places", torch.stack(places))
    agree("energy", energy(x, p))


def test_explicit_steps_of_doubled_variables(agree):
    """Two copies bound by a spring that rotates them, for energies that do not separate."""

    def energy(x, p):
        return -banana(x) + 0.5 * (p**2 / (1 + x**2)).sum()

    both = grad(energy, argnums=(0, 1))
    x, p, step, spring = tensor([0.3, 0.1]), tensor([0.5, -0.4]), 0.05, 8.0
    y, q = x.clone(), p.clone()
    cosine, sine = math.cos(2 * spring * step), math.sin(2 * spring * step)
    for _ in range(6):
        force, drift = both(x, q)
        p, y = p - step * force, y + step * drift
        force, drift = both(y, p)
        q, x = q - step * force, x + step * drift
        R = torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64)
        apart = R @ torch.stack([x - y, p - q])
        middle = torch.stack([x + y, p + q])
        (x, p), (y, q) = (middle + apart) / 2, (middle - apart) / 2
    agree("state", (x, p, y, q))


def tree(slope, density, x, p, level, way, depth, step):
    """A trajectory that doubles until it turns: ends, a candidate, a count, whether to go on."""
    if depth == 0:
        y, q, _ = leapfrog(slope, x, p, way * step, 1)
        gain = density(y) - 0.5 * q @ q
        return y, q, y, q, y, int(level <= gain), bool(level - 1000 < gain)
    x0, p0, x1, p1, chosen, count, alive = tree(slope, density, x, p, level, way, depth - 1, step)
    if alive:
        end = (x0, p0) if way < 0 else (x1, p1)
        u0, v0, u1, v1, other, more, alive = tree(slope, density, *end, level, way, depth - 1, step)
        x0, p0 = (u0, v0) if way < 0 else (x0, p0)
        x1, p1 = (x1, p1) if way < 0 else (u1, v1)
        if more and torch.rand(()) < more / (count + more):
            chosen = other
        count += more
        alive = alive and bool((x1 - x0) @ p0 >= 0) and bool((x1 - x0) @ p1 >= 0)
    return x0, p0, x1, p1, chosen, count, alive


@pytest.mark.parametrize("name", ["correlated", "regression"])
def test_no_u_turns(agree, name):
    """Slices, doublings and choices from the generator of PyTorch."""
    torch.manual_seed(21)
    density, d = DENSITIES[name]
    slope, x, chain, depths = tape_slope(density), torch.zeros(d, dtype=torch.float64), [], []
    for _ in range(6):
        p = torch.randn(d, dtype=torch.float64)
        level = density(x) - 0.5 * p @ p - dist.Exponential(tensor(1.0)).sample()
        x0, p0, x1, p1, count, depth, alive = x, p, x, p, 1, 0, True
        while alive and depth < 5:
            way = 1 if torch.rand(()) < 0.5 else -1
            end = (x0, p0) if way < 0 else (x1, p1)
            u0, v0, u1, v1, other, more, alive = tree(slope, density, *end, level, way, depth, 0.3)
            x0, p0 = (u0, v0) if way < 0 else (x0, p0)
            x1, p1 = (x1, p1) if way < 0 else (u1, v1)
            if alive and torch.rand(()) < more / count:
                x = other.detach()
            count, depth = count + more, depth + 1
            alive = alive and bool((x1 - x0) @ p0 >= 0) and bool((x1 - x0) @ p1 >= 0)
        chain.append(x)
        depths.append(depth)
    agree("depths", depths)
    agree("chain", torch.stack(chain))


def test_adaptation_by_dual_averaging(agree):
    """Steps follow the rate of acceptance; a diagonal of masses follows the variance."""
    step, average, centre, error = 0.5, 0.0, math.log(5.0), 0.0
    x, kept, masses = torch.zeros(4, dtype=torch.float64), [], torch.ones(4, dtype=torch.float64)
    steps = []
    for k, p in enumerate(normal(20, 4, seed=10), start=1):
        q = p * masses.sqrt()
        slope = grad(funnel)
        y, r = x, q + 0.5 * step * slope(x)
        for _ in range(4):
            y = y + step * r / masses
            r = r + step * slope(y)
        r = r - 0.5 * step * slope(y)
        change = funnel(y) - funnel(x) + 0.5 * ((q * q - r * r) / masses).sum()
        rate = change.exp().clamp(max=1.0).nan_to_num(0.0)
        error = (1 - 1 / (k + 10)) * error + (0.8 - rate.item()) / (k + 10)
        step = math.exp(centre - math.sqrt(k) / 0.05 * error) if k < 3 else 0.5 * (step + 0.1)
        average = 0.9 * average + 0.1 * math.log(step)
        x = y if rate > 0.5 else x
        kept.append(x)
        if k % 10 == 0:
            masses = 1 / (torch.stack(kept).var(0) + 1e-2)
        steps.append(step)
    agree("steps", steps)
    agree("average", average)
    agree("masses", masses)


# --- Networks ---------------------------------------------------------------------------------


def network(seed=0):
    """A small network whose weights are NumPy's."""
    made = torch.nn.Sequential(
        torch.nn.Linear(2, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
    ).double()
    count = sum(part.numel() for part in made.parameters())
    vector_to_parameters(0.5 * normal(count, seed=seed), made.parameters())
    return made


def unflatten(vector, made):
    """A dictionary of parameters that are views of a vector."""
    shapes = {name: part.shape for name, part in made.named_parameters()}
    parts = vector.split([shape.numel() for shape in shapes.values()])
    return {
        name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def posterior_of(made, X, Y, scale=0.3):
    """The log density of flat parameters, given data."""

    def density(vector):
        mean = functional_call(made, unflatten(vector, made), (X,))[:, 0]
        likelihood = dist.Normal(mean, scale).log_prob(Y).sum()
        return likelihood + dist.Normal(tensor(0.0), tensor(1.0)).log_prob(vector).sum()

    return density


def data():
    X = normal(24, 2, seed=12)
    return X, torch.sin(X[:, 0]) * X[:, 1] + 0.1 * normal(24, seed=13)


@pytest.mark.parametrize("slopes", ["tape", "func"])
def test_a_chain_of_a_network(agree, slopes):
    """Hamilton's equations for flattened weights, and predictions of the chain by ``vmap``."""
    made, (X, Y) = network(), data()
    density = posterior_of(made, X, Y)
    slope = tape_slope(density) if slopes == "tape" else grad(density)
    x = parameters_to_vector(made.parameters()).detach()
    levels = tensor(np.random.default_rng(14).random(8))
    chain, accepted = metropolis(density, slope, x, normal(8, len(x), seed=15), levels, 0.02, 6)
    agree("chain", chain)
    agree("accepted", accepted)
    agree("predictions", vmap(lambda w: functional_call(made, unflatten(w, made), X))(chain))


def test_splitting_over_batches(agree):
    """Kicks by one batch after another, there and back, keep the order of the method."""
    made, (X, Y) = network(), data()
    parts = [posterior_of(made, X[k::3], Y[k::3]) for k in range(3)]
    slopes = [tape_slope(part) for part in parts]
    x = parameters_to_vector(made.parameters()).detach()
    p = normal(len(x), seed=16)
    for _ in range(5):
        for k in (0, 1, 2, 2, 1, 0):
            p = p + 0.01 * slopes[k](x)
            x = x + 0.01 / 3 * p
            p = p + 0.01 * slopes[k](x)
    vector_to_parameters(x, made.parameters())
    agree("weights", dict(made.named_parameters()))
    agree("outputs", made(X))


def test_curvature_of_a_network(agree):
    """Hessians, Gauss-Newton products and Laplace's approximation."""
    made, (X, Y) = network(), data()
    density = posterior_of(made, X, Y)
    x, v = parameters_to_vector(made.parameters()).detach(), normal(21, seed=17)
    H = hessian(density)(x)
    agree("hessian", H)
    agree("tape", tape_hessian(density, x))
    agree("vectorised", tape_hessian(density, x, vectorize=True))
    agree("product", hvp(density, x, v))
    agree("forward over reverse", jvp(grad(density), (x,), (v,)))
    J = jacrev(lambda w: functional_call(made, unflatten(w, made), (X,))[:, 0])(x)
    agree("jacobian", J)
    agree("forward", jacfwd(lambda w: functional_call(made, unflatten(w, made), (X,))[:, 0])(x))
    precision = J.T @ J / 0.09 + torch.eye(len(x), dtype=torch.float64)
    law = dist.MultivariateNormal(x, precision_matrix=precision)
    agree("law", (law.log_prob(x + 0.1 * v), law.entropy(), law.covariance_matrix))
    agree("spread", (J @ law.covariance_matrix @ J.T).diagonal())
    agree("pulled", vjp(lambda w: functional_call(made, unflatten(w, made), (X,)), x, Y[:, None]))


def test_slopes_per_example(agree):
    """``vmap`` of ``grad`` over examples, and an empirical matrix of Fisher."""
    made, (X, Y) = network(), data()
    parameters = {name: part.detach() for name, part in made.named_parameters()}

    def loss(weights, x, y):
        return (functional_call(made, weights, (x,))[0] - y) ** 2

    slopes, values = vmap(grad_and_value(loss), in_dims=(None, 0, 0))(parameters, X, Y)
    agree("slopes", slopes)
    agree("values", values)
    flat = torch.cat([part.flatten(1) for part in slopes.values()], 1)
    fisher = flat.T @ flat / len(X)
    damped = torch.linalg.solve(fisher + 0.1 * torch.eye(21, dtype=torch.float64), flat.mean(0))
    agree("natural", damped)


def test_an_ensemble_by_stein(agree):
    """Networks that repel one another: a kernel of distances on stacked weights."""
    made, (X, Y) = network(), data()
    density = posterior_of(made, X, Y)
    stacked, _ = stack_module_state([network(seed) for seed in range(4)])
    w = torch.cat([part.detach().flatten(1) for part in stacked.values()], 1)
    optimizer_state = torch.zeros_like(w)
    for _ in range(10):
        distance = torch.cdist(w, w) ** 2
        width = distance.median() / math.log(len(w) + 1)
        kernel = torch.exp(-distance / width)
        pull = kernel @ vmap(grad(density))(w)
        push = 2 / width * (w * kernel.sum(1, keepdim=True) - kernel @ w)
        phi = (pull + push) / len(w)
        optimizer_state = 0.9 * optimizer_state + 0.1 * phi**2
        w = w + 0.01 * phi / (1e-6 + optimizer_state.sqrt())
    agree("weights", w)


# --- Variational inference and Langevin dynamics ----------------------------------------------


def test_stein_by_the_gradient_of_a_kernel(agree):
    """The repulsion by ``torch.autograd.grad`` of the sum of kernels with one side detached."""
    x = normal(12, 2, seed=18)
    target = dist.MixtureSameFamily(
        dist.Categorical(tensor([0.3, 0.7])),
        dist.Independent(dist.Normal(tensor([[-1.5, 0.0], [1.0, 1.0]]), tensor(0.7)), 1),
    )
    leaf = torch.nn.Parameter(x)
    optimizer = torch.optim.Adagrad([leaf], lr=0.1)
    for _ in range(12):
        score = torch.autograd.grad(target.log_prob(leaf).sum(), leaf)[0]
        kernel = torch.exp(-((leaf[:, None] - leaf.detach()[None]) ** 2).sum(-1) / 0.8)
        push = torch.autograd.grad(kernel.sum(), leaf)[0]
        leaf.grad = -(kernel.detach() @ score - push) / len(x)
        optimizer.step()
    agree("particles", leaf)


@pytest.mark.parametrize("kind", ["plain", "adjusted", "preconditioned", "underdamped"])
def test_langevin_dynamics(agree, kind):
    """Noise and slopes, with and without a correction, a preconditioner or a momentum."""
    slope, step = vmap(grad(banana)), 0.03
    x, v = 0.2 * normal(6, 2, seed=19), torch.zeros(6, 2, dtype=torch.float64)
    mean, places = torch.ones(6, 2, dtype=torch.float64), []
    levels = tensor(np.random.default_rng(20).random((15, 6)))
    for noise, level in zip(normal(15, 6, 2, seed=21), levels, strict=True):
        g = slope(x)
        if kind == "underdamped":
            v = v + step * g - 0.5 * step * v + math.sqrt(step) * noise
            x = x + step * v
        elif kind == "preconditioned":
            mean = 0.9 * mean + 0.1 * g * g
            scale = 1 / (1e-3 + mean.sqrt())
            x = x + step * scale * g + (2 * step * scale).sqrt() * noise
        else:
            y = x + step * g + math.sqrt(2 * step) * noise
            if kind == "adjusted":
                there = ((y - x - step * g) ** 2).sum(-1) / (4 * step)
                back = ((x - y - step * slope(y)) ** 2).sum(-1) / (4 * step)
                change = vmap(banana)(y) - vmap(banana)(x) + there - back
                y = torch.where((level.log() < change)[:, None], y, x)
            x = y
        places.append(x)
    agree("places", torch.stack(places))


def test_langevin_dynamics_of_a_network(agree):
    """A subclass of ``Optimizer`` that adds noise from the generator, on minibatches."""

    class Langevin(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for part in group["params"]:
                    part.add_(part.grad, alpha=-group["lr"])
                    part.add_(torch.randn_like(part), alpha=math.sqrt(2 * group["lr"]))

    torch.manual_seed(22)
    made, (X, Y) = network(), data()
    optimizer = Langevin(made.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: (1 + k) ** -0.55)
    for k in range(12):
        optimizer.zero_grad()
        (((made(X[k::12])[:, 0] - Y[k::12]) ** 2).sum() * 12).backward()
        optimizer.step()
        schedule.step()
    agree("weights", dict(made.named_parameters()))
    agree("rate", schedule.get_last_lr())


@pytest.mark.parametrize("name", ["correlated", "regression"])
def test_natural_gradients(agree, name):
    """Precisions follow Hessians, means follow them solved, over given noise."""
    density, d = DENSITIES[name]
    mean, precision = torch.zeros(d, dtype=torch.float64), torch.eye(d, dtype=torch.float64)
    for noise in normal(10, 8, d, seed=23):
        factor = torch.linalg.cholesky(precision)
        spread = torch.linalg.solve_triangular(factor.mT, noise.mT, upper=True).mT
        H = vmap(hessian(density))(mean + spread).mean(0)
        precision = 0.8 * precision - 0.2 * 0.5 * (H + H.mT)
        slope = vmap(grad(density))(mean + spread).mean(0)
        mean = mean + 0.2 * torch.linalg.solve(precision, slope)
    agree("law", (mean, precision))
    law = dist.MultivariateNormal(mean, precision_matrix=precision)
    prior = dist.MultivariateNormal(torch.zeros_like(mean), torch.eye(d, dtype=torch.float64))
    agree("divergence", dist.kl_divergence(law, prior))


def test_a_bound_by_black_boxes(agree):
    """Scores times values with a control variate, and the reparameterised slope beside it."""
    location = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    logs = torch.full((3,), -0.5, dtype=torch.float64, requires_grad=True)
    draws = location.detach() + logs.detach().exp() * normal(30, 3, seed=24)

    def law():
        return dist.Independent(dist.Normal(location, logs.exp()), 1)

    gains = vmap(regression)(draws) - law().log_prob(draws).detach()
    weights = gains - gains.mean()
    score = (law().log_prob(draws) * weights).mean()
    agree("score", torch.autograd.grad(score, (location, logs)))
    samples = location + logs.exp() * normal(30, 3, seed=24)
    bound = (vmap(regression)(samples) - law().log_prob(samples)).mean()
    agree("path", torch.autograd.grad(bound, (location, logs), retain_graph=True))
    importance = torch.logsumexp(vmap(regression)(samples) - law().log_prob(samples), 0)
    agree("weighted", torch.autograd.grad(importance - math.log(30), (location, logs)))


class Planar(torch.nn.Module):
    """A flow by one neuron."""

    def __init__(self, seed):
        super().__init__()
        self.u, self.w = (torch.nn.Parameter(0.3 * normal(2, seed=seed + k)) for k in range(2))
        self.b = torch.nn.Parameter(tensor(0.1))

    def forward(self, z):
        inner = self.w @ self.u
        u = self.u + (torch.nn.functional.softplus(inner) - 1 - inner) * self.w / (self.w**2).sum()
        h = torch.tanh(z @ self.w + self.b)
        return z + u * h[:, None], torch.log1p((1 - h**2) * (self.w @ u))


class Coupling(torch.nn.Module):
    """A flow that scales one half by the other."""

    def __init__(self, seed):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(1, 6), torch.nn.ELU(), torch.nn.Linear(6, 2)
        ).double()
        vector_to_parameters(0.4 * normal(26, seed=seed), self.net.parameters())

    def forward(self, z):
        shift, scale = self.net(z[:, :1]).chunk(2, -1)
        moved = z[:, 1:] * torch.tanh(scale).exp() + shift
        return torch.cat([moved, z[:, :1]], -1), torch.tanh(scale)[:, 0]


@pytest.mark.parametrize("layer", [Planar, Coupling])
def test_flows(agree, layer):
    """Trained by the reparameterised bound on given noise; determinants by Jacobians, too."""
    flow = torch.nn.ModuleList([layer(30 + 5 * k) for k in range(3)])
    optimizer = torch.optim.Adam(flow.parameters(), lr=0.02)
    losses = []

    def push(z):
        total = torch.zeros(len(z), dtype=z.dtype)
        for part in flow:
            z, change = part(z)
            total = total + change
        return z, total

    base = dist.Independent(dist.Normal(torch.zeros(2).double(), torch.ones(2).double()), 1)
    for noise in normal(15, 20, 2, seed=25):
        optimizer.zero_grad()
        x, change = push(noise)
        loss = (base.log_prob(noise) - change - vmap(banana)(x)).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 2.0)
        optimizer.step()
        losses.append(loss.item())
    agree("losses", losses)
    agree("weights", dict(flow.named_parameters()))
    z = normal(4, 2, seed=26)
    J = vmap(jacrev(lambda y: push(y[None])[0][0]))(z)
    agree("determinants", (torch.linalg.slogdet(J), push(z)[1]))


def test_flows_of_distributions(agree):
    """``TransformedDistribution`` with constraints, trained on data by its density."""
    location, logs = (torch.nn.Parameter(tensor(value)) for value in ([0.1, -0.2], [0.0, 0.3]))
    skew = torch.nn.Parameter(tensor(0.5))
    X = torch.exp(0.5 * normal(40, 2, seed=27))
    optimizer, losses = torch.optim.LBFGS([location, logs, skew], max_iter=6), []

    def law():
        affine = dist.transforms.AffineTransform(location, logs.exp(), event_dim=1)
        power = dist.transforms.PowerTransform(torch.nn.functional.softplus(skew))
        parts = [affine, dist.transforms.ExpTransform(), power]
        return dist.TransformedDistribution(dist.Normal(torch.zeros(2).double(), 1.0), parts)

    def closure():
        optimizer.zero_grad()
        loss = -law().log_prob(X).mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(2):
        optimizer.step(closure)
    agree("losses", losses, rtol=1e-5)
    torch.manual_seed(28)
    agree("samples", law().rsample((5,)), rtol=1e-5)
    agree(
        "cdf",
        dist.TransformedDistribution(
            dist.Normal(tensor(0.0), tensor(1.0)), [dist.transforms.SigmoidTransform()]
        ).cdf(tensor([0.2, 0.6])),
    )


def test_a_continuous_flow(agree):
    """Divergences by Hutchinson's estimator with ``vjp``, along Runge-Kutta steps."""
    made, probes = network(3), normal(6, 2, seed=29).sign()
    field = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Softplus(), torch.nn.Linear(8, 2))
    field = field.double()
    vector_to_parameters(0.3 * normal(42, seed=30), field.parameters())

    def rate(z):
        value, pull = func_vjp(field, z)
        return value, (pull(probes)[0] * probes).sum(-1)

    z, change = normal(6, 2, seed=31), torch.zeros(6, dtype=torch.float64)
    for _ in range(4):
        first, d0 = rate(z)
        second, d1 = rate(z + 0.25 * first)
        z, change = z + 0.25 * second, change + 0.125 * (d0 + d1)
    loss = (made(z)[:, 0] + change).sum()
    agree("state", (z, change))
    agree("slopes", torch.autograd.grad(loss, list(field.parameters())))
    exact = vmap(jacrev(field))(z).diagonal(dim1=-2, dim2=-1).sum(-1)
    agree("trace", exact)


def test_annealing_and_resampling(agree):
    """Weights between two densities, systematic resampling and moves by Metropolis."""
    torch.manual_seed(32)
    x, logs = normal(20, 2, seed=33), torch.zeros(20, dtype=torch.float64)
    base = dist.MultivariateNormal(torch.zeros(2).double(), torch.eye(2).double())
    evidence, target = tensor(0.0), vmap(banana)
    ladder = torch.linspace(0, 1, 6, dtype=torch.float64)
    for low, high in itertools.pairwise(ladder):
        gain = (high - low) * (target(x) - base.log_prob(x))
        logs = logs + gain
        evidence = evidence + torch.logsumexp(logs, 0) - math.log(len(x))
        weights = torch.softmax(logs, 0)
        edges = (torch.arange(20) + torch.rand(1)) / 20
        chosen = torch.searchsorted(weights.cumsum(0), edges.double()).clamp(max=19)
        x, logs = x[chosen], torch.zeros_like(logs)
        y = x + 0.4 * torch.randn_like(x)
        ratio = high * (target(y) - target(x)) + (1 - high) * (base.log_prob(y) - base.log_prob(x))
        x = torch.where((torch.rand(20).log() < ratio)[:, None], y, x)
    agree("evidence", evidence)
    agree("particles", x)
    agree("drawn", torch.multinomial(torch.softmax(target(x), 0), 5, replacement=True))


def test_slices_and_ellipses(agree):
    """Elliptical slices for a normal prior, from the generator."""
    torch.manual_seed(34)
    covariance = tensor([[1.0, 0.6], [0.6, 2.0]])
    prior = dist.MultivariateNormal(torch.zeros(2).double(), covariance)
    x, chain = torch.zeros(2, dtype=torch.float64), []

    def likelihood(y):
        return dist.StudentT(4.0, y.sum(), 0.5).log_prob(tensor([0.8, 1.4])).sum()

    for _ in range(15):
        other = prior.sample()
        level = likelihood(x) + torch.rand((), dtype=torch.float64).log()
        angle = dist.Uniform(tensor(0.0), tensor(2 * math.pi)).sample()
        low, high = angle - 2 * math.pi, angle
        while True:
            y = x * angle.cos() + other * angle.sin()
            if likelihood(y) > level:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * torch.rand((), dtype=torch.float64)
        x = y
        chain.append(x)
    agree("chain", torch.stack(chain))


def test_diagnostics_of_chains(agree):
    """Autocorrelations by Fourier transforms, effective sizes, split ratios and ranks."""
    x = normal(4, 64, 3, seed=35).cumsum(1) * 0.2 + normal(4, 64, 3, seed=36)
    centred = x - x.mean(1, keepdim=True)
    spectrum = torch.fft.rfft(centred, n=128, dim=1)
    covariances = torch.fft.irfft(spectrum * spectrum.conj(), n=128, dim=1)[:, :64] / 64
    within, between = x.var(1).mean(0), x.mean(1).var(0) * 64
    total = within * 63 / 64 + between / 64
    rho = 1 - (within - covariances.mean(0)) / total
    pairs = (rho[0::2] + rho[1::2]).cummin(0).values
    positive = (pairs > 0).cumprod(0)
    agree("size", 256 / (2 * (pairs * positive).sum(0) - 1))
    halves = x.unflatten(1, (2, 32)).flatten(0, 1)
    agree("ratio", ((halves.mean(1).var(0) + halves.var(1).mean(0)) / halves.var(1).mean(0)).sqrt())
    ranks = x.flatten(0, 1).argsort(0).argsort(0)
    agree("normal scores", torch.special.ndtri((ranks + 0.625) / 256.25))
    agree("quantiles", x.flatten(0, 1).quantile(tensor([0.05, 0.5, 0.95]), dim=0))
    agree("discrepancy", torch.cdist(x[0], x[1]).mean() - torch.pdist(x[0]).mean())
