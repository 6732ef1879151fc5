"""Derivatives of operations against finite differences; values where numbers are extreme."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans.compat.torch as ft
from functrans.autograd import Tensor, grad, tensor

X = np.random.default_rng(3).normal(size=(3, 4))
SQUARE = X[:, :3] + 2 * np.eye(3)
ROWS = np.array([[0, 2, 1, 1], [1, 1, 0, 2], [2, 0, 0, 1]])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "sigmoid": lambda x: x.sigmoid(),
    "erf": lambda x: x.erf(),
    "lgamma": lambda x: (x * x + 0.5).lgamma(),
    "digamma": lambda x: (x * x + 0.5).digamma(),
    "var": lambda x: x.var(0),
    "std": lambda x: x.std(1, correction=0),
    "norm": lambda x: x.norm(3, 1),
    "prod": lambda x: x.prod(1),
    "cumprod": lambda x: x.cumprod(1),
    "max": lambda x: x.max(1).values,
    "sort": lambda x: x.sort(0, descending=True).values,
    "topk": lambda x: x.topk(2).values,
    "median": lambda x: x.median(1).values,
    "gather": lambda x: x.gather(0, tensor(ROWS)),
    "index_add": lambda x: x.index_add(0, tensor([0, 2]), x[:2] * x[1:]),
    "scatter_reduce": lambda x: x.scatter_reduce(1, tensor(ROWS), x * x, "amax"),
    "masked_select": lambda x: x.masked_select(x > 0) ** 2,
    "einsum": lambda x: ft.einsum("ij,kj->ik", x, x * x),
    "kron": lambda x: ft.kron(x, x),
    "inv": lambda x: (x[:, :3] + tensor(2 * np.eye(3))).inverse(),
    "det": lambda x: ft.linalg.det(x[:, :3]),
    "solve": lambda x: ft.linalg.solve(x[:, :3] + tensor(2 * np.eye(3)), x),
    "svdvals": lambda x: ft.linalg.svdvals(x),
    "matrix_exp": lambda x: ft.linalg.matrix_exp(x[:, :3]),
    "pinv": lambda x: ft.linalg.pinv(x),
    "fft": lambda x: ft.fft.rfft(x).abs(),
    "unfold": lambda x: x.unfold(1, 2, 1).prod(-1),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 5)) ** 2,
    "in_place": lambda x: (x * 1).mul_(x).sin_().add_(x, alpha=2),
    "index_put": lambda x: (x * 1).index_put_((tensor([0, 2]),), x[1:] ** 2),
    "clamp": lambda x: x.clamp(-0.5, x * x),
    "lerp": lambda x: x.lerp(x * x, x.sigmoid()),
    "roll": lambda x: x.roll((1, 2), (0, 1)) * x,
    "diag_embed": lambda x: ft.diag_embed(x, 1).exp(),
    "polar": lambda x: ft.view_as_real(ft.polar(x * x, x)),
    "cdist": lambda x: ft.cdist(x, x * x),
    "zeta": lambda x: ft.special.zeta(3.0, x * x + 1),
}


def weighted(function: Callable[[Any], Any], x: Tensor) -> Any:
    out = function(x)
    places = np.arange(out.numel()).reshape(out.shape)
    return (out * tensor(np.cos(places + 1.0))).sum()


def difference(function: Callable[[np.ndarray], float], direction: np.ndarray) -> float:
    step = 1e-5
    return (function(X + step * direction) - function(X - step * direction)) / (2 * step)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives_are_differences(name: str) -> None:
    function = FUNCTIONS[name]
    direction = np.random.default_rng(5).normal(size=X.shape)

    def value(at: np.ndarray) -> float:
        return float(weighted(function, tensor(at)))

    def slope(at: np.ndarray) -> Any:
        x = tensor(at, requires_grad=True)
        (first,) = grad(weighted(function, x), x, create_graph=True)
        return x, (first * tensor(direction)).sum()

    x, along = slope(X)
    assert_allclose(along.item(), difference(value, direction), 1e-6, 1e-7)
    if along.requires_grad:
        (second,) = grad(along, x)
        curvature = (second * tensor(direction)).sum().item()
        expected = difference(lambda at: slope(at)[1].item(), direction)
        assert_allclose(curvature, expected, 1e-5, 1e-6)


BATCHED = ("softmax", "var", "max", "sort", "gather", "cumprod", "inv", "einsum", "clamp", "norm")


@pytest.mark.parametrize("name", BATCHED)
def test_batches_of_gradients_are_those_of_each(name: str) -> None:
    x = tensor(X, requires_grad=True)
    out = FUNCTIONS[name](x)
    cts = np.random.default_rng(1).normal(size=(3, *out.shape))
    (many,) = grad(out, x, tensor(cts), is_grads_batched=True, retain_graph=True)
    for ct, found in zip(cts, many.numpy(), strict=True):
        (one,) = grad(out, x, tensor(ct), retain_graph=True)
        assert_allclose(found, one.numpy(), 1e-10, 1e-12)


def mapped(out: Tensor, x: Tensor, cts: Tensor) -> Tensor:
    return ft.func.vmap(lambda ct: grad(out, x, ct, create_graph=True)[0])(cts)  # type: ignore[no-any-return]


def hooked(out: Tensor, x: Tensor, cts: Tensor) -> Tensor:
    out.register_hook(lambda ct: ct * 1)
    return grad(out, x, cts, create_graph=True, is_grads_batched=True)[0]  # type: ignore[no-any-return]


def one_by_one(out: Tensor, x: Tensor, cts: Tensor) -> list[Tensor]:
    return [grad(out, x, ct, create_graph=True)[0] for ct in cts]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("together", [mapped, hooked])
def test_batches_of_gradients_that_are_recorded_have_the_gradients_of_each(
    name: str, together: Callable[..., Any]
) -> None:
    x = tensor(X, requires_grad=True)
    cts = tensor(np.random.default_rng(1).normal(size=(2, *FUNCTIONS[name](x).shape)))
    found = []
    for rows in (
        together,
        lambda out, x, cts: [grad(out, x, c, create_graph=True)[0] for c in cts],
    ):
        first, second = rows(FUNCTIONS[name](x), x, cts)
        total = (first * first * 0.5 + second.sin()).sum() + 0 * x.sum()
        found.append(grad(total, x)[0].numpy())
    assert_allclose(found[0], found[1], 1e-9, 1e-10)


def gradient(function: Callable[[Any], Any], at: Any) -> list[float]:
    x = tensor(at, requires_grad=True)
    with np.errstate(all="ignore"):
        (found,) = grad(function(x).sum(), x)
    return found.tolist()  # type: ignore[no-any-return]  # nested lists


@pytest.mark.parametrize(
    ("function", "at", "value", "slope"),
    [
        (lambda x: x.softmax(0)[:1], [1e4, 0.0], [1.0], [0.0, 0.0]),
        (lambda x: x.log_softmax(0)[1:], [1e4, 0.0], [-1e4], [-1.0, 1.0]),
        (lambda x: x.logsumexp(0), [1e4, 1e4], 1e4 + math.log(2), [0.5, 0.5]),
        (lambda x: x.sigmoid(), [-800.0, 800.0], [0.0, 1.0], [0.0, 0.0]),
        (lambda x: x.norm(), [0.0, 0.0], 0.0, [0.0, 0.0]),
        (lambda x: x.norm(1), [0.0, 2.0], 2.0, [0.0, 1.0]),
        (lambda x: x.norm(0.5), [0.0, 4.0], 4.0, [0.0, 1.0]),
        (lambda x: x.std(), [2.0, 2.0], 0.0, [0.0, 0.0]),
        (lambda x: x**0, [0.0, 3.0], [1.0, 1.0], [0.0, 0.0]),
        (lambda x: x**2.0, [0.0, -3.0], [0.0, 9.0], [0.0, -6.0]),
        (lambda x: x.prod(), [0.0, 2.0, 3.0], 0.0, [6.0, 0.0, 0.0]),
        (lambda x: x.prod(), [0.0, 0.0, 3.0], 0.0, [0.0, 0.0, 0.0]),
        (lambda x: x.cumprod(0), [2.0, 0.0, 3.0], [2.0, 0.0, 0.0], [1.0, 8.0, 0.0]),
        (lambda x: x.max(), [1.0, 3.0, 3.0], 3.0, [0.0, 0.5, 0.5]),
        (lambda x: x.amax(0), [1.0, 3.0, 3.0], 3.0, [0.0, 0.5, 0.5]),
        (lambda x: x.max(0).values, [1.0, 3.0, 3.0], 3.0, [0.0, 1.0, 0.0]),
        (lambda x: x.relu(), [-1.0, 0.0, 2.0], [0.0, 0.0, 2.0], [0.0, 0.0, 1.0]),
        (lambda x: x.abs(), [-1.0, 0.0, 2.0], [1.0, 0.0, 2.0], [-1.0, 0.0, 1.0]),
        (lambda x: x.clamp(0.0, 1.0), [-1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]),
        (lambda x: x.floor(), [1.5, -1.5], [1.0, -2.0], [0.0, 0.0]),
        (lambda x: x.nan_to_num(), [math.nan, 2.0], [0.0, 2.0], [0.0, 1.0]),
        (lambda x: x.nansum(), [math.nan, 2.0], 2.0, [0.0, 1.0]),
        (lambda x: x.xlogy(tensor(2.0)), [0.0], [0.0], [math.log(2)]),
    ],
)
def test_values_and_slopes_at_special_points(
    function: Any, at: Any, value: Any, slope: Any
) -> None:
    with np.errstate(all="ignore"):
        found = function(tensor(at))
    assert_allclose(found.numpy(), value, 1e-14)
    assert_allclose(gradient(function, at), slope, 1e-14)


def test_a_masked_branch_adds_nothing() -> None:
    slopes = gradient(lambda x: ft.where(x > 0, x.log(), x), [0.0, 2.0])
    assert_array_equal(slopes, [1.0, 0.5])


@pytest.mark.parametrize("function", [ft.clamp, ft.clip, lambda x, a, b: np.clip(x, a, b)])
def test_bounds_that_are_one_tensor_have_the_slope_of_the_result(function: Any) -> None:
    x = ft.tensor([-3.0, -1.0, 1.0, 3.0], dtype=ft.float64)

    def bounded(v: Any) -> Any:
        return function(x, v, v)

    v = ft.tensor([0.5, -2.0, 2.0, -0.5], dtype=ft.float64)
    eye = np.eye(4)
    assert_array_equal(ft.func.jacrev(bounded)(v).numpy(), eye)
    assert_array_equal(ft.func.jacfwd(bounded)(v).numpy(), eye)
