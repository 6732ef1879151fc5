"""Programs with collectives, cut into phases between which shards exchange values.

Here: ``cut``. Not here: how phases run (``exchange``).

A phase holds what can be computed before the next exchange. Collectives that do not depend on each
other share one: an equation belongs to the earliest phase in which its inputs are known.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.control.checkpoint import checkpoint_p
from functrans.control.collectives import all_gather_p, axis_index_p, pmax_p, pmin_p, psum_p
from functrans.control.custom_calls import custom_jvp_p, custom_vjp_p
from functrans.control.inline import inline_calls
from functrans.control.loops import scan_p
from functrans.control.native import jit_p
from functrans.control.while_loop import while_p
from functrans.core.avals import Tape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.errors import UnsupportedOperationError
from functrans.passes.batch import named_axes
from functrans.passes.programs import derivation
from functrans.passes.staging import source_text
from functrans.records import dataclass, replace

CALLS = (jit_p, custom_jvp_p, custom_vjp_p, checkpoint_p)
COLLECTIVES = (psum_p, pmax_p, pmin_p, all_gather_p)


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """A collective or a loop that holds some, and the variables of its operands."""

    eqn: Equation
    inputs: tuple[Var, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What a shard does between two exchanges.

    Attributes:
      program: ``(number of the shard, *inputs) -> outputs``.
      inputs: variables of the whole program.
      outputs: likewise.
      exchanges: what follows.
    """

    program: Jaxpr
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Phases:
    """A program as phases; the variables of its arguments and of its results."""

    invars: tuple[Var, ...]
    phases: tuple[Phase, ...]
    results: tuple[Var, ...]


@derivation
def cut(jaxpr: Jaxpr, axis_name: str) -> Phases:
    """The phases of a program.

    Raises:
      UnsupportedOperationError: a collective is in a branch, or reverse mode goes through a loop
        in a way that needs tapes in a phase.
    """
    program = _flat(jaxpr, axis_name)
    number: Var | None = None
    replaced: dict[Var, Var] = {}
    levels: dict[Var, int] = dict.fromkeys((*program.invars, *program.constvars), 0)
    plain: list[list[Equation]] = [[]]
    exchanges: list[list[Equation]] = [[]]
    for given in program.eqns:
        eqn = given
        if any(isinstance(atom, Var) and atom in replaced for atom in eqn.inputs):
            eqn = replace(eqn, inputs=tuple(_atoms(eqn.inputs, replaced)))
        if eqn.primitive is axis_index_p and eqn.params["axis_name"] == axis_name:
            if number is None:
                number = eqn.outputs[0]
                levels[number] = 0
            replaced[eqn.outputs[0]] = number
            continue
        level = max((levels[v] for v in eqn.inputs if isinstance(v, Var)), default=0)
        is_exchange = _is_exchange(eqn, axis_name)
        (exchanges if is_exchange else plain)[level].append(eqn)
        if is_exchange and level + 1 == len(plain):
            plain.append([])
            exchanges.append([])
        levels.update(dict.fromkeys(eqn.outputs, level + is_exchange))
    outvars = _atoms(program.outvars, replaced)
    return _phases(program, outvars, plain, exchanges, number)


def _flat(jaxpr: Jaxpr, axis_name: str) -> Jaxpr:
    """The program with those calls inlined that hold collectives."""
    program = jaxpr
    for _ in range(100):
        held = {
            eqn.primitive
            for eqn in program.eqns
            if eqn.primitive in CALLS and axis_name in _axes_of(eqn)
        }
        if not held:
            return program
        for primitive in held:
            program = inline_calls(program, primitive)
    raise UnsupportedOperationError(
        f"shard_map: calls in {jaxpr.name} that hold collectives carry annotations"
    )


def _axes_of(eqn: Equation) -> frozenset[str]:
    return frozenset().union(*map(named_axes, subjaxprs(eqn.params)))


def _is_exchange(eqn: Equation, axis_name: str) -> bool:
    if eqn.primitive in COLLECTIVES:
        return bool(eqn.params["axis_name"] == axis_name)
    if axis_name not in _axes_of(eqn):
        return False
    if eqn.primitive not in (scan_p, while_p):
        raise UnsupportedOperationError(
            f"shard_map: collectives over {axis_name!r} are inside a {eqn.primitive.name}"
            f"{source_text(eqn)}; they may be in scan, fori_loop and while_loop: call them before "
            "a branch"
        )
    return True


def _atoms(atoms: Sequence[Atom], replaced: dict[Var, Var]) -> list[Atom]:
    return [replaced.get(atom, atom) if isinstance(atom, Var) else atom for atom in atoms]


def _phases(
    program: Jaxpr,
    outvars: Sequence[Atom],
    plain: Sequence[Sequence[Equation]],
    exchanges: Sequence[Sequence[Equation]],
    number: Var | None,
) -> Phases:
    own_values = {*program.constvars, number}
    """What every phase has by itself."""
    places: dict[Var, int] = {}
    """Phases in which variables are computed."""
    for level, eqns in enumerate(plain):
        places.update((v, level) for eqn in eqns for v in eqn.outputs)
    asked: list[dict[Var, None]] = [{} for _ in plain]
    named: list[list[tuple[Var, Atom]]] = [[] for _ in plain]
    """New variables for atoms that are needed outside of a phase as they are."""

    def outside(atom: Atom, level: int) -> Var:
        if isinstance(atom, Literal) or atom in own_values:
            named[level].append((Var(atom.aval), atom))
            return named[level][-1][0]
        if atom in places:
            asked[places[atom]][atom] = None
        return atom

    made = [
        tuple(
            Exchange(eqn, tuple(outside(atom, level) for atom in eqn.inputs))
            for eqn in exchanges[level]
        )
        for level in range(len(plain))
    ]
    last = len(plain) - 1
    results = tuple(outside(atom, last) for atom in outvars)
    needs = []
    for level, eqns in enumerate(plain):
        used = dict.fromkeys(v for eqn in eqns for v in eqn.inputs if isinstance(v, Var))
        needed = [v for v in used if v not in own_values and places.get(v) != level]
        for v in needed:
            if v in places:
                asked[places[v]][v] = None
        needs.append(needed)
    phases = []
    first = Var(number.aval) if number is not None else Var(Literal(0).aval)
    index = number or first
    for level, eqns in enumerate(plain):
        outputs = [*asked[level], *(var for var, _ in named[level])]
        atoms = [*asked[level], *(atom for _, atom in named[level])]
        read = {*atoms, *(v for eqn in eqns for v in eqn.inputs)}
        constants = [
            (var, value)
            for var, value in zip(program.constvars, program.consts, strict=True)
            if var in read
        ]
        own = replace(
            program,
            constvars=tuple(var for var, _ in constants),
            consts=tuple(value for _, value in constants),
            invars=(index, *needs[level]),
            arg_names=(),
            eqns=tuple(eqns),
            outvars=tuple(atoms),
            annotations={},
            cache={},
        )
        if any(type(v.aval) is Tape for v in (*needs[level], *outputs)):
            raise UnsupportedOperationError(
                f"shard_map: the derivative of {program.name} keeps values of a while_loop with "
                "collectives in a way that is not supported; use a scan of fixed length"
            )
        phases.append(Phase(own, tuple(needs[level]), tuple(outputs), made[level]))
    return Phases(program.invars, tuple(phases), results)
