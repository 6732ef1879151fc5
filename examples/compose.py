"""Fit a state-space model to NIST's El Nino series by composing transforms.

The series is the air pressure difference between Easter Island and Darwin, 168 monthly averages.
The model: a level, an annual cycle and a damped stochastic cycle of unknown period, none of them
observed by itself, and noise. Its log-likelihood is a Kalman filter, a ``scan`` of plain NumPy
through the months. Everything else is that one function, transformed:

- Newton-CG fits the parameters with Hessian-vector products (``hvp``);
- ``hessian`` gives their standard errors, ``jacobian`` of the monthly terms the robust ones;
- ``jit(vmap(grad(...)))`` tells what each month, left out, does to the estimates;
- ``grad`` and ``hessian`` in the random shocks of the model are its smoother: components and their
  error bands. A month without observation has weight 0; so has the future, which is the forecast;
- a fixed-point iteration has its derivative from a rule (``custom_jvp``), not from its steps.

The program prints what each transform makes of a small piece of the model, then the fit and its
own checks (the exit status is 1 if one fails), and draws a figure.

    python examples/compose.py                 # figure in ./compose.png
    python examples/compose.py --no-figure

The data and their source are in ``data/nist_strd``. Shapes below: ``n`` months; 4 parameters, 5
states: the level, then two for each cycle, of which the first is observed.
"""

import argparse
import functools
import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import functrans as ft

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

DATA = Path(__file__).resolve().parent / "data" / "nist_strd" / "ENSO.dat"
NAMES = "noise", "shock", "damping", "period"
YEAR = 12.0
HORIZON = 36
PRIOR_DEVIATION = 30.0  # of level and annual cycle: next to no knowledge about values near 10
START_PERIODS = np.arange(18.0, 72.0, 6.0)

# Which states add up to the components "level with annual cycle" and "slow cycle", and which move.
PARTS = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
MOVING = np.eye(5)[:, 3:]

INK, MUTED, FAINT = "#22303c", "#7d8a96", "#e3e8ec"
ANNUAL, SLOW, WARM = "#14907f", "#3a6bd0", "#bf3b76"


# The model. These functions are everything that is differentiated below.


class StateSpace(NamedTuple):
    """``state' = transition @ state + MOVING @ e`` and ``y = sum(PARTS @ state) + d`` each month.

    Attributes:
      transition: ``f64[5, 5]``.
      shock: deviation of the two independent shocks ``e`` of a month.
      initial: ``f64[5, 5]``, covariance of the first state; its mean is 0.
      noise: deviation of ``d``.
    """

    transition: Array
    shock: Array
    initial: Array
    noise: Array


class Filtered(NamedTuple):
    """What the filter knows of each month from the months before; each ``f64[n]``."""

    log_density: Array
    predicted: Array
    variance: Array


def natural(theta: Array) -> Array:
    """Return deviations of noise and shocks, damping and period from ``theta``, ``f64[4]``.

    ``theta`` holds the same without bounds: logarithms, and the logit of the damping.
    """
    damping = 1 / (1 + np.exp(-theta[2]))
    return np.stack([np.exp(theta[0]), np.exp(theta[1]), damping, np.exp(theta[3])])


@ft.custom_jvp
def stationary_covariance(transition: Array, shocks: Array) -> Array:
    """Solve ``P = A P A^T + Q`` for stable ``A = transition`` and ``Q = shocks``, ``f64[s, s]``.

    The steps of the iteration are not differentiated: at the solution, the differential of the
    equation is an equation of the same kind, and the rule below solves that one.
    """
    return sum_powers(transition, shocks)


@stationary_covariance.defjvp
def _stationary_covariance_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """``dP = A dP A^T + (dA P A^T + A P dA^T + dQ)``, the implicit function theorem."""
    (a, q), (a_dot, q_dot) = primals, tangents
    p = stationary_covariance(a, q)
    turned = a_dot @ p @ a.T
    return p, stationary_covariance(a, turned + turned.T + q_dot)


def sum_powers(transition: Array, shocks: Array) -> Array:
    """Sum ``A^i Q (A^T)^i`` over all ``i``, twice as many in each step until ``A^i`` vanishes.

    Reference: Smith, Matrix equation XA + BX = C, SIAM J. Appl. Math. 16 (1968).
    """

    def is_unfinished(carry: tuple[Array, Array, Array]) -> Any:
        power, _, steps = carry
        return (np.max(np.abs(power)) > 1e-9) & (steps < 60)

    def double(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        power, total, steps = carry
        return power @ power, total + power @ total @ power.T, steps + 1

    return ft.lax.while_loop(is_unfinished, double, (transition, shocks, 0))[1]


def rotation(damping: Array | float, period: Array | float) -> Any:
    """Return the step of a cycle by one month, ``f64[2, 2]``."""
    angle = 2 * np.pi / period
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return damping * (np.cos(angle) * np.eye(2) + np.sin(angle) * turn)


def state_space(theta: Array) -> StateSpace:
    """Build the model from its parameters ``f64[4]``."""
    noise, shock, damping, period = natural(theta)
    steady = np.zeros((5, 5))
    steady[0, 0] = 1.0
    steady[1:3, 1:3] = rotation(1.0, YEAR)
    cycle = rotation(damping, period)
    unknown = np.diag([PRIOR_DEVIATION**2] * 3 + [0.0] * 2)
    return StateSpace(
        steady + MOVING @ cycle @ MOVING.T,
        shock,
        unknown + MOVING @ stationary_covariance(cycle, shock**2 * np.eye(2)) @ MOVING.T,
        noise,
    )


def log_density(surprise: Array, variance: Array) -> Array:
    """Return the logarithm of the normal density."""
    return -0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)


def shifts(model: StateSpace, shocks: Array) -> Array:
    """Return what standard normal shocks ``f64[5 + 2 (n-1)]`` add to the states, ``f64[n, 5]``.

    The first five make the first state out of its mean.
    """
    first = np.linalg.cholesky(model.initial) @ shocks[:5]
    later = model.shock * shocks[5:].reshape(-1, 2) @ MOVING.T
    return np.concatenate([first[None], later])


def kalman_filter(
    theta: Array,
    y: Array,
    weights: Array,
    shocks: Array | None = None,
    *,
    is_checkpointed: bool = False,
) -> Filtered:
    """Predict each month from the months before.

    Args:
      theta: parameters, ``f64[4]``.
      y: observations, ``f64[n]``.
      weights: 1 where ``y`` was observed, 0 where it is to be ignored, ``f64[n]``.
      shocks: known offsets of the standard normal shocks, as for :func:`shifts`; none by default.
      is_checkpointed: whether a backward pass keeps only the states, and computes the rest of a
        month again when it comes to it.
    """
    model = state_space(theta)
    observation = PARTS.sum(axis=0)
    spread = model.shock**2 * (MOVING @ MOVING.T)

    def step(carry: tuple[Array, Array], month: tuple[Array, ...]) -> tuple[Any, Filtered]:
        (mean, covariance), (observed, weight, shift) = carry, month
        mean = mean + shift
        shared = covariance @ observation
        predicted = observation @ mean
        variance = observation @ shared + model.noise**2
        surprise = observed - predicted
        gain = weight / variance * shared
        mean = mean + gain * surprise
        covariance = covariance - gain[:, None] * shared
        ahead = model.transition @ mean, model.transition @ covariance @ model.transition.T + spread
        return ahead, Filtered(weight * log_density(surprise, variance), predicted, variance)

    offsets = np.zeros((len(y), 5)) if shocks is None else shifts(model, shocks)
    body = ft.checkpoint(step) if is_checkpointed else step
    return ft.lax.scan(body, (np.zeros(5), model.initial), (y, weights, offsets))[1]


def loss(theta: Array, y: Array, weights: Array, *, is_checkpointed: bool = False) -> np.float64:
    """Return the negative log-likelihood of the months with weight 1."""
    filtered = kalman_filter(theta, y, weights, is_checkpointed=is_checkpointed)
    return -np.sum(filtered.log_density)


def components(theta: Array, shocks: Array) -> Array:
    """Return level with annual cycle, and slow cycle, as the shocks make them, ``f64[n, 2]``."""
    model = state_space(theta)

    def step(state: Array, shift: Array) -> tuple[Array, Array]:
        state = state + shift
        return model.transition @ state, PARTS @ state

    return ft.lax.scan(step, np.zeros(5), shifts(model, shocks))[1]


# The fit: Newton's method in a trust region, its linear systems by conjugate gradients.


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """A point that Newton-CG reached.

    Attributes:
      theta: the point, ``f64[p]``.
      loss: value there.
      gradient_norm: Euclidean length of the gradient there.
      radius: of the trust region of the step from here.
      products: Hessian-vector products so far.
    """

    theta: Array
    loss: float
    gradient_norm: float
    radius: float
    products: int


def newton_cg(
    fun: Callable[[Array], np.float64],
    start: npt.ArrayLike,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 60,
) -> list[Iteration]:
    """Minimise ``fun`` from ``start`` and return the points on the way, the solution last.

    No Hessian is formed: the inner iteration asks for its products with vectors, each one forward
    pass over the gradient. It stops early far from the solution, at the edge of the trust region,
    or along a direction of negative curvature.

    Args:
      fun: scalar function of ``f64[p]``.
      start: starting point, ``f64[p]``.
      tolerance: length of the gradient that counts as zero.
      max_iterations: limit of steps, rejected ones included.

    Reference: Nocedal & Wright, Numerical Optimization, 2nd ed. (2006), algorithms 4.1 and 7.2.
    """
    value_and_grad = ft.jit(ft.value_and_grad(fun))
    product = ft.jit(lambda theta, vector: ft.hvp(fun, (theta,), (vector,)))
    theta = np.array(start, dtype=np.float64)
    loss_here, gradient = value_and_grad(theta)
    radius, products = 1.0, 0
    path = [Iteration(theta, float(loss_here), float(np.linalg.norm(gradient)), radius, 0)]
    for _ in range(max_iterations):
        here = path[-1]
        if here.gradient_norm <= tolerance:
            break
        forcing = min(0.5, math.sqrt(here.gradient_norm)) * here.gradient_norm
        step, promised, used = _bounded_step(
            functools.partial(product, theta), gradient, radius, forcing
        )
        products += used
        loss_there, gradient_there = value_and_grad(theta + step)
        is_rounding = promised <= 1e-12 * abs(here.loss)  # the loss cannot judge such a step
        gain = 1.0 if is_rounding else (here.loss - float(loss_there)) / promised
        if not gain >= 0.25:
            radius = 0.25 * float(np.linalg.norm(step))
        elif gain > 0.75 and np.linalg.norm(step) > 0.9 * radius:
            radius = 2 * radius
        if gain > 1e-4:
            theta, gradient = theta + step, gradient_there
            norm = float(np.linalg.norm(gradient))
            path.append(Iteration(theta, float(loss_there), norm, radius, products))
    return path


def _bounded_step(
    product: Callable[[Array], Array], gradient: Array, radius: float, tolerance: float
) -> tuple[Array, float, int]:
    """Solve ``H step = -gradient`` within ``radius`` by conjugate gradients (Steihaug).

    Returns:
      The step, the descent that the quadratic model promises, the number of products used.
    """
    step, moved = np.zeros_like(gradient), np.zeros_like(gradient)
    residual = direction = -gradient
    used = 0
    while used < 2 * len(gradient) and np.linalg.norm(residual) > tolerance:
        curved = product(direction)
        used += 1
        curvature, square = float(direction @ curved), float(residual @ residual)
        length = square / curvature if curvature > 0 else math.inf
        is_inside = curvature > 0 and np.linalg.norm(step + length * direction) < radius
        if not is_inside:
            length = _distance_to_edge(step, direction, radius)
        step, moved = step + length * direction, moved + length * curved
        if not is_inside:
            break
        residual = residual - length * curved
        direction = residual + float(residual @ residual) / square * direction
    return step, -float(gradient @ step + 0.5 * step @ moved), used


def _distance_to_edge(step: Array, direction: Array, radius: float) -> float:
    """Return the positive ``t`` with ``|step + t direction| = radius``."""
    a, b = float(direction @ direction), float(step @ direction)
    return (math.sqrt(b * b + a * (radius**2 - float(step @ step))) - b) / a


def choose_start(y: Array) -> Array:
    """Return the likeliest of a few starting points that differ in the period, ``f64[4]``."""
    scales = np.log([y.std() / 2, y.std() / 4, 0.9 / 0.1])
    starts = np.array([[*scales, math.log(period)] for period in START_PERIODS])
    losses = ft.jit(ft.vmap(loss, in_axes=(0, None, None)))(starts, y, np.ones_like(y))
    start: Array = starts[int(np.argmin(losses))]
    return start


# What the fitted model says. All of it is derivatives of the functions above.


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Parameters at the optimum, in natural units, and how sure they are.

    Attributes:
      theta: the optimum on the scale of the fit, ``f64[4]``.
      values: the same in natural units, as from :func:`natural`, ``f64[4]``.
      hessian: of the loss at ``theta``, ``f64[4, 4]``.
      deviations: standard errors of ``values`` from the Hessian, ``f64[4]``.
      robust_deviations: from ``H^-1 S^T S H^-1`` with the scores ``S`` of the months: right also
        where the noise is not normal, ``f64[4]``.
      influence: change of ``values`` if a month is left out, to first order, ``f64[n, 4]``.
    """

    theta: Array
    values: Array
    hessian: Array
    deviations: Array
    robust_deviations: Array
    influence: Array

    @property
    def half_life(self) -> float:
        """Months in which a disturbance of the slow cycle is damped to its half."""
        return math.log(0.5) / math.log(self.values[2])


def describe_optimum(theta: Array, y: Array) -> Estimate:
    """Take the derivatives that tell what the optimum ``theta`` is worth."""
    everything = np.ones_like(y)
    hessian = ft.jit(ft.hessian(loss))(theta, y, everything)
    scores = ft.jacobian(lambda at: kalman_filter(at, y, everything).log_density)(theta)
    without_one = 1 - np.eye(len(y))  # row i ignores month i
    gradients = ft.jit(ft.vmap(ft.grad(loss), in_axes=(None, None, 0)))(theta, y, without_one)
    slopes = ft.jacobian(natural)(theta)
    covariance = np.linalg.inv(hessian)
    sandwich = covariance @ scores.T @ scores @ covariance
    return Estimate(
        theta,
        natural(theta),
        hessian,
        np.sqrt(np.diag(slopes @ covariance @ slopes.T)),
        np.sqrt(np.diag(slopes @ sandwich @ slopes.T)),
        -gradients @ covariance @ slopes.T,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """Components given all observations.

    Attributes:
      shocks: mean of the standard normal shocks, ``f64[s]``.
      covariance: of the shocks, ``f64[s, s]``.
      means, deviations: of level with annual cycle, and of the slow cycle, ``f64[n, 2]``.
      jacobian: of the components in the shocks, ``f64[n, 2, s]``.
    """

    shocks: Array
    covariance: Array
    means: Array
    deviations: Array
    jacobian: Array


def smooth(theta: Array, y: Array, weights: Array) -> Smoothed:
    """Estimate the components of every month from all observations, later ones included.

    The model is linear in standard normal shocks. Take its log-likelihood as a function of known
    offsets of the shocks: the gradient at 0 is the mean of the shocks given ``y``, and the identity
    plus the Hessian is their covariance. The backward recursion of a smoother is reverse mode.

    Reference: Koopman, Disturbance smoother for state space models, Biometrika 80 (1993).
    """
    none = np.zeros(5 + 2 * (len(y) - 1))

    def log_likelihood(shocks: Array) -> np.float64:
        return np.sum(kalman_filter(theta, y, weights, shocks).log_density)

    shocks = ft.grad(log_likelihood)(none)
    covariance = np.eye(len(none)) + ft.hessian(log_likelihood)(none)
    jacobian = ft.jacobian(lambda at: components(theta, at))(none)
    variances = np.einsum("tki,ij,tkj->tk", jacobian, covariance, jacobian, optimize=True)
    means = components(theta, shocks)
    return Smoothed(shocks, covariance, means, np.sqrt(variances), jacobian)


def refit_without_each(estimate: Estimate, y: Array) -> Array:
    """Fit again without every single month, all at once; return the changes, ``f64[n, 4]``.

    Newton's method with the Hessian of the common optimum, which is close to all of theirs.
    """
    without_one = 1 - np.eye(len(y))
    gradients_at = ft.jit(ft.vmap(ft.grad(loss), in_axes=(0, None, 0)))
    thetas = np.tile(estimate.theta, (len(y), 1))
    for _ in range(30):
        gradients = gradients_at(thetas, y, without_one)
        if np.max(np.abs(gradients)) < 1e-8:
            break
        thetas = thetas - np.linalg.solve(estimate.hessian, gradients.T).T
    return ft.vmap(natural)(thetas) - estimate.values


# Checks.


@dataclass(frozen=True, slots=True)
class Check:
    """A relation that must hold, how far it is off, and how far it may be."""

    claim: str
    error: float
    bound: float

    @property
    def is_passed(self) -> bool:
        """Whether the relation holds as well as it should; not if the error is NaN."""
        return self.error <= self.bound


def relative_error(value: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """Return the largest difference over the largest size of ``expected``."""
    value, expected = np.asarray(value), np.asarray(expected)
    return float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))


def check_derivatives(theta: Array, y: Array, optimum: Estimate) -> list[Check]:
    """Compare derivatives of the loss with differences and with one another."""
    everything = np.ones_like(y)
    n_parameters, step = len(theta), 1e-5
    gradient = ft.grad(loss)(theta, y, everything)
    moves = step * np.eye(n_parameters)
    differences = [
        (loss(theta + move, y, everything) - loss(theta - move, y, everything)) / (2 * step)
        for move in moves
    ]
    hessian = ft.hessian(loss)(theta, y, everything)
    vector = np.array([1.0, -2.0, 3.0, -4.0])
    product = ft.hvp(lambda at: loss(at, y, everything), (theta,), (vector,))

    without_one = 1 - np.eye(len(y))[[0, 60, 167]]
    one_by_one = [ft.grad(loss)(theta, y, weights) for weights in without_one]
    batched = ft.jit(ft.vmap(ft.grad(loss), in_axes=(None, None, 0)))(theta, y, without_one)
    frugal = ft.grad(functools.partial(loss, is_checkpointed=True))(theta, y, everything)

    def covariance(solve: Callable[[Array, Array], Array], at: Array) -> Array:
        _, shock, damping, period = natural(at)
        return solve(rotation(damping, period), shock**2 * np.eye(2))

    by_rule = ft.jacobian(lambda at: covariance(stationary_covariance, at))(theta)
    by_steps = ft.jacobian(lambda at: covariance(sum_powers, at))(theta)
    lowest = float(np.linalg.eigvalsh(optimum.hessian)[0])
    return [
        Check("grad = central differences", relative_error(gradient, differences), 1e-7),
        Check("hvp(v) = hessian @ v", relative_error(product, hessian @ vector), 1e-12),
        Check("hessian = its transpose", relative_error(hessian, hessian.T), 1e-12),
        Check("hessian positive definite at the optimum", max(0.0, -lowest), 0.0),
        Check("jit(vmap(grad)) = grad, month by month", relative_error(batched, one_by_one), 1e-12),
        Check("checkpoint = without", relative_error(frugal, gradient), 1e-12),
        Check("rule of the fixed point = its steps", relative_error(by_rule, by_steps), 1e-10),
    ]


def check_model(y: Array, optimum: Estimate, smoothed: Smoothed) -> list[Check]:
    """Compare filter and smoother with the normal distribution of all months at once.

    The model is linear in the shocks, so a Jacobian gives the covariance of the observations and
    textbook conditioning the rest: ``n**3`` operations in place of ``n``.
    """
    n = len(y)
    weight = smoothed.jacobian[:n].sum(axis=1)
    covariance = weight @ weight.T + optimum.values[0] ** 2 * np.eye(n)
    solved = np.linalg.solve(covariance, y)
    log_likelihood = -0.5 * (
        n * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] + y @ solved
    )
    shocks = weight.T @ solved
    given = np.eye(weight.shape[1]) - weight.T @ np.linalg.solve(covariance, weight)
    filtered = loss(optimum.theta, y, np.ones_like(y))
    return [
        Check("filter = joint normal density", relative_error(-filtered, log_likelihood), 1e-12),
        Check("grad in the shocks = their mean", relative_error(smoothed.shocks, shocks), 1e-10),
        Check("1 + hessian = their covariance", relative_error(smoothed.covariance, given), 1e-10),
    ]


# Report.


def format_programs() -> str:
    """Show what each transform makes of the log-density of one month."""

    def one_month(log_noise: Any, surprise: Any, spread: Any) -> Array:
        return log_density(surprise, spread + np.exp(2 * log_noise))

    slope = ft.grad(one_month)
    slopes = ft.vmap(slope, in_axes=(None, 0, 0))
    one = np.log(2.0), np.float64(-1.5), np.float64(1.1)
    three = np.log(2.0), np.array([2.0, -1.5, 0.3]), np.array([1.2, 1.1, 1.1])
    sections = [
        ("the log-density of one month", ft.make_jaxpr(one_month)(*one)),
        ("grad: its slope in the noise, by a backward pass", ft.make_jaxpr(slope)(*one)),
        ("vmap(grad): the slopes of three months", ft.make_jaxpr(slopes)(*three)),
        ("jit(vmap(grad)): less what no slope needs", ft.jit(slopes).lower(*three).jaxpr),
    ]
    return "\n\n".join(f"# {title}\n{program}" for title, program in sections)


def format_transforms(theta: Array, y: Array) -> str:
    """Count the equations of the loss under each transform; measure time and memory of a call."""
    everything, without_one = np.ones_like(y), 1 - np.eye(len(y))

    def product(at: Array, observed: Array, weights: Array, vector: Array) -> Any:
        return ft.hvp(lambda x: loss(x, observed, weights), (at,), (vector,))

    gradient = ft.grad(loss)
    frugal = ft.grad(functools.partial(loss, is_checkpointed=True))
    by_month = functools.partial(ft.vmap, in_axes=(None, None, 0))
    transforms: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
        "loss": (loss, (theta, y, everything)),
        "grad": (gradient, (theta, y, everything)),
        "hvp": (product, (theta, y, everything, np.ones(4))),
        "hessian": (ft.hessian(loss), (theta, y, everything)),
        "vmap(grad), one per month": (by_month(gradient), (theta, y, without_one)),
        "the same of checkpoint": (by_month(frugal), (theta, y, without_one)),
    }
    lines = [
        "# the log-likelihood of all months: equations, those of the loop included, and a call",
        "                           traced  simplified by jit       ms  peak kB",
    ]
    for name, (function, arguments) in transforms.items():
        fast = ft.jit(function)
        traced = count_equations(ft.make_jaxpr(function)(*arguments))
        simplified = count_equations(fast.lower(*arguments).jaxpr)
        duration_s, size_bytes = measure(fast, *arguments)
        lines.append(
            f"{name:26} {traced:6d} {simplified:18d} {1e3 * duration_s:8.1f}"
            f" {1e-3 * size_bytes:8.0f}"
        )
    return "\n".join(lines)


def measure(function: Callable[..., Array], *arguments: Array) -> tuple[float, int]:
    """Return the seconds of a call, and the bytes that it had allocated at most; not the first."""
    function(*arguments)
    durations_s = []
    for _ in range(3):
        began = time.perf_counter()
        function(*arguments)
        durations_s.append(time.perf_counter() - began)
    tracemalloc.start()
    function(*arguments)
    _, size_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(durations_s), size_bytes


def count_equations(program: ft.Jaxpr) -> int:
    """Count the equations of a program, those of the programs inside it included."""
    return sum(" = " in line for line in str(program).splitlines())


def format_fit(path: Sequence[Iteration]) -> str:
    """Lay out the way of Newton-CG to the optimum."""
    lines = ["step  -log likelihood    |gradient|  hvp products   period"]
    lines += [
        f"{index:4d} {point.loss:16.9f} {point.gradient_norm:13.2e} {point.products:13d}"
        f" {natural(point.theta)[3]:8.2f}"
        for index, point in enumerate(path)
    ]
    return "\n".join(lines)


def format_estimate(estimate: Estimate) -> str:
    """Lay out the parameters, their standard errors and their most influential months."""
    lines = ["parameter  estimate  std. error  robust   most influential month, left out"]
    for index, name in enumerate(NAMES):
        influence = estimate.influence[:, index]
        month = int(np.argmax(np.abs(influence)))
        lines.append(
            f"{name:9} {estimate.values[index]:9.4f} {estimate.deviations[index]:11.4f}"
            f" {estimate.robust_deviations[index]:7.4f}"
            f"   month {month + 1:3d}: {influence[month]:+.4f}"
        )
    lines.append(f"a disturbance of the slow cycle halves in {estimate.half_life:.1f} months")
    return "\n".join(lines)


def format_checks(checks: Sequence[Check]) -> str:
    """Lay out the checks."""
    return "\n".join(
        f"{'ok    ' if check.is_passed else 'FAILED'}  {check.claim:42}"
        f" off by {check.error:.1e}, may be {check.bound:.0e}"
        for check in checks
    )


# Figure.


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """All that the figure shows.

    Attributes:
      y: observations, ``f64[n]``.
      path: the way of Newton-CG.
      estimate: what the optimum says.
      filtered: one-step predictions, and ``HORIZON`` months of forecast, ``f64[n + HORIZON]``.
      smoothed: components of the same months.
      refits: change of the parameters if a month is left out, fitted again, ``f64[n, 4]``.
    """

    y: Array
    path: Sequence[Iteration]
    estimate: Estimate
    filtered: Filtered
    smoothed: Smoothed
    refits: Array


def draw_figure(results: Results, path: str | Path) -> None:
    """Write a PNG: series, components and influences by month; fit and estimates beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 10.6), dpi=110, facecolor="white")
    figure.text(0.042, 0.958, "El Niño, transformed", color=INK, size=21, weight="bold")
    figure.text(
        0.042,
        0.933,
        "One Kalman filter in plain NumPy; its derivatives are the fit, the standard errors, the"
        " components and the influence of every month",
        color=MUTED,
        size=11,
    )
    left = figure.add_gridspec(
        4, 1, left=0.042, right=0.72, bottom=0.055, top=0.882,
        height_ratios=(2.2, 0.95, 1.3, 1.1), hspace=0.36,
    )  # fmt: skip
    series = figure.add_subplot(left[0])
    _draw_series(series, results)
    _draw_component(figure.add_subplot(left[1], sharex=series), results, 0)
    _draw_component(figure.add_subplot(left[2], sharex=series), results, 1)
    _draw_influence(figure.add_subplot(left[3], sharex=series), results)
    right = figure.add_gridspec(
        3, 1, left=0.775, right=0.985, bottom=0.055, top=0.882,
        height_ratios=(1.1, 0.8, 1.1), hspace=0.4,
    )  # fmt: skip
    _draw_convergence(figure.add_subplot(right[0]), results.path)
    _draw_estimates(figure.add_subplot(right[1]), results.estimate)
    _draw_refits(figure.add_subplot(right[2]), results)
    figure.savefig(path)


def _draw_series(axes: "Axes", results: Results) -> None:
    """Draw observations, one-step predictions and forecast, with 95 % bands."""
    n, settled = len(results.y), 6  # months that the filter needs to find level and annual cycle
    months = np.arange(1, n + HORIZON + 1)
    predicted, reach = results.filtered.predicted, 1.96 * np.sqrt(results.filtered.variance)
    axes.plot(months[:n], results.y, color=INK, lw=0.5, alpha=0.35, zorder=2)
    axes.scatter(months[:n], results.y, s=13, c=INK, alpha=0.8, lw=0, zorder=4, label="observed")
    for part, color, line, label in [
        (slice(settled, n), SLOW, "-", "predicted from the months before, with 95 % band"),
        (slice(n - 1, None), WARM, (0, (3, 1.5)), f"forecast of {HORIZON} months"),
    ]:
        low, high = (predicted - reach)[part], (predicted + reach)[part]
        axes.fill_between(months[part], low, high, color=color, alpha=0.13, lw=0)
        axes.plot(months[part], predicted[part], color=color, lw=1.6, ls=line, label=label)
    is_inside = (np.abs(results.y - predicted[:n]) <= reach[:n])[settled:]
    _dress(axes, "Air pressure difference, Easter Island to Darwin", "lax.scan")
    _mark_years(axes, n)
    axes.set(xlim=(0, months[-1] + 1), ylim=(-2.5, 24))
    axes.legend(loc="upper left", ncols=3, frameon=False, fontsize=8.5, labelcolor=INK)
    axes.text(
        3, -1.7, f"{np.sum(is_inside)} of the {len(is_inside)} months after the first {settled}"
        f" are inside the band ({100 * is_inside.mean():.0f} %)", size=8.5, color=MUTED,
    )  # fmt: skip


def _draw_component(axes: "Axes", results: Results, index: int) -> None:
    """Draw a component given all observations, with its 95 % band."""
    n = len(results.y)
    months = np.arange(1, n + HORIZON + 1)
    mean, reach = results.smoothed.means[:, index], 1.96 * results.smoothed.deviations[:, index]
    color, title = [
        (ANNUAL, "Its level and annual cycle"),
        (SLOW, f"Its slow cycle, of period {results.estimate.values[3]:.1f} months"),
    ][index]
    if index == 1:
        others = results.y - results.smoothed.means[:n, 0]
        axes.scatter(months[:n], others, s=8, c=INK, alpha=0.35, lw=0)
        axes.axhline(0, color=MUTED, lw=0.7, zorder=0)
    axes.fill_between(months, mean - reach, mean + reach, color=color, alpha=0.18, lw=0)
    axes.plot(months[:n], mean[:n], color=color, lw=1.8)
    axes.plot(months[n - 1 :], mean[n - 1 :], color=color, lw=1.8, ls=(0, (3, 1.5)))
    _dress(axes, title, "grad and hessian in the shocks")
    _mark_years(axes, n)


def _draw_influence(axes: "Axes", results: Results) -> None:
    """Draw the change of the period that leaving a month out makes."""
    influence = results.estimate.influence[:, 3]
    months = np.arange(1, len(influence) + 1)
    axes.vlines(months, 0, influence, color=np.where(influence > 0, SLOW, WARM), lw=1.9)
    axes.axhline(0, color=MUTED, lw=0.7)
    for month in np.argsort(-np.abs(influence))[:8].tolist():
        value = influence[month]
        if np.argmax(np.sign(value) * influence[max(month - 1, 0) : month + 2]) != min(month, 1):
            continue  # its label would lie on a longer neighbour
        axes.annotate(
            f"{month + 1}", (month + 1, value), (0, 3 if value > 0 else -3),
            textcoords="offset points", ha="center", va="bottom" if value > 0 else "top",
            size=7.5, color=INK,
        )  # fmt: skip
    axes.margins(y=0.22)
    _dress(axes, "Change of the period if a month is left out", "jit(vmap(grad(loss)))")
    _mark_years(axes, len(results.y))
    axes.set_xlabel("month", size=9, color=MUTED, loc="left", labelpad=2)


def _draw_convergence(axes: "Axes", path: Sequence[Iteration]) -> None:
    """Draw gradient and loss on the way of Newton-CG."""
    products = [point.products for point in path]
    rounding = np.finfo(np.float64).eps * path[-1].loss
    gaps = [max(point.loss - path[-1].loss, rounding) for point in path[:-1]]
    norms = [point.gradient_norm for point in path]
    style: dict[str, Any] = {"marker": "o", "ms": 4.5, "lw": 1.4}
    axes.semilogy(products, norms, color=SLOW, label="length of the gradient", **style)
    axes.semilogy(products[:-1], gaps, color=ANNUAL, label="loss above its minimum", **style)
    _dress(axes, f"Fit in {len(path) - 1} steps", "hvp")
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="lower left")
    axes.set_xlabel("Hessian-vector products", size=9, color=MUTED, loc="left", labelpad=2)


def _draw_refits(axes: "Axes", results: Results) -> None:
    """Compare the influence of a month, from its gradient, with what fitting again gives."""
    first_order, fitted = results.estimate.influence[:, 3], results.refits[:, 3]
    reach = 1.25 * float(np.abs([first_order, fitted]).max())
    axes.plot([-reach, reach], [-reach, reach], color=MUTED, lw=0.8, zorder=1)
    colors = np.where(first_order > 0, SLOW, WARM)
    axes.scatter(first_order, fitted, s=22, c=colors, alpha=0.7, lw=0, zorder=2)
    for month in (int(np.argmin(first_order)), int(np.argmax(first_order))):
        axes.annotate(
            f"month {month + 1}", (first_order[month], fitted[month]), (8, -8),
            textcoords="offset points", size=8, color=INK,
        )  # fmt: skip
    _dress(axes, "The same, fitted again", f"batch of {len(fitted)}")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    axes.set_xlabel(
        "change of the period, from its gradient", size=9, color=MUTED, loc="left", labelpad=2
    )


def _draw_estimates(axes: "Axes", estimate: Estimate) -> None:
    """Write the parameters with their standard errors."""
    axes.set_axis_off()
    _dress(axes, "Estimates", "hessian, jacobian")
    rows: list[tuple[str, ...]] = [("", "estimate", "std. error", "robust")]
    for name, *numbers in zip(
        NAMES, estimate.values, estimate.deviations, estimate.robust_deviations, strict=True
    ):
        rows.append((name, *(f"{number:.3f}" for number in numbers)))
    for line, row in enumerate(rows):
        for x, text in zip((0.0, 0.5, 0.76, 1.0), row, strict=True):
            axes.text(
                x, 0.92 - 0.175 * line, text, ha="right" if x else "left", va="center",
                transform=axes.transAxes, size=9.5, color=MUTED if line == 0 else INK,
            )  # fmt: skip
    axes.text(
        0, 0.06, f"a disturbance of the slow cycle halves\nin {estimate.half_life:.1f} months",
        transform=axes.transAxes, size=9, color=MUTED, va="top", linespacing=1.4,
    )  # fmt: skip


def _mark_years(axes: "Axes", n: int) -> None:
    """Put ticks and faint lines at every second year, and a line where the observations end."""
    axes.set_xticks(np.arange(0, n + HORIZON + 1, 24))
    axes.grid(axis="x", color=FAINT, lw=0.7)
    axes.set_axisbelow(True)
    axes.axvline(n + 0.5, color=MUTED, lw=0.8, ls=":")


def _dress(axes: "Axes", title: str, source: str) -> None:
    """Give axes the quiet frame of this figure, a title and the transform behind the content."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#b6c0c8")
    axes.tick_params(labelsize=8, colors=MUTED, color="#b6c0c8", length=2.5, width=0.7, pad=2)
    axes.set_title(title, loc="left", size=11.5, weight="bold", color=INK, pad=8)
    axes.set_title(source, loc="right", size=9, family="monospace", color=MUTED, pad=8)


# Command line.


def load_series() -> Array:
    """Read the observations of NIST's ENSO data set, ``f64[168]``."""
    _, _, table = DATA.read_text(encoding="ascii").rpartition("Data:   y          x\n")
    return np.array([float(line.split()[0]) for line in table.splitlines()])


def _show_progress(done: int, total: int, text: str) -> None:
    """Rewrite the progress line on a terminal, erase it without ``text``; else print nothing."""
    if sys.stderr.isatty():
        line = f"[{'#' * (24 * done // total):24}] {done:2d}/{total} {text}" if text else ""
        print(f"\r{line:78}", end="" if text else "\r", file=sys.stderr, flush=True)


def _print(text: str) -> None:
    """Print a section in place of the progress line."""
    _show_progress(1, 1, "")
    print(f"\n{text}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; return 0 if all checks pass."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("compose.png"), help="PNG to write")
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args(argv)
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    began = time.perf_counter()
    y = load_series()
    everything = np.ones_like(y)
    # The future is HORIZON months without observation.
    with_future = np.concatenate([y, np.zeros(HORIZON)])
    weights = np.concatenate([everything, np.zeros(HORIZON)])

    print(format_programs())
    _show_progress(0, 6, "choosing a start")
    start = choose_start(y)
    _show_progress(1, 6, "timing the transforms")
    _print(format_transforms(start, y))
    _show_progress(2, 6, "Newton-CG")
    path = newton_cg(lambda theta: loss(theta, y, everything), start)
    _print(format_fit(path))
    _show_progress(3, 6, "standard errors, influence of the months")
    estimate = describe_optimum(path[-1].theta, y)
    refits = refit_without_each(estimate, y)
    _print(format_estimate(estimate))
    _show_progress(4, 6, "components")
    smoothed = smooth(estimate.theta, with_future, weights)
    _show_progress(5, 6, "checks")
    checks = [
        *check_derivatives(start, y, estimate),
        *check_model(y, estimate, smoothed),
        Check("influence = change of a new fit", relative_error(estimate.influence, refits), 0.1),
    ]
    _print(format_checks(checks))
    print(f"\n{time.perf_counter() - began:.1f} s")
    if not options.no_figure:
        filtered = kalman_filter(estimate.theta, with_future, weights)
        _show_progress(6, 6, "drawing the figure")
        draw_figure(Results(y, path, estimate, filtered, smoothed, refits), options.output)
        _show_progress(6, 6, "")
        print(f"figure: {options.output}")
    return 0 if all(check.is_passed for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
