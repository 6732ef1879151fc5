"""Error function and gamma function: errors in ulp, and special cases."""

from __future__ import annotations

import functools
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
from functrans.emitter.math import special
from processors import SMALL

INF, NAN = np.inf, np.nan
DTYPES = ["f4", "f8"]
HUGE = 1e25


def _erfc(x: Any) -> Any:
    # mpmath needs as many digits as a huge argument has.
    return mpmath.erfc(max(min(x, mpmath.mpf(40)), mpmath.mpf(-40)))


def _is_pole(x: Any) -> bool:
    return bool(x <= 0 and x == mpmath.floor(x))


def _gammaln(x: Any) -> Any:
    if _is_pole(x):
        return mpmath.inf
    if x > HUGE:
        return (x - 0.5) * mpmath.log(x) - x
    if x < -100:
        with mpmath.extraprec(400):
            sine = abs(mpmath.sin(mpmath.pi * x) * x / mpmath.pi)
            return -mpmath.log(sine) - mpmath.loggamma(-x)
    return mpmath.log(abs(mpmath.gamma(x))) if x < 100 else mpmath.loggamma(x)


def _digamma(x: Any) -> Any:
    if x == 0:
        return -mpmath.inf
    if _is_pole(x):
        return mpmath.nan
    return mpmath.log(x) if x > HUGE else mpmath.psi(0, x)


@dataclass(frozen=True)
class Case:
    """A function, what it should be, ranges to cover, and arguments with exact results."""

    name: str
    function: Function
    exact: Callable[[Any], Any]
    ranges: tuple[tuple[float, float], ...]
    special: tuple[tuple[float, float], ...]


CASES = [
    Case(
        "erf",
        special.erf,
        mpmath.erf,
        ((-6.0, 6.0), (-1.5, 1.5)),
        ((NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e30, 1.0)),
    ),
    Case(
        "erfc",
        special.erfc,
        _erfc,
        ((-6.0, 11.0), (-1.5, 1.5), (0.0, 28.0)),
        ((NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (1e30, 0.0), (-1e30, 2.0)),
    ),
    Case(
        "gammaln",
        special.gammaln,
        _gammaln,
        ((0.0, 4.0), (0.9, 1.1), (1.9, 2.1), (3.0, 200.0), (-6.0, 0.0), (-200.0, 0.0)),
        (
            (NAN, NAN),
            (0.0, INF),
            (-0.0, INF),
            (1.0, 0.0),
            (2.0, 0.0),
            (-1.0, INF),
            (-50.0, INF),
            (-(2.0**30), INF),
            (-1e30, INF),
            (INF, INF),
            (-INF, -INF),
        ),
    ),
    Case(
        "digamma",
        special.digamma,
        _digamma,
        ((0.0, 4.0), (1.4, 1.5), (3.0, 200.0), (-6.0, 0.0), (-200.0, 0.0)),
        (
            (NAN, NAN),
            (0.0, -INF),
            (-0.0, INF),
            (-1.0, NAN),
            (-50.0, NAN),
            (-1e30, NAN),
            (INF, INF),
            (-INF, NAN),
        ),
    ),
]

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
by_dtype = pytest.mark.parametrize("dtype", DTYPES)


def _points(case: Case, dtype: str, rng: np.random.Generator, count: int) -> np.ndarray:
    parts = [specials(dtype), random_bits(rng, dtype, count)]
    for low, high in case.ranges:
        parts += [grid(dtype, low, high, count), rng.uniform(low, high, count).astype(dtype)]
        if high > 0:
            parts.append(random_in(rng, dtype, 1e-9, high, count // 2))
        if low < 0:
            parts.append(random_in(rng, dtype, -1e-9, low, count // 2))
    x = np.concatenate(parts)
    return x[x != 0]


@by_dtype
@by_name
def test_errors_are_within_the_bound(case: Case, dtype: str, rng: np.random.Generator) -> None:
    x = _points(case, dtype, rng, 100)
    errors = ulp_errors(Compiled(case.function, dtype, 8)(x), case.exact, x, precision_bits=200)
    worst = int(np.argmax(errors))
    bound = special.BOUNDS[case.name]
    assert errors[worst] <= bound, f"{case.name}({x[worst]!r}): {errors[worst]:.3f} ulp"


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
    x = _points(case, dtype, rng, 300)
    vectors = Compiled(case.function, dtype, 8)(x)
    assert same(Compiled(case.function, dtype, 1)(x), vectors)
    assert same(Compiled(case.function, dtype, 3)(x), vectors)


@by_dtype
def test_other_processors_agree_bitwise(dtype: str, rng: np.random.Generator) -> None:
    for case in CASES:
        x = _points(case, dtype, rng, 60)
        # Without fma and with 128 bits.
        other = Compiled(case.function, dtype, 4, cpu=SMALL[0])(x)
        assert same(other, Compiled(case.function, dtype, 8)(x)), case.name


def _zeros(exact: Callable[[Any], Any], ends: list[tuple[Any, Any]]) -> list[Any]:
    """Points between a pole and another number where a function changes its sign."""
    found = []
    for pole, other in ends:
        near, far = pole + (other - pole) * mpmath.mpf(2) ** -100, other
        sign = mpmath.sign(exact(near))
        for _ in range(100):
            middle = (near + far) / 2
            if mpmath.sign(exact(middle)) == sign:
                near = middle
            else:
                far = middle
        found.append(near)
    return found


@functools.cache
def _negative_zeros() -> dict[str, list[Any]]:
    # Between any two poles digamma rises from -inf to inf; there gammaln has its minimum.
    with mpmath.workprec(200):
        poles = [mpmath.mpf(-n) for n in (0, 1, 2, 3, 4, 7, 17, 30)]
        turns = _zeros(_digamma, [(pole, pole - 1 + mpmath.mpf(2) ** -100) for pole in poles])
        below = [turn for turn in turns if _gammaln(turn) < 0 and turn > -10]
        sides = [(mpmath.ceil(turn), turn) for turn in below]
        sides += [(mpmath.floor(turn), turn) for turn in below]
        return {"digamma": turns, "gammaln": _zeros(_gammaln, sides)}


def _around(zeros: list[Any], dtype: str) -> np.ndarray:
    nearest = np.array([float(zero) for zero in zeros], dtype)
    infinity = np.array(INF, dtype)
    x = np.concatenate([nearest, np.nextafter(nearest, infinity), np.nextafter(nearest, -infinity)])
    return x[x != np.round(x)]


@pytest.mark.parametrize("name", ["gammaln", "digamma"])
@by_dtype
def test_errors_next_to_negative_zeros_are_within_the_bound(name: str, dtype: str) -> None:
    case = next(case for case in CASES if case.name == name)
    x = _around(_negative_zeros()[name], dtype)
    errors = ulp_errors(Compiled(case.function, dtype, 8)(x), case.exact, x, precision_bits=300)
    worst = int(np.argmax(errors))
    assert errors[worst] <= special.BOUNDS[name], f"{name}({x[worst]!r}): {errors[worst]:.3f}"


@by_dtype
def test_a_negative_number_does_not_disturb_its_neighbours(dtype: str) -> None:
    x = np.array([0.5, -0.5, 2.0, NAN, INF, -3.25, -0.0, 1e30], dtype)
    for function in (special.gammaln, special.digamma):
        together = Compiled(function, dtype, 8)(x)
        assert same(together, Compiled(function, dtype, 1)(x))
