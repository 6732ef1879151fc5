"""``torch.utils._pytree``, ``torch.overrides`` and ``torch.types``: names that libraries import."""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.compat.torch import overrides, types
from functrans.compat.torch.utils import _pytree as pytree

Point = namedtuple("Point", ["x", "y"])  # torch's rule is about these


class _List(list):
    pass


CONTAINERS = [
    ((1, 2), tuple, None),
    ([1, 2], list, None),
    ({"b": 1, "a": 2}, dict, ["b", "a"]),
    (OrderedDict(b=1, a=2), OrderedDict, ["b", "a"]),
    (defaultdict(list, {"b": 1, "a": 2}), defaultdict, [list, ["b", "a"]]),
    (deque([1, 2], maxlen=3), deque, 3),
    (Point(1, 2), namedtuple, Point),
    (torch.Size([1, 2]), torch.Size, None),
]


@pytest.mark.parametrize(("tree", "kind", "context"), CONTAINERS)
def test_containers_are_taken_apart_in_their_order(tree, kind, context):
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2]
    assert (spec.type, spec.context) == (kind, context)
    assert (spec.num_nodes, spec.num_leaves, spec.num_children) == (3, 2, 2)
    assert spec.children() == spec.children_specs == [pytree.LeafSpec()] * 2
    again = spec.unflatten([3, 4])
    assert type(again) is type(tree)
    assert pytree.tree_leaves(again) == [3, 4]
    assert getattr(again, "maxlen", None) == getattr(tree, "maxlen", None)
    assert pytree.tree_map(lambda x: x, tree) == tree
    assert hash(spec) == hash(pytree.tree_structure(again))


@pytest.mark.parametrize(
    "leaf", [None, 3, "ab", {1, 2}, range(2), _List([1]), time.gmtime(0), np.ones(2)]
)
def test_all_else_is_a_leaf(leaf):
    leaves, spec = pytree.tree_flatten(leaf)
    assert len(leaves) == 1
    assert leaves[0] is leaf
    assert spec.is_leaf()
    assert spec == pytree.LeafSpec()
    assert pytree.tree_is_leaf(leaf)


def test_paths_lead_to_the_leaves():
    tree = {"a": [1, Point(2, None)], "b": deque([3])}
    pairs, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in pairs] == [
        "['a'][0]", "['a'][1].x", "['a'][1].y", "['b'][0]",
    ]  # fmt: skip
    assert [leaf for _, leaf in pairs] == pytree.tree_leaves(tree) == [1, 2, None, 3]
    assert all(pytree.key_get(tree, path) == leaf for path, leaf in pairs)
    assert spec == pytree.tree_structure(tree)
    named = pytree.tree_map_with_path(lambda path, x: (pytree.keystr(path), x), [1])
    assert named == [("[0]", 1)]
    assert pytree.treespec_pprint(spec) == "{'a': [*, Point(x=*, y=*)], 'b': deque([*])}"


def test_maps():
    seen = []
    tree = [1, ("a", 2.5)]
    assert pytree.tree_map_(seen.append, tree) is tree
    assert seen == list(pytree.tree_iter(tree)) == [1, "a", 2.5]
    assert pytree.tree_map_only((int, float), lambda x: -x, tree) == [-1, ("a", -2.5)]
    assert pytree.tree_map_only(int | float, lambda x: -x, tree) == [-1, ("a", -2.5)]
    assert pytree.tree_map_only(lambda x: x == "a", lambda x: 0, tree) == [1, (0, 2.5)]
    assert pytree.tree_all(bool, tree)
    assert not pytree.tree_any(lambda x: x is None, tree)
    assert pytree.tree_all_only(int, lambda x: x == 1, tree)
    assert pytree.tree_any_only(float, lambda x: x > 2, tree)
    is_pair = lambda x: isinstance(x, tuple)  # noqa: E731  # short
    assert pytree.tree_leaves(tree, is_leaf=is_pair) == [1, ("a", 2.5)]
    assert pytree.arg_tree_leaves([1], x=2) == [1, 2]
    paired = pytree.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, OrderedDict(b=[3], a=4))
    assert paired == {"a": (1, 4), "b": (2, [3])}
    with pytest.raises(TypeError, match="must be a type"):
        pytree.tree_map_only(3, abs, tree)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pytree.tree_map(max, [1, 2], [1, 2, 3]), ValueError,
         "Node arity mismatch; expected 2, but got 3"),
        (lambda: pytree.tree_map(max, {"a": 1}, {"b": 1}), ValueError,
         r"missing key\(s\): \{'a'\}; extra key\(s\): \{'b'\}"),
        (lambda: pytree.tree_map(max, [1, [2]], [1, 2]), ValueError,
         "Node type mismatch; expected <class 'list'>, but got <class 'int'>"),
        (lambda: pytree.tree_unflatten([1], pytree.tree_structure([1, 2])), ValueError,
         "`leaves` has length 1 but the spec refers to a pytree that holds 2 items"),
        (lambda: pytree.tree_unflatten([1], 3), TypeError, "instance of TreeSpec but got"),
        (lambda: pytree.register_pytree_node(list, None, None), ValueError, "already registered"),
    ],
)  # fmt: skip
def test_other_structures_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_registered_class_is_a_container_of_transforms_too():
    class Pair:
        def __init__(self, first, second, name):
            self.first, self.second, self.name = first, second, name

    pytree.register_pytree_node(
        Pair,
        lambda p: ([p.first, p.second], p.name),
        lambda children, name: Pair(*children, name),
    )
    doubled = pytree.tree_map(lambda x: 2 * x, Pair(1, 2, "p"))
    assert (doubled.first, doubled.second, doubled.name) == (2, 4, "p")
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, None, None)
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Pair(1, 2, "p"))
    with pytest.raises(ValueError, match="context mismatch"):
        pytree.tree_map(max, Pair(1, 2, "p"), Pair(1, 2, "q"))
    slopes = torch.func.grad(lambda p: (p.first * p.second).sum())(
        Pair(torch.tensor([2.0]), torch.tensor([3.0]), "p")
    )
    assert (slopes.first.item(), slopes.second.item(), slopes.name) == (3.0, 2.0, "p")


def test_prefixes_are_broadcast():
    spec = pytree.tree_structure(([1, 2], 3))
    assert pytree._broadcast_to_and_flatten((0, 1), spec) == [0, 0, 1]
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten([0, 1], spec) is None
    assert pytree._broadcast_to_and_flatten(([0], 1), spec) is None


# overrides ---------------------------------------------------------------------------------------


class _Base:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return ("base", func, types, args, kwargs)


class _Derived(_Base):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return ("derived", func, types, args, kwargs)


class _Silent:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_subclasses_take_calls_over_before_their_classes():
    base, derived = _Base(), _Derived()
    found = overrides.handle_torch_function(torch.add, (base, derived, base), base, 1, alpha=2)
    assert found == ("derived", torch.add, (_Derived, _Base), (base, 1), {"alpha": 2})
    found = overrides.handle_torch_function(torch.add, (_Silent(), base), base)
    assert found[0] == "base"
    with pytest.raises(TypeError, match="no implementation found"):
        overrides.handle_torch_function(torch.add, (_Silent(),), 1)


def test_what_takes_calls_over():
    x = torch.ones(2)
    assert overrides.is_tensor_like(x)
    assert overrides.is_tensor_like(_Base())
    assert not overrides.is_tensor_like(1.0)
    assert not overrides.has_torch_function((x, 1.0))
    assert overrides.has_torch_function((x, _Base()))
    assert overrides.has_torch_function_unary(_Base())
    assert overrides.has_torch_function_variadic(x, _Base())

    @overrides.wrap_torch_function(lambda a: (a,))
    def double(a):
        return a + a

    assert double(2) == 4
    assert double(_Base())[:2] == ("base", double)


def test_names_of_functions():
    assert overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(len) is None
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(torch.add)


def test_types_are_those_of_values():
    assert isinstance(1.0, types.Number)
    assert isinstance(True, types._Number)
    assert isinstance(torch.device("cpu"), types._device)
    assert isinstance(torch.float32, types._dtype)
    assert isinstance("cpu", types.Device)
