"""Grad modes inside and outside of transforms: words of both, against PyTorch's numbers."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from autograd.grad_mode_words import DATA, MODES, UNRECORDED, run, words
from functrans.compat import torch
from functrans.core.dispatch import bind
from functrans.primitives.structural import unrecorded_p

EXPECTED: dict[str, Any] = json.loads(DATA.read_text())
WORDS = words()
SHORT = [word for word in WORDS if len(word) < 3]
SAMPLE = [word for word in WORDS if len(word) == 3][::8]  # all of them take 40 s


def _check(word: Sequence[str], found: Any) -> None:
    """PyTorch's value and gradient; a gradient of zeros may be none at all."""
    expected = EXPECTED[" ".join(word)]
    if isinstance(expected, str):  # PyTorch refuses it
        return
    assert not isinstance(found, str), (word, found)
    message = " ".join(word)
    assert_allclose(found[0], expected[0], rtol=1e-6, atol=1e-7, err_msg=message)
    if expected[1] is None:
        assert found[1] is None, message
    else:
        gradient = np.zeros(2) if found[1] is None else found[1]
        assert_allclose(gradient, expected[1], rtol=1e-6, atol=1e-7, err_msg=message)


def test_the_data_is_of_these_words() -> None:
    assert [" ".join(word) for word in WORDS] == list(EXPECTED)
    assert sum(isinstance(found, str) for found in EXPECTED.values()) < 0.1 * len(WORDS)


@pytest.mark.parametrize("first", sorted({word[0] for word in WORDS}))
def test_words_of_modes_and_transforms(first: str) -> None:
    for word in [*SHORT, *SAMPLE]:
        if word[0] == first:
            _check(word, run(torch, word))


JITTED = [
    (mode, transform)
    for mode, transform in [
        ("no_grad", "grad"),
        ("set_grad_enabled", "vmap"),
        ("inference_mode", "jacrev"),
        ("vmap", "no_grad"),
        ("jacfwd", "no_grad"),
        ("hessian", "set_grad_enabled"),
        ("jvp", "inference_mode"),
        ("vmap", "detach"),
    ]
]
JITTED += [
    word for word in SHORT if len(word) == 2 and len(set(UNRECORDED).intersection(word)) == 1
][::7]


@pytest.mark.parametrize("word", JITTED, ids=" ".join)
def test_jitted_words(word: tuple[str, ...]) -> None:
    """The whole word as one program."""
    steps = iter((False, False, True))
    _check(word, run(torch, word, lambda f: ft.jit(f) if next(steps) else f))


def test_all_modes_are_among_the_jitted() -> None:
    letters = {letter for word in JITTED for letter in word}
    assert letters >= {*MODES, *UNRECORDED} - {"enable_grad"}


# what the modes mean at the border of a transform -------------------------------------------------


def _leaf() -> Any:
    return torch.tensor([1.0, 2.0], requires_grad=True)


def _cubes(x: Any) -> Any:
    return (x**3).sum()


OFF: list[Any] = [torch.no_grad, torch.inference_mode, lambda: torch.set_grad_enabled(False)]


@pytest.mark.parametrize("off", OFF, ids=["no_grad", "inference_mode", "set_grad_enabled"])
def test_transforms_differentiate_where_nothing_is_recorded(off: Any) -> None:
    x = _leaf()
    with off():
        gradient, value = torch.func.grad_and_value(_cubes)(x)
        out, pull = torch.func.vjp(_cubes, x)
        rows = torch.func.jacrev(lambda x: x**3)(x)
    for tensor in (gradient, value, out, rows):
        assert not tensor.requires_grad
    assert gradient.tolist() == [3, 12]
    assert rows.tolist() == [[3, 0], [0, 12]]
    (later,) = pull(torch.ones(()))
    assert later.tolist() == [3, 12]
    if off is not torch.inference_mode:
        later.sum().backward()
        assert x.grad.tolist() == [6, 12]


def test_detached_targets_stay_detached_under_vmap() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def pulled_to_its_square(x: Any) -> Any:
        with torch.no_grad():
            target = x**2
        return x * target

    torch.func.vmap(pulled_to_its_square)(x).sum().backward()
    assert x.grad.tolist() == [1, 4, 9]
    assert torch.func.jvp(pulled_to_its_square, (x,), (torch.ones(3),))[1].tolist() == [3, 12, 27]


def test_unrecorded_values_have_tangents_and_no_gradient() -> None:
    def square(x: Any) -> Any:
        return x * bind(unrecorded_p, x)[0]

    for f in (square, ft.jit(square), ft.vmap(square)):
        x = np.array([3.0])
        assert ft.jvp(f, (x,), (np.ones(1),))[1] == [6.0]
        assert ft.linearize(f, x)[1](np.ones(1)) == [6.0]
        assert ft.jacfwd(f)(x) == [[6.0]]
        assert ft.grad(lambda x, f=f: f(x).sum())(x) == [3.0]
        assert ft.jacrev(f)(x) == [[3.0]]
