"""Traces that carry more than one tangent: a value and what is known of its derivatives.

Here: ``TowerTrace``, the abstract trace that evaluates every operation on values and on what goes
with them (its *towers*), and its tracer. Not here: what a tower is and how operations act on it
(``higher.jet``: series; ``higher.laplacian``: gradient and Laplacian).

Layer: ``higher``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from functrans.core.dispatch import bind
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.quiet import quietly
from functrans.passes.value_tracers import ValueTrace, ValueTracer, raise_clearer


class TowerTracer(ValueTracer):
    """Stand-in for an array that has its value and a tower (``None`` for a constant)."""

    __slots__ = ()
    _trace: TowerTrace
    if TYPE_CHECKING:
        _tower: Any
    else:
        _tower = ValueTracer._beside


class TowerTrace(ValueTrace):
    """Evaluates every operation on values and towers (abstract)."""

    __slots__ = ()
    tracer = TowerTracer

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
        values, towers = self.taken_apart(operands)
        is_constant = primitive.jvp is nondifferentiable or all(t is None for t in towers)
        try:
            if is_constant:
                outs: Sequence[Any] = bind(primitive, *values, **params)
                return self.wrap(outs, (None,) * len(outs))
            outs, out_towers = quietly(self.raised, primitive, values, towers, params)
        except (ValueError, TypeError, IndexError) as error:
            raise_clearer(primitive, values, params, error)
            raise
        return self.wrap(outs, out_towers)
