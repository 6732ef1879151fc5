"""Loss of a diagonal LSTM and its gradient by hand, as loops over single numbers."""

import math

import numpy as np
from numba import njit


@njit(fastmath=False, error_model="numpy")
def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@njit(fastmath=False, error_model="numpy")
def _layer(weights: np.ndarray, x: np.ndarray, state: np.ndarray, gates: np.ndarray) -> None:
    """One step of a layer: ``state`` is changed; gates and ``tanh`` of cells go to ``gates``."""
    for b in range(x.size):
        forget = _sigmoid(x[b] * weights[0, b] + weights[4, b])
        admit = _sigmoid(state[0, b] * weights[1, b] + weights[5, b])
        emit = _sigmoid(x[b] * weights[2, b] + weights[6, b])
        change = math.tanh(state[0, b] * weights[3, b] + weights[7, b])
        state[1, b] = state[1, b] * forget + admit * change
        squashed = math.tanh(state[1, b])
        state[0, b] = emit * squashed
        gates[0, b], gates[1, b], gates[2, b] = forget, admit, emit
        gates[3, b], gates[4, b] = change, squashed


@njit(fastmath=False, error_model="numpy")
def _gain(extra: np.ndarray, hidden: np.ndarray, after: np.ndarray, guess: np.ndarray) -> float:
    """Log-likelihood of one character; ``exp`` of the guess over its sum goes to ``guess``."""
    mass = 2.0
    dot = 0.0
    total = 0.0
    for b in range(hidden.size):
        y = hidden[b] * extra[1, b] + extra[2, b]
        dot += after[b] * y
        total += after[b]
        guess[b] = math.exp(y)
        mass += guess[b]
    for b in range(hidden.size):
        guess[b] /= mass
    return dot - total * math.log(mass)


@njit(fastmath=False, error_model="numpy")
def loss(main: np.ndarray, extra: np.ndarray, state: np.ndarray, sequence: np.ndarray) -> float:
    """Return the mean negative log-likelihood."""
    state = state.copy()
    bits = sequence.shape[1]
    x, guess, gates = np.empty(bits), np.empty(bits), np.empty((5, bits))
    total = 0.0
    for t in range(sequence.shape[0] - 1):
        for b in range(bits):
            x[b] = sequence[t, b] * extra[0, b]
        for layer in range(main.shape[0]):
            _layer(main[layer], x, state[layer], gates)
            x[:] = state[layer, 0]
        total += _gain(extra, x, sequence[t + 1], guess)
    return -total / ((sequence.shape[0] - 1) * bits)


@njit(fastmath=False, error_model="numpy")
def gradient(
    main: np.ndarray, extra: np.ndarray, state: np.ndarray, sequence: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient in ``main`` and ``extra``."""
    n_layers, steps, bits = main.shape[0], sequence.shape[0] - 1, sequence.shape[1]
    states = np.empty((steps + 1, n_layers, 2, bits))
    gates = np.empty((steps, n_layers, 5, bits))
    guesses = np.empty((steps, bits))
    states[0] = state
    x = np.empty(bits)
    for t in range(steps):
        states[t + 1] = states[t]
        for b in range(bits):
            x[b] = sequence[t, b] * extra[0, b]
        for layer in range(n_layers):
            _layer(main[layer], x, states[t + 1, layer], gates[t, layer])
            x[:] = states[t + 1, layer, 0]
        _gain(extra, x, sequence[t + 1], guesses[t])

    main_bar, extra_bar = np.zeros_like(main), np.zeros_like(extra)
    hidden_bar, cell_bar = np.zeros((n_layers, bits)), np.zeros((n_layers, bits))
    x_bar = np.empty(bits)
    scale = -1.0 / (steps * bits)
    for t in range(steps - 1, -1, -1):
        total = 0.0
        for b in range(bits):
            total += sequence[t + 1, b]
        for b in range(bits):
            y_bar = scale * (sequence[t + 1, b] - total * guesses[t, b])
            extra_bar[1, b] += y_bar * states[t + 1, n_layers - 1, 0, b]
            extra_bar[2, b] += y_bar
            x_bar[b] = y_bar * extra[1, b]
        for layer in range(n_layers - 1, -1, -1):
            w, w_bar = main[layer], main_bar[layer]
            for b in range(bits):
                forget, admit, emit = (
                    gates[t, layer, 0, b],
                    gates[t, layer, 1, b],
                    gates[t, layer, 2, b],
                )
                change, squashed = gates[t, layer, 3, b], gates[t, layer, 4, b]
                hidden, cell = states[t, layer, 0, b], states[t, layer, 1, b]
                below = states[t + 1, layer - 1, 0, b] if layer else sequence[t, b] * extra[0, b]
                out_bar = hidden_bar[layer, b] + x_bar[b]
                c_bar = cell_bar[layer, b] + out_bar * emit * (1.0 - squashed * squashed)
                forget_bar = c_bar * cell * forget * (1.0 - forget)
                admit_bar = c_bar * change * admit * (1.0 - admit)
                emit_bar = out_bar * squashed * emit * (1.0 - emit)
                change_bar = c_bar * admit * (1.0 - change * change)
                w_bar[0, b] += forget_bar * below
                w_bar[1, b] += admit_bar * hidden
                w_bar[2, b] += emit_bar * below
                w_bar[3, b] += change_bar * hidden
                w_bar[4, b] += forget_bar
                w_bar[5, b] += admit_bar
                w_bar[6, b] += emit_bar
                w_bar[7, b] += change_bar
                cell_bar[layer, b] = c_bar * forget
                hidden_bar[layer, b] = admit_bar * w[1, b] + change_bar * w[3, b]
                x_bar[b] = forget_bar * w[0, b] + emit_bar * w[2, b]
        for b in range(bits):
            extra_bar[0, b] += x_bar[b] * sequence[t, b]
    return main_bar, extra_bar
