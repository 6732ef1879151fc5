"""Which parts one task evaluates: each part once, in one tree of sums, one part in memory."""

import functools
import gc
import weakref

import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import Task, TaskRef

import functrans as ft
from functrans.dask import chunks, totals
from functrans.dask.grouping import grouped, run_group
from functrans.dask.totals import Result, _sum, _whole, add_up, tasks_of

RNG = np.random.default_rng(0)


def numbers(task):
    return [i for tree in task for i in range(tree.first, tree.last)]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 100, 513])
@pytest.mark.parametrize("tasks", [1, 3, 8, 1000])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_tasks_have_each_part_once_and_their_sums_are_the_tree(count, tasks, is_packed, workers):
    places = RNG.integers(0, workers, count).tolist() if workers else [None] * count
    found = tasks_of(count, tasks, places, [8 * bool(workers)] * count, is_packed)
    assert sorted(i for task in found for i in numbers(task)) == list(range(count))
    for task in found:
        assert len({places[i] for i in numbers(task)}) == 1
    if is_packed:
        assert min(tasks, count) / 2 <= len(found) <= 2 * tasks + workers
    terms = [
        Result(
            {(tree.first, tree.height): _sum(tree, lambda one: [Term(one.first)]) for tree in task},
            [],
            0.5,
        )
        for task in found
    ]
    whole = _whole(count)
    level = [Term(i) for i in range(count)]
    while len(level) > 1:
        level = [functools.reduce(Term.__add__, level[i : i + 8]) for i in range(0, len(level), 8)]
    total = add_up(whole, terms)
    assert total.terms[0, whole.height] == level
    assert total.seconds == 0.5 * len(found)


class Term(str):
    """Shows in which order it was added."""

    __slots__ = ()

    def __add__(self, other):
        return Term(f"({self}+{other})")


def test_parts_of_much_data_on_workers_are_not_evaluated_together():
    found = tasks_of(16, 2, ["a"] * 16, [1 << 25] * 16, True)
    assert [len(numbers(task)) for task in found] == [2] * 8
    found = tasks_of(12, 4, ["a"] * 12, [16 << 20] * 12, True)  # what other tasks hold counts not
    assert [len(numbers(task)) for task in found] == [3] * 4


def test_short_calls_are_not_cut_for_threads_that_end_early(monkeypatch):
    assert totals.tasks_per_thread(None, 2) == totals.TASKS_PER_THREAD
    assert totals.tasks_per_thread(0.001, 2) == 1
    assert totals.tasks_per_thread(2 * 2.5 * totals.TASK_SECONDS, 2) == 2
    assert totals.tasks_per_thread(100.0, 2) == totals.TASKS_PER_THREAD

    asked = []

    def noted(seconds, n_threads):
        asked.append(seconds)
        return len(asked)

    monkeypatch.setattr(totals, "tasks_per_thread", noted)
    x = da.from_array(RNG.normal(size=(100, 3)), chunks=(3, 3))
    gradient = ft.jit(ft.grad(lambda w: ft.dask.sum_over(lambda w, x: np.sum(np.sin(x @ w)))(w, x)))
    found = [gradient(np.ones(3)) for _ in range(4)]  # of one task per thread to four
    assert asked[0] is None
    assert all(seconds > 0.0 for seconds in asked[1:])
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_sums_run_without_warnings_as_programs_do(scheduler):
    x = da.full((20, 1), 1e308, chunks=(1, 1))
    P = ft.dask.P
    shared = ft.dask.shard_map(lambda x: ft.lax.psum(x[0, 0], "i"), P("i"), P(), "i")
    with dask.config.set(scheduler=scheduler), np.errstate(all="raise"):
        assert ft.dask.sum_over(lambda w, x: x[0, 0] * w)(1.0, x) == np.inf
        assert shared(x) == np.inf


def test_data_of_this_process_is_kept_once_for_workers(monkeypatch):
    """Which parts a task evaluates differs from call to call."""
    x = da.from_array(RNG.normal(size=(4000, 100)), chunks=(100, 100))
    parts = chunks.chunks_of("sum", [x], ["x"], chunks.KnownParts())
    for tasks in (1, 2, 3, 2):
        cut = tasks_of(40, tasks, [None] * 40, [0] * 40, True)
        totals._work(parts, cut, object())
        kept = [sum(map(len, p.content)) for work in parts.work.all() for *_, p in work.tasks]
        assert x.nbytes < sum(kept) < 1.5 * x.nbytes
    small = chunks.items(40)
    for tasks in (1, 2, 3, 2):
        totals._work(small, tasks_of(40, tasks, [None] * 40, [0] * 40, True), object())
    assert len(small.work) == 3


class Value:
    alive = 0

    def __init__(self):
        Value.alive += 1
        weakref.finalize(self, Value.gone)

    @staticmethod
    def gone():
        Value.alive -= 1


def test_a_group_holds_one_part_at_a_time():
    """Part ``i`` is made of a value of its own, and of one that it shares with the next."""
    seen = []
    graph = {("own", i): Task(("own", i), Value) for i in range(6)}
    graph |= {("pair", i): Task(("pair", i), Value) for i in range(3)}

    def part(*values):
        seen.append(Value.alive)
        return len(values)

    graph |= {
        ("part", i): Task(
            ("part", i), part, TaskRef(("own", i)), TaskRef(("pair", i // 2)), TaskRef("far")
        )
        for i in range(6)
    }
    parts = [[("part", i)] for i in range(6)]
    (recipe,), shared = grouped(graph, parts, [range(6)])
    assert recipe.needed == ("far",)
    assert not shared
    results = run_group(recipe, [1.0], lambda i, values: values[0], str)
    assert list(results) == [3] * 6
    gc.collect()
    assert seen == [2] * 6
    assert Value.alive == 0


def test_what_two_groups_need_is_a_task_of_its_own():
    graph = {"base": Task("base", float), "more": Task("more", abs, TaskRef("base"))}
    graph |= {i: Task(i, abs, TaskRef("more" if i < 3 else "base")) for i in range(4)}
    recipes, shared = grouped(graph, [[0], [1], [2], [3]], [[0, 1], [2], [3]])
    assert set(shared) == {"base", "more"}
    assert [recipe.needed for recipe in recipes] == [("more",), ("more",), ("base",)]


def test_exceptions_of_loaders_name_the_chunk():
    def load(i):
        if i == 2:
            raise OSError("no such disk")
        return np.ones(3)

    parts = [dask.delayed(load)(i) for i in range(4)]
    summed = ft.dask.sum_over(lambda w, x: w * np.sum(x))
    x = da.concatenate([da.from_delayed(part, (3,), float) for part in parts])
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(OSError, match="no such disk") as caught,
    ):
        summed(1.0, x)
    assert caught.value.__notes__ == ["in chunk 2 of 4 (rows 6:9) of the data"]
