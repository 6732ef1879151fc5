"""Functional transforms of functions of tensors, nested, and over recorded tensors."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans.autograd import Tensor, func, grad, no_grad, tensor
from functrans.errors import EscapedTracerError

X = np.array([0.5, 1.0, 2.0])
W = np.array([1.0, -2.0, 3.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


def waves(x: Any) -> Any:
    return (x.sin() * x).sum()


def slope(f: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a function with a scalar result."""
    directions = np.eye(x.size) * step
    return np.array([(f(x + d) - f(x - d)) / (2 * step) for d in directions])


FIRST = np.cos(X) * X + np.sin(X)
SECOND = 2 * np.cos(X) - np.sin(X) * X


def test_gradient_and_value() -> None:
    gradient, (value, aux) = func.grad_and_value(
        lambda x, y: (waves(x * y), {"y": y}), argnums=(0, 1), has_aux=True
    )(tensor(X), tensor(np.ones(3)))
    assert_allclose(value.numpy(), np.sin(X) @ X)
    assert_allclose(gradient[0].numpy(), FIRST)
    assert_allclose(gradient[1].numpy(), FIRST * X)
    assert isinstance(aux["y"], Tensor)
    assert_array_equal(aux["y"].numpy(), np.ones(3))


def test_containers_and_keywords() -> None:
    def loss(parameters: Any, *, scale: Any) -> Any:
        return (parameters["w"] * parameters["b"][0] * scale).sum()

    found = func.grad(loss)({"w": tensor(X), "b": [tensor(W)]}, scale=tensor(2.0))
    assert_allclose(found["w"].numpy(), 2 * W)
    assert_allclose(found["b"][0].numpy(), 2 * X)


def test_jacobians() -> None:
    def f(x: Any) -> Any:
        return x.sin() * x.sum()

    expected = np.diag(np.cos(X) * X.sum()) + np.sin(X)[:, None]
    for transform in (func.jacrev, func.jacfwd, lambda f: func.jacrev(f, chunk_size=2)):
        assert_allclose(transform(f)(tensor(X)).numpy(), expected)
    assert_allclose(func.hessian(waves)(tensor(X)).numpy(), np.diag(SECOND), atol=1e-12)


def test_pullback_and_pushforward() -> None:
    out, pullback = func.vjp(lambda x, y: x * y, tensor(X), tensor(W))
    assert_allclose(out.numpy(), X * W)
    for _ in range(2):
        assert [g.numpy().tolist() for g in pullback(tensor(X))] == [
            (X * W).tolist(),
            (X * X).tolist(),
        ]
    out, dot, aux = func.jvp(lambda x: (waves(x), x * 2), (tensor(X),), (tensor(W),), has_aux=True)
    assert_allclose((out.item(), dot.item()), (np.sin(X) @ X, FIRST @ W))
    assert_array_equal(aux.numpy(), 2 * X)
    out, pushforward = func.linearize(waves, tensor(X))
    assert_allclose(pushforward(tensor(W)).item(), FIRST @ W)


def test_batches() -> None:
    a = np.arange(6.0).reshape(2, 3)
    found = func.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))(tensor(a), tensor(W))
    assert_allclose(found.numpy(), a @ W)
    moved = func.vmap(lambda x: x * 2, in_dims=1, out_dims=1, chunk_size=2)(tensor(a))
    assert_array_equal(moved.numpy(), a * 2)
    per_sample = func.vmap(func.grad(lambda w, x: (w * x).sin().sum()), in_dims=(None, 0))
    assert_allclose(per_sample(tensor(W), tensor(a)).numpy(), np.cos(a * W) * a)


# nested, and over recorded tensors ---------------------------------------------------------------


def test_a_gradient_of_a_gradient() -> None:
    nested = func.grad(lambda x: func.grad(waves)(x).sum())
    assert_allclose(nested(tensor(X)).numpy(), SECOND)
    third = func.grad(lambda x: nested(x).sum())(tensor(X))
    assert_allclose(third.numpy(), -3 * np.sin(X) - np.cos(X) * X)


def test_a_gradient_of_a_batch() -> None:
    f = func.grad(lambda x: func.vmap(lambda v: v.sin() * v)(x).sum())
    assert_allclose(f(tensor(X)).numpy(), FIRST)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda x, w: func.grad(lambda v: (v * w).sin().sum())(x).sum(),
        lambda x, w: func.vmap(lambda v: (v * w).sin().sum())(x).sum(),
        lambda x, w: func.vmap(func.grad(lambda v: (v * w).sin().sum()))(x).sum(),
        lambda x, w: func.jvp(lambda v: (v * w).sin().sum(), (x,), (w,))[1],
        lambda x, w: func.jacrev(lambda v: (v * w).sin() * v.sum())(x).sum(),
        lambda x, w: func.jacfwd(lambda v: (v * w).sin() * v.sum())(x).sum(),
        lambda x, w: func.vjp(lambda v: (v * w).sin(), x)[1](w)[0].sum(),
        lambda x, w: func.linearize(lambda v: (v * w).sin(), x)[1](w).sum(),
        lambda x, w: func.grad(lambda v: func.grad(lambda u: (u * v * w).sin().sum())(v).sum())(
            x
        ).sum(),
        lambda x, w: func.grad(lambda v: func.vmap(lambda u: (u * v * w).sin().sum())(x).sum())(
            w
        ).sum(),
    ],
)
def test_results_are_differentiable_in_arguments_and_closures(transformed: Any) -> None:
    x, w = leaf(), leaf(W)
    found = grad(transformed(x, w), [x, w])

    def at(x: Any, w: Any) -> float:
        value: float = transformed(tensor(x), tensor(w)).item()
        return value

    assert_allclose(found[0].numpy(), slope(lambda v: at(v, W), X), rtol=1e-6, atol=1e-7)
    assert_allclose(found[1].numpy(), slope(lambda v: at(X, v), W), rtol=1e-6, atol=1e-7)


def test_backward_and_grad_inside() -> None:
    def inner(x: Any) -> Any:
        assert x.requires_grad
        assert x.is_leaf
        return grad((x**3).sum(), x, create_graph=True)[0].sum()

    assert_allclose(func.grad(inner)(tensor(X)).numpy(), 6 * X)

    def accumulated(x: Any) -> Any:
        (x * x).sum().backward()
        return (x.grad * x).sum()

    assert_allclose(func.vjp(accumulated, tensor(X))[0].item(), 2 * X @ X)


def test_writes_inside() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        head = y[:2]
        head *= x[1]
        y[2] = 5.0
        return (y * y).sum()

    found = func.grad(f)(tensor(X))

    def plain(x: np.ndarray) -> Any:
        return (x[0] * x[1]) ** 2 + x[1] ** 4 + 25

    assert_allclose(found.numpy(), slope(plain, X), rtol=1e-6, atol=1e-7)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        func.grad(lambda x: x.add_(1).sum())(tensor(X))


def test_writes_across_transforms() -> None:
    w, outside = leaf(W), tensor(X) * 1

    def f(x: Any) -> Any:
        y = x * 1
        y[0] = w[0]
        y *= w
        return (y * x).sum()

    found = func.grad(f)(tensor(X))
    assert_allclose(found.detach().numpy(), [W[0] ** 2, *(2 * W * X)[1:]])
    (second,) = grad(found.sum(), w)
    assert_allclose(second.numpy(), [2 * W[0], *(2 * X)[1:]])
    with pytest.raises(RuntimeError, match="would outlive the transform"):
        func.grad(lambda x: outside.mul_(x).sum())(tensor(X))
    assert_array_equal(outside.numpy(), X)


def test_later_writes_do_not_reach_a_pullback() -> None:
    x, w = leaf(), leaf(W)
    _, pullback = func.vjp(lambda v: v * v * w, x)
    with no_grad():
        x += 100
        w += 100
    assert_allclose(pullback(tensor(np.ones(3)))[0].detach().numpy(), 2 * X * W)


# functional transforms of arrays, with tensors ---------------------------------------------------


def test_transforms_of_arrays_take_tensors() -> None:
    x = leaf()
    found = ft.grad(lambda a: (np.sin(a) * a).sum())(x)
    assert_allclose(found.detach().numpy(), FIRST)
    (second,) = grad(found.sum(), x)
    assert_allclose(second.numpy(), SECOND)
    constant = ft.grad(lambda a: (a * 2).sum())(x)
    assert isinstance(constant, Tensor)
    assert_array_equal(constant.numpy(), [2.0] * 3)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda w: ft.grad(lambda a: (a * w * a).sum())(X),
        lambda w: ft.grad(lambda a: (w * a * a).sum())(X),
        lambda w: ft.vmap(lambda a: (w * a * w).sum())(X),
        lambda w: ft.jacobian(lambda a: np.sin(a) * w)(X),
        lambda w: ft.jvp(lambda a: np.sin(a) * w, (X,), (X,))[1],
        lambda w: ft.grad(lambda a: ft.vmap(lambda b: a * b * w)(X).sum())(2.0),
    ],
)
def test_transforms_of_arrays_refer_to_tensors(transformed: Any) -> None:
    w = leaf(W)
    (found,) = grad(transformed(w).sum(), w)

    def at(values: np.ndarray) -> float:
        return float(transformed(tensor(values)).sum())

    assert_allclose(found.numpy(), slope(at, W), rtol=1e-6, atol=1e-7)


def test_a_complex_gradient_is_that_of_torch() -> None:
    z = X + 1j * W
    found = func.grad(lambda x: (x * x.conj()).real.sum())(tensor(z))
    assert_allclose(found.numpy(), 2 * z)


# what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: func.grad(lambda x: x)(tensor(X)), RuntimeError, "got tensor with 1 dims"),
        (lambda: func.grad(lambda x: 3)(tensor(X)), RuntimeError, "return a Tensor, got"),
        (lambda: func.grad(waves)(3.0), ValueError, "must be Tensor, got <class 'float'>"),
        (lambda: func.grad(waves, 1)(tensor(X)), RuntimeError, "only 1 positional inputs"),
        (lambda: func.grad(waves, (0, 0))(tensor(X)), RuntimeError, "must be unique"),
        (lambda: func.grad(waves, has_aux=True)(tensor(X)), RuntimeError, "should be a tuple"),
        (lambda: func.jvp(waves, tensor(X), tensor(X)), RuntimeError, "primals to be a tuple"),
        (
            lambda: func.jvp(waves, (tensor(X),), (tensor(X), tensor(X))),
            RuntimeError,
            "same python structure",
        ),
        (lambda: func.jacrev(lambda x: 3)(tensor(X)), RuntimeError, "only tensors, got"),
        (lambda: func.jacrev(waves, chunk_size=0), ValueError, "greater than 0"),
        (lambda: func.vmap(waves)(3.0), ValueError, "cannot vmap over non-Tensor"),
        (
            lambda: func.vmap(lambda x, y: x * y)(tensor(X), tensor(X[:2])),
            ValueError,
            r"got sizes \[3, 2\]",
        ),
        (lambda: func.vmap(waves, in_dims=2)(tensor(X)), ValueError, "dimensionality 1"),
        (lambda: func.vmap(waves, in_dims=(0, 0))(tensor(X)), ValueError, "2 entries but"),
        (lambda: func.vmap(lambda x: 3.0)(tensor(X)), ValueError, "must only return Tensors"),
        (lambda: func.vmap(waves, randomness="x"), RuntimeError, "Only allowed values"),
    ],
)
def test_what_is_refused(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_tensor_of_a_transform_does_not_outlive_it() -> None:
    kept: list[Any] = []
    func.grad(lambda x: kept.append(x) or waves(x))(tensor(X))
    with pytest.raises(EscapedTracerError):
        kept[0] * 2


# modules -----------------------------------------------------------------------------------------


class Scale:
    """The part of a module's interface that ``functional_call`` uses."""

    training = True

    def __init__(self, weight: Any) -> None:
        self._parameters = {"weight": weight, "tied": weight}
        self._buffers = {"shift": tensor(1.0)}

    def named_modules(self) -> Any:
        return [("", self)]

    def named_parameters(self) -> Any:
        return [("weight", self._parameters["weight"])]

    def named_buffers(self) -> Any:
        return list(self._buffers.items())

    def __call__(self, x: Any, times: float = 1.0) -> Any:
        own = self._parameters
        return (own["weight"] * own["tied"] * x * times + self._buffers["shift"]).sum()


def test_functional_call() -> None:
    module = Scale(leaf(W))
    before = dict(module._parameters)

    def loss(parameters: Any) -> Any:
        return func.functional_call(module, parameters, tensor(X), {"times": 2.0})

    assert_allclose(func.grad(loss)({"weight": tensor(W)})["weight"].numpy(), 4 * W * X)
    assert all(module._parameters[name] is value for name, value in before.items())
    untied = func.functional_call(module, {"weight": tensor(X)}, tensor(X), tie_weights=False)
    assert_allclose(untied.item(), (X * W * X + 1).sum())
    with pytest.raises(KeyError, match="no parameter or buffer 'other'"):
        func.functional_call(module, {"other": tensor(W)}, tensor(X))
    with pytest.raises(ValueError, match="multiple dictionaries"):
        func.functional_call(module, [{"weight": tensor(W)}] * 2, tensor(X))
    with pytest.raises(RuntimeError, match="missing key"):
        func.functional_call(module, {"weight": tensor(W)}, tensor(X), strict=True)


def test_stacked_modules() -> None:
    models = [Scale(leaf(W)), Scale(leaf(2 * W))]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["weight"].requires_grad
    out = func.vmap(
        lambda p, b: func.functional_call(models[0], (p, b), tensor(X)), in_dims=(0, 0)
    )(parameters, buffers)
    assert_allclose(out.detach().numpy(), [W * W @ X + 3, 4 * W * W @ X + 3])
    (found,) = grad(out.sum(), parameters["weight"])
    assert_allclose(found.numpy(), [2 * W * X, 4 * W * X])
    with pytest.raises(RuntimeError, match="at least one model"):
        func.stack_module_state([])


@pytest.mark.parametrize(
    ("module", "own", "names"),
    [
        ("func", "func", "grad grad_and_value vjp jvp linearize jacrev jacfwd hessian vmap"),
        ("func", "func", "functional_call stack_module_state debug_unwrap"),
        ("utils.checkpoint", "checkpoint", "checkpoint checkpoint_sequential CheckpointError"),
        ("autograd", "function", "Function NestedIOFunction"),
        ("autograd", "api", "backward grad"),
    ],
)
def test_names_of_torch(module: str, own: str, names: str) -> None:
    theirs = import_module(f"functrans.compat.torch.{module}")
    ours = import_module(f"functrans.autograd.{own}")
    assert all(getattr(theirs, name) is getattr(ours, name) for name in names.split())


def test_no_grad_stops_the_reverse_mode_around_it() -> None:
    w = tensor([3.0, 4.0], requires_grad=True)

    def fun(x: Any) -> Any:
        with no_grad():
            c = x * x * w.detach()
        return (c * x).sum()

    x = np.array([1.0, 2.0])
    expected = x**2 * [3.0, 4.0]
    assert_allclose(func.grad(fun)(tensor(x)).numpy(), expected)
    assert_allclose(func.vjp(fun, tensor(x))[1](tensor(1.0))[0].numpy(), expected)
    each = func.vmap(func.grad(lambda x, w: fun_of(x, w)), (0, 0))(tensor(x), tensor([3.0, 4.0]))
    assert_allclose(each.numpy(), expected)
    # forward mode goes through it
    assert_allclose(func.jacfwd(fun)(tensor(x)).numpy(), 3 * expected)
    second = func.hessian(fun)(tensor(x)).numpy()
    assert_allclose(second, np.diag(2 * x * [3.0, 4.0]))


def fun_of(x: Any, w: Any) -> Any:
    with no_grad():
        c = x * x * w
    return c * x


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.detach()[::2],
        lambda a: a.detach()[0][1:],
        lambda a: a[0].detach()[1:],
        lambda a: a.detach().t(),
    ],
)
def test_views_of_what_is_detached_have_no_derivative_as_results(view):
    x = tensor([[1.0, 2.0], [0.5, 3.0]], requires_grad=True)
    ones = tensor(np.ones((2, 2)))
    wanted = view(x.detach())
    for primal, tangent in (
        func.jvp(view, (x,), (ones,)),
        (view(x), func.jacfwd(view)(x)),
        (func.vjp(view, x)[0], func.jacrev(view)(x)),
        (func.linearize(view, x)[0], func.linearize(view, x)[1](ones)),
    ):
        assert not primal.requires_grad
        assert primal.tolist() == wanted.tolist()
        assert not tangent.any()
