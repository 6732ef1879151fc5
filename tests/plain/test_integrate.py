"""SciPy's integrators in plain code: signatures, and steps where they are not known."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose

import functrans as ft
from functrans.errors import UnsupportedOperationError

TIMES = np.array([0.0, 0.5, 1.0])
POINT = np.array([0.7, 1.3])


def _decay(y: Any, t: Any, k: Any) -> Any:
    return -k * y


@pytest.mark.parametrize(
    "solve",
    [
        lambda x: scipy.integrate.odeint(_decay, x[0], TIMES, (x[1],)),
        lambda x: scipy.integrate.odeint(_decay, x, TIMES, (x[1],)),
        lambda x: scipy.integrate.odeint(lambda t, y: -x[1] * y, x[0], TIMES, tfirst=True),
        lambda x: scipy.integrate.odeint(_decay, x[0], TIMES, args=(x[1],), rtol=1e-10, mxstep=999),
    ],
)
def test_odeint_takes_and_gives_what_scipys_does(solve: Any) -> None:
    expected = solve(POINT)
    slope = np.stack([(solve(POINT + h) - solve(POINT - h)) / 2e-5 for h in 1e-5 * np.eye(2)], -1)
    for run in (solve, ft.jit(solve)):
        value, _ = ft.jvp(run, (POINT,), (np.ones(2),))
        assert value.shape == expected.shape
        assert_allclose(value, expected, 1e-6)
        assert_allclose(ft.jacobian(run)(POINT), slope, 1e-3, 1e-4)


def _solution(x: Any) -> Any:
    start, exact = [x[0], 1.0], {"rtol": 1e-10, "atol": 1e-12}
    return scipy.integrate.solve_ivp(lambda t, y: [y[1], -x[1] * y[0]], (0.0, 2.0), start, **exact)


class _Air:
    """An object among the arguments of a right-hand side."""

    def __init__(self, drag: Any) -> None:
        self.drag = drag


def _fall(t: Any, y: Any, air: _Air, unit: str) -> Any:
    return [y[1], -9.81 - air.drag * y[1] * abs(y[1])] if unit == "m" else [0.0, 0.0]


def _ground(t: Any, y: Any, air: _Air, unit: str) -> Any:
    return y[0] - air.drag


_ground.terminal = True  # type: ignore[attr-defined]  # as SciPy asks for it


@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF", "LSODA", scipy.integrate.DOP853])
def test_arguments_may_be_objects_and_methods_stiff(method: Any) -> None:
    def landing(x: Any) -> Any:
        found = scipy.integrate.solve_ivp(
            _fall, (0.0, 5.0), [x[0] + 9.0, 1.0], method, events=_ground, args=(_Air(x[1]), "m"),
            rtol=1e-9, atol=1e-9,
        )  # fmt: skip
        return found.t_events[0][0]

    def speed(x: Any) -> Any:
        found = scipy.integrate.odeint(
            lambda y, t, air, unit: _fall(t, y, air, unit), [0.0, x[0]], TIMES,
            (_Air(x[1]), "m"), rtol=1e-9, atol=1e-9,
        )  # fmt: skip
        return found[-1, 1]

    for f in (landing, speed):
        slope = [(f(POINT + h) - f(POINT - h)) / 2e-4 for h in 1e-4 * np.eye(2)]
        value, found = ft.value_and_grad(f)(POINT)
        assert_allclose(value, f(POINT), 1e-6)
        assert_allclose(found, slope, 1e-4, 1e-6)
    assert_allclose(ft.jit(ft.grad(speed))(POINT), ft.grad(speed)(POINT), 1e-9)


@pytest.mark.parametrize(
    "read",
    [
        lambda s: s.y[0, -1] + s.y[1][-1] + s.y[:, 0].sum() + s.y[..., -1][0],
        lambda s: s.y.T[-1].sum() + s.t[-1] + s.y[:, -1:].sum(),
        lambda s: (lambda a, b: a[-1] * b[0])(*s.y),
    ],
)
def test_ends_of_a_solution_are_known_where_its_steps_are_not(read: Any) -> None:
    expected = read(_solution(POINT))
    for run in (lambda x: read(_solution(x)), ft.jit(lambda x: read(_solution(x)))):
        assert_allclose(run(POINT), expected, 1e-8)
        assert_allclose(ft.vmap(run)(POINT[None])[0], expected, 1e-8)


@pytest.mark.parametrize(
    "read",
    [
        lambda s: s.y[0].max(), lambda s: s.y[0, 1], lambda s: s.y.sum(), lambda s: s.y * 2,
        lambda s: 2 - s.y, lambda s: np.exp(s.y), lambda s: np.trapezoid(s.y[0], s.t),
        lambda s: np.interp(1.0, s.t, s.y[0]), lambda s: len(s.t), lambda s: s.y.shape,
        lambda s: s.y[0, ::2], lambda s: s.y[:, s.t > 1], lambda s: np.array(s.y), lambda s: s.y,
        lambda s: list(s.t), lambda s: s.y[0] > 0, lambda s: np.diff(s.t), lambda s: -s.y,
    ],
)  # fmt: skip
def test_other_steps_are_refused(read: Any) -> None:
    read(_solution(POINT))
    for run in (ft.jit, lambda f: lambda x: ft.vmap(f)(x[None])):
        with pytest.raises((UnsupportedOperationError, TypeError), match=r"t_eval|Ends"):
            run(lambda x: read(_solution(x)))(POINT)
