"""Derivatives at kinks are the declared ones, in both modes, staged and batched."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.conventions import KINKS, Kink, kink
from functrans.primitives.cumulative import cumlogsumexp, cummax, cummin
from functrans.primitives.indexing import scatter
from functrans.primitives.reduction import logsumexp
from functrans.primitives.sorting import top_k
from functrans.scipy import special
from helpers import assert_close

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row.function}-{row.point}") for row in KINKS]
)
def test_example_has_the_declared_value(row: Kink) -> None:
    names = {"ft": ft, "np": np, "fnp": fnp}
    with np.errstate(all="ignore"):
        found, expected = eval(row.example, names), eval(row.value, names)
    assert_close(found, ft.tree.map(np.asarray, expected))


def test_table_is_queried_by_function() -> None:
    assert [row.function for row in kink("min")] == ["max, min"]
    assert kink("sin") == ()
    assert all(row.reason for row in KINKS)


def _scattered(op: str) -> Any:
    indices = (np.array([0, 1, 0, 1]),)
    return lambda x: scatter(x[:3], x[3:], indices, (0,), op)


def _pair(ufunc: Any) -> Any:
    return lambda x: ufunc(x[: len(x) // 2], x[len(x) // 2 :])


THIRD = 1 / 3

# name, function, point, gradient of the sum of its results
GRADIENTS = (
    ("absolute", np.abs, [0.0, -0.0, 2.0], [0.0, 0.0, 1.0]),
    ("absolute of complex", lambda x: np.abs(x + 0j * x), [0.0, 2.0], [0.0, 1.0]),
    ("maximum", _pair(np.maximum), [1.0, 0, 2, 1, -0.0, 1], [0.5, 0.5, 1, 0.5, 0.5, 0]),
    ("minimum", _pair(np.minimum), [1.0, 0, 2, 1, -0.0, 1], [0.5, 0.5, 0, 0.5, 0.5, 1]),
    ("maximum with NaN", lambda x: np.maximum(x[0], x[1:]), [NAN, 1.0, NAN], [1.5, 0, 0.5]),
    ("fmax with NaN", lambda x: np.fmax(x[0], x[1:]), [NAN, 1.0, NAN], [0.5, 1.0, 0.5]),
    ("max", np.max, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    ("min", np.min, [1.0, 1.0, 1.0, 4.0], [THIRD, THIRD, THIRD, 0.0]),
    ("max with NaN", np.max, [NAN, 3.0, NAN], [0.5, 0.0, 0.5]),
    ("clip", lambda x: np.clip(x, -1.0, 1.0), [-1.0, 1.0, 2.0, 0.0], [1.0, 1.0, 0.0, 1.0]),
    ("prod with a zero", np.prod, [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    ("prod with two zeros", np.prod, [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ("cumprod with a zero", np.cumprod, [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
    ("cummax", lambda x: cummax(x, 0), [1.0, 1.0, 0.0, 1.0], [2 + THIRD, 1 + THIRD, 0, THIRD]),
    ("cummin in reverse", lambda x: cummin(x, 0, reverse=True), [1.0, 2.0, 1.0], [0.5, 0, 2.5]),
    ("logsumexp of -inf", lambda x: logsumexp(x, (0,)), [-INF, -INF], [0.5, 0.5]),
    ("logsumexp of inf", lambda x: logsumexp(x, (0,)), [INF, 0.0, INF], [0.5, 0.0, 0.5]),
    ("cumlogsumexp of -inf", lambda x: cumlogsumexp(x, 0), [-INF, -INF], [1.5, 0.5]),
    ("logaddexp", _pair(np.logaddexp), [INF, INF], [0.5, 0.5]),
    ("sort", lambda x: np.sort(x) * np.arange(1.0, 4.0), [2.0, 1.0, 2.0], [2.0, 1.0, 3.0]),
    ("top_k", lambda x: top_k(x, 2)[0] * np.array([1.0, 2.0]), [1.0, 2.0, 2.0], [0.0, 1.0, 2.0]),
    ("hypot", _pair(np.hypot), [0.0, 0.0], [0.0, 0.0]),
    ("norm", np.linalg.norm, [0.0, 0.0], [0.0, 0.0]),
    ("squared norm", lambda x: np.linalg.norm(x) ** 2, [0.0, 0.0], [0.0, 0.0]),
    ("power to zero", lambda x: x**0, [0.0, 1.0], [0.0, 0.0]),
    ("power of zero", lambda x: np.power(0.0, x), [2.0, 0.5], [0.0, 0.0]),
    ("rounding", lambda x: np.sign(x) + np.floor(x) + np.rint(x), [0.0, 1.0, 0.5], [0.0] * 3),
    ("where not taken", lambda x: np.where(x >= 0, x, np.sqrt(-x)), [1.0, 0.0], [1.0, 1.0]),
    ("where at infinity", lambda x: np.where(x < 1, np.cos(x), 0.0), [INF, 0.0], [0.0, 0.0]),
    ("scatter of maxima", _scattered("maximum"),
     [1.0, 0, 2, 1, 0, 1, -1], [THIRD, 0.5, 1.0, THIRD, 0.5, THIRD, 0]),
    ("scatter of products", _scattered("multiply"),
     [1.0, 0, 2, 1, 0, 3, 1], [3.0, 0, 1, 3, 0, 1, 0]),
)  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(case, id=case[0]) for case in GRADIENTS])
def test_gradient_at_a_kink_is_the_same_in_all_modes(case: Any) -> None:
    _, fun, point, expected = case
    x, gradient = np.array(point), np.array(expected)

    def total(x: Any) -> Any:
        return np.sum(fun(x))

    with np.errstate(all="ignore"):
        assert_close(ft.grad(total)(x), gradient, "reverse")
        assert_close(ft.jacfwd(total)(x), gradient, "forward")
        assert_close(ft.jit(ft.grad(total))(x), gradient, "jit of reverse")
        assert_close(ft.jit(ft.jacfwd(total))(x), gradient, "jit of forward")
        batch = np.stack([x, x])
        assert_close(ft.vmap(ft.grad(total))(batch), np.stack([gradient] * 2), "vmap of reverse")
        assert_close(ft.jacrev(fun)(x).reshape(-1, len(x)).sum(0), gradient, "jacrev")


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case[0]) for case in GRADIENTS if np.isfinite(case[2]).all()]
)
def test_second_derivative_at_a_kink_is_finite(case: Any) -> None:
    _, fun, point, _ = case
    with np.errstate(all="ignore"):
        hessian = ft.hessian(lambda x: np.sum(fun(x)))(np.array(point))
    assert np.isfinite(hessian).all()
    assert_close(hessian, hessian.T)


STEPS: dict[str, Any] = {
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "fix": np.fix, "round": np.round, "angle": np.angle, "angle in degrees": lambda x:
    np.angle(x, deg=True), "heaviside": lambda x: np.heaviside(x, 0.5), "spacing": np.spacing,
    "floor_divide": lambda x: np.floor_divide(x, 0.5), "exponent": lambda x: np.frexp(x)[1] * 1.0,
}  # fmt: skip


@pytest.mark.parametrize("run", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_have_the_slope_zero_everywhere(name: str, run: Any) -> None:
    step = STEPS[name]
    xs = np.array([-2.0, -1.5, -0.0, 0.0, 0.3, 1.0, 2.5])
    for function in (step, lambda x: step(x * x)):
        for first in (
            ft.grad(function), ft.grad(ft.grad(function)),
            lambda x, f=function: ft.jvp(f, (x,), (1.0,))[1],
        ):  # fmt: skip
            own = run(first)
            np.testing.assert_array_equal(own(xs) if run is ft.vmap else [own(x) for x in xs], 0)


@pytest.mark.filterwarnings("ignore:divide by zero")  # which flags are raised: by the processor
@pytest.mark.parametrize("run", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
def test_a_power_with_an_infinite_exponent_is_a_step(run: Any) -> None:
    x = np.array([-1.5, -0.5, 0.0, 0.5, 0.99, 1.5])
    for exponent, flat in ((np.inf, abs(x) < 1), (-np.inf, abs(x) > 1)):
        first = ft.grad(lambda x, b=exponent: x**b)
        slopes = run(ft.vmap(first) if run is not ft.vmap else first)(x)
        np.testing.assert_array_equal(slopes[flat], 0)
        np.testing.assert_array_equal(abs(slopes[~flat]), np.inf)
        np.testing.assert_array_equal(ft.vmap(ft.grad(first))(x), 0)
        _, series = ft.jet(
            run(lambda x, b=exponent: x**b), (x,), ([np.ones(6), *[np.zeros(6)] * 2],)
        )
        np.testing.assert_array_equal(series, [slopes, *[np.zeros(6)] * 2])


@pytest.mark.parametrize("run", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
def test_the_slope_in_a_negative_base_needs_none_in_the_exponent(run: Any) -> None:
    x, b = np.array([-2.0, -0.5, 3.0]), np.array([3.0, 2.0, 2.0])
    power = run(lambda x, b: x**b)
    with np.errstate(invalid="ignore"):
        _, forward = ft.jvp(power, (x, b), (np.ones(3), np.zeros(3)))
        reverse = ft.vjp(power, x, b)[1](np.ones(3))
    assert_close(forward, b * x ** (b - 1))
    assert_close(reverse[0], b * x ** (b - 1))
    np.testing.assert_array_equal(np.isnan(reverse[1]), x < 0)


EDGES = (
    ("arccosh", np.arccosh, 1.0),
    ("arcsin", np.arcsin, 1.0),
    ("arccos", np.arccos, -1.0),
    ("arctanh", np.arctanh, 1.0),
    ("sqrt", lambda x: np.sqrt(x - 1), 1.0),
    ("log", lambda x: np.log(x - 1), 1.0),
    ("reciprocal", lambda x: 1 / (x - 1), 1.0),
    ("ellipe", special.ellipe, 1.0),
    ("spence", lambda x: special.spence(x - 1), 1.0),
    ("distance", lambda x: np.linalg.norm(x - 1), 1.0),
)
ZERO_EXPONENTS = (0, 0.0, -0.0, 0j)
CONSTANT_MODES: dict[str, Any] = {
    "jvp": lambda f, x: ft.jvp(f, (x,), (np.ones_like(x),))[1],
    "grad": lambda f, x: ft.grad(lambda x: np.sum(f(x)))(x),
    "jit of grad": lambda f, x: ft.jit(ft.grad(lambda x: np.sum(f(x))))(x),
    "vmap of jvp": lambda f, x: ft.vmap(lambda v: ft.jvp(f, (v,), (1.0,))[1])(x),
    "columns": lambda f, x: np.sum(ft.jacfwd(f)(x), -1),
    "third": lambda f, x: np.sum(ft.hessian(ft.grad(lambda x: np.sum(f(x))))(x), (0, 1)),
    "jet": lambda f, x: ft.jet(f, (x,), ((np.ones_like(x),),))[1][0],
}


@pytest.mark.parametrize("mode", CONSTANT_MODES)
@pytest.mark.parametrize("exponent", ZERO_EXPONENTS)
def test_power_zero_is_a_constant_whatever_is_made_of_it(mode: str, exponent: Any) -> None:
    x = np.array([-0.5, 1.4, 0.0])
    wrong = []
    for name, edge, at in EDGES:

        def f(x: Any, edge: Any = edge, at: Any = at) -> Any:
            return np.sin(x) + edge(np.real(at * x**exponent))

        with np.errstate(all="ignore"):
            found = CONSTANT_MODES[mode](f, x)
            expected = CONSTANT_MODES[mode](lambda x: np.sin(x) + 0 * x, x)
        if not np.allclose(found, expected):
            wrong.append(f"{name}: {found} instead of {expected}")
    assert not wrong, "\n".join(wrong)
