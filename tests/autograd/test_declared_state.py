"""``jit(step, state=...)``: what is declared is never stale, and what the step changes is there.

Each scene is run twice, with and without ``jit``; something is changed in both before the first
call, or between later ones, and all results and all state must agree.
"""

import copy
import dataclasses
import functools
import gc
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import no_grad, tensor
from functrans.compat.torch import nn, optim
from functrans.errors import ConcretizationError, UnsupportedOperationError

X = np.array([1.0, -2.0, 3.0])


class BoomError(Exception):
    """Raised in the middle of a step."""


class Scaled(nn.Module):
    """A module with a parameter, a buffer that it replaces, numbers, and a mode."""

    counts = True

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensor(np.ones(3)))
        self.register_buffer("mean", tensor(np.zeros(3)))
        self.scale = 2.0
        self.calls = 0
        self.fails = False

    def forward(self, x: Any) -> Any:
        if self.counts:
            self.calls += 1
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x
        if self.fails:
            raise BoomError
        return ((self.weight * x - self.mean) * self.scale).sum()


class Scene:
    """A step, what it declares, and what can be changed."""

    state: Any
    changes: dict[str, Callable[[], Any]]

    def step(self, x: Any) -> Any:
        raise NotImplementedError

    def set_fails(self, fails: bool) -> None:
        raise NotImplementedError

    def found(self) -> list[Any]:
        """All state, copied."""
        raise NotImplementedError


class ModuleScene(Scene):
    def __init__(self) -> None:
        self.model = self.state = Scaled()
        self.changes = {
            "number": lambda: setattr(self.model, "scale", 3.0),
            "count": lambda: setattr(self.model, "calls", 7),
            "in place": lambda: self.model.mean.add_(1.0),
            "replaced": lambda: setattr(self.model, "mean", tensor(X)),
            "replaced parameter": lambda: setattr(self.model, "weight", nn.Parameter(tensor(X))),
            "mode": self.model.eval,
            "hook": lambda: self.model.register_forward_hook(lambda *args: args[-1] * 2.0),
            "no gradient": lambda: self.model.weight.requires_grad_(False),
        }

    def set_fails(self, fails: bool) -> None:
        self.model.fails = fails

    def step(self, x: Any) -> Any:
        self.model.zero_grad()
        loss = self.model(x)
        if loss.requires_grad:
            loss.backward()
        return loss.detach()

    def found(self) -> list[Any]:
        model = self.model
        return [model.weight, model.weight.grad, model.mean, model.scale, model.calls]


class OptimizerScene(Scene):
    def __init__(self) -> None:
        self.w = tensor(np.ones(3), requires_grad=True)
        self.v = tensor(np.ones(3), requires_grad=True)
        self.optimizer = self.state = optim.Adam([self.w], lr=0.1)
        self.flags = {"fails": False}
        group = self.optimizer.param_groups[0]
        self.schedule = optim.lr_scheduler.ExponentialLR(self.optimizer, 0.5)
        self.optimizer.past.has_stepped = True  # no warning of a schedule that comes first
        self.changes = {
            "number": lambda: group.update(lr=0.3),
            "another number": lambda: group.update(betas=(0.5, 0.9), weight_decay=0.1),
            "in place": lambda: self.w.detach().mul_(2.0),
            "replaced": lambda: self.optimizer.state.clear(),
            "mode": lambda: group.update(maximize=True),
            "added group": lambda: self.optimizer.add_param_group({"params": [self.v], "lr": 1.0}),
            "schedule": self.schedule.step,
        }

    def set_fails(self, fails: bool) -> None:
        self.flags["fails"] = fails

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = ((self.w * x - 1.0) ** 2).sum() + ((self.v * x) ** 2).sum()
        loss.backward()
        self.optimizer.step()
        if self.flags["fails"]:
            raise BoomError
        return loss.detach()

    def found(self) -> list[Any]:
        optimizer = self.optimizer
        moments = [x for p in (self.w, self.v) for x in optimizer.state.get(p, {}).values()]
        return [self.w, self.v, self.w.grad, self.v.grad, *moments,
                *[group["lr"] for group in optimizer.param_groups]]  # fmt: skip


class BothScene(Scene):
    def __init__(self) -> None:
        self.model = Scaled()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.state = (self.model, self.optimizer)
        self.extra = tensor(np.ones(1), requires_grad=True)
        group = self.optimizer.param_groups[0]
        self.changes = {
            "number": lambda: (group.update(lr=0.3), setattr(self.model, "scale", 0.5)),
            "in place": lambda: self.model.weight.data.add_(1.0),
            "replaced": lambda: setattr(self.model, "mean", tensor(X)),
            "mode": self.model.eval,
            "added group": lambda: self.optimizer.add_param_group({"params": [self.extra]}),
        }

    def set_fails(self, fails: bool) -> None:
        self.model.fails = fails

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=False)
        loss = self.model(x) + (self.extra * 2.0).sum()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def found(self) -> list[Any]:
        model = self.model
        moments = [x for s in self.optimizer.state.values() for x in s.values()]
        return [model.weight, model.mean, model.calls, self.extra, *moments]


class TreeScene(Scene):
    def __init__(self) -> None:
        self.state = {
            "w": tensor(X),
            "numbers": [2.0, 0],
            "inner": ({"training": True, "name": "a"}, tensor(np.ones(3))),
            "fails": False,
        }
        flags: Any = self.state["inner"][0]  # type: ignore[index]  # a tuple
        self.changes = {
            "number": lambda: self.state["numbers"].__setitem__(0, 5.0),
            "count": lambda: self.state["numbers"].__setitem__(1, 10),
            "in place": lambda: self.state["inner"][1].mul_(3.0),
            "replaced": lambda: self.state.update(w=tensor(2.0 * X)),
            "mode": lambda: flags.update(training=False),
            "text": lambda: flags.update(name="b"),
            "added": lambda: self.state.update(more=tensor(X)),
        }

    def set_fails(self, fails: bool) -> None:
        self.state["fails"] = fails

    def step(self, x: Any) -> Any:
        state = self.state
        flags, held = state["inner"]
        state["w"] = 0.5 * state["w"] + x
        state["numbers"][1] += 1
        held.add_(state["w"])
        if state["fails"]:
            raise BoomError
        factor = state["numbers"][0] if flags["training"] else 1.0
        shift = {"a": 0.0, "b": 1.0}[flags["name"]]
        return (held * factor).sum() + shift + ("more" in state) * 1.0

    def found(self) -> list[Any]:
        return [self.state["w"], self.state["inner"][1], *self.state["numbers"]]


class Average:
    """A user's class that says what it holds."""

    def __init__(self) -> None:
        self.total = tensor(np.zeros(3))
        self.count = 0
        self.weight = 1.0
        self.active = True
        self.fails = False

    def state_of_steps(self) -> dict[str, Any]:
        return vars(self)

    def update(self, x: Any) -> Any:
        self.count += 1
        if self.active:
            self.total = self.total + self.weight * x
        if self.fails:
            raise BoomError
        return self.total / self.count


class SlottedAverage(Average):
    """One that gives its containers, not its dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.held = {"total": self.total, "count": 0}

    def state_of_steps(self) -> Any:  # type: ignore[override]  # any pytree
        return self.held, self.weight, {"active": self.active, "fails": self.fails}

    def update(self, x: Any) -> Any:
        self.held["count"] += 1
        if self.active:
            self.held["total"] = self.held["total"] + self.weight * x
        if self.fails:
            raise BoomError
        return self.held["total"] / self.held["count"]


class ObjectScene(Scene):
    make: Callable[[], Any] = Average

    def __init__(self) -> None:
        self.average = self.state = type(self).make()
        held = getattr(self.average, "held", vars(self.average))
        self.held = held
        self.changes = {
            "number": lambda: setattr(self.average, "weight", 3.0),
            "count": lambda: held.update(count=4),
            "in place": lambda: held["total"].add_(1.0),
            "replaced": lambda: held.update(total=tensor(X)),
            "mode": lambda: setattr(self.average, "active", False),
        }

    def set_fails(self, fails: bool) -> None:
        self.average.fails = fails

    def step(self, x: Any) -> Any:
        return self.average.update(x).sum()

    def found(self) -> list[Any]:
        return [self.held["total"], self.held["count"]]


class ReadAnewScene(ObjectScene):
    make = SlottedAverage


SCENES = [ModuleScene, OptimizerScene, BothScene, TreeScene, ObjectScene, ReadAnewScene]
CASES = [(scene, change) for scene in SCENES for change in [*scene().changes, None]]


def _copied(values: list[Any]) -> list[Any]:
    return [x.numpy(force=True).copy() if isinstance(x, torch.Tensor) else x for x in values]


def _assert_same(jitted: Scene, eager: Scene) -> None:
    found, expected = _copied(jitted.found()), _copied(eager.found())
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b)
        if a is not None:
            assert_allclose(a, b, rtol=1e-6, atol=1e-12)


def _calls(jitted: Scene, eager: Scene, step: Any, count: int) -> None:
    for i in range(count):
        x = tensor((i + 1.0) * X)
        assert_allclose(step(x).item(), eager.step(x).item(), rtol=1e-6)
        _assert_same(jitted, eager)


def _assert_counts(
    jitted: Scene, eager: Scene, step: Any, change: str | None, calls_before: int
) -> None:
    """The calls after a change of both scenes do the same, by few programs."""
    _calls(jitted, eager, step, calls_before)
    for each in (jitted, eager):
        if change is not None:
            each.changes[change]()
    _calls(jitted, eager, step, 3)
    assert step.cache_size <= 5


@pytest.mark.parametrize("calls_before", [0, 1, 3])
@pytest.mark.parametrize(("scene", "change"), CASES)
def test_what_changes_counts_in_the_next_call(
    scene: type[Scene], change: str | None, calls_before: int
) -> None:
    jitted, eager = scene(), scene()
    step = ft.jit(jitted.step, state=jitted.state)
    _assert_counts(jitted, eager, step, change, calls_before)


@pytest.mark.parametrize("calls_before", [0, 1, 3])
@pytest.mark.parametrize(
    ("scene", "change"), [case for case in CASES if case[0] in SCENES[:3] and case[1] != "count"]
)
def test_what_changes_in_modules_and_optimizers_counts_without_a_declaration(
    scene: type[Scene], change: str | None, calls_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scaled, "counts", False)
    jitted, eager = scene(), scene()
    step = ft.jit(jitted.step)
    _assert_counts(jitted, eager, step, change, calls_before)


@pytest.mark.parametrize("calls_before", [0, 1, 3])
@pytest.mark.parametrize("scene", SCENES)
def test_an_exception_midway_loses_nothing(scene: type[Scene], calls_before: int) -> None:
    jitted, eager = scene(), scene()
    step = ft.jit(jitted.step, state=jitted.state)
    _calls(jitted, eager, step, calls_before)
    jitted.set_fails(True)
    for _ in range(2):
        with pytest.raises(BoomError):
            step(tensor(X))
        _assert_same(jitted, eager)
    jitted.set_fails(False)
    _calls(jitted, eager, step, 3)


@pytest.mark.parametrize("declares", [False, True])
def test_an_error_of_a_program_that_creates_state_leaves_none(declares: bool) -> None:
    w = tensor(np.ones(3), requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)
    held = {"n": 0}

    def step(a: Any) -> Any:
        optimizer.zero_grad()
        if declares:
            held["n"] += 1
        loss = (torch.linalg.solve(a, w) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    jitted = ft.jit(step, state=(optimizer, held) if declares else None)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            jitted(tensor(np.zeros((3, 3))))
        assert not optimizer.state
        assert w.grad is None
        assert held["n"] == 0
        assert_array_equal(w.numpy(force=True), np.ones(3))
    for n in range(1, 4):
        jitted(tensor(np.eye(3)))
        assert held["n"] == n * declares
        assert optimizer.state[w]["step"].item() == n


def test_copies_that_a_step_makes_of_a_module_are_its_own() -> None:
    model = nn.Softplus()
    step = ft.jit(lambda x: copy.deepcopy(model)(x))
    x = torch.ones(3)
    for _ in range(2):
        assert_allclose(step(x).numpy(), model(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize("scene", SCENES)
def test_lower_changes_nothing(scene: type[Scene]) -> None:
    jitted, eager = scene(), scene()
    step = ft.jit(jitted.step, state=jitted.state)
    step.lower(tensor(X))
    _assert_same(jitted, eager)
    _calls(jitted, eager, step, 2)
    step.lower(tensor(X))
    _assert_same(jitted, eager)


def test_a_number_that_the_step_changes_is_an_argument() -> None:
    average = Average()
    step = ft.jit(average.update, state=average)
    for n in range(1, 20):
        assert_allclose(step(tensor(X)).numpy(), X, rtol=1e-14)
        assert type(average.count) is int
        assert average.count == n
    assert step.cache_size == 1


def test_a_number_whose_value_python_asks_for_is_a_part_of_the_program() -> None:
    state = {"n": 0, "phase": "warm"}

    def step(x: Any) -> Any:
        state["n"] += 1
        if state["n"] > 2:
            state["phase"] = "done"
        return x * state["n"]

    jitted = ft.jit(step, state=state)
    for n in range(1, 6):
        assert_allclose(jitted(tensor(X)).numpy(), n * X)
        assert state == {"n": n, "phase": "warm" if n < 3 else "done"}
    state["n"] = 0
    assert_allclose(jitted(tensor(X)).numpy(), X)
    assert state["n"] == 1


def test_a_flag_that_the_step_sets_and_puts_back() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))

    def step(x: Any) -> Any:
        model.eval()
        out = model(x)
        model.train()
        return out.detach()

    jitted = ft.jit(step, state=model)
    x = torch.ones(3)
    for _ in range(3):
        assert_allclose(jitted(x).numpy(), step(x).numpy(), rtol=1e-6)
    assert jitted.cache_size == 1


def test_flags_that_the_step_sets_stay_set() -> None:
    model = nn.Linear(3, 3)
    jitted = ft.jit(lambda x: (model.train(not model.training), model(x).detach())[1], state=model)
    for i in range(6):
        jitted(torch.ones(3))
        assert model.training is bool(i % 2)
    assert jitted.cache_size == 2


def test_schedules_inside_of_a_step() -> None:
    def run(jits: bool) -> Any:
        w = tensor(X, requires_grad=True)
        optimizer = optim.SGD([w], lr=0.1)
        schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step() -> Any:
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            optimizer.step()
            schedule.step()
            return loss.detach()

        call = ft.jit(step, state=(optimizer, schedule)) if jits else step
        losses = [call().item() for _ in range(6)]
        return losses, schedule.last_epoch, optimizer.param_groups[0]["lr"]

    assert_allclose(run(True)[0], run(False)[0], rtol=1e-12)
    assert run(True)[1:] == run(False)[1:]


def test_schedules_of_a_step_that_does_not_declare_them_are_refused() -> None:
    optimizer = optim.SGD([tensor(X, requires_grad=True)], lr=0.1)
    schedule = optim.lr_scheduler.ConstantLR(optimizer)
    optimizer.past.has_stepped = True  # no warning of a schedule that comes first
    with pytest.raises(UnsupportedOperationError, match=r"changes ConstantLR\..*state="):
        ft.jit(lambda: schedule.step())()
    assert schedule.last_epoch == 0


def test_what_is_not_declared_does_not_count() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.w = tensor(X, requires_grad=True)
            self.losses: list[float] = []
            self.epoch = 0

        def step(self, x: Any) -> Any:
            return (self.w * x).sum().detach()

    trainer = Trainer()
    step = ft.jit(trainer.step, state=trainer.w)
    for i in range(10):
        trainer.losses.append(step(tensor(X)).item())
        trainer.epoch = i
    assert step.cache_size == 1


def test_a_step_of_arrays_alone_may_declare_numbers() -> None:
    held = {"rate": 2.0}
    step = ft.jit(lambda x: by_the_helper(held, x), state=held)
    assert_array_equal(step(X), 2.0 * X)
    held["rate"] = 3.0
    assert_array_equal(step(X), 3.0 * X)
    assert isinstance(step(X), np.ndarray)


def by_the_helper(held: Any, x: Any) -> Any:
    return x * held["rate"]


def test_a_jitted_function_inside_of_a_step_keeps_its_state() -> None:
    held = {"rate": 2.0}
    inner = ft.jit(lambda x: by_the_helper(held, x), state=held)
    outer = ft.jit(lambda x: inner(x) + 1.0)
    assert_array_equal(outer(tensor(X)).numpy(), 2.0 * X + 1.0)
    held["rate"] = 3.0
    assert_array_equal(outer(tensor(X)).numpy(), 3.0 * X + 1.0)


def test_functions_that_wrap_the_step_are_looked_through() -> None:
    held = [2.0]

    def plain(factor: Any, x: Any) -> Any:
        return x * held[0] * factor

    @functools.wraps(plain)
    def wrapper(*args: Any) -> Any:
        return plain(*args)

    factors = {"k": 1.0}
    step = ft.jit(functools.partial(wrapper, 1.0))
    other = ft.jit(functools.partial(lambda factor, x: x * factor["k"], factors))
    for k in (2.0, 5.0):
        held[0] = factors["k"] = k
        assert_array_equal(step(tensor(X)).numpy(), k * X)
        assert_array_equal(other(tensor(X)).numpy(), k * X)


# without a declaration ----------------------------------------------------------------------------


class Holder:
    """Holds a model and an optimizer where nothing names them."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 1))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.1)

    def train(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = self.model(x).sum()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def test_modules_and_optimizers_are_found_where_they_are_used() -> None:
    def run(jits: bool) -> list[float]:
        torch.manual_seed(0)
        deep = [(Holder(),)]
        deep[0][0].model.eval()
        call = ft.jit(lambda x: helped(deep, x)) if jits else lambda x: helped(deep, x)
        losses = []
        for i in range(6):
            if i == 3:
                deep[0][0].optimizer.param_groups[0]["lr"] = 0.01
            if i == 4:
                deep[0][0].model[1].p = 0.0
                deep[0][0].model.train()
            losses.append(call(torch.ones(2, 3)).item())
        return losses

    def helped(deep: Any, x: Any) -> Any:
        return deep[0][0].train(x)

    assert_allclose(run(True), run(False), rtol=1e-5)


def test_modules_made_in_a_step_are_its_own() -> None:
    step = ft.jit(lambda x: nn.Sequential(nn.ReLU(), nn.Softplus())(x).sum())
    x = tensor(X)
    for _ in range(2):
        assert_allclose(step(x).item(), np.log1p(np.exp(np.maximum(X, 0.0))).sum(), rtol=1e-6)
    assert step.cache_size == 1


def test_the_object_of_a_method_holds_its_attributes() -> None:
    @dataclasses.dataclass
    class Step:
        factor: float = 2.0
        words: tuple[str, ...] = ("a",)
        shifts: Any = dataclasses.field(default_factory=lambda: {"a": 0.0, "b": 1.0})
        powers: Any = dataclasses.field(default_factory=lambda: [1])

        def helper(self, x: Any) -> Any:
            return (x * self.factor) ** self.powers[0] + self.shifts[self.words[0]]

        def __call__(self, x: Any) -> Any:
            return self.helper(x)

    step = Step()
    jitted, method = ft.jit(step), ft.jit(step.helper)
    for change in (
        lambda: None,
        lambda: setattr(step, "factor", 3.0),
        lambda: setattr(step, "words", ("b",)),
        lambda: step.shifts.update(b=2.0),
        lambda: step.powers.__setitem__(0, 2),
        lambda: setattr(step, "factor", -0.0),
    ):
        change()
        for call in (jitted, method):
            assert_array_equal(call(tensor(X)).numpy(), step(tensor(X)).numpy())


def test_short_lists_of_numbers_count_and_logs_do_not_for_long() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.powers = [1, 2]
            self.losses: list[float] = []

        def step(self, x: Any) -> Any:
            return (x ** self.powers[1]).sum()

    trainer = Trainer()
    step = ft.jit(trainer.step)
    assert step(tensor(X)).item() == (X**2).sum()
    trainer.powers[1] = 3
    assert step(tensor(X)).item() == (X**3).sum()
    trainer.losses = [0.0] * 9
    for i in range(5):
        trainer.losses.append(float(i))
        step(tensor(X))
    assert step.cache_size == 3


def test_an_object_that_keeps_its_jitted_method_is_collected() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.w = tensor(X, requires_grad=True)
            self.fast = ft.jit(self.step)

        def step(self, x: Any) -> Any:
            return (self.w * x).sum()

    trainer = Trainer()
    for _ in range(2):
        trainer.fast(tensor(X))
    assert trainer.fast.cache_size == 1
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None


# errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (2.0, r"state is 2\.0, which nobody can change where it is"),
        ((tensor(X), "a"), r"state\[1\] is 'a', which nobody"),
        (({1, 2},), r"state\[0\] is of type set; expected tensors, modules"),
        ({"a": object()}, r"state\['a'\] is of type object; .*state_of_steps"),
        ([np.array([None])], r"state\[0\] is of type ndarray"),
        (iter([1]), r"state is of type list_iterator"),
    ],
)
def test_what_does_not_say_what_it_holds_is_refused_at_once(state: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ft.jit(lambda x: x, state=state)


def test_specialized_functions_declare_no_state() -> None:
    with pytest.raises(ValueError, match="state= is staged whole"):
        ft.jit(lambda x: x, state={}, specialize=True)


def test_a_change_that_cannot_be_put_back_is_refused() -> None:
    class Box:
        k = 1.0

    box = Box()

    def step(x: Any) -> Any:
        box.k = 2.0
        return x * box.k

    with pytest.raises(UnsupportedOperationError, match=r"changes"):
        ft.jit(step, state=lambda: box.k)(tensor(X))
    held = np.ones(2)

    def write(x: Any) -> Any:
        held[0] += 1.0
        return x * held[0]

    with pytest.raises(UnsupportedOperationError, match=r"changes what state gives"):
        ft.jit(write, state=held)(tensor(X))


def test_a_number_does_not_hide_another_error() -> None:
    average = Average()

    def step(x: Any) -> Any:
        out = average.update(x)
        return out if out.sum() > 0 else -out

    with pytest.raises(ConcretizationError):
        ft.jit(step, state=average)(tensor(X))
    assert average.count == 0
    assert_array_equal(average.total.numpy(), np.zeros(3))


def test_state_is_kept_by_what_is_made_of_a_jitted_function() -> None:
    held = {"w": 1.0}
    step = ft.jit(np.sin, state=held)
    assert step.with_parts(lambda: (np.cos,)).state is held
    assert pickle.loads(pickle.dumps(step)).state == held
    decorated = ft.jit(state=held)(lambda x: x * 2.0)
    assert decorated.state is held


def test_declared_programs_are_explained() -> None:
    held = {"rate": 1.0}
    step = ft.jit(lambda x: by_the_helper(held, x), state=held)
    for rate in (1.0, 2.0):
        held["rate"] = rate
        step(tensor(X))
    assert step.explain()[1].changes == ("state['rate']: static 1.0 -> static 2.0",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rate in range(3, 8):
            held["rate"] = float(rate)
            step(tensor(X))
        held["rate"] = 9.0
        with pytest.raises(RuntimeWarning, match=r"compiled 8 times .* state="):
            step(tensor(X))


def test_gradients_of_declared_tensors_are_left_alone() -> None:
    w = tensor(X, requires_grad=True)
    step = ft.jit(lambda x: (w * x).sum(), state=[w])
    step(tensor(X)).backward()
    assert_array_equal(w.grad.numpy(), X)
    with no_grad():
        w.mul_(2.0)
    assert step(tensor(X)).item() == 2.0 * (X * X).sum()


def callables() -> dict[str, Callable[[], Any]]:
    """Jitted things whose code is the library's, or that hold such."""
    layer = torch.nn.Linear(3, 3)
    return {
        "module": lambda: ft.jit(layer),
        "declared": lambda: ft.jit(layer, state=layer),
        "method": lambda: ft.jit(layer.__call__),
        "forward": lambda: ft.jit(layer.forward),
        "partial": lambda: ft.jit(functools.partial(layer)),
        "jitted": lambda: ft.jit(ft.jit(layer)),
        "activation": lambda: ft.jit(torch.nn.ReLU()),
        "sequence": lambda: ft.jit(torch.nn.Sequential(layer, torch.nn.Tanh())),
    }


@pytest.mark.parametrize("kind", callables())
def test_the_librarys_own_modes_are_no_state_of_a_step(kind: str) -> None:
    """Whatever was staged before."""
    ft.jit(lambda x: x * 2.0)(tensor(X))
    made = callables()[kind]()
    for rows in (1, 2, 3):
        x = torch.ones(rows, 3)
        assert made(x).shape == (rows, 3)
        assert made.lower(x).jaxpr.eqns


def test_a_jitted_loss_is_staged_again() -> None:
    made = ft.jit(torch.nn.MSELoss())
    for n in (2, 3):
        assert made(torch.ones(n), torch.zeros(n)).item() == 1.0
