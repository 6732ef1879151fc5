"""Key paths: where in a pytree a leaf is.

Here: the steps of a path, which are optree's in JAX's words, and a path as text. Not here: the
functions that give paths (``functrans.tree``).

Layer: ``transforms``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import optree

from functrans.records import dataclass


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


class OwnEntry(optree.PyTreeEntry):
    """The step that a registered class says itself: any object whose text is Python's."""

    __slots__ = ()

    def codify(self, /, node: str = "") -> str:
        """The step behind the text of a node."""
        return f"{node}{self.entry}"


def key_of(entry: Any) -> Any:
    """The key of optree's step."""
    if isinstance(entry, OwnEntry):
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


def path_of(accessor: Sequence[Any]) -> tuple[Any, ...]:
    """The key path of optree's steps."""
    return tuple([key_of(entry) for entry in accessor])


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
