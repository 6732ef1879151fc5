"""The Python state that a function can reach: what a program made of it depends on.

Here: ``State``, found by a walk from the function through variables of enclosing functions,
globals, containers, attributes, classes and hooks; whether it is as it was, what changed, and
putting it back. Not here: what ``jit`` makes of it (``autograd.staged``).

Attributes of the user's objects count if code that can run mentions their names: a list of losses
to which only the loop around a step appends is no part of the step's state.

Layer: ``autograd``.
"""

from __future__ import annotations

import builtins
import collections
import contextvars
import functools
import io
import operator
import os
import sys
import sysconfig
import types
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.autograd.hooks import HOOK_TABLES
from functrans.autograd.mentions import CONSTRUCTION, REFLECTION, Mentions, globals_of, mentioned
from functrans.autograd.tensors import Tensor
from functrans.autograd.watches import MISSING, SCALARS, SMALL_BYTES, Content, Watch, content_of
from functrans.control.jit import JitFunction
from functrans.errors import UnsupportedOperationError
from functrans.trace import Tracer

_MAX_ITEMS = 100_000
_OWN = frozenset({"functrans", "numpy", "scipy"})
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_SITE_PACKAGES = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}


class State:
    """What a function can reach.

    Attributes:
      watches: the parts of its Python state.
      tensors: tensors with the way to each.
      contents: small arrays and containers, with what they hold.
      numbers: where numbers stand that may be arguments of a program: an object says so by a
        method ``numbers_of_steps()``, which gives pairs of dictionaries and keys.
      visits: how often each tensor was met, by identity.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self.watches: list[Watch] = []
        self.tensors: list[tuple[Tensor, str]] = []
        self.contents: list[Content] = []
        self._functions: list[tuple[Any, Any, Any, Any]] = []
        self._types: list[tuple[Any, type]] = []
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
            and all(content.holds() for content in self.contents)
            and all(type(value) is cls for value, cls in self._types)
            and all(
                f.__code__ is code and f.__defaults__ is some and f.__kwdefaults__ is named
                for f, code, some, named in self._functions
            )
        )

    def restore(self) -> None:
        """Put everything back."""
        for watch in self.watches:
            watch.restore()
        for content in self.contents:
            content.restore()

    def _look(self, value: Any, name: str) -> Iterator[tuple[Any, str]]:
        if isinstance(value, Tensor):
            self.visits[id(value)] = self.visits.get(id(value), 0) + 1
            number = self._numbered.setdefault(id(value), len(self.tensors))
            if number < len(self.tensors) and len(name) < len(self.tensors[number][1]):
                self.tensors[number] = value, name  # the shortest way to it
        if id(value) in self._seen or isinstance(value, SCALARS):
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors.append((value, name))
            for table in HOOK_TABLES:
                for hook in (getattr(value._node, table, None) or {}).values():
                    yield hook, f"a hook of {name}"
        elif isinstance(value, np.ndarray):
            if value.nbytes <= SMALL_BYTES:
                self._note_content(value, name)
        elif isinstance(value, Tracer):
            return
        elif hasattr(type(value), "__next__") and not isinstance(value, io.IOBase):
            raise UnsupportedOperationError(
                f"a jitted step can reach {name}, an iterator ({type(value).__name__}); a program "
                "would use what it gave when the step was traced: call next() outside, and pass "
                "what it gives"
            )
        elif isinstance(value, (operator.attrgetter, operator.methodcaller)):
            yield from self._read_any_name()
        elif isinstance(value, types.BuiltinFunctionType):
            if value.__name__ in REFLECTION:
                yield from self._read_any_name()
        elif isinstance(value, JitFunction):
            yield value.function, name
        elif isinstance(value, types.ModuleType):
            if not _is_own(value):
                yield from self._watch_attributes(vars(value), name, Mentions(False))
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
                    yield from self._mention(method)
                yield from self._look_at_class(value)
        elif isinstance(value, dict):
            yield from self._watch(value, name, style="[")
        elif isinstance(value, (set, frozenset, collections.deque)):
            self._note_content(value, name)
            yield from ((inner, name) for inner in value)
        elif isinstance(value, Mapping):
            self._note_content(value, name)
            yield from ((value[key], f"{name}[{key!r}]") for key in value)
        elif isinstance(value, (weakref.ref, contextvars.ContextVar)):
            self._note_content(value, name)
            yield (value() if isinstance(value, weakref.ref) else value.get(None)), name
        elif isinstance(value, list):
            yield from self._watch(value, name, style="[")
        elif isinstance(value, tuple):
            yield from ((inner, f"{name}[{i}]") for i, inner in enumerate(value))
        else:
            self._note_content(value, name)
            cls = type(value)
            if not _is_own(cls):
                self._types.append((value, cls))
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
        yield from self._look_at_class(type(cls))
        if self.mentions.matches:
            for part in vars(cls).get("__match_args__", ()):
                yield from self._mention(part)
        yield from self._watch_attributes(vars(cls), cls.__name__, Mentions())

    def _look_into_function(self, value: types.FunctionType) -> Iterator[tuple[Any, str]]:
        if _is_own(value):
            if value.__module__.split(".")[0] not in _OWN:  # as functools.singledispatch makes
                for cell in value.__closure__ or ():
                    if type(cell.cell_contents) in (dict, types.FunctionType):
                        yield cell.cell_contents, value.__name__
            return
        code = value.__code__
        for new in self.mentions.add(code):
            yield from self._waiting.pop(new, ())
        if self.mentions.is_all:
            yield from self._read_any_name()
        self._functions.append((value, code, value.__defaults__, value.__kwdefaults__))
        for variable, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            watch = Watch(cell, variable, ("cell_contents",), style="")
            self.watches.append(watch)
            if watch.values[0] is not MISSING:
                yield watch.values[0], variable
        if "environ" in self.mentions.names or "getenv" in self.mentions.names:
            yield os.environ, "os.environ"
        names, modules = globals_of(code)
        yield from self._watch_globals(value.__globals__, names)
        for module in modules:
            self.watches.append(Watch(sys.modules, "sys.modules", (module,), style="["))
            yield sys.modules.get(module), module
        for inner in (value.__defaults__, value.__kwdefaults__):
            yield inner, f"a default of {value.__name__}"
        if vars(value):
            yield from self._watch_attributes(vars(value), value.__name__, Mentions(False))
        else:
            yield from self._watch(vars(value), value.__name__)

    def _watch_globals(
        self, holder: dict[str, Any], names: Sequence[str]
    ) -> Iterator[tuple[Any, str]]:
        """Watch globals, those that are not there yet included."""
        keys = [name for name in names if name in holder or not hasattr(builtins, name)]
        watch = Watch(holder, "", keys, style="")
        self.watches.append(watch)
        for name in names:
            yield holder.get(name, getattr(builtins, name, None)), name

    def _note_content(self, value: Any, name: str) -> None:
        content = content_of(value, name)
        if content is not None:
            self.contents.append(content)

    def _mention(self, name: str) -> Iterator[tuple[Any, str]]:
        """A name counts from now on."""
        self.mentions.names.add(name)
        yield from self._waiting.pop(name, ())

    def _read_any_name(self) -> Iterator[tuple[Any, str]]:
        """All names count from now on."""
        self.mentions.is_all = True
        for waiting in self._waiting.values():
            yield from waiting
        self._waiting.clear()

    def _watch_attributes(
        self, holder: Any, name: str, mentions: Mentions
    ) -> Iterator[tuple[Any, str]]:
        """Watch attributes that are mentioned, by the user's code or as ``mentions`` says."""
        watch = Watch(holder, name)
        self.watches.append(watch)
        self._limited.append((watch, mentions))
        for key, value in zip(watch.keys, watch.values, strict=True):
            if key in mentions or key in self.mentions.names or self.mentions.is_all:
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
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    prefix = f"_{cls.__name__.lstrip('_')}"
    return tuple(
        [prefix + name if name.startswith("__") and name[-2:] != "__" else name for name in names]
    )


_INTERNAL = frozenset(vars(Tensor)) | {"_value", "_node", "_trace"}


def own_attributes(tensor: Tensor) -> Any:
    """What users attached to a tensor, for comparison; ``None`` for nothing."""
    attributes = tensor.__dict__
    if attributes.keys() <= _INTERNAL:
        return None
    return [
        (name, value if isinstance(value, SCALARS) else id(value))
        for name, value in attributes.items()
        if name not in _INTERNAL
    ]
