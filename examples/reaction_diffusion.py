"""Grow a Turing pattern by implicit steps: Newton's method with a sparse Jacobian.

The Gray-Scott model on 200 x 200 cells, two chemicals, no flux through the walls: 80,000 unknowns.
From a few drops the pattern first grows by explicit steps of length 1, in one compiled loop; longer
ones are unstable. Then come implicit Euler steps fifty times as long. Each is Newton's method: the
Jacobian of the residual comes from ``ft.sparse_jacobian`` as a ``scipy.sparse`` matrix, nothing
about its structure is written down, and ``scipy.sparse.linalg.spsolve`` solves the system. A step
from which Newton's method does not converge is halved.

    python examples/reaction_diffusion.py                  # figure in ./reaction_diffusion.png
    python examples/reaction_diffusion.py --cells 64 --no-figure

The exit status is 1 if an accepted step does not reach a residual of 1e-12, if Newton's method does
not converge quadratically, or if a product with the sparse Jacobian differs from the directional
derivative.
"""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import spsolve

import functrans as ft
from functrans import lax

DIFFUSION = (0.16, 0.08)
FEED, KILL = 0.040, 0.060
GROWTH_STEPS = 5000
STEP, SPAN = 50.0, 300.0
TOLERANCE = 1e-12
INK, MUTED, ACCENT = "#22303c", "#7d8a96", "#bf3b76"

History = list[tuple[float, list[float]]]
"""Length of each accepted step, and the residuals on its way."""


# The model, in plain NumPy.


def laplacian(u: ft.Array) -> Any:
    """Differences with the four neighbours; the walls let nothing through."""
    padded = np.pad(u, 1, mode="edge")
    around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
    return around - 4 * u


def rates(state: ft.Array) -> ft.Array:
    """How fast both chemicals change: ``[2, n, n]``."""
    u, v = state
    reaction = u * v * v
    return np.stack(
        [
            DIFFUSION[0] * laplacian(u) - reaction + FEED * (1 - u),
            DIFFUSION[1] * laplacian(v) + reaction - (FEED + KILL) * v,
        ]
    )


def residual(state: ft.Array, before: ft.Array, inverse_step: float) -> Any:
    """Of an implicit Euler step."""
    return inverse_step * (state - before) - rates(state)


def drops(n: int, seed: int = 4) -> ft.Array:
    """The first chemical everywhere, some of the second one in a few places."""
    rng = np.random.default_rng(seed)
    state = np.stack([np.ones((n, n)), np.zeros((n, n))])
    i, j = np.indices((n, n))
    for y, x in rng.uniform(0.1 * n, 0.9 * n, (12, 2)):
        inside = (i - y) ** 2 + (j - x) ** 2 < 16
        state[:, inside] = np.array([[0.5], [0.25]]) + rng.uniform(0, 0.05, (2, inside.sum()))
    return state


@ft.jit
def grow(state: ft.Array) -> ft.Array:
    """Explicit Euler steps of length 1."""
    return lax.fori_loop(0, GROWTH_STEPS, lambda _, now: now + rates(now), state)


# Newton's method.

jacobian = ft.sparse_jacobian(residual, format="csc")
compiled_residual = ft.jit(residual)


def newton(
    before: ft.Array, step: float, clock: dict[str, float], most: int = 9
) -> tuple[ft.Array, list[float]]:
    """Solve one implicit step; the state and the largest residual after every iteration."""
    state, inverse_step = before, 1 / step
    norms: list[float] = []
    for _ in range(most):
        start = time.perf_counter()
        value = compiled_residual(state, before, inverse_step)
        clock["residual"] += time.perf_counter() - start
        norms.append(float(np.max(np.abs(value))))
        if norms[-1] < TOLERANCE or (len(norms) > 2 and norms[-1] > norms[-2]):
            break
        start = time.perf_counter()
        matrix = jacobian(state, before, inverse_step)
        clock["Jacobian"] += time.perf_counter() - start
        start = time.perf_counter()
        change = spsolve(matrix, value.ravel())
        clock["spsolve"] += time.perf_counter() - start
        clock["solves"] += 1
        state = state - change.reshape(state.shape)
    return state, norms


def advance(state: ft.Array, clock: dict[str, float]) -> tuple[ft.Array, History]:
    """Implicit steps over the span; residuals of every step that was accepted."""
    history: History = []
    now, step = 0.0, STEP
    while now < SPAN:
        new, norms = newton(state, step, clock)
        is_solved = norms[-1] < TOLERANCE
        text = " ".join(f"{norm:.1e}" for norm in norms)
        print(f"{now:5.0f} + {step:4.1f}: residual {text}{'' if is_solved else ' (halved)'}")
        if is_solved:
            state, now = new, now + step
            history.append((step, norms))
            step = min(2 * step, STEP, max(SPAN - now, 1.0))
        else:
            step /= 2
    return state, history


def error_ratios(history: History) -> list[float]:
    """The last residuals above rounding, each over the square of the one before."""
    ratios = []
    for _, norms in history:
        above = [norm for norm in norms if norm > 1e-13]
        ratios.append(above[-1] / above[-2] ** 2)
    return ratios


# The figure.


def draw(grown: ft.Array, state: ft.Array, history: History, path: Path) -> None:
    """Both fields, the Jacobian in its colors, the convergence."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"text.color": INK, "axes.labelcolor": INK, "font.size": 9})
    plt.rcParams.update({"xtick.color": MUTED, "ytick.color": MUTED, "axes.edgecolor": MUTED})
    figure, axes = plt.subplots(2, 3, figsize=(13, 8.6), layout="constrained")
    figure.suptitle(
        "Two chemicals that react and diffuse: implicit steps with a sparse Jacobian",
        x=0.012, ha="left", fontsize=14, weight="bold",
    )  # fmt: skip
    pictures = (
        (grown[1], f"second chemical after {GROWTH_STEPS:,} explicit steps", "magma"),
        (state[1], f"second chemical, {len(history)} implicit steps later", "magma"),
        (state[0], "first chemical at the same time", "viridis"),
    )
    for axis, (field, title, colors) in zip(axes[0], pictures, strict=True):
        image = axis.imshow(field, cmap=colors, interpolation="bilinear")
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks([])
        figure.colorbar(image, ax=axis, shrink=0.8)

    matrix = jacobian.pattern()
    axes[1, 0].spy(matrix, marker=",", color=INK, rasterized=True)
    axes[1, 0].xaxis.tick_bottom()
    axes[1, 0].set_title(
        f"Jacobian: {matrix.shape[0]:,} x {matrix.shape[1]:,}, {matrix.nnz:,} entries"
    )
    few = ft.sparse_jacobian(residual)
    few(drops(6), drops(6), 1 / STEP)
    few.spy(axes[1, 1])
    axes[1, 1].set_title(f"the same on 6 x 6 cells: columns in {few.n_colors} colors")
    for axis in axes[1, :2]:
        axis.locator_params(nbins=4)

    axis = axes[1, 2]
    for number, (_, norms) in enumerate(history):
        shade = 0.3 + 0.6 * number / len(history)
        shown = np.maximum(norms, 1e-16)
        axis.loglog(shown[:-1], shown[1:], "o-", ms=4, lw=1, color=plt.get_cmap("Blues")(shade))
    ends = np.array([1e-6, 1e-2])
    middle = np.median(error_ratios(history))
    axis.loglog(ends, middle * ends**2, color=ACCENT, lw=2, label="slope 2")
    axis.axhline(TOLERANCE, color=MUTED, linewidth=0.8, linestyle=":")
    axis.set_xlabel("residual before an iteration of Newton's method")
    axis.set_ylabel("residual after it")
    axis.set_title(f"quadratic convergence in each of {len(history)} implicit steps")
    axis.legend(frameon=False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Grow, step, check and draw; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=int, default=200, help="cells along each side")
    parser.add_argument(
        "--output", type=Path, default=Path("reaction_diffusion.png"), help="PNG to write"
    )
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args(arguments)
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")

    start = time.perf_counter()
    grown = grow(drops(options.cells))
    print(f"{GROWTH_STEPS} explicit steps: {time.perf_counter() - start:.1f} s")

    start = time.perf_counter()
    matrix = jacobian(grown, grown, 1 / STEP)
    print(
        f"Jacobian: {matrix.shape[0]} x {matrix.shape[1]}, {matrix.nnz} entries, "
        f"{jacobian.n_colors} colors; pattern, coloring and compilation "
        f"{time.perf_counter() - start:.2f} s"
    )
    jacobian.check(grown, grown, 1 / STEP)
    clock = {"residual": 0.0, "Jacobian": 0.0, "spsolve": 0.0, "solves": 0}
    state, history = advance(grown, clock)
    per_solve = {name: 1e3 * clock[name] / clock["solves"] for name in clock if name != "solves"}
    print(f"{clock['solves']} systems:", *(f"{name} {ms:.1f} ms" for name, ms in per_solve.items()))
    ratios = error_ratios(history)
    print(
        f"last residual over the square of the one before: {min(ratios):.2g} to {max(ratios):.2g}"
    )
    if not options.no_figure:
        draw(grown, state, history, options.output)
        print(f"figure: {options.output}")
    return 0 if max(ratios) < 1e5 else 1


if __name__ == "__main__":
    sys.exit(main())
