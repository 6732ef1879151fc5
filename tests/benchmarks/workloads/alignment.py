"""A function of numba as a kernel: local alignment of proteins, called directly and from programs.

The kernels are those of ``examples/alignment.py``; contenders called ``hand`` call them as numba's
own functions, in a loop of Python where there are several pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Build, Inputs

PENALTIES = 4.0, 0.4
PAIRS = 8


def inputs_of(*lead: int) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    """Scores ``f64[*lead, 150, 150]`` of residues that are drawn at random."""

    def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"scores": rng.normal(-0.3, 1.0, size=(*lead, 150, 150))}

    return make_inputs


def _hand(name: str, is_stack: bool = False) -> Build:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from tests.benchmarks.hand import alignment

        function, scores = getattr(alignment, name), inputs["scores"]
        if not is_stack:
            return lambda: function(scores, *PENALTIES)
        return lambda: np.stack([function(one, *PENALTIES) for one in scores])

    return build


def _functrans(name: str, transform: Callable[[Any, Any], Any]) -> Build:
    """A function of the example, of the scores alone, as ``transform(functrans, function)``."""

    def build(inputs: Inputs) -> Callable[[], Any]:
        import functrans as ft
        from tests.benchmarks.hand.alignment import example

        penalties = np.array(PENALTIES)
        functions = {
            "table": lambda scores: example.filled(scores, *PENALTIES),
            "gradient": ft.grad(lambda scores: example.log_partition(scores, penalties)),
        }
        function, scores = transform(ft, functions[name]), inputs["scores"]
        return lambda: function(scores)

    return build


def _scanned(ft: Any, function: Callable[..., Any]) -> Any:
    return ft.jit(lambda stack: ft.lax.scan(lambda c, one: (c, function(one)), 0.0, stack)[1])


def _one(name: str) -> Workload:
    return Workload(
        name=f"alignment_{name}",
        description=f"{name} of a local alignment, 150 x 150 cells, by numba and as a kernel",
        make_inputs=inputs_of(),
        contenders=(
            Contender("functrans", "eager", _functrans(name, lambda ft, fun: fun)),
            Contender("functrans", "jit", _functrans(name, lambda ft, fun: ft.jit(fun))),
            Contender("numba", "hand", _hand(name)),
        ),
        rtol=1e-11,
    )


def _several(name: str, way: str, transform: Callable[[Any, Any], Any]) -> Workload:
    return Workload(
        name=f"alignment_{name}_{way}",
        description=f"{name} of {PAIRS} local alignments, 150 x 150 cells, in {way}",
        make_inputs=inputs_of(PAIRS),
        contenders=(
            Contender("functrans", "jit", _functrans(name, transform)),
            Contender("numba", "hand", _hand(name, is_stack=True)),
        ),
        rtol=1e-11,
    )


WORKLOADS = (
    _one("table"),
    _one("gradient"),
    _several("table", "vmap", lambda ft, fun: ft.jit(ft.vmap(fun))),
    _several("gradient", "vmap", lambda ft, fun: ft.jit(ft.vmap(fun))),
    _several("table", "scan", _scanned),
    _several("gradient", "scan", _scanned),
)
