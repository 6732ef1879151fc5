"""Compiled arithmetic is NumPy's to the bit; compiled sums are as exact as NumPy's."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from compiler.bitwise import assert_same_bits
from functrans.core.dispatch import bind
from functrans.primitives.elementwise import power_p

SIZES = (1, 7, 64, 65, 1000)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e300, 1e-300, 5e-324, np.inf, -np.inf, np.nan, 2.0**52)
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]


def _floats(rng: np.random.Generator, size: int, dtype: str) -> np.ndarray:
    """Numbers of all magnitudes, with special ones among them."""
    with np.errstate(all="ignore"):
        x = rng.normal(size=size) * 10.0 ** rng.integers(-8, 9, size)
        x = np.where(rng.uniform(size=size) < 0.2, rng.choice(SPECIAL, size), x)
        return x.astype(dtype)


def _integers(rng: np.random.Generator, size: int, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    small = rng.integers(0 if info.min == 0 else -3, 4, size).astype(dtype)
    return np.where(rng.uniform(size=size) < 0.4, small, x)


def _check(fun: Callable[..., Any], *args: Any, what: str = "") -> None:
    with np.errstate(all="ignore"):
        expected = fun(*args)
        found = ft.jit(fun)(*args)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_same_bits(one, np.asarray(other), f"{what}, result {i}")


def _comparisons(x: Any, y: Any) -> list[Any]:
    return [x == y, x != y, x < y, x <= y, x > y, x >= y]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_real_arithmetic(dtype: str, size: int, rng: np.random.Generator) -> None:
    x, y = _floats(rng, size, dtype), _floats(rng, size, dtype)
    _check(
        lambda x, y: [
            *(x + y, x - y, x * y, x / y, -x, np.abs(x), np.sqrt(x), np.sqrt(np.abs(y))),
            *(np.floor(x), np.ceil(x), np.trunc(x), np.rint(x), np.copysign(x, y)),
            *(np.isnan(x), np.isfinite(x), np.signbit(x)),
            *_comparisons(x, y),
        ],
        *(x, y),
        what=dtype,
    )
    _check(lambda x: [x + 1.5, 2 - x, 3 * x, x / 7, x < 2, x == 1.0], x, what=dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype: str, size: int, rng: np.random.Generator) -> None:
    x, y = _integers(rng, size, dtype), _integers(rng, size, dtype)
    bits = np.arange(size).astype(dtype) % (8 * np.dtype(dtype).itemsize + 3)
    _check(
        lambda x, y, bits: [
            *(x + y, x - y, x * y, x // y, x % y, x / y, np.abs(x), -x, ~x),
            *(x & y, x | y, x ^ y, x << bits, x >> bits, np.maximum(x, y), np.minimum(x, y)),
            *(np.sum(x), np.prod(y), np.max(x), np.min(y)),
            *_comparisons(x, y),
        ],
        *(x, y, bits),
        what=dtype,
    )


@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.lt, operator.truediv])
def test_arithmetic_of_mixed_dtypes(function: Any, rng: np.random.Generator) -> None:
    dtypes = ("b1", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8")
    for first in dtypes:
        for second in dtypes:
            x, y = (
                rng.integers(0, 2, 40).astype(bool)
                if d == "b1"
                else _floats(rng, 40, d)
                if d[0] == "f"
                else _integers(rng, 40, d)
                for d in (first, second)
            )
            _check(lambda x, y: [function(x, y)], x, y, what=f"{first} {second}")


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "b1"])
def test_casts(source: str, rng: np.random.Generator) -> None:
    targets = (*FLOATS, *INTEGERS, "b1", "c16", "c8")
    for size in (7, 1000):
        if source == "b1":
            x = rng.integers(0, 2, size).astype(bool)
        elif source in INTEGERS:
            x = _integers(rng, size, source)
        else:
            x = _floats(rng, size, source)
        for target in targets:
            if source in FLOATS and target in INTEGERS:
                # What does not fit is C's undefined behaviour, in NumPy too.
                with np.errstate(all="ignore"):
                    x = np.where(np.abs(x) < 100, x, 0).astype(source)
                x = np.abs(x) if target[0] == "u" else x
            _check(lambda x, target=target: [x.astype(target)], x, what=f"{source} to {target}")


# sums -------------------------------------------------------------------------------------------


def _rms_errors(
    rng: np.random.Generator, shape: tuple[int, ...], axis: int, dtype: str, trials: int
) -> tuple[float, float]:
    """Root mean square of the errors of compiled sums and of NumPy's, in units of the dtype's."""
    jitted = ft.jit(lambda x: np.sum(x, axis=axis))
    ours, numpys = 0.0, 0.0
    count = 0
    for _ in range(trials):
        x = rng.normal(size=shape).astype(dtype)
        rows = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
        exact = [math.fsum(row) for row in rows.astype(float).tolist()]
        found, other = jitted(x), np.sum(x, axis=axis)
        ours += float(np.sum((np.ravel(found).astype(float) - exact) ** 2))
        numpys += float(np.sum((np.ravel(other).astype(float) - exact) ** 2))
        count += len(exact)
    scale = float(np.finfo(dtype).eps)
    return math.sqrt(ours / count) / scale, math.sqrt(numpys / count) / scale


LONG = ((32,), (50,), (100,), (129,), (256,), (1000,), (4096,), (10_000,), (100_000,))
OTHER = ((20, 300), (300, 20), (100, 7), (64, 64), (1000, 3), (3, 1000))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_sums_are_as_exact_as_numpys(dtype: str) -> None:
    """The errors of sums of random numbers are at most NumPy's.

    A sum of ``n`` normal numbers ends with an error whose variance is a sum over all partial sums;
    over ``T`` sums its root mean square is known to ``1 / sqrt(2 T)`` of itself: 3 % for the 600
    sums of each shape here. A tenth more than NumPy's for one shape is the third standard deviation
    of the quotient, and the mean over all shapes must not be above NumPy's by more than 2 %.
    """
    rng = np.random.default_rng(11)
    quotients = []
    for shape in (*LONG, *OTHER):
        for axis in range(len(shape)):
            if len(shape) > 1 and 8 <= shape[axis] < 32 and axis == len(shape) - 1:
                continue  # below
            kept = math.prod(shape) // shape[axis]
            trials = max(2, min(600 // kept + 1, 3_000_000 // math.prod(shape)))
            ours, numpys = _rms_errors(rng, shape, axis, dtype, trials)
            spread = 3 / math.sqrt(trials * kept)
            assert ours <= numpys * (1 + spread), (shape, axis, ours, numpys)
            quotients.append(ours / numpys)
    assert np.mean(quotients) <= 1.02


@pytest.mark.parametrize("n", [2, 3, 5, 7, 8, 10, 12, 15, 16, 20, 24, 25, 31])
def test_short_sums_are_nearly_as_exact_as_numpys(n: int) -> None:
    """Sums of fewer than 32 neighbours: 8 at a time, where NumPy adds 8 lanes and what is left.

    The variances of the partial sums add up to 86 against 64 for 16 elements, the worst case (a
    quotient of 1.16 in the error), and to 203 against 308 for 31.
    """
    rng = np.random.default_rng(n)
    ours, numpys = _rms_errors(rng, (400, n), 1, "f8", 6)
    assert ours <= 1.3 * numpys


@pytest.mark.parametrize("exponent", [3, 3.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_cubes_are_those_of_compiled_programs(dtype: str, exponent: float) -> None:
    x = np.random.default_rng(0).normal(size=1000).astype(dtype)
    x[:5] = 0.0, -0.0, np.inf, -np.inf, np.nan
    (cube,) = bind(power_p, x, exponent)
    assert_same_bits(ft.jit(lambda x: x**exponent)(x), cube)
    np.testing.assert_allclose(cube, x**exponent, 4 * np.finfo(dtype).eps)
