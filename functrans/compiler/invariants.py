"""Work that every round of a loop would repeat, moved in front of the loop.

Here: ``with_invariants_outside``, for the scans of a program. Only what cannot fail is moved: a
loop of no rounds computes it too. Products with a transposed operand that does not change are made
products with its transpose, which is then computed once. Not here: what nests compute outside of
their loops (``compiler.nests``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from functrans.compiler.execution import execution_of
from functrans.core.analyses import remember
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import IndexMap, Pointwise
from functrans.primitives.dot import dot_general_p
from functrans.primitives.structural import transpose_p

WORTH_TRANSPOSING = 1024
"""Elements of a matrix from which a library's product is slower with its transpose."""


def with_invariants_outside(jaxpr: Jaxpr, prepare: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """The program with what does not change in a scan computed before it.

    Args:
      jaxpr: a prepared program.
      prepare: prepares the programs in it.
    """
    eqns: list[Equation] = []
    changed = False
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "scan" and eqn.params["length"]:
            parts = _split(eqn, prepare)
            if parts is not None:
                eqns.extend(parts)
                changed = True
                continue
        eqns.append(eqn)
    return replace(jaxpr, eqns=tuple(eqns), cache={}) if changed else jaxpr


def _split(eqn: Equation, prepare: Callable[[Jaxpr], Jaxpr]) -> list[Equation] | None:
    """Equations before the scan, and the scan that reads their results."""
    n_consts = eqn.params["n_consts"]
    execution_of(eqn.params["jaxpr"]).lasting = eqn.params["jaxpr"].invars[:n_consts]
    body = prepare(eqn.params["jaxpr"])
    outside: dict[Var, Atom] = dict(zip(body.invars[:n_consts], eqn.inputs[:n_consts], strict=True))
    moved: list[Equation] = []
    kept: list[Equation] = []
    for own in body.eqns:
        own = _with_plain_product(own, outside, kept, moved)
        is_known = all(isinstance(x, Literal) or x in outside for x in own.inputs)
        if is_known and may_move(own) and not any(v in body.outvars for v in own.outputs):
            moved.append(_renamed(own, outside))
            outside.update(zip(own.outputs, moved[-1].outputs, strict=True))
        else:
            kept.append(own)
    if not moved:
        return None
    read = {x for own in kept for x in own.inputs if isinstance(x, Var)}
    added = [
        var for own in moved for var in own.outputs if any(outside.get(x) is var for x in read)
    ]
    inner = {outside[x]: x for x in read if x in outside}
    consts = (*body.invars[:n_consts], *(inner[var] for var in added))
    program = replace(
        body, invars=(*consts, *body.invars[n_consts:]), eqns=tuple(kept), arg_names=(), cache={}
    )
    remember(program, prepare, program)
    inputs = (*eqn.inputs[:n_consts], *added, *eqn.inputs[n_consts:])
    params = {**eqn.params, "jaxpr": program, "n_consts": len(consts)}
    return [*moved, replace(eqn, inputs=inputs, params=params)]


def may_move(eqn: Equation) -> bool:
    """Whether an equation cannot fail, and is worth a place in memory of its own."""
    lower = eqn.primitive.lower
    if eqn.primitive is dot_general_p:
        return True
    if isinstance(lower, Pointwise):
        return lower.cost > 1 and eqn.outputs[0].aval.dtype.kind in "fc"
    is_large = eqn.outputs[0].aval.size >= WORTH_TRANSPOSING if eqn.outputs else False  # type: ignore[union-attr]  # arrays
    return isinstance(lower, IndexMap) and eqn.primitive is transpose_p and is_large


def _renamed(eqn: Equation, outside: dict[Var, Atom]) -> Equation:
    inputs = tuple([outside.get(x, x) if isinstance(x, Var) else x for x in eqn.inputs])
    return replace(eqn, inputs=inputs, outputs=tuple([Var(v.aval) for v in eqn.outputs]))


def _with_plain_product(
    eqn: Equation, outside: dict[Var, Atom], kept: list[Equation], moved: list[Equation]
) -> Equation:
    """A product ``a @ b.T`` with a ``b`` that does not change, as one with its transpose."""
    if eqn.primitive is not dot_general_p:
        return eqn
    a, b = eqn.inputs
    if not isinstance(b, Var) or b not in outside or len(a.aval.shape) != 2:
        return eqn
    shape = b.aval.shape
    is_transposed = eqn.params["contract"] == ((1,), (1,)) and not eqn.params["batch"][0]
    if len(shape) != 2 or not is_transposed or shape[0] * shape[1] < WORTH_TRANSPOSING:
        return eqn
    turned, inner = (Var(ShapedArray(shape[::-1], b.aval.dtype)) for _ in range(2))
    moved.append(Equation(transpose_p, (outside[b],), {"axes": (1, 0)}, (turned,), eqn.source))
    outside[inner] = turned
    return replace(eqn, inputs=(a, inner), params={**eqn.params, "contract": ((1,), (0,))})
