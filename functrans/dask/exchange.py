"""Programs with collectives on workers: phases of shards, and exchanges between them.

Here: ``evaluate_shards``. Not here: how a program is cut (``phases``), what users call
(``shards``).

A phase is a task for each shard, and a collective a tree of tasks over shards, eight at a time, in
order, whose result goes to all. Values stay on the workers; what the client holds are references.
Phases without loops are one graph. A loop that holds collectives is driven by the client, a graph
for each of its steps; it waits only for the condition of a ``while_loop``.

Layer: ``dask``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from functrans.control.collectives import all_gather_p, pmax_p, pmin_p
from functrans.control.loops import scan_p, scan_shape
from functrans.control.native import run_silently
from functrans.core.avals import Tape
from functrans.core.jaxpr import Jaxpr, Var
from functrans.dask.chunks import Chunks
from functrans.dask.phases import Exchange, cut
from functrans.dask.running import Package, checked_leaves, on_workers, received
from functrans.dask.scheduling import client as current_client
from functrans.dask.scheduling import schedule
from functrans.dask.totals import FAN_IN
from functrans.errors import UnsupportedOperationError
from functrans.passes.programs import split
from functrans.passes.staging import source_text
from functrans.records import dataclass

PENDING_TASKS = 256
"""Steps of a loop are submitted when they are so many tasks."""


class Value:
    """The result of a task, a tuple of values, which lives as long as somebody refers to it."""

    __slots__ = ("__weakref__", "key", "node")

    def __init__(self, key: Hashable, node: Any = None) -> None:
        self.key = key
        self.node = node


@dataclass(frozen=True, slots=True, eq=False)
class Ref:
    """A value of each shard: a place in results of tasks, one for all shards or one for each.

    Attributes:
      values: the results.
      place: which value of them.
      row: which entry along the first axis; ``None`` for the whole.
    """

    values: tuple[Value, ...]
    place: int
    row: int | None = None

    def of(self, shard: int) -> Value:
        """The result in which the value of a shard is."""
        return self.values[0] if len(self.values) == 1 else self.values[shard]


Picks = Sequence[tuple[int, int, int | None]]
"""Which results of tasks hold values, where there, and which row."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A tape: what each iteration of a loop gave, in references."""

    each: list[Any]


# on the driver ----------------------------------------------------------------------------------


class Runner:
    """Tasks of one call: those that are not submitted yet, and what they need."""

    def __init__(self, name: str, count: int, axis_name: str) -> None:
        self.client = current_client()
        self.label = f"{name}-{uuid4().hex}"
        self.count = count
        self.axis_name = axis_name
        self.graph: dict[Hashable, Any] = {}
        self.pending: list[weakref.ref[Value]] = []
        self.made = 0

    def task(self, function: Callable[..., Any], *args: Any) -> Value:
        """A task; values among its arguments, and in lists, are what it waits for."""
        from dask._task_spec import List, Task

        self.made += 1
        key = (self.label, self.made)
        given = [List(*map(self._needed, a)) if type(a) is list else self._needed(a) for a in args]
        self.graph[key] = Task(key, function, *given)
        value = Value(key)
        self.pending.append(weakref.ref(value))
        return value

    def _needed(self, value: Any) -> Any:
        from dask._task_spec import TaskRef

        if not isinstance(value, Value):
            return value
        if value.node is not None:
            self.graph[value.key] = value.node
        return TaskRef(value.key)

    def submit(self) -> None:
        """Hand over what is pending; results stay on the workers."""
        from dask._task_spec import DataNode

        values = [value for value in (own() for own in self.pending) if value is not None]
        keys = [value.key for value in values]
        graph = self._whole()
        if self.client is None:
            nodes = [DataNode(k, v) for k, v in zip(keys, schedule(graph, keys), strict=True)]
        else:
            nodes = self.client.get(graph, keys, sync=False)
        for value, node in zip(values, nodes, strict=True):
            value.node = node
        self.graph, self.pending = {}, []

    def fetch(self, values: Sequence[Value]) -> list[Any]:
        """Results of tasks."""
        for value in values:
            self._needed(value)
        found: list[Any] = schedule(self._whole(), [value.key for value in values])
        return found

    def _whole(self) -> Any:
        from dask.highlevelgraph import HighLevelGraph

        return HighLevelGraph.from_collections(self.label, self.graph, [])

    # programs

    def run(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        cuts = cut(jaxpr, self.axis_name)
        env: dict[Var, Any] = dict(zip(cuts.invars, args, strict=True))
        for phase in cuts.phases:
            if phase.outputs:
                key, node = on_workers(phase.program, self.client)
                program = Value(key, node)
                inputs = [env[var] for var in phase.inputs]
                values = tuple(
                    self.task(run_phase, program, (i, self.count), *self.picks(inputs, i))
                    for i in range(self.count)
                )
                env |= {var: Ref(values, place) for place, var in enumerate(phase.outputs)}
            loops = [own for own in phase.exchanges if _is_loop(own)]
            self._exchange([own for own in phase.exchanges if not _is_loop(own)], env)
            for loop in loops:
                self._loop(loop, env)
        return [env[var] for var in cuts.results]

    def picks(self, refs: Sequence[Ref], shard: int) -> tuple[Picks, list[Value]]:
        """Where values of a shard are: in which results, and where there."""
        values = list({id(v): v for v in (ref.of(shard) for ref in refs)}.values())
        slots = {id(value): slot for slot, value in enumerate(values)}
        return tuple((slots[id(r.of(shard))], r.place, r.row) for r in refs), values

    def _exchange(self, exchanges: Sequence[Exchange], env: dict[Var, Any]) -> None:
        """Run collectives that share a place between two phases."""
        if not exchanges:
            return
        kinds = tuple((own.eqn.primitive.name, own.eqn.params.get("axis", 0)) for own in exchanges)
        total = self.combined(kinds, [env[own.inputs[0]] for own in exchanges])
        for place, own in enumerate(exchanges):
            env[own.eqn.outputs[0]] = Ref((total,), place)

    def combined(self, kinds: tuple[tuple[str, int], ...], refs: Sequence[Ref]) -> Value:
        """The results of collectives of values of all shards."""
        level = [self.task(pick, kinds, *self.picks(refs, shard)) for shard in range(self.count)]
        while len(level) > FAN_IN:
            groups = (level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN))
            level = [self.task(combine, kinds, False, group) for group in groups]
        return self.task(combine, kinds, True, level)

    # loops

    def _loop(self, loop: Exchange, env: dict[Var, Any]) -> None:
        operands = [env[var] for var in loop.inputs]
        run = self._scan if loop.eqn.primitive is scan_p else self._while
        env.update(zip(loop.eqn.outputs, run(loop, operands), strict=True))

    def _step(self) -> None:
        if len(self.graph) >= PENDING_TASKS:
            self.submit()

    def _scan(self, loop: Exchange, operands: Sequence[Any]) -> list[Any]:
        shape = scan_shape(dict(loop.eqn.params))
        first, consts, carry, xs = shape.unpack(operands)
        length = shape.length
        if length is None:
            ((number,),) = self.fetch([self.task(take, *self.picks(first, 0))])
            length = int(number)
        xs = self._whole_rows(xs)
        rows: list[list[Any]] = []
        for i in reversed(range(length)) if shape.reverse else range(length):
            outs = self.run(
                loop.eqn.params["jaxpr"], [*consts, *carry, *(_entry(x, i) for x in xs)]
            )
            carry, ys = split(outs, len(carry))
            rows.append(ys)
            self._step()
        if shape.reverse:
            rows.reverse()
        avals = loop.eqn.params["jaxpr"].out_avals[len(carry) :]
        columns = [[row[place] for row in rows] for place in range(len(avals))]
        stacks = [
            Entries(column) if type(shape.stacked(aval)) is Tape else self._stacked(aval, column)
            for aval, column in zip(avals, columns, strict=True)
        ]
        return [*carry, *stacks]

    def _stacked(self, aval: Any, column: Sequence[Ref]) -> Ref:
        values = tuple(
            self.task(stack, (aval.shape, aval.dtype), *self.picks(column, shard))
            for shard in range(self.count)
        )
        return Ref(values, 0)

    def _whole_rows(self, refs: Sequence[Any]) -> list[Any]:
        """References to whole arrays, where some are entries of a loop around this one."""
        found = []
        for ref in refs:
            if type(ref) is Entries or ref.row is None:
                found.append(ref)
                continue
            values = tuple(
                self.task(take, *self.picks([ref], shard)) for shard in range(self.count)
            )
            found.append(Ref(values, 0))
        return found

    def _while(self, loop: Exchange, operands: Sequence[Any]) -> list[Any]:
        params = loop.eqn.params
        cond_consts, body_consts, carry = split(
            operands, params["n_cond_consts"], params["n_body_consts"]
        )
        tapes = [Entries([]) for _ in params["body_jaxpr"].outvars[len(carry) :]]
        while True:
            (holds,) = self.run(params["cond_jaxpr"], [*cond_consts, *carry])
            flags = self.combined((("all_gather", 0),), [holds])
            self.submit()
            ((found,),) = self.fetch([flags])
            if not found.any():
                return [*carry, *tapes]
            if not found.all():
                raise UnsupportedOperationError(
                    f"shard_map: the condition of a while_loop with collectives holds for "
                    f"{int(found.sum())} of {self.count} shards{source_text(loop.eqn)}; all take "
                    "part in a collective: make the condition of a psum or pmax, so that it is the "
                    "same for all"
                )
            outs = self.run(params["body_jaxpr"], [*body_consts, *carry])
            carry, ys = split(outs, len(carry))
            for tape, y in zip(tapes, ys, strict=True):
                tape.each.append(y)


def _entry(stacked: Any, i: int) -> Any:
    """What iteration ``i`` of a loop reads of an array or tape."""
    if type(stacked) is Entries:
        return stacked.each[i]
    return Ref(stacked.values, stacked.place, i)


def _is_loop(exchange: Exchange) -> bool:
    return "jaxpr" in exchange.eqn.params or "body_jaxpr" in exchange.eqn.params


def evaluate_shards(
    jaxpr: Jaxpr,
    chunks: Chunks,
    operands: Sequence[Any],
    mapped: Sequence[bool],
    summed: Sequence[bool],
    axis_name: str,
) -> list[Any]:
    """The results of a program ``(*part, *operands) -> results`` with collectives, for all shards.

    See ``totals.evaluate_parts`` for the arguments.
    """
    from dask._task_spec import List, TaskRef

    runner = Runner(jaxpr.name or "shard_map", len(chunks), axis_name)
    common = [v for v, is_mapped in zip(operands, mapped, strict=True) if not is_mapped]
    given = runner.task(hold, Package(common))
    each: list[Value] = []
    n_leaves = len(jaxpr.invars) - len(operands)
    expected = Package(jaxpr.in_avals[:n_leaves])
    own = [v for v, is_mapped in zip(operands, mapped, strict=True) if is_mapped]
    for i, keys in enumerate(chunks.keys):
        part = List(*map(TaskRef, keys))
        name = f"{chunks.name(i)} of the data"
        each.append(runner.task(hold_part, Package([v[i] for v in own]), part, expected, name))
    runner.graph.update(chunks.graph)
    places = iter(range(n_leaves, n_leaves + len(own)))
    shared = iter(range(len(common)))
    refs = [Ref(tuple(each), place) for place in range(n_leaves)]
    refs += [
        Ref(tuple(each), next(places)) if flag else Ref((given,), next(shared)) for flag in mapped
    ]
    outs = runner.run(jaxpr, refs)
    sums = [ref for ref, flag in zip(outs, summed, strict=True) if flag]
    stacks = [ref for ref, flag in zip(outs, summed, strict=True) if not flag]
    asked = []
    if stacks:
        kinds = (("psum", 0),) * len(stacks)
        asked += [
            runner.task(pick, kinds, *runner.picks(stacks, shard)) for shard in range(runner.count)
        ]
    if sums:
        asked.append(runner.combined((("psum", 0),) * len(sums), sums))
    found = runner.fetch(asked)
    totals = iter(found[-1] if sums else ())
    columns = iter(zip(*found[: runner.count], strict=True) if stacks else ())
    return [next(totals) if flag else np.stack(next(columns)) for flag in summed]


# on workers -------------------------------------------------------------------------------------


def hold(values: Package) -> tuple[Any, ...]:
    """Operands that all shards share."""
    return tuple(values.content)


def hold_part(own: Package, part: Sequence[Any], expected: Package, name: str) -> tuple[Any, ...]:
    """The data of a shard and its operands."""
    return (*checked_leaves(part, expected.content, name), *own.content)


def picked(picks: Picks, values: Sequence[Any]) -> list[Any]:
    """Values out of results of tasks."""
    found = [(values[slot][place], row) for slot, place, row in picks]
    return [value if row is None else value[row] for value, row in found]


def run_phase(
    program: Package, shard: tuple[int, int], picks: Picks, values: Sequence[Any]
) -> tuple[Any, ...]:
    """The results of a phase for one shard."""
    number, count = shard
    try:
        return tuple(run_silently(received(program), [np.int64(number), *picked(picks, values)]))
    except Exception as error:
        error.add_note(f"in shard {number} of {count}")
        raise


def take(picks: Picks, values: Sequence[Any]) -> tuple[Any, ...]:
    """Values out of results of tasks, as a result."""
    return tuple(picked(picks, values))


def stack(aval: tuple[Any, Any], picks: Picks, values: Sequence[Any]) -> tuple[Any, ...]:
    """What the steps of a loop gave, stacked."""
    shape, dtype = aval
    found = picked(picks, values)
    return (np.stack(found) if found else np.zeros((0, *shape), dtype),)


_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "psum": np.add,
    pmax_p.name: np.maximum,
    pmin_p.name: np.minimum,
    all_gather_p.name: lambda one, other: [*one, *other],
}


def pick(kinds: Any, picks: Picks, values: Sequence[Any]) -> list[Any]:
    """What a shard gives to collectives."""
    found = picked(picks, values)
    return [
        [value] if kind == all_gather_p.name else value
        for (kind, _), value in zip(kinds, found, strict=True)
    ]


def combine(kinds: Any, is_last: bool, parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Collectives of what shards gave, in order."""
    found = list(parts[0])
    for other in parts[1:]:
        with np.errstate(all="ignore"):  # as programs run
            found = [
                _REDUCTIONS[kind](a, b) for (kind, _), a, b in zip(kinds, found, other, strict=True)
            ]
    if not is_last:
        return found
    return [
        np.stack(value, axis) if kind == all_gather_p.name else value
        for (kind, axis), value in zip(kinds, found, strict=True)
    ]
