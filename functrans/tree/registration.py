"""Classes as containers of pytrees: registered by functions, by methods, by names of attributes.

Here: registration, fields that belong to the structure, ``Partial``. Not here: classes that need no
registration (``functrans.pytrees``), the functions of pytrees (``functrans.tree``).

Layer: ``transforms``.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree
from optree.functools import partial as _partial

from functrans.pytrees import (
    BY_THEMSELVES,
    NAMESPACE,
    fields_of,
    has_fields,
    is_registered,
    is_static,
    register_fields,
)
from functrans.tree.keys import OwnEntry

Class = TypeVar("Class", bound=type)


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
      >>> import functrans as ft
      >>> class Interval:
      ...     def __init__(self, lower, upper):
      ...         self.lower, self.upper = lower, upper
      >>> register_pytree_node(
      ...     Interval, lambda i: ((i.lower, i.upper), None), lambda _, ends: Interval(*ends)
      ... ).__name__
      'Interval'
      >>> ft.tree.leaves(Interval(1.0, 2.0))
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
      >>> import functrans as ft
      >>> class Box:
      ...     def __init__(self, inside):
      ...         self.inside = inside
      >>> register_pytree_with_keys(
      ...     Box,
      ...     lambda b: ([(ft.tree.GetAttrKey("inside"), b.inside)], None),
      ...     lambda _, x: Box(*x),
      ... ).__name__
      'Box'
      >>> ft.tree.keystr(ft.tree.leaves_with_path([Box(1.0)])[0][0])
      '[0].inside'
    """
    checked = _checked(nodetype, flatten_with_keys, "pairs of key and child")

    def flatten_one(value: object) -> Any:
        pairs, structural = checked(value)
        keys, children = zip(*pairs, strict=True) if pairs else ((), ())
        return children, structural, keys

    _register(nodetype, flatten_one, unflatten_func, path_entry_type=OwnEntry)
    return nodetype


def register_pytree_node_class(cls: Class) -> Class:
    """Make a class a container by its methods ``tree_flatten`` and ``tree_unflatten``.

    Example:
      >>> import functrans as ft
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
      >>> ft.tree.leaves(Pair(1.0, 2.0))
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
      >>> import functrans as ft
      >>> @register_pytree_with_keys_class
      ... class Named:
      ...     def __init__(self, x):
      ...         self.x = x
      ...
      ...     def tree_flatten_with_keys(self):
      ...         return ((ft.tree.GetAttrKey("x"), self.x),), None
      ...
      ...     @classmethod
      ...     def tree_unflatten(cls, structural, children):
      ...         return cls(*children)
      >>> ft.tree.leaves_with_path(Named(1.0))
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
      >>> import functools
      >>> import functrans as ft
      >>> @functools.partial(register_dataclass, data_fields=["x"], meta_fields=["unit"])
      ... @dataclasses.dataclass
      ... class Length:
      ...     x: float
      ...     unit: str
      >>> ft.tree.leaves(Length(2.0, "m"))
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
      >>> import functrans as ft
      >>> @register_static
      ... class Mode(str):
      ...     pass
      >>> ft.tree.leaves((Mode("fast"), 1.0))
      [1.0]
    """
    _register(cls, lambda value: ((), value), lambda value, _: value)
    return cls


def static(**options: Any) -> Any:
    """A field of a dataclass that belongs to the structure: ``dataclasses.field``, marked.

    Example:
      >>> import functrans as ft
      >>> @dataclasses.dataclass
      ... class Layer:
      ...     w: float
      ...     name: str = static(default="dense")
      >>> ft.tree.leaves(Layer(1.0))
      [1.0]
    """
    marked = {**(options.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=marked, **options)


class Partial(_partial):  # type: ignore[type-arg]  # of anything
    """``functools.partial`` as a container: bound arguments are children, the function is not.

    Example:
      >>> import functrans as ft
      >>> step = Partial(lambda a, x: a * x, 2.0)
      >>> ft.tree.leaves(step)
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
