"""Initial value problems: values, derivatives in everything, bad problems."""

import functools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import (
    ConcretizationError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)
from functrans.scipy.integrate import IntegrationWarning, odeint, solve_ivp

EXPLICIT = ("RK23", "RK45", "DOP853")
METHODS = (*EXPLICIT, "Rodas4")
EACH = pytest.mark.parametrize("method", METHODS)
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12, "method": "DOP853"}
TIMES = np.array([0.3, 0.7, 1.9, 2.0, 3.1])
START = np.array([1.0, -0.4])


def oscillator(t: Any, y: Any, k: Any) -> Any:
    """A damped oscillator, driven."""
    return [y[1], -k[0] * y[0] - k[1] * y[1] + np.sin(k[2] * t)]


def predators(t: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return [a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]]


RATES = (1.5, 1.0, 1.0, 3.0)


def pendulum(y: Any, t: Any, w: Any) -> Any:
    return fnp.stack([y[1], -(w**2) * y[0]])


def pendulum_states(y0: Any, t: Any, w: Any) -> Any:
    """The exact solution of ``pendulum``."""
    s = w * (t - t[0])
    return np.stack(
        [y0[0] * np.cos(s) + y0[1] / w * np.sin(s), -w * y0[0] * np.sin(s) + y0[1] * np.cos(s)], 1
    )


def weighted(states: Any) -> Any:
    return np.sum(np.sin(states * np.arange(1.0, 1.0 + np.size(TIMES))[:, None]))


# times ------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("jacobian", [ft.jacfwd, ft.jacrev])
def test_times_that_are_the_first_one_have_their_derivative(
    method: str, way: Any, jacobian: Any
) -> None:
    def states(t: Any) -> Any:
        return odeint(lambda y, t: -y, 1.0, t, method=method, rtol=1e-8, atol=1e-8)

    t = np.array([0.2, 0.2, 0.7, 0.7])
    values = np.exp(t[0] - t)
    exact = -np.diag(values)
    exact[:, 0] += values
    assert_allclose(way(jacobian(states))(t), exact, atol=1e-6)
    # an interval without length
    assert_allclose(way(jacobian(states))(t[:2]), [[0, 0], [1, -1]], atol=1e-12)
    backsolve = ft.grad(lambda t: odeint(lambda y, t: -y, 1.0, t, adjoint="backsolve")[1])
    assert_allclose(way(backsolve)(t[:2]), [1, -1], atol=1e-12)


@EACH
def test_traced_times_out_of_order_or_of_the_interval_are_nan(method: str) -> None:
    @ft.jit
    def states(t: Any) -> Any:
        return solve_ivp(
            lambda t, y: -y, (0.0, 1.0), START, method=method, t_eval=t, rtol=1e-7, max_step=0.1
        ).y[0]

    assert_array_equal(np.isnan(states(np.array([-0.1, 0.0, 1.0, 2.0]))), [1, 0, 0, 1])
    found = states(np.array([0.5, 0.1, 0.6]))
    assert_allclose(found, [np.exp(-0.5), np.nan, np.exp(-0.6)], rtol=1e-4)


@EACH
@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.filterwarnings("ignore")
def test_times_that_are_not_reached_leave_the_others_their_derivatives(
    method: str, way: Any
) -> None:
    for start in (0.0, -1.0):  # the solution ends at 1, or at 0, where times are dense

        def final(y0: Any, start: float = start) -> Any:
            return odeint(lambda y, t: y * y, y0, start + np.array([0, 0.5, 2]), method=method)[1]

        assert_allclose(way(ft.grad(final))(1.0), 4.0, rtol=1e-5)


def test_no_step_is_so_short_that_it_does_not_move_the_time() -> None:
    result = solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0], rtol=1e-8, atol=1e-8)
    assert not result.success
    assert np.all(np.diff(result.t) > 0)


def test_times_of_events_are_roots_along_the_solution() -> None:
    def fall(v: Any, g: Any) -> Any:
        result = solve_ivp(
            lambda t, y: [y[1], -g + 0 * y[0]], (0.0, 5.0), fnp.stack([0.0 * v, v]),
            dense_output=True, max_steps=50, rtol=1e-9, atol=1e-9,
        )  # fmt: skip
        return ft.scipy.optimize.brentq(lambda t: result.sol(t)[0], 0.1, 5.0)

    assert_allclose(fall(10.0, 9.81), 20 / 9.81, rtol=1e-9)
    for way in (lambda f: f, ft.jit):
        assert_allclose(
            way(ft.grad(fall, (0, 1)))(10.0, 9.81), [2 / 9.81, -20 / 9.81**2], rtol=1e-8
        )
        assert_allclose(way(ft.hessian(fall, 1))(10.0, 9.81), 40 / 9.81**3, rtol=1e-7)


def test_options_of_scipys_that_have_no_use_are_refused() -> None:
    for name, advice in (
        ("jac", "'Rodas4' is exact"),
        ("min_step", "resolve"),
        ("u", "unexpected"),
    ):
        with pytest.raises(TypeError, match=advice):
            solve_ivp(lambda t, y: -y, (0, 1), START, **{name: 1})


def test_one_component_may_have_a_number_as_its_slope() -> None:
    result = solve_ivp(lambda t, y: -y[0], (0, 1), [1.0], rtol=1e-8, atol=1e-8)
    assert_allclose(result.y[0, -1], np.exp(-1), rtol=1e-6)


def test_the_warning_is_scipys() -> None:
    assert IntegrationWarning is scipy.integrate.IntegrationWarning


# values -----------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("span", [(0.0, 4.0), (4.0, 0.0)])
def test_values_are_scipys(method: str, span: Any) -> None:
    want = scipy.integrate.solve_ivp(
        predators, span, [1.0, 1.2], "DOP853", args=RATES, rtol=1e-12, atol=1e-12,
        dense_output=True,
    )  # fmt: skip
    times = np.linspace(*span, 23)
    rtol = 1e-6 if method == "RK23" else 1e-8
    own = solve_ivp(predators, span, [1.0, 1.2], method, times, args=RATES, rtol=rtol, atol=rtol)
    assert own.success
    assert own.status == 0
    assert own.y.shape == (2, 23)
    assert_allclose(own.y, want.sol(times), rtol=300 * rtol)
    assert_allclose(own.t, times)


@pytest.mark.parametrize("method", EXPLICIT)
def test_steps_and_evaluations_are_about_scipys(method: str) -> None:
    tolerances = {"rtol": 1e-7, "atol": 1e-8}
    want = scipy.integrate.solve_ivp(predators, (0, 6), [1, 1.2], method, args=RATES, **tolerances)
    own = solve_ivp(predators, (0, 6), [1, 1.2], method, args=RATES, **tolerances)
    assert own.nfev < 1.4 * want.nfev + 10
    assert own.t[0] == 0
    assert own.t[-1] == 6
    assert own.y.shape == (2, len(own.t))
    assert own.n_steps == len(own.t) - 1
    assert np.all(np.diff(own.t) > 0)
    assert_allclose(own.y[:, -1], want.y[:, -1], rtol=1e-4)
    assert "success" in own.message
    assert own["y"] is own.y


@pytest.mark.parametrize(
    ("method", "order"), [("RK23", 3), ("RK45", 5), ("DOP853", 8), ("Rodas4", 4)]
)
def test_order_of_convergence(method: str, order: int) -> None:
    def error(h: float) -> float:
        own = solve_ivp(
            lambda t, y: [y[1] * np.cos(t), -y[0] * np.cos(t) + 0.1 * y[0] ** 2], (0.0, 2.0),
            [1.0, 0.5], method, [2.0], first_step=h, max_step=h, rtol=1e9, atol=1e9,
        )  # fmt: skip
        return float(np.max(np.abs(own.y[:, 0] - reference)))

    reference = scipy.integrate.solve_ivp(
        lambda t, y: [y[1] * np.cos(t), -y[0] * np.cos(t) + 0.1 * y[0] ** 2], (0.0, 2.0),
        [1.0, 0.5], "DOP853", rtol=1e-13, atol=1e-14,
    ).y[:, -1]  # fmt: skip
    coarse = 0.5 if order == 8 else 0.1
    measured = np.log2(error(coarse) / error(coarse / 2))
    assert measured > order - 0.4


@EACH
def test_dense_output(method: str) -> None:
    exact = lambda t: np.exp(-0.5 * t) * np.cos(3 * t)  # noqa: E731  # one line
    a = np.array([[-0.5, -3.0], [3.0, -0.5]])
    own = solve_ivp(lambda t, y: a @ y, (0, 3), np.array([1.0, 0.0]), method, dense_output=True,
                    rtol=1e-7, atol=1e-8)  # fmt: skip
    assert own.sol is not None
    times = np.linspace(0, 3, 40)
    assert own.sol(times).shape == (2, 40)
    assert own.sol(1.3).shape == (2,)
    assert_allclose(own.sol(times)[0], exact(times), atol=2e-5)
    assert_allclose(own.sol(own.t), own.y, atol=1e-12)
    rate = ft.jvp(own.sol, (1.3,), (1.0,))[1]
    assert_allclose(rate, a @ own.sol(1.3), atol=2e-3)
    with pytest.raises(ShapeError, match="scalar or 1-D"):
        own.sol(np.ones((2, 2)))


def test_dense_output_of_a_traced_problem() -> None:
    def at(rate: Any, time: Any) -> Any:
        own = solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), np.array([1.0]), "DOP853",
                        dense_output=True, max_steps=64, rtol=1e-10, atol=1e-12)  # fmt: skip
        assert own.sol is not None
        return own.sol(time)[0]

    for f in (at, ft.jit(at)):
        value, slopes = ft.value_and_grad(f, (0, 1))(1.3, 0.7)
        assert_allclose(value, np.exp(-0.91), rtol=1e-8)
        assert_allclose(slopes, (-0.7 * np.exp(-0.91), -1.3 * np.exp(-0.91)), rtol=1e-6)

    def last(r: Any) -> Any:
        return solve_ivp(lambda t, y: -r * y, (0, 1), [1.0], dense_output=True).sol(1.0)[0]

    assert_allclose(ft.grad(last)(1.0), -np.exp(-1), 1e-2)
    with pytest.raises(UnsupportedOperationError, match="give max_steps"):
        ft.jit(last)(1.0)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Rodas4"])
def test_steps_of_traced_problems_are_those_of_plain_ones(method: str) -> None:
    def steps(p: Any) -> Any:
        return solve_ivp(lambda t, y: [y[1], -p[0] * y[0]], (0.0, p[1]), [1.0, 0.2], method)

    def area(p: Any) -> Any:
        found = steps(p)
        return np.trapezoid(found.y[0], found.t) + found.y[1].max()

    p = np.array([1.3, 3.0])
    found = steps(p)
    t, y = ft.jvp(lambda p: steps(p)[:2], (p,), (np.ones(2),))[0]
    assert_allclose(t, found.t)
    assert_allclose(y, found.y, 1e-12, 1e-14)
    assert_allclose(ft.value_and_grad(area)(p)[0], area(p), 1e-12)
    assert_allclose(
        ft.grad(lambda p: steps(p).y[0, -1])(p),
        ft.grad(lambda p: np.cos(np.sqrt(p[0]) * p[1]) + 0.2 / np.sqrt(p[0])
                * np.sin(np.sqrt(p[0]) * p[1]))(p), 2e-2, 2e-2)  # fmt: skip


def test_stiff_problem() -> None:
    def robertson(t: Any, y: Any) -> Any:
        slow, fast = 0.04 * y[0], 1e4 * y[1] * y[2]
        return [-slow + fast, slow - fast - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2]

    options = {"rtol": 1e-8, "atol": 1e-11}
    own = solve_ivp(robertson, (0, 1e4), [1.0, 0.0, 0.0], "Rodas4", **options)
    want = scipy.integrate.solve_ivp(
        robertson, (0, 1e4), [1, 0, 0], "Radau", rtol=1e-10, atol=1e-13
    )
    assert_allclose(own.y[:, -1], want.y[:, -1], rtol=1e-6)
    assert own.n_steps < 1000
    assert own.njev == own.nlu == own.n_steps + own.n_rejected
    explicit = solve_ivp(robertson, (0, 1.0), [1.0, 0.0, 0.0], "RK45", max_steps=500)
    assert not explicit.success


def test_odeint_has_jaxs_order_of_arguments_and_pytrees() -> None:
    def slope(y: Any, t: Any, rate: Any, options: Any) -> Any:
        return {"a": -rate * y["a"], "b": options["gain"] * y["a"][0] + 0 * t}

    y0 = {"a": np.array([1.0, 2.0]), "b": 0.5}
    t = np.linspace(0.0, 1.0, 4)
    own = odeint(slope, y0, t, 2.0, {"gain": 3.0})
    assert own["a"].shape == (4, 2)
    assert own["b"].shape == (4,)
    assert_allclose(own["a"], np.exp(-2 * t)[:, None] * [1, 2], rtol=1e-7)
    assert_allclose(own["b"], 0.5 + 1.5 * (1 - np.exp(-2 * t)), rtol=1e-7)
    swapped = odeint(lambda t, y: -y, 1.0, t, tfirst=True)
    assert_allclose(swapped, np.exp(-t), rtol=1e-7)
    want = scipy.integrate.odeint(pendulum, START, t, args=(1.4,), rtol=1e-10, atol=1e-10)
    assert_allclose(odeint(pendulum, START, t, 1.4), want, rtol=1e-6)


def test_single_precision_complex_integers_and_no_components() -> None:
    t = np.linspace(0.0, 1.0, 3)
    single = odeint(lambda y, t: -y, np.float32([1.0, 2.0]), t.astype(np.float32), rtol=1e-5)
    assert single.dtype == np.float32
    assert_allclose(single[-1], np.exp(-1.0) * np.array([1, 2]), rtol=1e-4)
    rotated = odeint(lambda y, t: 2j * y, np.array([1.0 + 0j]), t)
    assert_allclose(rotated[:, 0], np.exp(2j * t), rtol=1e-6)
    stiff = odeint(lambda y, t: (2j - 1) * y, np.array([1.0 + 0j]), t, method="Rodas4")
    assert_allclose(stiff[:, 0], np.exp((2j - 1) * t), rtol=1e-6)
    assert_allclose(odeint(lambda y, t: -y, 1, t), np.exp(-t), rtol=1e-6)
    assert odeint(lambda y, t: -y, np.zeros(0), t).shape == (3, 0)
    assert_allclose(odeint(lambda y, t: -y, 2.0, np.array([0.5, 0.5, 0.5])), 2.0)
    assert_allclose(odeint(lambda y, t: -y, 2.0, np.array([0.5])), [2.0])


# derivatives ------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("outer", [lambda f: f, ft.jit])
def test_gradients_of_a_closed_form(method: str, outer: Any) -> None:
    options = {"RK23": 1e-9, "Rodas4": 1e-10}
    tol = options.get(method, 1e-12)

    def loss(y0: Any, t: Any, w: Any) -> Any:
        return weighted(odeint(pendulum, y0, t, w, rtol=tol, atol=tol, method=method))

    def exact(y0: Any, t: Any, w: Any) -> Any:
        return weighted(pendulum_states(y0, t, w))

    want = ft.grad(exact, (0, 1, 2))(START, TIMES, 1.4)
    own = outer(ft.grad(loss, (0, 1, 2)))(START, TIMES, 1.4)
    bound = {"RK23": 3e-4, "Rodas4": 1e-6, "RK45": 1e-7, "DOP853": 1e-8}[method]
    for a, b in zip(own, want, strict=True):
        assert_allclose(a, b, rtol=bound, atol=bound)


@EACH
def test_derivatives_are_those_of_the_discrete_solution(method: str) -> None:
    """With steps of one size the solution is smooth in all but them: differences see the same."""
    options: dict[str, Any] = {
        "first_step": 0.25, "max_step": 0.25, "rtol": 1e9, "atol": 1e9, "method": method,
    }  # fmt: skip

    def f(y0: Any, k: Any, end: Any) -> Any:
        own = solve_ivp(oscillator, (0.1, end), y0, t_eval=fnp.stack([0.6, 1.2, end]), args=(k,),
                        **options)  # fmt: skip
        return np.sum(np.sin(own.y) * np.arange(1.0, 7.0).reshape(2, 3))

    args = (START, np.array([1.3, 0.2, 0.9]), 2.25)
    ft.check_grads(f, args, order=1)
    own = ft.grad(f, (0, 1))(*args)
    for i, point in enumerate(args[:2]):
        for j in range(len(point)):
            h = 1e-4
            ends = []
            for sign in (-2, -1, 1, 2):
                moved = [np.array(a, float) for a in args]
                moved[i][j] += sign * h
                ends.append(float(f(*moved)))
            slope = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * h)
            assert_allclose(own[i][j], slope, rtol=1e-8, atol=1e-9)


def test_modes_and_adjoints_agree() -> None:
    k = np.array([1.3, 0.2, 0.9])

    def f(y0: Any, k: Any, t: Any, **more: Any) -> Any:
        return weighted(odeint(lambda y, t: fnp.stack(oscillator(t, y, k)), y0, t, **TIGHT, **more))

    reverse = ft.jit(ft.grad(f, (0, 1, 2)))(START, k, TIMES)
    dots = (np.array([0.3, 1.0]), np.array([1.0, -0.5, 0.2]), np.cos(TIMES))
    forward = ft.jvp(f, (START, k, TIMES), dots)[1]
    assert_allclose(sum(np.sum(a * b) for a, b in zip(reverse, dots, strict=True)), forward,
                    rtol=1e-11)  # fmt: skip
    adjoint = ft.grad(lambda *a: f(*a, adjoint="backsolve"), (0, 1, 2))(START, k, TIMES)
    for own, other in zip(adjoint, reverse, strict=True):
        assert_allclose(own, other, rtol=1e-8, atol=1e-8)
    for checkpoints in (1, 3, None):
        other = ft.jit(ft.grad(lambda y0, n=checkpoints: f(y0, k, TIMES, checkpoints=n)))(START)
        assert_allclose(other, reverse[0], rtol=1e-12)


def test_second_order() -> None:
    def loss(p: Any) -> Any:
        return weighted(odeint(pendulum, p[:2], TIMES, p[2], **TIGHT))

    def exact(p: Any) -> Any:
        return weighted(pendulum_states(p[:2], TIMES, p[2]))

    p = np.array([1.0, -0.4, 1.4])
    want = ft.hessian(exact)(p)
    for transform in (
        ft.hessian,
        lambda f: ft.jacrev(ft.jacrev(f)),
        lambda f: ft.jacfwd(ft.jacfwd(f)),
        lambda f: ft.jacrev(ft.jacfwd(f)),
    ):
        assert_allclose(ft.jit(transform(loss))(p), want, rtol=1e-6, atol=1e-6)


def test_second_order_of_the_adjoint_equation() -> None:
    def loss(w: Any) -> Any:
        return odeint(pendulum, START, TIMES[:3], w, adjoint="backsolve", **TIGHT)[-1, 0]

    exact = lambda w: pendulum_states(START, TIMES[:3], w)[-1, 0]  # noqa: E731  # one line
    assert_allclose(ft.jit(ft.grad(ft.grad(loss)))(1.4), ft.grad(ft.grad(exact))(1.4), rtol=1e-6)


@pytest.mark.parametrize("method", ["RK45"])
def test_vmap_over_everything(method: str) -> None:
    starts = np.array([[1.0, -0.4], [0.2, 2.0], [5.0, 0.0]])
    ws = np.array([1.4, 0.3, 4.0])
    times = np.stack([TIMES, TIMES * 2, TIMES - 1])

    def loss(y0: Any, t: Any, w: Any) -> Any:
        return weighted(odeint(pendulum, y0, t, w, rtol=1e-7, atol=1e-7, method=method))

    each = [loss(*a) for a in zip(starts, times, ws, strict=True)]
    assert_allclose(ft.vmap(loss)(starts, times, ws), each, rtol=1e-10)
    assert_allclose(ft.jit(ft.vmap(loss))(starts, times, ws), each, rtol=1e-10)
    slopes = [ft.grad(loss, 2)(*a) for a in zip(starts, times, ws, strict=True)]
    assert_allclose(ft.jit(ft.vmap(ft.grad(loss, 2)))(starts, times, ws), slopes, rtol=1e-9)
    only = ft.vmap(loss, in_axes=(None, None, 0))(START, TIMES, ws)
    assert_allclose(only, [loss(START, TIMES, w) for w in ws], rtol=1e-10)


def test_closed_over_values_and_span() -> None:
    def final(rate: Any, begin: Any, end: Any) -> Any:
        table = {"rate": rate}
        own = solve_ivp(lambda t, y: -table["rate"] * t * y, (begin, end), np.array([1.0]),
                        rtol=1e-12, atol=1e-12, method="DOP853")  # fmt: skip
        return own.y[0, -1]

    exact = lambda r, a, b: np.exp(-r * (b**2 - a**2) / 2)  # noqa: E731  # one line
    args = (0.7, 0.2, 1.5)
    for own, want in zip(ft.grad(final, (0, 1, 2))(*args), ft.grad(exact, (0, 1, 2))(*args),
                         strict=True):  # fmt: skip
        assert_allclose(own, want, rtol=1e-8)


def test_captured_arrays_that_change_are_seen() -> None:
    w = np.array([1.0])
    f = lambda y: -w * y  # noqa: E731  # one line
    first = odeint(lambda y, t: f(y), np.array([1.0]), np.array([0.0, 1.0]))[-1, 0]
    w[0] = 2.0
    second = odeint(lambda y, t: f(y), np.array([1.0]), np.array([0.0, 1.0]))[-1, 0]
    assert_allclose([first, second], np.exp([-1.0, -2.0]), rtol=1e-6)


def test_rejected_attempts_leave_no_trace_in_gradients() -> None:
    """The first attempt leaves the domain of the root, where value and slope are NaN."""

    def final(k: Any, **more: Any) -> Any:
        m = np.array([[1.0, 0.5], [0.0, 1.0]])
        own = solve_ivp(lambda t, y: m @ np.sqrt(k - y) - 3.0 * y, (0.0, 1.0),
                        np.array([0.9, 0.8]), t_eval=[1.0], first_step=0.9, **more)  # fmt: skip
        return np.sum(own.y), own.n_rejected

    for method in ("RK45", "DOP853", "Rodas4"):
        both = functools.partial(final, method=method, rtol=1e-10, atol=1e-10)
        (_, rejected), slope = ft.value_and_grad(both, has_aux=True)(1.0)
        by_adjoint = functools.partial(both, adjoint="backsolve")
        _, other = ft.value_and_grad(by_adjoint, has_aux=True)(1.0)
        assert rejected > 0
        assert np.isfinite(slope)
        assert_allclose(slope, other, rtol=1e-6)


def test_reverse_memory_does_not_grow_with_the_steps() -> None:
    def loss(y0: Any, h: Any) -> Any:
        own = solve_ivp(lambda t, y: -np.sin(y), (0.0, 1.0), y0, t_eval=[1.0], max_step=h,
                        checkpoints=4)  # fmt: skip
        return np.sum(own.y)

    y0 = np.ones(1000)
    assert not ft.residuals(loss, y0, 0.1).has_tapes
    assert ft.residuals(loss, y0, 0.1).size_bytes < 40 * 8 * 1000
    slopes = [ft.jit(ft.grad(loss))(y0, h)[0] for h in (0.1, 0.001)]
    assert_allclose(slopes[0], slopes[1], rtol=1e-3)


def test_in_a_scan_over_intervals() -> None:
    def loss(rate: Any) -> Any:
        def period(y: Any, dose: Any) -> Any:
            y = odeint(lambda y, t: -rate * y, y + dose, np.array([0.0, 1.0]))[-1]
            return y, y

        return np.sum(lax.scan(period, 0.0, np.array([1.0, 2.0, 0.5]))[1])

    def exact(rate: Any) -> Any:
        y, total = 0.0, 0.0
        for dose in (1.0, 2.0, 0.5):
            y = (y + dose) * np.exp(-rate)
            total = total + y
        return total

    assert_allclose(ft.jit(ft.grad(loss))(0.6), ft.grad(exact)(0.6), rtol=1e-6)


# what goes wrong --------------------------------------------------------------------------------


def test_integrations_that_end_early_are_flagged() -> None:
    blow_up = lambda t, y: y**2  # noqa: E731  # one line
    own = solve_ivp(blow_up, (0.0, 2.0), [1.0])
    assert not own.success
    assert own.status == -1
    assert "step size" in own.message
    assert 0.99 < own.t[-1] <= 1.0001
    some = solve_ivp(blow_up, (0.0, 2.0), [1.0], t_eval=[0.0, 0.5, 1.5, 2.0])
    assert not some.success
    assert_allclose(some.t, [0.0, 0.5])
    assert some.y.shape == (1, 2)
    few = solve_ivp(lambda t, y: -y, (0.0, 10.0), [1.0], t_eval=[10.0], max_steps=3)
    assert few.status == -2
    assert "maximum number" in few.message
    with pytest.warns(IntegrationWarning, match="maximum number of steps"):
        y = odeint(lambda y, t: -y, 1.0, np.array([0.0, 1e-3, 50.0]), mxstep=10)
    assert np.isfinite(y[:2]).all()
    assert np.isnan(y[2])


def test_traced_integrations_that_end_early_are_flagged() -> None:
    def solve(a: Any) -> Any:
        own = solve_ivp(lambda t, y: a * y**2, (0.0, 2.0), [1.0], t_eval=[0.0, 0.5, 1.5])
        return own.y, own.success, own.status

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, success, status = ft.jit(solve)(1.0)
        assert not success
        assert status == -1
        assert_allclose(np.isnan(y[0]), [False, False, True])
        batch = ft.jit(ft.vmap(solve))(np.array([1.0, 0.1]))
        assert_allclose(batch[1], [False, True])
        assert np.isfinite(batch[0][1]).all()
        nan = solve_ivp(lambda t, y: y * np.nan, (0.0, 1.0), [1.0])
        assert not nan.success


def test_bad_problems() -> None:
    t = np.array([0.0, 1.0])
    y0 = np.ones(2)
    with pytest.raises(ShapeError, match=r"returned f64\[3\] for y0, whose shape is \[2\]"):
        odeint(lambda y, t: np.ones(3), y0, t)
    with pytest.raises(TreeMismatchError, match="one structure"):
        odeint(lambda y, t: {"a": y}, y0, t)
    with pytest.raises(TypeError, match="start with a complex state"):
        odeint(lambda y, t: 1j * y, y0, t)
    with pytest.raises(ConcretizationError):
        odeint(lambda y, t: y[: int(y[0])], y0, t)
    with pytest.raises(ValueError, match="increase or decrease throughout"):
        odeint(lambda y, t: y, y0, np.array([0.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="t is empty"):
        odeint(lambda y, t: y, y0, np.zeros(0))
    with pytest.raises(ShapeError, match="t must be 1-D"):
        odeint(lambda y, t: y, y0, 1.0)
    f = lambda t, y: -y  # noqa: E731  # one line
    with pytest.raises(ValueError, match="for stiff problems there is 'Rodas4'"):
        solve_ivp(f, (0, 1), y0, "LSODA")
    with pytest.raises(ValueError, match="rtol must not be negative"):
        solve_ivp(f, (0, 1), y0, rtol=-1.0)
    with pytest.raises(ValueError, match="max_step must be positive"):
        solve_ivp(f, (0, 1), y0, max_step=0.0)
    with pytest.raises(ValueError, match="within t_span"):
        solve_ivp(f, (0, 1), y0, t_eval=[0.5, 1.5])
    with pytest.raises(ValueError, match="in the order of integration"):
        solve_ivp(f, (1, 0), y0, t_eval=[0.2, 0.5])
    with pytest.raises(ValueError, match="two times"):
        solve_ivp(f, (0, 1, 2), y0)
    with pytest.raises(ValueError, match="must be finite"):
        solve_ivp(f, (0, np.inf), y0)
    with pytest.raises(ValueError, match="adjoint must be one of"):
        solve_ivp(f, (0, 1), y0, adjoint="none")
    with pytest.raises(TypeError, match="takes real states"):
        solve_ivp(f, (0, 1), y0 + 0j, adjoint="backsolve")
    with pytest.raises(TypeError, match="args must be a tuple"):
        solve_ivp(f, (0, 1), y0, args=1.0)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ShapeError, match="y0 must be 1-D"):
        solve_ivp(f, (0, 1), 1.0)
    with pytest.raises(ValueError, match="checkpoints must be positive"):
        solve_ivp(f, (0, 1), y0, checkpoints=0)


def test_result_prints_one_field_a_line() -> None:
    result = solve_ivp(lambda t, y: -y, (0.0, 5.0), np.array([1.0, 2.0]), dense_output=True)
    lines = repr(result).splitlines()
    names = [line.partition(": ")[0].strip() for line in lines if line.find(": ") == 10]
    assert names == ["message", *type(result)._fields]
    assert "   success: True" in lines
    assert any(line.startswith("       sol: OdeSolution(t_old=f64[") for line in lines)
    assert any(line.startswith(" " * 13 + "[") for line in lines)  # the second row of y


def test_traced_result_prints() -> None:
    printed = []

    def last(y0: Any) -> Any:
        result = solve_ivp(lambda t, y: -y, (0.0, 1.0), y0, t_eval=np.array([0.0, 1.0]))
        printed.append(repr(result))
        return result.y[:, -1]

    ft.jit(last)(np.ones(2))
    assert "         y: Traced<f64[2,2]>" in printed[0]


def test_odeint_takes_arguments_and_states_as_scipy_does() -> None:
    def pendulum(y, t, b, c):
        theta, omega = y
        return [omega, -b * omega - c * fnp.sin(theta)]

    t = np.linspace(0, 2, 5)
    want = scipy.integrate.odeint(pendulum, [3.0, 0.0], t, args=(0.25, 5.0), rtol=1e-10, atol=1e-10)
    for got in (
        odeint(pendulum, [3.0, 0.0], t, args=(0.25, 5.0)),
        odeint(pendulum, [3, 0], t, 0.25, 5.0),
    ):
        assert got.shape == (5, 2)
        np.testing.assert_allclose(got, want, atol=1e-6)
    slope = ft.grad(lambda theta: odeint(pendulum, [theta, 0.0], t, args=(0.25, 5.0))[-1, 0])
    step = 1e-5
    ends = [odeint(pendulum, [3.0 + s, 0.0], t, 0.25, 5.0)[-1, 0] for s in (step, -step)]
    np.testing.assert_allclose(slope(3.0), (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
    states = odeint(lambda y, t: [-y[0], -2 * y[1]], [np.ones(2), np.ones(3)], t)
    assert [state.shape for state in states] == [(5, 2), (5, 3)]


def test_odeint_refuses_arguments_in_two_ways() -> None:
    def decay(y, t, k):
        return -k * y

    with pytest.raises(TypeError, match="one of the two ways"):
        odeint(decay, 1.0, np.array([0.0, 1.0]), 1.0, args=(1.0,))
    with pytest.raises(TypeError, match="write args="):
        odeint(decay, 1.0, np.array([0.0, 1.0]), args=1.0)
