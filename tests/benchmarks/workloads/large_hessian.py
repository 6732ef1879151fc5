"""Dense Hessian of a network with 2,031 parameters, in chunks of columns.

functrans keeps within 200 MB (``memory_bytes``); jax and torch evaluate all columns at once.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import (
    Ops,
    functrans_ops,
    jax_pair,
    method,
    on_numpy,
    tensors,
    torch_ops,
)
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

SIZES = (20, 35, 35, 1)
SAMPLES = 300
PARAMETERS = sum(a * b + b for a, b in pairwise(SIZES))
NAMES = ("params", "features", "targets")
BUDGET_BYTES = 200_000_000


def loss(ops: Ops, params: Any, features: Any, targets: Any) -> Any:
    """Return the mean squared error of a tanh network of flat parameters."""
    h, start = features, 0
    for i, (rows, columns) in enumerate(pairwise(SIZES)):
        end = start + rows * columns
        h = h @ params[start:end].reshape(rows, columns) + params[end : end + columns]
        start = end + columns
        if i < len(SIZES) - 2:
            h = ops.xp.tanh(h)
    return ops.xp.mean((h[:, 0] - targets) ** 2)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return features ``f64[300, 20]``, targets and parameters."""
    return {
        "features": rng.normal(size=(SAMPLES, SIZES[0])),
        "targets": rng.normal(size=SAMPLES),
        "params": 0.2 * rng.normal(size=PARAMETERS),
    }


def _torch(inputs: Inputs) -> Any:
    import torch

    ops = torch_ops()
    arrays = tensors(inputs, NAMES)
    transformed = torch.func.hessian(lambda *args: loss(ops, *args))
    return lambda: transformed(*arrays)


WORKLOADS = (
    Workload(
        name="large_hessian",
        description="Hessian of a network with 2,031 parameters, 300 samples",
        make_inputs=make_inputs,
        contenders=(
            Contender(
                "functrans",
                "eager",
                on_numpy(
                    method("functrans", "hessian", memory_bytes=BUDGET_BYTES),
                    functrans_ops,
                    loss,
                    NAMES,
                ),
            ),
            Contender("torch", "func", _torch),
            jax_pair(method("jax", "hessian"), loss, NAMES)[1],
        ),
        rtol=1e-9,
    ),
)
