"""Rounds of a loop that know nothing of each other, on several threads.

Here: ``are_independent``, which loops these are, and ``run_rounds``, which writes a range of rounds
as a function and calls it for all ranges. Not here: loops within one operation
(``compiler.parallel``), what is written for a round (``compiler.blocks``).

The ranges depend on sizes alone, each round is computed by one thread, and the error is that of the
first round that fails: results do not depend on the number of threads. Between two regions of
threads, some tenths of a second each, the caller looks at signals.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.compiler.functions import (
    NO_STATUS,
    Passed,
    ProgramFunction,
    RoundsFunction,
    status_of_rounds,
)
from functrans.compiler.parallel import CHUNKS, WORTH_CHUNKS
from functrans.compiler.prepare import prepare
from functrans.compiler.storage import Stored
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.lowering import Structured
from functrans.emitter.chunks import run_chunks
from functrans.emitter.types import I64, Value
from functrans.passes.work import program_work

MANY_ROUNDS = 16
"""Rounds from which the body of a loop is worth to be optimised."""
FEWEST_ROUNDS = 8
"""So many rounds are at least shared; fewer, if they are long, have loops that can be."""
WORK_PER_REGION = 3e8
"""Work of the rounds between two looks at signals, in additions."""
LARGEST_ROUND_BYTES = 1 << 26
"""What the variables of a round may take, of which each thread has its own."""


def are_independent(program: object, jaxpr: Jaxpr, length: int | None, carries: int) -> bool:
    """Whether rounds of a program may run on threads, and are worth it.

    Args:
      program: the function that the loop is written into.
      jaxpr: a round, prepared.
      length: number of rounds, if that is known.
      carries: how many values go from one round to the next.
    """
    if carries or length is None or length < FEWEST_ROUNDS:
        return False
    if type(program) is not ProgramFunction or program_work(jaxpr) * length < WORTH_CHUNKS:
        return False
    arrays = [*jaxpr.invars, *jaxpr.outvars, *(v for eqn in jaxpr.eqns for v in eqn.outputs)]
    avals: list[Any] = [atom.aval for atom in arrays]
    if not all(type(aval) is ShapedArray for aval in avals):
        return False
    size_bytes = sum(aval.size * aval.dtype.itemsize for aval in avals)
    return size_bytes <= LARGEST_ROUND_BYTES and _may_share(jaxpr)


def _may_share(jaxpr: Jaxpr) -> bool:
    """Whether nothing in a program needs the thread that called it, nor may last for ever."""
    return all(map(_is_free, jaxpr.eqns))


def _is_free(eqn: Equation) -> bool:
    lower: Any = eqn.primitive.lower
    if getattr(lower, "one_thread", False) or eqn.primitive.name == "while":
        return False
    if isinstance(lower, Structured) and lower.kind == "entries":
        return False
    return all(_may_share(prepare(inner)) for inner in subjaxprs(eqn.params))


def run_rounds(
    program: ProgramFunction,
    length: int,
    work: float,
    arrays: Sequence[Stored],
    write: Callable[[RoundsFunction, list[Stored], Value], None],
) -> None:
    """Run all rounds of a loop on as many threads as there may be.

    Args:
      program: the function that the loop is in.
      length: number of rounds.
      work: what one of them takes, in additions.
      arrays: what rounds read and write.
      write: writes a round into a function, given the arrays in it and the number of the round.
    """
    b = program.b
    per_region = min(length, max(CHUNKS, int(WORK_PER_REGION / max(work, 1.0))))
    per_range = -(-per_region // CHUNKS)
    ranges = -(-per_region // per_range)
    per_region = per_range * ranges
    first_failed = b.alloca(I64, align=8)
    start = b.alloca(I64, align=8)
    name = f"rounds{program.module.next_number()}"
    function = RoundsFunction(program, name)
    passed = Passed(b, function.b, [first_failed, start])
    inner = [passed.stored(array) for array in arrays]
    record = passed.record(b.arguments[-1])
    _write_range(function, inner, per_range, length, write)
    b.store(b.index(NO_STATUS), first_failed, 8)
    b.store(b.index(0), start, 8)
    if per_region >= length:
        run_chunks(b, name, record, ranges)
    else:
        with b.loop(b.index(0), b.index(length), per_region, hint="region") as number:
            program.poll_when(b.icmp("ne", number, b.index(0)))
            b.store(number, start, 8)
            run_chunks(b, name, record, ranges)
    status = status_of_rounds(b, b.load(I64, first_failed, 8))
    program.leave_when(b.icmp("ne", status, b.const(status.type, 0)), status)


def _write_range(
    function: RoundsFunction,
    arrays: list[Stored],
    per_range: int,
    length: int,
    write: Callable[[RoundsFunction, list[Stored], Value], None],
) -> None:
    b = function.b
    b.load_first("%start", 64)
    region = b.load(I64, Value("%start", b.arguments[0].type), 8)
    start = b.add(region, b.mul(b.arguments[1], b.index(per_range)))
    stop = b.intrinsic("smin", b.add(start, b.index(per_range)), b.index(length))
    with b.loop(start, stop, hint="round") as number:
        function.number = number
        write(function, arrays, number)
    function.finish()
    function.release()
