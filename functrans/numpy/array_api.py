"""Where the Python array API standard asks for more than NumPy has.

Here: ``sort`` and ``argsort`` with ``descending``, what the namespace says about itself. Not here:
frequencies (``array_api_fft``), all other functions of the standard, which are NumPy's.

Layer: ``numpy``. Reference: Python array API standard 2024.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.boundary import boundary
from functrans.core.dispatch import shape_of
from functrans.core.source import here
from functrans.errors import UnsupportedOperationError
from functrans.numpy import arranging, sorting
from functrans.numpy.common import as_array
from functrans.primitives.structural import normalize_axis

VERSION = "2024.12"
"""The version of the standard that the namespace follows."""

_EARLIER = ("2021.12", "2022.12", "2023.12")


def check_version(api_version: Any) -> None:
    """Refuse a version of the standard that the namespace does not follow.

    Raises:
      ValueError: it is not known.
    """
    if api_version is not None and api_version not in (*_EARLIER, VERSION):
        known = ", ".join((*_EARLIER, VERSION))
        raise ValueError(
            f"functrans.numpy follows the array API standard {VERSION}, got api_version="
            f"{api_version!r}{here()}; use one of {known}"
        )


@boundary
def sort(
    a: Any,
    axis: int | Sequence[int] | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """Sort along an axis.

    Args:
      a: array.
      axis: axis; ``None`` for the flat array.
      kind: NumPy's name of an algorithm, which changes nothing for traced arrays.
      order: refused for traced arrays, which have no fields.
      stable: NumPy's option; traced arrays are always sorted stably.
      descending: largest first.

    Returns:
      Array of the shape and dtype of ``a``; NaN is last, or first if descending.

    Raises:
      AxisError: there is no such axis.

    Example:
      >>> sort([2.0, 3.0, 1.0], descending=True)
      array([3., 2., 1.])
    """
    values = sorting.sort(a, axis, kind, order, stable=stable)
    return arranging.flip(values, -1 if axis is None else axis) if descending else values


@boundary
def argsort(
    a: Any,
    axis: int | Sequence[int] | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """Positions that sort along an axis.

    Args:
      a: array.
      axis: axis; ``None`` for the flat array.
      kind: NumPy's name of an algorithm, which changes nothing for traced arrays.
      order: refused for traced arrays, which have no fields.
      stable: equal elements in order of position; ``None`` is false for plain arrays, and true if
        descending.
      descending: largest first.

    Returns:
      Array of int64 of the shape of ``a``.

    Raises:
      AxisError: there is no such axis.

    Example:
      >>> argsort([2.0, 3.0, 2.0], descending=True)
      array([1, 0, 2])
    """
    if not descending:
        return sorting.argsort(a, axis, kind, order, stable=stable)
    a = as_array(a)
    if axis is None:
        a, axis = a.reshape(-1), -1
    axis = normalize_axis(axis, len(shape_of(a)), "numpy.argsort")
    if stable is None and kind is None:
        stable = True
    # From the end to the start, and the positions counted from the end: ties keep their order.
    places = sorting.argsort(arranging.flip(a, axis), axis, kind, order, stable=stable)
    return shape_of(a)[axis] - 1 - arranging.flip(places, axis)


def refuse_dlpack(self: Any, **options: object) -> Any:
    """Refused: another library would lose the trace.

    Raises:
      UnsupportedOperationError: always.
    """
    raise UnsupportedOperationError(
        f"a traced array cannot be handed to another library by DLPack{here()}: that would lose "
        "the trace. Use ft.external to call the other library, or hand over the result of the "
        "transformed function"
    )


def dlpack_device(self: Any) -> tuple[int, int]:
    """The device of every array: the CPU."""
    return (1, 0)
