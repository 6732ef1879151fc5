"""How a NumPy-shaped function finds its traced implementation, and how NumPy finds ours.

Here: ``implements`` (plain arguments go to NumPy itself, traced ones to the function below it),
``has_tracer``, and the two tables by which tracers answer NumPy's protocols: ufuncs and array
functions. Not here: the functions.

Layer: ``numpy`` (first module).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from functrans.errors import UnsupportedOperationError
from functrans.ir.source import here
from functrans.masked import MaskedSelection
from functrans.operators import as_operand, is_foreign, reject_out, write
from functrans.state import open_traces
from functrans.trace import Tracer, written

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
        def function(*args: Any, **kwargs: Any) -> Any:
            for arg in args:
                if isinstance(arg, Tracer):
                    return traced(*args, **kwargs)
            if has_tracer(args) or (kwargs and has_tracer(kwargs.values())):
                return traced(*args, **kwargs)
            if unknown and _has_own(unknown, args, kwargs):
                return _plain_arrays(traced(*args, **kwargs))
            return plain(*args, **kwargs)

        function.own = unknown  # type: ignore[attr-defined]  # functions have a dict
        function.traced = traced  # type: ignore[attr-defined]  # functions have a dict
        function.numpy_functions = numpy_functions  # type: ignore[attr-defined]  # functions have a dict
        return function  # type: ignore[return-value]  # it has the signature of F

    return decorate


def _has_own(own: frozenset[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a keyword, or a text among the arguments, is one that NumPy does not know."""
    texts = [value for value in (*args, *kwargs.values()) if type(value) is str]
    return not own.isdisjoint(kwargs) or not own.isdisjoint(texts)


def _plain_arrays(result: Any) -> Any:
    """Results of the traced implementation as those of NumPy: arrays, also of no axes."""
    if isinstance(result, tuple):
        return tuple(map(_plain_arrays, result))
    return np.asarray(result)


_array_functions: dict[Callable[..., Any], Callable[..., Any]] = {}
_ufuncs: dict[np.ufunc, Callable[..., Any]] = {}
_scipy_ufuncs: dict[str, Callable[..., Any]] = {}
_scipy_tables: list[Callable[[], Mapping[str, Callable[..., Any]]]] = []
_ufunc_methods: dict[str, Callable[..., Any]] = {}
_replacements: dict[Callable[..., Any], str] = {}
_modules: list[ModuleType] = []


def install_tables(
    modules: Iterable[ModuleType],
    ufuncs: Mapping[np.ufunc, Callable[..., Any]],
    load_scipy: Callable[[], Mapping[str, Callable[..., Any]]],
    ufunc_methods: Mapping[str, Callable[..., Any]],
    replacements: Mapping[Callable[..., Any], str],
) -> None:
    """Hand over the tables; called once, when functrans is imported.

    Args:
      modules: modules whose functions made by ``implements`` are in the array-function table, which
        is built at first use.
      ufuncs: ufunc to the function of its operands.
      load_scipy: gives the same for ``scipy.special``, by name; called when a ufunc of it is.
      ufunc_methods: ``reduce``, ``accumulate``, ``outer``, ``at``, ``reduceat`` to a function of
        ufunc and arguments.
      replacements: NumPy functions that cannot be traced, to what to use instead.
    """
    _modules[:] = modules
    _ufuncs.update(ufuncs)
    _scipy_tables[:] = [load_scipy]
    _ufunc_methods.update(ufunc_methods)
    _replacements.update(replacements)


def array_functions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """NumPy function to traced implementation; built at first use."""
    if not _array_functions:
        for module in _modules:
            for value in vars(module).values():
                for function in getattr(value, "numpy_functions", ()):
                    _array_functions[function] = value.traced
    return _array_functions


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{getattr(function, '__name__', function)}"


def array_function(
    self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``__array_function__`` of tracers.

    Raises:
      UnsupportedOperationError: there is no traced implementation; names a replacement.
    """
    traced = array_functions().get(function)
    if traced is None:
        hint = _replacements.get(function)
        remedy = (
            hint
            if hint is not None
            else "compose it from functions that are (docs list them), make it one operation with "
            "ft.external(f, out_like), or keep it out of the traced function with ft.stop_gradient"
        )
        raise UnsupportedOperationError(f"{_name(function)} cannot be traced{here()}; {remedy}.")
    out = kwargs.pop("out", None)
    result = traced(*args, **kwargs)
    if type(result) is np.ndarray and not has_tracer(args) and not has_tracer(kwargs.values()):
        result = lifted(result, self)  # np.zeros(3, like=x): an array to write traced values to
    return result if out is None else store(_name(function), out, result)


def lifted(value: Any, like: Any) -> Any:
    """A new plain array as one that traced values can be written to, if ``like`` is traced.

    It belongs to the innermost open trace, so that it may be filled inside an inner function also
    when ``like`` belongs to an enclosing one.
    """
    if not isinstance(like, Tracer) or isinstance(value, Tracer):
        return value
    stack = open_traces.get()
    return (stack[-1] if stack else like._trace).lift(value)


def store(name: str, out: Any, result: Any) -> Any:
    """Write a result to ``out=``."""
    (target,) = out if isinstance(out, tuple) else (out,)
    array = written(target)
    if not isinstance(array, Tracer):
        reject_out(name, target)
    write(array, result, name)
    return target


def _traced_ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The function by which traced values answer a ufunc of NumPy or SciPy."""
    traced = _ufuncs.get(ufunc)
    if traced is None and "scipy.special" in sys.modules:
        module = sys.modules["scipy.special"]
        if not _scipy_ufuncs:
            for load in _scipy_tables:
                _scipy_ufuncs.update(load())
        for name, function in _scipy_ufuncs.items():
            if getattr(module, name, None) is ufunc or name == ufunc.__name__ == f"_{name[1:]}":
                traced = _ufuncs[ufunc] = function
    return traced


@functools.lru_cache(maxsize=1024)
def _ufunc_name(ufunc: np.ufunc) -> str:
    """``numpy.sin``, or ``scipy.special.gamma``."""
    name = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        module = sys.modules.get("scipy.special")
        for public in (name, name.lstrip("_")) if module is not None else ():
            if getattr(module, public, None) is ufunc:
                return f"scipy.special.{public}"
        return name
    return f"numpy.{name}"


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``__array_ufunc__`` of tracers.

    Raises:
      UnsupportedOperationError: the ufunc or one of its options cannot be traced.
    """
    name = _ufunc_name(ufunc) + (f".{method}" if method != "__call__" else "")
    out = kwargs.pop("out", None)
    if out is not None and method != "at":
        for target in out if isinstance(out, tuple) else (out,):
            if target is not None and not isinstance(written(target), Tracer):
                reject_out(name, target)
    if method != "__call__":
        inputs = tuple([as_operand(x) if isinstance(x, np.ndarray) else x for x in inputs])
        function = _ufunc_methods.get(method)
        if function is None:
            raise UnsupportedOperationError(f"{name} cannot be traced{here()}")
        result = function(ufunc, *inputs, **kwargs)
        return result if out is None else store(name, out, result)
    traced = _traced_ufunc(ufunc)
    if traced is None:
        raise UnsupportedOperationError(
            f"{name} cannot be traced{here()}: functrans has no rule for it. Compose "
            "it from functions that have one, or make it one operation with ft.external(f, "
            "out_like), which takes a derivative rule or finite differences."
        )
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    for option in ("casting", "order", "subok"):
        kwargs.pop(option, None)
    if kwargs and ufunc.signature is None:  # those with a signature take axis=
        raise UnsupportedOperationError(
            f"{name}: option {sorted(kwargs)[0]}= cannot be traced{here()}; leave it out"
        )
    for x in inputs:
        if not isinstance(x, Tracer) and (type(x) is not np.ndarray or x.dtype.hasobject):
            if any(map(is_foreign, inputs)):
                return NotImplemented
            inputs = tuple([x if isinstance(x, Tracer) else as_operand(x) for x in inputs])
            break
    if dtype is not None:
        cast_to = array_functions().get(np.astype)
        assert cast_to is not None
        inputs = tuple(cast_to(x, dtype) if isinstance(x, Tracer) else x for x in inputs)
    result = traced(*inputs, **kwargs)
    if where is not True:
        if out is None:
            raise UnsupportedOperationError(
                f"{name}: where= without out= leaves elements uninitialised{here()}; use "
                "np.where(mask, f(x), fill)"
            )
        (target,) = out if isinstance(out, tuple) else (out,)
        result = array_functions()[np.where](where, result, target)
    if out is None:
        return result
    if isinstance(result, tuple):
        return tuple(
            part if target is None else store(name, target, part)
            for target, part in zip(out, result, strict=True)
        )
    return store(name, out, result)


def protocol_table() -> dict[str, Any]:
    """The NumPy protocols of tracers, by method name."""
    return {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
