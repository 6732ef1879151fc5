"""Batched second and third derivatives are those of the loop."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functions import STAGEABLE, Case
from helpers import assert_close

CASES = [pytest.param(case, id=case.name) for case in STAGEABLE]


def _points(case: Case) -> np.ndarray:
    return np.stack([case.point + 0.01 * k * case.direction(k) for k in range(2)])


@pytest.mark.parametrize("case", CASES)
def test_vmap_of_hessian_is_the_loop(case: Case) -> None:
    points = _points(case)
    expected = np.stack([ft.hessian(case.fun)(x) for x in points])
    assert expected.any()
    assert_close(ft.vmap(ft.hessian(case.fun))(points), expected, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_vmap_of_nested_jacobians_is_the_loop(case: Case) -> None:
    points = _points(case)
    expected = np.stack([ft.hessian(case.fun)(x) for x in points])
    for outer, inner in ((ft.jacfwd, ft.jacrev), (ft.jacrev, ft.jacfwd), (ft.jacrev, ft.grad)):
        assert_close(ft.vmap(outer(inner(case.fun)))(points), expected, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_vmap_of_hvp_maps_the_directions(case: Case) -> None:
    hessian = ft.hessian(case.fun)(case.point)
    found = ft.vmap(lambda v: ft.hvp(case.fun, (case.point,), (v,)))(np.eye(case.point.size))
    assert_close(found, hessian, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_hessian_of_a_sum_over_a_batch_is_block_diagonal(case: Case) -> None:
    points = _points(case)
    hessian = ft.hessian(lambda xs: np.sum(ft.vmap(case.fun)(xs)))(points)
    for i, j in np.ndindex(2, 2):
        block = hessian[i, :, j, :]
        if i == j:
            assert_close(block, ft.hessian(case.fun)(points[i]), rtol=1e-9)
        else:
            assert not block.any()


@pytest.mark.parametrize("case", CASES)
def test_vmap_of_third_derivatives_is_the_loop(case: Case) -> None:
    v = case.direction()

    def third(x: Any) -> Any:
        return ft.grad(lambda x: np.sum(ft.hvp(case.fun, (x,), (v,)) * v))(x)

    points = _points(case)
    expected = np.stack([third(x) for x in points])
    assert expected.any()
    assert_close(ft.vmap(third)(points), expected, rtol=1e-8)
