"""An LSTM over 100 steps in float32: gradient of a regression loss in all weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient
from tests.benchmarks.record import Workload

STEPS = 100
BATCH = 16
FEATURES = 32
HIDDEN = 64
PARAMETERS = ("input_weights", "hidden_weights", "bias", "readout")
DATA = ("sequence", "targets", "zeros")


def loss(
    ops: Ops,
    input_weights: Any,
    hidden_weights: Any,
    bias: Any,
    readout: Any,
    sequence: Any,
    targets: Any,
    zeros: Any,
) -> Any:
    """Return the mean square error of a linear read-out of every hidden state."""
    xp = ops.xp

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-x))

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        hidden, cell = carry
        gates = x @ input_weights + hidden @ hidden_weights + bias
        forget = sigmoid(gates[:, :HIDDEN])
        admit = sigmoid(gates[:, HIDDEN : 2 * HIDDEN])
        emit = sigmoid(gates[:, 2 * HIDDEN : 3 * HIDDEN])
        cell = forget * cell + admit * xp.tanh(gates[:, 3 * HIDDEN :])
        hidden = emit * xp.tanh(cell)
        return (hidden, cell), hidden

    _, path = ops.scan(step, (zeros, zeros), sequence, STEPS)
    return xp.mean((path @ readout - targets) ** 2)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights, a sequence ``f32[100, 16, 32]`` and targets ``f32[100, 16]``."""
    arrays = {
        "input_weights": rng.normal(size=(FEATURES, 4 * HIDDEN)) / np.sqrt(FEATURES),
        "hidden_weights": rng.normal(size=(HIDDEN, 4 * HIDDEN)) / np.sqrt(HIDDEN),
        "bias": 0.1 * rng.normal(size=4 * HIDDEN),
        "readout": rng.normal(size=HIDDEN) / np.sqrt(HIDDEN),
        "sequence": rng.normal(size=(STEPS, BATCH, FEATURES)),
        "targets": rng.normal(size=(STEPS, BATCH)),
        "zeros": np.zeros((BATCH, HIDDEN)),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


WORKLOADS = (
    Workload(
        name="lstm_scan_grad",
        description="gradient of an LSTM by scan, 100 steps, batch 16, hidden 64, float32",
        make_inputs=make_inputs,
        contenders=gradient(loss, PARAMETERS, DATA),
        rtol=5e-5,
        dtype="float32",
    ),
)
