"""The gradient of a piecewise linear function is a function of its operand, of derivative 0."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
import functrans.compat.torch.nn.functional as F  # noqa: N812  # the name that torch users give
from functrans.autograd import func, grad, tensor

X = np.array([-1.5, 0.5, 2.0])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "prelu": lambda x: F.prelu(x, tensor([0.25])),
    "abs": torch.abs,
    "l1_loss": lambda x: F.l1_loss(x, x.detach() * 0),
    "norm": lambda x: x.norm(p=1),
    "max_pool1d": lambda x: F.max_pool1d(x.view(1, 1, 3), 2),
    "relu_": lambda x: F.relu(x * 1, inplace=True),
    "leaky_relu_": lambda x: F.leaky_relu(x * 1, inplace=True),
}
EACH = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@EACH
def test_the_recorded_gradient_requires_a_gradient_that_is_zero(
    function: Callable[[Any], Any],
) -> None:
    x = tensor(X, requires_grad=True)
    (slope,) = grad(function(x).sum(), x, create_graph=True)
    assert slope.requires_grad
    (plain,) = grad(function(x).sum(), x)
    assert not plain.requires_grad
    assert_array_equal(slope.detach().numpy(), plain.numpy())
    total = slope.sum()
    (curvature,) = grad(total, x, create_graph=True)
    assert_array_equal(curvature.detach().numpy(), np.zeros(3))
    grad(total, x)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        grad(total, x)


@pytest.mark.parametrize(
    "function", [lambda x: x * 2, torch.sum, lambda x: x.clamp(-1, 1), lambda x: x.max(), torch.neg]
)
def test_other_linear_functions_have_constant_gradients(function: Callable[[Any], Any]) -> None:
    x = tensor(X, requires_grad=True)
    (slope,) = grad(function(x).sum(), x, create_graph=True)
    assert not slope.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(slope.sum(), x)


def test_both_operands_and_the_gradient_are_in_the_graph() -> None:
    x = tensor(X, requires_grad=True)
    weight = tensor([0.25], requires_grad=True)
    seed = tensor(np.ones(3), requires_grad=True)
    (slope,) = grad(F.prelu(x, weight), x, seed, create_graph=True)
    found = grad(slope.sum(), (x, weight, seed))
    assert_array_equal(found[0].numpy(), np.zeros(3))
    assert_array_equal(found[1].numpy(), [1.0])
    assert_array_equal(found[2].numpy(), [0.25, 1.0, 1.0])


def test_gradient_penalty_of_a_network_of_relu() -> None:
    x = tensor(X, requires_grad=True)
    w = tensor(np.diag([1.0, 2.0, 3.0]), requires_grad=True)
    (slope,) = grad(F.relu(x @ w).sum(), x, create_graph=True)
    (slope**2).sum().backward()
    assert_array_equal(x.grad.numpy(), np.zeros(3))
    assert_array_equal(np.diag(w.grad.numpy()), [0.0, 4.0, 6.0])


def test_the_same_under_jit() -> None:
    def step(x: Any) -> Any:
        (slope,) = grad(F.relu(x).sum() + x.abs().sum(), x, create_graph=True)
        return grad((slope * slope).sum(), x)[0]

    x = tensor(X, requires_grad=True)
    assert_array_equal(ft.jit(step)(x).numpy(), step(x).numpy())


def test_batched_gradients_and_transforms() -> None:
    x = tensor(X, requires_grad=True)
    rows = torch.eye(3, dtype=torch.float64)
    (jacobian,) = grad(F.relu(x), x, rows, is_grads_batched=True, create_graph=True)
    assert_array_equal(jacobian.detach().numpy(), np.diag([0.0, 1.0, 1.0]))
    assert_array_equal(grad(jacobian.sum(), x)[0].numpy(), np.zeros(3))
    hessian = func.hessian(lambda x: (F.relu(x) ** 2).sum())(tensor(X))
    assert_array_equal(hessian.numpy(), np.diag([0.0, 2.0, 2.0]))


def test_the_graph_of_a_gradient_dies_with_it() -> None:
    gc.collect()
    gc.disable()
    try:
        x = tensor(X, requires_grad=True)
        (slope,) = grad(F.relu(x).sum(), x, create_graph=True)
        assert "composite" in str(slope.grad_fn.jaxpr())
        assert "Relu" in slope.grad_fn.to_dot()
        node = weakref.ref(slope.grad_fn)
        del slope
        assert node() is None
    finally:
        gc.enable()
