"""Solve 51 test problems of optimisation with exact derivatives and with differences.

The problems are the 35 functions of Moré, Garbow & Hillstrom (1981) and 16 of the kind that CUTEst
collects, with 60 unknowns; they stand in ``tests/problems`` as plain NumPy. ``as_scipy`` makes of
each what SciPy's solvers want: value, gradient and Hessian, each computed once at a point.

- ``differences``: SciPy's BFGS with its own differences, to a gradient of 1e-6, since they are not
  good for more;
- ``gradients``: the same BFGS with exact gradients, to 1e-9;
- ``Hessians``: SciPy's trust-exact with exact gradients and Hessians, to 1e-9.

The program prints how often functions, gradients and Hessians were evaluated, how far the values
found are above the known minima, and the time. It draws a data profile and, for each problem,
evaluations and values. The exit status is 1 if a problem is not solved with Hessians.

    python examples/mgh.py                    # figure in ./mgh.png
    python examples/mgh.py --no-figure

Reference: Moré & Wild, Benchmarking derivative-free optimization algorithms, SIAM J. Optim. 20
(2009), 172-191, for data profiles.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.optimize

from functrans.scipy.optimize import as_scipy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from problems import CUTEST, MGH, Problem  # found by the line above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

WAYS = "differences", "gradients", "Hessians"
SOLVED = 1e-8
"""Distance from a known minimum, relative to it where it is not 0, below which a run counts."""
REDUCTION = 1e-7
"""Part of the distance between start and minimum at which data profiles call a problem solved."""
GRADIENT_COST = 4.0
"""Evaluations that a value with its gradient is taken for: the bound of reverse mode."""
ZERO = 1e-17
"""Where a distance of 0 is drawn."""
LIMIT = 3000
REPEATS = 2

INK, MUTED, FAINT = "#22303c", "#7d8a96", "#e3e8ec"
COLORS = dict(zip(WAYS, ("#bf3b76", "#3a6bd0", "#14907f"), strict=True))


@dataclass(frozen=True, slots=True)
class Run:
    """One solver on one problem.

    Attributes:
      value: the least value found.
      nfev: evaluations of the function, those for differences included.
      njev: evaluations of the gradient.
      nhev: evaluations of the Hessian.
      seconds: time of a run after the first one, which compiles.
      costs: cost of the run, in evaluations, up to each value.
      values: the values in order.
    """

    value: float
    nfev: int
    njev: int
    nhev: int
    seconds: float
    costs: Array
    values: Array


@dataclass(frozen=True, slots=True)
class Result:
    """All runs on one problem."""

    problem: Problem
    runs: dict[str, Run]

    def gap(self, way: str) -> float:
        """Distance of the value found from the nearest known minimum."""
        return float(self.problem.gap(self.runs[way].value))


# Solving.


def solve(problem: Problem) -> Result:
    """Run the three solvers on a problem."""
    runs: dict[str, Run] = {}
    for way in WAYS:
        for _ in range(REPEATS):
            began = time.perf_counter()
            run = _run(problem, way)
            seconds = time.perf_counter() - began
            best = min(seconds, runs[way].seconds) if way in runs else seconds
            runs[way] = Run(*run, best, *_trace(problem, way))
    return Result(problem, runs)


def _run(problem: Problem, way: str, seen: list[Any] | None = None) -> tuple[float, int, int, int]:
    """Value found and numbers of evaluations; ``seen`` takes what is evaluated, in order."""
    f = _prepared(problem)
    counts = f.nfev, f.njev, f.nhev

    def noted(kind: str, compute: Callable[[Array], Any]) -> Callable[[Array], Any]:
        def call(x: Array) -> Any:
            result = compute(x)
            if seen is not None:
                seen.append((kind, f.fun(x) if kind == "f" else None))
            return result

        return call if seen is not None else compute

    options: dict[str, Any] = {"gtol": 1e-9, "maxiter": LIMIT}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # first steps of some problems overflow
        if way == "differences":
            found = scipy.optimize.minimize(
                noted("f", f.fun), f.x0, method="BFGS", options={**options, "gtol": 1e-6}
            )
        elif way == "gradients":
            found = scipy.optimize.minimize(
                noted("f", f.fun), f.x0, jac=noted("g", f.jac), method="BFGS", options=options
            )
        else:
            found = scipy.optimize.minimize(
                noted("f", f.fun), f.x0, jac=noted("g", f.jac), hess=noted("h", f.hess),
                method="trust-exact", options=options,
            )  # fmt: skip
    if way == "differences":
        return found.fun, found.nfev, 0, 0
    counts = (f.nfev - counts[0], f.njev - counts[1], f.nhev - counts[2])
    return found.fun, *counts


_functions: dict[str, Any] = {}


def _prepared(problem: Problem) -> Any:
    """The function for SciPy, made once; it forgets its points."""
    if problem.name not in _functions:
        _functions[problem.name] = as_scipy(problem.objective, problem.start)
    f = _functions[problem.name]
    for k in range(4):  # as many as it remembers
        with np.errstate(all="ignore"):
            f.fun(f.x0 + 1e-3 * (k + 1))
    return f


def _trace(problem: Problem, way: str) -> tuple[Array, Array]:
    """Costs in evaluations, and values, in the course of a run."""
    seen: list[Any] = []
    _run(problem, way, seen)
    step = {"f": 1.0 if way == "differences" else 0.0, "g": GRADIENT_COST,
            "h": GRADIENT_COST * problem.n}  # fmt: skip
    costs, values, total = [], [], 0.0
    for kind, value in seen:
        total += step[kind]
        if kind == "f":
            # A value comes with its gradient, which is paid when it is asked for.
            costs.append(max(total, 1.0))
            values.append(value)
    return np.array(costs), np.array(values)


# The table.


def format_table(results: Sequence[Result]) -> str:
    """One line for each problem, and totals."""
    lines = [
        f"{'':28}{'':>4} | {'differences':^24} | {'gradients':^30} | {'Hessians':^34}",
        f"{'problem':28}{'n':>4} | {'f':>6} {'above':>8} {'ms':>8} | {'f':>6} {'g':>5} "
        f"{'above':>8} {'ms':>8} | {'f':>5} {'g':>4} {'H':>4} {'above':>8} {'ms':>8}",
    ]
    lines.append("-" * len(lines[1]))
    for result in results:
        a, b, c = (result.runs[way] for way in WAYS)
        gaps = [_short(result.gap(way)) for way in WAYS]
        lines.append(
            f"{result.problem.name:28}{result.problem.n:4} | {a.nfev:6} {gaps[0]:>8} "
            f"{1e3 * a.seconds:8.2f} | {b.nfev:6} {b.njev:5} {gaps[1]:>8} {1e3 * b.seconds:8.2f} | "
            f"{c.nfev:5} {c.njev:4} {c.nhev:4} {gaps[2]:>8} {1e3 * c.seconds:8.2f}"
        )
    lines.append("-" * len(lines[1]))
    totals = {way: [result.runs[way] for result in results] for way in WAYS}
    solved = {way: sum(result.gap(way) < SOLVED for result in results) for way in WAYS}
    for way in WAYS:
        runs = totals[way]
        counts = [sum(getattr(run, name) for run in runs) for name in ("nfev", "njev", "nhev")]
        lines.append(
            f"{way:12} {solved[way]:3} of {len(results)} within {SOLVED:g} of a known minimum; "
            f"{counts[0]:6} values, {counts[1]:5} gradients, {counts[2]:4} Hessians; "
            f"{sum(run.seconds for run in runs):.2f} s"
        )
    return "\n".join(lines)


def _short(gap: float) -> str:
    return "0" if gap < 1e-16 else f"{gap:.0e}"


# The figure.


def draw_figure(results: Sequence[Result], path: Path) -> None:
    """Write a PNG: data profiles, then evaluations and values for each problem."""
    from matplotlib.figure import Figure

    height = 4.2 + 0.2 * len(results)
    figure = Figure(figsize=(12, height), dpi=110, facecolor="white")
    figure.text(0.03, 1 - 0.42 / height, "Derivatives that are exact", color=INK, size=19,
                weight="bold")  # fmt: skip
    figure.text(
        0.03, 1 - 0.68 / height,
        f"{len(results)} unconstrained test problems from their standard starting points, solved "
        "by SciPy through as_scipy",
        color=MUTED, size=10,
    )  # fmt: skip
    grid = figure.add_gridspec(
        2, 2, height_ratios=(2.3, 0.2 * len(results)), left=0.19, right=0.97,
        top=1 - 1.15 / height, bottom=0.55 / height, hspace=1.15 / (0.5 * height), wspace=0.06,
    )  # fmt: skip
    _draw_profile(figure.add_subplot(grid[0, :]), results)
    left = figure.add_subplot(grid[1, 0])
    _draw_rows(
        left, results, "evaluations of the function, those for differences included",
        lambda result, way: float(result.runs[way].nfev),
    )  # fmt: skip
    right = figure.add_subplot(grid[1, 1], sharey=left)
    _draw_rows(
        right, results, "value found above the nearest known minimum",
        lambda result, way: max(result.gap(way), ZERO),
    )  # fmt: skip
    right.set_xticks([ZERO, 1e-14, 1e-11, SOLVED, 1e-5, 1e-2, 1e1])
    right.set_xticklabels(["0", "1e-14", "1e-11", f"{SOLVED:g}", "1e-5", "1e-2", "10"])
    right.minorticks_off()
    right.tick_params(labelleft=False)
    right.axvline(SOLVED, color=MUTED, lw=0.8, ls=(0, (2, 2)))
    figure.savefig(path)


def _draw_profile(axes: "Axes", results: Sequence[Result]) -> None:
    """Part of the problems that are solved within a number of evaluations for each unknown."""
    budgets = np.logspace(-0.5, 4, 400)
    for line, way in enumerate(WAYS):
        needed = np.array([_needed(result, way) for result in results])
        part = np.mean(needed[:, None] <= budgets, axis=0)
        axes.plot(budgets, part, color=COLORS[way], lw=2.2, solid_capstyle="round")
        axes.text(
            0.012, 0.9 - 0.13 * line, f"{way}: {100 * part[-1]:.0f} %", transform=axes.transAxes,
            color=COLORS[way], size=11, weight="bold",
        )  # fmt: skip
    axes.set(xscale="log", xlim=(budgets[0], budgets[-1]), ylim=(0, 1.04))
    axes.set_title(
        f"problems reduced to {REDUCTION:g} of the start's distance from the minimum",
        loc="left", color=INK, size=11,
    )  # fmt: skip
    axes.set_xlabel(
        "cost / (n + 1), in evaluations of the function; a gradient is taken for "
        f"{GRADIENT_COST:.0f}, a Hessian for {GRADIENT_COST:.0f} n",
        color=MUTED,
    )
    _plain(axes)


def _needed(result: Result, way: str) -> float:
    """Cost for each unknown until the value is near its end, infinite if it never is."""
    run, problem = result.runs[way], result.problem
    goal = min(problem.minima, key=lambda known: abs(known - run.value))
    target = goal + REDUCTION * (run.values[0] - goal)
    reached = np.flatnonzero(run.values <= target + 1e-300)
    return float(run.costs[reached[0]] / (problem.n + 1)) if reached.size else np.inf


def _draw_rows(
    axes: "Axes", results: Sequence[Result], title: str, number: Callable[[Result, str], float]
) -> None:
    """A row for each problem with a dot for each way."""
    rows = np.arange(len(results))
    values = {way: np.array([number(result, way) for result in results]) for way in WAYS}
    low = np.min([values[way] for way in WAYS], axis=0)
    high = np.max([values[way] for way in WAYS], axis=0)
    axes.hlines(rows, low, high, color=FAINT, lw=3, zorder=1)
    for way in WAYS:
        axes.scatter(values[way], rows, s=26, color=COLORS[way], zorder=2, linewidths=0)
    axes.set(xscale="log", ylim=(len(results) - 0.4, -0.6))
    axes.set_yticks(rows, [result.problem.name for result in results], size=8, color=INK)
    axes.set_title(title, loc="left", color=INK, size=11)
    axes.axhline(len(MGH) - 0.5, color=FAINT, lw=1)
    _plain(axes)
    axes.tick_params(axis="y", length=0)


def _plain(axes: "Axes") -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=MUTED, labelsize=8)
    axes.grid(axis="x", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; return 0 if every problem is solved with Hessians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("mgh.png"), help="PNG to write")
    parser.add_argument(
        "--problem", action="append", metavar="NAME", help="solve this one only; may be repeated"
    )
    parser.add_argument("--no-figure", action="store_true", help="print the table only")
    options = parser.parse_args(argv)
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    known = {problem.name: problem for problem in (*MGH, *CUTEST)}
    names = options.problem or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no problem {unknown[0]!r}; there are {', '.join(known)}")
    results = [solve(known[name]) for name in names]
    print(format_table(results))
    if not options.no_figure:
        draw_figure(results, options.output)
        print(f"figure: {options.output}")
    return 0 if all(result.gap("Hessians") < SOLVED for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
