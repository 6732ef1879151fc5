"""Energy of 512 Lennard-Jones particles over all pairs, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient, primal
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

SIDE = 8
PARTICLES = SIDE**3


def energy(ops: Ops, positions: Any, self_distance: Any) -> Any:
    """Return ``4 sum_{i<j} (r^-12 - r^-6)``.

    The identity matrix ``self_distance`` puts each particle at distance 1 from itself, where the
    pair energy and its gradient are exactly zero.
    """
    xp = ops.xp
    offsets = positions[:, None, :] - positions[None, :, :]
    r2 = xp.sum(offsets**2, 2) + self_distance
    q = 1.0 / (r2 * r2 * r2)
    return 2.0 * xp.sum(q * q - q)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return positions ``f64[512, 3]`` near a cubic lattice and the identity."""
    lattice = np.stack(np.meshgrid(*3 * [np.arange(SIDE)], indexing="ij"), axis=-1)
    positions = 1.2 * lattice.reshape(-1, 3) + 0.1 * rng.normal(size=(PARTICLES, 3))
    return {"positions": positions, "self_distance": np.eye(PARTICLES)}


def _by_hand(kernel: str) -> Callable[[Inputs], Callable[[], Any]]:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from tests.benchmarks.hand import pairwise

        return partial(getattr(pairwise, kernel), inputs["positions"])

    return build


WORKLOADS = (
    Workload(
        name="pairwise_primal",
        description="Lennard-Jones energy of 512 particles",
        make_inputs=make_inputs,
        contenders=(
            *primal(energy, ("positions", "self_distance")),
            Contender("numba", "hand", _by_hand("energy_full")),
            Contender("numba", "hand-half", _by_hand("energy_half")),
        ),
        rtol=1e-11,
    ),
    Workload(
        name="pairwise_grad",
        description="gradient of the Lennard-Jones energy of 512 particles",
        make_inputs=make_inputs,
        contenders=(
            *gradient(energy, ("positions",), ("self_distance",)),
            Contender("numba", "hand", _by_hand("gradient_full")),
            Contender("numba", "hand-half", _by_hand("gradient_half")),
        ),
        rtol=1e-11,
    ),
)
