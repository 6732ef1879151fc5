"""Functions that decide by values where none are known, against the same written with ``where``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from numpy.testing import assert_allclose

import functrans as ft
import functrans.numpy as fnp
from cases import each
from functrans.errors import ConcretizationError, PathLimitError
from functrans.jitted.forks import LIMIT, forked

# functions of a number and a parameter: with choices of Python's, and without


def one_choice(t: Any, p: Any) -> Any:
    if t * p > 1:
        return p * np.exp(1 - t * p)
    return p * p * t


def one_choice_where(t: Any, p: Any) -> Any:
    return np.where(t * p > 1, p * np.exp(1 - t * p), p * p * t)


def guarded(t: Any, p: Any) -> Any:
    """The path that is not taken has no finite value."""
    x = p * (t - 1.0)
    if abs(x) < 1e-3:
        return 1.0 + x / 2
    return np.expm1(x) / x


def guarded_where(t: Any, p: Any) -> Any:
    x = p * (t - 1.0)
    is_small = abs(x) < 1e-3
    safe = np.where(is_small, 1.0, x)
    return np.where(is_small, 1.0 + x / 2, np.expm1(safe) / safe)


def several(t: Any, p: Any) -> Any:
    """Choices one after the other, nested, of results of choices; ``and``, ``max``."""
    y = 0.5 * p
    if t > 0.8:
        y = y + t * p
        if y > 2.0 and t < 1.6:
            y = 3.0 * y - 4.0
    elif t < 0.3:
        return 0.25
    total = max(y, 0.6)
    return total if total < 3.0 else 3.0 + np.log(total / 3.0)


def several_where(t: Any, p: Any) -> Any:
    y = np.where(t > 0.8, 0.5 * p + t * p, 0.5 * p)
    y = np.where((t > 0.8) & (y > 2.0) & (t < 1.6), 3.0 * y - 4.0, y)
    total = fnp.maximum(y, 0.6)
    total = np.where(total < 3.0, total, 3.0 + np.log(total / 3.0))
    return np.where(t < 0.3, 0.25, total)


def kinds(t: Any, p: Any) -> Any:
    """Integers on some paths."""
    x = t * p
    if x < 1:
        return 0
    return (x - 1) ** 2 if x < 3 else 4


def kinds_where(t: Any, p: Any) -> Any:
    return np.where(t * p < 1, 0.0, np.where(t * p < 3, (t * p - 1) ** 2, 4.0))


def written(t: Any, p: Any) -> Any:
    """Arrays of values from outside, which are written to."""
    weights = np.array([p, 1.0 + p])
    weights[1] *= t
    if t * p > 1:
        weights[0] += t - 1 / p
    total = np.array(p)
    total -= t
    return weights.sum() * total


def written_where(t: Any, p: Any) -> Any:
    return (p + np.where(t * p > 1, t - 1 / p, 0.0) + (1.0 + p) * t) * (p - t)


FUNCTIONS = {
    "kinds": (kinds, kinds_where),
    "written": (written, written_where),
    "one": (one_choice, one_choice_where),
    "guarded": (guarded, guarded_where),
    "several": (several, several_where),
}


def _solution(f: Any, p: Any) -> Any:
    found = scipy.integrate.solve_ivp(
        lambda t, y: f(t, p) * y, (0.0, 2.0), [1.0], rtol=1e-10, atol=1e-12
    )
    return found.y[0, -1]


AT_JUMPS = {("several", "solve_ivp"), ("several", "odeint"), ("several", "quad of limits")}
"""Where SciPy's steps over a jump are too rough for differences."""

CUT = ("vectorize", "apply_along_axis")
CONSUMERS: dict[str, Callable[[Any, Any], Any]] = {
    "quad": lambda f, p: scipy.integrate.quad(f, 0.0, 2.0, (p,), points=[0.3, 0.8, 1.6])[0],
    "quad of limits": lambda f, p: scipy.integrate.quad(lambda t: f(t, p), 0.4, 0.5 * p)[0],
    "quad to infinity": lambda f, p: scipy.integrate.quad(
        lambda t: np.exp(-3 * t) * f(2 * t / (1 + t), p), 0.0, np.inf
    )[0],
    "dblquad": lambda f, p: scipy.integrate.dblquad(lambda s, t: s * f(t, p), 0.9, 1.5, 0, 1)[0],
    "odeint": lambda f, p: scipy.integrate.odeint(
        lambda y, t: f(t, p) * y, [1.0], [0.0, 2.0], rtol=1e-10, atol=1e-12
    )[-1, 0],
    "solve_ivp": _solution,
    "vectorize to floats": lambda f, p: np.sum(
        np.vectorize(f, otypes=[float])(np.linspace(0.1, 2.0, 7) * p, p)
    ),
    "vectorize": lambda f, p: np.sum(np.vectorize(f)(np.linspace(0.1, 2.0, 7) * p, p)),
    "apply_along_axis": lambda f, p: np.sum(
        np.apply_along_axis(lambda r: f(r[0], r[1]), 0, p * np.array([[0.2, 0.5, 1.1], [1, 1, 2]]))
    ),
    "brentq": lambda f, p: scipy.optimize.brentq(lambda t: f(t, p) - t**3, 0.5, 3.0, xtol=1e-14),
}


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")  # kinks
@each("consumer", CONSUMERS, one_of=6, full=4)
@each("name", FUNCTIONS, by="name")
def test_choices_are_those_of_where(name: str, consumer: str) -> None:
    decides, where = FUNCTIONS[name]
    if (name, consumer) in (("several", "brentq"), ("kinds", "brentq")):
        pytest.skip("the sign changes at a jump, which is no root, or not at all")
    if name == "kinds" and consumer in CUT:
        pytest.skip("NumPy cuts the results to the first one's type")
    use = CONSUMERS[consumer]

    def f(p: Any) -> Any:
        return use(decides, p)

    def expected(p: Any) -> Any:
        return use(where, p)

    p = 2.2
    tolerance = 1e-6 if consumer in ("odeint", "solve_ivp") or "quad" in consumer else 1e-11
    if name != "kinds" or consumer not in ("vectorize", "apply_along_axis"):  # NumPy cuts fractions
        assert_allclose(f(p), expected(p), tolerance)
    gradient = ft.grad(expected)(p)  # what is expected is not compiled
    for found, known in (
        (ft.grad(f)(p), gradient),
        (ft.grad(ft.grad(f))(p), ft.grad(ft.grad(expected))(p)),
        (ft.jit(f)(p), expected(p)),
        (ft.jit(ft.grad(f))(p), gradient),
    ):
        assert_allclose(found, known, tolerance, tolerance)
    if name != "kinds" and (name, consumer) not in AT_JUMPS:
        slope = (f(p + 1e-4) - f(p - 1e-4)) / 2e-4
        assert_allclose(gradient, slope, 2e-3, 1e-4)  # differences of integrators' errors
    points = np.array([2.2, 2.3])
    assert_allclose(
        ft.vmap(ft.grad(f))(points), [ft.grad(expected)(x) for x in points], tolerance, tolerance
    )


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")  # a jump
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9, 0.99])
def test_a_threshold_decided_anywhere_in_the_interval_is_found(threshold: float) -> None:
    def area(p: Any) -> Any:
        return scipy.integrate.quad(lambda t: p * t if t > threshold else t, 0.0, 1.0)[0]

    def volume(p: Any) -> Any:
        def density(s: Any, t: Any) -> Any:
            return p * t if t > threshold else t

        return scipy.integrate.dblquad(density, 0.0, 1.0, lambda t: 0.0, lambda t: 1.0)[0]

    for f in (area, volume):
        for transform in (ft.grad, lambda f: ft.jit(ft.grad(f))):
            assert_allclose(transform(f)(2.2), 0.5 * (1 - threshold**2), 1e-6, 1e-7)


@pytest.mark.parametrize("transform", ["none", "jit", "vmap"])
def test_rows_that_a_function_writes_to_are_those_of_the_array(transform: str) -> None:
    def row(r: Any, c: Any) -> Any:
        r -= r.mean()
        if r[0] > 0.0:
            r[0] = c
        return r.std()

    def f(x: Any) -> Any:
        array = np.outer(np.array([1.0, -2.0]), x) + x[0]
        return np.append(np.apply_along_axis(row, 1, array, x[1]), array)

    x = np.array([0.7, 1.3, 0.2])
    slope = np.stack([(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)], -1)
    for function, expected in ((f, f(x)), (ft.jacobian(f), slope)):
        if transform == "vmap":
            found = ft.vmap(function)(x[None])[0]
        else:
            found = (ft.jit(function) if transform == "jit" else function)(x)
        assert_allclose(found, expected, 1e-7, 1e-8)


def test_a_path_that_raises_raises_where_it_is_taken() -> None:
    def slope(t: Any, y: Any, p: Any) -> Any:
        if y[0] < 0:
            raise ValueError("a negative population")
        return -p * y if t < 1 else -2.0 * p * y

    def last(p: Any, start: Any) -> Any:
        return scipy.integrate.solve_ivp(slope, (0.0, 2.0), np.array([start]), args=(p,)).y[0, -1]

    assert_allclose(ft.grad(last)(0.5, 1.0), -3.0 * np.exp(-1.5), 1e-2)
    assert_allclose(ft.jit(ft.grad(last))(0.5, 1.0), ft.grad(last)(0.5, 1.0))
    for run in (ft.grad(last), ft.jit(last), ft.jit(ft.grad(last))):
        with pytest.raises(Exception, match="a negative population"):
            run(0.5, -1.0)


@pytest.mark.parametrize(
    "transform",
    [
        ft.jit, ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.jit(ft.hessian(f)),
        lambda f: ft.jit(lambda x: ft.jvp(f, (x,), (x,))[1]),
        lambda f: lambda x: ft.vmap(ft.grad(f))(x[None]),
    ],
)  # fmt: skip
def test_a_path_that_raises_raises_whatever_is_asked_for(transform: Any) -> None:
    def root(t: Any) -> Any:
        if t <= 0:
            raise ValueError("no root")
        return np.sqrt(t)

    def vectorized(x: Any) -> Any:
        return np.sum(np.vectorize(root)(x))

    def integrated(x: Any) -> Any:
        return scipy.integrate.quad(lambda t: x[1] * root(t + x[0]), 0.5, 1.0)[0]

    for f in (vectorized, integrated):
        transform(f)(np.array([1.0, 2.0]))
        with pytest.raises(Exception, match="no root"):
            transform(f)(np.array([-2.0, 2.0]))


@pytest.mark.parametrize("consumer", CUT)
def test_results_that_numpy_would_cut_are_refused_where_values_are_known(consumer: str) -> None:
    """Where they are not, which result is the first is not known."""

    def f(p: Any) -> Any:
        return CONSUMERS[consumer](kinds, p)

    assert np.asarray(CONSUMERS[consumer](kinds, 2.2)).dtype.kind == "i"
    for run in (ft.grad(f), lambda p: ft.jvp(f, (p,), (1.0,))):
        with pytest.raises(TypeError, match="would cut"):
            run(2.2)
    assert_allclose(ft.jit(f)(2.2), CONSUMERS[consumer](kinds_where, 2.2))


def _of_one(function: Any) -> Callable[[Any], Any]:
    return lambda x: function(x)


def _of_pair(function: Any) -> Callable[[Any], Any]:
    return lambda x: function(x)[0] + 2 * function(x)[1]


@pytest.mark.parametrize("otypes", [None, [float], [complex], "f", [int]])
def test_results_of_paths_have_a_common_type(otypes: Any) -> None:
    paths: list[Callable[[Any], Any]] = [
        lambda v: 0 if v < 0 else v * v,
        lambda v: v * v if v > 0 else 1,
        lambda v: True if v < 0 else v,  # a number, too
        lambda v: 2j if v < 0 else v,
        lambda v: (0, v) if v < 0 else (v, 1.0),
    ]
    x = np.array([1.5, -2.0, 0.5])
    for path in paths:
        function = np.vectorize(path, otypes=otypes)
        is_complex = isinstance(path(-1.0), complex)
        is_pair = isinstance(path(-1.0), tuple)
        if (is_complex and otypes not in (None, [complex])) or (is_pair and otypes is not None):
            continue

        run = _of_pair(function) if is_pair else _of_one(function)
        expected = np.array([path(v) for v in x]) if is_complex else run(x)
        found, known = ft.jit(run)(x), ft.jvp(run, (x,), (np.ones(3),))[0]
        assert_allclose(found, expected, 1e-6)
        assert found.dtype == known.dtype == expected.dtype
        assert_allclose(known, expected, 1e-6)


def _outer_number(x: Any) -> Any:
    return np.array(x[0])


def _outer_buffer(x: Any) -> Any:
    y = np.zeros(2)
    y[:] = x
    return y


@pytest.mark.parametrize("decides", [False, True])
@pytest.mark.parametrize(
    "make", [_outer_number, _outer_buffer, lambda x: np.zeros(2), lambda x: np.zeros(()),
             lambda x: x * 2],
)  # fmt: skip
def test_arrays_made_outside_of_the_function_are_not_written_to(make: Any, decides: bool) -> None:
    def f(x: Any) -> Any:
        array = make(x)

        def density(t: Any) -> Any:
            own = np.array([x[0], x[1]])
            own[0] *= t
            view = array[..., :1] if array.ndim else array[...]
            if decides and t > 0.5:
                own[1] += t
            view *= own[0]
            return own.sum()

        return scipy.integrate.quad(density, 0.0, 1.0)[0] + array.sum()

    for transform in (ft.grad, ft.jit, lambda f: ft.jit(ft.grad(f))):
        with pytest.raises(ft.errors.AliasedWriteError, match="lost or seen twice"):
            transform(f)(np.array([0.3, 1.7]))


def test_what_always_raises_raises_at_once() -> None:
    def fails(t: Any) -> Any:
        raise KeyError("gone") if t > 1 else ValueError("wrong")

    with pytest.raises((KeyError, ValueError)):
        ft.grad(lambda p: scipy.integrate.quad(lambda t: p * fails(t), 0, 1)[0])(1.0)


def test_loops_that_end_by_values_are_refused() -> None:
    def halvings(t: Any, p: Any) -> Any:
        x = 100.0 * p * (t + 1)
        while x > 1e-12:
            x = x / 1.5
        return x

    with pytest.raises(PathLimitError, match=rf"more than {LIMIT} paths"):
        ft.grad(lambda p: scipy.integrate.quad(halvings, 0, 1, (p,))[0])(1.0)


def test_a_function_that_changes_between_calls_is_refused() -> None:
    calls = [0]

    def f(t: Any) -> Any:
        calls[0] += 1
        x = np.sin(t) if calls[0] % 2 else np.cos(t) + t
        return x if t > 0.5 else -x

    with pytest.raises(ConcretizationError, match="traced again"):
        ft.jit(lambda p: forked(f, "f")(p * 1.0))(1.0)


def test_other_questions_stay_refused() -> None:
    for ask in (int, float, lambda x: [1.0, 2.0][x.astype(int)], lambda x: bool(np.stack([x, x]))):
        with pytest.raises((ConcretizationError, TypeError, ValueError)):
            ft.jit(lambda p, ask=ask: forked(lambda x: x * ask(x), "f")(p * 1.0))(1.0)


def test_structures_of_paths_must_agree() -> None:
    with pytest.raises(ft.errors.FunctransError):
        ft.jit(lambda p: forked(lambda x: (x, x) if x > 0 else x, "f")(p * 1.0))(1.0)
    both = ft.jit(lambda p: forked(lambda x: {"a": x} if x > 0 else {"a": 0.0}, "f")(p * 1.0))
    assert both(2.0)["a"] == 2.0
    assert both(-2.0)["a"] == 0.0
