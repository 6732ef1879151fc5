"""What is known of programs: functions of a ``Jaxpr`` that are computed once for each.

Here: ``analysis``, which makes a function such a one, ``Record``, and how all is counted and
forgotten. Not here: the analyses, which stand where they are needed.

What is known is kept with the program, in ``Jaxpr.cache``, which nothing else touches. A program
that ``replace(jaxpr, ..., cache={})`` makes knows nothing. Two threads may compute the same thing
at once; one of both is kept.

Layer: ``core``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from functrans.core.caching import Living

P = ParamSpec("P")
T = TypeVar("T")


class Program(Protocol):
    """What a ``Jaxpr`` is here: where what is known of it is kept."""

    @property
    def cache(self) -> dict[Any, Any]:
        """For each analysis, with its key, what it found."""


J = TypeVar("J", bound=Program)

_UNKNOWN = object()
_ITSELF = object()
"""Stands for the program that it is kept with: no cycles."""
_programs: Living[Program] = Living()
"""The programs of which something was known."""


class Record(ABC):
    """What one is told of a program beside what one finds out; made by an analysis."""

    __slots__ = ()

    @abstractmethod
    def forget(self) -> None:
        """Forget what was found out."""

    @abstractmethod
    def __len__(self) -> int:
        """How much of it there is."""


def analysis(function: Callable[Concatenate[J, P], T]) -> Callable[Concatenate[J, P], T]:
    """A function of a program, and of hashable values, that is computed once for each.

    Args:
      function: what computes it; it may give the program itself.
    """
    compute: Any = function

    @wraps(function)
    def known(jaxpr: J) -> Any:
        value = jaxpr.cache.get(known, _UNKNOWN)
        if value is _UNKNOWN:
            value = compute(jaxpr)
            remember(jaxpr, known, value)
        return jaxpr if value is _ITSELF else value

    @wraps(function)
    def known_by_key(jaxpr: J, *key: tuple[bool, ...]) -> Any:
        place = (known_by_key, *key)
        value = jaxpr.cache.get(place, _UNKNOWN)
        if value is _UNKNOWN:
            value = compute(jaxpr, *key)
            remember(jaxpr, place, value)
        return jaxpr if value is _ITSELF else value

    made = known if compute.__code__.co_argcount == 1 else known_by_key
    return cast("Callable[Concatenate[J, P], T]", made)


def remember(jaxpr: Program, known: Callable[..., Any] | tuple[Any, ...], value: object) -> None:
    """Let an analysis of a program be a value, computed or not.

    Args:
      jaxpr: the program.
      known: the analysis; with a key, a tuple of both.
      value: the value.
    """
    cache = jaxpr.cache
    if not cache:
        _programs.add(jaxpr)
    cache[known] = _ITSELF if value is jaxpr else value


def forget() -> None:
    """Forget what is known of all programs, but for what records were told."""
    for jaxpr in _programs.all():
        for place, value in list(jaxpr.cache.items()):
            if isinstance(value, Record):
                value.forget()
            else:
                jaxpr.cache.pop(place, None)


def counted() -> Counter[str]:
    """How much is known, by name of the analysis."""
    found: Counter[str] = Counter()
    for jaxpr in _programs.all():
        for place, value in list(jaxpr.cache.items()):
            known = place[0] if type(place) is tuple else place
            found[known.__name__] += len(value) if isinstance(value, Record) else 1
    return found
