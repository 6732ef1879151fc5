"""NumPy's protocols of traced arrays.

Here: ``__array_ufunc__`` and ``__array_function__``, and ``tracer_methods``, them and the ndarray
methods, which tracers get when the first is used (``deferred``). Not here: the functions and what
implements them (``tables``), what functions of NumPy do with plain arrays (``dispatch``).

Layer: ``numpy``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.arrays.callers import is_augmented
from functrans.arrays.operators import as_operand, is_foreign
from functrans.arrays.writes import reject_out
from functrans.core.boundary import note_refusal, shorten
from functrans.core.caching import remembered
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer, written
from functrans.core.source import here
from functrans.core.state import rebinds
from functrans.core.values import Array
from functrans.errors import FunctransError, UnsupportedOperationError
from functrans.numpy.dispatch import has_tracer, lifted, store
from functrans.numpy.methods import method_table
from functrans.numpy.tables import MODULES, REPLACEMENTS
from functrans.numpy.ufunc_methods import UFUNC_METHODS
from functrans.numpy.ufuncs import UFUNCS


@functools.cache
def array_functions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """NumPy function to traced implementation; built at first use."""
    return {
        function: value.traced
        for module in MODULES
        for value in vars(module).values()
        for function in getattr(value, "numpy_functions", ())
    }


def _name(function: object) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{getattr(function, '__name__', function)}"


_NO_REPLACEMENT = (
    "compose it from functions that are (docs list them), make it one operation with "
    "ft.external(f, out_like), or keep it out of the traced function with ft.stop_gradient"
)


def array_function(
    self: Any, function: Any, types: ArrayLike, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Array | complex:
    """``__array_function__`` of tracers.

    Raises:
      UnsupportedOperationError: there is no traced implementation; names a replacement.
    """
    try:
        traced = array_functions().get(function)
        if traced is None:
            remedy = REPLACEMENTS.get(function, _NO_REPLACEMENT)
            raise UnsupportedOperationError(
                f"{_name(function)} cannot be traced{here()}; {remedy}."
            )
        out = kwargs.pop("out", None)
        result = traced(*args, **kwargs)
        if type(result) is np.ndarray and not has_tracer(args) and not has_tracer(kwargs.values()):
            result = lifted(result, self)  # np.zeros(3, like=x): an array to write traced values to
        return result if out is None else store(_name(function), out, result)
    except FunctransError as error:  # C code may drop it
        note_refusal(self._trace, error)
        shorten(error)
        raise


def _traced_ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The function by which traced values answer a ufunc of NumPy or SciPy."""
    traced = UFUNCS.get(ufunc)
    if traced is None and "scipy.special" in sys.modules:
        return _special_ufunc(ufunc)
    return traced


@remembered(1024)  # users' ufuncs, which are asked for, too, may come and go
def _special_ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    module = sys.modules["scipy.special"]
    functions: dict[str, Callable[..., Any]] = deferred.special_ufuncs
    for name, function in functions.items():
        if getattr(module, name, None) is ufunc or name == ufunc.__name__ == f"_{name[1:]}":
            return function
    return None


@remembered(1024)
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
    try:
        name = _ufunc_name(ufunc) + (f".{method}" if method != "__call__" else "")
        out = kwargs.pop("out", None)
        if out is not None and rebinds.get() and is_augmented(inputs, out):
            out = None
        if out is not None and method != "at":
            for target in out if isinstance(out, tuple) else (out,):
                if target is not None and not isinstance(written(target), Tracer):
                    reject_out(name, target)
        if method != "__call__":
            inputs = tuple([as_operand(x) if isinstance(x, np.ndarray) else x for x in inputs])
            function = UFUNC_METHODS.get(method)
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
    except FunctransError as error:  # C code may drop it
        note_refusal(self._trace, error)
        shorten(error)
        raise


def tracer_methods() -> dict[str, Any]:
    """NumPy's protocols and the ndarray methods of traced arrays."""
    protocols = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
    return {**protocols, **method_table()}
