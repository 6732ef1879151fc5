"""Parts of the Python state that a program depends on, and whether they are as they were.

Here: ``Watch``, named parts of an object or container; ``Content``, containers whose items count as
a whole. Not here: finding them (``autograd.reachable``).

Layer: ``autograd``.
"""

from __future__ import annotations

import array
import collections
import contextvars
import math
import operator
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.autograd.mentions import Mentions

SMALL_BYTES = 1 << 16
"""Arrays and memory up to this size are compared: before and after the trace, and at each call."""
SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)
MISSING = object()
"""Stands for a value where there is none."""


def _same(now: Any, was: Any) -> bool:
    """Whether a value is as it was: the same object, or an equal number or text."""
    return now is was or (
        isinstance(was, SCALARS)
        and type(now) is type(was)
        and bool((now == was and _same_sign(now, was)) or (now != now and was != was))  # NaN
    )


def _same_sign(now: Any, was: Any) -> bool:
    """Whether two zeros have the same sign."""
    return not isinstance(was, float) or math.copysign(1.0, now) == math.copysign(1.0, was)


class Watch:
    """A part of the Python state, as it was.

    Attributes:
      name: how to say where the holder is.
      keys: names or positions in it.
      values: what was there.
      free: by key, which other values a program takes as well.
    """

    __slots__ = (
        "_checked",
        "_holder",
        "_mentions",
        "_size",
        "_style",
        "_whole",
        "free",
        "keys",
        "name",
        "values",
    )

    def __init__(
        self, holder: Any, name: str, keys: Sequence[Any] | None = None, style: str = "."
    ) -> None:
        self.name = name
        self._style = style
        self._holder = holder
        self._whole = keys is None
        self.keys: tuple[Any, ...] = tuple(holder if keys is None else keys)
        if isinstance(holder, list):
            self.keys = tuple(range(len(holder)))
        self.values = tuple([self._at(key) for key in self.keys])
        self.free: dict[Any, Callable[[Any], bool]] = {}
        self._mentions: Mentions | None = None
        self._checked: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
        self._size = 0

    def limit(self, mentions: Mentions) -> None:
        """Let only keys count that are mentioned."""
        self._mentions = mentions
        self._size = len(self._holder)
        self._check_mentioned()

    def _check_mentioned(self) -> None:
        found = [i for i, key in enumerate(self.keys) if key in self._mentions]  # type: ignore[operator]  # it is set
        self._checked = (
            tuple([self.keys[i] for i in found]),
            tuple([self.values[i] for i in found]),
        )

    @property
    def holder(self) -> Any:
        """The container or object."""
        return self._holder

    @property
    def is_empty(self) -> bool:
        """Whether it is a container that held nothing."""
        return (
            self._whole
            and not self.values
            and self._mentions is None
            and isinstance(self._holder, (dict, list))
        )

    def _at(self, key: Any) -> Any:
        holder = self._holder
        try:
            if isinstance(holder, (dict, list, types.MappingProxyType)):
                return holder[key]
            return getattr(holder, key)
        except (KeyError, IndexError, AttributeError, ValueError):
            return MISSING

    def holds(self) -> bool:
        """Whether everything that counts is as it was, or may be as it is."""
        holder, values = self._holder, self.values
        if self._mentions is not None:
            return self._mentioned_hold(holder, self._mentions)
        if self._whole and len(holder) != len(values):
            return False
        if type(holder) is list:
            now: Any = holder
        elif isinstance(holder, dict) and self._whole:
            if not all(map(operator.is_, holder, self.keys)):
                return False
            now = holder.values()
        else:
            now = map(self._at, self.keys)
            return all(map(self._allows, self.keys, now, values))
        if all(map(operator.is_, now, values)):  # mostly, and ten times as fast
            return True
        if not all(map(self._allows, self.keys, now, values)):
            return False
        self.values = tuple(now)
        return True

    def _mentioned_hold(self, holder: Any, mentions: Mentions) -> bool:
        keys, values = self._checked
        if len(holder) != self._size:
            known = set(self.keys)
            if any(key not in known and key in mentions for key in holder):
                return False
            self._size = len(holder)
        now = [holder.get(key, MISSING) for key in keys]
        if all(map(operator.is_, now, values)):
            return True
        if not all(map(self._allows, keys, now, values)):
            return False
        self._checked = keys, tuple(now)
        return True

    def _allows(self, key: Any, now: Any, was: Any) -> bool:
        return _same(now, was) or (key in self.free and self.free[key](now))

    def put(self, key: Any, value: Any) -> None:
        """Put a value where the key is."""
        holder = self._holder
        if isinstance(holder, (dict, list)):
            holder[key] = value
        else:
            setattr(holder, key, value)

    def now(self, key: Any) -> Any:
        """What is there now."""
        return self._at(key)

    def changes(self) -> Iterator[tuple[Any, Any, Any]]:
        """Key, value before and value now of what is not as it was; ``MISSING`` for nothing."""
        for key, was in zip(self.keys, self.values, strict=True):
            now = self._at(key)
            if not _same(now, was):
                yield key, was, now
        if self._whole and len(self._holder) > len(self.values):
            known = set(map(id, self.keys)) if isinstance(self._holder, dict) else set()
            added: Any = (
                [key for key in self._holder if id(key) not in known]
                if isinstance(self._holder, dict)
                else range(len(self.values), len(self._holder))
            )
            for key in added:
                yield key, MISSING, self._at(key)

    def numbers(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values of the numbers that a program depends on."""
        for key, value in zip(self.keys, self.values, strict=True):
            counts = self._mentions is None or key in self._mentions
            if counts and key not in self.free and isinstance(value, (bool, int, float, complex)):
                yield key, value

    def place(self, key: Any) -> str:
        """How to say where a value is."""
        if self._style == "[":
            simple = isinstance(key, (str, int, float, bytes))
            return f"{self.name}[{repr(key) if simple else type(key).__name__}]"
        return f"{self.name}.{key}" if self._style == "." else self.name or str(key)

    def restore(self) -> None:
        """Put everything back."""
        holder = self._holder
        if isinstance(holder, types.MappingProxyType) or self.holds():
            return
        if isinstance(holder, list):
            holder[:] = self.values
        elif isinstance(holder, dict):
            if self._whole:
                holder.clear()
            for key, value in zip(self.keys, self.values, strict=True):
                if value is not MISSING:
                    holder[key] = value
        else:
            for key, value in zip(self.keys, self.values, strict=True):
                if value is not MISSING:
                    setattr(holder, key, value)


class Content:
    """A container or array whose contents count as a whole, as they were.

    Attributes:
      holder: it.
      name: how to say where it is.
    """

    __slots__ = ("_read", "_was", "holder", "name")

    def __init__(self, holder: Any, name: str, read: Callable[[Any], Any]) -> None:
        self.holder = holder
        self.name = name
        self._read = read
        self._was = read(holder)

    def holds(self) -> bool:
        """Whether it holds what it held."""
        now, was = self._read(self.holder), self._was
        if type(was) is not tuple:
            return bool(now == was)
        return len(now) == len(was) and all(map(_same, now, was))

    def restore(self) -> None:
        """Put back what it held, where that is possible."""
        holder, was = self.holder, self._was
        if isinstance(holder, np.ndarray):
            if holder.flags.writeable:
                holder[...] = np.frombuffer(was, holder.dtype).reshape(holder.shape)
        elif self.holds():
            return
        elif isinstance(holder, set):
            holder.clear()
            holder.update(was)
        elif isinstance(holder, collections.deque):
            holder.clear()
            holder.extend(was)
        elif isinstance(holder, bytearray):
            holder[:] = was
        elif isinstance(holder, array.array):
            del holder[:]
            holder.frombytes(was)
        elif type(was) is bytes and not memoryview(holder).readonly:
            np.frombuffer(holder, np.uint8)[...] = np.frombuffer(was, np.uint8)

    @property
    def kind(self) -> str:
        """What it is, for messages."""
        return (
            "an array" if isinstance(self.holder, np.ndarray) else f"a {type(self.holder).__name__}"
        )


def content_of(value: Any, name: str) -> Content | None:
    """How to watch a container that is no dictionary, list or tuple; ``None`` for other values."""
    if isinstance(value, np.ndarray):
        return None if value.dtype == object else Content(value, name, np.ndarray.tobytes)
    if isinstance(value, set):
        return Content(value, name, frozenset)
    if isinstance(value, collections.deque):
        return Content(value, name, tuple)
    if isinstance(value, (array.array, bytearray)):
        return Content(value, name, bytes)
    if isinstance(value, contextvars.ContextVar):
        return Content(value, name, lambda variable: (variable.get(None),))
    if isinstance(value, weakref.ref):
        return Content(value, name, lambda reference: (reference(),))
    if isinstance(value, Mapping):
        return Content(value, name, lambda mapping: (*mapping.keys(), *mapping.values()))
    try:  # other memory: of ctypes, memoryview, mmap
        is_small = memoryview(value).nbytes <= SMALL_BYTES
    except TypeError:
        return None
    return Content(value, name, lambda memory: bytes(memoryview(memory))) if is_small else None
