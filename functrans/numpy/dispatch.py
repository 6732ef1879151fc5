"""How a NumPy-shaped function finds its traced implementation.

Here: ``implements`` (plain arguments go to NumPy itself, traced ones to the function below it),
``has_tracer``, and writing to ``out=``. Not here: the functions, and how NumPy finds ours
(``protocols``).

Layer: ``numpy`` (first module).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from functrans.arrays.masked import MaskedSelection
from functrans.arrays.writes import reject_out, write
from functrans.core.boundary import shorten
from functrans.core.dispatch import Tracer, written
from functrans.core.state import open_traces
from functrans.core.values import Array

F = TypeVar("F", bound=Callable[..., Any])


def has_tracer(values: Iterable[Any]) -> bool:
    """Whether a traced value is among values, or in lists and tuples among them."""
    for value in values:
        if isinstance(value, (Tracer, MaskedSelection)):
            return True
        if isinstance(value, (list, tuple)) and has_tracer(value):
            return True
    return False


def implements(*numpy_functions: Callable[..., Any], own: Sequence[str] = ()) -> Callable[[F], F]:
    """Make a function the traced implementation of a NumPy function.

    Args:
      *numpy_functions: the NumPy functions that it implements (several when NumPy has aliases);
        the first is called when no argument is traced.
      own: names of keywords, and texts as arguments, that NumPy does not know: with one of them the
        traced implementation is called for plain arguments, too.

    Returns:
      A decorator. The decorated function has NumPy's name and signature, calls NumPy itself on
      plain arguments, and carries ``numpy_functions`` and ``traced`` for the tables.
    """

    def decorate(traced: F) -> F:
        plain = numpy_functions[0]
        unknown = frozenset(own)

        @functools.wraps(traced)
        def function(*args: object, **kwargs: object) -> Any:
            try:
                for arg in args:
                    if isinstance(arg, Tracer):
                        return traced(*args, **kwargs)
                if has_tracer(args) or (kwargs and has_tracer(kwargs.values())):
                    return traced(*args, **kwargs)
                if unknown and _has_own(unknown, args, kwargs):
                    return _plain_arrays(traced(*args, **kwargs))
                return plain(*args, **kwargs)
            except Exception as error:
                shorten(error)
                raise

        function.own = unknown  # type: ignore[attr-defined]  # functions have a dict
        function.traced = traced  # type: ignore[attr-defined]  # functions have a dict
        function.numpy_functions = numpy_functions  # type: ignore[attr-defined]  # functions have a dict
        return function  # type: ignore[return-value]  # it has the signature of F

    return decorate


def _has_own(own: frozenset[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a keyword, or a text among the arguments, is one that NumPy does not know."""
    texts = [value for value in (*args, *kwargs.values()) if type(value) is str]
    return not own.isdisjoint(kwargs) or not own.isdisjoint(texts)


def _plain_arrays(result: Array) -> Array:
    """Results of the traced implementation as those of NumPy: arrays, also of no axes."""
    if isinstance(result, tuple):
        return tuple(map(_plain_arrays, result))
    return np.asarray(result)


def lifted(value: Array, like: Any) -> Any:
    """A new plain array as one that traced values can be written to, if ``like`` is traced.

    It belongs to the innermost open trace, so that it may be filled inside an inner function also
    when ``like`` belongs to an enclosing one.
    """
    if not isinstance(like, Tracer) or isinstance(value, Tracer):
        return value
    stack = open_traces.get()
    return (stack[-1] if stack else like._trace).lift(value)


def store(name: str, out: object, result: object) -> Array:
    """Write a result to ``out=``."""
    (target,) = out if isinstance(out, tuple) else (out,)
    array = written(target)
    if not isinstance(array, Tracer):
        reject_out(name, target)
    write(array, result, name)
    return target
