"""The reroll pass: repeated straight-line code becomes loops again.

Here: ``reroll``, which turns blocks of equations that repeat into ``scan`` equations. Every value
is computed by the same operations from the same values as before, so that the results are the same
bits. It is meant for programs that a Python loop unrolled, whose machine code would be long to make
and long to load. Not here: how repeats are found (``rerolling.periods``, ``rerolling.repeats``),
which of them become loops (``rerolling.rolling``).

What all blocks read is a ``const``, what a block leaves to the next one is carried. What other
repeats made, one value per block, is stacked by them (``ys``) and scanned here (``xs``); the
backward sweep of a derivative scans the residuals of the forward sweep in reverse. Elements of an
array are scanned in place, numbers that differ become an array, indices that move are counted.
Values of single blocks that the rest of the program reads are slices of the stacked ones.

Inner loops are rolled first; the loop around them then repeats their ``scan``.

Layer: ``rerolling``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.control.loops import scan_p
from functrans.core.analyses import analysis, remember
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.lowering import Structured
from functrans.primitives.dynamic_slicing import (
    dynamic_embed_p,
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from functrans.primitives.elementwise import add_p
from functrans.primitives.movement import concatenate_p, stack_p, unstack_p
from functrans.primitives.slicing import BasicIndex, embed_p, slice_p
from functrans.primitives.structural import broadcast_to_p, reshape_p, weaken_p
from functrans.rerolling.periods import LITERAL, params_key, window_sizes
from functrans.rerolling.repeats import Place, Role, Run
from functrans.rerolling.rolling import (
    Key,
    Loop,
    Part,
    Plan,
    is_scanned_slice,
    plan_loops,
    walk_key,
)

MIN_SAVED = 200
"""Equations that a loop must save."""
_MAX_ROUNDS = 4
"""Loops around loops are rolled to this depth."""


@analysis
def reroll(jaxpr: Jaxpr) -> Jaxpr:
    """The program with repeated blocks of equations as ``scan`` equations.

    Args:
      jaxpr: a program, best a simplified one; the result is cached with it.

    Returns:
      A program with the same arguments and results, to the last bit; the same object where nothing
      repeats often enough. Equations with effects or annotations stay where they are.
    """
    result = _with_rolled_programs(jaxpr)
    for _ in range(_MAX_ROUNDS):
        if _weight(result) < MIN_SAVED:
            break
        rolled = _roll_once(result)
        if rolled is result:
            break
        result = rolled
    remember(result, reroll, result)
    return result


def _weight(jaxpr: Jaxpr) -> int:
    return sum(map(_weight_of, jaxpr.eqns))


def _weight_of(eqn: Equation) -> int:
    """Equations that an equation stands for."""
    if not eqn.primitive.holds_programs:
        return 1
    return 1 + sum(len(sub.eqns) for sub in subjaxprs(eqn.params))


def _with_rolled_programs(jaxpr: Jaxpr) -> Jaxpr:
    """Roll the programs of control flow."""
    eqns = list(jaxpr.eqns)
    renewed: dict[Any, Equation] = {}
    for i, eqn in enumerate(eqns):
        if not eqn.primitive.holds_programs or not isinstance(eqn.primitive.lower, Structured):
            continue
        params = {name: _rolled_param(value) for name, value in eqn.params.items()}
        if any(params[name] is not value for name, value in eqn.params.items()):
            renewed[eqn] = eqns[i] = replace(eqn, params=params)
    if not renewed:
        return jaxpr
    notes = {renewed.get(key, key): values for key, values in jaxpr.annotations.items()}
    return replace(jaxpr, eqns=tuple(eqns), annotations=notes, cache={})


def _rolled_param(value: object) -> Any:
    if isinstance(value, Jaxpr):
        return reroll(value)
    if type(value) is tuple and any(isinstance(item, Jaxpr) for item in value):
        return tuple([reroll(item) if isinstance(item, Jaxpr) else item for item in value])
    return value


def _roll_once(jaxpr: Jaxpr) -> Jaxpr:
    """Roll the innermost repeats."""
    plan = plan_loops(jaxpr, [_weight_of(eqn) for eqn in jaxpr.eqns], MIN_SAVED)
    return jaxpr if plan is None else _Writer(jaxpr, plan).write()


# writing ----------------------------------------------------------------------------------------


class _Writer:
    """Writes the program that a plan describes."""

    def __init__(self, jaxpr: Jaxpr, plan: Plan) -> None:
        self.jaxpr = jaxpr
        self.plan = plan
        self.table = plan.table
        self.eqns: list[Equation] = []
        self.consts: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
        self.stacked: dict[Key, Var] = {}
        self._arrays: dict[Hashable, Var] = {}
        self.bodies: dict[Hashable, Jaxpr] = {}
        self.given: dict[Key | None, Var] = {}
        """Results of the program's own stacks that are what a loop stacks."""
        for row, (first, *others) in plan.wide.items():
            key = first.array
            if key is None or len(key) == 1 or others:
                continue
            run = key[0]
            if (first.first, first.count) == (0, run.repeats) and not plan.loops[run].reverse:
                self.given.setdefault(key, self.table.eqns[row].outputs[0])

    def write(self) -> Jaxpr:
        """The whole program."""
        eqns = self.jaxpr.eqns
        row = 0
        for run, loop in self.plan.loops.items():
            self._copy(row, run.start)
            self._write_loop(loop)
            row = run.stop
        self._copy(row, len(eqns))
        return replace(
            self.jaxpr,
            constvars=tuple(self.consts),
            consts=tuple(self.consts.values()),
            eqns=tuple(_without_dead_slices(self.eqns, self.jaxpr.outvars)),
            cache={},
        )

    def _copy(self, start: int, stop: int) -> None:
        """Straight-line equations as they are, but for stacks of what loops have stacked."""
        wide = self.plan.wide
        if not wide:
            self.eqns += self.jaxpr.eqns[start:stop]
            return
        for row in range(start, stop):
            eqn = self.jaxpr.eqns[row]
            if row not in wide:
                self.eqns.append(eqn)
            elif self.given.get(wide[row][0].array) is not eqn.outputs[0]:
                self._assemble(wide[row], eqn, eqn.outputs[0])

    def emit(
        self,
        like: Equation,
        primitive: object,
        inputs: Sequence[Atom],
        out: Var | None = None,
        **params: object,
    ) -> Var:
        """Append an equation of one result that belongs to the user's line of another one."""
        return _emit(self.eqns, like, primitive, inputs, out, params)

    # arrays

    def array(self, part: Part, like: Equation, reverse: bool) -> Var:
        """The elements of a part, stacked."""
        if part.array is None:
            atoms = [self.table.atom(*value) for value in part.values]
            return self.emit(like, stack_p, atoms[::-1] if reverse else atoms, axis=0)
        if len(part.array) == 1:
            whole = self.table.atom(*part.array[0])
            first, step = part.first, part.step
        else:
            run = part.array[0]
            whole = self.stacked[part.array]
            first, step = part.first, part.step
            if self.plan.loops[run].reverse:
                first, step = run.repeats - 1 - first, -step
        assert isinstance(whole, Var)
        if reverse:
            first, step = first + (part.count - 1) * step, -step
        if first == 0 and step == 1 and part.count == whole.aval.shape[0]:
            return whole
        found = self._arrays.get((whole, first, step, part.count))
        if found is None:
            stop: int | None = first + step * part.count
            entry = slice(first, None if stop < 0 else stop, None if step == 1 else step)  # type: ignore[operator]  # a number
            found = self.emit(like, slice_p, (whole,), index=BasicIndex((entry,)))
            self._arrays[whole, first, step, part.count] = found
        return found

    def _assemble(self, parts: Sequence[Part], like: Equation, out: Var) -> None:
        """Parts one behind the other."""
        pieces = [self.array(part, like, reverse=False) for part in parts]
        self.emit(like, concatenate_p, pieces, out, axis=0)

    def scanned(self, parts: Sequence[Part], like: Equation, reverse: bool) -> Var:
        """The array that a loop scans."""
        if reverse:
            parts = parts[::-1]
        if len(parts) == 1:
            return self.array(parts[0], like, reverse)
        pieces = [self.array(part, like, reverse) for part in parts]
        return self.emit(like, concatenate_p, pieces, axis=0)

    def numbers(self, values: Sequence[Any], dtype: np.dtype, reverse: bool) -> Var:
        """A constant array."""
        array = np.array(values[::-1] if reverse else values, dtype)
        var = Var(ShapedArray(array.shape, array.dtype))
        self.consts[var] = array
        return var

    def anything(self, aval: Any, like: Equation) -> Atom:
        """A value of a type, for what a loop gives and never reads."""
        zero = np.zeros((), aval.dtype)
        scalar = Literal(zero.item() if aval.weak else zero[()])
        if not aval.shape:
            return scalar
        return self.emit(like, broadcast_to_p, (scalar,), shape=aval.shape)

    # loops

    def _write_loop(self, loop: Loop) -> None:
        run = loop.run
        like = self.table.eqns[run.start]
        block = _Block(self, loop)
        jaxpr = block.program()
        outputs = [
            *[self._final(run, key) for key in block.carried],
            *[Var(counter.aval) for counter in block.counters.values()],
            *[
                self.given.get((run, *key)) or Var(_stacked(atom.aval, run.repeats))
                for key, atom in zip(loop.ys, block.stacked, strict=True)
            ],
        ]
        n_carry = len(block.carried) + len(block.counters)
        for (place, number, shift), var in zip(loop.ys, outputs[n_carry:], strict=True):
            self.stacked[run, place, number, shift] = var
        self.eqns.append(
            Equation(
                scan_p,
                (*block.consts, *block.starts, *block.xs),
                {
                    "jaxpr": jaxpr,
                    "n_consts": len(block.consts),
                    "n_carry": n_carry,
                    "length": run.repeats,
                    "reverse": loop.reverse,
                    "unroll": 1,
                },
                tuple(outputs),
                like.source,
                like.scope,
            )
        )
        self._write_singles(loop, block.lags)

    def _final(self, run: Run, key: tuple[int, int, int]) -> Var:
        """The variable that is carried out of the last block."""
        place, number, lag = key
        return self.table.eqns[run.stop - lag * run.period + place].outputs[number]

    def _write_singles(self, loop: Loop, carried: Mapping[Place, int]) -> None:
        """Values of single blocks, except those that were carried out of the loop."""
        run = loop.run
        for origin, number in loop.singles:
            block, position = divmod(origin - run.start, run.period)
            if run.repeats - block <= carried.get((position, number), 0):
                continue
            eqn = self.table.eqns[origin]
            out = eqn.outputs[number]
            stack = self.stacked[run, position, number, 0]
            at = run.repeats - 1 - block if loop.reverse else block
            index = BasicIndex((at,))
            if out.aval.weak:  # type: ignore[union-attr]  # blocks are of arrays only
                strong = self.emit(eqn, slice_p, (stack,), index=index)
                self.emit(eqn, weaken_p, (strong,), out)
            else:
                self.emit(eqn, slice_p, (stack,), out, index=index)


def _stacked(aval: Any, count: int) -> ShapedArray:
    return ShapedArray((count, *aval.shape), aval.dtype)


def _emit(
    eqns: list[Equation],
    like: Equation,
    primitive: Any,
    inputs: Sequence[Atom],
    out: Var | None,
    params: dict[str, Any],
) -> Var:
    if out is None:
        (aval,) = primitive.abstract_eval(*[x.aval for x in inputs], **params)
        out = Var(aval)
    eqns.append(Equation(primitive, tuple(inputs), params, (out,), like.source, like.scope))
    return out


def _text(jaxpr: Jaxpr) -> Hashable:
    """Equal for programs that do the same for the same lines of the user's."""
    names: dict[Any, int] = {var: i for i, var in enumerate(jaxpr.invars)}
    rows = []
    for eqn in jaxpr.eqns:
        inputs = tuple([names[x] if isinstance(x, Var) else x for x in eqn.inputs])
        for var in eqn.outputs:
            names[var] = len(names)
        avals = tuple([var.aval for var in eqn.outputs])
        rows.append((eqn.primitive, inputs, params_key(eqn.params), avals, eqn.source, eqn.scope))
    outs = tuple([names[atom] for atom in jaxpr.outvars])
    return jaxpr.in_avals, tuple(rows), outs


def _without_dead_slices(eqns: Sequence[Equation], outvars: Sequence[Atom]) -> list[Equation]:
    """The equations without slices that were only read by blocks which now scan the array."""
    live: set[Any] = {atom for atom in outvars if isinstance(atom, Var)}
    kept = []
    for eqn in reversed(eqns):
        if eqn.primitive not in (slice_p, unstack_p) or any(v in live for v in eqn.outputs):
            kept.append(eqn)
            live.update(atom for atom in eqn.inputs if isinstance(atom, Var))
    kept.reverse()
    return kept


class _Block:
    """The body of a loop, and what it is called with.

    Attributes:
      consts: operands that stay the same.
      carried: carried values: place, number and lag.
      lags: the largest lag of each.
      counters: moving indices that are counted, by first value and step.
      starts: what carried values and counters start with.
      xs: arrays that are scanned.
      stacked: atoms of the body that are stacked.
    """

    def __init__(self, writer: _Writer, loop: Loop) -> None:
        self.writer = writer
        self.loop = loop
        self.run = loop.run
        self.table = writer.table
        run = self.run
        self.like = self.table.eqns[run.start]
        self.eqns: list[Equation] = []
        self.consts: list[Atom] = []
        self.const_vars: dict[Place, Var] = {}
        self.carried: dict[tuple[int, int, int], Var] = {}
        self.starts: list[Atom] = []
        self.lags: dict[Place, int] = dict(run.lags)
        self.lags.update({place: 1 for place in loop.last if (*place, 0) not in loop.ys})
        for (place, number), lags in sorted(self.lags.items()):
            aval = self.table.eqns[run.start + place].outputs[number].aval
            for lag in range(1, lags + 1):
                key = (place, number, lag)
                self.carried[key] = Var(aval)
                initial = run.initial.get(key)
                if initial is not None:
                    self.starts.append(self.table.atom(*initial))
                else:
                    self.starts.append(writer.anything(aval, self.like))
        self.counters: dict[tuple[int, int], Var] = {}
        self.xs: list[Var] = []
        self.x_vars: list[Var] = []
        self.scanned: dict[Hashable, Var] = {}
        self.made: list[tuple[Atom, ...]] = []
        self.stacked: list[Atom] = []

    def program(self) -> Jaxpr:
        """Write the body."""
        run = self.run
        for position in range(run.period):
            self._write_equation(position)
        outs: list[Atom] = [
            self._made(place, number, lag - 1) for place, number, lag in self.carried
        ]
        for (first, step), counter in self.counters.items():
            self.starts.append(Literal(first))
            following = Var(counter.aval)
            self.eqns.append(
                Equation(add_p, (counter, Literal(step)), {}, (following,), self.like.source)
            )
            outs.append(following)
        self.stacked = [self._made(*key) for key in self.loop.ys]
        invars = (
            *self.const_vars.values(),
            *self.carried.values(),
            *self.counters.values(),
            *self.x_vars,
        )
        name = self.writer.jaxpr.name
        jaxpr = Jaxpr((), (), invars, tuple(self.eqns), (*outs, *self.stacked), name)
        return self.writer.bodies.setdefault(_text(jaxpr), jaxpr)

    def _made(self, place: int, number: int, lag: int) -> Atom:
        return self.carried[place, number, lag] if lag else self.made[place][number]

    # operands

    def _operand(self, position: int, column: int) -> Atom:
        run = self.run
        role = run.role[position, column]
        if role == Role.VALUE:
            number = run.source(position, column, run.repeats - 1)[1]
            return self._made(
                int(run.place[position, column]), number, int(run.lag[position, column])
            )
        first = run.source(position, column, 0)
        if role == Role.INVARIANT:
            return self.table.literals[first[1]] if first[0] == LITERAL else self._const(first)
        if role == Role.WALKING:
            aval = self.table.eqns[run.start + position].inputs[column].aval
            return self._scan(walk_key(run, position, column), aval)
        return self._number(position, column)

    def _const(self, place: Place) -> Var:
        var = self.const_vars.get(place)
        if var is None:
            atom = self.table.atom(*place)
            self.consts.append(atom)
            var = self.const_vars[place] = Var(atom.aval)
        return var

    def _scan(self, key: Key, aval: Any, array: Var | None = None) -> Var:
        """The entry of an array that is scanned, of the type that the block wants."""
        var = self.scanned.get(key)
        if var is None:
            writer = self.writer
            if array is None:
                array = writer.scanned(self.loop.parts[key], self.like, self.loop.reverse)
            self.xs.append(array)
            entry = Var(aval.strong())
            self.x_vars.append(entry)
            var = entry
            if aval.weak:
                var = _emit(self.eqns, self.like, weaken_p, (entry,), None, {})
            self.scanned[key] = var
        return var

    def _number(self, position: int, column: int) -> Var:
        """A literal that differs from block to block."""
        places = self.run.sources(position, column)
        key = ("numbers", tuple([number for _, number in places]))
        aval = self.table.literals[places[0][1]].aval
        if key in self.scanned:
            return self.scanned[key]
        values = [self.table.literals[number].value for _, number in places]
        array = self.writer.numbers(values, aval.dtype, self.loop.reverse)
        return self._scan(key, aval, array)

    # equations

    def _write_equation(self, position: int) -> None:
        run = self.run
        eqn = self.table.eqns[run.start + position]
        n = int(self.table.n_operands[run.start + position])
        if (run.role[position] == Role.MOVING).any():
            if is_scanned_slice(run, position):
                entry = self._scan((position,), eqn.outputs[0].aval)
                self.made.append((entry,))
                return
            operands = [self._operand(position, column) for column in range(n)]
            self.made.append((self._moving(position, eqn, operands),))
            return
        inputs = tuple([self._operand(position, column) for column in range(n)])
        outputs = tuple([Var(var.aval) for var in eqn.outputs])
        self.eqns.append(replace(eqn, inputs=inputs, outputs=outputs))
        self.made.append(outputs)

    def _moving(self, position: int, eqn: Equation, operands: list[Atom]) -> Var:
        """A slice, embed or update whose window moves."""
        run = self.run
        starts: list[Atom] = []
        for column in range(len(operands), len(operands) + len(window_sizes(eqn))):
            first = run.source(position, column, 0)[1]
            step = int(run.step_number[position, column])
            if step:
                counter = self.counters.get((first, step))
                if counter is None:
                    counter = self.counters[first, step] = Var(Literal(first).aval)
                starts.append(counter)
            else:
                starts.append(Literal(first))
        sizes = window_sizes(eqn)
        shape = eqn.outputs[0].aval.shape
        if eqn.primitive is slice_p:
            out = self._emit(eqn, dynamic_slice_p, (*operands, *starts), sizes=sizes)
            return out if sizes == shape else self._emit(eqn, reshape_p, (out,), shape=shape)
        *others, window = operands
        if window.aval.shape != sizes and (eqn.primitive is embed_p or window.aval.shape):
            window = self._emit(eqn, reshape_p, (window,), shape=sizes)
        if eqn.primitive is embed_p:
            return self._emit(eqn, dynamic_embed_p, (window, *starts), shape=shape)
        inputs = (*others, window, *starts)
        return self._emit(eqn, dynamic_update_slice_p, inputs, sizes=sizes)

    def _emit(
        self, like: Equation, primitive: object, inputs: Sequence[Atom], **params: object
    ) -> Var:
        return _emit(self.eqns, like, primitive, inputs, None, params)
