"""The process of one contender: started by the parent, answers requests over a pipe.

Requests are tuples ``(operation, *arguments)``; the reply is ``("ok", value)`` or ``("error",
kind, reason, traceback)``. Operations: ``load`` (imports), ``build``, ``first_call``,
``calibrate``, ``time``, ``result``. Standard output of the libraries goes to standard error.
Layer: above ``workloads``; the parent talks to it through ``process`` only.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from tests.benchmarks import libraries

SETTLING_S = 0.5


class ImportClock:
    """Seconds spent in imports while ``running``.

    A library that imports part of itself at its first call should not have that counted as
    compilation; CPython sends every import that is not in ``sys.modules`` through
    ``importlib._bootstrap._find_and_load``, which this wraps.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self.seconds = 0.0
        self._depth = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the imports made inside the ``with`` block."""
        bootstrap: Any = importlib._bootstrap  # type: ignore[attr-defined]  # private, but stable
        original = bootstrap._find_and_load

        def find_and_load(*args: Any) -> Any:
            self._depth += 1
            start = time.perf_counter()
            try:
                return original(*args)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.perf_counter() - start

        bootstrap._find_and_load = find_and_load
        try:
            yield
        finally:
            bootstrap._find_and_load = original


class Session:
    """State of a worker: the callable under test and how to read its results."""

    def __init__(self) -> None:
        """Nothing loaded yet."""
        self.run: Callable[[], Any] = tuple
        self.to_numpy: Callable[[Any], tuple[Any, ...]] = libraries.leaves_to_numpy

    def load(self, library: str, threads: int) -> dict[str, Any]:
        """Import NumPy and ``library``; return the duration and the version."""
        start = time.perf_counter()
        importlib.import_module("numpy")
        libraries.load(library, threads)
        elapsed = time.perf_counter() - start
        return {"import_s": elapsed, "version": libraries.version(library)}

    def build(self, workload: str, label: str, path: str) -> None:
        """Prepare the contender ``label`` of ``workload`` on the inputs stored at ``path``."""
        import numpy as np

        from tests.benchmarks import workloads

        record = workloads.find(workload)
        contender = next(c for c in record.contenders if c.label == label)
        with np.load(path) as stored:
            inputs = {name: stored[name] for name in stored.files}
        self.run = contender.build(inputs)
        self.to_numpy = contender.to_numpy or libraries.leaves_to_numpy

    def first_call(self) -> dict[str, Any]:
        """Trace, compile and run, with the imports made on the way counted apart."""
        clock = ImportClock()
        with clock.running():
            start = time.perf_counter()
            result = self.run()
            elapsed = time.perf_counter() - start
        return {
            "first_call_s": elapsed - clock.seconds,
            "late_import_s": clock.seconds,
            "result": self.to_numpy(result),
        }

    def calibrate(self, block_s: float) -> int:
        """Number of calls that fills ``block_s`` seconds, at least one.

        Before, it calls for a while: libraries may improve code that is called often.
        """
        until = time.perf_counter() + SETTLING_S
        while time.perf_counter() < until:
            self.run()
        calls = 1
        while True:
            elapsed = self.time(calls)["seconds"]
            if elapsed >= block_s:
                return calls
            if elapsed >= block_s / 5:
                return max(1, round(calls * block_s / elapsed))
            calls *= 4

    def time(self, calls: int) -> dict[str, float]:
        """Wall and CPU seconds of ``calls`` calls, after one to warm the caches if affordable."""
        run = self.run
        gc.collect()
        if calls > 1:
            run()
        cpu = time.process_time()
        start = time.perf_counter()
        for _ in itertools.repeat(None, calls):
            run()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}

    def result(self) -> dict[str, Any]:
        """One more result, to be compared with the others, and the peak memory of the process."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        unit = 1 if sys.platform == "darwin" else 1024
        return {"result": self.to_numpy(self.run()), "peak_bytes": peak * unit}


def _kind(error: BaseException) -> str:
    """``missing`` for a library or feature that is not there, ``failed`` for anything else."""
    absent = isinstance(error, ModuleNotFoundError | NotImplementedError)
    return "missing" if absent else "failed"


def serve(connection: Connection) -> None:
    """Answer requests until the parent closes the pipe."""
    session = Session()
    operations: dict[str, Callable[..., Any]] = {
        "load": session.load,
        "build": session.build,
        "first_call": session.first_call,
        "calibrate": session.calibrate,
        "time": session.time,
        "result": session.result,
    }
    while True:
        try:
            operation, *arguments = connection.recv()
        except EOFError:
            return
        try:
            reply: tuple[Any, ...] = ("ok", operations[operation](*arguments))
        except Exception as error:  # whatever a library raises is reported, not fatal
            message = str(error).strip() or "(no message)"
            reason = f"{type(error).__name__}: {message.splitlines()[0]}"
            reply = ("error", _kind(error), reason, traceback.format_exc())
        connection.send(reply)


def main() -> None:
    """Take the pipe's descriptor from the command line; keep libraries off standard output."""
    os.dup2(2, 1)
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
