"""The pushing trace: values and tangents, no tape, for forward mode.

Here: ``PushingTrace`` and its tracer. Not here: the jvp rules (records of the primitives).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import Zero
from functrans.core.boundary import at_user
from functrans.core.dispatch import Tracer, bind
from functrans.core.primitive import Joint, Primitive, nondifferentiable
from functrans.core.quiet import quietly
from functrans.passes.layouts import plain_value
from functrans.passes.nodes import SOLE_REFERENCES, detached, is_writable
from functrans.passes.pushforward import push_tangents, symbolic
from functrans.passes.value_tracers import ValueTrace, ValueTracer, raise_clearer
from functrans.primitives.slicing import BasicIndex, slice_p


class PushingTracer(ValueTracer):
    """Stand-in for an array that has its value and its tangent (``None`` for zero)."""

    __slots__ = ()
    _trace: PushingTrace
    if TYPE_CHECKING:
        _tangent: Any
    else:
        _tangent = ValueTracer._beside

    def _concrete(self, what: str) -> Any:
        """The value, for Python control flow; conversions that lose the derivative raise."""
        return plain_value(self) if self._trace.gives_values else super()._concrete(what)


class PushingTrace(ValueTrace):
    """Evaluates every operation on values and tangents."""

    __slots__ = ()
    tracer = PushingTracer
    gives_values = False
    """Whether plain values may be asked of its tracers, though they lose the derivative."""

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation and its jvp."""
        values, tangents = self.taken_apart(operands)
        if type(primitive.jvp) is Joint and any(tangent is not None for tangent in tangents):
            outs, out_tangents = push_jointly(primitive.jvp, values, tangents, params)
            return self.wrap(outs, out_tangents)
        try:
            outs = at_user(bind, primitive, *values, **params)
        except (ValueError, TypeError, IndexError) as error:
            raise_clearer(primitive, values, params, error)
            raise
        if primitive.jvp is nondifferentiable or all(tangent is None for tangent in tangents):
            out_tangents = (None,) * len(outs)
        else:
            out_tangents = quietly(push_tangents, primitive, values, tangents, outs, params)
        if primitive is slice_p:
            outs = (detached(outs[0], values[0]),)
            if out_tangents[0] is not None:
                out_tangents = (detached(out_tangents[0], tangents[0]),)
        return self.wrap(outs, out_tangents)

    def update_in_place(self, x: PushingTracer, v: Any, index: BasicIndex) -> bool:
        """Write into value and tangent of a tracer if nothing else sees them; whether it was done.

        As in the recording trace, this makes filling an array in a loop linear. Inputs are held by
        the caller of this trace.
        """
        if (
            getrefcount(x._value) > SOLE_REFERENCES
            or not is_writable(x._value)
            or (x._tangent is not None and getrefcount(x._tangent) > SOLE_REFERENCES)
            or (x._tangent is not None and not is_writable(x._tangent))
            or (isinstance(v, Tracer) and not (type(v) is PushingTracer and v._trace is self))
            or (x._alias is not None and x._alias.base is not None)
        ):
            return False
        value, tangent = (v._value, v._tangent) if type(v) is PushingTracer else (v, None)
        if isinstance(value, Tracer) or isinstance(tangent, Tracer):
            return False
        x._value[index.entries] = value
        if tangent is not None and x._tangent is None:
            x._tangent = np.zeros(x._value.shape, x._value.dtype)
        if x._tangent is not None:
            x._tangent[index.entries] = 0 if tangent is None else tangent
        return True


def push_jointly(
    jvp: Joint, values: list[Any], tangents: list[Any], params: Mapping[str, Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Results and tangents of an equation that computes them together."""
    outs, results = quietly(jvp.rule, tuple(values), symbolic(values, tangents), **params)
    return outs, [None if type(t) is Zero else t for t in results]
