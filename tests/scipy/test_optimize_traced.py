"""Solvers that are programs themselves: values, derivatives, batches, what does not converge."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import functrans as ft
from functrans.errors import ConvergenceError
from functrans.scipy.optimize import bisect, brentq, minimize_bfgs, newton, root_newton, rosen
from functrans.testing import check_grads
from problems import MGH, Problem


def cube(x: Any, a: Any) -> Any:
    return x**3 - a


ROOTS: dict[str, Callable[[Any], Any]] = {
    "newton": lambda a: newton(cube, 1.0, args=(a,)),
    "brentq": lambda a: brentq(cube, 0.0, 4.0, args=(a,)),
    "bisect": lambda a: bisect(cube, 0.0, 4.0, args=(a,)),
    "closure": lambda a: brentq(lambda x: cube(x, a), 0.0, 4.0),
    "root_newton": lambda a: root_newton(lambda p, a: {"x": cube(p["x"], a)}, {"x": 1.0}, (a,))[
        "x"
    ],
}
roots = pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)


@roots
def test_roots_and_their_derivatives(root: Any) -> None:
    assert float(root(5.0)) == pytest.approx(5 ** (1 / 3), rel=1e-11)
    assert float(ft.jit(root)(5.0)) == pytest.approx(5 ** (1 / 3), rel=1e-11)
    check_grads(root, (5.0,), order=2)
    check_grads(ft.jit(root), (5.0,), order=1)
    points = np.array([5.0, 2.0])
    np.testing.assert_allclose(ft.vmap(root)(points), points ** (1 / 3), rtol=1e-11)
    np.testing.assert_allclose(ft.vmap(ft.grad(root))(points), points ** (-2 / 3) / 3, rtol=1e-9)


FUNCTIONS: list[tuple[Callable[[Any], Any], float, float]] = [
    (lambda x: np.cos(x) - x**3, 0.0, 1.0),
    (lambda x: np.exp(x) - 2, -5.0, 5.0),
    (lambda x: (x - 1) ** 5, 0.0, 3.0),
    (lambda x: x, 0.0, 1.0),
    (lambda x: x - 1, 0.0, 1.0),
    (lambda x: 2 - x, 0.0, 9.0),
    (lambda x: 1e-8 * np.tanh(x - 2), -10.0, 10.0),
    (lambda x: np.where(x < 0.3, -1.0, 1.0) + 0 * x, -1.0, 1.0),
]


@pytest.mark.parametrize("case", range(len(FUNCTIONS)))
def test_brackets_as_in_scipy(case: int) -> None:
    fun, a, b = FUNCTIONS[case]
    calls = []

    def counted(x: Any) -> Any:
        calls.append(x)
        return fun(x)

    theirs, report = scipy.optimize.brentq(fun, a, b, maxiter=500, full_output=True)
    ours = brentq(counted, a, b, maxiter=500)
    assert float(ours) == pytest.approx(theirs, abs=4e-12)
    assert len(calls) <= report.function_calls + 3
    assert float(ft.jit(lambda a: brentq(fun, a, b, maxiter=500))(a)) == pytest.approx(
        theirs, abs=4e-12
    )
    assert float(bisect(fun, a, b)) == pytest.approx(theirs, abs=4e-12)
    assert float(brentq(fun, b, a, maxiter=500)) == pytest.approx(theirs, abs=4e-12)


def test_newton_acts_element_by_element() -> None:
    a = np.array([[1.0, 8.0], [27.0, 0.5]])
    np.testing.assert_allclose(newton(cube, np.ones((2, 2)), args=(a,)), np.cbrt(a), rtol=1e-12)
    jacobian = ft.jacobian(lambda a: newton(cube, np.ones((2, 2)), args=(a,)))(a)
    expected = np.zeros((4, 4))
    np.fill_diagonal(expected, a.ravel() ** (-2 / 3) / 3)
    np.testing.assert_allclose(jacobian.reshape(4, 4), expected, rtol=1e-10)
    slope = newton(cube, 1.0, fprime=lambda x, a: 3 * x**2, args=(8.0,))
    np.testing.assert_allclose(slope, 2.0)


def test_systems() -> None:
    def fun(x: Any, c: Any) -> Any:
        return {"u": x["u"] ** 3 + x["v"] - c, "v": x["v"] - np.sin(x["u"][0])}

    x0 = {"u": np.array([1.0, 0.5]), "v": np.array(0.5)}

    def solved(c: Any) -> Any:
        return root_newton(fun, x0, (c,))

    for leaf in ft.tree.leaves(fun(solved(2.0), 2.0)):
        np.testing.assert_allclose(leaf, 0, atol=1e-12)
    check_grads(solved, (2.0,), order=2)
    check_grads(ft.jit(solved), (2.0,), order=1)
    batch = ft.vmap(solved)(np.array([2.0, 3.0]))
    np.testing.assert_allclose(batch["u"][1], solved(3.0)["u"], rtol=1e-12)


def test_steps_are_shortened() -> None:
    """Full steps of Newton's method diverge for the arctangent from here."""
    np.testing.assert_allclose(root_newton(np.arctan, np.array([3.0, -5.0])), 0, atol=1e-12)


def test_what_does_not_converge_raises_or_is_nan() -> None:
    def no_root(x: Any) -> Any:
        return x**2 + 1

    for solve, error, message in (
        (lambda x: newton(no_root, x, maxiter=20), ConvergenceError, "after 20 steps"),
        (lambda x: brentq(no_root, x, 5.0), ValueError, "have one sign"),
        (lambda x: bisect(no_root, x, 5.0), ValueError, "have one sign"),
        (lambda x: brentq(cube, x, 5.0, args=(2.0,), maxiter=2), ConvergenceError, "2 steps"),
        (lambda x: root_newton(no_root, x, maxiter=30), ConvergenceError, "steps the last one"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            solve(1.1)
        assert np.isnan(ft.jit(solve)(1.1))
    with pytest.raises(np.linalg.LinAlgError, match=r"root_newton of .*: the Jacobian is singular"):
        root_newton(lambda x: 0 * x + 1, np.ones(2))


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_single_precision_converges_to_what_it_resolves(way: Any) -> None:
    one, two, c = np.float32(1), np.float32(3), np.float32(2.7)
    for solve in (
        lambda c: bisect(lambda x: x * x - c, one, two),
        lambda c: brentq(lambda x: x * x - c, one, two),
        lambda c: newton(lambda x: x * x - c, np.full(3, one)),
        lambda c: root_newton(lambda x: x * x - c, np.full(3, one)),
        lambda c: ft.fixed_point(lambda x: 0.5 * (x + c / x), np.full(3, one)),
    ):
        found, slope = way(lambda c: ft.jvp(solve, (c,), (one,)))(c)  # noqa: B023  # called here
        assert found.dtype == slope.dtype == np.float32
        np.testing.assert_allclose(found, np.sqrt(2.7), rtol=1e-6)
        np.testing.assert_allclose(slope, 0.5 / np.sqrt(2.7), rtol=1e-5)


def test_the_only_argument_needs_no_tuple() -> None:
    for found in (
        bisect(cube, 0.0, 3.0, 8.0), brentq(cube, 0.0, 3.0, 8.0), newton(cube, 3.0, args=8.0),
        root_newton(cube, 3.0, 8.0), ft.fixed_point(lambda x, a: np.sqrt(a * x), 1.0, 2.0),
    ):  # fmt: skip
        np.testing.assert_allclose(found, 2.0, rtol=1e-7)


def test_wrong_starts_are_refused() -> None:
    with pytest.raises(TypeError, match="x0 is c128"):
        newton(cube, 1j, args=(1.0,))
    with pytest.raises(TypeError, match="a bracket is of two numbers"):
        brentq(cube, np.zeros(2), 1.0, args=(1.0,))
    with pytest.raises(TypeError, match="x0 is complex"):
        minimize_bfgs(rosen, np.ones(2) * 1j)
    with pytest.raises(TypeError, match="x0 is i64"):
        root_newton(np.sin, np.arange(3))


# minimize_bfgs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem", [pytest.param(p, id=p.name.replace(" ", "_")) for p in MGH if p.name != "Meyer"]
)
def test_minima_of_test_problems(problem: Problem) -> None:
    solve = ft.jit(lambda x: minimize_bfgs(problem.objective, x, gtol=1e-8, maxiter=5000))
    result = solve(problem.start)
    assert result.success
    assert problem.gap(float(result.fun)) < 1e-6
    assert np.abs(result.jac).max() <= 1e-8


def test_minima_have_derivatives() -> None:
    def objective(x: Any, a: Any) -> Any:
        return np.sum((x["u"] - a) ** 4 + (x["u"] - 2 * a) ** 2) + (x["v"] - x["u"][0]) ** 2

    def minimum(a: Any) -> Any:
        x0 = {"u": np.zeros(3), "v": np.zeros(())}
        return minimize_bfgs(objective, x0, (a,), gtol=1e-12).x

    a = np.array([1.0, 2.0, 3.0])
    check_grads(minimum, (a,), order=2)
    check_grads(ft.jit(minimum), (a,), order=1)
    check_grads(ft.vmap(minimum), (np.stack([a, a + 1]),), order=1)


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_the_least_value_has_derivatives(way: Any) -> None:
    def least(a: Any) -> Any:  # at x = a / 2: 1.5 a**2
        return minimize_bfgs(
            lambda x, a: np.sum((x - a) ** 2) + a * np.sum(x), np.zeros(2), (a,), gtol=1e-10
        ).fun

    assert float(way(ft.grad(least))(1.3)) == pytest.approx(3.9, rel=1e-8)
    assert float(way(ft.hessian(least))(1.3)) == pytest.approx(3.0, rel=1e-7)
    np.testing.assert_allclose(
        way(ft.vmap(ft.grad(least)))(np.array([1.0, 2.0])), [3, 6], rtol=1e-8
    )


def test_batches_of_minimisations(rng: np.random.Generator) -> None:
    starts = rng.standard_normal((4, 3))
    batch = ft.jit(ft.vmap(lambda x: minimize_bfgs(rosen, x, gtol=1e-8)))(starts)
    for i, start in enumerate(starts):
        np.testing.assert_allclose(batch.x[i], minimize_bfgs(rosen, start, gtol=1e-8).x, atol=1e-5)


def test_minimisation_takes_as_many_evaluations_as_scipys() -> None:
    start = np.array([-1.2, 1.0, -1.2, 1.0])
    theirs = scipy.optimize.minimize(rosen, start, jac=scipy.optimize.rosen_der)
    ours = minimize_bfgs(rosen, start)
    assert ours.success
    assert ours.nfev <= 1.3 * theirs.nfev


def test_minimisations_that_do_not_converge_are_flagged() -> None:
    result = minimize_bfgs(rosen, np.array([-1.2, 1.0]), maxiter=3)
    assert not result.success
    assert result.nit == 3
    assert result.fun < rosen(np.array([-1.2, 1.0]))
    unbounded = minimize_bfgs(lambda x: -np.sum(x), np.zeros(2), maxiter=30)
    assert not unbounded.success
