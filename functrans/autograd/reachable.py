"""The Python state that a function can reach: what a program made of it depends on.

Here: ``State``, found by a walk from the function through variables of enclosing functions,
globals, containers, attributes, classes and hooks; whether it is as it was, what changed, and
putting it back. Not here: what ``jit`` makes of it (``autograd.staged``).

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

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
    """

    __slots__ = ("_holder", "_style", "_whole", "keys", "name", "values")

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

    @property
    def holder(self) -> Any:
        """The container or object."""
        return self._holder

    @property
    def is_empty(self) -> bool:
        """Whether it is a container that held nothing."""
        return self._whole and not self.values and isinstance(self._holder, (dict, list))

    def _at(self, key: Any) -> Any:
        holder = self._holder
        try:
            if isinstance(holder, (dict, list, types.MappingProxyType)):
                return holder[key]
            return getattr(holder, key)
        except (KeyError, IndexError, AttributeError, ValueError):
            return MISSING

    def holds(self) -> bool:
        """Whether everything is as it was."""
        holder, values = self._holder, self.values
        if self._whole and len(holder) != len(values):
            return False
        if type(holder) is list:
            return all(map(operator.is_, holder, values)) or all(map(_same, holder, values))
        if type(holder) is dict and self._whole:
            return all(map(operator.is_, holder, self.keys)) and (
                all(map(operator.is_, holder.values(), values))  # mostly, and ten times as fast
                or all(map(_same, holder.values(), values))
            )
        return all(_same(self._at(key), was) for key, was in zip(self.keys, values, strict=True))

    def changes(self) -> Iterator[tuple[str, Any, Any]]:
        """Name, value before and value now of what is not as it was; ``MISSING`` for nothing."""
        for key, was in zip(self.keys, self.values, strict=True):
            now = self._at(key)
            if not _same(now, was):
                yield self.place(key), was, now
        if self._whole and len(self._holder) > len(self.values):
            known = set(map(id, self.keys)) if isinstance(self._holder, dict) else set()
            added = (
                [key for key in self._holder if id(key) not in known]
                if isinstance(self._holder, dict)
                else range(len(self.values), len(self._holder))
            )
            for key in added:
                yield self.place(key), MISSING, self._at(key)

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
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self.watches: list[Watch] = []
        self.tensors: list[tuple[Tensor, str]] = []
        self.contents: list[tuple[Any, Any, str]] = []
        self._seen: dict[int, Any] = {}
        self._checked: tuple[list[Any], list[Watch]] | None = None
        pending = [(root, name) for root, name in roots]
        while pending and len(self._seen) < _MAX_ITEMS:
            value, name = pending.pop()
            pending.extend(self._look(value, name))

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
        if id(value) in self._seen or isinstance(value, (*_SCALARS, types.ModuleType)):
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
        elif isinstance(value, functools.partial):
            yield from ((value.func, name), (value.args, name), (value.keywords, name))
        elif isinstance(value, types.MethodType):
            yield from ((value.__self__, name), (value.__func__, name))
        elif isinstance(value, types.FunctionType):
            yield from self._look_into_function(value)
        elif isinstance(value, type):
            if value.__module__.split(".")[0] not in (*_OWN, "builtins"):
                yield from self._watch(vars(value), value.__name__)
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
            if hasattr(value, "__dict__"):
                yield from self._watch(vars(value), name)
            slots = [n for cls in type(value).__mro__ for n in _slots(cls)]
            if slots and type(value).__module__.split(".")[0] not in (*_OWN, "builtins"):
                yield from self._watch(value, name, slots)
            yield type(value), name
            for cls in type(value).__mro__[1:]:
                yield cls, name

    def _look_into_function(self, value: types.FunctionType) -> Iterator[tuple[Any, str]]:
        if value.__module__ and value.__module__.split(".")[0] in _OWN:
            return
        for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            watch = Watch(cell, variable, ("cell_contents",), style="")
            self.watches.append(watch)
            if watch.values[0] is not MISSING:
                yield watch.values[0], variable
        yield from self._watch(value.__globals__, "", value.__code__.co_names, style="")
        for inner in (value.__defaults__, value.__kwdefaults__):
            yield inner, f"a default of {value.__name__}"

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


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
