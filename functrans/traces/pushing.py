"""The pushing trace: values and tangents, no tape, for forward mode.

Here: ``PushingTrace`` and its tracer. Not here: the jvp rules (records of the primitives).

Layer: ``traces``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from functrans.errors import NonDifferentiableError
from functrans.ir.avals import PYTHON_SCALARS, ShapedArray, Zero, is_differentiable_dtype
from functrans.ir.primitive import Joint, Primitive, linear, multilinear, nondifferentiable
from functrans.ir.source import here
from functrans.passes.cotangents import zeros
from functrans.passes.nodes import SOLE_REFERENCES, detached, is_writable
from functrans.primitives.slicing import BasicIndex, slice_p
from functrans.trace import Trace, Tracer, aval_of, bind, dtype_of, shape_of
from functrans.traces.common import concrete_value, explained, is_floating, laid_out, plain_value


class PushingTrace(Trace):
    """Evaluates every operation on values and tangents."""

    __slots__ = ()
    gives_values = False
    """Whether plain values may be asked of its tracers, though they lose the derivative."""

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation and its jvp."""
        values = []
        tangents: list[Any] = []
        for operand in operands:
            if type(operand) is PushingTracer and operand._trace is self:
                values.append(operand._value)
                tangents.append(operand._tangent)
            else:
                values.append(operand)
                tangents.append(None)
        if type(primitive.jvp) is Joint and any(tangent is not None for tangent in tangents):
            outs, out_tangents = push_jointly(primitive.jvp, values, tangents, params)
            return self._wrap(outs, out_tangents)
        try:
            outs = bind(primitive, *values, **params)
        except (ValueError, TypeError, IndexError) as error:
            clearer = explained(primitive, tuple(values), params, error)
            if clearer is None:
                raise
            try:
                raise clearer from error
            finally:
                del clearer
        if primitive.jvp is nondifferentiable or all(tangent is None for tangent in tangents):
            out_tangents = (None,) * len(outs)
        else:
            with np.errstate(all="ignore"):
                out_tangents = push_tangents(primitive, values, tangents, outs, params)
        if primitive is slice_p:
            outs = (detached(outs[0], values[0]),)
            if out_tangents[0] is not None:
                out_tangents = (detached(out_tangents[0], tangents[0]),)
        return self._wrap(outs, out_tangents)

    def _wrap(self, outs: Sequence[Any], out_tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Tracers of results; those without tangents as they are."""
        return tuple(
            [
                PushingTracer(self, out, tangent) if is_floating(out) else out
                for out, tangent in zip(outs, out_tangents, strict=True)
            ]
        )

    def lift(self, value: Any) -> PushingTracer:
        """A tracer of this trace for a constant."""
        if type(value) is PushingTracer and value._trace is self:
            return value
        return PushingTracer(self, value, None)

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

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Evaluate an elementwise operation and its jvp."""
        return self.process(primitive, operands, {})[0]


def push_jointly(
    jvp: Joint, values: list[Any], tangents: list[Any], params: Mapping[str, Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Results and tangents of an equation that computes them together."""
    with np.errstate(all="ignore"):
        outs, results = jvp.rule(tuple(values), _symbolic(values, tangents), **params)
    return outs, [None if type(t) is Zero else t for t in results]


def _symbolic(values: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Tangents with ``Zero`` in place of ``None``."""
    return tuple(
        [
            Zero(aval_of(value)) if tangent is None else tangent
            for value, tangent in zip(values, tangents, strict=True)
        ]
    )


def push_tangents(
    primitive: Primitive,
    values: list[Any],
    tangents: list[Any],
    outs: tuple[Any, ...],
    params: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Tangents of the results; ``None`` stands for zero on both sides."""
    rule = primitive.jvp
    if rule is linear:
        operands = [
            value if not is_differentiable_dtype(dtype_of(value))
            else _filled(value) if tangent is None else tangent
            for value, tangent in zip(values, tangents, strict=True)
        ]  # fmt: skip
        return bind(primitive, *operands, **params)
    if rule is multilinear:
        total: tuple[Any, ...] = ()
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                operands = [tangent if j == i else value for j, value in enumerate(values)]
                term = bind(primitive, *operands, **params)
                total = tuple(a + b for a, b in zip(total, term, strict=True)) if total else term
        return total
    if not callable(rule):
        raise NonDifferentiableError(
            f"primitive {primitive.name} has no derivative rule (field jvp is None){here()}; use "
            "ft.stop_gradient or give a custom rule (ft.custom_jvp)"
        )
    results = rule(tuple(values), _symbolic(values, tangents), outs, **params)
    return tuple(None if type(t) is Zero else t for t in results)


def _filled(value: Any) -> Any:
    """A zero tangent as an array; of a Python number, which is weak, as a Python number."""
    if type(value) in PYTHON_SCALARS:
        return type(value)(0)
    return zeros(ShapedArray(shape_of(value), dtype_of(value)))


class PushingTracer(Tracer):
    """Stand-in for an array that has its value and its tangent (``None`` for zero)."""

    __slots__ = ("_tangent", "_value")
    _trace: PushingTrace

    def __init__(self, trace: PushingTrace, value: Any, tangent: Any) -> None:
        self._trace = trace
        self._value = value
        self._tangent = tangent
        self._alias = None

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return aval_of(self._value)  # type: ignore[return-value]  # a tape only inside loops

    def _rebind(self, other: PushingTracer) -> None:
        self._value = laid_out(other._value, self._value)
        self._tangent = other._tangent

    def _twin(self) -> PushingTracer:
        return PushingTracer(self._trace, self._value, self._tangent)

    def _describe(self) -> str:
        return f"a traced value of type {self.aval}"

    def _concrete(self, what: str) -> Any:
        """The value, for Python control flow; conversions that lose the derivative raise."""
        if self._trace.gives_values:
            return plain_value(self)
        return concrete_value(self, self._value, what)

    def __repr__(self) -> str:
        """``Traced<f64[3]>([1. 2. 3.])``."""
        return f"Traced<{self.aval}>({self._value!r})"
