"""Code of libraries that reads memory: what it is given of arrays that hold traced values.

Functions of NumPy and SciPy get traced values in place of arrays (``plain.library_calls``). Classes
do, too: a name of a class is one that stands for it (``plain.standins``), which gives the class
traced values and leaves arrays that hold none as they are, since objects keep what they are given.

Here: the classes of libraries in twins, and ``reading``, a function that gets its arguments so. Not
here: iterators of NumPy (``plain.iterators``), what is read in other ways (``plain.unreadable``).

Layer: ``plain``.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.plain.memory import as_read
from functrans.plain.standins import StandIn
from functrans.plain.twins import is_twin, register

_LEFT = (
    BaseException, dict, enum.Enum, list, np.dtype, np.generic, np.ndarray, np.ufunc, str, tuple,
    type,
)  # fmt: skip
"""Classes that stay themselves with those below them: containers hold what they are given, and
types of arrays and numbers are treated elsewhere."""

_LIBRARIES = frozenset({"numpy", "scipy"})


def stand_in(
    cls: type, make: Callable[..., Any] | None = None, member: Callable[[Any], Any] | None = None
) -> type:
    """What stands for a class of a library: a class that reads traced values, or itself.

    Args:
      cls: the class.
      make: what a call does, if it is not the class on such arguments.
      member: what a function among its attributes becomes, if not one on such arguments.
    """
    if cls.__module__.partition(".")[0] not in _LIBRARIES or issubclass(cls, _LEFT):
        return cls
    if type(cls) is StandIn or getattr(cls, "_is_protocol", False):
        return cls
    result = StandIn(cls, make or _making(cls), member or _member)
    register(cls, result)
    return result


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given traced values in place of arrays that hold some."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return function(*map(as_read, args), **{key: as_read(x) for key, x in kwargs.items()})

    return call


def _making(cls: type) -> Callable[..., Any]:
    def make(*args: object, **kwargs: object) -> Any:
        return cls(*map(_argument, args), **{key: _argument(x) for key, x in kwargs.items()})

    return make


def _argument(value: Any) -> Any:
    """An argument of a class; results of functions are read as arguments are."""
    kind = type(value)
    if kind is types.FunctionType and is_twin(value):
        return _answering(value)
    if kind is types.MethodType and is_twin(value.__func__):
        return _answering(value)
    return as_read(value)


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return as_read(function(*args, **kwargs))

    return call


def _member(value: object) -> Any:
    """A function among the attributes of a class: class methods, methods called on the class."""
    return reading(value) if isinstance(value, _FUNCTIONS) else value


_FUNCTIONS = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.ClassMethodDescriptorType, type(np.nditer.__init__),
    type(object().__str__),
)  # fmt: skip
