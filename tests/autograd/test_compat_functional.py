"""``torch.autograd.functional`` on tensors; transforms of functions of arrays on torch's."""

from __future__ import annotations

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from functrans.compat.torch.autograd import functional

X = np.array([0.5, -1.0, 2.0])


def _x(requires_grad=False):
    return torch.tensor(X, dtype=torch.float64, requires_grad=requires_grad)


def _cubes(x):
    return x**3


def _sum_of_cubes(x):
    return (x**3).sum()


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(vectorize, strategy):
    if strategy == "forward-mode" and not vectorize:
        with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
            functional.jacobian(_cubes, _x(), strategy=strategy)
        return
    found = functional.jacobian(_cubes, _x(), vectorize=vectorize, strategy=strategy)
    np.testing.assert_allclose(found.numpy(), np.diag(3 * X**2))
    assert not found.requires_grad


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(vectorize, strategy):
    if strategy == "forward-mode" and not vectorize:
        pytest.skip("refused")
    found = functional.hessian(
        _sum_of_cubes, _x(), vectorize=vectorize, outer_jacobian_strategy=strategy
    )
    np.testing.assert_allclose(found.detach().numpy(), np.diag(6 * X))


@pytest.mark.parametrize("vectorize", [False, True])
def test_nesting_of_tuples(vectorize):
    def both(x, y):
        return x.sum() * y, y**2

    x, y = _x(), torch.tensor([3.0, 4.0], dtype=torch.float64)
    rows = functional.jacobian(both, (x, y), vectorize=vectorize)
    shapes = [[tuple(block.shape) for block in row] for row in rows]
    assert shapes == [[(2, 3), (2, 2)], [(2, 3), (2, 2)]]
    np.testing.assert_allclose(rows[0][0].numpy(), [[3.0] * 3, [4.0] * 3])
    np.testing.assert_allclose(rows[1][0].numpy(), np.zeros((2, 3)))
    np.testing.assert_allclose(rows[1][1].numpy(), np.diag([6.0, 8.0]))
    one = functional.jacobian(lambda x: x * 2, (x,))
    assert isinstance(one, tuple)


@pytest.mark.parametrize("vectorize", [False, True])
def test_create_graph_leads_to_the_inputs(vectorize):
    x = _x(requires_grad=True)
    found = functional.jacobian(_cubes, x, create_graph=True, vectorize=vectorize)
    found.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * X)
    x.grad = None
    found = functional.hessian(_sum_of_cubes, x, create_graph=True, vectorize=vectorize)
    found.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full(3, 6.0))


@pytest.mark.parametrize("name", ["vjp", "jvp"])
def test_products_with_the_jacobian(name):
    matrix = torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]], dtype=torch.float64)
    vector = torch.tensor([1.0, 2.0] if name == "vjp" else [1.0, 0.0, 2.0], dtype=torch.float64)
    x = _x(requires_grad=True)
    value, product = getattr(functional, name)(lambda x: matrix @ x**2, x, vector, True)
    m, v = matrix.numpy(), vector.numpy()
    np.testing.assert_allclose(value.detach().numpy(), m @ X**2)
    jacobian = m * (2 * X)
    expected = v @ jacobian if name == "vjp" else jacobian @ v
    np.testing.assert_allclose(product.detach().numpy(), expected)
    product.sum().backward()
    slopes = 2 * (v @ m) if name == "vjp" else 2 * v * m.sum(0)
    np.testing.assert_allclose(x.grad.numpy(), slopes)


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_products_with_the_hessian(name):
    vector = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    x = _x(requires_grad=True)
    value, product = getattr(functional, name)(_sum_of_cubes, x, vector, True)
    np.testing.assert_allclose(value.item(), (X**3).sum())
    np.testing.assert_allclose(product.detach().numpy(), 6 * X * vector.numpy())
    product.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * vector.numpy())


def test_results_are_outside_of_the_graph_without_create_graph():
    x = _x(requires_grad=True)
    for found in (
        functional.vjp(_sum_of_cubes, x),
        functional.jvp(_cubes, x, x),
        functional.hvp(_sum_of_cubes, x, x),
        functional.vhp(_sum_of_cubes, x, x),
    ):
        assert not any(part.requires_grad for part in found)


INDEPENDENT = "is independent of input 1. This is not allowed in strict mode"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: functional.jacobian(_cubes, [x]),
            TypeError,
            "must be either a Tensor or a tuple",
        ),
        (lambda x: functional.jacobian(_cubes, (x, 1)), TypeError, "the value at index 1 has type"),
        (
            lambda x: functional.jacobian(lambda x: [x], x),
            TypeError,
            "outputs of the user-provided",
        ),
        (
            lambda x: functional.jacobian(_cubes, x, strategy="both"),
            AssertionError,
            "Expected strat",
        ),
        (lambda x: functional.vjp(_cubes, x), RuntimeError, "The vector v can only be None if"),
        (lambda x: functional.vjp(_cubes, x, x[:2]), RuntimeError, "v has invalid size: should be"),
        (
            lambda x: functional.vjp(_cubes, x, (x, x)),
            RuntimeError,
            "should contain a single Tensor",
        ),
        (lambda x: functional.vhp(_cubes, x, x), RuntimeError, "should contain a single element"),
        (
            lambda x: functional.hessian(lambda x: (x.sum(), x.sum()), x),
            RuntimeError,
            "The function given to hessian should return a single Tensor",
        ),
        (
            lambda x: functional.jacobian(lambda x, y: x * 2, (x, x), strict=True),
            RuntimeError,
            INDEPENDENT,
        ),
        (
            lambda x: functional.vjp(lambda x, y: x * 2, (x, x), x, strict=True),
            RuntimeError,
            INDEPENDENT,
        ),
        (
            lambda x: functional.jvp(lambda x: torch.ones(2), x, x, strict=True),
            RuntimeError,
            "Output 0 of the user-provided function does not require gradients",
        ),
        (
            lambda x: functional.hvp(lambda x: 2 * x.sum(), x, x, strict=True),
            RuntimeError,
            "found that the jacobian of the user-provided function with respect to input 0",
        ),
        (
            lambda x: functional.jacobian(_cubes, x, strict=True, vectorize=True),
            RuntimeError,
            "are not supported together",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(_x())


def test_the_function_runs_once():
    calls = []

    def noted(x):
        calls.append(1)
        return x * 2

    for vectorize in (False, True):
        functional.jacobian(noted, _x(), vectorize=vectorize)
    assert len(calls) == 2


@pytest.mark.parametrize("transform", [ft.grad, ft.vmap, ft.jacobian, ft.hessian])
def test_transforms_of_functions_of_arrays_name_those_of_tensors(transform):
    with pytest.raises(TypeError, match=r"transformed by torch\.func"):
        transform(torch.sin)(_x())


def test_a_network_is_differentiated_by_its_parameters():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2).double()
    x = _x()
    found = functional.jacobian(lambda w: torch.nn.functional.linear(x, w), model.weight)
    np.testing.assert_allclose(
        found.numpy(), np.einsum("ij,k->ijk", np.eye(2), X)[..., None, :].reshape(2, 2, 3)
    )
