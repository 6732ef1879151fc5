"""Derivatives have the relative accuracy that the function's own tail has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import share
from functrans.scipy import special, stats
from functrans.scipy.special_ufuncs import SCIPY_UFUNCS
from tests.tail_cases import BOUNDS, ENDS, LEFT_OUT, TAILS, USUAL, Ends, Tail

# Functions whose derivative falls like exp(-|x|) on a side where the function itself is constant.
EXPONENTIAL = (
    ("tanh", fnp.tanh, lambda x: 4 * np.exp(-2 * x), 2.0),
    ("expit", special.expit, lambda x: np.exp(-x), 1.0),
    ("log_expit", special.log_expit, lambda x: np.exp(-x), 1.0),
    ("expm1", lambda x: fnp.expm1(-x), lambda x: -np.exp(-x), 1.0),
)


@pytest.mark.parametrize(("name", "function", "tail", "rate"), EXPONENTIAL)
@pytest.mark.parametrize("is_native", [False, True])
def test_slopes_of_constants_are_exponentials_at_each_order(
    name: str, function: Any, tail: Any, rate: float, is_native: bool
) -> None:
    x = np.array([40.0, 60.0, 300.0])
    slope = function
    expected = tail(x)
    for _ in range(3):
        slope = ft.grad(lambda x, inner=slope: inner(x).sum())
        found = (ft.jit(slope) if is_native else slope)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)
        expected = -rate * expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_bessel_of_half_precision_is_summed_in_more(dtype: Any) -> None:
    found = fnp.i0(np.array([10.0], dtype))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.i0(10.0), rtol=2 * np.finfo(dtype).eps)
    traced = ft.jit(fnp.i0)(np.array([10.0], dtype))
    np.testing.assert_allclose(traced, np.i0(10.0), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("order", [1, 2])
def test_infinite_limits_are_infinite(order: int) -> None:
    for function, points in (
        (special.expi, [800.0]),
        (fnp.arctanh, [-1.0, 1.0]),
        (special.logit, [0.0, 1e-200, 1.0]),
        (special.k1e, [0.0]),
    ):
        slope = function
        for _ in range(order):
            slope = ft.grad(lambda x, inner=slope: inner(x).sum())
        with np.errstate(all="ignore"):
            found = slope(np.array(points))
            native = ft.jit(slope)(np.array(points))
        np.testing.assert_array_equal(found, native)
        if order == 2 or 1e-200 not in points:
            assert np.isinf(found).all(), (function, found)


# the table ---------------------------------------------------------------------------------------

KEPT = np.load(Path(__file__).with_name("tail_references.npz"))
# Rows whose rules have machine code of their own; those of others call SciPy in either mode.
NATIVE = [row for row in TAILS if not row.is_scipy or row.name in ("expit", "log_expit", "erf")]


def _function(row: Tail) -> tuple[Any, np.ndarray]:
    """The function of the operand that derivatives are taken in, and where it is looked at."""
    columns = [np.array(column) for column in zip(*row.points(), strict=True)]
    whole = getattr(special if row.is_scipy else fnp, row.name)

    def function(x: Any) -> Any:
        y = whole(*columns[: row.moving], x, *columns[row.moving + 1 :])
        return y if row.result is None else y[row.result]

    return function, columns[row.moving]


def _forward(function: Any, x: Any) -> tuple[Any, Any, Any]:
    ones = np.ones(x.shape, x.dtype)

    def slope(x: Any) -> Any:
        return ft.jvp(function, (x,), (ones,))[1]

    return function(x), slope(x), ft.jvp(slope, (x,), (ones,))[1]


def _reverse(function: Any, x: Any) -> tuple[Any, Any, Any]:
    ones = np.ones(x.shape, x.dtype)

    def slope(x: Any) -> Any:
        return ft.vjp(function, x)[1](ones)[0]

    return function(x), slope(x), ft.vjp(slope, x)[1](ones)[0]


def _check(row: Tail, results: tuple[Any, ...]) -> None:
    """Compare results of orders 0, 1 and 2 with the references, within the bounds of the table."""
    exact, conditions = KEPT[f"{row.key}|values"], KEPT[f"{row.key}|conditions"]
    assert exact.shape[1] == len(row.points()) >= 10
    bounds, _ = BOUNDS.get(row.key, (USUAL, ""))
    for order, (found, bound) in enumerate(zip(results, bounds, strict=True)):
        unit = np.finfo(float).eps * 2.0 ** (conditions[order] / 4.0)
        least = np.finfo(float).smallest_normal
        with np.errstate(all="ignore"):
            error = np.abs(found - exact[order]) / (np.maximum(np.abs(exact[order]), least) * unit)
        is_free = (found == exact[order]) | (conditions[order] == 255)
        error = np.where(is_free, 0, np.where(np.isnan(error), np.inf, error))
        worst = np.argmax(error)
        assert error[worst] <= bound, (
            f"order {order} at {row.points()[worst]}: {found[worst]!r}, not "
            f"{exact[order][worst]!r}: {error[worst]:.3g} units"
        )


@pytest.mark.parametrize("row", TAILS, ids=lambda row: row.key)
def test_derivatives_are_within_the_bounds_of_the_table(row: Tail) -> None:
    function, x = _function(row)
    with np.errstate(all="ignore"):
        _check(row, _forward(function, x))
        _check(row, _reverse(function, x))


@pytest.mark.parametrize("row", NATIVE, ids=lambda row: row.key)
def test_compiled_derivatives_are_within_the_bounds_of_the_table(row: Tail) -> None:
    function, x = _function(row)
    with np.errstate(all="ignore"):
        _check(row, ft.jit(lambda x: _reverse(function, x))(x))


@pytest.mark.parametrize("row", TAILS, ids=lambda row: row.key)
def test_numbers_have_the_derivatives_that_arrays_have(row: Tail) -> None:
    _, x = _function(row)
    whole = getattr(special if row.is_scipy else fnp, row.name)
    points = row.points()
    for i in share(range(0, len(points), 1 + len(points) // 8), 3, len(row.name)):

        def function(x: Any, point: Any = points[i]) -> Any:
            y = whole(*point[: row.moving], x, *point[row.moving + 1 :])
            return fnp.real(y if row.result is None else y[row.result])

        with np.errstate(all="ignore"):
            expected = [y[0] for y in _reverse(lambda x: np.stack([function(x[0])]), x[i : i + 1])]
            for number in (float(x[i]), np.array(x[i])):
                slope = ft.grad(function)
                found = function(number), slope(number), ft.grad(slope)(number)
                np.testing.assert_allclose(found, expected, 1e-14, 1e-300, err_msg=str(points[i]))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("ends", ENDS, ids=lambda ends: f"{ends.name}-{ends.limits[0][0]}")
def test_derivatives_at_ends_are_the_limits(ends: Ends, dtype: str) -> None:
    if dtype not in ends.dtypes:
        return
    space, name = ends.name.split(".")
    whole = getattr(special if space == "special" else fnp, name)
    parameters = [np.dtype(dtype).type(p) for p in ends.parameters]

    def function(x: Any) -> Any:
        y = whole(*parameters, x)
        return y if ends.result is None else y[ends.result]

    x, first, second = (np.array(column, dtype) for column in zip(*ends.limits, strict=True))
    modes = (_forward, _reverse)
    with np.errstate(all="ignore"):
        results = [mode(function, x) for mode in modes]
        results += [ft.jit(lambda x, mode=mode: mode(function, x))(x) for mode in modes]
    for _, *found in results:
        np.testing.assert_allclose(found, (first, second), 16 * np.finfo(dtype).eps)


def test_functions_that_switch_have_no_cancellation_beside() -> None:
    for x in (1e-10, -1e-5, 0.5, 0.999, 1.001, 30.0):
        slope = ft.grad(lambda x: stats.logistic.logpdf(x))
        np.testing.assert_allclose(slope(x), -np.tanh(x / 2), 1e-14)
        np.testing.assert_allclose(ft.grad(slope)(x), -0.5 / np.cosh(x / 2) ** 2, 1e-13)
    slopes = {-1e-17: -0.9189385332046728, -0.049: -0.8273924043762425, -0.051: -0.823924813170979}
    for x, exact in slopes.items():  # of zeta, by reflection from -0.05 on
        np.testing.assert_allclose(ft.grad(special.zetac)(x), exact, 1e-13)
    for x in (-199.9, -200.1):  # the first terms of the asymptotic series
        bend = ft.grad(ft.grad(special.log_ndtr))(x)
        np.testing.assert_allclose(bend, -1 + x**-2 - 6 * x**-4 + 50 * x**-6, 1e-14)


def test_each_bound_belongs_to_a_row_and_has_a_reason() -> None:
    assert set(BOUNDS) <= {row.key for row in TAILS}
    assert len({row.key for row in TAILS}) == len(TAILS) > 150
    assert all(why and max(bounds) > max(USUAL) for bounds, why in BOUNDS.values())


def test_every_special_function_has_a_row_or_a_reason() -> None:
    rows = {row.name for row in TAILS if row.is_scipy}
    left_out = [name for names in LEFT_OUT.values() for name in names.split()]
    assert len(set(left_out)) == len(left_out)
    assert not rows & set(left_out)
    assert not set(SCIPY_UFUNCS) - rows - set(left_out)
