"""Functions that compositions of transforms are tested on.

Each is a scalar function of one vector, smooth at its point to the third order, written as users
write them: with NumPy, with closures, pytrees, keyword arguments and item assignment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A function and a point.

    Attributes:
      name: of the function.
      fun: ``f64[n] -> f64[]``.
      point: where it is differentiated.
    """

    name: str
    fun: Callable[[Any], Any]
    point: np.ndarray

    def direction(self, k: int = 0) -> np.ndarray:
        """A fixed direction of the length of the point; ``k`` gives others."""
        return np.cos(np.arange(self.point.size) * (k + 1.3) + k)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) / 100


WEIGHTS = np.linspace(-1, 1, 12).reshape(3, 4)
HIDDEN = np.linspace(0.5, -0.7, 9).reshape(3, 3)


def perceptron(x: Any) -> Any:
    hidden = np.tanh(WEIGHTS @ x)
    return np.sum(np.tanh(HIDDEN @ hidden) ** 2) + x @ x / 10


def cross_entropy(x: Any) -> Any:
    logits = np.stack([x, x[::-1] * 0.5, np.sin(x)])
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(log_probabilities[np.arange(3), np.array([0, 2, 1])])


def energy(x: Any) -> Any:
    gaps = x[:, None] - x[None, :]
    apart = ~np.eye(len(x), dtype=bool)
    distance = np.sqrt(np.where(apart, gaps**2, 1.0) + 0.5)
    return np.sum(np.where(apart, 1 / distance, 0.0)) / 2


def _tree_loss(params: Any, inputs: Any, *, scale: float, bias: Any = None) -> Any:
    out = inputs @ params["w"] + params["rest"][0]
    if bias is not None:
        out = out + bias
    return scale * np.sum(np.log1p(np.exp(out)) * params["rest"][1])


def tree_of_parameters(x: Any) -> Any:
    params = {"w": x[:3], "rest": (x[3], x[4:] ** 2)}
    inputs = np.arange(6.0).reshape(2, 3) / 5
    return _tree_loss(params, inputs, scale=0.5, bias=np.sin(x[0]))


def solve(x: Any) -> Any:
    n = len(x)
    matrix = np.diag(2 + x**2) + 0.3 * np.outer(x, np.cos(x)) + np.eye(n, k=1)
    return np.sum(np.linalg.solve(matrix, np.sin(x)) ** 2) + np.linalg.slogdet(matrix)[1]


def ordering(x: Any) -> Any:
    weights = np.arange(1.0, len(x) + 1)
    ranked = np.sum(np.sort(x) ** 3 * weights) + np.max(x) ** 2 * np.min(x)
    return ranked + np.prod(np.cumsum(x)[1:])


def spectrum(x: Any) -> Any:
    modes = np.fft.fft(np.exp(1j * x) + x**2)
    return np.sum(np.abs(modes) ** 2 * np.arange(len(x))) / 10


def selection(x: Any) -> Any:
    chosen = np.where(x > 0, np.sin(x) * x, np.exp(x))
    picked = chosen[np.array([0, 2, 2, 1])] * np.clip(x, -0.7, 0.7)[[1, 0, 3, 2]]
    return np.sum(picked**2) + np.maximum(x, x[::-1] ** 2).sum()


def item_assignment(x: Any) -> Any:
    y = np.zeros(2 * len(x), like=x)
    y[::2] = x**2
    y[1] = np.sin(x[0]) * y[2]
    row = y[3:]
    row += x[1]
    y[0] *= y[1]
    return np.sum(np.cos(y) * np.arange(len(y)))


def iteration(x: Any) -> Any:
    state, total = x[:2] / 2, 0.0
    for step in range(6):
        rate = np.array([0.9, -0.4]) * state[::-1] - 0.1 * state**3
        state = state + 0.1 * rate * x[2]
        total = total + state[0] * state[1] / (step + 1)
    while total < 2.0:  # on values
        total = total + 0.8 * np.cosh(x[0])
    return total + np.sum(state**2)


def scalars(x: Any) -> Any:
    a, b, c = x
    return a**3 / b + b**c + 2.0**a * abs(b) - (a % 1.7) * c + np.hypot(a, c) * np.arctan2(b, a)


def _case(fun: Callable[[Any], Any], *point: float) -> Case:
    return Case(fun.__name__, fun, np.array(point))


CASES = (
    _case(rosenbrock, 0.3, -0.4, 0.9, 0.5, 1.1),
    _case(perceptron, 0.3, -0.7, 1.2, 0.4),
    _case(cross_entropy, 0.2, -0.6, 1.1),
    _case(energy, 0.1, 1.2, -0.8, 2.1),
    _case(tree_of_parameters, 0.4, -0.3, 0.8, 0.2, 0.7, -1.1),
    _case(solve, 0.5, -0.8, 1.1),
    _case(ordering, 0.9, -0.4, 0.3, 1.6),
    _case(spectrum, 0.4, -0.9, 0.2, 1.3),
    _case(selection, 0.5, -0.4, 1.3, -1.2),
    _case(item_assignment, 0.5, -0.8, 1.1),
    _case(iteration, 0.7, 0.4, 0.9),
    _case(scalars, 1.2, 0.8, 0.5),
)

# Python's control flow on values needs a trace that has them.
VALUE_DEPENDENT = ("iteration",)
STAGEABLE = tuple(case for case in CASES if case.name not in VALUE_DEPENDENT)


@cache
def line_derivatives(name: str) -> tuple[float, ...]:
    """Derivatives of orders 0 to 3 along the direction of a case, by interpolation.

    The function is evaluated on Chebyshev nodes of a short line through the point; the derivatives
    of its interpolant of degree 13 are off by 1e-14, 1e-12, 1e-10 and 1e-8 or less, relatively.
    """
    case = next(case for case in CASES if case.name == name)
    radius, degree = 0.1, 13
    nodes = radius * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    values = [float(case.fun(case.point + t * case.direction())) for t in nodes]
    fitted = np.polynomial.Chebyshev.fit(nodes, values, degree, domain=[-radius, radius])
    return tuple(float(fitted.deriv(k)(0.0)) if k else float(fitted(0.0)) for k in range(4))
