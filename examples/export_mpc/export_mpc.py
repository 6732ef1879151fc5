"""A controller that is written in Python and runs in C: a cart swings a pole up and holds it.

Model-predictive control: every 50 ms the next 30 steps are planned, and the first of their forces
is applied. A plan is a vector of 154 numbers, states and forces, whose states follow from each
other where the constraints hold (direct multiple shooting); forces stay within their limit by a
logarithmic barrier. It is improved by Newton steps on the Lagrangian: the gradient comes from
``ft.grad``, the Hessian of the Lagrangian from ``ft.sparse_hessian``, the Jacobian of the
constraints from ``ft.sparse_jacobian``; a Riccati recursion through the 30 steps solves the system.
All of it is plain NumPy, and nothing is derived by hand.

``ft.jit(f).export`` makes object files and headers of the controller, the plant and the
derivatives, from which ``cc`` builds ``simulate.c``. It has no Python, no heap and no library but
C's own. The same loop in Python gives the same bits.

    python examples/export_mpc/export_mpc.py                         # figure in ./export_mpc.png
    python examples/export_mpc/export_mpc.py --folder out --no-figure

The exit status is 1 if a number of C's differs from Python's, if the pole does not stand in the
end, or if a plan is not optimal.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import functrans as ft
from functrans import lax

STEPS, PERIOD = 30, 0.05
DURATION = 160
LIMIT, BARRIER = 10.0, 0.01
GRAVITY, CART, POLE, LENGTH = 9.81, 1.0, 0.2, 0.5
NEWTON_STEPS, WIDTH = 5, 5
"""Newton steps of a period; numbers of a step of the plan: the state and the force."""
HANGING = np.array([0.0, np.pi, 0.0, 0.0])
PUSHES = np.where((np.arange(DURATION) >= 80) & (np.arange(DURATION) < 84), -10.0, 0.0)
"""Forces that the controller does not know of, period by period."""
INK, MUTED, ACCENT, BLUE = "#22303c", "#9aa5ae", "#bf3b76", "#2a78b5"


# The model.


def rates(state: ft.Array, force: ft.Array, pole: float = POLE, friction: float = 0.0) -> Any:
    """How position, angle (0 is upright), speed and turning change; elements may be arrays."""
    _, angle, speed, turning = state
    sine, cosine = np.sin(angle), np.cos(angle)
    push = force - friction * speed + pole * LENGTH * turning**2 * sine
    mass = CART + pole * sine**2
    return np.stack(
        [
            speed,
            turning,
            (push - pole * GRAVITY * sine * cosine) / mass,
            (GRAVITY * (CART + pole) * sine - cosine * push) / (LENGTH * mass),
        ]
    )


def advance(state: ft.Array, force: ft.Array) -> Any:
    """The state a period later, by a step of Runge and Kutta's."""
    a = rates(state, force)
    b = rates(state + PERIOD / 2 * a, force)
    c = rates(state + PERIOD / 2 * b, force)
    d = rates(state + PERIOD * c, force)
    return state + PERIOD / 6 * (a + 2 * b + 2 * c + d)


def plant(state: ft.Array, force: ft.Array, push: ft.Array) -> Any:
    """What really happens in a period: a heavier pole, friction, someone who pushes."""

    def step(_: object, state: ft.Array) -> Any:
        middle = state + PERIOD / 20 * rates(state, force + push, pole=0.23, friction=0.1)
        return state + PERIOD / 10 * rates(middle, force + push, pole=0.23, friction=0.1)

    return lax.fori_loop(0, 10, step, state)


# The problem: a plan is 30 rows of a state and a force, and the last state.


def split(plan: ft.Array) -> tuple[Any, Any]:
    """States ``[31, 4]`` and forces ``[30]``."""
    rows = plan[: WIDTH * STEPS].reshape(STEPS, WIDTH)
    return np.concatenate([rows[:, :4], plan[WIDTH * STEPS :].reshape(1, 4)]), rows[:, 4]


def joined(states: ft.Array, forces: ft.Array) -> Any:
    """The plan of states and forces."""
    rows = np.concatenate([states[:-1], forces.reshape(STEPS, 1)], 1)
    return np.concatenate([rows.ravel(), states[-1]])


def objective(plan: ft.Array) -> Any:
    """What the plan costs, and the barrier before the limit of forces."""
    states, forces = split(plan)
    position, angle, speed, turning = states.T
    costs = 2 * position**2 + 10 * (1 - np.cos(angle)) + 0.1 * speed**2 + 0.1 * turning**2
    barrier = -BARRIER * (np.log(LIMIT - forces) + np.log(LIMIT + forces))
    return np.sum(costs[:-1]) + 20 * costs[-1] + np.sum(1e-3 * forces**2 + barrier)


def gaps(plan: ft.Array) -> Any:
    """By how much a state misses what the one before leads to: ``[30, 4]``, zero in a solution."""
    states, forces = split(plan)
    return (advance(states[:-1].T, forces) - states[1:].T).T


def lagrangian(plan: ft.Array, multipliers: ft.Array) -> Any:
    """The objective, and gaps with their multipliers ``[30, 4]``."""
    return objective(plan) + np.sum(multipliers * gaps(plan))


slope = ft.grad(lagrangian)
hessian = ft.sparse_hessian(lagrangian)
jacobian = ft.sparse_jacobian(gaps)


def derivatives(plan: ft.Array, multipliers: ft.Array) -> dict[str, Any]:
    """Gradient and sparse Hessian of the Lagrangian, as solvers for sparse problems take them."""
    return {"gradient": slope(plan, multipliers), "hessian": hessian(plan, multipliers)}


# The controller.


def blocks(matrix: Any, height: int) -> Any:
    """Blocks of 5 columns along the diagonal of a sparse matrix: ``[n, height, 5]``."""
    m, n = matrix.shape
    numbers = np.full((m, n), matrix.nnz)
    numbers[np.repeat(np.arange(m), np.diff(matrix.indptr)), matrix.indices] = np.arange(matrix.nnz)
    block = np.arange(-(-m // height)).reshape(-1, 1, 1)
    rows, columns = (
        height * block + np.arange(height).reshape(-1, 1),
        WIDTH * block + np.arange(WIDTH),
    )
    found = numbers[np.minimum(rows, m - 1), np.minimum(columns, n - 1)]
    return np.append(matrix.data, 0.0)[found]


def newton_step(state: ft.Array, plan: ft.Array, multipliers: ft.Array) -> tuple[Any, Any]:
    """The step to the solution of the quadratic problem, and its multipliers.

    Where the Lagrangian is not convex in a force, the absolute value of its curvature counts.
    """
    weights = blocks(hessian(plan, multipliers), WIDTH)
    dynamics, missing = blocks(jacobian(plan), 4), gaps(plan)
    slopes = ft.grad(objective)(plan)
    rows = slopes[: WIDTH * STEPS].reshape(STEPS, WIDTH)

    def backward(ahead: tuple[Any, Any], stage: tuple[Any, ...]) -> tuple[Any, Any]:
        curvature, slope = ahead
        weight, row, dynamic, gap = stage
        total = weight + dynamic.T @ curvature @ dynamic
        linear = row + dynamic.T @ (curvature @ gap + slope)
        own = np.maximum(np.abs(total[4, 4]), 1e-3)
        gain, offset = -total[4, :4] / own, -linear[4] / own
        found = total[:4, :4] + np.outer(total[:4, 4], gain), linear[:4] + total[:4, 4] * offset
        return found, (gain, offset, curvature, slope)

    def forward(change: ft.Array, stage: tuple[Any, ...]) -> tuple[Any, Any]:
        gain, offset, curvature, slope, dynamic, gap = stage
        force = gain @ change + offset
        ahead = dynamic[:, :4] @ change + dynamic[:, 4] * force + gap
        return ahead, (change, force, curvature @ ahead + slope)

    stages = (weights[:-1], rows, dynamics, missing)
    last = weights[-1, :4, :4], slopes[WIDTH * STEPS :]
    _, policy = lax.scan(backward, last, stages, reverse=True)
    end, (changes, forces, found) = lax.scan(forward, state - plan[:4], (*policy, *stages[2:]))
    return joined(np.concatenate([changes, end.reshape(1, 4)]), forces), found


def improved(state: ft.Array, plan: ft.Array, multipliers: ft.Array) -> tuple[Any, Any]:
    """Plan and multipliers after the best of eight Newton steps of different lengths."""
    step, found = newton_step(state, plan, multipliers)
    (_, forces), (_, changes) = split(plan), split(step)
    room = np.where(changes > 0, LIMIT - forces, LIMIT + forces) / np.maximum(np.abs(changes), 1e-9)
    lengths = np.minimum(1.0, 0.9 * np.min(room)) * 0.5 ** np.arange(8)

    def merit(length: ft.Array) -> Any:
        new = plan + length * step
        return objective(new) + 50 * (np.sum(np.abs(gaps(new))) + np.sum(np.abs(new[:4] - state)))

    best = lengths[np.argmin(ft.vmap(merit)(lengths))]
    return plan + best * step, multipliers + best * (found - multipliers)


def control(state: ft.Array, plan: ft.Array, multipliers: ft.Array) -> dict[str, Any]:
    """The force for a state, with the plan and multipliers for it from those before."""
    states, forces = split(plan)
    states = np.concatenate([states[1:], advance(states[-1], 0.0).reshape(1, 4)])
    start = (
        joined(states, np.append(forces[1:], 0.0)),
        np.concatenate([multipliers[1:], multipliers[-1:]]),
    )
    plan, multipliers = lax.fori_loop(0, NEWTON_STEPS, lambda _, now: improved(state, *now), start)
    return {"force": split(plan)[1][0], "plan": plan, "multipliers": multipliers}


# Both loops.

START = joined(np.tile(HANGING, (STEPS + 1, 1)), np.zeros(STEPS))
START_MULTIPLIERS = np.zeros((STEPS, 4))


def export(folder: Path, target: str | None = None) -> dict[str, Any]:
    """Write the three functions, and what the simulation starts from."""
    force = np.zeros(())
    start = {"state": HANGING, "plan": START, "multipliers": START_MULTIPLIERS}
    return {
        "control": ft.jit(control).export(
            folder, HANGING, START, START_MULTIPLIERS, name="control", target=target, tables=start
        ),
        "plant": ft.jit(plant).export(
            folder, HANGING, force, force, name="plant", target=target, tables={"pushes": PUSHES}
        ),
        "derivatives": ft.jit(derivatives).export(
            folder, START, START_MULTIPLIERS, name="derivatives", target=target
        ),
    }


def build(folder: Path, exported: dict[str, Any], *flags: str, compiler: str = "cc") -> Path:
    """The program that ``simulate.c`` is."""
    source, program = Path(__file__).with_name("simulate.c"), folder / "simulate"
    objects = [str(part.code) for part in exported.values()]
    command = [compiler, "-std=c11", "-O2", f"-I{folder}", "-o", str(program), str(source)]
    subprocess.run([*command, *objects, *flags, "-lm"], check=True)
    return program


def simulated_in_python() -> np.ndarray:
    """A row per period: the state, the force, the plan."""
    controller, real = ft.jit(control), ft.jit(plant)
    state, plan, multipliers = HANGING, START, START_MULTIPLIERS
    rows = []
    for push in PUSHES:
        found = controller(state, plan, multipliers)
        plan, multipliers = found["plan"], found["multipliers"]
        rows.append(np.concatenate([state, [found["force"]], plan]))
        state = real(state, found["force"], push)
    return np.stack(rows)


def simulated_in_c(program: Path, *emulator: str) -> tuple[np.ndarray, str]:
    """The same rows from the program, and what it says."""
    run = subprocess.run([*emulator, str(program)], capture_output=True, check=True)
    return np.frombuffer(run.stdout).reshape(DURATION, -1), run.stderr.decode()


# The figure.


def draw(rows: np.ndarray, path: Path) -> None:
    """The movement, states, plans and forces, and the patterns of the derivatives."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"text.color": INK, "axes.labelcolor": INK, "font.size": 9})
    plt.rcParams.update({"xtick.color": INK, "ytick.color": INK, "axes.edgecolor": MUTED})
    figure = plt.figure(figsize=(13, 9.4), layout="constrained")
    figure.suptitle(
        "Written in Python, run in C: a model-predictive controller swings a pole up",
        x=0.012, ha="left", fontsize=14, weight="bold",
    )  # fmt: skip
    above, middle, below = figure.add_gridspec(3, 1, height_ratios=(1.0, 1.05, 1.0))
    times = PERIOD * np.arange(DURATION)
    pushed = times[PUSHES != 0]
    ranges = ((0, 17), (17, 27), (27, 45), (79, 100))
    titles = ("taking a run", "swinging up", "stopping upright", "pushed from the right")
    for place, (start, stop), title in zip(above.subgridspec(1, 4), ranges, titles, strict=True):
        axis = figure.add_subplot(place)
        draw_movement(axis, rows[start:stop])
        axis.set_title(f"{title}, {PERIOD * start:.1f} to {PERIOD * (stop - 1):.1f} s")

    own = middle.subgridspec(1, 3)
    series = (
        ("angle (0 is upright)", 1, "rad"), ("position of the cart", 0, "m"), ("force", 4, "N"),
    )  # fmt: skip
    for place, (title, column, unit) in zip(own, series, strict=True):
        axis = figure.add_subplot(place)
        for period in range(0, DURATION, 4):
            plan = rows[period, 5:]
            planned = plan[column::WIDTH][:STEPS]
            ahead = times[period] + PERIOD * np.arange(STEPS)
            axis.plot(ahead, planned, color=BLUE, lw=0.7, alpha=0.35)
        axis.plot(times, rows[:, column], color=INK, lw=1.8)
        axis.axvspan(pushed[0], pushed[-1] + PERIOD, color=ACCENT, alpha=0.25, lw=0)
        axis.set_title(f"{title}, {unit}")
        axis.set_xlabel("time, s")
        axis.set_xlim(0, times[-1])
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        if column == 4:
            for limit in (-LIMIT, LIMIT):
                axis.axhline(limit, color=ACCENT, lw=0.9, ls=":")
            axis.annotate("limit", (times[-1], LIMIT), ha="right", va="bottom", color=ACCENT)
        if column == 1:
            axis.annotate(
                "a push of 10 N", (pushed[-1], 1.5), (6, 0), textcoords="offset points",
                color=ACCENT,
            )  # fmt: skip
            axis.plot([], [], color=INK, lw=1.8, label="what happened")
            axis.plot([], [], color=BLUE, lw=0.7, label="plans, every fourth")
            axis.legend(frameon=False, loc="upper right")

    draw_patterns(figure, below.subgridspec(1, 3))
    figure.savefig(path, dpi=140)
    plt.close(figure)


def draw_movement(axis: Any, rows: np.ndarray) -> None:
    """Cart and pole at some times, the later the darker."""
    tips = rows[:, 0] + 2 * LENGTH * np.sin(rows[:, 1]), 2 * LENGTH * np.cos(rows[:, 1])
    axis.axhline(0, color=MUTED, lw=0.8)
    axis.plot(*tips, color=ACCENT, lw=0.9, alpha=0.7)
    for number, row in enumerate(rows):
        shade = 0.12 + 0.88 * (number / (len(rows) - 1)) ** 1.5
        tip = tips[0][number], tips[1][number]
        axis.plot([row[0], tip[0]], [0, tip[1]], color=INK, lw=1.6, alpha=shade)
        axis.plot(*tip, "o", ms=4, color=ACCENT, alpha=shade)
        axis.plot(row[0], 0, "s", ms=8, color=BLUE, alpha=shade)
    axis.set_aspect("equal")
    axis.set_xlim(-1.45, 1.45)
    axis.set_ylim(-1.2, 1.2)
    axis.set_yticks([])
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def draw_patterns(figure: Any, places: Any) -> None:
    """The Hessian of the Lagrangian, its first steps in the colours of products, the Jacobian."""
    second, first = hessian.pattern(START, START_MULTIPLIERS), jacobian.pattern(START)
    axis = figure.add_subplot(places[0])
    axis.spy(second, marker="s", ms=1.1, color=INK)
    axis.set_title(f"Hessian of the Lagrangian: {second.nnz} of {second.shape[0] ** 2:,}")
    axis.xaxis.tick_bottom()
    axis = figure.add_subplot(places[1])
    hessian.spy(axis, rows=slice(0, 15), columns=slice(0, 15))
    axis.set_title(f"its first 3 steps: {hessian.n_colors} products with vectors")
    axis.locator_params(nbins=4, integer=True)
    axis = figure.add_subplot(places[2])
    axis.spy(first, marker="s", ms=1.1, color=INK)
    axis.set_title(f"Jacobian of the constraints: {first.nnz} of {np.prod(first.shape):,}")
    axis.xaxis.tick_bottom()


def main(arguments: list[str] | None = None) -> int:
    """Export, build, run, compare and draw; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where exported files stay")
    parser.add_argument("--output", type=Path, default=Path("export_mpc.png"), help="PNG to write")
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args(arguments)
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    if shutil.which("cc") is None:
        parser.error("the program is built by a C compiler, and there is no 'cc'")

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        exported = export(folder)
        for name, part in exported.items():
            size = part.code.stat().st_size
            print(f"{name}: {size:,} bytes of code, {part.workspace_bytes:,} of workspace")
        rows, said = simulated_in_c(build(folder, exported))
    print(said, end="")
    is_equal = rows.tobytes() == simulated_in_python().tobytes()
    print(f"{rows.size:,} numbers of C and Python: {'equal' if is_equal else 'different'}")
    end, largest = rows[-1], np.max(np.abs(rows[:, 4]))
    print(f"in the end: position {end[0]:.4f} m, angle {end[1]:.4f}; largest force {largest:.3f} N")
    if not options.no_figure:
        draw(rows, options.output)
        print(f"figure: {options.output}")
    is_upright = bool(np.max(np.abs(end[:4])) < 0.01)
    return 0 if is_equal and is_upright and np.max(np.abs(gaps(end[5:]))) < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
