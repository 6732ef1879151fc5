"""From a program to machine code.

Here: ``write_program``, from a prepared program to LLVM's text. Not here: the function around it
(``compiler.functions``), what is in it (``compiler.bodies``), how text becomes code
(``machine.engine``), when (``compiler.compiled``).

The function is ``i32 @program(ptr in0, ..., ptr out0, ..., ptr parameters)``: addresses of elements
in C order, and of a table of the sizes that the code does not contain, so that it serves arguments
of other extents. It returns 0, ``NO_MEMORY``, ``INTERRUPTED`` (a signal came, and the exception is
set), or ``FIRST_ERROR`` plus the number of an entry of ``errors``.

Layer: ``compiler``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from functrans.compiler.blocks import (
    write_cond,
    write_cond_lanes,
    write_entries,
    write_scan,
    write_while,
)
from functrans.compiler.bodies import BodyWriter
from functrans.compiler.functions import NativeError, ProgramFunction
from functrans.compiler.prepare import known_values
from functrans.compiler.storage import Stored
from functrans.core.jaxpr import Jaxpr, Literal, Var
from functrans.emitter.builder import Module
from functrans.emitter.types import Value
from functrans.machine import engine
from functrans.records import dataclass

BLOCKS = {
    "entries": write_entries,
    "scan": write_scan,
    "while": write_while,
    "cond": write_cond,
    "cond_lanes": write_cond_lanes,
}


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program as LLVM's text.

    Attributes:
      text: the module.
      errors: what its error numbers mean.
      symbols: library functions that it refers to, by symbol.
      memory_bytes: temporary memory that a call takes.
      parameters: sizes and numbers that the code reads from a table, as LLVM writes them.
    """

    text: str
    errors: tuple[NativeError, ...]
    symbols: tuple[tuple[str, str], ...]
    memory_bytes: int
    parameters: tuple[str, ...]

    @property
    def table(self) -> tuple[int, ...]:
        """The parameters as 64-bit integers: floats by their bits."""
        return tuple(map(_bits, self.parameters))


def _bits(parameter: str) -> int:
    type_, text = parameter.split()
    if type_ == "i64":
        return int(text)
    number = int(text, 16)  # the bits of a double, also of a narrower float
    if type_ == "float":
        double = struct.unpack("<d", struct.pack("<Q", number))[0]
        (number,) = struct.unpack("<I", struct.pack("<f", double))
    return number - (1 << 64) if number >> 63 else number


def write_program(jaxpr: Jaxpr, number_of: Callable[[Any], int] | None = None) -> ProgramText:
    """LLVM's text of a prepared program.

    Args:
      jaxpr: the program.
      number_of: numbers of what instructions are for, an equation or a program with the number of
        an item of its schedule; the text then says in comments what each is for.
    """
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    module = Module(engine.machine())
    module.number_of = number_of
    function = ProgramFunction(module, len(inputs), len(jaxpr.outvars), BLOCKS)
    try:
        env: dict[Var, Stored] = {}
        for var, pointer in zip(inputs, function.b.arguments, strict=False):
            env[var] = Stored(var.aval.shape, var.aval.dtype, pointer)
        return write_body(function, jaxpr, env)
    finally:
        function.release()


def write_body(function: ProgramFunction, jaxpr: Jaxpr, env: dict[Var, Stored]) -> ProgramText:
    """Write a prepared program into its function, and finish that.

    Args:
      function: the function, whose last argument but one, and those before, are addresses of the
        results.
      jaxpr: the program.
      env: where its constants and arguments are.
    """
    known = known_values(jaxpr)
    for var in known.keys() & env.keys():
        env[var].elements = {
            flat: function.routines.constant(var.aval.dtype, value)
            for flat, value in enumerate(known[var].ravel())
        }
    destinations: dict[Var, Value] = {}
    results = function.b.arguments[-1 - len(jaxpr.outvars) : -1]
    for atom, pointer in zip(jaxpr.outvars, results, strict=True):
        assert not isinstance(atom, Literal)
        destinations[atom] = pointer
    BodyWriter(function, jaxpr, env, destinations).write()
    function.finish()
    return ProgramText(
        str(function.module),
        tuple(function.errors),
        tuple(sorted(function.symbols.items())),
        function.frame.arena.size_bytes,
        tuple(function.module.parameters),
    )
