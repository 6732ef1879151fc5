"""The diagonal LSTM of ADBench: loss of next-character prediction, and its gradient.

Gates are elementwise: each of 14 numbers per layer has weights of its own. Written from Šrajer,
Kukelova & Fitzgibbon's benchmark as continued by Microsoft Research (ADBench); the text is drawn at
random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import Ops, gradient, primal, take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Inputs

LAYERS = 2
CHARACTERS = 1024
BITS = 14
PARAMETERS = ("main", "extra")
DATA = ("state", "sequence")


def loss(ops: Ops, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """Return the mean negative log-likelihood.

    Args:
      ops: the library's vocabulary.
      main: weights and biases of four gates, ``f64[layers, 8, bits]``.
      extra: weights at the input, at the output and its bias, ``f64[3, bits]``.
      state: hidden numbers and cells, ``f64[layers, 2, bits]``.
      sequence: ``f64[characters, bits]``.
    """
    xp = ops.xp

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-x))

    def step(carry: Any, pair: Any) -> tuple[Any, Any]:
        now, after = pair
        x = now * extra[0]
        layers = []
        for layer in range(LAYERS):
            hidden, cell = carry[layer]
            weights = main[layer]
            forget = sigmoid(x * weights[0] + weights[4])
            admit = sigmoid(hidden * weights[1] + weights[5])
            emit = sigmoid(x * weights[2] + weights[6])
            change = xp.tanh(hidden * weights[3] + weights[7])
            cell = cell * forget + admit * change
            x = emit * xp.tanh(cell)
            layers.append((x, cell))
        guess = x * extra[1] + extra[2]
        normal = guess - xp.log(xp.sum(xp.exp(guess)) + 2.0)
        return tuple(layers), xp.sum(after * normal)

    start = tuple((state[layer, 0], state[layer, 1]) for layer in range(LAYERS))
    _, gains = ops.scan(step, start, (sequence[:-1], sequence[1:]), CHARACTERS - 1)
    return -xp.sum(gains) / ((CHARACTERS - 1) * BITS)


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return parameters of two layers, a state, and 1024 characters of 14 bits."""
    return {
        "main": rng.normal(size=(LAYERS, 8, BITS)),
        "extra": rng.normal(size=(3, BITS)),
        "state": rng.normal(size=(LAYERS, 2, BITS)),
        "sequence": rng.integers(2, size=(CHARACTERS, BITS)).astype(float),
    }


def _by_hand(kernel: str) -> Callable[[Inputs], Callable[[], Any]]:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from tests.benchmarks.hand import diagonal_lstm

        return partial(getattr(diagonal_lstm, kernel), *take(inputs, (*PARAMETERS, *DATA)))

    return build


def _without_loops(contenders: tuple[Contender, ...]) -> tuple[Contender, ...]:
    """Leave out libraries that have no ``scan`` over pairs, and what is not compiled."""
    return tuple(each for each in contenders if each.variant == "jit")


WORKLOADS = (
    Workload(
        name="diagonal_lstm_primal",
        description="loss of a diagonal LSTM, 2 layers, 1024 steps of 14 numbers",
        make_inputs=make_inputs,
        contenders=(
            *_without_loops(primal(loss, (*PARAMETERS, *DATA))),
            Contender("numba", "hand", _by_hand("loss")),
        ),
        rtol=1e-12,
    ),
    Workload(
        name="diagonal_lstm_grad",
        description="gradient of the same loss in all weights",
        make_inputs=make_inputs,
        contenders=(
            *_without_loops(gradient(loss, PARAMETERS, DATA)),
            Contender("numba", "hand", _by_hand("gradient")),
        ),
        rtol=1e-10,
    ),
)
