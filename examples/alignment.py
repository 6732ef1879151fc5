"""Align proteins differentiably: a dynamic programme in numba as one operation, with its adjoint.

The model is the pair hidden Markov model behind Smith and Waterman's local alignment with affine
gaps: an alignment of two sequences has as its weight the exponential of its score, and the
logarithm of the sum of all weights is a log-sum-exp in place of the maximum in each cell of the
table. Derivatives of that number are probabilities: in the score of two residues, that these are
aligned; in a gap penalty, minus the expected number of gaps.

``fill`` is the table and ``pull`` its adjoint, both loops over cells that numba compiles, and
``ft.kernel`` makes one operation of them, which compiled programs call on threads:

- gap penalties are fitted by maximum likelihood to the alignment of haemoglobin alpha and beta that
  their structures show; at the maximum the model expects as many gaps as there are;
- with these penalties alpha and beta are aligned to myoglobin, which took no part in the fit. The
  two histidines that hold haem and oxygen, E7 and F8, tell whether that is right;
- myoglobin with its residues in random order shows what scores chance gives.

    python examples/alignment.py                # figure in ./alignment.png
    python examples/alignment.py --no-figure    # text only

The exit status is 1 if the gradient is not that of finite differences, if the expected gaps at the
maximum are not those of the reference, or if a pair of histidines is not aligned. Sequences and
scores: ``data/globins``. References: Durbin, Eddy, Krogh and Mitchison, Biological Sequence
Analysis (1998), ch. 4, and fig. 5.1 for the alignment of the structures (of Bashford, Chothia and
Lesk, J. Mol. Biol. 196 (1987) 199); Mensch and Blondel, Differentiable dynamic programming for
structured prediction and attention, ICML (2018).
"""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.optimize

import functrans as ft
from functrans.scipy.special import logsumexp

DATA = Path(__file__).resolve().parent / "data" / "globins"
NAMES = ("alpha", "beta", "myoglobin")
PAIRS = ((0, 1), (0, 2), (1, 2))
HISTIDINES = {"E7": (58, 63, 64), "F8": (87, 92, 93)}
"""Residues of the three proteins at two places of the globin fold, counted from 0."""
REFERENCE = ((1, 2, 17), (20, 19, 27), (47, 47, 3), (50, 55, 92))
"""Where alpha and beta have residues in the same places: first ones of both, and how many."""
UNIT = np.log(2.0) / 2
"""The unit of BLOSUM62, half a bit."""
BLAST = UNIT * np.array([11.0, 1.0])
"""Penalties of the first residue of a gap and of each further one that BLAST uses."""
NOTHING = -1e30
"""The logarithm of no weight at all."""
SHUFFLES = 200
SHIFTS = -4, 13
"""What the figure shows of the table: shifts of one protein against the other."""
ALPHA, MUTED, INK, WARM = "#2a6f97", "#7d8a96", "#22303c", "#c8553d"

# the model ----------------------------------------------------------------------------------------


def fill(scores: Any, opening: Any, extending: Any, table: Any) -> None:
    """Logarithms of the weights of all alignments that end in a cell, ``f64[3, n + 1, m + 1]``.

    They end with two residues, with one of the first sequence in a gap, or with one of the second.
    """
    n, m = scores.shape
    table[:, 0, :] = NOTHING
    table[:, :, 0] = NOTHING
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = table[0, i - 1, j - 1], table[1, i - 1, j - 1], table[2, i - 1, j - 1]
            top = max(0.0, a, b, c)  # 0 is the alignment that begins here
            weight = np.exp(-top) + np.exp(a - top) + np.exp(b - top) + np.exp(c - top)
            table[0, i, j] = scores[i - 1, j - 1] + top + np.log(weight)
            for k, y, x in ((1, i - 1, j), (2, i, j - 1)):
                table[k, i, j] = np.logaddexp(table[0, y, x] - opening, table[k, y, x] - extending)


def pull(
    scores: Any, opening: Any, extending: Any, table: Any, table_bar: Any,
    scores_bar: Any, opening_bar: Any, extending_bar: Any,
) -> None:  # fmt: skip
    """The adjoint of ``fill``: cotangents go from each cell to those that it was made of."""
    n, m = scores.shape
    bar = table_bar.copy()
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            for k, y, x in ((1, i - 1, j), (2, i, j - 1)):
                opened = bar[k, i, j] * np.exp(table[0, y, x] - opening - table[k, i, j])
                extended = bar[k, i, j] - opened
                bar[0, y, x] += opened
                bar[k, y, x] += extended
                opening_bar[()] -= opened
                extending_bar[()] -= extended
            scores_bar[i - 1, j - 1] = bar[0, i, j]
            before = table[0, i, j] - scores[i - 1, j - 1]
            for k in range(3):
                share = np.exp(table[k, i - 1, j - 1] - before)
                bar[k, i - 1, j - 1] += bar[0, i, j] * share


def table_like(scores: Any, *_: Any) -> ft.ShapeDtypeStruct:
    """The type of the table."""
    n, m = scores.shape
    return ft.ShapeDtypeStruct((3, n + 1, m + 1), scores.dtype)


pulled = ft.kernel(numba.njit(nogil=True)(pull), lambda scores, o, e, *_: (scores, o, e))
filled = ft.kernel(
    numba.njit(nogil=True)(fill), table_like, vjp=lambda args, table, bar: pulled(*args, table, bar)
)


def log_partition(scores: Any, penalties: Any) -> Any:
    """The logarithm of the sum of the weights of all alignments but the empty one.

    Args:
      scores: ``f64[n, m]``, of each residue of one sequence with each of the other.
      penalties: ``f64[2]``, of the first residue of a gap, and of each further one.
    """
    return logsumexp(filled(scores, penalties[0], penalties[1])[0])


# data ---------------------------------------------------------------------------------------------


def read() -> tuple[list[np.ndarray], np.ndarray]:
    """Sequences as places in BLOSUM62, and its scores as logarithms of weights."""
    lines = (DATA / "BLOSUM62").read_text(encoding="utf-8").splitlines()
    head, *rows = [line.split() for line in lines if not line.startswith("#")]
    matrix = UNIT * np.array([[float(value) for value in row[1:]] for row in rows])
    entries = (DATA / "globins.fasta").read_text(encoding="utf-8").split(">")[1:]
    texts = ["".join(entry.splitlines()[1:]) for entry in entries]
    return [np.array([head.index(letter) for letter in text]) for text in texts], matrix


def padded(pairs: list[np.ndarray]) -> np.ndarray:
    """Scores of several pairs in one array; what is beyond the end of a sequence never aligns."""
    n, m = np.max([pair.shape for pair in pairs], axis=0)
    whole = np.full((len(pairs), n, m), -1e6)
    for one, pair in zip(whole, pairs, strict=True):
        one[: pair.shape[0], : pair.shape[1]] = pair
    return whole


def reference() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Aligned residues of alpha and of beta; numbers of gaps, and of further residues in them."""
    first = np.concatenate([np.arange(i, i + size) for i, _, size in REFERENCE])
    second = np.concatenate([np.arange(j, j + size) for _, j, size in REFERENCE])
    lengths = np.concatenate([np.diff(first), np.diff(second)]) - 1
    lengths = lengths[lengths > 0]
    return first, second, np.array([len(lengths), np.sum(lengths - 1)], float)


# what is done with derivatives --------------------------------------------------------------------


def check(scores: np.ndarray, penalties: np.ndarray) -> tuple[float, float]:
    """The derivative in a random direction of all arguments, and the central difference."""
    rng = np.random.default_rng(0)
    towards = rng.standard_normal(scores.shape), rng.standard_normal(2)
    slopes = ft.jit(ft.grad(log_partition, (0, 1)))(scores, penalties)
    exact = sum(float(np.sum(a * b)) for a, b in zip(slopes, towards, strict=True))
    step = 1e-5
    ahead, behind = (
        log_partition(scores + h * towards[0], penalties + h * towards[1]) for h in (step, -step)
    )
    return exact, float((ahead - behind) / (2 * step))


def loss(logs: Any, scores: Any, score: Any, counts: Any) -> Any:
    """Minus the log-probability of an alignment.

    Args:
      logs: logarithms of the penalties.
      scores: of all pairs of residues.
      score: the sum of those of the residues that are aligned.
      counts: how often each penalty is paid.
    """
    penalties = np.exp(logs)
    return log_partition(scores, penalties) - score + np.sum(counts * penalties)


def fit(scores: np.ndarray, score: float, counts: np.ndarray) -> list[np.ndarray]:
    """Penalties at the start of the fit and after each of its steps."""
    path = [np.log(BLAST)]
    scipy.optimize.minimize(
        ft.jit(ft.value_and_grad(loss)), path[0], (scores, score, counts), "BFGS", jac=True,
        callback=lambda logs: path.append(logs.copy()), options={"gtol": 1e-7},
    )  # fmt: skip
    return [np.exp(logs) for logs in path]


posteriors = ft.jit(ft.vmap(ft.grad(log_partition), (0, None)))
"""Probabilities that residues are aligned, for several pairs on threads."""
partitions = ft.jit(ft.vmap(log_partition, (0, None)))


def best(scores: np.ndarray, penalties: np.ndarray) -> Any:
    """The best alignment as coordinates: at a low temperature its residues have probability 1."""
    cold = 0.01
    (sure,) = posteriors(scores[None] / cold, penalties / cold)
    return np.nonzero(sure > 0.75)


@ft.jit
def landscape(grid: Any, scores: Any, score: Any, counts: Any) -> Any:
    """Losses at points ``f64[k, l, 2]``: a loop over rows, which are batches."""
    row = ft.vmap(loss, (0, None, None, None))
    return ft.lax.map(lambda logs: row(logs, scores, score, counts), np.log(grid))


# figure -------------------------------------------------------------------------------------------


def strip(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities by residue of the first protein and shift of the second one against it."""
    n, m = probabilities.shape
    shifted = np.zeros((SHIFTS[1] - SHIFTS[0] + 1, n))
    for k, shift in enumerate(range(SHIFTS[0], SHIFTS[1] + 1)):
        rows = np.arange(max(0, -shift), min(n, m - shift))
        shifted[k, rows] = probabilities[rows, rows + shift]
    return shifted


def draw_figure(
    scores: list[np.ndarray], found: list[np.ndarray], path: list[np.ndarray], target: Path
) -> None:
    """Probabilities of two pairs, how sure each residue of alpha is, and the fit."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic(
        [["beta", "fit"], ["myoglobin", "fit"], ["sure", "fit"]],
        figsize=(14, 7.2), width_ratios=(2, 1), height_ratios=(1, 1, 0.9), layout="constrained",
    )  # fmt: skip
    figure.suptitle(
        "Haemoglobin alpha aligned: the gradient of the score is a probability",
        x=0.008, ha="left", fontsize=13, weight="bold", color=INK,
    )  # fmt: skip
    for k, other in ((0, "beta"), (1, "myoglobin")):
        panel = axes[other]
        extent = (-0.5, len(found[k]) - 0.5, SHIFTS[0] - 0.5, SHIFTS[1] + 0.5)
        image = panel.imshow(strip(found[k]), cmap="Blues", vmin=0, vmax=1, origin="lower",
                             extent=extent, aspect="auto", interpolation="nearest")  # fmt: skip
        rows, columns = best(scores[k], path[-1])
        panel.plot(rows, columns - rows, ".", ms=3, color=WARM, label="best alignment")
        for place, residues in HISTIDINES.items():
            row, column = residues[0], residues[PAIRS[k][1]]
            panel.plot(row, column - row, "o", ms=9, mfc="none", mec=INK)
            panel.text(row, column - row - 2.6, f"{place} {found[k][row, column]:.3f}", color=INK,
                       fontsize=9, ha="center")  # fmt: skip
        panel.set(ylabel=f"shift of {other}")
        panel.set_title(f"probability that a residue of alpha is aligned with that of {other} "
                        "so many places further", fontsize=10, color=INK, loc="left")  # fmt: skip
        panel.legend(frameon=False, fontsize=9, loc="upper right", markerscale=2)
    figure.colorbar(image, ax=[axes["beta"], axes["myoglobin"]], label="probability", pad=0.01)

    panel = axes["sure"]
    for k, color in ((0, ALPHA), (1, WARM)):
        panel.step(np.arange(len(found[k])), np.max(found[k], axis=1), where="mid", lw=1.3,
                   color=color, label=NAMES[PAIRS[k][1]])  # fmt: skip
    for place, residues in HISTIDINES.items():
        panel.axvline(residues[0], color=MUTED, lw=0.8, ls=":")
        panel.text(residues[0] + 0.6, 1.05, place, color=INK, fontsize=9)
    panel.set(xlim=(-0.5, len(found[0]) - 0.5), ylim=(0, 1.18), xlabel="residue of alpha",
              ylabel="probability")  # fmt: skip
    panel.set_title(
        "probability of the likeliest partner in each of both", fontsize=10, color=INK, loc="left"
    )
    panel.legend(frameon=False, fontsize=9, loc="lower right", ncols=2)

    first, second, counts = reference()
    sizes = np.linspace(6, 26, 34), np.linspace(0.2, 14, 34)
    grid = np.stack(np.meshgrid(*sizes), axis=-1)
    losses = landscape(UNIT * grid, scores[0], np.sum(scores[0][first, second]), counts)
    steps = np.array(path) / UNIT
    panel = axes["fit"]
    lines = panel.contour(*sizes, losses, [5.6, 6, 7, 8, 10, 13, 17], colors=MUTED, linewidths=0.8)
    panel.clabel(lines, fontsize=8)
    panel.plot(*steps.T, "o-", ms=3.5, lw=1.2, color=ALPHA)
    panel.plot(*steps[0], "o", ms=7, color=ALPHA)
    panel.annotate("BLAST", steps[0], (-8, -4), textcoords="offset points", fontsize=9, color=INK,
                   ha="right")  # fmt: skip
    panel.plot(*steps[-1], "*", ms=13, color=WARM)
    panel.annotate("fit", steps[-1], (9, -4), textcoords="offset points", fontsize=9, color=INK)
    panel.set(xlabel="penalty of a gap (half bits)",
              ylabel="penalty of each further residue in it (half bits)")  # fmt: skip
    panel.set_title("minus log-probability of the reference alignment", fontsize=10, color=INK,
                    loc="left")  # fmt: skip
    for each in (panel, axes["sure"]):
        each.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=140)


def main() -> int:
    """Fit, align, print, draw; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("alignment.png"), help="PNG to write")
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args()
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    sequences, matrix = read()
    scores = [matrix[sequences[i]][:, sequences[j]] for i, j in PAIRS]
    exact, difference = check(scores[0], BLAST)
    print(f"derivative in a random direction {exact:.8f}, finite difference {difference:.8f}")

    first, second, counts = reference()
    score = float(np.sum(scores[0][first, second]))
    path = fit(scores[0], score, counts)
    print(f"{'':8}{'gap':>8}{'further':>9}  half bits  {'reference has probability':>26}"
          f"{'expected gaps':>15}{'further':>9}")  # fmt: skip
    slopes = ft.jit(ft.grad(log_partition, argnums=1))
    for name, penalties in (("BLAST", path[0]), ("fitted", path[-1])):
        probability = np.exp(-loss(np.log(penalties), scores[0], score, counts))
        expected = -slopes(scores[0], penalties)
        gap, further = penalties / UNIT
        print(f"{name:8}{gap:8.3f}{further:9.3f}{probability:39.5f}"
              f"{expected[0]:15.4f}{expected[1]:9.4f}")  # fmt: skip
    print(f"{'reference':66}{counts[0]:4.0f}{counts[1]:9.0f}   in {len(path) - 1} steps of BFGS")

    whole = posteriors(padded(scores), path[-1])
    found = [one[: s.shape[0], : s.shape[1]] for one, s in zip(whole, scores, strict=True)]
    surest = []
    for (i, j), probabilities in zip(PAIRS, found, strict=True):
        held = [float(probabilities[r[i], r[j]]) for r in HISTIDINES.values()]
        surest += held
        text = ", ".join(f"{place} {p:.4f}" for place, p in zip(HISTIDINES, held, strict=True))
        length = np.sum(probabilities)
        print(f"{NAMES[i]:5} and {NAMES[j]:9}: {length:5.1f} aligned residues, {text}")

    rng = np.random.default_rng(0)
    chance = np.stack(
        [matrix[sequences[0]][:, rng.permutation(sequences[2])] for _ in range(SHUFFLES)]
    )
    partitions(chance, path[-1])  # compiles
    begin = time.perf_counter()
    values = partitions(chance, path[-1])
    elapsed = time.perf_counter() - begin
    real = float(log_partition(scores[1], path[-1]))
    print(f"alpha and myoglobin score {real:.1f}; {SHUFFLES} shuffled myoglobins at most "
          f"{np.max(values):.1f} ({SHUFFLES / elapsed:.0f} alignments per second)")  # fmt: skip
    if not options.no_figure:
        draw_figure(scores, found, path, options.output)
        print(f"figure: {options.output}")
    is_right = abs(exact - difference) < 1e-6 * abs(exact)
    is_fitted = np.allclose(expected, counts, atol=1e-4)
    return 0 if is_right and is_fitted and min(surest) > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
