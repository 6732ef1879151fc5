"""Calling the functions that transforms are given: as they are, or their twins.

Here: ``traced_form`` and ``call_traced``. A function written for NumPy has a *twin*, the same code
for which NumPy's names stand for ours; whether it needs one and what it is says ``plain``. Not
here: its arguments (``core.arguments``).

Layer: ``core``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, TypeVar

from functrans.core.arguments import check_callable, taken_over
from functrans.core.deferred import deferred
from functrans.core.state import current_config, open_traces

Function = TypeVar("Function", bound=Callable[..., Any])


def traced_form(who: str, fun: Function) -> Function:
    """What a transform calls for a function: the function, or its twin where plain code needs one.

    Raises:
      TypeError: it is no function.
    """
    check_callable(who, fun)
    is_twin = _is_twin(fun)
    if not is_twin and not _may_have_twin(fun):
        return fun

    needs_none = False  # nor would it, but for an argument

    @functools.wraps(fun, taken_over(fun))
    def call(*args: object, **kwargs: object) -> Any:
        nonlocal needs_none
        if needs_none and _MAY_NEED_TWIN.isdisjoint(map(type, args)):
            return fun(*args, **kwargs)
        if is_twin:
            return deferred.call_within(fun, args, kwargs)
        if current_config.get().plain and open_traces.get():
            if deferred.needs_twin(fun, args):
                return deferred.call_twin(fun, args, kwargs)
            needs_none = type(fun) in (FunctionType, functools.partial)
        return fun(*args, **kwargs)

    return call  # type: ignore[return-value]  # it has the signature of fun


_MAY_NEED_TWIN = frozenset({FunctionType, MethodType, functools.partial, list})
"""Types of arguments for which a function may need a twin that needs none of itself."""


def call_traced(fun: Any, /, *args: object, **kwargs: object) -> Any:
    """Call a function, or its twin where plain code needs one."""
    is_on = current_config.get().plain and open_traces.get()
    if is_on and _may_have_twin(fun) and deferred.needs_twin(fun, args):
        return deferred.call_twin(fun, args, kwargs)
    return fun(*args, **kwargs)


def is_own(function: FunctionType) -> bool:
    """Whether a function is one of functrans; functions of examples in docstrings are none."""
    name: str = function.__globals__.get("__name__", "")
    is_example = function.__code__.co_filename.startswith("<doctest")
    return name.startswith("functrans.") and not is_example


def _is_twin(fun: object) -> bool:
    """Whether a function is a twin, or was made by one."""
    if type(fun) is MethodType:
        fun = fun.__func__
    return type(fun) is FunctionType and type(fun.__globals__) is not dict


def _may_have_twin(fun: object) -> bool:
    """Whether a function may be of plain code: not functrans's own, and no twin already."""
    if type(fun) is MethodType:
        fun = fun.__func__
    if type(fun) is FunctionType:
        return type(fun.__globals__) is dict and not is_own(fun)
    return not type(fun).__module__.startswith("functrans.")
