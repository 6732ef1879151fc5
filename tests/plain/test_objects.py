"""Objects of user's classes in functions that are traced: operators, methods kept, classes after.

Python asks the right operand first where its class is a subclass of the left one's that has the
reflected method itself; and asks ``__eq__`` of an object before it falls back to identity. Objects
made outside of the function and in it have the same classes there, and those of outside at the end.
"""

import abc
import collections
import dataclasses
import functools
import itertools
import math
import operator
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
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


# slots --------------------------------------------------------------------------------------------


class Body:
    """What the classes below can do."""

    __slots__ = ()

    def energy(self: Any, t: Any) -> Any:
        return math.exp(t) * self.mass + self.weights @ (self.weights * t)

    def keep(self: Any, t: Any) -> Any:
        self.state = math.sin(t) * self.mass
        self.history.append(self.state)
        return self.state

    def forget(self: Any, t: Any) -> Any:
        del self.state
        return t * self.mass


def _fill(self: Any) -> None:
    self.mass, self.state, self.history = 2.0, 0.0, []
    self.weights, self.other = np.array([1.0, 2.0]), None


class Slots(Body):
    __slots__ = ("__weakref__", "history", "mass", "other", "state", "weights")
    __init__ = _fill


class SlotsAndDict(Body):
    __slots__ = ("__dict__", "mass", "state")
    __init__ = _fill


class DictOfHeir(Slots):
    """Has a dictionary beside the slots of its base."""


class HeirWithSlots(SlotsAndDict):
    __slots__ = ("history",)


@dataclasses.dataclass(slots=True, eq=False)
class SlotsOfFields(Body):
    mass: float = 2.0
    state: Any = 0.0
    history: list[Any] = dataclasses.field(default_factory=list)
    weights: Any = dataclasses.field(default_factory=lambda: np.array([1.0, 2.0]))
    other: Any = None


class Dict(Body):
    __init__ = _fill


BODIES = [Dict, Slots, SlotsAndDict, DictOfHeir, HeirWithSlots, SlotsOfFields]


@pytest.mark.parametrize("transform", ["grad", "jvp", "jit of grad", "grad of grad"])
@pytest.mark.parametrize("way", ["global", "attribute", "item", "made"])
@pytest.mark.parametrize("cls", BODIES)
def test_objects_with_slots_are_as_others(cls: Any, way: str, transform: str) -> None:
    body, holder, made = cls(), cls(), []
    holder.other = body

    def f(t: Any) -> Any:
        ways = {"global": lambda: body, "attribute": lambda: holder.other, "made": cls}
        ways["item"] = lambda: [{"a": holder.other}][0]["a"]
        own = ways[way]()
        made.append(own)
        assert type(own) is cls
        assert isinstance(own, Body)
        assert way == "made" or (own is body and own == body)
        return own.energy(t) + own.keep(t) ** 2

    slope = 2.0 * math.exp(0.5) + 5.0 + 4.0 * math.sin(1.0)
    match transform:
        case "grad":
            found = ft.grad(f)(0.5)
        case "jvp":
            found = ft.jvp(f, (0.5,), (1.0,))[1]
        case "jit of grad":
            found = ft.jit(ft.grad(f))(0.5)
        case _:
            slope = 2.0 * math.exp(0.5) + 8.0 * math.cos(1.0)
            found = ft.grad(ft.grad(f))(0.5)
    np.testing.assert_allclose(found, slope, rtol=1e-14)
    (own,) = made
    assert type(own) is cls
    assert way == "made" or own is body
    if transform != "jit of grad":  # values are not known there
        state = 2.0 * math.sin(0.5)
        assert type(own.state) is type(own.history[0]) is float
        assert (own.state, own.history) == (state, [state])
        assert own.energy(0.5) == pytest.approx(2.0 * math.exp(0.5) + 2.5)


@pytest.mark.parametrize("cls", BODIES)
def test_slots_that_are_deleted_or_written_before_an_error(cls: Any) -> None:
    body = cls()
    assert ft.grad(lambda t: math.exp(t) * 0.0 + body.forget(t))(0.5) == 2.0
    assert not hasattr(body, "state")

    def fails(t: Any) -> Any:
        body.keep(t)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ft.grad(fails)(0.5)
    assert body.state == 2.0 * math.sin(0.5)
    assert type(body.state) is float
    assert type(body.weights) is np.ndarray


def test_chains_of_objects_with_slots() -> None:
    first: Any = None
    for _ in range(5000):
        body = Slots()
        body.other, first = first, body

    def total(t: Any) -> Any:
        result, body = 0.0, first
        while body is not None:
            body.state = math.exp(t)
            result, body = result + body.state, body.other
        return result

    assert ft.grad(total)(0.0) == 5000.0
    assert type(first.state) is type(first.other.other.state) is float


# subclasses of containers -------------------------------------------------------------------------


class Table(dict[Any, Any]):
    def put(self, value: Any) -> None:
        self["k"] = value


class Series(list[Any]):
    def put(self, value: Any) -> None:
        self.append(value)


class Bag(set[Any]):
    def put(self, value: Any) -> None:
        self.add(Scale(value))  # traced numbers have no hash


class Ordered(collections.OrderedDict[Any, Any]):
    def put(self, value: Any) -> None:
        self["k"] = value


class Lists(collections.defaultdict[Any, Any]):
    def __init__(self) -> None:
        super().__init__(list)

    def put(self, value: Any) -> None:
        self["k"].append(value)
        self["k"] = self["k"][0]


class Recent(collections.deque[Any]):
    def __init__(self) -> None:
        super().__init__([], 1)

    def put(self, value: Any) -> None:
        self.append(0.0)
        self.append(value)


class Careful(Table):
    """Says how it is written to."""

    n_writes = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        self.n_writes += 1
        super().__setitem__(key, value)

    def items(self) -> Any:
        raise AssertionError


class Record(Table):
    def put(self, value: Any) -> None:
        super().put(value)
        self.last = value


@pytest.mark.parametrize("way", ["outside", "in a list", "made", "made and kept in one"])
@pytest.mark.parametrize("cls", [Table, Series, Bag, Ordered, Lists, Recent, Careful, Record])
def test_items_of_subclasses_of_containers_are_given_back(cls: Any, way: str) -> None:
    outside, kept = cls(), []
    holder = [outside]

    def f(t: Any) -> Any:
        own = {"outside": lambda: outside, "in a list": lambda: holder[0]}.get(way, cls)()
        own.put(math.exp(t))
        if way == "made and kept in one":
            other = Series()
            other.put(own)
            kept.append(other)
        kept.append(own)
        return math.exp(t)

    assert ft.grad(f)(0.5) == math.exp(0.5)
    own = kept[-1]
    assert type(own) is cls
    (item,) = own.values() if isinstance(own, dict) else own
    item = item.factor if cls is Bag else item
    assert type(item) is float
    assert item == math.exp(0.5)
    assert cls is not Careful or own.n_writes == 1
    assert cls is not Recent or own.maxlen == 1
    assert cls is not Record or type(own.last) is float
    assert way == "made" or len(kept) == 1 or kept[0][0] is own
    assert way not in ("outside", "in a list") or own is outside


def test_methods_of_containers_compute_with_items_that_are_twins() -> None:
    table, first = Table(a=2.0, b=[1.0, 2.0]), Series([3.0, 4.0])
    table["self"], table["series"] = table, first

    def f(t: Any) -> Any:
        assert table["self"] is table
        assert table["series"] is first
        table["b"].append(t)
        first[0] = math.cosh(t)
        return math.exp(t) * table["a"] + sum(math.sin(x) for x in table["b"]) + first[0]

    expected = 2.0 * math.exp(0.5) + math.cos(0.5) + math.sinh(0.5)
    assert ft.grad(f)(0.5) == pytest.approx(expected, rel=1e-14)
    assert table["b"] == [1.0, 2.0, 0.5]
    assert list(map(type, table["b"])) == [float] * 3
    assert first == [math.cosh(0.5), 4.0]
    assert table["self"] is table


class Weights(dict[Any, Any]):
    def total(self, t: Any) -> Any:
        return math.exp(t) * self["a"]


def test_functions_that_only_call_methods_of_containers_are_traced() -> None:
    weights = Weights(a=2.0)
    assert ft.grad(lambda t: weights.total(t))(0.5) == 2.0 * math.exp(0.5)
    assert ft.grad(weights.total)(0.5) == 2.0 * math.exp(0.5)


T = TypeVar("T")


class HasHook:
    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)


class Called:
    """What the classes below have in common; without a say in how objects lie in memory."""

    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return self.w * x  # type: ignore[attr-defined]


class Asked(Protocol[T]):
    def __call__(self, x: T) -> T: ...


def _set(self: Any, w: float) -> None:
    self.w = w


def _hooked_classes() -> list[type]:
    """Classes over ``typing.Generic`` and others with a hook for subclasses."""
    call: Any = {"__module__": __name__, "__call__": Called.__call__, "__init__": _set}

    def make(name: str, *bases: Any, **members: object) -> Any:
        return types.new_class(name, bases, {}, lambda names: names.update(call, **members))

    generic = make("Plain", Generic[T])
    slots = make("Slots", Generic[T], __slots__=("w",))

    @dataclasses.dataclass(slots=True, frozen=True)
    class Frozen(Called, Generic[T]):
        w: T

    @dataclasses.dataclass
    class Data(Called, Generic[T]):
        w: T

    class Row(NamedTuple, Generic[T]):
        w: T

        def __call__(self, x: Any) -> Any:
            return self.w * x

    class Small:
        __slots__ = ("__weakref__",)

        def __init_subclass__(cls) -> None: ...

    return [
        generic, slots, Frozen, Data, Row,
        make("Over", generic[int]), make("OverOver", make("Over", generic[T])[int]),
        make("First", Generic[T], HasHook), make("Second", HasHook, Generic[T]),
        make("Abstract", abc.ABC, Generic[T]),
        make("OverAbstract", make("Abstract", abc.ABC, Generic[T])[int]),
        make("Kept", Asked[T]), make("OverSlots", slots[int]), make("OfTwo", slots[int], HasHook),
        make("OfTwoOthers", HasHook, slots[int]), make("OfGenerics", generic[int], Data[int]),
        make("OverSmall", Small), make("Table", dict, Generic[T]),
    ]  # fmt: skip


@pytest.mark.parametrize("cls", _hooked_classes(), ids=lambda cls: cls.__name__)
def test_a_hook_for_subclasses_is_no_matter_wherever_it_comes_from(cls: Any) -> None:
    """Objects of outside, and those that are made in the function."""
    x = np.array([1.0, 3.0])
    outside = cls(2.0)
    for function in (outside, lambda x: outside(x), lambda x: cls(2.0)(x)):
        np.testing.assert_array_equal(ft.jit(function)(x), 2.0 * x)
        np.testing.assert_array_equal(ft.vmap(function)(x), 2.0 * x)
        assert ft.grad(function)(3.0) == 2.0
        assert ft.hessian(function)(3.0) == 0.0


@pytest.mark.parametrize("kind", [KeyError, ValueError, RuntimeError, TypeError, OSError])
def test_getattr_may_raise_anything(kind: type[Exception]) -> None:
    """An attribute that functrans asks for, and that an object cannot give, is one it has not."""

    class Strict:
        def __init__(self, w: float) -> None:
            self.w = w

        def __getattr__(self, name: str) -> Any:
            raise kind(name)

        def __call__(self, x: Any) -> Any:
            return self.w * x

        def method(self, x: Any) -> Any:
            return self(x)

    strict = Strict(2.0)
    functions: list[Callable[[Any], Any]] = [
        strict,
        strict.method,
        lambda x: strict(x),
        functools.partial(lambda o, x: o(x), strict),
        ft.custom_jvp(strict),
        ft.checkpoint(strict),
    ]
    functions[4].defjvp(lambda primals, tangents: (strict(*primals), strict(*tangents)))  # type: ignore[attr-defined]
    for function in functions:
        assert ft.jit(function)(3.0) == 6.0
        assert ft.grad(function)(3.0) == 2.0
        assert ft.jit(ft.grad(function))(3.0) == 2.0
        assert ft.jvp(function, (3.0,), (1.0,)) == (6.0, 2.0)
        np.testing.assert_array_equal(ft.vmap(function)(np.ones(2)), [2.0, 2.0])
    for call in (lambda: ft.jit(lambda o: 1.0)(strict), lambda: ft.jit(lambda x: strict)(1.0)):
        with pytest.raises(ft.errors.UnsupportedOperationError, match="Strict"):
            call()


class Ratio(Fraction):
    """An object whose attributes lie in the slots of a library's class."""

    def of(self, x: Any) -> Any:
        values = np.zeros(2)
        values[0] = x * self.numerator
        values[1] = x / self.denominator
        return values.sum()


def test_attributes_may_lie_in_slots_of_a_librarys_class() -> None:
    ratio = Ratio(3, 4)
    assert ft.grad(lambda x: ratio.of(x))(2.0) == 3.25
    assert ft.grad(ratio.of)(2.0) == 3.25
