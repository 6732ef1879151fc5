"""Operators, NumPy protocols and in-place syntax of tracers: the first injected table.

Here: what ``Tracer`` can do by Python syntax, ``__getitem__``/``__setitem__`` included, and how a
write reaches the views and the base of an array. Not here: ndarray methods and NumPy functions
(``numpy``, which hands its tables over in ``install``).

In-place syntax rebinds: ``x[i] = v`` computes a new array by a functional update and the tracer
takes it over. A basic slice of a tracer is a view: the write goes on to its base and from there
to the other views.

Layer: ``arrays`` (above primitives, below numpy).
"""

from __future__ import annotations

import dis
import math
import operator
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from functrans.arrays.indexing import as_value, check_storable, fitted, index_value, updated
from functrans.arrays.sparse import (
    answer_to_scipy,
    is_scipy_sparse,
    is_sparse,
    is_spmatrix,
    not_a_product,
)
from functrans.arrays.sparse import matmul as sparse_matmul
from functrans.core.avals import PYTHON_SCALARS, WEAK_DTYPES
from functrans.core.boundary import boundary, note_refusal, shorten
from functrans.core.deferred import deferred
from functrans.core.dispatch import (
    Alias,
    Tracer,
    bind,
    dtype_of,
    elementwise,
    escaped,
    inner_trace,
    shape_of,
)
from functrans.core.primitive import Primitive
from functrans.core.source import attribute, here, is_internal, resolve
from functrans.core.state import open_traces, rebinds
from functrans.errors import (
    AliasedWriteError,
    ConcretizationError,
    FunctransError,
    UnsupportedOperationError,
)
from functrans.passes.layouts import laid_out, plain_value
from functrans.passes.recording import RecordingTracer
from functrans.passes.staging import StagingTracer, has_answer
from functrans.primitives import complex_parts
from functrans.primitives import elementwise as ew
from functrans.primitives.dot import matmul
from functrans.primitives.family import integer_of_truth
from functrans.primitives.slicing import BasicIndex, slice_p, slice_update_p
from functrans.primitives.structural import broadcast_to, cast, weaken

R = TypeVar("R")

_OPERANDS = frozenset({int, float, complex, bool, np.ndarray, np.float64, np.float32})
"""Types of plain operands that need no look (an exact type: a masked array is an ndarray, too)."""


def _binary(primitive: Primitive) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operator method of a primitive and its reflection."""

    def forward(self: Any, other: Any) -> Any:
        try:
            if type(other) in _OPERANDS:
                if self._trace.is_direct:
                    return self._trace.elementwise(primitive, (self, other))
            elif not isinstance(other, Tracer):
                given, other = other, operator_operand(other)
                if other is NotImplemented:
                    return _with_sparse(primitive, self, given)
                if primitive is ew.multiply_p:
                    _check_no_repetition(self, given)
            return elementwise(primitive, self, other)
        except Exception as error:  # of a value that escaped, too, around which no boundary is
            shorten(error)
            raise

    def reflected(self: Any, other: Any) -> Any:
        try:
            if type(other) in _OPERANDS:
                if self._trace.is_direct:
                    return self._trace.elementwise(primitive, (other, self))
            elif not isinstance(other, Tracer):
                given, other = other, operator_operand(other)
                if other is NotImplemented:
                    return _with_sparse(primitive, given, self)
                if primitive is ew.multiply_p:
                    _check_no_repetition(self, given)
            return elementwise(primitive, other, self)
        except Exception as error:  # of a value that escaped, too, around which no boundary is
            shorten(error)
            raise

    return forward, reflected


def _check_no_repetition(x: Any, other: Any) -> None:
    """Refuse a list times a traced Python integer: Python repeats the list, NumPy multiplies."""
    aval = x.aval
    if aval.weak and aval.dtype.kind in "biu" and isinstance(other, (list, tuple)):
        kind = type(other).__name__
        raise TypeError(
            f"a {kind} times {x._describe()}{here()}: Python repeats a {kind} as often as the "
            "number says, which is not known while it is traced. Write np.asarray(values) * n for "
            "products, or make the number static (static_argnums) to repeat"
        )


def _with_sparse(primitive: Primitive, a: Any, b: Any) -> Any:
    """An operator between a traced array and an object that may be a sparse matrix of SciPy."""
    x, matrix = (a, b) if isinstance(a, Tracer) else (b, a)
    if not is_scipy_sparse(matrix) or is_foreign(matrix):  # those of plain code answer themselves
        return NotImplemented
    if primitive is not ew.multiply_p or not shape_of(x) or not is_spmatrix(matrix):
        raise not_a_product(matrix, x)
    return sparse_matmul(a, b)


def as_operand(other: Any) -> Any:
    """Lists and tuples of numbers become arrays, as NumPy's operators do."""
    if isinstance(other, (bool, np.generic)):
        return other
    if isinstance(other, (list, tuple, np.ndarray)):
        return as_value(other)
    kinds: tuple[Any, ...] = (int, float, complex)
    for kind in kinds:  # subclasses: members of an IntEnum, for instance
        if isinstance(other, kind):
            return kind(other)
    if (
        attribute(other, "__array__") is not None
    ):  # its own operators would take a tracer for one element
        raise UnsupportedOperationError(
            f"a {type(other).__module__}.{type(other).__qualname__} meets a traced value{here()}; "
            "convert it with np.asarray(x) first"
        )
    return NotImplemented


def is_foreign(value: Any) -> bool:
    """Whether a value answers ufuncs itself, so that its operators are the ones to ask (NEP 13)."""
    return hasattr(type(value), "__array_ufunc__") and not isinstance(
        value, (np.ndarray, np.generic, Tracer)
    )


def operator_operand(other: Any) -> Any:
    """``as_operand`` of a plain operand of an operator, which leaves foreign arrays alone."""
    return NotImplemented if is_foreign(other) else as_operand(other)


_power, _reflected_power = _binary(ew.power_p)


def _pow(self: Any, other: Any) -> Any:
    """``self ** other``: NumPy's operator squares booleans as int8, its function as int64."""
    try:
        if type(other) is not int:
            return _power(self, other)
        if type(self) is RecordingTracer and self._trace.is_direct:  # of floats, always
            return self._trace.elementwise(ew.power_p, (self, other))
        if other == 2 and self.dtype.kind == "b" and not self.aval.weak:
            self = cast(self, np.dtype(np.int8))
        return elementwise(ew.power_p, self, other)
    except Exception as error:
        shorten(error)
        raise


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator method of a function; Python's truths are integers to it."""

    def method(self: Any) -> Any:
        try:
            if type(self) is StagingTracer and self.dtype.kind == "b" and self.aval.weak:
                self = integer_of_truth(self)
            return function(self)
        except Exception as error:
            shorten(error)
            raise

    return method


def _magnitude(x: Any) -> Any:
    result = complex_parts.absolute(x)
    if type(x) is RecordingTracer:
        return made_python_number(result) if type(x._value) is float else result
    return python_number(result) if is_python_number(x) else result


def _matmul(self: Any, other: Any) -> Any:
    try:
        if not isinstance(other, (np.ndarray, Tracer)) and is_sparse(other):
            return sparse_matmul(self, other)
        factor = _factor(other)
        return NotImplemented if factor is NotImplemented else matmul(self, factor)
    except Exception as error:
        shorten(error)
        raise


def _rmatmul(self: Any, other: Any) -> Any:
    try:
        if not isinstance(other, (np.ndarray, Tracer)) and is_sparse(other):
            return sparse_matmul(other, self)
        factor = _factor(other)
        return NotImplemented if factor is NotImplemented else matmul(factor, self)
    except Exception as error:
        shorten(error)
        raise


def _factor(other: Any) -> Any:
    """An operand of a matrix product."""
    if type(other) is np.ndarray or isinstance(other, Tracer):
        return other
    return operator_operand(other)


# in-place ---------------------------------------------------------------------------------------


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


def _is_number(x: Tracer) -> bool:
    """Whether a tracer stands for a number: no axes, and no memory that others may see."""
    return not x.shape and x._alias is None


def is_rebinding(frame: FrameType) -> bool:
    """Whether what the code of a frame says to be done in place makes another array.

    Not where that code belongs to a library written for NumPy.
    """
    return rebinds.get() and not is_internal(frame.f_code.co_filename)


def is_augmented(inputs: Sequence[Any], out: Any) -> bool:
    """Whether the user's ``a += x`` is what a ufunc is called for, and not a library's.

    Where ``x`` is of a library whose arrays are never written to, that makes another array, also of
    an ``a`` that is not.
    """
    if type(out) is not tuple or out[0] is not inputs[0]:
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__array_ufunc__":
        frame = frame.f_back
    if frame is None or is_internal(frame.f_code.co_filename):
        return False
    code, place = frame.f_code.co_code, frame.f_lasti
    return code[place] == _BINARY_OP and _FIRST_IN_PLACE <= code[place + 1] <= _LAST_IN_PLACE


def _iadd(primitive: Primitive) -> Callable[..., Any]:
    """The augmented assignment of a primitive: a write into the array, in its own dtype.

    A number is another one then, as in Python and of NumPy's scalars: no other name of it changes.
    So is an array in code for libraries whose arrays are never written to.
    """

    def method(self: Any, other: Any) -> Any:
        if type(other) not in _OPERANDS and not isinstance(other, Tracer):
            other = operator_operand(other)
            if other is NotImplemented:
                return NotImplemented
        result = elementwise(primitive, self, other)
        if _is_number(self) or is_rebinding(sys._getframe(1)):
            return result
        write(self, result, primitive.name)
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
    if type(value) not in _OPERANDS and not isinstance(value, Tracer):
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


def _imatmul(self: Any, other: Any) -> Any:
    """``self @= other``, in place."""
    result = _matmul(self, other)
    if result is NotImplemented or is_rebinding(sys._getframe(1)):
        return result
    if len(shape_of(self)) < 2 or len(shape_of(other)) < 2:
        raise ValueError(
            f"in-place matrix product of arrays of {len(shape_of(self))} and "
            f"{len(shape_of(other))} axes{here()}; both need two or more"
        )
    setitem(self, Ellipsis, result)
    return self


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


# Python values ----------------------------------------------------------------------------------


def refused(tracer: Any, error: ConcretizationError, asking: FrameType) -> ConcretizationError:
    """What to raise where a tracer has no plain value: of a library that asked it names the call.

    Args:
      tracer: the traced value.
      error: what is said to the user's own code.
      asking: the frame that asked.
    """
    error = deferred.library_error(tracer, asking, str(error).partition(" of ")[0]) or error
    note_refusal(tracer._trace, error)
    return error


def _conversion(make: Callable[[Any], R], what: str) -> Callable[[Any], R]:
    """The method by which Python asks a traced array for a plain number."""

    def convert(self: Any) -> R:
        is_text = what == "float()" and _is_formatting(sys._getframe(1))
        try:
            try:
                return make(self._concrete("format()" if is_text else what))
            except ConcretizationError as error:
                raise refused(self, error, sys._getframe(1)) from error.__cause__
        except FunctransError as error:
            shorten(error)
            raise

    return convert


def _is_formatting(frame: Any) -> bool:
    """Whether a frame is at an operator ``%``, which asks a number for itself only for a text."""
    code, place = frame.f_code.co_code, frame.f_lasti
    return code[place] == _BINARY_OP and code[place + 1] in _REMAINDERS


_BINARY_OP = dis.opmap["BINARY_OP"]
_FIRST_IN_PLACE, _LAST_IN_PLACE = 13, 25
"""The arguments of that instruction for augmented assignments."""
_REMAINDERS = frozenset({6, 19})
"""The arguments of that instruction for ``%`` and ``%=``."""


def _round(self: Any, digits: Any = None) -> Any:
    """``round(self)``, an integer of Python; ``round(self, digits)``, a number of the same kind."""
    if self.shape or (digits is not None and not is_python_number(self)):
        return self.round(digits or 0)
    value = plain_value(self)
    if value is not None:
        value = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
        return round(value, *([] if digits is None else [digits]))
    return python_number(self.round(digits or 0)) if digits is not None else _rounded(self)


def _rounded(self: Any) -> Any:
    return weaken(cast(self.round(0), np.int64))


def _copy(self: Any, memo: object = None) -> Any:
    """``copy.copy`` and ``copy.deepcopy``, until tracers have their methods."""
    return self.copy()


@boundary
def _refuse_pickle(self: Any) -> Any:
    """``__reduce__``; copies are made by ``__copy__`` and ``__deepcopy__``."""
    if not (self._trace.is_open or self._trace.is_root):
        raise escaped(self)
    raise ConcretizationError(
        f"{self._describe()} was pickled{here()}: it is an array only while its function runs. "
        "Return it from the function (has_aux=True carries extra results out) and pickle the "
        "result, or let ft.debug.callback(f, x) have its value when the program runs."
    )


@boundary
def _refuse_hash(self: Any) -> int:
    raise TypeError(
        f"{self._describe()} was used as a key of a dict or in a set{here()}: unhashable, since "
        "equal numbers may have different derivatives. Use a plain key: int(x), or the text f'{x}' "
        "of a number whose value is known"
    )


def _of_numbers(name: str, method: Callable[[Any], Any]) -> property:
    """A method that numbers have and arrays have not."""

    def bound(self: Any) -> Any:
        if self.shape:
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return lambda: method(self)

    return property(bound)


def _is_integer(self: Any) -> Any:
    value = plain_value(self)
    if value is not None:
        return float(value).is_integer()
    return ew.isfinite(self) & ew.equal(self, ew.floor(self))


def _item(self: Any, *args: object) -> Any:
    try:
        if is_plain_code(sys._getframe(1)):
            return element(self, *args)
        return self._concrete(".item()").item(*args)
    except FunctransError as error:
        shorten(error)
        raise


def is_plain_code(frame: Any) -> bool:
    """Whether a frame is of a function of plain NumPy, whose numbers stay traced (``plain``)."""
    return hasattr(type(frame.f_globals), "original")


def is_python_number(x: Any) -> bool:
    """Whether a value is a number of Python, traced or not."""
    while isinstance(x, Tracer):
        value = getattr(x, "_value", None)
        if value is None:
            return x.aval.weak
        x = value
    return type(x) in PYTHON_SCALARS


def python_number(x: Tracer) -> Any:
    """A traced number as the number of Python that ``float(x)`` or ``x.item()`` gives, traced."""
    if type(x) is RecordingTracer and type(x._value) is np.float64 and x._trace.is_direct:
        return RecordingTracer(x._trace, x._value.item(), x._node)  # without a node of its own
    if is_python_number(x):
        return x
    return weaken(cast(x, _PYTHON_DTYPES.get(x.dtype.kind, np.float64)))


def made_python_number(x: Any) -> Any:
    """The same for a number that was made just now, which may change itself."""
    if type(x) is RecordingTracer and type(x._value) is np.float64:
        x._value = x._value.item()
        return x
    return python_number(x)


_PYTHON_DTYPES = {dtype.kind: dtype for dtype in WEAK_DTYPES.values()}
_PYTHON_DTYPES["u"] = _PYTHON_DTYPES["i"]


def nested_elements(x: Any) -> Any:
    """The elements of a traced array, still traced, in lists as ``x.tolist()`` gives them."""
    if not shape_of(x):
        return python_number(getitem(x, ()))
    return list(map(nested_elements, iterate(x)))


def element(x: Any, *args: Any) -> Any:
    """An element of a traced array, still traced, as ``x.item(*args)`` chooses it.

    Raises:
      ValueError: there are several, and none is chosen.
    """
    shape = shape_of(x)
    index = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    if not index:
        if math.prod(shape) != 1:
            raise ValueError(f"can only convert an array of size 1 to a Python scalar{here()}")
        return python_number(getitem(x, (0,) * len(shape)))
    if len(index) == 1:
        index = np.unravel_index(operator.index(index[0]) % max(math.prod(shape), 1), shape)
    return python_number(getitem(x, tuple(map(int, index))))


def _format(self: Any, spec: str) -> str:
    is_known = getattr(self, "_value", None) is not None
    if not spec and not is_known and not is_plain_code(sys._getframe(1)):
        return repr(self)
    try:
        return format(self._concrete("format()"), spec)
    except FunctransError as error:
        shorten(error)
        raise


def _text(self: Any) -> str:
    """The text of the number in plain code and for ``%s``, if it is known; else a description."""
    frame = sys._getframe(1)
    if is_plain_code(frame) or (plain_value(self) is not None and _is_formatting(frame)):
        return str(self._concrete("format()"))
    return repr(self)


def _array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    asking = sys._getframe(1)
    answer = answer_to_scipy(asking, self)  # its sparse matrices leave the word to this class
    if answer is not None:
        return answer
    try:
        if not (self._trace.is_open or self._trace.is_root):
            raise escaped(self)
        if self.dtype.kind in "biu" and has_answer(self):
            return np.array(self._concrete("index()"), self.dtype if dtype is None else dtype)
        error = deferred.conversion_error(self, asking)
        note_refusal(self._trace, error)
        raise error
    except FunctransError as error:
        shorten(error)
        raise


def _refuse_numba(self: Any) -> Any:
    """``_numba_type_``, which numba asks of objects that it does not know."""
    error = deferred.conversion_error(self, sys._getframe(1))
    note_refusal(self._trace, error)
    raise error


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
        "and": ew.bitwise_and_p,
        "or": ew.bitwise_or_p,
        "xor": ew.bitwise_xor_p,
        "lshift": ew.left_shift_p,
        "rshift": ew.right_shift_p,
    }.items():
        table[f"__{name}__"], table[f"__r{name}__"] = _binary(primitive)
        table[f"__i{name}__"] = _iadd(primitive)
    table["__pow__"], table["__rpow__"] = _pow, _reflected_power
    table["__ipow__"] = _iadd(ew.power_p)
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
        __hash__=_refuse_hash,
        __reduce__=_refuse_pickle,
        __copy__=_copy,
        __deepcopy__=_copy,
        __neg__=_unary(ew.negative),
        __pos__=_unary(fresh),
        __abs__=_unary(_magnitude),
        __invert__=_unary(ew.invert),
        __matmul__=_matmul,
        __imatmul__=_imatmul,
        __rmatmul__=_rmatmul,
        __divmod__=lambda self, other: (self // other, self % other),
        __rdivmod__=lambda self, other: (other // self, other % self),
        __getitem__=getitem,
        __setitem__=setitem,
        __round__=_round,
        __len__=length,
        __iter__=iterate,
        __bool__=_conversion(bool, "bool()"),
        __int__=_conversion(int, "int()"),
        __index__=_conversion(operator.index, "index()"),
        __float__=_conversion(float, "float()"),
        __complex__=_conversion(complex, "complex()"),
        __format__=_format,
        __str__=_text,
        __array__=_array,
        __array_priority__=1000.0,
        _numba_type_=property(_refuse_numba),
        item=_item,
        is_integer=_of_numbers("is_integer", _is_integer),
        hex=_of_numbers("hex", lambda self: float(self._concrete("format()")).hex()),
        as_integer_ratio=_of_numbers(
            "as_integer_ratio", lambda self: self._concrete(".as_integer_ratio()")
        ),
    )
    return table
