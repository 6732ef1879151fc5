"""How a SciPy-shaped function finds its plain and its traced implementation.

Here: ``implements`` (plain arguments go to SciPy itself, traced ones to the function below it),
``by_code`` (traced ones run SciPy's own code), what namespaces import later, and the conversion of
operands. Not here: the functions. SciPy is imported when it is first called.

Layer: ``scipy`` (first module).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.boundary import shorten
from functrans.core.deferred import deferred
from functrans.core.dispatch import dtype_of
from functrans.namespaces import missing
from functrans.numpy.common import as_array, inexact
from functrans.numpy.dispatch import has_tracer
from functrans.primitives.elementwise import rint
from functrans.primitives.structural import cast

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def plain(path: str) -> Any:
    """SciPy's own function, class or module.

    Args:
      path: where it is in SciPy: ``"linalg.expm"``.

    Raises:
      ImportError: SciPy is not installed.
    """
    module, _, name = path.rpartition(".")
    try:
        found = resolve_name(f"scipy.{module}:{name}")
    except ImportError as error:
        raise ImportError(
            f"functrans.scipy.{path} calls SciPy, which could not be imported; pip install scipy"
        ) from error
    return found


def implements(path: str, **own: Callable[..., Any]) -> Callable[[F], F]:
    """Make a function the traced implementation of a function of SciPy.

    Args:
      path: where it is in SciPy: ``"linalg.expm"``.
      **own: options that SciPy's function does not have. Where one is true, what it names here is
        called with the name of the function, SciPy's result and the positional arguments.

    Returns:
      A decorator. The decorated function calls SciPy itself on plain arguments, and carries
      ``traced``.
    """

    def decorate(traced: F) -> F:
        @functools.wraps(traced)
        def function(*args: object, **kwargs: object) -> Any:
            try:
                if has_tracer(args) or (kwargs and has_tracer(kwargs.values())):
                    return traced(*args, **kwargs)
                wanted = [check for option, check in own.items() if kwargs.pop(option, False)]
                result = plain(path)(*args, **kwargs)
                for check in wanted:
                    result = check(traced.__name__, result, *args)
                return result
            except Exception as error:
                shorten(error)
                raise

        function.traced = traced  # type: ignore[attr-defined]  # functions have a dict
        return function  # type: ignore[return-value]  # it has the signature of F

    return decorate


@functools.cache
def by_code(path: str) -> Callable[..., Any]:
    """A function of SciPy whose own code is traced, as code of the user's is.

    Args:
      path: where it is in SciPy: ``"signal.hilbert"``.
    """
    scipys = plain(path)

    @implements(path)
    @functools.wraps(scipys)
    def function(*args: object, **kwargs: object) -> Any:
        return deferred.call_twin(scipys, args, kwargs)

    function.__module__ = f"functrans.scipy.{path.rpartition('.')[0]}"
    return function


def later(module: str, names: Sequence[str], constants: Sequence[str] = ()) -> Callable[[str], Any]:
    """The ``__getattr__`` of a namespace.

    Args:
      module: of SciPy: ``"signal"``.
      names: functions that are traced by their code.
      constants: functions of plain arguments and classes, which are SciPy's own.
    """

    def attribute(name: str) -> Any:
        """What SciPy has under the name, imported at first use."""
        if name in names:
            return by_code(f"{module}.{name}")
        if name in constants:
            return plain(f"{module}.{name}")
        raise missing(f"functrans.scipy.{module}", name)

    return attribute


def floats(*operands: Any) -> list[Any]:
    """Operands as arrays, integers and booleans as float64."""
    return [inexact(as_array(x)) for x in operands]


def whole(y: ArrayLike, *operands: object) -> Any:
    """A result that is whole where all operands are: in their common dtype, modulo its range."""
    dtype = np.result_type(*(dtype_of(as_array(x)) for x in operands))
    if dtype.kind not in "iub":
        return y
    y = y if dtype_of(y).kind in "iub" else cast(rint(y), np.int64)
    return cast(y, np.dtype(np.int8) if dtype.kind == "b" else dtype)  # as SciPy's of booleans


def common_floating(*operands: Any) -> np.dtype:
    """The common floating dtype of operands."""
    return np.result_type(*(dtype_of(x) for x in operands))
