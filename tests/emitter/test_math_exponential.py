"""Exponentials, logarithms, powers and hyperbolic functions: errors in ulp, and special cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from emitter.mathcheck import (
    Compiled,
    Function,
    grid,
    random_bits,
    random_in,
    same,
    specials,
    ulp_errors,
)
from functrans.emitter.math import BOUNDS, exponential, hyperbolic, logarithm, power
from processors import SMALL

INF, NAN = np.inf, np.nan
DTYPES = ["f4", "f8"]


def _log1p_exp(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


def _logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _saturated(exact: Callable[[Any], Any]) -> Callable[[Any], Any]:
    # mpmath needs as many digits as a huge argument has.
    def function(x: Any) -> Any:
        return exact(max(min(x, mpmath.mpf(2000)), mpmath.mpf(-2000)))

    return function


def _asinh(x: Any) -> Any:
    a = abs(x)
    return mpmath.sign(x) * mpmath.log1p(a + a * a / (1 + mpmath.sqrt(1 + a * a)))


def _acosh(x: Any) -> Any:
    return mpmath.log1p(x - 1 + mpmath.sqrt((x - 1) * (x + 1))) if x >= 1 else mpmath.nan


def _atanh(x: Any) -> Any:
    if abs(x) >= 1:
        return mpmath.nan if abs(x) > 1 else x * mpmath.inf
    return (mpmath.log1p(x) - mpmath.log1p(-x)) / 2


def _log1p(x: Any) -> Any:
    if x <= -1:
        return mpmath.nan if x < -1 else -mpmath.inf
    return mpmath.log1p(x)


def _logarithm(base: int | None) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if x <= 0:
            return mpmath.nan if x < 0 else -mpmath.inf
        return mpmath.log(x) / (mpmath.log(base) if base else 1)

    return function


def _cbrt(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


@dataclass(frozen=True)
class Case:
    """A function, what it should be, and where it is interesting.

    ``ranges`` are covered by evenly spaced and by random numbers; all numbers by random bits.
    ``special`` pairs arguments with exact results.
    """

    name: str
    function: Function
    exact: Callable[[Any], Any]
    ranges: dict[str, list[tuple[float, float]]]
    special: list[tuple[float, float]]


def _both(*ranges: tuple[float, float]) -> dict[str, list[tuple[float, float]]]:
    return {"f4": list(ranges), "f8": list(ranges)}


EXPONENTS = {"f4": [(-105.0, 90.0), (-1.0, 1.0)], "f8": [(-747.0, 711.0), (-1.0, 1.0)]}
LOG_SPECIAL = [
    (NAN, NAN),
    (INF, INF),
    (-INF, NAN),
    (0.0, -INF),
    (-0.0, -INF),
    (-1.0, NAN),
    (1.0, 0),
]
ODD = [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0)]

CASES = [
    Case(
        "exp",
        exponential.exp,
        mpmath.exp,
        EXPONENTS,
        [(NAN, NAN), (INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0)],
    ),
    Case(
        "exp2",
        exponential.exp2,
        lambda x: mpmath.power(2, x),
        {"f4": [(-151.0, 129.0), (-1.0, 1.0)], "f8": [(-1076.0, 1025.0), (-1.0, 1.0)]},
        [(NAN, NAN), (INF, INF), (-INF, 0.0), (-0.0, 1.0), (10.0, 1024.0), (-149.0, 2.0**-149)],
    ),
    Case(
        "expm1",
        exponential.expm1,
        mpmath.expm1,
        {"f4": [(-20.0, 90.0), (-1.0, 1.0)], "f8": [(-40.0, 711.0), (-1.0, 1.0)]},
        [*ODD, (INF, INF), (-INF, -1.0)],
    ),
    Case("log", logarithm.log, _logarithm(None), _both((0.3, 3.0), (0.9, 1.1)), LOG_SPECIAL),
    Case(
        "log2",
        logarithm.log2,
        _logarithm(2),
        _both((0.3, 3.0), (0.9, 1.1)),
        [*LOG_SPECIAL, *[(2.0**k, k) for k in range(-149, 128)]],
    ),
    Case(
        "log10",
        logarithm.log10,
        _logarithm(10),
        _both((0.3, 3.0), (0.9, 1.1)),
        [*LOG_SPECIAL, *[(10.0**k, k) for k in range(11)]],
    ),
    Case(
        "log1p",
        logarithm.log1p,
        _log1p,
        _both((-0.999, 3.0), (-0.1, 0.1)),
        [*ODD, (INF, INF), (-1.0, -INF), (-1.5, NAN), (-INF, NAN)],
    ),
    Case(
        "cbrt",
        power.cbrt,
        _cbrt,
        _both((-9.0, 9.0), (1.0, 8.0)),
        [*ODD, (INF, INF), (-INF, -INF), *[(float(k**3), k) for k in range(-40, 41) if k]],
    ),
    Case(
        "sinh",
        hyperbolic.sinh,
        _saturated(mpmath.sinh),
        {"f4": [(-90.0, 90.0), (-2.0, 2.0)], "f8": [(-711.0, 711.0), (-2.0, 2.0)]},
        [*ODD, (INF, INF), (-INF, -INF)],
    ),
    Case(
        "cosh",
        hyperbolic.cosh,
        _saturated(mpmath.cosh),
        {"f4": [(-90.0, 90.0), (-2.0, 2.0)], "f8": [(-711.0, 711.0), (-2.0, 2.0)]},
        [(NAN, NAN), (INF, INF), (-INF, INF), (0.0, 1.0), (-0.0, 1.0)],
    ),
    Case(
        "tanh",
        hyperbolic.tanh,
        _saturated(mpmath.tanh),
        _both((-22.0, 22.0), (-1.0, 1.0)),
        [*ODD, (INF, 1.0), (-INF, -1.0), (1e30, 1.0)],
    ),
    Case(
        "asinh",
        hyperbolic.asinh,
        _asinh,
        _both((-10.0, 10.0), (-1.0, 1.0)),
        [*ODD, (INF, INF), (-INF, -INF)],
    ),
    Case(
        "acosh",
        hyperbolic.acosh,
        _acosh,
        _both((1.0, 10.0), (1.0, 1.1)),
        [(NAN, NAN), (INF, INF), (-INF, NAN), (0.0, NAN), (-5.0, NAN), (1.0, 0.0)],
    ),
    Case(
        "atanh",
        hyperbolic.atanh,
        _atanh,
        _both((-1.0, 1.0), (0.9, 1.0)),
        [*ODD, (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (-INF, NAN)],
    ),
    Case(
        "expit",
        hyperbolic.expit,
        _logistic,
        {"f4": [(-105.0, 20.0), (-3.0, 3.0)], "f8": [(-747.0, 40.0), (-3.0, 3.0)]},
        [(NAN, NAN), (INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5)],
    ),
    Case(
        "softplus",
        hyperbolic.softplus,
        _log1p_exp,
        {"f4": [(-105.0, 20.0), (-3.0, 3.0)], "f8": [(-747.0, 40.0), (-3.0, 3.0)]},
        [(NAN, NAN), (INF, INF), (-INF, 0.0)],
    ),
]

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
by_dtype = pytest.mark.parametrize("dtype", DTYPES)


def _points(case: Case, dtype: str, rng: np.random.Generator, count: int) -> np.ndarray:
    parts = [specials(dtype), random_bits(rng, dtype, count)]
    for low, high in case.ranges[dtype]:
        parts += [grid(dtype, low, high, count), rng.uniform(low, high, count).astype(dtype)]
        if low < 0 < high:
            parts.append(random_in(rng, dtype, 1e-9, high, count // 2))
            parts.append(random_in(rng, dtype, -1e-9, low, count // 2))
    return np.concatenate(parts)


@by_dtype
@by_name
def test_errors_are_within_the_bound(case: Case, dtype: str, rng: np.random.Generator) -> None:
    x = _points(case, dtype, rng, 120)
    # For tanh of tiny and cosh of huge arguments alike.
    errors = ulp_errors(Compiled(case.function, dtype, 8)(x), case.exact, x, precision_bits=300)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[case.name], f"{case.name}({x[worst]!r}): {errors[worst]:.3f} ulp"


@pytest.mark.parametrize("lanes", [1, 8])
@by_dtype
@by_name
def test_special_values_are_exact(case: Case, dtype: str, lanes: int) -> None:
    x, expected = np.array(case.special, dtype).T
    got = Compiled(case.function, dtype, lanes)(x)
    wrong = [(a, g, e) for a, g, e in zip(x, got, expected, strict=True) if not same(g, e)]
    assert not wrong


@by_dtype
@by_name
def test_all_lane_counts_agree_bitwise(case: Case, dtype: str, rng: np.random.Generator) -> None:
    x = _points(case, dtype, rng, 500)
    vectors = Compiled(case.function, dtype, 8)(x)
    assert same(Compiled(case.function, dtype, 1)(x), vectors)
    assert same(Compiled(case.function, dtype, 3)(x), vectors)


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_processors_agree_bitwise(dtype: str, rng: np.random.Generator) -> None:
    for case in CASES:
        x = _points(case, dtype, rng, 100)
        # Without fma and with 128 bits.
        other = Compiled(case.function, dtype, 4, cpu=SMALL[0])(x)
        assert same(other, Compiled(case.function, dtype, 8)(x)), case.name


def _exact_power(x: Any, y: Any) -> Any:
    exponent = mpmath.log(abs(x)) * y
    magnitude = mpmath.exp(max(min(exponent, mpmath.mpf(2000)), mpmath.mpf(-2000)))
    if x > 0:
        return magnitude
    return mpmath.nan if y != int(y) else magnitude * (-1) ** (int(y) % 2)


@by_dtype
def test_errors_of_powers_are_within_the_bound(dtype: str, rng: np.random.Generator) -> None:
    def up_to_the_ends(x: np.ndarray) -> np.ndarray:
        end = {"f4": 155.0, "f8": 1100.0}[dtype]
        return (rng.uniform(-end, end, x.size) / np.log2(x.astype("f8"))).astype(dtype)

    x = np.abs(random_bits(rng, dtype, 400))
    near_1 = random_in(rng, dtype, 1 + 1e-5, 1.01, 200)
    pairs = [
        (x, up_to_the_ends(x)),
        (near_1, up_to_the_ends(near_1)),
        (rng.uniform(0.01, 9, 300).astype(dtype), rng.uniform(-9, 9, 300).astype(dtype)),
        (-rng.uniform(0.01, 9, 200).astype(dtype), rng.integers(-40, 40, 200).astype(dtype)),
        (random_bits(rng, dtype, 100), random_bits(rng, dtype, 100)),
    ]
    x, y = (np.concatenate(part) for part in zip(*pairs, strict=True))
    finite = np.isfinite(y) & (x != 0)
    x, y = x[finite], y[finite]
    compiled = Compiled(power.pow, dtype, 8, arity=2)
    errors = ulp_errors(compiled(x, y), _exact_power, x, y, precision_bits=200)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS["pow"], f"pow({x[worst]!r}, {y[worst]!r}): {errors[worst]:.3f}"
    assert same(Compiled(power.pow, dtype, 1, arity=2)(x, y), compiled(x, y))


@pytest.mark.parametrize("lanes", [1, 8])
@by_dtype
def test_powers_have_the_special_cases_of_c(dtype: str, lanes: int) -> None:
    largest_odd = 2.0 ** (np.finfo(dtype).nmant + 1) - 1
    numbers = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 1.0 + 2.0**-20, 1.0 - 2.0**-20, largest_odd]
    numbers += [float(np.finfo(dtype).max), float(np.finfo(dtype).smallest_subnormal), INF, NAN]
    values = np.array([*numbers, *[-n for n in numbers]], dtype)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    got = Compiled(power.pow, dtype, lanes, arity=2)(x, y)
    ordinary = np.isfinite(expected) & (expected != 0) & (np.abs(expected) != 1)
    with np.errstate(all="ignore"):
        close = np.abs(got - expected) <= 4 * np.abs(np.spacing(expected))
    for a, b, g, e, fine in zip(x, y, got, expected, ordinary & close, strict=True):
        assert fine or same(g, e), f"pow({a!r}, {b!r}) gave {g!r}, not {e!r}"
