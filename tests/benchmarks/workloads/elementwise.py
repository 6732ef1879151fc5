"""Gradients of reductions of a million elements: transcendental functions and logsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient
from tests.benchmarks.record import Workload

SIZE = 1_000_000


def transcendental(ops: Ops, x: Any) -> Any:
    """Return ``sum(tanh(x) exp(-x^2) + sin(x))``."""
    xp = ops.xp
    return xp.sum(xp.tanh(x) * xp.exp(-(x**2)) + xp.sin(x))


def logsumexp(ops: Ops, x: Any) -> Any:
    """Return ``log(sum(exp(x)))`` by the library's own function."""
    return ops.logsumexp(x, 0)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[1000000]``."""
    return {"x": rng.normal(size=SIZE)}


WORKLOADS = (
    Workload(
        name="transcendental1e6_grad",
        description="gradient of sum(tanh(x) exp(-x^2) + sin(x)), 1,000,000 elements",
        make_inputs=make_inputs,
        contenders=gradient(transcendental, ("x",)),
        rtol=1e-12,
    ),
    Workload(
        name="logsumexp1e6_grad",
        description="gradient of logsumexp, 1,000,000 elements",
        make_inputs=make_inputs,
        contenders=gradient(logsumexp, ("x",)),
        rtol=1e-11,
    ),
)
