"""The variables of a program that is being written, and where their values are.

Here: ``Body``: which equation makes a variable, in which register or memory it is, workspace. Not
here: what memory is like (``compiler.storage``), going through a program (``compiler.bodies``).

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from functrans.compiler.axes import FULLY_UNROLLED
from functrans.compiler.functions import ChunkFunction, ProgramFunction
from functrans.compiler.schedule import Root, Schedule
from functrans.compiler.storage import Stored
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.emitter.dtypes import loop_dtypes
from functrans.emitter.numbers import Number
from functrans.emitter.routine import Array, Routines
from functrans.emitter.types import Value


class Body:
    """A program, or a block of control flow, and its variables.

    Attributes:
      jaxpr: the prepared program.
      env: variables that are computed.
      available: variables that are computed, while planning.
      destinations: where results go, for those that have a place.
      packed: variables that are computed in vector registers, after planning.
    """

    def __init__(
        self,
        program: ProgramFunction | ChunkFunction,
        jaxpr: Jaxpr,
        env: dict[Var, Stored],
        destinations: Mapping[Var, Value],
    ) -> None:
        self.program = program
        self.jaxpr = jaxpr
        self.b = program.b
        self.e: Routines = program.routines
        self.env = env
        self.destinations = destinations
        self.available: set[Var] = set(env)
        self._makers = {
            var: (eqn, output) for eqn in jaxpr.eqns for output, var in enumerate(eqn.outputs)
        }
        self._dtypes: dict[int, tuple[np.dtype, ...]] = {}
        self._owned: dict[Var, int] = {}
        self._places: dict[Var, Value] = {}
        self._heirs: dict[Var, Var] = {}
        """Variables whose memory is, from the start, that of one computed later in place."""
        self._last_heirs: dict[Var, Var] = {}
        self._occupied: frozenset[Var] = frozenset()
        self._parts: dict[tuple[str, int], Value] = {}
        """Addresses in results, by the result's and the offset in bytes."""
        self._temporary: list[int] = []
        self.schedule: Schedule | None = None
        self.is_chunk = False
        self.packed: frozenset[Var] = frozenset()

    @property
    def whole(self) -> ProgramFunction:
        """The whole program, for what is never a part of a chunk: control flow and constants."""
        return cast("ProgramFunction", self.program)

    # what nests ask ------------------------------------------------------------------------------

    def maker(self, var: Var) -> tuple[Equation, int]:
        """The equation of a variable, and which of its outputs it is."""
        return self._makers[var]

    def loop_dtypes(self, eqn: Equation) -> tuple[np.dtype, ...]:
        """The dtypes that an elementwise equation computes in."""
        known = self._dtypes.get(id(eqn))
        if known is None:
            avals: Any = tuple([atom.aval for atom in eqn.inputs])
            out: Any = eqn.outputs[0].aval
            known = loop_dtypes(eqn.primitive, avals, out)
            self._dtypes[id(eqn)] = known
        return known

    def workspace(self, size_bytes: int) -> Value:
        """Scratch memory until the present item is finished."""
        offset = self.program.frame.arena.allocate(size_bytes)
        self._temporary.append(offset)
        return self.program.frame.at(offset)

    def declare(self, root: Root) -> None:
        """Give a root a place; in a chunk it has one."""
        if not self.is_chunk:
            self.place(root.var)

    def place(self, var: Var) -> Stored:
        """Give a variable a place: its destination, or memory of the program."""
        aval = var.aval
        stored = Stored(aval.shape, aval.dtype)
        assert self.schedule is not None
        pointer = self.destinations.get(var)
        heir = self._heirs.get(var)
        if pointer is None and heir is not None:
            pointer = self._pointer_of(heir)
        if pointer is None and var in self._owned:
            pointer = self._places[var]
        if pointer is None:
            size = stored.size_bytes
            if stored.size > FULLY_UNROLLED:
                pointer = self._allocate(var, size)
            elif stored.size > 1 or var in self.schedule.in_memory:
                pointer = self.b.alloca_bytes(max(size, 1))
        stored.pointer = pointer
        self.env[var] = stored
        return stored

    def _allocate(self, var: Var, size_bytes: int) -> Value:
        offset = self.program.frame.arena.allocate(size_bytes)
        self._owned[var] = offset
        self._places[var] = pointer = self.program.frame.at(offset)
        return pointer

    def _pointer_of(self, var: Var) -> Value:
        """Where a variable that is computed later will be."""
        passed = []
        while var in self._heirs and var not in self.destinations:
            passed.append(var)
            var = self._last_heirs.get(var, self._heirs[var])
        self._last_heirs.update(dict.fromkeys(passed, var))
        pointer = self.destinations.get(var)
        if pointer is None:
            pointer = self._places.get(var)
        if pointer is None:
            aval = var.aval
            pointer = self._allocate(var, max(1, aval.size * aval.dtype.itemsize))  # type: ignore[union-attr]  # arrays
        return pointer

    def spill(self, var: Var) -> None:
        """Write elements that are in registers to the variable's memory."""
        stored = self.env[var]
        if stored.pointer is None:
            return
        for flat, number in stored.elements.items():
            self.e.store(number, self.b.offset(stored.pointer, self._bytes(stored, flat)))

    def _bytes(self, stored: Stored, flat: int) -> Value:
        return self.b.index(flat * stored.dtype.itemsize)

    def for_chunk(self, function: ChunkFunction, env: dict[Var, Stored]) -> Body:
        """The same body in another function, which does a part of a nest."""
        body = Body(function, self.jaxpr, env, {})
        assert self.schedule is not None
        body.schedule = self.schedule
        body.is_chunk = True
        return body

    def array(self, atom: Atom) -> Array:
        """An operand in memory."""
        stored = self.stored(atom)
        assert stored.pointer is not None
        return Array(stored.pointer, stored.shape, stored.dtype)

    def stored(self, atom: Atom) -> Stored:
        """An operand, in memory too; a number gets memory of its own."""
        if isinstance(atom, Var):
            return self.env[atom]
        number = self.e.constant(atom.aval.dtype, atom.value)
        pointer = self.b.alloca_bytes(atom.aval.dtype.itemsize)
        self.e.store(number, pointer)
        return Stored((), atom.aval.dtype, pointer, {0: number})

    def converted(self, x: Array, dtype: np.dtype) -> Array:
        """An array in another dtype, as a copy if it is one."""
        if x.dtype == dtype:
            return x
        copy = Array(self.workspace(max(1, x.size * dtype.itemsize)), x.shape, dtype)
        with self.e.count(x.size) as i:
            self.e.write(copy, i, self.e.cast(self.e.read(x, i), dtype))
        return copy

    def place_in_memory(self, var: Var) -> Stored:
        """Give a variable a place in memory, whatever its size."""
        stored = self.place(var)
        if stored.pointer is None:
            stored.pointer = self.b.alloca_bytes(max(stored.size_bytes, 1))
        return stored

    def element(self, stored: Stored, flat: int, lanes: int = 1) -> Number:
        """One element of a variable, or some in a row, from registers or from memory."""
        found = stored.register(flat)
        if found is None:
            assert stored.pointer is not None
            place = self.b.offset(stored.pointer, self._bytes(stored, flat))
            return self.e.load(stored.dtype, place, lanes)
        number, lane = found
        if number.lanes == lanes:
            return number
        if lanes == 1:
            return self.e.lane(number, lane)
        return self.e.pack([self.element(stored, flat + k) for k in range(lanes)])


def is_small(aval: Any) -> bool:
    """Whether an array lives in registers."""
    return bool(math.prod(aval.shape) <= FULLY_UNROLLED)
