"""Log-likelihood of a diagonal Gaussian mixture, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient, primal, take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

POINTS = 10_000
COMPONENTS = 10
DIMENSIONS = 4
PARAMETERS = ("logits", "means", "log_scales")


def log_likelihood(ops: Ops, logits: Any, means: Any, log_scales: Any, points: Any) -> Any:
    """Return the log-likelihood of ``points`` without its constant."""
    xp = ops.xp
    z = (points[:, None, :] - means) * xp.exp(-log_scales)
    log_weights = logits - ops.logsumexp(logits, 0) - xp.sum(log_scales, 1)
    return xp.sum(ops.logsumexp(log_weights - 0.5 * xp.sum(z**2, 2), 1))


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return parameters of 10 components in 4 dimensions and points ``f64[10000, 4]``."""
    centres = 3.0 * rng.normal(size=(COMPONENTS, DIMENSIONS))
    members = rng.integers(COMPONENTS, size=POINTS)
    return {
        "logits": rng.normal(size=COMPONENTS),
        "means": centres + 0.5 * rng.normal(size=centres.shape),
        "log_scales": 0.2 * rng.normal(size=centres.shape),
        "points": centres[members] + rng.normal(size=(POINTS, DIMENSIONS)),
    }


def _by_hand(kernel: str) -> Callable[[Inputs], Callable[[], Any]]:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from tests.benchmarks.hand import gmm

        return partial(getattr(gmm, kernel), *take(inputs, (*PARAMETERS, "points")))

    return build


WORKLOADS = (
    Workload(
        name="gmm_primal",
        description="log-likelihood of a Gaussian mixture, 10,000 points, 10 components, 4-d",
        make_inputs=make_inputs,
        contenders=(
            *primal(log_likelihood, (*PARAMETERS, "points")),
            Contender("numba", "hand", _by_hand("log_likelihood")),
        ),
        rtol=1e-11,
    ),
    Workload(
        name="gmm_grad",
        description="gradient of the same log-likelihood in weights, means and scales",
        make_inputs=make_inputs,
        contenders=(
            *gradient(log_likelihood, PARAMETERS, ("points",)),
            Contender("numba", "hand", _by_hand("gradient")),
        ),
        rtol=1e-10,
    ),
)
