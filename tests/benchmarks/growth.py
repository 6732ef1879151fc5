"""``python -m tests.benchmarks.growth``: time and memory against the size of a problem.

Ten gradients over four decades and more, by functrans and JAX, both compiled, in processes that
alternate. Writes ``docs/growth.json`` and, with matplotlib, ``docs/growth.png``. A size is left out
when a library took too long for the one before it.

Layer: above ``libraries``; a figure of its own, beside the table of ``__main__``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from tests.benchmarks import libraries
from tests.benchmarks.process import ROOT

DOCS = ROOT / "docs"
LIBRARIES = ("functrans", "jax")
FIRST_CALL_S = 12.0
"""First calls after which larger sizes are left out."""
SPENT_S = 0.4
"""Seconds in which a call is repeated."""


def _ops(library: str) -> Any:
    if library == "jax":
        import jax
        from jax import lax

        jax.config.update("jax_enable_x64", True)
        return jax.numpy, lax, jax.grad, jax.jit, jax.vmap, jax.jacfwd, jax.ops.segment_sum
    import functrans as ft
    import functrans.lax
    import functrans.numpy
    import functrans.ops

    lax, segment_sum = functrans.lax, functrans.ops.segment_sum
    return functrans.numpy, lax, ft.grad, ft.jit, ft.vmap, ft.jacfwd, segment_sum


def elementwise(n: int, ops: Any) -> Any:
    """sum(tanh(x) exp(-x²))"""
    xp, *_ = ops
    return lambda x: xp.sum(xp.tanh(x) * xp.exp(-x * x)), (n,)


def logsumexp(n: int, ops: Any) -> Any:
    """log of a sum of exponentials"""
    xp, *_ = ops

    def f(x: Any) -> Any:
        top = xp.max(x)
        return top + xp.log(xp.sum(xp.exp(x - top)))

    return f, (n,)


def product(n: int, ops: Any) -> Any:
    """sum(sin(A A)), A with n elements"""
    xp, *_ = ops
    return lambda a: xp.sum(xp.sin(a @ a)), (max(1, round(n**0.5)),) * 2


def messages(n: int, ops: Any) -> Any:
    """n messages between n / 8 nodes"""
    import numpy as np

    xp, _, _, _, _, _, segment_sum = ops
    nodes = max(1, n // 8)
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, nodes, (2, n))

    def f(x: Any) -> Any:
        sums = segment_sum(xp.tanh(x[source]), target, nodes)
        return xp.sum(sums * sums)

    return f, (nodes,)


def loop(n: int, ops: Any) -> Any:
    """n steps of a scan"""
    xp, lax, *_ = ops

    def step(x: Any, _: Any) -> Any:
        return x + 0.01 * xp.sin(x[::-1]), None

    return lambda x: xp.sum(lax.scan(step, x, None, length=n)[0]), (6,)


def equations(n: int, ops: Any) -> Any:
    """n lines of Python on 16 numbers"""
    xp, *_ = ops

    def f(x: Any) -> Any:
        for i in range(max(1, n // 4)):
            x = x + 0.01 * xp.sin(x * (1 + i % 7))
        return xp.sum(x)

    return f, (16,)


def fourier(n: int, ops: Any) -> Any:
    """a filter by Fourier transforms"""
    xp, *_ = ops
    return lambda x: xp.sum(xp.fft.ifft(xp.fft.fft(x) * xp.arange(n)).real ** 2), (n,)


def cumulative(n: int, ops: Any) -> Any:
    """cumulative sums"""
    xp, *_ = ops
    return lambda x: xp.sum(xp.sin(xp.cumsum(x))), (n,)


def batch(n: int, ops: Any) -> Any:
    """n linear systems of three unknowns, by vmap"""
    import numpy as np

    xp, _, _, _, vmap, *_ = ops
    matrix = np.eye(3) * 4 + 1

    def one(x: Any) -> Any:
        return xp.sum(xp.linalg.solve(matrix + xp.outer(x, x), x) ** 2)

    return lambda x: xp.sum(vmap(one)(x)), (n, 3)


def jacobian(n: int, ops: Any) -> Any:
    """a Jacobian with n entries"""
    xp, *_ = ops
    return lambda x: xp.tanh(x) * xp.sum(x * x), (max(1, round(n**0.5)),)


WORKLOADS: dict[Callable[[int, Any], Any], tuple[int, ...]] = {
    elementwise: tuple(10**k for k in range(8)),
    logsumexp: tuple(10**k for k in range(8)),
    product: tuple(10**k for k in range(7)),
    messages: tuple(10**k for k in range(1, 7)),
    loop: tuple(10**k for k in range(1, 6)),
    equations: (4, 40, 400, 4000, 10000),
    fourier: tuple(2**k for k in range(3, 21, 3)),
    cumulative: tuple(10**k for k in range(8)),
    batch: tuple(10**k for k in range(6)),
    jacobian: tuple(10**k for k in range(8)),
}


def measured(library: str, name: str) -> list[list[float]]:
    """Size, seconds per call, seconds of the first call, bytes beyond the largest use before."""
    import numpy as np

    ops = _ops(library)
    xp, _, grad, jit, _, jacfwd, _ = ops
    (workload,) = (w for w in WORKLOADS if w.__name__ == name)
    ready = (lambda y: y.block_until_ready()) if library == "jax" else (lambda y: y)
    ready(jit(lambda x: xp.sin(x))(np.ones(3)))  # what every program imports
    rows = []
    for size in WORKLOADS[workload]:
        f, shape = workload(size, ops)
        g = jit(jacfwd(f) if workload is jacobian else grad(f))
        x = xp.asarray(np.random.default_rng(0).normal(size=shape))
        before = _peak()
        start = time.perf_counter()
        ready(g(x))
        first = time.perf_counter() - start
        times, end = [], time.perf_counter() + SPENT_S
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            ready(g(x))
            times.append(time.perf_counter() - start)
        rows.append([size, min(times), first, _peak() - before])
        if first > FIRST_CALL_S:
            break
    return rows


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _all(only: str, rounds: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for workload in WORKLOADS:
        name = workload.__name__
        if only not in name:
            continue
        found: dict[str, list[list[float]]] = {}
        for _ in range(rounds):
            for library in LIBRARIES:
                command = [sys.executable, "-m", "tests.benchmarks.growth", "--one", library, name]
                environment = os.environ | libraries.environment(library, 2, "float64")
                environment["FUNCTRANS_CACHE_DIR"] = "off"
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
                )
                rows = json.loads(done.stdout.splitlines()[-1])
                best = found.setdefault(library, rows)
                found[library] = [
                    [a[0], *map(min, a[1:], b[1:])] for a, b in zip(best, rows, strict=False)
                ]
        results[name] = {"title": workload.__doc__, "rows": found}
        print(name, *(f"{k}: {v[-1]}" for k, v in found.items()), flush=True)
    return results


def _draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, grid = plt.subplots(4, 5, figsize=(13, 9), layout="constrained")
    colors = {"functrans": "#1b6ca8", "jax": "#c2571a"}
    for k, (name, result) in enumerate(results.items()):
        times, memory = grid[2 * (k // 5)][k % 5], grid[2 * (k // 5) + 1][k % 5]
        for library, rows in result["rows"].items():
            sizes = [row[0] for row in rows]
            color, label = colors[library], {"jax": "JAX"}.get(library, library)
            times.loglog(sizes, [1e3 * row[1] for row in rows], "o-", ms=3, c=color, label=label)
            first = [1e3 * row[2] for row in rows]
            times.loglog(sizes, first, ":", c=color, label=f"{label}, first call")
            used = [max(mb, 0.1) for mb in accumulate(row[3] / 1e6 for row in rows)]
            memory.loglog(sizes, used, "o-", ms=3, c=color)
        times.set_title(f"{name}\n{result['title']}", fontsize=8)
    for row in range(4):
        grid[row][0].set_ylabel("most memory so far, MB" if row % 2 else "time, ms")
    for axes in grid[3]:
        axes.set_xlabel("size")
    grid[0][0].legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "WORKLOAD"), help="one process")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--rounds", type=int, default=2, help="processes for each; minima count")
    parser.add_argument("--draw", action="store_true", help="only draw docs/growth.json")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(*given.one)))
        return
    path = DOCS / "growth.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not given.draw:
        results |= _all(given.only, given.rounds)
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    try:
        _draw(results, DOCS / "growth.png")
    except ImportError:
        print("matplotlib is not installed: no figure")


if __name__ == "__main__":
    main()
