"""Small arrays in vector registers.

Here: how an array without loops is divided into *packs*, registers of several elements each
(``pieces``), and which variables of a program are computed so (``packed_variables``). Not here: the
instructions (``compiler.nests``), registers by element (``compiler.storage``).

Pieces depend on the size alone, so that those of all operands of an equation agree whatever their
dtypes are.

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from typing import Any

from functrans.compiler.axes import FULLY_UNROLLED
from functrans.compiler.elements import is_dear
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction

PACK = 8
"""Elements of a register: 64 bytes of doubles, which LLVM splits into what the processor has."""
SMALLEST_PACKED = 4
"""Elements from which an array is packed."""


def pieces(size: int) -> tuple[tuple[int, int], ...]:
    """The first element and the number of lanes of each register of an array: powers of two."""
    found, start = [], 0
    while start < size:
        lanes = min(PACK, 1 << ((size - start).bit_length() - 1))
        found.append((start, lanes))
        start += lanes
    return tuple(found)


def is_packable(aval: Any) -> bool:
    """Whether an array has no loops, and as many elements as are worth a vector."""
    return type(aval) is ShapedArray and SMALLEST_PACKED <= math.prod(aval.shape) <= FULLY_UNROLLED


def packed_variables(jaxpr: Jaxpr, in_memory: AbstractSet[Var]) -> frozenset[Var]:
    """Variables that are computed as packs.

    They are elementwise results of what comes in vectors, from memory or from other packs, or is
    dear to compute, unless single elements are all that is read of a cheap one; and what is stored
    after being moved around in such arrays.

    Args:
      jaxpr: a prepared program.
      in_memory: variables that something needs in memory, as a whole.
    """
    wide: set[Atom] = {var for var in (*jaxpr.constvars, *jaxpr.invars) if _is_wide(var)}
    candidates: set[Var] = set()
    for eqn in jaxpr.eqns:
        lower = eqn.primitive.lower
        out = eqn.outputs[0] if eqn.outputs else None
        if isinstance(lower, Pointwise):
            assert out is not None
            if is_packable(out.aval) and (is_dear(eqn) or not wide.isdisjoint(_alike(eqn))):
                candidates.add(out)
                wide.add(out)
        elif isinstance(lower, IndexMap):
            if not wide.isdisjoint(eqn.inputs):
                wide.update(var for var in eqn.outputs if _is_wide(var))
                candidates.update(v for v in eqn.outputs if v in in_memory and is_packable(v.aval))
        elif not isinstance(lower, Reduction):
            wide.update(var for var in eqn.outputs if _is_wide(var))
    if not candidates:
        return frozenset()
    packed: set[Var] = set()
    whole: set[Atom] = set(in_memory)
    for eqn in reversed(jaxpr.eqns):
        lower = eqn.primitive.lower
        if isinstance(lower, Pointwise):
            (out,) = eqn.outputs
            alike = _alike(eqn)
            if out in candidates and (
                out in whole or is_dear(eqn) or not candidates.isdisjoint(alike)
            ):
                packed.add(out)
                whole.update(alike)
        elif isinstance(lower, IndexMap) and not whole.isdisjoint(eqn.outputs):
            packed.update(candidates.intersection(eqn.outputs))
            whole.update(eqn.inputs)
    return frozenset(packed)


def _is_wide(var: Var) -> bool:
    """Whether an array in memory has vectors to read."""
    aval = var.aval
    return type(aval) is ShapedArray and math.prod(aval.shape) >= SMALLEST_PACKED


def _alike(eqn: Equation) -> list[Atom]:
    """Operands of the shape of an elementwise result."""
    shape = eqn.outputs[0].aval.shape
    return [x for x in eqn.inputs if x.aval.shape == shape]
