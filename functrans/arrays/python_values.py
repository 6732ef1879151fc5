"""What Python asks of a traced value: a number, a text, a hash, a copy.

Here: conversions, which a value that is known answers and another refuses, methods of Python's
numbers, numbers that stay traced. Not here: operators (``arrays.operators``), what an error says
of a library that asks (``functrans.conversion``).

Layer: ``arrays``.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from functrans.arrays.callers import is_formatting, is_plain_code
from functrans.arrays.items import getitem, iterate
from functrans.arrays.sparse import answer_to_scipy
from functrans.core.avals import PYTHON_SCALARS, WEAK_DTYPES
from functrans.core.boundary import boundary, note_refusal, shorten
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer, escaped, shape_of
from functrans.core.source import here
from functrans.errors import ConcretizationError, FunctransError
from functrans.passes.layouts import plain_value
from functrans.passes.recording import RecordingTracer
from functrans.passes.staging import has_answer
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import cast, weaken

R = TypeVar("R")


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
        is_text = what == "float()" and is_formatting(sys._getframe(1))
        try:
            try:
                return make(self._concrete("format()" if is_text else what))
            except ConcretizationError as error:
                raise refused(self, error, sys._getframe(1)) from error.__cause__
        except FunctransError as error:
            shorten(error)
            raise

    return convert


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
    if is_plain_code(frame) or (plain_value(self) is not None and is_formatting(frame)):
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


METHODS: dict[str, Any] = {
    "__hash__": _refuse_hash,
    "__reduce__": _refuse_pickle,
    "__copy__": _copy,
    "__deepcopy__": _copy,
    "__round__": _round,
    "__bool__": _conversion(bool, "bool()"),
    "__int__": _conversion(int, "int()"),
    "__index__": _conversion(operator.index, "index()"),
    "__float__": _conversion(float, "float()"),
    "__complex__": _conversion(complex, "complex()"),
    "__format__": _format,
    "__str__": _text,
    "__array__": _array,
    "_numba_type_": property(_refuse_numba),
    "item": _item,
    "is_integer": _of_numbers("is_integer", _is_integer),
    "hex": _of_numbers("hex", lambda self: float(self._concrete("format()")).hex()),
    "as_integer_ratio": _of_numbers(
        "as_integer_ratio", lambda self: self._concrete(".as_integer_ratio()")
    ),
}
"""Of tracers, by name."""
