"""Functional updates: ``x.at[index].set(value)`` and its siblings.

Here: the ``at`` property of traced arrays, in JAX's words. Not here: in-place syntax
(``arrays.operators``), the taking apart of an index (``functrans.arrays.indexing``).

Layer: ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.arrays.indexing import as_value, index_value, is_mask, updated
from functrans.control.scanning import fori_loop
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.cumulative import cummax
from functrans.primitives.indexing import gather, scatter
from functrans.primitives.movement import concatenate
from functrans.primitives.reduction import reduce_max
from functrans.primitives.sorting import argsort
from functrans.primitives.structural import cast, reshape

_MODES = {
    None: "raise", "raise": "raise", "promise_in_bounds": "promise", "clip": "clip", "drop": "drop",
    "fill": "fill", "wrap": "wrap",
}  # fmt: skip


def _mode(mode: str | None) -> str:
    if mode not in _MODES:
        names = ", ".join(repr(name) for name in _MODES if name is not None)
        raise ValueError(f"at: mode must be one of {names} or None, got {mode!r}")
    return _MODES[mode]


def _turns(places: object) -> Any:
    """How often each place was named before it, -1 for no place; ``None`` if none is named twice.

    Args:
      places: numbers of elements; -1 stands for none.
    """
    n = math.prod(shape_of(places))
    flat = reshape(places, (n,))
    if not isinstance(flat, Tracer) and len(np.unique(flat[flat >= 0])) == np.sum(flat >= 0):
        return None
    order = argsort(flat, 0)
    ordered = gather(flat, (order,), (0,))
    counted = np.arange(n)
    before = concatenate((np.full(1, -2), ordered[:-1]), 0)
    starts = cummax(ew.where(ew.equal(ordered, before), 0, counted), 0)
    turns = scatter(np.zeros(n, int), ew.subtract(counted, starts), (order,), (0,), "set")
    return reshape(ew.where(ew.less(flat, 0), -1, turns), shape_of(places))


class At:
    """``x.at``: index it to get a place of the array.

    Example:
      ``y = x.at[0].add(1.0)`` is ``x`` with ``1.0`` added to its first element; ``x`` stays.
    """

    __slots__ = ("_array",)

    def __init__(self, array: ArrayLike) -> None:
        self._array = array

    def __getitem__(self, index: Array) -> Place:
        """A place of the array."""
        return Place(self._array, index)

    def __repr__(self) -> str:
        """``At(Traced<f64[3]>)``."""
        return f"At({self._array!r})"


class Place:
    """A place of an array, whose methods give the array with something done there.

    Values are converted to the dtype of the array, in which the result is computed; a
    ``TypeError`` says where their kind would be lost, as that of fractions among integers.

    All methods take ``mode`` for integers out of bounds: ``None`` raises as NumPy does, ``"drop"``
    and ``"fill"`` write nothing (``get`` reads ``fill_value``), ``"clip"`` and ``"wrap"`` bring
    them into bounds, ``"promise_in_bounds"`` says that there are none. With ``unique_indices`` the
    caller says that no element is named twice. ``indices_are_sorted`` is accepted and not used.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: ArrayLike, index: ArrayLike) -> None:
        self._array = array
        self._index = index

    def _updated(self, op: str, values: ArrayLike, mode: str | None, unique_indices: bool) -> Array:
        return updated(self._array, self._index, values, op, _mode(mode), unique_indices)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: ArrayLike | None = None,
    ) -> Any:
        """The elements there."""
        return index_value(self._array, self._index, _mode(mode), fill_value)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """The array with a function of the elements there in their place.

        An element that is named several times gets the function as often.
        """
        x, index, own_mode = self._array, self._index, _mode(mode)
        numbers = np.arange(math.prod(shape_of(x))).reshape(shape_of(x))
        parts = index if isinstance(index, tuple) else (index,)
        turns: Any = None  # a mask names nothing twice
        if not unique_indices and not any(is_mask(part) for part in parts):
            places = index_value(numbers, index, own_mode, -1)
            turns = _turns(places)
        if turns is None:
            value = func(index_value(x, index, own_mode))
            return updated(x, index, value, "set", own_mode, unique_indices)

        def step(turn: object, x: ArrayLike) -> Any:
            """Apply the function where an element is named for the ``turn``-th time."""
            value = func(index_value(x, index, own_mode))
            mine = ew.where(ew.equal(turns, turn), places, numbers.size)
            flat = reshape(x, (numbers.size,))
            return reshape(updated(flat, mine, value, "set", "drop"), shape_of(x))

        return fori_loop(0, reduce_max(turns, tuple(range(len(shape_of(turns))))) + 1, step, x)

    def __repr__(self) -> str:
        """``Place(Traced<f64[3]>, 0)``."""
        return f"Place({self._array!r}, {self._index!r})"

    set: Callable[..., Any]
    add: Callable[..., Any]
    subtract: Callable[..., Any]
    multiply: Callable[..., Any]
    mul: Callable[..., Any]
    divide: Callable[..., Any]
    power: Callable[..., Any]
    min: Callable[..., Any]
    max: Callable[..., Any]


def _method(op: str, doc: str) -> Callable[..., Any]:
    def method(
        self: Place,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        return self._updated(op, values, mode, unique_indices)

    method.__name__ = op
    method.__qualname__ = f"Place.{op}"
    method.__doc__ = f"The array with {doc}."
    return method


def _subtract(self: Place, values: Array, **options: Any) -> Array:
    """The array with values subtracted there; repeated indices count each time."""
    values = as_value(values)
    if dtype_of(values).kind in "biu":  # narrower ones wrap where they are negated
        values = cast(values, dtype_of(as_value(self._array)))
    with np.errstate(over="ignore"):  # of unsigned numbers, that wrap
        values = -values
    return self.add(values, **options)


def _install_methods() -> None:
    repeated = "; repeated indices count each time"
    for name, op, doc in (
        ("set", "set", "values there; of several for one element the last one counts"),
        ("add", "add", f"values added there{repeated}"),
        ("multiply", "multiply", f"elements there multiplied by values{repeated}"),
        ("mul", "multiply", f"elements there multiplied by values{repeated}"),
        ("divide", "divide", f"elements there divided by values{repeated}"),
        ("power", "power", f"elements there raised to powers{repeated}"),
        ("min", "min", "the smaller of the elements there and values"),
        ("max", "max", "the larger of the elements there and values"),
    ):
        setattr(Place, name, _method(op, doc))
    Place.subtract = _subtract


_install_methods()
