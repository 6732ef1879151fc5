"""Matrix products: compiled, beside NumPy's call of OpenBLAS and jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.record import Contender, Workload
from tests.benchmarks.workloads.programs import Library, compiled

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs, MakeInputs

SIZES = (256, 512, 1024, 2048)
BATCH = 64
BATCHED_SIZES = (32, 64, 96, 128)


def product(_: Library) -> Callable[..., Any]:
    """``a @ b``."""
    return lambda a, b: a @ b


def by_numpy(inputs: Inputs) -> Callable[[], Any]:
    """Return ``np.matmul`` of the inputs, into new memory as the others."""
    a, b = inputs["a"], inputs["b"]
    return lambda: np.matmul(a, b)


def _operands(shape: tuple[int, ...], dtype: str) -> MakeInputs:
    return lambda rng: {name: rng.normal(size=shape).astype(dtype) for name in ("a", "b")}


def _workload(shape: tuple[int, ...], dtype: str) -> Workload:
    kind = {"float32": "f32", "float64": "f64"}[dtype]
    name = f"product_{'x'.join(map(str, shape[:-1]))}_{kind}"
    contenders = (*compiled(product, ("a", "b")), Contender("numpy", "eager", by_numpy))
    description = f"product of {' x '.join(map(str, shape))} arrays, {dtype}"
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    return Workload(
        name, description, _operands(shape, dtype), contenders, rtol=tolerance, dtype=dtype
    )


WORKLOADS = (
    *(_workload((n, n), dtype) for n in SIZES for dtype in ("float32", "float64")),
    *(_workload((BATCH, n, n), "float64") for n in BATCHED_SIZES),
)
