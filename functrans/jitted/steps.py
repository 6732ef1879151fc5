"""The program of a path, cut into steps between which guards are compared.

Here: ``plan_steps``. Not here: where guards come from (``jitted.guards``), who runs the steps
(``jitted.specialize``).

Nothing after a guard may be seen by the user if the guard fails. Most equations cannot be seen:
they neither fail nor take long, so that they run ahead of the guards, in one program with what
comes before. An equation that may raise or run for ever (a decomposition, an index, a loop without
a bound, a callback), or that takes longer than a call of another program, waits for the guards
before it: the program is cut there into steps, and guards are compared between them. Effects wait
for all guards of the path, so that they happen once, in order, and for no path but the one that is
taken.

Guards leave a step as one array of integers, which is compared with bytes; truths, of which loops
have many, are packed as bits, so that a step with a hundred of them has two integers.

Steps and not a nest of ``cond``, each in the branch of the one before where its guard holds: a nest
takes the same time where all guards hold (40 of them: 1.3 us both) and saves 0.8 us where the first
fails, but is as deep as there are guards, so that a loop of 100 rounds would not fit into Python's
stack, nor be made a loop again (``rerolling.rewrite``).

Layer: ``jitted``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.jitted.guards import Guard, guard_p
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.passes.work import equation_work
from functrans.primitives.elementwise import add_p, multiply_p
from functrans.primitives.movement import concatenate
from functrans.records import dataclass, replace

_MAX_SPECULATED_WORK = 20_000
"""Work (``passes.work``) of an equation that is not worth starting before a guard is known: about
10 us, some calls of a program."""
_MAX_BITS = 62


@dataclass(frozen=True, slots=True)
class _Place:
    """Where guards are among the integers of a step.

    Attributes:
      numbers: the guards: one, or several truths, the first of them in the highest bit.
      part: their integers.
    """

    numbers: tuple[int, ...]
    part: slice


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A program that runs when all guards before it hold.

    Attributes:
      jaxpr: ``inputs -> (integers of the guards, *outputs)``, without the first if there are none.
      inputs: arguments of the path, or outputs of earlier steps.
      outputs: what later steps, or the results, need.
      expected: what the integers are on this path; ``None`` without guards.
      places: where the guards are among them.
    """

    jaxpr: Jaxpr
    inputs: tuple[Var, ...]
    outputs: tuple[Atom, ...]
    expected: bytes | None
    places: tuple[_Place, ...]

    def first_difference(self, integers: np.ndarray) -> tuple[int, bytes]:
        """The first guard that does not hold, by its number, and its integers."""
        assert self.expected is not None
        expected = np.frombuffer(self.expected, np.int64)
        at = int((integers != expected).argmax())
        place = next(place for place in self.places if at < place.part.stop)
        if len(place.numbers) == 1:
            return place.numbers[0], integers[place.part].tobytes()
        given = int(integers[at])
        bit = (given ^ int(expected[at])).bit_length() - 1
        number = place.numbers[len(place.numbers) - 1 - bit]
        return number, np.int64(given >> bit & 1).tobytes()


_AFTER_ALL = 1 << 40


def plan_steps(jaxpr: Jaxpr, guards: Sequence[Guard], with_results: bool) -> tuple[Step, ...]:
    """Cut the program of a path into steps.

    Args:
      jaxpr: the program, with equations ``guard``, without constants.
      guards: its guards.
      with_results: whether the results are computed, and effects performed, or guards only.
    """
    results = jaxpr.outvars if with_results else ()
    levels = _levels(jaxpr, results)
    steps: list[Step] = []
    later: set[Any] = set(results)
    asked = len(guards)
    for number in sorted(levels, reverse=True):
        eqns = levels[number]
        n_asked = sum(eqn.primitive is guard_p for eqn in eqns)
        asked -= n_asked  # a later step has later guards
        made = {var: None for eqn in eqns for var in eqn.outputs}
        read = [atom for eqn in eqns for atom in eqn.inputs]
        if len(levels) == 1 and with_results:  # all there is, in the order of arguments and results
            inputs, outputs = jaxpr.invars, results
        else:
            inputs = tuple(dict.fromkeys([a for a in read if type(a) is Var and a not in made]))
            outputs = tuple([var for var in made if var in later])
        part = replace(
            jaxpr, invars=inputs, eqns=tuple(eqns), outvars=outputs, arg_names=(), cache={}
        )
        steps.append(_step(part, range(asked, asked + n_asked), guards))
        later.update(read)
    return tuple(reversed(steps))


def _levels(jaxpr: Jaxpr, results: Sequence[Atom]) -> dict[int, list[Equation]]:
    """The equations that are needed, by the step that they run in."""
    level: dict[Any, int] = {}
    placed: list[tuple[int, Equation]] = []
    decided = -1  # the step in which the guards so far are known
    for eqn in jaxpr.eqns:
        own = max([level.get(atom, 0) for atom in eqn.inputs], default=0)
        if eqn.primitive is guard_p:
            own = decided = max(decided, own)
        elif eqn.effects:
            own = _AFTER_ALL
        elif decided >= 0 and own <= decided and _waits(eqn):
            own = decided + 1
        level.update(dict.fromkeys(eqn.outputs, own))
        placed.append((own, eqn))
    live: set[Any] = set(results)
    levels: dict[int, list[Equation]] = {}
    for own, eqn in reversed(placed):
        is_kept = eqn.effects and (bool(results) or eqn.primitive is guard_p)
        if is_kept or any(var in live for var in eqn.outputs):
            levels.setdefault(min(own, decided + 1), []).append(eqn)
            live.update(eqn.inputs)
    for eqns in levels.values():
        eqns.reverse()
    return levels


def _step(part: Jaxpr, numbers: Sequence[int], guards: Sequence[Guard]) -> Step:
    """The step of a program with equations ``guard``, whose guards have these numbers."""
    if not numbers:
        return Step(simplify(part), part.invars, part.outvars, None, ())
    groups = _grouped(numbers, guards)
    first = {group[0] for group in groups}
    remaining = iter(numbers)
    integers: list[Atom] = []
    eqns: list[Equation] = []
    for eqn in part.eqns:
        if eqn.primitive is not guard_p:
            eqns.append(eqn)
            continue
        (asked,) = eqn.inputs
        if next(remaining) in first:
            integers.append(asked)
            continue
        doubled, packed = Var(asked.aval), Var(asked.aval)
        eqns.append(Equation(multiply_p, (integers[-1], Literal(2)), {}, (doubled,), eqn.source))
        eqns.append(Equation(add_p, (doubled, asked), {}, (packed,), eqn.source))
        integers[-1] = packed
    program = replace(part, eqns=tuple(eqns), outvars=(*integers, *part.outvars), cache={})
    n = len(integers)

    def joined(*args: object) -> list[Any]:
        outs = evaluate(program, args)
        return [concatenate(outs[:n]) if n > 1 else outs[0], *outs[n:]]

    places: list[_Place] = []
    expected: list[np.ndarray] = []
    start = 0
    for group in groups:
        own = [np.frombuffer(guards[i].outcome, np.int64) for i in group]
        value = own[0]
        for bit in own[1:]:
            value = value * 2 + bit
        places.append(_Place(tuple(group), slice(start, start + len(value))))
        expected.append(value)
        start += len(value)
    staged = stage(joined, part.in_avals, f"a step of {part.name}", name=part.name)
    wanted = np.concatenate(expected).tobytes()
    return Step(simplify(staged), part.invars, part.outvars, wanted, tuple(places))


def _grouped(numbers: Sequence[int], guards: Sequence[Guard]) -> list[list[int]]:
    """Guards that follow one another and are packed together."""
    groups: list[list[int]] = []
    for i in numbers:
        is_bit = guards[i].what == "bool()"
        last = groups[-1] if groups else []
        if last and is_bit and guards[last[0]].what == "bool()" and len(last) < _MAX_BITS:
            last.append(i)
        else:
            groups.append([i])
    return groups


def _waits(eqn: Equation) -> bool:
    """Whether an equation runs only when the guards before it hold."""
    return not _is_total(eqn) or equation_work(eqn) > _MAX_SPECULATED_WORK


_POWERS = frozenset({"power", "torch_power"})
_TOTAL = frozenset(
    {
        "overwritten", "logsumexp", "dynamic_slice", "dynamic_embed", "dynamic_update_slice",
        "argmax", "argmin", "linear_recurrence", "cumsum", "cumprod", "cummax", "cummin",
        "cumlogsumexp", "sort", "argsort", "top_k", "lexsort", "searchsorted", "argpartition",
        "dot_general", "conv_general", "fft_c2c", "rfft", "irfft", "threefry2x32", "jit", "cond",
        "scan", "checkpoint", "custom_jvp", "custom_vjp", "custom_vmap",
    }
)  # fmt: skip
"""Primitives that neither fail nor run for ever, if the programs in their parameters do not."""


def _is_total(eqn: Equation) -> bool:
    """Whether an equation gives a result for all values of its operands."""
    primitive = eqn.primitive
    if primitive.effects:
        return False
    if primitive.name in _POWERS:
        return all(_is_floating(var.aval) for var in eqn.outputs)
    is_plain = primitive.elementwise is not None or isinstance(
        primitive.lower, (Pointwise, IndexMap, Reduction)
    )
    if not is_plain and primitive.name not in _TOTAL:
        return False
    return all(_is_total(inner) for sub in subjaxprs(eqn.params) for inner in sub.eqns)


def _is_floating(aval: Any) -> bool:
    return type(aval) is ShapedArray and aval.dtype.kind in "fc"
