"""Second derivatives: all four nestings of modes agree with differences of the gradient."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.core.primitive import linear
from functrans.testing import central_difference, inner, random_like, tolerance_of
from helpers import assert_close, derivative_tolerance, rounding_of
from samples import Row, Sample, each_row, each_sample


def _is_smooth(row: Row, sample: Sample) -> bool:
    is_derived = row.is_differentiable and sample.has_derivative and bool(row.moving(sample))
    is_curved = sample.is_smooth and row.primitive.jvp is not linear
    return is_derived and is_curved and row.order >= 2


CURVED = each_sample(_is_smooth)


def test_there_are_curved_samples() -> None:
    assert len(CURVED) > 400


class _Case:
    """The Hessian of ``sum(cts * f)`` times a direction, by nested modes."""

    def __init__(self, row: Row, sample: Sample, rng: np.random.Generator) -> None:
        self.fun = row.function(sample)
        self.point = tuple(sample.operands[i] for i in row.moving(sample))
        self.direction = tuple(row.direction(sample, rng))
        self.outs = self.fun(*self.point)
        self.cts = tuple(random_like(rng, out) for out in self.outs)

    def gradient(self, *xs: Any) -> Any:
        return ft.vjp(self.fun, *xs)[1](self.cts)

    def pushed(self, *xs: Any) -> Any:
        return ft.jvp(self.fun, xs, self.direction)[1]

    def forward_over_reverse(self) -> Any:
        return ft.jvp(self.gradient, self.point, self.direction)[1]

    def reverse_over_reverse(self) -> Any:
        return ft.vjp(self.gradient, *self.point)[1](self.direction)

    def reverse_over_forward(self) -> Any:
        return ft.vjp(self.pushed, *self.point)[1](self.cts)

    def forward_over_forward(self) -> Any:
        return ft.jvp(self.pushed, self.point, self.direction)[1]


@each(("row", "label"), CURVED, by="row")
def test_second_derivatives_agree(row: Row, label: str, rng: np.random.Generator) -> None:
    sample = row.sample(label)
    case = _Case(row, sample, rng)
    values = [*case.point, *case.outs]
    step, _ = tolerance_of(values)
    numerical = central_difference(case.gradient, case.point, case.direction, step)
    found = case.forward_over_reverse()
    assert [x.dtype for x in found] == [x.dtype for x in case.point]
    assert_close(found, tuple(numerical), "differences", derivative_tolerance(values, row.fd_scale))
    size = max((float(np.max(np.abs(x), initial=0.0)) for x in found), default=0.0)
    rtol = 100 * rounding_of(*values) * (1 + size)
    for name in ("reverse_over_reverse", "reverse_over_forward"):
        assert_close(getattr(case, name)(), found, name, rtol)
    pushed = case.forward_over_forward()
    scale = sum(float(np.sum(np.abs(a * b))) for a, b in zip(case.cts, pushed, strict=True))
    first, second = inner(case.cts, pushed), inner(found, case.direction)
    assert abs(first - second) <= rtol * (1 + scale)


@pytest.mark.parametrize(
    "row",
    each_row(
        lambda row: row.is_differentiable and row.primitive.jvp is not linear and row.order >= 2
    ),
)
def test_second_derivative_is_zero_where_the_row_says_so_only(
    row: Row, rng: np.random.Generator
) -> None:
    is_curved = False
    for template in row.samples():
        if _is_smooth(row, template):
            case = _Case(row, row.sample(template.label), rng)
            is_curved |= any(np.any(x != 0) for x in case.forward_over_reverse())
    is_constant = all(i in row.zero_in for i in range(len(row.samples()[0].operands)))
    assert is_curved != (row.is_flat or is_constant)
