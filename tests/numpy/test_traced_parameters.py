"""Integers that say where: shifts, diagonals, positions. They may be traced."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

X = np.arange(20.0).reshape(4, 5)

CASES = [
    ("roll", [-7, 0, 2, 23], lambda m, k: m.roll(X, k)),
    ("roll along axes", [-7, 0, 2], lambda m, k: m.roll(X, (k, 1), (0, 1))),
    ("roll of one axis twice", [-7, 0, 2], lambda m, k: m.roll(X, (k, 1), (1, 1))),
    ("roll of several axes alike", [-7, 0, 2], lambda m, k: m.roll(X, k, (0, 1))),
    ("eye", [-5, -1, 0, 2, 9], lambda m, k: m.eye(3, 4, k=k)),
    ("tri", [-5, -1, 0, 2, 9], lambda m, k: m.tri(3, 4, k, dtype=int)),
    ("tril", [-5, -1, 0, 2, 9], lambda m, k: m.tril(X, k)),
    ("triu", [-5, -1, 0, 2, 9], lambda m, k: m.triu(X[1], k)),
    ("insert", [-4, -1, 0, 2, 4], lambda m, k: m.insert(X, k, 7.0, axis=0)),
    ("insert several", [-5, 0, 5], lambda m, k: m.insert(X, k, X[:, :2].T, axis=1)),
    ("insert flat", [0, 20], lambda m, k: m.insert(X, k, [1.0, 2.0])),
    ("delete", [-4, -1, 0, 3], lambda m, k: m.delete(X, k, axis=0)),
]


@pytest.mark.parametrize(("name", "ks", "f"), CASES, ids=[case[0] for case in CASES])
def test_traced_integer_is_as_a_plain_one(name, ks, f):
    jitted, batched = ft.jit(lambda k: f(fnp, k)), ft.vmap(lambda k: f(fnp, k))
    expected = [f(np, k) for k in ks]
    for k, value in zip(ks, expected, strict=True):
        np.testing.assert_array_equal(jitted(k), value)
        assert jitted(k).dtype == value.dtype
    np.testing.assert_array_equal(batched(np.array(ks)), np.stack(expected))


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_any_dtype_say_where(dtype):
    """Whatever the dtype holds: an extent need not fit in it, nor a difference."""
    long, info = np.arange(300.0), np.iinfo(dtype)
    shifts = [info.min, info.min + 1, info.max - 1, info.max, 3]
    for f in (
        lambda m, k: m.roll(long, k),
        lambda m, k: m.roll(X, k, 1),
        lambda m, k: m.roll(X, (k, k), (0, 1)),
        lambda m, k: m.roll(X[:, :0], k, 1),
    ):
        for k in np.array(shifts, dtype):
            np.testing.assert_array_equal(ft.jit(lambda k, f=f: f(fnp, k))(k), f(np, k))
    for k in np.array([0, 5, 100], dtype):
        for f in (lambda m, k: m.insert(long, k, 7.0), lambda m, k: m.delete(long, k)):
            expected = f(np, int(k))  # NumPy's own cannot add 300 to a short one
            np.testing.assert_array_equal(ft.jit(lambda k, f=f: f(fnp, k))(k), expected)
            batched = ft.vmap(lambda k, f=f: f(fnp, k))(np.array([k, k]))
            np.testing.assert_array_equal(batched, [expected, expected])


def test_roll_by_traced_places_has_a_gradient():
    weights = np.cos(X)

    def f(x, k):
        return np.sum(fnp.roll(x, k, 1) ** 2 * weights)

    np.testing.assert_allclose(
        ft.jit(ft.grad(f))(X, 3), 2 * X * np.roll(weights, -3, 1), rtol=1e-14
    )


def test_place_takes_a_traced_mask():
    def f(x, mask, values):
        y = fnp.array(x, like=values)
        fnp.place(y, mask, values)
        return y

    mask = X % 3 == 0
    expected = X.copy()
    np.place(expected, mask, [7.0, 8.0])
    np.testing.assert_array_equal(ft.jit(f)(X, mask, np.array([7.0, 8.0])), expected)
    pulled = ft.jit(ft.grad(lambda v, mask: np.sum(f(X, mask, v))))(np.array([7.0, 8.0]), mask)
    assert pulled.tolist() == [np.ceil(mask.sum() / 2), mask.sum() // 2]


def test_indices_along_an_axis_have_the_modes_of_at():
    index = np.array([1, 9, -1])
    x = np.arange(4.0)
    for mode, expected in (("clip", [1, 3, 0]), ("fill", [1, -2, 3]), ("wrap", [1, 1, 3])):

        def read(x, mode=mode):
            return fnp.take_along_axis(x, index, 0, mode=mode, fill_value=-2)

        assert read(x).tolist() == expected
        assert ft.jit(read)(x).tolist() == expected

    def write(x):
        y = x * 1
        fnp.put_along_axis(y, index, 7.0, 0, mode="drop")
        return y

    assert ft.jit(write)(x).tolist() == [0, 7, 2, 7]
    with pytest.raises(IndexError, match="out of bounds for axis 0 with extent 4"):
        ft.jit(lambda x: fnp.take_along_axis(x, index, 0))(x)
