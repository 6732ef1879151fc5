"""Objectives of the kind that CUTEst collects, for any number of unknowns, with starts and minima.

References: Gould, Orban & Toint, CUTEst: a constrained and unconstrained testing environment with
safe threads, Computational Optimization and Applications 60 (2015), 545-557; Luksan, Matonoha &
Vlcek, Sparse test problems for unconstrained optimization, report 1064, Czech Academy of Sciences
(2010).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from problems.record import Problem


def arwhead(x: Any) -> Any:
    return np.sum((x[:-1] ** 2 + x[-1] ** 2) ** 2 - 4 * x[:-1] + 3)


def bdqrtic(x: Any) -> Any:
    band = x[:-4] ** 2 + 2 * x[1:-3] ** 2 + 3 * x[2:-2] ** 2 + 4 * x[3:-1] ** 2 + 5 * x[-1] ** 2
    return np.sum((3 - 4 * x[:-4]) ** 2 + band**2)


def tridia(x: Any) -> Any:
    i = np.arange(2.0, len(x) + 1)
    return (x[0] - 1) ** 2 + np.sum(i * (2 * x[1:] - x[:-1]) ** 2)


def dixmaan(
    alpha: float, beta: float, gamma: float, delta: float, *powers: int
) -> Callable[[Any], Any]:
    def objective(x: Any) -> Any:
        n = len(x)
        m = n // 3
        i = np.arange(1.0, n + 1) / n
        k1, k2, k3, k4 = powers
        return (
            1
            + np.sum(alpha * x**2 * i**k1)
            + np.sum(beta * x[:-1] ** 2 * (x[1:] + x[1:] ** 2) ** 2 * i[:-1] ** k2)
            + np.sum(gamma * x[: 2 * m] ** 2 * x[m:] ** 4 * i[: 2 * m] ** k3)
            + np.sum(delta * x[:m] * x[2 * m :] * i[:m] ** k4)
        )

    return objective


def liarwhd(x: Any) -> Any:
    return np.sum(4 * (x**2 - x[0]) ** 2 + (x - 1) ** 2)


def nondquar(x: Any) -> Any:
    ends = (x[0] - x[1]) ** 2 + (x[-2] - x[-1]) ** 2
    return ends + np.sum((x[:-2] + x[1:-1] + x[-1]) ** 4)


def power(x: Any) -> Any:
    return np.sum(np.arange(1.0, len(x) + 1) * x**2) ** 2


def engval1(x: Any) -> Any:
    return np.sum((x[:-1] ** 2 + x[1:] ** 2) ** 2 - 4 * x[:-1] + 3)


def fletchcr(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] + 1 - x[:-1] ** 2) ** 2)


def woods(x: Any) -> Any:
    a, b, c, d = x[::4], x[1::4], x[2::4], x[3::4]
    return np.sum(
        100 * (b - a**2) ** 2
        + (1 - a) ** 2
        + 90 * (d - c**2) ** 2
        + (1 - c) ** 2
        + 10 * (b + d - 2) ** 2
        + 0.1 * (b - d) ** 2
    )


def edensch(x: Any) -> Any:
    a, b = x[:-1], x[1:]
    return 16 + np.sum((a - 2) ** 4 + (a * b - 2 * b) ** 2 + (b + 1) ** 2)


def cosine(x: Any) -> Any:
    return np.sum(np.cos(x[:-1] ** 2 - 0.5 * x[1:]))


def nondia(x: Any) -> Any:
    return (x[0] - 1) ** 2 + np.sum(100 * (x[0] - x[:-1] ** 2) ** 2)


def genrose(x: Any) -> Any:
    return 1 + np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (x[1:] - 1) ** 2)


def _row(
    name: str,
    objective: Callable[[Any], Any],
    start: Any,
    minimum: float,
    minimizer: Any = None,
    is_flat: bool = False,
) -> Problem:
    return Problem(name, np.asarray(start, float), (minimum,), objective, None, minimizer, is_flat)


N = 60
_ALTERNATING = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
_AT_ONE = np.ones(N)
CUTEST = (
    _row("ARWHEAD", arwhead, _AT_ONE, 0, np.append(np.ones(N - 1), 0.0)),
    _row("BDQRTIC", bdqrtic, _AT_ONE, 218.5448025301131),
    _row("TRIDIA", tridia, _AT_ONE, 0, 0.5 ** np.arange(N)),
    _row("DIXMAANA", dixmaan(1, 0, 0.125, 0.125, 0, 0, 0, 0), 2 * _AT_ONE, 1, np.zeros(N)),
    _row("DIXMAANE", dixmaan(1, 0, 0.125, 0.125, 1, 0, 0, 1), 2 * _AT_ONE, 1, np.zeros(N)),
    _row("DIXMAANH", dixmaan(1, 0.26, 0.26, 0.26, 1, 0, 0, 1), 2 * _AT_ONE, 1, np.zeros(N)),
    _row("LIARWHD", liarwhd, 4 * _AT_ONE, 0, np.ones(N)),
    _row("NONDQUAR", nondquar, _ALTERNATING, 0, np.zeros(N), is_flat=True),
    _row("POWER", power, _AT_ONE, 0, np.zeros(N), is_flat=True),
    _row("ENGVAL1", engval1, 2 * _AT_ONE, 64.68339913678452),
    _row("FLETCHCR", fletchcr, np.zeros(N), 0),
    _row("WOODS", woods, np.tile([-3.0, -1.0], N // 2), 0, np.ones(N)),
    _row("EDENSCH", edensch, 8 * _AT_ONE, 363.2845920207646),
    _row("COSINE", cosine, _AT_ONE, 1.0 - N),
    _row("NONDIA", nondia, -_AT_ONE, 0, np.ones(N)),
    _row("GENROSE", genrose, np.arange(1, N + 1) / (N + 1), 1, np.ones(N)),
)
