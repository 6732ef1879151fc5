"""Complex numbers: JAX's conventions, checked against real arithmetic.

``grad`` of a real function ``f`` of ``z = x + iy`` is ``df/dx - i df/dy``; with
``holomorphic=True`` it is the complex derivative. Tangents are complex directions: ``jvp`` is
``Re(grad * t)`` for real results.
"""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import functrans as ft
from functrans.errors import NonDifferentiableError

Z = np.array([1.0 + 2.0j, -0.5 + 0.3j, 2.0 - 1.0j])
W = np.array([0.3 - 2.0j, 1.5 + 0.3j, 1.0 - 1.0j])
X = np.array([0.3, 1.2, -0.5])

REAL: dict[str, Callable[[Any], Any]] = {
    "abs squared": lambda z: np.sum(abs(z) ** 2),
    "abs": lambda z: np.sum(np.abs(z) * X),
    "real": lambda z: np.sum(np.real(z * W)),
    "imag": lambda z: np.sum((z * z * W).imag),
    "conjugate": lambda z: np.sum(np.real(np.conj(z) * z * z)),
    "angle": lambda z: np.sum(np.angle(z) * X),
    "exp": lambda z: np.sum(abs(np.exp(z) - W)),
    "sin": lambda z: np.sum(np.real(np.sin(z) / z)),
    "tan": lambda z: np.sum(np.imag(np.tan(z))),
    "log": lambda z: np.sum(np.imag(np.log(z) * W)),
    "sqrt": lambda z: np.sum(np.imag(np.sqrt(z) * W)),
    "tanh": lambda z: np.sum(np.imag(np.tanh(z) * W)),
    "arcsin": lambda z: np.sum(np.real(np.arcsin(z) * W)),
    "arctan": lambda z: np.sum(np.real(np.arctan(z) * W)),
    "arccosh": lambda z: np.sum(np.real(np.arccosh(z) * W)),
    "cube": lambda z: np.sum(np.real(z**3 * W)),
    "complex power": lambda z: np.sum(np.real(z ** (1.5 + 1j))),
    "power of itself": lambda z: np.sum(np.real(z**z)),
    "sign": lambda z: np.sum(np.real(np.sign(z) * W)),
    "where": lambda z: np.sum(abs(np.where(X > 0, z, W * z))),
    "product": lambda z: np.real(z @ W * (W @ z)),
    "vdot": lambda z: np.real(np.vdot(z, W) * np.vdot(W, z)),
    "prod": lambda z: np.imag(np.prod(z)),
    "cumsum": lambda z: np.sum(abs(np.cumsum(z))),
    "fft": lambda z: np.sum(abs(np.fft.fft(z)) ** 2 * X),
    "in place": lambda z: in_place(z),
    "mixed": lambda z: np.sum(X * np.real(z) + np.real(X * z * z) - np.imag(z) * 2.0),
    "parts": lambda z: np.sum(z.real**2 * z.imag),
    "mean": lambda z: np.real(np.mean(z * z)),
    "norm": lambda z: np.linalg.norm(z),
}


def in_place(z: Any) -> Any:
    y = z * 1.0
    y[0] = 2.0
    y[1:] *= 1j
    y.imag[2] = 0.5
    return np.sum(np.real(y * y * W))


def of_parts(fun: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of real and imaginary part."""
    return lambda x, y: fun(x + 1j * y)


def slopes(fun: Callable[[Any], Any], z: np.ndarray) -> np.ndarray:
    """``df/dx - i df/dy`` by central differences."""
    h = 1e-6
    result = np.zeros_like(z)
    for k in range(z.size):
        e = np.zeros_like(z)
        e[k] = h
        result[k] = (fun(z + e) - fun(z - e)) / (2 * h) - 1j * (
            (fun(z + 1j * e) - fun(z - 1j * e)) / (2 * h)
        )
    return result


@pytest.mark.parametrize("name", REAL)
def test_real_functions_of_complex_arguments(name: str) -> None:
    fun = REAL[name]
    expected = slopes(lambda z: fun(z.copy()), Z)
    gradient = ft.grad(fun)(Z)
    assert gradient.dtype == np.complex128
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ft.jacrev(fun)(Z), gradient)
    np.testing.assert_allclose(ft.jacobian(fun)(Z), gradient)
    np.testing.assert_allclose(ft.vjp(fun, Z)[1](2.0)[0], 2 * gradient)
    np.testing.assert_allclose(ft.jit(ft.grad(fun))(Z), gradient)
    out, tangent = ft.jvp(fun, (Z,), (W,))
    assert out.dtype == tangent.dtype == np.float64
    np.testing.assert_allclose(tangent, np.sum(np.real(gradient * W)), atol=1e-12)
    np.testing.assert_allclose(ft.linearize(fun, Z)[1](W), tangent)
    by_x, by_y = ft.grad(of_parts(fun), (0, 1))(Z.real, Z.imag)
    np.testing.assert_allclose(by_x - 1j * by_y, gradient)
    if name != "product":
        np.testing.assert_allclose(ft.vmap(ft.grad(fun))(np.stack([Z, Z]))[1], gradient)


@pytest.mark.parametrize("name", REAL)
def test_second_derivatives_of_real_functions(name: str) -> None:
    fun = REAL[name]
    h = 1e-6
    expected = (ft.grad(fun)(Z + h * W) - ft.grad(fun)(Z - h * W)) / (2 * h)
    np.testing.assert_allclose(ft.hvp(fun, (Z,), (W,)), expected, rtol=1e-5, atol=1e-6)

    def squared_slope(z: Any) -> Any:
        return np.sum(abs(ft.grad(fun)(z)) ** 2)

    np.testing.assert_allclose(
        ft.grad(squared_slope)(Z), slopes(squared_slope, Z), rtol=1e-5, atol=1e-5
    )


HOLOMORPHIC: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "square": (lambda z: z * z * W, lambda z: 2 * z * W),
    "exp": (lambda z: np.exp(1j * z), lambda z: 1j * np.exp(1j * z)),
    "sqrt": (lambda z: np.sqrt(z), lambda z: 0.5 / np.sqrt(z)),
    "log": (lambda z: np.log(z), lambda z: 1 / z),
    "quotient": (lambda z: W / (z + 1), lambda z: -W / (z + 1) ** 2),
    "power": (lambda z: z**2.5, lambda z: 2.5 * z**1.5),
    "arctanh": (lambda z: np.arctanh(z), lambda z: 1 / (1 - z * z)),
    "sinh": (lambda z: np.sinh(z), lambda z: np.cosh(z)),
    "arccos": (lambda z: np.arccos(z), lambda z: -1 / np.sqrt(1 - z * z)),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions(name: str) -> None:
    fun, derivative = HOLOMORPHIC[name]
    expected = derivative(Z)
    if name == "arccos":  # on its branch
        h = 1e-6
        expected = (fun(Z + h) - fun(Z - h)) / (2 * h)
    gradient = ft.grad(lambda z: np.sum(fun(z)), holomorphic=True)(Z)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7)
    for jacobian in (ft.jacrev, ft.jacfwd, ft.jacobian):
        block = jacobian(fun, holomorphic=True)(Z)
        np.testing.assert_allclose(block, np.diag(expected), rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(ft.jvp(fun, (Z,), (W,))[1], expected * W, rtol=1e-7)
    np.testing.assert_allclose(ft.vjp(fun, Z)[1](W)[0], expected * W, rtol=1e-7)
    curve = ft.hessian(lambda z: np.sum(fun(z)), holomorphic=True)(Z)
    h = 1e-6
    slope = ft.grad(lambda z: np.sum(fun(z)), holomorphic=True)
    second = (slope(Z + h) - slope(Z - h)) / (2 * h)
    np.testing.assert_allclose(np.diag(curve), second, rtol=1e-5)


def test_complex_results_of_real_arguments() -> None:
    def fun(x: Any) -> Any:
        return np.exp(1j * x) * x

    expected = np.diag(np.exp(1j * X) * (1 + 1j * X))
    np.testing.assert_allclose(ft.jacfwd(fun)(X), expected)
    np.testing.assert_allclose(ft.jacobian(fun)(X), expected)
    np.testing.assert_allclose(ft.jvp(fun, (X,), (np.ones(3),))[1], np.diag(expected))
    with pytest.raises(NonDifferentiableError, match="complex"):
        ft.jacrev(fun)(X)
    # the pullback takes the real part: the transpose of real to complex
    np.testing.assert_allclose(ft.vjp(fun, X)[1](W)[0], np.real(np.diag(expected) * W))


def test_real_and_complex_arguments_together() -> None:
    def fun(x: Any, z: Any) -> Any:
        return np.sum(np.real(x * z * W + x**2 * np.conj(z)))

    by_x, by_z = ft.grad(fun, (0, 1))(X, Z)
    assert (by_x.dtype, by_z.dtype) == (np.float64, np.complex128)
    np.testing.assert_allclose(by_x, np.real(Z * W + 2 * X * np.conj(Z)))
    np.testing.assert_allclose(by_z, slopes(lambda z: fun(X, z), Z), rtol=1e-7, atol=1e-8)


def test_derivatives_at_zero_are_zero() -> None:
    for fun in (lambda z: np.abs(z), lambda z: np.real(np.sign(z)), lambda z: np.linalg.norm(z)):
        z = np.zeros(1, complex)
        np.testing.assert_array_equal(ft.grad(lambda z, f=fun: np.sum(f(z)))(z), [0])
        np.testing.assert_array_equal(ft.jvp(fun, (z,), (z + 1,))[1], np.zeros_like(fun(z)))


def test_single_precision_is_kept() -> None:
    z = Z.astype(np.complex64)
    assert ft.grad(lambda z: np.sum(abs(z) * 2.0))(z).dtype == np.complex64
    assert ft.jvp(lambda z: np.real(np.exp(z)), (z,), (z,))[1].dtype == np.float32
    x = X.astype(np.float32)
    assert ft.grad(lambda x: np.sum(abs(np.exp(1j * x) * 2)))(x).dtype == np.float32


def test_python_complex_numbers() -> None:
    assert ft.grad(lambda z: abs(z) ** 2)(1 + 2j) == 2 - 4j
    assert ft.grad(lambda z: z.real * z.imag)(1 + 2j) == 2 - 1j
    assert ft.grad(lambda z: z**2, holomorphic=True)(1 + 2j) == 2 + 4j
    assert ft.jvp(lambda z: z.conjugate(), (1j,), (1 + 1j,))[1] == 1 - 1j
    assert ft.grad(lambda x: (x * 1j).imag)(3.0) == 1


CUTS = {
    "arcsin": (2.0, lambda y: 1 / np.cos(y)),
    "arccos": (2.0, lambda y: -1 / np.sin(y)),
    "arccosh": (2.0, lambda y: 1 / np.sinh(y)),
    "arcsinh": (2.0j, lambda y: 1 / np.cosh(y)),
    "arctanh": (2.0, lambda y: np.cosh(y) ** 2),
    "arctan": (2.0j, lambda y: np.cos(y) ** 2),
}


@pytest.mark.parametrize("name", CUTS)
def test_derivatives_on_branch_cuts_are_those_of_the_side_of_the_value(name: str) -> None:
    fun = getattr(np, name)
    factor, derivative = CUTS[name]
    for size in (1.0, -1.0, 0.6, -0.6):
        for zero in (0.0, -0.0):
            z = np.complex128(complex(size * 2, zero) if factor == 2.0 else complex(zero, size * 2))
            expected = derivative(fun(z))
            for function in (fun, ft.jit(fun)):
                slope = ft.jvp(function, (z,), (np.complex128(1),))[1]
                np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-14)
                pulled = ft.vjp(function, z)[1](np.complex128(1))[0]
                np.testing.assert_allclose(pulled, expected, rtol=1e-12, atol=1e-14)
    # Close to the branch point the derivative keeps its digits.
    near = np.complex128(1 - 1e-12j)
    if name in ("arcsin", "arccos"):
        with mp.workdps(40):
            root = mp.sqrt(1 - mp.mpc(near) ** 2)
        slope = ft.jvp(fun, (near,), (np.complex128(1),))[1]
        assert abs(abs(slope) - float(1 / abs(root))) < 1e-11 * abs(slope)


@pytest.mark.parametrize("order", ["less", "less_equal", "greater", "greater_equal"])
def test_programs_order_complex_numbers_as_arrays_are(order: str) -> None:
    # Operators of NumPy's complex scalars, and only they, leave NaN of imaginary parts out.
    parts = (-1.0, 1.0, np.nan, np.inf, -np.inf)
    numbers = [complex(a, b) for a in parts for b in parts]
    left, right = (np.ravel(x) for x in np.meshgrid(numbers, numbers))
    compare = getattr(np, order)
    compiled = ft.jit(lambda x, y: compare(x, y))
    program = ft.make_jaxpr(compiled)(left[0], right[0])
    pairs = list(zip(left, right, strict=True))
    with np.errstate(invalid="ignore"):
        expected = compare(left, right)
        np.testing.assert_array_equal([compiled(x, y) for x, y in pairs], expected)
        found = [ft.eval_jaxpr(program, None, x, y) for x, y in pairs]
    np.testing.assert_array_equal(np.ravel(found), expected)
