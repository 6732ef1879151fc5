"""Numbers of Python, NumPy's numbers and arrays without axes: each keeps its own rules.

A table of operations is applied to a Python float, to what ``float`` and indexing give, and to an
array without axes, and is compared with plain Python: value and derivative are those, or the error
says what to do; it is never another number.
"""

import functools
import logging
import math
import numbers
import operator
import statistics
from collections.abc import Callable, Hashable, Iterable, Sized
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import ConcretizationError

Function = Callable[[Any], Any]

NUMBERS: dict[str, tuple[Function, Any]] = {
    "Python float": (lambda x: x, 0.7),
    "float of an item": (lambda x: float(x[0]), np.array([0.7, 1.2])),
    "item of an array": (lambda x: x[0], np.array([0.7, 1.2])),
    ".item()": (lambda x: x.item(1), np.array([1.2, 0.7])),
    ".tolist()": (lambda x: x.tolist()[0], np.array([0.7, 1.2])),
    "value of math": (lambda x: math.sqrt(x) ** 2, 0.7),
}
"""How a number comes to be, and of what argument."""


def _slope(f: Function, x: Any) -> Any:
    h = 1e-6
    if np.ndim(x) == 0:
        return (f(x + h) - f(x - h)) / (2 * h)
    steps = h * np.eye(len(x))
    return np.array([(f(x + step) - f(x - step)) / (2 * h) for step in steps])


def check(f: Function, x: Any) -> None:
    """Value and derivative under all transforms against plain Python."""
    expected, slope = f(x), _slope(f, x)
    np.testing.assert_allclose(ft.jit(f)(x), expected, 1e-12)
    np.testing.assert_allclose(ft.jit(f, specialize=True)(x), expected, 1e-12)
    np.testing.assert_allclose(ft.grad(f)(x), slope, 1e-6, 1e-8)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(x), slope, 1e-6, 1e-8)
    one = np.ones_like(x)[()]
    np.testing.assert_allclose(ft.jvp(f, (x,), (one,))[1], np.sum(slope), 1e-6, 1e-8)
    np.testing.assert_allclose(ft.jacfwd(f)(x), slope, 1e-6, 1e-8)


# truths -------------------------------------------------------------------------------------------

TRUTHS: dict[str, Function] = {
    "sum": lambda v: (v > 0) + (v > 0.5),
    "sum of three": lambda v: sum([v > 0, v > 0.1, v < 0.2]),
    "with an integer": lambda v: 3 + (v > 0) * 2,
    "product": lambda v: (v > 0) * (v < 5) + (v > 0.1),
    "quotient": lambda v: (v > 0) / 2 + (v > 0) / (v < 1),
    "power": lambda v: (v > 0) ** 2 + (v > 1) ** (v > 2),
    "and": lambda v: ((v > 0) & (v < 1)) + (v > 0.5),
    "or": lambda v: ((v > 2) | (v < 1)) + (v > 0.5),
    "xor": lambda v: ((v > 0) ^ (v > 1)) + (v > 0.5),
    "of truths": lambda v: ((v > 0) == (v < 1)) + (v > 0.5),
    "of numpy": lambda v: np.add(np.greater(v, 0), np.less(v, 1)),
    "logical": lambda v: np.logical_and(v > 0, v < 1) + np.logical_or(v > 0, v > 1),
    "chosen": lambda v: np.where(v > 0, 2.0, 3.0),
}
OF_PYTHON: dict[str, Function] = {
    "difference": lambda v: (v > 0) - (v < 0),
    "negative": lambda v: -(v > 0),
    "positive": lambda v: +(v > 0) + (v > 0.1),
    "magnitude": lambda v: abs(v > 0) + (v > 0.1),
    "inverse": lambda v: ~(v > 0),
    "whole quotient": lambda v: (v > 0) // (v < 1) + (v > 0.5),
    "remainder": lambda v: (v < 0) % (v > 0) + (v > 0.5),
    "shift": lambda v: (v > 0) << (v > 0.5),
}
"""What NumPy's truths refuse, or warn of."""


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", TRUTHS)
def test_truths_count_as_in_python(name: str, kind: str) -> None:
    make, x = NUMBERS[kind]
    check(lambda x: make(x) * TRUTHS[name](make(x)), x)


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind != "item of an array"])
@pytest.mark.parametrize("name", OF_PYTHON)
def test_truths_of_python_are_integers(name: str, kind: str) -> None:
    make, x = NUMBERS[kind]
    check(lambda x: make(x) * OF_PYTHON[name](make(x)), x)


@pytest.mark.parametrize("operation", [operator.sub, operator.neg])
def test_truths_of_numpy_are_refused_as_by_numpy(operation: Any) -> None:
    def f(x: Any) -> Any:
        truth = x[0] > 0
        return x[0] * (operation(truth) if operation is operator.neg else operation(truth, truth))

    x = np.array([0.7])
    for call in (f, ft.grad(f), ft.jit(f)):
        with pytest.raises(TypeError, match="boolean"):
            call(x)


def test_truths_of_python_in_a_batch_and_in_a_loop() -> None:
    def f(x: Any) -> Any:
        v = float(x[0])
        return x[0] * ((v > 0) + (v > 0.5))

    rows = np.array([[0.7], [0.2], [-1.0]])
    expected = [f(row) for row in rows]
    np.testing.assert_allclose(ft.vmap(f)(rows), expected)
    np.testing.assert_allclose(ft.jit(ft.vmap(f))(rows), expected)
    np.testing.assert_allclose(ft.lax.map(f, rows), expected)


# errors of Python ---------------------------------------------------------------------------------

RAISING: dict[str, tuple[Function, float]] = {
    "sqrt": (lambda v: math.sqrt(v), -0.7),
    "log": (lambda v: math.log(v), -0.7),
    "log of zero": (lambda v: math.log(v - 0.7), 0.7),
    "log with a base": (lambda v: math.log(v, 10), -0.7),
    "log10": (lambda v: math.log10(v), -0.7),
    "log1p": (lambda v: math.log1p(v), -1.7),
    "acos": (lambda v: math.acos(v), 1.7),
    "asin": (lambda v: math.asin(v), 1.7),
    "acosh": (lambda v: math.acosh(v), 0.7),
    "atanh": (lambda v: math.atanh(v), 1.7),
    "gamma": (lambda v: math.gamma(v), 400.7),
    "gamma at a pole": (lambda v: math.gamma(v - 1.7), 0.7),
    "exp": (lambda v: math.exp(v), 1e3),
    "expm1": (lambda v: math.expm1(v), 1e3),
    "sinh": (lambda v: math.sinh(v), 1e3),
    "pow": (lambda v: math.pow(v, 0.5), -0.7),
    "pow overflows": (lambda v: math.pow(v, 400), 1e3),
    "fmod": (lambda v: math.fmod(v, v - v), 0.7),
}
OPERATORS: dict[str, tuple[Function, float]] = {
    "division": (lambda v: 1 / (v - v), 0.7),
    "division of a number": (lambda v: v / (v - 0.7), 0.7),
    "whole division": (lambda v: v // (v - v), 0.7),
    "remainder": (lambda v: v % (v - v), 0.7),
    "divmod": (lambda v: divmod(v, v - v)[1], 0.7),
    "power overflows": (lambda v: v**400.0, 1e3),
    "power of a number overflows": (lambda v: 10.0**v, 1e3),
    "power of zero": (lambda v: (v - v) ** -1, 0.7),
}
OF_PYTHON_NUMBERS: dict[str, Function] = {
    "Python float": lambda x: x,
    "float": lambda x: float(x),
    "float of an item": lambda x: float(np.array([x, 1.0])[0]),
}
_ERRORS = (ValueError, OverflowError, ZeroDivisionError)


def _caught(operation: Function, make: Function) -> Function:
    def f(x: Any) -> Any:
        try:
            return operation(make(x))
        except ValueError:
            return 5 * x
        except OverflowError:
            return 6 * x
        except ZeroDivisionError:
            return 7 * x

    return f


@pytest.mark.parametrize("kind", OF_PYTHON_NUMBERS)
@pytest.mark.parametrize("name", [*RAISING, *OPERATORS])
def test_errors_of_python_happen_where_values_are_known(name: str, kind: str) -> None:
    operation, x = {**RAISING, **OPERATORS}[name]
    f = _caught(operation, OF_PYTHON_NUMBERS[kind])
    factor = round(f(x) / x)
    assert factor in (5, 6, 7)
    assert ft.grad(f)(x) == factor
    assert ft.jvp(f, (x,), (1.0,)) == (f(x), factor)
    assert ft.grad(lambda t: ft.grad(f)(t) * t)(x) == factor
    with pytest.raises(_ERRORS) as of_python:
        operation(x)
    with np.errstate(all="ignore"):
        if name in OPERATORS:  # nothing would catch it
            assert not np.isfinite(ft.jvp(operation, (x,), (1.0,))[0])
            return
    with pytest.raises(type(of_python.value)) as of_ours:
        ft.grad(operation)(x)
    assert str(of_ours.value) == str(of_python.value)


@pytest.mark.parametrize("name", RAISING)
def test_errors_of_math_happen_on_paths_that_catch_them(name: str) -> None:
    operation, x = RAISING[name]
    f = _caught(operation, lambda x: x)
    assert ft.jit(f, specialize=True)(x) == f(x)
    assert ft.jit(ft.grad(f), specialize=True)(x) == round(f(x) / x)


@pytest.mark.parametrize("name", RAISING)
def test_math_gives_nan_or_infinity_where_values_are_not_known(name: str) -> None:
    operation, x = RAISING[name]
    assert not np.isfinite(ft.jit(_caught(operation, lambda x: x))(x))


@pytest.mark.parametrize("form", [lambda x: x, lambda x: x[:3], lambda x: x.tolist(), list, tuple])
@pytest.mark.parametrize(
    "name",
    ["mean", "fmean", "median", "variance", "pvariance", "stdev", "pstdev", "geometric_mean"],
)
def test_statistics_take_arrays_and_lists(name: str, form: Any) -> None:
    x = np.array([0.7, 1.9, 1.3, 0.4])
    function = getattr(statistics, name)

    def f(x: Any) -> Any:
        return function(form(x))

    value, slope = ft.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), 1e-12)
    steps = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(slope, steps, 1e-6, 1e-8)
    np.testing.assert_allclose(ft.jit(f)(x), f(x), 1e-12)


def test_items_of_arrays_divide_as_in_numpy() -> None:
    def f(x: Any) -> Any:
        try:
            return x[0] / (x[0] - x[0])
        except ZeroDivisionError:
            return 5 * x[0]

    with np.errstate(all="ignore"):
        assert ft.jvp(f, (np.array([0.7]),), (np.ones(1),))[0] == np.inf


def test_rules_are_not_stopped_by_errors_of_python() -> None:
    assert ft.grad(lambda x: x**0.5)(0.0) == np.inf
    with np.errstate(all="ignore"):
        assert ft.grad(lambda x: np.divide(1.0, x))(0.0) == -np.inf


# questions for the class --------------------------------------------------------------------------


@functools.singledispatch
def _weight(value: Any) -> float:
    return 1.0


@_weight.register(float)
def _(value: float) -> float:
    return 2.0 * value


@_weight.register(np.ndarray)
def _(value: np.ndarray) -> float:
    return 3.0 * float(np.sum(value))


@_weight.register(np.float32)
def _(value: Any) -> float:
    return 4.0


class _Weights:
    @functools.singledispatchmethod
    def weight(self, value: Any) -> float:
        return 1.0

    @weight.register(float)
    def _(self, value: float) -> float:
        return 2.0 * value

    @weight.register(np.ndarray)
    def _(self, value: np.ndarray) -> float:
        return 3.0 * float(np.sum(value))


KINDS: dict[str, tuple[Function, Any]] = {
    **NUMBERS,
    "array": (lambda x: x, np.array([0.7, 1.2])),
    "array without axes": (lambda x: np.array(x[0]), np.array([0.7, 1.2])),
    "number as array": (lambda x: np.asarray(x), 0.7),
    "single precision": (lambda x: x[0], np.array([0.7, 1.2], np.float32)),
}
BY_CLASS = {float: 2, np.float64: 3, np.ndarray: 4}

QUESTIONS: dict[str, Function] = {
    "isscalar": lambda v: np.isscalar(v),
    "has a length": lambda v: hasattr(v, "__len__") + 2 * hasattr(v, "__iter__"),
    "has a shape": lambda v: hasattr(v, "shape") + 2 * hasattr(v, "dtype"),
    "attribute with a default": lambda v: getattr(v, "ndim", 7),
    "Iterable": lambda v: isinstance(v, Iterable),
    "Sized": lambda v: isinstance(v, Sized),
    "Hashable": lambda v: isinstance(v, Hashable),
    "Real": lambda v: isinstance(v, numbers.Real) + 2 * isinstance(v, numbers.Number),
    "isinstance of float": lambda v: isinstance(v, float) + 2 * isinstance(v, (int, float)),
    "isinstance of a union": lambda v: isinstance(v, int | float),
    "isinstance of floating": lambda v: isinstance(v, np.floating) + 2 * isinstance(v, np.generic),
    "isinstance of ndarray": lambda v: isinstance(v, np.ndarray),
    "type is float": lambda v: (type(v) is float) + 2 * (type(v) == float),  # noqa: E721  # asked
    "type is ndarray": lambda v: (type(v) is np.ndarray) + 2 * (type(v) is np.float64),
    "type among": lambda v: type(v) in (float, np.float64),
    "type as key": lambda v: BY_CLASS.get(type(v), 5),
    "subclass": lambda v: issubclass(type(v), float),
    "name of the type": lambda v: len(type(v).__name__),
    "dispatch": lambda v: _weight(v),
    "dispatch of a method": lambda v: _Weights().weight(v),
    "callable": lambda v: callable(v),
}
OF_NUMBERS: dict[str, Function] = {
    "round": lambda v: round(3 * v) + 2 * isinstance(round(v), int),
    "round to digits": lambda v: round(v, 1),
    "magnitude": lambda v: (abs(v) > 0) + (abs(v) > 0.1),
    "extreme": lambda v: (max(v, 0.1) > 0) + (min(v, 9.0) > 0.1),
    "is_integer": lambda v: 1 + v.is_integer(),
}


def _asked(question: Function, make: Function) -> Function:
    return lambda x: np.sum(x) * (1 + question(make(x)))


def _check_same(f: Function, x: Any, tolerance: float) -> None:
    expected = f(x)
    ones = np.ones_like(x) if np.ndim(x) else 1.0
    slope = (f(x + 1e-3 * ones) - f(x - 1e-3 * ones)) / 2e-3
    np.testing.assert_allclose(ft.jit(f)(x), expected, tolerance)
    np.testing.assert_allclose(ft.jit(f, specialize=True)(x), expected, tolerance)
    value, gradient = ft.value_and_grad(f)(x)
    np.testing.assert_allclose(value, expected, tolerance)
    np.testing.assert_allclose(np.sum(gradient), slope, max(tolerance * 1e4, 1e-8))
    value, tangent = ft.jvp(f, (x,), (ones,))
    np.testing.assert_allclose(value, expected, tolerance)
    np.testing.assert_allclose(tangent, slope, max(tolerance * 1e4, 1e-8))


@each("kind", KINDS, by="kind")
@each("name", QUESTIONS)
def test_questions_for_the_class_have_the_answers_of_the_value(name: str, kind: str) -> None:
    make, x = KINDS[kind]
    _check_same(_asked(QUESTIONS[name], make), x, 1e-6 if kind == "single precision" else 1e-12)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_answer_as_numbers(name: str, kind: str) -> None:
    make, x = NUMBERS[kind]
    _check_same(_asked(OF_NUMBERS[name], make), x, 1e-12)


def test_a_number_made_an_array_is_written_to_alone() -> None:
    def f(x: Any) -> Any:
        y = np.asarray(x)
        y += 1
        return x * y

    np.testing.assert_allclose(ft.grad(f)(0.7), 2.4)
    np.testing.assert_allclose(ft.jit(f)(0.7), f(0.7))


# texts, keys, integers ----------------------------------------------------------------------------

TEXTS: dict[str, Function] = {
    "str": lambda v: str(v),
    "repr": lambda v: repr(v),
    "str of a list": lambda v: str([v, (v, 1)]),
    "f-string": lambda v: f"{v}",
    "f-string with str": lambda v: f"{v!s}",
    "f-string with a form": lambda v: f"{v:.3f}",
    "format": lambda v: "{} {}".format(v, 1),  # noqa: UP032  # asked
    "percent s": lambda v: "%s" % v,  # noqa: UP031  # asked
    "percent g": lambda v: "%g %s" % (v, 1),  # noqa: UP031  # asked
    "percent f": lambda v: "%.3f" % v,  # noqa: UP031  # asked
}


@pytest.mark.parametrize("kind", [*NUMBERS, "array without axes"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_those_of_the_number_where_it_is_known(name: str, kind: str) -> None:
    make, x = KINDS[kind]
    texts: list[str] = []

    def f(x: Any) -> Any:
        number = math.exp(float(make(x) * 0)) * make(x)  # in a twin
        texts.append(TEXTS[name](number if kind != "array without axes" else make(x)))
        return np.sum(x)

    f(x)
    ft.grad(f)(x)
    ft.jvp(f, (x,), (np.ones_like(x)[()],))
    assert texts[1:] == texts[:1] * 2
    for call in (ft.jit(f), ft.jit(f, specialize=True)):
        with pytest.raises(ConcretizationError, match="format"):
            call(x)


def test_printing_shows_traced_values(capsys: Any) -> None:
    def f(x: Any) -> Any:
        print(x, math.sin(x), "text", sep="|")
        return x

    ft.jit(f)(0.7)
    assert capsys.readouterr().out == "Traced<f64*[]>|Traced<f64*[]>|text\n"
    ft.grad(f)(0.7)
    assert capsys.readouterr().out == f"0.7|{math.sin(0.7)}|text\n"


def test_messages_of_logging_have_the_number(caplog: Any) -> None:
    def f(x: Any) -> Any:
        logging.getLogger("numbers").warning("%.2f and %g and %s", x, 2 * x, x)
        return x

    ft.grad(f)(0.7)
    assert caplog.messages == ["0.70 and 1.4 and 0.7"]


INTEGERS: dict[str, Function] = {
    "index": lambda v: [3.0, 5.0, 7.0][round(v)],
    "length": lambda v: np.zeros(round(3 * v)).size,
    "factorial": lambda v: math.factorial(round(3 * v)),
    "range": lambda v: sum(range(round(4 * v))),
    "key": lambda v: {0: 3.0, 1: 5.0}[round(v)],
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", INTEGERS)
def test_rounded_numbers_are_integers(name: str, kind: str) -> None:
    make, x = NUMBERS[kind]
    f = _asked(INTEGERS[name], make)
    np.testing.assert_allclose(ft.grad(f)(x), np.full_like(x, f(x) / np.sum(x)))
    with pytest.raises((ConcretizationError, TypeError), match=r"index|key"):
        ft.jit(f)(x)
    if name != "key":
        np.testing.assert_allclose(ft.jit(f, specialize=True)(x), f(x))


REFUSED: dict[str, Function] = {
    "key": lambda v: {0.7: 2.0}.get(v, 3.0),
    "set": lambda v: len({v, 1.0}),
    "tuple as key": lambda v: {(0.7,): 2.0}.get((v,), 3.0),
    "ratio": lambda v: v.as_integer_ratio()[0],
}


@pytest.mark.parametrize("transform", [ft.grad, ft.jit])
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_would_lose_the_derivative_is_refused(name: str, kind: str, transform: Any) -> None:
    make, x = NUMBERS[kind]
    expected = r"unhashable.*derivatives" if name != "ratio" else r"as_integer_ratio\(\)"
    with pytest.raises((TypeError, ConcretizationError), match=expected):
        transform(_asked(REFUSED[name], make))(x)
