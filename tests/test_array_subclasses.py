"""Arrays of a subclass (``np.memmap`` is one): every operation takes them for what they hold."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from helpers import evaluated
from samples import Row, each_sample


class Marked(np.ndarray):
    """A subclass without a meaning of its own."""


def _marked(operand: Any) -> Any:
    return operand.view(Marked) if type(operand) is np.ndarray else operand


@each(("row", "label"), each_sample(), by="row")
def test_a_primitive_gives_the_same(row: Row, label: str) -> None:
    expected = evaluated(row, row.sample(label))
    sample = row.sample(label)
    with np.errstate(all="ignore"):
        outs = row.primitive.impl(*map(_marked, sample.operands), **sample.params)
    for out, wanted in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(out), np.asarray(wanted))


INDEX = np.array([0, 0, 2])
USES = {
    "read": lambda x, i: x[i],
    "write": lambda x, i: _written(x, i),
    "add.at": lambda x, i: _by(np.add, x, i),
    "multiply.at": lambda x, i: _by(np.multiply, x, i),
    "maximum.at": lambda x, i: _by(np.maximum, x, i),
    "take": lambda x, i: np.take(x, i),
    "take_along_axis": lambda x, i: np.take_along_axis(x, i, 0),
    "insert": lambda x, i: np.insert(x, i, 7.0),
    "delete": lambda x, i: np.delete(x, i),
    "compress": lambda x, i: np.compress(i > 0, x),
    "mask": lambda x, i: np.where(i > 0, x, x * x),
    "choose": lambda x, i: np.choose(i % 2, (x, x * x)),
    "repeat": lambda x, i: np.repeat(x, i),
    "operand": lambda x, i: x * i + i @ x,
    "bincount": lambda x, i: np.bincount(i, x),
}


def _written(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i] = x
    return y


def _by(ufunc: np.ufunc, x: Any, i: Any) -> Any:
    y = x * 1.0
    ufunc.at(y, i, x)
    return y


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("transform", ["vjp", "jaxpr"])
def test_an_index_or_operand_is_what_it_holds(use: str, transform: str) -> None:
    x = np.array([1.5, -2.5, 0.5])
    expected = USES[use](x, INDEX)
    for index in (INDEX, INDEX.view(Marked)):
        if transform == "vjp":
            got = ft.vjp(lambda x, index=index: USES[use](x, index), x)[0]
        else:
            got = ft.jit(lambda x, index=index: USES[use](x, index))(x)
        np.testing.assert_array_equal(got, expected)
