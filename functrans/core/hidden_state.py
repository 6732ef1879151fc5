"""Hidden random state: numbers that are drawn while a function is traced once for many calls.

Such numbers become constants of the program: the same in each call, round or lane. Here: what tells
that it happened. Not here: random numbers as functions of keys (``functrans.random``).

Layer: ``core``.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from functrans.core.boundary import warn
from functrans.core.source import attribute, is_internal

_DEEPEST = 20
"""Wrappers around a function that are looked through."""

_SEEN: weakref.WeakSet[CodeType | type] = weakref.WeakSet()


class Draws:
    """The generators in a function's reach, and where they stood before it was traced.

    These are Python's and NumPy's global generators, and those that the function, or one that it
    refers to, holds: as global variable that its code names, in its closure, as attribute of its
    object. One that it makes itself is not seen.

    Args:
      fun: the function.
      once: look only if no function of this code, or object of this class, was met before.
    """

    __slots__ = ("_before",)

    def __init__(self, fun: Callable[..., Any], once: bool = False) -> None:
        for _ in range(_DEEPEST):
            if not callable(inner := attribute(fun, "__wrapped__")):
                break
            fun = inner
        if once:
            code = attribute(fun, "__code__")
            code = code if isinstance(code, CodeType) else type(fun)
            if code in _SEEN:
                self._before: list[tuple[str, Any, object]] = []
                return
            _SEEN.add(code)
        self._before = [(name, generator, _place(generator)) for name, generator in _within(fun)]

    def tell(self, label: str, same_in: str) -> None:
        """Warn of each generator that was used since.

        Another thread may have used it, so that this is no error.
        """
        for name, generator, before in self._before:
            if _place(generator) != before:
                warn(
                    f"{label}: {name} was used while the function was traced; its numbers are "
                    f"constants of the program, the same in each {same_in}. Draw them outside and "
                    "pass them as arguments, or use functrans.random with a key as argument.",
                    UserWarning,
                )


def _place(generator: Any) -> object:
    """Where a generator stands; ``None`` of one that does not say, as ``random.SystemRandom``."""
    try:
        if (python := getattr(generator, "getstate", None)) is not None:
            return python()
        legacy = getattr(generator, "get_state", None)
        state = generator.bit_generator.state if legacy is None else legacy(legacy=False)
    except Exception:  # users' classes, too, and bit generators without a state
        return None
    inner = state["state"] if isinstance(state, dict) else None
    if isinstance(inner, dict) and "pos" in inner:  # the Mersenne twister
        return int(inner["pos"]), inner["key"].tobytes(), state.get("has_gauss")
    return str(state)


def _within(fun: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Generators that a function can use, and what they are called in messages."""
    kinds: tuple[type, ...] = ()
    if python := sys.modules.get("random"):
        yield "Python's global generator (random)", python.seed.__self__
        kinds = (python.Random,)
    if numpy := sys.modules.get("numpy.random"):
        yield "NumPy's global generator (numpy.random)", numpy.get_state.__self__
        kinds += (numpy.Generator, numpy.RandomState)
    met = set()
    waiting: list[Callable[..., Any]] = [fun]
    while waiting:
        for name, value in _variables(waiting.pop()):
            if id(value) in met:
                continue
            met.add(id(value))
            if isinstance(value, kinds):
                yield f"the generator {name}", value
            elif callable(value) and not isinstance(value, type) and not _is_internal(value):
                waiting.append(value)


def _variables(fun: Callable[..., Any]) -> Iterator[tuple[str, object]]:
    """Names and values that the code of a function refers to from outside, and of its object."""
    if isinstance(fun, MethodType):
        yield from ((f"self.{name}", value) for name, value in _attributes(fun.__self__))
        fun = fun.__func__
    if not isinstance(fun, FunctionType):
        yield from ((f"self.{name}", value) for name, value in _attributes(fun))
        return
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    for name in _names(fun.__code__):
        if name in fun.__globals__:
            yield name, fun.__globals__[name]


def _is_internal(function: object) -> bool:
    """Whether it is a function of this library, or has no Python code."""
    code = attribute(function, "__code__")
    if isinstance(code, CodeType):
        return is_internal(code.co_filename)
    return attribute(function, "__dict__") is None


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    """Attributes of an object that it holds itself."""
    held = attribute(value, "__dict__")
    return iter(list(held.items()) if isinstance(held, dict) else ())


def _names(code: CodeType) -> set[str]:
    """Names that a code and those in it read from elsewhere."""
    names = set(code.co_names)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            names |= _names(value)
    return names
