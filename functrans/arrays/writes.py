"""Writes to traced arrays, and how they reach the views and the base of an array.

Here: ``assign``, by which a tracer takes over a new array, ``write`` with NumPy's checks, views and
copies. Not here: the syntax (``arrays.items``, ``arrays.operators``), indices that hold arrays
(``arrays.indexing``).

A basic slice of a tracer is a view: a write goes on to its base and from there to the other views.

Layer: ``arrays``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.dispatch import Alias, Tracer, dtype_of, inner_trace, shape_of
from functrans.core.source import here, resolve
from functrans.core.state import open_traces
from functrans.errors import AliasedWriteError, UnsupportedOperationError
from functrans.passes.layouts import laid_out, plain_value
from functrans.primitives.slicing import BasicIndex
from functrans.primitives.structural import broadcast_to, cast


def fresh(x: Any, order: Any = None) -> Any:
    """The same value with memory of its own: later writes to either do not reach the other.

    Args:
      x: array.
      order: memory layout of the copy, as in ``np.copy``; by default that of ``x``.
    """
    if not isinstance(x, Tracer):
        return np.array(x)
    twin = x._fresh()
    layout = plain_value(x)
    if order is not None and type(layout) is np.ndarray and layout.ndim:
        twin._value = laid_out(twin._value, np.empty_like(layout, order=order))
    stack = open_traces.get()
    if stack and stack[-1] is not x._trace and x._trace in stack:
        return stack[-1].lift(twin)  # a copy belongs to the function that makes it
    return twin


def check_writable(x: Tracer) -> None:
    """Refuse a write to an array that was made outside of the innermost trace.

    Raises:
      AliasedWriteError: it belongs to an enclosing trace, and was not made in the inner function (a
        mask there is nothing that ``grad`` would have to know of).
    """
    stack = open_traces.get()
    if stack and stack[-1] is not x._trace and x._trace in stack:
        inner = stack[-1]
        if _is_made_inside(x, stack):
            return
        opened = resolve(inner.source)
        owned = resolve(x._trace.source)
        raise AliasedWriteError(
            f"{x._describe()} belongs to {x._trace.label}"
            f"{f' (started at {owned})' if owned else ''} and was written to{here()} inside "
            f"{inner.label}{f' (started at {opened})' if opened else ''}; the write would be lost "
            "or seen twice. Write to a copy made there (y = y.copy()) and return it."
        )


def _is_made_inside(x: Tracer, stack: Sequence[Any]) -> bool:
    """Whether an array of the trace that stages was made since the innermost trace was opened."""
    root: Any = x
    while root._alias is not None and root._alias.base is not None:
        root = root._alias.base
    around = [outer for outer in stack[:-1] if outer.is_staging][-1:]
    if around != [x._trace] or root._trace is not x._trace:
        return False
    made = around[0].eqns[stack[-1].n_before :]
    return any(root._var in eqn.outputs for eqn in reversed(made))


def assign(x: Tracer, new: Any) -> None:
    """Make a tracer stand for a new array; its base and views follow.

    Args:
      x: tracer written to.
      new: array of the same shape and dtype.
    """
    check_writable(x)
    if not isinstance(new, Tracer) or new._trace is not x._trace:
        if isinstance(new, Tracer) and inner_trace(x._trace, new._trace) is not x._trace:
            raise AliasedWriteError(
                f"{x._describe()} was written with a value of {new._trace.label}{here()}; return "
                "the value from the inner function instead"
            )
        new = x._trace.lift(new)
    root = x
    while root._alias is not None and root._alias.base is not None:
        alias = root._alias
        root = alias.base
        if root._trace is not x._trace:
            check_writable(root)  # made outside of the branch that the view was made in
        if alias.index is not None and update_in_place(root, new, alias.index):
            return
        new = alias.write(root, new)
    root._rebind(new)
    refresh_views(root)


def update_in_place(x: Tracer, value: Any, index: BasicIndex) -> bool:
    """Write into the memory of a tracer, where its trace can; whether it was done."""
    update = getattr(x._trace, "update_in_place", None)
    if update is None or not update(x, value, index):
        return False
    refresh_views(x)
    return True


def refresh_views(x: Tracer) -> None:
    """Let the views of a tracer, and theirs, follow a write."""
    pending: list[Any] = [x]
    while pending:
        base = pending.pop()
        if base._alias is None:
            continue
        views = [reference() for reference in base._alias.views]
        alive = [view for view in views if view is not None]
        base._alias.views[:] = map(weakref.ref, alive)
        for view in alive:
            view._rebind(view._alias.read(base))
        pending.extend(alive)


def register_view(
    base: Tracer,
    view: Any,
    read: Callable[[Any], Any],
    write: Callable[[Any, Any], Any],
    index: BasicIndex | None = None,
) -> Any:
    """Note that a tracer shares memory with another one; returns the view.

    Args:
      base: tracer that was read, of the same trace, or one outside of the branch being staged.
      view: what was read.
      read: the view as a function of the base.
      write: the base after the view was written, as a function of base and view.
      index: the index, if it was a basic one.
    """
    if isinstance(view, Tracer) and view is not base and (base._alias or base.shape):
        if view._trace is not base._trace:  # in a branch, where the base cannot be written to
            view._alias = Alias(base, read, write, index)
            return view
        if base._alias is None:
            base._alias = Alias()
        views = base._alias.views
        if len(views) >= _MANY_VIEWS and not len(views) & (len(views) - 1):  # at powers of 2
            views[:] = [reference for reference in views if reference() is not None]
        views.append(weakref.ref(view))
        view._alias = Alias(base, read, write, index)
    return view


_MANY_VIEWS = 16


def write(x: Tracer, value: Any, what: str) -> None:
    """``x[...] = value`` with NumPy's checks of shape and dtype.

    Raises:
      ValueError: the value does not broadcast to the shape.
      TypeError: the value's kind cannot be stored in the array's dtype.
    """
    shape, dtype = shape_of(x), dtype_of(x)
    if not np.can_cast(dtype_of(value), dtype, "same_kind"):
        raise TypeError(
            f"{what}: cannot store {dtype_of(value)} in an array of {dtype} in place{here()}; "
            f"use x = x.astype({str(dtype_of(value))!r}) first"
        )
    if shape_of(value) != shape:
        if len(shape_of(value)) > len(shape):
            raise ValueError(
                f"{what}: result of shape {shape_of(value)} does not fit into the array of shape "
                f"{shape} in place{here()}"
            )
        value = broadcast_to(value, shape)
    assign(x, cast(value, dtype))


def reject_out(name: str, out: Any) -> None:
    """Refuse to write a traced result into a plain array.

    Raises:
      UnsupportedOperationError: always.
    """
    raise UnsupportedOperationError(
        f"{name} was asked to write a traced result into a plain {type(out).__name__}{here()}; "
        "the array would lose the trace. Make it traced first (np.zeros(n, like=x), "
        "functrans.numpy.array(buffer, like=x)), or use the result: y = " + name + "(...)"
    )
