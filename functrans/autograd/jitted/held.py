"""What a jitted step depends on beside its arguments: the declared part of the Python state.

Here: ``State``, the places that a function and its ``state=`` hold, the tensors in them, whether
all is as it was, what changed, and putting it back. Not here: what ``jit`` makes of it
(``autograd.jitted.staged``).

The rule. ``state=`` declares: containers hold their elements, and objects say what they hold by a
method ``state_of_steps()``, as modules and optimizers do; functions of no arguments read it anew at
each call. Without it, the object of a method holds its attributes. What the code of the function
names counts in either case: variables of enclosing functions, globals, and attributes of these, one
level deep. Modules, optimizers and jitted functions that a step calls count wherever they are.
Whatever else Python code reads is a constant of the program, as everywhere in ``jit``.

Layer: ``autograd.jitted``.
"""

from __future__ import annotations

import builtins
import dis
import functools
import io
import itertools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.tensors import Tensor
from functrans.core.calling import is_own
from functrans.errors import UnsupportedOperationError
from functrans.jitted.jit import JitFunction
from functrans.passes.simplify import exact_key

SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)
MISSING = object()
"""Stands for a value where there is none."""
_FEW, _FEW_ENTRIES = 8, 64
"""Up to so many numbers in a list, or dictionary, count without being declared: logs grow."""
_MANY = 1000
"""The same for elements of which some are no numbers."""
_Found = Iterator[tuple[Any, str, bool]]
"""What there is to look at next, with its name, and whether an object says that it counts."""
FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
"""Functions that read state anew at each call."""


def _same(now: object, was: object) -> bool:
    """Whether a value is the same object, or an equal number or text, or a tuple of such."""
    if isinstance(was, tuple) and type(now) is type(was):
        return len(now) == len(was) and all(map(_same, now, was))
    if now is was:
        return True
    return isinstance(was, SCALARS) and exact_key(now) == exact_key(was)


class _Cells:
    """The variables of enclosing functions, as a dictionary."""

    def __init__(self, function: types.FunctionType) -> None:
        names = function.__code__.co_freevars
        self._cells = dict(zip(names, function.__closure__ or (), strict=True))

    def get(self, key: str, default: object) -> Any:
        try:
            return self._cells[key].cell_contents
        except ValueError:
            return default

    def __setitem__(self, key: str, value: Any) -> None:
        self._cells[key].cell_contents = value


class _Attributes:
    """Attributes of a class, or of an object with slots, as a dictionary."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def get(self, key: str, default: Any) -> Any:
        return getattr(self._owner, key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self._owner, key, value)


class Part:
    """A place that holds values, as it was.

    Attributes:
      holder: a list or dictionary, or what is used like one.
      name: how to say where it is.
      keys: names or positions in it.
      values: what was there.
      free: by key, which other values a program takes as well.
      is_declared: whether a step may change it.
      is_whole: whether other keys count, too.
    """

    __slots__ = ("_style", "free", "holder", "is_declared", "is_whole", "keys", "name", "values")

    def __init__(
        self,
        holder: Any,
        name: str,
        keys: Iterable[Any] | None = None,
        style: str = "[",
        is_declared: bool = False,
    ) -> None:
        self.holder = holder
        self.name = name
        self.is_declared = is_declared
        self._style = style
        self.is_whole = keys is None
        if keys is None:
            keys = range(len(holder)) if isinstance(holder, list) else holder
        self.keys = tuple(keys)
        self.values = tuple([self.now(key) for key in self.keys])
        self.free: dict[Any, Callable[[Any], bool]] = {}

    def now(self, key: Any) -> Any:
        """What is at a key."""
        if isinstance(self.holder, list):
            return self.holder[key] if key < len(self.holder) else MISSING
        return self.holder.get(key, MISSING)

    def put(self, key: str, value: Any) -> None:
        """Put a value where the key is."""
        self.holder[key] = value

    def place(self, key: str) -> str:
        """How to say where a value is."""
        if self._style == "[":
            simple = isinstance(key, (str, int, float, bytes))
            return f"{self.name}[{repr(key) if simple else type(key).__name__}]"
        return f"{self.name}{self._style}{key}"

    def holds(self) -> bool:
        """Whether everything is as it was, or may be as it is."""
        holder, values = self.holder, self.values
        now: Any
        if not self.is_whole:
            get = holder.get
            now = [get(key, MISSING) for key in self.keys]
        elif len(holder) != len(values):
            return False
        elif isinstance(holder, list):
            now = holder
        elif all(map(operator.is_, holder, self.keys)):
            now = holder.values()
        else:
            return False
        if all(map(operator.is_, now, values)):  # mostly, and ten times as fast
            return True
        for key, new, was in zip(self.keys, now, values, strict=True):
            if not (_same(new, was) or (key in self.free and self.free[key](new))):
                return False
        self.values = tuple(now)
        return True

    def changes(self) -> Iterator[tuple[Any, Any, Any]]:
        """Key, value before and value now of what is not as it was; ``MISSING`` for nothing."""
        for key, was in zip(self.keys, self.values, strict=True):
            now = self.now(key)
            if not _same(now, was):
                yield key, was, now
        if self.is_whole and len(self.holder) > len(self.keys):
            added: Iterable[Any] = range(len(self.keys), len(self.holder))
            if isinstance(self.holder, dict):
                known = set(map(id, self.keys))
                added = [key for key in self.holder if id(key) not in known]
            for key in added:
                yield key, MISSING, self.now(key)

    def restore(self) -> None:
        """Put everything back."""
        holder = self.holder
        if isinstance(holder, list):
            holder[:] = self.values
        elif self.is_whole:
            if not self.holds():
                holder.clear()
                holder.update(zip(self.keys, self.values, strict=True))
        else:
            for key, was, _ in self.changes():
                if was is not MISSING:
                    self.put(key, was)


class _Together:
    """Lists and dictionaries that are compared as one, which is faster.

    Args:
      parts: they.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._empty = [part.holder for part in parts if not part.keys]
        dicts = [part for part in parts if part.keys and isinstance(part.holder, dict)]
        lists = [part for part in parts if part.keys and isinstance(part.holder, list)]
        self._parts = (*dicts, *lists)
        self._holders = [part.holder for part in self._parts]
        self._sizes = [len(part.keys) for part in self._parts]
        self._keys = [key for part in dicts for key in part.keys]
        self._dicts, self._lists = self._holders[: len(dicts)], self._holders[len(dicts) :]
        self._note()

    def _note(self) -> None:
        """Note the values of the parts."""
        self._values = [value for part in self._parts for value in part.values]

    def holds(self) -> bool:
        """Whether everything is as it was."""
        if any(self._empty) or list(map(len, self._holders)) != self._sizes:
            return False
        flat = itertools.chain.from_iterable
        if all(map(operator.is_, flat(self._dicts), self._keys)) and all(
            map(operator.is_, flat((*map(dict.values, self._dicts), *self._lists)), self._values)
        ):
            return True
        if not all(map(Part.holds, self._parts)):
            return False
        self._note()  # equal numbers in place of others
        return True


class State:
    """What a function holds, as it is now.

    Args:
      function: the jitted function.
      met: modules and the like that it was found to call, and tensors that it meets.

    Attributes:
      parts: the places.
      tensors: the tensors in them.
      names: the shortest way to each tensor, by identity.
      visits: how often each tensor was met, by identity.
      numbers: where numbers stand that are arguments: an object says so by a method
        ``numbers_of_steps()``, which gives pairs of dictionaries and keys.
      known: the objects that were looked at, by identity.
    """

    def __init__(self, function: JitFunction, met: Sequence[Any] = ()) -> None:
        self.parts: list[Part] = []
        self.tensors: list[Tensor] = []
        self.names: dict[int, str] = {}
        self.visits: dict[int, int] = {}
        self.known: dict[int, Any] = {}
        self._readers: list[tuple[Callable[[], Any], Any, str]] = []
        self._read: list[Any] = []
        """What was read: while it is there, its identity is its own."""
        self._texts: dict[str, str] = {}
        self._numbers: list[tuple[Any, Any]] = []
        self._is_declared = False
        self._look_at_function(function)
        for value in met:
            if isinstance(value, JitFunction):
                self._look_at_function(value)
            else:
                self._walk(value, type(value).__name__, is_used=True)
        by_holder = {id(part.holder): part for part in self.parts}
        self.numbers = [
            (by_holder[id(holder)], key) for holder, key in self._numbers if id(holder) in by_holder
        ]
        self._together: _Together | None = None
        self._others: list[Part] = []

    def holds(self) -> bool:
        """Whether everything is as it was."""
        if self._together is None:  # what is free is known by now
            self._together = _Together([p for p in self.parts if p.is_whole and not p.free])
            self._others = [p for p in self.parts if p.keys and (p.free or not p.is_whole)]
        return (
            self._together.holds()
            and all(map(Part.holds, self._others))
            and not (self._readers and self.changed_readings())
        )

    def changed_readings(self) -> list[str]:
        """Names of what is read anew at each call and is something else now."""
        return [name for read, key, name in self._readers if self._key(read()) != key]

    def facts(self) -> dict[str, Any]:
        """Numbers, texts and what is read, by their places."""
        return self._texts | {
            part.place(key): value
            for part in self.parts
            for key, value in zip(part.keys, part.values, strict=True)
            if key not in part.free and isinstance(value, (bool, int, float, complex, str))
        }

    def added(self, created: Sequence[tuple[Any, str]]) -> list[tuple[Tensor, str]]:
        """Look at values that are new; the tensors in them."""
        count = len(self.tensors)
        for value, name in created:
            self._walk(value, name)
        return [(tensor, self.names[id(tensor)]) for tensor in self.tensors[count:]]

    def restore(self) -> None:
        """Put everything back."""
        for part in self.parts:
            part.restore()

    # functions ------------------------------------------------------------------------------------

    def _look_at_function(self, function: object) -> None:
        """Look at what a function holds, and at those that it wraps."""
        name = getattr(function, "__name__", "step")
        self.known[id(function)] = None  # no reference: its programs are kept as long as it is
        has_state = False
        seen: set[int] = set()
        while function is not None and id(function) not in seen:
            seen.add(id(function))
            if isinstance(function, JitFunction):
                if function.state is not None:
                    has_state = self._is_declared = True
                    self._declare(function.state, "state")
                    self._is_declared = False
                function = function.function
            elif isinstance(function, functools.partial):
                self._walk((function.args, function.keywords), name)
                function = function.func
            elif isinstance(function, types.FunctionType):
                self._look_at_variables(function)
                function = getattr(function, "__wrapped__", None)
            elif isinstance(function, (type, types.BuiltinFunctionType)):
                return
            else:
                owner = getattr(function, "__self__", function)
                call = getattr(type(owner), "__call__", None)  # noqa: B004  # the function itself
                function = getattr(function, "__func__", call)
                code = getattr(function, "__code__", None)
                self._hold(owner, name, _names_in(code) if has_state else None)

    def _look_at_variables(self, function: types.FunctionType) -> None:
        code, there = function.__code__, function.__globals__
        names = _names_in(code)
        used = [key for key in _globals_in(code) if key in there or not hasattr(builtins, key)]
        if is_own(function):  # modes of the library are no state of the step
            used = []
        for part in (Part(_Cells(function), "", code.co_freevars, ""), Part(there, "", used, "")):
            self.parts.append(part)
            for key, value in zip(part.keys, part.values, strict=True):
                self._hold(value, key, names)
        self._walk((function.__defaults__, function.__kwdefaults__), "a default")

    def _hold(self, value: object, name: str, names: frozenset[str] | None) -> None:
        """Look at what a variable holds, with attributes of these names; ``None`` for all."""
        _refuse_iterator(value, name)
        self._walk(value, name)
        if not isinstance(value, _PLAIN) and id(value) not in self.known:
            part = _attributes_of(value, name, names)
            self.parts.append(part)
            for key, inner in zip(part.keys, part.values, strict=True):
                if names is not None:
                    _refuse_iterator(inner, part.place(key))
                self._walk(inner, part.place(key))

    # what is declared -----------------------------------------------------------------------------

    def _declare(self, value: object, name: str) -> None:
        """Look at what ``state=`` gives, or at an element of it."""
        if isinstance(value, tuple):
            for i, inner in enumerate(value):
                self._declare(inner, f"{name}[{i}]")
        elif isinstance(value, (list, dict)):
            for inner, where, _ in self._add(value, name):
                self._declare(inner, where)
        elif isinstance(value, (*SCALARS, Tensor)) or hasattr(type(value), "state_of_steps"):
            self._walk(value, name)
        elif isinstance(value, np.ndarray):
            self._readers.append((value.view, self._key(value), name))
        elif isinstance(value, FUNCTIONS):
            self._read_anew(value, f"{name}()")
        else:
            self._read_anew(functools.partial(tree.leaves, value), name)

    def _read_anew(self, read: Callable[[], Any], name: str) -> None:
        """Look at what a function gives, which is called at each call of the step.

        Containers that it gives again are places; new ones are compared by what is in them.
        """
        held = read()
        again = {id(x): x for x in _containers(read())}
        pending = [(held, name)]
        while pending:
            value, where = pending.pop()
            if isinstance(value, (list, dict)) and id(value) in again:
                self._walk(value, where)
            elif isinstance(value, (list, tuple, dict)):
                items = value.items() if isinstance(value, dict) else enumerate(value)
                pending += [(inner, f"{where}[{key!r}]") for key, inner in items]
            else:
                self._walk(value, where)
        self._readers.append((read, self._key(held), name))
        self._read.append(held)
        self._texts[name] = repr(held)

    def _key(self, value: object) -> Any:
        """What is compared of a value that was read: objects and places by identity."""
        if isinstance(value, SCALARS):
            return exact_key(value)
        if id(value) not in self.known:
            if isinstance(value, dict):
                return dict, [(key, self._key(inner)) for key, inner in value.items()]
            if isinstance(value, (list, tuple)):
                return type(value), [self._key(inner) for inner in value]
            if isinstance(value, np.ndarray) and value.dtype != object:
                return value.shape, value.dtype, value.tobytes()
        return id(value)

    # values ---------------------------------------------------------------------------------------

    def _walk(self, value: object, name: str, is_used: bool = False) -> None:
        """Look at a value and at what it holds."""
        is_holder = is_used and hasattr(type(value), "state_of_steps")
        pending = [*self._look_at_holder(value, name)] if is_holder else [(value, name, False)]
        while pending:
            pending.extend(self._look(*pending.pop()))

    def _look(self, value: object, name: str, says_so: bool) -> _Found:
        if isinstance(value, SCALARS):
            return
        if isinstance(value, Tensor):
            self.visits[id(value)] = self.visits.get(id(value), 0) + 1
            if len(name) < len(self.names.setdefault(id(value), name)):
                self.names[id(value)] = name
        if id(value) in self.known:
            return
        if isinstance(value, Tensor):
            self.known[id(value)] = value
            self.tensors.append(value)
        elif isinstance(value, tuple):
            yield from ((inner, f"{name}[{i}]", says_so) for i, inner in enumerate(value))
        elif isinstance(value, (list, dict)):
            if self._is_declared or _counts(value, says_so):
                yield from self._add(value, name, says_so=says_so)
        elif hasattr(type(value), "state_of_steps") and (
            self._is_declared or not getattr(value, "counts_where_used", False)
        ):
            yield from self._look_at_holder(value, name)

    def _look_at_holder(self, value: Any, name: str) -> _Found:
        """Look at an object that says what it holds."""
        self.known[id(value)] = value
        own = getattr(value, "__dict__", None)
        if own is not None and value.state_of_steps() is own:
            yield from self._add(own, name, ".", True)
        else:
            self._read_anew(value.state_of_steps, name)
        if hasattr(type(value), "numbers_of_steps"):
            self._numbers.extend(value.numbers_of_steps())

    def _add(self, holder: object, name: str, style: str = "[", says_so: bool = False) -> _Found:
        self.known[id(holder)] = holder
        part = Part(holder, name, None, style, self._is_declared)
        self.parts.append(part)
        for key, value in zip(part.keys, part.values, strict=True):
            yield value, part.place(key), says_so


_PLAIN = (*SCALARS, Tensor, np.ndarray, list, tuple, dict, JitFunction)
"""Values without attributes that count."""


def _refuse_iterator(value: object, name: str) -> None:
    """Refuse what gives another value whenever it is asked."""
    if hasattr(type(value), "__next__") and not isinstance(value, io.IOBase):
        raise UnsupportedOperationError(
            f"a jitted step can reach {name}, an iterator ({type(value).__name__}); a program "
            "would use what it gave when the step was traced: call next() outside, and pass "
            "what it gives"
        )


def _attributes_of(value: object, name: str, names: frozenset[str] | None) -> Part:
    """Attributes of an object with one of some names; ``None`` for all."""
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        if names is None:
            return Part(own, name, None, ".")
        of_class = {key for base in type(value).__mro__ for key in vars(base)}
        keys = [key for key in names if key in own or key in of_class]
        if isinstance(value, types.ModuleType):  # its functions stay as they are
            keys = [key for key in keys if not callable(own.get(key))]
        return Part(own, name, keys, ".")
    if isinstance(value, type):
        found = object()  # what is made anew whenever it is asked for, as methods, is no state
        every = names or ()
        keys = [key for key in every if getattr(value, key, found) is getattr(value, key, None)]
    else:
        slots = [key for base in type(value).__mro__ for key in _slots(base)]
        keys = [key for key in slots if names is None or key in names]
    return Part(_Attributes(value), name, keys, ".")


def _slots(cls: type) -> list[str]:
    """Names of the slots of a class."""
    slots = cls.__dict__.get("__slots__", ())
    prefix = f"_{cls.__name__.lstrip('_')}"
    return [
        prefix + name if name.startswith("__") and name[-2:] != "__" else name
        for name in ((slots,) if isinstance(slots, str) else slots)
    ]


def _counts(value: Any, says_so: bool) -> bool:
    """Whether the elements of a container count that nobody declared."""
    if len(value) <= (_FEW_ENTRIES if isinstance(value, dict) else _FEW):
        return True
    elements = value.values() if isinstance(value, dict) else value
    has_more = not all(isinstance(x, SCALARS) for x in elements)
    return has_more and (says_so or len(value) <= _MANY)


def _containers(value: object) -> Iterator[Any]:
    """The lists and dictionaries in a value, and itself."""
    if isinstance(value, (list, tuple, dict)):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


def check_declared(value: object, name: str = "state", is_fixed: bool = True) -> None:
    """Check what ``state=`` gives, or an element of it.

    Args:
      value: it.
      name: how to say where it is.
      is_fixed: whether nobody can put another value in its place.

    Raises:
      TypeError: it is of a kind that says nothing.
    """
    if isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            check_declared(inner, f"{name}[{key!r}]", isinstance(value, tuple))
    elif isinstance(value, SCALARS):
        if is_fixed and value is not None:
            raise TypeError(
                f"jit: {name} is {value!r}, which nobody can change where it is; declare the "
                "dictionary, the list or the object that holds the number, or a function that "
                "reads it: state=lambda: ..."
            )
    elif isinstance(value, np.ndarray) and value.dtype != object:
        return
    elif not isinstance(value, (Tensor, *FUNCTIONS)) and not hasattr(type(value), "state_of_steps"):
        leaves = tree.leaves(value)
        if len(leaves) == 1 and leaves[0] is value:
            raise TypeError(
                f"jit: {name} is of type {type(value).__qualname__}; expected tensors, modules, "
                "optimizers, arrays of numbers, containers of these and of numbers, objects with a "
                "method state_of_steps(), or a function that reads the state. Give its class that "
                "method (return vars(self)), or pass state=lambda: ..."
            )


def _codes(code: types.CodeType | None) -> Iterator[types.CodeType]:
    """A code object and those of the functions inside it."""
    if code is not None:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from _codes(constant)


def _names_in(code: types.CodeType | None) -> frozenset[str]:
    """Names of globals and of attributes in a function."""
    return frozenset(name for inner in _codes(code) for name in inner.co_names)


def _globals_in(code: types.CodeType) -> list[str]:
    """Names of globals in a function: ``co_names`` has those of attributes, too."""
    steps = [step for inner in _codes(code) for step in dis.get_instructions(inner)]
    return list(dict.fromkeys(s.argval for s in steps if s.opname.endswith("_GLOBAL")))
