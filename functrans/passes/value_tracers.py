"""What tracers that have values share: their class, Python values from them, clearer errors.

Layer: ``passes`` (below the traces that have values).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.boundary import cause
from functrans.core.dispatch import Trace, Tracer, aval_of, dtype_of, escaped
from functrans.core.primitive import Primitive
from functrans.core.source import Captured, SourceLine, here
from functrans.core.values import Array
from functrans.errors import (
    ConcretizationError,
    FunctransError,
    ShapeError,
    UnsupportedOperationError,
)
from functrans.passes.layouts import laid_out
from functrans.passes.staging import located


def explained(
    primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any], error: Exception
) -> Exception | None:
    """A clearer error for an operation that failed: its abstract evaluation's, with the line.

    ``None`` where there is none; the original error goes on then. Whoever raises the clearer one
    deletes the name, since a frame that an error went through must not refer to it.
    """
    if isinstance(error, FunctransError):
        return None
    try:
        primitive.abstract_eval(*[aval_of(operand) for operand in operands], **params)
    except ShapeError as clearer:
        return located(clearer)
    except FunctransError as clearer:  # an operand is no array of numbers
        return clearer
    except Exception:  # the original error is the better one then
        pass
    if type(error) in (IndexError, np.linalg.LinAlgError) and " (at " not in str(error):
        return type(error)(f"{error}{here()}")
    return None


def raise_clearer(
    primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], error: Exception
) -> None:
    """Raise the clearer error for an operation that failed, if there is one."""
    clearer = explained(primitive, tuple(operands), params, error)
    if clearer is not None:
        try:
            raise clearer from cause(error)
        finally:
            del clearer


OBJECT = np.dtype(object)


def object_array(primitive: Primitive | None = None) -> UnsupportedOperationError:
    """The error for an operand that is an array of Python objects."""
    what = primitive.name if primitive is not None else "an operation"
    return UnsupportedOperationError(
        f"{what} was given an array of dtype object{here()}; a traced value cannot meet Python "
        "objects one by one. Convert the array with .astype(float) first."
    )


def is_floating(value: Array | complex) -> bool:
    """Whether a value has a dtype with tangents.

    Raises:
      UnsupportedOperationError: it is an array of objects.
    """
    if dtype_of(value) is OBJECT:
        raise object_array()
    return is_differentiable_dtype(dtype_of(value))


CONTROL_FLOW = frozenset(
    {"bool()", "int()", "index()", "format()", "comparison", "a value-dependent shape"}
)


def concrete_value(tracer: Tracer, value: Any, what: str) -> Any:
    """The plain value behind a tracer that has one.

    Raises:
      ConcretizationError: the conversion would drop the derivative silently.
    """
    if what not in CONTROL_FLOW:
        if not (tracer._trace.is_open or tracer._trace.is_root):
            raise escaped(tracer)
        raise ConcretizationError(
            f"{what} of {tracer._describe()} was asked{here()}, inside {tracer._trace.label}: the "
            "plain number would silently lose the derivative. Use array operations on the traced "
            "value itself (np.sin instead of math.sin; functrans.numpy.array for lists; a buffer "
            "made with like=x, as np.zeros(n, like=x), for buffer[i] = x), or ft.stop_gradient(x) "
            "where no derivative is wanted."
        )
    return value._concrete(what) if isinstance(value, Tracer) else value


class ValueTrace(Trace):
    """A trace whose tracers have values (abstract).

    Attributes:
      tracer: the class of its tracers.
    """

    __slots__ = ()
    tracer: type[ValueTracer]

    def lift(self, value: Any) -> Any:
        """A tracer of this trace for a constant."""
        if type(value) is self.tracer and value._trace is self:
            return value
        return self.tracer(self, value, None)

    def taken_apart(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Values of operands, and what is kept beside them; ``None`` beside constants."""
        tracer = self.tracer
        values, beside = [], []
        for operand in operands:
            if type(operand) is tracer and operand._trace is self:
                values.append(operand._value)
                beside.append(operand._beside)
            else:
                values.append(operand)
                beside.append(None)
        return values, beside

    def split(self, x: Any) -> tuple[Any, Any]:
        """The value of an operand and what is kept beside it; ``None`` beside a constant."""
        return (x._value, x._beside) if type(x) is self.tracer and x._trace is self else (x, None)

    def wrap(self, outs: Sequence[Any], beside: Sequence[Any]) -> tuple[Any, ...]:
        """Tracers of floating results; others as they are."""
        tracer = self.tracer
        return tuple(
            [
                tracer(self, out, own) if is_floating(out) else out
                for out, own in zip(outs, beside, strict=True)
            ]
        )


class ValueTracer(Tracer):
    """Stand-in for an array that has its value and what a trace keeps beside it (abstract).

    Subclasses say what that is, by the name under which they know the slot.
    """

    __slots__ = ("_beside", "_value")

    def __init__(self, trace: Any, value: Any, beside: Any) -> None:
        self._trace = trace
        self._value = value
        self._beside = beside
        self._alias = None

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return aval_of(self._value)  # type: ignore[return-value]  # a tape only inside loops

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        try:
            return self._value.shape
        except AttributeError:
            return ()

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype."""
        value = self._value
        return value.dtype if type(value) is np.ndarray else dtype_of(value)

    def _rebind(self, other: Any) -> None:
        self._value = laid_out(other._value, self._value)
        self._beside = other._beside

    def _twin(self) -> ValueTracer:
        return type(self)(self._trace, self._value, self._beside)

    def _describe(self) -> str:
        return f"a traced value of type {self.aval}"

    def _made_at(self) -> Captured | SourceLine | None:
        return getattr(self._beside, "source", None)

    def _concrete(self, what: str) -> Array:
        """The value, for Python control flow; conversions that lose the derivative raise."""
        return concrete_value(self, self._value, what)

    def __repr__(self) -> str:
        """``Traced<f64[3]>([1. 2. 3.])``."""
        return f"Traced<{self.aval}>({self._value!r})"
