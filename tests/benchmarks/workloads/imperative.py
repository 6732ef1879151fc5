"""Imperative code beside PyTorch: the cost of recording, and a training step.

The programs are written once, for a module with torch's names: torch itself, or
``functrans.compat.torch``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

OPERATIONS = 1000
BATCH, WIDTHS = 64, (64, 64, 10)


def _chain(torch: Any, inputs: Inputs) -> Callable[[], Any]:
    """Forward and backward through products, sums and sines of one number."""
    x = torch.tensor(float(inputs["x"]), dtype=torch.float64, requires_grad=True)

    def run() -> Any:
        y = x
        for _ in range(OPERATIONS // 5):
            y = ((y * 1.01 + 0.1).sin() * y) + x
        y.backward()
        gradient, x.grad = x.grad, None
        return y.detach(), gradient

    return run


def _step(torch: Any, inputs: Inputs, compiled: Callable[[Any], Any] | None) -> Callable[[], Any]:
    """A step of SGD, with a rate of 0 so that every step does the same."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(*WIDTHS[:2]), nn.ReLU(), nn.Linear(*WIDTHS[1:]))
    with torch.no_grad():
        for name, parameter in zip(("w1", "b1", "w2", "b2"), model.parameters(), strict=True):
            parameter.copy_(torch.from_numpy(inputs[name]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    images, labels = torch.from_numpy(inputs["images"]), torch.from_numpy(inputs["labels"])

    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    stepped = step if compiled is None else compiled(step)

    def run() -> Any:
        loss = stepped(images, labels)
        return (loss.detach(), *(parameter.grad for parameter in model.parameters()))

    return run


def _in_torch(program: Callable[..., Any], inputs: Inputs) -> Callable[[], Any]:
    import torch

    return program(torch, inputs)  # type: ignore[no-any-return]  # a function


def _in_functrans(program: Callable[..., Any], inputs: Inputs) -> Callable[[], Any]:
    import functrans.compat.torch as torch

    return program(torch, inputs)  # type: ignore[no-any-return]  # a function


def _jitted(inputs: Inputs) -> Callable[[], Any]:
    import functrans as ft
    import functrans.compat.torch as torch

    return _step(torch, inputs, ft.jit)


def _arrays(result: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(tensor.numpy()) for tensor in result)


def make_number(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``x: f64[]``."""
    return {"x": np.asarray(rng.uniform(0.5, 1.0))}


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return parameters, images ``f32[64, 64]`` and labels ``i64[64]``."""
    first, hidden, classes = WIDTHS
    arrays = {
        "w1": rng.normal(size=(hidden, first)) / 8,
        "b1": rng.normal(size=hidden) / 8,
        "w2": rng.normal(size=(classes, hidden)) / 8,
        "b2": rng.normal(size=classes) / 8,
        "images": rng.uniform(size=(BATCH, first)),
    }
    inputs = {name: array.astype(np.float32) for name, array in arrays.items()}
    return {**inputs, "labels": rng.integers(classes, size=BATCH)}


_eager_step = partial(_step, compiled=None)

WORKLOADS = (
    Workload(
        name="imperative_chain",
        description="forward and backward of a chain of 1,000 scalar operations, tensors",
        make_inputs=make_number,
        contenders=(
            Contender("functrans", "eager", partial(_in_functrans, _chain), _arrays),
            Contender("torch", "eager", partial(_in_torch, _chain), _arrays),
        ),
        rtol=1e-9,
    ),
    Workload(
        name="imperative_step",
        description="SGD step of a 64-64-10 perceptron, batch 64, cross entropy, float32",
        make_inputs=make_inputs,
        contenders=(
            Contender("functrans", "eager", partial(_in_functrans, _eager_step), _arrays),
            Contender("functrans", "jit", _jitted, _arrays),
            Contender("torch", "eager", partial(_in_torch, _eager_step), _arrays),
        ),
        rtol=2e-5,
        dtype="float32",
    ),
)
