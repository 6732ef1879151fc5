"""Functions for SciPy's solvers, and SciPy's solvers with exact derivatives."""

import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, OptimizeWarning

import functrans as ft
from functrans.errors import ConcretizationError, ShapeError, UnsupportedOperationError
from functrans.scipy.optimize import (
    ScipyFunction,
    as_scipy,
    curve_fit,
    least_squares,
    minimize,
    minimize_scalar,
    root,
    root_scalar,
    rosen,
)
from problems import CUTEST, MGH, Problem
from problems import cutest as functions

START = np.array([-1.2, 1.0, 0.5])


# as_scipy ---------------------------------------------------------------------------------------


def test_values_and_derivatives_are_those_of_scipy() -> None:
    f = as_scipy(rosen, START)
    assert f.fun(START) == pytest.approx(scipy.optimize.rosen(START), rel=1e-14)
    np.testing.assert_allclose(f.jac(START), scipy.optimize.rosen_der(START), rtol=1e-13)
    np.testing.assert_allclose(f.hess(START), scipy.optimize.rosen_hess(START), rtol=1e-13)
    p = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(f.hessp(START, p), scipy.optimize.rosen_hess(START) @ p, rtol=1e-13)
    value, gradient = f.fun_and_jac(START)
    assert value == f.fun(START)
    np.testing.assert_array_equal(gradient, f.jac(START))


def test_nothing_is_computed_twice_at_a_point() -> None:
    f = as_scipy(rosen, START)
    for _ in range(3):
        f.fun(START), f.jac(START), f.hess(START), f.hessp(START, START)
    assert (f.nfev, f.njev, f.nhev) == (2, 1, 2)  # the first value came before the first gradient
    for k in range(4):
        f.fun(START + k + 1), f.jac(START + k + 1)
    assert (f.nfev, f.njev) == (6, 5)  # with the value from then on
    f.jac(START)
    assert f.njev == 6  # only the last points are remembered


def test_vectors_are_not_differentiated_before_they_are_asked() -> None:
    f = as_scipy(lambda x: x**2, START)
    f.jac(START), f.fun(START), f.fun(START + 1), f.fun(START + 2)
    assert (f.nfev, f.njev) == (3, 1)


def test_results_are_new_float64_arrays() -> None:
    f = as_scipy(lambda x: {"a": x["u"] ** 2, "b": x["s"]}, {"u": np.ones(2, np.float32), "s": 1.0})
    for compute in (f.fun, f.jac):
        first = compute(f.x0)
        assert first.dtype == np.float64
        assert first.flags.writeable
        first[:] = np.nan
        assert np.isfinite(compute(f.x0)).all()
    g = as_scipy(rosen, START)
    for compute in (g.jac, g.hess, lambda x: g.hessp(x, x)):
        compute(START)[:] = np.nan
        assert np.isfinite(compute(START)).all()
    fixed = START.copy()
    fixed.flags.writeable = False
    assert g.fun(fixed) == g.fun(START)


def test_pytrees_are_vectors() -> None:
    x0 = {"w": np.arange(4.0).reshape(2, 2), "b": np.float32(1.5)}
    f = as_scipy(lambda x: np.sum(x["w"] ** 2) + 3 * x["b"], x0)
    np.testing.assert_array_equal(f.x0, [1.5, 0, 1, 2, 3])
    np.testing.assert_array_equal(f.jac(f.x0), [3, 0, 2, 4, 6])
    back = f.unravel(f.x0)
    assert back["w"].shape == (2, 2)
    assert back["b"].dtype == np.float32
    np.testing.assert_array_equal(f.ravel(back), f.x0)


def test_weighted_hessians_of_several_results() -> None:
    f = as_scipy(lambda x: np.stack([x[0] ** 2 * x[1], np.sin(x[1])]), np.ones(2))
    x, v = np.array([2.0, 0.5]), np.array([3.0, -1.0])
    expected = [[3 * 2 * 0.5, 3 * 2 * 2.0], [3 * 2 * 2.0, np.sin(0.5)]]
    np.testing.assert_allclose(f.hess(x, v), expected, rtol=1e-13)
    np.testing.assert_allclose(f.hess(x, 2 * v), 2 * np.array(expected), rtol=1e-13)
    with pytest.raises(TypeError, match="needs weights"):
        f.hess(x)
    with pytest.raises(TypeError, match="scalar functions"):
        f.hessp(x, x)


def test_sparse_derivatives_are_sparse() -> None:
    f = as_scipy(lambda x: x[1:] - x[:-1] ** 2, np.ones(6), sparse=True)
    dense = as_scipy(lambda x: x[1:] - x[:-1] ** 2, np.ones(6))
    x = np.arange(6.0)
    assert f.jac(x).nnz == 10
    np.testing.assert_array_equal(f.jac(x).toarray(), dense.jac(x))
    v = np.arange(5.0)
    np.testing.assert_array_equal(f.hess(x, v).toarray(), dense.hess(x, v))
    g = as_scipy(rosen, x, sparse=True)
    np.testing.assert_allclose(g.hess(x).toarray(), scipy.optimize.rosen_hess(x), rtol=1e-13)


def test_functions_that_see_values_need_jit_off() -> None:
    def f(x: Any) -> Any:
        return x[0] ** 2 if x[0] > 0 else -x[0]

    with pytest.raises(ConcretizationError) as caught:
        as_scipy(f, np.ones(1)).fun(np.ones(1))
    assert "jit=False" in str(caught.value)
    g = as_scipy(f, np.ones(1), jit=False)
    assert (g.fun([3.0]), g.jac([3.0])[0], g.fun([-2.0]), g.jac([-2.0])[0]) == (9.0, 6.0, 2.0, -1.0)


def test_functions_may_use_their_memory_again() -> None:
    buffer = np.zeros(2)

    def f(x: Any) -> Any:
        buffer[:] = x**2
        return buffer

    g = as_scipy(f, np.ones(2), jit=False)
    g.fun([1.0, 2.0]), g.fun([3.0, 4.0])
    np.testing.assert_array_equal(g.fun([1.0, 2.0]), [1.0, 4.0])
    assert g.nfev == 2


def test_threads_may_share_it() -> None:
    f = as_scipy(rosen, START)
    f.jac(START)
    points = [START + k for k in range(3)]
    found: list[Any] = []

    def work() -> None:
        found.extend((k, f.fun(x), f.jac(x)) for _ in range(20) for k, x in enumerate(points))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 240
    for k, value, gradient in found:
        assert value == pytest.approx(scipy.optimize.rosen(points[k]))
        np.testing.assert_allclose(gradient, scipy.optimize.rosen_der(points[k]))
    assert f.nfev == 4


def test_it_pickles() -> None:
    f = pickle.loads(pickle.dumps(as_scipy(rosen, START, cache_size=2)))
    assert isinstance(f, ScipyFunction)
    assert f.fun(START) == pytest.approx(scipy.optimize.rosen(START))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: as_scipy(rosen, START + 0j), TypeError, "x0 is complex"),
        (lambda: as_scipy(rosen, {"a": np.arange(3)}), TypeError, r"x0\['a'\] has dtype int64"),
        (lambda: as_scipy(lambda x: x * 1j, START).fun(START), TypeError, "real results"),
        (lambda: as_scipy(lambda x: x[0] * 1j, START).jac(START), TypeError, "real results"),
        (lambda: as_scipy(rosen, START).fun(START[:2]), ShapeError, "3 numbers"),
        (lambda: as_scipy(rosen, START).fun(START * 1j), TypeError, "real vector"),
        (lambda: as_scipy(None, START), TypeError, "expected a function"),
        (lambda: as_scipy(rosen, START, cache_size=0), ValueError, "cache_size"),
    ],
)
def test_wrong_functions_and_points(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# minimize ---------------------------------------------------------------------------------------

METHODS = (
    "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "trust-ncg", "trust-krylov",
    "trust-exact", "trust-constr", "Nelder-Mead",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gets_what_it_uses(method: str) -> None:
    x0 = {"a": np.array([-1.2, 1.0]), "b": np.array(0.8)}

    def fun(x: Any, scale: Any) -> Any:
        return scale * (rosen(x["a"]) + (x["b"] - x["a"][0]) ** 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)
        name = "maxfun" if method == "TNC" else "maxiter"
        result = minimize(fun, x0, (2.0,), method, options={name: 1000})
    assert result.success
    assert result.x["b"].shape == ()
    np.testing.assert_allclose(result.x["a"], 1, atol=1e-3)
    np.testing.assert_allclose(result.x["b"], 1, atol=1e-3)


@pytest.mark.parametrize("x0", [(1.5, 0.5), (1, 0), [1, 0], np.array([1, 0])], ids=repr)
def test_numbers_are_vectors_as_in_scipy(x0: Any) -> None:
    def distance(x: Any) -> Any:
        return np.sum((x - np.array([1.0, 2.5])) ** 2)

    result = minimize(distance, x0, bounds=((0.0, 2.0), (0.0, 2.0)))
    np.testing.assert_allclose(result.x, [1, 2], atol=1e-6)
    np.testing.assert_allclose(root(lambda x: x**2 - 2, x0).x ** 2, 2, rtol=1e-6)
    bounds = ((0.0, 0.0), (5.0, 2.0))
    found = least_squares(lambda x: x - np.array([1.0, 2.5]), x0, bounds=bounds).x
    np.testing.assert_allclose(found, [1, 2], atol=1e-6)


def test_objectives_may_return_one_element() -> None:
    for shape in ((), (1,), (1, 1)):
        result = minimize(lambda x, shape=shape: np.reshape(np.sum((x - 1) ** 2), shape), [0.0])
        np.testing.assert_allclose(result.x, [1], atol=1e-6)
        assert result.x.shape == (1,)


def test_the_only_argument_needs_no_tuple() -> None:
    def shifted(x: Any, a: Any) -> Any:
        return x - a

    a = np.array([3.0, 4.0])
    np.testing.assert_allclose(root(shifted, [0.0, 0.0], a).x, a)
    np.testing.assert_allclose(
        minimize(lambda x, a: np.sum((x - a) ** 2), a * 0, a).x, a, rtol=1e-6
    )
    assert root_scalar(shifted, 3.0, x0=1.0).root == pytest.approx(3)
    assert minimize_scalar(lambda x, a: (x - a) ** 2, args=3.0).x == pytest.approx(3)
    limit = {"type": "ineq", "fun": lambda x, most: most - np.sum(x), "args": 1.0}
    result = minimize(lambda x: np.sum((x - 1) ** 2), np.zeros(2), constraints=limit)
    np.testing.assert_allclose(result.x, 0.5, rtol=1e-6)


def test_models_may_be_constant() -> None:
    t, y = np.arange(5.0), np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    assert curve_fit(lambda t, a: a, t, t)[0] == pytest.approx(2)
    assert curve_fit(lambda t, a: a, t, y, nan_policy="omit")[0] == pytest.approx(3)


def test_exact_derivatives_save_evaluations() -> None:
    theirs = scipy.optimize.minimize(rosen, START)
    ours = minimize(rosen, START)
    assert ours.nfev < theirs.nfev / 3
    assert ours.nit == pytest.approx(theirs.nit, abs=5)


def test_many_unknowns_get_products() -> None:
    result = minimize(functions.engval1, np.full(300, 2.0), method="trust-krylov")
    assert result.success
    assert not hasattr(result, "hess") or result.hess is None or result.x.size == 300
    sparse = minimize(functions.engval1, np.full(300, 2.0), method="trust-constr", sparse=True)
    np.testing.assert_allclose(sparse.fun, result.fun, rtol=1e-8)


def test_derivatives_of_the_caller_are_used() -> None:
    calls = []

    def jac(x: Any) -> Any:
        calls.append(x)
        return {"a": 2 * x["a"]}

    result = minimize(lambda x: np.sum(x["a"] ** 2), {"a": np.ones(2)}, jac=jac, method="BFGS")
    assert calls
    np.testing.assert_allclose(result.x["a"], 0, atol=1e-6)
    both = minimize(lambda x: (np.sum(x**2), 2 * x), np.ones(2), jac=True, jit=False)
    np.testing.assert_allclose(both.x, 0, atol=1e-6)
    differences = minimize(rosen, START, jac="2-point", method="BFGS")
    assert differences.nfev > 3 * differences.njev


def test_bounds_may_be_pytrees() -> None:
    x0 = {"a": np.full(2, 0.5), "b": np.array(0.5)}
    low, high = {"a": np.zeros(2), "b": 0.25}, {"a": np.array([1.0, 2.0]), "b": np.inf}

    def fun(x: Any) -> Any:
        return np.sum((x["a"] - 3) ** 2) + x["b"] ** 2

    result = minimize(fun, x0, bounds=(low, high))
    np.testing.assert_allclose(result.x["a"], [1, 2])
    np.testing.assert_allclose(result.x["b"], 0.25)
    flat = minimize(lambda x: np.sum((x - 3) ** 2), np.zeros(2), bounds=[(0, 1), (None, None)])
    np.testing.assert_allclose(flat.x, [1, 3], atol=1e-6)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_get_exact_derivatives(method: str) -> None:
    def on_circle(x: Any) -> Any:
        return x["p"][0] ** 2 + x["p"][1] ** 2

    x0 = {"p": np.array([1.0, 0.2])}
    constraints: Any = [NonlinearConstraint(on_circle, 1.0, 1.0), LinearConstraint([[1.0, 0.0]], 0)]
    result = minimize(lambda x: x["p"][0] + 2 * x["p"][1], x0, method=method,
                      constraints=constraints)  # fmt: skip
    np.testing.assert_allclose(result.x["p"], [0, -1], atol=1e-4)


def test_constraints_of_the_old_kind() -> None:
    constraint = {"type": "eq", "fun": lambda x, r: np.sum(x**2) - r, "args": (2.0,)}
    result = minimize(lambda x: np.sum(x), np.array([1.0, 0.5]), constraints=constraint)
    np.testing.assert_allclose(result.x, [-1, -1], atol=1e-5)


def test_prepared_constraints_are_scipys() -> None:
    f = as_scipy(rosen, np.array([0.5, 0.5]))
    c = as_scipy(lambda x: np.stack([x[0] ** 2 + x[1] ** 2, x[0] * x[1]]), f.x0, sparse=True)
    result = scipy.optimize.minimize(
        f.fun, f.x0, jac=f.jac, hess=f.hess, method="trust-constr",
        constraints=c.constraint([-np.inf, 0.1], [1.0, np.inf]), bounds=Bounds(0, 1),
        options={"gtol": 1e-10},
    )  # fmt: skip
    np.testing.assert_allclose(np.sum(result.x**2), 1, atol=1e-5)
    np.testing.assert_allclose(result.x, [0.78641515, 0.61769831], atol=1e-5)


def test_callbacks_get_pytrees() -> None:
    seen: list[Any] = []
    minimize(lambda x: np.sum(x["a"] ** 2), {"a": np.ones(2)}, callback=lambda x: seen.append(x))
    assert seen
    assert seen[0]["a"].shape == (2,)

    def by_result(intermediate_result: Any) -> None:
        seen.append(intermediate_result.x)

    count = len(seen)
    minimize(lambda x: np.sum(x["a"] ** 2), {"a": np.ones(2)}, callback=by_result)
    assert len(seen) > count
    assert seen[-1]["a"].shape == (2,)


def test_results_that_have_not_converged_are_flagged_and_warned_of() -> None:
    with pytest.warns(OptimizeWarning, match="minimize: not converged") as caught:
        result = minimize(rosen, START, options={"maxiter": 2})
    assert not result.success
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(OptimizeWarning, match="root: not converged"):
        assert not root(lambda x: x**2 + 1, np.ones(1)).success
    sentence = r"least_squares: not converged: .*[^.]\. The result has"
    with pytest.warns(OptimizeWarning, match=sentence):
        assert not least_squares(lambda x: rosen(x) + x, START, max_nfev=1).success


TRACED = {
    "minimize": lambda a: minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2)).x,
    "start": lambda a: minimize(lambda x: np.sum(x**2), a * np.ones(2)).x,
    "arguments": lambda a: minimize(lambda x, a: np.sum((x - a) ** 2), np.zeros(2), (a,)).x,
    "root": lambda a: root(lambda x: x - a, np.zeros(2)).x,
    "root_scalar": lambda a: root_scalar(lambda x: x - a, x0=0.0).root,
    "minimize_scalar": lambda a: minimize_scalar(lambda x: (x - a) ** 2).x,
    "least_squares": lambda a: least_squares(lambda x: x - a, np.zeros(2)).x,
    "curve_fit": lambda a: curve_fit(lambda t, p: p * t * a, np.ones(3), np.ones(3))[0],
    "as_scipy": lambda a: as_scipy(lambda x: x - a, np.zeros(2)).fun(np.zeros(2)),
}


@pytest.mark.parametrize("transform", [ft.jit, ft.jacobian], ids=["jit", "jacobian"])
@pytest.mark.parametrize("call", TRACED.values(), ids=TRACED)
def test_traced_values_are_refused(call: Any, transform: Any) -> None:
    with pytest.raises(UnsupportedOperationError, match="minimize_bfgs") as caught:
        transform(call)(1.5)
    assert "ft.implicit_diff" in str(caught.value)


# roots ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov"])
def test_roots_of_systems(method: str) -> None:
    def fun(x: Any, c: Any) -> Any:
        return {"u": x["u"] ** 3 + x["v"] - c, "v": x["v"] - np.sin(x["u"][0])}

    x0 = {"u": np.array([1.0, 0.5]), "v": np.array(0.5)}
    result = root(fun, x0, (2.0,), method)
    assert result.success
    residual = fun(result.x, 2.0)
    np.testing.assert_allclose(residual["u"], 0, atol=1e-5)
    np.testing.assert_allclose(residual["v"], 0, atol=1e-5)


def test_jacobians_of_roots_are_given_by_the_caller_too() -> None:
    result = root(lambda x: (x**2 - 2, np.diag(2 * x)), np.ones(2), jac=True, jit=False)
    np.testing.assert_allclose(result.x, np.sqrt(2))
    result = root(lambda x: x**2 - 2, np.ones(2), jac=lambda x: np.diag(2 * x))
    np.testing.assert_allclose(result.x, np.sqrt(2))


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ({"x0": 1.0}, "newton"),
        ({"x0": 1.0, "method": "halley"}, "halley"),
        ({"bracket": (0.0, 2.0)}, "brentq"),
        ({"x0": 1.0, "x1": 2.0}, "secant"),
        ({"x0": 1.0, "fprime": lambda x, c: 3 * x**2}, "newton"),
    ],
)
def test_roots_of_one_number(options: Any, method: str) -> None:
    result = root_scalar(lambda x, c: x**3 - c, (2.0,), **options)
    assert result.converged
    assert result.method == method
    assert float(result.root) == pytest.approx(2 ** (1 / 3), rel=1e-10)


def test_minima_of_one_number() -> None:
    result = minimize_scalar(lambda x, c: (x - c) ** 2, bounds=(0, 5), args=(2.0,))
    assert float(result.x) == pytest.approx(2.0, abs=1e-5)


# fits -------------------------------------------------------------------------------------------

T = np.linspace(0, 4, 25)
Y = 2.5 * np.exp(-1.3 * T) + 0.5


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method: str) -> None:
    def residuals(p: Any, y: Any, *, t: Any) -> Any:
        return p["a"] * np.exp(-p["k"] * t) + p["c"] - y

    start = {"a": 1.0, "k": 1.0, "c": 0.0}
    result = least_squares(residuals, start, method=method, args=(Y,), kwargs={"t": T})
    assert result.success
    np.testing.assert_allclose([result.x[k] for k in "akc"], [2.5, 1.3, 0.5], rtol=1e-8)
    assert result.jac.shape == (25, 3)
    differences = least_squares(
        residuals, start, jac="2-point", method="lm", args=(Y,), kwargs={"t": T}
    )
    assert differences.success


def test_sparse_least_squares() -> None:
    n = 50
    result = least_squares(lambda x: np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]]),
                           np.full(n, 0.5), sparse=True, tr_solver="lsmr")  # fmt: skip
    assert result.success
    assert result.jac.nnz == 3 * (n - 1)
    np.testing.assert_allclose(result.x, 1, atol=1e-5)


def test_curve_fit_is_scipys() -> None:
    def model(t: Any, a: Any, k: Any, c: Any) -> Any:
        return a * np.exp(-k * t) + c

    noisy = Y + 0.01 * np.sin(37 * T)
    for options in ({}, {"p0": [1, 1, 0]}, {"bounds": (0, [5, 5, 5])}, {"sigma": 1 + T}):
        theirs = scipy.optimize.curve_fit(model, T, noisy, **options)
        ours = curve_fit(model, T, noisy, **options)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-3)
    full = curve_fit(model, T, noisy, full_output=True)
    assert len(full) == 5
    with_nan = np.where(np.arange(25) == 3, np.nan, noisy)
    omitted = curve_fit(model, T, with_nan, nan_policy="omit", check_finite=False)
    np.testing.assert_allclose(omitted[0], curve_fit(model, T, noisy)[0], rtol=2e-2)
    with pytest.raises(TypeError, match="p0 is complex"):
        curve_fit(model, T, noisy, p0=[1j, 1, 1])


# test problems ----------------------------------------------------------------------------------

ALL = [pytest.param(p, id=p.name.replace(" ", "_")) for p in (*MGH, *CUTEST)]


@pytest.mark.parametrize("problem", ALL)
def test_problems_have_their_minima(problem: Problem) -> None:
    f = as_scipy(problem.objective, problem.start)
    step = 1e-6 * (1 + np.abs(problem.start))
    direction = np.cos(np.arange(problem.n)) * step
    ahead, behind = f.fun(problem.start + direction), f.fun(problem.start - direction)
    slope = float(f.jac(problem.start) @ direction)
    scale = np.abs(f.jac(problem.start)) @ np.abs(direction)
    rounding = 1e-15 * (abs(ahead) + abs(behind))
    assert (ahead - behind) / 2 == pytest.approx(slope, abs=1e-4 * scale + rounding)
    if problem.minimizer is not None:
        at_minimum = f.fun(problem.minimizer)
        assert abs(at_minimum - problem.minima[0]) < 1e-12 * max(1, abs(at_minimum))
    with np.errstate(all="ignore"):  # first steps of some are much too long
        result = scipy.optimize.minimize(
            f.fun, f.x0, jac=f.jac, hess=f.hess, method="trust-exact",
            options={"maxiter": 2000, "gtol": 1e-8},
        )  # fmt: skip
    assert problem.gap(result.fun) < 1e-7


@pytest.mark.parametrize(
    ("objective", "start", "published"),
    [
        (functions.bdqrtic, np.ones(100), 378.769),
        (functions.engval1, np.full(100, 2.0), 109.09),
        (functions.edensch, np.full(36, 8.0), 219.28),
    ],
)
def test_published_minima_of_other_sizes(objective: Any, start: Any, published: float) -> None:
    result = minimize(objective, start, method="trust-krylov")
    assert float(result.fun) == pytest.approx(published, rel=1e-4)


def total(x: Any) -> Any:
    return np.sum((x - 2.0) ** 2)


TRACED_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "bounds as pairs": lambda b: minimize(total, np.zeros(2), bounds=[(0, b), (0, b)]),
    "bounds": lambda b: minimize(total, np.zeros(2), bounds=Bounds(0, b)),
    "tol": lambda b: minimize(total, np.zeros(2), tol=b),
    "options": lambda b: minimize(total, np.zeros(2), options={"gtol": b}),
    "a constraint": lambda b: minimize(
        total, np.zeros(2), constraints={"type": "eq", "fun": lambda x: x[0] - b}
    ),
    "a gradient": lambda b: minimize(total, np.zeros(2), jac=lambda x: b * x),
    "bounds of one number": lambda b: minimize_scalar(total, bounds=(0, b), method="bounded"),
    "tol of root": lambda b: root(lambda x: x - 1, np.zeros(2), tol=b),
    "bracket": lambda b: root_scalar(lambda x: x - 0.5, bracket=(0, b)),
    "xtol": lambda b: root_scalar(lambda x: x - 0.5, bracket=(0, 1), xtol=b),
    "bounds of residuals": lambda b: least_squares(lambda x: x - 2, np.zeros(2), bounds=(0, b)),
    "bounds of a fit": lambda b: curve_fit(
        lambda t, a: a * t, np.arange(3.0), np.arange(3.0), bounds=(0, b)
    ),
}


@pytest.mark.parametrize("name", TRACED_OPTIONS)
@pytest.mark.parametrize("transform", [ft.grad, ft.jit])
def test_traced_options_are_refused_once_with_what_can_be_done(name: str, transform: Any) -> None:
    with pytest.raises(UnsupportedOperationError) as caught:
        transform(TRACED_OPTIONS[name])(1.5)
    text = str(caught.value)
    assert "implicit_diff" in text
    assert "test_optimize.py" in text
    assert "in its place" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
