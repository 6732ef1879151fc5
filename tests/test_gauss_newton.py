"""Gauss-Newton products and linear operators, against dense matrices."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import cg, eigsh

import functrans as ft
from functrans.flatten_util import ravel_pytree

RNG = np.random.default_rng(3)
DATA = RNG.normal(size=(12, 4))
TARGET = RNG.normal(size=(12, 3))
LABELS = RNG.integers(0, 3, 12)
PARAMS = {"w": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3), "scale": 0.7}
V = {"w": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3), "scale": -1.2}


def model(p: Any) -> Any:
    return np.tanh(DATA @ p["w"] + p["b"]) * p["scale"]


def squares(out: Any) -> Any:
    return 0.5 * np.mean(np.sum((out - TARGET) ** 2, axis=1))


def cross_entropy(out: Any) -> Any:
    shifted = out - np.log(np.sum(np.exp(out), axis=1, keepdims=True))
    return -np.mean(shifted[np.arange(12), LABELS])


def poisson(out: Any) -> Any:
    return np.mean(np.exp(out) - TARGET * out)


LOSSES = {"squares": squares, "cross entropy": cross_entropy, "poisson": poisson}


def _dense(loss: Any) -> Any:
    """``J^T H J`` by its definition, on the vector of all parameters."""
    vector, unravel = ravel_pytree(PARAMS)
    jacobian = ft.jacobian(lambda z: model(unravel(z)))(vector).reshape(36, -1)
    curvature = ft.hessian(loss)(model(PARAMS)).reshape(36, 36)
    return jacobian.T @ curvature @ jacobian


def _flat(tree: Any) -> Any:
    return ravel_pytree(tree)[0]


@pytest.mark.parametrize("name", LOSSES)
def test_products(name: str) -> None:
    loss = LOSSES[name]
    matrix = _dense(loss)
    product = ft.ggn(model, loss)
    expected = matrix @ _flat(V)
    found = product(PARAMS, V)
    assert ft.tree.structure(found) == ft.tree.structure(PARAMS)
    np.testing.assert_allclose(_flat(found), expected, rtol=1e-10, atol=1e-13)
    compiled = ft.jit(product)(PARAMS, V)
    np.testing.assert_allclose(_flat(compiled), expected, rtol=1e-10, atol=1e-13)
    assert np.all(np.linalg.eigvalsh(matrix) > -1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_dense_diagonal_and_operator(name: str) -> None:
    loss = LOSSES[name]
    matrix = _dense(loss)
    product = ft.ggn(model, loss)
    diagonal = product.diagonal(PARAMS, chunk_size=4)
    np.testing.assert_allclose(_flat(diagonal), np.diag(matrix), rtol=1e-10, atol=1e-13)
    blocks = product.dense(PARAMS, chunk_size=5)
    whole = ft.hessian(lambda p: loss(model(p)))(PARAMS)
    assert ft.tree.structure(blocks) == ft.tree.structure(whole)
    keys = sorted(PARAMS)
    sizes = [np.size(PARAMS[key]) for key in keys]
    rows = [
        np.concatenate([blocks[a][b].reshape(n, m) for b, m in zip(keys, sizes, strict=True)], 1)
        for a, n in zip(keys, sizes, strict=True)
    ]
    np.testing.assert_allclose(np.concatenate(rows), matrix, rtol=1e-10, atol=1e-13)
    operator = product.operator(PARAMS)
    assert operator.shape == matrix.shape
    columns = RNG.normal(size=(len(matrix), 5))
    np.testing.assert_allclose(operator @ columns, matrix @ columns, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(operator.T @ columns[:, 0], matrix @ columns[:, 0], rtol=1e-9)


def test_it_is_the_hessian_where_the_model_is_linear() -> None:
    product = ft.ggn(lambda w: DATA @ w, squares)
    w, v = PARAMS["w"], V["w"]
    expected = ft.hvp(lambda p: squares(DATA @ p), (w,), (v,))
    np.testing.assert_allclose(product(w, v), expected, rtol=1e-12)


def test_it_is_the_fisher_matrix_of_a_softmax() -> None:
    """The mean over labels drawn from the model of outer products of gradients."""
    vector, unravel = ravel_pytree(PARAMS)

    def log_probability(z: Any, row: int, label: int) -> Any:
        out = model(unravel(z))[row]
        return out[label] - np.log(np.sum(np.exp(out)))

    fisher = np.zeros((len(vector), len(vector)))
    for row in range(12):
        for label in range(3):
            g = ft.grad(log_probability)(vector, row, label)
            weight = np.exp(log_probability(vector, row, label)) / 12
            fisher += weight * np.outer(g, g)
    np.testing.assert_allclose(_dense(cross_entropy), fisher, rtol=1e-9, atol=1e-12)


def test_composition() -> None:
    product = ft.ggn(model, poisson)

    def curvature(w: Any) -> Any:
        p = {**PARAMS, "w": w}
        g = product(p, V)
        return sum(np.sum(g[key] * V[key]) for key in g)

    ft.check_grads(curvature, (PARAMS["w"],), order=1, modes=("fwd", "rev"))
    many = {key: np.stack([V[key], 2 * np.asarray(V[key])]) for key in V}
    found = ft.vmap(product, in_axes=(None, 0))(PARAMS, many)
    np.testing.assert_allclose(found["w"][1], 2 * product(PARAMS, V)["w"], rtol=1e-12)


def test_models_with_trees_and_float32() -> None:
    def two(w: Any) -> Any:
        return {"a": np.sin(w), "b": np.sum(w)}

    def loss(out: Any) -> Any:
        return np.sum(out["a"] ** 2) + out["b"] ** 4

    w = np.float32([0.5, 1.0])
    found = ft.ggn(two, loss).dense(w)
    expected = np.diag(2 * np.cos(w) ** 2) + 12 * np.sum(w) ** 2
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_result_that_the_loss_ignores() -> None:
    product = ft.ggn(lambda w: (w**2, np.ones(3)), lambda out: np.sum(out[1] ** 2))
    np.testing.assert_array_equal(product(np.ones(2), np.ones(2)), np.zeros(2))


# operators --------------------------------------------------------------------------------------


def test_hessian_operator_in_scipy_solvers() -> None:
    matrix = RNG.normal(size=(8, 8))

    def fun(p: Any) -> Any:
        return np.sum(np.cosh(matrix @ p["x"])) + p["y"] ** 4

    point = {"x": 0.1 * RNG.normal(size=8), "y": 0.5}
    vector, unravel = ravel_pytree(point)
    dense = ft.hessian(lambda z: fun(unravel(z)))(vector)
    operator = ft.hessian_operator(fun, point)
    rhs = RNG.normal(size=9)
    solution, status = cg(operator, rhs, rtol=1e-12, maxiter=500)
    assert status == 0
    np.testing.assert_allclose(dense @ solution, rhs, rtol=1e-6, atol=1e-8)
    (largest,) = eigsh(operator, k=1, return_eigenvectors=False)
    np.testing.assert_allclose(largest, np.linalg.eigvalsh(dense)[-1], rtol=1e-9)
    np.testing.assert_allclose(operator @ np.eye(9), dense, rtol=1e-10, atol=1e-12)


def test_jacobian_operator_from_both_sides() -> None:
    operator = ft.jacobian_operator(model, PARAMS)
    vector, unravel = ravel_pytree(PARAMS)
    dense = ft.jacobian(lambda z: model(unravel(z)))(vector).reshape(36, -1)
    assert operator.shape == dense.shape
    assert operator.dtype == np.float64
    right, left = RNG.normal(size=(16, 3)), RNG.normal(size=(36, 2))
    np.testing.assert_allclose(operator @ right, dense @ right, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(operator.T @ left, dense.T @ left, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(operator @ right[:, 0], dense @ right[:, 0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(operator.H @ left[:, 0], dense.T @ left[:, 0], atol=1e-12)


def test_a_complex_operator_has_the_conjugate_adjoint() -> None:
    z = np.array([0.3 + 0.2j, 1.0 - 0.5j])
    matrix = RNG.normal(size=(3, 2)) + 1j * RNG.normal(size=(3, 2))
    operator = ft.jacobian_operator(lambda y: matrix @ np.exp(y), z)
    dense = matrix * np.exp(z)
    left = RNG.normal(size=3) + 1j * RNG.normal(size=3)
    np.testing.assert_allclose(operator @ z, dense @ z)
    np.testing.assert_allclose(operator.H @ left, dense.conj().T @ left)


# errors -----------------------------------------------------------------------------------------


def test_errors() -> None:
    product = ft.ggn(model, squares)
    with pytest.raises(TypeError, match="ggn: expected a function, got float"):
        ft.ggn(model, 1.0)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ft.errors.TreeMismatchError, match="v has structure"):
        product(PARAMS, {"w": V["w"]})
    with pytest.raises(ft.errors.ShapeError, match=r"v\['b'\] has shape \(2,\)"):
        product(PARAMS, {**V, "b": np.ones(2)})
    with pytest.raises(ft.errors.ShapeError, match="scalar result"):
        ft.ggn(model, lambda out: out)(PARAMS, V)
    with pytest.raises(ft.errors.NonDifferentiableError, match=r"v is f64\[3\].*of dtype int64"):
        ft.ggn(np.sin, np.sum)(np.arange(3), np.ones(3))
    with pytest.raises(MemoryError, match="16 x 16 entries"):
        product.dense(PARAMS, memory_bytes=100)
    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"LinearOperator.*plain arrays"):
        ft.jit(lambda x: ft.hessian_operator(np.sum, x) @ np.ones(3))(np.ones(3))
