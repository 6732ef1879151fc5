"""The derivative rule of every primitive agrees with difference quotients."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.core.primitive import nondifferentiable
from functrans.testing import central_difference, tolerance_of
from helpers import assert_close, derivative_tolerance
from samples import Row, Sample, each_row, each_sample


def _is_smooth(row: Row, sample: Sample) -> bool:
    is_derived = row.is_differentiable and sample.has_derivative and bool(row.moving(sample))
    return is_derived and sample.is_smooth and row.order >= 1


SMOOTH = each_sample(_is_smooth)


def test_there_are_smooth_samples() -> None:
    assert len(SMOOTH) > 700


@each(("row", "label"), SMOOTH, by="row")
def test_jvp_is_the_difference_quotient(row: Row, label: str, rng: np.random.Generator) -> None:
    sample = row.sample(label)
    fun = row.function(sample)
    point = [sample.operands[i] for i in row.moving(sample)]
    direction = row.direction(sample, rng)
    outs, tangents = ft.jvp(fun, tuple(point), tuple(direction))
    assert_close(outs, fun(*point), "value")
    step, _ = tolerance_of([*point, *outs])
    expected = central_difference(fun, point, direction, step)
    rtol = derivative_tolerance([*point, *outs], row.fd_scale)
    assert_close(tangents, tuple(expected), "tangent", rtol)


@each(("row", "label"), SMOOTH, by="row")
def test_jvp_is_linear_in_tangents(row: Row, label: str, rng: np.random.Generator) -> None:
    """The sum of the derivatives in one operand each, the others held constant."""
    sample = row.sample(label)
    fun = row.function(sample)
    point = [sample.operands[i] for i in row.moving(sample)]
    direction = row.direction(sample, rng)
    outs, together = ft.jvp(fun, tuple(point), tuple(2.0 * t for t in direction))
    total = [np.zeros(np.shape(out), out.dtype) for out in outs]
    for k, tangent in enumerate(direction):

        def of_one(x: Any, k: int = k) -> Any:
            return fun(*point[:k], x, *point[k + 1 :])

        _, alone = ft.jvp(of_one, (point[k],), (tangent,))
        total = [have + 2.0 * more for have, more in zip(total, alone, strict=True)]
    assert_close(together, tuple(total))


@pytest.mark.parametrize("row", each_row(lambda row: row.is_differentiable and row.order >= 1))
def test_derivative_is_zero_where_the_row_says_so_only(row: Row, rng: np.random.Generator) -> None:
    """No derivative test can pass because everything in it is zero."""
    seen: dict[int, bool] = {}
    for template in row.samples():
        sample = row.sample(template.label)
        if not _is_smooth(row, sample):
            continue
        fun = row.function(sample)
        moving = row.moving(sample)
        point = [sample.operands[i] for i in moving]
        direction = row.direction(sample, rng)
        for k, i in enumerate(moving):

            def of_one(x: Any, k: int = k, fun: Any = fun, point: Any = point) -> Any:
                return fun(*point[:k], x, *point[k + 1 :])

            _, tangents = ft.jvp(of_one, (point[k],), (direction[k],))
            seen[i] = seen.get(i, False) or any(np.any(t != 0) for t in tangents)
    assert seen
    assert {i for i, is_nonzero in seen.items() if not is_nonzero} == set(row.zero_in) & set(seen)


FLOATING_CONSTANTS = (
    "lu_factor",  # carries no derivative: linear_solve is differentiated in the matrix itself
    "pure_callback",  # raises where a derivative is asked
    "stop_gradient",
)


@pytest.mark.parametrize(
    "row",
    each_row(lambda row: not row.is_differentiable and row.name not in FLOATING_CONSTANTS),
)
def test_results_without_derivative_are_not_floating(row: Row) -> None:
    assert row.primitive.jvp is nondifferentiable
    for sample in row.samples():
        outs = row.apply(sample, *sample.operands)
        assert all(np.asarray(out).dtype.kind in "biu" for out in outs)
