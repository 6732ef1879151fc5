"""Derivatives have the relative accuracy that the function's own tail has."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.scipy import special

# Functions whose derivative falls like exp(-|x|) on a side where the function itself is constant.
EXPONENTIAL = (
    ("tanh", fnp.tanh, lambda x: 4 * np.exp(-2 * x), 2.0),
    ("expit", special.expit, lambda x: np.exp(-x), 1.0),
    ("log_expit", special.log_expit, lambda x: np.exp(-x), 1.0),
    ("expm1", lambda x: fnp.expm1(-x), lambda x: -np.exp(-x), 1.0),
)


@pytest.mark.parametrize(("name", "function", "tail", "rate"), EXPONENTIAL)
@pytest.mark.parametrize("is_native", [False, True])
def test_slopes_of_constants_are_exponentials_at_each_order(
    name: str, function: Any, tail: Any, rate: float, is_native: bool
) -> None:
    x = np.array([40.0, 60.0, 300.0])
    slope = function
    expected = tail(x)
    for _ in range(3):
        slope = ft.grad(lambda x, inner=slope: inner(x).sum())
        found = (ft.jit(slope) if is_native else slope)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)
        expected = -rate * expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_bessel_of_half_precision_is_summed_in_more(dtype: Any) -> None:
    found = fnp.i0(np.array([10.0], dtype))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.i0(10.0), rtol=2 * np.finfo(dtype).eps)
    traced = ft.jit(fnp.i0)(np.array([10.0], dtype))
    np.testing.assert_allclose(traced, np.i0(10.0), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("order", [1, 2])
def test_infinite_limits_are_infinite(order: int) -> None:
    for function, points in (
        (special.expi, [800.0]),
        (fnp.arctanh, [-1.0, 1.0]),
        (special.logit, [0.0, 1e-200, 1.0]),
        (special.k1e, [0.0]),
    ):
        slope = function
        for _ in range(order):
            slope = ft.grad(lambda x, inner=slope: inner(x).sum())
        with np.errstate(all="ignore"):
            found = slope(np.array(points))
            native = ft.jit(slope)(np.array(points))
        np.testing.assert_array_equal(found, native)
        if order == 2 or 1e-200 not in points:
            assert np.isinf(found).all(), (function, found)
