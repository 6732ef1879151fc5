"""SciPy's solvers in plain code: derivatives of solutions in data, closures, objects and bounds."""

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import (
    Bounds,
    brentq,
    curve_fit,
    fsolve,
    least_squares,
    minimize,
    newton,
    root,
)

import functrans as ft
from functrans.errors import UnsupportedOperationError
from helpers import fourth_order_differences
from scipy import optimize as so

POINT = np.array([0.7, 1.3])
TIMES = np.linspace(0.0, 2.0, 9)
NOISE = np.array([0.02, -0.03, 0.01, 0.02, -0.02, 0.01, 0.03, -0.01, 0.0])


differences = functools.partial(fourth_order_differences, size=2e-3)


def check(f: Callable[[Any], Any], x: Any = POINT, rtol: float = 1e-5) -> None:
    """Value, derivatives in both modes and second derivatives of a function that solves.

    Solvers without derivatives find a minimum to the root of the precision of its value, so that
    differences of solutions have errors of about 1e-6.
    """
    expected, slope = np.asarray(f(x)), differences(f, x)
    value, tangent = ft.jvp(f, (x,), (np.array([0.3, -1.1]),))
    np.testing.assert_allclose(value, expected, 1e-6, 1e-9)
    np.testing.assert_allclose(tangent, slope @ np.array([0.3, -1.1]), rtol, 5e-6)
    np.testing.assert_allclose(ft.jacobian(f)(x), slope, rtol, 5e-6)

    def total(x: Any) -> Any:
        return (f(x) ** 2).sum()

    second = differences(lambda x: ft.grad(total)(x), x)
    np.testing.assert_allclose(ft.hessian(total)(x), second, 10 * rtol, 1e-5)


# minima -------------------------------------------------------------------------------------------


def _valley(u: Any, x: Any) -> Any:
    return (u[0] - x[0]) ** 2 + 3 * (u[1] - x[1] * u[0]) ** 2 + 0.1 * (u**4).sum()


def _valley_slope(u: Any, x: Any) -> Any:
    gap = u[1] - x[1] * u[0]
    return np.array([2 * (u[0] - x[0]) - 6 * x[1] * gap, 6 * gap]) + 0.4 * u**3


METHODS = {
    "BFGS": {"gtol": 1e-10},
    "CG": {"gtol": 1e-10},
    "L-BFGS-B": {"ftol": 1e-16, "gtol": 1e-11},
    "Newton-CG": {"xtol": 1e-12},
    "TNC": {"gtol": 1e-12, "xtol": 1e-12, "ftol": 1e-16},
    "SLSQP": {"ftol": 1e-15},
    "Nelder-Mead": {"xatol": 1e-11, "fatol": 1e-16},
    "Powell": {"xtol": 1e-11, "ftol": 1e-16},
}


@pytest.mark.parametrize("method", METHODS)
def test_minimize_by_each_method(method: str) -> None:
    jac = None if method in ("Nelder-Mead", "Powell") else _valley_slope

    def f(x: Any) -> Any:
        return minimize(
            _valley, np.zeros(2), args=(x,), jac=jac, method=method, options=METHODS[method]
        ).x

    check(f, rtol=1e-4)


def test_minimize_with_a_hessian() -> None:
    def hess(u: Any, x: Any) -> Any:
        off = -6 * x[1]
        return np.array([[2 + 6 * x[1] ** 2, off], [off, 6.0]]) + np.diag(1.2 * u**2)

    def f(x: Any) -> Any:
        found = minimize(
            _valley, np.zeros(2), (x,), "trust-exact", _valley_slope, hess, options={"gtol": 1e-11}
        )
        return np.concatenate([found.x, [found.fun], found.jac])

    check(f)


class Model:
    """An object that holds traced values, arrays that are filled, and counts."""

    def __init__(self, x: Any) -> None:
        self.weights = np.zeros(2)
        self.weights[0] = x[0]
        self.weights[1] = x[1] * 2
        self.count = 0

    def cost(self, u: Any) -> Any:
        """The objective."""
        self.count += 1
        return ((u - self.weights) ** 2).sum() + (u**4).sum()

    def __call__(self, u: Any, shift: Any) -> Any:
        """The same with a shift."""
        return self.cost(u - shift)


def _closure(x: Any) -> Any:
    return minimize(lambda u: _valley(u, x), np.zeros(2), tol=1e-10).x


def _buffer_in_closure(x: Any) -> Any:
    data = np.zeros(2)
    data[0] = x[1]
    data[1] = x[0]
    return minimize(lambda u: ((u - data) ** 2).sum() + (u**4).sum(), np.zeros(2), tol=1e-10).x


def _method(x: Any) -> Any:
    model = Model(x)
    found = minimize(model.cost, [0.1, 0.2], tol=1e-10)
    assert model.count > 3
    return found.x * found.fun


def _object(x: Any) -> Any:
    return minimize(Model(x), np.zeros(2), args=(x[0],), tol=1e-10).x


def _partial(x: Any) -> Any:
    return minimize(functools.partial(_valley, x=x), np.zeros(2), tol=1e-10).x


def _value_and_slope(x: Any) -> Any:
    def both(u: Any) -> Any:
        return _valley(u, x), _valley_slope(u, x)

    return minimize(both, np.zeros(2), jac=True, tol=1e-10).x


def _scalar(x: Any) -> Any:
    found = so.minimize_scalar(lambda t: (t - x[0]) ** 2 + x[1] * np.exp(t), tol=1e-12)
    return np.array([found.x, found.fun])


def _scalar_bounded(x: Any) -> Any:
    found = so.minimize_scalar(
        lambda t: (t - x[0]) ** 2 * x[1] + np.sin(t),
        bounds=(-3, 3),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return np.array([found.x, found.fun])


def _simplex(x: Any) -> Any:
    return so.fmin(_valley, np.zeros(2), args=(x,), xtol=1e-11, ftol=1e-16, disp=False)


def _brent(x: Any) -> Any:
    return np.array([so.brent(lambda t: (t - x[0]) ** 2 + x[1] * t**4), x[0]])


def _evolution(x: Any) -> Any:
    bounds = [(-3, 3), (-3, 3)]
    return so.differential_evolution(lambda u: _valley(u, x), bounds, rng=1, popsize=5).x


def _annealing(x: Any) -> Any:
    return so.dual_annealing(_valley, [(-3, 3), (-3, 3)], args=(x,), rng=1, maxiter=20).x


def _hopping(x: Any) -> Any:
    options = {"args": (x,), "tol": 1e-10}
    return so.basinhopping(_valley, np.zeros(2), niter=3, minimizer_kwargs=options, rng=1).x


@pytest.mark.parametrize("f", [_evolution, _annealing, _hopping])
def test_a_global_minimum_has_the_derivatives_of_a_minimum(f: Any) -> None:
    np.testing.assert_allclose(f(POINT), _closure(POINT), 1e-5)
    np.testing.assert_allclose(ft.jacobian(f)(POINT), ft.jacobian(_closure)(POINT), 1e-4)


@pytest.mark.parametrize(
    "f",
    [
        _closure, _buffer_in_closure, _method, _object, _partial, _value_and_slope, _scalar,
        _scalar_bounded, _simplex, _brent,
    ],
)  # fmt: skip
def test_a_minimum_has_the_derivatives_of_what_the_function_refers_to(f: Any) -> None:
    check(f, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # of the last steps, on some processors
@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "Nelder-Mead", "trust-constr"])
def test_components_at_a_bound_stay_there(method: str) -> None:
    options = {"trust-constr": {"gtol": 1e-10, "xtol": 1e-12}}.get(method, METHODS.get(method))

    def f(x: Any) -> Any:
        return minimize(
            lambda u: ((u - x[0]) ** 2).sum() + u[0] * u[1] * x[1],
            np.array([0.1, 0.05]),
            bounds=[(None, 0.2), (-1.0, None)],
            method=method,
            options=options,
        ).x

    expected = np.array([[0.0, 0.0], [1.0, -0.1]])
    np.testing.assert_allclose(ft.jacobian(f)(POINT), expected, 1e-6, 1e-9)


def test_bounds_may_be_traced() -> None:
    def f(x: Any) -> Any:
        return minimize(
            lambda u: ((u - 2.0) ** 2).sum() + u.prod(),
            np.array([0.1, 0.1]),
            bounds=[(0.0, x[0]), (x[0] * x[1], 3.0)],
            tol=1e-12,
        ).x

    check(f)


def _bounded(solver: str, x: Any) -> Any:
    """A minimum of which one component is at a bound that is traced."""
    box = Bounds([x[0] - 2.0, -1.0], [x[0] - 0.2, 0.8 * x[1]])

    def rest(u: Any) -> Any:
        return np.array([u[0] - 2.0, u[1] - x[0], 0.3 * u[0] * u[1]])

    def cost(u: Any) -> Any:
        return (rest(u) ** 2).sum()

    if solver == "least_squares":
        return least_squares(rest, [0.1, 0.1], bounds=box, **TIGHT).x
    if solver == "lsq_linear":
        a = np.array([[1.0, 0.3], [0.2, 1.0], [0.5, -0.5]])
        return so.lsq_linear(a, [2.0, x[0], 0.1], bounds=box, tol=1e-14).x
    if solver == "differential_evolution":
        return so.differential_evolution(cost, box, rng=1, popsize=5, tol=1e-9).x
    if solver == "curve_fit":
        model = lambda t, a, b: a + b * np.cos(t)  # noqa: E731  # as people write it
        return curve_fit(model, TIMES, 2.0 + x[0] * np.cos(TIMES), bounds=box, **TIGHT)[0]
    return minimize(cost, [0.1, 0.1], method=solver if "-" in solver else None, bounds=box).x


@pytest.mark.parametrize(
    "solver",
    ["least_squares", "lsq_linear", "curve_fit", "differential_evolution", "L-BFGS-B",
     "Nelder-Mead"],
)  # fmt: skip
def test_bounds_as_an_object_may_be_traced(solver: str) -> None:
    found = ft.jacobian(lambda x: _bounded(solver, x))(POINT)
    is_another = solver in ("lsq_linear", "curve_fit")
    exact = solver if is_another else "least_squares"  # whose differences have no noise
    value, slope = _bounded(solver, POINT), differences(lambda x: _bounded(exact, x), POINT)
    assert abs(found[0, 0] - 1.0) < 1e-12  # at its bound
    np.testing.assert_allclose(found, slope, 1e-3, 2e-3)
    np.testing.assert_allclose(ft.jvp(lambda x: _bounded(solver, x), (POINT,), (POINT,))[0], value)


def test_bounds_are_what_they_are_in_scipy() -> None:
    def f(x: Any) -> Any:
        box = Bounds(x - 1.0, keep_feasible=True)
        assert isinstance(box, Bounds)
        assert box.keep_feasible.all()
        plain = so.Bounds([0, 1], 2)
        below, above = box.residual(x * 2.0)
        return below.sum() + (box.lb * plain.residual(x)[1]).sum() + np.isinf(above).sum()

    np.testing.assert_allclose(ft.grad(f)(POINT), differences(f, POINT), 1e-8)


def test_bounds_as_an_object() -> None:
    def f(x: Any) -> Any:
        return minimize(
            lambda u: ((u - x) ** 2).sum(), np.zeros(2), bounds=Bounds([-1, -1], [0.9, 0.9])
        ).x

    np.testing.assert_allclose(ft.jacobian(f)(POINT), [[1.0, 0.0], [0.0, 0.0]], atol=1e-12)


def test_fields_that_would_lose_derivatives_are_refused() -> None:
    def f(x: Any) -> Any:
        found = minimize(_valley, np.zeros(2), args=(x,))
        assert found.success
        return found.hess_inv[0, 0]

    with pytest.raises(UnsupportedOperationError, match="hess_inv"):
        ft.grad(f)(POINT)


def test_plain_problems_give_the_result_of_scipy() -> None:
    def f(x: Any) -> Any:
        found = minimize(lambda u: ((u - 1.0) ** 2).sum(), np.zeros(2))
        assert found.hess_inv.shape == (2, 2)
        return x[0] * found.x.sum()

    np.testing.assert_allclose(ft.grad(f)(POINT), [2.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(ft.jit(f)(POINT), 1.4, 1e-6)


def test_constraints_are_refused_where_values_are_traced() -> None:
    constraint = {"type": "eq", "fun": lambda u: u.sum() - 1.0}

    def f(x: Any) -> Any:
        return minimize(_valley, np.zeros(2), args=(x,), constraints=constraint).x.sum()

    def traced(x: Any) -> Any:
        own = {"type": "eq", "fun": lambda u: u.sum() - x[0]}
        return minimize(lambda u: (u**2).sum(), np.zeros(2), constraints=[own]).x.sum()

    def plain(x: Any) -> Any:
        found = minimize(lambda u: (u**2).sum(), np.zeros(2), constraints=[constraint])
        return x[0] * found.x.sum()

    for function in (f, traced):
        with pytest.raises(UnsupportedOperationError, match="Karush"):
            ft.grad(function)(POINT)
    np.testing.assert_allclose(ft.grad(plain)(POINT), [1.0, 0.0], atol=1e-6)


def test_a_solver_that_has_not_converged_is_told() -> None:
    def f(x: Any) -> Any:
        return minimize(_valley, np.ones(2) * 5, args=(x,), options={"maxiter": 1}).x.sum()

    with pytest.warns(RuntimeWarning, match="has not converged"):
        ft.grad(f)(POINT)


_DEGENERATE: list[Callable[[Any], Any]] = [
    lambda a: newton(lambda v: (v - a) ** 2, 0.3),
    lambda a: newton(lambda v: v * v - 2 * a * v + a * a, 0.3),
    lambda a: newton(lambda v: (v - a) ** 2, np.array([0.3, 2.0]))[0],
    lambda a: fsolve(lambda v: [(v[0] - a) ** 2 + v[1] - a, v[1] - a], [0.3, 0.2])[0],
    lambda a: minimize(lambda v: (v[0] - a) ** 4 + (v[1] - a * v[0]) ** 2, np.zeros(2)).x[0],
    lambda a: minimize(
        lambda v: (v[0] - a) ** 4 + (v[1] - a) ** 2, np.zeros(2), method="Nelder-Mead"
    ).x[0],
]


@pytest.mark.parametrize("f", _DEGENERATE, ids=range(len(_DEGENERATE)))
def test_a_root_of_higher_multiplicity_is_told(f: Any) -> None:
    with pytest.warns(RuntimeWarning, match="higher multiplicity"):
        ft.grad(f)(1.0)


_REGULAR: list[tuple[Callable[[Any], Any], float]] = [
    (lambda a: newton(lambda v: v**3 - a, 1.3), 1 / 3),
    (lambda a: newton(lambda v: np.exp(v) - a, 0.3), 1.0),
    (lambda a: brentq(lambda v: v * v - a * 1e-20, 0, 1e-8, xtol=1e-30), 0.5e-10),
    (lambda a: brentq(lambda v: np.sin(1e4 * (v - a)), 0.9999, 1.0001), 1.0),
    (lambda a: minimize(_steep, np.array([-0.3, 1.0]), args=(a,)).x[1], 2.0),
    (lambda a: minimize(_steep, np.array([-0.3, 1]), args=(a,), method="Nelder-Mead").x[1], 2.0),
]


def _steep(v: Any, a: Any) -> Any:
    return 100 * (v[1] - v[0] ** 2) ** 2 + (a - v[0]) ** 2


@pytest.mark.parametrize(("f", "expected"), _REGULAR, ids=range(len(_REGULAR)))
def test_a_root_that_is_steep_or_small_is_not(f: Any, expected: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(ft.grad(f)(1.0), expected, 1e-7)


def test_a_minimum_that_is_not_determined_is_refused() -> None:
    def f(x: Any) -> Any:
        return minimize(lambda u: (u.sum() - x[0]) ** 2, np.zeros(2)).x.sum()

    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ft.grad(f)(POINT)


# least squares ------------------------------------------------------------------------------------


def _decay(t: Any, a: Any, k: Any) -> Any:
    return a * np.exp(-k * t)


def _data(x: Any) -> Any:
    return _decay(TIMES, 1 + x[0], x[1]) + NOISE * (1 + x[0])


TIGHT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


def _squares(x: Any) -> Any:
    y = _data(x)
    found = least_squares(lambda p: _decay(TIMES, *p) - y, [1.0, 1.0], **TIGHT)
    return np.concatenate([found.x, [found.cost], found.fun])


def _squares_with_arguments(x: Any) -> Any:
    def residual(p: Any, y: Any, *, scale: Any) -> Any:
        return (_decay(TIMES, *p) - y) * scale

    return least_squares(
        residual, np.ones(2), args=(_data(x),), kwargs={"scale": x[0]}, method="lm", **TIGHT
    ).x


def _robust(loss: str, x: Any) -> Any:
    y = _data(x) + np.where(TIMES == 1.0, 0.5, 0.0)
    return least_squares(
        lambda p: _decay(TIMES, *p) - y, [1.5, 1.0], loss=loss, f_scale=0.1, **TIGHT
    ).x


def _squares_in_bounds(x: Any) -> Any:
    y = _data(x)
    return least_squares(
        lambda p: _decay(TIMES, *p) - y, [1.0, 0.5], bounds=([0, 0], [5.0, x[0]]), **TIGHT
    ).x


def _fit(x: Any) -> Any:
    popt, pcov = curve_fit(_decay, TIMES, _data(x), p0=[1.0, 1.0], **TIGHT)
    return np.concatenate([popt, np.sqrt(np.diag(pcov))])


def _fit_with_errors(x: Any) -> Any:
    popt, pcov = curve_fit(
        _decay, TIMES * x[0], _data(x), sigma=0.1 + x[1] * TIMES, absolute_sigma=True, **TIGHT
    )
    return np.concatenate([popt, pcov.ravel()])


def _fit_with_covariance(x: Any) -> Any:
    sigma = 0.1 * np.eye(9) + 0.02 * x[0] * np.ones((9, 9))
    popt, _ = curve_fit(_decay, TIMES, _data(x), sigma=sigma, **TIGHT)
    return popt


def _fit_of_closure(x: Any) -> Any:
    popt, _ = curve_fit(
        lambda t, a: a * np.exp(-x[1] * t), TIMES, np.cos(TIMES) * x[0], bounds=(0, 10), **TIGHT
    )
    return popt


def _levenberg(x: Any) -> Any:
    p, flag = so.leastsq(lambda p: _decay(TIMES, *p) - _data(x), [1.0, 1.0], ftol=1e-15, xtol=1e-15)
    assert flag in (1, 2, 3, 4)
    return p


def _levenberg_in_full(x: Any) -> Any:
    p, cov, info, _, _ = so.leastsq(
        lambda p: _decay(TIMES, *p) - _data(x), [1.0, 1.0], full_output=True, ftol=1e-15, xtol=1e-15
    )
    return np.concatenate([p, np.diag(cov), info["fvec"]])


def _non_negative(x: Any) -> Any:
    a = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])
    u, norm = so.nnls(a * x[0], np.array([1.0, -1.0, 0.5, 2.0]) + x[1])
    return np.concatenate([u, [norm]])


def _linear(x: Any) -> Any:
    a = np.vander(TIMES, 3) * x[0]
    found = so.lsq_linear(a, _data(x), bounds=(-1.0, [0.3, 5.0, 5.0]), tol=1e-14)
    return np.concatenate([found.x, [found.cost]])


@pytest.mark.parametrize(
    "f",
    [
        _squares, _squares_with_arguments, _squares_in_bounds, _fit, _fit_with_errors,
        _fit_with_covariance, _fit_of_closure, _levenberg, _levenberg_in_full, _non_negative,
        _linear,
        *(functools.partial(_robust, loss) for loss in ("soft_l1", "huber", "cauchy", "arctan")),
    ],
)  # fmt: skip
def test_a_fit_has_the_derivatives_of_its_data(f: Any) -> None:
    check(f, rtol=1e-4)


# roots --------------------------------------------------------------------------------------------


def _equations(u: Any, x: Any) -> Any:
    return [u[0] ** 2 + u[1] ** 2 - x[0] - 1.0, u[0] - x[1] * u[1]]


def _bracketed(name: str, x: Any) -> Any:
    solve = getattr(so, name)
    first = solve(lambda t: t**3 + x[1] * t - x[0], -3, 3)
    second, record = solve(lambda t, a: np.exp(t) - a, -3.0, 3.0, args=(x[1],), full_output=True)
    assert record.converged
    return np.array([first, second])


def _steps_of_newton(x: Any) -> Any:
    first = so.newton(lambda t: t**2 - x[1], 1.0, tol=1e-12)
    second = so.newton(lambda t, a: t**2 - a, 1.0, lambda t, a: 2 * t, args=(x[0],), tol=1e-12)
    third = so.newton(lambda t: t**2 - x[0], 1.0, lambda t: 2 * t, fprime2=lambda t: 2.0, tol=1e-12)
    return np.array([first, second, third])


def _elementwise_newton(x: Any) -> Any:
    return so.newton(lambda t: t**2 - x, np.ones(2), lambda t: 2 * t, tol=1e-13)


def _scalar_root(x: Any) -> Any:
    found = so.root_scalar(lambda t: t**3 + x[1] * t - x[0], bracket=(-3, 3), method="brentq")
    other = so.root_scalar(lambda t: (t**2 - x[0], 2 * t), x0=1.0, fprime=True, method="newton")
    assert found.converged
    return np.array([found.root, other.root])


def _system(method: str, x: Any) -> Any:
    return root(_equations, [1.0, 1.0], args=(x,), method=method, tol=1e-13).x


def _old_system(x: Any) -> Any:
    u, info, flag, _ = fsolve(lambda u: _equations(u, x), [1.0, 1.0], full_output=True, xtol=1e-13)
    assert flag == 1
    return u + info["fvec"]


def _fixed(x: Any) -> Any:
    return so.fixed_point(lambda u: np.cos(u * x) * 0.5, np.ones(2), xtol=1e-13)


def _krylov(x: Any) -> Any:
    return so.newton_krylov(lambda u: np.array(_equations(u, x)), [1.0, 0.8], f_tol=1e-13)


@pytest.mark.parametrize(
    "f",
    [
        *(
            functools.partial(_bracketed, name)
            for name in ("brentq", "brenth", "bisect", "ridder", "toms748")
        ),
        _steps_of_newton, _elementwise_newton, _scalar_root,
        *(functools.partial(_system, name) for name in ("hybr", "lm", "krylov")),
        _old_system, _fixed, _krylov,
    ],
)  # fmt: skip
def test_a_root_has_the_derivatives_of_what_the_function_refers_to(f: Any) -> None:
    check(f)


# where values are not known -----------------------------------------------------------------------


@pytest.mark.parametrize("f", [_squares, _fit, _levenberg, _scalar_root, _old_system, _evolution])
def test_solvers_are_refused_where_values_are_not_known(f: Any) -> None:
    with pytest.raises(UnsupportedOperationError, match="minimize_bfgs, root_newton"):
        ft.jit(f)(POINT)
    with pytest.raises(UnsupportedOperationError, match="minimize_bfgs, root_newton"):
        ft.vmap(f)(np.stack([POINT, POINT]))


@pytest.mark.parametrize("name", ["brentq", "brenth", "bisect", "ridder", "toms748", "newton"])
def test_roots_of_one_number_are_found_by_programs_where_values_are_not_known(name: str) -> None:
    def f(x: Any) -> Any:
        start = (1.0,) if name == "newton" else (0.0, 3.0)
        return getattr(so, name)(lambda t: t**3 + x[1] * t - x[0], *start, xtol=1e-13) if (
            name != "newton"
        ) else so.newton(lambda t: t**3 + x[1] * t - x[0], *start, tol=1e-12)  # fmt: skip

    with ft.config(native=False):
        np.testing.assert_allclose(ft.jit(f)(POINT), f(POINT), 1e-10)
        np.testing.assert_allclose(ft.jit(ft.grad(f))(POINT), ft.grad(f)(POINT), 1e-8)


def test_the_logistic_fit_of_the_programs() -> None:
    fit = importlib.import_module("plain.programs.logistic_fit")
    scale = fit.POINT
    slope = differences(lambda s: fit.main(s * scale), np.ones(len(scale)))
    np.testing.assert_allclose(ft.grad(fit.main)(scale) * scale, slope, 1e-6)
    slopes = differences(lambda s: fit.outputs(s * scale), np.ones(len(scale)))
    np.testing.assert_allclose(
        ft.jacobian(fit.outputs)(scale) * scale, slopes, 1e-4, 1e-6 * np.abs(slopes).max()
    )


def test_names_of_modules_are_the_same() -> None:
    def by_module(x: Any) -> Any:
        return scipy.optimize.brentq(lambda t: np.exp(t) - x, -3.0, 3.0)

    def by_name(x: Any) -> Any:
        return brentq(lambda t: np.exp(t) - x, -3.0, 3.0)

    np.testing.assert_allclose(ft.grad(by_module)(2.0), 0.5)
    np.testing.assert_allclose(ft.grad(by_name)(2.0), 0.5)


def _refined(x: Any, method: str = "BFGS", is_pair: bool = False) -> Any:
    """The minimum of a function that decides, fills an array and uses an object."""

    class Model:
        scale = x[1]

        def cost(self, u: Any) -> Any:
            parts = np.zeros(3)
            parts[0] = (u[0] - x[0]) ** 2
            parts[1] = 3.0 * (u[1] - u[0] * self.scale) ** 2
            parts[2] = 0.1 * u[1] ** 4 if u[1] > 0 else 0.2 * u[1] ** 4
            return parts.sum()

        def slope(self, u: Any) -> Any:
            rest = u[1] - u[0] * self.scale
            bend = 0.4 * u[1] ** 3 if u[1] > 0 else 0.8 * u[1] ** 3
            return np.array([2 * (u[0] - x[0]) - 6 * self.scale * rest, 6 * rest + bend])

        def both(self, u: Any) -> Any:
            return self.cost(u), self.slope(u)

    model = Model()
    options = {"gtol": 1e-10} if method in ("BFGS", "CG", "L-BFGS-B") else {}
    fun = model.both if is_pair else model.cost
    found = minimize(
        fun, [0.3, 0.2], jac=True if is_pair else model.slope, method=method, tol=1e-11,
        options=options,
    )  # fmt: skip
    return np.concatenate([found.x, [found.fun]])


def _fsolve_of(x: Any) -> Any:
    return fsolve(
        lambda u, a: [u[0] ** 2 + a * u[1] - 2.0, u[1] - x[0] * u[0]],
        [1.0, 1.0],
        (x[1],),
        xtol=1e-13,
    )


def _root_of(x: Any, method: str = "hybr") -> Any:
    def equations(u: Any) -> Any:
        out = np.empty((2,))
        out[0] = u[0] ** 2 + x[1] * u[1] - 2.0
        out[1] = u[1] - x[0] * u[0] if u[0] > 0 else u[1] + x[0] * u[0]
        return out

    found = root(equations, x * 0 + 1.0, method=method, tol=1e-13)
    return np.append(found.x, found.fun * 1e6)


def _root_with_jacobian(x: Any) -> Any:
    def equations(u: Any) -> Any:
        return np.array([u[0] ** 2 + x[1] * u[1] - 2.0, u[1] - x[0] * u[0]])

    return root(equations, [[1.0], [1.0]][0] * 2, tol=1e-13, jac=lambda u: np.array(
        [[2 * u[0], x[1]], [-x[0], 1.0]])).x  # fmt: skip


LATER: dict[str, Callable[[Any], Any]] = {
    "fsolve": _fsolve_of,
    "root": _root_of,
    "root by Levenberg": functools.partial(_root_of, method="lm"),
    "root with Jacobian": _root_with_jacobian,
    "BFGS": _refined,
    "CG": functools.partial(_refined, method="CG"),
    "L-BFGS-B": functools.partial(_refined, method="L-BFGS-B"),
    "BFGS of pairs": functools.partial(_refined, is_pair=True),
}


@pytest.mark.parametrize("name", LATER)
def test_solvers_are_called_by_programs_where_values_are_not_known(name: str) -> None:
    f = LATER[name]
    expected, slope = f(POINT), differences(f, POINT)
    rough = 1e-5 if name in ("CG", "L-BFGS-B") else 1e-7
    np.testing.assert_allclose(ft.jit(f)(POINT), expected, rough, 1e-6)
    for run in (ft.jit(ft.jacfwd(f)), ft.jit(ft.jacrev(f)), ft.jacfwd(ft.jit(f))):
        np.testing.assert_allclose(run(POINT), slope, 1e-4, 1e-5)
    points = np.stack([POINT, POINT + 0.1])
    np.testing.assert_allclose(ft.vmap(f)(points), [f(x) for x in points], rough, 1e-6)
    found = ft.jit(ft.jacfwd(ft.jacrev(f)))(POINT)
    np.testing.assert_allclose(found, ft.jacfwd(ft.jacrev(f))(POINT), 1e-3, 1e-4)
    other = POINT + 0.2  # the same program
    np.testing.assert_allclose(ft.jit(f)(other), f(other), rough, 1e-6)


@pytest.mark.parametrize(
    "options",
    [{"bounds": [(0, 1), (0, 1)]}, {"constraints": {"type": "eq", "fun": lambda u: u[0]}},
     {"callback": print}],
)  # fmt: skip
def test_options_that_programs_do_not_have_are_refused(options: Any) -> None:
    def f(x: Any) -> Any:
        return minimize(lambda u: np.sum((u - x) ** 2), [0.1, 0.2], **options).x

    with pytest.raises(UnsupportedOperationError, match="where values are not known"):
        ft.jit(f)(POINT)


def test_what_the_solver_found_out_is_not_known_to_a_program() -> None:
    def f(x: Any) -> Any:
        found = root(lambda u: u**3 - x, [1.0, 1.0])
        if not found.success:
            raise RuntimeError(found.message)
        return found.x

    with pytest.raises(UnsupportedOperationError, match="success"):
        ft.jit(f)(POINT)
