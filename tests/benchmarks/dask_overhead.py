"""What a distributed gradient costs beside its kernels, against Dask's own ``delayed``.

``python -m tests.benchmarks.dask_overhead`` starts a cluster of two processes and takes gradients
of a logistic loss over 64 small chunks, of data that lies on the workers and of data that is made
anew. ``delayed`` runs the same kernels, made by ``ft.jit`` on the workers, and adds their results
in a tree of the same shape. Figures are in milliseconds, medians and minima of calls that
alternate: wall time, CPU time of the caller's thread, and CPU time of its whole process, in which
the scheduler runs, too; the last is less what the process takes when idle as long.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import functrans as ft
import functrans.numpy as fnp

FAN_IN = 8


def loss(w: Any, x: Any, y: Any) -> Any:
    """A sum over rows."""
    z = x @ w
    return fnp.sum(fnp.logaddexp(0.0, z) - y * z)


@functools.cache
def kernel() -> Callable[..., Any]:
    """The gradient of one chunk, compiled once in each process."""
    return ft.jit(ft.value_and_grad(loss))


def of_chunk(w: Any, x: Any, y: Any) -> Any:
    """What a task of ``delayed`` does."""
    return kernel()(w, x, y)


def added(parts: list[Any]) -> Any:
    """The sum of results."""
    return functools.reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), parts)


def by_delayed(x: Any, y: Any) -> Callable[[Any], Any]:
    """The gradient as a user of Dask writes it."""
    xs, ys = x.to_delayed().ravel(), y.to_delayed().ravel()
    one, plus = dask.delayed(of_chunk), dask.delayed(added)

    def gradient(w: Any) -> Any:
        given = dask.delayed(w)
        level = [one(given, own, label) for own, label in zip(xs, ys, strict=True)]
        while len(level) > 1:
            level = [plus(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
        return level[0].compute()

    return gradient


def measured(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, np.ndarray]:
    """Per function, ``[rounds, (wall, thread, process)]`` in milliseconds."""
    found: dict[str, list[list[float]]] = {name: [] for name in functions}
    clocks = (time.perf_counter, time.thread_time, time.process_time)
    for _ in range(rounds):
        for name, function in functions.items():
            start = [clock() for clock in clocks]
            function()
            own = [1e3 * (clock() - t) for clock, t in zip(clocks, start, strict=True)]
            idle = time.process_time()
            time.sleep(own[0] * 1e-3)
            own[2] -= 1e3 * (time.process_time() - idle)
            found[name].append(own)
    return {name: np.array(rows) for name, rows in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--chunks", type=int, default=64)
    parser.add_argument("--rows", type=int, default=2000, help="of each chunk")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    shape = (options.chunks * options.rows, options.columns)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def made(seed: int) -> list[Any]:
            drawn = da.random.default_rng(seed).normal(size=shape, chunks=(options.rows, shape[1]))
            return [drawn, (drawn[:, 0] > 0).astype(float)]

        print(f"{'data':10}{'':12}{'wall':>16}{'thread':>16}{'process':>16}")
        for kind, data in (("persisted", client.persist(made(0))), ("lazy", made(1))):
            total = ft.dask.sum_over(loss)
            ours = ft.jit(ft.value_and_grad(lambda w, data=data, total=total: total(w, *data)))
            theirs = by_delayed(*data)
            w = np.zeros(shape[1])
            for one, other in zip(ours(w), theirs(w), strict=True):
                np.testing.assert_allclose(one, other, 1e-10, 1e-8)
            functions = {
                "functrans": functools.partial(ours, w),
                "delayed": functools.partial(theirs, w),
            }
            measured(functions, 3)
            for name, rows in measured(functions, options.rounds).items():
                pairs = zip(np.median(rows, 0), rows.min(0), strict=True)
                cells = "".join(f"{a:9.1f} ({b:4.1f})" for a, b in pairs)
                print(f"{kind:10}{name:12}{cells}", flush=True)


if __name__ == "__main__":
    main()
