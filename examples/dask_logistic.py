"""Fit a logistic regression to twenty million rows that do not fit into the workers' memory.

The rows are made chunk by chunk when a worker asks for them, in float32, and are forgotten after
use; a real program would read them from files in the same place. ``ft.dask.sum_over`` makes of the
loss of a chunk the loss of all rows. Its gradient, its Hessian-vector products (for Newton-CG) and
its Hessian (for standard errors) are transforms of that, each of which is one pass over the rows on
all workers.

    python examples/dask_logistic.py                  # figure in ./dask_logistic.png
    python examples/dask_logistic.py --rows 400_000 --no-figure
    python examples/dask_logistic.py --efficiency     # passes with two workers against one

The exit status is 1 if the gradient at the estimate is not zero, if a chunk's loss and gradient are
not those of NumPy, or if the estimates are not as far from the true coefficients as their standard
errors say. Reference: Nocedal & Wright, Numerical Optimization, 2nd ed. (2006), section 7.1
(Newton-CG).
"""

import argparse
import functools
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.optimize
from dask.config import set as dask_config
from dask.distributed import Client, LocalCluster

import functrans as ft

COLUMNS = 16
"""The intercept, and what else is known of a row; its label is one more column."""
TRUTH = np.array([-0.6, *(1.1 * (-0.82) ** np.arange(COLUMNS - 1))])
CHUNK = 50_000
"""Rows: 3.4 MB, which the caches of two workers hold."""
KEPT = 2**26
"""Bytes of freed memory that a worker keeps for its next chunk. Dask's own setting gives all of it
back to the system, which then clears the pages of every chunk anew: 40 % of a pass."""
WATCHED = {"distributed.admin.tick.interval": "1s", "distributed.worker.profile.interval": "100ms"}
"""How often the client, the scheduler and each worker ask whether they are still awake, and how
often a worker looks what it computes. Dask's own settings are 20 and 10 ms: where every processor
computes, that is 10 % of a pass."""
BINS = 40
INK, MUTED, BLUE, ORANGE, RED = "#22303c", "#7d8a96", "#2a6f97", "#b5651d", "#a4243b"


def chunk(block_info: Any = None) -> np.ndarray:
    """``f32[rows, COLUMNS + 1]``: correlated columns and the label, by the chunk's own seed."""
    place = block_info[None]
    rows, number = place["chunk-shape"][0], place["chunk-location"][0]
    bits = np.random.SFC64([7, number])
    drawn = bits.random_raw((rows * (COLUMNS - 1) + 3) // 4).view(np.int16)
    data = np.empty((rows, COLUMNS + 1), np.float32)
    data[:, 0] = 1.0
    uniform = drawn[: rows * (COLUMNS - 1)].reshape(rows, COLUMNS - 1)
    np.multiply(uniform, np.float32(3**0.5 / 2**15), out=data[:, 1:-1])
    data[:, 2:-1] += np.float32(0.5) * data[:, 1:2]
    chance = 1.0 / (1.0 + np.exp(-(data[:, :-1] @ TRUTH.astype(np.float32))))
    data[:, -1] = np.random.Generator(bits).random(rows, dtype=np.float32) < chance
    return data


def rows_of(count: int, size: int = CHUNK) -> Any:
    """All rows as a Dask array, none of which is made yet."""
    cuts = tuple(min(size, count - i) for i in range(0, count, size))
    shape = (cuts, (COLUMNS + 1,))
    return da.map_blocks(chunk, chunks=shape, dtype=np.float32, meta=np.empty((0, 0), np.float32))


def loss(w: ft.Array, data: ft.Array) -> Any:
    """Minus the logarithm of the likelihood of some rows, in their precision."""
    x, y = data[:, :-1], data[:, -1]
    z = x @ w.astype(np.float32)
    return np.sum(np.logaddexp(np.float32(0.0), z) - y * z).astype(float)


def calibration(w: ft.Array, data: ft.Array) -> Any:
    """Per bin of the predicted chance: rows, the chances' sum, and how many labels are 1."""
    chance = 1.0 / (1.0 + np.exp(-(data[:, :-1] @ w.astype(np.float32))))
    place = np.floor(chance * BINS)
    bins = (place[:, None] == np.arange(BINS)).astype(np.float32)
    found = np.stack([np.sum(bins, 0), chance @ bins, data[:, -1] @ bins])
    return found.astype(float)


def in_numpy(w: np.ndarray, data: np.ndarray) -> tuple[Any, np.ndarray]:
    """Loss and gradient, written by hand."""
    x, y = data[:, :-1].astype(float), data[:, -1].astype(float)
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z), x.T @ (1.0 / (1.0 + np.exp(-z)) - y)


class Fit:
    """A fit by Newton-CG, and what happened on the way."""

    def __init__(self, data: Any) -> None:
        total = ft.dask.sum_over(loss)
        self.rows = data.shape[0]
        self.begin = time.perf_counter()
        self.passes: list[tuple[str, float]] = []
        """Per pass, what it was for and when it ended."""
        self.slopes: list[tuple[int, float, float]] = []
        """Passes so far, the loss and the largest slope, both per row."""

        def mean(w: ft.Array) -> Any:
            return total(w, data) / self.rows

        self.value_and_grad = ft.jit(ft.value_and_grad(mean))
        self.product = ft.jit(lambda w, v: ft.hvp(mean, (w,), (v,)))
        self.hessian = ft.jit(ft.hessian(mean))

    def note(self, what: str) -> None:
        """A pass has ended."""
        self.passes.append((what, time.perf_counter() - self.begin))

    def objective(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient per row, as SciPy asks for them."""
        value, slope = self.value_and_grad(w)
        self.note("gradient")
        self.slopes.append((len(self.passes), float(value), float(np.max(np.abs(slope)))))
        print(
            f"pass {len(self.passes):3}: loss {value:.9f} per row, "
            f"largest slope {self.slopes[-1][2]:.1e}, {self.passes[-1][1]:6.1f} s",
            flush=True,
        )
        return float(value), slope

    def hessp(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian per row with a vector."""
        result: np.ndarray = self.product(w, v)
        self.note("product")
        return result

    def run(self) -> tuple[np.ndarray, np.ndarray]:
        """The estimates and their standard errors."""
        found = scipy.optimize.minimize(
            self.objective, np.zeros(COLUMNS), jac=True, hessp=self.hessp, method="Newton-CG",
            options={"xtol": 1e-6},
        )  # fmt: skip
        errors = np.sqrt(np.diag(np.linalg.inv(self.hessian(found.x))) / self.rows)
        self.note("Hessian")
        return found.x, errors


class Memory:
    """What the workers' processes hold, twice a second, while the block runs."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.times: list[float] = []
        self.bytes: list[list[int]] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        """Ask until the block ends."""
        begin = time.perf_counter()
        while not self.stop.wait(0.5):
            workers = self.client.scheduler_info()["workers"].values()
            if workers:  # the client has heard of them
                self.times.append(time.perf_counter() - begin)
                self.bytes.append([worker["metrics"]["memory"] for worker in workers])

    def __enter__(self) -> "Memory":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()

    def peak(self) -> float:
        """The most that one worker held, in bytes; 0 if it was not asked."""
        return float(max((max(row) for row in self.bytes), default=0))


def cluster(workers: int, limit: str) -> LocalCluster:
    """Processes of one thread on this machine."""
    names = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    kept = {f"distributed.nanny.pre-spawn-environ.{name}": KEPT for name in names}
    with dask_config(kept | WATCHED):
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=limit, dashboard_address=":0"
        )


def efficiency(count: int, limit: str, rounds: int = 7) -> None:
    """Gradients on one worker and on two, in turn; no other cluster runs beside."""
    gradient = Fit(rows_of(count)).value_and_grad
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers, known in times.items():
            with cluster(workers, limit) as started, Client(started):
                for _ in range(2):
                    gradient(np.zeros(COLUMNS))  # compiled, and workers have their memory
                for _ in range(3):
                    begin = time.perf_counter()
                    gradient(np.zeros(COLUMNS))
                    known.append(time.perf_counter() - begin)
    ratios = [a / (2 * b) for a, b in zip(times[1], times[2], strict=True)]
    print(
        f"a gradient over {count:,} rows: {np.median(times[1]):.2f} s on one worker, "
        f"{np.median(times[2]):.2f} s on two; efficiency {np.median(ratios):.2f} (median of "
        f"{len(ratios)} pairs), {min(times[1]) / (2 * min(times[2])):.2f} (minima)"
    )


def draw_figure(
    fit: Fit,
    w: np.ndarray,
    errors: np.ndarray,
    bins: np.ndarray,
    memory: Memory,
    limit: float,
    path: Path,
) -> None:
    """Convergence, coefficients, calibration, and memory in time."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    size = 4.0 * fit.rows * (COLUMNS + 1)
    figure, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    figure.suptitle(
        f"A logistic regression on {fit.rows / 1e6:g} million rows, {size / 1e9:.2f} GB that are "
        f"made as they are read: {len(fit.passes)} passes by {len(memory.bytes[0])} workers of "
        f"{limit / 1e6:.0f} MB",
        x=0.012, ha="left", fontsize=13, weight="bold", color=INK,
    )  # fmt: skip

    numbers = [number for number, _, _ in fit.slopes]
    slopes = [slope for _, _, slope in fit.slopes]
    best = min(value for _, value, _ in fit.slopes)
    above = [max(value - best, 1e-17) for _, value, _ in fit.slopes]
    for number, (what, _) in enumerate(fit.passes, 1):
        if what == "product":
            a.axvspan(number - 0.5, number + 0.5, color=BLUE, alpha=0.08, lw=0)
    a.semilogy(numbers, slopes, "o-", color=BLUE, ms=5, label="largest slope, per row")
    a.semilogy(numbers[:-1], above[:-1], "s--", color=ORANGE, ms=4, label="loss above its minimum")
    a.set(xlabel="pass over the rows", xlim=(0.5, len(fit.passes) + 0.5))
    a.set_title("Newton-CG; shaded: Hessian-vector products", loc="left", fontsize=10, color=INK)
    a.legend(frameon=False, fontsize=9)

    z = (w - TRUTH) / errors
    places = np.arange(COLUMNS)
    b.axhspan(-1.96, 1.96, color=MUTED, alpha=0.15, lw=0, label="95 % of a normal distribution")
    b.axhline(0.0, color=MUTED, lw=0.8)
    b.vlines(places, 0.0, z, color=BLUE, lw=1.2)
    b.scatter(places, z, s=26, color=BLUE, zorder=3)
    b.set(xlabel="coefficient", ylabel="(estimate - truth) / standard error", ylim=(-4, 4))
    b.set_xticks(places, ["1", *(f"$x_{{{j}}}$" for j in range(1, COLUMNS))])
    b.set_title(
        f"standard errors from the exact Hessian: {errors.min():.1e} to {errors.max():.1e}",
        loc="left", fontsize=10, color=INK,
    )  # fmt: skip
    b.legend(frameon=False, fontsize=9, loc="upper right")

    count, predicted, seen = bins
    filled = count > 0
    count, predicted, seen = count[filled], predicted[filled], seen[filled]
    chance = predicted / count
    wide = 1.96 * np.sqrt(chance * (1 - chance) / count)
    c.fill_between(chance, -1e3 * wide, 1e3 * wide, color=MUTED, alpha=0.2, lw=0,
                   label="95 % by chance")  # fmt: skip
    c.plot(chance, 1e3 * (seen / count - chance), "o-", color=RED, ms=3.5, lw=0.9, label="residual")
    c.set(xlabel="predicted chance", ylabel="observed - predicted, in 1/1000", xlim=(0, 1))
    c.set_title("calibration over all rows", loc="left", fontsize=10, color=INK)
    c.legend(frameon=False, fontsize=9, loc="upper left")

    held = np.array(memory.bytes) / 1e6
    for worker, column in enumerate(held.T):
        d.plot(memory.times, column, lw=1.2, color=(BLUE, ORANGE)[worker % 2],
               label=f"worker {worker}")  # fmt: skip
    d.axhline(limit / 1e6, color=RED, lw=1.2, ls="--", label="limit of a worker")
    d.axhline(size / 1e6, color=INK, lw=1.2, ls=":", label="all rows")
    d.set(xlabel="seconds", ylabel="MB in the process", ylim=(0, 1.12 * max(size, limit) / 1e6))
    d.set_title("memory: a chunk at a time", loc="left", fontsize=10, color=INK)
    d.legend(frameon=False, fontsize=9, loc="center right")
    for axes in (a, b, c, d):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def main() -> int:
    """Fit, check, draw; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=functools.partial(int, base=10), default=20_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="400MB", help="of each worker")
    parser.add_argument("--efficiency", action="store_true", help="one worker against two")
    parser.add_argument("--output", type=Path, default=Path("dask_logistic.png"), help="PNG")
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args()
    if options.efficiency:
        efficiency(options.rows, options.memory_limit)
        return 0
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    with (
        cluster(options.workers, options.memory_limit) as started,
        Client(started) as client,
        Memory(client) as memory,
    ):
        data = rows_of(options.rows)
        fit = Fit(data)
        w, errors = fit.run()
        bins = ft.dask.sum_over(calibration)(w, data)
        sample = data.blocks[0]
        found = ft.value_and_grad(ft.dask.sum_over(loss))(w, sample)
        expected = in_numpy(w, sample.compute())
        limits = client.scheduler_info()["workers"].values()
        limit = float(min(worker["memory_limit"] for worker in limits))
    print(f"{'':4}{'truth':>10}{'estimate':>12}{'error':>11}{'z':>7}")
    for j in range(COLUMNS):
        z = (w[j] - TRUTH[j]) / errors[j]
        print(f"{j:4}{TRUTH[j]:10.4f}{w[j]:12.6f}{errors[j]:11.1e}{z:7.2f}")
    difference = np.max(np.abs(found[1] - expected[1])) / np.abs(expected[0])
    print(f"a chunk against NumPy: gradients differ by {difference:.1e} of the loss")
    print(
        f"{len(fit.passes)} passes over {4e-9 * options.rows * (COLUMNS + 1):.2f} GB in "
        f"{fit.passes[-1][1]:.1f} s; a worker held at most {1e-6 * memory.peak():.0f} of "
        f"{1e-6 * limit:.0f} MB"
    )
    if not options.no_figure:
        draw_figure(fit, w, errors, bins, memory, limit, options.output)
        print(f"figure: {options.output}")
    distance = np.sum(((w - TRUTH) / errors) ** 2)  # chi-squared, with correlations left out
    is_right = fit.slopes[-1][2] < 1e-6 and difference < 1e-7 and distance < 4 * COLUMNS
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
