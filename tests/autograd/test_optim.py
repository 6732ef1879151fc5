"""Optimizers against their formulas; schedules; state; steps under ``jit``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
import functrans.compat.torch as torch
from functrans.compat.torch import nn, optim

G = [np.array([0.5, -2.0]), np.array([1.5, 0.25]), np.array([-1.0, 0.75])]
START = np.array([1.0, -1.0])


def after(make: Callable[[Any], Any]) -> np.ndarray:
    """The parameter after three steps with given gradients."""
    p = torch.tensor(START, requires_grad=True)
    optimizer = make([p])
    for g in G:
        p.grad = torch.tensor(g)
        optimizer.step()
    return p.detach().numpy()


def test_sgd() -> None:
    assert_allclose(after(lambda p: optim.SGD(p, lr=0.1)), START - 0.1 * sum(G))


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_with_momentum(nesterov: bool) -> None:
    x, v = START.copy(), None
    for g in G:
        g = g + 0.01 * x
        v = g if v is None else 0.9 * v + g
        x = x - 0.1 * (g + 0.9 * v if nesterov else v)
    found = after(
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=nesterov, weight_decay=0.01)
    )
    assert_allclose(found, x)


@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(decoupled: bool) -> None:
    x, m, v = START.copy(), np.zeros(2), np.zeros(2)
    for t, g in enumerate(G, 1):
        if decoupled:
            x = x * (1 - 0.1 * 0.2)
        else:
            g = g + 0.2 * x
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    kind = optim.AdamW if decoupled else optim.Adam
    found = after(lambda p: kind(p, lr=0.1, betas=(0.9, 0.99), weight_decay=0.2))
    assert_allclose(found, x)


def test_rmsprop_and_adagrad() -> None:
    x, v = START.copy(), np.zeros(2)
    for g in G:
        v = 0.9 * v + 0.1 * g * g
        x = x - 0.1 * g / (np.sqrt(v) + 1e-8)
    assert_allclose(after(lambda p: optim.RMSprop(p, lr=0.1, alpha=0.9)), x)
    x, v = START.copy(), np.zeros(2)
    for t, g in enumerate(G):
        v = v + g * g
        x = x - 0.1 / (1 + 0.5 * t) * g / (np.sqrt(v) + 1e-10)
    assert_allclose(after(lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.5)), x)


@pytest.mark.parametrize(
    "kind",
    [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adamax, optim.NAdam,
     optim.Rprop, optim.Adadelta],
)  # fmt: skip
def test_every_algorithm_finds_the_minimum_of_a_parabola(kind: Any) -> None:
    p = torch.tensor([3.0, -2.0], requires_grad=True)
    optimizer = kind([p], lr={optim.SGD: 0.1, optim.Adadelta: 100.0}.get(kind, 0.3))
    for _ in range(300):
        optimizer.zero_grad()
        ((p - 1) ** 2).sum().backward()
        optimizer.step()
    assert_allclose(p.detach().numpy(), 1.0, atol=0.05)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_of_rosenbrocks_function(search: str | None) -> None:
    p = torch.tensor([-0.5, 0.7], dtype=torch.float64, requires_grad=True)
    lr = 1.0 if search else 0.05
    optimizer = optim.LBFGS([p], lr=lr, max_iter=400, max_eval=2000, line_search_fn=search)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert first.item() == pytest.approx(1.5**2 + 100 * 0.45**2)
    assert_allclose(p.detach().numpy(), 1.0, atol=1e-3)
    with pytest.raises(TypeError, match="closure"):
        optimizer.step()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optim.SGD(p, lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda p: optim.SGD(p, lr=1.0, nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: optim.Adam(p, betas=(1.0, 0.9)), ValueError, "parameter at index 0: 1.0"),
        (lambda p: optim.SGD([], lr=1.0), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p[0], lr=1.0), TypeError, "torch.FloatTensor"),
        (lambda p: optim.SGD([1.0], lr=1.0), TypeError, "can only optimize Tensors"),
        (lambda p: optim.SGD([p[0] * 2], lr=1.0), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([{"params": p}, {"params": p}], lr=1.0), ValueError, "more than one"),
        (lambda p: optim.SGD(p, differentiable=True), NotImplementedError, "differentiable=True"),
    ],
)
def test_what_optimizers_refuse(make: Callable[[Any], Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make([torch.ones(2, requires_grad=True)])


def test_a_loaded_state_goes_on_as_before() -> None:
    def run(restart: bool) -> Any:
        p = torch.tensor(START, requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)
        for i, g in enumerate(G):
            if restart and i == 1:
                other = optim.Adam([p], lr=9.0)
                other.load_state_dict(optimizer.state_dict())
                optimizer = other
            p.grad = torch.tensor(g)
            optimizer.step()
        return p.detach().numpy()

    assert_allclose(run(True), run(False))
    p = torch.ones(1, requires_grad=True)
    q = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([p], lr=1.0).load_state_dict(
            optim.SGD([{"params": [p]}, {"params": [q]}], lr=1.0).state_dict()
        )


def test_groups_have_options_of_their_own() -> None:
    p, q = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([{"params": [p], "lr": 1.0}], lr=0.5)
    optimizer.add_param_group({"params": q})
    (p + q).sum().backward()
    optimizer.step()
    assert (p.item(), q.item()) == (0.0, 0.5)
    assert p._version == 1


def test_hooks_around_a_step() -> None:
    p = torch.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=1.0)
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == ["before", "after", "before"]


RATES = [
    (lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
    (lambda o: optim.lr_scheduler.MultiStepLR(o, [1, 3], 0.1), [1, 0.1, 0.1, 0.01, 0.01]),
    (lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
    (lambda o: optim.lr_scheduler.LambdaLR(o, lambda n: 0.5**n), [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16]),
    (lambda o: optim.lr_scheduler.LinearLR(o, 0.5, 1.0, 4), [0.5, 0.625, 0.75, 0.875, 1]),
    (lambda o: optim.lr_scheduler.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1, 1]),
    (lambda o: optim.lr_scheduler.PolynomialLR(o, 4, 2.0), [1, 9 / 16, 1 / 4, 1 / 16, 0]),
    (lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 4),
     [(1 + np.cos(np.pi * n / 4)) / 2 for n in range(5)]),
    (lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2), [1, 0.5, 1, 0.5, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), RATES)
def test_schedules(make: Callable[[Any], Any], expected: Any) -> None:
    optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = make(optimizer)
    rates = []
    for _ in expected:
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert_allclose(rates, expected, atol=1e-15)


def test_a_plateau_lowers_the_rate() -> None:
    optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    for value, rate in ((3.0, 1.0), (2.0, 1.0), (2.0, 1.0), (2.0, 0.5), (1.0, 0.5)):
        schedule.step(value)
        assert optimizer.param_groups[0]["lr"] == rate


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.01),
        lambda p: optim.AdamW(p, lr=0.01),
        lambda p: optim.RMSprop(p, lr=0.01),
    ],
)
def test_a_jitted_step_does_what_the_eager_one_does(make: Callable[[Any], Any]) -> None:
    def run(compiled: bool) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = make(model.parameters())
        x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])

        def step() -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = ft.jit(step) if compiled else step
        losses = [call().item() for _ in range(5)]
        return losses, [p.detach().numpy().copy() for p in model.parameters()]

    (eager, weights), (jitted, others) = run(False), run(True)
    assert_allclose(jitted, eager, rtol=1e-5)
    for a, b in zip(weights, others, strict=True):
        assert_allclose(b, a, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
        *(lambda p, c=c: c(p) for c in (optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam)),
    ],
)
@pytest.mark.parametrize("cyclic", [False, True])
def test_a_jitted_step_is_traced_once_for_all_momenta_of_a_schedule(
    make: Callable[[Any], Any], cyclic: bool
) -> None:
    def run(compiled: bool) -> Any:
        p = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
        optimizer = make([p])
        rates = optim.lr_scheduler
        schedule = (
            rates.CyclicLR(optimizer, 0.01, 0.1, 3, cycle_momentum=True)
            if cyclic
            else rates.OneCycleLR(optimizer, 0.1, 12)
        )
        programs, values = [], []

        def step() -> None:
            p.grad = p.detach() ** 3
            optimizer.step()

        call = ft.jit(step) if compiled else step
        for _ in range(8):
            call()
            schedule.step()
            values.append(p.detach().numpy().copy())
            if compiled:
                programs.append(len(call.explain()))
        name = "betas" if "betas" in optimizer.defaults else "momentum"
        kind = type(optimizer.defaults[name])
        return values, programs, type(optimizer.param_groups[0][name]) is kind

    (eager, *_), (jitted, programs, is_same_kind) = run(False), run(True)
    assert_allclose(jitted, eager, rtol=1e-5)
    assert programs[2:] == [programs[2]] * 6
    assert is_same_kind


@pytest.mark.parametrize("name", ["NAdam", "ASGD", "RAdam"])
def test_numbers_of_states_have_the_default_dtype_where_it_is_double(name):
    torch.set_default_dtype(np.float64)
    try:
        for wrap in (lambda f: f, ft.jit):
            p = torch.tensor([1.0, 2.0], requires_grad=True)
            optimizer = getattr(torch.optim, name)([p], lr=0.01)

            def step(p=p, optimizer=optimizer):
                p.grad = p.detach() ** 3
                optimizer.step()

            stepped = wrap(step)
            for _ in range(3):
                stepped()
            assert {v.dtype for v in optimizer.state[p].values()} == {np.dtype(float)}
    finally:
        torch.set_default_dtype(np.float32)


@pytest.mark.parametrize("make", [optim.SGD, optim.RMSprop])
@pytest.mark.parametrize("at", [1, 3])
def test_a_momentum_that_is_set_to_0_under_a_schedule_is_none(make: Any, at: int) -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        p = torch.tensor([1.0, -2.0], requires_grad=True)
        optimizer = make([p], lr=0.05, momentum=0.9)
        schedule = optim.lr_scheduler.OneCycleLR(optimizer, 0.05, 10)

        def step() -> None:
            p.grad = p.detach() ** 3
            optimizer.step()

        call, values = wrap(step), []
        for i in range(5):
            if i == at:
                optimizer.param_groups[0]["momentum"] = 0.0
            call()
            schedule.step()
            values.append(p.tolist())
        return values

    assert_allclose(run(ft.jit), run(lambda f: f), rtol=1e-5)
