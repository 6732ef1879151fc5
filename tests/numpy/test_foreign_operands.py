"""Operators between traced arrays and arrays of other libraries, which have the word (NEP 13)."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft

VALUES = np.array([2.0, 3.0, 5.0])


class Labelled(np.lib.mixins.NDArrayOperatorsMixin):
    """An array with a label, with operators made of ``__array_ufunc__``."""

    def __init__(self, data: Any, label: str = "a") -> None:
        self.data = data
        self.label = label

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise AssertionError("converted to a plain array")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.data if isinstance(x, Labelled) else x for x in inputs]
        return Labelled(getattr(ufunc, method)(*plain, **kwargs), self.label)


class Closed:
    """An array that takes no part in ufuncs, but has operators of its own."""

    __array_ufunc__ = None

    def __rmul__(self, other: Any) -> Any:
        return other * VALUES

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise AssertionError("converted to a plain array")


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
    operator.floordiv, operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
    operator.ne,
]  # fmt: skip
UFUNCS = [np.add, np.multiply, np.arctan2, np.maximum, np.hypot, np.less]


@pytest.mark.parametrize("function", [*OPERATORS, *UFUNCS], ids=lambda f: f.__name__)
@pytest.mark.parametrize("outer", [ft.jit, lambda f: lambda x: ft.jvp(f, (x,), (x,))[0]])
def test_foreign_arrays_answer_on_both_sides(function: Callable[..., Any], outer: Any) -> None:
    x = np.array([1.5, 3.0, -2.0])
    for call in (lambda x, y: function(x, y), lambda x, y: function(y, x)):
        result = call(x, Labelled(VALUES))
        assert isinstance(result, Labelled)

        def traced(x: Any) -> Any:
            found = call(x, Labelled(VALUES, "b"))  # noqa: B023  # called here
            assert isinstance(found, Labelled)
            assert found.label == "b"
            return found.data

        np.testing.assert_allclose(outer(traced)(x), result.data)


def test_matrix_products_and_augmented_assignments_ask_them_too() -> None:
    def product(x: Any) -> Any:
        return (x @ Labelled(VALUES)).data

    np.testing.assert_allclose(ft.grad(product)(np.ones(3)), VALUES)

    def augmented(x: Any) -> Any:
        x *= Labelled(VALUES)
        return np.sum(x.data)

    np.testing.assert_allclose(ft.grad(augmented)(np.ones(3)), VALUES)


def test_arrays_without_ufuncs_are_asked_by_their_own_operators() -> None:
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(x * Closed()))(np.ones(3)), VALUES)
    with pytest.raises(TypeError, match="unsupported operand"):
        ft.grad(lambda x: np.sum(x + Closed()))(np.ones(3))
