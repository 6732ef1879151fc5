"""Laplacian of a tanh network with 150 inputs: a wave function of 50 electrons.

``jit`` of functrans is ``functrans.laplacian``. ``hvps`` is the trace of the Hessian by one batch
of Hessian-vector products, as one writes it without a forward Laplacian; so are the contenders of
jax.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import functrans_ops, functrans_pair, on_jax, on_numpy, then_jit
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.derive import Ops, Transform

SIZES = (150, 256, 256, 256, 1)
LAYERS = len(SIZES) - 1
WEIGHTS = tuple(f"{kind}{i}" for i in range(LAYERS) for kind in ("weight", "bias"))
NAMES = ("x", *WEIGHTS)


def network(ops: Ops, x: Any, *weights: Any) -> Any:
    """Return the one output of the network at a point ``x[150]``."""
    for i in range(LAYERS - 1):
        x = ops.xp.tanh(x @ weights[2 * i] + weights[2 * i + 1])
    return (x @ weights[-2] + weights[-1])[0]


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a point and weights of unit gain."""
    inputs = {"x": rng.normal(size=SIZES[0])}
    for i, (rows, columns) in enumerate(pairwise(SIZES)):
        inputs[f"weight{i}"] = rng.normal(size=(rows, columns)) / np.sqrt(rows)
        inputs[f"bias{i}"] = 0.1 * rng.normal(size=columns)
    return inputs


def trace_of_products(module: str) -> Transform:
    """Turn ``f(x, *constants)`` into the trace of its Hessian in ``x``."""

    def transform(fun: Callable[..., Any]) -> Callable[..., Any]:
        library = importlib.import_module(module)
        xp = importlib.import_module(f"{module}.numpy")

        def trace(x: Any, *constants: Any) -> Any:
            gradient = library.grad(lambda y: fun(y, *constants))

            def product(v: Any) -> Any:
                return library.jvp(gradient, (x,), (v,))[1]

            return xp.trace(library.vmap(product)(xp.eye(SIZES[0])))

        return trace

    return transform


def forward(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``functrans.laplacian``."""
    laplacian: Callable[..., Any] = importlib.import_module("functrans").laplacian(fun)
    return laplacian


_BY_PRODUCTS = then_jit(trace_of_products("functrans"), "functrans")

WORKLOADS = (
    Workload(
        name="laplacian_mlp",
        description="Laplacian of a tanh network 150-256-256-256-1, one point",
        make_inputs=make_inputs,
        contenders=(
            *functrans_pair(forward, network, NAMES),
            Contender(
                "functrans",
                "hvps",
                on_numpy(_BY_PRODUCTS, functrans_ops, network, NAMES),
            ),
            Contender(
                "jax", "jit", on_jax(then_jit(trace_of_products("jax"), "jax"), network, NAMES)
            ),
        ),
        rtol=1e-9,
    ),
)
