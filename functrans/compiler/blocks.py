"""Control flow as instructions: loops and branches with programs in them.

Here: ``write_scan``, ``write_while`` and so on, one per kind of ``core.lowering.Structured``
(``compiler.programs`` has the table). Values that a loop carries live in registers when they are
small, else in two places in turn, so that no round copies them, or in one place where the body
reads each element before it writes it; entries of scanned operands and results are read and written
in place.

Loops look at pending signals, so that Ctrl-C ends them: after every chunk of ``WORK_PER_POLL``,
some milliseconds, of which the look is a part in ten thousand. A loop that has less to do in all
does not look; if it is itself in a loop, that one does.

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from functrans.compiler.bodies import BodyWriter
from functrans.compiler.functions import RoundsFunction
from functrans.compiler.packs import pieces
from functrans.compiler.places import is_small
from functrans.compiler.prepare import entry_program, prepare
from functrans.compiler.rounds import MANY_ROUNDS, are_independent, run_rounds
from functrans.compiler.storage import Stored
from functrans.core.avals import Tape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.emitter.numbers import Number
from functrans.emitter.types import I64, POINTER, Value
from functrans.passes.work import program_work

WORK_PER_POLL = 1e7
"""Work between two looks at pending signals, in additions."""
_MOST_ROUNDS = 1 << 20
_MOST_ROUNDS_OF_WHILE = 256


def _block_env(w: BodyWriter, jaxpr: Jaxpr, arguments: Sequence[Stored]) -> dict[Var, Stored]:
    """What a block knows at its start: its arguments and the constants of its program."""
    env = dict(zip(jaxpr.invars, arguments, strict=True))
    for var, const in zip(jaxpr.constvars, jaxpr.consts, strict=True):
        env[var] = w.whole.constant_array(const)
    return env


class Carried:
    """A value that goes from one round of a loop to the next.

    A small one has a slot on the stack, which the optimiser turns into registers, of several
    elements each if the loop's body computes it so; a large one is
    read from one place and written to another, and the two change roles; or it stays where it is,
    when the loop's body reads each element just before it writes it.
    """

    def __init__(
        self, w: BodyWriter, start: Stored, out: Var, in_place: bool = False, packed: bool = False
    ) -> None:
        self.w = w
        self.is_small = is_small(out.aval)
        self.in_place = in_place and not self.is_small
        self.result = w.place_in_memory(out)
        b = w.b
        assert self.result.pointer is not None
        self.start = start
        self.pieces: Sequence[tuple[int, int]] = ()
        if self.is_small:
            self.slot = b.alloca_bytes(max(self.result.size_bytes, 1))
            count = self.result.size
            self.pieces = pieces(count) if packed else [(flat, 1) for flat in range(count)]
            for flat, lanes in self.pieces:
                self._store_element(flat, w.element(start, flat, lanes))
        elif self.in_place:
            assert start.pointer is not None
            if start.pointer.text != self.result.pointer.text:
                size = w.b.index(self.result.size_bytes)
                w.b.move_memory(start.pointer, self.result.pointer, size)
        else:
            assert start.pointer is not None
            self.other = w.workspace(self.result.size_bytes)
            self.current = b.alloca(POINTER, align=8)
            self.following = b.alloca(POINTER, align=8)
            b.store(start.pointer, self.current)
            b.store(self.result.pointer, self.following)
        self.next_place: Value | None = None

    def _store_element(self, flat: int, number: object) -> None:
        offset = self.w.b.index(flat * self.result.dtype.itemsize)
        self.w.e.store(number, self.w.b.offset(self.slot, offset))  # type: ignore[arg-type]  # a Number

    def begin_round(self) -> Stored:
        """The value at the start of a round."""
        b = self.w.b
        if self.in_place:
            self.next_place = self.result.pointer
            return Stored(self.result.shape, self.result.dtype, self.result.pointer)
        if not self.is_small:
            pointer = b.load(POINTER, self.current, 8)
            self.next_place = b.load(POINTER, self.following, 8)
            return Stored(self.result.shape, self.result.dtype, pointer)
        stored = Stored(self.result.shape, self.result.dtype, self.slot)
        stored.elements = self._registers()
        return stored

    def _registers(self) -> dict[int, Number]:
        """A small value, read from its slot."""
        slot = Stored(self.result.shape, self.result.dtype, self.slot)
        return {flat: self.w.element(slot, flat, lanes) for flat, lanes in self.pieces}

    def end_round(self, value: Stored) -> None:
        """Take over the value for the next round."""
        b = self.w.b
        if self.is_small:
            for flat, lanes in self.pieces:
                self._store_element(flat, self.w.element(value, flat, lanes))
            return
        if self.in_place:
            return
        assert self.next_place is not None
        assert self.result.pointer is not None
        b.store(self.next_place, self.current)
        is_result = b.icmp("eq", self.next_place, self.result.pointer)
        b.store(b.select(is_result, self.other, self.result.pointer), self.following)

    def finish(self) -> None:
        """Make the last value the result."""
        w, b = self.w, self.w.b
        if self.is_small:
            self.result.elements = self._registers()
            for flat, number in self.result.elements.items():
                assert self.result.pointer is not None
                offset = b.index(flat * self.result.dtype.itemsize)
                w.e.store(number, b.offset(self.result.pointer, offset))
            return
        if self.in_place:
            return
        last = b.load(POINTER, self.current, 8)
        assert self.result.pointer is not None
        w.b.move_memory(last, self.result.pointer, w.b.index(self.result.size_bytes))


def _next_values(
    w: BodyWriter, jaxpr: Jaxpr, block: BodyWriter, carried: Sequence[Carried]
) -> None:
    values = [block.env[atom] for atom in jaxpr.outvars[: len(carried)]]  # type: ignore[index]  # prepared results are variables
    elements = [
        {flat: block.element(value, flat, lanes) for flat, lanes in c.pieces}
        for value, c in zip(values, carried, strict=True)
    ]
    for value, numbers, c in zip(values, elements, carried, strict=True):
        c.end_round(Stored(value.shape, value.dtype, value.pointer, numbers))


def _rounds_per_poll(*programs: Jaxpr) -> int:
    """How many rounds of a loop over programs are worth a look at signals: a power of 2."""
    rounds = WORK_PER_POLL / max(1.0, sum(map(program_work, programs)))
    return 1 << int(math.log2(min(max(rounds, 1.0), _MOST_ROUNDS)))


@contextmanager
def _counted(w: BodyWriter, count: Value, length: int | None, jaxpr: Jaxpr) -> Iterator[Value]:
    """A loop of ``count`` rounds, which are ``length`` if that is known; yields the counter.

    A long one is a loop over chunks of rounds, so that the loop itself is as tight as a short one.
    """
    b = w.b
    rounds = _rounds_per_poll(jaxpr)
    if length is not None and length <= rounds:
        hint = "scan" if length >= MANY_ROUNDS else "few"
        with b.loop(b.index(0), count, hint=hint) as counter:
            yield counter
        return
    with b.loop(b.index(0), count, rounds, hint="chunk") as start:
        w.whole.poll_when(b.icmp("ne", start, b.index(0)))
        stop = b.intrinsic("smin", b.add(start, b.index(rounds)), count)
        with b.loop(start, stop, hint="scan") as counter:
            yield counter


def write_scan(w: BodyWriter, eqn: Equation) -> None:
    """``scan``: a counted loop over the first axes of operands and results."""
    params = eqn.params
    jaxpr = prepare(params["jaxpr"])
    n_consts, n_carry, length = params["n_consts"], params["n_carry"], params["length"]
    operands = [w.stored(atom) for atom in eqn.inputs]
    if length is not None:
        count = w.b.index(length)
    else:
        count = w.e.cast(w.element(operands.pop(0), 0), "int64").parts[0]
    _write_rounds(w, eqn, jaxpr, operands, n_consts, n_carry, count, length, params["reverse"])


def write_entries(w: BodyWriter, eqn: Equation) -> None:
    """``entries``: a loop over the entries of tapes; the result has as many as the longest one."""
    tapes = [w.stored(atom) for atom in eqn.inputs]
    lengths = [w.b.load(I64, tape.tape.length, 8) for tape in tapes]  # type: ignore[union-attr]  # tapes
    count = reduce(lambda a, b: w.b.intrinsic("smax", a, b), lengths)
    _write_rounds(w, eqn, entry_program(eqn), tapes, 0, 0, count, None, False)


def _write_rounds(
    w: BodyWriter,
    eqn: Equation,
    jaxpr: Jaxpr,
    operands: Sequence[Stored],
    n_consts: int,
    n_carry: int,
    count: Value,
    length: int | None,
    reverse: bool,
) -> None:
    """``count`` rounds of a program, which are ``length`` if that is known."""
    b = w.b
    consts = operands[:n_consts]
    xs = operands[n_consts + n_carry :]
    if are_independent(w.program, jaxpr, length, n_carry) and eqn.outputs:
        assert length is not None
        ys = [w.place_in_memory(var) for var in eqn.outputs]
        _write_independent_rounds(w, jaxpr, [*consts, *xs, *ys], n_consts, length, reverse)
        return
    block = BodyWriter(w.program, jaxpr, {}, {})
    writers = block.plan_ahead()
    carried = [
        Carried(w, start, out, block.may_overwrite(writers, before, after), after in block.packed)  # type: ignore[arg-type]  # variables
        for start, out, before, after in zip(
            operands[n_consts : n_consts + n_carry],
            eqn.outputs[:n_carry],
            jaxpr.invars[n_consts : n_consts + n_carry],
            jaxpr.outvars[:n_carry],
            strict=True,
        )
    ]
    ys = [
        _new_tape(w, var, count) if type(var.aval) is Tape else w.place_in_memory(var)
        for var in eqn.outputs[n_carry:]
    ]
    if length != 0:
        last = b.index(length - 1) if length is not None else b.sub(count, b.index(1))
        with _counted(w, count, length, jaxpr) as counter:
            number = b.sub(last, counter) if reverse else counter
            entries = [_entry(w, x, number) for x in xs]
            arguments = [
                *(const.inner() for const in consts),
                *(c.begin_round() for c in carried),
                *entries,
            ]
            destinations: dict[Var, Value] = {}
            for c, atom in zip(carried, jaxpr.outvars[:n_carry], strict=True):
                if not c.is_small:
                    assert c.next_place is not None
                    destinations[atom] = c.next_place  # type: ignore[index]  # a variable
            kept = [_entry(w, y, number) for y in ys]
            destinations.update(_places(jaxpr.outvars[n_carry:], kept))
            in_place = [atom for c, atom in zip(carried, jaxpr.outvars, strict=False) if c.in_place]
            block.start(
                _block_env(w, jaxpr, arguments),
                destinations,
                frozenset(in_place),  # type: ignore[arg-type]  # results are variables
            )
            block.write(writers)
            _keep_tapes(block, jaxpr.outvars[n_carry:], kept)
            _next_values(w, jaxpr, block, carried)
    for c in carried:
        c.finish()


def _write_independent_rounds(
    w: BodyWriter,
    jaxpr: Jaxpr,
    arrays: Sequence[Stored],
    n_consts: int,
    length: int,
    reverse: bool,
) -> None:
    """Rounds without carried values, on threads: of constants, operands and results in order."""

    def write(function: RoundsFunction, arrays: list[Stored], counter: Value) -> None:
        block = BodyWriter(function, jaxpr, {}, {})
        writers = block.plan_ahead()
        b = function.b
        number = b.sub(b.index(length - 1), counter) if reverse else counter
        consts = [const.inner() for const in arrays[:n_consts]]
        entries = [_entry(block, x, number) for x in arrays[n_consts:]]
        n_read = len(jaxpr.invars) - n_consts
        env = _block_env(block, jaxpr, [*consts, *entries[:n_read]])
        block.start(env, _places(jaxpr.outvars, entries[n_read:]))
        block.write(writers)

    run_rounds(w.whole, length, program_work(jaxpr), arrays, write)


def _new_tape(w: BodyWriter, var: Var, count: Value | None) -> Stored:
    """A tape, with so many entries if that is known."""
    element, depth = var.aval.element, 0  # type: ignore[union-attr]  # a tape
    while type(element) is Tape:
        element, depth = element.element, depth + 1
    tape = w.whole.new_tape(depth)
    stored = Stored(element.shape, element.dtype, tape=tape)
    w.b.store(w.b.index(0) if count is None else count, tape.length, 8)
    if count is not None:
        w.whole.reserve(tape, count, stored.entry_bytes)
    w.env[var] = stored
    return stored


def _pushed(w: BodyWriter, stack: Stored) -> Stored:
    """The next entry of a tape, which has one more from now on."""
    tape, b = stack.tape, w.b
    assert tape is not None
    length = b.load(I64, tape.length, 8)
    following = b.add(length, b.index(1))
    w.whole.reserve(tape, following, stack.entry_bytes)
    b.store(following, tape.length, 8)
    return _entry_at(w, stack, _tape_place(w, stack, length))


def _tape_entry(w: BodyWriter, stack: Stored, number: Value) -> Stored:
    """An entry of a tape; behind its end all are zero, or empty tapes."""
    assert stack.tape is not None
    is_there = w.b.icmp("slt", number, w.b.load(I64, stack.tape.length, 8))
    zero = w.whole.zeros(stack.entry_bytes)
    return _entry_at(w, stack, w.b.select(is_there, _tape_place(w, stack, number), zero))


def _tape_place(w: BodyWriter, stack: Stored, number: Value) -> Value:
    assert stack.tape is not None
    data = w.b.load(POINTER, stack.tape.data, 8)
    return w.b.offset(data, w.b.mul(number, w.b.index(stack.entry_bytes)))


def _entry_at(w: BodyWriter, stack: Stored, place: Value) -> Stored:
    assert stack.tape is not None
    if not stack.tape.depth:
        return Stored(stack.shape, stack.dtype, place)
    inner = w.whole.tape_at(place, stack.tape.depth - 1)
    return Stored(stack.shape, stack.dtype, tape=inner)


def _places(atoms: Sequence[Atom], entries: Sequence[Stored]) -> dict[Var, Value]:
    """Where a body writes its results; what is a tape is moved later."""
    pairs = zip(atoms, entries, strict=True)
    return {atom: entry.pointer for atom, entry in pairs if entry.pointer is not None}  # type: ignore[misc]  # results are variables


def _keep_tapes(block: BodyWriter, atoms: Sequence[Atom], entries: Sequence[Stored]) -> None:
    """Make tapes of a round entries of tapes.

    They are exchanged with what is there, whose memory serves the next round.
    """
    b = block.b
    for atom, entry in zip(atoms, entries, strict=True):
        made = block.env[atom].tape  # type: ignore[index]  # results are variables
        if made is None:
            continue
        assert entry.tape is not None
        for (type_, own), (_, kept) in zip(made.slots, entry.tape.slots, strict=True):
            value, before = b.load(type_, own, 8), b.load(type_, kept, 8)
            b.store(value, kept, 8)
            b.store(before, own, 8)


def _entry(w: BodyWriter, stack: Stored, number: Value) -> Stored:
    """One entry of an operand or result of a scan."""
    if stack.tape is not None:
        return _tape_entry(w, stack, number)
    shape = stack.shape[1:]
    entry = Stored(shape, stack.dtype)
    assert stack.pointer is not None
    offset = w.b.mul(number, w.b.index(entry.size_bytes))
    entry.pointer = w.b.offset(stack.pointer, offset)
    return entry


def write_while(w: BodyWriter, eqn: Equation) -> None:
    """``while``: a loop for as long as a condition of the carried values holds.

    Results beyond the carried ones are tapes, with an entry for each round.
    """
    params = eqn.params
    condition = prepare(params["cond_jaxpr"])
    body = prepare(params["body_jaxpr"])
    n_cond, n_body = params["n_cond_consts"], params["n_body_consts"]
    operands = [w.stored(atom) for atom in eqn.inputs]
    cond_consts, body_consts = operands[:n_cond], operands[n_cond : n_cond + n_body]
    starts = operands[n_cond + n_body :]
    tapes = [_new_tape(w, var, None) for var in eqn.outputs[len(starts) :]]
    block = BodyWriter(w.program, body, {}, {})
    writers = block.plan_ahead()
    carried = [
        Carried(w, start, out, block.may_overwrite(writers, before, after), after in block.packed)  # type: ignore[arg-type]  # variables
        for start, out, before, after in zip(
            starts, eqn.outputs, body.invars[n_body:], body.outvars, strict=False
        )
    ]
    b = w.b
    head, inside, done = b.label("while_h"), b.label("while_b"), b.label("while_d")
    b.branch(head)
    b.start(head)
    w.whole.poll_every(min(_rounds_per_poll(condition, body), _MOST_ROUNDS_OF_WHILE))
    values = [c.begin_round() for c in carried]
    arguments = [*(const.inner() for const in cond_consts), *(v.inner() for v in values)]
    test = BodyWriter(w.program, condition, _block_env(w, condition, arguments), {})
    test.write()
    (flag,) = condition.outvars
    holds = test.element(test.env[flag], 0)  # type: ignore[index]  # a variable
    b.branch_if(w.e.cast(holds, bool).parts[0], inside, done)
    b.start(inside)
    arguments = [*(const.inner() for const in body_consts), *(v.inner() for v in values)]
    destinations: dict[Var, Value] = {
        atom: c.next_place  # type: ignore[misc]  # results are variables
        for c, atom in zip(carried, body.outvars, strict=False)
        if c.next_place is not None
    }
    kept = [_pushed(w, tape) for tape in tapes]
    destinations.update(_places(body.outvars[len(starts) :], kept))
    in_place = [atom for c, atom in zip(carried, body.outvars, strict=False) if c.in_place]
    block.start(
        _block_env(w, body, arguments),
        destinations,
        frozenset(in_place),  # type: ignore[arg-type]  # results are variables
    )
    block.write(writers)
    _keep_tapes(block, body.outvars[len(starts) :], kept)
    _next_values(w, body, block, carried)
    b.branch(head)
    b.start(done)
    for c in carried:
        c.finish()


def write_cond(w: BodyWriter, eqn: Equation) -> None:
    """``cond``: one of several programs, chosen by a number."""
    operands = [w.stored(atom) for atom in eqn.inputs]
    results = [w.place_in_memory(var) for var in eqn.outputs]
    _write_choice(w, eqn.params["branches"], operands, results)


def write_cond_lanes(w: BodyWriter, eqn: Equation) -> None:
    """``cond_lanes``: a loop over the lanes of a batch, each of which takes its own branch."""
    operands = [w.stored(atom) for atom in eqn.inputs]
    results = [w.place_in_memory(var) for var in eqn.outputs]
    flags = (True, *eqn.params["batched"])
    b = w.b
    lanes = operands[0].shape[0]
    with b.loop(b.index(0), b.index(lanes), hint="lane") as lane:
        own = [
            _entry(w, operand, lane) if flag else operand.inner()
            for operand, flag in zip(operands, flags, strict=True)
        ]
        places = [_entry(w, result, lane) for result in results]
        _write_choice(w, eqn.params["branches"], own, places)


def _write_choice(
    w: BodyWriter, programs: Sequence[Jaxpr], operands: Sequence[Stored], results: Sequence[Stored]
) -> None:
    """The program of the number that is the first operand, with its results where they belong."""
    branches = [prepare(branch) for branch in programs]
    index = w.e.cast(w.element(operands[0], 0), "int64").parts[0]
    b = w.b
    done = b.label("cond_d")
    labels = [b.label("branch") for _ in branches]
    cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
    b.statement(f"switch i64 {index.text}, label %{labels[-1]} [ {cases} ]")
    for label, jaxpr in zip(labels, branches, strict=True):
        b.start(label)
        arguments = [operand.inner() for operand in operands[1:]]
        destinations = {
            atom: result.pointer for atom, result in zip(jaxpr.outvars, results, strict=True)
        }
        block = BodyWriter(
            w.program,
            jaxpr,
            _block_env(w, jaxpr, arguments),
            destinations,  # type: ignore[arg-type]  # in memory, and variables
        )
        block.write()
        b.branch(done)
    b.start(done)
