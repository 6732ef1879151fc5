"""Log-likelihood of a diagonal Gaussian mixture and its gradient by hand.

With ``z = (x - mean) exp(-log_scale)`` and responsibilities ``r`` (a softmax over components):
``d/dlogit_k = sum_n r - n softmax(logits)_k``, ``d/dmean = sum_n r z exp(-log_scale)``,
``d/dlog_scale = sum_n r (z^2 - 1)``.
"""

import math

import numpy as np
from numba import njit


@njit(fastmath=False, error_model="numpy")
def _log_weights(logits: np.ndarray, log_scales: np.ndarray) -> np.ndarray:
    """Return ``log softmax(logits) - sum(log_scales, 1)``."""
    peak = logits.max()
    total = 0.0
    for k in range(logits.size):
        total += math.exp(logits[k] - peak)
    shift = peak + math.log(total)
    out = np.empty_like(logits)
    for k in range(logits.size):
        out[k] = logits[k] - shift - log_scales[k].sum()
    return out


@njit(fastmath=False, error_model="numpy")
def _densities(
    point: np.ndarray, means: np.ndarray, precisions: np.ndarray, base: np.ndarray, out: np.ndarray
) -> float:
    """Write the components' log densities at ``point`` to ``out``; return the largest."""
    peak = -np.inf
    for k in range(base.size):
        square = 0.0
        for d in range(point.size):
            z = (point[d] - means[k, d]) * precisions[k, d]
            square += z * z
        out[k] = base[k] - 0.5 * square
        peak = max(peak, out[k])
    return peak


@njit(fastmath=False, error_model="numpy")
def log_likelihood(
    logits: np.ndarray, means: np.ndarray, log_scales: np.ndarray, points: np.ndarray
) -> float:
    """Return the log-likelihood of ``points: f64[n, d]``."""
    precisions = np.exp(-log_scales)
    base = _log_weights(logits, log_scales)
    density = np.empty_like(base)
    total = 0.0
    for n in range(points.shape[0]):
        peak = _densities(points[n], means, precisions, base, density)
        mass = 0.0
        for k in range(base.size):
            mass += math.exp(density[k] - peak)
        total += peak + math.log(mass)
    return total


@njit(fastmath=False, error_model="numpy")
def gradient(
    logits: np.ndarray, means: np.ndarray, log_scales: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradient in logits, means and log scales."""
    precisions = np.exp(-log_scales)
    base = _log_weights(logits, log_scales)
    density = np.empty_like(base)
    logits_bar = np.zeros_like(logits)
    means_bar = np.zeros_like(means)
    scales_bar = np.zeros_like(log_scales)
    for n in range(points.shape[0]):
        peak = _densities(points[n], means, precisions, base, density)
        mass = 0.0
        for k in range(base.size):
            density[k] = math.exp(density[k] - peak)
            mass += density[k]
        inverse = 1.0 / mass
        for k in range(base.size):
            share = density[k] * inverse
            logits_bar[k] += share
            for d in range(means.shape[1]):
                z = (points[n, d] - means[k, d]) * precisions[k, d]
                means_bar[k, d] += share * z * precisions[k, d]
                scales_bar[k, d] += share * (z * z - 1.0)
    weights = np.exp(base + log_scales.sum(axis=1))
    return logits_bar - points.shape[0] * weights, means_bar, scales_bar
