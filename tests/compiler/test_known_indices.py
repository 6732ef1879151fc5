"""Index arrays that nobody can change: checked once, read in blocks where they repeat a pattern."""

import numpy as np
import pytest

import functrans as ft
from functrans.primitives.block_gather import find_blocks
from functrans.primitives.indexing import accumulate, gather, scatter


def frozen(array):
    """A copy that nobody writes to."""
    array = np.array(array)
    array.flags.writeable = False
    return array


def banded(n, width):
    """Places of a band's entries, by rows, in products that are stored by colours."""
    rows = [
        [(column % (2 * width + 1)) * n + row for column in range(row - width, row + width + 1)]
        for row in range(width, n - width)
    ]
    return np.ravel(rows)


def grid(n):
    """Places of a five-point stencil's entries with five colours."""
    row, column = np.divmod(np.arange(n * n), n)
    color = (column + 2 * row) % 5
    found = []
    for i in range(n * n):
        near = [(row[i] + a, column[i] + b) for a, b in ((-1, 0), (0, -1), (0, 0), (0, 1), (1, 0))]
        inside = [r * n + c for r, c in near if 0 <= r < n and 0 <= c < n]
        found += [color[j] * n * n + i for j in inside]
    return np.array(found)


PATTERNED = {
    "band": banded(700, 1),
    "wide_band": banded(300, 4),
    "grid": grid(60),
    "backwards": np.arange(2000)[::-1],
    "strided": 3 * np.arange(900),
    "same": np.full(800, 7),
    "rows_in_turn": np.arange(3000).reshape(3, 1000).T.ravel(),
    "broken": np.concatenate([banded(400, 1), [5, 900, 2], banded(400, 1)[::-1]]),
}


def expanded(index, found):
    """The indices that patterns and ranges stand for; the others as they are."""
    patterns, ranges = found
    out = np.full(len(index), -1)
    for first, count, number in ranges:
        pattern = np.array(patterns[number])
        for block in range(count):
            start = first + block * len(pattern)
            assert (out[start : start + len(pattern)] == -1).all()
            out[start : start + len(pattern)] = index[start] + pattern
    return np.where(out < 0, index, out), np.mean(out >= 0)


@pytest.mark.parametrize("index", PATTERNED.values(), ids=PATTERNED)
def test_patterns_stand_for_the_indices(index):
    found = find_blocks(index)
    assert found is not None
    again, share = expanded(index, found)
    assert (again == index).all()
    assert share > 0.5


@pytest.mark.parametrize("size", [0, 1, 100, 511, 3000])
def test_indices_without_a_pattern_have_no_blocks(size):
    assert find_blocks(np.random.default_rng(0).permutation(size)) is None


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "c16", "c8", "f2", "i1", "?"])
@pytest.mark.parametrize("index", PATTERNED.values(), ids=PATTERNED)
def test_native_reads_in_blocks(index, dtype):
    index = frozen(index)
    x = np.random.default_rng(1).normal(0, 50, index.max() + 3).astype(dtype)
    read = ft.jit(lambda x: gather(x, (index,), (0,), "raise"))
    np.testing.assert_array_equal(read(x), x[index], strict=True)


@pytest.mark.parametrize("index", PATTERNED.values(), ids=PATTERNED)
def test_derivatives_of_reads_in_blocks(index):
    index = frozen(index)
    rng = np.random.default_rng(2)
    x, ct = rng.normal(size=index.max() + 1), rng.normal(size=len(index))
    read = ft.jit(lambda x: gather(x, (index,), (0,), "raise"))
    want = np.bincount(index, ct, len(x))
    np.testing.assert_allclose(ft.jit(lambda x: ft.vjp(read, x)[1](ct)[0])(x), want, rtol=1e-12)
    tangents = rng.normal(size=(3, len(x)))
    np.testing.assert_array_equal(ft.jit(ft.vmap(read))(tangents), tangents[:, index])


def _planned(fun, *args):
    fun(*args)
    (program,) = fun.kept_programs()
    return "\n".join(str(part.part.jaxpr) for part in program.native.parts)


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap", "fill"])
def test_constant_indices_that_fit_are_not_checked_again(mode):
    index = frozen([[0, 3], [2, 2]])
    x = np.arange(8.0).reshape(4, 2)
    fun = ft.jit(lambda x: gather(x, (index,), (0,), mode) * 2)
    np.testing.assert_array_equal(fun(x), 2 * x[index])
    assert "mode='inside'" in _planned(fun, x)


@pytest.mark.parametrize("op", ["set", "add", "multiply", "maximum"])
def test_writes_at_constant_indices_are_not_checked_again(op):
    index = frozen([0, 3, 3])
    x, v = np.arange(4.0) + 1, np.array([2.0, 5.0, 7.0])
    fun = ft.jit(lambda x, v: scatter(x, v, (index,), (0,), op))
    want = scatter(x, v, (index,), (0,), op)
    np.testing.assert_array_equal(fun(x, v), want)
    assert "mode='inside'" in _planned(fun, x, v)


def test_sums_at_constant_indices_are_not_checked_again():
    index = frozen([0, 3, 3])
    fun = ft.jit(lambda v: accumulate(v, (index,), (0,), (5,), "raise"))
    np.testing.assert_array_equal(fun(np.array([1.0, 2.0, 4.0])), [1, 0, 0, 6, 0])
    assert "mode='inside'" in _planned(fun, np.ones(3))


@pytest.mark.parametrize("values", [[0, -1], [0, 4]])
def test_constant_indices_that_may_not_fit_keep_their_mode(values):
    index = frozen(values)
    fun = ft.jit(lambda x: gather(x, (index,), (0,), "clip"))
    x = np.arange(4.0)
    np.testing.assert_array_equal(fun(x), x.take(index, mode="clip"))
    assert "mode='clip'" in _planned(fun, x)


def test_an_index_out_of_bounds_is_still_an_error():
    index = frozen(np.arange(1000) + 1)
    fun = ft.jit(lambda x: gather(x, (index,), (0,), "raise"))
    with pytest.raises(IndexError, match="out of bounds"):
        fun(np.ones(1000))
    assert fun(np.ones(1001)).shape == (1000,)


def test_indices_that_can_change_are_read_and_checked_at_each_call():
    index = np.arange(1000)
    fun = ft.jit(lambda x: gather(x, (index,), (0,), "raise"))
    x = np.arange(1000.0)
    np.testing.assert_array_equal(fun(x), x)
    assert "mode='raise'" in _planned(fun, x)
    index[:] = index[::-1].copy()
    np.testing.assert_array_equal(fun(x), x[::-1])
    index[3] = 1000
    with pytest.raises(IndexError, match="out of bounds"):
        fun(x)
