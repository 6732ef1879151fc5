"""The 35 test functions of Moré, Garbow and Hillstrom, with their starts and minima.

Reference: Testing unconstrained optimization software, ACM Transactions on Mathematical Software
7 (1981), 17-41. Numbers are the paper's. In function 11 the paper's text has ``y_i m i x_2`` in
place of ``y_i - x_2``, a known misprint.

Each is a sum of squares of residuals, written in NumPy for one vector of unknowns. Where the number
of unknowns is free, it is that of the paper's tables.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from problems.record import Problem, squares


def _stack(x: Any, *rows: Any) -> Any:
    return np.stack([row + 0.0 * x[0] for row in rows])


def rosenbrock(x: Any) -> Any:
    return np.concatenate([10.0 * (x[1::2] - x[::2] ** 2), 1.0 - x[::2]])


def freudenstein_roth(x: Any) -> Any:
    a, b = x
    return np.stack([-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b])


def powell_badly_scaled(x: Any) -> Any:
    return np.stack([1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001])


def brown_badly_scaled(x: Any) -> Any:
    return np.stack([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])


def beale(x: Any) -> Any:
    y = np.array([1.5, 2.25, 2.625])
    return y - x[0] * (1 - np.stack([x[1], x[1] ** 2, x[1] ** 3]))


def jennrich_sampson(x: Any) -> Any:
    i = np.arange(1.0, 11.0)
    return 2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1]))


def helical_valley(x: Any) -> Any:
    theta = np.arctan(x[1] / x[0]) / (2 * np.pi) + np.where(x[0] < 0, 0.5, 0.0)
    radius = np.sqrt(x[0] ** 2 + x[1] ** 2)
    return np.stack([10 * (x[2] - 10 * theta), 10 * (radius - 1), x[2]])


BARD = np.array(
    [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39]
)


def bard(x: Any) -> Any:
    u = np.arange(1.0, 16.0)
    v = 16 - u
    return BARD - (x[0] + u / (v * x[1] + np.minimum(u, v) * x[2]))


GAUSS = np.array([0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989])


def gaussian(x: Any) -> Any:
    y = np.concatenate([GAUSS, GAUSS[-2::-1]])
    t = (8 - np.arange(1.0, 16.0)) / 2
    return x[0] * np.exp(-x[1] * (t - x[2]) ** 2 / 2) - y


MEYER = np.array(
    [
        34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820,
        3307, 2872,
    ],
    float,
)  # fmt: skip


def meyer(x: Any) -> Any:
    t = 45 + 5 * np.arange(1.0, 17.0)
    return x[0] * np.exp(x[1] / (t + x[2])) - MEYER


def gulf(x: Any) -> Any:
    t = np.arange(1.0, 100.0) / 100
    y = 25 + (-50 * np.log(t)) ** (2 / 3)
    return np.exp(-(np.abs(y - x[1]) ** x[2]) / x[0]) - t


def box(x: Any) -> Any:
    t = 0.1 * np.arange(1.0, 11.0)
    return np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))


def powell_singular(x: Any) -> Any:
    a, b, c, d = x[::4], x[1::4], x[2::4], x[3::4]
    return np.concatenate(
        [a + 10 * b, np.sqrt(5) * (c - d), (b - 2 * c) ** 2, np.sqrt(10) * (a - d) ** 2]
    )


def wood(x: Any) -> Any:
    a, b, c, d = x
    return np.stack(
        [
            10 * (b - a**2), 1 - a, np.sqrt(90) * (d - c**2), 1 - c, np.sqrt(10) * (b + d - 2),
            (b - d) / np.sqrt(10),
        ]
    )  # fmt: skip


KOWALIK_Y = np.array(
    [0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
)
KOWALIK_U = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])


def kowalik_osborne(x: Any) -> Any:
    u = KOWALIK_U
    return KOWALIK_Y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])


def brown_dennis(x: Any) -> Any:
    t = np.arange(1.0, 21.0) / 5
    return (x[0] + t * x[1] - np.exp(t)) ** 2 + (x[2] + x[3] * np.sin(t) - np.cos(t)) ** 2


OSBORNE_1 = np.array(
    [
        0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685,
        0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448,
        0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406,
    ]
)  # fmt: skip


def osborne_1(x: Any) -> Any:
    t = 10 * np.arange(33.0)
    return OSBORNE_1 - (x[0] + x[1] * np.exp(-t * x[3]) + x[2] * np.exp(-t * x[4]))


def biggs(x: Any) -> Any:
    t = 0.1 * np.arange(1.0, 14.0)
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)
    return x[2] * np.exp(-t * x[0]) - x[3] * np.exp(-t * x[1]) + x[5] * np.exp(-t * x[4]) - y


OSBORNE_2 = np.array(
    [
        1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679, 0.608,
        0.655, 0.616, 0.606, 0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644, 0.624, 0.661,
        0.612, 0.558, 0.533, 0.495, 0.500, 0.423, 0.395, 0.375, 0.372, 0.391, 0.396, 0.405, 0.428,
        0.429, 0.523, 0.562, 0.607, 0.653, 0.672, 0.708, 0.633, 0.668, 0.645, 0.632, 0.591, 0.559,
        0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581, 0.428, 0.292, 0.162, 0.098, 0.054,
    ]
)  # fmt: skip


def osborne_2(x: Any) -> Any:
    t = np.arange(65.0) / 10
    peaks = sum(x[k] * np.exp(-((t - x[k + 7]) ** 2) * x[k + 4]) for k in (1, 2, 3))
    return OSBORNE_2 - (x[0] * np.exp(-t * x[4]) + peaks)


def watson(x: Any) -> Any:
    n = len(x)
    powers = (np.arange(1.0, 30.0) / 29)[:, None] ** np.arange(n)
    slopes = powers[:, :-1] * np.arange(1.0, n)
    inner = slopes @ x[1:] - (powers @ x) ** 2 - 1
    return np.concatenate([inner, x[:1], x[1:2] - x[:1] ** 2 - 1])


def penalty_1(x: Any) -> Any:
    return np.concatenate([np.sqrt(1e-5) * (x - 1), np.sum(x**2, keepdims=True) - 0.25])


def penalty_2(x: Any) -> Any:
    n, a = len(x), np.sqrt(1e-5)
    i = np.arange(2.0, n + 1)
    y = np.exp(i / 10) + np.exp((i - 1) / 10)
    e = np.exp(x / 10)
    weights = n - np.arange(1.0, n + 1) + 1
    return np.concatenate(
        [
            x[:1] - 0.2, a * (e[1:] + e[:-1] - y), a * (e[1:] - np.exp(-0.1)),
            np.sum(weights * x**2, keepdims=True) - 1,
        ]
    )  # fmt: skip


def variably_dimensioned(x: Any) -> Any:
    total = np.sum(np.arange(1.0, len(x) + 1) * (x - 1), keepdims=True)
    return np.concatenate([x - 1, total, total**2])


def trigonometric(x: Any) -> Any:
    i = np.arange(1.0, len(x) + 1)
    return len(x) - np.sum(np.cos(x)) + i * (1 - np.cos(x)) - np.sin(x)


def brown_almost_linear(x: Any) -> Any:
    linear = x[:-1] + np.sum(x) - (len(x) + 1)
    return np.concatenate([linear, np.prod(x, keepdims=True) - 1])


def _grid(n: int) -> np.ndarray:
    return np.arange(1.0, n + 1) / (n + 1)


def discrete_boundary_value(x: Any) -> Any:
    n = len(x)
    padded = np.pad(x, 1)
    cube = (x + _grid(n) + 1) ** 3
    return 2 * x - padded[:-2] - padded[2:] + cube / (2 * (n + 1) ** 2)


def discrete_integral_equation(x: Any) -> Any:
    n = len(x)
    t = _grid(n)
    cube = (x + t + 1) ** 3
    below = np.cumsum(t * cube)
    above = np.sum((1 - t) * cube) - np.cumsum((1 - t) * cube)
    return x + ((1 - t) * below + t * above) / (2 * (n + 1))


def broyden_tridiagonal(x: Any) -> Any:
    padded = np.pad(x, 1)
    return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1


def broyden_banded(x: Any) -> Any:
    n = len(x)
    i, j = np.indices((n, n))
    band = ((j >= i - 5) & (j <= i + 1) & (j != i)).astype(float)
    return x * (2 + 5 * x**2) + 1 - band @ (x * (1 + x))


def linear_full_rank(m: int) -> Callable[[Any], Any]:
    def residuals(x: Any) -> Any:
        return np.pad(x, (0, m - len(x))) - 2 / m * np.sum(x) - 1

    return residuals


def linear_rank_1(m: int) -> Callable[[Any], Any]:
    def residuals(x: Any) -> Any:
        return np.arange(1.0, m + 1) * np.sum(np.arange(1.0, len(x) + 1) * x) - 1

    return residuals


def linear_rank_1_with_zeros(m: int) -> Callable[[Any], Any]:
    def residuals(x: Any) -> Any:
        factors = np.arange(0.0, m)
        factors[-1] = 0
        total = np.sum(np.arange(2.0, len(x)) * x[1:-1])
        return factors * total - 1

    return residuals


def chebyquad(x: Any) -> Any:
    n = len(x)
    before, now = 1 + 0 * x, 2 * x - 1
    means = []
    for i in range(1, n + 1):
        means.append(np.mean(now) + (1 / (i * i - 1) if i % 2 == 0 else 0.0))
        before, now = now, 2 * (2 * x - 1) * now - before
    return np.stack(means)


def _row(
    name: str,
    residuals: Callable[[Any], Any],
    start: Any,
    *minima: float,
    minimizer: Any = None,
    is_flat: bool = False,
) -> Problem:
    best = None if minimizer is None else np.asarray(minimizer, float)
    start = np.asarray(start, float)
    return Problem(name, start, minima, squares(residuals), residuals, best, is_flat)


def _tiled(values: list[float], n: int) -> np.ndarray:
    return np.tile(values, n // len(values))


MGH = (
    _row("Rosenbrock", rosenbrock, [-1.2, 1], 0, minimizer=[1, 1]),
    _row("Freudenstein-Roth", freudenstein_roth, [0.5, -2], 0, 48.98425367924, minimizer=[5, 4]),
    _row("Powell badly scaled", powell_badly_scaled, [0, 1], 0, is_flat=True),
    _row(
        "Brown badly scaled", brown_badly_scaled, [1, 1], 0, minimizer=[1e6, 2e-6], is_flat=True
    ),
    _row("Beale", beale, [1, 1], 0, minimizer=[3, 0.5]),
    _row("Jennrich-Sampson", jennrich_sampson, [0.3, 0.4], 124.362182355615),
    _row("Helical valley", helical_valley, [-1, 0, 0], 0, minimizer=[1, 0, 0]),
    _row("Bard", bard, [1, 1, 1], 8.21487730657897e-3, 17.4286933333),
    _row("Gaussian", gaussian, [0.4, 1, 0], 1.12793276961912e-8),
    _row("Meyer", meyer, [0.02, 4000, 250], 87.9458551710, is_flat=True),
    _row("Gulf research", gulf, [5, 2.5, 0.15], 0, minimizer=[50, 25, 1.5], is_flat=True),
    _row("Box 3-dimensional", box, [0, 10, 20], 0, minimizer=[1, 10, 1]),
    _row("Powell singular", powell_singular, [3, -1, 0, 1], 0, minimizer=[0] * 4, is_flat=True),
    _row("Wood", wood, [-3, -1, -3, -1], 0, minimizer=[1] * 4),
    _row(
        "Kowalik-Osborne", kowalik_osborne, [0.25, 0.39, 0.415, 0.39], 3.0750560384924e-4,
        1.02734e-3,
    ),
    _row("Brown-Dennis", brown_dennis, [25, 5, -5, -1], 85822.2016263563),
    _row("Osborne 1", osborne_1, [0.5, 1.5, -1, 0.01, 0.02], 5.46489469748e-5, is_flat=True),
    _row(
        "Biggs EXP6", biggs, [1, 2, 1, 1, 1, 1], 0, 5.65564992e-3,
        minimizer=[1, 10, 1, 5, 4, 3], is_flat=True,
    ),
    _row(
        "Osborne 2", osborne_2, [1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5],
        4.01377362935e-2, 1.78981358e0,
    ),
    _row("Watson", watson, np.zeros(9), 1.39976013886e-6, is_flat=True),
    _row("Extended Rosenbrock", rosenbrock, _tiled([-1.2, 1], 20), 0, minimizer=np.ones(20)),
    _row(
        "Extended Powell singular", powell_singular, _tiled([3, -1, 0, 1], 20), 0,
        minimizer=np.zeros(20), is_flat=True,
    ),
    _row("Penalty I", penalty_1, np.arange(1.0, 11), 7.08765146709e-5, is_flat=True),
    _row("Penalty II", penalty_2, np.full(10, 0.5), 2.93660537457e-4, is_flat=True),
    _row(
        "Variably dimensioned", variably_dimensioned, 1 - np.arange(1, 11) / 10, 0,
        minimizer=np.ones(10),
    ),
    _row(
        "Trigonometric", trigonometric, np.full(10, 0.1), 0, 2.79506122e-5, minimizer=np.zeros(10)
    ),
    _row(
        "Brown almost-linear", brown_almost_linear, np.full(10, 0.5), 0, 1.0, minimizer=np.ones(10)
    ),
    _row("Discrete boundary value", discrete_boundary_value, _grid(10) * (_grid(10) - 1), 0),
    _row("Discrete integral equation", discrete_integral_equation, _grid(10) * (_grid(10) - 1), 0),
    _row("Broyden tridiagonal", broyden_tridiagonal, -np.ones(10), 0),
    _row("Broyden banded", broyden_banded, -np.ones(10), 0),
    _row("Linear, full rank", linear_full_rank(20), np.ones(10), 10.0, minimizer=-np.ones(10)),
    _row("Linear, rank 1", linear_rank_1(20), np.ones(10), 20 * 19 / 82, is_flat=True),
    _row(
        "Linear, rank 1, zeros", linear_rank_1_with_zeros(20), np.ones(10), (400 + 60 - 6) / 74,
        is_flat=True,
    ),
    _row("Chebyquad", chebyquad, np.arange(1, 9) / 9, 3.51687372568e-3),
)  # fmt: skip
"""The functions in the order of the paper."""
