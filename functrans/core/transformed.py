"""What a transform returns: a function that knows what it was made of.

Here: ``transform``, a decorator of transforms, ``Transformed``, which their results are, and
``Wrapper``, what any callable made of other functions says of them. Not here: the transforms.

Layer: ``core``.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import take_over
from functrans.core.boundary import note_lists, shorten
from functrans.core.source import attribute

Maker = TypeVar("Maker", bound=Callable[..., Any])


class Wrapper:
    """A callable made of other functions (abstract): what templates look through."""

    __slots__ = ()
    _internal: frozenset[str] = frozenset({"parts", "with_parts"})
    """What ``dir()`` does not list."""

    def __dir__(self) -> list[str]:
        """What users call."""
        return sorted(set(super().__dir__()) - self._internal)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled by name where the name of what it is made of leads here, as functions are."""
        parts = self.parts()
        return (parts and by_name(self, parts[0])) or super().__reduce_ex__(protocol)

    def parts(self) -> tuple[Any, ...]:
        """The functions it is made of."""
        raise NotImplementedError

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> Any:
        """The same callable made of other functions, which are asked for when it is called."""
        raise NotImplementedError


def by_name(value: object, fun: Callable[..., Any]) -> str | None:
    """The name of a function if it leads to what decorates it, for pickling; else ``None``."""
    name: str = attribute(fun, "__qualname__", "")
    place: Any = sys.modules.get(value.__module__)
    for part in name.split("."):
        place = attribute(place, part)
    return name if place is value else None


class Transformed(Wrapper):
    """A function that a transform made of another one.

    It pickles where that one does, is equal to what the same transform makes of an equal function,
    and has its signature, documentation and attributes.

    Example:
      >>> import functrans as ft
      >>> import numpy as np
      >>> ft.grad(np.sin) == ft.grad(np.sin, argnums=0)
      True
      >>> ft.vmap(ft.grad(np.sin)).__name__
      'vmap(grad(sin))'
    """

    # not in ``__dict__``, which holds what the function has there, and which others take over
    __slots__ = ("__dict__", "__weakref__", "_arguments", "_function", "_options", "_transform")

    def __init__(
        self,
        function: Callable[..., Any],
        transform: Callable[..., Any],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> None:
        take_over(self, function)
        self._function = function
        self._transform = transform
        self._arguments = arguments
        self._options = options

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        try:  # as ``boundary`` does, without a call of its own
            return self._function(*args, **kwargs)
        except Exception as error:
            note_lists(error, args)
            shorten(error)
            raise

    def __get__(self, instance: object, owner: object = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def parts(self) -> tuple[Any, ...]:
        """The function that was transformed."""
        return self._arguments[:1]

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> Any:
        """The same of another function."""
        return self._transform(*parts(), *self._arguments[1:], **self._options)

    def _asked(self) -> dict[str, Any]:
        """Arguments of the transform by name, with defaults."""
        bound = inspect.signature(self._transform).bind(*self._arguments, **self._options)
        bound.apply_defaults()
        return bound.arguments

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transformed):
            return NotImplemented
        if self is other:
            return True
        if self._transform is not other._transform:
            return False
        leaves, treedef = tree.flatten(self._asked())
        others, other_treedef = tree.flatten(other._asked())
        return treedef == other_treedef and all(map(_is_same, leaves, others))

    def __hash__(self) -> int:
        return hash((self._transform, self._arguments[0]))

    def __reduce__(self) -> Any:
        """Pickled by its parts."""
        return _remade, (self._transform, self._arguments, self._options)

    def __repr__(self) -> str:
        """``<function grad(loss) at 0x7f2c0a1b>``, as functions print."""
        return f"<function {self.__name__} at {id(self):#x}>"  # type: ignore[attr-defined]  # taken over


def _is_same(first: Any, second: Any) -> bool:
    """Whether two options are equal, which may be arrays."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return bool(np.array_equal(first, second))
    return bool(first == second)


def _remade(transform: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return transform(*args, **options)


def transform(make: Maker) -> Maker:
    """A transform whose results are :class:`Transformed`.

    Args:
      make: function of a function, which comes first and by position or as ``fun``, and of options;
        without one it is a decorator, and its result stays as it is.
    """

    @functools.wraps(make)
    def transformed(*args: object, **options: object) -> Any:
        try:
            function = make(*args, **options)
        except Exception as error:
            shorten(error)
            raise
        if "fun" in options:
            args = (options.pop("fun"), *args)
        if not args or args[0] is None:
            return function
        return Transformed(function, transformed, args, options)

    return transformed  # type: ignore[return-value]  # of the same signature
