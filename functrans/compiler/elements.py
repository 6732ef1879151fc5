"""What an element of an equation's result costs, and where it comes from.

Here: ``pointwise_cost`` and its like, in additions; ``general_reads`` of index maps. Not here: what
is done with it (``compiler.schedule``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from functrans.core.affine import variable
from functrans.core.jaxpr import Equation, Literal
from functrans.core.lowering import IndexMap, Pointwise, Read
from functrans.primitives.elementwise import power_p

DEAR = 6
"""Cost, in additions, from which a variable that is needed twice is stored."""


def step_cost(kind: str, dtype: np.dtype) -> int:
    """Instructions that combine two elements, roughly."""
    if dtype.kind not in "biu" and dtype.itemsize == 2:
        return 16  # rounded by arithmetic on bits
    if dtype.kind == "c":
        return 2 if kind == "sum" else 6
    return 1


def general_reads(eqn: Equation, lower: IndexMap) -> Iterator[Sequence[Read] | None]:
    """Per result, where an element at a general index comes from; ``None`` where not affine."""
    avals = [atom.aval for atom in eqn.inputs]
    for output, var in enumerate(eqn.outputs):
        shape: tuple[int, ...] = var.aval.shape
        index = tuple([variable(i) if n != 1 else 0 for i, n in enumerate(shape)])
        yield lower.trace(index, avals, output, **eqn.params)


def pointwise_cost(eqn: Equation) -> int:
    """Work of an elementwise equation per element; small constant powers are products."""
    lower = eqn.primitive.lower
    assert isinstance(lower, Pointwise)
    if eqn.primitive is power_p:
        exponent = eqn.inputs[1]
        if isinstance(exponent, Literal) and exponent.value in (-1, 0.5, 1, 2, 3):
            return 4 if exponent.value in (-1, 0.5) else 2
    return lower.cost


def is_dear(eqn: Equation) -> bool:
    """Whether an elementwise equation is a function such as ``exp``, no arithmetic."""
    return pointwise_cost(eqn) > DEAR


def may_fail(eqn: Equation) -> bool:
    """Whether an elementwise equation can end the program: integer powers can."""
    lower = eqn.primitive.lower
    is_power = isinstance(lower, Pointwise) and eqn.primitive is power_p
    return is_power and eqn.outputs[0].aval.dtype.kind in "iu"
