"""Gradients through ``vmap`` are those of the loop."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functions import STAGEABLE, Case
from functrans.testing import check_grads
from helpers import assert_close

CASES = [pytest.param(case, id=case.name) for case in STAGEABLE]


def _points(case: Case) -> np.ndarray:
    return np.stack([case.point + 0.01 * k * case.direction(k) for k in range(3)])


@pytest.mark.parametrize("case", CASES)
def test_grad_of_vmap_is_the_gradient_of_the_loop(case: Case) -> None:
    points, weights = _points(case), np.array([1.0, -0.5, 2.0])

    def total(xs: Any) -> Any:
        return np.sum(ft.vmap(case.fun)(xs) * weights)

    rows = [w * ft.grad(case.fun)(x) for w, x in zip(weights, points, strict=True)]
    assert_close(ft.grad(total)(points), np.stack(rows), rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_gradient_in_an_unmapped_argument_is_the_sum(case: Case) -> None:
    factors = np.array([0.9, 1.0, 1.1])

    def total(x: Any) -> Any:
        return np.sum(ft.vmap(lambda x, s: case.fun(s * x), in_axes=(None, 0))(x, factors))

    expected = sum(s * ft.grad(case.fun)(s * case.point) for s in factors)
    assert_close(ft.grad(total)(case.point), expected, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_gradient_through_a_closure_is_the_sum(case: Case) -> None:
    factors = np.array([0.9, 1.0, 1.1])

    def total(x: Any) -> Any:
        return np.sum(ft.vmap(lambda s: case.fun(s * x))(factors))

    expected = sum(s * ft.grad(case.fun)(s * case.point) for s in factors)
    assert_close(ft.grad(total)(case.point), expected, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_forward_and_reverse_through_vmap_agree(case: Case) -> None:
    points = _points(case)
    fun = ft.vmap(case.fun)
    assert_close(ft.jacfwd(fun)(points), ft.jacrev(fun)(points), rtol=1e-10)
    jacobian = ft.jacobian(fun)(points)
    for i, j in np.ndindex(3, 3):
        if i != j:
            assert not jacobian[i, j].any()
        else:
            assert jacobian[i, j].any()


@pytest.mark.parametrize("case", CASES)
def test_chunks_do_not_change_the_gradient(case: Case) -> None:
    points = _points(case)
    whole = ft.grad(lambda xs: np.sum(ft.vmap(case.fun)(xs) ** 2))(points)
    parts = ft.grad(lambda xs: np.sum(ft.vmap(case.fun, chunk_size=2)(xs) ** 2))(points)
    assert_close(parts, whole, rtol=1e-12)


def test_axes_of_arguments_and_results() -> None:
    w = np.linspace(-1, 1, 6).reshape(2, 3)

    def fun(xs: Any) -> Any:
        mapped = ft.vmap(lambda x, y: (np.tanh(w @ x), y * x), in_axes=(1, None), out_axes=(1, 0))
        return mapped(xs, np.arange(3.0))

    check_grads(fun, (np.linspace(0, 1, 12).reshape(3, 4),))


def test_pytrees_through_vmap() -> None:
    def one(params: Any, x: Any, *, scale: Any) -> Any:
        return {"out": np.sin(params["w"] * x) * scale, "norm": np.sum(x**2) * params["b"]}

    def fun(params: Any, xs: Any) -> Any:
        axes = ({"w": 0, "b": None}, 0)
        return ft.vmap(one, in_axes=axes)(params, xs, scale=np.array([1.0, 2.0]))

    params = {"w": np.linspace(0, 1, 6).reshape(2, 3), "b": np.array(0.3)}
    check_grads(fun, (params, np.linspace(1, 2, 6).reshape(2, 3)))


def test_nested_vmap() -> None:
    def fun(x: Any, y: Any) -> Any:
        outer = ft.vmap(lambda a: ft.vmap(lambda b: np.cos(a * b) + a)(y))
        return outer(x)

    check_grads(fun, (np.array([0.3, 0.8]), np.array([1.0, -0.4, 0.2])), order=3)


def test_result_that_no_example_depends_on() -> None:
    found = ft.grad(lambda x: np.sum(ft.vmap(lambda s: x**2, out_axes=0)(np.ones(4))))(3.0)
    assert_close(found, 24.0)


def test_batch_of_none_has_a_zero_gradient() -> None:
    def total(w: Any) -> Any:
        return np.sum(ft.vmap(lambda x: np.sum(w * x))(np.zeros((0, 3))))

    assert_close(ft.grad(total)(np.ones(3)), np.zeros(3))
