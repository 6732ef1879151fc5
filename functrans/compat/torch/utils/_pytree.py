"""``torch.utils._pytree``: nested containers by PyTorch's rules.

Here: the table of containers, structures, key paths, maps. Not here: pytrees of the library
(``functrans.pytrees``), whose ``None`` is a container without leaves and whose dicts are sorted.

``None`` is a leaf, dicts keep their order, and containers are ``tuple``, ``list``, ``dict``,
``OrderedDict``, ``defaultdict``, ``deque``, ``torch.Size``, namedtuples, and classes that are
registered; other subclasses are leaves. A registered class is a container of ``torch.func``, too.

Layer: ``compat``. Reference: PyTorch's source of this module, for the rules and the names.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, NamedTuple, TypeAlias

from functrans import pytrees
from functrans.autograd.sizes import Size

__all__ = [
    "SUPPORTED_NODES", "Context", "FlattenFn", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec",
    "MappingKey", "NodeDef", "PyTree", "PyTreeSpec", "SequenceKey", "TreeSpec", "UnflattenFn",
    "arg_tree_leaves", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only",
    "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_pprint",
]  # fmt: skip

PyTree: TypeAlias = Any
Context: TypeAlias = Any
FlattenFn = Callable[[Any], tuple[Sequence[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
IsLeaf = Callable[[PyTree], bool] | None
Chosen = type | tuple[type, ...] | UnionType | Callable[[Any], bool]

# key paths ---------------------------------------------------------------------------------------


class _Key:
    """A step of a key path: how Python writes it, and what lies there."""

    _format = "[{!r}]"
    _get: Callable[[Any, Any], object] = operator.getitem

    def __str__(self) -> str:
        return self._format.format(*vars(self).values())

    def get(self, container: Any) -> object:
        """What lies at the step in a container."""
        return type(self)._get(container, *vars(self).values())


@dataclass(frozen=True)
class SequenceKey(_Key):
    """A step to an item of a sequence."""

    idx: int


@dataclass(frozen=True)
class MappingKey(_Key):
    """A step to a value of a dict."""

    key: object


@dataclass(frozen=True)
class GetAttrKey(_Key):
    """A step to an attribute."""

    name: str
    _format = ".{}"
    _get = getattr


KeyEntry: TypeAlias = Any
KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """A key path as Python writes it.

    Example:
      >>> [keystr(path) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
      ["['a'][0]", "['a'][1]"]
    """
    return "".join(map(str, kp))


def key_get(obj: PyTree, kp: KeyPath) -> object:
    """What lies at the end of a key path."""
    return functools.reduce(lambda inner, key: key.get(inner), kp, obj)


# containers --------------------------------------------------------------------------------------


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is one of ``namedtuple``."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(name) is str for name in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_structseq_class(cls: type) -> bool:
    """Whether a class is of tuples with names that C code makes, as ``time.struct_time``."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(
            isinstance(getattr(cls, name, None), int)
            for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
        )
    )


def _checks(is_class: Callable[[type], bool], what: str) -> list[Callable[[Any], bool]]:
    """Whether an object is of such a class; whether it is, or is such a class itself."""

    def of_object(obj: object) -> bool:
        return is_class(type(obj))

    def of_either(obj: object) -> bool:
        return is_class(obj if isinstance(obj, type) else type(obj))

    of_object.__doc__ = f"Whether an object is a {what}."
    of_either.__doc__ = f"Whether an object is a {what}, or a class of them."
    of_either.__name__ = of_either.__qualname__ = is_class.__name__.removesuffix("_class")
    of_object.__name__ = of_object.__qualname__ = f"{of_either.__name__}_instance"
    return [of_object, of_either]


is_namedtuple_instance, is_namedtuple = _checks(is_namedtuple_class, "namedtuple")
is_structseq_instance, is_structseq = _checks(is_structseq_class, "tuple with names of C code")


class NodeDef(NamedTuple):
    """How a container is taken apart and put together."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    keys: Callable[[Any], Sequence[KeyEntry]] | None
    """Steps to the children, in their order."""


def _places(x: Sequence[object]) -> list[KeyEntry]:
    return [SequenceKey(i) for i in range(len(x))]


def _names(x: dict[object, object]) -> list[KeyEntry]:
    return [MappingKey(key) for key in x]


def _items(x: dict[object, object]) -> tuple[list[object], Context]:
    return list(x.values()), list(x)


def _filled(children: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, children, strict=True))


SUPPORTED_NODES: dict[Any, NodeDef] = {
    kind: NodeDef(kind, flatten, unflatten, keys)
    for kind, flatten, unflatten, keys in (
        (tuple, lambda x: (list(x), None), lambda c, _: tuple(c), _places),
        (list, lambda x: (x, None), lambda c, _: list(c), _places),
        (Size, lambda x: (list(x), None), lambda c, _: Size(c), _places),
        (deque, lambda x: (list(x), x.maxlen), lambda c, n: deque(c, maxlen=n), _places),
        (dict, _items, _filled, _names),
        (OrderedDict, _items, lambda c, keys: OrderedDict(_filled(c, keys)), _names),
        (
            defaultdict,
            lambda x: (list(x.values()), [x.default_factory, list(x)]),
            lambda c, context: defaultdict(context[0], _filled(c, context[1])),
            _names,
        ),
        (
            namedtuple,
            lambda x: (list(x), type(x)),
            lambda c, kind: kind(*c),
            lambda x: [GetAttrKey(name) for name in x._fields],
        ),
    )
}
"""Class to what is known of it; ``namedtuple`` stands for all of its classes."""

_DICTS = (dict, OrderedDict, defaultdict)


def _keys_of(kind: object, context: Context) -> list[object]:
    keys: list[object] = context[1] if kind is defaultdict else context
    return keys


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[Sequence[Any], Context]] | None = None,
) -> None:
    """Make a class a container.

    Args:
      cls: the class.
      flatten_fn: from an object to its children and a context.
      unflatten_fn: from children and a context to an object.
      serialized_type_name: accepted.
      to_dumpable_context: accepted.
      from_dumpable_context: accepted.
      flatten_with_keys_fn: like ``flatten_fn``, with pairs of a key and a child.

    Raises:
      ValueError: it is one already.

    Example:
      >>> class Box:
      ...     def __init__(self, inner):
      ...         self.inner = inner
      >>> register_pytree_node(Box, lambda b: ([b.inner], None), lambda c, _: Box(*c))
      >>> tree_map(lambda x: x + 1, Box(1)).inner
      2
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls!r} is already registered as pytree node.")
    with_keys = flatten_with_keys_fn
    keys = None if with_keys is None else lambda x: [key for key, _ in with_keys(x)[0]]
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, keys)
    pytrees.register_class(cls, flatten_fn, unflatten_fn)


def _node_type(tree: PyTree) -> Any:
    """Of a container its class in the table."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if is_namedtuple_class(kind) else None


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether an object is a leaf.

    Example:
      >>> tree_is_leaf(None), tree_is_leaf([1])
      (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


# structures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeSpec:
    """The structure of a tree: its container, what that keeps, and the structures of its children.

    Example:
      >>> tree_structure([1, (2, 3)])
      TreeSpec(list, None, [*,
        TreeSpec(tuple, None, [*,
          *])])
    """

    type: Any
    context: Context
    children_specs: list[TreeSpec]
    num_nodes: int = field(init=False, compare=False)
    num_leaves: int = field(init=False, compare=False)
    num_children: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        specs = self.children_specs
        vars(self).update(
            num_nodes=1 + sum(spec.num_nodes for spec in specs),
            num_leaves=sum(spec.num_leaves for spec in specs) + (self.type is None),
            num_children=len(specs),
        )

    def __hash__(self) -> int:
        context = self.context
        if self.type in _DICTS:
            context = tuple(map(repr, context))
        return hash((self.type, context, tuple(self.children_specs)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        name = getattr(self.type, "__name__", self.type)
        lines = ",\n".join(map(repr, self.children_specs)).replace("\n", "\n  ")
        return f"TreeSpec({name}, {self.context}, [{lines}])"

    def is_leaf(self) -> bool:
        """Whether it is that of a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one of them."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with given leaves.

        Raises:
          ValueError: there are more or fewer.
        """
        given = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers "
                f"to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._filled(iter(given))

    def _filled(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        children = [child._filled(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The subtrees of a tree at the places of the leaves.

        Raises:
          ValueError: the tree has another structure above them.
        """
        found: list[PyTree] = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: PyTree, found: list[PyTree]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _node_type(tree)
        are_dicts = self.type in _DICTS and kind in _DICTS
        if kind is not self.type and not are_dicts:
            got = type(tree) if kind is None else kind
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {got!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if are_dicts:
            expected, own = _keys_of(self.type, self.context), set(tree)
            if own != set(expected):
                missing, extra = set(expected) - own, own - set(expected)
                texts = [f"missing key(s): {missing}"] * bool(missing)
                texts += [f"extra key(s): {extra}"] * bool(extra)
                raise ValueError(f"Node keys mismatch; {'; '.join(texts)}.")
            children = [tree[key] for key in expected]
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if not are_dicts and kind is not deque and context != self.context:
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected {self.context!r}, "
                f"but got {context!r}."
            )
        for spec, child in zip(self.children_specs, children, strict=True):
            spec._collect(child, found)


class LeafSpec(TreeSpec):
    """The structure of a leaf.

    Example:
      >>> tree_structure(3) == LeafSpec()
      True
    """

    def __init__(self) -> None:
        super().__init__(None, None, [])


PyTreeSpec = TreeSpec
_LEAF = LeafSpec()


def _flattened(
    tree: PyTree, is_leaf: IsLeaf, found: list[Any], path: KeyPath | None = None
) -> TreeSpec:
    """The structure; leaves, or pairs with their paths, are appended."""
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        found.append(tree if path is None else (path, tree))
        return _LEAF
    node = SUPPORTED_NODES[kind]
    children, context = node.flatten_fn(tree)
    if path is None:
        return TreeSpec(kind, context, [_flattened(c, is_leaf, found) for c in children])
    if node.keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    steps = zip(node.keys(tree), children, strict=True)
    specs = [_flattened(child, is_leaf, found, (*path, key)) for key, child in steps]
    return TreeSpec(kind, context, specs)


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Leaves and structure.

    Args:
      tree: the tree.
      is_leaf: whether a container is to be a leaf.

    Example:
      >>> tree_flatten({"b": 1, "a": None})
      ([1, None], TreeSpec(dict, ['b', 'a'], [*,
        *]))
    """
    leaves: list[Any] = []
    spec = _flattened(tree, is_leaf, leaves)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with given leaves.

    Raises:
      TypeError: it is no structure.
      ValueError: there are more or fewer leaves.

    Example:
      >>> tree_unflatten([1, 2], tree_structure(("x", ["y"])))
      (1, [2])
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but "
            f"got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after another."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return tree_leaves((args, kwargs))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Pairs of key paths and leaves, and the structure.

    Raises:
      ValueError: a class was registered without keys.
    """
    pairs: list[tuple[KeyPath, Any]] = []
    spec = _flattened(tree, is_leaf, pairs, ())
    return pairs, spec


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Pairs of key paths and leaves."""
    return tree_flatten_with_path(tree, is_leaf)[0]


# maps --------------------------------------------------------------------------------------------


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """The tree of a function's values at the leaves.

    Args:
      func: of a leaf, and of what lies at its place in each other tree.
      tree: gives the structure.
      *rests: trees that have this structure above their own.
      is_leaf: whether a container is to be a leaf.

    Raises:
      ValueError: one of them has another structure.

    Example:
      >>> tree_map(lambda x, y: (x, y), {"a": 1, "b": None}, {"b": 2, "a": [3]})
      {'a': (1, [3]), 'b': (None, 2)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[spec.flatten_up_to(rest) for rest in rests]]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Call a function at all leaves; returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """``tree_map`` of a function of the key path and the leaves."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    rows = zip(pairs, *columns, strict=True)
    return spec.unflatten([func(*pair, *others) for pair, *others in rows])


def _is_chosen(chosen: Chosen) -> Callable[[Any], bool]:
    if isinstance(chosen, (type, tuple, UnionType)):
        return lambda x: isinstance(x, chosen)
    if callable(chosen):
        return chosen
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_map_only(
    type_or_types_or_pred: Chosen,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """``tree_map`` where a leaf is of a class; the others stay.

    Args:
      type_or_types_or_pred: a class, several, or a function of a leaf.
      func: of a leaf.
      tree: the tree.
      is_leaf: whether a container is to be a leaf.

    Raises:
      TypeError: the first argument is something else.

    Example:
      >>> tree_map_only(int, lambda x: -x, [1, "a"])
      [-1, 'a']
    """
    is_chosen = _is_chosen(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if is_chosen(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Chosen,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """Call a function at the leaves of a class; returns the tree."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a condition holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a condition holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Chosen, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether a condition holds for all leaves of a class."""
    is_chosen = _is_chosen(type_or_types)
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if is_chosen(x))


def tree_any_only(
    type_or_types: Chosen, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether a condition holds for a leaf of a class."""
    is_chosen = _is_chosen(type_or_types)
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if is_chosen(x))


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as the tree is written, with stars for leaves.

    Example:
      >>> treespec_pprint(tree_structure({"a": [1, 2]}))
      "{'a': [*, *]}"
    """
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


_register_pytree_node = register_pytree_node


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """The leaves of a prefix of a structure, each as often as it stands for leaves of that.

    Returns:
      ``None`` if it is no prefix.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    own = (kind, context, len(children))
    if treespec.is_leaf() or own != (treespec.type, treespec.context, treespec.num_children):
        return None
    pairs = zip(children, treespec.children_specs, strict=True)
    parts = [_broadcast_to_and_flatten(child, spec, is_leaf) for child, spec in pairs]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]
