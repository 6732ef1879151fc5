"""Types for annotations: of arrays, of pytrees, of functions that are transformed.

Here: ``Array``, which is also for ``isinstance``, and the type variables of transforms. Not here:
what is known of an array without its data (``core.avals``), traced arrays (``core.dispatch``).

Layer: ``core``.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from typing_extensions import ParamSpec, TypeVar

from functrans.core.dispatch import Tracer

P = ParamSpec("P", default=...)
"""The parameters of a function."""
R = TypeVar("R", default=Any)
"""Its result."""
Q = ParamSpec("Q")
"""The parameters of a method without the instance."""
Instance = TypeVar("Instance")
"""The instance."""
Result = TypeVar("Result")
"""The result of another function than that of ``R``."""
Point = TypeVar("Point")
"""Where a function is differentiated: an array or a tuple of them."""
Rule = TypeVar("Rule", bound=Callable[..., Any])
"""A function that is returned as it is."""
Aux = TypeVar("Aux")
"""The second part of the result of a function with ``has_aux``."""

Operand: TypeAlias = "Array | Tracer | complex"
"""An array, a traced one or a number."""
Argnums: TypeAlias = int | Sequence[int]
"""Positions of arguments."""

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray
else:

    class Array(ABC):  # noqa: B024  # for ``isinstance``
        """An array: one of NumPy, a number of NumPy, or what stands for one in a transform.

        For annotations and ``isinstance``; it has no instances of its own, and Python's
        numbers are none. Type checkers take it
        for ``numpy.ndarray``, whose operators and methods traced arrays have, so that functions
        annotated with either take both.

        Example:
          >>> import functrans as ft
          >>> import numpy as np
          >>> from typing import Any
          >>> def loss(x: ft.Array) -> Any:  # of no dtype, so is what NumPy makes of it
          ...     print(isinstance(x, ft.Array))
          ...     return np.sum(x**2)
          >>> loss(np.ones(2)), ft.grad(loss)(np.ones(2))
          True
          True
          (np.float64(2.0), array([2., 2.]))
        """

        @classmethod
        def __subclasshook__(cls, other: type) -> bool:
            """Tensors have other methods."""
            if issubclass(other, Tracer):
                return other._is_array
            return issubclass(other, (np.ndarray, np.number, np.bool_))
