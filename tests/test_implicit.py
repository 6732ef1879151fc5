"""Derivatives by implicit functions, and the solvers that they come from."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

import functrans as ft
from functrans import lax
from functrans.errors import (
    ConvergenceError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)
from functrans.scipy.optimize import bisect, brentq, newton
from functrans.scipy.sparse.linalg import bicgstab, cg, gmres
from functrans.testing import check_grads

WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "jit": ft.jit,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def cubic(x: Any, a: Any) -> Any:
    return x**3 + a * x - 2.0


def newton_loop(x: Any, a: Any) -> Any:
    return lax.while_loop(
        lambda x: np.max(np.abs(cubic(x, a))) > 1e-14,
        lambda x: x - cubic(x, a) / (3 * x**2 + a),
        x,
    )


def newton_python(f: Callable[[Any], Any], x: Any) -> Any:
    for _ in range(60):
        x = x - f(x) / ft.grad(f)(x)
    return x


def brent(a: Any) -> float:
    return float(scipy.optimize.brentq(lambda x: x**3 + a * x - 2.0, -5.0, 5.0, xtol=1e-14))


def dense(matvec: Callable[[Any], Any], b: Any) -> Any:
    return np.linalg.solve(ft.vmap(matvec, out_axes=1)(np.eye(len(b))), b)


# custom_root ------------------------------------------------------------------------------------


def root_of(solve: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda a: ft.custom_root(lambda x: cubic(x, a), 1.0, solve, lambda g, y: y / g(1.0))


def test_custom_root_has_derivatives_of_third_order() -> None:
    check_grads(root_of(newton_python), (1.3,), order=3)


def test_custom_root_under_jit() -> None:
    def newton(f: Any, x: Any) -> Any:
        return lax.fori_loop(0, 60, lambda i, x: x - f(x) / ft.grad(f)(x), x)

    check_grads(ft.jit(root_of(newton)), (1.3,))


def test_custom_root_under_vmap() -> None:
    check_grads(ft.vmap(root_of(newton_python)), (np.array([0.7, 1.3]),), order=1)


def test_custom_root_takes_solvers_that_need_values() -> None:
    check_grads(
        root_of(lambda f, x: scipy.optimize.brentq(lambda t: float(f(t)), -5, 5, xtol=1e-14)),
        (1.3,),
    )


@ways
def test_custom_root_of_a_system(way: Any, rng: np.random.Generator) -> None:
    def root(A: Any, b: Any) -> Any:
        def solve(f: Any, x: Any) -> Any:
            for _ in range(12):
                x = x - dense(lambda v, x=x: ft.jvp(f, (x,), (v,))[1], f(x))
            return x

        def tangent_solve(g: Any, y: Any) -> Any:
            return ft.custom_linear_solve(g, y, dense, dense)

        return ft.custom_root(lambda x: A @ x + 0.1 * x**3 - b, 0.0 * b, solve, tangent_solve)

    A, b = rng.standard_normal((3, 3)) + 4 * np.eye(3), rng.standard_normal(3)
    check_grads(way(root), (A, b), order=1 if way is ft.jit else 2)


def test_custom_root_passes_aux_through() -> None:
    def root(a: Any) -> Any:
        return ft.custom_root(
            lambda x: cubic(x, a), 1.0, lambda f, x: (newton_python(f, x), {"steps": 60}),
            lambda g, y: y / g(1.0), has_aux=True,
        )  # fmt: skip

    gradient, aux = ft.grad(root, has_aux=True)(1.3)
    np.testing.assert_allclose(gradient, ft.grad(root_of(newton_python))(1.3), rtol=1e-14)
    assert aux["steps"] == 60


def test_custom_root_does_not_depend_on_the_guess() -> None:
    def root(x0: Any) -> Any:
        return ft.custom_root(lambda x: cubic(x, 1.0), x0, newton_python, lambda g, y: y / g(1.0))

    assert ft.grad(root)(1.5) == 0.0


@pytest.mark.parametrize(
    ("f", "guess", "solve", "error", "message"),
    [
        (lambda x: (x, x), 1.0, newton_python, TreeMismatchError, "the result of f"),
        (lambda x: np.stack([x, x]), 1.0, newton_python, ShapeError, r"f64\[2\]"),
        (lambda x: x, 1, newton_python, TypeError, "initial_guess is i64"),
        (lambda x: x, 1.0, lambda f, x: (x, 1), TreeMismatchError, "the result of solve"),
        (lambda x: x, 1.0, lambda f, x: np.ones(2), ShapeError, "the result of solve"),
        (lambda x: x, 1.0, None, TypeError, "solve: expected a function"),
    ],
)
def test_custom_root_refuses(f: Any, guess: Any, solve: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ft.custom_root(f, guess, solve, lambda g, y: y)


# custom_linear_solve ----------------------------------------------------------------------------


def test_custom_linear_solve_takes_pytrees_and_aux(rng: np.random.Generator) -> None:
    A, b = rng.standard_normal((3, 3)) + 4 * np.eye(3), rng.standard_normal(3)

    def solve(matvec: Any, b: Any) -> Any:
        x = dense(lambda v: matvec({"u": v})["u"], b["u"])
        return {"u": x}, np.sum(b["u"])

    def solved(A: Any, b: Any) -> Any:
        return ft.custom_linear_solve(
            lambda x: {"u": A @ x["u"]}, {"u": b}, solve, solve, has_aux=True
        )

    x, aux = solved(A, b)
    np.testing.assert_allclose(x["u"], np.linalg.solve(A, b), rtol=1e-12)
    np.testing.assert_allclose(aux, np.sum(b))
    check_grads(lambda A, b: solved(A, b)[0]["u"], (A, b))


def test_custom_linear_solve_transposes_with_the_transposed_matrix() -> None:
    A = np.array([[2.0, 1.0], [0.0, 4.0]])
    solve = ft.linear_transpose(
        lambda b: ft.custom_linear_solve(lambda x: A @ x, b, dense, dense), np.ones(2)
    )
    np.testing.assert_allclose(solve(np.array([1.0, 2.0]))[0], np.linalg.solve(A.T, [1.0, 2.0]))


def test_custom_linear_solve_without_transpose_has_forward_mode_only() -> None:
    def solved(b: Any) -> Any:
        return ft.custom_linear_solve(lambda x: 2.0 * x, b, lambda matvec, b: b / 2.0)

    np.testing.assert_array_equal(ft.jvp(solved, (np.ones(2),), (np.ones(2),))[1], [0.5, 0.5])
    with pytest.raises(TypeError, match="reverse mode needs transpose_solve"):
        ft.grad(lambda b: solved(b).sum())(np.ones(2))


@pytest.mark.parametrize(
    ("matvec", "b", "solve", "error", "message"),
    [
        (lambda x: x, np.ones(2, int), lambda f, b: b, TypeError, "b is i64"),
        (lambda x: x[:1], np.ones(2), lambda f, b: b, ShapeError, "must be square"),
        (lambda x: (x, x), np.ones(2), lambda f, b: b, TreeMismatchError, "matvec"),
        (lambda x: x, np.ones(2), lambda f, b: b[0], ShapeError, "solve: result is"),
        (lambda x: x, np.ones(2), lambda f, b: (b, b), TreeMismatchError, "the solution"),
    ],
)
def test_custom_linear_solve_refuses(
    matvec: Any, b: Any, solve: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        ft.custom_linear_solve(matvec, b, solve)


# implicit_diff ----------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("is_traced", [False, True])
def test_implicit_and_unrolled_derivatives_agree(way: Any, is_traced: bool) -> None:
    def by_scipy(x: Any, a: Any) -> Any:
        return np.array([brent(v) for v in a])

    implicit = ft.implicit_diff(cubic, traceable=is_traced)(newton_loop if is_traced else by_scipy)
    x0, a = np.ones(2), np.array([1.3, 0.7])
    unrolled = ft.jacrev(newton_loop, 1)(x0, a)
    found = ft.jacrev(way(implicit), 1)(x0, a)
    np.testing.assert_allclose(found, unrolled, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ft.jacfwd(way(implicit), 1)(x0, a), unrolled, rtol=0, atol=1e-10)


def ridge_objective(w: Any, theta: Any, X: Any, y: Any) -> Any:
    misfit = X @ w["a"] + w["b"] - y
    penalty = theta * np.sum(w["a"] ** 2) + 0.1 * np.sum(w["a"] ** 4)
    return np.sum(misfit**2) / 2 + penalty + w["b"] ** 4


def ridge(w0: Any, theta: Any, X: Any, y: Any) -> Any:
    flat, unravel = ft.flatten_util.ravel_pytree(w0)

    def objective(v: Any) -> Any:
        return ridge_objective(unravel(v), theta, X, y)

    result = scipy.optimize.minimize(
        objective, flat, jac=ft.grad(objective), hess=ft.hessian(objective), method="trust-exact",
        options={"gtol": 1e-12},
    )  # fmt: skip
    return unravel(result.x - np.linalg.solve(ft.hessian(objective)(result.x), result.jac))


W0 = {"a": np.zeros(3), "b": np.zeros(())}


@pytest.mark.parametrize("solve", ["auto", "dense", "cg", "gmres", "bicgstab", "own"])
def test_linear_solvers_of_implicit_derivatives(solve: Any, rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((10, 3)), rng.standard_normal(10)
    if solve == "own":

        def solve(matvec: Any, b: Any) -> Any:
            return cg(matvec, b, tol=1e-13)[0]

    fit = ft.implicit_diff(ft.grad(ridge_objective), solve=solve, symmetric=True)(ridge)
    check_grads(lambda theta, X: fit(W0, theta, X, y), (1.3, X), order=2)


@ways
def test_implicit_derivatives_with_unsymmetric_systems(way: Any, rng: np.random.Generator) -> None:
    A = rng.standard_normal((4, 4)) + 5 * np.eye(4)

    def condition(x: Any, A: Any, b: Any) -> Any:
        return A @ x + np.sin(x) - b

    def solver(x: Any, A: Any, b: Any) -> Any:
        return scipy.optimize.root(lambda x: condition(x, A, b), x, tol=1e-14).x

    for solve in ("dense", "gmres"):
        solved = ft.implicit_diff(condition, solve=solve)(solver)
        fun = way(lambda A, b, s=solved: s(np.zeros(4), A, b))
        check_grads(fun, (A, np.ones(4)), order=1 if way is ft.jit else 2)


def test_implicit_derivatives_under_vmap(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((10, 3)), rng.standard_normal(10)
    fit = ft.implicit_diff(ft.grad(ridge_objective), symmetric=True)(ridge)
    thetas = np.array([0.5, 1.3])
    check_grads(ft.vmap(lambda theta: fit(W0, theta, X, y)), (thetas,), order=2)
    batch = ft.vmap(ft.grad(lambda theta: fit(W0, theta, X, y)["b"]))(thetas)
    loop = [ft.grad(lambda theta: fit(W0, theta, X, y)["b"])(theta) for theta in thetas]
    np.testing.assert_allclose(batch, loop, rtol=1e-10)


def test_solvers_get_plain_arrays_under_every_transform() -> None:
    seen = []

    @ft.implicit_diff(cubic)
    def solver(x0: Any, a: Any) -> float:
        seen.append(type(np.asarray(a)) is np.ndarray and isinstance(a, (float, np.ndarray)))
        return brent(a)

    def f(a: Any) -> Any:
        return solver(1.0, a)

    f(1.3), ft.grad(f)(1.3), ft.jit(f)(1.3), ft.hessian(f)(1.3), ft.jit(ft.grad(f))(1.3)
    ft.vmap(ft.grad(f))(np.array([1.0, 2.0]))
    assert len(seen) >= 6
    assert all(seen)


@ways
def test_what_solver_and_condition_refer_to_has_derivatives(way: Any) -> None:
    def root(a: Any) -> Any:
        solver = ft.implicit_diff(lambda x: cubic(x, a))(lambda x0: brent(a))
        return solver(1.0)

    check_grads(way(root), (1.3,), order=2)


def test_derivatives_in_keyword_arguments_and_of_aux() -> None:
    @ft.implicit_diff(lambda x, *, a: cubic(x, a), has_aux=True)
    def solver(x0: Any, *, a: Any) -> Any:
        return brent(a), {"calls": 3}

    (value, aux), gradient = ft.value_and_grad(lambda a: solver(1.0, a=a), has_aux=True)(1.3)
    assert aux["calls"] == 3
    np.testing.assert_allclose(gradient, ft.grad(root_of(newton_python))(1.3), rtol=1e-12)
    np.testing.assert_allclose(value, brent(1.3))


def test_fixed_points_of_solvers() -> None:
    @ft.implicit_diff(fixed_point_fun=lambda x, a: np.cos(a * x))
    def solver(x0: Any, a: Any) -> Any:
        return scipy.optimize.fixed_point(lambda x: np.cos(a * x), x0, xtol=1e-14)

    check_grads(lambda a: solver(np.ones(2), a), (0.8,), order=2)


def test_tensors_have_gradients_through_solvers() -> None:
    solver = ft.implicit_diff(cubic)(lambda x0, a: brent(a))
    a = ft.tensor(1.3, dtype=np.float64, requires_grad=True)
    solver(1.0, a).backward()
    np.testing.assert_allclose(a.grad.numpy(), ft.grad(lambda a: solver(1.0, a))(1.3), rtol=1e-12)


def test_solvers_may_write_to_their_start() -> None:
    @ft.implicit_diff(lambda x, a: x - a)
    def solver(x: Any, a: Any) -> Any:
        x += a
        return x

    start = np.zeros(2)
    np.testing.assert_array_equal(ft.jacobian(lambda a: solver(start, a))(np.ones(2)), np.eye(2))
    np.testing.assert_array_equal(start, 0)


def test_float32_stays_so() -> None:
    @ft.implicit_diff(lambda x, a: a * x - 1)
    def solver(x: Any, a: Any) -> Any:
        return 1 / a

    a = np.ones(2, np.float32)
    found = ft.jacrev(lambda a: solver(np.zeros(2, np.float32), a))(a)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, -np.eye(2))


def test_results_of_closed_forms_are_announced() -> None:
    solver = ft.implicit_diff(lambda x, a: x - a**2, out_like=lambda x0, a: a)(lambda x0, a: a**2)
    np.testing.assert_allclose(ft.jit(ft.grad(lambda a: solver(None, a)))(3.0), 6.0)
    silent = ft.implicit_diff(lambda x, a: x - a**2)(lambda x0, a: a**2)
    with pytest.raises(TypeError, match="pass out_like=x"):
        ft.jit(lambda a: silent(None, a))(3.0)


def test_singular_systems_raise() -> None:
    solver = ft.implicit_diff(lambda x, a: np.sum(x) * np.ones(2) - a)(lambda x0, a: np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError, match=r"2 x 2 Jacobian .* is singular"):
        ft.jacobian(lambda a: solver(np.zeros(2), a))(np.zeros(2))


@ways
def test_solvers_that_have_not_converged_are_warned_of(way: Any) -> None:
    solver = ft.implicit_diff(lambda x, a: x**2 - a)(lambda x0, a: 0.9)
    with pytest.warns(RuntimeWarning, match="the solver has not converged"):
        ft.grad(way(lambda a: solver(1.0, a)))(1.0)
    silent = ft.implicit_diff(lambda x, a: x**2 - a, tol=None)(lambda x0, a: 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.grad(way(lambda a: silent(1.0, a)))(1.0)


def test_linear_solvers_that_do_not_converge_give_nan(rng: np.random.Generator) -> None:
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])  # not positive definite
    solver = ft.implicit_diff(lambda x, a: rotation @ x - a, solve="cg")(
        lambda x0, a: rotation.T @ a
    )
    assert np.isnan(ft.jacobian(lambda a: solver(np.zeros(2), a))(np.ones(2))).all()


@pytest.mark.parametrize(
    ("condition", "solver", "error", "message"),
    [
        (lambda x, a: (x, a), lambda x0, a: a, TreeMismatchError, "the result of optimality_fun"),
        (lambda x, a: x[:1] - a[:1], lambda x0, a: a, ShapeError, "the result of optimality_fun"),
        (lambda x, a: x - a, lambda x0, a: np.arange(2), TypeError, "floating-point"),
        (lambda x, a: x - a, lambda x0, a: a + 0j, TypeError, "make its real and imaginary"),
        (lambda x, a: x - a, lambda x0, a: "text", TypeError, "return arrays and numbers"),
    ],
)
def test_implicit_diff_refuses(condition: Any, solver: Any, error: Any, message: str) -> None:
    solved = ft.implicit_diff(condition)(solver)
    with pytest.raises(error, match=message):
        ft.jacobian(lambda a: solved(np.zeros(2), a))(np.ones(2))


def test_arguments_of_implicit_diff_are_checked() -> None:
    with pytest.raises(TypeError, match="either optimality_fun or fixed_point_fun"):
        ft.implicit_diff()
    with pytest.raises(ValueError, match="'lu'"):
        ft.implicit_diff(cubic, solve="lu")
    with pytest.raises(TypeError, match="pure_callback"):
        ft.jit(ft.implicit_diff(lambda x, a: x - a)(lambda x0, a: np.float32(a)))(0.0, 1.0)


@ways
@pytest.mark.parametrize("jacobian", [ft.jacfwd, ft.jacrev])
def test_conditions_may_be_made_like_the_unknowns(way: Any, jacobian: Any) -> None:
    @ft.implicit_diff(lambda x, a: np.array([x[0] ** 2 - a, x[0] * x[1] - 1.0], like=x))
    def solver(x0: Any, a: Any) -> Any:
        return np.array([np.sqrt(a), 1 / np.sqrt(a)])

    found = way(jacobian(solver, 1))(np.ones(2), 2.0)
    np.testing.assert_allclose(found, [0.5 * 2**-0.5, -0.5 * 2**-1.5], rtol=1e-12)
    second = way(ft.jacfwd(jacobian(solver, 1), 1))(np.ones(2), 2.0)
    np.testing.assert_allclose(second, [-0.25 * 2**-1.5, 0.75 * 2**-2.5], rtol=1e-12)


# fixed_point ------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("anderson", [0, 3])
def test_fixed_point_has_implicit_derivatives(way: Any, anderson: int) -> None:
    def point(a: Any, b: Any) -> Any:
        return ft.fixed_point(
            lambda x: {"u": np.cos(a * x["u"]) + b}, {"u": np.ones(2)}, xtol=1e-13,
            anderson=anderson,
        )["u"]  # fmt: skip

    check_grads(way(point), (0.5, np.array([0.1, 0.2])), order=2)


def test_fixed_point_under_vmap() -> None:
    point = ft.vmap(lambda a: ft.fixed_point(lambda x, a: np.cos(a * x), 1.0, (a,), xtol=1e-13))
    check_grads(point, (np.array([0.3, 0.6]),), order=2)


def test_acceleration_saves_evaluations() -> None:
    counts = []
    for anderson in (0, 5):
        calls = []

        def fun(x: Any, calls: list[Any] = calls) -> Any:
            calls.append(x)
            return 0.9 * np.cos(x) + 0.1 * np.roll(x, 1)

        ft.fixed_point(fun, np.linspace(0, 1, 20), anderson=anderson, xtol=1e-10)
        counts.append(len(calls))
    assert counts[1] < counts[0] / 2


def test_fixed_points_that_are_not_reached() -> None:
    with pytest.raises(ConvergenceError, match="after 5 evaluations"):
        ft.fixed_point(lambda x: 2 * x + 1, 1.0, maxiter=5)
    assert np.isnan(ft.jit(lambda x: ft.fixed_point(lambda x: 2 * x + 1, x, maxiter=5))(1.0))
    with pytest.raises(ShapeError, match="the result of fun"):
        ft.fixed_point(lambda x: x[:1], np.ones(2))


# Krylov methods ---------------------------------------------------------------------------------

SOLVERS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
solvers = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def system(solver: Any, rng: np.random.Generator, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    A = rng.standard_normal((n, n)) + 5 * np.eye(n)
    return (A @ A.T if solver is cg else A), rng.standard_normal(n)


@solvers
@ways
def test_iterative_solutions(solver: Any, way: Any, rng: np.random.Generator) -> None:
    A, b = system(solver, rng)
    x, info = way(lambda A, b: solver(A, b, tol=1e-12))(A, b)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), atol=1e-9)
    assert info == 0
    bs = np.stack([b, 2 * b, 0 * b])
    xs, infos = ft.vmap(way(lambda b: solver(A, b, tol=1e-12)))(bs)
    np.testing.assert_allclose(xs, np.linalg.solve(A, bs.T).T, atol=1e-9)
    np.testing.assert_array_equal(infos, 0)


@solvers
@ways
@pytest.mark.parametrize("with_start", [False, True])
def test_complex_systems_have_derivatives(
    solver: Any, way: Any, with_start: bool, rng: np.random.Generator
) -> None:
    C = rng.standard_normal((5, 5)) + 1j * rng.standard_normal((5, 5)) + 6 * np.eye(5)
    A = C @ C.conj().T if solver is cg else C  # Hermitian: its transpose is its conjugate
    b = rng.standard_normal(5) + 1j * rng.standard_normal(5)
    M = np.linalg.inv(A + 0.1 * np.eye(5))
    options = {"x0": b, "M": M} if with_start else {}

    def size(solve: Any) -> Any:
        return lambda p, b: np.sum(np.abs(solve(A * p, b)) ** 2)

    found = way(ft.grad(size(lambda A, b: solver(A, b, tol=1e-13, **options)[0]), (0, 1)))(1.3, b)
    expected = ft.grad(size(np.linalg.solve), (0, 1))(1.3, b)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-8)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-8)


@solvers
def test_systems_as_scipy_gives_them(solver: Any, rng: np.random.Generator) -> None:
    A, b = system(solver, rng)
    sparse = scipy.sparse.csr_array(A)
    x, info = solver(sparse, b, rtol=1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), atol=1e-9)
    assert info == 0
    slope = ft.jit(ft.grad(lambda b: solver(sparse, b, rtol=1e-12)[0].sum()))(b)
    np.testing.assert_allclose(slope, np.linalg.solve(A.T, np.ones(8)), atol=1e-9)
    np.testing.assert_allclose(solver(2 * np.eye(2), np.array([2, 4]))[0], [1, 2])
    assert solver(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)
    with pytest.raises(ShapeError, match="give a vector of 8 numbers"):
        solver(sparse, b[:3])


@solvers
@ways
@pytest.mark.parametrize("with_start", [False, True])
def test_iterative_solutions_have_derivatives(
    solver: Any, way: Any, with_start: bool, rng: np.random.Generator
) -> None:
    A, b = system(solver, rng, 5)
    options = {"x0": np.linalg.solve(A, b) + 1e-3, "atol": 1e-13} if with_start else {}

    def solved(A: Any, b: Any) -> Any:
        matrix = (A + A.T) / 2 if solver is cg else A
        return solver(matrix, b, tol=1e-13, **options)[0]

    check_grads(way(solved), (A, b), order=1 if way is ft.jit else 2)


@solvers
def test_iterative_solutions_of_pytrees_complex_and_single_systems(
    solver: Any, rng: np.random.Generator
) -> None:
    A, b = system(solver, rng)
    x, _ = solver(lambda x: {"u": A @ x["u"], "s": 2 * x["s"]}, {"u": b, "s": 3.0}, tol=1e-12)
    np.testing.assert_allclose(x["u"], np.linalg.solve(A, b), atol=1e-9)
    np.testing.assert_allclose(x["s"], 1.5)
    skew = np.triu(rng.standard_normal(A.shape), 1)
    C, c = A + 1j * (skew - skew.T), b + 1j * b[::-1]
    np.testing.assert_allclose(solver(C, c, tol=1e-12)[0], np.linalg.solve(C, c), atol=1e-9)
    x, info = solver(A.astype(np.float32), b.astype(np.float32))
    assert (x.dtype, info) == (np.float32, 0)


@solvers
def test_preconditioners_and_iterations_as_in_scipy(solver: Any) -> None:
    n = 60
    A = np.diag(np.linspace(1.0, 1e4, n)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    b = np.ones(n)
    plain, _ = solver(A, b, tol=1e-10, maxiter=500)
    x, info = solver(A, b, tol=1e-10, maxiter=20, M=lambda r: r / np.diag(A))
    assert info == 0
    theirs = getattr(scipy.sparse.linalg, solver.__name__)(A, b, rtol=1e-10, maxiter=500)
    np.testing.assert_allclose(x, theirs[0], atol=1e-8)
    _, info = solver(A, b, tol=1e-10, maxiter=3)
    assert info == 3
    assert plain.shape == b.shape


@solvers
def test_systems_without_solution_are_flagged(solver: Any) -> None:
    _, info = solver(np.diag([1.0, 0.0]), np.array([1.0, 2.0]))
    assert info > 0


def test_gmres_with_restarts(rng: np.random.Generator) -> None:
    A, b = system(gmres, rng, 30)
    A = A + 10 * np.eye(30)
    x, info = gmres(A, b, restart=4, tol=1e-10, maxiter=2000)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), atol=1e-7)
    assert info == 0
    with pytest.raises(ValueError, match="restart"):
        gmres(A, b, restart=0)


@solvers
def test_wrong_systems_are_refused(solver: Any) -> None:
    with pytest.raises(ShapeError, match="square"):
        solver(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ShapeError, match="A x"):
        solver(lambda x: x[:1], np.ones(3))
    with pytest.raises(TypeError, match="b is bool"):
        solver(np.eye(2), np.ones(2, bool))
    with pytest.raises(ShapeError, match="x0"):
        solver(np.eye(2), np.ones(2), x0=np.ones(3))
    with pytest.raises(TypeError, match="can be traced"):
        solver(scipy.sparse.linalg.aslinearoperator(np.eye(2)), np.ones(2))
    with pytest.raises(ShapeError, match="square"):
        solver(scipy.sparse.eye_array(2, 3), np.ones(3))


class Cubic:
    """Vanishes at the cube root of an attribute."""

    def __init__(self, c):
        self.c = c
        self.parts = {"c": [c]}
        self.owner = self

    def __call__(self, x):
        return x**3 - self.owner.parts["c"][0]

    def residual(self, x):
        return x**3 - self.c


@pytest.mark.parametrize("solve", [brentq, bisect, newton], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["object", "method", "closure"])
def test_traced_values_that_objects_hold_are_found(solve, kind):
    def root(c):
        cubic = Cubic(c)
        fun = {"object": cubic, "method": cubic.residual, "closure": lambda x: cubic(x)}[kind]
        return solve(fun, 0.5) if solve is newton else solve(fun, 0.0, 1.0)

    for run in (root, ft.jit(root)):
        np.testing.assert_allclose(run(0.3), 0.3 ** (1 / 3), rtol=1e-10)
        np.testing.assert_allclose(ft.grad(run)(0.3), 0.3 ** (-2 / 3) / 3, rtol=1e-10)
        np.testing.assert_allclose(ft.grad(ft.grad(run))(0.3), -2 / 9 * 0.3 ** (-5 / 3), rtol=1e-9)


def test_objects_that_hold_traced_values_are_copied():
    seen = []

    def root(c):
        cubic = Cubic(c)
        solver = ft.implicit_diff(cubic)(lambda x: np.cbrt(np.float64(0.3)))
        x = solver(1.0)
        seen.append((cubic.c, c, cubic.owner is cubic))
        return x

    np.testing.assert_allclose(ft.grad(root)(0.3), 0.3 ** (-2 / 3) / 3, rtol=1e-10)
    ((held, given, is_own),) = seen
    assert held is given
    assert is_own


class Counted(dict):
    """Cannot be made by ``object``."""

    def __call__(self, x):
        return x - self.c

    __hash__ = object.__hash__


def test_objects_that_cannot_be_copied_are_refused():
    def root(c):
        fun = Counted()
        fun.c = c
        return bisect(fun, 0.0, 1.0)

    with pytest.raises(UnsupportedOperationError, match="attribute 'c'"):
        ft.grad(root)(0.3)


UNSEEN: dict[str, Any] = {}


def test_traced_values_that_are_not_seen_are_refused():
    def root(c, start=0.0):
        UNSEEN["c"] = c
        return bisect(lambda x: x**3 - UNSEEN["c"], start, 1.0)

    with pytest.raises(UnsupportedOperationError, match="in a global variable"):
        ft.grad(root)(0.3)
    with pytest.raises(UnsupportedOperationError, match="in a global variable"):
        ft.jvp(root, (0.3,), (1.0,))
    with pytest.raises(UnsupportedOperationError):
        ft.grad(root, (0, 1))(0.3, 0.1)  # something else is seen
