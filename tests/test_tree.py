"""``ft.tree``: known values, laws over many trees, registration, refusals.

``KNOWN`` holds what JAX's functions of the same names give for the same calls.
"""

import collections
import dataclasses
import enum
import functools
import pickle
import re
import types
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import functrans as ft
from functrans import tree
from functrans.compat.jax import tree as jax_tree
from functrans.compat.jax import tree_util
from functrans.errors import TreeMismatchError, UnsupportedOperationError


class Point(NamedTuple):
    """A namedtuple."""

    x: Any
    y: Any


class Interval:
    """A class with an ordinary registration."""

    def __init__(self, lower: Any, upper: Any, closed: bool = True) -> None:
        self.ends, self.closed = (lower, upper), closed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # compared by value


class Named:
    """A class with keys."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten_with_keys(self) -> Any:
        """Children with keys."""
        return ((tree.GetAttrKey("a"), self.a), (tree.DictKey("b"), self.b)), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        """The object."""
        return cls(*children)


class Mode(str):
    """A static class."""

    __slots__ = ()


@dataclasses.dataclass
class Layer:
    """Fields of three kinds."""

    w: Any
    name: str = tree.static(default="layer")
    count: int = dataclasses.field(default=0, init=False)


def register(names: Any) -> None:
    """Register the classes with the functions of a namespace."""
    names.register_pytree_node(
        Interval, lambda i: (i.ends, i.closed), lambda closed, ends: Interval(*ends, closed)
    )
    names.register_pytree_with_keys_class(Named)
    names.register_static(Mode)
    names.register_dataclass(Layer, ["w"], ["name"])


register(tree)

A_TUPLE = {"is_leaf": lambda x: isinstance(x, tuple)}
NESTED = {"b": [1, (2, 3)], "a": Point(4, None), "c": ()}
KNOWN: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "flatten": (lambda t: t.flatten(NESTED)[0], [4, 1, 2, 3]),
    "flatten, is_leaf": (
        lambda t: t.flatten(NESTED, **A_TUPLE)[0],
        [Point(4, None), 1, (2, 3), ()],
    ),
    "flatten, is_leaf by position": (
        lambda t: t.flatten([(1,), 2], A_TUPLE["is_leaf"])[0],
        [(1,), 2],
    ),
    "leaves of None": (lambda t: t.leaves([None, 1]), [1]),
    "leaves, None a leaf": (lambda t: t.leaves([None, 1], is_leaf=lambda x: x is None), [None, 1]),
    "leaves of one": (lambda t: t.leaves(3), [3]),
    "leaves, is_leaf is the root": (lambda t: t.leaves((3,), **A_TUPLE), [(3,)]),
    "structures": (lambda t: t.structure({"b": 1, "a": 2}) == t.structure({"a": 3, "b": 4}), True),
    "of another kind": (
        lambda t: t.structure({"a": 1}) == t.structure(collections.OrderedDict(a=1)),
        False,
    ),
    "leaf": (lambda t: t.structure(1.0) == t.structure("text"), True),
    "leaf and tuple": (lambda t: t.structure(1.0) == t.structure((1.0,)), False),
    "leaf is a treedef": (lambda t: t.structure(1.0).unflatten([7]), 7),
    "leaf flattens up to": (lambda t: t.structure(1.0).flatten_up_to((1, 2)), [(1, 2)]),
    "leaf composes": (
        lambda t: t.structure(1.0).compose(t.structure((1, 2))) == t.structure((3, 4)),
        True,
    ),
    "composes with leaf": (
        lambda t: t.structure((1, 2)).compose(t.structure(1.0)) == t.structure((3, 4)),
        True,
    ),
    "leaf counts": (
        lambda t: (
            t.structure(1.0).num_leaves,
            t.structure(1.0).num_nodes,
            t.structure(1.0).children(),
        ),
        (1, 1, []),
    ),
    "None counts": (
        lambda t: (t.structure(None).num_leaves, t.structure(None).num_nodes),
        (0, 1),
    ),
    "None comes back": (lambda t: t.unflatten(t.structure((None, 1)), [2]), (None, 2)),
    "unflatten": (
        lambda t: t.unflatten(t.structure(NESTED), "xyzw"),
        {
            "b": ["y", ("z", "w")],
            "a": Point("x", None),
            "c": (),
        },
    ),
    "unflatten an iterator": (lambda t: t.unflatten(t.structure([1, 2]), iter("ab")), ["a", "b"]),
    "map": (
        lambda t: t.map(lambda x: 2 * x, NESTED),
        {
            "b": [2, (4, 6)],
            "a": Point(8, None),
            "c": (),
        },
    ),
    "map of two": (lambda t: t.map(lambda x, y: x - y, (1, [2]), (3, [5])), (-2, [-3])),
    "map, prefix": (
        lambda t: t.map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"a": [5, 6], "b": {"c": 7}}),
        {"a": (1, [5, 6]), "b": (2, {"c": 7})},
    ),
    "map, one leaf first": (lambda t: t.map(lambda x, y: (x, y), 1, {"a": 2}), (1, {"a": 2})),
    "map, is_leaf": (lambda t: t.map(len, [(1, 2), [(3,)]], **A_TUPLE), [2, [1]]),
    "map, None": (
        lambda t: t.map(lambda x, y: (x, y), (1, None), (2, None)),
        ((1, 2), None),
    ),
    "map of dicts by key": (
        lambda t: t.map(lambda x, y: x + y, {"b": 1, "a": 2}, {"a": 10, "b": 20}),
        {"b": 21, "a": 12},
    ),
    "all": (lambda t: (t.all([1, {"a": True}]), t.all([1, 0]), t.all(())), (True, False, True)),
    "reduce": (lambda t: t.reduce(lambda x, y: x + y, NESTED), 10),
    "reduce, initial": (lambda t: t.reduce(lambda x, y: x + y, [[1], [2]], 5), 8),
    "reduce, is_leaf": (
        lambda t: t.reduce(lambda x, y: x + y, [(1,), (2,)], (), A_TUPLE["is_leaf"]),
        (1, 2),
    ),
    "reduce_associative": (
        lambda t: t.reduce_associative(lambda x, y: f"({x}{y})", list("abcde")),
        "((ab)(c(de)))",
    ),
    "reduce_associative, identity": (
        lambda t: t.reduce_associative(lambda x, y: x + y, (), identity=9),
        9,
    ),
    "transpose": (
        lambda t: t.transpose(
            t.structure({"a": 0, "b": 0}), t.structure((0, 0)), {"a": (1, 2), "b": (3, 4)}
        ),
        ({"a": 1, "b": 3}, {"a": 2, "b": 4}),
    ),
    "transpose, None": (
        lambda t: t.transpose(t.structure([0, 0]), None, [{"x": 1, "y": 2}, {"x": 3, "y": 4}]),
        {"x": [1, 3], "y": [2, 4]},
    ),
    "broadcast": (
        lambda t: t.broadcast({"a": 0, "b": 1}, {"a": [5, (6, None)], "b": {"c": 7}}),
        {"a": [0, (0, None)], "b": {"c": 1}},
    ),
    "broadcast one": (lambda t: t.broadcast(8, {"a": [5, 6]}), {"a": [8, 8]}),
    "all_leaves": (
        lambda t: (t.all_leaves([1, "x"]), t.all_leaves([1, (2,)]), t.all_leaves([None])),
        (True, False, False),
    ),
    "all_leaves, is_leaf": (lambda t: t.all_leaves([1, (2,)], **A_TUPLE), True),
    "paths": (
        lambda t: [t.keystr(path) for path, _ in t.leaves_with_path(NESTED)],
        ["['a'].x", "['b'][0]", "['b'][1][0]", "['b'][1][1]"],
    ),
    "paths, simple": (
        lambda t: [
            t.keystr(path, simple=True, separator="/") for path, _ in t.leaves_with_path(NESTED)
        ],
        ["a/x", "b/0", "b/1/0", "b/1/1"],
    ),
    "path of one": (lambda t: t.leaves_with_path(3), [((), 3)]),
    "paths by value": (
        lambda t: (
            [path for path, _ in t.leaves_with_path({3: [Point(1, 2)]})]
            == [(t.DictKey(3), t.SequenceKey(0), t.GetAttrKey(name)) for name in "xy"]
        ),
        True,
    ),
    "paths of registered": (
        lambda t: [
            t.keystr(path)
            for path, _ in t.leaves_with_path((Interval(1, [2]), Named(3, 4), Layer(5)))
        ],
        ["[0][<flat index 0>]", "[0][<flat index 1>][0]", "[1].a", "[1]['b']", "[2].w"],
    ),
    "paths of mappings": (
        lambda t: [
            t.keystr(path)
            for path, _ in t.leaves_with_path(
                (collections.OrderedDict(b=1, a=2), collections.defaultdict(int, d=3, c=4))
            )
        ],
        ["[0]['b']", "[0]['a']", "[1]['c']", "[1]['d']"],
    ),
    "map_with_path": (
        lambda t: t.map_with_path(lambda p, x, y: (t.keystr(p), x, y), {"a": [1]}, {"a": [(2,)]}),
        {"a": [("['a'][0]", 1, (2,))]},
    ),
    "map_with_path, is_leaf": (
        lambda t: t.map_with_path(lambda p, x: (t.keystr(p), x), [(1, 2), 3], **A_TUPLE),
        [("[0]", (1, 2)), ("[1]", 3)],
    ),
    "is_leaf_takes_path": (
        lambda t: [
            (t.keystr(path), leaf)
            for path, leaf in t.leaves_with_path(
                NESTED | {"d": Named(1, (2, [3]))},
                is_leaf=lambda path, x: len(path) == 2 and t.keystr(path) != "['b'][1]",
                is_leaf_takes_path=True,
            )
        ],
        [
            ("['a'].x", 4),
            ("['a'].y", None),
            ("['b'][0]", 1),
            ("['b'][1][0]", 2),
            ("['b'][1][1]", 3),
            ("['d'].a", 1),
            ("['d']['b']", (2, [3])),
        ],
    ),
    "text of keys": (
        lambda t: [
            str(t.DictKey("a")),
            str(t.SequenceKey(1)),
            str(t.GetAttrKey("x")),
            str(t.FlattenedIndexKey(2)),
        ],
        ["['a']", "[1]", ".x", "[<flat index 2>]"],
    ),
    "keys hash": (
        lambda t: len({t.DictKey("a"), t.DictKey("a"), t.SequenceKey(0), t.FlattenedIndexKey(0)}),
        3,
    ),
    "registered": (
        lambda t: t.map(lambda x: x + 1, Interval(1, 2, False)),
        Interval(2, 3, False),
    ),
    "registered, structure": (
        lambda t: t.structure(Interval(1, 2)) == t.structure(Interval(1, 2, False)),
        False,
    ),
    "static": (
        lambda t: (t.leaves((Mode("x"), 1)), t.structure(Mode("x")) == t.structure(Mode("y"))),
        ([1], False),
    ),
    "dataclass": (
        lambda t: (
            t.leaves(Layer(1, "n")),
            t.map(lambda x: x + 1, Layer(1, "n")),
            t.structure(Layer(1, "n")) == t.structure(Layer(1, "m")),
        ),
        ([1], Layer(2, "n"), False),
    ),
    "Partial": (
        lambda t: (
            t.leaves(t.Partial(divmod, 7, key=8)),
            t.map(lambda x: x + 1, t.Partial(divmod, 7))(3),
            t.structure(t.Partial(divmod, 7)) == t.structure(t.Partial(divmod, 8)),
            t.structure(t.Partial(divmod, 7)) == t.structure(t.Partial(pow, 7)),
        ),
        ([7, 8], (2, 2), True, False),
    ),
    "Partial of partial": (
        lambda t: (
            t.leaves(t.Partial(functools.partial(divmod, 7), 3)),
            t.Partial(functools.partial(divmod, 7), 3)(),
        ),
        ([3], (2, 1)),
    ),
    "flatten_one_level": (
        lambda t: (list(t.flatten_one_level([1, (2,)])[0]), list(t.flatten_one_level({"a": 1})[0])),
        ([1, (2,)], [1]),
    ),
    "flatten_one_level_with_keys": (
        lambda t: [(str(k), v) for k, v in t.flatten_one_level_with_keys({"a": 1})[0]],
        [("['a']", 1)],
    ),
    "treedef_tuple": (
        lambda t: t.treedef_tuple([t.structure(1), t.structure([1])]) == t.structure((1, [1])),
        True,
    ),
    "treedef_children": (
        lambda t: t.treedef_children(t.structure((1, [1]))) == [t.structure(1), t.structure([1])],
        True,
    ),
    "treedef_is_leaf": (
        lambda t: [t.treedef_is_leaf(t.structure(x)) for x in (1, None, (), (1,))],
        [True, True, True, False],
    ),
    "is_tree_node": (
        lambda t: [t.is_tree_node(x) for x in (dict, int, Interval)],
        [True, False, True],
    ),
}


JAX = types.SimpleNamespace(
    **{name: getattr(tree_util, name) for name in dir(tree_util)},
    **{name: getattr(jax_tree, name) for name in set(dir(jax_tree)) - set(dir(tree_util))},
)


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(name: str) -> None:
    call, expected = KNOWN[name]
    assert call(tree) == expected
    assert call(JAX) == expected


def random_tree(rng: np.random.Generator, depth: int = 3) -> Any:
    """A tree of all kinds of containers."""
    if not depth:
        return float(rng.integers(100))
    kind = rng.integers(10)
    below = [random_tree(rng, depth - 1) for _ in range(rng.integers(4))]
    pair = [random_tree(rng, depth - 1) for _ in range(2)] if kind > 4 else []
    keys = [str(k) for k in rng.permutation(len(below))]
    return {
        0: lambda: float(rng.integers(100)), 1: lambda: tuple(below), 2: lambda: list(below),
        3: lambda: dict(zip(keys, below, strict=True)), 4: lambda: None, 5: lambda: Point(*pair),
        6: lambda: Interval(*pair), 7: lambda: types.SimpleNamespace(p=pair[0], q=pair[1]),
        8: lambda: collections.OrderedDict(zip("ba", pair, strict=True)),
        9: lambda: Layer(pair),
    }[int(kind)]()  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_laws(seed: int) -> None:
    value = random_tree(np.random.default_rng(seed))
    flat, treedef = tree.flatten(value)
    pairs, with_paths = tree.flatten_with_path(value)
    assert tree.unflatten(treedef, flat) == value == tree.map(lambda x: x, value)
    assert treedef == with_paths == tree.structure(value) == pickle.loads(pickle.dumps(treedef))
    assert hash(treedef) == hash(with_paths)
    assert [leaf for _, leaf in pairs] == flat == tree.leaves(value)
    assert len({path for path, _ in pairs}) == len(flat)
    if all(type(step) is not tree.FlattenedIndexKey for path, _ in pairs for step in path):
        assert [eval(f"value{tree.keystr(path)}", {"value": value}) for path, _ in pairs] == flat
    tree.map_with_path(lambda path, x: path, value)
    asked: list[Any] = []
    tree.leaves(value, is_leaf=lambda p, x: asked.append((p, x)), is_leaf_takes_path=True)
    for path, leaf in pairs:
        assert (path, leaf) in asked
    doubled = tree.map(lambda x: (x, [x]), value)
    assert tree.structure(doubled) == treedef.compose(tree.structure((0, [0])))
    turned = tree.transpose(treedef, tree.structure((0, [0])), doubled)
    assert turned == (value, [value])
    cut = seed % 4
    prefix_leaf = {"is_leaf": lambda p, _: len(p) >= cut, "is_leaf_takes_path": True}
    prefix = tree.map(lambda _: 7.0, value, **prefix_leaf)
    assert tree.broadcast(prefix, value) == tree.map(lambda _: 7.0, value)
    parts: list[Any] = []
    tree.map(lambda _, part: parts.append(part), prefix, value)
    assert parts == tree.leaves(value, **prefix_leaf)


class Colour(enum.Enum):
    """Keys that have no order."""

    RED = 1
    BLUE = 2


def test_keys_without_order_pair_by_key() -> None:
    one, other = {Colour.RED: 1, Colour.BLUE: 2}, {Colour.BLUE: 20, Colour.RED: 10}
    assert tree.map(lambda x, y: x + y, one, other) == {Colour.RED: 11, Colour.BLUE: 22}
    assert tree.broadcast(one, other) == {Colour.RED: 1, Colour.BLUE: 2}
    mixed = {1: 2.0, "a": 3.0}
    assert tree.unflatten(tree.structure(mixed), tree.leaves(mixed)) == mixed


@dataclasses.dataclass
class Filled:
    """Fields that it fills by itself, in three ways."""

    a: Any
    b: Any = dataclasses.field(init=False, default=3.0)
    c: Any = dataclasses.field(init=False, default_factory=lambda: [1.0])
    d: Any = dataclasses.field(init=False)


@pytest.mark.parametrize(("name", "value"), [("b", 7.0), ("b", 3), ("c", []), ("d", 1.0)])
def test_a_field_that_would_be_lost_is_refused(name: str, value: object) -> None:
    """What is made of the leaves of an object equals it, or is not made."""
    filled = Filled(2.0)
    assert tree.map(lambda x: x, filled).b == 3.0
    assert ft.jit(lambda f: f.a * f.b * f.c[0])(filled) == 6.0
    setattr(filled, name, value)
    calls: list[Callable[[], Any]] = [
        lambda: ft.jit(lambda f: f.a * f.b)(filled),
        lambda: ft.grad(lambda f: f.a * f.b)(filled),
        lambda: tree.map(lambda x: x, [filled]),
    ]
    for call in calls:
        with pytest.raises(UnsupportedOperationError, match=rf"'{name}' of a Filled .*init=True"):
            call()


def test_a_field_that_is_computed_of_others_is_computed_again() -> None:
    @dataclasses.dataclass
    class Pair:
        a: Any
        twice: Any = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.twice = 2 * self.a

    assert ft.grad(lambda p: p.a * p.twice)(Pair(3.0)).a == 12.0
    assert tree.map(lambda x: x + 1, Pair(3.0)) == Pair(4.0)


def test_attrs_classes_are_containers() -> None:
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Body:
        mass: Any
        _speed: Any
        name: str = attrs.field(default="ball", metadata={"static": True})
        made: int = attrs.field(default=3, init=False)

    body = Body(2.0, 3.0, "stone")
    assert tree.leaves(body) == [2.0, 3.0]
    assert tree.map(lambda x: 2 * x, body) == Body(4.0, 6.0, "stone")
    found = ft.grad(lambda b: 0.5 * b.mass * b._speed**2)(body)
    assert (float(found.mass), float(found._speed), found.name) == (4.5, 6.0, "stone")
    assert ft.jit(lambda b: b.mass + b._speed)(body) == 5.0


def test_namespaces_are_containers() -> None:
    point = types.SimpleNamespace(y=2.0, x=np.ones(2))
    found = ft.jit(ft.grad(lambda p: np.sum(p.x) * p.y))(point)
    np.testing.assert_array_equal(found.x, [2.0, 2.0])
    assert found.y == 2.0
    rows = ft.vmap(lambda p: p.x * p.y, in_axes=(types.SimpleNamespace(x=0, y=None),))(point)
    np.testing.assert_array_equal(rows, [2.0, 2.0])


TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: ft.grad(f),
    "jit": lambda f: ft.jit(f),
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "vmap": lambda f: lambda v: ft.vmap(f)(tree.map(lambda x: np.stack([x, x]), v)),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_registered_classes_go_through_transforms(name: str) -> None:
    value = {
        "interval": Interval(1.0, np.ones(2)), "named": Named(2.0, [3.0]), "mode": Mode("m"),
        "layer": Layer(np.arange(2.0), "first"),
        "partial": tree.Partial(lambda a, x: a * x, np.array([2.0, 3.0])),
    }  # fmt: skip

    def total(v: Any) -> Any:
        assert isinstance(v["interval"], Interval)
        assert v["mode"] == "m"
        assert v["layer"].name == "first"
        lower, upper = v["interval"].ends
        return (
            lower * np.sum(upper) + v["named"].a * v["named"].b[0]
            + np.sum(v["partial"](v["layer"].w))
        )  # fmt: skip

    plain = tree.leaves(value)
    treedef = tree.structure(value)
    by_leaves = TRANSFORMED[name](lambda flat: total(tree.unflatten(treedef, flat)))
    found, expected = TRANSFORMED[name](total)(value), by_leaves(plain)
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_explicit_registration_replaces_that_of_a_dataclass() -> None:
    @dataclasses.dataclass
    class Pair:
        x: Any
        y: Any

    assert tree.leaves(Pair(1, 2)) == [1, 2]
    assert tree.register_dataclass(Pair, ["y"], ["x"]) is Pair
    assert tree.leaves(Pair(1, 2)) == [2]
    with pytest.raises(ValueError, match="Pair is registered already"):
        tree.register_dataclass(Pair, ["x"], ["y"])


def test_a_static_field_is_part_of_the_program() -> None:
    calls: list[str] = []

    @ft.jit
    def f(layer: Layer) -> Any:
        calls.append(layer.name)
        return layer.w * (2.0 if layer.name == "two" else 3.0)

    assert [float(f(Layer(1.0, name))) for name in ("two", "three", "two")] == [2.0, 3.0, 2.0]
    assert calls == ["two", "three"]


class Bad:
    """A class whose function of flattening is replaced."""

    answer: ClassVar[Any] = None


tree.register_pytree_node(Bad, lambda _: Bad.answer, lambda _, children: Bad())


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (3, "flattens Bad returned 3; expected a tuple of two"),
        ([(), None], "expected a tuple of two"),
        (((1,), None, 3, 4), "expected a tuple of two"),
        ((3, None), "returned 3 for the children; expected an iterable"),
    ],
)
def test_wrong_answers_of_flattening(answer: Any, says: str) -> None:
    Bad.answer = answer
    for run in (tree.flatten, tree.leaves_with_path, ft.jit(lambda b: 1.0)):
        with pytest.raises(TypeError, match=re.escape(says)):
            run(Bad())


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "map, arity": (
        lambda: tree.map(max, (1, 2), (1, 2, 3)),
        TreeMismatchError,
        "tree 2 has structure (*, *, *)",
    ),
    "map, key": (lambda: tree.map(max, {"a": 1}, {"b": 1}), TreeMismatchError, "'a'"),
    "map, kind": (
        lambda: tree.map(max, (1, 2), [1, 2]),
        TreeMismatchError,
        "tree 2 has structure [*, *]",
    ),
    "map, leaf below": (
        lambda: tree.map(max, {"a": (1, 2)}, {"a": 1}),
        TreeMismatchError,
        "prefix",
    ),
    "unflatten, few": (
        lambda: tree.unflatten(tree.structure((1, 2)), [1]),
        ValueError,
        "expected: 2, got: 1",
    ),
    "unflatten, many": (
        lambda: tree.unflatten(tree.structure((1, 2)), [1, 2, 3]),
        ValueError,
        "expected: 2",
    ),
    "flatten_up_to, arity": (
        lambda: tree.structure((1, 2)).flatten_up_to((1, 2, 3)),
        ValueError,
        "expected: 2, got: 3",
    ),
    "reduce, empty": (lambda: tree.reduce(max, ()), TypeError, "initializer"),
    "reduce_associative, empty": (lambda: tree.reduce_associative(max, ()), TypeError, "identity="),
    "transpose": (
        lambda: tree.transpose(tree.structure((1, 2)), None, ((1, 2), (3,))),
        TreeMismatchError,
        "outer structure (*, *)",
    ),
    "broadcast": (lambda: tree.broadcast((1, 2), (1, 2, 3)), TreeMismatchError, "tree.broadcast"),
    "one level": (lambda: tree.flatten_one_level(1.0), ValueError, "float is no container"),
    "twice": (lambda: tree.register_static(Mode), ValueError, "Mode is registered already"),
    "built in": (
        lambda: tree.register_pytree_node(dict, None, None),
        ValueError,
        "dict is registered already",
    ),
    "no fields": (
        lambda: tree.register_dataclass(Colour),
        TypeError,
        "give data_fields and meta_fields",
    ),
    "one of two": (lambda: tree.register_dataclass(Layer, ["w"]), TypeError, "give both"),
    "missing": (
        lambda: tree.register_dataclass(Layer, ["w"], []),
        ValueError,
        "fields ['name'] are missing",
    ),
    "unknown": (
        lambda: tree.register_dataclass(Layer, ["w", "v"], ["name"]),
        ValueError,
        "no fields ['v']",
    ),
    "given twice": (
        lambda: tree.register_dataclass(Layer, ["w", "name"], ["name"]),
        ValueError,
        "['name'] are given twice",
    ),
    "no container in grad": (
        lambda: ft.grad(lambda c: c.value)(Colour.RED),
        UnsupportedOperationError,
        "ft.tree.register_pytree_node",
    ),
    "no container in jit": (
        lambda: ft.jit(lambda c: 1.0)(Colour.RED),
        UnsupportedOperationError,
        "ft.tree.register_pytree_node",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, error, says = REFUSED[name]
    with pytest.raises(error, match=re.escape(says)):
        call()
