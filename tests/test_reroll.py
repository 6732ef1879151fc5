"""Rolling unrolled loops up again: the same bits from fewer equations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.control.loops import scan_p
from functrans.control.reroll import reroll
from functrans.ir.avals import aval_of_plain
from functrans.ir.check import check_jaxpr, check_same_signature
from functrans.ir.jaxpr import Jaxpr, subjaxprs
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify

Function = Callable[..., Any]


def assert_same_bits(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert aval_of_plain(a) == aval_of_plain(b)
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype.kind in "fc":  # which NaN a NaN is may differ
            assert np.array_equal(np.isnan(a), np.isnan(b))
            a, b = np.where(np.isnan(a), 0, a), np.where(np.isnan(b), 0, b)
        assert a.tobytes() == b.tobytes()


def staged(fun: Function, *args: Any) -> Jaxpr:
    return simplify(ft.make_jaxpr(fun)(*args))


def rolled(jaxpr: Jaxpr, args: Sequence[Any]) -> Jaxpr:
    """The rolled program, checked against the straight-line one."""
    result = reroll(jaxpr)
    check_jaxpr(result)
    check_same_signature(jaxpr, result, "reroll")
    leaves = [leaf for leaf in ft.tree.leaves(args)] if hasattr(ft, "tree") else list(args)
    with np.errstate(all="ignore"):
        for _ in range(2):  # equation by equation, then as an executable
            assert_same_bits(evaluate(jaxpr, leaves), evaluate(result, leaves))
    return result


def size(jaxpr: Jaxpr) -> int:
    """Equations, with those of programs in equations."""
    return sum(1 + sum(map(size, subjaxprs(eqn.params))) for eqn in jaxpr.eqns)


def scans(jaxpr: Jaxpr) -> list[Any]:
    return [eqn for eqn in jaxpr.eqns if eqn.primitive is scan_p]


# loops that people write ------------------------------------------------------------------------


def recurrence(x: Any, a: Any) -> Any:
    for _ in range(150):
        x = a * x * (1.0 - x)
    return x


def rk4(x: Any, y: Any, p: Any) -> Any:
    def slopes(x: Any, y: Any) -> tuple[Any, Any]:
        return p[0] * x - p[1] * x * y, p[2] * x * y - p[3] * y

    h = 0.01
    for _ in range(30):
        k1x, k1y = slopes(x, y)
        k2x, k2y = slopes(x + 0.5 * h * k1x, y + 0.5 * h * k1y)
        k3x, k3y = slopes(x + 0.5 * h * k2x, y + 0.5 * h * k2y)
        k4x, k4y = slopes(x + h * k3x, y + h * k3y)
        x = x + h / 6.0 * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
        y = y + h / 6.0 * (k1y + 2.0 * k2y + 2.0 * k3y + k4y)
    return np.sum(x * x + y * y)


def newton(x: Any, a: Any) -> Any:
    for _ in range(60):
        f = x * x * x - a * np.sin(x) - 1.0
        slope = 3.0 * x * x - a * np.cos(x)
        x = x - f / slope
    return np.sum(x)


def elements(x: Any, s: Any) -> Any:
    for i in range(99):
        s = np.sin(s) * x[i] + x[i + 1]
    return s


def elements_backwards(x: Any, s: Any) -> Any:
    for i in range(99):
        s = np.tanh(s + x[-1 - i]) * x[i]
    return s


def windows(x: Any, s: Any) -> Any:
    for i in range(80):
        s = np.sin(s) + np.sum(x[i : i + 3] * x[i + 2 : i + 5])
    return s


def matrices(x: Any, s: Any) -> Any:
    for i in range(70):
        s = np.tanh(s @ x[i]) + s
    return np.sum(s)


def columns(x: Any, s: Any) -> Any:
    for i in range(70):
        s = np.tanh(s * x[:, i] + x[:, i + 1])
    return np.sum(s)


def numbers(x: Any) -> Any:
    s = x
    for i in range(150):
        s = np.sin(s) * (0.1 * i) + np.cos(s + i)
    return s


def appended(x: Any, s: Any) -> Any:
    out = []
    for _ in range(120):
        s = np.sin(s) * x + np.cos(x)
        out.append(s)
    return np.sum(np.stack(out) ** 2)


def two_back(a: Any, b: Any) -> Any:
    for _ in range(150):
        a, b = b, np.sin(a) + 0.5 * b
    return a + b


def two_loops(x: Any, y: Any) -> Any:
    first = np.exp(x) * y
    for _ in range(120):
        x = np.sin(x) * y + first
    middle = x * first - y
    for _ in range(100):
        y = np.cos(y * middle) - x
    return np.sum(y * middle)


def nested(x: Any, a: Any) -> Any:
    for _ in range(8):
        y = x * a
        for _ in range(60):
            y = np.sin(y) * a + x * y
        x = x + 0.1 * y
    return np.sum(x)


def nested_short(x: Any, a: Any) -> Any:
    for _ in range(40):
        y = x * a
        for _ in range(5):
            y = np.sin(y) * a + x * y
        x = x + 0.1 * y
    return np.sum(x)


def updated(x: Any, s: Any) -> Any:
    x = x + 0.0
    for i in range(1, 70):
        x[i] = np.sin(x[i - 1]) * s + x[i]
    return np.sum(x)


def alternating(x: Any, y: Any) -> Any:
    for i in range(160):
        x, y = np.sin(y) + 0.3 * x, (x * y if i % 2 else x - y)
    return np.sum(x + y)


def integers(x: Any, n: Any) -> Any:
    for _ in range(150):
        n = (n * 5 + 3) % 7
        x = np.where(n > 3, x * 0.5, x + n)
    return np.sum(x)


def first_used_late(x: Any, a: Any) -> Any:
    kept = []
    y = x
    for _ in range(120):
        y = np.sin(y) * a + x
        kept.append(y)
    return y * kept[0] + kept[17] - kept[-2]


@dataclass(frozen=True)
class Case:
    """A loop; ``below`` bounds the equations of what is left of its value, gradient, second."""

    fun: Function
    args: tuple[Any, ...]
    below: tuple[int, int, int]


VECTOR = np.linspace(0.1, 0.9, 3)
MATRICES = np.random.default_rng(3).normal(size=(71, 3, 3)) * 0.3
LONG = np.linspace(-1.0, 1.0, 100)

CASES = {
    "recurrence": Case(recurrence, (np.float64(0.3), np.float64(3.7)), (20, 60, 120)),
    "recurrence of Python numbers": Case(recurrence, (0.3, 3.7), (20, 60, 120)),
    "recurrence of vectors": Case(recurrence, (VECTOR, 3.1), (20, 70, 150)),
    "recurrence in single precision": Case(
        recurrence, (np.float32(0.3), np.float32(3.7)), (20, 60, 120)
    ),
    "rk4": Case(rk4, (0.8, 0.9, np.array([1.5, 1.0, 1.0, 3.0])), (250, 700, 1800)),
    "rk4 of vectors": Case(rk4, (VECTOR, VECTOR + 1.0, np.ones(4)), (250, 800, 2200)),
    "newton": Case(newton, (1.3, 0.4), (60, 160, 500)),
    "newton of vectors": Case(newton, (VECTOR + 1.0, VECTOR), (60, 200, 600)),
    "elements": Case(elements, (LONG, 0.3), (20, 90, 300)),
    "elements backwards": Case(elements_backwards, (LONG, 0.3), (20, 100, 400)),
    "windows": Case(windows, (LONG, 0.3), (30, 150, 400)),
    "matrices": Case(matrices, (MATRICES, VECTOR), (20, 90, 300)),
    "columns": Case(columns, (np.outer(VECTOR, LONG), VECTOR), (30, 120, 400)),
    "numbers": Case(numbers, (0.3,), (20, 70, 200)),
    "appended": Case(appended, (0.7, 0.2), (30, 90, 300)),
    "appended vectors": Case(appended, (VECTOR, VECTOR), (30, 90, 300)),
    "two back": Case(two_back, (0.4, 0.5), (30, 80, 300)),
    "two loops": Case(two_loops, (VECTOR, VECTOR), (50, 150, 500)),
    "nested": Case(nested, (VECTOR, 0.7), (80, 400, 1500)),
    "nested, short": Case(nested_short, (0.5, 0.7), (80, 250, 900)),
    "updated": Case(updated, (LONG, 0.7), (600, 1500, 3000)),
    "alternating": Case(alternating, (0.5, 0.7), (40, 120, 500)),
    "integers": Case(integers, (VECTOR, 5), (40, 400, 900)),
    "first used late": Case(first_used_late, (0.5, 0.7), (40, 150, 500)),
}


def derivative(case: Case, order: int) -> tuple[Function, tuple[Any, ...]]:
    """The function, its gradient, its Hessian-vector product."""
    argnums = tuple(i for i, x in enumerate(case.args) if np.asarray(x).dtype.kind == "f")

    def scalar(*args: Any) -> Any:
        return np.sum(case.fun(*args))

    if order == 0:
        return case.fun, case.args
    gradient = ft.grad(scalar, argnums=argnums)
    if order == 1:
        return gradient, case.args

    def product(*args: Any) -> Any:
        variables = [args[i] for i in argnums]

        def of_variables(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(argnums, values, strict=True):
                full[i] = value
            return gradient(*full)

        return ft.jvp(of_variables, variables, variables)[1]

    return product, case.args


@pytest.mark.parametrize("order", [0, 1, 2], ids=["value", "gradient", "hvp"])
@pytest.mark.parametrize("name", CASES)
def test_unrolled_loops_are_rolled_to_the_same_bits(name: str, order: int) -> None:
    case = CASES[name]
    fun, args = derivative(case, order)
    jaxpr = staged(fun, *args)
    result = rolled(jaxpr, args)
    assert size(result) < case.below[order], (len(jaxpr.eqns), size(result))
