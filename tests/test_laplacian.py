"""The forward Laplacian against the trace of the Hessian."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import functrans as ft
from cases import each
from functrans import numpy as fnp
from helpers import rounding_of
from samples import Row, Sample, each_sample

N = 6
RNG = np.random.default_rng(7)
X = RNG.uniform(0.2, 0.8, N)
WEIGHTS = RNG.normal(size=N)
A = RNG.normal(size=(N, N)) + 4 * np.eye(N)
B = RNG.normal(size=(3, 4))
C = RNG.normal(size=(3, 5))
D = RNG.normal(size=(4, 2))
E = RNG.normal(size=(10, 4))


# every primitive --------------------------------------------------------------------------------


def _is_smooth(row: Row, sample: Sample) -> bool:
    has_derivative = row.is_differentiable and sample.has_derivative and sample.is_smooth
    moving = row.moving(sample)
    is_real = all(np.asarray(sample.operands[i]).dtype.kind == "f" for i in moving)
    is_plain = not row.hermitian and row.order >= 2
    return has_derivative and bool(moving) and is_real and is_plain


SMOOTH = each_sample(_is_smooth)


def test_there_are_samples() -> None:
    assert len(SMOOTH) > 400


@each(("row", "label"), SMOOTH, by="row")
def test_every_primitive(row: Row, label: str, rng: np.random.Generator) -> None:
    """With weights that are zero but for a few elements, each of which is differentiated alone."""
    sample = row.sample(label)
    fun = row.function(sample)
    point = tuple(np.asarray(sample.operands[i]) for i in row.moving(sample))
    weights = tuple(np.zeros_like(x) for x in point)
    outs = fun(*point)
    expected = [np.zeros_like(out) for out in outs]
    for k, x in enumerate(point):
        for place in rng.permutation(x.size)[:3]:
            weight = weights[k].flat[place] = rng.normal()
            direction = tuple(np.zeros_like(y) for y in point)
            direction[k].flat[place] = 1.0

            def pushed(*xs: Any, direction: Any = direction) -> Any:
                return ft.jvp(fun, xs, direction)[1]

            second = ft.jvp(pushed, point, direction)[1]
            expected = [e + weight * s for e, s in zip(expected, second, strict=True)]
    numbers = tuple(range(len(point)))
    found = ft.laplacian(fun, numbers, weights=weights)(*point)
    for one, wanted, out in zip(found, expected, outs, strict=True):
        assert one.dtype == np.asarray(out).dtype
        assert one.shape == np.shape(out)
        scale = 1 + float(np.max(np.abs(wanted), initial=0.0))
        tolerance = 100 * rounding_of(out, *point) * scale
        np.testing.assert_allclose(one, wanted, rtol=0, atol=tolerance)


# functions --------------------------------------------------------------------------------------


def _mixed(x: Any) -> Any:
    """Rows that depend on their own row of the input, then on all: the shape of a wave function."""
    h = np.tanh(x @ C)
    mean = np.mean(h, axis=0)
    both = np.concatenate([h, np.broadcast_to(mean, h.shape)], axis=1)
    h = np.tanh(both @ E)
    return np.sum(h * h) + np.sum(D @ x * np.ones((4, 3))) ** 2


def _attention(x: Any) -> Any:
    scores = np.exp(x @ x.T)
    return scores / np.sum(scores, axis=1, keepdims=True) @ x


VECTORS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x: np.sin(x) * np.exp(x),
    "sum": lambda x: np.sum(x**3),
    "product of two": lambda x: np.tanh(A @ x) @ np.cos(x),
    "outer": lambda x: np.outer(x, np.sin(x)),
    "reshaped": lambda x: (np.sin(x).reshape(2, 3) @ B) ** 2,
    "pairs": lambda x: np.sum(np.sqrt((x[:, None] - x[None, :]) ** 2 + 1)),
    "partial sums": lambda x: np.sum(np.sin(x).reshape(2, 3) * x.reshape(2, 3), axis=0) ** 2,
    "slogdet": lambda x: np.linalg.slogdet(A + np.outer(x, x))[1],
    "solve": lambda x: np.linalg.solve(A, x) @ np.linalg.solve(A + np.diag(x), x),
    "reversed": lambda x: x / (1 + x[::-1]),
    "where": lambda x: np.where(x > 0.5, x * x, np.exp(x)),
    "concatenated": lambda x: np.concatenate([np.sin(x), x * np.sum(x)]),
    "prod": lambda x: np.prod(np.sin(x)),
    "two operands": lambda x: np.arctan2(x, np.sum(x)) + x**x,
    "complex": lambda x: np.exp(1j * x) * np.sum(x),
    "slices": lambda x: np.sin(x)[2:4] * x[1:3],
    "stacked": lambda x: np.einsum("i,j,k->ijk", x, x, np.sin(x)),
    "scan": lambda x: ft.lax.scan(lambda c, a: (np.sin(c) * a + c, c * a), x[0], x)[1],
    "while": lambda x: ft.lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, np.sin(c[1]) * x), (0, x)
    )[1],
    "cond": lambda x: ft.lax.cond(x[0] > 0, np.sin, np.cos, x),
    "jit": lambda x: ft.jit(lambda y: np.sin(y) @ y)(x) * x,
    "grad": lambda x: ft.grad(lambda y: np.sum(np.sin(y) ** 3 * np.sum(y)))(x),
    "constant": lambda x: np.ones(3),
    "linear": lambda x: A @ x,
    "convolved": lambda x: np.convolve(np.sin(x), x),
    "cumulative": lambda x: np.cumsum(x) ** 2,
    "mapped": lambda x: ft.vmap(lambda a: np.sin(a) * a)(x),
    "special": lambda x: scipy.special.erf(x) * scipy.special.gammaln(x),
    "gram": lambda x: (lambda a: a @ a.T)(np.sin(x).reshape(2, 3)),
}
MATRICES: dict[str, Callable[..., Any]] = {
    "mixed": _mixed,
    "attention": _attention,
    "from the left": lambda x: (D @ np.sin(x)) ** 2,
    "both sides": lambda x: np.einsum("ij,ik->jk", x, np.sin(x)),
    "batched": lambda x: np.einsum("ij,ijk->ik", np.sin(x), np.ones((2, 3, 4))) * x[:, :1],
    "transposed": lambda x: np.sin(x).T @ D.T * x.T[:, :1],
    "rows": lambda x: np.sum(np.sin(x) ** 2, axis=1) ** 2,
}


def _references(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    jacobian = ft.jacfwd(fun)(x)
    hessian = ft.jacfwd(ft.jacfwd(fun))(x)
    return jacobian, hessian.reshape(*np.shape(fun(x)), x.size, x.size)


@pytest.mark.parametrize("name", [*VECTORS, *MATRICES])
def test_functions(name: str) -> None:
    fun = VECTORS[name] if name in VECTORS else MATRICES[name]
    x = X if name in VECTORS else X.reshape(2, 3)
    weights = WEIGHTS.reshape(x.shape)
    jacobian, hessian = _references(fun, x)
    out, own_jacobian, found = ft.forward_laplacian(fun)(x)
    np.testing.assert_allclose(out, fun(x))
    np.testing.assert_allclose(own_jacobian, jacobian, atol=1e-12)
    np.testing.assert_allclose(found, np.einsum("...ii->...", hessian), atol=1e-11)
    weighted = np.einsum("...ii,i->...", hessian, WEIGHTS)
    np.testing.assert_allclose(ft.laplacian(fun, weights=weights)(x), weighted, atol=1e-11)
    compiled = ft.jit(lambda y, w: ft.laplacian(fun, weights=w)(y))(x, weights)
    np.testing.assert_allclose(compiled, weighted, atol=1e-11)


def test_harmonic_functions() -> None:
    """Closed forms: ``1 / r`` is harmonic in three dimensions, ``r ** 2`` has Laplacian ``2 n``."""
    r = np.array([1.0, 2.0, -0.5])
    inverse = ft.laplacian(lambda x: 1 / np.linalg.norm(x))(r)
    np.testing.assert_allclose(inverse, 0.0, atol=1e-14)
    np.testing.assert_allclose(ft.laplacian(lambda x: x @ x)(X), 2 * N)


def test_trees_and_several_arguments() -> None:
    point = {"a": X, "b": 0.7}

    def fun(p: Any, q: Any) -> Any:
        return np.sum(np.sin(p["a"]) * q) + p["b"] ** 3 * np.sum(q * q)

    found = ft.laplacian(fun, (0, 1))(point, X)
    by_a = -np.sum(np.sin(X) * X)
    by_b = 6 * 0.7 * np.sum(X * X)
    np.testing.assert_allclose(found, by_a + by_b + 2 * N * 0.7**3)
    only = ft.laplacian(fun, weights={"a": 2.0, "b": 0.0})(point, X)
    np.testing.assert_allclose(only, 2 * by_a)
    _, jacobian, _ = ft.forward_laplacian(fun, (0, 1))(point, X)
    np.testing.assert_allclose(jacobian[0]["b"], 3 * 0.7**2 * np.sum(X * X))
    np.testing.assert_allclose(jacobian[1], np.sin(X) + 2 * 0.7**3 * X)


def test_results_in_containers_and_aux() -> None:
    def fun(x: Any) -> Any:
        return {"s": np.sum(x**2), "c": 1.0}, x[0]

    found, aux = ft.laplacian(fun, has_aux=True)(X)
    np.testing.assert_allclose(found["s"], 2 * N)
    np.testing.assert_array_equal(found["c"], 0.0)
    np.testing.assert_array_equal(aux, X[0])


# composition ------------------------------------------------------------------------------------


def test_it_is_differentiable() -> None:
    def fun(x: Any) -> Any:
        return ft.laplacian(VECTORS["product of two"])(x)

    ft.check_grads(fun, (X,), order=1, modes=("fwd", "rev"))


def test_it_is_differentiable_in_parameters_under_jit() -> None:
    def local_energy(weights: Any, x: Any) -> Any:
        def log_psi(y: Any) -> Any:
            return np.sum(np.tanh(weights @ y))

        _, slope, second = ft.forward_laplacian(log_psi)(x)
        return -0.5 * (second + slope @ slope)

    ft.check_grads(lambda w: local_energy(w, X), (A,), order=1, modes=("rev",))
    compiled = ft.jit(ft.grad(local_energy))(A, X)
    np.testing.assert_allclose(compiled, ft.grad(local_energy)(A, X), rtol=1e-10)


@pytest.mark.parametrize("name", ["product of two", "slogdet", "pairs", "scan"])
def test_it_is_batched(name: str) -> None:
    points = np.stack([X, 2 * X, X[::-1]])
    found = ft.vmap(ft.laplacian(VECTORS[name]))(points)
    expected = [ft.laplacian(VECTORS[name])(x) for x in points]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("transform", [ft.jit, lambda f: ft.jit(ft.vmap(f)), ft.vmap])
def test_numbers_under_jit_and_vmap(transform: Any) -> None:
    """The derivative of a number by itself is a constant of shape ``()``."""
    x, y = np.array([0.5, 1.5]), np.array([2.0, 3.0])
    found = transform(ft.laplacian(lambda x, y: x**3 * y**2, (0, 1)))
    expected = 6 * x * y**2 + 2 * x**3
    if transform is ft.jit:
        np.testing.assert_allclose(found(np.array(0.5), np.array(2.0)), expected[0], rtol=1e-14)
    else:
        np.testing.assert_allclose(found(x, y), expected, rtol=1e-14)


def test_a_captured_array_stays_an_input_of_a_compiled_laplacian() -> None:
    matrix = A.copy()
    jitted = ft.jit(ft.laplacian(lambda x: np.sum(np.tanh(matrix @ x))))
    jitted(X)
    matrix *= 0.5
    np.testing.assert_allclose(
        jitted(X), ft.laplacian(lambda x: np.sum(np.tanh(matrix @ x)))(X), rtol=1e-12
    )


def test_float32_stays() -> None:
    x = X.astype(np.float32)
    out, jacobian, found = ft.forward_laplacian(
        lambda y: np.where(y > 0.5, np.tanh(y), np.sqrt(y)) ** 1.5 @ A.astype(np.float32)
    )(x)
    assert out.dtype == jacobian.dtype == found.dtype == np.float32


def test_the_slope_at_zero_of_sqrt_keeps_its_convention() -> None:
    found = ft.laplacian(lambda x: np.sum(np.sqrt(x * np.zeros(N)) + x))(X)
    np.testing.assert_array_equal(found, 0.0)


def test_empty_arguments() -> None:
    np.testing.assert_array_equal(ft.laplacian(lambda x: np.sum(np.sin(x)))(np.zeros(0)), 0.0)
    assert ft.laplacian(np.sin)(np.zeros((0, 3))).shape == (0, 3)


def test_python_control_flow_runs_on_values() -> None:
    found = ft.laplacian(lambda x: x[0] ** 2 if x[0] > 0 else x[0])(X)
    np.testing.assert_allclose(found, 2.0)


def test_the_first_layer_costs_no_product() -> None:
    """Sums over an axis that is still aligned with the input have one term per direction."""
    jaxpr = ft.make_jaxpr(ft.laplacian(lambda x: np.sum(np.tanh(x @ A) @ A)))(X)
    contracted = [
        eqn.params["contract"]
        for eqn in jaxpr.eqns
        if eqn.primitive.name == "dot_general" and len(eqn.outputs[0].aval.shape) > 1
    ]
    assert ((), ()) in contracted  # the derivative of the first product: rows of the matrix


# errors -----------------------------------------------------------------------------------------


def test_bad_arguments() -> None:
    with pytest.raises(ft.errors.NonDifferentiableError, match=r"args\[0\].*c128.*real"):
        ft.laplacian(lambda x: np.sum(np.abs(x)))(X + 0j)
    with pytest.raises(ft.errors.NonDifferentiableError, match=r"args\[0\]"):
        ft.laplacian(np.sum)(np.arange(3))
    with pytest.raises(ft.errors.NonDifferentiableError, match=r"result 0 is i64"):
        ft.laplacian(lambda x: np.argmax(x))(X)
    with pytest.raises(ft.errors.ShapeError, match=r"f64\[6\].*weights.*f64\[2\]"):
        ft.laplacian(np.sum, weights=np.ones(2))(X)
    with pytest.raises(ft.errors.NonDifferentiableError, match=r"weights are c128.*real"):
        ft.laplacian(np.sum, weights=1j)(X)
    with pytest.raises(ft.errors.TreeMismatchError, match="weights"):
        ft.laplacian(lambda p: np.sum(p["a"]), weights={"b": 1.0})({"a": X})
    with pytest.raises(TypeError, match="laplacian: expected a function"):
        ft.laplacian(3.0)  # type: ignore[arg-type]  # on purpose


def test_a_function_without_derivative_is_named() -> None:
    def opaque(x: Any) -> Any:
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct((N,), float), x)

    with pytest.raises(ft.errors.NonDifferentiableError, match="pure_callback"):
        ft.laplacian(opaque)(X)


@pytest.mark.usefixtures("names_as_they_are")
def test_values_do_not_leave_the_trace() -> None:
    with pytest.raises(ft.errors.ConcretizationError, match="float"):
        ft.laplacian(lambda x: float(x[0]) * x)(X)
    kept: list[Any] = []
    ft.laplacian(lambda x: kept.append(x) or fnp.sum(x))(X)
    with pytest.raises(ft.errors.EscapedTracerError):
        kept[0] + 1
