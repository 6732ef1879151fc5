"""Dask's schedulers, and what they are asked about data.

Layer: ``dask``.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans import pytrees as tree
from functrans.core.avals import ShapedArray
from functrans.core.caching import Recent, listed
from functrans.core.progress import Progress, is_shown
from functrans.errors import ShapeError


def schedule(graph: Mapping[Hashable, Any], keys: Any) -> Any:
    """Values of keys of a graph, by the scheduler that Dask would use: a client's or threads."""
    from dask.base import get_scheduler
    from dask.threaded import get

    run = get_scheduler() or get
    connected = client()
    if connected is None:
        if not is_shown():
            return run(graph, keys)
        with Progress("Dask", unit=" tasks", is_timed=True) as progress:
            return _counted(run, graph, keys, progress)
    if _task_of_worker() is not None:
        return run(graph, keys)  # meanwhile, a task lends its thread to others
    return _gathered(connected, run(graph, keys, sync=False))


def _counted(run: Any, graph: Mapping[Hashable, Any], keys: Any, progress: Progress) -> Any:
    """Values of keys, by threads of this process; each task is reported."""
    from dask.callbacks import Callback

    def start(graph: object, state: Mapping[str, Any]) -> None:
        progress.expect(sum(len(state[kind]) for kind in ("ready", "waiting", "running")))

    def end(*task: object) -> None:
        progress.advance()

    with Callback(start_state=start, posttask=end):
        return run(graph, keys)


def _gathered(client: Any, futures: Sequence[Any]) -> Any:
    """Results of futures. What fails first is raised at once; the others are given up then."""
    loop = client.loop.asyncio_loop
    results = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), loop)
    try:
        if is_shown():
            with Progress("Dask", unit=" tasks", is_timed=True) as progress:
                _report(futures, progress)
        while not results.done():
            wait([results], 1.0)  # an endless one is not interrupted on all systems
        return results.result()
    except KeyboardInterrupt:
        # It ends quietly at the first that is gone. Were it cancelled, or all gone at once, asyncio
        # would print an exception for each.
        futures[0].release()
        wait([results], 1.0)
        raise
    finally:  # a traceback may refer to them for long
        for future in futures:
            future.release()


def _report(futures: Sequence[Any], progress: Progress) -> None:
    """Report each of some futures when it is there, until one fails."""
    from distributed import as_completed

    progress.expect(len(futures))
    for future in as_completed(futures):
        if future.status != "finished":
            return
        progress.advance()


def client() -> Any:
    """The client of ``distributed`` that Dask would use; ``None`` if there is none."""
    from dask.base import get_scheduler

    found: Any = getattr(get_scheduler(), "__self__", None)
    return found


Told = WeakKeyDictionary[Any, tuple[float, Any]]
"""Per client, what it said, and when."""

_threads: Told = listed("threads of workers", WeakKeyDictionary())


def told(known: Told, client: Any, ask: Callable[[], Any]) -> Any:
    """What a client says of its workers. It holds for a second: what is old costs time only."""
    when, found = known.get(client, (-math.inf, None))
    if time.monotonic() > when + 1.0:
        found = ask()
        known[client] = time.monotonic(), found
    return found


def threads(client: Any) -> int:
    """How many tasks run at a time."""
    import dask
    from dask.system import CPU_COUNT

    if client is None:
        return int(dask.config.get("num_workers", None) or CPU_COUNT)
    return told(_threads, client, lambda: sum(client.nthreads().values())) or 1


_given_up: Recent[str, bool] = listed("calls that are over", Recent(256))


def give_up(label: str) -> None:
    """Tasks of a call that still run in this process end before their next part."""
    _given_up[label] = True


def check_wanted(label: str) -> None:
    """Leave a task of a call whose result nobody waits for: it was interrupted, or another failed.

    Raises:
      Reschedule: the worker was told to drop the task; should it be wanted again, it runs anew.
      CancelledError: the call is over.
    """
    task = _task_of_worker()
    if task is not None:
        if task.state == "cancelled":
            from distributed import Reschedule

            raise Reschedule
    elif label in _given_up:
        raise CancelledError(label)


def _task_of_worker() -> Any:
    """What a worker of ``distributed`` knows of the task that runs; ``None`` if there is none."""
    if "distributed.worker" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return None
    return worker.state.tasks.get(worker.active_threads.get(threading.get_ident()))


def pickled(value: Any) -> list[Any]:
    """A value as buffers, as ``distributed`` pickles tasks."""
    from distributed.protocol.pickle import dumps

    buffers: list[Any] = []
    text = dumps(value, buffer_callback=buffers.append)
    return [text, *map(bytes, buffers)]


def unpickled(frames: Sequence[Any]) -> Any:
    """The value of ``pickled``."""
    from distributed.protocol.pickle import loads

    return loads(frames[0], buffers=frames[1:])


def stack_items(partition: Any) -> Any:
    """The items of a partition of a bag, pytrees of one structure, stacked leaf by leaf."""
    items = list(partition)
    if not items:
        raise ShapeError("a partition of a bag is empty: its items have no shape; repartition it")
    return tree.map(lambda *leaves: np.stack(leaves), *items)


def description(part: Sequence[Any]) -> tuple[tuple[ShapedArray, ...], tuple[Any, ...]]:
    """Avals and structures of the arguments of one part."""
    flat = [tree.flatten(value) for value in part]
    avals = [
        ShapedArray(np.shape(leaf), np.asarray(leaf).dtype) for leaves, _ in flat for leaf in leaves
    ]
    return tuple(avals), tuple(treedef for _, treedef in flat)
