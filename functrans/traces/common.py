"""What tracers that have values share: Python values from them, and clearer errors.

Layer: ``traces`` (below the traces that have values).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functrans.errors import ConcretizationError, FunctransError, ShapeError
from functrans.ir.primitive import Primitive
from functrans.ir.source import here
from functrans.staging import located
from functrans.trace import Tracer, aval_of


def explained(
    primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any], error: Exception
) -> Exception:
    """A clearer error for an operation that failed: its abstract evaluation's, with the line."""
    if isinstance(error, FunctransError):
        return error
    try:
        primitive.abstract_eval(*[aval_of(operand) for operand in operands], **params)
    except ShapeError as clearer:
        return located(clearer)
    except Exception:  # the original error is the better one then
        return error
    return error


CONTROL_FLOW = frozenset({"bool()", "int()", "index()", "format()", "comparison", "a value-dependent shape"})


def concrete_value(tracer: Tracer, value: Any, what: str) -> Any:
    """The plain value behind a tracer that has one.

    Raises:
      ConcretizationError: the conversion would drop the derivative silently.
    """
    if what not in CONTROL_FLOW:
        raise ConcretizationError(
            f"{what} of {tracer._describe()} was asked{here()}, inside {tracer._trace.label}: the "
            "plain number would silently lose the derivative. Use array operations on the traced "
            "value itself (np.sin instead of math.sin; functrans.numpy.array for lists), or "
            "ft.stop_gradient(x) where no derivative is wanted."
        )
    return value._concrete(what) if isinstance(value, Tracer) else value
