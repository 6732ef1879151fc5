"""Dask's schedulers, and what they are asked about data.

Layer: ``dask``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans import pytrees as tree
from functrans.core.avals import ShapedArray
from functrans.core.caching import listed
from functrans.core.progress import Progress, is_shown
from functrans.errors import ShapeError


def schedule(graph: Mapping[Hashable, Any], keys: Any) -> Any:
    """Values of keys of a graph, by the scheduler that Dask would use: a client's or threads."""
    from dask.base import get_scheduler
    from dask.threaded import get

    run = get_scheduler() or get
    if not is_shown():
        return run(graph, keys)
    with Progress("Dask", unit=" tasks", is_timed=True) as progress:
        if client() is not None:
            return _gathered(run(graph, keys, sync=False), progress)
        return _counted(run, graph, keys, progress)


def _counted(run: Any, graph: Mapping[Hashable, Any], keys: Any, progress: Progress) -> Any:
    """Values of keys, by threads of this process; each task is reported."""
    from dask.callbacks import Callback

    def start(graph: object, state: Mapping[str, Any]) -> None:
        progress.expect(sum(len(state[kind]) for kind in ("ready", "waiting", "running")))

    def end(*task: object) -> None:
        progress.advance()

    with Callback(start_state=start, posttask=end):
        return run(graph, keys)


def _gathered(futures: Sequence[Any], progress: Progress) -> Any:
    """Results of futures; each is reported when it is there."""
    from distributed import as_completed

    progress.expect(len(futures))
    for _ in as_completed(futures):
        progress.advance()
    return [future.result() for future in futures]


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
