"""Records behave as those of the standard library's decorator, every one that there is."""

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from typing import Any

import pytest

import functrans
from functrans import records
from functrans.records import dataclass


def _records() -> list[type]:
    found = {}
    for module in pkgutil.walk_packages(functrans.__path__, "functrans."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and vars(value).get("__setattr__") is records._setattr:
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return list(found.values())


def _of_standard_library(cls: type) -> Any:
    """The same fields, through ``dataclasses.dataclass``."""
    fields = [
        (f.name, f.type, dataclasses.field(**{k: getattr(f, k) for k in _OPTIONS}))
        for f in dataclasses.fields(cls)
    ]
    return dataclasses.make_dataclass(
        cls.__qualname__, fields, frozen=True, slots=True, eq=cls.__eq__ is not object.__eq__
    )


_OPTIONS = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")


def _parameters(cls: type) -> list[Any]:
    """Names, kinds and whether there is a default."""
    found = inspect.signature(cls).parameters.values()
    return [(p.name, p.kind, p.default is inspect.Parameter.empty) for p in found]


def test_as_the_standard_library() -> None:
    found = _records()
    assert len(found) > 100
    for cls in found:
        _check(cls)


def _is_own(method: Any) -> bool:
    """Whether a class wrote its method itself."""
    return getattr(method, "__module__", None) not in (None, records.__name__)


def _check(cls: type) -> None:
    standard = _of_standard_library(cls)
    assert _parameters(cls) == _parameters(standard)
    assert cls.__match_args__ == standard.__match_args__  # type: ignore[attr-defined]
    if hasattr(cls, "__post_init__") or _is_own(cls.__eq__):
        return
    values = {f.name: f"value of {f.name}" for f in dataclasses.fields(cls) if f.init}
    record, same = cls(**values), standard(**values)
    if cls.__repr__ is records._repr:
        assert repr(record) == repr(same)
    assert (record == cls(**values)) == (same == standard(**values))
    if cls.__hash__ is not object.__hash__ and not _is_own(cls.__hash__):
        assert hash(record) == hash(same)
    for name in values:
        other = dataclasses.replace(record, **{name: "other"})
        assert getattr(other, name) == "other"
        assert (other == record) == (dataclasses.replace(same, **{name: "other"}) == same)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{name}'"):
            setattr(record, name, "other")
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete field '{name}'"):
            delattr(record, name)
        assert getattr(record, name) == values[name]
    assert not hasattr(record, "__dict__")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Node:
    """One of everything."""

    value: object
    label: str = dataclasses.field(default="", compare=False)
    children: list[Any] = dataclasses.field(default_factory=list, hash=False)
    hidden: int = dataclasses.field(default=0, repr=False, kw_only=True)
    depth: int = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max((c.depth for c in self.children), default=0))


@dataclass(frozen=True, slots=True)
class Leaf(Node):
    """A record of a record."""

    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Empty:
    """No field."""


@dataclass(frozen=True, slots=True)
class Single:
    """One field."""

    value: object

    def __repr__(self) -> str:
        return f"<{self.value}>"

    def __hash__(self) -> int:
        return 7


def test_fields_of_every_kind() -> None:
    tree = Node(1, "a", [Node(2), Leaf(3, weight=2.0)], hidden=4)
    assert tree.depth == 2
    assert Node(1).children is not Node(1).children
    assert Node(1, "a") == Node(1, "b") != Node(1, "a", hidden=1)
    assert hash(Node(1, children=[])) == hash(Node(1, children=[Node(2)]))
    assert repr(Leaf(3)) == "Leaf(value=3, label='', children=[], depth=1, weight=1.0)"
    assert Leaf(3) != Node(3)
    tree.children.append(tree)
    assert "..." in repr(tree)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'value'"):
        Node()  # type: ignore[call-arg]


def test_copies_and_pickles() -> None:
    tree = Node(1, "a", [Leaf(3, weight=2.0)], hidden=4)
    for made in (copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert made == tree
        assert (made.label, made.depth) == ("a", 2)
        assert made is not tree
    assert copy.deepcopy(tree).children is not tree.children


def test_few_fields_and_own_methods() -> None:
    nan = float("nan")
    assert Empty() == Empty()
    assert repr(Empty()) == f"{Empty.__qualname__}()"
    assert Single(nan) == Single(nan)  # fields are compared as those of tuples are
    assert Single(1) != Single(2)
    assert (repr(Single(1)), hash(Single(1))) == ("<1>", 7)
