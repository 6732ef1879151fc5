"""Programs whose results depend on what they keep: registries, tables, hooks, caches.

Each is run three times in a state of its own, plain and under each transform: values, derivatives
and the state afterwards are the same.
"""

import abc
import collections
import copy
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft

PROGRAMS: dict[str, Callable[[], tuple[Any, Any]]] = {}
"""What makes a function of a number, and what gives the state that it has left."""


def program(make: Callable[[], tuple[Any, Any]]) -> Callable[[], tuple[Any, Any]]:
    PROGRAMS[make.__name__] = make
    return make


class Node:
    """A node of a graph."""

    def __init__(self, w: float = 1.0, parent: Any = None) -> None:
        self.w, self.parent, self.children = w, parent, []

    def call(self, x: Any) -> Any:
        return math.sin(x) * self.w


class Leaf(Node):
    """Another kind of node."""

    def call(self, x: Any) -> Any:
        return math.cos(x) * self.w


def sine(x: Any) -> Any:
    return math.sin(float(x))


def cosine(x: Any) -> Any:
    return math.cos(float(x))


@program
def constants_of_a_class() -> Any:
    class Color:
        def __init__(self, fn: Any) -> None:
            self.fn = fn

        def apply(self, x: Any) -> Any:
            return self.fn(x) * (2.0 if self is Color.RED else 1.0)

    Color.RED = Color(math.sin)  # type: ignore[attr-defined]  # set on it
    color = Color.RED  # type: ignore[attr-defined]  # set on it
    return lambda x: color.apply(x) * (10.0 if color is Color.RED else 1.0), lambda: None  # type: ignore[attr-defined]  # set on it


@program
def hooks_as_default() -> Any:
    hooks: list[Any] = []

    def second(x: Any) -> Any:
        return math.cos(x)

    def first(x: Any, known: Any = hooks) -> Any:
        return math.sin(x) * len(known)

    hooks.append(first)

    def f(x: Any) -> Any:
        hooks.append(second)
        return first(x)

    return f, lambda: [h.__name__ for h in hooks]


@program
def methods_as_subscribers() -> Any:
    node, subscribers = Node(2.0), []  # type: ignore[var-annotated]  # of any items

    def f(x: Any) -> Any:
        if node.call not in subscribers:
            subscribers.append(node.call)
        return sum(call(x) for call in subscribers)

    return f, lambda: (len(subscribers), subscribers[0] == node.call)


@program
def visits_in_empty_containers() -> Any:
    node, order, by, seen, ring = Node(), [], {}, set(), collections.deque(maxlen=2)  # type: ignore[var-annotated]  # of any items

    def f(x: Any) -> Any:
        order.append(node)
        by[type(node)] = by.get(type(node), 0) + 1
        seen.add(Node)
        ring.append(sine)
        by[sine] = np.exp
        return node.call(x) * len(order) * by[Node]

    def state() -> Any:
        return (
            all(x is node for x in order), len(order), by[Node], list(by) == [Node, sine],
            by[sine] is np.exp, seen == {Node}, ring[-1] is sine,
        )  # fmt: skip

    return f, state


@program
def visits_in_attributes() -> Any:
    class Visitor:
        def __init__(self) -> None:
            self.by: dict[Any, int] = {}
            self.last: Any = None

        def visit(self, node: Any, x: Any) -> Any:
            self.by[type(node)] = self.by.get(type(node), 0) + 1
            self.by[node] = self.by.get(node, 0) + 1
            self.last = node.call
            return node.call(x) * self.by[type(node)]

    visitor, nodes = Visitor(), [Node(), Leaf(2.0), Node(3.0)]

    def f(x: Any) -> Any:
        return sum(visitor.visit(node, x) for node in nodes)

    return f, lambda: (
        visitor.by[Node], visitor.by[Leaf], [visitor.by[node] for node in nodes],
        visitor.last == nodes[-1].call,
    )  # fmt: skip


@program
def current_of_two_lists() -> Any:
    lists = {"a": [sine], "b": [cosine]}
    now = types.SimpleNamespace(one=lists["a"])

    def f(x: Any) -> Any:
        now.one = lists["b"] if now.one is lists["a"] else lists["a"]
        return now.one[0](x)

    return f, lambda: now.one is lists["b"]


@program
def table_of_functions_that_close_over_it() -> Any:
    table: dict[Any, float] = {}

    def g(x: Any) -> Any:
        return math.sin(x) * table[g]

    def h(x: Any) -> Any:
        return math.cos(x) * table[h]

    table[g], table[h] = 2.0, 3.0

    def f(x: Any) -> Any:
        table[g] += 1
        return g(x) + h(x)

    return f, lambda: (table[g], table[h])


@program
def cached_method() -> Any:
    class Weights:
        k = 2.0

        @functools.lru_cache(None)  # noqa: B019  # as people write it
        def weight(self, n: int) -> float:
            return self.k * n

        average = np.mean

        def asked(self) -> int:
            return type(self).weight.cache_info().misses

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([1.0, 3.0])

        def run(self, x: Any) -> Any:
            return self.weight(3) * math.sin(x) * self.average()

    weights = Weights()
    return weights.run, lambda: (weights.asked(), weights.weight(3))


@program
def copies_of_objects() -> Any:
    node, kept = Node(2.0), []  # type: ignore[var-annotated]  # of any items

    def f(x: Any) -> Any:
        other = copy.copy(node)
        other.w = node.w + len(kept)
        kept.append(other)
        return sum(n.call(x) for n in kept)

    return f, lambda: [(type(n) is Node, n.w) for n in kept]


@program
def counters_of_dispatched_functions() -> Any:
    @functools.singledispatch
    def area(shape: Any, x: Any) -> Any:
        raise TypeError

    @area.register
    def _(shape: Node, x: Any) -> Any:
        area.count += 1  # type: ignore[attr-defined]  # set on it
        return shape.call(x) * area.count  # type: ignore[attr-defined]  # set on it

    area.count = 0  # type: ignore[attr-defined]  # set on it
    node = Node(2.0)
    return lambda x: area(node, x), lambda: area.count  # type: ignore[attr-defined]  # set on it


@program
def trees_with_parents() -> Any:
    root: dict[str, Any] = {"w": 2.0, "children": [], "parent": None}
    for i in range(3):
        root["children"].append({"w": i + 1.0, "children": [], "parent": root, "f": sine})

    def f(x: Any) -> Any:
        root["w"] += 1.0
        return sum(c["f"](x) * c["parent"]["w"] * c["w"] for c in root["children"])

    return f, lambda: (root["w"], all(c["parent"] is root for c in root["children"]))


@program
def lists_in_themselves() -> Any:
    ring: list[Any] = [sine]
    ring.append(ring)

    def f(x: Any) -> Any:
        ring.append(cosine)
        return ring[1][1][0](x) + sum(g(x) for g in ring if g is not ring)

    return f, lambda: (ring[1] is ring, ring[2] is cosine, len(ring))


def check(name: str, transform: Any) -> None:
    def run(apply: Any) -> Any:
        function, state = PROGRAMS[name]()
        found = [apply(function, 0.7) for _ in range(3)]
        after = state()
        return found, after, function(0.7)

    def differences(f: Any, x: float) -> Any:
        return f(x), None

    plain, expected, later = run(differences)
    found, after, last = run(transform)
    np.testing.assert_allclose([v for v, _ in found], [v for v, _ in plain], 1e-12)
    assert after == expected
    np.testing.assert_allclose(last, later, 1e-12)

    def at(x: float) -> list[float]:
        function, _ = PROGRAMS[name]()
        return [function(x) for _ in range(3)]

    slopes = (np.array(at(0.7 + 1e-6)) - at(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose([d for _, d in found], slopes, 1e-7, 1e-8)


TRANSFORMS = {
    "value_and_grad": lambda f, x: ft.value_and_grad(f)(x),
    "jvp": lambda f, x: ft.jvp(f, (x,), (1.0,)),
    "hvp": lambda f, x: (lambda v, g: (v, g))(*ft.jvp(lambda t: f(t) * 1.0, (x,), (1.0,))),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_what_they_keep(name: str, transform: str) -> None:
    check(name, TRANSFORMS[transform])


@program
def table_that_an_inner_gradient_reads() -> Any:
    table: dict[str, Any] = {"f": sine, "n": 0}
    kept: list[Any] = []

    def inner(y: Any) -> Any:
        kept.append(y * table["n"])
        return table["f"](y) * table["n"]

    def f(x: Any) -> Any:
        table["n"] += 1
        slope = ft.grad(inner)(x * 1.0)
        table["n"] += 10
        return slope * kept[-1]

    return f, lambda: (table["n"], kept)


@program
def objects_that_an_inner_gradient_reads() -> Any:
    nodes: list[Any] = [Node(1.0)]

    def inner(y: Any) -> Any:
        nodes[0].last = y * y
        return sum(node.call(y) for node in nodes)

    def f(x: Any) -> Any:
        nodes.append(Leaf(2.0))
        slope = ft.grad(inner)(x)
        nodes.append(Node(3.0))
        return slope * nodes[0].last

    return f, lambda: [(type(n).__name__, n.w) for n in nodes]


class Shape:
    """A base class, of which programs ask for the subclasses."""

    def area(self, x: Any) -> Any:
        return x * 1.0


class Square(Shape):
    """A subclass."""

    def area(self, x: Any) -> Any:
        return math.sin(x) + super().area(x)


class Disc(Square):
    """A subclass of it."""

    factor = 3.0

    def area(self, x: Any) -> Any:
        return self.factor * x * x


@program
def subclasses() -> Any:
    def kinds(cls: Any) -> Any:
        return [sub for c in cls.__subclasses__() for sub in (c, *kinds(c))]

    def f(x: Any) -> Any:
        Disc.factor = Disc.factor + 0.5 if len(kinds(Shape)) == 2 else 100.0
        return sum(cls().area(x) for cls in kinds(Shape)) * len(kinds(Shape))

    def state() -> Any:
        factor, Disc.factor = Disc.factor, 3.0
        return (
            kinds(Shape) == [Square, Disc],
            all(c in (Square, Disc) for c in kinds(Shape)),
            factor,
        )

    Disc.factor = 3.0
    return f, state


@program
def orders_of_bases() -> Any:
    rank = {Shape: 1.0, Square: 2.0, Disc: 3.0}

    def f(x: Any) -> Any:
        total = x * 0.0
        for shape in (Square(), Disc()):
            total = total + sum(rank[c] * x for c in type(shape).__mro__ if c in rank)
            total = total * len(type(shape).__mro__) + (type(shape).__bases__ == (Shape,)) * x * x
            total = total + (Disc.__base__ is Square) * math.cos(x)
            total = total + issubclass(type(shape), Shape) * x + isinstance(shape, Square) * x
        return total

    return f, lambda: None


class Single(type):
    """A metaclass of which each class has one object."""

    made: dict[Any, Any] = {}  # noqa: RUF012  # as people write it

    def __call__(cls, *args: Any) -> Any:
        if cls not in cls.made:
            cls.made[cls] = super().__call__(*args)
        return cls.made[cls]


class Settings(metaclass=Single):
    """One of them."""

    def __init__(self) -> None:
        self.scale = 2.0

    def get(self, x: Any) -> Any:
        self.scale += 1.0
        return math.sin(x) * self.scale


@program
def singletons_by_metaclass() -> Any:
    Settings().scale = 3.0
    return lambda x: Settings().get(x), lambda: (Settings().scale, len(Single.made))


@program
def plugins_that_register_themselves() -> Any:
    class Plugin:
        known: list[Any] = []  # noqa: RUF012  # as people write it

        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            Plugin.known.append(cls)

        def run(self, x: Any) -> Any:
            return x

    class Sine(Plugin):
        def run(self, x: Any) -> Any:
            return math.sin(x) + super().run(x)

    return lambda x: sum(p().run(x) for p in Plugin.known), lambda: Plugin.known == [Sine]


class Form(abc.ABC):
    """An abstract class, of which others are said to be subclasses."""

    @abc.abstractmethod
    def area(self, x: Any) -> Any:
        """The area."""


class Board(Form):
    """A subclass."""

    def area(self, x: Any) -> Any:
        return math.sin(x) * 2.0


class Sheet:
    """One that is registered."""

    def area(self, x: Any) -> Any:
        return math.cos(x) * 3.0


@program
def abstract_classes() -> Any:
    def f(x: Any) -> Any:
        class Patch:
            def area(self, x: Any) -> Any:
                return x * x

        Form.register(Sheet)
        Form.register(Patch)
        total = sum(form.area(x) for form in (Board(), Sheet(), Patch()) if isinstance(form, Form))
        total = total + issubclass(Sheet, Form) * x + issubclass(Patch, Form) * x
        try:
            return Form().area(x)
        except TypeError:
            return total

    return f, lambda: (issubclass(Sheet, Form), isinstance(Board(), Form), issubclass(Node, Form))


class Rate:
    """A base class whose attributes change."""

    value = 1.0
    count = 0
    made: dict[int, Any] = {}  # noqa: RUF012  # as people write it

    def __init__(self, x: Any) -> None:
        self.number = self.count
        self.x = math.sin(x)
        Rate.count += 1
        self.made[len(self.made)] = self


class Growth(Rate):
    """A subclass, which alone is named."""

    def price(self, x: Any) -> Any:
        return math.exp(x * self.value) * (1 + self.number) * self.x


@program
def attributes_of_base_classes() -> Any:
    Rate.value, Rate.count = 1.0, 0
    Rate.made.clear()
    growth = Growth(1.0)

    def f(x: Any) -> Any:
        other = Growth(x)
        return growth.price(x) + other.price(x) * len(Rate.made)

    def state() -> Any:
        Rate.value *= 2.0
        kinds = [type(x) is Growth and isinstance(x.x, float) for x in Rate.made.values()]
        return Rate.count, len(Rate.made), all(kinds), Rate.made[0] is growth

    return f, state


@program
def attributes_that_change_between_calls() -> Any:
    Rate.value, Rate.count = 1.0, 0
    growth = Growth(1.0)

    def f(x: Any) -> Any:
        return growth.price(x)

    class Called:
        def __call__(self, x: Any) -> Any:
            return f(x)

    ft.grad(f)(0.3)
    Rate.value = 2.0
    return Called(), lambda: Rate.value


class Closed:
    """A state of a door."""

    def push(self, x: Any) -> Any:
        self.__class__ = Open
        return math.sin(x)


class Open(Closed):
    """Another state."""

    def push(self, x: Any) -> Any:
        self.__class__ = Closed
        return 10.0 * math.sin(x)


@program
def objects_that_change_their_class() -> Any:
    door = Closed()
    return lambda x: door.push(x), lambda: type(door) is Open


@program
def long_chains_of_objects() -> Any:
    class Ring:
        head: Any = None

    ring = Ring()

    def f(x: Any) -> Any:
        for _ in range(400):
            ring.head = Node(math.sin(x), ring.head)
        return ring.head.w + ring.head.parent.w

    def state() -> Any:
        n, node = 0, ring.head
        while node is not None:
            n, node = n + (type(node) is Node and type(node.w) is float), node.parent
        return n

    return f, state


@program
def lists_that_an_inner_gradient_fills() -> Any:
    def f(x: Any) -> Any:
        history: list[Any] = []
        best: Any = None
        node = Node(1.0)

        def energy(y: Any) -> Any:
            nonlocal best
            history.append(y * 2.0)
            node.children.append(y * y)
            best = y * 3.0
            return math.sin(y)

        slope = ft.grad(energy)(x * 1.0)
        return slope + history[-1] * node.children[0] + best

    return f, lambda: None


called = 0


@program
def functions_made_in_the_call() -> Any:
    global called
    called = 0
    kept: dict[str, Any] = {}
    shared = Node(2.0)

    def f(x: Any) -> Any:
        seen = [0.0]

        def back(k: Any, table: Any = kept) -> Any:
            global called
            called += 1
            seen[0] += float(k)
            return math.sin(seen[0]) * shared.w * len(table)

        kept["back"] = back
        kept["node"] = lambda: (shared, Node)
        return back(x)

    def state() -> Any:
        shared.w *= 2.0
        node, kind = kept["node"]()
        function = kept["back"]
        now = [float(function(1.0)), float(function(1.0))]
        names = function.__globals__ is globals(), function.__name__
        return now, node is shared, kind is Node, called, names, len(kept)

    return f, state


@program
def objects_of_classes_made_in_the_call() -> Any:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        class Level:
            def __init__(self, w: Any) -> None:
                self.w = w
                self.lower = kept[-1] if kept else None

            def depth(self) -> int:
                return 1 + (self.lower.depth() if self.lower else 0)

        kept.append(Level(math.sin(x)))
        return kept[-1].w * kept[-1].depth()

    return f, lambda: [(level.w, level.depth(), type(level).__name__) for level in kept]
