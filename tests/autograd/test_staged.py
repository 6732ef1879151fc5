"""``jit`` of imperative steps: state that changes, what invalidates a program, what is refused."""

import copy
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import from_numpy, grad, no_grad, tensor
from functrans.autograd.checkpoint import checkpoint
from functrans.compat.torch import nn, optim, zeros
from functrans.control import native
from functrans.errors import ConcretizationError, UnsupportedOperationError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 4)), RNG.normal(size=(8, 3))
W = RNG.normal(size=(4, 3))


class Model:
    """A layer with momentum, as user code writes it."""

    def __init__(self) -> None:
        self.weight = tensor(W, requires_grad=True)
        self.bias = tensor(np.zeros(3), requires_grad=True)
        self.momentum: dict[str, Any] = {}
        self.steps = tensor(0)
        self.scale = 1.0

    def loss(self, x: Any, y: Any) -> Any:
        out = (x @ self.weight + self.bias).tanh()
        return ((out * self.scale - y) ** 2).mean()

    def step(self, x: Any, y: Any) -> Any:
        self.weight.grad = None
        self.bias.grad = None
        loss = self.loss(x, y)
        loss.backward()
        with no_grad():
            self.steps += 1
            for name in ("weight", "bias"):
                p = getattr(self, name)
                if name in self.momentum:
                    self.momentum[name] *= 0.9
                    self.momentum[name] += p.grad
                else:
                    self.momentum[name] = p.grad.clone()
                p -= 0.1 * self.momentum[name]
        return loss

    def state(self) -> list[np.ndarray]:
        momentum = [m.numpy().copy() for m in self.momentum.values()]
        own = [self.weight, self.bias, self.weight.grad, self.bias.grad]
        return [x.numpy(force=True).copy() for x in own] + momentum


def test_state_keeps_changing_as_without_jit() -> None:
    eager, jitted = Model(), Model()
    step = ft.jit(jitted.step)
    for n in range(1, 6):
        expected = eager.step(tensor(X), tensor(Y)).item()
        assert_allclose(step(tensor(X), tensor(Y)).item(), expected, rtol=1e-14)
        assert int(jitted.steps) == n
        for found, wanted in zip(jitted.state(), eager.state(), strict=True):
            assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    assert jitted.weight.is_leaf
    assert jitted.weight.requires_grad


def test_parameters_keep_their_memory_and_their_version() -> None:
    model = Model()
    own = model.weight.numpy(force=True)
    step = ft.jit(model.step)
    versions = []
    for _ in range(4):
        step(tensor(X), tensor(Y))
        versions.append(model.weight._version)
    assert model.weight.numpy(force=True) is own
    assert versions == sorted(set(versions))


def test_gradients_add_up_over_calls() -> None:
    w = tensor(W, requires_grad=True)
    step = ft.jit(lambda x: (x @ w).sum().backward())
    for n in range(1, 5):
        step(tensor(X))
        assert_allclose(w.grad.numpy(), n * np.outer(X.sum(0), np.ones(3)))
    w.grad = None
    step(tensor(X))
    assert_allclose(w.grad.numpy(), np.outer(X.sum(0), np.ones(3)))


def test_a_program_is_traced_anew_when_its_surroundings_change() -> None:
    model = Model()
    jitted = ft.jit(model.loss)
    first = jitted(tensor(X), tensor(Y)).item()
    assert jitted(tensor(X), tensor(Y)).item() == first
    assert jitted.cache_size == 1
    model.scale = 2.0
    assert_allclose(jitted(tensor(X), tensor(Y)).item(), model.loss(tensor(X), tensor(Y)).item())
    assert jitted.cache_size == 2
    model.scale = 1.0
    assert jitted(tensor(X), tensor(Y)).item() == first
    assert jitted.cache_size == 2


def test_hooks_that_come_and_go_are_seen() -> None:
    w = tensor(W, requires_grad=True)

    def step(x: Any) -> None:
        w.grad = None
        (x @ w).sum().backward()

    jitted = ft.jit(step)
    plain = np.outer(X.sum(0), np.ones(3))
    for _ in range(2):
        jitted(tensor(X))
        assert_allclose(w.grad.numpy(), plain)
    handle = w.register_hook(lambda g: g * 3)
    for _ in range(2):
        jitted(tensor(X))
        assert_allclose(w.grad.numpy(), 3 * plain)
    handle.remove()
    jitted(tensor(X))
    assert_allclose(w.grad.numpy(), plain)


def test_gradients_flow_through_a_jitted_model() -> None:
    model = Model()
    forward = ft.jit(lambda x: (x @ model.weight + model.bias).tanh())
    for scale in (1.0, 2.0):
        x = tensor(scale * X, requires_grad=True)
        forward(x).sum().backward()
        found = model.weight.grad.numpy().copy(), x.grad.numpy()
        model.weight.grad = x.grad = None
        (x @ model.weight + model.bias).tanh().sum().backward()
        assert_allclose(found[0], model.weight.grad.numpy(), rtol=1e-12)
        assert_allclose(found[1], x.grad.numpy(), rtol=1e-12)
        model.weight.grad = None


def test_no_grad_inside_a_jitted_model_stops_gradients() -> None:
    w = tensor(W, requires_grad=True)

    def forward(x: Any) -> Any:
        with no_grad():
            scale = (w * w).sum()
        return (x @ w).sum() * scale * w.detach().sum()

    forward_jitted = ft.jit(forward)
    found = []
    for f in (forward, forward_jitted, forward_jitted):
        (g,) = grad(f(tensor(X)), w)
        found.append(g.numpy())
    assert_allclose(found[1], found[0], rtol=1e-12)
    assert_allclose(found[2], found[0], rtol=1e-12)


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.__setitem__(0, 1.0),
        lambda w: w[1:, :2].__imul__(3.0),
        lambda w: w.t()[0].__iadd__(w[:, 1]),
        lambda w: w.detach().__imul__(2.0),
        lambda w: w.data.__isub__(1.0),
        lambda w: w[0][1:].__setitem__(0, w[3, 2] * 2),
    ],
    ids=["row", "block", "transpose", "detach", "data", "view of view"],
)
def test_writes_to_views_reach_the_tensor(write: Callable[[Any], Any]) -> None:
    def step(w: Any) -> Any:
        before = w[0].clone()
        with no_grad():
            write(w)
        return before.sum() + (w * w).sum()

    eager, jitted = tensor(W), tensor(W)
    expected = step(eager).item()
    run = ft.jit(lambda: step(jitted))
    assert_allclose(run().item(), expected, rtol=1e-14)
    assert_array_equal(jitted.numpy(), eager.numpy())
    assert_allclose(run().item(), step(eager).item(), rtol=1e-14)
    assert_array_equal(jitted.numpy(), eager.numpy())


def test_a_python_value_that_the_step_changes_is_refused() -> None:
    class Counter:
        n = 0

        def __init__(self) -> None:
            self.calls = 0

    counter = Counter()
    w = tensor(W, requires_grad=True)

    def step(x: Any) -> Any:
        counter.calls += 1
        with no_grad():
            w.__imul__(2.0)
        return (x @ w).sum()

    with pytest.raises(UnsupportedOperationError, match=r"changes counter\.calls \(it was 0\)"):
        ft.jit(step)(tensor(X))
    assert_array_equal(w.numpy(force=True), W)


def test_a_failing_trace_leaves_everything_as_it_was() -> None:
    w = tensor(W, requires_grad=True)

    def step(x: Any) -> Any:
        loss = (x @ w).sum()
        loss.backward()
        with no_grad():
            w.__imul__(2.0)
        if loss > 0:
            return loss
        return -loss

    with pytest.raises(ConcretizationError):
        ft.jit(step)(tensor(X))
    assert_array_equal(w.numpy(force=True), W)
    assert w.grad is None
    assert w._version == 0
    (tensor(X) @ w).sum().backward()
    assert_allclose(w.grad.numpy(), np.outer(X.sum(0), np.ones(3)))


def test_what_a_program_cannot_contain_is_refused() -> None:
    w = tensor(W, requires_grad=True)
    outside = w * 2
    with pytest.raises(UnsupportedOperationError, match="computed outside"):
        ft.jit(lambda x: (x @ outside).sum())(tensor(X))
    with pytest.raises(UnsupportedOperationError, match="computed outside"):
        ft.jit(lambda v: v.sum())(outside)
    with pytest.raises(ConcretizationError):
        ft.jit(lambda x: x * w.sum().item())(tensor(X))
    array = np.ones(3)
    one, two = from_numpy(array), from_numpy(array)

    def shared() -> Any:
        one.__iadd__(1.0)
        return two.sum()

    with pytest.raises(UnsupportedOperationError, match="memory another tensor"):
        ft.jit(shared)()
    assert_array_equal(array, np.ones(3))
    losses: list[Any] = []
    with pytest.raises(UnsupportedOperationError, match=r"losses\[0\] that requires a gradient"):
        ft.jit(lambda x: losses.append((x @ w).sum()))(tensor(X))
    assert not losses
    record = ft.jit(lambda x: losses.append((x @ w).sum().detach()))
    for _ in range(3):
        record(tensor(X))
    assert_allclose([loss.item() for loss in losses], [(X @ W).sum()] * 3)
    with pytest.raises(UnsupportedOperationError, match=r"each call changes losses\[3\]"):
        record(tensor(X))


def test_arguments_are_written_to_in_place() -> None:
    scale = ft.jit(lambda x: x.__imul__(3.0).sum())
    x = tensor(X)
    assert_allclose(scale(x).item(), 3 * X.sum())
    assert_array_equal(x.numpy(), 3 * X)
    assert_allclose(scale(x).item(), 9 * X.sum())


def test_arrays_and_tensors_together() -> None:
    w = tensor(W, requires_grad=True)
    step = ft.jit(lambda x: (tensor(1.0) * w * np.sum(x)).sum())
    assert_allclose(step(X).item(), W.sum() * X.sum())
    assert_allclose(step(2 * X).item(), W.sum() * 2 * X.sum())


def test_nothing_is_kept_alive_by_a_dropped_function() -> None:
    model = Model()
    step = ft.jit(model.step)
    for _ in range(3):
        step(tensor(X), tensor(Y))
    gone = weakref.ref(model.weight)
    gc.collect()
    gc.disable()
    try:
        del model, step
        assert gone() is None
    finally:
        gc.enable()


def test_what_is_replaced_between_calls_is_seen() -> None:
    held = {"w": tensor(np.ones(3))}
    double = [lambda x: x * 2]
    array = np.ones(3)

    def step(x: Any) -> Any:
        return (double[0](held["w"]) * x + array).sum()

    jitted = ft.jit(step)
    x = tensor(np.arange(3.0))
    for change in (
        lambda: None,
        lambda: held.update(w=tensor(np.full(3, 5.0))),
        lambda: double.__setitem__(0, lambda x: x * 3),
        lambda: array.__iadd__(1.0),
    ):
        change()
        for _ in range(2):
            assert_allclose(jitted(x).item(), step(x).item())


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        (lambda state, x: state.update(v=x), "was there before"),
        (lambda state, x: state.update(v=state["w"]), "was there before"),
        (lambda state, x: state.update(v=(state["w"] * 2.0)), "requires a gradient; its graph"),
        (lambda state, x: state.update(v=x[:2]), "a view of a tensor"),
        (lambda state, x: state.update(w=x * 2.0), "the old one requires a gradient"),
        (lambda state, x: state.update(u=x * 2.0), "reached in other ways"),
        (lambda state, x: state.update(dict.fromkeys(("v", "z"), x * 2.0)), "into two places"),
    ],
)
def test_what_cannot_be_replaced_by_a_step_is_refused_and_kept(store: Any, reason: str) -> None:
    u = tensor(np.ones(3))
    state = {"v": tensor(np.zeros(3)), "z": tensor(np.zeros(3)), "u": u, "also_u": u}
    state["w"] = tensor(np.ones(3), requires_grad=True)
    before = dict(state)

    def step(x: Any) -> Any:
        store(state, x)
        return x.sum()

    for _ in range(2):
        with pytest.raises(UnsupportedOperationError, match=reason):
            ft.jit(step)(tensor(X[0][:3]))
        assert state == before
        assert_array_equal(state["v"].numpy(), np.zeros(3))


def test_tensors_are_replaced_by_a_step() -> None:
    class Cell:
        def __init__(self) -> None:
            self.h = tensor(np.zeros(3))
            self.last = None

        def step(self, x: Any) -> Any:
            out = (self.h * x).sum()
            self.h = 0.5 * self.h + x
            self.last = out.detach()
            return out, self.h

    plain, jitted = Cell(), Cell()
    step = ft.jit(jitted.step)
    seen = []
    for i in range(6):
        x = tensor(X[i % len(X)][:3])
        before = jitted.h
        expected, got = plain.step(x), step(x)
        assert got[1] is jitted.h
        assert jitted.h is not before
        for a, b in ((expected[0], got[0]), (expected[1], got[1]), (plain.last, jitted.last)):
            assert_allclose(a.numpy(), b.numpy(), rtol=1e-15)
        seen.append(got[1])
    assert step.cache_size == 1
    assert len({tuple(h.tolist()) for h in seen}) == 6  # each call's result keeps its values
    plain.h = jitted.h = tensor(np.ones(3))
    assert_allclose(plain.step(x)[0].numpy(), step(x)[0].numpy(), rtol=1e-15)
    assert step.cache_size == 1
    jitted.h = x
    with pytest.raises(UnsupportedOperationError, match="reached in other ways"):
        step(x)
    assert jitted.h is x


def test_constants_of_a_step_are_new_in_each_call() -> None:
    def total(x: Any) -> Any:
        sums = zeros(3)
        sums += x
        return sums, zeros(2)

    step = ft.jit(total)
    for _ in range(3):
        sums, nothing = step(tensor(np.ones(3)))
        assert_array_equal(sums.numpy(), np.ones(3))
        nothing += 1.0
    assert_array_equal(step(tensor(np.ones(3)))[1].numpy(), np.zeros(2))


def test_an_array_under_a_tensor_of_the_step_is_read_anew_and_written_to() -> None:
    array = np.ones(3)
    step = ft.jit(lambda x: (from_numpy(array) * x).sum())
    assert step(tensor(np.ones(3))).item() == 3.0
    array[:] = 2.0
    assert step(tensor(np.ones(3))).item() == 6.0
    add = ft.jit(lambda x: from_numpy(array).add_(x).sum())
    assert add(tensor(np.ones(3))).item() == 9.0
    assert_array_equal(array, np.full(3, 3.0))


def test_only_state_that_is_declared_or_named_counts() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.w = tensor(W, requires_grad=True)
            self.optimizer = optim.SGD([self.w], lr=0.1)
            self.schedule = optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)
            self.losses: list[float] = []
            self.scale = 1.0

        def step(self, x: Any) -> Any:
            self.optimizer.zero_grad()
            loss = self.scale * ((x @ self.w) ** 2).mean()
            loss.backward()
            self.optimizer.step()
            return loss

        def fit(self, step: Any, count: int) -> None:
            for _ in range(count):
                self.losses.append(step(tensor(X)).item())
                self.schedule.step()

    plain, jitted = Trainer(), Trainer()
    step = ft.jit(jitted.step, state=(jitted.w, jitted.optimizer))
    plain.fit(plain.step, 8)
    jitted.fit(step, 8)
    assert_allclose(jitted.losses, plain.losses, rtol=1e-12)
    assert step.cache_size == 2  # without gradients at first, then with them
    assert step.explain()[1].changes == ("step.w.grad is None: static True -> static False",)
    plain.scale = jitted.scale = 2.0
    plain.fit(plain.step, 2)
    jitted.fit(step, 2)
    assert_allclose(jitted.losses, plain.losses, rtol=1e-12)
    assert step.cache_size == 3


def test_attributes_that_are_read_by_reflection_count_where_they_are_declared() -> None:
    class Box:
        pass

    box = Box()
    box.value = 2.0  # type: ignore[attr-defined]  # made here
    name = "val" + "ue"
    step = ft.jit(lambda x: x * getattr(box, name), state=vars(box))
    assert step(tensor(3.0)).item() == 6.0
    box.value = 5.0  # type: ignore[attr-defined]  # made here
    assert step(tensor(3.0)).item() == 15.0


def test_properties_and_methods_of_bases_are_followed() -> None:
    class Base:
        def helper(self) -> Any:
            return self.inner["k"]

    class Box(Base):
        def __init__(self) -> None:
            self.inner = {"k": 2.0}

        @property
        def rate(self) -> Any:
            return self.helper()

        def __call__(self, x: Any) -> Any:
            return x * self.rate

    box = Box()
    step = ft.jit(box)
    assert step(tensor(3.0)).item() == 6.0
    box.inner["k"] = 4.0
    assert step(tensor(3.0)).item() == 12.0


def test_functions_and_numbers_of_modules_count_where_they_are_declared() -> None:
    module = types.ModuleType("losses")
    code = "RATE = 2.0\ndef loss(box, x):\n    return RATE * box.inner * x\n"
    exec(compile(code, "losses.py", "exec"), vars(module))
    box = types.SimpleNamespace(inner=3.0, other=1.0)
    step = ft.jit(lambda x: module.loss(box, x), state=lambda: (module.RATE, box.inner))
    assert step(tensor(1.0)).item() == 6.0
    box.other = 2.0
    assert step(tensor(1.0)).item() == 6.0
    assert step.cache_size == 1
    box.inner = 5.0
    assert step(tensor(1.0)).item() == 10.0
    module.RATE = 4.0  # type: ignore[attr-defined]  # made by exec
    assert step(tensor(1.0)).item() == 20.0


def test_many_programs_are_warned_of() -> None:
    state = {"rate": 0.0}
    step = ft.jit(lambda x: x * state["rate"])
    for i in range(7):
        state["rate"] = float(i)
        assert step(tensor(2.0)).item() == 2.0 * i
    state["rate"] = 7.0
    with pytest.warns(RuntimeWarning, match=r"8 times .*'rate'\]: static 6.0 -> static 7.0"):
        step(tensor(2.0))


def test_the_program_of_a_step_can_be_looked_at() -> None:
    w = tensor(W, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)

    @ft.jit
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((x @ w) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    before = w.tolist()
    lowered = step.lower(tensor(X))
    assert w.tolist() == before
    assert not optimizer.state
    assert w.grad is None
    assert "exp_avg" in lowered.creates
    assert "dot_general" in str(lowered.plan)
    assert "define" in lowered.llvm
    assert str(step.jaxpr(tensor(X))) == lowered.as_text()
    assert step(tensor(X)).item() > step(tensor(X)).item()
    assert step.lower(tensor(X)).creates == ""
    with pytest.raises(UnsupportedOperationError, match="works on tensors"):
        step.as_cfunc(tensor(X))


def test_results_that_were_there_are_the_same_tensors() -> None:
    w = tensor(W, requires_grad=True)
    a = tensor(X[0])
    got = ft.jit(lambda x: (x, w, x * 1.0))(a)
    assert got[0] is a
    assert got[1] is w
    assert got[2] is not a


def test_writes_between_a_jitted_forward_and_its_backward() -> None:
    # A program keeps values, not tensors: the gradient is that of the point where it ran.
    w, b = tensor([1.0, 2.0], requires_grad=True), tensor([3.0, 4.0])
    loss = ft.jit(lambda x: (w * x * x).sum())(b)
    b.mul_(2.0)
    loss.backward()
    assert_array_equal(w.grad.numpy(), [9.0, 16.0])


def test_dropout_inside_a_checkpoint_in_a_step() -> None:
    w = tensor(np.ones(64), requires_grad=True)

    def noisy(x: Any) -> Any:
        return nn.functional.dropout(x * w, 0.5).sin()

    @ft.jit
    def step(x: Any) -> Any:
        w.grad = None
        out = checkpoint(noisy, x, use_reentrant=False)
        out.sum().backward()
        return out

    outs = []
    for _ in range(3):
        out = step(tensor(np.full(64, 0.3))).numpy()
        kept = out != 0.0
        assert 8 < kept.sum() < 56
        assert_allclose(w.grad.numpy(), np.where(kept, 0.6 * np.cos(0.6), 0.0), rtol=1e-14)
        outs.append(out)
    assert (outs[0] != outs[1]).any()


def test_one_tensor_given_twice() -> None:
    a = tensor(X[0])
    add = ft.jit(lambda u, v: (u + v).sum())
    assert_allclose(add(a, a).item(), 2 * X[0].sum())
    assert_allclose(add(a, tensor(X[1])).item(), X[0].sum() + X[1].sum())
    assert_array_equal(a.numpy(), X[0])

    def write(u: Any, v: Any) -> Any:
        u.mul_(2.0)
        return u + v

    jitted = ft.jit(write)
    one, two = tensor(X[0]), tensor(X[1])
    assert_allclose(jitted(one, two).numpy(), 2 * X[0] + X[1])
    assert_allclose(jitted(a, a).numpy(), 4 * X[0])
    assert_array_equal(a.numpy(), 2 * X[0])
    base = tensor(np.ones(3))
    with pytest.raises(UnsupportedOperationError, match="shares"):
        jitted(base[:2], base[1:])
    assert_array_equal(base.numpy(), np.ones(3))


def test_an_argument_that_the_function_also_reaches() -> None:
    a = tensor(np.ones(2))

    def step(x: Any) -> Any:
        a.mul_(2.0)
        return x + a

    jitted = ft.jit(step)
    assert_array_equal(jitted(tensor(np.ones(2))).numpy(), [3.0, 3.0])
    assert_array_equal(jitted(a).numpy(), [8.0, 8.0])
    assert_array_equal(a.numpy(), [4.0, 4.0])


def test_gradients_that_change_places() -> None:
    v, w = (tensor(np.zeros(2), requires_grad=True) for _ in range(2))
    v.grad, w.grad = tensor(np.ones(2)), tensor(np.full(2, 2.0))

    def swap() -> None:
        v.grad, w.grad = w.grad, v.grad

    jitted = ft.jit(swap)
    for first, second in ((2.0, 1.0), (1.0, 2.0), (2.0, 1.0)):
        jitted()
        assert_array_equal(v.grad.numpy(), np.full(2, first))
        assert_array_equal(w.grad.numpy(), np.full(2, second))


def test_what_hooks_do_beside_their_gradient_happens_once() -> None:
    w = tensor(W, requires_grad=True)
    seen: list[Any] = []
    w.register_hook(lambda g: seen.append(1))

    def step(x: Any) -> None:
        w.grad = None
        (x @ w).sum().backward()

    jitted = ft.jit(step)
    for _ in range(3):
        jitted(tensor(X))
    assert len(seen) == 2  # without a gradient at first, then with one
    declared = ft.jit(step, state=seen)
    for _ in range(3):
        declared(tensor(X))
    assert len(seen) == 5
    with pytest.raises(UnsupportedOperationError, match=r"each call changes state"):
        declared(tensor(X))


def test_arrays_as_arguments_of_a_step() -> None:
    w = tensor(np.zeros(3), requires_grad=True)

    def step(a: Any, b: Any) -> Any:
        w.grad = None
        loss = np.sum((a @ w - b) ** 2)
        loss.backward()
        return loss

    jitted = ft.jit(step)
    for scale in (1.0, 2.0):
        found = jitted(scale * X[:, :3], Y[:, 0]).item()
        gradient = w.grad.numpy().copy()
        assert_allclose(found, step(scale * X[:, :3], Y[:, 0]).item())
        assert_allclose(gradient, w.grad.numpy())


def test_data_is_replaced_in_a_step() -> None:
    b = tensor(np.zeros(2))

    def step(x: Any) -> Any:
        b.data = x * 2.0
        b.add_(1.0)
        return b.sum()

    jitted = ft.jit(step)
    for n in range(3):
        assert jitted(tensor(np.full(2, float(n)))).item() == 2 * (2 * n + 1)
        assert_array_equal(b.numpy(), np.full(2, 2.0 * n + 1))


def test_a_number_that_becomes_nan_is_another_number() -> None:
    held = {"scale": 1.0}
    jitted = ft.jit(lambda x: (x * held["scale"]).sum())
    assert jitted(tensor(X)).item() == pytest.approx(X.sum())
    held["scale"] = float("nan")
    assert np.isnan(jitted(tensor(X)).item())


USES: dict[str, Callable[[Any], Any]] = {
    "argument": lambda t: ft.jit(lambda x: x * 2.0)(t),
    "captured": lambda t: ft.jit(lambda x: x * t)(tensor(np.ones(2))),
    "deepcopy": copy.deepcopy,
    "integers as data": lambda t: setattr(t, "data", tensor(np.array([1, 2]))),
    "requires_grad_": lambda t: t.requires_grad_(False),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", ["before", "after"])
def test_a_view_made_before_a_write_to_its_base_is_in_the_graph(use: str, made: str) -> None:
    """That ends in a leaf: none of these may take the view for a tensor of its own."""
    base = tensor(np.arange(3.0))
    view = base[:2]
    base.mul_(tensor(np.ones(3), requires_grad=True))
    with pytest.raises((RuntimeError, UnsupportedOperationError)):
        USES[use](view if made == "before" else base[:2])


@pytest.mark.parametrize(("n", "is_compiled"), [(3, False), (30_000, True)])
def test_what_creates_state_is_interpreted_unless_its_loops_are_long(
    n: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    compile_now = native.compile_now

    def noted(*args: Any) -> Any:
        compiled.append(args)
        return compile_now(*args)

    monkeypatch.setattr(native, "compile_now", noted)

    def run(wrap: Callable[[Any], Any]) -> list[float]:
        kept: dict[str, Any] = {}

        def step() -> Any:
            x = tensor([0.25, 0.5])
            value = ft.lax.scan(lambda carry, _: (np.sin(carry) + 0.5, None), x, None, n)[0].sum()
            kept["mean"] = kept["mean"] + 0.5 * (value - kept["mean"]) if kept else value.clone()
            return kept["mean"].clone()

        call = wrap(step)
        return [call().item() for _ in range(2)]

    values = run(ft.jit)
    assert len(compiled) == 1 + is_compiled
    assert_allclose(values, run(lambda f: f), rtol=1e-12)


@pytest.mark.parametrize(
    "made",
    [
        lambda u: torch.ones(2, dtype=torch.float64),
        torch.ones_like,
        lambda u: torch.tensor([1.0, 1.0], dtype=torch.float64),
        lambda u: torch.ones_like(u.detach()),
        lambda u: 1.0 * u.detach(),
    ],
)
@pytest.mark.parametrize("call", ["backward", "grad", "create_graph"])
def test_given_gradients_may_be_made_in_the_step(made: Callable[[Any], Any], call: str) -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        w = torch.tensor([2.0, 3.0], requires_grad=True, dtype=torch.float64)

        def step() -> Any:
            w.grad = None
            u = torch.tanh(w)
            if call == "backward":
                u.backward(made(u))
                return w.grad.clone()
            is_recorded = call == "create_graph"
            (slope,) = torch.autograd.grad(u, w, made(u), create_graph=is_recorded)
            return torch.autograd.grad(slope.sum(), w)[0] if is_recorded else slope

        called = wrap(step)
        return [called().tolist() for _ in range(2)]

    assert_allclose(run(ft.jit), run(lambda f: f), rtol=1e-14)


def test_a_program_for_one_order_of_axes_is_not_used_for_another() -> None:
    def step(x: Any) -> Any:
        x.reshape(-1).mul_(10.0)
        return torch.nn.functional.dropout(x, 0.5)

    jitted = ft.jit(step)
    for _ in range(2):
        for turned in (False, True):
            results = []
            for call in (step, jitted):
                torch.manual_seed(0)
                x = torch.ones(6, 4).t() if turned else torch.ones(4, 6)
                results.append((call(x).tolist(), x.tolist()))
            assert results[0] == results[1]
