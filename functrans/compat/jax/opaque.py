"""``jax.tree`` over ``functrans.tree``: classes that are not registered are leaves.

functrans takes dataclasses, attrs classes and ``SimpleNamespace`` for containers by themselves, JAX
only those that are registered; libraries written for JAX rely on that.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from functrans import tree
from functrans.pytrees import BY_THEMSELVES, has_fields, is_registered


def _is_opaque(node: object) -> bool:
    """Whether a node is a container by itself, without being registered."""
    cls = type(node)
    if cls in BY_THEMSELVES:
        return True
    return (has_fields(cls) or cls is SimpleNamespace) and not is_registered(cls)


def _by_registration(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function of pytrees whose ``is_leaf`` holds for what is not registered, too."""

    @functools.wraps(function)
    def call(*args: object, is_leaf: Callable[..., Any] | None = None, **options: object) -> Any:
        if len(args) > place and function is not tree.map:
            *args, is_leaf = args  # type: ignore[assignment]  # a list will do
        if is_leaf is None:
            asked: Any = _is_opaque
        elif options.get("is_leaf_takes_path"):
            asked = lambda path, node: is_leaf(path, node) or _is_opaque(node)  # noqa: E731
        else:
            asked = lambda node: is_leaf(node) or _is_opaque(node)  # noqa: E731
        return function(*args, is_leaf=asked, **options)

    return call


flatten, leaves, structure, all, flatten_with_path, leaves_with_path = (
    _by_registration(function, 1)
    for function in (
        tree.flatten, tree.leaves, tree.structure, tree.all, tree.flatten_with_path,
        tree.leaves_with_path,
    )
)  # fmt: skip
broadcast = _by_registration(tree.broadcast, 2)
reduce = _by_registration(tree.reduce, 3)
map, map_with_path, reduce_associative = (
    _by_registration(function, 10**6)
    for function in (tree.map, tree.map_with_path, tree.reduce_associative)
)
