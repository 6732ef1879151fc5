"""Nested derivatives: known higher derivatives, and no confusion of perturbations."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functions import CASES, Case
from helpers import assert_close

# f, its derivatives of orders 1, 2, 3
KNOWN = (
    ("sin", np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    ("power", lambda x: x**5, lambda x: 5 * x**4, lambda x: 20 * x**3, lambda x: 60 * x**2),
    ("inverse", lambda x: 1 / x, lambda x: -(x**-2), lambda x: 2 * x**-3, lambda x: -6 * x**-4),
    ("exp", lambda x: np.exp(2 * x), *(lambda x, k=k: 2**k * np.exp(2 * x) for k in (1, 2, 3))),
    ("log", np.log, lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3),
    ("sqrt", np.sqrt, *(
        lambda x, c=c, p=p: c * x**p for c, p in ((0.5, -0.5), (-0.25, -1.5), (0.375, -2.5)))),
    ("product", lambda x: x * np.exp(x), *(lambda x, k=k: (x + k) * np.exp(x) for k in (1, 2, 3))),
)  # fmt: skip


@pytest.mark.parametrize("known", [pytest.param(known, id=known[0]) for known in KNOWN])
@pytest.mark.parametrize("x", [0.7, 1.9])
def test_higher_derivatives_are_the_known_ones(known: Any, x: float) -> None:
    _, fun, *derivatives = known
    for derivative in derivatives:
        fun = ft.grad(fun)
        np.testing.assert_allclose(fun(x), derivative(x), rtol=1e-12)


def _d(f: Any) -> Any:
    return lambda x: ft.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("outer", [ft.grad, _d])
@pytest.mark.parametrize("inner", [ft.grad, _d])
def test_perturbations_are_not_confused(outer: Any, inner: Any) -> None:
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0
    assert outer(lambda x: x * inner(lambda y: x * y)(1.0))(4.0) == 8.0
    assert outer(lambda x: inner(lambda y: x * y**2)(3.0))(1.0) == 6.0


def test_function_nested_in_itself_keeps_its_levels_apart() -> None:
    def f(x: Any) -> Any:
        return x**3

    def g(x: Any) -> Any:
        return f(x) * ft.grad(f)(x) * ft.grad(ft.grad(f))(x)  # x^3 * 3 x^2 * 6 x

    np.testing.assert_allclose(ft.grad(g)(1.3), 18 * 6 * 1.3**5, rtol=1e-12)


def test_inner_derivative_sees_the_outer_value_through_a_closure() -> None:
    def outer(a: Any) -> Any:
        def inner(x: Any) -> Any:
            return np.sum(np.sin(a * x))

        return np.sum(ft.grad(inner)(np.arange(3.0)) ** 2)

    a, x = 0.7, np.arange(3.0)
    # d/da sum (a cos(a x))^2
    expected = np.sum(2 * a * np.cos(a * x) * (np.cos(a * x) - a * x * np.sin(a * x)))
    np.testing.assert_allclose(ft.grad(outer)(a), expected, rtol=1e-12)


def test_closure_over_an_array_of_the_outer_trace() -> None:
    """The Jacobian of an inner function that reads outer values is not all zeros."""

    def outer(w: Any) -> Any:
        jacobian = ft.jacobian(lambda x: np.tanh(w @ x))(np.array([0.3, -0.2]))
        return np.sum(jacobian**2)

    w = np.array([[0.5, 1.0], [-0.3, 0.2]])
    gradient = ft.grad(outer)(w)
    step = 1e-6
    for i, j in np.ndindex(2, 2):
        moved = np.zeros((2, 2))
        moved[i, j] = step
        expected = (outer(w + moved) - outer(w - moved)) / (2 * step)
        np.testing.assert_allclose(gradient[i, j], expected, rtol=1e-6)


def test_inner_gradient_that_depends_on_nothing_outer_is_constant() -> None:
    assert ft.grad(lambda x: x * ft.grad(lambda y: y**2)(3.0))(2.0) == 6.0


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_hessians_of_all_modes_agree_and_are_symmetric(case: Case) -> None:
    hessian = ft.hessian(case.fun)(case.point)
    assert hessian.shape == (case.point.size,) * 2
    assert np.any(hessian != 0)
    assert_close(hessian, hessian.T, rtol=1e-10)
    for outer in (ft.jacfwd, ft.jacrev):
        for inner in (ft.grad, ft.jacfwd, ft.jacrev):
            assert_close(outer(inner(case.fun))(case.point), hessian, rtol=1e-9)
    v = case.direction()
    assert_close(ft.hvp(case.fun, (case.point,), (v,)), hessian @ v, rtol=1e-9)
    assert_close(ft.vhp(case.fun, (case.point,), (v,)), v @ hessian, rtol=1e-9)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_third_derivatives_are_symmetric(case: Case) -> None:
    u, v, w = (case.direction(k) for k in range(3))

    def along(f: Any, direction: Any) -> Any:
        return lambda x: np.sum(ft.grad(f)(x) * direction)

    def value(*directions: Any) -> Any:
        fun = case.fun
        for direction in directions:
            fun = along(fun, direction)
        return fun(case.point)

    expected = value(u, v, w)
    assert expected != 0
    for order in ((u, w, v), (v, u, w), (v, w, u), (w, u, v), (w, v, u)):
        np.testing.assert_allclose(value(*order), expected, rtol=1e-9)


def test_grad_of_grad_in_pytrees() -> None:
    def loss(params: Any, *, scale: float) -> Any:
        return scale * np.sum(np.sin(params["a"]) * params["b"][0]) + params["b"][1] ** 3

    params = {"a": np.array([0.3, -0.4]), "b": (np.array([1.0, 2.0]), np.array(0.5))}

    def norm(params: Any) -> Any:
        gradient = ft.grad(loss)(params, scale=2.0)
        return sum(np.sum(leaf**2) for leaf in ft.tree.leaves(gradient))

    gradient = ft.grad(norm)(params)
    a, (b, c) = params["a"], params["b"]
    # the gradient is (2 b cos a, 2 sin a, 3 c^2)
    assert_close(gradient["a"], -8 * b**2 * np.cos(a) * np.sin(a) + 8 * np.sin(a) * np.cos(a))
    assert_close(gradient["b"][0], 8 * b * np.cos(a) ** 2)
    assert_close(gradient["b"][1], 36 * c**3)


def test_argnums_and_aux_nest() -> None:
    def f(x: Any, y: Any) -> Any:
        return x**2 * y**3, {"seen": x}

    def g(x: Any, y: Any) -> Any:
        (dx, dy), aux = ft.grad(f, argnums=(0, 1), has_aux=True)(x, y)
        return dx * dy * aux["seen"]

    # 2 x y^3 * 3 x^2 y^2 * x = 6 x^4 y^5
    np.testing.assert_allclose(ft.grad(g, argnums=1)(1.1, 0.7), 30 * 1.1**4 * 0.7**4, rtol=1e-12)


def test_pullback_called_inside_an_outer_derivative() -> None:
    def f(x: Any) -> Any:
        _, pullback = ft.vjp(np.sin, x)
        return pullback(x)[0] + pullback(2.0 * x)[0]  # 3 x cos x

    np.testing.assert_allclose(ft.grad(f)(0.4), 3 * (np.cos(0.4) - 0.4 * np.sin(0.4)), rtol=1e-12)
