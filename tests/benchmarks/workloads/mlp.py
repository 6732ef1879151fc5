"""A three-layer perceptron in float32: gradient of the cross entropy in all parameters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient
from tests.benchmarks.record import Workload

BATCH = 128
WIDTHS = (784, 256, 128, 10)
PARAMETERS = ("w1", "b1", "w2", "b2", "w3", "b3")


def loss(
    ops: Ops, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, images: Any, targets: Any
) -> Any:
    """Return the mean cross entropy of ``images`` against one-hot ``targets``."""
    xp = ops.xp
    hidden = xp.tanh(images @ w1 + b1)
    hidden = xp.tanh(hidden @ w2 + b2)
    logits = hidden @ w3 + b3
    return xp.mean(ops.logsumexp(logits, 1) - xp.sum(logits * targets, 1))


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return parameters, images ``f32[128, 784]`` and one-hot targets ``f32[128, 10]``."""
    arrays = {
        "images": rng.uniform(size=(BATCH, WIDTHS[0])),
        "targets": np.eye(WIDTHS[-1])[rng.integers(WIDTHS[-1], size=BATCH)],
    }
    for layer, (fan_in, fan_out) in enumerate(pairwise(WIDTHS), 1):
        arrays[f"w{layer}"] = rng.normal(size=(fan_in, fan_out)) / np.sqrt(fan_in)
        arrays[f"b{layer}"] = 0.1 * rng.normal(size=fan_out)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


WORKLOADS = (
    Workload(
        name="mlp_grad",
        description="gradient of a 784-256-128-10 perceptron, batch 128, float32",
        make_inputs=make_inputs,
        contenders=gradient(loss, PARAMETERS, ("images", "targets")),
        rtol=2e-5,
        dtype="float32",
    ),
)
