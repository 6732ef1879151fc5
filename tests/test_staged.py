"""No rule of a primitive asks for values: its program is well formed and computes the same."""

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
from cases import each
from functrans.testing import random_like
from helpers import assert_close, staged
from samples import Row, Sample, each_sample


def _array_positions(sample: Sample) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(sample.operands) if isinstance(x, np.ndarray))


def _of_arrays(row: Row, sample: Sample) -> Callable[..., Any]:
    """The primitive as a function of its arrays."""
    apply, positions, fixed = row.bound(sample), _array_positions(sample), sample.operands

    def fun(*arrays: Any) -> Any:
        operands = list(fixed)
        for i, array in zip(positions, arrays, strict=True):
            operands[i] = array
        return apply(*operands)

    return fun


def _has_derivative(row: Row, sample: Sample) -> bool:
    if row.is_planned:
        return False
    return row.is_differentiable and sample.has_derivative and bool(row.moving(sample))


TRACED = each_sample(lambda row, sample: not row.is_planned and bool(_array_positions(sample)))
DERIVED = each_sample(_has_derivative)


def test_there_are_samples() -> None:
    assert len(TRACED) > 1500
    assert len(DERIVED) > 900


@each(("row", "label"), TRACED, by="row")
def test_program_computes_the_same(row: Row, label: str) -> None:
    sample = row.sample(label)
    positions = _array_positions(sample)
    fun = _of_arrays(row, sample)

    arrays = [sample.operands[i] for i in positions]
    with np.errstate(all=None if sample.is_smooth else "ignore"):
        found, expected = staged(fun)(*arrays), fun(*arrays)
    assert_close(found, tuple(np.asarray(out) for out in expected))
    assert [out.dtype for out in found] == [np.asarray(out).dtype for out in expected]


@each(("row", "label"), TRACED, by="row")
def test_batched_program_computes_the_same(row: Row, label: str) -> None:
    sample, other = row.sample(label), row.sample(label, seed=1)
    positions = _array_positions(sample)
    fun = _of_arrays(row, sample)

    mapped = ft.vmap(fun)
    arrays = [np.stack([sample.operands[i], other.operands[i]]) for i in positions]
    with np.errstate(all="ignore"):
        assert_close(staged(mapped)(*arrays), mapped(*arrays))


@each(("row", "label"), DERIVED, by="row")
def test_program_of_the_pushforward_computes_the_same(
    row: Row, label: str, rng: np.random.Generator
) -> None:
    sample = row.sample(label)
    fun = row.function(sample)
    point = tuple(sample.operands[i] for i in row.moving(sample))
    direction = tuple(row.direction(sample, rng))

    def pushed(xs: Any, ts: Any) -> Any:
        return ft.jvp(fun, xs, ts)

    with np.errstate(all="ignore"):
        assert_close(staged(pushed)(point, direction), pushed(point, direction))


@each(("row", "label"), DERIVED, by="row")
def test_program_of_the_pullback_computes_the_same(
    row: Row, label: str, rng: np.random.Generator
) -> None:
    sample = row.sample(label)
    fun = row.function(sample)
    point = tuple(sample.operands[i] for i in row.moving(sample))
    with np.errstate(all="ignore"):
        cts = tuple(random_like(rng, out) for out in fun(*point))

    def pulled(xs: Any, cts: Any) -> Any:
        return ft.vjp(fun, *xs)[1](cts)

    with np.errstate(all="ignore"):
        assert_close(staged(pulled)(point, cts), pulled(point, cts))


@each(("row", "label"), DERIVED, by="row")
def test_batched_pullback_is_the_loop(row: Row, label: str, rng: np.random.Generator) -> None:
    """The transposes and derivative rules are batched as the primitive is."""
    first, second = row.sample(label), row.sample(label, seed=1)
    moving = row.moving(first)
    # Operands that are no arrays of the derivative stay those of the first sample.
    fun = row.function(first)
    points = [tuple(sample.operands[i] for i in moving) for sample in (first, second)]
    with np.errstate(all="ignore"):
        cts = [tuple(random_like(rng, out) for out in fun(*points[0])) for _ in points]

    def pulled(xs: Any, cts: Any) -> Any:
        return ft.vjp(fun, *xs)[1](cts)

    def stacked(rows: Any) -> Any:
        return tuple(np.stack(column) for column in zip(*rows, strict=True))

    with np.errstate(all="ignore"):
        found = ft.vmap(pulled)(stacked(points), stacked(cts))
        rows = [pulled(xs, own) for xs, own in zip(points, cts, strict=True)]
    assert_close(found, stacked(rows))
