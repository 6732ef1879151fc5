"""Per-example gradients: ``vmap`` of ``grad`` is the loop of gradients."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functions import STAGEABLE, Case
from helpers import assert_close

CASES = [pytest.param(case, id=case.name) for case in STAGEABLE]
SIZE = 3


def _points(case: Case) -> np.ndarray:
    return np.stack([case.point + 0.01 * k * case.direction(k) for k in range(SIZE)])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("derivative", [ft.grad, ft.value_and_grad, ft.jacfwd, ft.jacrev])
def test_vmap_of_derivative_is_the_loop(case: Case, derivative: Any) -> None:
    points = _points(case)
    fun = derivative(case.fun)
    rows = [fun(x) for x in points]
    expected = ft.tree.map(lambda *leaves: np.stack(leaves), *rows)
    assert_close(ft.vmap(fun)(points), expected, rtol=1e-10)
    assert_close(ft.vmap(fun, in_axes=1)(points.T), expected, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_out_axes_place_the_batch(case: Case) -> None:
    points = _points(case)
    fun = ft.grad(case.fun)
    assert_close(ft.vmap(fun, out_axes=1)(points), ft.vmap(fun)(points).T)


@pytest.mark.parametrize("case", CASES)
def test_chunks_give_the_same(case: Case) -> None:
    points = np.concatenate([_points(case)] * 2)
    fun = ft.grad(case.fun)
    assert_close(ft.vmap(fun, chunk_size=4)(points), ft.vmap(fun)(points), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_vmap_of_vjp_maps_the_cotangents(case: Case) -> None:
    points, cts = _points(case), np.array([1.0, -2.0, 0.5])
    found = ft.vmap(lambda x, ct: ft.vjp(case.fun, x)[1](ct)[0])(points, cts)
    expected = np.stack([ct * ft.grad(case.fun)(x) for x, ct in zip(points, cts, strict=True)])
    assert_close(found, expected, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_vmap_of_jvp_maps_the_tangents_only(case: Case) -> None:
    """One point, many directions: forward Jacobians are made of this."""
    directions = np.eye(case.point.size)
    found = ft.vmap(lambda v: ft.jvp(case.fun, (case.point,), (v,))[1])(directions)
    assert_close(found, ft.grad(case.fun)(case.point), rtol=1e-10)


def _loss(params: Any, x: Any, y: Any, *, decay: Any = 0.0) -> Any:
    prediction = np.tanh(x @ params["w"] + params["b"])
    return np.sum((prediction - y) ** 2) + decay * np.sum(params["w"] ** 2)


def _data() -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    params = {"w": rng.standard_normal((3, 2)), "b": rng.standard_normal(2)}
    return params, rng.standard_normal((4, 3)), rng.standard_normal((4, 2))


def test_per_example_gradients_of_a_pytree() -> None:
    params, xs, ys = _data()
    found = ft.vmap(ft.grad(_loss), in_axes=(None, 0, 0))(params, xs, ys)
    rows = [ft.grad(_loss)(params, x, y) for x, y in zip(xs, ys, strict=True)]
    assert_close(found, ft.tree.map(lambda *leaves: np.stack(leaves), *rows))
    assert np.any(found["b"] != 0)


def test_keyword_arguments_are_mapped_over_their_first_axis() -> None:
    params, xs, ys = _data()
    decays = np.array([0.0, 0.1, 0.2, 0.3])
    found = ft.vmap(ft.grad(_loss), in_axes=(None, 0, 0))(params, xs, ys, decay=decays)
    rows = [
        ft.grad(_loss)(params, x, y, decay=decay)
        for x, y, decay in zip(xs, ys, decays, strict=True)
    ]
    assert_close(found, ft.tree.map(lambda *leaves: np.stack(leaves), *rows))


def test_gradient_in_a_mapped_and_in_a_shared_argument() -> None:
    params, xs, ys = _data()
    fun = ft.grad(_loss, argnums=(1, 2))
    found = ft.vmap(fun, in_axes=({"w": None, "b": None}, 0, 0))(params, xs, ys)
    rows = [fun(params, x, y) for x, y in zip(xs, ys, strict=True)]
    assert_close(found, ft.tree.map(lambda *leaves: np.stack(leaves), *rows))


def test_closure_over_a_mapped_value() -> None:
    """The inner gradient closes over the outer batch."""

    def outer(a: Any, x: Any) -> Any:
        return ft.grad(lambda y: np.sum(np.sin(a * y) * x))(x)

    a, xs = np.array([0.5, 1.5, -1.0]), np.arange(6.0).reshape(3, 2)
    found = ft.vmap(outer)(a, xs)
    assert_close(found, np.stack([outer(*row) for row in zip(a, xs, strict=True)]))
    # and the other way round: a constant batch inside a gradient
    total = ft.grad(lambda s: np.sum(ft.vmap(lambda x: np.cos(s * x))(xs)))(0.3)
    assert_close(total, -np.sum(np.sin(0.3 * xs) * xs))


def test_nested_vmap_of_grad() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(np.sin(x) * y**2)

    xs, ys = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3) / 3
    fun = ft.vmap(ft.vmap(ft.grad(f), in_axes=(None, 0)), in_axes=(0, None))
    expected = np.stack([np.stack([np.cos(x) * y**2 for y in ys]) for x in xs])
    assert_close(fun(xs, ys), expected)


@pytest.mark.parametrize("case", CASES)
def test_batch_of_none_has_the_right_shape(case: Case) -> None:
    found = ft.vmap(ft.grad(case.fun))(np.zeros((0, case.point.size)))
    assert found.shape == (0, case.point.size)
    assert found.dtype == np.float64


def test_gradients_of_results_that_ignore_the_batch() -> None:
    found = ft.vmap(ft.grad(lambda x: x * 0.0 + 3.0))(np.ones(3))
    assert_close(found, np.zeros(3))
    constant = ft.vmap(lambda x: ft.grad(lambda y: y**2)(2.0))(np.ones(3))
    assert_close(constant, np.full(3, 4.0))
