"""Records: the standard library's ``dataclass`` with methods that are shared and not generated.

Here: ``dataclass``. For frozen records with slots, which nearly all of ours are, the decorator of
the standard library writes and compiles six functions, 0.8 ms for each class and a fifth of the
time in which ``import functrans.numpy`` ends. Here one is written, ``__init__``; it sets slots
directly, which takes 0.5 us where ``object.__setattr__`` takes 0.9. The others are shared.
Checkers of types see the standard library's decorator; ``field``, ``fields`` and ``replace`` are
the standard library's. Not here: records that are registered as trees (``tree``).

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import replace as replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        repr: bool = True,
        weakref_slot: bool = False,
    ) -> Callable[[type], type]:
        """Class decorator: ``dataclasses.dataclass`` of the standard library.

        Args:
          frozen: fields cannot be set afterwards.
          slots: instances have slots and no ``__dict__``.
          eq: records of one class are equal, and have equal hashes, where their fields do.
          repr: ``repr`` shows the fields.
          weakref_slot: weak references are possible.

        ``__post_init__`` sets what is ``field(init=False)``; there is no ``InitVar``.
        """
        if not (frozen and slots):
            return dataclasses.dataclass(
                frozen=frozen, slots=slots, eq=eq, repr=repr, weakref_slot=weakref_slot
            )

        def made(cls: type) -> type:
            own = {name for name, value in vars(cls).items() if value is not None}
            cls = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=True, weakref_slot=weakref_slot
            )(cls)
            given = fields(cls)
            methods = {"__init__": _init(cls, given), **_FROZEN}
            if repr:
                methods["__repr__"] = _repr
            if eq:
                compared = [f.name for f in given if f.compare]
                hashed = [f.name for f in given if (f.compare if f.hash is None else f.hash)]
                methods |= {"__eq__": _eq(_values(compared)), "__hash__": _hash(_values(hashed))}
            for name, method in methods.items():
                if name not in own:
                    setattr(cls, name, method)
            return cls

        return made


def _init(cls: type, given: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """``__init__``, which sets the slots of one class."""
    names: dict[str, Any] = {"missing": dataclasses.MISSING}
    parameters: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for one in given:
        if not one.init:
            continue  # ``__post_init__`` sets it
        name = one.name
        names[f"set_{name}"] = getattr(cls, name).__set__
        value = name
        if one.default is not dataclasses.MISSING:
            names[f"default_{name}"] = one.default
            parameter = f"{name}=default_{name}"
        elif one.default_factory is not dataclasses.MISSING:
            names[f"new_{name}"] = one.default_factory
            parameter = f"{name}=missing"
            value = f"new_{name}() if {name} is missing else {name}"
        else:
            parameter = name
        (keywords if one.kw_only else parameters).append(parameter)
        body.append(f" set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    head = ", ".join(["self", *parameters, *(["*", *keywords] if keywords else [])])
    exec("\n".join([f"def __init__({head}):", *(body or [" pass"])]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {one.name: one.type for one in given} | {"return": None}
    return init


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns a record's fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], bool]:
    def equal(self: Any, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


@recursive_repr("...")
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(_: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(_: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_FROZEN = {
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
"""What makes fields fixed, and what `pickle` and `copy` need then."""
