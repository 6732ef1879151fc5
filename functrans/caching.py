"""What the library remembers beside programs, listed, so that ``clear_caches`` can forget it.

Here: ``remembered``, for functions, ``Table`` and ``WeakTable``. Not here: what is known of
programs (``ir.analyses``), files (``compiler.cache``), tables of the library's own names and of the
machine, which do not depend on what users do (``functools.cache``).

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

import functools
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_functions: list[functools._lru_cache_wrapper[Any]] = []
_tables: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_lock = RLock()


def remembered(size: int) -> Callable[[Callable[..., V]], functools._lru_cache_wrapper[V]]:
    """``functools.lru_cache`` of a size, which is forgotten with all others."""

    def decorated(function: Callable[..., V]) -> functools._lru_cache_wrapper[V]:
        known = functools.lru_cache(size)(function)
        _functions.append(known)
        return known

    return decorated


class Table(OrderedDict[K, V]):
    """A dictionary of the entries that were used last, which is forgotten with all others.

    Args:
      name: what it holds.
      size: how many there may be.
    """

    __slots__ = ("_lock", "_size", "name")

    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        self.name = name
        self._size = size
        self._lock = RLock()
        _list(self)

    def used(self, key: K) -> V | None:
        """The value of a key, which is forgotten last from now on; ``None`` if there is none."""
        with self._lock:
            value = self.get(key)
            if value is not None:
                self.move_to_end(key)
            return value

    def __setitem__(self, key: K, value: V) -> None:
        """Keep a value; the one that was not used for longest goes if there are too many."""
        with self._lock:
            super().__setitem__(key, value)
            self.move_to_end(key)
            if len(self) > self._size:
                self.popitem(last=False)

    def kept(self, key: K, value: V) -> V:
        """The value of a key from now on: the given one, if there is none."""
        with self._lock:
            found = self.used(key)
            if found is None:
                self[key] = found = value
            return found

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            super().clear()

    def all(self) -> list[V]:
        """The values, those last that were used last."""
        with self._lock:
            return list(self.values())


class WeakTable(weakref.WeakKeyDictionary[K, V]):
    """A ``WeakKeyDictionary`` that is forgotten with all others.

    Args:
      name: what it holds.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        _list(self)


def _list(table: Any) -> None:
    with _lock:
        _tables[id(table)] = table


def _listed() -> list[Table[Any, Any] | WeakTable[Any, Any]]:
    with _lock:
        return list(_tables.values())


def forget() -> None:
    """Forget everything that is listed here."""
    for function in _functions:
        function.cache_clear()
    for table in _listed():
        table.clear()


def counted() -> Counter[str]:
    """How many values are remembered, by name of the function or table."""
    found: Counter[str] = Counter()
    for function in _functions:
        found[f"{function.__module__}.{function.__qualname__}"] += function.cache_info().currsize
    for table in _listed():
        found[table.name] += len(table)
    return found
