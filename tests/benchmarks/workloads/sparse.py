"""Sparse Hessian of the chained Rosenbrock function, Jacobian of a reaction-diffusion model.

Every contender returns the stored entries only, in the order of its own storage (that of rows and
columns is the same for a symmetric matrix). CasADi evaluates into a buffer that was made before:
``vm`` is its own virtual machine on scalar expressions, ``mx`` the same on matrix expressions,
``gcc`` the C code that it generates of the scalar ones, compiled with ``-O3``.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Build, Inputs

VARIABLES = 10_000
CELLS = 200
"""Along each side of the grid; two chemicals in each cell."""


def rosenbrock(x: Any) -> Any:
    """Return ``sum(100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2)``."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1.0 - x[:-1]) ** 2).sum()


def gray_scott(x: Any) -> Any:
    """Return the rates of two chemicals on a periodic grid, from one vector to one vector."""
    u, v = x.reshape(2, CELLS, CELLS)

    def laplacian(a: Any) -> Any:
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    reaction = u * v * v
    first = 0.16 * laplacian(u) - reaction + 0.04 * (1 - u)
    second = 0.08 * laplacian(v) + reaction - 0.1 * v
    return np.stack([first, second]).reshape(-1)


def chain_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[10000]``."""
    return {"x": rng.normal(size=VARIABLES)}


def grid_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[80000]``."""
    return {"x": rng.uniform(size=2 * CELLS**2)}


def _values(name: str, fun: Callable[..., Any]) -> Build:
    """``values`` of a sparse function of functrans: the entries, one native call."""

    def build(inputs: Inputs) -> Callable[[], Any]:
        import functrans as ft

        sparse, x = getattr(ft, name)(fun), inputs["x"]
        return lambda: sparse.values(x)

    return build


def _analysis(inputs: Inputs) -> Callable[[], Any]:
    """Pattern and colouring of the Hessian, anew at every call; the pattern's rows."""
    import functrans as ft
    from functrans.sparse import color_pattern

    def run() -> Any:
        pattern = ft.sparsity_pattern(rosenbrock, inputs["x"], order=2)
        color_pattern(pattern, "star")
        return pattern.indices.astype(float)

    return run


def _chain_hessian(kind: str) -> Any:
    """CasADi's function of the Hessian of the chain."""
    import casadi

    x = getattr(casadi, kind).sym("x", VARIABLES)
    squares = casadi.sumsqr(x[1:] - x[:-1] ** 2)
    matrix, _ = casadi.hessian(100 * squares + casadi.sumsqr(1 - x[:-1]), x)
    return casadi.Function("chain", [x], [matrix])


def _buffered(function: Any, x: np.ndarray) -> Callable[[], Any]:
    """A call of a CasADi function on memory that both sides share."""
    buffer, run = function.buffer()
    out = np.zeros(function.nnz_out(0))
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(out))

    kept = (function, buffer, x)  # which hold the memory that the call works on

    def call() -> Any:
        run()
        return kept and out

    return call


def _casadi(kind: str) -> Build:
    return lambda inputs: _buffered(_chain_hessian(kind), inputs["x"])


def _casadi_gcc(inputs: Inputs) -> Callable[[], Any]:
    import casadi

    function = _chain_hessian("SX")
    directory = Path(tempfile.mkdtemp())
    generator = casadi.CodeGenerator("chain.c")
    generator.add(function)
    generator.generate(f"{directory}/")
    library = directory / "chain.so"
    command = ["gcc", "-O3", "-fPIC", "-shared", "-o", str(library), str(directory / "chain.c")]
    subprocess.run(command, check=True)
    return _buffered(casadi.external("chain", str(library)), inputs["x"])


WORKLOADS = (
    Workload(
        name="rosenbrock1e4_sparse_hessian",
        description="entries of the sparse Hessian of the Rosenbrock function, 10,000 elements",
        make_inputs=chain_inputs,
        contenders=(
            Contender("functrans", "jit", _values("sparse_hessian", rosenbrock)),
            Contender("casadi", "vm", _casadi("SX")),
            Contender("casadi", "mx", _casadi("MX")),
            Contender("casadi", "gcc", _casadi_gcc),
        ),
        rtol=1e-12,
        first_call_timeout_s=180.0,
    ),
    Workload(
        name="rosenbrock1e4_sparsity",
        description="pattern and coloring of that Hessian",
        make_inputs=chain_inputs,
        contenders=(Contender("functrans", "eager", _analysis),),
        rtol=0.0,
    ),
    Workload(
        name="gray_scott80000_sparse_jacobian",
        description="entries of the sparse Jacobian of a reaction-diffusion model, 80,000 elements",
        make_inputs=grid_inputs,
        contenders=(Contender("functrans", "jit", _values("sparse_jacobian", gray_scott)),),
        rtol=1e-12,
    ),
)
