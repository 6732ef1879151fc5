"""What the scheduler takes for as many tasks as clusters of many workers get.

``python -m tests.benchmarks.dask_plan`` starts two processes and hands out gradients as if the
cluster had more workers: as many tasks, of kernels that do nothing to speak of. It counts the CPU
time of the process in which client and scheduler are, less what it takes when idle as long, and
how high the tree of sums is: once with results that one task adds up, once with results so large
that a tree of tasks does. ``docs/dask.md`` has the figures, and what follows for 1,000 workers.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from distributed.protocol.pickle import dumps

import functrans as ft
from functrans.dask import totals


def loss(w: Any, x: Any) -> Any:
    """As little as can be."""
    return np.sum(x @ w)


def per_pass(
    workers: int, chunks: int, columns: int, rounds: int
) -> tuple[int, int, int, float, float]:
    """Of a pass for so many workers: tasks, height of their tree, bytes, CPU and wall seconds."""
    counted: list[tuple[int, int, int]] = []
    schedule = totals.schedule

    def counting(graph: Any, keys: Any) -> Any:
        if not counted:
            tasks = dict(graph)
            heights = {key[2] for key in tasks if str(key[0]).startswith("sum-")}
            counted.append((len(tasks), len(heights), len(dumps(graph))))
        return schedule(graph, keys)

    data = da.ones((chunks, columns), chunks=(1, columns))
    gradient = ft.jit(ft.grad(lambda w: ft.dask.sum_over(loss)(w, data)))
    w = np.zeros(columns)
    threads, totals.threads = totals.threads, lambda client: workers
    per_thread = totals.tasks_per_thread  # as kernels that take some time get them
    totals.tasks_per_thread = lambda seconds, n_threads: totals.TASKS_PER_THREAD
    totals.schedule = counting
    spent = []
    try:
        gradient(w)
        for _ in range(rounds):
            wall, cpu = time.perf_counter(), time.process_time()
            gradient(w)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            idle = time.process_time()
            time.sleep(min(wall, 1.0))
            spent.append((cpu - (time.process_time() - idle) * max(wall, 1.0), wall))
    finally:
        totals.threads, totals.schedule = threads, schedule
        totals.tasks_per_thread = per_thread
    cpu, wall = np.median(spent, 0)
    return (*counted[0], float(cpu), float(wall))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 8, 32, 125, 500])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        print("workers results   tasks  height  graph [kB]  CPU of the driver [ms]  per task  wall")
        for workers in options.workers:
            for results, columns in (("small", 4), ("large", 20_000)):
                tasks, height, size, cpu, wall = per_pass(
                    workers, 8 * workers, columns, options.rounds
                )
                print(
                    f"{workers:7} {results:8} {tasks:6} {height:7} {1e-3 * size:11.0f} "
                    f"{1e3 * cpu:23.1f} "
                    f"{1e3 * cpu / tasks:9.2f} {1e3 * wall:10.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
