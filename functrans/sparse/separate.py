"""Products with constant directions one by one, without what is zero or one in each of them.

Here: ``separate_products``. A direction of a colouring is an array of zeros and ones, but behind an
index or a slice it is often 0 or 1 throughout: of all parameters of a camera one is varied, and all
cameras alike. Then the derivative along one direction is a program of its own, in which an
operation on a zero does not exist and a factor 1 is none, as in code written by hand: the terms of
a sum that are zero in the pattern are not computed.

A direction that stays mixed, as on a grid, has nothing to leave out; there all directions are
evaluated in one batch (``sparse.compression``), and nothing is done here.

Layer: ``sparse``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.byte_order import native_array
from functrans.core.dispatch import bind, innermost_staging
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.passes.simplify import simplify
from functrans.passes.staging import may_change, stage
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import broadcast_to, broadcast_to_p
from functrans.records import dataclass

_MOST_EQUATIONS = 2_000
"""Of all products together: beyond, the program would take long to compile."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A known array.

    Attributes:
      array: its elements.
      number: what they all are; ``None`` where they differ.
    """

    array: np.ndarray
    number: float | None

    @staticmethod
    def of(array: Any) -> Constant:
        """Look at an array."""
        array = native_array(np.asarray(array))
        first = array.flat[0].item() if array.size else 0.0
        return Constant(array, first if np.all(array == first) else None)


class _MixedError(Exception):
    """A direction is neither 0 nor another number throughout where it meets an argument."""


def separate_products(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    seeds: Sequence[np.ndarray],
    fixed: Sequence[np.ndarray],
) -> list[list[Any]] | None:
    """Results of a linear function for several constant directions.

    Args:
      fun: linear function of arrays, of a program that is being staged.
      avals: of its arguments.
      seeds: per argument, one direction after the other.
      fixed: arrays that the function refers to and that will not change.

    Returns:
      Per direction the results, arrays or tracers; ``None`` where a direction is not the same
      number throughout where it meets what is not known, or the program would be long.
    """
    program = simplify(stage(lambda *ts: list(fun(*ts)), avals, "directions"))
    n = len(seeds[0])
    if any(next(subjaxprs(eqn.params), None) is not None for eqn in program.eqns):
        return None
    try:
        plans = [_Direction(program, [seed[i] for seed in seeds], fixed) for i in range(n)]
    except _MixedError:
        return None
    if sum(plan.n_equations for plan in plans) > _MOST_EQUATIONS:
        return None
    return [plan.evaluate() for plan in plans]


class _Direction:
    """The program along one direction: first what is known, then the equations that are left."""

    def __init__(
        self, program: Jaxpr, seeds: Sequence[np.ndarray], fixed: Sequence[np.ndarray]
    ) -> None:
        self.program = program
        self.known: dict[Var, Constant] = {}
        self.tracers: dict[Var, Any] = {}
        for var, const in zip(program.constvars, program.consts, strict=True):
            is_fixed = isinstance(const, np.ndarray) and not may_change(const)
            if is_fixed or any(const is array for array in fixed):
                self.known[var] = Constant.of(const)
            else:
                self.tracers[var] = const
        self.linear = set(program.invars)
        for var, seed in zip(program.invars, seeds, strict=True):
            self.known[var] = Constant.of(seed)
        self.left: list[Equation] = []
        for eqn in program.eqns:
            self._look_at(eqn)

    @property
    def n_equations(self) -> int:
        """How many equations are left."""
        return len(self.left)

    def _look_at(self, eqn: Equation) -> None:
        moving = [x for x in eqn.inputs if x in self.linear]
        self.linear.update(eqn.outputs if moving else ())
        if moving and all(self._is_zero(x) for x in moving):
            for var in eqn.outputs:
                zeros = np.broadcast_to(np.zeros((), var.aval.dtype), var.aval.shape)
                self.known[var] = Constant(zeros, 0.0)
        elif all(isinstance(x, Literal) or x in self.known for x in eqn.inputs):
            operands = [
                x.value if isinstance(x, Literal) else self.known[x].array for x in eqn.inputs
            ]
            outs = eqn.primitive.impl(*operands, **eqn.params)
            self.known.update(zip(eqn.outputs, map(Constant.of, outs), strict=True))
        else:
            found = [self.known.get(x) for x in moving if isinstance(x, Var)]
            if any(own is not None and own.number is None for own in found):
                raise _MixedError
            self.left.append(eqn)

    def _is_zero(self, x: Any) -> bool:
        found = self.known.get(x)
        return found is not None and found.number == 0

    def evaluate(self) -> list[Any]:
        """Evaluate what is left; the results."""
        for eqn in self.left:
            outs = self._reduced(eqn) or bind(
                eqn.primitive, *[self._value(x) for x in eqn.inputs], **eqn.params
            )
            self.tracers.update(zip(eqn.outputs, outs, strict=True))
        return [self._value(x) for x in self.program.outvars]

    def _reduced(self, eqn: Equation) -> tuple[Any, ...] | None:
        """The result of a sum with a zero, or of a product with a number."""
        primitive = eqn.primitive
        if primitive not in (ew.add_p, ew.subtract_p, ew.multiply_p, ew.divide_p):
            return None
        aval = eqn.outputs[0].aval
        first, second = eqn.inputs
        for x, y, is_first in ((first, second, True), (second, first, False)):
            found = self.known.get(x)  # type: ignore[arg-type]  # no literal is known
            if found is None or found.number is None or y.aval.dtype != aval.dtype:
                continue
            if x not in self.linear:
                continue
            if found.number == 0 and primitive in (ew.add_p, ew.subtract_p):
                value: Any = self._value(y)
                if primitive is ew.subtract_p and is_first:
                    (value,) = bind(ew.negative_p, value)
                return (broadcast_to(value, aval.shape),)
            if found.number == 1 and primitive is ew.multiply_p:
                return (broadcast_to(self._value(y), aval.shape),)
        return None

    def _value(self, x: Any) -> Any:
        """A value as an operand: a number that fills an array is broadcast."""
        if isinstance(x, Literal):
            return x.value
        found = self.known.get(x)
        if found is None:
            return self.tracers[x]
        if found.number is None or x not in self.linear:
            return found.array
        return filled(x.aval, found.number)


def filled(aval: ShapedArray, number: float) -> Any:
    """An array of one number, as an equation of the program that is being staged."""
    staging = innermost_staging()
    assert staging is not None
    value = aval.dtype.type(number)
    (out,) = staging.process(broadcast_to_p, (value,), {"shape": aval.shape})
    return out
