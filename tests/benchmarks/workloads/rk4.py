"""Gradients through Runge-Kutta steps of the Lotka-Volterra equations.

Unrolled: 200 steps as straight-line scalar code, the same Python loop in every library (a test of
the cost per operation, and of compilers on long programs). Scan: 1000 steps on a state vector
with ``lax.scan`` where there is one and a Python loop where there is not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient, primal, take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

UNROLLED_STEPS = 200
UNROLLED_H = 0.05
SCAN_STEPS = 1000
SCAN_H = 0.01
UNKNOWNS = ("start", "parameters")


def _slopes(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    return a * x - b * x * y, c * x * y - d * y


def unrolled_loss(_ops: Ops, start: Any, parameters: Any) -> Any:
    """Return ``x^2 + y^2`` after 200 steps on scalars."""
    h = UNROLLED_H
    x, y = start[0], start[1]
    p = (parameters[0], parameters[1], parameters[2], parameters[3])
    for _ in range(UNROLLED_STEPS):
        k1x, k1y = _slopes(x, y, *p)
        k2x, k2y = _slopes(x + 0.5 * h * k1x, y + 0.5 * h * k1y, *p)
        k3x, k3y = _slopes(x + 0.5 * h * k2x, y + 0.5 * h * k2y, *p)
        k4x, k4y = _slopes(x + h * k3x, y + h * k3y, *p)
        x = x + h / 6.0 * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
        y = y + h / 6.0 * (k1y + 2.0 * k2y + 2.0 * k3y + k4y)
    return x * x + y * y


def scan_loss(ops: Ops, start: Any, parameters: Any, observed: Any) -> Any:
    """Return the mean square distance of 1000 states to ``observed``."""
    h = SCAN_H
    a, b, c, d = parameters[0], parameters[1], parameters[2], parameters[3]

    def slope(state: Any) -> Any:
        return ops.xp.stack(_slopes(state[0], state[1], a, b, c, d))

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        k1 = slope(state)
        k2 = slope(state + 0.5 * h * k1)
        k3 = slope(state + 0.5 * h * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return state, state

    _, path = ops.scan(step, start, None, SCAN_STEPS)
    return ops.xp.mean((path - observed) ** 2)


def unrolled_inputs(_rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``start: f64[2]`` and ``parameters: f64[4]``."""
    return {"start": np.array([1.0, 1.0]), "parameters": np.array([1.5, 1.0, 1.0, 3.0])}


def scan_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the same and ``observed: f64[1000, 2]``."""
    observed = 2.0 + 0.5 * rng.normal(size=(SCAN_STEPS, 2))
    return unrolled_inputs(rng) | {"observed": observed}


def _scan_by_hand(kernel: str) -> Callable[[Inputs], Callable[[], Any]]:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from tests.benchmarks.hand import lotka_volterra

        arrays = take(inputs, (*UNKNOWNS, "observed"))
        return partial(getattr(lotka_volterra, kernel), *arrays, SCAN_H)

    return build


def _unrolled_by_hand(inputs: Inputs) -> Callable[[], Any]:
    from tests.benchmarks.hand import lotka_volterra

    arrays = take(inputs, UNKNOWNS)
    return partial(lotka_volterra.final_gradient, *arrays, UNROLLED_H, UNROLLED_STEPS)


WORKLOADS = (
    Workload(
        name="rk4_unrolled_grad",
        description="gradient through 200 unrolled RK4 steps, scalar code, 6 unknowns",
        make_inputs=unrolled_inputs,
        contenders=(
            *gradient(unrolled_loss, UNKNOWNS),
            Contender("numba", "hand", _unrolled_by_hand),
        ),
        rtol=1e-10,
    ),
    Workload(
        name="rk4_scan_primal",
        description="1000 RK4 steps by scan, loss of a fit",
        make_inputs=scan_inputs,
        contenders=(
            *primal(scan_loss, (*UNKNOWNS, "observed")),
            Contender("numba", "hand", _scan_by_hand("fit_loss")),
        ),
        rtol=1e-11,
    ),
    Workload(
        name="rk4_scan_grad",
        description="gradient through 1000 RK4 steps by scan, 6 unknowns",
        make_inputs=scan_inputs,
        contenders=(
            *gradient(scan_loss, UNKNOWNS, ("observed",)),
            Contender("numba", "hand", _scan_by_hand("fit_gradient")),
        ),
        rtol=1e-10,
    ),
)
