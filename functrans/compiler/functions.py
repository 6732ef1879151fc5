"""The functions that native code consists of: what is written into one asks for it here.

Here: ``ProgramFunction``, of a whole program (arguments, memory, errors, tapes, constants), and
``ChunkFunction``, of a range of a loop that runs on several threads, ``RoundsFunction``, of a range
of rounds of a program in a loop, and ``Passed``, what the latter two are told. Not here: what is
written into them (``compiler.bodies``), a function from beginning to end (``compiler.programs``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from functrans.compiler.entry import INTERRUPTED
from functrans.compiler.storage import TAPE_BYTES, Frame, Stored, TapeSlots
from functrans.compiler.symbols import symbol_name
from functrans.core.jaxpr import Equation
from functrans.emitter.builder import Builder, Module
from functrans.emitter.routine import Routines
from functrans.emitter.types import I32, I64, POINTER, Value
from functrans.records import dataclass

NO_MEMORY = 2
FIRST_ERROR = 16
EMPTY: Mapping[str, Callable[[Any, Equation], None]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NativeError:
    """An error that a program can end with.

    Attributes:
      make: the class of the exception, or what makes one of the text.
      message: its text.
      source: the user's line, as equations hold it.
    """

    make: Callable[[str], Exception]
    message: str
    source: Any


def escaped(data: bytes) -> str:
    """Bytes as they stand between the quotes of a constant in LLVM's text."""
    return "\\" + data.hex("\\") if data else ""


class ProgramFunction:
    """The function of a whole program.

    Attributes:
      b: its instructions.
      routines: numbers and whole arrays in it.
      frame: its temporary memory.
      errors: what it can end with.
      symbols: library functions that it refers to, by symbol.
    """

    def __init__(
        self,
        module: Module,
        n_inputs: int,
        n_outputs: int,
        blocks: Mapping[str, Callable[[Any, Equation], None]] = EMPTY,
        name: str = "program",
    ) -> None:
        self.module = module
        self._blocks = blocks
        self.b = Builder(module, name, [POINTER] * (n_inputs + n_outputs + 1), I32, "", "nounwind")
        self.b.parameters = self.b.arguments[-1]
        self.frame = Frame(self.b)
        self.routines = Routines(self.b, self.frame.scratch, self.fail_when, self.symbol)
        self.errors: list[NativeError] = []
        self._numbers: dict[tuple[Callable[[str], Exception], str, Equation | None], int] = {}
        self.symbols: dict[str, str] = {}
        self._eqn: Equation | None = None
        self._status = self.b.alloca(I32, align=4)
        self._constants: dict[int, Stored] = {}
        self._kept: list[Any] = []
        self._rounds: Value | None = None
        self._tapes: list[TapeSlots] = []

    def finish(self) -> None:
        """Write the end: give memory back, and return how it went."""
        b = self.b
        b.store(b.const(I32, 0), self._status, 4)
        self._give_all_back()
        b.ret(b.load(I32, self._status, 4))
        self.frame.acquire(lambda: b.ret(b.const(I32, NO_MEMORY)))
        b.finish()

    def release(self) -> None:
        """End the cycle of this object and its routines, after the last use of either."""
        vars(self.routines).clear()

    # what bodies ask -----------------------------------------------------------------------------

    def at_equation(self, eqn: Equation) -> None:
        """Note the equation, and so the user's line, for errors of what is written next."""
        self._eqn = eqn

    def fail_when(self, condition: Value, error: Callable[[str], Exception], message: str) -> None:
        """Leave the program with an exception where a condition holds."""
        # one number for each equation, whether or not two have one line: code may come from a
        # program that is the same but for the lines
        key = error, message, self._eqn
        number = self._numbers.setdefault(key, len(self.errors))
        if number == len(self.errors):
            source = None if self._eqn is None else self._eqn.source
            self.errors.append(NativeError(error, message, source))
        self._leave_when(condition, FIRST_ERROR + number)

    def leave_when(self, condition: Value, status: Value) -> None:
        """Leave the program with a status where a condition holds."""
        b = self.b
        wrong, fine = b.label("wrong"), b.label("fine")
        b.branch_if(condition, wrong, fine)
        b.start(wrong)
        self._note(status)
        b.branch("leave")
        b.start(fine)

    def _leave_when(self, condition: Value, status: int) -> None:
        self.leave_when(condition, self.b.const(I32, status))

    def _note(self, status: Value) -> None:
        self.b.store(status, self._status, 4)

    def write_block(self, body: object, kind: str, eqn: Equation) -> None:
        """Write control flow into a body."""
        self._blocks[kind](body, eqn)

    def poll_every(self, rounds: int) -> None:
        """Let Ctrl-C end a loop whose end is not known: looked at every ``rounds``, a power of 2.

        All such loops share the count.
        """
        b = self.b
        if self._rounds is None:
            self._rounds = b.alloca(I32, align=4)
            with self.frame.before():
                b.store(b.const(I32, 0), self._rounds, 4)
        count = b.add(b.load(I32, self._rounds, 4), b.const(I32, 1))
        b.store(count, self._rounds, 4)
        rest = b.and_(count, b.const(I32, rounds - 1))
        self.poll_when(b.icmp("eq", rest, b.const(I32, 0)))

    def poll_when(self, condition: Value) -> None:
        """Where a condition holds, end the program if a signal handler has raised an exception."""
        b = self.b
        with b.when(condition, "poll"):
            # the caller may be native code that holds Python's lock or does not
            state = b.call(self.symbol("c.PyGILState_Ensure"), (), I32)
            pending = b.call(self.symbol("c.PyErr_CheckSignals"), (), I32)
            b.call(self.symbol("c.PyGILState_Release"), (state,), None)
            self._leave_when(b.icmp("ne", pending, b.const(I32, 0)), INTERRUPTED)

    def symbol(self, name: str) -> str:
        """The symbol of a library function, which is linked when the code is loaded."""
        symbol = symbol_name(name)
        self.symbols[symbol] = name
        return symbol

    def new_tape(self, depth: int) -> TapeSlots:
        """Slots for a tape that is empty when the program starts."""
        b = self.b
        data, capacity, length = (b.alloca(type_, align=8) for type_ in (POINTER, I64, I64))
        tape = TapeSlots(data, capacity, length, depth)
        with self.frame.before():
            for type_, slot in tape.slots:
                b.store(Value("null" if type_ is POINTER else "0", type_), slot, 8)
        self._tapes.append(tape)
        return tape

    def tape_at(self, place: Value, depth: int) -> TapeSlots:
        """The tape that is an entry of another."""
        capacity, length = (self.b.offset(place, self.b.index(at)) for at in (8, 16))
        return TapeSlots(place, capacity, length, depth)

    def reserve(self, tape: TapeSlots, count: Value, entry_bytes: int) -> None:
        """Make room for so many entries, twice as many as before when there is not enough."""
        b = self.b
        capacity = b.load(I64, tape.capacity, 8)
        with b.when(b.icmp("slt", capacity, count), "grow"):
            wanted = b.intrinsic("smax", b.shl(capacity, b.index(1)), count)
            wanted = b.intrinsic("smax", wanted, b.index(16))
            size = b.mul(wanted, b.index(max(entry_bytes, 1)))
            old = b.mul(capacity, b.index(entry_bytes))
            data = self._grown(b.load(POINTER, tape.data, 8), old, size)
            if tape.depth:
                b.call("memset", [b.offset(data, old), b.const(I32, 0), b.sub(size, old)], POINTER)
            b.store(data, tape.data, 8)
            b.store(wanted, tape.capacity, 8)

    def _grown(self, data: Value, old: Value, size: Value) -> Value:
        """Memory of a size, with the old one's bytes; the program ends where there is none."""
        grown = self.b.call("realloc", [data, size], POINTER)
        self._leave_when(self.b.icmp("eq", grown, Value("null", POINTER)), NO_MEMORY)
        return grown

    def _give_all_back(self) -> None:
        """Where all ways out of the function meet: free tapes and memory."""
        self.b.branch("leave")
        self.b.start("leave")
        for tape in self._tapes:
            self._give_back(tape)
        self.frame.release()

    def _give_back(self, tape: TapeSlots) -> None:
        """Free a tape and those in it."""
        b = self.b
        data = b.load(POINTER, tape.data, 8)
        if tape.depth:
            with b.loop(b.index(0), b.load(I64, tape.capacity, 8), hint="tape") as number:
                place = b.offset(data, b.mul(number, b.index(TAPE_BYTES)))
                self._give_back(self.tape_at(place, tape.depth - 1))
        b.call("free", [data], None)

    def zeros(self, size_bytes: int) -> Value:
        """Memory that holds zeros, and is not written to."""
        name = f"@zeros{size_bytes}"
        self.module.globals[name] = (
            f"{name} = private unnamed_addr constant [{max(size_bytes, 1)} x i8] "
            "zeroinitializer, align 64"
        )
        return Value(name, POINTER)

    def constant_array(self, const: Any) -> Stored:
        """A constant of an inner program, as a part of the code."""
        known = self._constants.get(id(const))
        if known is None:
            array = np.ascontiguousarray(const)
            name = f"@constant{len(self._constants)}"
            data = escaped(array.tobytes())
            self.module.globals[name] = (
                f'{name} = private unnamed_addr constant [{array.nbytes} x i8] c"{data}", align 64'
            )
            known = Stored(np.shape(const), array.dtype, Value(name, POINTER))
            self._constants[id(const)] = known
            self._kept.append(const)
        return known.inner()


class Passed:
    """Addresses and numbers that a function of a range reads from a record of its caller.

    Args:
      b: the caller's instructions.
      inner: the function's, whose first argument is the record.
      known: values that the record begins with.
    """

    def __init__(self, b: Builder, inner: Builder, known: Sequence[Value] = ()) -> None:
        self._b = b
        self._inner = inner
        self._values = list(known)

    def value(self, value: Value) -> Value:
        """A value of the caller, in the function."""
        if value.text[0] not in "%":
            return value  # a constant
        position = len(self._values)
        self._values.append(value)
        slot = self._inner.offset(
            self._inner.arguments[0], self._inner.index(_PASSED_BYTES * position)
        )
        return self._inner.load(value.type, slot, 8)

    def stored(self, stored: Stored) -> Stored:
        """An array of the caller, in the function."""
        copy = Stored(stored.shape, stored.dtype)
        copy.pointer = self.value(stored.pointer) if stored.pointer is not None else None
        if stored.pointer is None or stored.size == 1:
            for flat, number in stored.elements.items():
                copy.elements[flat] = type(number)(
                    number.dtype, tuple(map(self.value, number.parts))
                )
        return copy

    def record(self, parameters: Value) -> Value:
        """Write the record, at the present place of the caller; gives its address."""
        values = [*self._values, parameters]
        b = self._b
        record = b.alloca_bytes(_PASSED_BYTES * len(values))
        self._inner.load_first("%parameters", _PASSED_BYTES * (len(values) - 1))
        for position, value in enumerate(values):
            b.store(value, b.offset(record, b.index(_PASSED_BYTES * position)), 8)
        return record


class ChunkFunction:
    """A function that does one range of a nest; stands for the program in it."""

    def __init__(self, outer: ProgramFunction, name: str) -> None:
        self.outer = outer
        self.module = outer.module
        self.b = Builder(self.module, name, [POINTER, I64], None, "internal")
        self.frame = Frame(self.b, only_stack=True)
        self.routines = Routines(self.b, self.frame.scratch, outer.fail_when, outer.symbol)
        self.b.parameters = Value("%parameters", POINTER)

    def at_equation(self, eqn: Equation) -> None:
        """Nothing here can fail, so that it does not matter."""


class RoundsFunction(ProgramFunction):
    """A function that does a range of rounds of a program; stands for the whole program in it.

    What ends a program ends the range. The caller's status is that of the first round that failed.

    Attributes:
      number: the present round, in 64 bits.
    """

    def __init__(self, outer: ProgramFunction, name: str) -> None:
        self.module = outer.module
        self._blocks = outer._blocks
        self.b = Builder(self.module, name, [POINTER, I64], None, "internal")
        self.b.parameters = Value("%parameters", POINTER)
        self.b.load_first("%status", 0)
        self.frame = Frame(self.b)
        self.routines = Routines(self.b, self.frame.scratch, self.fail_when, self.symbol)
        self.routines.on_threads = False
        self.errors = outer.errors
        self._numbers = outer._numbers
        self.symbols = outer.symbols
        self._eqn = outer._eqn
        self._outer = outer
        self._rounds = None
        self._tapes = []
        self.number = self.b.index(0)

    def finish(self) -> None:
        """Write the end: give memory back."""
        b = self.b
        self._give_all_back()
        b.ret()
        self.frame.acquire(self._leave_without_memory)
        b.finish()

    def _leave_without_memory(self) -> None:
        b = self.b
        start = b.shl(b.arguments[1], b.index(_STATUS_BITS))
        self._note_first(b.or_(start, b.index(NO_MEMORY)))
        b.ret()

    def _note(self, status: Value) -> None:
        b = self.b
        number = b.shl(self.number, b.index(_STATUS_BITS))
        self._note_first(b.or_(number, b.convert("zext", status, I64)))

    def _note_first(self, status: Value) -> None:
        self.b.emit(I64, f"atomicrmw umin ptr %status, i64 {status.text} monotonic")

    def poll_when(self, condition: Value) -> None:
        """Nothing: signals are the caller's, which may hold Python's lock meanwhile."""

    def constant_array(self, const: Any) -> Stored:
        """A constant of an inner program, as a part of the code."""
        return self._outer.constant_array(const)


_PASSED_BYTES = 64
_STATUS_BITS = 16
NO_STATUS = -1
"""Status of rounds that did not fail: the largest number without a sign."""


def status_of_rounds(b: Builder, first: Value) -> Value:
    """The status of the first round that failed, 32 bits of it; 0 if none did."""
    code = b.convert("trunc", b.and_(first, b.index((1 << _STATUS_BITS) - 1)), I32)
    return b.select(b.icmp("eq", first, b.index(NO_STATUS)), b.const(I32, 0), code)
