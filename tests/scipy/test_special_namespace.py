"""Functions of ``scipy.special`` that are Python functions there: values, derivatives, refusals."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.errors import NonDifferentiableError
from functrans.scipy import special as ours
from scipy import special as theirs

X = np.array([0.7, 1.3, 2.9])


def _checked(function: Any, expected: Any, *args: Any) -> None:
    """Values in the interpreter and compiled, and derivatives of both orders."""
    np.testing.assert_allclose(function(*args), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(function)(*args), expected, rtol=1e-12)
    ft.check_grads(function, args)


def test_zeta_of_both_kinds() -> None:
    _checked(ours.zeta, theirs.zeta(X + 1), X + 1)
    _checked(ours.zeta, theirs.zeta(X + 1, X), X + 1, X)
    _checked(ours.zeta, theirs.zeta(X - 4), X - 4)
    with pytest.raises(NonDifferentiableError, match="the third derivative of zeta"):
        ft.grad(ft.grad(ft.grad(ours.zeta)))(2.5)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_polygamma(n: int) -> None:
    _checked(lambda x: ours.polygamma(n, x), theirs.polygamma(n, X), X)
    found = ft.grad(lambda x: np.sum(ours.polygamma(n, x)))(X)
    np.testing.assert_allclose(found, theirs.polygamma(n + 1, X), rtol=1e-12)


def test_polygamma_refuses_negative_orders() -> None:
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        ours.polygamma(-1, 1.0)


def test_multigammaln() -> None:
    _checked(lambda a: ours.multigammaln(a, 3), theirs.multigammaln(X + 1, 3), X + 1)
    with pytest.raises(ValueError, match="positive integer, got 0"):
        ours.multigammaln(2.0, 0)


def test_counts_of_choices() -> None:
    _checked(ours.factorial, theirs.factorial(X), X)
    _checked(ours.comb, theirs.comb(X + 3, X), X + 3, X)
    np.testing.assert_allclose(
        ours.comb(X + 3, X, repetition=True), theirs.comb(X + 3, X, repetition=True)
    )
    _checked(ours.perm, theirs.perm(X + 3, X), X + 3, X)
    assert ours.factorial(-1.0) == ours.comb(2.0, 3.0) == ours.perm(2.0, 3.0) == 0
    for call in (lambda: ours.factorial(3, exact=True), lambda: ours.comb(3, 2, exact=True),
                 lambda: ours.perm(3, 2, exact=True)):  # fmt: skip
        with pytest.raises(ValueError, match="exact=True is for integers"):
            call()


def test_diric_is_smooth_at_its_peaks() -> None:
    points = np.array([0.0, 0.4, 2 * np.pi, 5.0])
    for n in (4, 5):
        np.testing.assert_allclose(ours.diric(points, n), theirs.diric(points, n), atol=1e-14)
        ft.check_grads(lambda x, n=n: ours.diric(x, n), (points,))
    with pytest.raises(ValueError, match="positive integer, got 0"):
        ours.diric(1.0, 0)


def test_softplus_and_sinc() -> None:
    _checked(ours.softplus, np.logaddexp(0, X), X)
    _checked(ours.sinc, np.sinc(X), X)


@pytest.mark.parametrize("name", ["jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_derivatives_of_bessel_functions(name: str, n: int) -> None:
    expected = getattr(theirs, name)(1.5, X, n)
    np.testing.assert_allclose(getattr(ours, name)(1.5, X, n), expected, rtol=1e-11)
    slope = ft.jvp(lambda x: getattr(ours, name)(1.5, x, n), (X,), (np.ones(3),))[1]
    np.testing.assert_allclose(slope, getattr(theirs, name)(1.5, X, n + 1), rtol=1e-11)
    with pytest.raises(ValueError, match=f"{name}: n must not be negative"):
        getattr(ours, name)(1.5, X, -1)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
def test_spherical_bessel_functions(name: str) -> None:
    n = np.array([0, 1, 4])
    for derivative in (False, True):
        _checked(
            lambda x, d=derivative: getattr(ours, name)(n, x, d),
            getattr(theirs, name)(n, X, derivative),
            X,
        )
    with pytest.raises(TypeError, match="the first operand must be of integers"):
        getattr(ours, name)(1.5, X)


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_branches_of_lambertw(k: int) -> None:
    z = X + 0.3j
    expected = theirs.lambertw(z, k)
    np.testing.assert_allclose(ours.lambertw(z, k), expected, rtol=1e-13)
    slope = ft.jvp(lambda z: theirs.lambertw(z, k), (z,), (np.ones(3, complex),))[1]
    np.testing.assert_allclose(slope, expected / (z * (1 + expected)), rtol=1e-12)
    with pytest.raises(ValueError, match="tol must be"):
        ours.lambertw(z, k, 1e-3)


def test_spherical_harmonics() -> None:
    if not hasattr(theirs, "sph_harm_y"):
        pytest.skip("SciPy has them since 1.15")
    n, m = np.array([0, 1, 2, 3, 3]), np.array([0, -1, 1, 0, 3])
    theta, phi = np.array([0.0, 0.4, 1.2, 2.5, np.pi]), np.array([0.3, 1.0, -2.0, 0.1, 0.7])
    np.testing.assert_allclose(
        ours.sph_harm_y(n, m, theta, phi), theirs.sph_harm_y(n, m, theta, phi), atol=1e-15
    )
    np.testing.assert_allclose(
        ours.sph_legendre_p(n, m, theta),
        [float(np.ravel(theirs.sph_legendre_p(*row))[0]) for row in zip(n, m, theta, strict=True)],
        atol=1e-15,
    )

    def parts(theta: Any, phi: Any) -> Any:
        value = ours.sph_harm_y(n, m, theta, phi)
        return value.real, value.imag

    ft.check_grads(parts, (theta, phi))
    ft.check_grads(ft.jit(parts), (theta, phi), order=1)


def test_messages() -> None:
    with pytest.raises(TypeError, match=r"got 1 operands, expected 2: \(a, x\)"):
        ours.gammainc(1.0)
    with pytest.raises(NonDifferentiableError, match=r"jv has no derivative in its first operand"):
        ft.grad(ours.jv)(1.5, 2.0)
    with pytest.raises(TypeError, match="not defined for operands"):
        ours.gammaincinv(1j, 0.5)


def test_edges_have_no_nan() -> None:
    assert ft.grad(ours.xlogy)(0.0, 0.0) == -np.inf
    assert ft.grad(ours.xlogy, 1)(0.0, 0.0) == 0
    assert ft.grad(lambda p: ours.entr(p) * p)(0.0) == 0
    assert ft.grad(lambda x: ours.kl_div(x, 1.0) * x)(0.0) == 1
    for x in (0.0, 1.0):
        slopes = ft.grad(ours.betainc, (0, 1))(2.0, 3.0, x)
        assert slopes == (0.0, 0.0)
    for x in (0.0, np.inf):
        assert ft.grad(ours.gammainc)(2.0, x) == 0
    # In the tails derivatives are as exact in relative terms as values.
    slope = ft.grad(ours.gammaincc)(2.5, 200.0)
    expected = ours.gammaincc(2.5, 200.0) * (np.log(200.0) - theirs.psi(2.5))
    assert slope == pytest.approx(expected, rel=0.02)
