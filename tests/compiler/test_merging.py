"""Short rows: neighbouring axes that are treated alike become one; the order of sums stays."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from compiler.bitwise import assert_compiled_is_reference
from functrans.compiler.merging import has_short_rows, with_merged_axes
from functrans.compiler.prepare import prepare
from functrans.primitives.structural import view_p

SHAPE = (6, 5, 8, 8)


def random_array(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Normal numbers; the imaginary parts are others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def normalized(x: Any, scale: Any) -> Any:
    """Batch normalization of images."""
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    spread = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(spread + 1e-5) * scale[:, None, None]


PROGRAMS = {
    "channel sums": lambda x: x.sum(axis=(0, 2, 3)),
    "pixel sums": lambda x: np.exp(x).sum(axis=(2, 3)),
    "all but channels kept": lambda x: x.max(axis=1),
    "first axis": lambda x: x.prod(axis=0),
    "elementwise": lambda x: np.tanh(x) * 2.0 + x,
    "along columns": lambda x: x * np.arange(8.0)[:, None] + np.ones((5, 1, 1)),
    "repeated": lambda x: np.broadcast_to(x[:, :, :1], SHAPE).sum(axis=(2, 3)) + x[0, 0, 0, 0],
    "transposed": lambda x: np.sin(x).transpose(1, 0, 2, 3).sum(axis=0),
    "transposed inside": lambda x: (x.transpose(0, 1, 3, 2) + x).sum(axis=(0, 3)),
    "sliced": lambda x: (x[..., ::2, ::2] + x[..., 1::2, 1::2]).mean(axis=(2, 3)),
    "reshaped": lambda x: np.cos(x).reshape(6, 320).sum(axis=1) + x.sum(axis=(1, 2, 3)),
    "units": lambda x: x.sum(axis=(2, 3), keepdims=True) * x,
    "normalized": lambda x: normalized(x, x[0, :, 0, 0]),
    "two uses": lambda x: (x.sum(axis=(2, 3)), x.sum(axis=3), x * 2.0),
    "any": lambda x: (x > 1.0).any(axis=(2, 3)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_interpreter(name: str, dtype: Any) -> None:
    if dtype is np.complex128 and name in ("all but channels kept", "any", "normalized"):
        pytest.skip("complex numbers have no order, or no such mean")
    x = random_array(SHAPE, dtype)
    assert_compiled_is_reference(PROGRAMS[name], x)
    found, expected = ft.jit(PROGRAMS[name])(x), PROGRAMS[name](x)
    many = isinstance(found, tuple)
    for one, other in zip(
        found if many else (found,), expected if many else (expected,), strict=True
    ):
        tolerance = 1e-4 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["channel sums", "normalized", "units", "transposed", "sliced"])
def test_gradients(name: str) -> None:
    x = random_array(SHAPE, np.float64)
    gradient = ft.grad(lambda x: (PROGRAMS[name](x) ** 2).sum())
    assert_compiled_is_reference(gradient, x)
    np.testing.assert_allclose(ft.jit(gradient)(x), gradient(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("around", [lambda x: x, np.sin, lambda x: x[:, :, ::-1] * 1.0])
def test_the_order_of_a_sum_is_that_of_its_shape(around: Any) -> None:
    x = around(random_array(SHAPE, np.float64))
    alone = ft.jit(lambda x: x.sum(axis=(0, 2, 3)))(x)
    for program in (
        lambda x: x[:, :, ::-1][:, :, ::-1].sum(axis=(0, 2, 3)),
        lambda x: (x.transpose(3, 2, 1, 0).transpose(3, 2, 1, 0)).sum(axis=(0, 2, 3)),
        lambda x: np.concatenate([x, x])[:6].sum(axis=(0, 2, 3)),
    ):
        np.testing.assert_array_equal(ft.jit(program)(x), alone)


def test_long_rows_are_left_alone() -> None:
    assert has_short_rows((64, 16, 8, 8))
    assert has_short_rows((16, 16, 16))
    assert not has_short_rows((64, 16, 32))
    assert not has_short_rows((10_000, 10, 4))  # unrolled
    assert not has_short_rows((8,))
    assert not has_short_rows((2, 2))
    jaxpr = ft.make_jaxpr(lambda x: np.sin(x).sum(axis=(0, 1)))(np.ones((4, 5, 64)))
    assert with_merged_axes(jaxpr) is jaxpr


def test_rows_are_merged_through_a_normalization() -> None:
    x, scale = np.ones((64, 16, 8, 8)), np.ones(16)
    program = prepare(ft.jit(normalized).jaxpr(x, scale))
    views = [eqn for eqn in program.eqns if eqn.primitive is view_p]
    assert len(views) == 2  # of the argument and of the result
    large = [
        var.aval.shape for eqn in program.eqns for var in eqn.outputs if var.aval.size == x.size
    ]
    assert set(large) == {(64, 16, 64), x.shape}


@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (1,), (0,)])
def test_code_stays_small(axes: tuple[int, ...]) -> None:
    lowered = ft.jit(lambda x: (x * x).sum(axis=axes)).lower(np.ones((64, 16, 8, 8), np.float32))
    assert lowered.llvm.count("\n") < 2000
