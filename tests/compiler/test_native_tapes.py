"""Loops of unknown length, differentiated backwards in machine code: tapes on the heap."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.compiler.compiled import plan_of
from functrans.compiler.support import HostCall, NativePart


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


def test_loop_in_a_loop_keeps_its_tapes_in_python() -> None:
    grad = ft.grad(in_scan)
    assert HostCall in parts_of(grad, 1.3)
    np.testing.assert_allclose(ft.jit(grad)(1.3), grad(1.3), rtol=1e-12)


def test_tape_that_would_cross_a_call_of_numpy() -> None:
    def fun(a: Any) -> Any:
        return newton(a) * np.fft.fft(np.stack([a, 2.0 * a])).real[0]

    grad = ft.grad(fun)
    reasons = [part.reason for part in plan_of(ft.jit(grad).jaxpr(2.0)) if type(part) is HostCall]
    assert "while: a tape of it is used outside" in reasons
    np.testing.assert_allclose(ft.jit(grad)(2.0), grad(2.0), rtol=1e-12)
