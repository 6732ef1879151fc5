"""Lennard-Jones energy and gradient by hand.

``E = 4 sum_{i<j} (q^2 - q)`` with ``q = r^-6``; per pair ``dE/dx_i = -24 (2 q^2 - q) / r^2 (x_i -
x_j)``. The ``full`` kernels visit every ordered pair, as the array formula does; ``half``
visit each pair once and use Newton's third law.
"""

import numpy as np
from numba import njit


@njit(fastmath=False, error_model="numpy")
def energy_full(x: np.ndarray) -> float:
    """Return the energy of positions ``f64[n, 3]``, every ordered pair visited."""
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        for j in range(n):
            d0 = x[i, 0] - x[j, 0]
            d1 = x[i, 1] - x[j, 1]
            d2 = x[i, 2] - x[j, 2]
            r2 = d0 * d0 + d1 * d1 + d2 * d2
            if i == j:
                r2 = 1.0
            inverse = 1.0 / r2
            q = inverse * inverse * inverse
            total += q * q - q
    return 2.0 * total


@njit(fastmath=False, error_model="numpy")
def energy_half(x: np.ndarray) -> float:
    """Return the energy, each pair visited once."""
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        for j in range(i):
            d0 = x[i, 0] - x[j, 0]
            d1 = x[i, 1] - x[j, 1]
            d2 = x[i, 2] - x[j, 2]
            inverse = 1.0 / (d0 * d0 + d1 * d1 + d2 * d2)
            q = inverse * inverse * inverse
            total += q * q - q
    return 4.0 * total


@njit(fastmath=False, error_model="numpy")
def gradient_full(x: np.ndarray) -> np.ndarray:
    """Return the gradient, every ordered pair visited."""
    n = x.shape[0]
    out = np.empty_like(x)
    for i in range(n):
        g0 = 0.0
        g1 = 0.0
        g2 = 0.0
        for j in range(n):
            d0 = x[i, 0] - x[j, 0]
            d1 = x[i, 1] - x[j, 1]
            d2 = x[i, 2] - x[j, 2]
            r2 = d0 * d0 + d1 * d1 + d2 * d2
            if i == j:
                r2 = 1.0
            inverse = 1.0 / r2
            q = inverse * inverse * inverse
            slope = (2.0 * q - 1.0) * q * inverse
            g0 += slope * d0
            g1 += slope * d1
            g2 += slope * d2
        out[i, 0] = -24.0 * g0
        out[i, 1] = -24.0 * g1
        out[i, 2] = -24.0 * g2
    return out


@njit(fastmath=False, error_model="numpy")
def gradient_half(x: np.ndarray) -> np.ndarray:
    """Return the gradient, each pair visited once."""
    n = x.shape[0]
    out = np.zeros_like(x)
    for i in range(n):
        g0 = 0.0
        g1 = 0.0
        g2 = 0.0
        for j in range(i):
            d0 = x[i, 0] - x[j, 0]
            d1 = x[i, 1] - x[j, 1]
            d2 = x[i, 2] - x[j, 2]
            inverse = 1.0 / (d0 * d0 + d1 * d1 + d2 * d2)
            q = inverse * inverse * inverse
            slope = -24.0 * (2.0 * q - 1.0) * q * inverse
            g0 += slope * d0
            g1 += slope * d1
            g2 += slope * d2
            out[j, 0] -= slope * d0
            out[j, 1] -= slope * d1
            out[j, 2] -= slope * d2
        out[i, 0] += g0
        out[i, 1] += g1
        out[i, 2] += g2
    return out
