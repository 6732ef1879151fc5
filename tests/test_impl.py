"""``impl`` of every primitive computes what its definition says, and leaves operands alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases import each
from functrans.core.dispatch import aval_of
from functrans.passes.apart import axis_maps
from helpers import ROUNDING, evaluated
from samples import ROWS, Row, each_sample


def test_every_row_has_samples() -> None:
    assert len(ROWS) > 100
    for row in ROWS:
        labels = [sample.label for sample in row.samples()]
        assert len(labels) >= 3, row.name
        assert len(set(labels)) == len(labels), row.name
        has_expected = all(sample.expected is not None for sample in row.samples())
        definitions = row.reference is not None, row.residuals is not None, has_expected
        assert sum(definitions) == 1, row.name


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@each(("row", "label"), each_sample(), by="row")
def test_impl_computes_its_definition(row: Row, label: str) -> None:
    sample = row.sample(label)
    outs = evaluated(row, sample)
    assert isinstance(outs, tuple)
    coarse = max((ROUNDING.get(np.asarray(out).dtype.name, 0.0) for out in outs), default=0.0)
    rtol = 0.0 if row.rtol == 0 else max(row.rtol, coarse)
    with np.errstate(all="ignore"):
        if row.residuals is not None:
            found = _results(row.residuals(outs, *sample.operands, **sample.params))
            expected = tuple(np.zeros(np.shape(residual)) for residual in found)
        else:
            found = outs
            expected = sample.expected or _results(
                row.reference(*sample.operands, **sample.params)  # type: ignore[misc]  # tested above
            )
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@each(("row", "label"), each_sample(), by="row")
def test_impl_leaves_operands_alone(row: Row, label: str) -> None:
    sample, same = row.sample(label), row.sample(label)
    outs = evaluated(row, sample)
    for operand, copy in zip(sample.operands, same.operands, strict=True):
        assert np.asarray(operand).tobytes() == np.asarray(copy).tobytes()
    # Read-only operands are accepted, and give the same results.
    for operand in same.operands:
        if isinstance(operand, np.ndarray):
            operand.flags.writeable = False
    again = evaluated(row, same)
    for one, other in zip(outs, again, strict=True):
        np.testing.assert_array_equal(one, other)


@each(("row", "label"), each_sample(), by="row")
def test_impl_accepts_other_layouts(row: Row, label: str) -> None:
    sample = row.sample(label)
    outs = evaluated(row, sample)
    strided = [
        _strided(operand) if isinstance(operand, np.ndarray) else operand
        for operand in sample.operands
    ]
    again = evaluated(row, replace(sample, operands=tuple(strided)))
    for one, other in zip(outs, again, strict=True):
        rtol = ROUNDING.get(np.asarray(one).dtype.name, 0.0)
        np.testing.assert_allclose(other, one, rtol=rtol, atol=rtol)


def _strided(x: np.ndarray) -> np.ndarray:
    """The same values in Fortran order, with gaps and a negative stride."""
    wide = np.empty(tuple(2 * n for n in x.shape), x.dtype, order="F")
    view = wide[tuple(slice(None, None, -2) for _ in x.shape)] if x.ndim else wide
    view[...] = x
    return view


@each(("row", "label"), each_sample(lambda row, _: row.primitive.memory == "own"), by="row")
def test_results_lie_in_memory_of_their_own_if_the_record_says_so(row: Row, label: str) -> None:
    sample = row.sample(label)
    outs = evaluated(row, sample)
    for i, out in enumerate(outs):
        for other in (*sample.operands, *outs[:i]):
            if isinstance(out, np.ndarray) and isinstance(other, np.ndarray):
                assert not np.may_share_memory(out, other)


@each(("row", "label"), each_sample(lambda row, _: row.primitive.expression is not None), by="row")
def test_expression_does_what_impl_does(row: Row, label: str) -> None:
    sample = row.sample(label)
    (x,) = map(np.asarray, sample.operands)
    params = dict(sample.params)
    found = row.primitive.expression(aval_of(x), **params)  # type: ignore[misc]  # it has one
    if found is None or not x.shape:
        return
    text, values = found
    names = [f"k{i}" for i in range(len(values))]
    result = eval(text.format("x", *names), {"x": x, **dict(zip(names, values, strict=True))})
    (expected,) = row.primitive.impl(x, **params)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@each(("row", "label"), each_sample(lambda row, _: not row.primitive.holds_programs), by="row")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elements_are_apart_along_the_axes_that_the_record_says(row: Row, label: str) -> None:
    """One slice of the operands is replaced by another one: so is that of the results alone."""
    sample = row.sample(label)
    operands = list(sample.operands)
    outs = [np.asarray(out) for out in evaluated(row, sample)]
    avals = list(map(aval_of, operands))
    maps = axis_maps(row.primitive, avals, list(map(aval_of, outs)), dict(sample.params))
    for k in {k for own in maps for k in own if k is not None}:
        changed = list(operands)
        for i, (x, own) in enumerate(zip(operands, maps, strict=True)):
            if k in own and np.shape(x)[own.index(k)] > 1:
                changed[i] = np.array(x)
                lanes = np.moveaxis(changed[i], own.index(k), 0)
                lanes[0] = lanes[1]
        again = evaluated(row, replace(sample, operands=tuple(changed)))
        for one, other in zip(outs, again, strict=True):
            rest = (slice(None),) * k + (slice(1, None),)
            np.testing.assert_array_equal(np.asarray(other)[rest], one[rest])
