"""``scipy.interpolate``: values, derivatives, batches and compiled programs against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from scipy_cases import Case, check

import functrans as ft
from functrans.errors import ShapeError, UnsupportedOperationError

R = np.random.default_rng(15)
X = np.cumsum(R.uniform(0.5, 1.5, 7))
Y = R.standard_normal(7)
YS = R.standard_normal((7, 2))
T = R.uniform(X[0] + 0.05, X[-1] - 0.05, 6)
OUT = np.array([X[0] - 0.7, X[2] + 0.1, X[-1] + 0.4])
ROUND = np.concatenate([Y[:-1], Y[:1]])
KNOTS = np.concatenate([[X[0]] * 3, X, [X[-1]] * 3])
COEF = R.standard_normal(len(KNOTS) - 4)
GX, GY = np.cumsum(R.uniform(0.4, 1.2, 6)), np.cumsum(R.uniform(0.4, 1.2, 7))
GRID = R.standard_normal((6, 7))
AT = np.stack([R.uniform(GX[0] + 0.1, GX[-1] - 0.1, 5), R.uniform(GY[0] + 0.1, GY[-1] - 0.1, 5)], 1)
SITES = R.uniform(-1, 1, (9, 2))
DATA = R.standard_normal(9)
PLACES = R.uniform(-0.9, 0.9, (4, 2))


def _spline(bc: Any) -> Any:
    return lambda m, x, y, t: m.CubicSpline(x, y, bc_type=bc)(t)


CASES = (
    *(
        Case(f"CubicSpline {bc}", _spline(bc), X, Y, T)
        for bc in (
            "not-a-knot",
            "natural",
            "clamped",
            ((1, 0.3), (2, -0.5)),
            ("natural", "clamped"),
        )
    ),
    *(
        Case(
            f"CubicSpline periodic {n}",
            lambda m, x, y, t: m.CubicSpline(x, np.concatenate((y, y[:1])), bc_type="periodic")(t),
            X[:n],
            Y[: n - 1],
            T[:3],
        )
        for n in (3, 4, 7)
    ),
    *(
        Case(f"CubicSpline {n} points", _spline("not-a-knot"), X[:n], Y[:n], T[:3])
        for n in (2, 3, 4)
    ),
    Case(
        "CubicSpline axis", lambda m, x, y, t: m.CubicSpline(x, y, 1)(t.reshape(2, 3)), X, YS.T, T
    ),
    Case("CubicSpline extrapolate", lambda m, x, y, t: m.CubicSpline(x, y)(t), X, Y, OUT),
    Case("CubicSpline derivative", lambda m, x, y, t: m.CubicSpline(x, y)(t, 2), X, Y, T),
    Case(
        "CubicSpline derivative()", lambda m, x, y, t: m.CubicSpline(x, y).derivative()(t), X, YS, T
    ),
    Case(
        "CubicSpline antiderivative()",
        lambda m, x, y, t: m.CubicSpline(x, y).antiderivative(2)(t),
        X,
        Y,
        T,
    ),
    Case(
        "CubicSpline integrate",
        lambda m, x, y, a, b: m.CubicSpline(x, y).integrate(a, b),
        X,
        Y,
        T[0],
        T[1],
    ),
    Case(
        "CubicSpline integrate periodic",
        lambda m, x, y, b: m.CubicSpline(
            x, np.concatenate((y, y[:1])), bc_type="periodic"
        ).integrate(X[0] - 0.4, b),
        X,
        Y[:-1],
        X[-1] + 9.3,
    ),
    Case("CubicSpline complex", lambda m, x, y: m.CubicSpline(x, y)(T), X, Y + 1j * ROUND),
    Case(
        "CubicHermiteSpline", lambda m, x, y, s, t: m.CubicHermiteSpline(x, y, s)(t), X, Y, ROUND, T
    ),
    Case("PchipInterpolator", lambda m, x, y, t: m.PchipInterpolator(x, y)(t), X, Y, T),
    Case(
        "PchipInterpolator monotone",
        lambda m, x, y, t: m.PchipInterpolator(x, y)(t),
        X,
        np.cumsum(Y**2),
        T,
    ),
    Case(
        "PchipInterpolator 2 points",
        lambda m, x, y, t: m.PchipInterpolator(x, y)(t),
        X[:2],
        Y[:2],
        T,
    ),
    Case("Akima1DInterpolator", lambda m, x, y, t: m.Akima1DInterpolator(x, y)(t), X, Y, T),
    Case(
        "Akima1DInterpolator makima",
        lambda m, x, y, t: m.Akima1DInterpolator(x, y, method="makima")(t),
        X,
        YS,
        T,
    ),
    Case("PPoly", lambda m, c, x, t: m.PPoly(c, x)(t), R.standard_normal((4, 6)), X, T),
    Case(
        "PPoly nu beyond degree",
        lambda m, c, t: m.PPoly(c, X)(t, 2),
        R.standard_normal((2, 6)),
        T,
        order=1,
    ),
    Case(
        "PPoly nan",
        lambda m, c: m.PPoly(c, X, extrapolate=False)(np.append(OUT, T)),
        R.standard_normal((2, 6)),
        order=0,
    ),
    Case("BSpline", lambda m, t, c, x: m.BSpline(t, c, 3)(x), KNOTS, COEF, T, order=0),
    Case("BSpline coefficients", lambda m, c, x: m.BSpline(KNOTS, c, 3)(x), COEF, T),
    Case("BSpline nu", lambda m, c, x: m.BSpline(KNOTS, c, 3)(x, 2), COEF, T),
    Case("BSpline derivative", lambda m, c, x: m.BSpline(KNOTS, c, 3).derivative()(x), COEF, T),
    Case(
        "BSpline antiderivative",
        lambda m, c, x: m.BSpline(KNOTS, c, 3).antiderivative()(x),
        COEF,
        T,
    ),
    Case(
        "BSpline integrate",
        lambda m, c, a: m.BSpline(KNOTS, c, 3).integrate(a, X[-1] + 0.5),
        COEF,
        T[0],
    ),
    Case("BSpline periodic", lambda m, c, x: m.BSpline(KNOTS, c, 3, "periodic")(x), COEF, OUT),
    *(
        Case(
            f"make_interp_spline {k}",
            lambda m, x, y, t, k=k: m.make_interp_spline(x, y, k)(t),
            X,
            Y,
            T,
        )
        for k in (1, 2, 3, 4, 5)
    ),
    Case(
        "make_interp_spline natural",
        lambda m, x, y, t: m.make_interp_spline(x, y, bc_type="natural")(t),
        X,
        YS,
        T,
    ),
    Case(
        "make_interp_spline ends",
        lambda m, x, y, t: m.make_interp_spline(x, y, bc_type=([(1, 0.2)], [(2, 0.1)]))(t),
        X,
        Y,
        T,
    ),
    Case("make_interp_spline axis", lambda m, y: m.make_interp_spline(X, y, axis=1)(T), YS.T),
    Case("splrep", lambda m, y: m.splrep(X, y)[1], Y, keeps_single=False),
    Case("splev", lambda m, y, t: m.splev(t, m.splrep(X, y)), Y, T),
    Case("splev der", lambda m, y, t: m.splev(t, m.splrep(X, y), 1), Y, T),
    Case("splev ext", lambda m, y: [m.splev(OUT, m.splrep(X, y), ext=e) for e in (1, 3)], Y),
    Case("splint", lambda m, y: m.splint(X[0] - 1.0, T[0], m.splrep(X, y)), Y),
    *(
        Case(
            f"interp1d {k}",
            lambda m, x, y, t, k=k: m.interp1d(x, y, k)(t),
            X,
            Y,
            T,
            order=1 if k in ("linear", "slinear") else 2,
        )
        for k in ("linear", "slinear", "quadratic", "cubic")
    ),
    *(
        Case(f"interp1d {k}", lambda m, y, k=k: m.interp1d(X, y, k, axis=0)(T), YS)
        for k in ("nearest", "nearest-up", "previous", "next")
    ),
    Case(
        "interp1d fill",
        lambda m, x, y: m.interp1d(x, y, bounds_error=False, fill_value=(1.0, 2.0))(OUT),
        X,
        Y,
    ),
    Case(
        "interp1d extrapolate",
        lambda m, x, y, t: m.interp1d(x, y, fill_value="extrapolate")(t),
        X,
        Y,
        OUT,
        order=1,
    ),
    Case("interp1d unsorted", lambda m, y, t: m.interp1d(X[::-1], y)(t), Y, T, order=1),
    *(
        Case(
            f"RegularGridInterpolator {k}",
            lambda m, v, x, k=k: m.RegularGridInterpolator((GX, GY), v, k)(x),
            GRID,
            AT,
            order=1 if k == "linear" else 2,
            rtol=1e-11 if k == "linear" else 1e-5,
        )  # SciPy iterates
        for k in ("linear", "cubic", "quintic")
    ),
    Case(
        "RegularGridInterpolator nearest",
        lambda m, v: m.RegularGridInterpolator((GX, GY), v, "nearest")(AT),
        GRID,
    ),
    Case(
        "RegularGridInterpolator grid",
        lambda m, x, y, v: m.RegularGridInterpolator((x, y), v)(AT),
        GX,
        GY,
        GRID,
    ),
    Case(
        "RegularGridInterpolator values",
        lambda m, v: m.RegularGridInterpolator((GX,), v)(AT[:, :1]),
        GRID,
    ),
    *(
        Case(
            f"RegularGridInterpolator descending {k}",
            lambda m, v, x, k=k: m.RegularGridInterpolator((GX, GY[::-1]), v, k)(x),
            GRID,
            AT,
            order=1,
            rtol=1e-11 if k == "linear" else 1e-5,
        )  # SciPy iterates
        for k in ("linear", "cubic", "quintic")
    ),
    Case(
        "RegularGridInterpolator nearest, descending",
        lambda m, v: m.RegularGridInterpolator((GX[::-1], GY[::-1]), v, "nearest")(AT),
        GRID,
    ),
    Case(
        "RegularGridInterpolator grid, descending",
        lambda m, x, y, v: m.RegularGridInterpolator((x[::-1], y), v)(AT),
        GX,
        GY,
        GRID,
    ),
    Case(
        "RegularGridInterpolator outside",
        lambda m, v: m.RegularGridInterpolator((GX, GY), v, bounds_error=False, fill_value=None)(
            AT - 1.5
        ),
        GRID,
    ),
    Case(
        "interpn", lambda m, v: m.interpn((GX, GY), v, AT, bounds_error=False, fill_value=0.0), GRID
    ),
    *(
        Case(
            f"RBFInterpolator {k}",
            lambda m, y, d, x, k=k: m.RBFInterpolator(y, d, kernel=k, epsilon=1.3)(x),
            SITES,
            DATA,
            PLACES,
            rtol=1e-8,
            derivative_rtol=1e-3,
        )
        for k in (
            "linear",
            "thin_plate_spline",
            "cubic",
            "quintic",
            "multiquadric",
            "inverse_multiquadric",
            "inverse_quadratic",
            "gaussian",
        )
    ),
    Case(
        "RBFInterpolator options",
        lambda m, d: m.RBFInterpolator(SITES, d, smoothing=0.1, degree=2)(PLACES),
        YS[[0, 1, 2, 3, 4, 5, 6, 0, 1]],
        rtol=1e-9,
    ),
    Case(
        "BarycentricInterpolator",
        lambda m, y, t: m.BarycentricInterpolator(X, y)(t),
        Y,
        T,
        rtol=1e-9,
        derivative_rtol=1e-4,
    ),
    Case(
        "BarycentricInterpolator at nodes",
        lambda m, y: m.BarycentricInterpolator(X, y)(X),
        Y,
        rtol=1e-10,
    ),
    Case(
        "KroghInterpolator",
        lambda m, y, t: m.KroghInterpolator(X, y)(t),
        YS,
        T,
        rtol=1e-9,
        derivative_rtol=1e-4,
    ),
    Case(
        "KroghInterpolator derivatives",
        lambda m, y: m.KroghInterpolator(X, y).derivatives(T, 3),
        Y,
        rtol=1e-8,
        derivative_rtol=1e-4,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_interpolant_agrees_with_scipy_and_differences(case: Case) -> None:
    with np.errstate(invalid="ignore"):
        check(case, "interpolate")


def test_interpolants_are_pytrees() -> None:
    ip = ft.scipy.interpolate
    for made in (
        ip.CubicSpline(X, Y),
        ip.make_interp_spline(X, Y),
        ip.interp1d(X, Y, "cubic"),
        ip.BarycentricInterpolator(X, Y),
    ):
        np.testing.assert_allclose(ft.jit(lambda f, t: f(t))(made, T), made(T), rtol=1e-12)
        slopes = ft.grad(lambda f, g=made: np.sum(f(T)))(made)
        assert type(slopes) is type(made)
    sites = ip.RBFInterpolator(SITES, DATA)
    np.testing.assert_allclose(ft.jit(lambda f, t: f(t))(sites, PLACES), sites(PLACES), rtol=1e-12)
    made = ft.jit(ip.CubicSpline)(X, Y)
    np.testing.assert_allclose(made(T), scipy.interpolate.CubicSpline(X, Y)(T), rtol=1e-12)


def test_polynomial_is_smooth_at_its_abscissas() -> None:
    p = ft.scipy.interpolate.BarycentricInterpolator(X[:4], X[:4] ** 3)
    np.testing.assert_allclose([ft.grad(p)(t) for t in X[:4]], 3 * X[:4] ** 2, rtol=1e-10)


def test_knots_of_a_spline_have_derivatives() -> None:
    inner = X[1:-1]

    def f(knots: Any) -> Any:
        t = np.concatenate((np.full(4, X[0]), knots, np.full(4, X[-1])))
        return ft.scipy.interpolate.BSpline(t, COEF, 3)(T)

    ft.check_grads(f, (inner,))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m, y: m.CubicSpline(X[::-1], y), ValueError, "ascend"),
        (lambda m, y: m.CubicSpline(X[:-1], y), ShapeError, "one per sample"),
        (lambda m, y: m.CubicSpline(X, y, bc_type="odd"), ValueError, "bc_type='odd'"),
        (lambda m, y: m.CubicSpline(X, y, bc_type="periodic"), ValueError, "first value"),
        (lambda m, y: m.CubicSpline(X, y, bc_type=((3, 0.0), (1, 0.0))), ValueError, "order 3"),
        (lambda m, y: m.make_interp_spline(X, y, 0), ValueError, "degree 0"),
        (lambda m, y: m.make_interp_spline(X[:3], y[:3], 3), ShapeError, "at least 4"),
        (lambda m, y: m.make_interp_spline(X, y, t=KNOTS), ShapeError, "coefficients"),
        (lambda m, y: m.splrep(X, y, s=1.0), UnsupportedOperationError, "s=1.0"),
        (lambda m, y: m.interp1d(X, y)(OUT), ValueError, "bounds_error=False"),
        (lambda m, y: m.interp1d(X, y, "odd"), ValueError, "kind='odd'"),
        (lambda m, y: m.Akima1DInterpolator(X, y, method="odd"), ValueError, "method='odd'"),
        (lambda m, y: m.RegularGridInterpolator((X,), y)(OUT), ValueError, "outside of the grid"),
        (lambda m, y: m.RegularGridInterpolator((X,), y, "odd")(T), ValueError, "method='odd'"),
        (lambda m, y: m.RegularGridInterpolator((GX,), y)(T), ShapeError, "values of shape"),
        (lambda m, y: m.interpn((X[[0, 2, 1]],), y[:3], T), ValueError, "axis 0 must strictly"),
        (lambda m, y: m.RBFInterpolator(SITES, y), ShapeError, "points of shape"),
        (lambda m, y: m.RBFInterpolator(SITES[:7], y, 3), UnsupportedOperationError, "neighbors"),
        (lambda m, y: m.RBFInterpolator(SITES[:7], y, kernel="gaussian"), ValueError, "epsilon"),
        (lambda m, y: m.RBFInterpolator(SITES[:7], y, degree=5), ValueError, "monomials"),
        (lambda m, y: m.KroghInterpolator(X * 0, y), ValueError, "ascend"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ft.vjp(lambda y: call(ft.scipy.interpolate, y) and y, Y)


@pytest.mark.parametrize("kind", ["zero", 0, "previous", "next"])
@pytest.mark.parametrize("fill", ["extrapolate", (1.0, 2.0)])
def test_steps_are_scipys_beyond_the_ends_too(kind: Any, fill: Any) -> None:
    x, y = np.array([0.0, 0.5, 1.2, 2.0]), np.array([3.0, -1.0, 4.0, 2.0])
    points = np.array([-1.0, 0.0, 0.25, 0.5, 1.9, 2.0, 2.5])
    options = {"kind": kind, "bounds_error": False, "fill_value": fill}
    expected = scipy.interpolate.interp1d(x, y, **options)(points)
    found = ft.jit(lambda y: ft.scipy.interpolate.interp1d(x, y, **options)(points))(y)
    np.testing.assert_array_equal(found, expected)


def test_interpolants_print_their_name_and_shapes() -> None:
    x = np.linspace(0.0, 9.0, 10)
    spline = ft.scipy.interpolate.CubicSpline(x, x**2)
    assert repr(spline) == "CubicSpline(c=f64[4,9], x=f64[10], extrapolate=True, axis=0)"
    assert repr(spline.derivative()).startswith("PPoly(c=f64[3,9], ")
    assert repr(spline.antiderivative()).startswith("PPoly(c=f64[5,9], ")
    for name in ("PchipInterpolator", "Akima1DInterpolator"):
        assert repr(getattr(ft.scipy.interpolate, name)(x, x)).startswith(f"{name}(c=f64[4,9]")
        assert repr(getattr(ft.scipy.interpolate, name)(x[:2], x[:2])).startswith(f"{name}(c=f64[")
    grid = ft.scipy.interpolate.RegularGridInterpolator((x,), x)
    assert repr(grid).startswith("RegularGridInterpolator(points=(f64[10],), values=f64[10], ")
    printed = []
    ft.grad(lambda a: printed.append(repr(ft.scipy.interpolate.CubicSpline(x, a * x))) or a)(2.0)
    assert printed == ["CubicSpline(c=f64[4,9], x=f64[10], extrapolate=True, axis=0)"]
