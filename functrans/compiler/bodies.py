"""Programs and the programs in them as instructions.

Here: ``BodyWriter``, which goes through a schedule item by item: loop nests, views, routines and
control flow, each with its operands and results in memory or registers. Not here: loop nests
(``compiler.nests``), loops and branches over programs (``compiler.blocks``), the function around
it all (``compiler.programs``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functrans.compiler.nests import MustStore, NestWriter
from functrans.compiler.packs import packed_variables
from functrans.compiler.parallel import write_in_chunks
from functrans.compiler.parts import is_joined, joined_results, updates_of_parts
from functrans.compiler.places import Body, is_small
from functrans.compiler.prepare import prepare
from functrans.compiler.schedule import Call, Item, Nest, Schedule, View, routine_of, schedule
from functrans.compiler.storage import Stored
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.lowering import Structured
from functrans.emitter.routine import Array
from functrans.emitter.types import Value

FEW_ATTEMPTS = 8
"""Plans that are made again as soon as one nest cannot be written, before all nests are tried."""

Writers = list[NestWriter | None]
"""Per item of a schedule, what writes it if it is a nest."""


class BodyWriter(Body):
    """Writes one program, or one block of control flow."""

    # writing -------------------------------------------------------------------------------------

    def plan(self) -> Writers:
        """Schedule the program, so that every nest can be written.

        The writers refer to this object, which therefore does not keep them.
        """
        forced: set[Var] = set()
        by_routine = set(updates_of_parts(self.jaxpr)) | set(joined_results(self.jaxpr))
        explored: dict[Any, NestWriter] = {}
        attempt = 0
        while True:
            attempt += 1
            self.schedule = schedule(self.jaxpr, forced, by_routine)
            self.available = set(self.env)
            writers: Writers = []
            requests: list[MustStore] = []
            for number, item in enumerate(self.schedule.items):
                writer = None
                if isinstance(item, Nest):
                    # most nests are the same as before something else had to be stored
                    key = (item.key, self.schedule.reads[number])
                    writer = explored.get(key)
                    if writer is None:
                        writer = NestWriter(self, item)
                        try:
                            writer.explore()
                            explored[key] = writer
                        except MustStore as request:
                            requests.append(request)
                            if attempt <= FEW_ATTEMPTS:
                                break
                    self.schedule.items[number] = writer.nest
                    self.available.update(root.var for root in item.roots)
                else:
                    self.available.update(item.eqn.outputs)
                writers.append(writer)
            if not requests:
                self.packed = packed_variables(self.jaxpr, self.schedule.in_memory)
                return writers
            for needed in requests:
                if needed.var in forced and not needed.by_routine:
                    raise needed  # a fault: once is enough
            for needed in requests:
                (by_routine if needed.by_routine else forced).add(needed.var)

    def write(self, writers: Writers | None = None) -> None:
        """Write the whole program; its results are in ``env``, and in their destinations.

        Args:
          writers: what :meth:`plan_ahead` gave, if that was called.
        """
        if writers is None:
            writers = self.plan()
        assert self.schedule is not None
        dying = self._last_reads(self.schedule)
        if not self._occupied:
            self._place_parts()
        self._find_heirs(self.schedule, writers, dying)
        for number, (item, writer) in enumerate(zip(self.schedule.items, writers, strict=True)):
            self.b.begin((self.jaxpr, number))
            if writer is not None:
                if not write_in_chunks(self, writer):
                    writer.write()
            elif isinstance(item, View):
                self._write_view(item.eqn)
            else:
                assert isinstance(item, Call)
                self._write_call(item.eqn)
            self.b.end()
            for offset in self._temporary:
                self.program.frame.arena.release(offset)
            self._temporary.clear()
            for var in dying[number]:
                if var in self._owned:
                    self.program.frame.arena.release(self._owned.pop(var))
        for offset in self._owned.values():
            self.program.frame.arena.release(offset)
        self._owned.clear()

    def start(
        self,
        env: dict[Var, Stored],
        destinations: Mapping[Var, Value],
        occupied: frozenset[Var] = frozenset(),
    ) -> None:
        """Say where the arguments are and where results go, after planning ahead.

        Args:
          env: the arguments.
          destinations: places of results.
          occupied: results whose places hold arguments until they are computed.
        """
        self.env = env
        self.destinations = destinations
        self._occupied = occupied

    def plan_ahead(self) -> Writers:
        """Plan before the arguments have places."""
        self.env = {
            var: Stored(var.aval.shape, var.aval.dtype)
            for var in (*self.jaxpr.constvars, *self.jaxpr.invars)
        }
        return self.plan()

    def may_overwrite(self, writers: Writers, argument: Var, result: Var) -> bool:
        """Whether a result can be computed in the memory of an argument, after planning ahead.

        It can where the only nest that reads the argument writes the result in the same places, or
        where the last item that reads it is a routine or a loop that takes over its memory.
        """
        assert self.schedule is not None
        if argument in self.jaxpr.outvars:
            return False
        for number, item in enumerate(self.schedule.items):
            if isinstance(item, Call) and result in item.eqn.outputs:
                return self._may_take_over(number, item.eqn, argument, result)
        items = zip(self.schedule.items, self.schedule.reads, writers, strict=True)
        found = False
        for item, reads, writer in items:
            made = {r.var: r for r in item.roots} if isinstance(item, Nest) else {}
            if argument in reads:
                if writer is None or result not in made:
                    return False
                if not writer.reads_where_it_writes(argument, made[result]):
                    return False
                found = True
            elif result in made and not found:
                return False  # written before it is read
        return found

    def _may_take_over(self, number: int, eqn: Equation, argument: Var, result: Var) -> bool:
        """Whether an item that is no nest can write its result over an argument."""
        assert self.schedule is not None
        shown = {argument}
        for item in self.schedule.items:
            if isinstance(item, View) and item.eqn.inputs[0] in shown:
                shown.add(item.eqn.outputs[0])
        if not shown.isdisjoint(self.jaxpr.outvars):
            return False
        if any(not shown.isdisjoint(reads) for reads in self.schedule.reads[number + 1 :]):
            return False
        positions = [k for k, atom in enumerate(eqn.inputs) if atom in shown]
        if not positions:
            return True
        if not isinstance(eqn.primitive.lower, Structured):
            routine = routine_of(eqn)
            return (
                routine is not None and eqn.outputs[0] is result and positions == [routine.in_place]
            )
        loop = _loop_of(eqn)
        place = eqn.outputs.index(result)
        if loop is None:
            return False
        n_first, n_consts, jaxpr = loop
        if positions != [n_first + n_consts + place]:
            return False
        jaxpr = prepare(jaxpr)
        block = BodyWriter(self.program, jaxpr, {}, {})
        writers = block.plan_ahead()
        before, after = jaxpr.invars[n_consts + place], jaxpr.outvars[place]
        return isinstance(after, Var) and block.may_overwrite(writers, before, after)

    def heirs(self, writers: Writers) -> Mapping[Var, Var]:
        """Variables that are in the memory of one computed later, after planning."""
        assert self.schedule is not None
        self._find_heirs(self.schedule, writers, self._last_reads(self.schedule))
        return self._heirs

    def _find_heirs(self, plan: Schedule, writers: Writers, dying: list[list[Var]]) -> None:
        """Let a result have the memory of what it is computed from, where that is not read again.

        A temporary array of the size of the result is saved, and the memory traffic for it.
        """
        viewed = {
            atom for item in plan.items if isinstance(item, View) for atom in item.eqn.inputs
        } | {item.eqn.outputs[0] for item in plan.items if isinstance(item, View)}
        made_by_nest = {
            root.var for item in plan.items if isinstance(item, Nest) for root in item.roots
        }
        made = made_by_nest | {
            item.eqn.outputs[0]
            for item in plan.items
            if isinstance(item, Call) and routine_of(item.eqn) is not None
        }
        taken: set[Var] = set()

        def may_pass(var: Var, heir: Var) -> bool:
            """Whether the memory of a variable may be that of another one, if nests agree."""
            return (
                var not in self.env
                and var not in self.destinations
                and not {var, heir} & viewed
                and heir not in taken
                and heir not in self._occupied
                and _same_memory(var, heir)
            )

        for number, (item, writer) in enumerate(zip(plan.items, writers, strict=True)):
            if isinstance(item, Call):
                changed = _changed_in_place(item.eqn)
                if changed is not None and changed in dying[number] and changed in made:
                    heir = item.eqn.outputs[0]
                    if may_pass(changed, heir):
                        self._heirs[changed] = heir
                        taken.add(heir)
            if writer is None or not isinstance(item, Nest):
                continue
            own = {root.var for root in item.roots}
            for var in dying[number]:
                if var not in made_by_nest or var in own:
                    continue
                for root in item.roots:
                    if may_pass(var, root.var) and writer.reads_where_it_writes(var, root):
                        self._heirs[var] = root.var
                        taken.add(root.var)
                        break

    def parts_of_results(self) -> dict[Var, tuple[Var, int]]:
        """Variables that can be computed in a result's memory, each with the result and its offset.

        They are what a result is a view of, and what large results are joined from along their
        first axis. Each has one place; what has memory of its own already is copied.
        """
        assert self.schedule is not None
        shown: dict[Var, Item] = {}
        made: set[Var] = set()
        for item in self.schedule.items:
            if isinstance(item, View) or (isinstance(item, Call) and is_joined(item.eqn)):
                shown[item.eqn.outputs[0]] = item
            elif isinstance(item, Nest):
                made.update(root.var for root in item.roots)
            elif routine_of(item.eqn) is not None:
                made.update(item.eqn.outputs)
        found: dict[Var, tuple[Var, int]] = {}
        results = set(self.jaxpr.outvars)
        for out in self.jaxpr.outvars:
            pending = [(out, 0)] if isinstance(out, Var) and out in shown else []
            while pending:
                var, offset = pending.pop()
                for x in shown[var].eqn.inputs:  # type: ignore[union-attr]  # no nest
                    aval: Any = x.aval
                    is_free = x not in results and x not in found and not is_small(aval)
                    if isinstance(x, Var) and isinstance(out, Var) and is_free:
                        if x in shown:
                            pending.append((x, offset))
                        if x in shown or x in made:
                            found[x] = (out, offset)
                    offset += aval.size * aval.dtype.itemsize
        return found

    def _part_of(self, start: Value, offset: int) -> Value:
        """An address in an array: the same value each time, so that equal ones are known to be."""
        if not offset:
            return start
        found = self._parts.get((start.text, offset))
        if found is None:
            found = self._parts[start.text, offset] = self.b.offset(start, self.b.index(offset))
        return found

    def _place_parts(self) -> None:
        """Let parts of results be computed where they will be read."""
        places: dict[Var, Value] = {}
        for var, (out, offset) in self.parts_of_results().items():
            start = self.destinations.get(out)
            if start is not None:
                places[var] = self._part_of(start, offset)
        if places:
            self.destinations = {**self.destinations, **places}

    def _last_reads(self, plan: Schedule) -> list[list[Var]]:
        """Per item, the variables whose memory is free afterwards; views keep what they show."""
        root: dict[Var, Var] = {}
        last: dict[Var, int] = {}
        for number, (item, reads) in enumerate(zip(plan.items, plan.reads, strict=True)):
            for var in reads:
                last[root.get(var, var)] = number
            if isinstance(item, View):
                (x,) = item.eqn.inputs
                if isinstance(x, Var):
                    root[item.eqn.outputs[0]] = root.get(x, x)
            made = [r.var for r in item.roots] if isinstance(item, Nest) else item.eqn.outputs
            for var in made:
                last.setdefault(root.get(var, var), number)
        for atom in self.jaxpr.outvars:
            if isinstance(atom, Var):
                last[root.get(atom, atom)] = len(plan.items)
        dying: list[list[Var]] = [[] for _ in plan.items]
        for var, number in last.items():
            if number < len(plan.items):
                dying[number].append(var)
        return dying

    def _write_view(self, eqn: Equation) -> None:
        (x,) = eqn.inputs
        out = eqn.outputs[0]
        source = self.env[x]  # type: ignore[index]  # views are taken of variables
        target = self.destinations.get(out)
        stored = Stored(out.aval.shape, out.aval.dtype, source.pointer)
        if target is not None:
            assert source.pointer is not None
            shape = (source.size,)
            self.e.copy(
                Array(source.pointer, shape, source.dtype), Array(target, shape, source.dtype)
            )
            stored.pointer = target
        self.env[out] = stored

    def _write_call(self, eqn: Equation) -> None:
        lower = eqn.primitive.lower
        if isinstance(lower, Structured):
            self.whole.write_block(self, lower.kind, eqn)
            return
        routine = routine_of(eqn)
        assert routine is not None
        self.program.at_equation(eqn)
        operands = [self.array(atom) for atom in eqn.inputs]
        dtypes = [eqn.outputs[0].aval.dtype if eqn.outputs else None] * len(operands)
        results = []
        for var in eqn.outputs:
            stored = self.place_in_memory(var)
            assert stored.pointer is not None
            results.append(Array(stored.pointer, stored.shape, stored.dtype))
        if is_joined(eqn):
            self._join(operands, results[0])
            return
        if eqn.primitive.name == "dot_general":
            operands = [
                self.converted(x, dtype)  # type: ignore[arg-type]  # it has a result
                for x, dtype in zip(operands, dtypes, strict=True)
            ]
        routine.write(self.e, operands, results, **eqn.params)

    def _join(self, parts: list[Array], whole: Array) -> None:
        """Copy the parts of an array that are not in their places."""
        start = 0
        for part in parts:
            place = replace(whole, pointer=self._part_of(whole.pointer, start), shape=part.shape)
            self.e.copy(part, place)
            start += part.size * part.dtype.itemsize


def _changed_in_place(eqn: Equation) -> Var | None:
    """The operand whose memory the first result of a routine may take over, if there is one."""
    routine = routine_of(eqn)
    if routine is None or routine.in_place is None or not eqn.outputs:
        return None
    operand = eqn.inputs[routine.in_place]
    return operand if isinstance(operand, Var) and eqn.inputs.count(operand) == 1 else None


def _loop_of(eqn: Equation) -> tuple[int, int, Jaxpr] | None:
    """Of a loop: operands that its body does not see, constants of its body, and the body."""
    params = eqn.params
    if eqn.primitive.name == "scan":
        return int(params["length"] is None), params["n_consts"], params["jaxpr"]
    if eqn.primitive.name == "while":
        return params["n_cond_consts"], params["n_body_consts"], params["body_jaxpr"]
    return None


def _same_memory(first: Var, second: Var) -> bool:
    """Whether two large arrays have elements of one width, in the same places."""
    a: Any = first.aval
    b: Any = second.aval
    return bool(a.shape == b.shape and a.dtype.itemsize == b.dtype.itemsize and not is_small(a))
