"""Traces that carry more than one tangent: a value and what is known of its derivatives.

Here: ``TowerTrace``, the abstract trace that evaluates every operation on values and on what goes
with them (its *towers*), and its tracer. Not here: what a tower is and how operations act on it
(``transforms.taylor``: series; ``transforms.laplacian``: gradient and Laplacian).

Layer: ``traces``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.ir.avals import ShapedArray
from functrans.ir.primitive import Primitive, nondifferentiable
from functrans.trace import Trace, Tracer, aval_of, bind
from functrans.traces.common import concrete_value, explained, is_floating, laid_out


class TowerTrace(Trace):
    """Evaluates every operation on values and towers (abstract)."""

    __slots__ = ()

    def raised(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Results of an operation and their towers.

        Args:
          primitive: the operation; it is differentiable.
          values: operands.
          towers: one per operand, ``None`` for a constant; one at least is none.
          params: static parameters.
        """
        raise NotImplementedError

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation and the towers of its results."""
        values: list[Any] = []
        towers: list[Any] = []
        for operand in operands:
            own = type(operand) is TowerTracer and operand._trace is self
            values.append(operand._value if own else operand)
            towers.append(operand._tower if own else None)
        is_constant = primitive.jvp is nondifferentiable or all(t is None for t in towers)
        try:
            if is_constant:
                outs: Sequence[Any] = bind(primitive, *values, **params)
                return self.wrap(outs, (None,) * len(outs))
            with np.errstate(all="ignore"):
                outs, out_towers = self.raised(primitive, values, towers, params)
        except (ValueError, TypeError, IndexError) as error:
            clearer = explained(primitive, tuple(values), params, error)
            if clearer is None:
                raise
            try:
                raise clearer from error
            finally:
                del clearer
        return self.wrap(outs, out_towers)

    def wrap(self, outs: Sequence[Any], towers: Sequence[Any]) -> tuple[Any, ...]:
        """Tracers of floating results; others as they are."""
        return tuple(
            [
                TowerTracer(self, out, tower) if is_floating(out) else out
                for out, tower in zip(outs, towers, strict=True)
            ]
        )

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Evaluate an elementwise operation and the tower of its result."""
        return self.process(primitive, operands, {})[0]

    def lift(self, value: Any) -> TowerTracer:
        """A tracer of this trace for a constant."""
        if type(value) is TowerTracer and value._trace is self:
            return value
        return TowerTracer(self, value, None)

    def split(self, value: Any) -> tuple[Any, Any]:
        """The value and the tower of a result; those of a constant are itself and ``None``."""
        if type(value) is TowerTracer and value._trace is self:
            return value._value, value._tower
        return value, None


class TowerTracer(Tracer):
    """Stand-in for an array that has its value and a tower (``None`` for a constant)."""

    __slots__ = ("_tower", "_value")
    _trace: TowerTrace

    def __init__(self, trace: TowerTrace, value: Any, tower: Any) -> None:
        self._trace = trace
        self._value = value
        self._tower = tower
        self._alias = None

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return aval_of(self._value)  # type: ignore[return-value]  # a tape only inside loops

    def _rebind(self, other: TowerTracer) -> None:
        self._value = laid_out(other._value, self._value)
        self._tower = other._tower

    def _twin(self) -> TowerTracer:
        return TowerTracer(self._trace, self._value, self._tower)

    def _describe(self) -> str:
        return f"a traced value of type {self.aval}"

    def _concrete(self, what: str) -> Any:
        """The value, for Python control flow; conversions that lose the derivative raise."""
        return concrete_value(self, self._value, what)

    def __repr__(self) -> str:
        """``Traced<f64[3]>([1. 2. 3.])``."""
        return f"Traced<{self.aval}>({self._value!r})"
