"""Logistic regression: Hessian and Hessian-vector product of the regularised loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.curvature import hessian, hvp
from tests.benchmarks.derive import Ops
from tests.benchmarks.record import Workload

SAMPLES = 10_000
FEATURES = 50


def loss(ops: Ops, weights: Any, features: Any, labels: Any) -> Any:
    """Return the mean of ``log(1 + exp(-label margin))`` plus a ridge term; labels are +-1.

    Margins are moderate, so the plain formula is safe; it is the one all libraries share.
    """
    xp = ops.xp
    margins = labels * (features @ weights)
    return xp.mean(xp.log1p(xp.exp(-margins))) + 0.005 * xp.sum(weights**2)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return features ``f64[10000, 50]``, labels, weights and a direction ``f64[50]``."""
    features = rng.normal(size=(SAMPLES, FEATURES))
    truth = rng.normal(size=FEATURES)
    labels = np.where(features @ truth + rng.normal(size=SAMPLES) > 0.0, 1.0, -1.0)
    return {
        "features": features,
        "labels": labels,
        "weights": 0.3 * truth + 0.1 * rng.normal(size=FEATURES),
        "direction": rng.normal(size=FEATURES),
    }


DATA = ("features", "labels")

WORKLOADS = (
    Workload(
        name="logistic_hessian",
        description="Hessian of a logistic regression loss, 10,000 samples, 50 features",
        make_inputs=make_inputs,
        contenders=hessian(loss, "weights", DATA),
        rtol=1e-11,
    ),
    Workload(
        name="logistic_hvp",
        description="Hessian-vector product of the same loss",
        make_inputs=make_inputs,
        contenders=hvp(loss, "weights", "direction", DATA),
        rtol=1e-11,
    ),
)
