"""Fit the 27 nonlinear regressions of NIST's Statistical Reference Datasets.

Each model is an ordinary NumPy expression and no derivative is written down: the
Levenberg-Marquardt below takes every Jacobian from ``functrans.functional.jacobian``. NIST
certifies 11 digits of the parameters, of their standard deviations and of the residual sum of
squares, so the table this program prints shows how many digits of a known truth were reached, from
both published starting points. No setting depends on the problem.

    python examples/nist_strd.py                       # all problems, figure in ./nist_strd.png
    python examples/nist_strd.py --problem MGH17 --no-figure

The exit status is 1 if a fit from the second starting point misses a target (8 digits in every
parameter, 6 in every standard deviation, or what float64 data can carry). The data and their
source are in ``data/nist_strd``; shapes below are ``n`` observations by ``p`` parameters.
"""

import argparse
import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from functrans import functional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]
Residuals = Callable[[Array], Any]
Model = Callable[[Array, Array], Any]

DATA = Path(__file__).resolve().parent / "data" / "nist_strd"
EPS = float(np.finfo(np.float64).eps)
DIGITS_CERTIFIED = 11
TARGET_PARAMETERS = 8.0
TARGET_DEVIATIONS = 6.0

COLUMNS, CELL_INCHES = 7, 3.3
LEVEL_COLORS = {"lower": "#14907f", "average": "#3a6bd0", "higher": "#bf3b76"}
INK, MUTED, FAINT = "#22303c", "#7d8a96", "#e3e8ec"


# The models, in NIST's order: by level of difficulty, lower to higher.


def chwirut(b: Array, x: Array) -> Any:
    """Ultrasonic response against metal distance."""
    return np.exp(-b[0] * x) / (b[1] + b[2] * x)


def saturation(b: Array, x: Array) -> Any:
    """Exponential approach to ``b[0]``."""
    return b[0] * (1 - np.exp(-b[1] * x))


def lanczos(b: Array, x: Array) -> Any:
    """Sum of three exponentials."""
    return b[0] * np.exp(-b[1] * x) + b[2] * np.exp(-b[3] * x) + b[4] * np.exp(-b[5] * x)


def gauss(b: Array, x: Array) -> Any:
    """Two Gaussian peaks on a decaying baseline."""
    return (
        b[0] * np.exp(-b[1] * x)
        + b[2] * np.exp(-((x - b[3]) ** 2) / b[4] ** 2)
        + b[5] * np.exp(-((x - b[6]) ** 2) / b[7] ** 2)
    )


def cubic_over_cubic(b: Array, x: Array) -> Any:
    """Quotient of two cubics; the denominator starts with 1."""
    return (b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3) / (
        1 + b[4] * x + b[5] * x**2 + b[6] * x**3
    )


def enso(b: Array, x: Array) -> Any:
    """Annual cycle and two cycles of unknown period, in months."""
    annual, slow, fast = (2 * np.pi * x / period for period in (12, b[3], b[6]))
    return (
        b[0]
        + b[1] * np.cos(annual)
        + b[2] * np.sin(annual)
        + b[4] * np.cos(slow)
        + b[5] * np.sin(slow)
        + b[7] * np.cos(fast)
        + b[8] * np.sin(fast)
    )


MODELS: dict[str, Model] = {
    "Misra1a": saturation,
    "Chwirut2": chwirut,
    "Chwirut1": chwirut,
    "Lanczos3": lanczos,
    "Gauss1": gauss,
    "Gauss2": gauss,
    "DanWood": lambda b, x: b[0] * x ** b[1],
    "Misra1b": lambda b, x: b[0] * (1 - (1 + b[1] * x / 2) ** -2),
    "Kirby2": lambda b, x: (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2),
    "Hahn1": cubic_over_cubic,
    "Nelson": lambda b, x: b[0] - b[1] * x[0] * np.exp(-b[2] * x[1]),  # of log[y]
    "MGH17": lambda b, x: b[0] + b[1] * np.exp(-x * b[3]) + b[2] * np.exp(-x * b[4]),
    "Lanczos1": lanczos,
    "Lanczos2": lanczos,
    "Gauss3": gauss,
    "Misra1c": lambda b, x: b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5),
    "Misra1d": lambda b, x: b[0] * b[1] * x * (1 + b[1] * x) ** -1,
    "Roszman1": lambda b, x: b[0] - b[1] * x - np.arctan(b[2] / (x - b[3])) / np.pi,
    "ENSO": enso,
    "MGH09": lambda b, x: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
    "Thurber": cubic_over_cubic,
    "BoxBOD": saturation,
    "Rat42": lambda b, x: b[0] / (1 + np.exp(b[1] - b[2] * x)),
    "MGH10": lambda b, x: b[0] * np.exp(b[1] / (x + b[2])),
    "Eckerle4": lambda b, x: b[0] / b[1] * np.exp(-0.5 * ((x - b[2]) / b[1]) ** 2),
    "Rat43": lambda b, x: b[0] / (1 + np.exp(b[1] - b[2] * x)) ** (1 / b[3]),
    "Bennett5": lambda b, x: b[0] * (b[1] + x) ** (-1 / b[2]),
}


# Reading the files.


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One data set as NIST publishes it.

    Attributes:
      name: name of the data set, a key of ``MODELS``.
      level: difficulty: ``"lower"``, ``"average"`` or ``"higher"``.
      formula: the model in NIST's notation, spaces collapsed.
      model: the same as a function of ``(b, x)``.
      starts: the two starting points, ``f64[2, p]``.
      parameters: certified parameters, ``f64[p]``.
      deviations: certified standard deviations of the parameters, ``f64[p]``.
      rss: certified residual sum of squares.
      residual_deviation: certified residual standard deviation, ``sqrt(rss / (n - p))``.
      degrees_of_freedom: as the file states it. Rat43's says 9 where ``n - p`` is 11; its certified
        deviations follow ``n - p``, and so does this program.
      x: predictor ``f64[n]``, or predictors ``f64[k, n]`` if there are several.
      y: response ``f64[n]`` as the regression sees it: the logarithm where the model is of log[y].
      labels: what ``y`` and the first predictor measure.
    """

    name: str
    level: str
    formula: str
    model: Model
    starts: Array
    parameters: Array
    deviations: Array
    rss: float
    residual_deviation: float
    degrees_of_freedom: int
    x: Array
    y: Array
    labels: tuple[str, str]

    def residuals(self, b: Array) -> Any:
        """Return model minus response, ``f64[n]``, at the parameters ``b``."""
        return self.model(b, self.x) - self.y

    @property
    def digits_carried(self) -> float:
        """Digits of a residual that are left after the rounding of the response to float64."""
        return -math.log10(EPS * float(np.abs(self.y).max()) / self.residual_deviation)


def load(path: str | Path) -> Problem:
    """Read one ``.dat`` file of the StRD nonlinear regression collection.

    Raises:
      ValueError: the file lacks a section, or its counts contradict each other; the message names
        the file and what is wrong.
      KeyError: the file is sound but its model is not in ``MODELS``.
    """
    path = Path(path)
    text = path.read_text(encoding="ascii")

    def find(pattern: str) -> str:
        match = re.search(pattern, text, re.MULTILINE | re.DOTALL)
        if match is None:
            raise ValueError(f"{path}: no text matches {pattern!r}")
        return match[1].strip()

    def read_numbers(rows: Sequence[str]) -> Array:
        try:
            return np.array([[float(word) for word in row.split()] for row in rows])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    name = find(r"^Dataset Name:\s*(\S+)")
    formula = find(r"^Model:.*? Parameters \(.*?\)(.*?)^\s*Starting (?i:values)")
    values = read_numbers(re.findall(r"^\s*b\d+\s*=(.*)$", text, re.MULTILINE))
    table = read_numbers(find(r"^Data:\s+y\b.*?$(.*)").splitlines())
    counts = {
        "parameters": (len(values), int(find(r"^Model:.*?(\d+) Parameters"))),
        "predictors": (table.shape[1] - 1, int(find(r"(\d+) Predictor"))),
        "observations": (len(table), int(find(r"^Number of Observations:\s*(\d+)"))),
    }
    for what, (found, stated) in counts.items():
        if found != stated:
            raise ValueError(f"{path}: {found} {what} where the header states {stated}")
    rss = float(find(r"^Residual Sum of Squares:\s*(\S+)"))
    deviation = float(find(r"^Residual Standard Deviation:\s*(\S+)"))
    if not math.isclose(deviation**2 * (len(table) - len(values)), rss, rel_tol=1e-9):
        raise ValueError(f"{path}: residual standard deviation {deviation} contradicts RSS {rss}")

    response, predictors = table[:, 0], table[:, 1:].T
    is_log = re.search(r"log\[y\]\s*=", formula) is not None
    return Problem(
        name=name,
        level=find(r"(\w+) Level of Difficulty").lower(),
        formula=" ".join(formula.split()),
        model=MODELS[name],
        starts=values[:, :2].T,
        parameters=values[:, 2],
        deviations=values[:, 3],
        rss=rss,
        residual_deviation=deviation,
        degrees_of_freedom=int(find(r"^Degrees of Freedom:\s*(\d+)")),
        x=predictors[0] if len(predictors) == 1 else predictors,
        y=np.log(response) if is_log else response,
        labels=(
            ("log " if is_log else "") + find(r"Response[^(]*\(\s*(?:y = )?(.*?)\)$"),
            find(r"Predictors?[^(]*\((?:x1? = )?([^;]*?)[;)]"),
        ),
    )


# Least squares.


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Result of a nonlinear least-squares fit.

    Attributes:
      parameters: the point reached, ``f64[p]``.
      deviations: standard deviations of the parameters, ``f64[p]``; not finite where the Jacobian
        does not determine them.
      rss: residual sum of squares.
      iterations: accepted Levenberg-Marquardt steps, one Jacobian each.
      polish_steps: Gauss-Newton steps after them, one Jacobian each.
      evaluations: evaluations of the residuals outside Jacobians.
      is_converged: whether the iteration ended at a stationary point, not at its limit.
    """

    parameters: Array
    deviations: Array
    rss: float
    iterations: int
    polish_steps: int
    evaluations: int
    is_converged: bool


def levenberg_marquardt(
    residual_fn: Residuals, start: npt.ArrayLike, *, max_iterations: int = 1000
) -> Fit:
    """Minimise ``sum(residual_fn(b) ** 2)`` from ``start``, down to rounding.

    A trust-region iteration in parameters scaled by the largest column norms of the Jacobian so
    far. A step is accepted when the sum of squares falls by at least ``1e-4`` of what the linear
    model promised; the radius is halved after a poor step and at most tripled after a good one.
    When the promise sinks below rounding, the sum of squares is too blunt a judge (it is flat to
    first order), and plain Gauss-Newton steps go on until they stop shrinking.

    Args:
      residual_fn: maps ``f64[p]`` to ``f64[n]``, ``n > p``; differentiated by functrans. It may
        overflow or return NaN away from the solution: such a trial step is rejected.
      start: starting point, ``f64[p]``.
      max_iterations: limit of accepted steps before the Gauss-Newton phase.

    Raises:
      ValueError: residuals or Jacobian are not finite at ``start``.

    Reference: Moré, The Levenberg-Marquardt algorithm: implementation and theory, LNM 630 (1978).
    """
    b = np.array(start, dtype=np.float64)
    iterations, evaluations, is_converged = 0, 1, False
    with np.errstate(all="ignore"):  # a trial step that overflows is judged by its value
        here = _linearize(residual_fn, b, residual_fn(b))
        if here is None:
            raise ValueError(f"residuals or Jacobian are not finite at the start {b}")
        radius = float(np.linalg.norm(here.scale * b)) or 1.0
        while not is_converged and iterations < max_iterations:
            step, length, promised = here.bounded_step(radius)
            residuals = residual_fn(here.b + step)
            evaluations += 1
            gain = (here.rss - float(residuals @ residuals)) / promised if promised > 0 else 0.0
            there = None
            if gain > 1e-4:
                there = _linearize(residual_fn, here.b + step, residuals, here.scale)
            if there is None or gain < 0.25:
                radius = 0.5 * min(radius, length)
            elif gain > 0.75:
                radius = max(radius, 3 * length)
            is_converged = bool(
                promised <= EPS * here.rss or length <= EPS * np.linalg.norm(here.scale * here.b)
            )
            if there is not None:
                here = there
                iterations += 1
        polish_steps = 0
        if is_converged:
            here, polish_steps = _polish(residual_fn, here)
        deviations = here.deviations()
    return Fit(
        parameters=here.b,
        deviations=deviations,
        rss=here.rss,
        iterations=iterations,
        polish_steps=polish_steps,
        evaluations=evaluations + polish_steps,
        is_converged=is_converged,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Linearization:
    """Residuals ``r`` and Jacobian at ``b``, factored as ``J = U diag(s) V^T diag(scale)``.

    With the SVD at hand the damped step of any radius costs ``p**2`` operations, and ``J^T J``,
    which squares the condition number, is never formed. ``target`` is ``-U^T r``.
    """

    b: Array
    residuals: Array
    scale: Array
    s: Array
    vt: Array
    target: Array

    @property
    def rss(self) -> float:
        return float(self.residuals @ self.residuals)

    def bounded_step(self, radius: float) -> tuple[Array, float, float]:
        """Return the best step within ``radius``, its scaled length, and the promised descent."""
        q = _solve_bounded(self.s, self.target, radius)
        moved = self.s * q
        promised = float(np.sum(moved * (2 * self.target - moved)))
        return (self.vt.T @ q) / self.scale, float(np.linalg.norm(q)), promised

    def deviations(self) -> Array:
        """Return the standard deviations of the parameters: ``sqrt(diag(inv(J^T J)) rss/(n-p))``.

        ``inv(J^T J) = W W^T`` with ``W = diag(1/scale) V diag(1/s)``, so each is a row norm of W.
        """
        variance = self.rss / (len(self.residuals) - len(self.b))
        w = self.vt.T / np.where(_is_resolved(self.s), self.s, 0.0) / self.scale[:, None]
        norms: Array = np.linalg.norm(w, axis=1)
        return norms * math.sqrt(variance)


def _linearize(
    residual_fn: Residuals, b: Array, residuals: Array, least_scale: Array | float = 0.0
) -> _Linearization | None:
    """Differentiate at ``b``; None if the residuals or the Jacobian overflow there."""
    jacobian = functional.jacobian(residual_fn, b)
    norms = np.linalg.norm(jacobian, axis=0)
    if not (np.isfinite(residuals @ residuals) and np.isfinite(norms).all()):
        return None
    scale = np.maximum(norms, least_scale)
    scale = np.where(scale > 0, scale, 1.0)
    u, s, vt = np.linalg.svd(jacobian / scale, full_matrices=False)
    return _Linearization(b, residuals, scale, s, vt, -(u.T @ residuals))


def _is_resolved(s: Array) -> Any:
    """Which singular values are more than rounding of the largest one."""
    return s > EPS * len(s) * s[0]


def _solve_bounded(s: Array, target: Array, radius: float) -> Array:
    """Minimise ``|s * q - target|`` over ``|q| <= radius``, the radius to 10 %.

    Inside it is the Gauss-Newton step, without directions that are rounding. On the bound it is
    ``q = s * target / (s**2 + damping)`` where the damping solves ``1/|q| = 1/radius``: Newton's
    method, kept in a bracket (Moré 1978, section 5).
    """
    q = np.divide(target, s, out=np.zeros_like(s), where=_is_resolved(s))
    if np.linalg.norm(q) <= 1.1 * radius:
        return q
    low, high = 0.0, float(np.linalg.norm(s * target)) / radius
    damping = 1e-3 * high
    for _ in range(50):
        q = s * target / (s * s + damping)
        length = float(np.linalg.norm(q))
        if abs(length - radius) <= 0.1 * radius:
            break
        low, high = (damping, high) if length > radius else (low, damping)
        slope = -float(np.sum(q * q / (s * s + damping))) / length
        damping -= (length / radius) * (length - radius) / slope
        if not low < damping < high:
            damping = max(1e-3 * high, math.sqrt(low * high))
    return q


def _polish(residual_fn: Residuals, here: _Linearization) -> tuple[_Linearization, int]:
    """Take Gauss-Newton steps until they stop shrinking.

    Returns:
      The point that the smallest step (relative, in its worst parameter) left from, and the number
      of steps taken. The point is ``here`` itself if Gauss-Newton is repelled from it.
    """
    best, smallest, stale = here, math.inf, 0
    steps = 0
    while True:
        step, _, _ = here.bounded_step(math.inf)
        size = float(np.max(np.abs(step) / np.maximum(np.abs(here.b), np.finfo(np.float64).tiny)))
        best, smallest, stale = (here, size, 0) if size < smallest else (best, smallest, stale + 1)
        if stale == 3 or size < EPS / 2:
            return best, steps
        b = here.b + step
        there = _linearize(residual_fn, b, residual_fn(b))
        steps += 1
        if there is None:
            return best, steps
        here = there


# Comparison with the certificate.


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A fit beside what NIST certifies; digits are the least over the parameters."""

    problem: Problem
    start: int
    fit: Fit
    digits_parameters: float
    digits_deviations: float
    digits_rss: float

    @property
    def is_limited(self) -> bool:
        """Whether float64 data cannot carry the target of the standard deviations."""
        return self.problem.digits_carried < TARGET_DEVIATIONS

    @property
    def is_certified(self) -> bool:
        """Whether every target is reached."""
        target = min(TARGET_DEVIATIONS, self.problem.digits_carried)
        return self.digits_parameters >= TARGET_PARAMETERS and self.digits_deviations >= target

    @property
    def outcome(self) -> str:
        """What became of the fit, in a few words."""
        if self.is_certified:
            return "certified"
        rss = f"RSS {self.fit.rss:.4g}, certified {self.problem.rss:.4g}"
        if not self.fit.is_converged:
            return f"not converged: {rss}"
        if not np.isfinite(self.fit.deviations).all():
            return f"ran into a flat region: {rss}"
        if self.digits_rss < 4 and not self.is_limited:
            return f"another local minimum: {rss}"
        if self.digits_parameters < 2:
            return "an equivalent minimum: same RSS, other parameters"
        return "short of the target"


def certified_digits(value: npt.ArrayLike, certified: npt.ArrayLike) -> float:
    """Return the log relative error ``-log10(|value - certified| / |certified|)``, least over all.

    Between 0 (no digit, or not finite) and 11, the number of digits certified. Where a certified
    value is 0 the error is absolute.
    """
    value, certified = np.asarray(value, np.float64), np.asarray(certified, np.float64)
    size = np.where(certified == 0, 1.0, np.abs(certified))
    with np.errstate(invalid="ignore"):
        error = np.nan_to_num(np.abs(value - certified) / size, nan=1.0)
    return float(np.min(np.log10(1 / np.clip(error, 10.0**-DIGITS_CERTIFIED, 1.0))))


def fit_problem(problem: Problem, start: int) -> Result:
    """Fit ``problem`` from its starting point 1 or 2 and compare with the certificate."""
    fit = levenberg_marquardt(problem.residuals, problem.starts[start - 1])
    return Result(
        problem,
        start,
        fit,
        digits_parameters=certified_digits(fit.parameters, problem.parameters),
        digits_deviations=certified_digits(fit.deviations, problem.deviations),
        digits_rss=certified_digits(fit.rss, problem.rss),
    )


def format_table(results: Sequence[Result]) -> str:
    """Lay out the results, two starts under each other, with footnotes and a summary."""
    lines = [
        "                                      certified digits (of 11)         steps",
        "problem   level      n  p start  parameters  deviations     RSS     LM + GN   outcome",
        "-" * 89,
    ]
    previous = ""
    for result in results:
        problem, fit = result.problem, result.fit
        size = f"{len(problem.y):4d} {len(problem.parameters):2d}"
        head = f"{problem.name:9} {problem.level:8} {size}"
        mark = "*" if result.is_limited else " "
        lines.append(
            f"{head if problem.name != previous else '':26} {result.start:3d}"
            f"  {result.digits_parameters:9.1f}  {result.digits_deviations:10.1f}{mark}"
            f"  {result.digits_rss:6.1f}{mark} {fit.iterations:5d} + {fit.polish_steps:<3d}"
            f"  {result.outcome}"
        )
        previous = problem.name
    lines.append("-" * 89)
    limited = {r.problem.name: r.problem for r in results if r.is_limited}
    for problem in limited.values():
        spacing = float(np.spacing(np.abs(problem.y).max()))
        lines.append(
            f"* {problem.name}: a residual is {problem.residual_deviation:.1e}, and doubles at the"
            f" response lie {spacing:.1e} apart.\n"
            "  Reading the data into float64 already spoils all but the first few digits of the\n"
            "  residuals, hence of RSS and deviations; the target of the deviations is"
            f" {problem.digits_carried:.1f} digits here."
        )
    for start in (1, 2):
        chosen = [r for r in results if r.start == start]
        reached = sum(r.is_certified for r in chosen)
        least = min(r.digits_parameters for r in chosen)
        lines.append(
            f"start {start}: {reached} of {len(chosen)} certified;"
            f" least digits in a parameter {least:.1f}"
        )
    return "\n".join(lines)


# Figure.


def draw_figure(results: Sequence[Result], path: str | Path) -> None:
    """Write a PNG of small multiples: data and fit, and under them the residuals.

    Args:
      results: those from the second start are drawn; of the first, only a miss is noted.
      path: file to write.
    """
    from matplotlib.figure import Figure

    drawn = [r for r in results if r.start == 2]
    missed = {r.problem.name for r in results if r.start == 1 and not r.is_certified}
    columns = min(COLUMNS, len(drawn) + 1)  # the last cell is the legend
    rows = math.ceil((len(drawn) + 1) / columns)
    width, height = CELL_INCHES * columns + 0.3, CELL_INCHES * rows + 0.9
    figure = Figure(figsize=(width, height), dpi=110, facecolor="white")
    grid = figure.add_gridspec(
        rows,
        columns,
        left=0.6 / width,
        right=1 - 0.2 / width,
        bottom=0.5 / height,
        top=1 - 1.35 / height,
        wspace=0.26,
        hspace=0.46,
    )
    figure.text(
        0.3 / width,
        1 - 0.46 / height,
        "NIST StRD nonlinear regression",
        color=INK,
        size=19,
        weight="bold",
    )
    figure.text(
        0.3 / width,
        1 - 0.7 / height,
        "fitted by a Levenberg-Marquardt whose every Jacobian is the exact derivative of plain"
        " NumPy code",
        color=MUTED,
        size=10,
    )
    for index, result in enumerate(drawn):
        cell = grid[divmod(index, columns)].subgridspec(2, 1, height_ratios=(3.2, 1), hspace=0.07)
        upper = figure.add_subplot(cell[0])
        _draw_fit(upper, result)
        _draw_heading(upper, result, is_first_missed=result.problem.name in missed)
        _draw_residuals(figure.add_subplot(cell[1], sharex=upper), result)
    _draw_legend(figure.add_subplot(grid[divmod(len(drawn), columns)]))
    figure.savefig(path)


def _groups(problem: Problem) -> list[tuple[Array, Array, npt.NDArray[np.bool_]]]:
    """Return ``(x for a curve, x along the axis, mask of the data)`` per second predictor."""
    axis = np.linspace(np.atleast_2d(problem.x)[0].min(), np.atleast_2d(problem.x)[0].max(), 400)
    if problem.x.ndim == 1:
        return [(axis, axis, np.ones(len(problem.y), dtype=bool))]
    levels = np.unique(problem.x[1])
    return [(np.stack([axis, np.full(400, v)]), axis, problem.x[1] == v) for v in levels]


def _draw_fit(axes: "Axes", result: Result) -> None:
    """Draw the data, the fitted curve and the curves at the two starting points."""
    problem, color = result.problem, LEVEL_COLORS[result.problem.level]
    predictor = np.atleast_2d(problem.x)[0]
    groups = _groups(problem)
    size = 26 if len(problem.y) < 40 else 9
    for index, (x, along, mask) in enumerate(groups):
        strength = (index + 1) / len(groups)
        with np.errstate(all="ignore"):  # a start may overflow
            for start in problem.starts:
                axes.plot(along, problem.model(start, x), color=MUTED, lw=0.9, ls=":", zorder=1)
            fitted = problem.model(result.fit.parameters, x)
        axes.plot(along, fitted, color=color, lw=1.7, alpha=strength, zorder=3)
        axes.scatter(
            predictor[mask], problem.y[mask], s=size, c=INK, alpha=0.62 * strength, lw=0, zorder=2
        )
    shown = np.concatenate([problem.y, problem.model(result.fit.parameters, problem.x)])
    margin = 0.08 * np.ptp(shown)
    axes.set_ylim(shown.min() - margin, shown.max() + margin)
    _dress(axes)
    axes.tick_params(labelbottom=False)
    axes.set_ylabel(problem.labels[0], size=7, color=MUTED)


def _draw_heading(axes: "Axes", result: Result, *, is_first_missed: bool) -> None:
    """Write name, level and size on the left, digits on the right."""
    problem, color = result.problem, LEVEL_COLORS[result.problem.level]
    mark = "*" if result.is_limited else ""
    digits = f"{result.digits_parameters:.1f} | {result.digits_deviations:.1f}{mark}"
    size = f"{problem.level}   n = {len(problem.y)}, p = {len(problem.parameters)}"
    note = "first start missed" if is_first_missed else "certified digits"

    def write(x: int, y: float, text: str, **style: Any) -> None:
        side = "right" if x else "left"
        axes.text(x, y, text, transform=axes.transAxes, ha=side, va="baseline", **style)

    write(0, 1.13, problem.name, size=12, weight="bold", color=INK)
    write(0, 1.035, size, size=7.5, color=color)
    write(1, 1.13, digits, size=10.5, weight="bold", color=color)
    write(1, 1.035, note, size=7.5, color=MUTED)


def _draw_residuals(axes: "Axes", result: Result) -> None:
    """Draw the residuals over their standard deviation; the band is two of them wide each way."""
    problem = result.problem
    residuals = -problem.residuals(result.fit.parameters)
    deviation = math.sqrt(result.fit.rss / (len(problem.y) - len(problem.parameters)))
    z = residuals / deviation
    axes.axhspan(-2, 2, color=FAINT, alpha=0.6, lw=0, zorder=0)
    axes.axhline(0, color=MUTED, lw=0.7, zorder=1)
    predictor = np.atleast_2d(problem.x)[0]
    color = LEVEL_COLORS[problem.level]
    if len(z) < 40:
        axes.vlines(predictor, 0, z, color=color, lw=0.9, alpha=0.6)
    axes.scatter(predictor, z, s=11 if len(z) < 40 else 5, c=color, lw=0, alpha=0.8, zorder=2)
    _dress(axes)
    reach = max(3.6, 1.1 * float(np.abs(z).max()))
    axes.set_ylim(-reach, reach)
    tick = 2 if reach < 6 else round(reach / 2)  # labels of a wide range would overlap
    axes.set_yticks([-tick, 0, tick])
    axes.set_xlabel(problem.labels[1], size=7, color=MUTED, labelpad=1.5, loc="left")
    axes.annotate(
        f"s = {deviation:.2g}",
        (1, 0),
        (0, -17),
        xycoords="axes fraction",
        textcoords="offset points",
        size=7,
        color=MUTED,
        ha="right",
        va="center",
    )


def _dress(axes: "Axes") -> None:
    """Give axes the quiet frame of this figure."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#b6c0c8")
    axes.tick_params(labelsize=7, colors=MUTED, color="#b6c0c8", length=2.5, width=0.7, pad=2)
    axes.margins(x=0.03)


def _draw_legend(axes: "Axes") -> None:
    """Explain the marks."""
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    entries: list[tuple[str, dict[str, Any]]] = [
        ("data", {"marker": "o", "ls": "", "color": INK, "ms": 5, "alpha": 0.62}),
        ("fit from the second start", {"color": LEVEL_COLORS["average"], "lw": 1.7}),
        ("the model at the two starting points", {"color": MUTED, "lw": 0.9, "ls": ":"}),
    ]
    for index, (text, style) in enumerate(entries):
        y = 0.96 - 0.085 * index
        axes.plot([0.02, 0.07, 0.12], [y] * 3, **style)
        axes.text(0.17, y, text, size=8.5, color=INK, va="center")
    notes = (
        "Below: residuals over their standard\ndeviation s; the band is 2 s each way.\n\n"
        "Digits that agree with the certificate,\nof 11: least over the parameters | least\n"
        "over their standard deviations.\n\n"
        "* what the data carry in float64\n\n"
        "Nelson: one curve per temperature."
    )
    axes.text(0.02, 0.68, notes, size=8.5, color=INK, va="top", linespacing=1.45)


# Command line.


def _show_progress(done: int, total: int, text: str) -> None:
    """Rewrite the progress line on a terminal, erase it without ``text``; else print nothing."""
    if sys.stderr.isatty():
        line = f"[{'#' * (24 * done // total):24}] {done:2d}/{total} {text}" if text else ""
        print(f"\r{line:54}", end="" if text else "\r", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; return 0 if every fit from the second start reaches its targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("nist_strd.png"), help="PNG to write")
    parser.add_argument(
        "--problem", action="append", metavar="NAME", help="fit this one only; may be repeated"
    )
    parser.add_argument("--no-figure", action="store_true", help="print the table only")
    options = parser.parse_args(argv)
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    names = options.problem or list(MODELS)
    if unknown := [name for name in names if name not in MODELS]:
        parser.error(f"no problem {unknown[0]!r}; there are {', '.join(MODELS)}")

    began = time.perf_counter()
    tasks = [(load(DATA / f"{name}.dat"), start) for name in names for start in (1, 2)]
    results = []
    for done, (problem, start) in enumerate(tasks):
        _show_progress(done, len(tasks), f"{problem.name}, start {start}")
        results.append(fit_problem(problem, start))
    _show_progress(len(tasks), len(tasks), "")
    print(format_table(results))
    print(f"{len(results)} fits in {time.perf_counter() - began:.1f} s")
    if not options.no_figure:
        _show_progress(len(tasks), len(tasks), "drawing the figure")
        draw_figure(results, options.output)
        _show_progress(len(tasks), len(tasks), "")
        print(f"figure: {options.output}")
    return 0 if all(r.is_certified for r in results if r.start == 2) else 1


if __name__ == "__main__":
    sys.exit(main())
