"""All words of up to three transforms, on functions of all kinds.

A derivative letter takes the derivative along a fixed direction, a structural letter leaves the
function as it is; so a word with ``k`` derivative letters has the value of the ``k``-th derivative
along the direction, whichever letters it is made of.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import IS_FULL, IS_WHOLE
from functions import CASES, STAGEABLE, VALUE_DEPENDENT, Case, line_derivatives

Fun = Callable[[Any], Any]


def _grad(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: np.sum(ft.grad(f)(x) * v)


def _jvp(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: ft.jvp(f, (x,), (v,))[1]


def _vjp(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: ft.vjp(f, x)[1](1.0)[0] @ v


def _jacfwd(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: ft.jacfwd(f)(x) @ v


def _jacrev(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: v @ ft.jacrev(f)(x)


def _linearize(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: ft.linearize(f, x)[1](v)


def _vmap(f: Fun, v: np.ndarray) -> Fun:
    """Mapped over a factor, so that ``x`` comes in through a closure."""
    return lambda x: ft.vmap(lambda s: f(s * x))(np.ones(2))[1]


def _vmap_rows(f: Fun, v: np.ndarray) -> Fun:
    return lambda x: ft.vmap(f, in_axes=1)(np.stack([x * 0.9, x], axis=1))[1]


def _jit(f: Fun, v: np.ndarray) -> Fun:
    return ft.jit(f)


def _checkpoint(f: Fun, v: np.ndarray) -> Fun:
    return ft.checkpoint(f)


DERIVATIVES = {
    "grad": _grad,
    "jvp": _jvp,
    "vjp": _vjp,
    "jacfwd": _jacfwd,
    "jacrev": _jacrev,
    "linearize": _linearize,
}
STRUCTURAL = {"vmap": _vmap, "vmap_rows": _vmap_rows, "jit": _jit, "checkpoint": _checkpoint}
# These trace without values, whatever is inside.
STAGING = ("vmap", "vmap_rows", "jit", "checkpoint")
LETTERS = {**DERIVATIVES, **STRUCTURAL}

SHORT = [word for n in (1, 2) for word in product(LETTERS, repeat=n)]
LONG = list(product(LETTERS, repeat=3))
# Long words are dealt out: every word goes to this many functions, every function gets its share.
TAKERS = 3 if IS_WHOLE else 2 if IS_FULL else 1


def _takes(case: Case, word: tuple[str, ...]) -> bool:
    return case.name not in VALUE_DEPENDENT or not set(word) & set(STAGING)


def _dealt() -> dict[str, list[tuple[str, ...]]]:
    """The words of every function."""
    words = {case.name: [word for word in SHORT if _takes(case, word)] for case in CASES}
    for i, word in enumerate(LONG):
        takers = [case for case in CASES if _takes(case, word)]
        for k in range(TAKERS):
            words[takers[(i + k * len(takers) // TAKERS) % len(takers)].name].append(word)
    return words


WORDS = _dealt()


def _composed(case: Case, word: tuple[str, ...]) -> Fun:
    """``word[0]`` is the outermost transform."""
    fun = case.fun
    for letter in reversed(word):
        fun = LETTERS[letter](fun, case.direction())
    return fun


def test_every_long_word_is_tested() -> None:
    assert set(LONG) <= {word for words in WORDS.values() for word in words}
    assert len(STAGEABLE) >= 10


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_reference_derivatives_are_not_zero(case: Case) -> None:
    assert all(abs(value) > 1e-3 for value in line_derivatives(case.name))


@pytest.mark.parametrize("first", list(LETTERS))
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_words_have_the_derivative(case: Case, first: str) -> None:
    expected = line_derivatives(case.name)
    for word in WORDS[case.name]:
        if word[0] != first:
            continue
        order = sum(letter in DERIVATIVES for letter in word)
        found = _composed(case, word)(case.point)
        rtol = (1e-12, 1e-10, 1e-8, 1e-6)[order]
        scale = 1 + abs(expected[order])
        assert abs(found - expected[order]) <= rtol * scale, (word, found, expected[order])
