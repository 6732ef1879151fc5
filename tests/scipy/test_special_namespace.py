"""Functions of ``scipy.special`` that are Python functions there: values, derivatives, refusals."""

import doctest
import functools
import io
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import NonDifferentiableError
from functrans.scipy import special as ours
from functrans.scipy.special_records import RECORDS
from functrans.scipy.special_ufuncs import SCIPY_UFUNCS
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_logarithms_compiled_at_the_edges(name: str, dtype: Any) -> None:
    """0 where the factor is and the other operand is a number, logarithms of negative ones too."""
    points = [0.0, -0.0, 1.0, -1.0, 2.5, 1e-310, 1e308, -1e308, np.inf, -np.inf, np.nan]
    if np.dtype(dtype).kind == "c":
        points = [complex(x, y) for x in points for y in points]
    with np.errstate(all="ignore"):
        a, b = np.meshgrid(points, points)
        a, b = a.astype(dtype), b.astype(dtype)
        expected = getattr(theirs, name)(a, b)
        found = ft.jit(getattr(ours, name))(a, b)
    rtol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=rtol, strict=True)
    is_sign = ~np.isnan(expected.real)
    assert (np.signbit(found.real) == np.signbit(expected.real))[is_sign].all()


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


def _derivative(function: Any, x: float, order: int, position: int = 0) -> float:
    for _ in range(order):
        function = ft.grad(function, position)
    return float(function(x))


@pytest.mark.parametrize(
    ("function", "exact", "points"),
    [
        (ours.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (5.0, 9.9, 10.1, 1e3, 1e7)),
        (ours.dawsn, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (9.9, 10.1, 40.0)),
        (ours.log_ndtr, lambda x: mp.log(mp.ncdf(x)), (-1e4, -300.0, -12.0, -1.0, 1.0, 5.0)),
        (ours.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), (-7e-6, 3e-8, 9e-4, 1.1e-3)),
        (ours.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (-7e-6, 3e-8, 9e-4, 1.1e-3)),
        (ours.bei, lambda x: mp.bei(0, x), (1e-6, 0.3, 0.49, 0.51, 2.0)),
        (lambda x: ours.bdtr(1, 12, x), lambda x: (1 - x) ** 11 * (1 + 11 * x), (1e-9, 0.2, 0.9)),
    ],
)
def test_derivatives_do_not_cancel(function: Any, exact: Any, points: tuple[float, ...]) -> None:
    for x in points:
        for order in (1, 2):
            with mp.workdps(120):
                expected = float(mp.diff(exact, mp.mpf(x), order))
            assert _derivative(function, x, order) == pytest.approx(expected, rel=2e-9, abs=0), (
                x,
                order,
            )


def test_complex_scaled_error_functions_far_from_zero() -> None:
    for z in (300 + 0.5j, -40 + 2e3j, 1e5 + 0j):
        with mp.workdps(40):
            w = mp.mpc(z)
            value = mp.exp(-w * w) * mp.erfc(-1j * w) if z.imag < 1e3 else None
            slope = None if value is None else complex(2j / mp.sqrt(mp.pi) - 2 * w * value)
        found = ft.jvp(ours.wofz, (z,), (1.0 + 0j,))[1]
        series = -1j / np.sqrt(np.pi) / z**2 * (1 + 1.5 / z**2 + 3.75 / z**4)
        assert abs(found - series) < 1e-11 * abs(series)
        if slope is not None:
            assert abs(found - slope) < 1e-11 * abs(slope)
        turned = ft.jvp(ours.erfcx, (-1j * z,), (1.0 + 0j,))[1]  # erfcx(-1j z) = wofz(z)
        assert abs(turned - 1j * found) < 1e-11 * abs(found)


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (ours.ber, 0.0, 0.0),
        (ours.bei, 0.0, 0.5),
        (ours.berp, 0.0, 0.0),
        (ours.beip, 0.5, 0.0),
        (lambda x: ours.it2j0y0(x)[0], 0.0, 0.25),
        (lambda x: ours.it2i0k0(x)[0], 0.0, 0.25),
        (ours.it2struve0, -2 / np.pi, 0.0),
        (lambda x: ours.struve(0, x), 2 / np.pi, 0.0),
        (lambda x: ours.struve(-1, x), 0.0, -4 / (3 * np.pi)),
        (lambda x: ours.struve(1, x), 0.0, 4 / (3 * np.pi)),
        (lambda x: ours.modstruve(0.0, x), 2 / np.pi, 0.0),
        (lambda x: ours.modstruve(-1.0, x), 0.0, 4 / (3 * np.pi)),
        (lambda x: ours.betainc(2.0, 3.0, x), 0.0, 12.0),
        (lambda x: ours.betainc(3.0, 2.0, 1 - x), 0.0, -12.0),
        (lambda x: ours.betainc(1.0, 3.0, x), 3.0, -6.0),
        (lambda x: ours.gammainc(2.0, x), 0.0, 1.0),
        (lambda x: ours.gammainc(3.0, x), 0.0, 0.0),
        (lambda x: ours.bdtr(0, 2, 1 - x), 0.0, 2.0),
        (lambda x: ours.gammainccinv(1.0, 1 - x), 1.0, None),
    ],
)
def test_derivatives_at_zero_are_limits(function: Any, first: float, second: float) -> None:
    assert _derivative(function, 0.0, 1) == pytest.approx(first, abs=1e-15)
    if second is not None:
        assert _derivative(function, 0.0, 2) == pytest.approx(second, abs=1e-14)


def test_binomial_coefficients_that_are_zero_have_derivatives() -> None:
    for n, k in ((0.0, 1.0), (1.0, 3.0), (4.0, 6.0), (3.0, -1.0), (0.0, 2.0)):
        for position in (0, 1):
            for order in (1, 2):
                point, index = (n, k), [0, 0]
                index[position] = order
                with mp.workdps(60):
                    expected = float(
                        mp.diff(
                            lambda a, b: mp.gamma(a + 1) * mp.rgamma(b + 1) * mp.rgamma(a - b + 1),
                            tuple(map(mp.mpf, point)),
                            tuple(index),
                        )
                    )
                fun = ours.binom
                for _ in range(order):
                    fun = ft.grad(fun, position)
                assert fun(n, k) == pytest.approx(expected, rel=1e-10, abs=1e-14), (
                    n,
                    k,
                    position,
                    order,
                )


def test_elliptic_integrals_of_modulus_one() -> None:
    """In ``m`` at 1, where the complete integral is infinite and the incomplete one is not."""
    for phi in (0.5, 1.2):
        near = [ft.grad(ours.ellipkinc, 1)(phi, 1 - h) for h in (1e-6, 2e-6)]
        assert ft.grad(ours.ellipkinc, 1)(phi, 1.0) == pytest.approx(2 * near[0] - near[1])
        near = [ft.grad(ours.ellipeinc, 1)(phi, 1 - h) for h in (1e-6, 2e-6)]
        assert ft.grad(ours.ellipeinc, 1)(phi, 1.0) == pytest.approx(2 * near[0] - near[1])
    assert np.isfinite(ft.grad(lambda m: ours.ellipj(0.7, m)[0])(1.0))
    assert ft.grad(ours.elliprg)(0.0, 1.0, 2.0) == pytest.approx(
        float(ours.elliprf(0.0, 1.0, 2.0)) / 4
    )


def test_python_numbers_stay_weak() -> None:
    degrees = np.array([1.0, 2.0], np.float32)
    for function in (ours.eval_chebyc, ours.eval_chebys, ours.eval_sh_legendre):
        assert ft.jit(lambda n: function(n, 0.25))(degrees).dtype == np.float32  # noqa: B023
    assert ft.jit(lambda v: ours.hankel1(v, 0.5))(degrees).dtype == np.complex64
    assert ours.hankel1(1, np.float32([0.5])).dtype == theirs.hankel1(1, np.float32([0.5])).dtype


def test_counts_outside_their_range_give_nan() -> None:
    for k, n in ((0.0, 0.0), (-1.0, 2.0), (1.0, 0.0)):
        assert np.isnan(ours.nbdtr(k, n, 0.5))
        assert np.isnan(ours.nbdtrc(k, n, 0.5))


@each("name", sorted(RECORDS))
def test_documentation(name: str) -> None:
    """Examples give what they show, and what is said of dtypes is true."""
    function = getattr(ours, name)
    test = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, None)
    assert len(test.examples) == 4
    outcome = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(test, out=outcome.write)
    assert not outcome.getvalue()
    record = RECORDS[name]
    *first, last = eval(f"({record.operands},)")  # a literal of our own table
    if record.takes_complex:
        function(*first, complex(last, 0.1))
    else:
        with pytest.raises(TypeError):
            function(*first, complex(last, 0.1))


def test_every_function_of_elements_is_documented() -> None:
    assert set(RECORDS) == {*SCIPY_UFUNCS, "softplus"}


def test_rising_factorials_at_poles_of_gamma() -> None:
    """``poch(z, 3) = z (z + 1) (z + 2)``, everywhere."""
    for z in (-3.0, -2.0, -1.0, 0.0, 0.5, -0.5):
        assert ft.grad(ours.poch)(z, 3.0) == pytest.approx(3 * z * z + 6 * z + 2)
        assert ft.grad(ft.grad(ours.poch))(z, 3.0) == pytest.approx(6 * z + 6, abs=1e-12)
    assert ft.grad(ours.poch, 1)(0.0, 2.0) == 0


def _bessel(definition: Any, order: float, sign: int) -> Any:
    """Derivatives of a cylinder function by the binomial formula, in mpmath."""

    def derivative(x: float, k: int) -> float:
        with mp.workdps(60):
            terms = [
                sign**j * mp.binomial(k, j) * definition(order - k + 2 * j, mp.mpf(x))
                for j in range(k + 1)
            ]
            return float(mp.fsum(terms) / 2**k)

    return derivative


def _spherical_bessel(definition: Any, order: int) -> Any:
    """Derivatives of a spherical Bessel function by its Taylor series, in mpmath."""

    def function(x: Any) -> Any:
        return mp.sqrt(mp.pi / (2 * x)) * definition(order + mp.mpf(1) / 2, x)

    def derivative(x: float, k: int) -> float:
        with mp.workdps(60):
            return float(mp.taylor(function, mp.mpf(x), k)[k] * mp.factorial(k))

    return derivative


FIRST_KIND = [
    pytest.param(ours.j0, _bessel(mp.besselj, 0, -1), id="j0"),
    pytest.param(ours.j1, _bessel(mp.besselj, 1, -1), id="j1"),
    pytest.param(ours.i0, _bessel(mp.besseli, 0, 1), id="i0"),
    pytest.param(ours.i1, _bessel(mp.besseli, 1, 1), id="i1"),
    pytest.param(lambda x: ours.jn(3, x), _bessel(mp.besselj, 3, -1), id="jn"),
    pytest.param(lambda x: ours.jv(1.5, x), _bessel(mp.besselj, 1.5, -1), id="jv"),
    pytest.param(lambda x: ours.iv(2, x), _bessel(mp.besseli, 2, 1), id="iv"),
    pytest.param(
        lambda x: ours.spherical_jn(1, x), _spherical_bessel(mp.besselj, 1), id="spherical_jn"
    ),
    pytest.param(
        lambda x: ours.spherical_in(2, x), _spherical_bessel(mp.besseli, 2), id="spherical_in"
    ),
]


@pytest.mark.parametrize(("function", "exact"), FIRST_KIND)
def test_high_derivatives_of_bessel_functions_do_not_cancel(function: Any, exact: Any) -> None:
    for x in (1e-8, 1e-5, 1e-3, 0.02, 0.7, 6.0, 40.0, 600.0):
        # A wave is as exact as its argument allows.
        rtol = 1e-12 * max(1.0, x / 10)
        expected = [exact(x, k) for k in range(1, 7)]
        slopes = ft.jet(function, (x,), ([1.0, 0, 0, 0, 0, 0],))[1]
        np.testing.assert_allclose(slopes, expected, rtol=rtol)
        forward = function
        for k in (1, 2, 3):
            forward = ft.jacfwd(forward)
            np.testing.assert_allclose(forward(x), expected[k - 1], rtol=rtol)


@pytest.mark.parametrize(("function", "exact"), FIRST_KIND[:4])
def test_sixth_derivatives_in_reverse_mode(function: Any, exact: Any) -> None:
    for _ in range(6):
        function = ft.grad(function)
    expected = exact(1e-3, 6)
    assert function(1e-3) == pytest.approx(expected, rel=1e-13)
    assert ft.jit(function)(1e-3) == pytest.approx(expected, rel=1e-13)
    single = ft.jit(function)(np.float32(1e-3))
    assert single.dtype == np.float32
    assert single == pytest.approx(expected, rel=1e-5)
    batch = ft.vmap(function)(np.array([1e-3, 2.0]))
    np.testing.assert_allclose(batch, [expected, exact(2.0, 6)], rtol=1e-12)


def test_orders_of_bessel_functions_may_be_arrays() -> None:
    orders, x = np.array([0.0, 1.0, -2.0, 2.5]), np.array([0.1, 0.4, 3.0, 2.0])
    for name in ("jv", "yv", "iv", "kv"):
        function = getattr(ours, name)
        second = ft.vmap(ft.grad(ft.grad(function, 1), 1))(orders, x)
        np.testing.assert_allclose(second, getattr(theirs, f"{name}p")(orders, x, 2), rtol=1e-12)


def test_legendre_functions_have_derivatives_at_the_ends() -> None:
    polynomial = np.polynomial.Polynomial
    for v in (0, 1, 2, 3, 5):
        legendre = polynomial(np.polynomial.legendre.leg2poly([0] * v + [1]))
        for m in (0, 2, 4):  # even orders are polynomials
            exact = legendre.deriv(m) * polynomial([1, 0, -1]) ** (m // 2)
            for x in (-1.0, 1.0):
                function = functools.partial(ours.lpmv, m, v)
                for k in (1, 2, 3):
                    found = _derivative(function, x, k)
                    assert found == pytest.approx(exact.deriv(k)(x), abs=1e-12), (m, v, x, k)
    assert ft.grad(ours.lpmv, 2)(0, 2.5, 1.0) == pytest.approx(2.5 * 3.5 / 2)
    assert ft.grad(ours.lpmv, 2)(1, 1.0, 1.0) == np.inf
    assert ft.grad(ours.lpmv, 2)(3, 4.0, 1.0) == 0


@pytest.mark.parametrize(
    ("a", "b"), [(1e-3, 1e10), (1.0, 1e10), (1e-8, 1e8), (1e-10, 1.0), (3.0, 0.2), (2.0, 30.0)]
)
def test_derivatives_of_beta_of_extreme_ratios(a: float, b: float) -> None:
    with mp.workdps(60):
        p, q = mp.mpf(a), mp.mpf(b)
        first = [mp.digamma(p) - mp.digamma(p + q), mp.digamma(q) - mp.digamma(p + q)]
        cross = -mp.zeta(2, p + q)
        second = [[mp.zeta(2, p) + cross, cross], [cross, mp.zeta(2, q) + cross]]
        value = mp.beta(p, q)
        slopes = [float(value * s) for s in first]
    for arguments, sign in (((a, b), 1), ((b, a), -1)):
        own = np.array(first[::sign], float)
        np.testing.assert_allclose(ft.grad(ours.betaln, (0, 1))(*arguments), own, rtol=1e-13)
        bend = np.array([row[::sign] for row in second[::sign]], float)
        np.testing.assert_allclose(ft.hessian(ours.betaln, (0, 1))(*arguments), bend, rtol=1e-12)
    np.testing.assert_allclose(ft.grad(ours.beta, (0, 1))(a, b), slopes, rtol=1e-9)


def test_incomplete_functions_of_parameter_zero() -> None:
    """Derivatives there are limits from the right."""
    for x in (0.3, 0.9, 2.5, 20.0):
        with mp.workdps(40):
            upper = mp.taylor(lambda a: mp.gammainc(a, mp.mpf(x)) * mp.rgamma(a), 0, 2)  # noqa: B023
        assert ft.grad(ours.gammainc)(0.0, x) == pytest.approx(-float(upper[1]), rel=1e-12)
        assert ft.grad(ours.gammaincc)(0.0, x) == pytest.approx(float(upper[1]), rel=1e-12)
        second = ft.grad(ft.grad(ours.gammainc))(0.0, x)
        assert second == pytest.approx(-2 * float(upper[2]), rel=1e-9)
    for x in (0.1, 0.8):
        h = 1e-7
        slopes = ft.grad(ours.betainc, (0, 1))(0.0, 2.0, x)
        assert slopes[0] == pytest.approx((theirs.betainc(h, 2.0, x) - 1) / h, rel=1e-5)
        assert slopes[1] == 0
        slopes = ft.grad(ours.betainc, (0, 1))(2.0, 0.0, x)
        assert slopes[0] == 0
        assert slopes[1] == pytest.approx(theirs.betainc(2.0, h, x) / h, rel=1e-5)


@pytest.mark.parametrize("name", ["i0e", "i1e", "k0e", "k1e"])
@pytest.mark.parametrize("x", [9e8, 2e9, 1e30, 1e160, math.inf])
def test_scaled_functions_have_curvatures_far_out(name: str, x: float) -> None:
    """SciPy's functions of order 2, of which they are made, are NaN there."""
    found = ft.grad(ft.grad(getattr(ours, name)))(x)
    assert abs(found) < 1e-19  # rounding of the neighbours' difference; the limit is 0


@pytest.mark.parametrize("x", [1e-310, -1e-310, 1e-306, 0.0])
def test_curvatures_at_the_smallest_numbers(x: float) -> None:
    """SciPy's ``iv`` of order 2 and more is NaN there."""
    for name, want in (("i0", 0.5), ("i1", 0.375 * x), ("iv", 0.25)):
        fun = getattr(ours, name)
        fun = (lambda x, f=fun: f(2.0, x)) if name == "iv" else fun
        np.testing.assert_allclose(ft.grad(ft.grad(fun))(x), want, rtol=1e-10)
