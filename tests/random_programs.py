"""Random programs: a grammar of NumPy operations, drawn by Hypothesis.

A program is a list of steps; each applies an operation to earlier values, chosen by numbers that
wrap around, so that every list of steps is a program and shrinks well. Operations keep values and
derivatives moderate: what grows is passed through ``tanh`` first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

MAX_SIZE = 40


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One production of the grammar.

    Attributes:
      name: in the text of a program.
      arity: number of operands.
      fits: whether it is defined for operands of these shapes.
      run: computes it.
    """

    name: str
    arity: int
    fits: Callable[..., bool]
    run: Callable[..., Any]


def _any(*shapes: tuple[int, ...]) -> bool:
    return True


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a, b))) <= MAX_SIZE
    except ValueError:
        return False


def _has_axis(a: tuple[int, ...]) -> bool:
    return len(a) >= 1


def _is_matrix(a: tuple[int, ...]) -> bool:
    return len(a) == 2


def _small(a: tuple[int, ...]) -> bool:
    return 2 * int(np.prod(a)) <= MAX_SIZE and len(a) < 3


def _multiply(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return len(a) == 2 and len(b) in (1, 2) and a[1] == b[0] and a[0] * b[-1] <= MAX_SIZE


def _same(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return a == b and _small(a)


def _stripes(x: Any) -> np.ndarray:
    """A constant mask of a shape."""
    return (np.arange(int(np.prod(x.shape))) % 3 == 0).reshape(x.shape)


def _assigned(x: Any) -> Any:
    y = x.copy()
    y[..., 0] = np.sin(y[..., -1])
    y[..., -1] *= 0.5
    return y


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


OPERATIONS = (
    Operation("sin", 1, _any, np.sin),
    Operation("cos", 1, _any, np.cos),
    Operation("tanh", 1, _any, np.tanh),
    Operation("gauss", 1, _any, lambda x: np.exp(-(x**2))),
    Operation("arctan", 1, _any, np.arctan),
    Operation("log1p_square", 1, _any, lambda x: np.log1p(x**2)),
    Operation("sqrt", 1, _any, lambda x: np.sqrt(1.0 + x * x)),
    Operation("logistic", 1, _any, lambda x: 1 / (1 + np.exp(-np.tanh(x)))),
    Operation("cube", 1, _any, lambda x: np.tanh(x) ** 3),
    Operation("negate", 1, _any, lambda x: 0.5 - x),
    Operation("abs", 1, _any, np.abs),
    Operation("clip", 1, _any, lambda x: np.clip(x, -0.6, 0.8)),
    Operation("mask", 1, _any, lambda x: np.where(_stripes(x), x, np.sinh(np.tanh(x)))),
    Operation("relu", 1, _any, lambda x: np.where(x > 0, x, 0.1 * x)),
    Operation("add", 2, _broadcast, lambda a, b: a + b),
    Operation("subtract", 2, _broadcast, lambda a, b: 0.7 * a - b),
    Operation("multiply", 2, _broadcast, lambda a, b: np.tanh(a) * b),
    Operation("divide", 2, _broadcast, lambda a, b: a / (1.5 + np.sin(b))),
    Operation("power", 2, _broadcast, lambda a, b: (1.2 + np.sin(a)) ** np.cos(b)),
    Operation("arctan2", 2, _broadcast, lambda a, b: np.arctan2(a, 1.5 + np.cos(b))),
    Operation("logaddexp", 2, _broadcast, np.logaddexp),
    Operation("maximum", 2, _broadcast, np.maximum),
    Operation("select", 2, _broadcast, lambda a, b: np.where(a > b, a, np.sin(b))),
    Operation("sum_last", 1, _has_axis, lambda x: np.sum(x, axis=-1)),
    Operation("mean_first", 1, _has_axis, lambda x: np.mean(x, axis=0, keepdims=True)),
    Operation("prod", 1, _has_axis, lambda x: np.prod(np.tanh(x), axis=-1)),
    Operation("max", 1, _has_axis, lambda x: np.max(x, axis=-1)),
    Operation("sort", 1, _has_axis, lambda x: np.sort(x, axis=-1)),
    Operation("cumsum", 1, _has_axis, lambda x: np.cumsum(x, axis=0) / x.shape[0]),
    Operation("cumprod", 1, _has_axis, lambda x: np.cumprod(np.cos(x), axis=-1)),
    Operation("softmax", 1, _has_axis, _softmax),
    Operation("flatten", 1, _has_axis, lambda x: x.reshape(-1)),
    Operation("transpose", 1, _is_matrix, lambda x: x.T),
    Operation("new_axis", 1, _small, lambda x: x[None]),
    Operation("reverse", 1, _has_axis, lambda x: x[..., ::-1]),
    Operation("head", 1, _has_axis, lambda x: x[:1]),
    Operation("roll", 1, _has_axis, lambda x: np.roll(x, 1, axis=-1)),
    Operation("take", 1, _has_axis, lambda x: np.take(x, np.array([0, -1, 0]), axis=0)),
    Operation("assign", 1, _has_axis, _assigned),
    Operation("concatenate", 2, _same, lambda a, b: np.concatenate([a.reshape(-1), b.reshape(-1)])),
    Operation("stack", 2, _same, lambda a, b: np.stack([a, 2 * b], axis=-1)),
    Operation("matmul", 2, _multiply, lambda a, b: np.tanh(a) @ b / a.shape[1]),
    Operation("gram", 1, _is_matrix, lambda x: np.tanh(x.T) @ x),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A random function of arrays.

    Attributes:
      shapes: of the arguments.
      steps: number of the operation, numbers of its operands.
    """

    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[int, int, int], ...]

    def _resolved(self) -> list[tuple[Operation, tuple[int, ...]]]:
        """The operations and operands that the numbers stand for, by shapes alone."""
        found = []
        shapes = list(self.shapes)
        for number, first, second in self.steps:
            chosen = None
            for offset in range(len(OPERATIONS)):
                operation = OPERATIONS[(number + offset) % len(OPERATIONS)]
                operands = tuple(
                    (len(shapes) - 1 - choice) % len(shapes)
                    for choice in (first, second)[: operation.arity]
                )
                if operation.fits(*(shapes[i] for i in operands)):
                    chosen = operation, operands
                    break
            assert chosen is not None
            values = [np.full(shapes[i], 0.5) for i in chosen[1]]
            shapes.append(np.shape(chosen[0].run(*values)))
            found.append(chosen)
        return found

    def __call__(self, *args: Any) -> Any:
        """The mean of all values that are computed, so that every step counts."""
        values = list(args)
        for operation, operands in self._resolved():
            values.append(operation.run(*(values[i] for i in operands)))
        return sum(np.mean(value) for value in values[len(args) :])

    def __repr__(self) -> str:
        """The program as an assignment per line."""
        lines = [f"f(v0: {self.shapes[0]}, v1: {self.shapes[1]})"]
        for i, (operation, operands) in enumerate(self._resolved(), len(self.shapes)):
            lines.append(f"  v{i} = {operation.name}({', '.join(f'v{k}' for k in operands)})")
        return "\n".join(lines)


SHAPES = st.sampled_from([(), (1,), (3,), (2, 3), (3, 1), (3, 2)])
STEPS = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 5), st.integers(0, 5)),
    min_size=2,
    max_size=8,
)
PROGRAMS = st.builds(
    lambda first, second, steps: Program((first, second), tuple(steps)), SHAPES, SHAPES, STEPS
)
