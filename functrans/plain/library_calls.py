"""Functions of libraries as twins call them.

They get what buffers stand for, and give buffers (``plain.memory``). Functions of SciPy that
functrans does not have are traced as user code is.

Here: what such a function becomes. Not here: which function that is (``plain.libraries``,
``plain.numpy_names``), those that keep what they are given (``plain.readers``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from functrans.core.boundary import note_refusal
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer
from functrans.core.values import Array
from functrans.errors import FunctransError
from functrans.plain.memory import NEVER, call_settled, holds_tracer, settled, write_by
from functrans.plain.twins import original_of, twin_of_code


def of_functrans(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of functrans for twins: it makes the twins of functions that it is given itself.

    So programs hold functions that can be found by name.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: float) -> Any:
        args = tuple([_by_itself(arg) for arg in args])
        return call_settled(function, args, {k: _by_itself(arg) for k, arg in kwargs.items()})

    return call


def _by_itself(value: object) -> Any:
    if type(value) is types.FunctionType and value.__closure__ is None:
        return original_of(value)
    return value


def of_code(function: Any) -> Callable[..., Any]:
    """A function of SciPy that functrans does not have: its own code on traced values.

    It is traced as user code is. Much of SciPy asks ``array_namespace`` whose functions to call
    (the array API); traced values say functrans's.
    """
    plain = library(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not holds_tracer(settled((args, kwargs))):
            return plain(*args, **kwargs)
        args = tuple(map(_held, args))
        try:
            return twin_of_code(function)(*args, **{k: _held(arg) for k, arg in kwargs.items()})
        except FunctransError:
            raise
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(
                    f"in {function.__module__}.{function.__name__}, whose own code was traced; if "
                    "it takes such arguments as plain arrays, make it one operation with "
                    "ft.external(f, out_like)"
                )
            raise

    call.is_of_code = True  # type: ignore[attr-defined]  # for ``is_of_code``
    return call


def is_of_code(function: object) -> bool:
    """Whether a twin is one of SciPy's functions whose own code is traced."""
    return getattr(function, "is_of_code", False)


class _Held:
    """An object of SciPy's, as the distribution of a statistic is: its methods are traced, too."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        """Of the object."""
        found = getattr(self.value, name)
        if type(found) is types.MethodType:
            return functools.partial(of_code(found.__func__), found.__self__)
        return found


def _held(value: object) -> Any:
    kind = type(value)
    is_held = kind.__module__ == "scipy.stats._stats_py" and not issubclass(kind, tuple)
    return _Held(value) if is_held else value


def compiled(function: Any) -> Any:
    """A function that Cython compiled: SciPy's takes the memory of arrays, which no tracer has."""
    if not str(getattr(function, "__module__", "")).startswith("scipy."):
        return function
    plain = library(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        for value in settled((*args, *kwargs.values())):
            if isinstance(value, Tracer):
                error = deferred.conversion_error(value, sys._getframe(1))
                note_refusal(value._trace, error)
                raise error
        return plain(*args, **kwargs)

    return call


def library(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a library for twins: it gets what buffers stand for, and gives buffers."""
    place = _place_of_out(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return call_settled(function, args, kwargs, place)

    return call


def _place_of_out(function: Callable[..., Any]) -> int:
    """Where ``out`` is among the arguments of a function of functrans."""
    code = getattr(getattr(function, "traced", function), "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    return names.index("out") if "out" in names else NEVER


def writing(function: Callable[..., Any], target: str) -> Callable[..., Any]:
    """A function that writes to its first argument."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: Array) -> Any:
        return write_by(function, target, args, kwargs)

    return call


def called_by_scipy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without the option by which functions of SciPy call each other undecorated."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        kwargs.pop("_no_deco", None)
        return function(*args, **kwargs)

    return call
