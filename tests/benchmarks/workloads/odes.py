"""Gradients of a fit through adaptive solvers of the Lotka-Volterra equations.

21 output times, two periods, tolerances 1e-9. functrans differentiates the discrete solution by
default, and solves the adjoint equation on request; JAX's ``odeint`` does the latter. Both use
Dormand and Prince's formulas of order 5. The gradients agree to what the tolerances allow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

TOLERANCES = {"rtol": 1e-9, "atol": 1e-9}
NAMES = ("start", "rates", "times", "observed")


def fit_loss(
    xp: Any, odeint: Callable[..., Any], start: Any, rates: Any, times: Any, observed: Any
) -> Any:
    """Return the mean square distance of the logarithms of 21 states to those of ``observed``."""

    def slope(state: Any, _t: Any, p: Any) -> Any:
        x, y = state[0], state[1]
        return xp.stack([p[0] * x - p[1] * x * y, p[2] * x * y - p[3] * y])

    states = odeint(slope, start, times, rates, **TOLERANCES)
    return xp.mean((xp.log(states) - xp.log(observed)) ** 2)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``start: f64[2]``, ``rates: f64[4]``, ``times: f64[21]``, ``observed: f64[21, 2]``."""
    return {
        "start": np.array([34.0, 5.9]),
        "rates": np.array([0.55, 0.028, 0.024, 0.80]),
        "times": np.linspace(0.0, 20.0, 21),
        "observed": np.exp(3.0 + 0.5 * rng.normal(size=(21, 2))),
    }


def _functrans(adjoint: str, differentiate: bool) -> Callable[[Inputs], Callable[[], Any]]:
    def build(inputs: Inputs) -> Callable[[], Any]:
        import functrans as ft
        import functrans.numpy as fnp
        from functrans.scipy.integrate import odeint

        fun = partial(fit_loss, fnp, partial(odeint, adjoint=adjoint))
        chosen = ft.grad(fun, (0, 1)) if differentiate else fun
        return partial(ft.jit(chosen), *take(inputs, NAMES))

    return build


def _jax(differentiate: bool) -> Callable[[Inputs], Callable[[], Any]]:
    def build(inputs: Inputs) -> Callable[[], Any]:
        import jax
        import jax.numpy as jnp
        from jax.experimental.ode import odeint

        fun = partial(fit_loss, jnp, odeint)
        chosen = jax.jit(jax.grad(fun, (0, 1)) if differentiate else fun)
        arrays = [jnp.asarray(x) for x in take(inputs, NAMES)]
        return lambda: jax.block_until_ready(chosen(*arrays))

    return build


WORKLOADS = (
    Workload(
        name="odeint_primal",
        description="adaptive Lotka-Volterra solution at 21 times, tolerance 1e-9",
        make_inputs=make_inputs,
        contenders=(
            Contender("functrans", "jit", _functrans("discrete", False)),
            Contender("jax", "jit", _jax(False)),
        ),
        rtol=1e-6,
    ),
    Workload(
        name="odeint_grad",
        description="gradient through it, discrete against continuous adjoint, 6 unknowns",
        make_inputs=make_inputs,
        contenders=(
            Contender("functrans", "jit", _functrans("discrete", True)),
            Contender("functrans", "backsolve", _functrans("backsolve", True)),
            Contender("jax", "jit", _jax(True)),
        ),
        rtol=1e-5,
    ),
)
