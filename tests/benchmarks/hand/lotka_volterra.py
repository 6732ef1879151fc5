"""Runge-Kutta steps of the Lotka-Volterra equations and their reverse sweep by hand.

The sweep keeps the states at the steps and recomputes the four stages of each. For one step with
cotangent ``p`` of the new state, the stage cotangents start as ``h/6 p, h/3 p, h/3 p, h/6 p``;
each stage, last first, sends ``J^T k_bar`` to its argument, which is the old state plus a multiple
of the previous slope (W. Hager, Runge-Kutta methods in optimal control and the transformed adjoint
system, Numerische Mathematik 87, 2000).
"""

import numpy as np
from numba import njit


@njit(fastmath=False, inline="always")
def _field(x, y, a, b, c, d):
    return a * x - b * x * y, c * x * y - d * y


@njit(fastmath=False, inline="always")
def _pull(x, y, u, v, a, b, c, d):
    """Cotangents of the state for cotangents ``u, v`` of the slopes."""
    return u * (a - b * y) + v * c * y, v * (c * x - d) - u * b * x


@njit(fastmath=False)
def states(start: np.ndarray, parameters: np.ndarray, h: float, steps: int) -> np.ndarray:
    """Return the states ``f64[steps + 1, 2]``, the start first."""
    a, b, c, d = parameters
    x, y = start
    out = np.empty((steps + 1, 2))
    out[0] = start
    half = 0.5 * h
    sixth = h / 6.0
    for n in range(steps):
        k1x, k1y = _field(x, y, a, b, c, d)
        k2x, k2y = _field(x + half * k1x, y + half * k1y, a, b, c, d)
        k3x, k3y = _field(x + half * k2x, y + half * k2y, a, b, c, d)
        k4x, k4y = _field(x + h * k3x, y + h * k3y, a, b, c, d)
        x += sixth * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
        y += sixth * (k1y + 2.0 * k2y + 2.0 * k3y + k4y)
        out[n + 1, 0] = x
        out[n + 1, 1] = y
    return out


@njit(fastmath=False)
def reverse_sweep(
    path: np.ndarray, path_bar: np.ndarray, parameters: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cotangents of start and parameters, given those of ``states`` after the start."""
    a, b, c, d = parameters
    half = 0.5 * h
    sixth = h / 6.0
    px = py = a_bar = b_bar = c_bar = d_bar = 0.0
    for n in range(path.shape[0] - 2, -1, -1):
        px += path_bar[n, 0]
        py += path_bar[n, 1]
        x1, y1 = path[n]
        k1x, k1y = _field(x1, y1, a, b, c, d)
        x2, y2 = x1 + half * k1x, y1 + half * k1y
        k2x, k2y = _field(x2, y2, a, b, c, d)
        x3, y3 = x1 + half * k2x, y1 + half * k2y
        k3x, k3y = _field(x3, y3, a, b, c, d)
        x4, y4 = x1 + h * k3x, y1 + h * k3y
        u4, v4 = sixth * px, sixth * py
        g4x, g4y = _pull(x4, y4, u4, v4, a, b, c, d)
        u3, v3 = 2.0 * sixth * px + h * g4x, 2.0 * sixth * py + h * g4y
        g3x, g3y = _pull(x3, y3, u3, v3, a, b, c, d)
        u2, v2 = 2.0 * sixth * px + half * g3x, 2.0 * sixth * py + half * g3y
        g2x, g2y = _pull(x2, y2, u2, v2, a, b, c, d)
        u1, v1 = sixth * px + half * g2x, sixth * py + half * g2y
        g1x, g1y = _pull(x1, y1, u1, v1, a, b, c, d)
        px += g1x + g2x + g3x + g4x
        py += g1y + g2y + g3y + g4y
        a_bar += u1 * x1 + u2 * x2 + u3 * x3 + u4 * x4
        b_bar -= u1 * x1 * y1 + u2 * x2 * y2 + u3 * x3 * y3 + u4 * x4 * y4
        c_bar += v1 * x1 * y1 + v2 * x2 * y2 + v3 * x3 * y3 + v4 * x4 * y4
        d_bar -= v1 * y1 + v2 * y2 + v3 * y3 + v4 * y4
    return np.array([px, py]), np.array([a_bar, b_bar, c_bar, d_bar])


@njit(fastmath=False)
def fit_loss(start: np.ndarray, parameters: np.ndarray, observed: np.ndarray, h: float) -> float:
    """Return the mean square of ``states - observed``, the start left out."""
    path = states(start, parameters, h, observed.shape[0])
    total = 0.0
    for n in range(observed.shape[0]):
        for i in range(2):
            total += (path[n + 1, i] - observed[n, i]) ** 2
    return total / observed.size


@njit(fastmath=False)
def fit_gradient(
    start: np.ndarray, parameters: np.ndarray, observed: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of ``fit_loss`` in start and parameters."""
    path = states(start, parameters, h, observed.shape[0])
    path_bar = (path[1:] - observed) * (2.0 / observed.size)
    return reverse_sweep(path, path_bar, parameters, h)


@njit(fastmath=False)
def final_gradient(
    start: np.ndarray, parameters: np.ndarray, h: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of ``x^2 + y^2`` after ``steps`` steps."""
    path = states(start, parameters, h, steps)
    path_bar = np.zeros((steps, 2))
    path_bar[-1] = 2.0 * path[-1]
    return reverse_sweep(path, path_bar, parameters, h)
