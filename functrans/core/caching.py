"""What the library remembers beside programs, listed, so that ``clear_caches`` can forget it.

Here: ``remembered``, for functions, ``Recent``, ``listed``, for tables of all kinds, and
``Living``, by which the owners of further caches are found. Not here: what is known of programs
(``core.analyses``), files (``machine.cache``), tables of the library's own names and of the
machine, which do not depend on what users do (``functools.cache``).

Layer: ``core`` (imports nothing from functrans).
"""

from __future__ import annotations

import functools
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, MutableMapping
from threading import RLock
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
M = TypeVar("M", bound=MutableMapping[Any, Any])

_functions: list[functools._lru_cache_wrapper[Any]] = []
_tables: weakref.WeakValueDictionary[tuple[str, int], Any] = weakref.WeakValueDictionary()
_lock = RLock()


def remembered(size: int) -> Callable[[Callable[..., V]], functools._lru_cache_wrapper[V]]:
    """``functools.lru_cache`` of a size, which is forgotten with all others."""

    def decorated(function: Callable[..., V]) -> functools._lru_cache_wrapper[V]:
        known = functools.lru_cache(size)(function)
        _functions.append(known)
        return known

    return decorated


def listed(name: str, table: M) -> M:
    """A table, which is forgotten with all others as long as it lives."""
    with _lock:
        _tables[name, id(table)] = table
    return table


class Recent(OrderedDict[K, V]):
    """A dictionary of the entries that were used last, for several threads.

    Args:
      size: how many there may be.
    """

    __slots__ = ("_lock", "_size")

    def __init__(self, size: int) -> None:
        OrderedDict.__init__(self)
        self._size = size
        self._lock = RLock()

    def used(self, key: K) -> V | None:
        """The value of a key, which is forgotten last from now on; ``None`` if there is none."""
        with self._lock:
            value = self.get(key)
            if value is not None:
                self.move_to_end(key)
            return value

    def kept(self, key: K, value: V) -> V:
        """The value of a key from now on: the given one, if there is none."""
        with self._lock:
            found = self.get(key)
            if found is None:
                self[key] = found = value
            else:
                self.move_to_end(key)
            return found

    def __setitem__(self, key: K, value: V) -> None:
        """Keep a value; the one that was not used for longest goes if there are too many."""
        with self._lock:
            OrderedDict.__setitem__(self, key, value)
            if len(self) > self._size:
                self.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            super().clear()

    def all(self) -> list[V]:
        """The values, those last that were used last."""
        with self._lock:
            return list(self.values())


class Living(Generic[T]):
    """The objects that are alive of those that were added."""

    __slots__ = ("_lock", "_references")
    _N_ADDED = 1000
    """Objects after which those that are gone are looked for; more if there are many alive."""

    def __init__(self) -> None:
        self._references: list[weakref.ref[Any]] = []
        self._lock = RLock()

    def add(self, value: T) -> None:
        """Add an object, once or more often."""
        self._references.append(weakref.ref(value))
        if not len(self._references) % self._N_ADDED:
            self.all()

    def all(self) -> list[T]:
        """Each object that is alive; those that are gone are forgotten."""
        with self._lock:
            found = self._references[:]
            alive = {id(value): value for value in [r() for r in found] if value is not None}
            self._references[: len(found)] = map(weakref.ref, alive.values())
            return list(alive.values())


def _all() -> list[tuple[str, Any]]:
    with _lock:
        return [(name, table) for (name, _), table in _tables.items()]


def forget() -> None:
    """Forget everything that is listed here."""
    for function in _functions:
        function.cache_clear()
    for _, table in _all():
        table.clear()


def counted() -> Counter[str]:
    """How many values are remembered, by name of the function or table."""
    found: Counter[str] = Counter()
    for function in _functions:
        found[f"{function.__module__}.{function.__qualname__}"] += function.cache_info().currsize
    for name, table in _all():
        found[name] += len(table)
    return found
