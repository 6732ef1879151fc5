"""Schedules and optimizers of ``functrans.compat.torch.optim`` against torch, step by step."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import functrans.compat.torch as ours

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of")


def _optimizer(lib, kind="SGD", **options):
    groups = [
        {"params": [lib.tensor([1.0], requires_grad=True)], "lr": 0.4},
        {"params": [lib.tensor([2.0], requires_grad=True)]},
    ]
    if kind == "SGD":
        options.setdefault("momentum", 0.9)
    return getattr(lib.optim, kind)(groups, lr=0.1, **options)


def _trail(lib, make, steps, kind):
    optimizer = _optimizer(lib, kind)
    schedule = make(lib.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(steps):
        groups = optimizer.param_groups
        momenta = [g["betas"][0] if "betas" in g else g["momentum"] for g in groups]
        found.append([*(g["lr"] for g in groups), *momenta, *schedule.get_last_lr()])
        optimizer.step()
        schedule.step()
    return np.array(found)


SCHEDULES = {
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3),
    "cyclic, two slopes": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 2, 5),
    "cyclic, halved": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="triangular2"),
    "cyclic, shrinking": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9),
    "cyclic, a function": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / x, cycle_momentum=False
    ),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.5, 20),
    "one cycle, straight": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.7], epochs=4, steps_per_epoch=5, anneal_strategy="linear"
    ),
    "one cycle, three phases": lambda s, o: s.OneCycleLR(o, 0.5, 20, three_phase=True),
    "one cycle, no momentum": lambda s, o: s.OneCycleLR(o, 0.5, 20, cycle_momentum=False),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    "lambda": lambda s, o: s.LambdaLR(o, lambda n: 0.9**n),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda n: 0.95),
    "step": lambda s, o: s.StepLR(o, 4),
    "several steps": lambda s, o: s.MultiStepLR(o, [2, 5, 5]),
    "linear": lambda s, o: s.LinearLR(o, 0.5, total_iters=4),
    "polynomial": lambda s, o: s.PolynomialLR(o, 6, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9)], milestones=[3]
    ),
}


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name, kind):
    theirs, mine = (_trail(lib, SCHEDULES[name], 18, kind) for lib in (torch, ours))
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_a_schedule_with_get_lr_of_the_user():
    def trail(lib):
        class Halved(lib.optim.lr_scheduler.LRScheduler):
            def get_lr(self):
                return [base * 0.5**self.last_epoch for base in self.base_lrs]

        return _trail(lib, lambda s, o: Halved(o), 4, "SGD")

    np.testing.assert_allclose(trail(ours), trail(torch))


def test_one_cycle_ends():
    schedule = ours.optim.lr_scheduler.OneCycleLR(_optimizer(ours), 0.5, 3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match=r"Tried to step 4 times\. The specified number of total"):
        schedule.step()


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_schedules_go_on_with_their_optimizers(name):
    """Written to a file and read anew, both continue as they would have."""
    optimizers = [_optimizer(ours), _optimizer(ours)]
    first, second = (SCHEDULES[name](ours.optim.lr_scheduler, o) for o in optimizers)
    for _ in range(4):
        first.step()
    states = pickle.loads(pickle.dumps([optimizers[0].state_dict(), first.state_dict()]))
    optimizers[1].load_state_dict(states[0])
    second.load_state_dict(states[1])
    for _ in range(4):
        first.step()
        second.step()
        assert second.get_last_lr() == first.get_last_lr()
        assert optimizers[1].param_groups[0]["lr"] == optimizers[0].param_groups[0]["lr"]
    assert isinstance(first, ours.optim.lr_scheduler.LRScheduler)


@pytest.mark.parametrize("name", ["cyclic", "one cycle", "chained"])
def test_the_state_of_a_schedule_carries_over(name):
    first = SCHEDULES[name](ours.optim.lr_scheduler, _optimizer(ours))
    for _ in range(4):
        first.step()
    second = SCHEDULES[name](ours.optim.lr_scheduler, _optimizer(ours))
    second.load_state_dict(first.state_dict())
    assert second.get_last_lr() == first.get_last_lr()
    if name != "chained":  # which goes on from the rates of the optimizer
        first.step()
        second.step()
        assert second.get_last_lr() == first.get_last_lr()


OPTIMIZERS = [
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.7)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"lr": 0.05, "t0": 3, "lambd": 0.1}),
    ("ASGD", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"lr": 0.05}),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "d": 1.5, "eps": (1e-6, 1e-2)}),
    ("Adagrad", {"lr": 0.05, "lr_decay": 0.1}),
    ("Adadelta", {"lr": 0.5}),
    ("Rprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.5}),
    ("NAdam", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_optimizer(kind, options):
    def trail(lib):
        a = lib.tensor([[1.0, -2.0, 0.5], [0.3, 0.1, 4.0]], dtype=lib.float64)
        b = lib.tensor([0.5, -1.0], dtype=lib.float64)
        a.requires_grad_()
        b.requires_grad_()
        optimizer = getattr(lib.optim, kind)([a, b], **options)
        found = []
        for _ in range(8):
            optimizer.zero_grad()
            ((a**2).sum() * 0.5 + (a.sin().sum(1) * b).sum() + (b**4).sum()).backward()
            optimizer.step()
            found.append(np.concatenate([a.detach().numpy().ravel(), b.detach().numpy()]))
        return np.array(found), optimizer.state_dict()

    (theirs, state), (mine, own) = trail(torch), trail(ours)
    np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-8)
    assert {k: sorted(v) for k, v in own["state"].items()} == {
        k: sorted(v) for k, v in state["state"].items()
    }
