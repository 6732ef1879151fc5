"""Classes that stand for a library's: called, they make instances of those, of other arguments.

Here: ``StandIn``, their metaclass. Not here: which classes have one and what becomes of arguments
(``plain.readers``).

Layer: ``plain``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

_ORIGINAL = "__functrans_original__"
_MAKE = "__functrans_make__"
_MEMBER = "__functrans_member__"


_exemplar: list[Function] = []


def install_exemplar(function: Function) -> None:
    """Hand over what gives a plain value of the class that a traced one has (``plain.kinds``)."""
    _exemplar.append(function)


class StandIn(type):
    """A class without instances that answers as another one: ``isinstance``, attributes, equality.

    It is no subclass of the other one, so that classes of C that cannot have any have one, too, and
    no hook of the library runs.
    """

    def __new__(cls, original: type, make: Function, member: Function) -> StandIn:
        """A class that stands for another one.

        Args:
          original: the other one.
          make: what a call does.
          member: what a function that is an attribute becomes.
        """
        own = {_ORIGINAL: original, _MAKE: make, _MEMBER: member, "__slots__": ()}
        return super().__new__(cls, original.__name__, (), own)

    def __init__(cls, original: type, make: Function, member: Function) -> None:
        super().__init__(original.__name__, (), {})

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        """An instance of the original."""
        return _own(cls, _MAKE)(*args, **kwargs)

    def __getattribute__(cls, name: str) -> Any:
        """Of the original."""
        if name == "__match_args__" and name in type.__getattribute__(cls, "__dict__"):
            return type.__getattribute__(cls, name)
        value = getattr(original_class(cls), name)
        return _own(cls, _MEMBER)(value) if callable(value) else value

    def __setattr__(cls, name: str, value: object) -> None:
        """Written to the original."""
        setattr(original_class(cls), name, value)

    def __instancecheck__(cls, instance: object) -> bool:
        """As the original; traced values are of the classes that their values have."""
        original = original_class(cls)
        return isinstance(instance, original) or isinstance(_exemplar[0](instance), original)

    def __subclasscheck__(cls, other: type) -> bool:
        """As the original."""
        return issubclass(original_class(other), original_class(cls))

    def __eq__(cls, other: object) -> bool:
        """Equal to the original."""
        return bool(original_class(cls) == original_class(other))

    def __hash__(cls) -> int:
        """Of the original."""
        return hash(original_class(cls))

    def __dir__(cls) -> list[str]:
        """Of the original."""
        return dir(original_class(cls))

    def __getitem__(cls, key: Any) -> Any:
        """As the original: a generic alias."""
        return original_class(cls)[key]

    def __repr__(cls) -> str:
        """Of the original."""
        return repr(original_class(cls))


def _own(cls: type, name: str) -> Any:
    return type.__getattribute__(cls, "__dict__")[name]


def original_class(cls: Any) -> Any:
    """The class that another one stands for; others are themselves."""
    return _own(cls, _ORIGINAL) if type(cls) is StandIn else cls
