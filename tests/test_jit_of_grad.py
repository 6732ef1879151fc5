"""``jit`` around and inside derivatives: same results, traced once."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functions import STAGEABLE, Case
from helpers import assert_close

CASES = [pytest.param(case, id=case.name) for case in STAGEABLE]
DERIVATIVES = {
    "grad": ft.grad,
    "value_and_grad": ft.value_and_grad,
    "jacfwd": ft.jacfwd,
    "jacrev": ft.jacrev,
    "hessian": ft.hessian,
    "grad_of_norm": lambda f: ft.grad(lambda x: np.sum(ft.grad(f)(x) ** 2)),
    "vmap_of_grad": lambda f: lambda x: ft.vmap(ft.grad(f))(np.stack([x, 0.9 * x])),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", list(DERIVATIVES))
def test_jit_of_derivative_computes_the_same(case: Case, name: str) -> None:
    fun = DERIVATIVES[name](case.fun)
    expected = fun(case.point)
    jitted = ft.jit(fun)
    assert_close(jitted(case.point), expected, rtol=1e-9)
    assert_close(jitted(case.point), expected, rtol=1e-9)
    moved = case.point + 1e-3
    assert_close(jitted(moved), fun(moved), rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", list(DERIVATIVES))
def test_derivative_of_jit_computes_the_same(case: Case, name: str) -> None:
    derivative = DERIVATIVES[name]
    expected = derivative(case.fun)(case.point)
    assert_close(derivative(ft.jit(case.fun))(case.point), expected, rtol=1e-9)
    assert_close(ft.jit(derivative(ft.jit(case.fun)))(case.point), expected, rtol=1e-9)


def test_jit_of_grad_runs_the_function_once_per_shape() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return np.sum(np.sin(x) ** 2)

    fun = ft.jit(ft.grad(f))
    for k in range(3):
        assert_close(fun(np.full(4, 0.1 * k)), np.sin(np.full(4, 0.2 * k)))
    assert calls == [(4,)]
    fun(np.ones((2, 2)))
    assert calls == [(4,), (2, 2)]


def test_captured_array_that_changes_is_seen() -> None:
    weights = np.array([1.0, 2.0])
    fun = ft.jit(ft.grad(lambda x: np.sum(weights * x**2)))
    assert_close(fun(np.ones(2)), np.array([2.0, 4.0]))
    weights[:] = [10.0, 20.0]
    assert_close(fun(np.ones(2)), np.array([20.0, 40.0]))


def test_captured_array_that_changes_is_seen_by_a_constant_tangent() -> None:
    weights = np.array([1.0, 2.0])
    fun = ft.jit(lambda x: ft.jvp(lambda x: weights * x, (x,), (np.ones(2),))[1])
    assert_close(fun(np.ones(2)), np.array([1.0, 2.0]))
    weights[:] = [10.0, 20.0]
    assert_close(fun(np.ones(2)), np.array([10.0, 20.0]))


def test_jit_inside_an_outer_derivative_sees_its_closure() -> None:
    def outer(a: Any) -> Any:
        inner = ft.jit(lambda x: np.sin(a * x))
        return inner(2.0) + ft.grad(inner)(2.0)

    a = 0.6
    expected = 2 * np.cos(2 * a) + np.cos(2 * a) - 2 * a * np.sin(2 * a)
    assert_close(ft.grad(outer)(a), expected)
    assert_close(ft.jit(ft.grad(outer))(a), expected)


def test_pytrees_keywords_and_static_arguments() -> None:
    def loss(params: Any, n: int, *, scale: Any) -> Any:
        return scale * sum(np.sum(params["w"] ** k) for k in range(1, n + 1))

    params = {"w": np.array([0.5, 2.0]), "unused": np.ones(3)}
    fun = ft.jit(ft.grad(loss), static_argnums=1)
    found = fun(params, 3, scale=2.0)
    w = params["w"]
    assert_close(found, {"w": 2 * (1 + 2 * w + 3 * w**2), "unused": np.zeros(3)})


def test_single_precision_and_python_numbers() -> None:
    step = ft.jit(ft.grad(lambda x, rate: np.sum(x**2) * rate))
    found = step(np.ones(3, np.float32), 0.1)
    assert found.dtype == np.float32


def test_vmap_of_jit_of_grad_is_the_loop() -> None:
    fun = ft.jit(ft.grad(lambda x, y: np.sum(np.exp(x * y))))
    xs, ys = np.arange(6.0).reshape(3, 2) / 6, np.array([0.5, -0.3, 0.2])
    expected = np.stack([fun(*row) for row in zip(xs, ys, strict=True)])
    assert_close(ft.vmap(fun)(xs, ys), expected)
    assert_close(ft.jit(ft.vmap(fun))(xs, ys), expected)
