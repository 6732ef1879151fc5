"""A function that is jitted anew at every call is staged once, as long as it means the same."""

import contextvars
import enum
import functools
import gc
import logging
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.flatten_util import ravel_pytree
from functrans.jitted.caches import counted

SPACE = """
import numpy as np
import settings
def note(): ...
def helper(x, power=2): return x ** power * scale
def f(x):
    note()
    return np.sum(helper(x)) * settings.factor + array[0] * kind
"""


class Space:
    """A module with a function ``f`` that counts its runs, whose globals can be changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.settings = types.ModuleType("settings")
        self.settings.factor = 1.0  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "settings", self.settings)
        own: dict[str, Any] = {"__name__": "own", "scale": 1.0, "array": np.ones(2), "kind": 1}
        exec(SPACE, own)
        self.names = own
        self.f = own["f"]
        own["note"] = np.frompyfunc(self.count, 0, 1)  # a ufunc is nothing that may change

    def count(self) -> int:
        self.runs += 1
        return 0


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> Space:
    return Space(monkeypatch)


X = np.array([1.0, 2.0])


def test_jit_of_the_same_function_stages_once(space: Space) -> None:
    for _ in range(3):
        assert ft.jit(space.f)(X) == 6.0
    assert space.runs == 1
    ft.jit(space.f)(np.ones(3))  # another kind of call
    assert ft.jit(space.f, static_argnames=())(X) == 6.0
    assert space.runs == 2
    with ft.config(native=False):  # other settings
        ft.jit(space.f)(X)
    assert space.runs == 3
    ft.clear_caches()
    ft.jit(space.f)(X)
    assert space.runs == 4


def change_global(space: Space) -> None:
    space.names["scale"] = 3.0


def change_type_of_global(space: Space) -> None:
    space.names["kind"] = True


def change_global_of_module(space: Space) -> None:
    space.settings.factor = 3.0  # type: ignore[attr-defined]


def change_helper(space: Space) -> None:
    exec("def helper(x): return 3.0 * x", space.names)


def change_default(space: Space) -> None:
    space.names["helper"].__defaults__ = (3,)


def change_array(space: Space) -> None:
    space.names["array"] = np.array([5.0, 1.0])


def write_to_array(space: Space) -> None:
    space.names["array"][0] = 7.0


def change_large_array(space: Space) -> None:
    space.names["array"] = np.ones(10000)
    ft.jit(space.f)(X)
    space.names["array"][0] = 7.0
    space.runs -= 1


CHANGES = [
    change_global, change_type_of_global, change_global_of_module, change_helper, change_default,
    change_array, write_to_array, change_large_array,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_the_function_refers_to_is_part_of_it(space: Space, change: Any) -> None:
    ft.jit(space.f)(X)
    change(space)
    assert ft.jit(space.f)(X) == space.f(X)
    assert space.runs == 3  # staged, staged again, and called


@pytest.mark.parametrize(
    "value",
    [[2.0], {"a": 2.0}, {2.0}, types.SimpleNamespace(a=2.0)],
    ids=lambda v: type(v).__name__,
)
def test_functions_that_refer_to_what_may_change_share_nothing(value: Any) -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(value)
        return x

    ft.jit(f)(1.0)
    ft.jit(f)(1.0)
    assert len(runs) == 2


def test_programs_do_not_keep_their_function_alive() -> None:
    gc.collect()

    def make() -> Any:
        offset = 1.0

        def f(x: Any) -> Any:
            return x + offset

        for _ in range(2):
            assert ft.jit(f)(1.0) == 2.0
        return weakref.ref(f)

    assert make()() is None


def test_functions_with_equal_code_are_told_apart() -> None:
    for value in (1.0, 2.0, 2, True, -0.0, 0.0):
        f = eval("lambda x: x * value", {"value": value})
        found = ft.jit(f)(np.float32(3.0))
        assert found == f(3.0)
        assert np.signbit(found) == np.signbit(f(3.0))


def test_ways_back_from_equal_vectors_are_equal() -> None:
    runs = []

    @ft.jit
    def f(vector: Any, unravel: Any) -> Any:
        runs.append(1)
        return unravel(vector)["a"]

    step = ft.jit(f.function, static_argnums=1)
    for value in (1.0, 2.0):
        vector, unravel = ravel_pytree({"a": value * np.ones(2), "b": 3.0})
        np.testing.assert_allclose(step(vector, unravel), value)
    assert len(runs) == 1
    other = ravel_pytree({"a": np.ones(2, np.float32), "b": 3.0})[1]
    assert other != unravel
    assert hash(other) != hash(unravel)


# functions of other kinds -----------------------------------------------------------------------

RUNS = np.frompyfunc(lambda _: None, 1, 1)  # replaced by each test
BOX = [2.0]
TABLE = {"weights": np.array([1.0, 2.0]), "names": ("a", {"deep": 3.0})}
FIXED = np.array([5.0, 6.0])
LARGE = np.arange(2000.0)


class Colour(enum.Enum):
    RED = 1.0
    BLUE = 2.0


class Model:
    """An object whose method and call are jitted; it has no hash, and all are equal."""

    scale = 1.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.weights = np.array([1.0, 2.0])
        self.power = 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model)

    @property
    def factor(self) -> float:
        return self.scale

    def loss(self, x: Any) -> Any:
        RUNS(0)
        return np.sum(self.weights * x**self.power) * self.factor

    def __call__(self, x: Any) -> Any:
        return self.loss(x)


@dataclass(frozen=True)
class Scale:
    a: float
    colour: Colour = Colour.RED

    def __call__(self, x: Any) -> Any:
        RUNS(0)
        return self.a * np.sum(x) * self.colour.value


class Slotted:
    __slots__ = ("__weakref__", "a")

    def __init__(self, a: float) -> None:
        self.a = a


def of_box(x: Any) -> Any:
    RUNS(0)
    return np.sum(x) * BOX[0] * TABLE["names"][1]["deep"] * TABLE["weights"][1]


def two(a: Any, x: Any) -> Any:
    RUNS(0)
    return np.sum(a * x)


def of_large(x: Any) -> Any:
    RUNS(0)
    return np.sum(LARGE) * np.sum(x)


def tagged(x: Any) -> Any:
    RUNS(0)
    return np.sum(x) * tagged.scale


tagged.scale = 2.0  # type: ignore[attr-defined]


class Heir(Model):
    """Its call is that of its base."""


def scaled(v: float) -> float:
    return v * BOX[0]


@functools.lru_cache
def remembered(v: float) -> float:
    return v * TABLE["names"][1]["deep"]


MODEL, SLOTTED, HEIR = Model(), Slotted(3.0), Heir()
item = BOX.__getitem__
CONTEXT = contextvars.ContextVar("context", default=2.0)
VECTOR = np.vectorize(scaled, otypes=[float])
LOGGER = logging.getLogger("a test")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As many items as functions ran."""
    counted: list[int] = []
    note = np.frompyfunc(lambda _: counted.append(1), 1, 1)
    monkeypatch.setitem(globals(), "RUNS", note)
    return counted


def closed(value: Any) -> Any:
    def f(x: Any) -> Any:
        RUNS(0)
        return np.sum(x) * value

    return f


ANEW: dict[str, Callable[[], Any]] = {
    "a list and a dict": lambda: ft.jit(of_box)(X),
    "a function with attributes": lambda: ft.jit(tagged)(X),
    "a large array": lambda: ft.jit(of_large)(X),
    "a method": lambda: ft.jit(MODEL.loss)(X),
    "an object": lambda: ft.jit(MODEL)(X),
    "a dataclass": lambda: ft.jit(SCALE)(X),
    "an object with slots": lambda: ft.jit(lambda x: (RUNS(0), x * SLOTTED.a)[1])(X),
    "a lambda": lambda: ft.jit(lambda x: (RUNS(0), np.sum(x * FIXED))[1])(X),
    "a closure": lambda: ft.jit(closed(3.0))(X),
    "a partial": lambda: ft.jit(functools.partial(two, 3.0))(X),
    "a partial of an array": lambda: ft.jit(functools.partial(two, FIXED))(X),
    "grad": lambda: ft.jit(ft.grad(closed(3.0)))(X),
    "grad of a lambda": lambda: ft.jit(ft.grad(lambda x: (RUNS(0), np.sum(x * FIXED))[1]))(X),
    "vmap of grad": lambda: ft.jit(ft.vmap(ft.grad(closed(3.0)), in_axes=0))(X),
    "hessian of a method": lambda: ft.jit(ft.hessian(MODEL.loss))(X),
    "static numbers": lambda: ft.jit(two, static_argnums=0)(3, X),
    "specialised": lambda: ft.jit(of_box, specialize=True)(X),
    "an object whose class inherits its call": lambda: ft.jit(HEIR)(X),
    "a method of a list": lambda: ft.jit(lambda x: (RUNS(0), x * item(0))[1])(X),
    "a context variable": lambda: ft.jit(lambda x: (RUNS(0), x * CONTEXT.get())[1])(X),
    "vectorize": lambda: ft.jit(lambda x: (RUNS(0), x * VECTOR(2.0))[1])(X),
    "a cached function": lambda: ft.jit(lambda x: (RUNS(0), x * remembered(2.0))[1])(X),
    "a logger": lambda: ft.jit(lambda x: (RUNS(0), LOGGER.debug("staged"), 2 * x)[2])(X),
    "within another": lambda: ft.jit(lambda x: ft.jit(two)(3.0, x))(X),
}
SCALE = Scale(2.0, Colour.BLUE)


@pytest.mark.parametrize("name", ANEW)
def test_what_is_written_anew_is_staged_once(name: str, runs: list[int]) -> None:
    found = [ANEW[name]() for _ in range(4)]
    assert len(runs) == 1
    with ft.disable_jit():
        expected = ANEW[name]()
    for value in found:
        np.testing.assert_allclose(value, expected)


def set_item(place: Any, key: Any, value: Any) -> Callable[[], Callable[[], None]]:
    """A change, which gives what undoes it."""

    def change() -> Callable[[], None]:
        old = place[key] if isinstance(key, int) or not hasattr(place, str(key)) else None
        place[key] = value
        return lambda: place.__setitem__(key, old)

    return change


def set_attribute(place: Any, name: str, value: Any) -> Callable[[], Callable[[], None]]:
    def change() -> Callable[[], None]:
        old = getattr(place, name)
        setattr(place, name, value)
        return lambda: setattr(place, name, old)

    return change


CHANGED: dict[str, tuple[str, Callable[[], Callable[[], None]]]] = {
    "item of a list": ("a list and a dict", set_item(BOX, 0, 7.0)),
    "array in a dict": ("a list and a dict", set_item(TABLE["weights"], 1, 7.0)),
    "dict in a tuple in a dict": ("a list and a dict", set_item(TABLE["names"][1], "deep", 7.0)),
    "attribute of a function": ("a function with attributes", set_attribute(tagged, "scale", 7.0)),
    "element of a large array": ("a large array", set_item(LARGE, 7, -1.0)),
    "attribute of an object": ("a method", set_attribute(MODEL, "power", 3)),
    "array of an object": ("a method", set_item(MODEL.weights, 0, 7.0)),
    "another array of an object": ("an object", set_attribute(MODEL, "weights", np.ones(2))),
    "attribute of a class": ("an object", set_attribute(Model, "scale", 7.0)),
    "method of a class": ("an object", set_attribute(Model, "loss", lambda self, x: 5.0 * x[0])),
    "property of a class": ("a method", set_attribute(Model, "factor", 5.0)),
    "slot": ("an object with slots", set_attribute(SLOTTED, "a", 7.0)),
    "captured array": ("a lambda", set_item(FIXED, 0, 7.0)),
    "array of a partial": ("a partial of an array", set_item(FIXED, 0, 7.0)),
    "inherited attribute": (
        "an object whose class inherits its call",
        set_attribute(Model, "scale", 7.0),
    ),
    "list behind a method": ("a method of a list", set_item(BOX, 0, 7.0)),
    "context variable": (
        "a context variable",
        lambda: functools.partial(CONTEXT.reset, CONTEXT.set(7.0)),
    ),
    "what a vectorized function refers to": ("vectorize", set_item(BOX, 0, 7.0)),
    "array under grad": ("grad of a lambda", set_item(FIXED, 0, 7.0)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_changed_is_seen(name: str) -> None:
    call, change = CHANGED[name]
    before = ANEW[call]()
    undo = change()
    try:
        after = ANEW[call]()
        with ft.disable_jit():
            np.testing.assert_allclose(after, ANEW[call]())
    finally:
        undo()
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(ANEW[call](), before)


def test_many_bytes_are_not_compared(runs: list[int]) -> None:
    few, many = [np.ones(60_000)] * 3, [np.ones(60_000) for _ in range(3)]
    for arrays in (few, many):
        for _ in range(2):
            ft.jit(lambda x, arrays=arrays: (RUNS(0), x * arrays[0][0] * len(arrays))[1])(1.0)
    assert len(runs) == 1 + 2


def test_closures_take_turns(runs: list[int]) -> None:
    values = (1.0, 2.0, 2, True, -1.0)
    for _ in range(3):
        for value in values:
            assert ft.jit(closed(value))(X) == 3.0 * value
    assert len(runs) == len(values)


def test_objects_are_told_apart() -> None:
    """Also those that are equal, or have nothing in them, or come where another one was."""

    class Mark:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    marks = [Mark(), Mark()]

    def scaled(mark: Any) -> Any:
        return ft.jit(lambda x: x if mark is marks[0] else 2.0 * x)(1.0)

    assert [scaled(mark) for mark in (*marks, *marks)] == [1.0, 2.0, 1.0, 2.0]
    found = []
    for i in range(30):
        model = Model()
        model.weights = np.full(2, float(i))
        found.append(float(ft.jit(model.loss)(np.ones(2))))
        del model
    assert found == [2.0 * i for i in range(30)]


def test_functions_that_change_or_draw_something_share_nothing(runs: list[int]) -> None:
    counter = [0]

    def counts(x: Any) -> Any:
        counter[0] += 1
        return x * counter[0]

    assert [float(ft.jit(counts)(1.0)) for _ in range(3)] == [1.0, 2.0, 3.0]
    numbers = iter(range(10))
    assert [float(ft.jit(lambda x: x + next(numbers))(0.0)) for _ in range(3)] == [0.0, 1.0, 2.0]
    generator = np.random.default_rng(0)
    assert len({float(ft.jit(lambda x: x + generator.normal())(0.0)) for _ in range(3)}) == 3

    def draws(x: Any) -> Any:
        return x + np.random.normal()  # noqa: NPY002  # the global one

    with pytest.warns(UserWarning, match="global generator"):
        assert len({float(ft.jit(draws)(0.0)) for _ in range(3)}) == 3


class Big:
    """Something that says when it is gone."""

    def __init__(self) -> None:
        self.values = np.ones(3)
        self.fixed = np.ones(3)
        self.fixed.flags.writeable = False

    def method(self, x: Any) -> Any:
        return np.sum(self.values * x)

    def constant(self, x: Any) -> Any:
        return np.sum(self.fixed * x)


def _closed_over(big: Big) -> Any:
    values = big.values
    return lambda x: np.sum(values * x)


def _ruled(big: Big) -> Any:
    @ft.custom_jvp
    def f(x: Any) -> Any:
        return np.sum(big.values * x)

    f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return lambda x: f(x)


HELD: dict[str, Callable[[Big], Any]] = {
    "method": lambda big: big.method,
    "method with a constant": lambda big: big.constant,
    "closure": lambda big: lambda x: np.sum(big.values * x),
    "closure over an array": _closed_over,
    "partial": lambda big: functools.partial(Big.method, big),
    "grad": lambda big: ft.grad(big.method),
    "rule": _ruled,
}


@pytest.mark.parametrize("name", HELD)
def test_nothing_is_kept_alive(name: str) -> None:
    def use() -> tuple[Any, Any]:
        big = Big()
        for _ in range(3):
            ft.jit(HELD[name](big))(np.ones(3))
        return weakref.ref(big), weakref.ref(big.values)

    for reference in use():
        gc.collect()
        assert reference() is None


def test_programs_of_code_that_is_gone_are_few_and_forgotten() -> None:
    with ft.config(native=False):
        for i in range(600):
            exec(f"def f(x): return x + {i}", names := {"np": np})
            ft.jit(names["f"])(1.0)
            assert counted()["programs by code"] <= 512
    ft.clear_caches()
    assert counted()["programs by code"] == 0
    assert counted()["functions with programs"] == 0


def test_a_function_forgets_its_programs(runs: list[int]) -> None:
    for _ in range(2):
        ft.jit(of_box)(X)
        ft.jit(of_box).clear_cache()
    assert len(runs) == 2
