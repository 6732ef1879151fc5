"""Quadrature of ``scipy.integrate``: rules on samples and adaptive integration."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
from scipy_cases import Case, check

import functrans as ft
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.scipy.integrate import quadrature

R = np.random.default_rng(16)
Y = R.standard_normal((3, 7))
YE = R.standard_normal((3, 6))
X = np.cumsum(R.uniform(0.3, 1.2, 7))
XS = np.cumsum(R.uniform(0.3, 1.2, (3, 7)), axis=1)
V = R.standard_normal(9)
quad = ft.scipy.integrate.quad

SAMPLES = (
    Case("trapezoid", lambda m, y: m.trapezoid(y), Y),
    Case("trapezoid x", lambda m, y, x: m.trapezoid(y, x), Y, X),
    Case("trapezoid dx axis", lambda m, y, d: m.trapezoid(y, dx=d, axis=0), Y, np.asarray(0.3)),
    Case("cumulative_trapezoid", lambda m, y: m.cumulative_trapezoid(y, initial=0), Y),
    Case("cumulative_trapezoid x", lambda m, y, x: m.cumulative_trapezoid(y, x), Y, XS),
    Case("trapezoid of x", lambda m, x: m.trapezoid(Y, x), X),
    Case("cumulative_trapezoid of x", lambda m, x: m.cumulative_trapezoid(Y, x), X),
    Case("simpson", lambda m, y: m.simpson(y, dx=0.2), Y),
    Case("simpson even", lambda m, y: m.simpson(y, axis=1), YE),
    Case("simpson x", lambda m, y, x: m.simpson(y, x=x), Y, X),
    Case("simpson even x", lambda m, y, x: m.simpson(y, x=x), YE, X[:6]),
    Case("simpson two", lambda m, y, x: m.simpson(y, x=x), YE[:, :2], X[:2]),
    Case("cumulative_simpson", lambda m, y: m.cumulative_simpson(y, dx=0.4), YE),
    Case("cumulative_simpson x", lambda m, y, x: m.cumulative_simpson(y, x=x, initial=0), Y, X),
    Case("cumulative_simpson axis", lambda m, y: m.cumulative_simpson(y, axis=0), Y),
    Case("cumulative_trapezoid one", lambda m, y: m.cumulative_trapezoid(y, initial=0), Y[:, :1]),
    Case("cumulative_simpson one", lambda m, y: m.cumulative_simpson(y, initial=0), Y[:, :1]),
    Case("cumulative_simpson two", lambda m, y: m.cumulative_simpson(y, dx=0.4), Y[:, :2]),
    Case(
        "simpson equal x",
        lambda m, y: m.simpson(y, x=np.array([0.0, 1, 1, 2, 3])),
        Y[:, :5],
        keeps_single=False,
    ),
    Case(
        "simpson even equal x",
        lambda m, y: m.simpson(y, x=np.array([0.0, 1, 1, 2])),
        Y[:, :4],
        keeps_single=False,
    ),
    Case("romb", lambda m, y: m.romb(y, 0.25), V),
    Case("romb axis", lambda m, y: m.romb(y, axis=0), Y),
    Case("fixed_quad", lambda m, a, b: m.fixed_quad(np.exp, a, b)[0], 0.2, 1.5, keeps_single=False),
    Case(
        "fixed_quad args",
        lambda m, p: m.fixed_quad(lambda x, q: x**q, 0.5, 1.0, (p,), 4)[0],
        1.3,
        keeps_single=False,
    ),
)


@pytest.mark.parametrize("case", SAMPLES, ids=repr)
def test_rule_agrees_with_scipy_and_differences(case: Case) -> None:
    check(case, "integrate")


INTEGRALS = (
    Case("quad", lambda m, p, a, b: m.quad(lambda x: np.sin(p * x * x), a, b)[0], 1.3, 0.2, 2.0),
    Case("quad args", lambda m, p: m.quad(lambda x, q: np.exp(-q * x), 0, 3, (p,))[0], 0.7),
    Case("quad half line", lambda m, p: m.quad(lambda x: np.exp(-p * x * x), 0.5, np.inf)[0], 0.7),
    Case("quad other half", lambda m, b: m.quad(lambda x: np.exp(x), -np.inf, b)[0], 0.3),
    Case("quad line", lambda m, p: m.quad(lambda x: np.exp(-p * x * x), -np.inf, np.inf)[0], 0.7),
    Case("quad backwards", lambda m, a: m.quad(lambda x: np.cos(x), a, 0.1)[0], 0.7),
    Case("quad singular", lambda m, b: m.quad(lambda x: np.log(x), 0.0, b)[0], 0.7),
    Case(
        "quad points",
        lambda m, p: m.quad(lambda x: p * np.abs(x - 0.3), 0.0, 1.0, points=[0.3])[0],
        0.7,
    ),
    Case(
        "quad_vec",
        lambda m, p: m.quad_vec(lambda x: np.stack([np.cos(p * x), np.exp(p * x)]), 0, 1.0)[0],
        1.3,
    ),
    Case(
        "dblquad",
        lambda m, p: m.dblquad(lambda y, x: np.exp(-p * x * y), 0.0, 1.0, 0.0, lambda x: x + p)[0],
        0.7,
        order=1,
    ),
)


@pytest.mark.parametrize("case", INTEGRALS, ids=repr)
def test_integral_agrees_with_scipy_and_differences(case: Case) -> None:
    case.rtol, case.keeps_single = 1e-8, False
    check(case, "integrate")


def test_rule_has_its_degree() -> None:
    """The Kronrod rule of 21 points is exact to degree 31, the Gaussian one to degree 19."""
    for degree in range(0, 32, 2):
        exact = 2 / (degree + 1)
        assert np.sum(quadrature.KRONROD * quadrature.NODES**degree) == pytest.approx(exact, 1e-14)
        if degree < 20:
            assert np.sum(quadrature.GAUSS * quadrature.NODES**degree) == pytest.approx(
                exact, 1e-14
            )


def test_limits_have_the_values_of_the_integrand() -> None:
    def f(x: Any) -> Any:
        return np.sqrt(x) * np.log(x)

    slopes = ft.grad(lambda a, b: quad(f, a, b)[0], (0, 1))(0.5, 2.0)
    np.testing.assert_allclose(slopes, [-f(0.5), f(2.0)], rtol=1e-13)


def test_integrand_may_refer_to_traced_values() -> None:
    def outer(p: Any) -> Any:
        return quad(lambda x: np.exp(-p * x), 0.0, np.inf)[0]

    assert ft.grad(outer)(2.0) == pytest.approx(-0.25, rel=1e-12)
    assert ft.grad(ft.grad(outer))(2.0) == pytest.approx(0.25, rel=1e-11)
    np.testing.assert_allclose(ft.vmap(outer)(np.array([1.0, 2.0])), [1.0, 0.5], rtol=1e-12)


def test_error_estimate_is_flagged() -> None:
    def rough(p: Any) -> Any:
        return quad(lambda x: np.sin(300 * p * x) ** 2, 0.0, 1.0, limit=3)

    with pytest.warns(scipy.integrate.IntegrationWarning, match="after 3 pieces"):
        ft.grad(lambda p: rough(p)[0])(1.0)
    _, error = ft.jit(rough)(1.0)
    assert error > 1e-6

    def told(p: Any) -> Any:
        return quad(lambda x: np.sin(300 * p * x) ** 2, 0.0, 1.0, limit=3, full_output=1)[2]

    assert not ft.jit(told)(1.0)["success"]
    assert ft.jit(lambda p: quad(lambda x: x * p, 0.0, 1.0, full_output=1)[2])(1.0)["success"]


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_traced_limits_may_be_infinite(way: Any) -> None:
    def bell(a: Any, b: Any) -> Any:
        return quad(lambda x: np.exp(-x * x), a, b)[0]

    ends = np.array([0.3, np.inf, -np.inf, -1.2])
    pairs = np.stack(np.meshgrid(ends, ends), -1).reshape(-1, 2).T
    expected = [scipy.integrate.quad(lambda x: np.exp(-x * x), a, b)[0] for a, b in pairs.T]
    np.testing.assert_allclose(way(ft.vmap(bell))(*pairs), expected, atol=1e-9)
    slopes = way(ft.vmap(ft.grad(bell, (0, 1))))(*pairs)
    np.testing.assert_allclose(slopes, np.exp(-(pairs**2)) * [[-1], [1]], atol=1e-7)
    rate = way(ft.vmap(ft.grad(lambda p, b: quad(lambda x: np.exp(-p * x), 0.5, b)[0]), (None, 0)))
    exact = -0.5 * np.exp(-1.0), -0.5 * np.exp(-1.0) + 0.75 * np.exp(-2.0)
    np.testing.assert_allclose(rate(2.0, np.array([np.inf, 1.0])), exact, atol=1e-8)


def test_arguments_are_those_of_scipy() -> None:
    for m in (scipy.integrate, ft.scipy.integrate):
        assert m.quad(np.exp, 0, 1, (), 0, 1e-8, 1e-8, 50, None, "cos", 2.0)[0] == pytest.approx(
            scipy.integrate.quad(lambda x: np.exp(x) * np.cos(2 * x), 0, 1)[0]
        )
        assert m.quad(lambda x: x * 1j, 0, 1, complex_func=True)[0] == pytest.approx(0.5j)
        found = m.quad_vec(
            lambda x: V * x, 0, 1, 1e-200, 1e-8, "max", 1e6, 100, 1, None, "gk15", True
        )
        np.testing.assert_allclose(found[0], V / 2)
        assert found[2].success


def test_plain_integrals_are_scipys() -> None:
    assert quad(np.exp, 0.0, 1.0) == scipy.integrate.quad(np.exp, 0.0, 1.0)
    found = ft.scipy.integrate.dblquad(lambda y, x: x * y, 0, 1, 0, 1)
    assert found == scipy.integrate.dblquad(lambda y, x: x * y, 0, 1, 0, 1)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m, y: m.trapezoid(y, X[:3]), ValueError, "do not broadcast"),
        (lambda m, y: m.cumulative_trapezoid(y, initial=1.0), ValueError, "initial"),
        (lambda m, y: m.fixed_quad(lambda x: x * y[0], 0.0, np.inf), ValueError, "use quad"),
        (
            lambda m, y: m.quad_vec(lambda x: x * y, 0.0, 1.0, full_output=True),
            UnsupportedOperationError,
            "leave them out",
        ),
        (lambda m, y: m.romb(y[:4]), ValueError, "power of 2"),
        (lambda m, y: m.quad(lambda x: x * y, 0.0, 1.0), ShapeError, "quad_vec"),
        (
            lambda m, y: m.quad(lambda x: x * y[0], 0.0, 1.0, weight="cos", wvar=2.0),
            UnsupportedOperationError,
            "weight",
        ),
        (lambda m, y: m.quad(lambda x: x * y[0], 0.0, 1.0, limit=0), ValueError, "limit"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ft.vjp(lambda y: call(ft.scipy.integrate, y) and y, V)
