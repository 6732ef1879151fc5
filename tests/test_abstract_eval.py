"""``abstract_eval`` of every primitive tells the shape and dtype of what ``impl`` gives."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.core.dispatch import aval_of, bind
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.errors import FunctransError
from functrans.ir.check import check_jaxpr
from helpers import evaluated
from samples import ROWS, Refused, Row, each_sample

_DTYPES = (np.bool_, np.int32, np.float32, np.float64, np.complex64, np.complex128)


@each(("row", "label"), each_sample(), by="row")
def test_aval_is_that_of_the_result(row: Row, label: str) -> None:
    sample = row.sample(label)
    outs = evaluated(row, sample)
    avals = row.primitive.abstract_eval(*map(aval_of, sample.operands), **sample.params)
    assert isinstance(avals, tuple)
    assert len(outs) == len(avals)
    for out, aval in zip(outs, avals, strict=True):
        assert aval_of(out).strong() == aval.strong()
        assert aval.weak == (type(out) in (bool, int, float, complex))


@each(("row", "label"), each_sample(), by="row")
def test_aval_does_not_read_values(row: Row, label: str) -> None:
    def outs(sample: Any) -> Any:
        return row.primitive.abstract_eval(*map(aval_of, sample.operands), **sample.params)

    assert outs(row.sample(label)) == outs(row.sample(label, seed=1))


REFUSED = [
    pytest.param(row, refused, id=f"{row.name}-{refused.label}")
    for row in ROWS
    for refused in row.refused
]
REFUSED_BY_AVAL = [case for case in REFUSED if case.values[1].call is None]


def test_there_are_refused_operands() -> None:
    assert len(REFUSED) > 100


@each(("row", "refused"), REFUSED)
def test_wrong_operands_are_refused(row: Row, refused: Refused) -> None:
    def by_aval() -> Any:
        return row.primitive.abstract_eval(*map(aval_of, refused.operands), **refused.params)

    call = refused.call or by_aval
    with pytest.raises(refused.error, match=refused.match):
        call()


@each(("row", "refused"), REFUSED_BY_AVAL)
def test_wrong_operands_are_refused_in_a_program(row: Row, refused: Refused) -> None:
    arrays = [x for x in refused.operands if hasattr(x, "shape")]

    def fun(*traced: Any) -> Any:
        values = iter(traced)
        operands = [next(values) if hasattr(x, "shape") else x for x in refused.operands]
        return bind(row.primitive, *operands, **refused.params)

    with pytest.raises(refused.error, match=refused.match):
        ft.make_jaxpr(fun)(*arrays)


def _in_other_dtypes(row: Row, label: str) -> Iterator[tuple[Any, ...]]:
    """The operands of a sample with each array of them, and then all, in each other dtype."""
    operands = row.sample(label).operands
    arrays = [i for i, x in enumerate(operands) if isinstance(x, np.ndarray)]
    for dtype in _DTYPES:
        for chosen in [arrays, *([i] for i in arrays if len(arrays) > 1)]:
            yield tuple(
                np.real(x).astype(dtype) if i in chosen and x.dtype.kind in "biufc" else x
                for i, x in enumerate(operands)
            )


def _in_other_shapes(row: Row, label: str) -> Iterator[tuple[Any, ...]]:
    """The operands of a sample with each array of them, and then all, in each of other shapes."""
    operands = row.sample(label).operands
    arrays = [i for i, x in enumerate(operands) if isinstance(x, np.ndarray)]
    shapes: set[tuple[int, ...]] = {(), (0,), (1,), (2,), (2, 3)}
    for shape in {operands[i].shape for i in arrays}:
        shapes |= {shape, (*shape, 1), (2, *shape), shape[1:], shape[:-1]}
        shapes |= {(*shape[:k], n, *shape[k + 1 :]) for k in range(len(shape)) for n in (0, 1, 7)}
    for shape in sorted(shapes):
        for chosen in [arrays, *([i] for i in arrays if len(arrays) > 1)]:
            yield tuple(np.resize(x, shape) if i in chosen else x for i, x in enumerate(operands))


_RUNS_PYTHON = ("pure_callback", "linear_call", "external_linear")
_OF_VALUES: dict[str, type[Exception]] = {
    "power": ValueError,  # integers to negative powers
    "torch_power": ValueError,
    "csr_sample": ValueError,  # row pointers that are none
    "riccati": ValueError,  # matrices that are not symmetric
}


@pytest.mark.filterwarnings("ignore")  # of values: NaN, overflow
@each("other", [_in_other_dtypes, _in_other_shapes])
@each(("row", "label"), each_sample(), by="row")
def test_operands_are_refused_or_give_the_aval_told(row: Row, label: str, other: Any) -> None:
    """What programs from elsewhere may contain: a wrong aval would be a wrong memory."""
    primitive, params = row.primitive, row.sample(label).params
    if primitive.name in _RUNS_PYTHON:
        pytest.skip("raises what the user's function raises; files contain none")
    of_values = (FunctransError, IndexError, np.linalg.LinAlgError)
    of_values += (_OF_VALUES.get(primitive.name, FunctransError),)
    for operands in other(row, label):
        avals = list(map(aval_of, operands))
        try:
            outvars = tuple(map(Var, primitive.abstract_eval(*avals, **params)))
            invars = tuple(map(Var, avals))
            equation = Equation(primitive, invars, params, outvars)
            check_jaxpr(Jaxpr((), (), invars, (equation,), outvars))
        except (TypeError, ValueError, IndexError, FunctransError):
            continue
        try:
            outs = bind(primitive, *operands, **params)
        except of_values:
            continue
        for out, var in zip(outs, outvars, strict=True):
            assert aval_of(out).strong() == var.aval.strong(), avals
