"""Fit a state-space model to NIST's El Nino series by composing transforms.

The series is the air pressure difference between Easter Island and Darwin, 168 monthly averages.
The model is a level, an annual cycle and damped stochastic cycles of unknown period, all unobserved,
plus noise. Its log-likelihood is a Kalman filter: a ``scan`` of plain NumPy through the months.
Everything else is that one function, transformed:

- Newton-CG fits the parameters with Hessian-vector products, ``hvp``;
- ``hessian`` gives their standard errors, ``jacobian`` of the monthly terms the robust ones;
- ``jit(vmap(grad(...)))`` tells what each month, left out, does to the estimate;
- ``grad`` and ``hessian`` in the random shocks of the model are its smoother: the estimated
  components and their error bands. A month without observation has weight 0; so has the future,
  and the same pass is the forecast;
- a fixed-point iteration gets its derivative by a rule, ``custom_jvp``.

The program prints what each transform makes of a small piece of the model, then the fit, then its
own checks (exit status 1 if one fails), and draws a figure.

    python examples/compose.py                         # figure in ./compose.png
    python examples/compose.py --cycles 2 --no-figure

Shapes below: ``n`` months, ``k`` cycles, ``p = 1 + 3 k`` parameters, ``m = 3 + 2 k`` states.
"""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import functrans as ft

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

DATA = Path(__file__).resolve().parent / "data" / "nist_strd" / "ENSO.dat"
YEAR = 12.0
PRIOR_DEVIATION = 30.0  # of level and annual cycle: next to no knowledge about values near 10
HORIZON = 36
START_PERIODS = (18.0, 27.0, 40.0, 60.0)


# The model. These functions are everything that is differentiated below.


class StateSpace(NamedTuple):
    """``state[t] = transition @ state[t-1] + shock_factor @ e[t]``, ``y[t] = OBSERVED state + noise``.

    Attributes:
      transition: ``f64[m, m]``; level, annual cycle and cycles are its diagonal blocks.
      shock_factor: ``f64[m, 2k]``, maps standard normal shocks to the states they move.
      initial_factor: ``f64[m, m]``, Cholesky factor of the covariance of the first state.
      observation: ``f64[m]``, adds up level and first coordinates of the cycles.
      noise: variance of the noise.
    """

    transition: Array
    shock_factor: Array
    initial_factor: Array
    observation: Array
    noise: Array


class Filtered(NamedTuple):
    """What the filter knows of each month from the months before; each ``f64[n]``."""

    log_density: Array
    predicted: Array
    variance: Array


def natural(theta: Array) -> Array:
    """Return noise deviation, then per cycle shock deviations, dampings, periods, ``f64[p]``.

    ``theta`` holds the same on scales without bounds: logarithms, and logits of the dampings.
    """
    log_shock, logit_damping, log_period = theta[1:].reshape(3, -1)
    damping = 1 / (1 + np.exp(-logit_damping))
    return np.concatenate([np.exp(theta[:1]), np.exp(log_shock), damping, np.exp(log_period)])


@ft.custom_jvp
def stationary_covariance(transition: Array, shocks: Array) -> Array:
    """Solve ``P = A P A^T + Q`` for stable ``A = transition`` and ``Q = shocks``, each ``f64[s, s]``.

    Sums ``A^i Q (A^T)^i`` in doubling steps until the power of ``A`` has vanished; how many that
    takes depends on the values. The steps are not what is differentiated: at the solution the
    differential of the equation is an equation of the same kind, and the rule below solves that.

    Reference: Smith, Matrix equation XA + BX = C, SIAM J. Appl. Math. 16 (1968).
    """
    return _sum_powers(transition, shocks)


def _sum_powers(transition: Array, shocks: Array) -> Array:
    """Sum ``A^i Q (A^T)^i`` over all ``i``."""

    def is_unfinished(carry: tuple[Array, Array, Array]) -> Any:
        power, _, steps = carry
        return (np.max(np.abs(power)) > 1e-9) & (steps < 60)

    def double(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        power, total, steps = carry
        return power @ power, total + power @ total @ power.T, steps + 1

    return ft.lax.while_loop(is_unfinished, double, (transition, shocks, 0))[1]


@stationary_covariance.defjvp
def _stationary_covariance_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """``dP = A dP A^T + (dA P A^T + A P dA^T + dQ)``: implicit function theorem."""
    (a, q), (a_dot, q_dot) = primals, tangents
    p = stationary_covariance(a, q)
    moved = a_dot @ p @ a.T
    return p, stationary_covariance(a, moved + moved.T + q_dot)


def state_space(theta: Array) -> StateSpace:
    """Build the model from its parameters ``f64[p]``."""
    values = natural(theta)
    noise, (shock, damping, period) = values[0], values[1:].reshape(3, -1)
    k = len(shock)
    m = 3 + 2 * k
    radius = np.concatenate([np.ones(1), damping])
    angle = 2 * np.pi / np.concatenate([np.full(1, YEAR), period])
    along = np.concatenate([np.ones(1), np.repeat(radius * np.cos(angle), 2)])
    across = np.concatenate([np.zeros(1), np.repeat(radius * np.sin(angle), 2)])
    is_first = np.arange(m) % 2  # of the two states of a cycle
    turn = np.diag(is_first[:-1], 1)
    transition = np.eye(m) * along + (turn - turn.T) * across
    moving = np.eye(m)[:, 3:]  # level and annual cycle are unknown but do not change
    shock_factor = moving * np.repeat(shock, 2)
    cycles = stationary_covariance(transition[3:, 3:], np.eye(2 * k) * np.repeat(shock, 2) ** 2)
    known = np.diag(np.where(np.arange(m) < 3, PRIOR_DEVIATION**2, 0.0))
    return StateSpace(
        transition,
        shock_factor,
        np.linalg.cholesky(known + moving @ cycles @ moving.T),
        is_first + np.eye(m)[0],
        noise**2,
    )


def log_density(surprise: Array, variance: Array) -> Array:
    """Return the logarithm of the normal density."""
    return -0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)


def shifts(model: StateSpace, shocks: Array) -> Array:
    """Return what standard normal shocks ``f64[m + (n-1) 2k]`` add to the states, ``f64[n, m]``.

    The first ``m`` are the deviation of the first state from its mean.
    """
    m, width = model.shock_factor.shape
    first = model.initial_factor @ shocks[:m]
    later = shocks[m:].reshape(-1, width) @ model.shock_factor.T
    return np.concatenate([first[None], later])


def kalman_filter(theta: Array, y: Array, weights: Array, shocks: Array | None = None) -> Filtered:
    """Predict each month from the months before.

    Args:
      theta: parameters, ``f64[p]``.
      y: observations, ``f64[n]``.
      weights: 1 where ``y`` was observed, 0 where it is to be ignored, ``f64[n]``.
      shocks: known offsets of the standard normal shocks, as for :func:`shifts`; none by default.
    """
    model = state_space(theta)
    h, transition = model.observation, model.transition
    spread = model.shock_factor @ model.shock_factor.T

    def step(carry: tuple[Array, Array], month: tuple[Array, ...]) -> tuple[Any, Filtered]:
        (mean, covariance), (observed, weight, shift) = carry, month
        mean = mean + shift
        shared = covariance @ h
        predicted, variance = h @ mean, h @ shared + model.noise
        surprise = observed - predicted
        gain = weight / variance * shared
        mean = mean + gain * surprise
        covariance = covariance - gain[:, None] * shared
        ahead = transition @ mean, transition @ covariance @ transition.T + spread
        return ahead, Filtered(weight * log_density(surprise, variance), predicted, variance)

    m = len(h)
    offsets = np.zeros((len(y), m)) if shocks is None else shifts(model, shocks)
    start = np.zeros(m), model.initial_factor @ model.initial_factor.T
    return ft.lax.scan(step, start, (y, weights, offsets))[1]


def loss(theta: Array, y: Array, weights: Array) -> Array:
    """Return the negative log-likelihood of the months with weight 1."""
    return -np.sum(kalman_filter(theta, y, weights).log_density)


def components(theta: Array, shocks: Array) -> Array:
    """Return annual cycle with level, then each cycle, as the shocks make them: ``f64[n, 1 + k]``."""
    model = state_space(theta)
    m = len(model.observation)
    part = np.maximum(np.arange(m) - 1, 0) // 2  # which component a state belongs to
    parts = np.where(part == np.arange(1 + (m - 3) // 2)[:, None], model.observation, 0.0)

    def step(state: Array, shift: Array) -> tuple[Array, Array]:
        state = state + shift
        return model.transition @ state, parts @ state

    return ft.lax.scan(step, np.zeros(m), shifts(model, shocks))[1]
