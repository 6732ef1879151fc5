"""Values of a walk through a program: what they depend on, and their numbers where known.

Here: ``Value``, and the numbers of values that do not depend on any argument, computed when a rule
asks for them (indices, masks, constant matrices). Not here: rules (``sparse.rules``).

Layer: ``sparse``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import Aval, ShapedArray, Tape
from functrans.core.byte_order import native_dtype
from functrans.core.jaxpr import Equation
from functrans.records import dataclass
from functrans.sparse.dependence import Dependence, Shape

_SMALL = 64
"""Elements up to which elementwise results are computed at once, so that chains stay short."""


class Unknown:
    """The numbers of a value that depend on arguments."""


UNKNOWN = Unknown()


class Captured:
    """An array whose elements may change.

    Attributes:
      array: the array.
      copy: its elements when they were asked for; ``None`` as long as nobody did.
    """

    __slots__ = ("array", "copy")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.copy: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """The elements, from now on a part of what the pattern depends on."""
        if self.copy is None:
            self.copy = self.array.astype(native_dtype(self.array.dtype))
        return self.copy


class Pending:
    """Results of an equation of known operands, not computed yet.

    Attributes:
      eqn: the equation.
      operands: its operands.
      outs: the results, once computed.
    """

    __slots__ = ("eqn", "operands", "outs")

    def __init__(self, eqn: Equation, operands: Sequence[Value]) -> None:
        self.eqn = eqn
        self.operands = operands
        self.outs: tuple[Any, ...] | None = None


@dataclass(slots=True, eq=False)
class Value:
    """A value of a walk.

    Attributes:
      aval: shape and dtype.
      dep: what its elements depend on. All entries of a tape have one dependence.
      known: its numbers; ``UNKNOWN``; an array that may change; or an equation and the number of
        the result.
    """

    aval: Aval
    dep: Dependence = ()
    known: Any = UNKNOWN

    @property
    def shape(self) -> Shape:
        """Shape of the value, or of an entry of a tape."""
        return entry_shape(self.aval)

    @property
    def is_known(self) -> bool:
        """Whether its numbers are known, or can be computed."""
        return self.known is not UNKNOWN


def entry_shape(aval: Aval) -> Shape:
    """Shape of an array; of one entry for a tape."""
    while type(aval) is Tape:
        aval = aval.element
    assert type(aval) is ShapedArray
    return aval.shape


def results(eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    """The results of an equation that depends on nothing."""
    is_known = not eqn.effects and all(v.is_known for v in operands)
    is_known = is_known and all(type(var.aval) is ShapedArray for var in eqn.outputs)
    if not is_known:
        return [Value(var.aval) for var in eqn.outputs]
    pending = Pending(eqn, operands)
    if eqn.primitive.elementwise is not None and _is_small(eqn.outputs[0].aval):
        _compute(pending)
    return [Value(var.aval, (), (pending, i)) for i, var in enumerate(eqn.outputs)]


def _is_small(aval: object) -> bool:
    return type(aval) is ShapedArray and aval.size <= _SMALL


def numbers(value: Value) -> Any:
    """The numbers of a known value."""
    if type(value.known) is tuple:
        pending, i = value.known
        if pending.outs is None:
            _compute(pending)
        value.known = pending.outs[i]
    elif type(value.known) is Captured:
        value.known = value.known.numbers()
    return value.known


def _compute(pending: Pending) -> None:
    """Compute an equation and those that it waits for, without recursion."""
    stack = [pending]
    while stack:
        top = stack[-1]
        waiting = [
            v.known[0] for v in top.operands if type(v.known) is tuple and v.known[0].outs is None
        ]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if top.outs is None:
            arrays = [numbers(v) for v in top.operands]
            with np.errstate(all="ignore"):
                top.outs = tuple(top.eqn.primitive.impl(*arrays, **top.eqn.params))
            top.operands = ()
