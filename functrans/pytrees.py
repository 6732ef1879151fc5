"""Pytrees as the library uses them: nested containers of arrays, and key paths for messages.

Here: flatten and unflatten, key paths, which classes are containers. Not here: the functions for
users (``functrans.tree``). The containers are optree's, in the namespace ``"functrans"``: tuples,
lists, dicts, namedtuples, what was registered, and dataclasses, attrs classes and
``SimpleNamespace``, which are registered when first met. ``None`` is an empty container.

Arrays of dtype ``float0`` hold no numbers: they are the tangents and cotangents of integers and
booleans. They are leaves for users; what stages programs folds them into the structure
(``fold_float0``), so that no program knows of them.

optree is imported when a container is first met: a single array needs none of it, and its import
costs a fifth of NumPy's.

Layer: ``tree``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from functrans.errors import TreeMismatchError, UnsupportedOperationError

NAMESPACE = "functrans"
FLOAT0 = np.dtype([("float0", "V")])
"""Dtype of the tangents of integers and booleans: elements without size."""

HOW_TO_REGISTER = "make its class a container with ft.tree.register_pytree_node"
"""What to do where an object is no array, for messages."""


class LeafDef:
    """The structure of a single leaf."""

    __slots__ = ()
    num_leaves = 1

    def __repr__(self) -> str:
        """``*``, as optree writes a leaf."""
        return "PyTreeSpec(*)"

    def __reduce__(self) -> str:
        """The one instance, also in copies."""
        return "LEAF"


LEAF = LeafDef()
LEAF_TYPES = {np.ndarray, float, int, complex, bool, np.float64, np.float32}
"""Types that are never containers, the tracers of the library among them."""


@lru_cache(maxsize=1)
def _optree() -> Any:
    import optree

    return optree


class _Float0:
    """An array of dtype ``float0`` as a container without leaves; unflattened, it is the array."""

    __slots__ = ("shape",)

    def __init__(self, shape: Any) -> None:
        self.shape = shape


@lru_cache(maxsize=1)
def _register_float0() -> None:
    _optree().register_pytree_node(
        _Float0,
        lambda folded: ((), folded.shape),
        lambda shape, _: np.zeros(shape, FLOAT0),
        namespace=NAMESPACE,
    )


def is_float0(value: object) -> bool:
    """Whether a value is an array of dtype ``float0``."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "V" and value.dtype == FLOAT0


def fold_float0(tree: object, shape: Callable[[Any], Any] = tuple) -> Any:
    """The tree with arrays of dtype ``float0`` as parts of its structure.

    Args:
      tree: the tree.
      shape: the shape to give each of them, as a function of its own.

    Returns:
      The tree, the same if there are none. Its structure gives the arrays back when it is
      unflattened.
    """
    flat, treedef = flatten(tree)
    return _folded(flat, treedef, shape) if any(is_float0(leaf) for leaf in flat) else tree


def flatten_folded(tree: object) -> tuple[list[Any], Any]:
    """Leaves and structure of a pytree, with arrays of dtype ``float0`` in the structure."""
    flat, treedef = flatten(tree)
    if any(is_float0(leaf) for leaf in flat):
        return flatten(_folded(flat, treedef, tuple))
    return flat, treedef


def _folded(flat: Sequence[Any], treedef: object, shape: Callable[[Any], Any]) -> Any:
    _register_float0()
    return unflatten(
        treedef, [_Float0(shape(leaf.shape)) if is_float0(leaf) else leaf for leaf in flat]
    )


BY_THEMSELVES: set[type] = set()
"""Classes that were registered when they were first met; an explicit registration replaces it."""


def register_fields(
    cls: type, names: Sequence[str], static: Sequence[str], parameters: dict[str, str] | None = None
) -> None:
    """Make a class a container: some attributes are the children, others part of the structure.

    Args:
      cls: the class; it takes all of these by name.
      names: attributes that are children.
      static: attributes that are part of the structure; hashable.
      parameters: names under which the class takes them, where they differ.
    """
    names, static = tuple(names), tuple(static)
    asked = [(parameters or {}).get(name, name) for name in (*names, *static)]
    own = _own_fields(cls)

    def flatten_one(value: object) -> tuple[Any, ...]:
        for field in own:
            _check_unchanged(value, field)
        kept = tuple([getattr(value, name) for name in static]) if static else None
        return tuple([getattr(value, name) for name in names]), kept, names

    def unflatten_one(kept: Any, children: tuple[Any, ...]) -> Any:
        return cls(**dict(zip(asked, (*children, *kept) if static else children, strict=True)))

    optree = _optree()
    optree.register_pytree_node(
        cls, flatten_one, unflatten_one, path_entry_type=optree.GetAttrEntry, namespace=NAMESPACE
    )


def fields_of(cls: type) -> Sequence[Any]:
    """The fields of a dataclass or attrs class that it takes when it is made."""
    fields = getattr(cls, "__attrs_attrs__", None) or dataclasses.fields(cls)
    return [field for field in fields if field.init]


_MISSING = object()


def _own_fields(cls: type) -> Sequence[Any]:
    """The fields that a class fills by itself, each with the same value whenever it is made."""
    if not has_fields(cls) or any(
        hasattr(cls, name) for name in ("__post_init__", "__attrs_post_init__")
    ):
        return ()
    fields = getattr(cls, "__attrs_attrs__", None) or dataclasses.fields(cls)
    return [
        field
        for field in fields
        if not field.init and not getattr(field.default, "takes_self", False)
    ]


def _check_unchanged(value: object, field: Any) -> None:
    """Refuse an object with a field that a new one would not have.

    Raises:
      UnsupportedOperationError: the field was set later, and the class does not take it.
    """
    found = getattr(value, field.name, _MISSING)
    factory = getattr(field, "default_factory", getattr(field.default, "factory", None))
    expected = field.default if not callable(factory) else factory()
    if expected is dataclasses.MISSING or repr(expected) == "NOTHING":
        expected = _MISSING
    if found is expected or (type(found) is type(expected) and np.array_equal(found, expected)):  # type: ignore[arg-type]  # of anything
        return
    anew = "none" if expected is _MISSING else repr(expected)
    raise UnsupportedOperationError(
        f"the field {field.name!r} of a {type(value).__qualname__} was changed after the "
        f"object was made, and its class does not take it (init=False): the objects that are made "
        f"of its leaves would have {anew} there. Let the class take it (init=True), compute it "
        f"from the other fields in __post_init__, or {HOW_TO_REGISTER}"
    )


def has_fields(cls: type) -> bool:
    """Whether a class is a dataclass or an attrs class."""
    return dataclasses.is_dataclass(cls) or hasattr(cls, "__attrs_attrs__")


def is_static(field: Any) -> bool:
    """Whether a field is part of the structure: it has ``metadata={"static": True}``."""
    return bool(field.metadata.get("static"))


def _register_by_itself(cls: type) -> None:
    BY_THEMSELVES.add(cls)
    if cls is not SimpleNamespace:
        fields = fields_of(cls)
        register_fields(
            cls,
            [field.name for field in fields if not is_static(field)],
            [field.name for field in fields if is_static(field)],
            {field.name: getattr(field, "alias", field.name) for field in fields},
        )
        return

    def flatten_one(value: object) -> tuple[Any, ...]:
        names = tuple(sorted(vars(value)))
        return tuple([getattr(value, name) for name in names]), names, names

    def unflatten_one(names: Sequence[Any], children: Sequence[Any]) -> Any:
        return SimpleNamespace(**dict(zip(names, children, strict=True)))

    optree = _optree()
    optree.register_pytree_node(
        cls, flatten_one, unflatten_one, path_entry_type=optree.GetAttrEntry, namespace=NAMESPACE
    )


def register_met(leaves: Sequence[Any]) -> bool:
    """Register what is a container by itself among leaves; whether there was any that was not."""
    kinds = {type(leaf) for leaf in leaves} - LEAF_TYPES
    if not kinds:
        return False
    missing = [
        kind
        for kind in kinds
        if (kind is SimpleNamespace or has_fields(kind)) and not is_registered(kind)
    ]
    for kind in missing:
        _register_by_itself(kind)
    return bool(missing)


def register_class(cls: type, flatten_one: Any, unflatten_one: Any) -> None:
    """Make a class a container, if the user has not done so.

    Args:
      cls: the class; it may have been registered when it was first met.
      flatten_one: from an object to its children and what belongs to the structure.
      unflatten_one: from children and that to an object.
    """
    if cls in BY_THEMSELVES:
        BY_THEMSELVES.discard(cls)
        _optree().unregister_pytree_node(cls, namespace=NAMESPACE)
    if not is_registered(cls):
        _optree().register_pytree_node(
            cls,
            lambda value: tuple(flatten_one(value)[:2]),
            lambda kept, children: unflatten_one(list(children), kept),
            namespace=NAMESPACE,
        )


def is_registered(cls: type) -> bool:
    """Whether a class is a container."""
    return _optree().register_pytree_node.get(cls, namespace=NAMESPACE) is not None


def flatten(
    tree: object, none_is_leaf: bool = False, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], Any]:
    """Leaves and structure of a pytree.

    Args:
      tree: nested containers; anything that is no container is a leaf.
      none_is_leaf: whether ``None`` is one; it is an empty container.
      is_leaf: which other nodes are.

    Returns:
      List of leaves in order, and the structure for :func:`unflatten`.

    Example:
      >>> leaves, treedef = flatten({"b": 1.0, "a": (2.0, 3.0)})
      >>> leaves
      [2.0, 3.0, 1.0]
    """
    if type(tree) in LEAF_TYPES:
        return [tree], LEAF
    optree = _optree()
    leaves, treedef = optree.tree_flatten(
        tree, is_leaf, none_is_leaf=none_is_leaf, namespace=NAMESPACE
    )
    if register_met(leaves):
        return flatten(tree, none_is_leaf, is_leaf)
    if treedef.is_leaf():
        return leaves, LEAF
    return leaves, treedef


def dict_orders(tree: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    """The keys of the dicts in a pytree, in the order of each: structures are equal in any order.

    Example:
      >>> dict_orders(({"b": 1.0, "a": 2.0}, 3.0))
      (('b', 'a'),)
    """
    found: list[tuple[Any, ...]] = []
    _collect_orders((tree,), found)
    return tuple(found)


def _collect_orders(children: Any, found: list[tuple[Any, ...]]) -> None:
    for x in children:
        kind = type(x)
        if kind in LEAF_TYPES or x is None:
            continue
        if kind is tuple or kind is list:
            _collect_orders(x, found)
        elif isinstance(x, dict):
            if len(x) > 1:
                found.append(tuple(x))
            if x:
                _collect_orders(x.values(), found)
        elif isinstance(x, (tuple, list)):
            _collect_orders(x, found)
        else:
            node = _optree().register_pytree_node.get(kind, namespace=NAMESPACE)
            if node is not None:
                _collect_orders(node.flatten_func(x)[0], found)


def unflatten(treedef: Any, leaves: Sequence[Any]) -> Any:
    """Put leaves back into a structure."""
    if treedef is LEAF:
        return leaves[0]
    return treedef.unflatten(leaves)


def map(fun: Callable[..., Any], tree: Any, *rest: object) -> Any:  # jax.tree.map's name
    """Apply a function to corresponding leaves.

    Args:
      fun: function of as many leaves as there are trees.
      tree: first tree, whose structure the result has.
      *rest: trees of the same structure.

    Returns:
      Tree of the results.

    Raises:
      TreeMismatchError: structures differ; the message names both.

    Example:
      >>> map(lambda x, y: x + y, {"a": 1.0}, {"a": 2.0})
      {'a': 3.0}
    """
    flat, treedef = flatten(tree)
    columns = [flat]
    for other in rest:
        other_flat, other_def = flatten(other)
        check_same(treedef, other_def, "tree.map", "first tree", "another tree")
        columns.append(other_flat)
    return unflatten(treedef, [fun(*row) for row in zip(*columns, strict=True)])


def leaves(tree: object) -> list[Any]:
    """The leaves of a pytree in order."""
    return flatten(tree)[0]


def structure(tree: object) -> Any:
    """The structure of a pytree."""
    return flatten(tree)[1]


def key_paths(tree: object, root: str) -> list[str]:
    """The key path of each leaf as Python would write it: ``args[0]['w']``."""
    if type(tree) in LEAF_TYPES:
        return [root]
    return paths_of(structure(tree), root)


def paths_of(treedef: Any, root: str) -> list[str]:
    """The key paths of the leaves of a structure."""
    if treedef is LEAF:
        return [root]
    return [accessor.codify(root) for accessor in treedef.accessors()]


def children_of(treedef: Any) -> list[Any]:
    """The structures of the items of a container."""
    return [LEAF if child.is_leaf() else child for child in treedef.children()]


def children_up_to(treedef: Any, tree: object) -> list[Any]:
    """The items of a tree that is a container of the same kind as the root of a structure.

    Raises:
      TreeMismatchError: it is no such container.
    """
    try:
        return treedef.one_level().flatten_up_to(tree)
    except ValueError as error:
        raise TreeMismatchError(str(error)) from None


def check_same(
    expected: object, received: object, who: str, expected_name: str, received_name: str
) -> None:
    """Refuse two different structures.

    Raises:
      TreeMismatchError: names both structures.
    """
    if expected != received:
        raise TreeMismatchError(
            f"{who}: {received_name} has structure {in_words(received)}, but {expected_name} has "
            f"{in_words(expected)}; both must be the same"
        )


def describe(treedef: object) -> str:
    """A structure as text."""
    if treedef is LEAF:
        return "*"
    return str(treedef).removeprefix("PyTreeSpec(").partition(", name")[0].removesuffix(")")


def in_words(treedef: Any) -> str:
    """A structure as text that says what its outermost container is."""
    if treedef is LEAF or treedef.is_leaf():
        return "* (an array)"
    if treedef.type is type(None):
        return "None"
    return f"{describe(treedef)} (a {treedef.type.__name__} of {treedef.num_children})"


def broadcast_prefix(prefix: object, tree: object, who: str, prefix_name: str) -> list[Any]:
    """Repeat the leaves of a tree prefix for the leaves of the tree below them.

    ``None`` in the prefix is a leaf (axis specifications use it).

    Raises:
      TreeMismatchError: it is no prefix of the tree.
    """
    if prefix is None or type(prefix) in LEAF_TYPES:
        return [prefix] * len(leaves(tree))
    optree = _optree()
    numbers, treedef = flatten(tree)  # registers dataclasses
    numbered = unflatten(treedef, list(range(len(numbers))))
    result: list[Any] = [None] * len(numbers)

    def repeat(entry: int | None, below: int | tuple[int, ...]) -> None:
        """Give an entry to the leaves below it, wherever the tree's own order has them."""
        for number in leaves(below):
            result[number] = entry

    try:
        optree.tree_map_(repeat, prefix, numbered, is_leaf=lambda x: x is None, namespace=NAMESPACE)
    except (ValueError, TypeError) as error:
        raise TreeMismatchError(
            f"{who}: {prefix_name}={prefix!r} is no tree prefix of the value it belongs to, which "
            f"has structure {describe(treedef)}; give one entry per top-level item, or a "
            f"single one for all ({error})"
        ) from None
    return result
