"""SciPy's own functions with traced arrays raise errors that name the function to call instead."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special

import functrans as ft
from functrans.errors import ConcretizationError, UnsupportedOperationError
from scipy import stats

pytestmark = pytest.mark.usefixtures("names_as_they_are")

X = np.array([0.5, 1.0, 2.0])
MATRIX = np.diag([2.0, 3.0, 4.0])
SPLINE = scipy.interpolate.CubicSpline(np.arange(4.0), np.arange(4.0) ** 2)
GRID = scipy.interpolate.RegularGridInterpolator((np.arange(3.0),), np.ones(3))

OFFERED: dict[str, Callable[[Any], Any]] = {
    "stats.norm.logpdf": lambda x: stats.norm.logpdf(x),
    "stats.gamma.cdf": lambda x: stats.gamma.cdf(x, 2.0),
    "stats.poisson.logpmf": lambda x: stats.poisson.logpmf(2, x),
    "stats.multivariate_normal.logpdf": lambda x: stats.multivariate_normal.logpdf(x),
    "stats.zscore": lambda x: stats.zscore(x),
    "stats.gaussian_kde": lambda x: stats.gaussian_kde(x),
    "linalg.cho_factor": lambda x: scipy.linalg.cho_factor(MATRIX * x),
    "linalg.solve": lambda x: scipy.linalg.solve(MATRIX, x),
    "linalg.toeplitz": lambda x: scipy.linalg.toeplitz(x),
    "special.sph_harm_y": lambda x: scipy.special.sph_harm_y(1, 1, x, x),
    "special.logsumexp": lambda x: scipy.special.logsumexp(x),
    "interpolate.CubicSpline": lambda x: scipy.interpolate.CubicSpline(np.arange(3.0), x),
    "interpolate.interp1d": lambda x: scipy.interpolate.interp1d(np.arange(3.0), x),
    "ndimage.map_coordinates": lambda x: scipy.ndimage.map_coordinates(MATRIX, [x, x]),
    "signal.lfilter": lambda x: scipy.signal.lfilter(x, [1.0], MATRIX),
    "signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x),
    "fft.dct": lambda x: scipy.fft.dct(x),
    "integrate.simpson": lambda x: scipy.integrate.simpson(x),
    "integrate.solve_ivp": lambda x: scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), x),
    "optimize.minimize": lambda x: scipy.optimize.minimize(lambda p: p @ p, x),
}


def refusal(fun: Callable[[Any], Any]) -> str:
    with pytest.raises(ConcretizationError) as caught:
        ft.grad(lambda x: fun(x))(X)
    return str(caught.value)


@pytest.mark.parametrize("path", OFFERED)
def test_error_names_the_function_of_functrans(path: str) -> None:
    message = refusal(OFFERED[path])
    assert message.startswith(f"scipy.{path} was given a traced value of type f64[")
    assert "(at test_conversion.py:" in message
    assert f"Call functrans.scipy.{path} in its place." in message
    found: Any = ft.scipy
    for name in path.split("."):
        found = getattr(found, name)
    assert callable(found)


@pytest.mark.parametrize(
    ("fun", "called", "replacement"),
    [
        (lambda x: SPLINE(x), "interpolate.CubicSpline(...)", "interpolate.CubicSpline"),
        (
            lambda x: GRID(x),
            "interpolate.RegularGridInterpolator(...)",
            "interpolate.RegularGridInterpolator",
        ),
        (lambda x: stats.norm(x[0]).logpdf(1.0), "stats.norm(...).logpdf", "stats.norm.logpdf"),
    ],
)
def test_error_of_an_object_names_its_class(
    fun: Callable[[Any], Any], called: str, replacement: str
) -> None:
    message = refusal(fun)
    assert message.startswith(f"scipy.{called} was given")
    assert f"Call functrans.scipy.{replacement} in its place." in message


@pytest.mark.parametrize(
    ("path", "fun"),
    [
        ("linalg.qz", lambda x: scipy.linalg.qz(MATRIX, MATRIX * x)),
        ("stats.levy.logpdf", lambda x: stats.levy.logpdf(x)),
        ("stats.norm.stats", lambda x: stats.norm.stats(x)),
    ],
)
def test_error_for_a_function_that_is_missing_names_external_first(
    path: str, fun: Callable[[Any], Any]
) -> None:
    message = refusal(fun)
    assert message.startswith(f"scipy.{path} was given")
    assert "functrans.scipy has none of that name" in message
    assert 0 < message.index("ft.external(f, out_like)") < message.index("ft.pure_callback")


def test_error_for_a_ufunc_without_a_rule_names_its_module() -> None:
    with pytest.raises(UnsupportedOperationError) as caught:
        ft.grad(lambda q: scipy.special.mathieu_a(2, q))(0.3)
    message = str(caught.value)
    assert message.startswith("scipy.special.mathieu_a cannot be traced (at test_conversion.py:")
    assert "functrans has no rule for it" in message
    assert "ft.external(f, out_like)" in message


def test_error_for_a_ufunc_of_somebody_else_gives_its_bare_name() -> None:
    doubled = np.frompyfunc(lambda x: 2 * x, 1, 1)
    with pytest.raises(UnsupportedOperationError, match=r"^[^.]* cannot be traced \(at"):
        ft.grad(lambda x: doubled(x))(1.0)
