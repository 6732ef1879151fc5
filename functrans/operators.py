"""Operators, NumPy protocols and in-place syntax of tracers: the first injected table.

Here: what ``Tracer`` can do by Python syntax, ``__getitem__``/``__setitem__`` included, and how a
write reaches the views and the base of an array. Not here: ndarray methods and NumPy functions
(``numpy``, which hands its tables over in ``install``).

In-place syntax rebinds: ``x[i] = v`` computes a new array by a functional update and the tracer
takes it over. A basic slice of a tracer is a view: the write goes on to its base and from there
to the other views.

Layer: ``operators`` (above primitives, below numpy).
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.errors import AliasedWriteError, ConcretizationError, UnsupportedOperationError
from functrans.indexing import as_value, check_storable, fitted, index_value, updated
from functrans.ir.primitive import Primitive
from functrans.ir.source import here, resolve
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives.dot import matmul
from functrans.primitives.slicing import BasicIndex, slice_p, slice_update_p
from functrans.primitives.structural import broadcast_to, cast
from functrans.state import open_traces
from functrans.trace import Alias, Tracer, bind, dtype_of, elementwise, shape_of

_OPERANDS = (int, float, complex, bool, np.ndarray, np.generic, Tracer)


def _binary(primitive: Primitive) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operator method of a primitive and its reflection."""

    def forward(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            other = as_operand(other)
            if other is NotImplemented:
                return NotImplemented
        return elementwise(primitive, self, other)

    def reflected(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            other = as_operand(other)
            if other is NotImplemented:
                return NotImplemented
        return elementwise(primitive, other, self)

    return forward, reflected


def as_operand(other: Any) -> Any:
    """Lists and tuples of numbers become arrays, as NumPy's operators do."""
    if isinstance(other, (list, tuple)):
        return np.asarray(other)
    return NotImplemented


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        return function(self)

    return method


def _matmul(self: Any, other: Any) -> Any:
    return matmul(self, as_operand(other) if isinstance(other, (list, tuple)) else other)


def _rmatmul(self: Any, other: Any) -> Any:
    return matmul(as_operand(other) if isinstance(other, (list, tuple)) else other, self)


# in-place ---------------------------------------------------------------------------------------


def fresh(x: Any) -> Any:
    """The same value with memory of its own: later writes to either do not reach the other."""
    return x._twin() if isinstance(x, Tracer) else np.array(x)


def check_writable(x: Tracer) -> None:
    """Refuse a write to an array of an enclosing trace.

    Raises:
      AliasedWriteError: the innermost trace is not the owner of ``x``.
    """
    stack = open_traces.get()
    if stack and stack[-1] is not x._trace and x._trace in stack:
        inner = stack[-1]
        opened = resolve(inner.source)
        owned = resolve(x._trace.source)
        raise AliasedWriteError(
            f"{x._describe()} belongs to {x._trace.label}"
            f"{f' (started at {owned})' if owned else ''} and was written to{here()} inside "
            f"{inner.label}{f' (started at {opened})' if opened else ''}; the write would be lost "
            "or seen twice. Pass the array in, update it there and return it."
        )


def assign(x: Tracer, new: Any) -> None:
    """Make a tracer stand for a new array; its base and views follow.

    Args:
      x: tracer written to.
      new: array of the same shape and dtype.
    """
    check_writable(x)
    if not isinstance(new, Tracer) or new._trace is not x._trace:
        if isinstance(new, Tracer) and new._trace.parent is not None:
            raise AliasedWriteError(
                f"{x._describe()} was written with a value of {new._trace.label}{here()}; return "
                "the value from the inner function instead"
            )
        new = x._trace.lift(new)  # type: ignore[attr-defined]
    x._rebind(new)
    if x._alias is None:
        return
    path = [x]
    while path[-1]._alias is not None and path[-1]._alias.base is not None:
        view = path[-1]
        alias = view._alias
        assert alias is not None
        base = alias.base
        updated = alias.write(base, view)
        base._rebind(updated)
        path.append(base)
    on_path = set(map(id, path))
    pending = [path[-1]]
    pending.extend(path[:-1])
    while pending:
        base = pending.pop()
        if base._alias is None:
            continue
        alive = []
        for reference in base._alias.views:
            view = reference()
            if view is None:
                continue
            alive.append(reference)
            if id(view) not in on_path:
                view._rebind(view._alias.read(base))
                pending.append(view)
        base._alias.views[:] = alive


def register_view(
    base: Tracer, view: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], Any]
) -> Any:
    """Note that a tracer shares memory with another one; returns the view."""
    if isinstance(view, Tracer) and view._trace is base._trace:
        if view is base:
            return view
        if base._alias is None:
            base._alias = Alias()
        views = base._alias.views
        if len(views) >= _MANY_VIEWS and not len(views) & (len(views) - 1):  # at powers of 2
            views[:] = [reference for reference in views if reference() is not None]
        views.append(weakref.ref(view))
        view._alias = Alias(base, read, write)
    return view


_MANY_VIEWS = 16


def _iadd(primitive: Primitive) -> Callable[..., Any]:
    """The augmented assignment of a primitive: a write into the array, in its own dtype."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            other = as_operand(other)
        write(self, elementwise(primitive, self, other), primitive.name)
        return self

    return method


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


# indexing ---------------------------------------------------------------------------------------

_BASIC = (int, slice, type(None), type(Ellipsis))


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
    (out,) = bind(slice_p, x, index=basic)
    if isinstance(x, Tracer) and out.shape:
        return register_view(
            x,
            out,
            lambda base: bind(slice_p, base, index=basic)[0],
            lambda base, view: bind(slice_update_p, base, view, index=basic)[0],
        )
    return out


def setitem(x: Any, index: Any, value: Any) -> None:
    """``x[index] = value`` as NumPy, on a traced array."""
    basic = basic_index(index)
    if basic is None:
        assign(x, updated(x, index, value))
        return
    if not isinstance(value, _OPERANDS):
        value = as_value(value)
    check_storable(value, dtype_of(x))
    value = cast(value, dtype_of(x))
    if shape_of(value):
        value = fitted(value, basic.result_shape(shape_of(x)))
    check_writable(x)
    update = getattr(x._trace, "update_in_place", None)
    if update is not None and update(x, value, basic):
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
    return iter([getitem(x, i) for i in range(shape_of(x)[0])])


# Python values ----------------------------------------------------------------------------------


def _to_bool(self: Any) -> bool:
    return bool(self._concrete("bool()"))


def _to_int(self: Any) -> int:
    return int(self._concrete("int()"))


def _to_index(self: Any) -> int:
    return operator.index(self._concrete("index()"))


def _to_float(self: Any) -> float:
    return float(self._concrete("float()"))


def _to_complex(self: Any) -> complex:
    return complex(self._concrete("complex()"))


def _item(self: Any, *args: Any) -> Any:
    return self._concrete(".item()").item(*args)


def _format(self: Any, spec: str) -> str:
    if not spec and getattr(self, "_value", None) is None:
        return repr(self)
    return format(self._concrete("format()"), spec)


def _array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    raise ConcretizationError(
        f"a NumPy function that does not dispatch was given {self._describe()}{here()} and wanted "
        "a plain array of it, which would lose the trace. Replace np.array([x, y]) and "
        "np.mean([x, y]) by functrans.numpy's function of the same name (or np.stack([x, y])), "
        "array[x] by functrans.numpy.asarray(array)[x] or np.take(array, x), buffer[i] = x by an "
        "array made with like=x (np.zeros(n, like=x)), math.sin(x) by np.sin(x)."
    )


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


def operator_table() -> dict[str, Any]:
    """All operators by method name."""
    table: dict[str, Any] = {}
    for name, primitive in {
        "add": ew.add_p,
        "sub": ew.subtract_p,
        "mul": ew.multiply_p,
        "truediv": ew.divide_p,
        "floordiv": ew.floor_divide_p,
        "mod": ew.remainder_p,
        "pow": ew.power_p,
        "and": ew.bitwise_and_p,
        "or": ew.bitwise_or_p,
        "xor": ew.bitwise_xor_p,
        "lshift": ew.left_shift_p,
        "rshift": ew.right_shift_p,
    }.items():
        table[f"__{name}__"], table[f"__r{name}__"] = _binary(primitive)
        table[f"__i{name}__"] = _iadd(primitive)
    for name, primitive in {
        "eq": ew.equal_p,
        "ne": ew.not_equal_p,
        "lt": ew.less_p,
        "le": ew.less_equal_p,
        "gt": ew.greater_p,
        "ge": ew.greater_equal_p,
    }.items():
        table[f"__{name}__"] = _binary(primitive)[0]
    table.update(
        __hash__=None,
        __neg__=_unary(ew.negative),
        __pos__=_unary(fresh),
        __abs__=_unary(complex_parts.absolute),
        __invert__=_unary(ew.invert),
        __matmul__=_matmul,
        __rmatmul__=_rmatmul,
        __divmod__=lambda self, other: (self // other, self % other),
        __rdivmod__=lambda self, other: (other // self, other % self),
        __getitem__=getitem,
        __setitem__=setitem,
        __len__=length,
        __iter__=iterate,
        __bool__=_to_bool,
        __int__=_to_int,
        __index__=_to_index,
        __float__=_to_float,
        __complex__=_to_complex,
        __format__=_format,
        __array__=_array,
        __array_priority__=1000.0,
        item=_item,
    )
    return table
