"""The Rosenbrock function: call overhead with 10 elements, memory traffic with a million."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.curvature import hessian
from tests.benchmarks.derive import Ops, gradient
from tests.benchmarks.record import Workload

SMALL = 10
LARGE = 1_000_000


def rosenbrock(_ops: Ops, x: Any) -> Any:
    """Return ``sum(100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2)``."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def small_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[10]``."""
    return {"x": rng.normal(size=SMALL)}


def large_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[1000000]``."""
    return {"x": rng.normal(size=LARGE)}


WORKLOADS = (
    Workload(
        name="rosenbrock10_grad",
        description="gradient of the Rosenbrock function, 10 elements",
        make_inputs=small_inputs,
        contenders=gradient(rosenbrock, ("x",)),
        rtol=1e-12,
    ),
    Workload(
        name="rosenbrock10_hessian",
        description="Hessian of the Rosenbrock function, 10 elements",
        make_inputs=small_inputs,
        contenders=hessian(rosenbrock, "x"),
        rtol=1e-12,
    ),
    Workload(
        name="rosenbrock1e6_grad",
        description="gradient of the Rosenbrock function, 1,000,000 elements",
        make_inputs=large_inputs,
        contenders=gradient(rosenbrock, ("x",)),
        rtol=1e-12,
    ),
)
