"""Derivatives of order 6 of a tanh network along a line.

``jit`` is Taylor mode (``jet``) in functrans and in jax. ``nested`` is ``jvp`` six times, of the
function of one number ``t -> f(x + t v)``. ``same`` is ``jvp`` six times in one direction, whose
terms a compiler can find to be equal: the best case of nesting.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import functrans_ops, on_jax, on_numpy, then_jit
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.derive import Ops, Transform

SIZES = (32, 128, 128, 8)
POINTS = 64
LAYERS = len(SIZES) - 1
NAMES = ("x", "direction", *(f"{kind}{i}" for i in range(LAYERS) for kind in ("weight", "bias")))
ORDER = 6


def network(ops: Ops, x: Any, *weights: Any) -> Any:
    """Return the outputs of the network at points ``x[64, 32]``."""
    for i in range(LAYERS - 1):
        x = ops.xp.tanh(x @ weights[2 * i] + weights[2 * i + 1])
    return x @ weights[-2] + weights[-1]


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return points, a direction for each, and weights of unit gain."""
    inputs = {name: rng.normal(size=(POINTS, SIZES[0])) for name in ("x", "direction")}
    for i, (rows, columns) in enumerate(pairwise(SIZES)):
        inputs[f"weight{i}"] = rng.normal(size=(rows, columns)) / np.sqrt(rows)
        inputs[f"bias{i}"] = 0.1 * rng.normal(size=columns)
    return inputs


def taylor(module: str, place: str) -> Transform:
    """Turn ``f(x, *constants)`` into ``(x, v, *constants) -> sixth derivative along v``."""

    def transform(fun: Callable[..., Any]) -> Callable[..., Any]:
        jet = importlib.import_module(module).jet
        xp = importlib.import_module(f"{place}.numpy")

        def derivative(x: Any, v: Any, *constants: Any) -> Any:
            series = [v, *[xp.zeros_like(v)] * (ORDER - 1)]
            return jet(lambda y: fun(y, *constants), (x,), (series,))[1][-1]

        return derivative

    return transform


def nested(module: str) -> Transform:
    """The same by ``jvp`` of ``jvp``, of a function of one number."""

    def transform(fun: Callable[..., Any]) -> Callable[..., Any]:
        jvp = importlib.import_module(module).jvp

        def derivative(x: Any, v: Any, *constants: Any) -> Any:
            def along(t: Any) -> Any:
                return fun(x + t * v, *constants)

            for _ in range(ORDER):
                along = _pushed(jvp, along, 1.0)
            return along(0.0)

        return derivative

    return transform


def same_direction(module: str) -> Transform:
    """The same by ``jvp`` of ``jvp``, of the function itself."""

    def transform(fun: Callable[..., Any]) -> Callable[..., Any]:
        jvp = importlib.import_module(module).jvp

        def derivative(x: Any, v: Any, *constants: Any) -> Any:
            def along(y: Any) -> Any:
                return fun(y, *constants)

            for _ in range(ORDER):
                along = _pushed(jvp, along, v)
            return along(x)

        return derivative

    return transform


def _pushed(jvp: Callable[..., Any], fun: Callable[..., Any], v: Any) -> Callable[..., Any]:
    return lambda y: jvp(fun, (y,), (v,))[1]


def _functrans(variant: str, transform: Transform) -> Contender:
    return Contender("functrans", variant, on_numpy(transform, functrans_ops, network, NAMES))


def _jax(variant: str, transform: Transform) -> Contender:
    return Contender("jax", variant, on_jax(then_jit(transform, "jax"), network, NAMES))


_JET = taylor("functrans", "functrans")

WORKLOADS = (
    Workload(
        name="jet_mlp",
        description="sixth derivative of a tanh network 32-128-128-8 along lines, 64 points",
        make_inputs=make_inputs,
        contenders=(
            _functrans("eager", _JET),
            _functrans("jit", then_jit(_JET, "functrans")),
            _functrans("nested", then_jit(nested("functrans"), "functrans")),
            _functrans("same", then_jit(same_direction("functrans"), "functrans")),
            _jax("jit", taylor("jax.experimental.jet", "jax")),
            _jax("nested", nested("jax")),
            _jax("same", same_direction("jax")),
        ),
        rtol=1e-9,
    ),
)
