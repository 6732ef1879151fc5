"""All workloads, in the order of the reports.

To add one: write a module with a tuple ``WORKLOADS`` beside the others and put it in ``MODULES``.
"""

from __future__ import annotations

from tests.benchmarks.record import ProcessWorkload, Workload
from tests.benchmarks.workloads import (
    alignment,
    bundle_adjustment,
    diagonal_lstm,
    elementwise,
    expfit,
    gmm,
    hand_tracking,
    imperative,
    import_time,
    jet,
    laplacian,
    large_hessian,
    logistic,
    lstm,
    mlp,
    odes,
    pairwise,
    products,
    programs,
    rk4,
    rosenbrock,
    sin_call,
    sparse,
)

MODULES = (
    rosenbrock,
    elementwise,
    logistic,
    mlp,
    pairwise,
    expfit,
    rk4,
    odes,
    lstm,
    diagonal_lstm,
    gmm,
    hand_tracking,
    bundle_adjustment,
    imperative,
    laplacian,
    jet,
    large_hessian,
    sparse,
    alignment,
    programs,
    products,
    sin_call,
    import_time,
)

ALL: tuple[Workload | ProcessWorkload, ...] = tuple(
    workload for module in MODULES for workload in module.WORKLOADS
)


def find(name: str) -> Workload:
    """Return the workload called ``name``, one that has contenders."""
    return next(w for w in ALL if isinstance(w, Workload) and w.name == name)
