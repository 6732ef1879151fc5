"""Arrays of many small parts, which are written to their places one by one.

A chain of updates of an array is fused into one loop, cut where parts begin and end; many small
parts are written in place instead, as they are in Python. So are parts that are added: the gradient
of a function that reads ``x[0]``, ``x[1]``, ... is a sum of as many arrays, each zero but at one
place. Fused into one loop it takes quadratic time to run, and more to compile.

A large result that is joined from others, as the entries of a matrix block by block, is no loop
either: its parts are computed in their places.

Here: ``with_parts_in_place``, ``updates_of_parts``, ``joined_results``. Not here: who has which
memory (``compiler.bodies``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from functrans.compiler.axes import FULLY_UNROLLED
from functrans.compiler.schedule import is_view
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.primitives.elementwise import add_p
from functrans.primitives.movement import concatenate_p
from functrans.primitives.slicing import embed_p, slice_p, slice_update_p
from functrans.records import dataclass, replace

_WORTH_PLACING = 4096
"""Elements of a joined array from which its parts are computed in place."""
_MANY = 8
"""Parts from which it is worth it, and how many times smaller they are than the array."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A change of a part of an array.

    Attributes:
      eqn: a sum of the array and zeros with the part in them, or an update.
      total: the array.
      part: zeros with the part in them, or what an update writes.
    """

    eqn: Equation
    total: Atom
    part: Atom

    @property
    def is_sum(self) -> bool:
        """Whether the part is added."""
        return self.eqn.primitive is add_p


def with_parts_in_place(jaxpr: Jaxpr) -> Jaxpr:
    """The program with updates of an array in place of sums of many of its parts.

    Sums have the same bits: parts are added in the same order, to an array without ``-0.0``.

    Args:
      jaxpr: a program, whose equations are in order.
    """
    makers: dict[Atom, Equation] = {
        eqn.outputs[0]: eqn for eqn in jaxpr.eqns if len(eqn.outputs) == 1
    }
    chains = _chains(jaxpr, makers)
    if not chains:
        return jaxpr
    links = {link.eqn.outputs[0]: link for chain in chains for link in chain}
    firsts = {chain[0].eqn.outputs[0] for chain in chains}
    eqns: list[Equation] = []

    def add(eqn: Equation, a: Atom, b: Atom) -> Var:
        out = Var(a.aval.strong())
        eqns.append(replace(eqn, primitive=add_p, inputs=(a, b), params={}, outputs=(out,)))
        return out

    for eqn in jaxpr.eqns:
        link = links.get(eqn.outputs[0]) if len(eqn.outputs) == 1 else None
        if link is None:
            eqns.append(eqn)
            continue
        zero = Literal(0 if eqn.outputs[0].aval.dtype.kind in "iu" else 0.0)
        total = link.total
        if eqn.outputs[0] in firsts:
            total = add(eqn, total, zero)
        if not link.is_sum:
            part: Atom
            if isinstance(link.part, Literal):
                part = link.part if link.part.value else zero
            else:
                part = add(eqn, link.part, zero)
            eqns.append(replace(eqn, inputs=(total, part)))
            continue
        made = makers[link.part]
        params, (own,) = {"index": made.params["index"]}, made.inputs
        before = Var(own.aval.strong())
        eqns.append(
            replace(eqn, primitive=slice_p, inputs=(total,), params=params, outputs=(before,))
        )
        inputs = (total, add(eqn, before, own))
        eqns.append(replace(eqn, primitive=slice_update_p, inputs=inputs, params=params))
    return replace(jaxpr, eqns=tuple(eqns), cache={})


def _chains(jaxpr: Jaxpr, makers: Mapping[Atom, Equation]) -> list[list[_Link]]:
    """Changes of one array after the other, which add many small parts."""
    uses = Counter(atom for atom in jaxpr.outvars if isinstance(atom, Var))
    for eqn in jaxpr.eqns:
        if eqn.primitive is not slice_p:
            uses.update(atom for atom in eqn.inputs if isinstance(atom, Var))
    open_chains: dict[Atom, list[_Link]] = {}
    chains: list[list[_Link]] = []
    for eqn in jaxpr.eqns:
        link = _link(eqn, makers)
        if link is None:
            continue
        chain = None
        if isinstance(link.total, Var) and uses[link.total] == 1:
            chain = open_chains.pop(link.total, None)
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(link)
        open_chains[eqn.outputs[0]] = chain
    return [chain for chain in map(_of_sums, chains) if _is_worth_it(chain, makers)]


def _of_sums(chain: list[_Link]) -> list[_Link]:
    """The part of a chain from its first sum to the last one."""
    sums = [number for number, link in enumerate(chain) if link.is_sum]
    return chain[sums[0] : sums[-1] + 1] if sums else []


def _link(eqn: Equation, makers: Mapping[Atom, Equation]) -> _Link | None:
    """The change that an equation is; ``None`` of others."""
    if eqn.primitive is slice_update_p:
        return _Link(eqn, *eqn.inputs)
    if eqn.primitive is not add_p or eqn.outputs[0].aval.dtype.kind == "b":
        return None
    a, b = eqn.inputs
    if any(isinstance(x, Literal) or x.aval != eqn.outputs[0].aval for x in (a, b)):
        return None
    for total, part in ((a, b), (b, a)):  # the total of two parts is the first
        made = makers.get(part)
        if made is not None and made.primitive is embed_p:
            return _Link(eqn, total, part)
    return None


def _is_worth_it(chain: list[_Link], makers: Mapping[Atom, Equation]) -> bool:
    parts = [makers[link.part].inputs[0] if link.is_sum else link.part for link in chain]
    return bool(chain) and _are_many(parts, chain[0].eqn.outputs[0])


def _are_many(parts: Sequence[Atom], whole: Var) -> bool:
    """Whether an array has many parts, and they are small."""
    return len(parts) >= _MANY and sum(map(_size, parts)) * _MANY <= _size(whole) * len(parts)


def _size(atom: Atom) -> int:
    size: int = atom.aval.size  # type: ignore[union-attr]  # of arrays
    return size


def updates_of_parts(jaxpr: Jaxpr) -> list[Var]:
    """Results of updates of many small parts of one array, one after the other.

    Args:
      jaxpr: a prepared program.
    """
    chains: dict[Atom, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is slice_update_p and _size(eqn.outputs[0]) > FULLY_UNROLLED:
            chains[eqn.outputs[0]] = chain = chains.pop(eqn.inputs[0], [])
            chain.append(eqn)
    return [
        eqn.outputs[0]
        for chain in chains.values()
        if _are_many([eqn.inputs[1] for eqn in chain], chain[0].outputs[0])
        for eqn in chain
    ]


def is_joined(eqn: Equation) -> bool:
    """Whether an equation joins whole large arrays of its own dtype one after the other."""
    if eqn.primitive is not concatenate_p:
        return False
    aval = eqn.outputs[0].aval
    return (
        eqn.params["axis"] == 0
        and _size(eqn.outputs[0]) >= _WORTH_PLACING
        and all(isinstance(x, Var) and x.aval.dtype == aval.dtype for x in eqn.inputs)
    )


def joined_results(jaxpr: Jaxpr) -> list[Var]:
    """Results joined from arrays of which one is stored anyhow: all are computed in their places.

    Args:
      jaxpr: a prepared program.
    """
    makers: dict[Atom, Equation] = {
        eqn.outputs[0]: eqn for eqn in jaxpr.eqns if len(eqn.outputs) == 1
    }
    found = []
    for out in jaxpr.outvars:
        eqn = makers.get(out)
        if eqn is not None and is_joined(eqn) and any(_is_stored(x, makers) for x in eqn.inputs):
            found.append(eqn.outputs[0])
    return found


def _is_stored(atom: Atom, makers: Mapping[Atom, Equation]) -> bool:
    """Whether an array is other memory seen with other extents: its elements are in no loop."""
    eqn = makers.get(atom)
    return eqn is not None and is_view(eqn)
