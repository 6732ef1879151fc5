"""How results and interpolants print.

Here: ``summary``, one line with shapes in place of numbers, and ``aligned``, one line per field as
SciPy's results have. Not here: what is printed.

Layer: ``scipy``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, aval_of, shape_of


def _short(value: object) -> str:
    """``f64[3]`` for an array, else what it prints as."""
    if isinstance(value, tuple) and value and not hasattr(value, "_fields"):
        return f"({', '.join(map(_short, value))}{',' * (len(value) == 1)})"
    if isinstance(value, (Tracer, np.ndarray)) and shape_of(value):
        return str(aval_of(value))
    return str(value) if isinstance(value, (np.ndarray, np.generic)) else repr(value)


def summary(name: str, fields: Mapping[str, Any]) -> str:
    """``CubicSpline(c=f64[4,9], x=f64[10])``.

    Args:
      name: what comes in front.
      fields: values; arrays print as shape and dtype.
    """
    return f"{name}({', '.join(f'{field}={_short(value)}' for field, value in fields.items())})"


def of_fields(record: Any) -> str:
    """The summary of a dataclass, for use as ``__repr__``."""
    values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return summary(type(record).__name__, values)


def aligned(fields: Iterable[tuple[str, Any]]) -> str:
    """Fields below each other, names aligned to the right; long arrays are abbreviated.

    Args:
      fields: names and values.
    """
    pairs = [(name, _text(value)) for name, value in fields]
    width = max(len(name) for name, _ in pairs)
    gap = "\n" + " " * (width + 2)
    return "\n".join(f"{name:>{width}}: {text.replace(chr(10), gap)}" for name, text in pairs)


def _text(value: object) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=20, edgeitems=3, precision=4)
    return str(value)
