"""Code of twins: calls of Python's types and class patterns load names of their own.

``float(x)`` has a twin and ``float`` alone has none; ``case float():`` has another one.

Here: the code, and what class patterns look for. Not here: what calls of types do
(``plain.numbers``).

Layer: ``plain``.
"""

from __future__ import annotations

import dis
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.caching import remembered
from functrans.plain.standins import StandIn

CALLED_TYPES = (
    "float", "complex", "type", "str", "super", "memoryview", "bytes", "bytearray",
)  # fmt: skip
"""Types of Python of which a call has a twin; elsewhere in the code they stay the types.

``super()`` without arguments is Python's own, which looks at its caller.
"""


def called(name: str) -> str:
    """The name under which a call of a type looks for its twin."""
    return f"{name}()"


_PATTERN = "case {}()"
"""The name under which a class pattern looks for its class, or for the module that it is in."""


def is_pattern(name: str) -> bool:
    """Whether a class pattern looks for a name."""
    return name.startswith("case ")


def class_in(name: str) -> str:
    """The name in the program of what a class pattern looks for."""
    return name[len("case ") : -len("()")]


def pattern_of(value: object, original_of: Callable[[Any], Any]) -> Any:
    """What a class is in a class pattern, where traced values are of the classes of values.

    Args:
      value: a class, or a module of which one whose classes are is made.
      original_of: what gives the value that a twin stands for.
    """
    if isinstance(value, type):
        return _pattern(value) if value in _PATTERNS or issubclass(value, np.generic) else value
    original = original_of(value)
    if isinstance(original, type):  # numbers of NumPy
        return pattern_of(original, original_of)
    return _Patterns(value, original_of) if type(original) is types.ModuleType else value


_PATTERNS = frozenset({float, int, complex, bool, np.ndarray})


@functools.cache
def _pattern(kind: type) -> StandIn:
    result = StandIn(kind, kind, lambda member: member)
    if kind in (float, int):  # whose one positional pattern is for the number itself
        type.__setattr__(result, "__match_args__", ("real",))
    return result


class _Patterns:
    """A module of which classes are those of class patterns."""

    def __init__(self, module: Any, original_of: Callable[[Any], Any]) -> None:
        self.module, self.original_of = module, original_of

    def __getattr__(self, name: str) -> Any:
        """What the module has under a name, in a class pattern."""
        return pattern_of(getattr(self.module, name), self.original_of)


@remembered(8192)
def with_calls_marked(code: types.CodeType) -> types.CodeType:
    """The code, in which ``float(...)`` loads another name than ``float`` alone does.

    CPython marks a global that is loaded to be called by the low bit of its argument. Class
    patterns load another name, too.
    """
    consts = tuple(
        [with_calls_marked(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    )
    is_changed = any(new is not old for new, old in zip(consts, code.co_consts, strict=True))
    names = list(code.co_names)
    raw = bytearray(code.co_code)
    has_patterns = dis.opmap["MATCH_CLASS"] in raw[::2]
    if has_patterns or any(name in names for name in CALLED_TYPES):
        instructions = list(dis.get_instructions(code))
        for number, instruction in enumerate(instructions):
            if instruction.opname != "LOAD_GLOBAL":
                continue
            name, is_called = instruction.argval, (instruction.arg or 0) & 1
            following = instructions[number + 1]
            after = instructions[number + 2 + (following.opname == "LOAD_ATTR")]
            if has_patterns and after.opname == "MATCH_CLASS":
                marked = _PATTERN.format(name)
            elif name not in CALLED_TYPES:
                continue
            elif name == "super":
                if following.opname in ("PRECALL", "CALL") or following.argval == "__class__":
                    continue
                marked = called(name)
            elif is_called:
                marked = called(name)
            else:
                continue
            if marked not in names:
                names.append(marked)
            place = names.index(marked)
            if place < 128:  # the argument fits into one byte
                raw[instruction.offset + 1] = place << 1 | is_called
                is_changed = True
    if not is_changed:
        return code
    result = code.replace(co_code=bytes(raw), co_names=tuple(names), co_consts=consts)
    _unmarked[result] = code
    return result


_unmarked: weakref.WeakKeyDictionary[types.CodeType, types.CodeType] = weakref.WeakKeyDictionary()


def without_marks(code: types.CodeType) -> types.CodeType:
    """The code as it was written."""
    return _unmarked.get(code, code)
