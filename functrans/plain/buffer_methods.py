"""Methods and attributes of buffers: ndarray's, and those of the tracer once there is one.

Here: what is made by name from ``np.ndarray``. Not here: indexing, iteration, ufuncs and functions
of NumPy (``plain.memory``).

Layer: ``plain``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.arrays.python_values import element, nested_elements
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.plain.memory import (
    NEVER,
    Buffer,
    BufferFlat,
    call_settled,
    given,
    holds_tracer,
    lifted,
    new_array,
    number_of,
    settled,
)


def _property(name: str) -> property:
    plain = getattr(np.ndarray, name)

    def get(self: Buffer) -> Any:
        tracer = self.traced()
        if tracer is None:
            return BufferFlat(self) if name == "flat" else plain.__get__(self)
        if not self.ndim and name != "flat":
            result = plain.__get__(self)
            if self.home().holds(result):
                return result
        return getattr(tracer, name)

    def put(self: Buffer, value: object) -> None:
        getattr(self, name)[...] = value

    return property(
        get, put if name in ("real", "imag", "flat") else None, None, f"``ndarray.{name}``."
    )


def _method(name: str) -> Callable[..., Any]:
    plain = getattr(np.ndarray, name)
    place = _PLACES_OF_OUT.get(name, NEVER)

    def computed(array: Array, *args: object, **kwargs: object) -> Any:
        if type(array) is np.ndarray and (holds_tracer(args) or holds_tracer(kwargs)):
            array = lifted(array)
        return getattr(array, name)(*args, **kwargs)

    def method(self: Buffer, *args: object, **kwargs: bool) -> Any:
        if len(args) > place or "out" in kwargs:
            return call_settled(computed, (self, *args), kwargs, place + 1, name)
        tracer = self.traced()
        if tracer is not None and (name in _RESHAPES or (not self.ndim and name in _VIEWS)):
            # The layout is known: so is what is shared.
            result = plain(self, *args, **kwargs)
            if self.home().holds(result):
                return result
            tracer = tracer.copy()  # the layout of a traced array would allow a view
        if tracer is None and (args or kwargs):
            args, kwargs = settled(args), settled(kwargs)
            if holds_tracer(args) or holds_tracer(kwargs):
                tracer = self.made_traced() if name in _WRITERS else lifted(self)
        if tracer is not None:
            if name in _TO_PYTHON:
                return _TO_PYTHON[name](tracer, *args)
            if name in _WRITERS:
                return getattr(tracer, name)(*args, **kwargs)
            result = getattr(number_of(tracer), name)(*args, **kwargs)
            return new_array(result) if name in _COPIES else result
        if name in _PLACES_OF_OUT:  # NumPy's own code for some of them takes ufuncs of ``self``
            return given(plain(self.plain(), *args, **kwargs))
        return plain(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Buffer.{name}"
    method.__doc__ = f"``ndarray.{name}``."
    return method


_TO_PYTHON: dict[str, Callable[..., Any]] = {"item": element, "tolist": nested_elements}
"""Methods that give Python's numbers, of which traced ones stay traced."""

_PLACES_OF_OUT = {
    "all": 2, "any": 2, "argmax": 1, "argmin": 1, "choose": 1, "clip": 2, "compress": 2,
    "cumprod": 2, "cumsum": 2, "dot": 1, "max": 1, "mean": 2, "min": 1, "prod": 2, "round": 1,
    "std": 2, "sum": 2, "take": 2, "trace": 4, "var": 2,
}  # fmt: skip
"""Where ``out`` is among the arguments of methods."""

_RESHAPES = frozenset({"reshape", "ravel"})
"""Methods that give a view or a copy, as the layout in memory allows."""

_VIEWS = frozenset({"squeeze", "swapaxes", "transpose", "view"})
"""Further methods that give a view."""

_COPIES = frozenset({"__copy__", "astype", "copy"})
"""Methods that give a new array."""

_WRITERS = frozenset({"fill", "put", "sort", "partition"})
"""Methods that write to the array itself."""

_OF_BITS = frozenset(
    {"setflags", "setfield", "getfield", "resize", "tofile", "dump", "dumps", "byteswap"}
)
"""Methods that a traced array does not have."""


def _bits(name: str) -> Callable[..., Any]:
    plain = getattr(np.ndarray, name)

    def method(self: Buffer, *args: object, **kwargs: object) -> Any:
        if self.traced() is not None:
            raise UnsupportedOperationError(
                f"ndarray.{name} of an array that holds traced values{here()}: their bits are not "
                "known; write the function without it"
            )
        return plain(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Buffer.{name}"
    method.__doc__ = f"``ndarray.{name}``."
    return method


_PYTHON = (
    "__bool__", "__float__", "__int__", "__index__", "__complex__", "__contains__", "__copy__",
    "__repr__", "__str__", "__format__",
)  # fmt: skip


def install() -> None:
    """Give the methods and attributes to the class."""
    names = [name for name in dir(np.ndarray) if not name.startswith("_")]
    for name in [*names, *_PYTHON]:
        if callable(getattr(np.ndarray, name)):
            setattr(Buffer, name, (_bits if name in _OF_BITS else _method)(name))
    for name in ("T", "mT", "real", "imag", "flat"):
        setattr(Buffer, name, _property(name))
