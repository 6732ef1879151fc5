"""What the functions of ``scipy.special`` share: names, signatures, operands.

Here: ``public`` and ``several``, and how docstrings are made of records (``special_records``). Not
here: the functions (``special`` and the modules beside it).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from functrans.core.boundary import shorten
from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.numpy.common import as_operand
from functrans.primitives.special.family import common_dtype
from functrans.primitives.structural import cast
from functrans.scipy.special_records import RECORDS

ArrayFunction = Callable[..., Any]

_DOCUMENTATION = """{summary}

As ``scipy.special.{name}({operands})``, elementwise and with its values.{note}

Domain: {domain}. Outside of it results are NaN or infinite, as SciPy's are.

Derivative: {derivative}.

Args:
  {operands}: arrays or numbers that broadcast, by position only.

Returns:
  {result} of the broadcast shape. Integers become float64, float32 stays float32; {complex}.

Raises:
  TypeError: another number of operands, or a dtype that is not taken.

Reference: {source}.

Example:
  >>> import functrans as ft
  >>> from functrans.scipy import special
  >>> {example}
  {value}
  >>> {slope_example}
  {slope}
"""


def _documentation(name: str, names: list[str], summary: str, note: str) -> str:
    """The docstring of a function, from its record."""
    record = RECORDS[name]
    last = record.operands.split(", ")[-1]
    given = ", ".join([*record.operands.split(", ")[:-1], "x"])
    call, several = f"special.{name}({record.operands})", record.value.startswith("[")
    rate = f"ft.jvp(lambda x: special.{name}({given}), ({last},), (1.0,))[1]"
    value, slope = (each if several else repr(each) for each in (record.value, record.slope))
    return _DOCUMENTATION.format(
        summary=summary,
        name=name,
        operands=", ".join(names),
        note=f" {note}" if note else "",
        domain=record.domain,
        derivative=record.derivative,
        result="A tuple of arrays" if several else "Array",
        complex="complex numbers are taken" if record.takes_complex else "real numbers only",
        source=record.source,
        example=f'[f"{{x:.6g}}" for x in {call}]' if several else f'f"{{{call}:.6g}}"',
        value=value,
        slope_example=f'[f"{{x:.6g}}" for x in {rate}]' if several else f'f"{{{rate}:.6g}}"',
        slope=slope,
    )


def public(name: str, function: ArrayFunction, operands: str, note: str = "") -> ArrayFunction:
    """A function of elements with SciPy's name and arguments.

    Args:
      name: SciPy's name.
      function: function of arrays and tracers.
      operands: names of the operands, apart by blanks.
      note: a sentence for its documentation.
    """
    names = operands.split()

    def applied(*args: Array) -> Any:
        try:
            if len(args) != len(names):
                raise TypeError(
                    f"scipy.special.{name}: got {len(args)} operands, expected {len(names)}: "
                    f"({', '.join(names)}); options such as out= and where= are not taken"
                )
            return function(*map(as_operand, args))
        except Exception as error:
            shorten(error)
            raise

    applied.__name__ = applied.__qualname__ = name
    summary = (function.__doc__ or "").strip().splitlines()[0].rstrip()
    applied.__doc__ = _documentation(name, names, summary, note)
    applied.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
        [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names]
    )
    return applied


def several(name: str, operands: str, *parts: ArrayFunction) -> ArrayFunction:
    """A function that returns several results, as SciPy's does: one per part."""

    def function(*args: Array) -> tuple[Any, ...]:
        return tuple(part(*args) for part in parts)

    docs = ", ".join((part.__doc__ or "").strip().rstrip(".") for part in parts)
    function.__doc__ = f"{len(parts)} functions at once: {docs}."
    return public(name, function, operands)


def of_reals(name: str, function: ArrayFunction) -> ArrayFunction:
    """A function composed of others that take complex numbers, which refuses them as SciPy does."""

    def applied(*operands: Array) -> Any:
        if any(dtype_of(x).kind == "c" for x in operands):
            dtypes = ", ".join(str(dtype_of(x)) for x in operands)
            raise TypeError(f"{name}: not defined for operands of dtype {dtypes}; it is for reals")
        return function(*operands)

    applied.__doc__ = function.__doc__
    return applied


def by_field(real: ArrayFunction, of_complex: ArrayFunction) -> ArrayFunction:
    """A function that has one form for real and one for complex numbers."""

    def function(x: Array) -> Any:
        return of_complex(x) if dtype_of(x).kind == "c" else real(x)

    function.__doc__ = real.__doc__
    return function


def as_complex(x: Any) -> Array:
    """The operand in the complex dtype of its precision."""
    dtype = dtype_of(x)
    if dtype.kind == "c":
        return x
    return cast(x, "complex64" if dtype.kind == "f" and dtype.itemsize <= 4 else "complex128")


def as_floating(*operands: Any) -> tuple[Any, ...]:
    """Operands in the floating dtype in which they meet; integers become float64."""
    dtype = common_dtype(*operands)
    return tuple(cast(x, dtype) for x in operands)
