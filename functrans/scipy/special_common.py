"""What the functions of ``scipy.special`` share: names, signatures, operands.

Here: ``public`` and ``several``. Not here: the functions (``special`` and the modules beside it).

Layer: ``numpy``, ``scipy`` (first of its modules).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from functrans.numpy.common import as_operand
from functrans.primitives.special_family import common_dtype
from functrans.primitives.structural import cast
from functrans.trace import dtype_of

ArrayFunction = Callable[..., Any]


def public(name: str, function: ArrayFunction, operands: str, note: str = "") -> ArrayFunction:
    """A function of elements with SciPy's name and arguments.

    Args:
      name: SciPy's name.
      function: function of arrays and tracers.
      operands: names of the operands, apart by blanks.
      note: a sentence for its documentation.
    """
    names = operands.split()

    def applied(*args: Any) -> Any:
        if len(args) != len(names):
            raise TypeError(
                f"scipy.special.{name}: got {len(args)} operands, expected {len(names)}: "
                f"({', '.join(names)}); options such as out= and where= are not taken"
            )
        return function(*map(as_operand, args))

    applied.__name__ = applied.__qualname__ = name
    parts = [
        (function.__doc__ or "").strip().splitlines()[0].rstrip(),
        f"As ``scipy.special.{name}({', '.join(names)})``, elementwise and with its values.",
        note,
    ]
    applied.__doc__ = " ".join(part for part in parts if part)
    applied.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
        [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names]
    )
    return applied


def several(name: str, operands: str, *parts: ArrayFunction) -> ArrayFunction:
    """A function that returns several results, as SciPy's does: one per part."""

    def function(*args: Any) -> tuple[Any, ...]:
        return tuple(part(*args) for part in parts)

    docs = ", ".join((part.__doc__ or "").strip().rstrip(".") for part in parts)
    function.__doc__ = f"{len(parts)} functions at once: {docs}."
    return public(name, function, operands)


def by_field(real: ArrayFunction, of_complex: ArrayFunction) -> ArrayFunction:
    """A function that has one form for real and one for complex numbers."""

    def function(x: Any) -> Any:
        return of_complex(x) if dtype_of(x).kind == "c" else real(x)

    function.__doc__ = real.__doc__
    return function


def as_complex(x: Any) -> Any:
    """The operand in the complex dtype of its precision."""
    dtype = dtype_of(x)
    if dtype.kind == "c":
        return x
    return cast(x, "complex64" if dtype.kind == "f" and dtype.itemsize <= 4 else "complex128")


def as_floating(*operands: Any) -> tuple[Any, ...]:
    """Operands in the floating dtype in which they meet; integers become float64."""
    dtype = common_dtype(*operands)
    return tuple(cast(x, dtype) for x in operands)
