"""``ft.lax`` and ``ft.ops``: JAX's names and keywords, against NumPy's functions and loops."""

import itertools

import numpy as np
import pytest

import functrans as ft
from functrans import lax, ops
from functrans.errors import ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
V = RNG.normal(size=6)
IMAGE = RNG.normal(size=(2, 7, 6, 4))

# name, function of one float array, what NumPy gives
CASES = [
    ("broadcast_in_dim", X[0], lambda a: lax.broadcast_in_dim(a, (3, 5, 2), (1,)),
     lambda a: np.broadcast_to(a[:, None], (3, 5, 2))),
    ("reshape", X, lambda a: lax.reshape(a, (2, 10), (1, 0)), lambda a: a.T.reshape(2, 10)),
    ("concatenate", X, lambda a: lax.concatenate([a, 2 * a], dimension=1),
     lambda a: np.concatenate([a, 2 * a], 1)),
    ("pad", V, lambda a: lax.pad(a, 0.5, [(1, -3, 1)]),
     lambda a: np.array([0.5, a[0], 0.5, a[1], 0.5, a[2], 0.5, a[3], 0.5])),
    ("slice", X, lambda a: lax.slice(a, (1, 0), (4, 5), (1, 2)), lambda a: a[1:4, 0:5:2]),
    ("slice_in_dim", X, lambda a: lax.slice_in_dim(a, 1, -1, 2, axis=1), lambda a: a[:, 1:-1:2]),
    ("dynamic_slice", X,
     lambda a: lax.dynamic_slice(operand=a, start_indices=(3, -4), slice_sizes=(2, 2)),
     lambda a: a[2:4, 1:3]),
    ("dynamic_slice of a vector of starts", X,
     lambda a: lax.dynamic_slice(a, np.array([1, 2]), (2, 2)), lambda a: a[1:3, 2:4]),
    ("dynamic_index_in_dim", X, lambda a: lax.dynamic_index_in_dim(a, 2, 1, False),
     lambda a: a[:, 2]),
    ("top_k", X, lambda a: lax.top_k(operand=a, k=2, axis=0)[0], lambda a: -np.sort(-a, 0)[:2]),
    ("sort", X, lambda a: lax.sort(a, dimension=0), lambda a: np.sort(a, 0)),
    ("sort of several", V, lambda a: lax.sort((np.round(a), a, 2 * a), num_keys=2)[2],
     lambda a: 2 * np.sort(a)),
    ("reduce_sum", X, lambda a: lax.reduce_sum(a, (0,)), lambda a: a.sum(0)),
    ("cumsum", X, lambda a: lax.cumsum(a, axis=1, reverse=True),
     lambda a: a[:, ::-1].cumsum(1)[:, ::-1]),
    ("clamp", V, lambda a: lax.clamp(-0.5, a, 0.5), lambda a: a.clip(-0.5, 0.5)),
    ("rsqrt", np.abs(V), lax.rsqrt, lambda a: a**-0.5),
    ("logistic", V, lax.logistic, lambda a: 1 / (1 + np.exp(-a))),
    ("select_n", V, lambda a: lax.select_n(a > 0, a, 2 * a), lambda a: a * (1 + (a > 0))),
    ("select_n of three", V, lambda a: lax.select_n(np.arange(6) % 3, a, 2 * a, -a),
     lambda a: a * np.array([1, 2, -1, 1, 2, -1])),
    ("dot_general", X.reshape(2, 2, 5),
     lambda a: lax.dot_general(a, a, (((2,), (2,)), ((0,), (0,)))),
     lambda a: a @ a.swapaxes(1, 2)),
    ("reduce", X, lambda a: lax.reduce(a, 0.0, lambda p, q: p + q, (0,)), lambda a: a.sum(0)),
    ("reduce_window", V, lambda a: lax.reduce_window(a, -np.inf, lax.max, (3,), (2,), "SAME"),
     lambda a: np.array([a[0:3].max(), a[2:5].max(), a[4:].max()])),
    ("rev", X, lambda a: lax.rev(a, (0,)), lambda a: a[::-1]),
    ("split", X, lambda a: lax.split(a, (1, 4), 1)[1], lambda a: a[:, 1:]),
    ("segment_sum", V, lambda a: ops.segment_sum(a, np.array([0, 2, 1, -1, 5, 2]), 3),
     lambda a: np.array([a[0], a[2], a[1] + a[5]])),
    ("segment_max", V, lambda a: ops.segment_max(a, np.array([0, 1, 1, 0, 1, 1]), 2),
     lambda a: np.array([a[[0, 3]].max(), a[[1, 2, 4, 5]].max()])),
    ("segment_min", V, lambda a: ops.segment_min(a, np.array([0, 1, 1, 0, 1, 1]), 2),
     lambda a: np.array([a[[0, 3]].min(), a[[1, 2, 4, 5]].min()])),
    ("segment_prod", V, lambda a: ops.segment_prod(a, np.array([0, 1, 1, 0, 1, 1]), 2),
     lambda a: np.array([a[[0, 3]].prod(), a[[1, 2, 4, 5]].prod()])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "ours", "numpys"), CASES, ids=[case[0] for case in CASES])
def test_composites_are_numpys(name, x, ours, numpys):
    expected = numpys(x)
    np.testing.assert_allclose(ours(x), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.jit(ours)(x), expected, rtol=1e-14)
    np.testing.assert_allclose(
        ft.vmap(ours)(np.stack([x, x + 3])), np.stack([expected, numpys(x + 3)]), rtol=1e-14
    )
    ft.check_grads(ours, (x,), order=2)


def test_integers_divide_towards_zero():
    x = np.arange(-6, 7)
    for y in (4, -4):
        assert lax.div(x, y).tolist() == [int(n / y) for n in x]
        assert ft.jit(lax.div)(x, y).tolist() == [int(n / y) for n in x]
        assert (lax.div(x, y) * y + lax.rem(x, y) == x).all()


def test_bits_are_those_of_twos_complements():
    x = np.array([-128, -1, 5], np.int8)
    assert lax.population_count(x).tolist() == [1, 8, 2]
    assert lax.shift_right_logical(x, np.int8(1)).tolist() == [64, 127, 2]
    assert lax.shift_right_arithmetic(x, np.int8(1)).tolist() == [-64, -1, 2]


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 0), (2, 1)]], ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_conv_transpose_is_the_transpose_of_conv(padding, strides):
    kernel = RNG.normal(size=(3, 2, 4, 6))
    words = ("NHWC", "HWIO", "NHWC")
    result = lax.conv_transpose(IMAGE, kernel, strides, padding)
    assert result.shape[0] == 2
    assert result.shape[3] == 6
    if isinstance(padding, str):
        shape = (2, *(np.array(IMAGE.shape[1:3]) * strides), 6)
        if padding == "VALID":
            shape = result.shape

        def forward(y):  # the kernel of the transpose has its channels exchanged
            flipped = kernel[::-1, ::-1].transpose(0, 1, 3, 2)
            return lax.conv_general_dilated(y, flipped, strides, padding, dimension_numbers=words)

        y = RNG.normal(size=shape)
        if forward(y).shape == IMAGE.shape:
            np.testing.assert_allclose((forward(y) * IMAGE).sum(), (y * result).sum(), rtol=1e-10)


def test_conv_with_words_is_that_of_moved_axes():
    kernel = RNG.normal(size=(3, 2, 4, 6))
    given = lax.conv_general_dilated(
        IMAGE, kernel, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    plain = lax.conv(IMAGE.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), (2, 1), "SAME")
    np.testing.assert_allclose(given, plain.transpose(0, 2, 3, 1), rtol=1e-13)


STARTS = np.array([[0, 1], [3, 5], [4, 0], [-1, 2]])


def _windows(x, mode):
    """Windows ``[2, 1, 3]`` at ``STARTS``, one after the other."""
    for n, (i, j) in enumerate(STARTS):
        low, high = np.clip([i, j], 0, [3, 5])
        is_inside = (low, high) == (i, j)
        if mode == "clip" or is_inside:
            yield n, slice(low, low + 2), high


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_gather_and_scatter_take_windows(mode):
    x = RNG.normal(size=(5, 6, 3))
    numbers = lax.GatherDimensionNumbers((0, 2), (1,), (0, 1))
    expected = np.full((2, 4, 3), -7.0)
    for n, rows, column in _windows(x, mode):
        expected[:, n] = x[rows, column]

    def read(x):
        return lax.gather(x, STARTS, numbers, (2, 1, 3), mode=mode, fill_value=-7.0)

    np.testing.assert_array_equal(read(x), expected)
    np.testing.assert_array_equal(ft.jit(read)(x), expected)
    ft.check_grads(read, (x,), order=1)

    added, values = x.copy(), RNG.normal(size=(2, 4, 3))
    for n, rows, column in _windows(x, mode):
        added[rows, column] += values[:, n]

    def write(x, values):
        own = lax.ScatterDimensionNumbers((0, 2), (1,), (0, 1))
        return lax.scatter_add(x, STARTS, values, own, mode=mode)

    np.testing.assert_allclose(write(x, values), added, rtol=1e-14)
    ft.check_grads(write, (x, values), order=1)


@pytest.mark.parametrize(
    ("is_left", "is_lower", "is_transposed"), list(itertools.product([False, True], repeat=3))
)
def test_triangular_solve_takes_either_side(is_left, is_lower, is_transposed):
    a = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
    triangle = np.tril(a) if is_lower else np.triu(a)
    used = triangle.swapaxes(1, 2) if is_transposed else triangle
    b = RNG.normal(size=(2, 3, 4) if is_left else (2, 4, 3))
    x = lax.linalg.triangular_solve(
        a, b, left_side=is_left, lower=is_lower, transpose_a=is_transposed
    )
    np.testing.assert_allclose(used @ x if is_left else x @ used, b, rtol=1e-10)


@pytest.mark.parametrize(
    ("a", "b", "error", "match"),
    [
        (np.eye(3), np.ones((4, 2)), ShapeError, "do not fit"),
        (np.ones((60, 3, 3)), np.ones((60, 4, 2)), ShapeError, "do not fit"),
        (np.ones((3, 4)), np.ones((3, 2)), ShapeError, "square"),
        (np.ones((2, 3, 3)), np.ones((4, 3, 2)), ShapeError, "axes before the last 2"),
        (np.eye(3, dtype="f4"), np.ones((3, 2)), TypeError, "one dtype"),
        (np.eye(3, dtype="f2"), np.ones((3, 2), "f2"), TypeError, "float16 is unsupported"),
    ],
)
@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("around", [lambda f: f, ft.jit], ids=["plain", "jit"])
def test_triangular_solve_refuses_what_is_no_system(around, is_left, a, b, error, match):
    b = b if is_left else b.swapaxes(-1, -2)
    solve = around(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=is_left))
    with pytest.raises(error, match=f"triangular_solve.*{match}"):
        solve(a, b)


def test_symmetrized_factors_read_both_triangles():
    a = np.array([[4.0, 2.0], [0.0, 9.0]])
    whole = np.array([[4.0, 1.0], [1.0, 9.0]])
    np.testing.assert_allclose(lax.linalg.cholesky(a), np.linalg.cholesky(whole), rtol=1e-14)
    lower = lax.linalg.cholesky(a, symmetrize_input=False)
    np.testing.assert_allclose(lower, np.diag([2.0, 3.0]), rtol=1e-14)
    np.testing.assert_allclose(lax.linalg.eigh(a)[1], np.linalg.eigvalsh(whole), rtol=1e-14)


def test_loops_take_zero_for_everything_at_once():
    xs = np.arange(5.0)
    for unroll in (0, 2, True):
        total, seen = lax.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=unroll)
        assert (total, seen.tolist()) == (10.0, [0.0, 0.0, 1.0, 3.0, 6.0])
    assert lax.map(np.square, xs, batch_size=0).tolist() == [0.0, 1.0, 4.0, 9.0, 16.0]
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        lax.scan(lambda c, x: (c, x), 0.0, xs, unroll=-1)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        lax.map(np.square, xs, batch_size=-1)


def test_jit_is_switched_on_inside_of_a_block_without():
    runs = []

    def f(x):
        runs.append(x)
        return -x

    jitted = ft.jit(f)
    jitted(2.0)
    with ft.disable_jit():
        assert jitted(2.0) == -2.0
        with ft.disable_jit(False):
            assert jitted(2.0) == -2.0
    assert [type(x) is float for x in runs][:2] == [False, True]
    assert not any(type(x) is float for x in runs[2:])


def test_segments_ask_for_their_number():
    with pytest.raises(ft.errors.ConcretizationError, match="num_segments"):
        ft.jit(ops.segment_sum)(V, np.arange(6))
    assert ops.segment_sum(V, np.arange(6)).tolist() == V.tolist()
    with pytest.raises(ShapeError, match=r"one number for each of the rows"):
        ops.segment_sum(V, np.arange(5))


def test_segments_without_rows_are_neutral():
    ids = np.zeros(2, int)
    for function, floating, integer in (
        (ops.segment_sum, 0.0, 0),
        (ops.segment_prod, 1.0, 1),
        (ops.segment_max, -np.inf, np.iinfo(np.int64).min),
        (ops.segment_min, np.inf, np.iinfo(np.int64).max),
    ):
        assert function(np.ones(2), ids, 2)[1] == floating
        assert function(np.ones(2, int), ids, 2)[1] == integer
