"""Events of initial value problems: SciPy's results, and derivatives of times and states."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.scipy.integrate import solve_ivp

TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9, "method": "DOP853"}
GRAVITY = 9.81


def event(function: Callable[..., Any], terminal: Any = None, direction: Any = 0) -> Any:
    """A function with the attributes of an event."""

    def own(*args: Any) -> Any:
        return function(*args)

    if terminal is not None:
        own.terminal = terminal  # type: ignore[attr-defined]  # SciPy's way
    own.direction = direction  # type: ignore[attr-defined]  # SciPy's way
    return own


def pendulum(t: Any, y: Any) -> Any:
    return [y[1], -GRAVITY * np.sin(y[0])]


def falling(t: Any, y: Any) -> Any:
    return [y[1], -GRAVITY]


def clock(t: Any, y: Any) -> Any:
    return [1.0]


def angle(t: Any, y: Any) -> Any:
    return y[0]


def speed(t: Any, y: Any) -> Any:
    return y[1]


def thresholds(*terminal: float) -> list[Any]:
    """Passages of ``y`` in no order, of which some are terminal."""
    return [
        event(lambda t, y, c=c: np.abs(y[0]) - c, c in terminal or None)
        for c in (5.0, 3.3, 1.0, 2.0, 3.2)
    ]


# SciPy's results --------------------------------------------------------------------------------

CASES: dict[str, tuple[Any, ...]] = {
    "bounce": (falling, (0, 100), [10.0, 0.0], event(angle, True, -1), {}),
    "throw": (falling, (0, 9), [0.0, 20.0], [event(angle, True, -1), event(speed)], {}),
    "at the first time": (falling, (0, 9), [0.0, 20.0], [event(angle), event(speed)], {}),
    "terminal at the first time": (falling, (0, 9), [0.0, 20.0], event(angle, True), {}),
    "up": (pendulum, (0, 10), [1.0, 0.0], [event(angle, None, 1), event(speed, False, 1)], {}),
    "down": (pendulum, (0, 10), [1.0, 0.0], [event(angle, None, -2.5), event(speed, 0, -1)], {}),
    "third": (pendulum, (0, 10), [1.0, 0.0], [event(angle, 3, 1), event(speed)], {}),
    "twelfth": (pendulum, (0, 10), [1.0, 0.0], [event(angle, np.int64(12)), event(speed)], {}),
    "fewer": (pendulum, (0, 10), [1.0, 0.0], [event(angle, 100)], {}),
    "backward": (pendulum, (10, 0), [1.0, 0.0], [event(angle, None, 1), event(speed)], {}),
    "backward, third": (pendulum, (10, 0), [1.0, 0.0], [event(angle, 3, 1), event(speed)], {}),
    "none": (pendulum, (0, 2), [0.01, 0.0], event(lambda t, y: y[0] - 5), {}),
    "no events": (pendulum, (0, 2), [0.01, 0.0], [], {}),
    "several in a step": (clock, (0, 10), [0.0], thresholds(), {}),
    "terminal among several": (clock, (0, 10), [0.0], thresholds(3.3), {}),
    "two terminal ones": (clock, (0, 10), [0.0], thresholds(3.3, 2.0), {}),
    "backward, several": (clock, (10, 0), [0.0], thresholds(3.3), {}),
    "fails later": (lambda t, y: [y[0] ** 2], (0, 3), [1.0], event(lambda t, y: y[0] - 99, 1), {}),
    "args": (
        lambda t, y, a, b: [a * y[0] - b * y[0] ** 2], (0, 10), [0.1],
        event(lambda t, y, a, b: y[0] - a / (2 * b)), {"args": (1.0, 0.5)},
    ),
    "complex": (
        lambda t, y: [1j * y[0]], (0, 3), [1.0 + 0j], event(lambda t, y: y[0].real - 0.3, True), {}
    ),
    "many steps": (
        pendulum, (0, 30), [1.0, 0.0], [event(angle, 11, 1), event(speed)], {"method": "RK23"}
    ),
    "time": (pendulum, (0, 3), [1.0, 0.0], event(lambda t, y: t - 1.25, True), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dense_output", [False, True], ids=["steps", "dense"])
def test_results_are_scipys(name: str, dense_output: bool) -> None:
    fun, span, y0, events, more = CASES[name]
    options = {**TIGHT, **more, "events": events, "dense_output": dense_output}
    if options["method"] == "RK23":
        options["rtol"] = options["atol"] = 1e-6
    want = scipy.integrate.solve_ivp(fun, span, y0, **options)
    own = solve_ivp(fun, span, y0, **options)
    assert (own.status, own.success, own.message) == (want.status, want.success, want.message)
    assert own.t_events is not None
    assert own.y_events is not None
    tol = 1e-3 if options["method"] == "RK23" else 1e-6
    assert len(own.t_events) == len(own.y_events) == len(want.t_events)
    for i, times in enumerate(want.t_events):
        assert_allclose(own.t_events[i], times, rtol=tol, atol=tol)
        assert own.y_events[i].shape == (len(times), len(y0))
        if len(times):
            assert_allclose(own.y_events[i], want.y_events[i], rtol=tol, atol=10 * tol)
    assert_allclose([own.t[0], own.t[-1]], [want.t[0], want.t[-1]], rtol=tol)
    assert_allclose(own.y[:, -1], want.y[:, -1], rtol=tol, atol=10 * tol)
    assert own.y.shape == (len(y0), len(own.t))
    if dense_output:
        times = np.linspace(want.t[0], want.t[-1], 7)
        assert own.sol is not None
        assert_allclose(own.sol(times), want.sol(times), rtol=30 * tol, atol=30 * tol)
        assert_allclose(own.sol(own.t), own.y, rtol=1e-9, atol=1e-9)
    else:
        assert own.sol is None


@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)], ids=["forward", "backward"])
@pytest.mark.parametrize("terminal", [None, 2])
def test_output_times_are_those_before_the_end(span: Any, terminal: Any) -> None:
    options = {**TIGHT, "events": event(angle, terminal), "t_eval": np.linspace(*span, 33)}
    want = scipy.integrate.solve_ivp(pendulum, span, [1.0, 0.0], **options)
    own = solve_ivp(pendulum, span, [1.0, 0.0], **options)
    assert_array_equal(own.t, want.t)
    assert_allclose(own.y, want.y, rtol=1e-6, atol=1e-6)
    none = solve_ivp(pendulum, span, [1.0, 0.0], events=event(speed, True), t_eval=span[1:])
    assert none.t.shape == (0,)
    assert none.y.shape == (2, 0)
    assert none.status == 1


def test_steps_with_events_are_those_without() -> None:
    plain = solve_ivp(pendulum, (0, 10), [1.0, 0.0], **TIGHT)
    own = solve_ivp(pendulum, (0, 10), [1.0, 0.0], events=event(angle), **TIGHT)
    assert_allclose(own.t, plain.t, rtol=1e-13)
    assert_allclose(own.y, plain.y, rtol=1e-12, atol=1e-12)
    assert (own.nfev, own.n_steps, own.n_rejected) == (plain.nfev, plain.n_steps, plain.n_rejected)
    assert plain.t_events is plain.y_events is None
    cut = solve_ivp(pendulum, (0, 10), [1.0, 0.0], events=event(angle, 3), **TIGHT)
    n = len(cut.t) - 1
    assert_allclose(cut.t[:n], plain.t[:n], rtol=1e-13)
    assert plain.t[n - 1] < cut.t[n] <= plain.t[n]
    assert cut.t_events is not None
    assert cut.t[n] == cut.t_events[0][2]


def test_integration_does_not_go_far_beyond_a_terminal_event() -> None:
    own = solve_ivp(
        falling, (0.0, 1e9), [10.0, 0.0], max_step=0.01, events=event(angle, True, -1)
    )  # fmt: skip
    assert_allclose(own.t[-1], np.sqrt(20 / GRAVITY), rtol=1e-9)
    assert own.n_steps < 1000


def test_a_zero_at_the_end_of_a_step_counts_once() -> None:
    options: dict[str, Any] = {"method": "RK23", "first_step": 0.25, "max_step": 0.25}
    zero = event(lambda t, y: t - 0.5)
    own = solve_ivp(clock, (0, 2), [0.0], events=[zero, event(zero, 2)], **options)
    assert own.t_events is not None
    assert 0.5 in own.t
    assert_array_equal(own.t_events[0], [0.5])
    assert_array_equal(own.t_events[1], [0.5])
    touched = event(lambda t, y: (t - 0.5) ** 2, None, 1)  # upwards, in the step after it
    own = solve_ivp(clock, (0, 2), [0.0], events=touched, **options)
    assert own.t_events is not None
    assert_array_equal(own.t_events[0], [0.5])


def test_two_changes_within_a_step_are_seen_with_shorter_steps() -> None:
    bump = event(lambda t, y: (y[0] - 4.0) * (y[0] - 4.5))
    assert_array_equal(solve_ivp(clock, (0, 10), [0.0], events=bump).t_events, [[]])
    short = solve_ivp(clock, (0, 10), [0.0], events=bump, max_step=0.3)
    assert_allclose(short.t_events, [[4.0, 4.5]])


def test_a_function_may_return_one_element() -> None:
    own = solve_ivp(clock, (0, 3), [-1.0], events=event(lambda t, y: y, True))
    assert_allclose(own.t[-1], 1.0)


def test_events_of_integrations_that_fail() -> None:
    own = solve_ivp(
        lambda t, y: y**2, (0, 3), [1.0], t_eval=[0.25, 2.0],
        events=[lambda t, y: y[0] - 2, lambda t, y: 1], **TIGHT,
    )  # fmt: skip
    assert own.t_events is not None
    assert (own.status, own.success) == (-1, False)
    assert_allclose(own.t_events[0], [0.5], rtol=1e-7)
    assert_array_equal(own.t, [0.25])
    for most in (5, 70):
        few = solve_ivp(
            pendulum, (0, 10), [1.0, 0.0], events=angle, max_steps=most, max_step=0.1
        )  # fmt: skip
        assert few.status == -2
        assert len(few.t) == most + 1
        assert few.t_events is not None
        assert len(few.t_events[0]) == (6 if most == 70 else 0)
    nan = solve_ivp(lambda t, y: y * np.nan, (0, 1), [1.0], events=event(angle))
    assert (nan.status, len(nan.t)) == (-1, 1)


def test_single_precision_and_intervals_without_length() -> None:
    own = solve_ivp(pendulum, (0, 3), np.float32([1.0, 0.0]), events=event(angle), rtol=1e-5)
    assert own.t_events is not None
    assert own.y_events is not None
    assert own.t_events[0].dtype == own.y_events[0].dtype == np.float32
    want = scipy.integrate.solve_ivp(pendulum, (0, 3), [1, 0], events=event(angle), rtol=1e-8)
    assert_allclose(own.t_events[0], want.t_events[0], rtol=1e-3)
    empty = solve_ivp(pendulum, (1, 1), [1.0, 0.0], events=[event(speed, True), event(angle)])
    assert empty.t_events is not None
    assert empty.status == 1
    assert_array_equal(empty.t_events[0], [1.0])
    assert len(empty.t_events[1]) == 0


# derivatives ------------------------------------------------------------------------------------


def time_of_fall(height: Any, gravity: Any, **more: Any) -> Any:
    """``sqrt(2 height / gravity)``."""
    own = solve_ivp(
        lambda t, y, g: [y[1], -g], (0.0, 50.0), fnp.stack([height, 0 * height]), args=(gravity,),
        events=event(lambda t, y, g: y[0], True, -1), rtol=1e-10, atol=1e-10, **more,
    )  # fmt: skip
    assert own.t_events is not None
    return own.t_events[0][0]


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Rodas4"])
def test_time_of_fall(method: str) -> None:
    fall = functools.partial(time_of_fall, method=method)
    h, g = 3.0, GRAVITY
    time = np.sqrt(2 * h / g)
    assert_allclose(fall(h, g), time, rtol=1e-9)
    assert_allclose(ft.grad(fall, (0, 1))(h, g), [time / (2 * h), -time / (2 * g)], rtol=1e-8)
    assert_allclose(ft.jvp(fall, (h, g), (0.0, 1.0))[1], -time / (2 * g), rtol=1e-8)


def test_second_and_third_order() -> None:
    h, g = 3.0, GRAVITY
    time = np.sqrt(2 * h / g)
    mixed = -time / (4 * h * g)
    want = [[-time / (4 * h * h), mixed], [mixed, 3 * time / (4 * g * g)]]
    assert_allclose(ft.hessian(time_of_fall, (0, 1))(h, g), want, rtol=1e-8)
    slope = ft.jacrev(ft.jacfwd(time_of_fall))
    assert_allclose(slope(h, g), want[0][0], rtol=1e-8)
    third = ft.grad(ft.grad(ft.grad(time_of_fall)))(h, g)
    assert_allclose(third, 3 * time / (8 * h**3), rtol=1e-7)
    ft.check_grads(time_of_fall, (h, g), order=2)


def all_results(p: Any, **more: Any) -> Any:
    """Whatever has a derivative, of a damped pendulum with a terminal event."""
    crossing = event(lambda t, y, w: y[0] - 0.05 * w * p[0], 2, 1)
    own = solve_ivp(
        lambda t, y, w: [y[1], -w * np.sin(y[0]) - 0.1 * y[1]], (p[3], 8.0 + p[3]), p[:2],
        args=(p[2],), events=[crossing, event(lambda t, y, w: y[1])], dense_output=True,
        **{**TIGHT, "rtol": 1e-11, "atol": 1e-11}, **more,
    )  # fmt: skip
    assert own.t_events is not None
    assert own.y_events is not None
    assert own.sol is not None
    assert own.status == 1
    between = own.sol(own.t[-1] - 0.3)
    times, states = own.t_events, own.y_events
    ends = [own.t[-1:], own.y[:, -1], between]
    return fnp.concatenate([*times, *(fnp.ravel(y) for y in states), *ends])


def test_derivatives_of_all_results_are_differences() -> None:
    p = np.array([1.0, 0.2, 3.0, 0.1])
    jacobian = ft.jacrev(all_results)(p)
    assert jacobian.shape == (23, 4)
    assert_allclose(ft.jacfwd(all_results)(p), jacobian, rtol=1e-10, atol=1e-10)
    assert_allclose(ft.linearize(all_results, p)[0], all_results(p), rtol=1e-12, atol=1e-12)
    h = 1e-4
    for i, e in enumerate(h * np.eye(4)):
        near = all_results(p + e) - all_results(p - e)
        far = all_results(p + 2 * e) - all_results(p - 2 * e)
        assert_allclose(jacobian[:, i], (8 * near - far) / (12 * h), rtol=1e-6, atol=1e-6)


def test_derivatives_at_output_times_before_the_end() -> None:
    def states(rate: Any) -> Any:
        own = solve_ivp(
            lambda t, y: -rate * y, (0.0, 9.0), [1.0], t_eval=fnp.stack([0.5, 1.0 / rate, 8.0]),
            events=event(lambda t, y: y[0] - 0.2, True), **TIGHT,
        )  # fmt: skip
        return own.y[0]

    assert_allclose(states(1.3), np.exp([-0.65, -1.0]), rtol=1e-7)
    assert_allclose(ft.jacobian(states)(1.3), [-0.5 * np.exp(-0.65), 0.0], rtol=1e-7, atol=1e-7)


def test_what_an_event_refers_to_has_derivatives() -> None:
    def passage(level: Any, bind: Callable[[Any], Any]) -> Any:
        own = solve_ivp(lambda t, y: -y, (0.0, 5.0), [1.0], events=bind(level), **TIGHT)
        assert own.t_events is not None
        return own.t_events[0][0]

    def by_partial(c: Any) -> Any:
        return functools.partial(lambda c, t, y: y[0] - c, c)

    def by_closure(c: Any) -> Any:
        return lambda t, y: y[0] - c

    def by_branch(c: Any) -> Any:
        return lambda t, y: (y[0] - c) * (2.0 if y[0] > 0.5 else 1.0)

    for bind in (by_partial, by_closure, by_branch):
        own = functools.partial(passage, bind=bind)
        assert_allclose(own(0.3), -np.log(0.3), rtol=1e-7)
        assert_allclose(ft.grad(own)(0.3), -1 / 0.3, rtol=1e-6)
        assert_allclose(ft.jvp(ft.grad(own), (0.3,), (1.0,))[1], 1 / 0.09, rtol=1e-4)


def test_complex_states_have_event_times_with_derivatives() -> None:
    def passage(size: Any) -> Any:
        own = solve_ivp(
            lambda t, y: [1j * y[0]], (0.0, 3.0), fnp.stack([size + 0j]),
            events=event(lambda t, y: y[0].real - 0.3, True), **TIGHT,
        )  # fmt: skip
        return own.t[-1]

    assert_allclose(passage(1.0), np.arccos(0.3), rtol=1e-8)
    assert_allclose(ft.grad(passage)(1.0), 0.3 / np.sqrt(1 - 0.09), rtol=1e-7)


def test_tensors() -> None:
    start = ft.tensor([3.0, 0.0], requires_grad=True)
    own = solve_ivp(falling, (0.0, 50.0), start, events=event(angle, True, -1), **TIGHT)
    own.t[-1].backward()
    time = np.sqrt(6 / GRAVITY)
    assert_allclose(start.grad.numpy(), [time / 6, 1 / GRAVITY], rtol=1e-7)


# what goes wrong --------------------------------------------------------------------------------


def test_events_in_staged_code_are_refused_with_what_to_do() -> None:
    def by_event(c: Any) -> Any:
        return solve_ivp(lambda t, y: -y, (0.0, 5.0), [1.0], events=lambda t, y: y[0] - c).t[-1]

    def by_time(c: Any) -> Any:
        own = solve_ivp(
            lambda t, y: -y, (0.0, 5.0), [1.0], events=event(angle), t_eval=fnp.stack([c])
        )
        return own.y

    for staged in (
        lambda: ft.jit(time_of_fall)(3.0, GRAVITY),
        lambda: ft.vmap(time_of_fall, (0, None))(np.ones(2), GRAVITY),
        lambda: ft.jit(ft.grad(time_of_fall))(3.0, GRAVITY),
        lambda: ft.jit(by_event)(0.3),
        lambda: ft.jit(by_time)(0.3),
    ):
        with pytest.raises(UnsupportedOperationError, match=r"outside of jit and vmap.* brentq"):
            staged()

    @ft.jit
    def known(x: Any) -> Any:
        return x * solve_ivp(falling, (0, 9), [10.0, 0.0], events=event(angle, True)).t[-1]

    assert_allclose(known(2.0), 2 * np.sqrt(20 / GRAVITY), rtol=1e-9)


UNSEEN: dict[str, Any] = {}


def test_traced_values_in_objects_are_found() -> None:
    class Level:
        def __init__(self, level: Any) -> None:
            self.level = level

        def __call__(self, t: Any, y: Any) -> Any:
            return y[0] - self.level

    def passage(level: Any, size: Any) -> Any:
        own = solve_ivp(lambda t, y: -y, (0, 5), fnp.stack([size]), events=Level(level))
        assert own.t_events is not None
        return own.t_events[0][0]

    assert_allclose(ft.grad(passage, (0, 1))(0.3, 1.0), (-1 / 0.3, 1.0), rtol=1e-3)
    assert_allclose(ft.grad(ft.grad(passage))(0.3, 1.0), 1 / 0.09, rtol=1e-2)


def test_traced_values_that_are_not_seen_are_refused() -> None:
    def passage(level: Any) -> Any:
        UNSEEN["level"] = level
        own = solve_ivp(
            lambda t, y: -y, (0, 5), np.ones(1), events=lambda t, y: y[0] - UNSEEN["level"]
        )
        assert own.t_events is not None
        return own.t_events[0][0]

    for transform in (ft.grad, ft.hessian):
        with pytest.raises(UnsupportedOperationError, match="in a global variable"):
            transform(passage)(0.3)


def test_bad_events() -> None:
    def solve(events: Any, y0: Any = (1.0, 2.0)) -> Any:
        return solve_ivp(lambda t, y: -y, (0.0, 1.0), np.array(y0), events=events)

    for terminal in (1.5, -1, "yes", np.nan):
        with pytest.raises(ValueError, match="must be a boolean or a positive integer"):
            solve(event(angle, terminal))
    for bad in (3, [angle, 3]):
        with pytest.raises(TypeError, match="events: expected a function, got int"):
            solve(bad)
    with pytest.raises(ShapeError, match=r"returned f64\[2\].*must return a number"):
        solve(lambda t, y: y)
    with pytest.raises(TypeError, match=r"returned c128\[\].*real part"):
        solve(angle, (1j, 1.0))
