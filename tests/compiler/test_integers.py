"""Python's integers of any size as operands: NumPy's number, or its error, however a program runs.

NumPy refuses integers that the dtype does not have; compares them by value; and takes them modulo
two to the number of bits in ``where``.
"""

import itertools

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.core.dispatch import bind
from functrans.core.lowering import Pointwise
from samples import ROWS

# their operands are floats, or words: NumPy's functions take integers, staging does not
INSIDE = {
    "mul_strong_zero", "multiply_add", "sigmoid_slope", "sigmoid_tilt", "tanh_slope",
    "threefry2x32",
}  # fmt: skip


def binary_and_more():
    """Elementwise primitives of several operands, with the parameters of a sample."""
    for row in ROWS:
        sample = next(iter(row.samples()))
        is_elementwise = isinstance(row.primitive.lower, Pointwise)
        if is_elementwise and len(sample.operands) > 1 and row.primitive.name not in INSIDE:
            yield row.primitive, len(sample.operands), sample.params


def outcome(function, args):
    """Results, or the class of the exception."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except (OverflowError, TypeError, ValueError) as error:
        return next(c for c in (OverflowError, TypeError, ValueError) if isinstance(error, c))


def same(found, expected):
    """Whether both are the same exception, or results alike."""
    if isinstance(found, type) or isinstance(expected, type):
        return found is expected
    return all(
        x.dtype == y.dtype and np.allclose(x, y, rtol=1e-6, equal_nan=True)
        for x, y in zip(map(np.asarray, found), map(np.asarray, expected), strict=True)
    )


@each("primitive, count, params", list(binary_and_more()), ids=lambda value: str(value))
@pytest.mark.filterwarnings("ignore")  # what cannot be compiled is said, and interpreted
def test_integers_that_do_not_fit(primitive, count, params):
    wrong = []
    for dtype, number, place in itertools.product(
        ("u1", "i4", "u8", "f8", "?"), (-1, 300, -(2**31) - 1, 2**64, 2**1100), range(count)
    ):
        if primitive.name == "where" and place == 0:
            continue
        if primitive.name == "clip" and place == 0:
            continue  # a number between arrays: NumPy's result has another dtype than staging's
        args = [np.array([0, 1, 1], dtype) for _ in range(count)]
        if primitive.name == "where":
            args[0] = np.array([True, False, True])
        del args[place]

        def function(*args, number=number, place=place):
            return bind(primitive, *args[:place], number, *args[place:], **params)

        expected = outcome(function, args)
        for options in ({}, {"native": False}, {"compiler_math": True}):
            with ft.config(**options):
                found = outcome(ft.jit(function), args)
            if not same(found, expected):
                wrong.append((dtype, number, place, options, found, expected))
    assert not wrong, wrong[0]


def test_where_takes_integers_as_numpy_does():
    flags, x = np.array([True, False]), np.array([7, 9], np.uint8)
    np.testing.assert_array_equal(ft.jit(lambda c, x: np.where(c, x, -1))(flags, x), [7, 255])
