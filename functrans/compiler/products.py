"""Products over a few terms, written out where they are read.

Here: ``with_products_inline``. A product such as ``[26, 22, 3, 4] @ [4, 10000]`` has many more
elements than its operands; what it costs is the memory of its result. Where one elementwise
equation or one sum reads it, or one read at indices of a part of it (which ``compiler.gathers``
moves in front of it), its few terms are elementwise equations, too, which share the loops of what
reads them. They are fused multiplications and additions in the order of the summed axes,
beginning with 0, as in the loops of ``primitives.native.dot``, with the same bits.

Not here: other products (``primitives.native``), the loops (``compiler.schedule``).

Layer: ``compiler``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

from functrans.compiler.equations import equations_of
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.core.values import Array
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import multiply_add_p
from functrans.primitives.gather_scatter import gather_p
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import transpose, transpose_p

MOST_TERMS = 4
"""Of a product that is written out: their number is how often each element is read again."""
SMALLEST = 4096
"""Elements of a result whose memory is worth saving."""


def with_products_inline(jaxpr: Jaxpr) -> Jaxpr:
    """The program with elementwise equations for products over a few terms.

    Args:
      jaxpr: a program without calls.
    """
    if not any(_is_small(eqn) for eqn in jaxpr.eqns):
        return jaxpr
    readers: dict[Var, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        for atom in eqn.inputs:
            if isinstance(atom, Var):
                readers.setdefault(atom, []).append(eqn)
    given = Counter(jaxpr.outvars)

    def is_inlined(eqn: Equation) -> bool:
        (out,) = eqn.outputs
        found = readers.get(out, [])
        if given[out] or len(found) != 1:
            return False
        (reader,) = found
        lower = reader.primitive.lower
        if isinstance(lower, IndexMap):
            return reader.primitive is transpose_p and is_inlined(reader)
        if reader.primitive is gather_p:  # which moves in front of it (``compiler.gathers``)
            return reader.outputs[0].aval.size < out.aval.size  # type: ignore[union-attr]  # no tapes
        return isinstance(lower, Pointwise | Reduction)

    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if _is_small(eqn) and is_inlined(eqn):
            eqns.extend(_terms(eqn))
        else:
            eqns.append(eqn)
    if len(eqns) == len(jaxpr.eqns):
        return jaxpr
    return replace(jaxpr, eqns=tuple(eqns), cache={})


def _is_small(eqn: Equation) -> bool:
    """Whether an equation is a product over a few terms, larger than what it is made from."""
    if eqn.primitive is not dot_general_p:
        return False
    aval: Any = eqn.outputs[0].aval
    if aval.dtype.char not in "fd" or any(x.aval.dtype != aval.dtype for x in eqn.inputs):
        return False
    avals: Any = [x.aval for x in eqn.inputs]
    a, b = avals
    count = math.prod(a.shape[axis] for axis in eqn.params["contract"][0])
    largest = max(a.size, b.size)
    return 0 < count <= MOST_TERMS and aval.size >= SMALLEST and aval.size >= largest


def _terms(eqn: Equation) -> tuple[Equation, ...]:
    """Elementwise equations with the result of a product."""
    contract, batch = eqn.params["contract"], eqn.params["batch"]
    n_batch = len(batch[0])

    def expanded(a: Array, b: Array) -> list[Array]:
        operands = []
        free = []
        for x, summed, lead in zip((a, b), contract, batch, strict=True):
            own = [i for i in range(len(x.shape)) if i not in summed and i not in lead]
            free.append(len(own))
            operands.append(transpose(x, (*lead, *own, *summed)))
        rows, columns = operands
        kept = (slice(None),) * n_batch
        full, new = (slice(None),), (None,)
        total: Any = 0.0
        extents = [a.shape[axis] for axis in contract[0]]
        for places in itertools.product(*map(range, extents)):
            left = BasicIndex((*kept, *full * free[0], *places, *new * free[1]))
            right = BasicIndex((*kept, *new * free[0], *full * free[1], *places))
            (total,) = bind(
                multiply_add_p, slice_index(rows, left), slice_index(columns, right), total
            )
        return [total]

    return equations_of(expanded, eqn.inputs, eqn.outputs, eqn.source)[0]
