"""``jit`` of imperative steps: state that changes, what invalidates a program, what is refused."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans.autograd import grad, no_grad, tensor
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
    calls = np.zeros(1)

    def step(x: Any, y: Any) -> Any:
        calls[0] += 1
        return model.loss(x, y)

    jitted = ft.jit(step)
    first = jitted(tensor(X), tensor(Y)).item()
    count = calls[0]
    assert jitted(tensor(X), tensor(Y)).item() == first
    assert calls[0] == count
    model.scale = 2.0
    assert_allclose(jitted(tensor(X), tensor(Y)).item(), model.loss(tensor(X), tensor(Y)).item())
    assert calls[0] == count + 1
    model.scale = 1.0
    assert jitted(tensor(X), tensor(Y)).item() == first


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
    from functrans.autograd import from_numpy

    one, two = from_numpy(array), from_numpy(array)

    def shared() -> Any:
        one.__iadd__(1.0)
        return two.sum()

    with pytest.raises(UnsupportedOperationError, match="memory another tensor"):
        ft.jit(shared)()
    assert_array_equal(array, np.ones(3))
    losses: list[Any] = []
    record = ft.jit(lambda x: losses.append((x @ w).sum()))
    for _ in range(3):
        record(tensor(X))
    assert_allclose([loss.item() for loss in losses], [(X @ W).sum()] * 3)
    with pytest.raises(UnsupportedOperationError, match=r"each call changes len\(losses\)"):
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
