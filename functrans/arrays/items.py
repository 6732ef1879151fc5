"""The items of a traced array: ``x[i]``, ``x[i] = v``, ``len(x)``, iteration.

Here: basic indices, which give views, and what Python asks by the same protocol. Not here: indices
that hold arrays (``arrays.indexing``), how a write reaches other arrays (``arrays.writes``).

Layer: ``arrays``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.arrays.indexing import (
    PLAIN_OPERANDS,
    as_value,
    check_storable,
    fitted,
    index_value,
    updated,
)
from functrans.arrays.writes import assign, check_writable, register_view, update_in_place
from functrans.core.boundary import shorten
from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.errors import FunctransError
from functrans.primitives.slicing import BasicIndex, slice_p, slice_update_p
from functrans.primitives.structural import cast


def basic_index(index: Any) -> BasicIndex | None:
    """The static basic index an object stands for, or ``None`` if it holds arrays or lists."""
    if type(index) is int:
        return BasicIndex((index,))
    entries = index if type(index) is tuple else (index,)
    plain = []
    for entry in entries:
        cls = type(entry)
        if cls is int or entry is None or entry is Ellipsis:
            plain.append(entry)
        elif cls is slice:
            start, stop, step = entry.start, entry.stop, entry.step
            if not (
                (start is None or type(start) is int)
                and (stop is None or type(stop) is int)
                and (step is None or type(step) is int)
            ):
                entry = slice(*map(_slice_bound, (start, stop, step)))
            plain.append(entry)
        elif isinstance(entry, np.integer) or (
            isinstance(entry, np.ndarray) and entry.ndim == 0 and entry.dtype.kind in "iu"
        ):
            plain.append(int(entry))
        else:
            return None
    return BasicIndex(tuple(plain))


def _slice_bound(bound: Any) -> int | None:
    if bound is None:
        return None
    return operator.index(bound)


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` as NumPy; a basic index gives a view."""
    basic = basic_index(index)
    if basic is None:
        return index_value(x, index)
    if isinstance(x, Tracer) and x._trace.is_direct:
        (out,) = x._trace.process(slice_p, (x,), {"index": basic})
    else:
        (out,) = bind(slice_p, x, index=basic)
    if isinstance(x, Tracer) and (out.shape or Ellipsis in basic.entries):
        return register_view(
            x,
            out,
            lambda base: bind(slice_p, base, index=basic)[0],
            lambda base, view: bind(slice_update_p, base, view, index=basic)[0],
            basic,
        )
    return out


def setitem(x: Any, index: Any, value: Any) -> None:
    """``x[index] = value`` as NumPy, on a traced array."""
    basic = basic_index(index)
    if basic is None:
        assign(x, updated(x, index, value))
        return
    if type(value) not in PLAIN_OPERANDS and not isinstance(value, Tracer):
        value = as_value(value)
    alias = value._alias if isinstance(value, Tracer) else None
    if alias is not None and alias.base is x and alias.index == basic:
        return  # the end of ``x[index] += 1``, which has written to the view
    check_storable(value, dtype_of(x))
    value = cast(value, dtype_of(x))
    if shape_of(value):
        value = fitted(value, basic.result_shape(shape_of(x)))
    check_writable(x)
    if update_in_place(x, value, basic):
        return
    assign(x, bind(slice_update_p, x, value, index=basic)[0])


def length(x: Any) -> int:
    """``len(x)``."""
    shape = shape_of(x)
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


def iterate(x: Any) -> Iterator[Any]:
    """Iterate over the first axis."""
    if not shape_of(x):
        raise TypeError("iteration over a 0-d array")
    return _items(x)


def _items(x: Any) -> Iterator[Any]:
    """The items one after the other: each as it is when its turn comes, as NumPy's are."""
    try:
        view = getitem(x, Ellipsis) if isinstance(x, Tracer) else x
        content = _content(view)
        n = shape_of(x)[0]
        ahead = [getitem(x, i) for i in range(n)]
        for i in range(n):
            yield ahead[i] if _content(view) is content else getitem(x, i)
    except FunctransError as error:
        shorten(error)
        raise


def _content(x: Any) -> Any:
    """What is another object after a write to a tracer, or to what it is a view of."""
    var = getattr(x, "_var", None)
    return getattr(x, "_value", None) if var is None else var


METHODS: dict[str, Any] = {
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__len__": length,
    "__iter__": iterate,
}
"""Of tracers, by name."""
