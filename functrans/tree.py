"""Pytrees for users: ``ft.tree``, what JAX has in ``jax.tree`` and ``jax.tree_util``.

Here: functions of nested containers, key paths, registration of classes. Not here: pytrees as the
library uses them (``functrans.pytrees``). The containers are optree's, in the namespace
``"functrans"``: tuples, lists, dicts, ``OrderedDict``, ``defaultdict``, ``deque``, namedtuples,
what is registered here, and dataclasses, attrs classes and ``SimpleNamespace``, which need no
registration. ``None`` is an empty container. All functions take ``is_leaf``, a function of a node
that says whether it is a leaf, and, where paths exist, ``is_leaf_takes_path``: it is then a
function of the path and the node.

Layer: ``transforms``.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree
from optree import PyTreeSpec as PyTreeDef
from optree.functools import partial as _partial

from functrans.core.boundary import guard as _guard
from functrans.errors import TreeMismatchError
from functrans.namespaces import listing as _listing
from functrans.pytrees import (
    BY_THEMSELVES,
    HOW_TO_REGISTER,
    LEAF_TYPES,
    NAMESPACE,
    describe,
    fields_of,
    has_fields,
    is_registered,
    is_static,
    register_fields,
    register_met,
)
from functrans.records import dataclass

Class = TypeVar("Class", bound=type)
_Asked = Callable[..., bool] | None
_LEAF = optree.treespec_leaf(namespace=NAMESPACE)
_NOT_GIVEN: Any = object()


@dataclass(frozen=True, slots=True)
class DictKey:
    """A key path's step into a dict.

    Example:
      >>> str(DictKey("w"))
      "['w']"
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """A key path's step into a tuple, list or deque.

    Example:
      >>> str(SequenceKey(0))
      '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """A key path's step to an attribute.

    Example:
      >>> str(GetAttrKey("w"))
      '.w'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """A key path's step into a registered class that says no keys.

    Example:
      >>> str(FlattenedIndexKey(1))
      '[<flat index 1>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Hashable
KeyPath = tuple[Hashable, ...]


class _OwnEntry(optree.PyTreeEntry):
    """The step that a registered class says itself: any object whose text is Python's."""

    __slots__ = ()

    def codify(self, /, node: str = "") -> str:
        return f"{node}{self.entry}"


def _key(entry: Any) -> Any:
    """The key of optree's step."""
    if isinstance(entry, _OwnEntry):
        return entry.entry
    if isinstance(entry, (optree.NamedTupleEntry, optree.StructSequenceEntry)):
        return GetAttrKey(entry.field)
    if isinstance(entry, optree.GetAttrEntry):
        return GetAttrKey(entry.name)
    if isinstance(entry, optree.MappingEntry):
        return DictKey(entry.key)
    if isinstance(entry, optree.GetItemEntry):
        return SequenceKey(entry.entry)
    return FlattenedIndexKey(entry.entry)


def _path(accessor: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([_key(entry) for entry in accessor])


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
            coming.extend([(*path, *_path(step)) for step in reversed(steps)])
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
    return [(_path(a), leaf) for a, leaf in zip(accessors, flat, strict=True)], treedef


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


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Args:
      keys: the path.
      simple: keys alone, without brackets and dots.
      separator: what stands between them.

    Example:
      >>> path = (DictKey("w"), SequenceKey(0))
      >>> keystr(path), keystr(path, simple=True, separator="/")
      ("['w'][0]", 'w/0')
    """

    def text(key: object) -> str:
        if simple and isinstance(key, (DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey)):
            (key,) = dataclasses.astuple(key)
        return str(key)

    return separator.join([text(key) for key in keys])


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
        (_key(found.path_entry_type(entry, found.type, found.kind)), child)
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


def _register(cls: type, flatten_one: Any, unflatten_one: Any, **entries: Any) -> None:
    _make_free(cls)
    optree.register_pytree_node(cls, flatten_one, unflatten_one, namespace=NAMESPACE, **entries)


def _make_free(cls: type) -> None:
    """Forget that a class was registered when it was first met.

    Raises:
      ValueError: it was registered by the user.
    """
    if cls in BY_THEMSELVES:
        BY_THEMSELVES.discard(cls)
        optree.unregister_pytree_node(cls, namespace=NAMESPACE)
    elif isinstance(cls, type) and is_registered(cls):
        raise ValueError(f"tree: {cls.__qualname__} is registered already")


def _checked(cls: type, function: Any, what: str) -> Any:
    """A function of a container whose result is checked to be a pair."""

    def flatten_one(value: object) -> Any:
        found = function(value)
        if type(found) is not tuple or len(found) != 2:
            raise TypeError(
                f"tree: the function that flattens {cls.__qualname__} returned {found!r}; expected "
                f"a tuple of two, {what} and what belongs to the structure"
            )
        try:
            return tuple(found[0]), found[1]
        except TypeError:
            raise TypeError(
                f"tree: the function that flattens {cls.__qualname__} returned {found[0]!r} for "
                f"{what}; expected an iterable"
            ) from None

    return flatten_one


def register_pytree_node(
    nodetype: Class,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], Any] | None = None,
) -> Class:
    """Make a class a container.

    Args:
      nodetype: the class; its subclasses are not registered with it.
      flatten_func: function of an object: its children, and what belongs to the structure, which
        is hashable.
      unflatten_func: function of the latter and the children: the object.
      flatten_with_keys_func: as in :func:`register_pytree_with_keys`.

    Returns:
      The class.

    Raises:
      ValueError: it is registered already.

    Example:
      >>> class Interval:
      ...     def __init__(self, lower, upper):
      ...         self.lower, self.upper = lower, upper
      >>> register_pytree_node(
      ...     Interval, lambda i: ((i.lower, i.upper), None), lambda _, ends: Interval(*ends)
      ... ).__name__
      'Interval'
      >>> leaves(Interval(1.0, 2.0))
      [1.0, 2.0]
    """
    if flatten_with_keys_func is not None:
        return register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func)
    _register(nodetype, _checked(nodetype, flatten_func, "the children"), unflatten_func)
    return nodetype


def register_pytree_with_keys(
    nodetype: Class,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], Any] | None = None,
) -> Class:
    """Make a class a container that says keys for its children.

    Args:
      nodetype: the class; its subclasses are not registered with it.
      flatten_with_keys: function of an object: pairs of key and child, and what belongs to the
        structure. Keys are :class:`DictKey` and the like, or any object whose text reads as Python.
      unflatten_func: function of the latter and the children: the object.
      flatten_func: not used; the same without keys.

    Returns:
      The class.

    Raises:
      ValueError: it is registered already.

    Example:
      >>> class Box:
      ...     def __init__(self, inside):
      ...         self.inside = inside
      >>> register_pytree_with_keys(
      ...     Box, lambda b: ([(GetAttrKey("inside"), b.inside)], None), lambda _, x: Box(*x)
      ... ).__name__
      'Box'
      >>> keystr(leaves_with_path([Box(1.0)])[0][0])
      '[0].inside'
    """
    checked = _checked(nodetype, flatten_with_keys, "pairs of key and child")

    def flatten_one(value: object) -> Any:
        pairs, structural = checked(value)
        keys, children = zip(*pairs, strict=True) if pairs else ((), ())
        return children, structural, keys

    _register(nodetype, flatten_one, unflatten_func, path_entry_type=_OwnEntry)
    return nodetype


def register_pytree_node_class(cls: Class) -> Class:
    """Make a class a container by its methods ``tree_flatten`` and ``tree_unflatten``.

    Example:
      >>> @register_pytree_node_class
      ... class Pair:
      ...     def __init__(self, x, y):
      ...         self.x, self.y = x, y
      ...
      ...     def tree_flatten(self):
      ...         return (self.x, self.y), None
      ...
      ...     @classmethod
      ...     def tree_unflatten(cls, structural, children):
      ...         return cls(*children)
      >>> leaves(Pair(1.0, 2.0))
      [1.0, 2.0]
    """
    return register_pytree_node(
        cls,
        operator.methodcaller("tree_flatten"),
        cls.tree_unflatten,  # type: ignore[attr-defined]  # the user's
    )


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Make a class a container by its ``tree_flatten_with_keys`` and ``tree_unflatten``.

    Example:
      >>> @register_pytree_with_keys_class
      ... class Named:
      ...     def __init__(self, x):
      ...         self.x = x
      ...
      ...     def tree_flatten_with_keys(self):
      ...         return ((GetAttrKey("x"), self.x),), None
      ...
      ...     @classmethod
      ...     def tree_unflatten(cls, structural, children):
      ...         return cls(*children)
      >>> leaves_with_path(Named(1.0))
      [((GetAttrKey(name='x'),), 1.0)]
    """
    return register_pytree_with_keys(
        cls,
        operator.methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]  # the user's
    )


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a class a container by names of attributes, which it takes as keywords.

    Dataclasses and attrs classes need it only to say fields other than those that they mark with
    ``metadata={"static": True}`` (or :func:`static`).

    Args:
      nodetype: the class.
      data_fields: attributes that are children; all fields that are not static if not given.
      meta_fields: attributes that belong to the structure, hashable; the static fields.
      drop_fields: fields that are left out: the class has defaults for them.

    Returns:
      The class.

    Raises:
      TypeError: only one of the two is given, or neither and the class has no fields.
      ValueError: fields are missing, unknown or given twice, or the class is registered already.

    Example:
      >>> @functools.partial(register_dataclass, data_fields=["x"], meta_fields=["unit"])
      ... @dataclasses.dataclass
      ... class Length:
      ...     x: float
      ...     unit: str
      >>> leaves(Length(2.0, "m"))
      [2.0]
    """
    who = f"register_dataclass: {nodetype.__qualname__}"
    own = fields_of(nodetype) if has_fields(nodetype) else None
    if data_fields is None and meta_fields is None:
        if own is None:
            raise TypeError(f"{who} is no dataclass; give data_fields and meta_fields")
        kept = [field for field in own if field.name not in drop_fields]
        data_fields = [field.name for field in kept if not is_static(field)]
        meta_fields = [field.name for field in kept if is_static(field)]
    if data_fields is None or meta_fields is None:
        raise TypeError(f"{who}: give both data_fields and meta_fields, or neither")
    names = [*data_fields, *meta_fields]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{who}: {twice} are given twice")
    if own is not None:
        expected = {field.name for field in own} - set(drop_fields)
        if missing := sorted(expected.difference(names)):
            raise ValueError(f"{who}: fields {missing} are missing; or give them as drop_fields")
        if unknown := sorted(set(names) - expected):
            raise ValueError(f"{who}: it takes no fields {unknown} when it is made")
    _make_free(nodetype)
    parameters = {field.name: getattr(field, "alias", field.name) for field in own or ()}
    register_fields(nodetype, data_fields, meta_fields, parameters)
    return nodetype


def register_static(cls: Class) -> Class:
    """Make the values of a class part of the structure: they are hashable and no arrays.

    Example:
      >>> @register_static
      ... class Mode(str):
      ...     pass
      >>> leaves((Mode("fast"), 1.0))
      [1.0]
    """
    _register(cls, lambda value: ((), value), lambda value, _: value)
    return cls


def static(**options: Any) -> Any:
    """A field of a dataclass that belongs to the structure: ``dataclasses.field``, marked.

    Example:
      >>> @dataclasses.dataclass
      ... class Layer:
      ...     w: float
      ...     name: str = static(default="dense")
      >>> leaves(Layer(1.0))
      [1.0]
    """
    marked = {**(options.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=marked, **options)


class Partial(_partial):  # type: ignore[type-arg]  # of anything
    """``functools.partial`` as a container: bound arguments are children, the function is not.

    Example:
      >>> import functrans as ft
      >>> step = Partial(lambda a, x: a * x, 2.0)
      >>> leaves(step)
      [2.0]
      >>> ft.grad(lambda f, x: f(x))(step, 3.0).args
      (array(3.),)
    """

    __slots__ = ()


_register_node: Any = optree.register_pytree_node
_register_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func, ("args", "keywords")),
    lambda func, children: Partial(func, *children[0], **children[1]),
    path_entry_type=optree.GetAttrEntry,
    namespace=NAMESPACE,
)

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
