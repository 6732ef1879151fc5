"""Pytrees for users: ``ft.tree``, what JAX has in ``jax.tree`` and ``jax.tree_util``.

Here: functions of nested containers. Not here: key paths (``tree.keys``), registration of classes
(``tree.registration``), pytrees as the library uses them (``functrans.pytrees``). The containers
are optree's, in the namespace ``"functrans"``: tuples, lists, dicts, ``OrderedDict``,
``defaultdict``, ``deque``, namedtuples, what is registered here, and dataclasses, attrs classes and
``SimpleNamespace``, which need no registration. ``None`` is an empty container. All functions take
``is_leaf``, a function of a node that says whether it is a leaf, and, where paths exist,
``is_leaf_takes_path``: it is then a function of the path and the node.

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import optree
from optree import PyTreeSpec as PyTreeDef

from functrans.core.boundary import guard as _guard
from functrans.errors import TreeMismatchError
from functrans.namespaces import listing as _listing
from functrans.pytrees import (
    BY_THEMSELVES,
    HOW_TO_REGISTER,
    LEAF_TYPES,
    NAMESPACE,
    describe,
    has_fields,
    is_registered,
    register_met,
)
from functrans.tree.keys import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    key_of,
    keystr,
    path_of,
)
from functrans.tree.registration import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)

_Asked = Callable[..., bool] | None
_LEAF = optree.treespec_leaf(namespace=NAMESPACE)
_NOT_GIVEN: Any = object()


def _without_path(is_leaf: _Asked, takes_path: bool) -> _Asked:
    """A function of a node that is asked for all nodes from the root, each before its children."""
    if is_leaf is None or not takes_path:
        return is_leaf
    coming: list[tuple[Any, ...]] = [()]

    def asked(node: Any) -> bool:
        path = coming.pop()
        if is_leaf(path, node):
            return True
        register_met([node])
        steps = optree.tree_flatten_with_accessor(
            node, is_leaf=lambda below: below is not node, namespace=NAMESPACE
        )[0]
        if not optree.tree_is_leaf(node, namespace=NAMESPACE):
            coming.extend([(*path, *path_of(step)) for step in reversed(steps)])
        return False

    return asked


def _flatten(
    function: Callable[..., Any], tree: object, is_leaf: _Asked, takes_path: bool
) -> tuple[Any, ...]:
    """What a function of optree finds, which gives leaves second from the end."""
    found = function(tree, _without_path(is_leaf, takes_path), namespace=NAMESPACE)
    if register_met(found[-2]):
        return _flatten(function, tree, is_leaf, takes_path)
    return found


def flatten(
    tree: object, is_leaf: _Asked = None, *, is_leaf_takes_path: bool = False
) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure of a pytree.

    Args:
      tree: nested containers; anything that is no container is a leaf.
      is_leaf: function of a node: whether it is a leaf.
      is_leaf_takes_path: whether it is a function of path and node.

    Returns:
      List of leaves in order, and the structure for :func:`unflatten`.

    Example:
      >>> leaves, treedef = flatten({"b": 1.0, "a": (2.0, 3.0)})
      >>> leaves
      [2.0, 3.0, 1.0]
      >>> flatten({"a": (2.0, 3.0)}, is_leaf=lambda x: isinstance(x, tuple))[0]
      [(2.0, 3.0)]
    """
    if is_leaf is None and type(tree) in LEAF_TYPES:
        return [tree], _LEAF
    return _flatten(optree.tree_flatten, tree, is_leaf, is_leaf_takes_path)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Put leaves back into a structure.

    Raises:
      ValueError: it has another number of leaves.

    Example:
      >>> unflatten(structure({"b": 0, "a": 0}), [1.0, 2.0])
      {'b': 2.0, 'a': 1.0}
    """
    return treedef.unflatten(leaves)


def leaves(tree: object, is_leaf: _Asked = None, *, is_leaf_takes_path: bool = False) -> list[Any]:
    """The leaves of a pytree in order.

    Example:
      >>> leaves([1.0, (2.0, None)])
      [1.0, 2.0]
    """
    return flatten(tree, is_leaf, is_leaf_takes_path=is_leaf_takes_path)[0]


def structure(
    tree: object, is_leaf: _Asked = None, *, is_leaf_takes_path: bool = False
) -> PyTreeDef:
    """The structure of a pytree.

    Example:
      >>> structure([1.0, 2.0]) == structure([3.0, 4.0])
      True
    """
    return flatten(tree, is_leaf, is_leaf_takes_path=is_leaf_takes_path)[1]


def _columns(who: str, treedef: Any, rest: Sequence[Any]) -> list[list[Any]]:
    """Of each tree, what stands at the leaves of a structure."""
    columns = []
    for i, other in enumerate(rest, 2):
        try:
            columns.append(treedef.flatten_up_to(other))
        except (ValueError, TypeError) as error:
            raise TreeMismatchError(
                f"{who}: tree {i} has structure {describe(structure(other))}, but the first tree "
                f"has {describe(treedef)}, which must be the same or a prefix of it ({error})"
            ) from None
    return columns


def map(  # jax.tree.map's name
    fun: Callable[..., Any],
    tree: Any,
    *rest: object,
    is_leaf: _Asked = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to corresponding leaves.

    Args:
      fun: function of as many leaves as there are trees.
      tree: first tree, whose structure the result has.
      *rest: trees of the same structure, or with containers where the first has a leaf: ``fun``
        gets them as they are.
      is_leaf: function of a node of the first tree: whether it is a leaf.
      is_leaf_takes_path: whether it is a function of path and node.

    Returns:
      Tree of the results.

    Raises:
      TreeMismatchError: structures differ; the message names both.

    Example:
      >>> map(lambda x, y: x + y, {"a": 1.0}, {"a": 2.0})
      {'a': 3.0}
      >>> map(lambda n, parts: n * sum(parts), {"a": 10}, {"a": (1, 2)})
      {'a': 30}
    """
    if is_leaf is None and type(tree) in LEAF_TYPES:
        return fun(tree, *rest)
    flat, treedef = flatten(tree, is_leaf, is_leaf_takes_path=is_leaf_takes_path)
    columns = _columns("tree.map", treedef, rest)
    return treedef.unflatten([fun(*row) for row in zip(flat, *columns, strict=True)])


def all(tree: object, is_leaf: _Asked = None) -> bool:  # jax.tree.all's name
    """Whether every leaf is true.

    Example:
      >>> all({"a": True, "b": [1.0]})
      True
    """
    return not any(not leaf for leaf in leaves(tree, is_leaf))


def reduce(
    fun: Callable[[Any, Any], Any],
    tree: object,
    initializer: object = _NOT_GIVEN,
    is_leaf: _Asked = None,
) -> Any:
    """Fold the leaves from the left, beginning with the first one or a value.

    Raises:
      TypeError: there are no leaves, and no initial value.

    Example:
      >>> reduce(lambda x, y: x + y, {"a": 1.0, "b": (2.0, 3.0)})
      6.0
    """
    flat = leaves(tree, is_leaf)
    if initializer is _NOT_GIVEN:
        if not flat:
            raise TypeError("tree.reduce: a tree without leaves; give an initializer")
        return functools.reduce(fun, flat)
    return functools.reduce(fun, flat, initializer)


def reduce_associative(
    fun: Callable[[Any, Any], Any],
    tree: object,
    *,
    identity: object = _NOT_GIVEN,
    is_leaf: _Asked = None,
) -> Any:
    """Fold the leaves in pairs, as a balanced tree of calls.

    Raises:
      TypeError: there are no leaves, and no identity.

    Example:
      >>> reduce_associative(lambda x, y: f"({x}{y})", list("abcd"))
      '((ab)(cd))'
    """
    flat = leaves(tree, is_leaf)
    if not flat:
        if identity is _NOT_GIVEN:
            raise TypeError("tree.reduce_associative: a tree without leaves; give identity=")
        return identity

    def folded(part: list[Any]) -> str:
        if len(part) == 1:
            return part[0]
        half = len(part) // 2
        return fun(folded(part[:half]), folded(part[half:]))

    return folded(flat)


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn an outer structure of inner structures inside out.

    Args:
      outer_treedef: structure (``tree.structure``) of the outer container.
      inner_treedef: structure of each inner container; ``None`` for that of the first.
      pytree_to_transpose: tree of outer structure whose leaves have inner structure.

    Raises:
      TreeMismatchError: the tree has another structure.

    Example:
      >>> pairs = {"a": (1, 2), "b": (3, 4)}
      >>> transpose(structure({"a": 0, "b": 0}), structure((0, 0)), pairs)
      ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    outer, inner, tree = outer_treedef, inner_treedef, pytree_to_transpose
    found = structure(tree)  # registers what it meets
    try:
        rows: list[Any] = outer.flatten_up_to(tree)
        if inner is None:
            if not rows:
                raise ValueError("an outer structure without leaves needs an inner one")
            inner = structure(rows[0])
        rows = [inner.flatten_up_to(row) for row in rows]
    except (ValueError, TypeError) as error:
        raise TreeMismatchError(
            f"tree.transpose: a tree of structure {describe(found)} is none of outer structure "
            f"{describe(outer)}, each leaf of it of structure "
            f"{'that of the first' if inner is None else describe(inner)} ({error})"
        ) from None
    return inner.unflatten(
        [outer.unflatten([row[i] for row in rows]) for i in range(inner.num_leaves)]
    )


def broadcast(prefix_tree: object, full_tree: object, is_leaf: _Asked = None) -> Any:
    """Repeat the leaves of a tree prefix for the leaves of the tree below them.

    Raises:
      TreeMismatchError: it is no prefix of the tree.

    Example:
      >>> broadcast({"a": 0, "b": 1}, {"a": [5.0, 6.0], "b": 7.0})
      {'a': [0, 0], 'b': 1}
    """
    entries, treedef = flatten(prefix_tree, is_leaf)
    (below,) = _columns("tree.broadcast", treedef, [full_tree])
    return treedef.unflatten(
        [
            map(lambda _, entry=entry: entry, part, is_leaf=is_leaf)
            for entry, part in zip(entries, below, strict=True)
        ]
    )


def all_leaves(values: Iterable[Any], is_leaf: _Asked = None) -> bool:
    """Whether all of some values are leaves.

    Example:
      >>> all_leaves([1.0, 2.0]), all_leaves([1.0, (2.0,)])
      (True, False)
    """
    values = list(values)
    register_met(values)
    return optree.all_leaves(values, is_leaf, namespace=NAMESPACE)


def flatten_with_path(
    tree: object, is_leaf: _Asked = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Pairs of key path and leaf, and the structure of a pytree.

    Example:
      >>> pairs, treedef = flatten_with_path({"a": [1.0]})
      >>> pairs
      [((DictKey(key='a'), SequenceKey(idx=0)), 1.0)]
    """
    accessors, flat, treedef = _flatten(
        optree.tree_flatten_with_accessor, tree, is_leaf, is_leaf_takes_path
    )
    return [(path_of(a), leaf) for a, leaf in zip(accessors, flat, strict=True)], treedef


def leaves_with_path(
    tree: object, is_leaf: _Asked = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Pairs of key path and leaf.

    Example:
      >>> leaves_with_path([1.0])
      [((SequenceKey(idx=0),), 1.0)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    fun: Callable[..., Any],
    tree: object,
    *rest: object,
    is_leaf: _Asked = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to key paths and corresponding leaves.

    Args:
      fun: function of a key path and as many leaves as there are trees.
      tree: first tree, whose structure the result has.
      *rest: as in :func:`map`.
      is_leaf: function of a node of the first tree: whether it is a leaf.
      is_leaf_takes_path: whether it is a function of path and node.

    Example:
      >>> map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": [1.0]})
      {'a': ["['a'][0]=1.0"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _columns("tree.map_with_path", treedef, rest)
    rows = zip(pairs, *columns, strict=True)
    return treedef.unflatten([fun(path, leaf, *others) for (path, leaf), *others in rows])


def is_tree_node(cls: type) -> bool:
    """Whether the values of a class are containers.

    Example:
      >>> is_tree_node(dict), is_tree_node(float)
      (True, False)
    """
    return is_registered(cls) or cls in BY_THEMSELVES or has_fields(cls)


def _one_level(tree: Any) -> Any:
    register_met([tree])
    try:
        return optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    except ValueError:
        raise ValueError(
            f"tree: {type(tree).__qualname__} is no container; {HOW_TO_REGISTER}"
        ) from None


def flatten_one_level(tree: object) -> tuple[Any, Any]:
    """The children of a container, and what belongs to its structure.

    Raises:
      ValueError: it is no container.

    Example:
      >>> flatten_one_level([1.0, (2.0, 3.0)])
      ([1.0, (2.0, 3.0)], None)
    """
    found = _one_level(tree)
    return found.children, found.metadata


def flatten_one_level_with_keys(tree: object) -> tuple[list[tuple[Any, Any]], Any]:
    """Pairs of key and child of a container, and what belongs to its structure.

    Raises:
      ValueError: it is no container.

    Example:
      >>> flatten_one_level_with_keys([1.0])
      ([(SequenceKey(idx=0), 1.0)], None)
    """
    found = _one_level(tree)
    steps = zip(found.entries, found.children, strict=True)
    return [
        (key_of(found.path_entry_type(entry, found.type, found.kind)), child)
        for entry, child in steps
    ], found.metadata


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose items have some structures.

    Example:
      >>> treedef_tuple([structure(1.0), structure([1.0])]) == structure((1.0, [1.0]))
      True
    """
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the items of a container.

    Example:
      >>> len(treedef_children(structure((1.0, [1.0]))))
      2
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is that of a leaf, or of a container without items.

    Example:
      >>> treedef_is_leaf(structure(1.0)), treedef_is_leaf(structure((1.0,)))
      (True, False)
    """
    return treedef.num_nodes == 1


__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all", "all_leaves", "broadcast", "flatten", "flatten_one_level",
    "flatten_one_level_with_keys", "flatten_with_path", "is_tree_node", "keystr", "leaves",
    "leaves_with_path", "map", "map_with_path", "reduce", "reduce_associative",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "static",
    "structure", "transpose", "treedef_children", "treedef_is_leaf", "treedef_tuple", "unflatten",
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
