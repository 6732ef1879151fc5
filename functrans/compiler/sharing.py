"""Functions that straight-line code shares.

Here: when code for functions such as ``exp`` is written once and called (``shares_code``), and the
call (``call_shared``). Not here: the code itself (``emitter.numbers``).

A function written out takes some fifty instructions. In long code without loops, where each runs
once, calls are as fast: what the call costs is saved in reading instructions from memory. Making
code of them is what takes the time of compiling such programs.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from functrans.compiler.elements import is_dear
from functrans.compiler.packs import is_packable, pieces
from functrans.core.jaxpr import Equation
from functrans.core.lowering import Pointwise
from functrans.emitter import casts
from functrans.emitter.builder import Builder
from functrans.emitter.numbers import Number, Numbers
from functrans.emitter.types import OPEN

FEW_COPIES = 8
"""How often functions are written out in a nest without loops; more are calls."""


def shares_code(eqns: Iterable[Equation]) -> bool:
    """Whether functions such as ``exp`` in a nest without loops are written once, and called."""
    copies = 0
    for eqn in eqns:
        if isinstance(eqn.primitive.lower, Pointwise) and is_dear(eqn):
            aval: Any = eqn.outputs[0].aval
            copies += len(pieces(aval.size)) if is_packable(aval) else aval.size
    return copies > FEW_COPIES


def call_shared(b: Builder, eqn: Equation, operands: Sequence[Number]) -> Number | None:
    """Call the function of an elementwise equation, all of whose operands have as many lanes.

    Returns:
      The result; ``None`` where there is no such function: of arithmetic, of what is not real, and
      of constants, for which rules may have special code.
    """
    lower = eqn.primitive.lower
    assert isinstance(lower, Pointwise)
    dtype = eqn.outputs[0].aval.dtype
    dtypes = (dtype, *[x.dtype for x in operands])
    if eqn.params or not is_dear(eqn) or any(casts.kind_of(d) != "f" for d in dtypes):
        return None
    values = [x.value for x in operands]
    if any(value.text[0] not in ("%", OPEN) for value in values):
        return None
    lanes = operands[0].lanes
    names = b.module.helpers
    name = names.setdefault((eqn.primitive, dtypes, lanes), f"each{len(names)}")

    def write(inner: Builder) -> None:
        e = Numbers(inner)
        xs = zip(operands, inner.arguments, strict=True)
        result: Number = lower.write(e, *[Number(x.dtype, (value,)) for x, value in xs])
        inner.ret(e.cast(result, dtype).value)

    type_ = casts.register_type(dtype).with_lanes(lanes)
    return Number(dtype, (b.helper(name, values, type_, write),))
