"""The Python state that a function can reach: what a program made of it depends on.

Here: ``State``, found by a walk from the function through variables of enclosing functions,
globals, containers, attributes, classes and hooks; whether it is as it was, what changed, and
putting it back. Not here: what ``jit`` makes of it (``autograd.staged``).

Attributes of the user's objects count if code that can run mentions their names: a list of losses
to which only the loop around a step appends is no part of the step's state.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.autograd.mentions import CONSTRUCTION, Mentions, mentioned
from functrans.autograd.tensors import Tensor
from functrans.control.jit import JitFunction
from functrans.trace import Tracer

_SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_MAX_ITEMS = 100_000
MISSING = object()
"""Stands for a value where there is none."""
_SMALL_BYTES = 1 << 16
"""Arrays up to this size are compared before and after the trace."""
_OWN = frozenset({"functrans", "numpy", "scipy"})
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_SITE_PACKAGES = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
HOOK_TABLES = ("tensor_hooks", "prehooks", "posthooks", "post_accumulate")
"""Where nodes keep hooks."""


def _same(now: Any, was: Any) -> bool:
    """Whether a value is as it was: the same object, or an equal number or text."""
    return now is was or (
        isinstance(was, _SCALARS)
        and type(now) is type(was)
        and bool(now == was or (now != now and was != was))  # NaN
    )


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
        elif type(holder) is dict and self._whole:
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


class State:
    """What a function can reach.

    Attributes:
      watches: the parts of its Python state.
      tensors: tensors with the way to each.
      contents: small arrays and sets with a copy of what they hold.
      numbers: where numbers stand that may be arguments of a program: an object says so by a
        method ``numbers_of_steps()``, which gives pairs of dictionaries and keys.
      visits: how often each tensor was met, by identity.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self.watches: list[Watch] = []
        self.tensors: list[tuple[Tensor, str]] = []
        self.contents: list[tuple[Any, Any, str]] = []
        self.numbers: list[tuple[Watch, Any]] = []
        self.visits: dict[int, int] = {}
        self.mentions = Mentions()
        self._waiting: dict[str, list[tuple[Any, str]]] = {}
        """Values of attributes that nothing mentioned so far, by their names."""
        self._limited: list[tuple[Watch, Mentions]] = []
        self._numbers: list[tuple[Any, Any]] = []
        self._seen: dict[int, Any] = {}
        self._classes: set[int] = set()
        self._numbered: dict[int, int] = {}
        self._checked: tuple[list[Any], list[Watch]] | None = None
        pending = [(root, name) for root, name in roots]
        while pending and len(self._seen) < _MAX_ITEMS:
            value, name = pending.pop()
            pending.extend(self._look(value, name))
        if self.mentions.is_all:
            for _, mentions in self._limited:
                mentions.is_all = True
        for watch, mentions in self._limited:
            mentions.names |= self.mentions.names
            watch.limit(mentions)
        by_holder = {id(watch.holder): watch for watch in self.watches}
        for holder, key in self._numbers:
            if id(holder) in by_holder:
                self.numbers.append((by_holder[id(holder)], key))

    def holds(self) -> bool:
        """Whether everything is as it was."""
        if self._checked is None:
            empty = [watch for watch in self.watches if watch.is_empty]
            others = [watch for watch in self.watches if not watch.is_empty]
            self._checked = [watch.holder for watch in empty], others
        empty_ones, others = self._checked
        return (
            not any(empty_ones)
            and all(watch.holds() for watch in others)
            and all(
                value == copy for value, copy, _ in self.contents if isinstance(copy, frozenset)
            )
        )

    def restore(self) -> None:
        """Put everything back."""
        for watch in self.watches:
            watch.restore()
        for value, copy, _ in self.contents:
            if isinstance(value, np.ndarray):
                if value.flags.writeable:
                    value[...] = copy
            elif value != copy:
                value.clear()
                value.update(copy)

    def _look(self, value: Any, name: str) -> Iterator[tuple[Any, str]]:
        if isinstance(value, Tensor):
            self.visits[id(value)] = self.visits.get(id(value), 0) + 1
            number = self._numbered.setdefault(id(value), len(self.tensors))
            if number < len(self.tensors) and len(name) < len(self.tensors[number][1]):
                self.tensors[number] = value, name  # the shortest way to it
        if id(value) in self._seen or isinstance(value, _SCALARS):
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors.append((value, name))
            for table in HOOK_TABLES:
                for hook in (getattr(value._node, table, None) or {}).values():
                    yield hook, f"a hook of {name}"
        elif isinstance(value, np.ndarray):
            if value.nbytes <= _SMALL_BYTES and value.dtype != object:
                self.contents.append((value, value.copy(), name))
        elif isinstance(value, Tracer):
            return
        elif isinstance(value, JitFunction):
            yield value.function, name
        elif isinstance(value, types.ModuleType):
            if not _is_own(value):
                yield from self._watch_attributes(vars(value), name, Mentions())
        elif isinstance(value, functools.partial):
            yield from ((value.func, name), (value.args, name), (value.keywords, name))
        elif isinstance(value, types.MethodType):
            yield from ((value.__self__, name), (value.__func__, name))
        elif isinstance(value, types.FunctionType):
            yield from self._look_into_function(value)
        elif isinstance(value, property):
            yield from ((f, name) for f in (value.fget, value.fset, value.fdel))
        elif isinstance(value, (staticmethod, classmethod)):
            yield value.__func__, name
        elif isinstance(value, functools.cached_property):
            yield value.func, name
        elif isinstance(value, type):
            for base in value.__mro__[1:]:
                yield from self._look_at_class(base)
            if not _is_own(value):
                for method in CONSTRUCTION:  # it may be called
                    self.mentions.names.add(method)
                    yield from self._waiting.pop(method, ())
                yield from self._look_at_class(value)
        elif isinstance(value, (set, frozenset)):
            if isinstance(value, set):
                self.contents.append((value, frozenset(value), name))
            yield from ((inner, name) for inner in value)
        elif isinstance(value, dict):
            yield from self._watch(value, name, style="[")
        elif isinstance(value, Mapping):
            yield from ((value[key], f"{name}[{key!r}]") for key in value)
        elif isinstance(value, list):
            yield from self._watch(value, name, style="[")
        elif isinstance(value, tuple):
            yield from ((inner, f"{name}[{i}]") for i, inner in enumerate(value))
        else:
            cls = type(value)
            if hasattr(value, "__dict__"):
                if cls.__module__.split(".")[0] in _OWN:
                    yield from self._watch(vars(value), name)
                else:
                    yield from self._watch_attributes(vars(value), name, _names_of_own(cls))
            slots = [n for base in cls.__mro__ for n in _slots(base)]
            if slots and not _is_own(cls):
                yield from self._watch(value, name, slots)
            if hasattr(cls, "numbers_of_steps"):
                self._numbers.extend(value.numbers_of_steps())
            for base in cls.__mro__:
                yield from self._look_at_class(base)

    def _look_at_class(self, cls: type) -> Iterator[tuple[Any, str]]:
        if id(cls) in self._classes or _is_own(cls):
            return
        self._classes.add(id(cls))
        yield from self._watch_attributes(vars(cls), cls.__name__, Mentions())

    def _look_into_function(self, value: types.FunctionType) -> Iterator[tuple[Any, str]]:
        if _is_own(value):
            return
        for new in self.mentions.add(value.__code__):
            yield from self._waiting.pop(new, ())
        if self.mentions.is_all:
            for waiting in self._waiting.values():
                yield from waiting
            self._waiting.clear()
        for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            watch = Watch(cell, variable, ("cell_contents",), style="")
            self.watches.append(watch)
            if watch.values[0] is not MISSING:
                yield watch.values[0], variable
        yield from self._watch(value.__globals__, "", value.__code__.co_names, style="")
        for inner in (value.__defaults__, value.__kwdefaults__):
            yield inner, f"a default of {value.__name__}"

    def _watch_attributes(
        self, holder: Any, name: str, mentions: Mentions
    ) -> Iterator[tuple[Any, str]]:
        """Watch attributes that are mentioned, by the user's code or as ``mentions`` says."""
        watch = Watch(holder, name)
        self.watches.append(watch)
        self._limited.append((watch, mentions))
        for key, value in zip(watch.keys, watch.values, strict=True):
            if key in mentions or key in self.mentions:
                yield value, watch.place(key)
            else:
                self._waiting.setdefault(key, []).append((value, watch.place(key)))

    def _watch(
        self, holder: Any, name: str, keys: Sequence[Any] | None = None, style: str = "."
    ) -> Iterator[tuple[Any, str]]:
        if keys is not None and isinstance(holder, dict):
            keys = [key for key in keys if key in holder]
        watch = Watch(holder, name, keys, style)
        self.watches.append(watch)
        for key, value in zip(watch.keys, watch.values, strict=True):
            if value is not MISSING:
                yield value, watch.place(key)


def _is_own(value: Any) -> bool:
    """Whether a class, function or module is a library's, whose state is known."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return _is_known(name or "")


@functools.cache
def _is_known(name: str) -> bool:
    """Whether a module belongs to Python, NumPy, SciPy or this package."""
    if name.split(".")[0] in _OWN or name in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return (
        file is not None and file.startswith(_STDLIB) and not file.startswith(tuple(_SITE_PACKAGES))
    )


def _names_of_own(cls: type) -> Mentions:
    """What the library's classes among the bases of a class read."""
    found = Mentions()
    for base in cls.__mro__:
        if _is_own(base):
            for method in vars(base).values():
                function = getattr(method, "fget", method)
                code = getattr(getattr(function, "__func__", function), "__code__", None)
                if code is not None:
                    found.names.update(mentioned(code))
    return found


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
