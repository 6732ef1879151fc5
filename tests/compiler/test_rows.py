"""Short rows: lanes run along them, or across them, by what is done with their elements."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from compiler.bitwise import assert_compiled_is_reference
from functrans.compiler.prepare import prepare
from functrans.compiler.schedule import Nest, schedule

N, ROW = 40, 13

ALONG = {
    "arithmetic": lambda x, y: x * y + x,
    "broadcast operands": lambda x, y: (x + y[0]) * y[:, :1],
    "one function": lambda x, y: fnp.exp(x) * y,
    "first axes exchanged": lambda x, y: fnp.stack([x, y]).swapaxes(0, 1) * y[:, None],
    "axes of one element": lambda x, y: x * (y[:, :, None] * 2.0)[0, :, 0] + y[None, 1],
    "a sum along another axis": lambda x, y: (x * y, fnp.sum(x - y, 0)),
    "operands of a product": lambda x, y: (x * 2.0) @ (y * 3.0).T,
}
ACROSS = {
    "a sum of rows": lambda x, y: (x * y, fnp.sum(x * y, 1)),
    "a maximum of rows": lambda x, y: x - fnp.max(x, 1, keepdims=True),
    "a column": lambda x, y: x * (x - y)[:, 3:4],
    "joined columns": lambda x, y: fnp.stack([x[:, k] * y[0, k] for k in range(9)], 1),
    "rows of joined columns": lambda x, y: (
        lambda z: fnp.stack([z, -z], 1)  # of another shape
    )(fnp.stack([x[:, k] * y[0, k] for k in range(9)], 1)),
    "transposed": lambda x, y: (x.reshape(ROW, N) * 2.0).T + y,
    "many functions": lambda x, y: fnp.tanh(fnp.sin(fnp.exp(fnp.log(fnp.cos(x) + 2.0)))) * y,
}


def operands(dtype: Any, row: int = ROW) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of short rows."""
    x, y = np.random.default_rng(0).uniform(0.5, 1.5, size=(2, N, row))
    return x.astype(dtype), y.astype(dtype)


def loops_of(fun: Any, row: int = ROW) -> set[bool]:
    """Of nests that store something with short rows: whether the last loop runs along them."""
    items = schedule(prepare(ft.make_jaxpr(fun)(*operands(np.float64, row)))).items
    nests = [item for item in items if isinstance(item, Nest)]
    roots = [(nest, root) for nest in nests for root in nest.roots if root.reduced is None]
    return {
        nest.vector is not None and root.loops[nest.vector] == len(root.space) - 1
        for nest, root in roots
        if root.space[-1] in (row, 9) and len(root.space) > 1
    }


@pytest.mark.parametrize("name", ALONG)
def test_light_work_has_lanes_along_rows(name: str) -> None:
    assert loops_of(ALONG[name]) == {True}


@pytest.mark.parametrize("name", ACROSS)
def test_work_across_rows_has_lanes_across_them(name: str) -> None:
    assert loops_of(ACROSS[name]) == {False}


def test_rows_that_fill_no_register_are_unrolled() -> None:
    assert loops_of(ALONG["arithmetic"], 8) == {True}
    assert loops_of(ALONG["arithmetic"], 7) == {False}
    full = lambda x, y: fnp.tanh(fnp.sin(fnp.exp(x))) * y  # noqa: E731
    assert loops_of(full, 16) == {True}
    assert loops_of(full, 15) == {False}


def test_a_sum_in_lanes_across_rows_is_a_nest_of_its_own() -> None:
    program = prepare(ft.make_jaxpr(ALONG["a sum along another axis"])(*operands(np.float64)))
    nests = [item for item in schedule(program).items if isinstance(item, Nest)]
    assert [[root.reduced for root in nest.roots] for nest in nests] == [[None], [0]]
    assert [nest.extents for nest in nests] == [(N, ROW), (N,)]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "?", "f2"])
@pytest.mark.parametrize("row", [8, 9, 11, 13, 15, 16])
def test_results_are_those_of_the_order(dtype: str, row: int) -> None:
    x, y = operands(dtype, row)

    def program(x: Any, y: Any) -> Any:
        z = x * y + x
        return z, z * y[0], fnp.sum(z, 0), fnp.stack([z, x]).swapaxes(0, 1) * y[:, None]

    if dtype == "?":
        x, y = x > 1, y > 1
        program = lambda x, y: (x & y, (x | y) ^ y[0], fnp.any(x, 0))  # noqa: E731
    assert assert_compiled_is_reference(program, x, y) is not None


@pytest.mark.parametrize("name", ALONG | ACROSS)
def test_programs_are_those_of_the_order(name: str) -> None:
    if name != "operands of a product":  # sums of products have an order of their own
        fun = (ALONG | ACROSS)[name]
        assert assert_compiled_is_reference(fun, *operands("f8")) is not None


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_a_few_long_rows_are_computed_together(rows):
    x, t = np.random.default_rng(3).normal(size=(2, 300)), np.ones((rows, 300))
    fun = lambda x, t: (np.sin(x[0]) * t + x[1], (t * x[0]).sum(1), (t * x[1]).sum(0), x[1] * 2)  # noqa: E731
    for got, want in zip(ft.jit(fun)(x, t), fun(x, t), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
