"""Solvers whose functions, derivatives and steps decide by values, with values at hand or not."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import fsolve, minimize, root

import functrans as ft
from helpers import fourth_order_differences
from scipy import optimize as so

POINT = np.array([0.7, 1.3])
differences = functools.partial(fourth_order_differences, size=2e-3)


def _newton_by_choice(x: Any, order: int = 1) -> Any:
    """Functions and their derivatives that decide."""

    def f(t: Any) -> Any:
        return t**3 - x[1] if t > 0 else t - x[0]

    def slope(t: Any) -> Any:
        return 3 * t * t if t > 0 else 1

    def bend(t: Any) -> Any:
        return 6 * t if t > 0 else 0

    start = np.array([1.0, 2.0]) if order == 0 else 1.0
    if order == 0:
        power = lambda t: t**3 - x  # noqa: E731  # as people write it
        return so.newton(power, start, fprime=lambda t: 3 * t * t, tol=1e-12)
    second = bend if order == 2 else None
    return so.newton(f, start, fprime=slope, fprime2=second, tol=1e-12) * x


def _hessian_by_choice(x: Any, method: str) -> Any:
    def cost(u: Any) -> Any:
        bend = 0.1 * u[1] ** 4 if u[1] > 0 else 0
        return (u[0] - x[0]) ** 2 + 3.0 * (u[1] - u[0] * x[1]) ** 2 + bend

    def slope(u: Any) -> Any:
        rest = u[1] - u[0] * x[1]
        bend = 0.4 * u[1] ** 3 if u[1] > 0 else 0
        return np.array([2 * (u[0] - x[0]) - 6 * x[1] * rest, 6 * rest + bend])

    def hessian(u: Any) -> Any:
        h = np.array([[2 + 6 * x[1] ** 2, -6 * x[1]], [-6 * x[1], 6.0]])
        if u[1] > 0:
            h[1, 1] += 1.2 * u[1] ** 2
        return h

    return minimize(cost, [0.3, 0.2], jac=slope, hess=hessian, method=method, tol=1e-10).x


def _jacobian_by_choice(x: Any, name: str) -> Any:
    def equations(u: Any) -> Any:
        return [u[0] ** 2 + x[1] * u[1] - 2.0, u[1] - x[0] * u[0] if u[0] > 0 else u[1]]

    def jacobian(u: Any) -> Any:
        return [[2 * u[0], x[1]], [-x[0] if u[0] > 0 else 0, 1]]

    if name == "fsolve":
        return fsolve(equations, [1.0, 1.0], fprime=jacobian, xtol=1e-13)
    return root(equations, [1.0, 1.0], jac=jacobian, tol=1e-13).x


def _fixed_by_choice(x: Any, method: str = "del2") -> Any:
    def step(v: Any) -> Any:
        return np.cos(v) * x[0] if v > 0 else 0

    return so.fixed_point(step, 0.5, method=method, xtol=1e-11) * x


def _fixed_of_several(x: Any) -> Any:
    return so.fixed_point(lambda v, c: np.sqrt(c / (v + 0.5)) + x, [1.2, 1.3], (x[1],), xtol=1e-11)


def _fixed_where_plain_steps_diverge(x: Any) -> Any:
    return so.fixed_point(lambda v: 2.0 - x[0] * v**3, 0.9, xtol=1e-11) * x


WITH_DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "newton": _newton_by_choice,
    "newton of second order": functools.partial(_newton_by_choice, order=2),
    "newton of several": functools.partial(_newton_by_choice, order=0),
    **{name: functools.partial(_hessian_by_choice, method=name)
       for name in ("Newton-CG", "trust-exact", "dogleg")},
    **{name: functools.partial(_jacobian_by_choice, name=name) for name in ("fsolve", "root")},
    "fixed_point": _fixed_by_choice,
    "fixed_point by iteration": functools.partial(_fixed_by_choice, method="iteration"),
    "fixed_point of several": _fixed_of_several,
    "fixed_point, accelerated": _fixed_where_plain_steps_diverge,
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_DERIVATIVES)
def test_functions_and_their_derivatives_may_decide(name: str) -> None:
    f = WITH_DERIVATIVES[name]
    expected, slope = f(POINT), differences(f, POINT)
    for transform in (lambda f: f, ft.jit):
        np.testing.assert_allclose(transform(f)(POINT), expected, 1e-6)
        np.testing.assert_allclose(transform(ft.jacfwd(f))(POINT), slope, 1e-4, 1e-5)
        np.testing.assert_allclose(transform(ft.jacrev(f))(POINT), slope, 1e-4, 1e-5)
    np.testing.assert_allclose(ft.vmap(f)(POINT[None])[0], expected, 1e-6)
