"""What the advice of ``docs/performance.md`` brings: ``python -m tests.benchmarks.advice``.

The code of the page is run first; each row below names two expressions of it. Rounds of the two
alternate, and the best of each counts. Printed is the time before over the time after, on one
thread but for the row of threads.
"""

import contextlib
import doctest
import io
import os
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path
from typing import Any

import functrans as ft

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
ROUNDS = 15
ROWS = {
    "grad_small": ("eager(small)", "compiled(small)"),
    "grad_large": ("eager(large)", "compiled(large)"),
    "value_large": ("f(large)", "value(large)"),
    "together": ("value(large), compiled(large)", "both(large)"),
    "vmap": ("[one(p, t) for p in points]", "many(points, t)"),
    "vmap_eager": ("[ft.grad(misfit)(p, t) for p in points]", "many(points, t)"),
    "scan_eager": ("ft.grad(unrolled)(hundred)", "ft.grad(scanned)(hundred)"),
    "scan": ("of_unrolled(hundred)", "of_scanned(hundred)"),
    "hvp": ("hessian(ones)", "product(ones, ones)"),
    "sparse": ("dense(line)", "sparse(line)"),
    "single": ("compiled(large)", "compiled(large_single)"),
    "donate": ("kept[0] = move(kept[0], large)", "moved[0] = move_in_place(moved[0], large)"),
    "checkpoint": ("of_checkpointed(hundred)", "of_scanned(hundred)"),
}
MORE = """
value = ft.jit(f)
large_single, moved, kept = large.astype(np.float32), [large.copy()], [large.copy()]
of_unrolled, of_scanned = ft.jit(ft.grad(unrolled)), ft.jit(ft.grad(scanned))
of_checkpointed = ft.jit(ft.grad(checkpointed))
"""
FIRST = """
import time, numpy as np, functrans as ft
def f(x):
    for k in range(300):
        x = (np.sin, np.cos, np.tanh, np.arctan, np.exp)[k * k * k % 7 % 5](x) * 0.5
    return np.sum(x)
ft.jit(f)(1.0)
start = time.perf_counter()
ft.jit(ft.grad(f))(np.ones(10))
print(time.perf_counter() - start)
"""


def page() -> dict[str, Any]:
    """The names that the sessions of the page define."""
    namespace: dict[str, Any] = {}
    examples = doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
    with contextlib.redirect_stdout(io.StringIO()):
        exec("".join(example.source for example in examples) + MORE, namespace)
    return namespace


def ratio(before: str, after: str, names: dict[str, Any]) -> float:
    """Best time of one statement over that of the other, in rounds that alternate."""
    timers = [timeit.Timer(statement, globals=names) for statement in (before, after)]
    numbers = [max(1, int(0.02 / min(timer.repeat(2, 1)))) for timer in timers]
    times = [
        [timer.timeit(number) / number for timer, number in zip(timers, numbers, strict=True)]
        for _ in range(ROUNDS)
    ]
    first, second = map(min, zip(*times, strict=True))
    return first / second


def first_call(names: dict[str, Any], fun: str) -> float:
    """Seconds that tracing and compiling take, with nothing on disk."""
    ft.clear_caches()
    start = time.perf_counter()
    eval(f"ft.jit(ft.grad({fun}))(hundred)", names)
    return time.perf_counter() - start


def of_a_process(folder: str) -> float:
    """Seconds of a first call in a process whose cache is in a folder."""
    env = {**os.environ, "FUNCTRANS_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FIRST]
    return float(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


def temporary_bytes(names: dict[str, Any], fun: str) -> int:
    plan = str(eval(f"ft.jit(ft.grad({fun})).plan(hundred)", names))
    return int(plan.rpartition("temporary memory: ")[2].split()[0])


def main() -> None:
    """Print a line for each row of the page."""
    os.environ["FUNCTRANS_CACHE_DIR"] = "off"
    names = page()
    ft.set_num_threads(1)
    for name, (before, after) in ROWS.items():
        print(f"{name:12} {ratio(before, after, names):8.3g}")
    kinds = ("unrolled", "scanned")
    firsts = [min(first_call(names, fun) for _ in range(ROUNDS)) for fun in kinds]
    print(f"{'scan_first':12} {firsts[0] / firsts[1]:8.3g}")
    memory = [temporary_bytes(names, fun) for fun in ("checkpointed", "scanned")]
    print(f"{'memory':12} {memory[0] / memory[1]:8.3g}")
    counted = []
    for threads in (1, 2) * ROUNDS:
        ft.set_num_threads(threads)
        counted.append(min(timeit.repeat("compiled(large)", globals=names, number=5, repeat=2)))
    print(f"{'threads':12} {min(counted[::2]) / min(counted[1::2]):8.3g}")
    with tempfile.TemporaryDirectory() as folder:
        of_a_process(folder)
        cold, warm = [of_a_process("off") for _ in "123"], [of_a_process(folder) for _ in "123"]
    print(f"{'disk':12} {min(cold) / min(warm):8.3g}")


if __name__ == "__main__":
    main()
