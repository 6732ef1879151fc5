"""Results that are views of what is computed, or joined from it: computed where they will be."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import each
from compiler.bitwise import assert_compiled_is_reference

X = np.random.default_rng(0).normal(size=(3000, 3))
PAIR = np.random.default_rng(1).normal(size=(3000, 2))


def rows(x):
    """Rows of five numbers, as a vector."""
    columns = [x[:, 0] * x[:, 1], fnp.sin(x[:, 2]), x[:, 1] + 1.0, x[:, 0], x[:, 2] * 2.0]
    return fnp.stack(columns, 1).reshape(-1)


JOINED = {
    "view": rows,
    "two": lambda x: fnp.concatenate([rows(x), -2.0 * x[:, 0]]),
    "argument_between": lambda x: fnp.concatenate(
        [rows(x), x[:, 0], fnp.cumsum(x[:, 1]), rows(-x)]
    ),
    "same_twice": lambda x: fnp.concatenate([y := rows(x), y]),
    "two_results": lambda x: (y := rows(x), fnp.concatenate([y, x[:, 1]])),
    "read_again": lambda x: (fnp.concatenate([y := rows(x), x[:, 1]]), fnp.sum(y)),
    "joined_twice": lambda x: (
        fnp.concatenate([y := rows(x), x[:, 1]]),
        fnp.concatenate([x[:, 2], y]),
    ),
    "joined_of_joined": lambda x: fnp.concatenate(
        [fnp.concatenate([rows(x), x[:, 1]]), fnp.concatenate([x[:, 2], rows(x + 1)])]
    ),
    "rows_of_rows": lambda x: fnp.concatenate([rows(x).reshape(-1, 50), x.reshape(-1, 50)]),
    "view_of_view": lambda x: rows(x).reshape(50, -1).reshape(-1, 25),
    "float32_between": lambda x: fnp.concatenate([rows(x), x[:, 0].astype(np.float32)]),
    "empty_between": lambda x: fnp.concatenate([rows(x), x[:0, 0], x[:, 1]]),
    "second_axis": lambda x: fnp.concatenate([rows(x).reshape(-1, 5), x], 1),
}


@each("name", JOINED)
def test_joined_results_have_the_bits_of_the_reference(name):
    assert_compiled_is_reference(JOINED[name], X, what=name)


@pytest.mark.parametrize("name", ["view", "two"])
def test_parts_of_results_take_no_memory_of_their_own(name):
    plan = str(ft.jit(JOINED[name]).plan(X))
    assert "temporary memory: 0 bytes" in plan


@pytest.mark.parametrize("name", ["two", "read_again", "joined_twice"])
def test_joined_results_of_loops_are_right(name):
    def looped(x):
        def body(carry, k):
            outs = JOINED[name](carry)
            return carry * k, outs

        return ft.lax.scan(body, x, np.array([0.5, 2.0]))

    assert_compiled_is_reference(looped, X)


def test_an_argument_that_is_read_after_a_part_is_written_is_not_overwritten():
    def fun(x):
        first = fnp.stack([x[::-1] * 2.0, x], 1).reshape(-1)[: x.size // 2 * 2]
        return fnp.concatenate([first[: x.size // 2], fnp.cumsum(x)[: x.size - x.size // 2]])

    x = np.random.default_rng(2).normal(size=9000)
    expected = ft.jit(fun)(x)
    np.testing.assert_array_equal(without_warnings(fun)(x.copy()), expected)


def test_a_view_of_what_reads_a_given_argument_is_right():
    def fun(x):
        pairs = x.reshape(-1, 2)
        turned = fnp.stack([pairs[:, 1], pairs[:, 0] + pairs[::-1, 1]], 1)
        return turned.reshape(-1), fnp.sum(x)

    x = np.random.default_rng(1).normal(size=6000)
    expected = ft.jit(fun)(x)
    for found, wanted in zip(without_warnings(fun)(x.copy()), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def without_warnings(fun):
    """A jitted function of an argument that is given away, for whatever it can be used for."""

    def call(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ft.jit(fun, donate_argnums=0)(x)

    return call


@each("shape", [(4, 5), (40, 50), (300, 70)])
def test_results_that_are_views_take_over_an_argument(shape):
    """Computed element by element in the places of the argument; a warning would be an error."""
    x = np.random.default_rng(3).normal(size=shape)
    donated = ft.jit(lambda x: fnp.sin(x) * 2.0 + x, donate_argnums=0)
    np.testing.assert_array_equal(donated(x.copy()), ft.jit(lambda x: fnp.sin(x) * 2.0 + x)(x))


OVERLAPS = {
    "behind": lambda x: fnp.concatenate([fnp.sin(x[:5000]), fnp.cos(x[5000:])]),
    "exchanged": lambda x: fnp.concatenate([fnp.sin(x[5000:]), fnp.cos(x[:5000])]),
    "shifted": lambda x: fnp.concatenate([x[1:] * 2.0, x[:1] + 1.0]),
    "turned": lambda x: fnp.concatenate([x[:5000][::-1] * 2.0, x[5000:] + x[:5000]]),
    "read later": lambda x: fnp.concatenate([fnp.sin(x[:5000]), fnp.cumsum(x)[:5000]]),
    "first part again": lambda x: fnp.concatenate([x[:5000] * 2.0, x[:5000] + x[5000:]]),
}


@each("name", OVERLAPS)
def test_parts_do_not_overwrite_what_other_parts_read(name):
    x = np.random.default_rng(4).normal(size=10000)
    expected = ft.jit(OVERLAPS[name])(x)
    np.testing.assert_array_equal(without_warnings(OVERLAPS[name])(x.copy()), expected)
