"""Results of programs for all parts, added up or stacked: who evaluates which part, and the tree.

Here: ``evaluate_parts``. Not here: how a task makes its parts (``grouping``), what programs are
(``mapping``).

Results are added in a tree that depends on the number of parts alone: eight at a time, in order.
Which parts of it one task evaluates is another matter, which changes no bit: several whole
subtrees, as many as leave each thread several tasks, since a task costs client and scheduler a
millisecond; one, if the last call took so little time that it would not pay. Parts that lie on
workers are evaluated where they lie.

Layer: ``dask``.
"""

from __future__ import annotations

import itertools
import math
import operator
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from functrans.core.jaxpr import Jaxpr
from functrans.dask.chunks import Chunks
from functrans.dask.grouping import Recipe, grouped, run_group
from functrans.dask.running import Package, on_workers, received, results_of_part
from functrans.dask.scheduling import (
    check_wanted,
    give_up,
    pickled,
    schedule,
    threads,
    told,
    unpickled,
)
from functrans.dask.scheduling import client as current_client
from functrans.records import dataclass

FAN_IN = 8
"""Results that are added at a time."""
TASKS_PER_THREAD = 4
"""About so many at most, unless there are fewer parts: threads that end early take from others."""
TASK_SECONDS = 0.02
"""Less work is not cut for threads that end early."""
GROUP_BYTES = 1 << 26
"""Parts that lie on workers are evaluated together up to here: a task holds all it is given."""
SMALL_BYTES = 1 << 12
"""Operands of less go with each task."""
LARGE_BYTES = 1 << 20
"""Operands of more go to the workers directly, and results of more are added by several tasks."""
ATTEMPTS = 3


# the tree ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subtree:
    """Parts ``first:last``, whose results are added up in a tree of a height."""

    first: int
    last: int
    height: int

    def below(self) -> Iterator[Subtree]:
        """Its terms, in order."""
        height = self.height - 1
        step = FAN_IN**height
        for i in range(self.first, self.last, step):
            yield Subtree(i, min(i + step, self.last), height)


def _whole(count: int) -> Subtree:
    height = 0
    while FAN_IN**height < count:
        height += 1
    return Subtree(0, count, height)


def _largest(count: int, tasks: int) -> int:
    """Height of subtrees of which there are enough for so many tasks."""
    height = 0
    while FAN_IN**height < count and -(-count // FAN_IN ** (height + 1)) >= tasks:
        height += 1
    return height


Trees = tuple[Subtree, ...]
"""What one task evaluates."""


def tasks_of(
    count: int, tasks: int, places: Sequence[Any], sizes: Sequence[int], is_packed: bool
) -> list[Trees]:
    """Who evaluates which parts.

    Args:
      count: how many parts there are.
      tasks: how many tasks there should be, about.
      places: per part, the worker that it lies on, or ``None``.
      sizes: per part, the bytes that lie there.
      is_packed: whether a task may evaluate several subtrees.
    """
    largest = _largest(count, tasks)
    pieces: list[tuple[Any, Subtree]] = []
    pending = [_whole(count)]
    while pending:
        tree = pending.pop()
        numbers = range(tree.first, tree.last)
        is_small = sum(sizes[i] for i in numbers) <= GROUP_BYTES
        is_one = tree.height <= largest and len({places[i] for i in numbers}) == 1 and is_small
        if tree.height == 0 or is_one:
            pieces.append((places[tree.first], tree))
        else:
            pending += reversed(list(tree.below()))
    if not is_packed:
        return [(tree,) for _, tree in pieces]
    packed: dict[tuple[Any, int, int], list[Subtree]] = {}
    for place, trees in _by_place(pieces).items():
        extent = sum(tree.last - tree.first for tree in trees)
        share = extent / max(round(extent * tasks / count), 1)  # equal tasks end at the same time
        done = size = last = turn = 0
        for tree in trees:
            own = sum(sizes[tree.first : tree.last])
            number = int((done + (tree.last - tree.first) / 2) / share)
            size = own + (size if number == last else 0)
            if size > GROUP_BYTES:
                size, turn = own, turn + 1
            packed.setdefault((place, number, turn), []).append(tree)
            done += tree.last - tree.first
            last = number
    return sorted(map(tuple, packed.values()), key=lambda trees: trees[0].first)


def _by_place(pieces: Sequence[tuple[Any, Subtree]]) -> dict[Any, list[Subtree]]:
    places: dict[Any, list[Subtree]] = {}
    for place, tree in pieces:
        places.setdefault(place, []).append(tree)
    return places


# on the driver ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """What is asked of all parts, and of whom; see ``evaluate_parts``."""

    programs: Sequence[Jaxpr]
    chunks: Chunks
    operands: Sequence[Any]
    mapped: Sequence[bool]
    summed: Sequence[bool]
    client: Any
    label: str

    @property
    def is_packed(self) -> bool:
        """Whether all sums are small: a task may give several, and the client may add them."""
        avals = itertools.compress(self.programs[0].out_avals, self.summed)
        return len(self.chunks) * sum(map(_bytes, avals)) <= LARGE_BYTES


def evaluate_parts(
    programs: Sequence[Jaxpr],
    chunks: Chunks,
    operands: Sequence[Any],
    mapped: Sequence[bool],
    summed: Sequence[bool],
) -> list[Any]:
    """The results of programs ``(*part, *operands) -> results`` for all parts.

    Args:
      programs: one for each kind of part.
      chunks: the parts.
      operands: the same for all parts, but for those that are mapped.
      mapped: per operand, whether each part gets its element along the first axis.
      summed: per result, whether those of the parts are added up, and not stacked.
    """
    for attempt in range(ATTEMPTS):
        label = f"{programs[0].name or 'sum'}-{uuid4().hex}"
        client = current_client()
        try:
            return _attempt(_Call(programs, chunks, operands, mapped, summed, client, label))
        except Exception as error:  # operands lay with workers that are gone: they are sent again
            if type(error).__name__ != "FutureCancelledError" or attempt == ATTEMPTS - 1:
                raise
        finally:
            give_up(label)  # what still runs then is for nobody
    raise AssertionError


def _attempt(call: _Call) -> list[Any]:
    from dask.highlevelgraph import HighLevelGraph  # has a name: a dictionary would be hashed

    chunks, is_packed = call.chunks, call.is_packed
    graph: dict[Hashable, Any] = {}
    names = []
    for program in call.programs:
        key, node = on_workers(program, call.client)
        graph[key] = node
        names.append(key)
    work = _work(chunks, _cut(call, chunks.seconds.used(names[0])), call.client)
    made = _put_tasks(call, work, names, graph)
    whole = _whole(len(chunks))
    keys = list(dict.fromkeys(made.values()))
    is_asked = not all(call.summed) or (is_packed and len(keys) <= FAN_IN)
    is_added_here = is_asked and is_packed
    asked = keys if is_asked else []
    if not is_added_here and any(call.summed):
        asked = [*asked, _added(call.label, whole, made, graph, is_packed)]
    found: list[Result] = schedule(HighLevelGraph.from_collections(call.label, graph, []), asked)
    of_tasks = found[: len(keys)]
    chunks.seconds[names[0]] = sum(result.seconds for result in of_tasks)
    total = add_up(whole, found) if is_added_here else found[-1]
    sums = iter(total.terms.get((0, whole.height), ()))
    # Parts that lie on several workers are evaluated where they lie, out of their order.
    order = np.argsort([i for trees, *_ in work.tasks for i in _numbers(trees)])
    stacks = (
        np.concatenate(column)[order]
        for column in zip(*(result.stacks for result in of_tasks), strict=True)
    )
    return [next(sums) if is_summed else next(stacks) for is_summed in call.summed]


def _cut(call: _Call, seconds: float | None) -> list[Trees]:
    """Who evaluates which parts, if all took so long the last time."""
    n_threads = threads(call.client)
    wanted = n_threads * tasks_per_thread(seconds, n_threads)
    places, sizes = _places(call.chunks, call.client)
    return tasks_of(len(call.chunks), wanted, places, sizes, call.is_packed)


def _put_tasks(
    call: _Call, work: _Work, names: Sequence[Hashable], graph: dict[Hashable, Any]
) -> dict[tuple[int, int], Hashable]:
    """Per subtree, the key of the task that evaluates it; tasks are put into the graph."""
    from dask._task_spec import List, Task, TaskRef

    graph |= work.shared
    own = list(itertools.compress(call.operands, call.mapped))
    shared = list(itertools.compress(call.operands, map(operator.not_, call.mapped)))
    flow = (call.label, tuple(call.mapped), tuple(call.summed))
    given, more = _given(f"operands-{call.label}", shared, call.client)
    graph |= more
    made: dict[tuple[int, int], Hashable] = {}
    for trees, used, needed, package in work.tasks:
        key = (call.label, trees[0].first)
        texts = List(*(TaskRef(names[kind]) for kind in used))
        values = List(*map(TaskRef, needed))
        numbers = _numbers(trees)
        elements = [v[numbers[0] : numbers[-1] + 1] for v in own]
        theirs, more = _given(f"items-{call.label}-{trees[0].first}", elements, call.client, False)
        graph |= more
        graph[key] = Task(key, run_parts, package, flow, texts, given, theirs, values)
        made |= {(tree.first, tree.height): key for tree in trees}
    return made


def tasks_per_thread(seconds: float | None, n_threads: int) -> int:
    """How many tasks each thread gets, if all took so long the last time."""
    if seconds is None:
        return TASKS_PER_THREAD
    return min(max(int(seconds / n_threads / TASK_SECONDS), 1), TASKS_PER_THREAD)


def _bytes(aval: Any) -> int:
    size: int = math.prod(aval.shape) * aval.dtype.itemsize
    return size


def _numbers(trees: Trees) -> list[int]:
    return [i for tree in trees for i in range(tree.first, tree.last)]


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What does not change from call to call.

    Attributes:
      tasks: per task, its subtrees, kinds of its parts, keys that it needs, and what it does.
      shared: tasks of Dask that several of them need.
    """

    tasks: tuple[tuple[Trees, tuple[int, ...], tuple[Hashable, ...], Package], ...]
    shared: Mapping[Hashable, Any]


def _work(chunks: Chunks, tasks: Sequence[Trees], client: Any) -> _Work:
    """What tasks do, as it travels: the scheduler passes it on as it is."""
    asked = (tuple(tasks), client is not None)
    known = chunks.work.used(asked)
    if known is None:
        numbers = list(map(_numbers, tasks))
        recipes, shared = grouped(chunks.graph, chunks.keys, numbers)
        noun = "data" if chunks.data else "batch"
        made = []
        for trees, own, recipe in zip(tasks, numbers, recipes, strict=True):
            kinds = {i: chunks.kinds[i] for i in own}
            used = tuple(sorted(set(kinds.values())))
            names = {i: f"{chunks.name(i)} of the {noun}" for i in own}
            content = (recipe, trees, kinds, used, names)
            package = Package(content if client is None else pickled(content))
            made.append((trees, used, recipe.needed, package))
        if (
            client is not None
            and sum(len(f) for _, _, _, p in made for f in p.content) > LARGE_BYTES
        ):
            chunks.work.clear()  # they hold data of this process: one copy is enough
        known = chunks.work.kept(asked, _Work(tuple(made), shared))
    return known


def _places(chunks: Chunks, client: Any) -> tuple[list[Any], list[int]]:
    """Per part, a worker on which it lies, and how many bytes do; ``None`` and 0 if none do."""
    count = len(chunks)
    asked = list({key for own in chunks.held for key in own})
    if client is None or not asked:
        return [None] * count, [0] * count
    found = told(chunks.places, client, lambda: client.sync(client.scheduler.who_has, keys=asked))
    if not all(found.get(key) for key in asked):  # some are still being made
        chunks.places.pop(client, None)
    places, sizes = [], []
    for kind, own in zip(chunks.kinds, chunks.held, strict=True):
        places.append(next((min(found[key]) for key in own if found.get(key)), None))
        sizes.append(sum(map(_bytes, chunks.avals[kind])) if own else 0)
    return places, sizes


def _given(
    key: str, operands: Sequence[Any], client: Any, is_for_all: bool = True
) -> tuple[Any, dict[Hashable, Any]]:
    """What tasks get in the place of operands, and the tasks that this takes."""
    from dask._task_spec import DataNode, TaskRef

    package = Package(list(operands))
    size = sum(np.asarray(v).nbytes for v in operands)
    if size <= SMALL_BYTES:
        return package, {}
    if client is None or size <= LARGE_BYTES:
        return TaskRef(key), {key: DataNode(key, package)}
    return TaskRef(key), {key: client.scatter(package, broadcast=is_for_all, hash=False)}


def _added(
    label: str,
    tree: Subtree,
    made: Mapping[tuple[int, int], Hashable],
    graph: dict[Hashable, Any],
    is_packed: bool,
) -> Hashable:
    """The key of a sum, whose tasks are put into the graph."""
    from dask._task_spec import List, Task, TaskRef

    known = made.get((tree.first, tree.height))
    if known is not None:
        return known
    if is_packed:
        keys = list(dict.fromkeys(made.values()))
    else:
        keys = [_added(label, term, made, graph, False) for term in tree.below()]
    own = (f"sum-{label}", tree.first, tree.height)
    graph[own] = Task(own, add_up, tree, List(*map(TaskRef, keys)))
    return own


# on workers -------------------------------------------------------------------------------------

Terms = dict[tuple[int, int], list[Any]]
"""Results of subtrees, by their first part and height."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a task gives: sums of subtrees, results of parts, stacked, and how long it took."""

    terms: Terms
    stacks: list[Any]
    seconds: float


def run_parts(
    task: Package,
    flow: tuple[str, Sequence[bool], Sequence[bool]],
    programs: Sequence[Package],
    shared: Package,
    elements: Package,
    values: Sequence[Any],
) -> Result:
    """The results of subtrees of parts."""
    recipe: Recipe
    trees: Trees
    names: Mapping[int, str]
    begin = time.perf_counter()
    content = unpickled(task.content) if isinstance(task.content, list) else task.content
    recipe, trees, kinds, used, names = content
    known = dict(zip(used, map(received, programs), strict=True))
    label, mapped, summed = flow
    first = trees[0].first

    def run(i: int, part: list[Any]) -> list[Any]:
        common, own = iter(shared.content), iter(elements.content)
        operands = [next(own)[i - first] if flag else next(common) for flag in mapped]
        return results_of_part(known[kinds[i]], operands, names[i], part)

    rows: list[list[Any]] = []
    results = run_group(recipe, values, run, names.__getitem__)

    def summands(_: Subtree) -> list[Any]:
        check_wanted(label)
        outs = next(results)
        rows.append([out for out, flag in zip(outs, summed, strict=True) if not flag])
        return [out for out, flag in zip(outs, summed, strict=True) if flag]

    terms = {(tree.first, tree.height): _sum(tree, summands) for tree in trees}
    stacks = [np.stack(column) for column in zip(*rows, strict=True)]
    return Result(terms, stacks, time.perf_counter() - begin)


def add_up(tree: Subtree, results: Sequence[Result]) -> Result:
    """The sum of results that several tasks gave."""
    known: Terms = {}
    for result in results:
        known |= result.terms
    total = _sum(tree, lambda one: known[one.first, 0], known)
    seconds = sum(result.seconds for result in results)
    return Result({(tree.first, tree.height): total}, [], seconds)


def _sum(tree: Subtree, part: Callable[[Subtree], list[Any]], known: Terms | None = None) -> Any:
    """The sum of a subtree, from left to right; it holds one result for each level."""
    found = known.get((tree.first, tree.height)) if known else None
    if found is not None:
        return found
    if tree.height == 0:
        return part(tree)
    sums: list[Any] | None = None
    for term in tree.below():
        other = _sum(term, part, known)
        with np.errstate(all="ignore"):  # as programs run
            sums = other if sums is None else [a + b for a, b in zip(sums, other, strict=True)]
    return sums
