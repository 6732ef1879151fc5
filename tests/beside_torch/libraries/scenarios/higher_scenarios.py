"""Unrolled optimisation by ``higher``: the gradients of what comes after a few steps.

Nine small modules under twelve settings of the optimizers that have differentiable versions
(AdamW's is registered here), with respect to the initial parameters, the settings of the optimizer,
and a second time; then what patched modules and differentiable optimizers do besides.
"""

import math
import warnings

import higher
import numpy as np
import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def _float64():
    """Numbers are float64; ``higher`` warns of its RMSprop and Rprop, and of nothing else here."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_default_dtype(before)


def drawn(*shape, seed=0, scale=1.0):
    """Normal numbers by NumPy's generator."""
    return torch.tensor(np.random.default_rng([seed, *shape]).normal(size=shape) * scale)


class Convolved(nn.Module):
    """A convolution of one or two dimensions, its pooling, and a linear layer."""

    def __init__(self, dimensions):
        super().__init__()
        if dimensions == 1:
            self.convolution = nn.Conv1d(2, 4, 3, padding=1, groups=2)
            self.pooling = nn.AvgPool1d(2)
        else:
            self.convolution = nn.Conv2d(1, 4, 3, stride=2, padding=1)
            self.pooling = nn.MaxPool2d(2)
        self.last = nn.Linear(12 if dimensions == 1 else 4, 2)

    def forward(self, x):
        """The pooled values of all channels, weighed."""
        return self.last(self.pooling(torch.tanh(self.convolution(x))).flatten(1))


class Normed(nn.Module):
    """Batch normalisation, which keeps statistics, and layer normalisation."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4, bias=False)
        self.batch = nn.BatchNorm1d(4, momentum=0.3)
        self.layer = nn.LayerNorm(4)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        """A sigmoid lies between both."""
        return self.last(self.layer(torch.sigmoid(self.batch(self.first(x)))))


class Recurrent(nn.Module):
    """A GRU over a sequence."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 3, batch_first=True)
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        """What the last element leaves."""
        return self.last(self.gru(x)[0][:, -1])


class Cell(nn.Module):
    """An LSTM cell, called for each element of a sequence."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(2, 3)
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        """The state starts with zeros."""
        state = None
        for item in x.unbind(1):
            state = self.cell(item, state)
        return self.last(state[0])


class Embedded(nn.Module):
    """Rows of a table; some are never asked for."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 3, padding_idx=0)
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        """The mean of the rows."""
        return self.last(torch.tanh(self.table(x)).mean(1))


class Attentive(nn.Module):
    """Attention of two heads; a bias of keys would have a gradient of rounding errors alone."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, bias=False, batch_first=True)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        """The first place attends to all."""
        return self.last(self.attention(x[:, :1], x, x)[0].squeeze(1))


class Tied(nn.Module):
    """One matrix at two places."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.outer = nn.Linear(3, 3, bias=False)
        self.outer.weight = self.inner.weight
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        """There and back."""
        return self.outer(torch.tanh(self.inner(x))) * (1 + self.scale)


def perceptron():
    """Two layers and a tanh."""
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


MODULES = {
    "perceptron": (perceptron, (5, 3)),
    "conv1d": (lambda: Convolved(1), (3, 2, 6)),
    "conv2d": (lambda: Convolved(2), (3, 1, 5, 5)),
    "norm": (Normed, (6, 3)),
    "gru": (Recurrent, (2, 4, 2)),
    "lstm_cell": (Cell, (2, 3, 2)),
    "embedding": (Embedded, None),
    "attention": (Attentive, (2, 3, 4)),
    "tied": (Tied, (4, 3)),
}


class DifferentiableAdamW(higher.optim.DifferentiableOptimizer):
    """AdamW, as someone who uses ``higher`` would add it."""

    def _update(self, grouped_grads, **kwargs):
        for group, grads, states in zip(self.param_groups, grouped_grads, self.state, strict=True):
            (beta1, beta2), decay = group["betas"], group["lr"] * group["weight_decay"]
            for place, (parameter, grad) in enumerate(zip(group["params"], grads, strict=True)):
                state = states[place]
                count = state["step"] = state.get("step", 0) + 1
                first = state["exp_avg"] = beta1 * state.get("exp_avg", 0) + (1 - beta1) * grad
                second = beta2 * state.get("exp_avg_sq", 0) + (1 - beta2) * grad * grad
                state["exp_avg_sq"] = second
                root = torch.where(second > 0, second, torch.ones_like(second)).sqrt()
                root = torch.where(second > 0, root, torch.zeros_like(second))
                root = root / (1 - beta2**count) ** 0.5 + group["eps"]
                moved = group["lr"] / (1 - beta1**count) * first / root
                group["params"][place] = parameter * (1 - decay) - moved


higher.register_optim(torch.optim.AdamW, DifferentiableAdamW)

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.2}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "dampening": 0.3}),
    "nesterov": (
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.7, "nesterov": True, "weight_decay": 0.02},
    ),
    "adam": (torch.optim.Adam, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3}),
    "amsgrad": (
        torch.optim.Adam,
        {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1, "eps": 1e-3},
    ),
    "adamw": (torch.optim.AdamW, {"lr": 0.05, "weight_decay": 0.1, "eps": 1e-3}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.03}),
    "adadelta": (torch.optim.Adadelta, {"lr": 0.7, "rho": 0.8, "eps": 1e-3}),
    "adamax": (torch.optim.Adamax, {"lr": 0.05, "eps": 1e-3}),
    "asgd": (torch.optim.ASGD, {"lr": 0.1, "lambd": 0.02, "alpha": 0.6, "t0": 1.0}),
    "rmsprop": (
        torch.optim.RMSprop,
        {"lr": 0.02, "momentum": 0.5, "centered": True, "weight_decay": 0.1, "eps": 1e-2},
    ),
    "rprop": (torch.optim.Rprop, {"lr": 0.03, "etas": (0.4, 1.3)}),
}

each_module = pytest.mark.parametrize("module", MODULES)
each_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS)


def made(name):
    """A module with drawn parameters, the data of the steps, and those of the outer loss."""
    build, shape = MODULES[name]
    module = build()
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=seed, scale=0.5) + 0.05)
    if shape is None:
        return module, torch.tensor([[1, 2, 2], [0, 5, 1]]), torch.tensor([[2, 3, 0], [5, 5, 1]])
    return module, drawn(*shape, seed=10), drawn(*shape, seed=11)


def optimizer_of(name, module):
    """An optimizer of PyTorch's over the parameters."""
    build, settings = OPTIMIZERS[name]
    return build(module.parameters(), **settings)


def loss_of(module, x, shift=0.3, **options):
    """How far the outputs lie from a slope."""
    out = module(x, **options)
    goal = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    return ((out - goal + shift) ** 2).mean()


def unrolled(fmodel, optimizer, x, later, steps=3):
    """The losses of some steps and the outer one."""
    losses = []
    for step in range(steps):
        losses.append(loss_of(fmodel, x, 0.1 * step))
        optimizer.step(losses[-1])
    return losses, loss_of(fmodel, later)


@each_optimizer
@each_module
def test_initial_parameters(agree, module, optimizer):
    """The gradients of the module's own parameters, through three steps."""
    module, x, later = made(module)
    settings = optimizer_of(optimizer, module)
    with higher.innerloop_ctx(module, settings, copy_initial_weights=False) as (fmodel, steps):
        losses, outer = unrolled(fmodel, steps, x, later)
        agree("losses", [*losses, outer])
        agree("parameters", list(fmodel.parameters()))
        outer.backward()
    agree("gradients", [parameter.grad for parameter in module.parameters()])


@each_optimizer
@each_module
def test_settings(agree, module, optimizer):
    """The gradients of all numbers among the settings, for two groups of parameters."""
    module, x, later = made(module)
    build, settings = OPTIMIZERS[optimizer]
    parameters = list(module.parameters())
    groups = [{"params": parameters[:1], "lr": 0.04}, {"params": parameters[1:]}]
    settings = build(groups, **settings)
    override = higher.optim.get_trainable_opt_params(settings)
    assert len(override["lr"]) == 2
    with higher.innerloop_ctx(module, settings, override=override) as (fmodel, steps):
        _, outer = unrolled(fmodel, steps, x, later)
        asked = {name: higher.utils.flatten(override[name]) for name in sorted(override)}
        flat = [tensor for tensors in asked.values() for tensor in tensors]
        found = torch.autograd.grad(outer, flat, allow_unused=True)
    agree("loss", outer)
    agree("unused", [grad is None for grad in found])
    agree("gradients", [grad for grad in found if grad is not None])


@each_optimizer
@each_module
def test_second_order(agree, module, optimizer):
    """The product of a vector and the Hessian of the outer loss over the fast weights at first.

    Over the last ones with norms, as theirs is a third derivative otherwise: PyTorch's of
    ``layer_norm`` and ``batch_norm`` is not what differences of the second one say.
    """
    module, x, later = made(module)
    build, settings = OPTIMIZERS[optimizer]
    fmodel = higher.monkeypatch(module)
    steps = higher.create_diff_optim(build, settings, fmodel=fmodel)
    _, outer = unrolled(fmodel, steps, x, later, steps=2)
    first = list(fmodel.parameters(time=-1 if isinstance(module, Normed) else 0))
    gradients = torch.autograd.grad(outer, first, create_graph=True)
    vectors = [drawn(*item.shape, seed=20 + index) for index, item in enumerate(first)]
    along = sum((grad * vector).sum() for grad, vector in zip(gradients, vectors, strict=True))
    agree("gradients", gradients)
    agree("products", torch.autograd.grad(along, first))
    assert all(parameter.grad is None for parameter in module.parameters())


@each_module
def test_functional(agree, module):
    """A module without parameters of its own; attention reads a matrix of a part uncalled."""
    module, x, _ = made(module)
    fmodel = higher.patch.make_functional(module)
    higher.patch.buffer_sync(module, fmodel)
    parameters = [item.detach().clone().requires_grad_() for item in module.parameters()]
    if isinstance(module, Attentive):
        fmodel.update_params(parameters)
    else:
        with pytest.raises(ValueError, match="params"):
            fmodel(x)
    loss = loss_of(fmodel, x, params=parameters)
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    agree("loss", loss)
    agree("gradients", gradients)
    agree("norm", torch.autograd.grad(sum((grad**2).sum() for grad in gradients), parameters))


@each_optimizer
def test_not_tracked(agree, optimizer):
    """Without higher gradients only the newest weights are there, and they are leaves."""
    module, x, later = made("perceptron")
    settings = optimizer_of(optimizer, module)
    with higher.innerloop_ctx(module, settings, track_higher_grads=False) as (fmodel, steps):
        _, outer = unrolled(fmodel, steps, x, later)
        newest = list(fmodel.parameters())
        assert all(item.is_leaf and item.requires_grad for item in newest)
        with pytest.raises(ValueError, match="not tracking"):
            fmodel.parameters(time=1)
        with pytest.raises(Exception, match="initial"):
            _ = fmodel.init_fast_params
    agree("parameters", newest)
    agree("gradients", torch.autograd.grad(outer, newest))


@each_optimizer
def test_unrolled_equals_steps_in_place(agree, optimizer):
    """Three steps by PyTorch's optimizer; ``higher``'s go on from its state and leave it alone."""
    module, x, later = made("tied")
    settings = optimizer_of(optimizer, module)
    for step in range(3):
        settings.zero_grad()
        loss_of(module, x, 0.1 * step).backward()
        settings.step()
    before = [parameter.detach().clone() for parameter in module.parameters()]
    agree("in place", before)
    fmodel = higher.monkeypatch(module, copy_initial_weights=False)
    steps = higher.get_diff_optim(settings, module.parameters(), fmodel=fmodel)
    _, outer = unrolled(fmodel, steps, x, later, steps=2)
    agree("parameters", list(fmodel.parameters()))
    agree("gradients", torch.autograd.grad(outer, list(module.parameters())))
    for old, parameter in zip(before, module.parameters(), strict=True):
        assert torch.equal(old, parameter)


@pytest.mark.parametrize("copied", [True, False])
def test_weights_in_time(agree, copied):
    """The weights of each time; copied ones are leaves apart from the module's."""
    module, x, later = made("perceptron")
    settings = optimizer_of("momentum", module)
    with higher.innerloop_ctx(module, settings, copy_initial_weights=copied) as (fmodel, steps):
        _, outer = unrolled(fmodel, steps, x, later)
        assert all(item.is_leaf == copied for item in fmodel.parameters(time=0))
        for time in range(4):
            weights = list(fmodel.parameters(time=time))
            agree(f"weights {time}", weights)
            agree(f"gradients {time}", torch.autograd.grad(outer, weights, retain_graph=True))
        outer.backward()
    agree("reached", [parameter.grad is not None for parameter in module.parameters()])


def test_two_outer_rounds(agree):
    """Meta-learning: the parameters and a learnt rate by Adam, for two tasks a round."""
    module, x, later = made("perceptron")
    rate = torch.tensor(0.1, requires_grad=True)
    outer_steps = torch.optim.Adam([*module.parameters(), rate], lr=0.01)
    for round_ in range(3):
        outer_steps.zero_grad()
        for task in range(2):
            settings = torch.optim.SGD(module.parameters(), lr=0.1)
            with higher.innerloop_ctx(
                module, settings, copy_initial_weights=False, override={"lr": [rate]}
            ) as (fmodel, steps):
                _, outer = unrolled(fmodel, steps, x + task, later - task)
                outer.backward()
        outer_steps.step()
        agree(f"rate {round_}", rate)
        agree(f"parameters {round_}", list(module.parameters()))


def test_settings_are_applied(agree):
    """Learnt settings return to the optimizer as numbers."""
    module, x, later = made("conv1d")
    settings = optimizer_of("adam", module)
    override = higher.optim.get_trainable_opt_params(settings)
    with higher.innerloop_ctx(module, settings, override=override) as (fmodel, steps):
        _, outer = unrolled(fmodel, steps, x, later)
        outer.backward()
    with torch.no_grad():
        for tensor in (override["lr"][0], *override["betas"][0]):
            tensor -= 0.01 * tensor.grad
    kept = {name: override[name] for name in ("lr", "betas")}
    higher.optim.apply_trainable_opt_params(settings, kept)
    group = settings.param_groups[0]
    assert isinstance(group["lr"], float)
    assert isinstance(group["betas"], tuple)
    agree("settings", [group["lr"], *group["betas"]])


@pytest.mark.parametrize("place", ["made", "step"])
def test_gradients_are_clipped(agree, place):
    """A function of all gradients, given to the optimizer or to one step."""
    module, x, later = made("gru")

    def clipped(gradients):
        size = sum((grad**2).sum() for grad in gradients).sqrt()
        return [grad * (0.1 / size).clamp(max=1) for grad in gradients]

    fmodel = higher.monkeypatch(module)
    options = {"grad_callback": clipped} if place == "made" else {}
    steps = higher.get_diff_optim(
        optimizer_of("sgd", module), module.parameters(), fmodel=fmodel, **options
    )
    for _ in range(2):
        steps.step(loss_of(fmodel, x), **({"grad_callback": clipped} if place == "step" else {}))
    outer = loss_of(fmodel, later)
    agree("gradients", torch.autograd.grad(outer, list(fmodel.parameters(time=0))))


def test_settings_of_a_step(agree):
    """A rate for each step."""
    module, x, later = made("perceptron")
    rates = torch.tensor([0.1, 0.2, 0.05], requires_grad=True)
    with higher.innerloop_ctx(module, optimizer_of("momentum", module)) as (fmodel, steps):
        for rate in rates:
            steps.step(loss_of(fmodel, x), override={"lr": [rate]})
        loss_of(fmodel, later).backward()
    agree("rates", rates.grad)


def test_parameters_are_handed_over(agree):
    """An optimizer that knows no module is given the weights and returns the next ones."""
    module, x, later = made("perceptron")
    fmodel = higher.patch.make_functional(module)
    first = [item.detach().clone().requires_grad_() for item in module.parameters()]
    steps = higher.create_diff_optim(torch.optim.Adagrad, {"lr": 0.1}, params=first)
    with pytest.raises(ValueError, match="params"):
        steps.step(loss_of(fmodel, x, params=first))
    weights = first
    for _ in range(3):
        weights = steps.step(loss_of(fmodel, x, params=weights), params=weights)
    outer = loss_of(fmodel, later, params=weights)
    agree("weights", weights)
    agree("gradients", torch.autograd.grad(outer, first))


def test_frozen_parameters(agree):
    """A layer that needs no gradient stays."""
    module, x, later = made("perceptron")
    module[0].requires_grad_(False)
    with higher.innerloop_ctx(module, optimizer_of("adam", module)) as (fmodel, steps):
        _, outer = unrolled(fmodel, steps, x, later)
        free = [item for item in fmodel.parameters(time=0) if item.requires_grad]
        assert len(free) == 2
        agree("weights", list(fmodel.parameters()))
        agree("gradients", torch.autograd.grad(outer, free))


def test_statistics_are_copied(agree):
    """The patched module's statistics move, the module's do not."""
    module, x, later = made("norm")
    with higher.innerloop_ctx(module, optimizer_of("sgd", module)) as (fmodel, steps):
        unrolled(fmodel, steps, x, later)
        agree("theirs", dict(fmodel.named_buffers()))
        agree("its own", dict(module.named_buffers()))
        fmodel.eval()
        agree("evaluated", fmodel(later))


def test_assigned_weights(agree):
    """A weight set by its name is a new time of all weights, and is differentiated."""
    module, x, _ = made("tied")
    fmodel = higher.monkeypatch(module)
    scale = torch.tensor(1.5, requires_grad=True)
    fmodel.scale = fmodel.scale * scale
    assert len(fmodel._fast_params) == 2
    loss = loss_of(fmodel, x)
    first = list(fmodel.parameters(time=0))
    agree("gradients", torch.autograd.grad(loss, [scale, *first]))
    with pytest.raises(TypeError, match="Tensor"):
        fmodel.scale = 1.0


def test_part_is_called(agree):
    """A part of a patched module runs on the weights of the whole."""
    module, x, _ = made("norm")
    with higher.innerloop_ctx(module, optimizer_of("sgd", module)) as (fmodel, steps):
        steps.step(loss_of(fmodel, x))
        part = fmodel.first(x)
        first = list(fmodel.parameters(time=0))
        found = torch.autograd.grad((part**2).sum(), first, allow_unused=True)
    agree("part", part)
    agree("unused", [grad is None for grad in found])
    agree("gradients", [grad for grad in found if grad is not None])


def test_implicit_of_a_line(agree):
    """A step of SGD on a square, whose derivatives are known."""
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, 3.0)
    rate = torch.tensor(0.25, requires_grad=True)
    settings = torch.optim.SGD(module.parameters(), lr=1.0)
    with higher.innerloop_ctx(
        module, settings, copy_initial_weights=False, override={"lr": [rate]}
    ) as (fmodel, steps):
        steps.step((fmodel(torch.ones(1, 1)) ** 2).sum())
        outer = fmodel(torch.ones(1, 1)).sum()
        found = torch.autograd.grad(outer, [module.weight, rate])
    agree("found", found)
    assert math.isclose(found[0].item(), 1 - 2 * 0.25)
    assert math.isclose(found[1].item(), -2 * 3.0)


def test_errors(agree):
    """What is refused."""
    module, x, _ = made("perceptron")
    settings = optimizer_of("sgd", module)
    fmodel = higher.monkeypatch(module)
    with pytest.raises(ValueError, match="not supported"):
        higher.get_diff_optim(torch.optim.LBFGS(module.parameters()), module.parameters())
    with pytest.raises(ValueError, match="Mismatch"):
        higher.get_diff_optim(settings, module.parameters(), override={"lr": [0.1, 0.2]})
    with pytest.raises(ValueError, match="Could not find parameter"):
        higher.get_diff_optim(settings, list(module.parameters())[1:])
    with pytest.raises(ValueError, match="Monkey-patching"):
        higher.monkeypatch(fmodel)
    with pytest.raises(ValueError, match="one of fmodel or params"):
        higher.create_diff_optim(torch.optim.SGD, {"lr": 0.1})
    agree("still", fmodel(x))
