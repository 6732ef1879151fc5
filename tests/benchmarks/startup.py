"""Measure statements in fresh processes that alternate (import time).

Layer: above ``process``; the counterpart of ``rounds`` for a ``ProcessWorkload``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection

from tests.benchmarks import libraries
from tests.benchmarks.process import ROOT
from tests.benchmarks.record import ProcessWorkload
from tests.benchmarks.rounds import Measurement

SCRIPT = """\
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""
TIMEOUT_S = 120.0


def _once(label: str, statement: str, threads: int, measurement: Measurement) -> float | None:
    """Run ``statement`` in a fresh process; return its seconds or note the failure."""
    environment = os.environ | libraries.environment(label, threads, "float64")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", SCRIPT.format(statement=statement)]
    try:
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        measurement.status, measurement.reason = "timeout", f"import > {TIMEOUT_S:g} s"
        return None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        missing = lines[-1].startswith("ModuleNotFoundError")
        measurement.status = "missing" if missing else "failed"
        measurement.reason, measurement.detail = lines[-1], done.stderr[-2000:]
        return None
    return float(done.stdout.split()[-1])


def measure(
    workload: ProcessWorkload,
    labels: Collection[str],
    repeats: int,
    threads: int,
    progress: Callable[[str], None],
) -> list[Measurement]:
    """Time each statement ``repeats`` times after one run that fills the bytecode caches."""
    measurements = {label: Measurement(label) for label in workload.statements if label in labels}
    for repeat in range(-1, repeats):
        progress(f"process {max(repeat, 0) + 1}/{repeats}")
        for label, measurement in measurements.items():
            if measurement.status != "ok":
                continue
            seconds = _once(label, workload.statements[label], threads, measurement)
            if seconds is not None and repeat >= 0:
                measurement.block_s.append(seconds)
    return list(measurements.values())
