"""Transposes and pullbacks are adjoint to what they transpose.

The pairing is ``Re sum(a * b)``, without conjugation; for complex cotangents ``ct`` and ``1j * ct``
together give the whole complex equation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans import lax
from functrans.core.avals import Zero, is_differentiable_dtype
from functrans.core.dispatch import aval_of
from functrans.core.primitive import LinearOperand, linear, multilinear
from functrans.testing import inner, random_like
from helpers import rounding_of
from samples import Row, Sample, each_row, each_sample


def _out_avals(row: Row, sample: Sample) -> Any:
    return row.primitive.abstract_eval(*map(aval_of, sample.operands), **sample.params)


def _is_linear(row: Row, sample: Sample) -> bool:
    if row.primitive.transpose is None or not row.linear_sets(sample) or not sample.is_smooth:
        return False
    return all(is_differentiable_dtype(aval.dtype) for aval in _out_avals(row, sample))


def _has_pullback(row: Row, sample: Sample) -> bool:
    return row.is_differentiable and sample.has_derivative and bool(row.moving(sample))


LINEAR = each_sample(_is_linear)
SEVERAL = each_sample(
    lambda row, sample: _is_linear(row, sample) and len(_out_avals(row, sample)) > 1
)
PULLED = each_sample(_has_pullback)


def test_there_are_samples() -> None:
    assert len(LINEAR) > 300
    assert len(SEVERAL) > 10
    assert len(PULLED) > 900


def _assert_same(first: float, second: float, values: Sequence[Any], scale: float) -> None:
    assert np.isfinite(first)
    assert abs(first - second) <= 20 * rounding_of(*values) * (1 + scale), (first, second)


@each(("row", "label"), LINEAR, by="row")
def test_transpose_is_adjoint(row: Row, label: str, rng: np.random.Generator) -> None:
    """``<t(ct), x> == <ct, f(x) - f(0)>``, the other operands held constant."""
    sample = row.sample(label)
    avals = [aval_of(operand) for operand in sample.operands]
    for positions in row.linear_sets(sample):
        xs = {i: random_like(rng, sample.operands[i]) for i in positions}
        at_x = row.apply(sample, *(xs.get(i, x) for i, x in enumerate(sample.operands)))
        at_zero = row.apply(
            sample, *(x * 0 if i in positions else x for i, x in enumerate(sample.operands))
        )
        outs = [out - zero for out, zero in zip(at_x, at_zero, strict=True)]
        operands = [
            LinearOperand(avals[i]) if i in positions else x for i, x in enumerate(sample.operands)
        ]
        for factor in (1, 1j):
            cts = [random_like(rng, out) for out in outs]
            cts = [ct * ct.dtype.type(factor) if ct.dtype.kind == "c" else ct for ct in cts]
            pulled = row.primitive.transpose(tuple(cts), operands, **sample.params)  # type: ignore[misc]  # LINEAR
            assert [aval_of(ct) if ct is not None else None for ct in pulled] == [
                aval if i in positions else None for i, aval in enumerate(avals)
            ]
            found = [pulled[i] for i in positions]
            scale = sum(float(np.sum(np.abs(out * ct))) for out, ct in zip(outs, cts, strict=True))
            _assert_same(
                inner(found, [xs[i] for i in positions]), inner(cts, outs), [*cts, *found], scale
            )


@each(("row", "label"), SEVERAL, by="row")
def test_transpose_accepts_symbolic_zeros(row: Row, label: str, rng: np.random.Generator) -> None:
    """With several results, any cotangent but one may be ``Zero``."""
    sample = row.sample(label)
    positions = row.linear_sets(sample)[0]
    outs = row.apply(sample, *sample.operands)
    operands = [
        LinearOperand(aval_of(x)) if i in positions else x for i, x in enumerate(sample.operands)
    ]
    cts = [random_like(rng, out) for out in outs]
    total = [np.zeros(np.shape(sample.operands[i])) for i in positions]
    assert row.primitive.transpose is not None
    for k in range(len(outs)):
        sparse = tuple(
            ct if i == k else Zero(aval_of(outs[i]))  # type: ignore[arg-type]  # arrays only
            for i, ct in enumerate(cts)
        )
        pulled = row.primitive.transpose(sparse, operands, **sample.params)
        total = [have + pulled[i] for have, i in zip(total, positions, strict=True)]
    together = row.primitive.transpose(tuple(cts), operands, **sample.params)
    for have, i in zip(total, positions, strict=True):
        np.testing.assert_allclose(have, together[i], rtol=1e-6, atol=1e-6)


@each(("row", "label"), PULLED, by="row")
def test_pullback_is_adjoint_to_pushforward(row: Row, label: str, rng: np.random.Generator) -> None:
    """Also at kinks, where the two must choose the same derivative."""
    sample = row.sample(label)
    fun = row.function(sample)
    point = [sample.operands[i] for i in row.moving(sample)]
    direction = row.direction(sample, rng)
    with np.errstate(all="ignore"):
        outs, tangents = ft.jvp(fun, tuple(point), tuple(direction))
        values, pullback = ft.vjp(fun, *point)
    assert all(np.shape(out) == np.shape(value) for out, value in zip(outs, values, strict=True))
    cts = [random_like(rng, out) for out in outs]
    for k in (None, *range(len(cts) if len(cts) > 1 else 0)):
        some = tuple(ct if k in (None, i) else ct * 0 for i, ct in enumerate(cts))
        with np.errstate(all="ignore"):
            pulled = pullback(some)
        for ct, x in zip(pulled, point, strict=True):
            assert aval_of(ct) == aval_of(x)
        pushed = inner(some, tangents)
        scale = sum(float(np.sum(np.abs(t * ct))) for t, ct in zip(tangents, some, strict=True))
        _assert_same(inner(pulled, direction), pushed, [*outs, *pulled], scale)


@pytest.mark.parametrize("row", each_row(lambda row: row.primitive.transpose is not None))
def test_rows_name_linear_operands(row: Row) -> None:
    is_marked = row.primitive.jvp in (linear, multilinear)
    is_call = row.samples()[0].expected is not None  # as linear as its program is
    if not is_marked and row.primitive.elementwise is None and not is_call:
        assert row.linear_in


@pytest.mark.parametrize(
    "row", each_row(lambda row: row.primitive.elementwise is not None and row.is_differentiable)
)
def test_transpose_in_a_nonlinear_operand_is_refused(row: Row) -> None:
    """A partial derivative that reads its own operand or the result is not linear."""
    family = row.primitive.elementwise
    assert family is not None
    sample = row.samples()[0]
    n = len(sample.operands)
    for i, (partial, saves) in enumerate(zip(family.partials, family.saves, strict=True)):
        if partial is None or not saves & (1 << i | 1 << n):
            continue
        assert (i,) not in row.linear_in
        operands = [
            LinearOperand(aval_of(x)) if k == i else x for k, x in enumerate(sample.operands)
        ]
        ct = np.ones(np.shape(row.apply(sample, *sample.operands)[0]))
        with pytest.raises(TypeError, match="not linear"):
            row.primitive.transpose((ct,), operands)  # type: ignore[misc]  # the row has one


# programs of which a part is linear ---------------------------------------------------------------


def _choice(p: Any, x: Any) -> Any:
    a, b = lax.cond(p > 0, lambda: (np.exp(p), 2.0 * x), lambda: (p, x))
    return a * b


def _choice_that_reads_less(p: Any, x: Any) -> Any:
    a = lax.cond(p > 0, lambda p, x: np.exp(p), lambda p, x: p, p, x)
    return a * x


def _nested_choices(p: Any, x: Any) -> Any:
    def inner(p: Any, x: Any) -> Any:
        return lax.cond(p > 0.1, lambda p, x: (np.sin(p), x * p), lambda p, x: (p, x), p, x)

    a, b = lax.cond(p > 0, inner, lambda p, x: (p, x * 3.0), p, x)
    return a * b + a * x


def _switch(p: Any, x: Any) -> Any:
    branches = [lambda p, x: (p, x), lambda p, x: (p * p, x * p), lambda p, x: (1.0 + p, -x)]
    a, b = lax.switch(1, branches, p, x)
    c, d = lax.switch(np.asarray(p > 0).astype(int) + 1, branches, p, x)
    return a * b + c * d


def _scan(p: Any, x: Any) -> Any:
    (a, b), ys = lax.scan(
        lambda c, t: ((c[0] * t, c[1] + t * x), c[0]), (p, 0.0 * x), np.arange(1.0, 4.0)
    )
    return a * b + np.sum(ys) * x


@pytest.mark.parametrize("f", [_choice, _choice_that_reads_less, _nested_choices, _switch, _scan])
def test_results_that_are_not_linear_may_multiply_those_that_are(f: Any) -> None:
    for p in (0.7, 0.05, -0.4):
        slope = float(f(p, 1.0))
        for at in (p, np.float64(p)):
            (pulled,) = ft.linear_transpose(lambda x, p=at: f(p, x), 1.0)(1.0)
            np.testing.assert_allclose(pulled, slope, 1e-14)

        def pulled_in(p: Any) -> Any:
            return ft.linear_transpose(lambda x: f(p, x), 1.0)(1.0)[0]

        np.testing.assert_allclose(ft.jit(pulled_in)(p), slope, 1e-14)
        near = (f(p + 1e-6, 1.0) - f(p - 1e-6, 1.0)) / 2e-6
        np.testing.assert_allclose(ft.grad(pulled_in)(p), near, 1e-8, 1e-9)
        np.testing.assert_allclose(ft.jit(ft.grad(pulled_in))(p), near, 1e-8, 1e-9)
