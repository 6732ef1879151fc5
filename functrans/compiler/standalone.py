"""Programs as code that leaves Python: one function of addresses, without a heap.

Here: ``write_standalone``, LLVM's text of such a function and of what its error numbers mean. Not
here: the header that declares it (``compiler.header``), files (``compiler.export``).

The function is ``i32 @name(ptr in0, ..., ptr out0, ..., ptr workspace)``. It differs from a program
in this process as follows:

- temporary memory is the caller's: one block, whose size is known when the code is made. What loops
  of unknown length keep for their derivatives grows in the last part of it, which has the size that
  the user allows, and is given back only when the call ends;
- nothing runs on threads, and nobody looks at signals;
- arrays that the program refers to, and sizes, are constants of the code;
- BLAS and LAPACK have the names that Fortran gives them: ``dgemm_``;
- there is nothing that it writes to but results, workspace and its stack, so that any number of
  threads may call it, each with a workspace of its own.

What is computed, and in which order, is the same, so that results are, too.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from functrans.compiler.functions import (
    FIRST_ERROR,
    NO_MEMORY,
    NativeError,
    ProgramFunction,
    escaped,
)
from functrans.compiler.programs import BLOCKS, write_body
from functrans.compiler.storage import ALIGNMENT, MEMORY_END, Stored, TapeSlots
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import resolve
from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import I32, I64, POINTER, Machine, Value
from functrans.errors import UnsupportedOperationError
from functrans.records import dataclass

NO_TABLES: Mapping[str, np.ndarray] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Failure:
    """What a call can end with.

    Attributes:
      status: the number.
      kind: name of the exception that Python raises.
      text: the message, with the user's line.
    """

    status: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class StandaloneText:
    """A function that leaves Python, as LLVM's text.

    Attributes:
      text: the module.
      workspace_bytes: memory that the caller has to give; some, since arrays in C are not empty.
      failures: what calls can end with.
      routines: routines of BLAS and LAPACK that it calls, as Fortran names them.
    """

    text: str
    workspace_bytes: int
    failures: tuple[Failure, ...]
    routines: tuple[str, ...]


class StandaloneFunction(ProgramFunction):
    """The function of a program that leaves Python.

    Attributes:
      kept_bytes: memory for what loops of unknown length keep; 0 if there is no such loop.
    """

    def __init__(
        self, module: Module, name: str, n_inputs: int, n_outputs: int, tape_bytes: int
    ) -> None:
        super().__init__(module, n_inputs, n_outputs, BLOCKS, name)
        self.kept_bytes = 0
        self._tape_bytes = -(-tape_bytes // ALIGNMENT) * ALIGNMENT
        self._used: Value | None = None
        """Slot that holds how much of that memory is used."""
        self.b.parameters = None  # sizes are constants
        self.frame.given = self.b.arguments[-1]
        self.routines.on_threads = False

    def poll_every(self, rounds: int) -> None:
        """Nothing: there is nobody to ask."""

    def poll_when(self, condition: Value) -> None:
        """Nothing: there is nobody to ask."""

    def symbol(self, name: str) -> str:
        """The name that Fortran gives a routine of BLAS or LAPACK; there is no other library."""
        family, _, routine = name.partition(".")
        if family in ("blas", "lapack"):
            self.symbols[f"{routine}_"] = name
            return f"{routine}_"
        if family in ("kernel", "kernelfailure"):
            raise self._refusal("is compiled by numba, whose code needs this process")
        function = routine.partition("->")[0].rpartition(".")[0] or name  # without its dtypes
        raise self._refusal(f"calls {function}, which is a part of NumPy or SciPy in this process")

    def new_tape(self, depth: int) -> TapeSlots:
        """Slots for a tape, if there is memory for any."""
        if not self._tape_bytes:
            raise self._refusal(
                "keeps what a loop of unknown length needs for its derivative, which takes memory "
                "without bound; say by tape_bytes= how much it may take, give the loop a fixed "
                "number of rounds (functrans.lax.scan), or differentiate forwards"
            )
        if self._used is None:
            self.kept_bytes = self._tape_bytes
            self._used = self.b.alloca(I64, align=8)
            with self.frame.before():
                self.b.store(self.b.index(0), self._used, 8)
        return super().new_tape(depth)

    def finish(self) -> None:
        """Write the end: where memory lies is known then."""
        if self._used is not None:
            self.frame.mark_end()
        super().finish()

    def _grown(self, data: Value, old: Value, size: Value) -> Value:
        """More memory behind what is used; what there was before is not used again."""
        b = self.b
        assert self._used is not None
        used = b.load(I64, self._used, 8)
        length = b.and_(b.add(size, b.index(ALIGNMENT - 1)), b.const(I64, -ALIGNMENT))
        end = b.add(used, length)
        self._leave_when(b.icmp("ugt", end, b.const(I64, self._tape_bytes)), NO_MEMORY)
        b.store(end, self._used, 8)
        grown = b.offset(MEMORY_END, used)
        b.move_memory(data, grown, old)
        return grown

    def _give_back(self, tape: TapeSlots) -> None:
        """Nothing: the workspace is the caller's."""

    def _refusal(self, reason: str) -> UnsupportedOperationError:
        eqn = self._eqn
        name = "the program" if eqn is None else eqn.primitive.name
        line = None if eqn is None else resolve(eqn.source)
        where = f" (at {line})" if line is not None else ""
        return UnsupportedOperationError(f"export: {name} {reason}{where}")


def write_standalone(
    jaxpr: Jaxpr,
    captured: Sequence[Any],
    name: str,
    machine: Machine,
    tape_bytes: int = 0,
    tables: Mapping[str, np.ndarray] = NO_TABLES,
) -> StandaloneText:
    """LLVM's text of a prepared program that has a native form as a whole.

    Args:
      jaxpr: the program.
      captured: what its first arguments always are, after its constants.
      name: symbol of the function; ``<name>_error_text`` is that of another one.
      machine: what the code is written for.
      tape_bytes: most memory for what loops of unknown length keep; such loops are refused if 0.
      tables: constant arrays in C order that others may read, by symbol.

    Raises:
      UnsupportedOperationError: an equation needs more than its operands; names it and its line.
    """
    fixed = (*jaxpr.consts, *captured)
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    given = inputs[len(fixed) :]
    module = Module(machine)
    function = StandaloneFunction(module, name, len(given), len(jaxpr.outvars), tape_bytes)
    try:
        env = {}
        read = {x for eqn in jaxpr.eqns for x in eqn.inputs}.union(jaxpr.outvars)
        for var, value in zip(inputs, fixed, strict=False):
            if var not in read:
                continue
            env[var] = function.constant_array(np.array(value, var.aval.dtype, order="C"))
        for var, pointer in zip(given, function.b.arguments, strict=False):
            env[var] = Stored(var.aval.shape, var.aval.dtype, pointer)
        program = write_body(function, jaxpr, env)
    finally:
        function.release()
    failures = tuple(map(_failure, range(len(program.errors)), program.errors))
    if function.kept_bytes:
        text = f"a loop ran for longer than its memory of {function.kept_bytes} bytes allows"
        failures = (Failure(NO_MEMORY, "MemoryError", text), *failures)
    _write_texts(module, f"{name}_error_text", failures)
    for symbol, table in tables.items():
        data = table.tobytes() or bytes(table.itemsize)
        constant = f'constant [{len(data)} x i8] c"{escaped(data)}", align {ALIGNMENT}'
        module.globals[f"@{symbol}"] = f"@{symbol} = {constant}"
    size = ALIGNMENT + program.memory_bytes + function.kept_bytes
    routines = tuple(symbol for symbol, _ in program.symbols)
    # C23's function, which few libraries have, is C99's as long as numbers are rounded to nearest
    code = str(module).replace("@llvm.roundeven.", "@llvm.nearbyint.")
    return StandaloneText(code, size, failures, routines)


def _failure(number: int, error: NativeError) -> Failure:
    made = error.make(error.message)
    line = resolve(error.source)
    where = f" (at {line})" if line is not None else ""
    return Failure(FIRST_ERROR + number, type(made).__name__, f"{error.message}{where}")


def _write_texts(module: Module, name: str, failures: Sequence[Failure]) -> None:
    """Write the function that says what a status means."""
    b = Builder(module, name, [I32], POINTER)
    for failure in (Failure(0, "", "success"), *failures):
        with b.when(b.icmp("eq", b.arguments[0], b.const(I32, failure.status)), "known"):
            b.ret(_text(module, failure.text))
            b.start(b.label("unreached"))
    b.ret(_text(module, "unknown status"))
    b.finish()


def _text(module: Module, text: str) -> Value:
    """A constant string as C reads it."""
    data = text.encode().replace(b"\0", b"") + b"\0"
    name = f"@text{len(module.globals)}"
    constant = f'private unnamed_addr constant [{len(data)} x i8] c"{escaped(data)}"'
    module.globals[name] = f"{name} = {constant}"
    return Value(name, POINTER)
