"""Programs by which compilers differ: Fourier transforms in loops, products, steps, scatters.

Compiled gradients of functrans and jax, each written once for both. ``particle`` is forward over
reverse through nested ``while`` loops after J. M. Siskind and B. A. Pearlmutter, *Using polyvariant
union-free flow analysis to compile a higher-order functional-programming language with a
first-class derivative operator to efficient Fortran-like code* (2008), with fixed charges.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Build, Inputs, MakeInputs

MODES = 512
SOLVER_STEPS = 50
SQUARE = 512
BATCH, SEQUENCE, WIDTH, HEADS = 8, 64, 128, 4
SMALL = (8, 17, 13, 1)
SMALL_PARAMETERS = sum(a * b + b for a, b in pairwise(SMALL))
STEPS = 300
LAYERS = 30
EDGES, NODES, FEATURES = 20_000, 4_000, 8
POINTS = 300


class Library:
    """``functrans`` or ``jax``: the same names in both."""

    def __init__(self, name: str) -> None:
        """Import what the programs use."""
        self.top: Any = importlib.import_module(name)
        self.xp: Any = importlib.import_module(f"{name}.numpy")
        self.lax: Any = importlib.import_module(f"{name}.lax")
        self.segment_sum: Any = importlib.import_module(f"{name}.ops").segment_sum
        place = "functrans.scipy.linalg" if name == "functrans" else "jax.scipy.linalg"
        self.linalg: Any = importlib.import_module(place)


Program = Callable[[Library], Callable[..., Any]]


def compiled(program: Program, names: tuple[str, ...]) -> tuple[Contender, Contender]:
    """``jit(program(library))`` of both libraries on the inputs ``names``."""

    def build(name: str) -> Build:
        def on(inputs: Inputs) -> Callable[[], Any]:
            library = Library(name)
            function = library.top.jit(program(library))
            if name == "functrans":
                arrays = take(inputs, names)
                return lambda: function(*arrays)
            arrays = [library.xp.asarray(array) for array in take(inputs, names)]
            return lambda: library.top.block_until_ready(function(*arrays))

        return on

    return Contender("functrans", "jit", build("functrans")), Contender("jax", "jit", build("jax"))


def spectral(library: Library) -> Callable[..., Any]:
    """Burgers' equation, 50 steps of a pseudo-spectral solver: the gradient of a misfit."""
    xp = library.xp
    waves = np.fft.rfftfreq(MODES, 1.0 / MODES)
    decay = np.exp(-1e-4 * waves**2)

    def misfit(start: Any, target: Any) -> Any:
        def step(u: Any, _: Any) -> tuple[Any, None]:
            slope = xp.fft.irfft(1j * waves * xp.fft.rfft(u), MODES)
            return xp.fft.irfft(decay * xp.fft.rfft(u - 1e-3 * u * slope), MODES), None

        end, _ = library.lax.scan(step, start, None, SOLVER_STEPS)
        return xp.sum((end - target) ** 2)

    return library.top.grad(misfit)


def sine_of_product(library: Library) -> Callable[..., Any]:
    """Gradient of ``sum(sin(A @ B))`` in both."""
    return library.top.grad(lambda a, b: library.xp.sum(library.xp.sin(a @ b)), argnums=(0, 1))


def transformer(library: Library) -> Callable[..., Any]:
    """Gradient of a pre-norm block in all weights."""
    xp = library.xp
    size = WIDTH // HEADS

    def normal(x: Any) -> Any:
        x = x - xp.mean(x, -1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, -1, keepdims=True) + 1e-5)

    def loss(qkv: Any, out: Any, up: Any, down: Any, x: Any) -> Any:
        parts = (normal(x) @ qkv).reshape(BATCH, SEQUENCE, 3, HEADS, size)
        q, k, v = (xp.swapaxes(parts[:, :, i], 1, 2) for i in range(3))
        scores = q @ xp.swapaxes(k, -1, -2) / np.float32(size**0.5)
        weights = xp.exp(scores - xp.max(scores, -1, keepdims=True))
        weights = weights / xp.sum(weights, -1, keepdims=True)
        x = x + xp.swapaxes(weights @ v, 1, 2).reshape(BATCH, SEQUENCE, WIDTH) @ out
        return xp.mean((x + xp.tanh(normal(x) @ up) @ down) ** 2)

    return library.top.grad(loss, argnums=(0, 1, 2, 3))


def small_hessian(library: Library) -> Callable[..., Any]:
    """Dense Hessian of a tanh network in its flat parameters."""

    def loss(params: Any, features: Any, targets: Any) -> Any:
        h, start = features, 0
        for layer, (rows, columns) in enumerate(pairwise(SMALL)):
            end = start + rows * columns
            h = h @ params[start:end].reshape(rows, columns) + params[end : end + columns]
            start = end + columns
            h = library.xp.tanh(h) if layer < len(SMALL) - 2 else h
        return library.xp.mean((h[:, 0] - targets) ** 2)

    return library.top.hessian(loss)


def python_steps(library: Library) -> Callable[..., Any]:
    """Gradient of a Python loop whose numbers differ from step to step."""

    def total(x: Any) -> Any:
        for i in range(STEPS):
            x = x + 0.01 * library.xp.sin(x * (1 + 0.001 * i))
        return library.xp.sum(x)

    return library.top.grad(total)


def deep(library: Library) -> Callable[..., Any]:
    """Gradient of 30 tanh layers of width 48 in their weights."""

    def loss(weights: Any, x: Any) -> Any:
        for i in range(LAYERS):
            x = library.xp.tanh(x @ weights[i])
        return library.xp.sum(x * x)

    return library.top.grad(loss)


def messages(library: Library) -> Callable[..., Any]:
    """Gradient of one round of messages along edges, in features and weights."""

    def loss(x: Any, w: Any, source: Any, target: Any) -> Any:
        sent = library.xp.tanh(x[source] @ w)
        return library.xp.sum(library.segment_sum(sent, target, NODES) ** 2)

    return library.top.grad(loss, argnums=(0, 1))


def gaussian_process(library: Library) -> Callable[..., Any]:
    """Gradient of a marginal likelihood by Cholesky, in three hyperparameters."""
    xp = library.xp

    def loss(hyper: Any, x: Any, y: Any) -> Any:
        scale, length, noise = (xp.exp(hyper[i]) for i in range(3))
        distance = xp.sum((x[:, None, :] - x[None, :, :]) ** 2, -1)
        kernel = scale * xp.exp(-0.5 * distance / length**2) + (noise + 1e-6) * xp.eye(POINTS)
        factor = xp.linalg.cholesky(kernel)
        half = library.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * xp.sum(half**2) + xp.sum(xp.log(xp.diagonal(factor)))

    return library.top.grad(loss)


def particle(library: Library) -> Callable[..., Any]:
    """The charge that lets a particle land at 0: descent around Euler steps, reverse inside."""
    xp, while_loop, lax = library.xp, library.lax.while_loop, library.lax

    def energy(w: Any) -> Any:
        def potential(at: Any) -> Any:
            first = xp.sqrt((at[0] - 10.0) ** 2 + (at[1] - 10.0 + w) ** 2)
            return 1.0 / first + 1.0 / xp.sqrt((at[0] - 10.0) ** 2 + at[1] ** 2)

        def move(state: Any) -> Any:
            at, speed = state
            return at + 0.1 * speed, speed - 0.1 * library.top.grad(potential)(at)

        start = (np.array([0.0, 8.0]), np.array([0.75, 0.0]))
        at, speed = while_loop(lambda s: (s[0] + 0.1 * s[1])[1] > 0.0, move, start)
        return (at[0] - at[1] / speed[1] * speed[0]) ** 2

    def slope(w: Any) -> Any:
        return library.top.jvp(energy, (w,), (np.float64(1.0),))

    def descend(state: Any) -> Any:
        w, value, gradient, rate, tries, _ = state

        def wider(_: Any) -> Any:
            return w, value, gradient, 2.0 * rate, 0, False

        def attempt(_: Any) -> Any:
            new = w - rate * gradient
            found, there = slope(new)
            better = found < value
            return (
                xp.where(better, new, w),
                xp.where(better, found, value),
                xp.where(better, there, gradient),
                xp.where(better, rate, rate / 2.0),
                xp.where(better, tries + 1, 0),
                xp.abs(rate * gradient) <= 1e-5,
            )

        return lax.cond(tries == 10, wider, attempt, None)

    def minimise(w: Any) -> Any:
        value, gradient = slope(w)
        state = (w, value, gradient, np.float64(1e-5), 0, False)
        return while_loop(lambda s: (xp.abs(s[2]) > 1e-5) & ~s[5], descend, state)[0]

    return minimise


def _normal(**shapes: tuple[int, ...]) -> MakeInputs:
    """Inputs drawn from normal distributions of unit gain."""

    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {
            name: rng.normal(size=shape) / (shape[-2] ** 0.5 if len(shape) > 1 else 1.0)
            for name, shape in shapes.items()
        }

    return make


def _single(make: MakeInputs) -> MakeInputs:
    return lambda rng: {name: array.astype(np.float32) for name, array in make(rng).items()}


def _smooth(rng: np.random.Generator) -> dict[str, np.ndarray]:
    grid = np.linspace(0.0, 2 * np.pi, MODES, endpoint=False)
    phase = rng.uniform(0.0, 2 * np.pi)
    return {"start": np.sin(grid), "target": 0.5 * np.sin(2 * grid + phase)}


def _edges(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "x": rng.normal(size=(NODES, FEATURES)),
        "w": rng.normal(size=(FEATURES, FEATURES)) / np.sqrt(FEATURES),
        "source": rng.integers(NODES, size=EDGES),
        "target": rng.integers(NODES, size=EDGES),
    }


def _samples(rng: np.random.Generator) -> dict[str, np.ndarray]:
    x = rng.uniform(-2.0, 2.0, size=(POINTS, 3))
    y = np.sin(x).sum(1) + 0.1 * rng.normal(size=POINTS)
    return {"hyper": np.array([0.0, 0.3, -3.0]), "x": x, "y": y}


def _workload(
    name: str, description: str, program: Program, make: MakeInputs, names: str, **options: Any
) -> Workload:
    contenders = compiled(program, tuple(names.split()))
    return Workload(name, description, make, contenders, **{"rtol": 1e-8, **options})


WORKLOADS = (
    _workload(
        "spectral_grad", "gradient of 50 pseudo-spectral steps, n = 512", spectral, _smooth,
        "start target",
    ),
    _workload(
        "sine_of_product_grad", "gradient of sum(sin(A @ B)), 512 x 512", sine_of_product,
        _normal(a=(SQUARE, SQUARE), b=(SQUARE, SQUARE)), "a b",
    ),
    _workload(
        "transformer_grad", "gradient of a transformer block, batch 8, sequence 64, width 128, f32",
        transformer,
        _single(_normal(qkv=(WIDTH, 3 * WIDTH), out=(WIDTH, WIDTH), up=(WIDTH, 4 * WIDTH),
                        down=(4 * WIDTH, WIDTH), x=(BATCH, SEQUENCE, WIDTH))),
        "qkv out up down x", dtype="float32", rtol=1e-4,
    ),
    _workload(
        "small_network_hessian", f"Hessian of a network, {SMALL_PARAMETERS} parameters, 64 samples",
        small_hessian,
        _normal(params=(SMALL_PARAMETERS,), features=(64, SMALL[0]), targets=(64,)),
        "params features targets",
    ),
    _workload(
        "python_steps_grad", "gradient of 300 Python steps, n = 16", python_steps,
        _normal(x=(16,)), "x",
    ),
    _workload(
        "deep_network_grad", "gradient of 30 tanh layers 48 x 48, batch 32", deep,
        _normal(weights=(LAYERS, 48, 48), x=(32, 48)), "weights x",
    ),
    _workload(
        "messages_grad", "gradient of messages along 20,000 edges", messages, _edges,
        "x w source target",
    ),
    _workload(
        "gaussian_process_grad", "gradient of a marginal likelihood by Cholesky, n = 300",
        gaussian_process, _samples, "hyper x y", rtol=1e-6,
    ),
    _workload(
        "particle", "descent around Euler steps, forward over reverse through while", particle,
        lambda _: {"w": np.array(0.0)}, "w", rtol=1e-6,
    ),
)  # fmt: skip
