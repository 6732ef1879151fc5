"""Rolling unrolled loops up again: the same bits from fewer equations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.control.loops import scan_p
from functrans.core.avals import ShapedArray, aval_of_plain
from functrans.core.jaxpr import Equation, Jaxpr, Var, subjaxprs
from functrans.ir.check import check_jaxpr, check_same_signature
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify
from functrans.primitives.elementwise import add_p, multiply_p, sin_p, subtract_p
from functrans.rerolling.periods import encode, find_stretches
from functrans.rerolling.rewrite import reroll

Function = Callable[..., Any]


def assert_same_bits(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert aval_of_plain(a) == aval_of_plain(b)
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype.kind in "fc":  # which NaN a NaN is may differ
            assert np.array_equal(np.isnan(x), np.isnan(y))
            x, y = np.where(np.isnan(x), 0, x), np.where(np.isnan(y), 0, y)
        assert x.tobytes() == y.tobytes()


def staged(fun: Function, *args: Any) -> Jaxpr:
    return simplify(ft.make_jaxpr(fun)(*args))


def rolled(jaxpr: Jaxpr, args: Sequence[Any]) -> Jaxpr:
    """The rolled program, checked against the straight-line one."""
    result = reroll(jaxpr)
    check_jaxpr(result)
    check_same_signature(jaxpr, result, "reroll")
    with np.errstate(all="ignore"):
        for _ in range(2):  # equation by equation, then as an executable
            assert_same_bits(evaluate(jaxpr, args), evaluate(result, args))
    return result


def size(jaxpr: Jaxpr) -> int:
    """Equations, with those of programs in equations."""
    return sum(1 + sum(map(size, subjaxprs(eqn.params))) for eqn in jaxpr.eqns)


def scans(jaxpr: Jaxpr) -> list[Equation]:
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
    for _ in range(16):
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
    for _ in range(5):
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
    "numbers": Case(numbers, (0.3,), (80, 200, 400)),
    "appended": Case(appended, (0.7, 0.2), (30, 90, 300)),
    "appended vectors": Case(appended, (VECTOR, VECTOR), (30, 90, 300)),
    "two back": Case(two_back, (0.4, 0.5), (30, 80, 300)),
    "two loops": Case(two_loops, (VECTOR, VECTOR), (50, 150, 500)),
    "nested": Case(nested, (VECTOR, 0.7), (80, 300, 700)),
    "nested, short": Case(nested_short, (0.5, 0.7), (80, 250, 900)),
    "updated": Case(updated, (LONG, 0.7), (20, 1000, 2200)),
    "alternating": Case(alternating, (0.5, 0.7), (40, 120, 500)),
    "integers": Case(integers, (VECTOR, 5), (40, 400, 900)),
    "first used late": Case(first_used_late, (0.5, 0.7), (40, 200, 500)),
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


@each("order", [0, 1, 2], ids=["value", "gradient", "hvp"], one_of=2)
@each("name", CASES, by="name")
def test_unrolled_loops_are_rolled_to_the_same_bits(name: str, order: int) -> None:
    case = CASES[name]
    fun, args = derivative(case, order)
    jaxpr = staged(fun, *args)
    result = rolled(jaxpr, args)
    assert size(result) < case.below[order], (len(jaxpr.eqns), size(result))


def test_loops_around_loops_are_rolled() -> None:
    def fun(x: Any, a: Any) -> Any:
        for _ in range(30):
            y = x * a
            for _ in range(60):
                y = np.sin(y) * a + x * y
            x = x + 0.1 * y
        return np.sum(x)

    args = (VECTOR, 0.7)
    jaxpr = staged(ft.grad(fun), *args)
    result = rolled(jaxpr, args)
    assert len(jaxpr.eqns) > 15_000
    assert size(result) < 100
    inner = [scan for eqn in scans(result) for scan in scans(eqn.params["jaxpr"])]
    assert len(inner) >= 2


def test_backward_sweeps_scan_what_forward_sweeps_stacked() -> None:
    jaxpr = staged(*_gradient_of("rk4"))
    forward, backward = scans(reroll(jaxpr))
    assert not forward.params["reverse"]
    assert backward.params["reverse"]
    n = backward.params["n_consts"] + backward.params["n_carry"]
    stacks = forward.outputs[forward.params["n_carry"] :]
    assert set(backward.inputs[n:]) == set(stacks)


def test_arrays_are_scanned_in_place() -> None:
    jaxpr = staged(matrices, MATRICES[:70], VECTOR)
    (loop,) = scans(reroll(jaxpr))
    assert loop.params["length"] == 70
    assert jaxpr.invars[0] in loop.inputs


def test_appended_results_are_what_the_loop_stacks() -> None:
    def fun(x: Any) -> Any:
        out = []
        for _ in range(300):
            x = np.sin(x)
            out.append(x)
        return np.stack(out)

    result = rolled(staged(fun, VECTOR), (VECTOR,))
    assert size(result) == 2
    assert result.outvars == scans(result)[0].outputs[1:]


def test_equations_of_a_loop_keep_the_line_of_the_first_block() -> None:
    jaxpr = staged(recurrence, 0.3, 3.7)
    (loop,) = scans(reroll(jaxpr))
    body = loop.params["jaxpr"]
    assert [eqn.source for eqn in body.eqns] == [eqn.source for eqn in jaxpr.eqns[:3]]


def _gradient_of(name: str) -> tuple[Any, ...]:
    fun, args = derivative(CASES[name], 1)
    return fun, *args


# what is not rolled -----------------------------------------------------------------------------


def test_short_programs_stay() -> None:
    def fun(x: Any) -> Any:
        for _ in range(50):
            x = np.sin(x) * 0.5
        return x

    jaxpr = staged(fun, 0.3)
    assert reroll(jaxpr) is jaxpr


def test_rerolling_is_cached_and_changes_nothing_more() -> None:
    jaxpr = staged(recurrence, 0.3, 3.7)
    result = reroll(jaxpr)
    assert reroll(jaxpr) is result
    assert reroll(result) is result


def test_effects_and_annotations_stay_straight_line() -> None:
    seen: list[float] = []

    def fun(x: Any) -> Any:
        for _ in range(100):
            x = np.sin(x) * 0.5 + 0.1
            ft.debug.callback(lambda value: seen.append(float(value)), x)
        return x

    jaxpr = staged(fun, 0.3)
    assert reroll(jaxpr) is jaxpr
    plain = staged(recurrence, 0.3, 3.7)
    notes = dict.fromkeys(plain.eqns[::40], ("note",))
    annotated = replace(plain, annotations=notes, cache={})
    result = reroll(annotated)
    assert set(notes) <= set(result.eqns)


def test_values_that_are_all_read_one_by_one_stay() -> None:
    def fun(x: Any) -> Any:
        out = []
        for _ in range(300):
            x = np.sin(x)
            out.append(x)
        return out

    jaxpr = staged(fun, 0.3)
    assert reroll(jaxpr) is jaxpr


def test_large_values_are_not_stacked_for_a_few_readers() -> None:
    def fun(x: Any) -> Any:
        kept = None
        for i in range(120):
            y = np.sin(x)
            x = y * 0.5 + 0.1
            kept = y if i in (60, 119) else kept
            if i == 60:
                middle = y
        return x, middle + kept

    x = np.linspace(0.0, 1.0, 100_000)
    jaxpr = staged(fun, x)
    result = reroll(jaxpr)
    assert all(var.aval.size <= 1 << 20 for eqn in result.eqns for var in eqn.outputs)
    assert_same_bits(evaluate(jaxpr, (x,)), evaluate(result, (x,)))


def test_last_values_that_are_not_carried_are_not_stacked() -> None:
    def fun(x: Any) -> Any:
        for _ in range(120):
            y = np.sin(x)
            z = y * 0.5
            x = z + 0.1
        return x, y, z

    result = rolled(staged(fun, VECTOR), (VECTOR,))
    (loop,) = scans(result)
    assert all(var.aval.shape == (3,) for var in loop.outputs)


def test_exponents_are_not_turned_into_variables() -> None:
    def fun(x: Any) -> Any:
        s = x
        for i in range(2, 122):
            s = s * 0.5 + np.sin(x) ** i
        return s

    assert not scans(reroll(staged(fun, 0.3)))


# periods ----------------------------------------------------------------------------------------

_OPERATIONS = (add_p, subtract_p, multiply_p)


def _random_program(rng: np.random.Generator, blocks: Sequence[tuple[int, int]]) -> Jaxpr:
    """Blocks of random equations, each repeated, that read what is some distance back."""
    aval = ShapedArray((), np.dtype(np.float64))
    variables = [Var(aval) for _ in range(4)]
    arguments = tuple(variables)
    eqns: list[Equation] = []
    for period, repeats in blocks:
        reach = int(rng.integers(1, 2 * period + 2))
        body = [
            (
                _OPERATIONS[rng.integers(3)] if rng.random() < 0.8 else sin_p,
                rng.integers(1, reach + 1, size=2),
                rng.random() < 0.2,
            )
            for _ in range(period)
        ]
        for _ in range(repeats):
            for primitive, distances, is_constant in body:
                inputs = [variables[-min(int(d), len(variables))] for d in distances]
                if is_constant:
                    inputs[1] = arguments[int(distances[0]) % 4]
                out = Var(aval)
                count = 1 if primitive is sin_p else 2
                eqns.append(Equation(primitive, tuple(inputs[:count]), {}, (out,)))
                variables.append(out)
    chosen = rng.choice(len(eqns), size=min(6, len(eqns)), replace=False)
    outs = [eqns[i].outputs[0] for i in sorted(chosen)]
    return Jaxpr((), (), arguments, tuple(eqns), (*outs, variables[-1]))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_repeats_give_the_same_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [
        (int(rng.integers(1, 30)), int(rng.integers(1, 60))) for _ in range(rng.integers(1, 6))
    ]
    jaxpr = _random_program(rng, blocks)
    args = rng.uniform(-1.0, 1.0, size=4)
    rolled(jaxpr, [np.float64(x) for x in args])


def test_the_period_of_a_repeat_is_found() -> None:
    rng = np.random.default_rng(5)
    jaxpr = _random_program(rng, [(7, 1), (23, 40), (5, 1)])
    stretches = find_stretches(encode(jaxpr), lambda stretch: stretch.saved > 500)
    assert 23 in {stretch.period for stretch in stretches}


# random loops -----------------------------------------------------------------------------------


def _random_loop(rng: np.random.Generator) -> Function:
    """A Python loop with random statements, over ``(x, s, p)``: an array, a state, parameters."""
    count = int(rng.integers(40, 60))
    kinds = list(rng.integers(0, 11, size=rng.integers(4, 9)))
    picks = rng.integers(0, 4, size=(len(kinds), 3))
    early, late = int(rng.integers(0, 3)), int(rng.integers(0, 3))

    def fun(x: Any, s: Any, p: Any) -> Any:
        state = [s, s * 0.5 + p, np.cos(s), p * s]
        out = []
        for _ in range(early):
            state[0] = np.exp(-state[1] * state[0])
        for i in range(count):
            for kind, (to, a, b) in zip(kinds, picks, strict=True):
                u, v = state[a], state[b]
                match kind:
                    case 0 | 1:
                        value = np.sin(u) * v
                    case 2 | 3:
                        value = 0.3 * u + p * v
                    case 4:
                        value = u + x[i]
                    case 5:
                        value = u * x[count - 1 - i] - v
                    case 6:
                        value = np.tanh(u - v) + 0.01 * i
                    case 7:
                        value = u / (2.0 + v * v)
                    case 8:
                        value = np.where(u > v, u * 0.5, v)
                    case 9:
                        value = u - np.sum(x[i : i + 2]) * v
                    case _:
                        value = np.sqrt(u * u + 0.5)
                        out.append(value)
                state[to] = value
        for _ in range(late):
            state[1] = np.sin(state[1]) + state[2]
        total = np.sum(state[0] + state[1] * state[2] - state[3])
        if out:
            total = total + np.sum(np.stack(out) ** 2) + np.sum(out[-1])
        return total

    return fun


@pytest.mark.parametrize("order", [0, 1, 2], ids=["value", "gradient", "hvp"])
@pytest.mark.parametrize("seed", range(10))
def test_random_loops_give_the_same_bits(seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)
    loop = _random_loop(rng)
    s: Any = 0.4 if seed % 3 else np.linspace(0.2, 0.6, 3)
    args = (rng.uniform(0.1, 0.9, size=90), s, 0.6)
    fun, args = derivative(Case(loop, args, (0, 0, 0)), order)
    jaxpr = staged(fun, *args)
    result = rolled(jaxpr, args)
    if len(jaxpr.eqns) > 1500:
        assert size(result) < 0.5 * len(jaxpr.eqns)
