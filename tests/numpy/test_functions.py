"""Elementwise functions that are no ufuncs, logic, polynomials, functions of functions."""

import numpy as np
import pytest
from numpy_cases import Case, check

import functrans as ft
import functrans.numpy as fnp

R = np.random.default_rng(5)
V = np.array([0.7, -1.9, 0.4, 2.3, 1.1, -0.2])
X = R.standard_normal((3, 4))
Z = X + 1j * R.standard_normal((3, 4))
N = np.array([0.5, np.nan, np.inf, -np.inf, 2.0])
KNOTS = np.array([-2.0, -0.5, 0.3, 1.0, 2.5])

ELEMENTS = (
    Case("clip", lambda x: np.clip(x, -0.5, 0.6), X),
    Case("clip low", lambda x: np.clip(x, 0.1, None), X),
    Case("clip bounds", lambda x, lo, hi: np.clip(x, lo, hi), X, X[0] - 0.4, np.asarray(0.8)),
    Case("clip max=", lambda x: np.clip(x, max=0.5), X),
    Case("round", np.round, X),
    Case("round 2", lambda x: np.round(x, 2), X),
    Case("round -1", lambda x: np.round(x * 40, -1), X),
    Case("round complex", lambda x: np.round(x, 1), Z),
    Case("around", np.around, X),
    Case("fix", np.fix, X * 3),
    Case("real", np.real, Z),
    Case("imag", np.imag, Z),
    Case("real of real", np.real, X),
    Case("imag of real", lambda x: np.imag(x) + x, X),
    Case("angle", np.angle, Z),
    Case("angle degrees", lambda x: np.angle(x, deg=True), Z),
    Case("angle real", lambda x: np.angle(x) + x, X),
    Case("real_if_close", lambda x: np.real_if_close(x + 0j), X, is_staged=False),
    Case("sinc", np.sinc, X),
    Case("sinc near 0", np.sinc, np.array([0.0, 1e-9, -1e-5, 0.01, 0.15, 0.17])),
    Case("i0", np.i0, np.array([-3.0, 0.0, 0.5, 7.9, 8.1, 30.0])),
    Case("nan_to_num", np.nan_to_num, N, is_smooth=False),
    Case(
        "nan_to_num values",
        lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0) * x[0],
        N,
        is_smooth=False,
    ),
    Case("nan_to_num complex", np.nan_to_num, Z),
    Case("unwrap", np.unwrap, np.array([0.1, 3.0, -3.0, 0.2, 6.0, 12.0])),
    Case("unwrap period", lambda x: np.unwrap(x, period=4, axis=0), X * 4),
    Case("interp", lambda x, xp, fp: np.interp(x, xp, fp), V, KNOTS, V[:5] ** 2),
    Case("interp ends", lambda x, fp: np.interp(x, KNOTS[1:4], fp, left=-9.0, right=9.0), V, V[:3]),
    Case("interp period", lambda x, fp: np.interp(x, [0.1, 2.0, 1.2], fp, period=2.7), V, V[:3]),
    Case("interp complex", lambda fp: np.interp(V, KNOTS, fp), Z.ravel()[:5]),
    Case("interp one", lambda x, fp: np.interp(x, [0.5], fp), V, V[:1]),
    Case(
        "piecewise", lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: -v, np.exp, np.square]), V
    ),
    Case("piecewise values", lambda x: np.piecewise(x, [x < 0], [lambda v, k: k * v, 5.0], 3.0), X),
    Case("heaviside", lambda x: np.heaviside(x, 0.0) * x, X),
    Case("isclose", lambda x: np.where(np.isclose(x, X + 1e-9), x, 0), X, is_smooth=False),
    Case("isreal", lambda x: np.where(np.isreal(x), x, 2 * x), Z),
    Case("iscomplex", lambda x: np.where(np.iscomplex(x), x, 2 * x), Z),
    Case("isposinf", lambda x: np.where(np.isposinf(x) | np.isneginf(x), 0, x), N, is_smooth=False),
)

POLYNOMIALS = (
    Case("polyval", np.polyval, V, X),
    Case("polyadd", np.polyadd, V, X[0]),
    Case("polysub", np.polysub, X[0], V),
    Case("polymul", np.polymul, V, X[0]),
    Case("polydiv", lambda u, v: np.polydiv(u, v), V, X[0] + 3, is_staged=False),
    Case("polyder", lambda p: np.polyder(p, 2), V),
    Case("polyint", lambda p: np.polyint(p, 2, [1.0, 2.0]), V),
    Case("poly", np.poly, V[:4]),
    Case("polyfit", lambda x, y: np.polyfit(x, y, 2), V, X.ravel()[:6], rtol=1e-5),
    Case(
        "polyfit weights", lambda y, w: np.polyfit(V, y, 1, w=w), X.ravel()[:6], V**2 + 1, rtol=1e-5
    ),
    Case("polyfit cov", lambda y: np.polyfit(V, y, 1, cov=True), X.ravel()[:6], rtol=1e-5),
    Case(
        "roots",
        lambda p: np.sort(np.abs(np.roots(p))),
        np.array([1.0, -6.0, 11.0, -5.9]),
        is_staged=False,
        rtol=1e-5,
    ),
)


def _norm_of(v):
    return np.sqrt(np.sum(v * v)) if v[0] > 0 else np.sum(v)


FUNCTIONS = (
    Case("apply_along_axis", lambda x: np.apply_along_axis(_norm_of, 1, x), X, is_staged=False),
    Case("apply_along_axis vector", lambda x: np.apply_along_axis(np.cumsum, 0, x), X),
    Case(
        "apply_along_axis matrix", lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, x), X
    ),
    Case("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x, [0, 1]), X),
)


@pytest.mark.parametrize("case", [*ELEMENTS, *POLYNOMIALS, *FUNCTIONS], ids=repr)
def test_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


def test_sinc_has_exact_second_derivatives_at_zero() -> None:
    np.testing.assert_allclose(ft.hessian(np.sinc)(0.0), -(np.pi**2) / 3, rtol=1e-14)
    np.testing.assert_allclose(ft.hessian(np.sinc)(0.2), _sinc_second(0.2), rtol=1e-12)


def _sinc_second(x):
    y = np.pi * x
    return np.pi**2 * ((2 / y**3 - 1 / y) * np.sin(y) - 2 * np.cos(y) / y**2)


def test_nan_to_num_in_place() -> None:
    def f(x):
        y = x * 1.0
        np.nan_to_num(y, copy=False)
        return y

    np.testing.assert_array_equal(ft.vjp(f, N)[0], np.nan_to_num(N))


@pytest.mark.usefixtures("names_as_they_are")
def test_comparisons_give_bools_when_values_are_known() -> None:
    def f(x):
        assert np.allclose(x, X)
        assert np.array_equal(x, X)
        assert not np.array_equal(x, X[0])
        assert np.array_equiv(x[0], np.stack([X[0], X[0]]))
        assert np.isrealobj(x)
        assert not np.iscomplexobj(x)
        assert np.result_type(x, np.float32) == np.float64
        assert np.can_cast(x, np.float64)
        assert np.common_type(x) is np.float64
        assert np.shape(x) == (3, 4)
        assert np.ndim(x) == 2
        assert np.size(x, 1) == 4
        assert np.shares_memory(x, x.T)
        assert not np.may_share_memory(x, x * 1.0)
        return x.sum()

    ft.grad(f)(X)


def test_staged_comparisons_are_traced() -> None:
    jaxpr = ft.make_jaxpr(lambda x: (np.allclose(x, X), np.array_equal(x, X + 1)))(X)
    outs = ft.eval_jaxpr(jaxpr, None, X)
    assert [bool(out) for out in outs] == [True, False]


def test_vectorize_calls_once_per_element() -> None:
    @fnp.vectorize
    def f(a, b):
        return a * b if a > b else a - b

    x, y = X[:, :3], V[:3]
    assert f(x, y).shape == x.shape
    expected = np.where(x > y, x * y, x - y)
    np.testing.assert_allclose(ft.vjp(f, x, y)[0], expected)
    np.testing.assert_allclose(ft.grad(lambda a: f(a, y).sum())(x), np.where(x > y, y + 0 * x, 1.0))


def test_vectorize_with_signature_is_batched_in_staging() -> None:
    f = fnp.vectorize(lambda a, v: (a @ v, np.sum(v)), signature="(m,n),(n)->(m),()")
    a = R.standard_normal((5, 2, 3))
    v = V[:3]
    for outs in (
        ft.vjp(f, a, v)[0],
        ft.eval_jaxpr(ft.make_jaxpr(f)(a, v), None, a, v),
        f(a, v),
    ):
        np.testing.assert_allclose(outs[0], a @ v)
        np.testing.assert_allclose(outs[1], np.full(5, v.sum()))
    g = fnp.vectorize(lambda x, p: np.polyval(p, x), excluded={1})
    np.testing.assert_allclose(ft.vjp(lambda x: g(x, [1.0, 2.0]), V)[0], V + 2)


def test_plain_arguments_give_plain_numpy_results() -> None:
    assert type(fnp.sum(V)) is np.float64
    assert type(fnp.clip(V, 0, 1)) is np.ndarray
    assert fnp.pi == np.pi
    assert fnp.float32 is np.float32
    assert fnp.newaxis is None
    assert fnp.random is np.random
    with pytest.raises(AttributeError, match="nothing"):
        _ = fnp.nothing


def test_namespace_has_numpys_functions() -> None:
    dates = {"busday_count", "busday_offset", "datetime_as_string", "is_busday", "isnat"}
    names = {
        name
        for name in dir(np)
        if not name.startswith("_")
        and isinstance(getattr(np, name), (np.ufunc, type(np.sum), type(np.array)))
    }
    helpers = {"datetime_data", "frompyfunc", "nested_iters"}  # of dates, and not of arrays
    assert {name for name in names if not hasattr(fnp, name)} == dates | helpers
