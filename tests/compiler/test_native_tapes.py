"""Loops of unknown length, differentiated backwards in machine code: tapes on the heap."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.compiler.compiled import plan_of
from functrans.compiler.support import HostCall, NativePart, program_obstacle
from functrans.control.loops import Shape
from functrans.core.avals import ShapedArray, Tape
from functrans.passes.staging import stage


def newton(a: Any) -> Any:
    """The square root of ``a``, to a tolerance."""

    def refine(s: Any) -> Any:
        return 0.5 * (s + a / s)

    return lax.while_loop(lambda s: np.abs(s * s - a) > 1e-13 * a, refine, a * 0 + 1.0)


def shrink(x: Any) -> Any:
    """Rounds until a vector is small; none if it is at the start."""

    def step(state: Any) -> Any:
        y, k = state
        return y * 0.5 + 0.01 * np.tanh(y[::-1]), k + 1

    y, _ = lax.while_loop(lambda state: np.sum(state[0] ** 2) > 1e-3, step, (x, 0))
    return np.sum(y * x)


def in_scan(x: Any) -> Any:
    return lax.scan(lambda c, k: (newton(c * c + 1) + k, c), x, np.arange(4.0))[0]


def parts_of(fun: Callable[..., Any], *args: Any) -> list[type]:
    return [type(part) for part in plan_of(ft.jit(fun).jaxpr(*args))]


VECTOR = np.linspace(-1.0, 1.0, 200)

CASES = {
    "scalar": (newton, 2.0),
    "vector": (shrink, VECTOR),
    "small": (shrink, VECTOR[::40].copy()),
    "no round": (shrink, VECTOR * 1e-4),
    "many rounds": (lambda a: newton(a * 1e-30) * 1e15, 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_compiled_whole(name: str) -> None:
    fun, x = CASES[name]
    grad = ft.grad(fun)
    assert parts_of(grad, x) == [NativePart]
    got = ft.jit(grad)(x)
    np.testing.assert_allclose(got, grad(x), rtol=1e-12, atol=1e-12)
    with ft.config(compiler_math=True):
        np.testing.assert_array_equal(got, ft.jit(grad)(x))


def test_second_order() -> None:
    second = ft.grad(ft.grad(newton))
    assert parts_of(second, 2.0) == [NativePart]
    np.testing.assert_allclose(ft.jit(second)(2.0), -0.25 * 2**-1.5, rtol=1e-12)


def test_each_call_begins_with_an_empty_tape() -> None:
    f = ft.jit(ft.grad(newton))
    for a in (2.0, 1e6, 1.5, 3.0, 1e-6):
        np.testing.assert_allclose(f(a), 0.5 / np.sqrt(a), rtol=1e-10)


def test_loop_of_unknown_length_in_a_scan() -> None:
    grad = ft.grad(in_scan)
    assert parts_of(grad, 1.3) == [NativePart]
    np.testing.assert_allclose(ft.jit(grad)(1.3), grad(1.3), rtol=1e-12)


def nested(x: Any, kinds: str, rounds: int) -> Any:
    """Loops in each other, the outermost first: ``w``\\ hile or ``s``\\ can."""
    if not kinds:
        return np.sin(x) * 1.1

    def step(state: Any) -> Any:
        k, y = state
        return k + 1, nested(y, kinds[1:], rounds) + 0.1 * y * k

    if kinds[0] == "s":
        return lax.scan(lambda s, _: (step(s), s[1] * 2), (0, x), None, length=3)[0][1]
    # the number of rounds differs from turn to turn of the loop outside
    return lax.while_loop(lambda s: s[0] < rounds + (s[1] > 0.35), step, (0, x))[1]


@pytest.mark.parametrize(("order", "rounds"), [(1, 0), (1, 20), (2, 2)])
@pytest.mark.parametrize("kinds", ["ws", "sw", "ww", "sww", "www"])
def test_loops_in_loops_are_compiled_whole(order: int, kinds: str, rounds: int) -> None:
    grad = fun = functools.partial(nested, kinds=kinds, rounds=rounds if len(kinds) < 3 else 3)
    for _ in range(order):
        grad = ft.grad(grad)
    assert parts_of(grad, 0.3) == [NativePart]
    compiled = ft.jit(grad)
    with ft.disable_jit():
        expected = [float(grad(x)) for x in (0.3, 0.5, 0.2, 0.3)]
    np.testing.assert_allclose([compiled(x) for x in (0.3, 0.5, 0.2, 0.3)], expected, rtol=1e-11)
    assert fun(0.3) != fun(0.5)


MODES = {"f": ft.jacfwd, "r": ft.jacrev}


@pytest.mark.parametrize("modes", ["fff", "ffr", "frf", "frr", "rff", "rfr", "rrf", "rrr"])
@pytest.mark.parametrize("kinds", ["w", "sw", "ww"])
def test_third_derivatives_are_compiled_whole(kinds: str, modes: str) -> None:
    """In reverse mode over reverse mode they add tapes, which batches have widened."""

    def fun(x: Any) -> Any:
        return nested(x[0] + 0.7 * x[1], kinds, 2) * x[1]

    third = fun
    for mode in modes:
        third = MODES[mode](third)
    x = np.array([0.3, 0.4])
    assert parts_of(third, x) == [NativePart]
    with ft.disable_jit():
        expected = third(x)
    found = ft.jit(third)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    with ft.config(compiler_math=True):
        np.testing.assert_array_equal(ft.jit(third)(x), found)


@pytest.mark.parametrize("mode", [ft.jacrev, ft.jacfwd])
@pytest.mark.parametrize("kind", ["scan", "while"])
def test_second_derivatives_with_few_states_kept_are_compiled_whole(kind: str, mode: Any) -> None:
    def energy(start: Any, checkpoint: Any) -> Any:
        def swing(state: Any) -> Any:
            k, y = state
            return k + 1, y + 0.1 * np.stack([y[1], -np.sin(y[0])])

        state = 0, start
        if kind == "scan":
            out = lax.scan(
                lambda s, _: (swing(s), None), state, None, length=9, checkpoint=checkpoint
            )[0]
        else:
            out = lax.while_loop(lambda s: s[0] < 9, swing, state, checkpoint=checkpoint)
        return np.sum(out[1] ** 2)

    start = np.array([1.0, 0.5])
    few = ft.checkpoint_policies.binomial(3)
    second, plain = (mode(ft.grad(lambda y, c=c: energy(y, c))) for c in (few, None))
    assert parts_of(second, start) == [NativePart]
    np.testing.assert_allclose(ft.jit(second)(start), plain(start), rtol=1e-10)


def test_tapes_of_tapes_are_given_back_after_each_call() -> None:
    """Also those of a program that an exception leaves in its middle."""

    def fun(x: Any, limit: Any) -> Any:
        def factor(state: Any) -> Any:
            k, y = state
            root = np.linalg.cholesky(np.reshape(limit - k, (1, 1)))
            return k + 1, np.sin(y) + 0.1 * root[0, 0]

        def turn(y: Any, _: Any) -> Any:
            return lax.while_loop(lambda s: s[0] < 50, factor, (0, y))[1], y

        return np.sum(lax.scan(turn, x, None, length=20)[0])

    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    grad = ft.jit(ft.grad(fun))
    assert parts_of(ft.grad(fun), VECTOR, 60.0) == [NativePart]

    def call() -> None:
        grad(VECTOR, 60.0)
        with pytest.raises(np.linalg.LinAlgError):
            grad(VECTOR, 30.0)

    for _ in range(5):
        call()
    before = memory()
    for _ in range(40):
        call()
    # each call has 20 tapes of 50 entries of 1600 bytes
    assert memory() - before < 10 * 20 * 50 * 1600


def test_a_body_gives_a_tape_that_it_made_once() -> None:
    aval = ShapedArray((), np.dtype(np.float64))
    passed = stage(lambda tape: [tape], [Tape(aval)], "", name="passed")
    assert program_obstacle(passed) == "passed: it gives a tape of others"

    def made(tape: Any) -> list[Any]:
        length = np.int64(3)
        body = stage(lambda x: [x * 2.0], [aval], "body")
        _, (other,) = Shape(0, 0, None, False, 1).bind(body, [length], [], [], [tape])
        return [other, other]

    twice = stage(made, [Tape(aval)], "", name="twice")
    assert program_obstacle(twice) == "twice: it gives a tape of others"
    assert program_obstacle(stage(lambda t: made(t)[:1], [Tape(aval)], "once")) is None


def test_tape_that_would_cross_a_call_of_numpy() -> None:
    def fun(a: Any) -> Any:
        return newton(a) * ft.scipy.special.lambertw(np.stack([a, 2.0 * a])).real[0]

    grad = ft.grad(fun)
    reasons = [part.reason for part in plan_of(ft.jit(grad).jaxpr(2.0)) if type(part) is HostCall]
    assert "while: a tape of it is used outside" in reasons
    np.testing.assert_allclose(ft.jit(grad)(2.0), grad(2.0), rtol=1e-12)
