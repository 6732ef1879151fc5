"""Numbers drawn while a function is traced once for many calls, rounds or lanes are told of."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft

GENERATOR = np.random.default_rng(0)
ONCE: dict[str, Callable[[Callable[..., Any]], object]] = {
    "jit": lambda f: ft.jit(f)(1.0),
    "vmap": lambda f: ft.vmap(f)(np.arange(3.0)),
    "vmap of grad": lambda f: ft.vmap(ft.grad(f))(np.arange(3.0)),
    "scan": lambda f: ft.lax.scan(lambda c, x: (f(c), x), 0.0, np.arange(3.0)),
    "map": lambda f: ft.lax.map(f, np.arange(3.0)),
    "fori_loop": lambda f: ft.lax.fori_loop(0, 3, lambda i, c: f(c), 0.0),
    "while_loop": lambda f: ft.lax.while_loop(lambda c: c < 3, lambda c: c + 1 + 0 * f(c), 0.0),
}


class Noisy:
    """Something with a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.RandomState(0)  # what older code has

    def add(self, x: Any) -> Any:
        return x + self.rng.normal()

    def __call__(self, x: Any) -> Any:
        return self.add(x)


def _draws(x: Any) -> Any:
    return x + GENERATOR.normal()


def _kinds() -> dict[str, tuple[Callable[..., Any], str]]:
    """Functions that draw, made anew, and how the generator is called."""
    own = np.random.default_rng(0)
    python = random.Random(0)
    return {
        "global": (lambda x: x + np.random.normal(), "NumPy's global generator"),  # noqa: NPY002
        "python": (lambda x: x + random.random(), "Python's global generator"),
        "variable": (_draws, "the generator GENERATOR"),
        "closure": (lambda x: x + own.normal(), "the generator own"),
        "python object": (lambda x: x + python.random(), "the generator python"),
        "helper": (lambda x: 2 * _draws(x), "the generator GENERATOR"),
        "method": (Noisy().add, "the generator self.rng"),
        "object": (Noisy(), "the generator self.rng"),
    }


@pytest.mark.parametrize("kind", _kinds())
@pytest.mark.parametrize("way", ONCE)
def test_draws_while_tracing_are_told_of(
    way: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functrans.core.hidden_state._SEEN", set())
    function, name = _kinds()[kind]
    with pytest.warns(UserWarning, match=name) as record:
        ONCE[way](function)
    assert len(record) == 1
    assert record[0].filename == __file__


class Stateless(np.random.Generator):
    """A generator that does not say where it stands."""

    @property
    def bit_generator(self) -> Any:
        raise ValueError("no state")


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.Philox, np.random.SFC64, np.random.MT19937]
)
def test_generators_of_all_kinds(bits: Any) -> None:
    own = np.random.Generator(bits(0))
    with pytest.warns(UserWarning, match="the generator own"):
        ft.jit(lambda x: x + own.normal())(1.0)


@pytest.mark.parametrize("generator", [random.SystemRandom(), Stateless(np.random.PCG64(0))])
def test_generators_that_do_not_say_where_they_stand_are_no_obstacle(generator: Any) -> None:
    assert ft.jit(lambda x: x + 0 * generator.random())(1.0) == 1.0


@pytest.mark.parametrize("way", ONCE)
def test_functions_that_draw_nothing_are_silent(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functrans.core.hidden_state._SEEN", set())
    own = np.random.default_rng(0)
    table = own.normal(size=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ONCE[way](lambda x: x + table[0] + np.random.default_rng(1).normal() + (own is None))


def test_a_function_that_runs_in_each_call_draws_in_each() -> None:
    own = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slope = ft.grad(lambda x: x * own.normal())
        assert slope(1.0) != slope(1.0)
