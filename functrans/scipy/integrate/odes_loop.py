"""Adaptive integration: the loop over steps, its controller, and its derivatives.

Here: ``integrate``, the solution of an initial value problem at given times. Not here: the steps
(``scipy.integrate.odes_methods``), what users call (``scipy.integrate.odes``).

The derivative is that of the discrete solution: of the formulas that computed the states, for the
step sizes that were chosen. The choice itself (error estimate, acceptance, next size) counts as
constant; the first and the last time do not. An attempt that was rejected has no part in it: its
linear part is a branch that is not taken, so that infinities in it stay in it.

Steps are a ``while_loop`` between two output times, output times a ``scan``. Reverse mode keeps the
state at each output time, and between two of them a bounded number of states
(``checkpoint_policies.binomial``).

Layer: ``scipy``. Reference: Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I,
2nd ed. (1993), II.4 (first step) and IV.2 in volume II (controller with memory); Eberhard &
Bischof, Automatic differentiation of numerical integration algorithms, Mathematics of Computation
68 (1999), 717-731.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import functrans.numpy as fnp
from functrans.control.binomial import Binomial
from functrans.control.branches import cond
from functrans.control.checkpoint import checkpoint
from functrans.control.custom_rules import custom_jvp, stop_gradient
from functrans.control.scanning import scan, while_loop
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.records import dataclass
from functrans.scipy.integrate.odes_methods import (
    Method,
    Slope,
    Tolerances,
    interpolate,
    mean_square,
)
from functrans.transforms.forward import linearize

SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 10.0
MEMORY = 0.04
"""Exponent of the last error in the choice of the next step size (Hairer's beta)."""

RUNNING, TOO_SMALL, TOO_MANY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about an integration.

    Attributes:
      tolerances: of one step.
      max_step: longest step.
      first_step: length of the first attempt; ``None`` to choose it.
      max_steps: attempts between two output times; ``None`` for no bound.
      checkpoints: states kept between two output times in reverse mode; ``None`` for all.
    """

    tolerances: Tolerances
    max_step: Any
    first_step: Any
    max_steps: int | None
    checkpoints: int | None


def first_step_size(
    slope: Slope,
    t: Any,
    y: Any,
    f: Any,
    bound: Any,
    sign: Any,
    order: int,
    options: Options,
) -> Array:
    """A first step size from the sizes of the solution, its slope and its curvature."""
    scale = options.tolerances.atol + fnp.abs(y) * options.tolerances.rtol
    size = fnp.sqrt(mean_square(y / scale))
    rate = fnp.sqrt(mean_square(f / scale))
    is_tiny = (size < 1e-5) | (rate < 1e-5)
    guess = fnp.where(is_tiny, 1e-6, 0.01 * size / fnp.where(is_tiny, 1.0, rate))
    guess = fnp.minimum(guess, fnp.abs(bound - t))
    bend = slope(t + sign * guess, y + sign * guess * f) - f
    curvature = fnp.sqrt(mean_square(bend / scale)) / fnp.where(guess > 0, guess, 1.0)
    larger = fnp.maximum(rate, curvature)
    by_slope = (0.01 / fnp.where(larger > 0, larger, 1.0)) ** (1.0 / (order + 1))
    other = fnp.where(larger <= 1e-15, fnp.maximum(1e-6, guess * 1e-3), by_slope)
    chosen = fnp.minimum(fnp.minimum(100.0 * guess, other), fnp.abs(bound - t))
    return fnp.where(fnp.isfinite(chosen), chosen, 1e-3 * fnp.abs(bound - t))


def integrate(
    method: Method,
    slope: Any,
    y: Any,
    start: Any,
    times: Any,
    bound: Any,
    params: tuple[Any, ...],
    options: Options,
    n_rows: int | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Solve an initial value problem.

    Args:
      method: the formulas of a step.
      slope: ``(t, y, *params) -> dy/dt``.
      y: state at ``start``, ``f64[n]``.
      start: first time.
      times: output times, in the order of integration, ``f64[m]``; there is at least one step if
        the interval has a length.
      bound: last time, where the last step ends.
      params: floating arrays that ``slope`` depends on.
      options: tolerances and bounds.
      n_rows: to record so many accepted steps in place of output times; the last one is repeated
        where there are fewer.

    Returns:
      States ``f64[m, n]`` (NaN where they were not reached or are out of order), the status,
      numbers of attempts and of accepted steps. Of recorded steps, in place of states: the time,
      the state, the time before, the size, the state before, and the vectors of the polynomial.
    """
    real = dtype_of(start)
    sign = stop_gradient(fnp.where(bound >= start, 1.0, -1.0).astype(real))
    smallest = 10 * float(np.finfo(real).eps)
    tiny = float(np.finfo(real).tiny)
    order = method.order

    def attempt(parts: Any, wants_dense: Any) -> tuple[Array, ...]:
        t, y, f, h, own = parts
        return method.step(
            lambda t, y: slope(t, y, *own), t, y, h, f, options.tolerances, wants_dense
        )

    @custom_jvp
    def advance(
        now: Array, h: Array, own: ArrayLike, wants_dense: ArrayLike, t_after: Array
    ) -> tuple[Any, Any]:
        t, y, f, *_ = now
        *new, error = attempt((t, y, f, h, own), wants_dense)
        return _chosen(now, h, new, t_after, error), error

    def advance_jvp(primals: Array, tangents: Array) -> Any:
        now, h, own, wants_dense, t_after = primals
        now_dot, h_dot, own_dot, _, after_dot = tangents
        t, y, f, *_ = now
        (*new, error), push = linearize(
            lambda parts: attempt(parts, wants_dense), (t, y, f, h, own)
        )

        def taken() -> tuple[Any, Any, Any, Any, Any, Any, Any]:
            t_dot, y_dot, f_dot, *_ = now_dot
            y_after, f_after, dense, _ = push((t_dot, y_dot, f_dot, h_dot, own_dot))
            return (after_dot, y_after, f_after, t_dot, h_dot, y_dot, dense)

        dots = cond(error < 1, taken, lambda: now_dot)
        return (_chosen(now, h, new, t_after, error), error), (dots, fnp.zeros_like(error))

    advance.defjvp(advance_jvp)

    def step(state: Array, target: Any) -> Any:
        now, size, memory, was_rejected, status, count, accepted = state
        t = now[0]
        left = bound - t
        is_last = stop_gradient(size * 1.0000001 >= fnp.abs(left))
        h = fnp.where(is_last, left, sign * size)
        t_after = fnp.where(is_last, bound, t + h)
        wants_dense = stop_gradient(sign * (t_after - target) >= 0)
        now, error = advance(now, h, params, wants_dense, t_after)
        error = stop_gradient(error)
        is_accepted = error < 1
        positive = fnp.maximum(error, 1e-10)
        exponent = 1.0 / (order + 1)
        grown = SAFETY * positive ** (0.75 * MEMORY - exponent) * memory**MEMORY
        limit = fnp.where(was_rejected, 1.0, LARGEST)
        grown = fnp.minimum(fnp.maximum(grown, SMALLEST), limit)
        shrunk = fnp.maximum(SAFETY * fnp.minimum(positive, 1e30) ** -exponent, SMALLEST)
        factor = fnp.where(is_accepted, grown, shrunk)
        used = fnp.abs(stop_gradient(h))
        size = used * factor
        memory = fnp.where(is_accepted, fnp.maximum(positive, 1e-4), memory).astype(real)
        least = fnp.maximum(smallest * fnp.abs(stop_gradient(now[0])), tiny)
        is_stuck = ~is_accepted & ~(size >= least)
        # No step is so short that it does not move the time.
        size = fnp.minimum(fnp.maximum(size, least), options.max_step).astype(real)
        status = fnp.where(is_stuck, TOO_SMALL, status)
        if options.max_steps is not None:
            is_over = (count[1] + 1 >= options.max_steps) & (sign * (now[0] - target) < 0)
            status = fnp.where(~is_stuck & is_over, TOO_MANY, status)
        accepted = accepted + is_accepted.astype(np.int64)
        return now, size, memory, ~is_accepted, status, count + 1, accepted

    f = slope(start, y, *params)
    t, y_fixed, f_fixed, end = map(stop_gradient, (start, y, f, bound))
    if options.first_step is None:
        own = tuple(map(stop_gradient, params))
        size = first_step_size(
            lambda t, y: slope(t, y, *own), t, y_fixed, f_fixed, end, sign, order, options
        )
    else:
        size = fnp.minimum(options.first_step, fnp.abs(end - t))
    size = stop_gradient(fnp.minimum(size, options.max_step)).astype(real)
    # Before the first step the solution is a straight line, so that a time that is also the first
    # one has its derivative.
    line = fnp.where(fnp.isfinite(f), f, 0)[None].astype(dtype_of(y))
    dense = fnp.concatenate([line, fnp.zeros((method.n_dense - 1, *shape_of(y)), dtype_of(y))])
    now = (start, y, f, start, fnp.ones_like(start), y, dense)
    policy = None if options.checkpoints is None else Binomial(options.checkpoints)
    state = (now, size, fnp.full((), 1e-4, real), np.False_, np.int64(RUNNING),
             np.zeros(2, np.int64), np.int64(0))  # fmt: skip

    def output(state: Any, target: Array) -> Any:
        def is_before(state: Array) -> Array:
            t = state[0][0]
            is_wanted = (sign * (t - target) < 0) | (state[6] == 0)
            return is_wanted & (sign * (t - bound) < 0) & (state[4] == RUNNING)

        count = state[5] * np.array([1, 0])
        state = (*state[:5], count, state[6])
        state = while_loop(is_before, lambda s: step(s, target), state, checkpoint=policy)
        _, _, _, t_old, h_old, y_old, dense = state[0]
        is_reached = sign * (stop_gradient(state[0][0]) - target) >= 0
        is_there = stop_gradient(is_reached & (sign * (target - t_old) >= 0))
        x = fnp.where(is_there, (target - t_old) / h_old, 0)
        value = interpolate(y_old, dense, np.bool_(method.is_nested), x)
        return state, fnp.where(is_there, value, np.nan)

    def record(state: Any, _: None) -> Any:
        before = state[6]

        def is_same(state: Any) -> Any:
            is_left = (sign * (state[0][0] - bound) < 0) & (state[4] == RUNNING)
            return (state[6] == before) & is_left

        state = while_loop(is_same, lambda s: step(s, s[0][0]), state)
        t, y, _, t_old, h_old, y_old, dense = state[0]
        return state, (t, y, t_old, h_old, y_old, dense)

    if n_rows is None:
        state, values = scan(checkpoint(output), state, times)
    else:
        state, values = scan(checkpoint(record), state, None, n_rows)
    return values, state[4], state[5][0], state[6]


def _chosen(
    now: Array, h: ArrayLike, new: Any, t_after: ArrayLike, error: Array
) -> tuple[Array, ...]:
    """The state after an attempt: as before where it is rejected."""
    t, y, _, *_ = now
    after = (t_after, *new[:2], t, h, y, new[2])
    return tuple(fnp.where(error < 1, a, b) for a, b in zip(after, now, strict=True))
