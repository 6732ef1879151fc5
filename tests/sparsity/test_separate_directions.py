"""Products with directions that are the same number throughout, each by a program of its own."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import each
from functrans.sparse.compression import strided_blocks
from helpers import assert_close

N, CAMERAS, POINTS = 400, 7, 90
RNG = np.random.default_rng(0)
SEEN_BY, SEEN = RNG.integers(CAMERAS, size=N), RNG.integers(POINTS, size=N)


def projected(cameras, points, weights, seen_by=SEEN_BY, seen=SEEN):
    """Errors of observations, two by two, and then of their weights."""
    c, p = cameras[seen_by], points[seen]
    x, y = p[:, 0] - c[:, 0], p[:, 1] * c[:, 1]
    z = p[:, 2] + fnp.exp(c[:, 2])
    u = c[:, 3] * x / z + c[:, 2] * 2.0
    v = c[:, 3] * y / z - fnp.sin(c[:, 0])
    rows = weights[:, None] * fnp.stack([u, v], 1)
    return fnp.concatenate([rows.reshape(-1), 1.0 - weights**2])


def inputs(dtype=np.float64):
    """Arguments of ``projected``."""
    shapes = (CAMERAS, 4), (POINTS, 3), (N,)
    return [RNG.uniform(0.5, 1.5, size=shape).astype(dtype) for shape in shapes]


def dense(fun, args):
    """The Jacobian in all arguments, as one matrix."""
    blocks = ft.jacrev(fun, argnums=tuple(range(len(args))))(*args)
    n = len(blocks[0])
    return np.concatenate([block.reshape(n, -1) for block in blocks], axis=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_are_those_of_the_dense_jacobian(dtype):
    args = inputs(dtype)
    sparse = ft.sparse_jacobian(projected, argnums=(0, 1, 2))
    found = sparse(*args)
    assert found.dtype == dtype
    assert_close(found.toarray(), dense(projected, args))
    np.testing.assert_array_equal(sparse.values(*args), found.data)


def test_what_is_zero_in_a_direction_is_not_computed():
    sparse = ft.sparse_jacobian(projected, argnums=(0, 1, 2))
    args = inputs()
    sparse(*args)
    program = sparse._planned(tuple(args), {})[0].evaluate.jaxpr(*args)
    assert all(var.aval.size < 14 * N or var in program.outvars or len(var.aval.shape) == 3
               for eqn in program.eqns for var in eqn.outputs)  # fmt: skip
    assert sum(eqn.primitive.name == "gather" for eqn in program.eqns) == 2


def test_indices_that_are_written_to_are_noticed():
    seen_by, seen = SEEN_BY.copy(), SEEN.copy()

    def fun(*args):
        return projected(*args, seen_by, seen)

    args = inputs()
    sparse = ft.sparse_jacobian(fun, argnums=(0, 1, 2))
    assert_close(sparse(*args).toarray(), dense(fun, args))
    seen_by[:] = RNG.permutation(seen_by)
    seen[3] = (seen[3] + 1) % POINTS
    assert_close(sparse(*args).toarray(), dense(fun, args))


def test_an_infinite_slope_in_one_argument_leaves_the_others_alone():
    def fun(x, y):
        return fnp.sqrt(x) * 1.0 + y * y

    x, y = np.zeros(500), np.ones(500)
    found = ft.sparse_jacobian(fun, argnums=(0, 1))(x, y).toarray()
    np.testing.assert_array_equal(np.diag(found[:, 500:]), 2.0)
    assert np.isinf(np.diag(found[:, :500])).all()


FUNCTIONS = {
    "sums": lambda x, y: x + y - (2.0 - x),
    "broadcast": lambda x, y: (x[:, None] * np.arange(3.0) - y[:, None]).reshape(-1),
    "matrix": lambda x, y: (x.reshape(-1, 4) @ np.ones((4, 2)) + y[:2]).reshape(-1),
    "rows_of_three": lambda x, y: fnp.stack([x * y, x, y], 1).reshape(-1),
    "two_results": lambda x, y: (fnp.stack([x, x * y], 1), y**3),
    "where": lambda x, y: fnp.where(x > y, x * y, y),
    "chain": lambda x, y: x[1:] * x[:-1] + y[1:],
    "scan": lambda x, y: ft.lax.scan(lambda c, a: (c, a[0] * a[1] + c), 0.0, (x, y))[1],
}


@each("name", FUNCTIONS)
def test_other_functions_keep_their_entries(name):
    fun = FUNCTIONS[name]
    x, y = RNG.uniform(0.5, 1.5, size=(2, 600))

    def joined(x, y):
        outs = fun(x, y)
        outs = outs if isinstance(outs, tuple) else (outs,)
        return fnp.concatenate([out.reshape(-1) for out in outs])

    found = ft.sparse_jacobian(fun, argnums=(0, 1))(x, y)
    assert_close(found.toarray(), dense(joined, [x, y]), name)


def test_hessians_keep_their_entries():
    def fun(x):
        p = x.reshape(-1, 3)
        return fnp.sum(p[:, 0] ** 2 * p[:, 1] + fnp.exp(p[:, 2]) * p[:, 0])

    x = RNG.uniform(0.5, 1.5, size=900)
    assert_close(ft.sparse_hessian(fun)(x).toarray(), ft.hessian(fun)(x))


@pytest.mark.parametrize("row", [1, 2])
def test_strided_blocks_stand_for_the_numbers(row):
    table = np.arange(0, 2000, 2)[:, None] + np.array([0, 9000])
    places = np.concatenate([table.ravel(), 5000 + np.arange(777), np.arange(0, 3000, 3)])
    found = []
    for offsets, step, count, width in strided_blocks(places, 9000, row):
        assert len(offsets) % width == 0
        found.append((np.array(offsets) + step * np.arange(count)[:, None]).ravel())
    np.testing.assert_array_equal(np.concatenate(found), places)


def test_numbers_without_a_pattern_have_no_blocks():
    assert strided_blocks(RNG.permutation(5000), 5000) is None
