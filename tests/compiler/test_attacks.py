"""Programs that the compiler once could not plan: found by random search.

Here: the smallest form of each. Not here: families of programs (``native_programs``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.scipy.special import logsumexp
from tests.compiler.bitwise import assert_compiled_is_reference

X = np.random.default_rng(0).standard_normal((30, 40))


def _rolled(x: Any) -> Any:
    a = np.sin(x)
    rolled = np.roll(x.reshape(-1), 7).reshape(x.shape)
    return a, rolled * 2 + a


def _padded(x: Any) -> Any:
    a = np.sin(x)
    padded = np.pad(x.reshape(-1), (3, 2))[1:-4]
    return a, padded.reshape(x.shape) + a


def _joined_again_and_again(x: Any) -> Any:
    a = y = np.sin(x)
    for i in range(5):
        y = np.pad(y, 1)[1:-1, 1:-1] * 1.5
        y = np.concatenate([y[: 3 + i], x[3 + i :]])
        y = np.concatenate([y[:, : 13 + i], x[:, 13 + i :]], axis=1)
    return a, y


def _written_in_a_corner(x: Any) -> Any:
    both = np.stack([x, x * 2], axis=1)
    four = np.stack([both] * 4, axis=2)
    four[5:25, :, :, 13] = np.sin(four[5:25, :, :, 13])
    rows = np.concatenate([x.T, x.T], axis=1)
    return x.T, four, rows, np.concatenate([rows, rows])


@pytest.mark.parametrize("fun", [_rolled, _padded, _joined_again_and_again, _written_in_a_corner])
def test_what_a_nest_cannot_compute_is_stored_by_an_earlier_nest(fun: Callable[..., Any]) -> None:
    # the nest that wants it has an earlier result too, so that it came first
    found = assert_compiled_is_reference(fun, X)
    for one, other in zip(found, fun(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((3, 4), (2, 3, 1, 2)),
        ((3, 4), (2, 6)),
        ((5, 8), (2, 20)),
        ((6, 10), (4, 15)),
        ((4, 6), (3, 8)),
    ],
)
def test_small_reshapes_whose_axes_do_not_divide(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    x = np.arange(np.prod(before), dtype=np.float64).reshape(before)

    def fun(x: Any) -> Any:
        small = (x + 1).reshape(after)
        return small, small[..., None] * np.ones(70), np.sum(small, axis=0)

    found = assert_compiled_is_reference(fun, x)
    for one, other in zip(found, fun(x), strict=True):
        np.testing.assert_array_equal(one, other)
    ft.jit(ft.grad(lambda x: np.sum(np.sin(fun(x)[1]))))(x)


def _many_steps(x: Any) -> Any:
    numbers = np.random.default_rng(0)
    found = [x, x * 2]
    for _ in range(600):
        other = found[-1 - int(numbers.integers(0, min(6, len(found))))]
        step = (np.add, np.subtract, np.maximum)[int(numbers.integers(0, 3))]
        found.append(step(found[-1], other * float(numbers.choice([0.5, 0.25, 0.1]))))
    return found[-1]


def _sums_of_neighbours(x: Any) -> Any:
    for _ in range(110):
        x = (x[1:] + x[:-1]) * 0.5
    return x


def _turned(x: Any) -> Any:
    numbers = np.random.default_rng(0)
    for _ in range(250):
        x = np.transpose(x, numbers.permutation(3))[::-1] * 0.99
    return x


def _rolled_many_times(x: Any) -> Any:
    numbers = np.random.default_rng(0)
    for _ in range(60):
        shift = int(numbers.integers(1, 9))
        x = np.roll(x[::-1], shift) * 1.01
    return x


def _forward_sums(x: Any) -> Any:
    """The recursion of a hidden Markov model: numbers that reductions give, written to arrays."""
    rates = np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))
    numbers = np.random.default_rng(0)
    state = -x
    for observed in numbers.standard_normal(60):
        densities = np.zeros(2, like=x)
        for i in range(2):
            densities[i] = -0.5 * (observed - x[i]) ** 2
        state = logsumexp(state[:, None] + rates, axis=0) + densities
    return logsumexp(state)


@pytest.mark.parametrize(
    ("fun", "shape"),
    [
        (_forward_sums, (2,)),
        (_many_steps, (5,)),
        (_many_steps, ()),
        (_many_steps, (200,)),
        (_sums_of_neighbours, (200,)),
        (_turned, (8, 8, 8)),
        (_rolled_many_times, (1000,)),
    ],
)
def test_chains_of_any_length(fun: Callable[..., Any], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    found = assert_compiled_is_reference(fun, x)
    np.testing.assert_allclose(found, fun(x), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 10**30])
def test_integers_that_native_code_cannot_take_are_named(number: int) -> None:
    jitted = ft.jit(lambda x, n: x * n)
    x = np.arange(5.0)
    np.testing.assert_array_equal(jitted(x, (1 << 63) - 1), x * ((1 << 63) - 1))
    with pytest.raises(OverflowError, match=f"{number} is too large for a compiled program"):
        jitted(x, number)
    np.testing.assert_array_equal(jitted(x, 3), x * 3)
