"""Measure one workload: first calls in fresh processes, then timed blocks that alternate.

The workers of all contenders stay alive together; the parent asks each in turn for one block,
starting with another one every round, so that noise of the machine hits all alike. This is repeated
with fresh processes, because the layout of memory lasts as long as a process and can change a time
by half. A contender that fails drops out and is reported; the others go on. Layer: above
``process`` and ``agreement``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.agreement import Agreement, compare
from tests.benchmarks.process import ContenderError, Worker
from tests.benchmarks.record import Contender, Workload

START_TIMEOUT_S = 300.0
REST_S = 0.15
"""After a block on several threads. Those of OpenBLAS wait for more to do for 0.1 s without giving
their processors away (NumPy's, measured): whoever comes next would be measured beside them."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure.

    Attributes:
      rounds: timed blocks per contender, over all its processes.
      block_s: length of a block in seconds; a slower call makes a block of its own.
      budget_s: a contender whose blocks took longer than this together sits out further rounds.
      processes: fresh processes per contender, one after the other; each has a first call and its
        share of the rounds.
      first_call_timeout_s: overrides the workloads' own limits when smaller.
      warm_cache: whether first calls find what an earlier process left in the disk cache.
      threads: threads per library.
      busy: processes that compute beside, as other work on the machine would.
      seed: seed of the inputs.
    """

    rounds: int = 15
    block_s: float = 0.05
    budget_s: float = 10.0
    processes: int = 3
    first_call_timeout_s: float = float("inf")
    warm_cache: bool = False
    threads: int = 1
    busy: int = 0
    seed: int = 0


@dataclass(slots=True)
class Measurement:
    """What was measured of one contender; seconds per call unless named otherwise.

    ``status`` is ``ok``, ``missing`` (not installed or not implemented), ``failed`` or
    ``timeout``; with any but ``ok``, ``reason`` says why and the numbers may be absent.
    """

    label: str
    status: str = "ok"
    reason: str = ""
    detail: str = ""
    version: str = ""
    import_s: list[float] = field(default_factory=list)
    first_call_s: list[float] = field(default_factory=list)
    late_import_s: list[float] = field(default_factory=list)
    calls_per_block: list[int] = field(default_factory=list)
    block_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    def median(self) -> float | None:
        """Median over the blocks, ``None`` if there are none."""
        return statistics.median(self.block_s) if self.block_s else None

    def minimum(self) -> float | None:
        """Fastest block, ``None`` if there are none."""
        return min(self.block_s, default=None)

    def first_call(self) -> float | None:
        """Median first call without imports, ``None`` if there was none."""
        return statistics.median(self.first_call_s) if self.first_call_s else None

    def first_call_with_imports(self) -> float | None:
        """Median of imports and first call together."""
        parts = zip(self.import_s, self.late_import_s, self.first_call_s, strict=False)
        return statistics.median(map(sum, parts)) if self.first_call_s else None

    def cores(self) -> float | None:
        """CPU seconds per second inside the blocks."""
        return sum(self.cpu_s) / sum(self.block_s) if self.cpu_s else None

    def imports(self) -> float | None:
        """Median time of the imports before the first call, NumPy included."""
        return statistics.median(self.import_s) if self.import_s else None


class Competitor:
    """A contender in the ring: its worker, its measurement and its results."""

    def __init__(
        self, workload: Workload, contender: Contender, settings: Settings, folder: Path
    ) -> None:
        """Nothing is started yet; ``folder`` holds the inputs and takes the caches."""
        self.measurement = Measurement(contender.label)
        self.results: list[tuple[np.ndarray, ...]] = []
        self._workload = workload
        self._contender = contender
        self._settings = settings
        self._folder = folder
        self._worker: Worker | None = None
        self._calls = 1
        self._spent_s = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether it has not failed and its budget is not used up."""
        return self.measurement.status == "ok" and self._spent_s < self._settings.budget_s

    def attempt(self, action: Callable[[], None]) -> None:
        """Run ``action`` unless the contender is out; a failure puts it out."""
        if self.measurement.status != "ok":
            return
        try:
            action()
        except ContenderError as error:
            self.measurement.status = error.kind
            self.measurement.reason = error.reason
            self.measurement.detail = error.detail
            self.end()

    def start(self) -> None:
        """Start a fresh process and make the first call."""
        self.end()
        workload, settings, measurement = self._workload, self._settings, self.measurement
        if settings.warm_cache:
            cache = self._folder / self._contender.label
            cache.mkdir(exist_ok=True)
        else:
            cache = Path(tempfile.mkdtemp(dir=self._folder))
        library = self._contender.library
        self._worker = Worker(library, settings.threads, workload.dtype, cache)
        loaded = self._ask("load", library, settings.threads, timeout_s=START_TIMEOUT_S)
        inputs = str(self._folder / "inputs.npz")
        self._ask("build", workload.name, measurement.label, inputs, timeout_s=START_TIMEOUT_S)
        limit = min(workload.first_call_timeout_s, settings.first_call_timeout_s)
        first = self._ask("first_call", timeout_s=limit)
        measurement.version = loaded["version"]
        measurement.import_s.append(loaded["import_s"])
        measurement.first_call_s.append(first["first_call_s"])
        measurement.late_import_s.append(first["late_import_s"])
        self.results.append(first["result"])

    def forget_first_calls(self) -> None:
        """Drop the first calls made to fill the disk cache."""
        measurement = self.measurement
        for values in (measurement.import_s, measurement.first_call_s, measurement.late_import_s):
            values.clear()

    def calibrate(self) -> None:
        """Choose the number of calls per block."""
        self._calls = self._ask("calibrate", self._settings.block_s, timeout_s=START_TIMEOUT_S)

    def block(self) -> None:
        """Time one block."""
        timed = self._ask("time", self._calls, timeout_s=START_TIMEOUT_S)
        self._spent_s += timed["seconds"]
        self.measurement.calls_per_block.append(self._calls)
        self.measurement.block_s.append(timed["seconds"] / self._calls)
        self.measurement.cpu_s.append(timed["cpu_seconds"] / self._calls)

    def rest(self) -> None:
        """Until no thread of the library runs any more."""
        if self._settings.threads > 1:
            time.sleep(REST_S)

    def finish(self) -> None:
        """Take one more result (a call must not depend on the calls before it)."""
        last = self._ask("result", timeout_s=START_TIMEOUT_S)
        self.measurement.peak_bytes = max(self.measurement.peak_bytes, last["peak_bytes"])
        self.results.append(last["result"])

    def end(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _ask(self, operation: str, *arguments: Any, timeout_s: float) -> Any:
        if self._worker is None:
            raise ContenderError("failed", "no process")
        return self._worker.ask(operation, *arguments, timeout_s=timeout_s)


@contextmanager
def other_work(processes: int) -> Iterator[None]:
    """``processes`` that compute without end while the block runs."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def write_inputs(workload: Workload, seed: int, path: Path) -> None:
    """Draw the inputs of ``workload``, from a seed of its own, and store them as ``.npz``."""
    rng = np.random.default_rng([seed, zlib.crc32(workload.name.encode())])
    np.savez(path, **workload.make_inputs(rng))


def measure(
    workload: Workload, contenders: Iterable[Contender], settings: Settings, progress: Progress
) -> tuple[list[Measurement], Agreement]:
    """Measure ``contenders`` of ``workload`` side by side and compare their results."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        write_inputs(workload, settings.seed, folder / "inputs.npz")
        ring = [Competitor(workload, each, settings, folder) for each in contenders]
        try:
            with other_work(settings.busy):
                _run(ring, settings, progress)
        finally:
            for competitor in ring:
                competitor.end()
        measurements = [competitor.measurement for competitor in ring]
        results = {each.measurement.label: each.results for each in ring if each.results}
    return measurements, compare(results, workload.rtol, workload.dtype)


def _run(ring: list[Competitor], settings: Settings, progress: Progress) -> None:
    if settings.warm_cache:
        for competitor in ring:
            progress(f"fill the cache: {competitor.measurement.label}")
            competitor.attempt(competitor.start)
            competitor.forget_first_calls()
    rounds = range(settings.rounds)
    for process in range(settings.processes):
        share = rounds[process :: settings.processes]
        _run_processes(ring, share, f"process {process + 1}/{settings.processes}", progress)


def _run_processes(
    ring: list[Competitor], rounds: Sequence[int], title: str, progress: Progress
) -> None:
    """Make the first calls in fresh processes, then go through ``rounds`` with them."""
    for competitor in ring:
        progress(f"{title}: first call of {competitor.measurement.label}")
        competitor.attempt(competitor.start)
    for competitor in ring:
        if rounds and competitor.is_ready:
            progress(f"{title}: calibrate {competitor.measurement.label}")
            competitor.attempt(competitor.calibrate)
    for number in rounds:
        progress(f"{title}: round {number + 1}")
        shift = number % len(ring)
        for competitor in ring[shift:] + ring[:shift]:
            if competitor.is_ready:
                competitor.attempt(competitor.block)
                competitor.rest()
    for competitor in ring:
        competitor.attempt(competitor.finish)
