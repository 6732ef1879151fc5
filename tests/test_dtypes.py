"""Dtypes: single precision is kept, Python numbers do not promote, promotion is NumPy's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.testing import random_like
from samples import Row, Sample, each_row, each_sample
from samples.row import HALVED, as_dtype

DOUBLE = ("float64", "complex128")
WIDENING = (
    "cast",  # has the dtype it is told
    "external_linear",  # a user's function, in the dtypes it was traced with
    "kernel",  # a user's function, compiled for the dtypes that it was called with
    "linear_call",  # a user's function, in the dtypes it was traced with
    "lu_factor",  # factors are kept in double precision, as NumPy computes
    "pure_callback",  # has the dtype it is told
    "weaken",  # gives a Python number
)
# Linear algebra without a loop for single precision works in double precision inside.
DOUBLE_INSIDE = ("linear_solve", "eig", "lstsq", "pinv")


def _is_floating(row: Row, sample: Sample) -> bool:
    """Whether all operands are floating arrays or numbers; int64 promotes float32 to float64."""
    kinds = [x.dtype.kind for x in sample.operands if isinstance(x, (np.ndarray, np.generic))]
    is_promoted = row.primitive.elementwise is not None and "i" in kinds and row.name != "ldexp"
    is_fixed = row.name in WIDENING or sample.has_program
    return not is_fixed and not is_promoted and ("f" in kinds or "c" in kinds)


def _has_derivative(row: Row, sample: Sample) -> bool:
    is_derived = row.is_differentiable and sample.has_derivative and bool(row.moving(sample))
    return is_derived and _is_floating(row, sample)


def _single(row: Row, label: str) -> Sample:
    """The sample in single precision."""
    sample = row.sample(label)
    return as_dtype(sample, HALVED, label)


def _dtypes(values: Any) -> list[str]:
    return [np.asarray(value).dtype.name for value in values]


@each(("row", "label"), each_sample(_is_floating), by="row")
def test_value_keeps_single_precision(row: Row, label: str) -> None:
    sample = _single(row, label)
    with np.errstate(all="ignore"):
        outs = row.apply(sample, *sample.operands)
    assert not set(_dtypes(outs)) & set(DOUBLE)


@each(("row", "label"), each_sample(_has_derivative), by="row")
def test_derivatives_keep_single_precision(row: Row, label: str, rng: np.random.Generator) -> None:
    sample = _single(row, label)
    fun = row.function(sample)
    point = tuple(sample.operands[i] for i in row.moving(sample))
    direction = tuple(row.direction(sample, rng))
    with np.errstate(all="ignore"):
        outs, tangents = ft.jvp(fun, point, direction)
        values, pullback = ft.vjp(fun, *point)
        cts = tuple(random_like(rng, out) for out in outs)
        pulled = pullback(cts)
    assert not set(_dtypes(outs)) & set(DOUBLE)
    assert _dtypes(tangents) == _dtypes(values) == _dtypes(outs)
    assert _dtypes(pulled) == _dtypes(point)


def _wide_results(jaxpr: Jaxpr) -> list[str]:
    """Equations that compute in double precision."""
    found = []
    for eqn in jaxpr.eqns:
        avals = [var.aval for var in eqn.outputs]
        if any(aval.dtype.name in DOUBLE and not aval.weak for aval in avals):
            found.append(eqn.primitive.name)
        for sub in subjaxprs(eqn.params):
            found.extend(_wide_results(sub))
    return found


@each(
    ("row", "label"),
    each_sample(lambda row, sample: _has_derivative(row, sample) and row.name not in DOUBLE_INSIDE),
    by="row",
)
def test_derivatives_compute_in_single_precision(
    row: Row, label: str, rng: np.random.Generator
) -> None:
    """No step of a derivative promotes and casts back."""
    sample = _single(row, label)
    fun = row.function(sample)
    point = tuple(sample.operands[i] for i in row.moving(sample))
    with np.errstate(all="ignore"):
        cts = tuple(random_like(rng, out) for out in fun(*point))

    def both(xs: Any, ts: Any, cts: Any) -> Any:
        return ft.jvp(fun, xs, ts)[1], ft.vjp(fun, *xs)[1](cts)

    jaxpr = ft.make_jaxpr(both)(point, point, cts)
    assert _wide_results(jaxpr) == []


@each(("row", "label"), each_sample(lambda row, sample: row.numpy is not None), by="row")
def test_promotion_is_that_of_numpy(row: Row, label: str) -> None:
    sample = row.sample(label)
    with np.errstate(all="ignore"):
        expected = np.asarray(row.numpy(*sample.operands)).dtype
        (out,) = row.apply(sample, *sample.operands)
    assert np.asarray(out).dtype == expected


def _mixes(row: Row) -> bool:
    is_elementwise = row.primitive.elementwise is not None
    return (
        is_elementwise
        and row.name not in ("ldexp",)
        and any(sample.label.startswith("f32_") for sample in row.samples())
    )


@pytest.mark.parametrize("row", each_row(_mixes))
def test_python_numbers_do_not_promote(row: Row) -> None:
    """NEP 50, also when the number is an argument of the program."""
    for template in row.samples():
        if not template.label.startswith("f32_"):
            continue
        sample = row.sample(template.label)
        (out,) = row.apply(sample, *sample.operands)
        expected = np.asarray(out).dtype
        assert expected in (np.dtype(np.float32), np.dtype(bool))

        def fun(*operands: Any, sample: Sample = sample) -> Any:
            return row.apply(sample, *operands)[0]

        jaxpr = ft.make_jaxpr(fun)(*sample.operands)
        assert jaxpr.out_avals[0].dtype == expected
        (again,) = ft.eval_jaxpr(jaxpr, None, *sample.operands)
        assert again.dtype == expected


def test_python_numbers_are_mixed_in_many_rows() -> None:
    assert len(each_row(_mixes)) > 20


@pytest.mark.parametrize("row", each_row(lambda row: row.is_differentiable))
def test_the_cotangent_of_an_integer_is_float0(row: Row) -> None:
    for template in row.samples():
        integral = [
            i for i, x in enumerate(template.operands)
            if isinstance(x, np.ndarray) and x.dtype.kind in "iu"
        ]  # fmt: skip
        if not integral:
            continue
        sample = replace(row.sample(template.label))

        def fun(x: Any, sample: Sample = sample, i: int = integral[0]) -> Any:
            return row.apply(sample, *sample.operands[:i], x, *sample.operands[i + 1 :])

        outs, pullback = ft.vjp(fun, sample.operands[integral[0]])
        cts = [
            np.ones_like(y) if np.result_type(y).kind in "fc" else np.zeros(np.shape(y), ft.float0)
            for y in outs
        ]
        (ct,) = pullback(tuple(cts))
        assert ct.dtype == ft.float0
        assert ct.shape == sample.operands[integral[0]].shape


def _doubles(sample: Sample) -> list[int]:
    return [
        i
        for i, x in enumerate(sample.operands)
        if isinstance(x, np.ndarray) and x.dtype == np.float64
    ]


def _mixes_precision(row: Row, sample: Sample) -> bool:
    is_elementwise = row.primitive.elementwise is not None and row.is_differentiable
    is_plain = sample.label == "same" and sample.is_smooth and row.order >= 2
    return is_elementwise and is_plain and len(_doubles(sample)) > 1


@each(("row", "label"), each_sample(_mixes_precision), by="row")
@each("dtype", [np.float16, np.float32])
def test_derivatives_are_computed_in_the_precision_of_the_result(
    row: Row, label: str, dtype: Any
) -> None:
    """Operands of less precision are widened first, as NumPy widens them for the value."""
    sample = row.sample(label)
    for narrow in _doubles(sample):
        given = list(sample.operands)
        given[narrow] = given[narrow].astype(dtype)
        same = [*given[:narrow], given[narrow].astype(np.float64), *given[narrow + 1 :]]
        for i in set(row.moving(sample)) - {narrow}:
            found = []
            for operands in (given, same):

                def total(x: Any, operands: Any = operands, i: int = i) -> Any:
                    return np.sum(row.apply(sample, *operands[:i], x, *operands[i + 1 :])[0])

                slope = ft.grad(total)
                try:
                    second = ft.grad(lambda x, slope=slope: np.sum(slope(x)))(operands[i])
                except ft.NonDifferentiableError:  # of a function that is a derivative itself
                    second = 0.0
                found.append((slope(operands[i]), second))
            for one, other in zip(*found, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_logarithms_of_small_integers_are_taken_in_the_precision_of_the_result() -> None:
    b = np.array([0.5, 1.5])
    for dtype in (np.int8, np.int16, np.uint8, bool):
        a = np.array([1, 3]).astype(dtype)
        found = ft.grad(lambda b, a=a: np.sum(a**b))(b)
        np.testing.assert_allclose(found, a**b * np.log(a.astype(float)), rtol=1e-15)
