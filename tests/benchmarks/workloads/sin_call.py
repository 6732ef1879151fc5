"""Overhead of a plain call: ``sin`` of a 10-element array, nothing traced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import tensors
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

SIZE = 10


def _numpy(inputs: Inputs) -> Callable[[], Any]:
    return partial(np.sin, inputs["x"])


def _functrans(inputs: Inputs) -> Callable[[], Any]:
    import functrans.numpy as fnp

    return partial(fnp.sin, inputs["x"])


def _autograd(inputs: Inputs) -> Callable[[], Any]:
    import autograd.numpy as anp

    return partial(anp.sin, inputs["x"])


def _torch(inputs: Inputs) -> Callable[[], Any]:
    import torch

    return partial(torch.sin, *tensors(inputs, ("x",)))


def _jax(inputs: Inputs) -> Callable[[], Any]:
    import jax.numpy as jnp

    array = jnp.asarray(inputs["x"])
    return lambda: jnp.sin(array).block_until_ready()


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[10]``."""
    return {"x": rng.normal(size=SIZE)}


WORKLOADS = (
    Workload(
        name="sin_call",
        description="sin of a plain 10-element array, nothing differentiated",
        make_inputs=make_inputs,
        contenders=(
            Contender("functrans", "eager", _functrans),
            Contender("numpy", "eager", _numpy),
            Contender("autograd", "eager", _autograd),
            Contender("torch", "eager", _torch),
            Contender("jax", "eager", _jax),
        ),
        rtol=1e-14,
    ),
)
