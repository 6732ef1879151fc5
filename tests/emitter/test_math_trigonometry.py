"""Trigonometric functions, their inverses and lengths: errors in ulp, and special cases."""

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
from functrans.emitter.math import geometry, inverse_trigonometry, trigonometry
from processors import SMALL

INF, NAN = np.inf, np.nan
DTYPES = ["f4", "f8"]
BOUNDS = {**trigonometry.BOUNDS, **inverse_trigonometry.BOUNDS, **geometry.BOUNDS}


def _up_to_one(exact: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return exact(x) if abs(x) <= 1 else mpmath.nan

    return function


@dataclass(frozen=True)
class Case:
    """A function, what it should be, ranges to cover, and arguments with exact results."""

    name: str
    function: Function
    exact: Callable[[Any], Any]
    ranges: tuple[tuple[float, float], ...]
    special: tuple[tuple[float, float], ...]


ODD = ((NAN, NAN), (0.0, 0.0), (-0.0, -0.0))
PERIODIC = ((-4.0, 4.0), (-300.0, 300.0), (-2.0e5, 2.0e5), (-4.0e9, 4.0e9))
CASES = [
    Case("sin", trigonometry.sin, mpmath.sin, PERIODIC, (*ODD, (INF, NAN), (-INF, NAN))),
    Case(
        "cos",
        trigonometry.cos,
        mpmath.cos,
        PERIODIC,
        ((NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (1e-30, 1.0), (INF, NAN), (-INF, NAN)),
    ),
    Case("tan", trigonometry.tan, mpmath.tan, PERIODIC, (*ODD, (INF, NAN), (-INF, NAN))),
    Case(
        "asin",
        inverse_trigonometry.asin,
        _up_to_one(mpmath.asin),
        ((-1.0, 1.0), (0.99, 1.0), (0.4, 0.6)),
        (*ODD, (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN)),
    ),
    Case(
        "acos",
        inverse_trigonometry.acos,
        _up_to_one(mpmath.acos),
        ((-1.0, 1.0), (0.99, 1.0), (0.4, 0.6)),
        ((NAN, NAN), (1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN)),
    ),
    Case(
        "atan",
        inverse_trigonometry.atan,
        mpmath.atan,
        ((-1.0, 1.0), (0.4, 2.5), (-60.0, 60.0)),
        (*ODD, (INF, np.pi / 2), (-INF, -np.pi / 2)),
    ),
]
PAIRS = [
    ("atan2", inverse_trigonometry.atan2, mpmath.atan2, np.arctan2),
    ("hypot", geometry.hypot, mpmath.hypot, np.hypot),
]

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
by_dtype = pytest.mark.parametrize("dtype", DTYPES)
by_pair = pytest.mark.parametrize("pair", PAIRS, ids=[pair[0] for pair in PAIRS])


def _points(case: Case, dtype: str, rng: np.random.Generator, count: int) -> np.ndarray:
    parts = [specials(dtype), random_bits(rng, dtype, count)]
    for low, high in case.ranges:
        parts += [grid(dtype, low, high, count), rng.uniform(low, high, count).astype(dtype)]
        parts.append(random_in(rng, dtype, 1e-9, high, count // 2))
    if case.ranges is PERIODIC:
        zeros = (rng.integers(1, 1 << 18, count) * (np.pi / 2)).astype(dtype)
        parts += [zeros, np.nextafter(zeros, np.array(INF, dtype))]
        # For float64 the double that comes closest to a multiple of pi/2 (Muller et al., Handbook
        # of Floating-Point Arithmetic, 2nd ed., ch. 10).
        parts.append(np.array([np.ldexp(float(6381956970095103), 797 if dtype == "f8" else 40)]))
    return np.concatenate(parts).astype(dtype)


@by_dtype
@by_name
def test_errors_are_within_the_bound(case: Case, dtype: str, rng: np.random.Generator) -> None:
    x = _points(case, dtype, rng, 150)
    errors = ulp_errors(Compiled(case.function, dtype, 8)(x), case.exact, x)
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


@by_dtype
def test_other_processors_agree_bitwise(dtype: str, rng: np.random.Generator) -> None:
    for case in CASES:
        x = _points(case, dtype, rng, 100)
        # Without fma and with 128 bits.
        other = Compiled(case.function, dtype, 4, cpu=SMALL[0])(x)
        assert same(other, Compiled(case.function, dtype, 8)(x)), case.name


@by_dtype
def test_sine_and_cosine_stay_within_one(dtype: str, rng: np.random.Generator) -> None:
    multiples = (rng.integers(0, 1 << 17, 20000) * (np.pi / 2)).astype(dtype)
    x = np.concatenate([multiples, rng.uniform(-10, 10, 20000).astype(dtype)])
    for function in (trigonometry.sin, trigonometry.cos):
        assert np.abs(Compiled(function, dtype, 8)(x)).max() <= 1


@by_dtype
def test_a_large_number_does_not_disturb_its_neighbours(dtype: str) -> None:
    x = np.array([0.5, 1e30, -0.25, NAN, INF, 3.0, -0.0, 2.0**40], dtype)
    for function in (trigonometry.sin, trigonometry.cos, trigonometry.tan):
        together = Compiled(function, dtype, 8)(x)
        assert same(together, Compiled(function, dtype, 1)(x))


def _pairs(dtype: str, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    x = random_bits(rng, dtype, count)
    nearby = x.astype("f8") * rng.normal(size=x.size) * 2.0 ** rng.integers(-30, 30, x.size)
    with np.errstate(over="ignore"):
        nearby = nearby.astype(dtype)
    y = np.concatenate([random_bits(rng, dtype, count), nearby, rng.normal(size=4 * count)])
    x = np.concatenate([random_bits(rng, dtype, count), x, rng.normal(size=4 * count)])
    finite = np.isfinite(y)
    return y[finite].astype(dtype), x[finite].astype(dtype)


@by_dtype
@by_pair
def test_errors_of_two_operands_are_within_the_bound(
    pair: tuple[str, Function, Any, Any], dtype: str, rng: np.random.Generator
) -> None:
    name, function, exact, _ = pair
    with np.errstate(over="ignore"):
        y, x = _pairs(dtype, rng, 300)
    compiled = Compiled(function, dtype, 8, arity=2)
    errors = ulp_errors(compiled(y, x), exact, y, x)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[name], f"{name}({y[worst]!r}, {x[worst]!r}): {errors[worst]:.3f}"
    assert same(Compiled(function, dtype, 1, arity=2)(y, x), compiled(y, x))
    assert same(Compiled(function, dtype, 4, arity=2, cpu=SMALL[0])(y, x), compiled(y, x))


@pytest.mark.parametrize("lanes", [1, 8])
@by_dtype
@by_pair
def test_two_operands_have_the_special_cases_of_numpy(
    pair: tuple[str, Function, Any, Any], dtype: str, lanes: int
) -> None:
    name, function, _, reference = pair
    values = np.concatenate([specials(dtype), np.array([INF, -INF, NAN], dtype)])
    y, x = np.repeat(values, values.size), np.tile(values, values.size)
    with np.errstate(all="ignore"):
        expected = reference(y, x)
        got = Compiled(function, dtype, lanes, arity=2)(y, x)
        close = np.abs(got - expected) <= BOUNDS[name] * np.spacing(np.abs(expected))
    close &= np.isfinite(expected) & (np.signbit(got) == np.signbit(expected))
    for a, b, g, e, fine in zip(y, x, got, expected, close, strict=True):
        assert fine or same(g, e), f"{name}({a!r}, {b!r}) gave {g!r}, not {e!r}"
