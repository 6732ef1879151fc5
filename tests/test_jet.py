"""Taylor mode: ``jet`` and ``nth_derivative`` against nested ``jvp``, mpmath and closed forms."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import functrans as ft
from cases import each
from helpers import rounding_of
from samples import Row, Sample, each_sample

X = np.array([0.3, 0.7, 0.45])
V = np.array([1.0, -0.5, 2.0])
A = np.array([[4.0, 1.0, 0.5], [0.3, 3.0, 0.2], [0.1, 0.6, 5.0]])


def nested(fun: Callable[..., Any], point: Any, direction: Any, order: int) -> list[Any]:
    """The derivatives of ``t -> fun(point + t * direction)``, each by one more ``jvp``."""

    def pushed(inner: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: ft.jvp(inner, xs, direction)[1]

    found = []
    current = fun
    for _ in range(order):
        current = pushed(current)
        found.append(current(*point))
    return found


def straight(direction: Any, order: int) -> tuple[list[Any], ...]:
    return tuple([v, *[np.zeros_like(v)] * (order - 1)] for v in direction)


# every primitive --------------------------------------------------------------------------------


def _is_smooth(row: Row, sample: Sample) -> bool:
    has_derivative = row.is_differentiable and sample.has_derivative and sample.is_smooth
    return has_derivative and bool(row.moving(sample)) and row.order >= 3


SMOOTH = each_sample(_is_smooth)


def test_there_are_samples() -> None:
    assert len(SMOOTH) > 500


@each(("row", "label"), SMOOTH, by="row")
def test_every_primitive(row: Row, label: str, rng: np.random.Generator) -> None:
    sample = row.sample(label)
    fun = row.function(sample)
    point = tuple(sample.operands[i] for i in row.moving(sample))
    direction = tuple(row.direction(sample, rng))
    outs, series = ft.jet(fun, point, straight(direction, 3))
    expected = nested(fun, point, direction, 3)
    for k in range(3):
        for i, out in enumerate(outs):
            found, wanted = series[i][k], expected[k][i]
            assert found.dtype == wanted.dtype
            assert found.shape == np.shape(out)
            size = max(float(np.max(np.abs(e[i]), initial=0.0)) for e in expected)
            tolerance = 100 * rounding_of(out, *point) * (1 + size)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


# values -----------------------------------------------------------------------------------------

FUNCTIONS = {
    "exp": (np.exp, mpmath.exp),
    "expm1": (np.expm1, mpmath.expm1),
    "log": (np.log, mpmath.log),
    "log1p": (np.log1p, lambda x: mpmath.log(1 + x)),
    "sqrt": (np.sqrt, mpmath.sqrt),
    "sin": (np.sin, mpmath.sin),
    "cos": (np.cos, mpmath.cos),
    "tan": (np.tan, mpmath.tan),
    "sinh": (np.sinh, mpmath.sinh),
    "cosh": (np.cosh, mpmath.cosh),
    "tanh": (np.tanh, mpmath.tanh),
    "arcsin": (np.arcsin, mpmath.asin),
    "arctan": (np.arctan, mpmath.atan),
    "erf": (scipy.special.erf, mpmath.erf),
    "expit": (scipy.special.expit, lambda x: 1 / (1 + mpmath.exp(-x))),
    "gammaln": (scipy.special.gammaln, mpmath.loggamma),
    "square": (np.square, lambda x: x**2),
    "cube": (lambda x: x**3, lambda x: x**3),
    "root": (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5)),
    "inverse": (lambda x: x**-2, lambda x: x**-2),
    "quotient": (lambda x: (1 + x) / (2 + x * x), lambda x: (1 + x) / (2 + x * x)),
    "self": (lambda x: x**x, lambda x: x**x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_high_orders_against_mpmath(name: str) -> None:
    fun, exact = FUNCTIONS[name]
    order = 9
    out, series = ft.jet(fun, (0.4,), ([1.0, *[0.0] * (order - 1)],))
    with mpmath.workdps(40):
        taylor = mpmath.taylor(exact, mpmath.mpf(0.4), order)
        wanted = [float(c * math.factorial(k)) for k, c in enumerate(taylor)]
    np.testing.assert_allclose([out, *series], wanted, rtol=1e-10, atol=1e-12)


def test_a_curved_path() -> None:
    """Derivatives of ``y(t) = f(x(t))`` for a path that is no line."""

    def path(t: Any) -> Any:
        return 0.4 + 2.0 * t - 1.5 * t**2 + 0.5 * t**3 + t**4

    def along(t: Any) -> Any:
        return np.exp(np.sin(path(t)))

    series = [2.0, -3.0, 3.0, 24.0]
    out, found = ft.jet(lambda x: np.exp(np.sin(x)), (0.4,), (series,))
    expected = [ft.nth_derivative(along, k)(0.0) for k in range(5)]
    np.testing.assert_allclose([out, *found], expected, rtol=1e-12)
    values = nested(along, (0.0,), (1.0,), 4)
    np.testing.assert_allclose(found, values, rtol=1e-12)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "scan": lambda x: ft.lax.scan(lambda c, a: (np.sin(c) * a + c, c * a), x[0], x)[1],
    "scan that begins to vary": lambda x: ft.lax.scan(lambda c, a: (c * a, c + a), 1.0, x)[0] * x,
    "while": lambda x: ft.lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, np.sin(c[1]) * x), (0, x)
    )[1],
    "fori": lambda x: ft.lax.fori_loop(0, 3, lambda i, y: np.tanh(y) * x, x),
    "cond": lambda x: ft.lax.cond(x[0] > 0, lambda y: np.sin(y) * y, lambda y: y**2, x),
    "switch": lambda x: ft.lax.switch(1, [np.sin, np.exp, np.cos], x),
    "branch per lane": ft.vmap(lambda a: ft.lax.cond(a > 0.4, np.sin, lambda z: z * np.exp(z), a)),
    "jit": lambda x: ft.jit(lambda y: np.sin(y) * y)(x) * x,
    "checkpoint": ft.checkpoint(lambda x: np.sin(x) * x),
    "grad": ft.grad(lambda x: np.sum(np.sin(x) * np.prod(x))),
    "grad of while": ft.grad(
        lambda x: ft.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, np.sum(np.sin(x) * c[1])), (0, 1.0)
        )[1]
    ),
    "grad of scan": ft.grad(
        lambda x: ft.lax.scan(lambda c, a: (np.sin(c) * a + c, None), x[0], x)[0]
    ),
    "buffer": lambda x: _filled(x),
    "solve": lambda x: np.linalg.solve(A + np.diag(x), x),
    "det": lambda x: np.linalg.slogdet(A + np.outer(x, x))[1],
    "cholesky": lambda x: np.linalg.cholesky(A @ A.T + np.diag(x)),
    "products": lambda x: (A @ x) @ (A.T @ np.sin(x)),
    "where": lambda x: np.where(x > 0.4, np.exp(x), x * x),
    "maximum": lambda x: np.maximum(x, 0.4) * x,
    "complex": lambda x: np.exp(1j * x) * x,
    "python": lambda x: np.sin(x) if x[0] > 0 else np.cos(x),
}


def _filled(x: Any) -> Any:
    buffer = np.zeros(4, like=x)
    for i in range(3):
        buffer[i + 1] = np.sin(buffer[i]) + x[i] ** 2
    buffer[1:3] *= x[0]
    return buffer


@ft.custom_jvp
def _exponential(x: Any) -> Any:
    return np.exp(x)


_exponential.defjvp(
    lambda primals, tangents: (_exponential(*primals), _exponential(*primals) * tangents[0])
)


@ft.custom_vjp
def _sine(x: Any) -> Any:
    return np.sin(x)


_sine.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.cos(x) * ct,))
PROGRAMS |= {"custom_jvp that uses itself": _exponential, "custom_vjp": _sine}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    fun = PROGRAMS[name]
    found = ft.jet(fun, (X,), straight((V,), 4))
    expected = nested(fun, (X,), (V,), 4)
    np.testing.assert_allclose(found[0], fun(X))
    for k in range(4):
        np.testing.assert_allclose(found[1][k], expected[k], rtol=1e-9, atol=1e-10)
    if name == "python":
        return
    compiled = ft.jit(lambda x, v: ft.jet(fun, (x,), straight((v,), 4))[1])(X, V)
    for k in range(4):
        np.testing.assert_allclose(compiled[k], expected[k], rtol=1e-9, atol=1e-10)


def test_custom_rules_are_used() -> None:
    @ft.custom_jvp
    def doubled(x: Any) -> Any:
        return np.sin(x)

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))
    _, series = ft.jet(doubled, (0.3,), ([1.0, 0.0],))
    np.testing.assert_allclose(series, [2.0, 0.0])


def test_powers_at_zero() -> None:
    _, cube = ft.jet(lambda x: x**3, (0.0,), ([1.0, 0.0, 0.0, 0.0],))
    np.testing.assert_allclose(cube, [0.0, 0.0, 6.0, 0.0])
    _, root = ft.jet(lambda x: x**1.5, (0.0,), ([1.0, 0.0, 0.0],))
    np.testing.assert_array_equal(root, [0.0, np.inf, -np.inf])
    _, flat = ft.jet(lambda x: np.sqrt(x**4), (0.0,), ([1.0, 0.0],))
    np.testing.assert_array_equal(flat, [0.0, 0.0])


# composition ------------------------------------------------------------------------------------


def test_jet_is_differentiable() -> None:
    def third(x: Any) -> Any:
        return np.sum(ft.jet(lambda y: np.tanh(A @ y), (x,), straight((V,), 3))[1][2])

    ft.check_grads(third, (X,), order=2, modes=("fwd", "rev"))


def test_jet_of_jet_and_of_grad() -> None:
    def inner(x: Any) -> Any:
        return ft.jet(np.sin, (x,), ([1.0, 0.0],))[1][1]

    _, series = ft.jet(inner, (0.3,), ([1.0, 0.0],))
    np.testing.assert_allclose(series, [-np.cos(0.3), np.sin(0.3)])
    np.testing.assert_allclose(ft.grad(inner)(0.3), -np.cos(0.3))


def test_jet_under_vmap() -> None:
    points = np.linspace(0.1, 1.0, 5)
    found = ft.vmap(lambda x: ft.jet(np.exp, (x,), ([1.0, 0.0, 0.0],))[1])(points)
    for own in found:
        np.testing.assert_allclose(own, np.exp(points))


def test_a_captured_array_stays_an_input_of_a_compiled_jet() -> None:
    weights = np.ones(3)
    jitted = ft.jit(lambda x: ft.jet(lambda y: np.sin(y @ weights), (x,), straight((V,), 2))[1][1])
    first = jitted(X)
    weights[:] = 2.0
    expected = nested(lambda y: np.sin(y @ weights), (X,), (V,), 2)[1]
    np.testing.assert_allclose(jitted(X), expected)
    assert not np.allclose(first, expected)


def test_trees_in_and_out() -> None:
    point = {"a": 0.5, "b": np.array([1.0, 2.0])}
    first = {"a": 1.0, "b": np.array([0.0, 1.0])}
    second = {"a": 0.0, "b": np.zeros(2)}

    def fun(p: Any, y: Any) -> Any:
        return {"product": p["a"] * p["b"] * y, "constant": np.ones(2)}

    out, series = ft.jet(fun, (point, 3.0), ([first, second], [0, 0]))
    np.testing.assert_allclose(out["product"], [1.5, 3.0])
    np.testing.assert_allclose(series["product"][0], [3.0, 6.0 + 1.5])
    np.testing.assert_allclose(series["product"][1], [0.0, 2 * 3.0])
    np.testing.assert_allclose(series["constant"], np.zeros((2, 2)))


def test_float32_stays() -> None:
    x, v = np.float32([0.5, 0.25]), np.ones(2, np.float32)
    out, series = ft.jet(lambda y: np.exp(y) ** 1.5 / (1 + y), (x,), straight((v,), 4))
    assert {a.dtype for a in (out, *series)} == {np.dtype(np.float32)}


def test_arrays_of_the_caller_are_neither_changed_nor_returned() -> None:
    x, v = X.copy(), V.copy()
    out, series = ft.jet(lambda y: y, (x,), ([v, np.zeros(3)],))
    out[:] = 7.0
    series[0][:] = 7.0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(v, V)


def test_empty_arrays() -> None:
    out, series = ft.jet(np.sin, (np.zeros(0),), ([np.zeros(0), np.zeros(0)],))
    assert out.shape == series[0].shape == series[1].shape == (0,)


# nth_derivative ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(8))
def test_nth_derivative(n: int) -> None:
    def fun(x: Any) -> Any:
        return {"sine": np.sin(2 * x), "pair": x**5 * np.array([1.0, 2.0])}

    found = ft.nth_derivative(fun, n)(0.3)
    np.testing.assert_allclose(found["sine"], 2.0**n * np.sin(0.6 + n * np.pi / 2), atol=1e-12)
    power = math.perm(5, n) * 0.3 ** (5 - n) if n <= 5 else 0.0
    np.testing.assert_allclose(found["pair"], power * np.array([1.0, 2.0]), atol=1e-12)


def test_nth_derivative_composes() -> None:
    third = ft.nth_derivative(np.sin, 3)
    np.testing.assert_allclose(ft.grad(third)(0.3), np.sin(0.3))
    np.testing.assert_allclose(ft.jit(third)(0.3), -np.cos(0.3))
    np.testing.assert_allclose(ft.vmap(third)(X), -np.cos(X))
    np.testing.assert_allclose(ft.nth_derivative(np.exp, 2)(0.3 + 0.2j), np.exp(0.3 + 0.2j))


# errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "error", "match"),
    [
        ((X, [[X]]), TypeError, "primals must be a tuple"),
        (((X,), ([X], [X])), TypeError, "1 primals and 2 series"),
        (((X,), (X,)), TypeError, r"series\[0\] must be a list of derivatives, got ndarray"),
        (((X, X), ([X], [X, X])), ValueError, r"lengths \[1, 2\]"),
        (((X,), ([],)), ValueError, r"lengths \[0\]"),
        (((X,), ([np.ones(2)],)), ft.errors.ShapeError, r"series\[0\]\[0\].*\(2,\).*f64\[3\]"),
        (((X,), ([(X, X)],)), ft.errors.TreeMismatchError, r"series\[0\]\[0\]"),
        (((1,), ([1.0],)), ft.errors.NonDifferentiableError, r"series\[0\]\[0\].*of dtype int64"),
    ],
)
def test_bad_series(args: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ft.jet(np.sin, *args)


def test_bad_orders() -> None:
    with pytest.raises(TypeError, match="n must be an integer, got float"):
        ft.nth_derivative(np.sin, 1.0)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        ft.nth_derivative(np.sin, -1)
    with pytest.raises(ft.errors.ShapeError, match=r"f64\[3\].*ft.vmap"):
        ft.nth_derivative(np.sin, 2)(X)
    with pytest.raises(TypeError, match="expected a function"):
        ft.nth_derivative(3.0, 2)  # type: ignore[arg-type]  # on purpose


def test_a_function_without_derivative_is_named() -> None:
    def opaque(x: Any) -> Any:
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), float), x)

    with pytest.raises(ft.errors.NonDifferentiableError, match="pure_callback"):
        ft.jet(opaque, (X,), straight((V,), 2))
