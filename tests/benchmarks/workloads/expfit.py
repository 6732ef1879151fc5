"""Jacobian of a sum of three exponentials at many points, as a least-squares fit needs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.derive import Ops, jacfwd
from tests.benchmarks.record import Workload

POINTS = 10_000


def residuals(ops: Ops, p: Any, t: Any, y: Any) -> Any:
    """Return ``p0 exp(-p1 t) + p2 exp(-p3 t) + p4 exp(-p5 t) - y``."""
    exp = ops.xp.exp
    return p[0] * exp(-p[1] * t) + p[2] * exp(-p[3] * t) + p[4] * exp(-p[5] * t) - y


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return parameters ``f64[6]``, abscissae and observations ``f64[10000]``."""
    t = np.linspace(0.0, 3.0, POINTS)
    y = np.exp(-t) + 0.5 * np.exp(-3.0 * t) + 1.5 * np.exp(-5.0 * t)
    return {
        "p": np.array([1.1, 0.9, 0.6, 3.2, 1.4, 4.7]),
        "t": t,
        "y": y + 0.01 * rng.normal(size=POINTS),
    }


WORKLOADS = (
    Workload(
        name="expfit_jacobian",
        description="Jacobian of a sum of three exponentials, 10,000 points, 6 parameters",
        make_inputs=make_inputs,
        contenders=jacfwd(residuals, "p", ("t", "y")),
        rtol=1e-12,
    ),
)
