"""Of which class a traced value is, to code that asks: a number of Python or NumPy, or an array.

A traced value whose type is weak is one of Python's numbers; one without axes that may be written
to is an array; others without axes are NumPy's numbers.

Here: ``exemplar``, a plain value of the class. Not here: the functions of Python that ask
(``plain.numbers``).

Layer: ``plain``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.arrays.masked import MaskedSelection
from functrans.core.dispatch import Tracer
from functrans.plain.memory import Buffer
from functrans.plain.standins import install_exemplar


def exemplar(value: Any) -> Any:
    """A plain value of the class that a traced one has; others are themselves."""
    kind = type(value)
    if kind is Buffer:
        return value.plain()
    if issubclass(kind, MaskedSelection):
        return np.empty(0, value.dtype)
    if not isinstance(value, Tracer):
        return value
    if value.shape:
        return np.empty((0,) * len(value.shape), value.dtype)
    if value._alias is not None or _is_given_array(value):
        return np.zeros((), value.dtype)
    number = value.dtype.type(0)
    return number.item() if value.aval.weak else number


install_exemplar(exemplar)


def _is_given_array(value: Any) -> bool:
    """Whether it stands for an argument that is an array without axes."""
    node = getattr(value, "_node", None)
    return node is not None and node.primitive is None and type(value._value) is np.ndarray


def class_of(value: object) -> type:
    """The class of a value, as ``type(value)`` tells it of a plain one."""
    if isinstance(value, (Tracer, Buffer, MaskedSelection)):
        return type(exemplar(value))
    return type(value)
