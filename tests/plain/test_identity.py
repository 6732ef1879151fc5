"""What is the same object outside is the same in functions that are traced, however it is met.

Twins stand for functions, classes, objects and containers of a program. Programs ask for identity
(a sentinel as default), and look functions and classes up in tables.
"""

import collections
import dataclasses
import functools
import itertools
import math
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special
from numpy import ndarray as an_array

import functrans as ft


def user(t: Any) -> Any:
    out = np.zeros(2)
    out[:] = t
    return out.sum()


def user_with_default(t: Any, c: Any = math.exp) -> Any:
    return c(t) * np.ones(1)[0]


def _closed(c: float) -> Any:
    def inner(t: Any) -> Any:
        return math.sin(t) * c

    return inner


closed = _closed(2.0)
bound_partial = functools.partial(user_with_default, c=math.cos)
lambda_function = lambda t: math.tanh(t)  # noqa: E731  # one kind of function


@functools.lru_cache(maxsize=4)
def cached(t: Any) -> Any:
    return math.sqrt(t)


class Thing:
    """A class of a user, whose objects have attributes."""

    def __init__(self, w: float = 2.0) -> None:
        self.w = w

    def method(self, t: Any) -> Any:
        return math.exp(t) * self.w


class Slotted:
    """One with slots."""

    __slots__ = ("w",)

    def __init__(self) -> None:
        self.w = 1.0


@dataclasses.dataclass(frozen=True)
class Record:
    """A frozen dataclass, with equality and hash of its fields."""

    f: Any
    c: float = 1.0


class Pair(NamedTuple):
    """A named tuple."""

    f: Any
    c: float


thing, slotted, record, sentinel = Thing(), Slotted(), Record(user), object()
pair = Pair(user, 2.0)
array = np.arange(3.0)

THINGS: dict[str, Any] = {
    "function": user,
    "function_with_default": user_with_default,
    "closure": closed,
    "lambda": lambda_function,
    "partial": bound_partial,
    "cached": cached,
    "class": Thing,
    "class_with_slots": Slotted,
    "dataclass": Record,
    "object": thing,
    "object_with_slots": slotted,
    "record": record,
    "sentinel": sentinel,
    "named_tuple": pair,
    "function_of_numpy": np.sum,
    "ufunc": np.exp,
    "ufunc_of_scipy": scipy.special.gammaln,
    "function_of_scipy": scipy.special.logsumexp,
    "class_of_numpy": np.ndarray,
    "polynomial": np.polynomial.Polynomial,
    "number_of_numpy": np.float32,
    "math": math.sin,
    "max": max,
    "isinstance": isinstance,
    "map": map,
    "len": len,
    "print": print,
    "float": float,
    "module": math,
    "numpy": np,
    "enum": ft.errors.ShapeError,
    "array": array,
    "text": "text",
}
the = None  # the thing of the case at hand, as a global name


class Holder:
    """Holds the thing as an attribute of the class; ``value`` of the object."""

    kept: Any = None

    def __init__(self) -> None:
        self.value = the

    def default(self, value: Any = None) -> Any:
        return value


def default(value: Any = None) -> Any:
    return value


def keyword(*, value: Any = None) -> Any:
    return value


def attributes() -> None:
    """Has an attribute."""


holder = Holder()
items: list[Any] = []
places: tuple[Any, ...] = ()
table: dict[str, Any] = {}
ordered: Any = None
several: Any = None
closing: Any = None
applied: Any = None
space = types.SimpleNamespace()


def _set(value: Any) -> None:
    """Put a thing everywhere."""
    global the, places, ordered, several, closing, applied, holder
    the = value
    Holder.kept = value
    holder = Holder()
    Holder.default.__defaults__ = default.__defaults__ = (value,)
    keyword.__kwdefaults__ = {"value": value}
    attributes.kept = value  # type: ignore[attr-defined]  # a function's
    items[:] = [None, value]
    places = (value, (value,))
    table.clear()
    table["kept"] = value
    ordered = collections.OrderedDict(kept=value)
    several = collections.deque([value], maxlen=3)
    closing = lambda: value  # noqa: E731  # a closure
    applied = functools.partial(default, value)
    space.kept = value


WAYS: dict[str, Any] = {
    "global": lambda: the,
    "class": lambda: Holder.kept,
    "attribute": lambda: holder.value,
    "default": lambda: default(),
    "default_of_method": lambda: holder.default(),
    "keyword": lambda: keyword(),
    "function": lambda: attributes.kept,  # type: ignore[attr-defined]  # a function's
    "list": lambda: items[1],
    "tuple": lambda: places[0],
    "inner_tuple": lambda: places[1][0],
    "dict": lambda: table["kept"],
    "ordered": lambda: ordered["kept"],
    "deque": lambda: several[0],
    "closure": lambda: closing(),
    "partial": lambda: applied(),
    "namespace": lambda: space.kept,
}
HASHED = [name for name in THINGS if name not in ("array", "object_with_slots")]


@pytest.mark.parametrize("transform", [ft.grad, ft.jit], ids=["grad", "jit"])
@pytest.mark.parametrize("name", THINGS)
def test_the_same_object_is_the_same_in_each_call(name: str, transform: Any) -> None:
    _set(THINGS[name])

    def seen(x: Any) -> Any:
        out = np.zeros(1)
        out[0] = x
        found = [way() for way in WAYS.values()]
        for (a, first), (b, second) in itertools.combinations(zip(WAYS, found, strict=True), 2):
            assert first is second, (a, b)
        return out[0] * 2

    seen(1.0)
    for _ in range(3):
        transform(seen)(1.0)


tables: dict[str, Any] = {}


@pytest.mark.parametrize("transform", [ft.grad, ft.jit], ids=["grad", "jit"])
@pytest.mark.parametrize("name", HASHED)
def test_things_are_found_in_tables(name: str, transform: Any) -> None:
    value = THINGS[name]
    _set(value)
    tables.update(
        dict={value: 3.0},
        pairs={(value, 1): 3.0},
        default=collections.defaultdict(float, {value: 3.0}),
        set={value, 1},
        frozen=frozenset([value]),
        list=[None, value],
        identities={id(value): 3.0},
        named={Pair(value, 1.0): 3.0},
    )

    def seen(x: Any) -> Any:
        out = np.zeros(1)
        out[0] = x
        for way in WAYS.values():
            found = way()
            out[0] += tables["dict"][found] + tables["dict"].get(found, 0.0)
            out[0] += tables["pairs"].get((found, 1), 0.0) + tables["default"][found]
            out[0] += tables["named"].get(Pair(found, 1.0), 0.0)
            out[0] += (found in tables["set"]) + (found in tables["frozen"])
            out[0] += tables["list"].index(found) + (found in tables["list"])
            out[0] += tables["identities"].get(id(found), 0.0)
        return out[0]

    expected = seen(1.0)
    for _ in range(3):
        value_of = transform(lambda x: seen(x) ** 2)(1.0)
        assert value_of == (2 * expected if transform is ft.grad else expected**2)
    assert list(tables["dict"]) == [value]


@pytest.mark.parametrize("kind", ["dict", "default", "ordered", "set", "list", "deque"])
def test_what_is_written_to_tables_of_functions_stays(kind: str) -> None:
    """Under the functions, classes and objects themselves."""
    made: Any = {
        "dict": lambda: {user: 1, Thing: thing, "x": user},
        "default": lambda: collections.defaultdict(list, {user: [user]}),
        "ordered": lambda: collections.OrderedDict([(user, 1), (thing, user)]),
        "set": lambda: {user, Thing, thing},
        "list": lambda: [user, thing],
        "deque": lambda: collections.deque([user, thing], maxlen=3),
    }[kind]

    def write(x: Any) -> Any:
        out = np.zeros(1)
        out[0] = x
        kept = tables["kept"]
        if isinstance(kept, dict):
            kept[math.exp] = Thing
            kept[user] = np.exp
            if kind == "default":
                kept[thing].append(user)
        elif kind == "set":
            kept.add(math.exp)
            kept.discard(Thing)
        else:
            kept.append(Thing)
            kept.append(closed)
        return out[0] * 2

    tables["kept"] = made()
    write(1.0)
    expected = tables["kept"]
    tables["kept"] = made()
    kept = tables["kept"]
    ft.grad(write)(1.0)
    assert tables["kept"] is kept
    assert kept == expected
    assert type(kept) is type(expected)
    if isinstance(kept, dict):
        pairs = zip(kept.items(), expected.items(), strict=True)
        assert all(a is b for x, y in pairs for a, b in zip(x, y, strict=True) if callable(b))


class Wrapped:
    """Answers NumPy's functions by their identity."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        args = tuple([x.a if isinstance(x, Wrapped) else x for x in args])
        scale = {np.multiply: 10.0, np.add: 3.0}.get(ufunc, 1.0)
        return Wrapped(getattr(ufunc, method)(*args, **kwargs) * scale)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return args[0].a.sum() * (7.0 if function is np.sum else 1.0)


@pytest.mark.parametrize("transform", [ft.grad, ft.jit], ids=["grad", "jit"])
def test_numpy_asks_classes_by_the_names_of_its_functions(transform: Any) -> None:
    def f(x: Any) -> Any:
        total = np.multiply(Wrapped(x), 2.0).a.sum() + np.add(Wrapped(x), x).a.sum()
        return total + np.sum(Wrapped(x)) + np.exp(Wrapped(x)).a.sum()

    x = np.array([1.0, 2.0])
    expected = 20 + 6 + 7 + np.exp(x) if transform is ft.grad else f(x)
    for _ in range(2):
        np.testing.assert_allclose(transform(f)(x), expected)


def _chosen(x: Any, how: Any = max) -> Any:
    return how(x[0], x[1]) * (2.0 if how is max else 5.0)


def test_functions_of_python_trace_wherever_they_are_met() -> None:
    by_name = {"max": max, "min": min}

    def f(x: Any) -> Any:
        return _chosen(x) + _chosen(x, min) + _chosen(x, by_name["max"]) + sum(map(abs, x))

    x = np.array([1.0, 1.0])
    for transform in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(transform(f)(x), [1 + 2.5 + 1 + 1] * 2)


def _by_class(x: Any) -> Any:
    match x:
        case float(a):
            return a * 2.0
        case np.floating():
            return x * 3.0
        case np.ndarray():
            return np.sum(x) * 5.0
        case Thing(w=w):
            return w * 7.0
        case [float(), np.float64() | int(), *rest]:
            return x[0] * 11.0 + len(rest)
        case {"p": np.ndarray() as a, "q": float(b)}:
            return np.sum(a) * b
        case complex() | bool() | int():
            return x * 13.0
        case _:
            return x * 17.0


@pytest.mark.parametrize("make", [
    lambda x: float(x), lambda x: x, lambda x: np.array([x, x]), lambda x: Thing(x),
    lambda x: Thing(float(x)), lambda x: [float(x), np.sin(x), 1.0], lambda x: [float(x), 3],
    lambda x: {"p": np.array([x, 1.0]), "q": float(x)}, lambda x: np.sum(np.array([x, x])),
    lambda x: complex(x), lambda x: x > 0, lambda x: bool(x > 0),
])  # fmt: skip
def test_class_patterns_take_traced_values_for_those_of_their_classes(make: Any) -> None:
    def f(x: Any) -> Any:
        return np.real(_by_class(make(x))) * 1.0

    for start in (1.5, np.float64(1.5)):
        expected = f(start)
        value, slope = ft.value_and_grad(f)(start)
        assert value == expected
        np.testing.assert_allclose(slope, (f(start + 1e-3) - f(start - 1e-3)) / 2e-3, 1e-5, 1e-9)
        try:
            compiled = ft.jit(f)(start)
        except ft.errors.ConcretizationError:  # bool(x > 0)
            continue
        assert compiled == expected


def test_class_patterns_of_imported_names() -> None:
    def f(x: Any) -> Any:
        match x:
            case an_array():
                return x.sum() * 2
            case _:
                return x.sum() * 3

    assert f(np.ones(2)) == 4.0
    np.testing.assert_array_equal(ft.grad(f)(np.ones(2)), [2.0, 2.0])
