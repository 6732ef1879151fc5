"""Objects of user's classes in functions that are traced: operators, methods kept, classes after.

Python asks the right operand first where its class is a subclass of the left one's that has the
reflected method itself; and asks ``__eq__`` of an object before it falls back to identity. Objects
made outside of the function and in it have the same classes there, and those of outside at the end.
"""

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import functrans as ft

OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "and",
             "xor", "or"]  # fmt: skip
COMPARISONS = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def _method(k: float) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return k * self.x + 10.0 * other.x

    return method


class Left:
    """Answers all operators."""

    def __init__(self, x: Any) -> None:
        self.x = x


class Right(Left):
    """Has reflected methods of its own."""


class Heir(Left):
    """Has none of its own."""


class Mixin:
    def __eq__(self, other: object) -> Any:
        return 7.0 * self.x + other.x  # type: ignore[attr-defined]

    def __ne__(self, other: object) -> Any:  # what Python derives asks for a bool
        return 8.0 * self.x + other.x  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


class Mixed(Mixin, Left):
    """Takes the one of the mixin."""


class Reading(Left):
    """Reads attributes in a way of its own."""

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class Other:
    """Of another line of classes, with reflected methods alone."""

    def __init__(self, x: Any) -> None:
        self.x = x


for _i, _name in enumerate(OPERATORS):
    setattr(Left, f"__{_name}__", _method(2.0 + _i))
    setattr(Left, f"__r{_name}__", _method(20.0 + _i))
    setattr(Right, f"__r{_name}__", _method(200.0 + _i))
    setattr(Other, f"__r{_name}__", _method(300.0 + _i))
for _i, _name in enumerate(COMPARISONS):
    setattr(Right, f"__{_name}__", _method(400.0 + _i))
    setattr(Other, f"__{_name}__", _method(500.0 + _i))

CLASSES = [Left, Right, Heir, Mixed, Reading, Other]
OUTSIDE = {cls: (cls(3.0), cls(5.0)) for cls in CLASSES}


@pytest.mark.parametrize(("left", "right"), list(itertools.product(CLASSES, CLASSES)))
@pytest.mark.parametrize("is_outside", list(itertools.product([True, False], [True, False])))
def test_the_same_operand_answers(left: Any, right: Any, is_outside: tuple[bool, bool]) -> None:
    def results(t: Any) -> list[Any]:
        a = OUTSIDE[left][0] if is_outside[0] else left(t * 1.5)
        b = OUTSIDE[right][1] if is_outside[1] else right(t * 2.5)
        found = []
        for name in [*OPERATORS, *COMPARISONS]:
            try:
                value = getattr(operator, name + "_" * (name in ("and", "or")))(a, b)
            except TypeError:
                value = -1.0
            found.append(float(value) if isinstance(value, bool) else value)
        return found

    plain = results(2.0)
    traced = [ft.grad(lambda t, i=i: t * results(t)[i])(2.0) for i in (0, len(plain) - 2)]
    values = ft.jit(lambda t: [t * 0.0 + value for value in results(t)])(2.0)
    assert list(map(float, values)) == list(map(float, plain))
    step = 1e-6
    for i, slope in zip((0, len(plain) - 2), traced, strict=True):
        ends = [(2.0 + s) * results(2.0 + s)[i] for s in (step, -step)]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


class Keeper:
    """Keeps methods of other objects."""

    def __init__(self, call: Any) -> None:
        self.call = call

    def value(self, t: Any) -> Any:
        return self.call(t)


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def times(self, t: Any) -> Any:
        return math.exp(t) * self.factor


KEEPER = Keeper(Scale(3.0).times)
CHAIN = Keeper(Keeper(KEEPER.value).value)


@pytest.mark.parametrize("keeper", [KEEPER, CHAIN])
def test_methods_of_other_objects_are_traced_where_they_are_kept(keeper: Any) -> None:
    expected = keeper.value(0.5)
    assert ft.grad(keeper.value)(0.5) == expected
    assert ft.grad(lambda t: keeper.value(t))(0.5) == expected
    assert ft.grad(lambda t: keeper.call(t))(0.5) == expected


class Hooked:
    """Tells of its subclasses."""

    heirs: list[Any] = []  # noqa: RUF012  # of all of them

    def __init_subclass__(cls, **_: Any) -> None:
        Hooked.heirs.append(cls)


class Told(Hooked):
    def __init__(self, x: Any) -> None:
        self.x = x


class Bare(Told):
    __slots__ = ()


class Listed(list[Any]):
    """A list with attributes."""

    def __init__(self, x: Any) -> None:
        super().__init__([1.0])
        self.x = x


class Partly:
    __slots__ = ("__dict__", "kept")

    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize("cls", [*CLASSES, Told, Bare, Listed, Partly])
def test_objects_that_are_kept_are_of_the_classes_of_outside(cls: Any) -> None:
    heirs = list(Hooked.heirs)
    kept = []

    def f(t: Any) -> Any:
        kept.append(cls(t))
        return kept[-1].x * t, (cls(t), cls.__mro__, cls.__bases__)

    slope, (result, order, bases) = ft.grad(f, has_aux=True)(2.0)
    assert slope == 4.0
    assert type(kept[0]) is type(result) is cls
    assert kept[0].x == 2.0
    assert isinstance(kept[0].x, float)
    if cls not in (Listed, Partly):  # whose twins are subclasses: their memory is laid out by them
        assert order == cls.__mro__
        assert bases == cls.__bases__
        assert all(map(operator.is_, [*order, *bases], [*cls.__mro__, *cls.__bases__]))
    assert Hooked.heirs == heirs
